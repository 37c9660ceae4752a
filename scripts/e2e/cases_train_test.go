package e2e

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// trainableSet makes a snapshot and a batch set of a case with nodes.csv (id,label,split).
func trainableSet(t *testing.T, caseName string, flags ...string) string {
	t.Helper()
	s := build(t, "--edges", casePath(caseName, "edges.csv"), "--nodes", casePath(caseName, "nodes.csv"), "--features", identityFeatures(t, casePath(caseName, "nodes.csv")))
	set := filepath.Join(t.TempDir(), "set")
	ok(t, "precompute", append([]string{"batches", "--snapshot", s.Dir, "--out", set}, flags...)...)
	ok(t, "precompute", "verify", set, "--snapshot", s.Dir)
	return set
}

// identityFeatures writes a feature table in which every node has a column of its own.
func identityFeatures(t *testing.T, nodesCSV string) string {
	t.Helper()
	b, err := os.ReadFile(nodesCSV)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("node,feature\n")
	for i, line := range lines(string(b))[1:] {
		id, _, _ := strings.Cut(line, ",")
		fmt.Fprintf(&text, "%s,%d\n", id, i)
	}
	return write(t, filepath.Join(t.TempDir(), "features.csv"), text.String())
}

func train(t *testing.T, set, run string, flags ...string) map[string]any {
	t.Helper()
	return object(t, "trainer-gnn", append([]string{"train", "--batches", set, "--model", "gcn", "--hidden", "4", "--out", run}, flags...)...)
}

func TestCase53LastPartialBatch(t *testing.T) {
	for _, mode := range []string{"fanout", "labor", "ppr", "khop"} {
		for size, wantBatches := range map[int]float64{4: 3, 64: 1} {
			set := trainableSet(t, "53-last-partial-batch", "--mode", mode, "--batch-size", strconv.Itoa(size), "--fanout", "3,3", "--variants", "2")
			d := object(t, "precompute", "inspect", set)
			if d["num_batches"] != 2*wantBatches || d["num_seeds"] != 10.0 {
				t.Errorf("%s, batch size %d: %v batches, %v seeds, want %v in 2 variants and 10", mode, size, d["num_batches"], d["num_seeds"], 2*wantBatches)
			}
			r := train(t, set, filepath.Join(t.TempDir(), "run"), "--epochs", "2")
			if r["steps"] != 2*wantBatches {
				t.Errorf("%s, batch size %d: %v steps in 2 epochs, want %v", mode, size, r["steps"], 2*wantBatches)
			}
		}
	}
}

func TestCase54DamagedFiles(t *testing.T) {
	for _, mode := range []string{"full", "fanout"} {
		set := trainableSet(t, "54-batch-truncated", "--mode", mode, "--fanout", "3,3", "--batch-size", "4", "--variants", "2")
		train(t, set, filepath.Join(t.TempDir(), "run"), "--epochs", "1")
		entries, err := os.ReadDir(set)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			info, _ := e.Info()
			for name, damage := range damages(int(info.Size())) {
				bad := filepath.Join(t.TempDir(), "bad")
				if err := os.CopyFS(bad, os.DirFS(set)); err != nil {
					t.Fatal(err)
				}
				if !damage(t, filepath.Join(bad, e.Name())) {
					continue
				}
				out := filepath.Join(t.TempDir(), "run")
				r := run(t, "trainer-gnn", "train", "--batches", bad, "--model", "gcn", "--epochs", "1", "--out", out)
				if line := errorLine(r.stderr); r.code != 4 || !strings.Contains(line, e.Name()) {
					t.Errorf("%s %s: exit %d, error %q; want 4 and the file's name", e.Name(), name, r.code, line)
				}
				if v := run(t, "precompute", "verify", bad); v.code != 4 {
					t.Errorf("%s %s: verify ends with %d, want 4", e.Name(), name, v.code)
				}
			}
		}
		// A file that the manifest doesn't list is reported and otherwise ignored.
		write(t, filepath.Join(set, "stray.bin"), "x")
		r := ok(t, "trainer-gnn", "train", "--batches", set, "--model", "gcn", "--epochs", "1", "--out", filepath.Join(t.TempDir(), "run"))
		if !strings.Contains(r.stderr, "stray.bin") {
			t.Errorf("no word on a stray file:\n%s", r.stderr)
		}
	}
}

// damages are the ways a file can be spoilt; each reports whether it changed anything.
func damages(size int) map[string]func(t *testing.T, path string) bool {
	cut := func(n int) func(*testing.T, string) bool {
		return func(t *testing.T, path string) bool {
			return n < size && os.Truncate(path, int64(n)) == nil
		}
	}
	return map[string]func(*testing.T, string) bool{
		"emptied": cut(0), "cut to 1": cut(1), "cut to 7": cut(7), "cut to half": cut(size / 2), "cut by 1": cut(size - 1),
		"grown": func(t *testing.T, path string) bool {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			_, err = f.WriteString("x")
			return err == nil
		},
		"flipped": func(t *testing.T, path string) bool {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[size/2] ^= 0x55
			return os.WriteFile(path, b, 0o644) == nil
		},
		"gone": func(t *testing.T, path string) bool { return os.Remove(path) == nil },
	}
}

