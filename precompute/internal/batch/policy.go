package batch

import "github.com/prelift/prelift/format"

// sizePolicy is the graph-size policy (DESIGN, "Commands"): how many hops and seeds a batch by default has, by the
// number of nodes. Two hops of a large graph reach most of it, and large batches share more of what they reach.
var sizePolicy = []struct {
	below     int // nodes; 0: no bound
	hops      int
	batchSize int
	what      string
}{
	{10_000, 2, 512, "under 10,000 nodes"},
	{1_000_000, 2, 1024, "10,000 nodes to a million, 2 hops cut by the fanout"},
	{10_000_000, 1, 2048, "a million nodes to ten million"},
	{0, 1, 4096, "ten million nodes or more"},
}

// policyFanouts are the fanouts of so many hops, the one that the policy takes first.
var policyFanouts = map[int][][]int{
	1: {{10}, {25}},
	2: {{10, 5}, {15, 10}, {25, 10}},
}

// smallGraph is the number of nodes below which the whole graph as one batch is worth a look.
const smallGraph = 10_000

// Policy returns what a graph of so many nodes wants by its size alone: the parameters, and the rule in words.
func Policy(numNodes int) (p format.BatchParams, rule string) {
	p = Defaults()
	for _, s := range sizePolicy {
		if s.below == 0 || numNodes < s.below {
			p.Fanout, p.BatchSize = policyFanouts[s.hops][0], s.batchSize
			return p, s.what
		}
	}
	panic("batch: no policy")
}

// Alternatives returns the fanouts to compare with those of the policy, and whether to compare with mode full.
func Alternatives(numNodes int) (fanouts [][]int, full bool) {
	return append(append([][]int{}, policyFanouts[1]...), policyFanouts[2]...), numNodes < smallGraph
}
