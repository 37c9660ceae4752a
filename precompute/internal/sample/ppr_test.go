package sample

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/prelift/prelift/snapshot/graph"
)

// truePPR is the personalised PageRank of a PPR's walk from a seed, by powers: dense, and slow.
func truePPR(in *graph.CSR, alpha float64, seed int32) []float64 {
	n := in.NumNodes()
	rank, at := make([]float64, n), make([]float64, n)
	at[seed] = 1
	for range 400 {
		next := make([]float64, n)
		for v := range int32(n) {
			total, row := 0.0, in.Row(v)
			weight := func(i int) float64 {
				if row[i] == v {
					return 0
				}
				if in.Weight == nil {
					return 1
				}
				return float64(in.RowWeights(v)[i])
			}
			for i := range row {
				total += weight(i)
			}
			if total == 0 {
				rank[v] += at[v]
				continue
			}
			rank[v] += alpha * at[v]
			for i, u := range row {
				next[u] += (1 - alpha) * at[v] * weight(i) / total
			}
		}
		at = next
	}
	return rank
}

// withoutLoops leaves self loops out of rows.
func withoutLoops(in *graph.CSR) *graph.CSR {
	out := &graph.CSR{Indptr: make([]int64, len(in.Indptr))}
	for v := range int32(in.NumNodes()) {
		for at, u := range in.Row(v) {
			if u != v {
				out.Indices = append(out.Indices, u)
				if in.Weight != nil {
					out.Weight = append(out.Weight, in.RowWeights(v)[at])
				}
			}
		}
		out.Indptr[v+1] = int64(len(out.Indices))
	}
	return out
}

func TestPPRAgainstPowers(t *testing.T) {
	skewed, _ := skewedGraph(t, 7, 300)
	plain := withoutLoops(skewed)
	weighted := &graph.CSR{Indptr: skewed.Indptr, Indices: skewed.Indices, Weight: testWeights(skewed)}
	for name, in := range map[string]*graph.CSR{"plain": plain, "loops": skewed, "weighted": weighted, "star": starGraph(t, 60)} {
		keys := testKeys(in.NumNodes())
		for _, epsilon := range []float64{1e-2, 1e-4, 1e-7} {
			opt := PPROptions{Alpha: 0.2, Epsilon: epsilon, TopK: 10}
			p, err := NewPPR(in, keys, opt, nil)
			if err != nil {
				t.Fatal(err)
			}
			for seed := int32(0); seed < int32(in.NumNodes()); seed += 7 {
				want := truePPR(in, 0.2, seed)
				p.push([]int32{seed})
				sum := 0.0
				for v := range want {
					rank := p.rank[v] + 0.2*p.residue[v]
					if below := want[v] - rank; below < -1e-12 || name == "plain" && below > epsilon*float64(in.Degree(int32(v)))+1e-12 {
						t.Fatalf("%s, epsilon %g, seed %d: rank of %d is %g, truly %g", name, epsilon, seed, v, rank, want[v])
					}
					if residue := p.residue[v]; residue >= epsilon*float64(in.Degree(int32(v))) && residue > 0 {
						t.Fatalf("%s: a residue of %g stays at %d", name, residue, v)
					}
					sum += p.rank[v] + p.residue[v]
				}
				if math.Abs(sum-1) > 1e-12 {
					t.Fatalf("%s: ranks and residues add up to %g", name, sum)
				}
				for _, v := range p.touched {
					p.rank[v], p.residue[v] = 0, 0
					p.isTouched[v>>6] = 0
				}
				p.touched = p.touched[:0]
				if epsilon > 1e-6 {
					continue
				}
				// With so small an epsilon the nodes of clearly larger ranks are those of the true ones.
				top := p.NodeWise(seed)
				if len(top) > 10 || !slices.IsSorted(top) || slices.Contains(top, seed) {
					t.Fatalf("%s, seed %d: top %v", name, seed, top)
				}
				least := math.Inf(1)
				for _, v := range top {
					least = min(least, want[v])
				}
				for v, x := range want {
					if v := int32(v); v != seed && !slices.Contains(top, v) && (x > least+1e-4 || len(top) < 10 && x > 1e-4) {
						t.Fatalf("%s, seed %d: %d of rank %g isn't among %v, whose least is %g", name, seed, v, x, top, least)
					}
				}
			}
		}
	}
}

