package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/backend/cpu"
	"github.com/prelift/prelift/trainer/internal/checkpoint"
	"github.com/prelift/prelift/trainer/internal/durable"
	"github.com/prelift/prelift/trainer/internal/feed"
	"github.com/prelift/prelift/trainer/internal/metrics"
	"github.com/prelift/prelift/trainer/internal/model"
)

// UseConfig says which run's model to apply to which batch set.
type UseConfig struct {
	Run      string // run directory
	Batches  string
	Features string
	Split    int            // column to judge by; below 0: the run's
	Pin      *format.Digest // see feed.Options
	Threads  int
	Mem      int64
	Scratch  string

	Notice   func(string)
	Progress func(step string, done, total int64)
}

// PartMetrics are the metrics of one part of a split; null where not available.
type PartMetrics struct {
	NumNodes int64                     `json:"num_nodes"` // labelled
	Values   map[metrics.Name]*float64 `json:"metrics"`
}

// Evaluation is the JSON of `eval --json`.
type Evaluation struct {
	SnapshotID   string                 `json:"snapshot_id"`
	BatchSetID   string                 `json:"batch_set_id"`
	Model        model.Kind             `json:"model"`
	Task         string                 `json:"task"`
	Metric       metrics.Name           `json:"metric"`
	BestEpoch    int                    `json:"best_epoch"`
	ValMetric    *float64               `json:"val_metric"`
	TestMetric   *float64               `json:"test_metric"`
	Parts        map[string]PartMetrics `json:"parts"` // train, valid, test
	Seconds      float64                `json:"seconds"`
	PeakRSSBytes int64                  `json:"peak_rss_bytes"`
	Threads      int                    `json:"threads"`
	KernelSet    string                 `json:"kernel_set"`
}

// trained is a run's best model, loaded, with the set it is applied to.
type trained struct {
	c         UseConfig
	settings  settings // of the run
	bestEpoch int
	set       *feed.Set
	b         *cpu.Backend
	memory    activations
	eval      *evaluator
}

