package sample

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/prelift/prelift/snapshot/graph"
)

// All is the fanout that takes every neighbour.
const All = -1

// Layer is one layer's block of a Batch: CSR rows over the dst, which are the first
// NumDst nodes of the batch. Indices are places in Batch.Nodes; each row is ascending by
// node number (not by place), then relation, and never holds the row's own node.
type Layer struct {
	Indptr  []int64
	Indices []int32
	// Importance [NumDst] is the factor of a dst that makes up for neighbours not drawn: neighbours over the fanout, 1 where all
	// were taken or the fanout is 0. nil with Weighted.
	Importance []float32
	// EdgeImportance [edges] is that factor for each edge. nil unless the method is Weighted.
	EdgeImportance []float32
	Entries        []int64 // place of each edge in the graph's in-rows; nil unless the Sampler keeps them
}

// NumDst returns the number of rows.
func (l *Layer) NumDst() int { return len(l.Indptr) - 1 }

// Batch is what a Sampler returns. Nodes are the seeds, then the new nodes of hop 1
// ascending by number, then those of hop 2, and so on; HopNodes[h] is the number of nodes
// up to hop h. Layers[0] is the input side: its dst are the nodes up to hop L-1 and its
// src all nodes. A Batch is valid until the Sampler's next call.
type Batch struct {
	Nodes    []int32
	HopNodes []int
	Layers   []Layer
}

// NumEdges returns the number of edges of all layers.
func (b *Batch) NumEdges() int {
	n := 0
	for i := range b.Layers {
		n += len(b.Layers[i].Indices)
	}
	return n
}

// Options steer a Sampler. All but KeepEntries shape what it draws.
type Options struct {
	Fanout      []int // neighbours a node takes at hop 1, 2, ...; All for every one, 0 for none
	Method      Method
	HubCap      int // what All means for a node of more neighbours than this: so many, by Method; 0: no cap
	Seed        int64
	KeepEntries bool // fill Layer.Entries, for coefficients and relations kept per edge
	// RelKeys are the keys of the relations, where the rows have relations: an edge is then drawn as such, so that a
	// node may be taken by several relations. nil where the rows have none.
	RelKeys []uint64
}

// FanoutOf returns how many neighbours a node takes at most at a hop, from 1; All where there is no limit.
func (o *Options) FanoutOf(hop int) int {
	k := o.Fanout[hop-1]
	if k == All && o.HubCap > 0 {
		return o.HubCap
	}
	return k
}

// drawBase is the part of a draw that all nodes of a hop share.
func (o *Options) drawBase(variant, hop int) uint64 {
	if o.Method == Labor {
		return laborBase(o.Seed, variant, hop)
	}
	return drawBase(o.Seed, variant, hop)
}

// Sampler draws neighbours by a Method. A draw belongs to (seed, variant, hop, node), whichever
// batch uses it. A node that a batch reaches at hop h is a dst of hops h+1 .. L, and its
// draws at those hops are independent of one another; a seed has L of them.
//
// Scratch is 4 bytes and a bit for each node of the graph, allocated once. Not safe for
// concurrent use; give each worker its own.
type Sampler struct {
	picker
	in   *graph.CSR
	opt  Options
	memo *Memo

	variant int           // that draws belongs to
	draws   *variantDraws // nil without a memo, or before the first batch

	nodes placeTable
	bases []uint64 // of the draws of each hop in the variant, from 0 for hop 1
	batch Batch
	spare Layer // of one row, that isn't in the batch yet
}

// NewSampler makes a Sampler over the in-rows of a graph; keys has len NumNodes. memo may
// be nil; else it is of the same rows and options, and perhaps shared with other samplers.
// The rows have weights where the method is Weighted, and relations exactly where opt has RelKeys.
func NewSampler(in *graph.CSR, keys []uint64, opt Options, memo *Memo) *Sampler {
	n := in.NumNodes()
	switch {
	case len(keys) != n:
		panic(fmt.Sprintf("sample: %d keys for %d nodes", len(keys), n))
	case opt.Method == Weighted && in.Weight == nil && in.NumEntries() > 0:
		panic("sample: weighted draws from rows without weights")
	case (opt.RelKeys != nil) != (in.Rel != nil):
		panic(fmt.Sprintf("sample: keys of relations: %t, rows with relations: %t", opt.RelKeys != nil, in.Rel != nil))
	}
	if memo != nil {
		keys = memo.keysOf(keys)
	}
	s := &Sampler{picker: newPicker(keys, opt.RelKeys), in: in, opt: opt, memo: memo, nodes: newPlaceTable(n)}
	s.batch.HopNodes = make([]int, len(opt.Fanout)+1)
	s.batch.Layers = make([]Layer, len(opt.Fanout))
	s.bases = make([]uint64, len(opt.Fanout))
	return s
}

