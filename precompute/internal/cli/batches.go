package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/batch"
	"github.com/prelift/prelift/snapshot"
	"github.com/spf13/cobra"
)

// batchesFlags are the flags of `precompute batches`.
type batchesFlags struct {
	snapshot, out    string
	params           format.BatchParams
	seed             int64
	maxAmplification float64
	modes            modeFlags
	threads          int
	mem              string
	memBytes         int64
	dryRun           bool
	shard            string
	part             *batch.Part // of shard; nil for the whole set
	merge            bool
}

func batchesCommand(env *command.Env) *cobra.Command {
	f := &batchesFlags{params: batch.Defaults()}
	p := &f.params
	c := &cobra.Command{
		Use:   "batches --snapshot DIR --out DIR",
		Short: "Cut batch files from a snapshot",
		Long:  "batches cuts a batch set from a snapshot: training batches, evaluation blocks and the tables a trainer needs. It prints what it will write before it writes a byte.",
		Args:  command.NoArgs,
		Example: `  precompute batches --snapshot snap --out set --fanout 10,5 --variants 4
  precompute batches --snapshot snap --out set --mode full
  precompute batches --snapshot snap --out set --mode labor --fanout 10,10
  precompute batches --snapshot snap --out set --mode cluster --cluster-size 256 --clusters-per-batch 16
  precompute batches --snapshot snap --out set --mode ppr --top-k 32 --ppr-select batch
  precompute batches --snapshot snap --out set --shard 0/2   (and 1/2, at the same time or elsewhere)
  precompute batches --snapshot snap --out set --merge       (the two parts to one set)`,
		RunE: func(c *cobra.Command, _ []string) error { return runBatches(c, env, f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.snapshot, "snapshot", "", "snapshot `directory` to cut from")
	fl.StringVar(&f.out, "out", "", "batch set `directory` to make")
	fl.StringVar(&p.Task, "task", p.Task, "what the batches are for: node")
	fl.StringVar(&p.Mode, "mode", p.Mode, "fanout (sampled neighbourhoods), labor (the same, whose draws share nodes), full (the whole graph is one batch), cluster, ppr or khop (induced subgraphs)")
	fl.IntSliceVar(&p.Fanout, "fanout", p.Fanout, "neighbours to take at hop 1, 2, ...; -1 takes all (see --hub-cap)")
	f.modes.add(fl, p)
	fl.IntVar(&p.BatchSize, "batch-size", p.BatchSize, "seeds of a batch")
	fl.IntVar(&p.Variants, "variants", p.Variants, "independent draws of an epoch's batches")
	fl.StringSliceVar(&p.Norm, "norm", p.Norm, "coefficient kinds to store: gcn, mean, sum, none")
	fl.StringVar(&p.Transpose, "transpose", p.Transpose, "blocks that come with their transpose: auto, all or inner")
	fl.StringVar(&p.Store, "store", p.Store, "feature rows: ids (refer to the table), packed (in the batches) or auto")
	fl.StringVar(&p.DType, "dtype", p.DType, "type of the feature rows, in batches and in the set's feature table: f32, f16, bf16 or int8 (a scale a column)")
	fl.Float64Var(&p.HotRows, "hot-rows", p.HotRows, "packed: `share` of the nodes, 0 to 1, the most used ones, whose rows are stored once for the set")
	fl.IntVar(&p.Group, "group", p.Group, "packed: so many batches, of one file, share the rows that two or more of them have")
	fl.StringVar(&p.Eval, "eval", p.Eval, "evaluation blocks: layerwise (exact, full neighbourhoods) or none")
	fl.IntVar(&p.Split, "split", p.Split, "split column, from 0, where the snapshot has several")
	fl.StringVar(&p.Order, "order", p.Order, "order of the seeds: auto, locality or random")
	fl.Int64Var(&f.seed, "seed", int64(p.Seed), "seed of every draw")
	fl.IntVar(&p.BatchesPerFile, "batches-per-file", p.BatchesPerFile, "batches in a file")
	fl.StringVar(&p.IndexCodec, "index-codec", p.IndexCodec, "how node lists and blocks are stored: bits (less than half as large, decoded as batches load) or raw (used where it is mapped)")
	fl.StringVar(&p.LinkFeatures, "link-features", p.LinkFeatures, "feature table in the set: auto (reflink, hard link or copy), copy or none")
	fl.Float64Var(&f.maxAmplification, "max-amplification", 0, "most bytes of one variant over bytes of the feature table; 0 for no bound")
	fl.StringVar(&f.shard, "shard", "", "write part `i/n` of the set (i from 0) into OUT.parts; auto/n takes i from "+batch.IndexVariable)
	fl.BoolVar(&f.merge, "merge", false, "check the parts that --shard wrote with the same flags, and publish the set")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print what would be written, and write nothing")
	fl.StringVar(&f.mem, "mem", memAuto, "most `memory` for buffers, as 4G; auto is three quarters of what is free")
	threadsFlag(c, &f.threads)
	return c
}

// maxPackBytes is as much as the order of reading is worth: it holds all batches of some files.
const maxPackBytes = 4 << 30

// batchesResult is what --json prints.
type batchesResult struct {
	Kind              string         `json:"kind"`
	ID                *format.Digest `json:"id"` // null after --dry-run
	SnapshotID        format.Digest  `json:"snapshot_id"`
	Out               string         `json:"out"`
	Shard             string         `json:"shard,omitempty"` // i/n; counts and bytes are then of the part
	UpToDate          bool           `json:"up_to_date"`
	Seconds           float64        `json:"seconds"`
	NumBatches        int64          `json:"num_batches"`
	NumSeeds          int64          `json:"num_seeds"`
	NumRows           int64          `json:"num_rows"`
	NumSampledEdges   int64          `json:"num_sampled_edges"`
	Store             string         `json:"store"`
	Order             string         `json:"order"`
	Bytes             int64          `json:"bytes"`
	BytesPerVariant   int64          `json:"bytes_per_variant"`
	EvalBytes         int64          `json:"eval_bytes"`
	FeatureTableBytes int64          `json:"feature_table_bytes"`
	Predicted         *predicted     `json:"predicted"` // null when up to date
}

// predicted are the sizes that were printed before a byte was written.
type predicted struct {
	Exact           bool    `json:"exact"`
	Bytes           int64   `json:"bytes"`
	BytesPerVariant int64   `json:"bytes_per_variant"`
	EvalBytes       int64   `json:"eval_bytes"`
	Amplification   float64 `json:"amplification"`
}

func runBatches(c *cobra.Command, env *command.Env, f *batchesFlags) error {
	start := time.Now()
	if err := f.check(); err != nil {
		return err
	}
	key, err := f.key()
	if err != nil {
		return err
	}
	// Before the manifest is digested as an input, which says less of a place without one, and waits for a pipe's other end.
	if _, _, err := snapshot.ReadManifest(f.snapshot); err != nil {
		return err
	}
	inputs := []string{filepath.Join(f.snapshot, format.ManifestName)}
	r := &batchesResult{Kind: format.KindBatchSet, Out: f.out}
	if !f.dryRun {
		if done, err := f.upToDate(c, env, r, key, inputs, start); done || err != nil {
			return err
		}
	}
	stamps, err := format.StampInputs(c.Context(), inputs, nil)
	if err != nil {
		return err
	}
	if f.merge {
		return f.mergeParts(c, env, r, key, stamps, start)
	}
	snap, err := snapshot.Open(f.snapshot)
	if err != nil {
		return err
	}
	defer snap.Close()
	if stamps[0].SHA256 != snap.ID { // an id is the digest of the manifest
		return fmt.Errorf("%s was replaced while it was read; run the same command again", f.snapshot)
	}
	opt := batch.Options{Threads: f.threads, Progress: env.Progress.Step, MaxAmplification: f.maxAmplification, PackBytes: min(f.memBytes/2, maxPackBytes), CopyFiles: f.params.LinkFeatures == batch.LinkCopy}
	params, plan, err := batch.Resolve(c.Context(), snap, f.params, opt)
	if err != nil {
		return paramError(err)
	}
	r.Predicted = &predicted{plan.Exact, plan.Bytes, plan.BytesPerVariant, plan.EvalBytes, plan.Amplification}
	env.Progress.Done()
	fmt.Fprintln(env.Err, planText(&params, plan)+f.partText(plan))
	if f.dryRun {
		return f.print(env, r, nil, plannedSet(snap, params, plan), start)
	}
	f.modes.noteUnused(c, env, &f.params)
	opt.Plan = plan
	if f.part != nil {
		return f.writePart(c, env, r, snap, params, opt, key, stamps, start)
	}
	id, m, err := f.write(c, snap, params, opt, key, stamps)
	if err != nil {
		return err
	}
	return f.print(env, r, &id, m, start)
}

// write builds and publishes the set. An interrupted job's finished shards are kept.
func (f *batchesFlags) write(c *cobra.Command, snap *snapshot.Snapshot, params format.BatchParams, opt batch.Options, key format.Digest, stamps []format.Stamp) (format.Digest, *format.BatchSet, error) {
	setKey, err := batch.SetKey(snap.ID, params)
	if err != nil {
		return setKey, nil, err
	}
	job, err := format.Begin(f.out, format.KindBatchSet, setKey)
	if err != nil {
		return setKey, nil, err
	}
	job.Remember(key, stamps)
	id, m, err := batch.Write(c.Context(), job, snap, params, opt)
	if err != nil {
		err = abort(c, job, err)
	}
	return id, m, paramError(err)
}

// upToDate answers where the set, or the part asked for, is there already, of the same request and snapshot.
func (f *batchesFlags) upToDate(c *cobra.Command, env *command.Env, r *batchesResult, key format.Digest, inputs []string, start time.Time) (done bool, err error) {
	id, fresh, err := format.UpToDate(c.Context(), f.out, format.KindBatchSet, key, inputs)
	if err != nil {
		return false, err
	}
	if !fresh {
		return f.partUpToDate(c, env, r, key, inputs, start)
	}
	_, m, err := format.ReadBatchSet(f.out)
	if err != nil {
		return false, err
	}
	if f.merge {
		if err := batch.DiscardParts(f.out); err != nil {
			return false, err
		}
	}
	r.UpToDate = true
	return true, f.print(env, r, &id, m, start)
}

func (f *batchesFlags) check() error {
	if err := needFlag("snapshot", f.snapshot); err != nil {
		return err
	}
	if err := needFlag("out", f.out); err != nil {
		return err
	}
	f.out = filepath.Clean(f.out)
	if err := f.checkShard(); err != nil {
		return err
	}
	if !(f.maxAmplification >= 0) || math.IsInf(f.maxAmplification, 0) {
		return command.Usage("--max-amplification %v: want 0 or more", f.maxAmplification)
	}
	var err error
	if f.memBytes, err = memoryOf(f.mem); err != nil {
		return err
	}
	f.params.Seed = format.Int(f.seed)
	if err := f.modes.settle(&f.params); err != nil {
		return err
	}
	return checkThreads(&f.threads)
}

// key digests what was asked for; the snapshot's manifest is the one input.
func (f *batchesFlags) key() (format.Digest, error) {
	return format.DigestOf(struct {
		Kind             string
		Version          int
		Params           format.BatchParams
		MaxAmplification float64
	}{format.KindBatchSet, format.Version, f.params, f.maxAmplification})
}

func (f *batchesFlags) request() batch.Request {
	return batch.Request{Params: f.params, MaxAmplification: f.maxAmplification}
}

func (f *batchesFlags) print(env *command.Env, r *batchesResult, id *format.Digest, m *format.BatchSet, start time.Time) error {
	r.ID, r.SnapshotID, r.Store, r.Order = id, m.SnapshotID, m.Params.Store, m.Params.Order
	r.NumBatches, r.NumSeeds, r.NumRows, r.NumSampledEdges = int64(m.NumBatches), int64(m.NumSeeds), int64(m.NumRows), int64(m.NumSampledEdges)
	r.Bytes, r.BytesPerVariant, r.EvalBytes, r.FeatureTableBytes = int64(m.Bytes), int64(m.BytesPerVariant), int64(m.EvalBytes), int64(m.FeatureTableBytes)
	r.Seconds = time.Since(start).Seconds()
	return env.Result(r, func(w io.Writer) {
		switch {
		case id == nil:
			fmt.Fprintf(w, "%s: nothing written (--dry-run)\n", f.out)
			return
		case r.UpToDate:
			fmt.Fprintf(w, "%s: up to date\n", f.out)
		default:
			fmt.Fprintf(w, "%s: written in %.1f s: %d batches, %s, and %s of evaluation blocks\n", f.out, r.Seconds, r.NumBatches, command.Bytes(r.Bytes), command.Bytes(r.EvalBytes))
		}
		fmt.Fprintln(w, *id)
	})
}

// planText says in one line what will be written.
func planText(p *format.BatchParams, plan *batch.Plan) string {
	about := "about "
	if plan.Exact {
		about = ""
	}
	text := fmt.Sprintf("plan: %d batches of %d variants, store %s, order %s: %s%s (%s a variant", plan.NumBatches, p.Variants, storeText(p), p.Order, about, command.Bytes(plan.Bytes), command.Bytes(plan.BytesPerVariant))
	if plan.FeatureTableBytes > 0 {
		text += fmt.Sprintf(", %.3g x the feature table", plan.Amplification)
	}
	return text + fmt.Sprintf("), %s%s of evaluation blocks, %s of linked tables", about, command.Bytes(plan.EvalBytes), command.Bytes(plan.LinkedBytes))
}

// storeText says how feature rows are stored, as "packed f16, 0.1 hot".
func storeText(p *format.BatchParams) string {
	text := p.Store
	if p.DType != "f32" {
		text += " " + p.DType
	}
	if p.HotRows > 0 {
		text += fmt.Sprintf(", %g of the rows hot", p.HotRows)
	}
	if p.Group > 0 {
		text += fmt.Sprintf(", groups of %d", p.Group)
	}
	return text
}

// plannedSet is what a dry run knows of the manifest.
func plannedSet(snap *snapshot.Snapshot, p format.BatchParams, plan *batch.Plan) *format.BatchSet {
	return &format.BatchSet{
		SnapshotID: snap.ID, Params: p,
		NumBatches: format.Int(plan.NumBatches), NumSeeds: format.Int(plan.NumSeeds), NumRows: format.Int(plan.NumRows), NumSampledEdges: format.Int(plan.NumSampledEdges),
		Bytes: format.Int(plan.Bytes), BytesPerVariant: format.Int(plan.BytesPerVariant), EvalBytes: format.Int(plan.EvalBytes), FeatureTableBytes: format.Int(plan.FeatureTableBytes),
	}
}

// paramError gives impossible requests their exit code.
func paramError(err error) error {
	var fault *batch.ParamError
	if errors.As(err, &fault) {
		return command.Usage("%v", err)
	}
	return err
}
