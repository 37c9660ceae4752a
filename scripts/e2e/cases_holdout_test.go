package e2e

import (
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot"
	"github.com/prelift/prelift/snapshot/graph"
)

// sections returns the bytes of a file's sections, which set keys have no part in.
func sections(t *testing.T, path string) string {
	t.Helper()
	f, err := format.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all strings.Builder
	for i := range f.Records {
		r, err := f.Record(i)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Sections {
			fmt.Fprintf(&all, "%d %s %d %d %d\n%s\n", i, s.Kind, s.Layer, s.Coef, len(s.Bytes()), s.Bytes())
		}
	}
	return all.String()
}

// randomEdges draws lines of two ids and a weight, some repeated, turned round, and loops.
func randomEdges(seed uint64, nodes, num int) []string {
	rng := rand.New(rand.NewPCG(seed, 7))
	var list []string
	for range num {
		u, v := rng.IntN(nodes), rng.IntN(nodes)
		list = append(list, fmt.Sprintf("n%d,n%d,%d.5", u, v, rng.IntN(9)))
	}
	return list
}

// heldIDs lists the held-out pairs of one part as lines of external ids.
func heldIDs(s *snapshot.Snapshot, p graph.Pairs) (list []string) {
	for i, src := range p.Src {
		list = append(list, fmt.Sprintf("%s,%s", s.IDs.At(int(src)), s.IDs.At(int(p.Dst[i]))))
	}
	return list
}

// TestHoldoutByHash: the rows, degrees, norms, components, PageRank, order and index of a snapshot with a share held out are those of
// a snapshot whose edge file never had the lines. (The nodes stay.)
func TestHoldoutByHash(t *testing.T) {
	dir := t.TempDir()
	all := randomEdges(1, 300, 1500)
	header := "src,dst,weight\n"
	edges := write(t, filepath.Join(dir, "edges.csv"), header+strings.Join(all, "\n"))
	shuffled := slices.Clone(all)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	other := write(t, filepath.Join(dir, "other.csv"), header+strings.Join(shuffled, "\n"))
	var ids strings.Builder
	ids.WriteString("id\n")
	for v := range 300 {
		fmt.Fprintf(&ids, "n%d\n", v)
	}
	nodes := write(t, filepath.Join(dir, "nodes.csv"), ids.String())
	for _, direction := range []string{"undirected", "directed"} {
		for _, weight := range []string{"weight", "none"} {
			t.Run(direction+" "+weight, func(t *testing.T) {
				flags := []string{"--nodes", nodes, "--direction", direction, "--weight-col", weight, "--with", "pagerank,order"}
				share := []string{"--holdout", "0.1,0.20", "--holdout-seed", "5"}
				s := build(t, append(append(flags, "--edges", edges, "--threads", "1"), share...)...)
				again := build(t, append(append(flags, "--edges", other, "--threads", "7", "--mem", "256M"), share...)...)
				if again.ID != s.ID || hashDir(t, again.Dir) != hashDir(t, s.Dir) {
					t.Errorf("id %s with shuffled lines and 7 threads, want %s", again.ID, s.ID)
				}
				if got := build(t, append(flags, "--edges", edges, "--holdout", "0.1,0.2")...); got.ID == s.ID {
					t.Error("another seed gives the same id")
				}

				held := map[string]bool{}
				for _, list := range [][]string{heldIDs(s, s.Held.Valid), heldIDs(s, s.Held.Test)} {
					for _, pair := range list {
						src, dst, _ := strings.Cut(pair, ",")
						held[src+","+dst], held[dst+","+src] = true, true
					}
				}
				var rest []string
				for _, line := range all {
					if !held[line[:strings.LastIndexByte(line, ',')]] {
						rest = append(rest, line)
					}
				}
				hand := build(t, append(flags, "--edges", write(t, filepath.Join(t.TempDir(), "rest.csv"), header+strings.Join(rest, "\n")))...)
				for _, name := range []string{snapshot.IDsFile, snapshot.TopologyFile, snapshot.HopsFile, snapshot.RankFile} {
					if sections(t, s.Path(name)) != sections(t, hand.Path(name)) {
						t.Errorf("%s isn't that of the file without the lines held out", name)
					}
				}
				if got, want := int(s.Manifest.Heldout.NumLines), len(all)-len(rest); got != want || s.Manifest.Audit.NumLines != hand.Manifest.Audit.NumLines {
					t.Errorf("%d lines held out, want %d", got, want)
				}

				// As many as asked for, within chance; the lists hold each once.
				numPairs := float64(hand.Manifest.Audit.NumPairs) + float64(len(held))/2
				if direction == "directed" { // held counts unordered pairs both ways
					numPairs = float64(hand.Manifest.Audit.NumPairs) + float64(len(held)/2)
				}
				wantNear(t, "share held out", float64(len(held)/2)/numPairs, 0.3, 0.06)

				// The same lists, given, in other words.
				lists := [2]string{}
				for k, list := range [][]string{heldIDs(s, s.Held.Valid), heldIDs(s, s.Held.Test)} {
					slices.Reverse(list)
					lists[k] = write(t, filepath.Join(t.TempDir(), "list.tsv"), strings.ReplaceAll(strings.Join(list, "\n")+"\n"+list[0], ",", "\t"))
				}
				given := build(t, append(flags, "--edges", other, "--holdout-edges", "valid="+lists[0]+",test="+lists[1])...)
				if sections(t, s.Path(snapshot.TopologyFile)) != sections(t, given.Path(snapshot.TopologyFile)) {
					t.Error("given lists give another graph")
				}
				if !slices.Equal(given.Held.Valid.Src, s.Held.Valid.Src) || !slices.Equal(given.Held.Test.Dst, s.Held.Test.Dst) {
					t.Error("given lists are stored as others")
				}
			})
		}
	}
}

