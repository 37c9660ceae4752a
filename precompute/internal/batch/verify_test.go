package batch

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
	"github.com/prelift/prelift/snapshot"
)

// faultSet is what the faults below are put into: weighted, with loops, packed, every
// transpose, two split columns. Small, so that every byte is at hand.
func faultSet(t *testing.T) (*snapshot.Snapshot, format.BatchParams) {
	g := randomGraph(60, 400)
	g.parts = [][]format.Part{g.parts[0], slices.Repeat([]format.Part{format.PartTest}, 60)}
	g.weights = make([]float32, len(g.edges))
	for i := range g.weights {
		g.weights[i] = 1 + float32(i%3)
	}
	p := params(func(p *format.BatchParams) {
		p.Fanout, p.BatchSize, p.Variants, p.BatchesPerFile = []int{3, 2}, 10, 2, 2
		p.Norm, p.Transpose, p.Store, p.Split, p.Order = []string{"gcn", "mean", "sum"}, TransposeAll, StorePacked, 0, sample.Random
		p.IndexCodec = CodecRaw // faults are put into the numbers as they are
	})
	snap := g.open(t)
	p, _, err := Resolve(context.Background(), snap, p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return snap, p
}

// fault changes a written set in one way. record, where given, changes record 0 of a
// file; the file is then sound by itself, and so is the manifest's word on it.
type fault struct {
	name     string
	file     string
	header   func(h *format.Header)
	record   func(r *copied)
	manifest func(m *format.BatchSet)
	files    func(t *testing.T, dir string)
	want     error
	against  bool // found by VerifyAgainst only
}

// copied is a record of a file as it is written anew.
type copied struct {
	format.RecordHeader
	sections []format.SectionSpec
}

// find returns a section's place in the record.
func (c *copied) find(kind format.Kind, layer uint16, coef format.Coef) int {
	i := slices.IndexFunc(c.sections, func(s format.SectionSpec) bool { return s.Kind == kind && s.Layer == layer && s.Coef == coef })
	if i < 0 {
		panic("no " + kind.String())
	}
	return i
}

func (c *copied) drop(kind format.Kind, layer uint16, coef format.Coef) {
	i := c.find(kind, layer, coef)
	c.sections = slices.Delete(c.sections, i, i+1)
}

// word reads or, with set, writes 32-bit element k of a section.
func (c *copied) word(kind format.Kind, layer uint16, coef format.Coef, k int) uint32 {
	return binary.LittleEndian.Uint32(c.sections[c.find(kind, layer, coef)].Data[4*k:])
}

func (c *copied) set(kind format.Kind, layer uint16, coef format.Coef, k int, x uint32) {
	binary.LittleEndian.PutUint32(c.sections[c.find(kind, layer, coef)].Data[4*k:], x)
}

func (c *copied) swap(kind format.Kind, layer uint16, a, b int) {
	x, y := c.word(kind, layer, 0, a), c.word(kind, layer, 0, b)
	c.set(kind, layer, 0, a, y)
	c.set(kind, layer, 0, b, x)
}

// cutLastRow takes the last row out of a global block.
func (c *copied) cutLastRow() {
	c.DstEnd--
	c.NumSeeds--
	indptr := c.sections[c.find(format.BlockIndptr, format.AnyLayer, 0)].Data
	numEdges := binary.LittleEndian.Uint64(indptr[8*c.NumSeeds:])
	for i := range c.sections {
		s := &c.sections[i]
		switch s.Kind {
		case format.BlockIndptr, format.SeedsLabel, format.SeedsMask:
			rowBytes := len(s.Data) / int(s.Shape[0])
			s.Shape = slices.Clone(s.Shape)
			s.Shape[0]--
			s.Data = s.Data[:len(s.Data)-rowBytes]
		default:
			s.Shape, s.Data = []uint64{numEdges}, s.Data[:4*numEdges]
		}
	}
}

func TestVerifyFindsFaults(t *testing.T) {
	t.Parallel()
	snap, p := faultSet(t)
	const any = format.AnyLayer
	batch0 := func(name string, record func(r *copied)) fault {
		return fault{name: name, file: format.BatchFile(0), record: record, want: format.ErrLayout}
	}
	eval0 := func(name string, record func(r *copied)) fault {
		return fault{name: name, file: format.EvalFile(0), record: record, want: format.ErrLayout}
	}
	manifest := func(name string, change func(m *format.BatchSet)) fault {
		return fault{name: name, manifest: change, want: format.ErrLayout}
	}
	rekey := func(m *format.BatchSet) { m.SetKey, _ = m.Key() }
	faults := []fault{
		// Headers and heads.
		{name: "shard number", file: format.BatchFile(1), header: func(h *format.Header) { h.Shard = 0 }, want: format.ErrLayout},
		{name: "set key", file: format.BatchFile(1), header: func(h *format.Header) { h.SetKey[0]++ }, want: format.ErrLayout},
		{name: "snapshot id", file: format.EvalFile(0), header: func(h *format.Header) { h.SnapshotID[0]++ }, want: format.ErrLayout},
		{name: "file kind", file: format.BatchFile(0), header: func(h *format.Header) { h.Kind = format.FileEval }, want: format.ErrLayout},
		{name: "foreign table", file: format.SetLabelsFile, header: func(h *format.Header) { h.SetKey[5]++ }, want: format.ErrLayout},
		batch0("batch number", func(r *copied) { r.Number = 1 }),
		batch0("variant", func(r *copied) { r.Variant = 1 }),
		batch0("split", func(r *copied) { r.Split = format.PartValid }),
		batch0("split column", func(r *copied) { r.SplitColumn = 1 }),
		batch0("task", func(r *copied) { r.Task = format.TaskLink }),
		batch0("codec", func(r *copied) {
			nodes := &r.sections[r.find(format.NodesNumber, any, 0)]
			numbers := make([]int32, len(nodes.Data)/4)
			for i := range numbers {
				numbers[i] = int32(binary.LittleEndian.Uint32(nodes.Data[4*i:]))
			}
			*nodes = format.Int32BitsSection(format.NodesNumber, any, numbers, new([]byte))
		}),
		// Nodes and seeds.
		batch0("node twice", func(r *copied) { r.set(format.NodesNumber, any, 0, 12, r.word(format.NodesNumber, any, 0, 11)) }),
		batch0("node out of range", func(r *copied) { r.set(format.NodesNumber, any, 0, 3, 60) }),
		batch0("hop not ascending", func(r *copied) { r.swap(format.NodesNumber, any, 10, 11) }),
		batch0("seed not of the split", func(r *copied) { r.set(format.NodesNumber, any, 0, 0, 1) }),
		{name: "seed twice in a variant", file: format.BatchFile(0), want: format.ErrLayout, files: func(t *testing.T, dir string) {
			rewrite(t, filepath.Join(dir, format.BatchFile(0)), nil, func(records []*copied) {
				number := records[1].Number
				*records[1] = *records[0]
				records[1].RecordHeader.Number = number
			})
		}},
		// Blocks.
		batch0("row not ascending", func(r *copied) { r.swap(format.BlockIndices, 0, longRow(r, 0), longRow(r, 0)+1) }),
		batch0("neighbour twice", func(r *copied) {
			e := longRow(r, 0)
			r.set(format.BlockIndices, 0, 0, e+1, r.word(format.BlockIndices, 0, 0, e))
		}),
		batch0("importance below 1", func(r *copied) { r.set(format.CoefImportance, 1, 0, 0, math.Float32bits(0.5)) }),
		batch0("importance not finite", func(r *copied) { r.set(format.CoefImportance, 0, 0, 0, math.Float32bits(float32(math.Inf(1)))) }),
		batch0("transpose edge", func(r *copied) {
			s := &r.sections[r.find(format.TransposeEdge, 0, 0)]
			s.Data[0], s.Data[8] = s.Data[8], s.Data[0]
		}),
		batch0("transpose dst", func(r *copied) {
			r.set(format.TransposeIndices, 1, 0, 0, (r.word(format.TransposeIndices, 1, 0, 0)+1)%10)
		}),
		// Coefficients, labels, rows.
		batch0("coefficient not finite", func(r *copied) {
			r.set(format.CoefEdge, 0, format.CoefGCN, 0, math.Float32bits(float32(math.NaN())))
		}),
		batch0("factor of another node", func(r *copied) { r.set(format.CoefSelf, any, format.CoefMean, 2, math.Float32bits(0.123)) }),
		batch0("label", func(r *copied) { r.set(format.SeedsLabel, any, 0, 0, (r.word(format.SeedsLabel, any, 0, 0)+1)%3) }),
		batch0("feature row", func(r *copied) { r.set(format.TableRows, any, 0, 5, 0x42000000) }),
		{name: "section absent", file: format.BatchFile(0), record: func(r *copied) { r.drop(format.CoefImportance, 0, 0) }, want: format.ErrMissing},
		{name: "self term absent", file: format.BatchFile(0), record: func(r *copied) { r.drop(format.CoefSelf, any, format.CoefGCN) }, want: format.ErrMissing},
		{name: "transpose absent", file: format.BatchFile(0), record: func(r *copied) {
			r.drop(format.TransposeIndptr, 0, 0)
			r.drop(format.TransposeIndices, 0, 0)
			r.drop(format.TransposeEdge, 0, 0)
		}, want: format.ErrMissing},
		batch0("section too many", func(r *copied) {
			r.sections = append(r.sections, format.Float32Section(format.SeedsWeight, any, 0, make([]float32, r.NumSeeds)))
		}),
		// Evaluation.
		eval0("last row left out", (*copied).cutLastRow),
		eval0("label of a row", func(r *copied) { r.set(format.SeedsLabel, any, 0, 7, (r.word(format.SeedsLabel, any, 0, 7)+1)%3) }),
		eval0("mask of a row", func(r *copied) { r.sections[r.find(format.SeedsMask, any, 0)].Data[3] ^= 1 }),
		eval0("own node", func(r *copied) { r.set(format.BlockIndices, any, 0, 0, 0) }),
		{name: "coefficients differ", file: format.SetCoefsFile, record: func(r *copied) { r.set(format.CoefSelf, any, format.CoefMean, 0, math.Float32bits(9)) }, want: format.ErrLayout},
		// The manifest.
		manifest("rows", func(m *format.BatchSet) { m.NumRows++ }),
		manifest("edges", func(m *format.BatchSet) { m.NumSampledEdges-- }),
		manifest("bytes", func(m *format.BatchSet) { m.Bytes++ }),
		manifest("bytes per variant", func(m *format.BatchSet) { m.BytesPerVariant++ }),
		manifest("eval bytes", func(m *format.BatchSet) { m.EvalBytes++ }),
		manifest("maximum of nodes", func(m *format.BatchSet) { m.Maxima.Nodes-- }),
		manifest("maximum of edges", func(m *format.BatchSet) { m.Maxima.LayerEdges[1]++ }),
		manifest("maximum of bytes", func(m *format.BatchSet) { m.Maxima.RecordBytes-- }),
		manifest("seeds", func(m *format.BatchSet) { m.NumSeeds-- }),
		manifest("batches a variant", func(m *format.BatchSet) { m.BatchesPerVariant-- }),
		manifest("nodes", func(m *format.BatchSet) { m.NumNodes++ }),
		manifest("classes", func(m *format.BatchSet) { m.NumClasses++ }),
		manifest("layers", func(m *format.BatchSet) { m.NumLayers = 3 }),
		manifest("evaluation blocks", func(m *format.BatchSet) { m.NumEvalBlocks = 0 }),
		manifest("split names", func(m *format.BatchSet) { m.Splits[1] = "other" }),
		manifest("features", func(m *format.BatchSet) { m.Features.SHA256[0]++ }),
		manifest("set key in the manifest", func(m *format.BatchSet) { m.Params.Seed++ }),
		manifest("no variants", func(m *format.BatchSet) { m.Params.Variants = 0; rekey(m) }),
		manifest("huge counts", func(m *format.BatchSet) { m.NumBatches, m.BatchesPerVariant = math.MaxInt64-1, math.MaxInt64/2 }),
		{name: "many batches", manifest: func(m *format.BatchSet) { m.NumBatches, m.BatchesPerVariant, m.NumSeeds = 12, 6, 60 }, want: format.ErrMissing},
		{name: "other seed", manifest: func(m *format.BatchSet) { m.Params.Seed++; rekey(m) }, want: format.ErrLayout},
		{name: "unknown mode", manifest: func(m *format.BatchSet) { m.Params.Mode = "saint"; rekey(m) }, want: format.ErrVersion},
		{name: "file not listed", manifest: func(m *format.BatchSet) { m.Files = m.Files[1:] }, want: format.ErrMissing},
		manifest("file listed twice", func(m *format.BatchSet) { m.Files = append(m.Files, m.Files[0]) }),
		// Files.
		{name: "bit of a file", files: func(t *testing.T, dir string) { flip(t, filepath.Join(dir, format.BatchFile(1)), 4200) }, want: format.ErrChecksum},
		{name: "file gone", files: func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, format.EvalFile(0))) }, want: format.ErrMissing},
		{name: "file cut short", files: func(t *testing.T, dir string) { os.Truncate(filepath.Join(dir, format.SetCoefsFile), 4096) }, want: format.ErrTruncated},
		// What only the snapshot can tell.
		{name: "another neighbour", file: format.BatchFile(0), against: true, want: format.ErrLayout, record: func(r *copied) {
			r.set(format.CoefImportance, 1, 0, longRowDst(r, 1), math.Float32bits(1))
		}},
		{name: "edge coefficient", file: format.BatchFile(0), against: true, want: format.ErrLayout, record: func(r *copied) {
			r.set(format.CoefEdge, 1, format.CoefSum, 0, math.Float32bits(77))
		}},
		{name: "row of an evaluation block", file: format.EvalFile(0), against: true, want: format.ErrLayout, record: func(r *copied) {
			r.set(format.CoefEdge, any, format.CoefMean, 3, math.Float32bits(77))
		}},
	}
	findFaults(t, snap, p, faults)
}

