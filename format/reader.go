package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"

	"github.com/edsrzf/mmap-go"
)

// Header is the fixed part of a file's first 128 bytes (SPEC 3.1).
type Header struct {
	Kind       FileKind
	Required   uint64 // feature bits that a reader must know
	Optional   uint64 // feature bits that a reader may ignore
	SnapshotID [32]byte
	SetKey     [32]byte // digest of the parameters that made the set; ties the files of one set together
	Shard      uint32
}

// TableEntry locates one record (SPEC 3.2).
type TableEntry struct {
	Offset    uint64 // from the start of the file, a multiple of RecordAlign
	SizeBytes uint64 // head, sections and the padding between them
	Number    uint32
	Variant   uint32
	HeadCRC   uint32
}

// RecordHeader is the fixed part of a record head (SPEC 4.1).
type RecordHeader struct {
	Task        Task
	Split       Part
	Space       IndexSpace
	SplitColumn uint32 // AnySplit where the record serves every split column
	Number      uint32 // batch number within the set, variants one after the other
	Variant     uint32
	NumLayers   int    // 0 where a block of AnyLayer serves any depth
	DstStart    uint64 // first dst row, SpaceGlobal only
	DstEnd      uint64 // one past the last dst row, SpaceGlobal only
	NumSeeds    uint64
	HopNodes    []uint64 // cumulative nodes per hop: HopNodes[0] seeds ... last = all nodes
	LayerEdges  []uint64 // [NumLayers, len(HopNodes)] edges of layer l whose dst is of hop h
}

// File is a mapped file. Its methods may be called from several goroutines.
type File struct {
	Header  Header
	Records []TableEntry

	path string
	data mmap.MMap
}

// Open maps the file at path and checks its header, its table and its size; it
// touches no record. Close releases the mapping, and with it every view taken from it.
func Open(path string) (*File, error) {
	data, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, data: data}
	if err := Guard(filepath.Base(path), f.readHead); err != nil {
		data.Unmap()
		return nil, err
	}
	return f, nil
}

