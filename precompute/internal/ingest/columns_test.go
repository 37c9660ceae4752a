package ingest

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
)

// nodeRecord has 3 nodes with a list of 2 features, a float label with a NaN and a null, and more.
func nodeRecord() arrow.Record {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String},
		{Name: "x", Type: arrow.ListOf(arrow.PrimitiveTypes.Float32), Nullable: true},
		{Name: "label", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "split", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, Nullable: true},
		{Name: "big", Type: arrow.PrimitiveTypes.Uint64},
		{Name: "old", Type: arrow.FixedWidthTypes.Boolean},
	}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	b.Field(0).(*array.StringBuilder).AppendValues([]string{"b", "a", "c"}, nil)
	x := b.Field(1).(*array.ListBuilder)
	for _, row := range [][]float32{{1, 2}, {0.1, -3e-9}, {5, 6}} {
		x.Append(true)
		x.ValueBuilder().(*array.Float32Builder).AppendValues(row, nil)
	}
	b.Field(2).(*array.Float64Builder).AppendValues([]float64{1, 0, 2}, []bool{true, true, false})
	split := b.Field(3).(*array.BinaryDictionaryBuilder)
	split.AppendString("train")
	split.AppendString("test")
	split.AppendNull()
	b.Field(4).(*array.Uint64Builder).AppendValues([]uint64{1 << 63, 2, 3}, nil)
	b.Field(5).(*array.BooleanBuilder).AppendValues([]bool{true, false, true}, nil)
	return b.NewRecord()
}

func edgeRecord(weight bool) arrow.Record {
	fields := []arrow.Field{{Name: "from", Type: arrow.BinaryTypes.LargeString}, {Name: "to", Type: arrow.BinaryTypes.String}}
	if weight {
		fields = append(fields, arrow.Field{Name: "weight", Type: arrow.PrimitiveTypes.Float64})
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema(fields, nil))
	b.Field(0).(*array.LargeStringBuilder).AppendValues([]string{"a", "b"}, nil)
	b.Field(1).(*array.StringBuilder).AppendValues([]string{"b", "c"}, nil)
	if weight {
		b.Field(2).(*array.Float64Builder).AppendValues([]float64{0.5, 2}, nil)
	}
	return b.NewRecord()
}

