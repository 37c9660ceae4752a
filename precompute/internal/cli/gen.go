package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/synth"
	"github.com/spf13/cobra"
)

// genResult is what `precompute gen --json` prints.
type genResult struct {
	Kind    string       `json:"kind"`
	Out     string       `json:"out"`
	Seconds float64      `json:"seconds"`
	Files   []synth.File `json:"files"`
}

// defaultClasses is what a block model of as many nodes has without --classes.
const defaultClasses = 8

func genCommand(env *command.Env) *cobra.Command {
	opt, kind, out := synth.Options{}, "", ""
	c := &cobra.Command{
		Use:     "gen --kind sbm|rmat|kg --nodes N --edges M --out DIR",
		Short:   "Generate a synthetic graph for demos, tests and benchmarks",
		Args:    command.NoArgs,
		Example: `  precompute gen --kind sbm --nodes 100000 --edges 1000000 --features 64 --classes 16 --seed 1 --out graph`,
		RunE: func(c *cobra.Command, _ []string) error {
			start := time.Now()
			if err := needFlag("out", out); err != nil {
				return err
			}
			if err := checkThreads(&opt.Threads); err != nil {
				return err
			}
			opt.Kind = synth.Kind(kind)
			if opt.Kind == synth.KindSBM && !c.Flags().Changed("classes") {
				opt.NumClasses = int(min(defaultClasses, max(1, opt.NumNodes)))
			}
			if err := opt.Validate(); err != nil {
				return command.Usage("%v", err)
			}
			if err := synth.Generate(c.Context(), out, opt, env.Progress.Step); err != nil {
				return err
			}
			info, err := synth.ReadInfo(out)
			if err != nil {
				return err
			}
			r := genResult{kind, out, time.Since(start).Seconds(), info.Files}
			return env.Result(r, func(w io.Writer) {
				fmt.Fprintf(w, "%s: generated in %.1f s\n", out, r.Seconds)
				t := command.NewTable(w)
				for _, f := range r.Files {
					t.Row("  "+f.Name, fmt.Sprintf("%d rows\t%s", f.Rows, command.Bytes(f.SizeBytes)))
				}
				t.Flush()
			})
		},
	}
	fl := c.Flags()
	fl.StringVar(&kind, "kind", string(synth.KindSBM), "sbm (degree-corrected block model), rmat or kg (triples)")
	fl.Int64Var(&opt.NumNodes, "nodes", 100_000, "nodes, or entities")
	fl.Int64Var(&opt.NumEdges, "edges", 1_000_000, "edges, or triples")
	fl.IntVar(&opt.NumFeatures, "features", 0, "feature columns")
	fl.IntVar(&opt.NumClasses, "classes", 0, fmt.Sprintf("classes (default %d for sbm, fewer where there are fewer nodes, none for rmat)", defaultClasses))
	fl.IntVar(&opt.NumRels, "rels", 0, "relations of a kg")
	fl.Float64Var(&opt.TrainFraction, "train-fraction", synth.DefaultTrainFraction, "share of the nodes to train on")
	fl.Uint64Var(&opt.Seed, "seed", 1, "seed of every draw")
	fl.StringVar(&out, "out", "", "`directory` to make")
	threadsFlag(c, &opt.Threads)
	return c
}
