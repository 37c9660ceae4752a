package graph

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
)

// Where a line of the edge list goes. The numbers are those of a split's parts (SPEC 5.1).
const (
	HeldNone  uint8 = 0 // into the message graph
	HeldValid uint8 = 2
	HeldTest  uint8 = 3
)

// HoldoutOptions steer HoldoutByHash.
type HoldoutOptions struct {
	Valid, Test float64 // share of the distinct pairs, each >= 0, together at most 1
	Seed        int64
	// SpareLast keeps, of every node that would lose all its pairs, the one of largest hash: no node is
	// isolated, but then leaves are never tested, and on sparse graphs less is held out than was asked for.
	SpareLast bool
}

// Holdout says of each line of an edge list whether its pair is held out for link prediction: a rule by hash
// (HoldoutByHash) or given lists (HoldoutPairs).
type Holdout struct {
	opt  HoldoutOptions
	keys []uint64
	base uint64
	last []uint64 // with SpareLast: the largest hash of each node's pairs observed so far

	given *pairTable // nil: by hash
}

// HoldoutByHash holds out an unordered pair of two nodes as a whole, all of its lines and both directions (also of a
// directed graph), by
//
//	h = hash(5, Seed, smaller key, larger key) / 2^64:  valid where h < Valid, test where h < Valid + Test
//
// with keys as in SPEC 8, one for each node; they are kept. So whether a pair is held out depends on itself and the
// seed alone (with SpareLast, on the other pairs of its ends too), not on the order of lines, and the numbers of pairs
// held out are those asked for up to the chance of a coin: within 4 sqrt(share * pairs) nearly always. Self loops are
// never held out. A node may lose all its pairs unless SpareLast is set; it then stays in the graph as an isolated one.
// With SpareLast all edges must go through Observe before the first Part.
//
// An error is about shares out of range.
func HoldoutByHash(keys []uint64, opt HoldoutOptions) (*Holdout, error) {
	if !(opt.Valid >= 0 && opt.Test >= 0 && opt.Valid+opt.Test <= 1) {
		return nil, fmt.Errorf("holdout of %g for valid and %g for test: want shares >= 0, together at most 1", opt.Valid, opt.Test)
	}
	h := &Holdout{opt: opt, keys: keys, base: Fold(Hash(forHoldout), uint64(opt.Seed))}
	if opt.SpareLast {
		h.last = make([]uint64, len(keys))
	}
	return h, nil
}

// HoldoutPairs holds out the pairs given, in both directions, of any relation; repeats don't matter. Errors: lengths that differ, nodes out
// of range, a self loop (they wrap an *EdgeError and name the list), and a pair in both lists (a *HeldTwiceError).
func HoldoutPairs(numNodes int, valid, test Pairs) (*Holdout, error) {
	for k, list := range []Pairs{valid, test} {
		if err := list.check(numNodes); err != nil {
			return nil, fmt.Errorf("%s pairs: %w", [...]string{"valid", "test"}[k], err)
		}
	}
	h := &Holdout{given: newPairTable(valid.Len() + test.Len())}
	for i := range valid.Src {
		h.given.add(unordered(valid.Src[i], valid.Dst[i]), HeldValid)
	}
	for i := range test.Src {
		if h.given.add(unordered(test.Src[i], test.Dst[i]), HeldTest) != HeldTest {
			return nil, &HeldTwiceError{test.Src[i], test.Dst[i]}
		}
	}
	return h, nil
}

// HeldTwiceError names a pair, as it is in the test list, that is in both.
type HeldTwiceError struct{ Src, Dst int32 }

func (e *HeldTwiceError) Error() string {
	return fmt.Sprintf("pair %d, %d is held out for both valid and test", e.Src, e.Dst)
}

// NeedsObserve reports whether all edges must go through Observe before the first Part.
func (h *Holdout) NeedsObserve() bool { return h.last != nil }

