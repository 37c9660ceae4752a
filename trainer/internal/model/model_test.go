package model

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prelift/prelift/trainer/internal/backend"
	"github.com/prelift/prelift/trainer/internal/backend/conformance"
	"github.com/prelift/prelift/trainer/internal/backend/cpu"
)

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}

func host(t *testing.T, b backend.Backend, m backend.Matrix) []float32 {
	t.Helper()
	data := make([]float32, m.Rows*m.Cols)
	if err := b.Download(data, m); err != nil {
		t.Fatal(err)
	}
	return data
}

// dense is a float64 matrix for the references.
type dense struct {
	rows, cols int
	a          []float64
}

func newDense(rows, cols int) dense { return dense{rows, cols, make([]float64, rows*cols)} }

func toDense(rows, cols int, x []float32) dense {
	d := newDense(rows, cols)
	for i, v := range x {
		d.a[i] = float64(v)
	}
	return d
}

func (d dense) mul(e dense) dense {
	out := newDense(d.rows, e.cols)
	for i := range d.rows {
		for l := range d.cols {
			for j := range e.cols {
				out.a[i*e.cols+j] += d.a[i*d.cols+l] * e.a[l*e.cols+j]
			}
		}
	}
	return out
}

func (d dense) add(e dense) dense {
	out := newDense(d.rows, d.cols)
	for i := range out.a {
		out.a[i] = d.a[i] + e.a[i%len(e.a)] // a bias repeats
	}
	return out
}

func (d dense) top(rows int) dense { return dense{rows, d.cols, d.a[:rows*d.cols]} }

func (d dense) drop(dr backend.Drop) dense {
	out := newDense(d.rows, d.cols)
	for i, v := range d.a {
		if dr.Keep(i/d.cols, i%d.cols, d.cols) {
			out.a[i] = v * 65536 / float64(65536-dr.Threshold)
		}
	}
	return out
}

// adjacency is a block with its coefficients as a dense matrix [NumDst, NumSrc].
func adjacency(blk *backend.Block, c *backend.Coef) dense {
	at := func(a []float32, i int, none float64) float64 {
		if a == nil {
			return none
		}
		return float64(a[i])
	}
	m := newDense(blk.NumDst, blk.NumSrc)
	for d := range blk.NumDst {
		for e := blk.Indptr[d]; e < blk.Indptr[d+1]; e++ {
			s := int(blk.Indices[e])
			m.a[d*blk.NumSrc+s] += at(c.Dst, d, 1) * at(c.Importance, d, 1) * at(c.Edge, int(e), 1) * at(c.Src, s, 1)
		}
		m.a[d*blk.NumSrc+blk.DstStart+d] += at(c.Self, d, 0)
	}
	return m
}

// reference computes the logits in float64 from the formulas of the package comment.
func reference(m *Model, params []dense, batch Batch, x dense, train bool, step uint64) dense {
	if train {
		x = x.drop(backend.MakeDrop(m.config.InputDropout, m.dropKey(step, 0)))
	}
	for l := range m.layers {
		var y dense
		switch m.config.Kind {
		case GCN:
			y = adjacency(batch.Blocks[l], batch.Coefs[l]).mul(x).mul(params[2*l]).add(params[2*l+1])
		case SAGE:
			p := params[3*l:]
			agg := adjacency(batch.Blocks[l], batch.Coefs[l]).mul(x)
			y = x.top(batch.Blocks[l].NumDst).mul(p[0]).add(agg.mul(p[1])).add(p[2])
		case MLP:
			y = x.mul(params[2*l]).add(params[2*l+1])
		}
		if l+1 < len(m.layers) {
			for i, v := range y.a {
				y.a[i] = max(v, 0)
			}
			if train {
				y = y.drop(backend.MakeDrop(m.config.Dropout, m.dropKey(step, l+1)))
			}
		}
		x = y
	}
	return x
}

