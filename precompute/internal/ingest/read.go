package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/prelift/prelift/snapshot"
)

// reader is one Read under way. External ids have numbers in order of first sight until the end, when numbers
// becomes sorted order.
type reader struct {
	opt      Options
	report   *Report
	dict     *dict
	declared bool   // the node set is what the edge files declare, in several of them perhaps the same
	named    []bool // by number: the id stands in a table, a list of held-out pairs, or is the number of a row
	closer   string // what closed dict, for messages: "is not an id in nodes.csv"

	weightFile string // first edge file with rows
	weighted   bool

	matrix   *matrix      // features from .npy or .npz
	features featureTable // features from text
	types    *nodeTypes
	rels     relations
	held     *heldPairs
	labels   *labelTable
	splits   *splitTable

	doneBytes, totalBytes int64 // of the phase
}

// Read reads the files that opt names. Faults of the input come as *Error, the first by order of files (nodes,
// edges, held-out pairs, features, labels, splits) and line; ctx's error when it is cancelled. The report is never nil and covers
// what was read. Memory is about 8 bytes an edge (12 with weights), that of the tables, and about the ids' bytes
// plus 40 for each node.
func Read(ctx context.Context, opt Options) (*snapshot.Tables, *Report, error) {
	r := &reader{report: &Report{}}
	var err error
	if r.opt, err = opt.withDefaults(); err != nil {
		return nil, r.report, err
	}
	r.dict = newDict(r.opt.IDType == IDString || r.opt.Change) // bytes: edges may then be numbered in parallel behind the rows of nodes
	tables, err := r.run(ctx)
	if e := (*Error)(nil); errors.As(err, &e) {
		r.settlePlace(e)
	}
	if r.matrix != nil {
		r.matrix.close()
	}
	return tables, r.report, err
}

