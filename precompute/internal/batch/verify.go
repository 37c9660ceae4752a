package batch

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/rows"
	"github.com/prelift/prelift/precompute/internal/sample"
)

// Verify reads every byte of the batch set in dir and recomputes what it can without the
// snapshot: digests, CRCs and bounds (format), and what ties the files together: keys, shard and batch
// numbers, totals and maxima, each seed once a variant and labelled train, hop order, rows
// ascending and within the fanout, transposes, coefficients, labels, masks, feature rows, and
// evaluation blocks that tile the nodes. Errors are of format's classes.
func Verify(dir string) error {
	s, err := openSet(dir)
	if err != nil {
		return err
	}
	defer s.close()
	if err := format.VerifyFiles(dir, s.m.Files); err != nil {
		return err
	}
	for _, f := range s.opened {
		if err := f.Verify(); err != nil {
			return err
		}
	}
	return format.Guard(filepath.Base(dir), s.verify)
}

// set is an open batch set: every file mapped, heads checked, tables at hand.
type set struct {
	dir    string
	id     format.Digest
	m      *format.BatchSet
	place  string // of the manifest, for messages
	opened []*format.File

	batches, evals []*format.File
	coefs          *format.Record // nil without evaluation blocks
	labels         *format.Record
	mask           []uint8        // [NumNodes, splits]; nil without splits
	features       *format.Record // nil without features, or where they aren't linked
	hot            *format.Record // nil without hot rows
	groups         []*format.Record

	seen     []bool  // by the batch at hand; all false between batches
	variants []int32 // by node: variants in which it was a seed, or with strata batches

	clustered []int32 // by node: one more than the last variant that had it in a batch; in mode cluster only
}

// faultf wraps a class of format's with the place and the numbers.
func faultf(class error, place, detail string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", place, class, fmt.Sprintf(detail, args...))
}

func (s *set) close() {
	for _, f := range s.opened {
		f.Close()
	}
}

