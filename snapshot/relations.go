package snapshot

import (
	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// edgesPerRel counts the edges of each relation: undirected pairs once, self loops once, arcs when directed. nil without relations.
func edgesPerRel(g *graph.Graph, numRels int) []format.Int {
	if numRels == 0 {
		return nil
	}
	counts := make([]format.Int, numRels)
	in := &g.In
	if in.Rel == nil {
		counts[0] = format.Int(g.Audit.NumEdges)
		return counts
	}
	for v := range int32(in.NumNodes()) {
		for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
			if g.Out != nil || in.Indices[e] <= v {
				counts[in.Rel[e]]++
			}
		}
	}
	return counts
}

func (s *Snapshot) loadRelations(r *format.Record) error {
	if s.RelNames = r.Names().Strings(); len(s.RelNames) != int(s.Manifest.NumRels) {
		return missing(r, "names of the relations")
	}
	return nil
}

// loadRels takes the relations of the rows.
func (s *Snapshot) loadRels(r *format.Record) error {
	m := &s.Manifest
	if m.NumRels < 2 {
		return nil
	}
	if s.In.Rel = r.Int32s(format.BlockRel, format.AnyLayer); s.In.Rel == nil {
		return missing(r, "relations")
	}
	if s.Out == nil {
		return r.CheckNumbers(format.BlockRel, int(m.NumRels))
	}
	if s.Out.Rel = r.Int32s(format.TransposeRel, format.AnyLayer); s.Out.Rel == nil {
		return missing(r, "relations of the out-rows")
	}
	if err := r.CheckNumbers(format.BlockRel, int(m.NumRels)); err != nil {
		return err
	}
	return r.CheckNumbers(format.TransposeRel, int(m.NumRels))
}

// simple returns in-rows and out-rows (directed, else nil) without relations: index and order are of who is a neighbour of whom.
func simple(in, out *graph.CSR, alloc graph.Alloc) (*graph.CSR, *graph.CSR, error) {
	in, err := in.Simple(alloc)
	if err != nil || out == nil {
		return in, nil, err
	}
	out, err = out.Simple(alloc)
	return in, out, err
}
