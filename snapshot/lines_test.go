package snapshot

import (
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// linesIn builds a snapshot of the lines in the ids a to d.
func linesIn(t *testing.T, direction Direction, named []bool, declared bool, weight []float32, ends ...int32) string {
	t.Helper()
	tables := &Tables{IDs: idsOf(CollationBytes, "a", "b", "c", "d"), Named: named, Declared: declared}
	var src, dst []int32
	for i := 0; i < len(ends); i += 2 {
		src, dst = append(src, ends[i]), append(dst, ends[i+1])
	}
	tables.Edges = graph.EdgesOf(src, dst, weight, nil)
	p := defaultParams
	p.Direction = direction
	return buildIn(t, tables, p, 1)
}

// What a snapshot remembers of its lines, and what it needs no section for.
func TestLinesRemembered(t *testing.T) {
	all := []bool{true, true, true, true}
	for _, c := range []struct {
		name      string
		direction Direction
		named     []bool
		declared  bool
		weight    []float32
		ends      []int32
		want      UpdateInfo
		sections  []format.Kind
	}{
		{"no lines", Undirected, nil, true, nil, nil, UpdateInfo{"forward", 0, true, "all"}, nil},
		{"forward", Undirected, nil, false, nil, []int32{0, 1, 1, 2, 2, 3, 3, 3}, UpdateInfo{"forward", 0, false, "none"}, nil},
		{"backward", Undirected, all, false, nil, []int32{1, 0, 2, 1, 3, 2}, UpdateInfo{"backward", 0, false, "all"}, nil},
		{"both", Undirected, all, false, nil, []int32{1, 0, 0, 1, 2, 3, 3, 2}, UpdateInfo{"both", 0, false, "all"}, nil},
		{"counted", Undirected, all, false, nil, []int32{1, 0, 1, 0, 2, 3, 2, 3}, UpdateInfo{"counted", 2, false, "all"}, []format.Kind{format.LinesCount}},
		{"mixed", Undirected, all, false, nil, []int32{1, 0, 2, 3}, UpdateInfo{"mixed", 0, false, "all"}, []format.Kind{format.LinesCode}},
		{"some named", Undirected, []bool{true, false, false, false}, false, nil, []int32{0, 1, 2, 3}, UpdateInfo{"forward", 0, false, "some"}, []format.Kind{format.LinesNamed}},
		{"arcs", Directed, all, false, nil, []int32{1, 0, 0, 1, 3, 2}, UpdateInfo{"forward", 0, false, "all"}, nil},
		{"weights", Undirected, all, false, []float32{1, 2}, []int32{1, 0, 0, 1}, UpdateInfo{"counted", 1, false, "all"}, []format.Kind{format.LinesCount, format.LinesWeight}},
		{"many", Undirected, all, false, nil, slices.Repeat([]int32{0, 1}, 300), UpdateInfo{"counted", 1, false, "all"}, []format.Kind{format.LinesCount, format.LinesLarge}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := linesIn(t, c.direction, c.named, c.declared, c.weight, c.ends...)
			s, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if *s.Manifest.Update != c.want {
				t.Errorf("update %+v, want %+v", *s.Manifest.Update, c.want)
			}
			var sections []format.Kind
			if s.has(LinesFile) {
				f, err := format.Open(filepath.Join(dir, LinesFile))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				r, err := f.Record(0)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range r.Sections {
					sections = append(sections, s.Kind)
				}
			}
			if !slices.Equal(sections, c.sections) {
				t.Errorf("sections %v, want %v", sections, c.sections)
			}
			if err := Verify(dir, 1); err != nil {
				t.Error(err)
			}
		})
	}
}

// Lies about lines with every digest and bound put right.
func TestVerifyFindsLinesLies(t *testing.T) {
	setWeight := func(i int, w float32) func(s *format.SectionSpec) {
		return func(s *format.SectionSpec) { binary.LittleEndian.PutUint32(s.Data[4*i:], math.Float32bits(w)) }
	}
	for _, c := range []struct {
		name, want string
		kind       format.Kind
		change     func(s *format.SectionSpec)
	}{
		{"weights of other sums", "add up to", format.LinesWeight, setWeight(2, 4)},
		{"weights out of order", "ascending", format.LinesWeight, func(s *format.SectionSpec) { setWeight(0, 2)(s); setWeight(1, 1)(s) }},
		{"a negative weight", "ascending", format.LinesWeight, setWeight(0, -1)},
		{"a zero of the wrong sign", "ascending", format.LinesWeight, setWeight(0, float32(math.Copysign(0, -1)))},
		{"one direction", "lines with", format.LinesCount, func(s *format.SectionSpec) { s.Data[0], s.Data[1] = 3, 0 }},
		{"a loop the other way round", "other way round", format.LinesCount, func(s *format.SectionSpec) { s.Data[2], s.Data[3] = 1, 1 }},
		{"a code for two lines", "has the code 2", format.LinesCode, func(s *format.SectionSpec) { s.Data[0] = fourCodes(2, 3, 3, 0) }},
		{"nobody named", "named has 0 of 4", format.LinesNamed, func(s *format.SectionSpec) { s.Data[0] = 0 }},
		{"everybody named", "named has 4 of 4", format.LinesNamed, func(s *format.SectionSpec) { s.Data[0] = 15 }},
		{"a node of nothing", `no edge and no table names node "d"`, format.LinesNamed, func(s *format.SectionSpec) { s.Data[0] = 3 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			// a-b twice one way and once the other, b-b twice, b-c once; d is alone.
			dir := linesIn(t, Undirected, []bool{true, false, false, true}, false, []float32{0, 1, 2, 3, 4, 5, 6}, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1, 2, 1, 0, 2)
			if err := Verify(dir, 1); err != nil {
				t.Fatal(err)
			}
			changeSection(c.kind, c.change)(t, dir)
			if err := Verify(dir, 1); err == nil || !errors.Is(err, format.ErrLayout) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one about %s", err, c.want)
			}
		})
	}
}

// fourCodes packs four codes.
func fourCodes(a, b, c, d byte) byte { return a | b<<2 | c<<4 | d<<6 }
