package synth

import (
	"cmp"
	"context"
	"slices"
	"strconv"
)

// blockModel draws a degree-corrected block model with an exact number of distinct pairs.
//
// In the model of Karrer & Newman the expected number of edges between i and j is
// propensity(i) * propensity(j) * omega, with omega one value within and another between classes.
// Every unordered pair is owned by its larger node, so node v has v pairs to choose from: the number
// that v takes is its share of the expected total, and it draws that many different smaller nodes
// by weight. Pairs of different owners differ, so all pairs do, and owners are independent.
type blockModel struct {
	seed     uint64
	class    []int32  // [NumNodes]
	all      weighted // propensities, by node
	grouped  weighted // propensities, by (class, node)
	member   []int32  // [NumNodes] the node at a place of grouped
	place    []int32  // [NumNodes] a node's place in grouped
	group    []int32  // [NumClasses] first place of a class
	within   float64  // omega within a class
	between  float64  // omega between classes
	pairsTo  []int64  // [NumNodes+1] running sums of the pairs that nodes own
	numPairs int64
}

// newBlockModel lays out the model. It costs O(NumNodes) time and memory.
func newBlockModel(opt Options) *blockModel {
	c := newClasses(opt)
	n := int(opt.NumNodes)
	m := &blockModel{
		seed: opt.Seed, numPairs: opt.NumEdges,
		class: make([]int32, n), member: make([]int32, n), place: make([]int32, n), group: make([]int32, opt.NumClasses),
	}
	m.all = newWeighted(n, func(v int) uint64 { return propensity(newDraws(opt.Seed, forPropensity, uint64(v))) })
	next := make([]int32, opt.NumClasses)
	for k := range next {
		m.group[k] = int32(c.starts[k])
		next[k] = m.group[k]
	}
	for v := range n {
		k := c.of(int64(v))
		m.class[v] = int32(k)
		m.place[v] = next[k]
		m.member[next[k]] = int32(v)
		next[k]++
	}
	m.grouped = newWeighted(n, func(place int) uint64 { return m.all.weight(int(m.member[place])) })

	// Two random ends share a class with probability same; the omegas turn that into Homophily.
	same := 0.0
	total := float64(m.all.total())
	for k := range m.group {
		s := float64(m.grouped.cum[c.starts[k+1]]-m.grouped.cum[c.starts[k]]) / total
		same += float64(s * s)
	}
	m.within, m.between = 1, 0
	if opt.NumClasses > 1 {
		m.within = opt.Homophily / same
		m.between = (1 - opt.Homophily) / (1 - same)
	}
	m.countPairs()
	return m
}

// rates returns the expected pairs of v with smaller nodes of its own class and of others, in
// a common unit.
func (m *blockModel) rates(v int) (within, between float64) {
	place, first := m.place[v], m.group[m.class[v]]
	inside := m.grouped.cum[place] - m.grouped.cum[first]
	weight := float64(m.all.weight(v))
	within = float64(float64(weight*float64(inside)) * m.within)
	between = float64(float64(weight*float64(m.all.cum[v]-inside)) * m.between)
	return within, between
}

// countPairs fills pairsTo.
func (m *blockModel) countPairs() {
	n := len(m.class)
	expected := 0.0
	for v := range n {
		within, between := m.rates(v)
		expected += within + between
	}
	sum, last := 0.0, int64(0)
	want := func(v int) int64 {
		within, between := m.rates(v)
		sum += within + between
		upTo := m.numPairs
		if sum < expected {
			upTo = int64(float64(float64(m.numPairs) * (sum / expected)))
		}
		count := upTo - last
		last = upTo
		return count
	}
	if expected == 0 { // one node, or a homophily that no pair can meet
		want = func(v int) int64 {
			if v == 0 {
				return m.numPairs
			}
			return 0
		}
	}
	m.pairsTo = capped(n, m.numPairs, want, func(v int) int64 { return int64(v) })
}

