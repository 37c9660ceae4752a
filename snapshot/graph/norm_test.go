package graph

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// dense writes out the coefficients of norm as a matrix [dst][src], 0 where there is no entry.
func dense(c *CSR, norm Norm) [][]float64 {
	m := make([][]float64, c.NumNodes())
	for v := range m {
		m[v] = make([]float64, len(m))
		for e := c.Indptr[v]; e < c.Indptr[v+1]; e++ {
			if u := c.Indices[e]; int(u) != v {
				m[v][u] = norm.Coefficient(e, u, int32(v))
			}
		}
		if norm.Self != nil {
			m[v][v] = float64(norm.Self[v])
		}
	}
	return m
}

// The tables are those of numpy, to six decimals.
func TestGCNTables(t *testing.T) {
	for _, tc := range []struct {
		name     string
		directed bool
		x        edges
		want     [][]float64
	}{
		{
			"an existing self loop is the only one (pyg-team/pytorch_geometric#2288)", false,
			edges{numNodes: 3, src: []int32{0, 1, 1}, dst: []int32{1, 2, 1}},
			[][]float64{{0.5, 0.408248, 0}, {0.408248, 0.333333, 0.408248}, {0, 0.408248, 0.5}},
		},
		{
			"listed both ways (rapidsai/cugraph#2711)", false,
			edges{numNodes: 3, src: []int32{0, 1, 1, 2}, dst: []int32{1, 0, 2, 1}},
			[][]float64{{0.5, 0.408248, 0}, {0.408248, 0.333333, 0.408248}, {0, 0.408248, 0.5}},
		},
		{
			"symmetric pattern matrix with a diagonal entry (ORNL/HeCBench#226)", false,
			edges{numNodes: 4, src: []int32{1, 2, 2, 3}, dst: []int32{0, 1, 2, 2}},
			[][]float64{
				{0.5, 0.408248, 0, 0}, {0.408248, 0.333333, 0.333333, 0},
				{0, 0.333333, 0.333333, 0.408248}, {0, 0, 0.408248, 0.5},
			},
		},
		{
			"triangle (rapidsai/cugraph#488)", false,
			edges{numNodes: 3, src: []int32{0, 1, 2}, dst: []int32{1, 2, 0}},
			[][]float64{{1. / 3, 1. / 3, 1. / 3}, {1. / 3, 1. / 3, 1. / 3}, {1. / 3, 1. / 3, 1. / 3}},
		},
		{
			"directed takes in-row sums at both ends (pyg-team/pytorch_geometric#5149)", true,
			edges{numNodes: 3, src: []int32{0, 0, 1}, dst: []int32{1, 2, 2}},
			[][]float64{{1, 0, 0}, {0.707107, 0.5, 0}, {0.577350, 0.408248, 0.333333}},
		},
		{
			"no edges (dmlc/dgl#2777)", false,
			edges{numNodes: 2},
			[][]float64{{1, 0}, {0, 1}},
		},
		{
			"weighted: d = 3, 4.5, 2.5", false,
			edges{numNodes: 3, src: []int32{0, 1}, dst: []int32{1, 2}, weight: []float32{2, 1.5}},
			[][]float64{
				{1. / 3, 2 / math.Sqrt(13.5), 0},
				{2 / math.Sqrt(13.5), 1 / 4.5, 1.5 / math.Sqrt(11.25)},
				{0, 1.5 / math.Sqrt(11.25), 1 / 2.5},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := mustBuild(t, tc.x, tc.directed)
			norm, err := GCN(&g.In, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			for v, row := range dense(&g.In, norm) {
				for u, got := range row {
					if math.Abs(got-tc.want[v][u]) > 1e-6 {
						t.Errorf("%d -> %d: got %f, want %f", u, v, got, tc.want[v][u])
					}
				}
			}
		})
	}
}

// A star of 200,000 leaves has a closed form (muhanzhang/SEAL#44).
func TestStar(t *testing.T) {
	const numLeaves = 200_000
	x := edges{numNodes: numLeaves + 1}
	for v := int32(1); v <= numLeaves; v++ {
		x.add(0, v)
	}
	g := mustBuild(t, x, false)
	if err := VerifyGraph(g); err != nil {
		t.Fatal(err)
	}
	a := g.Audit
	if a.NumEdges != numLeaves || a.MaxDegree != numLeaves || a.DegreeHistogram[1] != numLeaves || len(a.DegreeHistogram) != 19 {
		t.Errorf("audit %+v", a)
	}
	norm, err := GCN(&g.In, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, got, want float64) {
		if math.Abs(got-want) > 5*0x1p-24*want {
			t.Errorf("%s: got %g, want %g", name, got, want)
		}
	}
	check("hub, hub", float64(norm.Self[0]), 1./200_001)
	for _, v := range []int32{1, 77, numLeaves} {
		check("leaf, leaf", float64(norm.Self[v]), 0.5)
		check("hub, leaf", norm.Coefficient(g.In.Indptr[v], 0, v), 1/math.Sqrt(400_002))
		check("leaf, hub", norm.Coefficient(int64(v-1), v, 0), 1/math.Sqrt(400_002))
	}
	labels, sizes := Components(&g.In, g.Out == nil, 0)
	if err := VerifyComponents(&g.In, labels, sizes); err != nil || len(sizes) != 1 {
		t.Errorf("components: %v, %d", err, len(sizes))
	}
	order := BFSOrder(&g.In, nil, labels, 1)
	if err := VerifyOrder(&g.In, nil, labels, order); err != nil || order[0] != 1 || order[1] != 0 {
		t.Errorf("order: %v, %v", err, order[:2])
	}
}

func TestNorms(t *testing.T) {
	forShapes(t, func(t *testing.T, _ *rand.Rand, x edges, directed bool) {
		c := &mustBuild(t, x, directed).In
		for kind, norms := range map[NormKind]func(threads int) (Norm, error){
			NormGCN:  func(threads int) (Norm, error) { return GCN(c, threads, nil) },
			NormMean: func(threads int) (Norm, error) { return Mean(c, threads, nil) },
			NormSum:  func(int) (Norm, error) { return Sum(c), nil },
		} {
			norm, err := norms(1)
			if err != nil {
				t.Fatal(err)
			}
			if err := VerifyNorm(kind, c, norm); err != nil {
				t.Fatal(err)
			}
			for _, threads := range []int{2, 8} {
				if again, _ := norms(threads); !reflect.DeepEqual(again, norm) {
					t.Fatalf("%s: %d threads differ from one", kind, threads)
				}
			}
		}
	})
}

// The stored parts, to the bit.
func TestNormParts(t *testing.T) {
	f := func(d float64) float32 { return float32(1 / math.Sqrt(d)) }
	x := edges{numNodes: 4, src: []int32{0, 1, 1}, dst: []int32{1, 2, 1}}
	plain := &mustBuild(t, x, false).In
	x.weight = []float32{0.1, 3, 0.7}
	weighted := &mustBuild(t, x, false).In
	d0, d1, d2 := float64(x.weight[0])+1, float64(x.weight[0])+float64(x.weight[2])+3, 4.0
	w01, w12 := x.weight[0], x.weight[1]

	gcn := func(c *CSR) Norm { n, _ := GCN(c, 1, nil); return n }
	mean := func(c *CSR) Norm { n, _ := Mean(c, 1, nil); return n }
	for _, tc := range []struct {
		name      string
		got, want Norm
	}{
		{"gcn", gcn(plain), Norm{
			Src: []float32{f(2), f(3), f(2), 1}, Dst: []float32{f(2), f(3), f(2), 1},
			Self: []float32{0.5, float32(1. / 3), 0.5, 1},
		}},
		{"weighted gcn", gcn(weighted), Norm{
			Self: []float32{float32(1 / d0), float32(float64(x.weight[2]) / d1), 0.25, 1},
			Edge: []float32{
				float32(w01*f(d1)) * f(d0),
				float32(w01*f(d0)) * f(d1), 0, float32(w12*f(d2)) * f(d1),
				float32(w12*f(d1)) * f(d2),
			},
		}},
		{"mean", mean(plain), Norm{Dst: []float32{1, float32(1. / 3), 1, 0}, Self: []float32{0, float32(1. / 3), 0, 0}}},
		{"weighted mean", mean(weighted), Norm{
			Self: []float32{0, float32(float64(x.weight[2]) / d1), 0, 0},
			Edge: []float32{1, float32(float64(w01) / d1), 0, float32(float64(w12) / d1), 1},
		}},
		{"sum", Sum(plain), Norm{Self: []float32{0, 1, 0, 0}}},
		{"weighted sum", Sum(weighted), Norm{Self: []float32{0, 0.7, 0, 0}, Edge: []float32{w01, w01, 0, w12, w12}}},
		{"mean without loops", mean(&mustBuild(t, edges{numNodes: 2, src: []int32{0}, dst: []int32{1}}, true).In), Norm{Dst: []float32{0, 1}}},
		{"sum without loops", Sum(&mustBuild(t, edges{numNodes: 2, src: []int32{0}, dst: []int32{1}}, true).In), Norm{}},
		{"gcn without nodes", gcn(&CSR{}), Norm{Src: []float32{}, Dst: []float32{}}},
	} {
		if !reflect.DeepEqual(tc.got, tc.want) {
			t.Errorf("%s: got %+v, want %+v", tc.name, tc.got, tc.want)
		}
	}
}

// The factor is rounded once, from float64; a float32 root on the way gives other bits for many degrees.
func TestGCNFactorBits(t *testing.T) {
	var x edges
	for degree := int32(1); degree <= 200; degree++ { // node 200+d has d arcs in
		for u := range degree {
			x.add(u, 200+degree)
		}
	}
	x.numNodes = 401
	c := &mustBuild(t, x, true).In
	norm, err := GCN(c, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for v := range int32(401) {
		d := float64(max(v-200, 0) + 1)
		if norm.Src[v] != float32(1/math.Sqrt(d)) || norm.Self[v] != float32(1/d) {
			t.Errorf("d = %g: factor %g, self %g", d, norm.Src[v], norm.Self[v])
		}
	}
}

// Weights at the ends of float32: zero rows give zeros, and what can't be stored is an error, not Inf.
func TestNormExtremes(t *testing.T) {
	const tiny, huge = 0x1p-149, math.MaxFloat32
	zero := &mustBuild(t, edges{2, []int32{0, 0}, []int32{0, 1}, []float32{0, 0}}, true).In
	for name, norms := range map[string]func(*CSR, int, Alloc) (Norm, error){"gcn": GCN, "mean": Mean} {
		norm, err := norms(zero, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := Aggregate(zero, norm, []float32{5, 7}, 1); got[0] != 0 || (got[1] != 0) != (name == "gcn") {
			t.Errorf("%s of weights 0: got %v", name, got)
		}
	}

	for _, tc := range []struct {
		name string
		x    edges
		gcn  string
		mean string
	}{
		{"huge", edges{3, []int32{0, 1}, []int32{1, 2}, []float32{huge, huge}}, "", ""},
		{"tiny edge", edges{3, []int32{0, 1}, []int32{1, 2}, []float32{1, tiny}}, "", ""},
		{"tiny loop", edges{3, []int32{0, 0}, []int32{0, 1}, []float32{tiny, 1e30}}, "gcn coefficient of edge 0 -> 1 is over", ""},
		{"largest factor", edges{2, []int32{0}, []int32{1}, []float32{0x1p-127}}, "", ""},
	} {
		c := &mustBuild(t, tc.x, true).In
		for kind, want := range map[NormKind]string{NormGCN: tc.gcn, NormMean: tc.mean} {
			norms := GCN
			if kind == NormMean {
				norms = Mean
			}
			norm, err := norms(c, 2, nil)
			var normErr *NormError
			switch {
			case want == "" && err != nil:
				t.Errorf("%s: %s: %v", tc.name, kind, err)
			case want == "":
				if err := VerifyNorm(kind, c, norm); err != nil {
					t.Errorf("%s: %v", tc.name, err)
				}
			case !errors.As(err, &normErr) || !strings.Contains(err.Error(), want):
				t.Errorf("%s: %s: got %v, want %q", tc.name, kind, err, want)
			}
		}
	}
}

func TestVerifyNormFaults(t *testing.T) {
	x := edges{numNodes: 3, src: []int32{0, 1, 1}, dst: []int32{1, 2, 1}, weight: []float32{1, 2, 3}}
	weighted := &mustBuild(t, x, false).In
	x.weight = nil
	plain := &mustBuild(t, x, false).In
	for _, tc := range []struct {
		name string
		c    *CSR
		do   func(n *Norm)
	}{
		{"edge", weighted, func(n *Norm) { n.Edge[0] *= 1 + 0x1p-20 }},
		{"loop's edge", weighted, func(n *Norm) { n.Edge[2-1] = 1 }},
		{"no edge", weighted, func(n *Norm) { n.Edge = nil }},
		{"self", plain, func(n *Norm) { n.Self[1] = 0.25 }},
		{"src", plain, func(n *Norm) { n.Src = []float32{1, 1, 1} }},
		{"NaN", plain, func(n *Norm) { n.Dst[0] = float32(math.NaN()) }},
		{"short", plain, func(n *Norm) { n.Dst = n.Dst[:2] }},
		{"no self", plain, func(n *Norm) { n.Self = nil }},
	} {
		norm, err := GCN(tc.c, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		tc.do(&norm)
		if VerifyNorm(NormGCN, tc.c, norm) == nil {
			t.Errorf("%s: passes", tc.name)
		}
	}
	if VerifyNorm("relmean", plain, Norm{}) == nil {
		t.Error("an unknown kind passes")
	}
}

// Aggregate against a product with the written-out matrix.
func TestAggregate(t *testing.T) {
	const dim = 3
	forShapes(t, func(t *testing.T, rng *rand.Rand, x edges, directed bool) {
		c := &mustBuild(t, x, directed).In
		features := make([]float32, x.numNodes*dim)
		for i := range features {
			features[i] = rng.Float32() - 0.5
		}
		gcn, _ := GCN(c, 1, nil)
		mean, _ := Mean(c, 1, nil)
		for _, norm := range []Norm{gcn, mean, Sum(c), {}} {
			got := Aggregate(c, norm, features, dim)
			for v, row := range dense(c, norm) {
				for j := range dim {
					want, size := 0.0, 0.0
					for u, a := range row {
						want += a * float64(features[u*dim+j])
						size += math.Abs(a)
					}
					if math.Abs(got[v*dim+j]-want) > 1e-12*(1+size) {
						t.Fatalf("node %d column %d: got %g, want %g", v, j, got[v*dim+j], want)
					}
				}
			}
		}
	})
	// The mean over no neighbours is zero (dmlc/dgl#2777).
	c := &mustBuild(t, edges{numNodes: 2}, false).In
	mean, _ := Mean(c, 1, nil)
	if got := Aggregate(c, mean, []float32{1, 2, 3, 4}, 2); !reflect.DeepEqual(got, make([]float64, 4)) {
		t.Errorf("mean without edges: got %v", got)
	}
}
