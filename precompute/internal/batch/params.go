package batch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
	"github.com/prelift/prelift/snapshot"
)

// Words of format.BatchParams.
const (
	TaskNode = "node"

	ModeFanout  = "fanout"
	ModeLabor   = "labor"
	ModeFull    = "full"
	ModeCluster = "cluster"
	ModePPR     = "ppr"
	ModeKHop    = "khop"

	Auto = "auto"
	None = "none"

	TransposeAll   = "all"
	TransposeInner = "inner"

	StoreIDs    = "ids"
	StorePacked = "packed"

	EvalLayerwise = "layerwise"

	LinkCopy = "copy"
)

// Words of BatchParams.IndexCodec: the codecs of format by name.
var (
	CodecRaw  = format.CodecRaw.String()
	CodecBits = format.CodecBits.String()
)

// SplitUnset as BatchParams.Split asks for the only split column.
const SplitUnset = -1

// Over this many features it costs less to multiply first and aggregate after, which
// needs the input side's transpose for the gradient (DESIGN decision 9).
const wideFeatures = 256

// defaultAmplification is what store auto goes by where no limit is given: rows are
// packed where a variant's batches then take no more than the feature table does.
const defaultAmplification = 1

// ParamError says that what was asked for can't be done: a usage error.
type ParamError struct{ message string }

func (e *ParamError) Error() string { return e.message }

func paramErrorf(format string, args ...any) error {
	return &ParamError{fmt.Sprintf(format, args...)}
}

// Defaults returns what `precompute batches` does without flags.
func Defaults() format.BatchParams {
	return format.BatchParams{
		Task: TaskNode, Mode: ModeFanout, Fanout: []int{10, 5}, BatchSize: 1024, Variants: 4,
		Norm: []string{"gcn", "mean"}, Transpose: Auto, Store: Auto, DType: "f32", Eval: EvalLayerwise,
		Split: SplitUnset, Order: Auto, Seed: 1, BatchesPerFile: 64, LinkFeatures: Auto, IndexCodec: CodecBits, HubCap: DefaultHubCap,
	}
}

// checkParams returns p in canonical form, with order and store perhaps still auto: norms
// sorted, transposes settled, the split column found, and what means nothing in the mode (in mode full
// fanout, batch size, variants, order and seed) at fixed values or left out.
func checkParams(snap *snapshot.Snapshot, p format.BatchParams) (format.BatchParams, error) {
	if p.Task != TaskNode {
		return p, paramErrorf("--task %q: this version writes batches for node", p.Task)
	}
	for _, word := range []struct {
		flag, value string
		allowed     []string
	}{
		{"mode", p.Mode, Modes},
		{"transpose", p.Transpose, []string{Auto, TransposeAll, TransposeInner}},
		{"store", p.Store, []string{Auto, StoreIDs, StorePacked}},
		{"dtype", p.DType, []string{"f32", "f16", "bf16", "int8"}},
		{"eval", p.Eval, []string{EvalLayerwise, None}},
		{"order", p.Order, []string{Auto, sample.Locality, sample.Random}},
		{"link-features", p.LinkFeatures, []string{Auto, LinkCopy, None}},
		{"index-codec", p.IndexCodec, []string{CodecBits, CodecRaw}},
	} {
		if !slices.Contains(word.allowed, word.value) {
			return p, paramErrorf("--%s %q: want %s", word.flag, word.value, strings.Join(word.allowed, ", "))
		}
	}
	if p.LinkFeatures == LinkCopy {
		p.LinkFeatures = Auto // the same bytes
	}
	if p.BatchesPerFile < 1 || p.BatchesPerFile > format.MaxRecords {
		return p, paramErrorf("--batches-per-file %d: want 1 to %d", p.BatchesPerFile, format.MaxRecords)
	}
	var err error
	if p.Norm, err = checkNorms(p.Norm); err != nil {
		return p, err
	}
	if snap.Class == nil && snap.Bits == nil && snap.Values == nil {
		return p, paramErrorf("the snapshot has no labels, and --task node needs some; build it with --labels, or --nodes with a label column")
	}
	if p, err = checkStorage(snap, p); err != nil {
		return p, err
	}
	return checkMode(snap, p)
}

