package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prelift/prelift/snapshot"
	"github.com/prelift/prelift/snapshot/graph"
)

// roleHoldout is the role of a list of held-out pairs in a Report. Its file is read as an edge file is.
const roleHoldout = "holdout"

// HoldoutFiles returns the files that Options.HoldoutEdges names and the part, valid or test, that each is for.
func HoldoutFiles(spec string) (parts, paths []string, err error) {
	lists, err := parseHoldout(spec)
	for _, l := range lists {
		parts, paths = append(parts, partNames[l.part]), append(paths, l.path)
	}
	return parts, paths, err
}

// parseHoldout reads valid=F,test=F.
func parseHoldout(spec string) ([]splitList, error) {
	if spec == "" {
		return nil, nil
	}
	lists, isList, err := parseLists("holdout edges", spec)
	switch {
	case err != nil:
		return nil, err
	case !isList:
		return nil, &Error{Err: ErrOption, Msg: fmt.Sprintf("holdout edges: %s is not valid=FILE,test=FILE", quote(spec))}
	}
	if i := slices.IndexFunc(lists, func(l splitList) bool { return l.part == snapshot.PartTrain }); i >= 0 {
		return nil, &Error{Err: ErrOption, Msg: "holdout edges: lists are for valid and test; what is trained on are the edges that are left"}
	}
	return lists, nil
}

// heldPairs collects the lists of held-out pairs by the numbers of dict.
type heldPairs struct {
	lists  []splitList
	pairs  [2]graph.Pairs // valid, test
	opened string         // first file with rows, and what it has
	rel    bool
	weight bool
}

// of returns the list of a part.
func (h *heldPairs) of(part snapshot.Part) *graph.Pairs { return &h.pairs[part-snapshot.PartValid] }

// readHoldout reads the lists of HoldoutEdges. Relations and weights are read where the edges have them, and the list too.
func (r *reader) readHoldout(ctx context.Context) error {
	lists, err := parseHoldout(r.opt.HoldoutEdges)
	if err != nil || lists == nil {
		return err
	}
	r.held = &heldPairs{lists: lists}
	for _, l := range lists {
		if err := r.readHeldList(ctx, l); err != nil {
			return err
		}
	}
	if r.opt.HoldoutApart {
		return nil
	}
	return r.checkHeldTwice(ctx)
}

// openHeldList opens the list at path, and says where its fields are.
func (r *reader) openHeldList(ctx context.Context, path string) (*table, edgeColumns, error) {
	opt := r.opt
	if !r.weighted {
		opt.WeightCol = WeightNone
	}
	if !r.rels.known {
		opt.RelCol = ""
	}
	weightCol := opt.WeightCol
	if byName(weightCol) && weightCol != WeightNone {
		opt.WeightCol = "" // its name is no word on whether a list, which may lack it, has a header
	}
	t, err := openTable(ctx, &opt, path, roleEdges)
	if err != nil {
		return nil, edgeColumns{}, err
	}
	opt.WeightCol = weightCol
	if opt.WeightCol != WeightNone && t.lacks(opt.WeightCol) {
		opt.WeightCol = WeightNone
	}
	if t.lacks(opt.RelCol) {
		opt.RelCol = ""
	}
	cols, err := t.edgeColumns()
	if err != nil {
		t.close()
		return nil, cols, err
	}
	if !r.weighted {
		cols.weight = -1
	}
	if !r.rels.known {
		cols.rel = -1
	}
	return t, cols, nil
}

// lacks reports whether a table has no column that spec names.
func (t *table) lacks(spec string) bool {
	if byName(spec) {
		return !slices.ContainsFunc(t.names, func(name string) bool { return strings.EqualFold(name, spec) })
	}
	return position(spec, 0) >= t.width
}

// readHeldList reads the pairs of one file.
func (r *reader) readHeldList(ctx context.Context, l splitList) error {
	t, cols, err := r.openHeldList(ctx, l.path)
	if err != nil {
		return err
	}
	defer t.close()
	t.report.Role = roleHoldout
	r.report.Files = append(r.report.Files, t.report)
	r.doneBytes, r.totalBytes = 0, t.in.size
	t.onBlock = func() { r.progress(roleHoldout, t.in.read.Load()) }
	if err := r.held.alike(t, cols); err != nil {
		return err
	}
	used := []int{cols.src, cols.dst, cols.weight, cols.rel}
	if err := t.use(used...); err != nil {
		return err
	}
	t.noteUnused(used...)
	names := t.edgeNames(cols)
	mirror, err := r.isMirrored(ctx, t)
	if err != nil {
		return err
	}
	pairs := r.held.of(l.part)
	var small int64
	for {
		ok, err := t.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			t.report.noticeSmall(small, names.weight)
			return t.checkRows()
		}
		src, err := r.number(t, cols.src, names.src)
		if err != nil {
			return err
		}
		dst, err := r.number(t, cols.dst, names.dst)
		if err != nil {
			return err
		}
		if src == dst && !r.opt.HoldoutApart {
			return &Error{File: t.in.name, Line: t.scan.start, Column: names.dst, Value: string(t.scan.field(cols.dst)), Msg: "is the other end too: a self loop is no pair to hold out"}
		}
		pairs.Src, pairs.Dst = append(pairs.Src, src), append(pairs.Dst, dst)
		if mirror {
			pairs.Src, pairs.Dst = append(pairs.Src, dst), append(pairs.Dst, src)
		}
		if cols.weight >= 0 {
			w, vanished, err := t.scan.weight(cols.weight, names.weight)
			if err != nil {
				return err
			}
			if vanished {
				small++
			}
			if pairs.Weight = append(pairs.Weight, w); mirror {
				pairs.Weight = append(pairs.Weight, w)
			}
		}
		if cols.rel >= 0 {
			rel, err := t.scan.relation(cols.rel, names.rel)
			if err != nil {
				return err
			}
			num := r.rels.names.add(rel)
			if num < 0 {
				return tooManyRelations(t.in.name)
			}
			pairs.Rel = append(pairs.Rel, num)
		}
	}
}

