package graph

import (
	"context"
	"fmt"
	"math"
)

// EdgeList collects the edges of a graph, in any order and any of them repeated, until Rows sorts them. It holds
// 8 bytes an edge, 4 more with weights and 4 more with relations, in blocks that are used again for the sorting; what is over the
// memory given goes to a spill. It holds no other memory per edge.
type EdgeList struct {
	opt       ListOptions
	store     blockStore
	edges     blockList
	open      *block    // being filled
	number    numbering // of the ends as they were appended
	relNumber []int32   // of relations; nil: as they are
}

// ListOptions say what an EdgeList holds and where.
type ListOptions struct {
	Weighted   bool // a weight an edge
	Relational bool // a relation an edge
	// MemBytes is how much of the edges may be in memory, here and in Rows; more goes to Spill. 0, or no Spill: no limit.
	// A few buffers of each thread come on top.
	MemBytes int64
	Spill    Spill
	// Alloc gives the memory of blocks, aligned to 8 bytes, 8 MiB at a time; whoever gave it may take it back once the list and its Rows
	// aren't used any more. nil: the Go heap.
	Alloc func(n int) []byte
}

// NewEdgeList returns an empty list.
func NewEdgeList(opt ListOptions) *EdgeList {
	return &EdgeList{opt: opt, store: blockStore{limit: opt.MemBytes, spill: opt.Spill, alloc: opt.Alloc}}
}

// EdgesOf returns a list in memory of the edges src[i] -> dst[i], with weights and relations unless nil.
func EdgesOf(src, dst []int32, weight []float32, rel []int32) *EdgeList {
	l := NewEdgeList(ListOptions{Weighted: weight != nil, Relational: rel != nil})
	for i := range src {
		l.Add(src[i], dst[i], at(weight, i), at(rel, i)) // without a spill it can't fail
	}
	return l
}

// at returns v[i], 0 of a nil slice.
func at[T any](v []T, i int) T {
	var zero T
	if v == nil {
		return zero
	}
	return v[i]
}

// Len returns the number of edges.
func (l *EdgeList) Len() int64 {
	n := l.edges.n
	if l.open != nil {
		n += int64(l.open.n)
	}
	return n
}

// Weighted and Relational report what the edges have.
func (l *EdgeList) Weighted() bool   { return l.opt.Weighted }
func (l *EdgeList) Relational() bool { return l.opt.Relational }

// Append appends edges: ends holds src and dst of each in turn, weight and rel one value each, or nothing where the
// list has none. Ends are not negative. Errors are the spill's.
func (l *EdgeList) Append(ends []int32, weight []float32, rel []int32) error {
	n := len(ends) / 2
	for done := 0; done < n; {
		b, err := l.room()
		if err != nil {
			return err
		}
		count := min(n-done, blockLen-b.n)
		copy(b.ends()[2*b.n:], ends[2*done:2*(done+count)])
		if l.opt.Weighted {
			copy(b.vals[b.n:b.n+count], weight[done:done+count])
		}
		if l.opt.Relational {
			copy(b.rels[b.n:b.n+count], rel[done:done+count])
		}
		b.n += count
		done += count
	}
	return nil
}

// Add appends an edge; weight and rel are ignored where the list has none. Errors are the spill's.
func (l *EdgeList) Add(src, dst int32, weight float32, rel int32) error {
	b, err := l.room()
	if err != nil {
		return err
	}
	b.ends()[2*b.n], b.ends()[2*b.n+1] = src, dst
	if l.opt.Weighted {
		b.vals[b.n] = weight
	}
	if l.opt.Relational {
		b.rels[b.n] = rel
	}
	b.n++
	return nil
}

