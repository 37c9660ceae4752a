package ingest

import (
	"context"
	"fmt"
	"math/bits"
	"strings"

	"github.com/prelift/prelift/snapshot"
)

// splitTable collects splits by the numbers of dict.
type splitTable struct {
	files []string // base names
	names []string // of the splits
	cols  []int
	parts []uint8 // [number, split]: a bit 1<<part for each part a node is in
	rep   *Report
}

// splitList is one part given as a list of ids.
type splitList struct {
	part snapshot.Part
	path string
}

var partNames = [...]string{"none", "train", "valid", "test"}

// partOf reads a split word; ok is false for any other.
func partOf(word string) (snapshot.Part, bool) {
	switch strings.ToLower(word) {
	case "":
		return snapshot.PartNone, true
	case "train":
		return snapshot.PartTrain, true
	case "valid", "val", "validation":
		return snapshot.PartValid, true
	case "test":
		return snapshot.PartTest, true
	}
	return 0, false
}

// parseLists reads train=F,valid=F,test=F, which errors call what. isList is false for a path of a table. A comma in the name of a
// file that is there separates nothing.
func parseLists(what, spec string) (lists []splitList, isList bool, err error) {
	if _, _, ok := cutPart(spec); !ok {
		return nil, false, nil
	}
	seen := [4]bool{}
	items := strings.Split(spec, ",")
	for i := 0; i < len(items); {
		part, path, ok := cutPart(items[i])
		first := i
		for i++; i < len(items); i++ {
			if _, _, next := cutPart(items[i]); next {
				break
			}
			path += "," + items[i]
		}
		bad, hint := items[first], ""
		if i > first+1 && !isFile(path) {
			ok, bad = false, items[first+1]
			if !strings.Contains(bad, "=") { // more likely the rest of a name than a wrong part
				hint = fmt.Sprintf("there is no file %s, so its commas separate", quote(path))
			}
		}
		switch {
		case !ok || path == "":
			return nil, true, &Error{Err: ErrOption, Msg: fmt.Sprintf("%s: %s is not train=FILE, valid=FILE or test=FILE", what, quote(bad)), Hint: hint}
		case seen[part]:
			return nil, true, &Error{Err: ErrOption, Msg: fmt.Sprintf("%s: %s is given twice", what, partNames[part])}
		}
		seen[part] = true
		lists = append(lists, splitList{part, path})
	}
	return lists, true, nil
}

// cutPart takes train=F apart.
func cutPart(item string) (part snapshot.Part, path string, ok bool) {
	word, path, ok := strings.Cut(item, "=")
	part, known := partOf(word)
	return part, path, ok && known && part != snapshot.PartNone
}

// SplitFiles returns the files that Options.Splits names and, for lists, the part each is
// for; the part of a table is "".
func SplitFiles(spec string) (parts, paths []string, err error) {
	lists, isList, err := parseLists("splits", spec)
	switch {
	case spec == "" || err != nil:
		return nil, nil, err
	case !isList:
		return []string{""}, []string{spec}, nil
	}
	for _, l := range lists {
		parts, paths = append(parts, partNames[l.part]), append(paths, l.path)
	}
	return parts, paths, nil
}

// nodeSplits returns the split table of a node table, nil if there is none or Splits replaces it.
func (r *reader) nodeSplits(t *table) *splitTable {
	if r.opt.Change && len(r.opt.SplitNames) > 0 {
		return r.changedSplits(t)
	}
	c := find(t.names, splitName)
	if c < 0 {
		return nil
	}
	if r.opt.Splits != "" {
		t.report.noticef("splits come from %s: column %s is not used for them", r.opt.splitNames(), quote(t.names[c]))
		return nil
	}
	return &splitTable{files: []string{t.in.name}, names: t.names[c : c+1], cols: []int{c}, rep: r.report}
}

// splitNames is Splits for messages.
func (o *Options) splitNames() string {
	lists, isList, _ := parseLists("splits", o.Splits)
	if !isList {
		return oneLine(o.nameOf(o.Splits))
	}
	names := make([]string, len(lists))
	for i, l := range lists {
		names[i] = oneLine(o.nameOf(l.path))
	}
	return strings.Join(names, ", ")
}

// readSplits reads the split table or lists.
func (r *reader) readSplits(ctx context.Context) error {
	if r.opt.Splits == "" {
		return nil
	}
	lists, isList, err := parseLists("splits", r.opt.Splits)
	if err != nil {
		return err
	}
	if isList {
		r.splits = &splitTable{names: []string{"split"}, rep: r.report}
		for _, l := range lists {
			if err := r.readSplitList(ctx, l); err != nil {
				return err
			}
		}
		return nil
	}
	t, err := r.openText(ctx, r.opt.Splits, roleSplits)
	if err != nil {
		return err
	}
	defer t.close()
	id, err := t.idColumn()
	if err != nil {
		return err
	}
	if t.width == 1 && !t.numbered {
		return t.headError("for lists of ids give train=FILE,valid=FILE,test=FILE", "no split column: the first row has 1 field")
	}
	r.splits = &splitTable{files: []string{t.in.name}, rep: r.report}
	for c := range t.width {
		if c != id {
			name := fmt.Sprintf("split%d", len(r.splits.cols))
			if t.width == 2 || t.width == 1 {
				name = "split"
			}
			r.splits.cols = append(r.splits.cols, c)
			r.splits.names = append(r.splits.names, t.columnName(c, name))
		}
	}
	return r.eachNode(ctx, t, id, func(num int32) error { return r.splits.set(t, num) })
}

