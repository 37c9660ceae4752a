package ingest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/schema"
)

var parquetMagic = []byte("PAR1")

// maxAlloc is the most memory that a columnar file of that size may have a decoder allocate at once. Pages are about
// 1 MiB in files as written; what compresses better than 64 to 1 is small.
func maxAlloc(sizeBytes int64) int64 { return 64<<20 + min(64*sizeBytes, 1<<30) }

// limitAllocator panics above its limit; the panic is caught where the decoder is called.
type limitAllocator struct {
	memory.Allocator
	limit int64
}

func newLimitAllocator(sizeBytes int64) limitAllocator {
	return limitAllocator{memory.NewGoAllocator(), maxAlloc(sizeBytes)}
}

func (l limitAllocator) check(size int) {
	if int64(size) > l.limit || size < 0 {
		panic(fmt.Sprintf("asks for %d bytes of memory", size))
	}
}

func (l limitAllocator) Allocate(size int) []byte {
	l.check(size)
	return l.Allocator.Allocate(size)
}

func (l limitAllocator) Reallocate(size int, b []byte) []byte {
	l.check(size)
	return l.Allocator.Reallocate(size, b)
}

// guard calls f and turns its errors and panics into Errors about the file.
func guard(name, what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			e := &Error{File: name, Msg: "is not readable " + what, Hint: "the file is damaged"}
			if _, bug := p.(runtime.Error); !bug { // whose words are of no use
				e.Msg += ": " + cut(fmt.Sprint(p))
			}
			err = e
		}
	}()
	err = f()
	if e := (*Error)(nil); errors.As(err, &e) && e.File == "" {
		e.File = name
		return e
	}
	if e := (*Error)(nil); err == nil || err == io.EOF || errors.As(err, &e) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{File: name, Msg: fmt.Sprintf("is not readable %s: %s", what, cut(err.Error())), Hint: "the file is damaged"}
}

