package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// Change is what becomes of a snapshot's input.
type Change struct {
	// Add has the lines to add, and what tables say of new nodes: those that are Named. Its ids needn't be new, but for these. nil: none.
	Add *Tables
	// Remove has edges that go with all their lines: of one relation where they have any, else of all. Undirected, ends are in either
	// order. Of its tables only ids, edges and names of relations count. nil: none.
	Remove        *Tables
	IgnoreMissing bool // edges to remove that aren't there are counted, else they are errors
	TextIDs       bool // the ids of the input aren't ordered as integers even if all are
}

// UpdateReport says what an update came to.
type UpdateReport struct {
	NewNodes, GoneNodes int64
	NumMissing          int64  // edges to remove, by line, that weren't there
	FirstMissing        string // the first of them, for messages
	DroppedSplits       int64  // new nodes whose parts of splits are left out, since they have no label
}

// ChangeError says why a change can't be made. It is a fault of the files of the change.
type ChangeError struct {
	Role     ChangeRole
	Src, Dst string // an edge; of an id, Src
	Msg      string // what is wrong with it, or with all of the change without Src
	Hint     string
}

// ChangeRole says which files of a change an error is about.
type ChangeRole string

// The roles.
const (
	AddedEdges   ChangeRole = "added edges"
	RemovedEdges ChangeRole = "removed edges"
	NewNodes     ChangeRole = "nodes"
)

