package graph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// hop2MaxRatio is how many times the entries of hop 1 the entries of hop 2 may be; beyond it
// BuildHop2 lowers the cap of its rows.
const hop2MaxRatio = 5

// workRows is how many rows a thread takes at a time. It shapes no result.
const workRows = 256

// Hop2 holds, for each node, nodes two hops away: row v is Indices[Indptr[v]:Indptr[v+1]], ascending. Rows hold
// neither v nor a neighbour of v, nothing twice, and only nodes of v's component.
type Hop2 struct {
	Indptr  []int64
	Indices []int32
}

// Row returns the row of v; read-only, shared with h.
func (h *Hop2) Row(v int32) []int32 { return h.Indices[h.Indptr[v]:h.Indptr[v+1]] }

// Hop2Audit says how far hop 2 was truncated.
type Hop2Audit struct {
	NumEntries  int64 // of the rows
	NumUncut    int64 // what NumEntries would be at the cap that was asked for
	NumCut      int64 // rows that reached Cap, so perhaps left something out
	NumSampled  int64 // nodes of more than ExpandLimit neighbours
	Cap         int   // most entries of a row: Hop2Cap, or less if Forced
	Forced      bool  // NumUncut is more than hop2MaxRatio times the entries of hop 1
	Hop1Entries int64 // entries of c's rows without self loops
}

// BuildHop2 lists the nodes two hops from each node of c, against the direction of its messages: in-neighbours of
// in-neighbours. keys[v] is the key of node v (SPEC 8); equal keys are told apart by node number.
//
//	X(v) = the neighbours of v other than v, by ascending (hash(4, keys[v], keys[u]), u), cut after ExpandLimit
//	row v = the first Cap distinct w in the order: for u in X(v), for w in X(u);
//	        w not v and not a neighbour of v; then sorted
//
// So a hub is gone through by one sample of its neighbours, the same wherever the hub is met, and no row
// costs more than ExpandLimit squared. Cap is Hop2Cap; but if the rows then had more than hop2MaxRatio times
// the entries of hop 1, Cap is the largest number with which they don't (0 if there is none). The
// result depends on nothing else; not on threads.
//
// Time is O(E log ExpandLimit + N min(ExpandLimit^2, what fills a row)), twice where rows are forced; beside
// the result it needs 4 bytes an entry and 4 bytes a node for each thread. The rows have no relations (CSR.Simple).
// Errors: about relations, opt, lengths that differ, and ctx's, which is looked at every few hundred rows.
func BuildHop2(ctx context.Context, c *CSR, keys []uint64, opt HopOptions) (*Hop2, Hop2Audit, error) {
	opt, err := opt.Settle()
	if err != nil {
		return nil, Hop2Audit{}, err
	}
	opt.Threads = numThreads(opt.Threads)
	if c.Rel != nil {
		return nil, Hop2Audit{}, errRelations
	}
	numNodes := c.NumNodes()
	if len(keys) != numNodes {
		return nil, Hop2Audit{}, fmt.Errorf("%d keys for %d nodes", len(keys), numNodes)
	}
	audit := Hop2Audit{Cap: opt.Hop2Cap}
	for v := range int32(numNodes) {
		d := c.neighbours(v)
		audit.Hop1Entries += d
		if d > int64(opt.ExpandLimit) {
			audit.NumSampled++
		}
	}
	progress := func(before int64) func(rows int64) {
		if opt.Progress == nil {
			return nil
		}
		return func(rows int64) { opt.Progress(before+rows, 2*int64(numNodes)) }
	}
	if opt.Progress != nil {
		opt.Progress(0, 2*int64(numNodes))
	}
	expand, err := expansions(ctx, c, keys, opt)
	if err != nil {
		return nil, Hop2Audit{}, err
	}

	// How long each row would be, then how long it may be, then the rows: a row under a lower cap is a part of
	// the row under a higher one.
	h := &Hop2{Indptr: make([]int64, numNodes+1)}
	lengths := h.Indptr[1:]
	err = forRows(ctx, numNodes, opt.Threads, progress(0), func() func(v int32) {
		s := newHop2Scratch(numNodes)
		return func(v int32) { lengths[v] = int64(len(s.row(c, expand, v, opt.Hop2Cap))) }
	})
	if err != nil {
		return nil, Hop2Audit{}, err
	}
	for _, n := range lengths {
		audit.NumUncut += n
	}
	if audit.NumUncut > hop2MaxRatio*audit.Hop1Entries {
		audit.Forced = true
		audit.Cap = largestCap(lengths, hop2MaxRatio*audit.Hop1Entries)
	}
	for v, n := range lengths {
		if n >= int64(audit.Cap) {
			audit.NumCut++
		}
		h.Indptr[v+1] = h.Indptr[v] + min(n, int64(audit.Cap))
	}
	audit.NumEntries = h.Indptr[numNodes]
	if h.Indices, err = sliceOf[int32](opt.Alloc, audit.NumEntries); err != nil {
		return nil, Hop2Audit{}, err
	}
	err = forRows(ctx, numNodes, opt.Threads, progress(int64(numNodes)), func() func(v int32) {
		s := newHop2Scratch(numNodes)
		return func(v int32) {
			to := h.Row(v)
			copy(to, s.row(c, expand, v, len(to)))
			slices.Sort(to)
		}
	})
	if err != nil {
		return nil, Hop2Audit{}, err
	}
	return h, audit, nil
}

