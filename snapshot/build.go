// Package snapshot builds, opens and verifies the directory that freezes a graph's
// topology: CSR rows, components, norm factors, external ids, features, labels and
// splits, all under one id, the SHA-256 of its canonical manifest (SPEC 6).
//
// The way from a Tables to a snapshot is straight: rows, components, norms, ranks, hop index. A file is written
// through package format, in the background, as soon as all that it holds is there. Update takes the rows of a
// snapshot and a change in place of a Tables. Nothing here draws random numbers, and the bytes depend on the
// Tables and Params alone.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
	"golang.org/x/sync/errgroup"
)

// Options steer Build without shaping what it writes.
type Options struct {
	Threads  int                                  // 0: all cores
	Scratch  *Scratch                             // where Tables.Edges live, and what is as large; nil: memory, without a limit
	Progress func(step string, done, total int64) // may be nil; called by several goroutines at a time
	// Beside, if not nil, is told how long work took that goes on beside the steps; called by several goroutines at a time.
	Beside func(step string, bytes int64, took time.Duration)
}

// Build writes the snapshot of t into job and publishes it. It returns the snapshot's
// id and manifest. Files that an interrupted job finished are taken over (format.Job).
// t.Edges is used up: the rows hold all of it, and memory is short.
func Build(ctx context.Context, job *format.Job, t *Tables, p Params, opt Options) (format.Digest, *Manifest, error) {
	p, err := p.Settle(t.NumNodes())
	if err != nil {
		return format.Digest{}, nil, err
	}
	if opt.Scratch == nil {
		opt.Scratch = NewScratch(0, "")
		defer opt.Scratch.Close()
	}
	if p.MergeRelations {
		p.MergeRelations = t.RelNames != nil // else there was nothing to merge
		t.RelNames = nil
	}
	b := &builder{job: job, tables: t, opt: opt}
	if err := b.topology(ctx, &p); err != nil {
		return format.Digest{}, nil, err
	}
	return b.complete(ctx, p)
}

// complete computes what is made of the rows, and writes and publishes all of it. When it returns, nothing reads what the files are made of any
// more.
func (b *builder) complete(ctx context.Context, p Params) (format.Digest, *Manifest, error) {
	b.files = newFileWriter(ctx, b.job)
	b.files.beside = b.opt.Beside
	m, err := b.write(b.files.ctx, p)
	if err != nil {
		return format.Digest{}, nil, b.files.stop(err)
	}
	b.progress("publish", 0, 0)
	id, err := b.job.Publish(m, func(dir string) error {
		s := &Snapshot{Dir: dir, checked: true}
		defer s.Close()
		return s.open()
	})
	return id, m, err
}

// write computes what is made of the rows, while it writes all files. ctx is that of b.files.
func (b *builder) write(ctx context.Context, p Params) (m *Manifest, err error) {
	if err := b.derive(&p); err != nil {
		return nil, err
	}
	if err := b.job.Await(); err != nil {
		return nil, err
	}
	b.startTables()
	if err := b.rank(ctx, &p); err != nil { // before hop 2, which takes the most memory
		return nil, err
	}
	if sections := b.rankSections(); sections != nil {
		b.start(RankFile, format.FileRank, b.header(), sections)
	}
	seal := func() error {
		if m, err = b.manifest(p); err == nil {
			b.files.seal(m.SetKey)
		}
		return err
	}
	if p.Hops < 2 { // hop 1 adds nothing to what the manifest says, hop 2 does
		if err := seal(); err != nil {
			return nil, err
		}
	}
	if err := b.hops(ctx, &p); err != nil {
		return nil, err
	}
	if b.hop1 != nil {
		b.start(HopsFile, format.FileHops, b.header(), b.hopSections())
	}
	if p.Hops == 2 {
		if err := seal(); err != nil {
			return nil, err
		}
	}
	m.Files, err = b.files.finish(b.progress)
	return m, err
}

type builder struct {
	job    *format.Job
	tables *Tables
	opt    Options
	files  *fileWriter

	graph   *graph.Graph
	in, out *graph.CSR // its rows without relations

	edgesPerRel []format.Int // nil without relations
	keys        []uint64
	components  []int32 // component of each node
	sizes       []int64 // nodes of each component
	gcn, mean   graph.Norm

	held      *Held // nil without held-out pairs
	heldAudit *HeldoutAudit

	lines  *graph.Lines // these two nil unless Params.Updatable
	update *UpdateInfo

	hop1      *graph.Hop1 // nil without
	hop2      *graph.Hop2
	hop2Audit *Hop2Audit

	ranks     []float64 // of these, what Params.With lists
	rankAudit *RankAudit
	weights   []float32
	masses    []float64
	order     []int32
}

func (b *builder) progress(step string, done, total int64) {
	if b.opt.Progress != nil {
		b.opt.Progress(step, done, total)
	}
}

