package graph

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// slowBuild is Build by maps, a line at a time.
func slowBuild(x edges, directed bool) *Graph {
	type arc [2]int32
	listed := map[arc]bool{}
	weights := map[arc][]float64{} // by (dst, src), or by both orders when undirected
	var lines int64
	for i := range x.src {
		lines++
		w := 1.0
		if x.weight != nil {
			w = float64(x.weight[i])
		}
		a, b := arc{x.dst[i], x.src[i]}, arc{x.src[i], x.dst[i]}
		listed[a] = true
		weights[a] = append(weights[a], w)
		if !directed && a != b {
			weights[b] = append(weights[b], w)
		}
	}

	rows := func(swap bool) CSR {
		c := CSR{Indptr: make([]int64, x.numNodes+1), Indices: []int32{}}
		if x.weight != nil {
			c.Weight = []float32{}
		}
		for v := range int32(x.numNodes) {
			for u := range int32(x.numNodes) {
				key := arc{v, u}
				if swap {
					key = arc{u, v}
				}
				list, ok := weights[key]
				if !ok {
					continue
				}
				c.Indices = append(c.Indices, u)
				if x.weight != nil {
					list = slices.Sorted(slices.Values(list))
					sum := 0.0
					for _, w := range list {
						sum += w
					}
					c.Weight = append(c.Weight, float32(sum))
				}
			}
			c.Indptr[v+1] = int64(len(c.Indices))
		}
		return c
	}
	g := &Graph{In: rows(false)}
	if directed {
		out := rows(true)
		g.Out = &out
	}

	a := &g.Audit
	*a = Audit{NumNodes: int64(x.numNodes), NumLines: lines, NumEntries: int64(len(g.In.Indices))}
	for key := range weights {
		switch {
		case key[0] == key[1]:
			a.SelfLoops++
			a.NumEdges++
		case directed || key[0] < key[1]:
			a.NumEdges++
		}
		reverse := arc{key[1], key[0]}
		if key[0] < key[1] || key[0] > key[1] && len(weights[reverse]) == 0 {
			a.NumPairs++
			if listed[key] != listed[reverse] {
				a.OneDirectional++
			}
		}
	}
	a.DuplicatesMerged = a.NumLines - a.NumEdges
	for v := range int32(x.numNodes) {
		var degree, outDegree int64
		for u := range int32(x.numNodes) {
			if u != v && len(weights[arc{v, u}]) > 0 {
				degree++
			}
			if u != v && len(weights[arc{u, v}]) > 0 {
				outDegree++
			}
		}
		if degree+outDegree == 0 {
			a.IsolatedNodes++
		}
		a.MaxDegree = max(a.MaxDegree, degree)
		bucket := 0
		if degree > 0 {
			bucket = 1 + int(math.Floor(math.Log2(float64(degree))))
		}
		for len(a.DegreeHistogram) <= bucket {
			a.DegreeHistogram = append(a.DegreeHistogram, 0)
		}
		a.DegreeHistogram[bucket]++
	}
	return g
}

// diffGraphs compares bit for bit: weights by their bits, so that -0 is not 0.
func diffGraphs(got, want *Graph) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %+v %+v, want %+v %+v", got, got.Out, want, want.Out)
	}
	for i, w := range got.In.Weight {
		if math.Float32bits(w) != math.Float32bits(want.In.Weight[i]) {
			return fmt.Errorf("weight of entry %d is %g, want %g", i, w, want.In.Weight[i])
		}
	}
	return nil
}