func TestSwappedFilesOfASet(t *testing.T) {
	a := trainableSet(t, "54-batch-truncated", "--fanout", "3,3", "--batch-size", "4", "--variants", "2", "--seed", "1")
	b := trainableSet(t, "54-batch-truncated", "--fanout", "3,3", "--batch-size", "4", "--variants", "2", "--seed", "2")
	name := "batches-00000.plf"
	foreign, err := os.ReadFile(filepath.Join(b, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a, name), foreign, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, 4, []string{name}, "trainer-gnn", "train", "--batches", a, "--model", "gcn", "--out", filepath.Join(t.TempDir(), "run"))
}

func TestWrongKindOfArtefact(t *testing.T) {
	s := build(t, "--edges", casePath("54-batch-truncated", "edges.csv"))
	refused(t, 5, []string{"snapshot", "batch_set"}, "trainer-gnn", "train", "--batches", s.Dir, "--model", "gcn", "--out", filepath.Join(t.TempDir(), "run"))
	refused(t, 4, []string{"manifest"}, "trainer-gnn", "train", "--batches", t.TempDir(), "--model", "gcn", "--out", filepath.Join(t.TempDir(), "run"))
}

// finalParameters returns the bytes of a run's best parameters.
func finalParameters(t *testing.T, r map[string]any) string {
	t.Helper()
	path, isText := r["checkpoint"].(string)
	if !isText {
		t.Fatalf("result has no checkpoint: %v", r)
	}
	return fileText(t, path)
}

func TestCase77Resume(t *testing.T) {
	set := trainableSet(t, "77-resume-bit-exact", "--fanout", "3,3", "--batch-size", "4", "--variants", "2")
	dir := t.TempDir()
	whole := train(t, set, filepath.Join(dir, "whole"), "--epochs", "6", "--threads", "1")
	if whole["steps"] != 18.0 {
		t.Errorf("%v steps, want 18", whole["steps"])
	}
	parts := filepath.Join(dir, "parts")
	train(t, set, parts, "--epochs", "2", "--threads", "2")
	train(t, set, parts, "--epochs", "3", "--resume")
	last := train(t, set, parts, "--epochs", "6", "--resume")
	if finalParameters(t, last) != finalParameters(t, whole) {
		t.Error("2 + 1 + 3 epochs end in another checkpoint than 6")
	}
	if got, want := losses(t, parts), losses(t, filepath.Join(dir, "whole")); got != want {
		t.Errorf("losses %s, want %s", got, want)
	}
	before := hashDir(t, parts)
	r := ok(t, "trainer-gnn", "train", "--batches", set, "--model", "gcn", "--hidden", "4", "--out", parts, "--epochs", "6", "--resume")
	if !strings.Contains(r.stdout+r.stderr, "nothing to do") {
		t.Errorf("resuming at 6 of 6 doesn't say so:\n%s%s", r.stdout, r.stderr)
	}
	if hashDir(t, parts) != before {
		t.Error("resuming at 6 of 6 changed the run")
	}
	refused(t, 4, []string{"no checkpoint in"}, "trainer-gnn", "train", "--batches", set, "--model", "gcn", "--out", filepath.Join(dir, "none"), "--resume")
}

