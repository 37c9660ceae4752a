package format

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// slowBits decodes the stored bytes of a coded array of n numbers by SPEC 10.2, a bit at a time.
func slowBits[T integer](b []byte, n, size int) []T {
	numBlocks := (n + BitsBlock - 1) / BitsBlock
	width, packed := b[numBlocks*size:numBlocks*(size+1)], b[numBlocks*(size+1):]
	out := make([]T, n)
	for i := range out {
		k, at := i/BitsBlock, 0
		for _, w := range width[:k] {
			at += BitsBlock * int(w)
		}
		base, x := uint64(0), uint64(0)
		for byt := range size {
			base |= uint64(b[k*size+byt]) << (8 * byt)
		}
		at += i % BitsBlock * int(width[k])
		for bit := range int(width[k]) {
			x |= uint64(packed[(at+bit)/8]>>((at+bit)%8)&1) << bit
		}
		out[i] = T(base + x)
	}
	return out
}

// codedSection is v as a section that a reader got.
func codedSection[T integer](dtype DType, v []T) (*Section, bool) {
	b, ok := appendBits(nil, v)
	return &Section{Kind: BlockTime, Layer: 0, DType: dtype, Codec: CodecBits, Shape: []uint64{uint64(len(v))}, SizeBytes: uint64(len(b)), PlainBytes: uint64(len(Bytes(v))), data: b}, ok
}

func testBits[T integer](t *testing.T, dtype DType, size int) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	for _, n := range []int{0, 1, 7, 8, 9, BitsBlock - 1, BitsBlock, BitsBlock + 1, 2 * BitsBlock, 5*BitsBlock + 3, 70 * BitsBlock} {
		for width := range BitsMaxWidth + 1 {
			v := make([]T, n)
			for i := range v {
				v[i] = T(random.Uint64() & (1<<width - 1))
				if i/BitsBlock%2 == 1 {
					v[i] -= 1 << 20 // negative ones too, and other bases
				}
			}
			if n > 2 && width == 32 && dtype == I32 {
				v[0], v[n-1] = T(math.MinInt32), T(math.MaxInt32)
			}
			s, ok := codedSection(dtype, v)
			if !ok {
				t.Fatalf("seed %d: %d numbers of %d bits don't fit", seed, n, width)
			}
			if want := slowBits[T](s.data, n, size); !slices.Equal(want, v) {
				t.Fatalf("seed %d: %d numbers of %d bits: coded wrong: %v, want %v", seed, n, width, want, v)
			}
			var buf []T
			for range 2 { // into new memory, and again into the same
				got, err := elementsOf("here", s, &buf)
				if err != nil || !slices.Equal(got, v) {
					t.Fatalf("seed %d: %d numbers of %d bits: got %v, %v, want %v", seed, n, width, got, err, v)
				}
			}
			r, err := numbersOf[T](&Record{}, s)
			if err != nil {
				t.Fatal(err)
			}
			for range min(n, 50) {
				if i := random.IntN(n); r.at(uint64(i)) != v[i] {
					t.Fatalf("seed %d: number %d of %d of %d bits is %d, want %d", seed, i, n, width, r.at(uint64(i)), v[i])
				}
			}
			checked := []T{}
			err = checkCoded[T](&Record{}, s, func(b []byte, at int) error {
				if at != len(checked)*size {
					t.Fatalf("part at %d after %d numbers", at, len(checked))
				}
				checked = append(checked, view[T](b)...)
				return nil
			})
			if err != nil || !slices.Equal(checked, v) {
				t.Fatalf("seed %d: %d numbers of %d bits are checked as %v, %v; want %v", seed, n, width, checked, err, v)
			}
		}
	}
}

func TestBits(t *testing.T) {
	t.Run("i32", func(t *testing.T) { testBits[int32](t, I32, 4) })
	t.Run("i64", func(t *testing.T) { testBits[int64](t, I64, 8) })
}

// TestBitsSection says when a section is coded: where that is smaller, and possible.
func TestBitsSection(t *testing.T) {
	var buf []byte
	rising := make([]int64, 300)
	for i := range rising {
		rising[i] = int64(5 * i)
	}
	for name, c := range map[string]struct {
		section SectionSpec
		want    Codec
		size    uint64
	}{
		"offsets":      {Int64BitsSection(BlockIndptr, 0, rising, &buf), CodecBits, 3*9 + 160 + 160 + 44}, // 10, 10 and 8 bits
		"all the bits": {Int32BitsSection(BlockIndices, 0, []int32{0, math.MaxInt32}, &buf), CodecRaw, 8},
		"too far":      {Int64BitsSection(BlockTime, 0, []int64{0, 1 << 32, 0, 0, 0, 0, 0, 0}, &buf), CodecRaw, 64},
		"none":         {Int32BitsSection(BlockIndices, 0, nil, &buf), CodecRaw, 0},
		"one":          {Int64BitsSection(BlockIndptr, 0, []int64{0}, &buf), CodecRaw, 8},
	} {
		size, err := c.section.storedBytes()
		if c.section.Codec != c.want || size != c.size || err != nil || uint64(len(c.section.Data)) != c.size {
			t.Errorf("%s: codec %s, %d bytes of %d, %v; want %s, %d", name, c.section.Codec, size, len(c.section.Data), err, c.want, c.size)
		}
	}
}

// TestBitsWithoutMemory decodes into memory that is there.
func TestBitsWithoutMemory(t *testing.T) {
	r := vectorRecord(t, "good-bits.plf")
	var indices []int32
	var indptr []int64
	read := func() {
		if _, err := r.Int32sIn(&indices, BlockIndices, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Int64sIn(&indptr, BlockIndptr, 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(10, read); n > 0 {
		t.Errorf("%v allocations a read, want none after the first", n)
	}
	if raw, err := vectorRecord(t, "good-tiny.plf").Int32sIn(&indices, BlockIndices, 0); err != nil || len(raw) != 3 || &raw[0] == &indices[0] {
		t.Errorf("a raw section gives %v, %v; want a view of the file", raw, err)
	}
}

// TestBitsChangedBehind decodes a section whose bytes are no longer those that were verified.
func TestBitsChangedBehind(t *testing.T) {
	s, _ := codedSection(I32, []int32{5, 9, 2, 7})
	s.data[4] = 32 // the width
	r := &Record{Sections: []Section{*s}}
	if got, err := r.Int32sIn(nil, s.Kind, 0); !IsCorrupt(err) || got != nil {
		t.Errorf("got %v, %v; want an error of class layout", got, err)
	}
}

func BenchmarkBits(b *testing.B) {
	for _, width := range []int{4, 12, 17, 22, 30} {
		v := make([]int32, 1000*BitsBlock)
		for i := range v {
			v[i] = rand.Int32N(1 << width)
		}
		s, _ := codedSection(I32, v)
		buf := make([]int32, len(v))
		b.Run(fmt.Sprintf("decode/width=%d", width), func(b *testing.B) {
			for b.Loop() {
				elementsOf("here", s, &buf)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(v)), "ns/number")
		})
		b.Run(fmt.Sprintf("code/width=%d", width), func(b *testing.B) {
			var coded []byte
			for b.Loop() {
				coded, _ = appendBits(coded[:0], v)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(v)), "ns/number")
		})
	}
}
