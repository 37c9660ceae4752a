package batch

import (
	"context"
	"math"
	"slices"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
	"github.com/prelift/prelift/snapshot"
)

// Modes lists the words of --mode.
var Modes = []string{ModeFanout, ModeLabor, ModeFull, ModeCluster, ModePPR, ModeKHop}

// Words of format.PPRParams.Select.
const (
	SelectNode  = "node"
	SelectBatch = "batch"
)

// DefaultHubCap is how many neighbours stand for all of a hub's.
const DefaultHubCap = 500

// HopsOfIndex as KHopParams.Hops asks for all that the hop index has.
const HopsOfIndex = 0

// DefaultCluster makes batches of up to 4,096 nodes: more clusters a batch leave fewer edges out and vary the batches more, and smaller ones
// are denser. Cluster-GCN takes 20 of some 155 nodes for Reddit.
func DefaultCluster() format.ClusterParams { return format.ClusterParams{Size: 256, PerBatch: 16} }

// DefaultPPR are the defaults of package sample.
func DefaultPPR() format.PPRParams {
	opt, err := sample.PPROptions{}.Settle()
	if err != nil {
		panic("batch: " + err.Error())
	}
	return format.PPRParams{Select: SelectNode, TopK: opt.TopK, Alpha: opt.Alpha, Epsilon: opt.Epsilon}
}

// DefaultStratify takes half of a batch from components that are denser and larger than the mean.
func DefaultStratify() format.StratifyParams { return format.StratifyParams{DenseShare: 0.5} }

// isLayered reports whether a batch of the mode has a block for each number of the fanout. The
// others have one block, for models of any depth.
func isLayered(mode string) bool { return mode == ModeFanout || mode == ModeLabor }

// isSubgraph reports whether a batch of the mode is an induced subgraph: a local record without layers.
func isSubgraph(mode string) bool {
	return mode == ModeCluster || mode == ModePPR || mode == ModeKHop
}

// covers reports whether every seed is in exactly one batch of each variant.
func covers(p *format.BatchParams) bool { return p.Stratify == nil }

// checkMode checks what a mode has of its own and leaves out what it has no use for.
func checkMode(snap *snapshot.Snapshot, p format.BatchParams) (format.BatchParams, error) {
	p, err := checkKernels(snap, p)
	if err != nil {
		return p, err
	}
	if p.Mode == ModeFull {
		p.HubCap = 0
		return checkFull(p)
	}
	if isLayered(p.Mode) {
		if p, err = checkFanout(snap, p); err != nil {
			return p, err
		}
	} else {
		p.Fanout, p.Transpose = []int{}, TransposeAll
	}
	if p, err = checkBatches(snap, p); err != nil {
		return p, err
	}
	p.HubCap = settleHubCap(snap, &p)
	if p.Mode == ModeCluster {
		p.BatchSize = 0
	}
	if p.Mode == ModeCluster || p.Stratify != nil {
		p.Order = sample.Random // there is none to choose
	}
	return p, nil
}

// checkKernels checks the parameters of single modes and of options, and drops those of other modes.
func checkKernels(snap *snapshot.Snapshot, p format.BatchParams) (format.BatchParams, error) {
	if p.HubCap < 0 || p.HubCap > math.MaxInt32 {
		return p, paramErrorf("--hub-cap %d: want 1 to %d neighbours, or 0 for no cap", p.HubCap, math.MaxInt32)
	}
	if err := checkWeighted(snap, &p); err != nil {
		return p, err
	}
	var err error
	p.Cluster, err = only(p.Mode == ModeCluster, p.Cluster, DefaultCluster, checkCluster)
	if err != nil {
		return p, err
	}
	p.PPR, err = only(p.Mode == ModePPR, p.PPR, DefaultPPR, checkPPR)
	if err != nil {
		return p, err
	}
	p.KHop, err = only(p.Mode == ModeKHop, p.KHop, func() format.KHopParams { return format.KHopParams{Hops: HopsOfIndex} },
		func(k *format.KHopParams) error { return checkKHop(snap, k) })
	if err != nil || p.Stratify == nil {
		return p, err
	}
	p.Stratify, err = only(true, p.Stratify, DefaultStratify, func(s *format.StratifyParams) error { return checkStratify(snap, p.Mode, s) })
	return p, err
}

