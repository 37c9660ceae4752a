package graph

import (
	"fmt"
	"math"
)

// NormKind names a rule for the coefficients of messages.
type NormKind string

// The kinds that keep self loops apart from neighbours.
const (
	NormGCN  NormKind = "gcn"
	NormMean NormKind = "mean"
	NormSum  NormKind = "sum"
)

// Norm holds the coefficients of one kind. The message from u to v, u != v, over entry e is
// multiplied by
//
//	Edge[e] * Src[u] * Dst[v]
//
// and what v keeps of itself by Self[v]. A nil Edge, Src or Dst counts as all ones, a nil Self as
// all zeros. Src, Dst and Self have len NumNodes; Edge has len NumEntries. The entry of a self loop
// is no message: its weight is in Self, and Edge is 0 there. Every value is finite. Src and Dst may be
// the same slice; none is shared with the CSR.
type Norm struct {
	Src, Dst, Self []float32
	Edge           []float32
}

// NormError says that a coefficient does not fit float32, which only weights far apart from 1
// (about 1e-38 or 1e38) bring about.
type NormError struct {
	Kind     NormKind
	Src, Dst int32
	Sum      float64 // the weights of row Dst, added up
}

func (e *NormError) Error() string {
	return fmt.Sprintf("%s coefficient of edge %d -> %d is over the float32 range (the weights of %d add up to %g)", e.Kind, e.Src, e.Dst, e.Dst, e.Sum)
}

// GCN returns the symmetric normalisation of Kipf and Welling (arXiv:1609.02907), each node having
// one self loop: where the input has none, one of weight 1 is added.
//
//	d[v] = sum of row v's weights, loop included, in row order in float64; then + 1 if v has no loop
//	f[v] = float32(1 / sqrt(d[v])), Self[v] = float32(loop[v] / d[v]); both 0 where d[v] = 0
//	unweighted: Src = Dst = f;  weighted: Edge[e] = float32(float32(w[e]*f[u]) * f[v])
//
// A directed graph takes in-row sums at both ends. There is no multiply-add, so nothing can be fused
// and the bits are the same on every machine and for any thread count (0: GOMAXPROCS). A *NormError,
// for the lowest such dst, where an Edge is over the float32 range.
func GCN(c *CSR, threads int, alloc Alloc) (Norm, error) {
	numNodes := c.NumNodes()
	threads = numThreads(threads)
	factor, self := make([]float32, numNodes), make([]float32, numNodes)
	bounds := rowParts(c.Indptr, threads)
	inParallel(threads, func(t int) {
		for v := int32(bounds[t]); v < int32(bounds[t+1]); v++ {
			d, loop, hasLoop := rowSum(c, v)
			if !hasLoop {
				d, loop = d+1, 1
			}
			if d > 0 {
				factor[v] = float32(1 / math.Sqrt(d))
				self[v] = float32(loop / d)
			}
		}
	})
	norm := Norm{Src: factor, Dst: factor, Self: nilIfZero(self)}
	if c.Weight == nil {
		return norm, nil
	}

	var err error
	norm.Src, norm.Dst = nil, nil
	if norm.Edge, err = sliceOf[float32](alloc, c.NumEntries()); err != nil {
		return Norm{}, err
	}
	errs := make([]*NormError, threads)
	inParallel(threads, func(t int) {
		for v := int32(bounds[t]); v < int32(bounds[t+1]); v++ {
			for e := c.Indptr[v]; e < c.Indptr[v+1]; e++ {
				u := c.Indices[e]
				if u == v {
					continue
				}
				x := float32(float32(c.Weight[e]*factor[u]) * factor[v])
				if !isFinite(x) {
					d, _, _ := rowSum(c, v)
					errs[t] = &NormError{Kind: NormGCN, Src: u, Dst: v, Sum: d}
					return
				}
				norm.Edge[e] = x
			}
		}
	})
	return norm, firstError(errs)
}

