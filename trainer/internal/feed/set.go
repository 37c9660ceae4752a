// Package feed brings a batch set to the compute: it opens and checks the files, keeps
// them mapped, and runs a loader ahead of the training loop.
//
// The way of a batch: the epoch's order picks a record; the first time in the process
// every byte of it is verified (CRCs, padding, bounds); its sections become the blocks,
// coefficients and targets that package backend reads, as views of the mapping; the
// feature rows are gathered into a ring buffer, or are views too. From the second use on
// a load costs O(number of sections), gathering apart.
//
// Nothing here makes topology: what a block is was decided when the set was written.
package feed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/backend"
)

// VerifyAtOpenBytes bounds the sets that Open verifies whole, with the SHA-256 of each
// file: it takes a fifth of a second at most, and a damaged set is refused before the
// first step. The records of larger sets are verified when they are first used.
const VerifyAtOpenBytes = 256 << 20

// The words of BatchParams and BatchSet that the trainer acts on.
const (
	ModeFull    = "full"
	ModeFanout  = "fanout"
	ModeLabor   = "labor"
	ModeCluster = "cluster"
	ModePPR     = "ppr"
	ModeKHop    = "khop"
	StorePacked = "packed"
	LinkNone    = "none"

	TaskMulticlass = "multiclass"
	TaskBinary     = "binary"
	TaskMultilabel = "multilabel"
	TaskRegression = "regression"
)

// modes lists the words of BatchParams.Mode.
var modes = []string{ModeFanout, ModeLabor, ModeFull, ModeCluster, ModePPR, ModeKHop}

// Options of Open.
type Options struct {
	Pin      *format.Digest      // the snapshot the set must come of; nil: any
	Features string              // feature table (features.plf of the snapshot) for a set without one
	Threads  int                 // goroutines that verify; 0: GOMAXPROCS
	Lazy     bool                // leave shards to their first use whatever the size of the set (bench)
	Notice   func(notice string) // what the user should know, one line each; nil: dropped
}

// Set is an open batch set. All of its files are mapped until Close, so that a rename in
// its directory can't mix two sets. Safe for concurrent use.
type Set struct {
	Dir      string
	ID       format.Digest
	Manifest *format.BatchSet

	files    []*format.File // everything that Close must close
	batches  []*shardRecord // by batch number
	eval     []*shardRecord // by dst rows
	coefs    *format.Record // nil where the set has none
	ids      *format.Record
	labels   *format.Record
	splits   *format.Record
	features *format.Record
	hot      *shardRecord   // rows of the most used nodes; nil where the set has none
	groups   []*shardRecord // rows that groups of batches share
	numEdges int64          // of the evaluation sequence

	decodeOnce sync.Once
	decoded    []float32 // of a feature table that isn't f32
	decodeErr  error
}

// shardRecord is one record of a shard.
type shardRecord struct {
	file     *format.File
	index    int
	verified bool        // Open has verified its bytes
	ready    atomic.Bool // it was verified and checked in this process
}

