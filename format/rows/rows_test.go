package rows

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// numberOf is what IEEE 754 says of a binary float of so many bits of exponent and mantissa, in float64.
func numberOf(h uint16, exponentBits, mantissaBits int) float64 {
	bias := 1<<(exponentBits-1) - 1
	exponent, mantissa := int(h)>>mantissaBits&(1<<exponentBits-1), float64(int(h)&(1<<mantissaBits-1))
	x := math.Ldexp(1+math.Ldexp(mantissa, -mantissaBits), exponent-bias)
	switch {
	case exponent == 1<<exponentBits-1 && mantissa != 0:
		return math.NaN()
	case exponent == 1<<exponentBits-1:
		x = math.Inf(1)
	case exponent == 0:
		x = math.Ldexp(mantissa, 1-bias-mantissaBits)
	}
	if h>>15 == 1 {
		x = -x
	}
	return x
}

// half is a 16-bit type with its slow definition.
type half struct {
	name                       string
	exponentBits, mantissaBits int
	of                         func(float32) uint16
	back                       func(uint16) float32
	encode                     func([]uint16, []float32) int
	decode                     func([]float32, []uint16)
}

var halves = []half{
	{"f16", 5, 10, F16Of, F32OfF16, EncodeF16, DecodeF16},
	{"bf16", 8, 7, BF16Of, F32OfBF16, EncodeBF16, DecodeBF16},
}

func (h *half) number(b uint16) float64 { return numberOf(b, h.exponentBits, h.mantissaBits) }

// TestEveryHalf takes each of the 65,536 numbers of 16 bits: back and forth, and the float32 numbers around it and around the
// middle between it and its neighbour, against rounding by the definition.
func TestEveryHalf(t *testing.T) {
	for _, h := range halves {
		t.Run(h.name, func(t *testing.T) {
			infinity := uint16(1<<h.exponentBits-1) << h.mantissaBits
			all, out := make([]uint16, 1<<16), make([]float32, 1<<16)
			for b := range all {
				all[b] = uint16(b)
			}
			h.decode(out, all)
			for b, x := range out {
				want := h.number(uint16(b))
				if float64(x) != want && !(x != x && want != want) || math.Signbit(float64(x)) != math.Signbit(want) && want == want {
					t.Fatalf("0x%04x is %v, want %v", b, x, want)
				}
				if got := h.back(uint16(b)); math.Float32bits(got) != math.Float32bits(x) {
					t.Fatalf("0x%04x: one by one %v, of a slice %v", b, got, x)
				}
				again := h.of(x)
				if x != x {
					if again&infinity != infinity || again&^(infinity|0x8000) == 0 {
						t.Fatalf("NaN 0x%04x comes back as 0x%04x", b, again)
					}
				} else if again != uint16(b) {
					t.Fatalf("0x%04x (%v) comes back as 0x%04x", b, x, again)
				}
			}
			// Between b and its neighbour above lies the middle, which goes to the even one; all before it to b, all behind to the neighbour.
			for b := uint16(0); b < infinity; b++ {
				low, high := h.number(b), h.number(b+1)
				if b+1 == infinity {
					high = math.Ldexp(1, 1<<(h.exponentBits-1)) // what would follow
				}
				middle := float32((low + high) / 2) // exact: one more bit than a half has
				if float64(middle) != (low+high)/2 {
					t.Fatalf("the middle of %v and %v is no float32", low, high)
				}
				even := b + b&1
				for _, c := range []struct {
					x    float32
					want uint16
				}{
					{math.Nextafter32(middle, 0), b}, {middle, even}, {math.Nextafter32(middle, math.MaxFloat32), b + 1},
					{math.Nextafter32(float32(low), math.MaxFloat32), b},
				} {
					in := []float32{c.x, -c.x}
					got := make([]uint16, 2)
					bad := h.encode(got, in)
					if got[0] != c.want || got[1] != c.want|0x8000 || h.of(c.x) != c.want {
						t.Fatalf("%v becomes 0x%04x and 0x%04x, one by one 0x%04x; want 0x%04x", c.x, got[0], got[1], h.of(c.x), c.want)
					}
					if want := map[bool]int{true: 0, false: -1}[c.want == infinity]; bad != want {
						t.Fatalf("%v: first bad element %d, want %d", c.x, bad, want)
					}
				}
			}
		})
	}
}

