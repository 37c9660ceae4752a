package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/checkpoint"
	"github.com/prelift/prelift/trainer/internal/feed"
	"github.com/prelift/prelift/trainer/internal/metrics"
	"github.com/prelift/prelift/trainer/internal/model"
	"github.com/prelift/prelift/trainer/internal/optim"
)

// Auto asks for the default that follows from the set, in EvalEvery and CheckpointEvery.
// InputDropout, where 0 has a meaning of its own, takes any number below 0 for that.
const Auto = 0

// Config says what to train and where.
type Config struct {
	Batches string // batch set directory
	Out     string // run directory
	Resume  bool

	Model           model.Kind
	Hidden          int
	Layers          int // 0: as many as the batches have hops, 2 where they serve any number
	Dropout         float64
	InputDropout    float64 // below 0: model.DefaultInputDropout
	Optimizer       optim.Kind
	LR              float64
	WeightDecay     float64
	DecayLayers     optim.DecayLayers
	Epochs          int
	Metric          metrics.Name // "": metrics.Default of the task
	Patience        int          // stop after so many epochs without a better one; 0: never
	EvalEvery       int          // 0: evaluation takes about a tenth of the work
	Seed            uint64
	Split           int // column of a set that carries all; below 0: the first
	Pin             *format.Digest
	Features        string // see feed.Options
	Threads         int
	Mem             int64  // bytes of heap for evaluation's activations; 0: no limit
	Scratch         string // directory for those beyond it
	CheckpointEvery int    // epochs; 0: by the work of an epoch

	lazy bool // feed.Options.Lazy: a small set is read as a large one is, in tests

	Notice   func(string)                         // one line for the user; nil: dropped
	Progress func(step string, done, total int64) // may be nil
}

// settings are what shapes a run's result. A resumed run must have the same, but for the
// number of epochs. Field names are those of the flags where there is one.
type settings struct {
	Model       model.Config `json:"model"`
	Optimizer   optim.Config `json:"optimizer"`
	Task        string       `json:"task"`
	Classes     string       `json:"classes_sha256"` // of the class names in order
	Metric      metrics.Name `json:"metric"`
	Split       int          `json:"split"`
	Patience    int          `json:"patience"`
	EvalEvery   int          `json:"eval-every"`
	BatchSetID  string       `json:"batch_set_id"`
	SnapshotID  string       `json:"snapshot_id"`
	BatchesEach int          `json:"batches_per_epoch"`
}

// maxHidden bounds --hidden: a wider layer is a slip of the keyboard, and would end in
// running out of memory.
const maxHidden = 1 << 16

// Check returns an error for settings that no set can make right, in the words of the
// flags.
func (c *Config) Check() error {
	if c.Batches == "" {
		return errors.New("--batches is needed")
	}
	for _, n := range []struct {
		flag      string
		got       int
		least, to int
	}{
		{"hidden", c.Hidden, 1, maxHidden}, {"layers", c.Layers, 0, format.MaxLayers}, {"epochs", c.Epochs, 1, 1 << 30},
		{"patience", c.Patience, 0, math.MaxInt}, {"eval-every", c.EvalEvery, 0, math.MaxInt}, {"checkpoint-every", c.CheckpointEvery, 0, math.MaxInt},
	} {
		if n.got < n.least {
			return fmt.Errorf("--%s %d: want %d or more", n.flag, n.got, n.least)
		}
		if n.got > n.to {
			return fmt.Errorf("--%s %d: want at most %d", n.flag, n.got, n.to)
		}
	}
	switch {
	case !(c.LR > 0 && c.LR <= optim.MaxRate):
		return fmt.Errorf("--lr %v: want a number above 0 and at most %v", c.LR, optim.MaxRate)
	case !(c.WeightDecay >= 0 && c.WeightDecay <= optim.MaxRate):
		return fmt.Errorf("--weight-decay %v: want a number from 0 to %v", c.WeightDecay, optim.MaxRate)
	case !(c.Dropout >= 0 && c.Dropout < 1):
		return fmt.Errorf("--dropout %v: want a number from 0 to below 1", c.Dropout)
	case !(c.InputDropout < 1):
		return fmt.Errorf("--input-dropout %v: want a number below 1", c.InputDropout)
	}
	if err := oneOf("model", c.Model, model.Kinds); err != nil {
		return err
	}
	if err := oneOf("optimizer", c.Optimizer, optim.Kinds); err != nil {
		return err
	}
	if err := oneOf("weight-decay-layers", c.DecayLayers, optim.DecayGroups); err != nil {
		return err
	}
	if c.Metric == "" {
		return nil
	}
	return oneOf("metric", c.Metric, metrics.Names)
}