// checkStorage checks how feature rows are to be stored.
func checkStorage(snap *snapshot.Snapshot, p format.BatchParams) (format.BatchParams, error) {
	if p.Group == 1 {
		p.Group = 0
	}
	shares := ""
	switch {
	case !(p.HotRows >= 0 && p.HotRows <= 1):
		return p, paramErrorf("--hot-rows %g: want the share of the nodes, 0 to 1", p.HotRows)
	case p.Group < 0 || p.Group > p.BatchesPerFile:
		return p, paramErrorf("--group %d: want 0 to %d batches, those of a file (--batches-per-file)", p.Group, p.BatchesPerFile)
	case p.HotRows > 0:
		shares = fmt.Sprintf("--hot-rows %g", p.HotRows)
	case p.Group > 0:
		shares = fmt.Sprintf("--group %d", p.Group)
	}
	switch hasRows := snap.NumFeatures() > 0; {
	case p.DType != "f32" && !hasRows:
		return p, paramErrorf("--dtype %s: the snapshot has no features", p.DType)
	case p.DType != "f32" && p.LinkFeatures == None:
		return p, paramErrorf("--dtype %s writes a feature table of the set's own, and --link-features none wants none; leave one of them out", p.DType)
	case shares != "" && !hasRows:
		return p, paramErrorf("%s: the snapshot has no features", shares)
	case shares != "" && p.Mode == ModeFull:
		return p, paramErrorf("%s is for packed batches: a full batch has every row once already", shares)
	case shares != "" && p.Store == StoreIDs:
		return p, paramErrorf("%s is for packed batches: with --store ids the feature table holds every row once", shares)
	}
	return p, nil
}

// checkNorms sorts the kinds by number, so that the order they are asked in changes nothing.
func checkNorms(names []string) ([]string, error) {
	kinds := make([]format.Coef, 0, len(names))
	for _, name := range names {
		coef, ok := format.ParseCoef(name)
		if !ok {
			return nil, paramErrorf("--norm %q: want a list of gcn, mean, sum, none", name)
		}
		if coef == format.CoefRelMean {
			return nil, paramErrorf("--norm relmean: the graph has no relations; want a list of gcn, mean, sum, none")
		}
		if !slices.Contains(kinds, coef) {
			kinds = append(kinds, coef)
		}
	}
	if len(kinds) == 0 {
		return nil, paramErrorf("--norm is empty: want a list of gcn, mean, sum, none")
	}
	slices.Sort(kinds)
	sorted := make([]string, len(kinds))
	for i, coef := range kinds {
		sorted[i] = coef.String()
	}
	return sorted, nil
}

func checkFull(p format.BatchParams) (format.BatchParams, error) {
	if p.Store == StorePacked {
		return p, paramErrorf("--store packed: a full batch has every row once already; leave it out")
	}
	p.Fanout, p.BatchSize, p.Variants = []int{}, 0, 1
	p.Transpose, p.Store, p.Eval, p.Order = TransposeAll, StoreIDs, EvalLayerwise, sample.Random
	p.Split, p.Seed, p.IndexCodec = SplitUnset, 0, CodecRaw
	return p, nil
}

// checkFanout checks the fanouts of modes fanout and labor.
func checkFanout(snap *snapshot.Snapshot, p format.BatchParams) (format.BatchParams, error) {
	if len(p.Fanout) == 0 {
		return p, paramErrorf("--fanout is empty: want one number a layer, as 10,5 (-1 takes all neighbours)")
	}
	if len(p.Fanout) > format.MaxLayers {
		return p, paramErrorf("--fanout has %d numbers: at most %d layers", len(p.Fanout), format.MaxLayers)
	}
	for _, k := range p.Fanout {
		if k < sample.All || k > math.MaxInt32 {
			return p, paramErrorf("--fanout %d: want 0 to %d neighbours, or -1 for all", k, math.MaxInt32)
		}
	}
	if p.Transpose == Auto {
		p.Transpose = TransposeInner
		if n := snap.NumFeatures(); n == 0 || n > wideFeatures || slices.Contains(p.Norm, None) {
			p.Transpose = TransposeAll
		}
	}
	return p, nil
}

