package ingest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prelift/prelift/snapshot"
)

// labelTable collects labels by the numbers of dict.
type labelTable struct {
	path, role string
	file       string
	task       snapshot.Task
	cols       []int
	names      []string // of cols
	idCol      int

	classes *dict     // multiclass, binary: label texts in order of first sight
	class   []int32   // by number: a class, or one of the codes below
	state   []uint8   // multilabel, regression, by number
	bits    []uint8   // multilabel, [number, cols]
	values  []float32 // regression, [number, cols]
}

const (
	notListed  = -2 // class: no line for the node
	unlabelled = -1 // class: a line without a label

	stateNotListed  = 0
	stateUnlabelled = 1
	stateLabelled   = 2
)

// manyClasses is how many classes make one wonder whether they are any, where few nodes share one.
const manyClasses = 100

// newLabelTable settles the task for label columns cols.
func newLabelTable(opt *Options, t *table, path, role string, id int, cols []int) (*labelTable, error) {
	l := &labelTable{path: path, role: role, file: t.in.name, task: opt.Task, cols: cols, idCol: id}
	for _, c := range cols {
		l.names = append(l.names, t.columnName(c, strconv.Itoa(c+1)))
	}
	if l.task == TaskAuto {
		l.task = snapshot.TaskMulticlass
		if len(cols) > 1 {
			l.task = snapshot.TaskMultilabel
		}
	}
	if l.task == snapshot.TaskMulticlass || l.task == snapshot.TaskBinary {
		if len(cols) > 1 {
			return nil, t.headError("choose one with --label-col", "%d label columns for the task %s", len(cols), l.task)
		}
		l.classes = newDict(false)
		if len(t.names) == 0 {
			l.names[0] = "label"
		}
	}
	return l, nil
}

// labelColumns resolves LabelCol, a list of columns.
func (t *table) labelColumns(spec string) ([]int, error) {
	var cols []int
	for part := range strings.SplitSeq(spec, ",") {
		c, err := t.column(strings.TrimSpace(part), nil, -1, true)
		if err != nil {
			return nil, err
		}
		if slices.Contains(cols, c) {
			return nil, t.headError("", "label column %q is given twice", part)
		}
		cols = append(cols, c)
	}
	return cols, nil
}

// nodeLabels returns the label table of a node table, nil if there is none or Labels replaces it.
func (r *reader) nodeLabels(t *table, id int) (*labelTable, error) {
	if t.width == 0 {
		return nil, nil
	}
	found, err := t.unique(classNames, true)
	if err != nil {
		return nil, err
	}
	if r.opt.Labels != "" {
		if found >= 0 && found != id {
			t.report.noticef("labels come from %s: column %s is not used for them", r.opt.nameOf(r.opt.Labels), quote(t.names[found]))
		}
		return nil, nil
	}
	cols := []int{found}
	switch {
	case r.opt.LabelCol != "":
		if cols, err = t.labelColumns(r.opt.LabelCol); err != nil {
			return nil, err
		}
	case found < 0 || found == id:
		return nil, nil
	}
	return newLabelTable(&r.opt, t, r.opt.Nodes, roleNodes, id, cols)
}

// readLabels reads the label table.
func (r *reader) readLabels(ctx context.Context) error {
	if r.opt.Labels == "" {
		return nil
	}
	t, err := r.openText(ctx, r.opt.Labels, roleLabels)
	if err != nil {
		return err
	}
	defer t.close()
	id, err := t.idColumn()
	if err != nil {
		return err
	}
	if t.width == 1 && !t.numbered {
		return t.headError(t.oneFieldHint(), "no label column: the first row has 1 field")
	}
	var cols []int
	found, err := t.unique(labelNames, true)
	switch {
	case err != nil:
		return err
	case t.width == 0:
	case r.opt.LabelCol != "":
		if cols, err = t.labelColumns(r.opt.LabelCol); err != nil {
			return err
		}
	case found >= 0 && found != id:
		cols = []int{found}
	default:
		for c := range t.width {
			if c != id {
				cols = append(cols, c)
			}
		}
	}
	if t.width == 0 {
		cols = []int{1}
	}
	if r.labels, err = newLabelTable(&r.opt, t, r.opt.Labels, roleLabels, id, cols); err != nil {
		return err
	}
	if err := t.use(append([]int{id}, cols...)...); err != nil {
		return err
	}
	t.noteUnused(append([]int{id}, cols...)...)
	return r.eachNode(ctx, t, id, func(num int32) error { return r.labels.set(ctx, r, t, num) })
}

// isUnlabelled reports whether a label says that there is none.
func isUnlabelled(label []byte) bool {
	return len(label) == 0 || len(label) == 3 && bytes.EqualFold(label, []byte("nan"))
}

// grow makes s hold index n-1, filling with v.
func grow[T any](s []T, n int, v T) []T {
	for len(s) < n {
		s = append(s, v)
	}
	return s
}

