package snapshot

import (
	"fmt"
	"reflect"
	"slices"

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
	HopsFile     = "hops.plf"
	RankFile     = "rank.plf"

	RelationsFile = "relations.plf"
	TypesFile     = "types.plf"
	HeldoutFile   = "heldout.plf"
	LinesFile     = "lines.plf"
)

// Direction says whether an edge's two ends play different parts.
type Direction string

// The two directions of DESIGN decision 3.
const (
	Undirected Direction = "undirected" // each pair is stored both ways
	Directed   Direction = "directed"   // in-rows, and out-rows beside them
)

// The values of FeatureNorm and MissingFeatures that an update asks for.
const (
	NormStandard = "standard" // each column to mean 0 and standard deviation 1
	MissingZero  = "zero"     // nodes without a feature row have zeros
)

// Params shape the content of a snapshot beside its input, and are part of its id.
type Params struct {
	Direction       Direction `json:"direction"`
	FeatureNorm     string    `json:"feature_norm"`     // none, row or NormStandard
	MissingFeatures string    `json:"missing_features"` // error or MissingZero

	Hops         int      `json:"hops"`          // 1: neighbours; 2: and lists two hops away; 0: neither; HopsAuto until settled
	CompactBelow int      `json:"compact_below"` // these four as in graph.HopOptions; 0 where Hops has no use for them
	HubFrom      int      `json:"hub_from"`
	ExpandLimit  int      `json:"expand_limit"`
	Hop2Cap      int      `json:"hop2_cap"`
	With         []string `json:"with"` // of WithOrder and WithPageRank, sorted

	MergeRelations bool `json:"merge_relations,omitempty"` // the input's relations were dropped, and their edges merged

	Holdout    *HoldoutParams `json:"holdout,omitempty"`    // nil: nothing is held out of the edges
	Anonymised *format.Digest `json:"anonymized,omitempty"` // mark of the key that the external ids are codes under (SPEC 6); nil: they are the input's
	Updatable  bool           `json:"updatable"`            // the snapshot remembers its lines (SPEC 6.2); false, once settled, with Holdout
}

// HopsAuto as Params.Hops asks for 2 up to a million nodes, else for 1.
const HopsAuto = -1

// maxAutoHop2 is the most nodes for which HopsAuto gives 2 (DESIGN: graph-size policy).
const maxAutoHop2 = 1_000_000

// What Params.With may list.
const (
	WithOrder    = "order"
	WithPageRank = "pagerank"
)

// Settle returns p for a graph of so many nodes with all that was left open filled in, and what has no
// meaning at fixed values. It gives an error for impossible requests.
func (p Params) Settle(numNodes int) (Params, error) {
	if p.Hops == HopsAuto {
		p.Hops = 1
		if numNodes <= maxAutoHop2 {
			p.Hops = 2
		}
	}
	if p.Hops < 0 || p.Hops > 2 {
		return p, fmt.Errorf("%d hops: want 0, 1 or 2", p.Hops)
	}
	o, err := p.hopOptions().Settle()
	if err != nil {
		return p, err
	}
	p.CompactBelow, p.HubFrom, p.ExpandLimit, p.Hop2Cap = o.CompactBelow, o.HubFrom, o.ExpandLimit, o.Hop2Cap
	if p.Hops < 2 {
		p.ExpandLimit, p.Hop2Cap = 0, 0
	}
	if p.Hops < 1 {
		p.CompactBelow, p.HubFrom = 0, 0
	}
	if p.Holdout, err = p.Holdout.settle(); err != nil {
		return p, err
	}
	p.Updatable = p.Updatable && p.Holdout == nil
	p.With = append([]string{}, p.With...)
	slices.Sort(p.With)
	p.With = slices.Compact(p.With)
	for _, word := range p.With {
		if word != WithOrder && word != WithPageRank {
			return p, fmt.Errorf("with %q: want %s or %s", word, WithOrder, WithPageRank)
		}
	}
	return p, nil
}

func (p *Params) hopOptions() graph.HopOptions {
	return graph.HopOptions{CompactBelow: p.CompactBelow, HubFrom: p.HubFrom, ExpandLimit: p.ExpandLimit, Hop2Cap: p.Hop2Cap}
}

