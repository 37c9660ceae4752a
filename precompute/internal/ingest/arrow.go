package ingest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

var (
	arrowMagic    = []byte("ARROW1")
	arrowContinue = []byte{0xff, 0xff, 0xff, 0xff}
)

// openArrow opens an Arrow IPC file or stream as a table.
func openArrow(ctx context.Context, opt *Options, path, role string) (*table, error) {
	return openColumnar(ctx, opt, path, role, FormatArrow, newArrowReader)
}

// arrowReader reads the record batches of an Arrow IPC file or stream.
type arrowReader struct {
	f      *os.File
	name   string
	size   int64
	stream *ipc.Reader
	file   *ipc.FileReader
	infos  []columnInfo
	at     int // batches of file read
	rec    arrow.Record
	row    int // rows of rec taken
}

func newArrowReader(f *os.File, name string, size int64) (columnReader, []columnInfo, error) {
	a := &arrowReader{f: f, name: name, size: size}
	var head [8]byte
	if n, err := f.ReadAt(head[:], 0); err != nil && err != io.EOF {
		return nil, nil, err
	} else if n < 8 {
		return nil, nil, &Error{File: name, Msg: "is too short for an Arrow file", Hint: "the file is cut or damaged"}
	}
	var s *arrow.Schema
	alloc := ipc.WithAllocator(newLimitAllocator(size))
	if bytes.HasPrefix(head[:], arrowMagic) {
		if err := checkArrowFile(f, size); err != nil {
			return nil, nil, err
		}
		r, err := ipc.NewFileReader(f, alloc)
		if err != nil {
			return nil, nil, err
		}
		a.file, s = r, r.Schema()
	} else {
		if err := checkArrowStream(f, size); err != nil {
			return nil, nil, err
		}
		r, err := ipc.NewReader(io.NewSectionReader(f, 0, size), alloc)
		if err != nil {
			return nil, nil, err
		}
		a.stream, s = r, r.Schema()
	}
	for _, field := range s.Fields() {
		info := columnInfo{name: field.Name, typeName: field.Type.String(), kind: arrowKind(field.Type)}
		if l, ok := field.Type.(arrow.ListLikeType); ok && info.kind == columnOther {
			info.kind, info.list = arrowKind(l.Elem()), true
			if _, isMap := field.Type.(*arrow.MapType); isMap {
				info.kind = columnOther
			}
		}
		id := valueType(field.Type).ID()
		info.single = id == arrow.FLOAT16 || id == arrow.FLOAT32
		a.infos = append(a.infos, info)
	}
	return a, a.infos, nil
}

// valueType is the type of single values: of a list its elements', of a dictionary its words'.
func valueType(t arrow.DataType) arrow.DataType {
	switch of := t.(type) {
	case arrow.ListLikeType:
		return valueType(of.Elem())
	case *arrow.DictionaryType:
		return valueType(of.ValueType)
	}
	return t
}

// arrowKind tells how values of a type are read.
func arrowKind(t arrow.DataType) columnKind {
	switch t := t.(type) {
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type, *arrow.Date32Type, *arrow.Date64Type, *arrow.TimestampType:
		return columnInt
	case *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type:
		return columnUint
	case *arrow.Float16Type, *arrow.Float32Type, *arrow.Float64Type:
		return columnFloat
	case *arrow.BooleanType:
		return columnBool
	case *arrow.StringType, *arrow.LargeStringType, *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.FixedSizeBinaryType:
		return columnText
	case *arrow.NullType:
		return columnNull
	case *arrow.DictionaryType:
		if _, nested := t.ValueType.(*arrow.DictionaryType); !nested {
			return arrowKind(t.ValueType)
		}
	}
	return columnOther
}

func (a *arrowReader) numRows() int64 { return 0 }

func (a *arrowReader) close() { a.f.Close() }

