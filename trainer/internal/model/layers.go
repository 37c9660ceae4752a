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

// gcnLayer is A x W. Aggregating first, dW = (Ax)ᵀ dy needs no transpose of the block, so
// that is the way where none is stored; transforming first, dW = xᵀ (Aᵀ dy).
type gcnLayer struct {
	w, b *Param

	first bool           // transform first
	in    backend.Matrix // x or Ax, what W multiplied
}

func (g *gcnLayer) bias() *Param { return g.b }

func (g *gcnLayer) forward(b backend.Backend, blk *backend.Block, c *backend.Coef, x backend.Matrix, train bool) backend.Matrix {
	w := g.w.Value
	g.first = transformFirst(blk, w.Rows, w.Cols) && (blk.HasTranspose() || !train)
	y := b.Scratch(blk.NumDst, w.Cols)
	if g.first {
		g.in = x
		xw := b.Scratch(x.Rows, w.Cols)
		b.GEMM(backend.NN, false, xw, x, w)
		b.SpMM(y, blk, c, xw)
		return y
	}
	g.in = b.Scratch(blk.NumDst, x.Cols)
	b.SpMM(g.in, blk, c, x)
	b.GEMM(backend.NN, false, y, g.in, w)
	return y
}

func (g *gcnLayer) backward(b backend.Backend, blk *backend.Block, c *backend.Coef, dy backend.Matrix, wantInput bool) (dx backend.Matrix) {
	w := g.w.Value
	if g.first {
		dxw := b.Scratch(blk.NumSrc, w.Cols)
		b.SpMMBackward(dxw, blk, c, dy)
		b.GEMM(backend.TN, false, g.w.Grad, g.in, dxw)
		if wantInput {
			dx = b.Scratch(blk.NumSrc, w.Rows)
			b.GEMM(backend.NT, false, dx, dxw, w)
		}
		return dx
	}
	b.GEMM(backend.TN, false, g.w.Grad, g.in, dy)
	if wantInput {
		dax := b.Scratch(blk.NumDst, w.Rows)
		b.GEMM(backend.NT, false, dax, dy, w)
		dx = b.Scratch(blk.NumSrc, w.Rows)
		b.SpMMBackward(dx, blk, c, dax)
	}
	return dx
}

func (g *gcnLayer) prepare(b backend.Backend, pre, x backend.Matrix) {
	b.GEMM(backend.NN, false, pre, x, g.w.Value)
}

func (g *gcnLayer) rows(b backend.Backend, out backend.Matrix, blk *backend.Block, c *backend.Coef, x, pre backend.Matrix) {
	if !pre.IsZero() {
		b.SpMM(out, blk, c, pre)
		return
	}
	ax := b.Scratch(blk.NumDst, x.Cols)
	b.SpMM(ax, blk, c, x)
	b.GEMM(backend.NN, false, out, ax, g.w.Value)
}

// sageLayer is x_dst W_self + (A x) W_neigh, A the mean over in-neighbours; a node with
// none has the zero vector for its mean.
type sageLayer struct {
	self, neigh, b *Param

	first bool           // transform first
	x     backend.Matrix // the input
	in    backend.Matrix // x or Ax, what W_neigh multiplied
}

func (s *sageLayer) bias() *Param { return s.b }

func (s *sageLayer) forward(b backend.Backend, blk *backend.Block, c *backend.Coef, x backend.Matrix, train bool) backend.Matrix {
	w := s.neigh.Value
	s.x, s.first = x, transformFirst(blk, w.Rows, w.Cols) && (blk.HasTranspose() || !train)
	y := b.Scratch(blk.NumDst, w.Cols)
	if s.first {
		s.in = x
		xw := b.Scratch(x.Rows, w.Cols)
		b.GEMM(backend.NN, false, xw, x, w)
		b.SpMM(y, blk, c, xw)
	} else {
		s.in = b.Scratch(blk.NumDst, x.Cols)
		b.SpMM(s.in, blk, c, x)
		b.GEMM(backend.NN, false, y, s.in, w)
	}
	b.GEMM(backend.NN, true, y, x.Slice(0, blk.NumDst), s.self.Value)
	return y
}

func (s *sageLayer) backward(b backend.Backend, blk *backend.Block, c *backend.Coef, dy backend.Matrix, wantInput bool) (dx backend.Matrix) {
	w := s.neigh.Value
	b.GEMM(backend.TN, false, s.self.Grad, s.x.Slice(0, blk.NumDst), dy)
	if wantInput {
		dx = b.Scratch(blk.NumSrc, w.Rows)
	}
	if s.first {
		dxw := b.Scratch(blk.NumSrc, w.Cols)
		b.SpMMBackward(dxw, blk, c, dy)
		b.GEMM(backend.TN, false, s.neigh.Grad, s.in, dxw)
		if wantInput {
			b.GEMM(backend.NT, false, dx, dxw, w)
		}
	} else {
		b.GEMM(backend.TN, false, s.neigh.Grad, s.in, dy)
		if wantInput {
			dax := b.Scratch(blk.NumDst, w.Rows)
			b.GEMM(backend.NT, false, dax, dy, w)
			b.SpMMBackward(dx, blk, c, dax)
		}
	}
	if wantInput {
		b.GEMM(backend.NT, true, dx.Slice(0, blk.NumDst), dy, s.self.Value)
	}
	return dx
}

func (s *sageLayer) prepare(b backend.Backend, pre, x backend.Matrix) {
	b.GEMM(backend.NN, false, pre, x, s.neigh.Value)
}

func (s *sageLayer) rows(b backend.Backend, out backend.Matrix, blk *backend.Block, c *backend.Coef, x, pre backend.Matrix) {
	if !pre.IsZero() {
		b.SpMM(out, blk, c, pre)
	} else {
		ax := b.Scratch(blk.NumDst, x.Cols)
		b.SpMM(ax, blk, c, x)
		b.GEMM(backend.NN, false, out, ax, s.neigh.Value)
	}
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
