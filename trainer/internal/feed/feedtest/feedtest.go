// Package feedtest writes small batch sets for the trainer's tests, without the code that
// writes real ones: plain loops over a little graph, after SPEC.md.
package feedtest

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/rows"
)

// Graph is a small undirected graph with what a snapshot knows of its nodes.
type Graph struct {
	Neighbors  [][]int32 // of each node, ascending, without itself
	NumFeature int
	Features   []float32 // [N, NumFeature]
	NumClasses int
	Class      []int32   // [N], -1 unlabelled; nil with Bits
	Bits       []uint8   // [N, NumClasses]
	Parts      [][]uint8 // split columns, each [N]
	Task       string    // multiclass, binary or multilabel

	// Extra gives further sections of a batch of so many nodes and seeds, to see what is
	// refused; nil: none.
	Extra func(numNodes, numSeeds int) []format.SectionSpec
}

// N returns the number of nodes.
func (g *Graph) N() int { return len(g.Neighbors) }

// FromEdges makes a graph of n nodes without labels or features.
func FromEdges(n int, edges [][2]int32) *Graph {
	g := &Graph{Neighbors: make([][]int32, n)}
	for _, e := range edges {
		g.Neighbors[e[0]] = append(g.Neighbors[e[0]], e[1])
		g.Neighbors[e[1]] = append(g.Neighbors[e[1]], e[0])
	}
	for v := range g.Neighbors {
		slices.Sort(g.Neighbors[v])
		g.Neighbors[v] = slices.Compact(g.Neighbors[v])
	}
	return g
}

// Random makes a graph of n nodes in classes groups: most edges inside a group, features
// that lean towards it, half of the nodes to train on, a quarter each valid and test.
// Node n-1 is isolated; some nodes are unlabelled.
func Random(seed uint64, n, classes, features int) *Graph {
	draw := uint64(0)
	next := func(limit int) int {
		draw++
		return int(mix(seed<<32+draw) % uint64(limit))
	}
	var edges [][2]int32
	for v := range n - 1 {
		for range 3 {
			u := next(n - 1)
			if next(10) < 8 {
				u = (u/classes*classes + v%classes) % (n - 1)
			}
			if u != v {
				edges = append(edges, [2]int32{int32(v), int32(u)})
			}
		}
	}
	g := FromEdges(n, edges)
	g.NumFeature, g.NumClasses, g.Task = features, classes, "multiclass"
	g.Features = make([]float32, n*features)
	for i := range g.Features {
		g.Features[i] = float32(next(2000))/1000 - 1
		if v, j := i/features, i%features; j%classes == v%classes {
			g.Features[i] += 0.7
		}
	}
	part := make([]uint8, n)
	for v := range n {
		g.Class = append(g.Class, int32(v%classes))
		part[v] = []uint8{1, 1, 2, 3}[next(4)]
		if next(12) == 0 {
			g.Class[v], part[v] = -1, 0
		}
	}
	g.Parts = [][]uint8{part}
	return g
}

// ToBits turns the classes into a multilabel task: bit c of node v is whether c is v's
// class or the next one.
func (g *Graph) ToBits() {
	g.Bits = make([]uint8, g.N()*g.NumClasses)
	for v, class := range g.Class {
		for c := range g.NumClasses {
			switch {
			case class < 0:
				g.Bits[v*g.NumClasses+c] = format.Unlabelled
			case int(class) == c || (int(class)+1)%g.NumClasses == c:
				g.Bits[v*g.NumClasses+c] = 1
			}
		}
	}
	g.Class, g.Task = nil, "multilabel"
}

func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Write writes the batch set of g into dir, which must not exist, and returns its manifest
// and id. p needs Mode, and for mode fanout Fanout and BatchSize; the rest has defaults.
// Transpose "none" leaves out even those that training needs.
func Write(t testing.TB, dir string, g *Graph, p format.BatchParams) (*format.BatchSet, format.Digest) {
	t.Helper()
	w := newWriter(g, p)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	id, err := w.write(dir)
	if err != nil {
		t.Fatal(err)
	}
	return w.m, id
}

type writer struct {
	g   *Graph
	m   *format.BatchSet
	p   format.BatchParams
	dir string
}

