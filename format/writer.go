package format

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// SectionSpec is one array to be written.
type SectionSpec struct {
	Kind  Kind
	Layer uint16 // AnyLayer where it serves every layer, or none
	Coef  Coef
	DType DType
	Shape []uint64
	// Codec and StoredBytes say how Data or Write gives the array: CodecRaw, then StoredBytes isn't looked at, or
	// as Int32BitsSection makes it.
	Codec       Codec
	StoredBytes uint64
	// Data holds the elements, little-endian; Bytes views a slice so. Where it is nil,
	// Write must write exactly the section's bytes to w (for arrays that are streamed).
	Data  []byte
	Write func(w io.Writer) error
}

// storedBytes returns the size in the file, or an error where the shape overflows.
func (s *SectionSpec) storedBytes() (uint64, error) {
	plain, err := s.plainBytes()
	if s.Codec == CodecRaw {
		return plain, err
	}
	return s.StoredBytes, err
}

// plainBytes returns the size of the array, or an error where the shape overflows.
func (s *SectionSpec) plainBytes() (uint64, error) {
	if len(s.Shape) < 1 || len(s.Shape) > 3 {
		return 0, fmt.Errorf("format: %s has %d dimensions", s.Kind, len(s.Shape))
	}
	size := s.DType.SizeBytes()
	for _, n := range s.Shape {
		hi, lo := bits.Mul64(size, n)
		if hi != 0 || lo > 1<<62 {
			return 0, fmt.Errorf("format: %s of shape %v is too large", s.Kind, s.Shape)
		}
		size = lo
	}
	return size, nil
}

// Int32Section and its siblings describe a one-dimensional section that holds v; v must
// stay unchanged until it is written.
func Int32Section(kind Kind, layer uint16, v []int32) SectionSpec {
	return SectionSpec{Kind: kind, Layer: layer, DType: I32, Shape: []uint64{uint64(len(v))}, Data: dataOf(v)}
}

// Int64Section is Int32Section for i64.
func Int64Section(kind Kind, layer uint16, v []int64) SectionSpec {
	return SectionSpec{Kind: kind, Layer: layer, DType: I64, Shape: []uint64{uint64(len(v))}, Data: dataOf(v)}
}

// Uint64Section is Int32Section for u64.
func Uint64Section(kind Kind, layer uint16, v []uint64) SectionSpec {
	return SectionSpec{Kind: kind, Layer: layer, DType: U64, Shape: []uint64{uint64(len(v))}, Data: dataOf(v)}
}

// Uint8Section is Int32Section for u8.
func Uint8Section(kind Kind, layer uint16, v []uint8) SectionSpec {
	return SectionSpec{Kind: kind, Layer: layer, DType: U8, Shape: []uint64{uint64(len(v))}, Data: dataOf(v)}
}

// Uint16Section is Int32Section for u16.
func Uint16Section(kind Kind, layer uint16, v []uint16) SectionSpec {
	return SectionSpec{Kind: kind, Layer: layer, DType: U16, Shape: []uint64{uint64(len(v))}, Data: dataOf(v)}
}

// Uint32Section is Int32Section for u32.
func Uint32Section(kind Kind, layer uint16, v []uint32) SectionSpec {
	return SectionSpec{Kind: kind, Layer: layer, DType: U32, Shape: []uint64{uint64(len(v))}, Data: dataOf(v)}
}

// Float64Section is Int32Section for f64.
func Float64Section(kind Kind, layer uint16, v []float64) SectionSpec {
	return SectionSpec{Kind: kind, Layer: layer, DType: F64, Shape: []uint64{uint64(len(v))}, Data: dataOf(v)}
}

// Float32Section is Int32Section for f32, with a coefficient kind for coef sections.
func Float32Section(kind Kind, layer uint16, coef Coef, v []float32) SectionSpec {
	return SectionSpec{Kind: kind, Layer: layer, Coef: coef, DType: F32, Shape: []uint64{uint64(len(v))}, Data: dataOf(v)}
}

