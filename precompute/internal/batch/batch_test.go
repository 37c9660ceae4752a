package batch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
	"github.com/prelift/prelift/snapshot"
	"github.com/prelift/prelift/snapshot/graph"
	"golang.org/x/sys/unix"
)

// TestMain puts the tests' files into memory where there is room for that: every file
// of an artefact is synced, which on a disk is nearly all of the time these tests take.
func TestMain(m *testing.M) {
	const memory, roomBytes = "/dev/shm", 2 << 30
	var fs unix.Statfs_t
	if unix.Statfs(memory, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < roomBytes {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp(memory, "prelift-batch")
	if err != nil {
		os.Exit(m.Run())
	}
	os.Setenv("TMPDIR", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// testGraph describes a graph for a test; node numbers are places in the order of ids.
type testGraph struct {
	numNodes int
	edges    [][2]int32 // src, dst
	weights  []float32
	directed bool
	features int
	labels   string // class (also ""), bits, values or none
	classOf  func(v int) int32
	parts    [][]format.Part // by split column; nil: one column with every node train
	with     []string        // of snapshot.Params
	hops     int             // of the hop index
	noSplits bool
}

func (g *testGraph) tables() *snapshot.Tables {
	n := g.numNodes
	t := &snapshot.Tables{IDs: snapshot.IDs{Offsets: []int64{0}, Collation: snapshot.CollationBytes}}
	for v := range n {
		t.IDs.Bytes = fmt.Appendf(t.IDs.Bytes, "n%08d", v)
		t.IDs.Offsets = append(t.IDs.Offsets, int64(len(t.IDs.Bytes)))
	}
	var src, dst []int32
	for _, e := range g.edges {
		src, dst = append(src, e[0]), append(dst, e[1])
	}
	t.Edges = graph.EdgesOf(src, dst, g.weights, nil)
	if g.features > 0 {
		t.Features = &snapshot.Features{NumCols: g.features, Data: make([]float32, n*g.features)}
		for i := range t.Features.Data {
			t.Features.Data[i] = float32(i%101) / 7
		}
	}
	class := g.classOf
	if class == nil {
		class = func(v int) int32 { return int32(v % 2) }
	}
	switch g.labels {
	case "", "class":
		l := &snapshot.Labels{Task: snapshot.TaskMulticlass, ClassNames: []string{"a", "b", "c"}, Class: make([]int32, n)}
		for v := range n {
			l.Class[v] = class(v)
		}
		t.Labels = l
	case "bits":
		l := &snapshot.Labels{Task: snapshot.TaskMultilabel, ClassNames: []string{"x", "y"}, Bits: make([]uint8, 2*n), Labelled: make([]bool, n)}
		for v := range n {
			l.Bits[2*v+v%2], l.Labelled[v] = 1, v%5 != 4
		}
		t.Labels = l
	case "values":
		l := &snapshot.Labels{Task: snapshot.TaskRegression, NumTargets: 2, Values: make([]float32, 2*n), Labelled: make([]bool, n)}
		for v := range n {
			l.Values[2*v], l.Values[2*v+1], l.Labelled[v] = float32(v), -1, v%5 != 4
		}
		t.Labels = l
	}
	if g.noSplits {
		return t
	}
	parts := g.parts
	if parts == nil {
		parts = [][]format.Part{slices.Repeat([]format.Part{format.PartTrain}, n)}
	}
	t.Splits = &snapshot.Splits{Mask: make([]uint8, n*len(parts))}
	for k, column := range parts {
		t.Splits.Names = append(t.Splits.Names, fmt.Sprintf("split%d", k))
		for v := range n {
			t.Splits.Mask[v*len(parts)+k] = uint8(column[v])
		}
	}
	return t
}

// open builds the snapshot of g and opens it until the test ends.
func (g *testGraph) open(t testing.TB) *snapshot.Snapshot {
	t.Helper()
	out := filepath.Join(t.TempDir(), "snap")
	job, err := format.Begin(out, snapshot.Kind, format.Digest{1})
	if err != nil {
		t.Fatal(err)
	}
	p := snapshot.Params{Direction: snapshot.Undirected, FeatureNorm: "none", MissingFeatures: "error"}
	p.With, p.Hops = g.with, g.hops
	if g.hops > 0 {
		p.CompactBelow, p.HubFrom = 4, 12
	}
	if g.hops == 2 {
		p.ExpandLimit, p.Hop2Cap = 1000, 1000
	}
	if g.directed {
		p.Direction = snapshot.Directed
	}
	if _, _, err := snapshot.Build(context.Background(), job, g.tables(), p, snapshot.Options{Threads: 2}); err != nil {
		t.Fatal(err)
	}
	snap, err := snapshot.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { snap.Close() })
	return snap
}

// params returns the defaults as change alters them.
func params(change func(p *format.BatchParams)) format.BatchParams {
	p := Defaults()
	if change != nil {
		change(&p)
	}
	return p
}

// build resolves and writes a batch set into a new directory, checks it in every way, and returns
// its place, manifest and plan.
func build(t testing.TB, snap *snapshot.Snapshot, p format.BatchParams, opt Options) (string, *format.BatchSet, *Plan) {
	t.Helper()
	ctx := context.Background()
	p, plan, err := Resolve(ctx, snap, p, opt)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "set")
	opt.Plan = plan
	m := write(t, out, snap, p, opt)
	if err := Verify(out); err != nil {
		t.Fatalf("verify: %v", err)
	}
	if err := VerifyAgainst(out, snap); err != nil {
		t.Fatalf("verify against the snapshot: %v", err)
	}
	return out, m, plan
}

func write(t testing.TB, out string, snap *snapshot.Snapshot, p format.BatchParams, opt Options) *format.BatchSet {
	t.Helper()
	key, err := SetKey(snap.ID, p)
	if err != nil {
		t.Fatal(err)
	}
	job, err := format.Begin(out, format.KindBatchSet, key)
	if err != nil {
		t.Fatal(err)
	}
	_, m, err := Write(context.Background(), job, snap, p, opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// randomGraph has about numEdges edges by a fixed rule, with some self loops and duplicates.
func randomGraph(numNodes, numEdges int) *testGraph {
	g := &testGraph{numNodes: numNodes, features: 8}
	x := uint64(12345)
	next := func(n int) int32 {
		x = x*6364136223846793005 + 1442695040888963407
		return int32((x >> 33) % uint64(n))
	}
	for range numEdges {
		// The smaller of two numbers makes the low nodes hubs.
		g.edges = append(g.edges, [2]int32{min(next(numNodes), next(numNodes)), next(numNodes)})
	}
	for v := range int32(numNodes / 50) {
		g.edges = append(g.edges, [2]int32{v * 7, v * 7})
	}
	g.classOf = func(v int) int32 { return int32(v%10)/3 - int32(v%10)/9 }
	parts := make([]format.Part, numNodes)
	for v := range parts {
		parts[v] = []format.Part{format.PartTrain, format.PartTest, format.PartNone, format.PartTrain, format.PartValid}[v%5]
	}
	g.parts = [][]format.Part{parts}
	return g
}

// hashDir returns the digest of every file's name and bytes.
func hashDir(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	for _, e := range entries {
		info, err := format.DigestFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(sum, info.Name, info.SizeBytes, info.SHA256)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// batches calls check with each training record of a set.
func batches(t testing.TB, dir string, m *format.BatchSet, check func(r *format.Record)) {
	t.Helper()
	for _, info := range m.Files {
		if !strings.HasPrefix(info.Name, "batches-") {
			continue
		}
		f, err := format.Open(filepath.Join(dir, info.Name))
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Records {
			r, err := f.Record(i)
			if err != nil {
				t.Fatal(err)
			}
			check(r)
		}
		f.Close()
	}
}

func TestShapes(t *testing.T) {
	t.Parallel()
	one := [][]format.Part{{format.PartTrain}}
	for _, g := range []struct {
		name  string
		graph testGraph
	}{
		{"one node", testGraph{numNodes: 1, features: 3, parts: one}},
		{"one node with a loop", testGraph{numNodes: 1, features: 3, parts: one, edges: [][2]int32{{0, 0}}}},
		{"no edges", testGraph{numNodes: 5, features: 3}},
		{"no features", testGraph{numNodes: 4, edges: [][2]int32{{0, 1}, {1, 2}}}},
		{"no splits", testGraph{numNodes: 4, edges: [][2]int32{{0, 1}}, noSplits: true, features: 1}},
		{"isolated nodes", testGraph{numNodes: 9, features: 2, edges: [][2]int32{{0, 8}, {8, 4}}}},
		{"self loops", testGraph{numNodes: 3, features: 2, edges: [][2]int32{{0, 0}, {1, 1}, {2, 2}, {0, 1}, {1, 0}}}},
		{"directed", testGraph{numNodes: 6, features: 2, directed: true, edges: [][2]int32{{0, 1}, {2, 1}, {3, 1}, {4, 3}, {5, 4}, {1, 1}}}},
		{"weighted", testGraph{numNodes: 4, features: 2, edges: [][2]int32{{0, 1}, {1, 2}, {1, 3}, {2, 2}}, weights: []float32{2, 0.5, 0.25, 3}}},
		{"weighted, no edges", testGraph{numNodes: 2, features: 2, weights: []float32{}}},
		{"two components", testGraph{numNodes: 6, features: 2, edges: [][2]int32{{0, 1}, {1, 2}, {3, 4}, {4, 5}}}},
		{"multilabel", testGraph{numNodes: 10, features: 2, labels: "bits", edges: [][2]int32{{0, 1}, {1, 2}, {9, 4}}}},
		{"regression", testGraph{numNodes: 10, features: 2, labels: "values", edges: [][2]int32{{0, 1}, {1, 2}, {9, 4}}}},
		{"random", *randomGraph(300, 2000)},
	} {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			snap := g.graph.open(t)
			for _, p := range []format.BatchParams{
				params(nil),
				params(func(p *format.BatchParams) { p.Mode = ModeFull }),
				params(func(p *format.BatchParams) {
					p.Fanout, p.BatchSize, p.Norm, p.Order = []int{3, -1, 2}, 3, []string{"sum", "none", "mean", "gcn"}, sample.Locality
				}),
				params(func(p *format.BatchParams) {
					p.Fanout, p.BatchesPerFile, p.BatchSize, p.Eval, p.Norm, p.LinkFeatures, p.IndexCodec = []int{0}, 2, 2, None, []string{"none"}, None, CodecRaw
				}),
			} {
				dir, m, plan := build(t, snap, p, Options{Threads: 2})
				if !plan.Exact && m.NumBatches <= 32 {
					t.Errorf("plan of %d batches is not exact", m.NumBatches)
				}
				tolerance := 0.05
				if plan.Exact {
					tolerance = 0
				}
				checkPlan(t, plan, m, tolerance)
				checkDescription(t, dir, m)
			}
		})
	}
}

// checkPlan compares a plan with what was written, up to a relative error.
func checkPlan(t *testing.T, plan *Plan, m *format.BatchSet, tolerance float64) {
	t.Helper()
	linked := int64(0)
	for _, f := range m.Files {
		switch f.Name {
		case format.SetIDsFile, format.SetLabelsFile, format.SetSplitsFile, format.SetFeaturesFile:
			linked += int64(f.SizeBytes)
		}
	}
	for _, c := range []struct {
		what       string
		plan, real int64
		tolerance  float64
	}{
		{"batches", int64(plan.NumBatches), int64(m.NumBatches), 0},
		{"seeds", int64(plan.NumSeeds), int64(m.NumSeeds), 0},
		{"rows", plan.NumRows, int64(m.NumRows), tolerance},
		{"edges", plan.NumSampledEdges, int64(m.NumSampledEdges), tolerance},
		{"bytes", plan.Bytes, int64(m.Bytes), tolerance},
		{"bytes per variant", plan.BytesPerVariant, int64(m.BytesPerVariant), tolerance},
		{"eval bytes", plan.EvalBytes, int64(m.EvalBytes), 0},
		{"linked bytes", plan.LinkedBytes, linked, 0},
		{"feature table bytes", plan.FeatureTableBytes, int64(m.FeatureTableBytes), 0},
	} {
		if math.Abs(float64(c.plan-c.real)) > c.tolerance*float64(c.real) {
			t.Errorf("%s: planned %d, written %d (tolerance %g)", c.what, c.plan, c.real, c.tolerance)
		}
	}
}

func checkDescription(t *testing.T, dir string, m *format.BatchSet) {
	t.Helper()
	d, err := Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, sections := int64(0), int64(0)
	for _, f := range m.Files {
		info, err := os.Stat(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		files += info.Size()
	}
	byGroup := map[string]int64{}
	for _, s := range d.Sections {
		sections += s.SizeBytes
		byGroup[s.Group] += s.SizeBytes
	}
	if d.TotalBytes != files || sections != files {
		t.Errorf("described %d bytes, sections %d, files have %d", d.TotalBytes, sections, files)
	}
	if byGroup[GroupTraining] != d.Bytes || byGroup[GroupEval] != d.EvalBytes || byGroup[GroupLinked] != d.LinkedBytes {
		t.Errorf("sections by group %v; bytes %d, eval %d, linked %d", byGroup, d.Bytes, d.EvalBytes, d.LinkedBytes)
	}
	if (d.Amplification == nil) != (m.NumFeatures == 0) {
		t.Errorf("amplification %v with %d features", d.Amplification, m.NumFeatures)
	}
}

func TestSameBytesForAnyThreads(t *testing.T) {
	t.Parallel()
	snap := randomGraph(3000, 20000).open(t)
	for _, p := range []format.BatchParams{
		params(func(p *format.BatchParams) { p.BatchSize, p.BatchesPerFile, p.Order = 50, 5, sample.Locality }),
		params(func(p *format.BatchParams) { p.BatchSize, p.BatchesPerFile, p.Store = 100, 3, StorePacked }),
		params(func(p *format.BatchParams) { p.Mode = ModeFull }),
	} {
		p, _, err := Resolve(context.Background(), snap, p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		for _, threads := range []int{1, 2, 8} {
			out := filepath.Join(t.TempDir(), "set")
			write(t, out, snap, p, Options{Threads: threads, CopyFiles: threads == 2})
			if got := hashDir(t, out); want == "" {
				want = got
			} else if got != want {
				t.Errorf("mode %s, store %s: %d threads give %s, want %s", p.Mode, p.Store, threads, got, want)
			}
		}
	}
}

// TestResume deletes some of what an interrupted job left and expects the bytes of a
// job that ran through, with what was left taken over.
func TestResume(t *testing.T) {
	t.Parallel()
	snap := randomGraph(2000, 10000).open(t)
	p, _, err := Resolve(context.Background(), snap, params(func(p *format.BatchParams) { p.BatchSize, p.BatchesPerFile = 40, 8 }), Options{})
	if err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(t.TempDir(), "fresh")
	write(t, fresh, snap, p, Options{Threads: 2})
	want := hashDir(t, fresh)

	for _, c := range []struct {
		name  string
		after int64 // records, after which the job is stopped
		harm  func(t *testing.T, partial, state string)
	}{
		{"stopped early", 3, nil},
		{"stopped late", 50, nil},
		{"journal line lost", 50, func(t *testing.T, _, state string) {
			path := filepath.Join(state, "journal")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.SplitAfter(string(b), "\n")
			if len(lines) < 4 {
				t.Fatalf("journal has %d lines", len(lines))
			}
			if err := os.WriteFile(path, []byte(strings.Join(lines[:2], "")+lines[2][:10]), 0o644); err != nil {
				t.Fatal(err)
			}
		}},
		{"file lost", 50, func(t *testing.T, partial, _ string) {
			if err := os.Remove(filepath.Join(partial, format.BatchFile(0))); err != nil {
				t.Fatal(err)
			}
		}},
		{"file torn", 50, func(t *testing.T, partial, _ string) {
			if err := os.Truncate(filepath.Join(partial, format.BatchFile(1)), 5000); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "set")
			key, err := SetKey(snap.ID, p)
			if err != nil {
				t.Fatal(err)
			}
			job, err := format.Begin(out, format.KindBatchSet, key)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			threads := 2
			if c.harm != nil {
				threads = 1 // so that the first files are finished when the job is stopped
			}
			_, _, err = Write(ctx, job, snap, p, Options{Threads: threads, Progress: func(_ string, done, _ int64) {
				if done >= c.after {
					cancel()
				}
			}})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("stopped job: %v", err)
			}
			job.Abort(true)
			if _, err := os.Stat(out); err == nil {
				t.Fatal("a stopped job published something")
			}
			if c.harm != nil {
				c.harm(t, out+".partial", out+".state")
			}
			write(t, out, snap, p, Options{Threads: 1})
			if got := hashDir(t, out); got != want {
				t.Errorf("resumed set is %s, want %s", got, want)
			}
		})
	}
}

// TestLastPartialBatch is case 53: no seed is dropped, repeated or padded.
func TestLastPartialBatch(t *testing.T) {
	t.Parallel()
	g := &testGraph{numNodes: 12, parts: [][]format.Part{make([]format.Part, 12)}}
	for v := range 12 {
		g.edges = append(g.edges, [2]int32{int32(v), int32((v + 1) % 12)})
		g.parts[0][v] = format.PartTrain
	}
	g.edges = append(g.edges, [2]int32{0, 6}, [2]int32{3, 9})
	g.parts[0][10], g.parts[0][11] = format.PartTest, format.PartTest
	snap := g.open(t)
	for _, c := range []struct {
		batchSize int
		want      []uint64
	}{{4, []uint64{4, 4, 2}}, {64, []uint64{10}}, {10, []uint64{10}}, {9, []uint64{9, 1}}, {11, []uint64{10}}} {
		for _, order := range []string{sample.Random, sample.Locality, Auto} {
			dir, m, _ := build(t, snap, params(func(p *format.BatchParams) { p.BatchSize, p.Variants, p.Order = c.batchSize, 3, order }), Options{})
			var got [3][]uint64
			var seen [3][12]int
			batches(t, dir, m, func(r *format.Record) {
				got[r.Variant] = append(got[r.Variant], r.NumSeeds)
				for _, v := range r.Int32s(format.NodesNumber, format.AnyLayer)[:r.NumSeeds] {
					seen[r.Variant][v]++
				}
			})
			for variant := range got {
				if !slices.Equal(got[variant], c.want) || seen[variant] != [12]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1} {
					t.Errorf("batch size %d, order %s, variant %d: batches of %v, want %v; seeds %v", c.batchSize, order, variant, got[variant], c.want, seen[variant])
				}
			}
		}
	}
}

// TestMoreRoomThanNodes is case 44: a batch of 64 on 3 nodes without splits is one batch of 3.
func TestMoreRoomThanNodes(t *testing.T) {
	t.Parallel()
	g := &testGraph{numNodes: 3, noSplits: true, edges: [][2]int32{{0, 1}, {1, 2}}}
	_, m, _ := build(t, g.open(t), params(func(p *format.BatchParams) { p.BatchSize, p.Variants = 64, 1 }), Options{Threads: 16})
	if m.NumBatches != 1 || m.NumSeeds != 3 || m.NumEvalBlocks != 1 || m.Params.Split != SplitUnset {
		t.Errorf("%d batches, %d seeds, %d evaluation blocks, split %d", m.NumBatches, m.NumSeeds, m.NumEvalBlocks, m.Params.Split)
	}
}

// TestAllNeighbours: with fanout -1 the seeds' output equals that over the whole graph.
func TestAllNeighbours(t *testing.T) {
	t.Parallel()
	snap := randomGraph(400, 1500).open(t)
	dir, m, _ := build(t, snap, params(func(p *format.BatchParams) { p.Fanout, p.BatchSize = []int{-1, -1}, 30 }), Options{})
	batches(t, dir, m, func(r *format.Record) {
		nodes := r.Int32s(format.NodesNumber, format.AnyLayer)
		for l := range r.NumLayers {
			if r.Find(format.CoefImportance, uint16(l), format.CoefNone) != nil {
				t.Errorf("%s: importance where all is taken", r.Place())
			}
			indptr, indices := r.Int64s(format.BlockIndptr, uint16(l)), r.Int32s(format.BlockIndices, uint16(l))
			for d := range len(indptr) - 1 {
				var got, want []int32
				for _, s := range indices[indptr[d]:indptr[d+1]] {
					got = append(got, nodes[s])
				}
				for _, u := range snap.In.Row(nodes[d]) {
					if u != nodes[d] {
						want = append(want, u)
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s: layer %d, node %d has %v, want %v", r.Place(), l, nodes[d], got, want)
				}
			}
		}
	})
}

// TestTranspose compares with the twin that allocates.
func TestTranspose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		numSrc  int
		indptr  []int64
		indices []int32
	}{{0, []int64{0}, nil}, {3, []int64{0, 0}, nil}, {4, []int64{0, 2, 2, 5}, []int32{1, 3, 0, 1, 3}}} {
		tIndptr, tIndices, tEdge := slices.Repeat([]int64{7}, c.numSrc+1), make([]int32, len(c.indices)), make([]int64, len(c.indices))
		transpose(c.indptr, c.indices, tIndptr, tIndices, tEdge)
		wantIndptr, wantIndices, wantEdge := graph.Transpose(len(c.indptr)-1, c.numSrc, c.indptr, c.indices)
		if !slices.Equal(tIndptr, wantIndptr) || !slices.Equal(tIndices, wantIndices) || !slices.Equal(tEdge, wantEdge) {
			t.Errorf("%v %v: got %v %v %v, want %v %v %v", c.indptr, c.indices, tIndptr, tIndices, tEdge, wantIndptr, wantIndices, wantEdge)
		}
	}
}

// TestIndexCodecs: a batch holds the same arrays under either codec, in less than half the bytes of its integers under bits.
func TestIndexCodecs(t *testing.T) {
	t.Parallel()
	snap := randomGraph(3000, 30000).open(t)
	arrays, sizes := map[string][]string{}, map[string]int64{}
	for _, codec := range []string{CodecRaw, CodecBits} {
		dir, m, _ := build(t, snap, params(func(p *format.BatchParams) {
			p.Fanout, p.BatchSize, p.Variants, p.IndexCodec, p.Transpose = []int{5, 5, 5}, 300, 1, codec, TransposeAll
		}), Options{})
		batches(t, dir, m, func(r *format.Record) {
			for i := range r.Sections {
				s := &r.Sections[i]
				name := fmt.Sprintf("batch %d %s layer %d %s %v: ", r.Number, s.Kind, int16(s.Layer), s.Coef, s.Shape)
				switch s.DType {
				case format.I32:
					name += fmt.Sprint(r.Int32s(s.Kind, s.Layer))
				case format.I64:
					name += fmt.Sprint(r.Int64s(s.Kind, s.Layer))
				default:
					arrays[codec] = append(arrays[codec], name+fmt.Sprint(s.Bytes()))
					continue
				}
				arrays[codec] = append(arrays[codec], name)
				sizes[codec] += int64(s.SizeBytes)
			}
		})
		if m.Params.IndexCodec != codec {
			t.Errorf("the manifest has index codec %q, want %q", m.Params.IndexCodec, codec)
		}
	}
	if !slices.Equal(arrays[CodecRaw], arrays[CodecBits]) {
		t.Error("the batches have other arrays under bits than raw")
	}
	if sizes[CodecBits]*2 > sizes[CodecRaw] {
		t.Errorf("integers take %d bytes under bits, %d raw", sizes[CodecBits], sizes[CodecRaw])
	}
}

// TestStar is the graph of case 47: one hub with 200,000 leaves.
func TestStar(t *testing.T) {
	t.Parallel()
	const leaves = 200_000
	g := &testGraph{numNodes: leaves + 1, features: 2, edges: make([][2]int32, leaves), parts: [][]format.Part{make([]format.Part, leaves+1)}}
	for i := range g.edges {
		g.edges[i] = [2]int32{0, int32(i + 1)}
	}
	for v := 0; v <= leaves; v += 100 {
		g.parts[0][v] = format.PartTrain
	}
	snap := g.open(t)
	start := time.Now()
	_, m, plan := build(t, snap, params(func(p *format.BatchParams) { p.Variants = 2 }), Options{})
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v, want under 5 s", d)
	}
	checkPlan(t, plan, m, 0)
	if m.Maxima.Nodes > 1024*2+11 {
		t.Errorf("a batch has %d nodes", m.Maxima.Nodes)
	}
}

// TestPredictedSize: what is measured on a sample is within 5 % of what is written.
func TestPredictedSize(t *testing.T) {
	t.Parallel()
	snap := randomGraph(10000, 50000).open(t)
	for _, store := range []string{StoreIDs, StorePacked} {
		p := params(func(p *format.BatchParams) { p.BatchSize, p.Store, p.Order = 40, store, sample.Locality })
		_, m, plan := build(t, snap, p, Options{})
		if plan.Exact {
			t.Errorf("all of %d batches were measured", m.NumBatches)
		}
		checkPlan(t, plan, m, 0.05)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	three := slices.Repeat([]format.Part{format.PartTrain}, 3)
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		graph  testGraph
		change func(p *format.BatchParams)
		want   string
	}{
		{"task", testGraph{}, func(p *format.BatchParams) { p.Task = "link" }, `--task "link"`},
		{"mode", testGraph{}, func(p *format.BatchParams) { p.Mode = "saint" }, `--mode "saint": want fanout, labor, full, cluster, ppr, khop`},
		{"no fanout", testGraph{}, func(p *format.BatchParams) { p.Fanout = nil }, "--fanout is empty"},
		{"negative fanout", testGraph{}, func(p *format.BatchParams) { p.Fanout = []int{10, -2} }, "--fanout -2"},
		{"long fanout", testGraph{}, func(p *format.BatchParams) { p.Fanout = make([]int, 65) }, "at most 64 layers"},
		{"batch size", testGraph{}, func(p *format.BatchParams) { p.BatchSize = 0 }, "--batch-size 0"},
		{"variants", testGraph{}, func(p *format.BatchParams) { p.Variants = -1 }, "--variants -1"},
		{"batches per file", testGraph{}, func(p *format.BatchParams) { p.BatchesPerFile = 0 }, "--batches-per-file 0"},
		{"unknown norm", testGraph{}, func(p *format.BatchParams) { p.Norm = []string{"gcn", "max"} }, `--norm "max"`},
		{"relmean", testGraph{}, func(p *format.BatchParams) { p.Norm = []string{"relmean"} }, "no relations"},
		{"no norm", testGraph{}, func(p *format.BatchParams) { p.Norm = nil }, "--norm is empty"},
		{"transpose", testGraph{}, func(p *format.BatchParams) { p.Transpose = "yes" }, `--transpose "yes"`},
		{"dtype", testGraph{}, func(p *format.BatchParams) { p.DType = "f64" }, `--dtype "f64": want f32, f16, bf16, int8`},
		{"dtype without features", testGraph{}, func(p *format.BatchParams) { p.DType = "f16" }, "--dtype f16: the snapshot has no features"},
		{"dtype without a table", testGraph{features: 1}, func(p *format.BatchParams) { p.DType, p.LinkFeatures = "int8", None }, "--link-features none wants none"},
		{"hot rows over 1", testGraph{features: 1}, func(p *format.BatchParams) { p.HotRows = 1.1 }, "--hot-rows 1.1: want the share"},
		{"hot rows, no number", testGraph{features: 1}, func(p *format.BatchParams) { p.HotRows = math.NaN() }, "--hot-rows NaN"},
		{"hot rows without features", testGraph{}, func(p *format.BatchParams) { p.HotRows = 0.1 }, "--hot-rows 0.1: the snapshot has no features"},
		{"hot rows with ids", testGraph{features: 1}, func(p *format.BatchParams) { p.HotRows, p.Store = 0.1, StoreIDs }, "with --store ids"},
		{"hot rows of a full batch", testGraph{features: 1}, func(p *format.BatchParams) { p.HotRows, p.Mode = 0.1, ModeFull }, "every row once already"},
		{"negative group", testGraph{features: 1}, func(p *format.BatchParams) { p.Group = -1 }, "--group -1"},
		{"group over a file", testGraph{features: 1}, func(p *format.BatchParams) { p.Group = 65 }, "--group 65: want 0 to 64 batches"},
		{"group with ids", testGraph{features: 1}, func(p *format.BatchParams) { p.Group, p.Store = 4, StoreIDs }, "--group 4 is for packed batches"},
		{"eval", testGraph{}, func(p *format.BatchParams) { p.Eval = "" }, `--eval ""`},
		{"order", testGraph{}, func(p *format.BatchParams) { p.Order = "bfs" }, `--order "bfs"`},
		{"link features", testGraph{}, func(p *format.BatchParams) { p.LinkFeatures = "hard" }, `--link-features "hard"`},
		{"index codec", testGraph{}, func(p *format.BatchParams) { p.IndexCodec = "zstd" }, `--index-codec "zstd": want bits, raw`},
		{"packed without features", testGraph{}, func(p *format.BatchParams) { p.Store = StorePacked }, "no features to pack"},
		{"packed full", testGraph{features: 2}, func(p *format.BatchParams) { p.Store, p.Mode = StorePacked, ModeFull }, "--store packed"},
		{"no labels", testGraph{labels: "none"}, nil, "no labels"},
		{"all unlabelled", testGraph{classOf: func(int) int32 { return -1 }}, nil, "none of the 3 train nodes"},
		{"all unlabelled, no splits", testGraph{noSplits: true, classOf: func(int) int32 { return -1 }}, nil, "none of the 3 nodes has a label"},
		{"no train", testGraph{parts: [][]format.Part{make([]format.Part, 3)}}, nil, "no train node"},
		{"several splits", testGraph{parts: [][]format.Part{three, three}}, nil, "2 split columns (split0, split1); choose one with --split 0 to 1"},
		{"split range", testGraph{parts: [][]format.Part{three, three}}, func(p *format.BatchParams) { p.Split = 2 }, "--split 2"},
		{"split without splits", testGraph{noSplits: true}, func(p *format.BatchParams) { p.Split = 1 }, "--split 1"},
		{"split range", testGraph{}, func(p *format.BatchParams) { p.Split = -2 }, "--split -2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.graph.numNodes, c.graph.edges = 3, [][2]int32{{0, 1}}
			_, _, err := Resolve(ctx, c.graph.open(t), params(c.change), Options{})
			var fault *ParamError
			if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want a *ParamError with %q", err, c.want)
			}
		})
	}
}

