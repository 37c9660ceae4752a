package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/backend"
	"github.com/prelift/prelift/trainer/internal/backend/cpu"
	"github.com/prelift/prelift/trainer/internal/checkpoint"
	"github.com/prelift/prelift/trainer/internal/feed"
	"github.com/prelift/prelift/trainer/internal/metrics"
	"github.com/prelift/prelift/trainer/internal/model"
	"github.com/prelift/prelift/trainer/internal/optim"
)

// ErrInterrupted says that the context ended a run between two steps; what was finished
// is saved.
var ErrInterrupted = errors.New("interrupted")

// ErrDiverged says that a loss or a parameter is no finite number.
var ErrDiverged = errors.New("training has diverged")

// Percentiles of durations, in milliseconds.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Result is what a finished run came to: the JSON of `train --json`. What has no value is
// null.
type Result struct {
	SnapshotID    string       `json:"snapshot_id"`
	BatchSetID    string       `json:"batch_set_id"`
	Model         model.Kind   `json:"model"`
	Task          string       `json:"task"`
	Metric        metrics.Name `json:"metric"`
	Epochs        int          `json:"epochs"` // done; fewer than asked for after early stopping
	Steps         int64        `json:"steps"`
	BestEpoch     int          `json:"best_epoch"`
	TrainLoss     *float64     `json:"train_loss"` // of the last epoch
	ValMetric     *float64     `json:"val_metric"`
	TestMetric    *float64     `json:"test_metric"`
	EpochSeconds  float64      `json:"epoch_seconds"`  // median, of training
	EvalSeconds   float64      `json:"eval_seconds"`   // all evaluations
	Seconds       float64      `json:"seconds"`        // of this process, from opening the set
	LoadMS        Percentiles  `json:"load_ms"`        // wall time of head and sections, or of first uses where LoadFirstUse
	LoadCount     int          `json:"load_count"`     // loads that LoadMS rests on, 65,536 at most; of less than 100 the p99 is the slowest
	LoadFirstUse  bool         `json:"load_first_use"` // no batch was used twice: LoadMS has the checks of the first use in it
	GatherMS      Percentiles  `json:"gather_ms"`      // copying feature rows, all uses; no part of LoadMS
	StallFraction float64      `json:"stall_fraction"` // share of training time that waited for the loader
	PeakRSSBytes  int64        `json:"peak_rss_bytes"`
	Threads       int          `json:"threads"`
	KernelSet     string       `json:"kernel_set"`
	EvalEvery     int          `json:"eval_every"`
	Checkpoint    string       `json:"checkpoint"`        // best.safetensors
	CheckpointID  string       `json:"checkpoint_sha256"` // of that file, in hex
	StateID       string       `json:"state_sha256"`      // of the tensors that --resume takes: parameters, moments, best so far
	ResumedFrom   *int         `json:"resumed_from"`      // epoch; null for a fresh run
	NothingToDo   bool         `json:"nothing_to_do,omitempty"`
}

// Train runs c to its end, or resumes a run. Errors: classes of package format; an error
// that wraps ErrInterrupted when ctx ended, ErrDiverged when the loss did.
func Train(ctx context.Context, c Config) (*Result, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	setDefaults(&c.Threads, &c.Notice, &c.Progress)
	t := &trainer{c: c, started: time.Now()}
	result, err := t.run(ctx)
	if t.set != nil {
		err = t.set.Explain(err)
	}
	switch {
	case err == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()):
	case t.state == nil:
		err = fmt.Errorf("%w before the first epoch", ErrInterrupted)
	default:
		err = fmt.Errorf("%w after epoch %d of %d; rerun with --resume to go on", ErrInterrupted, t.saved, c.Epochs)
	}
	return result, errors.Join(err, t.close())
}