// openSet opens the batch set in dir: its manifest, the presence, size, kind and keys of
// every file, and the heads of the tables.
func openSet(dir string) (*set, error) {
	s := &set{dir: dir, place: filepath.Join(filepath.Base(dir), format.ManifestName)}
	if err := s.open(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *set) open() (err error) {
	if s.id, s.m, err = format.ReadBatchSet(s.dir); err != nil {
		return err
	}
	m := s.m
	if _, err := format.CheckFiles(s.dir, m.Files); err != nil {
		return err
	}
	if err := s.checkManifest(); err != nil {
		return err
	}
	numGroups := numGroups(&m.Params, int(m.NumBatches))
	numShards := shardCount(m.NumBatches, m.Params.BatchesPerFile)
	numEvals := shardCount(m.NumEvalBlocks, m.Params.BatchesPerFile)
	if numShards+numEvals > format.Int(len(m.Files)) {
		return faultf(format.ErrMissing, s.place, "%d batches and %d evaluation blocks need %d files, %d are listed", m.NumBatches, m.NumEvalBlocks, numShards+numEvals, len(m.Files))
	}
	if s.batches, err = s.openShards(int(numShards), format.FileBatches, format.BatchFile); err != nil {
		return err
	}
	if s.evals, err = s.openShards(int(numEvals), format.FileEval, format.EvalFile); err != nil {
		return err
	}
	if err := s.openTables(); err != nil {
		return err
	}
	if err := s.openShared(numGroups); err != nil {
		return err
	}
	if len(s.opened) != len(m.Files) {
		return faultf(format.ErrLayout, s.place, "%d files are listed, a set like this has %d", len(m.Files), len(s.opened))
	}
	return nil
}

func shardCount(numRecords format.Int, perFile int) format.Int {
	return (numRecords + format.Int(perFile) - 1) / format.Int(perFile)
}

// checkManifest checks what the rest relies on.
func (s *set) checkManifest() error {
	m, p := s.m, &s.m.Params
	if p.Task != TaskNode || !slices.Contains(Modes, p.Mode) {
		return faultf(format.ErrVersion, s.place, "task %q, mode %q: this version knows node, and %s", p.Task, p.Mode, strings.Join(Modes, ", "))
	}
	if err := checkKernelParams(p); err != nil {
		return faultf(format.ErrLayout, s.place, "%v", err)
	}
	if _, err := coefKinds(p); err != nil {
		return faultf(format.ErrLayout, s.place, "%v", err)
	}
	if p.IndexCodec != CodecRaw && (p.IndexCodec != CodecBits || p.Mode == ModeFull) {
		return faultf(format.ErrLayout, s.place, "index codec %q with mode %s", p.IndexCodec, p.Mode)
	}
	for _, k := range p.Fanout {
		if k < -1 {
			return faultf(format.ErrLayout, s.place, "fanout %d", k)
		}
	}
	kind, ok := rows.Parse(p.DType)
	if _, stored := dtypes[kind]; !ok || !stored || p.Store != StoreIDs && p.Store != StorePacked {
		return faultf(format.ErrVersion, s.place, "store %q, dtype %q: this version knows ids and packed, and f32, f16, bf16 and int8", p.Store, p.DType)
	}
	if !(p.HotRows >= 0 && p.HotRows <= 1) || p.Group < 0 || p.Group == 1 || p.Group > p.BatchesPerFile || sharesRows(p) && p.Store != StorePacked {
		return faultf(format.ErrLayout, s.place, "store %s with hot rows %g, groups of %d batches", p.Store, p.HotRows, p.Group)
	}
	if converted := kind != rows.F32 && m.NumFeatures > 0; converted != (m.RowError != nil) || converted && p.LinkFeatures == None {
		return faultf(format.ErrLayout, s.place, "dtype %s, link_features %s, row_error %v", p.DType, p.LinkFeatures, m.RowError)
	}
	switch {
	case p.Variants < 1 || p.BatchesPerFile < 1 || p.BatchesPerFile > format.MaxRecords || m.NumNodes < 1 || m.NumNodes > math.MaxInt32 ||
		m.NumFeatures < 0 || m.NumFeatures > 1<<24 || m.NumEvalBlocks < 0 || m.NumEvalBlocks > m.NumNodes || m.NumSeeds < 1 || covers(p) && m.NumSeeds > m.NumNodes:
		return faultf(format.ErrLayout, s.place, "%d variants, %d batches a file, %d nodes, %d features, %d evaluation blocks, %d seeds",
			p.Variants, p.BatchesPerFile, m.NumNodes, m.NumFeatures, m.NumEvalBlocks, m.NumSeeds)
	case m.NumBatches < 1 || m.NumBatches > math.MaxInt32 || m.BatchesPerVariant < 1 || m.NumBatches%m.BatchesPerVariant != 0 || m.NumBatches/m.BatchesPerVariant != format.Int(p.Variants):
		return faultf(format.ErrLayout, s.place, "%d batches, %d a variant, %d variants", m.NumBatches, m.BatchesPerVariant, p.Variants)
	case m.NumLayers != len(p.Fanout) || isLayered(p.Mode) != (m.NumLayers > 0):
		return faultf(format.ErrLayout, s.place, "%d layers, mode %s, fanout %v", m.NumLayers, p.Mode, p.Fanout)
	case len(m.Maxima.LayerEdges) != max(m.NumLayers, 1):
		return faultf(format.ErrLayout, s.place, "maxima of %d layers, want %d", len(m.Maxima.LayerEdges), max(m.NumLayers, 1))
	case !seedsFit(m):
		return faultf(format.ErrLayout, s.place, "%d seeds in %d batches of %d", m.NumSeeds, m.BatchesPerVariant, p.BatchSize)
	case p.Split < -1 || p.Split >= len(m.Splits):
		return faultf(format.ErrLayout, s.place, "split column %d of %d", p.Split, len(m.Splits))
	case m.FeatureTableBytes != m.NumNodes*m.NumFeatures*4 || (m.Features != nil) != (m.NumFeatures > 0):
		return faultf(format.ErrLayout, s.place, "feature table of %d bytes for %d nodes with %d features", m.FeatureTableBytes, m.NumNodes, m.NumFeatures)
	case (m.NumEvalBlocks > 0) != (p.Mode != ModeFull && p.Eval == EvalLayerwise):
		return faultf(format.ErrLayout, s.place, "%d evaluation blocks with mode %s, evaluation %s", m.NumEvalBlocks, p.Mode, p.Eval)
	}
	return nil
}

// seedsFit reports whether a variant's seeds fill its batches as the parameters say.
func seedsFit(m *format.BatchSet) bool {
	switch p := &m.Params; {
	case p.Mode == ModeFull:
		return m.NumBatches == 1
	case p.Mode == ModeCluster:
		return m.BatchesPerVariant <= m.NumSeeds
	case p.BatchSize < 1:
		return false
	case p.Stratify != nil:
		return m.NumSeeds%m.BatchesPerVariant == 0 && m.NumSeeds/m.BatchesPerVariant <= format.Int(p.BatchSize)
	default:
		return shardCount(m.NumSeeds, p.BatchSize) == m.BatchesPerVariant
	}
}

// openFile opens a listed file and checks its header.
func (s *set) openFile(name string, want format.Member) (*format.File, error) {
	if _, ok := s.m.FileOf(name); !ok {
		return nil, faultf(format.ErrMissing, s.place, "%s isn't listed", name)
	}
	f, err := format.OpenMember(filepath.Join(s.dir, name), want)
	if err != nil {
		return nil, err
	}
	s.opened = append(s.opened, f)
	return f, nil
}

func (s *set) openShards(n int, kind format.FileKind, name func(int) string) ([]*format.File, error) {
	files := make([]*format.File, n)
	for i := range files {
		f, err := s.openFile(name(i), format.Member{Kind: kind, SetKey: s.m.SetKey, SnapshotID: s.m.SnapshotID, Shard: uint32(i)})
		if err != nil {
			return nil, err
		}
		files[i] = f
	}
	return files, nil
}

// openTable opens a file of one record over all nodes and verifies it, so that views can be taken.
func (s *set) openTable(name string, kind format.FileKind, key, snapshotID format.Digest) (*format.Record, error) {
	f, err := s.openFile(name, format.Member{Kind: kind, SetKey: key, SnapshotID: snapshotID})
	if err != nil {
		return nil, err
	}
	r, err := f.Table(int(s.m.NumNodes))
	if err != nil {
		return nil, err
	}
	return r, r.Verify()
}

func (s *set) openTables() error {
	m, none := s.m, format.Digest{}
	r, err := s.openTable(format.SetIDsFile, format.FileIDs, m.SnapshotKey, none)
	if err != nil {
		return err
	}
	if r.IDs().Len() != int(m.NumNodes) {
		return faultf(format.ErrMissing, r.Place(), "%d ids for %d nodes", r.IDs().Len(), m.NumNodes)
	}
	if s.labels, err = s.openTable(format.SetLabelsFile, format.FileLabels, m.SnapshotKey, none); err != nil {
		return err
	}
	if label := s.labels.Find(format.SeedsLabel, format.AnyLayer, format.CoefNone); label == nil || s.labels.NumSeeds != uint64(m.NumNodes) ||
		label.DType == format.F32 && m.NumClasses != 0 || label.DType != format.F32 && s.labels.Names().Len() != int(m.NumClasses) {
		return faultf(format.ErrLayout, s.labels.Place(), "labels of %d nodes with %d names, the set has %d nodes and %d classes", s.labels.NumSeeds, s.labels.Names().Len(), m.NumNodes, m.NumClasses)
	}
	if len(m.Splits) > 0 {
		r, err := s.openTable(format.SetSplitsFile, format.FileLabels, m.SnapshotKey, none)
		if err != nil {
			return err
		}
		if s.mask = r.Uint8s(format.SeedsMask, format.AnyLayer); len(s.mask) != int(m.NumNodes)*len(m.Splits) || !slices.Equal(r.Names().Strings(), m.Splits) {
			return faultf(format.ErrLayout, r.Place(), "%d masks, names %q; the set has %d nodes and splits %q", len(s.mask), r.Names().Strings(), m.NumNodes, m.Splits)
		}
	}
	if m.NumFeatures > 0 && m.Params.LinkFeatures != None {
		key, id := m.SnapshotKey, none
		if m.RowError != nil {
			key, id = m.SetKey, m.SnapshotID // the set's own table
		}
		if s.features, err = s.openTable(format.SetFeaturesFile, format.FileFeatures, key, id); err != nil {
			return err
		}
		if err := s.checkRowType(s.features); err != nil {
			return err
		}
		if info, _ := m.FileOf(format.SetFeaturesFile); m.RowError == nil && info != *m.Features {
			return faultf(format.ErrLayout, s.place, "features are %s, the file listed is %s", m.Features.SHA256, info.SHA256)
		}
	}
	if m.NumEvalBlocks > 0 {
		s.coefs, err = s.openTable(format.SetCoefsFile, format.FileCoefs, m.SetKey, m.SnapshotID)
	}
	return err
}

// verify checks the contents against each other.
func (s *set) verify() error {
	s.seen = make([]bool, s.m.NumNodes)
	s.variants = make([]int32, s.m.NumNodes)
	if s.m.Params.Mode == ModeCluster {
		s.clustered = make([]int32, s.m.NumNodes)
	}
	if s.coefs != nil {
		if err := s.checkCoefs(s.coefs); err != nil {
			return err
		}
	}
	if err := s.checkRowTables(); err != nil {
		return err
	}
	if err := s.each(s.batches, int(s.m.NumBatches), s.checkBatch); err != nil {
		return err
	}
	if err := s.checkSeeds(); err != nil {
		return err
	}
	next := uint64(0)
	err := s.each(s.evals, int(s.m.NumEvalBlocks), func(r *format.Record, number int) error {
		if r.DstStart != next {
			return faultf(format.ErrLayout, r.Place(), "evaluation block %d starts at row %d, want %d", number, r.DstStart, next)
		}
		next = r.DstEnd
		return s.checkGlobal(r, number, false)
	})
	if err != nil {
		return err
	}
	if s.coefs != nil && next != uint64(s.m.NumNodes) {
		return faultf(format.ErrLayout, s.place, "evaluation blocks end at row %d of %d", next, s.m.NumNodes)
	}
	return s.checkTotals()
}

// each calls check for the records of the files, which must be count in all, numbered through.
func (s *set) each(files []*format.File, count int, check func(r *format.Record, number int) error) error {
	number := 0
	for _, f := range files {
		if want := min(count-number, s.m.Params.BatchesPerFile); len(f.Records) != want {
			return faultf(format.ErrLayout, f.Name(), "%d records, want %d", len(f.Records), want)
		}
		for i := range f.Records {
			r, err := f.Record(i)
			if err != nil {
				return err
			}
			if r.Number != uint32(number) || r.Task != format.TaskNode {
				return faultf(format.ErrLayout, r.Place(), "number %d, task %d; want %d, %d", r.Number, r.Task, number, format.TaskNode)
			}
			if err := check(r, number); err != nil {
				return err
			}
			number++
		}
	}
	return nil
}

// checkBatch checks a training batch.
func (s *set) checkBatch(r *format.Record, number int) error {
	m, p := s.m, &s.m.Params
	if want := uint32(number / int(m.BatchesPerVariant)); r.Variant != want {
		return faultf(format.ErrLayout, r.Place(), "variant %d, want %d", r.Variant, want)
	}
	if p.Mode == ModeFull {
		return s.checkGlobal(r, number, true)
	}
	if r.Split != format.PartTrain || r.Space != format.SpaceLocal || r.SplitColumn != splitColumn(p) || r.NumLayers != m.NumLayers {
		return faultf(format.ErrLayout, r.Place(), "split %d, index space %d, split column %d, %d layers", r.Split, r.Space, int32(r.SplitColumn), r.NumLayers)
	}
	if want := s.wantSeeds(number); want >= 0 && r.NumSeeds != uint64(want) || r.NumSeeds == 0 {
		return faultf(format.ErrLayout, r.Place(), "%d seeds, want %d", r.NumSeeds, want)
	}
	if err := s.checkSections(r, s.batchSections(r)); err != nil {
		return err
	}
	if err := s.checkNodes(r); err != nil {
		return err
	}
	nodes := r.Int32s(format.NodesNumber, format.AnyLayer)
	for _, l := range blockLayers(r) {
		if err := checkRows(r, l, nodes, 0); err != nil {
			return err
		}
		if err := checkTaken(r, l, p); err != nil {
			return err
		}
		if err := r.CheckTranspose(l); err != nil {
			return err
		}
	}
	if err := s.checkCoefs(r); err != nil {
		return err
	}
	if err := s.checkLabels(r, nodes[:r.NumSeeds]); err != nil {
		return err
	}
	return s.checkPackedRows(r, nodes)
}

// wantSeeds is how many seeds a batch must have; -1 in mode cluster, where that follows from the snapshot.
func (s *set) wantSeeds(number int) int {
	m, p := s.m, &s.m.Params
	switch {
	case p.Mode == ModeCluster:
		return -1
	case p.Stratify != nil:
		return int(m.NumSeeds / m.BatchesPerVariant)
	}
	place := number % int(m.BatchesPerVariant)
	return min(p.BatchSize, int(m.NumSeeds)-place*p.BatchSize)
}

// blockLayers lists the layers of the blocks of a training batch: format.AnyLayer alone where one serves any depth.
func blockLayers(r *format.Record) []uint16 {
	if r.NumLayers == 0 {
		return []uint16{format.AnyLayer}
	}
	layers := make([]uint16, r.NumLayers)
	for l := range layers {
		layers[l] = uint16(l)
	}
	return layers
}

// checkGlobal checks an evaluation block or the batch of mode full.
func (s *set) checkGlobal(r *format.Record, number int, full bool) error {
	if r.Split != format.PartNone || r.Space != format.SpaceGlobal || r.SplitColumn != format.AnySplit || r.Variant != 0 ||
		r.NumNodes() != uint64(s.m.NumNodes) || r.NumSeeds != r.DstEnd-r.DstStart || full && r.NumSeeds != r.NumNodes() || r.NumSeeds == 0 {
		return faultf(format.ErrLayout, r.Place(), "block %d: split %d, index space %d, variant %d, rows %d to %d of %d, %d seeds", number, r.Split, r.Space, r.Variant, r.DstStart, r.DstEnd, r.NumNodes(), r.NumSeeds)
	}
	if err := s.checkSections(r, s.globalSections(full)); err != nil {
		return err
	}
	if err := checkRows(r, format.AnyLayer, nil, int32(r.DstStart)); err != nil {
		return err
	}
	if err := r.CheckTranspose(format.AnyLayer); err != nil {
		return err
	}
	if err := s.checkCoefs(r); err != nil {
		return err
	}
	return s.checkLabels(r, nil)
}

// sectionName is what tells the sections of a record apart.
type sectionName struct {
	kind  format.Kind
	layer uint16
	coef  format.Coef
}

// batchSections lists the sections a training batch must have.
func (s *set) batchSections(r *format.Record) []sectionName {
	p := &s.m.Params
	want := []sectionName{{format.NodesNumber, format.AnyLayer, 0}, {format.SeedsLabel, format.AnyLayer, 0}}
	for _, l := range blockLayers(r) {
		want = append(want, s.blockSections(l, hasTranspose(p, int(l)))...)
		if hasImportance(p, int(l)) {
			want = append(want, sectionName{format.CoefImportance, l, 0})
		}
	}
	if p.Store == StorePacked {
		want = append(want, s.rowSections()...)
	}
	if sharesRows(p) {
		want = append(want, sectionName{format.NodesRow, format.AnyLayer, 0}, sectionName{format.NodesTable, format.AnyLayer, 0})
	}
	return append(want, s.factorSections()...)
}

// globalSections lists those of an evaluation block, or of the batch of mode full.
func (s *set) globalSections(full bool) []sectionName {
	want := append(s.blockSections(format.AnyLayer, full), sectionName{format.SeedsLabel, format.AnyLayer, 0})
	if len(s.m.Splits) > 0 {
		want = append(want, sectionName{format.SeedsMask, format.AnyLayer, 0})
	}
	if full {
		want = append(want, s.factorSections()...)
	}
	return want
}

func (s *set) blockSections(layer uint16, transposed bool) []sectionName {
	want := []sectionName{{format.BlockIndptr, layer, 0}, {format.BlockIndices, layer, 0}}
	if transposed {
		want = append(want, sectionName{format.TransposeIndptr, layer, 0}, sectionName{format.TransposeIndices, layer, 0}, sectionName{format.TransposeEdge, layer, 0})
	}
	if s.m.Weighted {
		for _, coef := range s.kinds() {
			want = append(want, sectionName{format.CoefEdge, layer, coef})
		}
	}
	return want
}

// factorSections lists the per-node coefficients that can't be absent: coef.self can. A
// weighted graph keeps its coefficients an edge.
func (s *set) factorSections() []sectionName {
	want := []sectionName{}
	if s.m.Weighted {
		return want
	}
	for _, coef := range s.kinds() {
		switch coef {
		case format.CoefGCN:
			want = append(want, sectionName{format.CoefSrc, format.AnyLayer, coef}, sectionName{format.CoefDst, format.AnyLayer, coef})
		case format.CoefMean:
			want = append(want, sectionName{format.CoefDst, format.AnyLayer, coef})
		}
	}
	return want
}

func (s *set) kinds() []format.Coef {
	kinds, err := coefKinds(&s.m.Params)
	if err != nil {
		panic("batch: kinds were checked: " + err.Error())
	}
	return kinds
}

// checkSections compares the sections that are there with those wanted; beyond these
// only the self terms of the set's kinds may be there.
func (s *set) checkSections(r *format.Record, want []sectionName) error {
	have := map[sectionName]bool{}
	for i := range r.Sections {
		c := &r.Sections[i]
		have[sectionName{c.Kind, c.Layer, c.Coef}] = true
		if c.Codec != format.CodecRaw && c.Codec.String() != s.m.Params.IndexCodec {
			return faultf(format.ErrLayout, r.Place(), "%s is of codec %s in a set of index codec %s", c.Kind, c.Codec, s.m.Params.IndexCodec)
		}
	}
	for _, name := range want {
		if !have[name] {
			return faultf(format.ErrMissing, r.Place(), "no %s of layer %d, coefficients %s", name.kind, int16(name.layer), name.coef)
		}
		delete(have, name)
	}
	for name := range have {
		if name.kind != format.CoefSelf || name.layer != format.AnyLayer || !slices.Contains(s.kinds(), name.coef) {
			return faultf(format.ErrLayout, r.Place(), "%s of layer %d, coefficients %s, doesn't belong here", name.kind, int16(name.layer), name.coef)
		}
	}
	return nil
}

// checkNodes checks the node list: distinct, in range, the seeds and each hop ascending; and the seeds:
// labelled train nodes that this variant hasn't had.
func (s *set) checkNodes(r *format.Record) error {
	if err := r.CheckNumbers(format.NodesNumber, int(s.m.NumNodes)); err != nil {
		return err
	}
	nodes := r.Int32s(format.NodesNumber, format.AnyLayer)
	var fault error
	numSeen := 0
	for _, v := range nodes {
		if s.seen[v] {
			fault = faultf(format.ErrLayout, r.Place(), "node %d is in the list twice", v)
			break
		}
		s.seen[v] = true
		numSeen++
	}
	for _, v := range nodes[:numSeen] {
		s.seen[v] = false
	}
	if fault != nil {
		return fault
	}
	ends, start := r.HopNodes, uint64(0)
	if r.NumLayers == 0 {
		ends = []uint64{r.NumSeeds, r.HopNodes[0]}
	}
	for h, end := range ends {
		if hop := nodes[start:end]; !slices.IsSorted(hop) {
			return faultf(format.ErrLayout, r.Place(), "nodes of hop %d are not ascending", h)
		}
		start = end
	}
	for _, v := range nodes[:r.NumSeeds] {
		if !s.isTrain(v) {
			return faultf(format.ErrLayout, r.Place(), "seed %d is not a labelled train node of split column %d", v, s.m.Params.Split)
		}
		if covers(&s.m.Params) && s.variants[v] != int32(r.Variant) {
			return faultf(format.ErrLayout, r.Place(), "seed %d of variant %d was a seed of %d variants before", v, r.Variant, s.variants[v])
		}
		s.variants[v]++
	}
	if s.m.Params.Mode == ModeCluster {
		return s.checkApart(r, nodes)
	}
	return nil
}

// checkApart checks that a batch of clusters has no node of another one of its variant, and that its seeds are all the nodes that can be.
func (s *set) checkApart(r *format.Record, nodes []int32) error {
	for i, v := range nodes {
		if s.clustered[v] == int32(r.Variant)+1 {
			return faultf(format.ErrLayout, r.Place(), "node %d is in two batches of variant %d", v, r.Variant)
		}
		s.clustered[v] = int32(r.Variant) + 1
		if i >= int(r.NumSeeds) && s.isTrain(v) {
			return faultf(format.ErrLayout, r.Place(), "node %d, a labelled train node, is not among the seeds of its cluster", v)
		}
	}
	return nil
}

func (s *set) isTrain(v int32) bool {
	if column := s.m.Params.Split; column != SplitUnset && format.Part(s.mask[int(v)*len(s.m.Splits)+column]) != format.PartTrain {
		return false
	}
	return isLabelled(s.labels.Int32s(format.SeedsLabel, format.AnyLayer), s.labels.Uint8s(format.SeedsLabel, format.AnyLayer),
		s.labels.Float32s(format.SeedsLabel, format.AnyLayer, format.CoefNone), int(s.m.NumNodes), v)
}

// checkSeeds checks that every labelled train node was a seed of every variant.
func (s *set) checkSeeds() error {
	if s.m.Params.Mode == ModeFull || !covers(&s.m.Params) {
		return nil
	}
	numSeeds := format.Int(0)
	for v, n := range s.variants {
		if !s.isTrain(int32(v)) {
			continue
		}
		numSeeds++
		if int(n) != s.m.Params.Variants {
			return faultf(format.ErrLayout, s.place, "node %d is a seed of %d variants, want %d", v, n, s.m.Params.Variants)
		}
	}
	if numSeeds != s.m.NumSeeds {
		return faultf(format.ErrLayout, s.place, "%d seeds, the split has %d", s.m.NumSeeds, numSeeds)
	}
	return nil
}

// checkRows checks that the rows of a block are ascending by node number and without
// their own node. nodes maps local places to numbers; nil for global indices, where row d is of node first+d.
func checkRows(r *format.Record, layer uint16, nodes []int32, first int32) error {
	indptr, indices := r.Int64s(format.BlockIndptr, layer), r.Int32s(format.BlockIndices, layer)
	number := func(s int32) int32 {
		if nodes == nil {
			return s
		}
		return nodes[s]
	}
	for d := range len(indptr) - 1 {
		own := first + int32(d)
		if nodes != nil {
			own = nodes[d]
		}
		last := int32(-1)
		for _, s := range indices[indptr[d]:indptr[d+1]] {
			u := number(s)
			if u <= last || u == own {
				return faultf(format.ErrLayout, r.Place(), "row %d of layer %d (node %d) has node %d after %d", d, int16(layer), own, u, last)
			}
			last = u
		}
	}
	return nil
}

// checkTaken checks the lengths of rows against the fanout, and their importance, as far as these tell: it is finite and at least 1. With uniform
// draws no row is longer than the fanout, and importance is 1 where one is shorter. Labor takes what it will of neighbours that are fanout times
// importance, and all where importance is 1. By weight no row is longer. In a subgraph an empty row has importance 1.
func checkTaken(r *format.Record, layer uint16, p *format.BatchParams) error {
	fanout := sample.All
	if layer != format.AnyLayer {
		fanout = fanoutOf(p, int(layer))
	}
	indptr, importance := r.Int64s(format.BlockIndptr, layer), r.Float32s(format.CoefImportance, layer, format.CoefNone)
	for d := range len(indptr) - 1 {
		n, k, x := indptr[d+1]-indptr[d], int64(fanout), float32(1)
		if importance != nil {
			x = importance[d]
		}
		ok := x >= 1 && !math.IsInf(float64(x), 0)
		switch {
		case layer == format.AnyLayer:
			ok = ok && (n > 0 || x == 1)
		case fanout == sample.All:
		case p.Mode == ModeLabor && x > 1:
			ok = ok && float64(n) <= math.Round(float64(x)*float64(k))
		default:
			ok = ok && n <= k && (x == 1 || n == k && n > 0)
		}
		if !ok {
			return faultf(format.ErrLayout, r.Place(), "row %d of layer %d takes %d of fanout %d with importance %g", d, int16(layer), n, fanout, x)
		}
	}
	return nil
}

// checkCoefs checks that coefficients are finite, and that per-node ones are those of coefs.plf.
func (s *set) checkCoefs(r *format.Record) error {
	nodes := r.Int32s(format.NodesNumber, format.AnyLayer)
	for i := range r.Sections {
		c := &r.Sections[i]
		switch c.Kind {
		case format.CoefSrc, format.CoefDst, format.CoefSelf, format.CoefEdge:
		default:
			continue
		}
		values := r.Float32s(c.Kind, c.Layer, c.Coef)
		for k, x := range values {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return faultf(format.ErrLayout, r.Place(), "%s[%d] of %s is %g", c.Kind, k, c.Coef, x)
			}
		}
		if s.coefs == nil || nodes == nil || c.Kind == format.CoefEdge { // else values are of the first of nodes, or of all
			continue
		}
		table := s.coefs.Float32s(c.Kind, format.AnyLayer, c.Coef)
		if table == nil {
			return faultf(format.ErrLayout, r.Place(), "%s of %s isn't in %s", c.Kind, c.Coef, format.SetCoefsFile)
		}
		for k, x := range values {
			if x != table[nodes[k]] {
				return faultf(format.ErrLayout, r.Place(), "%s[%d] of %s is %g, node %d has %g", c.Kind, k, c.Coef, x, nodes[k], table[nodes[k]])
			}
		}
	}
	if s.coefs == nil || nodes == nil {
		return nil
	}
	for _, coef := range s.kinds() {
		if s.coefs.Float32s(format.CoefSelf, format.AnyLayer, coef) != nil && r.Float32s(format.CoefSelf, format.AnyLayer, coef) == nil {
			return faultf(format.ErrMissing, r.Place(), "no %s of %s", format.CoefSelf, coef)
		}
	}
	return nil
}

