package graph

import (
	"cmp"
	"fmt"
	"slices"
)

// VerifyCommunities checks communities by going through the rule of Communities again with sets of nodes in
// place of counters, and that each lies within its component and holds at most MaxSize nodes. Slow: each visit
// counts its node's whole neighbourhood anew. labels are those of Components.
func VerifyCommunities(in, out *CSR, labels, order []int32, opt CommunityOptions, communities []int32) error {
	opt = opt.withDefaults()
	n := in.NumNodes()
	if len(communities) != n {
		return fmt.Errorf("%d communities for %d nodes", len(communities), n)
	}
	of := make([]int32, n)
	members := make([]map[int32]bool, n)
	for v := range of {
		of[v] = int32(v)
		members[v] = map[int32]bool{int32(v): true}
	}
	for round, moved := 0, n; round < opt.Rounds && (round == 0 || 1000*moved >= n); round++ {
		moved = 0
		for _, v := range order {
			neighbours := slices.Clone(in.Row(v))
			if out != nil {
				neighbours = append(neighbours, out.Row(v)...)
			}
			neighbours = slices.DeleteFunc(neighbours, func(u int32) bool { return u == v })
			votes := map[int32]int{}
			for _, u := range neighbours {
				votes[of[u]]++
			}
			best := of[v]
			for _, u := range neighbours {
				if k := of[u]; votes[k] > votes[best] && len(members[k]) < opt.MaxSize {
					best = k
				}
			}
			if best != of[v] {
				delete(members[of[v]], v)
				members[best][v] = true
				of[v] = best
				moved++
			}
		}
	}
	for v, k := range communities {
		if k != of[v] {
			return fmt.Errorf("node %d has community %d, want %d", v, k, of[v])
		}
		if labels[k] != labels[v] || len(members[k]) > opt.MaxSize {
			return fmt.Errorf("community %d of %d nodes holds node %d of component %d", k, len(members[k]), v, labels[v])
		}
	}
	return nil
}

// VerifyCommunityOrder checks that order is bfs sorted by the place where each node's community first comes in
// bfs, stably, with a comparison sort.
func VerifyCommunityOrder(bfs, communities, order []int32) error {
	first := map[int32]int{}
	for i, v := range bfs {
		if _, ok := first[communities[v]]; !ok {
			first[communities[v]] = i
		}
	}
	want := slices.Clone(bfs)
	slices.SortStableFunc(want, func(a, b int32) int { return cmp.Compare(first[communities[a]], first[communities[b]]) })
	for i, v := range want {
		if len(order) != len(want) || order[i] != v {
			return fmt.Errorf("place %d of %d of the community order is not node %d", i, len(order), v)
		}
	}
	return nil
}
