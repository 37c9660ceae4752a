package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pipe runs precompute with text as its standard input.
func pipe(t *testing.T, text string, args ...string) (stderr string, err error) {
	t.Helper()
	c := exec.Command(filepath.Join(binDir, "precompute"), args...)
	var out bytes.Buffer
	c.Stdin, c.Stderr = bytes.NewReader([]byte(text)), &out
	err = c.Run()
	return out.String(), err
}

// Edges from standard input are those of a file; the snapshot is built each time, since nobody knows what will come.
func TestStdin(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "snap")
	snapshotOf := func(text string, more ...string) string {
		if stderr, err := pipe(t, text, append([]string{"snapshot", "--edges", "-", "--tmp", dir, "--out", out}, more...)...); err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		return hashDir(t, out)
	}
	first := snapshotOf("a,b\nb,c\n")
	if second := snapshotOf("a,b\nb,d\n"); second == first {
		t.Error("other lines give the same snapshot")
	}
	if again := snapshotOf("b,c\na,b\n"); again != first {
		t.Error("the same lines give another snapshot")
	}
	file := filepath.Join(dir, "of-file")
	ok(t, "precompute", "snapshot", "--edges", write(t, filepath.Join(dir, "e.csv"), "a,b\nb,c\n"), "--out", file)
	if hashDir(t, file) != first {
		t.Error("a file gives another snapshot than the same bytes from standard input")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "prelift-*")); len(left) > 0 {
		t.Errorf("%v is left in --tmp", left)
	}
	if _, err := pipe(t, "a,b\n", "snapshot", "--edges", "-", "--edges", "-", "--out", out); err == nil {
		t.Error("- twice is accepted")
	}
	for _, flag := range []string{"--nodes", "--features", "--labels", "--splits"} {
		refused(t, 2, []string{"from -", "only edges"}, "precompute", "snapshot", "--edges", filepath.Join(dir, "e.csv"), flag, "-", "--out", out)
	}
	triples := write(t, filepath.Join(dir, "v,w.tsv"), "b\tr\tc\n")
	if stderr, err := pipe(t, "a\tr\tb\nb\tr\ta\n", "snapshot", "--triples", "train=-,valid="+triples, "--out", out); err != nil {
		t.Errorf("triples: %v\n%s", err, stderr)
	}
	wantCounts(t, open(t, out), 3, 2)
}

// A build from standard input that was killed leaves nothing that another input would take, and the same input ends as if it had run through.
func TestStdinKilled(t *testing.T) {
	dir := t.TempDir()
	text := func(seed int) string {
		var b strings.Builder
		for k := range 60_000 {
			fmt.Fprintf(&b, "n%d,n%d\n", k%20000, (k*k*31+seed)%20000)
		}
		return b.String()
	}
	args := func(out string) []string { return []string{"snapshot", "--edges", "-", "--tmp", dir, "--out", out} }
	want := map[string]string{}
	var took time.Duration
	for seed := range 2 {
		out := filepath.Join(dir, fmt.Sprint("ref", seed))
		start := time.Now()
		if stderr, err := pipe(t, text(seed), args(out)...); err != nil {
			t.Fatal(stderr)
		}
		took = time.Since(start)
		want[text(seed)] = hashDir(t, out)
	}
	const kills = 6
	for k := range kills {
		out := filepath.Join(dir, fmt.Sprint("out", k))
		cmd := exec.Command(filepath.Join(binDir, "precompute"), args(out)...)
		cmd.Stdin = strings.NewReader(text(0))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(took*time.Duration(k+1)/(kills+1), func() { cmd.Process.Kill() })
		cmd.Wait()
		next := text(k % 2) // the same input, or another one
		if stderr, err := pipe(t, next, args(out)...); err != nil {
			t.Fatal(stderr)
		}
		if hashDir(t, out) != want[next] {
			t.Errorf("kill %d: the build of input %d made other bytes than without the kill", k, k%2)
		}
	}
}

// A path with a comma is one path where there is such a file.
func TestPathsWithCommas(t *testing.T) {
	dir := t.TempDir()
	comma := write(t, filepath.Join(dir, "a,b.csv"), "x,y\n")
	plain := write(t, filepath.Join(dir, "c.csv"), "y,z\n")
	nodes := write(t, filepath.Join(dir, "n,m.csv"), "id\nx\ny\nz\n")
	for _, flags := range [][]string{{"--edges", comma, "--edges", plain}, {"--edges", comma, "--nodes", nodes, "--edges", plain}} {
		wantCounts(t, build(t, flags...), 3, 2)
	}
	second := write(t, filepath.Join(dir, "d.csv"), "z,w\n")
	wantCounts(t, build(t, "--edges", plain+","+second), 3, 2)
	config := write(t, filepath.Join(dir, "params.yaml"), "snapshot:\n  edges:\n  - \""+comma+"\"\n  - "+plain+"\n")
	wantCounts(t, build(t, "--config", config), 3, 2)
	if _, err := os.Stat(comma); err != nil {
		t.Fatal(err)
	}
}

// Paths with commas in lists: of triples, of splits and of pairs to hold out.
func TestListsWithCommas(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x,y")
	file := func(name, text string) string { return write(t, filepath.Join(dir, name), text) }
	train, valid := file("train,1.tsv", "a\tr\tb\nb\tr\tc\n"), file("v.tsv", "a\tr\tc\n")
	for _, spec := range []string{"train=" + train + ",valid=" + valid, "valid=" + valid + ",train=" + train} {
		s := build(t, "--triples", spec)
		wantCounts(t, s, 3, 2)
		if s.Held.Valid.Len() != 1 {
			t.Errorf("%s: %d pairs for valid, want 1", spec, s.Held.Valid.Len())
		}
	}
	edges := file("e.csv", "a,b\nb,c\n")
	labels := file("l,b.csv", "node,label\na,x\nb,y\nc,x\n")
	s := build(t, "--edges", edges, "--labels", labels, "--splits", "train="+file("a,b,c", "a\n")+",test="+file("d", "b\n"))
	if want := []uint8{1, 3, 0}; !bytes.Equal(s.Mask, want) { // a to train, b to test
		t.Errorf("parts %v, want %v", s.Mask, want)
	}
	held := build(t, "--edges", edges, "--holdout-edges", "test="+file("h,.csv", "b,a\n"))
	wantCounts(t, held, 3, 1)
	refused(t, 2, []string{"is not train=FILE", "there is no file", "/train,2.tsv"}, "precompute", "snapshot", "--triples", "train="+filepath.Join(dir, "train,2.tsv"), "--out", filepath.Join(dir, "out"))
}
