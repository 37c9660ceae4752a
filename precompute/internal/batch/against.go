package batch

import (
	"bytes"
	"context"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
	"github.com/prelift/prelift/snapshot"
	"github.com/prelift/prelift/snapshot/graph"
)

// VerifyAgainst compares the batch set in dir with the snapshot it says it was cut from: the
// tables, rows that are parts of the snapshot's rows (all of them for evaluation, mode full and
// fanout -1; all between the nodes of a subgraph), importance, coefficients; and in the end every record with a new one. It relies on what Verify
// checks. A set of another snapshot is format.ErrMismatch.
func VerifyAgainst(dir string, snap *snapshot.Snapshot) error {
	s, err := openSet(dir)
	if err != nil {
		return err
	}
	defer s.close()
	m := s.m
	if m.SnapshotID != snap.ID {
		return faultf(format.ErrMismatch, s.place, "cut from snapshot %s, this is %s", m.SnapshotID.Hex()[:16], snap.ID.Hex()[:16])
	}
	for _, want := range linkedFiles(snap, &m.Params) {
		if got, ok := m.FileOf(want.Name); !ok || got != want {
			return faultf(format.ErrMismatch, want.Name, "SHA-256 %s, the snapshot's has %s", got.SHA256.Hex()[:16], want.SHA256.Hex()[:16])
		}
	}
	src, err := sourceOf(snap, m.Params, nil)
	if err == nil {
		err = src.listPPR(context.Background(), &Options{})
	}
	if err != nil {
		return faultf(format.ErrLayout, s.place, "parameters: %v", err)
	}
	if !sameParams(&src.params, &m.Params) {
		return faultf(format.ErrLayout, s.place, "parameters %+v aren't settled: %+v", m.Params, src.params)
	}
	if src.numBatches() != int(m.NumBatches) || src.numEvalBlocks() != int(m.NumEvalBlocks) || src.numSeeds() != int(m.NumSeeds) {
		return faultf(format.ErrLayout, s.place, "%d batches, %d seeds, %d evaluation blocks; the snapshot gives %d, %d, %d", m.NumBatches, m.NumSeeds, m.NumEvalBlocks, src.numBatches(), src.numSeeds(), src.numEvalBlocks())
	}
	if a, b := src.table.error, m.RowError; (a == nil) != (b == nil) || a != nil && *a != *b {
		return faultf(format.ErrLayout, s.place, "row_error %v, the snapshot's features give %v", b, a)
	}
	if err := src.findHot(context.Background(), runtime.GOMAXPROCS(0), nil); err != nil {
		return err
	}
	return format.Guard(filepath.Base(dir), func() error { return s.compare(newAssembler(src)) })
}

func (s *set) compare(a *assembler) error {
	if s.coefs != nil {
		if err := sameRecord(s.coefs, a.coefTable()); err != nil {
			return err
		}
	}
	if src := a.source; src.hasOwnTable() {
		if err := sameRecord(s.features, a.tableRecord()); err != nil {
			return err
		}
	}
	if s.hot != nil {
		if err := sameRecord(s.hot, a.hotRecord()); err != nil {
			return err
		}
	}
	for group, r := range s.groups {
		if err := sameRecord(r, a.groupRecord(group)); err != nil {
			return err
		}
	}
	err := s.each(s.batches, int(s.m.NumBatches), func(r *format.Record, number int) error {
		if err := compareBlocks(r, a.source); err != nil {
			return err
		}
		return sameRecord(r, a.training(number))
	})
	if err != nil {
		return err
	}
	return s.each(s.evals, int(s.m.NumEvalBlocks), func(r *format.Record, number int) error {
		if err := compareBlocks(r, a.source); err != nil {
			return err
		}
		return sameRecord(r, a.eval(number))
	})
}

// compareBlocks checks the blocks of a record against the snapshot's rows, independently
// of how they were made.
func compareBlocks(r *format.Record, src *source) error {
	if r.Space == format.SpaceGlobal {
		return compareBlock(r, format.AnyLayer, nil, nil, src)
	}
	nodes := r.Int32s(format.NodesNumber, format.AnyLayer)
	for _, l := range blockLayers(r) {
		if err := compareBlock(r, l, nodes, takenOf(r, l, nodes, src), src); err != nil {
			return err
		}
	}
	return nil
}

// taken says how many of a node's edges its row must have, given the entries that lead to others, and their importance. known is false where that is left to chance.
type taken func(v int32, numNeighbours int) (want int, importance float32, known bool)

// takenOf is the rule of a layer of a local record. What a draw by weight counts for isn't known without the draw; sameRecord compares that.
func takenOf(r *format.Record, layer uint16, nodes []int32, src *source) taken {
	p, in := &src.params, &src.snap.In
	if layer == format.AnyLayer {
		inBatch := make(map[int32]bool, len(nodes))
		for _, v := range nodes {
			inBatch[v] = true
		}
		return func(v int32, numNeighbours int) (int, float32, bool) {
			want := 0
			for _, u := range in.Row(v) {
				if u != v && inBatch[u] {
					want++
				}
			}
			return want, float32(float64(numNeighbours) / float64(max(want, 1))), true
		}
	}
	k := fanoutOf(p, int(layer))
	return func(v int32, numNeighbours int) (int, float32, bool) {
		if p.Weighted {
			numNeighbours = 0
			for at, w := range in.RowWeights(v) {
				if w > 0 && in.Row(v)[at] != v {
					numNeighbours++
				}
			}
		}
		if k == sample.All || numNeighbours <= k {
			return numNeighbours, 1, true
		}
		return k, float32(float64(numNeighbours) / float64(k)), p.Mode != ModeLabor
	}
}