// topology computes node keys and rows, and holds out pairs.
func (b *builder) topology(ctx context.Context, p *Params) error {
	t := b.tables
	var err error
	if b.keys, err = nodeKeys(&t.IDs, b.opt.Threads); err != nil {
		return err
	}
	opt := graph.Options{Directed: p.Direction == Directed, NumRels: len(t.RelNames), Threads: b.opt.Threads, Progress: b.progress, Lines: p.Updatable}
	held, err := b.startHoldout(p.Holdout, &opt)
	if err != nil {
		return b.nameNodes(err)
	}
	rows, err := t.Edges.Rows(ctx, t.NumNodes(), opt)
	if err != nil {
		return b.nameNodes(err)
	}
	t.Edges = nil
	lines, err := rows.TakeLines(b.opt.Scratch.allocArray)
	if err != nil {
		return err
	}
	b.keepLines(lines)
	if err := b.endHoldout(held, opt.Directed); err != nil {
		return err
	}
	if b.graph, err = rows.Graph(ctx, b.opt.Scratch.allocArray); err != nil {
		return err
	}
	b.opt.Scratch.freeEdges()
	return nil
}

// derive computes components and norms, and counts, of the rows.
func (b *builder) derive(p *Params) (err error) {
	g := b.graph
	if b.in, b.out, err = simple(&g.In, g.Out, b.opt.Scratch.allocArray); err != nil {
		return err
	}
	b.edgesPerRel = edgesPerRel(g, len(b.tables.RelNames))
	if b.held != nil {
		b.heldAudit.compare(&g.In, g.Out, b.held, b.edgesPerRel)
	}
	b.progress("components", 0, 1)
	b.components, b.sizes = graph.Components(&g.In, p.Direction != Directed, b.opt.Threads)
	b.progress("norms", 0, 1)
	if b.gcn, err = graph.GCN(&g.In, b.opt.Threads, b.opt.Scratch.allocArray); err != nil {
		return b.nameNodes(err)
	}
	b.mean, err = graph.Mean(&g.In, b.opt.Threads, b.opt.Scratch.allocArray)
	return err
}

// nameNodes says errors about edges, which speak node numbers, in external ids.
func (b *builder) nameNodes(err error) error {
	name := func(src, dst int32, format string, args ...any) error {
		ids := &b.tables.IDs
		return &EdgeError{string(ids.At(src)), string(ids.At(dst)), fmt.Sprintf(format, args...)}
	}
	var norm *graph.NormError
	var edge *graph.EdgeError
	var twice *graph.HeldTwiceError
	switch {
	case errors.As(err, &norm):
		return name(norm.Src, norm.Dst, "its %s coefficient is over the float32 range", norm.Kind)
	case errors.As(err, &twice):
		return name(twice.Src, twice.Dst, "held out for both valid and test")
	case !errors.As(err, &edge) || edge.Err == graph.ErrNodeRange: // which has no id
		return err
	case edge.Err == graph.ErrLoop:
		return name(edge.Src, edge.Dst, "%v", edge.Err)
	}
	return name(edge.Src, edge.Dst, "%v (%g)", edge.Err, edge.Weight)
}

// EdgeError says what is wrong with an edge or a held-out pair, by external ids: a fault of the input.
type EdgeError struct{ Src, Dst, Msg string }

func (e *EdgeError) Error() string { return fmt.Sprintf("edge %q, %q: %s", e.Src, e.Dst, e.Msg) }

// header is the record head of a table over all nodes.
func (b *builder) header() format.RecordHeader {
	n := uint64(b.tables.NumNodes())
	return format.RecordHeader{Space: format.SpaceGlobal, SplitColumn: format.AnySplit, DstEnd: n, HopNodes: []uint64{n}}
}

// start begins to write a file of one record, whose sections must not change any more.
func (b *builder) start(name string, kind format.FileKind, h format.RecordHeader, sections []format.SectionSpec) {
	b.files.start(name, kind, []record{{h, sections}})
}

// startTables begins to write all that doesn't hang on indexes and ranks.
func (b *builder) startTables() {
	b.start(TopologyFile, format.FileTopology, b.header(), b.topologySections())
	b.start(IDsFile, format.FileIDs, b.header(), b.idSections())
	b.startTypes()
	if t := b.tables.Features; t != nil {
		rows := format.SectionSpec{Kind: format.TableRows, Layer: format.AnyLayer, DType: format.F32, Shape: []uint64{uint64(b.tables.NumNodes()), uint64(t.NumCols)}, Data: format.Bytes(t.Data), Write: t.Write}
		b.start(FeaturesFile, format.FileFeatures, b.header(), []format.SectionSpec{rows})
	}
	h := b.header()
	h.NumSeeds = h.DstEnd
	if b.tables.Labels != nil {
		b.start(LabelsFile, format.FileLabels, h, b.labelSections())
	}
	if s := b.tables.Splits; s != nil {
		mask := format.SectionSpec{Kind: format.SeedsMask, Layer: format.AnyLayer, DType: format.U8, Shape: []uint64{h.NumSeeds, uint64(len(s.Names))}, Data: s.Mask}
		b.start(SplitsFile, format.FileLabels, h, append([]format.SectionSpec{mask}, nameSections(s.Names)...))
	}
	if b.held != nil {
		b.files.start(HeldoutFile, format.FileHeldout, b.heldRecords())
	}
	if sections := b.lineSections(); sections != nil {
		b.start(LinesFile, format.FileLines, b.header(), sections)
	}
}

