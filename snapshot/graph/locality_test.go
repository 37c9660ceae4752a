package graph

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// blockModel draws a graph of communities of near-equal size with numbers that say nothing of them; community
// gives each node's. Each of numPairs lines joins two nodes of one community with probability within, else any two.
func blockModel(numNodes, numCommunities, numPairs int, within float64, seed uint64) (x edges, community []int32) {
	rng := rand.New(rand.NewPCG(seed, 0))
	name := rng.Perm(numNodes)
	size := numNodes / numCommunities
	x.numNodes = numNodes
	for range numPairs {
		a := rng.IntN(numNodes)
		b := rng.IntN(numNodes)
		if rng.Float64() < within {
			first := min(a/size, numCommunities-1) * size
			b = first + rng.IntN(min(size, numNodes-first))
		}
		x.add(int32(name[a]), int32(name[b]))
	}
	community = make([]int32, numNodes)
	for i, v := range name {
		community[v] = int32(min(i/size, numCommunities-1))
	}
	return x, community
}

// rowsPerBatch cuts seeds in batches of 1024 and returns the mean number of distinct nodes a batch touches in two
// hops of 10 drawn neighbours (without replacement) each.
func rowsPerBatch(c *CSR, seeds []int32) float64 {
	rng := rand.New(rand.NewPCG(11, 12))
	total, batches := 0, 0
	seen := make([]int, c.NumNodes())
	for lo := 0; lo < len(seeds); lo += 1024 {
		batches++
		var nodes []int32
		add := func(v int32) {
			if seen[v] != batches {
				seen[v] = batches
				nodes = append(nodes, v)
			}
		}
		for _, v := range seeds[lo:min(lo+1024, len(seeds))] {
			add(v)
		}
		for range 2 {
			for _, v := range nodes[:len(nodes):len(nodes)] {
				row := c.Row(v)
				if len(row) <= 10 {
					for _, u := range row {
						add(u)
					}
					continue
				}
				for i, left := 0, 10; left > 0; i++ { // Knuth's selection sampling
					if rng.IntN(len(row)-i) < left {
						add(row[i])
						left--
					}
				}
			}
		}
		total += len(nodes)
	}
	return float64(total) / float64(max(batches, 1))
}

// BenchmarkCommunities measures what the community order adds to BFSOrder.
func BenchmarkCommunities(b *testing.B) {
	c := hopGraph()
	labels, sizes := Components(c, false, 0)
	bfs := BFSOrder(c, nil, labels, len(sizes))
	for b.Loop() {
		CommunityOrder(bfs, Communities(c, nil, bfs, CommunityOptions{}))
	}
	b.ReportMetric(float64(c.NumEntries())*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

// BenchmarkLocality compares orders of seeds by the rows their batches touch. "planted" sorts by the true
// communities.
func BenchmarkLocality(b *testing.B) {
	for _, within := range []float64{0.9, 0.7, 0.5} {
		for _, numCommunities := range []int{40, 400} {
			const numNodes = 100_000
			x, truth := blockModel(numNodes, numCommunities, 1_200_000, within, 1)
			g, err := Build(context.Background(), x.numNodes, x.src, x.dst, nil, Options{})
			if err != nil {
				b.Fatal(err)
			}
			labels, sizes := Components(&g.In, g.Out == nil, 0)
			bfs := BFSOrder(&g.In, nil, labels, len(sizes))
			planted := slices.Clone(bfs)
			slices.SortStableFunc(planted, func(a, b int32) int { return cmp.Compare(truth[a], truth[b]) })
			orders := []struct {
				name  string
				order func() []int32
			}{
				{"random", func() []int32 {
					o := slices.Clone(bfs)
					rand.New(rand.NewPCG(1, 2)).Shuffle(len(o), func(i, j int) { o[i], o[j] = o[j], o[i] })
					return o
				}},
				{"bfs", func() []int32 { return BFSOrder(&g.In, nil, labels, len(sizes)) }},
				{"community", func() []int32 { return CommunityOrder(bfs, Communities(&g.In, nil, bfs, CommunityOptions{})) }},
				{"planted", func() []int32 { return planted }},
			}
			for _, o := range orders {
				b.Run(fmt.Sprintf("within=%g/communities=%d/%s", within, numCommunities, o.name), func(b *testing.B) {
					var order []int32
					for b.Loop() {
						order = o.order()
					}
					b.ReportMetric(rowsPerBatch(&g.In, order), "rows-all")
					rng := rand.New(rand.NewPCG(5, 6))
					b.ReportMetric(rowsPerBatch(&g.In, slices.DeleteFunc(slices.Clone(order), func(int32) bool { return rng.IntN(10) > 0 })), "rows-tenth")
				})
			}
		}
	}
}
