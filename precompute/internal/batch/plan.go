package batch

import (
	"context"
	"math"
	"slices"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
	"github.com/prelift/prelift/snapshot"
)

// Options steer Resolve and Write without shaping what Write writes, but for
// MaxAmplification, by which Resolve settles the store.
type Options struct {
	Threads  int                                  // 0: all cores
	Progress func(step string, done, total int64) // may be nil; called by one goroutine at a time

	// MaxAmplification bounds BytesPerVariant over FeatureTableBytes; 0 for no bound.
	// Resolve refuses what is over it, and lets store auto pack rows only within it.
	MaxAmplification float64

	PackBytes int64 // most memory for packed batches that wait for their rows; 0: a GiB
	rowByRow  bool  // of tests and benchmarks: pack each row by itself

	CopyFiles bool  // copy the snapshot's tables where they could be linked
	Plan      *Plan // of Resolve for the same snapshot and parameters; saves Write some work
}

// Plan says what Write will write. Sizes are exact where every batch was measured, else
// from a sample of them, evenly spread.
type Plan struct {
	NumBatches        int // of all variants
	BatchesPerVariant int
	NumSeeds          int   // of one variant
	NumRows           int64 // nodes of all batches
	NumSampledEdges   int64
	Exact             bool

	Bytes             int64 // of training shards and shared rows
	BytesPerVariant   int64
	EvalBytes         int64
	LinkedBytes       int64 // tables of the snapshot, linked or copied in, and the set's own feature table
	FeatureTableBytes int64
	Amplification     float64 // BytesPerVariant over FeatureTableBytes; 0 without features

	source *source
	spread float64 // standard deviation of a measured batch's size over the mean
}

// Resolve checks the parameters that were asked for and returns them with all that was
// left open settled, and the plan. Errors are *ParamError where the request is at fault.
func Resolve(ctx context.Context, snap *snapshot.Snapshot, p format.BatchParams, opt Options) (format.BatchParams, *Plan, error) {
	var plan *Plan
	err := format.Guard(snap.Dir, func() (err error) {
		p, plan, err = resolve(ctx, snap, p, opt)
		return err
	})
	return p, plan, err
}

func resolve(ctx context.Context, snap *snapshot.Snapshot, p format.BatchParams, opt Options) (format.BatchParams, *Plan, error) {
	s, err := prepare(ctx, snap, p, &opt)
	if err != nil {
		return p, nil, err
	}
	plan, err := s.plan(ctx, opt, sizesOfAll)
	if err != nil {
		return s.params, plan, err
	}
	plan.EvalBytes, err = s.evalBytes(ctx)
	return s.params, plan, err
}

// prepare checks the parameters and settles all but the store.
func prepare(ctx context.Context, snap *snapshot.Snapshot, p format.BatchParams, opt *Options) (*source, error) {
	if n := snap.Manifest.NumRels; n > 1 {
		return nil, paramErrorf("the snapshot has %d relations, which batches don't have yet; snapshot --relations merge makes a graph of one", n)
	}
	p, err := checkParams(snap, p)
	if err != nil {
		return nil, err
	}
	s, err := newSource(snap, p)
	if err != nil {
		return nil, err
	}
	if n := float64(s.batchesPerVariant()) * float64(p.Variants); n > math.MaxInt32 {
		return nil, paramErrorf("%.0f batches: at most %d; use a larger --batch-size or fewer --variants", n, math.MaxInt32)
	}
	if err := s.listPPR(ctx, opt); err != nil {
		return nil, err
	}
	s.settleOrder()
	return s, nil
}

