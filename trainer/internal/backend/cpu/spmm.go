package cpu

import (
	"sort"

	"github.com/prelift/prelift/trainer/internal/backend"
)

// spmmTask is a weighted sum of rows, forward or backward; parts are ranges of output
// rows with about the same number of edges.
//
//	out[r] = post(r) * sum over e in row r, in order, of weight(e)*x[index[e]]  + self(r)*x[selfStart+r]
//
// weight(e) is edge[edgePos[e]] * pre1[index[e]] * pre2[index[e]]; post(r) is post1[r]*post2[r];
// nil factors are left out. Forward, pre is Coef.Src and post Dst and Importance; backward
// over the transpose it is the other way round.
type spmmTask struct {
	numParts int
	numRows  int
	dim      int
	indptr   []int64
	index    []int32
	edge     []float32
	edgePos  []int64 // nil: e itself
	pre1     []float32
	pre2     []float32
	post1    []float32
	post2    []float32
	self     []float32
	numSelf  int // rows that have a self term
	selfAt   int // row of x for the self term of row 0
	x, out   []float32
}

// rowAt returns the first row of a part: the work before row r is counted as its edges
// plus one for each row, and cut evenly.
func (t *spmmTask) rowAt(part int) int {
	total := t.indptr[t.numRows] + int64(t.numRows)
	want := int64(part) * total / int64(t.numParts)
	return sort.Search(t.numRows, func(r int) bool { return t.indptr[r]+int64(r) >= want })
}

func (t *spmmTask) do(part int) {
	hi := t.numRows
	if part+1 < t.numParts {
		hi = t.rowAt(part + 1)
	}
	plain := t.edge == nil && t.pre1 == nil && t.pre2 == nil
	scaled := t.post1 != nil || t.post2 != nil
	for r := t.rowAt(part); r < hi; r++ {
		out := t.out[r*t.dim : (r+1)*t.dim]
		clear(out)
		if plain {
			t.sum(out, t.indptr[r], t.indptr[r+1])
		} else {
			t.weightedSum(out, t.indptr[r], t.indptr[r+1])
		}
		if scaled {
			a := float32(1)
			if t.post1 != nil {
				a = t.post1[r]
			}
			if t.post2 != nil {
				a = float32(a * t.post2[r])
			}
			for j, v := range out {
				out[j] = float32(a * v)
			}
		}
		if t.self != nil && r < t.numSelf && t.self[r] != 0 {
			a, at := t.self[r], (t.selfAt+r)*t.dim
			x := t.x[at : at+t.dim][:len(out)]
			for j, v := range x {
				out[j] += float32(a * v)
			}
		}
	}
}

// weight returns the factor of edge position e from src s.
func (t *spmmTask) weight(e int64, s int32) float32 {
	w := float32(1)
	if t.edge != nil {
		if t.edgePos != nil {
			e = t.edgePos[e]
		}
		w = t.edge[e]
	}
	if t.pre1 != nil {
		w = float32(w * t.pre1[s])
	}
	if t.pre2 != nil {
		w = float32(w * t.pre2[s])
	}
	return w
}

// weightedSum adds weight(e)*x[index[e]] to out for e in [lo, hi), four edges at a time
// so that four rows are on their way from memory at once; the terms of an element are still
// added in edge order.
func (t *spmmTask) weightedSum(out []float32, lo, hi int64) {
	dim, x := t.dim, t.x
	e := lo
	for ; e+4 <= hi; e += 4 {
		s := (*[4]int32)(t.index[e:])
		w0, w1, w2, w3 := t.weight(e, s[0]), t.weight(e+1, s[1]), t.weight(e+2, s[2]), t.weight(e+3, s[3])
		x0 := x[int(s[0])*dim:][:len(out)]
		x1 := x[int(s[1])*dim:][:len(out)]
		x2 := x[int(s[2])*dim:][:len(out)]
		x3 := x[int(s[3])*dim:][:len(out)]
		for j := range out {
			a := out[j]
			a += float32(w0 * x0[j])
			a += float32(w1 * x1[j])
			a += float32(w2 * x2[j])
			a += float32(w3 * x3[j])
			out[j] = a
		}
	}
	for ; e < hi; e++ {
		s := t.index[e]
		w := t.weight(e, s)
		x0 := x[int(s)*dim:][:len(out)]
		for j := range out {
			out[j] += float32(w * x0[j])
		}
	}
}

// sum is weightedSum with all weights 1.
func (t *spmmTask) sum(out []float32, lo, hi int64) {
	dim, x := t.dim, t.x
	e := lo
	for ; e+4 <= hi; e += 4 {
		s := (*[4]int32)(t.index[e:])
		x0 := x[int(s[0])*dim:][:len(out)]
		x1 := x[int(s[1])*dim:][:len(out)]
		x2 := x[int(s[2])*dim:][:len(out)]
		x3 := x[int(s[3])*dim:][:len(out)]
		for j := range out {
			out[j] = out[j] + x0[j] + x1[j] + x2[j] + x3[j]
		}
	}
	for ; e < hi; e++ {
		x0 := x[int(t.index[e])*dim:][:len(out)]
		for j := range out {
			out[j] += x0[j]
		}
	}
}

func (b *Backend) spmmRun(op string, t spmmTask) {
	if t.dim == 0 {
		return
	}
	perRow := t.dim
	if t.numRows > 0 {
		perRow = int((t.indptr[t.numRows]/int64(t.numRows) + 2) * int64(t.dim))
	}
	t.numParts = b.partsOf(t.numRows, perRow)
	b.spmm = t
	b.run(op, &b.spmm, t.numParts)
	b.spmm = spmmTask{}
}

// SpMM sums weighted neighbours.
func (b *Backend) SpMM(out backend.Matrix, blk *backend.Block, c *backend.Coef, x backend.Matrix) {
	backend.CheckSpMM(out, blk, c, x)
	b.spmmRun("SpMM", spmmTask{
		numRows: blk.NumDst, dim: out.Cols, indptr: blk.Indptr, index: blk.Indices,
		edge: c.Edge, pre1: c.Src, post1: c.Dst, post2: c.Importance,
		self: c.Self, numSelf: blk.NumDst, selfAt: blk.DstStart,
		x: x.Host(), out: out.Host(),
	})
}

// SpMMBackward is the gradient of SpMM, over the stored transpose.
func (b *Backend) SpMMBackward(dx backend.Matrix, blk *backend.Block, c *backend.Coef, dout backend.Matrix) {
	backend.CheckSpMMBackward(dx, blk, c, dout)
	b.spmmRun("SpMMBackward", spmmTask{
		numRows: blk.NumSrc, dim: dx.Cols, indptr: blk.TIndptr, index: blk.TIndices,
		edge: c.Edge, edgePos: blk.TEdge, pre1: c.Dst, pre2: c.Importance, post1: c.Src,
		self: c.Self, numSelf: blk.NumDst,
		x: dout.Host(), out: dx.Host(),
	})
}