func (a *arrowReader) read(ctx context.Context, used []bool, values []columnValues) (rows int, err error) {
	err = guard(a.name, FormatArrow, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		for a.rec == nil || int64(a.row) == a.rec.NumRows() {
			if err := a.nextRecord(); err != nil {
				return err
			}
		}
		rows = int(min(a.rec.NumRows()-int64(a.row), parquetRows))
		for i, info := range a.infos {
			if used[i] {
				takeArrow(&values[i], info, a.rec.Column(i), a.row, rows)
			}
		}
		a.row += rows
		return nil
	})
	return rows, err
}

func (a *arrowReader) nextRecord() error {
	a.row = 0
	if a.file != nil {
		if a.at == a.file.NumRecords() {
			return io.EOF
		}
		rec, err := a.file.Record(a.at)
		if err != nil {
			return err
		}
		a.at, a.rec = a.at+1, rec
	} else {
		if !a.stream.Next() {
			if err := a.stream.Err(); err != nil {
				return err
			}
			return io.EOF
		}
		a.rec = a.stream.Record()
	}
	// A column of nulls takes no bytes, so nothing else bounds the rows.
	if n := a.rec.NumRows(); n < 0 || n > 1<<20+8*maxAlloc(a.size) {
		return fmt.Errorf("record batch of %d rows in %d bytes", n, a.size)
	}
	for i, info := range a.infos {
		if c := a.rec.Column(i); int64(c.Len()) != a.rec.NumRows() {
			return fmt.Errorf("column %s has %d of %d rows", quote(info.name), c.Len(), a.rec.NumRows())
		}
	}
	return nil
}

// takeArrow appends rows of an array.
func takeArrow(out *columnValues, info columnInfo, a arrow.Array, from, rows int) {
	if !info.list {
		if ints, ok := a.(*array.Int64); ok && a.NullN() == 0 {
			out.ints = append(out.ints, ints.Int64Values()[from:from+rows]...)
			out.null = append(out.null, make([]bool, rows)...)
			return
		}
		for i := from; i < from+rows; i++ {
			out.addArrow(info.kind, a, i)
		}
		return
	}
	l := a.(array.ListLike)
	items := l.ListValues()
	for i := from; i < from+rows; i++ {
		out.starts = append(out.starts, len(out.null))
		if a.IsNull(i) {
			continue
		}
		start, end := l.ValueOffsets(i)
		for j := start; j < end; j++ {
			out.addArrow(info.kind, items, int(j))
		}
	}
	out.starts = append(out.starts, len(out.null))
}

// addArrow appends value i of an array.
func (v *columnValues) addArrow(kind columnKind, a arrow.Array, i int) {
	if a.IsNull(i) || kind == columnNull {
		v.addNull(kind)
		return
	}
	switch a := a.(type) {
	case *array.Int8:
		v.ints = append(v.ints, int64(a.Value(i)))
	case *array.Int16:
		v.ints = append(v.ints, int64(a.Value(i)))
	case *array.Int32:
		v.ints = append(v.ints, int64(a.Value(i)))
	case *array.Int64:
		v.ints = append(v.ints, a.Value(i))
	case *array.Date32:
		v.ints = append(v.ints, int64(a.Value(i)))
	case *array.Date64:
		v.ints = append(v.ints, int64(a.Value(i)))
	case *array.Timestamp:
		v.ints = append(v.ints, int64(a.Value(i)))
	case *array.Uint8:
		v.ints = append(v.ints, int64(a.Value(i)))
	case *array.Uint16:
		v.ints = append(v.ints, int64(a.Value(i)))
	case *array.Uint32:
		v.ints = append(v.ints, int64(a.Value(i)))
	case *array.Uint64:
		v.ints = append(v.ints, int64(a.Value(i)))
	case *array.Float16:
		v.floats = append(v.floats, float64(a.Value(i).Float32()))
	case *array.Float32:
		v.floats = append(v.floats, float64(a.Value(i)))
	case *array.Float64:
		v.floats = append(v.floats, a.Value(i))
	case *array.Boolean:
		bit := int64(0)
		if a.Value(i) {
			bit = 1
		}
		v.ints = append(v.ints, bit)
	case *array.String:
		v.addText([]byte(a.Value(i)))
	case *array.LargeString:
		v.addText([]byte(a.Value(i)))
	case *array.Binary:
		v.addText(a.Value(i))
	case *array.LargeBinary:
		v.addText(a.Value(i))
	case *array.FixedSizeBinary:
		v.addText(a.Value(i))
	case *array.Dictionary:
		v.addArrow(kind, a.Dictionary(), a.GetValueIndex(i))
		return
	default:
		panic(fmt.Sprintf("array of the type %T", a))
	}
	v.null = append(v.null, false)
}