// oneOf refuses a word that isn't among those that a flag takes.
func oneOf[T ~string](flag string, got T, want []T) error {
	if slices.Contains(want, got) {
		return nil
	}
	var words []string
	for _, w := range want {
		words = append(words, string(w))
	}
	last := len(words) - 1
	return fmt.Errorf("--%s %q: want %s or %s", flag, got, strings.Join(words[:last], ", "), words[last])
}

// setDefaults fills in what every operation of the package takes.
func setDefaults(threads *int, notice *func(string), progress *func(step string, done, total int64)) {
	if *threads <= 0 {
		*threads = runtime.GOMAXPROCS(0)
	}
	if *notice == nil {
		*notice = func(string) {}
	}
	if *progress == nil {
		*progress = func(string, int64, int64) {}
	}
}

func (c *Config) optimizer() optim.Config {
	return optim.Config{Kind: c.Optimizer, LR: c.LR, WeightDecay: c.WeightDecay, Decay: c.DecayLayers}
}

// resolve fills in what follows from the set.
func (c *Config) resolve(set *feed.Set) (settings, error) {
	s := settings{
		Task: set.Manifest.LabelTask, Classes: digestOf(set.ClassNames()), Metric: c.Metric, Patience: c.Patience,
		BatchSetID: set.ID.String(), SnapshotID: set.Manifest.SnapshotID.String(), BatchesEach: int(set.Manifest.BatchesPerVariant),
		Optimizer: c.optimizer(),
	}
	out, err := outputs(set)
	if err != nil {
		return s, err
	}
	if s.Split, err = set.SplitColumn(c.Split); err != nil {
		return s, err
	}
	if s.Metric == "" {
		if s.Metric, err = metrics.Default(s.Task); err != nil {
			return s, err
		}
	}
	if err := fits(s.Metric, s.Task, int(set.Manifest.NumClasses)); err != nil {
		return s, err
	}
	layers, input := c.Layers, c.InputDropout
	if layers == 0 {
		layers = set.Manifest.NumLayers
		if set.AnyDepth() {
			layers = 2
		}
	}
	if input < 0 {
		input = model.DefaultInputDropout(c.Model, c.Dropout)
	}
	s.Model = model.Config{Kind: c.Model, In: set.NumFeatures(), Hidden: c.Hidden, Out: out, Layers: layers, Dropout: c.Dropout, InputDropout: input, Seed: c.Seed}
	if set.NumFeatures() == 0 {
		return s, set.NeedFeatures(string(c.Model))
	}
	if err := s.Model.Check(); err != nil {
		return s, err
	}
	kind, _ := format.ParseCoef(c.Model.Needs())
	if err := set.NeedCoef(kind, string(c.Model)); err != nil {
		return s, err
	}
	s.EvalEvery = c.EvalEvery
	if s.EvalEvery == Auto {
		s.EvalEvery = evalEvery(set, s.Model)
	}
	return s, nil
}

// digestOf identifies a list of class names.
func digestOf(names []string) string {
	n := format.NamesOf(names)
	return fmt.Sprintf("%x", sha256.Sum256(slices.Concat(format.Bytes(n.Offsets), n.Bytes)))
}

// fits refuses a metric that the task's labels don't have.
func fits(metric metrics.Name, task string, classes int) error {
	if metric == metrics.ROCAUC && task == feed.TaskMulticlass && classes != 2 {
		return fmt.Errorf("%w: metric %s doesn't fit labels of task %s with %d classes", format.ErrMismatch, metric, task, classes)
	}
	return nil
}