// TestErrorBound converts numbers of all sizes and holds what they lose against the bound.
func TestErrorBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const cols, n = 7, 3000
	in := make([]float32, cols*n)
	for i := range in {
		in[i] = float32(math.Ldexp(rng.Float64()-0.5, rng.IntN(30)-15))
		if i%cols == 3 {
			in[i] = float32(math.Ldexp(rng.Float64()-0.5, -130)) // subnormal float32, too small for a step
		}
		if i%cols == 5 {
			in[i] = 0
		}
	}
	most := make([]float32, cols)
	if bad := ColumnMaxima(most, in); bad >= 0 {
		t.Fatal(bad)
	}
	scale := make([]float32, cols)
	for c := range scale {
		scale[c] = ScaleOf(most[c])
	}
	for _, typ := range []Type{F32, F16, BF16, I8} {
		table := Table{Type: typ, Cols: cols, Data: make([]byte, len(in)*typ.SizeBytes()), Scale: scale}
		if bad := Encode(table.Data, in, typ, scale); bad >= 0 {
			t.Fatalf("%s: element %d (%v) is refused", typ, bad, in[bad])
		}
		if table.NumRows() != n {
			t.Errorf("%s: %d rows, want %d", typ, table.NumRows(), n)
		}
		out := make([]float32, len(in))
		table.Decode(out, 0)
		worst := 0.0
		for i, x := range in {
			s := scale
			if typ == I8 {
				s = scale[i%cols : i%cols+1] // each column's own bound
			}
			relative, absolute := ErrorBound(typ, s)
			bound := max(relative*math.Abs(float64(x)), absolute)
			lost := math.Abs(float64(out[i]) - float64(x))
			if lost > bound {
				t.Fatalf("%s: %v becomes %v, which is %g off; bound %g", typ, x, out[i], lost, bound)
			}
			if bound > 0 {
				worst = max(worst, lost/bound)
			}
		}
		if typ != F32 && worst < 0.9 {
			t.Errorf("%s: at most %.2f of the bound is lost; is it too wide?", typ, worst)
		}
	}
}

// TestInt8 has the corners of int8 rows.
func TestInt8(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		in, scale []float32
		want      []int8
		bad       int
	}{
		{nil, nil, nil, -1},
		{[]float32{127, -127, 0.5, 1.5, -2.5}, []float32{1, 1, 1, 1, 1}, []int8{127, -127, 0, 2, -2}, -1},
		{[]float32{128, -1000}, []float32{1, 1}, []int8{127, -127}, -1},
		{[]float32{1, nan, inf}, []float32{1, 1, 1}, []int8{1, 0, 0}, 1},
		{[]float32{0, 1e-44}, []float32{ScaleOf(0), ScaleOf(1e-44)}, []int8{0, 0}, -1},
		{[]float32{math.MaxFloat32, -math.MaxFloat32}, []float32{ScaleOf(math.MaxFloat32), ScaleOf(math.MaxFloat32)}, []int8{127, -127}, -1},
	} {
		got := make([]int8, len(c.in))
		if bad := EncodeI8(got, c.in, c.scale); bad != c.bad || !slices.Equal(got, c.want) && len(c.want) > 0 {
			t.Errorf("%v in steps of %v: %v, first bad %d; want %v, %d", c.in, c.scale, got, bad, c.want, c.bad)
		}
	}
	most := []float32{0, 0}
	if bad := ColumnMaxima(most, []float32{1, -3, -2, 1, 0, nan, inf, 2}); bad != 5 || !slices.Equal(most, []float32{2, 3}) {
		t.Errorf("maxima %v, first bad %d", most, bad)
	}
}

