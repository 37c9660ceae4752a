package sample

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prelift/prelift/snapshot/graph"
)

// PPROptions steer a PPR. A zero Alpha, Epsilon or TopK takes the default; all shape the result.
type PPROptions struct {
	Alpha   float64 // chance that a walk ends at a step, in (0, 1); 0.25 by default
	Epsilon float64 // residue left at a node, for each neighbour, at most; 1e-4 by default
	TopK    int     // nodes that come with a seed; 32 by default
	HubCap  int     // a walk leaves a node of more neighbours by so many of them, drawn once and for all; 0: no cap
	Seed    int64   // of those draws
}

// Settle returns o with zero fields filled in, and an error where it can't be.
func (o PPROptions) Settle() (PPROptions, error) {
	if o.Alpha == 0 {
		o.Alpha = 0.25
	}
	if o.Epsilon == 0 {
		o.Epsilon = 1e-4
	}
	if o.TopK == 0 {
		o.TopK = 32
	}
	switch {
	case !(o.Alpha > 0 && o.Alpha < 1):
		return o, fmt.Errorf("ppr: alpha %g: want a number between 0 and 1", o.Alpha)
	case !(o.Epsilon > 0 && o.Epsilon <= 1):
		return o, fmt.Errorf("ppr: epsilon %g: want a number over 0 and up to 1", o.Epsilon)
	case o.TopK < 1 || o.TopK > math.MaxInt32:
		return o, fmt.Errorf("ppr: %d nodes a seed: want 1 or more", o.TopK)
	case o.HubCap < 0:
		return o, fmt.Errorf("ppr: hub cap %d: want 0 or more", o.HubCap)
	}
	return o, nil
}

// PPR approximates personalised PageRank by pushing (Andersen, Chung and Lang, "Local graph partitioning using PageRank
// vectors", FOCS 2006). A walk starts at a seed, ends at each step with chance Alpha, else goes from a node to one of its in-neighbours,
// against the direction of messages, with chances as their weights are (alike without weights); loops count for nothing, and at a node without in-neighbours of
// positive weight it ends. The rank of a node is the chance that the walk ends there: how much a seed hears of it; taken as what has been found to end there, and Alpha times what
// waits there. Ranks are never over the true ones, and where the graph is undirected, unweighted and without loops at most Epsilon times the node's degree below.
//
// Residues wait in a queue, first in, first out; a node's is passed on when it is at least Epsilon times the number of its entries (HubCap, if that is less), a seed's own always. All is float64,
// summed in that order, without fused multiply-add, so ranks depend on the graph, the options and the order of the seeds alone. A seed costs
// its degree and at most 1/(Alpha*Epsilon) steps whatever the graph. 17 bytes a node. Not safe for concurrent use; give each worker its own.
type PPR struct {
	in   *graph.CSR
	keys []uint64
	opt  PPROptions
	hubs *hubRows

	rank, residue []float64 // [NumNodes], zero between calls
	touched       []int32   // nodes whose residue or rank isn't zero
	isTouched     nodeSet
	queue         []int32 // from head on
	head          int
	queued        nodeSet
	ordered       []uint64
	top           []int32
}

// hubRows keeps the neighbours that walks leave hubs by. Safe for concurrent use.
type hubRows struct {
	in   *graph.CSR
	opt  PPROptions
	keys []uint64
	kept hopDraws
}

// NewPPR makes a PPR over the in-rows of a graph, which may have relations (an edge of each counts) and weights; keys has len NumNodes.
// shared may be nil; else it is a PPR of the same arguments, which then draws the neighbours of hubs together with this one. Errors are of opt.
func NewPPR(in *graph.CSR, keys []uint64, opt PPROptions, shared *PPR) (*PPR, error) {
	checkKeys(in, keys)
	opt, err := opt.Settle()
	if err != nil {
		return nil, err
	}
	n := in.NumNodes()
	p := &PPR{in: in, keys: keys, opt: opt, rank: make([]float64, n), residue: make([]float64, n), isTouched: newNodeSet(n), queued: newNodeSet(n)}
	switch {
	case shared != nil:
		p.hubs = shared.hubs
	case opt.HubCap > 0:
		hubs := newHubSet(in, int64(opt.HubCap))
		hubs.width = opt.HubCap
		p.hubs = &hubRows{in: in, opt: opt, keys: keys, kept: newHopDraws(hubs)}
	}
	return p, nil
}

