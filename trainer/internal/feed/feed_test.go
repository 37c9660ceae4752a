package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/backend"
	"github.com/prelift/prelift/trainer/internal/feed/feedtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fanout(k ...int) format.BatchParams {
	return format.BatchParams{Mode: "fanout", Fanout: k, BatchSize: 8, Variants: 2}
}

// khop is a set of subgraphs: what is so many hops away of 8 seeds.
func khop(hops int) format.BatchParams {
	return format.BatchParams{Mode: "khop", Fanout: []int{}, BatchSize: 8, Variants: 2, KHop: &format.KHopParams{Hops: hops}}
}

// write makes a set of a random graph and returns its directory.
func write(t *testing.T, g *feedtest.Graph, p format.BatchParams) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "set")
	feedtest.Write(t, dir, g, p)
	return dir
}

func open(t *testing.T, dir string, o Options) *Set {
	t.Helper()
	s, err := Open(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// collect runs one epoch and calls use for each batch.
func collect(t *testing.T, l *Loader, epoch int, use func(*Batch)) {
	t.Helper()
	stream := l.Stream(context.Background(), epoch, epoch+1)
	defer stream.Close()
	for {
		b, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		use(b)
		b.Release()
	}
}

func TestOrder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 100} {
		a, b := Order(1, 5, n), Order(1, 5, n)
		if !slices.Equal(a, b) {
			t.Errorf("n=%d: two calls differ", n)
		}
		slices.Sort(b)
		for i, k := range b {
			if int(k) != i {
				t.Fatalf("n=%d: not a permutation: %v", n, a)
			}
		}
	}
	for _, c := range []struct { // SPEC 8.1
		seed     uint64
		epoch, n int
		want     []int32
	}{
		{1, 0, 8, []int32{4, 7, 0, 6, 3, 5, 1, 2}},
		{1, 1, 8, []int32{0, 6, 7, 1, 5, 3, 2, 4}},
		{math.MaxUint64, 7, 5, []int32{0, 4, 3, 1, 2}},
	} {
		if got := Order(c.seed, c.epoch, c.n); !slices.Equal(got, c.want) {
			t.Errorf("seed %d, epoch %d: order %v, want %v", c.seed, c.epoch, got, c.want)
		}
	}
	a := Order(1, 0, 100)
	if slices.Equal(a, Order(1, 1, 100)) || slices.Equal(a, Order(2, 0, 100)) {
		t.Error("the order must depend on epoch and seed")
	}
	// Each batch comes first about equally often: 600 draws of 3, standard deviation 11.5.
	var first [3]int
	for epoch := range 600 {
		first[Order(9, epoch, 3)[0]]++
	}
	for k, n := range first {
		if n < 150 || n > 250 {
			t.Errorf("batch %d came first %d times of 600", k, n)
		}
	}
}

// TestBatches compares every batch with the graph it was made of.
func TestBatches(t *testing.T) {
	g := feedtest.Random(1, 60, 3, 5)
	for _, store := range []string{"ids", "packed"} {
		for layers := range 3 {
			t.Run(fmt.Sprintf("%s/layers=%d", store, layers), func(t *testing.T) {
				p := fanout(2, 3)
				p.Store = store
				s := open(t, write(t, g, p), Options{})
				l, err := s.NewLoader(LoaderOptions{Coef: format.CoefGCN, Layers: layers, Features: true})
				if err != nil {
					t.Fatal(err)
				}
				for epoch := range 3 {
					seen := map[int32]int{}
					collect(t, l, epoch, func(b *Batch) {
						if want := epoch % 2; b.Number/l.BatchesPerEpoch() != want {
							t.Errorf("epoch %d got batch %d, want variant %d", epoch, b.Number, want)
						}
						checkBatch(t, g, b, s.NumFeatures(), layers)
						for _, v := range b.record.Int32s(format.NodesNumber, format.AnyLayer)[:b.NumSeeds] {
							seen[v]++
						}
					})
					for v, part := range g.Parts[0] {
						if want := map[bool]int{true: 1}[part == 1]; seen[int32(v)] != want {
							t.Errorf("epoch %d: node %d was a seed %d times, want %d", epoch, v, seen[int32(v)], want)
						}
					}
				}
			})
		}
	}
}

