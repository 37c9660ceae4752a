package batch

import (
	"sync"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
	"github.com/prelift/prelift/snapshot"
	"github.com/prelift/prelift/snapshot/graph"
)

// Bounds of an evaluation block: it ends before the row that would bring it over
// either, so only a row that is over by itself makes a larger one.
const (
	maxEvalRows  = 1 << 16
	maxEvalEdges = 1 << 20
)

// source is what all workers cut batches from: the snapshot, the settled parameters and
// what follows from them. Read-only and safe for concurrent use.
type source struct {
	snap   *snapshot.Snapshot
	params format.BatchParams
	norms  []coefNorm
	memo   *sample.Memo // nil but in modes fanout and labor
	table  *rowTable

	hotMu sync.Mutex
	hot   *nodeSet // the nodes of hot.plf; nil without hot rows, and until findHot

	order    sample.Order // of the seeds; zero in mode full
	variants []variantOrder
	cutting

	evalStarts []int32 // first row of each evaluation block, then NumNodes

	fullOnce sync.Once
	full     record
}

// coefNorm is one kind of coefficients that the set stores.
type coefNorm struct {
	coef format.Coef
	graph.Norm
}

// variantOrder is the seeds of one variant in their order, in mode cluster its clusters, made when first needed.
type variantOrder struct {
	once  sync.Once
	order []int32
}

// record is one record to be written, or measured.
type record struct {
	header   format.RecordHeader
	sections []format.SectionSpec
	numPlain int   // of a packed batch: sections before those of its feature rows
	err      error // why it can't be written; nil where it can
}

func (r *record) sizeBytes() (int64, error) {
	if r.err != nil {
		return 0, r.err
	}
	return format.RecordSizeBytes(&r.header, r.sections)
}

// newSource prepares what p says; p.Order may still be auto (see settleOrder).
func newSource(snap *snapshot.Snapshot, p format.BatchParams) (*source, error) {
	s := &source{snap: snap, params: p}
	kinds, err := coefKinds(&p)
	if err != nil {
		return nil, err
	}
	for _, coef := range kinds {
		norm, err := snap.Norm(coef)
		if err != nil {
			return nil, err
		}
		s.norms = append(s.norms, coefNorm{coef, norm})
	}
	if s.table, err = newRowTable(snap, p.DType); err != nil {
		return nil, err
	}
	if p.Mode == ModeFull {
		return s, nil
	}
	if p.Eval == EvalLayerwise {
		s.evalStarts = evalStarts(snap.In.Indptr)
	}
	seeds, err := trainSeeds(snap, p.Split)
	if err != nil {
		return nil, err
	}
	if isLayered(p.Mode) {
		s.memo = sample.NewMemo(&snap.In, s.samplerOptions())
	}
	s.order = sample.Order{Seeds: seeds, Keys: snap.Keys, BatchSize: p.BatchSize, Seed: int64(p.Seed)}
	if snap.Class != nil || snap.Bits != nil {
		s.order.Labels = sample.Labels{Class: snap.Class, Bits: snap.Bits, NumClasses: int(snap.Manifest.NumClasses)}
	}
	if p.Order != sample.Random {
		s.order.Place = graph.Inverse(localityOrder(snap))
	}
	s.variants = make([]variantOrder, p.Variants)
	return s, s.prepareMode()
}

// sibling prepares settings of mode fanout that differ in fanout, batch size or number of variants only. What both need alike, seeds
// in their settled order and all that comes of the snapshot, is shared.
func (s *source) sibling(p format.BatchParams) *source {
	t := &source{snap: s.snap, params: p, norms: s.norms, table: s.table, order: s.order, evalStarts: s.evalStarts}
	t.params.Order, t.order.BatchSize = s.params.Order, p.BatchSize
	t.memo = sample.NewMemo(&s.snap.In, t.samplerOptions())
	t.variants = make([]variantOrder, p.Variants)
	return t
}

// localityOrder is the snapshot's own, else breadth-first order. Which it is follows from the snapshot, so
// its id covers it.
func localityOrder(snap *snapshot.Snapshot) []int32 {
	if snap.Order != nil {
		return snap.Order
	}
	return graph.BFSOrder(&snap.In, snap.Out, snap.Component, len(snap.ComponentSizes))
}

// settleOrder decides order auto, by measuring both.
func (s *source) settleOrder() {
	if s.params.Mode == ModeFull || s.params.Order != Auto {
		return
	}
	a := newAssembler(s)
	defer a.release()
	s.params.Order = sample.PickOrder(&s.order, a.counter())
	if s.params.Order == sample.Random {
		s.order.Place = nil
	}
}

func (s *source) samplerOptions() sample.Options {
	return sample.Options{Fanout: s.params.Fanout, Method: method(&s.params), HubCap: s.params.HubCap, Seed: int64(s.params.Seed), KeepEntries: s.hasEdgeCoefs()}
}

func (s *source) newSampler() *sample.Sampler {
	return sample.NewSampler(&s.snap.In, s.snap.Keys, s.samplerOptions(), s.memo)
}

// hasEdgeCoefs reports whether a kind keeps a number for each edge.
func (s *source) hasEdgeCoefs() bool {
	for i := range s.norms {
		if s.norms[i].Edge != nil {
			return true
		}
	}
	return false
}

func (s *source) batchesPerVariant() int {
	switch {
	case s.params.Mode == ModeFull:
		return 1
	case s.clusters != nil:
		return s.clusters.NumBatches()
	}
	return s.order.NumBatches()
}

func (s *source) numBatches() int { return s.batchesPerVariant() * s.params.Variants }

// numSeeds is that of one variant, repeats counted.
func (s *source) numSeeds() int {
	switch {
	case s.params.Mode == ModeFull:
		return s.snap.NumNodes()
	case s.strata != nil:
		return s.batchesPerVariant() * s.numSeedsOf(0)
	}
	return len(s.order.Seeds)
}

// numSeedsOf is that of one batch, in other modes than cluster.
func (s *source) numSeedsOf(number int) int {
	if s.params.Mode == ModeFull {
		return s.numSeeds()
	}
	if s.strata != nil {
		return min(s.params.BatchSize, len(s.order.Seeds))
	}
	start := number % s.batchesPerVariant() * s.params.BatchSize
	return min(s.params.BatchSize, s.numSeeds()-start)
}

func (s *source) numEvalBlocks() int { return max(len(s.evalStarts)-1, 0) }

// variantOrder returns the seeds of a variant in their order; in mode cluster its clusters.
func (s *source) variantOrder(variant int) []int32 {
	v := &s.variants[variant]
	v.once.Do(func() {
		if s.clusters != nil {
			v.order = s.clusters.Variant(variant)
		} else {
			v.order = s.order.Variant(variant)
		}
	})
	return v.order
}

// evalStarts cuts the rows into evaluation blocks.
func evalStarts(indptr []int64) []int32 {
	starts, numRows := []int32{0}, len(indptr)-1
	for v := range numRows {
		first := int(starts[len(starts)-1])
		if v > first && (v-first == maxEvalRows || indptr[v+1]-indptr[first] > maxEvalEdges) {
			starts = append(starts, int32(v))
		}
	}
	return append(starts, int32(numRows))
}
