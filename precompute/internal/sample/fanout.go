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
// node number (not by place) and never holds the row's own node.
type Layer struct {
	Indptr     []int64
	Indices    []int32
	Importance []float32 // [NumDst] neighbours over neighbours taken; 1 where all or none were taken
	Entries    []int64   // place of each edge in the graph's in-rows; nil unless the Sampler keeps them
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

// Options steer a Sampler.
type Options struct {
	Fanout      []int // neighbours a node takes at hop 1, 2, ...; All for every one, 0 for none
	Seed        int64
	KeepEntries bool // fill Layer.Entries, for coefficients kept per edge
}

// Sampler draws neighbours without replacement, uniformly: a node takes the k
// neighbours of the smallest Draw. A draw belongs to (seed, variant, hop, node), whichever
// batch uses it. A node that a batch reaches at hop h is a dst of hops h+1 .. L, and its
// draws at those hops are independent of one another; a seed has L of them.
//
// Scratch is 8 bytes and a bit for each node of the graph, allocated once. Not safe for
// concurrent use; give each worker its own.
type Sampler struct {
	in   *graph.CSR
	keys []uint64
	opt  Options
	memo *Memo

	variant int           // that draws belongs to
	draws   *variantDraws // nil without a memo, or before the first batch

	mark  []placeMark
	epoch uint32
	fresh []uint64 // bitmap of the nodes that a hop adds; all zero between hops
	heap  []candidate
	taken []int32
	batch Batch
}

// placeMark is a node's place in the batch of that epoch.
type placeMark struct {
	epoch uint32
	place int32
}

// NewSampler makes a Sampler over the in-rows of a graph; keys has len NumNodes. memo may
// be nil; else it is of the same rows and options, and perhaps shared with other samplers.
func NewSampler(in *graph.CSR, keys []uint64, opt Options, memo *Memo) *Sampler {
	n := in.NumNodes()
	if len(keys) != n {
		panic(fmt.Sprintf("sample: %d keys for %d nodes", len(keys), n))
	}
	s := &Sampler{in: in, keys: keys, opt: opt, memo: memo, mark: make([]placeMark, n), fresh: make([]uint64, (n+63)/64)}
	s.batch.HopNodes = make([]int, len(opt.Fanout)+1)
	s.batch.Layers = make([]Layer, len(opt.Fanout))
	return s
}

// Sample draws the batch of these seeds, which must be distinct, in their order.
func (s *Sampler) Sample(variant int, seeds []int32) *Batch {
	s.nextEpoch()
	s.useVariant(variant)
	b := &s.batch
	b.Nodes = append(b.Nodes[:0], seeds...)
	for i, v := range seeds {
		s.mark[v] = placeMark{s.epoch, int32(i)}
	}
	b.HopNodes[0] = len(seeds)
	numLayers := len(s.opt.Fanout)
	for hop := 1; hop <= numLayers; hop++ {
		layer := &b.Layers[numLayers-hop]
		added := s.drawHop(variant, hop, layer)
		s.addFresh(added)
		b.HopNodes[hop] = len(b.Nodes)
		for e, u := range layer.Indices {
			layer.Indices[e] = s.mark[u].place
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

func (s *Sampler) nextEpoch() {
	if s.epoch == math.MaxUint32 {
		clear(s.mark)
		s.epoch = 0
	}
	s.epoch++
}

// drawHop fills a layer with the draws of every node of the batch so far, with node
// numbers for Indices, marks the nodes that are new to the batch in fresh and returns
// their number.
func (s *Sampler) drawHop(variant, hop int, layer *Layer) (added int) {
	base := drawBase(s.opt.Seed, variant, hop)
	numDst := len(s.batch.Nodes)
	layer.Indptr = resize(layer.Indptr, numDst+1)
	layer.Importance = resize(layer.Importance, numDst)
	layer.Indices, layer.Entries = layer.Indices[:0], layer.Entries[:0]
	layer.Indptr[0] = 0
	for i, v := range s.batch.Nodes {
		taken, numNeighbours := s.draw(base, v, hop)
		row, first := s.in.Row(v), s.in.Indptr[v]
		for _, at := range taken {
			u := row[at]
			layer.Indices = append(layer.Indices, u)
			if s.opt.KeepEntries {
				layer.Entries = append(layer.Entries, first+int64(at))
			}
			if m := &s.mark[u]; m.epoch != s.epoch {
				m.epoch = s.epoch
				s.fresh[u>>6] |= 1 << (u & 63)
				added++
			}
		}
		layer.Indptr[i+1] = int64(len(layer.Indices))
		layer.Importance[i] = importance(numNeighbours, len(taken))
	}
	return added
}

// addFresh appends the marked nodes to the batch, ascending, and clears the bitmap.
func (s *Sampler) addFresh(added int) {
	b := &s.batch
	b.Nodes = slices.Grow(b.Nodes, added)
	for w := 0; added > 0; w++ {
		for word := s.fresh[w]; word != 0; word &= word - 1 {
			u := int32(w<<6 + bits.TrailingZeros64(word))
			s.mark[u].place = int32(len(b.Nodes))
			b.Nodes = append(b.Nodes, u)
			added--
		}
		s.fresh[w] = 0
	}
}

// importance is what a sampled neighbour counts for: itself and those not taken.
func importance(neighbours, taken int) float32 {
	if taken == neighbours || taken == 0 {
		return 1
	}
	return float32(float64(neighbours) / float64(taken))
}

// candidate is a neighbour at a place of its row, under its draw.
type candidate struct {
	draw uint64
	at   int32
}

func (c candidate) after(d candidate) bool {
	return c.draw > d.draw || c.draw == d.draw && c.at > d.at
}

// draw returns the places in row v of the neighbours that v takes at a hop, ascending, and
// the number of its neighbours; from the memo where that keeps them. Valid until the next call.
func (s *Sampler) draw(base uint64, v int32, hop int) (taken []int32, numNeighbours int) {
	k := s.opt.Fanout[hop-1]
	if s.draws == nil || s.draws.hops[hop-1].hubs == nil {
		numNeighbours = s.take(base, v, k)
		return s.taken, numNeighbours
	}
	kept := &s.draws.hops[hop-1]
	i := kept.hubs.number(v)
	if i < 0 {
		numNeighbours = s.take(base, v, k)
		return s.taken, numNeighbours
	}
	slot := kept.slot(i)
	if kept.state[i].Load() == slotReady {
		return slot[1:], int(slot[0])
	}
	numNeighbours = s.take(base, v, k) // more than k of them, so k are taken
	if kept.state[i].CompareAndSwap(slotEmpty, slotClaimed) {
		slot[0] = int32(numNeighbours)
		copy(slot[1:], s.taken)
		kept.state[i].Store(slotReady)
	}
	return s.taken, numNeighbours
}

// take fills taken with the places in row v of the k neighbours that v draws, ascending, and
// returns the number of neighbours, v itself left out. It keeps the k smallest in a heap
// whose root is the largest of them: O(degree) expected, as the i-th candidate gets in with
// probability k/i only.
func (s *Sampler) take(base uint64, v int32, k int) (numNeighbours int) {
	row := s.in.Row(v)
	s.taken = s.taken[:0]
	if k < 0 || len(row) <= k {
		for at, u := range row {
			if u != v {
				s.taken = append(s.taken, int32(at))
			}
		}
		return len(s.taken)
	}
	base = graph.Fold(base, s.keys[v])
	heap := s.heap[:0]
	for at, u := range row {
		if u == v {
			continue
		}
		numNeighbours++
		if k == 0 {
			continue
		}
		c := candidate{graph.Fold(base, s.keys[u]), int32(at)}
		switch {
		case len(heap) < k:
			heap = append(heap, c)
			if len(heap) == k {
				for i := k/2 - 1; i >= 0; i-- {
					siftDown(heap, i)
				}
			}
		case c.draw < heap[0].draw: // an equal draw is later in the row, so it loses the tie
			heap[0] = c
			siftDown(heap, 0)
		}
	}
	for _, c := range heap {
		s.taken = append(s.taken, c.at)
	}
	sortPlaces(s.taken)
	s.heap = heap
	return numNeighbours
}

// siftDown restores the heap below place i.
func siftDown(heap []candidate, i int) {
	c := heap[i]
	for {
		child := 2*i + 1
		if child >= len(heap) {
			break
		}
		if child+1 < len(heap) && heap[child+1].after(heap[child]) {
			child++
		}
		if !heap[child].after(c) {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	heap[i] = c
}

// sortPlaces sorts ascending: by insertion up to a length where that is faster.
func sortPlaces(a []int32) {
	if len(a) > 32 {
		slices.Sort(a)
		return
	}
	for i := 1; i < len(a); i++ {
		x, j := a[i], i
		for ; j > 0 && a[j-1] > x; j-- {
			a[j] = a[j-1]
		}
		a[j] = x
	}
}

// resize returns a slice of length n in a's memory where it fits; its contents are unspecified.
func resize[T any](a []T, n int) []T {
	if cap(a) < n {
		return make([]T, n, n+n/4)
	}
	return a[:n]
}
