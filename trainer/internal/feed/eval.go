package feed

import (
	"fmt"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/backend"
)

// Eval is the exact evaluation sequence: blocks of consecutive dst rows that tile
// 0..NumNodes, each with all of its in-neighbours and global src numbers. A model walks it
// once a layer. In a full set it is the one training block.
type Eval struct {
	set     *Set
	kind    format.Coef
	refs    []*shardRecord
	records []*format.Record // heads only
}

// NewEval returns the sequence with coefficients of a kind. ErrMismatch where the set was
// written without one, or without the kind.
func (s *Set) NewEval(kind format.Coef) (*Eval, error) {
	if err := s.NeedCoef(kind, "to be evaluated"); err != nil {
		return nil, err
	}
	e := &Eval{set: s, kind: kind, refs: s.evalRecords()}
	if len(e.refs) == 0 {
		return nil, s.manifestFault(format.ErrMismatch, "the set has no evaluation blocks; write it again with `precompute batches --eval layerwise`")
	}
	end := uint64(0)
	for _, ref := range e.refs {
		r, err := ref.file.Record(ref.index)
		if err != nil {
			return nil, err
		}
		if r.Space != format.SpaceGlobal || r.NumNodes() != uint64(s.NumNodes()) || r.DstStart != end {
			return nil, fmt.Errorf("%s: %w: rows %d to %d of %d nodes follow row %d of %d", r.Place(), format.ErrLayout, r.DstStart, r.DstEnd, r.NumNodes(), end, s.NumNodes())
		}
		end = r.DstEnd
		e.records = append(e.records, r)
	}
	if end != uint64(s.NumNodes()) {
		return nil, fmt.Errorf("%s: %w: evaluation blocks end at row %d of %d", s.Dir, format.ErrLayout, end, s.NumNodes())
	}
	return e, nil
}

// NumBlocks returns the length of the sequence.
func (e *Eval) NumBlocks() int { return len(e.refs) }

// Block fills blk and coef with block i; the first time in the process it verifies the
// record. The views are valid until Set.Close.
func (e *Eval) Block(i int, blk *backend.Block, coef *backend.Coef) error {
	check := checkSupported // no more: evaluation reads labels.plf, not the block's copy
	if e.set.Full() {
		check = e.set.checkBatchFirst
	}
	if _, _, err := e.refs[i].load(check); err != nil {
		return err
	}
	coefs := e.set.coefs
	if e.set.Full() {
		coefs = e.records[i]
	}
	return blockOf(e.records[i], format.AnyLayer, e.kind, coefs, blk, coef, &codedBlock{}) // global indices are never coded
}

// evalRecords returns the records of the evaluation sequence; none in a set without one.
func (s *Set) evalRecords() []*shardRecord {
	if s.Full() {
		return s.batches
	}
	return s.eval
}

// countEdges adds up the edges of the evaluation sequence. It reads heads only.
func (s *Set) countEdges() (edges int64, err error) {
	for _, ref := range s.evalRecords() {
		r, err := ref.file.Record(ref.index)
		if err != nil {
			return 0, err
		}
		if indices := r.Find(format.BlockIndices, format.AnyLayer, format.CoefNone); indices != nil {
			edges += int64(indices.NumElements())
		}
	}
	return edges, nil
}

// NumEdges returns the edges of the whole graph, as the evaluation sequence has them; 0
// for a set without one.
func (s *Set) NumEdges() int64 { return s.numEdges }