// checkBatches checks what all modes but full have alike.
func checkBatches(snap *snapshot.Snapshot, p format.BatchParams) (format.BatchParams, error) {
	if p.Mode != ModeCluster && (p.BatchSize < 1 || p.BatchSize > math.MaxInt32) {
		return p, paramErrorf("--batch-size %d: want 1 to %d seeds", p.BatchSize, math.MaxInt32)
	}
	if p.Variants < 1 || p.Variants > 1<<20 {
		return p, paramErrorf("--variants %d: want 1 to %d", p.Variants, 1<<20)
	}
	if snap.NumFeatures() == 0 {
		if p.Store == StorePacked {
			return p, paramErrorf("--store packed: the snapshot has no features to pack")
		}
		p.Store = StoreIDs
	}
	var err error
	p.Split, err = checkSplit(snap.Manifest.Splits, p.Split)
	return p, err
}

// checkSplit finds the split column; SplitUnset where the snapshot has no splits.
func checkSplit(names []string, column int) (int, error) {
	switch {
	case column < SplitUnset || column >= max(len(names), 1):
		return 0, paramErrorf("--split %d: the snapshot has %d split columns, numbered from 0", column, len(names))
	case len(names) == 0:
		return SplitUnset, nil
	case column == SplitUnset && len(names) > 1:
		return 0, paramErrorf("the snapshot has %d split columns (%s); choose one with --split 0 to %d", len(names), nameSome(names), len(names)-1)
	}
	return max(column, 0), nil
}

// nameSome lists the first few names.
func nameSome(names []string) string {
	const most = 4
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// trainSeeds returns the labelled train nodes of a split column, ascending; without
// splits (column SplitUnset) every labelled node.
func trainSeeds(snap *snapshot.Snapshot, column int) ([]int32, error) {
	seeds, numTrain := []int32{}, 0
	for v := range int32(snap.NumNodes()) {
		if column != SplitUnset && format.Part(snap.Mask[int(v)*len(snap.Manifest.Splits)+column]) != format.PartTrain {
			continue
		}
		numTrain++
		if isLabelled(snap.Class, snap.Bits, snap.Values, snap.NumNodes(), v) {
			seeds = append(seeds, v)
		}
	}
	switch {
	case len(seeds) > 0:
		return seeds, nil
	case column == SplitUnset:
		return nil, paramErrorf("none of the %d nodes has a label, so there is nothing to train on", numTrain)
	case numTrain == 0:
		return nil, paramErrorf("split column %d (%s) has no train node; choose another with --split, or build the snapshot with --splits", column, snap.Manifest.Splits[column])
	}
	return nil, paramErrorf("none of the %d train nodes of split column %d (%s) has a label", numTrain, column, snap.Manifest.Splits[column])
}

// isLabelled reports whether the source gave node v a label; of the three arrays, over
// numNodes nodes, at most one is set.
func isLabelled(class []int32, bits []uint8, values []float32, numNodes int, v int32) bool {
	switch {
	case class != nil:
		return class[v] >= 0
	case bits != nil:
		cols := len(bits) / numNodes
		return slices.ContainsFunc(bits[int(v)*cols:][:cols], func(b uint8) bool { return b != format.Unlabelled })
	case values != nil:
		cols := len(values) / numNodes
		return slices.ContainsFunc(values[int(v)*cols:][:cols], func(x float32) bool { return x == x })
	}
	return false
}

// hasTranspose reports whether the block of a layer comes with its transpose.
func hasTranspose(p *format.BatchParams, layer int) bool {
	return layer > 0 || p.Transpose == TransposeAll
}

// coefKinds returns the kinds that have sections, by number.
func coefKinds(p *format.BatchParams) ([]format.Coef, error) {
	kinds := []format.Coef{}
	for _, name := range p.Norm {
		coef, ok := format.ParseCoef(name)
		if !ok {
			return nil, fmt.Errorf("batch: unknown coefficient kind %q", name)
		}
		if coef != format.CoefNone {
			kinds = append(kinds, coef)
		}
	}
	slices.SortFunc(kinds, func(a, b format.Coef) int { return cmp.Compare(a, b) })
	return kinds, nil
}

// splitColumn is the split column as a record head has it.
func splitColumn(p *format.BatchParams) uint32 {
	if p.Split == SplitUnset {
		return format.AnySplit
	}
	return uint32(p.Split)
}