func mapFile(path string) (mmap.MMap, error) {
	if !littleEndian {
		return nil, faultf(ErrLimit, filepath.Base(path), "this machine is big-endian; Prelift files are little-endian and mapped as they are")
	}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() { // before Open, which waits for a pipe's other end
		return nil, faultf(ErrLayout, filepath.Base(path), "not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < HeaderSize {
		return nil, faultf(ErrTruncated, filepath.Base(path), "%d bytes, a file has at least %d", info.Size(), HeaderSize)
	}
	if info.Size() > math.MaxInt {
		return nil, faultf(ErrLimit, filepath.Base(path), "%d bytes don't fit this machine's address space", info.Size())
	}
	data, err := mmap.MapRegion(file, int(info.Size()), mmap.RDONLY, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: map %d bytes: %w", filepath.Base(path), info.Size(), err)
	}
	return data, nil
}

// Parse reads a copy of a file image in memory, for tests and fuzzing. The File needs
// no Close.
func Parse(name string, data []byte) (*File, error) {
	if len(data) < HeaderSize {
		return nil, faultf(ErrTruncated, name, "%d bytes, a file has at least %d", len(data), HeaderSize)
	}
	f := &File{path: name, data: bytes.Clone(data)} // the allocator aligns it to 8 bytes, the widest element
	if err := f.readHead(); err != nil {
		return nil, err
	}
	return f, nil
}

// Name returns the file's base name, for messages.
func (f *File) Name() string { return filepath.Base(f.path) }

// SizeBytes returns the file's size.
func (f *File) SizeBytes() int64 { return int64(len(f.data)) }

// Drop takes what has been read of the file out of this process's memory; it comes back when it is read again. Not after Close.
func (f *File) Drop() {
	if len(f.data) > 0 {
		dropPages(f.data)
	}
}

// Close unmaps the file. Views taken from it must not be used any more.
func (f *File) Close() error {
	if f.data == nil {
		return nil
	}
	data := f.data
	f.data = nil
	return data.Unmap()
}

func (f *File) readHead() error {
	b, name := f.data, f.Name()
	le := binary.LittleEndian
	if !bytes.Equal(b[:8], Magic[:]) {
		return faultf(ErrMagic, name, "first bytes are % x", b[:8])
	}
	if v := le.Uint16(b[8:]); v != Version {
		return faultf(ErrVersion, name, "file has version %d, this reader knows %d; use a newer Prelift or write the artefact again", v, Version)
	}
	if got, want := crc32.ChecksumIEEE(b[:124]), le.Uint32(b[124:]); got != want {
		return faultf(ErrChecksum, name, "header has CRC %08x, stored is %08x", got, want)
	}
	if bom := le.Uint32(b[12:]); bom != ByteOrderMark {
		return faultf(ErrLayout, name, "byte-order mark is %08x", bom)
	}
	f.Header = Header{Kind: FileKind(le.Uint16(b[10:])), Required: le.Uint64(b[16:]), Optional: le.Uint64(b[24:]), Shard: le.Uint32(b[104:])}
	copy(f.Header.SnapshotID[:], b[32:])
	copy(f.Header.SetKey[:], b[64:])
	if _, known := fileKindNames[f.Header.Kind]; !known {
		return faultf(ErrVersion, name, "file kind %d is not known to this version", uint16(f.Header.Kind))
	}
	if unknown := f.Header.Required &^ knownRequired; unknown != 0 {
		return faultf(ErrVersion, name, "needs features %#x that this version doesn't have", unknown)
	}
	if size := le.Uint64(b[96:]); size != uint64(len(b)) {
		class := ErrTruncated
		if size < uint64(len(b)) {
			class = ErrLayout
		}
		return faultf(class, name, "header says %d bytes, file has %d", size, len(b))
	}
	if !allZero(b[116:124]) {
		return faultf(ErrLayout, name, "reserved header bytes are not zero")
	}
	return f.readTable(uint64(le.Uint32(b[108:])), le.Uint32(b[112:]))
}

func (f *File) readTable(numRecords uint64, crc uint32) error {
	name, le := f.Name(), binary.LittleEndian
	if numRecords == 0 || numRecords > MaxRecords {
		return faultf(ErrLimit, name, "%d records, allowed are 1 to %d", numRecords, MaxRecords)
	}
	end := HeaderSize + numRecords*TableEntrySize
	if end > uint64(len(f.data)) {
		return faultf(ErrTruncated, name, "table of %d records ends at %d, file has %d bytes", numRecords, end, len(f.data))
	}
	table := f.data[HeaderSize:end]
	if got := crc32.ChecksumIEEE(table); got != crc {
		return faultf(ErrChecksum, name, "record table has CRC %08x, stored is %08x", got, crc)
	}
	f.Records = make([]TableEntry, numRecords)
	for i := range f.Records {
		b := table[i*TableEntrySize:]
		e := TableEntry{Offset: le.Uint64(b), SizeBytes: le.Uint64(b[8:]), Number: le.Uint32(b[16:]), Variant: le.Uint32(b[20:]), HeadCRC: le.Uint32(b[24:])}
		if le.Uint32(b[28:]) != 0 {
			return faultf(ErrLayout, name, "record %d: reserved table bytes are not zero", i)
		}
		if want := alignUp(end, RecordAlign); e.Offset != want {
			return faultf(ErrLayout, name, "record %d starts at %d, want %d", i, e.Offset, want)
		}
		if e.Offset > uint64(len(f.data)) || e.SizeBytes > uint64(len(f.data))-e.Offset {
			return faultf(ErrTruncated, name, "record %d ends at %d+%d, file has %d bytes", i, e.Offset, e.SizeBytes, len(f.data))
		}
		if e.SizeBytes < RecordHeaderSize {
			return faultf(ErrLayout, name, "record %d has %d bytes", i, e.SizeBytes)
		}
		f.Records[i], end = e, e.Offset+e.SizeBytes
	}
	if end != uint64(len(f.data)) {
		return faultf(ErrLayout, name, "last record ends at %d, file has %d bytes", end, len(f.data))
	}
	return nil
}

// Section is one array of a record. Its bytes are valid until File.Close, read-only.
type Section struct {
	Kind       Kind
	Layer      uint16 // AnyLayer where it serves every layer, or none
	Coef       Coef
	DType      DType
	Codec      Codec
	Shape      []uint64 // one number a dimension
	Offset     uint64   // from the start of the record
	SizeBytes  uint64   // stored
	PlainBytes uint64   // of the array; SizeBytes too where the codec is raw
	CRC        uint32

	data []byte
}

// name is the section in messages: "coef.self gcn of layer 0".
func (s *Section) name() string { return sectionName(s.Kind, s.Coef, s.Layer) }

func sectionName(kind Kind, coef Coef, layer uint16) string {
	name := kind.String()
	if coef != CoefNone {
		name += " " + coef.String()
	}
	if layer != AnyLayer {
		name += fmt.Sprintf(" of layer %d", layer)
	}
	return name
}

// NumElements returns the product of the shape.
func (s *Section) NumElements() uint64 {
	n := uint64(1)
	for _, d := range s.Shape {
		n *= d // checked when the record was parsed
	}
	return n
}

// Bytes returns the stored bytes: the array's where the codec is raw.
func (s *Section) Bytes() []byte { return s.data }

// Record is a parsed record head with its sections. Its views are valid until File.Close.
type Record struct {
	RecordHeader
	Sections []Section

	place string
	data  []byte
}

// Record parses and checks the head of record i: CRC, counts, section bounds and
// tiling. It doesn't touch the sections; Verify does. Cost: O(number of sections).
func (f *File) Record(i int) (*Record, error) {
	if i < 0 || i >= len(f.Records) {
		return nil, faultf(ErrLimit, f.Name(), "record %d of %d", i, len(f.Records))
	}
	var r *Record
	err := Guard(f.Name(), func() (err error) {
		r, err = f.parseRecord(i)
		return err
	})
	return r, err
}

func (f *File) parseRecord(i int) (*Record, error) {
	e := f.Records[i]
	r := &Record{place: fmt.Sprintf("%s: record %d", f.Name(), i), data: f.data[e.Offset : e.Offset+e.SizeBytes]}
	b, le := r.data, binary.LittleEndian
	if le.Uint32(b) != RecordMark {
		return nil, faultf(ErrLayout, r.place, "record mark is %08x", le.Uint32(b))
	}
	numHops, numSections := uint64(le.Uint16(b[18:])), uint64(le.Uint32(b[20:]))
	numLayers := uint64(le.Uint16(b[16:]))
	if numLayers > MaxLayers || numHops > MaxHops || numSections > MaxSections {
		return nil, faultf(ErrLimit, r.place, "%d layers, %d hops, %d sections", numLayers, numHops, numSections)
	}
	headSize := RecordHeaderSize + 8*numHops + 8*numLayers*numHops + SectionEntrySize*numSections
	if headSize > e.SizeBytes {
		return nil, faultf(ErrTruncated, r.place, "head has %d bytes, record %d", headSize, e.SizeBytes)
	}
	if got := crc32.ChecksumIEEE(b[:headSize]); got != e.HeadCRC {
		return nil, faultf(ErrChecksum, r.place, "head has CRC %08x, stored is %08x", got, e.HeadCRC)
	}
	r.RecordHeader = RecordHeader{
		Task: Task(le.Uint16(b[4:])), Split: Part(b[6]), Space: IndexSpace(b[7]),
		Number: le.Uint32(b[8:]), Variant: le.Uint32(b[12:]), NumLayers: int(numLayers),
		DstStart: le.Uint64(b[24:]), DstEnd: le.Uint64(b[32:]), NumSeeds: le.Uint64(b[40:]), SplitColumn: le.Uint32(b[48:]),
	}
	if !allZero(b[52:64]) {
		return nil, faultf(ErrLayout, r.place, "reserved head bytes are not zero")
	}
	if r.Number != e.Number || r.Variant != e.Variant {
		return nil, faultf(ErrLayout, r.place, "head says batch %d of variant %d, table says %d of %d", r.Number, r.Variant, e.Number, e.Variant)
	}
	if r.Task > TaskKGE || r.Split > PartTest || r.Space > SpaceGlobal {
		return nil, faultf(ErrLayout, r.place, "task %d, split %d, index space %d", r.Task, r.Split, r.Space)
	}
	b = b[RecordHeaderSize:]
	r.HopNodes, b = takeUint64s(b, numHops)
	r.LayerEdges, b = takeUint64s(b, numLayers*numHops)
	r.Sections = make([]Section, numSections)
	shapes := make([]uint64, 3*numSections) // one allocation for all
	end := headSize
	for k := range r.Sections {
		s, err := parseSection(b[k*SectionEntrySize:], shapes[3*k:3*k:3*k+3], f.Header.Optional&^knownOptional != 0)
		if err != nil {
			return nil, fmt.Errorf("%s: section %d: %w", r.place, k, err)
		}
		if want := alignUp(end, SectionAlign); s.Offset != want {
			return nil, faultf(ErrLayout, r.place, "section %d (%s) starts at %d, want %d", k, s.Kind, s.Offset, want)
		}
		if s.Offset > e.SizeBytes || s.SizeBytes > e.SizeBytes-s.Offset {
			return nil, faultf(ErrTruncated, r.place, "section %d (%s) ends at %d+%d, record has %d bytes", k, s.Kind, s.Offset, s.SizeBytes, e.SizeBytes)
		}
		s.data = r.data[s.Offset : s.Offset+s.SizeBytes : s.Offset+s.SizeBytes]
		r.Sections[k], end = s, s.Offset+s.SizeBytes
	}
	if end != e.SizeBytes {
		return nil, faultf(ErrLayout, r.place, "last section ends at %d, record has %d bytes", end, e.SizeBytes)
	}
	if err := r.checkDuplicates(); err != nil {
		return nil, err
	}
	if err := r.checkCounts(); err != nil {
		return nil, err
	}
	return r, nil
}

// checkDuplicates refuses two sections of one kind, layer and coefficient kind.
func (r *Record) checkDuplicates() error {
	keys := make([]uint64, len(r.Sections))
	for k := range r.Sections {
		s := &r.Sections[k]
		keys[k] = uint64(s.Kind)<<32 | uint64(s.Layer)<<16 | uint64(s.Coef)
	}
	slices.Sort(keys)
	for k := 1; k < len(keys); k++ {
		if keys[k] == keys[k-1] {
			return faultf(ErrLayout, r.place, "two sections are %s", sectionName(Kind(keys[k]>>32), Coef(keys[k]), uint16(keys[k]>>16)))
		}
	}
	return nil
}

func takeUint64s(b []byte, n uint64) (out []uint64, rest []byte) {
	out = make([]uint64, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return out, b[8*n:]
}

// parseSection reads one entry (SPEC 4.3) and checks all that needs no other entry.
// The shape goes into shape, which has room for three numbers. skipUnknown says that
// kinds this reader doesn't know are to be passed over.
func parseSection(b []byte, shape []uint64, skipUnknown bool) (Section, error) {
	le := binary.LittleEndian
	s := Section{
		Kind: Kind(le.Uint16(b)), Layer: le.Uint16(b[2:]), Coef: Coef(le.Uint16(b[4:])), DType: DType(b[6]), Codec: Codec(b[7]),
		Offset: le.Uint64(b[32:]), SizeBytes: le.Uint64(b[40:]), PlainBytes: le.Uint64(b[48:]), CRC: le.Uint32(b[56:]), Shape: shape,
	}
	place := s.Kind.String()
	if s.DType.SizeBytes() == 0 {
		return s, faultf(ErrLayout, place, "element type %d", s.DType)
	}
	if s.Codec > CodecBits {
		return s, faultf(ErrVersion, place, "codec %d is not known to this version", s.Codec)
	}
	if !allZero(b[64:96]) {
		return s, faultf(ErrLayout, place, "nonce, tag or reserved bytes are not zero")
	}
	rank := le.Uint32(b[60:])
	if rank < 1 || rank > 3 || !allZero(b[8+8*rank:32]) {
		return s, faultf(ErrLayout, place, "%d dimensions, shape %d, %d, %d", rank, le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:]))
	}
	size := s.DType.SizeBytes()
	for d := range rank {
		n := le.Uint64(b[8+8*d:])
		hi, lo := bits.Mul64(size, n)
		if hi != 0 || d > 0 && n > MaxColumns {
			return s, faultf(ErrLimit, place, "shape %d, %d, %d is too large, or has more than %d columns", le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:]), MaxColumns)
		}
		s.Shape, size = append(s.Shape, n), lo
	}
	if size != s.PlainBytes || s.Codec == CodecRaw && s.SizeBytes != size || s.Codec == CodecBits && s.SizeBytes < bitsDirectoryBytes(size/s.DType.SizeBytes(), s.DType.SizeBytes()) {
		return s, faultf(ErrLayout, place, "shape %v of %s needs %d bytes, codec %s has %d, plain are %d", s.Shape, s.DType, size, s.Codec, s.SizeBytes, s.PlainBytes)
	}
	spec, known := kindSpecs[s.Kind]
	if !known {
		if skipUnknown {
			return s, nil
		}
		return s, faultf(ErrLayout, place, "unknown in a file without optional features")
	}
	if spec.rank > 0 && len(s.Shape) != spec.rank {
		return s, faultf(ErrLayout, place, "shape %v, want %d dimensions", s.Shape, spec.rank)
	}
	okType := false
	for _, d := range spec.dtypes {
		okType = okType || d == s.DType
	}
	if !okType {
		return s, faultf(ErrLayout, place, "can't hold %s", s.DType)
	}
	if s.Kind.isCoef() != (s.Coef != CoefNone) || s.Coef > CoefRelMean {
		return s, faultf(ErrLayout, place, "coefficient kind %d", uint16(s.Coef))
	}
	return s, nil
}