// plan predicts all but EvalBytes from measured batches, and settles the store. The plan comes with the error where
// it is over opt.MaxAmplification.
func (s *source) plan(ctx context.Context, opt Options, want accuracy) (*Plan, error) {
	snap := s.snap
	if err := s.findHot(ctx, opt.threads(), opt.Progress); err != nil {
		return nil, err
	}
	sizes, err := s.measure(ctx, opt.Progress, want)
	if err != nil {
		return nil, err
	}
	tableBytes, err := s.ownTableBytes()
	if err != nil {
		return nil, err
	}
	plan := &Plan{
		NumBatches: s.numBatches(), BatchesPerVariant: s.batchesPerVariant(), NumSeeds: s.numSeeds(), Exact: sizes.exact,
		NumRows: sizes.total(sizes.rows), NumSampledEdges: sizes.total(sizes.edges),
		FeatureTableBytes: featureTableBytes(snap), LinkedBytes: linkedBytes(snap, &s.params) + tableBytes, source: s, spread: sizes.spread(),
	}
	if s.params.Store == Auto {
		s.params.Store = StorePacked
		limit := opt.MaxAmplification
		if limit == 0 {
			limit = defaultAmplification
		}
		if plan.setBytes(sizes.packed, sizes, sizes.shared); plan.Amplification > limit {
			s.params.Store, s.params.HotRows, s.params.Group, s.hot = StoreIDs, 0, 0, nil
		}
	}
	plan.setBytes(sizes.ids, sizes, 0)
	if s.params.Store == StorePacked {
		plan.setBytes(sizes.packed, sizes, sizes.shared)
	}
	if opt.MaxAmplification > 0 && plan.Amplification > opt.MaxAmplification {
		return plan, paramErrorf("a variant of batches would take %.2f times the feature table (%d of %d bytes), over --max-amplification %g; use --store ids, --dtype f16%s",
			plan.Amplification, plan.BytesPerVariant, plan.FeatureTableBytes, opt.MaxAmplification, smaller(&s.params))
	}
	return plan, nil
}

func (p *Plan) setBytes(measured []int64, of *batchSizes, shared int64) {
	p.Bytes = p.source.shardBytes(measured, of) + shared
	p.BytesPerVariant, p.Amplification = perVariant(p.Bytes, p.source.params.Variants, p.FeatureTableBytes)
}

// perVariant returns bytes per variant, rounded down, and the amplification, 0 without a
// feature table.
func perVariant(bytes int64, variants int, tableBytes int64) (perVariant int64, amplification float64) {
	perVariant = bytes / int64(variants)
	if tableBytes > 0 {
		amplification = float64(perVariant) / float64(tableBytes)
	}
	return perVariant, amplification
}

func featureTableBytes(snap *snapshot.Snapshot) int64 {
	return int64(snap.NumNodes()) * int64(snap.NumFeatures()) * 4
}

// batchSizes is what measured batches come to. Slices are over the batches measured.
type batchSizes struct {
	numBatches  int   // of the set
	weight      int64 // of the set: source.totalWeight
	exact       bool
	weights     []int64 // source.weightOf
	fixed       int64   // bytes of a record that don't go by its weight: the head, and padding of half an alignment a section
	ids, packed []int64 // record bytes in either store; packed is nil without features
	rows, edges []int64

	groups map[int]int64 // record bytes of the rows of groups, of those measured
	shared int64         // bytes of all files of shared rows, in a packed set
}

// total scales a sum over the measured batches up to all, by their weight.
func (b *batchSizes) total(measured []int64) int64 {
	if b.exact {
		return sum(measured)
	}
	return int64(float64(sum(measured)) / float64(sum(b.weights)) * float64(b.weight))
}

func sum(x []int64) (total int64) {
	for _, n := range x {
		total += n
	}
	return total
}

// accuracy says how many batches to measure: at least fewest, and so many that the standard error of the mean size is
// within relError.
type accuracy struct {
	fewest   int
	relError float64
}

// sizesOfAll is for sizes that are announced: they are to be within 5 %, and 1 % standard error of the mean is five of
// them, with room for what evenly spread batches have in common.
var sizesOfAll = accuracy{32, 0.01}

// measure builds a sample of the training batches, evenly spread, and notes what they
// need: the fewest, twice as many while their mean is uncertain, all where that is about as good.
func (s *source) measure(ctx context.Context, progress func(string, int64, int64), wanted accuracy) (*batchSizes, error) {
	b := &batchSizes{numBatches: s.numBatches(), weight: s.totalWeight()}
	a := newAssembler(s)
	defer a.release()
	for want := wanted.fewest; ; want *= 2 {
		if want*2 > b.numBatches {
			want, b.exact = b.numBatches, true
		}
		b.weights, b.ids, b.packed, b.rows, b.edges, b.groups = nil, nil, nil, nil, nil, map[int]int64{}
		for i := range want {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := b.add(a, int(int64(i)*int64(b.numBatches)/int64(want))); err != nil {
				return nil, err
			}
			if progress != nil {
				progress("measure batches", int64(i+1), int64(want))
			}
		}
		if b.exact || relativeError(b.ids) <= wanted.relError && relativeError(b.packed) <= wanted.relError {
			var err error
			b.shared, err = s.sharedBytes(b.groups)
			return b, err
		}
	}
}

