package batch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
	"github.com/prelift/prelift/snapshot"
)

// modeCase is one way to cut batches.
type modeCase struct {
	name   string
	change func(p *format.BatchParams)
}

// modeCases are all the ways but fanout without more and full, on batches of a few seeds.
var modeCases = []modeCase{
	{"labor", func(p *format.BatchParams) { p.Mode, p.Fanout = ModeLabor, []int{4, 3} }},
	{"labor, packed by groups", func(p *format.BatchParams) {
		p.Mode, p.Fanout, p.Group, p.DType = ModeLabor, []int{4, 3}, 2, "f16"
	}},
	{"labor, all", func(p *format.BatchParams) { p.Mode, p.Fanout, p.HubCap = ModeLabor, []int{2, -1}, 7 }},
	{"capped", func(p *format.BatchParams) { p.Fanout, p.HubCap = []int{-1, 3}, 5 }},
	{"cluster", func(p *format.BatchParams) {
		p.Mode, p.Cluster = ModeCluster, &format.ClusterParams{Size: 16, PerBatch: 3}
	}},
	{"cluster of all", func(p *format.BatchParams) {
		p.Mode, p.Cluster = ModeCluster, &format.ClusterParams{Size: 1 << 20, PerBatch: 1}
	}},
	{"single nodes", func(p *format.BatchParams) {
		p.Mode, p.Cluster = ModeCluster, &format.ClusterParams{Size: 1, PerBatch: 2}
	}},
	{"ppr", func(p *format.BatchParams) { p.Mode = ModePPR }},
	{"ppr by batch", func(p *format.BatchParams) {
		p.Mode, p.HubCap, p.PPR = ModePPR, 6, &format.PPRParams{Select: SelectBatch, TopK: 4, Alpha: 0.15, Epsilon: 1e-3}
	}},
	{"khop", func(p *format.BatchParams) { p.Mode, p.HubCap = ModeKHop, 0 }},
	{"one hop, capped", func(p *format.BatchParams) { p.Mode, p.HubCap, p.KHop = ModeKHop, 3, &format.KHopParams{Hops: 1} }},
	{"khop, hot rows", func(p *format.BatchParams) {
		p.Mode, p.HubCap, p.HotRows, p.Group, p.DType = ModeKHop, 9, 0.1, 3, "int8"
	}},
	{"stratified", func(p *format.BatchParams) { p.Stratify = &format.StratifyParams{DenseShare: 0.5} }},
	{"stratified khop", func(p *format.BatchParams) {
		p.Mode, p.Stratify = ModeKHop, &format.StratifyParams{DenseShare: 0.3, MinSize: 3, MinDegree: 1.5}
	}},
}

// weightedCases need edge weights.
var weightedCases = []modeCase{
	{"by weight", func(p *format.BatchParams) { p.Weighted, p.Fanout = true, []int{3, 4} }},
	{"by weight, capped", func(p *format.BatchParams) { p.Weighted, p.Fanout, p.HubCap = true, []int{3, -1}, 6 }},
}

// of returns the parameters of a case, in batches of a few seeds.
func (c *modeCase) of(batchSize int) format.BatchParams {
	return params(func(p *format.BatchParams) {
		p.BatchSize, p.Variants, p.BatchesPerFile = batchSize, 2, 3
		c.change(p)
		if p.HotRows > 0 || p.Group > 0 {
			p.Store = StorePacked
		}
	})
}

// indexed gives a graph what every mode needs.
func indexed(g testGraph) *testGraph {
	g.with, g.hops = []string{snapshot.WithPageRank}, 2
	return &g
}

// islands has a random graph, and some small components beside it.
func islands(numNodes, numEdges int) *testGraph {
	g := randomGraph(numNodes, numEdges)
	for v := int32(numNodes); v < int32(numNodes)+30; v += 3 {
		g.edges = append(g.edges, [2]int32{v, v + 1}, [2]int32{v + 1, v + 2})
	}
	g.numNodes += 30
	for v := range 30 {
		g.parts[0] = append(g.parts[0], []format.Part{format.PartTrain, format.PartTest}[v%2])
	}
	return indexed(*g)
}

func weights(g *testGraph) *testGraph {
	g.weights = make([]float32, len(g.edges))
	for i := range g.weights {
		g.weights[i] = []float32{0.5, 3, 1, 0, 40}[i%5]
	}
	return g
}