// Place names the record for messages: "batches-00000.plf: record 3".
func (r *Record) Place() string { return r.place }

// SizeBytes returns the size of the record.
func (r *Record) SizeBytes() int { return len(r.data) }

// Verify reads every byte of the record: the CRC of each section, the zero padding,
// and what SPEC 9.3 asks of the contents (bounds of every index, monotone offsets).
// Cost: one pass over the record at about the speed of memory.
func (r *Record) Verify() error { return r.verify(nil) }

// verify is Verify, which tells p, where it isn't nil, of what it has read, in the order of the file. A checksum that doesn't match
// is said before what is wrong with the contents, wherever that is.
func (r *Record) verify(p *pass) error {
	return Guard(r.place, func() error {
		c := &contents{Record: r}
		var wrong error // with the contents, the first
		end := uint64(RecordHeaderSize + 8*len(r.HopNodes) + 8*len(r.LayerEdges) + SectionEntrySize*len(r.Sections))
		p.seen(int(end))
		for i := range r.Sections {
			s := &r.Sections[i]
			if !allZero(r.data[end:s.Offset]) {
				return faultf(ErrLayout, r.place, "padding before section %d (%s) is not zero", i, s.Kind)
			}
			p.seen(int(s.Offset - end))
			check, err := c.section(s)
			if wrong == nil {
				wrong = err
			}
			crc := uint32(0)
			for at := 0; ; {
				part := s.data[at:min(at+partBytes, len(s.data))]
				crc = crc32.Update(crc, crc32.IEEETable, part)
				if wrong == nil && check != nil && s.Codec == CodecRaw {
					wrong = check(part, at)
				}
				p.seen(len(part))
				if at += len(part); at == len(s.data) {
					break
				}
			}
			if crc != s.CRC {
				return faultf(ErrChecksum, r.place, "section %d (%s) has CRC %08x, stored is %08x", i, s.Kind, crc, s.CRC)
			}
			if wrong == nil && s.Codec == CodecBits {
				wrong = c.coded(s, check)
			}
			end = s.Offset + s.SizeBytes
		}
		if wrong != nil {
			return wrong
		}
		return c.across(p)
	})
}