// Observe takes edges into account, in any order and any of them repeated. It may be called from several goroutines.
func (h *Holdout) Observe(src, dst []int32) {
	if h.last == nil {
		return
	}
	for i := range src {
		if src[i] == dst[i] {
			continue
		}
		hash := h.draw(src[i], dst[i])
		raise(&h.last[src[i]], hash)
		raise(&h.last[dst[i]], hash)
	}
}

// raise makes *x at least v.
func raise(x *uint64, v uint64) {
	for {
		old := atomic.LoadUint64(x)
		if v <= old || atomic.CompareAndSwapUint64(x, old, v) {
			return
		}
	}
}

func (h *Holdout) draw(src, dst int32) uint64 {
	a, b := h.keys[src], h.keys[dst]
	return Fold(Fold(h.base, min(a, b)), max(a, b))
}

// Part says where the edge src -> dst goes: HeldNone, HeldValid or HeldTest. It may be called from several goroutines,
// and fits Options.Part. Both ends are node numbers.
func (h *Holdout) Part(src, dst int32) uint8 {
	if src == dst {
		return HeldNone
	}
	if h.given != nil {
		return h.given.part(unordered(src, dst))
	}
	hash := h.draw(src, dst)
	x := float64(hash>>11) * 0x1p-53
	if x >= h.opt.Valid+h.opt.Test || h.last != nil && (hash == h.last[src] || hash == h.last[dst]) {
		return HeldNone
	}
	if x < h.opt.Valid {
		return HeldValid
	}
	return HeldTest
}

// pairTable is an open-addressing table of unordered pairs with a filter before it, so that most of the pairs that are not
// in it cost no cache miss.
type pairTable struct {
	// slots holds pairs, 0 where free (that would be a self loop); testBit marks those for test.
	slots  []uint64
	filter []uint64 // 16 bits a pair; bit hash>>shift is set for each
	shift  uint
}

// testBit is above the larger end of a pair, which has 31 bits.
const testBit = 1 << 31

func newPairTable(n int) *pairTable {
	size := 1 << bits.Len(uint(2*n+1)) // at most half full
	filterBits := max(6, bits.Len(uint(max(16*n, 1)-1)))
	return &pairTable{slots: make([]uint64, size), filter: make([]uint64, 1<<(filterBits-6)), shift: uint(64 - filterBits)}
}

// add puts a pair in and returns the part that it is of: the one it was put in with first.
func (t *pairTable) add(pair uint64, part uint8) uint8 {
	hash := mix(pair)
	t.filter[hash>>t.shift>>6] |= 1 << (hash >> t.shift & 63)
	for i := hash & uint64(len(t.slots)-1); ; i = (i + 1) & uint64(len(t.slots)-1) {
		switch t.slots[i] &^ testBit {
		case 0:
			if part == HeldTest {
				pair |= testBit
			}
			t.slots[i] = pair
			return part
		case pair:
			return partOf(t.slots[i])
		}
	}
}

func (t *pairTable) part(pair uint64) uint8 {
	hash := mix(pair)
	if t.filter[hash>>t.shift>>6]>>(hash>>t.shift&63)&1 == 0 {
		return HeldNone
	}
	for i := hash & uint64(len(t.slots)-1); ; i = (i + 1) & uint64(len(t.slots)-1) {
		switch t.slots[i] &^ testBit {
		case 0:
			return HeldNone
		case pair:
			return partOf(t.slots[i])
		}
	}
}

func partOf(slot uint64) uint8 {
	if slot&testBit != 0 {
		return HeldTest
	}
	return HeldValid
}

// unordered packs a pair with the smaller node above.
func unordered(a, b int32) uint64 {
	return uint64(min(a, b))<<32 | uint64(max(a, b))
}

// Pairs is a list of node pairs Src[i], Dst[i]. Rel and Weight are nil, or one relation and one weight a pair.
type Pairs struct {
	Src, Dst []int32
	Rel      []int32
	Weight   []float32
}