// findFaults puts each fault into a copy of the set and wants it found.
func findFaults(t *testing.T, snap *snapshot.Snapshot, p format.BatchParams, faults []fault) {
	t.Helper()
	original := filepath.Join(t.TempDir(), "set")
	write(t, original, snap, p, Options{})
	if err := VerifyAgainst(original, snap); err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "set")
			if err := os.CopyFS(dir, os.DirFS(original)); err != nil {
				t.Fatal(err)
			}
			f.apply(t, dir)
			err := Verify(dir)
			if f.against {
				if err != nil {
					t.Fatalf("Verify finds it by itself: %v", err)
				}
				err = VerifyAgainst(dir, snap)
			}
			if !errors.Is(err, f.want) {
				t.Errorf("got %v, want %v", err, f.want)
			}
		})
	}
}

// apply puts the fault into the set in dir and makes the rest of it agree: file digests
// and the id; the manifest's totals are as they were.
func (f *fault) apply(t *testing.T, dir string) {
	t.Helper()
	if f.files != nil {
		f.files(t, dir)
	}
	if f.header != nil || f.record != nil {
		rewrite(t, filepath.Join(dir, f.file), f.header, func(records []*copied) {
			if f.record != nil {
				f.record(records[0])
			}
		})
	}
	if f.files != nil && f.file == "" {
		return
	}
	_, m, err := format.ReadBatchSet(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Files {
		info, err := format.DigestFile(filepath.Join(dir, m.Files[i].Name))
		if err != nil {
			t.Fatal(err)
		}
		m.Files[i] = info
	}
	if f.manifest != nil {
		f.manifest(m)
		slices.SortStableFunc(m.Files, func(a, b format.FileInfo) int { return cmp.Compare(a.Name, b.Name) })
	}
	if _, err := format.WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
}

// rewrite writes a file anew with its header and records changed.
func rewrite(t *testing.T, path string, header func(h *format.Header), change func(records []*copied)) {
	t.Helper()
	f, err := format.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records := make([]*copied, len(f.Records))
	for i := range records {
		r, err := f.Record(i)
		if err != nil {
			t.Fatal(err)
		}
		records[i] = &copied{RecordHeader: r.RecordHeader}
		for _, s := range r.Sections {
			records[i].sections = append(records[i].sections, format.SectionSpec{Kind: s.Kind, Layer: s.Layer, Coef: s.Coef, DType: s.DType, Shape: s.Shape, Codec: s.Codec, StoredBytes: s.SizeBytes, Data: append([]byte{}, s.Bytes()...)})
		}
	}
	change(records)
	h := f.Header
	if header != nil {
		header(&h)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w, err := format.Create(path, h, len(records))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Add(&r.RecordHeader, r.sections); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatalf("the fault is one that format finds: %v", err)
	}
}

func flip(t *testing.T, path string, at int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= 1
	os.Remove(path)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// longRowDst returns the first dst of a layer that was sampled down.
func longRowDst(r *copied, layer uint16) int {
	for d := range r.NumSeeds {
		if math.Float32frombits(r.word(format.CoefImportance, layer, 0, int(d))) > 1 {
			return int(d)
		}
	}
	panic("every row is short")
}

// longRow returns the first edge of a row with at least two.
func longRow(r *copied, layer uint16) int {
	return int(binary.LittleEndian.Uint64(r.sections[r.find(format.BlockIndptr, layer, 0)].Data[8*longRowDst(r, layer):]))
}
