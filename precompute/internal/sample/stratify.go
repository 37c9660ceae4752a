package sample

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/prelift/prelift/snapshot/graph"
)

// StratifyOptions steer a Stratifier.
type StratifyOptions struct {
	BatchSize  int
	DenseShare float64 // of a batch's seeds, from dense, large components; 0 to 1
	// A component is dense and large with at least MinSize nodes and at least MinDegree neighbours a node in the mean. 0: the mean size of components, and the
	// mean degree of the graph.
	MinSize   int64
	MinDegree float64
	Seed      int64
}

// Stratifier fills each batch with seeds of two strata: of dense, large components, which take turns, and of the other, sparse ones, each batch a draw by
// PageRank. So small components that would hardly be met come in, those with well-connected nodes first; but it isn't an epoch over all seeds any more: a sparse seed may be in
// many batches of a variant or in none. Not safe for concurrent use; give each worker its own, by Share.
type Stratifier struct {
	opt        StratifyOptions
	keys       []uint64
	dense      []int32
	sparse     []int32
	rank       []float64 // of sparse
	numBatches int

	sel     selection
	variant int
	order   []int32 // of dense in variant; nil before the first batch
}

// NewStratifier sorts the seeds, which must be distinct and ascending, into the strata. component and sizes are as graph.Components gives them, rank as graph.PageRank. Errors are of opt.
func NewStratifier(in *graph.CSR, component []int32, sizes []int64, rank []float64, keys []uint64, seeds []int32, opt StratifyOptions) (*Stratifier, error) {
	checkKeys(in, keys)
	switch {
	case opt.BatchSize < 1:
		return nil, fmt.Errorf("stratified batches of %d seeds: want 1 or more", opt.BatchSize)
	case !(opt.DenseShare >= 0 && opt.DenseShare <= 1):
		return nil, fmt.Errorf("a share of %g from dense components: want 0 to 1", opt.DenseShare)
	case opt.MinSize < 0 || !(opt.MinDegree >= 0 && opt.MinDegree <= math.MaxFloat64):
		return nil, fmt.Errorf("dense components from %d nodes and %g neighbours each: want 0 or more", opt.MinSize, opt.MinDegree)
	}
	s := &Stratifier{opt: opt, keys: keys, numBatches: (len(seeds) + opt.BatchSize - 1) / opt.BatchSize}
	isDense := denseComponents(in, component, sizes, opt)
	for _, v := range seeds {
		if isDense[component[v]] {
			s.dense = append(s.dense, v)
		} else {
			s.sparse, s.rank = append(s.sparse, v), append(s.rank, rank[v])
		}
	}
	return s, nil
}

// denseComponents says of each component whether it is dense and large. Means are compared without rounding.
func denseComponents(in *graph.CSR, component []int32, sizes []int64, opt StratifyOptions) []bool {
	numNodes, all := int64(in.NumNodes()), int64(0)
	neighbours := make([]int64, len(sizes))
	for v := range int32(numNodes) {
		_, loops := loopsOf(in, v)
		d := in.Degree(v) - int64(loops)
		neighbours[component[v]] += d
		all += d
	}
	isDense := make([]bool, len(sizes))
	for c, size := range sizes {
		large := size >= opt.MinSize
		if opt.MinSize == 0 {
			large = atLeast(size, int64(len(sizes)), numNodes, 1)
		}
		dense := float64(neighbours[c]) >= opt.MinDegree*float64(size)
		if opt.MinDegree == 0 {
			dense = atLeast(neighbours[c], numNodes, all, size)
		}
		isDense[c] = large && dense
	}
	return isDense
}

// atLeast reports whether a*b >= c*d, of numbers that aren't negative.
func atLeast(a, b, c, d int64) bool {
	high1, low1 := bits.Mul64(uint64(a), uint64(b))
	high2, low2 := bits.Mul64(uint64(c), uint64(d))
	return high1 > high2 || high1 == high2 && low1 >= low2
}

// Share returns a Stratifier of the same strata for another worker.
func (s *Stratifier) Share() *Stratifier {
	t := *s
	t.sel, t.order = selection{}, nil
	return &t
}

// NumBatches returns the number of batches of a variant: as many as it takes for one with every seed.
func (s *Stratifier) NumBatches() int { return s.numBatches }

// Strata returns the number of seeds in dense, large components, and of the others.
func (s *Stratifier) Strata() (dense, sparse int) { return len(s.dense), len(s.sparse) }

// Batch returns the seeds of batch i of a variant, ascending and distinct: as many as BatchSize, or as there are, the DenseShare of them, rounded, from the dense stratum. Where a
// stratum has too few, the other fills up. Dense seeds are in random order (RandomOrder), each batch goes on where the one before ended, and
// starts over at the end. Of the sparse ones it takes those of the largest rank/u with u = unit(hash(8, seed, variant, i, key)): priority
// sampling, so that the chance of a seed is about its share of the rank. O(seeds of sparse components). Valid until the next call.
func (s *Stratifier) Batch(variant, i int) []int32 {
	total := min(s.opt.BatchSize, len(s.dense)+len(s.sparse))
	numDense := min(int(math.Floor(float64(s.opt.DenseShare*float64(total))+0.5)), len(s.dense))
	numSparse := min(total-numDense, len(s.sparse))
	numDense = total - numSparse
	seeds := make([]int32, 0, total)
	if s.order == nil || s.variant != variant {
		s.order, s.variant = RandomOrder(s.dense, s.keys, s.opt.Seed, variant), variant
	}
	for j := range numDense {
		seeds = append(seeds, s.order[(int64(i)*int64(numDense)+int64(j))%int64(len(s.order))])
	}
	seeds = s.appendSparse(seeds, graph.Hash(forSparse, uint64(s.opt.Seed), uint64(variant), uint64(i)), numSparse)
	slices.Sort(seeds)
	return seeds
}

// appendSparse appends k of the sparse seeds.
func (s *Stratifier) appendSparse(seeds []int32, base uint64, k int) []int32 {
	if k == 0 {
		return seeds
	}
	sel, limit := &s.sel, uint64(math.MaxUint64)
	sel.n = 0
	for start := 0; start < len(s.sparse); start += blockLen {
		end := min(start+blockLen, len(s.sparse))
		sel.reserve(end - start)
		for at := start; at < end; at++ {
			if x := ^priority(s.rank[at], graph.Fold(base, s.keys[s.sparse[at]])); x <= limit {
				sel.draws[sel.n], sel.places[sel.n] = x, int32(at)
				sel.n++
			}
		}
		if sel.n > 2*k+slackLen {
			limit = sel.cut(k)
		}
	}
	sel.cut(k)
	for _, at := range sel.places[:sel.n] {
		seeds = append(seeds, s.sparse[at])
	}
	return seeds
}