// TestIndexCodec: a set whose integers are coded loads as the same batches.
func TestIndexCodec(t *testing.T) {
	g := feedtest.Random(1, 60, 3, 5)
	for _, store := range []string{"ids", "packed"} {
		var want []string
		for _, codec := range []string{"raw", "bits"} {
			p := fanout(2, 3)
			p.Store, p.IndexCodec, p.Transpose = store, codec, "all"
			s := open(t, write(t, g, p), Options{})
			l, err := s.NewLoader(LoaderOptions{Coef: format.CoefGCN, Layers: 2, Features: true})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			coded := 0
			for epoch := range 4 {
				collect(t, l, epoch, func(b *Batch) {
					checkBatch(t, g, b, s.NumFeatures(), 2)
					for i := range b.Blocks {
						got = append(got, fmt.Sprintf("epoch %d batch %d block %d: %+v %+v", epoch, b.Number, i, *b.Blocks[i], *b.Coefs[i]))
						for _, section := range []format.Kind{format.BlockIndptr, format.BlockIndices, format.TransposeIndptr, format.TransposeIndices} {
							if b.record.Find(section, uint16(i), format.CoefNone).Codec == format.CodecBits {
								coded++
							}
						}
						if !b.Blocks[i].HasTranspose() || b.Blocks[i].TEdge != nil {
							t.Errorf("%s: transposed %t, places of edges %v; no coefficient is of an edge", codec, b.Blocks[i].HasTranspose(), b.Blocks[i].TEdge)
						}
					}
				})
			}
			switch {
			case codec == "raw":
				want = got
			case coded < len(got):
				t.Errorf("%d coded sections in %d blocks", coded, len(got))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: the batches under codec %s are others than raw", store, codec)
			}
		}
	}
}

func checkBatch(t *testing.T, g *feedtest.Graph, b *Batch, dim, layers int) {
	t.Helper()
	nodes := b.record.Int32s(format.NodesNumber, format.AnyLayer)
	if len(b.Features) != b.NumNodes*dim {
		t.Fatalf("%d feature values for %d nodes", len(b.Features), b.NumNodes)
	}
	for i := range b.NumNodes {
		if v := int(nodes[i]); !slices.Equal(b.Features[i*dim:(i+1)*dim], g.Features[v*dim:(v+1)*dim]) {
			t.Fatalf("row %d isn't node %d's", i, v)
		}
	}
	for i, class := range b.Targets.Class {
		if class != g.Class[nodes[i]] {
			t.Errorf("seed %d has class %d, want %d", nodes[i], class, g.Class[nodes[i]])
		}
	}
	if len(b.Blocks) != layers || layers > 0 && (b.Blocks[layers-1].NumDst != b.NumSeeds || b.Blocks[0].NumSrc != b.NumNodes) {
		t.Fatalf("%d blocks, %d nodes, %d seeds", len(b.Blocks), b.NumNodes, b.NumSeeds)
	}
	for l, blk := range b.Blocks {
		if l > 0 && b.Blocks[l-1].NumDst != blk.NumSrc {
			t.Errorf("block %d has %d src, the one before %d dst", l, blk.NumSrc, b.Blocks[l-1].NumDst)
		}
		c := b.Coefs[l]
		for d := range blk.NumDst {
			v := nodes[d]
			row := blk.Indices[blk.Indptr[d]:blk.Indptr[d+1]]
			for _, src := range row {
				if !slices.Contains(g.Neighbors[v], nodes[src]) {
					t.Fatalf("edge %d->%d isn't in the graph", nodes[src], v)
				}
			}
			if want := min(len(g.Neighbors[v]), []int{3, 2}[l+2-layers]); len(row) != want {
				t.Fatalf("layer %d: node %d has %d of %d neighbours, want %d", l, v, len(row), len(g.Neighbors[v]), want)
			}
			degree := float64(len(g.Neighbors[v]) + 1)
			if got := float64(c.Self[d]); got < 0.999/degree || got > 1.001/degree {
				t.Errorf("self coefficient of %d is %v, want %v", v, got, 1/degree)
			}
			if len(row) > 0 && c.Importance[d] != float32(len(g.Neighbors[v]))/float32(len(row)) {
				t.Errorf("importance of %d is %v: %d of %d", v, c.Importance[d], len(row), len(g.Neighbors[v]))
			}
		}
	}
}

