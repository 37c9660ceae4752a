package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// advice is what `precompute advise --json` prints.
type advice struct {
	Labelled   bool
	Rule       string
	Settings   []advisedSet
	Precompute float64  `json:"precompute_seconds"`
	Budget     *float64 `json:"budget_seconds"`
	Pays       *bool
	PaysFrom   float64 `json:"pays_from_train_hours"`
	Command    []string
}

type advisedSet struct {
	Advised       bool
	Mode          string
	Fanout        []int
	BatchSize     int `json:"batch_size"`
	Variants      int
	NumBatches    int     `json:"num_batches"`
	Bytes         float64 `json:"bytes"`
	EvalBytes     float64 `json:"eval_bytes"`
	Amplification float64
	Seconds       float64
}

func advise(t *testing.T, snap string, flags ...string) advice {
	t.Helper()
	var a advice
	r := ok(t, "precompute", append([]string{"advise", "--snapshot", snap, "--seconds", "0.1", "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(r.stdout), &a); err != nil {
		t.Fatal(err)
	}
	if len(a.Settings) < 2 || !a.Settings[0].Advised || a.Settings[1].Advised || a.Rule == "" {
		t.Fatalf("advice %+v", a)
	}
	return a
}

// The advised command is accepted as it stands, and the sizes are those that were announced. Times are said, not
// judged: they depend on what else the machine does.
func TestAdvise(t *testing.T) {
	for _, c := range []struct {
		name          string
		gen, snapshot []string // flags; the snapshot's files come from gen
		hops, size    int
		full          bool
	}{
		{"block model", []string{"--kind", "sbm", "--nodes", "12000", "--edges", "60000", "--features", "32", "--classes", "5", "--train-fraction", "0.3"}, nil, 2, 1024, false},
		{"skewed and directed", []string{"--kind", "rmat", "--nodes", "15000", "--edges", "90000", "--features", "16", "--classes", "4"}, []string{"--direction", "directed"}, 2, 1024, false},
		{"small", []string{"--kind", "sbm", "--nodes", "3000", "--edges", "9000", "--features", "300", "--classes", "3"}, nil, 2, 512, true},
		{"no features", []string{"--kind", "sbm", "--nodes", "10000", "--edges", "40000", "--classes", "3"}, nil, 2, 1024, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			graph, snap := filepath.Join(dir, "graph"), filepath.Join(dir, "it's a snapshot")
			ok(t, "precompute", append([]string{"gen", "--out", graph}, c.gen...)...)
			flags := []string{"snapshot", "--edges", filepath.Join(graph, "edges.csv"), "--labels", filepath.Join(graph, "labels.csv"), "--splits", filepath.Join(graph, "split.csv"), "--out", snap}
			if _, err := os.Stat(filepath.Join(graph, "features.npy")); err == nil {
				flags = append(flags, "--features", filepath.Join(graph, "features.npy"))
			}
			ok(t, "precompute", append(flags, c.snapshot...)...)

			a := advise(t, snap, "--train-hours", "1", "--runs", "3", "--variants", "2")
			first := a.Settings[0]
			if len(first.Fanout) != c.hops || first.BatchSize != c.size || first.Variants != 2 || (a.Settings[len(a.Settings)-1].Mode == "full") != c.full {
				t.Errorf("advised %+v, %s", first, a.Rule)
			}
			if a.Pays == nil || !*a.Pays || *a.Budget != 0.3*3600*3 || math.Abs(a.PaysFrom-a.Precompute/0.3/3600) > 1e-9 {
				t.Errorf("verdict %+v", a)
			}
			got := object(t, "precompute", a.Command...)
			out := got["out"].(string)
			if filepath.Dir(out) != dir || got["num_batches"] != float64(first.NumBatches) {
				t.Errorf("%s: %v batches, advised %d", out, got["num_batches"], first.NumBatches)
			}
			for _, size := range []struct {
				what                 string
				predicted, got, most float64
			}{{"bytes", first.Bytes, got["bytes"].(float64), 0.05}, {"eval_bytes", first.EvalBytes, got["eval_bytes"].(float64), 0}} {
				if off := math.Abs(size.predicted-size.got) / size.got; off > size.most {
					t.Errorf("%s: predicted %.0f, written %.0f", size.what, size.predicted, size.got)
				}
			}
			t.Logf("predicted %.3f s, took %.3f s", first.Seconds, got["seconds"])
			for _, s := range a.Settings[1:] {
				flags := []string{"batches", "--snapshot", snap, "--out", filepath.Join(dir, "other"), "--variants", "2", "--dry-run"}
				if s.Mode == "full" {
					flags = append(flags, "--mode", "full")
				} else {
					flags = append(flags, "--fanout", strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Fanout), " ", ","), "[]"), "--batch-size", fmt.Sprint(s.BatchSize))
				}
				planned := object(t, "precompute", flags...)["bytes"].(float64)
				if off := math.Abs(s.Bytes-planned) / planned; off > 0.1 { // another order may suit other fanouts
					t.Errorf("%s %v: %.0f bytes, batches plans %.0f", s.Mode, s.Fanout, s.Bytes, planned)
				}
			}
		})
	}
}