func crossEntropy(z dense, class []int32, mask []uint8) float64 {
	var sum, count float64
	for i, c := range class {
		if c < 0 || mask[i] == 0 {
			continue
		}
		var s float64
		for _, v := range z.a[i*z.cols : (i+1)*z.cols] {
			s += math.Exp(v)
		}
		sum += math.Log(s) - z.a[i*z.cols+int(c)]
		count++
	}
	return sum / count
}

// makeBatch draws a chain of blocks with sizes[0] inputs and sizes[L] seeds.
func makeBatch(r *rand.Rand, b backend.Backend, kind Kind, in int, sizes ...int) (Batch, []float32) {
	var batch Batch
	for l := 0; l+1 < len(sizes); l++ {
		blk := conformance.MakeBlock(r, sizes[l+1], sizes[l], func(d int) int { return d % 4 }) // some rows empty
		c := &backend.Coef{Src: random(r, blk.NumSrc), Dst: random(r, blk.NumDst), Self: random(r, blk.NumDst)}
		if kind == SAGE {
			c = &backend.Coef{Dst: make([]float32, blk.NumDst)}
			for d := range blk.NumDst {
				if n := blk.Indptr[d+1] - blk.Indptr[d]; n > 0 {
					c.Dst[d] = 1 / float32(n)
				}
			}
		}
		batch.Blocks, batch.Coefs = append(batch.Blocks, blk), append(batch.Coefs, c)
	}
	rows := sizes[0]
	if kind == MLP {
		batch.Blocks, batch.Coefs = nil, nil
		rows = sizes[len(sizes)-1]
	}
	x := random(r, rows*in)
	batch.X = b.Alloc(rows, in)
	b.Upload(batch.X, x)
	return batch, x
}

// TestGradients compares logits with the float64 reference and every gradient with
// central differences of the reference's loss: h = 1e-6 in float64 leaves 1e-9 or so, float32
// sums 1e-6.
func TestGradients(t *testing.T) {
	for _, kind := range Kinds {
		for _, layers := range []int{1, 2, 3} {
			for _, shape := range [][3]int{{5, 4, 3}, {9, 3, 7}, {3, 8, 2}} { // in, hidden, out: both orders of aggregate and transform
				for _, variant := range []string{"plain", "dropout", "no input transpose", "square"} {
					t.Run(fmt.Sprintf("%s/layers=%d/%v/%s", kind, layers, shape, variant), func(t *testing.T) {
						checkGradients(t, kind, layers, shape, variant)
					})
				}
			}
		}
	}
}