// TestSettled: what was left open is decided by the rules of DESIGN.
func TestSettled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	small := randomGraph(200, 600)
	wide := randomGraph(200, 600)
	wide.features = 257
	few := randomGraph(2000, 2000)
	few.features = 300
	clear(few.parts[0][10:])
	bare := randomGraph(200, 600)
	bare.features = 0
	for _, c := range []struct {
		name      string
		graph     *testGraph
		norm      []string
		transpose string
		amplify   float64
		store     string
		stored    string
	}{
		{"defaults", small, []string{"mean", "gcn", "gcn"}, TransposeInner, 0, Auto, StoreIDs},
		{"none", small, []string{"none"}, TransposeAll, 0, Auto, StoreIDs},
		{"wide", wide, []string{"gcn"}, TransposeAll, 0, Auto, StoreIDs},
		{"few seeds", few, []string{"gcn"}, TransposeAll, 0, Auto, StorePacked},
		{"few seeds, narrow limit", few, []string{"gcn"}, TransposeAll, 0.01, Auto, StoreIDs},
		{"loose limit", small, []string{"gcn"}, TransposeInner, 1000, Auto, StorePacked},
		{"no features", bare, []string{"gcn"}, TransposeAll, 0, Auto, StoreIDs},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, plan, err := Resolve(ctx, c.graph.open(t), params(func(p *format.BatchParams) { p.Norm, p.Store = c.norm, c.store }), Options{MaxAmplification: c.amplify})
			if err != nil {
				t.Fatal(err)
			}
			if p.Transpose != c.transpose || p.Store != c.stored || p.Split != 0 || p.Order != sample.Random && p.Order != sample.Locality || !slices.IsSorted(p.Norm) {
				t.Errorf("settled %+v, want transpose %s, store %s", p, c.transpose, c.stored)
			}
			if c.amplify > 0 && plan.Amplification > c.amplify {
				t.Errorf("amplification %g over %g", plan.Amplification, c.amplify)
			}
		})
	}
	_, _, err := Resolve(ctx, small.open(t), params(nil), Options{MaxAmplification: 0.01})
	var fault *ParamError
	if !errors.As(err, &fault) || !strings.Contains(err.Error(), "--max-amplification 0.01") {
		t.Errorf("over the limit: %v", err)
	}
}

