package snapshot

import (
	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// Description is what `precompute inspect` says of a snapshot. Counts are plain numbers.
type Description struct {
	Kind             string              `json:"kind"`
	ID               format.Digest       `json:"id"`
	FormatVersion    int                 `json:"format_version"`
	Direction        Direction           `json:"direction"`
	Weighted         bool                `json:"weighted"`
	Collation        Collation           `json:"collation"`
	Anonymised       bool                `json:"anonymized"` // the ids are codes of those of the input
	NumNodes         int64               `json:"num_nodes"`
	NumEdges         int64               `json:"num_edges"`   // undirected pairs once, self loops included; arcs when directed
	NumEntries       int64               `json:"num_entries"` // in-row entries stored
	NumRels          int64               `json:"num_rels"`
	Relations        []NamedCount        `json:"relations"` // edges of each; empty without relations
	Types            []NamedCount        `json:"types"`     // nodes of each; empty without node types
	NumFeatures      int64               `json:"num_features"`
	FeatureNorm      string              `json:"feature_norm"`
	Task             Task                `json:"task"` // "" without labels
	NumClasses       int64               `json:"num_classes"`
	ClassNames       []string            `json:"class_names"`
	ClassCounts      []int64             `json:"class_counts"` // labelled nodes by class, or of 1s by column
	Unlabelled       int64               `json:"unlabelled"`
	Splits           []SplitCounts       `json:"splits"`
	NumComponents    int64               `json:"num_components"`
	LargestComponent int64               `json:"largest_component"`
	IsolatedNodes    int64               `json:"isolated_nodes"`
	SelfLoops        int64               `json:"self_loops"`
	NumLines         int64               `json:"num_lines"`
	DuplicatesMerged int64               `json:"duplicates_merged"`
	OneDirectional   int64               `json:"one_directional"`
	OneDirShare      float64             `json:"one_directional_share"` // of the distinct pairs; 0 without pairs
	MaxDegree        int64               `json:"max_degree"`
	DegreeHistogram  []int64             `json:"degree_histogram"` // [0] degree 0, [k] degrees 2^(k-1)..2^k-1
	Hops             int                 `json:"hops"`
	Hop1             *Hop1Description    `json:"hop1"`      // null with hops 0
	Hop2             *Hop2Description    `json:"hop2"`      // null unless hops is 2
	PageRank         *RankAudit          `json:"pagerank"`  // null without
	Order            bool                `json:"order"`     // whether there is a locality order
	Heldout          *HeldoutDescription `json:"heldout"`   // null without held-out pairs
	Updatable        bool                `json:"updatable"` // whether it can be the base of an update
	Bytes            int64               `json:"bytes"`
	Files            []format.FileSizes  `json:"files"`
}

// SplitCounts counts the nodes of each part of a split.
type SplitCounts struct {
	Name  string `json:"name"`
	Train int64  `json:"train"`
	Valid int64  `json:"valid"`
	Test  int64  `json:"test"`
}

// Hop1Description gives the sizes of the index of neighbours.
type Hop1Description struct {
	CompactBelow int                 `json:"compact_below"`
	HubFrom      int                 `json:"hub_from"`
	NumEntries   int64               `json:"num_entries"` // neighbours of all nodes, without self loops
	SizeBytes    int64               `json:"size_bytes"`
	SharedBytes  int64               `json:"shared_bytes"` // of SizeBytes, what is in no bucket
	Int32Ratio   float64             `json:"int32_ratio"`  // SizeBytes over 4 bytes an entry; 0 without entries
	BoundRatio   float64             `json:"bound_ratio"`  // SizeBytes over the information bound, sum of log2 C(N, d); 0 where that is 0
	Buckets      []BucketDescription `json:"buckets"`
}

// BucketDescription is one form of rows of the index.
type BucketDescription struct {
	Name       string  `json:"name"`
	NumRows    int64   `json:"num_rows"`
	NumEntries int64   `json:"num_entries"`
	SizeBytes  int64   `json:"size_bytes"`
	Int32Ratio float64 `json:"int32_ratio"`
}

// Hop2Description says how many nodes two hops away are listed.
type Hop2Description struct {
	NumEntries  int64   `json:"num_entries"`
	Ratio       float64 `json:"ratio"` // NumEntries over the neighbours of all nodes
	ExpandLimit int     `json:"expand_limit"`
	Hop2Cap     int     `json:"hop2_cap"`
	Cap         int64   `json:"cap"`    // most entries of a row
	Forced      bool    `json:"forced"` // Cap is below Hop2Cap, since Ratio would be over 5
	NumUncut    int64   `json:"num_uncut"`
	NumCut      int64   `json:"num_cut"`
	NumSampled  int64   `json:"num_sampled"`
	SizeBytes   int64   `json:"size_bytes"`
}

// Describe opens the snapshot in dir and says what is in it.
func Describe(dir string) (*Description, error) {
	s, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	m := &s.Manifest
	d := &Description{
		Kind: Kind, ID: s.ID, FormatVersion: m.FormatVersion,
		Direction: m.Params.Direction, Weighted: m.Weighted, Collation: m.Collation, Anonymised: m.Params.Anonymised != nil,
		NumNodes: int64(m.NumNodes), NumEdges: int64(m.NumEdges), NumEntries: int64(m.NumEntries), NumRels: int64(m.NumRels),
		NumFeatures: int64(m.NumFeatures), FeatureNorm: m.Params.FeatureNorm, Task: m.Task, NumClasses: int64(m.NumClasses), ClassNames: s.ClassNames,
		NumComponents: int64(m.Audit.NumComponents), LargestComponent: int64(m.Audit.LargestComponent),
		IsolatedNodes: int64(m.Audit.IsolatedNodes), SelfLoops: int64(m.Audit.SelfLoops),
		NumLines: int64(m.Audit.NumLines), DuplicatesMerged: int64(m.Audit.DuplicatesMerged), OneDirectional: int64(m.Audit.OneDirectional),
		MaxDegree: int64(m.Audit.MaxDegree),
	}
	for _, n := range m.Audit.DegreeHistogram {
		d.DegreeHistogram = append(d.DegreeHistogram, int64(n))
	}
	if m.Audit.NumPairs > 0 {
		d.OneDirShare = float64(m.Audit.OneDirectional) / float64(m.Audit.NumPairs)
	}
	d.Relations, d.Types = namedCounts(s.RelNames, m.EdgesPerRel), []NamedCount{}
	if s.Types != nil {
		d.Types = namedCounts(s.Types.Names, m.NodesPerType)
	}
	s.describeHops(d)
	d.Updatable = m.Params.Updatable
	d.PageRank, d.Order, d.Heldout = m.PageRank, s.Order != nil, m.DescribeHeldout()
	s.countLabels(d)
	s.countSplits(d)
	if d.Files, err = format.ArtefactSizes(dir, m.Files); err != nil {
		return nil, err
	}
	for _, f := range d.Files {
		d.Bytes += f.SizeBytes
	}
	return d, nil
}

func (s *Snapshot) describeHops(d *Description) {
	p := &s.Manifest.Params
	if d.Hops = p.Hops; d.Hops == 0 {
		return
	}
	h := &Hop1Description{CompactBelow: p.CompactBelow, HubFrom: p.HubFrom, SizeBytes: s.Hop1.SizeBytes()}
	h.SharedBytes = h.SizeBytes
	for k, b := range s.Hop1.Buckets() {
		h.Buckets = append(h.Buckets, BucketDescription{graph.Bucket(k).String(), b.NumRows, b.NumEntries, b.SizeBytes, over(b.SizeBytes, 4*float64(b.NumEntries))})
		h.NumEntries += b.NumEntries
		h.SharedBytes -= b.SizeBytes
	}
	h.Int32Ratio, h.BoundRatio = over(h.SizeBytes, 4*float64(h.NumEntries)), over(h.SizeBytes, graph.InformationBits(&s.In)/8)
	d.Hop1 = h
	if a := s.Manifest.Hop2; a != nil {
		d.Hop2 = &Hop2Description{
			NumEntries: int64(a.NumEntries), Ratio: a.Ratio(), ExpandLimit: p.ExpandLimit, Hop2Cap: p.Hop2Cap, Cap: int64(a.Cap), Forced: a.Forced,
			NumUncut: int64(a.NumUncut), NumCut: int64(a.NumCut), NumSampled: int64(a.NumSampled),
			SizeBytes: 8*int64(len(s.Hop2.Indptr)) + 4*int64(len(s.Hop2.Indices)),
		}
	}
}

// over is a/b, 0 where b is 0.
func over(a int64, b float64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / b
}

func (s *Snapshot) countLabels(d *Description) {
	d.ClassCounts = make([]int64, len(s.ClassNames))
	for _, class := range s.Class {
		if class < 0 {
			d.Unlabelled++
		} else {
			d.ClassCounts[class]++
		}
	}
	cols := max(len(s.ClassNames), 1)
	for i, bit := range s.Bits {
		switch {
		case bit == format.Unlabelled && i%cols == 0:
			d.Unlabelled++
		case bit == 1:
			d.ClassCounts[i%cols]++
		}
	}
	targets := max(len(s.Values)/max(s.NumNodes(), 1), 1)
	for i, x := range s.Values {
		if i%targets == 0 && x != x {
			d.Unlabelled++
		}
	}
}

func (s *Snapshot) countSplits(d *Description) {
	d.Splits = make([]SplitCounts, len(s.Manifest.Splits))
	for k, name := range s.Manifest.Splits {
		d.Splits[k].Name = name
	}
	for i, part := range s.Mask {
		c := &d.Splits[i%len(d.Splits)]
		switch format.Part(part) {
		case format.PartTrain:
			c.Train++
		case format.PartValid:
			c.Valid++
		case format.PartTest:
			c.Test++
		}
	}
}
