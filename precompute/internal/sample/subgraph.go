package sample

import (
	"fmt"
	"slices"
	"sort"

	"github.com/prelift/prelift/snapshot/graph"
)

// Subgraph is what an Inducer returns: nodes, and all edges of the graph between them. Nodes are the seeds, then the
// others ascending by number. Row d of (Indptr, Indices) has the in-neighbours of node d that are in the subgraph, by place in Nodes,
// ascending by node number, then relation, without d itself. A block over all nodes, it serves any number of layers. Valid until the Inducer's next call.
type Subgraph struct {
	Nodes    []int32
	NumSeeds int
	Indptr   []int64
	Indices  []int32
	// Importance [nodes] is neighbours in the graph over those in the subgraph; 1 where all or none are. With it, mean aggregation
	// is the mean over the neighbours that are there (Chiang et al., "Cluster-GCN", KDD 2019, normalise alike). The subgraph
	// wasn't drawn with known chances, so a batch stays biased.
	Importance []float32
	Entries    []int64 // place of each edge in the graph's in-rows; nil unless the Inducer keeps them
}

// Inducer cuts induced subgraphs from the in-rows of a graph. Scratch is 4 bytes and a bit for each node of the graph. Not safe for concurrent use; give each
// worker its own.
type Inducer struct {
	in          *graph.CSR
	keepEntries bool
	nodes       placeTable
	sorted      []int32
	out         Subgraph
}

// NewInducer makes an Inducer.
func NewInducer(in *graph.CSR, keepEntries bool) *Inducer {
	return &Inducer{in: in, keepEntries: keepEntries, nodes: newPlaceTable(in.NumNodes())}
}

// Induce returns the subgraph of the seeds, which must be distinct, in their order, and of others, which may repeat and be seeds.
//
//	for d, v in Nodes: row d = the places of the u in in.Row(v) that are in Nodes, u not v
//
// A row costs its degree, or, where that is much more than the nodes of the subgraph, a search for each of those.
func (n *Inducer) Induce(seeds, others []int32) *Subgraph {
	g, t := &n.out, &n.nodes
	t.forget(g.Nodes)
	g.Nodes = t.number(g.Nodes[:0], seeds)
	g.NumSeeds = len(seeds)
	t.add(others)
	g.Nodes = t.numberAdded(g.Nodes)
	n.sorted = mergeSorted(n.sorted[:0], g.Nodes[:g.NumSeeds], g.Nodes[g.NumSeeds:])

	g.Indptr, g.Importance = resize(g.Indptr, len(g.Nodes)+1), resize(g.Importance, len(g.Nodes))
	g.Indices, g.Entries = g.Indices[:0], g.Entries[:0]
	g.Indptr[0] = 0
	for d, v := range g.Nodes {
		row := n.in.Row(v)
		if len(row)>>6 > len(n.sorted) {
			n.searchRow(v, row)
		} else {
			n.scanRow(v, row)
		}
		g.Indptr[d+1] = int64(len(g.Indices))
		g.Importance[d] = 1
		if present := len(g.Indices) - int(g.Indptr[d]); present > 0 {
			_, loops := loopsOf(n.in, v)
			g.Importance[d] = float32(float64(len(row)-loops) / float64(present))
		}
	}
	return g
}

// scanRow appends the edges of v's row that are in the subgraph, by looking at each.
func (n *Inducer) scanRow(v int32, row []int32) {
	g, t := &n.out, &n.nodes
	g.Indices = slices.Grow(g.Indices, len(row)+1)
	to := g.Indices[len(g.Indices) : len(g.Indices)+len(row)+1]
	inside := 0
	for _, u := range row { // without a branch on what is hard to foresee
		to[inside] = t.place[u]
		inside += int(t.inBatch[u>>6] >> (u & 63) & 1)
		if u == v {
			inside--
		}
	}
	g.Indices = g.Indices[:len(g.Indices)+inside]
	if n.keepEntries && inside > 0 {
		for at, u := range row {
			if u != v && t.has(u) {
				g.Entries = append(g.Entries, n.in.Indptr[v]+int64(at))
			}
		}
	}
}

// searchRow is scanRow by a search for each node of the subgraph.
func (n *Inducer) searchRow(v int32, row []int32) {
	g, t := &n.out, &n.nodes
	at := 0
	for _, u := range n.sorted {
		if u == v {
			continue
		}
		at += firstFrom(row[at:], u)
		for ; at < len(row) && row[at] == u; at++ {
			g.Indices = append(g.Indices, t.place[u])
			if n.keepEntries {
				g.Entries = append(g.Entries, n.in.Indptr[v]+int64(at))
			}
		}
	}
}

// firstFrom returns the first place of an ascending row whose node is u or more, by galloping: O(log of that place).
func firstFrom(row []int32, u int32) int {
	if len(row) == 0 || row[0] >= u {
		return 0
	}
	step := 1
	for step < len(row) && row[step] < u {
		step *= 2
	}
	lo := step/2 + 1
	return lo + sort.Search(min(step, len(row))-lo, func(i int) bool { return row[lo+i] >= u })
}

// loopsOf returns the place of the first entry of v's row that leads to v, and how many do.
func loopsOf(in *graph.CSR, v int32) (first, n int) {
	row := in.Row(v)
	entry, ok := in.Loop(v)
	first = int(entry - in.Indptr[v])
	for ok && first+n < len(row) && row[first+n] == v {
		n++
	}
	return first, n
}

// mergeSorted appends to dst all of a, in whatever order, and b, ascending, ascending.
func mergeSorted(dst, a, b []int32) []int32 {
	start := len(dst)
	dst = append(dst, a...)
	slices.Sort(dst[start:])
	dst = append(dst, b...)
	// Merge from the end on: b is in its place's copy, a is before it.
	i, j := start+len(a)-1, len(b)-1
	for to := len(dst) - 1; j >= 0; to-- {
		if i >= start && dst[i] > b[j] {
			dst[to] = dst[i]
			i--
		} else {
			dst[to] = b[j]
			j--
		}
	}
	return dst
}

// nodeSet is a set of nodes in a bitmap.
type nodeSet []uint64

func newNodeSet(numNodes int) nodeSet { return make(nodeSet, (numNodes+63)/64) }

func (s nodeSet) add(v int32)      { s[v>>6] |= 1 << (v & 63) }
func (s nodeSet) has(v int32) bool { return s[v>>6]>>(v&63)&1 == 1 }

// checkKeys panics where there isn't a key for each node.
func checkKeys(in *graph.CSR, keys []uint64) {
	if len(keys) != in.NumNodes() {
		panic(fmt.Sprintf("sample: %d keys for %d nodes", len(keys), in.NumNodes()))
	}
}