// writeColumnar writes a record twice as one of the columnar files.
func writeColumnar(t testing.TB, how string, rec arrow.Record, times int) []byte {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch how {
	case "parquet", "parquet-zstd", "parquet-delta":
		props := []parquet.WriterProperty{}
		if how == "parquet-zstd" {
			props = append(props, parquet.WithCompression(compress.Codecs.Zstd), parquet.WithDataPageVersion(parquet.DataPageV2))
		}
		if how == "parquet-delta" {
			props = append(props, parquet.WithDictionaryDefault(false))
			for _, column := range []string{"id", "from", "to"} {
				props = append(props, parquet.WithEncodingFor(column, parquet.Encodings.DeltaLengthByteArray))
			}
			props = append(props, parquet.WithEncodingFor("big", parquet.Encodings.DeltaBinaryPacked))
		}
		var w *pqarrow.FileWriter
		if w, err = pqarrow.NewFileWriter(rec.Schema(), &out, parquet.NewWriterProperties(props...), pqarrow.DefaultWriterProps()); err == nil {
			for range times {
				if err == nil {
					err = w.Write(rec)
				}
			}
			if err == nil {
				err = w.Close()
			}
		}
	case "file", "file-lz4":
		opts := []ipc.Option{ipc.WithSchema(rec.Schema())}
		if how == "file-lz4" {
			opts = append(opts, ipc.WithLZ4())
		}
		path := filepath.Join(t.TempDir(), "f")
		var f *os.File
		if f, err = os.Create(path); err == nil {
			var w *ipc.FileWriter
			if w, err = ipc.NewFileWriter(f, opts...); err == nil {
				for range times {
					if err == nil {
						err = w.Write(rec)
					}
				}
				if err == nil {
					err = w.Close()
				}
			}
			f.Close()
			data, _ := os.ReadFile(path)
			out.Write(data)
		}
	case "stream", "stream-zstd":
		opts := []ipc.Option{ipc.WithSchema(rec.Schema())}
		if how == "stream-zstd" {
			opts = append(opts, ipc.WithZstd())
		}
		w := ipc.NewWriter(&out, opts...)
		for range times {
			if err == nil {
				err = w.Write(rec)
			}
		}
		if err == nil {
			err = w.Close()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var columnarWays = []string{"parquet", "parquet-zstd", "parquet-delta", "file", "file-lz4", "stream", "stream-zstd"}

func TestColumnar(t *testing.T) {
	for _, how := range columnarWays {
		t.Run(how, func(t *testing.T) {
			nodes := writeFile(t, "nodes", string(writeColumnar(t, how, nodeRecord(), 1)))
			edges := writeFile(t, "edges", string(writeColumnar(t, how, edgeRecord(true), 2)))
			tables, _ := mustRead(t, Options{Edges: []string{edges}, Nodes: nodes, FeatureCols: "x,big,old"})
			wantIDs(t, tables, "a", "b", "c")
			if want := []float32{0.5, 2, 0.5, 2}; !slices.Equal(edgesOf(tables).Weight, want) {
				t.Errorf("weights %v, want %v", edgesOf(tables).Weight, want)
			}
			if f := tables.Features; f.NumCols != 4 || !slices.Equal(f.Data, []float32{0.1, -3e-9, 2, 0, 1, 2, 1 << 63, 1, 5, 6, 3, 1}) {
				t.Errorf("features %v", f)
			}
			wantClasses(t, tables, map[string]string{"a": "0", "b": "1", "c": "none"})
			wantParts(t, tables, map[string]uint8{"a": 3, "b": 1, "c": 0})

			// The nodes file as a feature table, and one without ids, whose rows are those of the nodes.
			tables, _ = mustRead(t, Options{Edges: []string{edges}, Features: nodes, FeatureCols: "x"})
			if f := tables.Features; f.NumCols != 2 || f.Data[0] != 0.1 {
				t.Errorf("features %v", f)
			}
			rec := nodeRecord()
			bare := array.NewRecord(arrow.NewSchema(rec.Schema().Fields()[1:2], nil), rec.Columns()[1:2], rec.NumRows())
			features := writeFile(t, "features", string(writeColumnar(t, how, bare, 1)))
			tables, _ = mustRead(t, Options{Edges: []string{edges}, Nodes: nodes, Features: features})
			if f := tables.Features; f.NumCols != 2 || f.Data[0] != 0.1 {
				t.Errorf("features %v", f)
			}
			twice := writeFile(t, "features", string(writeColumnar(t, how, bare, 2)))
			wantRow(t, Options{Edges: []string{edges}, Nodes: nodes, Features: twice}, "features", 4, "a row too many for 3 nodes")
		})
	}
	edges := writeFile(t, "edges", string(writeColumnar(t, "parquet", edgeRecord(false), 1)))
	wantError(t, Options{Edges: []string{edges}, SrcCol: "head"}, "edges", 0, `no column "head"`, `"from", "to"`)
	tables, _ := mustRead(t, Options{Edges: []string{edges}, SrcCol: "2", DstCol: "1"})
	if string(tables.IDs.At(edgesOf(tables).Src[0])) != "b" {
		t.Error("columns by number")
	}
}

// damaged calls read with copies of data in path that are cut or have bytes set: some drawn at random and, where asked, each byte of data to 0,
// or to 0xff where it is 0 already.
func damaged(t *testing.T, path string, data []byte, tries int, everyByte bool, read func(what string)) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	try := func(bad []byte, what string, args ...any) {
		if err := os.WriteFile(path, bad, 0o666); err != nil {
			t.Fatal(err)
		}
		read(fmt.Sprintf(what, args...))
	}
	for i := range tries {
		bad := slices.Clone(data)
		switch i % 4 {
		case 0:
			bad = bad[:r.IntN(len(bad))]
		case 1:
			at := r.IntN(len(bad) - 4)
			copy(bad[at:], []byte{0xff, 0xff, 0xff, 0x7f})
		default:
			for range 1 + i%3 {
				bad[r.IntN(len(bad))] = byte(r.Uint32())
			}
		}
		try(bad, "try %d", i)
	}
	if !everyByte {
		return
	}
	for at := range data {
		bad := slices.Clone(data)
		if bad[at] = 0; data[at] == 0 {
			bad[at] = 0xff
		}
		try(bad, "byte %d set to %d", at, bad[at])
	}
}

// wantOrderly wants that a file reads, or gives an *Error, without a panic and in little time.
func wantOrderly(t *testing.T, what string, opt Options) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("%s: panic: %v\n%s", what, p, debug.Stack())
		}
	}()
	_, _, err := Read(ctx, opt)
	if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
		t.Fatalf("%s: %v", what, err)
	}
}

