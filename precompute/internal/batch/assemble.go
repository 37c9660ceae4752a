package batch

import (
	"math"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
)

// assembler builds one record after the other in the same memory: a record is valid
// until the next one. Not safe for concurrent use; give each worker its own.
type assembler struct {
	*source
	sampler *sample.Sampler // made with the first training batch
	cut     cutter
	record  record

	seeds      []int32 // of the last draw
	nodes      []int32 // of the batch at hand
	coefs      arena[float32]
	offsets    arena[int64]
	indices    arena[int32]
	coded      [][]byte // memory of sections of codec bits, of which numCoded are in use
	numCoded   int
	labelClass []int32
	labelBits  []uint8
	labelValue []float32

	piece    []byte  // of table.rows on its way to the file
	ownNodes []int32 // whose rows the packed batch at hand has itself
	packer   *packer // made with the first packed shard

	// Of packed sets whose batches share rows: the places of the rows of the batch at hand, and the group at hand.
	row    []int32
	tables []uint8
	own    []int32
	group  int
	shared *nodeSet
}

func newAssembler(s *source) *assembler { return &assembler{source: s} }

// release gives back what the assembler shares with others; it stays usable.
func (a *assembler) release() {
	if a.sampler != nil {
		a.sampler.Release()
	}
}

// arena hands out slices that live until reset.
type arena[T any] struct {
	used int
	all  [][]T
}

func (a *arena[T]) reset() { a.used = 0 }

// take returns a slice of n elements with unspecified contents.
func (a *arena[T]) take(n int) []T {
	if a.used == len(a.all) {
		a.all = append(a.all, nil)
	}
	s := &a.all[a.used]
	if cap(*s) < n {
		*s = make([]T, n, n+n/4)
	}
	a.used++
	return (*s)[:n]
}

func (a *assembler) reset(h format.RecordHeader) {
	a.coefs.reset()
	a.offsets.reset()
	a.indices.reset()
	a.numCoded = 0
	a.record = record{header: h, sections: a.record.sections[:0]}
}

func (a *assembler) add(specs ...format.SectionSpec) {
	a.record.sections = append(a.record.sections, specs...)
}

// codedBuffer is memory for one coded section, nil where the set isn't to have any.
func (a *assembler) codedBuffer() *[]byte {
	if a.params.IndexCodec != CodecBits {
		return nil
	}
	if a.numCoded == len(a.coded) {
		a.coded = append(a.coded, nil)
	}
	a.numCoded++
	return &a.coded[a.numCoded-1]
}

// addInt32s adds integers of a batch, under the set's codec.
func (a *assembler) addInt32s(kind format.Kind, layer uint16, v []int32) {
	if buf := a.codedBuffer(); buf != nil {
		a.add(format.Int32BitsSection(kind, layer, v, buf))
	} else {
		a.add(format.Int32Section(kind, layer, v))
	}
}

// addInt64s is addInt32s for i64.
func (a *assembler) addInt64s(kind format.Kind, layer uint16, v []int64) {
	if buf := a.codedBuffer(); buf != nil {
		a.add(format.Int64BitsSection(kind, layer, v, buf))
	} else {
		a.add(format.Int64Section(kind, layer, v))
	}
}

// draw draws a batch of modes fanout and labor; it is valid until the next one. Seeds of a batch are ascending, so
// that it depends on the set of them and not on how it was found.
func (a *assembler) draw(number int) (variant int, b *sample.Batch) {
	if a.sampler == nil {
		a.sampler = a.newSampler()
	}
	variant, seeds, _ := a.members(number)
	return variant, a.sampler.Sample(variant, seeds)
}

// nodesOf returns the node list of a batch, valid until the next draw.
func (a *assembler) nodesOf(number int) []int32 {
	if isSubgraph(a.params.Mode) {
		_, g := a.cutSubgraph(number)
		return g.Nodes
	}
	_, b := a.draw(number)
	return b.Nodes
}

