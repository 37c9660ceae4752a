package batch

import (
	"cmp"
	"slices"

	"github.com/prelift/prelift/format"
)

// Description is what `inspect` says of a batch set. Byte counts of Files and of
// Sections both add up to TotalBytes, the sum of the file sizes without the manifest.
type Description struct {
	Kind       string             `json:"kind"`
	ID         format.Digest      `json:"id"`
	SnapshotID format.Digest      `json:"snapshot_id"`
	SetKey     format.Digest      `json:"set_key"`
	Params     format.BatchParams `json:"params"`

	NumNodes    int64    `json:"num_nodes"`
	NumFeatures int64    `json:"num_features"`
	NumClasses  int64    `json:"num_classes"`
	LabelTask   string   `json:"label_task"`
	Splits      []string `json:"splits"`
	Directed    bool     `json:"directed"`
	Weighted    bool     `json:"weighted"`

	NumLayers         int   `json:"num_layers"`
	NumBatches        int64 `json:"num_batches"`
	BatchesPerVariant int64 `json:"batches_per_variant"`
	NumSeeds          int64 `json:"num_seeds"` // of one variant, with strata repeats counted
	NumRows           int64 `json:"num_rows"`
	NumSampledEdges   int64 `json:"num_sampled_edges"`
	NumEvalBlocks     int64 `json:"num_eval_blocks"`
	MaxNodes          int64 `json:"max_nodes"`        // of a batch
	MaxRecordBytes    int64 `json:"max_record_bytes"` // of a batch

	NumHotRows   int64            `json:"num_hot_rows"`
	NumGroupRows int64            `json:"num_group_rows"`
	RowError     *format.RowError `json:"row_error"` // null without features and with dtype f32

	Bytes             int64    `json:"bytes"` // training batches and the rows they share
	BytesPerVariant   int64    `json:"bytes_per_variant"`
	EvalBytes         int64    `json:"eval_bytes"`
	LinkedBytes       int64    `json:"linked_bytes"` // the snapshot's tables in the set, and its own feature table
	FeatureTableBytes int64    `json:"feature_table_bytes"`
	Amplification     *float64 `json:"amplification"` // null without features
	TotalBytes        int64    `json:"total_bytes"`

	Files    []format.FileSizes `json:"files"`
	Sections []SectionBytes     `json:"sections"`
}

// SectionBytes says how many bytes of one group of files (training, eval or linked) its
// sections of one kind take.
type SectionBytes struct {
	Group     string `json:"group"`
	Name      string `json:"name"` // as format.SectionSize has it
	SizeBytes int64  `json:"size_bytes"`
}

// The groups of SectionBytes.
const (
	GroupTraining = "training"
	GroupEval     = "eval"
	GroupLinked   = "linked"
)

// Describe reads the manifest of the batch set in dir and the heads in its files, and holds the manifest's counts against these.
func Describe(dir string) (*Description, error) {
	s, err := openSet(dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.checkTotals(); err != nil {
		return nil, err
	}
	id, m := s.id, s.m
	d := &Description{
		Kind: m.Kind, ID: id, SnapshotID: m.SnapshotID, SetKey: m.SetKey, Params: m.Params,
		NumNodes: int64(m.NumNodes), NumFeatures: int64(m.NumFeatures), NumClasses: int64(m.NumClasses), LabelTask: m.LabelTask,
		Splits: m.Splits, Directed: m.Directed, Weighted: m.Weighted,
		NumLayers: m.NumLayers, NumBatches: int64(m.NumBatches), BatchesPerVariant: int64(m.BatchesPerVariant), NumSeeds: int64(m.NumSeeds),
		NumRows: int64(m.NumRows), NumSampledEdges: int64(m.NumSampledEdges), NumEvalBlocks: int64(m.NumEvalBlocks),
		MaxNodes: int64(m.Maxima.Nodes), MaxRecordBytes: int64(m.Maxima.RecordBytes),
		NumHotRows: int64(m.NumHotRows), NumGroupRows: int64(m.NumGroupRows), RowError: m.RowError,
		Bytes: int64(m.Bytes), BytesPerVariant: int64(m.BytesPerVariant), EvalBytes: int64(m.EvalBytes), FeatureTableBytes: int64(m.FeatureTableBytes),
	}
	if _, amplification := perVariant(d.Bytes, m.Params.Variants, d.FeatureTableBytes); d.FeatureTableBytes > 0 {
		d.Amplification = &amplification
	}
	if d.Files, err = format.ArtefactSizes(dir, m.Files); err != nil {
		return nil, err
	}
	d.addSections()
	d.LinkedBytes = d.TotalBytes - d.Bytes - d.EvalBytes
	return d, nil
}

// addSections sums the sections of all files by group and name, largest first within a group.
func (d *Description) addSections() {
	type key struct{ group, name string }
	sums := map[key]int64{}
	for _, f := range d.Files {
		d.TotalBytes += f.SizeBytes
		for _, s := range f.Sections {
			sums[key{groupOf(f.Name), s.Name}] += s.SizeBytes
		}
	}
	d.Sections = []SectionBytes{}
	for k, n := range sums {
		d.Sections = append(d.Sections, SectionBytes{k.group, k.name, n})
	}
	order := []string{GroupTraining, GroupEval, GroupLinked}
	slices.SortFunc(d.Sections, func(a, b SectionBytes) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Group), slices.Index(order, b.Group)), cmp.Compare(b.SizeBytes, a.SizeBytes), cmp.Compare(a.Name, b.Name))
	})
}

// groupOf tells by its name what a file of a set is for.
func groupOf(name string) string {
	switch name {
	case format.SetIDsFile, format.SetLabelsFile, format.SetSplitsFile, format.SetFeaturesFile:
		return GroupLinked
	case format.SetCoefsFile:
		return GroupEval
	}
	if len(name) > 5 && name[:5] == "eval-" {
		return GroupEval
	}
	return GroupTraining
}