// dataOf is Bytes, but never nil: nil means "streamed" in a SectionSpec.
func dataOf[T element](v []T) []byte {
	if b := Bytes(v); b != nil {
		return b
	}
	return []byte{}
}

// RecordSizeBytes returns the size that a record of these sections has in a file,
// without the padding to RecordAlign before the next one.
func RecordSizeBytes(h *RecordHeader, specs []SectionSpec) (int64, error) {
	end := headSizeBytes(h, len(specs))
	for i := range specs {
		n, err := specs[i].storedBytes()
		if err != nil {
			return 0, err
		}
		end = alignUp(end, SectionAlign) + n
		if end > 1<<62 {
			return 0, fmt.Errorf("format: a record of %d bytes is too large", end)
		}
	}
	return int64(end), nil
}

func headSizeBytes(h *RecordHeader, numSections int) uint64 {
	return uint64(RecordHeaderSize + 8*len(h.HopNodes) + 8*len(h.LayerEdges) + SectionEntrySize*numSections)
}

// FileSizeBytes returns the size of a file that holds records of the given sizes.
func FileSizeBytes(recordSizes []int64) int64 {
	end := uint64(HeaderSize + TableEntrySize*len(recordSizes))
	for _, n := range recordSizes {
		end = alignUp(end, RecordAlign) + uint64(n)
	}
	return int64(end)
}

// Writer writes one file. After an error it is dead: every later call returns that
// error. Close writes header and table, syncs, opens the file again and verifies it.
type Writer struct {
	path    string
	file    sink
	buf     *bufio.Writer
	header  Header
	records []TableEntry
	offset  uint64   // where the next byte goes
	want    uint64   // bytes of the file up to the end of the record that is being written
	placed  []placed // sections of that record, or of the last one
	err     error
}

// placed is a section that has been written.
type placed struct {
	kind         Kind
	layer        uint16
	coef         Coef
	offset, size uint64 // in the file
}

// sink is what a Writer needs of an *os.File.
type sink interface {
	io.Writer
	io.WriterAt
	Sync() error
	Close() error
}