func checkGradients(t *testing.T, kind Kind, layers int, shape [3]int, variant string) {
	b := cpu.New(cpu.Options{Threads: 2})
	defer b.Close()
	r := rand.New(rand.NewPCG(uint64(layers), uint64(shape[0])))
	cfg := Config{Kind: kind, In: shape[0], Hidden: shape[1], Out: shape[2], Layers: layers, Seed: 7}
	if variant == "dropout" {
		cfg.Dropout, cfg.InputDropout = 0.5, 0.25
	}
	m, err := New(b, cfg)
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{23, 17, 11, 6}[3-layers:]
	if variant == "square" {
		sizes = []int{12, 12, 12, 12}[3-layers:]
	}
	batch, x := makeBatch(r, b, kind, cfg.In, sizes...)
	if variant == "no input transpose" && len(batch.Blocks) > 0 {
		blk := batch.Blocks[0]
		blk.TIndptr, blk.TIndices, blk.TEdge = nil, nil, nil
	}
	seeds := sizes[len(sizes)-1]
	class, mask := make([]int32, seeds), make([]uint8, seeds)
	for i := range class {
		class[i], mask[i] = r.Int32N(int32(cfg.Out)), uint8(r.IntN(4))
	}
	class[0], mask[0] = 0, 1
	var params []dense
	for _, p := range m.Params() {
		if p.Value.Rows == 1 && strings.HasSuffix(p.Name, "bias") { // zero biases would hide errors
			b.Upload(p.Value, random(r, p.Value.Cols))
		}
		params = append(params, toDense(p.Value.Rows, p.Value.Cols, host(t, b, p.Value)))
	}

	const step = 3
	logits := m.Forward(batch, true, step)
	want := reference(m, params, batch, toDense(batch.X.Rows, cfg.In, x), true, step)
	if logits.Rows != seeds || logits.Cols != cfg.Out {
		t.Fatalf("logits %v, want [%d, %d]", logits, seeds, cfg.Out)
	}
	for i, v := range host(t, b, logits) {
		if math.Abs(float64(v)-want.a[i]) > 1e-5*(1+math.Abs(want.a[i])) {
			t.Fatalf("logit %d: got %v, want %v", i, v, want.a[i])
		}
	}
	grad := b.Scratch(seeds, cfg.Out)
	b.SoftmaxCE(grad, logits, &backend.Targets{Class: class, Mask: mask})
	sum, count, err := b.TakeLoss()
	if err != nil {
		t.Fatal(err)
	}
	if w := crossEntropy(want, class, mask); math.Abs(sum/float64(count)-w) > 1e-5 {
		t.Fatalf("loss %v, want %v", sum/float64(count), w)
	}
	m.Backward(grad)
	for pi, p := range m.Params() {
		for i, got := range host(t, b, p.Grad) {
			const h = 1e-6
			lossAt := func(d float64) float64 {
				old := params[pi].a[i]
				defer func() { params[pi].a[i] = old }()
				params[pi].a[i] = old + d
				return crossEntropy(reference(m, params, batch, toDense(batch.X.Rows, cfg.In, x), true, step), class, mask)
			}
			want := (lossAt(h) - lossAt(-h)) / (2 * h)
			if math.Abs(float64(got)-want) > 2e-6*(1+10*math.Abs(want)) {
				t.Fatalf("%s: gradient %d is %v, want %v", p.Name, i, got, want)
			}
		}
	}

	// Evaluation draws no dropout.
	want = reference(m, params, batch, toDense(batch.X.Rows, cfg.In, x), false, step)
	for i, v := range host(t, b, m.Forward(batch, false, step)) {
		if math.Abs(float64(v)-want.a[i]) > 1e-5*(1+math.Abs(want.a[i])) {
			t.Fatalf("without dropout, logit %d: got %v, want %v", i, v, want.a[i])
		}
	}
}

