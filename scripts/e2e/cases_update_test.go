package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// evolving is a graph of two days: the files of each, and the files of the change between them.
type evolving struct {
	edges, nodes         [2]string
	add, remove, addRows string
}

func newEvolving(t *testing.T) evolving {
	t.Helper()
	rng := rand.New(rand.NewPCG(21, 21))
	id := func(v int) string { return fmt.Sprintf("user-%03d", v) }
	row := func(v int) string {
		return fmt.Sprintf("%s,%s,%s,%d,%g", id(v), []string{"red", "green", ""}[v%3], []string{"train", "valid", "test", ""}[v%4], v%5, rng.Float32())
	}
	line := func(n int) string {
		return fmt.Sprintf("%s,%s,%d", id(rng.IntN(n)*2%301), id(rng.IntN(n)*2%301), 1+rng.IntN(4))
	}
	var kept, gone, added, oldRows, newRows []string
	for v := range 301 {
		if v%7 == 3 { // between the others
			newRows = append(newRows, row(v))
		} else {
			oldRows = append(oldRows, row(v))
		}
	}
	isOld := func(l string) bool {
		for i, id := range strings.Split(l, ",")[:2] {
			if v := id[len("user-"):]; i < 2 && atoi(t, v)%7 == 3 {
				return false
			}
		}
		return true
	}
	pair := func(l string) string {
		f := strings.Split(l, ",")
		return min(f[0], f[1]) + "," + max(f[0], f[1])
	}
	goes := map[string]bool{}
	for range 900 {
		switch l := line(301); {
		case !isOld(l):
			added = append(added, l)
		case rng.IntN(9) == 0:
			goes[pair(l)] = true
			gone = append(gone, l)
		default:
			kept = append(kept, l)
		}
	}
	left := kept[:0:0]
	for _, l := range kept {
		if goes[pair(l)] {
			gone = append(gone, l)
		} else {
			left = append(left, l)
		}
	}
	added = append(added, left[0], left[1], gone[0]) // again
	const edgeHead, nodeHead = "src,dst,weight\n", "id,label,split,f0,f1\n"
	dir := t.TempDir()
	text := func(name, head string, lists ...[]string) string {
		var all []string
		for _, list := range lists {
			all = append(all, list...)
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return write(t, filepath.Join(dir, name), head+strings.Join(all, "\n")+"\n")
	}
	var arcs []string
	for _, l := range gone {
		arcs = append(arcs, l[:strings.LastIndexByte(l, ',')])
	}
	slices.Sort(arcs)
	arcs = slices.Compact(arcs)
	return evolving{
		edges:   [2]string{text("edges-1.csv", edgeHead, left, gone), text("edges-2.csv", edgeHead, left, added)},
		nodes:   [2]string{text("nodes-1.csv", nodeHead, oldRows), text("nodes-2.csv", nodeHead, oldRows, newRows)},
		add:     text("add.csv", edgeHead, added),
		remove:  text("remove.csv", "src,dst\n", arcs),
		addRows: text("new.csv", nodeHead, newRows),
	}
}

func atoi(t *testing.T, s string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// An update gives the directory of a full build, wherever the base lies; an unchanged rerun has nothing to do, a changed base or change does.
func TestUpdate(t *testing.T) {
	g := newEvolving(t)
	key := keyFile(t, "0123456789abcdef0123456789abcdef")
	for _, c := range []struct {
		name  string
		flags []string // of all
		build []string // of full builds
	}{
		{"undirected", nil, []string{"--with", "pagerank,order", "--hops", "2"}},
		{"directed, row norm", []string{"--direction", "directed"}, []string{"--direction", "directed", "--feature-norm", "row", "--hops", "0"}},
		{"anonymised", []string{"--anonymize-key-file", key}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := func(name string) string { return filepath.Join(dir, name) }
			snapshotOf := func(day int, out string) {
				ok(t, "precompute", append(append([]string{"snapshot", "--edges", g.edges[day], "--nodes", g.nodes[day], "--out", path(out)}, c.flags...), c.build...)...)
			}
			snapshotOf(0, "base")
			snapshotOf(1, "full")
			update := func(base, out string) []string {
				return append([]string{"snapshot", "--base", path(base), "--add-edges", g.add, "--remove-edges", g.remove, "--nodes", g.addRows, "--out", path(out)}, c.flags...)
			}
			first := object(t, "precompute", update("base", "updated")...)
			if a, b := hashDir(t, path("updated")), hashDir(t, path("full")); a != b {
				t.Errorf("the update is %s, the full build %s", a, b)
			}
			ok(t, "precompute", "verify", path("updated"))
			if again := object(t, "precompute", update("base", "updated")...); again["up_to_date"] != true || again["id"] != first["id"] {
				t.Errorf("again: up to date %v, id %v, want %v", again["up_to_date"], again["id"], first["id"])
			}

			// From a base elsewhere, whose index and ranks aren't needed.
			if err := os.CopyFS(path("elsewhere"), os.DirFS(path("base"))); err != nil {
				t.Fatal(err)
			}
			ok(t, "precompute", update("elsewhere", "moved")...)
			if a, b := hashDir(t, path("moved")), hashDir(t, path("full")); a != b {
				t.Errorf("from elsewhere it is %s, the full build %s", a, b)
			}

			// Another base under the same name is another job.
			snapshotOf(1, "base")
			refused(t, 3, []string{"new.csv:", "is a node of the base already"}, "precompute", update("base", "updated")...)
		})
	}
}

// A killed update leaves the old artefact or none, and its rerun the same bytes.
func TestUpdateKilled(t *testing.T) {
	g := newEvolving(t)
	dir := t.TempDir()
	base, full, out := filepath.Join(dir, "base"), filepath.Join(dir, "full"), filepath.Join(dir, "out")
	flags := []string{"--with", "pagerank,order"}
	ok(t, "precompute", append([]string{"snapshot", "--edges", g.edges[0], "--nodes", g.nodes[0], "--out", base}, flags...)...)
	ok(t, "precompute", append([]string{"snapshot", "--edges", g.edges[1], "--nodes", g.nodes[1], "--out", full}, flags...)...)
	update := []string{"snapshot", "--base", base, "--add-edges", g.add, "--remove-edges", g.remove, "--nodes", g.addRows, "--out", out}
	for ms := range 6 {
		killAfter(t, time.Duration(10+15*ms)*time.Millisecond, update...)
	}
	ok(t, "precompute", update...)
	if a, b := hashDir(t, out), hashDir(t, full); a != b {
		t.Errorf("after kills it is %s, the full build %s", a, b)
	}
}

func TestUpdateErrors(t *testing.T) {
	g := newEvolving(t)
	dir := t.TempDir()
	file := func(name, text string) string { return write(t, filepath.Join(dir, name), text) }
	base, ints := filepath.Join(dir, "base"), filepath.Join(dir, "ints")
	ok(t, "precompute", "snapshot", "--edges", g.edges[0], "--nodes", g.nodes[0], "--hops", "1", "--out", base)
	ok(t, "precompute", "snapshot", "--edges", file("ints.csv", "1,2\n2,3\n"), "--direction", "directed", "--out", ints)
	set := filepath.Join(dir, "set")
	ok(t, "precompute", "batches", "--snapshot", base, "--out", set)
	damaged := filepath.Join(dir, "damaged")
	if err := os.CopyFS(damaged, os.DirFS(ints)); err != nil {
		t.Fatal(err)
	}
	topology := filepath.Join(damaged, "topology.plf")
	b, err := os.ReadFile(topology)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-70] ^= 1
	if err := os.WriteFile(topology, b, 0o644); err != nil {
		t.Fatal(err)
	}
	frozen := filepath.Join(dir, "frozen")
	ok(t, "precompute", "snapshot", "--edges", file("ints.csv", "1,2\n2,3\n"), "--updatable=false", "--out", frozen)
	coded := filepath.Join(dir, "coded")
	ok(t, "precompute", "snapshot", "--edges", file("ints.csv", "1,2\n2,3\n"), "--anonymize-key-file", keyFile(t, "fedcba9876543210"), "--out", coded)
	pair, text := file("pair.csv", "1,2\n1,4\n"), file("text.csv", "src,dst\n2,1\n2,x\n")
	for _, c := range []struct {
		name  string
		code  int
		parts []string
		flags []string
	}{
		{"an edge that isn't there", 3, []string{"pair.csv:2", `edge "1", "4" is not in the base`, "--ignore-missing"}, []string{"--base", ints, "--remove-edges", pair}},
		{"an id that changes the order", 3, []string{"text.csv:3", `"x" is an id that isn't ordered as an integer`, "build the snapshot in full"}, []string{"--base", ints, "--add-edges", text}},
		{"a node without a row", 3, []string{"stranger.csv:2", `"user-999" is not a node of the base, nor of --nodes`}, []string{"--base", base, "--add-edges", file("stranger.csv", "src,dst,weight\nuser-000,user-999,1\n")}},
		{"weights missing", 3, []string{"plain.csv: they have no weights, the base has them"}, []string{"--base", base, "--add-edges", file("plain.csv", "src,dst\nuser-000,user-001\n")}},
		{"a bad line", 3, []string{"torn.csv:2"}, []string{"--base", ints, "--add-edges", file("torn.csv", "1,2\n3\n")}},
		{"no such file", 3, []string{"nothing.csv"}, []string{"--base", ints, "--add-edges", filepath.Join(dir, "nothing.csv")}},
		{"another direction", 2, []string{"--direction undirected isn't what the --base was built with, directed"}, []string{"--base", ints, "--add-edges", pair, "--direction", "undirected"}},
		{"other hops", 2, []string{"--hops 2 isn't what the --base was built with, 1"}, []string{"--base", base, "--remove-edges", g.remove, "--hops", "2"}},
		{"ranks", 2, []string{"--with"}, []string{"--base", base, "--remove-edges", g.remove, "--with", "pagerank"}},
		{"edges", 2, []string{"--edges doesn't go with --base"}, []string{"--base", ints, "--edges", pair}},
		{"features", 2, []string{"--features doesn't go with --base"}, []string{"--base", ints, "--add-edges", pair, "--features", pair}},
		{"nothing to change", 2, []string{"--base alone changes nothing"}, []string{"--base", ints}},
		{"no base", 2, []string{"--base names the snapshot to change"}, []string{"--add-edges", pair}},
		{"a key for plain ids", 2, []string{"aren't anonymised"}, []string{"--base", ints, "--add-edges", pair, "--anonymize-key-file", keyFile(t, "0123456789abcdef")}},
		{"no key for coded ids", 2, []string{"give the same --anonymize-key-file"}, []string{"--base", coded, "--add-edges", pair}},
		{"another key", 2, []string{"codes under another key"}, []string{"--base", coded, "--add-edges", pair, "--anonymize-key-file", keyFile(t, "0123456789abcdef")}},
		{"a base that isn't there", 4, []string{"absent"}, []string{"--base", filepath.Join(dir, "absent"), "--add-edges", pair}},
		{"a batch set", 5, []string{"batch_set"}, []string{"--base", set, "--add-edges", pair}},
		{"a damaged base", 4, []string{"topology.plf", "checksum"}, []string{"--base", damaged, "--add-edges", pair}},
		{"a base that remembers nothing", 3, []string{"--updatable=false"}, []string{"--base", frozen, "--add-edges", pair}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			refused(t, c.code, c.parts, "precompute", append([]string{"snapshot", "--out", out}, c.flags...)...)
			if _, err := os.Stat(out); err == nil {
				t.Error("there is an artefact all the same")
			}
		})
	}
	refused(t, 2, []string{"--out is the --base"}, "precompute", "snapshot", "--base", ints, "--add-edges", pair, "--out", ints)

	// Edges that aren't there may be passed over.
	r := ok(t, "precompute", "snapshot", "--base", ints, "--remove-edges", pair, "--ignore-missing", "--out", filepath.Join(dir, "without"))
	if !strings.Contains(r.stderr, `1 of the edges to remove are not in the base, first "1", "4"`) {
		t.Errorf("notes %q", r.stderr)
	}
	wantCounts(t, open(t, filepath.Join(dir, "without")), 2, 1)
}