func TestBuild(t *testing.T) {
	forShapes(t, func(t *testing.T, rng *rand.Rand, x edges, directed bool) {
		want := slowBuild(x, directed)
		for _, threads := range []int{1, 2, 8} {
			for _, y := range []edges{x, x.shuffled(rng)} {
				got, err := Build(t.Context(), y.numNodes, y.src, y.dst, y.weight, Options{Directed: directed, Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				if x.weight != nil && got.In.Weight == nil && len(x.src) > 0 {
					t.Fatal("weights lost")
				}
				if len(y.src) == 0 { // a shuffle of no weights is nil
					got.In.Weight, want.In.Weight = nil, nil
					if directed {
						got.Out.Weight, want.Out.Weight = nil, nil
					}
				}
				if err := diffGraphs(got, want); err != nil {
					t.Fatalf("%d threads: %v", threads, err)
				}
				if err := VerifyGraph(got); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestBuildLarge has more keys than one digit's counters and more digits than one.
func TestBuildLarge(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	x := edges{numNodes: 70_001}
	for range 200_000 {
		// Squaring draws towards node 0, a hub.
		x.add(int32(rng.Float64()*rng.Float64()*70_000), rng.Int32N(70_001))
		x.weight = append(x.weight, drawWeight(rng))
	}
	for _, directed := range []bool{false, true} {
		var first *Graph
		for _, threads := range []int{1, 2, 8} {
			y := x.shuffled(rng)
			g, err := Build(t.Context(), y.numNodes, y.src, y.dst, y.weight, Options{Directed: directed, Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = g
				if err := VerifyGraph(g); err != nil {
					t.Fatal(err)
				}
			}
			if err := diffGraphs(g, first); err != nil {
				t.Fatalf("directed %t, %d threads: differs from one thread", directed, threads)
			}
		}
	}
}

// Node numbers may reach 2^31-2; the arrays for so many would not fit a test, keys do.
func TestPackingWidest(t *testing.T) {
	pack := packing{colBits: 31, relBits: 11}
	lastRow := int32(pack.maxRows() - 1)
	for _, row := range []int32{0, 1, lastRow} {
		for _, col := range []int32{0, 1, MaxNodes - 1} {
			for _, rel := range []int32{0, 1, 1<<11 - 1} {
				for rev := range uint64(2) {
					k := pack.key(row, col, rel, rev)
					if pack.row(k>>1) != row || pack.col(k>>1) != col || pack.rel(k>>1) != rel || k&1 != rev {
						t.Errorf("key(%d, %d, %d, %d) = %#x comes apart as %d, %d, %d", row, col, rel, rev, k, pack.row(k>>1), pack.col(k>>1), pack.rel(k>>1))
					}
				}
			}
		}
	}
}

func TestBuildErrors(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, tc := range []struct {
		name     string
		numNodes int
		src, dst []int32
		weight   []float32
		directed bool
		is       error
		text     string
	}{
		{"src too large", 3, []int32{0, 3}, []int32{1, 1}, nil, false, ErrNodeRange, "edge 1 (3 -> 1): node number out of range"},
		{"dst negative", 3, []int32{0, 1}, []int32{-1, 1}, nil, false, ErrNodeRange, "edge 0 (0 -> -1)"},
		{"no nodes", 0, []int32{0}, []int32{0}, nil, false, ErrNodeRange, "edge 0"},
		{"the first of two", 3, []int32{0, 9, 0, 9}, []int32{1, 1, 1, 1}, nil, false, ErrNodeRange, "edge 1"},
		{"weight NaN", 3, []int32{0, 1}, []int32{1, 2}, []float32{1, nan}, false, ErrWeight, "edge 1 (1 -> 2): weight is not finite and >= 0: NaN"},
		{"weight infinite", 3, []int32{0, 1}, []int32{1, 2}, []float32{inf, 1}, false, ErrWeight, "edge 0"},
		{"weight negative", 3, []int32{0, 1}, []int32{1, 2}, []float32{1, -1}, false, ErrWeight, "-1"},
		{"sum overflows", 3, []int32{2, 1}, []int32{1, 2}, []float32{3e38, 3e38}, false, ErrWeightSum, "edge 1 -> 2: sum of merged weights"},
		{"sum of an arc overflows", 3, []int32{2, 2}, []int32{1, 1}, []float32{3e38, 3e38}, true, ErrWeightSum, "edge 2 -> 1: sum"},
		{"lengths", 3, []int32{2, 2}, []int32{1}, nil, true, nil, "lengths differ"},
		{"weight lengths", 3, []int32{2}, []int32{1}, []float32{}, true, nil, "lengths differ"},
		{"too many nodes", 1 << 31, nil, nil, nil, true, nil, "2147483648 nodes"},
		{"negative nodes", -1, nil, nil, nil, true, nil, "-1 nodes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, threads := range []int{1, 2, 8} {
				_, err := Build(t.Context(), tc.numNodes, tc.src, tc.dst, tc.weight, Options{Directed: tc.directed, Threads: threads})
				if err == nil || !strings.Contains(err.Error(), tc.text) {
					t.Fatalf("got %v, want %q", err, tc.text)
				}
				if tc.is != nil && !errors.Is(err, tc.is) {
					t.Errorf("%v is not %v", err, tc.is)
				}
			}
		})
	}
	// Two arcs that overflow together only are two arcs.
	if _, err := Build(t.Context(), 3, []int32{2, 1}, []int32{1, 2}, []float32{3e38, 3e38}, Options{Directed: true}); err != nil {
		t.Errorf("arcs both ways: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, 3, []int32{2}, []int32{1}, nil, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// A file that lists pairs once, twice or both ways gives one graph (rapidsai/cugraph#2711).
func TestBuildListedTwice(t *testing.T) {
	want := CSR{Indptr: []int64{0, 1, 3, 4}, Indices: []int32{1, 0, 2, 1}}
	for _, tc := range []struct {
		name                 string
		src, dst             []int32
		merged, oneDirection int64
	}{
		{"once", []int32{0, 1}, []int32{1, 2}, 0, 2},
		{"both ways", []int32{0, 1, 1, 2}, []int32{1, 0, 2, 1}, 2, 0},
		{"repeated", []int32{0, 0, 1}, []int32{1, 1, 2}, 1, 2},
	} {
		g := mustBuild(t, edges{numNodes: 3, src: tc.src, dst: tc.dst}, false)
		if !reflect.DeepEqual(g.In, want) {
			t.Errorf("%s: got %+v, want %+v", tc.name, g.In, want)
		}
		a := g.Audit
		if a.NumEdges != 2 || a.NumEntries != 4 || a.DuplicatesMerged != tc.merged || a.OneDirectional != tc.oneDirection || a.NumPairs != 2 {
			t.Errorf("%s: audit %+v", tc.name, a)
		}
	}
	g := mustBuild(t, edges{numNodes: 3, src: []int32{0, 1, 1, 2}, dst: []int32{1, 0, 2, 1}, weight: []float32{1, 1, 1, 1}}, false)
	if !slices.Equal(g.In.Weight, []float32{2, 2, 2, 2}) {
		t.Errorf("weights both ways sum: got %v", g.In.Weight)
	}
}

// 1 + 2^-24 lies halfway between two float32; four times 2^-54 tip it over, but only if they are
// added up first. Any other order loses them in float64 and rounds down to 1.
func TestBuildWeightSumOrder(t *testing.T) {
	weight := []float32{1, 0x1p-24, 0x1p-54, 0x1p-54, 0x1p-54, 0x1p-54}
	src, dst := []int32{0, 0, 0, 1, 1, 1}, []int32{1, 1, 1, 0, 0, 0}
	want := []float32{1 + 0x1p-23, 1 + 0x1p-23}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		if got := mustBuild(t, edges{2, src, dst, weight}, false).In.Weight; !slices.Equal(got, want) {
			t.Fatalf("%g sum to %g, want %g", weight, got, want)
		}
		rng.Shuffle(len(weight), func(i, j int) { weight[i], weight[j] = weight[j], weight[i] })
	}
}

func TestVerifyCSR(t *testing.T) {
	sound := func() *CSR {
		return &CSR{Indptr: []int64{0, 2, 4, 5}, Indices: []int32{0, 1, 0, 2, 1}, Weight: []float32{5, 1, 1, 2, 2}}
	}
	if err := VerifyCSR(3, sound(), true); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		fault string
		do    func(c *CSR)
		text  string
	}{
		{"no indptr", func(c *CSR) { c.Indptr = nil }, "len 0, want 4"},
		{"first offset", func(c *CSR) { c.Indptr[0] = 1 }, "begins with 1"},
		{"falling offsets", func(c *CSR) { c.Indptr[1] = 5 }, "falls from 5 to 4 at row 1"},
		{"huge offset", func(c *CSR) { c.Indptr[3] = math.MaxInt64 }, "want 5, the number of entries"},
		{"weights missing", func(c *CSR) { c.Weight = c.Weight[:4] }, "4 weights for 5 entries"},
		{"weight NaN", func(c *CSR) { c.Weight[2] = float32(math.NaN()) }, "entry 2 is NaN"},
		{"weight negative", func(c *CSR) { c.Weight[2] = -1 }, "entry 2 is -1"},
		{"index too large", func(c *CSR) { c.Indices[4] = 3 }, "row 2 holds 3"},
		{"index negative", func(c *CSR) { c.Indices[4] = -1 }, "row 2 holds -1"},
		{"row twice", func(c *CSR) { c.Indices[1] = 0 }, "row 0 holds 0 after 0"},
		{"one way", func(c *CSR) { c.Indices[4] = 0 }, "row 1 holds 2, but row 2 does not hold 1"},
		{"weights differ", func(c *CSR) { c.Weight[4] = 7 }, "2 one way and 7 the other"},
	} {
		c := sound()
		tc.do(c)
		if err := VerifyCSR(3, c, true); err == nil || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: got %v, want %q", tc.fault, err, tc.text)
		}
	}
}

func TestVerifyGraphFaults(t *testing.T) {
	x := edges{numNodes: 4, src: []int32{0, 0, 1, 2, 2}, dst: []int32{1, 2, 2, 2, 0}}
	for _, directed := range []bool{false, true} {
		for i := range reflect.TypeFor[Audit]().NumField() {
			field := reflect.TypeFor[Audit]().Field(i)
			g := mustBuild(t, x, directed)
			switch f := reflect.ValueOf(&g.Audit).Elem().Field(i); f.Kind() {
			case reflect.Slice:
				g.Audit.DegreeHistogram[0]++
			default:
				f.SetInt(f.Int() + 7)
			}
			if err := VerifyGraph(g); err == nil {
				t.Errorf("directed %t: a wrong %s passes", directed, field.Name)
			}
		}
	}
	g := mustBuild(t, x, true)
	g.Out.Indices[0] = 3 // 0 -> 3 in place of 0 -> 1
	slices.Sort(g.Out.Indices[:2])
	if err := VerifyGraph(g); err == nil || !strings.Contains(err.Error(), "0 -> 1") {
		t.Errorf("foreign out-rows: got %v", err)
	}
}
