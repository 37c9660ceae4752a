package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// case58Edges is the output of the case's gen.py: 200,000 lines, 50,021 possible ids, skewed.
func case58Edges() string {
	x := uint64(20240607)
	next := func() uint64 {
		x = x*6364136223846793005 + 1442695040888963407
		return x >> 33
	}
	var text strings.Builder
	for range 200_000 {
		u := next() % 50021
		f := next() % 1000003
		fmt.Fprintf(&text, "n%d\tn%d\n", u, (f*f/1000003)*50021/1000003)
	}
	return text.String()
}

func TestCase58SameHashForAnyThreads(t *testing.T) {
	dir := t.TempDir()
	edges := write(t, filepath.Join(dir, "edges.tsv"), case58Edges())
	shuffled := lines(case58Edges())
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	other := write(t, filepath.Join(dir, "elsewhere", "e.tsv"), strings.Join(shuffled, "\n"))

	first := build(t, "--edges", edges, "--threads", "1")
	wantCounts(t, first, 49960, 199961)
	wantDegrees(t, first, map[string]int{"n0": 856})
	if len(first.In.Indices) != 399922 || len(first.ComponentSizes) != 1 {
		t.Errorf("%d entries, %d components, want 399922 and 1", len(first.In.Indices), len(first.ComponentSizes))
	}
	want := hashDir(t, first.Dir)
	for _, threads := range []string{"2", "7", "8", "16"} {
		for _, path := range []string{edges, other} {
			s := build(t, "--edges", path, "--threads", threads)
			if got := hashDir(t, s.Dir); got != want || s.ID != first.ID {
				t.Errorf("%s threads, %s: id %s, want %s", threads, filepath.Base(path), s.ID, first.ID)
			}
		}
	}
	directed := build(t, "--edges", edges, "--direction", "directed")
	if directed.Manifest.NumEdges != 199969 {
		t.Errorf("%d arcs, want 199969", directed.Manifest.NumEdges)
	}
}