func TestOtherSnapshot(t *testing.T) {
	t.Parallel()
	dir, _, _ := build(t, randomGraph(100, 300).open(t), params(nil), Options{})
	if err := VerifyAgainst(dir, randomGraph(100, 301).open(t)); !errors.Is(err, format.ErrMismatch) {
		t.Errorf("got %v, want %v", err, format.ErrMismatch)
	}
}

// TestStoredOrder: locality is the snapshot's order where it has one, else breadth-first order.
func TestStoredOrder(t *testing.T) {
	g := randomGraph(500, 2000)
	p := params(func(p *format.BatchParams) { p.BatchSize, p.Order = 50, sample.Locality })
	for _, with := range [][]string{nil, {snapshot.WithOrder}} {
		g.with = with
		snap := g.open(t)
		want := graph.BFSOrder(&snap.In, snap.Out, snap.Component, len(snap.ComponentSizes))
		if with != nil {
			if slices.Equal(snap.Order, want) {
				t.Fatal("the community order of this graph is its breadth-first order, so the test shows nothing")
			}
			want = snap.Order
		}
		resolved, plan, err := Resolve(context.Background(), snap, p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.source.order.Place; !slices.Equal(got, graph.Inverse(want)) {
			t.Errorf("with %v: seeds are placed by another order", with)
		}
		build(t, snap, resolved, Options{})
	}
}
