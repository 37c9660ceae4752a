package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/batch"
	"github.com/prelift/prelift/snapshot"
	"github.com/spf13/cobra"
)

func inspectCommand(env *command.Env) *cobra.Command {
	dump := false
	c := &cobra.Command{
		Use:   "inspect PATH",
		Short: "Say what is in a snapshot, a batch set or one of their files",
		Args:  command.OneArg("the PATH of an artefact"),
		RunE: func(c *cobra.Command, args []string) error {
			return command.Interruptible(c.Context(), func() error { return inspect(env, args[0], dump) })
		},
	}
	c.Flags().BoolVar(&dump, "dump", false, "of a file: an annotated hexdump")
	return c
}

func inspect(env *command.Env, path string, dump bool) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return inspectFile(env, path, dump)
	}
	if dump {
		return command.Usage("--dump is for one file of an artefact")
	}
	kind, err := format.ManifestKind(path)
	if err != nil {
		return err
	}
	switch kind {
	case snapshot.Kind:
		d, err := snapshot.Describe(path)
		if err != nil {
			return err
		}
		return env.Result(d, func(w io.Writer) { snapshotText(w, d) })
	case format.KindBatchSet:
		d, err := batch.Describe(path)
		if err != nil {
			return err
		}
		return env.Result(d, func(w io.Writer) { batchSetText(w, d) })
	}
	return unknownKind(path, kind)
}

// unknownKind is the error for an artefact that is neither a snapshot nor a batch set.
func unknownKind(dir, kind string) error {
	place := filepath.Join(filepath.Base(dir), format.ManifestName)
	if kind == "" {
		return fmt.Errorf("%s: %w: says no kind of artefact", place, format.ErrLayout)
	}
	return fmt.Errorf("%s: %w: artefact of kind %q, this reader knows %s and %s", place, format.ErrVersion, kind, snapshot.Kind, format.KindBatchSet)
}

// inspectFile describes one .plf file.
func inspectFile(env *command.Env, path string, dump bool) error {
	if dump && env.JSON {
		return command.Usage("--dump is text; leave out --json")
	}
	if dump {
		f, err := format.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return format.Dump(env.Out, f)
	}
	sections, err := format.Sizes(path)
	if err != nil {
		return err
	}
	sizes := format.FileSizes{Name: path, Sections: sections}
	for _, s := range sections {
		sizes.SizeBytes += s.SizeBytes
	}
	return env.Result(sizes, func(w io.Writer) { sizesText(w, []format.FileSizes{sizes}) })
}

func snapshotText(w io.Writer, d *snapshot.Description) {
	t := command.NewTable(w)
	t.Row("snapshot", d.ID)
	t.Row("nodes", d.NumNodes)
	t.Row("edges", fmt.Sprintf("%d (%s, %d entries stored)", d.NumEdges, d.Direction, d.NumEntries))
	if d.Anonymised {
		t.Row("ids", "anonymised: HMAC-SHA-256 of the input's under a key, 32 hexadecimal digits")
	}
	if len(d.Relations) > 0 {
		t.Row("relations", countsText(d.Relations))
	}
	if len(d.Types) > 0 {
		t.Row("node types", countsText(d.Types))
	}
	t.Row("weighted", d.Weighted)
	t.Row("components", fmt.Sprintf("%d, the largest of %d nodes", d.NumComponents, d.LargestComponent))
	t.Row("isolated nodes", d.IsolatedNodes)
	t.Row("self loops", d.SelfLoops)
	t.Row("input lines", fmt.Sprintf("%d, %d merged as duplicates", d.NumLines, d.DuplicatesMerged))
	t.Row("listed one way only", fmt.Sprintf("%d pairs (%.1f %%)", d.OneDirectional, 100*d.OneDirShare))
	t.Row("degrees", histogramText(d.DegreeHistogram))
	hopsText(t, d)
	if r := d.PageRank; r != nil {
		t.Row("pagerank", fmt.Sprintf("damping %g, %d iterations, the last changed it by %.3g (converged: %t)", r.Damping, r.Iterations, r.Delta, r.Converged))
	}
	if d.Order {
		t.Row("locality order", "by communities within components")
	}
	heldoutText(t, d.Heldout)
	t.Row("updatable", d.Updatable)
	t.Row("features", fmt.Sprintf("%d (norm %s)", d.NumFeatures, d.FeatureNorm))
	if d.Task != "" {
		t.Row("labels", fmt.Sprintf("%s, %d classes, %d nodes unlabelled", d.Task, d.NumClasses, d.Unlabelled))
	}
	for _, s := range d.Splits {
		t.Row("split "+s.Name, fmt.Sprintf("train %d, valid %d, test %d", s.Train, s.Valid, s.Test))
	}
	t.Flush()
	sizesText(w, d.Files)
}

// hopsText writes the sizes of the hop index.
func hopsText(t command.Table, d *snapshot.Description) {
	if h := d.Hop1; h != nil {
		t.Row("hop 1", fmt.Sprintf("%d neighbours in %s, %s of an int32 list, %.2f x the information bound", h.NumEntries, command.Bytes(h.SizeBytes), percentText(h.Int32Ratio), h.BoundRatio))
		for _, b := range h.Buckets {
			t.Row("  "+b.Name, fmt.Sprintf("%d nodes, %d neighbours in %s, %s of an int32 list", b.NumRows, b.NumEntries, command.Bytes(b.SizeBytes), percentText(b.Int32Ratio)))
		}
		t.Row("  shared", command.Bytes(h.SharedBytes))
	}
	if h := d.Hop2; h != nil {
		forced := ""
		if h.Forced {
			forced = fmt.Sprintf(", forced below %d since it would have %d entries", h.Hop2Cap, h.NumUncut)
		}
		t.Row("hop 2", fmt.Sprintf("%d entries in %s, %.2f x hop 1", h.NumEntries, command.Bytes(h.SizeBytes), h.Ratio))
		t.Row("  cap", fmt.Sprintf("%d nodes a row%s; %d rows reach it", h.Cap, forced, h.NumCut))
		t.Row("  sampled", fmt.Sprintf("%d nodes of more than %d neighbours", h.NumSampled, h.ExpandLimit))
	}
}

