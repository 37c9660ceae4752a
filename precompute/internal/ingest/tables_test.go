package ingest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/prelift/prelift/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// withTables reads the edges a-b, b-c with one more table in the option that set fills in.
func withTables(t *testing.T, set func(o *Options)) Options {
	t.Helper()
	opt := Options{Edges: []string{writeFile(t, "edges.csv", "src,dst\na,b\nb,c\n")}}
	set(&opt)
	return opt
}

func TestFeatures(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		opt              Options
		want             []float32
	}{
		{"dense", "f.csv", "node,x,y\nc,5,6\na,1,2\nb,3,4\n", Options{}, []float32{1, 2, 3, 4, 5, 6}},
		{"no header", "f.csv", "c,5\na,1\nb,-3e0\n", Options{}, []float32{1, -3, 5}},
		{"id not first", "f.csv", "x,id\n5,c\n1,a\n3,b\n", Options{}, []float32{1, 3, 5}},
		{"tabs", "f.tsv", "node\tx\nc\t5\na\t1\nb\t3\n", Options{}, []float32{1, 3, 5}},
		{"sparse", "f.csv", "node,feature\na,1\nb,0\nc,1\nc,0\n", Options{}, []float32{0, 1, 1, 0, 1, 1}},
		{"sparse values", "f.csv", "node,feature,value\nc,2,0.5\na,0,-1\nb,1,0\n", Options{}, []float32{-1, 0, 0, 0, 0, 0, 0, 0, 0.5}},
		{"sparse wide", "f.csv", "node,feature\na,0\nb,0\nc,0\n", Options{NumFeatures: 2}, []float32{1, 0, 1, 0, 1, 0}},
		{"sparse repeats", "f.csv", "node,feature,value\nc,0,0.5\na,0,1\nb,0,2\nc,0,0.5\n", Options{}, []float32{1, 2, 0.5}},
		{"missing as zero", "f.csv", "node,x\nb,3\n", Options{MissingFeatures: MissingZero}, []float32{0, 3, 0}},
		{"rows", "f.csv", "node,x,y\nc,0,0\na,1,3\nb,-1,-1\n", Options{FeatureNorm: NormRow}, []float32{0.25, 0.75, 0.5, 0.5, 0, 0}},
		{"rows that cancel", "f.csv", "node,x,y\nc,0,2\na,1,-1\nb,1,1\n", Options{FeatureNorm: NormRow}, []float32{1, -1, 0.5, 0.5, 0, 1}},
		{"standard", "f.csv", "node,x,y\na,0.1,1\nb,0.1,2\nc,0.1,3\n", Options{FeatureNorm: NormStandard}, []float32{0, -1.2247449, 0, 0, 0, 1.2247449}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opt.Edges = []string{writeFile(t, "edges.csv", "src,dst\na,b\nb,c\n")}
			c.opt.Features = writeFile(t, c.file, c.text)
			tables, report := mustRead(t, c.opt)
			if !slices.Equal(tables.Features.Data, c.want) || len(c.want) != 3*tables.Features.NumCols {
				t.Errorf("got %v, want %v", tables.Features, c.want)
			}
			if c.name == "sparse repeats" && report.FeatureRepeats != 1 || c.name == "rows that cancel" && len(report.Warnings) != 1 || c.name == "missing as zero" && report.MissingFeatures != 2 {
				t.Errorf("report %+v", report)
			}
		})
	}
}