// batch builds training batch number of modes fanout and labor.
func (a *assembler) batch(number int) *record {
	a.prepareRows(number)
	variant, b := a.draw(number)
	seeds := a.seeds
	a.reset(format.RecordHeader{
		Task: format.TaskNode, Split: format.PartTrain, Space: format.SpaceLocal, SplitColumn: splitColumn(&a.params),
		Number: uint32(number), Variant: uint32(variant), NumLayers: len(b.Layers), NumSeeds: uint64(len(seeds)),
		HopNodes: hopNodes(b), LayerEdges: layerEdges(b),
	})
	a.addInt32s(format.NodesNumber, format.AnyLayer, b.Nodes)
	for l := range b.Layers {
		a.layer(uint16(l), &b.Layers[l], b.HopNodes[len(b.Layers)-l])
	}
	a.finish(b.Nodes, b.HopNodes[len(b.Layers)-1], len(seeds))
	return &a.record
}

// finish adds what belongs to the nodes of a batch, to those of them that are dst, and to its seeds, the first of them.
func (a *assembler) finish(nodes []int32, numDst, numSeeds int) {
	for i := range a.norms {
		a.nodeCoefs(&a.norms[i], nodes, numDst)
	}
	a.labels(nodes[:numSeeds])
	a.nodes = nodes
	if a.params.Store == StorePacked {
		var rows []format.SectionSpec
		a.record.numPlain = len(a.record.sections)
		rows, a.ownNodes = a.packedRows(nodes)
		a.add(rows...)
	}
}

// layer adds the block of a layer with all that belongs to it alone.
func (a *assembler) layer(l uint16, block *sample.Layer, numSrc int) {
	a.addInt64s(format.BlockIndptr, l, block.Indptr)
	a.addInt32s(format.BlockIndices, l, block.Indices)
	for i := range a.norms {
		if n := &a.norms[i]; n.Edge != nil {
			edge := a.coefs.take(len(block.Entries))
			for e, entry := range block.Entries {
				edge[e] = n.Edge[entry]
			}
			a.weigh(edge, block.EdgeImportance, n.coef)
			a.add(format.Float32Section(format.CoefEdge, l, n.coef, edge))
		}
	}
	if hasImportance(&a.params, int(l)) {
		a.add(format.Float32Section(format.CoefImportance, l, format.CoefNone, block.Importance))
	}
	if hasTranspose(&a.params, int(l)) {
		a.transpose(l, block.Indptr, block.Indices, numSrc)
	}
}

// weigh multiplies the importance of edges that were drawn by weight into their coefficients of a kind; nil: there is none.
func (a *assembler) weigh(edge, importance []float32, coef format.Coef) {
	for e, x := range importance {
		edge[e] = float32(edge[e] * x)
		if math.IsInf(float64(edge[e]), 0) || math.IsNaN(float64(edge[e])) {
			a.record.err = paramErrorf("--weighted: a %s coefficient times the importance of a draw, %g, is over the numbers of 32 bits; scale the weights down, or leave --weighted out", coef, x)
		}
	}
}

// hasImportance reports whether the layer stores coef.importance: not where every
// neighbour is taken, which makes it all ones, nor where neighbours are drawn by weight, whose importance is in coef.edge.
// A subgraph has it.
func hasImportance(p *format.BatchParams, layer int) bool {
	return isSubgraph(p.Mode) || !p.Weighted && fanoutOf(p, layer) != sample.All
}

// transpose adds the transpose of a block (see graph.Transpose, its twin that allocates).
func (a *assembler) transpose(l uint16, indptr []int64, indices []int32, numSrc int) {
	tIndptr, tIndices, tEdge := a.offsets.take(numSrc+1), a.indices.take(len(indices)), a.offsets.take(len(indices))
	transpose(indptr, indices, tIndptr, tIndices, tEdge)
	a.addInt64s(format.TransposeIndptr, l, tIndptr)
	a.addInt32s(format.TransposeIndices, l, tIndices)
	a.addInt64s(format.TransposeEdge, l, tEdge)
}

// transpose fills the rows of the transposed block: row s lists the dst of s ascending,
// tEdge the place of each entry in indices. len(tIndptr) is the number of src + 1.
func transpose(indptr []int64, indices []int32, tIndptr []int64, tIndices []int32, tEdge []int64) {
	clear(tIndptr)
	next := tIndptr[1:] // counts, then the place of each row's next entry, in the end the next row's start
	for _, s := range indices {
		next[s]++
	}
	at := int64(0)
	for s, n := range next {
		next[s] = at
		at += n
	}
	for d := range len(indptr) - 1 {
		for e := indptr[d]; e < indptr[d+1]; e++ {
			s := indices[e]
			to := next[s]
			next[s]++
			tIndices[to], tEdge[to] = int32(d), e
		}
	}
}