// trainer is one run in one process.
type trainer struct {
	c       Config
	started time.Time

	set      *feed.Set
	settings settings
	dir      *dir
	log      *metricsLog
	b        *cpu.Backend
	m        *model.Model
	opt      *optim.Optimizer
	loader   *feed.Loader
	memory   activations
	eval     *evaluator // nil where the set has no evaluation
	judge    *judge

	state    *checkpoint.State // of the last finished epoch
	tensors  []hostTensor      // its tensors, in host memory
	spare    []hostTensor      // where the next epoch's will go
	best     []hostTensor      // parameters of the best epoch; unset before the first
	saved    int               // epoch of the checkpoint on disk; -1 before there is one
	resumed  *int
	stopped  bool // early
	lastLoss *float64

	epochSeconds []float64
	evalTime     time.Duration
	stall, busy  time.Duration
	load, gather durations
}

// hostTensor is a copy of a parameter or moment.
type hostTensor struct {
	named  backend.Named
	values []float32
}

func (t *trainer) close() error {
	var err error
	if t.log != nil {
		err = errors.Join(err, t.log.close())
	}
	if t.dir != nil {
		err = errors.Join(err, t.dir.close())
	}
	if t.b != nil {
		err = errors.Join(err, t.b.Close())
	}
	err = errors.Join(err, t.memory.close())
	if t.set != nil {
		err = errors.Join(err, t.set.Close())
	}
	return err
}

func (t *trainer) run(ctx context.Context) (*Result, error) {
	if err := checkDir(t.c.Out, t.c.Resume); err != nil {
		return nil, err
	}
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	done, err := t.start()
	if err != nil || done != nil {
		return done, err
	}
	if t.log, err = t.dir.openMetrics(t.state.Epoch); err != nil {
		return nil, err
	}
	if last := t.log.last; last.Epoch == t.state.Epoch {
		t.lastLoss = last.TrainLoss // of the run's last epoch, should there be none to train
	}
	trainErr := t.epochs(ctx)
	if t.state.Epoch != t.saved { // an interrupted or diverged epoch has left the one before it
		if err := t.save(); err != nil {
			return nil, errors.Join(trainErr, err)
		}
	}
	if trainErr != nil {
		return nil, trainErr
	}
	return t.finish(ctx)
}

// open opens the batch set and builds what computes on it.
func (t *trainer) open(ctx context.Context) error {
	var err error
	t.c.Progress("open "+t.c.Batches, 0, 0)
	t.set, err = feed.Open(ctx, t.c.Batches, feed.Options{Pin: t.c.Pin, Features: t.c.Features, Threads: t.c.Threads, Lazy: t.c.lazy, Notice: t.c.Notice})
	if err != nil {
		return err
	}
	if t.settings, err = t.c.resolve(t.set); err != nil {
		return err
	}
	if err := t.set.NeedFeatures(string(t.c.Model)); err != nil && !(t.set.Manifest.Params.Store == feed.StorePacked) {
		return err
	}
	s := &t.settings
	t.b = cpu.New(cpu.Options{Threads: t.c.Threads})
	if t.m, err = model.New(t.b, s.Model); err != nil {
		return err
	}
	if t.opt, err = optim.New(t.b, t.m.Params(), s.Optimizer); err != nil {
		return err
	}
	s.Optimizer = t.opt.Config()
	kind, _ := format.ParseCoef(t.m.Needs())
	layers := s.Model.Layers
	if !s.Model.Kind.UsesEdges() {
		layers = 0
	}
	t.loader, err = t.set.NewLoader(feed.LoaderOptions{Coef: kind, Layers: layers, Column: s.Split, Seed: s.Model.Seed, Features: true})
	if err != nil {
		return err
	}
	return t.openEvaluation()
}

// openEvaluation prepares evaluation, or says why there is none.
func (t *trainer) openEvaluation() error {
	var err error
	if t.judge, err = newJudge(t.set, t.settings.Split); err != nil {
		return err
	}
	t.memory = activations{dir: t.c.Scratch, limit: t.c.Mem}
	t.eval, err = newEvaluator(t.set, t.b, t.m, &t.memory)
	switch {
	case errors.Is(err, format.ErrMismatch):
		t.c.Notice(fmt.Sprintf("no evaluation, val_metric and test_metric will be null: %v", err))
		t.eval = nil
		return nil
	case err != nil:
		return err
	}
	if t.judge.counts[format.PartValid] == 0 {
		t.c.Notice("no labelled node in the validation part: the last epoch counts as the best, val_metric is null")
	}
	return nil
}

