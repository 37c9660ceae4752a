package snapshot

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// relTables draws a graph of three relations and two node types; the order of its lines is that of another seed.
func relTables(seed, order uint64, weighted bool) *Tables {
	r := rand.New(rand.NewPCG(seed, 1))
	n := 2 + r.IntN(60)
	t := &Tables{RelNames: []string{"a", "b", "c"}, Types: &Types{Names: []string{"", "X"}}, Declared: true}
	var ids []string
	for v := range n {
		ids = append(ids, fmt.Sprintf("n%03d", v))
		t.Types.Type = append(t.Types.Type, r.Int32N(2))
	}
	t.IDs = idsOf(CollationBytes, ids...)
	var src, dst, rel []int32
	var weight []float32
	for range 20 + r.IntN(300) {
		src, dst, rel = append(src, r.Int32N(int32(n))), append(dst, r.Int32N(int32(n))), append(rel, r.Int32N(3))
		if weighted {
			weight = append(weight, r.Float32())
		}
	}
	rand.New(rand.NewPCG(order, 2)).Shuffle(len(src), func(i, j int) {
		src[i], src[j] = src[j], src[i]
		dst[i], dst[j] = dst[j], dst[i]
		rel[i], rel[j] = rel[j], rel[i]
		if weighted {
			weight[i], weight[j] = weight[j], weight[i]
		}
	})
	t.Edges = graph.EdgesOf(src, dst, weight, rel)
	return t
}

