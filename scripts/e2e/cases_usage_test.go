package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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

// TestNoSnapshot: what isn't a snapshot is refused by every command alike, and at once.
func TestNoSnapshot(t *testing.T) {
	dir := t.TempDir()
	empty, pipe := filepath.Join(dir, "empty"), filepath.Join(dir, "pipe")
	for _, d := range []string{empty, pipe} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(pipe, "manifest.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(dir, "file"), "x")
	for kind, want := range map[string]string{`{}`: "m/manifest.json: invalid layout: says no kind", `{"kind":"cake"}`: `m/manifest.json: unsupported format version: artefact of kind "cake"`} {
		manifest := filepath.Join(dir, "m", "manifest.json")
		write(t, manifest, kind)
		write(t, filepath.Join(dir, "m", "manifest.sha256"), fmt.Sprintf("%x  manifest.json\n", sha256.Sum256([]byte(kind))))
		for _, verb := range []string{"inspect", "verify"} {
			refused(t, 4, []string{"error: " + want}, "precompute", verb, filepath.Dir(manifest))
		}
	}
	for _, c := range []struct{ path, part string }{
		{filepath.Join(dir, "nowhere"), "no such directory; is the name right"},
		{empty, "no manifest; the job that wrote this didn't finish"},
		{pipe, "not a regular file"},
	} {
		out := filepath.Join(dir, "out")
		for _, args := range [][]string{
			{"batches", "--snapshot", c.path, "--out", out}, {"batches", "--snapshot", c.path, "--out", out, "--dry-run"}, {"advise", "--snapshot", c.path},
			{"inspect", c.path}, {"verify", c.path}, {"snapshot", "--base", c.path, "--add-edges", file, "--out", out},
		} {
			refused(t, 4, []string{c.part}, "precompute", args...)
		}
	}
}

// TestTmp: a directory of --tmp that can't be used is told before the work begins, and nothing of standard input stays in it, however
// the process ends.
func TestTmp(t *testing.T) {
	dir := t.TempDir()
	edges, out := write(t, filepath.Join(dir, "e.csv"), "src,dst\na,b\n"), filepath.Join(dir, "out")
	for _, tmp := range []string{filepath.Join(dir, "nowhere"), edges, "/proc"} {
		refused(t, 2, []string{"--tmp ", tmp}, "precompute", "snapshot", "--edges", edges, "--out", out, "--tmp", tmp)
		refused(t, 2, []string{"--tmp ", tmp}, "precompute", "advise", "--snapshot", out, "--tmp", tmp)
	}
	for _, c := range []struct {
		name   string
		signal syscall.Signal
	}{{"hangup", syscall.SIGHUP}, {"terminate", syscall.SIGTERM}, {"quit", syscall.SIGQUIT}, {"kill", syscall.SIGKILL}} {
		tmp := filepath.Join(dir, c.name)
		if err := os.Mkdir(tmp, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(binDir, "precompute"), "snapshot", "--edges", "-", "--tmp", tmp, "--out", out)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(make([]byte, 1<<20)); err != nil { // more than a pipe holds: it is being read
			t.Fatal(err)
		}
		cmd.Process.Signal(c.signal)
		hangs := time.AfterFunc(20*time.Second, func() { in.Close() })
		cmd.Wait() // standard input stays open, and silent
		if !hangs.Stop() {
			t.Errorf("%s: stops at the end of standard input only", c.name)
		}
		if code := cmd.ProcessState.ExitCode(); (c.signal == syscall.SIGHUP || c.signal == syscall.SIGTERM) && code != 1 {
			t.Errorf("%s: %v, want exit code 1", c.name, cmd.ProcessState)
		}
		if left, _ := os.ReadDir(tmp); len(left) > 0 {
			t.Errorf("%s: left in --tmp: %v", c.name, left)
		}
	}
}

// TestFlagsOfNoTable: a flag about a table that isn't given is refused, not passed over.
func TestFlagsOfNoTable(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	edges, nodes := write(t, filepath.Join(dir, "e.csv"), "src,dst\na,b\n"), write(t, filepath.Join(dir, "n.csv"), "id,label\na,0\nb,1\n")
	for _, flag := range []string{"--type-col=kind", "--id-col=id", "--table-header=yes", "--label-col=y", "--task=binary", "--feature-cols=x*", "--feature-norm=row", "--missing-features=zero",
		"--max-feature-bytes=9", "--feature-member=y", "--num-features=7", "--allow-split-overlap"} {
		name, _, _ := strings.Cut(flag, "=")
		refused(t, 2, []string{name + " is about --"}, "precompute", "snapshot", "--edges", edges, "--out", out, flag)
	}
	refused(t, 2, []string{"--num-features is about --features, which isn't given"}, "precompute", "snapshot", "--edges", edges, "--nodes", nodes, "--out", out, "--num-features", "7")
	refused(t, 2, []string{"--threads -1"}, "precompute", "snapshot", "--edges", edges, "--out", out, "--threads", "-1")
	ok(t, "precompute", "snapshot", "--edges", edges, "--out", out, "--task", "auto") // the default
	ok(t, "precompute", "snapshot", "--edges", edges, "--nodes", nodes, "--out", out, "--task", "binary", "--label-col", "label")
}

// TestEditedManifest: a count that was changed in a manifest, and sealed again, is noticed by whatever opens the artefact.
func TestEditedManifest(t *testing.T) {
	dir := t.TempDir()
	snap, set := filepath.Join(dir, "snap"), filepath.Join(dir, "set")
	edges, nodes := write(t, filepath.Join(dir, "e.csv"), "src,dst\na,b\nb,c\n"), write(t, filepath.Join(dir, "n.csv"), "id,label,split,f0\na,0,train,1\nb,1,train,2\nc,0,test,3\n")
	ok(t, "precompute", "snapshot", "--edges", edges, "--nodes", nodes, "--out", snap)
	ok(t, "precompute", "batches", "--snapshot", snap, "--out", set)
	edited := func(from, field string) string {
		to := filepath.Join(t.TempDir(), filepath.Base(from))
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, "manifest.json")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(text, []byte(`"`+field+`":"`))
		if at < 0 {
			t.Fatalf("no %s in %s", field, text)
		}
		digit := &text[at+len(field)+4]
		*digit = '0' + (*digit-'0')%9 + 1 // another, and not 0
		write(t, path, string(text))
		write(t, filepath.Join(to, "manifest.sha256"), fmt.Sprintf("%x  manifest.json\n", sha256.Sum256(text)))
		return to
	}
	for _, field := range []string{"num_nodes", "num_edges", "num_entries", "num_features", "num_classes", "num_components", "isolated_nodes", "self_loops"} {
		bad := edited(snap, field)
		for _, args := range [][]string{{"inspect", bad}, {"verify", bad}, {"batches", "--snapshot", bad, "--out", filepath.Join(dir, "out")}, {"advise", "--snapshot", bad}} {
			refused(t, 4, nil, "precompute", args...)
		}
	}
	for _, field := range []string{"num_nodes", "num_features", "num_batches", "num_seeds", "num_eval_blocks", "bytes", "bytes_per_variant", "eval_bytes", "feature_table_bytes"} {
		bad := edited(set, field)
		for _, verb := range []string{"inspect", "verify"} {
			if r := run(t, "precompute", verb, bad); r.code != 4 {
				t.Errorf("%s, %s: exit code %d, want 4", field, verb, r.code)
			}
		}
	}
}

