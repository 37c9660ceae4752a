// Package conformance is the test suite that every backend passes. The references are
// plain loops in float64 written from the comments of backend.Backend; gradients are checked
// against finite differences too.
//
// A tolerance is given as a multiple of the sum of the absolute terms: 2e-6 covers
// float32 sums of the lengths used here in any fixed order.
package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prelift/prelift/trainer/internal/backend"
)

// New makes a fresh backend with a number of host threads (a device may ignore it).
type New func(threads int) backend.Backend

const tolerance = 2e-6

// Run runs the suite.
func Run(t *testing.T, newBackend New) {
	for _, c := range []struct {
		name string
		test func(*testing.T, backend.Backend)
	}{
		{"Memory", testMemory},
		{"Elements", testElements},
		{"Gather", testGather},
		{"GEMM", testGEMM},
		{"SpMM", testSpMM},
		{"SpMMRange", testSpMMRange},
		{"BiasAct", testBiasAct},
		{"Dropout", testDropout},
		{"ColSums", testColSums},
		{"SoftmaxCE", testSoftmaxCE},
		{"SigmoidBCE", testSigmoidBCE},
		{"LossValues", testLossValues},
		{"Adam", testAdam},
		{"Shapes", testShapes},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, threads := range []int{1, 2} {
				b := newBackend(threads)
				c.test(t, b)
				if err := b.Sync(); err != nil {
					t.Errorf("threads=%d: %v", threads, err)
				}
				if err := b.Close(); err != nil {
					t.Errorf("threads=%d: close: %v", threads, err)
				}
			}
		})
	}
	t.Run("Threads", func(t *testing.T) { testThreads(t, newBackend) })
	t.Run("Closed", func(t *testing.T) { testClosed(t, newBackend) })
}

// guard is what the rows around an output hold; it must survive.
const guard = -12345.5

// output is a matrix whose storage has a guard row on both sides.
type output struct {
	backend.Matrix
	whole backend.Matrix
}

// newOutput makes a guarded matrix, filled with junk that an operation must overwrite,
// or with init.
func newOutput(b backend.Backend, rows, cols int, init []float32) output {
	whole := b.Alloc(rows+2, cols)
	data := make([]float32, (rows+2)*cols)
	for i := range data {
		data[i] = guard
	}
	for i := range rows * cols {
		data[cols+i] = 777
		if init != nil {
			data[cols+i] = init[i]
		}
	}
	b.Upload(whole, data)
	return output{Matrix: whole.Slice(1, rows), whole: whole}
}

// read downloads an output and checks its guard rows.
func (o output) read(t *testing.T, b backend.Backend, what string) []float32 {
	t.Helper()
	data := make([]float32, o.whole.Rows*o.whole.Cols)
	if err := b.Download(data, o.whole); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	cols := o.whole.Cols
	for j := range cols {
		if data[j] != guard || data[len(data)-cols+j] != guard {
			t.Fatalf("%s: a guard cell beside the output was written", what)
		}
	}
	b.Free(o.whole)
	return data[cols : len(data)-cols]
}

func upload(b backend.Backend, rows, cols int, data []float32) backend.Matrix {
	m := b.Alloc(rows, cols)
	b.Upload(m, data)
	return m
}

func download(t *testing.T, b backend.Backend, m backend.Matrix) []float32 {
	t.Helper()
	data := make([]float32, m.Rows*m.Cols)
	if err := b.Download(data, m); err != nil {
		t.Fatal(err)
	}
	return data
}

// random gives n values in [-1, 1); a share of them is 0.
func random(r *rand.Rand, n int, zeros float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		if r.Float64() >= zeros {
			x[i] = 2*r.Float32() - 1
		}
	}
	return x
}

// near compares got with want; size is the sum of the absolute terms behind each value.
func near(t *testing.T, what string, got []float32, want, size []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		s := math.Abs(want[i])
		if size != nil {
			s = size[i]
		}
		if !(math.Abs(float64(got[i])-want[i]) <= tolerance*s+1e-30) {
			t.Fatalf("%s: element %d: got %v, want %v (size %v)", what, i, got[i], want[i], s)
		}
	}
}

func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d: got %v (%#x), want %v (%#x)", what, i,
				got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	f()
}

// shapes that bite: empty, single, around four (unrolling), one past a chunk of 256 rows.
var rowCounts = []int{0, 1, 3, 4, 5, 257}
var colCounts = []int{1, 3, 4, 7, 8, 17}