func TestFull(t *testing.T) {
	g := feedtest.Random(2, 60, 3, 5)
	other := make([]uint8, g.N())
	other[7], other[9] = 1, 2
	g.Parts = append(g.Parts, other)
	s := open(t, write(t, g, format.BatchParams{Mode: "full"}), Options{})
	for column, part := range g.Parts {
		l, err := s.NewLoader(LoaderOptions{Coef: format.CoefMean, Layers: 3, Column: column, Features: true})
		if err != nil {
			t.Fatal(err)
		}
		collect(t, l, 4, func(b *Batch) {
			if len(b.Blocks) != 3 || b.NumNodes != 60 || b.NumSeeds != 60 || !b.Blocks[2].HasTranspose() {
				t.Errorf("%d blocks of %d nodes, %d seeds", len(b.Blocks), b.NumNodes, b.NumSeeds)
			}
			if &b.Features[0] != &s.Features()[0] {
				t.Error("the features of a full set were copied")
			}
			for v := range part {
				if want := part[v] == 1 && g.Class[v] >= 0; b.Targets.Counts(v) != want {
					t.Errorf("column %d: node %d counts: %v, want %v", column, v, !want, want)
				}
			}
		})
	}
	if _, err := s.SplitColumn(2); !errors.Is(err, format.ErrMismatch) {
		t.Errorf("column 2 of 2: %v", err)
	}
}

// TestEval puts the evaluation blocks together again.
func TestEval(t *testing.T) {
	g := feedtest.Random(3, 60, 3, 5)
	for _, p := range []format.BatchParams{fanout(1), {Mode: "full"}} {
		s := open(t, write(t, g, p), Options{})
		e, err := s.NewEval(format.CoefGCN)
		if err != nil {
			t.Fatal(err)
		}
		edges, row := int64(0), 0
		for i := range e.NumBlocks() {
			var blk backend.Block
			var c backend.Coef
			if err := e.Block(i, &blk, &c); err != nil {
				t.Fatal(err)
			}
			if blk.DstStart != row || blk.NumSrc != 60 || len(c.Src) != 60 || len(c.Dst) != blk.NumDst {
				t.Fatalf("%s: block %d: rows from %d, want %d; coefficients %d, %d", p.Mode, i, blk.DstStart, row, len(c.Src), len(c.Dst))
			}
			for d := range blk.NumDst {
				if got := blk.Indices[blk.Indptr[d]:blk.Indptr[d+1]]; !slices.Equal(got, g.Neighbors[row+d]) {
					t.Fatalf("%s: row %d is %v, want %v", p.Mode, row+d, got, g.Neighbors[row+d])
				}
				if c.Dst[d] != c.Src[row+d] {
					t.Fatalf("%s: coefficients of row %d differ", p.Mode, row+d)
				}
			}
			edges, row = edges+blk.Indptr[blk.NumDst], row+blk.NumDst
		}
		if row != 60 || edges != s.NumEdges() {
			t.Errorf("%s: %d rows, %d edges; want 60, %d", p.Mode, row, edges, s.NumEdges())
		}
	}
}

func TestMismatch(t *testing.T) {
	g := feedtest.Random(4, 60, 3, 5)
	bare := feedtest.Random(4, 60, 3, 5)
	bare.NumFeature, bare.Features = 0, nil
	untrained := feedtest.Random(4, 60, 3, 5)
	clear(untrained.Parts[0])
	pin := format.Digest{1}
	loader := func(o LoaderOptions) func(*Set) error {
		return func(s *Set) error { _, err := s.NewLoader(o); return err }
	}
	for _, c := range []struct {
		name string
		g    *feedtest.Graph
		p    format.BatchParams
		o    Options
		use  func(*Set) error
		want string
	}{
		{"pin", g, fanout(1), Options{Pin: &pin}, nil, "--pin-snapshot asks for sha256:0100"},
		{"no such kind", g, format.BatchParams{Mode: "full", Norm: []string{"gcn"}}, Options{}, func(s *Set) error { return s.NeedCoef(format.CoefMean, "sage") }, "--norm gcn,mean"},
		{"too many layers", g, fanout(1, 1), Options{}, loader(LoaderOptions{Layers: 3}), "the model has 3 layers, the batches 2"},
		{"no features", bare, fanout(1), Options{}, func(s *Set) error { return s.NeedFeatures("gcn") }, "needs node features"},
		{"no training node", untrained, format.BatchParams{Mode: "full"}, Options{}, loader(LoaderOptions{Layers: 2}), "no labelled node in the train part"},
		{"no evaluation", g, format.BatchParams{Mode: "fanout", Fanout: []int{1}, BatchSize: 4, Eval: "none"}, Options{}, func(s *Set) error { _, err := s.NewEval(format.CoefGCN); return err }, "--eval layerwise"},
		{"needless features", g, fanout(1), Options{Features: "x"}, nil, "has its own feature table"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(context.Background(), write(t, c.g, c.p), c.o)
			if err == nil {
				defer s.Close()
				err = c.use(s)
			}
			if !errors.Is(err, format.ErrMismatch) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a mismatch with %q", err, c.want)
			}
		})
	}
}

