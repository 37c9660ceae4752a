package snapshot

import (
	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// Kind is the manifest's "kind" of a snapshot.
const Kind = "snapshot"

// Files of a snapshot directory; SPEC 6 says what is in each.
const (
	IDsFile      = "ids.plf"
	TopologyFile = "topology.plf"
	FeaturesFile = "features.plf"
	LabelsFile   = "labels.plf"
	SplitsFile   = "splits.plf"
)

// Direction says whether an edge's two ends play different parts.
type Direction string

// The two directions of DESIGN decision 3.
const (
	Undirected Direction = "undirected" // each pair is stored both ways
	Directed   Direction = "directed"   // in-rows, and out-rows beside them
)

// Params shape the content of a snapshot beside its input, and are part of its id.
type Params struct {
	Direction       Direction `json:"direction"`
	FeatureNorm     string    `json:"feature_norm"`     // none, row or standard
	MissingFeatures string    `json:"missing_features"` // error or zero
}

// Audit says what the input's lines came to. Pairs are distinct and without self loops.
type Audit struct {
	NumLines         format.Int   `json:"num_lines"`
	DuplicatesMerged format.Int   `json:"duplicates_merged"`
	SelfLoops        format.Int   `json:"self_loops"`
	IsolatedNodes    format.Int   `json:"isolated_nodes"`
	OneDirectional   format.Int   `json:"one_directional"` // pairs listed in one direction only
	NumPairs         format.Int   `json:"num_pairs"`
	MaxDegree        format.Int   `json:"max_degree"`
	DegreeHistogram  []format.Int `json:"degree_histogram"` // [0] degree 0, [k] degrees 2^(k-1)..2^k-1
	NumComponents    format.Int   `json:"num_components"`
	LargestComponent format.Int   `json:"largest_component"` // nodes
}

// Manifest is manifest.json of a snapshot. Its canonical bytes' SHA-256 is the snapshot
// id. It holds no time, path, host or thread count.
type Manifest struct {
	Kind          string            `json:"kind"`
	FormatVersion int               `json:"format_version"`
	SetKey        format.Digest     `json:"set_key"` // of this manifest with set_key zero and no files; in each file's header
	Params        Params            `json:"params"`
	Collation     Collation         `json:"collation"`
	Weighted      bool              `json:"weighted"`
	NumNodes      format.Int        `json:"num_nodes"`
	NumEdges      format.Int        `json:"num_edges"`
	NumEntries    format.Int        `json:"num_entries"`
	NumRels       format.Int        `json:"num_rels"`
	NumFeatures   format.Int        `json:"num_features"`
	Task          Task              `json:"task,omitempty"` // absent without labels
	NumClasses    format.Int        `json:"num_classes"`
	Splits        []string          `json:"splits"`
	Audit         Audit             `json:"audit"`
	Files         []format.FileInfo `json:"files"`
}

func newManifest(t *Tables, g *graph.Graph, sizes []int64, p Params) (*Manifest, error) {
	m := &Manifest{
		Kind: Kind, FormatVersion: format.Version, Params: p,
		Collation: t.IDs.Collation, Weighted: g.In.Weight != nil,
		NumNodes: format.Int(t.NumNodes()), NumEdges: format.Int(g.Audit.NumEdges), NumEntries: format.Int(g.In.NumEntries()), NumRels: 1,
		Splits: []string{}, Files: []format.FileInfo{},
		Audit: Audit{
			NumLines: format.Int(g.Audit.NumLines), DuplicatesMerged: format.Int(g.Audit.DuplicatesMerged),
			SelfLoops: format.Int(g.Audit.SelfLoops), IsolatedNodes: format.Int(g.Audit.IsolatedNodes),
			OneDirectional: format.Int(g.Audit.OneDirectional), NumPairs: format.Int(g.Audit.NumPairs),
			MaxDegree: format.Int(g.Audit.MaxDegree), NumComponents: format.Int(len(sizes)),
		},
	}
	m.Audit.DegreeHistogram = make([]format.Int, len(g.Audit.DegreeHistogram))
	for k, n := range g.Audit.DegreeHistogram {
		m.Audit.DegreeHistogram[k] = format.Int(n)
	}
	for _, n := range sizes {
		m.Audit.LargestComponent = max(m.Audit.LargestComponent, format.Int(n))
	}
	if t.Features != nil {
		m.NumFeatures = format.Int(t.Features.NumCols)
	}
	if t.Labels != nil {
		m.Task = t.Labels.Task
		m.NumClasses = format.Int(len(t.Labels.ClassNames))
	}
	if t.Splits != nil {
		m.Splits = t.Splits.Names
	}
	key, err := format.DigestOf(m)
	m.SetKey = key
	return m, err
}