func testMemory(t *testing.T, b backend.Backend) {
	if b.Name() == "" || b.KernelSet() == "" {
		t.Error("name or kernel set is empty")
	}
	m := b.Alloc(3, 2)
	same(t, "Alloc", download(t, b, m), make([]float32, 6))
	data := []float32{1, 2, 3, 4, 5, 6}
	b.Upload(m, data)
	same(t, "Upload", download(t, b, m), data)
	same(t, "Slice", download(t, b, m.Slice(1, 2)), data[2:])
	same(t, "empty Slice", download(t, b, m.Slice(3, 0)), nil)
	b.Free(m)

	w := b.Wrap(data, 2, 3)
	b.Scale(w, 2)
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	same(t, "Wrap", data, []float32{2, 4, 6, 8, 10, 12})

	// Scratch matrices of one step don't overlap, before and after the arena has grown.
	for step := range 3 {
		var ms []backend.Matrix
		for i, size := range []int{1, 100, 0, 17, 4096, 3} {
			m := b.Scratch(size, 3)
			ms = append(ms, m)
			b.Zero(m)
			fill := make([]float32, size*3)
			for j := range fill {
				fill[j] = float32(i + 1)
			}
			b.Upload(m, fill)
		}
		for i, m := range ms {
			for _, v := range download(t, b, m) {
				if v != float32(i+1) {
					t.Fatalf("step %d: scratch matrix %d holds %v", step, i, v)
				}
			}
		}
		b.ResetScratch()
	}
}

func testElements(t *testing.T, b backend.Backend) {
	for _, n := range []int{0, 1, 1000, 70001} {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		x, y := random(r, n, 0.1), random(r, n, 0.1)
		mx := upload(b, n, 1, x)
		out := newOutput(b, n, 1, y)
		b.Add(out.Matrix, 0.5, mx)
		want, size := make([]float64, n), make([]float64, n)
		for i := range x {
			want[i] = float64(y[i]) + 0.5*float64(x[i])
			size[i] = math.Abs(float64(y[i])) + math.Abs(float64(x[i]))
		}
		near(t, "Add", out.read(t, b, "Add"), want, size)

		out = newOutput(b, n, 1, y)
		b.Add(out.Matrix, 1, out.Matrix)
		for i := range want {
			want[i] = 2 * float64(y[i])
		}
		near(t, "Add onto itself", out.read(t, b, "Add"), want, nil)

		out = newOutput(b, n, 1, nil)
		b.Copy(out.Matrix, mx)
		same(t, "Copy", out.read(t, b, "Copy"), x)

		out = newOutput(b, n, 1, x)
		b.Scale(out.Matrix, -3)
		for i := range want {
			want[i] = -3 * float64(x[i])
		}
		near(t, "Scale", out.read(t, b, "Scale"), want, nil)

		out = newOutput(b, n, 1, x)
		b.Zero(out.Matrix)
		same(t, "Zero", out.read(t, b, "Zero"), make([]float32, n))
		b.Free(mx)
	}
}

func testGather(t *testing.T, b backend.Backend) {
	r := rand.New(rand.NewPCG(2, 0))
	for _, rows := range rowCounts {
		for _, cols := range colCounts {
			what := fmt.Sprintf("rows=%d cols=%d", rows, cols)
			table := random(r, 5*cols, 0)
			pick := make([]int32, rows) // repeats come of themselves
			var want []float32
			for i := range pick {
				pick[i] = r.Int32N(5)
				want = append(want, table[int(pick[i])*cols:(int(pick[i])+1)*cols]...)
			}
			out := newOutput(b, rows, cols, nil)
			b.Gather(out.Matrix, upload(b, 5, cols, table), pick)
			same(t, what, out.read(t, b, what), want)
		}
	}
}

func testGEMM(t *testing.T, b backend.Backend) {
	r := rand.New(rand.NewPCG(3, 0))
	dims := [][3]int{ // m, n, k
		{0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 1, 1}, {1, 5, 3}, {2, 4, 4}, {5, 3, 129}, {65, 7, 5},
		{130, 17, 64}, {3, 513, 3}, {67, 47, 131}, {128, 16, 300},
	}
	for _, d := range dims {
		m, n, k := d[0], d[1], d[2]
		for _, zeros := range []float64{0, 0.5, 0.97, 1} {
			for _, form := range []backend.Form{backend.NN, backend.TN, backend.NT} {
				for _, accumulate := range []bool{false, true} {
					what := fmt.Sprintf("%s %dx%dx%d zeros=%v accumulate=%v", form, m, n, k, zeros, accumulate)
					a, w, init := random(r, m*k, zeros), random(r, k*n, 0), random(r, m*n, 0)
					ar, ac, br, bc := m, k, k, n
					ai := func(i, l int) float64 { return float64(a[i*k+l]) }
					bi := func(l, j int) float64 { return float64(w[l*n+j]) }
					if form == backend.TN {
						ar, ac = k, m
						ai = func(i, l int) float64 { return float64(a[l*m+i]) }
					}
					if form == backend.NT {
						br, bc = n, k
						bi = func(l, j int) float64 { return float64(w[j*k+l]) }
					}
					want, size := make([]float64, m*n), make([]float64, m*n)
					for i := range m {
						for j := range n {
							if accumulate {
								want[i*n+j] = float64(init[i*n+j])
								size[i*n+j] = math.Abs(want[i*n+j])
							}
							for l := range k {
								want[i*n+j] += ai(i, l) * bi(l, j)
								size[i*n+j] += math.Abs(ai(i, l) * bi(l, j))
							}
						}
					}
					out := newOutput(b, m, n, init)
					b.GEMM(form, accumulate, out.Matrix, upload(b, ar, ac, a), upload(b, br, bc, w))
					near(t, what, out.read(t, b, what), want, size)
				}
			}
		}
		b.ResetScratch()
	}
}

