package feed

import (
	"fmt"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/backend"
)

// Batch is one batch, ready for compute. Its slices are views of mapped files, or of the
// ring slot that Release gives back; they are read-only and valid until Release.
type Batch struct {
	Epoch    int
	Position int  // place in the epoch's order
	Number   int  // batch number in the set; its variant is Number / BatchesPerVariant
	Last     bool // the last of its epoch

	NumSeeds int // rows of Targets, the first of the logits; in a full set every node, under a mask
	NumNodes int // nodes that the model reads, the rows of Features: src of the first block, or without blocks the seeds

	Blocks   []*backend.Block // one a layer, input side first; in a set of any depth equal ones
	Coefs    []*backend.Coef  // of Blocks, of the loader's kind
	Features []float32        // [NumNodes, F]; nil where the loader was told to leave them
	Targets  backend.Targets

	FirstUse   bool          // the record was verified for this batch
	LoadTime   time.Duration // head, sections, and on first use verification
	GatherTime time.Duration // copying the feature rows; 0 for views

	rows    []float32    // the slot's gather buffer
	numbers []int32      // and memory for what is coded in the file: node numbers,
	coded   []codedBlock // and blocks, one each of Blocks
	record  *format.Record
	give    chan<- *Batch
}

// codedBlock is memory for the integers of a block that the file holds coded. It grows with the first batches, to the
// largest; a block that isn't coded needs none.
type codedBlock struct {
	indptr, tIndptr, tEdge []int64
	indices, tIndices      []int32
}

// Release gives the batch's slot back to the loader. Nothing of the batch may be used
// afterwards.
func (b *Batch) Release() { b.give <- b }

// Place names the batch's record, for messages.
func (b *Batch) Place() string { return b.record.Place() }

// RecordBytes returns the size of the batch's record in its file.
func (b *Batch) RecordBytes() int { return b.record.SizeBytes() }

// load returns the record's parsed head. The first time in the process it verifies every
// byte of it, unless Open did, and runs check.
func (r *shardRecord) load(check func(*format.Record) error) (rec *format.Record, first bool, err error) {
	rec, err = r.file.Record(r.index)
	if err != nil || r.ready.Load() {
		return rec, false, err
	}
	if !r.verified {
		if r.index == 0 { // the bytes between records belong to no record
			if err := r.file.VerifyPadding(); err != nil {
				return nil, true, err
			}
		}
		if err := rec.Verify(); err != nil {
			return nil, true, err
		}
	}
	if err := check(rec); err != nil {
		return nil, true, err
	}
	r.ready.Store(true)
	return rec, true, nil
}

// checkBatchHead holds a batch's head against the manifest. Cost: O(layers).
func (s *Set) checkBatchHead(r *format.Record, number int) error {
	m := s.Manifest
	bad := func(text string, args ...any) error {
		return fmt.Errorf("%s: %w: %s", r.Place(), format.ErrLayout, fmt.Sprintf(text, args...))
	}
	if r.Task != format.TaskNode || int(r.Number) != number || int(r.Variant) != number/int(m.BatchesPerVariant) {
		return bad("task %d, batch %d of variant %d; want batch %d of variant %d", r.Task, r.Number, r.Variant, number, number/int(m.BatchesPerVariant))
	}
	if s.Full() {
		if n := uint64(m.NumNodes); r.Space != format.SpaceGlobal || r.DstStart != 0 || r.DstEnd != n || r.NumNodes() != n || r.NumSeeds != n {
			return bad("rows %d to %d of %d nodes; want all of %d", r.DstStart, r.DstEnd, r.NumNodes(), n)
		}
		return nil
	}
	switch {
	case r.Space != format.SpaceLocal || r.NumLayers != m.NumLayers:
		return bad("index space %d with %d layers; want local indices and %d", r.Space, r.NumLayers, m.NumLayers)
	case r.Split != format.PartTrain || m.Params.Split >= 0 && r.SplitColumn != uint32(m.Params.Split):
		return bad("part %d of split column %d; want train of %d", r.Split, r.SplitColumn, m.Params.Split)
	case r.NumNodes() > uint64(m.Maxima.Nodes) || r.NumSeeds > uint64(m.Maxima.Seeds):
		return bad("%d nodes and %d seeds, over the manifest's maxima of %d and %d", r.NumNodes(), r.NumSeeds, m.Maxima.Nodes, m.Maxima.Seeds)
	}
	return nil
}

// unsupported are the sections that change what a record means and that nothing here reads
// yet: seeds that don't weigh the same, and in the whole graph's records rows of other tables (SPEC 5.4).
func unsupported(r *format.Record) []format.Kind {
	if r.Space == format.SpaceGlobal {
		return []format.Kind{format.SeedsWeight, format.NodesRow, format.NodesTable}
	}
	return []format.Kind{format.SeedsWeight}
}

