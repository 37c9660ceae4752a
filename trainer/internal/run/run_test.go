package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"go.uber.org/goleak"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/backend"
	"github.com/prelift/prelift/trainer/internal/backend/cpu"
	"github.com/prelift/prelift/trainer/internal/feed"
	"github.com/prelift/prelift/trainer/internal/feed/feedtest"
	"github.com/prelift/prelift/trainer/internal/metrics"
	"github.com/prelift/prelift/trainer/internal/model"
	"github.com/prelift/prelift/trainer/internal/optim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(t *testing.T, g *feedtest.Graph, p format.BatchParams) Config {
	t.Helper()
	dir := t.TempDir()
	feedtest.Write(t, filepath.Join(dir, "set"), g, p)
	return Config{
		Batches: filepath.Join(dir, "set"), Out: filepath.Join(dir, "run"),
		Model: model.GCN, Hidden: 8, Dropout: 0.5, InputDropout: -1, Optimizer: optim.Adam, LR: 0.02, DecayLayers: optim.DecayAll,
		Epochs: 6, Seed: 3, Split: -1, EvalEvery: 1, Threads: 1,
	}
}

var (
	full    = format.BatchParams{Mode: "full"}
	sampled = format.BatchParams{Mode: "fanout", Fanout: []int{3, 2}, BatchSize: 8, Variants: 2}
)

func train(t *testing.T, c Config) *Result {
	t.Helper()
	r, err := Train(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// finals reads what a run comes to: the state and its tensors, and the exports.
func finals(t *testing.T, out string) map[string]string {
	t.Helper()
	got := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(out, CheckpointDir, "epoch-*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	paths = append(paths[len(paths)-1:], filepath.Join(out, CheckpointDir, "state.json"), filepath.Join(out, BestFile), filepath.Join(out, LastFile))
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(p)] = string(b)
	}
	return got
}

// history reads metrics.jsonl without the times.
func history(t *testing.T, out string) (list []EpochRecord) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(out, MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var r EpochRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		r.Seconds = 0
		list = append(list, r)
	}
	return list
}

func sameRun(t *testing.T, what, a, b string) {
	t.Helper()
	x, y := finals(t, a), finals(t, b)
	for name, want := range x {
		if y[name] != want {
			t.Errorf("%s: %s differs", what, name)
		}
	}
	p, q := history(t, a), history(t, b)
	if pt, qt := fmt.Sprint(deref(p)), fmt.Sprint(deref(q)); pt != qt {
		t.Errorf("%s: histories differ:\n%s\n%s", what, pt, qt)
	}
}

func deref(list []EpochRecord) (s []string) {
	for _, r := range list {
		b, _ := json.Marshal(r)
		s = append(s, string(b))
	}
	return s
}

func TestTrainImproves(t *testing.T) {
	for _, task := range []string{"multiclass", "multilabel", "binary"} {
		for _, p := range []format.BatchParams{full, sampled} {
			for _, kind := range model.Kinds {
				t.Run(fmt.Sprintf("%s/%s/%s", task, p.Mode, kind), func(t *testing.T) {
					g := feedtest.Random(1, 60, 3, 9)
					switch task {
					case "multilabel":
						g.ToBits()
					case "binary":
						g = feedtest.Random(1, 60, 2, 9)
						g.Task = task
					}
					c := config(t, g, p)
					c.Model, c.Epochs, c.Dropout = kind, 30, 0.2
					r := train(t, c)
					h := history(t, c.Out)
					if first, last := *h[0].TrainLoss, *h[len(h)-1].TrainLoss; !(last < 0.8*first) {
						t.Errorf("loss went from %v to %v", first, last)
					}
					if len(h) != 30 || r.Epochs != 30 || r.Steps != int64(30*h[0].Steps) {
						t.Errorf("%d lines, %d epochs, %d steps", len(h), r.Epochs, r.Steps)
					}
					if *r.TestMetric < 0.6 || *r.ValMetric < 0.6 || r.LoadMS.P99 == 0 || r.PeakRSSBytes == 0 {
						t.Errorf("val %v, test %v, load %v", *r.ValMetric, *r.TestMetric, r.LoadMS)
					}
					want, _ := metrics.Default(task)
					best := 0
					for i, line := range h {
						if *line.ValMetric > *h[best].ValMetric {
							best = i
						}
					}
					if r.Metric != want || r.BestEpoch != best+1 || *r.ValMetric != *h[best].ValMetric {
						t.Errorf("best epoch %d with %s %v, want the first best, %d with %v", r.BestEpoch, r.Metric, *r.ValMetric, best+1, *h[best].ValMetric)
					}
					e, err := Evaluate(context.Background(), UseConfig{Run: c.Out, Batches: c.Batches, Split: -1})
					if err != nil {
						t.Fatal(err)
					}
					if *e.TestMetric != *r.TestMetric || *e.ValMetric != *r.ValMetric {
						t.Errorf("eval says %v, %v; train said %v, %v", *e.ValMetric, *e.TestMetric, *r.ValMetric, *r.TestMetric)
					}
				})
			}
		}
	}
}

