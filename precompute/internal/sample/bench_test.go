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

// BenchmarkVariant draws all batches of 1,024 seeds of a variant, a twelfth of the nodes being seeds, on a graph of 1 M
// nodes and 10 M lines; one operation is one variant, whose draws of hubs are made in it.
func BenchmarkVariant(b *testing.B) {
	in, keys := skewedGraph(b, 20, 10_000_000)
	in.Weight = testWeights(in)
	seeds := RandomOrder(numbers(in.NumNodes()), keys, 1, 0)[:in.NumNodes()/12]
	for _, method := range []Method{Uniform, Weighted, Labor} {
		for _, fanout := range [][]int{{10, 5}, {15, 10}, {15, 10, 5}} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%v/fanout=%v/threads=%d", method, fanout, threads), func(b *testing.B) {
					opt := Options{Fanout: fanout, Method: method, Seed: 1}
					memo := NewMemo(in, opt)
					samplers := make([]*Sampler, threads)
					for t := range samplers {
						samplers[t] = NewSampler(in, keys, opt, memo)
					}
					edges, nodes := make([]int, threads), make([]int, threads)
					numBatches := len(seeds) / 1024
					variant := 0
					for b.Loop() {
						var wg sync.WaitGroup
						for t := range threads {
							wg.Go(func() {
								for i := t; i < numBatches; i += threads {
									batch := samplers[t].Sample(variant, seeds[i*1024:][:1024])
									edges[t] += batch.NumEdges()
									nodes[t] += len(batch.Nodes)
								}
							})
						}
						wg.Wait()
						variant++
					}
					numEdges, numNodes := edges[0], nodes[0]
					for t := 1; t < threads; t++ {
						numEdges, numNodes = numEdges+edges[t], numNodes+nodes[t]
					}
					b.ReportMetric(float64(numEdges)/b.Elapsed().Seconds()/1e6, "Medges/s")
					b.ReportMetric(float64(numEdges)/float64(b.N*numBatches), "edges/batch")
					b.ReportMetric(float64(numNodes)/float64(b.N*numBatches), "nodes/batch")
				})
			}
		}
	}
}

// BenchmarkNegatives draws 64 negatives of each of many edges.
func BenchmarkNegatives(b *testing.B) {
	in, keys := skewedGraph(b, 18, 2_000_000)
	edges, err := NewNonEdges(in, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, distinct := range []bool{false, true} {
		b.Run(fmt.Sprintf("distinct=%t", distinct), func(b *testing.B) {
			draw := NewNegatives(edges, keys, NegativeOptions{K: 64, Distinct: distinct, Seed: 1})
			var src, dst []int32
			total, e := 0, 0
			for b.Loop() {
				v := int32(graph.Hash(uint64(e)) % uint64(in.NumNodes()))
				if row := in.Row(v); len(row) > 0 {
					src, dst = draw.Append(src[:0], dst[:0], 0, row[e%len(row)], v)
					total += len(src)
				}
				e++
			}
			b.ReportMetric(float64(total)/b.Elapsed().Seconds()/1e6, "Mnegatives/s")
		})
	}
}

// BenchmarkPPR finds what comes with seeds, one operation a seed.
func BenchmarkPPR(b *testing.B) {
	in, keys := skewedGraph(b, 18, 2_000_000)
	seeds := RandomOrder(numbers(in.NumNodes()), keys, 1, 0)
	for _, epsilon := range []float64{1e-3, 1e-4} {
		b.Run(fmt.Sprintf("epsilon=%g", epsilon), func(b *testing.B) {
			p, err := NewPPR(in, keys, PPROptions{Epsilon: epsilon, HubCap: 500}, nil)
			if err != nil {
				b.Fatal(err)
			}
			i := 0
			for b.Loop() {
				p.NodeWise(seeds[i%len(seeds)])
				i++
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "seeds/s")
		})
	}
}

// BenchmarkInduce cuts subgraphs of random nodes.
func BenchmarkInduce(b *testing.B) {
	in, keys := skewedGraph(b, 18, 2_000_000)
	nodes := RandomOrder(numbers(in.NumNodes()), keys, 1, 0)
	for _, numNodes := range []int{2_000, 50_000} {
		b.Run(fmt.Sprintf("nodes=%d", numNodes), func(b *testing.B) {
			inducer := NewInducer(in, false)
			edges := 0
			for b.Loop() {
				edges += len(inducer.Induce(nodes[:100], nodes[100:numNodes]).Indices)
			}
			b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}

// testWeights are skewed weights, the same for both entries of a pair; one pair in eight has 0, some have equal ones.
func testWeights(in *graph.CSR) []float32 {
	weights := make([]float32, in.NumEntries())
	for v := range int32(in.NumNodes()) {
		for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
			u := in.Indices[e]
			h := graph.Hash(77, uint64(min(u, v)), uint64(max(u, v)))
			if h%8 > 0 {
				weights[e] = float32(h>>3%16+1) * float32(h>>7%4*(h>>9%4)+1)
			}
		}
	}
	return weights
}

func numbers(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}
