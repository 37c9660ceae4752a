package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// modeFlags are the ways to cut batches, for a graph of a few thousand nodes.
var modeFlags = map[string][]string{
	"fanout":  {"--fanout", "10,5"},
	"weights": {"--fanout", "10,5", "--weighted"},
	"labor":   {"--mode", "labor", "--fanout", "10,5"},
	"cluster": {"--mode", "cluster", "--cluster-size", "64", "--clusters-per-batch", "8"},
	"ppr":     {"--mode", "ppr", "--top-k", "16"},
	"batch":   {"--mode", "ppr", "--ppr-select", "batch", "--top-k", "16"},
	"khop":    {"--mode", "khop", "--hops", "1"},
	"strata":  {"--stratify", "--fanout", "10,5"},
	"full":    {"--mode", "full"},
}

// TestModesTrain trains on every mode's batches: models of two layers, and of other depths where batches serve any, learn the classes of a block model, and are judged by
// exact evaluation. The same bits come of any number of threads.
func TestModesTrain(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	graph := path("graph")
	ok(t, "precompute", "gen", "--kind", "sbm", "--nodes", "2000", "--edges", "20000", "--features", "16", "--classes", "4", "--train-fraction", "0.3", "--out", graph)
	edges := write(t, path("weighted.csv"), weigh(t, filepath.Join(graph, "edges.csv")))
	ok(t, "precompute", "snapshot", "--edges", edges, "--features", filepath.Join(graph, "features.npy"), "--labels", filepath.Join(graph, "labels.csv"),
		"--splits", filepath.Join(graph, "split.csv"), "--with", "pagerank,order", "--out", path("snap"))
	trained := func(set, run string, flags ...string) map[string]any {
		return object(t, "trainer-gnn", append([]string{"train", "--batches", path(set), "--out", path(run), "--hidden", "16", "--dropout", "0.2", "--metric", "accuracy", "--lr", "0.02", "--epochs", "12"}, flags...)...)
	}
	for name, flags := range modeFlags {
		ok(t, "precompute", append([]string{"batches", "--snapshot", path("snap"), "--out", path(name), "--batch-size", "128", "--variants", "2"}, flags...)...)
		ok(t, "precompute", "verify", path(name), "--snapshot", path("snap"))
		epochs := "12"
		if name == "full" {
			epochs = "60" // of one step each
		}
		for _, model := range []string{"gcn", "sage"} {
			r := trained(name, name+"-"+model, "--model", model, "--epochs", epochs)
			if got := r["test_metric"].(float64); got < 0.45 { // chance is 0.25
				t.Errorf("%s: %s reaches %.3f", name, model, got)
			} else {
				t.Logf("%s: %s reaches %.3f in %v steps", name, model, got, r["steps"])
			}
		}
	}
	for _, name := range []string{"cluster", "khop"} {
		for _, flags := range [][]string{{"--model", "gcn", "--layers", "1"}, {"--model", "sage", "--layers", "3"}, {"--model", "mlp", "--layers", "2"}} {
			run := name + strings.Join(flags, "")
			a, b := trained(name, run+"a", append(flags, "--epochs", "2", "--threads", "1")...), trained(name, run+"b", append(flags, "--epochs", "2", "--threads", "3")...)
			if a["checkpoint_sha256"] != b["checkpoint_sha256"] {
				t.Errorf("%s %v: other parameters with other threads", name, flags)
			}
		}
	}
	ok(t, "trainer-gnn", "bench", "--batches", path("cluster"))
	ok(t, "trainer-gnn", "predict", "--run", path("khop-gcn"), "--batches", path("khop"), "--out", path("predictions.csv"))
}

// TestModeFlags: wrong flags are refused in one line that names them, and flags without a meaning noted.
func TestModeFlags(t *testing.T) {
	snap := build(t, "--edges", casePath("53-last-partial-batch", "edges.csv"), "--nodes", casePath("53-last-partial-batch", "nodes.csv"), "--hops", "1").Dir
	set := filepath.Join(t.TempDir(), "set")
	flags := func(more ...string) []string {
		return append([]string{"batches", "--snapshot", snap, "--out", set}, more...)
	}
	for _, c := range []struct {
		part  string
		flags []string
	}{
		{`--mode "saint": want fanout, labor, full, cluster, ppr, khop`, []string{"--mode", "saint"}},
		{"--weighted", []string{"--weighted"}},
		{"--hops 2", []string{"--mode", "khop", "--hops", "2"}},
		{"--with pagerank", []string{"--stratify"}},
		{"--ppr-alpha NaN", []string{"--mode", "ppr", "--ppr-alpha", "NaN"}},
		{"--clusters-per-batch 0", []string{"--mode", "cluster", "--clusters-per-batch", "0"}},
		{"--hub-cap -3", []string{"--hub-cap", "-3"}},
	} {
		refused(t, 2, []string{c.part}, "precompute", flags(c.flags...)...)
	}
	r := ok(t, "precompute", flags("--mode", "cluster", "--fanout", "3", "--top-k", "5", "--dense-share", "0.1")...)
	for _, note := range []string{"--fanout has no meaning with --mode cluster", "--top-k has no meaning with --mode cluster", "--dense-share has no meaning without --stratify"} {
		if !strings.Contains(r.stderr, note) {
			t.Errorf("no note %q in\n%s", note, r.stderr)
		}
	}
	for name, want := range map[string]string{"cluster": "clusters", "khop": "hops", "ppr": "ppr"} {
		out := set + name
		ok(t, "precompute", "batches", "--snapshot", snap, "--out", out, "--mode", name)
		if text := ok(t, "precompute", "inspect", out).stdout; !strings.Contains(text, want) {
			t.Errorf("inspect of mode %s:\n%s", name, text)
		}
	}
}
