package format

import (
	"fmt"
	"path/filepath"
)

// KindBatchSet is the manifest's "kind" of a batch set.
const KindBatchSet = "batch_set"

// Files of a batch set beside its shards (SPEC 7). Those of the snapshot are linked in,
// byte for byte, so that the set is enough by itself.
const (
	SetIDsFile      = "ids.plf"      // external ids
	SetLabelsFile   = "labels.plf"   // labels and class names; absent without labels
	SetSplitsFile   = "splits.plf"   // masks and split names; absent without splits
	SetFeaturesFile = "features.plf" // feature table; absent without features
	SetCoefsFile    = "coefs.plf"    // per-node coefficient factors for evaluation blocks; absent with mode full
	SetHotFile      = "hot.plf"      // rows of the set's most used nodes; absent without hot rows
)

// BatchFile and EvalFile name the shards of a batch set.
func BatchFile(shard int) string { return fmt.Sprintf("batches-%05d.plf", shard) }

// EvalFile is BatchFile for evaluation blocks.
func EvalFile(shard int) string { return fmt.Sprintf("eval-%05d.plf", shard) }

// RowsFile is BatchFile for the rows that groups of a shard's batches share.
func RowsFile(shard int) string { return fmt.Sprintf("rows-%05d.plf", shard) }

// BatchParams shape the content of a batch set beside its snapshot; with the snapshot
// id they give the set key. The words are those of the flags of `precompute batches`.
type BatchParams struct {
	Task           string   `json:"task"` // node
	Mode           string   `json:"mode"` // fanout, labor, full, cluster, ppr or khop
	Fanout         []int    `json:"fanout"`
	BatchSize      int      `json:"batch_size"`
	Variants       int      `json:"variants"`
	Norm           []string `json:"norm"`      // coefficient kinds, Coef names
	Transpose      string   `json:"transpose"` // auto, all or inner
	Store          string   `json:"store"`     // ids or packed, as chosen
	DType          string   `json:"dtype"`     // f32, f16, bf16 or int8
	HotRows        float64  `json:"hot_rows"`  // share of the nodes whose rows are stored once for the set, 0 to 1; 0 unless store is packed
	Group          int      `json:"group"`     // batches that share rows, 0 or 1 for none; 0 unless store is packed
	Eval           string   `json:"eval"`      // layerwise or none
	Split          int      `json:"split"`     // split column, from 0; -1 where the set carries all
	Order          string   `json:"order"`     // locality or random, as chosen
	Seed           Int      `json:"seed"`
	BatchesPerFile int      `json:"batches_per_file"`
	LinkFeatures   string   `json:"link_features"` // auto (also for copy) or none
	IndexCodec     string   `json:"index_codec"`   // bits or raw, Codec names: of the integers of a batch

	Weighted bool            `json:"weighted,omitempty"` // neighbours are drawn by edge weight
	HubCap   int             `json:"hub_cap,omitempty"`  // neighbours that stand for all of a hub's; absent: no cap, or no hub
	Cluster  *ClusterParams  `json:"cluster,omitempty"`  // with mode cluster
	KHop     *KHopParams     `json:"khop,omitempty"`     // with mode khop
	PPR      *PPRParams      `json:"ppr,omitempty"`      // with mode ppr
	Stratify *StratifyParams `json:"stratify,omitempty"` // absent: every seed is in one batch of each variant
}

// ClusterParams are those of mode cluster.
type ClusterParams struct {
	Size     int `json:"size"`      // nodes of a cluster, at most
	PerBatch int `json:"per_batch"` // clusters of a batch
}

// KHopParams are those of mode khop.
type KHopParams struct {
	Hops int `json:"hops"` // 1 or 2, of the hop index
}

// PPRParams are those of mode ppr.
type PPRParams struct {
	Select  string  `json:"select"`  // node or batch: for whom the nodes with the largest ranks are chosen
	TopK    int     `json:"top_k"`   // nodes that come with a seed
	Alpha   float64 `json:"alpha"`   // chance that a walk ends at a step
	Epsilon float64 `json:"epsilon"` // residue left at a node, for each neighbour
}