// evalWork and epochWork are the work of an exact evaluation, and of an epoch's steps,
// from the manifest's counts: a step costs three forward passes; sampled edges are
// counted at the input side, where most of them are.
func evalWork(set *feed.Set, c model.Config) float64 {
	edges := float64(set.NumEdges())
	work := 0.0
	for l := range c.Layers {
		work += c.LayerWork(l, float64(set.NumNodes()), edges)
	}
	return work
}

func epochWork(set *feed.Set, c model.Config) float64 {
	m := set.Manifest
	if set.Full() {
		return 3 * evalWork(set, c)
	}
	rows, edges := float64(m.NumRows)/float64(m.Params.Variants), float64(m.NumSampledEdges)/float64(m.Params.Variants)
	if !c.Kind.UsesEdges() {
		rows = float64(m.NumSeeds)
	}
	work := c.LayerWork(0, rows, edges)
	for l := 1; l < c.Layers; l++ {
		if set.AnyDepth() && c.Kind.UsesEdges() {
			work += c.LayerWork(l, rows, edges)
		} else {
			work += c.LayerWork(l, float64(m.NumSeeds), 0)
		}
	}
	return 3 * max(work, 1)
}

// smallEval is the work of an evaluation, some seconds of a plain core at most, up to
// which one every tenth epoch is affordable whatever its share.
const smallEval = 4e9

// evalEvery returns the number of epochs from one evaluation to the next: such that
// evaluation is about a tenth of the work, and for small graphs at most 10. It depends on
// counts alone, so that a resumed run and a faster machine make the same choice.
func evalEvery(set *feed.Set, c model.Config) int {
	eval := evalWork(set, c)
	every := math.Ceil(9 * eval / epochWork(set, c))
	if eval <= smallEval {
		every = min(every, 10)
	}
	return int(min(max(every, 1), 1<<20))
}

// checkpointWork is the work of an epoch that a checkpoint may follow every time: the
// writes and syncs of one take some 27 ms (measured), an epoch of this work half a second or more.
const checkpointWork = 8e9

func checkpointEvery(set *feed.Set, c model.Config) int {
	return int(min(max(math.Ceil(checkpointWork/epochWork(set, c)), 1), 100))
}

// classError gives an error a class of package format, and so its exit code.
type classError struct {
	error
	class error
}

func (e classError) Unwrap() []error { return []error{e.error, e.class} }

// classify gives the errors of package checkpoint their class.
func classify(err error) error {
	switch {
	case errors.Is(err, checkpoint.ErrCorrupt):
		return classError{err, format.ErrChecksum}
	case errors.Is(err, checkpoint.ErrMismatch):
		return classError{err, format.ErrMismatch}
	}
	return err
}

// diff names the first field in which two settings differ, and both values; "" where
// they are equal.
func diff(saved json.RawMessage, now settings) (string, error) {
	text, err := json.Marshal(now)
	if err != nil {
		return "", err
	}
	var a, b any
	for _, p := range []struct {
		text []byte
		v    *any
	}{{saved, &a}, {text, &b}} {
		d := json.NewDecoder(bytes.NewReader(p.text))
		d.UseNumber()
		if err := d.Decode(p.v); err != nil {
			return "", err
		}
	}
	return diffValues("", a, b), nil
}

func diffValues(at string, a, b any) string {
	am, aok := a.(map[string]any)
	bm, bok := b.(map[string]any)
	if !aok || !bok {
		if fmt.Sprint(a) == fmt.Sprint(b) {
			return ""
		}
		return fmt.Sprintf("%s is %v in the run and %v now", at, a, b)
	}
	var keys []string
	for k := range am {
		keys = append(keys, k)
	}
	for k := range bm {
		if _, both := am[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		path := k
		if at != "" {
			path = at + "." + k
		}
		if d := diffValues(path, am[k], bm[k]); d != "" {
			return d
		}
	}
	return ""
}
