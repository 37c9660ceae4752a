package graph

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// Update is a change of a graph whose lines are remembered: edges go, lines come, and nodes get new numbers in the same order. Its Graph
// has what Build makes of the changed list of lines, in one pass over the old rows.
type Update struct {
	In    CSR  // the old in-rows
	Out   *CSR // directed only: the old out-rows, whose weights aren't used
	Lines *Lines
	Audit Audit // the old one, of which NumLines, NumPairs and OneDirectional are used

	// Number is the new number of each old node, ascending, -1 for a node that goes; all of its edges are removed. nil: as they are.
	Number   []int32
	NumNodes int // there are now
	// RelNumber is the new number of each old relation, ascending; -1 for one that goes. nil: as they are. Entries have their relation if
	// there are several.
	RelNumber []int32
	NumRels   int // there are now; 0 as 1

	// Removed are edges of the old rows, in old numbers, with all their lines; without Rel each is the edges of all relations. Weights
	// aren't used. nil: none.
	Removed *Graph
	// Added are the new lines, in new numbers, with weights if the old rows have them, with relations if NumRels is over 1. Weights of edges that are old
	// ones too become the sums over all their lines. nil: none.
	Added      *Graph
	AddedLines *Lines

	Threads  int         // 0: GOMAXPROCS; the result doesn't depend on it
	Alloc    Alloc       // for arrays by entry; nil: the Go heap
	Lists    ListOptions // where lines are collected
	Progress func(pass string, done, total int64)
	// Guard, if there, runs what reads the old rows, in each goroutine: they may be mapped files, where a fault of memory is an error.
	Guard func(f func() error) error
}

// MissingEdge is the error of Update.Check about an edge to be removed that isn't there, in old numbers; Rel is -1 for any.
type MissingEdge struct{ Src, Dst, Rel int32 }

func (e *MissingEdge) Error() string {
	return fmt.Sprintf("edge %d -> %d is not in the graph", e.Src, e.Dst)
}

// Check returns a *MissingEdge of the first removed edge that the old rows don't hold, by row and col, and calls each, if not nil, with
// the others' ends and how many relations they have. O(removed edges x log degree).
func (u *Update) Check(each func(src, dst int32, numEdges int64)) error {
	if u.Removed == nil {
		return nil
	}
	removed := &u.Removed.In
	for row := range int32(removed.NumNodes()) {
		for e := removed.Indptr[row]; e < removed.Indptr[row+1]; e++ {
			col, rel := removed.Indices[e], int32(-1)
			if u.Out == nil && col < row {
				continue // seen in the other's row
			}
			if removed.Rel != nil {
				rel = removed.Rel[e]
			}
			n := u.In.CountEdges(row, col, rel)
			if n == 0 {
				return &MissingEdge{col, row, rel}
			}
			if each != nil {
				each(col, row, n)
			}
		}
	}
	return nil
}

// CountEdges returns how many entries row has with col, of relation rel unless that is -1. O(log degree).
func (c *CSR) CountEdges(row, col, rel int32) int64 {
	n := int64(0)
	for e, end := c.EntriesTo(row, col); e < end; e++ {
		if rel < 0 || c.Rel == nil || c.Rel[e] == rel {
			n++
		}
	}
	return n
}

// Graph returns the changed graph and its lines. Added's weights are changed. It doesn't check what it is given beyond
// what Check finds, of which it returns the first. Errors are those, an *EdgeError about a sum of weights, Alloc's, Guard's, or ctx's.
// O(E) for the copying, and for the change O(c log degree).
func (u *Update) Graph(ctx context.Context) (*Graph, *Lines, error) {
	if err := u.guard(func() error { return u.Check(nil) }); err != nil {
		return nil, nil, err
	}
	u.progress("copy lines")
	lines, delta, err := u.lines(ctx)
	if err != nil {
		return nil, nil, err
	}
	u.progress("copy rows")
	in, err := u.rows(ctx, &u.In, inOf(u.Removed), inOf(u.Added))
	if err != nil {
		return nil, nil, err
	}
	g := &Graph{In: in}
	if u.Out != nil {
		out := CSR{Indptr: u.Out.Indptr, Indices: u.Out.Indices, Rel: u.Out.Rel}
		if out, err = u.rows(ctx, &out, outOf(u.Removed), outOf(u.Added)); err != nil {
			return nil, nil, err
		}
		g.Out = &out
	}
	u.progress("count")
	g.Audit = audit(g, numThreads(u.Threads))
	a := &g.Audit
	a.NumLines = u.Audit.NumLines + delta.lines
	a.NumEdges = lines.N
	a.DuplicatesMerged = a.NumLines - a.NumEdges
	if u.Out == nil {
		a.NumPairs = u.Audit.NumPairs + delta.pairs
		a.OneDirectional = u.Audit.OneDirectional + delta.oneDirectional
	}
	return g, lines, nil
}