// Mean returns the coefficients of the mean over the in-row, an existing self loop included and none added.
//
//	d[v] = sum of row v's weights, loop included, in row order in float64
//	unweighted: Dst[v] = float32(1 / d[v]);  weighted: Edge[e] = float32(w[e] / d[v])
//	Self[v] = float32(loop[v] / d[v]) (0 without a loop); all 0 where d[v] = 0
//
// So the mean over no neighbours is zero, and no coefficient is over 1, however large or small the weights. Self
// is nil where no node has a loop of weight over 0. The result does not depend on threads (0: GOMAXPROCS). Arrays by entry are of alloc, whose errors are the only ones.
func Mean(c *CSR, threads int, alloc Alloc) (Norm, error) {
	numNodes := c.NumNodes()
	threads = numThreads(threads)
	var norm Norm
	if c.Weight == nil {
		norm.Dst = make([]float32, numNodes)
	} else {
		var err error
		if norm.Edge, err = sliceOf[float32](alloc, c.NumEntries()); err != nil {
			return Norm{}, err
		}
	}
	self := make([]float32, numNodes)
	bounds := rowParts(c.Indptr, threads)
	inParallel(threads, func(t int) {
		for v := int32(bounds[t]); v < int32(bounds[t+1]); v++ {
			d, loop, _ := rowSum(c, v)
			if d == 0 {
				continue
			}
			self[v] = float32(loop / d)
			if c.Weight == nil {
				norm.Dst[v] = float32(1 / d)
				continue
			}
			for e := c.Indptr[v]; e < c.Indptr[v+1]; e++ {
				if c.Indices[e] != v {
					norm.Edge[e] = float32(float64(c.Weight[e]) / d)
				}
			}
		}
	})
	norm.Self = nilIfZero(self)
	return norm, nil
}

// Sum returns the coefficients of the plain sum: Edge[e] = w[e], nil for an unweighted graph; Self[v] = the
// weight of an existing loop (1 unweighted), nil where no node has one of weight over 0.
func Sum(c *CSR) Norm {
	self := make([]float32, c.NumNodes())
	for v := range self {
		_, loop, _ := rowSum(c, int32(v))
		self[v] = float32(loop)
	}
	return Norm{Edge: messageWeights(c, 1), Self: nilIfZero(self)}
}

// rowSum adds the weights of row v in row order in float64, and those of its self loops (0 without).
func rowSum(c *CSR, v int32) (d, loop float64, hasLoop bool) {
	if c.Weight == nil {
		first, end := c.loops(v)
		return float64(c.Degree(v)), float64(end - first), end > first
	}
	for e := c.Indptr[v]; e < c.Indptr[v+1]; e++ {
		w := float64(c.Weight[e])
		d += w
		if c.Indices[e] == v {
			loop += w
			hasLoop = true
		}
	}
	return d, loop, hasLoop
}

// messageWeights copies the weights with 0 for self loops; nil for an unweighted graph.
func messageWeights(c *CSR, threads int) []float32 {
	if c.Weight == nil {
		return nil
	}
	edge := make([]float32, len(c.Weight))
	bounds := rowParts(c.Indptr, threads)
	inParallel(threads, func(t int) {
		for v := int32(bounds[t]); v < int32(bounds[t+1]); v++ {
			copy(edge[c.Indptr[v]:c.Indptr[v+1]], c.RowWeights(v))
			first, end := c.loops(v)
			clear(edge[first:end])
		}
	})
	return edge
}

func nilIfZero(x []float32) []float32 {
	for _, v := range x {
		if v != 0 {
			return x
		}
	}
	return nil
}

func isFinite(x float32) bool { return math.Abs(float64(x)) <= math.MaxFloat32 }

// firstError returns the error of the lowest part, which has the lowest rows.
func firstError(errs []*NormError) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Coefficient returns the multiplier of the message over entry e from u to v, u != v, in float64:
// the product of the stored float32 parts, not rounded to float32.
func (n *Norm) Coefficient(e int64, u, v int32) float64 {
	x := 1.0
	if n.Edge != nil {
		x *= float64(n.Edge[e])
	}
	if n.Src != nil {
		x *= float64(n.Src[u])
	}
	if n.Dst != nil {
		x *= float64(n.Dst[v])
	}
	return x
}

// Aggregate is the reference for whatever aggregates over full neighbourhoods, in float64 throughout:
//
//	out[v,:] = Self[v]*x[v,:] + sum over the entries e of row v from u != v of Coefficient(e,u,v)*x[u,:]
//
// x is [NumNodes, dim] row-major float32, as the result is in float64. A zero Norm gives the sum over
// the neighbours. A node without neighbours and Self gives zeros. Slow and plain on purpose:
// compare faster code with it, with a tolerance.
func Aggregate(c *CSR, norm Norm, x []float32, dim int) []float64 {
	out := make([]float64, len(x))
	for v := range int32(c.NumNodes()) {
		to := out[int(v)*dim:][:dim]
		if norm.Self != nil {
			for j := range to {
				to[j] = float64(norm.Self[v]) * float64(x[int(v)*dim+j])
			}
		}
		for e := c.Indptr[v]; e < c.Indptr[v+1]; e++ {
			u := c.Indices[e]
			if u == v {
				continue
			}
			for j := range to {
				to[j] += norm.Coefficient(e, u, v) * float64(x[int(u)*dim+j])
			}
		}
	}
	return out
}