// TestModes cuts graphs of all shapes in every mode: each set passes verification, alone and against the snapshot, and is what was planned; every
// seed is in exactly one batch of each variant, where that is promised.
func TestModes(t *testing.T) {
	t.Parallel()
	one := [][]format.Part{{format.PartTrain}}
	for _, g := range []struct {
		name  string
		graph *testGraph
	}{
		{"one node", indexed(testGraph{numNodes: 1, features: 3, parts: one})},
		{"one node with a loop", indexed(testGraph{numNodes: 1, features: 3, parts: one, edges: [][2]int32{{0, 0}}})},
		{"no edges", indexed(testGraph{numNodes: 5, features: 3})},
		{"no features, no splits", indexed(testGraph{numNodes: 4, edges: [][2]int32{{0, 1}, {1, 2}}, noSplits: true})},
		{"isolated nodes, bits", indexed(testGraph{numNodes: 9, features: 2, labels: "bits", edges: [][2]int32{{0, 8}, {8, 4}}})},
		{"self loops", indexed(testGraph{numNodes: 3, features: 2, edges: [][2]int32{{0, 0}, {1, 1}, {2, 2}, {0, 1}, {1, 0}}})},
		{"directed", indexed(testGraph{numNodes: 6, features: 2, directed: true, edges: [][2]int32{{0, 1}, {2, 1}, {3, 1}, {4, 3}, {5, 4}, {1, 1}}})},
		{"two components", indexed(testGraph{numNodes: 6, features: 2, edges: [][2]int32{{0, 1}, {1, 2}, {3, 4}, {4, 5}}})},
		{"islands", islands(200, 900)},
		{"weights", weights(islands(200, 900))},
	} {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			snap := g.graph.open(t)
			cases := modeCases
			if g.graph.weights != nil {
				cases = slices.Concat(cases, weightedCases)
			}
			for _, c := range cases {
				p := c.of(7)
				if snap.NumFeatures() == 0 {
					p.Store, p.HotRows, p.Group, p.DType = Auto, 0, 0, "f32"
				}
				dir, m, plan := build(t, snap, p, Options{Threads: 2})
				tolerance := 0.05
				if plan.Exact {
					tolerance = 0
				}
				checkPlan(t, plan, edgesAside(m, plan), tolerance)
				checkDescription(t, dir, m)
				checkCoverage(t, dir, m, snap, c.name)
			}
		})
	}
}

// checkCoverage counts the seeds of each variant.
func checkCoverage(t *testing.T, dir string, m *format.BatchSet, snap *snapshot.Snapshot, name string) {
	t.Helper()
	seeds, err := trainSeeds(snap, m.Params.Split)
	if err != nil {
		t.Fatal(err)
	}
	times := make([]map[int32]int, m.Params.Variants)
	for v := range times {
		times[v] = map[int32]int{}
	}
	batches(t, dir, m, func(r *format.Record) {
		for _, v := range r.Int32s(format.NodesNumber, format.AnyLayer)[:r.NumSeeds] {
			times[r.Variant][v]++
		}
	})
	for variant, count := range times {
		for v, n := range count {
			if _, ok := slices.BinarySearch(seeds, v); !ok || n != 1 && covers(&m.Params) {
				t.Errorf("%s: node %d is a seed %d times in variant %d", name, v, n, variant)
			}
		}
		if covers(&m.Params) && len(count) != len(seeds) {
			t.Errorf("%s: %d of %d seeds are in variant %d", name, len(count), len(seeds), variant)
		}
	}
}

// TestModesSameBytes: no set depends on the number of threads, nor on whether Write has the plan's source.
func TestModesSameBytes(t *testing.T) {
	t.Parallel()
	snap := weights(islands(1500, 9000)).open(t)
	for _, c := range slices.Concat(modeCases, weightedCases) {
		p, plan, err := Resolve(context.Background(), snap, c.of(40), Options{Threads: 3})
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		for _, threads := range []int{1, 2, 8} {
			opt := Options{Threads: threads}
			if threads == 2 {
				opt.Plan = plan
			}
			out := filepath.Join(t.TempDir(), "set")
			write(t, out, snap, p, opt)
			if got := hashDir(t, out); want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s: %d threads give %s, want %s", c.name, threads, got, want)
			}
		}
		if again, _, err := Resolve(context.Background(), snap, p, Options{}); err != nil || !sameParams(&again, &p) {
			t.Errorf("%s: settled %+v, again %+v (%v)", c.name, p, again, err)
		}
	}
}