// start makes the run directory's first checkpoint, or loads its latest. It returns a
// result where the run is over already.
func (t *trainer) start() (*Result, error) {
	var err error
	if t.dir, err = openDir(t.c.Out); err != nil {
		return nil, err
	}
	loaded, err := t.dir.load()
	if err != nil {
		return nil, err
	}
	switch {
	case t.c.Resume && loaded == nil:
		return nil, noRun(t.c.Out)
	case !t.c.Resume && loaded != nil:
		return nil, fmt.Errorf("%s holds a run (%s done); go on with --resume, or name another --out", t.c.Out, Count(loaded.State.Epoch, "epoch"))
	case loaded != nil:
		return t.resume(loaded)
	}
	text, err := json.Marshal(t.settings)
	if err != nil {
		return nil, err
	}
	s := t.settings
	t.state = &checkpoint.State{
		Seed: s.Model.Seed, KernelSet: t.b.KernelSet(), Metric: string(s.Metric), Run: text,
		Parents: map[string]string{"snapshot_id": s.SnapshotID, "batch_set_id": s.BatchSetID},
	}
	t.saved = -1
	if err := t.capture(); err != nil {
		return nil, err
	}
	if err := t.save(); err != nil {
		return nil, err
	}
	return nil, t.dir.writeParams(t.settings, t.c.Epochs)
}

// resume goes on from a checkpoint.
func (t *trainer) resume(loaded *checkpoint.Loaded) (*Result, error) {
	st := loaded.State
	if loaded.Warning != "" {
		t.c.Notice(loaded.Warning)
	}
	// Another kernel set may round differently: allowed, since a machine can be lost, but said.
	if st.KernelSet != t.b.KernelSet() {
		t.c.Notice(fmt.Sprintf("the run was computed by kernel set %s, this machine has %s: the last bits of the results will differ from an uninterrupted run's", st.KernelSet, t.b.KernelSet()))
	}
	switch d, err := diff(st.Run, t.settings); {
	case err != nil:
		return nil, fmt.Errorf("%s: %w: settings of the run: %v", t.c.Out, format.ErrLayout, err)
	case d != "":
		return nil, fmt.Errorf("%s: %w: %s; resume with what the run was started with (%s), or name another --out", t.c.Out, format.ErrMismatch, d, ParamsFile)
	}
	if err := loaded.Tensors.Upload(t.b, t.named()); err != nil {
		return nil, fmt.Errorf("%s: %w", loaded.Path, classify(err))
	}
	t.opt.SetSteps(st.Step)
	epoch := st.Epoch // t.state's will go on
	t.state, t.saved, t.resumed = st, epoch, &epoch
	if err := t.capture(); err != nil {
		return nil, err
	}
	if st.BestEpoch > 0 {
		if err := t.loadBest(loaded.Tensors); err != nil {
			return nil, fmt.Errorf("%s: %w", loaded.Path, err)
		}
	}
	t.stopped = t.enough()
	if st.Epoch >= t.c.Epochs || t.stopped {
		why := t.overAlready()
		done, err := t.dir.readResult()
		if err != nil {
			return nil, err
		}
		if done != nil && done.Epochs == st.Epoch {
			t.c.Notice("nothing to do: " + why)
			done.NothingToDo, done.Checkpoint = true, t.dir.file(BestFile) // the directory may have moved
			return done, nil
		}
		t.c.Notice("no epoch to train: " + why) // but no result: interrupted, or killed just before it
		return nil, nil
	}
	if err := t.dir.removeResults(); err != nil {
		return nil, err
	}
	return nil, t.dir.writeParams(t.settings, t.c.Epochs)
}

