package batch

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot"
	"golang.org/x/sync/errgroup"
)

// SetKey returns the set key of a batch set, which is what its Job is begun with.
func SetKey(snapshotID format.Digest, p format.BatchParams) (format.Digest, error) {
	return (&format.BatchSet{SnapshotID: snapshotID, Params: p}).Key()
}

// Write builds the batch set of settled parameters (see Resolve) into job, publishes it
// and returns its id and manifest. Files that an interrupted job finished are taken
// over. What is written depends on the snapshot and the parameters alone. The job is over when
// Write returns without an error; after one the caller ends it (format.Job.Abort).
func Write(ctx context.Context, job *format.Job, snap *snapshot.Snapshot, p format.BatchParams, opt Options) (format.Digest, *format.BatchSet, error) {
	w, err := newWriter(job, snap, p, opt)
	if err != nil {
		return format.Digest{}, nil, err
	}
	if err := w.write(ctx); err != nil {
		return format.Digest{}, nil, err
	}
	m := w.source.manifest(w.setKey)
	if err := addFiles(m, w.files, job.Path); err != nil {
		return format.Digest{}, nil, err
	}
	id, err := job.Publish(m, checkOpens)
	return id, m, err
}

func newWriter(job *format.Job, snap *snapshot.Snapshot, p format.BatchParams, opt Options) (*writer, error) {
	w := &writer{job: job, opt: opt, part: wholeSet}
	err := format.Guard(snap.Dir, func() (err error) {
		w.source, err = sourceOf(snap, p, opt.Plan)
		return err
	})
	if err != nil {
		return nil, err
	}
	w.setKey, err = SetKey(snap.ID, w.source.params)
	return w, err
}

// write writes the files of the part.
func (w *writer) write(ctx context.Context) error {
	err := format.Guard(w.source.snap.Dir, func() error { return w.source.listPPR(ctx, &w.opt) })
	if err != nil {
		return err
	}
	if err := w.writeShards(ctx); err != nil {
		return err
	}
	return w.linkFiles(ctx)
}

// checkOpens is what a reader does first with a set.
func checkOpens(dir string) error {
	_, m, err := format.ReadBatchSet(dir)
	if err != nil {
		return err
	}
	_, err = format.CheckFiles(dir, m.Files)
	return err
}

type writer struct {
	job    *format.Job
	opt    Options
	source *source
	setKey format.Digest
	part   Part // whose files are written

	done     atomic.Int64 // records written
	progress sync.Mutex
	mu       sync.Mutex
	files    []format.FileInfo // finished
}

// shard is one file to be written: records first..last-1 of the sequence that build makes.
type shard struct {
	name        string
	kind        format.FileKind
	number      int
	first, last int
	build       func(a *assembler, number int) *record
}

// shards lists every file but the linked ones. Which batch is in which file follows from
// its number alone.
func (s *source) shards() []shard {
	list := cutShards(s.numBatches(), s.params.BatchesPerFile, format.FileBatches, format.BatchFile, (*assembler).training)
	if s.numEvalBlocks() > 0 {
		list = append(list, cutShards(s.numEvalBlocks(), s.params.BatchesPerFile, format.FileEval, format.EvalFile, (*assembler).eval)...)
		list = append(list, shard{format.SetCoefsFile, format.FileCoefs, 0, 0, 1, func(a *assembler, _ int) *record { return a.coefTable() }})
	}
	if n := numGroups(&s.params, s.numBatches()); n > 0 {
		list = append(list, cutShards(n, groupsPerFile(&s.params), format.FileRows, format.RowsFile, (*assembler).groupRecord)...)
	}
	if s.params.HotRows > 0 {
		list = append(list, shard{format.SetHotFile, format.FileRows, 0, 0, 1, func(a *assembler, _ int) *record { return a.hotRecord() }})
	}
	if s.hasOwnTable() {
		list = append(list, shard{format.SetFeaturesFile, format.FileFeatures, 0, 0, 1, func(a *assembler, _ int) *record { return a.tableRecord() }})
	}
	return list
}

func cutShards(numRecords, perFile int, kind format.FileKind, name func(shard int) string, build func(a *assembler, number int) *record) []shard {
	list := []shard{}
	for first := 0; first < numRecords; first += perFile {
		n := len(list)
		list = append(list, shard{name(n), kind, n, first, min(first+perFile, numRecords), build})
	}
	return list
}