func TestHoldoutEdges(t *testing.T) {
	dir := t.TempDir()
	edges := write(t, filepath.Join(dir, "edges.csv"), "src,dst\na,b\nb,c\nc,a\nc,d\nd,e\ne,c\n")
	valid := write(t, filepath.Join(dir, "valid.csv"), "weight,target,source\n1,a,b\n2,d,c\n") // columns in another order
	gz, err := os.Create(filepath.Join(dir, "test.txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(gz)
	fmt.Fprint(w, "# a comment\ne  c\nx  a\ne c\n") // x is in this list only
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	gz.Close()
	out := filepath.Join(dir, "snap")
	flags := []string{"snapshot", "--edges", edges, "--holdout-edges", "valid=" + valid + ",test=" + gz.Name(), "--out", out}
	r := ok(t, "precompute", flags...)
	if want := "of the held-out pairs 0 of 2 for valid and 1 of 2 for test are in no line of the edges"; !strings.Contains(r.stderr, want) {
		t.Errorf("stderr %q lacks %q", r.stderr, want)
	}
	s := open(t, out)
	wantIDs(t, s, "a", "b", "c", "d", "e", "x")
	wantCounts(t, s, 6, 3)
	wantDegrees(t, s, map[string]int{"a": 1, "b": 1, "c": 2, "d": 1, "e": 1, "x": 0})
	if got := fmt.Sprint(heldIDs(s, s.Held.Valid), heldIDs(s, s.Held.Test)); got != "[a,b c,d] [a,x c,e]" || s.Held.Valid.Weight != nil {
		t.Errorf("held out are %s, weights %v", got, s.Held.Valid.Weight)
	}
	d := object(t, "precompute", "inspect", out)["heldout"].(map[string]any)
	if d["kind"] != "given" || d["num_valid"] != 2.0 || d["num_test"] != 2.0 || d["missing_test"] != 1.0 || d["num_lines"] != 3.0 {
		t.Errorf("inspect says %v", d)
	}
	if text := ok(t, "precompute", "inspect", out).stdout; !strings.Contains(text, "2 pairs for valid, 2 for test; 3 lines left the graph") {
		t.Errorf("inspect says\n%s", text)
	}
	if r := object(t, "precompute", flags...); r["up_to_date"] != true || r["num_heldout_valid"] != 2.0 {
		t.Errorf("rerun: %v", r)
	}
	write(t, valid, "source,target\na,b\n")
	if r := object(t, "precompute", flags...); r["up_to_date"] != false || r["num_heldout_valid"] != 1.0 || r["num_heldout_test"] != 2.0 {
		t.Errorf("a changed list: %v", r)
	}

	// One list alone; weights of a list where the graph has them; both directions leave a directed graph.
	weighted := write(t, filepath.Join(dir, "weighted.csv"), "src,dst,weight\na,b,1\nb,a,2\nb,c,3\n")
	list := write(t, filepath.Join(dir, "list.csv"), "src,dst,weight\nb,a,4\nb,a,5\n")
	s = build(t, "--edges", weighted, "--holdout-edges", "test="+list, "--direction", "directed")
	wantCounts(t, s, 3, 1)
	if got := fmt.Sprint(heldIDs(s, s.Held.Test), s.Held.Test.Weight, s.Held.Valid.Len(), s.Manifest.Heldout.NumLines); got != "[b,a] [9] 0 2" {
		t.Errorf("held out are %s", got)
	}
	bare := write(t, filepath.Join(dir, "bare.csv"), "src,dst\nb,a\n")
	s = build(t, "--edges", weighted, "--weight-col", "weight", "--holdout-edges", "test="+bare)
	if got := fmt.Sprint(heldIDs(s, s.Held.Test), s.Held.Test.Weight); got != "[a,b] []" {
		t.Errorf("held out are %s", got)
	}

	for name, c := range map[string]struct {
		text  string
		parts []string
		flags []string
	}{
		"loop":         {"src,dst\nb,a\nc,c\n", []string{"bad.csv:3:", `"dst"`, `"c"`, "self loop"}, nil},
		"both lists":   {"src,dst\nd,e\nb,a\n", []string{"bad.csv:3:", `"b", "a"`, "held out for valid too, in valid.csv line 2"}, []string{"valid=" + valid}},
		"unknown node": {"src,dst\nb,a\nb,zoe\n", []string{"bad.csv:3:", `"dst"`, `"zoe"`, "is not an id in nodes.csv"}, []string{"--nodes", write(t, filepath.Join(dir, "nodes.csv"), "id\na\nb\nc\nd\ne\n")}},
		"empty id":     {"src,dst\n,a\n", []string{"bad.csv:2:", "empty id"}, nil},
		"three fields": {"src,dst\na,b,c\n", []string{"bad.csv:2:", "3"}, nil},
		"a number":     {"src,dst\n1,a\n", []string{"bad.csv:2:", `"a"`, "is not an integer id"}, []string{"--id-type", "integer"}},
	} {
		t.Run(name, func(t *testing.T) {
			edges := edges
			if name == "a number" {
				edges = write(t, filepath.Join(dir, "numbers.csv"), "1,2\n")
			}
			lists := "test=" + write(t, filepath.Join(t.TempDir(), "bad.csv"), c.text)
			if len(c.flags) == 1 {
				lists, c.flags = lists+","+c.flags[0], nil
			}
			noSnapshot(t, c.parts, append([]string{"--edges", edges, "--holdout-edges", lists}, c.flags...)...)
		})
	}
	noSnapshot(t, []string{"b.csv has a weight column and a.csv has none"}, "--edges", weighted, "--holdout-edges",
		"valid="+write(t, filepath.Join(dir, "a.csv"), "src,dst\na,b\n")+",test="+write(t, filepath.Join(dir, "b.csv"), "src,dst,weight\nb,c,1\n"))

	for _, c := range []struct {
		parts []string
		flags []string
	}{
		{[]string{"--holdout-edges", "both"}, []string{"--holdout", "0.1,0.1", "--holdout-edges", "test=" + list}},
		{[]string{"two shares"}, []string{"--holdout", "0.1"}},
		{[]string{"two shares"}, []string{"--holdout", "a,b"}},
		{[]string{"at most 1"}, []string{"--holdout", "0.6,0.6"}},
		{[]string{"over 0"}, []string{"--holdout", "0,0"}},
		{[]string{"at least 0"}, []string{"--holdout", "-0.1,0.6"}},
		{[]string{"at least 0"}, []string{"--holdout", "NaN,0.6"}},
		{[]string{"--holdout-seed", "isn't given"}, []string{"--holdout-seed", "3"}},
		{[]string{"--holdout-spare-last", "isn't given"}, []string{"--holdout-spare-last", "--holdout-edges", "test=" + list}},
		{[]string{"holdout edges", "valid=FILE,test=FILE"}, []string{"--holdout-edges", list}},
		{[]string{"holdout edges", "valid and test"}, []string{"--holdout-edges", "train=" + list}},
		{[]string{"holdout edges", "twice"}, []string{"--holdout-edges", "test=" + list + ",test=" + list}},
	} {
		refused(t, 2, c.parts, "precompute", append([]string{"snapshot", "--edges", edges, "--out", filepath.Join(t.TempDir(), "snap")}, c.flags...)...)
	}
}

// TestHoldoutSpareLast: no node that had a neighbour loses all.
func TestHoldoutSpareLast(t *testing.T) {
	edges := write(t, filepath.Join(t.TempDir(), "edges.csv"), "src,dst,weight\n"+strings.Join(randomEdges(3, 400, 500), "\n"))
	full := build(t, "--edges", edges)
	bare := build(t, "--edges", edges, "--holdout", "0.3,0.4")
	spared := build(t, "--edges", edges, "--holdout", "0.3,0.4", "--holdout-spare-last")
	if full.Manifest.Audit.IsolatedNodes != spared.Manifest.Audit.IsolatedNodes || bare.Manifest.Audit.IsolatedNodes <= full.Manifest.Audit.IsolatedNodes {
		t.Errorf("%d isolated nodes, %d spared, %d else", full.Manifest.Audit.IsolatedNodes, spared.Manifest.Audit.IsolatedNodes, bare.Manifest.Audit.IsolatedNodes)
	}
	if text := ok(t, "precompute", "inspect", spared.Dir).stdout; !strings.Contains(text, "shares 0.3 and 0.4, seed 1, each node's last pair spared") {
		t.Errorf("inspect says\n%s", text)
	}
}

// TestHoldoutFormats reads lists of other formats than the edges', and cuts batches from what is left.
func TestHoldoutFormats(t *testing.T) {
	dir := t.TempDir()
	edges := write(t, filepath.Join(dir, "edges.csv"), "src,dst\n1,2\n2,3\n3,4\n4,1\n5,1\n")
	mtx := write(t, filepath.Join(dir, "valid.mtx"), "%%MatrixMarket matrix coordinate pattern symmetric\n5 5 1\n2 1\n")
	xml := write(t, filepath.Join(dir, "test.graphml"), `<graphml><graph edgedefault="undirected"><node id="3"/><node id="4"/><edge source="3" target="4"/></graph></graphml>`)
	nodes := write(t, filepath.Join(dir, "nodes.csv"), "id,label,split,f0\n1,x,train,1\n2,y,train,2\n3,x,valid,3\n4,y,test,4\n5,x,train,5\n")
	s := build(t, "--edges", edges, "--nodes", nodes, "--holdout-edges", "valid="+mtx+",test="+xml)
	if got := fmt.Sprint(heldIDs(s, s.Held.Valid), heldIDs(s, s.Held.Test)); got != "[1,2] [3,4]" {
		t.Errorf("held out are %s", got)
	}
	wantDegrees(t, s, map[string]int{"1": 2, "2": 1, "3": 1, "4": 1, "5": 1})
	set := filepath.Join(dir, "set")
	ok(t, "precompute", "batches", "--snapshot", s.Dir, "--out", set, "--fanout", "-1,-1")
	ok(t, "precompute", "verify", set, "--snapshot", s.Dir)
	r := object(t, "trainer-gnn", "train", "--batches", set, "--model", "gcn", "--epochs", "2", "--hidden", "4", "--out", filepath.Join(dir, "run"))
	if r["epochs"] != 2.0 {
		t.Errorf("trained %v epochs, want 2", r["epochs"])
	}
}
