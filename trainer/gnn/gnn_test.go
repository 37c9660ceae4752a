package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/trainer/internal/feed/feedtest"
)

// asCommand makes the test binary behave as trainer-gnn, for tests that need a process
// of their own.
const asCommand = "PRELIFT_TEST_TRAINER"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// child starts trainer-gnn as a process.
func child(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// call runs trainer-gnn in this process.
func call(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Main(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func makeSet(t *testing.T, g *feedtest.Graph, p format.BatchParams) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "set")
	feedtest.Write(t, dir, g, p)
	return dir
}

var (
	full    = format.BatchParams{Mode: "full"}
	sampled = format.BatchParams{Mode: "fanout", Fanout: []int{3, 2}, BatchSize: 8, Variants: 2}
)

func TestTrainEvalPredict(t *testing.T) {
	set := makeSet(t, feedtest.Random(1, 60, 3, 9), sampled)
	out := filepath.Join(t.TempDir(), "run")
	code, text, errs := call("train", "--json", "--batches", set, "--out", out, "--model", "sage", "--hidden", "8", "--epochs", "5", "--eval-every", "1", "--threads", "2")
	if code != command.ExitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var result map[string]any
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		t.Fatalf("standard output isn't one JSON object: %v\n%s", err, text)
	}
	for _, key := range []string{"snapshot_id", "batch_set_id", "task", "metric", "epochs", "best_epoch", "val_metric", "test_metric", "epoch_seconds",
		"load_ms", "stall_fraction", "peak_rss_bytes", "threads", "kernel_set", "checkpoint"} {
		if result[key] == nil {
			t.Errorf("no %s in the result", key)
		}
	}
	load, _ := result["load_ms"].(map[string]any)
	if load["p50"] == nil || load["p99"] == nil {
		t.Errorf("load_ms is %v", result["load_ms"])
	}
	for _, args := range [][]string{
		{"eval", "--run", out, "--batches", set},
		{"predict", "--run", out, "--batches", set, "--out", filepath.Join(out, "p.parquet")},
		{"bench", "--batches", set},
	} {
		if code, text, errs := call(append(args, "--json")...); code != command.ExitDone || !json.Valid([]byte(text)) {
			t.Errorf("%v: exit %d, %s, %s", args, code, text, errs)
		}
		if code, text, errs := call(args...); code != command.ExitDone || text == "" {
			t.Errorf("%v: exit %d, %s, %s", args, code, text, errs)
		}
	}
	if code, text, errs := call("train", "--batches", set, "--out", out, "--resume"); code != command.ExitDone || !strings.Contains(errs, "nothing to do: 5 of 5 epochs") {
		t.Errorf("resume at the end, flags from params.yaml: exit %d, %s, %s", code, text, errs)
	}
	if code, _, errs := call("train", "--batches", set, "--out", out, "--resume", "--epochs", "7"); code != command.ExitDone {
		t.Errorf("more epochs: exit %d, %s", code, errs)
	}
	var params map[string]any
	b, err := os.ReadFile(filepath.Join(out, "params.yaml"))
	if err != nil || yaml.Unmarshal(b, &params) != nil || params["epochs"] != 7 || params["hidden"] != 8 {
		t.Errorf("params.yaml: %v %s", err, b)
	}
	again := filepath.Join(t.TempDir(), "again")
	if code, _, errs := call("train", "--batches", set, "--out", again, "--config", filepath.Join(out, "params.yaml")); code != command.ExitDone {
		t.Errorf("params.yaml as --config: exit %d, %s", code, errs)
	}
	if one, two := read(t, filepath.Join(out, "last.safetensors")), read(t, filepath.Join(again, "last.safetensors")); one != two {
		t.Error("params.yaml as --config makes another run")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestExitCodes(t *testing.T) {
	set := makeSet(t, feedtest.Random(2, 60, 3, 9), full)
	gcnOnly := makeSet(t, feedtest.Random(2, 60, 3, 9), format.BatchParams{Mode: "full", Norm: []string{"gcn"}})
	deep := makeSet(t, feedtest.Random(2, 60, 3, 9), sampled)
	damaged := makeSet(t, feedtest.Random(2, 60, 3, 9), full)
	if err := os.Truncate(filepath.Join(damaged, "batches-00000.plf"), 300); err != nil {
		t.Fatal(err)
	}
	bare := feedtest.Random(2, 60, 3, 9)
	bare.Task, bare.NumClasses, bare.Class = "", 0, make([]int32, bare.N())
	unlabelled := makeSet(t, bare, full)
	trained := filepath.Join(t.TempDir(), "trained")
	if code, _, errs := call("train", "--batches", set, "--out", trained, "--epochs", "1"); code != command.ExitDone {
		t.Fatal(errs)
	}
	out := filepath.Join(t.TempDir(), "run")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", command.ExitDone, ""},
		{"train", command.ExitUsage, "--out is needed"},
		{"train --out " + out, command.ExitUsage, "--batches is needed"},
		{"train --batches x --out " + out + " --model gat", command.ExitUsage, `--model "gat": want gcn, sage or mlp`},
		{"train --batches x --out " + out + " --dropout 1.5", command.ExitUsage, "--dropout 1.5: want a number from 0 to below 1"},
		{"train --batches x --out " + out + " --lr -1", command.ExitUsage, "--lr -1: want a number above 0 and at most 1e+06"},
		{"train --batches x --out " + out + " --metric auc", command.ExitUsage, `--metric "auc": want accuracy, macro-f1`},
		{"train --batches x --out " + out + " --metric mae", command.ExitUsage, `--metric "mae": want accuracy, macro-f1, micro-f1 or roc-auc`},
		{"train --batches x --out " + out + " --epochs 0", command.ExitUsage, "--epochs 0: want 1 or more"},
		{"train --batches x --out " + out + " --hidden 0", command.ExitUsage, "error: --hidden 0: want 1 or more; run `trainer-gnn train --help`"},
		{"train --batches x --out " + out + " --hidden 2000000000", command.ExitUsage, "--hidden 2000000000: want at most 65536"},
		{"train --batches x --out " + out + " --layers -1", command.ExitUsage, "--layers -1: want 0 or more"},
		{"train --batches x --out " + out + " --layers 1000", command.ExitUsage, "--layers 1000: want at most"},
		{"train --batches x --out " + out + " --patience -1", command.ExitUsage, "--patience -1: want 0 or more"},
		{"train --batches x --out " + out + " --eval-every -1", command.ExitUsage, "--eval-every -1: want 0 or more"},
		{"train --batches x --out " + out + " --checkpoint-every -1", command.ExitUsage, "--checkpoint-every -1: want 0 or more"},
		{"train --batches x --out " + out + " --lr inf", command.ExitUsage, "--lr +Inf: want a number above 0 and at most 1e+06"},
		{"train --batches x --out " + out + " --lr 1e9", command.ExitUsage, "--lr 1e+09: want a number above 0 and at most 1e+06"},
		{"train --batches x --out " + out + " --lr nan", command.ExitUsage, "--lr NaN: want"},
		{"train --batches x --out " + out + " --weight-decay -1", command.ExitUsage, "--weight-decay -1: want a number from 0 to 1e+06"},
		{"train --batches x --out " + out + " --input-dropout 1", command.ExitUsage, "--input-dropout 1: want a number below 1"},
		{"train --batches x --out " + out + " --input-dropout nan", command.ExitUsage, "--input-dropout NaN: want"},
		{"train --batches x --out " + out + " --optimizer sgd", command.ExitUsage, `--optimizer "sgd": want adam or adamw`},
		{"train --batches x --out " + out + " --weight-decay-layers x", command.ExitUsage, `--weight-decay-layers "x": want all or first`},
		{"train --batches x --out " + out + " --device cuda:0", command.ExitUsage, "--device cuda:0: this build has no CUDA"},
		{"train --batches x --out " + out + " --device tpu", command.ExitUsage, `"tpu" is not known`},
		{"train --batches x --out " + out + " --pin-snapshot abc", command.ExitUsage, "--pin-snapshot"},
		{"train --nonsense", command.ExitUsage, "--nonsense"},
		{"train x", command.ExitUsage, ""},
		{"nonsense", command.ExitUsage, "nonsense"},
		{"train --mem 4X --batches x --out " + out, command.ExitUsage, "4X"},
		{"train --batches " + filepath.Join(set, "nothing") + " --out " + out, command.ExitCorrupt, "set/nothing: incomplete artefact: no such directory"},
		{"eval --batches " + filepath.Join(set, "nothing") + " --run " + trained, command.ExitCorrupt, "set/nothing: incomplete artefact: no such directory"},
		{"bench --batches " + filepath.Join(set, "nothing"), command.ExitCorrupt, "set/nothing: incomplete artefact: no such directory"},
		{"train --batches " + unlabelled + " --out " + out, command.ExitMismatch, "no labels to train on; give `precompute snapshot --labels`"},
		{"train --batches " + damaged + " --out " + out, command.ExitCorrupt, "batches-00000.plf: truncated: 300 bytes"},
		{"train --batches " + gcnOnly + " --model sage --out " + out, command.ExitMismatch, "precompute batches --norm gcn,mean"},
		{"train --batches " + deep + " --layers 3 --out " + out, command.ExitMismatch, "the model has 3 layers, the batches 2"},
		{"train --batches " + set + " --metric roc-auc --out " + out, command.ExitMismatch, "roc-auc"},
		{"train --batches " + set + " --split 1 --out " + out, command.ExitMismatch, "split column 1 of 1"},
		{"train --batches " + set + " --pin-snapshot sha256:" + strings.Repeat("0", 64) + " --out " + out, command.ExitMismatch, "--pin-snapshot asks for"},
		{"train --batches " + set + " --resume --out " + out, command.ExitCorrupt, "no checkpoint in " + out},
		{"eval --batches " + set + " --run " + out, command.ExitCorrupt, "no checkpoint in " + out},
		{"predict --batches " + set + " --run " + out, command.ExitUsage, "--out is needed"},
		{"predict --batches " + set + " --run " + trained + " --out " + out + "/p.json", command.ExitUsage, "p.json: want a name ending in .parquet or .csv"},
		{"predict --batches " + set + " --run " + trained + " --out " + out + "/p.csv.gz", command.ExitUsage, "p.csv.gz: want a name ending in .parquet or .csv"},
		{"predict --batches " + set + " --run " + trained + " --out " + out + "/p", command.ExitUsage, "want a name ending in .parquet or .csv"},
		{"predict --batches " + set + " --run " + trained + " --out " + trained, command.ExitUsage, "is a directory; name a file"},
		{"predict --batches " + set + " --run " + trained + " --out " + set + "/p.csv", command.ExitFailed, "lies in the artefact " + set},
		{"predict --batches " + set + " --run " + trained + " --out " + trained + "/params.yaml/p.csv", command.ExitFailed, "params.yaml: not a directory"},
		{"train --batches " + set + " --out " + set, command.ExitFailed, "lies in the artefact " + set},
		{"train --batches " + set + " --out " + set + "/sub/run", command.ExitFailed, "lies in the artefact " + set},
	} {
		code, text, errs := call(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, want %d: %s", c.args, code, c.code, errs)
		}
		if c.code != command.ExitDone && (strings.Count(errs, "\n") != 1 || text != "") {
			t.Errorf("%s: not one line: %s%s", c.args, errs, text)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refused run left its directory")
	}
}

// TestForeignOut: a directory of anything but a run is left as it is.
func TestForeignOut(t *testing.T) {
	set := makeSet(t, feedtest.Random(7, 60, 3, 9), full)
	mine := filepath.Join(t.TempDir(), "mine")
	if err := os.Mkdir(mine, 0o755); err != nil {
		t.Fatal(err)
	}
	params := filepath.Join(mine, "params.yaml")
	if err := os.WriteFile(params, []byte("train:\n  epochs: 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, errs := call("train", "--batches", set, "--out", mine)
	if want := mine + " exists, is not empty and is no run directory; name another --out or remove it\n"; code != command.ExitFailed || !strings.HasSuffix(errs, want) || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit %d, %q, want 1 and %q", code, errs, want)
	}
	if code, _, errs := call("train", "--batches", set, "--out", mine, "--resume"); code != command.ExitCorrupt || !strings.Contains(errs, "no checkpoint in "+mine) {
		t.Errorf("resume: exit %d, %s", code, errs)
	}
	if code, _, errs := call("train", "--batches", set, "--out", params); code != command.ExitFailed || !strings.Contains(errs, params+" is a file") {
		t.Errorf("a file: exit %d, %s", code, errs)
	}
	entries, err := os.ReadDir(mine)
	if err != nil || len(entries) != 1 || read(t, params) != "train:\n  epochs: 3\n" {
		t.Errorf("the directory has changed: %v, %v, %s", entries, err, read(t, params))
	}
}

// TestDivergedCommand: a loss that is no number ends in exit code 1 with epoch and batch,
// and leaves the checkpoint before.
func TestDivergedCommand(t *testing.T) {
	g := feedtest.Random(8, 60, 3, 9)
	for i := range g.Features {
		g.Features[i] = 3e38
	}
	set := makeSet(t, g, sampled)
	out := filepath.Join(t.TempDir(), "run")
	code, text, errs := call("train", "--json", "--batches", set, "--out", out, "--epochs", "5")
	if code != command.ExitFailed || text != "" || !strings.Contains(errs, "training has diverged: loss is NaN in epoch 1, batch ") {
		t.Errorf("exit %d, %s%s", code, text, errs)
	}
	if st := read(t, filepath.Join(out, "checkpoint", "state.json")); !strings.Contains(st, `"epoch": 0,`) {
		t.Errorf("the checkpoint left is %s", st)
	}
}

// TestPredictFolder: a missing directory of --out is made.
func TestPredictFolder(t *testing.T) {
	set := makeSet(t, feedtest.Random(9, 60, 3, 9), full)
	out := filepath.Join(t.TempDir(), "run")
	if code, _, errs := call("train", "--batches", set, "--out", out, "--epochs", "1"); code != command.ExitDone {
		t.Fatal(errs)
	}
	for _, name := range []string{"p.csv", "p.parquet"} {
		path := filepath.Join(t.TempDir(), "a", "b", name)
		code, text, errs := call("predict", "--run", out, "--batches", set, "--out", path)
		if info, err := os.Stat(path); code != command.ExitDone || err != nil || info.Size() == 0 || !strings.HasPrefix(text, "60 rows in "+path) {
			t.Errorf("%s: exit %d, %s%s, %v", name, code, text, errs, err)
		}
	}
}

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]string{0: "0 ms", 0.00001234: "0.0123 ms", 0.0123: "12.3 ms", 0.0999: "99.9 ms", 0.1: "0.10 s", 12.345: "12.35 s"} {
		if got := seconds(s); got != want {
			t.Errorf("%v: %q, want %q", s, got, want)
		}
	}
}

func TestTrainHelp(t *testing.T) {
	_, text, _ := call("train", "--help")
	for _, want := range []string{"[--model gcn|sage|mlp (default gcn)]", `gcn, sage or mlp (default "gcn")`} {
		if !strings.Contains(text, want) {
			t.Errorf("help lacks %q:\n%s", want, text)
		}
	}
	if _, text, _ := call("predict", "--help"); !strings.Contains(text, "node order") || !strings.Contains(text, "float32") {
		t.Errorf("help of predict:\n%s", text)
	}
}

// TestResumeParams: what a run's params.yaml gives is held to the rules of --config.
func TestResumeParams(t *testing.T) {
	set := makeSet(t, feedtest.Random(6, 60, 3, 9), full)
	out := filepath.Join(t.TempDir(), "run")
	if code, _, errs := call("train", "--batches", set, "--out", out, "--hidden", "8", "--epochs", "2", "--lr", "0.02"); code != command.ExitDone {
		t.Fatal(errs)
	}
	path := filepath.Join(out, "params.yaml")
	good := read(t, path)
	for _, c := range []struct {
		name, old, new, want string
		code                 int
	}{
		{"as it is", "", "", "nothing to do", command.ExitDone},
		{"changed", "lr: 0.02", "lr: 0.03", "optimizer.lr is 0.02 in the run and 0.03 now", command.ExitMismatch},
		{"several bad values", "hidden: 8", "hidden: x\nlayers: y", path + ": --hidden: ", command.ExitUsage}, // the first by name
		{"unknown", "lr: 0.02", "lr: 0.02\nrl: 1", path + ": trainer-gnn has no flag --rl", command.ExitUsage},
		{"no YAML", "lr: 0.02", "{", path + ": yaml", command.ExitUsage},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		if c.name == "several bad values" {
			bad = strings.Replace(bad, "layers: 2\n", "", 1)
		}
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			code, _, errs := call("train", "--batches", set, "--out", out, "--resume")
			if code != c.code || !strings.Contains(errs, c.want) || c.code != command.ExitDone && strings.Count(errs, "\n") != 1 {
				t.Errorf("%s: exit %d, want %d with %q: %s", c.name, code, c.code, c.want, errs)
			}
		}
	}
}

