package sample

import (
	"math"
	"math/bits"

	"github.com/prelift/prelift/snapshot/graph"
)

// candidate draws kept by a selection before it is cut down to those that are wanted.
const (
	blockLen = 512 // entries of a row that are looked at between two cuts
	slackLen = 64  // candidates over twice those wanted that wait for a cut

	rareShare = 12 // where less than one draw of so many is a candidate a branch is cheaper than none
)

// selection keeps the places of the smallest draws of a row, in the order of the row. It looks at rows in blocks, so
// that its memory is bounded by the number wanted and not by the degree.
type selection struct {
	draws   []uint64
	places  []int32
	n       int // candidates held: draws[:n] and places[:n], places ascending
	scratch []uint64
}

// reserve makes room for n candidates more.
func (s *selection) reserve(n int) {
	if need := s.n + n; len(s.draws) < need {
		draws, places := make([]uint64, 2*need), make([]int32, 2*need)
		copy(draws, s.draws[:s.n])
		copy(places, s.places[:s.n])
		s.draws, s.places = draws, places
	}
}

// addBelow adds draws[i] <= limit under place start+i.
func (s *selection) addBelow(draws []uint64, start int, limit uint64) {
	toDraws, toPlaces := s.draws[s.n:][:len(draws)+1], s.places[s.n:][:len(draws)+1]
	n := 0
	if limit < math.MaxUint64/rareShare {
		for i, x := range draws {
			if x <= limit {
				toDraws[n], toPlaces[n] = x, int32(start+i)
				n++
			}
		}
	} else { // a branch would often be mispredicted
		for i, x := range draws {
			toDraws[n], toPlaces[n] = x, int32(start+i)
			_, over := bits.Sub64(limit, x, 0)
			n += 1 - int(over)
		}
	}
	s.n += n
}

// cut leaves the k candidates of the smallest draws, of equal ones those that come first, and returns the largest
// draw left. With k candidates or fewer it leaves all and returns the largest number. k is at least 1.
func (s *selection) cut(k int) (limit uint64) {
	if s.n <= k {
		return math.MaxUint64
	}
	s.scratch = append(s.scratch[:0], s.draws[:s.n]...)
	limit = smallest(s.scratch, k-1)
	ties := k
	for _, x := range s.draws[:s.n] {
		if x < limit {
			ties--
		}
	}
	n := 0
	for i, x := range s.draws[:s.n] {
		if x > limit {
			continue
		}
		if x == limit {
			if ties == 0 {
				continue
			}
			ties--
		}
		s.draws[n], s.places[n] = x, s.places[i]
		n++
	}
	s.n = n
	return limit
}

// cutEven is cut for draws that are spread about evenly over 0 .. limit: it looks for a number that k of them are up to, by the share of
// draws between two bounds, and leaves ties and bad luck to cut.
func (s *selection) cutEven(k int, limit uint64) uint64 {
	if s.n <= k {
		return limit
	}
	lo, hi, numLo, numHi := uint64(0), limit, 0, s.n // numLo draws are below lo, numHi up to hi
	for range 6 {
		guess := lo + uint64(float64(hi-lo)*((float64(k-numLo)+0.5)/float64(numHi-numLo+1)))
		n := 0
		for _, x := range s.draws[:s.n] {
			_, over := bits.Sub64(guess, x, 0)
			n += 1 - int(over)
		}
		switch {
		case n == k:
			s.leave(guess)
			return guess
		case n < k:
			lo, numLo = guess, n
		default:
			hi, numHi = guess, n
		}
	}
	return s.cut(k)
}

// leave drops the candidates of a draw over limit.
func (s *selection) leave(limit uint64) {
	draws, places, n := s.draws[:s.n], s.places[:s.n], 0
	for i, x := range draws {
		draws[n], places[n] = x, places[i]
		_, over := bits.Sub64(limit, x, 0)
		n += 1 - int(over)
	}
	s.n = n
}