// Len returns the number of pairs.
func (p *Pairs) Len() int { return len(p.Src) }

// check checks lengths, bounds, and that no pair is a self loop.
func (p *Pairs) check(numNodes int) error {
	if len(p.Dst) != len(p.Src) || p.Rel != nil && len(p.Rel) != len(p.Src) || p.Weight != nil && len(p.Weight) != len(p.Src) {
		return fmt.Errorf("%d src, %d dst, %d relations and %d weights: lengths differ", len(p.Src), len(p.Dst), len(p.Rel), len(p.Weight))
	}
	for i, src := range p.Src {
		dst := p.Dst[i]
		if uint32(src) >= uint32(numNodes) || uint32(dst) >= uint32(numNodes) {
			return &EdgeError{Err: ErrNodeRange, Index: i, Src: src, Dst: dst}
		}
		if src == dst {
			return &EdgeError{Err: ErrLoop, Index: i, Src: src, Dst: dst}
		}
	}
	return nil
}

// Distinct returns the distinct pairs of p, ascending by (Src, Dst, Rel): arcs as they are when directed, else with
// the smaller node as Src. Weights of repeats are added as those of edges are (EdgeList.Rows): ascending, in float64, rounded
// once; a sum that is not finite in float32 is an *EdgeError. The result doesn't depend on the order of p, has
// non-nil lists wherever p has, and shares nothing with p. O(n) by radix, O(n log n) with relations.
func (p *Pairs) Distinct(directed bool) (Pairs, error) {
	keys := make([]uint64, p.Len())
	for i, src := range p.Src {
		dst := p.Dst[i]
		if !directed && src > dst {
			src, dst = dst, src
		}
		keys[i] = uint64(src)<<32 | uint64(dst)
	}
	out := Pairs{Src: []int32{}, Dst: []int32{}}
	weights := slices.Clone(p.Weight)
	var rels []int32
	if p.Rel != nil {
		out.Rel = []int32{}
		keys, rels, weights = p.sortRelational(keys)
	} else {
		s := keySort{Keys: keys, spareKeys: make([]uint64, len(keys)), Vals: weights}
		if weights != nil {
			s.spareVals = make([]float32, len(keys))
		}
		if err := s.sortBits(context.Background(), 0, 63, 1); err != nil {
			return out, err
		}
		keys, weights = s.Keys, s.Vals
	}
	if p.Weight != nil {
		out.Weight = []float32{}
	}
	for i := 0; i < len(keys); {
		first := i
		for i++; i < len(keys) && keys[i] == keys[first] && at(rels, i) == at(rels, first); i++ {
		}
		src, dst := int32(keys[first]>>32), int32(uint32(keys[first]))
		out.Src, out.Dst = append(out.Src, src), append(out.Dst, dst)
		if rels != nil {
			out.Rel = append(out.Rel, rels[first])
		}
		if weights != nil {
			sum, ok := sumWeights(weights[first:i])
			if !ok {
				return out, &EdgeError{Err: ErrWeightSum, Index: -1, Src: src, Dst: dst, Weight: sum}
			}
			out.Weight = append(out.Weight, float32(sum))
		}
	}
	return out, nil
}

// sortRelational returns keys in order, then by relation, with the relations and weights of each.
func (p *Pairs) sortRelational(keys []uint64) (sorted []uint64, rels []int32, weights []float32) {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(keys[i], keys[j]), cmp.Compare(p.Rel[i], p.Rel[j]))
	})
	sorted, rels = make([]uint64, len(keys)), make([]int32, len(keys))
	if p.Weight != nil {
		weights = make([]float32, len(keys))
	}
	for k, i := range order {
		if sorted[k], rels[k] = keys[i], p.Rel[i]; weights != nil {
			weights[k] = p.Weight[i]
		}
	}
	return sorted, rels, weights
}