// The line that is shown is the command, quoted for a shell.
func TestAdviseText(t *testing.T) {
	dir := t.TempDir()
	snap := filepath.Join(dir, "it's")
	edges := write(t, filepath.Join(dir, "edges.csv"), "src,dst\na,b\nb,c\n")
	nodes := write(t, filepath.Join(dir, "nodes.csv"), "id,label,f0\na,x,1\nb,y,2\nc,x,3\n")
	ok(t, "precompute", "snapshot", "--edges", edges, "--nodes", nodes, "--out", snap)
	for _, c := range []struct {
		flags []string
		parts []string
	}{
		{nil, []string{"under 10,000 nodes", "* ", "--mode full", "by the rule it pays when it is under 0.3 x training time x runs, so from ", "run: " + filepath.Join(binDir, "precompute") + " batches --snapshot '" + dir + `/it'\''s'`, "assumed: "}},
		{[]string{"--train-hours", "2", "--runs", "10"}, []string{"precomputing pays: ", " s < 0.3 x 2 h x 10 runs = 6 h"}},
		{[]string{"--train-hours", "1e-9"}, []string{"precomputing doesn't pay: ", " s >= 0.3 x 1e-09 h x 1 runs = ", "it would from "}},
	} {
		out := ok(t, "precompute", append([]string{"advise", "--snapshot", snap}, c.flags...)...).stdout
		for _, part := range c.parts {
			if !strings.Contains(out, part) {
				t.Errorf("%q: no %q in\n%s", c.flags, part, out)
			}
		}
	}
}

func TestAdviseOddSnapshots(t *testing.T) {
	dir := t.TempDir()
	edges := write(t, filepath.Join(dir, "edges.csv"), "src,dst\na,b\nb,c\nc,a\nc,d\n")
	labels := write(t, filepath.Join(dir, "labels.csv"), "id,label\na,x\nb,y\nc,x\nd,y\n")
	splits := write(t, filepath.Join(dir, "splits.csv"), "id,s0,s1\na,train,test\nb,train,train\nc,valid,train\nd,test,train\n")
	snapshotOf := func(name string, flags ...string) string {
		out := filepath.Join(dir, name)
		ok(t, "precompute", append([]string{"snapshot", "--edges", edges, "--out", out}, flags...)...)
		return out
	}
	bare := snapshotOf("bare")
	a := advise(t, bare)
	if a.Labelled || a.Command != nil || a.Settings[0].Bytes == 0 || a.Settings[0].Amplification != 0 || a.Pays != nil || a.PaysFrom <= 0 {
		t.Errorf("without labels and features: %+v", a)
	}
	if out := ok(t, "precompute", "advise", "--snapshot", bare).stdout; !strings.Contains(out, "run: nothing yet") || !strings.Contains(out, "--labels") {
		t.Errorf("without labels:\n%s", out)
	}
	two := snapshotOf("two", "--labels", labels, "--splits", splits)
	a = advise(t, two)
	if got := object(t, "precompute", a.Command...); got["num_seeds"] != 2.0 {
		t.Errorf("first of two splits: %v", got)
	}
	a = advise(t, two, "--split", "1", "--variants", "1")
	if got := object(t, "precompute", a.Command...); got["num_seeds"] != 3.0 || got["bytes"] != a.Settings[0].Bytes {
		t.Errorf("second of two splits: %v, advised %+v", got, a.Settings[0])
	}

	refused(t, 2, []string{"--snapshot is needed"}, "precompute", "advise")
	refused(t, 2, []string{"--split 2", "2 split columns"}, "precompute", "advise", "--snapshot", two, "--split", "2")
	refused(t, 2, []string{"--variants 0"}, "precompute", "advise", "--snapshot", two, "--variants", "0")
	refused(t, 2, []string{"--train-hours 0"}, "precompute", "advise", "--snapshot", two, "--train-hours", "0")
	refused(t, 2, []string{"--train-hours -1"}, "precompute", "advise", "--snapshot", two, "--train-hours", "-1")
	refused(t, 2, []string{"--train-hours NaN"}, "precompute", "advise", "--snapshot", two, "--train-hours", "NaN")
	refused(t, 2, []string{"--runs 0"}, "precompute", "advise", "--snapshot", two, "--runs", "0")
	refused(t, 2, []string{"--seconds"}, "precompute", "advise", "--snapshot", two, "--seconds", "0")
	refused(t, 2, []string{"--tmp", "nowhere"}, "precompute", "advise", "--snapshot", two, "--tmp", filepath.Join(dir, "nowhere"))
	if r := run(t, "precompute", "advise", "--snapshot", filepath.Join(dir, "nowhere")); r.code == 0 || errorLine(r.stderr) == "" {
		t.Errorf("no snapshot: exit %d, %q", r.code, r.stderr)
	}
}