// set takes the label of node num from the row in t.
func (l *labelTable) set(ctx context.Context, r *reader, t *table, num int32) error {
	fault := func(i int, msg, hint string) error {
		return &Error{File: t.in.name, Line: t.scan.start, Column: l.names[i], Value: string(t.scan.field(l.cols[i])), Msg: msg, Hint: hint}
	}
	contradiction := func(i int) error {
		id := string(t.scan.field(l.idCol))
		return fault(i, fmt.Sprintf("contradicts %s %d about node %s", t.placeWord(), r.lineOfID(ctx, l.path, l.role, id), quote(id)), "")
	}
	n, k := int(num), len(l.cols)
	if l.classes != nil {
		label := t.scan.field(l.cols[0])
		c := int32(unlabelled)
		if !isUnlabelled(label) && string(label) != "-1" {
			if _, numeric := parseFloat32(label); numeric == numberOK || numeric == numberRange {
				if _, ok := snapshot.CanonicalInt(label); !ok {
					return fault(0, "is a number but no plain integer, so no class", "--task regression for values; write classes as 0, 1, 2 or as words")
				}
			}
			if c = l.classes.add(label); c < 0 {
				return fault(0, "is one class too many", "")
			}
		}
		l.class = grow(l.class, n+1, notListed)
		switch l.class[n] {
		case notListed:
			l.class[n] = c
		case c:
			r.report.LabelRepeats++
		default:
			return contradiction(0)
		}
		return nil
	}
	empty := 0
	for i, c := range l.cols {
		f := t.scan.field(c)
		if isUnlabelled(f) || l.task == snapshot.TaskMultilabel && string(f) == "-1" {
			empty++
			if empty != i+1 {
				return fault(i, "leaves the node partly labelled", "give every label of a row or none")
			}
		} else if empty > 0 {
			return fault(i, "leaves the node partly labelled", "give every label of a row or none")
		}
	}
	state := uint8(stateLabelled)
	if empty > 0 {
		state = stateUnlabelled
	}
	l.state = grow(l.state, n+1, stateNotListed)
	listed := l.state[n] != stateNotListed
	if listed && l.state[n] != state {
		return contradiction(0)
	}
	l.state[n] = state
	if l.task == snapshot.TaskMultilabel {
		l.bits = grow(l.bits, (n+1)*k, 0)
	} else {
		l.values = grow(l.values, (n+1)*k, 0)
	}
	for i, c := range l.cols {
		f := t.scan.field(c)
		if empty > 0 {
			continue
		}
		if l.task == snapshot.TaskMultilabel {
			if len(f) != 1 || f[0]&^1 != '0' {
				hint := "--task regression for values"
				if r.opt.Task == TaskAuto {
					hint = "several label columns are read as multilabel; --label-col chooses one, --task regression reads values"
				}
				return fault(i, "is neither 0 nor 1", hint)
			}
			bit := f[0] - '0'
			if listed && l.bits[n*k+i] != bit {
				return contradiction(i)
			}
			l.bits[n*k+i] = bit
			continue
		}
		v, bad := parseFloat32(f)
		if bad != numberOK {
			return fault(i, bad.String(), bad.hint())
		}
		if listed && l.values[n*k+i] != v {
			return contradiction(i)
		}
		l.values[n*k+i] = v
	}
	if listed {
		r.report.LabelRepeats++
	}
	return nil
}

// placeLabels puts the labels in node order: number[i] is the node number of the id numbered i.
func (r *reader) placeLabels(number []int32) (*snapshot.Labels, error) {
	l := r.labels
	if l == nil {
		return nil, nil
	}
	out := &snapshot.Labels{Task: l.task}
	n, k := len(number), len(l.cols)
	labelled := int64(0)
	if l.classes != nil {
		names, place := l.classes.sorted(false, 1)
		for i := range names.Len() {
			out.ClassNames = append(out.ClassNames, string(names.At(int32(i))))
		}
		switch {
		case r.opt.Change:
		case len(out.ClassNames) == 0:
			return nil, &Error{File: l.file, Msg: "no node has a label"}
		case l.task == snapshot.TaskBinary && len(out.ClassNames) != 2:
			return nil, &Error{File: l.file, Msg: fmt.Sprintf("the task binary needs two classes, found %d", len(out.ClassNames)), Hint: "--task multiclass"}
		}
		out.Class = make([]int32, n)
		for i := range out.Class {
			out.Class[i] = unlabelled
		}
		for i, c := range l.class {
			if c >= 0 {
				out.Class[number[i]] = place[c]
				labelled++
			}
		}
		r.report.NumClasses = len(out.ClassNames)
	} else {
		out.Labelled = make([]bool, n)
		if l.task == snapshot.TaskMultilabel {
			out.ClassNames = l.names
			out.Bits = make([]uint8, n*k)
		} else {
			out.NumTargets = k
			out.Values = make([]float32, n*k)
		}
		r.report.NumClasses = len(out.ClassNames)
		for i, state := range l.state {
			if state != stateLabelled {
				continue
			}
			labelled++
			v := int(number[i])
			out.Labelled[v] = true
			if out.Bits != nil {
				copy(out.Bits[v*k:(v+1)*k], l.bits[i*k:])
			} else {
				copy(out.Values[v*k:(v+1)*k], l.values[i*k:])
			}
		}
		if labelled == 0 && !r.opt.Change {
			return nil, &Error{File: l.file, Msg: "no node has a label"}
		}
	}
	if k := int64(len(out.ClassNames)); out.Class != nil && r.opt.Task == TaskAuto && k > manyClasses && 4*k > labelled {
		r.report.Notices = append(r.report.Notices, fmt.Sprintf("%s: %d classes for %d labelled nodes: where the label is a quantity, say --task regression", oneLine(l.file), k, labelled))
	}
	r.report.Unlabelled = int64(n) - labelled
	if r.report.Unlabelled > 0 && !r.opt.Change {
		r.report.Notices = append(r.report.Notices, fmt.Sprintf("%d of %d nodes have no label", r.report.Unlabelled, n))
	}
	if r.report.LabelRepeats > 0 {
		r.report.Notices = append(r.report.Notices, fmt.Sprintf("%s: %d lines repeat an earlier one", oneLine(l.file), r.report.LabelRepeats))
	}
	return out, nil
}