// countsText lists the largest of names with their counts.
func countsText(list []snapshot.NamedCount) string {
	const most = 10
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b snapshot.NamedCount) int { return cmp.Compare(b.Count, a.Count) })
	var parts []string
	for _, c := range list[:min(len(list), most)] {
		parts = append(parts, fmt.Sprintf("%s %d", strconv.Quote(c.Name), c.Count))
	}
	if n := len(list); n > most {
		parts = append(parts, fmt.Sprintf("%d more", n-most))
	}
	return fmt.Sprintf("%d: %s", len(list), strings.Join(parts, ", "))
}

func percentText(ratio float64) string { return fmt.Sprintf("%.1f %%", 100*ratio) }

// histogramText writes the degree histogram as "0: 3, 1: 10, 2-3: 7".
func histogramText(histogram []int64) string {
	var parts []string
	for k, n := range histogram {
		switch low := int64(1) << max(k-1, 0); {
		case n == 0:
		case k <= 1:
			parts = append(parts, fmt.Sprintf("%d: %d", k, n))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d: %d", low, 2*low-1, n))
		}
	}
	return strings.Join(parts, ", ")
}

func verifyCommand(env *command.Env) *cobra.Command {
	threads, against := 0, ""
	c := &cobra.Command{
		Use:   "verify PATH",
		Short: "Recompute every digest, CRC, bound and cross-reference of an artefact",
		Args:  command.OneArg("the PATH of an artefact"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkThreads(&threads); err != nil {
				return err
			}
			kind, err := format.ManifestKind(args[0])
			if err != nil {
				return err
			}
			if kind != snapshot.Kind && kind != format.KindBatchSet {
				return unknownKind(args[0], kind)
			}
			env.Progress.Step("verify", 0, 0)
			err = command.Interruptible(c.Context(), func() error {
				switch {
				case kind == format.KindBatchSet:
					return verifyBatchSet(args[0], against)
				case against != "":
					return command.Usage("--snapshot is for batch sets, and %s is a snapshot", args[0])
				}
				return snapshot.Verify(args[0], threads)
			})
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			id, err := format.ReadID(args[0])
			if err != nil {
				return err
			}
			r := struct {
				Kind  string        `json:"kind"`
				ID    format.Digest `json:"id"`
				Valid bool          `json:"valid"`
			}{kind, id, true}
			return env.Result(r, func(w io.Writer) {
				fmt.Fprintf(w, "%s: valid %s\n%s\n", args[0], strings.ReplaceAll(kind, "_", " "), id)
			})
		},
	}
	c.Flags().StringVar(&against, "snapshot", "", "of a batch set: also compare it with the snapshot in this `directory`")
	threadsFlag(c, &threads)
	return c
}

func verifyBatchSet(dir, against string) error {
	if err := batch.Verify(dir); err != nil || against == "" {
		return err
	}
	snap, err := snapshot.Open(against)
	if err != nil {
		return err
	}
	defer snap.Close()
	return batch.VerifyAgainst(dir, snap)
}

// boundText writes the bounds of what the type of the rows changes.
func boundText(e *format.RowError) string {
	if e.Relative == 0 {
		return fmt.Sprintf("%.3g", e.Absolute)
	}
	return fmt.Sprintf("%.3g of a number, or %.3g", e.Relative, e.Absolute)
}

func batchSetText(w io.Writer, d *batch.Description) {
	p := &d.Params
	t := command.NewTable(w)
	t.Row("batch set", d.ID)
	t.Row("snapshot", d.SnapshotID)
	t.Row("mode", p.Mode)
	modeText(t, p)
	t.Row("coefficients", strings.Join(p.Norm, ", "))
	t.Row("batches", fmt.Sprintf("%d: %d variants of %d", d.NumBatches, p.Variants, d.BatchesPerVariant))
	t.Row("seeds", d.NumSeeds)
	t.Row("rows", fmt.Sprintf("%d over all batches, at most %d in one", d.NumRows, d.MaxNodes))
	t.Row("sampled edges", d.NumSampledEdges)
	t.Row("store", fmt.Sprintf("%s (%s)", p.Store, p.DType))
	if d.NumHotRows+d.NumGroupRows > 0 {
		t.Row("shared rows", fmt.Sprintf("%d hot, %d of groups of %d batches", d.NumHotRows, d.NumGroupRows, p.Group))
	}
	if e := d.RowError; e != nil {
		t.Row("row error", fmt.Sprintf("at most %.3g; bound %s", e.Largest, boundText(e)))
	}
	t.Row("training batches", fmt.Sprintf("%s, %s a variant", command.Bytes(d.Bytes), command.Bytes(d.BytesPerVariant)))
	if d.Amplification != nil {
		t.Row("amplification", fmt.Sprintf("%.3f of the feature table's %s", *d.Amplification, command.Bytes(d.FeatureTableBytes)))
	}
	t.Row("evaluation blocks", fmt.Sprintf("%d, %s", d.NumEvalBlocks, command.Bytes(d.EvalBytes)))
	t.Row("linked tables", command.Bytes(d.LinkedBytes))
	t.Flush()
	sizesText(w, d.Files)
}