// cut makes a message of a library one short line.
func cut(msg string) string {
	q := fmt.Sprintf("%q", msg[:min(len(msg), 200)])
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// openParquet opens a Parquet file as a table.
func openParquet(ctx context.Context, opt *Options, path, role string) (*table, error) {
	return openColumnar(ctx, opt, path, role, FormatParquet, func(f *os.File, name string, size int64) (columnReader, []columnInfo, error) {
		return newParquetReader(f, name, size, opt.Threads)
	})
}

// openColumnar opens a table that open reads.
func openColumnar(ctx context.Context, opt *Options, path, role, format string, open func(f *os.File, name string, size int64) (columnReader, []columnInfo, error)) (*table, error) {
	f, size, err := openRegular(path, opt.nameOf(path))
	if err != nil {
		return nil, err
	}
	if bare := strings.ToLower(filepath.Ext(path)); bare == ".gz" || bare == ".zst" {
		f.Close()
		return nil, &Error{File: opt.nameOf(path), Msg: "is compressed: Parquet and Arrow files are read as they are", Hint: "unpack it first; they compress inside"}
	}
	t := newSourceTable(opt, path, role, format, nil, true, nil)
	var reader columnReader
	var cols []columnInfo
	err = guard(t.in.name, format, func() error {
		var err error
		reader, cols, err = open(f, t.in.name, size)
		return err
	})
	if err != nil {
		f.Close()
		return nil, err
	}
	src, names, err := newColumnarSource(ctx, t.in.name, cols, reader)
	if err != nil {
		reader.close()
		return nil, err
	}
	if len(names) == 0 { // every row has a field: what reads tables relies on it
		reader.close()
		return nil, &Error{File: t.in.name, Msg: "has no columns with values"}
	}
	t.src, t.names, t.width = src, names, len(names)
	if role != roleEdges && role != roleNodes && find(names, idNames) < 0 && find(names, []string{opt.IDCol}) < 0 && !byNumber(opt.IDCol) {
		t.numbered = true
	}
	return t, nil
}

// byNumber reports whether a column option is a number.
func byNumber(spec string) bool { return spec != "" && !byName(spec) }

// parquetReader reads the columns of a Parquet file, one row group after the other, its columns at the same time. The
// library runs on goroutines of ours only, so that a panic of its decoder can be caught.
type parquetReader struct {
	f       *os.File
	name    string
	size    int64
	threads int
	pf      *file.Reader
	infos   []columnInfo
	leafs   []parquetLeaf
	group   int   // row groups begun
	left    int64 // rows left of the row group
}

// parquetLeaf is a leaf column and its reader in the current row group.
type parquetLeaf struct {
	index          int // in the schema
	maxDef, maxRep int16
	present        int16 // least definition level at which a list has a value, perhaps null
	chunk          file.ColumnChunkReader
	def, rep       []int16 // levels read
	values         columnValues
	at, valueAt    int  // levels and values taken
	nulls          bool // some of the levels read have no value
}

func newParquetReader(f *os.File, name string, size int64, threads int) (columnReader, []columnInfo, error) {
	if err := checkFooter(f, name, size); err != nil {
		return nil, nil, err
	}
	props := parquet.NewReaderProperties(newLimitAllocator(size))
	props.BufferedStreamEnabled = true
	pf, err := file.NewParquetReader(f, file.WithReadProps(props))
	if err != nil {
		return nil, nil, err
	}
	p := &parquetReader{f: f, name: name, size: size, threads: threads, pf: pf}
	s := pf.MetaData().Schema
	lists := map[string]int{} // leafs under each repeated top-level column
	for i := range s.NumColumns() {
		if col := s.Column(i); col.MaxRepetitionLevel() > 0 {
			lists[col.ColumnPath()[0]]++
		}
	}
	for i := range s.NumColumns() {
		col := s.Column(i)
		leaf := parquetLeaf{index: i, maxDef: col.MaxDefinitionLevel(), maxRep: col.MaxRepetitionLevel()}
		leaf.present = leaf.maxDef
		if col.SchemaNode().RepetitionType() == parquet.Repetitions.Optional {
			leaf.present--
		}
		info := columnInfo{name: col.Path(), typeName: col.PhysicalType().String(), kind: parquetKind(col), single: col.PhysicalType() == parquet.Types.Float}
		if leaf.maxRep > 0 {
			info.list = true
			if leaf.maxRep == 1 && lists[col.ColumnPath()[0]] == 1 {
				info.name = col.ColumnPath()[0]
			} else {
				info.kind, info.typeName = columnOther, "nested list"
			}
		}
		p.infos, p.leafs = append(p.infos, info), append(p.leafs, leaf)
	}
	return p, p.infos, nil
}

// parquetKind tells how a column is read.
func parquetKind(col *schema.Column) columnKind {
	if _, ok := col.LogicalType().(*schema.DecimalLogicalType); ok || col.ConvertedType() == schema.ConvertedTypes.Decimal {
		return columnOther
	}
	switch col.PhysicalType() {
	case parquet.Types.Int32, parquet.Types.Int64:
		if l, ok := col.LogicalType().(*schema.IntLogicalType); ok && !l.IsSigned() {
			return columnUint
		}
		return columnInt
	case parquet.Types.Float, parquet.Types.Double:
		return columnFloat
	case parquet.Types.Boolean:
		return columnBool
	case parquet.Types.ByteArray:
		return columnText
	}
	return columnOther
}

func (p *parquetReader) numRows() int64 { return p.pf.NumRows() }

func (p *parquetReader) close() { p.f.Close() }

// parquetRows is how many rows are decoded at a time. read takes more, so that its goroutines have something to do, but
// not more values than parquetValues.
const (
	parquetRows   = 1 << 12
	parquetValues = 1 << 17
)

func (p *parquetReader) read(ctx context.Context, used []bool, values []columnValues) (rows int, err error) {
	var wanted []int
	lists := false
	for i := range p.leafs {
		if used[i] {
			wanted = append(wanted, i)
			lists = lists || p.infos[i].list
		}
	}
	err = guard(p.name, FormatParquet, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		for p.left == 0 {
			if p.group == p.pf.NumRowGroups() {
				return io.EOF
			}
			if err := p.openGroup(used); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	rows = parquetRows
	if !lists {
		rows = max(rows, parquetValues/max(1, len(wanted)))
	}
	rows = int(min(p.left, int64(rows)))
	p.left -= int64(rows)
	errs := make([]error, len(wanted))
	parallelEach(len(wanted), p.threads, func(k int) {
		i := wanted[k]
		errs[k] = guard(p.name, FormatParquet, func() error {
			if err := p.leafs[i].take(&values[i], p.infos[i], rows); err != nil {
				return fmt.Errorf("column %s: %w", quote(p.infos[i].name), err)
			}
			return nil
		})
	})
	return rows, cmp.Or(errs...)
}

// maxPageHeader is the most bytes a page header may take, its statistics included.
const maxPageHeader = 1 << 18

// openGroup opens the columns of the next row group.
func (p *parquetReader) openGroup(used []bool) error {
	group := p.pf.RowGroup(p.group)
	p.group++
	p.left = group.NumRows()
	if p.left < 0 {
		return fmt.Errorf("row group with %d rows", p.left)
	}
	if p.left == 0 { // its columns may have no pages, and so no place
		return nil
	}
	for i := range p.leafs {
		l := &p.leafs[i]
		l.def, l.rep, l.at, l.valueAt, l.chunk = l.def[:0], l.rep[:0], 0, 0, nil
		l.values.reset()
		if !used[i] {
			continue
		}
		meta, err := group.MetaData().ColumnChunk(l.index)
		if err != nil {
			return err
		}
		if meta.CryptoMetadata() != nil {
			return errors.New("encrypted columns are not read")
		}
		if _, err := compress.GetCodec(meta.Compression()); err != nil {
			return &Error{File: p.name, Msg: fmt.Sprintf("column %s is compressed with %s, which is not read", quote(p.infos[i].name), codecName(meta.Compression())),
				Hint: "write it with zstd, snappy or gzip"}
		}
		start := meta.DataPageOffset()
		if d := meta.DictionaryPageOffset(); meta.HasDictionaryPage() && d > 0 {
			start = min(start, d)
		}
		if err := checkPages(p.f, start, meta.TotalCompressedSize(), p.size); err != nil {
			return err
		}
		// A stream of our own: the library's gives bytes behind the end of the column for ever, and a damaged page
		// header then makes it look for the next page for ever. Reading ends by the number of values.
		stream := bufio.NewReaderSize(io.NewSectionReader(p.f, start, p.size-start), maxPageHeader)
		pages, err := file.NewPageReader(stream, meta.NumValues(), meta.Compression(), newLimitAllocator(p.size), nil)
		if err != nil {
			return err
		}
		pages = &checkedPages{PageReader: pages, maxDef: l.maxDef, maxRep: l.maxRep, limit: maxAlloc(p.size)}
		l.chunk = file.NewColumnReader(p.pf.MetaData().Schema.Column(l.index), pages, newLimitAllocator(p.size), p.pf.BufferPool())
	}
	return nil
}

// codecName is the Parquet format's name of a codec (parquet.thrift, CompressionCodec), of which the library lacks the last.
func codecName(codec compress.Compression) string {
	names := []string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}
	if codec >= 0 && int(codec) < len(names) {
		return names[codec]
	}
	return fmt.Sprintf("codec %d", int32(codec))
}

// take moves the values of the next rows to out.
func (l *parquetLeaf) take(out *columnValues, info columnInfo, rows int) error {
	for rows > 0 && l.maxRep == 0 && info.kind == columnInt { // runs without a null, all at once
		if l.at == len(l.def) {
			if more, err := l.fill(info.kind); err != nil {
				return err
			} else if !more {
				return errors.New("ends before its row group")
			}
		}
		n := min(rows, len(l.def)-l.at)
		if l.nulls {
			break
		}
		out.ints = append(out.ints, l.values.ints[l.valueAt:l.valueAt+n]...)
		out.null = append(out.null, make([]bool, n)...)
		l.at, l.valueAt, rows = l.at+n, l.valueAt+n, rows-n
	}
	for range rows {
		if info.list {
			out.starts = append(out.starts, len(out.null))
		}
		for first := true; ; first = false {
			if l.at == len(l.def) {
				more, err := l.fill(info.kind)
				if err != nil {
					return err
				}
				if !more {
					if first {
						return errors.New("ends before its row group")
					}
					break
				}
			}
			if !first && (l.maxRep == 0 || l.rep[l.at] == 0) {
				break
			}
			def := l.def[l.at]
			l.at++
			switch {
			case def == l.maxDef:
				out.moveValue(&l.values, info.kind, l.valueAt)
				l.valueAt++
			case !info.list || def >= l.present:
				out.addNull(info.kind)
			}
			if l.maxRep == 0 {
				break
			}
		}
	}
	if info.list {
		out.starts = append(out.starts, len(out.null))
	}
	return nil
}

// moveValue appends value i of v.
func (v *columnValues) moveValue(from *columnValues, kind columnKind, i int) {
	switch kind {
	case columnFloat:
		v.floats = append(v.floats, from.floats[i])
	case columnText:
		start := 0
		if i > 0 {
			start = from.ends[i-1]
		}
		v.addText(from.text[start:from.ends[i]])
	default:
		v.ints = append(v.ints, from.ints[i])
	}
	v.null = append(v.null, false)
}

// maxEmptyPages ends reading of a damaged column whose pages never bring a value, which the
// library would go on with for ever.
const maxEmptyPages = 1 << 10

// fill reads more levels and values; all before are taken.
func (l *parquetLeaf) fill(kind columnKind) (bool, error) {
	const n = parquetRows
	l.def, l.rep = slices.Grow(l.def[:0], n)[:n], slices.Grow(l.rep[:0], n)[:n]
	l.values.reset()
	l.at, l.valueAt = 0, 0
	var total int64
	var err error
	v := &l.values
	for empty := 0; total == 0 && err == nil && l.chunk.HasNext(); empty++ {
		if empty == maxEmptyPages {
			return false, errors.New("has page after page without values")
		}
		switch c := l.chunk.(type) {
		case *file.Int32ColumnChunkReader:
			buf := make([]int32, n)
			var got int
			total, got, err = c.ReadBatch(n, buf, l.def, l.rep)
			for _, x := range buf[:got] {
				if kind == columnUint {
					v.ints = append(v.ints, int64(uint32(x)))
				} else {
					v.ints = append(v.ints, int64(x))
				}
			}
		case *file.Int64ColumnChunkReader:
			v.ints = slices.Grow(v.ints[:0], n)[:n]
			var got int
			total, got, err = c.ReadBatch(n, v.ints, l.def, l.rep)
			v.ints = v.ints[:got]
		case *file.Float32ColumnChunkReader:
			buf := make([]float32, n)
			var got int
			total, got, err = c.ReadBatch(n, buf, l.def, l.rep)
			for _, x := range buf[:got] {
				v.floats = append(v.floats, float64(x))
			}
		case *file.Float64ColumnChunkReader:
			v.floats = slices.Grow(v.floats[:0], n)[:n]
			var got int
			total, got, err = c.ReadBatch(n, v.floats, l.def, l.rep)
			v.floats = v.floats[:got]
		case *file.BooleanColumnChunkReader:
			buf := make([]bool, n)
			var got int
			total, got, err = c.ReadBatch(n, buf, l.def, l.rep)
			for _, x := range buf[:got] {
				bit := int64(0)
				if x {
					bit = 1
				}
				v.ints = append(v.ints, bit)
			}
		case *file.ByteArrayColumnChunkReader:
			buf := make([]parquet.ByteArray, n)
			var got int
			total, got, err = c.ReadBatch(n, buf, l.def, l.rep)
			for _, x := range buf[:got] {
				v.addText(x)
			}
		default:
			return false, fmt.Errorf("a column of the type %T", c)
		}
	}
	if err == nil {
		err = l.chunk.Err()
	}
	if l.maxDef == 0 {
		clear(l.def)
	}
	l.def, l.rep = l.def[:total], l.rep[:total]
	l.nulls = slices.ContainsFunc(l.def, func(d int16) bool { return d != l.maxDef })
	return total > 0, err
}

// checkFooter walks the footer before the Parquet library reads it, since that allocates lists by the counts it finds.
func checkFooter(f *os.File, name string, size int64) error {
	fault := func(msg string) error { return &Error{File: name, Msg: msg, Hint: "the file is cut or damaged"} }
	var tail [8]byte
	if size < 12 {
		return fault("is too short for a Parquet file")
	}
	if _, err := f.ReadAt(tail[:], size-8); err != nil {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	switch {
	case string(tail[4:]) == "PARE":
		return &Error{File: name, Msg: "is an encrypted Parquet file"}
	case string(tail[4:]) != string(parquetMagic):
		return fault("has no Parquet footer at its end")
	case length > size-12:
		return fault(fmt.Sprintf("has a Parquet footer of %d bytes in %d", length, size))
	}
	text := make([]byte, length)
	if _, err := f.ReadAt(text, size-8-length); err != nil {
		return err
	}
	w := &thriftWalker{b: text}
	if err := w.structure(0, nil); err != nil {
		return fault("has a damaged Parquet footer")
	}
	return nil
}

// checkPages walks the page headers of a column chunk of length bytes at start: each page must lie in the chunk and
// decode to no more than maxAlloc.
func checkPages(f io.ReaderAt, start, length, size int64) error {
	if start < 4 || length < 0 || start > size || length > size-start {
		return fmt.Errorf("column of %d bytes at %d in a file of %d", length, start, size)
	}
	const window = 1 << 16
	buf := make([]byte, window)
	for at, end := start, start+length; at < end; {
		head := buf[:min(window, size-at)] // some old files count without the dictionary's header
		if _, err := f.ReadAt(head, at); err != nil && err != io.EOF {
			return err
		}
		var plain, packed, dictValues int64 = -1, -1, 0
		w := &thriftWalker{b: head}
		err := w.structure(0, func(path []int16, v int64) {
			switch {
			case len(path) == 1 && path[0] == 2:
				plain = v
			case len(path) == 1 && path[0] == 3:
				packed = v
			case len(path) == 2 && path[0] == 7 && path[1] == 1:
				dictValues = v
			}
		})
		switch {
		case err != nil:
			return fmt.Errorf("page header at byte %d is damaged", at)
		case plain < 0 || plain > maxAlloc(size) || packed < 0 || packed > size-at:
			return fmt.Errorf("page at byte %d claims %d bytes in %d", at, plain, packed)
		case dictValues < 0 || dictValues > plain:
			return fmt.Errorf("dictionary at byte %d claims %d values in %d bytes", at, dictValues, plain)
		}
		at += int64(w.at) + packed
	}
	return nil
}

// thriftWalker walks a value of Thrift's compact protocol without keeping it.
type thriftWalker struct {
	b    []byte
	at   int
	path []int16
}

var errThrift = errors.New("damaged Thrift structure")

// maxThriftDepth is deeper than any Parquet structure.
const maxThriftDepth = 32

func (w *thriftWalker) varint() (uint64, error) {
	v, n := binary.Uvarint(w.b[w.at:])
	if n <= 0 {
		return 0, errThrift
	}
	w.at += n
	return v, nil
}

func (w *thriftWalker) byte() (byte, error) {
	if w.at >= len(w.b) {
		return 0, errThrift
	}
	w.at++
	return w.b[w.at-1], nil
}

// structure walks a structure; f gets the field path and value of each integer in it.
func (w *thriftWalker) structure(depth int, f func(path []int16, v int64)) error {
	if depth > maxThriftDepth {
		return errThrift
	}
	id := int16(0)
	for {
		head, err := w.byte()
		if err != nil {
			return err
		}
		if head == 0 {
			return nil
		}
		if delta := int16(head >> 4); delta != 0 {
			id += delta
		} else {
			v, err := w.varint()
			if err != nil {
				return err
			}
			id = int16(unzigzag(v))
		}
		w.path = append(w.path, id)
		if err := w.value(head&15, depth, f); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
	}
}

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// value walks a value of a compact type. Booleans in structures have no bytes.
func (w *thriftWalker) value(kind byte, depth int, f func(path []int16, v int64)) error {
	switch kind {
	case 1, 2: // true, false
		return nil
	case 3: // byte
		_, err := w.byte()
		return err
	case 4, 5, 6: // i16, i32, i64
		v, err := w.varint()
		if err == nil && f != nil {
			f(w.path, unzigzag(v))
		}
		return err
	case 7: // double
		return w.skip(8)
	case 8: // binary
		n, err := w.varint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case 9, 10: // list, set
		head, err := w.byte()
		if err != nil {
			return err
		}
		count, item := uint64(head>>4), head&15
		if count == 15 {
			if count, err = w.varint(); err != nil {
				return err
			}
		}
		if count > uint64(len(w.b)-w.at) || depth >= maxThriftDepth {
			return errThrift
		}
		for range count {
			if item <= 2 {
				_, err = w.byte()
			} else {
				err = w.value(item, depth+1, nil)
			}
			if err != nil {
				return err
			}
		}
		return nil
	case 12:
		return w.structure(depth+1, f)
	}
	return errThrift // maps occur nowhere in Parquet
}

func (w *thriftWalker) skip(n uint64) error {
	if n > uint64(len(w.b)-w.at) {
		return errThrift
	}
	w.at += int(n)
	return nil
}