// TestOneParamsFile: one file has the flags of all programs, sections named like another program's flags included.
func TestOneParamsFile(t *testing.T) {
	dir := t.TempDir()
	edges := write(t, filepath.Join(dir, "e.csv"), "src,dst\na,b\nb,c\n")
	nodes := write(t, filepath.Join(dir, "n.csv"), "id,label,split,f0\na,0,train,1\nb,1,train,2\nc,0,test,3\n")
	snap, set, run := filepath.Join(dir, "snap"), filepath.Join(dir, "set"), filepath.Join(dir, "run")
	params := write(t, filepath.Join(dir, "params.yaml"), strings.Join([]string{
		"snapshot: {edges: [" + edges + "], nodes: " + nodes + ", out: " + snap + "}",
		"batches: {snapshot: " + snap + ", out: " + set + ", fanout: [2, 2]}",
		"train: {batches: " + set + ", model: sage, hidden: 4, epochs: 1, out: " + run + "}",
		"predict: {batches: " + set + ", run: " + run + ", out: " + filepath.Join(dir, "p.csv") + "}",
	}, "\n"))
	ok(t, "precompute", "snapshot", "--config", params)
	ok(t, "precompute", "batches", "--config", params)
	ok(t, "trainer-gnn", "train", "--config", params)
	ok(t, "trainer-gnn", "predict", "--config", params)
}

// TestLabelsOrQuantities: many classes of few nodes each may be a quantity, which is said.
func TestLabelsOrQuantities(t *testing.T) {
	dir := t.TempDir()
	var edges, labels, few strings.Builder
	for i := range 300 {
		fmt.Fprintf(&edges, "%d,%d\n", i, (i+1)%300)
		fmt.Fprintf(&labels, "%d,%d\n", i, i%150)
		fmt.Fprintf(&few, "%d,%d\n", i, i%60)
	}
	e := write(t, filepath.Join(dir, "e.csv"), edges.String())
	for name, text := range map[string]string{"many": labels.String(), "few": few.String()} {
		l := write(t, filepath.Join(dir, name+".csv"), "node,label\n"+text)
		r := ok(t, "precompute", "snapshot", "--edges", e, "--labels", l, "--out", filepath.Join(dir, name))
		if said := strings.Contains(r.stderr, "150 classes for 300 labelled nodes"); said != (name == "many") {
			t.Errorf("%s classes: %s", name, r.stderr)
		}
	}
}
