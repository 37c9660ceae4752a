package graph

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"
)

// Rows is an edge list sorted into rows, on the way to a Graph. The work is done in three passes over the edges, none of which
// needs more than the buffers of its threads in memory beside the blocks, wherever those are:
//
//	Rows   each edge to the range of its row (distribute); each range sorted and repeats merged, and each
//	       pair's other way round to the range of that row, where it arrives in order (sortRanges)
//	Graph  the rows of each range put together of both
//
// Undirected, an edge is the pair of its smaller end (row) and its larger one (col), and a row holds both kinds; directed, row
// is dst, col is src, and the other way round are the out-rows.
type Rows struct {
	numNodes int
	directed bool
	threads  int
	pack     packing
	store    *blockStore
	ranges   ranges
	edges    []blockList   // [range] distinct edges by row, ascending
	lines    []*linePart   // [thread] the same of their lines, if asked for
	mirrored [][]blockList // [thread][range] the same by col; for each col ascending over threads
	audit    Audit
	weighted bool
	progress func(pass string, done, total int64)
}

// Options steer Build and EdgeList.Rows.
type Options struct {
	Directed bool // keep directions, and the out-rows too; else every pair is stored both ways
	Threads  int  // 0: GOMAXPROCS; the result does not depend on it
	NumRels  int  // relations of a relational list, whose numbers are below; 0 or 1: edges of all relations are of one
	Lines    bool // want Rows.TakeLines
	// Part says of an edge whether it is held out: HeldNone takes it, for others see Held. nil: none is. Called by all threads at a time.
	Part func(src, dst int32) uint8
	// Held gets the lines that were held out, in no order, from one goroutine at a time.
	Held func(part uint8, src, dst int32, weight float32, rel int32)
	// Progress, if not nil, is called by all threads with the edges that have gone through a pass, of that pass's number of them.
	Progress func(pass string, done, total int64)
	// sortLen is the most records that are sorted in memory at a time; 0: by the memory given. For tests.
	sortLen int
	// rangeLen is how many ends a range should have; 0: 128 Ki. For tests.
	rangeLen int
}

func (o *Options) progress(pass string, done, total int64) {
	if o.Progress != nil {
		o.Progress(pass, done, total)
	}
}

// packing puts an edge into a sort key: the row's place in its range above col, above the relation, and below them one bit that
// does not take part in the order, set where an undirected line came larger end first.
type packing struct{ colBits, relBits uint }

func (p packing) key(row, col, rel int32, reversed uint64) uint64 {
	return (uint64(row)<<(p.colBits+p.relBits)|uint64(col)<<p.relBits|uint64(rel))<<1 | reversed
}

// row, col and rel take a key without its lowest bit apart.
func (p packing) row(pair uint64) int32 { return int32(pair >> (p.colBits + p.relBits)) }
func (p packing) col(pair uint64) int32 {
	return int32(pair >> p.relBits & (1<<p.colBits - 1))
}
func (p packing) rel(pair uint64) int32 { return int32(pair & (1<<p.relBits - 1)) }

// maxRows is how many rows a range can have for its keys to fit.
func (p packing) maxRows() int64 { return 1 << (63 - p.colBits - p.relBits) }

// Rows sorts the edges of a graph of numNodes nodes, all of whose ends are below it. It uses the list up.
//
// Undirected (the default), a,b and b,a are one pair, stored both ways with one weight; directed,
// they are two arcs. A self loop is stored once. Repeated edges collapse (of one relation, where there are several); weighted, the weights of
// one pair (arc) are sorted ascending, added in that order in float64 and rounded to float32 once,
// so that the order of the lines changes nothing.
//
// Errors: an *EdgeError about a sum of weights, too many nodes and relations for a key, those of the spill, or
// ctx's. Time is O(E log N) by radix; memory beside the blocks is 8 bytes a node and a few MiB a thread.
func (l *EdgeList) Rows(ctx context.Context, numNodes int, opt Options) (*Rows, error) {
	if numNodes < 0 || numNodes > MaxNodes {
		return nil, fmt.Errorf("%d nodes: a graph has 0 to %d", numNodes, int64(MaxNodes))
	}
	if err := l.close(); err != nil {
		return nil, err
	}
	r := &Rows{numNodes: numNodes, directed: opt.Directed, threads: numThreads(opt.Threads), store: &l.store, weighted: l.opt.Weighted, progress: opt.progress}
	r.pack = packing{colBits: uint(bits.Len(uint(max(numNodes-1, 0))))}
	if l.opt.Relational {
		r.pack.relBits = uint(bits.Len(uint(max(opt.NumRels-1, 0))))
	}
	if shift := binShift(numNodes); r.pack.colBits+r.pack.relBits > 63-shift {
		return nil, fmt.Errorf("%d nodes and %d relations are too many together", numNodes, opt.NumRels)
	}
	r.audit.NumNodes, r.audit.NumLines = int64(numNodes), l.Len()
	if err := r.cut(l, int64(opt.rangeLen)); err != nil {
		return nil, err
	}
	byRow, err := r.distribute(ctx, l, &opt)
	if err != nil {
		return nil, err
	}
	if err := r.sortRanges(ctx, byRow, &opt); err != nil {
		return nil, err
	}
	r.audit.DuplicatesMerged = r.audit.NumLines - r.audit.NumEdges
	if !r.directed {
		r.audit.NumPairs = r.audit.NumEdges - r.audit.SelfLoops
	}
	return r, nil
}