// isMirrored reports whether each pair of a list comes back too: a symmetric matrix, with directions kept. Such a list has no relations.
func (r *reader) isMirrored(ctx context.Context, t *table) (bool, error) {
	if t.report.Format != FormatMTX || !r.opt.Directed {
		return false, nil
	}
	head, h, err := openMTXText(ctx, &r.opt, t.in.path, roleEdges)
	if err != nil {
		return false, err
	}
	head.close()
	return h.symmetric, nil
}

// alike refuses lists only some of which have weights, or relations.
func (h *heldPairs) alike(t *table, cols edgeColumns) error {
	switch {
	case t.width == 0:
		return nil
	case h.opened == "":
		h.opened, h.weight, h.rel = t.in.name, cols.weight >= 0, cols.rel >= 0
	case h.weight != (cols.weight >= 0):
		return differ(t.in.name, h.opened, h.weight, "a weight column", "--weight-col none ignores weights")
	case h.rel != (cols.rel >= 0):
		return differ(t.in.name, h.opened, h.rel, "relations", "the lists have both relations, or none has")
	}
	return nil
}

// differ says that one of two files has what the other lacks; firstHas says that it is the first one.
func differ(file, first string, firstHas bool, what, hint string) error {
	with, without := file, first
	if firstHas {
		with, without = without, with
	}
	return &Error{File: file, Msg: fmt.Sprintf("%s has %s and %s has none", oneLine(with), what, oneLine(without)), Hint: hint}
}

// checkHeldTwice refuses a pair that is in both lists, in whatever direction.
func (r *reader) checkHeldTwice(ctx context.Context) error {
	if r.held.pairs[0].Len() == 0 || r.held.pairs[1].Len() == 0 {
		return nil
	}
	_, err := graph.HoldoutPairs(r.dict.len(), r.held.pairs[0], r.held.pairs[1])
	var twice *graph.HeldTwiceError
	if !errors.As(err, &twice) {
		return err
	}
	a, b := r.dict.text(twice.Src), r.dict.text(twice.Dst)
	e := &Error{Hint: "a held-out pair leaves the graph in both directions, and is predicted once"}
	for _, l := range r.held.lists {
		t, line := r.findHeld(ctx, l.path, func(src, dst string) bool { return src == a && dst == b || src == b && dst == a })
		if t == nil {
			continue
		}
		if l.part == snapshot.PartTest {
			e.File, e.Line = t.in.name, line
		} else {
			e.Msg = fmt.Sprintf("%s, %s is held out for valid too, in %s %s %d", quote(a), quote(b), oneLine(t.in.name), t.placeWord(), line)
		}
	}
	return e
}

// findHeld finds the first line of a list whose ends are wanted, by reading it again; nil if there is none any more.
func (r *reader) findHeld(ctx context.Context, path string, wanted func(src, dst string) bool) (found *table, line int64) {
	r.eachHeld(ctx, path, func(t *table, src, dst []byte) bool {
		if wanted(string(src), string(dst)) {
			found, line = t, t.scan.start
		}
		return found == nil
	})
	return found, line
}

// eachHeld calls f at each line of a list, until it says stop. For error messages: faults just end it.
func (r *reader) eachHeld(ctx context.Context, path string, f func(t *table, src, dst []byte) (more bool)) {
	t, cols, err := r.openHeldList(ctx, path)
	if err != nil {
		return
	}
	defer t.close()
	for {
		if ok, err := t.next(ctx); !ok || err != nil || !f(t, t.scan.field(cols.src), t.scan.field(cols.dst)) {
			return
		}
	}
}

// place puts the lists in node numbers: number[i] is that of the id numbered i, rels[i] the place of relation i.
func (h *heldPairs) place(number, rels []int32) *snapshot.Held {
	if h == nil {
		return nil
	}
	for k := range h.pairs {
		p := &h.pairs[k]
		for i := range p.Src {
			p.Src[i], p.Dst[i] = number[p.Src[i]], number[p.Dst[i]]
		}
		for i, rel := range p.Rel {
			p.Rel[i] = rels[rel]
		}
		if p.Weight == nil && h.weight {
			p.Weight = []float32{}
		}
		if p.Rel == nil && h.rel {
			p.Rel = []int32{}
		}
	}
	return &snapshot.Held{Valid: h.pairs[0], Test: h.pairs[1]}
}