// MakeBlock draws a random training block with its transpose: the given numbers of dst
// and src and the number of edges of each row, repeats allowed.
func MakeBlock(r *rand.Rand, numDst, numSrc int, degree func(d int) int) *backend.Block {
	blk := &backend.Block{NumDst: numDst, NumSrc: numSrc, Indptr: make([]int64, numDst+1)}
	for d := range numDst {
		if numSrc > 0 {
			for range degree(d) {
				blk.Indices = append(blk.Indices, r.Int32N(int32(numSrc)))
			}
		}
		blk.Indptr[d+1] = int64(len(blk.Indices))
	}
	AddTranspose(blk)
	return blk
}

// AddTranspose fills the T fields from the CSR, edges of a src in edge order: a slow
// obvious version for tests.
func AddTranspose(blk *backend.Block) {
	blk.TIndptr = make([]int64, blk.NumSrc+1)
	blk.TIndices = make([]int32, 0, len(blk.Indices))
	blk.TEdge = make([]int64, 0, len(blk.Indices))
	lists := make([][][2]int64, blk.NumSrc)
	for d := range blk.NumDst {
		for e := blk.Indptr[d]; e < blk.Indptr[d+1]; e++ {
			s := blk.Indices[e]
			lists[s] = append(lists[s], [2]int64{int64(d), e})
		}
	}
	for s, list := range lists {
		for _, de := range list {
			blk.TIndices = append(blk.TIndices, int32(de[0]))
			blk.TEdge = append(blk.TEdge, de[1])
		}
		blk.TIndptr[s+1] = int64(len(blk.TIndices))
	}
}

func pick(a []float32, i int, none float64) float64 {
	if a == nil {
		return none
	}
	return float64(a[i])
}

// refSpMM is the definition of SpMM in float64; size sums absolute terms.
func refSpMM(blk *backend.Block, c *backend.Coef, x []float32, dim int) (out, size []float64) {
	out, size = make([]float64, blk.NumDst*dim), make([]float64, blk.NumDst*dim)
	for d := range blk.NumDst {
		for j := range dim {
			at := d*dim + j
			for e := blk.Indptr[d]; e < blk.Indptr[d+1]; e++ {
				s := int(blk.Indices[e])
				v := pick(c.Dst, d, 1) * pick(c.Importance, d, 1) * pick(c.Edge, int(e), 1) * pick(c.Src, s, 1) * float64(x[s*dim+j])
				out[at] += v
				size[at] += math.Abs(v)
			}
			v := pick(c.Self, d, 0) * float64(x[(blk.DstStart+d)*dim+j])
			out[at] += v
			size[at] += math.Abs(v)
		}
	}
	return out, size
}

// refSpMMBackward scatters: the definition of a gradient, without the transpose.
func refSpMMBackward(blk *backend.Block, c *backend.Coef, dout []float32, dim int) (dx, size []float64) {
	dx, size = make([]float64, blk.NumSrc*dim), make([]float64, blk.NumSrc*dim)
	for d := range blk.NumDst {
		for j := range dim {
			g := float64(dout[d*dim+j])
			for e := blk.Indptr[d]; e < blk.Indptr[d+1]; e++ {
				s := int(blk.Indices[e])
				v := pick(c.Dst, d, 1) * pick(c.Importance, d, 1) * pick(c.Edge, int(e), 1) * pick(c.Src, s, 1) * g
				dx[s*dim+j] += v
				size[s*dim+j] += math.Abs(v)
			}
			v := pick(c.Self, d, 0) * g
			dx[d*dim+j] += v
			size[d*dim+j] += math.Abs(v)
		}
	}
	return dx, size
}

// coefs lists combinations of present and absent factors.
func coefs(r *rand.Rand, blk *backend.Block) map[string]*backend.Coef {
	src, dst := random(r, blk.NumSrc, 0), random(r, blk.NumDst, 0)
	self, imp := random(r, blk.NumDst, 0.3), random(r, blk.NumDst, 0)
	edge := random(r, len(blk.Indices), 0)
	return map[string]*backend.Coef{
		"none": {},
		"gcn":  {Src: src, Dst: dst, Self: self},
		"mean": {Dst: dst},
		"edge": {Edge: edge, Self: self},
		"imp":  {Src: src, Importance: imp},
		"all":  {Src: src, Dst: dst, Self: self, Edge: edge, Importance: imp},
		"self": {Self: self},
	}
}