// TestUnsupportedSections: what SPEC knows of a batch and this trainer doesn't compute with
// would change the result, so it is refused and not skipped.
func TestUnsupportedSections(t *testing.T) {
	row := func(numNodes, _ int) []format.SectionSpec {
		return []format.SectionSpec{format.Int32Section(format.NodesRow, format.AnyLayer, make([]int32, numNodes))}
	}
	table := func(numNodes, _ int) []format.SectionSpec {
		return append(row(numNodes, 0), format.Uint8Section(format.NodesTable, format.AnyLayer, make([]byte, numNodes)))
	}
	weight := func(_, numSeeds int) []format.SectionSpec {
		return []format.SectionSpec{format.Float32Section(format.SeedsWeight, format.AnyLayer, format.CoefNone, make([]float32, numSeeds))}
	}
	for _, c := range []struct {
		name  string
		p     format.BatchParams
		extra func(numNodes, numSeeds int) []format.SectionSpec
		want  string
	}{
		{"rows of tables, full", format.BatchParams{Mode: "full"}, table, "nodes.row"},
		{"rows, full", format.BatchParams{Mode: "full"}, row, "nodes.row"},
		{"seed weights, fanout", fanout(1), weight, "seeds.weight"},
		{"seed weights, full", format.BatchParams{Mode: "full"}, weight, "seeds.weight"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := feedtest.Random(13, 60, 3, 5)
			g.Extra = c.extra
			s := open(t, write(t, g, c.p), Options{})
			l, err := s.NewLoader(LoaderOptions{Layers: 1, Features: true})
			if err == nil {
				stream := l.Stream(context.Background(), 0, 1)
				defer stream.Close()
				var b *Batch
				if b, err = stream.Next(); err == nil {
					b.Release()
				}
			}
			if !errors.Is(err, format.ErrVersion) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "batches-00000.plf") {
				t.Errorf("got %v, want a refusal of %s", err, c.want)
			}
		})
	}
}

// TestManifestRefuses changes one field of a sound manifest.
func TestManifestRefuses(t *testing.T) {
	listsNo := func(name string) func(*format.BatchSet) {
		return func(m *format.BatchSet) {
			m.Files = slices.DeleteFunc(m.Files, func(f format.FileInfo) bool { return f.Name == name })
		}
	}
	for _, c := range []struct {
		name   string
		change func(*format.BatchSet)
		class  error
		want   string
	}{
		{"binary of three classes", func(m *format.BatchSet) { m.LabelTask = TaskBinary }, format.ErrLayout, "task binary with 3 classes"},
		{"no ids", listsNo(format.SetIDsFile), format.ErrMissing, "ids.plf isn't listed"},
		{"no labels", listsNo(format.SetLabelsFile), format.ErrMissing, "labels.plf isn't listed"},
		{"no splits", listsNo(format.SetSplitsFile), format.ErrMissing, "splits.plf isn't listed"},
		{"no features", listsNo(format.SetFeaturesFile), format.ErrMissing, "features.plf isn't listed"},
		{"no coefficients", listsNo(format.SetCoefsFile), format.ErrMissing, "coefs.plf isn't listed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "set")
			m, _ := feedtest.Write(t, dir, feedtest.Random(14, 60, 3, 5), fanout(1))
			c.change(m)
			if _, err := format.WriteManifest(dir, m); err != nil {
				t.Fatal(err)
			}
			s, err := Open(context.Background(), dir, Options{})
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, c.class) || !strings.Contains(err.Error(), "set/manifest.json") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %v with %q", err, c.class, c.want)
			}
		})
	}
}