// readSplitList reads the ids of one part.
func (r *reader) readSplitList(ctx context.Context, l splitList) error {
	t, err := r.openText(ctx, l.path, roleSplits)
	if err != nil {
		return err
	}
	defer t.close()
	r.splits.files = append(r.splits.files, t.in.name)
	id, err := t.idColumn()
	if err != nil {
		return err
	}
	t.noteUnused(id)
	column := t.columnName(id, "node")
	for {
		ok, err := t.next(ctx)
		if !ok || err != nil {
			return err
		}
		num, err := r.number(t, id, column)
		if err != nil {
			return err
		}
		r.splits.put(int(num), 0, 1, l.part)
	}
}

// put notes that a node is in a part of split i of k.
func (s *splitTable) put(num, i, k int, part snapshot.Part) {
	s.parts = grow(s.parts, (num+1)*k, 0)
	if part == snapshot.PartNone {
		return
	}
	p := &s.parts[num*k+i]
	if *p&(1<<part) != 0 {
		s.rep.SplitRepeats++
	}
	*p |= 1 << part
}

// set takes the parts of node num from the row in t.
func (s *splitTable) set(t *table, num int32) error {
	for i, c := range s.cols {
		part, ok := partOf(string(t.scan.field(c)))
		if !ok {
			return &Error{File: t.in.name, Line: t.scan.start, Column: s.names[i], Value: string(t.scan.field(c)),
				Msg: "is not a part of a split", Hint: "train, valid (val, validation), test or nothing"}
		}
		s.put(int(num), i, len(s.cols), part)
	}
	return nil
}

// maxListed is how many nodes a message lists.
const maxListed = 100

// placeSplits puts the splits in node order, refuses or settles overlaps and leaves unlabelled nodes out.
func (r *reader) placeSplits(ids *snapshot.IDs, number []int32, labels *snapshot.Labels) (*snapshot.Splits, error) {
	s := r.splits
	if s == nil || len(s.names) == 0 {
		return nil, nil
	}
	k := len(s.names)
	parts := make([]uint8, ids.Len()*k)
	for i := range len(s.parts) / k {
		copy(parts[int(number[i])*k:], s.parts[i*k:(i+1)*k])
	}
	var overlaps, dropped []string
	for i, p := range parts {
		id := ids.At(int32(i / k))
		if bits.OnesCount8(p) > 1 {
			r.report.SplitOverlaps++
			if len(overlaps) < maxListed {
				overlaps = append(overlaps, overlap(id, p, s.names[i%k], k))
			}
		}
		part := snapshot.PartNone
		if p != 0 {
			part = snapshot.Part(bits.Len8(p) - 1)
		}
		if part != snapshot.PartNone && labels != nil && !hasLabel(labels, i/k) {
			r.report.SplitUnlabelled++
			if len(dropped) < maxListed {
				dropped = append(dropped, quote(string(id)))
			}
			part = snapshot.PartNone
		}
		parts[i] = part
	}
	if n := r.report.SplitOverlaps; n > 0 {
		list := strings.Join(overlaps, "; ")
		if n > maxListed {
			list += fmt.Sprintf("; and %d more", n-maxListed)
		}
		if !r.opt.AllowSplitOverlap {
			return nil, &Error{File: strings.Join(s.files, ", "), Msg: "splits overlap: " + list, Hint: "--allow-split-overlap lets test win over valid, valid over train"}
		}
		r.report.Warnings = append(r.report.Warnings, "splits overlap: "+list)
	}
	if n := r.report.SplitUnlabelled; n > 0 {
		r.report.Warnings = append(r.report.Warnings, fmt.Sprintf("%d split %s left out because the node has no label, first %s",
			n, entries(n), strings.Join(dropped[:min(len(dropped), 5)], ", ")))
	}
	if n := r.report.SplitRepeats; n > 0 {
		r.report.Notices = append(r.report.Notices, fmt.Sprintf("%s: %d %s repeated", strings.Join(s.files, ", "), n, entries(n)))
	}
	return &snapshot.Splits{Names: s.names, Mask: parts}, nil
}

func entries(n int64) string {
	if n == 1 {
		return "entry"
	}
	return "entries"
}

// overlap says in which parts a node is.
func overlap(id []byte, parts uint8, name string, numSplits int) string {
	var in []string
	for p, word := range partNames {
		if parts&(1<<p) != 0 {
			in = append(in, word)
		}
	}
	text := fmt.Sprintf("%s is in %s", quote(string(id)), strings.Join(in, " and "))
	if numSplits > 1 {
		text += " of " + quote(name)
	}
	return text
}

// hasLabel reports whether node v has a label.
func hasLabel(l *snapshot.Labels, v int) bool {
	if l.Class != nil {
		return l.Class[v] >= 0
	}
	return l.Labelled[v]
}