// losses lists the train losses of a run's metrics.jsonl.
func losses(t *testing.T, run string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(run, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, line := range lines(string(b)) {
		m := parseObject(t, line)
		list = append(list, fmt.Sprint(m["epoch"], ":", m["train_loss"]))
	}
	return strings.Join(list, " ")
}

// TestSameTraining: the final parameters are the same bits with 1 and 2 threads, and for
// 10 epochs in one go against 4, a kill in the middle of more, and a resume.
func TestSameTraining(t *testing.T) {
	dir := t.TempDir()
	ok(t, "precompute", "gen", "--kind", "sbm", "--nodes", "20000", "--edges", "100000", "--features", "16", "--classes", "4", "--seed", "5", "--out", filepath.Join(dir, "graph"))
	raw := func(name string) string { return filepath.Join(dir, "graph", name) }
	snap, set := filepath.Join(dir, "snap"), filepath.Join(dir, "set")
	ok(t, "precompute", "snapshot", "--edges", raw("edges.csv"), "--features", raw("features.npy"), "--labels", raw("labels.csv"), "--splits", raw("split.csv"), "--out", snap)
	ok(t, "precompute", "batches", "--snapshot", snap, "--out", set, "--fanout", "5,5", "--batch-size", "128", "--variants", "3")
	for _, model := range []string{"gcn", "sage"} {
		args := func(run string, more ...string) []string {
			return append([]string{"train", "--batches", set, "--model", model, "--hidden", "32", "--out", run}, more...)
		}
		one, two, killed := filepath.Join(dir, model+"1"), filepath.Join(dir, model+"2"), filepath.Join(dir, model+"k")
		ok(t, "trainer-gnn", args(one, "--epochs", "10", "--threads", "1")...)
		start := time.Now()
		ok(t, "trainer-gnn", args(two, "--epochs", "10", "--threads", "2")...)
		took := time.Since(start)
		ok(t, "trainer-gnn", args(killed, "--epochs", "4", "--checkpoint-every", "1")...)
		kill(t, took/3, "trainer-gnn", args(killed, "--epochs", "10", "--checkpoint-every", "1", "--resume")...)
		ok(t, "trainer-gnn", args(killed, "--epochs", "10", "--resume")...)
		for _, name := range []string{"last.safetensors", "best.safetensors"} {
			want := fileText(t, filepath.Join(one, name))
			if fileText(t, filepath.Join(two, name)) != want {
				t.Errorf("%s: %s differs between 1 and 2 threads", model, name)
			}
			if fileText(t, filepath.Join(killed, name)) != want {
				t.Errorf("%s: %s differs after a kill and a resume", model, name)
			}
		}
		if got, want := losses(t, killed), losses(t, one); got != want {
			t.Errorf("%s: losses %s, want %s", model, got, want)
		}
	}
}

// TestIndexCodecs: training gives the same bits from batches under either codec, with factors a node or coefficients an edge.
func TestIndexCodecs(t *testing.T) {
	dir := t.TempDir()
	ok(t, "precompute", "gen", "--kind", "sbm", "--nodes", "3000", "--edges", "15000", "--features", "8", "--classes", "4", "--seed", "5", "--out", filepath.Join(dir, "graph"))
	raw := func(name string) string { return filepath.Join(dir, "graph", name) }
	weighted := write(t, filepath.Join(dir, "weighted.csv"), weigh(t, raw("edges.csv")))
	for name, edges := range map[string]string{"plain": raw("edges.csv"), "weighted": weighted} {
		snap := filepath.Join(dir, name)
		ok(t, "precompute", "snapshot", "--edges", edges, "--features", raw("features.npy"), "--labels", raw("labels.csv"), "--splits", raw("split.csv"), "--out", snap)
		for _, model := range []string{"gcn", "sage"} {
			var want [2]string
			for i, codec := range []string{"raw", "bits"} {
				set, run := filepath.Join(dir, name+codec), filepath.Join(dir, name+model+codec)
				ok(t, "precompute", "batches", "--snapshot", snap, "--out", set, "--fanout", "5,5,5", "--batch-size", "200", "--transpose", "all", "--index-codec", codec)
				ok(t, "trainer-gnn", "train", "--batches", set, "--model", model, "--hidden", "16", "--epochs", "3", "--out", run)
				checkpoint := fileText(t, filepath.Join(run, "last.safetensors"))
				head := binary.LittleEndian.Uint64([]byte(checkpoint)) // of this length, and names the set
				want[i] = checkpoint[8+head:] + losses(t, run)
			}
			if want[0] != want[1] {
				t.Errorf("%s, %s: other parameters or losses from coded batches than from raw ones", name, model)
			}
		}
	}
}

// TestLastEpochCounts: an epoch between two evaluations isn't judged, but the last one is.
func TestLastEpochCounts(t *testing.T) {
	dir := t.TempDir()
	ok(t, "precompute", "gen", "--kind", "sbm", "--nodes", "2000", "--edges", "10000", "--features", "8", "--classes", "4", "--seed", "5", "--out", filepath.Join(dir, "graph"))
	raw := func(name string) string { return filepath.Join(dir, "graph", name) }
	snap, set := filepath.Join(dir, "snap"), filepath.Join(dir, "set")
	ok(t, "precompute", "snapshot", "--edges", raw("edges.csv"), "--features", raw("features.npy"), "--labels", raw("labels.csv"), "--splits", raw("split.csv"), "--out", snap)
	ok(t, "precompute", "batches", "--snapshot", snap, "--out", set, "--fanout", "5,5", "--batch-size", "64")
	args := func(run string, more ...string) []string {
		return append([]string{"train", "--batches", set, "--model", "sage", "--hidden", "8", "--lr", "0.003", "--out", run}, more...)
	}
	every := filepath.Join(dir, "every")
	ok(t, "trainer-gnn", args(every, "--epochs", "10", "--eval-every", "1")...)
	metric := map[float64]float64{}
	for _, line := range lines(fileText(t, filepath.Join(every, "metrics.jsonl"))) {
		m := parseObject(t, line)
		metric[m["epoch"].(float64)] = m["val_metric"].(float64)
	}
	want := 4.0
	for _, epoch := range []float64{8, 10} {
		if metric[epoch] > metric[want] {
			want = epoch
		}
	}
	r := object(t, "trainer-gnn", args(filepath.Join(dir, "fourth"), "--epochs", "10", "--eval-every", "4")...)
	if r["best_epoch"] != want || r["val_metric"] != metric[want] {
		t.Errorf("best epoch %v with %v, want %v with %v", r["best_epoch"], r["val_metric"], want, metric[want])
	}
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