// checkLabels compares seeds.label and seeds.mask with the tables of all nodes. seeds are
// the numbers of the seeds; nil where they are the record's rows.
func (s *set) checkLabels(r *format.Record, seeds []int32) error {
	label := r.Find(format.SeedsLabel, format.AnyLayer, format.CoefNone)
	table := s.labels.Find(format.SeedsLabel, format.AnyLayer, format.CoefNone)
	if label.DType != table.DType || !slices.Equal(label.Shape[1:], table.Shape[1:]) {
		return faultf(format.ErrLayout, r.Place(), "labels of type %s and shape %v, the set's are %s and %v", label.DType, label.Shape, table.DType, table.Shape)
	}
	node := func(i int) int {
		if seeds != nil {
			return int(seeds[i])
		}
		return int(r.DstStart) + i
	}
	if i := differingRow(label.Bytes(), table.Bytes(), int(r.NumSeeds), int(s.m.NumNodes), node); i >= 0 {
		return faultf(format.ErrLayout, r.Place(), "label of seed %d is not that of node %d", i, node(i))
	}
	mask := r.Find(format.SeedsMask, format.AnyLayer, format.CoefNone)
	if mask == nil {
		return nil
	}
	if mask.Shape[1] != uint64(len(s.m.Splits)) {
		return faultf(format.ErrLayout, r.Place(), "masks of %d splits, the set has %d", mask.Shape[1], len(s.m.Splits))
	}
	if i := differingRow(mask.Bytes(), s.mask, int(r.NumSeeds), int(s.m.NumNodes), node); i >= 0 {
		return faultf(format.ErrLayout, r.Place(), "mask of seed %d is not that of node %d", i, node(i))
	}
	return nil
}

