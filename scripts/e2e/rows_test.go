package e2e

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRowStorage: a model is the same to the bit wherever the rows of a type are stored and however many threads train; types differ a little in
// what they give, and rows that a type can't hold are refused before anything is written.
func TestRowStorage(t *testing.T) {
	dir := t.TempDir()
	graph, snap := filepath.Join(dir, "graph"), filepath.Join(dir, "snapshot")
	ok(t, "precompute", "gen", "--kind", "sbm", "--nodes", "2000", "--edges", "16000", "--features", "16", "--classes", "4", "--train-fraction", "0.3", "--out", graph)
	tables := []string{"--edges", filepath.Join(graph, "edges.csv"), "--labels", filepath.Join(graph, "labels.csv"), "--splits", filepath.Join(graph, "split.csv")}
	ok(t, "precompute", append([]string{"snapshot", "--features", filepath.Join(graph, "features.npy"), "--out", snap}, tables...)...)
	accuracy := map[string]float64{}
	for _, dtype := range []string{"f32", "f16", "bf16", "int8"} {
		var first []byte
		for _, c := range []struct {
			name  string
			flags []string
		}{
			{"ids", []string{"--store", "ids"}},
			{"packed", []string{"--store", "packed"}},
			{"shared", []string{"--store", "packed", "--hot-rows", "0.1", "--group", "4", "--batches-per-file", "6", "--threads", "1"}},
		} {
			set := filepath.Join(dir, dtype+"-"+c.name)
			ok(t, "precompute", append([]string{"batches", "--snapshot", snap, "--out", set, "--fanout", "5,3", "--batch-size", "64", "--variants", "2", "--dtype", dtype}, c.flags...)...)
			ok(t, "precompute", "verify", set, "--snapshot", snap)
			d := object(t, "precompute", "inspect", set)
			if (d["row_error"] == nil) != (dtype == "f32") || c.name == "shared" && (d["num_hot_rows"].(float64) != 200 || d["num_group_rows"].(float64) == 0) {
				t.Errorf("%s: row error %v, %v hot rows, %v of groups", set, d["row_error"], d["num_hot_rows"], d["num_group_rows"])
			}
			threads := map[string]string{"ids": "1", "packed": "2", "shared": "3"}[c.name]
			result := object(t, "trainer-gnn", "train", "--batches", set, "--model", "gcn", "--hidden", "16", "--lr", "0.01", "--epochs", "4", "--threads", threads, "--out", set+"-run")
			weights, err := os.ReadFile(filepath.Join(set+"-run", "best.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			weights = weights[8+binary.LittleEndian.Uint64(weights):] // the tensors, behind a header that names the batch set
			if first == nil {
				first, accuracy[dtype] = weights, result["test_metric"].(float64)
			} else if !bytes.Equal(first, weights) {
				t.Errorf("%s: %s gives another model than ids", dtype, c.name)
			}
		}
		if accuracy[dtype] < accuracy["f32"]-0.03 {
			t.Errorf("%s reaches %g, f32 %g", dtype, accuracy[dtype], accuracy["f32"])
		}
	}

	rows := "id,x\n"
	for range 3 {
		rows += string(rune('a'+strings.Count(rows, "\n")-1)) + ",1\n"
	}
	small := filepath.Join(dir, "small")
	ok(t, "precompute", "snapshot", "--edges", write(t, filepath.Join(dir, "edges.csv"), "src,dst\na,b\nb,c\n"), "--features", write(t, filepath.Join(dir, "features.csv"), strings.Replace(rows, "c,1", "c,-70000", 1)),
		"--labels", write(t, filepath.Join(dir, "labels.csv"), "id,label\na,0\nb,1\nc,0\n"), "--out", small)
	out := filepath.Join(dir, "refused")
	got := run(t, "precompute", "batches", "--snapshot", small, "--out", out, "--fanout", "1", "--dtype", "f16")
	if got.code != 2 || !strings.Contains(got.stderr, `node "c", feature column 0 (from 0): -70000 is beyond the largest f16 (65504); use --dtype bf16`) {
		t.Errorf("exit %d\n%s", got.code, got.stderr)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a set was written")
	}
}