// smallest returns the i-th smallest of a, from 0, and reorders a: quickselect (Hoare, CACM 1961) with the median of
// three, then insertion. O(len(a)) expected, as draws are hashes; the answer doesn't depend on luck.
func smallest(a []uint64, i int) uint64 {
	for len(a) > 12 {
		lo, mid, hi := a[0], a[len(a)/2], a[len(a)-1]
		pivot := max(min(lo, mid), min(max(lo, mid), hi))
		// a[:l] < pivot, a[l:r] == pivot, a[r:] > pivot, in the end.
		l, at, r := 0, 0, len(a)
		for at < r {
			switch x := a[at]; {
			case x < pivot:
				a[at], a[l] = a[l], x
				l++
				at++
			case x > pivot:
				r--
				a[at], a[r] = a[r], x
			default:
				at++
			}
		}
		switch {
		case i < l:
			a = a[:l]
		case i < r:
			return pivot
		default:
			a, i = a[r:], i-r
		}
	}
	for j := 1; j < len(a); j++ {
		x, to := a[j], j
		for ; to > 0 && a[to-1] > x; to-- {
			a[to] = a[to-1]
		}
		a[to] = x
	}
	return a[i]
}

// likelyLimit is a draw up to which k of n uniform ones lie but for one case in thirty or so: the quantile of k and two standard
// deviations more. The largest number where that is about all of them.
func likelyLimit(k, n int) uint64 {
	want := float64(k) + 2*math.Sqrt(float64(k)) + 1
	share := want / float64(n)
	if share >= 1 {
		return math.MaxUint64
	}
	return uint64(share * 0x1p64)
}

// rowKeys are the keys of the nodes of a row, brought together so that draws of several hops share the cost of finding them, which
// is the larger part where the keys of a graph are more than a cache holds.
type rowKeys struct {
	of     int32 // whose row; -1 before the first
	keys   []uint64
	first  int // place of the first entry that leads to the node itself
	loops  int // such entries
	blocks [][2]int
}

// gather takes a row of v in, of the graph whose keys these are.
func (r *rowKeys) gather(v int32, row []int32, keys []uint64) {
	r.of, r.keys, r.first, r.loops = v, resize(r.keys, len(row)), 0, 0
	for i, u := range row {
		r.keys[i] = keys[u]
		if u == v {
			r.first = i
			r.loops++
		}
	}
	if r.loops > 1 {
		r.first -= r.loops - 1
	}
	r.blocks = r.blocks[:0]
	for _, part := range [2][2]int{{0, r.first}, {r.first + r.loops, len(row)}} {
		for start := part[0]; start < part[1]; start += blockLen {
			r.blocks = append(r.blocks, [2]int{start, min(start+blockLen, part[1])})
		}
	}
}

// numNeighbours returns the entries that lead to other nodes.
func (r *rowKeys) numNeighbours() int { return len(r.keys) - r.loops }

// picker draws from the nodes of a row. Not safe for concurrent use.
type picker struct {
	keys       []uint64
	relKeys    []uint64 // nil where nodes are drawn, not edges of a relation
	row        rowKeys
	sel        selection
	blockDraws [blockLen]uint64
}

// newPicker makes a picker; relKeys may be nil.
func newPicker(keys, relKeys []uint64) picker {
	return picker{keys: keys, relKeys: relKeys, row: rowKeys{of: -1}}
}

// uniform returns the places, ascending, of the k entries of the row that was gathered last that have the smallest Fold(base, key), entries to the node itself left
// out; of all where there are no more. rels are the relations of the row's edges, which are folded in too, or nil. k is at least 1. The places are valid until the
// next call. Expected O(length of the row): it looks for draws up to a limit that leaves few more than k, and again with a higher one where those
// don't suffice.
func (p *picker) uniform(base uint64, rels []int32, k int) (places []int32) {
	sel := &p.sel
	for want := k; ; want = 2*want + 8 {
		limit := likelyLimit(want, len(p.row.keys))
		sel.n = 0
		for _, b := range p.row.blocks {
			sel.reserve(b[1] - b[0] + 1)
			sel.addBelow(p.draw(base, b, rels), b[0], limit)
			if sel.n > 2*k+slackLen {
				limit = sel.cutEven(k, limit)
			}
		}
		if sel.n >= min(k, p.row.numNeighbours()) {
			sel.cutEven(k, limit)
			return sel.places[:sel.n]
		}
	}
}

// draw returns the draws of a block of the row; until the next call.
func (p *picker) draw(base uint64, block [2]int, rels []int32) []uint64 {
	keys := p.row.keys[block[0]:block[1]]
	draws := p.blockDraws[:len(keys)]
	for i, key := range keys {
		draws[i] = graph.Fold(base, key)
	}
	if rels != nil {
		for i, rel := range rels[block[0]:block[1]] {
			draws[i] = graph.Fold(draws[i], p.relKeys[rel])
		}
	}
	return draws
}
