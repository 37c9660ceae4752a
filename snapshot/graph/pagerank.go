package graph

import (
	"fmt"
	"math"
)

// RankOptions steer PageRank. All but Threads and Progress shape the values. A zero field takes the default.
type RankOptions struct {
	Damping       float64 // in (0, 1), 0.85 by default
	Tolerance     float64 // stop when an iteration changes the ranks by at most this in sum; 1e-10 by default
	MaxIterations int     // 200 by default: 0.85^200 is 8e-15
	Threads       int     // 0: GOMAXPROCS; the bits do not depend on it

	Progress func(iterations, most int64) // may be nil; after each iteration
}

// Settle returns o with zero fields filled in, but Threads, and an error where it can't be; PageRank does it itself.
func (o RankOptions) Settle() (RankOptions, error) {
	if o.Damping == 0 {
		o.Damping = 0.85
	}
	if o.Tolerance == 0 {
		o.Tolerance = 1e-10
	}
	if o.MaxIterations == 0 {
		o.MaxIterations = 200
	}
	if !(o.Damping > 0 && o.Damping < 1 && o.Tolerance > 0 && o.MaxIterations > 0) {
		return o, fmt.Errorf("pagerank: damping %g, tolerance %g, %d iterations: want damping in (0, 1) and the others over 0", o.Damping, o.Tolerance, o.MaxIterations)
	}
	return o, nil
}

// Rank is what PageRank returns.
type Rank struct {
	Rank       []float64 // [NumNodes], all > 0, sum 1 within rounding
	Iterations int
	Delta      float64 // sum of |change| in the last iteration
	Converged  bool    // Delta <= Tolerance; else MaxIterations were done
}

// rankBlock is how many nodes are summed before the sums are: it fixes the order of additions.
const rankBlock = 4096

// PageRank returns the stationary distribution of a surfer who follows an arc u -> v with probability Damping,
// else jumps to any node; from a node without out-arcs he always jumps (Page, Brin, Motwani and Winograd, 1999;
// the dangling mass is spread evenly, as networkx does).
//
//	x'[v] = (1-d)/N + d/N * sum of x[u] over u without out-arcs + d * sum over the in-row of v of w * x[u]/out[u]
//
// out[u] is the sum of the weights (1 unweighted) of all entries with src u, self loops included; the rows of
// in are the dst, so an undirected graph's rows serve as they are. A node whose out-arcs all weigh 0 is
// dangling. Starts from 1/N. When it has converged, any number of further iterations changes the ranks by at
// most Tolerance * d/(1-d) in sum.
//
// float64, every sum in one fixed order: a row's terms in row order, sums over nodes within blocks of 4096,
// then over blocks; no multiply-add is fused. So the bits depend on the graph and options alone.
// O(iterations * (N + E)); 32 bytes a node. An error is about opt only.
func PageRank(in *CSR, opt RankOptions) (Rank, error) {
	opt, err := opt.Settle()
	if err != nil {
		return Rank{}, err
	}
	opt.Threads = numThreads(opt.Threads)
	numNodes := in.NumNodes()
	if numNodes == 0 {
		return Rank{Rank: []float64{}, Converged: true}, nil
	}
	out := outSums(in)
	x, next, share := make([]float64, numNodes), make([]float64, numNodes), make([]float64, numNodes)
	for v := range x {
		x[v] = 1 / float64(numNodes)
	}
	numBlocks := (numNodes + rankBlock - 1) / rankBlock
	sums := make([]float64, numBlocks)
	bounds := rowParts(in.Indptr, opt.Threads)
	inBlocks := func(f func(lo, hi int) float64) (total float64) {
		inParallel(opt.Threads, func(t int) {
			lo, hi := part(numBlocks, t, opt.Threads)
			for b := lo; b < hi; b++ {
				sums[b] = f(b*rankBlock, min((b+1)*rankBlock, numNodes))
			}
		})
		for _, s := range sums {
			total += s
		}
		return total
	}

	r := Rank{}
	for !r.Converged && r.Iterations < opt.MaxIterations {
		dangling := inBlocks(func(lo, hi int) (sum float64) {
			for u := lo; u < hi; u++ {
				if out[u] > 0 {
					share[u] = x[u] / out[u]
				} else {
					share[u] = 0
					sum += x[u]
				}
			}
			return sum
		})
		base := (float64(1-opt.Damping) + float64(opt.Damping*dangling)) / float64(numNodes)
		inParallel(opt.Threads, func(t int) {
			for v := bounds[t]; v < bounds[t+1]; v++ {
				sum := 0.0
				if in.Weight == nil {
					for _, u := range in.Row(int32(v)) {
						sum += share[u]
					}
				} else {
					for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
						sum += float64(float64(in.Weight[e]) * share[in.Indices[e]])
					}
				}
				next[v] = base + float64(opt.Damping*sum)
			}
		})
		r.Delta = inBlocks(func(lo, hi int) (sum float64) {
			for v := lo; v < hi; v++ {
				sum += math.Abs(next[v] - x[v])
			}
			return sum
		})
		x, next = next, x
		r.Iterations++
		r.Converged = r.Delta <= opt.Tolerance
		if opt.Progress != nil {
			opt.Progress(int64(r.Iterations), int64(opt.MaxIterations))
		}
	}
	r.Rank = x
	return r, nil
}

// outSums returns the sum of the weights of the entries with each src, added in order of entries.
func outSums(in *CSR) []float64 {
	out := make([]float64, in.NumNodes())
	for e, u := range in.Indices {
		if in.Weight == nil {
			out[u]++
		} else {
			out[u] += float64(in.Weight[e])
		}
	}
	return out
}

// SamplingWeights turns ranks into the probability of drawing a node when its component has been chosen:
// weight[v] = rank[v] / mass[labels[v]], with mass[k] the sum of the ranks of component k in order of node, in
// float64, rounded to float32 once. mass is then the probability of choosing component k. Ranks and labels are
// PageRank's and Components'; a component's weights sum to 1 within rounding, and an isolated node's is 1.
//
// Ranks, not degrees: isolated nodes keep a chance, and in an undirected component without
// teleport the two would be proportional.
func SamplingWeights(labels []int32, numComponents int, rank []float64) (weight []float32, mass []float64) {
	mass = make([]float64, numComponents)
	for v, k := range labels {
		mass[k] += rank[v]
	}
	weight = make([]float32, len(labels))
	for v, k := range labels {
		weight[v] = float32(rank[v] / mass[k])
	}
	return weight, mass
}