func (b *builder) idSections() []format.SectionSpec {
	ids := &b.tables.IDs
	return []format.SectionSpec{
		format.Int64Section(format.IDsOffsets, format.AnyLayer, ids.Offsets),
		format.Uint8Section(format.IDsBytes, format.AnyLayer, ids.Bytes),
		format.Uint64Section(format.IDsKey, format.AnyLayer, b.keys),
	}
}

// nodeKeys returns the key of each node: the first 8 bytes, big-endian, of the SHA-256
// of its external id (SPEC 8). Draws depend on keys, not on numbers, so that a new node
// changes only the draws that it takes part in. threads 0 is all cores; an error is a
// memory fault in mapped ids.
func nodeKeys(ids *IDs, threads int) ([]uint64, error) {
	keys := make([]uint64, ids.Len())
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	const chunk = 1 << 14
	var group errgroup.Group
	group.SetLimit(threads)
	for lo := 0; lo < len(keys); lo += chunk {
		group.Go(func() error {
			return format.Guard("external ids", func() error {
				for i := lo; i < min(lo+chunk, len(keys)); i++ {
					keys[i] = keyOf(ids.At(int32(i)))
				}
				return nil
			})
		})
	}
	return keys, group.Wait()
}

func (b *builder) topologySections() []format.SectionSpec {
	in := &b.graph.In
	sections := []format.SectionSpec{
		format.Int64Section(format.BlockIndptr, format.AnyLayer, in.Indptr),
		format.Int32Section(format.BlockIndices, format.AnyLayer, in.Indices),
	}
	if in.Weight != nil {
		sections = append(sections, format.Float32Section(format.BlockWeight, format.AnyLayer, format.CoefNone, in.Weight))
	}
	if in.Rel != nil {
		sections = append(sections, format.Int32Section(format.BlockRel, format.AnyLayer, in.Rel))
	}
	if out := b.graph.Out; out != nil {
		sections = append(sections,
			format.Int64Section(format.TransposeIndptr, format.AnyLayer, out.Indptr),
			format.Int32Section(format.TransposeIndices, format.AnyLayer, out.Indices))
		if out.Rel != nil {
			sections = append(sections, format.Int32Section(format.TransposeRel, format.AnyLayer, out.Rel))
		}
	}
	sections = append(sections,
		format.Int32Section(format.GraphComponent, format.AnyLayer, b.components),
		format.Int64Section(format.GraphComponentSize, format.AnyLayer, b.sizes))
	sections = append(sections, normSections(format.CoefGCN, &b.gcn)...)
	return append(sections, normSections(format.CoefMean, &b.mean)...)
}

// normSections stores what a Norm doesn't leave out.
func normSections(coef format.Coef, n *graph.Norm) []format.SectionSpec {
	var sections []format.SectionSpec
	add := func(kind format.Kind, v []float32) {
		if v != nil {
			sections = append(sections, format.Float32Section(kind, format.AnyLayer, coef, v))
		}
	}
	add(format.CoefSrc, n.Src)
	add(format.CoefDst, n.Dst)
	add(format.CoefSelf, n.Self)
	add(format.CoefEdge, n.Edge)
	return sections
}

func (b *builder) labelSections() []format.SectionSpec {
	l, n := b.tables.Labels, uint64(b.tables.NumNodes())
	label := format.SectionSpec{Kind: format.SeedsLabel, Layer: format.AnyLayer}
	switch {
	case l.Class != nil:
		label.DType, label.Shape, label.Data = format.I32, []uint64{n}, format.Bytes(l.Class)
	case l.Bits != nil:
		label.DType, label.Shape, label.Data = format.U8, []uint64{n, uint64(len(l.ClassNames))}, l.markedBits()
	default:
		label.DType, label.Shape, label.Data = format.F32, []uint64{n, uint64(l.NumTargets)}, format.Bytes(l.markedValues())
	}
	return append([]format.SectionSpec{label}, nameSections(l.ClassNames)...)
}

func nameSections(list []string) []format.SectionSpec {
	names := format.NamesOf(list)
	return []format.SectionSpec{
		format.Int64Section(format.NamesOffsets, format.AnyLayer, names.Offsets),
		format.Uint8Section(format.NamesBytes, format.AnyLayer, names.Bytes),
	}
}
