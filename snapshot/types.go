package snapshot

import (
	"fmt"
	"slices"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// nodesPerType counts the nodes of each type, nil without types.
func nodesPerType(t *Types) []format.Int {
	if t == nil {
		return nil
	}
	counts := make([]format.Int, len(t.Names))
	for _, k := range t.Type {
		counts[k]++
	}
	return counts
}

// startTypes begins to write the names of relations, and the types of nodes.
func (b *builder) startTypes() {
	if names := b.tables.RelNames; len(names) > 0 {
		b.start(RelationsFile, format.FileLabels, b.header(), nameSections(names))
	}
	if t := b.tables.Types; t != nil {
		types := format.Int32Section(format.NodesType, format.AnyLayer, t.Type)
		b.start(TypesFile, format.FileLabels, b.header(), append([]format.SectionSpec{types}, nameSections(t.Names)...))
	}
}

func (s *Snapshot) loadTypes(r *format.Record) error {
	s.Types = &Types{Type: r.Int32s(format.NodesType, format.AnyLayer), Names: r.Names().Strings()}
	if len(s.Types.Type) != s.NumNodes() || len(s.Types.Names) != len(s.Manifest.NodesPerType) {
		return missing(r, "types of the nodes or their names")
	}
	return r.CheckNumbers(format.NodesType, len(s.Types.Names))
}

// checkTypes checks what the manifest says of relations against itself.
func (m *Manifest) checkTypes() error {
	if n := len(m.EdgesPerRel); n > 0 && n != int(m.NumRels) || n == 0 && m.NumRels != 1 {
		return fmt.Errorf("%d relations, edges are counted for %d", m.NumRels, n)
	}
	return nil
}

// verifyTypes counts edges by relation and nodes by type again; names must rise.
func (s *Snapshot) verifyTypes() error {
	m := &s.Manifest
	g := &graph.Graph{In: s.In, Out: s.Out, Audit: graph.Audit{NumEdges: int64(m.NumEdges)}}
	if got := edgesPerRel(g, len(m.EdgesPerRel)); !slices.Equal(got, m.EdgesPerRel) {
		return s.wrong("edges of each relation are %v, the rows give %v", m.EdgesPerRel, got)
	}
	if got := nodesPerType(s.Types); !slices.Equal(got, m.NodesPerType) {
		return s.wrong("nodes of each type are %v, types.plf gives %v", m.NodesPerType, got)
	}
	lists := [][]string{s.RelNames}
	if s.Types != nil {
		lists = append(lists, s.Types.Names)
	}
	for _, names := range lists {
		for i := 1; i < len(names); i++ {
			if names[i-1] >= names[i] {
				return s.wrong("names %q and %q are not in order", names[i-1], names[i])
			}
		}
	}
	return nil
}

// NamedCount is a relation or a type and how many edges or nodes are of it.
type NamedCount struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

func namedCounts(names []string, counts []format.Int) []NamedCount {
	list := []NamedCount{}
	for i, n := range counts {
		list = append(list, NamedCount{names[i], int64(n)})
	}
	return list
}