func TestFeatureFaults(t *testing.T) {
	for _, c := range []struct {
		name, text string
		line       int64
		want       string
	}{
		{"missing", "node,x\nb,3\n", 0, `2 of 3 nodes have no feature row, first "a", "c" (--missing-features zero fills them with zeros)`},
		{"twice", "node,x\na,1\nb,2\na,1\n", 4, `field "node": "a" has a row already in line 2`},
		{"NaN", "node,x\na,1\nb,nan\n", 3, `field "x": "nan" is not a finite number`},
		{"infinite", "node,x\na,1e39\n", 2, `field "x": "1e39" doesn't fit in a finite float32`},
		{"empty", "node,x\na,\n", 2, `field "x": "" is empty`},
		{"unknown header", "paper,w\na,1\n", 1, `field "2": "w" is not a number (if this row is a header, --table-header yes)`},
		{"one column", "node\na\n", 1, "no feature column"},
		{"sparse float", "node,feature\na,1.0\n", 2, `field "feature": "1.0" is not a feature number`},
		{"sparse zeros", "node,feature\na,01\n", 2, `"01" is not a feature number`},
		{"sparse negative", "node,feature\na,-1\n", 2, `"-1" is not a feature number`},
		{"sparse value", "node,feature,value\na,1,0x1\n", 2, `field "value": "0x1" is not a number`},
		{"sparse contradiction", "node,feature,value\na,1,2\nb,1,2\na,1,3\n", 4, `field "value": "3" contradicts line 2 about node "a", feature 1`},
		{"too wide", "node,feature\na,1\nb,2000000000\nc,0\n", 3, "3 nodes with 2000000001 features are more than 16384 MiB"},
		{"over int32", "node,feature\na,9999999999\n", 2, "too large for a feature number"},
		{"header only", "node,feature\n", 0, "there are no features"},
		{"nothing", "", 0, "there are no features"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, withTables(t, func(o *Options) { o.Features = writeFile(t, "f.csv", c.text) }), "f.csv", c.line, c.want)
		})
	}
}

// npyBytes is a .npy file of version 1 or 2.
func npyBytes(version byte, header string, data any) []byte {
	var out bytes.Buffer
	out.WriteString("\x93NUMPY")
	out.Write([]byte{version, 0})
	if version == 1 {
		binary.Write(&out, binary.LittleEndian, uint16(len(header)))
	} else {
		binary.Write(&out, binary.LittleEndian, uint32(len(header)))
	}
	out.WriteString(header)
	binary.Write(&out, binary.LittleEndian, data)
	return out.Bytes()
}

func TestNPYTypes(t *testing.T) {
	big := func(v any) []byte {
		var out bytes.Buffer
		binary.Write(&out, binary.BigEndian, v)
		return out.Bytes()
	}
	header := func(descr string) string {
		return fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (3, 1), }\n", descr)
	}
	for _, c := range []struct {
		descr string
		data  any
		want  []float32
	}{
		{"|b1", []byte{0, 1, 2}, []float32{0, 1, 1}},
		{"|u1", []byte{0, 1, 255}, []float32{0, 1, 255}},
		{"|i1", []int8{0, 1, -128}, []float32{0, 1, -128}},
		{"<i2", []int16{0, 1, -300}, []float32{0, 1, -300}},
		{">i2", big([]int16{0, 1, -300}), []float32{0, 1, -300}},
		{"<u2", []uint16{0, 1, 65535}, []float32{0, 1, 65535}},
		{"<i4", []int32{0, 1, -1 << 31}, []float32{0, 1, -1 << 31}},
		{">u4", big([]uint32{0, 1, 1 << 31}), []float32{0, 1, 1 << 31}},
		{"<i8", []int64{0, 1, -1 << 40}, []float32{0, 1, -1 << 40}},
		{"<u8", []uint64{0, 1, 1 << 63}, []float32{0, 1, 1 << 63}},
		{"<f2", []uint16{0x3c00, 0x8001, 0x7bff}, []float32{1, -1.0 / (1 << 24), 65504}},
		{"<f4", []float32{1, -2, 1e-45}, []float32{1, -2, 1e-45}},
		{">f8", big([]float64{1, -2, 1e-46}), []float32{1, -2, 0}},
	} {
		for _, version := range []byte{1, 2} {
			opt := Options{Edges: []string{writeFile(t, "edges.csv", "2,0\n")}, Features: writeFile(t, "x.npy", string(npyBytes(version, header(c.descr), c.data)))}
			tables, _ := mustRead(t, opt)
			wantIDs(t, tables, "0", "1", "2")
			if !slices.Equal(tables.Features.Data, c.want) {
				t.Errorf("%s: got %v, want %v", c.descr, tables.Features.Data, c.want)
			}
		}
	}
	vector := string(npyBytes(1, "{'shape': (3,), 'fortran_order': True, 'descr': '<f4'}", []float32{1, 2, 3}))
	opt := Options{Edges: []string{writeFile(t, "edges.csv", "2,0\n")}, Features: writeFile(t, "x.npy", vector), IDType: IDString}
	if tables, _ := mustRead(t, opt); tables.Features.NumCols != 1 {
		t.Errorf("got %v", tables.Features)
	}
}

