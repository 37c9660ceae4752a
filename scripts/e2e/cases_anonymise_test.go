package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// secretGraph is a graph whose ids are long enough never to turn up by chance.
type secretGraph struct {
	ids          []string
	edges, nodes string // paths
	held         string
}

func newSecretGraph(t *testing.T, order uint64) secretGraph {
	t.Helper()
	rng := rand.New(rand.NewPCG(11, 11))
	var g secretGraph
	for v := range 300 {
		g.ids = append(g.ids, fmt.Sprintf("person-%d-%016x", v, rng.Uint64()))
	}
	id := func() string { return g.ids[rng.IntN(len(g.ids))] }
	var edges, nodes, held []string
	for range 1200 {
		edges = append(edges, id()+","+id())
	}
	for v, id := range g.ids {
		part := []string{"train", "train", "valid", "test"}[v%4]
		nodes = append(nodes, fmt.Sprintf("%s,class%d,%s,%d,%d", id, v%3, part, v, v%7))
	}
	for v := 0; v < 40; v += 2 {
		held = append(held, g.ids[v]+","+g.ids[v+1])
	}
	rng = rand.New(rand.NewPCG(order, 12))
	for _, list := range [][]string{edges, nodes, held} {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	dir := t.TempDir()
	g.edges = write(t, filepath.Join(dir, "edges.csv"), "src,dst\n"+strings.Join(edges, "\n")+"\n")
	g.nodes = write(t, filepath.Join(dir, "nodes.csv"), "id,label,split,f0,f1\n"+strings.Join(nodes, "\n")+"\n")
	g.held = write(t, filepath.Join(dir, "held.csv"), "src,dst\n"+strings.Join(held, "\n")+"\n")
	return g
}

func (g *secretGraph) flags() []string {
	return []string{"--edges", g.edges, "--nodes", g.nodes, "--holdout-edges", "test=" + g.held, "--with", "pagerank,order"}
}

// keyFile writes a key that only its owner can read.
func keyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// codeOf is what an id becomes under a key.
func codeOf(key, id string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(id))
	return hex.EncodeToString(mac.Sum(nil))[:32]
}

func (g *secretGraph) wantNoTrace(t *testing.T, key string, roots ...string) {
	t.Helper()
	for _, trace := range g.traces(t, key, roots...) {
		t.Error(trace)
	}
}

