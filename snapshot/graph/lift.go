package graph

import "fmt"

// liftBlockBytes is about how much of Z is computed before it is handed on: enough to keep
// threads busy and writes large, little against a feature table.
const liftBlockBytes = 8 << 20

// LiftOptions steer Lift. They shape no value.
type LiftOptions struct {
	Threads   int // 0: GOMAXPROCS
	BlockRows int // rows handed on at a time; 0: about 8 MiB
}

// Lift computes the first layer's aggregation over full neighbourhoods, Z = ÂX, and hands it on in blocks of
// consecutive rows: write gets the first row's number and the rows, row-major float32, valid until it
// returns. Blocks come in order and cover all rows. norm is that of c: GCN, Mean or Sum.
//
//	z = 0
//	for the entries e of row v in order, u = Indices[e], u != v:  z += float32(float32(Edge[e]*Src[u]) * x[u,:])
//	z = float32(Dst[v] * z);  z += float32(Self[v] * x[v,:]) where Self[v] != 0
//
// in float32, every product rounded before it is added (DESIGN decision 5), factors that norm leaves out not
// multiplied with. It is what the trainers' SpMM computes from the same coefficients, bit for bit. x is
// [NumNodes, dim] and is not changed; it may be a mapping larger than memory. Empty rows give zeros. Holds
// one block. Errors: a shape that does not fit, and write's, which stops it.
func Lift(c *CSR, norm Norm, x []float32, dim int, opt LiftOptions, write func(firstRow int, z []float32) error) error {
	numNodes := c.NumNodes()
	if dim < 0 || dim > 0 && len(x)/dim != numNodes || len(x) != numNodes*dim {
		return fmt.Errorf("lift: x has %d values, want [%d, %d]", len(x), numNodes, dim)
	}
	for _, factor := range [][]float32{norm.Src, norm.Dst, norm.Self} {
		if factor != nil && len(factor) != numNodes {
			return fmt.Errorf("lift: %d factors for %d nodes", len(factor), numNodes)
		}
	}
	if norm.Edge != nil && len(norm.Edge) != len(c.Indices) {
		return fmt.Errorf("lift: %d coefficients for %d entries", len(norm.Edge), len(c.Indices))
	}
	blockRows := opt.BlockRows
	if blockRows <= 0 {
		blockRows = max(liftBlockBytes/(4*max(dim, 1)), 1)
	}
	threads := numThreads(opt.Threads)
	z := make([]float32, min(blockRows, numNodes)*dim)
	for first := 0; first < numNodes; first += blockRows {
		numRows := min(blockRows, numNodes-first)
		bounds := rowParts(c.Indptr[first:first+numRows+1], threads)
		inParallel(threads, func(t int) {
			for i := bounds[t]; i < bounds[t+1]; i++ {
				liftRow(z[i*dim:(i+1)*dim], c, &norm, x, int32(first+i))
			}
		})
		if err := write(first, z[:numRows*dim]); err != nil {
			return err
		}
	}
	return nil
}

// liftRow computes row v of Lift.
func liftRow(z []float32, c *CSR, norm *Norm, x []float32, v int32) {
	clear(z)
	lo, hi := c.Indptr[v], c.Indptr[v+1]
	if first, end := c.loops(v); end > first {
		addNeighbours(z, c, norm, x, lo, first)
		lo = end
	}
	addNeighbours(z, c, norm, x, lo, hi)
	if norm.Dst != nil {
		a := norm.Dst[v]
		for j, s := range z {
			z[j] = float32(a * s)
		}
	}
	if norm.Self != nil && norm.Self[v] != 0 {
		a := norm.Self[v]
		for j, s := range x[int(v)*len(z):][:len(z)] {
			z[j] += float32(a * s)
		}
	}
}

// addNeighbours adds the terms of entries lo .. hi-1 to z, four at a time, so that four rows of x are on their
// way from memory at once; each element still takes them in order.
func addNeighbours(z []float32, c *CSR, norm *Norm, x []float32, lo, hi int64) {
	dim := len(z)
	row := func(u int32) []float32 { return x[int(u)*dim:][:dim] }
	if norm.Edge == nil && norm.Src == nil {
		for ; lo+4 <= hi; lo += 4 {
			u := (*[4]int32)(c.Indices[lo:])
			x0, x1, x2, x3 := row(u[0]), row(u[1]), row(u[2]), row(u[3])
			for j := range z {
				z[j] = z[j] + x0[j] + x1[j] + x2[j] + x3[j]
			}
		}
		for ; lo < hi; lo++ {
			for j, s := range row(c.Indices[lo]) {
				z[j] += s
			}
		}
		return
	}
	weight := func(e int64) float32 {
		switch {
		case norm.Src == nil:
			return norm.Edge[e]
		case norm.Edge == nil:
			return norm.Src[c.Indices[e]]
		}
		return float32(norm.Edge[e] * norm.Src[c.Indices[e]])
	}
	for ; lo+4 <= hi; lo += 4 {
		u := (*[4]int32)(c.Indices[lo:])
		x0, x1, x2, x3 := row(u[0]), row(u[1]), row(u[2]), row(u[3])
		w0, w1, w2, w3 := weight(lo), weight(lo+1), weight(lo+2), weight(lo+3)
		for j := range z {
			s := z[j]
			s += float32(w0 * x0[j])
			s += float32(w1 * x1[j])
			s += float32(w2 * x2[j])
			s += float32(w3 * x3[j])
			z[j] = s
		}
	}
	for ; lo < hi; lo++ {
		w := weight(lo)
		for j, s := range row(c.Indices[lo]) {
			z[j] += float32(w * s)
		}
	}
}