// compareBlock compares the block of a layer; rule is nil where every row has all its neighbours.
func compareBlock(r *format.Record, layer uint16, nodes []int32, rule taken, src *source) error {
	in := &src.snap.In
	indptr, indices := r.Int64s(format.BlockIndptr, layer), r.Int32s(format.BlockIndices, layer)
	importance, stored := r.Float32s(format.CoefImportance, layer, format.CoefNone), storedNorms(r, layer, src)
	for d := range len(indptr) - 1 {
		v := int32(r.DstStart) + int32(d)
		if nodes != nil {
			v = nodes[d]
		}
		row := in.Row(v)
		numNeighbours := len(row)
		if _, ok := in.Loop(v); ok {
			numNeighbours--
		}
		want, counts, known := numNeighbours, float32(1), true
		if rule != nil {
			want, counts, known = rule(v, numNeighbours)
		}
		if got := int(indptr[d+1] - indptr[d]); known && got != want {
			return faultf(format.ErrLayout, r.Place(), "row %d of layer %d (node %d) has %d edges, want %d of %d", d, int16(layer), v, got, want, numNeighbours)
		}
		if importance != nil && want > 0 && importance[d] != counts {
			return faultf(format.ErrLayout, r.Place(), "row %d of layer %d (node %d) counts each neighbour %g times, want %g", d, int16(layer), v, importance[d], counts)
		}
		for e := indptr[d]; e < indptr[d+1]; e++ {
			u := indices[e]
			if nodes != nil {
				u = nodes[u]
			}
			at, ok := slices.BinarySearch(row, u)
			if !ok {
				return faultf(format.ErrLayout, r.Place(), "edge %d of layer %d is %d -> %d, which the snapshot doesn't have", e, int16(layer), u, v)
			}
			for i := range stored {
				to := int32(d)
				if nodes == nil {
					to = v // per-node factors of a global record are over all nodes
				}
				got, want := stored[i].Coefficient(e, indices[e], to), src.norms[i].Coefficient(in.Indptr[v]+int64(at), u, v)
				if got != want && !(src.params.Weighted && nodes != nil && got > want) {
					return faultf(format.ErrLayout, r.Place(), "%s coefficient of edge %d -> %d is %g, want %g", src.norms[i].coef, u, v, got, want)
				}
			}
		}
	}
	return nil
}

// storedNorms returns the coefficients that a block's record has, in the order of
// src.norms; an evaluation block's factors are in coefs.plf, which is compared by itself.
func storedNorms(r *format.Record, layer uint16, src *source) []graph.Norm {
	stored := make([]graph.Norm, len(src.norms))
	for i := range src.norms {
		n := &src.norms[i]
		stored[i] = graph.Norm{
			Edge: r.Float32s(format.CoefEdge, layer, n.coef),
			Src:  r.Float32s(format.CoefSrc, layer, n.coef), Dst: r.Float32s(format.CoefDst, layer, n.coef),
		}
		if r.Space == format.SpaceGlobal && stored[i].Src == nil && stored[i].Dst == nil {
			stored[i].Src, stored[i].Dst = n.Src, n.Dst
		}
	}
	return stored
}

// sameRecord compares a record of a file with one newly built, byte for byte.
func sameRecord(got *format.Record, want *record) error {
	specs := want.sections
	if want.err != nil {
		return want.err
	}
	a, errA := format.Canonical(got.RecordHeader)
	b, errB := format.Canonical(want.header)
	if errA != nil || errB != nil || !bytes.Equal(a, b) || len(got.Sections) != len(specs) {
		return faultf(format.ErrLayout, got.Place(), "head %s with %d sections, the snapshot gives %s with %d", a, len(got.Sections), b, len(specs))
	}
	for i := range specs {
		s, w := &got.Sections[i], &specs[i]
		if s.Kind != w.Kind || s.Layer != w.Layer || s.Coef != w.Coef || s.DType != w.DType || s.Codec != w.Codec || !slices.Equal(s.Shape, w.Shape) {
			return faultf(format.ErrLayout, got.Place(), "section %d is %s %v of codec %s, the snapshot gives %s %v of %s", i, s.Kind, s.Shape, s.Codec, w.Kind, w.Shape, w.Codec)
		}
		data := w.Data
		if data == nil && w.Write != nil {
			var buf bytes.Buffer
			if err := w.Write(&buf); err != nil {
				return err
			}
			data = buf.Bytes()
		}
		if !bytes.Equal(s.Bytes(), data) {
			return faultf(format.ErrLayout, got.Place(), "%s of layer %d, coefficients %s, is not what the snapshot gives", s.Kind, int16(s.Layer), s.Coef)
		}
	}
	return nil
}
