package model

import (
	"fmt"

	"github.com/prelift/prelift/trainer/internal/backend"
)

// Exact evaluation goes layer by layer over all nodes: for each layer the caller walks
// one sequence of blocks of consecutive dst rows, whose src are global.
//
//	for l in layers:
//		pre = none, or a matrix [nodes, EvalWidth(l)] filled by EvalPrepare(l, pre, x)
//		for blk in blocks: EvalLayer(l, out rows of blk, blk, coef, x, pre)
//		x = out
//
// The logits equal those of Forward on the same neighbourhoods: the same bits where
// training used the same order of aggregation and transform and the rows list their
// neighbours in the same order, else up to float32 rounding (some 1e-6 of the sum of
// the absolute terms).

// EvalWidth returns the number of columns of the matrix that EvalPrepare fills for layer l,
// 0 where the layer aggregates first and needs none: transforming pays when the output
// is narrower than the input.
func (m *Model) EvalWidth(l int) int {
	if in, out := m.config.Widths(l); m.config.Kind.UsesEdges() && out < in {
		return out
	}
	return 0
}

// EvalPrepare multiplies the rows of x by the weights that layer l aggregates with:
// pre = x W. pre is [x.Rows, EvalWidth(l)]; the rows may come in any portions.
// A GCN layer doesn't read x again after it, SAGE does.
func (m *Model) EvalPrepare(l int, pre, x backend.Matrix) {
	if w := m.EvalWidth(l); w == 0 || pre.Cols != w || pre.Rows != x.Rows {
		panic(fmt.Sprintf("model: EvalPrepare of layer %d: %v from %v, want %d columns", l, pre, x, w))
	}
	m.layers[l].prepare(m.b, pre, x)
}

// EvalReadsInput reports whether EvalLayer of layer l reads x although it was prepared.
func (m *Model) EvalReadsInput(l int) bool {
	return m.config.Kind == SAGE || m.EvalWidth(l) == 0
}

// EvalLayer computes layer l, without dropout, for the dst rows of an evaluation block
// into out [NumDst, layer's output]; for an MLP only NumDst and DstStart of the block
// count. x [nodes, layer's input] is the whole input, or the zero Matrix where
// EvalReadsInput is false; pre is what EvalPrepare filled, else the zero Matrix. It uses the
// backend's scratch: call ResetScratch between blocks.
func (m *Model) EvalLayer(l int, out backend.Matrix, blk *backend.Block, c *backend.Coef, x, pre backend.Matrix) {
	if (m.EvalWidth(l) > 0) == pre.IsZero() {
		panic(fmt.Sprintf("model: EvalLayer of layer %d with a prepared matrix %v", l, pre))
	}
	m.layers[l].rows(m.b, out, blk, c, x, pre)
	m.b.BiasAct(out, out, m.layers[l].bias().Value, m.epilogue(l, false, 0))
}