// differingRow returns the first i of n rows that isn't row node(i) of a table of numNodes
// rows as wide; -1 where all are.
func differingRow(rows, table []byte, n, numNodes int, node func(i int) int) int {
	width := len(table) / numNodes
	for i := range n {
		if string(rows[i*width:(i+1)*width]) != string(table[node(i)*width:(node(i)+1)*width]) {
			return i
		}
	}
	return -1
}

// checkTotals recomputes the manifest's totals and maxima.
func (s *set) checkTotals() error {
	t := newTotals(s.m.NumLayers)
	for _, f := range s.opened {
		switch f.Header.Kind {
		case format.FileBatches, format.FileEval, format.FileCoefs, format.FileRows:
			if err := t.add(f); err != nil {
				return err
			}
		}
	}
	if n := t.numSeeds; s.m.Params.Mode != ModeFull && n != int64(s.m.NumSeeds)*int64(s.m.Params.Variants) {
		return faultf(format.ErrLayout, s.place, "%d seeds, %d variants of them; the batches have %d", s.m.NumSeeds, s.m.Params.Variants, n)
	}
	want := *s.m
	t.enter(&want)
	return sameJSON(s.place, s.m, &want)
}

// sameJSON compares two manifests by the text they are written as.
func sameJSON(place string, got, want *format.BatchSet) error {
	a, err := format.Canonical(got)
	if err != nil {
		return err
	}
	b, err := format.Canonical(want)
	if err != nil {
		return err
	}
	if string(a) == string(b) {
		return nil
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	start := max(i-40, 0)
	return faultf(format.ErrLayout, place, "totals differ from the files: %q, want %q", a[start:min(i+20, len(a))], b[start:min(i+20, len(b))])
}