// VerifyPadding checks the bytes between the table and the first record and between
// records. With every Record.Verify it covers each byte of the file.
func (f *File) VerifyPadding() error {
	return Guard(f.Name(), func() error {
		end := uint64(HeaderSize + TableEntrySize*len(f.Records))
		for i, e := range f.Records {
			if !allZero(f.data[end:e.Offset]) {
				return faultf(ErrLayout, f.Name(), "padding before record %d is not zero", i)
			}
			end = e.Offset + e.SizeBytes
		}
		return nil
	})
}

// Verify reads every byte of the file (see Record.Verify).
func (f *File) Verify() error { return f.verify(nil) }

func (f *File) verify(p *pass) error {
	if err := f.VerifyPadding(); err != nil {
		return err
	}
	end := uint64(0)
	for i, e := range f.Records {
		p.seen(int(e.Offset - end))
		r, err := f.Record(i)
		if err != nil {
			return err
		}
		if err := r.verify(p); err != nil {
			return err
		}
		end = e.Offset + e.SizeBytes
	}
	return nil
}

// Find returns the section of that kind for that layer and coefficient kind: the one
// of exactly this layer, else the one of AnyLayer; nil where there is neither.
func (r *Record) Find(kind Kind, layer uint16, coef Coef) *Section {
	var any *Section
	for i := range r.Sections {
		s := &r.Sections[i]
		if s.Kind != kind || s.Coef != coef {
			continue
		}
		if s.Layer == layer {
			return s
		}
		if s.Layer == AnyLayer {
			any = s
		}
	}
	return any
}

