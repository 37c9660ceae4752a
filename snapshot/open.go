package snapshot

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// Snapshot is an open snapshot. Its slices are views of mapped files: read-only, valid
// until Close. All files are opened by Open, so a snapshot that is replaced meanwhile
// can't mix in.
type Snapshot struct {
	Dir      string
	ID       format.Digest
	Manifest Manifest

	In             graph.CSR  // rows are dst
	Out            *graph.CSR // directed only: rows are src, Indices dst
	RelNames       []string   // of In.Rel, sorted; nil without relations. In.Rel is nil where there is but one
	Types          *Types     // nil without node types
	Component      []int32    // [NumNodes], numbered by smallest node
	ComponentSizes []int64
	IDs            format.Names
	Keys           []uint64  // [NumNodes], for draws (SPEC 8)
	Features       []float32 // [NumNodes, NumFeatures]; nil without features

	// Of the labels exactly one is set, or none without labels.
	Class  []int32   // [NumNodes], -1 unlabelled
	Bits   []uint8   // [NumNodes, NumClasses], format.Unlabelled where not labelled
	Values []float32 // [NumNodes, targets], NaN where not labelled

	ClassNames []string
	Mask       []uint8 // [NumNodes, len(Manifest.Splits)] format.Part

	Hop1 *graph.Hop1 // nil with params.hops 0
	Hop2 *graph.Hop2 // nil unless params.hops is 2

	// With params.with pagerank, else nil.
	Rank    []float64 // [NumNodes] PageRank, sum 1
	Weights []float32 // [NumNodes] chance of a node within its component
	Masses  []float64 // [components] chance of a component

	Lines *graph.Lines // of the edges of the rows; nil unless params.updatable

	Held *Held // held-out pairs, which are not in the rows; nil without

	Order []int32 // [NumNodes] node at each place of the locality order; nil without params.with order

	gcn, mean graph.Norm
	named     []byte // a bit a node, where tables name some (isNamed)
	files     []*format.File
	base      bool     // opened to be updated: what is computed anew is left out
	scratch   *Scratch // says when memory is short; nil: never
	undo      []func() // stop that
	checked   bool     // by the writer, in this process: what is in the files needs no second look
}

// ReadManifest reads and checks the manifest of the snapshot in dir.
func ReadManifest(dir string) (format.Digest, *Manifest, error) {
	m := &Manifest{}
	id, err := format.ReadManifest(dir, Kind, m)
	return id, m, err
}

