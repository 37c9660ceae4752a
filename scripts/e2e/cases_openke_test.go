package e2e

import (
	"path/filepath"
	"testing"
)

// openKE writes numbered triples of ann, bob and cid, and returns their folder.
func openKE(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"entity2id.txt": "3\nann\t0\nbob\t1\ncid\t2\n", "relation2id.txt": "2\nlikes\t0\nknows\t1\n",
		"train2id.txt": "2\n0 1 0\n1 0 1\n", "valid2id.txt": "1\n0 2 0\n", "test2id.txt": "1\n2 0 1\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

// The lists of names beside numbered triples are inputs: other names are other triples.
func TestOpenKENamesAreInputs(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags func(dir string) []string
	}{
		{"triples", func(dir string) []string { return []string{"--triples", filepath.Join(dir, "train2id.txt")} }},
		{"edges", func(dir string) []string { return []string{"--edges", filepath.Join(dir, "train2id.txt")} }},
		{"edges by format", func(dir string) []string {
			return []string{"--edges", write(t, filepath.Join(dir, "some.txt"), "1\n0 1 0\n"), "--format", "openke"}
		}},
		{"data set", func(dir string) []string { return []string{"--dataset", dir} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := openKE(t)
			out := filepath.Join(t.TempDir(), "kg")
			args := append([]string{"snapshot", "--out", out}, c.flags(dir)...)
			upToDate := func() bool { return object(t, "precompute", args...)["up_to_date"].(bool) }
			if upToDate() || !upToDate() {
				t.Fatal("want one build, then nothing to do")
			}
			write(t, filepath.Join(dir, "entity2id.txt"), "3\nann\t0\nbo\t1\ncid\t2\n")
			if upToDate() {
				t.Error("another name of an entity is taken for no change")
			}
			wantIDs(t, open(t, out), "ann", "bo", "cid")
			write(t, filepath.Join(dir, "relation2id.txt"), "2\nlikes\t0\nmet\t1\n")
			if upToDate() {
				t.Error("another name of a relation is taken for no change")
			}
		})
	}
}
