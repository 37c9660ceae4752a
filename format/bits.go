package format

import (
	"encoding/binary"
	"math/bits"
)

// Codec bits (SPEC 10.2): integers in blocks of BitsBlock, each block with a base, its smallest
// number, and a width, the bits that its numbers need beyond the base. Any block can be
// decoded by itself: it begins 16 times the widths before it into the packed numbers.
//
//	base  [blocks] of the array's type
//	width [blocks] u8, 0 to BitsMaxWidth
//	bits  by block, lowest bit first, filled up to a whole byte

// integer is what codec bits takes.
type integer interface{ int32 | int64 }

// numBitsBlocks returns the number of blocks of n numbers.
func numBitsBlocks(n uint64) uint64 { return n/BitsBlock + (n%BitsBlock+BitsBlock-1)/BitsBlock }

// bitsDirectoryBytes is the size of bases and widths of n numbers of that many bytes.
func bitsDirectoryBytes(n, size uint64) uint64 { return numBitsBlocks(n) * (size + 1) }

// mayHaveBits reports whether a section of this kind and type may be of codec bits (in a local record).
func mayHaveBits(kind Kind, dtype DType) bool {
	group := kind >> 8
	return (group == NodesNumber>>8 || group == BlockIndptr>>8 || group == TransposeIndptr>>8) && (dtype == I32 || dtype == I64)
}

// Int32BitsSection is Int32Section with the numbers coded in buf's memory, which must stay
// unchanged until it is written; as they are, where codec bits wouldn't take fewer bytes.
func Int32BitsSection(kind Kind, layer uint16, v []int32, buf *[]byte) SectionSpec {
	return bitsSection(Int32Section(kind, layer, v), v, buf)
}

// Int64BitsSection is Int32BitsSection for i64.
func Int64BitsSection(kind Kind, layer uint16, v []int64, buf *[]byte) SectionSpec {
	return bitsSection(Int64Section(kind, layer, v), v, buf)
}

func bitsSection[T integer](s SectionSpec, v []T, buf *[]byte) SectionSpec {
	if !mayHaveBits(s.Kind, s.DType) {
		panic("format: " + s.Kind.String() + " can't be of codec bits")
	}
	coded, ok := appendBits((*buf)[:0], v)
	*buf = coded
	if ok && len(coded) < len(s.Data) {
		s.Codec, s.Data, s.StoredBytes = CodecBits, coded, uint64(len(coded))
	}
	return s
}

// appendBits appends the coded form of v. It fails where a block spans more than BitsMaxWidth bits.
func appendBits[T integer](b []byte, v []T) ([]byte, bool) {
	var zero T
	size, numBlocks := binary.Size(zero), int(numBitsBlocks(uint64(len(v))))
	start := len(b)
	b = append(b, make([]byte, numBlocks*(size+1))...)
	for k := range numBlocks {
		block := v[k*BitsBlock : min((k+1)*BitsBlock, len(v))]
		lo, hi := block[0], block[0]
		for _, x := range block[1:] {
			lo, hi = min(lo, x), max(hi, x)
		}
		width := bits.Len64(uint64(hi) - uint64(lo))
		if width > BitsMaxWidth {
			return b, false
		}
		copy(b[start+k*size:], Bytes([]T{lo})[:size])
		b[start+numBlocks*size+k] = uint8(width)
		b = appendBlock(b, block, lo, width)
	}
	return b, true
}

// appendBlock appends the numbers of a block less its base, width bits each.
func appendBlock[T integer](b []byte, block []T, base T, width int) []byte {
	pending, numPending := uint64(0), 0 // bits that are not written yet, fewer than 32
	for _, x := range block {
		pending |= (uint64(x) - uint64(base)) << numPending
		if numPending += width; numPending >= 32 {
			b = binary.LittleEndian.AppendUint32(b, uint32(pending))
			pending >>= 32
			numPending -= 32
		}
	}
	for ; numPending > 0; numPending -= 8 {
		b = append(b, byte(pending))
		pending >>= 8
	}
	return b
}