// only returns a checked copy of the parameters of a mode, or of its defaults, where the mode is the one asked for; else nil.
func only[T any](wanted bool, asked *T, defaults func() T, check func(*T) error) (*T, error) {
	if !wanted {
		return nil, nil
	}
	settled := new(T)
	if asked != nil {
		*settled = *asked
	} else {
		*settled = defaults()
	}
	return settled, check(settled)
}

func checkWeighted(snap *snapshot.Snapshot, p *format.BatchParams) error {
	switch {
	case !p.Weighted:
		return nil
	case p.Mode != ModeFanout:
		return paramErrorf("--weighted with --mode %s: draws by edge weight are of mode fanout", p.Mode)
	case !snap.Manifest.Weighted:
		return paramErrorf("--weighted: the snapshot has no edge weights; build it with a weight column, or leave it out")
	case slices.Contains(p.Norm, None):
		return paramErrorf("--weighted with --norm none: what makes up for draws by weight is kept in the coefficients, and kind none has no coefficients; leave out one of them")
	}
	return nil
}

func checkCluster(c *format.ClusterParams) error {
	if c.Size < 1 || c.Size > math.MaxInt32 {
		return paramErrorf("--cluster-size %d: want 1 to %d nodes", c.Size, math.MaxInt32)
	}
	if c.PerBatch < 1 || c.PerBatch > math.MaxInt32 {
		return paramErrorf("--clusters-per-batch %d: want 1 to %d", c.PerBatch, math.MaxInt32)
	}
	return nil
}

func checkPPR(p *format.PPRParams) error {
	switch {
	case p.Select != SelectNode && p.Select != SelectBatch:
		return paramErrorf("--ppr-select %q: want %s, %s", p.Select, SelectNode, SelectBatch)
	case p.TopK < 1 || p.TopK > math.MaxInt32:
		return paramErrorf("--top-k %d: want 1 to %d nodes a seed", p.TopK, math.MaxInt32)
	case !(p.Alpha > 0 && p.Alpha < 1):
		return paramErrorf("--ppr-alpha %g: want a number between 0 and 1", p.Alpha)
	case !(p.Epsilon > 0 && p.Epsilon <= 1):
		return paramErrorf("--ppr-epsilon %g: want a number over 0 and up to 1", p.Epsilon)
	}
	return nil
}

func checkKHop(snap *snapshot.Snapshot, k *format.KHopParams) error {
	has := 0
	if snap.Hop1 != nil {
		has = 1
	}
	if snap.Hop2 != nil {
		has = 2
	}
	if k.Hops == HopsOfIndex {
		k.Hops = max(has, 1)
	}
	switch {
	case k.Hops < 1 || k.Hops > 2:
		return paramErrorf("--hops %d: want 1 or 2, or 0 for what the hop index has", k.Hops)
	case k.Hops > has:
		return paramErrorf("--hops %d: the snapshot's hop index has %d; build it with snapshot --hops %d", k.Hops, has, k.Hops)
	}
	return nil
}

func checkStratify(snap *snapshot.Snapshot, mode string, s *format.StratifyParams) error {
	switch {
	case mode == ModeFull || mode == ModeCluster:
		return paramErrorf("--stratify with --mode %s: its batches aren't made of single seeds", mode)
	case snap.Rank == nil:
		return paramErrorf("--stratify draws by PageRank, and the snapshot has none; build it with snapshot --with pagerank")
	case !(s.DenseShare >= 0 && s.DenseShare <= 1):
		return paramErrorf("--dense-share %g: want a number from 0 to 1", s.DenseShare)
	case s.MinSize < 0 || s.MinSize > math.MaxInt32:
		return paramErrorf("--dense-min-nodes %d: want 0 to %d", s.MinSize, math.MaxInt32)
	case !(s.MinDegree >= 0 && s.MinDegree <= math.MaxFloat64):
		return paramErrorf("--dense-min-degree %g: want 0 or more", s.MinDegree)
	}
	return nil
}