// spread is that of the sizes in the store where it is larger.
func (b *batchSizes) spread() float64 {
	return max(relativeError(b.ids), relativeError(b.packed)) * math.Sqrt(float64(len(b.ids)))
}

// numMeasured is how many batches measure builds where sizes have this spread, in all its rounds.
func (a accuracy) numMeasured(numBatches int, spread float64) (total int) {
	for want := a.fewest; ; want *= 2 {
		if want*2 > numBatches {
			return total + numBatches
		}
		if total += want; spread/math.Sqrt(float64(want)) <= a.relError {
			return total
		}
	}
}

func (b *batchSizes) add(a *assembler, number int) error {
	r := a.training(number)
	if r.err != nil {
		return r.err
	}
	ids := record{header: r.header, sections: r.sections}
	if r.header.Space == format.SpaceLocal && a.snap.NumFeatures() > 0 {
		packed := ids
		if a.params.Store == StorePacked {
			ids.sections = r.sections[:r.numPlain]
		} else {
			rows, _ := a.packedRows(a.nodes)
			packed.sections = append(slices.Clip(ids.sections), rows...)
		}
		size, err := packed.sizeBytes()
		if err != nil {
			return err
		}
		b.packed = append(b.packed, size)
		if a.params.Group > 1 {
			if b.groups[a.group], err = a.sharedBytes(len(a.shared.nodes)); err != nil {
				return err
			}
		}
	}
	size, err := ids.sizeBytes()
	b.weights = append(b.weights, a.weightOf(number))
	b.fixed = int64(format.RecordHeaderSize + 8*len(r.header.HopNodes) + 8*len(r.header.LayerEdges) + (format.SectionEntrySize+format.SectionAlign/2)*len(r.sections))
	b.ids = append(b.ids, size)
	b.rows = append(b.rows, int64(r.header.HopNodes[len(r.header.HopNodes)-1]))
	b.edges = append(b.edges, numEdges(r.sections))
	return err
}

// numEdges counts the edges of all blocks of a record.
func numEdges(sections []format.SectionSpec) (n int64) {
	for i := range sections {
		if sections[i].Kind == format.BlockIndices {
			n += int64(sections[i].Shape[0])
		}
	}
	return n
}

// relativeError is the standard error of the mean over the mean.
func relativeError(x []int64) float64 {
	if len(x) < 2 {
		return 0
	}
	mean := 0.0
	for _, v := range x {
		mean += float64(v) / float64(len(x))
	}
	variance := 0.0
	for _, v := range x {
		variance += (float64(v) - mean) * (float64(v) - mean) / float64(len(x)-1)
	}
	return math.Sqrt(variance/float64(len(x))) / mean
}

// shardBytes returns the size of all training shards whose records have the measured
// sizes: those of every batch, or of some, which then stand for their neighbours by their weights (the last batch of a
// variant may have fewer seeds).
func (s *source) shardBytes(measured []int64, of *batchSizes) (total int64) {
	n := s.numBatches()
	sizes := make([]int64, 0, s.params.BatchesPerFile)
	for number := range n {
		at := int64(number) * int64(len(measured)) / int64(n)
		size := measured[at]
		if want, fixed := s.weightOf(number), min(of.fixed, size); want != of.weights[at] {
			size = fixed + int64(float64(size-fixed)/float64(of.weights[at])*float64(want))
		}
		sizes = append(sizes, size)
		if len(sizes) == s.params.BatchesPerFile || number == n-1 {
			total += format.FileSizeBytes(sizes)
			sizes = sizes[:0]
		}
	}
	return total
}

