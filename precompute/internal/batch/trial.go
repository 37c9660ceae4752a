package batch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot"
	"golang.org/x/sync/errgroup"
)

// TrialOptions steer Try.
type TrialOptions struct {
	Threads  int                                  // those that Write will have; 0: all cores
	TmpDir   string                               // where files of a trial are written and removed again; "" = the system's
	Seconds  float64                              // about how long each setting may be timed; 0: half a second
	Progress func(step string, done, total int64) // may be nil
}

// Trial is what settings will take, by a part of their batches that was cut and written for it.
type Trial struct {
	Params format.BatchParams // settled
	Plan   *Plan

	Seconds     float64 // Resolve and Write together, the sum of the next three
	PlanSeconds float64 // Resolve
	CutSeconds  float64 // training batches and evaluation blocks: assembled, written, read back, digested
	LinkSeconds float64 // tables of the snapshot

	// What the prediction comes of. A worker is one of Workers that were at work at the same time.
	Workers          int
	TimedBatches     int
	TimedSeeds       int
	SecondsPerBatch  float64 // of a worker
	TimedEvalBytes   int64
	EvalBytesPerSec  float64 // of a worker; 0 without evaluation blocks
	DigestBytesPerMs float64 // SHA-256 of bytes in memory
	assembleSeconds  float64 // of a training batch, without writing it
}

// Most bytes that a trial file holds, unless one record alone has more.
const maxTrialBytes = 64 << 20

// Try predicts what Write would make and take for p, and for the same with each of the other fanouts. p is planned as
// Resolve does; of the others fewer batches are measured, and their sizes are within about a tenth. A snapshot without
// labels is tried as if every node had one.
func Try(ctx context.Context, snap *snapshot.Snapshot, p format.BatchParams, fanouts [][]int, opt TrialOptions) (trials []*Trial, err error) {
	err = format.Guard(snap.Dir, func() error {
		trials, err = tryAll(ctx, labelled(snap), p, fanouts, opt)
		return err
	})
	return trials, err
}

// labelled returns snap, or where it has no labels a copy in which all nodes are of one class.
func labelled(snap *snapshot.Snapshot) *snapshot.Snapshot {
	if snap.Class != nil || snap.Bits != nil || snap.Values != nil {
		return snap
	}
	with := *snap
	with.Class, with.Manifest.NumClasses = make([]int32, snap.NumNodes()), 1
	return &with
}

func tryAll(ctx context.Context, snap *snapshot.Snapshot, p format.BatchParams, fanouts [][]int, opt TrialOptions) ([]*Trial, error) {
	if opt.Threads <= 0 {
		opt.Threads = runtime.GOMAXPROCS(0)
	}
	if opt.Seconds <= 0 {
		opt.Seconds = 0.5
	}
	start := time.Now()
	s, err := prepare(ctx, snap, p, &Options{Threads: opt.Threads, Progress: opt.Progress})
	if err != nil {
		return nil, err
	}
	prepared := time.Now()
	plan, err := s.plan(ctx, Options{Progress: opt.Progress}, sizesOfAll)
	if err != nil {
		return nil, err
	}
	measured := time.Now()
	if plan.EvalBytes, err = s.evalBytes(ctx); err != nil {
		return nil, err
	}
	common := prepared.Sub(start) + time.Since(measured) // order and evaluation blocks
	first, err := try(ctx, plan, opt)
	if err != nil {
		return nil, err
	}
	first.add((common + measured.Sub(prepared)).Seconds())
	trials := []*Trial{first}
	opt.Seconds /= 2
	for _, fanout := range fanouts {
		if slices.Equal(fanout, s.params.Fanout) {
			continue
		}
		other := s.params
		if other.Fanout = fanout; snap.NumFeatures() > 0 {
			other.Store = p.Store
		}
		rough, err := s.sibling(other).plan(ctx, Options{Progress: opt.Progress}, accuracy{16, 0.05})
		if err != nil {
			return nil, err
		}
		rough.EvalBytes = plan.EvalBytes // the same blocks
		t, err := try(ctx, rough, opt)
		if err != nil {
			return nil, err
		}
		t.add(common.Seconds() + float64(sizesOfAll.numMeasured(rough.NumBatches, rough.spread))*t.assembleSeconds)
		trials = append(trials, t)
	}
	return trials, nil
}

func (t *Trial) add(planSeconds float64) {
	t.PlanSeconds = planSeconds
	t.Seconds = t.PlanSeconds + t.CutSeconds + t.LinkSeconds
}