func (e *ChangeError) Error() string {
	text := e.Msg
	switch {
	case e.Dst != "":
		text = fmt.Sprintf("edge %q, %q %s", e.Src, e.Dst, e.Msg)
	case e.Src != "":
		text = fmt.Sprintf("%q %s", e.Src, e.Msg)
	}
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// needsBuild is what a change that can't be made as one is told.
const needsBuild = "build the snapshot in full"

// OpenBase opens a snapshot to be updated: all but what is computed anew. Its files share the memory of scratch, which may be nil, and must be
// closed before it.
func OpenBase(dir string, scratch *Scratch) (*Snapshot, error) {
	s := &Snapshot{Dir: dir, base: true, scratch: scratch}
	if err := s.open(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Updatable returns an error if a snapshot of that manifest can't be the base of an update.
func (m *Manifest) Updatable() error {
	switch {
	case m.Params.Holdout != nil:
		return errors.New("pairs are held out of its edges, whose lines it doesn't remember: " + needsBuild)
	case m.Update == nil:
		return errors.New("it was built with --updatable=false and doesn't remember its lines: " + needsBuild)
	}
	return nil
}

// Update writes into job, and publishes, the snapshot that Build makes of the changed input of base, with base's parameters: the same bytes.
// The change's edges are used up. A fault of the change is a *ChangeError or an *EdgeError; base must come of OpenBase.
//
// Per-node arrays are copied in runs between new and gone nodes, rows and lines by graph.Update; the rest is computed as Build does.
func Update(ctx context.Context, job *format.Job, base *Snapshot, c *Change, opt Options) (format.Digest, *Manifest, *UpdateReport, error) {
	if opt.Scratch == nil {
		opt.Scratch = NewScratch(0, "")
		defer opt.Scratch.Close()
	}
	u := &updater{builder: builder{job: job, tables: &Tables{}, opt: opt}, base: base, change: c, report: &UpdateReport{}}
	var p Params
	err := u.guard(func() (err error) {
		p, err = u.apply(ctx)
		return err
	})
	if err != nil {
		return format.Digest{}, nil, nil, err
	}
	id, m, err := u.complete(ctx, p)
	return id, m, u.report, err
}

// guard runs f, which reads the base's files.
func (u *updater) guard(f func() error) error { return format.Guard(u.base.Dir, f) }

// updater makes the tables and rows of an update for a builder.
type updater struct {
	builder
	base    *Snapshot
	baseIDs IDs
	change  *Change
	report  *UpdateReport

	added    []int32   // by id of change.Add: its node in base, -1 if it is new
	fresh    []int32   // new nodes, as ids of change.Add, in the order of the result
	before   []int32   // of each fresh node: the first node of base behind it
	gone     []int32   // nodes of base that go, ascending
	number   []int32   // of base's nodes in the result; nil: the same
	runs     []nodeRun // of the result's nodes
	numNodes int

	rels    []int32 // the same of relations: number in the result of base's, -1 for those that go
	addRels []int32 // and of those of change.Add
}

// nodeRun is a run of nodes of the result: of base's nodes from..to-1, or of fresh ones.
type nodeRun struct {
	fresh    bool
	from, to int32
}

// apply makes all that is known of the result before components.
func (u *updater) apply(ctx context.Context) (Params, error) {
	m := &u.base.Manifest
	if err := m.Updatable(); err != nil {
		return m.Params, &ChangeError{Msg: "the base can't be updated: " + err.Error()}
	}
	if err := u.base.Lines.Check(m.Weighted); err != nil {
		return m.Params, u.base.wrong("%v", err)
	}
	u.baseIDs = IDs{u.base.IDs.Offsets, u.base.IDs.Bytes, m.Collation}
	u.progress("match ids", 0, 0)
	for _, step := range []func() error{u.checkKinds, u.matchAdded, u.checkFresh} {
		if err := step(); err != nil {
			return m.Params, err
		}
	}
	removed, err := u.removed()
	if err != nil {
		return m.Params, err
	}
	removedGraph, err := u.removedGraph(ctx, removed)
	if err != nil {
		return m.Params, err
	}
	if err := u.findGone(removedGraph); err != nil {
		return m.Params, err
	}
	if err := u.numberNodes(); err != nil {
		return m.Params, err
	}
	if err := u.checkCollation(); err != nil {
		return m.Params, err
	}
	p, err := m.Params.Settle(u.numNodes)
	if err != nil {
		return p, err
	}
	if err := u.numberRels(removedGraph); err != nil {
		return p, err
	}
	u.progress("copy tables", 0, 0)
	if err := u.copyTables(); err != nil {
		return p, err
	}
	return p, u.copyRows(ctx, removedGraph)
}

// checkKinds checks that what the change's tables have is what the base has.
func (u *updater) checkKinds() error {
	m, add, remove := &u.base.Manifest, u.change.Add, u.change.Remove
	relational := len(m.EdgesPerRel) > 0
	if remove != nil && remove.Edges.Len() > 0 && remove.RelNames != nil && !relational && !m.Params.MergeRelations {
		return &ChangeError{Role: RemovedEdges, Msg: "they have relations, the base has none"}
	}
	if add == nil {
		return nil
	}
	if n := add.Edges.Len(); n > 0 {
		has := map[bool]string{true: "have", false: "have no"}
		base := map[bool]string{true: "has them", false: "has none"}
		switch {
		case add.Edges.Weighted() != m.Weighted:
			return &ChangeError{Role: AddedEdges, Msg: fmt.Sprintf("they %s weights, the base %s", has[!m.Weighted], base[m.Weighted]), Hint: "--weight-col chooses or ignores them"}
		case (add.RelNames != nil) != relational && !m.Params.MergeRelations && (relational || m.NumEdges > 0):
			return &ChangeError{Role: AddedEdges, Msg: fmt.Sprintf("they %s relations, the base %s", has[!relational], base[relational]), Hint: "--rel-col chooses them"}
		}
	}
	fault := func(format string, args ...any) error {
		return &ChangeError{Role: NewNodes, Msg: fmt.Sprintf(format, args...), Hint: "rows of new nodes have the columns that the base's have; else " + needsBuild}
	}
	switch f, l, s := add.Features, add.Labels, add.Splits; {
	case f != nil && f.NumCols != int(m.NumFeatures):
		return fault("%d feature columns, the base has %d", f.NumCols, m.NumFeatures)
	case l != nil && m.Task == "":
		return fault("there are labels, the base has none")
	case l != nil && l.Task != m.Task:
		return fault("the labels' task is %s, the base's %s", l.Task, m.Task)
	case l != nil && l.Task == TaskMultilabel && !slices.Equal(l.ClassNames, u.base.ClassNames):
		return fault("the label columns are %q, the base's %q", l.ClassNames, u.base.ClassNames)
	case l != nil && l.Task == TaskRegression && l.NumTargets*u.base.NumNodes() != len(u.base.Values):
		return fault("%d label columns, the base has %d", l.NumTargets, len(u.base.Values)/max(u.base.NumNodes(), 1))
	case s != nil && !subset(s.Names, m.Splits):
		return fault("the splits are %q, the base's %q", s.Names, m.Splits)
	case add.Types != nil && u.base.Types == nil:
		return fault("there are node types, the base has none")
	}
	return nil
}

func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

// find returns the base's node of an id, or the first one behind it. An id that the base's collation has no place for is nowhere.
func (u *updater) find(id []byte) (node int32, ok bool) {
	if u.baseIDs.Collation == CollationInteger {
		if _, isInt := CanonicalInt(id); !isInt {
			return 0, false
		}
	}
	return u.baseIDs.search(id)
}

// matchAdded finds the ids of the added lines and new nodes in the base.
func (u *updater) matchAdded() error {
	add := u.change.Add
	if add == nil {
		return nil
	}
	m := &u.base.Manifest
	u.added = make([]int32, add.IDs.Len())
	type place struct{ id, before int32 }
	var fresh []place
	for i := range u.added {
		id := add.IDs.At(int32(i))
		node, ok := u.find(id)
		if ok {
			if u.added[i] = node; add.Named != nil && add.Named[i] {
				return &ChangeError{Role: NewNodes, Src: string(id), Msg: "is a node of the base already", Hint: "rows are for new nodes; to change what tables say of others " + needsBuild}
			}
			continue
		}
		if _, isInt := CanonicalInt(id); m.Collation == CollationInteger && (!isInt || u.change.TextIDs) {
			return &ChangeError{Role: u.roleOf(i), Src: string(id), Msg: "is an id that isn't ordered as an integer, as all of the base's are: the order of nodes would change", Hint: needsBuild}
		}
		u.added[i] = -1
		fresh = append(fresh, place{int32(i), node})
	}
	slices.SortFunc(fresh, func(a, b place) int {
		if a.before != b.before {
			return cmp.Compare(a.before, b.before)
		}
		return m.Collation.Compare(add.IDs.At(a.id), add.IDs.At(b.id))
	})
	for _, f := range fresh {
		u.fresh, u.before = append(u.fresh, f.id), append(u.before, f.before)
	}
	u.report.NewNodes = int64(len(fresh))
	return nil
}

// roleOf says which file names an id of change.Add.
func (u *updater) roleOf(id int) ChangeRole {
	if u.isNamed(int32(id)) {
		return NewNodes
	}
	return AddedEdges
}

// isNamed reports whether there is a row for an id of change.Add.
func (u *updater) isNamed(id int32) bool {
	named := u.change.Add.Named
	return named != nil && named[id]
}

// checkFresh checks that new nodes have the rows that they need.
func (u *updater) checkFresh() error {
	m, add := &u.base.Manifest, u.change.Add
	hasTables := m.NumFeatures > 0 || m.Task != "" || len(m.Splits) > 0
	for _, id := range u.fresh {
		name := string(add.IDs.At(id))
		switch {
		case m.Update.Declared && !u.isNamed(id):
			return &ChangeError{Role: AddedEdges, Src: name, Msg: "is not a node of the base, nor of --nodes", Hint: "the base has a table of all nodes: give new ones a row in --nodes"}
		case !m.Update.Declared && !hasTables && u.isNamed(id):
			return &ChangeError{Role: NewNodes, Src: name, Msg: "has a row, but the base has no tables, and nodes by their edges alone", Hint: "leave --nodes out"}
		case m.NumFeatures > 0 && m.Params.MissingFeatures != MissingZero && (add.Features == nil || !u.isNamed(id)):
			return &ChangeError{Role: u.roleOf(int(id)), Src: name, Msg: "has no feature row", Hint: "the base was built with --missing-features error: give new nodes their features, f0, f1, ..., in --nodes"}
		}
	}
	return nil
}

// removed returns the edges to remove, as the base numbers nodes and relations.
func (u *updater) removed() (*graph.EdgeList, error) {
	remove := u.change.Remove
	if remove == nil || remove.Edges.Len() == 0 {
		return nil, nil
	}
	nodes := make([]int32, remove.IDs.Len())
	for i := range nodes {
		node, ok := u.find(remove.IDs.At(int32(i)))
		if nodes[i] = -1; ok {
			nodes[i] = node
		}
	}
	byRel := remove.RelNames != nil && !u.base.Manifest.Params.MergeRelations
	rels := numbersOf(remove.RelNames, u.base.RelNames)
	list := graph.NewEdgeList(u.opt.Scratch.ListOptions(false, byRel))
	err := remove.Edges.Each(func(from, to int32, _ float32, r int32) error {
		src, dst, rel := nodes[from], nodes[to], int32(-1)
		missing := src < 0 || dst < 0
		if byRel {
			rel = rels[r]
			missing = missing || rel < 0
		}
		if missing || u.base.In.CountEdges(dst, src, rel) == 0 {
			e := &ChangeError{Role: RemovedEdges, Src: string(remove.IDs.At(from)), Dst: string(remove.IDs.At(to)), Msg: "is not in the base", Hint: "--ignore-missing passes over such edges"}
			if byRel {
				e.Msg = fmt.Sprintf("of the relation %q %s", remove.RelNames[r], e.Msg)
			}
			if u.change.IgnoreMissing {
				if u.report.NumMissing++; u.report.NumMissing == 1 {
					u.report.FirstMissing = fmt.Sprintf("%q, %q", e.Src, e.Dst)
				}
				return nil
			}
			return e
		}
		return list.Add(src, dst, 0, rel)
	})
	return list, err
}

// removedGraph makes rows of the edges to remove, nil without any.
func (u *updater) removedGraph(ctx context.Context, list *graph.EdgeList) (*graph.Graph, error) {
	if list == nil || list.Len() == 0 {
		return nil, nil
	}
	rows, err := list.Rows(ctx, u.base.NumNodes(), graph.Options{Directed: u.base.Out != nil, NumRels: len(u.base.RelNames), Threads: u.opt.Threads})
	if err != nil {
		return nil, err
	}
	return rows.Graph(ctx, nil)
}

// graphUpdate describes the change of the rows as far as it is known.
func (u *updater) graphUpdate(removed *graph.Graph) *graph.Update {
	a := &u.base.Manifest.Audit
	return &graph.Update{
		In: u.base.In, Out: u.base.Out, Lines: u.base.Lines,
		Audit:   graph.Audit{NumLines: int64(a.NumLines), NumPairs: int64(a.NumPairs), OneDirectional: int64(a.OneDirectional)},
		Removed: removed, Threads: u.opt.Threads, Alloc: u.opt.Scratch.allocArray, Progress: u.progress, Guard: u.guard,
	}
}

// findGone finds the nodes that nothing names any more: without a table of all nodes, those that no table names, that lose all their
// edges and get no new ones.
func (u *updater) findGone(removed *graph.Graph) error {
	if removed == nil || u.base.Manifest.Update.Declared {
		return nil
	}
	base := u.base
	lost := map[int32]int64{} // entries of in-rows and out-rows, by node
	err := u.graphUpdate(removed).Check(func(src, dst int32, numEdges int64) {
		lost[src] += numEdges
		if src != dst || base.Out != nil {
			lost[dst] += numEdges
		}
	})
	if err != nil {
		return err
	}
	stays := map[int32]bool{}
	for _, v := range u.added {
		stays[v] = true
	}
	for v, n := range lost {
		degree := base.In.Degree(v)
		if base.Out != nil {
			degree += base.Out.Degree(v)
		}
		if n == degree && !stays[v] && !base.isNamed(v) {
			u.gone = append(u.gone, v)
		}
	}
	slices.Sort(u.gone)
	u.report.GoneNodes = int64(len(u.gone))
	return nil
}

// checkCollation refuses a change that would leave integers only where the base has other ids: the order of nodes would change.
func (u *updater) checkCollation() error {
	m := &u.base.Manifest
	if m.Collation != CollationBytes || u.change.TextIDs || m.Params.Anonymised != nil || len(u.gone) == 0 {
		return nil // a new id changes nothing; an old one that goes might
	}
	isText := func(id []byte) bool { _, ok := CanonicalInt(id); return !ok }
	wasText := slices.ContainsFunc(u.gone, func(v int32) bool { return isText(u.baseIDs.At(v)) })
	if !wasText || slices.ContainsFunc(u.fresh, func(i int32) bool { return isText(u.change.Add.IDs.At(i)) }) {
		return nil
	}
	gone := u.gone
	for v := int32(u.baseIDs.Len()) - 1; v >= 0; v-- { // texts are often behind the digits
		if n := len(gone); n > 0 && gone[n-1] == v {
			gone = gone[:n-1]
		} else if isText(u.baseIDs.At(v)) {
			return nil
		}
	}
	return &ChangeError{Role: RemovedEdges, Msg: "only ids that are integers would be left, which are ordered as such: the order of nodes would change", Hint: "if ids are text, --id-type string; else " + needsBuild}
}

// numberNodes gives base's nodes their new numbers.
func (u *updater) numberNodes() error {
	n := int32(u.base.NumNodes())
	total := int64(n) + int64(len(u.fresh)) - int64(len(u.gone))
	if total > graph.MaxNodes {
		return &ChangeError{Role: AddedEdges, Msg: fmt.Sprintf("%d nodes: a graph has at most %d", total, int64(graph.MaxNodes))}
	}
	if total == 0 {
		return &ChangeError{Role: RemovedEdges, Msg: "no node would be left"}
	}
	u.numNodes = int(total)
	addRun := func(r nodeRun) {
		if r.from < r.to {
			u.runs = append(u.runs, r)
		}
	}
	at, f, g := int32(0), int32(0), 0
	for int(f) < len(u.fresh) || g < len(u.gone) {
		if int(f) < len(u.fresh) && (g == len(u.gone) || u.before[f] <= u.gone[g]) {
			addRun(nodeRun{false, at, u.before[f]})
			at = u.before[f]
			end := f + 1
			for int(end) < len(u.fresh) && u.before[end] == at {
				end++
			}
			addRun(nodeRun{true, f, end})
			f = end
			continue
		}
		addRun(nodeRun{false, at, u.gone[g]})
		at = u.gone[g] + 1
		g++
	}
	addRun(nodeRun{false, at, n})
	if u.runs[0] == (nodeRun{false, 0, n}) {
		return nil // the same numbers
	}
	u.number = make([]int32, n)
	for i := range u.number {
		u.number[i] = -1
	}
	next := int32(0)
	for _, r := range u.runs {
		for v := r.from; v < r.to; v++ {
			if !r.fresh {
				u.number[v] = next
			}
			next++
		}
	}
	return nil
}

// newNumber is the number in the result of a node of base.
func (u *updater) newNumber(v int32) int32 {
	if u.number == nil {
		return v
	}
	return u.number[v]
}

// numberRels makes the names of the result's relations: those of base that have edges left or are in lists of held-out pairs, and the added ones.
func (u *updater) numberRels(removed *graph.Graph) error {
	base, add := u.base, u.change.Add
	if base.Manifest.Params.MergeRelations {
		return nil
	}
	left := slices.Clone(base.Manifest.EdgesPerRel)
	if removed != nil && len(left) > 0 {
		u.countRemoved(removed, left)
	}
	if base.Held != nil {
		for _, list := range base.Held.parts() {
			for _, r := range list.Rel {
				left[r]++
			}
		}
	}
	var names []string
	for r, name := range base.RelNames {
		if left[r] > 0 {
			names = append(names, name)
		}
	}
	if add != nil {
		names = append(names, add.RelNames...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if u.rels = numbersOf(base.RelNames, names); add != nil {
		u.addRels = numbersOf(add.RelNames, names)
	}
	u.tables.RelNames = names
	return nil
}

// countRemoved takes the removed edges from the number that each relation has.
func (u *updater) countRemoved(removed *graph.Graph, left []format.Int) {
	base := &u.base.In
	in := &removed.In
	for row := range int32(in.NumNodes()) {
		for e := in.Indptr[row]; e < in.Indptr[row+1]; e++ {
			col := in.Indices[e]
			switch {
			case u.base.Out == nil && col < row: // seen in the other's row
			case base.Rel == nil:
				left[0]--
			case in.Rel != nil:
				left[in.Rel[e]]--
			default:
				for k, end := base.EntriesTo(row, col); k < end; k++ {
					left[base.Rel[k]]--
				}
			}
		}
	}
}

// numbersOf returns the place of each of list in names, which are distinct, -1 for none.
func numbersOf(list, names []string) []int32 {
	place := make(map[string]int32, len(names))
	for i, name := range names {
		place[name] = int32(i)
	}
	numbers := make([]int32, len(list))
	for i, name := range list {
		at, ok := place[name]
		if numbers[i] = at; !ok {
			numbers[i] = -1
		}
	}
	return numbers
}

// copyRows makes the rows and lines of the result.
func (u *updater) copyRows(ctx context.Context, removed *graph.Graph) error {
	g := u.graphUpdate(removed)
	g.Number, g.NumNodes = u.number, u.numNodes
	g.RelNumber, g.NumRels = u.rels, len(u.tables.RelNames)
	if slices.Equal(u.base.RelNames, u.tables.RelNames) {
		g.RelNumber = nil
	}
	u.progress("sort change", 0, 0)
	if add := u.change.Add; add != nil && add.Edges.Len() > 0 {
		list, err := u.addedLines(add)
		if err != nil {
			return err
		}
		rows, err := list.Rows(ctx, u.numNodes, graph.Options{Directed: u.base.Out != nil, NumRels: g.NumRels, Threads: u.opt.Threads, Lines: true})
		if err != nil {
			return u.nameNodes(err)
		}
		if g.AddedLines, err = rows.TakeLines(nil); err != nil {
			return err
		}
		if g.Added, err = rows.Graph(ctx, nil); err != nil {
			return err
		}
	}
	u.opt.Scratch.freeEdges()
	g.Lists = u.opt.Scratch.ListOptions(false, false)
	rows, lines, err := g.Graph(ctx)
	if err != nil {
		return u.nameNodes(err)
	}
	u.opt.Scratch.freeEdges()
	u.graph = rows
	u.keepLines(lines)
	for _, f := range u.base.files {
		f.Drop() // what is still needed of it is read once
	}
	return nil
}

// addedLines returns the added lines in the result's numbers.
func (u *updater) addedLines(add *Tables) (*graph.EdgeList, error) {
	nodes := make([]int32, len(u.added))
	for i, v := range u.added {
		if v >= 0 {
			nodes[i] = u.newNumber(v)
		}
	}
	next := int32(0)
	for _, r := range u.runs {
		for f := r.from; r.fresh && f < r.to; f++ {
			nodes[u.fresh[f]] = next + f - r.from
		}
		next += r.to - r.from
	}
	relational := len(u.tables.RelNames) > 0
	list := graph.NewEdgeList(u.opt.Scratch.ListOptions(add.Edges.Weighted(), relational))
	err := add.Edges.Each(func(src, dst int32, weight float32, rel int32) error {
		if relational {
			rel = u.addRels[rel]
		}
		return list.Add(nodes[src], nodes[dst], weight, rel)
	})
	return list, err
}

// spread returns an array by node of the result, width elements each: copied from that of base, and filled by fresh for the ids of change.Add that are new.
func spread[T any](u *updater, old []T, width int, fresh func(to []T, id int32)) []T {
	out := make([]T, u.numNodes*width)
	at := 0
	for _, r := range u.runs {
		n := int(r.to-r.from) * width
		if !r.fresh {
			copy(out[at:at+n], old[int(r.from)*width:])
		}
		for f := r.from; r.fresh && f < r.to; f++ {
			from := at + int(f-r.from)*width
			fresh(out[from:from+width], u.fresh[f])
		}
		at += n
	}
	return out
}

// copyTables makes everything by node but the rows.
func (u *updater) copyTables() error {
	base, add, t := u.base, u.change.Add, u.tables
	u.copyIDs()
	u.keys = spread(u, base.Keys, 1, func(to []uint64, id int32) { to[0] = keyOf(add.IDs.At(id)) })
	if err := u.copyLabels(); err != nil {
		return err
	}
	u.copySplits()
	u.copyTypes()
	if err := u.copyFeatures(); err != nil {
		return err
	}
	m := base.Manifest.Update
	if t.Declared = m.Declared; !t.Declared && (m.Named != namedNone || slices.ContainsFunc(u.fresh, u.isNamed)) {
		named := make([]bool, base.NumNodes())
		for v := range named {
			named[v] = base.isNamed(int32(v))
		}
		t.Named = spread(u, named, 1, func(to []bool, id int32) { to[0] = u.isNamed(id) })
	}
	u.copyHeld()
	return nil
}

func (u *updater) copyIDs() {
	old, ids := &u.baseIDs, &u.tables.IDs
	ids.Collation = old.Collation
	ids.Offsets = make([]int64, 1, u.numNodes+1)
	ids.Bytes = make([]byte, 0, len(old.Bytes))
	for _, r := range u.runs {
		if !r.fresh {
			shift := int64(len(ids.Bytes)) - old.Offsets[r.from]
			ids.Bytes = append(ids.Bytes, old.Bytes[old.Offsets[r.from]:old.Offsets[r.to]]...)
			for _, end := range old.Offsets[r.from+1 : r.to+1] {
				ids.Offsets = append(ids.Offsets, end+shift)
			}
		}
		for f := r.from; r.fresh && f < r.to; f++ {
			ids.Bytes = append(ids.Bytes, u.change.Add.IDs.At(u.fresh[f])...)
			ids.Offsets = append(ids.Offsets, int64(len(ids.Bytes)))
		}
	}
}

func (u *updater) copyLabels() error {
	base := u.base
	if base.Manifest.Task == "" {
		return nil
	}
	var added *Labels
	if u.change.Add != nil {
		added = u.change.Add.Labels
	}
	l := &Labels{Task: base.Manifest.Task, ClassNames: base.ClassNames}
	u.tables.Labels = l
	switch {
	case base.Class != nil:
		return u.copyClasses(l, added)
	case base.Bits != nil:
		cols := len(l.ClassNames)
		l.Bits = spread(u, base.Bits, cols, func(to []uint8, id int32) {
			if added != nil && added.Labelled[id] {
				copy(to, added.Bits[int(id)*cols:])
				return
			}
			for i := range to {
				to[i] = format.Unlabelled
			}
		})
	default:
		l.NumTargets = len(base.Values) / base.NumNodes()
		l.Values = spread(u, base.Values, l.NumTargets, func(to []float32, id int32) {
			if added != nil && added.Labelled[id] {
				copy(to, added.Values[int(id)*l.NumTargets:])
				return
			}
			for i := range to {
				to[i] = noTarget()
			}
		})
	}
	return nil
}

// copyClasses numbers the classes of all names anew.
func (u *updater) copyClasses(l, added *Labels) error {
	base := u.base
	var number []int32 // of added's classes
	if added != nil {
		l.ClassNames = sortClasses(append(slices.Clone(base.ClassNames), added.ClassNames...))
		number = numbersOf(added.ClassNames, l.ClassNames)
	}
	if l.Task == TaskBinary && len(l.ClassNames) != 2 {
		return &ChangeError{Role: NewNodes, Msg: fmt.Sprintf("the task binary needs two classes, with the base's there are %d", len(l.ClassNames)), Hint: needsBuild + " with --task multiclass"}
	}
	l.Class = spread(u, base.Class, 1, func(to []int32, id int32) {
		if to[0] = -1; added != nil && added.Class[id] >= 0 {
			to[0] = number[added.Class[id]]
		}
	})
	if slices.Equal(l.ClassNames, base.ClassNames) {
		return nil
	}
	old := numbersOf(base.ClassNames, l.ClassNames)
	at := 0
	for _, r := range u.runs {
		n := int(r.to - r.from)
		for i := at; !r.fresh && i < at+n; i++ {
			if l.Class[i] >= 0 {
				l.Class[i] = old[l.Class[i]]
			}
		}
		at += n
	}
	return nil
}

// sortClasses returns the distinct names in the order of class numbers: numerically if all are integers, else bytewise.
func sortClasses(names []string) []string {
	c := CollationInteger
	if slices.ContainsFunc(names, func(name string) bool { _, ok := CanonicalInt([]byte(name)); return !ok }) {
		c = CollationBytes
	}
	slices.SortFunc(names, func(a, b string) int { return c.Compare([]byte(a), []byte(b)) })
	return slices.Compact(names)
}

func (u *updater) copySplits() {
	base, add := u.base, u.change.Add
	names := base.Manifest.Splits
	if len(names) == 0 {
		return
	}
	u.tables.Splits = &Splits{Names: names, Mask: spread(u, base.Mask, len(names), func(to []Part, id int32) {
		if add.Splits == nil {
			return
		}
		k := len(add.Splits.Names)
		parts := add.Splits.Mask[int(id)*k : (int(id)+1)*k]
		if base.Manifest.Task != "" && add.Labels == nil { // as for any node without a label
			if slices.ContainsFunc(parts, func(p Part) bool { return p != PartNone }) {
				u.report.DroppedSplits++
			}
			return
		}
		for i, name := range add.Splits.Names {
			to[slices.Index(names, name)] = parts[i]
		}
	})}
}

// copyTypes makes the node types: names are those that nodes have.
func (u *updater) copyTypes() {
	old := u.base.Types
	if old == nil {
		return
	}
	names := append(slices.Clone(old.Names), "")
	var added *Types
	if u.change.Add != nil && u.change.Add.Types != nil {
		added = u.change.Add.Types
		names = append(names, added.Names...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	oldPlace, none := numbersOf(old.Names, names), numbersOf([]string{""}, names)[0]
	var addedPlace []int32
	if added != nil {
		addedPlace = numbersOf(added.Names, names)
	}
	types := make([]int32, len(old.Type))
	for v, k := range old.Type {
		types[v] = oldPlace[k]
	}
	types = spread(u, types, 1, func(to []int32, id int32) {
		if to[0] = none; added != nil {
			to[0] = addedPlace[added.Type[id]]
		}
	})
	used := make([]bool, len(names))
	for _, k := range types {
		used[k] = true
	}
	t := &Types{Type: types}
	place := make([]int32, len(names))
	for k, name := range names {
		if place[k] = int32(len(t.Names)); used[k] {
			t.Names = append(t.Names, name)
		}
	}
	for v, k := range types {
		types[v] = place[k]
	}
	u.tables.Types = t
}

// copyFeatures has the rows of features written in runs, straight from the base's file.
func (u *updater) copyFeatures() error {
	base, add := u.base, u.change.Add
	cols := base.NumFeatures()
	if cols == 0 {
		return nil
	}
	if base.Manifest.Params.FeatureNorm == NormStandard && (len(u.fresh) > 0 || len(u.gone) > 0) {
		return &ChangeError{Role: NewNodes, Msg: "the features' mean and deviation, by which the base's are normalised (--feature-norm standard), would change with the nodes", Hint: needsBuild}
	}
	zeros := make([]float32, cols)
	u.tables.Features = &Features{NumCols: cols, Write: func(w io.Writer) error {
		return u.guard(func() error {
			for _, r := range u.runs {
				if !r.fresh {
					if err := writeAll(w, format.Bytes(base.Features[int(r.from)*cols:int(r.to)*cols])); err != nil {
						return err
					}
				}
				for f := r.from; r.fresh && f < r.to; f++ {
					row, id := zeros, u.fresh[f]
					if add.Features != nil && u.isNamed(id) {
						row = add.Features.Data[int(id)*cols : (int(id)+1)*cols]
					}
					if err := writeAll(w, format.Bytes(row)); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}}
	return nil
}

// writeAll writes b in parts that stay in the cache while they are summed and copied.
func writeAll(w io.Writer, b []byte) error {
	for len(b) > 0 {
		n := min(len(b), 1<<20)
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// copyHeld renumbers lists of held-out pairs that lie beside the graph, which keeps their order.
func (u *updater) copyHeld() {
	base := u.base
	if base.Held == nil {
		return
	}
	audit := *base.Manifest.Heldout // what counts the graph too is counted again
	u.held, u.heldAudit = &Held{}, &audit
	for k, list := range base.Held.parts() {
		to := u.held.parts()[k]
		for i, src := range list.Src {
			to.Src, to.Dst = append(to.Src, u.newNumber(src)), append(to.Dst, u.newNumber(list.Dst[i]))
			if list.Rel != nil {
				to.Rel = append(to.Rel, u.rels[list.Rel[i]])
			}
		}
		if to.Weight = slices.Clone(list.Weight); list.Rel != nil && to.Rel == nil {
			to.Rel = []int32{}
		}
	}
}