// TestDamagedSet is case 54 as a process: each file, each damage, in the order in which
// the case's script makes them. No signal, no trace, the file is named.
func TestDamagedSet(t *testing.T) {
	set := makeSet(t, feedtest.Random(3, 40, 3, 5), sampled)
	entries, err := os.ReadDir(set)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(set, e.Name())
		good := read(t, path)
		half := len(good) / 2
		flipped := []byte(good)
		copy(flipped[half:], "\377\000\125")
		for name, bad := range map[string]string{"1": good[:1], "7": good[:7], "half": good[:half], "short": good[:len(good)-1], "plus": good + "x", "flip": string(flipped)} {
			if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
				t.Fatal(err)
			}
			code, _, errs := call("train", "--batches", set, "--out", filepath.Join(t.TempDir(), "run"), "--epochs", "1")
			if code != command.ExitCorrupt || !strings.Contains(errs, e.Name()) || strings.Count(errs, "\n") != 1 {
				t.Errorf("%s, %s: exit %d, %s", e.Name(), name, code, errs)
			}
		}
		if err := os.WriteFile(path, []byte(good), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKill kills a run at several moments, resumes it each time, and compares its final
// files with those of an undisturbed run.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a dozen processes")
	}
	set := makeSet(t, feedtest.Random(4, 200, 3, 40), sampled)
	dir := t.TempDir()
	args := func(out string) []string {
		return []string{"train", "--batches", set, "--out", filepath.Join(dir, out), "--model", "sage", "--hidden", "64", "--epochs", "60", "--checkpoint-every", "3", "--eval-every", "2", "--threads", "1"}
	}
	start := time.Now()
	if b, err := child(args("whole")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	whole := time.Since(start)
	kills := 0
	for attempt := 0; ; attempt++ {
		a := args("killed")
		if _, err := os.Stat(filepath.Join(dir, "killed", "checkpoint", "state.json")); err == nil {
			a = append(a, "--resume")
		}
		cmd := child(a...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if attempt < 8 { // at moments spread over start, training and end
			time.Sleep(whole * time.Duration(attempt*37%100) / 160)
			if attempt%3 == 2 {
				_ = cmd.Process.Signal(syscall.SIGINT)
			} else {
				_ = cmd.Process.Kill()
			}
		}
		err := cmd.Wait()
		if err == nil {
			break
		}
		kills++
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.Exited() && !strings.Contains(errs.String(), "interrupted") {
			t.Fatalf("attempt %d: %v: %s", attempt, err, errs.String())
		}
		if strings.Contains(errs.String(), "goroutine") {
			t.Fatalf("attempt %d: %s", attempt, errs.String())
		}
	}
	if kills == 0 {
		t.Log("no kill came before the end")
	}
	for _, name := range []string{"best.safetensors", "last.safetensors", "checkpoint/state.json", "params.yaml"} {
		if read(t, filepath.Join(dir, "whole", name)) != read(t, filepath.Join(dir, "killed", name)) {
			t.Errorf("%s differs after %d kills", name, kills)
		}
	}
	if a, b := losses(t, filepath.Join(dir, "whole")), losses(t, filepath.Join(dir, "killed")); a != b {
		t.Errorf("metrics.jsonl differs after %d kills:\n%s\n%s", kills, a, b)
	}
}

// losses returns metrics.jsonl without the times.
func losses(t *testing.T, run string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(read(t, filepath.Join(run, "metrics.jsonl"))) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		delete(record, "seconds")
		fmt.Fprintln(&b, record)
	}
	return b.String()
}

