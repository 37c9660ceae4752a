package feed

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/rows"
	"github.com/prelift/prelift/trainer/internal/backend"
)

// DefaultRing is the number of batches in the making or in use at a time: one that
// computes, one that is loaded.
const DefaultRing = 2

// LoaderOptions say which batches a training run takes, and what of them.
type LoaderOptions struct {
	Coef     format.Coef // the model's coefficient kind
	Layers   int         // blocks a batch: the last so many hops of a sampled one; 0 for a model without edges
	Column   int         // split column of a full set (see Set.SplitColumn)
	Seed     uint64      // of the batch order
	Ring     int         // batches in the ring; 0: DefaultRing
	Features bool        // bring the feature rows
}

// Loader brings batches in order. It holds the ring's buffers, allocated and touched
// once; Stream runs it. Not safe for concurrent use.
type Loader struct {
	set  *Set
	o    LoaderOptions
	free chan *Batch
	part []uint8 // mask of a full set: 1 for a training node

	maskTime time.Duration // what NewLoader has spent on the first use of a full set's batch
}

// NewLoader checks that the set can serve a run of these options (ErrMismatch where it
// can't) and allocates the ring.
func (s *Set) NewLoader(o LoaderOptions) (*Loader, error) {
	m := s.Manifest
	if o.Ring <= 0 {
		o.Ring = DefaultRing
	}
	if err := s.NeedLabels(); err != nil {
		return nil, err
	}
	switch {
	case !s.AnyDepth() && o.Layers > m.NumLayers:
		return nil, s.manifestFault(format.ErrMismatch, "the model has %d layers, the batches %d (--fanout of `precompute batches`)", o.Layers, m.NumLayers)
	case m.BatchesPerVariant == 0 || !s.Full() && m.NumSeeds == 0:
		return nil, s.manifestFault(format.ErrMismatch, "the set has no training seeds; are there labelled nodes in the split's train part?")
	}
	l := &Loader{set: s, o: o, free: make(chan *Batch, o.Ring)}
	if s.Full() {
		if err := l.trainMask(); err != nil {
			return nil, err
		}
	}
	gathered := 0
	switch {
	case !o.Features:
	case s.Full():
		if _, err := s.DecodedFeatures(); err != nil {
			return nil, err
		}
	case !s.rowsAreViews():
		gathered = int(m.Maxima.Nodes) * s.NumFeatures()
		if size := int64(gathered) * int64(s.rowKind().SizeBytes()); m.Params.Store == StorePacked && size > totalBytes(m.Files) {
			return nil, s.manifestFault(format.ErrLayout, "a batch of %d nodes with %d features has %d bytes of rows, the set's files %d", m.Maxima.Nodes, m.NumFeatures, size, totalBytes(m.Files))
		}
	}
	for range o.Ring {
		b := &Batch{rows: make([]float32, gathered), coded: make([]codedBlock, o.Layers), give: l.free}
		for range o.Layers {
			b.Blocks, b.Coefs = append(b.Blocks, &backend.Block{}), append(b.Coefs, &backend.Coef{})
		}
		for i := 0; i < len(b.rows); i += 1024 {
			b.rows[i] = 0 // touch each page now rather than in the first epochs
		}
		l.free <- b
	}
	return l, nil
}

// trainMask makes the mask of the loss in a full set.
func (l *Loader) trainMask() error {
	s := l.set
	start := time.Now()
	rec, first, err := s.batches[0].load(s.checkBatchFirst)
	if err != nil {
		return err
	}
	if first {
		l.maskTime = time.Since(start)
	}
	if err := s.checkBatchHead(rec, 0); err != nil {
		return err
	}
	if l.o.Column == NoSplit {
		l.part = allTrain(int(rec.NumSeeds))
	} else if l.part, err = maskColumn(rec, l.o.Column); err != nil {
		return err
	}
	count := 0
	class := rec.Int32s(format.SeedsLabel, format.AnyLayer) // nil for bits, whose elements are counted one by one
	err = format.Guard(rec.Place(), func() error {
		for i, part := range l.part {
			l.part[i] = 0
			if format.Part(part) == format.PartTrain && (class == nil || class[i] >= 0) {
				l.part[i] = 1
				count++
			}
		}
		return nil
	})
	if err == nil && count == 0 {
		err = s.manifestFault(format.ErrMismatch, "no labelled node in the train part of split column %d", l.o.Column)
	}
	return err
}