func TestFeaturesOutside(t *testing.T) {
	g := feedtest.Random(5, 60, 3, 5)
	p := fanout(1)
	p.LinkFeatures = "none"
	dir := write(t, g, p)
	table := filepath.Join(dir+".snapshot", format.SetFeaturesFile)
	s := open(t, dir, Options{Features: table})
	if !bytes.Equal(format.Bytes(s.Features()), format.Bytes(g.Features)) {
		t.Error("another table")
	}
	if s := open(t, dir, Options{}); !errors.Is(s.NeedFeatures("gcn"), format.ErrMismatch) {
		t.Error("features are there without a path")
	}
	b, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(table, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), dir, Options{Features: table}); !errors.Is(err, format.ErrMismatch) {
		t.Errorf("a damaged table: %v", err)
	}
	if _, err := Open(context.Background(), dir, Options{Features: filepath.Join(dir, "ids.plf")}); !errors.Is(err, format.ErrMismatch) {
		t.Errorf("a file of no snapshot: %v", err)
	}
}

// damage applies one damage to a copy of the file.
var damages = map[string]func([]byte) []byte{
	"cut to 0":       func(b []byte) []byte { return b[:0] },
	"cut to 1":       func(b []byte) []byte { return b[:1] },
	"cut to 7":       func(b []byte) []byte { return b[:7] },
	"cut to half":    func(b []byte) []byte { return b[:len(b)/2] },
	"one byte short": func(b []byte) []byte { return b[:len(b)-1] },
	"one byte more":  func(b []byte) []byte { return append(b, 'x') },
	"middle changed": func(b []byte) []byte { b[len(b)/2] ^= 0x55; return b },
	"end changed":    func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
	"missing":        nil,
}

