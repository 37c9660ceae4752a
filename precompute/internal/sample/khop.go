package sample

import (
	"github.com/prelift/prelift/snapshot/graph"
)

// KHopOptions steer a KHop.
type KHopOptions struct {
	Hops   int // 1: the seeds' neighbours; 2: also the nodes two hops away that the index lists
	HubCap int // longer lists are drawn from: so many of each; 0: no cap
	Seed   int64
}

// KHop gathers what the hop index lists for seeds: the nodes of a batch of mode khop, whose edges an Inducer finds. Not safe for
// concurrent use; give each worker its own.
type KHop struct {
	picker
	hop1 *graph.Hop1
	hop2 *graph.Hop2 // nil with one hop
	opt  KHopOptions
	row  []int32
	all  []int32
}

// NewKHop makes a KHop over the hop index; keys has len NumNodes. hop2 may be nil where opt.Hops is 1.
func NewKHop(hop1 *graph.Hop1, hop2 *graph.Hop2, keys []uint64, opt KHopOptions) *KHop {
	switch {
	case len(keys) != hop1.NumNodes():
		panic("sample: keys and hop index are of different graphs")
	case opt.Hops == 2 && hop2 == nil:
		panic("sample: two hops asked for, and the index has one")
	case opt.Hops != 1 && opt.Hops != 2:
		panic("sample: the hop index has one or two hops")
	}
	return &KHop{picker: newPicker(keys, nil), hop1: hop1, hop2: hop2, opt: opt}
}

// Lists returns the neighbours and, with two hops, the listed nodes two hops away of the seeds, one seed after the other; nodes may
// repeat and be seeds. Of a list longer than HubCap it has those of the smallest Draw, at hop 1 or 2. Valid until the next call.
func (k *KHop) Lists(variant int, seeds []int32) []int32 {
	k.all = k.all[:0]
	for _, v := range seeds {
		k.row = k.hop1.AppendRow(k.row[:0], v)
		k.appendCapped(variant, 1, v, k.row)
		if k.opt.Hops == 2 {
			k.appendCapped(variant, 2, v, k.hop2.Row(v))
		}
	}
	return k.all
}

// appendCapped appends a list of v's to all, cut to HubCap.
func (k *KHop) appendCapped(variant, hop int, v int32, list []int32) {
	if k.opt.HubCap == 0 || len(list) <= k.opt.HubCap {
		k.all = append(k.all, list...)
		return
	}
	k.picker.row.gather(v, list, k.keys)
	for _, at := range k.uniform(graph.Fold(drawBase(k.opt.Seed, variant, hop), k.keys[v]), nil, k.opt.HubCap) {
		k.all = append(k.all, list[at])
	}
}