func (u *Update) progress(pass string) {
	if u.Progress != nil {
		u.Progress(pass, 0, 0)
	}
}

func inOf(g *Graph) *CSR {
	if g == nil {
		return &CSR{}
	}
	return &g.In
}

func outOf(g *Graph) *CSR {
	if g == nil {
		return &CSR{}
	}
	return g.Out
}

func (u *Update) guard(f func() error) error {
	if u.Guard == nil {
		return f()
	}
	return u.Guard(f)
}

// span returns the entries of row v, none of a CSR without rows.
func (c *CSR) span(v int32) (from, to int64) {
	if len(c.Indptr) == 0 || v < 0 {
		return 0, 0
	}
	return c.Indptr[v], c.Indptr[v+1]
}

// newRow returns the new number of an old row, -1 if it goes.
func (u *Update) newRow(old int32) int32 {
	if u.Number == nil {
		return old
	}
	return u.Number[old]
}

func (u *Update) newRel(old int32) int32 {
	if u.RelNumber == nil {
		return old
	}
	return u.RelNumber[old]
}

// parts cuts the old rows, and the new ones that belong to them, into parts of about as many old entries. A new row belongs to the part of
// the first old row behind it.
func (u *Update) parts(old *CSR) (oldBounds, newBounds []int32) {
	n := old.NumNodes()
	for _, b := range rowParts(old.Indptr, numThreads(u.Threads)) {
		oldBounds = append(oldBounds, int32(b))
		for b < n && u.newRow(int32(b)) < 0 {
			b++
		}
		if b == n {
			newBounds = append(newBounds, int32(u.NumNodes))
		} else {
			newBounds = append(newBounds, u.newRow(int32(b)))
		}
	}
	newBounds[0] = 0
	return oldBounds, newBounds
}

// eachRow calls f with the rows of part t in order: old and new number of a row that stays, -1 in place of one it hasn't.
func (u *Update) eachRow(oldBounds, newBounds []int32, t int, f func(old, new int32) error) error {
	o, v := oldBounds[t], newBounds[t]
	for o < oldBounds[t+1] || v < newBounds[t+1] {
		old, row := int32(-1), int32(-1)
		switch next := int32(-1); {
		case o < oldBounds[t+1]:
			next = u.newRow(o)
			if next < 0 || next == v {
				old, row = o, next
				o++
			} else {
				row = v
			}
		default:
			row = v
		}
		if row >= 0 {
			v++
		}
		if err := f(old, row); err != nil {
			return err
		}
	}
	return nil
}