// neighbours appends the smaller nodes that v is paired with, all different, to out[:0].
func (m *blockModel) neighbours(v int, s *scratch, out []int32) []int32 {
	out = out[:0]
	count := int(m.pairsTo[v+1] - m.pairsTo[v])
	if count == 0 {
		return out
	}
	d := newDraws(m.seed, forPairs, uint64(v))
	place, first := int(m.place[v]), int(m.group[m.class[v]])
	numInside := place - first
	numOutside := v - numInside

	inside := 0
	if within, between := m.rates(v); within+between > 0 {
		inside = int(float64(float64(count)*(within/(within+between))) + d.unit())
	}
	inside = max(min(inside, numInside), count-numOutside)
	outside := count - inside

	if crowded(inside, numInside) {
		out = s.heaviest(&d, inside, first, place, m.grouped.weight, out)
		for i := range out {
			out[i] = m.member[out[i]]
		}
	} else {
		s.seen.reset(inside)
		for len(out) < inside {
			if u := m.member[m.grouped.draw(&d, first, place)]; s.seen.add(uint64(u)) {
				out = append(out, u)
			}
		}
	}
	if crowded(outside, numOutside) {
		weight := func(u int) uint64 {
			if m.class[u] == m.class[v] {
				return 0
			}
			return m.all.weight(u)
		}
		return s.heaviest(&d, outside, 0, v, weight, out)
	}
	s.seen.reset(outside)
	for len(out) < count {
		if u := int32(m.all.draw(&d, 0, v)); m.class[u] != m.class[v] && s.seen.add(uint64(u)) {
			out = append(out, u)
		}
	}
	return out
}

// crowded says whether drawing count of n items by rejection would meet too many taken ones.
func crowded(count, n int) bool { return count > n/4 }

// scratch is the memory of one worker.
type scratch struct {
	seen seenSet
	keys []rankedItem
}

type rankedItem struct {
	key  float64
	item int32
}

// heaviest appends count different items of [from, to) to out, heavy ones sooner: those with
// the largest weight/uniform (priority sampling; Duffield, Lund & Thorup, J. ACM 54, 2007).
// Items of weight 0 are left out; at least count others must be there.
func (s *scratch) heaviest(d *draws, count, from, to int, weight func(i int) uint64, out []int32) []int32 {
	if count == 0 {
		return out
	}
	s.keys = s.keys[:0]
	for i := from; i < to; i++ {
		if w := weight(i); w > 0 {
			s.keys = append(s.keys, rankedItem{float64(w) / (1 - d.unit()), int32(i)})
		}
	}
	slices.SortFunc(s.keys, func(a, b rankedItem) int {
		return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(a.item, b.item))
	})
	for _, k := range s.keys[:count] {
		out = append(out, k.item)
	}
	return out
}

// seenSet is a small set of integers that is cheap to empty: open addressing, each slot
// stamped with the round in which it was filled.
type seenSet struct {
	keys  []uint64
	stamp []uint32
	round uint32
}

// reset empties the set and makes room for n integers.
func (s *seenSet) reset(n int) {
	size := max(16, len(s.keys))
	for size < 2*n {
		size *= 2
	}
	s.round++
	if size != len(s.keys) || s.round == 0 {
		s.keys, s.stamp, s.round = make([]uint64, size), make([]uint32, size), 1
	}
}

// add puts key in the set and says whether it is new.
func (s *seenSet) add(key uint64) bool {
	mask := uint64(len(s.keys) - 1)
	for slot := mix(key) & mask; ; slot = (slot + 1) & mask {
		if s.stamp[slot] != s.round {
			s.stamp[slot], s.keys[slot] = s.round, key
			return true
		}
		if s.keys[slot] == key {
			return false
		}
	}
}

// sbm writes the block model: edges.csv, features.npy, labels.csv, split.csv.
func (g *generator) sbm(ctx context.Context) error {
	m := newBlockModel(g.opt)
	cuts := chunksBySize(m.pairsTo)
	pool := newPool(func() *pairScratch { return new(pairScratch) })
	err := g.stream(ctx, "edges", g.opt.NumEdges, []string{"edges.csv"}, "src,dst\n", len(cuts)-1, func(chunk int, out []piece) {
		s := pool.get()
		defer pool.put(s)
		out[0].bytes = m.appendPairs(cuts[chunk], cuts[chunk+1], s, out[0].bytes)
		out[0].rows = m.pairsTo[cuts[chunk+1]] - m.pairsTo[cuts[chunk]]
	})
	if err != nil {
		return err
	}
	return g.writeTables(ctx, func(node int64) int { return int(m.class[node]) })
}

// pairScratch is what appendPairs reuses.
type pairScratch struct {
	scratch
	pairs []int32
}

// appendPairs appends the lines of the pairs owned by the nodes [from, to). Which end is src is drawn too.
func (m *blockModel) appendPairs(from, to int, s *pairScratch, b []byte) []byte {
	for v := from; v < to; v++ {
		s.pairs = m.neighbours(v, &s.scratch, s.pairs)
		for _, u := range s.pairs {
			src, dst := int64(u), int64(v)
			if mix(m.seed^uint64(u)<<32^uint64(v))&1 == 1 {
				src, dst = dst, src
			}
			b = strconv.AppendInt(b, src, 10)
			b = append(b, ',')
			b = strconv.AppendInt(b, dst, 10)
			b = append(b, '\n')
		}
	}
	return b
}
