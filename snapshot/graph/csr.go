package graph

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// MaxNodes is the most nodes a graph can have: node numbers are int32.
const MaxNodes = math.MaxInt32

// CSR holds the rows of a graph: row v has the entries Indptr[v] .. Indptr[v+1]-1, and
// Indices[e] is the other end of entry e. Every row is strictly ascending, so it holds each
// neighbour once; a self loop is one entry. Indptr has len NumNodes+1 and Indptr[0] = 0.
// Weight is nil for an unweighted graph (every entry counts 1), else one finite weight >= 0 an entry.
// Rel is nil for a graph of one relation, else the relation of each entry: rows ascend by (neighbour, relation), and a
// row holds a neighbour once for each relation.
type CSR struct {
	Indptr  []int64
	Indices []int32
	Weight  []float32
	Rel     []int32
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

// Loop returns the entry of v's self loop, the first of several relations, and whether there is one. O(log degree).
func (c *CSR) Loop(v int32) (entry int64, ok bool) {
	i, ok := slices.BinarySearch(c.Row(v), v)
	return c.Indptr[v] + int64(i), ok
}

// Find returns the entry of row v that leads to u by a relation, 0 where there are none. O(log degree).
func (c *CSR) Find(v, u, rel int32) (entry int64, ok bool) {
	for entry, end := c.EntriesTo(v, u); entry < end; entry++ {
		if c.Rel == nil || c.Rel[entry] == rel {
			return entry, true
		}
	}
	return 0, false
}

// EntriesTo returns the entries first..end-1 of row v that lead to u: one, or one for each relation that does; none where first is end.
// O(log degree) and their number.
func (c *CSR) EntriesTo(v, u int32) (first, end int64) {
	i, _ := slices.BinarySearch(c.Row(v), u)
	first = c.Indptr[v] + int64(i)
	for end = first; end < c.Indptr[v+1] && c.Indices[end] == u; end++ {
	}
	return first, end
}

// Has reports whether row v leads to u, by whatever relation. O(log degree).
func (c *CSR) Has(v, u int32) bool {
	_, ok := slices.BinarySearch(c.Row(v), u)
	return ok
}

// loops returns the entries of v's self loops: one, or one for each relation that has it.
func (c *CSR) loops(v int32) (first, end int64) {
	return c.EntriesTo(v, v)
}

// neighbours returns the number of entries of row v other than its self loops.
func (c *CSR) neighbours(v int32) int64 {
	first, end := c.loops(v)
	return c.Degree(v) - (end - first)
}

// distinct returns the number of nodes other than v in row v, each counted once whatever its relations. O(log degree) without relations, else O(degree).
func (c *CSR) distinct(v int32) int64 {
	if c.Rel == nil {
		return c.neighbours(v)
	}
	n, previous := int64(0), v
	for _, u := range c.Row(v) {
		if u != previous && u != v {
			n++
		}
		previous = u
	}
	return n
}

// errRelations is what is wrong with rows that may hold a neighbour twice where each neighbour counts once.
var errRelations = errors.New("the rows have relations, want CSR.Simple of them")

// Simple returns the rows without relations: each neighbour once, in memory of alloc; c itself where it has none. Weights are left out then.
func (c *CSR) Simple(alloc Alloc) (*CSR, error) {
	if c.Rel == nil {
		return c, nil
	}
	indices, err := sliceOf[int32](alloc, c.NumEntries())
	if err != nil {
		return nil, err
	}
	s := &CSR{Indptr: make([]int64, len(c.Indptr))}
	to := int64(0)
	for v := range int32(c.NumNodes()) {
		previous := int32(-1)
		for _, u := range c.Row(v) {
			if u != previous {
				indices[to] = u
				to++
			}
			previous = u
		}
		s.Indptr[v+1] = to
	}
	s.Indices = indices[:to]
	return s, nil
}

// Graph is what Build makes. In has a row per dst. Out, for directed graphs only, holds the same
// arcs a row per src, Indices being the dst.
type Graph struct {
	In    CSR
	Out   *CSR
	Audit Audit
}

// Audit says what Build did to the lines and what came out. A neighbour is never the node
// itself; degree means in-row entries without self loops. Of a graph of several relations, edges, pairs, loops and arcs are counted by relation.
type Audit struct {
	NumNodes         int64
	NumLines         int64 // edges given
	NumEdges         int64 // undirected: distinct unordered pairs; directed: distinct arcs; self loops included
	NumEntries       int64 // entries of In
	SelfLoops        int64 // self loops
	DuplicatesMerged int64 // NumLines - NumEdges; undirected, b,a after a,b is a duplicate
	NumPairs         int64 // distinct unordered pairs without self loops
	OneDirectional   int64 // of NumPairs, those listed in one direction only
	IsolatedNodes    int64 // nodes with no neighbour in either direction
	MaxDegree        int64
	// DegreeHistogram counts nodes by degree: [0] has degree 0, [1] degree 1, [2] 2..3,
	// [k] 2^(k-1)..2^k-1. It ends at the bucket of MaxDegree.
	DegreeHistogram []int64
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
	Err      error   // ErrNodeRange, ErrWeight, ErrWeightSum or ErrLoop
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
			a.SelfLoops += in.Degree(v) - degree
			if degree == 0 && (out == nil || out.neighbours(v) == 0) {
				a.IsolatedNodes++
			}
			a.MaxDegree = max(a.MaxDegree, degree)
			a.DegreeHistogram[bits.Len64(uint64(degree))]++
			if out != nil {
				mutualArcs[t] += numCommon(in, out, v)
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

// numCommon returns how many entries (of one relation) rows v of a and b share.
func numCommon(a, b *CSR, v int32) int64 {
	var n int64
	i, j := a.Indptr[v], b.Indptr[v]
	for i < a.Indptr[v+1] && j < b.Indptr[v+1] {
		order := cmp.Compare(a.Indices[i], b.Indices[j])
		if order == 0 && a.Rel != nil {
			order = cmp.Compare(a.Rel[i], b.Rel[j])
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
		if order == 0 {
			n++
		}
	}
	return n
}