// try times settings by writing some of their files into a directory of its own.
func try(ctx context.Context, plan *Plan, opt TrialOptions) (*Trial, error) {
	dir, err := os.MkdirTemp(opt.TmpDir, "prelift-trial-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	job, err := format.Begin(filepath.Join(dir, "set"), format.KindBatchSet, format.Digest{})
	if err != nil {
		return nil, err
	}
	defer job.Abort(false)
	t := &Trial{Params: plan.source.params, Plan: plan}
	w := &writer{job: job, opt: Options{Threads: opt.Threads}, source: plan.source, part: wholeSet}
	shards := plan.source.shards()
	t.Workers = min(opt.Threads, len(shards))

	// All workers at once, as Write has them: they share the processor's caches and the disk.
	if opt.Progress != nil {
		opt.Progress("time batches", 0, 0)
	}
	cut, err := w.timeShards(ctx, shards, format.FileBatches, t.Workers, opt.Seconds)
	if err != nil {
		return nil, err
	}
	t.SecondsPerBatch, t.TimedBatches, t.assembleSeconds = cut.seconds/float64(cut.records), cut.records, cut.assembleSeconds/float64(t.Workers)
	t.TimedSeeds = int(float64(cut.records) * float64(plan.NumSeeds) / float64(plan.BatchesPerVariant))
	perBlock := 0.0
	if plan.source.numEvalBlocks() > 0 {
		eval, err := w.timeShards(ctx, shards, format.FileEval, t.Workers, opt.Seconds/2)
		if err != nil {
			return nil, err
		}
		perBlock = eval.seconds / float64(eval.records)
		t.TimedEvalBytes, t.EvalBytesPerSec = eval.bytes, float64(eval.bytes)/eval.seconds
	}
	durations := make([]float64, len(shards))
	for i, s := range shards {
		numRecords := float64(s.last - s.first)
		switch s.kind {
		case format.FileBatches:
			durations[i] = numRecords * t.SecondsPerBatch
		case format.FileEval:
			durations[i] = numRecords * perBlock
		case format.FileCoefs:
			durations[i] = float64(plan.coefBytes()) / t.EvalBytesPerSec
		case format.FileRows, format.FileFeatures: // about as fast as batches, by the byte
			durations[i] = float64(plan.rowsBytes(s)) * cut.seconds / float64(cut.bytes)
		}
	}
	t.CutSeconds = makespan(durations, t.Workers)
	t.DigestBytesPerMs = digestRate()
	t.LinkSeconds = float64(plan.LinkedBytes) / t.DigestBytesPerMs / 1000
	return t, nil
}

// timing adds up what workers wrote for a trial.
type timing struct {
	seconds         float64 // of all workers
	records         int
	bytes           int64
	assembleSeconds float64 // of one record a worker, without writing it
}

// A worker builds up to so many records, and up to so long, before it is timed: the first ones touch memory and make
// the draws of hubs. On an R-MAT graph of 1.5 M nodes the first takes 106 ms, the eighth 16, and the mean of 59 is 14.
const (
	warmUpRecords = 8
	warmUpTime    = time.Second
)

// timeShards writes the first records of one file of a kind for each worker, all at the same time, and warm. How many
// is seconds over the time that the last one of the warming-up took.
func (w *writer) timeShards(ctx context.Context, shards []shard, kind format.FileKind, workers int, seconds float64) (*timing, error) {
	of := slices.DeleteFunc(slices.Clone(shards), func(s shard) bool { return s.kind != kind })
	group, ctx := errgroup.WithContext(ctx)
	timings := make([]timing, workers)
	for i := range workers {
		group.Go(func() error {
			return format.Guard(w.source.snap.Dir, func() (err error) {
				s := of[i%len(of)]
				s.name = fmt.Sprintf("trial-%d-%s", i, s.name)
				timings[i], err = w.timeShard(ctx, s, seconds)
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	sum := &timing{}
	for _, t := range timings {
		sum.seconds += t.seconds
		sum.records += t.records
		sum.bytes += t.bytes
		sum.assembleSeconds += t.assembleSeconds
	}
	return sum, nil
}

func (w *writer) timeShard(ctx context.Context, s shard, seconds float64) (t timing, err error) {
	a := newAssembler(w.source)
	defer a.release()
	var size int64
	begin := time.Now()
	for i := 0; i < warmUpRecords && (i < 2 || time.Since(begin) < warmUpTime); i++ {
		start := time.Now()
		if size, err = s.build(a, min(s.first+i, s.last-1)).sizeBytes(); err != nil {
			return t, err
		}
		t.assembleSeconds = max(time.Since(start).Seconds(), 1e-6)
	}
	want := min(seconds/t.assembleSeconds, float64(maxTrialBytes)/float64(size))
	s.last = s.first + max(1, min(s.last-s.first, int(want)))
	start := time.Now()
	if err := w.writeShard(ctx, a, s, 0); err != nil {
		return t, err
	}
	t.seconds, t.records = time.Since(start).Seconds(), s.last-s.first
	info, err := os.Stat(w.job.Path(s.name))
	if err != nil {
		return t, err
	}
	t.bytes = info.Size()
	return t, nil
}

// rowsBytes is the size of a file of feature rows, about.
func (p *Plan) rowsBytes(s shard) (total int64) {
	numRows := p.source.snap.NumNodes()
	if s.kind == format.FileRows {
		numRows = int(p.NumRows/int64(p.NumBatches)) * (s.last - s.first)
	}
	return int64(numRows) * int64(p.source.table.widthBytes())
}

// coefBytes is the size of the coefficients' file, about.
func (p *Plan) coefBytes() (total int64) {
	for i := range p.source.norms {
		for _, part := range p.source.norms[i].parts() {
			total += 4 * int64(len(part.values))
		}
	}
	return total
}

// makespan is the time until the last of the workers is done, when each takes the next job as soon as it is free.
func makespan(durations []float64, workers int) float64 {
	free := make([]float64, max(workers, 1))
	for _, d := range durations {
		next := slices.Index(free, slices.Min(free))
		free[next] += d
	}
	return slices.Max(free)
}

// digestRate measures SHA-256 over memory, in bytes a millisecond.
func digestRate() float64 {
	buf := make([]byte, 8<<20)
	sha256.Sum256(buf) // first touch
	start := time.Now()
	sha256.Sum256(buf)
	return float64(len(buf)) / max(time.Since(start).Seconds(), 1e-9) / 1000
}