// A graph of relations has the edges of each relation by itself; index and order are those of the graph without
// relations.
func TestRelations(t *testing.T) {
	for seed := range uint64(12) {
		p := fullParams
		if seed%2 == 1 {
			p.Direction = Directed
		}
		weighted := seed%4 > 1
		dir := buildIn(t, relTables(seed, 0, weighted), p, 1)
		if err := Verify(dir, 1); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		id, err := format.ReadID(dir)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := format.ReadID(buildIn(t, relTables(seed, 7, weighted), p, 8)); again != id {
			t.Errorf("seed %d: another id for lines in another order", seed)
		}
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		checkRelations(t, s, relTables(seed, 0, weighted))

		p.MergeRelations = true
		merged, err := Open(buildIn(t, relTables(seed, 0, weighted), p, 2))
		if err != nil {
			t.Fatal(err)
		}
		defer merged.Close()
		if merged.RelNames != nil || merged.In.Rel != nil || merged.Manifest.NumRels != 1 {
			t.Errorf("seed %d: merged relations are still there", seed)
		}
		in, _, err := simple(&s.In, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(in.Indptr, merged.In.Indptr) || !slices.Equal(in.Indices, merged.In.Indices) {
			t.Errorf("seed %d: the rows without relations aren't those of the merged graph", seed)
		}
		if !slices.Equal(s.Hop1.Compact, merged.Hop1.Compact) || !slices.Equal(s.Hop2.Indices, merged.Hop2.Indices) || !slices.Equal(s.Order, merged.Order) {
			t.Errorf("seed %d: index or order aren't those of the merged graph", seed)
		}
		d, err := Describe(dir)
		if err != nil {
			t.Fatal(err)
		}
		mergedD, err := Describe(merged.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(d.Hop1, mergedD.Hop1) {
			t.Errorf("seed %d: the index is described as %+v, of the merged graph as %+v", seed, d.Hop1, mergedD.Hop1)
		}
	}
}

// checkRelations compares a snapshot with the lines it comes of.
func checkRelations(t *testing.T, s *Snapshot, tables *Tables) {
	t.Helper()
	type edge struct{ dst, src, rel int32 }
	want := map[edge]bool{}
	counts := make([]int64, 3)
	directed := s.Out != nil
	tables.Edges.Each(func(src, dst int32, _ float32, rel int32) error {
		e := edge{dst, src, rel}
		if !directed {
			e = edge{max(src, dst), min(src, dst), rel}
		}
		if !want[e] {
			want[e] = true
			counts[rel]++
		}
		return nil
	})
	for r, n := range counts {
		if int64(s.Manifest.EdgesPerRel[r]) != n {
			t.Errorf("%d edges of relation %d, want %d", s.Manifest.EdgesPerRel[r], r, n)
		}
	}
	entries := 0
	for e := range want {
		entries++
		if !directed && e.dst != e.src {
			entries++
		}
	}
	if entries != len(s.In.Indices) {
		t.Errorf("%d entries, want %d", len(s.In.Indices), entries)
	}
	for v := range int32(s.NumNodes()) {
		for i := s.In.Indptr[v]; i < s.In.Indptr[v+1]; i++ {
			e := edge{v, s.In.Indices[i], s.In.Rel[i]}
			if !directed {
				e.dst, e.src = max(v, e.src), min(v, e.src)
			}
			if !want[e] {
				t.Fatalf("entry %+v comes of no line", e)
			}
		}
	}
	if !slices.Equal(s.RelNames, tables.RelNames) || !slices.Equal(s.Types.Type, tables.Types.Type) || !slices.Equal(s.Types.Names, tables.Types.Names) {
		t.Error("names or types differ")
	}
}

// One relation is stored by its name only.
func TestOneRelation(t *testing.T) {
	tables := smallTables()
	tables.Edges = graph.EdgesOf([]int32{0, 1}, []int32{1, 2}, nil, []int32{0, 0})
	tables.RelNames = []string{"only"}
	dir := buildIn(t, tables, fullParams, 1)
	if err := Verify(dir, 1); err != nil {
		t.Fatal(err)
	}
	d, err := Describe(dir)
	if err != nil || d.NumRels != 1 || !slices.Equal(d.Relations, []NamedCount{{"only", 2}}) {
		t.Errorf("%+v, %v", d.Relations, err)
	}
}

// Numbers of relations and types beyond those that have names, and names that aren't as many, are refused on opening; rows and names out of
// order by Verify.
func TestRelationFaults(t *testing.T) {
	none := func(*Manifest) {}
	const open, verify = true, false
	setInt32 := func(file string, kind format.Kind, x int32) func(string, *format.SectionSpec) {
		return func(name string, s *format.SectionSpec) {
			if name == file && s.Kind == kind {
				binary.LittleEndian.PutUint32(s.Data, uint32(x))
			}
		}
	}
	for _, tc := range []struct {
		name, want string
		lie        func(m *Manifest)
		spoil      func(file string, s *format.SectionSpec)
		atOpen     bool
	}{
		{"relation without a name", "block.rel is 3", none, setInt32(TopologyFile, format.BlockRel, 3), open},
		{"the same of the out-rows", "transpose.rel is 3", none, setInt32(TopologyFile, format.TransposeRel, 3), open},
		{"type without a name", "nodes.type is 2", none, setInt32(TypesFile, format.NodesType, 2), open},
		{"fewer relations counted than named", "no names of the relations", func(m *Manifest) { m.NumRels++; m.EdgesPerRel = append(m.EdgesPerRel, 0) }, nil, open},
		{"fewer counts than relations", "3 relations, edges are counted for 2", func(m *Manifest) { m.EdgesPerRel = m.EdgesPerRel[:2] }, nil, open},
		{"more types named than counted", "no types of the nodes or their names", func(m *Manifest) { m.NodesPerType = append(m.NodesPerType, 0) }, nil, open},
		{"a relation that rows hold twice", "relations within each", none, func(file string, s *format.SectionSpec) {
			if file == TopologyFile && (s.Kind == format.BlockRel || s.Kind == format.TransposeRel) {
				clear(s.Data)
			}
		}, verify},
		{"relations of the out-rows alone", "in the in-rows only", none, setInt32(TopologyFile, format.TransposeRel, 0), verify},
		{"names of relations out of order", `names "c" and "b"`, none, func(file string, s *format.SectionSpec) {
			if file == RelationsFile && s.Kind == format.NamesBytes {
				s.Data[0] = 'c'
			}
		}, verify},
		{"names of types out of order", `names`, none, func(file string, s *format.SectionSpec) {
			if file == TypesFile && s.Kind == format.NamesOffsets {
				binary.LittleEndian.PutUint64(s.Data[8:], 1)
			}
		}, verify},
	} {
		p := fullParams
		p.Direction = Directed
		dir := buildIn(t, relTables(3, 0, false), p, 1)
		if tc.spoil == nil {
			rewrite(t, dir, tc.lie)
		} else {
			rewriteSections(t, dir, tc.lie, tc.spoil)
		}
		s, err := Open(dir)
		if s != nil {
			s.Close()
		}
		if !tc.atOpen {
			if err != nil {
				t.Errorf("%s: Open: %v", tc.name, err)
			}
			err = Verify(dir, 1)
		}
		if err == nil || !format.IsCorrupt(err) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestVerifyFindsRelationLies(t *testing.T) {
	for name, lie := range map[string]func(m *Manifest){
		"edges of each relation": func(m *Manifest) { m.EdgesPerRel[0]++; m.EdgesPerRel[1]-- },
		"nodes of each type":     func(m *Manifest) { m.NodesPerType[0]++; m.NodesPerType[1]-- },
	} {
		dir := buildIn(t, relTables(3, 0, false), fullParams, 1)
		rewrite(t, dir, lie)
		if err := Verify(dir, 1); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