func testSpMM(t *testing.T, b backend.Backend) {
	r := rand.New(rand.NewPCG(4, 0))
	blocks := map[string]*backend.Block{
		"no rows":       MakeBlock(r, 0, 0, nil),
		"no dst":        MakeBlock(r, 0, 3, nil),
		"one row":       MakeBlock(r, 1, 1, func(int) int { return 1 }),
		"no edges":      MakeBlock(r, 3, 5, func(int) int { return 0 }),
		"square":        MakeBlock(r, 9, 9, func(d int) int { return d % 5 }),
		"empty rows":    MakeBlock(r, 20, 40, func(d int) int { return d % 2 * 6 }),
		"hub":           MakeBlock(r, 30, 50, func(d int) int { return 1 + d/29*400 }),
		"repeated srcs": MakeBlock(r, 8, 8, func(int) int { return 11 }),
		"large":         MakeBlock(r, 500, 900, func(d int) int { return d % 17 }),
	}
	for name, blk := range blocks {
		for kind, c := range coefs(r, blk) {
			for _, dim := range []int{1, 4, 7, 16} {
				what := fmt.Sprintf("%s, %s, dim %d", name, kind, dim)
				x, dout := random(r, blk.NumSrc*dim, 0), random(r, blk.NumDst*dim, 0)
				out := newOutput(b, blk.NumDst, dim, nil)
				b.SpMM(out.Matrix, blk, c, upload(b, blk.NumSrc, dim, x))
				want, size := refSpMM(blk, c, x, dim)
				near(t, what, out.read(t, b, what), want, size)

				dx := newOutput(b, blk.NumSrc, dim, nil)
				b.SpMMBackward(dx.Matrix, blk, c, upload(b, blk.NumDst, dim, dout))
				want, size = refSpMMBackward(blk, c, dout, dim)
				near(t, what+", backward", dx.read(t, b, what), want, size)
			}
		}
	}
}

// testSpMMRange cuts a square graph into evaluation blocks of consecutive rows; together
// they must give the bits of the whole.
func testSpMMRange(t *testing.T, b backend.Backend) {
	r := rand.New(rand.NewPCG(5, 0))
	const n, dim = 101, 6
	whole := MakeBlock(r, n, n, func(d int) int { return d % 9 })
	c := coefs(r, whole)["all"]
	x := random(r, n*dim, 0)
	mx := upload(b, n, dim, x)
	full := newOutput(b, n, dim, nil)
	b.SpMM(full.Matrix, whole, c, mx)
	want := full.read(t, b, "whole")
	for _, step := range []int{1, 7, 100, 101} {
		out := newOutput(b, n, dim, nil)
		for lo := 0; lo < n; lo += step {
			rows := min(step, n-lo)
			first, last := whole.Indptr[lo], whole.Indptr[lo+rows]
			blk := &backend.Block{NumDst: rows, NumSrc: n, DstStart: lo, Indices: whole.Indices[first:last]}
			for _, p := range whole.Indptr[lo : lo+rows+1] {
				blk.Indptr = append(blk.Indptr, p-first)
			}
			b.SpMM(out.Slice(lo, rows), blk, &backend.Coef{
				Src: c.Src, Dst: c.Dst[lo : lo+rows], Self: c.Self[lo : lo+rows],
				Edge: c.Edge[first:last], Importance: c.Importance[lo : lo+rows],
			}, mx)
		}
		same(t, fmt.Sprintf("blocks of %d rows", step), out.read(t, b, "blocks"), want)
	}
}

func testBiasAct(t *testing.T, b backend.Backend) {
	r := rand.New(rand.NewPCG(6, 0))
	for _, rows := range rowCounts {
		for _, cols := range colCounts {
			for _, relu := range []bool{false, true} {
				for _, p := range []float64{0, 0.5, 0.1} {
					for _, withBias := range []bool{true, false} {
						what := fmt.Sprintf("%dx%d relu=%v p=%v bias=%v", rows, cols, relu, p, withBias)
						e := backend.Epilogue{ReLU: relu, Drop: backend.MakeDrop(p, 99)}
						x, bias, dout := random(r, rows*cols, 0), random(r, cols, 0), random(r, rows*cols, 0)
						want, dwant, size := make([]float64, len(x)), make([]float64, len(x)), make([]float64, len(x))
						for i := range x {
							v, slope := float64(x[i]), 1.0
							if withBias {
								v = float64(x[i] + bias[i%cols]) // rounded, so that its sign is the kernel's
							}
							if relu && v <= 0 {
								v, slope = 0, 0
							}
							if e.Drop.Keep(i/cols, i%cols, cols) {
								slope *= float64(e.Drop.Scale())
								v *= float64(e.Drop.Scale())
							} else {
								v, slope = 0, 0
							}
							want[i], dwant[i], size[i] = v, slope*float64(dout[i]), 4
						}
						var mb backend.Matrix
						if withBias {
							mb = upload(b, 1, cols, bias)
						}
						out := newOutput(b, rows, cols, nil)
						b.BiasAct(out.Matrix, upload(b, rows, cols, x), mb, e)
						dx := newOutput(b, rows, cols, nil)
						b.BiasActBackward(dx.Matrix, upload(b, rows, cols, dout), out.Matrix, e)
						inplace := newOutput(b, rows, cols, dout)
						b.BiasActBackward(inplace.Matrix, inplace.Matrix, out.Matrix, e)
						got := out.read(t, b, what)
						near(t, what, got, want, size)
						dgot := dx.read(t, b, what)
						near(t, what+" backward", dgot, dwant, nil)
						same(t, what+" backward in place", inplace.read(t, b, what), dgot)
						alias := newOutput(b, rows, cols, x)
						b.BiasAct(alias.Matrix, alias.Matrix, mb, e)
						same(t, what+" in place", alias.read(t, b, what), got)
					}
				}
			}
		}
	}
}

