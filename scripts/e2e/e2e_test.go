// Package e2e tests the two binaries as their users run them: processes, files, exit
// codes and one-line errors. It builds them once; unit tests live beside the code.
package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prelift/prelift/snapshot"
)

// binDir holds precompute and trainer-gnn.
var binDir string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "prelift-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binDir = dir
		for name, pkg := range map[string]string{"precompute": "../../precompute", "trainer-gnn": "../../trainer/gnn"} {
			build := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg)
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "build %s: %v\n%s", name, err, out)
				return 1
			}
		}
		return m.Run()
	}())
}

// result is how a process ended.
type result struct {
	code           int
	stdout, stderr string
	elapsed        time.Duration
	rssBytes       int64 // peak of resident memory
}

// run starts a binary and waits for it. A death by signal fails the test.
func run(t *testing.T, name string, args ...string) result {
	t.Helper()
	return runIn(t, "", nil, name, args...)
}

func runIn(t *testing.T, dir string, env []string, name string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, name), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	elapsed := time.Since(start)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	code := cmd.ProcessState.ExitCode()
	if code < 0 || strings.Contains(stderr.String(), "goroutine ") || strings.Contains(stderr.String(), "unexpected fault") {
		t.Fatalf("%s %v: died with %v\n%s", name, args, cmd.ProcessState, stderr.String())
	}
	r := result{code, stdout.String(), stderr.String(), elapsed, 0}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.rssBytes = usage.Maxrss * 1024 // Linux counts KiB
	}
	return r
}

// ok runs a command that must succeed.
func ok(t *testing.T, name string, args ...string) result {
	t.Helper()
	r := run(t, name, args...)
	if r.code != 0 {
		t.Fatalf("%s %v: exit %d\n%s", name, args, r.code, r.stderr)
	}
	return r
}

// refused runs a command that must fail with one error line that holds every part.
func refused(t *testing.T, code int, parts []string, name string, args ...string) {
	t.Helper()
	r := run(t, name, args...)
	wantRefused(t, r, code, parts...)
}

func wantRefused(t *testing.T, r result, code int, parts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\n%s", r.code, code, r.stderr)
	}
	line := errorLine(r.stderr)
	for _, part := range parts {
		if !strings.Contains(line, part) {
			t.Errorf("error line %q lacks %q", line, part)
		}
	}
}

// errorLine returns the one line that says why a command failed, "" where there is none or more.
func errorLine(stderr string) string {
	var found []string
	for line := range strings.Lines(stderr) {
		if strings.Contains(line, ": error: ") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// object runs a command with --json and returns its object.
func object(t *testing.T, name string, args ...string) map[string]any {
	t.Helper()
	r := ok(t, name, append(args, "--json")...)
	return parseObject(t, r.stdout)
}

func parseObject(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	dec := json.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&v); err != nil || dec.More() {
		t.Fatalf("not one JSON object: %v\n%s", err, text)
	}
	return v
}

// casePath is a file of a case under testdata.
func casePath(parts ...string) string {
	return filepath.Join(append([]string{"testdata", "cases"}, parts...)...)
}

// build makes a snapshot of flags into a new directory and opens it.
func build(t *testing.T, flags ...string) *snapshot.Snapshot {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "snap")
	ok(t, "precompute", append([]string{"snapshot", "--out", dir}, flags...)...)
	return open(t, dir)
}

func open(t *testing.T, dir string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := snapshot.Verify(dir, 1); err != nil {
		t.Errorf("verify: %v", err)
	}
	return s
}

// noSnapshot checks that a snapshot of flags is refused with bad input, and that
// nothing is left that the next step would take.
func noSnapshot(t *testing.T, parts []string, flags ...string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "snap")
	refused(t, 3, parts, "precompute", append([]string{"snapshot", "--out", dir}, flags...)...)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s was left behind", dir)
	}
	if r := run(t, "precompute", "batches", "--snapshot", dir, "--out", dir+".set"); r.code == 0 {
		t.Error("the next step accepts what a refused build left")
	}
}

// wantCounts checks N and E.
func wantCounts(t *testing.T, s *snapshot.Snapshot, nodes, edges int) {
	t.Helper()
	if s.NumNodes() != nodes || int(s.Manifest.NumEdges) != edges {
		t.Errorf("%d nodes, %d edges, want %d and %d", s.NumNodes(), s.Manifest.NumEdges, nodes, edges)
	}
}

// wantIDs checks the external ids, in node order.
func wantIDs(t *testing.T, s *snapshot.Snapshot, ids ...string) {
	t.Helper()
	if got := s.IDs.Strings(); strings.Join(got, "|") != strings.Join(ids, "|") {
		t.Errorf("ids are %q, want %q", got, ids)
	}
}

// node returns the number of an external id.
func node(t *testing.T, s *snapshot.Snapshot, id string) int32 {
	t.Helper()
	for v := range s.IDs.Len() {
		if string(s.IDs.At(v)) == id {
			return int32(v)
		}
	}
	t.Fatalf("no node %q", id)
	return -1
}

// degree counts a node's in-neighbours, itself left out.
func degree(t *testing.T, s *snapshot.Snapshot, id string) int {
	v := node(t, s, id)
	n := 0
	for _, u := range s.In.Row(v) {
		if u != v {
			n++
		}
	}
	return n
}

func wantDegrees(t *testing.T, s *snapshot.Snapshot, degrees map[string]int) {
	t.Helper()
	for id, want := range degrees {
		if got := degree(t, s, id); got != want {
			t.Errorf("degree of %q is %d, want %d", id, got, want)
		}
	}
}

// gcn returns the GCN coefficient of the message src -> dst, or of a node's own loop.
func gcn(t *testing.T, s *snapshot.Snapshot, src, dst string) float64 {
	t.Helper()
	n, err := s.Norm(1)
	if err != nil {
		t.Fatal(err)
	}
	u, v := node(t, s, src), node(t, s, dst)
	if u == v {
		return float64(n.Self[v])
	}
	for e := s.In.Indptr[v]; e < s.In.Indptr[v+1]; e++ {
		if s.In.Indices[e] == u {
			return n.Coefficient(e, u, v)
		}
	}
	return 0
}

func wantNear(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if d := got - want; !(d <= tolerance && d >= -tolerance) {
		t.Errorf("%s is %.9g, want %.9g within %g", what, got, want, tolerance)
	}
}

// hashDir digests the names and bytes of a directory, as the cases' run.sh do.
func hashDir(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		fmt.Fprintf(sum, "%s %x\n", rel, sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// lines splits text into its lines without the line ends.
func lines(text string) []string {
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}