func (r *reader) run(ctx context.Context) (*snapshot.Tables, error) {
	remove, err := r.spoolStdin(ctx)
	defer remove()
	if err != nil {
		return nil, err
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if r.opt.Nodes != "" {
		if err := r.readNodes(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.openMatrix(); err != nil {
		return nil, err
	}
	edges, err := r.readEdges(ctx)
	if err != nil {
		return nil, err
	}
	edgeNumber := r.dict.settle()
	for _, read := range []func(context.Context) error{r.readHoldout, r.readFeatures, r.readLabels, r.readSplits, r.checkSpellings} {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	if r.dict.len() == 0 && !r.opt.Change {
		return nil, &Error{File: r.opt.nameOf(cmp.Or(r.opt.Nodes, r.opt.Edges[0])), Msg: "there are no nodes: the input holds no ids"}
	}
	declared := r.dict.closed
	ids, number := r.dict.sorted(r.opt.IDType == IDString, r.opt.Threads)
	r.dict = nil
	ids, shown, err := r.anonymise(ids, number)
	if err != nil {
		return nil, err
	}
	tables := &snapshot.Tables{IDs: ids, Edges: edges, Types: r.types.place(number), Declared: declared}
	if !declared {
		tables.Named = r.placeNamed(number)
	}
	var relNumber []int32
	tables.RelNames, relNumber = r.rels.place()
	edges.Renumber(r.throughBoth(edgeNumber, number), relNumber)
	tables.Held = r.held.place(number, relNumber)
	r.report.NumNodes = int64(ids.Len())
	if tables.Features, err = r.placeFeatures(ctx, &shown, number); err != nil {
		return nil, err
	}
	if tables.Labels, err = r.placeLabels(number); err != nil {
		return nil, err
	}
	if tables.Splits, err = r.placeSplits(&shown, number, tables.Labels); err != nil {
		return nil, err
	}
	return tables, nil
}

// placeNamed returns which nodes are named, nil if none is.
func (r *reader) placeNamed(number []int32) []bool {
	if r.named == nil {
		return nil
	}
	named := make([]bool, len(number))
	for i, ok := range r.named {
		named[number[i]] = ok
	}
	return named
}

// throughBoth returns second[first[i]] for each i, in first's memory; first may be nil for i itself.
func (r *reader) throughBoth(first, second []int32) []int32 {
	if first == nil {
		return second
	}
	parallel(len(first), r.opt.Threads, func(from, to int) {
		for i := from; i < to; i++ {
			first[i] = second[first[i]]
		}
	})
	return first
}

// number returns the number of an id of a table's row, or the Error that refuses it.
func (r *reader) number(t *table, col int, column string) (int32, error) {
	if t.numbered {
		return r.rowNumber(t)
	}
	if t.scan.isNull(col) {
		return 0, &Error{File: t.in.name, Line: t.scan.start, Column: column, Msg: "null id"}
	}
	id := t.scan.field(col)
	if err := checkID(id, t.in.name, t.scan.start, column); err != nil {
		return 0, err
	}
	if r.opt.IDType == IDInteger {
		if err := checkInteger(id, t.in.name, t.scan.start, column); err != nil {
			return 0, err
		}
	}
	num := r.dict.add(id)
	if num < 0 {
		return 0, r.numberError(num, t.in.name, t.scan.start, column, string(id))
	}
	r.name(num)
	return num, nil
}

// name notes that a table names an id.
func (r *reader) name(num int32) {
	if !r.dict.closed {
		r.named = grow(r.named, int(num)+1, false)
		r.named[num] = true
	}
}

// rowNumber returns the number of the node that a row without an id belongs to: that of the same row of Nodes, or of
// the id that is the row's number from 0.
func (r *reader) rowNumber(t *table) (int32, error) {
	row := t.row - 1
	if r.opt.Nodes != "" {
		if row >= int64(r.dict.len()) {
			return 0, &Error{File: t.in.name, Line: t.scan.start, Msg: fmt.Sprintf("a row too many for %d nodes", r.dict.len()), Hint: "row i belongs to data row i of the node table"}
		}
		return int32(row), nil
	}
	num := r.dict.addInt(row)
	if num < 0 {
		return 0, r.numberError(num, t.in.name, t.scan.start, "", fmt.Sprint(row))
	}
	r.name(num)
	return num, nil
}

// eachNode calls set for each row of a table of nodes, at that row and with the node's number; id is the
// column of the id.
func (r *reader) eachNode(ctx context.Context, t *table, id int, set func(num int32) error) error {
	column := t.columnName(id, "node")
	for {
		ok, err := t.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return r.endOfRows(t)
		}
		num, err := r.number(t, id, column)
		if err != nil {
			return err
		}
		if err := set(num); err != nil {
			return err
		}
	}
}

// endOfRows refuses a table without ids that is shorter than Nodes.
func (r *reader) endOfRows(t *table) error {
	if n := int64(r.dict.len()); t.numbered && r.opt.Nodes != "" && t.row < n {
		return &Error{File: t.in.name, Msg: fmt.Sprintf("%d %s for %d nodes", t.row, plural(int(t.row), "row"), n), Hint: "row i belongs to data row i of the node table"}
	}
	return nil
}

// prepare opens the data set and makes one node table of several, or of what the edge files declare.
func (r *reader) prepare(ctx context.Context) error {
	o := &r.opt
	if o.Dataset != "" {
		if err := r.openDataset(ctx); err != nil {
			return err
		}
	}
	if err := r.properties(); err != nil {
		return err
	}
	if len(o.NodeFiles) > 0 {
		if o.Nodes != "" {
			o.NodeFiles = slices.Insert(o.NodeFiles, 0, o.Nodes)
		}
		if o.Nodes = o.NodeFiles[0]; len(o.NodeFiles) > 1 {
			o.Nodes = joinTables(o, o.NodeFiles)
		}
	}
	return r.declaredNodes()
}

// MayDeclareNodes reports whether edge files, of a format as Options.Format has it, may bring a node table with them. It says so too of files of
// which that can't be told yet: standard input, and what can't be read.
func MayDeclareNodes(format string, paths []string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool {
		if path == stdinPath {
			return format != FormatAuto && !declaring[format]
		}
		kind, err := kindOf(&Options{Format: format}, path, roleEdges)
		return err == nil && !declaring[kind]
	})
}

// declaredNodes makes edge files that declare their nodes the node table, where none is given.
func (r *reader) declaredNodes() error {
	if r.opt.Nodes != "" || len(r.opt.Edges) == 0 || r.opt.Change {
		return nil
	}
	var tables []string
	for _, path := range r.opt.Edges {
		if r.opt.sources[path] != nil {
			return nil
		}
		kind, err := kindOf(&r.opt, path, roleEdges)
		if err != nil {
			return err
		}
		if !declaring[kind] {
			return nil
		}
		nodes := "nodes of " + path
		r.opt.sources[nodes] = func(ctx context.Context, opt *Options, role string) (*table, error) {
			return openers[kind](ctx, opt, path, role)
		}
		tables = append(tables, nodes)
	}
	if r.opt.Nodes = tables[0]; len(tables) > 1 {
		r.declared = true
		r.opt.Nodes = joinTables(&r.opt, tables)
	}
	return nil
}

// numberError turns a code of dict into an Error.
func (r *reader) numberError(code int32, file string, line int64, column, value string) error {
	e := &Error{File: file, Line: line, Column: column, Value: value}
	if code == tooMany {
		e.Msg, e.Err = fmt.Sprintf("is one node too many: at most %d can be numbered", maxNumber), ErrLimit
		return e
	}
	e.Msg = r.closer
	if whole, ok := strings.CutSuffix(value, ".0"); ok && r.dict.add([]byte(whole)) >= 0 {
		e.Hint = fmt.Sprintf("%s is: did a tool turn ids into decimals?", quote(whole))
	} else if v, ok, fits := looseInt([]byte(value)); ok && fits && r.dict.add(fmt.Append(nil, v)) >= 0 {
		e.Hint = fmt.Sprintf("\"%d\" is; ids are compared as text", v)
	}
	return e
}

// openText opens a text table other than edges and starts its progress.
func (r *reader) openText(ctx context.Context, path, role string) (*table, error) {
	t, err := openTable(ctx, &r.opt, path, role)
	if err != nil {
		return nil, err
	}
	r.report.Files = append(r.report.Files, t.report)
	r.doneBytes, r.totalBytes = 0, t.in.size
	t.onBlock = func() { r.progress(role, t.in.read.Load()) }
	return t, nil
}

// progress reports bytes read of the current file.
func (r *reader) progress(phase string, fileBytes int64) {
	if r.opt.Progress != nil {
		r.opt.Progress(phase, r.doneBytes+fileBytes, r.totalBytes)
	}
}

// fileSize returns the size of a file, 0 if it can't be told: opening will say why.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// lineOfID returns the line of the first row of a text table with the id, by reading it again; 0 if there is none any more.
func (r *reader) lineOfID(ctx context.Context, path, role, id string) int64 {
	found := int64(0)
	r.eachID(ctx, path, role, func(line int64, got []byte) bool {
		if string(got) == id {
			found = line
		}
		return found == 0
	})
	return found
}

// eachID calls f with the line and id of the rows of a text table until it says stop. For error messages: faults
// just end it.
func (r *reader) eachID(ctx context.Context, path, role string, f func(line int64, id []byte) bool) {
	t, err := openTable(ctx, &r.opt, path, role)
	if err != nil {
		return
	}
	defer t.close()
	col, err := t.idColumn()
	if err != nil || t.use(col) != nil {
		return
	}
	for {
		if ok, err := t.next(ctx); !ok || err != nil || col < 0 || !f(t.scan.start, t.scan.field(col)) {
			return
		}
	}
}

// checkSpellings refuses, for IDType integer, two spellings of one number.
func (r *reader) checkSpellings(ctx context.Context) error {
	if r.opt.IDType != IDInteger || !r.dict.isBytes.Load() {
		return nil
	}
	values := make([]int64, 0, r.dict.len())
	r.dict.eachBytes(func(id []byte, _ int32) {
		v, _, _ := looseInt(id)
		values = append(values, v)
	})
	slices.Sort(values)
	twice := values[:0]
	for i := 1; i < len(values); i++ {
		if values[i] == values[i-1] {
			twice = append(twice, values[i])
		}
	}
	if len(twice) == 0 {
		r.report.Notices = append(r.report.Notices, "not all integer ids are in canonical form: ids are kept as written, in bytewise order")
		return nil
	}
	type place struct {
		id, file string
		line     int64
	}
	firsts := map[int64]place{}
	var err error
	r.eachPlace(ctx, func(file string, line int64, id []byte) bool {
		v, _, _ := looseInt(id)
		if _, colliding := slices.BinarySearch(twice, v); !colliding {
			return true
		}
		first, seen := firsts[v]
		switch {
		case !seen:
			firsts[v] = place{string(id), file, line}
		case first.id != string(id):
			err = &Error{File: file, Line: line, Msg: fmt.Sprintf("ids %s (%s line %d) and %s (%s line %d) collide: they are one integer", quote(first.id), first.file, first.line, quote(string(id)), file, line),
				Hint: "--id-type string keeps them apart"}
		}
		return err == nil
	})
	if err == nil {
		err = &Error{Msg: fmt.Sprintf("two spellings of the integer %d collide", twice[0]), Hint: "--id-type string keeps them apart"}
	}
	return err
}

// eachPlace reads the files again, in their order, and calls f with every id until it says stop. For error messages:
// faults just end the file.
func (r *reader) eachPlace(ctx context.Context, f func(file string, line int64, id []byte) (more bool)) {
	more := true
	ids := func(path, role string) {
		if path != "" && more {
			r.eachID(ctx, path, role, func(line int64, id []byte) bool {
				more = f(r.opt.nameOf(path), line, id)
				return more
			})
		}
	}
	ids(r.opt.Nodes, roleNodes)
	for _, path := range r.opt.Edges {
		format, err := edgeFormatOf(&r.opt, path)
		if err != nil || !more {
			return
		}
		format.rows(ctx, r, path, func(line int64, row ...[]byte) bool {
			for _, id := range row {
				more = more && f(r.opt.nameOf(path), line, id)
			}
			return more
		})
	}
	if r.held != nil {
		for _, l := range r.held.lists {
			r.eachHeld(ctx, l.path, func(t *table, src, dst []byte) bool {
				more = more && f(t.in.name, t.scan.start, src) && f(t.in.name, t.scan.start, dst)
				return more
			})
		}
	}
	if r.matrix == nil {
		ids(r.opt.Features, roleFeatures)
	}
	ids(r.opt.Labels, roleLabels)
	if lists, isList, _ := parseLists("splits", r.opt.Splits); isList {
		for _, l := range lists {
			ids(l.path, roleSplits)
		}
		return
	}
	ids(r.opt.Splits, roleSplits)
}

// readNodes reads the node table: its rows are the node set.
func (r *reader) readNodes(ctx context.Context) error {
	t, err := r.openText(ctx, r.opt.Nodes, roleNodes)
	if err != nil {
		return err
	}
	defer t.close()
	id, err := t.idColumn()
	if err != nil {
		return err
	}
	used := []int{id}
	labels, err := r.nodeLabels(t, id)
	if err != nil {
		return err
	}
	if labels != nil {
		used = append(used, labels.cols...)
	}
	if r.types, err = r.nodeTypes(t); err != nil {
		return err
	}
	if r.types != nil {
		used = append(used, r.types.col)
	}
	splits := r.nodeSplits(t)
	if splits != nil {
		used = append(used, splits.cols...)
	}
	features, err := r.nodeFeatures(t, id)
	if err != nil {
		return err
	}
	if features != nil {
		used = append(used, features.cols...)
		r.features = features
	}
	r.labels, r.splits = labels, splits
	if err := t.use(used...); err != nil {
		return err
	}
	t.noteUnused(used...)
	column, name := t.columnName(id, "id"), t.in.name
	for count := int64(1); ; count++ {
		ok, err := t.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		num, err := r.number(t, id, column)
		if err != nil {
			return err
		}
		if r.declared && int64(num) < count-1 {
			count--
			continue
		}
		if int64(num) != count-1 {
			value := string(t.scan.field(id))
			return &Error{File: t.in.name, Line: t.scan.start, Column: column, Value: value,
				Msg: fmt.Sprintf("is in the table twice, first in %s %d", t.placeWord(), r.lineOfID(ctx, r.opt.Nodes, roleNodes, value))}
		}
		if r.types != nil {
			if err := r.types.set(t, num); err != nil {
				return err
			}
		}
		if labels != nil {
			if err := labels.set(ctx, r, t, num); err != nil {
				return err
			}
		}
		if splits != nil {
			if err := splits.set(t, num); err != nil {
				return err
			}
		}
		if features != nil {
			if err := features.set(ctx, r, t, num); err != nil {
				return err
			}
		}
	}
	if !r.opt.Change {
		r.dict.closed = true
		r.closer = "is not an id in " + name
	}
	return nil
}