func testDropout(t *testing.T, b backend.Backend) {
	r := rand.New(rand.NewPCG(7, 0))
	for _, rows := range rowCounts {
		for _, cols := range colCounts {
			for _, p := range []float64{0, 0.5, 0.9} {
				what := fmt.Sprintf("%dx%d p=%v", rows, cols, p)
				d := backend.MakeDrop(p, 5)
				x := random(r, rows*cols, 0.5)
				want := make([]float64, len(x))
				for i := range x {
					if d.Keep(i/cols, i%cols, cols) {
						want[i] = float64(x[i]) * float64(d.Scale())
					}
				}
				out := newOutput(b, rows, cols, nil)
				b.Dropout(out.Matrix, upload(b, rows, cols, x), d)
				got := out.read(t, b, what)
				near(t, what, got, want, nil)
				out = newOutput(b, rows, cols, x)
				b.Dropout(out.Matrix, out.Matrix, d)
				same(t, what+" in place", out.read(t, b, what), got)
			}
		}
	}

	// The kept share is right and another key gives another mask: 6 standard deviations.
	const n, cols = 40000, 10
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	m := upload(b, n/cols, cols, ones)
	count := func(key uint64) (kept int, data []float32) {
		out := b.Alloc(n/cols, cols)
		b.Dropout(out, m, backend.MakeDrop(0.3, key))
		data = download(t, b, out)
		for _, v := range data {
			if v != 0 {
				kept++
			}
		}
		return kept, data
	}
	k1, d1 := count(backend.Key(1, 1, 0))
	k2, d2 := count(backend.Key(1, 2, 0))
	differ := 0
	for i := range d1 {
		if d1[i] != d2[i] {
			differ++
		}
	}
	near6 := func(what string, got int, p float64) {
		if math.Abs(float64(got)-p*n) > 6*math.Sqrt(p*(1-p)*n) {
			t.Errorf("%s: %d of %d, want a share of %v", what, got, n, p)
		}
	}
	near6("kept", k1, 0.7)
	near6("kept", k2, 0.7)
	near6("elements that differ between steps", differ, 2*0.3*0.7)
}

func testColSums(t *testing.T, b backend.Backend) {
	r := rand.New(rand.NewPCG(8, 0))
	for _, rows := range append([]int{1023}, rowCounts...) {
		for _, cols := range colCounts {
			x := random(r, rows*cols, 0)
			want, size := make([]float64, cols), make([]float64, cols)
			for i, v := range x {
				want[i%cols] += float64(v)
				size[i%cols] += math.Abs(float64(v))
			}
			what := fmt.Sprintf("%dx%d", rows, cols)
			out := newOutput(b, 1, cols, nil)
			b.ColSums(out.Matrix, upload(b, rows, cols, x))
			near(t, what, out.read(t, b, what), want, size)
		}
	}
}