func TestHalfToFloat(t *testing.T) {
	for h := range 1 << 16 {
		sign, e, f := 1.0, h>>10&31, float64(h&1023)
		if h>>15 == 1 {
			sign = -1
		}
		want := sign * (1 + f/1024) * math.Pow(2, float64(e-15))
		switch {
		case e == 0:
			want = sign * f / 1024 * math.Pow(2, -14)
		case e == 31 && f == 0:
			want = math.Inf(int(sign))
		case e == 31:
			want = math.NaN()
		}
		if got := float64(halfToFloat(uint16(h))); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%#x: got %v, want %v", h, got, want)
		}
	}
}

// Row i belongs to data row i of Nodes, in either memory order and when the matrix is read in several pieces.
func TestNPYRows(t *testing.T) {
	const rows, cols = 1500, 97 // more than one piece of 1<<17 elements
	perm := rand.New(rand.NewPCG(1, 2)).Perm(rows)
	var nodes strings.Builder
	nodes.WriteString("id\n")
	for _, p := range perm {
		fmt.Fprintf(&nodes, "%d\n", p)
	}
	value := func(id, col int) float32 { return float32(id*1000 + col) }
	for _, fortran := range []bool{false, true} {
		data := make([]float32, rows*cols)
		for i, p := range perm {
			for j := range cols {
				if fortran {
					data[j*rows+i] = value(p, j)
				} else {
					data[i*cols+j] = value(p, j)
				}
			}
		}
		header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': %s, 'shape': (%d, %d)}", map[bool]string{true: "True", false: "False"}[fortran], rows, cols)
		tables, _, err := Read(t.Context(), Options{Edges: []string{writeFile(t, "edges.csv", "0,1\n")}, Nodes: writeFile(t, "nodes.csv", nodes.String()),
			Features: writeFile(t, "x.npy", string(npyBytes(1, header, data)))})
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range tables.Features.Data {
			if want := value(i/cols, i%cols); got != want {
				t.Fatalf("fortran %v: node %d column %d: got %v, want %v", fortran, i/cols, i%cols, got, want)
			}
		}
	}
}

func TestNPYFaults(t *testing.T) {
	three := []float32{1, 2, 3}
	head := "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }"
	with := func(old, new string) []byte { return npyBytes(1, strings.Replace(head, old, new, 1), three) }
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "is not a .npy array"},
		{"text", []byte("node,x\na,1\nb,2\n"), "is not a .npy array"},
		{"version", npyBytes(9, head, three), "has .npy version 9.0"},
		{"cut header", npyBytes(1, head, three)[:30], "ends inside the .npy header"},
		{"huge header", append([]byte("\x93NUMPY\x02\x00"), 255, 255, 255, 255), "header of 4294967295 bytes"},
		{"no dictionary", npyBytes(1, "hello", three), "header that can't be read"},
		{"missing key", with(", 'shape': (3, 1)", ""), "header that can't be read"},
		{"extra key", with("'descr'", "'x': 1, 'descr'"), "header that can't be read"},
		{"key twice", with("'descr'", "'descr': '<f4', 'descr'"), "header that can't be read"},
		{"structured", with("'<f4'", "[('a', '<f4')]"), "structured arrays are not supported"},
		{"text elements", with("<f4", "<U4"), `elements of type "<U4" are not supported`},
		{"complex", with("<f4", "<c8"), "are not supported"},
		{"three dimensions", with("(3, 1)", "(3, 1, 1)"), "has 3 dimensions"},
		{"no columns", with("(3, 1)", "(3, 0)"), "has no columns"},
		{"negative", with("(3, 1)", "(-3, 1)"), "header that can't be read"},
		{"huge shape", with("(3, 1)", "(4611686018427387904, 4611686018427387904)"), "has the shape"},
		{"large shape", with("(3, 1)", "(3, 1000000000)"), "file holds 12 of 12000000000 data bytes"},
		{"more data", npyBytes(1, head, append(three, 4)), "4 bytes behind its 12 data bytes"},
		{"NaN", npyBytes(1, head, []float32{1, float32(math.NaN()), 3}), "row 1, column 0 (from 0): NaN is not a finite float32"},
		{"infinite", npyBytes(1, strings.Replace(head, "<f4", "<f8", 1), []float64{1, 2, 1e300}), "row 2, column 0 (from 0): 1e+300 is not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, withTables(t, func(o *Options) {
				o.Nodes = writeFile(t, "nodes.csv", "id\na\nb\nc\n")
				o.Features = writeFile(t, "x.npy", string(c.data))
			}), "x.npy", 0, c.want)
		})
	}
}