// TestSameBits: thread counts, interruption, extension and how often a checkpoint is
// written change nothing (case 77).
func TestSameBits(t *testing.T) {
	g := feedtest.Random(2, 60, 3, 9)
	for _, p := range []format.BatchParams{full, sampled} {
		for _, kind := range []model.Kind{model.GCN, model.SAGE} {
			t.Run(p.Mode+"/"+string(kind), func(t *testing.T) {
				c := config(t, g, p)
				c.Model, c.Epochs, c.WeightDecay, c.EvalEvery = kind, 10, 5e-4, 2
				train(t, c)
				run := func(name string, epochs int, change func(*Config)) string {
					d := c
					d.Out, d.Epochs = filepath.Join(filepath.Dir(c.Out), name), epochs
					change(&d)
					train(t, d)
					return d.Out
				}
				resume := func(c *Config) { c.Resume = true }
				sameRun(t, "two threads", c.Out, run("threads", 10, func(c *Config) { c.Threads = 2 }))
				sameRun(t, "a checkpoint each epoch", c.Out, run("every", 10, func(c *Config) { c.CheckpointEvery = 1 }))
				run("parts", 4, func(*Config) {})
				sameRun(t, "4 + 6 epochs", c.Out, run("parts", 10, resume))
				run("more", 2, func(*Config) {})
				run("more", 3, resume)
				sameRun(t, "2 + 1 + 7 epochs", c.Out, run("more", 10, func(c *Config) { c.Resume, c.Threads = true, 2 }))
			})
		}
	}
}

// TestInterrupt cancels a run after some steps and goes on.
func TestInterrupt(t *testing.T) {
	c := config(t, feedtest.Random(3, 60, 3, 9), sampled)
	c.Epochs = 12
	train(t, c)
	d := c
	d.Out += "2"
	for attempt := 0; ; attempt++ {
		ctx, cancel := context.WithCancel(context.Background())
		d.Progress = func(step string, done, _ int64) {
			if step == "train" && done == int64(3*(attempt+1)) {
				cancel()
			}
		}
		_, err := Train(ctx, d)
		cancel()
		d.Resume = true
		if err == nil {
			break
		}
		if !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), "rerun with --resume") {
			t.Fatal(err)
		}
		if attempt > 5 {
			t.Fatal("no end")
		}
	}
	sameRun(t, "interrupted", c.Out, d.Out)
}

func TestNothingToDo(t *testing.T) {
	c := config(t, feedtest.Random(4, 60, 3, 9), full)
	first := train(t, c)
	before := snapshotOf(t, c.Out)
	c.Resume = true
	var notices []string
	c.Notice = func(s string) { notices = append(notices, s) }
	r := train(t, c)
	if !r.NothingToDo || *r.TestMetric != *first.TestMetric || !slices.ContainsFunc(notices, func(s string) bool { return strings.Contains(s, "6 of 6 epochs are done") }) {
		t.Errorf("result %+v, notices %q", r, notices)
	}
	if after := snapshotOf(t, c.Out); after != before {
		t.Error("files changed")
	}
	if err := os.Remove(filepath.Join(c.Out, ResultFile)); err != nil { // as if killed before it
		t.Fatal(err)
	}
	if r = train(t, c); *r.TestMetric != *first.TestMetric || r.NothingToDo {
		t.Errorf("made again: %+v", r)
	}
}

// TestFewerEpochs: a resume that asks for fewer epochs than are done changes nothing where
// the run has its result, and otherwise ends the run with what it has: with the loss of its
// last epoch, and params.yaml saying how many there are.
func TestFewerEpochs(t *testing.T) {
	c := config(t, feedtest.Random(4, 60, 3, 9), full)
	first := train(t, c)
	before := snapshotOf(t, c.Out)
	c.Resume, c.Epochs = true, 4
	var notices []string
	c.Notice = func(s string) { notices = append(notices, s) }
	r := train(t, c)
	if !r.NothingToDo || r.Epochs != 6 || *r.TrainLoss != *first.TrainLoss || !slices.Contains(notices, "nothing to do: 6 epochs are done already, --epochs asks for 4") {
		t.Errorf("result %+v, notices %q", r, notices)
	}
	if snapshotOf(t, c.Out) != before {
		t.Error("files changed")
	}

	c.Resume, c.Epochs, c.Out = false, 12, c.Out+"2" // interrupted after some epochs, so without a result
	ctx, cancel := context.WithCancel(context.Background())
	c.Progress = func(step string, done, _ int64) {
		if step == "train" && done == 6 {
			cancel()
		}
	}
	if _, err := Train(ctx, c); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	cancel()
	c.Resume, c.Epochs, c.Progress = true, 4, nil
	r = train(t, c)
	if r.NothingToDo || r.Epochs != 6 || r.TrainLoss == nil || *r.TrainLoss != *first.TrainLoss || r.LoadCount != 0 {
		t.Errorf("result %+v, want 6 epochs with loss %v", r, *first.TrainLoss)
	}
	if b, err := os.ReadFile(filepath.Join(c.Out, ParamsFile)); err != nil || !strings.Contains(string(b), "\nepochs: 6\n") {
		t.Errorf("params.yaml: %v\n%s", err, b)
	}
	sameRun(t, "ended early", strings.TrimSuffix(c.Out, "2"), c.Out)
}

