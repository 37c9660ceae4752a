package graph

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCommunities(t *testing.T) {
	forShapes(t, func(t *testing.T, _ *rand.Rand, x edges, directed bool) {
		g := mustBuild(t, x, directed)
		labels, sizes := Components(&g.In, g.Out == nil, 1)
		bfs := BFSOrder(&g.In, g.Out, labels, len(sizes))
		for _, opt := range []CommunityOptions{{}, {MaxSize: 1}, {MaxSize: 7}, {MaxSize: 20, Rounds: 2}} {
			communities := Communities(&g.In, g.Out, bfs, opt)
			if err := VerifyCommunities(&g.In, g.Out, labels, bfs, opt, communities); err != nil {
				t.Fatalf("%+v: %v", opt, err)
			}
			order := CommunityOrder(bfs, communities)
			if err := VerifyCommunityOrder(bfs, communities, order); err != nil {
				t.Fatalf("%+v: %v", opt, err)
			}
			for i := 1; i < len(order); i++ {
				if labels[order[i]] < labels[order[i-1]] {
					t.Fatalf("%+v: components are mixed", opt)
				}
			}
		}
	})
}

// Planted communities are found, and batches cut from them touch far fewer rows.
func TestCommunityLocality(t *testing.T) {
	x, truth := blockModel(20_000, 80, 240_000, 0.9, 1)
	g := mustBuild(t, x, false)
	labels, sizes := Components(&g.In, g.Out == nil, 0)
	bfs := BFSOrder(&g.In, nil, labels, len(sizes))
	communities := Communities(&g.In, nil, bfs, CommunityOptions{})
	if err := VerifyCommunities(&g.In, nil, labels, bfs, CommunityOptions{}, communities); err != nil {
		t.Fatal(err)
	}
	agree, pairs := 0, 0
	for v := range int32(x.numNodes) {
		for _, u := range g.In.Row(v) {
			pairs++
			if (truth[u] == truth[v]) == (communities[u] == communities[v]) {
				agree++
			}
		}
	}
	if float64(agree) < 0.95*float64(pairs) {
		t.Errorf("%d of %d edges are seen as they were planted", agree, pairs)
	}
	random := slices.Clone(bfs)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(random), func(i, j int) { random[i], random[j] = random[j], random[i] })
	a, b, c := rowsPerBatch(&g.In, random), rowsPerBatch(&g.In, bfs), rowsPerBatch(&g.In, CommunityOrder(bfs, communities))
	t.Logf("rows a batch: random %.0f, bfs %.0f, community %.0f", a, b, c)
	if c > 0.7*a || c > b {
		t.Errorf("rows a batch: random %.0f, bfs %.0f, community %.0f", a, b, c)
	}
}

func TestVerifyCommunitiesFaults(t *testing.T) {
	// Two triangles joined by 2-3, and a pair apart.
	g := mustBuild(t, edges{numNodes: 8, src: []int32{0, 1, 2, 3, 4, 5, 2, 6}, dst: []int32{1, 2, 0, 4, 5, 3, 3, 7}}, false)
	labels, sizes := Components(&g.In, g.Out == nil, 1)
	bfs := BFSOrder(&g.In, nil, labels, len(sizes))
	communities := Communities(&g.In, nil, bfs, CommunityOptions{})
	for v := range communities {
		wrong := slices.Clone(communities)
		wrong[v] = (wrong[v] + 1) % 8
		if VerifyCommunities(&g.In, nil, labels, bfs, CommunityOptions{}, wrong) == nil {
			t.Errorf("another community of %d passes", v)
		}
	}
	order := CommunityOrder(bfs, communities)
	order[0], order[1] = order[1], order[0]
	if VerifyCommunityOrder(bfs, communities, order) == nil || VerifyCommunityOrder(bfs, communities, order[:7]) == nil {
		t.Error("another order passes")
	}
}