// checkArrowFile checks that the blocks of the footer lie in the file, before the Arrow library allocates by them.
// The footer is a flatbuffer: table Footer { version, schema, dictionaries: [Block], recordBatches: [Block] }, struct
// Block { offset: long, metaDataLength: int, bodyLength: long }.
func checkArrowFile(f io.ReaderAt, size int64) error {
	var tail [10]byte
	if size < 20 {
		return errors.New("too short")
	}
	if _, err := f.ReadAt(tail[:], size-10); err != nil {
		return err
	}
	length := int64(int32(binary.LittleEndian.Uint32(tail[:])))
	if !bytes.Equal(tail[4:], arrowMagic) || length <= 0 || length > size-20 {
		return errors.New("no Arrow footer at the end")
	}
	b := make([]byte, length)
	if _, err := f.ReadAt(b, size-10-length); err != nil {
		return err
	}
	root := flatRoot(b)
	if schema, ok := root.table(footerSchema); ok {
		if err := schema.checkSchema(); err != nil {
			return err
		}
	}
	for _, slot := range [...]int{footerDictionaries, footerBatches} {
		at, count, err := root.vector(slot, 24)
		if err != nil {
			return err
		}
		for i := range count {
			block := b[at+24*i:]
			offset, meta, body := int64(binary.LittleEndian.Uint64(block)), int64(int32(binary.LittleEndian.Uint32(block[8:]))), int64(binary.LittleEndian.Uint64(block[16:]))
			if offset < 0 || meta < 8 || body < 0 || offset > size || meta > size-offset || body > size-offset-meta {
				return fmt.Errorf("block of %d and %d bytes at %d in a file of %d", meta, body, offset, size)
			}
		}
	}
	return nil
}

// checkArrowStream walks the messages of a stream and checks that each lies in the file.
func checkArrowStream(f io.ReaderAt, size int64) error {
	for at := int64(0); at < size; {
		var head [8]byte
		n, err := f.ReadAt(head[:], at)
		if err != nil && err != io.EOF {
			return err
		}
		length, meta := int64(int32(binary.LittleEndian.Uint32(head[:]))), at+4
		if bytes.Equal(head[:4], arrowContinue) {
			if n < 8 {
				return errors.New("the stream is cut")
			}
			length, meta = int64(int32(binary.LittleEndian.Uint32(head[4:]))), at+8
		}
		if length == 0 {
			return nil
		}
		if length < 8 || length > size-meta {
			return fmt.Errorf("message of %d bytes at %d in a stream of %d", length, at, size)
		}
		b := make([]byte, length)
		if _, err := f.ReadAt(b, meta); err != nil {
			return err
		}
		if m := flatRoot(b); m.field(messageType) != 0 && b[m.field(messageType)] == headerSchema {
			if schema, ok := m.table(messageHeader); ok {
				if err := schema.checkSchema(); err != nil {
					return err
				}
			}
		}
		body := ipc.NewMessage(memory.NewBufferBytes(b), memory.NewBufferBytes(nil)).BodyLen()
		if body < 0 || body > size-meta-length {
			return fmt.Errorf("message body of %d bytes at %d in a stream of %d", body, meta+length, size)
		}
		at = meta + length + body
	}
	return nil
}
