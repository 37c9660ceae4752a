package synth

import (
	"context"
	"slices"
	"strconv"
	"sync"
)

// Held-out triples: of every twenty, one goes to valid and one to test, unless it must stay in
// train so that train holds every entity and relation that they mention.
const (
	holdoutPeriod = 20
	validResidue  = 7
	testResidue   = 13
)

// windowShare: a tail lies within a window of 1/64 of the circle.
const windowShare = 64

// rejectionsBeforeUniform: after so many repeated triples in a row a head draws relation and tail
// uniformly, which hits a free one at least every other time.
const rejectionsBeforeUniform = 32

// maxTriplesPerHead is half of the triples one head can have without a self-loop.
func maxTriplesPerHead(numEntities int64, numRels int) int64 {
	return (numEntities - 1) * int64(numRels) / 2
}

// knowledgeGraph draws distinct triples head by head.
//
// The entities lie on a circle, each with an arc as long as its propensity. A relation
// turns the circle by its own shift: the tail of (head, rel) is whoever owns the point
// some way along the head's arc, turned, give or take half a window. Turning keeps uniform points
// uniform, so tails follow the same power law as heads, and embeddings have something to learn.
type knowledgeGraph struct {
	seed      uint64
	entities  weighted
	rels      weighted
	shift     []uint64 // [NumRels], below entities.total()
	triplesTo []int64  // [NumNodes+1] running sums of the triples that heads own
	anchors   []int32  // the first heads that own a triple, at most NumRels: head anchors[r] starts with relation r
}

func newKnowledgeGraph(opt Options) *knowledgeGraph {
	n := int(opt.NumNodes)
	k := &knowledgeGraph{seed: opt.Seed, shift: make([]uint64, opt.NumRels)}
	k.entities = newWeighted(n, func(i int) uint64 { return propensity(newDraws(opt.Seed, forPropensity, uint64(i))) })
	k.rels = newWeighted(opt.NumRels, func(r int) uint64 { return 1 << 36 / uint64(r+1) }) // Zipf
	for r := range k.shift {
		d := newDraws(opt.Seed, forShifts, uint64(r))
		k.shift[r] = d.below(k.entities.total())
	}
	var last int64
	want := func(head int) int64 {
		upTo := int64(share(uint64(opt.NumEdges), k.entities.cum[head+1], k.entities.total()))
		count := upTo - last
		last = upTo
		return count
	}
	limit := maxTriplesPerHead(opt.NumNodes, opt.NumRels)
	k.triplesTo = capped(n, opt.NumEdges, want, func(int) int64 { return limit })
	for head := 0; head < n && len(k.anchors) < opt.NumRels; head++ {
		if k.isHead(head) {
			k.anchors = append(k.anchors, int32(head))
		}
	}
	return k
}

// isHead says whether an entity owns a triple. The first triple of a head is in train.
func (k *knowledgeGraph) isHead(entity int) bool { return k.triplesTo[entity+1] > k.triplesTo[entity] }

type relTail struct{ rel, tail int32 }

// triples sets out to the (rel, tail) pairs of one head, all different, and returns it.
func (k *knowledgeGraph) triples(head int, seen *seenSet, out []relTail) []relTail {
	count := int(k.triplesTo[head+1] - k.triplesTo[head])
	if count == 0 {
		return out[:0]
	}
	out = out[:0]
	seen.reset(count)
	anchor, isAnchor := slices.BinarySearch(k.anchors, int32(head))
	d := newDraws(k.seed, forTriples, uint64(head))
	for rejected := 0; len(out) < count; {
		uniform := rejected >= rejectionsBeforeUniform
		var rel, tail int
		switch {
		case isAnchor && len(out) == 0:
			rel = anchor
		case uniform:
			rel = int(d.below(uint64(len(k.shift))))
		default:
			rel = k.rels.draw(&d, 0, len(k.shift))
		}
		if uniform {
			tail = int(d.below(uint64(len(k.triplesTo) - 1)))
		} else {
			tail = k.tail(&d, head, rel)
		}
		if tail == head || !seen.add(uint64(rel)<<32|uint64(tail)) {
			rejected++
			continue
		}
		rejected = 0
		out = append(out, relTail{int32(rel), int32(tail)})
	}
	return out
}

// tail draws the tail of (head, rel).
func (k *knowledgeGraph) tail(d *draws, head, rel int) int {
	total := k.entities.total()
	window := total/windowShare + 1
	x := k.entities.cum[head] + d.below(k.entities.weight(head)) + k.shift[rel]
	x += d.below(window) + total - window/2
	return k.entities.owner(x % total)
}

// part returns the file of a triple, given its number among all and its rank under its head:
// 0 train, 1 valid, 2 test.
func (k *knowledgeGraph) part(number int64, rank int, t relTail) int {
	if rank == 0 || !k.isHead(int(t.tail)) || int(t.rel) >= len(k.anchors) {
		return 0
	}
	switch number % holdoutPeriod {
	case validResidue:
		return 1
	case testResidue:
		return 2
	}
	return 0
}

// kg writes train.tsv, valid.tsv and test.tsv: head, relation, tail. Entities are e0, e1, ...
// and relations r0, r1, ..., scrambled so that a number says nothing of the popularity.
func (g *generator) kg(ctx context.Context) error {
	k := newKnowledgeGraph(g.opt)
	entityIDs := newPermutation(g.opt.Seed, forIDs, g.opt.NumNodes)
	relIDs := newPermutation(g.opt.Seed, forRelIDs, int64(g.opt.NumRels))
	cuts := chunksBySize(k.triplesTo)
	type scratch struct {
		seen seenSet
		out  []relTail
	}
	pool := newPool(func() *scratch { return new(scratch) })
	names := []string{"train.tsv", "valid.tsv", "test.tsv"}
	return g.stream(ctx, "triples", g.opt.NumEdges, names, "", len(cuts)-1, func(chunk int, out []piece) {
		s := pool.get()
		defer pool.put(s)
		for head := cuts[chunk]; head < cuts[chunk+1]; head++ {
			s.out = k.triples(head, &s.seen, s.out)
			for rank, t := range s.out {
				p := &out[k.part(k.triplesTo[head]+int64(rank), rank, t)]
				p.bytes = strconv.AppendInt(append(p.bytes, 'e'), entityIDs.at(int64(head)), 10)
				p.bytes = strconv.AppendInt(append(p.bytes, "\tr"...), relIDs.at(int64(t.rel)), 10)
				p.bytes = strconv.AppendInt(append(p.bytes, "\te"...), entityIDs.at(int64(t.tail)), 10)
				p.bytes = append(p.bytes, '\n')
				p.rows++
			}
		}
	})
}

// pool is a sync.Pool of one type.
type pool[T any] struct{ p sync.Pool }

func newPool[T any](create func() T) *pool[T] {
	return &pool[T]{sync.Pool{New: func() any { return create() }}}
}

func (p *pool[T]) get() T  { return p.p.Get().(T) }
func (p *pool[T]) put(x T) { p.p.Put(x) }
