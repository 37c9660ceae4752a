package graph

import (
	"fmt"
	"math"
)

// VerifyPageRank checks ranks by what makes them unique: all over 0, sum 1, and one more step changes them by no
// more than the tolerance. The step is taken by the arcs' src (shares are pushed, not pulled), and dangling nodes
// by their own arcs to every node at once. in must have passed VerifyCSR.
func VerifyPageRank(in *CSR, opt RankOptions, r Rank) error {
	opt, err := opt.Settle()
	if err != nil {
		return err
	}
	n := in.NumNodes()
	if len(r.Rank) != n {
		return fmt.Errorf("%d ranks for %d nodes", len(r.Rank), n)
	}
	if n == 0 {
		return nil
	}
	sum := 0.0
	for v, x := range r.Rank {
		if !(x > 0 && x <= 1) {
			return fmt.Errorf("rank of %d is %g", v, x)
		}
		sum += x
	}
	// n additions of numbers that sum to 1, in any order, are off by at most n/2 roundings of 2^-53.
	if rounding := float64(n) * 0x1p-53; math.Abs(sum-1) > 1e-12+float64(r.Iterations)*rounding {
		return fmt.Errorf("ranks sum to %.17g", sum)
	}

	outIndptr, outIndices, outEdge := Transpose(n, n, in.Indptr, in.Indices)
	next := make([]float64, n)
	jump := 0.0 // what goes to all nodes evenly
	for u, x := range r.Rank {
		weight := func(i int64) float64 {
			if in.Weight == nil {
				return 1
			}
			return float64(in.Weight[outEdge[i]])
		}
		out := 0.0
		for i := outIndptr[u]; i < outIndptr[u+1]; i++ {
			out += weight(i)
		}
		if out == 0 {
			jump += x
			continue
		}
		jump += (1 - opt.Damping) * x
		for i := outIndptr[u]; i < outIndptr[u+1]; i++ {
			next[outIndices[i]] += opt.Damping * x * (weight(i) / out)
		}
	}
	delta := 0.0
	for v, x := range next {
		delta += math.Abs(x + jump/float64(n) - r.Rank[v])
	}
	// The ranks are the outcome of a step of r.Delta, so the next step is smaller but for rounding.
	if limit := opt.Damping*r.Delta + 1e-12; delta > limit || r.Converged != (r.Delta <= opt.Tolerance) {
		return fmt.Errorf("one more step changes ranks by %g, want at most %g (converged: %t)", delta, limit, r.Converged)
	}
	return nil
}

// VerifySamplingWeights checks that weights and masses sum to 1 and are the ranks in each component's proportion.
func VerifySamplingWeights(labels []int32, rank []float64, weight []float32, mass []float64) error {
	if len(weight) != len(rank) || len(labels) != len(rank) {
		return fmt.Errorf("%d sampling weights and %d labels for %d nodes", len(weight), len(labels), len(rank))
	}
	nodes := make([][]int, len(mass))
	for v, k := range labels {
		nodes[k] = append(nodes[k], v)
	}
	all := 0.0
	for k, members := range nodes {
		sum, total := 0.0, 0.0
		for _, v := range members {
			sum += float64(weight[v])
			total += rank[v]
			if math.Abs(float64(weight[v])*mass[k]-rank[v]) > 0x1p-23*rank[v] {
				return fmt.Errorf("sampling weight of %d is %g, want %g", v, weight[v], rank[v]/mass[k])
			}
		}
		if len(members) > 0 && math.Abs(sum-1) > 1e-6 || math.Abs(total-mass[k]) > 1e-12 {
			return fmt.Errorf("sampling weights of component %d sum to %g, its ranks to %g, want 1 and %g", k, sum, total, mass[k])
		}
		all += mass[k]
	}
	if len(rank) > 0 && math.Abs(all-1) > 1e-9 {
		return fmt.Errorf("masses sum to %g", all)
	}
	return nil
}