// inParts runs f for each part, in parallel and guarded, and returns the error of the first.
func (u *Update) inParts(numParts int, f func(t int) error) error {
	errs := make([]error, numParts)
	inParallel(numParts, func(t int) { errs[t] = u.guard(func() error { return f(t) }) })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// step is one place of a row that changes: an entry of the old row, of the added one, or of both; -1 for none. An old entry that is removed
// has a step of its own.
type step struct {
	old, added int64
	removed    bool
}

// rowSteps gives the steps of one row in order of its entries.
type rowSteps struct {
	u                   *Update
	old, removed, added *CSR
	o, oEnd, r, rEnd    int64
	a, aEnd             int64
	oldKept             bool // the old entry at o has been found to stay
	oldCol, oldRel      int32
	hasRel              bool // there are several relations, in added too
	removedHasRel       bool
}

// newRowSteps returns the steps from old entries o and added entries a on.
func (u *Update) newRowSteps(old, removed, added *CSR, oldRow, newRow int32) rowSteps {
	s := rowSteps{u: u, old: old, removed: removed, added: added, hasRel: u.NumRels > 1, removedHasRel: removed.Rel != nil}
	s.o, s.oEnd = old.span(oldRow)
	s.r, s.rEnd = removed.span(oldRow)
	s.a, s.aEnd = added.span(newRow)
	return s
}

// next returns the next step; ok is false at the end.
func (s *rowSteps) next() (step, bool) {
	if s.o < s.oEnd && !s.oldKept {
		if s.isRemoved() {
			s.o++
			return step{s.o - 1, -1, true}, true
		}
		s.oldKept = true
		if s.oldCol = s.u.newRow(s.old.Indices[s.o]); s.hasRel {
			s.oldRel = s.u.newRel(at(s.old.Rel, int(s.o)))
		}
	}
	order := 0
	switch {
	case s.o == s.oEnd && s.a == s.aEnd:
		return step{}, false
	case s.o == s.oEnd:
		order = 1
	case s.a == s.aEnd:
		order = -1
	default:
		if order = cmp.Compare(s.oldCol, s.added.Indices[s.a]); order == 0 && s.hasRel {
			order = cmp.Compare(s.oldRel, s.added.Rel[s.a])
		}
	}
	out := step{-1, -1, false}
	if order <= 0 {
		out.old = s.o
		s.o++
		s.oldKept = false
	}
	if order >= 0 {
		out.added = s.a
		s.a++
	}
	return out, true
}

// isRemoved reports whether the old entry at o is one of the removed ones, which it moves on.
func (s *rowSteps) isRemoved() bool {
	col := s.old.Indices[s.o]
	for ; s.r < s.rEnd; s.r++ {
		order := cmp.Compare(s.removed.Indices[s.r], col)
		if order == 0 && s.removedHasRel {
			order = cmp.Compare(s.removed.Rel[s.r], s.old.Rel[s.o])
		}
		if order >= 0 {
			return order == 0
		}
	}
	return false
}

// rows returns the changed rows of one direction. Added edges have the weights that they shall have.
func (u *Update) rows(ctx context.Context, old, removed, added *CSR) (CSR, error) {
	oldBounds, newBounds := u.parts(old)
	numParts := len(oldBounds) - 1
	c := CSR{Indptr: make([]int64, u.NumNodes+1)}
	changes := func(oldRow, newRow int32) bool {
		rFrom, rTo := removed.span(oldRow)
		aFrom, aTo := added.span(newRow)
		return rFrom < rTo || aFrom < aTo
	}
	err := u.inParts(numParts, func(t int) error {
		return u.eachRow(oldBounds, newBounds, t, func(oldRow, newRow int32) error {
			if newRow < 0 {
				return nil
			}
			if !changes(oldRow, newRow) {
				from, to := old.span(oldRow)
				c.Indptr[newRow+1] = to - from
				return nil
			}
			steps := u.newRowSteps(old, removed, added, oldRow, newRow)
			for s, ok := steps.next(); ok; s, ok = steps.next() {
				if !s.removed {
					c.Indptr[newRow+1]++
				}
			}
			return ctx.Err()
		})
	})
	if err != nil {
		return c, err
	}
	for v := range u.NumNodes {
		c.Indptr[v+1] += c.Indptr[v]
	}
	n := c.Indptr[u.NumNodes]
	if c.Indices, err = sliceOf[int32](u.Alloc, n); err != nil {
		return c, err
	}
	if old.Weight != nil {
		if c.Weight, err = sliceOf[float32](u.Alloc, n); err != nil {
			return c, err
		}
	}
	if u.NumRels > 1 {
		if c.Rel, err = sliceOf[int32](u.Alloc, n); err != nil {
			return c, err
		}
	}
	return c, u.inParts(numParts, func(t int) error {
		w := entryWriter{u: u, to: &c, old: old, added: added, at: c.Indptr[newBounds[t]]}
		err := u.eachRow(oldBounds, newBounds, t, func(oldRow, newRow int32) error {
			if newRow < 0 {
				return nil
			}
			if !changes(oldRow, newRow) {
				from, to := old.span(oldRow)
				w.keep(from, to)
				return nil
			}
			steps := u.newRowSteps(old, removed, added, oldRow, newRow)
			for s, ok := steps.next(); ok; s, ok = steps.next() {
				switch {
				case s.removed:
				case s.added >= 0:
					w.add(s.added)
				default:
					w.keep(s.old, s.old+1)
				}
			}
			return ctx.Err()
		})
		w.flush()
		return err
	})
}

// entryWriter writes the entries of new rows in order, those of the old ones in runs.
type entryWriter struct {
	u          *Update
	to         *CSR
	old, added *CSR
	at         int64 // in to, behind which the pending old entries go
	from, end  int64 // old entries pending
}

// keep takes the old entries from to end-1 over.
func (w *entryWriter) keep(from, end int64) {
	if from != w.end {
		w.flush()
		w.from = from
	}
	w.end = end
}

func (w *entryWriter) flush() {
	n := w.end - w.from
	if n == 0 {
		return
	}
	indices := w.to.Indices[w.at : w.at+n]
	if w.u.Number == nil {
		copy(indices, w.old.Indices[w.from:w.end])
	} else {
		number := w.u.Number
		for i, u := range w.old.Indices[w.from:w.end] {
			indices[i] = number[u]
		}
	}
	if w.old.Weight != nil {
		copy(w.to.Weight[w.at:w.at+n], w.old.Weight[w.from:w.end])
	}
	if w.to.Rel != nil {
		rels := w.to.Rel[w.at : w.at+n]
		for i := range rels {
			rels[i] = w.u.newRel(at(w.old.Rel, int(w.from)+i))
		}
	}
	w.at += n
	w.from = w.end
}

// add takes one added entry.
func (w *entryWriter) add(e int64) {
	w.flush()
	w.to.Indices[w.at] = w.added.Indices[e]
	if w.to.Weight != nil {
		w.to.Weight[w.at] = w.added.Weight[e]
	}
	if w.to.Rel != nil {
		w.to.Rel[w.at] = w.added.Rel[e]
	}
	w.at++
}

// lineDelta is what a change does to the audit.
type lineDelta struct{ lines, pairs, oneDirectional int64 }

// lines returns the lines of the changed edges, and gives added edges that were there before the weights of all their lines.
func (u *Update) lines(ctx context.Context) (*Lines, lineDelta, error) {
	old, removed, added := &u.In, inOf(u.Removed), inOf(u.Added)
	oldBounds, newBounds := u.parts(old)
	numParts := len(oldBounds) - 1
	own, starts, err := u.lineStarts(oldBounds, newBounds)
	if err != nil {
		return nil, lineDelta{}, err
	}
	store := &blockStore{limit: u.Lists.MemBytes, spill: u.Lists.Spill, alloc: u.Lists.Alloc}
	parts := make([]*linePart, numParts)
	deltas := make([]lineDelta, numParts)
	err = u.inParts(numParts, func(t int) error {
		w := lineWriter{u: u, to: newLinePart(store, false), old: starts[t].old, added: starts[t].added}
		parts[t] = w.to
		err := u.eachRow(oldBounds, newBounds, t, func(oldRow, newRow int32) error {
			rFrom, rTo := removed.span(oldRow)
			aFrom, aTo := added.span(newRow)
			if rFrom == rTo && aFrom == aTo {
				if oldRow >= 0 {
					w.pending += int64(own[oldRow])
				}
				return nil
			}
			if err := w.row(old, removed, added, oldRow, newRow); err != nil {
				return err
			}
			return ctx.Err()
		})
		w.flush()
		deltas[t] = w.delta
		return err
	})
	if err != nil {
		return nil, lineDelta{}, err
	}
	total := lineDelta{}
	for _, d := range deltas {
		total.lines += d.lines
		total.pairs += d.pairs
		total.oneDirectional += d.oneDirectional
	}
	lines, err := joinLines(parts, u.Alloc)
	return lines, total, err
}

// lineStart is where a part begins in the old lines and in the added ones.
type lineStart struct{ old, added lineCursor }

// lineStarts returns how many edges have their lines at each old row, and the starts of all parts, which takes a look at every code before
// the last.
func (u *Update) lineStarts(oldBounds, newBounds []int32) (own []uint32, starts []lineStart, err error) {
	numParts := len(oldBounds) - 1
	own = make([]uint32, u.In.NumNodes())
	ownOf := make([]int64, numParts)
	err = u.inParts(numParts, func(t int) error {
		for row := oldBounds[t]; row < oldBounds[t+1]; row++ {
			n := u.numOwn(&u.In, row)
			if n > math.MaxUint32 { // of a row of billions of relations
				return fmt.Errorf("node %d has %d edges, more than an update can count", row, n)
			}
			own[row] = uint32(n)
			ownOf[t] += n
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	starts = make([]lineStart, numParts)
	at := lineStart{lineCursor{l: u.Lines}, lineCursor{l: u.AddedLines}}
	return own, starts, u.guard(func() error {
		for t := range starts {
			starts[t] = at
			at.old.skip(ownOf[t])
			if u.Added == nil {
				continue
			}
			n := int64(0)
			for row := newBounds[t]; row < newBounds[t+1]; row++ {
				n += u.numOwn(&u.Added.In, row)
			}
			at.added.skip(n)
		}
		return nil
	})
}

// numOwn returns how many edges have their lines at a row of the in-rows: undirected, those whose other end isn't below it.
func (u *Update) numOwn(c *CSR, row int32) int64 {
	from, to := c.span(row)
	if u.Out != nil || from == to {
		return to - from
	}
	first, _ := slices.BinarySearch(c.Indices[from:to], row)
	return to - from - int64(first)
}

// lineWriter writes the lines of a part, those of edges that stay as they are in runs.
type lineWriter struct {
	u          *Update
	to         *linePart
	old, added lineCursor
	pending    int64 // edges at old that stay
	delta      lineDelta
	weights    []float32 // scratch
}

func (w *lineWriter) flush() {
	if w.pending > 0 {
		w.to.copyLines(&w.old, w.pending)
		w.pending = 0
	}
}

// row writes the lines of the edges of a row that changes.
func (w *lineWriter) row(old, removed, added *CSR, oldRow, newRow int32) error {
	directed := w.u.Out != nil
	steps := w.u.newRowSteps(old, removed, added, oldRow, newRow)
	for s, ok := steps.next(); ok; s, ok = steps.next() {
		if s.old >= 0 && !directed && old.Indices[s.old] < oldRow || s.added >= 0 && !directed && added.Indices[s.added] < newRow {
			continue // its lines are in the other's row
		}
		if s.old >= 0 && s.added < 0 && !s.removed {
			w.pending++
			continue
		}
		w.flush()
		var before, after lineCount
		var oldWeights, weights []float32
		if s.old >= 0 {
			if before, oldWeights = w.old.next(); oldWeights == nil && old.Weight != nil {
				oldWeights = old.Weight[s.old : s.old+1]
			}
		}
		isLoop := s.old >= 0 && old.Indices[s.old] == oldRow || s.added >= 0 && added.Indices[s.added] == newRow
		if s.added >= 0 {
			if after, weights = w.added.next(); weights == nil && added.Weight != nil {
				weights = added.Weight[s.added : s.added+1]
			}
			if s.old >= 0 {
				after[0], after[1] = after[0]+before[0], after[1]+before[1]
				if weights != nil {
					var err error
					if weights, err = w.merge(added, s.added, newRow, weights, oldWeights); err != nil {
						return err
					}
				}
			}
			w.to.add(after, weights)
		}
		w.delta.lines += after[0] + after[1] - before[0] - before[1]
		if !isLoop {
			w.delta.pairs += after.one() - before.one()
			w.delta.oneDirectional += after.oneWay() - before.oneWay()
		}
	}
	return nil
}

// one is 1 if there are lines.
func (c lineCount) one() int64 { return min(c[0]+c[1], 1) }

// oneWay is 1 if lines list the edge in one direction only.
func (c lineCount) oneWay() int64 {
	if (c[0] == 0) != (c[1] == 0) {
		return 1
	}
	return 0
}

// merge returns the weights of all lines of an added edge that was there before, and gives it their sum, both ways.
func (w *lineWriter) merge(added *CSR, e int64, row int32, weights, old []float32) ([]float32, error) {
	w.weights = append(append(w.weights[:0], weights...), old...)
	col := added.Indices[e]
	sum, ok := sumWeights(w.weights)
	if !ok {
		err := &EdgeError{Err: ErrWeightSum, Index: -1, Src: row, Dst: col, Weight: sum}
		if w.u.Out != nil {
			err.Src, err.Dst = col, row
		}
		return nil, err
	}
	added.Weight[e] = float32(sum)
	if w.u.Out == nil && col != row {
		mirror, _ := added.Find(col, row, at(added.Rel, int(e)))
		added.Weight[mirror] = float32(sum)
	}
	return w.weights, nil
}