// settleHubCap returns the hub cap, 0 where it would cut nothing. So a set of a graph without hubs needs no importance for it.
func settleHubCap(snap *snapshot.Snapshot, p *format.BatchParams) int {
	longest := int64(snap.Manifest.Audit.MaxDegree)
	switch {
	case p.Mode == ModeCluster || isLayered(p.Mode) && !slices.Contains(p.Fanout, sample.All):
		return 0
	case p.Mode == ModeKHop && p.KHop.Hops == 2:
		for v := range snap.NumNodes() {
			longest = max(longest, snap.Hop2.Indptr[v+1]-snap.Hop2.Indptr[v])
		}
	}
	if longest <= int64(p.HubCap) {
		return 0
	}
	return p.HubCap
}

// method is how neighbours are drawn in modes fanout and labor.
func method(p *format.BatchParams) sample.Method {
	switch {
	case p.Mode == ModeLabor:
		return sample.Labor
	case p.Weighted:
		return sample.Weighted
	}
	return sample.Uniform
}

// fanoutOf returns how many neighbours a row of a layer takes, at most or with labor in the mean, of numLayers; sample.All for every one.
func fanoutOf(p *format.BatchParams, layer int) int {
	opt := sample.Options{Fanout: p.Fanout, HubCap: p.HubCap}
	return opt.FanoutOf(len(p.Fanout) - layer)
}

// cutting is what a source has of its mode, beside the order of seeds. Read-only once it is prepared.
type cutting struct {
	clusters *sample.ClusterOrder // mode cluster
	sizes    []int                // [clusters] nodes of each, of all clusters of the graph
	strata   *sample.Stratifier   // shared by workers, by Share; nil unless seeds are stratified
	ppr      *sample.PPR          // mode ppr that selects by batch: whose draws of hubs workers share
	lists    *sample.PPRLists     // mode ppr that selects by node; nil before listPPR
}

// prepareMode makes what the mode needs of the whole graph, but for lists.
func (s *source) prepareMode() (err error) {
	p, snap := &s.params, s.snap
	if c := p.Cluster; c != nil {
		clusters := sample.CutClusters(localityOrder(snap), snap.Component, c.Size)
		s.clusters = sample.NewClusterOrder(clusters, s.order.Seeds, snap.Keys, c.PerBatch, int64(p.Seed))
		for i := range clusters.Len() {
			s.sizes = append(s.sizes, len(clusters.Cluster(int32(i))))
		}
	}
	if t := p.Stratify; t != nil {
		s.strata, err = sample.NewStratifier(&snap.In, snap.Component, snap.ComponentSizes, snap.Rank, snap.Keys, s.order.Seeds,
			sample.StratifyOptions{BatchSize: p.BatchSize, DenseShare: t.DenseShare, MinSize: int64(t.MinSize), MinDegree: t.MinDegree, Seed: int64(p.Seed)})
		if err != nil {
			return err
		}
	}
	if p.PPR != nil && p.PPR.Select == SelectBatch {
		s.ppr, err = sample.NewPPR(&snap.In, snap.Keys, s.pprOptions(), nil)
	}
	return err
}

func (s *source) pprOptions() sample.PPROptions {
	p := s.params.PPR
	return sample.PPROptions{Alpha: p.Alpha, Epsilon: p.Epsilon, TopK: p.TopK, HubCap: s.params.HubCap, Seed: int64(s.params.Seed)}
}

// listPPR finds the nodes that come with each seed, where the mode wants that and it isn't done. Batches can't be cut before.
func (s *source) listPPR(ctx context.Context, opt *Options) (err error) {
	if s.params.PPR == nil || s.params.PPR.Select != SelectNode || s.lists != nil {
		return nil
	}
	var progress func(done, total int64)
	if opt.Progress != nil {
		progress = func(done, total int64) { opt.Progress("rank neighbours", done, total) }
	}
	s.lists, err = sample.ListPPR(ctx, &s.snap.In, s.snap.Keys, s.order.Seeds, s.pprOptions(), opt.threads(), progress)
	return err
}

