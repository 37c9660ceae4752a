package sample

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/prelift/prelift/snapshot/graph"
)

// skewedGraph is a graph of 2^scale nodes and numEdges lines whose ends are drawn as in
// R-MAT (Chakrabarti, Zhan and Faloutsos, SDM 2004) with a, b, c = 0.57, 0.19, 0.19.
func skewedGraph(tb testing.TB, scale uint, numEdges int) (*graph.CSR, []uint64) {
	tb.Helper()
	src, dst := make([]int32, numEdges), make([]int32, numEdges)
	for i := range src {
		var u, v uint64
		for level := range uint64(scale) {
			x := graph.Hash(uint64(i), level) >> 32
			u, v = u<<1, v<<1
			switch {
			case x < 57<<32/100:
			case x < 76<<32/100:
				v |= 1
			case x < 95<<32/100:
				u |= 1
			default:
				u, v = u|1, v|1
			}
		}
		src[i], dst[i] = int32(u), int32(v)
	}
	g, err := graph.Build(context.Background(), 1<<scale, src, dst, nil, graph.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return &g.In, testKeys(1 << scale)
}

// testKeys stands for the keys of n external ids.
func testKeys(n int) []uint64 {
	keys := make([]uint64, n)
	for v := range keys {
		keys[v] = graph.Hash(99, uint64(v))
	}
	return keys
}

// BenchmarkFanout draws batches of 1,024 seeds on a graph of 1 M nodes and 10 M lines;
// one operation is one batch on each thread.
func BenchmarkFanout(b *testing.B) {
	in, keys := skewedGraph(b, 20, 10_000_000)
	seeds := RandomOrder(numbers(in.NumNodes()), keys, 1, 0)[:in.NumNodes()/12]
	for _, fanout := range [][]int{{10, 5}, {15, 10}, {15, 10, 5}} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("fanout=%v/threads=%d", fanout, threads), func(b *testing.B) {
				opt := Options{Fanout: fanout, Seed: 1}
				memo := NewMemo(in, opt)
				samplers := make([]*Sampler, threads)
				for t := range samplers {
					samplers[t] = NewSampler(in, keys, opt, memo)
				}
				edges := make([]int, threads)
				numBatches := len(seeds) / 1024
				b.ResetTimer()
				var wg sync.WaitGroup
				for t := range threads {
					wg.Go(func() {
						for i := range b.N {
							at := (i*threads + t) % numBatches * 1024
							edges[t] += samplers[t].Sample(0, seeds[at:at+1024]).NumEdges()
						}
					})
				}
				wg.Wait()
				total := 0
				for _, n := range edges {
					total += n
				}
				b.ReportMetric(float64(total)/b.Elapsed().Seconds()/1e6, "Medges/s")
				b.ReportMetric(float64(total)/float64(b.N*threads), "edges/batch")
			})
		}
	}
}

func numbers(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}