// Sample draws the batch of these seeds, which must be distinct, in their order.
func (s *Sampler) Sample(variant int, seeds []int32) *Batch {
	s.useVariant(variant)
	for hop := range s.bases {
		s.bases[hop] = s.opt.drawBase(variant, hop+1)
	}
	b := &s.batch
	s.nodes.forget(b.Nodes)
	b.Nodes = s.nodes.number(b.Nodes[:0], seeds)
	b.HopNodes[0] = len(seeds)
	numLayers := len(s.opt.Fanout)
	for hop := 1; hop <= numLayers; hop++ {
		layer := &b.Layers[numLayers-hop]
		s.drawHop(hop, layer)
		s.nodes.add(layer.Indices)
		b.Nodes = s.nodes.numberAdded(b.Nodes)
		b.HopNodes[hop] = len(b.Nodes)
		for e, u := range layer.Indices {
			layer.Indices[e] = s.nodes.place[u]
		}
	}
	return b
}

// CountNodes returns the number of distinct nodes of the batch of these seeds.
func (s *Sampler) CountNodes(variant int, seeds []int32) int {
	return len(s.Sample(variant, seeds).Nodes)
}

// useVariant takes the kept draws of a variant in the place of another's.
func (s *Sampler) useVariant(variant int) {
	if s.memo == nil || s.draws != nil && s.variant == variant {
		return
	}
	s.Release()
	s.variant, s.draws = variant, s.memo.acquire(variant)
}

// Release gives the variant that the sampler worked on last back to the memo, which can
// then use its memory for another. The sampler stays usable.
func (s *Sampler) Release() {
	if s.draws != nil {
		s.memo.release(s.variant)
		s.draws = nil
	}
}

// drawHop fills a layer with the draws of every node of the batch so far, with node
// numbers for Indices.
func (s *Sampler) drawHop(hop int, layer *Layer) {
	k := s.opt.FanoutOf(hop)
	numDst := len(s.batch.Nodes)
	layer.Indptr = resize(layer.Indptr, numDst+1)
	if s.opt.Method != Weighted {
		layer.Importance = resize(layer.Importance, numDst)
	}
	layer.clear()
	layer.Indptr[0] = 0
	for i, v := range s.batch.Nodes {
		numNeighbours := s.draw(layer, v, hop, k)
		layer.Indptr[i+1] = int64(len(layer.Indices))
		if s.opt.Method != Weighted {
			layer.Importance[i] = importance(numNeighbours, k)
		}
	}
}

// clear empties the edges.
func (l *Layer) clear() {
	l.Indices, l.Entries, l.EdgeImportance = l.Indices[:0], l.Entries[:0], l.EdgeImportance[:0]
}

// importance is what a neighbour taken counts for where k, or k in the mean, were drawn of so many.
func importance(numNeighbours, k int) float32 {
	if k <= 0 || numNeighbours <= k {
		return 1
	}
	return float32(float64(numNeighbours) / float64(k))
}

// draw appends to a layer what v takes at a hop of fanout k, from the memo where that keeps it, and returns the number of v's neighbours. A hub that
// the memo doesn't have yet is drawn for all further hops at once: whatever is a dst of one hop is a dst of all that follow.
func (s *Sampler) draw(layer *Layer, v int32, hop, k int) (numNeighbours int) {
	kept, slot, i := s.keptDraw(v, hop)
	if slot == nil {
		return s.take(layer, s.bases[hop-1], v, k)
	}
	if kept.state[i].Load() == slotReady {
		return slot.appendTo(layer, s.in.Indptr[v], kept.hubs)
	}
	start := len(layer.Indices)
	numNeighbours = s.take(layer, s.bases[hop-1], v, k)
	s.keep(kept, slot, i, layer, start, v, numNeighbours)
	for hop++; hop <= len(s.bases); hop++ {
		if kept, slot, i := s.keptDraw(v, hop); slot != nil && kept.state[i].Load() == slotEmpty {
			s.spare.clear()
			n := s.take(&s.spare, s.bases[hop-1], v, s.opt.FanoutOf(hop))
			s.keep(kept, slot, i, &s.spare, 0, v, n)
		}
	}
	return numNeighbours
}