// TestTruncatedUnderChild cuts a file of the set under a running process: one line, exit
// code 4, no signal.
func TestTruncatedUnderChild(t *testing.T) {
	for _, name := range []string{"features.plf", "batches-00000.plf", "eval-00000.plf", "coefs.plf"} {
		set := makeSet(t, feedtest.Random(5, 200, 3, 300), sampled)
		out := filepath.Join(t.TempDir(), "run")
		cmd := child("train", "--batches", set, "--out", out, "--hidden", "16", "--epochs", "1000000", "--eval-every", "2")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if b, err := os.ReadFile(filepath.Join(out, "metrics.jsonl")); err == nil && bytes.Count(b, []byte("\n")) > 3 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no epoch: %s", errs.String())
			}
		}
		if err := os.Truncate(filepath.Join(set, name), 1); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != command.ExitCorrupt || !strings.Contains(errs.String(), name) || strings.Count(errs.String(), "error:") != 1 || strings.Contains(errs.String(), "goroutine") {
			t.Errorf("%s: %v: %s", name, err, errs.String())
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1000": 1000, "4G": 4 << 30, "512MiB": 512 << 20, "3kb": 3 << 10, "2T": 2 << 40} {
		var s size
		if err := s.Set(text); err != nil || int64(s) != want {
			t.Errorf("%s: %d, %v; want %d", text, s, err, want)
		}
		var again size
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%s prints as %s", text, s.String())
		}
	}
	for _, text := range []string{"", "G", "-1", "1.5G", "4X", "9999999999G", "1GG"} {
		var s size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is taken for %d", text, s)
		}
	}
}
