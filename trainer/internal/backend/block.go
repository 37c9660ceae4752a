package backend

import "fmt"

// Block is one layer's bipartite graph (a message-flow graph): CSR whose rows are dst.
// All slices are host memory, often a mapped file's, read-only and already checked by
// the loader (offsets ascending, indices in range).
//
// In a training block dst are the first NumDst src and indices are local. In a block of
// layerwise evaluation dst are the rows [DstStart, DstStart+NumDst) of the global index
// space, NumSrc is the number of nodes and indices are global.
type Block struct {
	NumDst, NumSrc int
	DstStart       int     // 0 in a training block
	Indptr         []int64 // [NumDst+1], Indptr[0] = 0
	Indices        []int32 // [edges], src of each edge

	// The transpose, nil where the batch set doesn't store it: row s lists the edges that
	// leave src s. TEdge[t] is the position in Indices of the t-th; it may be nil where Coef.Edge is.
	TIndptr  []int64 // [NumSrc+1]
	TIndices []int32 // [edges], dst of each edge
	TEdge    []int64 // [edges]
}

// NumEdges returns the number of edges.
func (b *Block) NumEdges() int { return len(b.Indices) }

// HasTranspose reports whether the transpose is stored.
func (b *Block) HasTranspose() bool { return b.TIndptr != nil }

// Coef holds the coefficients of a block's edges, as factors. nil Src, Dst, Edge and
// Importance mean ones, nil Self zeros.
//
//	weight of edge e, s -> d = Dst[d] * Importance[d] * Edge[e] * Src[s]
//	weight of d's own row    = Self[d]
type Coef struct {
	Src        []float32 // [NumSrc]
	Dst        []float32 // [NumDst] or more
	Self       []float32 // [NumDst] or more
	Edge       []float32 // [edges]
	Importance []float32 // [NumDst] or more
}

// CheckSpMM panics where the arguments of SpMM don't fit together.
func CheckSpMM(out Matrix, blk *Block, c *Coef, x Matrix) {
	checkBlock("SpMM", blk, c)
	if out.Rows != blk.NumDst || x.Rows != blk.NumSrc || out.Cols != x.Cols {
		panic(fmt.Sprintf("backend: SpMM: out %v, x %v on a block [%d, %d]", out, x, blk.NumDst, blk.NumSrc))
	}
}

// CheckSpMMBackward panics where the arguments of SpMMBackward don't fit together.
func CheckSpMMBackward(dx Matrix, blk *Block, c *Coef, dout Matrix) {
	checkBlock("SpMMBackward", blk, c)
	if dout.Rows != blk.NumDst || dx.Rows != blk.NumSrc || dout.Cols != dx.Cols {
		panic(fmt.Sprintf("backend: SpMMBackward: dx %v, dout %v on a block [%d, %d]", dx, dout, blk.NumDst, blk.NumSrc))
	}
	if blk.DstStart != 0 {
		panic("backend: SpMMBackward: an evaluation block has no gradient")
	}
	if len(blk.TIndptr) != blk.NumSrc+1 || len(blk.TIndices) != len(blk.Indices) || c.Edge != nil && len(blk.TEdge) != len(blk.Indices) {
		panic(fmt.Sprintf("backend: SpMMBackward: transpose of %d rows, %d indices, %d edges on a block of %d src, %d edges",
			len(blk.TIndptr)-1, len(blk.TIndices), len(blk.TEdge), blk.NumSrc, len(blk.Indices)))
	}
}

func checkBlock(op string, blk *Block, c *Coef) {
	if blk.NumDst < 0 || blk.DstStart < 0 || blk.DstStart > blk.NumSrc-blk.NumDst || len(blk.Indptr) != blk.NumDst+1 {
		panic(fmt.Sprintf("backend: %s: block of dst [%d, %d+%d), %d src, %d row offsets",
			op, blk.DstStart, blk.DstStart, blk.NumDst, blk.NumSrc, len(blk.Indptr)))
	}
	if int(blk.Indptr[blk.NumDst]) != len(blk.Indices) {
		panic(fmt.Sprintf("backend: %s: %d edges, row offsets end at %d", op, len(blk.Indices), blk.Indptr[blk.NumDst]))
	}
	bad := func(name string, a []float32, n int) {
		if a != nil && len(a) < n {
			panic(fmt.Sprintf("backend: %s: coefficient %s has %d of %d values", op, name, len(a), n))
		}
	}
	bad("src", c.Src, blk.NumSrc)
	bad("dst", c.Dst, blk.NumDst)
	bad("self", c.Self, blk.NumDst)
	bad("edge", c.Edge, len(blk.Indices))
	bad("importance", c.Importance, blk.NumDst)
}
