package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/batch"
	"github.com/prelift/prelift/snapshot"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// payOffShare is the pay-off rule: precomputing pays when its own time is under this share of training time times runs.
const payOffShare = 0.3

// adviseFlags are the flags of `precompute advise`.
type adviseFlags struct {
	snapshot, tmp string
	trainHours    float64
	runs          int
	variants      int
	split         int
	seconds       float64
	threads       int
}

func adviseCommand(env *command.Env) *cobra.Command {
	f := &adviseFlags{}
	c := &cobra.Command{
		Use:   "advise --snapshot DIR [--train-hours H --runs R]",
		Short: "Say which batches to cut, what they will take, and whether that pays",
		Long: "advise chooses hops, fanout and batch size by the size of the graph, cuts and writes a part of such batches, and predicts from that what all of them will take on this " +
			"machine, beside alternatives. With --train-hours it says whether precomputing pays: it does when its own time is under 0.3 x training time x runs. It ends with the command to run.",
		Args: command.NoArgs,
		Example: `  precompute advise --snapshot snap
  precompute advise --snapshot snap --train-hours 0.5 --runs 20`,
		RunE: func(c *cobra.Command, _ []string) error { return runAdvise(c, env, f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.snapshot, "snapshot", "", "snapshot `directory` to advise on")
	fl.Float64Var(&f.trainHours, "train-hours", 0, "hours that one training run takes; without it, how many would make precomputing pay")
	fl.IntVar(&f.runs, "runs", 1, "training runs that will use the batches")
	fl.IntVar(&f.variants, "variants", batch.Defaults().Variants, "independent draws of an epoch's batches, as batches has it")
	fl.IntVar(&f.split, "split", batch.SplitUnset, "split column, from 0, where the snapshot has several (default the first)")
	fl.Float64Var(&f.seconds, "seconds", 0.5, "about how long to time each setting")
	fl.StringVar(&f.tmp, "tmp", "", "`directory` to write the timed batches to, at most some 64 MiB a thread, removed again (default the system's)")
	threadsFlag(c, &f.threads)
	return c
}

// advice is what --json prints.
type advice struct {
	Kind          string         `json:"kind"`
	SnapshotID    format.Digest  `json:"snapshot_id"`
	NumNodes      int64          `json:"num_nodes"`
	NumEdges      int64          `json:"num_edges"`
	NumFeatures   int64          `json:"num_features"`
	NumSeeds      int64          `json:"num_seeds"`
	Labelled      bool           `json:"labelled"` // false: the figures are for every node as a seed
	Rule          string         `json:"rule"`
	Threads       int            `json:"threads"`
	Settings      []advisedSet   `json:"settings"` // the advised one first
	Precompute    float64        `json:"precompute_seconds"`
	TrainHours    *float64       `json:"train_hours"` // null where not given
	Runs          int            `json:"runs"`
	BudgetSeconds *float64       `json:"budget_seconds"`        // 0.3 x training time x runs
	Pays          *bool          `json:"pays"`                  // null without train_hours
	PaysFromHours float64        `json:"pays_from_train_hours"` // of all runs together
	FreeBytes     int64          `json:"free_bytes"`            // where the snapshot lies
	Command       []string       `json:"command"`               // after the program's name; null without labels
	Measured      adviceMeasured `json:"measured"`
	Assumptions   []string       `json:"assumptions"`
}

// advisedSet is one row of the table.
type advisedSet struct {
	Advised         bool    `json:"advised"`
	Mode            string  `json:"mode"`
	Fanout          []int   `json:"fanout"`
	BatchSize       int     `json:"batch_size"`
	Variants        int     `json:"variants"`
	Store           string  `json:"store"`
	Order           string  `json:"order"`
	Exact           bool    `json:"exact"` // sizes, of training batches
	NumBatches      int     `json:"num_batches"`
	Bytes           int64   `json:"bytes"`
	BytesPerVariant int64   `json:"bytes_per_variant"`
	EvalBytes       int64   `json:"eval_bytes"`
	LinkedBytes     int64   `json:"linked_bytes"`
	Amplification   float64 `json:"amplification"`
	Seconds         float64 `json:"seconds"`
}

// adviceMeasured says what the times come of.
type adviceMeasured struct {
	OpenSeconds      float64 `json:"open_seconds"`
	PlanSeconds      float64 `json:"plan_seconds"`
	Workers          int     `json:"workers"`
	Batches          int     `json:"batches"`
	Seeds            int     `json:"seeds"`
	SecondsPerBatch  float64 `json:"seconds_per_batch"`
	EvalBytesPerSec  float64 `json:"eval_bytes_per_second"`
	DigestBytesPerMs float64 `json:"digest_bytes_per_ms"`
}

func runAdvise(c *cobra.Command, env *command.Env, f *adviseFlags) error {
	if err := f.check(c); err != nil {
		return err
	}
	start := time.Now()
	snap, err := snapshot.Open(f.snapshot)
	if err != nil {
		return err
	}
	defer snap.Close()
	opened := time.Since(start).Seconds()
	a, err := f.advise(c.Context(), env, snap, opened)
	if err != nil {
		return paramError(err)
	}
	return env.Result(a, func(w io.Writer) { a.text(w) })
}

func (f *adviseFlags) check(c *cobra.Command) error {
	if err := needFlag("snapshot", f.snapshot); err != nil {
		return err
	}
	if !(f.trainHours >= 0) || math.IsInf(f.trainHours, 0) || c.Flags().Changed("train-hours") && f.trainHours == 0 {
		return command.Usage("--train-hours %v: want a number of hours over 0", f.trainHours)
	}
	if f.runs < 1 {
		return command.Usage("--runs %d: want 1 or more", f.runs)
	}
	if !(f.seconds > 0 && f.seconds <= 600) {
		return command.Usage("--seconds %v: want more than 0, and at most 600", f.seconds)
	}
	if err := checkTmp(f.tmp); err != nil {
		return err
	}
	return checkThreads(&f.threads)
}

// advise times the settings and judges them.
func (f *adviseFlags) advise(ctx context.Context, env *command.Env, snap *snapshot.Snapshot, openSeconds float64) (*advice, error) {
	m := &snap.Manifest
	p, rule := batch.Policy(snap.NumNodes())
	if p.Variants, p.Split = f.variants, f.split; f.split == batch.SplitUnset && len(m.Splits) > 1 {
		p.Split = 0
	}
	fanouts, full := batch.Alternatives(snap.NumNodes())
	opt := batch.TrialOptions{Threads: f.threads, TmpDir: f.tmp, Seconds: f.seconds, Progress: env.Progress.Step}
	trials, err := batch.Try(ctx, snap, p, fanouts, opt)
	if err != nil {
		return nil, err
	}
	if full {
		whole := p
		whole.Mode = batch.ModeFull
		more, err := batch.Try(ctx, snap, whole, nil, opt)
		if err != nil {
			return nil, err
		}
		trials = append(trials, more...)
	}
	first := trials[0]
	a := &advice{
		Kind: "advice", SnapshotID: snap.ID, NumNodes: int64(m.NumNodes), NumEdges: int64(m.NumEdges), NumFeatures: int64(m.NumFeatures),
		NumSeeds: int64(first.Plan.NumSeeds), Labelled: m.Task != "", Rule: rule, Threads: f.threads, Runs: f.runs, FreeBytes: freeBytes(f.snapshot),
		Measured: adviceMeasured{openSeconds, first.PlanSeconds, first.Workers, first.TimedBatches, first.TimedSeeds, first.SecondsPerBatch, first.EvalBytesPerSec, first.DigestBytesPerMs},
	}
	for i, t := range trials {
		a.Settings = append(a.Settings, advisedSet{
			Advised: i == 0, Mode: t.Params.Mode, Fanout: t.Params.Fanout, BatchSize: t.Params.BatchSize, Variants: t.Params.Variants, Store: t.Params.Store, Order: t.Params.Order,
			Exact: t.Plan.Exact, NumBatches: t.Plan.NumBatches, Bytes: t.Plan.Bytes, BytesPerVariant: t.Plan.BytesPerVariant, EvalBytes: t.Plan.EvalBytes, LinkedBytes: t.Plan.LinkedBytes,
			Amplification: t.Plan.Amplification, Seconds: openSeconds + t.Seconds,
		})
	}
	a.judge(f.trainHours)
	if a.Labelled {
		a.Command = f.command(&p)
	}
	a.assume(f.tmp)
	return a, nil
}

// judge applies the pay-off rule.
func (a *advice) judge(trainHours float64) {
	a.Precompute = a.Settings[0].Seconds
	a.PaysFromHours = a.Precompute / payOffShare / 3600
	if trainHours > 0 {
		budget := payOffShare * trainHours * 3600 * float64(a.Runs)
		pays := a.Precompute < budget
		a.TrainHours, a.BudgetSeconds, a.Pays = &trainHours, &budget, &pays
	}
}

// command is the command line of `precompute batches` for p, with the flags that differ from its defaults and those that
// people change.
func (f *adviseFlags) command(p *format.BatchParams) []string {
	args := []string{"batches", "--snapshot", f.snapshot, "--out", filepath.Clean(f.snapshot) + "-batches",
		"--fanout", fanoutText(p.Fanout), "--batch-size", strconv.Itoa(p.BatchSize), "--variants", strconv.Itoa(p.Variants)}
	if p.Split != batch.SplitUnset {
		args = append(args, "--split", strconv.Itoa(p.Split))
	}
	return args
}

func (a *advice) assume(tmp string) {
	where := "the system's temporary directory"
	if tmp != "" {
		where = tmp
	}
	a.Assumptions = []string{
		"the snapshot is there already: its own time isn't counted",
		fmt.Sprintf("the output's disk is as fast as %s was for the timed part, with warm memory; a first touch of fresh memory, or a busy machine, takes longer", where),
		"sizes of the advised setting are those that batches prints before it writes; sizes of the others come from fewer batches",
		"training time is that of one run as it is now, sampling included",
	}
	if !a.Labelled {
		a.Assumptions = append(a.Assumptions, "the snapshot has no labels: figures are for every node as a training seed")
	}
}

// freeBytes returns the room on the disk of a path, 0 where it can't be told.
func freeBytes(path string) int64 {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return 0
	}
	return int64(fs.Bavail) * fs.Bsize
}

func fanoutText(fanout []int) string {
	parts := make([]string, len(fanout))
	for i, k := range fanout {
		parts[i] = strconv.Itoa(k)
	}
	return strings.Join(parts, ",")
}

func (s *advisedSet) name() string {
	if s.Mode == batch.ModeFull {
		return "--mode full"
	}
	return fmt.Sprintf("--fanout %s --batch-size %d", fanoutText(s.Fanout), s.BatchSize)
}

func (a *advice) text(w io.Writer) {
	fmt.Fprintf(w, "%d nodes, %d edges, %d features, %d training seeds: %s\n\n", a.NumNodes, a.NumEdges, a.NumFeatures, a.NumSeeds, a.Rule)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tsettings\tbatches\tpredicted time\tbatch files\ta variant\tx feature table\tevaluation files\tstore, order")
	for i := range a.Settings {
		s := &a.Settings[i]
		mark, amplification := "", "-"
		if s.Advised {
			mark = "*"
		}
		if s.Amplification > 0 {
			amplification = fmt.Sprintf("%.3g", s.Amplification)
		}
		fmt.Fprintf(t, "%s\t%s\t%d x %d\t%s\t%s\t%s\t%s\t%s\t%s, %s\n", mark, s.name(), s.Variants, s.NumBatches/s.Variants, secondsText(s.Seconds), command.Bytes(s.Bytes), command.Bytes(s.BytesPerVariant), amplification,
			command.Bytes(s.EvalBytes), s.Store, s.Order)
	}
	t.Flush()
	ms := &a.Measured
	fmt.Fprintf(w, "\nmeasured: %d batches (%d seeds) by %d workers at once, %.3g ms each; planning %s, opening %s; linked tables %s\n", ms.Batches, ms.Seeds, ms.Workers, 1000*ms.SecondsPerBatch,
		secondsText(ms.PlanSeconds), secondsText(ms.OpenSeconds), command.Bytes(a.Settings[0].LinkedBytes))
	for _, text := range a.Assumptions {
		fmt.Fprintf(w, "assumed: %s\n", text)
	}
	if need := a.Settings[0].Bytes + a.Settings[0].EvalBytes; a.FreeBytes > 0 && need > a.FreeBytes {
		fmt.Fprintf(w, "note: %s are needed, and %s free where the snapshot lies\n", command.Bytes(need), command.Bytes(a.FreeBytes))
	}
	fmt.Fprintf(w, "\n%s\n", a.verdict())
	if a.Command == nil {
		fmt.Fprintln(w, "run: nothing yet; batches of node tasks need labels: build the snapshot with --labels, or --nodes with a label column")
		return
	}
	fmt.Fprintf(w, "run: %s %s\n", command.ShellLine(os.Args[:1]), command.ShellLine(a.Command))
}

// verdict is the pay-off rule with its numbers.
func (a *advice) verdict() string {
	if a.Pays == nil {
		return fmt.Sprintf("precomputing takes %s: by the rule it pays when it is under %g x training time x runs, so from %s of training, all runs together (--train-hours, --runs)",
			secondsText(a.Precompute), payOffShare, secondsText(a.PaysFromHours*3600))
	}
	sign, word := "<", "pays"
	if !*a.Pays {
		sign, word = ">=", "doesn't pay"
	}
	text := fmt.Sprintf("precomputing %s: %s %s %g x %g h x %d runs = %s", word, secondsText(a.Precompute), sign, payOffShare, *a.TrainHours, a.Runs, secondsText(*a.BudgetSeconds))
	if !*a.Pays {
		text += fmt.Sprintf("; it would from %.0f runs on", math.Floor(a.PaysFromHours / *a.TrainHours)+1)
	}
	return text
}

// secondsText gives a time in the unit that suits it.
func secondsText(seconds float64) string {
	switch {
	case seconds < 120:
		return fmt.Sprintf("%.3g s", seconds)
	case seconds < 2*3600:
		return fmt.Sprintf("%.3g min", seconds/60)
	}
	return fmt.Sprintf("%.3g h", seconds/3600)
}