// nodeCoefs adds the factors of a kind for the nodes of a batch: as src for all of them, as dst for the first numDst,
// which are those of the widest block.
func (a *assembler) nodeCoefs(n *coefNorm, nodes []int32, numDst int) {
	for _, part := range n.parts() {
		of := nodes[:numDst]
		if part.kind == format.CoefSrc {
			of = nodes
		}
		values := a.coefs.take(len(of))
		for i, v := range of {
			values[i] = part.values[v]
		}
		a.add(format.Float32Section(part.kind, format.AnyLayer, n.coef, values))
	}
}

// coefPart is one per-node array of a kind of coefficients.
type coefPart struct {
	kind   format.Kind
	values []float32
}

// parts lists what the kind doesn't leave out.
func (n *coefNorm) parts() []coefPart {
	parts := []coefPart{}
	for _, p := range []coefPart{{format.CoefSrc, n.Src}, {format.CoefDst, n.Dst}, {format.CoefSelf, n.Self}} {
		if p.values != nil {
			parts = append(parts, p)
		}
	}
	return parts
}

// labels adds the targets of the seeds.
func (a *assembler) labels(seeds []int32) {
	s := a.snap
	switch numSeeds := uint64(len(seeds)); {
	case s.Class != nil:
		a.labelClass = gatherRows(a.labelClass, s.Class, 1, seeds)
		a.add(format.Int32Section(format.SeedsLabel, format.AnyLayer, a.labelClass))
	case s.Bits != nil:
		cols := len(s.Bits) / s.NumNodes()
		a.labelBits = gatherRows(a.labelBits, s.Bits, cols, seeds)
		a.add(labelSection(format.U8, numSeeds, cols, format.Bytes(a.labelBits)))
	case s.Values != nil:
		cols := len(s.Values) / s.NumNodes()
		a.labelValue = gatherRows(a.labelValue, s.Values, cols, seeds)
		a.add(labelSection(format.F32, numSeeds, cols, format.Bytes(a.labelValue)))
	}
}

// rangeLabels adds the targets and masks of the rows lo..hi-1.
func (a *assembler) rangeLabels(lo, hi int) {
	s, numRows := a.snap, uint64(hi-lo)
	switch n := s.NumNodes(); {
	case s.Class != nil:
		a.add(format.Int32Section(format.SeedsLabel, format.AnyLayer, s.Class[lo:hi]))
	case s.Bits != nil:
		cols := len(s.Bits) / n
		a.add(labelSection(format.U8, numRows, cols, s.Bits[lo*cols:hi*cols]))
	case s.Values != nil:
		cols := len(s.Values) / n
		a.add(labelSection(format.F32, numRows, cols, format.Bytes(s.Values[lo*cols:hi*cols])))
	}
	if cols := len(s.Manifest.Splits); cols > 0 {
		a.add(format.SectionSpec{Kind: format.SeedsMask, Layer: format.AnyLayer, DType: format.U8,
			Shape: []uint64{numRows, uint64(cols)}, Data: s.Mask[lo*cols : hi*cols]})
	}
}

func labelSection(dtype format.DType, numRows uint64, cols int, data []byte) format.SectionSpec {
	return format.SectionSpec{Kind: format.SeedsLabel, Layer: format.AnyLayer, DType: dtype, Shape: []uint64{numRows, uint64(cols)}, Data: data}
}

// gatherRows returns the rows of a table of cols columns, in out's memory where they fit.
func gatherRows[T any](out, table []T, cols int, rows []int32) []T {
	out = out[:0]
	for _, v := range rows {
		out = append(out, table[int(v)*cols:][:cols]...)
	}
	return out
}

// eval builds evaluation block i: consecutive rows with all their neighbours.
func (a *assembler) eval(i int) *record {
	lo, hi := int(a.evalStarts[i]), int(a.evalStarts[i+1])
	a.reset(a.globalHeader(lo, hi))
	a.record.header.Number = uint32(i)
	a.rowBlock(lo, hi)
	a.rangeLabels(lo, hi)
	return &a.record
}