// Create starts a new file at path for exactly numRecords records. The file must not
// exist. Its kind, ids and shard number come from h.
func Create(path string, h Header, numRecords int) (*Writer, error) {
	if numRecords < 1 || numRecords > MaxRecords {
		return nil, fmt.Errorf("format: %s: %d records, allowed are 1 to %d", filepath.Base(path), numRecords, MaxRecords)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return newWriter(path, &earlyFile{File: file}, h, numRecords), nil
}

// earlyBytes is how much is written before the disk is asked to begin with it.
const earlyBytes = 16 << 20

// bufferBytes is how much is written at once: a large page of x86 and ARM, so that the system can keep it in one.
const bufferBytes = 2 << 20

// earlyFile is a file whose content goes to the disk while more is written.
type earlyFile struct {
	*os.File
	written, started int64
}

func (f *earlyFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	if f.written += int64(n); f.written-f.started >= earlyBytes {
		startWriteBack(f.File, f.started, f.written-f.started)
		f.started = f.written
	}
	return n, err
}

// newWriter starts a file in sink, where path is its name in messages and what an error removes.
func newWriter(path string, file sink, h Header, numRecords int) *Writer {
	w := &Writer{path: path, file: file, buf: bufio.NewWriterSize(file, bufferBytes), header: h, records: make([]TableEntry, 0, numRecords)}
	w.want = uint64(HeaderSize + TableEntrySize*numRecords)
	w.pad(w.want)
	return w
}

// Add writes the next record. Its sections are stored in the order of specs.
func (w *Writer) Add(h *RecordHeader, specs []SectionSpec) error {
	if w.err != nil {
		return w.err
	}
	if len(w.records) == cap(w.records) {
		return w.fail(fmt.Errorf("format: %s: more than %d records", filepath.Base(w.path), cap(w.records)))
	}
	if len(h.HopNodes) > MaxHops || h.NumLayers > MaxLayers || len(h.LayerEdges) != h.NumLayers*len(h.HopNodes) || len(specs) > MaxSections {
		return w.fail(fmt.Errorf("format: %s: record of %d layers, %d hops, %d edge counts, %d sections", filepath.Base(w.path), h.NumLayers, len(h.HopNodes), len(h.LayerEdges), len(specs)))
	}
	recordSize, err := RecordSizeBytes(h, specs)
	if err != nil {
		return w.fail(err)
	}
	start := alignUp(w.offset, RecordAlign)
	w.want = start + uint64(recordSize)
	headSize := headSizeBytes(h, len(specs))
	w.pad(start + headSize)
	w.placed = w.placed[:0]
	entries := make([]byte, 0, len(specs)*SectionEntrySize)
	for i := range specs {
		s := &specs[i]
		size, err := s.storedBytes()
		if err != nil {
			return w.fail(err)
		}
		w.pad(start + alignUp(w.offset-start, SectionAlign))
		offset := w.offset
		crc, err := w.section(s, size)
		if err != nil {
			return w.fail(err)
		}
		entries = appendEntry(entries, s, offset-start, size, crc)
		w.placed = append(w.placed, placed{s.Kind, s.Layer, s.Coef, offset, size})
	}
	head := append(encodeRecordHeader(h, len(specs)), entries...)
	if err := w.patch(head, start); err != nil {
		return w.fail(err)
	}
	w.records = append(w.records, TableEntry{Offset: start, SizeBytes: w.offset - start, Number: h.Number, Variant: h.Variant, HeadCRC: crc32.ChecksumIEEE(head)})
	return w.err
}

// section writes one section's bytes and returns their CRC.
func (w *Writer) section(s *SectionSpec, size uint64) (uint32, error) {
	sum := &crcWriter{w: w.buf}
	var err error
	if s.Data != nil || s.Write == nil {
		err = w.data(sum, s.Data)
	} else {
		err = s.Write(sum)
	}
	if err != nil {
		return 0, err
	}
	if sum.n != size {
		return 0, fmt.Errorf("format: %s: %s of shape %v needs %d bytes, got %d", filepath.Base(w.path), s.Kind, s.Shape, size, sum.n)
	}
	w.offset += size
	return sum.crc, nil
}

// data writes an array. Most of a large one goes to the file past the buffer, in parts that are still in the cache after their checksum, and
// that begin at multiples of their size in the file: so the system keeps them in few large pages, which a reader maps with few faults.
func (w *Writer) data(sum *crcWriter, b []byte) error {
	first := bufferBytes - int(w.offset%bufferBytes)
	if len(b) < first+bufferBytes {
		_, err := sum.Write(b)
		return err
	}
	if _, err := sum.Write(b[:first]); err != nil {
		return err
	}
	if err := w.buf.Flush(); err != nil {
		return err
	}
	sum.w = w.file
	for b = b[first:]; len(b) >= bufferBytes; b = b[bufferBytes:] {
		if _, err := sum.Write(b[:bufferBytes]); err != nil {
			return err
		}
	}
	sum.w = w.buf
	_, err := sum.Write(b)
	return err
}

// Section returns where in the file the bytes of a section lie that has been written: of the record that Add is about to write (which calls
// the Write of later sections) or of the last one. They can be read there until the writer fails or is aborted, and stay as they are. The
// search is Record.Find's, but for AnyLayer only AnyLayer matches, as written.
func (w *Writer) Section(kind Kind, layer uint16, coef Coef) (offset, size int64, err error) {
	if w.err != nil {
		return 0, 0, w.err
	}
	for _, s := range w.placed {
		if s.kind != kind || s.layer != layer || s.coef != coef {
			continue
		}
		if err := w.buf.Flush(); err != nil {
			return 0, 0, w.fail(err)
		}
		return int64(s.offset), int64(s.size), nil
	}
	return 0, 0, fmt.Errorf("format: %s: no section %s has been written", filepath.Base(w.path), sectionName(kind, coef, layer))
}

// crcWriter passes bytes on and keeps their CRC-32 and number.
type crcWriter struct {
	w   io.Writer
	n   uint64
	crc uint32
}

func (c *crcWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.crc = crc32.Update(c.crc, crc32.IEEETable, b[:n])
	c.n += uint64(n)
	return n, err
}

// pad writes zeros up to offset end.
func (w *Writer) pad(end uint64) {
	var zeros [RecordAlign]byte
	for w.err == nil && w.offset < end {
		n, err := w.buf.Write(zeros[:min(end-w.offset, RecordAlign)])
		w.offset += uint64(n)
		if err != nil {
			w.fail(err)
		}
	}
}

// patch writes b over zeros that were written before.
func (w *Writer) patch(b []byte, offset uint64) error {
	if err := w.buf.Flush(); err != nil {
		return err
	}
	_, err := w.file.WriteAt(b, int64(offset))
	return err
}

// fail kills the writer and removes the unfinished file.
func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = w.roomError(err)
		w.file.Close()
		os.Remove(w.path)
	}
	return w.err
}