// Damaged files give an *Error or read, whichever table they are.
func TestColumnarDamage(t *testing.T) {
	tries := 24
	if testing.Short() {
		tries = 5
	}
	edges := in("26-undirected-listed-twice", "once.txt")
	rec := nodeRecord()
	part := func(cols ...int) arrow.Record {
		var fields []arrow.Field
		var arrays []arrow.Array
		for _, c := range cols {
			fields, arrays = append(fields, rec.Schema().Field(c)), append(arrays, rec.Column(c))
		}
		return array.NewRecord(arrow.NewSchema(fields, nil), arrays, rec.NumRows())
	}
	for _, c := range []struct {
		role string
		rec  arrow.Record
		opt  func(path string) Options
	}{
		{"features", part(0, 1, 2, 3, 4), func(path string) Options {
			return Options{Edges: []string{edges}, Features: path, FeatureCols: "x,label,big", MissingFeatures: MissingZero}
		}},
		{"a list of features", part(0, 1), func(path string) Options {
			return Options{Edges: []string{edges}, Features: path, MissingFeatures: MissingZero}
		}},
		{"labels", part(0, 2), func(path string) Options { return Options{Edges: []string{edges}, Labels: path} }},
		{"splits", part(0, 3), func(path string) Options { return Options{Edges: []string{edges}, Splits: path} }},
		{"nodes", part(0, 1, 2, 3), func(path string) Options {
			return Options{Edges: []string{edges}, Nodes: path, FeatureCols: "x"}
		}},
		{"edges", edgeRecord(true), func(path string) Options { return Options{Edges: []string{path}} }},
		{"edges of integers", part(4, 4), func(path string) Options { return Options{Edges: []string{path}, SrcCol: "1", DstCol: "2"} }},
	} {
		for _, how := range columnarWays {
			path := filepath.Join(t.TempDir(), "data")
			everyByte := !testing.Short() && how == "file" && (c.role == "a list of features" || c.role == "edges") // nothing in it has a checksum or is packed
			damaged(t, path, writeColumnar(t, how, c.rec, 1), tries, everyByte, func(what string) {
				wantOrderly(t, c.role+", "+how+", "+what, c.opt(path))
			})
		}
	}
}

// The same of arrays.
func TestArrayDamage(t *testing.T) {
	edges := writeFile(t, "e.csv", "src,dst\n0,1\n")
	data := npyBytes(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", []float32{1, 2, 3, 4, 5, 6})
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	if w, err := z.Create("x.npy"); err != nil {
		t.Fatal(err)
	} else if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"x.npy": data, "x.npz": packed.Bytes()} {
		path := filepath.Join(t.TempDir(), name)
		damaged(t, path, data, 100, true, func(what string) {
			wantOrderly(t, name+", "+what, Options{Edges: []string{edges}, Features: path})
		})
	}
}