// TestDamage is case 54: each file of a set, each damage; Open must name the file.
func TestDamage(t *testing.T) {
	g := feedtest.Random(6, 40, 3, 5)
	for _, p := range []format.BatchParams{fanout(1, 1), {Mode: "full"}} {
		dir := write(t, g, p)
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for name, damage := range damages {
				if damage == nil {
					err = os.Remove(path)
				} else {
					err = os.WriteFile(path, damage(bytes.Clone(good)), 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
				s, err := Open(context.Background(), dir, Options{Threads: 2})
				if err == nil {
					s.Close()
				}
				if !format.IsCorrupt(err) || !strings.Contains(err.Error(), e.Name()) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s/%s, %s: got %v, want a fault that names the file", p.Mode, e.Name(), name, err)
				}
			}
			if err := os.WriteFile(path, good, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		open(t, dir, Options{})
	}
}

// TestSwapped puts sound files where they don't belong.
func TestSwapped(t *testing.T) {
	g := feedtest.Random(7, 40, 3, 5)
	for _, c := range []struct{ name, from, to string }{
		{"shards", "batches-00001.plf", "batches-00000.plf"},
		{"kinds", "labels.plf", "splits.plf"},
		{"features for ids", "features.plf", "ids.plf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := write(t, g, fanout(1, 1))
			b, err := os.ReadFile(filepath.Join(dir, c.from))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, c.to), b, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(context.Background(), dir, Options{}); !format.IsCorrupt(err) || !strings.Contains(err.Error(), c.to) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("another snapshot's features", func(t *testing.T) {
		dir := write(t, g, fanout(1, 1))
		other := write(t, feedtest.Random(8, 40, 3, 5), fanout(1, 1))
		if err := os.Rename(filepath.Join(other, "features.plf"), filepath.Join(dir, "features.plf")); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(context.Background(), dir, Options{}); !errors.Is(err, format.ErrChecksum) || !strings.Contains(err.Error(), "features.plf") {
			t.Errorf("got %v", err)
		}
	})
}

func TestExtraFile(t *testing.T) {
	dir := write(t, feedtest.Random(8, 40, 3, 5), fanout(1))
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var notices []string
	open(t, dir, Options{Notice: func(s string) { notices = append(notices, s) }})
	if len(notices) != 1 || !strings.Contains(notices[0], "notes.txt") {
		t.Errorf("notices %q", notices)
	}
}

// TestFirstUse damages a shard of a set that is verified lazily.
func TestFirstUse(t *testing.T) {
	dir := write(t, feedtest.Random(9, 60, 3, 5), fanout(2))
	path := filepath.Join(dir, "batches-00001.plf")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-3] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, Options{Lazy: true})
	l, err := s.NewLoader(LoaderOptions{Layers: 1, Features: true})
	if err != nil {
		t.Fatal(err)
	}
	stream := l.Stream(context.Background(), 0, 2)
	defer stream.Close()
	for {
		b, err := stream.Next()
		if err == nil {
			if !b.FirstUse {
				t.Error("not verified")
			}
			b.Release()
			continue
		}
		if !errors.Is(err, format.ErrChecksum) || !strings.Contains(err.Error(), "batches-00001.plf") {
			t.Errorf("got %v", err)
		}
		return
	}
}

// TestTruncatedUnderneath cuts a mapped file: an error, not a signal.
func TestTruncatedUnderneath(t *testing.T) {
	dir := write(t, feedtest.Random(10, 60, 3, 200), fanout(2))
	s := open(t, dir, Options{})
	l, err := s.NewLoader(LoaderOptions{Layers: 1, Features: true})
	if err != nil {
		t.Fatal(err)
	}
	collect(t, l, 0, func(*Batch) {})
	if err := os.Truncate(filepath.Join(dir, "features.plf"), 4096); err != nil {
		t.Fatal(err)
	}
	stream := l.Stream(context.Background(), 0, 1)
	defer stream.Close()
	b, err := stream.Next()
	if err == nil {
		b.Release()
	}
	if err = s.Explain(err); !errors.Is(err, format.ErrTruncated) || !strings.Contains(err.Error(), "features.plf: truncated: 4096 bytes now") {
		t.Errorf("got %v", err)
	}
}

// TestLoadTime: a batch's load time has neither the wait for a free slot in it nor the
// gathering of its rows.
func TestLoadTime(t *testing.T) {
	const hold = 200 * time.Millisecond
	s := open(t, write(t, feedtest.Random(11, 60, 3, 5), fanout(2)), Options{})
	l, err := s.NewLoader(LoaderOptions{Layers: 1, Features: true})
	if err != nil {
		t.Fatal(err)
	}
	stream := l.Stream(context.Background(), 0, 3)
	defer stream.Close()
	for i := 0; ; i++ {
		b, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.LoadTime <= 0 || b.GatherTime <= 0 || b.LoadTime >= hold || b.GatherTime >= hold {
			t.Errorf("batch %d: load %v, gather %v while every slot was held for %v", i, b.LoadTime, b.GatherTime, hold)
		}
		if i < DefaultRing {
			time.Sleep(hold) // the loader has filled the other slot and waits
		}
		b.Release()
	}
}

func TestCancel(t *testing.T) {
	s := open(t, write(t, feedtest.Random(11, 60, 3, 5), fanout(2)), Options{})
	l, err := s.NewLoader(LoaderOptions{Layers: 1, Features: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		stream := l.Stream(ctx, 0, 1000)
		b, err := stream.Next()
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		b.Release()
		for err == nil {
			var b *Batch
			if b, err = stream.Next(); err == nil {
				b.Release()
			}
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		stream.Close()
		if len(l.free) != DefaultRing {
			t.Fatalf("%d of %d slots came back", len(l.free), DefaultRing)
		}
	}
}

// BenchmarkLoad is the load of a batch from the second use on.
func BenchmarkLoad(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "set")
	feedtest.Write(b, dir, feedtest.Random(12, 500, 3, 5), format.BatchParams{Mode: "fanout", Fanout: []int{5, 5, 5}, BatchSize: 64, BatchesPerFile: 64})
	s, err := Open(context.Background(), dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	l, err := s.NewLoader(LoaderOptions{Coef: format.CoefGCN, Layers: 3})
	if err != nil {
		b.Fatal(err)
	}
	slot := <-l.free
	for i := 0; b.Loop(); i++ {
		slot.Number = i % l.BatchesPerEpoch()
		if err := l.fill(slot); err != nil {
			b.Fatal(err)
		}
	}
	l.free <- slot
}
