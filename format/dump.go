package format

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

const (
	dumpLine = 16 // bytes a line
	dumpHead = 4  // lines of a long section that are shown at its start
	dumpTail = 1  // and at its end
)

// Dump writes f as annotated lines: offset in the file, bytes, meaning. Every byte is
// accounted for; the middle of long sections and runs of zeros are counted instead of
// shown. It stops with an error where a record's head doesn't parse; contents need not
// pass Verify.
func Dump(w io.Writer, f *File) error {
	d := &dumper{w: bufio.NewWriter(w), file: f}
	if err := Guard(f.Name(), d.run); err != nil {
		d.w.Flush()
		return err
	}
	return d.w.Flush()
}

type dumper struct {
	w      *bufio.Writer
	file   *File
	offset uint64 // of the next byte to show
}

func (d *dumper) run() error {
	f := d.file
	fmt.Fprintf(d.w, "%s: %s, %s, %d bytes\n", f.Name(), f.Header.Kind, count(len(f.Records), "record"), f.SizeBytes())
	d.header()
	for i := range f.Records {
		d.tableEntry(i)
	}
	for i, e := range f.Records {
		d.zeros(e.Offset-d.offset, "padding")
		r, err := f.Record(i)
		if err != nil {
			return err
		}
		d.record(i, r)
	}
	return nil
}

func (d *dumper) header() {
	le, b := binary.LittleEndian, d.file.data
	d.title("header")
	d.field(8, "magic")
	d.field(2, "version %d", le.Uint16(b[8:]))
	d.field(2, "kind %s", d.file.Header.Kind)
	d.field(4, "byte-order mark 0x%08X", le.Uint32(b[12:]))
	d.field(8, "required features %#x", d.file.Header.Required)
	d.field(8, "optional features %#x", d.file.Header.Optional)
	d.field(32, "snapshot id")
	d.field(32, "set key")
	d.field(8, "size %d", le.Uint64(b[96:]))
	d.field(4, "shard %d", d.file.Header.Shard)
	d.field(4, "records %d", len(d.file.Records))
	d.field(4, "table CRC %08x", le.Uint32(b[112:]))
	d.field(8, "reserved")
	d.field(4, "header CRC %08x", le.Uint32(b[124:]))
}

func (d *dumper) tableEntry(i int) {
	e := d.file.Records[i]
	d.title("record table, entry %d", i)
	d.field(8, "offset %d", e.Offset)
	d.field(8, "size %d", e.SizeBytes)
	d.field(4, "number %d", e.Number)
	d.field(4, "variant %d", e.Variant)
	d.field(4, "head CRC %08x", e.HeadCRC)
	d.field(4, "reserved")
}

func (d *dumper) record(i int, r *Record) {
	d.title("record %d", i)
	d.field(4, "mark PLFB")
	d.field(2, "task %s", r.Task)
	d.field(1, "split %s", r.Split)
	d.field(1, "space %s", r.Space)
	d.field(4, "number %d", r.Number)
	d.field(4, "variant %d", r.Variant)
	d.field(2, "layers %d", r.NumLayers)
	d.field(2, "hops %d", len(r.HopNodes))
	d.field(4, "sections %d", len(r.Sections))
	d.field(8, "dst start %d", r.DstStart)
	d.field(8, "dst end %d", r.DstEnd)
	d.field(8, "seeds %d", r.NumSeeds)
	d.field(4, "split column %s", orAll(uint64(r.SplitColumn), uint64(AnySplit)))
	d.field(12, "reserved")
	for h, n := range r.HopNodes {
		d.field(8, "nodes to hop %d: %d", h, n)
	}
	for k, n := range r.LayerEdges {
		d.field(8, "edges of layer %d, hop %d: %d", k/len(r.HopNodes), k%len(r.HopNodes), n)
	}
	for k := range r.Sections {
		d.entry(k, &r.Sections[k])
	}
	start := d.file.Records[i].Offset
	for k := range r.Sections {
		s := &r.Sections[k]
		d.zeros(start+s.Offset-d.offset, "padding")
		d.title("record %d, section %d: %s", i, k, describe(s))
		d.section(s)
	}
}

func (d *dumper) entry(k int, s *Section) {
	d.title("section entry %d: %s", k, describe(s))
	d.field(2, "kind %s", s.Kind)
	d.field(2, "layer %s", orAll(uint64(s.Layer), uint64(AnyLayer)))
	d.field(2, "coef %s", s.Coef)
	d.field(1, "dtype %s", s.DType)
	d.field(1, "codec %s", s.Codec)
	for dim := range 3 {
		if dim < len(s.Shape) {
			d.field(8, "shape %d", s.Shape[dim])
		} else {
			d.field(8, "no dimension")
		}
	}
	d.field(8, "offset %d", s.Offset)
	d.field(8, "stored %d", s.SizeBytes)
	d.field(8, "plain %d", s.PlainBytes)
	d.field(4, "CRC %08x", s.CRC)
	d.field(4, "rank %d", len(s.Shape))
	d.field(32, "nonce, tag, reserved")
}