// TestDigests: the result names the digest of the file that it names.
func TestDigests(t *testing.T) {
	c := config(t, feedtest.Random(4, 60, 3, 9), sampled)
	for range 2 {
		r := train(t, c)
		b, err := os.ReadFile(r.Checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.CheckpointID, fmt.Sprintf("%x", sha256.Sum256(b)); got != want {
			t.Errorf("checkpoint_sha256 is %s, want %s of %s", got, want, r.Checkpoint)
		}
		state, err := filepath.Glob(filepath.Join(c.Out, CheckpointDir, "epoch-*-"+r.StateID[:8]+".safetensors"))
		if err != nil || len(state) != 1 {
			t.Fatal(r.StateID, state, err)
		}
		if b, err = os.ReadFile(state[0]); err != nil || r.StateID != fmt.Sprintf("%x", sha256.Sum256(b)) {
			t.Errorf("state_sha256 is %s, not of %s (%v)", r.StateID, state[0], err)
		}
		c.Resume, c.Epochs = true, 8
	}
}

// TestKilledStart: what a run that was killed before its first checkpoint leaves isn't in
// the way of a fresh one; anything else is.
func TestKilledStart(t *testing.T) {
	c := config(t, feedtest.Random(4, 60, 3, 9), full)
	for _, x := range []struct {
		files string // in the run directory
		fine  bool
	}{
		{"checkpoint/", true}, {"checkpoint/.tensors.1.0.partial", true}, {"checkpoint/epoch-000000-01234567.safetensors checkpoint/.state.json.1.0.partial", true},
		{"checkpoint/model.pt", false}, {"checkpoint/ notes.txt", false}, {"best.safetensors", false}, {"sub/", false}, {".hidden", false},
	} {
		c.Out = filepath.Join(t.TempDir(), "run")
		for name := range strings.FieldsSeq(x.files) {
			path := filepath.Join(c.Out, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			var err error
			if strings.HasSuffix(name, "/") {
				err = os.MkdirAll(path, 0o755)
			} else {
				err = os.WriteFile(path, []byte("x"), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		before := snapshotOf(t, c.Out)
		_, err := Train(context.Background(), c)
		if (err == nil) != x.fine || !x.fine && (!strings.Contains(err.Error(), "is no run directory") || snapshotOf(t, c.Out) != before) {
			t.Errorf("%s: %v, want a run: %v", x.files, err, x.fine)
		}
	}
}

// TestInArtefact: nothing is written into an artefact, by whatever way it is named.
func TestInArtefact(t *testing.T) {
	c := config(t, feedtest.Random(4, 60, 3, 9), full)
	train(t, c)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(c.Batches, link); err != nil {
		t.Fatal(err)
	}
	before := snapshotOf(t, c.Batches)
	for _, dir := range []string{c.Batches, link, filepath.Join(c.Batches, "a", "b"), filepath.Join(link, "a"), filepath.Join(c.Batches, "..", filepath.Base(c.Batches), "a")} {
		d := c
		d.Out = dir
		if _, err := Train(context.Background(), d); err == nil || !strings.Contains(err.Error(), "in the artefact") {
			t.Errorf("train in %s: %v", dir, err)
		}
		if _, err := Predict(context.Background(), UseConfig{Run: c.Out, Batches: c.Batches, Split: -1}, filepath.Join(dir, "p.csv")); err == nil || !strings.Contains(err.Error(), "in the artefact") {
			t.Errorf("predict in %s: %v", dir, err)
		}
	}
	if snapshotOf(t, c.Batches) != before {
		t.Error("the set has changed")
	}
}

// TestLoadCounts: a result says what its load times rest on.
func TestLoadCounts(t *testing.T) {
	c := config(t, feedtest.Random(4, 60, 3, 9), sampled)
	for _, x := range []struct {
		epochs, count int // in units of an epoch's batches
		first         bool
	}{{1, 1, true}, {2, 2, true}, {5, 3, false}} {
		c.Out, c.Epochs = filepath.Join(t.TempDir(), "run"), x.epochs
		r := train(t, c)
		if each := int(r.Steps) / x.epochs; r.LoadCount != x.count*each || r.LoadFirstUse != x.first {
			t.Errorf("%d epochs: %d loads, first uses: %v; want %d, %v", x.epochs, r.LoadCount, r.LoadFirstUse, x.count*each, x.first)
		}
	}
}

// TestDamagedLater damages a record of a large set, whose records are checked at their
// first use, after the start and before its first use.
func TestDamagedLater(t *testing.T) {
	c := config(t, feedtest.Random(15, 60, 3, 9), sampled)
	c.lazy, c.CheckpointEvery, c.Epochs = true, 1, 4
	shards, err := filepath.Glob(filepath.Join(c.Batches, "batches-*.plf"))
	if err != nil || len(shards) < 2 {
		t.Fatal(shards, err)
	}
	slices.Sort(shards)
	last := shards[len(shards)-1] // of variant 1, that of epoch 2
	c.Progress = func(step string, done, _ int64) {
		if step != "train" || done != 0 {
			return
		}
		b, err := os.ReadFile(last)
		if err != nil {
			t.Error(err)
		}
		f, err := os.OpenFile(last, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
		}
		if _, err := f.WriteAt([]byte{b[len(b)-3] ^ 1}, int64(len(b)-3)); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err = Train(context.Background(), c)
	if !errors.Is(err, format.ErrChecksum) || !strings.HasPrefix(err.Error(), filepath.Base(last)+": record ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if h := history(t, c.Out); len(h) != 1 {
		t.Errorf("%d epochs were kept, want 1", len(h))
	}
	if _, err := Evaluate(context.Background(), UseConfig{Run: c.Out, Batches: config(t, feedtest.Random(15, 60, 3, 9), sampled).Batches, Split: -1}); err != nil {
		t.Errorf("the checkpoint of epoch 1: %v", err)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 epochs are", 1: "1 epoch is", 2: "2 epochs are"} {
		if got := are(n, "epoch"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// snapshotOf lists the files below a directory with size, time and content.
func snapshotOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintln(&b, path, info.Size(), info.ModTime(), string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRefusals(t *testing.T) {
	g := feedtest.Random(5, 60, 3, 9)
	c := config(t, g, full)
	c.Resume = true
	if _, err := Train(context.Background(), c); err == nil || !strings.Contains(err.Error(), "no checkpoint in "+c.Out) {
		t.Errorf("resume of nothing: %v", err)
	}
	c.Resume = false
	train(t, c)
	if _, err := Train(context.Background(), c); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a fresh run over another: %v", err)
	}
	c.Resume, c.Epochs = true, 8
	for _, x := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"lr", func(c *Config) { c.LR = 0.5 }, "optimizer.lr is 0.02 in the run and 0.5 now"},
		{"hidden", func(c *Config) { c.Hidden = 9 }, "model.hidden is 8 in the run and 9 now"},
		{"seed", func(c *Config) { c.Seed = 9 }, "model.seed is 3 in the run and 9 now"},
		{"batches", func(c *Config) {
			c.Batches = config(t, g, sampled).Batches
		}, "batch_set_id is sha256:"},
	} {
		d := c
		x.change(&d)
		before := snapshotOf(t, c.Out)
		if _, err := Train(context.Background(), d); !errors.Is(err, format.ErrMismatch) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want %q", x.name, err, x.want)
		}
		if snapshotOf(t, c.Out) != before {
			t.Errorf("%s: files changed", x.name)
		}
	}
}

// TestNoTranspose: a set without the transposes that training needs is refused at its first
// batch, with what to write instead, and not a panic.
func TestNoTranspose(t *testing.T) {
	p := sampled
	p.Transpose = "none"
	c := config(t, feedtest.Random(13, 60, 3, 9), p)
	for _, kind := range []model.Kind{model.GCN, model.SAGE} {
		c.Model, c.Out = kind, filepath.Join(t.TempDir(), "run")
		_, err := Train(context.Background(), c)
		if !errors.Is(err, format.ErrMismatch) || !errors.Is(err, model.ErrTranspose) || !strings.Contains(err.Error(), "--transpose all") || !strings.Contains(err.Error(), "batches-0000") {
			t.Errorf("%s: got %v", kind, err)
		}
	}
	c.Model, c.Out = model.MLP, filepath.Join(t.TempDir(), "run")
	train(t, c) // reads no block
}

// TestCommonestClass: a model that has learnt nothing is said to be no better than the
// commonest class, one that has learnt isn't.
func TestCommonestClass(t *testing.T) {
	notices := func(g *feedtest.Graph, change func(*Config)) (*Result, string) {
		c := config(t, g, full)
		var list []string
		c.Notice = func(s string) { list = append(list, s) }
		change(&c)
		return train(t, c), strings.Join(list, "\n")
	}
	blind := func() *feedtest.Graph { // class 1 is the commonest everywhere, and no feature tells
		g := feedtest.Random(14, 60, 3, 9)
		clear(g.Features)
		for v := range g.Class {
			if g.Class[v] >= 0 && v%3 != 0 {
				g.Class[v] = 1
			}
		}
		return g
	}
	for _, task := range []string{"multiclass", "binary"} {
		g := blind()
		if task == "binary" {
			g.Task, g.NumClasses = task, 2
			for v := range g.Class {
				g.Class[v] = min(g.Class[v], 1)
			}
		}
		r, text := notices(g, func(c *Config) { c.Metric, c.Epochs = metrics.Accuracy, 30 })
		for _, want := range []string{
			"no better than the commonest class of the train part",
			fmt.Sprintf("validation accuracy is %.4f", *r.ValMetric), fmt.Sprintf("test accuracy is %.4f", *r.TestMetric), `always predicting "class 1"`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: notices %q, want %q", task, text, want)
			}
		}
	}
	for _, x := range []struct {
		name   string
		g      *feedtest.Graph
		change func(*Config)
	}{
		{"learnt", feedtest.Random(1, 60, 3, 9), func(c *Config) { c.Epochs, c.Dropout = 30, 0.2 }},
		{"another metric", blind(), func(c *Config) { c.Metric = metrics.MacroF1 }},
		{"several labels", func() *feedtest.Graph { g := blind(); g.ToBits(); return g }(), func(c *Config) { c.Metric = metrics.Accuracy }},
		{"one class", func() *feedtest.Graph {
			g := blind()
			g.NumClasses = 1
			for v := range g.Class {
				g.Class[v] = min(g.Class[v], 0)
			}
			return g
		}(), func(*Config) {}},
	} {
		if _, text := notices(x.g, x.change); strings.Contains(text, "commonest") {
			t.Errorf("%s: notices %q", x.name, text)
		}
	}
}

func TestCommonest(t *testing.T) {
	none := make([]uint8, 6)
	train := []uint8{1, 1, 1, 1, 1, 0}
	for _, x := range []struct {
		name  string
		class []int32
		mask  []uint8
		want  int32
	}{
		{"clear", []int32{0, 2, 2, 1, 2, 0}, train, 2},
		{"equal, smaller first", []int32{1, 1, 2, 2, 0, 0}, train, 1},
		{"equal, smaller last", []int32{2, 2, 1, 1, 0, 0}, train, 1},
		{"outside the part", []int32{0, 0, 1, 1, 1, 1}, []uint8{1, 1, 1, 0, 0, 0}, 0},
		{"no node", []int32{0, 0, 1, 1, 1, 1}, none, -1},
		{"no part", []int32{0, 0, 1, 1, 1, 1}, nil, -1},
		{"no classes", nil, train, -1},
	} {
		j := &judge{class: x.class}
		j.masks[format.PartTrain] = x.mask
		if got := j.commonest(format.PartTrain); got != x.want {
			t.Errorf("%s: class %d, want %d", x.name, got, x.want)
		}
	}
	j := &judge{class: []int32{0, 1, 1, 2, 1, 1}}
	j.masks[format.PartTest], j.counts[format.PartTest] = []uint8{1, 1, 1, 1, 0, 0}, 4
	if got := j.share(1, format.PartTest); got != 0.5 {
		t.Errorf("share %v, want 0.5", got)
	}
}

func TestDiverged(t *testing.T) {
	c := config(t, feedtest.Random(6, 60, 3, 9), full)
	c.LR, c.Optimizer, c.WeightDecay, c.Epochs = 1e5, optim.AdamW, 1e5, 200 // each step multiplies the weights by -1e10
	_, err := Train(context.Background(), c)
	if !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "epoch") {
		t.Fatalf("got %v", err)
	}
	d, err := openDir(c.Out)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	loaded, err := d.load()
	if err != nil || loaded == nil {
		t.Fatal("no checkpoint is left", err)
	}
	for _, tensor := range loaded.Tensors.Tensors {
		values, err := tensor.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if v-v != 0 {
				t.Fatalf("%s of epoch %d holds %v", tensor.Name, loaded.State.Epoch, v)
			}
		}
	}
}

// TestTorn is case 79: each damage to the latest checkpoint falls back to the previous one
// and says so; damage to both is an error that names the file.
func TestTorn(t *testing.T) {
	c := config(t, feedtest.Random(7, 60, 3, 9), full)
	c.CheckpointEvery = 1
	train(t, c)
	want := finals(t, c.Out)
	latest, err := filepath.Glob(filepath.Join(c.Out, CheckpointDir, "epoch-000006-*"))
	if err != nil || len(latest) != 1 {
		t.Fatal(latest, err)
	}
	c.Resume = true
	whole := c.Out
	for _, path := range []string{latest[0], filepath.Join(c.Out, CheckpointDir, "state.json")} {
		name := filepath.Base(path)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, len(good) / 2, len(good) - 1} {
			c.Out = filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(c.Out, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(filepath.Join(c.Out, CheckpointDir, name), int64(n)); err != nil {
				t.Fatal(err)
			}
			var notices []string
			c.Notice = func(s string) { notices = append(notices, s) }
			train(t, c)
			if !slices.ContainsFunc(notices, func(s string) bool {
				return strings.Contains(s, name) && strings.Contains(s, "previous checkpoint, epoch 5")
			}) {
				t.Errorf("%s cut to %d: notices %q", name, n, notices)
			}
			for name, b := range finals(t, c.Out) {
				if b != want[name] {
					t.Errorf("%s cut to %d: %s differs after the resume", name, n, name)
				}
			}
		}
	}
	c.Out = whole
	for _, name := range []string{"state.json", "previous.json"} {
		if err := os.Truncate(filepath.Join(c.Out, CheckpointDir, name), 5); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Train(context.Background(), c); !format.IsCorrupt(err) || !strings.Contains(err.Error(), "state.json") {
		t.Errorf("both damaged: %v", err)
	}
}

func TestEarlyStopping(t *testing.T) {
	c := config(t, feedtest.Random(8, 60, 3, 9), full)
	c.Epochs, c.Patience = 500, 5
	r := train(t, c)
	if r.Epochs == 500 || r.Epochs-r.BestEpoch != 5 {
		t.Fatalf("%d epochs, the best was %d", r.Epochs, r.BestEpoch)
	}
	d := c
	d.Out, d.Epochs = d.Out+"2", r.Epochs-3
	train(t, d)
	d.Resume, d.Epochs = true, 500
	if again := train(t, d); again.Epochs != r.Epochs || *again.TestMetric != *r.TestMetric {
		t.Errorf("resumed it stops after %d epochs, want %d", again.Epochs, r.Epochs)
	}
	c.Resume = true
	if again := train(t, c); !again.NothingToDo {
		t.Error("a stopped run goes on")
	}
}

// TestNoValidation: no metric is made up (case 42), and the last epoch counts.
func TestNoValidation(t *testing.T) {
	g := feedtest.Random(9, 60, 3, 9)
	for v, part := range g.Parts[0] {
		if part == uint8(format.PartValid) {
			g.Parts[0][v] = 0
		}
	}
	c := config(t, g, full)
	r := train(t, c)
	if r.ValMetric != nil || r.BestEpoch != 6 || r.TestMetric == nil {
		t.Errorf("val %v, best epoch %d, test %v", r.ValMetric, r.BestEpoch, r.TestMetric)
	}
	b, err := os.ReadFile(filepath.Join(c.Out, MetricsFile))
	if err != nil || strings.Count(string(b), `"val_metric":null`) != 6 {
		t.Errorf("metrics: %s %v", b, err)
	}
	p := sampled
	p.Eval = "none"
	c = config(t, feedtest.Random(9, 60, 3, 9), p)
	if r := train(t, c); r.ValMetric != nil || r.TestMetric != nil || r.BestEpoch != 6 {
		t.Errorf("without evaluation blocks: %+v", r)
	}
}

// forward computes the logits of all nodes in one forward pass over the whole graph.
func forward(t *testing.T, g *feedtest.Graph, m *model.Model, b backend.Backend) []float32 {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "full")
	feedtest.Write(t, dir, g, full)
	s, err := feed.Open(context.Background(), dir, feed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	kind, _ := format.ParseCoef(m.Needs())
	l, err := s.NewLoader(feed.LoaderOptions{Coef: kind, Layers: m.Config().Layers, Features: true})
	if err != nil {
		t.Fatal(err)
	}
	stream := l.Stream(context.Background(), 0, 1)
	defer stream.Close()
	batch, err := stream.Next()
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Release()
	b.ResetScratch()
	logits := m.Forward(model.Batch{Blocks: batch.Blocks, Coefs: batch.Coefs, X: b.Wrap(batch.Features, batch.NumNodes, g.NumFeature)}, false, 0)
	out := make([]float32, logits.Rows*logits.Cols)
	if err := b.Download(out, logits); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLayerwise holds evaluation in blocks to one forward pass over the whole graph. The
// sums have at most some 20 terms of size 1, in another order where only one of the two
// transforms first: 1e-5 is a few hundred float32 roundings.
func TestLayerwise(t *testing.T) {
	g := feedtest.Random(10, 60, 3, 9)
	for _, kind := range []model.Kind{model.GCN, model.SAGE} {
		for _, hidden := range []int{4, 20} {
			for _, limit := range []int64{0, 1} { // heap, scratch files
				dir := filepath.Join(t.TempDir(), "set")
				feedtest.Write(t, dir, g, sampled)
				s, err := feed.Open(context.Background(), dir, feed.Options{})
				if err != nil {
					t.Fatal(err)
				}
				b := cpu.New(cpu.Options{Threads: 2})
				m, err := model.New(b, model.Config{Kind: kind, In: 9, Hidden: hidden, Out: 3, Layers: 3, Seed: 2, Dropout: 0.5})
				if err != nil {
					t.Fatal(err)
				}
				a := activations{dir: t.TempDir(), limit: limit}
				e, err := newEvaluator(s, b, m, &a)
				if err != nil {
					t.Fatal(err)
				}
				got, err := e.logits(context.Background(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if (len(a.mapped) > 0) != (limit > 0) {
					t.Errorf("%d scratch files with limit %d", len(a.mapped), limit)
				}
				for i, want := range forward(t, g, m, b) {
					if math.Abs(float64(got[i]-want)) > 1e-5 {
						t.Fatalf("%s hidden %d: logit %d is %v, want %v", kind, hidden, i, got[i], want)
					}
				}
				if err := errors.Join(a.close(), b.Close(), s.Close()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestZeroParameters: all-zero logits give ln(classes), over labelled nodes only (cases
// 40, 53).
func TestZeroParameters(t *testing.T) {
	for _, x := range []struct {
		classes int
		task    string
		want    float64
	}{{3, "multiclass", math.Log(3)}, {2, "multiclass", math.Ln2}, {2, "binary", math.Ln2}} {
		for _, p := range []format.BatchParams{full, sampled} {
			g := feedtest.Random(11, 60, x.classes, 9)
			g.Task = x.task
			c := config(t, g, p)
			c.Notice, c.Progress = func(string) {}, func(string, int64, int64) {}
			tr := &trainer{c: c}
			if err := tr.open(context.Background()); err != nil {
				t.Fatal(err)
			}
			stream := tr.loader.Stream(context.Background(), 0, 1)
			sum, count := 0.0, int64(0)
			for last := false; !last; {
				for _, param := range tr.m.Params() {
					tr.b.Zero(param.Value)
				}
				batch, err := stream.Next()
				if err != nil {
					t.Fatal(err)
				}
				last = batch.Last
				s, n, err := tr.step(batch)
				if err != nil {
					t.Fatal(err)
				}
				batch.Release()
				sum, count = sum+s, count+n
			}
			stream.Close()
			if err := tr.close(); err != nil {
				t.Fatal(err)
			}
			seeds := int64(0)
			for v, part := range g.Parts[0] {
				if part == 1 && g.Class[v] >= 0 {
					seeds++
				}
			}
			if got := sum / float64(count); count != seeds || math.Abs(got-x.want) > 1e-6 {
				t.Errorf("%s of %d classes, %s: loss %v over %d nodes, want %v over %d", x.task, x.classes, p.Mode, got, count, x.want, seeds)
			}
		}
	}
}

// TestPerNode is case 53: 4, 4 and 0 right of batches of 4, 4 and 2 are 0.8, since an
// evaluation counts nodes and not batches.
func TestPerNode(t *testing.T) {
	g := feedtest.FromEdges(12, [][2]int32{{0, 1}})
	g.Task, g.NumClasses, g.NumFeature, g.Features = "multiclass", 2, 1, make([]float32, 12)
	part := make([]uint8, 12)
	for v := range 12 {
		g.Class = append(g.Class, int32(v%2))
		part[v] = 1
	}
	part[10], part[11] = 3, 3
	g.Parts = [][]uint8{part}
	dir := filepath.Join(t.TempDir(), "set")
	m, _ := feedtest.Write(t, dir, g, format.BatchParams{Mode: "fanout", Fanout: []int{1}, BatchSize: 4})
	if m.NumBatches != 3 || m.NumSeeds != 10 {
		t.Errorf("%d batches, %d seeds; want 3 and 10", m.NumBatches, m.NumSeeds)
	}
	s, err := feed.Open(context.Background(), dir, feed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	j, err := newJudge(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	logits := make([]float32, 24)
	for v := range 12 {
		guess := v % 2
		if v >= 8 {
			guess = 1 - guess
		}
		logits[2*v+guess] = 1
	}
	if v, err := j.value(metrics.Accuracy, logits, 2, format.PartTrain); err != nil || *v != 0.8 {
		t.Errorf("accuracy %v, %v; want 0.8", v, err)
	}
	if v, err := j.value(metrics.Accuracy, logits, 2, format.PartValid); err != nil || v != nil {
		t.Errorf("accuracy of an empty part: %v, %v", v, err)
	}
}

// TestNoEdges is case 33: two nodes, no edge.
func TestNoEdges(t *testing.T) {
	g := feedtest.FromEdges(2, nil)
	g.Task, g.NumClasses, g.NumFeature, g.Features, g.Class = "multiclass", 2, 2, []float32{1, 2, 3, 4}, []int32{0, 1}
	g.Parts = [][]uint8{{1, 1}}
	for _, kind := range []model.Kind{model.GCN, model.SAGE} {
		for _, p := range []format.BatchParams{full, {Mode: "fanout", Fanout: []int{2, 2}, BatchSize: 1}} {
			c := config(t, g, p)
			c.Model = kind
			if r := train(t, c); !(*r.TrainLoss > 0) || math.IsInf(*r.TrainLoss, 0) {
				t.Errorf("%s %s: loss %v", kind, p.Mode, *r.TrainLoss)
			}
		}
	}
}

func TestPredict(t *testing.T) {
	for _, task := range []string{"multiclass", "binary", "multilabel"} {
		t.Run(task, func(t *testing.T) {
			g := feedtest.Random(12, 60, 3, 9)
			switch task {
			case "binary":
				g = feedtest.Random(12, 60, 2, 9)
				g.Task = task
			case "multilabel":
				g.ToBits()
			}
			c := config(t, g, full)
			train(t, c)
			dir := t.TempDir()
			for _, name := range []string{"p.parquet", "p.csv"} {
				p, err := Predict(context.Background(), UseConfig{Run: c.Out, Batches: c.Batches, Split: -1}, filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				if p.NumNodes != 60 || p.BestEpoch == 0 {
					t.Errorf("%+v", p)
				}
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 2 {
				t.Errorf("%v %v", entries, err)
			}
			b, err := os.ReadFile(filepath.Join(dir, "p.csv"))
			if err != nil {
				t.Fatal(err)
			}
			rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) != 61 || rows[1][0] != "n000" {
				t.Fatalf("%d rows, first %v", len(rows), rows[1])
			}
			if got := readParquet(t, filepath.Join(dir, "p.parquet")); fmt.Sprint(got) != fmt.Sprint(rows) {
				t.Errorf("Parquet and CSV differ:\n%v\n%v", got[:2], rows[:2])
			}
		})
	}
}

// readParquet reads a table as text, header first.
func readParquet(t *testing.T, path string) (rows [][]string) {
	t.Helper()
	f, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := r.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	rows = make([][]string, table.NumRows()+1)
	for c := range int(table.NumCols()) {
		rows[0] = append(rows[0], table.Schema().Field(c).Name)
		i := 1
		for _, chunk := range table.Column(c).Data().Chunks() {
			for k := range chunk.Len() {
				text := chunk.ValueStr(k)
				if f, ok := chunk.(*array.Float32); ok {
					text = strings.TrimSuffix(fmt.Sprint(f.Value(k)), ".0")
				}
				rows[i] = append(rows[i], text)
				i++
			}
		}
	}
	return rows
}

func TestPredictMismatch(t *testing.T) {
	c := config(t, feedtest.Random(13, 60, 3, 9), full)
	train(t, c)
	for name, g := range map[string]*feedtest.Graph{"features": feedtest.Random(13, 60, 3, 8), "classes": feedtest.Random(13, 60, 4, 9)} {
		other := config(t, g, full)
		out := filepath.Join(t.TempDir(), "p.parquet")
		if _, err := Predict(context.Background(), UseConfig{Run: c.Out, Batches: other.Batches, Split: -1}, out); !errors.Is(err, format.ErrMismatch) || !strings.Contains(err.Error(), name) {
			t.Errorf("other %s: %v", name, err)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("other %s: a file is left", name)
		}
	}
}

func TestBench(t *testing.T) {
	for _, p := range []format.BatchParams{full, sampled} {
		c := config(t, feedtest.Random(14, 60, 3, 9), p)
		r, err := Bench(context.Background(), BenchConfig{Batches: c.Batches})
		if err != nil {
			t.Fatal(err)
		}
		if r.FirstUse.Count != r.NumBatches || r.LaterUse.Count < benchLoads/2 || r.Bytes == 0 || r.FirstUseGBs == 0 {
			t.Errorf("%s: %+v", p.Mode, r)
		}
	}
}

// TestTruncatedWhileTraining cuts files under a run: an error that names the file.
func TestTruncatedWhileTraining(t *testing.T) {
	for _, name := range []string{"batches-00000.plf", "features.plf"} {
		c := config(t, feedtest.Random(15, 60, 3, 300), full)
		c.Epochs = 1000
		c.Progress = func(step string, done, _ int64) {
			if step == "train" && done == 3 {
				if err := os.Truncate(filepath.Join(c.Batches, name), 100); err != nil {
					t.Error(err)
				}
			}
		}
		if _, err := Train(context.Background(), c); !errors.Is(err, format.ErrTruncated) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	feedtest.Write(t, dir, feedtest.Random(16, 60, 3, 9), full)
	s, err := feed.Open(context.Background(), dir, feed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := model.Config{Kind: model.GCN, In: 9, Hidden: 16, Out: 3, Layers: 2}
	if got := evalEvery(s, c); got != 3 {
		t.Errorf("a full set is evaluated every %d epochs, want 3: a third of an epoch's work each", got)
	}
	if got := checkpointEvery(s, c); got != 100 {
		t.Errorf("tiny epochs have a checkpoint every %d, want 100", got)
	}
}
