package ingest

import (
	"context"
	"io"
	"slices"
	"strings"
)

// declaring are the kinds of edge files that declare their nodes.
var declaring = map[string]bool{FormatMTX: true, FormatGraphML: true, FormatOpenKE: true}

// joinTables makes several tables one, with the columns of all; a column that a file lacks is empty in its rows. It
// returns the path that stands for it.
func joinTables(opt *Options, paths []string) string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = opt.nameOf(p)
	}
	joined := strings.Join(names, ", ")
	opt.sources[joined] = func(ctx context.Context, opt *Options, role string) (*table, error) {
		return openJoined(ctx, opt, joined, paths, role)
	}
	return joined
}

// openJoined opens the first of the tables and learns the columns of all.
func openJoined(ctx context.Context, opt *Options, name string, paths []string, role string) (*table, error) {
	j := &joinedSource{paths: paths}
	var names []string
	typeCol, relCol := "", ""
	fixedID := true
	for i, path := range paths {
		t, err := openTable(ctx, opt, path, role)
		if err != nil {
			return nil, err
		}
		t.close()
		if t.names == nil && (len(names) > 0 || i > 0) {
			return nil, &Error{File: t.in.name, Msg: "has no header", Hint: "several tables are joined by the names of their columns; --table-header"}
		}
		id, err := t.idColumn()
		if err != nil {
			return nil, err
		}
		fixedID = fixedID && id == 0
		part := joinedPart{to: make([]int, len(t.names))}
		for c, column := range t.names {
			if err := t.once(c); err != nil {
				return nil, err
			}
			at := joinedColumn(names, column, t.names)
			if c == id && len(names) > 0 {
				at = 0
			}
			if at < 0 {
				at, names = len(names), append(names, column)
			}
			part.to[c] = at
		}
		if t.typeCol >= 0 {
			typeCol = names[part.to[t.typeCol]]
		}
		if t.relCol >= 0 {
			relCol = names[part.to[t.relCol]]
		}
		j.parts = append(j.parts, part)
	}
	if !fixedID {
		return nil, &Error{File: name, Msg: "the id must be the first column of each of several node tables"}
	}
	t := newSourceTable(opt, name, role, "joined", names, false, j)
	t.in.name, t.report.Name, t.scan.file = name, name, name
	t.fixedID = true
	if typeCol != "" {
		t.typeCol = slices.Index(names, typeCol)
	}
	if relCol != "" {
		t.relCol = slices.Index(names, relCol)
	}
	j.opt, j.role, j.names = opt, role, names
	return t, nil
}

// joinedColumn returns the place in names of a column of a table with the columns own, -1 if it is none of them. Names match in
// any case, as where columns are chosen, unless the table has a column that matches better.
func joinedColumn(names []string, column string, own []string) int {
	if i := slices.Index(names, column); i >= 0 {
		return i
	}
	return slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, column) && !slices.Contains(own, name) })
}

// once refuses a table with a second column of column c's name, and of a known name in any case.
func (t *table) once(c int) error {
	name := t.names[c]
	for _, other := range t.names[:c] {
		known := is(name, idNames) || is(name, labelNames) || is(name, splitName) || isFeatureName(name)
		if name != "" && other == name || known && strings.EqualFold(other, name) {
			return t.headError("several tables are joined by the names of their columns", "column %q appears twice", name)
		}
	}
	return nil
}

// joinedSource reads tables one after the other.
type joinedSource struct {
	opt   *Options
	role  string
	paths []string
	names []string // of all columns
	parts []joinedPart
	open  *table
	from  []int // for each column its place in open, -1 = none
	done  int   // tables opened
	used  []int // nil = all columns
	whole []wholeColumns
}

// wholeColumns are columns for table.wholes.
type wholeColumns struct {
	cols []int
	hint string
}

type joinedPart struct {
	to []int // for each column its place in all
}

func (j *joinedSource) next(ctx context.Context, t *table) error {
	for {
		if j.open == nil {
			if j.done == len(j.paths) {
				return io.EOF
			}
			var err error
			if j.open, err = openTable(ctx, j.opt, j.paths[j.done], j.role); err != nil {
				return err
			}
			j.from = slices.Repeat([]int{-1}, len(j.names))
			for c, to := range j.parts[j.done].to {
				j.from[to] = c
			}
			if j.used != nil {
				var used []int
				for _, c := range j.used {
					if c >= 0 && j.from[c] >= 0 {
						used = append(used, j.from[c])
					}
				}
				if err := j.open.use(used...); err != nil {
					return err
				}
			}
			for _, w := range j.whole {
				for _, c := range w.cols {
					if c >= 0 {
						j.open.wholes(w.hint, j.from[c])
					}
				}
			}
			t.in.name, t.scan.file = j.open.in.name, j.open.in.name
			j.done++
		}
		ok, err := j.open.next(ctx)
		if err != nil {
			return err
		}
		if ok {
			break
		}
		j.open.close()
		j.open = nil
	}
	s := &j.open.scan
	t.scan.startRow(s.start)
	if s.nulls != nil {
		t.scan.nulls = make([]bool, len(j.from))
	}
	for c, from := range j.from {
		if from < 0 {
			t.scan.put(nil)
			continue
		}
		t.scan.put(s.field(from))
		if s.nulls != nil {
			t.scan.nulls[c] = s.nulls[from]
		}
	}
	return nil
}

func (j *joinedSource) use(cols []int) error {
	j.used = slices.Clone(cols)
	return nil
}

func (j *joinedSource) wholes(cols []int, hint string) {
	j.whole = append(j.whole, wholeColumns{slices.Clone(cols), hint})
}

func (j *joinedSource) close() {
	if j.open != nil {
		j.open.close()
	}
}
