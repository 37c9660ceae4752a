package graph

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// forRelations runs f on every shape as a graph of numRels relations, drawn by line.
func forRelations(t *testing.T, numRels int, f func(t *testing.T, rng *rand.Rand, x edges, g *Graph)) {
	forShapes(t, func(t *testing.T, rng *rand.Rand, x edges, directed bool) {
		rel := make([]int32, len(x.src))
		for i := range rel {
			rel[i] = rng.Int32N(int32(numRels))
		}
		f(t, rng, x, buildRelations(t, x, rel, numRels, directed))
	})
}

func buildRelations(t *testing.T, x edges, rel []int32, numRels int, directed bool) *Graph {
	t.Helper()
	rows, err := EdgesOf(x.src, x.dst, x.weight, rel).Rows(t.Context(), x.numNodes, Options{Directed: directed, Threads: 2, NumRels: numRels})
	if err != nil {
		t.Fatal(err)
	}
	g, err := rows.Graph(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// What is made of the rows holds where a neighbour stands in a row once for each of several relations.
func TestRelationalRows(t *testing.T) {
	forRelations(t, 3, func(t *testing.T, rng *rand.Rand, x edges, g *Graph) {
		if err := VerifyGraph(g); err != nil {
			t.Fatal(err)
		}
		in, n := &g.In, x.numNodes
		labels, sizes := Components(in, g.Out == nil, 2)
		if want, wantSizes := slowComponents(x); !slices.Equal(labels, want) || !slices.Equal(sizes, wantSizes) {
			t.Fatalf("components %v %v, want %v %v", labels, sizes, want, wantSizes)
		}
		for kind, norm := range norms(in) {
			if err := VerifyNorm(kind, in, norm); err != nil {
				t.Fatal(err)
			}
			const dim = 3
			features := make([]float32, n*dim)
			for i := range features {
				features[i] = rng.Float32() - 0.5
			}
			if err := VerifyLift(in, norm, features, dim, lifted(t, in, norm, features, dim, LiftOptions{Threads: 2})); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
		}
		rank, err := PageRank(in, RankOptions{Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := VerifyPageRank(in, RankOptions{}, rank); err != nil {
			t.Fatal(err)
		}
		order := BFSOrder(in, g.Out, labels, len(sizes))
		if err := VerifyOrder(in, g.Out, labels, order); err != nil {
			t.Fatal(err)
		}
		opt := CommunityOptions{MaxSize: 7}
		if err := VerifyCommunities(in, g.Out, labels, order, opt, Communities(in, g.Out, order, opt)); err != nil {
			t.Fatal(err)
		}
		indptr, indices, edge := Transpose(n, n, in.Indptr, in.Indices)
		if err := VerifyTranspose(n, n, in.Indptr, in.Indices, indptr, indices, edge); err != nil {
			t.Fatal(err)
		}
		if g.Out == nil {
			return
		}
		rels := make([]int32, len(edge))
		for i, e := range edge {
			rels[i] = in.Rel[e]
		}
		if !slices.Equal(indptr, g.Out.Indptr) || !slices.Equal(indices, g.Out.Indices) || !slices.Equal(rels, g.Out.Rel) {
			t.Fatal("out-rows aren't the transpose of the in-rows")
		}
	})
}

// The rows without relations are those of a graph that never had any, and what needs each neighbour once takes no others.
func TestSimple(t *testing.T) {
	forRelations(t, 4, func(t *testing.T, rng *rand.Rand, x edges, g *Graph) {
		x.weight = nil
		plain := mustBuild(t, x, g.Out != nil)
		pairs := []struct{ rel, plain *CSR }{{&g.In, &plain.In}}
		if g.Out != nil {
			pairs = append(pairs, struct{ rel, plain *CSR }{g.Out, plain.Out})
		}
		for _, p := range pairs {
			simple, err := p.rel.Simple(nil)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(simple, p.plain) {
				t.Fatalf("got %+v, want %+v", simple, p.plain)
			}
			if again, _ := simple.Simple(nil); again != simple {
				t.Error("rows without relations were copied")
			}
			if got, want := InformationBits(p.rel), InformationBits(p.plain); got != want {
				t.Errorf("%g bits, want %g", got, want)
			}
			for v := range int32(x.numNodes) {
				if got, want := p.rel.distinct(v), p.plain.neighbours(v); got != want {
					t.Fatalf("%d distinct neighbours of %d, want %d", got, v, want)
				}
			}
		}
		if _, err := BuildHop1(&g.In, HopOptions{}); err != errRelations {
			t.Errorf("hop 1 of rows with relations: %v", err)
		}
		if _, _, err := BuildHop2(t.Context(), &g.In, testKeys(rng, x.numNodes, false), HopOptions{}); err != errRelations {
			t.Errorf("hop 2 of rows with relations: %v", err)
		}
	})
}

// Look-ups find what a walk over the row finds.
func TestFindRelations(t *testing.T) {
	const numRels = 3
	forRelations(t, numRels, func(t *testing.T, rng *rand.Rand, x edges, g *Graph) {
		if x.numNodes == 0 {
			return
		}
		for range 200 {
			v, u, rel := rng.Int32N(int32(x.numNodes)), rng.Int32N(int32(x.numNodes)), rng.Int32N(numRels+1)
			wantEntry, want := int64(0), false
			numLoops := int64(0)
			for e := g.In.Indptr[v]; e < g.In.Indptr[v+1]; e++ {
				if g.In.Indices[e] == u && g.In.Rel[e] == rel {
					wantEntry, want = e, true
				}
				if g.In.Indices[e] == v {
					numLoops++
				}
			}
			if e, ok := g.In.Find(v, u, rel); ok != want || ok && e != wantEntry {
				t.Fatalf("relation %d of %d in row %d is at %d: %t, want %d: %t", rel, u, v, e, ok, wantEntry, want)
			}
			if first, end := g.In.loops(v); end-first != numLoops || numLoops > 0 && (g.In.Indices[first] != v || g.In.Indices[end-1] != v) {
				t.Fatalf("loops of %d are entries %d to %d, want %d", v, first, end, numLoops)
			}
		}
	})
}

// Two loops of a node, of relations 0 and 2, and a pair of relations 0 and 1: what each kind of coefficients makes of them.
func TestNormRelations(t *testing.T) {
	x := edges{numNodes: 2, src: []int32{0, 0, 0, 0}, dst: []int32{0, 0, 1, 1}, weight: []float32{1, 3, 2, 5}}
	rel := []int32{0, 2, 0, 1}
	for _, tc := range []struct {
		name     string
		weighted bool
		kind     NormKind
		self     [2]float64 // of nodes 0 and 1
		edge     [2]float64 // of the message 0 -> 1 of relations 0 and 1
	}{
		// Node 0 has the entries 0, 0, 1, 1 and the sum 4; node 1 has 0, 0, and gets a loop: 3.
		{"gcn", false, NormGCN, [2]float64{2. / 4, 1. / 3}, [2]float64{1 / math.Sqrt(12), 1 / math.Sqrt(12)}},
		{"mean", false, NormMean, [2]float64{2. / 4, 0}, [2]float64{1. / 2, 1. / 2}},
		{"sum", false, NormSum, [2]float64{2, 0}, [2]float64{1, 1}},
		// Sums 1+3+2+5 = 11 and 2+5+1 = 8.
		{"gcn", true, NormGCN, [2]float64{4. / 11, 1. / 8}, [2]float64{2 / math.Sqrt(88), 5 / math.Sqrt(88)}},
		{"mean", true, NormMean, [2]float64{4. / 11, 0}, [2]float64{2. / 7, 5. / 7}},
		{"sum", true, NormSum, [2]float64{4, 0}, [2]float64{2, 5}},
	} {
		y := x
		if !tc.weighted {
			y.weight = nil
		}
		c := &buildRelations(t, y, rel, 3, false).In
		norm := norms(c)[tc.kind]
		for v, want := range tc.self {
			if got := float64(at(norm.Self, v)); math.Abs(got-want) > 1e-6 {
				t.Errorf("%s, weighted %t: self of %d is %g, want %g", tc.name, tc.weighted, v, got, want)
			}
		}
		for r, want := range tc.edge {
			e, ok := c.Find(1, 0, int32(r))
			if !ok {
				t.Fatalf("no entry of relation %d", r)
			}
			if got := norm.Coefficient(e, 0, 1); math.Abs(got-want) > 1e-6 {
				t.Errorf("%s, weighted %t: coefficient of relation %d is %g, want %g", tc.name, tc.weighted, r, got, want)
			}
		}
	}
}

func TestVerifyRelationFaults(t *testing.T) {
	// 0 -> 1 of relations 0 and 1, 1 -> 0 of relation 1, and loops of 1 of relations 0 and 2.
	x := edges{numNodes: 2, src: []int32{0, 0, 1, 1, 1}, dst: []int32{1, 1, 0, 1, 1}}
	rel := []int32{0, 1, 1, 0, 2}
	directed := func() *Graph { return buildRelations(t, x, rel, 3, true) }
	undirected := func() *Graph { return buildRelations(t, x, rel, 3, false) }
	if a := directed().Audit; a.NumEdges != 5 || a.SelfLoops != 2 || a.NumPairs != 2 || a.OneDirectional != 1 {
		t.Errorf("audit of arcs %+v", a)
	}
	if a := undirected().Audit; a.NumEdges != 4 || a.SelfLoops != 2 || a.NumPairs != 2 || a.OneDirectional != 1 || a.DuplicatesMerged != 1 {
		t.Errorf("audit of pairs %+v", a)
	}
	for _, tc := range []struct {
		name, want string
		build      func() *Graph
		spoil      func(g *Graph)
	}{
		{"too few relations", "relations for", directed, func(g *Graph) { g.In.Rel = g.In.Rel[1:] }},
		{"negative", "has relation -1", directed, func(g *Graph) { g.In.Rel[0] = -1 }},
		{"the same twice", "relations within each", directed, func(g *Graph) { g.In.Rel[2] = 0 }},
		{"falling", "relations within each", directed, func(g *Graph) { g.In.Rel[1], g.In.Rel[2] = 1, 0 }},
		{"one way only", "does not hold", undirected, func(g *Graph) { g.In.Rel[1] = 2 }},
		{"other relation in the out-rows", "in the in-rows only", directed, func(g *Graph) { g.Out.Rel[0] = 2; g.Out.Rel[1] = 3 }},
		{"no relations in the out-rows", "row 0 holds 1 after 1", directed, func(g *Graph) { g.Out.Rel = nil }},
		{"loops counted by node", "audit", directed, func(g *Graph) { g.Audit.SelfLoops = 1 }},
		{"pairs counted without relations", "audit", directed, func(g *Graph) { g.Audit.NumPairs, g.Audit.OneDirectional = 1, 0 }},
	} {
		g := tc.build()
		if err := VerifyGraph(g); err != nil {
			t.Fatalf("%s: unspoilt: %v", tc.name, err)
		}
		tc.spoil(g)
		if err := VerifyGraph(g); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}
