package graph

// CommunityOptions steer Communities. A zero field takes the default.
type CommunityOptions struct {
	MaxSize int // most nodes of a community: 4096 by default
	Rounds  int // passes over all nodes at most: 10 by default
}

func (o CommunityOptions) withDefaults() CommunityOptions {
	if o.MaxSize <= 0 {
		o.MaxSize = 4096
	}
	if o.Rounds <= 0 {
		o.Rounds = 10
	}
	return o
}

// Communities groups nodes that are joined by many entries, by label propagation with bounded sizes (Raghavan,
// Albert and Kumara, Phys. Rev. E 76, 2007; bounded as by Meyerhenke, Sanders and Schulz, SEA 2014). Every node
// begins with itself as its label. A round visits the nodes in the order given; v takes the label that most of
// its entries lead to, in in and (directed) out, self loops left out, among those with room: its own, and any
// of less than MaxSize nodes. Of equal ones it keeps its own, else takes the label met first in in.Row(v), then
// out.Row(v). Rounds end when one moves fewer than a thousandth of the nodes, or after Rounds.
//
// A label is the number of a node, not always of its own community. Communities lie within components. The
// visits build on one another, so this is serial, O(rounds * (N + E)) and 12 bytes a node; the result depends
// on the arguments alone.
func Communities(in, out *CSR, order []int32, opt CommunityOptions) []int32 {
	opt = opt.withDefaults()
	numNodes := in.NumNodes()
	labels, sizes, votes := make([]int32, numNodes), make([]int32, numNodes), make([]int32, numNodes)
	for v := range labels {
		labels[v], sizes[v] = int32(v), 1
	}
	var met []int32 // labels with votes, in the order met
	vote := func(row []int32, v int32) {
		for _, u := range row {
			if u == v {
				continue
			}
			k := labels[u]
			if votes[k] == 0 {
				met = append(met, k)
			}
			votes[k]++
		}
	}
	for range opt.Rounds {
		moved := 0
		for _, v := range order {
			met = met[:0]
			vote(in.Row(v), v)
			if out != nil {
				vote(out.Row(v), v)
			}
			own := labels[v]
			best := own
			for _, k := range met {
				if votes[k] > votes[best] && int(sizes[k]) < opt.MaxSize {
					best = k
				}
			}
			for _, k := range met {
				votes[k] = 0
			}
			if best != own {
				sizes[own]--
				sizes[best]++
				labels[v] = best
				moved++
			}
		}
		if 1000*moved < numNodes {
			break
		}
	}
	return labels
}

// CommunityOrder is BFSOrder with each community's nodes brought together: a community takes the place of its first
// node in bfs, and its nodes follow in the order of bfs. Components stay whole. O(N).
func CommunityOrder(bfs, communities []int32) []int32 {
	// next[k] is the place of the next node of community k.
	next := make([]int32, len(communities))
	for _, k := range communities {
		next[k]++
	}
	at := int32(0)
	placed := make([]bool, len(communities))
	for _, v := range bfs {
		if k := communities[v]; !placed[k] {
			placed[k] = true
			at, next[k] = at+next[k], at
		}
	}
	order := make([]int32, len(bfs))
	for _, v := range bfs {
		k := communities[v]
		order[next[k]] = v
		next[k]++
	}
	return order
}