// CheckDistinct checks that p is what Distinct gives: lengths, bounds, order.
func (p *Pairs) CheckDistinct(numNodes int, directed bool) error {
	if len(p.Dst) != len(p.Src) || p.Rel != nil && len(p.Rel) != len(p.Src) || p.Weight != nil && len(p.Weight) != len(p.Src) {
		return fmt.Errorf("%d src, %d dst, %d relations and %d weights: lengths differ", len(p.Src), len(p.Dst), len(p.Rel), len(p.Weight))
	}
	for i, src := range p.Src {
		dst := p.Dst[i]
		switch {
		case uint32(src) >= uint32(numNodes) || uint32(dst) >= uint32(numNodes):
			return fmt.Errorf("pair %d is %d, %d, but there are %d nodes", i, src, dst, numNodes)
		case !directed && src > dst:
			return fmt.Errorf("pair %d is %d, %d: want the smaller node first", i, src, dst)
		case i > 0 && cmp.Or(cmp.Compare(p.Src[i-1], src), cmp.Compare(p.Dst[i-1], dst), cmp.Compare(at(p.Rel, i-1), at(p.Rel, i))) >= 0:
			return fmt.Errorf("pair %d is %d, %d after %d, %d: want them ascending, each once", i, src, dst, p.Src[i-1], p.Dst[i-1])
		}
	}
	return nil
}

// NumMissing counts the pairs of p whose nodes no pair of in has, regardless of relations. Both are as Distinct gives them.
func (p *Pairs) NumMissing(in *Pairs) int64 {
	var missing int64
	j := 0
	for i, src := range p.Src {
		order := 1
		for ; j < in.Len(); j++ {
			if order = cmp.Or(cmp.Compare(in.Src[j], src), cmp.Compare(in.Dst[j], p.Dst[i])); order >= 0 {
				break
			}
		}
		if order != 0 {
			missing++
		}
	}
	return missing
}

// NumShared counts the pairs, with their relations, that p and other both have. Both are as Distinct gives them.
func (p *Pairs) NumShared(other *Pairs) int64 {
	var shared int64
	for i, j := 0, 0; i < p.Len() && j < other.Len(); {
		order := cmp.Or(cmp.Compare(p.Src[i], other.Src[j]), cmp.Compare(p.Dst[i], other.Dst[j]), cmp.Compare(at(p.Rel, i), at(other.Rel, j)))
		if order == 0 {
			shared++
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
	}
	return shared
}

// HeldLines collects lines that were held out. Add fits Options.Held.
type HeldLines struct {
	Weighted, Relational bool // whether the lines have weights, relations
	Valid, Test          Pairs
}

// Add takes one line. Not for concurrent use.
func (h *HeldLines) Add(part uint8, src, dst int32, weight float32, rel int32) {
	p := &h.Valid
	if part == HeldTest {
		p = &h.Test
	}
	p.Src, p.Dst = append(p.Src, src), append(p.Dst, dst)
	if h.Weighted {
		p.Weight = append(p.Weight, weight)
	}
	if h.Relational {
		p.Rel = append(p.Rel, rel)
	}
}

// Len returns the number of lines.
func (h *HeldLines) Len() int { return h.Valid.Len() + h.Test.Len() }

// Distinct returns the pairs of the lines of both parts (Pairs.Distinct). With Weighted and Relational
// both have weights, relations, also where there are no lines.
func (h *HeldLines) Distinct(directed bool) (valid, test Pairs, err error) {
	for _, p := range []*Pairs{&h.Valid, &h.Test} {
		if h.Weighted && p.Weight == nil {
			p.Weight = []float32{}
		}
		if h.Relational && p.Rel == nil {
			p.Rel = []int32{}
		}
	}
	if valid, err = h.Valid.Distinct(directed); err != nil {
		return valid, test, err
	}
	test, err = h.Test.Distinct(directed)
	return valid, test, err
}
