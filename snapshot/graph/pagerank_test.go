package graph

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPageRank(t *testing.T) {
	forShapes(t, func(t *testing.T, _ *rand.Rand, x edges, directed bool) {
		g := mustBuild(t, x, directed)
		for _, opt := range []RankOptions{{}, {Damping: 0.5, Tolerance: 1e-14}, {Damping: 0.99, MaxIterations: 3}} {
			opt.Threads = 1
			r, err := PageRank(&g.In, opt)
			if err != nil {
				t.Fatal(err)
			}
			if err := VerifyPageRank(&g.In, opt, r); err != nil {
				t.Fatalf("%+v: %v", opt, err)
			}
			labels, sizes := Components(&g.In, g.Out == nil, 1)
			weight, mass := SamplingWeights(labels, len(sizes), r.Rank)
			if err := VerifySamplingWeights(labels, r.Rank, weight, mass); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestPageRankValues(t *testing.T) {
	for _, tc := range []struct {
		name     string
		directed bool
		x        edges
		want     []float64
	}{
		// networkx 2.8.8
		{"a dangling node's rank is spread (networkx/networkx#978)", true,
			edges{numNodes: 3, src: []int32{0, 1}, dst: []int32{1, 2}}, []float64{0.184417, 0.341171, 0.474412}},
		{"no edges", false, edges{numNodes: 4}, []float64{0.25, 0.25, 0.25, 0.25}},
		// b = 0.15/2 + 0.85(a*3/4), a = 0.15/2 + 0.85(a/4 + b)
		{"weights, and a loop", true,
			edges{numNodes: 2, src: []int32{0, 0, 1}, dst: []int32{0, 1, 0}, weight: []float32{1, 3, 7}},
			[]float64{0.075 * 1.85 / (1 - 0.2125 - 0.541875), 0.075 + 0.6375*0.075*1.85/(1-0.2125-0.541875)}},
		{"arcs of weight 0 leave a node dangling", true,
			edges{numNodes: 3, src: []int32{0, 1, 2}, dst: []int32{1, 2, 0}, weight: []float32{1, 1, 0}}, []float64{0.184417, 0.341171, 0.474412}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := mustBuild(t, tc.x, tc.directed)
			r, err := PageRank(&g.In, RankOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for v, want := range tc.want {
				if math.Abs(r.Rank[v]-want) > 1e-6 {
					t.Errorf("node %d: got %f, want %f", v, r.Rank[v], want)
				}
			}
			if !r.Converged {
				t.Errorf("not converged after %d iterations", r.Iterations)
			}
			more, _ := PageRank(&g.In, RankOptions{Tolerance: math.SmallestNonzeroFloat64, MaxIterations: r.Iterations + 100})
			for v := range r.Rank {
				if math.Abs(more.Rank[v]-r.Rank[v]) > 1e-9 {
					t.Errorf("node %d: %g after 100 iterations more, %g before", v, more.Rank[v], r.Rank[v])
				}
			}
		})
	}
}

// A star of L leaves: hub = 0.15/n (1 + 0.85 L) / (1 - 0.85^2), n = L+1.
func TestPageRankStar(t *testing.T) {
	const numLeaves, n = 200_000, 200_001.0
	x := edges{numNodes: n}
	for v := int32(1); v <= numLeaves; v++ {
		x.add(0, v)
	}
	g := mustBuild(t, x, false)
	r, err := PageRank(&g.In, RankOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hub := 0.15 / n * (1 + 0.85*numLeaves) / (1 - 0.85*0.85)
	leaf := 0.15/n + 0.85*hub/numLeaves
	if math.Abs(r.Rank[0]-hub) > 1e-9 || math.Abs(r.Rank[1]-leaf) > 1e-14 || r.Rank[1] != r.Rank[numLeaves] {
		t.Errorf("hub %g, leaves %g and %g, want %g and %g", r.Rank[0], r.Rank[1], r.Rank[numLeaves], hub, leaf)
	}
	if err := VerifyPageRank(&g.In, RankOptions{}, r); err != nil {
		t.Error(err)
	}
}

// Sums run over several blocks, and threads change no bit.
func TestPageRankThreads(t *testing.T) {
	numNodes, src, dst := benchEdges(150_000)
	weight := make([]float32, len(src))
	for i := range weight {
		weight[i] = float32(i%13) * 0.37
	}
	for _, weights := range [][]float32{nil, weight} {
		g := mustBuild(t, edges{numNodes: numNodes, src: src, dst: dst, weight: weights}, true)
		want, err := PageRank(&g.In, RankOptions{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := VerifyPageRank(&g.In, RankOptions{}, want); err != nil {
			t.Fatal(err)
		}
		for _, threads := range []int{2, 3, 16} {
			got, _ := PageRank(&g.In, RankOptions{Threads: threads})
			if !slices.Equal(got.Rank, want.Rank) || got.Delta != want.Delta || got.Iterations != want.Iterations {
				t.Errorf("%d threads differ from one", threads)
			}
		}
	}
}

func TestPageRankFaults(t *testing.T) {
	g := mustBuild(t, edges{numNodes: 4, src: []int32{0, 1, 2}, dst: []int32{1, 2, 3}}, true)
	for _, opt := range []RankOptions{{Damping: 1}, {Damping: -0.1}, {Damping: math.NaN()}, {Tolerance: -1}, {MaxIterations: -1}} {
		if _, err := PageRank(&g.In, opt); err == nil {
			t.Errorf("%+v: no error", opt)
		}
	}
	for name, do := range map[string]func(r *Rank){
		"none":      func(*Rank) {},
		"short":     func(r *Rank) { r.Rank = r.Rank[:3] },
		"scaled":    func(r *Rank) { r.Rank[0] *= 1.001 },
		"swapped":   func(r *Rank) { r.Rank[0], r.Rank[3] = r.Rank[3], r.Rank[0] },
		"NaN":       func(r *Rank) { r.Rank[2] = math.NaN() },
		"converged": func(r *Rank) { r.Converged = false },
	} {
		r, _ := PageRank(&g.In, RankOptions{})
		do(&r)
		if err := VerifyPageRank(&g.In, RankOptions{}, r); (err == nil) != (name == "none") {
			t.Errorf("%s: %v", name, err)
		}
	}
	labels, sizes := Components(&g.In, g.Out == nil, 1)
	r, _ := PageRank(&g.In, RankOptions{})
	weight, mass := SamplingWeights(labels, len(sizes), r.Rank)
	weight[1] *= 1.01
	if VerifySamplingWeights(labels, r.Rank, weight, mass) == nil {
		t.Error("a wrong sampling weight passes")
	}
}

func BenchmarkPageRank(b *testing.B) {
	c := hopGraph()
	var r Rank
	for b.Loop() {
		r, _ = PageRank(c, RankOptions{})
	}
	b.ReportMetric(float64(r.Iterations), "iterations")
	b.ReportMetric(float64(r.Iterations)*float64(c.NumEntries())*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

// TestPageRankBits holds the bits of ranks, which enter the snapshot id, against SPEC 5.6 done in its order, one node after the
// other: sums over blocks of 4096 nodes, added up in order, and the base divided once.
func TestPageRankBits(t *testing.T) {
	const numNodes, block = 10_001, 4096
	for _, weighted := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(5, 6))
		x := edges{numNodes: numNodes}
		for range 30_000 {
			x.src, x.dst = append(x.src, rng.Int32N(numNodes/2)), append(x.dst, rng.Int32N(numNodes)) // the upper half leads nowhere
			if weighted {
				x.weight = append(x.weight, rng.Float32())
			}
		}
		in := &mustBuild(t, x, true).In
		got, err := PageRank(in, RankOptions{Threads: 3})
		if err != nil {
			t.Fatal(err)
		}
		weight := func(e int64) float64 {
			if in.Weight == nil {
				return 1
			}
			return float64(in.Weight[e])
		}
		out := make([]float64, numNodes)
		for e, u := range in.Indices {
			out[u] += weight(int64(e))
		}
		inBlocks := func(term func(v int) float64) (total float64) {
			for lo := 0; lo < numNodes; lo += block {
				sum := 0.0
				for v := lo; v < min(lo+block, numNodes); v++ {
					sum += term(v)
				}
				total += sum
			}
			return total
		}
		rank, next := make([]float64, numNodes), make([]float64, numNodes)
		for v := range rank {
			rank[v] = 1 / float64(numNodes)
		}
		for range got.Iterations {
			dangling := inBlocks(func(v int) float64 {
				if out[v] > 0 {
					return 0
				}
				return rank[v]
			})
			d := 0.85
			base := (float64(1-d) + float64(d*dangling)) / numNodes
			for v := range next {
				sum := 0.0
				for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
					u := in.Indices[e]
					sum += float64(weight(e) * float64(rank[u]/out[u]))
				}
				next[v] = base + float64(d*sum)
			}
			delta := inBlocks(func(v int) float64 { return math.Abs(next[v] - rank[v]) })
			rank, next = next, rank
			if got.Iterations == 0 || delta < got.Delta {
				t.Fatalf("delta %g before the end, %g at it", delta, got.Delta)
			}
		}
		if !slices.Equal(got.Rank, rank) {
			t.Errorf("weighted %t: ranks differ in their bits after %d iterations", weighted, got.Iterations)
		}
	}
}