// sectionView returns the elements of a raw section, nil where it is absent.
func sectionView[T element](r *Record, kind Kind, layer uint16, coef Coef, dtype DType) []T {
	s := r.Find(kind, layer, coef)
	if s == nil || s.DType != dtype || s.Codec != CodecRaw {
		return nil
	}
	if s.SizeBytes == 0 {
		return []T{}
	}
	return view[T](s.data)
}

// Int32s returns the elements of an i32 section without a copy, or where it is coded in new memory (see
// Int32sIn); nil where it is absent, of another type, or coded in a way that Verify refuses. Valid until File.Close,
// read-only; so are its siblings.
func (r *Record) Int32s(kind Kind, layer uint16) []int32 {
	v, _ := r.Int32sIn(nil, kind, layer)
	return v
}

// Int64s is Int32s for i64.
func (r *Record) Int64s(kind Kind, layer uint16) []int64 {
	v, _ := r.Int64sIn(nil, kind, layer)
	return v
}

// Uint64s is Int32s for u64.
func (r *Record) Uint64s(kind Kind, layer uint16) []uint64 {
	return sectionView[uint64](r, kind, layer, CoefNone, U64)
}

// Uint8s is Int32s for u8.
func (r *Record) Uint8s(kind Kind, layer uint16) []uint8 {
	return sectionView[uint8](r, kind, layer, CoefNone, U8)
}

// Uint16s is Int32s for u16.
func (r *Record) Uint16s(kind Kind, layer uint16) []uint16 {
	return sectionView[uint16](r, kind, layer, CoefNone, U16)
}

// Uint32s is Int32s for u32.
func (r *Record) Uint32s(kind Kind, layer uint16) []uint32 {
	return sectionView[uint32](r, kind, layer, CoefNone, U32)
}

// Float64s is Int32s for f64.
func (r *Record) Float64s(kind Kind, layer uint16) []float64 {
	return sectionView[float64](r, kind, layer, CoefNone, F64)
}

// Float32s is Int32s for f32, with the coefficient kind for coef sections (CoefNone for others).
func (r *Record) Float32s(kind Kind, layer uint16, coef Coef) []float32 {
	return sectionView[float32](r, kind, layer, coef, F32)
}

func alignUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }

func allZero(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
