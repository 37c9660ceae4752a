package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/trainer/internal/metrics"
	"github.com/prelift/prelift/trainer/internal/model"
	"github.com/prelift/prelift/trainer/internal/optim"
	"github.com/prelift/prelift/trainer/internal/run"
)

func trainCommand(env *command.Env) *cobra.Command {
	var f setFlags
	var c run.Config
	var kind, optimizer, decay, metric, device, precision string
	cmd := &cobra.Command{
		Use:   "train --batches DIR --out RUN [--model gcn|sage|mlp (default gcn)]",
		Short: "Train a model; --resume goes on with an interrupted run, or to more epochs",
		Long: `Train a model on a batch set and keep the run in a directory: params.yaml, metrics.jsonl,
best.safetensors (best epoch by the metric on validation, the first of equals), last.safetensors,
result.json, and checkpoint/ with all that --resume needs. --out must be new or empty, with --resume a run.
Binary labels train one logit, others one a class.
Results are the same bits for any --threads and for a run that was interrupted and resumed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.Out == "" {
				return command.Usage("--out is needed")
			}
			if c.Resume {
				if err := takeParams(cmd, c.Out); err != nil {
					return err
				}
			}
			var err error
			if c.Pin, err = f.check(); err != nil {
				return err
			}
			if err := checkDevice(device); err != nil {
				return err
			}
			if precision != "f32" {
				return command.Usage("--precision %q: this build computes in f32", precision)
			}
			c.Batches, c.Features, c.Threads, c.Mem, c.Scratch = f.batches, f.features, f.threads, int64(f.mem), f.scratch
			c.Model, c.Optimizer, c.DecayLayers, c.Metric = model.Kind(kind), optim.Kind(optimizer), optim.DecayLayers(decay), metrics.Name(metric)
			if err := c.Check(); err != nil {
				return command.Usage("%v; run `%s --help`", err, cmd.CommandPath())
			}
			c.Notice = func(s string) { env.Note("note", s) }
			c.Progress = env.Progress.Step
			result, err := run.Train(cmd.Context(), c)
			if err != nil {
				return err
			}
			return env.Result(result, func(w io.Writer) { trainText(w, result) })
		},
	}
	f.add(cmd)
	f.addEval(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.Out, "out", "", "run `directory` (needed)")
	flags.BoolVar(&c.Resume, "resume", false, "go on with the run in --out; flags not given are the run's")
	flags.StringVar(&kind, "model", "gcn", "gcn, sage or mlp")
	flags.IntVar(&c.Hidden, "hidden", 256, "width of the hidden layers")
	flags.IntVar(&c.Layers, "layers", 0, "layers; 0: as many as the batches have hops, 2 where they serve any number (modes full, cluster, ppr, khop)")
	flags.IntVar(&c.Epochs, "epochs", 100, "epochs to train, those of a resumed run included")
	flags.Float64Var(&c.LR, "lr", 0.01, "learning rate")
	flags.Float64Var(&c.WeightDecay, "weight-decay", 0, "weight decay")
	flags.StringVar(&decay, "weight-decay-layers", "all", "layers that decay: all, or first (as in the published GCN)")
	flags.Float64Var(&c.Dropout, "dropout", 0.5, "dropout after each hidden layer")
	flags.Float64Var(&c.InputDropout, "input-dropout", -1, "dropout on the features; below 0: --dropout for gcn, none for others")
	flags.StringVar(&optimizer, "optimizer", "adam", "adam (decay is L2) or adamw (decoupled)")
	flags.StringVar(&precision, "precision", "f32", "f32")
	flags.StringVar(&metric, "metric", "", "accuracy, macro-f1, micro-f1 or roc-auc (default: by task)")
	flags.IntVar(&c.Patience, "patience", 0, "stop after so many epochs without a better one; 0: never")
	flags.IntVar(&c.EvalEvery, "eval-every", run.Auto, "epochs from one evaluation to the next; 0: about a tenth of the work")
	flags.IntVar(&c.CheckpointEvery, "checkpoint-every", run.Auto, "epochs from one checkpoint to the next; 0: by the work of an epoch")
	flags.IntVar(&c.Split, "split", -1, "split `column`, from 0, of a set that carries all; below 0: the first")
	flags.StringVar(&device, "device", "cpu", "cpu")
	flags.Uint64Var(&c.Seed, "seed", 1, "seed of weights, dropout and batch order")
	return cmd
}

// takeParams gives the flags that the command line left out the values of the run in out,
// from its params.yaml.
func takeParams(cmd *cobra.Command, out string) error {
	path := filepath.Join(out, run.ParamsFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Train says whether there is a run
	}
	if err != nil {
		return err
	}
	return command.SetFlags(cmd, b, path)
}

// checkDevice refuses what this build can't compute on.
func checkDevice(device string) error {
	switch {
	case device == "cpu":
		return nil
	case device == "cuda" || strings.HasPrefix(device, "cuda:"):
		return command.Usage("--device %s: this build has no CUDA; it computes on cpu", device)
	}
	return command.Usage("--device %q is not known; this build computes on cpu", device)
}

func trainText(w io.Writer, r *run.Result) {
	t := command.NewTable(w)
	t.Row("model", r.Model)
	t.Row("epochs", r.Epochs)
	t.Row("best epoch", r.BestEpoch)
	t.Row("loss of the last epoch", number(r.TrainLoss))
	t.Row("validation "+string(r.Metric), number(r.ValMetric))
	t.Row("test "+string(r.Metric), number(r.TestMetric))
	if r.LoadCount == 0 {
		t.Row("time", fmt.Sprintf("%s, no epoch trained, evaluations %s", seconds(r.Seconds), seconds(r.EvalSeconds)))
	} else {
		uses := "later use"
		if r.LoadFirstUse {
			uses = "first use"
		}
		t.Row("time", fmt.Sprintf("%s, an epoch %s, evaluations %s", seconds(r.Seconds), seconds(r.EpochSeconds), seconds(r.EvalSeconds)))
		t.Row("batch load", fmt.Sprintf("p50 %.3f ms, p99 %.3f ms of %s, stall %.1f %%", r.LoadMS.P50, r.LoadMS.P99, run.Count(r.LoadCount, uses), 100*r.StallFraction))
	}
	t.Row("peak memory", command.Bytes(r.PeakRSSBytes))
	t.Row("threads", fmt.Sprintf("%d, kernels %s", r.Threads, r.KernelSet))
	t.Row("snapshot", r.SnapshotID)
	t.Row("batch set", r.BatchSetID)
	t.Row("checkpoint", r.Checkpoint)
	t.Flush()
}
