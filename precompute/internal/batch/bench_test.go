package batch

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
)

// skewed is a graph of 2^scale nodes and numEdges lines drawn as in R-MAT, with 100
// features and 8 % of the nodes train.
func skewed(scale uint, numEdges int) *testGraph {
	n := 1 << scale
	g := &testGraph{numNodes: n, edges: make([][2]int32, numEdges), features: 100, parts: [][]format.Part{make([]format.Part, n)}}
	for i := range g.edges {
		var ends [2]int32
		for level := range int(scale) {
			x := sample.Draw(1, i, level, 2, 3) >> 32
			ends[0], ends[1] = ends[0]<<1, ends[1]<<1
			switch {
			case x < 57<<32/100:
			case x < 76<<32/100:
				ends[1] |= 1
			case x < 95<<32/100:
				ends[0] |= 1
			default:
				ends[0], ends[1] = ends[0]|1, ends[1]|1
			}
		}
		g.edges[i] = ends
	}
	for v := range n {
		if sample.Draw(1, 0, 0, 0, uint64(v))%100 < 8 {
			g.parts[0][v] = format.PartTrain
		}
	}
	return g
}

// BenchmarkWrite writes one variant of batches of 1,024 seeds, without evaluation blocks, on a graph of
// 1 M nodes and 10 M lines; files are in memory where /dev/shm is there. Sampling,
// assembling, CRCs, the self-check and SHA-256 are all in it.
func BenchmarkWrite(b *testing.B) {
	snap := skewed(20, 10_000_000).open(b)
	for _, fanout := range [][]int{{15, 10}, {15, 10, 5}} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("fanout=%v/threads=%d", fanout, threads), func(b *testing.B) {
				p, plan, err := Resolve(context.Background(), snap, params(func(p *format.BatchParams) {
					p.Fanout, p.Variants, p.Eval, p.Store, p.Order, p.LinkFeatures = fanout, 1, None, StoreIDs, sample.Random, None
					p.BatchesPerFile = 16 // so that two threads have enough files
				}), Options{})
				if err != nil {
					b.Fatal(err)
				}
				var m *format.BatchSet
				for i := 0; b.Loop(); i++ {
					m = write(b, filepath.Join(b.TempDir(), fmt.Sprint(i)), snap, p, Options{Threads: threads, Plan: plan})
				}
				b.ReportMetric(float64(m.NumSampledEdges)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
				b.ReportMetric(float64(m.Bytes)/float64(m.NumSampledEdges), "bytes/edge")
				b.ReportMetric(float64(m.BytesPerVariant)/float64(m.FeatureTableBytes), "amplification")
				b.ReportMetric(float64(plan.Bytes)/float64(m.Bytes), "planned/written")
			})
		}
	}
}