// BatchesPerEpoch returns the number of steps of an epoch.
func (l *Loader) BatchesPerEpoch() int { return int(l.set.Manifest.BatchesPerVariant) }

// Stream starts the loader's goroutine: the batches of the epochs first to last-1, each in
// its order, at most Ring ahead of Release. The goroutine ends after the last batch, after
// an error, when ctx is cancelled, and in any case in Close. One Stream of a Loader at
// a time.
func (l *Loader) Stream(ctx context.Context, first, last int) *Stream {
	ctx, cancel := context.WithCancel(ctx)
	s := &Stream{loader: l, ctx: ctx, cancel: cancel, ready: make(chan *Batch, l.o.Ring), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = s.produce(first, last)
		close(s.ready)
	}()
	return s
}

// Stream is a running loader. Next and Close are for one goroutine.
type Stream struct {
	Stall time.Duration // how long Next has waited, in all

	loader *Loader
	ctx    context.Context
	cancel context.CancelFunc
	ready  chan *Batch
	done   chan struct{}
	err    error // of produce; read after ready is closed
}

// Next returns the next batch, which the caller must Release. After the last it returns
// io.EOF; a fault of the files, or ctx's error, ends the stream for good.
func (s *Stream) Next() (*Batch, error) {
	start := time.Now()
	b, ok := <-s.ready
	s.Stall += time.Since(start)
	switch {
	case ok:
		return b, nil
	case s.err != nil:
		return nil, s.err
	}
	return nil, io.EOF
}

// Close stops the goroutine, waits for it, and takes back what it had loaded. Batches
// that the caller holds must be released as well.
func (s *Stream) Close() {
	s.cancel()
	<-s.done
	for b := range s.ready {
		b.Release()
	}
}

func (s *Stream) produce(first, last int) error {
	l := s.loader
	per, variants := l.BatchesPerEpoch(), l.set.Manifest.Params.Variants
	for epoch := first; epoch < last; epoch++ {
		base := epoch % variants * per
		for position, k := range Order(l.o.Seed, epoch, per) {
			var b *Batch
			select {
			case b = <-l.free:
			case <-s.ctx.Done():
				return s.ctx.Err()
			}
			b.Epoch, b.Position, b.Number, b.Last = epoch, position, base+int(k), position == per-1
			if err := l.fill(b); err != nil {
				b.Release()
				return err
			}
			select {
			case s.ready <- b: // never waits: there are as many places as batches
			case <-s.ctx.Done():
				b.Release()
				return s.ctx.Err()
			}
		}
	}
	return nil
}

// fill loads batch b.Number into b.
func (l *Loader) fill(b *Batch) error {
	start := time.Now()
	s := l.set
	ref := s.batches[b.Number]
	rec, first, err := ref.load(s.checkBatchFirst)
	if err != nil {
		return err
	}
	b.record, b.FirstUse = rec, first || l.maskTime > 0
	if err := s.checkBatchHead(rec, b.Number); err != nil {
		return err
	}
	if err := format.Guard(b.Place(), func() error { return l.blocks(b) }); err != nil {
		return err
	}
	b.Targets.Class = rec.Int32s(format.SeedsLabel, format.AnyLayer)
	b.Targets.Bits = rec.Uint8s(format.SeedsLabel, format.AnyLayer)
	b.Targets.Mask = l.part
	b.LoadTime, b.GatherTime, b.Features = time.Since(start)+l.maskTime, 0, nil
	l.maskTime = 0
	if !l.o.Features {
		return nil
	}
	return l.features(b)
}

