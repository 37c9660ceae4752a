package sample

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/prelift/prelift/snapshot/graph"
)

// fullGraph is the edges of a graph by a map, held-out pairs included.
type fullGraph struct {
	n        int
	has      map[[2]int32]bool // src, dst
	in       *graph.CSR
	out      *graph.CSR
	held     []graph.Pairs
	keys     []uint64
	nonEdges *NonEdges
}

// newFullGraph draws a graph of n nodes in which about share of 16 pairs are edges, some of them held out, some listed as held out though they are in the rows.
func newFullGraph(t *testing.T, n int, share uint64, directed bool, salt uint64) *fullGraph {
	t.Helper()
	g := &fullGraph{n: n, has: map[[2]int32]bool{}, keys: testKeys(n), held: make([]graph.Pairs, 2)}
	var src, dst []int32
	for u := range int32(n) {
		for v := range int32(n) {
			h := graph.Hash(salt, uint64(u), uint64(v))
			if h%16 >= share || !directed && v < u || u == v && h>>8%2 == 0 {
				continue
			}
			g.has[[2]int32{u, v}] = true
			if !directed {
				g.has[[2]int32{v, u}] = true
			}
			list := &g.held[h>>16%2]
			if held := h >> 24 % 4; held <= 1 && u != v {
				list.Src, list.Dst = append(list.Src, u), append(list.Dst, v)
				if held == 0 {
					continue
				}
			}
			src, dst = append(src, u), append(dst, v)
		}
	}
	built, err := graph.Build(context.Background(), n, src, dst, nil, graph.Options{Directed: directed})
	if err != nil {
		t.Fatal(err)
	}
	g.in, g.out = &built.In, built.Out
	if g.nonEdges, err = NewNonEdges(g.in, g.out, g.held...); err != nil {
		t.Fatal(err)
	}
	return g
}

// non returns the nodes that make no edge with v at the end kept.
func (g *fullGraph) non(kept Kept, v int32) (nodes []int32) {
	for u := range int32(g.n) {
		pair := [2]int32{v, u}
		if kept == KeepDst {
			pair = [2]int32{u, v}
		}
		if u != v && !g.has[pair] {
			nodes = append(nodes, u)
		}
	}
	return nodes
}

func TestNonEdges(t *testing.T) {
	for _, directed := range []bool{false, true} {
		for _, n := range []int{1, 2, 3, 20, 70} {
			for _, share := range []uint64{0, 1, 8, 15, 16} {
				g := newFullGraph(t, n, share, directed, 5)
				for _, kept := range []Kept{KeepSrc, KeepDst} {
					for v := range int32(n) {
						want := g.non(kept, v)
						var got []int32
						of := g.nonEdges.Of(kept, v)
						for j := range of.Len() {
							got = append(got, of.At(j))
						}
						if !slices.Equal(got, want) {
							t.Fatalf("directed %t, %d nodes, density %d/16, kept %d: %d has no edge with %v, want %v", directed, n, share, kept, v, got, want)
						}
					}
				}
				all := NewAnyNonEdges(g.nonEdges)
				i := int64(0)
				for u := range int32(n) {
					for _, v := range g.non(KeepSrc, u) {
						if !directed && v < u {
							continue
						}
						if src, dst := all.At(i); src != u || dst != v {
							t.Fatalf("pair %d is %d, %d, want %d, %d", i, src, dst, u, v)
						}
						i++
					}
				}
				if all.Len() != i {
					t.Fatalf("directed %t, %d nodes, density %d/16: %d pairs, want %d", directed, n, share, all.Len(), i)
				}
			}
		}
	}
}

// TestNegatives: negatives are no edges, keep the end they should, are as many as there can be, and distinct where asked.
func TestNegatives(t *testing.T) {
	for _, directed := range []bool{false, true} {
		for _, share := range []uint64{2, 12, 15, 16} {
			for _, distinct := range []bool{false, true} {
				for _, k := range []int{0, 1, 2, 5, 30, 200} {
					g := newFullGraph(t, 40, share, directed, 6)
					draw := NewNegatives(g.nonEdges, g.keys, NegativeOptions{K: k, Distinct: distinct, Seed: 2})
					for pair := range g.has {
						src, dst := pair[0], pair[1]
						s, d := draw.Append(nil, nil, 3, src, dst)
						numSrc, numDst := len(g.non(KeepSrc, src)), len(g.non(KeepDst, dst))
						want := k
						if distinct {
							want = min(k, numSrc+numDst)
						} else if numSrc+numDst == 0 {
							want = 0
						}
						if src == dst && distinct { // a loop's ends may give the same pair
							continue
						}
						seen := map[[2]int32]bool{}
						keepSrc := 0
						for i := range s {
							negative := [2]int32{s[i], d[i]}
							if s[i] == d[i] || g.has[negative] || s[i] != src && d[i] != dst {
								t.Fatalf("%d, %d is a negative of %d, %d", s[i], d[i], src, dst)
							}
							if distinct && seen[negative] {
								t.Fatalf("%v twice", negative)
							}
							seen[negative] = true
							if s[i] == src {
								keepSrc++
							}
						}
						if len(s) != want || len(d) != want {
							t.Fatalf("%d negatives of %v, want %d of %d + %d", len(s), pair, want, numSrc, numDst)
						}
						if numSrc >= k && numDst >= k && src != dst && keepSrc != (k+1)/2 {
							t.Fatalf("%d of %d keep the src", keepSrc, k)
						}
					}
				}
			}
		}
	}
}