func newWriter(g *Graph, p format.BatchParams) *writer {
	p.Task, p.Order, p.Seed, p.BatchesPerFile = "node", "random", 1, max(p.BatchesPerFile, 2, p.Group)
	if p.DType == "" {
		p.DType = "f32"
	}
	if p.Norm == nil {
		p.Norm = []string{"gcn", "mean"}
	}
	if p.Transpose == "" {
		p.Transpose = "auto"
	}
	if p.Store == "" {
		p.Store = "ids"
	}
	if p.LinkFeatures == "" {
		p.LinkFeatures = "auto"
	}
	if p.IndexCodec == "" {
		p.IndexCodec = "raw"
	}
	if p.Eval == "" {
		p.Eval = "layerwise"
	}
	if p.Mode == "full" {
		p.Split, p.Variants, p.Fanout = -1, 1, []int{}
	}
	p.Variants = max(p.Variants, 1)
	m := &format.BatchSet{
		Kind: format.KindBatchSet, FormatVersion: format.Version,
		SnapshotID: sha256.Sum256([]byte("snapshot")), SnapshotKey: sha256.Sum256([]byte("snapshot key")), Params: p,
		NumNodes: format.Int(g.N()), NumFeatures: format.Int(g.NumFeature), LabelTask: g.Task, NumClasses: format.Int(g.NumClasses),
		Splits: []string{}, NumLayers: len(p.Fanout), FeatureTableBytes: format.Int(4 * g.N() * g.NumFeature), Files: []format.FileInfo{},
	}
	for c := range g.Parts {
		m.Splits = append(m.Splits, fmt.Sprintf("split%d", c))
	}
	m.SetKey, _ = m.Key()
	if p.DType != "f32" {
		m.RowError = &format.RowError{}
	}
	return &writer{g: g, m: m, p: p}
}

type record struct {
	header   format.RecordHeader
	sections []format.SectionSpec
}

func (w *writer) write(dir string) (format.Digest, error) {
	w.dir = dir
	if w.p.LinkFeatures == "none" {
		if err := w.snapshot(dir + ".snapshot"); err != nil {
			return format.Digest{}, err
		}
	}
	for _, step := range []func() error{w.tables, w.batches, w.evaluation} {
		if err := step(); err != nil {
			return format.Digest{}, err
		}
	}
	slices.SortFunc(w.m.Files, func(a, b format.FileInfo) int { return strings.Compare(a.Name, b.Name) })
	return format.WriteManifest(dir, w.m)
}