// TestPPRTies: of the leaves of a star, all of one rank, those of the smallest keys come with the hub, also where its residue is too
// small to pass on; and a batch's nodes never include its seeds.
func TestPPRTies(t *testing.T) {
	in := starGraph(t, 500)
	keys := testKeys(500)
	p, err := NewPPR(in, keys, PPROptions{Epsilon: 1, TopK: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	leaves := numbers(500)[12:] // those before are on the path
	want := slices.SortedFunc(slices.Values(numbers(500)[1:]), func(a, b int32) int { return cmp.Compare(keys[a], keys[b]) })[:3]
	slices.Sort(want)
	if got := p.NodeWise(0); !slices.Equal(got, want) {
		t.Errorf("%v come with the hub, want %v", got, want)
	}
	if got := p.NodeWise(leaves[5]); !slices.Equal(got, []int32{0}) {
		t.Errorf("%v come with a leaf, want the hub", got)
	}
	if got := p.BatchWise(leaves[:20]); !slices.Equal(got, []int32{0}) {
		t.Errorf("%v come with leaves, want the hub", got)
	}
	isolated := &graph.CSR{Indptr: make([]int64, 4)}
	if p, err = NewPPR(isolated, testKeys(3), PPROptions{}, nil); err != nil || len(p.NodeWise(1)) > 0 {
		t.Errorf("an isolated node comes with %v (%v)", p.NodeWise(1), err)
	}
}

// TestPPRBatch: the ranks of a batch are the sums of those of its seeds.
func TestPPRBatch(t *testing.T) {
	in, keys := skewedGraph(t, 8, 900)
	p, err := NewPPR(in, keys, PPROptions{Epsilon: 1e-9, TopK: 4}, nil)
	if err != nil {
		t.Fatal(err)
	}
	seeds := []int32{1, 5, 9}
	sums := make([]float64, in.NumNodes())
	for _, v := range seeds {
		for u, x := range truePPR(in, 0.25, v) {
			sums[u] += x
		}
	}
	order := slices.DeleteFunc(numbers(in.NumNodes()), func(v int32) bool { return slices.Contains(seeds, v) })
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(sums[b], sums[a]) })
	want := slices.Sorted(slices.Values(order[:12]))
	if got := slices.Clone(p.BatchWise(seeds)); !slices.Equal(got, want) {
		t.Errorf("with the batch come %v, want %v", got, want)
	}
}

// TestPPRLists: lists don't depend on threads, and hubs are left by HubCap neighbours, the same each time.
func TestPPRLists(t *testing.T) {
	in, keys := skewedGraph(t, 11, 20000)
	in.Weight = testWeights(in)
	for _, hubCap := range []int{0, 20} {
		opt := PPROptions{TopK: 8, Epsilon: 1e-3, HubCap: hubCap}
		seeds := numbers(700)
		var want *PPRLists
		for _, threads := range []int{1, 2, 7} {
			var last int64
			got, err := ListPPR(context.Background(), in, keys, seeds, opt, threads, func(done, total int64) { last = max(last, done) })
			if err != nil || last != 700 {
				t.Fatal(err, last)
			}
			if want == nil {
				want = got
			}
			if !slices.Equal(got.Indptr, want.Indptr) || !slices.Equal(got.Nodes, want.Nodes) {
				t.Errorf("cap %d: %d threads list others", hubCap, threads)
			}
		}
		p, err := NewPPR(in, keys, opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range seeds {
			if !slices.Equal(want.Row(i), p.NodeWise(v)) {
				t.Errorf("cap %d: row %d is not that of the seed", hubCap, i)
			}
		}
		if hubCap > 0 {
			hub := int32(0)
			row, places := in.Row(hub), p.hubs.places(hub)
			want := slices.DeleteFunc(slices.Clone(row), func(u int32) bool { return u == hub })
			slices.SortStableFunc(want, func(a, b int32) int {
				return cmp.Compare(Draw(0, 0, 1, keys[hub], keys[a]), Draw(0, 0, 1, keys[hub], keys[b]))
			})
			want = slices.Sorted(slices.Values(want[:hubCap]))
			for i, at := range places {
				if row[at] != want[i] {
					t.Fatalf("walks leave the hub by %d, want %v", row[at], want)
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ListPPR(ctx, in, keys, numbers(700), PPROptions{}, 2, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, opt := range []PPROptions{{Alpha: 1}, {Alpha: math.NaN()}, {Epsilon: -1}, {TopK: -1}, {HubCap: -1}, {Epsilon: 2}} {
		if _, err := NewPPR(in, keys, opt, nil); err == nil {
			t.Errorf("%+v is accepted", opt)
		}
	}
}