func TestCase59PathAndTime(t *testing.T) {
	source, err := os.ReadFile(casePath("59-hash-path-and-mtime", "edges.csv"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plain := write(t, filepath.Join(dir, "edges.csv"), string(source))
	copied := write(t, filepath.Join(dir, "x", "y", "e2.csv"), string(source))
	old := time.Date(2001, 2, 3, 0, 0, 0, 0, time.UTC)
	if err := errors.Join(os.Chtimes(copied, old, old), os.Chmod(copied, 0o600), os.Symlink(copied, filepath.Join(dir, "l.csv"))); err != nil {
		t.Fatal(err)
	}
	first := build(t, "--edges", plain)
	want := hashDir(t, first.Dir)
	for name, path := range map[string]string{"another folder and name": copied, "a symbolic link": filepath.Join(dir, "l.csv")} {
		if s := build(t, "--edges", path); hashDir(t, s.Dir) != want {
			t.Errorf("%s changed the artefact", name)
		}
	}
	out := filepath.Join(dir, "rel")
	if r := runIn(t, filepath.Join(dir, "x"), nil, "precompute", "snapshot", "--edges", "./y/../y/e2.csv", "--out", out); r.code != 0 {
		t.Fatal(r.stderr)
	}
	if hashDir(t, out) != want {
		t.Error("a relative path changed the artefact")
	}
	if s := build(t, "--edges", casePath("59-hash-path-and-mtime", "edges_changed.csv")); s.ID == first.ID {
		t.Error("a changed weight kept the id")
	}
	// The same with a rerun into the same place: touched inputs are up to date, changed ones are not.
	again := func() map[string]any {
		return object(t, "precompute", "snapshot", "--edges", plain, "--out", first.Dir)
	}
	if r := again(); r["up_to_date"] != true {
		t.Errorf("an unchanged rerun is not up to date: %v", r)
	}
	if err := os.Chtimes(plain, old, old); err != nil {
		t.Fatal(err)
	}
	if r := again(); r["up_to_date"] != true {
		t.Errorf("a touched input is not up to date: %v", r)
	}
	write(t, plain, strings.Replace(string(source), "1\n", "2\n", 1))
	if r := again(); r["up_to_date"] != false || r["id"] == first.ID.String() {
		t.Errorf("a changed input is taken for unchanged: %v", r)
	}
}

func TestCase62KilledBuild(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("src,dst\n")
	for k := range 200_000 {
		fmt.Fprintf(&text, "n%d,n%d\n", k%50000, (k*k*31+7)%50000)
	}
	edges := write(t, filepath.Join(dir, "e.csv"), text.String())
	ref := filepath.Join(dir, "ref")
	start := time.Now()
	ok(t, "precompute", "snapshot", "--edges", edges, "--out", ref)
	took, want := time.Since(start), hashDir(t, ref)
	delays := 20
	if testing.Short() {
		delays = 5
	}
	for k := range delays {
		out := filepath.Join(dir, fmt.Sprintf("out%d", k))
		killAfter(t, took*time.Duration(k+1)/time.Duration(delays+1), "snapshot", "--edges", edges, "--out", out)
		if _, err := os.Stat(out); err == nil && hashDir(t, out) != want {
			t.Errorf("kill %d left a partial artefact under its name", k)
		}
		ok(t, "precompute", "snapshot", "--edges", edges, "--out", out)
		if hashDir(t, out) != want {
			t.Errorf("kill %d: the rerun made other bytes", k)
		}
		wantNoPartial(t, out)
	}
}

// killAfter starts precompute and kills it after a delay.
func killAfter(t *testing.T, delay time.Duration, args ...string) {
	t.Helper()
	kill(t, delay, "precompute", args...)
}

// kill starts a binary in a process group of its own and kills that after a delay.
func kill(t *testing.T, delay time.Duration, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(binDir, name), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(delay)
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	cmd.Wait()
}

func wantNoPartial(t *testing.T, out string) {
	t.Helper()
	if _, err := os.Stat(out + ".partial"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s.partial was left behind", out)
	}
}

func TestCase64OtherFileSystem(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "prelift-")
	if err != nil {
		t.Skipf("no second file system at /dev/shm: %v", err)
	}
	defer os.RemoveAll(shm)
	dir, edges := t.TempDir(), casePath("64-tmp-on-other-filesystem", "edges.csv")
	hashes := map[string]bool{}
	for _, c := range []struct{ tmp, out string }{
		{"", filepath.Join(dir, "o1")}, {"TMPDIR=" + shm, filepath.Join(dir, "o2")},
		{"TMPDIR=" + dir, filepath.Join(shm, "o3")}, {"TMPDIR=/proc", filepath.Join(dir, "o4")},
	} {
		if r := runIn(t, "", []string{c.tmp}, "precompute", "snapshot", "--edges", edges, "--out", c.out); r.code != 0 {
			t.Errorf("%s: exit %d: %s", c.tmp, r.code, r.stderr)
			continue
		}
		hashes[hashDir(t, c.out)] = true
	}
	if len(hashes) != 1 {
		t.Errorf("%d hashes, want one", len(hashes))
	}
	if left, _ := filepath.Glob(filepath.Join(shm, "*")); len(left) != 2 { // o3 and its stamps
		t.Errorf("left in TMPDIR: %v", left)
	}
}

func TestTwoJobsOnOneTarget(t *testing.T) {
	dir := t.TempDir()
	edges := write(t, filepath.Join(dir, "edges.tsv"), case58Edges())
	out := filepath.Join(dir, "snap")
	const jobs = 4
	results := make([]result, jobs)
	var wg sync.WaitGroup
	for i := range jobs {
		wg.Go(func() { results[i] = run(t, "precompute", "snapshot", "--edges", edges, "--out", out) })
	}
	wg.Wait()
	done := 0
	for _, r := range results {
		if r.code == 0 {
			done++
			continue
		}
		wantRefused(t, r, 1, "another job")
	}
	if done == 0 {
		t.Error("no job succeeded")
	}
	open(t, out)
}

func TestCase56DiskFull(t *testing.T) {
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("needs root to mount a small tmpfs")
	}
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("src,dst\n")
	for k := range 60_000 {
		fmt.Fprintf(&text, "n%d,n%d\n", k, (k*31+7)%60000)
	}
	edges := write(t, filepath.Join(dir, "e.csv"), text.String())
	big := filepath.Join(dir, "big")
	ok(t, "precompute", "snapshot", "--edges", edges, "--out", big)
	want := hashDir(t, big)

	small := filepath.Join(dir, "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, fmt.Sprintf("size=%dk", dirBytes(t, big)/2048+4)); err != nil {
		t.Skipf("can't mount a tmpfs: %v", err)
	}
	defer syscall.Unmount(small, syscall.MNT_DETACH)
	out := filepath.Join(small, "out")
	// An older, small artefact in the same place must survive.
	tiny := write(t, filepath.Join(dir, "tiny.csv"), "src,dst\na,b\n")
	ok(t, "precompute", "snapshot", "--edges", tiny, "--out", out)
	before := hashDir(t, out)

	r := run(t, "precompute", "snapshot", "--edges", edges, "--out", out)
	wantRefused(t, r, 1, "no space left on device", "bytes are wanted there", small)
	if hashDir(t, out) != before {
		t.Error("the older artefact was damaged")
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", syscall.MS_REMOUNT, "size=512m"); err != nil {
		t.Fatal(err)
	}
	ok(t, "precompute", "snapshot", "--edges", edges, "--out", out)
	if hashDir(t, out) != want {
		t.Error("other bytes than on a big disk")
	}
	wantNoPartial(t, out)
}

func dirBytes(t *testing.T, dir string) (n int64) {
	t.Helper()
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if info, infoErr := d.Info(); err == nil && infoErr == nil && !d.IsDir() {
			n += info.Size()
		}
		return nil
	})
	return n
}

