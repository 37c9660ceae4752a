package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
)

// MaxNodes is the most nodes a graph can have: node numbers are int32.
const MaxNodes = math.MaxInt32

// CSR holds the rows of a graph: row v has the entries Indptr[v] .. Indptr[v+1]-1, and
// Indices[e] is the other end of entry e. Every row is strictly ascending, so it holds each
// neighbour once; a self loop is one entry. Indptr has len NumNodes+1 and Indptr[0] = 0.
// Weight is nil for an unweighted graph (every entry counts 1), else one finite weight >= 0 an entry.
type CSR struct {
	Indptr  []int64
	Indices []int32
	Weight  []float32
}

// NumNodes returns the number of rows.
func (c *CSR) NumNodes() int { return max(len(c.Indptr)-1, 0) }

// NumEntries returns the number of entries, self loops included.
func (c *CSR) NumEntries() int64 { return int64(len(c.Indices)) }

// Row returns the neighbours of v, ascending; read-only, shared with c.
func (c *CSR) Row(v int32) []int32 { return c.Indices[c.Indptr[v]:c.Indptr[v+1]] }

// RowWeights returns the weights of Row(v), nil for an unweighted graph; read-only, shared with c.
func (c *CSR) RowWeights(v int32) []float32 {
	if c.Weight == nil {
		return nil
	}
	return c.Weight[c.Indptr[v]:c.Indptr[v+1]]
}

// Degree returns the number of entries of row v, a self loop included.
func (c *CSR) Degree(v int32) int64 { return c.Indptr[v+1] - c.Indptr[v] }

// Loop returns the entry of v's self loop, and whether there is one. O(log degree).
func (c *CSR) Loop(v int32) (entry int64, ok bool) {
	i, ok := slices.BinarySearch(c.Row(v), v)
	return c.Indptr[v] + int64(i), ok
}

// neighbours returns the number of entries of row v other than its self loop.
func (c *CSR) neighbours(v int32) int64 {
	d := c.Degree(v)
	if _, ok := c.Loop(v); ok {
		d--
	}
	return d
}

// Graph is what Build makes. In has a row per dst. Out, for directed graphs only, holds the same
// arcs a row per src, Indices being the dst.
type Graph struct {
	In    CSR
	Out   *CSR
	Audit Audit
}

// Audit says what Build did to the lines and what came out. A neighbour is never the node
// itself; degree means in-row entries without the self loop.
type Audit struct {
	NumNodes         int64
	NumLines         int64 // edges given
	NumEdges         int64 // undirected: distinct unordered pairs; directed: distinct arcs; self loops included
	NumEntries       int64 // entries of In
	SelfLoops        int64 // nodes with a self loop
	DuplicatesMerged int64 // NumLines - NumEdges; undirected, b,a after a,b is a duplicate
	NumPairs         int64 // distinct unordered pairs without self loops
	OneDirectional   int64 // of NumPairs, those listed in one direction only
	IsolatedNodes    int64 // nodes with no neighbour in either direction
	MaxDegree        int64
	// DegreeHistogram counts nodes by degree: [0] has degree 0, [1] degree 1, [2] 2..3,
	// [k] 2^(k-1)..2^k-1. It ends at the bucket of MaxDegree.
	DegreeHistogram []int64
}

// Options steer Build.
type Options struct {
	Directed bool // keep directions, and the out-rows too; else every pair is stored both ways
	Threads  int  // 0: GOMAXPROCS; the result does not depend on it
}

// What can be wrong with an edge; an *EdgeError wraps one of them.
var (
	ErrNodeRange = errors.New("node number out of range")
	ErrWeight    = errors.New("weight is not finite and >= 0")
	ErrWeightSum = errors.New("sum of merged weights is over the float32 range")
	ErrLoop      = errors.New("a self loop is no pair to hold out") // HoldoutPairs only
)

// EdgeError names an edge that Build refuses.
type EdgeError struct {
	Err      error   // ErrNodeRange, ErrWeight or ErrWeightSum
	Index    int     // place in src and dst, from 0; -1 for ErrWeightSum, which is about several
	Src, Dst int32   // undirected, ErrWeightSum: the smaller end first
	Weight   float64 // the weight, or the sum for ErrWeightSum
}

