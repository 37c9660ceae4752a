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
		places, numNeighbours = s.uniform(graph.Fold(base, s.keys[v]), v, row, s.rels(v), k)
	}
	if numNeighbours > 0 && numNeighbours <= k { // fewer without v itself
		return s.takeAll(layer, v, row)
	}
	s.takePlaces(layer, v, row, places)
	return numNeighbours
}

// rels returns the relations of v's row, nil where they don't count.
func (s *Sampler) rels(v int32) []int32 {
	if s.relKeys == nil {
		return nil
	}
	return s.in.Rel[s.in.Indptr[v]:s.in.Indptr[v+1]]
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

// placesLabor returns the places in v's row of the neighbours that v takes by Labor, ascending, and the number of
// neighbours. The places are valid until the next call.
func (s *Sampler) placesLabor(base uint64, v int32, row []int32, k int) (places []int32, numNeighbours int) {
	numNeighbours = len(row)
	first, loops := loopsOf(s.in, v)
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
			if s.relKeys != nil {
				x = graph.Fold(x, s.relKeys[s.in.Rel[s.in.Indptr[v]+int64(at)]])
			}
			if x = ^priority(float64(w), x); x <= limit {
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
func priority(w float64, draw uint64) uint64 { return math.Float64bits(w / unit(draw)) }

// priorityImportance is max(w, tau)/w: what an edge of weight w that was taken stands for over what it is.
func priorityImportance(w float32, tau float64) float32 {
	if tau <= float64(w) {
		return 1
	}
	return float32(tau / float64(w))
}
