package graph

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// slowOrder is Cuthill-McKee with a queue and a sort of whole neighbour lists.
func slowOrder(in, out *CSR, labels []int32, numComponents int) []int32 {
	neighbours := make([][]int32, in.NumNodes())
	degrees := make([]int, in.NumNodes())
	for v := range neighbours {
		all := slices.Clone(in.Row(int32(v)))
		if out != nil {
			all = append(all, out.Row(int32(v))...)
		}
		neighbours[v] = slices.DeleteFunc(all, func(u int32) bool { return int(u) == v })
		degrees[v] = len(neighbours[v])
	}
	byDegree := func(a, b int32) int {
		return cmp.Or(cmp.Compare(degrees[a], degrees[b]), cmp.Compare(a, b))
	}
	var order []int32
	placed := map[int32]bool{}
	for k := range int32(numComponents) {
		var nodes []int32
		for v, l := range labels {
			if l == k {
				nodes = append(nodes, int32(v))
			}
		}
		queue := []int32{slices.MinFunc(nodes, byDegree)}
		for len(queue) > 0 {
			v := queue[0]
			queue = queue[1:]
			if placed[v] {
				continue
			}
			placed[v] = true
			order = append(order, v)
			slices.SortFunc(neighbours[v], byDegree)
			queue = append(queue, neighbours[v]...)
		}
	}
	return order
}

func TestBFSOrder(t *testing.T) {
	forShapes(t, func(t *testing.T, _ *rand.Rand, x edges, directed bool) {
		g := mustBuild(t, x, directed)
		labels, sizes := Components(&g.In, g.Out == nil, 1)
		got := BFSOrder(&g.In, g.Out, labels, len(sizes))
		if want := slowOrder(&g.In, g.Out, labels, len(sizes)); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if err := VerifyOrder(&g.In, g.Out, labels, got); err != nil {
			t.Fatal(err)
		}
		for v, i := range Inverse(got) {
			if int(got[i]) != v {
				t.Fatalf("place of %d is %d, which holds %d", v, i, got[i])
			}
		}
	})
}

func TestVerifyOrderFaults(t *testing.T) {
	// 0-1-2, 1-4, 1-0 and 3-5; degrees 1 3 1 1 1 1.
	g := mustBuild(t, edges{numNodes: 6, src: []int32{0, 1, 1, 3}, dst: []int32{1, 2, 4, 5}}, false)
	labels, _ := Components(&g.In, g.Out == nil, 1)
	if err := VerifyOrder(&g.In, nil, labels, []int32{0, 1, 2, 4, 3, 5}); err != nil {
		t.Fatal(err)
	}
	for name, order := range map[string][]int32{
		"short":              {0, 1, 2, 4, 3},
		"twice":              {0, 1, 2, 4, 3, 3},
		"out of range":       {0, 1, 2, 4, 3, 6},
		"other start":        {2, 1, 0, 4, 3, 5},
		"start of degree 3":  {1, 0, 2, 4, 3, 5},
		"ties":               {0, 1, 4, 2, 3, 5},
		"not connected":      {0, 2, 1, 4, 3, 5},
		"components swapped": {3, 5, 0, 1, 2, 4},
		"components mixed":   {0, 1, 2, 3, 5, 4},
	} {
		if VerifyOrder(&g.In, nil, labels, order) == nil {
			t.Errorf("%s: passes", name)
		}
	}
}