// Open opens the batch set in dir. It fails with a class of format's sentinels: whatever
// is wrong with the files, ErrMismatch where the set isn't what Options ask for.
func Open(ctx context.Context, dir string, o Options) (*Set, error) {
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	id, m, err := format.ReadBatchSet(dir)
	if err != nil {
		return nil, err
	}
	s := &Set{Dir: dir, ID: id, Manifest: m}
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close unmaps all files. Every view taken from the set dies with it.
func (s *Set) Close() error {
	var err error
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	s.files = nil
	return err
}

func (s *Set) open(ctx context.Context, o Options) error {
	m := s.Manifest
	if o.Pin != nil && m.SnapshotID != *o.Pin {
		return fmt.Errorf("%s: %w: made from snapshot %s, --pin-snapshot asks for %s", filepath.Base(s.Dir), format.ErrMismatch, m.SnapshotID, o.Pin)
	}
	if err := s.checkManifest(); err != nil {
		return err
	}
	extra, err := format.CheckFiles(s.Dir, m.Files)
	if err != nil {
		return err
	}
	for _, name := range extra {
		o.Notice(fmt.Sprintf("%s: not listed in the manifest, ignored", filepath.Join(filepath.Base(s.Dir), name)))
	}
	small := !o.Lazy && totalBytes(m.Files) <= VerifyAtOpenBytes
	if err := s.openShards(m.Files); err != nil {
		return err
	}
	if err := s.openTables(m.Files); err != nil {
		return err
	}
	if err := s.openOutside(o.Features); err != nil {
		return err
	}
	if err := s.verify(ctx, small, o.Threads); err != nil {
		return err
	}
	if s.numEdges, err = s.countEdges(); err != nil {
		return err
	}
	return s.checkTables()
}

// checkManifest bounds every number of the manifest that sizes something here.
func (s *Set) checkManifest() error {
	m := s.Manifest
	const maxCount = 1 << 40
	for _, c := range []struct {
		name     string
		got, max int64
	}{
		{"num_nodes", int64(m.NumNodes), 1<<31 - 1}, {"num_features", int64(m.NumFeatures), 1 << 31}, {"num_classes", int64(m.NumClasses), 1 << 31},
		{"num_layers", int64(m.NumLayers), format.MaxLayers}, {"num_batches", int64(m.NumBatches), 1<<32 - 1}, {"batches_per_variant", int64(m.BatchesPerVariant), 1<<32 - 1},
		{"num_seeds", int64(m.NumSeeds), maxCount}, {"num_eval_blocks", int64(m.NumEvalBlocks), 1<<32 - 1},
		{"maxima.nodes", int64(m.Maxima.Nodes), int64(m.NumNodes)}, {"maxima.seeds", int64(m.Maxima.Seeds), int64(m.NumNodes)},
		{"variants", int64(m.Params.Variants), 1 << 31},
	} {
		if c.got < 0 || c.got > c.max {
			return s.manifestFault(format.ErrLayout, "%s is %d, allowed are 0 to %d", c.name, c.got, c.max)
		}
	}
	switch {
	case m.Params.Task != "node":
		return s.manifestFault(format.ErrMismatch, "a set for task %q; trainer-gnn takes task node", m.Params.Task)
	case !slices.Contains(modes, m.Params.Mode):
		return s.manifestFault(format.ErrMismatch, "mode %q is not known to this trainer; it takes %s", m.Params.Mode, strings.Join(modes, ", "))
	case !knownType(m.Params.DType):
		return s.manifestFault(format.ErrMismatch, "feature type %q is not known to this trainer; it takes f32, f16, bf16 and int8", m.Params.DType)
	case m.Params.Group < 0 || m.Params.Group == 1 || m.Params.Group > 1 && (m.Params.Group > m.Params.BatchesPerFile || m.Params.BatchesPerFile > format.MaxRecords):
		return s.manifestFault(format.ErrLayout, "groups of %d batches with %d batches a file", m.Params.Group, m.Params.BatchesPerFile)
	case !(m.Params.HotRows >= 0 && m.Params.HotRows <= 1) || m.Params.Store != StorePacked && (m.Params.HotRows > 0 || m.Params.Group > 0):
		return s.manifestFault(format.ErrLayout, "store %s with hot rows %g, groups of %d batches", m.Params.Store, m.Params.HotRows, m.Params.Group)
	case m.Params.Variants < 1 || int64(m.BatchesPerVariant)*int64(m.Params.Variants) != int64(m.NumBatches):
		return s.manifestFault(format.ErrLayout, "%d batches in %d variants of %d", m.NumBatches, m.Params.Variants, m.BatchesPerVariant)
	case (m.NumLayers == 0) != s.AnyDepth():
		return s.manifestFault(format.ErrLayout, "mode %s with num_layers %d", m.Params.Mode, m.NumLayers)
	case m.LabelTask == TaskBinary && m.NumClasses != 2:
		return s.manifestFault(format.ErrLayout, "labels of task binary with %d classes", m.NumClasses)
	case s.Full() && m.NumBatches != 1:
		return s.manifestFault(format.ErrLayout, "mode full with %d batches", m.NumBatches)
	}
	return nil
}

func (s *Set) manifestFault(class error, text string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", filepath.Join(filepath.Base(s.Dir), format.ManifestName), class, fmt.Sprintf(text, args...))
}

func totalBytes(files []format.FileInfo) (sum int64) {
	for _, f := range files {
		sum += int64(f.SizeBytes)
	}
	return sum
}

// openFile maps a file and checks that its header belongs to this set.
func (s *Set) openFile(path string, kind format.FileKind, shard int) (*format.File, error) {
	want := format.Member{Kind: kind, SetKey: s.Manifest.SetKey, SnapshotID: s.Manifest.SnapshotID, Shard: uint32(shard)}
	if kind == format.FileIDs || kind == format.FileLabels || kind == format.FileFeatures && s.Manifest.Params.DType == "f32" {
		want.SetKey, want.SnapshotID = s.Manifest.SnapshotKey, format.Digest{} // a snapshot's file can't hold the snapshot's id
	}
	f, err := format.OpenMember(path, want)
	if err != nil {
		return nil, err
	}
	s.files = append(s.files, f)
	return f, nil
}

// openShards opens batches-*.plf and eval-*.plf, numbered from 0 without a gap, and
// indexes their records.
func (s *Set) openShards(files []format.FileInfo) error {
	m := s.Manifest
	listed := map[string]bool{}
	for _, f := range files {
		listed[f.Name] = true
	}
	open := func(name func(int) string, kind format.FileKind, want format.Int) ([]*shardRecord, error) {
		var list []*shardRecord
		for shard := 0; listed[name(shard)]; shard++ {
			delete(listed, name(shard))
			f, err := s.openFile(filepath.Join(s.Dir, name(shard)), kind, shard)
			if err != nil {
				return nil, err
			}
			for i, e := range f.Records {
				if int(e.Number) != len(list) {
					return nil, fmt.Errorf("%s: record %d: %w: has number %d, want %d", f.Name(), i, format.ErrLayout, e.Number, len(list))
				}
				list = append(list, &shardRecord{file: f, index: i})
			}
		}
		if len(list) != int(want) {
			return nil, s.manifestFault(format.ErrLayout, "%d records in %s and its like, want %d", len(list), name(0), want)
		}
		return list, nil
	}
	var err error
	if s.batches, err = open(format.BatchFile, format.FileBatches, m.NumBatches); err != nil {
		return err
	}
	if s.eval, err = open(format.EvalFile, format.FileEval, m.NumEvalBlocks); err != nil {
		return err
	}
	if err := s.openShared(listed); err != nil {
		return err
	}
	for _, known := range []string{format.SetIDsFile, format.SetLabelsFile, format.SetSplitsFile, format.SetFeaturesFile, format.SetCoefsFile} {
		delete(listed, known)
	}
	for name := range listed {
		return s.manifestFault(format.ErrLayout, "lists %q, which is no file of a batch set", name)
	}
	return nil
}

// table is a file of one record over all nodes.
type table struct {
	name   string
	kind   format.FileKind
	wanted bool // by what the manifest says of the set
	record **format.Record
}

func (s *Set) tables() []table {
	m := s.Manifest
	return []table{
		{format.SetIDsFile, format.FileIDs, true, &s.ids},
		{format.SetLabelsFile, format.FileLabels, m.LabelTask != "", &s.labels},
		{format.SetSplitsFile, format.FileLabels, len(m.Splits) > 0, &s.splits},
		{format.SetFeaturesFile, format.FileFeatures, m.NumFeatures > 0 && m.Params.LinkFeatures != LinkNone, &s.features},
		{format.SetCoefsFile, format.FileCoefs, m.NumEvalBlocks > 0, &s.coefs},
	}
}

// openTables opens the files of one record over all nodes.
func (s *Set) openTables(files []format.FileInfo) error {
	for _, t := range s.tables() {
		if !slices.ContainsFunc(files, func(f format.FileInfo) bool { return f.Name == t.name }) {
			if t.wanted {
				return s.manifestFault(format.ErrMissing, "%s isn't listed", t.name)
			}
			continue
		}
		r, err := s.openTable(filepath.Join(s.Dir, t.name), t.kind)
		if err != nil {
			return err
		}
		*t.record = r
	}
	return nil
}

func (s *Set) openTable(path string, kind format.FileKind) (*format.Record, error) {
	f, err := s.openFile(path, kind, 0)
	if err != nil {
		return nil, err
	}
	return f.Table(s.NumNodes())
}

// openOutside opens the feature table of a set that was written without it: a file of the
// snapshot that the set comes of, whose manifest lies beside it. The set names the
// snapshot by the digest of that manifest, and the manifest names the table by its own.
func (s *Set) openOutside(path string) error {
	switch {
	case path == "":
		return nil // NeedFeatures says so where a model needs them
	case s.features != nil:
		return s.manifestFault(format.ErrMismatch, "the set has its own feature table; --features is for sets written with --link-features none")
	case s.Manifest.NumFeatures == 0:
		return s.manifestFault(format.ErrMismatch, "the set's snapshot has no features, so --features %s can't be its table", path)
	}
	want, err := s.snapshotFile(path)
	if err != nil {
		return err
	}
	got, err := format.DigestFile(path)
	if err != nil {
		return err
	}
	if got.SHA256 != want.SHA256 {
		return fmt.Errorf("%s: %w: SHA-256 is %s, the set's snapshot has %s", path, format.ErrMismatch, got.SHA256.Hex(), want.SHA256.Hex())
	}
	s.features, err = s.openTable(path, format.FileFeatures)
	return err
}

// snapshotFile returns the word of the set's snapshot on the file at path.
func (s *Set) snapshotFile(path string) (format.FileInfo, error) {
	var want format.FileInfo
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	id, err := format.ReadID(dir)
	if err != nil {
		return want, fmt.Errorf("--features %s: the snapshot's manifest must lie beside it: %w", path, err)
	}
	if id != s.Manifest.SnapshotID {
		return want, fmt.Errorf("%s: %w: it lies in snapshot %s, the set comes of %s", path, format.ErrMismatch, id, s.Manifest.SnapshotID)
	}
	b, err := os.ReadFile(filepath.Join(dir, format.ManifestName))
	if err != nil {
		return want, err
	}
	var m struct {
		Files []format.FileInfo `json:"files"`
	}
	if err := json.Unmarshal(b, &m); err != nil || format.Digest(sha256.Sum256(b)) != id {
		return want, fmt.Errorf("%s: %w: changed while it was read", filepath.Join(dir, format.ManifestName), format.ErrLayout)
	}
	for _, f := range m.Files {
		if f.Name == name {
			return f, nil
		}
	}
	return want, fmt.Errorf("%s: %w: no file of that snapshot", path, format.ErrMismatch)
}

// verify reads every byte of the tables, and of the shards of a small set, whose files
// are held against the manifest's SHA-256 too. Files are verified side by side.
func (s *Set) verify(ctx context.Context, small bool, threads int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(threads)
	check := func(work func() error) {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return work()
		})
	}
	for _, f := range s.files {
		shard := f.Header.Kind == format.FileBatches || f.Header.Kind == format.FileEval || f.Header.Kind == format.FileRows
		if small || !shard {
			check(f.Verify)
		}
	}
	if small {
		for _, f := range s.Manifest.Files {
			check(func() error { return format.VerifyFiles(s.Dir, []format.FileInfo{f}) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if small {
		for _, r := range slices.Concat(s.batches, s.eval, s.groups) {
			r.verified = true
		}
		if s.hot != nil {
			s.hot.verified = true
		}
	}
	return nil
}

// checkTables checks the shapes of the tables against the manifest.
func (s *Set) checkTables() error {
	m := s.Manifest
	n := uint64(m.NumNodes)
	if s.ids.IDs().Len() != int(n) {
		return fmt.Errorf("%s: %w: %d ids for %d nodes", format.SetIDsFile, format.ErrLayout, s.ids.IDs().Len(), n)
	}
	if s.features != nil {
		rows := s.features.Find(format.TableRows, format.AnyLayer, format.CoefNone)
		if rows == nil || rows.DType != s.rowType() || rows.Shape[0] != n || rows.Shape[1] != uint64(m.NumFeatures) {
			return fmt.Errorf("%s: %w: no %s table of shape [%d, %d]", format.SetFeaturesFile, format.ErrLayout, s.rowType(), n, m.NumFeatures)
		}
	}
	if s.labels != nil {
		if err := s.checkLabel(s.labels, n); err != nil {
			return err
		}
		if names := s.labels.Names().Len(); names != int(m.NumClasses) {
			return fmt.Errorf("%s: %w: %d class names for %d classes", format.SetLabelsFile, format.ErrLayout, names, m.NumClasses)
		}
	}
	if s.splits != nil {
		mask := s.splits.Find(format.SeedsMask, format.AnyLayer, format.CoefNone)
		if mask == nil || mask.Shape[0] != n || mask.Shape[1] != uint64(len(m.Splits)) {
			return fmt.Errorf("%s: %w: no mask of shape [%d, %d]", format.SetSplitsFile, format.ErrLayout, n, len(m.Splits))
		}
	}
	return nil
}

// checkLabel checks the element type and shape of a record's labels, and that no class
// is beyond the set's. Cost: one pass over the labels.
func (s *Set) checkLabel(r *format.Record, rows uint64) error {
	label := r.Find(format.SeedsLabel, format.AnyLayer, format.CoefNone)
	if label == nil {
		return fmt.Errorf("%s: %w: no labels", r.Place(), format.ErrLayout)
	}
	classes := uint64(s.Manifest.NumClasses)
	ok := label.Shape[0] == rows
	switch s.Manifest.LabelTask {
	case TaskMulticlass, TaskBinary:
		ok = ok && label.DType == format.I32 && len(label.Shape) == 1
	case TaskMultilabel:
		ok = ok && label.DType == format.U8 && len(label.Shape) == 2 && label.Shape[1] == classes
	case TaskRegression:
		ok = ok && label.DType == format.F32 && len(label.Shape) == 2
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%s: %w: labels are %s of shape %v, which doesn't fit task %q with %d rows and %d classes", r.Place(), format.ErrLayout, label.DType, label.Shape, s.Manifest.LabelTask, rows, classes)
	}
	if label.DType != format.I32 {
		return nil
	}
	return format.Guard(r.Place(), func() error {
		for i, class := range r.Int32s(format.SeedsLabel, format.AnyLayer) {
			if class >= int32(min(classes, 1<<31-1)) {
				return fmt.Errorf("%s: %w: label of row %d is class %d of %d", r.Place(), format.ErrLayout, i, class, classes)
			}
		}
		return nil
	})
}

// Explain names the file behind a memory fault that an operation of the backend or a
// reader met: one whose size is no longer what was mapped. Other errors pass unchanged.
func (s *Set) Explain(err error) error {
	var fault *backend.Fault
	if err == nil || !errors.As(err, &fault) && !errors.Is(err, format.ErrTruncated) {
		return err
	}
	for _, f := range s.files {
		path := filepath.Join(s.Dir, f.Name())
		switch info, statErr := os.Stat(path); {
		case statErr != nil:
			continue
		case info.Size() != f.SizeBytes():
			return fmt.Errorf("%s: %w: %d bytes now, %d when it was opened; another program changed the set under this run", f.Name(), format.ErrTruncated, info.Size(), f.SizeBytes())
		}
	}
	if fault != nil {
		return fmt.Errorf("%s: %w: %w", s.Dir, format.ErrTruncated, err)
	}
	return err
}

// Full reports whether the set holds the whole graph as its one batch.
func (s *Set) Full() bool { return s.Manifest.Params.Mode == ModeFull }

// AnyDepth reports whether the one block of a batch serves models of any number of layers: that of a full set, and a subgraph,
// whose seeds are the first of its nodes.
func (s *Set) AnyDepth() bool {
	return s.Manifest.Params.Mode != ModeFanout && s.Manifest.Params.Mode != ModeLabor
}

// NumNodes returns the number of nodes of the snapshot.
func (s *Set) NumNodes() int { return int(s.Manifest.NumNodes) }

// NumFeatures returns the number of feature columns.
func (s *Set) NumFeatures() int { return int(s.Manifest.NumFeatures) }

// HasFeatures reports whether the set has its feature table.
func (s *Set) HasFeatures() bool { return s.features != nil }

// Features returns the feature table [NumNodes, NumFeatures], nil where the set has
// none or has it in another type than f32 (see DecodedFeatures). Valid until Close, read-only; so is everything that its siblings return.
func (s *Set) Features() []float32 {
	if s.features == nil {
		return nil
	}
	return s.features.Float32s(format.TableRows, format.AnyLayer, format.CoefNone)
}

// NeedLabels returns an error of class ErrMismatch where there are no labels to train on.
func (s *Set) NeedLabels() error {
	switch s.Manifest.LabelTask {
	case "":
		return s.manifestFault(format.ErrMismatch, "the set has no labels to train on; give `precompute snapshot --labels`")
	case TaskRegression:
		return s.manifestFault(format.ErrMismatch, "regression is not among this trainer's tasks yet")
	}
	return nil
}

// NeedFeatures returns an error of class ErrMismatch where there is no feature table.
func (s *Set) NeedFeatures(model string) error {
	switch {
	case s.features != nil:
		return nil
	case s.Manifest.NumFeatures == 0:
		return s.manifestFault(format.ErrMismatch, "model %s needs node features and the snapshot has none; give `precompute snapshot --features`", model)
	default:
		return s.manifestFault(format.ErrMismatch, "the set was written with --link-features none; give the table with --features SNAPSHOT/%s", format.SetFeaturesFile)
	}
}

// NeedCoef returns an error of class ErrMismatch where the set lacks the kind.
func (s *Set) NeedCoef(kind format.Coef, model string) error {
	if slices.Contains(s.Manifest.Params.Norm, kind.String()) || kind == format.CoefNone {
		return nil
	}
	return s.manifestFault(format.ErrMismatch, "model %s needs coefficients %q, the set has %s; write it again with `precompute batches --norm %s`",
		model, kind, strings.Join(s.Manifest.Params.Norm, ","), strings.Join(append(slices.Clone(s.Manifest.Params.Norm), kind.String()), ","))
}

// IDs returns the external ids by node number.
func (s *Set) IDs() format.Names { return s.ids.IDs() }

// Classes returns [NumNodes] class numbers, -1 where unlabelled; nil where the labels
// aren't classes.
func (s *Set) Classes() []int32 {
	if s.labels == nil {
		return nil
	}
	return s.labels.Int32s(format.SeedsLabel, format.AnyLayer)
}

// Bits returns [NumNodes, NumClasses] label bits, format.Unlabelled where unknown; nil
// where the task isn't multilabel.
func (s *Set) Bits() []uint8 {
	if s.labels == nil {
		return nil
	}
	return s.labels.Uint8s(format.SeedsLabel, format.AnyLayer)
}

// ClassNames copies the class names.
func (s *Set) ClassNames() []string {
	if s.labels == nil {
		return nil
	}
	return s.labels.Names().Strings()
}

// SplitColumn returns the split column to work with: the set's own, or, for a set that
// carries all, the one asked for (below 0: the first).
func (s *Set) SplitColumn(asked int) (int, error) {
	own, n := s.Manifest.Params.Split, len(s.Manifest.Splits)
	switch {
	case n == 0 && asked > 0:
		return 0, s.manifestFault(format.ErrMismatch, "split column %d: the snapshot has no splits; give `precompute snapshot --splits`", asked)
	case n == 0:
		return NoSplit, nil
	case own >= n:
		return 0, s.manifestFault(format.ErrLayout, "split column %d of %d", own, n)
	case own >= 0 && asked >= 0 && own != asked:
		return 0, s.manifestFault(format.ErrMismatch, "the set was made for split column %d (--split of `precompute batches`), asked for is %d", own, asked)
	case own >= 0:
		return own, nil
	case asked >= n:
		return 0, s.manifestFault(format.ErrMismatch, "split column %d of %d", asked, n)
	}
	return max(asked, 0), nil
}

// NoSplit is the split column of a set without splits, where every node is of the part
// train and so every labelled one is trained on.
const NoSplit = -1

// allTrain is the column NoSplit of numNodes nodes.
func allTrain(numNodes int) []uint8 {
	return bytes.Repeat([]byte{byte(format.PartTrain)}, numNodes)
}

// Parts copies a split column: [NumNodes], a format.Part each.
func (s *Set) Parts(column int) ([]uint8, error) {
	if column == NoSplit && len(s.Manifest.Splits) == 0 {
		return allTrain(int(s.Manifest.NumNodes)), nil
	}
	if s.splits == nil || column < 0 || column >= len(s.Manifest.Splits) {
		return nil, s.manifestFault(format.ErrMismatch, "split column %d of %d", column, len(s.Manifest.Splits))
	}
	return maskColumn(s.splits, column)
}

// maskColumn copies one column of a record's seeds.mask.
func maskColumn(r *format.Record, column int) ([]uint8, error) {
	var part []uint8
	err := format.Guard(r.Place(), func() error {
		s := r.Find(format.SeedsMask, format.AnyLayer, format.CoefNone)
		if s == nil || uint64(column) >= s.Shape[1] {
			return fmt.Errorf("%s: %w: no split column %d", r.Place(), format.ErrLayout, column)
		}
		part = make([]uint8, s.Shape[0])
		all, stride := s.Bytes(), int(s.Shape[1])
		for i := range part {
			part[i] = all[i*stride+column]
		}
		return nil
	})
	return part, err
}
