package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// TestEmptyValues: a flag given as an empty text, as an unset variable makes it, is a mistake of usage, on the command line and in a file. Passed
// over, it would write raw ids where codes were asked for.
func TestEmptyValues(t *testing.T) {
	dir := t.TempDir()
	edges, out := write(t, filepath.Join(dir, "e.csv"), "src,dst\na,b\n"), filepath.Join(dir, "out")
	for _, flag := range []string{"anonymize-key-file", "holdout", "holdout-edges", "splits", "labels", "features", "nodes", "edges", "base", "triples", "dataset", "tmp", "config"} {
		refused(t, 2, []string{"--" + flag + " "}, "precompute", "snapshot", "--edges", edges, "--out", out, "--"+flag, "")
	}
	config := write(t, filepath.Join(dir, "params.yaml"), "anonymize-key-file: ''\n")
	refused(t, 2, []string{"--anonymize-key-file "}, "precompute", "snapshot", "--edges", edges, "--out", out, "--config", config)
	refused(t, 2, []string{"--out "}, "precompute", "snapshot", "--edges", edges, "--out", "")
	refused(t, 2, []string{"--snapshot "}, "precompute", "batches", "--snapshot", "", "--out", out)
	refused(t, 2, []string{"--snapshot "}, "precompute", "verify", edges, "--snapshot", "")
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("a refused command left something: %v", entries)
	}
}
