package sample

import (
	"math"
	"math/bits"
	"slices"

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
// neighbours v has, itself left out; 0 by Weighted.
func (s *Sampler) take(layer *Layer, base uint64, v int32, k int) (numNeighbours int) {
	row := s.in.Row(v)
	switch {
	case k == 0:
		return 0
	case s.opt.Method == Weighted && k < 0:
		s.takeAllWeighted(layer, v, row)
		return 0
	case k < 0 || len(row) <= k && s.opt.Method != Weighted:
		return s.takeAll(layer, v, row)
	}
	if s.row.of != v {
		s.row.gather(v, row, s.keys)
	}
	numNeighbours = s.row.numNeighbours()
	switch {
	case s.opt.Method == Weighted:
		s.takeWeighted(layer, graph.Fold(base, s.keys[v]), v, row, k)
		return 0
	case numNeighbours <= k:
		return s.takeAll(layer, v, row)
	case s.opt.Method == Labor:
		s.takePlaces(layer, v, row, s.labor(base, k))
	default:
		s.takePlaces(layer, v, row, s.uniform(graph.Fold(base, s.keys[v]), s.rels(v), k))
	}
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

// labor returns the places, ascending, of the entries of the row that was gathered last that are taken by Labor, of more than k neighbours. Valid until the next call.
func (p *picker) labor(base uint64, k int) (places []int32) {
	limit := laborLimit(k, p.row.numNeighbours())
	p.sel.n = 0
	if limit == 0 {
		return nil
	}
	for _, b := range p.row.blocks {
		p.sel.reserve(b[1] - b[0] + 1)
		p.sel.addBelow(p.draw(base, b, nil), b[0], limit-1)
	}
	return p.sel.places[:p.sel.n]
}

// laborLimit is floor(2^64 * k/degree), for k < degree: a draw below it takes the src.
func laborLimit(k, degree int) uint64 {
	limit, _ := bits.Div64(uint64(k), 0, uint64(degree))
	return limit
}

// takeAllWeighted appends all neighbours of v by an edge of positive weight.
func (s *Sampler) takeAllWeighted(layer *Layer, v int32, row []int32) {
	for at, w := range s.in.RowWeights(v) {
		if w > 0 && row[at] != v {
			layer.Indices = append(layer.Indices, row[at])
			layer.EdgeImportance = append(layer.EdgeImportance, 1)
			if s.opt.KeepEntries {
				layer.Entries = append(layer.Entries, s.in.Indptr[v]+int64(at))
			}
		}
	}
}

// takeWeighted appends what v takes by Weighted of its row, which was gathered last; k is at least 1.
func (s *Sampler) takeWeighted(layer *Layer, base uint64, v int32, row []int32, k int) {
	weights := s.in.RowWeights(v)
	sel, want, limit := &s.sel, k+1, uint64(math.MaxUint64)
	sel.n = 0
	for _, b := range s.row.blocks {
		draws := s.picker.draw(base, b, s.rels(v))
		sel.reserve(len(draws))
		for i, w := range weights[b[0]:b[1]] {
			if w == 0 {
				continue
			}
			if x := ^priority(float64(w), draws[i]); x <= limit {
				sel.draws[sel.n], sel.places[sel.n] = x, int32(b[0]+i)
				sel.n++
			}
		}
		if sel.n > 2*want+slackLen {
			limit = sel.cut(want)
		}
	}
	sel.cut(want)
	tau := 0.0
	if sel.n > k {
		// The least of the k+1 isn't taken: it is tau. Of equal ones it is the last, as cut(k) keeps those before.
		tau = math.Float64frombits(^slices.Max(sel.draws[:sel.n]))
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