// places returns the places in hub v's row that walks leave it by, nil where v is no hub: those of the HubCap smallest Draw of variant 0, hop 1.
func (h *hubRows) places(v int32) []int32 {
	i := h.kept.hubs.number(v)
	if i < 0 {
		return nil
	}
	slot, state := h.kept.slot(i), &h.kept.state[i]
	if state.Load() == slotReady {
		return slot[2 : 2+slot[1]]
	}
	p := newPicker(h.keys, nil)
	p.row.gather(v, h.in.Row(v), h.keys)
	places := p.uniform(graph.Fold(drawBase(h.opt.Seed, 0, 1), h.keys[v]), nil, h.opt.HubCap)
	if !state.CompareAndSwap(slotEmpty, slotClaimed) {
		return places
	}
	slot[1] = int32(len(places))
	copy(slot[2:], places)
	state.Store(slotReady)
	return slot[2 : 2+slot[1]]
}

// NodeWise returns the TopK nodes of the largest ranks of one seed, the seed itself left out, ascending by number; of equal ranks those of the smaller keys,
// then numbers. Fewer where fewer have one. Valid until the next call.
func (p *PPR) NodeWise(seed int32) []int32 { return p.BatchWise([]int32{seed}) }

// BatchWise returns the TopK nodes for each seed that have the largest sums of the ranks of all the seeds, which must be distinct, the seeds themselves left out: as
// NodeWise of a walk that starts at any of them (batch-wise selection of Gasteiger, Qian and Günnemann, "Influence-based mini-batching for graph neural
// networks", LoG 2022). Valid until the next call.
func (p *PPR) BatchWise(seeds []int32) []int32 {
	p.push(seeds)
	for _, v := range p.touched {
		p.rank[v] += float64(p.opt.Alpha * p.residue[v])
	}
	for _, v := range seeds {
		p.rank[v] = 0
	}
	p.ordered = p.ordered[:0]
	for _, v := range p.touched {
		if x := p.rank[v]; x > 0 {
			p.ordered = append(p.ordered, ^math.Float64bits(x)) // ascending as ranks descend
		}
	}
	p.takeTop(p.opt.TopK * len(seeds))
	for _, v := range p.touched {
		p.rank[v], p.residue[v] = 0, 0
		p.isTouched[v>>6] = 0
	}
	p.touched = p.touched[:0]
	return p.top
}

// takeTop fills top with the k touched nodes of the largest ranks.
func (p *PPR) takeTop(k int) {
	p.top = p.top[:0]
	if len(p.ordered) <= k {
		for _, v := range p.touched {
			if p.rank[v] > 0 {
				p.top = append(p.top, v)
			}
		}
		slices.Sort(p.top)
		return
	}
	least := math.Float64frombits(^smallest(p.ordered, k-1))
	var ties []int32
	for _, v := range p.touched {
		switch x := p.rank[v]; {
		case x > least:
			p.top = append(p.top, v)
		case x == least:
			ties = append(ties, v)
		}
	}
	slices.SortFunc(ties, func(a, b int32) int { return cmp.Or(cmp.Compare(p.keys[a], p.keys[b]), cmp.Compare(a, b)) })
	p.top = append(p.top, ties[:k-len(p.top)]...)
	slices.Sort(p.top)
}

// push fills rank, and residue with what isn't passed on.
func (p *PPR) push(seeds []int32) {
	p.queue, p.head = p.queue[:0], 0
	for _, v := range seeds {
		p.queued.add(v)
		p.queue = append(p.queue, v)
		p.give(v, 1)
	}
	for p.head < len(p.queue) {
		v := p.queue[p.head]
		p.head++
		if p.head > 1<<16 && 2*p.head > len(p.queue) { // the part that is done with goes
			p.queue = append(p.queue[:0], p.queue[p.head:]...)
			p.head = 0
		}
		p.queued[v>>6] &^= 1 << (v & 63)
		p.pass(v)
	}
}

