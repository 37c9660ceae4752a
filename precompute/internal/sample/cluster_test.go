package sample

import (
	"slices"
	"testing"

	"github.com/prelift/prelift/snapshot/graph"
)

func TestCutClusters(t *testing.T) {
	for _, c := range []struct {
		name       string
		components []int // sizes, in order
		size       int
		want       []int32
	}{
		{"none", nil, 3, []int32{0}},
		{"one node", []int{1}, 3, []int32{0, 1}},
		{"small share", []int{1, 1, 1, 1, 2}, 3, []int32{0, 3, 6}},
		{"just fits", []int{2, 1, 3, 1}, 3, []int32{0, 3, 6, 7}},
		{"large alone", []int{1, 7, 1, 1}, 3, []int32{0, 1, 3, 5, 8, 10}},
		{"even parts", []int{10}, 4, []int32{0, 3, 6, 10}},
		{"exact parts", []int{8, 1}, 4, []int32{0, 4, 8, 9}},
		{"all alone", []int{2, 2}, 1, []int32{0, 1, 2, 3, 4}},
		{"all in one", []int{2, 5, 1}, 100, []int32{0, 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var component []int32
			for k, n := range c.components {
				for range n {
					component = append(component, int32(len(c.components)-k)) // any names
				}
			}
			if got := CutClusters(numbers(len(component)), component, c.size).Starts; !slices.Equal(got, c.want) {
				t.Errorf("clusters start at %v, want %v", got, c.want)
			}
		})
	}
}

// TestClusters: clusters tile the order, are within size, and those of one component only differ by a node at most; every seed is in exactly
// one batch of each variant, no batch is without one, and a batch has whole clusters.
func TestClusters(t *testing.T) {
	for trial := range 200 {
		draw := func(what, n uint64) int { return int(graph.Hash(uint64(trial), what) % n) }
		n := 1 + draw(1, 200)
		order, component := numbers(n), make([]int32, n)
		slices.Reverse(order)
		for i := 1; i < n; i++ {
			component[order[i]] = component[order[i-1]]
			if draw(100+uint64(i), uint64(1+draw(2, 30))) == 0 {
				component[order[i]]++
			}
		}
		size := 1 + draw(3, 20)
		clusters := CutClusters(order, component, size)
		for i := range int32(clusters.Len()) {
			nodes := clusters.Cluster(i)
			if len(nodes) == 0 || len(nodes) > size {
				t.Fatalf("trial %d: a cluster of %d nodes, size %d", trial, len(nodes), size)
			}
			first, last := component[nodes[0]], component[nodes[len(nodes)-1]]
			if first == last {
				continue
			}
			for _, v := range order { // whole components only
				if k := component[v]; k >= first && k <= last && !slices.Contains(nodes, v) {
					t.Fatalf("trial %d: node %d of component %d isn't with %v", trial, v, k, nodes)
				}
			}
		}
		var seeds []int32
		for v := range int32(n) {
			if draw(1000+uint64(v), 4) == 0 {
				seeds = append(seeds, v)
			}
		}
		o := NewClusterOrder(clusters, seeds, testKeys(n), 1+draw(4, 5), int64(trial))
		var first []int32
		for variant := range 3 {
			order := o.Variant(variant)
			if variant == 0 {
				first = order
			} else if len(order) > 8 && slices.Equal(order, first) {
				t.Errorf("trial %d: variant %d is variant 0", trial, variant)
			}
			var all []int32
			for i := range o.NumBatches() {
				got, others := o.Batch(order, i, nil, nil)
				if len(got) == 0 || !slices.IsSorted(got) {
					t.Fatalf("trial %d: batch %d has the seeds %v", trial, i, got)
				}
				for _, v := range others {
					if slices.Contains(seeds, v) {
						t.Fatalf("trial %d: seed %d is among the others", trial, v)
					}
				}
				nodes := append(slices.Clone(got), others...)
				for c := range int32(clusters.Len()) {
					in := 0
					for _, v := range clusters.Cluster(c) {
						if slices.Contains(nodes, v) {
							in++
						}
					}
					if in != 0 && in != len(clusters.Cluster(c)) {
						t.Fatalf("trial %d: a part of cluster %d is in batch %d", trial, c, i)
					}
				}
				all = append(all, got...)
			}
			slices.Sort(all)
			if !slices.Equal(all, seeds) {
				t.Fatalf("trial %d, variant %d has the seeds %v, want %v", trial, variant, all, seeds)
			}
		}
	}
}
