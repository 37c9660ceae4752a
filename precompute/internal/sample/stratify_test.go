package sample

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/prelift/prelift/snapshot/graph"
)

// strataGraph is a clique of 40 nodes and 60 paths of 3: nodes 0..39 and 40.. of 220.
func strataGraph(t *testing.T) *graph.CSR {
	t.Helper()
	var src, dst []int32
	for u := range int32(40) {
		for v := range u {
			src, dst = append(src, u), append(dst, v)
		}
	}
	for u := int32(40); u < 220; u += 3 {
		src, dst = append(src, u, u+1), append(dst, u+1, u+2)
	}
	g, err := graph.Build(context.Background(), 220, src, dst, nil, graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &g.In
}

func TestStratify(t *testing.T) {
	in := strataGraph(t)
	component, sizes := graph.Components(in, true, 1)
	rank, err := graph.PageRank(in, graph.RankOptions{})
	if err != nil {
		t.Fatal(err)
	}
	keys := testKeys(220)
	isDense := func(v int32) bool { return v < 40 }
	for _, c := range []struct {
		name          string
		seeds         []int32
		batchSize     int
		share         float64
		dense, sparse int // of a batch
	}{
		{"half", numbers(220), 20, 0.5, 10, 10},
		{"a third", numbers(220), 20, 1.0 / 3, 7, 13},
		{"dense only", numbers(220), 20, 1, 20, 0},
		{"sparse only", numbers(220), 20, 0, 0, 20},
		{"too few dense", numbers(220), 100, 0.5, 40, 60},
		{"too few sparse", numbers(50), 40, 0.5, 30, 10},
		{"no sparse", numbers(30), 20, 0.5, 20, 0},
		{"no dense", numbers(220)[40:], 20, 0.5, 0, 20},
		{"all in one", numbers(220), 1000, 0.5, 40, 180},
		{"no seeds", nil, 10, 0.5, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := NewStratifier(in, component, sizes, rank.Rank, keys, c.seeds, StratifyOptions{BatchSize: c.batchSize, DenseShare: c.share, Seed: 4})
			if err != nil {
				t.Fatal(err)
			}
			if want := (len(c.seeds) + c.batchSize - 1) / c.batchSize; s.NumBatches() != want {
				t.Fatalf("%d batches, want %d", s.NumBatches(), want)
			}
			other := s.Share()
			times := map[int32]int{}
			for variant := range 3 {
				for i := range s.NumBatches() {
					seeds := s.Batch(variant, i)
					dense := 0
					for j, v := range seeds {
						if j > 0 && seeds[j-1] >= v || !slices.Contains(c.seeds, v) {
							t.Fatalf("batch %d has the seeds %v", i, seeds)
						}
						if isDense(v) {
							dense++
							times[v]++
						}
					}
					if dense != c.dense || len(seeds)-dense != c.sparse {
						t.Fatalf("batch %d has %d dense and %d sparse seeds, want %d and %d", i, dense, len(seeds)-dense, c.dense, c.sparse)
					}
					if i%2 == 1 && !slices.Equal(seeds, other.Batch(variant, i)) {
						t.Fatalf("batch %d depends on the batches made before", i)
					}
				}
				// Dense seeds take turns: within a variant their numbers of times differ by at most one.
				most, least := 0, math.MaxInt
				for _, v := range c.seeds {
					if isDense(v) {
						most, least = max(most, times[v]), min(least, times[v])
					}
				}
				if c.dense > 0 && most-least > variant+1 {
					t.Fatalf("after %d variants dense seeds were taken %d to %d times", variant+1, least, most)
				}
			}
		})
	}
}

// TestStratifyByRank: a sparse seed of twice the rank is taken about twice as often, where few of many are.
func TestStratifyByRank(t *testing.T) {
	in := strataGraph(t)
	component, sizes := graph.Components(in, true, 1)
	rank := make([]float64, 220)
	for v := range rank {
		rank[v] = 0.001 * float64(1+v%3) // the three nodes of a path have ranks as 2 : 3 : 1
	}
	s, err := NewStratifier(in, component, sizes, rank, testKeys(220), numbers(220), StratifyOptions{BatchSize: 4, DenseShare: 0.5, Seed: 8})
	if err != nil {
		t.Fatal(err)
	}
	counts := [3]float64{}
	const batches = 20000
	for i := range batches {
		for _, v := range s.Batch(i, i) {
			if v >= 40 {
				counts[v%3]++
			}
		}
	}
	for k, n := range counts {
		// 2 of 180 are taken, so chances are the shares of the rank within a per cent or so; sigma is under 1 % of the expected.
		if want := 2 * batches * float64(k+1) / 6; math.Abs(n/want-1) > 0.05 {
			t.Errorf("nodes of weight %d were taken %g times, want about %g", k+1, n, want)
		}
	}
}

func TestDenseComponents(t *testing.T) {
	in := strataGraph(t)
	component, sizes := graph.Components(in, true, 1)
	for _, c := range []struct {
		opt  StratifyOptions
		want int // dense components
	}{
		{StratifyOptions{}, 1},
		{StratifyOptions{MinSize: 41}, 0},
		{StratifyOptions{MinSize: 3, MinDegree: 1}, 61},
		{StratifyOptions{MinDegree: 39.5}, 0},
		{StratifyOptions{MinDegree: 39}, 1},
	} {
		got := 0
		for _, dense := range denseComponents(in, component, sizes, c.opt) {
			if dense {
				got++
			}
		}
		if got != c.want {
			t.Errorf("%+v: %d dense components, want %d", c.opt, got, c.want)
		}
	}
	for _, opt := range []StratifyOptions{{}, {BatchSize: 1, DenseShare: 1.1}, {BatchSize: 1, DenseShare: math.NaN()}, {BatchSize: 1, MinDegree: -1}} {
		if _, err := NewStratifier(in, component, sizes, make([]float64, 220), testKeys(220), nil, opt); err == nil {
			t.Errorf("%+v is accepted", opt)
		}
	}
}