// TestEvalLayer walks a whole graph in blocks of rows, layer by layer, and compares with
// one Forward over the whole graph.
func TestEvalLayer(t *testing.T) {
	const n = 53
	for _, kind := range Kinds {
		for _, widths := range [][3]int{{4, 9, 12}, {12, 7, 3}, {5, 9, 2}} {
			for _, rowsPerBlock := range []int{1, 10, n} {
				b := cpu.New(cpu.Options{Threads: 2})
				r := rand.New(rand.NewPCG(5, 5))
				m, err := New(b, Config{Kind: kind, In: widths[0], Hidden: widths[1], Out: widths[2], Layers: 2, Dropout: 0.5, Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				batch, _ := makeBatch(r, b, kind, widths[0], n, n)
				var whole *backend.Block
				if kind != MLP {
					whole = batch.Blocks[0]
					batch.Blocks = append(batch.Blocks, whole)
					batch.Coefs = append(batch.Coefs, batch.Coefs[0])
				}
				want := host(t, b, m.Forward(batch, false, 0))
				b.ResetScratch()
				x := batch.X
				for l := range m.config.Layers {
					in, outCols := m.config.Widths(l)
					var pre backend.Matrix
					if w := m.EvalWidth(l); w > 0 {
						pre = b.Alloc(n, w)
						m.EvalPrepare(l, pre.Slice(0, 20), x.Slice(0, 20))
						m.EvalPrepare(l, pre.Slice(20, n-20), x.Slice(20, n-20))
					}
					if x.Cols != in {
						t.Fatalf("layer %d input %v, want %d columns", l, x, in)
					}
					input := x
					if !m.EvalReadsInput(l) {
						input = backend.Matrix{}
					}
					out := b.Alloc(n, outCols)
					for lo := 0; lo < n; lo += rowsPerBlock {
						rows := min(rowsPerBlock, n-lo)
						blk := &backend.Block{NumDst: rows, NumSrc: n, DstStart: lo}
						c := &backend.Coef{}
						if whole != nil {
							first := whole.Indptr[lo]
							for _, p := range whole.Indptr[lo : lo+rows+1] {
								blk.Indptr = append(blk.Indptr, p-first)
							}
							blk.Indices = whole.Indices[first:whole.Indptr[lo+rows]]
							all := batch.Coefs[0]
							c.Src, c.Dst = all.Src, all.Dst[lo:lo+rows]
							if all.Self != nil {
								c.Self = all.Self[lo : lo+rows]
							}
						}
						b.ResetScratch()
						m.EvalLayer(l, out.Slice(lo, rows), blk, c, input, pre)
					}
					x = out
				}
				for i, v := range host(t, b, x) {
					if math.Abs(float64(v-want[i])) > 1e-5*(1+math.Abs(float64(want[i]))) {
						t.Fatalf("%s %v rows=%d: logit %d is %v, want %v", kind, widths, rowsPerBlock, i, v, want[i])
					}
				}
				b.Close()
			}
		}
	}
}

// TestMeanCases holds SAGE to the figures of two small graphs: nodes a, b, c on a path
// (means [2,20], [2,20], [2,20]) and two nodes without an edge (zero vectors).
func TestMeanCases(t *testing.T) {
	identity := []float32{1, 0, 0, 1}
	for _, c := range []struct {
		name string
		x    []float32
		blk  *backend.Block
		mean []float32
	}{
		{
			"path", []float32{1, 10, 2, 20, 3, 30},
			&backend.Block{NumDst: 3, NumSrc: 3, Indptr: []int64{0, 1, 3, 4}, Indices: []int32{1, 0, 2, 1}},
			[]float32{2, 20, 2, 20, 2, 20},
		},
		{
			"no edges", []float32{1, 2, 3, 4},
			&backend.Block{NumDst: 2, NumSrc: 2, Indptr: []int64{0, 0, 0}},
			[]float32{0, 0, 0, 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := cpu.New(cpu.Options{Threads: 1})
			defer b.Close()
			m, err := New(b, Config{Kind: SAGE, In: 2, Out: 2, Layers: 1})
			if err != nil {
				t.Fatal(err)
			}
			n := c.blk.NumDst
			coef := &backend.Coef{Dst: make([]float32, n)}
			for d := range n {
				if k := c.blk.Indptr[d+1] - c.blk.Indptr[d]; k > 0 {
					coef.Dst[d] = 1 / float32(k)
				}
			}
			batch := Batch{Blocks: []*backend.Block{c.blk}, Coefs: []*backend.Coef{coef}, X: b.Wrap(c.x, n, 2)}
			self, neigh := m.Params()[0], m.Params()[1]
			b.Upload(self.Value, identity)
			b.Zero(neigh.Value)
			if got := host(t, b, m.Forward(batch, true, 0)); !equal(got, c.x) {
				t.Errorf("own features: got %v, want %v", got, c.x)
			}
			b.Zero(self.Value)
			b.Upload(neigh.Value, identity)
			if got := host(t, b, m.Forward(batch, true, 0)); !equal(got, c.mean) {
				t.Errorf("mean of neighbours: got %v, want %v", got, c.mean)
			}
			grad := b.Alloc(n, 2)
			b.SoftmaxCE(grad, m.Forward(batch, true, 0), &backend.Targets{Class: make([]int32, n)})
			m.Backward(grad)
			sum, _, err := b.TakeLoss()
			if err != nil || math.IsNaN(sum) || math.IsInf(sum, 0) {
				t.Errorf("loss %v, %v", sum, err)
			}
		})
	}
}

func equal(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestCheckBatch(t *testing.T) {
	b := cpu.New(cpu.Options{Threads: 1})
	defer b.Close()
	r := rand.New(rand.NewPCG(1, 1))
	m, err := New(b, Config{Kind: GCN, In: 3, Hidden: 4, Out: 2, Layers: 2})
	if err != nil {
		t.Fatal(err)
	}
	batch, _ := makeBatch(r, b, GCN, 3, 9, 6, 3)
	if err := m.CheckBatch(batch.Blocks, true); err != nil {
		t.Error(err)
	}
	if err := m.CheckBatch(batch.Blocks[:1], true); err == nil || !strings.Contains(err.Error(), "2 layers on batches of 1 blocks") {
		t.Errorf("one block: %v", err)
	}
	if err := m.CheckBatch([]*backend.Block{batch.Blocks[1], batch.Blocks[0]}, false); err == nil {
		t.Error("blocks in the wrong order pass")
	}
	batch.Blocks[1].TIndptr = nil
	if err := m.CheckBatch(batch.Blocks, true); !errors.Is(err, ErrTranspose) || !strings.Contains(err.Error(), "--transpose all") {
		t.Errorf("without the inner transpose: %v", err)
	}
	if err := m.CheckBatch(batch.Blocks, false); err != nil {
		t.Error("evaluation needs no transpose:", err)
	}
	for _, c := range []Config{{}, {Kind: "gat", In: 1, Out: 1, Layers: 1}, {Kind: GCN, In: 1, Out: 1, Layers: 2}, {Kind: MLP, In: 1, Out: 1, Layers: 1, Dropout: 1}} {
		if _, err := New(b, c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// TestInit checks that initial weights are Glorot's, depend on the seed and the name
// alone, and that names and shapes are as documented.
func TestInit(t *testing.T) {
	b := cpu.New(cpu.Options{Threads: 1})
	defer b.Close()
	m, err := New(b, Config{Kind: SAGE, In: 200, Hidden: 100, Out: 3, Layers: 2, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range m.Params() {
		names = append(names, fmt.Sprint(p.Name, p.Shape))
	}
	want := "layers.0.self.weight[200 100] layers.0.neigh.weight[200 100] layers.0.bias[100] layers.1.self.weight[100 3] layers.1.neigh.weight[100 3] layers.1.bias[3]"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	w := host(t, b, m.Params()[0].Value)
	limit := math.Sqrt(6.0 / 300)
	var sum, squares float64
	for _, v := range w {
		if math.Abs(float64(v)) > limit {
			t.Fatalf("weight %v is beyond %v", v, limit)
		}
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(w))
	if mean := sum / n; math.Abs(mean) > 6*limit/math.Sqrt(3*n) {
		t.Errorf("mean %v", mean)
	}
	if v := squares / n; math.Abs(v/(limit*limit/3)-1) > 0.05 {
		t.Errorf("variance %v, want %v", v, limit*limit/3)
	}
	if !equal(w, glorot(5, "layers.0.self.weight", 200, 100)) || equal(w, glorot(6, "layers.0.self.weight", 200, 100)) ||
		equal(w, glorot(5, "layers.0.neigh.weight", 200, 100)) {
		t.Error("weights must depend on the seed and the name")
	}
	for _, v := range host(t, b, m.Params()[2].Value) {
		if v != 0 {
			t.Fatal("a bias isn't 0 at the start")
		}
	}
}

// TestNoAllocation: a training step allocates nothing after warm-up.
func TestNoAllocation(t *testing.T) {
	for _, kind := range Kinds {
		b := cpu.New(cpu.Options{Threads: 2})
		m, err := New(b, Config{Kind: kind, In: 20, Hidden: 16, Out: 4, Layers: 2, Dropout: 0.5, InputDropout: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		batch, _ := makeBatch(rand.New(rand.NewPCG(1, 1)), b, kind, 20, 300, 200, 100)
		tg := &backend.Targets{Class: make([]int32, 100)}
		var step uint64
		one := func() {
			b.ResetScratch()
			logits := m.Forward(batch, true, step)
			grad := b.Scratch(logits.Rows, logits.Cols)
			b.SoftmaxCE(grad, logits, tg)
			m.Backward(grad)
			step++
		}
		one()
		one()
		if got := testing.AllocsPerRun(5, one); got > 0 {
			t.Errorf("%s: %v allocations a step, want 0", kind, got)
		}
		b.Close()
	}
}
