package synth

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/edsrzf/mmap-go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// generate writes a graph to a fresh directory and returns it.
func generate(t *testing.T, opt Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if err := Generate(t.Context(), dir, opt, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

// digest returns the SHA-256 over names and contents of the files in dir.
func digest(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(h, "%s %d\n", e.Name(), len(b))
		h.Write(b)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// lines returns the data rows of a text file as fields.
func lines(t *testing.T, path, separator string, header string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows [][]string
	s := bufio.NewScanner(f)
	if header != "" {
		if !s.Scan() || s.Text() != header {
			t.Fatalf("%s: header %q, want %q", path, s.Text(), header)
		}
	}
	for s.Scan() {
		rows = append(rows, strings.Split(s.Text(), separator))
	}
	return rows
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil || strconv.Itoa(n) != s {
		t.Fatalf("%q is not a canonical integer", s)
	}
	return n
}

// edges returns edges.csv of a graph with n nodes.
func edges(t *testing.T, dir string, n int) [][2]int {
	t.Helper()
	var pairs [][2]int
	for _, row := range lines(t, filepath.Join(dir, "edges.csv"), ",", "src,dst") {
		pair := [2]int{number(t, row[0]), number(t, row[1])}
		if min(pair[0], pair[1]) < 0 || max(pair[0], pair[1]) >= n {
			t.Fatalf("edge %v outside 0..%d", pair, n-1)
		}
		pairs = append(pairs, pair)
	}
	return pairs
}

// column returns the second column of a file whose first one counts 0..n-1.
func column(t *testing.T, path, header string, n int) []string {
	t.Helper()
	var words []string
	for i, row := range lines(t, path, ",", header) {
		if number(t, row[0]) != i {
			t.Fatalf("%s: row %d is node %s", path, i, row[0])
		}
		words = append(words, row[1])
	}
	if len(words) != n {
		t.Fatalf("%s: %d rows, want %d", path, len(words), n)
	}
	return words
}

// npy reads a float32 matrix as numpy/lib/format.py does.
func npy(t *testing.T, path string, rows, cols int) []float32 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	if string(m[:8]) != "\x93NUMPY\x01\x00" {
		t.Fatalf("magic %q", m[:8])
	}
	start := 10 + int(binary.LittleEndian.Uint16(m[8:]))
	header := string(m[10:start])
	if start%64 != 0 || !strings.HasSuffix(header, "\n") {
		t.Errorf("data at byte %d after header %q, want a multiple of 64 and a newline", start, header)
	}
	want := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
	if got := strings.TrimRight(header, " \n"); got != want {
		t.Errorf("header %q, want %q", got, want)
	}
	if len(m) != start+4*rows*cols {
		t.Fatalf("%d bytes, want %d", len(m), start+4*rows*cols)
	}
	x := make([]float32, rows*cols)
	if err := binary.Read(bytes.NewReader(m[start:]), binary.LittleEndian, x); err != nil {
		t.Fatal(err)
	}
	return x
}

var small = map[string]Options{
	"sbm":        {Kind: KindSBM, NumNodes: 20_000, NumEdges: 200_000, NumFeatures: 7, NumClasses: 5, Seed: 1},
	"rmat":       {Kind: KindRMAT, NumNodes: 10_000, NumEdges: 150_000, Seed: 2},
	"rmat-table": {Kind: KindRMAT, NumNodes: 3_000, NumEdges: 9_000, NumFeatures: 3, NumClasses: 4, Seed: 3},
	"kg":         {Kind: KindKG, NumNodes: 9_000, NumEdges: 140_000, NumRels: 40, Seed: 4},
}

func TestSameBytes(t *testing.T) {
	// The digests were recorded on amd64. A change means that the same options give other
	// bytes: then generatorVersion changes too.
	want := map[string]string{
		"sbm":        "95548b64ae053208fde7871c27ae106f5265b4d0130f74df4571ba2504a06c34",
		"rmat":       "7bd3b94c79688b7f3d1e63518ec83c2218f6e8daba77530df7009d2fced431a3",
		"rmat-table": "5cd3d060eed16a6f245b6cc5ae21f0fbe0867f4e40f8b5e35b2a5cab2a4973ac",
		"kg":         "c32cfd173694f1c19e15da88bd124c576364bedcadee551d4addd0c6a99bcf43",
	}
	for name, opt := range small {
		t.Run(name, func(t *testing.T) {
			for _, threads := range []int{1, 2, 8} {
				opt.Threads = threads
				if got := digest(t, generate(t, opt)); got != want[name] {
					t.Errorf("%d threads: digest %s, want %s", threads, got, want[name])
				}
			}
			opt.Seed++
			if got := digest(t, generate(t, opt)); got == want[name] {
				t.Error("another seed gives the same bytes")
			}
		})
	}
}

func TestBlockModel(t *testing.T) {
	for _, tc := range []struct {
		nodes, edges int
		classes      int
		homophily    float64 // 0: default
	}{
		{1, 0, 1, 0}, {2, 0, 1, 0}, {2, 1, 2, 0}, {3, 3, 1, 0}, {7, 21, 3, 0}, {8, 20, 8, 1}, // tiny, complete, no pair within a class
		{300, 40_000, 4, 0}, {300, 44_850, 4, 0}, {300, 44_849, 300, 0}, // dense, complete
		{500, 20_000, 50, 0.9}, // more wanted within classes than there are pairs
		{20_000, 200_000, 16, 0}, {20_000, 200_000, 5, 0.8}, {20_000, 200_000, 2, 0.1}, {20_000, 199_999, 1, 0},
	} {
		name := fmt.Sprintf("nodes=%d/edges=%d/classes=%d/homophily=%v", tc.nodes, tc.edges, tc.classes, tc.homophily)
		t.Run(name, func(t *testing.T) {
			dir := generate(t, Options{Kind: KindSBM, NumNodes: int64(tc.nodes), NumEdges: int64(tc.edges), NumClasses: tc.classes, Homophily: tc.homophily, Seed: 9})
			class := column(t, filepath.Join(dir, "labels.csv"), "node,label", tc.nodes)
			sizes := map[string]int{}
			for _, c := range class {
				sizes[c]++
			}
			if len(sizes) != tc.classes {
				t.Errorf("%d classes, want %d", len(sizes), tc.classes)
			}
			pairs := edges(t, dir, tc.nodes)
			distinct := map[[2]int]bool{}
			degree := make([]int, tc.nodes)
			within := 0
			for _, p := range pairs {
				if p[0] == p[1] {
					t.Fatalf("self-loop %v", p)
				}
				distinct[[2]int{min(p[0], p[1]), max(p[0], p[1])}] = true
				degree[p[0]]++
				degree[p[1]]++
				if class[p[0]] == class[p[1]] {
					within++
				}
			}
			if len(pairs) != tc.edges || len(distinct) != tc.edges {
				t.Errorf("%d lines, %d distinct pairs, want %d", len(pairs), len(distinct), tc.edges)
			}
			if tc.nodes < 10_000 {
				return
			}
			want := tc.homophily
			if want == 0 {
				want = DefaultHomophily
			}
			if tc.classes == 1 {
				want = 1
			}
			if got := float64(within) / float64(tc.edges); math.Abs(got-want) > 0.02 {
				t.Errorf("homophily %.3f, want %.2f +- 0.02", got, want)
			}
			if tc.classes > 1 {
				big, tiny := sizes[strconv.Itoa(tc.classes-1)], sizes["0"]
				if ratio := float64(big) / float64(tiny); ratio < 2.8 || ratio > 3.2 {
					t.Errorf("largest class %d, smallest %d, want 3 to 1", big, tiny)
				}
			}
			slices.Sort(degree)
			mean := 2 * float64(tc.edges) / float64(tc.nodes)
			if top := float64(degree[len(degree)-1]) / mean; top < 10 || top > 50 {
				t.Errorf("largest degree is %.1f times the mean, want 10 to 50", top)
			}
			if median := float64(degree[len(degree)/2]) / mean; median > 0.7 {
				t.Errorf("median degree is %.2f of the mean, want a skewed distribution", median)
			}
		})
	}
}

// TestFeaturesNeedNeighbours: own features classify badly, together with the neighbours' mean well.
// The classifier is the nearest class mean, means taken over the training nodes.
func TestFeaturesNeedNeighbours(t *testing.T) {
	const n, dim, numClasses = 20_000, 64, 16
	dir := generate(t, Options{Kind: KindSBM, NumNodes: n, NumEdges: 10 * n, NumFeatures: dim, NumClasses: numClasses, Seed: 1})
	x := npy(t, filepath.Join(dir, "features.npy"), n, dim)
	split := column(t, filepath.Join(dir, "split.csv"), "node,split", n)
	label := make([]int, n)
	for i, c := range column(t, filepath.Join(dir, "labels.csv"), "node,label", n) {
		label[i] = number(t, c)
	}
	// both = own + 2 * mean over neighbours
	both := slices.Clone(x)
	degree := make([]float32, n)
	pairs := edges(t, dir, n)
	for _, p := range pairs {
		degree[p[0]]++
		degree[p[1]]++
	}
	for _, p := range pairs {
		for f := range dim {
			both[p[0]*dim+f] += 2 * x[p[1]*dim+f] / degree[p[0]]
			both[p[1]*dim+f] += 2 * x[p[0]*dim+f] / degree[p[1]]
		}
	}
	accuracy := func(x []float32) float64 {
		var mean [numClasses][dim]float64
		var count [numClasses]float64
		for v := range n {
			if split[v] == "train" {
				count[label[v]]++
				for f := range dim {
					mean[label[v]][f] += float64(x[v*dim+f])
				}
			}
		}
		right, total := 0, 0
		for v := range n {
			if split[v] != "test" {
				continue
			}
			best, bestDistance := -1, math.Inf(1)
			for c := range numClasses {
				distance := 0.0
				for f := range dim {
					delta := float64(x[v*dim+f]) - mean[c][f]/count[c]
					distance += delta * delta
				}
				if distance < bestDistance {
					best, bestDistance = c, distance
				}
			}
			total++
			if best == label[v] {
				right++
			}
		}
		return float64(right) / float64(total)
	}
	own, with := accuracy(x), accuracy(both)
	t.Logf("accuracy: own features %.3f, with neighbours %.3f", own, with)
	if own < 0.5 || own > 0.7 || with < own+0.1 {
		t.Errorf("accuracy %.3f with own features, %.3f with neighbours, want 0.5 to 0.7 and at least 0.1 more", own, with)
	}
}

func TestSplit(t *testing.T) {
	for _, tc := range []struct {
		nodes              int
		fraction           float64
		train, valid, test int
	}{
		{1000, 0, 80, 80, 840}, {1000, 0.25, 250, 100, 650}, {1000, 0.95, 950, 50, 0}, {1000, 1, 1000, 0, 0}, {1, 0.5, 1, 0, 0}, {20, 1e-9, 1, 1, 18},
	} {
		t.Run(fmt.Sprintf("nodes=%d/fraction=%v", tc.nodes, tc.fraction), func(t *testing.T) {
			dir := generate(t, Options{Kind: KindSBM, NumNodes: int64(tc.nodes), NumClasses: 1, TrainFraction: tc.fraction})
			count := map[string]int{}
			for _, part := range column(t, filepath.Join(dir, "split.csv"), "node,split", tc.nodes) {
				count[part]++
			}
			if got, want := [3]int{count["train"], count["valid"], count["test"]}, [3]int{tc.train, tc.valid, tc.test}; got != want {
				t.Errorf("train, valid, test = %v, want %v", got, want)
			}
		})
	}
}

func TestRMAT(t *testing.T) {
	for _, n := range []int{1, 2, 3, 1000, 1024, 1025} {
		t.Run(fmt.Sprintf("nodes=%d", n), func(t *testing.T) {
			m := 20 * n
			dir := generate(t, Options{Kind: KindRMAT, NumNodes: int64(n), NumEdges: int64(m), NumFeatures: 2, NumClasses: min(4, n)})
			pairs := edges(t, dir, n)
			if len(pairs) != m {
				t.Errorf("%d lines, want %d", len(pairs), m)
			}
			npy(t, filepath.Join(dir, "features.npy"), n, 2)
			column(t, filepath.Join(dir, "labels.csv"), "node,label", n)
			column(t, filepath.Join(dir, "split.csv"), "node,split", n)
			if n < 1000 {
				return
			}
			degree := make([]int, n)
			for _, p := range pairs {
				degree[p[0]]++
				degree[p[1]]++
			}
			if top := slices.Max(degree); top < 10*2*m/n {
				t.Errorf("largest degree %d, want at least 10 times the mean %d", top, 2*m/n)
			}
			if hub := slices.Index(degree, slices.Max(degree)); hub == 0 {
				t.Error("the largest hub is node 0: ids are not scrambled")
			}
		})
	}
}

func TestKnowledgeGraph(t *testing.T) {
	for _, tc := range []struct{ entities, triples, rels int }{
		{1, 0, 1}, {3, 3, 1}, {3, 12, 4}, {40, 7800, 10}, // tiny, at the limit
		{500, 200, 300}, // more entities and relations than triples
		{5000, 100_000, 50},
	} {
		t.Run(fmt.Sprintf("entities=%d/triples=%d/rels=%d", tc.entities, tc.triples, tc.rels), func(t *testing.T) {
			dir := generate(t, Options{Kind: KindKG, NumNodes: int64(tc.entities), NumEdges: int64(tc.triples), NumRels: tc.rels, Seed: 5})
			known, inTrain, uses := map[string]bool{}, map[string]bool{}, map[string]int{}
			count := map[string]int{}
			for _, name := range []string{"train", "valid", "test"} {
				for _, row := range lines(t, filepath.Join(dir, name+".tsv"), "\t", "") {
					if len(row) != 3 || row[0][0] != 'e' || row[1][0] != 'r' || row[2][0] != 'e' || row[0] == row[2] {
						t.Fatalf("%s: triple %q", name, row)
					}
					if number(t, row[0][1:]) >= tc.entities || number(t, row[1][1:]) >= tc.rels || number(t, row[2][1:]) >= tc.entities {
						t.Fatalf("%s: triple %q out of range", name, row)
					}
					if triple := strings.Join(row, "\t"); known[triple] {
						t.Fatalf("%s: triple %q again", name, triple)
					} else {
						known[triple] = true
					}
					count[name]++
					for _, word := range row {
						if name == "train" {
							inTrain[word] = true
						} else if !inTrain[word] {
							t.Errorf("%s: %s is not in train", name, word)
						}
						uses[word]++
					}
				}
			}
			if len(known) != tc.triples {
				t.Errorf("%d triples, want %d", len(known), tc.triples)
			}
			if tc.triples < 100_000 {
				return
			}
			for _, name := range []string{"valid", "test"} {
				if got := float64(count[name]) / float64(tc.triples); got < 0.04 || got > 0.05 {
					t.Errorf("%s has %.3f of the triples, want 0.04 to 0.05", name, got)
				}
			}
			mean := map[byte]float64{'e': 2 * float64(tc.triples) / float64(tc.entities), 'r': float64(tc.triples) / float64(tc.rels)}
			top := map[byte]float64{}
			for word, n := range uses {
				top[word[0]] = max(top[word[0]], float64(n)/mean[word[0]])
			}
			if top['e'] < 10 || top['r'] < 8 {
				t.Errorf("most used entity %.1f, relation %.1f times the mean, want power laws", top['e'], top['r'])
			}
		})
	}
}

func TestInvalidOptions(t *testing.T) {
	for _, tc := range []struct {
		want string // begins the error
		opt  Options
	}{
		{`--kind "tree"`, Options{Kind: "tree", NumNodes: 1}},
		{"--nodes 0", Options{Kind: KindSBM, NumClasses: 1}},
		{"--nodes -5", Options{Kind: KindSBM, NumNodes: -5, NumClasses: 1}},
		{"--nodes 2147483648", Options{Kind: KindRMAT, NumNodes: 1 << 31}},
		{"--edges -1", Options{Kind: KindRMAT, NumNodes: 9, NumEdges: -1}},
		{"--edges 9223372036854775807", Options{Kind: KindRMAT, NumNodes: 9, NumEdges: math.MaxInt64}},
		{"--edges 46: 10 nodes have only 45", Options{Kind: KindSBM, NumNodes: 10, NumEdges: 46, NumClasses: 1}},
		{"--features -1", Options{Kind: KindSBM, NumNodes: 9, NumFeatures: -1, NumClasses: 1}},
		{"--classes 0", Options{Kind: KindSBM, NumNodes: 9}},
		{"--classes 10", Options{Kind: KindSBM, NumNodes: 9, NumClasses: 10}},
		{"--classes -1", Options{Kind: KindRMAT, NumNodes: 9, NumClasses: -1}},
		{"--rels 3", Options{Kind: KindSBM, NumNodes: 9, NumClasses: 1, NumRels: 3}},
		{"--rels 3", Options{Kind: KindRMAT, NumNodes: 9, NumRels: 3}},
		{"--rels 0", Options{Kind: KindKG, NumNodes: 9}},
		{"--rels -1", Options{Kind: KindKG, NumNodes: 9, NumRels: -1}},
		{"--features 2, --classes 0", Options{Kind: KindKG, NumNodes: 9, NumRels: 1, NumFeatures: 2}},
		{"--edges 37: at most 36", Options{Kind: KindKG, NumNodes: 9, NumRels: 1, NumEdges: 37}},
		{"--edges 1: at most 0", Options{Kind: KindKG, NumNodes: 1, NumRels: 1, NumEdges: 1}},
		{"--train-fraction 1.5", Options{Kind: KindRMAT, NumNodes: 9, TrainFraction: 1.5}},
		{"--train-fraction NaN", Options{Kind: KindRMAT, NumNodes: 9, TrainFraction: math.NaN()}},
		{"homophily -0.1", Options{Kind: KindRMAT, NumNodes: 9, Homophily: -0.1}},
		{"separation NaN", Options{Kind: KindRMAT, NumNodes: 9, Separation: math.NaN()}},
		{"--threads -1", Options{Kind: KindRMAT, NumNodes: 9, Threads: -1}},
	} {
		t.Run(tc.want, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			err := Generate(t.Context(), dir, tc.opt, nil)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line that begins with %q", err, tc.want)
			}
			if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) != 0 {
				t.Errorf("left %v", entries)
			}
		})
	}
}

