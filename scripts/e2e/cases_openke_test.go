package e2e

import (
	"os"
	"path/filepath"
	"slices"
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

// A folder of OpenKE's is a knowledge graph, whatever flag names it: directed, with its lists for valid and test.
func TestOpenKEFolder(t *testing.T) {
	dir := openKE(t)
	of := func(part string) string { return part + "=" + filepath.Join(dir, part+"2id.txt") }
	files := build(t, "--triples", of("train")+","+of("valid")+","+of("test"))
	wantCounts(t, files, 3, 2)
	if files.Out == nil || files.Held == nil || files.Held.Valid.Len() != 1 || files.Held.Test.Len() != 1 {
		t.Fatal("the files are no directed graph with a pair for valid and one for test")
	}
	want := hashDir(t, files.Dir)
	for _, flags := range [][]string{{"--dataset", dir}, {"--triples", dir}, {"--dataset", dir, "--format", "csv"}} {
		if hashDir(t, build(t, flags...).Dir) != want {
			t.Errorf("%q gives another snapshot than the files", flags)
		}
	}
	if s := build(t, "--dataset", dir, "--direction", "undirected"); s.Out != nil || s.Held.Test.Len() != 1 {
		t.Error("--direction undirected has no effect, or drops the lists")
	}
	// Other flags about edges go before the folder's.
	drawn := build(t, "--dataset", dir, "--holdout", "0,1")
	if drawn.Out == nil || drawn.Manifest.NumEdges != 0 || drawn.Held.Test.Len() != 2 {
		t.Errorf("--holdout: %d edges are left, want none, and the arcs of both triples for test", drawn.Manifest.NumEdges)
	}
	edges := build(t, "--dataset", dir, "--edges", write(t, filepath.Join(dir, "e.csv"), "x,y\n"))
	wantIDs(t, edges, "x", "y")
	if edges.Held != nil {
		t.Error("--edges come with the folder's lists")
	}
	// A folder without lists.
	alone := t.TempDir()
	for _, name := range []string{"entity2id.txt", "relation2id.txt", "train2id.txt"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(alone, name), string(text))
	}
	if s := build(t, "--dataset", alone); s.Out == nil || s.Held != nil && s.Held.Valid.Len()+s.Held.Test.Len() > 0 {
		t.Error("a folder without lists has some, or isn't directed")
	}
	refused(t, 2, []string{"--triples", "--dataset"}, "precompute", "snapshot", "--triples", dir, "--dataset", dir, "--out", filepath.Join(dir, "out"))
}

// The counts of the original folders are those of independent code.
func TestOpenKEOriginals(t *testing.T) {
	for _, set := range []string{"kg-wn18rr", "kg-fb15k-237"} {
		data := dataDir(t, set)
		want, found := countsOf(t, filepath.Join(data, "counts.json"), "OpenKE-ids")
		if !found {
			t.Fatalf("%s: no counts", set)
		}
		s := build(t, "--dataset", filepath.Join(data, "original", "OpenKE"), "--hops", "0")
		got := []float64{float64(s.NumNodes()), float64(s.Manifest.NumRels), float64(s.Manifest.NumEdges), float64(s.Held.Valid.Len()), float64(s.Held.Test.Len())}
		if counts := []float64{want.Entities, want.Relations, want.Train, want.Valid, want.Test}; !slices.Equal(got, counts) {
			t.Errorf("%s: entities, relations and triples are %v, want %v", set, got, counts)
		}
	}
}
