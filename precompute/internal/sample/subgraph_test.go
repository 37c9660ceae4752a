package sample

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/prelift/prelift/snapshot/graph"
)

// checkSubgraph compares a subgraph with what its definition gives, by maps.
func checkSubgraph(t *testing.T, in *graph.CSR, seeds, others []int32, keepEntries bool, g *Subgraph) {
	t.Helper()
	want := slices.Clone(others)
	slices.Sort(want)
	want = slices.DeleteFunc(slices.Compact(want), func(v int32) bool { return slices.Contains(seeds, v) })
	want = append(slices.Clone(seeds), want...)
	if !slices.Equal(g.Nodes, want) || g.NumSeeds != len(seeds) || len(g.Indptr) != len(want)+1 {
		t.Fatalf("nodes %v with %d seeds and %d rows, want %v with %d", g.Nodes, g.NumSeeds, len(g.Indptr)-1, want, len(seeds))
	}
	place := map[int32]int32{}
	for i, v := range want {
		place[v] = int32(i)
	}
	for d, v := range want {
		var row []int32
		var entries []int64
		neighbours := 0
		for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
			u := in.Indices[e]
			if u == v {
				continue
			}
			neighbours++
			if to, ok := place[u]; ok {
				row, entries = append(row, to), append(entries, e)
			}
		}
		lo, hi := g.Indptr[d], g.Indptr[d+1]
		if got := g.Indices[lo:hi]; !slices.Equal(got, row) {
			t.Fatalf("node %d: row %v, want %v", v, got, row)
		}
		if keepEntries && !slices.Equal(g.Entries[lo:hi], entries) {
			t.Fatalf("node %d: entries %v, want %v", v, g.Entries[lo:hi], entries)
		}
		importance := float32(1)
		if len(row) > 0 {
			importance = float32(float64(neighbours) / float64(len(row)))
		}
		if g.Importance[d] != importance {
			t.Fatalf("node %d: importance %g, want %g", v, g.Importance[d], importance)
		}
	}
	if !keepEntries && len(g.Entries) > 0 {
		t.Fatal("entries that weren't asked for")
	}
}

// starGraph is a hub 0 with n-1 leaves, a loop at the hub and at every third node, and a path among the first ten leaves.
func starGraph(t *testing.T, n int32) *graph.CSR {
	t.Helper()
	var src, dst []int32
	for v := int32(1); v < n; v++ {
		src, dst = append(src, v), append(dst, 0)
	}
	for v := int32(0); v < n; v += 3 {
		src, dst = append(src, v), append(dst, v)
	}
	for v := int32(1); v < min(10, n-1); v++ {
		src, dst = append(src, v), append(dst, v+1)
	}
	g, err := graph.Build(context.Background(), int(n), src, dst, nil, graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &g.In
}

func TestInduce(t *testing.T) {
	skewed, _ := skewedGraph(t, 10, 6000)
	skewed.Weight = testWeights(skewed)
	related, _ := withRelations(skewed)
	for name, in := range map[string]*graph.CSR{"skewed": skewed, "relations": related, "star": starGraph(t, 2000)} {
		for _, keepEntries := range []bool{false, true} {
			inducer := NewInducer(in, keepEntries) // reused: what a call leaves mustn't show in the next
			for trial := range 60 {
				var seeds, others []int32
				for v := range int32(in.NumNodes()) {
					h := graph.Hash(uint64(trial), uint64(v)) % 1000
					if h < uint64(trial) {
						seeds = append(seeds, v)
					}
					if h%100 < uint64(trial%20) || v == 0 && trial%2 == 1 {
						others = append(others, v, v)
					}
				}
				slices.Reverse(seeds)
				slices.SortFunc(others, func(a, b int32) int { return cmp.Compare(graph.Hash(uint64(a)), graph.Hash(uint64(b))) })
				t.Run(fmt.Sprintf("%s/%d", name, trial), func(t *testing.T) {
					checkSubgraph(t, in, seeds, others, keepEntries, inducer.Induce(seeds, others))
				})
			}
		}
	}
}

func TestFirstFrom(t *testing.T) {
	row := []int32{}
	for n := range 40 {
		for u := int32(-1); u < 130; u++ {
			want, _ := slices.BinarySearch(row, u)
			if got := firstFrom(row, u); got != want {
				t.Fatalf("first from %d in %v is %d, want %d", u, row, got, want)
			}
		}
		row = append(row, int32(n*3+n%2))
	}
}

func TestKHop(t *testing.T) {
	for name, in := range map[string]*graph.CSR{"star": starGraph(t, 300), "isolated": {Indptr: make([]int64, 4)}, "skewed": func() *graph.CSR { in, _ := skewedGraph(t, 9, 4000); return in }()} {
		n := in.NumNodes()
		keys := testKeys(n)
		hop1, err := graph.BuildHop1(in, graph.HopOptions{})
		if err != nil {
			t.Fatal(err)
		}
		hop2, _, err := graph.BuildHop2(context.Background(), in, keys, graph.HopOptions{Hop2Cap: 60})
		if err != nil {
			t.Fatal(err)
		}
		for _, hops := range []int{1, 2} {
			for _, hubCap := range []int{0, 1, 20, 1000} {
				opt := KHopOptions{Hops: hops, HubCap: hubCap, Seed: 9}
				k := NewKHop(hop1, hop2, keys, opt)
				for variant := range 3 {
					seeds := numbers(min(n, 50))
					var want []int32
					for _, v := range seeds {
						lists := [][]int32{{}, hop2.Row(v)}
						for _, u := range in.Row(v) {
							if u != v {
								lists[0] = append(lists[0], u)
							}
						}
						for hop := 1; hop <= hops; hop++ {
							list := slices.Clone(lists[hop-1])
							if hubCap > 0 && len(list) > hubCap {
								slices.SortStableFunc(list, func(a, b int32) int {
									return cmp.Compare(Draw(9, variant, hop, keys[v], keys[a]), Draw(9, variant, hop, keys[v], keys[b]))
								})
								list = list[:hubCap]
								slices.Sort(list)
							}
							want = append(want, list...)
						}
					}
					if got := k.Lists(variant, seeds); !slices.Equal(got, want) {
						t.Errorf("%s: %d hops, cap %d, variant %d: %v, want %v", name, hops, hubCap, variant, got, want)
					}
				}
			}
		}
	}
}