// pass ends the walks at v that end there, and gives the rest of its residue to its in-neighbours.
func (p *PPR) pass(v int32) {
	residue := p.residue[v]
	p.residue[v] = 0
	row, weights := p.in.Row(v), p.in.RowWeights(v)
	var places []int32
	if p.hubs != nil {
		places = p.hubs.places(v)
	}
	total := p.outgoing(v, row, weights, places)
	if total == 0 {
		p.rank[v] += residue
		return
	}
	p.rank[v] += float64(p.opt.Alpha * residue)
	share := float64(float64(1-p.opt.Alpha)*residue) / total
	give := func(at int32) {
		switch u := row[at]; {
		case u == v:
		case weights == nil:
			p.give(u, share)
		case weights[at] > 0:
			p.give(u, float64(share*float64(weights[at])))
		}
	}
	if places != nil {
		for _, at := range places {
			give(at)
		}
		return
	}
	for at := range row {
		give(int32(at))
	}
}

// outgoing returns the sum of the weights by which walks leave v, 1 each without weights, in the order of the row.
func (p *PPR) outgoing(v int32, row []int32, weights []float32, places []int32) (total float64) {
	switch {
	case places != nil && weights == nil:
		return float64(len(places))
	case places != nil:
		for _, at := range places {
			total += float64(weights[at])
		}
	case weights == nil:
		_, loops := loopsOf(p.in, v)
		return float64(len(row) - loops)
	default:
		for at, u := range row {
			if u != v {
				total += float64(weights[at])
			}
		}
	}
	return total
}

// give adds to v's residue and queues v where that is worth passing on.
func (p *PPR) give(v int32, x float64) {
	word, bit := v>>6, uint64(1)<<(v&63)
	if p.isTouched[word]&bit == 0 {
		p.isTouched[word] |= bit
		p.touched = append(p.touched, v)
	}
	residue := p.residue[v] + x
	p.residue[v] = residue
	if p.queued[word]&bit != 0 {
		return
	}
	degree := p.in.Degree(v)
	if p.opt.HubCap > 0 {
		degree = min(degree, int64(p.opt.HubCap))
	}
	if residue >= float64(p.opt.Epsilon*float64(degree)) {
		p.queued[word] |= bit
		p.queue = append(p.queue, v)
	}
}

// PPRLists are the nodes that come with each of some seeds: those of seed Seeds[i] are row i, ascending. The same for all variants.
type PPRLists struct {
	Seeds  []int32
	Indptr []int64
	Nodes  []int32
}

// Row returns the nodes that come with seed number i; read-only.
func (l *PPRLists) Row(i int) []int32 { return l.Nodes[l.Indptr[i]:l.Indptr[i+1]] }

// listRows is how many seeds a worker of ListPPR takes at a time.
const listRows = 64

// ListPPR returns NodeWise of every seed, found by so many threads (at least 1), which change nothing. progress, which may be nil, is told how many are done, by one
// goroutine at a time. Errors are of opt, and ctx's.
func ListPPR(ctx context.Context, in *graph.CSR, keys []uint64, seeds []int32, opt PPROptions, threads int, progress func(done, total int64)) (*PPRLists, error) {
	first, err := NewPPR(in, keys, opt, nil)
	if err != nil {
		return nil, err
	}
	parts := make([][]int32, (len(seeds)+listRows-1)/listRows) // the rows of each run of seeds
	list := &PPRLists{Seeds: seeds, Indptr: make([]int64, len(seeds)+1)}
	var next atomic.Int64
	var mu sync.Mutex
	var done int64
	var wg sync.WaitGroup
	for t := range max(threads, 1) {
		p := first
		if t > 0 {
			if p, err = NewPPR(in, keys, opt, first); err != nil {
				return nil, err
			}
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(parts) {
					return
				}
				run := seeds[i*listRows : min((i+1)*listRows, len(seeds))]
				rows := make([]int32, 0, len(run)*min(p.opt.TopK, 64))
				for j, v := range run {
					row := p.NodeWise(v)
					rows = append(rows, row...)
					list.Indptr[i*listRows+j+1] = int64(len(row))
				}
				parts[i] = rows
				if progress != nil {
					mu.Lock()
					done += int64(len(run))
					progress(done, int64(len(seeds)))
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range seeds {
		list.Indptr[i+1] += list.Indptr[i]
	}
	list.Nodes = make([]int32, 0, list.Indptr[len(seeds)])
	for _, rows := range parts {
		list.Nodes = append(list.Nodes, rows...)
	}
	return list, nil
}