// roomError says of an error of a full disk how much was wanted.
func (w *Writer) roomError(err error) error {
	records := ""
	if n := cap(w.records); n > 1 {
		records = fmt.Sprintf(" up to record %d of %d", min(len(w.records)+1, n), n)
	}
	return roomError(err, w.path, fmt.Sprintf("%d bytes are wanted there%s", w.want, records))
}

// roomError makes one line of an error, where it is one of no room: which file, and what for. Other errors come back as they are.
func roomError(err error, path, wanted string) error {
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG} {
		if errors.Is(err, full) {
			return fmt.Errorf("%s: %w: %s", path, full, wanted)
		}
	}
	return err
}

// Abort drops the unfinished file. It does nothing after Close or an error.
func (w *Writer) Abort() {
	w.fail(fmt.Errorf("format: %s: writer aborted", filepath.Base(w.path)))
}

// SetKey sets the header's set key, any time before Close.
func (w *Writer) SetKey(key Digest) { w.header.SetKey = key }

// Close finishes the file: header and table, fsync, and a full Verify of what is on
// disk. The file is removed where any of that fails.
func (w *Writer) Close() error {
	_, err := w.close(false)
	return err
}

// Seal is Close, and the digest of the file on the way, for Job.Enter.
func (w *Writer) Seal() (FileInfo, error) { return w.close(true) }

func (w *Writer) close(digest bool) (FileInfo, error) {
	if err := w.finish(); err != nil {
		return FileInfo{}, err
	}
	info, err := lookOver(w.path, digest)
	if err != nil {
		return FileInfo{}, w.fail(fmt.Errorf("self-check of a file just written: %w", err))
	}
	w.err = fmt.Errorf("format: %s: writer is closed", filepath.Base(w.path))
	return info, nil
}

// SizeBytes returns how much of the file is written.
func (w *Writer) SizeBytes() int64 { return int64(w.offset) }

// finish is Close without the self-check.
func (w *Writer) finish() error {
	if w.err != nil {
		return w.err
	}
	if len(w.records) != cap(w.records) {
		return w.fail(fmt.Errorf("format: %s: %d of %d records written", filepath.Base(w.path), len(w.records), cap(w.records)))
	}
	if err := w.patch(encodeFileHead(&w.header, w.records, w.offset), 0); err != nil {
		return w.fail(err)
	}
	if err := w.file.Sync(); err != nil {
		return w.fail(err)
	}
	if err := w.file.Close(); err != nil {
		return w.fail(err)
	}
	return nil
}