func TestReadOnlyLinkedArtefacts(t *testing.T) {
	// DVC hands out read-only files, hard-linked or symlinked from its cache.
	dir := t.TempDir()
	s := build(t, "--edges", casePath("54-batch-truncated", "edges.csv"), "--nodes", casePath("54-batch-truncated", "nodes.csv"))
	for _, link := range []struct {
		name string
		make func(from, to string) error
	}{{"hard", os.Link}, {"symbolic", os.Symlink}} {
		snap, cache := filepath.Join(dir, link.name), filepath.Join(dir, link.name+"-cache")
		if err := os.CopyFS(cache, os.DirFS(s.Dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(snap, 0o755); err != nil {
			t.Fatal(err)
		}
		entries, _ := os.ReadDir(cache)
		for _, e := range entries {
			from := filepath.Join(cache, e.Name())
			if err := errors.Join(os.Chmod(from, 0o444), link.make(from, filepath.Join(snap, e.Name()))); err != nil {
				t.Fatal(err)
			}
		}
		set := filepath.Join(dir, link.name+"-set")
		ok(t, "precompute", "batches", "--snapshot", snap, "--out", set, "--mode", "full")
		ok(t, "precompute", "verify", set)
	}
}

// TestSameBatchSet: the batch set's bytes are the same for any number of threads, order of
// the input's lines, directory and locale, and after a kill and a rerun.
func TestSameBatchSet(t *testing.T) {
	dir := t.TempDir()
	ok(t, "precompute", "gen", "--kind", "sbm", "--nodes", "20000", "--edges", "100000", "--features", "8", "--classes", "4", "--seed", "3", "--out", filepath.Join(dir, "graph"))
	raw := func(name string) string { return filepath.Join(dir, "graph", name) }
	shuffled := map[string]string{}
	for i, name := range []string{"edges.csv", "labels.csv", "split.csv"} {
		b, err := os.ReadFile(raw(name))
		if err != nil {
			t.Fatal(err)
		}
		rows := lines(string(b))
		rand.New(rand.NewPCG(uint64(i), 7)).Shuffle(len(rows)-1, func(i, j int) { rows[i+1], rows[j+1] = rows[j+1], rows[i+1] })
		shuffled[name] = write(t, filepath.Join(dir, "other place", name), strings.Join(rows, "\n")+"\n")
	}
	snapshotOf := func(out string, path func(string) string, threads string) {
		ok(t, "precompute", "snapshot", "--edges", path("edges.csv"), "--features", raw("features.npy"), "--labels", path("labels.csv"), "--splits", path("split.csv"), "--threads", threads, "--out", out)
	}
	batchesOf := func(snap, out, threads string) []string {
		return []string{"batches", "--snapshot", snap, "--out", out, "--fanout", "5,5", "--batch-size", "128", "--variants", "3", "--batches-per-file", "4", "--threads", threads}
	}
	first, second := filepath.Join(dir, "snap"), filepath.Join(dir, "elsewhere", "snap")
	snapshotOf(first, raw, "1")
	snapshotOf(second, func(name string) string { return shuffled[name] }, "8")
	if hashDir(t, first) != hashDir(t, second) {
		t.Fatal("shuffled lines and 8 threads made another snapshot")
	}
	ref := filepath.Join(dir, "ref")
	start := time.Now()
	ok(t, "precompute", batchesOf(first, ref, "1")...)
	took, want := time.Since(start), hashDir(t, ref)
	for _, threads := range []string{"2", "8"} {
		out := filepath.Join(dir, "elsewhere", "set"+threads)
		if r := runIn(t, "", []string{"LC_ALL=tr_TR.UTF-8", "TZ=Asia/Tokyo"}, "precompute", batchesOf(second, out, threads)...); r.code != 0 {
			t.Fatal(r.stderr)
		}
		if hashDir(t, out) != want {
			t.Errorf("%s threads in another place and locale made other bytes", threads)
		}
	}
	const kills = 6
	for k := range kills {
		out := filepath.Join(dir, fmt.Sprintf("killed%d", k))
		killAfter(t, took*time.Duration(k+1)/(kills+1), batchesOf(first, out, "2")...)
		ok(t, "precompute", batchesOf(first, out, "2")...)
		if hashDir(t, out) != want {
			t.Errorf("kill %d: the rerun made other bytes", k)
		}
		wantNoPartial(t, out)
	}
}

func TestOutputMustNotReplaceOthers(t *testing.T) {
	s := build(t, "--edges", casePath("54-batch-truncated", "edges.csv"), "--nodes", casePath("54-batch-truncated", "nodes.csv"))
	want := hashDir(t, s.Dir)
	home := t.TempDir()
	write(t, filepath.Join(home, "precious"), "x")
	for _, c := range []struct{ out, part string }{
		{s.Dir, "holds a snapshot"}, {filepath.Join(s.Dir, "inner"), "lies in the artefact"}, {home, "no Prelift artefact"},
	} {
		refused(t, 1, []string{c.part}, "precompute", "batches", "--snapshot", s.Dir, "--out", c.out)
	}
	if hashDir(t, s.Dir) != want {
		t.Error("the snapshot was changed")
	}
}
