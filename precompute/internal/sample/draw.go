package sample

import (
	"math"
	"math/bits"

	"github.com/prelift/prelift/snapshot/graph"
)

// Method is the rule by which a node of more neighbours than its fanout takes some of them. All are without
// replacement, and unbiased: the sum over the neighbours taken, each counted by its importance, has the sum over all of them for its mean.
type Method uint8

const (
	// Uniform takes the k of the smallest Draw. Importance is degree/k.
	Uniform Method = iota
	// Weighted takes the k of the largest w/u, with the weight w of the edge and u = unit(Draw) in (0, 1]: priority sampling
	// (Duffield, Lund and Thorup, "Priority sampling for estimation of arbitrary subset sums", JACM 54(6), 2007). With tau
	// the (k+1)-th largest w/u an edge taken stands for the weight max(w, tau), so its importance is max(1, tau/w). An edge of
	// weight 0 is never taken, whatever the fanout, All included.
	Weighted
	// Labor takes a neighbour where LaborDraw/2^64 is below k/degree: LABOR-0 (Balin and Catalyurek, "Layer-neighbor sampling:
	// defusing neighborhood explosion in GNNs", NeurIPS 2023), by Poisson sampling. All dst of a hop share the draw of a src, so they
	// tend to take the same ones, and a batch needs fewer rows than with Uniform at the same variance of each dst. The number taken is k in the mean
	// only, and none at all with a chance below e^-k. Importance is degree/k. (Exactly k, by sequential Poisson sampling, would have no exact chances to divide by.)
	Labor
)

// String returns the word of a flag.
func (m Method) String() string { return [...]string{"uniform", "weighted", "labor"}[m] }

// take appends to a layer what v takes of its neighbours, ascending, at a hop that base is of; k < 0 takes all. It returns how many
// neighbours v has, itself left out.
func (s *Sampler) take(layer *Layer, base uint64, v int32, k int) (numNeighbours int) {
	row := s.in.Row(v)
	if s.opt.Method == Weighted {
		s.takeWeighted(layer, base, v, k)
		return 0
	}
	if k < 0 || len(row) <= k {
		return s.takeAll(layer, v, row)
	}
	places, numNeighbours := s.places[:0], 0
	switch {
	case k == 0:
	case s.opt.Method == Labor:
		places, numNeighbours = s.placesLabor(base, v, row, k)
	default:
		places, numNeighbours = s.placesUniform(base, v, row, k)
	}
	if numNeighbours > 0 && numNeighbours <= k { // fewer without v itself
		return s.takeAll(layer, v, row)
	}
	s.takePlaces(layer, v, row, places)
	return numNeighbours
}

// takeAll appends all neighbours of v.
func (s *Sampler) takeAll(layer *Layer, v int32, row []int32) (numNeighbours int) {
	start := len(layer.Indices)
	for _, u := range row {
		if u != v {
			layer.Indices = append(layer.Indices, u)
		}
	}
	if s.opt.KeepEntries {
		for at, u := range row {
			if u != v {
				layer.Entries = append(layer.Entries, s.in.Indptr[v]+int64(at))
			}
		}
	}
	return len(layer.Indices) - start
}

// takePlaces appends the neighbours at these places of v's row.
func (s *Sampler) takePlaces(layer *Layer, v int32, row []int32, places []int32) {
	for _, at := range places {
		layer.Indices = append(layer.Indices, row[at])
	}
	if s.opt.KeepEntries {
		for _, at := range places {
			layer.Entries = append(layer.Entries, s.in.Indptr[v]+int64(at))
		}
	}
}

// placesUniform returns the places in v's row, of more than k entries, of the k neighbours of the smallest draws, ascending, and the
// number of neighbours. The places are valid until the next call. Expected O(degree): it looks for draws up to a limit that leaves few more than k, and
// again with a higher one where those don't suffice.
func (s *Sampler) placesUniform(base uint64, v int32, row []int32, k int) (places []int32, numNeighbours int) {
	base = graph.Fold(base, s.keys[v])
	for want := k; ; want = 2*want + 8 {
		sel, loops, limit := &s.sel, 0, likelyLimit(want, len(row))
		sel.n = 0
		for start := 0; start < len(row); start += blockLen {
			block := row[start:min(start+blockLen, len(row))]
			sel.reserve(len(block) + 1)
			loops += s.addUniform(base, v, block, start, limit)
			if sel.n > 2*k+slackLen {
				limit = sel.cutEven(k, limit)
			}
		}
		numNeighbours = len(row) - loops
		if sel.n >= min(k, numNeighbours) {
			sel.cutEven(k, limit)
			return sel.places[:sel.n], numNeighbours
		}
	}
}

