package model

import "github.com/prelift/prelift/trainer/internal/backend"

// gatherCost is the price of one gathered element in SpMM, in multiply-adds of GEMM: SpMM
// waits for memory. Measured at 10 to 20 on plain Go, on AVX-512 kernels and on GPUs alike. The
// choice it makes depends on shapes alone, so it is the same on every run and machine.
const gatherCost = 16

// transformFirst reports whether A(xW) is cheaper than (Ax)W.
func transformFirst(blk *backend.Block, in, out int) bool {
	edges := float64(blk.NumEdges() + blk.NumDst)
	product := float64(in) * float64(out)
	return float64(blk.NumSrc)*product+gatherCost*edges*float64(out) <
		float64(blk.NumDst)*product+gatherCost*edges*float64(in)
}

// LayerWork returns the work of layer l over some dst rows and their edges, in
// multiply-adds.
func (c *Config) LayerWork(l int, rows, edges float64) float64 {
	in, out := c.Widths(l)
	work := rows * float64(in) * float64(out)
	switch c.Kind {
	case SAGE:
		work = 2*work + gatherCost*edges*float64(min(in, out))
	case GCN:
		work += gatherCost * (edges + rows) * float64(min(in, out))
	}
	return work
}

// aggregation is A x W. Aggregating first, dW = (Ax)ᵀ dy needs no transpose of the block,
// so that is the way where none is stored; transforming first, dW = xᵀ (Aᵀ dy).
type aggregation struct {
	w *Param

	first bool           // transform first
	in    backend.Matrix // x or Ax, what W multiplied
}

func (a *aggregation) forward(b backend.Backend, blk *backend.Block, c *backend.Coef, x backend.Matrix, train bool) backend.Matrix {
	w := a.w.Value
	a.first = transformFirst(blk, w.Rows, w.Cols) && (blk.HasTranspose() || !train)
	y := b.Scratch(blk.NumDst, w.Cols)
	if a.first {
		a.in = x
		xw := b.Scratch(x.Rows, w.Cols)
		b.GEMM(backend.NN, false, xw, x, w)
		b.SpMM(y, blk, c, xw)
		return y
	}
	a.in = b.Scratch(blk.NumDst, x.Cols)
	b.SpMM(a.in, blk, c, x)
	b.GEMM(backend.NN, false, y, a.in, w)
	return y
}

func (a *aggregation) backward(b backend.Backend, blk *backend.Block, c *backend.Coef, dy backend.Matrix, wantInput bool) (dx backend.Matrix) {
	w := a.w.Value
	if a.first {
		dxw := b.Scratch(blk.NumSrc, w.Cols)
		b.SpMMBackward(dxw, blk, c, dy)
		b.GEMM(backend.TN, false, a.w.Grad, a.in, dxw)
		if wantInput {
			dx = b.Scratch(blk.NumSrc, w.Rows)
			b.GEMM(backend.NT, false, dx, dxw, w)
		}
		return dx
	}
	b.GEMM(backend.TN, false, a.w.Grad, a.in, dy)
	if wantInput {
		dax := b.Scratch(blk.NumDst, w.Rows)
		b.GEMM(backend.NT, false, dax, dy, w)
		dx = b.Scratch(blk.NumSrc, w.Rows)
		b.SpMMBackward(dx, blk, c, dax)
	}
	return dx
}

func (a *aggregation) prepare(b backend.Backend, pre, x backend.Matrix) {
	b.GEMM(backend.NN, false, pre, x, a.w.Value)
}

func (a *aggregation) rows(b backend.Backend, out backend.Matrix, blk *backend.Block, c *backend.Coef, x, pre backend.Matrix) {
	if !pre.IsZero() {
		b.SpMM(out, blk, c, pre)
		return
	}
	ax := b.Scratch(blk.NumDst, x.Cols)
	b.SpMM(ax, blk, c, x)
	b.GEMM(backend.NN, false, out, ax, a.w.Value)
}

// gcnLayer is A x W.
type gcnLayer struct {
	aggregation
	b *Param
}

func (g *gcnLayer) bias() *Param { return g.b }

// sageLayer is x_dst W_self + (A x) W_neigh, A the mean over in-neighbours; a node with
// none has the zero vector for its mean.
type sageLayer struct {
	neigh   aggregation
	self, b *Param

	x backend.Matrix // the input
}

func (s *sageLayer) bias() *Param { return s.b }

func (s *sageLayer) forward(b backend.Backend, blk *backend.Block, c *backend.Coef, x backend.Matrix, train bool) backend.Matrix {
	s.x = x
	y := s.neigh.forward(b, blk, c, x, train)
	b.GEMM(backend.NN, true, y, x.Slice(0, blk.NumDst), s.self.Value)
	return y
}

func (s *sageLayer) backward(b backend.Backend, blk *backend.Block, c *backend.Coef, dy backend.Matrix, wantInput bool) backend.Matrix {
	b.GEMM(backend.TN, false, s.self.Grad, s.x.Slice(0, blk.NumDst), dy)
	dx := s.neigh.backward(b, blk, c, dy, wantInput)
	if wantInput {
		b.GEMM(backend.NT, true, dx.Slice(0, blk.NumDst), dy, s.self.Value)
	}
	return dx
}

func (s *sageLayer) prepare(b backend.Backend, pre, x backend.Matrix) { s.neigh.prepare(b, pre, x) }

func (s *sageLayer) rows(b backend.Backend, out backend.Matrix, blk *backend.Block, c *backend.Coef, x, pre backend.Matrix) {
	s.neigh.rows(b, out, blk, c, x, pre)
	b.GEMM(backend.NN, true, out, x.Slice(blk.DstStart, blk.NumDst), s.self.Value)
}

// denseLayer is x W.
type denseLayer struct {
	w, b *Param
	x    backend.Matrix
}

func (d *denseLayer) bias() *Param { return d.b }

func (d *denseLayer) forward(b backend.Backend, _ *backend.Block, _ *backend.Coef, x backend.Matrix, _ bool) backend.Matrix {
	d.x = x
	y := b.Scratch(x.Rows, d.w.Value.Cols)
	b.GEMM(backend.NN, false, y, x, d.w.Value)
	return y
}

func (d *denseLayer) backward(b backend.Backend, _ *backend.Block, _ *backend.Coef, dy backend.Matrix, wantInput bool) (dx backend.Matrix) {
	b.GEMM(backend.TN, false, d.w.Grad, d.x, dy)
	if wantInput {
		dx = b.Scratch(dy.Rows, d.w.Value.Rows)
		b.GEMM(backend.NT, false, dx, dy, d.w.Value)
	}
	return dx
}

func (d *denseLayer) prepare(backend.Backend, backend.Matrix, backend.Matrix) {}

func (d *denseLayer) rows(b backend.Backend, out backend.Matrix, blk *backend.Block, _ *backend.Coef, x, _ backend.Matrix) {
	b.GEMM(backend.NN, false, out, x.Slice(blk.DstStart, blk.NumDst), d.w.Value)
}
