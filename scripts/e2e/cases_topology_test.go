package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCase24ExistingSelfLoop(t *testing.T) {
	s := build(t, "--edges", casePath("24-norm-existing-self-loop", "edges.csv"))
	for _, c := range []struct {
		u, v string
		want float64
	}{{"a", "a", 0.5}, {"a", "b", 0.408248}, {"b", "a", 0.408248}, {"b", "b", 0.333333}, {"b", "c", 0.408248}, {"c", "c", 0.5}} {
		wantNear(t, c.u+"->"+c.v, gcn(t, s, c.u, c.v), c.want, 1e-6)
	}
	if got := object(t, "precompute", "inspect", s.Dir)["self_loops"]; got != 1.0 {
		t.Errorf("self_loops is %v, want 1", got)
	}
}

func TestCase26ListedTwice(t *testing.T) {
	dir := "26-undirected-listed-twice"
	for _, name := range []string{"once.txt", "both.txt"} {
		s := build(t, "--edges", casePath(dir, name))
		wantCounts(t, s, 3, 2)
		if len(s.In.Indices) != 4 {
			t.Errorf("%s: %d entries, want 4", name, len(s.In.Indices))
		}
		wantDegrees(t, s, map[string]int{"0": 1, "1": 2, "2": 1})
		wantNear(t, name+" 00", gcn(t, s, "0", "0"), 0.5, 1e-6)
		wantNear(t, name+" 01", gcn(t, s, "0", "1"), 0.408248, 1e-6)
		wantNear(t, name+" 11", gcn(t, s, "1", "1"), 1.0/3, 1e-6)
	}
	s := build(t, "--edges", casePath(dir, "both_w.txt"), "--weight-col", "3")
	for _, w := range s.In.Weight {
		if w != 2 {
			t.Errorf("weight %v, want 2: the lines of a pair are summed", w)
		}
	}
	once, dup := build(t, "--edges", casePath(dir, "once.txt")), build(t, "--edges", casePath(dir, "dup.txt"))
	if once.NumNodes() != dup.NumNodes() && len(dup.In.Indices) != 2 {
		t.Errorf("duplicate lines changed the graph: %v", dup.In.Indices)
	}
	for v := range int32(dup.NumNodes()) {
		if row := dup.In.Row(v); !slices.Equal(row, slices.Compact(slices.Clone(row))) {
			t.Errorf("row %d is %v", v, row)
		}
	}
}

func TestCase28WeakComponents(t *testing.T) {
	dir := "28-wcc-direction"
	for _, name := range []string{"edges.csv", "reversed.csv"} {
		s := build(t, "--edges", casePath(dir, name), "--direction", "directed")
		if !slices.Equal(s.ComponentSizes, []int64{3, 3}) {
			t.Errorf("%s: component sizes %v, want 3 3", name, s.ComponentSizes)
		}
		for i, group := range [][]string{{"0", "1", "2"}, {"3", "4", "5"}} {
			for _, id := range group {
				if got := s.Component[node(t, s, id)]; got != int32(i) {
					t.Errorf("%s: %s is in component %d, want %d", name, id, got, i)
				}
			}
		}
	}
	a, b := build(t, "--edges", casePath(dir, "edges.csv")), build(t, "--edges", casePath(dir, "reversed.csv"))
	if !slices.Equal(a.Component, b.Component) {
		t.Errorf("components %v and %v differ by line order", a.Component, b.Component)
	}
}

func TestCase31DirectedNorm(t *testing.T) {
	s := build(t, "--edges", casePath("31-norm-directed", "edges.csv"), "--direction", "directed")
	for _, c := range []struct {
		u, v string
		want float64
	}{{"0", "1", 0.707107}, {"0", "2", 0.577350}, {"1", "2", 0.408248}, {"0", "0", 1}, {"1", "1", 0.5}, {"2", "2", 0.333333}, {"1", "0", 0}} {
		wantNear(t, c.u+"->"+c.v, gcn(t, s, c.u, c.v), c.want, 1e-6)
	}
}