// bitsView is a section of codec bits, taken apart.
type bitsView[T integer] struct {
	numbers int
	base    []T
	width   []uint8
	packed  []byte
}

// bitsOf takes a section of codec bits and of T's type apart, and checks that widths and
// lengths fit, which is all that decoding relies on. Cost: O(blocks).
func bitsOf[T integer](place string, s *Section) (bitsView[T], error) {
	n := s.NumElements()
	numBlocks, size := numBitsBlocks(n), s.DType.SizeBytes()
	v := bitsView[T]{int(n), view[T](s.data[:numBlocks*size]), s.data[numBlocks*size : numBlocks*(size+1)], s.data[numBlocks*(size+1):]}
	want := uint64(0)
	for k, width := range v.width {
		if width > BitsMaxWidth {
			return v, faultf(ErrLayout, place, "block %d of %s has %d bits a number, at most %d", k, s.name(), width, BitsMaxWidth)
		}
		want += uint64(v.blockBytes(k))
	}
	if want != uint64(len(v.packed)) {
		return v, faultf(ErrLayout, place, "%s has %d bytes of packed numbers, its widths need %d", s.name(), len(v.packed), want)
	}
	return v, nil
}

// blockLen returns how many numbers block k has.
func (v *bitsView[T]) blockLen(k int) int { return min(BitsBlock, v.numbers-k*BitsBlock) }

// blockBytes returns how many packed bytes block k has.
func (v *bitsView[T]) blockBytes(k int) int { return (v.blockLen(k)*int(v.width[k]) + 7) / 8 }

// take decodes the first len(out) numbers, which are whole blocks or all, and leaves the others in v.
func (v *bitsView[T]) take(out []T) {
	numBlocks := int(numBitsBlocks(uint64(len(out))))
	for k, width := range v.width[:numBlocks] {
		n := v.blockBytes(k)
		if block := out[k*BitsBlock : k*BitsBlock+v.blockLen(k)]; len(block) == BitsBlock && len(v.packed) >= unpackBytes(width) {
			unpack((*[BitsBlock]T)(block), v.base[k], width, v.packed)
		} else {
			unpackShort(block, v.base[k], width, v.packed[:n])
		}
		v.packed = v.packed[n:]
	}
	v.numbers, v.base, v.width = v.numbers-len(out), v.base[numBlocks:], v.width[numBlocks:]
}

// zeroFill reports whether the bits that fill up the last block are zero; other blocks need none.
func (v *bitsView[T]) zeroFill() bool {
	if v.numbers == 0 {
		return true
	}
	last := len(v.width) - 1
	used := v.blockLen(last) * int(v.width[last]) % 8
	return used == 0 || v.packed[len(v.packed)-1]>>used == 0
}

// A group of 8 numbers begins at a whole byte; each is read as part of 8 bytes, within groupBytes of the group's first.
const groupBytes = 40

// unpackBytes is how many bytes unpack looks at.
func unpackBytes(width uint8) int { return (BitsBlock/8-1)*int(width) + groupBytes }

// unpack decodes a whole block. The reference, for i in 0..BitsBlock-1, where bits(from, n) are n bits of packed:
//
//	out[i] = base + bits(i*width, width)
//
// Sums wrap around. packed has at least unpackBytes(width) bytes. Two numbers come of one load where they fit.
func unpack[T integer](out *[BitsBlock]T, base T, width uint8, packed []byte) {
	le, w := binary.LittleEndian, uint(width)
	mask := uint64(1)<<(w&63) - 1
	if 2*w+7 > 64 {
		for i := range out {
			at := uint(i) * w
			out[i] = base + T(le.Uint64(packed[at/8:])>>(at%8)&mask)
		}
		return
	}
	// where the numbers 2, 4 and 6 of a group begin
	byte2, byte4, byte6 := 2*w/8&31, 4*w/8&31, 6*w/8&31
	bit2, bit4, bit6 := 2*w%8, 4*w%8, 6*w%8
	w &= 31
	for i := 0; i < BitsBlock; i += 8 {
		group, to := (*[groupBytes]byte)(packed), (*[8]T)(out[i:])
		x := le.Uint64(group[:8])
		to[0], to[1] = base+T(x&mask), base+T(x>>w&mask)
		x = le.Uint64(group[byte2:byte2+8]) >> bit2
		to[2], to[3] = base+T(x&mask), base+T(x>>w&mask)
		x = le.Uint64(group[byte4:byte4+8]) >> bit4
		to[4], to[5] = base+T(x&mask), base+T(x>>w&mask)
		x = le.Uint64(group[byte6:byte6+8]) >> bit6
		to[6], to[7] = base+T(x&mask), base+T(x>>w&mask)
		packed = packed[w:]
	}
}