// writeShards writes the files, several at a time: each worker takes the next one. The
// workers end with the list, with the first error, or with ctx.
func (w *writer) writeShards(ctx context.Context) error {
	if err := w.source.findHot(ctx, w.opt.threads(), w.opt.Progress); err != nil {
		return err
	}
	shards, total := w.part.of(w.source.shards()), int64(0)
	for _, s := range shards {
		total += int64(s.last - s.first)
	}
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(w.opt.threads(), len(shards)) {
		group.Go(func() error {
			return format.Guard(w.source.snap.Dir, func() error {
				a := newAssembler(w.source)
				defer a.release()
				for i := next.Add(1) - 1; i < int64(len(shards)); i = next.Add(1) - 1 {
					if err := w.writeShard(ctx, a, shards[i], total); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	return group.Wait()
}

func (w *writer) writeShard(ctx context.Context, a *assembler, s shard, total int64) error {
	if info, ok := w.job.Done(s.name); ok {
		w.finish(info, int64(s.last-s.first), total)
		return ctx.Err()
	}
	out, err := format.Create(w.job.Path(s.name), format.Header{Kind: s.kind, SnapshotID: w.source.snap.ID, SetKey: w.setKey, Shard: uint32(s.number)}, s.last-s.first)
	if err != nil {
		return err
	}
	defer out.Abort() // nothing after Seal
	if err := w.addRecords(ctx, a, s, out, total); err != nil {
		return err
	}
	info, err := out.Seal()
	if err != nil {
		return err
	}
	if err := w.job.Enter(info); err != nil {
		return err
	}
	w.finish(info, 0, total)
	return nil
}

// finish notes a finished file; numRecords are those not yet reported.
func (w *writer) finish(info format.FileInfo, numRecords, total int64) {
	w.mu.Lock()
	w.files = append(w.files, info)
	w.mu.Unlock()
	if numRecords > 0 {
		w.report(numRecords, total)
	}
}

func (w *writer) report(numRecords, total int64) {
	if w.opt.Progress == nil {
		w.done.Add(numRecords)
		return
	}
	w.progress.Lock()
	defer w.progress.Unlock()
	w.opt.Progress("write batches", w.done.Add(numRecords), total)
}

// linkFiles puts the snapshot's tables into the set and checks that they are what the
// snapshot's manifest says.
func (w *writer) linkFiles(ctx context.Context) error {
	if !w.part.linksFiles() {
		return nil
	}
	mode := Auto
	if w.opt.CopyFiles {
		mode = LinkCopy
	}
	for _, want := range linkedFiles(w.source.snap, &w.source.params) {
		if err := ctx.Err(); err != nil {
			return err
		}
		info, ok := w.job.Done(want.Name)
		if !ok {
			if err := format.LinkOrCopy(w.source.snap.Path(want.Name), w.job.Path(want.Name), mode); err != nil {
				return err
			}
			var err error
			if info, err = w.job.Finish(want.Name); err != nil {
				return err
			}
		}
		if info != want {
			return fmt.Errorf("%s: %w: %d bytes of SHA-256 %s, the snapshot's manifest says %d of %s; build the snapshot again", filepath.Base(want.Name),
				format.ErrChecksum, info.SizeBytes, info.SHA256.Hex()[:16], want.SizeBytes, want.SHA256.Hex()[:16])
		}
		w.files = append(w.files, info)
	}
	return nil
}

// manifest returns the manifest of the set as far as it is known before anything is written: without files and what is counted in
// them (addFiles).
func (s *source) manifest(setKey format.Digest) *format.BatchSet {
	sm := &s.snap.Manifest
	m := &format.BatchSet{
		Kind: format.KindBatchSet, FormatVersion: format.Version,
		SnapshotID: s.snap.ID, SnapshotKey: sm.SetKey, SetKey: setKey, Params: s.params,
		NumNodes: sm.NumNodes, NumFeatures: sm.NumFeatures, LabelTask: string(sm.Task), NumClasses: sm.NumClasses,
		Splits: sm.Splits, Directed: sm.Params.Direction == snapshot.Directed, Weighted: sm.Weighted,
		NumLayers: len(s.params.Fanout), NumBatches: format.Int(s.numBatches()), BatchesPerVariant: format.Int(s.batchesPerVariant()),
		NumSeeds: format.Int(s.numSeeds()), NumEvalBlocks: format.Int(s.numEvalBlocks()), FeatureTableBytes: format.Int(featureTableBytes(s.snap)),
	}
	for _, f := range sm.Files {
		if f.Name == snapshot.FeaturesFile {
			m.Features = &f
		}
	}
	m.RowError = s.table.error
	return m
}

// addFiles lists all files of the set in its manifest, with what they hold. Totals come from the heads of the shards as they
// are on disk, so that those taken over count like the others. path is where a file is.
func addFiles(m *format.BatchSet, files []format.FileInfo, path func(name string) string) error {
	m.Files = slices.SortedFunc(slices.Values(files), func(a, b format.FileInfo) int { return cmp.Compare(a.Name, b.Name) })
	t, err := totalsOf(m, path)
	if err != nil {
		return err
	}
	t.enter(m)
	return nil
}

// totalsOf adds up the heads of the shards among the manifest's files.
func totalsOf(m *format.BatchSet, path func(name string) string) (*totals, error) {
	t := newTotals(m.NumLayers)
	for _, f := range m.Files {
		if groupOf(f.Name) == GroupLinked {
			continue
		}
		if err := t.addFile(path(f.Name), m.SetKey); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// totals adds up the heads of shards.
type totals struct {
	numRows, numEdges, bytes int64
	maxima                   format.BatchMaxima
	numEvalBlocks            int64
	maxEvalEdges, evalBytes  int64
	numSeeds                 int64 // of all batches
	numHot, numGroupRows     int64
}

func newTotals(numLayers int) *totals {
	return &totals{maxima: format.BatchMaxima{LayerEdges: make([]format.Int, max(numLayers, 1))}}
}

// addFile adds a file of training batches, evaluation blocks or coefficients, which must be of that set.
func (t *totals) addFile(path string, setKey format.Digest) error {
	f, err := format.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Header.SetKey != setKey {
		return faultf(format.ErrMismatch, f.Name(), "set key is %s, the set's is %s", format.Digest(f.Header.SetKey).Hex()[:16], setKey.Hex()[:16])
	}
	return t.add(f)
}

func (t *totals) add(f *format.File) error {
	switch f.Header.Kind {
	case format.FileBatches, format.FileRows:
		t.bytes += f.SizeBytes()
	case format.FileEval, format.FileCoefs:
		t.evalBytes += f.SizeBytes()
	}
	for i := range f.Records {
		r, err := f.Record(i)
		if err != nil {
			return err
		}
		switch f.Header.Kind {
		case format.FileBatches:
			t.addBatch(r)
		case format.FileRows:
			if f.Name() == format.SetHotFile {
				t.numHot += int64(r.NumNodes())
			} else {
				t.numGroupRows += int64(r.NumNodes())
			}
		case format.FileEval:
			t.numEvalBlocks++
			t.maxEvalEdges = max(t.maxEvalEdges, blockEdges(r, format.AnyLayer))
		}
	}
	return nil
}

func (t *totals) addBatch(r *format.Record) {
	m := &t.maxima
	t.numRows += int64(r.NumNodes())
	t.numSeeds += int64(r.NumSeeds)
	m.Nodes = max(m.Nodes, format.Int(r.NumNodes()))
	m.Seeds = max(m.Seeds, format.Int(r.NumSeeds))
	m.RecordBytes = max(m.RecordBytes, format.Int(r.SizeBytes()))
	for l := range m.LayerEdges {
		layer := uint16(l)
		if r.NumLayers == 0 {
			layer = format.AnyLayer
		}
		n := blockEdges(r, layer)
		t.numEdges += n
		m.LayerEdges[l] = max(m.LayerEdges[l], format.Int(n))
	}
}

func blockEdges(r *format.Record, layer uint16) int64 {
	if s := r.Find(format.BlockIndices, layer, format.CoefNone); s != nil {
		return int64(s.NumElements())
	}
	return 0
}

// enter puts the totals into a manifest that has its parameters.
func (t *totals) enter(m *format.BatchSet) {
	m.NumRows, m.NumSampledEdges, m.Maxima = format.Int(t.numRows), format.Int(t.numEdges), t.maxima
	m.NumEvalBlocks, m.MaxEvalEdges = format.Int(t.numEvalBlocks), format.Int(t.maxEvalEdges)
	m.NumHotRows, m.NumGroupRows = format.Int(t.numHot), format.Int(t.numGroupRows)
	m.Bytes, m.EvalBytes = format.Int(t.bytes), format.Int(t.evalBytes)
	perVariant, _ := perVariant(t.bytes, m.Params.Variants, int64(m.FeatureTableBytes))
	m.BytesPerVariant = format.Int(perVariant)
}
