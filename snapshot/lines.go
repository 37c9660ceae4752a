package snapshot

import (
	"fmt"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// UpdateInfo says what a snapshot remembers of its input beside the graph, so that an update of it can give what a full build of the
// changed input would (SPEC 6.2).
type UpdateInfo struct {
	Code       string     `json:"code"` // of lines.code, the name of the one code of all edges, or codesMixed
	NumCounted format.Int `json:"num_counted"`
	Declared   bool       `json:"declared"` // the node set is that of a table
	Named      string     `json:"named"`    // whether tables name the nodes: all of them, none or some
}

// The values of UpdateInfo.Code, by graph's codes.
var codeNames = [...]string{graph.LinesForward: "forward", graph.LinesBackward: "backward", graph.LinesBoth: "both", graph.LinesCounted: "counted"}

const codesMixed = "mixed"

// The values of UpdateInfo.Named.
const (
	namedAll  = "all"
	namedNone = "none"
	namedSome = "some"
)

// hasFile reports whether there is a file of lines.
func (u *UpdateInfo) hasFile() bool {
	return u != nil && (u.Code == codesMixed || u.NumCounted > 0 || u.Named == namedSome)
}

// keepLines settles what the snapshot remembers of its lines and of the tables that named the nodes.
func (b *builder) keepLines(lines *graph.Lines) {
	if lines == nil {
		return
	}
	t := b.tables
	u := &UpdateInfo{Code: codesMixed, NumCounted: format.Int(lines.NumCounted()), Declared: t.Declared, Named: namedSome}
	if lines.Code == nil {
		u.Code = codeNames[lines.All]
	}
	named := 0
	for _, ok := range t.Named {
		if ok {
			named++
		}
	}
	switch {
	case t.Declared, named == t.NumNodes():
		u.Named = namedAll
	case named == 0:
		u.Named = namedNone
	}
	b.lines, b.update = lines, u
}

// lineSections holds what isn't the same for all edges or nodes; nil where there is nothing.
func (b *builder) lineSections() []format.SectionSpec {
	if !b.update.hasFile() {
		return nil
	}
	l := b.lines
	var sections []format.SectionSpec
	if l.Code != nil {
		sections = append(sections, format.Uint8Section(format.LinesCode, format.AnyLayer, l.Code))
	}
	if n := l.NumCounted(); n > 0 {
		sections = append(sections, format.SectionSpec{Kind: format.LinesCount, Layer: format.AnyLayer, DType: format.U8, Shape: []uint64{uint64(n), 2}, Data: l.Count})
	}
	if len(l.Large) > 0 {
		sections = append(sections, format.Uint64Section(format.LinesLarge, format.AnyLayer, l.Large))
	}
	if len(l.Weights) > 0 {
		sections = append(sections, format.Float32Section(format.LinesWeight, format.AnyLayer, format.CoefNone, l.Weights))
	}
	if b.update.Named == namedSome {
		sections = append(sections, format.Uint8Section(format.LinesNamed, format.AnyLayer, nodeBits(b.tables.Named)))
	}
	return sections
}

// nodeBits packs a bit a node, the first in the lowest bit.
func nodeBits(set []bool) []uint8 {
	bits := make([]uint8, (len(set)+7)/8)
	for v, ok := range set {
		if ok {
			bits[v/8] |= 1 << (v % 8)
		}
	}
	return bits
}

// isNamed reports whether a table of the input names node v, by the snapshot's memory of it (Params.Updatable).
func (s *Snapshot) isNamed(v int32) bool {
	switch s.Manifest.Update.Named {
	case namedAll:
		return true
	case namedNone:
		return false
	}
	return s.named[v/8]>>(v%8)&1 != 0
}

// checkUpdate checks what the manifest says of updates against itself.
func (m *Manifest) checkUpdate() error {
	u := m.Update
	if (u != nil) != m.Params.Updatable {
		return fmt.Errorf("updatable is %t, but update is there: %t", m.Params.Updatable, u != nil)
	}
	if u == nil {
		return nil
	}
	if _, ok := codeOf(u.Code); !ok && u.Code != codesMixed {
		return fmt.Errorf("update.code is %q", u.Code)
	}
	if u.Named != namedAll && (u.Declared || u.Named != namedNone && u.Named != namedSome) {
		return fmt.Errorf("update.named is %q, with declared %t", u.Named, u.Declared)
	}
	return nil
}

// codeOf is the inverse of codeNames.
func codeOf(name string) (code byte, ok bool) {
	for c, n := range codeNames {
		if n == name {
			return byte(c), true
		}
	}
	return 0, false
}

// linesOf makes s.Lines of what the manifest says and, where there is a file of lines, its record.
func (s *Snapshot) linesOf(r *format.Record) {
	u := s.Manifest.Update
	if u == nil {
		return
	}
	s.Lines = &graph.Lines{N: int64(s.Manifest.NumEdges)}
	s.Lines.All, _ = codeOf(u.Code)
	if r != nil {
		s.Lines.Code = r.Uint8s(format.LinesCode, format.AnyLayer)
		s.Lines.Count = r.Uint8s(format.LinesCount, format.AnyLayer)
		s.Lines.Large = r.Uint64s(format.LinesLarge, format.AnyLayer)
		s.Lines.Weights = r.Float32s(format.LinesWeight, format.AnyLayer, format.CoefNone)
		s.named = r.Uint8s(format.LinesNamed, format.AnyLayer)
	}
}

// loadLines takes the file of lines over after the checks that make walking it safe.
func (s *Snapshot) loadLines(r *format.Record) error {
	s.linesOf(r)
	return s.checkLines(r)
}

func (s *Snapshot) checkLines(r *format.Record) error {
	u, l := s.Manifest.Update, s.Lines
	switch {
	case (l.Code != nil) != (u.Code == codesMixed):
		return fmt.Errorf("%s: %w: codes of the manifest are %s, but %s is there: %t", r.Place(), format.ErrLayout, u.Code, format.LinesCode, l.Code != nil)
	case (s.named != nil) != (u.Named == namedSome):
		return fmt.Errorf("%s: %w: tables name %s of the nodes, but %s is there: %t", r.Place(), format.ErrLayout, u.Named, format.LinesNamed, s.named != nil)
	case l.NumCounted() != int64(u.NumCounted):
		return fmt.Errorf("%s: %w: %d counted edges, the manifest says %d", r.Place(), format.ErrLayout, l.NumCounted(), u.NumCounted)
	case s.checked:
		return nil
	}
	return format.Guard(r.Place(), func() error {
		if err := l.Check(s.Manifest.Weighted); err != nil {
			return fmt.Errorf("%s: %w: %v", r.Place(), format.ErrLayout, err)
		}
		return nil
	})
}

// verifyLines checks the lines against the rows and the audit.
func (s *Snapshot) verifyLines() error {
	u := s.Manifest.Update
	if u == nil {
		return nil
	}
	if err := s.Lines.Check(s.Manifest.Weighted); err != nil { // which has been done where there is a file
		return s.wrong("%v", err)
	}
	a := &s.Manifest.Audit
	if err := graph.VerifyLines(&s.In, s.Out != nil, s.Lines, int64(a.NumLines), int64(a.OneDirectional)); err != nil {
		return s.wrong("%v", err)
	}
	if u.Named != namedSome {
		return s.verifyNamed()
	}
	named := 0
	for v := range int32(s.NumNodes()) {
		if s.isNamed(v) {
			named++
		}
	}
	if named == 0 || named == s.NumNodes() {
		return s.wrong("tables name some nodes, but %s has %d of %d", format.LinesNamed, named, s.NumNodes())
	}
	return s.verifyNamed()
}

// verifyNamed checks that every node that no edge names is named by a table: nothing else made it a node.
func (s *Snapshot) verifyNamed() error {
	for v := range int32(s.NumNodes()) {
		if s.In.Degree(v) == 0 && (s.Out == nil || s.Out.Degree(v) == 0) && !s.isNamed(v) {
			return s.wrong("no edge and no table names node %q", s.IDs.At(int(v)))
		}
	}
	return nil
}