// room returns the block being filled, which is not full.
func (l *EdgeList) room() (*block, error) {
	if l.open != nil && l.open.n < blockLen {
		return l.open, nil
	}
	if l.open != nil {
		again, err := l.store.keep(&l.edges, l.open)
		if err != nil {
			return nil, err
		}
		l.open = again
	}
	if l.open == nil {
		l.open = l.store.get(l.opt.Weighted, l.opt.Relational)
	}
	return l.open, nil
}

// Renumber has end v stand for node number[v] and relation r for rels[r] from now on; nil leaves them as they are. It may be called once.
func (l *EdgeList) Renumber(number, rels []int32) {
	l.number, l.relNumber = newNumbering(number, l.opt.Alloc), rels
}

// Each calls f with every edge in the order of Append, until f returns an error, which it returns. weight is 1 and rel 0 where
// the list has none.
func (l *EdgeList) Each(f func(src, dst int32, weight float32, rel int32) error) error {
	if err := l.close(); err != nil {
		return err
	}
	buf := l.buffer()
	for _, b := range l.edges.blocks {
		b, err := l.store.load(b, buf)
		if err != nil {
			return err
		}
		for i := range b.n {
			src, dst := l.ends(b, i)
			weight := float32(1)
			if l.opt.Weighted {
				weight = b.vals[i]
			}
			if err := f(src, dst, weight, l.rel(b, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// buffer returns a block to load the list's blocks into, in no list itself.
func (l *EdgeList) buffer() *block { return l.store.get(l.opt.Weighted, l.opt.Relational) }

// ends returns the ends of edge i of a block.
func (l *EdgeList) ends(b *block, i int) (src, dst int32) {
	return l.number.of(b.ends()[2*i]), l.number.of(b.ends()[2*i+1])
}

// rel returns the relation of record i of b, 0 where there are none.
func (l *EdgeList) rel(b *block, i int) int32 {
	switch {
	case b.rels == nil:
		return 0
	case l.relNumber != nil:
		return l.relNumber[b.rels[i]]
	}
	return b.rels[i]
}

// close ends appending.
func (l *EdgeList) close() error {
	if l.open == nil {
		return nil
	}
	again, err := l.store.keep(&l.edges, l.open)
	l.open = nil
	l.store.put(again)
	return err
}

// checkEdges checks edges given as slices against what EdgeList takes for granted.
func checkEdges(numNodes int, src, dst []int32, weight []float32) error {
	if numNodes < 0 || numNodes > MaxNodes {
		return fmt.Errorf("%d nodes: a graph has 0 to %d", numNodes, int64(MaxNodes))
	}
	if len(src) != len(dst) || weight != nil && len(weight) != len(src) {
		return fmt.Errorf("%d src, %d dst and %d weights: lengths differ", len(src), len(dst), len(weight))
	}
	for i := range src {
		if uint32(src[i]) >= uint32(numNodes) || uint32(dst[i]) >= uint32(numNodes) {
			return &EdgeError{Err: ErrNodeRange, Index: i, Src: src[i], Dst: dst[i]}
		}
		if weight != nil && !(weight[i] >= 0 && weight[i] <= math.MaxFloat32) {
			return &EdgeError{Err: ErrWeight, Index: i, Src: src[i], Dst: dst[i], Weight: float64(weight[i])}
		}
	}
	return nil
}

// Build makes the rows of the graph with numNodes nodes and edges src[i] -> dst[i], in any order, any of them
// repeated, in memory. weight is nil, or one finite weight >= 0 an edge. It is EdgesOf, EdgeList.Rows and Rows.Graph
// behind a check of the input: an *EdgeError of the lowest index, lengths that differ, too many nodes.
func Build(ctx context.Context, numNodes int, src, dst []int32, weight []float32, opt Options) (*Graph, error) {
	if err := checkEdges(numNodes, src, dst, weight); err != nil {
		return nil, err
	}
	rows, err := EdgesOf(src, dst, weight, nil).Rows(ctx, numNodes, opt)
	if err != nil {
		return nil, err
	}
	return rows.Graph(ctx, nil)
}