// overAlready says why a resumed run has no epoch to train.
func (t *trainer) overAlready() string {
	switch done, asked := t.state.Epoch, t.c.Epochs; {
	case done > asked:
		return fmt.Sprintf("%s done already, --epochs asks for %d", are(done, "epoch"), asked)
	case done == asked:
		return fmt.Sprintf("%d of %s done", done, are(asked, "epoch"))
	default:
		return fmt.Sprintf("the run stopped after epoch %d, %d without a better one", done, t.settings.Patience)
	}
}

// named lists the matrices that a checkpoint holds, beside the best parameters.
func (t *trainer) named() []backend.Named {
	var list []backend.Named
	for _, p := range t.m.Params() {
		list = append(list, p.Named)
	}
	return append(list, t.opt.State()...)
}

// bestPrefix stands before the names of the best epoch's parameters in a checkpoint.
const bestPrefix = "best."

// stage copies the state after an epoch to host memory, beside the captured one, so that
// an interrupted or diverged epoch can't touch that. It fails where a value isn't finite.
func (t *trainer) stage() error {
	if t.tensors == nil {
		for _, n := range t.named() {
			size := n.Value.Rows * n.Value.Cols
			t.tensors = append(t.tensors, hostTensor{n, make([]float32, size)})
			t.spare = append(t.spare, hostTensor{n, make([]float32, size)})
		}
	}
	for _, h := range t.spare {
		if err := t.b.Download(h.values, h.named.Value); err != nil {
			return err
		}
		for i, v := range h.values {
			if v-v != 0 {
				return fmt.Errorf("%w: %s[%d] is %v in epoch %d; a smaller --lr may help", ErrDiverged, h.named.Name, i, v, t.state.Epoch+1)
			}
		}
	}
	return nil
}

// commit makes what was staged the captured state.
func (t *trainer) commit() { t.tensors, t.spare = t.spare, t.tensors }

// capture is stage and commit.
func (t *trainer) capture() error {
	err := t.stage()
	if err == nil {
		t.commit()
	}
	return err
}

// captureBest copies the captured parameters as the best.
func (t *trainer) captureBest() {
	params := t.tensors[:len(t.m.Params())]
	if t.best == nil {
		for _, h := range params {
			t.best = append(t.best, hostTensor{h.named, make([]float32, len(h.values))})
		}
	}
	for i, h := range params {
		copy(t.best[i].values, h.values)
	}
}

func (t *trainer) loadBest(f *checkpoint.File) error {
	t.captureBest() // for the shapes
	for _, h := range t.best {
		values, err := tensorValues(f, bestPrefix+h.named.Name, h.named.Shape)
		if err != nil {
			return err
		}
		copy(h.values, values)
	}
	return nil
}

func tensorValues(f *checkpoint.File, name string, shape []int) ([]float32, error) {
	tensor := f.Tensor(name)
	if tensor == nil || !slices.Equal(tensor.Shape, shape) {
		return nil, fmt.Errorf("%w: no tensor %q of shape %v", format.ErrMismatch, name, shape)
	}
	return tensor.Float32s()
}

// save writes the captured state as the run's latest checkpoint.
func (t *trainer) save() error {
	tensors := exported(t.tensors, "")
	if t.state.BestEpoch > 0 {
		tensors = append(tensors, exported(t.best, bestPrefix)...)
	}
	if t.log != nil {
		if err := t.log.sync(); err != nil {
			return err
		}
	}
	if err := t.dir.store.Save(t.state, tensors, t.metadata(t.state.Epoch)); err != nil {
		return fmt.Errorf("checkpoint of epoch %d: %w", t.state.Epoch, err)
	}
	t.saved = t.state.Epoch
	return nil
}

// metadata tells other programs what a tensor file is.
func (t *trainer) metadata(epoch int) map[string]string {
	c := t.settings.Model
	return map[string]string{
		"format": "pt", "model": string(c.Kind), "layers": strconv.Itoa(c.Layers), "epoch": strconv.Itoa(epoch),
		"snapshot_id": t.settings.SnapshotID, "batch_set_id": t.settings.BatchSetID,
	}
}