// weightOf is what a batch's size goes by: the nodes of its clusters, else its seeds.
func (s *source) weightOf(number int) int64 {
	if s.clusters == nil {
		return int64(s.numSeedsOf(number))
	}
	order := s.variantOrder(number / s.batchesPerVariant())
	first, last := clusterRange(len(order), number%s.batchesPerVariant(), s.batchesPerVariant())
	total := int64(0)
	for _, c := range order[first:last] {
		total += int64(s.sizes[c])
	}
	return total
}

// clusterRange is the part of a variant's clusters that batch i of n has (sample.ClusterOrder.Batch).
func clusterRange(numClusters, i, n int) (first, last int) {
	return int(int64(i) * int64(numClusters) / int64(n)), int(int64(i+1) * int64(numClusters) / int64(n))
}

// totalWeight is the sum of weightOf over all batches.
func (s *source) totalWeight() int64 {
	if s.clusters == nil {
		return int64(s.numSeeds()) * int64(s.params.Variants)
	}
	total := int64(0)
	for number := range s.batchesPerVariant() { // a variant has all the clusters that any has
		total += s.weightOf(number)
	}
	return total * int64(s.params.Variants)
}

// cutter is what a worker needs to find the nodes and edges of batches that aren't drawn layer by layer. Its parts are made when first needed.
type cutter struct {
	inducer *sample.Inducer
	khop    *sample.KHop
	ppr     *sample.PPR
	strata  *sample.Stratifier
	others  []int32
}

// members returns the variant of a batch and its seeds, ascending, and in mode cluster its other nodes. Valid until the next call.
func (a *assembler) members(number int) (variant int, seeds, others []int32) {
	variant, place := number/a.batchesPerVariant(), number%a.batchesPerVariant()
	switch {
	case a.clusters != nil:
		a.seeds, a.cut.others = a.clusters.Batch(a.variantOrder(variant), place, a.seeds[:0], a.cut.others[:0])
		return variant, a.seeds, a.cut.others
	case a.strata != nil:
		if a.cut.strata == nil {
			a.cut.strata = a.strata.Share()
		}
		a.seeds = append(a.seeds[:0], a.cut.strata.Batch(variant, place)...)
	default:
		start := place * a.params.BatchSize
		order := a.variantOrder(variant)
		a.seeds = append(a.seeds[:0], order[start:min(start+a.params.BatchSize, len(order))]...)
		slices.Sort(a.seeds)
	}
	return variant, a.seeds, nil
}

// companions returns the nodes that come with the seeds of a batch of mode khop or ppr; they may repeat and be seeds. Valid until the next call.
func (a *assembler) companions(variant int, seeds []int32) []int32 {
	p, c := &a.params, &a.cut
	switch {
	case p.KHop != nil:
		if c.khop == nil {
			c.khop = sample.NewKHop(a.snap.Hop1, a.snap.Hop2, a.snap.Keys, sample.KHopOptions{Hops: p.KHop.Hops, HubCap: p.HubCap, Seed: int64(p.Seed)})
		}
		return c.khop.Lists(variant, seeds)
	case p.PPR.Select == SelectBatch:
		if c.ppr == nil {
			var err error
			if c.ppr, err = sample.NewPPR(&a.snap.In, a.snap.Keys, a.pprOptions(), a.source.ppr); err != nil {
				panic("batch: options were checked: " + err.Error())
			}
		}
		return c.ppr.BatchWise(seeds)
	}
	c.others = c.others[:0]
	for _, v := range seeds {
		at, ok := slices.BinarySearch(a.lists.Seeds, v)
		if !ok {
			panic("batch: no list of a seed")
		}
		c.others = append(c.others, a.lists.Row(at)...)
	}
	return c.others
}