// lookOver verifies a whole file as it is on the disk and digests it where that is wanted, in one pass that needs little memory.
func lookOver(path string, digest bool) (FileInfo, error) {
	f, err := Open(path)
	if err != nil {
		return FileInfo{}, err
	}
	defer f.Close()
	p := startPass(f.Name(), f.data, digest)
	err = f.verify(p)
	sum, fault := p.finish()
	return FileInfo{Name: f.Name(), SizeBytes: Int(f.SizeBytes()), SHA256: sum}, cmp.Or(err, fault)
}

func encodeFileHead(h *Header, records []TableEntry, size uint64) []byte {
	le := binary.LittleEndian
	b := make([]byte, HeaderSize+TableEntrySize*len(records))
	for i, e := range records {
		t := b[HeaderSize+i*TableEntrySize:]
		le.PutUint64(t, e.Offset)
		le.PutUint64(t[8:], e.SizeBytes)
		le.PutUint32(t[16:], e.Number)
		le.PutUint32(t[20:], e.Variant)
		le.PutUint32(t[24:], e.HeadCRC)
	}
	copy(b, Magic[:])
	le.PutUint16(b[8:], Version)
	le.PutUint16(b[10:], uint16(h.Kind))
	le.PutUint32(b[12:], ByteOrderMark)
	le.PutUint64(b[16:], h.Required)
	le.PutUint64(b[24:], h.Optional)
	copy(b[32:], h.SnapshotID[:])
	copy(b[64:], h.SetKey[:])
	le.PutUint64(b[96:], size)
	le.PutUint32(b[104:], h.Shard)
	le.PutUint32(b[108:], uint32(len(records)))
	le.PutUint32(b[112:], crc32.ChecksumIEEE(b[HeaderSize:]))
	le.PutUint32(b[124:], crc32.ChecksumIEEE(b[:124]))
	return b
}

func encodeRecordHeader(h *RecordHeader, numSections int) []byte {
	le := binary.LittleEndian
	b := make([]byte, RecordHeaderSize, headSizeBytes(h, numSections))
	le.PutUint32(b, RecordMark)
	le.PutUint16(b[4:], uint16(h.Task))
	b[6], b[7] = byte(h.Split), byte(h.Space)
	le.PutUint32(b[8:], h.Number)
	le.PutUint32(b[12:], h.Variant)
	le.PutUint16(b[16:], uint16(h.NumLayers))
	le.PutUint16(b[18:], uint16(len(h.HopNodes)))
	le.PutUint32(b[20:], uint32(numSections))
	le.PutUint64(b[24:], h.DstStart)
	le.PutUint64(b[32:], h.DstEnd)
	le.PutUint64(b[40:], h.NumSeeds)
	le.PutUint32(b[48:], h.SplitColumn)
	for _, n := range h.HopNodes {
		b = le.AppendUint64(b, n)
	}
	for _, n := range h.LayerEdges {
		b = le.AppendUint64(b, n)
	}
	return b
}

func appendEntry(b []byte, s *SectionSpec, offset, size uint64, crc uint32) []byte {
	le := binary.LittleEndian
	b = le.AppendUint16(b, uint16(s.Kind))
	b = le.AppendUint16(b, s.Layer)
	b = le.AppendUint16(b, uint16(s.Coef))
	b = append(b, byte(s.DType), byte(s.Codec))
	for d := range 3 {
		n := uint64(0)
		if d < len(s.Shape) {
			n = s.Shape[d]
		}
		b = le.AppendUint64(b, n)
	}
	plain, _ := s.plainBytes() // RecordSizeBytes has seen that it fits
	b = le.AppendUint64(b, offset)
	b = le.AppendUint64(b, size)
	b = le.AppendUint64(b, plain)
	b = le.AppendUint32(b, crc)
	b = le.AppendUint32(b, uint32(len(s.Shape)))
	return append(b, make([]byte, 32)...) // nonce, tag, reserved
}
