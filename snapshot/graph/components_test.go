package graph

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// slowComponents spreads the smallest label until nothing changes.
func slowComponents(x edges) (labels []int32, sizes []int64) {
	smallest := make([]int32, x.numNodes)
	for v := range smallest {
		smallest[v] = int32(v)
	}
	for changed := true; changed; {
		changed = false
		for i := range x.src {
			a, b := &smallest[x.src[i]], &smallest[x.dst[i]]
			if *a != *b {
				*a = min(*a, *b)
				*b = *a
				changed = true
			}
		}
	}
	labels = make([]int32, x.numNodes)
	number := map[int32]int32{}
	for v, s := range smallest {
		if _, ok := number[s]; !ok {
			number[s] = int32(len(sizes))
			sizes = append(sizes, 0)
		}
		labels[v] = number[s]
		sizes[labels[v]]++
	}
	return labels, sizes
}

func TestComponents(t *testing.T) {
	forShapes(t, func(t *testing.T, _ *rand.Rand, x edges, directed bool) {
		g := mustBuild(t, x, directed)
		wantLabels, wantSizes := slowComponents(x)
		for _, threads := range []int{1, 2, 8} {
			labels, sizes := Components(&g.In, g.Out == nil, threads)
			if !slices.Equal(labels, wantLabels) || !slices.Equal(sizes, wantSizes) {
				t.Fatalf("%d threads: got %v %v, want %v %v", threads, labels, sizes, wantLabels, wantSizes)
			}
			if err := VerifyComponents(&g.In, labels, sizes); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Two leaves of one source, and one sink, hold together whichever way arcs point (scipy/scipy#9861).
func TestComponentsDirection(t *testing.T) {
	for _, src := range [][]int32{{0, 0, 3, 5}, {5, 3, 0, 0}} {
		dst := []int32{1, 2, 4, 4}
		if src[0] == 5 {
			slices.Reverse(dst)
		}
		g := mustBuild(t, edges{numNodes: 6, src: src, dst: dst}, true)
		labels, sizes := Components(&g.In, g.Out == nil, 0)
		if !reflect.DeepEqual(labels, []int32{0, 0, 0, 1, 1, 1}) || !reflect.DeepEqual(sizes, []int64{3, 3}) {
			t.Errorf("got %v %v", labels, sizes)
		}
	}
}

// Many threads on one large component: joins meet at the same roots.
func TestComponentsContended(t *testing.T) {
	numNodes, src, dst := benchEdges(300_000)
	g := mustBuild(t, edges{numNodes: numNodes, src: src, dst: dst}, false)
	want, wantSizes := Components(&g.In, g.Out == nil, 1)
	if err := VerifyComponents(&g.In, want, wantSizes); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		labels, sizes := Components(&g.In, g.Out == nil, 8)
		if !slices.Equal(labels, want) || !slices.Equal(sizes, wantSizes) {
			t.Fatal("8 threads differ from one")
		}
	}
}

func TestVerifyComponentsFaults(t *testing.T) {
	// 0-1, 2-3, 4
	g := mustBuild(t, edges{numNodes: 5, src: []int32{0, 2}, dst: []int32{1, 3}}, true)
	for _, tc := range []struct {
		name   string
		labels []int32
		sizes  []int64
	}{
		{"short", []int32{0, 0, 1, 1}, []int64{2, 2}},
		{"split", []int32{0, 1, 2, 2, 3}, []int64{1, 1, 2, 1}},
		{"joined", []int32{0, 0, 0, 0, 1}, []int64{4, 1}},
		{"numbered in another order", []int32{1, 1, 0, 0, 2}, []int64{2, 2, 1}},
		{"sizes", []int32{0, 0, 1, 1, 2}, []int64{2, 1, 2}},
		{"a label without nodes", []int32{0, 0, 1, 1, 2}, []int64{2, 2, 1, 0}},
		{"a negative label", []int32{0, 0, 1, 1, -1}, []int64{2, 2, 1}},
	} {
		if VerifyComponents(&g.In, tc.labels, tc.sizes) == nil {
			t.Errorf("%s: passes", tc.name)
		}
	}
}