// epochs trains until the last epoch, early stopping, or an error.
func (t *trainer) epochs(ctx context.Context) error {
	if t.stopped || t.state.Epoch >= t.c.Epochs {
		return nil
	}
	every := t.c.CheckpointEvery
	if every == Auto {
		every = checkpointEvery(t.set, t.settings.Model)
	}
	stream := t.loader.Stream(ctx, t.state.Epoch, t.c.Epochs)
	defer stream.Close()
	for t.state.Epoch < t.c.Epochs && !t.stopped {
		t.c.Progress("train", int64(t.state.Epoch), int64(t.c.Epochs))
		if err := t.epoch(ctx, stream); err != nil {
			return err
		}
		if t.state.Epoch%every == 0 {
			if err := t.save(); err != nil {
				return err
			}
		}
	}
	t.c.Progress("train", int64(t.state.Epoch), int64(t.c.Epochs))
	return nil
}

// epoch trains one epoch and, where it is due, evaluates it. t.state changes only when
// all of that has worked.
func (t *trainer) epoch(ctx context.Context, stream *feed.Stream) error {
	start, stalled := time.Now(), stream.Stall
	number := t.state.Epoch + 1
	var sum float64
	var count int64
	for last := false; !last; {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch, err := stream.Next()
		if err != nil {
			return ended(err)
		}
		if last = batch.Last; batch.Epoch+1 != number {
			return fmt.Errorf("the loader brought a batch of epoch %d in epoch %d", batch.Epoch+1, number)
		}
		t.load.add(batch.LoadTime, !batch.FirstUse)
		t.gather.add(batch.GatherTime, true)
		s, n, err := t.step(batch)
		batch.Release()
		if err != nil {
			return err
		}
		sum, count = sum+s, count+n
	}
	if err := t.stage(); err != nil {
		return err
	}
	seconds := time.Since(start)
	t.stall, t.busy = t.stall+stream.Stall-stalled, t.busy+seconds
	t.epochSeconds = append(t.epochSeconds, seconds.Seconds())
	record := EpochRecord{Epoch: number, Steps: t.opt.Steps(), Seconds: seconds.Seconds()}
	if count > 0 {
		loss := sum / float64(count)
		record.TrainLoss = &loss
	}
	if number%t.settings.EvalEvery == 0 {
		var err error
		if record.ValMetric, err = t.validate(ctx); err != nil {
			return err
		}
	}
	t.commit()
	t.lastLoss = record.TrainLoss
	t.state.Epoch, t.state.Step = number, t.opt.Steps()
	if v := record.ValMetric; v != nil && (t.state.BestMetric == nil || t.settings.Metric.Better(*v, *t.state.BestMetric)) {
		t.state.BestEpoch, t.state.BestMetric = number, v
		t.captureBest()
	}
	t.stopped = t.enough()
	return t.log.add(record)
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the loader ended before the epoch did")
	}
	return err
}

// enough reports whether early stopping is due after the last finished epoch: at an
// evaluated epoch, Patience after the best.
func (t *trainer) enough() bool {
	s, st := &t.settings, t.state
	return s.Patience > 0 && st.BestEpoch > 0 && st.Epoch%s.EvalEvery == 0 && st.Epoch-st.BestEpoch >= s.Patience
}

// step computes one batch and moves the parameters, unless the loss isn't finite.
func (t *trainer) step(batch *feed.Batch) (sum float64, count int64, err error) {
	if batch.FirstUse {
		if err := t.m.CheckBatch(batch.Blocks, true); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", batch.Place(), classError{err, format.ErrMismatch})
		}
	}
	err = format.Guard(batch.Place(), func() error {
		b := t.b
		b.ResetScratch()
		logits := t.m.Forward(model.Batch{
			Blocks: batch.Blocks, Coefs: batch.Coefs,
			X: b.Wrap(batch.Features, batch.NumNodes, t.settings.Model.In),
		}, true, uint64(t.opt.Steps()))
		grad := b.Scratch(logits.Rows, logits.Cols)
		if others := logits.Rows - batch.NumSeeds; others > 0 { // of a subgraph: they are there for the seeds' sake
			b.Zero(grad.Slice(batch.NumSeeds, others))
		}
		seeds, seedsGrad := logits.Slice(0, batch.NumSeeds), grad.Slice(0, batch.NumSeeds)
		if t.settings.Task == feed.TaskMulticlass {
			b.SoftmaxCE(seedsGrad, seeds, &batch.Targets)
		} else {
			b.SigmoidBCE(seedsGrad, seeds, &batch.Targets)
		}
		if sum, count, err = b.TakeLoss(); err != nil {
			return err
		}
		if math.IsNaN(sum) || math.IsInf(sum, 0) {
			return fmt.Errorf("%w: loss is %v in epoch %d, batch %d; a smaller --lr may help", ErrDiverged, sum, batch.Epoch+1, batch.Number)
		}
		t.m.Backward(grad)
		t.opt.Step()
		return b.Sync()
	})
	return sum, count, err
}

