package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/batch"
	"github.com/prelift/prelift/snapshot"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// checkShard reads --shard, and refuses what doesn't go with it or with --merge.
func (f *batchesFlags) checkShard() error {
	switch {
	case f.merge && f.shard != "":
		return command.Usage("--shard %s and --merge: a part is written first, and merged when all parts are there", f.shard)
	case f.merge && f.dryRun:
		return command.Usage("--merge and --dry-run: the plan is that of the parts; leave --merge out to see it")
	case f.shard == "":
		return nil
	}
	part, err := batch.ParsePart(f.shard, os.Getenv)
	if err != nil {
		return paramError(err)
	}
	f.part = &part
	return nil
}

// partText says what the part asked for is of the plan.
func (f *batchesFlags) partText(plan *batch.Plan) string {
	if f.part == nil {
		return ""
	}
	own, all := f.part.NumFiles(plan)
	return fmt.Sprintf("; part %s writes %d of %d files", f.part, own, all)
}

// partUpToDate answers where the part asked for is there already.
func (f *batchesFlags) partUpToDate(c *cobra.Command, env *command.Env, r *batchesResult, key format.Digest, inputs []string, start time.Time) (done bool, err error) {
	if f.part == nil {
		return false, nil
	}
	dir, err := batch.PartDir(f.out, *f.part)
	if err != nil {
		return false, err
	}
	_, fresh, err := format.UpToDate(c.Context(), dir, batch.KindPart, key, inputs)
	if err != nil || !fresh {
		return false, err
	}
	m, err := batch.ReadPart(dir)
	if err != nil {
		return false, err
	}
	r.UpToDate = true
	return true, f.printPart(env, r, dir, m, start)
}

// writePart builds one part of the set. An interrupted job's finished shards are kept.
func (f *batchesFlags) writePart(c *cobra.Command, env *command.Env, r *batchesResult, snap *snapshot.Snapshot, params format.BatchParams, opt batch.Options, key format.Digest, stamps []format.Stamp, start time.Time) error {
	dir, err := batch.PartDir(f.out, *f.part)
	if err != nil {
		return err
	}
	setKey, err := batch.SetKey(snap.ID, params)
	if err != nil {
		return err
	}
	job, err := format.Begin(dir, batch.KindPart, setKey)
	if err != nil {
		return err
	}
	job.Remember(key, stamps)
	m, err := batch.WritePart(c.Context(), job, snap, params, *f.part, f.request(), opt)
	if err != nil {
		return abort(c, job, err)
	}
	return f.printPart(env, r, dir, m, start)
}

// mergeParts publishes the set of the parts.
func (f *batchesFlags) mergeParts(c *cobra.Command, env *command.Env, r *batchesResult, key format.Digest, stamps []format.Stamp, start time.Time) error {
	job, err := format.Lock(f.out, format.KindBatchSet)
	if err != nil {
		return err
	}
	job.Remember(key, stamps)
	id, m, err := batch.Merge(c.Context(), job, f.request(), stamps[0].SHA256, batch.Options{Progress: env.Progress.Step})
	if err != nil {
		job.Abort(true)
		return err
	}
	return f.print(env, r, &id, m, start)
}

func (f *batchesFlags) printPart(env *command.Env, r *batchesResult, dir string, m *batch.PartManifest, start time.Time) error {
	r.Kind, r.Out, r.Shard = batch.KindPart, dir, m.Part().String()
	r.SnapshotID, r.Store, r.Order = m.Set.SnapshotID, m.Set.Params.Store, m.Set.Params.Order
	r.NumBatches, r.NumSeeds, r.NumRows, r.NumSampledEdges = int64(m.NumBatches), int64(m.Set.NumSeeds), int64(m.NumRows), int64(m.NumSampledEdges)
	r.Bytes, r.BytesPerVariant, r.EvalBytes, r.FeatureTableBytes = int64(m.Bytes), int64(m.Bytes)/int64(m.Set.Params.Variants), int64(m.EvalBytes), int64(m.Set.FeatureTableBytes)
	r.Seconds = time.Since(start).Seconds()
	return env.Result(r, func(w io.Writer) {
		if r.UpToDate {
			fmt.Fprintf(w, "%s: up to date\n", dir)
			return
		}
		fmt.Fprintf(w, "%s: written in %.1f s: %d batches, %s, and %s of evaluation blocks; when all %d parts are there, the same command with --merge makes the set\n",
			dir, r.Seconds, r.NumBatches, command.Bytes(r.Bytes), command.Bytes(r.EvalBytes), m.Count)
	})
}

// abort ends a job that failed. What it finished stays for a rerun after an interruption, and where there was no room.
func abort(c *cobra.Command, job *format.Job, err error) error {
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT} {
		if errors.Is(err, full) {
			job.Abort(true)
			return fmt.Errorf("%w; finished files stay in %s: make room and run again, or remove it", err, job.Dir)
		}
	}
	job.Abort(c.Context().Err() != nil)
	return err
}