func TestPublish(t *testing.T) {
	opt := Options{Kind: KindSBM, NumNodes: 100, NumEdges: 300, NumFeatures: 2, NumClasses: 3}
	names := func(dir string) (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("replaces its own output and what a killed job left", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a", "out")
		write(t, filepath.Join(dir+".partial", "junk"), "x")
		write(t, filepath.Join(dir+".replaced", "junk"), "x")
		if err := Generate(t.Context(), dir, opt, nil); err != nil {
			t.Fatal(err)
		}
		other := opt
		other.Kind, other.NumFeatures = KindRMAT, 0
		if err := Generate(t.Context(), dir, other, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := names(dir), []string{"edges.csv", "gen.json", "labels.csv", "split.csv"}; !slices.Equal(got, want) {
			t.Errorf("files %v, want %v", got, want)
		}
		if got, want := names(filepath.Dir(dir)), []string{"out"}; !slices.Equal(got, want) {
			t.Errorf("beside it %v, want %v", got, want)
		}
		info, err := ReadInfo(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Kind != KindRMAT || info.NumEdges != 300 || info.Files[0].Rows != 300 {
			t.Errorf("gen.json says %+v", info)
		}
		for _, f := range info.Files {
			if s, err := os.Stat(filepath.Join(dir, f.Name)); err != nil || s.Size() != f.SizeBytes {
				t.Errorf("%s: %v bytes, gen.json says %d (%v)", f.Name, s.Size(), f.SizeBytes, err)
			}
		}
	})
	t.Run("an empty directory is fine", func(t *testing.T) {
		if err := Generate(t.Context(), t.TempDir(), opt, nil); err != nil {
			t.Error(err)
		}
	})
	for name, files := range map[string][]string{
		"refuses a foreign directory":      {"thesis.tex"},
		"refuses one with a file too many": {"gen.json", "thesis.tex"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range files {
				write(t, filepath.Join(dir, f), "{}")
			}
			if err := Generate(t.Context(), dir, opt, nil); err == nil || !strings.Contains(err.Error(), "not") {
				t.Errorf("error %v, want a refusal", err)
			}
			if got := names(dir); !slices.Equal(got, files) {
				t.Errorf("files %v, want %v", got, files)
			}
		})
	}
	t.Run("an interrupted job leaves what was there", func(t *testing.T) {
		dir := generate(t, opt)
		before := digest(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		big := opt
		big.NumNodes, big.NumEdges = 200_000, 2_000_000
		err := Generate(ctx, dir, big, func(string, int64, int64) { cancel() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
		if digest(t, dir) != before || len(names(filepath.Dir(dir))) != 1 {
			t.Errorf("the old output changed, or something is left: %v", names(filepath.Dir(dir)))
		}
	})
	t.Run("a second job is refused", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		var second error
		err := Generate(t.Context(), dir, opt, func(string, int64, int64) {
			second = Generate(t.Context(), dir, opt, nil)
		})
		if err != nil || second == nil || !strings.Contains(second.Error(), "another job") {
			t.Errorf("first: %v, second: %v, want nil and a refusal", err, second)
		}
	})
}

func TestPermutation(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 4, 5, 63, 64, 65, 1000} {
		p := newPermutation(7, forIDs, n)
		seen := make([]bool, n)
		for i := range n {
			j := p.at(i)
			if seen[j] {
				t.Fatalf("n=%d: %d comes twice", n, j)
			}
			seen[j] = true
		}
	}
}

func TestWeighted(t *testing.T) {
	for _, weights := range [][]uint64{{1}, {5, 1, 1}, {1, 1 << 40, 1}, slices.Repeat([]uint64{3}, 100)} {
		w := newWeighted(len(weights), func(i int) uint64 { return weights[i] })
		for i := range weights {
			for _, x := range []uint64{w.cum[i], w.cum[i+1] - 1} {
				if got := w.owner(x); got != i {
					t.Errorf("%v: owner(%d) = %d, want %d", weights, x, got, i)
				}
			}
		}
	}
}

func TestInOrder(t *testing.T) {
	boom := errors.New("boom")
	for _, threads := range []int{1, 3} {
		for _, numChunks := range []int{0, 1, 50} {
			var got []byte
			err := inOrder(t.Context(), threads, numChunks, 1, func(chunk int, out []piece) {
				out[0].bytes = append(out[0].bytes, byte(chunk))
			}, func(out []piece) error {
				got = append(got, out[0].bytes...)
				return nil
			})
			if err != nil || len(got) != numChunks || !slices.IsSorted(got) {
				t.Errorf("%d threads, %d chunks: %v, %v", threads, numChunks, got, err)
			}
		}
		err := inOrder(t.Context(), threads, 50, 1, func(int, []piece) {}, func([]piece) error { return boom })
		if !errors.Is(err, boom) {
			t.Errorf("%d threads: error %v, want %v", threads, err, boom)
		}
	}
}

// TestDiskFull: a write error comes back and leaves nothing. /dev/full refuses every byte.
func TestDiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	f := &file{name: "full", f: full}
	if err := f.write([]byte("x")); err == nil {
		t.Error("no error from a full disk")
	}
	f.abandon()
}
