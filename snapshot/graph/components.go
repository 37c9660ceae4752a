package graph

import "sync/atomic"

// Components labels the weakly connected components: an entry joins both of its ends whichever
// way it points, so the in-rows of a directed graph are enough. Components are numbered 0, 1, ..
// in order of their smallest node. labels has len NumNodes; sizes[k] is the number of nodes of
// component k. A node without neighbours is a component of its own.
//
// Union-find with path halving; a root always links to a smaller one, by compare-and-swap, so
// threads may join at once and the root ends as the smallest node of its component whatever the
// schedule (Jayanti and Tarjan, "A randomized concurrent algorithm for disjoint set union",
// PODC 2016). symmetric says that every entry is there in both directions: then, once the first entries of each row have joined most of
// the graph, the rows of its largest part needn't be looked at (Sutton, Ben-Nun and Barak, "Optimizing Parallel Graph
// Connectivity Computation via Subgraph Sampling", IPDPS 2018), since what joins it to another part is in a row of that, too.
// threads 0 means GOMAXPROCS; the result does not depend on it.
func Components(c *CSR, symmetric bool, threads int) (labels []int32, sizes []int64) {
	numNodes := c.NumNodes()
	threads = numThreads(threads)
	parent := make([]int32, numNodes)
	for v := range parent {
		parent[v] = int32(v)
	}
	bounds := rowParts(c.Indptr, threads)
	eachRow := func(f func(v int32, row []int32)) {
		inParallel(threads, func(t int) {
			for v := int32(bounds[t]); v < int32(bounds[t+1]); v++ {
				f(v, c.Row(v))
			}
		})
	}
	joinAll := func(v int32, row []int32) {
		for _, u := range row {
			join(parent, u, v)
		}
	}
	if symmetric {
		eachRow(func(v int32, row []int32) { joinAll(v, row[:min(len(row), firstEntries)]) })
		largest := frequentRoot(parent)
		eachRow(func(v int32, row []int32) {
			if len(row) > firstEntries && find(parent, v) != find(parent, largest) {
				joinAll(v, row[firstEntries:])
			}
		})
	} else {
		eachRow(joinAll)
	}

	labels = make([]int32, numNodes)
	for v := range labels {
		root := find(parent, int32(v))
		if int(root) == v {
			labels[v] = int32(len(sizes))
			sizes = append(sizes, 0)
		} else {
			labels[v] = labels[root] // root < v
		}
		sizes[labels[v]]++
	}
	return labels, sizes
}

// firstEntries is how many entries of each row are joined before the largest part is known.
const firstEntries = 2

// frequentRoot returns the root that most of a sample of the nodes have.
func frequentRoot(parent []int32) int32 {
	const sample = 1024
	count := map[int32]int{}
	most := int32(0)
	for i := 0; i < len(parent); i += len(parent)/sample + 1 {
		root := find(parent, int32(i))
		if count[root]++; count[root] > count[most] {
			most = root
		}
	}
	return most
}

// find returns the root of v, halving the path on the way.
func find(parent []int32, v int32) int32 {
	for {
		p := atomic.LoadInt32(&parent[v])
		if p == v {
			return v
		}
		grand := atomic.LoadInt32(&parent[p])
		if grand != p {
			atomic.CompareAndSwapInt32(&parent[v], p, grand)
		}
		v = grand
	}
}

// join links the roots of u and v, the larger to the smaller.
func join(parent []int32, u, v int32) {
	for {
		u, v = find(parent, u), find(parent, v)
		if u == v {
			return
		}
		if u > v {
			u, v = v, u
		}
		if atomic.CompareAndSwapInt32(&parent[v], v, u) {
			return
		}
	}
}