// Tables without columns, without values or with the id alone are refused, in every role.
func TestColumnarWithoutColumns(t *testing.T) {
	list := arrow.ListOf(arrow.PrimitiveTypes.Float32)
	record := func(rows int, fields ...arrow.Field) arrow.Record {
		b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema(fields, nil))
		for i, f := range fields {
			for row := range rows {
				if f.Type == list {
					b.Field(i).(*array.ListBuilder).Append(true)
				} else {
					b.Field(i).(*array.StringBuilder).Append(fmt.Sprint(row))
				}
			}
		}
		return b.NewRecord()
	}
	id, empty := arrow.Field{Name: "id", Type: arrow.BinaryTypes.String}, arrow.Field{Name: "x", Type: list}
	edges := writeFile(t, "e.csv", "src,dst\n0,1\n")
	for _, c := range []struct {
		name string
		rec  arrow.Record
		opt  func(path string) Options
		want string
	}{
		{"edges without columns", record(0), func(p string) Options { return Options{Edges: []string{p}} }, "no columns"},
		{"nodes without columns", record(0), func(p string) Options { return Options{Edges: []string{edges}, Nodes: p} }, "no columns"},
		{"features without columns", record(0), func(p string) Options { return Options{Edges: []string{edges}, Features: p} }, "no columns"},
		{"edges of an empty list", record(2, empty), func(p string) Options { return Options{Edges: []string{p}} }, "no columns"},
		{"features of ids", record(2, id), func(p string) Options { return Options{Edges: []string{edges}, Features: p} }, "no feature column"},
		{"features of ids and an empty list", record(2, id, empty), func(p string) Options { return Options{Edges: []string{edges}, Features: p} }, "no feature column"},
		{"features of the nodes' ids", record(2, id), func(p string) Options { return Options{Edges: []string{edges}, Nodes: p, FeatureCols: "id"} }, "no feature column"},
		{"labels of ids", record(2, id), func(p string) Options { return Options{Edges: []string{edges}, Labels: p} }, "no label column"},
		{"splits of ids", record(2, id), func(p string) Options { return Options{Edges: []string{edges}, Splits: p} }, "no split column"},
		{"splits of ids and an empty list", record(2, id, empty), func(p string) Options { return Options{Edges: []string{edges}, Splits: p} }, "no split column"},
	} {
		for _, how := range columnarWays {
			path := writeFile(t, "data", string(writeColumnar(t, how, c.rec, 1)))
			_, _, err := Read(t.Context(), c.opt(path))
			if e := (*Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "damaged") {
				t.Errorf("%s, %s: error %v, want one with %q", c.name, how, err, c.want)
			}
		}
	}
	wantError(t, Options{Edges: []string{edges}, Features: writeFile(t, "f.csv", "id,x\n0,1\n1,2\n"), FeatureCols: "id"}, "f.csv", 1, "no feature column")
}

// Parquet files without rows are read as such, and those of codecs that aren't read are not called damaged.
func TestParquetEmptyAndCodec(t *testing.T) {
	rec := edgeRecord(true)
	for _, how := range columnarWays {
		none := writeFile(t, "none", string(writeColumnar(t, how, rec.NewSlice(0, 0), 1)))
		_, _, err := Read(t.Context(), Options{Edges: []string{none}})
		if err == nil || strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s, no rows: %v", how, err)
		}
		some := writeFile(t, "some", string(writeColumnar(t, how, rec, 1)))
		if tables, _ := mustRead(t, Options{Edges: []string{none, some}}); len(edgesOf(tables).Src) != 2 {
			t.Errorf("%s, no rows and two: %d edges", how, len(edgesOf(tables).Src))
		}
	}
	data := writeColumnar(t, "parquet-zstd", rec, 1)
	// ColumnMetaData, field 4 (codec), an i32 behind field 3 (the path): compact Thrift writes 15, then zigzag 6 for ZSTD.
	at := bytes.LastIndex(data, []byte("\x04from\x15\x0c"))
	if at < 0 {
		t.Fatal("no codec in the footer")
	}
	data[at+6] = 2 * 7
	raw := writeFile(t, "raw.parquet", string(data))
	wantError(t, Options{Edges: []string{raw}}, "raw.parquet", 0, "LZ4_RAW", "not read", "zstd, snappy or gzip")
}