func (e *EdgeError) Error() string {
	switch {
	case e.Index < 0:
		return fmt.Sprintf("edge %d -> %d: %v: %g", e.Src, e.Dst, e.Err, e.Weight)
	case e.Err == ErrWeight:
		return fmt.Sprintf("edge %d (%d -> %d): %v: %g", e.Index, e.Src, e.Dst, e.Err, e.Weight)
	}
	return fmt.Sprintf("edge %d (%d -> %d): %v", e.Index, e.Src, e.Dst, e.Err)
}

func (e *EdgeError) Unwrap() error { return e.Err }

// Build makes the rows of the graph with numNodes nodes and edges src[i] -> dst[i], in any order,
// any of them repeated. weight is nil, or one finite weight >= 0 an edge.
//
// Undirected (the default), a,b and b,a are one pair, stored both ways with one weight; directed,
// they are two arcs. A self loop is stored once. Repeated edges collapse; weighted, the weights of
// one pair (arc) are sorted ascending, added in that order in float64 and rounded to float32 once,
// so that the order of the lines changes nothing.
//
// The inputs are not kept or changed. Errors: an *EdgeError (of several, the one of the lowest
// index, then of the lowest pair), lengths that differ, too many nodes, or ctx's. Time is
// O(E ceil(2 log2(N) / 11) + N); beside the result it needs
// 16 bytes an edge (24 weighted) and 8 a node.
func Build(ctx context.Context, numNodes int, src, dst []int32, weight []float32, opt Options) (*Graph, error) {
	if numNodes < 0 || numNodes > MaxNodes {
		return nil, fmt.Errorf("%d nodes: a graph has 0 to %d", numNodes, int64(MaxNodes))
	}
	if len(src) != len(dst) || weight != nil && len(weight) != len(src) {
		return nil, fmt.Errorf("%d src, %d dst and %d weights: lengths differ", len(src), len(dst), len(weight))
	}
	threads := numThreads(opt.Threads)
	pack := packing{bits: uint(bits.Len(uint(max(numNodes-1, 0))))}

	sorted, err := packEdges(numNodes, src, dst, weight, pack, opt.Directed, threads)
	if err != nil {
		return nil, err
	}
	if err := sorted.sortBits(ctx, 1, int(2*pack.bits), threads); err != nil {
		return nil, err
	}
	pairs, err := mergeEqual(sorted, pack, opt.Directed, threads)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	g := &Graph{In: pairs.rows(numNodes, true, !opt.Directed, threads)}
	if opt.Directed {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out := pairs.rows(numNodes, false, true, threads)
		g.Out = &out
	}
	g.Audit = audit(g, threads)
	g.Audit.NumLines = int64(len(src))
	g.Audit.NumEdges = int64(len(pairs.keys))
	g.Audit.DuplicatesMerged = g.Audit.NumLines - g.Audit.NumEdges
	if !opt.Directed {
		g.Audit.NumPairs = g.Audit.NumEdges - g.Audit.SelfLoops
		g.Audit.OneDirectional = pairs.oneDirectional
	}
	return g, nil
}

// packing puts an edge into a sort key: row above col, and below both one bit that does not
// take part in the order, set where an undirected line came larger end first. bits is the
// width of a node number, at most 31, so a key has at most 63 bits.
type packing struct{ bits uint }

func (p packing) key(row, col int32, reversed uint64) uint64 {
	return (uint64(row)<<p.bits|uint64(col))<<1 | reversed
}

// row and col take a key without its lowest bit apart.
func (p packing) row(pair uint64) int32 { return int32(pair >> p.bits) }
func (p packing) col(pair uint64) int32 { return int32(pair & (1<<p.bits - 1)) }