// largestCap returns the largest cap under which lengths add up to at most budget.
func largestCap(lengths []int64, budget int64) int {
	longest := slices.Max(lengths)
	over := make([]int64, longest+1) // over[n]: rows of more than n entries
	for _, n := range lengths {
		if n > 0 {
			over[n-1]++
		}
	}
	for n := longest - 1; n >= 0; n-- {
		over[n] += over[n+1]
	}
	limit, total := 0, int64(0)
	for ; limit < int(longest) && total+over[limit] <= budget; limit++ {
		total += over[limit]
	}
	return limit
}

// expansions returns the lists X(v) of BuildHop2 as rows.
func expansions(ctx context.Context, c *CSR, keys []uint64, opt HopOptions) (*Hop2, error) {
	numNodes := c.NumNodes()
	x := &Hop2{Indptr: make([]int64, numNodes+1)}
	for v := range int32(numNodes) {
		x.Indptr[v+1] = x.Indptr[v] + min(c.neighbours(v), int64(opt.ExpandLimit))
	}
	x.Indices = make([]int32, x.Indptr[numNodes])
	base := Hash(forHop2)
	type candidate struct {
		hash uint64
		node int32
	}
	err := forRows(ctx, numNodes, opt.Threads, nil, func() func(v int32) {
		var row []candidate
		return func(v int32) {
			row = row[:0]
			of := Fold(base, keys[v])
			for _, u := range c.Row(v) {
				if u != v {
					row = append(row, candidate{Fold(of, keys[u]), u})
				}
			}
			slices.SortFunc(row, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.node, b.node)) })
			for i, to := 0, x.Row(v); i < len(to); i++ {
				to[i] = row[i].node
			}
		}
	})
	return x, err
}

// hop2Scratch finds rows, one after another.
type hop2Scratch struct {
	seen  []uint32 // seen[w] == epoch: not, or no longer, to be taken
	epoch uint32
	found []int32
}

func newHop2Scratch(numNodes int) *hop2Scratch { return &hop2Scratch{seen: make([]uint32, numNodes)} }

// row returns the first limit nodes of row v, in the order they are met; until the next call. N is below 2^31,
// so epoch, one a row, never comes round.
func (s *hop2Scratch) row(c *CSR, expand *Hop2, v int32, limit int) []int32 {
	s.epoch++
	s.seen[v] = s.epoch
	for _, u := range c.Row(v) {
		s.seen[u] = s.epoch
	}
	s.found = s.found[:0]
	for _, u := range expand.Row(v) {
		if len(s.found) == limit {
			break
		}
		s.found = appendUnseen(s.found, expand.Row(u), s.seen, s.epoch, limit)
	}
	return s.found
}

// appendUnseen appends what of row is not marked with epoch, and marks it, until found has limit nodes.
func appendUnseen(found, row []int32, seen []uint32, epoch uint32, limit int) []int32 {
	for _, w := range row {
		if seen[w] == epoch {
			continue
		}
		if len(found) == limit {
			break
		}
		seen[w] = epoch
		found = append(found, w)
	}
	return found
}

// forRows calls what newWorker returns for every row, each thread with a worker of its own. Threads take rows
// as they get done, so f must write to its row alone. progress, if not nil, is told how many rows have been taken.
// ctx's error stops it.
func forRows(ctx context.Context, numRows, threads int, progress func(rows int64), newWorker func() (f func(v int32))) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(threads, numRows/workRows+1) {
		wg.Go(func() {
			f := newWorker()
			for ctx.Err() == nil {
				lo := int(next.Add(workRows)) - workRows
				if lo >= numRows {
					return
				}
				if progress != nil {
					progress(int64(lo))
				}
				for v := lo; v < min(lo+workRows, numRows); v++ {
					f(int32(v))
				}
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}