// openTrained loads the best parameters of a run and opens a batch set for them.
func openTrained(ctx context.Context, c UseConfig) (t *trained, err error) {
	setDefaults(&c.Threads, &c.Notice, &c.Progress)
	t = &trained{c: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	loaded, err := (&checkpoint.Store{Dir: filepath.Join(c.Run, CheckpointDir)}).Load()
	if errors.Is(err, checkpoint.ErrNone) {
		return t, noRun(c.Run)
	}
	if err != nil {
		return t, classify(err)
	}
	if loaded.Warning != "" {
		c.Notice(loaded.Warning)
	}
	if err := json.Unmarshal(loaded.State.Run, &t.settings); err != nil {
		return t, fmt.Errorf("%s: %w: settings of the run: %v", c.Run, format.ErrLayout, err)
	}
	if t.set, err = feed.Open(ctx, c.Batches, feed.Options{Pin: c.Pin, Features: c.Features, Threads: c.Threads, Notice: c.Notice}); err != nil {
		return t, err
	}
	if err := t.suits(); err != nil {
		return t, err
	}
	t.b = cpu.New(cpu.Options{Threads: c.Threads})
	m, err := model.New(t.b, t.settings.Model)
	if err != nil {
		return t, err
	}
	prefix := ""
	t.bestEpoch = loaded.State.Epoch
	if loaded.State.BestEpoch > 0 {
		prefix, t.bestEpoch = bestPrefix, loaded.State.BestEpoch
	}
	for _, p := range m.Params() {
		values, err := tensorValues(loaded.Tensors, prefix+p.Name, p.Shape)
		if err != nil {
			return t, fmt.Errorf("%s: %w", loaded.Path, err)
		}
		t.b.Upload(p.Value, values)
	}
	t.memory = activations{dir: c.Scratch, limit: c.Mem}
	t.eval, err = newEvaluator(t.set, t.b, m, &t.memory)
	return t, err
}

// suits refuses a set that the model wasn't trained for: other features, other classes.
func (t *trained) suits() error {
	s, m := &t.settings, t.set.Manifest
	bad := func(text string, args ...any) error {
		return fmt.Errorf("%s and %s: %w: %s", t.c.Run, t.c.Batches, format.ErrMismatch, fmt.Sprintf(text, args...))
	}
	switch {
	case s.Model.In != int(m.NumFeatures):
		return bad("the model takes %d features, the set has %d", s.Model.In, m.NumFeatures)
	case s.Task != m.LabelTask:
		return bad("the model was trained for task %s, the set has %q", s.Task, m.LabelTask)
	case s.Classes != digestOf(t.set.ClassNames()):
		return bad("the model was trained for other classes than the set has")
	case s.SnapshotID != m.SnapshotID.String():
		t.c.Notice(fmt.Sprintf("the model was trained on %s, this set comes of %s", s.SnapshotID, m.SnapshotID))
	}
	return nil
}

func (t *trained) close() error {
	var err error
	if t.b != nil {
		err = t.b.Close()
	}
	err = errors.Join(err, t.memory.close())
	if t.set != nil {
		err = errors.Join(err, t.set.Close())
	}
	return err
}

// logits computes the logits of all nodes.
func (t *trained) logits(ctx context.Context) ([]float32, error) {
	logits, err := t.eval.logits(ctx, func(done, total int64) { t.c.Progress("evaluate", done, total) })
	return logits, t.set.Explain(err)
}

// Evaluate judges a run's best model on every part of a split, by every metric that fits
// the task.
func Evaluate(ctx context.Context, c UseConfig) (e *Evaluation, err error) {
	start := time.Now()
	t, err := openTrained(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	column := t.settings.Split
	if c.Split >= 0 {
		column = c.Split
	}
	if column, err = t.set.SplitColumn(column); err != nil {
		return nil, err
	}
	j, err := newJudge(t.set, column)
	if err != nil {
		return nil, err
	}
	logits, err := t.logits(ctx)
	if err != nil {
		return nil, err
	}
	s, m := &t.settings, t.set.Manifest
	e = &Evaluation{
		SnapshotID: m.SnapshotID.String(), BatchSetID: t.set.ID.String(), Model: s.Model.Kind, Task: s.Task, Metric: s.Metric, BestEpoch: t.bestEpoch,
		Parts: map[string]PartMetrics{}, Threads: t.c.Threads, KernelSet: t.b.KernelSet(),
	}
	for part, name := range map[format.Part]string{format.PartTrain: "train", format.PartValid: "valid", format.PartTest: "test"} {
		p := PartMetrics{NumNodes: j.counts[part], Values: map[metrics.Name]*float64{}}
		for _, metric := range metrics.Names {
			if fits(metric, s.Task, int(m.NumClasses)) != nil {
				continue
			}
			if p.Values[metric], err = j.value(metric, logits, s.Model.Out, part); err != nil {
				return nil, err
			}
		}
		e.Parts[name] = p
	}
	e.ValMetric, e.TestMetric = e.Parts["valid"].Values[s.Metric], e.Parts["test"].Values[s.Metric]
	e.Seconds, e.PeakRSSBytes = time.Since(start).Seconds(), peakRSS()
	return e, nil
}

// Prediction is the JSON of `predict --json`.
type Prediction struct {
	SnapshotID   string  `json:"snapshot_id"`
	BatchSetID   string  `json:"batch_set_id"`
	Task         string  `json:"task"`
	NumNodes     int     `json:"num_nodes"`
	BestEpoch    int     `json:"best_epoch"`
	Out          string  `json:"out"`
	Seconds      float64 `json:"seconds"`
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
}

// CheckOut refuses a name that Predict can't write to: neither .parquet nor .csv at its
// end, or a directory.
func CheckOut(out string) error {
	if info, err := os.Stat(out); err == nil && info.IsDir() {
		return fmt.Errorf("--out %s is a directory; name a file ending in .parquet or .csv", out)
	}
	if ext := filepath.Ext(out); ext != parquetExt && ext != csvExt {
		return fmt.Errorf("--out %s: want a name ending in .parquet or .csv", out)
	}
	return nil
}

// The names' ends that say what Predict writes.
const (
	parquetExt = ".parquet"
	csvExt     = ".csv"
)

// Predict writes the predictions of a run's best model for every node of a set to out, a
// Parquet file or CSV by the end of its name, and makes the directory where it will lie.
// The file appears whole or not at all. Rows come in the order of the nodes.
//
// Columns: id, the external id; for classes prediction, the name of the likeliest class
// (binary: of the one above one half), for several labels a column y_NAME each, true
// above one half; and p_NAME, the probability of each class, a float32.
func Predict(ctx context.Context, c UseConfig, out string) (p *Prediction, err error) {
	start := time.Now()
	if err := CheckOut(out); err != nil {
		return nil, err
	}
	if err := outsideArtefacts(out); err != nil {
		return nil, err
	}
	t, err := openTrained(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return nil, fmt.Errorf("directory of --out: %w", err)
	}
	logits, err := t.logits(ctx)
	if err != nil {
		return nil, err
	}
	table, err := newPredictions(t.set, t.settings.Model.Out, logits)
	if err != nil {
		return nil, err
	}
	write := table.writeParquet
	if filepath.Ext(out) == csvExt {
		write = table.writeCSV
	}
	t.c.Progress("write "+out, 0, 0)
	if err := durable.WriteFile(out, func(w io.Writer) error { return format.Guard(t.set.Dir, func() error { return write(ctx, w) }) }); err != nil {
		return nil, t.set.Explain(err)
	}
	m := t.set.Manifest
	return &Prediction{
		SnapshotID: m.SnapshotID.String(), BatchSetID: t.set.ID.String(), Task: m.LabelTask, NumNodes: t.set.NumNodes(),
		BestEpoch: t.bestEpoch, Out: out, Seconds: time.Since(start).Seconds(), PeakRSSBytes: peakRSS(),
	}, nil
}