func (w *writer) file(name string, kind format.FileKind, shard int, records ...record) error {
	h := format.Header{Kind: kind, SnapshotID: w.m.SnapshotID, SetKey: w.m.SetKey, Shard: uint32(shard)}
	if kind == format.FileIDs || kind == format.FileLabels || kind == format.FileFeatures && w.p.DType == "f32" {
		h.SnapshotID, h.SetKey = [32]byte{}, w.m.SnapshotKey
	}
	path := filepath.Join(w.dir, name)
	f, err := format.Create(path, h, len(records))
	if err != nil {
		return err
	}
	for i := range records {
		if err := f.Add(&records[i].header, records[i].sections); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	info, err := format.DigestFile(path)
	w.m.Files = append(w.m.Files, info)
	return err
}

func (w *writer) global(lo, hi int) format.RecordHeader {
	return format.RecordHeader{Space: format.SpaceGlobal, SplitColumn: format.AnySplit, DstStart: uint64(lo), DstEnd: uint64(hi), HopNodes: []uint64{uint64(w.g.N())}}
}

func names(list []string) []format.SectionSpec {
	n := format.NamesOf(list)
	return []format.SectionSpec{format.Int64Section(format.NamesOffsets, format.AnyLayer, n.Offsets), format.Uint8Section(format.NamesBytes, format.AnyLayer, n.Bytes)}
}

func (w *writer) tables() error {
	g := w.g
	var ids []string
	for v := range g.N() {
		ids = append(ids, fmt.Sprintf("n%03d", v))
	}
	list := format.NamesOf(ids)
	err := w.file(format.SetIDsFile, format.FileIDs, 0, record{w.global(0, g.N()), []format.SectionSpec{
		format.Int64Section(format.IDsOffsets, format.AnyLayer, list.Offsets), format.Uint8Section(format.IDsBytes, format.AnyLayer, list.Bytes),
		format.Uint64Section(format.IDsKey, format.AnyLayer, make([]uint64, g.N()))}})
	if err != nil {
		return err
	}
	all := make([]int32, g.N())
	for v := range all {
		all[v] = int32(v)
	}
	if g.Task != "" {
		h := w.global(0, g.N())
		h.NumSeeds = h.DstEnd
		var classes []string
		for c := range g.NumClasses {
			classes = append(classes, fmt.Sprintf("class %d", c))
		}
		if err := w.file(format.SetLabelsFile, format.FileLabels, 0, record{h, append(names(classes), w.label(all))}); err != nil {
			return err
		}
	}
	if len(g.Parts) > 0 {
		h := w.global(0, g.N())
		h.NumSeeds = h.DstEnd
		if err := w.file(format.SetSplitsFile, format.FileLabels, 0, record{h, append(names(w.m.Splits), w.mask(all))}); err != nil {
			return err
		}
	}
	if g.NumFeature == 0 {
		return nil
	}
	if w.p.LinkFeatures == "none" {
		return nil
	}
	return w.features()
}

func (w *writer) features() error {
	all := make([]int32, w.g.N())
	for v := range all {
		all[v] = int32(v)
	}
	return w.file(format.SetFeaturesFile, format.FileFeatures, 0, record{w.global(0, w.g.N()), w.rows(all)})
}

// snapshot writes what --features needs of a snapshot, the table and a manifest, and makes
// it the one that the set comes of.
func (w *writer) snapshot(dir string) (err error) {
	set := w.dir
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	w.dir = dir
	if err := w.features(); err != nil {
		return err
	}
	if w.m.SnapshotID, err = format.WriteManifest(dir, map[string]any{"kind": "snapshot", "files": w.m.Files}); err != nil {
		return err
	}
	w.dir, w.m.Files = set, []format.FileInfo{}
	w.m.SetKey, err = w.m.Key()
	return err
}

// label, mask and rows gather what belongs to the given nodes.
func (w *writer) label(nodes []int32) format.SectionSpec {
	g := w.g
	if g.Bits != nil {
		s := format.SectionSpec{Kind: format.SeedsLabel, Layer: format.AnyLayer, DType: format.U8, Shape: []uint64{uint64(len(nodes)), uint64(g.NumClasses)}, Data: []byte{}}
		for _, v := range nodes {
			s.Data = append(s.Data, g.Bits[int(v)*g.NumClasses:(int(v)+1)*g.NumClasses]...)
		}
		return s
	}
	return format.Int32Section(format.SeedsLabel, format.AnyLayer, pick(g.Class, nodes))
}

func (w *writer) mask(nodes []int32) format.SectionSpec {
	s := format.SectionSpec{Kind: format.SeedsMask, Layer: format.AnyLayer, DType: format.U8, Shape: []uint64{uint64(len(nodes)), uint64(len(w.g.Parts))}, Data: []byte{}}
	for _, v := range nodes {
		for _, part := range w.g.Parts {
			s.Data = append(s.Data, part[v])
		}
	}
	return s
}

func (w *writer) rows(nodes []int32) []format.SectionSpec {
	dim, kind, scale := w.g.NumFeature, w.kind(), w.scale()
	s := format.SectionSpec{Kind: format.TableRows, Layer: format.AnyLayer, DType: w.dtype(), Shape: []uint64{uint64(len(nodes)), uint64(dim)}, Data: make([]byte, len(nodes)*dim*kind.SizeBytes())}
	var in []float32
	for _, v := range nodes {
		in = append(in, w.g.Features[int(v)*dim:(int(v)+1)*dim]...)
	}
	rows.Encode(s.Data, in, kind, scale)
	if kind != rows.I8 {
		return []format.SectionSpec{s}
	}
	return []format.SectionSpec{format.Float32Section(format.TableScale, format.AnyLayer, format.CoefNone, scale), s}
}

func (w *writer) kind() rows.Type {
	kind, ok := rows.Parse(w.p.DType)
	if !ok {
		panic("feedtest: no dtype " + w.p.DType)
	}
	return kind
}

func (w *writer) dtype() format.DType {
	return map[rows.Type]format.DType{rows.F32: format.F32, rows.F16: format.F16, rows.BF16: format.BF16, rows.I8: format.I8}[w.kind()]
}

func (w *writer) scale() []float32 {
	if w.kind() != rows.I8 {
		return nil
	}
	scale := make([]float32, w.g.NumFeature)
	rows.ColumnMaxima(scale, w.g.Features)
	for c := range scale {
		scale[c] = rows.ScaleOf(scale[c])
	}
	return scale
}

// Stored returns the features of g as rows of a type bring them back.
func Stored(g *Graph, dtype string) []float32 {
	w := newWriter(g, format.BatchParams{DType: dtype})
	t := rows.Table{Type: w.kind(), Cols: g.NumFeature, Scale: w.scale(), Data: make([]byte, len(g.Features)*w.kind().SizeBytes())}
	rows.Encode(t.Data, g.Features, t.Type, t.Scale)
	out := make([]float32, len(g.Features))
	t.Decode(out, 0)
	return out
}

// isHot is a rule of this package's own, which a reader can't know: of the first nodes, so many as the share allows.
func (w *writer) isHot(v int32) bool { return int(v) < w.numHot() }

func (w *writer) numHot() int { return int(w.p.HotRows * float64(w.g.N())) }

// shareRows moves the rows of packed batches to the records of their groups and to the hot rows, and writes those.
func (w *writer) shareRows(records []record) error {
	if w.p.HotRows == 0 && w.p.Group == 0 {
		return nil
	}
	table := func(number int, nodes []int32) record {
		h := format.RecordHeader{Space: format.SpaceLocal, SplitColumn: format.AnySplit, Number: uint32(number), HopNodes: []uint64{uint64(len(nodes))}}
		return record{h, append([]format.SectionSpec{format.Int32Section(format.NodesNumber, format.AnyLayer, nodes)}, w.rows(nodes)...)}
	}
	if w.p.HotRows > 0 {
		hot := make([]int32, w.numHot())
		for v := range hot {
			hot[v] = int32(v)
		}
		if err := w.file(format.SetHotFile, format.FileRows, 0, table(0, hot)); err != nil {
			return err
		}
	}
	number := 0
	for shard, first := 0, 0; first < len(records); shard, first = shard+1, first+w.p.BatchesPerFile {
		var groups []record
		for group := range slices.Chunk(records[first:min(first+w.p.BatchesPerFile, len(records))], max(w.p.Group, 1)) {
			uses := map[int32]int{}
			for _, r := range group {
				for _, v := range nodesOf(r) {
					uses[v]++
				}
			}
			var shared []int32
			for v, n := range uses {
				if n > 1 && !w.isHot(v) && w.p.Group > 1 {
					shared = append(shared, v)
				}
			}
			slices.Sort(shared)
			for i := range group {
				group[i].sections = append(group[i].sections, w.places(nodesOf(group[i]), shared)...)
			}
			groups = append(groups, table(number, shared))
			number++
		}
		if w.p.Group > 1 {
			if err := w.file(format.RowsFile(shard), format.FileRows, shard, groups...); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodesOf returns the node list of a batch.
func nodesOf(r record) []int32 {
	for _, s := range r.sections {
		if s.Kind == format.NodesNumber {
			nodes := make([]int32, s.Shape[0])
			copy(format.Bytes(nodes), s.Data)
			return nodes
		}
	}
	panic("feedtest: a batch without nodes")
}

func (w *writer) places(nodes, shared []int32) []format.SectionSpec {
	row, which, own := make([]int32, len(nodes)), make([]uint8, len(nodes)), []int32{}
	for i, v := range nodes {
		at, isShared := slices.BinarySearch(shared, v)
		switch {
		case w.isHot(v):
			row[i], which[i] = v, format.HotTable
		case isShared:
			row[i], which[i] = int32(at), format.GroupTable
		default:
			row[i], which[i] = int32(len(own)), format.OwnTable
			own = append(own, v)
		}
	}
	return append([]format.SectionSpec{format.Int32Section(format.NodesRow, format.AnyLayer, row), format.Uint8Section(format.NodesTable, format.AnyLayer, which)}, w.rows(own)...)
}

func pick[T any](all []T, nodes []int32) []T {
	out := make([]T, len(nodes))
	for i, v := range nodes {
		out[i] = all[v]
	}
	return out
}

// coefs returns the per-node coefficient sections of the given nodes, the first numDst of which are dst.
func (w *writer) coefs(nodes []int32, numDst int) []format.SectionSpec {
	factor, self, mean := make([]float32, len(nodes)), make([]float32, len(nodes)), make([]float32, len(nodes))
	for i, v := range nodes {
		degree := len(w.g.Neighbors[v])
		factor[i] = float32(1 / math.Sqrt(float64(degree+1)))
		self[i] = float32(1 / float64(degree+1))
		if degree > 0 {
			mean[i] = float32(1 / float64(degree))
		}
	}
	var s []format.SectionSpec
	if slices.Contains(w.p.Norm, "gcn") {
		s = append(s, format.Float32Section(format.CoefSrc, format.AnyLayer, format.CoefGCN, factor),
			format.Float32Section(format.CoefDst, format.AnyLayer, format.CoefGCN, factor[:numDst]), format.Float32Section(format.CoefSelf, format.AnyLayer, format.CoefGCN, self[:numDst]))
	}
	if slices.Contains(w.p.Norm, "mean") {
		s = append(s, format.Float32Section(format.CoefDst, format.AnyLayer, format.CoefMean, mean[:numDst]))
	}
	return s
}

// int32s is a section of integers under a codec, "raw" or "bits".
func int32s(codec string, kind format.Kind, layer uint16, v []int32) format.SectionSpec {
	if codec == "bits" {
		return format.Int32BitsSection(kind, layer, v, new([]byte))
	}
	return format.Int32Section(kind, layer, v)
}

func int64s(codec string, kind format.Kind, layer uint16, v []int64) format.SectionSpec {
	if codec == "bits" {
		return format.Int64BitsSection(kind, layer, v, new([]byte))
	}
	return format.Int64Section(kind, layer, v)
}

// csr makes the block whose row i lists srcs[i], which are positions among numSrc src.
func csr(codec string, layer uint16, srcs [][]int32, numSrc int, transpose bool) []format.SectionSpec {
	indptr, indices := []int64{0}, []int32{}
	for _, row := range srcs {
		indices = append(indices, row...)
		indptr = append(indptr, int64(len(indices)))
	}
	s := []format.SectionSpec{int64s(codec, format.BlockIndptr, layer, indptr), int32s(codec, format.BlockIndices, layer, indices)}
	if !transpose {
		return s
	}
	tIndptr, tIndices, tEdge := []int64{0}, []int32{}, []int64{}
	for src := range numSrc {
		for dst := range srcs {
			for e := indptr[dst]; e < indptr[dst+1]; e++ {
				if int(indices[e]) == src {
					tIndices, tEdge = append(tIndices, int32(dst)), append(tEdge, e)
				}
			}
		}
		tIndptr = append(tIndptr, int64(len(tIndices)))
	}
	return append(s, int64s(codec, format.TransposeIndptr, layer, tIndptr),
		int32s(codec, format.TransposeIndices, layer, tIndices), int64s(codec, format.TransposeEdge, layer, tEdge))
}

func (w *writer) batches() error {
	var records []record
	if w.p.Mode == "full" {
		records = []record{w.fullBatch()}
		w.m.BatchesPerVariant = 1
	} else {
		var seeds []int32
		for v, part := range w.g.Parts[w.p.Split] {
			if part == uint8(format.PartTrain) {
				seeds = append(seeds, int32(v))
			}
		}
		for variant := range w.p.Variants {
			for chunk := range slices.Chunk(seeds, w.p.BatchSize) {
				if w.p.KHop != nil {
					records = append(records, w.subgraph(len(records), variant, chunk))
				} else {
					records = append(records, w.fanoutBatch(len(records), variant, chunk))
				}
			}
		}
		w.m.NumSeeds, w.m.BatchesPerVariant = format.Int(len(seeds)), format.Int(len(records)/w.p.Variants)
	}
	w.m.NumBatches = format.Int(len(records))
	if err := w.shareRows(records); err != nil {
		return err
	}
	w.m.Maxima.LayerEdges = make([]format.Int, max(w.m.NumLayers, 1))
	for _, r := range records {
		size, err := format.RecordSizeBytes(&r.header, r.sections)
		if err != nil {
			return err
		}
		x := &w.m.Maxima
		x.Nodes, x.Seeds, x.RecordBytes = max(x.Nodes, format.Int(r.header.HopNodes[len(r.header.HopNodes)-1])), max(x.Seeds, format.Int(r.header.NumSeeds)), max(x.RecordBytes, format.Int(size))
	}
	return w.shards(format.BatchFile, format.FileBatches, records)
}

func (w *writer) shards(name func(int) string, kind format.FileKind, records []record) error {
	for shard := 0; len(records) > 0; shard++ {
		n := min(len(records), w.p.BatchesPerFile)
		if err := w.file(name(shard), kind, shard, records[:n]...); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

func (w *writer) fullBatch() record {
	n := w.g.N()
	all := make([]int32, n)
	for v := range all {
		all[v] = int32(v)
	}
	h := w.global(0, n)
	h.Task, h.NumSeeds = format.TaskNode, uint64(n)
	s := append(csr("raw", format.AnyLayer, w.g.Neighbors, n, true), w.coefs(all, len(all))...)
	if w.g.Task != "" {
		s = append(s, w.label(all))
	}
	if len(w.g.Parts) > 0 {
		s = append(s, w.mask(all))
	}
	w.m.NumSeeds = format.Int(n)
	return record{h, append(s, w.extra(n, n)...)}
}

// draw takes the k neighbours of v with the smallest hash; k < 0 takes all.
func (w *writer) draw(variant, hop int, v int32, k int) []int32 {
	all := slices.Clone(w.g.Neighbors[v])
	if k < 0 || k >= len(all) {
		return all
	}
	key := func(u int32) uint64 {
		return mix(mix(mix(uint64(variant)<<32|uint64(hop))+uint64(v)) + uint64(u))
	}
	slices.SortFunc(all, func(a, b int32) int {
		if key(a) < key(b) {
			return -1
		}
		return 1
	})
	all = all[:k]
	slices.Sort(all)
	return all
}

func (w *writer) fanoutBatch(number, variant int, seeds []int32) record {
	numLayers := len(w.p.Fanout)
	nodes, at := slices.Clone(seeds), map[int32]int32{}
	for i, v := range nodes {
		at[v] = int32(i)
	}
	hopNodes := []uint64{uint64(len(nodes))}
	drawn := make([][][]int32, numLayers) // by hop-1, then by dst
	for hop := 1; hop <= numLayers; hop++ {
		var fresh []int32
		for _, v := range nodes {
			row := w.draw(variant, hop, v, w.p.Fanout[hop-1])
			drawn[hop-1] = append(drawn[hop-1], row)
			for _, u := range row {
				if _, ok := at[u]; !ok {
					at[u] = -1
					fresh = append(fresh, u)
				}
			}
		}
		slices.Sort(fresh)
		for _, u := range fresh {
			at[u] = int32(len(nodes))
			nodes = append(nodes, u)
		}
		hopNodes = append(hopNodes, uint64(len(nodes)))
	}
	h := format.RecordHeader{
		Task: format.TaskNode, Split: format.PartTrain, SplitColumn: uint32(w.p.Split), Number: uint32(number), Variant: uint32(variant),
		NumLayers: numLayers, NumSeeds: uint64(len(seeds)), HopNodes: hopNodes, LayerEdges: make([]uint64, numLayers*(numLayers+1)),
	}
	s := []format.SectionSpec{int32s(w.p.IndexCodec, format.NodesNumber, format.AnyLayer, nodes)}
	for l := range numLayers {
		hop := numLayers - l
		numSrc := int(hopNodes[hop])
		rows, importance := make([][]int32, hopNodes[hop-1]), make([]float32, hopNodes[hop-1])
		for i := range rows {
			row := drawn[hop-1][i]
			importance[i] = 1
			if full := len(w.g.Neighbors[nodes[i]]); full > len(row) && len(row) > 0 {
				importance[i] = float32(full) / float32(len(row))
			}
			for _, u := range row {
				rows[i] = append(rows[i], at[u])
			}
			for k := range hopNodes {
				if uint64(i) < hopNodes[k] {
					h.LayerEdges[l*len(hopNodes)+k] += uint64(len(row))
					break
				}
			}
		}
		transpose := w.p.Transpose != "none" && (l > 0 || w.p.Transpose == "all" || w.g.NumFeature == 0)
		s = append(s, csr(w.p.IndexCodec, uint16(l), rows, numSrc, transpose)...)
		s = append(s, format.Float32Section(format.CoefImportance, uint16(l), format.CoefNone, importance))
	}
	s = append(s, w.coefs(nodes, int(hopNodes[numLayers-1]))...)
	s = append(s, w.label(seeds))
	if w.p.Store == "packed" && w.p.HotRows == 0 && w.p.Group == 0 {
		s = append(s, w.rows(nodes)...)
	}
	return record{h, append(s, w.extra(len(nodes), len(seeds))...)}
}

// subgraph is a batch of mode khop: the nodes up to so many hops from the seeds and all edges between them, in one block.
func (w *writer) subgraph(number, variant int, seeds []int32) record {
	hop := map[int32]int{}
	for _, v := range seeds {
		hop[v] = 0
	}
	for h := range w.p.KHop.Hops {
		for v := range w.g.Neighbors {
			if at, ok := hop[int32(v)]; !ok || at != h {
				continue
			}
			for _, u := range w.g.Neighbors[v] {
				if _, ok := hop[u]; !ok {
					hop[u] = h + 1
				}
			}
		}
	}
	nodes, at := slices.Clone(seeds), map[int32]int32{}
	for v := range int32(w.g.N()) {
		if hop[v] > 0 {
			nodes = append(nodes, v)
		}
	}
	for i, v := range nodes {
		at[v] = int32(i)
	}
	rows, importance := make([][]int32, len(nodes)), make([]float32, len(nodes))
	for i, v := range nodes {
		for _, u := range w.g.Neighbors[v] {
			if place, ok := at[u]; ok {
				rows[i] = append(rows[i], place)
			}
		}
		importance[i] = 1
		if n := len(rows[i]); n > 0 {
			importance[i] = float32(len(w.g.Neighbors[v])) / float32(n)
		}
	}
	h := format.RecordHeader{
		Task: format.TaskNode, Split: format.PartTrain, SplitColumn: uint32(w.p.Split), Number: uint32(number), Variant: uint32(variant),
		NumSeeds: uint64(len(seeds)), HopNodes: []uint64{uint64(len(nodes))}, LayerEdges: []uint64{},
	}
	s := append([]format.SectionSpec{int32s(w.p.IndexCodec, format.NodesNumber, format.AnyLayer, nodes)}, csr(w.p.IndexCodec, format.AnyLayer, rows, len(nodes), w.p.Transpose != "none")...)
	s = append(s, format.Float32Section(format.CoefImportance, format.AnyLayer, format.CoefNone, importance))
	s = append(append(s, w.coefs(nodes, len(nodes))...), w.label(seeds))
	if w.p.Store == "packed" && w.p.HotRows == 0 && w.p.Group == 0 {
		s = append(s, w.rows(nodes)...)
	}
	return record{h, append(s, w.extra(len(nodes), len(seeds))...)}
}

func (w *writer) extra(numNodes, numSeeds int) []format.SectionSpec {
	if w.g.Extra == nil {
		return nil
	}
	return w.g.Extra(numNodes, numSeeds)
}

// evalRows is the height of an evaluation block.
const evalRows = 13

func (w *writer) evaluation() error {
	if w.p.Mode == "full" || w.p.Eval == "none" {
		return nil
	}
	all := make([]int32, w.g.N())
	for v := range all {
		all[v] = int32(v)
	}
	var records []record
	for rows := range slices.Chunk(all, evalRows) {
		lo, hi := int(rows[0]), int(rows[len(rows)-1])+1
		h := w.global(lo, hi)
		h.Task, h.Number, h.NumSeeds = format.TaskNode, uint32(len(records)), uint64(hi-lo)
		records = append(records, record{h, append(csr("raw", format.AnyLayer, w.g.Neighbors[lo:hi], w.g.N(), false), w.label(rows), w.mask(rows))})
	}
	w.m.NumEvalBlocks = format.Int(len(records))
	if err := w.shards(format.EvalFile, format.FileEval, records); err != nil {
		return err
	}
	return w.file(format.SetCoefsFile, format.FileCoefs, 0, record{w.global(0, w.g.N()), w.coefs(all, len(all))})
}