// describe is a section in one line: "coef.edge gcn of layer 0, f32 [3]".
func describe(s *Section) string {
	shape := strings.ReplaceAll(strings.Trim(fmt.Sprint(s.Shape), "[]"), " ", ",")
	text := fmt.Sprintf("%s, %s [%s]", s.name(), s.DType, shape)
	if s.Codec != CodecRaw {
		text += ", codec " + s.Codec.String()
	}
	return text
}

func (d *dumper) section(s *Section) {
	if s.Codec != CodecBits {
		d.array("", s.DType, s.data)
		return
	}
	n := s.NumElements()
	numBases := numBitsBlocks(n) * s.DType.SizeBytes() // bases and widths are there, or the head wouldn't have parsed
	numWidths := bitsDirectoryBytes(n, s.DType.SizeBytes())
	d.array("base", s.DType, s.data[:numBases])
	d.array("width", U8, s.data[numBases:numWidths])
	d.array("bits", U8, s.data[numWidths:])
}

// array shows the elements of b, with their places behind the name.
func (d *dumper) array(name string, t DType, b []byte) {
	all, size, first := uint64(len(b)), t.SizeBytes(), uint64(0)
	numLines := (all + dumpLine - 1) / dumpLine
	for line := uint64(0); line < numLines; line++ {
		if line == dumpHead && numLines > dumpHead+dumpTail+1 {
			skip := numLines - dumpHead - dumpTail
			fmt.Fprintf(d.w, "........  %d bytes\n", skip*dumpLine)
			d.offset, first, line = d.offset+skip*dumpLine, first+skip*dumpLine/size, line+skip
		}
		part := b[line*dumpLine : min((line+1)*dumpLine, all)]
		d.field(uint64(len(part)), "%s[%d] %s", name, first, elements(t, part))
		first += uint64(len(part)) / size
	}
}

// elements gives the numbers in b, separated by blanks.
func elements(t DType, b []byte) string {
	le, words := binary.LittleEndian, []string(nil)
	for c := range slices.Chunk(b, int(t.SizeBytes())) {
		var word any
		switch t {
		case U8:
			word = c[0]
		case I8:
			word = int8(c[0])
		case I16:
			word = int16(le.Uint16(c))
		case U16:
			word = le.Uint16(c)
		case F16, BF16:
			word = fmt.Sprintf("%04x", le.Uint16(c))
		case I32:
			word = int32(le.Uint32(c))
		case U32:
			word = le.Uint32(c)
		case F32:
			word = math.Float32frombits(le.Uint32(c))
		case I64:
			word = int64(le.Uint64(c))
		case U64:
			word = le.Uint64(c)
		case F64:
			word = math.Float64frombits(le.Uint64(c))
		}
		words = append(words, fmt.Sprint(word))
	}
	return strings.Join(words, " ")
}

func (d *dumper) title(format string, args ...any) {
	fmt.Fprintf(d.w, "\n# "+format+"\n", args...)
}

// field shows the next n bytes; the meaning stands in their first line.
func (d *dumper) field(n uint64, format string, args ...any) {
	b := d.file.data[d.offset : d.offset+n]
	if n > dumpLine && allZero(b) {
		d.zeros(n, format)
		return
	}
	meaning := "  " + fmt.Sprintf(format, args...)
	for c := range slices.Chunk([]byte(b), dumpLine) {
		fmt.Fprintln(d.w, strings.TrimRight(fmt.Sprintf("%08x  %-*s%s", d.offset, 3*dumpLine-1, fmt.Sprintf("% x", c), meaning), " "))
		d.offset += uint64(len(c))
		meaning = ""
	}
}

// zeros shows the next n bytes as a run. They are zero, or padding that Verify refuses.
func (d *dumper) zeros(n uint64, meaning string) {
	if n == 0 {
		return
	}
	b := d.file.data[d.offset : d.offset+n]
	run := fmt.Sprintf("00 * %d", n)
	if !allZero(b) {
		run = fmt.Sprintf("%d bytes, not all zero", n)
	}
	fmt.Fprintf(d.w, "%08x  %-*s  %s\n", d.offset, 3*dumpLine-1, run, meaning)
	d.offset += n
}

func orAll(n, all uint64) string {
	if n == all {
		return "all"
	}
	return fmt.Sprint(n)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