func TestNPZ(t *testing.T) {
	pack := func(method uint16) []byte {
		var out bytes.Buffer
		z := zip.NewWriter(&out)
		w, _ := z.CreateHeader(&zip.FileHeader{Name: "x.npy", Method: method})
		w.Write(npyBytes(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }", []float32{1, 2, 3}))
		z.Close()
		return out.Bytes()
	}
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		opt := withTables(t, func(o *Options) {
			o.Nodes = writeFile(t, "nodes.csv", "id\nb\na\nc\n")
			o.Features = writeFile(t, "x.npz", string(pack(method)))
		})
		tables, _ := mustRead(t, opt)
		if !slices.Equal(tables.Features.Data, []float32{2, 1, 3}) {
			t.Errorf("got %v", tables.Features.Data)
		}
	}
	damaged := pack(zip.Store)
	damaged[bytes.Index(damaged, []byte{0, 0, 0, 64})] ^= 1
	cut := pack(zip.Deflate)
	for _, c := range []struct {
		data []byte
		want string
	}{{damaged, "checksum"}, {cut[:len(cut)-9], "is not a readable .npz file"}, {nil, "is not a readable .npz file"}} {
		wantError(t, withTables(t, func(o *Options) {
			o.Nodes = writeFile(t, "nodes.csv", "id\nb\na\nc\n")
			o.Features = writeFile(t, "x.npz", string(c.data))
		}), "x.npz", 0, c.want)
	}
}