// Levels that end before their page does, on which the library's column reader would never return.
func TestRunsHold(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		max  int16
		n    int64
		want bool
	}{
		{"none", nil, 1, 0, true},
		{"nothing", nil, 1, 1, false},
		{"run", []byte{5 << 1, 1}, 1, 5, true},
		{"short run", []byte{5 << 1, 1}, 1, 6, false},
		{"run without its value", []byte{5 << 1}, 1, 5, false},
		{"run of none", []byte{0, 1, 5 << 1, 1}, 1, 5, false},
		{"groups", []byte{1<<1 | 1, 0xff}, 1, 8, true},
		{"groups and run", []byte{1<<1 | 1, 0xff, 2 << 1, 0}, 1, 10, true},
		{"groups of three bits", []byte{1<<1 | 1, 1, 2, 3}, 7, 9, false},
		{"groups of none", []byte{1}, 1, 1, false},
		{"endless count", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 1, 1, false},
	} {
		if got := runsHold(c.b, c.max, c.n); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

// Weights too small for float32 are counted in columnar files too, with integer ids as well as others.
func TestColumnarSmallWeights(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "src", Type: arrow.PrimitiveTypes.Int64}, {Name: "dst", Type: arrow.PrimitiveTypes.Int64}, {Name: "weight", Type: arrow.PrimitiveTypes.Float64}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
	b.Field(1).(*array.Int64Builder).AppendValues([]int64{2, 3, 4}, nil)
	b.Field(2).(*array.Float64Builder).AppendValues([]float64{0, 1e-50, 1}, nil)
	rec := b.NewRecord()
	for _, how := range columnarWays {
		for _, noFast := range []bool{false, true} {
			tables, report := mustRead(t, Options{Edges: []string{writeFile(t, "edges", string(writeColumnar(t, how, rec, 1)))}, noFast: noFast})
			if got := edgesOf(tables).Weight; !slices.Equal(got, []float32{0, 0, 1}) {
				t.Errorf("%s: weights %v", how, got)
			}
			if got := strings.Join(report.Files[0].Notices, "; "); !strings.Contains(got, `1 weight of column "weight" over 0`) {
				t.Errorf("%s, careful %v: notices %q", how, noFast, got)
			}
		}
	}
}

// A columnar file without the columns that are needed lists those it has; one with a single column too.
func TestColumnarOneColumn(t *testing.T) {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema([]arrow.Field{{Name: "when", Type: arrow.BinaryTypes.String}}, nil))
	b.Field(0).(*array.StringBuilder).AppendValues([]string{"1", "2"}, nil)
	rec := b.NewRecord()
	for _, how := range []string{"parquet", "file"} {
		path := writeFile(t, "e."+map[string]string{"parquet": "parquet", "file": "arrow"}[how], string(writeColumnar(t, how, rec, 1)))
		wantError(t, Options{Edges: []string{path}}, filepath.Base(path), 0, "no column src", `when`)
	}
}

// What isn't read is named, and called damaged only where it is.
func TestColumnarMessages(t *testing.T) {
	guarded := func(f func()) string {
		return fmt.Sprint(guard("f.parquet", "Parquet", func() error { f(); return nil }))
	}
	if got, want := guarded(func() { _ = []int{}[len(t.Name()):] }), "f.parquet: is not readable Parquet (the file is damaged)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := guarded(func() { panic(`bad "x"`) }), `f.parquet: is not readable Parquet: bad "x" (the file is damaged)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	err := guard("f.parquet", "Parquet", func() error { return encodingError("BYTE_STREAM_SPLIT") })
	if want := "f.parquet: is Parquet with values in the encoding BYTE_STREAM_SPLIT, which is not read (write the columns plain or with a dictionary)"; err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	var out bytes.Buffer
	rec := edgeRecord(false)
	props := parquet.NewWriterProperties(parquet.WithDictionaryDefault(false), parquet.WithEncoding(parquet.Encodings.DeltaByteArray))
	w, err := pqarrow.NewFileWriter(rec.Schema(), &out, props, pqarrow.DefaultWriterProps())
	if err == nil {
		err = errors.Join(w.Write(rec), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, Options{Edges: []string{writeFile(t, "f.parquet", out.String())}}, "f.parquet", 0, "encoding DELTA_BYTE_ARRAY, which is not read")
	for _, name := range []string{"f.parquet.gz", "f.arrow.zst"} {
		wantError(t, Options{Edges: []string{writeFile(t, name, "\x1f\x8b")}}, name, 0, "is compressed", "unpack it first")
	}
}
