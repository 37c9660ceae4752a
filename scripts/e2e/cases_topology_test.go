package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prelift/prelift/snapshot/graph"
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
	wantCounts(t, dup, 3, 2)
	if !slices.Equal(dup.In.Indptr, once.In.Indptr) || !slices.Equal(dup.In.Indices, once.In.Indices) {
		t.Errorf("duplicate lines changed the graph: %v", dup.In.Indices)
	}
	wantNear(t, "dup.txt 01", gcn(t, dup, "0", "1"), 0.408248, 1e-6)
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

func TestCase29PageRank(t *testing.T) {
	flags := []string{"--edges", casePath("29-pagerank-dangling", "edges.csv"), "--direction", "directed", "--with", "pagerank"}
	s := build(t, append(flags, "--threads", "1")...)
	sum := 0.0
	for id, want := range map[string]float64{"A": 0.184417, "B": 0.341171, "C": 0.474412} {
		got := s.Rank[node(t, s, id)]
		wantNear(t, "rank of "+id, got, want, 1e-6)
		sum += got
	}
	wantNear(t, "sum", sum, 1, 1e-12)
	// Another 100 iterations by hand: C is dangling.
	x := slices.Clone(s.Rank)
	for range 100 {
		base := 0.05 + 0.85*x[2]/3
		x = []float64{base, base + 0.85*x[0], base + 0.85*x[1]}
	}
	for v := range x {
		wantNear(t, fmt.Sprintf("rank %d after 100 more iterations", v), s.Rank[v], x[v], 1e-9)
	}
	if many := build(t, append(flags, "--threads", "16")...); many.ID != s.ID {
		t.Errorf("id %s with 16 threads, %s with 1", many.ID, s.ID)
	}
	r := object(t, "precompute", "inspect", s.Dir)["pagerank"].(map[string]any)
	if r["converged"] != true || r["damping"] != 0.85 || r["iterations"].(float64) < 10 || r["delta"].(float64) > 1e-10 {
		t.Errorf("inspect says %v", r)
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
	info := object(t, "precompute", "inspect", many.Dir)
	if got := fmt.Sprint(info["degree_histogram"]); got != "[0 2 1]" {
		t.Errorf("nodes by degree 0, 1, 2-3: %s, want 0, 2, 1", got)
	}
	for i, b := range info["hop1"].(map[string]any)["buckets"].([]any) {
		bucket := b.(map[string]any)
		if want := []float64{3, 0, 0}[i]; bucket["num_rows"] != want || want == 0 && (bucket["num_entries"] != 0.0 || bucket["size_bytes"] != 0.0) {
			t.Errorf("bucket %v, want %v nodes", bucket, want)
		}
	}
	for v, want := range [][]int32{{1}, {0, 2}, {1}} {
		if got := many.Hop1.AppendRow(nil, int32(v)); !slices.Equal(got, want) {
			t.Errorf("neighbours of %d are %v, want %v", v, got, want)
		}
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
	dir := filepath.Join(t.TempDir(), "snap")
	r := ok(t, "precompute", "snapshot", "--edges", path, "--with", "pagerank", "--out", dir)
	if r.elapsed > 120*time.Second || r.rssBytes > 1<<30 {
		t.Errorf("took %v and %d bytes of memory, want at most 120 s and 1 GiB", r.elapsed, r.rssBytes)
	}
	t.Logf("built in %v with %d MiB", r.elapsed, r.rssBytes>>20)
	// 500 leaves are seen from each by way of the hub, so rows would be 499 or 500 long, 250 times hop 1.
	for _, part := range []string{"250.0 times hop 1", "cut to 10 nodes", "--hop2-cap 1000"} {
		if !strings.Contains(r.stderr, part) {
			t.Errorf("the report %q lacks %q", r.stderr, part)
		}
	}
	s := open(t, dir)
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
	total, sum := 0, 0.0
	for v := range int32(s.NumNodes()) {
		sum += s.Rank[v]
		row := s.Hop2.Row(v)
		total += len(row)
		if v == hub {
			if len(row) != 0 || s.Hop1.Degree(v) != 200_000 || s.Hop1.Bucket(v) != graph.BucketHub {
				t.Errorf("hub: %d nodes at hop 2, %d neighbours, bucket %s", len(row), s.Hop1.Degree(v), s.Hop1.Bucket(v))
			}
			wantNear(t, "rank of the hub", s.Rank[v], 0.459460, 1e-6)
			continue
		}
		if got := s.Hop1.AppendRow(nil, v); !slices.Equal(got, []int32{hub}) || !s.Hop1.Contains(hub, v) {
			t.Fatalf("neighbours of leaf %d in the index are %v, want the hub", v, got)
		}
		sorted := slices.IsSorted(row) && len(slices.Compact(slices.Clone(row))) == len(row)
		if len(row) != 10 || !sorted || slices.Contains(row, v) || slices.Contains(row, hub) {
			t.Fatalf("hop 2 of leaf %d is %v, want 10 other leaves, each once", v, row)
		}
		wantNear(t, "rank of a leaf", s.Rank[v], 2.702701e-06, 1e-11)
	}
	wantNear(t, "sum of ranks", sum, 1, 1e-9)
	h := object(t, "precompute", "inspect", dir)["hop2"].(map[string]any)
	if h["forced"] != true || h["cap"] != 10.0 || h["num_entries"] != float64(total) || h["ratio"] != 5.0 || h["num_sampled"] != 1.0 {
		t.Errorf("inspect says %v of hop 2, which has %d entries", h, total)
	}
}

// TestHopFlags checks what --hops, its thresholds and --with do and refuse.
func TestHopFlags(t *testing.T) {
	edges := casePath("28-wcc-direction", "edges.csv")
	for _, c := range []struct {
		parts []string
		flags []string
	}{
		{[]string{"--hops", `"3"`}, []string{"--hops", "3"}},
		{[]string{"--compact-below 256", "1..255"}, []string{"--compact-below", "256"}},
		{[]string{"--hub-from 5", "--compact-below 100"}, []string{"--hub-from", "5"}},
		{[]string{"--hop2-cap 0", "1 or more"}, []string{"--hop2-cap", "0"}},
		{[]string{"--expand-limit -1", "1 or more"}, []string{"--expand-limit", "-1"}},
		{[]string{"--with", `"rank"`, "pagerank, order"}, []string{"--with", "rank"}},
	} {
		refused(t, 2, c.parts, "precompute", append([]string{"snapshot", "--edges", edges, "--out", filepath.Join(t.TempDir(), "snap")}, c.flags...)...)
	}
	ids := map[string]string{}
	for _, flags := range [][]string{nil, {"--hops", "0"}, {"--hops", "1"}, {"--hop2-cap", "1"}, {"--with", "order"}, {"--with", "pagerank"}, {"--with", "order,pagerank"}} {
		s := build(t, append([]string{"--edges", edges}, flags...)...)
		if other, seen := ids[s.ID.String()]; seen {
			t.Errorf("%v gives the id of %s", flags, other)
		}
		ids[s.ID.String()] = fmt.Sprint(flags)
		if hops := s.Manifest.Params.Hops; (s.Hop1 != nil) != (hops > 0) || (s.Hop2 != nil) != (hops > 1) {
			t.Errorf("%v: %d hops, index %t, lists %t", flags, hops, s.Hop1 != nil, s.Hop2 != nil)
		}
	}
	same := build(t, "--edges", edges, "--hops", "2", "--with", "pagerank,order", "--with", "order")
	if ids[same.ID.String()] != "[--with order,pagerank]" {
		t.Errorf("--hops 2 and --with in another order give another id")
	}
	r := ok(t, "precompute", "snapshot", "--edges", edges, "--hops", "1", "--hop2-cap", "5", "--out", filepath.Join(t.TempDir(), "snap"))
	if !strings.Contains(r.stderr, "--hop2-cap has no meaning with --hops 1") {
		t.Errorf("no note of an unused flag: %q", r.stderr)
	}
}