// validate evaluates the model as it is on the validation part; nil where there is
// nothing to judge by.
func (t *trainer) validate(ctx context.Context) (*float64, error) {
	if t.eval == nil || t.judge.counts[format.PartValid] == 0 {
		return nil, nil
	}
	start := time.Now()
	defer func() { t.evalTime += time.Since(start) }()
	logits, err := t.eval.logits(ctx, nil)
	if err != nil {
		return nil, err
	}
	v, err := t.judge.value(t.settings.Metric, logits, t.settings.Model.Out, format.PartValid)
	if err != nil {
		return nil, fmt.Errorf("%w: epoch %d: %v", ErrDiverged, t.state.Epoch+1, err)
	}
	return v, nil
}

// finish judges the best epoch's parameters and writes the run's results.
func (t *trainer) finish(ctx context.Context) (*Result, error) {
	s, st := &t.settings, t.state
	r := &Result{
		SnapshotID: s.SnapshotID, BatchSetID: s.BatchSetID, Model: s.Model.Kind, Task: s.Task, Metric: s.Metric,
		Epochs: st.Epoch, Steps: st.Step, BestEpoch: st.BestEpoch, TrainLoss: t.lastLoss, ValMetric: st.BestMetric,
		EpochSeconds: median(t.epochSeconds), Threads: t.c.Threads, KernelSet: t.b.KernelSet(), EvalEvery: s.EvalEvery,
		Checkpoint: t.dir.file(BestFile), StateID: st.File.SHA256, ResumedFrom: t.resumed,
		LoadMS: t.load.percentiles(), LoadCount: len(t.load.list()), LoadFirstUse: len(t.load.later) == 0 && t.load.n > 0,
		GatherMS: t.gather.percentiles(),
	}
	if t.busy > 0 {
		r.StallFraction = float64(t.stall) / float64(t.busy)
	}
	best, last := t.best, t.tensors[:len(t.m.Params())]
	if st.BestEpoch == 0 {
		r.BestEpoch, best = st.Epoch, last
	}
	if better, err := t.lastIsBetter(ctx); err != nil {
		return nil, err
	} else if better != nil {
		r.BestEpoch, r.ValMetric, best = st.Epoch, better, last
	}
	for _, h := range best {
		t.b.Upload(h.named.Value, h.values)
	}
	if err := t.judgeBest(ctx, r); err != nil {
		return nil, err
	}
	var err error
	if r.CheckpointID, err = t.dir.writeTensors(BestFile, exported(best, ""), t.metadata(r.BestEpoch)); err != nil {
		return nil, err
	}
	if _, err := t.dir.writeTensors(LastFile, exported(last, ""), t.metadata(st.Epoch)); err != nil {
		return nil, err
	}
	if err := t.dir.writeParams(t.settings, max(t.c.Epochs, st.Epoch)); err != nil {
		return nil, err
	}
	r.EvalSeconds, r.Seconds, r.PeakRSSBytes = t.evalTime.Seconds(), time.Since(t.started).Seconds(), peakRSS()
	return r, t.dir.writeJSON(ResultFile, r)
}