func TestCase33NoEdges(t *testing.T) {
	dir := "33-no-edges-mean"
	s := build(t, "--edges", casePath(dir, "edges.csv"), "--nodes", casePath(dir, "nodes.csv"))
	wantCounts(t, s, 2, 0)
	if len(s.ComponentSizes) != 2 {
		t.Errorf("%d components, want 2", len(s.ComponentSizes))
	}
	wantNear(t, "loop a", gcn(t, s, "a", "a"), 1, 0)
	wantNear(t, "loop b", gcn(t, s, "b", "b"), 1, 0)
	for _, mode := range []string{"full", "fanout"} {
		for _, model := range []string{"gcn", "sage"} {
			set, run := filepath.Join(t.TempDir(), "set"), filepath.Join(t.TempDir(), "run")
			ok(t, "precompute", "batches", "--snapshot", s.Dir, "--out", set, "--mode", mode, "--fanout", "2,2")
			r := object(t, "trainer-gnn", "train", "--batches", set, "--model", model, "--epochs", "3", "--hidden", "4", "--out", run)
			if r["epochs"] != 3.0 {
				t.Errorf("%s, %s: trained %v epochs, want 3", mode, model, r["epochs"])
			}
			noNaN(t, filepath.Join(run, "metrics.jsonl"))
		}
	}
}

// noNaN checks that a run's metrics hold numbers or null only.
func noNaN(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines(string(b)) {
		if m := parseObject(t, line); m["train_loss"] == nil {
			t.Errorf("metrics line %d has no train_loss: %s", i+1, line)
		}
	}
}

func TestCase44MoreThreadsThanNodes(t *testing.T) {
	dir := "44-empty-partitions"
	flags := []string{"--edges", casePath(dir, "edges.csv"), "--nodes", casePath(dir, "nodes.csv")}
	one := build(t, append(flags, "--threads", "1")...)
	many := build(t, append(flags, "--threads", "16")...)
	wantCounts(t, many, 3, 2)
	if one.ID != many.ID {
		t.Errorf("id %s with 16 threads, %s with 1", many.ID, one.ID)
	}
	set := filepath.Join(t.TempDir(), "set")
	ok(t, "precompute", "batches", "--snapshot", many.Dir, "--out", set, "--batch-size", "64", "--fanout", "2", "--variants", "1", "--threads", "16")
	d := object(t, "precompute", "inspect", set)
	if d["num_batches"] != 1.0 || d["num_seeds"] != 3.0 {
		t.Errorf("%v batches, %v seeds, want 1 and 3", d["num_batches"], d["num_seeds"])
	}
	ok(t, "precompute", "verify", set)
}

func TestCase47Hub(t *testing.T) {
	var text []byte
	text = append(text, "src,dst\n"...)
	for i := 1; i <= 200_000; i++ {
		text = fmt.Appendf(text, "hub,l%d\n", i)
	}
	path := write(t, filepath.Join(t.TempDir(), "star.csv"), string(text))
	s := build(t, "--edges", path)
	wantCounts(t, s, 200_001, 200_000)
	hub := node(t, s, "hub")
	if got := s.In.Degree(hub); got != 200_000 {
		t.Errorf("hub has degree %d, want 200000", got)
	}
	wantNear(t, "hub loop", gcn(t, s, "hub", "hub"), 4.999975e-06, 1e-11)
	wantNear(t, "hub-leaf", gcn(t, s, "hub", "l77"), 0.001581135, 1e-9)
	wantNear(t, "leaf loop", gcn(t, s, "l77", "l77"), 0.5, 0)
	if row := s.In.Row(node(t, s, "l123")); !slices.Equal(row, []int32{hub}) {
		t.Errorf("neighbours of a leaf are %v, want the hub", row)
	}
}
