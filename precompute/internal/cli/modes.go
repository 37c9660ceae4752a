package cli

import (
	"fmt"
	"math"
	"strconv"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/batch"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// modeFlags are the flags of single modes of `precompute batches`.
type modeFlags struct {
	cluster  format.ClusterParams
	khop     format.KHopParams
	ppr      format.PPRParams
	stratify bool
	strata   format.StratifyParams
}

func (f *modeFlags) add(fl *pflag.FlagSet, p *format.BatchParams) {
	*f = modeFlags{batch.DefaultCluster(), format.KHopParams{Hops: batch.HopsOfIndex}, batch.DefaultPPR(), false, batch.DefaultStratify()}
	fl.BoolVar(&p.Weighted, "weighted", p.Weighted, "mode fanout: draw neighbours by edge weight (priority sampling) in place of alike")
	fl.IntVar(&p.HubCap, "hub-cap", p.HubCap, "fanout -1, ppr and khop: of a node of more neighbours so many are drawn; 0 for no cap")
	fl.IntVar(&f.cluster.Size, "cluster-size", f.cluster.Size, "mode cluster: nodes of a cluster, at most")
	fl.IntVar(&f.cluster.PerBatch, "clusters-per-batch", f.cluster.PerBatch, "mode cluster: clusters of a batch")
	fl.IntVar(&f.khop.Hops, "hops", f.khop.Hops, "mode khop: hops of the hop index to take, 1 or 2; 0 for all it has")
	fl.StringVar(&f.ppr.Select, "ppr-select", f.ppr.Select, "mode ppr: nodes with the largest ranks for each seed (node) or for all seeds of a batch together (batch)")
	fl.IntVar(&f.ppr.TopK, "top-k", f.ppr.TopK, "mode ppr: nodes that come with a seed")
	fl.Float64Var(&f.ppr.Alpha, "ppr-alpha", f.ppr.Alpha, "mode ppr: chance that a walk ends at a step")
	fl.Float64Var(&f.ppr.Epsilon, "ppr-epsilon", f.ppr.Epsilon, "mode ppr: how exact ranks are; less is more exact and slower")
	fl.BoolVar(&f.stratify, "stratify", false, "fill each batch from two strata, dense large components and the others by PageRank, in place of each seed once a variant")
	fl.Float64Var(&f.strata.DenseShare, "dense-share", f.strata.DenseShare, "with --stratify: share of a batch's seeds from dense, large components")
	fl.IntVar(&f.strata.MinSize, "dense-min-nodes", f.strata.MinSize, "with --stratify: nodes of a large component; 0 for the mean of all")
	fl.Float64Var(&f.strata.MinDegree, "dense-min-degree", f.strata.MinDegree, "with --stratify: neighbours a node in a dense component; 0 for the graph's mean")
}

// settle puts what the mode asked for has of its own into the parameters.
func (f *modeFlags) settle(p *format.BatchParams) error {
	for _, x := range []struct {
		flag  string
		value float64
	}{{"ppr-alpha", f.ppr.Alpha}, {"ppr-epsilon", f.ppr.Epsilon}, {"dense-share", f.strata.DenseShare}, {"dense-min-degree", f.strata.MinDegree}} {
		if math.IsNaN(x.value) || math.IsInf(x.value, 0) {
			return command.Usage("--%s %v: want a finite number", x.flag, x.value)
		}
	}
	switch p.Mode {
	case batch.ModeCluster:
		p.Cluster = &f.cluster
	case batch.ModeKHop:
		p.KHop = &f.khop
	case batch.ModePPR:
		p.PPR = &f.ppr
	}
	if f.stratify {
		p.Stratify = &f.strata
	}
	return nil
}

// unusedFlags are those of `precompute batches` that a mode has no use for, beside those that are another mode's.
var unusedFlags = map[string][]string{
	batch.ModeFull:    {"fanout", "batch-size", "variants", "order", "seed", "transpose", "eval", "split", "hub-cap"},
	batch.ModeCluster: {"fanout", "batch-size", "order", "transpose", "hub-cap"},
	batch.ModePPR:     {"fanout", "transpose"},
	batch.ModeKHop:    {"fanout", "transpose"},
}

// flagsOf are the flags that one mode alone has.
var flagsOf = map[string][]string{
	batch.ModeCluster: {"cluster-size", "clusters-per-batch"},
	batch.ModePPR:     {"ppr-select", "top-k", "ppr-alpha", "ppr-epsilon"},
	batch.ModeKHop:    {"hops"},
}

// noteUnused tells of flags that change nothing.
func (f *modeFlags) noteUnused(c *cobra.Command, env *command.Env, p *format.BatchParams) {
	note := func(flag, why string) {
		if c.Flags().Changed(flag) {
			env.Note("note", "--"+flag+" has no meaning "+why)
		}
	}
	for _, flag := range unusedFlags[p.Mode] {
		note(flag, "with --mode "+p.Mode)
	}
	for _, mode := range batch.Modes {
		for _, flag := range flagsOf[mode] {
			if mode != p.Mode {
				note(flag, "with --mode "+p.Mode)
			}
		}
	}
	if f.stratify {
		note("order", "with --stratify")
		return
	}
	for _, flag := range []string{"dense-share", "dense-min-nodes", "dense-min-degree"} {
		note(flag, "without --stratify")
	}
}

// modeText says in `inspect` what batches are made of.
func modeText(t command.Table, p *format.BatchParams) {
	seeds := fmt.Sprintf("batch size %d, order %s, seed %d", p.BatchSize, p.Order, p.Seed)
	switch {
	case p.Cluster != nil:
		t.Row("clusters", fmt.Sprintf("%d a batch, of at most %d nodes, seed %d", p.Cluster.PerBatch, p.Cluster.Size, p.Seed))
	case p.PPR != nil:
		t.Row("ppr", fmt.Sprintf("%d nodes a seed, by %s, alpha %g, epsilon %g", p.PPR.TopK, p.PPR.Select, p.PPR.Alpha, p.PPR.Epsilon))
		t.Row("seeds of a batch", seeds)
	case p.KHop != nil:
		t.Row("hops", fmt.Sprintf("%d of the hop index", p.KHop.Hops))
		t.Row("seeds of a batch", seeds)
	case p.Mode != batch.ModeFull:
		t.Row("fanout", fmt.Sprintf("%v, %s", p.Fanout, seeds))
	}
	if p.Weighted {
		t.Row("draws", "by edge weight")
	}
	if p.HubCap > 0 {
		t.Row("hub cap", p.HubCap)
	}
	if s := p.Stratify; s != nil {
		size, degree := "the mean", "the mean"
		if s.MinSize > 0 {
			size = strconv.Itoa(s.MinSize)
		}
		if s.MinDegree > 0 {
			degree = fmt.Sprint(s.MinDegree)
		}
		t.Row("strata", fmt.Sprintf("%g of a batch from dense components: nodes at least %s, neighbours a node at least %s", s.DenseShare, size, degree))
	}
}
