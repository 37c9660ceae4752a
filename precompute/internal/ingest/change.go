package ingest

import (
	"bytes"
	"context"
	"strings"

	"github.com/prelift/prelift/snapshot"
)

// ReadChange reads the files of a change of a snapshot: what to add, by opt, which gets Change, and in the files remove the edges to remove, of
// which weights don't count, nor relations where the files lack opt's RelCol. Errors and reports are as Read gives them, one report for
// each of the two that there is.
func ReadChange(ctx context.Context, opt Options, remove []string) (*snapshot.Change, []*Report, error) {
	opt.Change = true
	change := &snapshot.Change{TextIDs: opt.IDType == IDString}
	var reports []*Report
	if len(opt.Edges) > 0 || opt.Nodes != "" || len(opt.NodeFiles) > 0 {
		tables, report, err := Read(ctx, opt)
		reports = append(reports, report)
		if err != nil {
			return nil, reports, err
		}
		change.Add = tables
	}
	if len(remove) > 0 {
		removal, err := opt.removal(ctx, remove)
		if err != nil {
			return nil, reports, err
		}
		tables, report, err := Read(ctx, removal)
		reports = append(reports, report)
		if err != nil {
			return nil, reports, err
		}
		change.Remove = tables
	}
	return change, reports, nil
}

// removal returns the options for the edges to remove.
func (o Options) removal(ctx context.Context, files []string) (Options, error) {
	o.Edges, o.Nodes, o.NodeFiles, o.TypeCol, o.Change = files, "", nil, "", true
	o.WeightCol = WeightNone
	if o.RelCol == "" && !o.BaseRelations {
		return o, nil
	}
	plain := o
	plain.RelCol = ""
	r, err := again(ctx, plain)
	if err != nil {
		return o, err
	}
	if o.RelCol == "" {
		for _, path := range files {
			if err := unsaidRelation(ctx, &r.opt, path); err != nil {
				return o, err
			}
		}
		return o, nil
	}
	t, err := openTable(ctx, &r.opt, files[0], roleEdges)
	if err != nil {
		return o, err
	}
	defer t.close()
	if t.lacks(o.RelCol) {
		o.RelCol = ""
	}
	return o, nil
}

// unsaidRelation refuses a list of edges to remove with a column of relations by its name that isn't read as one: the edges
// of all relations would go.
func unsaidRelation(ctx context.Context, opt *Options, path string) error {
	t, err := openTable(ctx, opt, path, roleEdges)
	if err != nil {
		return err
	}
	defer t.close()
	if c := find(t.names, relationNames); c >= 0 && t.relCol < 0 {
		return t.headError("--rel-col "+t.names[c]+" reads it; for all relations leave the column out",
			"the column %s isn't read: edges of all relations would be removed", quote(t.names[c]))
	}
	return nil
}

// changedSplits returns the splits of SplitNames that a node table has columns for, nil without any.
func (r *reader) changedSplits(t *table) (*splitTable, error) {
	s := &splitTable{files: []string{t.in.name}, rep: r.report}
	for _, name := range r.opt.SplitNames {
		c, err := t.unique([]string{strings.ToLower(name)}, true)
		if err != nil {
			return nil, err
		}
		if c >= 0 {
			s.names, s.cols = append(s.names, name), append(s.cols, c)
		}
	}
	if len(s.cols) == 0 {
		return nil, nil
	}
	return s, nil
}

// PlaceOfEdge reads files of edges to remove again for the first line with these ends, which are ids as Read gives them, and returns an Error at
// its place and the ids as they are written; without a place if there is none any more. For messages: faults just end a file.
func PlaceOfEdge(ctx context.Context, opt Options, remove []string, src, dst string) (e *Error, writtenSrc, writtenDst string) {
	e = &Error{}
	opt, err := opt.removal(ctx, remove)
	if err != nil {
		return e, src, dst
	}
	r, err := again(ctx, opt)
	if err != nil {
		return e, src, dst
	}
	for _, path := range r.opt.Edges {
		format, err := edgeFormatOf(&r.opt, path)
		if err != nil || e.Line > 0 {
			break
		}
		format.rows(ctx, r, path, func(line int64, ids ...[]byte) bool {
			if len(ids) == 2 && r.is(ids[0], src) && r.is(ids[1], dst) {
				e.File, e.Line = r.opt.nameOf(path), line
				writtenSrc, writtenDst = string(ids[0]), string(ids[1])
			}
			return e.Line == 0
		})
	}
	if e.Line == 0 {
		return e, src, dst
	}
	r.settlePlace(e)
	return e, writtenSrc, writtenDst
}

// PlaceOfID is PlaceOfEdge for an id in the edge files or, with nodes set, in the node table.
func PlaceOfID(ctx context.Context, opt Options, id string, nodes bool) (e *Error, written string) {
	e, written = &Error{}, id
	r, err := again(ctx, opt)
	if err != nil {
		return e, id
	}
	if nodes {
		r.opt.Edges = nil
	} else {
		r.opt.Nodes = ""
	}
	r.eachPlace(ctx, func(file string, line int64, got []byte) bool {
		if r.is(got, id) {
			e.File, e.Line, written = file, line, string(got)
		}
		return e.Line == 0
	})
	r.settlePlace(e)
	return e, written
}

// again returns a reader that is ready to open the files of opt.
func again(ctx context.Context, opt Options) (*reader, error) {
	r := &reader{report: &Report{}}
	var err error
	if r.opt, err = opt.withDefaults(); err != nil {
		return nil, err
	}
	return r, r.prepare(ctx)
}

// is reports whether an id as written is the id that Read gives.
func (r *reader) is(written []byte, id string) bool {
	if r.opt.AnonymiseKey == nil {
		return string(written) == id
	}
	ids := snapshot.IDs{Offsets: []int64{0, int64(len(written))}, Bytes: written}
	codes, _, err := codesOf(&ids, r.opt.AnonymiseKey, 1)
	return err == nil && bytes.Equal(codes.At(0), []byte(id))
}

// settlePlace makes the line of a file without lines a row.
func (r *reader) settlePlace(e *Error) {
	if r.opt.byRow[e.File] {
		e.Row, e.Line = e.Line, 0
	}
}
