package sample

import (
	"cmp"
	"slices"

	"github.com/prelift/prelift/snapshot/graph"
)

// Clusters are runs of nodes that lie together in the locality order: those of cluster c are Nodes[Starts[c]:Starts[c+1]].
type Clusters struct {
	Nodes  []int32 // all nodes, in locality order
	Starts []int32 // [clusters+1]
}

// CutClusters cuts a locality order, in which components are whole, into clusters of at most size nodes. A component of more
// is cut into as few clusters of its own as will do, whose sizes differ by at most one; smaller components share a cluster with those
// next to them while all of them fit. size is at least 1; component has the component of each node.
func CutClusters(order, component []int32, size int) *Clusters {
	c := &Clusters{Nodes: order}
	first := 0 // of the cluster that is being filled with whole components
	for start := 0; start < len(order); {
		end := start + 1
		for end < len(order) && component[order[end]] == component[order[start]] {
			end++
		}
		if first < start && end-first > size {
			c.Starts = append(c.Starts, int32(first))
			first = start
		}
		if n := end - start; n > size {
			parts := (n + size - 1) / size
			for i := range parts {
				c.Starts = append(c.Starts, int32(start+int(int64(i)*int64(n)/int64(parts))))
			}
			first = end
		}
		start = end
	}
	if first < len(order) {
		c.Starts = append(c.Starts, int32(first))
	}
	c.Starts = append(c.Starts, int32(len(order)))
	return c
}

// Len returns the number of clusters.
func (c *Clusters) Len() int { return len(c.Starts) - 1 }

// Cluster returns the nodes of cluster i, in locality order; read-only.
func (c *Clusters) Cluster(i int32) []int32 { return c.Nodes[c.Starts[i]:c.Starts[i+1]] }

// ClusterOrder deals clusters into batches, several to a batch, another choice in each variant (Chiang et al., "Cluster-GCN: an efficient
// algorithm for training deep and large graph convolutional networks", KDD 2019): the induced subgraph of a batch then has the edges between its
// clusters too. Clusters without a seed would teach nothing and are left out; so every seed is in exactly one batch of each variant, and no batch
// is without one. Read-only and safe for concurrent use.
type ClusterOrder struct {
	clusters  *Clusters
	keys      []uint64
	seed      int64
	perBatch  int
	isSeed    nodeSet
	withSeeds []int32 // clusters
}

// NewClusterOrder makes a ClusterOrder of up to perBatch (at least 1) clusters a batch; keys has len NumNodes.
func NewClusterOrder(c *Clusters, seeds []int32, keys []uint64, perBatch int, seed int64) *ClusterOrder {
	o := &ClusterOrder{clusters: c, keys: keys, seed: seed, perBatch: perBatch, isSeed: newNodeSet(len(keys))}
	for _, v := range seeds {
		o.isSeed.add(v)
	}
	for i := range int32(c.Len()) {
		if slices.ContainsFunc(c.Cluster(i), o.isSeed.has) {
			o.withSeeds = append(o.withSeeds, i)
		}
	}
	return o
}

// NumBatches returns the number of batches of a variant.
func (o *ClusterOrder) NumBatches() int { return (len(o.withSeeds) + o.perBatch - 1) / o.perBatch }

// Variant returns the clusters that have seeds in the order of a variant: by hash(7, seed, variant, key of the cluster's first node), equal ones by
// their place in locality order.
func (o *ClusterOrder) Variant(variant int) []int32 {
	base := graph.Hash(forCluster, uint64(o.seed), uint64(variant))
	draw := func(i int32) uint64 { return graph.Fold(base, o.keys[o.clusters.Cluster(i)[0]]) }
	order := slices.Clone(o.withSeeds)
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(draw(a), draw(b)) })
	return order
}

// Batch appends the seeds of batch i of a variant, given the variant's order, to seeds, ascending, and its other nodes to others. Batches have equally many
// clusters, or one more.
func (o *ClusterOrder) Batch(order []int32, i int, seeds, others []int32) ([]int32, []int32) {
	first := len(seeds)
	n, numBatches := int64(len(order)), int64(o.NumBatches())
	for _, c := range order[int64(i)*n/numBatches : int64(i+1)*n/numBatches] {
		for _, v := range o.clusters.Cluster(c) {
			if o.isSeed.has(v) {
				seeds = append(seeds, v)
			} else {
				others = append(others, v)
			}
		}
	}
	slices.Sort(seeds[first:])
	return seeds, others
}