// keptDraw returns the place of v's draw at a hop in the memo: slot i of kept. slot is nil where the memo doesn't keep it.
func (s *Sampler) keptDraw(v int32, hop int) (kept *hopDraws, slot hubSlot, i int) {
	if s.draws == nil || s.draws.hops[hop-1].hubs == nil {
		return nil, nil, 0
	}
	kept = &s.draws.hops[hop-1]
	if i = kept.hubs.number(v); i < 0 {
		return nil, nil, 0
	}
	return kept, kept.slot(i), i
}

// keep puts what v takes, which is the layer's edges from start on, into slot i, if it fits and no other Sampler is about to.
func (s *Sampler) keep(kept *hopDraws, slot hubSlot, i int, layer *Layer, start int, v int32, numNeighbours int) {
	if len(layer.Indices)-start <= kept.hubs.width && kept.state[i].CompareAndSwap(slotEmpty, slotClaimed) {
		slot.set(layer, start, numNeighbours, s.in.Indptr[v], kept.hubs)
		kept.state[i].Store(slotReady)
	}
}

// placeTable numbers the nodes of a batch in the order they join it: 4 bytes and two bits a node of the graph.
type placeTable struct {
	place   []int32  // of the nodes in the batch; else unspecified
	inBatch []uint64 // bitmap over nodes
	added   []uint64 // bitmap of nodes to be numbered, of which some are in the batch; zero between hops
	words   []uint64 // bitmap over the words of added: those that may not be zero
}

func newPlaceTable(numNodes int) placeTable {
	numWords := (numNodes + 63) / 64
	return placeTable{makeHuge[int32](numNodes), make([]uint64, numWords), make([]uint64, numWords), make([]uint64, (numWords+63)/64)}
}

// forget takes all nodes of the batch out of it.
func (t *placeTable) forget(nodes []int32) {
	for _, v := range nodes {
		t.inBatch[v>>6] = 0
	}
}

// has reports whether v is in the batch.
func (t *placeTable) has(v int32) bool { return t.inBatch[v>>6]>>(v&63)&1 == 1 }

// number appends nodes that aren't in the batch to its nodes, in their order.
func (t *placeTable) number(nodes, more []int32) []int32 {
	for _, v := range more {
		t.inBatch[v>>6] |= 1 << (v & 63)
		t.place[v] = int32(len(nodes))
		nodes = append(nodes, v)
	}
	return nodes
}

// add has numberAdded number these, which may repeat and be in the batch.
func (t *placeTable) add(nodes []int32) {
	for _, u := range nodes {
		w := uint32(u) >> 6
		t.added[w] |= 1 << (u & 63)
		t.words[w>>6] |= 1 << (w & 63)
	}
}

// numberAdded appends what was added and isn't in the batch to its nodes, ascending.
func (t *placeTable) numberAdded(nodes []int32) []int32 {
	for i, words := range t.words {
		if words == 0 {
			continue
		}
		t.words[i] = 0
		for ; words != 0; words &= words - 1 {
			w := i<<6 + bits.TrailingZeros64(words)
			word := t.added[w] &^ t.inBatch[w]
			t.added[w] = 0
			t.inBatch[w] |= word
			for ; word != 0; word &= word - 1 {
				u := int32(w<<6 + bits.TrailingZeros64(word))
				t.place[u] = int32(len(nodes))
				nodes = append(nodes, u)
			}
		}
	}
	return nodes
}

// resize returns a slice of length n in a's memory where it fits; its contents are unspecified.
func resize[T any](a []T, n int) []T {
	if cap(a) < n {
		return make([]T, n, n+n/4)
	}
	return a[:n]
}

// extend lengthens a by n elements, whose contents are unspecified.
func extend[T any](a []T, n int) []T { return slices.Grow(a, n)[:len(a)+n] }

// floatBits are the bits of x where int32 is stored.
func floatBits(x float32) int32 { return int32(math.Float32bits(x)) }