func TestNodes(t *testing.T) {
	opt := withTables(t, func(o *Options) {
		o.Nodes = writeFile(t, "nodes.csv", "id,f1,name,label,split,f0,fx\nc,1,\"x,\ny\",red,TEST,2,q\nd,3,,blue,,4,q\na,5,,red,train,6,q\nb,7,,nan,Validation,8,q\n")
	})
	tables, report := mustRead(t, opt)
	wantIDs(t, tables, "a", "b", "c", "d")
	wantClasses(t, tables, map[string]string{"a": "red", "b": "none", "c": "red", "d": "blue"})
	wantParts(t, tables, map[string]snapshot.Part{"a": 1, "b": 0, "c": 3, "d": 0})
	if !slices.Equal(tables.Features.Data, []float32{6, 5, 8, 7, 2, 1, 4, 3}) { // by number, not by place
		t.Errorf("features %v", tables.Features.Data)
	}
	for _, head := range []string{"f0,f2", "f0,f0", "f1,f2", "f0,f99999999999"} {
		wantError(t, withTables(t, func(o *Options) {
			o.Nodes = writeFile(t, "nodes.csv", "id,"+head+"\na,1,2\nb,3,4\nc,5,6\nd,7,8\n")
		}), "nodes.csv", 1, "beyond them or there twice")
	}
	if got := fmt.Sprint(report.Files[0].Notices); !strings.Contains(got, `columns not used: "name", "fx"`) || report.Files[0].Lines != 6 || report.Files[0].Rows != 4 {
		t.Errorf("report %+v", report.Files[0])
	}
	opt.Labels = writeFile(t, "labels.csv", "node,label\na,1\n")
	opt.Splits = writeFile(t, "split.csv", "node,split\na,test\n")
	opt.Features = writeFile(t, "f.csv", "node,f0\na,1\nb,2\nc,3\nd,4\n")
	tables, report = mustRead(t, opt)
	wantClasses(t, tables, map[string]string{"a": "1", "b": "none", "c": "none", "d": "none"})
	if got := fmt.Sprint(report.Files[0].Notices); strings.Count(got, "come from") != 3 || tables.Features.NumCols != 1 {
		t.Errorf("notices %s", got)
	}
	for text, want := range map[string]string{
		"id\na\nb\nc\na\n":         `nodes.csv:5: field "id": "a" is in the table twice, first in line 2`,
		"id,label\na,1\nb,2\n":     `edges.csv:3: field "dst": "c" is not an id in nodes.csv`,
		"id,split\na,dev\n":        `nodes.csv:2: field "split": "dev" is not a part of a split`,
		"id,f0\na,x\n":             `nodes.csv:2: field "f0": "x" is not a number`,
		"user\n1\n2\n":             `nodes.csv:1: can't tell whether this is a header`,
		"id,label,label\na,1,2\n":  `nodes.csv:1: column "label" appears twice`,
		"id\n\"a\nb\nc\n":          `nodes.csv:2: a quote is opened here and never closed`,
		"id,label\na,1\nb,2\nc,\n": ``,
	} {
		_, _, err := read(t, withTables(t, func(o *Options) { o.Nodes = writeFile(t, "nodes.csv", text) }))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestLabels(t *testing.T) {
	base := func(text string, task snapshot.Task) Options {
		return withTables(t, func(o *Options) { o.Labels, o.Task = writeFile(t, "l.csv", text), task })
	}
	tables, _ := mustRead(t, base("node,label\na,10\nb,9\nc,-1\nd,9\n", ""))
	if l := tables.Labels; l.Task != snapshot.TaskMulticlass || !slices.Equal(l.ClassNames, []string{"9", "10"}) || !slices.Equal(l.Class, []int32{1, 0, -1, 0}) {
		t.Errorf("got %+v", l)
	}
	tables, report := mustRead(t, base("a,x\nb,10\nb,10\nc,9\n", ""))
	if l := tables.Labels; !slices.Equal(l.ClassNames, []string{"10", "9", "x"}) || !slices.Equal(l.Class, []int32{2, 0, 1}) || report.LabelRepeats != 1 {
		t.Errorf("got %+v", l)
	}
	tables, _ = mustRead(t, base("node,p,q\na,0,1\nb,,NaN\nc,1,1\n", ""))
	if l := tables.Labels; l.Task != snapshot.TaskMultilabel || !slices.Equal(l.ClassNames, []string{"p", "q"}) || !slices.Equal(l.Bits, []uint8{0, 1, 0, 0, 1, 1}) || !slices.Equal(l.Labelled, []bool{true, false, true}) {
		t.Errorf("got %+v", l)
	}
	tables, _ = mustRead(t, base("node,value\na,-1\nb,2.5\nc,\n", snapshot.TaskRegression))
	if l := tables.Labels; !slices.Equal(l.Values, []float32{-1, 2.5, 0}) || !slices.Equal(l.Labelled, []bool{true, true, false}) || l.NumTargets != 1 {
		t.Errorf("got %+v", l)
	}
	tables, _ = mustRead(t, base("node,label\na,no\nb,yes\n", snapshot.TaskBinary))
	if l := tables.Labels; l.Task != snapshot.TaskBinary || !slices.Equal(l.Class, []int32{0, 1, -1}) {
		t.Errorf("got %+v", l)
	}
	opt := base("node,p,q,label\na,1,2,3\n", "")
	opt.LabelCol = "q"
	if tables, _ = mustRead(t, opt); !slices.Equal(tables.Labels.ClassNames, []string{"2"}) {
		t.Errorf("got %+v", tables.Labels)
	}
	for _, c := range []struct {
		text string
		task snapshot.Task
		line int64
		want string
	}{
		{"node,label\na,1\nb,2\na,2\n", "", 4, `field "label": "2" contradicts line 2 about node "a"`},
		{"node,label\na,1\na,\n", "", 3, `field "label": "" contradicts line 2`},
		{"node,label\na,1.5\n", "", 2, `"1.5" is a number but no plain integer`},
		{"node,label\na,01\n", "", 2, `"01" is a number but no plain integer`},
		{"node,label\na,1\nb,2\nc,3\n", snapshot.TaskBinary, 0, "needs two classes, found 3"},
		{"node,label\na,\n", "", 0, "no node has a label"},
		{"node,label\n", "", 0, "no node has a label"},
		{"", "", 0, "no node has a label"},
		{"node,p,q\na,0,2\n", "", 2, `field "q": "2" is neither 0 nor 1`},
		{"node,p,q\na,0,\n", "", 2, `field "q": "" leaves the node partly labelled`},
		{"node,p,q\na,,1\n", "", 2, `field "q": "1" leaves the node partly labelled`},
		{"node,p,q\na,0,1\na,0,0\n", "", 3, `field "q": "0" contradicts line 2`},
		{"node,p,q\na,0,1\n", snapshot.TaskMulticlass, 1, "2 label columns for the task multiclass"},
		{"node,value\na,x\n", snapshot.TaskRegression, 2, `field "value": "x" is not a number`},
		{"node,value\na,1\na,2\n", snapshot.TaskRegression, 3, `"2" contradicts line 2`},
		{"node\na\n", "", 1, "no label column"},
	} {
		wantError(t, base(c.text, c.task), "l.csv", c.line, c.want)
	}
}

func TestSplits(t *testing.T) {
	base := func(text string) Options {
		return withTables(t, func(o *Options) { o.Splits = writeFile(t, "s.csv", text) })
	}
	tables, _ := mustRead(t, base("node,s0,s1\nc,test,\na,train,VAL\n"))
	if s := tables.Splits; !slices.Equal(s.Names, []string{"s0", "s1"}) || !slices.Equal(s.Mask, []uint8{1, 2, 0, 0, 3, 0}) {
		t.Errorf("got %+v", s)
	}
	tables, report := mustRead(t, base("a,train\nc,test\na,train\n"))
	if s := tables.Splits; !slices.Equal(s.Names, []string{"split"}) || !slices.Equal(s.Mask, []uint8{1, 0, 3}) || report.SplitRepeats != 1 {
		t.Errorf("got %+v", s)
	}
	wantError(t, base("node,s0,s1\na,train,test\na,test,test\n"), "s.csv", 0, `splits overlap: "a" is in train and test of "s0"`)
	wantError(t, base("node,split\na,trian\n"), "s.csv", 2, `field "split": "trian" is not a part of a split`)
	wantError(t, base("node\na\n"), "s.csv", 1, "no split column")
	opt := base("x")
	commas := writeFile(t, "a,b,c.txt", "1\n")
	for spec, want := range map[string][]string{
		"train=" + commas + ",test=t": {commas, "t"}, "train=t,val=" + commas: {"t", commas}, "train=a=b,test=t": {"a=b", "t"},
	} {
		if _, paths, err := SplitFiles(spec); err != nil || !slices.Equal(paths, want) {
			t.Errorf("%s: %q, %v, want %q", spec, paths, err, want)
		}
	}
	for spec, want := range map[string]string{"train=": "is not train=FILE", "train=a,train=b": "train is given twice", "train=a,foo=b": `"foo=b" is not train=FILE`} {
		opt.Splits = spec
		wantError(t, opt, "", 0, want)
	}
}

// normaliseRows and normaliseColumns against the obvious loops, and for any number of threads.
func TestNormalise(t *testing.T) {
	const rows, cols = 3*normRows + 5, 3
	rng := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = float32(rng.NormFloat64()*3 + 10)
	}
	run := func(threads int, f func([]float32, int)) []float32 {
		y := slices.Clone(x)
		f(y, threads)
		return y
	}
	byRow := func(y []float32, threads int) { normaliseRows(y, cols, threads) }
	byColumn := func(y []float32, threads int) { normaliseColumns(y, cols, threads) }
	for _, f := range []func([]float32, int){byRow, byColumn} {
		if !slices.Equal(run(1, f), run(7, f)) {
			t.Error("threads change the result")
		}
	}
	for i, got := range run(2, byRow) {
		row := x[i/cols*cols:]
		if want := float32(float64(x[i]) / (float64(row[0]) + float64(row[1]) + float64(row[2]))); got != want {
			t.Fatalf("row norm %d: got %v, want %v", i, got, want)
		}
	}
	got := run(2, byColumn)
	for j := range cols {
		sum, square := 0.0, 0.0
		for i := j; i < len(got); i += cols {
			sum += float64(got[i])
			square += float64(got[i]) * float64(got[i])
		}
		if mean, variance := sum/rows, square/rows; math.Abs(mean) > 1e-6 || math.Abs(variance-1) > 1e-6 {
			t.Errorf("column %d: mean %v, variance %v", j, mean, variance)
		}
	}
	if zero, bad := normaliseRows([]float32{1e38, 1, -1e38, 1, 1, 1}, 3, 1); zero != 1 || bad >= 0 {
		t.Errorf("a row that cancels: got zero %d, bad %d", zero, bad)
	}
	if _, bad := normaliseRows([]float32{1, 1, 1, 1e20, -1e20, 1e-30}, 3, 1); bad != 1 {
		t.Errorf("a row divided by almost nothing: got bad %d, want 1", bad)
	}
}

// Features and targets too small for float32 are counted, in every kind of table.
func TestSmallFeatures(t *testing.T) {
	edges := writeFile(t, "e.csv", "src,dst\n0,1\n")
	x := []float64{1e-50, 0, math.Copysign(0, -1), -1e-60}
	head := "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"
	for _, c := range []struct {
		name string
		opt  Options
		want string // "" for none
	}{
		{"none", Options{Features: writeFile(t, "f.csv", "id,a\n0,1e-40\n1,0e9\n")}, ""},
		{"dense", Options{Features: writeFile(t, "f.csv", "id,a\n0,1e-50\n1,-1e-50\n")}, "f.csv: 2 features other than 0 but too small for float32: read as 0"},
		{"of nodes", Options{Nodes: writeFile(t, "n.csv", "id,f0\n0,1e-50\n1,0\n")}, "n.csv: 1 feature other than 0"},
		{"sparse", Options{Features: writeFile(t, "f.csv", "node,feature,value\n0,0,1e-50\n1,0,2\n")}, "f.csv: 1 feature other than 0"},
		{"array", Options{Features: writeFile(t, "f.npy", string(npyBytes(1, head, x)))}, "f.npy: 2 features other than 0"},
		{"columns", Options{Features: writeFile(t, "f.parquet", string(writeColumnar(t, "parquet", floatRecord("id,a", []float64{0, 1e-50}, []float64{1, 0}), 1)))}, "f.parquet: 1 feature other than 0"},
		{"targets", Options{Labels: writeFile(t, "l.csv", "id,y\n0,1e-50\n1,1\n"), Task: snapshot.TaskRegression}, "l.csv: 1 target other than 0"},
	} {
		c.opt.Edges = []string{edges}
		_, report := mustRead(t, c.opt)
		if got := strings.Join(report.Notices, "; "); !strings.Contains(got, c.want) || c.want == "" && strings.Contains(got, "too small") {
			t.Errorf("%s: notices %q, want %q", c.name, got, c.want)
		}
	}
	x[1] = 1e39
	wantError(t, Options{Edges: []string{edges}, Features: writeFile(t, "f.npy", string(npyBytes(1, head, x)))}, "f.npy", 0, "row 0, column 1 (from 0): 1e+39 is not a finite float32")
}