// checkSupported refuses a record with a section that must not be ignored (ErrVersion).
func checkSupported(r *format.Record) error {
	for _, kind := range unsupported(r) {
		if r.Find(kind, format.AnyLayer, format.CoefNone) != nil {
			return fmt.Errorf("%s: %w: it has a section %s, which this trainer can't compute with yet; train with a newer one, or write the set without it",
				r.Place(), format.ErrVersion, kind)
		}
	}
	return nil
}

// checkBatchFirst checks what needs a pass over a batch's contents beyond Record.Verify.
func (s *Set) checkBatchFirst(r *format.Record) error {
	if err := checkSupported(r); err != nil {
		return err
	}
	if err := s.checkLabel(r, r.NumSeeds); err != nil {
		return err
	}
	if s.Full() {
		return nil
	}
	if numbers := r.Find(format.NodesNumber, format.AnyLayer, format.CoefNone); numbers == nil || numbers.NumElements() != r.NumNodes() {
		return fmt.Errorf("%s: %w: no node number for each of %d nodes", r.Place(), format.ErrLayout, r.NumNodes())
	}
	if err := r.CheckNumbers(format.NodesNumber, s.NumNodes()); err != nil {
		return err
	}
	return s.checkRows(r)
}

// blockOf fills blk and coef from the sections of a layer of r. It fails where the
// structure is absent; an absent transpose or coefficient stays nil. coefs holds the
// per-node coefficients, of which blk's dst are the rows from dstStart on; it is r itself
// but for evaluation blocks. Integers that the file holds coded are decoded into mem. Cost: O(sections), and O(edges) to
// decode; nothing allocated once mem has grown.
func blockOf(r *format.Record, layer uint16, kind format.Coef, coefs *format.Record, blk *backend.Block, coef *backend.Coef, mem *codedBlock) error {
	if err := structureOf(r, layer, kind, blk, mem); err != nil {
		return err
	}
	*coef = backend.Coef{}
	if kind == format.CoefNone {
		return nil
	}
	numDst, numSrc := r.BlockDims(layer)
	lo, hi := r.DstStart, r.DstStart+numDst
	var err error
	cut := func(v []float32, lo, hi uint64) []float32 {
		if v != nil && uint64(len(v)) < hi {
			err = fmt.Errorf("%s: %w: %d coefficients for %d rows", r.Place(), format.ErrLayout, len(v), hi)
			return nil
		}
		if v == nil {
			return nil
		}
		return v[lo:hi:hi]
	}
	*coef = backend.Coef{
		Src:        cut(coefs.Float32s(format.CoefSrc, layer, kind), 0, numSrc),
		Dst:        cut(coefs.Float32s(format.CoefDst, layer, kind), lo, hi),
		Self:       cut(coefs.Float32s(format.CoefSelf, layer, kind), lo, hi),
		Edge:       cut(r.Float32s(format.CoefEdge, layer, kind), 0, uint64(len(blk.Indices))),
		Importance: cut(r.Float32s(format.CoefImportance, layer, format.CoefNone), 0, numDst),
	}
	return err
}

// structureOf is blockOf without the coefficients.
func structureOf(r *format.Record, layer uint16, kind format.Coef, blk *backend.Block, mem *codedBlock) (err error) {
	numDst, numSrc := r.BlockDims(layer)
	*blk = backend.Block{NumDst: int(numDst), NumSrc: int(numSrc), DstStart: int(r.DstStart)}
	int64s := func(buf *[]int64, section format.Kind) (v []int64) {
		if err == nil {
			v, err = r.Int64sIn(buf, section, layer)
		}
		return v
	}
	int32s := func(buf *[]int32, section format.Kind) (v []int32) {
		if err == nil {
			v, err = r.Int32sIn(buf, section, layer)
		}
		return v
	}
	blk.Indptr, blk.Indices = int64s(&mem.indptr, format.BlockIndptr), int32s(&mem.indices, format.BlockIndices)
	blk.TIndptr, blk.TIndices = int64s(&mem.tIndptr, format.TransposeIndptr), int32s(&mem.tIndices, format.TransposeIndices)
	if kind != format.CoefNone && r.Find(format.CoefEdge, layer, kind) != nil { // else nothing asks which edge is which
		blk.TEdge = int64s(&mem.tEdge, format.TransposeEdge)
	}
	switch some := blk.TIndptr != nil; {
	case err != nil:
		return err
	case blk.Indptr == nil || blk.Indices == nil:
		return fmt.Errorf("%s: %w: layer %d has no block", r.Place(), format.ErrLayout, layer)
	case some != (blk.TIndices != nil) || some != (r.Find(format.TransposeEdge, layer, format.CoefNone) != nil):
		return fmt.Errorf("%s: %w: layer %d has part of a transpose", r.Place(), format.ErrLayout, layer)
	}
	return nil
}