// TestRefused has elements that a type can't hold; the first is told.
func TestRefused(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	scale := []float32{1, 1}
	for _, c := range []struct {
		typ  Type
		in   []float32
		want int
	}{
		{F32, []float32{nan, inf}, -1},
		{F16, []float32{65504, -65519.996}, -1},
		{F16, []float32{1, 65520, nan, 1}, 1},
		{F16, []float32{1, 1, 1, inf}, 3},
		{BF16, []float32{65520, 3.3e38}, -1},
		{BF16, []float32{1, math.MaxFloat32}, 1},
		{BF16, []float32{nan, 0}, 0},
		{I8, []float32{1, 2, 3, nan}, 3},
	} {
		if got := Encode(make([]byte, len(c.in)*c.typ.SizeBytes()), c.in, c.typ, scale); got != c.want {
			t.Errorf("%s of %v: first bad %d, want %d", c.typ, c.in, got, c.want)
		}
	}
}

// TestGather compares the gathers with rows taken one by one, and looks at the elements behind the matrix.
func TestGather(t *testing.T) {
	const n, guard = 50, 42
	for _, cols := range []int{1, 3, 16} {
		in, scale := make([]float32, n*cols), slices.Repeat([]float32{0.25}, cols)
		for i := range in {
			in[i] = float32(i%255-127) / 4
		}
		var tables []Table
		for _, typ := range []Type{F32, F16, BF16, I8} {
			table := Table{typ, cols, make([]byte, len(in)*typ.SizeBytes()), scale}
			Encode(table.Data, in, typ, scale)
			tables = append(tables, table)
		}
		list, which := []int32{49, 0, 7, 7, 23}, []uint8{0, 3, 1, 2, 3}
		check := func(name string, out []float32, typeOf func(i int) int) {
			t.Helper()
			want := make([]float32, cols)
			for i, r := range list {
				tables[typeOf(i)].Decode(want, int(r))
				if !slices.Equal(out[i*cols:(i+1)*cols], want) {
					t.Errorf("%s of %d columns: row %d is %v, want %v", name, cols, i, out[i*cols:(i+1)*cols], want)
				}
			}
			if out[len(list)*cols] != guard {
				t.Errorf("%s of %d columns writes behind its matrix", name, cols)
			}
		}
		out := make([]float32, len(list)*cols+1)
		for k := range tables {
			out[len(list)*cols] = guard
			tables[k].Gather(out, list)
			check(tables[k].Type.String(), out, func(int) int { return k })
			tables[k].Gather(out, nil)
		}
		GatherFrom(out, tables, which, list)
		check("several", out, func(i int) int { return int(which[i]) })
	}
}

func TestParse(t *testing.T) {
	for _, typ := range []Type{F32, F16, BF16, I8} {
		if got, ok := Parse(typ.String()); !ok || got != typ {
			t.Errorf("%s is read as %s, %v", typ, got, ok)
		}
	}
	if _, ok := Parse("f64"); ok {
		t.Error("f64 is read")
	}
}

// BenchmarkConvert converts 1 Mi elements; the rate is of the float32 side.
func BenchmarkConvert(b *testing.B) {
	const cols = 128
	in := make([]float32, 1<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range in {
		in[i] = float32(rng.NormFloat64())
	}
	scale := slices.Repeat([]float32{4.0 / 127}, cols)
	for _, typ := range []Type{F32, F16, BF16, I8} {
		table := Table{typ, cols, make([]byte, len(in)*typ.SizeBytes()), scale}
		b.Run(fmt.Sprintf("encode/%s", typ), func(b *testing.B) {
			b.SetBytes(int64(len(in) * 4))
			for b.Loop() {
				Encode(table.Data, in, typ, scale)
			}
		})
		out := make([]float32, len(in))
		b.Run(fmt.Sprintf("decode/%s", typ), func(b *testing.B) {
			b.SetBytes(int64(len(in) * 4))
			for b.Loop() {
				table.Decode(out, 0)
			}
		})
		list := make([]int32, len(in)/cols)
		for i := range list {
			list[i] = rng.Int32N(int32(len(list)))
		}
		b.Run(fmt.Sprintf("gather/%s", typ), func(b *testing.B) {
			b.SetBytes(int64(len(in) * 4))
			for b.Loop() {
				table.Gather(out, list)
			}
		})
	}
}
