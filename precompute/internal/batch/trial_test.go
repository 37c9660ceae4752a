package batch

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
)

func TestPolicy(t *testing.T) {
	for _, c := range []struct {
		numNodes, hops, batchSize int
		full                      bool
	}{
		{0, 2, 512, true}, {1, 2, 512, true}, {9_999, 2, 512, true}, {10_000, 2, 1024, false}, {999_999, 2, 1024, false},
		{1_000_000, 1, 2048, false}, {9_999_999, 1, 2048, false}, {10_000_000, 1, 4096, false}, {math.MaxInt32, 1, 4096, false},
	} {
		p, rule := Policy(c.numNodes)
		fanouts, full := Alternatives(c.numNodes)
		if len(p.Fanout) != c.hops || p.BatchSize != c.batchSize || rule == "" || full != c.full {
			t.Errorf("%d nodes: fanout %v, batch size %d, %q, full %t; want %d hops, %d", c.numNodes, p.Fanout, p.BatchSize, rule, full, c.hops, c.batchSize)
		}
		if !slices.ContainsFunc(fanouts, func(f []int) bool { return slices.Equal(f, p.Fanout) }) {
			t.Errorf("%d nodes: the policy's %v isn't among %v", c.numNodes, p.Fanout, fanouts)
		}
	}
}

func TestMakespan(t *testing.T) {
	for _, c := range []struct {
		durations []float64
		workers   int
		want      float64
	}{
		{nil, 2, 0}, {[]float64{3}, 4, 3}, {[]float64{1, 2, 3}, 1, 6}, {[]float64{4, 1, 1, 1}, 2, 4}, {[]float64{1, 1, 1, 4}, 2, 5}, {[]float64{2, 2, 2}, 2, 4},
	} {
		if got := makespan(c.durations, c.workers); got != c.want {
			t.Errorf("%v by %d: %v, want %v", c.durations, c.workers, got, c.want)
		}
	}
}

// The advised setting is planned exactly as Resolve plans it; the others' sizes are near what Resolve says. No file stays.
func TestTry(t *testing.T) {
	fanouts := [][]int{{10}, {25}, {10, 5}, {15, 10}}
	for _, c := range []struct {
		name string
		g    *testGraph
		p    func(p *format.BatchParams)
	}{
		{"plain", randomGraph(3000, 20000), nil},
		{"weighted, directed", func() *testGraph {
			g := randomGraph(2000, 12000)
			g.directed, g.weights = true, slices.Repeat([]float32{0.5, 2, 1}, len(g.edges)/3+1)[:len(g.edges)]
			return g
		}(), nil},
		{"no features", func() *testGraph { g := randomGraph(3000, 20000); g.features = 0; return g }(), nil},
		{"no labels", func() *testGraph { g := randomGraph(3000, 20000); g.labels, g.noSplits = "none", true; return g }(), nil},
		{"multilabel", func() *testGraph { g := randomGraph(3000, 20000); g.labels = "bits"; return g }(), nil},
		{"one edge", &testGraph{numNodes: 3, edges: [][2]int32{{0, 1}}, features: 2}, nil},
		{"no edges", &testGraph{numNodes: 5, features: 2}, nil},
		{"many small batches", randomGraph(3000, 20000), func(p *format.BatchParams) { p.BatchSize, p.BatchesPerFile = 16, 8 }},
		{"no evaluation", randomGraph(1000, 5000), func(p *format.BatchParams) { p.Eval = None }},
		{"full", randomGraph(1000, 5000), func(p *format.BatchParams) { p.Mode = ModeFull }},
	} {
		t.Run(c.name, func(t *testing.T) {
			snap, tmp := c.g.open(t), t.TempDir()
			p, _ := Policy(snap.NumNodes())
			if c.p != nil {
				c.p(&p)
			}
			others := fanouts
			if p.Mode == ModeFull {
				others = nil
			}
			trials, err := Try(context.Background(), snap, p, others, TrialOptions{Threads: 2, TmpDir: tmp, Seconds: 0.02})
			if err != nil {
				t.Fatal(err)
			}
			if want := max(1, len(others)); len(trials) != want {
				t.Fatalf("%d trials, want %d", len(trials), want)
			}
			for i, tr := range trials {
				asked := p
				asked.Fanout = tr.Params.Fanout
				settled, plan, err := Resolve(context.Background(), labelled(snap), asked, Options{})
				if err != nil {
					t.Fatal(err)
				}
				// Seeds are in the advised setting's order; another might have settled on the other one.
				sameOrder := settled.Order == tr.Params.Order
				if i == 0 && !sameParams(&settled, &tr.Params) {
					t.Errorf("settled %+v, want %+v", tr.Params, settled)
				}
				got, want := float64(tr.Plan.Bytes), float64(plan.Bytes)
				if near := math.Abs(got-want) / want; i == 0 && got != want || sameOrder && near > 0.1 || near > 0.3 {
					t.Errorf("%v: %v bytes, Resolve says %v", tr.Params.Fanout, got, want)
				}
				if tr.Plan.EvalBytes != plan.EvalBytes || tr.Plan.NumBatches != plan.NumBatches {
					t.Errorf("%v: %d bytes of evaluation, %d batches; want %d, %d", tr.Params.Fanout, tr.Plan.EvalBytes, tr.Plan.NumBatches, plan.EvalBytes, plan.NumBatches)
				}
				if !(tr.PlanSeconds > 0 && tr.CutSeconds > 0 && tr.Seconds >= tr.PlanSeconds+tr.CutSeconds && tr.Seconds < 60) || tr.TimedBatches < 1 || tr.TimedSeeds < 1 || tr.Workers < 1 {
					t.Errorf("%v: %+v", tr.Params.Fanout, tr)
				}
			}
			if left, _ := os.ReadDir(tmp); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestTryRefuses(t *testing.T) {
	g := randomGraph(100, 500)
	g.parts = [][]format.Part{make([]format.Part, 100)}
	p, _ := Policy(100)
	var fault *ParamError
	if _, err := Try(context.Background(), g.open(t), p, nil, TrialOptions{}); !errors.As(err, &fault) {
		t.Errorf("no train node: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	tmp := t.TempDir()
	if _, err := Try(ctx, randomGraph(100, 500).open(t), p, nil, TrialOptions{TmpDir: tmp}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// numMeasured is what measure does, for sizes of an even spread.
func TestNumMeasured(t *testing.T) {
	for _, c := range []struct {
		numBatches int
		spread     float64
		want       int
	}{
		{1, 0, 1}, {63, 0, 63}, {64, 0, 32}, {1000, 0, 32}, {1000, 0.07, 32 + 64}, {1000, 1, 32 + 64 + 128 + 256 + 1000},
	} {
		if got := sizesOfAll.numMeasured(c.numBatches, c.spread); got != c.want {
			t.Errorf("%d batches, spread %v: %d, want %d", c.numBatches, c.spread, got, c.want)
		}
	}
	snap := randomGraph(3000, 20000).open(t)
	s, err := prepare(context.Background(), snap, params(func(p *format.BatchParams) { p.BatchSize, p.Order = 4, sample.Random }), &Options{})
	if err != nil {
		t.Fatal(err)
	}
	built := 0
	plan, err := s.plan(context.Background(), Options{Progress: func(string, int64, int64) { built++ }}, sizesOfAll)
	if err != nil {
		t.Fatal(err)
	}
	if want := sizesOfAll.numMeasured(s.numBatches(), plan.spread); built < want/2 || built > 2*want {
		t.Errorf("%d batches built, about %d predicted", built, want)
	}
}
