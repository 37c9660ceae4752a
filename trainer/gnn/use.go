package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/trainer/internal/metrics"
	"github.com/prelift/prelift/trainer/internal/run"
)

// useConfig turns the flags of a command that applies a run's model into its config.
func useConfig(env *command.Env, f *setFlags, runDir string) (run.UseConfig, error) {
	c := run.UseConfig{Run: runDir, Split: -1}
	if runDir == "" {
		return c, command.Usage("--run is needed")
	}
	var err error
	if c.Pin, err = f.check(); err != nil {
		return c, err
	}
	c.Batches, c.Features, c.Threads, c.Mem, c.Scratch = f.batches, f.features, f.threads, int64(f.mem), f.scratch
	c.Notice = func(s string) { env.Note("note", s) }
	c.Progress = env.Progress.Step
	return c, nil
}

func evalCommand(env *command.Env) *cobra.Command {
	var f setFlags
	var runDir string
	var split int
	cmd := &cobra.Command{
		Use:   "eval --run RUN --batches DIR",
		Short: "Judge a run's best model exactly, on each part of a split",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := useConfig(env, &f, runDir)
			if err != nil {
				return err
			}
			c.Split = split
			e, err := run.Evaluate(cmd.Context(), c)
			if err != nil {
				return err
			}
			return env.Result(e, func(w io.Writer) { evalText(w, e) })
		},
	}
	f.add(cmd)
	f.addEval(cmd)
	cmd.Flags().StringVar(&runDir, "run", "", "run `directory` (needed)")
	cmd.Flags().IntVar(&split, "split", -1, "split `column`, from 0; below 0: the run's")
	return cmd
}

func evalText(w io.Writer, e *run.Evaluation) {
	t := command.NewTable(w)
	t.Row("model", e.Model)
	t.Row("best epoch", e.BestEpoch)
	for _, part := range []string{"train", "valid", "test"} {
		p := e.Parts[part]
		t.Row(part+" nodes", p.NumNodes)
		for _, metric := range slices.Sorted(maps.Keys(p.Values)) {
			t.Row(part+" "+string(metric), number(p.Values[metrics.Name(metric)]))
		}
	}
	t.Row("time", seconds(e.Seconds))
	t.Flush()
}

func predictCommand(env *command.Env) *cobra.Command {
	var f setFlags
	var runDir, out string
	cmd := &cobra.Command{
		Use:   "predict --run RUN --batches DIR --out FILE.parquet|FILE.csv",
		Short: "Write a run's predictions for every node, with external ids",
		Long: `Write a table with a row for each node: id, prediction (the likeliest class; for several labels
a column y_NAME each) and p_NAME, the probability of each class as float32. Rows come in node order, that is
sorted by id. The name of --out says what is written, .parquet or .csv; its directory is made where it is missing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := useConfig(env, &f, runDir)
			if err != nil {
				return err
			}
			if out == "" {
				return command.Usage("--out is needed")
			}
			if err := run.CheckOut(out); err != nil {
				return command.Usage("%v", err)
			}
			p, err := run.Predict(cmd.Context(), c, out)
			if err != nil {
				return err
			}
			return env.Result(p, func(w io.Writer) {
				fmt.Fprintf(w, "%s in %s, %s\n", run.Count(p.NumNodes, "row"), p.Out, seconds(p.Seconds))
			})
		},
	}
	f.add(cmd)
	f.addEval(cmd)
	cmd.Flags().StringVar(&runDir, "run", "", "run `directory` (needed)")
	cmd.Flags().StringVar(&out, "out", "", "`file` to write, .parquet or .csv (needed)")
	return cmd
}

func benchCommand(env *command.Env) *cobra.Command {
	var f setFlags
	var layers int
	cmd := &cobra.Command{
		Use:   "bench --batches DIR",
		Short: "Measure how fast batches load, with a warm page cache",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := f.check(); err != nil {
				return err
			}
			r, err := run.Bench(cmd.Context(), run.BenchConfig{
				Batches: f.batches, Features: f.features, Layers: layers, Threads: f.threads,
				Notice: func(s string) { env.Note("note", s) }, Progress: env.Progress.Step,
			})
			if err != nil {
				return err
			}
			return env.Result(r, func(w io.Writer) { benchText(w, r) })
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&layers, "layers", 0, "layers to load blocks for; 0: all")
	return cmd
}

func benchText(w io.Writer, r *run.BenchResult) {
	t := command.NewTable(w)
	t.Row("batches", fmt.Sprintf("%d, %s, page cache %s", r.NumBatches, command.Bytes(r.Bytes), r.PageCache))
	t.Row("open", seconds(r.OpenSeconds))
	t.Row("first use", fmt.Sprintf("p50 %.3f ms, p99 %.3f ms, %.2f GB/s (map, CRC, bounds)", r.FirstUse.LoadMS.P50, r.FirstUse.LoadMS.P99, r.FirstUseGBs))
	t.Row("later use", fmt.Sprintf("p50 %.3f ms, p99 %.3f ms (head, sections)", r.LaterUse.LoadMS.P50, r.LaterUse.LoadMS.P99))
	t.Row("gather", fmt.Sprintf("p50 %.3f ms, p99 %.3f ms", r.LaterUse.GatherMS.P50, r.LaterUse.GatherMS.P99))
	t.Row("peak memory", command.Bytes(r.PeakRSSBytes))
	t.Flush()
}