// lastIsBetter evaluates the last epoch where that wasn't due, and returns its metric if it
// is the best. It is no part of the run's state: a run that goes on to more epochs
// evaluates those that are due and no other, as one that never stopped here.
func (t *trainer) lastIsBetter(ctx context.Context) (*float64, error) {
	if t.state.Epoch%t.settings.EvalEvery == 0 {
		return nil, nil
	}
	v, err := t.validate(ctx)
	if err != nil || v == nil || t.state.BestMetric != nil && !t.settings.Metric.Better(*v, *t.state.BestMetric) {
		return nil, err
	}
	return v, nil
}

// judgeBest fills in the metrics of the parameters that the backend holds.
func (t *trainer) judgeBest(ctx context.Context, r *Result) error {
	if t.eval == nil {
		return nil
	}
	start := time.Now()
	logits, err := t.eval.logits(ctx, func(done, total int64) { t.c.Progress("evaluate", done, total) })
	if err != nil {
		return err
	}
	cols := t.settings.Model.Out
	if r.TestMetric, err = t.judge.value(t.settings.Metric, logits, cols, format.PartTest); err != nil {
		return err
	}
	if r.ValMetric == nil { // fewer epochs than one evaluation takes, or no validation
		r.ValMetric, err = t.judge.value(t.settings.Metric, logits, cols, format.PartValid)
	}
	t.evalTime += time.Since(start)
	if err == nil {
		t.compareWithCommonest(r)
	}
	return err
}

// compareWithCommonest says so where the model is no better than always predicting the
// commonest class of the train part: it has learnt nothing that shows, whatever its accuracy.
func (t *trainer) compareWithCommonest(r *Result) {
	class := t.judge.commonest(format.PartTrain)
	if t.settings.Metric != metrics.Accuracy || class < 0 {
		return
	}
	var poor []string
	for _, p := range []struct {
		name  string
		part  format.Part
		value *float64
	}{{"validation", format.PartValid, r.ValMetric}, {"test", format.PartTest, r.TestMetric}} {
		if p.value == nil || *p.value == 1 { // 1 is as good as it gets where there is one class
			continue
		}
		if share := t.judge.share(class, p.part); *p.value <= share {
			poor = append(poor, fmt.Sprintf("%s accuracy is %.4f, that of always predicting %q %.4f", p.name, *p.value, t.set.ClassNames()[class], share))
		}
	}
	if len(poor) > 0 {
		t.c.Notice(fmt.Sprintf("the model is no better than the commonest class of the train part: %s; other features, settings or more epochs may help", strings.Join(poor, "; ")))
	}
}

// exported makes the tensors of a file, each name behind a prefix.
func exported(list []hostTensor, prefix string) []checkpoint.Tensor {
	var tensors []checkpoint.Tensor
	for _, h := range list {
		tensors = append(tensors, checkpoint.Float32s(prefix+h.named.Name, h.named.Shape, h.values))
	}
	return tensors
}

// durations keeps enough of a long series for percentiles: the newest maxDurations.
type durations struct {
	later, all []float32 // milliseconds
	n          int
}

const maxDurations = 1 << 16

func (d *durations) add(x time.Duration, later bool) {
	ms := float32(x.Seconds() * 1e3)
	keep := func(list []float32) []float32 {
		if len(list) < maxDurations {
			return append(list, ms)
		}
		list[d.n%maxDurations] = ms
		return list
	}
	d.all = keep(d.all)
	if later {
		d.later = keep(d.later)
	}
	d.n++
}

// list has the later uses, or all where there is no later one.
func (d *durations) list() []float32 {
	if len(d.later) > 0 {
		return d.later
	}
	return d.all
}

// percentiles are those of list.
func (d *durations) percentiles() Percentiles { return percentilesOf(d.list()) }

func percentilesOf(list []float32) Percentiles {
	if len(list) == 0 {
		return Percentiles{}
	}
	sorted := slices.Sorted(slices.Values(list))
	at := func(p float64) float64 { return float64(sorted[int(math.Ceil(p*float64(len(sorted))))-1]) }
	return Percentiles{P50: at(0.5), P99: at(0.99)}
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// peakRSS returns the most memory that the process has had resident, 0 where the kernel
// doesn't say.
func peakRSS() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