// checkLoss runs a loss and compares its sum, count and gradient with a reference, and
// the gradient with central differences of the backend's own loss.
func checkLoss(t *testing.T, b backend.Backend, what string, rows, cols int, logits []float32, tg *backend.Targets,
	op func(dlogits, logits backend.Matrix, tg *backend.Targets), wantSum float64, wantCount int64, wantGrad []float64,
) {
	t.Helper()
	lossOf := func(z []float32) float64 {
		op(backend.Matrix{}, upload(b, rows, cols, z), tg)
		sum, count, err := b.TakeLoss()
		if err != nil {
			t.Fatal(err)
		}
		if count != wantCount {
			t.Fatalf("%s: count %d, want %d", what, count, wantCount)
		}
		return sum
	}
	if got := lossOf(logits); !(math.Abs(got-wantSum) <= 1e-5*(1+math.Abs(wantSum))) {
		t.Fatalf("%s: loss %v, want %v", what, got, wantSum)
	}
	grad := newOutput(b, rows, cols, nil)
	op(grad.Matrix, upload(b, rows, cols, logits), tg)
	alias := newOutput(b, rows, cols, logits)
	op(alias.Matrix, alias.Matrix, tg)
	if sum, count, _ := b.TakeLoss(); count != 2*wantCount || !(math.Abs(sum-2*wantSum) <= 2e-5*(1+math.Abs(wantSum))) {
		t.Fatalf("%s: two losses give %v of %d", what, sum, count)
	}
	got := grad.read(t, b, what)
	size := make([]float64, len(got))
	for i := range size {
		size[i] = 1
	}
	near(t, what+" gradient", got, wantGrad, size)
	same(t, what+" gradient in place", alias.read(t, b, what), got)
	if wantCount == 0 {
		return
	}
	for i := 0; i < len(logits); i += 1 + len(logits)/5 {
		const h = 1.0 / 64
		z := append([]float32(nil), logits...)
		z[i] += h
		up := lossOf(z)
		z[i] = logits[i] - h
		slope := (up - lossOf(z)) / (2 * h) / float64(wantCount)
		if math.Abs(slope-float64(got[i])) > 1e-4 { // h²/6 times the third derivative, below 0.1 x h²
			t.Fatalf("%s: gradient of element %d is %v, differences give %v", what, i, got[i], slope)
		}
	}
}

func testSoftmaxCE(t *testing.T, b backend.Backend) {
	r := rand.New(rand.NewPCG(9, 0))
	for _, rows := range rowCounts {
		for _, cols := range []int{1, 2, 7, 47} {
			for _, mask := range []string{"all", "some", "none"} {
				logits := random(r, rows*cols, 0)
				tg := &backend.Targets{Class: make([]int32, rows)}
				if mask != "all" {
					tg.Mask = make([]uint8, rows)
				}
				var sum float64
				var count int64
				grad := make([]float64, len(logits))
				for i := range rows {
					tg.Class[i] = r.Int32N(int32(cols)+1) - 1
					if mask == "some" {
						tg.Mask[i] = uint8(r.IntN(3))
					}
					if tg.Class[i] >= 0 && (tg.Mask == nil || tg.Mask[i] != 0) {
						count++
					}
				}
				for i := range rows {
					if tg.Class[i] < 0 || tg.Mask != nil && tg.Mask[i] == 0 {
						continue
					}
					var z float64
					for _, v := range logits[i*cols : (i+1)*cols] {
						z += math.Exp(float64(v))
					}
					sum += math.Log(z) - float64(logits[i*cols+int(tg.Class[i])])
					for j := range cols {
						grad[i*cols+j] = math.Exp(float64(logits[i*cols+j])) / z / float64(count)
					}
					grad[i*cols+int(tg.Class[i])] -= 1 / float64(count)
				}
				checkLoss(t, b, fmt.Sprintf("%dx%d mask %s", rows, cols, mask), rows, cols, logits, tg, b.SoftmaxCE, sum, count, grad)
			}
		}
	}
}

func testSigmoidBCE(t *testing.T, b backend.Backend) {
	r := rand.New(rand.NewPCG(10, 0))
	for _, rows := range rowCounts {
		for _, cols := range []int{1, 5} {
			for _, byClass := range []bool{false, true} {
				if byClass && cols != 1 {
					continue
				}
				logits := random(r, rows*cols, 0)
				tg := &backend.Targets{Mask: make([]uint8, rows)}
				value := make([]int, rows*cols) // 0, 1, or 2 for unlabelled
				for i := range value {
					value[i] = r.IntN(3)
				}
				if byClass {
					tg.Class = make([]int32, rows)
					for i, v := range value {
						tg.Class[i] = []int32{0, 1, -1}[v]
					}
				} else {
					tg.Bits = make([]uint8, rows*cols)
					for i, v := range value {
						tg.Bits[i] = []uint8{0, 1, 255}[v]
					}
				}
				var sum float64
				var count int64
				for i := range rows {
					tg.Mask[i] = uint8(r.IntN(2))
				}
				for i, v := range value {
					if v < 2 && tg.Mask[i/cols] != 0 {
						count++
						p := 1 / (1 + math.Exp(-float64(logits[i])))
						sum -= float64(v)*math.Log(p) + float64(1-v)*math.Log(1-p)
					}
				}
				grad := make([]float64, len(logits))
				for i, v := range value {
					if v < 2 && tg.Mask[i/cols] != 0 {
						grad[i] = (1/(1+math.Exp(-float64(logits[i]))) - float64(v)) / float64(count)
					}
				}
				checkLoss(t, b, fmt.Sprintf("%dx%d class=%v", rows, cols, byClass), rows, cols, logits, tg, b.SigmoidBCE, sum, count, grad)
			}
		}
	}
}

