package graph

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
)

// partsOf observes all lines, if need be, and returns the part of each.
func partsOf(h *Holdout, src, dst []int32) []uint8 {
	if h.NeedsObserve() {
		h.Observe(src, dst)
	}
	part := make([]uint8, len(src))
	for i := range src {
		part[i] = h.Part(src[i], dst[i])
	}
	return part
}

// split builds the rows of x without the lines that h holds out, and returns these.
func split(t *testing.T, x edges, h *Holdout, directed bool, threads int) (*Graph, *HeldLines) {
	t.Helper()
	held := &HeldLines{Weighted: x.weight != nil}
	rows, err := EdgesOf(x.src, x.dst, x.weight, nil).Rows(context.Background(), x.numNodes, Options{Directed: directed, Threads: threads, Part: h.Part, Held: held.Add})
	if err != nil {
		t.Fatal(err)
	}
	g, err := rows.Graph(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return g, held
}

func TestHoldout(t *testing.T) {
	forShapes(t, func(t *testing.T, rng *rand.Rand, x edges, directed bool) {
		keys := testKeys(rng, x.numNodes, false)
		for _, opt := range []HoldoutOptions{
			{Valid: 0.3, Test: 0.4, Seed: -3}, {Test: 1}, {Valid: 0.5, Test: 0.5, SpareLast: true}, {Valid: 0.2, Seed: 9, SpareLast: true},
		} {
			h, err := HoldoutByHash(keys, opt)
			if err != nil {
				t.Fatal(err)
			}
			part := partsOf(h, x.src, x.dst)
			if err := VerifyHoldout(x.src, x.dst, keys, opt, part); err != nil {
				t.Fatalf("%+v: %v", opt, err)
			}
			kept, held := split(t, x, h, directed, 3)
			valid, test, err := held.Distinct(directed)
			if err != nil {
				t.Fatal(err)
			}

			// The graph is that of the other lines alone, and the lists are what the graph of the lines held out has.
			lines := map[uint8]*edges{HeldNone: {}, HeldValid: {}, HeldTest: {}}
			for _, to := range lines {
				if to.numNodes = x.numNodes; x.weight != nil {
					to.weight = []float32{}
				}
			}
			for i, p := range part {
				to := lines[p]
				to.add(x.src[i], x.dst[i])
				if x.weight != nil {
					to.weight = append(to.weight, x.weight[i])
				}
			}
			if want := mustBuild(t, *lines[HeldNone], directed); !reflect.DeepEqual(kept.In, want.In) || !reflect.DeepEqual(kept.Out, want.Out) || !reflect.DeepEqual(kept.Audit, want.Audit) {
				t.Fatalf("%+v: the graph isn't that of the lines left", opt)
			}
			for p, pairs := range map[uint8]Pairs{HeldValid: valid, HeldTest: test} {
				if want := pairsOfGraph(mustBuild(t, *lines[p], directed), directed); !slices.Equal(pairs.Src, want.Src) || !slices.Equal(pairs.Dst, want.Dst) || !slices.Equal(pairs.Weight, want.Weight) {
					t.Fatalf("%+v: part %d is %v, want %v", opt, p, pairs, want)
				}
				if err := pairs.CheckDistinct(x.numNodes, directed); err != nil {
					t.Fatalf("%+v: %v", opt, err)
				}
			}
			if opt.SpareLast {
				if full := mustBuild(t, x, directed); kept.Audit.IsolatedNodes != full.Audit.IsolatedNodes {
					t.Fatalf("%+v: %d isolated nodes, %d before", opt, kept.Audit.IsolatedNodes, full.Audit.IsolatedNodes)
				}
			}

			// The lists, given, hold out the same lines again.
			given, err := HoldoutPairs(x.numNodes, valid, test)
			if err != nil {
				t.Fatal(err)
			}
			if again := partsOf(given, x.src, x.dst); !slices.Equal(again, part) {
				t.Fatalf("%+v: the lists name other lines: %v, want %v", opt, again, part)
			}
			if m := valid.NumMissing(&valid) + test.NumMissing(&test); m != 0 {
				t.Fatalf("%+v: %d pairs of a list are missing in it", opt, m)
			}
		}
	})
}

// pairsOfGraph lists the edges of a graph without self loops, by (src, dst).
func pairsOfGraph(g *Graph, directed bool) Pairs {
	p := Pairs{}
	for dst := range int32(g.In.NumNodes()) {
		for i, src := range g.In.Row(dst) {
			if src < dst || directed && src != dst {
				p.Src, p.Dst = append(p.Src, src), append(p.Dst, dst)
				if w := g.In.RowWeights(dst); w != nil {
					p.Weight = append(p.Weight, w[i])
				}
			}
		}
	}
	p, err := p.Distinct(directed) // of distinct pairs it is a sort
	if err != nil {
		panic(err)
	}
	return p
}

// Shares come out as asked, and turning lines round changes no pair.
func TestHoldoutShares(t *testing.T) {
	numNodes, src, dst := benchEdges(200_000)
	keys := testKeys(rand.New(rand.NewPCG(4, 4)), numNodes, false)
	byHash := func(seed int64) *Holdout {
		h, err := HoldoutByHash(keys, HoldoutOptions{Valid: 0.05, Test: 0.10, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	part := partsOf(byHash(1), src, dst)
	count := map[uint8]float64{}
	for _, p := range part {
		count[p]++
	}
	n := float64(len(src))
	for p, share := range map[uint8]float64{HeldValid: 0.05, HeldTest: 0.10} {
		if sigma := math.Sqrt(share * n); math.Abs(count[p]-share*n) > 5*sigma {
			t.Errorf("part %d: %g of %g lines, want %g", p, count[p], n, share*n)
		}
	}
	if !slices.Equal(partsOf(byHash(1), dst, src), part) {
		t.Error("turning lines round changes their part")
	}
	if slices.Equal(partsOf(byHash(2), src, dst), part) {
		t.Error("another seed holds out the same")
	}
}

// Observe from several goroutines gives what one gives.
func TestHoldoutObserve(t *testing.T) {
	numNodes, src, dst := benchEdges(20_000)
	keys := testKeys(rand.New(rand.NewPCG(4, 4)), numNodes, false)
	var parts [2][]uint8
	for k, chunks := range []int{1, 8} {
		h, err := HoldoutByHash(keys, HoldoutOptions{Valid: 0.5, Test: 0.5, SpareLast: true})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for c := range chunks {
			lo, hi := part(len(src), c, chunks)
			wg.Go(func() { h.Observe(src[lo:hi], dst[lo:hi]) })
		}
		wg.Wait()
		for i := range src {
			parts[k] = append(parts[k], h.Part(src[i], dst[i]))
		}
	}
	if !slices.Equal(parts[0], parts[1]) {
		t.Error("chunks observed at a time give other parts")
	}
}

func TestHoldoutPairs(t *testing.T) {
	// Arcs 0->1, 1->0, 1->2, 2->2, 3->1, 1->2 again.
	src, dst := []int32{0, 1, 1, 2, 3, 1}, []int32{1, 0, 2, 2, 1, 2}
	for _, tc := range []struct {
		name        string
		valid, test Pairs
		part        []uint8
		missing     int64
		err         string
	}{
		{"none", Pairs{}, Pairs{}, []uint8{0, 0, 0, 0, 0, 0}, 0, ""},
		{"both directions, all lines", Pairs{Src: []int32{1}, Dst: []int32{0}}, Pairs{Src: []int32{2}, Dst: []int32{1}}, []uint8{2, 2, 3, 0, 0, 3}, 0, ""},
		{"listed twice, and one that is no edge", Pairs{Src: []int32{1, 3, 0, 2, 0}, Dst: []int32{3, 1, 2, 0, 3}}, Pairs{}, []uint8{0, 0, 0, 0, 2, 0}, 2, ""},
		{"in both lists", Pairs{Src: []int32{1}, Dst: []int32{0}}, Pairs{Src: []int32{0}, Dst: []int32{1}}, nil, 0, "pair 0, 1 is held out for both valid and test"},
		{"a loop", Pairs{}, Pairs{Src: []int32{0, 2}, Dst: []int32{1, 2}}, nil, 0, "test pairs: edge 1 (2 -> 2): a self loop is no pair to hold out"},
		{"no node", Pairs{Src: []int32{0}, Dst: []int32{4}}, Pairs{}, nil, 0, "valid pairs: edge 0 (0 -> 4): node number out of range"},
		{"lengths", Pairs{Src: []int32{0}}, Pairs{}, nil, 0, "valid pairs: 1 src, 0 dst, 0 relations and 0 weights: lengths differ"},
	} {
		h, err := HoldoutPairs(4, tc.valid, tc.test)
		if err != nil {
			if err.Error() != tc.err {
				t.Errorf("%s: error %q, want %q", tc.name, err, tc.err)
			}
			continue
		}
		var missing int64
		if _, held := split(t, edges{numNodes: 4, src: src, dst: dst}, h, false, 1); tc.err == "" {
			valid, test, err := held.Distinct(false)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range []struct{ listed, found Pairs }{{tc.valid, valid}, {tc.test, test}} {
				listed, err := l.listed.Distinct(false)
				if err != nil {
					t.Fatal(err)
				}
				missing += listed.NumMissing(&l.found)
			}
		}
		if part := partsOf(h, src, dst); tc.err != "" || !slices.Equal(part, tc.part) || missing != tc.missing {
			t.Errorf("%s: got %v, %d missing, want %v, %d, %q", tc.name, part, missing, tc.part, tc.missing, tc.err)
		}
	}
}

// The table finds what a map finds, whatever its size.
func TestPairTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{0, 1, 2, 3, 4, 5, 100, 5000} {
		table, want := newPairTable(n), map[uint64]uint8{}
		draw := func() uint64 {
			a := rng.Int32N(math.MaxInt32)
			return unordered(a, max(0, a-1-rng.Int32N(3)))
		}
		for range n {
			pair := draw()
			part := HeldValid + uint8(rng.IntN(2))
			got := table.add(pair, part)
			if _, seen := want[pair]; !seen {
				want[pair] = part
			}
			if got != want[pair] {
				t.Fatalf("%d pairs: added as %d, want %d", n, got, want[pair])
			}
		}
		for pair, part := range want {
			if got := table.part(pair); got != part {
				t.Errorf("%d pairs: part %d, want %d", n, got, part)
			}
		}
		for range 2000 {
			if pair := draw(); table.part(pair) != want[pair] {
				t.Errorf("%d pairs: pair %x, which isn't in it, has part %d", n, pair, table.part(pair))
			}
		}
	}
}

func TestDistinct(t *testing.T) {
	// 3,1 twice each way round, of two relations.
	p := Pairs{Src: []int32{3, 1, 0, 3, 3}, Dst: []int32{1, 3, 2, 1, 1}, Rel: []int32{1, 1, 5, 0, 1}, Weight: []float32{4, 1, 0.5, 2, 8}}
	for _, c := range []struct {
		name     string
		p        Pairs
		directed bool
		want     Pairs
	}{
		{"undirected", p, false, Pairs{[]int32{0, 1, 1}, []int32{2, 3, 3}, []int32{5, 0, 1}, []float32{0.5, 2, 13}}},
		{"directed", p, true, Pairs{[]int32{0, 1, 3, 3}, []int32{2, 3, 1, 1}, []int32{5, 1, 0, 1}, []float32{0.5, 1, 2, 12}}},
		{"no relations", Pairs{Src: p.Src, Dst: p.Dst}, false, Pairs{Src: []int32{0, 1}, Dst: []int32{2, 3}}},
		{"none", Pairs{Rel: []int32{}, Weight: []float32{}}, false, Pairs{[]int32{}, []int32{}, []int32{}, []float32{}}},
	} {
		got, err := c.p.Distinct(c.directed)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
		if err := got.CheckDistinct(4, c.directed); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	huge := Pairs{Src: []int32{0, 1}, Dst: []int32{1, 0}, Weight: []float32{math.MaxFloat32, math.MaxFloat32}}
	if _, err := huge.Distinct(false); !errors.Is(err, ErrWeightSum) {
		t.Errorf("a sum over float32: %v", err)
	}
	for name, bad := range map[string]Pairs{
		"order":     {Src: []int32{1, 0}, Dst: []int32{2, 2}},
		"dst order": {Src: []int32{0, 0}, Dst: []int32{2, 1}},
		"twice":     {Src: []int32{0, 0}, Dst: []int32{2, 2}},
		"rel twice": {Src: []int32{0, 0}, Dst: []int32{2, 2}, Rel: []int32{1, 1}},
		"turned":    {Src: []int32{2}, Dst: []int32{0}},
		"bounds":    {Src: []int32{2}, Dst: []int32{4}},
		"negative":  {Src: []int32{-1}, Dst: []int32{3}},
		"lengths":   {Src: []int32{1}, Dst: []int32{2}, Weight: []float32{}},
	} {
		if bad.CheckDistinct(4, false) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	listed := Pairs{Src: []int32{0, 0, 2, 3}, Dst: []int32{1, 2, 3, 0}}
	for want, in := range map[int64]Pairs{4: {}, 3: {Src: []int32{0, 0}, Dst: []int32{2, 3}}, 2: {Src: []int32{0, 1, 3, 3}, Dst: []int32{1, 2, 0, 1}}} {
		if got := listed.NumMissing(&in); got != want {
			t.Errorf("%d pairs are missing in %v, want %d", got, in, want)
		}
	}
}

func TestHoldoutErrors(t *testing.T) {
	keys := []uint64{1, 2}
	for name, opt := range map[string]HoldoutOptions{"negative": {Valid: -0.1}, "over 1": {Valid: 0.6, Test: 0.6}, "NaN": {Test: math.NaN()}} {
		if _, err := HoldoutByHash(keys, opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if VerifyHoldout([]int32{0}, []int32{1}, keys, HoldoutOptions{Test: 1}, []uint8{HeldValid}) == nil {
		t.Error("a wrong part passes")
	}
}

func BenchmarkHoldout(b *testing.B) {
	numNodes, src, dst := benchEdges(4_000_000)
	keys := testKeys(rand.New(rand.NewPCG(4, 4)), numNodes, false)
	byHash, err := HoldoutByHash(keys, HoldoutOptions{Valid: 0.05, Test: 0.10})
	if err != nil {
		b.Fatal(err)
	}
	rules := map[string]*Holdout{"hash": byHash}
	for _, num := range []int{1000, 400_000} {
		var listed Pairs
		for i := range num {
			if src[i] != dst[i] {
				listed.Src, listed.Dst = append(listed.Src, src[i]), append(listed.Dst, dst[i])
			}
		}
		if rules[fmt.Sprintf("given=%d", num)], err = HoldoutPairs(numNodes, listed, Pairs{}); err != nil {
			b.Fatal(err)
		}
	}
	for name, h := range rules {
		b.Run(name, func(b *testing.B) {
			var sum int64
			for b.Loop() {
				for i := range src {
					sum += int64(h.Part(src[i], dst[i]))
				}
			}
			b.ReportMetric(float64(len(src))*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
		})
	}
}