func (p *Params) has(word string) bool { return slices.Contains(p.With, word) }

// Hop2Audit says how far hop 2 was truncated (graph.Hop2Audit).
type Hop2Audit struct {
	Hop1Entries format.Int `json:"hop1_entries"`
	NumEntries  format.Int `json:"num_entries"`
	NumUncut    format.Int `json:"num_uncut"`
	NumCut      format.Int `json:"num_cut"`
	NumSampled  format.Int `json:"num_sampled"`
	Cap         format.Int `json:"cap"`
	Forced      bool       `json:"forced"`
}

// Ratio is the entries of hop 2 over those of hop 1; 0 without any.
func (a *Hop2Audit) Ratio() float64 {
	if a.Hop1Entries == 0 {
		return 0
	}
	return float64(a.NumEntries) / float64(a.Hop1Entries)
}

// RankAudit says how PageRank was computed (graph.RankOptions and graph.Rank).
type RankAudit struct {
	Damping       float64 `json:"damping"`
	Tolerance     float64 `json:"tolerance"`
	MaxIterations int     `json:"max_iterations"`
	Iterations    int     `json:"iterations"`
	Delta         float64 `json:"delta"`
	Converged     bool    `json:"converged"`
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
	NumRels       format.Int        `json:"num_rels"`                 // 1 without relations
	EdgesPerRel   []format.Int      `json:"edges_per_rel,omitempty"`  // with relations: num_edges by relation
	NodesPerType  []format.Int      `json:"nodes_per_type,omitempty"` // with node types
	NumFeatures   format.Int        `json:"num_features"`
	Task          Task              `json:"task,omitempty"` // absent without labels
	NumClasses    format.Int        `json:"num_classes"`
	Splits        []string          `json:"splits"`
	Audit         Audit             `json:"audit"`
	Heldout       *HeldoutAudit     `json:"heldout,omitempty"`  // with held-out pairs
	Update        *UpdateInfo       `json:"update,omitempty"`   // with params.updatable
	Hop2          *Hop2Audit        `json:"hop2,omitempty"`     // with params.hops 2
	PageRank      *RankAudit        `json:"pagerank,omitempty"` // with params.with pagerank
	Files         []format.FileInfo `json:"files"`
}

// manifest says what was built, of settled parameters; without files.
func (b *builder) manifest(p Params) (*Manifest, error) {
	t, g, sizes := b.tables, b.graph, b.sizes
	m := &Manifest{
		Kind: Kind, FormatVersion: format.Version, Params: p,
		Collation: t.IDs.Collation, Weighted: g.In.Weight != nil,
		NumNodes: format.Int(t.NumNodes()), NumEdges: format.Int(g.Audit.NumEdges), NumEntries: format.Int(g.In.NumEntries()),
		NumRels: format.Int(max(1, len(t.RelNames))), EdgesPerRel: b.edgesPerRel, NodesPerType: nodesPerType(t.Types),
		Splits: []string{}, Files: []format.FileInfo{}, Heldout: b.heldAudit, Update: b.update, Hop2: b.hop2Audit, PageRank: b.rankAudit,
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

// checkParams checks what the manifest says of the hop index and the ranks against itself.
func (m *Manifest) checkParams() error {
	p, err := m.Params.Settle(int(m.NumNodes))
	switch {
	case err != nil:
		return err
	case !reflect.DeepEqual(p, m.Params):
		return fmt.Errorf("params %v, settled %v", m.Params, p)
	case p.Holdout != nil && m.Heldout == nil:
		return fmt.Errorf("holdout by %s, but heldout isn't there", p.Holdout.Kind)
	case (m.Hop2 != nil) != (p.Hops == 2):
		return fmt.Errorf("%d hops, but hop2 is there: %t", p.Hops, m.Hop2 != nil)
	case (m.PageRank != nil) != p.has(WithPageRank):
		return fmt.Errorf("with %v, but pagerank is there: %t", p.With, m.PageRank != nil)
	}
	return m.checkUpdate()
}