// sampleBlocks is how many of the blocks tell how the edges lie.
const sampleBlocks = 256

// cut chooses the ranges by a sample of the edges.
func (r *Rows) cut(l *EdgeList, want int64) error {
	shift := binShift(r.numNodes)
	counts := make([]int64, (max(r.numNodes, 1)-1)>>shift+1)
	step := max(1, len(l.edges.blocks)/sampleBlocks)
	buf := l.buffer()
	for i := 0; i < len(l.edges.blocks); i += step {
		b, err := l.store.load(l.edges.blocks[i], buf)
		if err != nil {
			return err
		}
		for i := range b.n {
			src, dst := l.ends(b, i)
			counts[src>>shift] += int64(step)
			counts[dst>>shift] += int64(step)
		}
	}
	l.store.put(buf)
	if want <= 0 {
		want = 1 << 17
	}
	r.ranges = cutRanges(r.numNodes, counts, want, r.pack.maxRows())
	return nil
}

// distribute sends every edge to the range of its row, as a key; [range][thread], in no order. It uses the list up.
func (r *Rows) distribute(ctx context.Context, l *EdgeList, opt *Options) ([][]blockList, error) {
	lists := make([][]blockList, r.threads)
	errs := make([]error, r.threads)
	held := make([]heldLines, r.threads)
	var next, done atomic.Int64
	total := l.Len()
	inParallel(r.threads, func(t int) {
		to := newScatter(&l.store, r.ranges.num(), r.weighted)
		out := new(keyed)
		buf := l.buffer()
		defer l.store.put(buf)
		for errs[t] == nil {
			i := int(next.Add(1)) - 1
			if i >= len(l.edges.blocks) {
				lists[t], errs[t] = to.close()
				return
			}
			b, err := l.store.load(l.edges.blocks[i], buf)
			if err != nil {
				errs[t] = err
				return
			}
			r.distributeBlock(l, b, out, opt, &held[t])
			to.add(out.to[:out.n], out.keys[:out.n], out.vals[:])
			n := int64(b.n)
			l.store.release(l.edges.blocks[i])
			opt.progress("distribute edges", done.Add(n), total)
			if errs[t] = ctx.Err(); errs[t] == nil {
				errs[t] = to.err
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	l.edges = blockList{}
	for _, h := range held {
		for i, key := range h.keys {
			opt.Held(h.parts[i], int32(key>>32), int32(uint32(key)), at(h.vals, i), at(h.rels, i))
		}
		r.audit.NumLines -= int64(len(h.keys))
	}
	byRow := make([][]blockList, r.ranges.num())
	for k := range byRow {
		for t := range lists {
			byRow[k] = append(byRow[k], lists[t][k])
		}
	}
	return byRow, nil
}

// heldLines are lines held out by one thread.
type heldLines struct {
	parts []uint8
	keys  []uint64
	vals  []float32
	rels  []int32
}

func (h *heldLines) add(part uint8, src, dst, rel int32) {
	h.parts, h.keys, h.rels = append(h.parts, part), append(h.keys, uint64(src)<<32|uint64(dst)), append(h.rels, rel)
}

// keyed is a block's worth of records with the range of each, as scatter takes them.
type keyed struct {
	to   [blockLen]uint16
	keys [blockLen]uint64
	vals [blockLen]float32
	n    int
}

func (r *Rows) distributeBlock(l *EdgeList, b *block, out *keyed, opt *Options, held *heldLines) {
	ends := b.ends()[:2*b.n]
	l.number.apply(ends)
	out.n = 0
	directed, pack, rs := r.directed, r.pack, &r.ranges
	for i := range b.n {
		src, dst := ends[2*i], ends[2*i+1]
		rel := int32(0)
		if pack.relBits > 0 {
			rel = l.rel(b, i)
		}
		if opt.Part != nil {
			if part := opt.Part(src, dst); part != HeldNone {
				held.add(part, src, dst, rel)
				if b.vals != nil {
					held.vals = append(held.vals, b.vals[i])
				}
				continue
			}
		}
		row, col, reversed := dst, src, uint64(0)
		if !directed {
			row, col = min(src, dst), max(src, dst)
			reversed = uint64(uint32(dst-src)) >> 31 // both are 31 bits wide
		}
		k := rs.of[uint32(row)>>(rs.shift&31)]
		at := out.n & (blockLen - 1)
		out.to[at] = k
		out.keys[at] = pack.key(row-rs.first[k], col, rel, reversed)
		if b.vals != nil {
			out.vals[at] = b.vals[i]
		}
		out.n++
	}
}

// sortRanges sorts each range, merges its repeats into edges, and sends each to mirrored. Threads own runs of ranges, so that what they send
// to one range is in order from thread to thread.
func (r *Rows) sortRanges(ctx context.Context, byRow [][]blockList, opt *Options) error {
	counts := make([]int64, len(byRow)+1) // records before each range
	for k, lists := range byRow {
		counts[k+1] = counts[k]
		for _, l := range lists {
			counts[k+1] += l.n
		}
	}
	bounds := rowParts(counts, r.threads)
	r.edges = make([]blockList, len(byRow))
	r.mirrored = make([][]blockList, r.threads)
	mergers := make([]*merger, r.threads)
	errs := make([]error, r.threads)
	var done atomic.Int64
	inParallel(r.threads, func(t int) {
		m := newMerger(r, opt, bounds[t+1]-bounds[t])
		mergers[t] = m
		for k := bounds[t]; k < bounds[t+1]; k++ {
			if errs[t] = ctx.Err(); errs[t] != nil {
				return
			}
			if errs[t] = m.mergeRange(ctx, k, byRow[k]); errs[t] != nil {
				return
			}
			byRow[k] = nil
			opt.progress("sort edges", done.Add(counts[k+1]-counts[k]), counts[len(byRow)])
		}
		r.mirrored[t], errs[t] = m.mirror.close()
	})
	for _, err := range errs {
		if err != nil { // ranges are in order of threads
			return err
		}
	}
	for _, m := range mergers {
		r.audit.NumEdges += m.numEdges
		r.audit.SelfLoops += m.numLoops
		r.audit.OneDirectional += m.oneDirectional
	}
	if opt.Lines {
		for _, m := range mergers {
			r.lines = append(r.lines, m.lines)
		}
	}
	return nil
}

// TakeLines returns, once, which lines the distinct edges came of, in arrays of alloc; nil if Options didn't ask for them.
func (r *Rows) TakeLines(alloc Alloc) (*Lines, error) {
	parts := r.lines
	if parts == nil {
		return nil, nil
	}
	r.lines = nil
	return joinLines(parts, alloc)
}

// Alloc gives n zero bytes, aligned to 8. A nil Alloc stands for the Go heap.
type Alloc func(n int64) ([]byte, error)

// sliceOf returns a slice of n elements.
func sliceOf[T uint8 | int32 | float32](alloc Alloc, n int64) ([]T, error) {
	if alloc == nil || n == 0 {
		return make([]T, n), nil
	}
	var one T
	b, err := alloc(n * int64(unsafe.Sizeof(one)))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n), nil
}

// Graph puts the rows together, with the arrays by entry from alloc. It uses r up.
func (r *Rows) Graph(ctx context.Context, alloc Alloc) (*Graph, error) {
	in, err := r.csr(ctx, alloc, true, !r.directed)
	if err != nil {
		return nil, err
	}
	g := &Graph{In: in}
	if r.directed {
		out, err := r.csr(ctx, alloc, false, true)
		if err != nil {
			return nil, err
		}
		g.Out = &out
	}
	g.Audit = r.audited(g)
	return g, nil
}

// audited says what became of the lines, given the rows themselves.
func (r *Rows) audited(g *Graph) Audit {
	a := audit(g, r.threads)
	a.NumLines, a.NumEdges, a.DuplicatesMerged = r.audit.NumLines, r.audit.NumEdges, r.audit.DuplicatesMerged
	if !r.directed {
		a.NumPairs, a.OneDirectional = r.audit.NumPairs, r.audit.OneDirectional
	}
	return a
}

// csr puts one direction together and uses it up: the edges by row if own is set, and by col if mirror is.
func (r *Rows) csr(ctx context.Context, alloc Alloc, own, mirror bool) (CSR, error) {
	lists := make([][]blockList, r.ranges.num()) // of each range, such that every row comes out ascending: mirrored cols are below it
	first := make([]int64, r.ranges.num()+1)     // entry of each range
	for k := range lists {
		if mirror {
			for t := range r.mirrored {
				if len(r.mirrored[t]) > 0 {
					lists[k] = append(lists[k], r.mirrored[t][k])
				}
			}
		}
		if own {
			lists[k] = append(lists[k], r.edges[k])
		}
		first[k+1] = first[k]
		for _, l := range lists[k] {
			first[k+1] += l.n
		}
	}
	n := first[len(lists)]
	c := CSR{Indptr: make([]int64, r.numNodes+1)}
	var err error
	if c.Indices, err = sliceOf[int32](alloc, n); err != nil {
		return c, err
	}
	if r.weighted {
		if c.Weight, err = sliceOf[float32](alloc, n); err != nil {
			return c, err
		}
	}
	if r.pack.relBits > 0 {
		if c.Rel, err = sliceOf[int32](alloc, n); err != nil {
			return c, err
		}
	}
	errs := make([]error, r.threads)
	var next, done atomic.Int64
	inParallel(r.threads, func(t int) {
		buf := r.store.get(r.weighted, false)
		defer r.store.put(buf)
		for errs[t] == nil {
			k := int(next.Add(1)) - 1
			if k >= len(lists) {
				return
			}
			if errs[t] = r.place(&c, k, first[k], lists[k], buf); errs[t] == nil {
				errs[t] = ctx.Err()
			}
			r.progress("rows", done.Add(first[k+1]-first[k]), n)
		}
	})
	return c, cmp.Or(errs...)
}

// place puts the entries of range k in their places, from entry first on, and gives their blocks up. No other range has a part in
// what it writes, of Indptr too.
func (r *Rows) place(c *CSR, k int, first int64, lists []blockList, buf *block) error {
	ends := c.Indptr[r.ranges.first[k]+1 : r.ranges.first[k+1]+1]
	if err := r.eachBlock(lists, buf, func(b *block) {
		for _, pair := range b.keys[:b.n] {
			ends[r.pack.row(pair)]++
		}
	}); err != nil {
		return err
	}
	for i, n := range ends {
		ends[i] = first // of row i, until its entries are there
		first += n
	}
	if err := r.eachBlock(lists, buf, func(b *block) {
		for i, pair := range b.keys[:b.n] {
			end := &ends[r.pack.row(pair)]
			at := *end
			*end++
			c.Indices[at] = r.pack.col(pair)
			if b.vals != nil {
				c.Weight[at] = b.vals[i]
			}
			if c.Rel != nil {
				c.Rel[at] = r.pack.rel(pair)
			}
		}
	}); err != nil {
		return err
	}
	for i := range lists {
		r.store.releaseAll(&lists[i])
	}
	return nil
}

// eachBlock calls f with the blocks of lists in order; those in the spill are read into buf.
func (r *Rows) eachBlock(lists []blockList, buf *block, f func(b *block)) error {
	for _, l := range lists {
		for _, b := range l.blocks {
			b, err := r.store.load(b, buf)
			if err != nil {
				return err
			}
			f(b)
		}
	}
	return nil
}

// sumWeights is sumAscending; ok is false where the sum is over the float32 range.
func sumWeights(w []float32) (sum float64, ok bool) {
	sum = sumAscending(w)
	return sum, !math.IsInf(float64(float32(sum)), 0)
}

// sumAscending sorts w and adds it up in float64. Zeros in w become +0, whatever their signs.
func sumAscending(w []float32) float64 {
	if len(w) > 1 {
		slices.Sort(w)
	}
	for i := 0; i < len(w) && w[i] == 0; i++ {
		w[i] = 0
	}
	sum := 0.0
	for _, x := range w {
		sum += float64(x)
	}
	return sum
}
