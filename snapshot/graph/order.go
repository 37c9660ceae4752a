package graph

import "slices"

// BFSOrder returns the nodes in a locality order for cutting batches: order[i] is the node at
// place i. Components come in the order of their labels (as Components gives them), each whole. A
// component starts at its node of lowest degree, then goes breadth first; the neighbours met first
// from one node follow in order of degree. Ties go to the smaller number (Cuthill and McKee,
// "Reducing the bandwidth of sparse symmetric matrices", 1969; not reversed).
//
// in has the in-rows; out the out-rows of a directed graph, nil for an undirected one. Degree is the
// number of entries in both, self loops left out; so of rows with relations a neighbour counts once for each, and
// CSR.Simple gives the order by neighbours. Iterative; O(N log N + E).
func BFSOrder(in, out *CSR, labels []int32, numComponents int) []int32 {
	numNodes := in.NumNodes()
	degrees := orderDegrees(in, out)
	start := make([]int32, numComponents)
	for k := range start {
		start[k] = -1
	}
	for v, k := range labels {
		if start[k] < 0 || degrees[v] < degrees[start[k]] {
			start[k] = int32(v)
		}
	}

	order := make([]int32, 0, numNodes)
	seen := make([]bool, numNodes)
	var met []uint64 // degree above node number
	meet := func(row []int32) {
		for _, u := range row {
			if !seen[u] {
				seen[u] = true
				met = append(met, uint64(degrees[u])<<32|uint64(u))
			}
		}
	}
	for head, k := 0, 0; k < numComponents; k++ {
		if start[k] < 0 {
			continue // a label without nodes
		}
		seen[start[k]] = true
		order = append(order, start[k])
		for ; head < len(order); head++ {
			met = met[:0]
			meet(in.Row(order[head]))
			if out != nil {
				meet(out.Row(order[head]))
			}
			slices.Sort(met)
			for _, m := range met {
				order = append(order, int32(uint32(m)))
			}
		}
	}
	return order
}

// orderDegrees returns BFSOrder's degree of every node; two rows fit uint32.
func orderDegrees(in, out *CSR) []uint32 {
	degrees := make([]uint32, in.NumNodes())
	for v := range degrees {
		d := in.neighbours(int32(v))
		if out != nil {
			d += out.neighbours(int32(v))
		}
		degrees[v] = uint32(d)
	}
	return degrees
}

// Inverse returns the inverse of a permutation of 0..len-1: Inverse(order)[v] is the place of v.
func Inverse(order []int32) []int32 {
	place := make([]int32, len(order))
	for i, v := range order {
		place[v] = int32(i)
	}
	return place
}