// TestModesPredictedSize: sizes from a sample of many batches are within 5 %, and seeds and batches exact.
func TestModesPredictedSize(t *testing.T) {
	t.Parallel()
	snap := islands(3000, 9000).open(t)
	for _, c := range modeCases {
		if c.name == "cluster of all" || c.name == "khop" || c.name == "stratified khop" || c.name == "labor, all" || c.name == "khop, hot rows" {
			continue
		}
		p := c.of(8)
		p.Eval = None
		if p.Mode == ModeCluster {
			p.Variants = 10
		}
		p, plan, err := Resolve(context.Background(), snap, p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Exact && c.name != "stratified" {
			t.Errorf("%s: all of %d batches were measured", c.name, plan.NumBatches)
		}
		checkPlan(t, plan, edgesAside(write(t, filepath.Join(t.TempDir(), "set"), snap, p, Options{Plan: plan}), plan), 0.05)
	}
}

// edgesAside returns the manifest of clusters with the edges that were planned: few clusters in a batch leave few and very different numbers of edges,
// which are a small part of the bytes, and it is these that a plan promises.
func edgesAside(m *format.BatchSet, plan *Plan) *format.BatchSet {
	if m.Params.Mode != ModeCluster || plan.Exact {
		return m
	}
	aside := *m
	aside.NumSampledEdges = format.Int(plan.NumSampledEdges)
	return &aside
}

// TestSubgraphs compares batches with sets of nodes and edges found by plain loops.
func TestSubgraphs(t *testing.T) {
	t.Parallel()
	snap := islands(150, 180).open(t) // so few edges that hop 2 isn't cut
	if snap.Manifest.Hop2.Forced {
		t.Fatal("hop 2 is cut")
	}
	neighbours := func(v int32) map[int32]bool {
		set := map[int32]bool{}
		for _, u := range snap.In.Row(v) {
			if u != v {
				set[u] = true
			}
		}
		return set
	}
	for _, c := range []modeCase{
		{"khop 1", func(p *format.BatchParams) { p.Mode, p.HubCap, p.KHop = ModeKHop, 0, &format.KHopParams{Hops: 1} }},
		{"khop 2", func(p *format.BatchParams) { p.Mode, p.HubCap, p.KHop = ModeKHop, 0, &format.KHopParams{Hops: 2} }},
		{"ppr", func(p *format.BatchParams) {
			p.Mode, p.PPR = ModePPR, &format.PPRParams{Select: SelectNode, TopK: 1 << 20, Alpha: 0.2, Epsilon: 1e-9}
		}},
		{"cluster", func(p *format.BatchParams) {
			p.Mode, p.Cluster = ModeCluster, &format.ClusterParams{Size: 1 << 20, PerBatch: 1}
		}},
	} {
		dir, m, _ := build(t, snap, c.of(9), Options{})
		batches(t, dir, m, func(r *format.Record) {
			nodes, want := r.Int32s(format.NodesNumber, format.AnyLayer), map[int32]bool{}
			if r.NumLayers != 0 || r.NumNodes() != uint64(len(nodes)) || r.NumSeeds < 1 {
				t.Fatalf("%s: %d layers, %d of %d nodes, %d seeds", c.name, r.NumLayers, len(nodes), r.NumNodes(), r.NumSeeds)
			}
			switch {
			case m.Params.KHop != nil:
				for _, v := range nodes[:r.NumSeeds] {
					want[v] = true
					for u := range neighbours(v) {
						want[u] = true
						for w := range neighbours(u) {
							want[w] = want[w] || m.Params.KHop.Hops == 2
						}
					}
				}
			default: // with no bounds a walk gets everywhere in its component, and the one cluster is the graph
				for v := range int32(snap.NumNodes()) {
					want[v] = m.Params.Mode == ModeCluster || slices.ContainsFunc(nodes[:r.NumSeeds], func(s int32) bool { return snap.Component[s] == snap.Component[v] })
				}
			}
			place := map[int32]int32{}
			for i, v := range nodes {
				place[v] = int32(i)
			}
			for v, there := range want {
				if _, ok := place[v]; ok != there {
					t.Fatalf("%s: node %d in the batch: %t, want %t", c.name, v, ok, there)
				}
			}
			indptr, indices := r.Int64s(format.BlockIndptr, format.AnyLayer), r.Int32s(format.BlockIndices, format.AnyLayer)
			for d, v := range nodes {
				all, row := neighbours(v), map[int32]bool{}
				for _, s := range indices[indptr[d]:indptr[d+1]] {
					row[nodes[s]] = true
				}
				for u := range all {
					if _, ok := place[u]; ok != row[u] {
						t.Fatalf("%s: edge %d -> %d is there: %t, its ends are: %t", c.name, u, v, row[u], ok)
					}
				}
				counts := float32(1)
				if len(row) > 0 {
					counts = float32(float64(len(all)) / float64(len(row)))
				}
				if m.Params.KHop != nil && m.Params.KHop.Hops == 2 && counts != 1 && slices.ContainsFunc(nodes[:r.NumSeeds], func(s int32) bool { return s == v || all[s] }) {
					t.Fatalf("%s: node %d, a seed or next to one, lacks neighbours", c.name, v) // so two layers are exact at the seeds
				}
				if got := r.Float32s(format.CoefImportance, format.AnyLayer, format.CoefNone)[d]; got != counts {
					t.Fatalf("%s: node %d has %d of %d neighbours and importance %g", c.name, v, len(row), len(all), got)
				}
			}
		})
	}
}

// TestWeightedIsUnbiased: the mean over variants of a seed's weighted sum, as a reader of the set computes it, is the sum over all neighbours.
func TestWeightedIsUnbiased(t *testing.T) {
	t.Parallel()
	const variants, numNodes = 400, 40
	g := randomGraph(numNodes, 300)
	g.parts = nil
	snap := weights(g).open(t)
	p := params(func(p *format.BatchParams) {
		p.Weighted, p.Fanout, p.BatchSize, p.Variants, p.Norm, p.Eval, p.BatchesPerFile = true, []int{3}, numNodes, variants, []string{"sum"}, None, 400
	})
	p, _, err := Resolve(context.Background(), snap, p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "set")
	m := write(t, dir, snap, p, Options{})
	x := func(v int32) float64 { return 1 + float64(v%7) }
	sums, squares := make([]float64, numNodes), make([]float64, numNodes)
	batches(t, dir, m, func(r *format.Record) {
		nodes := r.Int32s(format.NodesNumber, format.AnyLayer)
		indptr, indices, edge := r.Int64s(format.BlockIndptr, 0), r.Int32s(format.BlockIndices, 0), r.Float32s(format.CoefEdge, 0, format.CoefSum)
		for d := range r.NumSeeds {
			total := 0.0
			for e := indptr[d]; e < indptr[d+1]; e++ {
				total += float64(edge[e]) * x(nodes[indices[e]])
			}
			sums[nodes[d]] += total / variants
			squares[nodes[d]] += total * total / variants
		}
	})
	for v := range int32(numNodes) {
		want := 0.0
		for at, u := range snap.In.Row(v) {
			if u != v {
				want += float64(snap.In.RowWeights(v)[at]) * x(u)
			}
		}
		deviation := math.Sqrt(max(squares[v]-sums[v]*sums[v], 0) / variants)
		if math.Abs(sums[v]-want) > 4.5*deviation+1e-6*want {
			t.Errorf("node %d: mean %g, want %g, standard error %g", v, sums[v], want, deviation)
		}
	}
}

// TestHubCap: a hub's neighbours are cut in batches of fanout -1, khop and ppr, never elsewhere; and a cap that cuts nothing isn't kept.
func TestHubCap(t *testing.T) {
	t.Parallel()
	g := indexed(testGraph{numNodes: 601, features: 1, parts: [][]format.Part{make([]format.Part, 601)}})
	for v := int32(1); v <= 600; v++ {
		g.edges = append(g.edges, [2]int32{v, 0})
	}
	g.parts[0][0] = format.PartTrain
	snap := g.open(t)
	edgesOf := func(change func(p *format.BatchParams)) (settled format.BatchParams, edges int, importance float32) {
		dir, m, _ := build(t, snap, params(func(p *format.BatchParams) {
			p.Fanout, p.Variants = []int{-1}, 1
			change(p)
		}), Options{})
		batches(t, dir, m, func(r *format.Record) {
			layer := blockLayers(r)[0]
			edges, importance = int(r.Int64s(format.BlockIndptr, layer)[1]), 0
			if x := r.Float32s(format.CoefImportance, layer, format.CoefNone); x != nil {
				importance = x[0]
			}
		})
		return m.Params, edges, importance
	}
	for _, c := range []struct {
		name       string
		change     func(p *format.BatchParams)
		cap, edges int
		importance float32
	}{
		{"default", func(*format.BatchParams) {}, 500, 500, 1.2},
		{"none", func(p *format.BatchParams) { p.HubCap = 0 }, 0, 600, 0},
		{"wide", func(p *format.BatchParams) { p.HubCap = 600 }, 0, 600, 0},
		{"narrow", func(p *format.BatchParams) { p.HubCap = 599 }, 599, 599, float32(600.0 / 599)},
		{"khop", func(p *format.BatchParams) { p.Mode, p.HubCap, p.KHop = ModeKHop, 100, &format.KHopParams{Hops: 1} }, 100, 100, 6},
		{"ppr", func(p *format.BatchParams) {
			p.Mode, p.HubCap, p.PPR = ModePPR, 50, &format.PPRParams{Select: SelectNode, TopK: 1000, Alpha: 0.5, Epsilon: 1e-7}
		}, 50, 50, 12},
		{"full", func(p *format.BatchParams) { p.Mode, p.HubCap = ModeFull, 50 }, 0, 600, 0},
		{"cluster", func(p *format.BatchParams) {
			p.Mode, p.HubCap, p.Cluster = ModeCluster, 50, &format.ClusterParams{Size: 1000, PerBatch: 1}
		}, 0, 600, 1},
	} {
		p, edges, importance := edgesOf(c.change)
		if p.HubCap != c.cap || edges != c.edges || importance != c.importance {
			t.Errorf("%s: cap %d, %d edges of importance %g; want %d, %d, %g", c.name, p.HubCap, edges, importance, c.cap, c.edges, c.importance)
		}
	}
}

// TestLaborShares: the batches of LABOR need fewer distinct nodes than those of uniform draws.
func TestLaborShares(t *testing.T) {
	t.Parallel()
	snap := randomGraph(3000, 60000).open(t)
	rows := map[string]int64{}
	for _, mode := range []string{ModeFanout, ModeLabor} {
		_, plan, err := Resolve(context.Background(), snap, params(func(p *format.BatchParams) { p.Mode, p.Fanout, p.BatchSize = mode, []int{5, 5}, 100 }), Options{})
		if err != nil {
			t.Fatal(err)
		}
		rows[mode] = plan.NumRows
	}
	if rows[ModeLabor] >= rows[ModeFanout] {
		t.Errorf("%d rows with labor, %d with fanout", rows[ModeLabor], rows[ModeFanout])
	}
}

// TestModeParams: what a mode can't do is refused with its flag.
func TestModeParams(t *testing.T) {
	t.Parallel()
	bare := testGraph{numNodes: 3, edges: [][2]int32{{0, 1}}}
	whole := indexed(bare)
	heavy := weights(&testGraph{numNodes: 3, edges: [][2]int32{{0, 1}}})
	one := bare
	one.hops = 1
	cluster := func(size, perBatch int) func(p *format.BatchParams) {
		return func(p *format.BatchParams) {
			p.Mode, p.Cluster = ModeCluster, &format.ClusterParams{Size: size, PerBatch: perBatch}
		}
	}
	ppr := func(change func(q *format.PPRParams)) func(p *format.BatchParams) {
		return func(p *format.BatchParams) {
			q := DefaultPPR()
			change(&q)
			p.Mode, p.PPR = ModePPR, &q
		}
	}
	strata := func(s format.StratifyParams) func(p *format.BatchParams) {
		return func(p *format.BatchParams) { p.Stratify = &s }
	}
	for _, c := range []struct {
		name   string
		graph  *testGraph
		change func(p *format.BatchParams)
		want   string
	}{
		{"hub cap", &bare, func(p *format.BatchParams) { p.HubCap = -1 }, "--hub-cap -1"},
		{"weighted, no weights", &bare, func(p *format.BatchParams) { p.Weighted = true }, "no edge weights"},
		{"weighted labor", heavy, func(p *format.BatchParams) { p.Weighted, p.Mode = true, ModeLabor }, "--weighted with --mode labor"},
		{"weighted none", heavy, func(p *format.BatchParams) { p.Weighted, p.Norm = true, []string{"none", "gcn"} }, "--norm none"},
		{"cluster size", &bare, cluster(0, 1), "--cluster-size 0"},
		{"clusters", &bare, cluster(1, 0), "--clusters-per-batch 0"},
		{"top", &bare, ppr(func(q *format.PPRParams) { q.TopK = 0 }), "--top-k 0"},
		{"alpha", &bare, ppr(func(q *format.PPRParams) { q.Alpha = 1 }), "--ppr-alpha 1"},
		{"epsilon", &bare, ppr(func(q *format.PPRParams) { q.Epsilon = math.NaN() }), "--ppr-epsilon NaN"},
		{"select", &bare, ppr(func(q *format.PPRParams) { q.Select = "all" }), `--ppr-select "all": want node, batch`},
		{"no index", &bare, func(p *format.BatchParams) { p.Mode = ModeKHop }, "build it with snapshot --hops 1"},
		{"two hops of one", &one, func(p *format.BatchParams) { p.Mode, p.KHop = ModeKHop, &format.KHopParams{Hops: 2} }, "build it with snapshot --hops 2"},
		{"three hops", whole, func(p *format.BatchParams) { p.Mode, p.KHop = ModeKHop, &format.KHopParams{Hops: 3} }, "--hops 3: want 1 or 2"},
		{"no ranks", &bare, strata(format.StratifyParams{}), "--with pagerank"},
		{"share", whole, strata(format.StratifyParams{DenseShare: 1.5}), "--dense-share 1.5"},
		{"min size", whole, strata(format.StratifyParams{MinSize: -1}), "--dense-min-nodes -1"},
		{"min degree", whole, strata(format.StratifyParams{MinDegree: math.Inf(1)}), "--dense-min-degree +Inf"},
		{"stratified clusters", whole, func(p *format.BatchParams) { p.Mode, p.Stratify = ModeCluster, &format.StratifyParams{} }, "--stratify with --mode cluster"},
		{"batch size", &bare, func(p *format.BatchParams) { p.Mode, p.BatchSize = ModePPR, 0 }, "--batch-size 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Resolve(context.Background(), c.graph.open(t), params(c.change), Options{})
			var fault *ParamError
			if !errors.As(err, &fault) || !strings.Contains(fmt.Sprint(err), c.want) || strings.Contains(fmt.Sprint(err), "\n") {
				t.Errorf("got %v, want a *ParamError with %q", err, c.want)
			}
		})
	}
}