// testLossValues checks known values: equal logits cost ln(classes), and extreme logits
// stay finite.
func testLossValues(t *testing.T, b backend.Backend) {
	take := func() (float64, int64) {
		sum, count, err := b.TakeLoss()
		if err != nil {
			t.Fatal(err)
		}
		return sum, count
	}
	b.SoftmaxCE(backend.Matrix{}, b.Alloc(10, 2), &backend.Targets{Class: make([]int32, 10)})
	if sum, count := take(); count != 10 || math.Abs(sum/10-math.Ln2) > 1e-9 {
		t.Errorf("zero logits, 2 classes: %v over %d, want ln 2", sum/10, count)
	}
	z := upload(b, 2, 2, []float32{1e4, -1e4, -1e4, 1e4})
	b.SoftmaxCE(z, z, &backend.Targets{Class: []int32{0, 0}})
	if sum, _ := take(); math.Abs(sum-2e4) > 1e-6 {
		t.Errorf("extreme logits: loss %v, want 20000", sum)
	}
	same(t, "extreme gradient", download(t, b, z), []float32{0, 0, -0.5, 0.5})
	z = upload(b, 1, 2, []float32{1e4, -1e4})
	b.SigmoidBCE(z, z, &backend.Targets{Bits: []uint8{1, 1}})
	if sum, _ := take(); math.Abs(sum-1e4) > 1e-6 {
		t.Errorf("extreme logits: logistic loss %v, want 10000", sum)
	}
	same(t, "extreme logistic gradient", download(t, b, z), []float32{0, -0.5})
}

func testAdam(t *testing.T, b backend.Backend) {
	r := rand.New(rand.NewPCG(11, 0))
	for _, n := range []int{0, 1, 33, 5000} {
		for _, decoupled := range []bool{false, true} {
			p := random(r, n, 0)
			p64, m64, v64 := make([]float64, n), make([]float64, n), make([]float64, n)
			for i := range p {
				p64[i] = float64(p[i])
			}
			mp, mm, mv := newOutput(b, n, 1, p), newOutput(b, n, 1, make([]float32, n)), newOutput(b, n, 1, make([]float32, n))
			s := backend.AdamStep{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.1, Decoupled: decoupled}
			for s.Step = 1; s.Step <= 5; s.Step++ {
				g := random(r, n, 0)
				b.Adam(mp.Matrix, mm.Matrix, mv.Matrix, upload(b, n, 1, g), s)
				for i := range p64 {
					d := float64(g[i])
					if decoupled {
						p64[i] *= 1 - s.LR*s.WeightDecay
					} else {
						d += s.WeightDecay * p64[i]
					}
					m64[i] = s.Beta1*m64[i] + (1-s.Beta1)*d
					v64[i] = s.Beta2*v64[i] + (1-s.Beta2)*d*d
					mh := m64[i] / (1 - math.Pow(s.Beta1, float64(s.Step)))
					vh := v64[i] / (1 - math.Pow(s.Beta2, float64(s.Step)))
					p64[i] -= s.LR * mh / (math.Sqrt(vh) + s.Eps)
				}
			}
			size := make([]float64, n)
			for i := range size {
				size[i] = 10 // five steps of 0.01, whose direction carries the rounding of m and v
			}
			what := fmt.Sprintf("n=%d decoupled=%v", n, decoupled)
			near(t, what, mp.read(t, b, what), p64, size)
			near(t, what+" m", mm.read(t, b, what), m64, size)
			near(t, what+" v", mv.read(t, b, what), v64, size)
		}
	}
}

func testShapes(t *testing.T, b backend.Backend) {
	m23, m32, m22 := b.Alloc(2, 3), b.Alloc(3, 2), b.Alloc(2, 2)
	blk := &backend.Block{NumDst: 2, NumSrc: 3, Indptr: []int64{0, 0, 0}}
	for what, f := range map[string]func(){
		"Upload":         func() { b.Upload(m23, make([]float32, 5)) },
		"Download":       func() { _ = b.Download(make([]float32, 7), m23) },
		"Slice":          func() { m23.Slice(1, 2) },
		"Copy":           func() { b.Copy(m23, m32) },
		"Add":            func() { b.Add(m23, 1, m32) },
		"Gather":         func() { b.Gather(m23, m32, []int32{0, 1}) },
		"Gather rows":    func() { b.Gather(m22, m32, []int32{0}) },
		"GEMM NN":        func() { b.GEMM(backend.NN, false, m22, m23, m23) },
		"GEMM TN":        func() { b.GEMM(backend.TN, false, m22, m23, m32) },
		"GEMM NT":        func() { b.GEMM(backend.NT, false, m23, m23, m23) },
		"SpMM out":       func() { b.SpMM(m32, blk, &backend.Coef{}, m32) },
		"SpMM coef":      func() { b.SpMM(m22, blk, &backend.Coef{Src: make([]float32, 2)}, m32) },
		"SpMMBackward":   func() { b.SpMMBackward(m32, blk, &backend.Coef{}, m22) }, // no transpose
		"BiasAct":        func() { b.BiasAct(m23, m23, b.Alloc(1, 2), backend.Epilogue{}) },
		"ColSums":        func() { b.ColSums(b.Alloc(1, 2), m23) },
		"SoftmaxCE":      func() { b.SoftmaxCE(m23, m23, &backend.Targets{Class: make([]int32, 3)}) },
		"SoftmaxCE mask": func() { b.SoftmaxCE(m23, m23, &backend.Targets{Class: make([]int32, 2), Mask: make([]uint8, 1)}) },
		"SigmoidBCE":     func() { b.SigmoidBCE(m23, m23, &backend.Targets{Bits: make([]uint8, 5)}) },
		"Adam":           func() { b.Adam(m23, m23, m23, m32, backend.AdamStep{Step: 1}) },
	} {
		mustPanic(t, what, f)
	}
}

