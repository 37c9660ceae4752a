package graph

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchEdges draws numEdges uniform edges over a tenth as many nodes.
func benchEdges(numEdges int) (numNodes int, src, dst []int32) {
	rng := rand.New(rand.NewPCG(1, 2))
	numNodes = max(numEdges/10, 2)
	src, dst = make([]int32, numEdges), make([]int32, numEdges)
	for i := range src {
		src[i], dst[i] = rng.Int32N(int32(numNodes)), rng.Int32N(int32(numNodes))
	}
	return numNodes, src, dst
}

// BenchmarkBuild counts edges given, not entries. Memory is warm from the second iteration on.
func BenchmarkBuild(b *testing.B) {
	for _, numEdges := range []int{1_000_000, 20_000_000} {
		numNodes, src, dst := benchEdges(numEdges)
		weight := make([]float32, numEdges)
		for i := range weight {
			weight[i] = float32(i%7) + 0.1
		}
		for _, kind := range []string{"undirected", "directed", "weighted"} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/edges=%d/threads=%d", kind, numEdges, threads), func(b *testing.B) {
					w := weight
					if kind != "weighted" {
						w = nil
					}
					for b.Loop() {
						if _, err := Build(b.Context(), numNodes, src, dst, w, Options{Directed: kind == "directed", Threads: threads}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(numEdges)*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
				})
			}
		}
	}
}

// BenchmarkSteps measures what follows Build, in edges of the undirected graph a second.
func BenchmarkSteps(b *testing.B) {
	const numEdges = 1_000_000
	numNodes, src, dst := benchEdges(numEdges)
	g, err := Build(b.Context(), numNodes, src, dst, nil, Options{})
	if err != nil {
		b.Fatal(err)
	}
	labels, sizes := Components(&g.In, g.Out == nil, 0)
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"Components/threads=1", func() { Components(&g.In, g.Out == nil, 1) }},
		{"Components/threads=2", func() { Components(&g.In, g.Out == nil, 2) }},
		{"GCN", func() { GCN(&g.In, 1, nil) }},
		{"BFSOrder", func() { BFSOrder(&g.In, nil, labels, len(sizes)) }},
		{"Transpose", func() { Transpose(numNodes, numNodes, g.In.Indptr, g.In.Indices) }},
		{"VerifyGraph", func() { VerifyGraph(g) }},
	} {
		b.Run(step.name, func(b *testing.B) {
			for b.Loop() {
				step.run()
			}
			b.ReportMetric(float64(g.Audit.NumEdges)*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
		})
	}
}