// globalHeader is the head of a record over the rows lo..hi-1, all of them seeds.
func (a *assembler) globalHeader(lo, hi int) format.RecordHeader {
	return format.RecordHeader{
		Task: format.TaskNode, Space: format.SpaceGlobal, SplitColumn: format.AnySplit,
		DstStart: uint64(lo), DstEnd: uint64(hi), NumSeeds: uint64(hi - lo), HopNodes: []uint64{uint64(a.snap.NumNodes())}, LayerEdges: []uint64{},
	}
}

// rowBlock adds the block of the rows lo..hi-1 without self loops, and its edge
// coefficients. It returns the block.
func (a *assembler) rowBlock(lo, hi int) (indptr []int64, indices []int32) {
	in := &a.snap.In
	first, last := in.Indptr[lo], in.Indptr[hi]
	indptr, indices = a.offsets.take(hi-lo+1), a.indices.take(int(last - first))[:0]
	indptr[0] = 0
	for v := lo; v < hi; v++ {
		for _, u := range in.Row(int32(v)) {
			if int(u) != v {
				indices = append(indices, u)
			}
		}
		indptr[v-lo+1] = int64(len(indices))
	}
	a.add(format.Int64Section(format.BlockIndptr, format.AnyLayer, indptr), format.Int32Section(format.BlockIndices, format.AnyLayer, indices))
	for i := range a.norms {
		if n := &a.norms[i]; n.Edge != nil {
			edge := a.coefs.take(int(last - first))[:0]
			for v := lo; v < hi; v++ {
				start := in.Indptr[v]
				for at, u := range in.Row(int32(v)) {
					if int(u) != v {
						edge = append(edge, n.Edge[start+int64(at)])
					}
				}
			}
			a.add(format.Float32Section(format.CoefEdge, format.AnyLayer, n.coef, edge))
		}
	}
	return indptr, indices
}

// coefTable builds the one record of coefs.plf.
func (a *assembler) coefTable() *record {
	a.reset(a.globalHeader(0, a.snap.NumNodes()))
	a.record.header.Task, a.record.header.NumSeeds = format.TaskNone, 0
	a.allCoefs()
	return &a.record
}

// allCoefs adds the factors of every kind for all nodes.
func (a *assembler) allCoefs() {
	for i := range a.norms {
		n := &a.norms[i]
		for _, part := range n.parts() {
			a.add(format.Float32Section(part.kind, format.AnyLayer, n.coef, part.values))
		}
	}
}

// fullBatch returns the one batch of mode full: the whole graph. It is built once and
// stays valid as long as the source.
func (s *source) fullBatch() *record {
	s.fullOnce.Do(func() {
		a := newAssembler(s)
		n := s.snap.NumNodes()
		a.reset(a.globalHeader(0, n))
		indptr, indices := a.rowBlock(0, n)
		a.transpose(format.AnyLayer, indptr, indices, n)
		a.allCoefs()
		a.rangeLabels(0, n)
		s.full = a.record
	})
	return &s.full
}

// training builds training batch number of any mode.
func (a *assembler) training(number int) *record {
	switch {
	case a.params.Mode == ModeFull:
		return a.fullBatch()
	case isSubgraph(a.params.Mode):
		return a.subgraph(number)
	}
	return a.batch(number)
}

func hopNodes(b *sample.Batch) []uint64 {
	counts := make([]uint64, len(b.HopNodes))
	for h, n := range b.HopNodes {
		counts[h] = uint64(n)
	}
	return counts
}

// layerEdges counts the edges of each layer by the hop of their dst.
func layerEdges(b *sample.Batch) []uint64 {
	numHops, numLayers := len(b.HopNodes), len(b.Layers)
	counts := make([]uint64, numLayers*numHops)
	for l := range b.Layers {
		start := int64(0)
		for h := range numLayers - l {
			end := b.Layers[l].Indptr[b.HopNodes[h]]
			counts[l*numHops+h] = uint64(end - start)
			start = end
		}
	}
	return counts
}