// unpackShort is unpack for at most a block's numbers, in exactly the bytes they have.
func unpackShort[T integer](out []T, base T, width uint8, packed []byte) {
	var padded [BitsBlock*BitsMaxWidth/8 + groupBytes]byte
	var block [BitsBlock]T
	copy(padded[:], packed)
	unpack(&block, base, width, padded[:])
	copy(out, block[:])
}

// elementsOf returns the elements of a section of T's type: of a raw one a view, else decoded into buf's
// memory, which grows where it is too small (a nil buf is new memory).
func elementsOf[T integer](place string, s *Section, buf *[]T) ([]T, error) {
	if s.Codec != CodecBits {
		if s.SizeBytes == 0 {
			return []T{}, nil
		}
		return view[T](s.data), nil
	}
	v, err := bitsOf[T](place, s)
	if err != nil {
		return nil, err
	}
	var own []T
	if buf == nil {
		buf = &own
	}
	if cap(*buf) < v.numbers {
		*buf = make([]T, v.numbers+v.numbers/8)
	}
	out := (*buf)[:v.numbers:v.numbers]
	v.take(out)
	return out, nil
}

// Int32sIn is Int32s that decodes into buf's memory, which grows where it is too small: buf is then the result's,
// until the next call with it. Of a section that is stored as it is the result is a view of the file. An error says what is
// wrong with a section that is coded, which Verify finds too.
func (r *Record) Int32sIn(buf *[]int32, kind Kind, layer uint16) ([]int32, error) {
	return sectionIn(r, buf, kind, layer, I32)
}

// Int64sIn is Int32sIn for i64.
func (r *Record) Int64sIn(buf *[]int64, kind Kind, layer uint16) ([]int64, error) {
	return sectionIn(r, buf, kind, layer, I64)
}

func sectionIn[T integer](r *Record, buf *[]T, kind Kind, layer uint16, dtype DType) ([]T, error) {
	s := r.Find(kind, layer, CoefNone)
	if s == nil || s.DType != dtype {
		return nil, nil
	}
	return elementsOf(r.place, s, buf)
}

// numbers reads single elements of an i32 or i64 section. Those of one block after the other cost little.
type numbers[T integer] struct {
	raw   []T
	coded bitsView[T]
	block int // decoded, -1 before the first
	start int // of that block in coded.packed
	out   [BitsBlock]T
}

func numbersOf[T integer](r *Record, s *Section) (*numbers[T], error) {
	n := &numbers[T]{block: -1}
	var err error
	if s.Codec == CodecBits {
		n.coded, err = bitsOf[T](r.place, s)
	} else {
		n.raw = view[T](s.data)
	}
	return n, err
}

func (n *numbers[T]) at(i uint64) T {
	if n.raw != nil {
		return n.raw[i]
	}
	v, k := &n.coded, int(i/BitsBlock)
	if n.block != k {
		if n.block < 0 || n.block > k {
			n.block, n.start = 0, 0
		}
		for ; n.block < k; n.block++ {
			n.start += v.blockBytes(n.block)
		}
		unpackShort(n.out[:v.blockLen(k)], v.base[k], v.width[k], v.packed[n.start:n.start+v.blockBytes(k)])
	}
	return n.out[i%BitsBlock]
}