// TestNegativesUniform: each non-neighbour is as likely as another, with and without Distinct; chi-square within what a chance of one in 10,000 or so allows.
func TestNegativesUniform(t *testing.T) {
	g := newFullGraph(t, 60, 9, false, 8)
	var src, dst int32 = -1, -1
	for u := range int32(g.n) {
		for v := range u {
			if g.has[[2]int32{u, v}] && src < 0 {
				src, dst = u, v
			}
		}
	}
	for _, distinct := range []bool{false, true} {
		draw := NewNegatives(g.nonEdges, g.keys, NegativeOptions{K: 8, Distinct: distinct, Seed: 1})
		counts := map[[2]int32]float64{}
		const variants = 8000
		for variant := range variants {
			s, d := draw.Append(nil, nil, variant, src, dst)
			for i := range s {
				counts[[2]int32{s[i], d[i]}]++
			}
		}
		for kept, end := range [2]int32{src, dst} {
			non := g.non(Kept(kept), end)
			want, chi := 4*variants/float64(len(non)), 0.0
			for _, u := range non {
				pair := [2]int32{src, dst}
				pair[1-kept] = u
				chi += (counts[pair] - want) * (counts[pair] - want) / want
			}
			if free := float64(len(non) - 1); chi > free+3.8*math.Sqrt(2*free)+8 {
				t.Errorf("distinct %t, kept %d: chi-square %.1f of %d non-neighbours", distinct, kept, chi, len(non))
			}
		}
	}
	fixed := NewNegatives(g.nonEdges, g.keys, NegativeOptions{K: 8, Seed: 1})
	s, d := fixed.AppendFixed(nil, nil, src, dst)
	again, _ := NewNegatives(g.nonEdges, g.keys, NegativeOptions{K: 8, Seed: 1}).AppendFixed(nil, nil, src, dst)
	inVariant, _ := fixed.Append(nil, nil, 0, src, dst)
	if !slices.Equal(s, again) || len(d) != 8 || slices.Equal(s, inVariant) {
		t.Errorf("fixed negatives of src %v, then %v; in variant 0 %v", s, again, inVariant)
	}
}

// TestCase51NegativesDense is case 51: in a complete graph there is none, in one of a single missing pair it is always that one, and both at once.
func TestCase51NegativesDense(t *testing.T) {
	for _, c := range []struct {
		file  string
		total int64
	}{{"k4", 0}, {"k4_minus", 1}} {
		g := readCase(t, "51-negatives-dense-graph/"+c.file+".csv")
		edges, err := NewNonEdges(g.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		all := NewAnyNonEdges(edges)
		if all.Len() != c.total {
			t.Errorf("%s: %d pairs are no edges, want %d", c.file, all.Len(), c.total)
		}
		for _, distinct := range []bool{false, true} {
			want := 0
			if c.total > 0 {
				want = 5
				if distinct {
					want = 1
				}
			}
			s, d := all.Append(nil, nil, 1, 0, 5, distinct)
			positives := NewNegatives(edges, g.keys, NegativeOptions{K: 5, Distinct: distinct, Seed: 1})
			s2, d2 := positives.Append(nil, nil, 0, g.number("b"), g.number("c"))
			if len(s) != want || len(s2) != want {
				t.Errorf("%s, distinct %t: %d negatives, and %d of b, c; want %d", c.file, distinct, len(s), len(s2), want)
			}
			for i := range s {
				if g.ids[s[i]] != "c" || g.ids[d[i]] != "d" {
					t.Errorf("%s: negative %s, %s", c.file, g.ids[s[i]], g.ids[d[i]])
				}
			}
			for i := range s2 {
				if pair := fmt.Sprint(g.ids[s2[i]], g.ids[d2[i]]); pair != "dc" && pair != "d c" {
					t.Errorf("%s: negative of b, c: %s", c.file, pair)
				}
			}
			if s, _ := positives.Append(nil, nil, 0, g.number("a"), g.number("b")); len(s) != 0 {
				t.Errorf("%s: a and b have edges with all nodes, and %d negatives", c.file, len(s))
			}
		}
	}
}

// TestNegativesHeldOut: a pair held out is an edge of the full graph, in both directions where the graph is undirected.
func TestNegativesHeldOut(t *testing.T) {
	in := &graph.CSR{Indptr: make([]int64, 4)} // three nodes, all pairs but 0, 2 held out
	edges, err := NewNonEdges(in, nil, graph.Pairs{Src: []int32{0, 1}, Dst: []int32{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range [][]int32{{2}, {}, {0}} {
		for _, kept := range []Kept{KeepSrc, KeepDst} {
			got := []int32{}
			of := edges.Of(kept, int32(v))
			for j := range of.Len() {
				got = append(got, of.At(j))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d has no edge with %v, want %v", v, got, want)
			}
		}
	}
	if _, err := NewNonEdges(&graph.CSR{Indptr: []int64{0, 0}, Rel: []int32{}}, nil); err == nil {
		t.Error("rows with relations are accepted")
	}
}