// addUniform adds the entries of a block of v's row, from place start on, whose draws are at most limit to the selection, and returns how
// many entries lead to v itself.
func (s *Sampler) addUniform(base uint64, v int32, block []int32, start int, limit uint64) (loops int) {
	draws := s.blockDraws[:len(block)]
	at := drawBlock(draws, base, block, s.keys, v)
	if s.opt.RelKeys != nil {
		rels := s.in.Rel[s.in.Indptr[v]+int64(start):][:len(block)]
		for i, rel := range rels {
			draws[i] = graph.Fold(draws[i], s.opt.RelKeys[rel])
		}
	}
	for ; at >= 0 && at < len(block) && block[at] == v; at++ {
		draws[at] = math.MaxUint64 // never among the smallest unless limit takes all
		loops++
	}
	s.sel.addBelow(draws, start, limit)
	if limit == math.MaxUint64 && loops > 0 {
		s.sel.drop(start+at-loops, start+at)
	}
	return loops
}

// drawBlock sets draws[i] to Fold(base, keys[block[i]]). It returns the first place of v in the block, -1 where it isn't there.
func drawBlock(draws []uint64, base uint64, block []int32, keys []uint64, v int32) (loop int) {
	loop = -1
	for i, u := range block {
		draws[i] = graph.Fold(base, keys[u])
		if u == v && loop < 0 {
			loop = i
		}
	}
	return loop
}

// placesLabor returns the places in v's row of the neighbours that v takes by Labor, ascending, and the number of
// neighbours. The places are valid until the next call.
func (s *Sampler) placesLabor(base uint64, v int32, row []int32, k int) (places []int32, numNeighbours int) {
	numNeighbours = len(row)
	first, loops := s.loops(v, row)
	if numNeighbours -= loops; numNeighbours <= k {
		return nil, numNeighbours
	}
	limit := laborLimit(k, numNeighbours)
	if cap(s.places) < len(row)+1 {
		s.places = make([]int32, len(row)+len(row)/4+1)
	}
	places = s.places[:len(row)+1]
	n := 0
	for start, part := range [2][]int32{row[:first], row[first+loops:]} {
		if start == 1 {
			start = first + loops
		}
		for i, u := range part {
			_, under := bits.Sub64(graph.Fold(base, s.keys[u]), limit, 0)
			places[n] = int32(start + i)
			n += int(under)
		}
	}
	return places[:n], numNeighbours
}

// laborLimit is floor(2^64 * k/degree), for k < degree: a draw below it takes the src.
func laborLimit(k, degree int) uint64 {
	limit, _ := bits.Div64(uint64(k), 0, uint64(degree))
	return limit
}

// loops returns the place of the first entry of v's row that leads to v, and how many do.
func (s *Sampler) loops(v int32, row []int32) (first, n int) {
	entry, ok := s.in.Loop(v)
	first = int(entry - s.in.Indptr[v])
	for ok && first+n < len(row) && row[first+n] == v {
		n++
	}
	return first, n
}

// takeWeighted appends what v takes by Weighted.
func (s *Sampler) takeWeighted(layer *Layer, base uint64, v int32, k int) {
	row, weights := s.in.Row(v), s.in.RowWeights(v)
	if k == 0 {
		return
	}
	base = graph.Fold(base, s.keys[v])
	sel, want, limit := &s.sel, k+1, uint64(math.MaxUint64)
	if k < 0 {
		want = len(row)
	}
	sel.n = 0
	for start := 0; start < len(row); start += blockLen {
		end := min(start+blockLen, len(row))
		sel.reserve(end - start)
		for at := start; at < end; at++ {
			u, w := row[at], weights[at]
			if u == v || w == 0 {
				continue
			}
			x := graph.Fold(base, s.keys[u])
			if s.opt.RelKeys != nil {
				x = graph.Fold(x, s.opt.RelKeys[s.in.Rel[s.in.Indptr[v]+int64(at)]])
			}
			if x = ^priority(w, x); x <= limit {
				sel.draws[sel.n], sel.places[sel.n] = x, int32(at)
				sel.n++
			}
		}
		if sel.n > 2*want+slackLen {
			limit = min(limit, sel.cut(want))
		}
	}
	sel.cut(want)
	tau := 0.0
	if k >= 0 && sel.n > k {
		// The least of the k+1 isn't taken: it is tau. Of equal ones it is the last, as cut(k) keeps those before.
		least := sel.draws[0]
		for _, x := range sel.draws[1:sel.n] {
			least = max(least, x)
		}
		tau = math.Float64frombits(^least)
		sel.cut(k)
	}
	for _, at := range sel.places[:sel.n] {
		layer.EdgeImportance = append(layer.EdgeImportance, priorityImportance(weights[at], tau))
	}
	s.takePlaces(layer, v, row, sel.places[:sel.n])
}

// priority is w/u as the bits of a float64, which for numbers over 0 are in the order of the numbers. w is over 0.
func priority(w float32, draw uint64) uint64 { return math.Float64bits(float64(w) / unit(draw)) }

// priorityImportance is max(w, tau)/w: what an edge of weight w that was taken stands for over what it is.
func priorityImportance(w float32, tau float64) float32 {
	if tau <= float64(w) {
		return 1
	}
	return float32(tau / float64(w))
}