// Open opens the snapshot in dir: manifest, presence and size of every file, and the
// CRC and bounds of all that it hands out. Errors are of format's classes.
func Open(dir string) (*Snapshot, error) {
	s := &Snapshot{Dir: dir}
	if err := s.open(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Snapshot) open() error {
	id, m, err := ReadManifest(s.Dir)
	if err != nil {
		return err
	}
	s.ID, s.Manifest = id, *m
	if err := m.checkParams(); err != nil {
		return fmt.Errorf("%s: %w: %v", filepath.Join(filepath.Base(s.Dir), format.ManifestName), format.ErrLayout, err)
	}
	if err := m.checkTypes(); err != nil {
		return fmt.Errorf("%s: %w: %v", filepath.Join(filepath.Base(s.Dir), format.ManifestName), format.ErrLayout, err)
	}
	if _, err := format.CheckFiles(s.Dir, m.Files); err != nil {
		return err
	}
	for _, load := range []struct {
		name   string
		kind   format.FileKind
		wanted bool                         // by what the manifest says of the graph
		take   func(r *format.Record) error // of each record
	}{
		{IDsFile, format.FileIDs, true, s.loadIDs},
		{TopologyFile, format.FileTopology, true, s.loadTopology},
		{FeaturesFile, format.FileFeatures, m.NumFeatures > 0, s.loadFeatures},
		{LabelsFile, format.FileLabels, m.Task != "", s.loadLabels},
		{SplitsFile, format.FileLabels, len(m.Splits) > 0, s.loadSplits},
		{HopsFile, format.FileHops, m.Params.Hops > 0, s.loadHops},
		{RankFile, format.FileRank, len(m.Params.With) > 0, s.loadRank},
		{RelationsFile, format.FileLabels, len(m.EdgesPerRel) > 0, s.loadRelations},
		{TypesFile, format.FileLabels, len(m.NodesPerType) > 0, s.loadTypes},
		{HeldoutFile, format.FileHeldout, m.Heldout != nil, s.loadHeldout},
		{LinesFile, format.FileLines, m.Update.hasFile(), s.loadLines},
	} {
		place := filepath.Join(filepath.Base(s.Dir), format.ManifestName)
		switch listed := s.has(load.name); {
		case load.wanted && !listed:
			return fmt.Errorf("%s: %w: %s isn't listed", place, format.ErrMissing, load.name)
		case listed && !load.wanted:
			return fmt.Errorf("%s: %w: lists %s, but its fields say there is none", place, format.ErrLayout, load.name)
		}
		if !load.wanted || s.base && (load.name == HopsFile || load.name == RankFile) {
			continue
		}
		records, err := s.records(load.name, load.kind)
		if err != nil {
			return err
		}
		for _, r := range records {
			if err := load.take(r); err != nil {
				return err
			}
		}
	}
	if s.Lines == nil {
		s.linesOf(nil)
	}
	return s.verifyKey() // which covers every count, those too that aren't the length of anything
}

// Close unmaps the files.
func (s *Snapshot) Close() error {
	for _, f := range s.undo {
		f()
	}
	s.undo = nil
	var first error
	for _, f := range s.files {
		if err := f.Close(); err != nil && first == nil {
			first = err
		}
	}
	s.files = nil
	return first
}

// NumNodes returns the number of nodes.
func (s *Snapshot) NumNodes() int { return int(s.Manifest.NumNodes) }

// NumFeatures returns the number of feature columns, 0 without features.
func (s *Snapshot) NumFeatures() int { return int(s.Manifest.NumFeatures) }

// Path returns the place of one of the snapshot's files.
func (s *Snapshot) Path(name string) string { return filepath.Join(s.Dir, name) }

// Norm returns the coefficients of a kind over the in-rows, in the rules of graph.GCN,
// graph.Mean and graph.Sum. Views of the files, but for what sum computes.
func (s *Snapshot) Norm(coef format.Coef) (graph.Norm, error) {
	switch coef {
	case format.CoefGCN:
		return s.gcn, nil
	case format.CoefMean:
		return s.mean, nil
	case format.CoefSum:
		return graph.Sum(&s.In), nil
	case format.CoefNone:
		return graph.Norm{}, nil
	}
	return graph.Norm{}, fmt.Errorf("a snapshot has no %s coefficients", coef)
}

func (s *Snapshot) has(name string) bool {
	for _, f := range s.Manifest.Files {
		if f.Name == name {
			return true
		}
	}
	return false
}

// records opens a file of records over all nodes, one but for held-out pairs, and verifies all of it.
func (s *Snapshot) records(name string, kind format.FileKind) ([]*format.Record, error) {
	f, err := format.OpenMember(s.Path(name), format.Member{Kind: kind, SetKey: s.Manifest.SetKey})
	if err != nil {
		return nil, err
	}
	s.files = append(s.files, f)
	if s.scratch != nil {
		s.undo = append(s.undo, s.scratch.onPressure(f.Drop))
	}
	if err := f.VerifyPadding(); err != nil {
		return nil, err
	}
	count := 1
	if kind == format.FileHeldout {
		count = len(heldParts)
	}
	records, err := f.Tables(s.NumNodes(), count)
	for _, r := range records {
		if err == nil && !s.checked {
			err = r.Verify()
		}
	}
	return records, err
}

func (s *Snapshot) loadIDs(r *format.Record) error {
	s.IDs, s.Keys = r.IDs(), r.Uint64s(format.IDsKey, format.AnyLayer)
	if s.IDs.Len() != s.NumNodes() || len(s.Keys) != s.NumNodes() {
		return missing(r, "ids or keys")
	}
	return nil
}

func (s *Snapshot) loadTopology(r *format.Record) error {
	s.In = graph.CSR{
		Indptr:  r.Int64s(format.BlockIndptr, format.AnyLayer),
		Indices: r.Int32s(format.BlockIndices, format.AnyLayer),
		Weight:  r.Float32s(format.BlockWeight, format.AnyLayer, format.CoefNone),
	}
	if n := int64(s.Manifest.NumEntries); s.In.Indices != nil && n != int64(len(s.In.Indices)) {
		return s.wrong("the manifest says %d entries, the rows have %d", n, len(s.In.Indices))
	}
	if s.In.Indptr == nil || s.In.Indices == nil || (s.In.Weight != nil) != s.Manifest.Weighted {
		return missing(r, "rows")
	}
	if s.Manifest.Params.Direction == Directed {
		s.Out = &graph.CSR{Indptr: r.Int64s(format.TransposeIndptr, format.AnyLayer), Indices: r.Int32s(format.TransposeIndices, format.AnyLayer)}
		if s.Out.Indptr == nil || s.Out.Indices == nil {
			return missing(r, "out-rows")
		}
	}
	if err := s.loadRels(r); err != nil {
		return err
	}
	s.Component = r.Int32s(format.GraphComponent, format.AnyLayer)
	s.ComponentSizes = r.Int64s(format.GraphComponentSize, format.AnyLayer)
	if s.Component == nil || s.ComponentSizes == nil {
		return missing(r, "components")
	}
	if n := int64(s.Manifest.Audit.NumComponents); n != int64(len(s.ComponentSizes)) {
		return s.wrong("the manifest says %d components, the topology has %d", n, len(s.ComponentSizes))
	}
	s.gcn, s.mean = normOf(r, format.CoefGCN), normOf(r, format.CoefMean)
	return nil
}

func normOf(r *format.Record, coef format.Coef) graph.Norm {
	return graph.Norm{
		Src:  r.Float32s(format.CoefSrc, format.AnyLayer, coef),
		Dst:  r.Float32s(format.CoefDst, format.AnyLayer, coef),
		Self: r.Float32s(format.CoefSelf, format.AnyLayer, coef),
		Edge: r.Float32s(format.CoefEdge, format.AnyLayer, coef),
	}
}

func (s *Snapshot) loadFeatures(r *format.Record) error {
	s.Features = r.Float32s(format.TableRows, format.AnyLayer, format.CoefNone)
	if len(s.Features) != s.NumNodes()*s.NumFeatures() {
		return missing(r, "float32 rows")
	}
	return nil
}

func (s *Snapshot) loadLabels(r *format.Record) error {
	s.Class = r.Int32s(format.SeedsLabel, format.AnyLayer)
	s.Bits = r.Uint8s(format.SeedsLabel, format.AnyLayer)
	s.Values = r.Float32s(format.SeedsLabel, format.AnyLayer, format.CoefNone)
	s.ClassNames = r.Names().Strings()
	if r.NumSeeds != r.NumNodes() || s.Class == nil && s.Bits == nil && s.Values == nil || len(s.ClassNames) != int(s.Manifest.NumClasses) {
		return missing(r, "labels or class names")
	}
	if s.Bits != nil && len(s.Bits) != s.NumNodes()*len(s.ClassNames) {
		return fmt.Errorf("%s: %w: %d label bits for %d nodes and %d columns", r.Place(), format.ErrLayout, len(s.Bits), s.NumNodes(), len(s.ClassNames))
	}
	for v, class := range s.Class {
		if int(class) >= len(s.ClassNames) {
			return fmt.Errorf("%s: %w: node %d has class %d of %d", r.Place(), format.ErrLayout, v, class, len(s.ClassNames))
		}
	}
	return nil
}

func (s *Snapshot) loadSplits(r *format.Record) error {
	s.Mask = r.Uint8s(format.SeedsMask, format.AnyLayer)
	if len(s.Mask) != s.NumNodes()*len(s.Manifest.Splits) || !slices.Equal(r.Names().Strings(), s.Manifest.Splits) {
		return missing(r, "masks of the splits in the manifest")
	}
	return nil
}

func missing(r *format.Record, what string) error {
	return fmt.Errorf("%s: %w: no %s", r.Place(), format.ErrMissing, what)
}
