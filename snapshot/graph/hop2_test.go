package graph

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// testKeys gives each node a key that says nothing of its number; few makes equal keys likely.
func testKeys(rng *rand.Rand, numNodes int, few bool) []uint64 {
	keys := make([]uint64, numNodes)
	for v := range keys {
		keys[v] = rng.Uint64()
		if few {
			keys[v] %= 5
		}
	}
	return keys
}

func TestHop2(t *testing.T) {
	forShapes(t, func(t *testing.T, rng *rand.Rand, x edges, directed bool) {
		g := mustBuild(t, x, directed)
		keys := testKeys(rng, x.numNodes, rng.IntN(2) == 0)
		labels, _ := Components(&g.In, g.Out == nil, 1)
		for _, opt := range smallBuckets {
			opt.Threads = 1
			h, audit, err := BuildHop2(t.Context(), &g.In, keys, opt)
			if err != nil {
				t.Fatal(err)
			}
			if err := VerifyHop2(&g.In, keys, opt, h, audit); err != nil {
				t.Fatalf("%+v: %v", opt, err)
			}
			if err := h.Check(&g.In, labels); err != nil {
				t.Fatalf("%+v: %v", opt, err)
			}
			opt.Threads = 4
			if other, otherAudit, _ := BuildHop2(t.Context(), &g.In, keys, opt); !reflect.DeepEqual(other, h) || otherAudit != audit {
				t.Fatalf("%+v: 4 threads differ from one", opt)
			}
		}
	})
}

// Untruncated, hop 2 is what a search finds at distance two.
func TestHop2Distance(t *testing.T) {
	// 0-1-2-3 and 0-4-2, a loop at 1, and 5-6 apart.
	g := mustBuild(t, edges{numNodes: 7, src: []int32{0, 1, 2, 0, 4, 1, 5}, dst: []int32{1, 2, 3, 4, 2, 1, 6}}, false)
	h, audit, err := BuildHop2(t.Context(), &g.In, make([]uint64, 7), HopOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range [][]int32{{2}, {3, 4}, {0}, {1, 4}, {1, 3}, {}, {}} {
		if got := h.Row(int32(v)); !slices.Equal(got, want) {
			t.Errorf("row %d is %v, want %v", v, got, want)
		}
	}
	if audit != (Hop2Audit{NumEntries: 8, NumUncut: 8, Cap: 1000, Hop1Entries: 12}) {
		t.Errorf("audit %+v", audit)
	}
}

// One hub with 200,000 leaves has 4e10 pairs at two hops (muhanzhang/SEAL#44).
func TestHop2Star(t *testing.T) {
	const numLeaves = 200_000
	x := edges{numNodes: numLeaves + 1}
	for v := int32(1); v <= numLeaves; v++ {
		x.add(0, v)
	}
	g := mustBuild(t, x, false)
	keys := testKeys(rand.New(rand.NewPCG(1, 1)), x.numNodes, false)
	h, audit, err := BuildHop2(t.Context(), &g.In, keys, HopOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// A leaf that is in the hub's sample of 500 meets 499 others, and 10 entries a leaf are 5 x 400,000.
	if audit != (Hop2Audit{NumEntries: 10 * numLeaves, NumUncut: 500*499 + 500*(numLeaves-500), NumCut: numLeaves, NumSampled: 1,
		Cap: 10, Forced: true, Hop1Entries: 2 * numLeaves}) {
		t.Errorf("audit %+v", audit)
	}
	if len(h.Row(0)) != 0 {
		t.Errorf("the hub has %d nodes at two hops", len(h.Row(0)))
	}
	labels, _ := Components(&g.In, g.Out == nil, 0)
	if err := h.Check(&g.In, labels); err != nil {
		t.Error(err)
	}
	h1, err := BuildHop1(&g.In, HopOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyHop1(&g.In, HopOptions{}, h1); err != nil {
		t.Fatal(err)
	}
	if h1.Bucket(0) != BucketHub || h1.Degree(1) != 1 || h1.Neighbour(1, 0) != 0 || !h1.Contains(0, numLeaves) || h1.Contains(1, 2) {
		t.Error("hop 1 of a star is wrong")
	}
}

func TestHop2Errors(t *testing.T) {
	numNodes, src, dst := benchEdges(50_000)
	g := mustBuild(t, edges{numNodes: numNodes, src: src, dst: dst}, false)
	if _, _, err := BuildHop2(t.Context(), &g.In, nil, HopOptions{}); err == nil {
		t.Error("no keys: no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := BuildHop2(ctx, &g.In, make([]uint64, numNodes), HopOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestVerifyHop2Faults(t *testing.T) {
	// A path 0-1-2-3-4 and a pair.
	g := mustBuild(t, edges{numNodes: 7, src: []int32{0, 1, 2, 3, 5}, dst: []int32{1, 2, 3, 4, 6}}, false)
	labels, _ := Components(&g.In, g.Out == nil, 1)
	keys := testKeys(rand.New(rand.NewPCG(2, 2)), 7, false)
	for _, tc := range []struct {
		name        string
		passesCheck bool // which does not know the rule
		do          func(h *Hop2, a *Hop2Audit)
	}{
		{"none", true, func(*Hop2, *Hop2Audit) {}},
		{"itself", false, func(h *Hop2, _ *Hop2Audit) { h.Indices[0] = 0 }},
		{"a neighbour", false, func(h *Hop2, _ *Hop2Audit) { h.Indices[0] = 1 }},
		{"another component", false, func(h *Hop2, _ *Hop2Audit) { h.Indices[0] = 6 }},
		{"too far", true, func(h *Hop2, _ *Hop2Audit) { h.Indices[0] = 3 }},
		{"no node", false, func(h *Hop2, _ *Hop2Audit) { h.Indices[0] = 7 }},
		{"offsets", false, func(h *Hop2, _ *Hop2Audit) { h.Indptr[1] = 99 }},
		{"an entry less", true, func(h *Hop2, a *Hop2Audit) {
			for v := 1; v < len(h.Indptr); v++ {
				h.Indptr[v]--
			}
			h.Indices = h.Indices[1:]
		}},
		{"audit", true, func(_ *Hop2, a *Hop2Audit) { a.NumCut++ }},
	} {
		h, audit, err := BuildHop2(t.Context(), &g.In, keys, HopOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tc.do(h, &audit)
		if err := VerifyHop2(&g.In, keys, HopOptions{}, h, audit); (err == nil) != (tc.name == "none") {
			t.Errorf("%s: VerifyHop2: %v", tc.name, err)
		}
		if err := h.Check(&g.In, labels); (err == nil) != tc.passesCheck {
			t.Errorf("%s: Check: %v", tc.name, err)
		}
	}
}

func BenchmarkHop2(b *testing.B) {
	c := hopGraph()
	keys := testKeys(rand.New(rand.NewPCG(1, 1)), c.NumNodes(), false)
	var audit Hop2Audit
	for b.Loop() {
		_, audit, _ = BuildHop2(b.Context(), c, keys, HopOptions{})
	}
	b.ReportMetric(float64(audit.NumEntries)/float64(audit.Hop1Entries), "of-hop1")
	b.ReportMetric(float64(audit.Cap), "cap")
	b.ReportMetric(float64(audit.NumCut)/float64(c.NumNodes()), "rows-cut")
	b.ReportMetric(float64(c.NumEntries())*float64(b.N)/b.Elapsed().Seconds(), "hop1-entries/s")
}