// testThreads runs one step of everything, large enough to be cut into parts, and wants the
// same bits from 1, 2 and 8 threads.
func testThreads(t *testing.T, newBackend New) {
	const n, in, hidden = 3001, 37, 29
	step := func(threads int) (all [][]float32, losses []float64) {
		b := newBackend(threads)
		defer b.Close()
		r := rand.New(rand.NewPCG(12, 0))
		blk := MakeBlock(r, n, n, func(d int) int { return d % 13 * (1 + d/(n-1)*300) })
		c := coefs(r, blk)["all"]
		x, w, bias := upload(b, n, in, random(r, n*in, 0.6)), upload(b, in, hidden, random(r, in*hidden, 0)), upload(b, 1, hidden, random(r, hidden, 0))
		class, rows := make([]int32, n), make([]int32, n)
		bits := make([]uint8, n*hidden)
		for i := range class {
			class[i], rows[i] = r.Int32N(hidden), r.Int32N(n)
		}
		for i := range bits {
			bits[i] = uint8(r.IntN(2))
		}
		keep := func(m backend.Matrix) { all = append(all, download(t, b, m)) }
		loss := func() {
			sum, _, err := b.TakeLoss()
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, sum)
		}
		g := b.Alloc(n, in)
		b.Gather(g, x, rows)
		b.Dropout(g, g, backend.MakeDrop(0.5, 3))
		keep(g)
		y, z := b.Alloc(n, hidden), b.Alloc(n, hidden)
		b.GEMM(backend.NN, false, y, g, w)
		keep(y)
		b.SpMM(z, blk, c, y)
		keep(z)
		e := backend.Epilogue{ReLU: true, Drop: backend.MakeDrop(0.25, 4)}
		b.BiasAct(y, z, bias, e)
		keep(y)
		dz, dy := b.Alloc(n, hidden), b.Alloc(n, hidden)
		b.SigmoidBCE(dz, y, &backend.Targets{Bits: bits})
		loss()
		keep(dz)
		b.SoftmaxCE(dz, y, &backend.Targets{Class: class})
		loss()
		keep(dz)
		b.BiasActBackward(dz, dz, y, e)
		b.SpMMBackward(dy, blk, c, dz)
		keep(dy)
		db, dw, dx := b.Alloc(1, hidden), b.Alloc(in, hidden), b.Alloc(n, in)
		b.ColSums(db, dz)
		keep(db)
		b.GEMM(backend.TN, false, dw, g, dy)
		keep(dw)
		b.GEMM(backend.NT, true, dx, dy, w)
		keep(dx)
		b.Scale(dx, 3)
		b.Add(dx, 0.1, g)
		keep(dx)
		m, v := b.Alloc(in, hidden), b.Alloc(in, hidden)
		b.Adam(w, m, v, dw, backend.AdamStep{LR: 0.1, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.01, Step: 1})
		keep(w)
		if err := b.Sync(); err != nil {
			t.Fatal(err)
		}
		return all, losses
	}
	want, wantLosses := step(1)
	for _, threads := range []int{2, 3, 8} {
		got, losses := step(threads)
		for i := range want {
			same(t, fmt.Sprintf("threads=%d: result %d", threads, i), got[i], want[i])
		}
		for i := range losses {
			if losses[i] != wantLosses[i] {
				t.Errorf("threads=%d: loss %d is %v, want %v", threads, i, losses[i], wantLosses[i])
			}
		}
	}
}

func testClosed(t *testing.T, newBackend New) {
	b := newBackend(2)
	m := b.Alloc(2, 2)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b.Zero(m) // must not crash
	if b.Sync() == nil {
		t.Error("a closed backend reports no error")
	}
	if err := b.Close(); err != nil {
		t.Error("second Close:", err)
	}
}