// traces looks through the bytes of everything under the roots for the graph's ids, for plain digests of them, and for the key.
func (g *secretGraph) traces(t *testing.T, key string, roots ...string) (found []string) {
	t.Helper()
	needles := map[string][]byte{"the key": []byte(key), "the key in hexadecimal": []byte(hex.EncodeToString([]byte(key)))}
	plain := sha256.Sum256([]byte(key))
	needles["a plain digest of the key"], needles["a plain digest of the key, in hexadecimal"] = plain[:8], []byte(hex.EncodeToString(plain[:8]))
	for _, id := range g.ids {
		sum := sha256.Sum256([]byte(id))
		turned := slices.Clone(sum[:8])
		slices.Reverse(turned)
		needles[id], needles["a plain digest of "+id], needles["a plain digest of "+id+", turned round"] = []byte(id), sum[:8], turned
		needles["a plain digest of "+id+", in hexadecimal"] = []byte(hex.EncodeToString(sum[:8]))
	}
	numFiles := 0
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			numFiles++
			for what, needle := range needles {
				if bytes.Contains(b, needle) {
					found = append(found, path+" holds "+what)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if numFiles == 0 {
		t.Errorf("nothing to look at in %q", roots)
	}
	return found
}

const secretKey = "correct horse battery staple"

func TestAnonymise(t *testing.T) {
	g := newSecretGraph(t, 1)
	key := keyFile(t, secretKey+"\n")
	s := build(t, append(g.flags(), "--anonymize-key-file", key)...)
	g.wantNoTrace(t, secretKey, s.Dir, s.Dir+".state")
	if d := object(t, "precompute", "inspect", s.Dir); d["anonymized"] != true || d["collation"] != "bytes" || s.Manifest.Params.Anonymised == nil {
		t.Errorf("inspect says anonymized %v, collation %v", d["anonymized"], d["collation"])
	}
	if text := ok(t, "precompute", "inspect", s.Dir).stdout; !strings.Contains(text, "anonymised: HMAC-SHA-256") {
		t.Errorf("inspect says\n%s", text)
	}

	// The ids are the codes; every node keeps its features, class and split, and the graph its shape.
	plain := build(t, g.flags()...)
	if found := g.traces(t, secretKey, plain.Dir); len(found) != 2*len(g.ids) { // ids and keys, which are plain digests
		t.Errorf("%d traces in a plain snapshot, want %d: %q", len(found), 2*len(g.ids), found[:min(3, len(found))])
	}
	wantCounts(t, s, plain.NumNodes(), int(plain.Manifest.NumEdges))
	node := map[string]int32{}
	for v := range s.IDs.Len() {
		node[string(s.IDs.At(v))] = int32(v)
	}
	for old := range int32(plain.NumNodes()) {
		id := string(plain.IDs.At(int(old)))
		v, ok := node[codeOf(secretKey, id)]
		if !ok {
			t.Fatalf("no node has the code of %s", id)
		}
		if s.Features[2*v] != plain.Features[2*old] || s.ClassNames[s.Class[v]] != plain.ClassNames[plain.Class[old]] || s.Mask[v] != plain.Mask[old] {
			t.Errorf("features, class or split of %s are another node's", id)
		}
		var want []int32
		for _, u := range plain.In.Row(old) {
			want = append(want, node[codeOf(secretKey, string(plain.IDs.At(int(u))))])
		}
		if slices.Sort(want); !slices.Equal(s.In.Row(v), want) {
			t.Errorf("neighbours of %s are %v, want %v", id, s.In.Row(v), want)
		}
	}
	if a, b := plain.Manifest.Audit, s.Manifest.Audit; !slices.Equal(a.DegreeHistogram, b.DegreeHistogram) || a.NumComponents != b.NumComponents || a.LargestComponent != b.LargestComponent {
		t.Errorf("degrees %v, %d components, want %v, %d", b.DegreeHistogram, b.NumComponents, a.DegreeHistogram, a.NumComponents)
	}
	if s.Held.Test.Len() != plain.Held.Test.Len() || s.Manifest.Heldout.MissingTest != plain.Manifest.Heldout.MissingTest {
		t.Errorf("%d pairs held out, %d missing, want %d and %d", s.Held.Test.Len(), s.Manifest.Heldout.MissingTest, plain.Held.Test.Len(), plain.Manifest.Heldout.MissingTest)
	}
	if s.ID == plain.ID {
		t.Error("the id is that of the plain snapshot")
	}

	// The same key in another file, without a line end, and shuffled lines: the same snapshot, up to date. Another key: another.
	other := newSecretGraph(t, 2)
	again := build(t, append(other.flags(), "--threads", "7", "--anonymize-key-file", keyFile(t, secretKey))...)
	if again.ID != s.ID || hashDir(t, again.Dir) != hashDir(t, s.Dir) {
		t.Errorf("id %s with the same key and shuffled lines, want %s", again.ID, s.ID)
	}
	rerun := func(flags ...string) map[string]any {
		return object(t, "precompute", append(append([]string{"snapshot", "--out", s.Dir}, g.flags()...), flags...)...)
	}
	if r := rerun("--anonymize-key-file", keyFile(t, secretKey+"\r\n")); r["up_to_date"] != true || r["id"] != s.ID.String() {
		t.Errorf("the same key elsewhere: %v", r)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(s.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte("incorrect horse battery staple"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := rerun("--anonymize-key-file", key); r["up_to_date"] != false || r["id"] == s.ID.String() {
		t.Errorf("another key in the same file: %v", r)
	}
	if r := rerun(); r["up_to_date"] != false || r["id"] != plain.ID.String() {
		t.Errorf("no key: %v", r)
	}

	// Batches, a model and its predictions speak codes only.
	dir := t.TempDir()
	set, model, out := filepath.Join(dir, "set"), filepath.Join(dir, "run"), filepath.Join(dir, "predictions.csv")
	ok(t, "precompute", "batches", "--snapshot", copied, "--out", set, "--fanout", "5,5", "--link-features", "copy")
	ok(t, "precompute", "verify", set)
	ok(t, "trainer-gnn", "train", "--batches", set, "--model", "sage", "--hidden", "8", "--epochs", "2", "--out", model)
	ok(t, "trainer-gnn", "predict", "--run", model, "--batches", set, "--out", out)
	g.wantNoTrace(t, secretKey, dir)
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, line := range lines(string(b))[1:] {
		id, _, _ := strings.Cut(line, ",")
		seen[id] = true
	}
	for _, id := range g.ids {
		if !seen[codeOf(secretKey, id)] {
			t.Errorf("no prediction for the code of %s", id)
		}
	}
	if len(seen) != len(g.ids) {
		t.Errorf("predictions for %d ids, want %d", len(seen), len(g.ids))
	}
}

// TestAnonymiseKilled looks at what killed builds leave.
func TestAnonymiseKilled(t *testing.T) {
	g, key := newSecretGraph(t, 1), keyFile(t, secretKey)
	flags := append([]string{"snapshot", "--anonymize-key-file", key}, g.flags()...)
	start := time.Now()
	ok(t, "precompute", append(flags, "--out", filepath.Join(t.TempDir(), "snap"))...)
	took := time.Since(start)
	for k := range 8 {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "something"), "to look at")
		killAfter(t, took*time.Duration(k+1)/9, append(flags, "--out", filepath.Join(dir, "snap"))...)
		g.wantNoTrace(t, secretKey, dir)
	}
}

func TestAnonymiseMessages(t *testing.T) {
	dir := t.TempDir()
	edges := write(t, filepath.Join(dir, "edges.csv"), "src,dst\nann-anderson,bob-brown\n")
	nodes := write(t, filepath.Join(dir, "nodes.csv"), "id,label,split\nann-anderson,x,train\nbob-brown,,train\n")
	key := keyFile(t, secretKey)

	// Standard error names ids, JSON doesn't.
	r := ok(t, "precompute", "snapshot", "--edges", edges, "--nodes", nodes, "--anonymize-key-file", key, "--out", filepath.Join(dir, "snap"), "--json")
	if !strings.Contains(r.stderr, "bob-brown") || strings.Contains(r.stdout, "bob") || !strings.Contains(r.stdout, "1 warnings on standard error") {
		t.Errorf("stderr %q, stdout %q", r.stderr, r.stdout)
	}
	if strings.Contains(r.stderr+r.stdout, secretKey) || strings.Contains(r.stderr, "can be read") {
		t.Errorf("output %q %q", r.stderr, r.stdout)
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	r = ok(t, "precompute", "snapshot", "--edges", edges, "--anonymize-key-file", key, "--out", filepath.Join(dir, "readable"))
	if !strings.Contains(r.stderr, "can be read by every user of this machine (mode 0644)") {
		t.Errorf("no warning of a key that all can read: %q", r.stderr)
	}

	for name, c := range map[string]struct {
		path  string
		parts []string
	}{
		"short":     {keyFile(t, "fifteen bytes.. "[:15]+"\n"), []string{"15 bytes", "at least 16"}},
		"empty":     {keyFile(t, ""), []string{"0 bytes", "at least 16"}},
		"absent":    {filepath.Join(dir, "nothing"), []string{"no such file"}},
		"directory": {dir, []string{"not a regular file"}},
		"large":     {keyFile(t, strings.Repeat("x", 1<<17)), []string{"more than 65536 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			noSnapshot(t, append(c.parts, "--anonymize-key-file", c.path), "--edges", edges, "--anonymize-key-file", c.path)
		})
	}
}