// blocks fills the blocks of the last Layers hops. Layer l of the model is layer
// l + NumLayers - Layers of the batch, whose dst are the same hops from the seeds; where one block serves any depth it is that.
func (l *Loader) blocks(b *Batch) error {
	rec := b.record
	b.NumSeeds = int(rec.NumSeeds)
	b.NumNodes = b.NumSeeds
	for i := range b.Blocks {
		layer := format.AnyLayer
		if !l.set.AnyDepth() {
			layer = uint16(i + rec.NumLayers - l.o.Layers)
		}
		if err := blockOf(rec, layer, l.o.Coef, rec, b.Blocks[i], b.Coefs[i], &b.coded[i]); err != nil {
			return err
		}
	}
	if len(b.Blocks) > 0 {
		b.NumNodes = b.Blocks[0].NumSrc
	}
	return nil
}

// features brings the rows of the batch's first NumNodes nodes.
func (l *Loader) features(b *Batch) error {
	s, dim := l.set, l.set.NumFeatures()
	switch {
	case s.Full():
		var err error
		b.Features, err = s.DecodedFeatures()
		return err
	case s.rowsAreViews():
		own := b.record.Find(format.TableRows, format.AnyLayer, format.CoefNone)
		if own == nil || own.DType != format.F32 || own.Shape[1] != uint64(dim) || own.Shape[0] != b.record.NumNodes() {
			return fmt.Errorf("%s: %w: no packed f32 rows [%d, %d]", b.Place(), format.ErrLayout, b.record.NumNodes(), dim)
		}
		b.Features = b.record.Float32s(format.TableRows, format.AnyLayer, format.CoefNone)[:b.NumNodes*dim]
		return nil
	}
	start := time.Now()
	b.Features = b.rows[:b.NumNodes*dim]
	err := l.gather(b)
	b.GatherTime = time.Since(start)
	return err
}

// rowsAreViews reports whether the rows of a batch lie in its record as the compute wants them.
func (s *Set) rowsAreViews() bool {
	p := &s.Manifest.Params
	return p.Store == StorePacked && p.HotRows == 0 && p.Group == 0 && s.rowKind() == rows.F32
}

// gather brings the rows of the batch's first nodes into its buffer, as float32, from the tables that they lie in (SPEC 5.4).
func (l *Loader) gather(b *Batch) error {
	s, r := l.set, b.record
	tables, err := s.rowTables(r)
	if err != nil {
		return err
	}
	if s.Manifest.Params.Store != StorePacked && s.features == nil {
		return s.NeedFeatures("of the batches")
	}
	packed, row, which := s.Manifest.Params.Store == StorePacked, r.Int32s(format.NodesRow, format.AnyLayer), r.Uint8s(format.NodesTable, format.AnyLayer)
	if packed && row == nil && uint64(tables[format.OwnTable].NumRows()) != r.NumNodes() {
		return fmt.Errorf("%s: %w: %d packed rows for %d nodes", b.Place(), format.ErrLayout, tables[format.OwnTable].NumRows(), r.NumNodes())
	}
	return format.Guard(b.Place(), func() error {
		switch {
		case which != nil && row != nil:
			rows.GatherFrom(b.Features, tables[:], which, row[:b.NumNodes])
		case row != nil:
			tables[format.FeatureTable].Gather(b.Features, row[:b.NumNodes])
		case packed:
			tables[format.OwnTable].Decode(b.Features, 0)
		default:
			numbers, err := r.Int32sIn(&b.numbers, format.NodesNumber, format.AnyLayer)
			if err != nil {
				return err
			}
			tables[format.FeatureTable].Gather(b.Features, numbers[:b.NumNodes])
		}
		return nil
	})
}