// StratifyParams say how batches mix dense, large components with others.
type StratifyParams struct {
	DenseShare float64 `json:"dense_share"` // of a batch's seeds, from dense, large components
	MinSize    int     `json:"min_size"`    // nodes of such a component; 0: the mean of components
	MinDegree  float64 `json:"min_degree"`  // neighbours a node of such a component; 0: the mean of the graph
}

// RowError says what the type of the feature rows changes: of a number x by at most max(Relative*|x|, Absolute).
type RowError struct {
	Relative float64 `json:"relative"`
	Absolute float64 `json:"absolute"`
	Largest  float64 `json:"largest"` // the largest change of any number of the table
}

// BatchMaxima bound every training batch of the set, so that a trainer can allocate
// its buffers once.
type BatchMaxima struct {
	Nodes       Int   `json:"nodes"`
	Seeds       Int   `json:"seeds"`
	LayerEdges  []Int `json:"layer_edges"` // by layer, input side first; one number for a block of every layer
	RecordBytes Int   `json:"record_bytes"`
}

// BatchSet is manifest.json of a batch set. Counts are over all variants unless they
// say otherwise.
type BatchSet struct {
	Kind          string      `json:"kind"`
	FormatVersion int         `json:"format_version"`
	SnapshotID    Digest      `json:"snapshot_id"`
	SnapshotKey   Digest      `json:"snapshot_key"` // set key in the headers of the linked files
	SetKey        Digest      `json:"set_key"`      // digest of snapshot_id and params; in the headers of the shards
	Params        BatchParams `json:"params"`

	NumNodes    Int      `json:"num_nodes"`
	NumFeatures Int      `json:"num_features"`
	LabelTask   string   `json:"label_task"` // multiclass, binary, multilabel, regression; "" without labels
	NumClasses  Int      `json:"num_classes"`
	Splits      []string `json:"splits"`
	Directed    bool     `json:"directed"`
	Weighted    bool     `json:"weighted"`

	NumLayers         int         `json:"num_layers"` // 0: the blocks serve any depth
	NumBatches        Int         `json:"num_batches"`
	BatchesPerVariant Int         `json:"batches_per_variant"`
	NumSeeds          Int         `json:"num_seeds"` // of one variant, with strata repeats counted
	NumRows           Int         `json:"num_rows"`
	NumSampledEdges   Int         `json:"num_sampled_edges"`
	Maxima            BatchMaxima `json:"maxima"`

	NumEvalBlocks     Int `json:"num_eval_blocks"` // 0 with mode full, whose batch is the one block
	MaxEvalEdges      Int `json:"max_eval_edges"`
	NumHotRows        Int `json:"num_hot_rows"`
	NumGroupRows      Int `json:"num_group_rows"` // of all groups
	Bytes             Int `json:"bytes"`          // of training shards and shared rows
	BytesPerVariant   Int `json:"bytes_per_variant"`
	EvalBytes         Int `json:"eval_bytes"`
	FeatureTableBytes Int `json:"feature_table_bytes"` // num_nodes * num_features * 4

	RowError *RowError  `json:"row_error,omitempty"` // absent without features and with dtype f32
	Features *FileInfo  `json:"features,omitempty"`  // the snapshot's feature table; with dtype f32 it is in the set, or (link_features none) beside it. Absent without features
	Files    []FileInfo `json:"files"`
}

// Key returns the set key: what ties the shards of one set together.
func (m *BatchSet) Key() (Digest, error) {
	return DigestOf(struct {
		SnapshotID Digest      `json:"snapshot_id"`
		Params     BatchParams `json:"params"`
	}{m.SnapshotID, m.Params})
}

// ReadBatchSet reads and checks the manifest of the batch set in dir.
func ReadBatchSet(dir string) (Digest, *BatchSet, error) {
	m := &BatchSet{}
	id, err := ReadManifest(dir, KindBatchSet, m)
	if err != nil {
		return id, m, err
	}
	if key, err := m.Key(); err != nil || key != m.SetKey {
		return id, m, faultf(ErrLayout, filepath.Join(filepath.Base(dir), ManifestName), "set key is %s, its parameters give %s", m.SetKey.Hex()[:16], key.Hex()[:16])
	}
	return id, m, nil
}

// FileOf returns the manifest's word on a file of the set.
func (m *BatchSet) FileOf(name string) (FileInfo, bool) {
	for _, f := range m.Files {
		if f.Name == name {
			return f, true
		}
	}
	return FileInfo{}, false
}