// TestWeightsTooLarge: a coefficient that a draw makes infinite is refused before a file is written with it.
func TestWeightsTooLarge(t *testing.T) {
	t.Parallel()
	g := &testGraph{numNodes: 2001, features: 1}
	for v := int32(1); v <= 2000; v++ {
		g.edges, g.weights = append(g.edges, [2]int32{v, 0}), append(g.weights, math.MaxFloat32/100)
	}
	p := params(func(p *format.BatchParams) { p.Weighted, p.Fanout, p.Norm = true, []int{1}, []string{"sum"} })
	var fault *ParamError
	if _, _, err := Resolve(context.Background(), g.open(t), p, Options{}); !errors.As(err, &fault) || !strings.Contains(err.Error(), "--weighted") {
		t.Errorf("got %v, want a *ParamError that names --weighted", err)
	}
}

// TestModesOrder: order auto is settled where there is one to choose, else it is random.
func TestModesOrder(t *testing.T) {
	t.Parallel()
	snap := islands(900, 2500).open(t)
	for _, c := range modeCases {
		p, _, err := Resolve(context.Background(), snap, c.of(50), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Order != sample.Random && p.Order != sample.Locality || p.Order == sample.Locality && (p.Stratify != nil || p.Mode == ModeCluster) {
			t.Errorf("%s: order %s", c.name, p.Order)
		}
	}
}

// TestVerifyFindsModeFaults: what the modes promise beyond fanout is checked.
func TestVerifyFindsModeFaults(t *testing.T) {
	t.Parallel()
	const any = format.AnyLayer
	snap := islands(90, 300).open(t)
	rekey := func(m *format.BatchSet) { m.SetKey, _ = m.Key() }
	manifest := func(name string, change func(p *format.BatchParams)) fault {
		return fault{name: name, manifest: func(m *format.BatchSet) { change(&m.Params); rekey(m) }, want: format.ErrLayout}
	}
	record := func(name string, against bool, change func(r *copied)) fault {
		return fault{name: name, file: format.BatchFile(0), record: change, want: format.ErrLayout, against: against}
	}
	// replace puts another node in the place of the last, which must have a smaller number.
	replace := func(accept func(v int32) bool) func(r *copied) {
		return func(r *copied) {
			last := int(r.HopNodes[0]) - 1
			for v := int32(r.word(format.NodesNumber, any, 0, last)) + 1; int(v) < snap.NumNodes(); v++ {
				if accept(v) {
					r.set(format.NodesNumber, any, 0, last, uint32(v))
					return
				}
			}
			panic("no such node")
		}
	}
	importance := func(layer uint16, which func(x float32, edges uint64) bool, to float32) func(r *copied) {
		return func(r *copied) {
			indptr := r.sections[r.find(format.BlockIndptr, layer, 0)].Data
			at := func(d int) uint64 { return binary.LittleEndian.Uint64(indptr[8*d:]) }
			for d := range len(indptr)/8 - 1 {
				if which(math.Float32frombits(r.word(format.CoefImportance, layer, 0, d)), at(d+1)-at(d)) {
					r.set(format.CoefImportance, layer, 0, d, math.Float32bits(to))
					return
				}
			}
			panic("no such row")
		}
	}
	isTrain := func(v int32) bool { return format.Part(snap.Mask[v]) == format.PartTrain }
	long := func(x float32, edges uint64) bool { return x > 1 && edges > 4 }
	for _, c := range []struct {
		name   string
		change func(p *format.BatchParams)
		faults []fault
	}{
		{"cluster", func(p *format.BatchParams) {
			p.Mode, p.Cluster, p.Norm = ModeCluster, &format.ClusterParams{Size: 10, PerBatch: 2}, []string{"none"}
		}, []fault{
			record("node of another batch", false, replace(func(v int32) bool { return !isTrain(v) })),
			record("train node that is no seed", false, replace(isTrain)),
			record("importance below 1", false, importance(any, func(x float32, _ uint64) bool { return x > 1 }, 0.5)),
			record("no number", false, importance(any, func(float32, uint64) bool { return true }, float32(math.NaN()))),
			record("importance", true, importance(any, func(x float32, _ uint64) bool { return x > 1 }, 77)),
			manifest("no parameters", func(p *format.BatchParams) { p.Cluster = nil }),
			manifest("other parameters", func(p *format.BatchParams) { p.KHop = &format.KHopParams{Hops: 1} }),
			manifest("clusters of none", func(p *format.BatchParams) { p.Cluster.Size = 0 }),
			manifest("hub cap", func(p *format.BatchParams) { p.HubCap = 5 }),
			manifest("strata", func(p *format.BatchParams) { p.Stratify = &format.StratifyParams{} }),
			manifest("layers", func(p *format.BatchParams) { p.Fanout = []int{3} }),
		}},
		{"khop", func(p *format.BatchParams) { p.Mode, p.HubCap = ModeKHop, 0 }, []fault{
			record("seed twice", false, func(r *copied) { r.set(format.NodesNumber, any, 0, 1, r.word(format.NodesNumber, any, 0, 0)) }),
			manifest("three hops", func(p *format.BatchParams) { p.KHop.Hops = 3 }),
		}},
		{"labor", func(p *format.BatchParams) { p.Mode, p.Fanout = ModeLabor, []int{4, 4} }, []fault{
			record("row longer than all", false, importance(0, long, 1)),
			record("importance", true, importance(0, long, 77)),
			manifest("weights", func(p *format.BatchParams) { p.Weighted = true }),
		}},
		{"strata", func(p *format.BatchParams) {
			p.Stratify, p.Norm = &format.StratifyParams{DenseShare: 0.5}, []string{"none"}
		}, []fault{
			record("seed that isn't in train", false, func(r *copied) {
				for v := int32(r.word(format.NodesNumber, any, 0, int(r.NumSeeds)-1)) + 1; ; v++ {
					if !isTrain(v) {
						r.set(format.NodesNumber, any, 0, int(r.NumSeeds)-1, uint32(v))
						return
					}
				}
			}),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _, err := Resolve(context.Background(), snap, (&modeCase{change: func(p *format.BatchParams) {
				p.IndexCodec = CodecRaw // the faults are put in by place
				c.change(p)
			}}).of(10), Options{})
			if err != nil {
				t.Fatal(err)
			}
			findFaults(t, snap, p, c.faults)
		})
	}
}