// packEdges checks the edges and makes their keys: row, col = dst, src when directed, else the
// smaller and the larger end.
func packEdges(numNodes int, src, dst []int32, weight []float32, pack packing, directed bool, threads int) (*keySort, error) {
	s := &keySort{Keys: make([]uint64, len(src)), spareKeys: make([]uint64, len(src))}
	if weight != nil {
		s.Vals, s.spareVals = make([]float32, len(src)), make([]float32, len(src))
	}
	errs := make([]*EdgeError, threads)
	inParallel(threads, func(t int) {
		lo, hi := part(len(src), t, threads)
		for i := lo; i < hi; i++ {
			from, to := src[i], dst[i]
			if uint32(from) >= uint32(numNodes) || uint32(to) >= uint32(numNodes) {
				errs[t] = &EdgeError{Err: ErrNodeRange, Index: i, Src: from, Dst: to}
				return
			}
			switch {
			case directed:
				s.Keys[i] = pack.key(to, from, 0)
			case from <= to:
				s.Keys[i] = pack.key(from, to, 0)
			default:
				s.Keys[i] = pack.key(to, from, 1)
			}
			if weight != nil {
				w := weight[i]
				if !(w >= 0 && w <= math.MaxFloat32) {
					errs[t] = &EdgeError{Err: ErrWeight, Index: i, Src: from, Dst: to, Weight: float64(w)}
					return
				}
				s.Vals[i] = w
			}
		}
	})
	for _, err := range errs { // parts are in order of index
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// pairList is the distinct edges in ascending (row, col) order, packed without the low bit.
type pairList struct {
	pack           packing
	keys           []uint64
	weight         []float32 // nil: unweighted
	oneDirectional int64     // undirected only: pairs other than loops listed in one direction only
}

// mergeEqual merges the runs of equal pairs of s into one each. It uses up s.
func mergeEqual(s *keySort, pack packing, directed bool, threads int) (*pairList, error) {
	keys, n := s.Keys, len(s.Keys)
	// A part begins where the pair of its first key begins.
	begin := make([]int, threads+1)
	for t := range threads {
		lo, _ := part(n, t, threads)
		if lo > 0 && lo < n {
			last := keys[lo-1] | 1
			lo += sort.Search(n-lo, func(i int) bool { return keys[lo+i] > last })
		}
		begin[t] = lo
	}
	begin[threads] = n

	numDistinct := make([]int, threads+1)
	inParallel(threads, func(t int) {
		previous, count := ^uint64(0), 0
		for _, k := range keys[begin[t]:begin[t+1]] {
			if k>>1 != previous {
				previous = k >> 1
				count++
			}
		}
		numDistinct[t+1] = count
	})
	for t := range threads {
		numDistinct[t+1] += numDistinct[t]
	}

	merged := &pairList{pack: pack, keys: s.spareKeys[:numDistinct[threads]]}
	if s.Vals != nil {
		merged.weight = s.spareVals[:numDistinct[threads]]
	}
	oneDirectional := make([]int64, threads)
	errs := make([]*EdgeError, threads)
	inParallel(threads, func(t int) {
		var oneWay int64
		to := numDistinct[t]
		for i := begin[t]; i < begin[t+1]; {
			pair, directions := keys[i]>>1, uint64(0)
			first := i
			for ; i < begin[t+1] && keys[i]>>1 == pair; i++ {
				directions |= 1 << (keys[i] & 1)
			}
			if directions != 3 && pack.row(pair) != pack.col(pair) {
				oneWay++
			}
			merged.keys[to] = pair
			if merged.weight != nil {
				sum := sumAscending(s.Vals[first:i])
				if sum32 := float32(sum); !math.IsInf(float64(sum32), 0) {
					merged.weight[to] = sum32
				} else if errs[t] == nil {
					errs[t] = &EdgeError{Err: ErrWeightSum, Index: -1, Src: pack.row(pair), Dst: pack.col(pair), Weight: sum}
					if directed {
						errs[t].Src, errs[t].Dst = errs[t].Dst, errs[t].Src
					}
				}
			}
			to++
		}
		oneDirectional[t] = oneWay
	})
	for t := range threads {
		if errs[t] != nil { // parts are in order of pair
			return nil, errs[t]
		}
		merged.oneDirectional += oneDirectional[t]
	}
	*s = keySort{}
	return merged, nil
}

// sumAscending sorts w and adds it up in float64. A sum of zeros is +0, whatever their signs.
func sumAscending(w []float32) float64 {
	if len(w) > 1 {
		slices.Sort(w)
	}
	sum := 0.0
	for _, x := range w {
		sum += float64(x)
	}
	return sum
}

// rows lays the pairs out as CSR rows: col into row's (own), row into col's (mirror), or both,
// then a loop once. With both, every pair must have row <= col. Rows come out ascending without
// a sort, since the pairs are in (row, col) order: row v takes first the mirrored pairs (u, v),
// u < v ascending, then its own (v, w), w >= v ascending.
//
// Threads own runs of rows, so no two write the same counter. Each reads all pairs that can
// mirror into its rows.
func (p *pairList) rows(numNodes int, own, mirror bool, threads int) CSR {
	c := CSR{Indptr: make([]int64, numNodes+1)}
	skipLoops := own && mirror
	// ownPairs and mirrorPairs are the pairs to look at for the rows lo .. hi-1.
	ownPairs := func(lo, hi int) (int, int) {
		if !own {
			return 0, 0
		}
		return p.firstOfRow(lo), p.firstOfRow(hi)
	}
	mirrorPairs := func(hi int) int {
		switch {
		case !mirror:
			return 0
		case own: // row <= col, so a larger row mirrors into later rows only
			return p.firstOfRow(hi)
		}
		return len(p.keys)
	}

	inParallel(threads, func(t int) {
		lo, hi := part(numNodes, t, threads)
		count := c.Indptr[1:]
		for _, k := range p.keys[:mirrorPairs(hi)] {
			col := int(p.pack.col(k))
			if col >= lo && col < hi && !(skipLoops && col == int(p.pack.row(k))) {
				count[col]++
			}
		}
		from, to := ownPairs(lo, hi)
		for _, k := range p.keys[from:to] {
			count[p.pack.row(k)]++
		}
	})
	for v := range numNodes {
		c.Indptr[v+1] += c.Indptr[v]
	}

	c.Indices = make([]int32, c.Indptr[numNodes])
	if p.weight != nil {
		c.Weight = make([]float32, len(c.Indices))
	}
	next := slices.Clone(c.Indptr[:numNodes]) // the place of the next entry of each row
	bounds := rowParts(c.Indptr, threads)
	inParallel(threads, func(t int) {
		lo, hi := bounds[t], bounds[t+1]
		if lo == hi {
			return
		}
		for i, k := range p.keys[:mirrorPairs(hi)] {
			row, col := p.pack.row(k), int(p.pack.col(k))
			if col >= lo && col < hi && !(skipLoops && col == int(row)) {
				at := next[col]
				next[col]++
				c.Indices[at] = row
				if c.Weight != nil {
					c.Weight[at] = p.weight[i]
				}
			}
		}
		from, to := ownPairs(lo, hi)
		for i := from; i < to; i++ {
			row := p.pack.row(p.keys[i])
			at := next[row]
			next[row]++
			c.Indices[at] = p.pack.col(p.keys[i])
			if c.Weight != nil {
				c.Weight[at] = p.weight[i]
			}
		}
	})
	return c
}

// firstOfRow returns the place of the first pair whose row is v or more.
func (p *pairList) firstOfRow(v int) int {
	i, _ := slices.BinarySearchFunc(p.keys, v, func(k uint64, v int) int {
		return cmp.Compare(int(p.pack.row(k)), v)
	})
	return i
}

// audit counts what can be read off the rows. For a directed graph this includes NumPairs and
// OneDirectional; the lines are Build's to count.
func audit(g *Graph, threads int) Audit {
	in, out := &g.In, g.Out
	numNodes := in.NumNodes()
	bounds := rowParts(in.Indptr, threads)
	partial := make([]Audit, threads)
	mutualArcs := make([]int64, threads)
	inParallel(threads, func(t int) {
		a := Audit{DegreeHistogram: make([]int64, 65)}
		for v := int32(bounds[t]); v < int32(bounds[t+1]); v++ {
			degree := in.neighbours(v)
			if degree != in.Degree(v) {
				a.SelfLoops++
			}
			if degree == 0 && (out == nil || out.neighbours(v) == 0) {
				a.IsolatedNodes++
			}
			a.MaxDegree = max(a.MaxDegree, degree)
			a.DegreeHistogram[bits.Len64(uint64(degree))]++
			if out != nil {
				mutualArcs[t] += numCommon(in.Row(v), out.Row(v))
			}
		}
		partial[t] = a
	})

	total := Audit{NumNodes: int64(numNodes), NumEntries: in.NumEntries()}
	if numNodes == 0 {
		return total
	}
	histogram := make([]int64, 65)
	var mutual int64
	for t, a := range partial {
		total.SelfLoops += a.SelfLoops
		total.IsolatedNodes += a.IsolatedNodes
		total.MaxDegree = max(total.MaxDegree, a.MaxDegree)
		for i, n := range a.DegreeHistogram {
			histogram[i] += n
		}
		mutual += mutualArcs[t]
	}
	total.DegreeHistogram = histogram[:bits.Len64(uint64(total.MaxDegree))+1]
	if out != nil {
		mutual -= total.SelfLoops // a loop is in both of its rows
		arcs := total.NumEntries - total.SelfLoops
		total.OneDirectional = arcs - mutual
		total.NumPairs = total.OneDirectional + mutual/2
	}
	return total
}

// numCommon returns how many numbers the ascending rows a and b share.
func numCommon(a, b []int32) int64 {
	var n int64
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n++
			a, b = a[1:], b[1:]
		}
	}
	return n
}