// induce returns the subgraph of seeds, ascending, and others. Valid until the next call.
func (a *assembler) induce(seeds, others []int32) *sample.Subgraph {
	if a.cut.inducer == nil {
		a.cut.inducer = sample.NewInducer(&a.snap.In, a.hasEdgeCoefs())
	}
	return a.cut.inducer.Induce(seeds, others)
}

// cutSubgraph returns the variant of batch number of modes cluster, ppr and khop, and its subgraph, valid until the next one.
func (a *assembler) cutSubgraph(number int) (variant int, g *sample.Subgraph) {
	variant, seeds, others := a.members(number)
	if a.clusters == nil {
		others = a.companions(variant, seeds)
	}
	return variant, a.induce(seeds, others)
}

// counter says how many nodes a batch of some seeds has; it belongs to a.
func (a *assembler) counter() sample.NodeCounter {
	if isLayered(a.params.Mode) {
		if a.sampler == nil {
			a.sampler = a.newSampler()
		}
		return a.sampler
	}
	return sample.CountFunc(func(variant int, seeds []int32) int {
		sorted := slices.Sorted(slices.Values(seeds))
		return len(a.induce(sorted, a.companions(variant, sorted)).Nodes)
	})
}

// subgraph builds training batch number of modes cluster, ppr and khop: nodes, and one block of all edges between them.
func (a *assembler) subgraph(number int) *record {
	a.prepareRows(number)
	variant, g := a.cutSubgraph(number)
	a.reset(format.RecordHeader{
		Task: format.TaskNode, Split: format.PartTrain, Space: format.SpaceLocal, SplitColumn: splitColumn(&a.params),
		Number: uint32(number), Variant: uint32(variant), NumSeeds: uint64(g.NumSeeds),
		HopNodes: []uint64{uint64(len(g.Nodes))}, LayerEdges: []uint64{},
	})
	a.addInt32s(format.NodesNumber, format.AnyLayer, g.Nodes)
	a.layer(format.AnyLayer, &sample.Layer{Indptr: g.Indptr, Indices: g.Indices, Importance: g.Importance, Entries: g.Entries}, len(g.Nodes))
	a.finish(g.Nodes, len(g.Nodes), g.NumSeeds)
	return &a.record
}

// smaller says how batches of the mode are made to take less.
func smaller(p *format.BatchParams) string {
	switch p.Mode {
	case ModeCluster:
		return " or more --clusters-per-batch"
	case ModePPR:
		return ", a smaller --top-k or a larger --batch-size"
	case ModeKHop:
		return ", a smaller --hub-cap, --hops 1 or a larger --batch-size"
	}
	return ", a smaller --fanout or a larger --batch-size"
}

// checkKernelParams checks what a manifest says of single modes: parts of the right modes, with values that are allowed.
func checkKernelParams(p *format.BatchParams) error {
	for _, part := range []struct {
		name   string
		there  bool
		wanted bool
	}{{"cluster", p.Cluster != nil, p.Mode == ModeCluster}, {"ppr", p.PPR != nil, p.Mode == ModePPR}, {"khop", p.KHop != nil, p.Mode == ModeKHop}} {
		if part.there != part.wanted {
			return paramErrorf("mode %s, parameters of %s: %t", p.Mode, part.name, part.there)
		}
	}
	switch {
	case p.HubCap < 0 || p.HubCap > math.MaxInt32 || p.HubCap > 0 && (p.Mode == ModeFull || p.Mode == ModeCluster):
		return paramErrorf("mode %s with a hub cap of %d", p.Mode, p.HubCap)
	case p.Weighted && p.Mode != ModeFanout:
		return paramErrorf("mode %s with draws by weight", p.Mode)
	case p.Stratify != nil && (p.Mode == ModeFull || p.Mode == ModeCluster):
		return paramErrorf("mode %s with strata", p.Mode)
	case p.KHop != nil && p.KHop.Hops != 1 && p.KHop.Hops != 2:
		return paramErrorf("%d hops of an index", p.KHop.Hops)
	case p.PPR != nil:
		return checkPPR(p.PPR)
	case p.Cluster != nil:
		return checkCluster(p.Cluster)
	}
	return nil
}