// sharedBytes is the size of a record of so many rows that batches share.
func (a *assembler) sharedBytes(numRows int) (int64, error) {
	header := format.RecordHeader{Space: format.SpaceLocal, HopNodes: []uint64{uint64(numRows)}, LayerEdges: []uint64{}}
	number := format.SectionSpec{Kind: format.NodesNumber, Layer: format.AnyLayer, DType: format.I32, Shape: []uint64{uint64(numRows)}}
	return (&record{header: header, sections: append([]format.SectionSpec{number}, a.table.sections(numRows, nil)...)}).sizeBytes()
}

// sharedBytes returns the size of all files of shared rows: of hot.plf exactly, and of those of groups by the records of the groups that were
// measured, which stand for the others.
func (s *source) sharedBytes(measured map[int]int64) (total int64, err error) {
	a := newAssembler(s)
	if s.hot != nil {
		size, err := a.sharedBytes(len(s.hot.nodes))
		if err != nil {
			return 0, err
		}
		total = format.FileSizeBytes([]int64{size})
	}
	mean := int64(0)
	for _, size := range measured {
		mean += size
	}
	mean /= int64(max(len(measured), 1))
	var sizes []int64
	for group := range numGroups(&s.params, s.numBatches()) {
		size, ok := measured[group]
		if !ok {
			size = mean
		}
		if sizes = append(sizes, size); len(sizes) == groupsPerFile(&s.params) {
			total += format.FileSizeBytes(sizes)
			sizes = sizes[:0]
		}
	}
	if len(sizes) > 0 {
		total += format.FileSizeBytes(sizes)
	}
	return total, nil
}

// ownTableBytes returns the size of the set's own feature table, 0 where it has none.
func (s *source) ownTableBytes() (int64, error) {
	if !s.hasOwnTable() {
		return 0, nil
	}
	size, err := newAssembler(s).tableRecord().sizeBytes()
	return format.FileSizeBytes([]int64{size}), err
}

// evalBytes returns the exact size of the evaluation files.
func (s *source) evalBytes(ctx context.Context) (total int64, err error) {
	if s.numEvalBlocks() == 0 {
		return 0, nil
	}
	a := newAssembler(s)
	size, err := a.coefTable().sizeBytes()
	if err != nil {
		return 0, err
	}
	total = format.FileSizeBytes([]int64{size})
	var sizes []int64
	for i := range s.numEvalBlocks() {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if size, err = a.eval(i).sizeBytes(); err != nil {
			return 0, err
		}
		sizes = append(sizes, size)
		if len(sizes) == s.params.BatchesPerFile || i == s.numEvalBlocks()-1 {
			total += format.FileSizeBytes(sizes)
			sizes = sizes[:0]
		}
	}
	return total, nil
}

// linkedFiles lists the snapshot's files that belong into the set, as they are named
// there and here (the names are the same).
func linkedFiles(snap *snapshot.Snapshot, p *format.BatchParams) []format.FileInfo {
	linked := []format.FileInfo{}
	for _, f := range snap.Manifest.Files {
		switch f.Name {
		case format.SetIDsFile, format.SetLabelsFile, format.SetSplitsFile:
			linked = append(linked, f)
		case format.SetFeaturesFile:
			if p.LinkFeatures != None && p.DType == "f32" {
				linked = append(linked, f)
			}
		}
	}
	return linked
}

func linkedBytes(snap *snapshot.Snapshot, p *format.BatchParams) (total int64) {
	for _, f := range linkedFiles(snap, p) {
		total += int64(f.SizeBytes)
	}
	return total
}

// sourceOf returns the plan's source where it fits, else a new one.
func sourceOf(snap *snapshot.Snapshot, p format.BatchParams, plan *Plan) (*source, error) {
	if plan != nil && plan.source.snap == snap && sameParams(&plan.source.params, &p) {
		return plan.source, nil
	}
	if p.Store == Auto || p.Order == Auto || p.Mode != ModeFull && p.Order != sample.Locality && p.Order != sample.Random {
		return nil, paramErrorf("store %q and order %q are not settled", p.Store, p.Order)
	}
	again, err := checkParams(snap, p)
	if err != nil {
		return nil, err
	}
	return newSource(snap, again)
}

func sameParams(a, b *format.BatchParams) bool {
	keyA, errA := format.DigestOf(a)
	keyB, errB := format.DigestOf(b)
	return errA == nil && errB == nil && keyA == keyB
}
