package sample

import (
	"errors"
	"slices"
	"sort"

	"github.com/prelift/prelift/snapshot/graph"
)

// NonEdges finds pairs that are no edge of the full graph: neither in the rows, nor held out, nor a node and itself. The j-th non-neighbour of a node
// is found by a search in its row, so a draw never misses and has to be repeated: it costs O(log degree) also where nearly
// every pair is an edge, and where none is left it says so. Read-only and safe for concurrent use.
type NonEdges struct {
	ends     [2]ends // by Kept
	directed bool
	numNodes int64
}

// Kept says which end of a positive its negative keeps.
type Kept uint8

const (
	KeepSrc Kept = iota // the dst is drawn from the nodes that src has no edge to
	KeepDst             // the src is drawn from the nodes that dst has no edge from
)

// ends are the other ends of the edges of each node, on one side.
type ends struct {
	rows *graph.CSR
	held []uint64 // of held-out pairs: the node above the rank of the other end among those that aren't in the node's row; sorted, distinct
}

// errNegativeRows is what is wrong with rows that NonEdges can't search.
var errNegativeRows = errors.New("negatives from rows with relations: want CSR.Simple of them")

// NewNonEdges takes in the in-rows, out-rows too where the graph is directed (else nil), and the lists of pairs held out of them, which count in both
// directions where it isn't. Rows have no relations, and nodes of held pairs are below NumNodes.
func NewNonEdges(in, out *graph.CSR, held ...graph.Pairs) (*NonEdges, error) {
	if in.Rel != nil || out != nil && out.Rel != nil {
		return nil, errNegativeRows
	}
	n := &NonEdges{directed: out != nil, numNodes: int64(in.NumNodes())}
	n.ends[KeepDst].rows, n.ends[KeepSrc].rows = in, in
	if out != nil {
		n.ends[KeepSrc].rows = out
	}
	for _, list := range held {
		for i, src := range list.Src {
			dst := list.Dst[i]
			n.ends[KeepDst].hold(dst, src)
			n.ends[KeepSrc].hold(src, dst)
			if out == nil {
				n.ends[KeepDst].hold(src, dst)
				n.ends[KeepSrc].hold(dst, src)
			}
		}
	}
	for k := range n.ends {
		slices.Sort(n.ends[k].held)
		n.ends[k].held = slices.Compact(n.ends[k].held)
	}
	return n, nil
}

// hold notes that a held-out pair joins v to u.
func (e *ends) hold(v, u int32) {
	if before, ok := slices.BinarySearch(e.rows.Row(v), u); !ok && u != v {
		e.held = append(e.held, uint64(v)<<32|uint64(int(u)-before))
	}
}

// heldOf returns the held entries of v.
func (e *ends) heldOf(v int32) []uint64 {
	first := sort.Search(len(e.held), func(i int) bool { return int64(e.held[i]>>32) >= int64(v) })
	n := sort.Search(len(e.held)-first, func(i int) bool { return int64(e.held[first+i]>>32) > int64(v) })
	return e.held[first : first+n]
}

// NonNeighbours are the nodes that a node has no edge with, ascending. Valid as long as the rows it comes from.
type NonNeighbours struct {
	row  []int32
	held []uint64 // of the node, by rank
	self int64    // the rank of the node itself among those neither in the row nor held: how many of them are below it
	loop bool     // the row has the node itself, so it is in no need of leaving out
	n    int64
}

// Of returns the nodes that v, at the end kept, has no edge with. O(log) of its degree and of the pairs held out.
func (n *NonEdges) Of(kept Kept, v int32) NonNeighbours {
	e := &n.ends[kept]
	of := NonNeighbours{row: e.rows.Row(v), held: e.heldOf(v)}
	before, loop := slices.BinarySearch(of.row, v)
	rank := int64(v) - int64(before)
	heldBelow := sort.Search(len(of.held), func(i int) bool { return int64(uint32(of.held[i])) >= rank })
	of.self, of.loop = rank-int64(heldBelow), loop
	of.n = n.numNodes - int64(len(of.row)) - int64(len(of.held))
	if !loop {
		of.n--
	}
	return of
}

// Len returns their number.
func (n *NonNeighbours) Len() int64 { return n.n }

// At returns the j-th of them, from 0. O(log degree).
func (n *NonNeighbours) At(j int64) int32 {
	if !n.loop && j >= n.self {
		j++
	}
	j = missing(len(n.held), j, func(i int) int64 { return int64(uint32(n.held[i])) })
	return int32(missing(len(n.row), j, func(i int) int64 { return int64(n.row[i]) }))
}

// missing returns the j-th number from 0 on that isn't among n ascending ones.
func missing(n int, j int64, at func(i int) int64) int64 {
	return j + int64(sort.Search(n, func(i int) bool { return at(i)-int64(i) > j }))
}

// Negatives draws pairs that are no edges of the full graph, uniformly. Not safe for concurrent use; give each worker its own.
type Negatives struct {
	edges *NonEdges
	keys  []uint64
	opt   NegativeOptions
	drawn floyd
}

// NegativeOptions steer Negatives.
type NegativeOptions struct {
	K        int  // negatives of a positive
	Distinct bool // no pair twice among the negatives of one positive; else draws are independent
	Seed     int64
}

// NewNegatives makes a Negatives; keys has len NumNodes.
func NewNegatives(edges *NonEdges, keys []uint64, opt NegativeOptions) *Negatives {
	if int64(len(keys)) != edges.numNodes {
		panic("sample: keys and rows are of different graphs")
	}
	return &Negatives{edges: edges, keys: keys, opt: opt}
}

// Append appends the negatives of the positive src -> dst, an edge of the full graph, in a variant to the ends of pairs. Of the K the first half, rounded up, keep
// the src, the others the dst; what one end can't have goes to the other, if that can. Number i is place below(h, n) of the kept end's n non-neighbours, with
// h = hash(9, seed, variant, key of src, key of dst, i); with Distinct by Floyd's rule (Bentley, "A sample of brilliance", CACM 1987), that
// is, of the m that keep an end the j-th takes place p = below(h, n-m+j+1), or n-m+j where p is taken.
//
// There are K of them but where both ends have edges with every node: then there is none to be had, and none is appended. With Distinct there are fewer
// where fewer differ.
func (n *Negatives) Append(negSrc, negDst []int32, variant int, src, dst int32) ([]int32, []int32) {
	return n.append(negSrc, negDst, graph.Hash(forNegative, uint64(n.opt.Seed), uint64(variant)), src, dst)
}

// AppendFixed is Append for evaluation, where negatives are the same whatever the variant: h = hash(10, seed, key of src, key of dst, i).
func (n *Negatives) AppendFixed(negSrc, negDst []int32, src, dst int32) ([]int32, []int32) {
	return n.append(negSrc, negDst, graph.Hash(forFixed, uint64(n.opt.Seed)), src, dst)
}

func (n *Negatives) append(negSrc, negDst []int32, base uint64, src, dst int32) ([]int32, []int32) {
	base = graph.Fold(graph.Fold(base, n.keys[src]), n.keys[dst])
	of := [2]NonNeighbours{n.edges.Of(KeepSrc, src), n.edges.Of(KeepDst, dst)}
	ends, want := [2]int32{src, dst}, n.split([2]int64{of[KeepSrc].n, of[KeepDst].n})
	i := uint64(0)
	for kept := range ends {
		n.drawn.reset()
		for j := range want[kept] {
			h := graph.Fold(base, i)
			i++
			place := below(h, of[kept].n)
			if n.opt.Distinct {
				place = n.drawn.take(h, of[kept].n-want[kept]+j)
			}
			pair := ends
			pair[1-kept] = of[kept].At(place)
			negSrc, negDst = append(negSrc, pair[0]), append(negDst, pair[1])
		}
	}
	return negSrc, negDst
}

// split returns how many negatives keep either end, given how many each end could have.
func (n *Negatives) split(count [2]int64) (want [2]int64) {
	k, limit := int64(n.opt.K), count
	if !n.opt.Distinct {
		for kept := range limit {
			limit[kept] = min(limit[kept], 1) * k
		}
	}
	want[KeepSrc] = min((k+1)/2, limit[KeepSrc])
	want[KeepDst] = min(k-want[KeepSrc], limit[KeepDst])
	want[KeepSrc] = min(k-want[KeepDst], limit[KeepSrc])
	return want
}

// floyd draws distinct numbers by Floyd's rule.
type floyd struct {
	list []int64
	seen map[int64]struct{} // of list, once that is long
}

// longList is from where on a search in a list costs more than one in a map.
const longList = 64

func (f *floyd) reset() {
	f.list, f.seen = f.list[:0], nil
}

// take returns a number up to i that it hasn't returned since reset; i goes up by one each time.
func (f *floyd) take(h uint64, i int64) int64 {
	x := below(h, i+1)
	if f.has(x) {
		x = i
	}
	f.list = append(f.list, x)
	if f.seen != nil {
		f.seen[x] = struct{}{}
	} else if len(f.list) > longList {
		f.seen = make(map[int64]struct{}, 2*longList)
		for _, y := range f.list {
			f.seen[y] = struct{}{}
		}
	}
	return x
}

func (f *floyd) has(x int64) bool {
	if f.seen != nil {
		_, ok := f.seen[x]
		return ok
	}
	return slices.Contains(f.list, x)
}

// AnyNonEdges draws from all pairs that are no edge, whatever the positives; of an undirected graph from those of src < dst. Read-only and safe for concurrent use.
type AnyNonEdges struct {
	edges  *NonEdges
	starts []int64 // [NumNodes+1] pairs of the src before each
}

// NewAnyNonEdges counts the pairs. 8 bytes a node, O(N log degree).
func NewAnyNonEdges(edges *NonEdges) *AnyNonEdges {
	a := &AnyNonEdges{edges: edges, starts: make([]int64, edges.numNodes+1)}
	for v := range int32(edges.numNodes) {
		of := edges.Of(KeepSrc, v)
		a.starts[v+1] = a.starts[v] + of.n - a.skip(&of)
	}
	return a
}

// skip returns how many of a src's non-neighbours, the first ones, aren't the dst of one of its pairs.
func (a *AnyNonEdges) skip(of *NonNeighbours) int64 {
	if a.edges.directed {
		return 0
	}
	return of.self
}

// Len returns the number of pairs there are.
func (a *AnyNonEdges) Len() int64 { return a.starts[len(a.starts)-1] }

// At returns pair number i, ascending by (src, dst) from 0.
func (a *AnyNonEdges) At(i int64) (src, dst int32) {
	src = int32(sort.Search(len(a.starts)-1, func(v int) bool { return a.starts[v+1] > i }))
	of := a.edges.Of(KeepSrc, src)
	return src, of.At(i - a.starts[src] + a.skip(&of))
}

// Append appends k pairs, number i by below(hash(11, seed, variant, i), Len), with distinct by Floyd's rule, and then at most Len of them; none where there is none.
func (a *AnyNonEdges) Append(negSrc, negDst []int32, seed int64, variant, k int, distinct bool) ([]int32, []int32) {
	base, count, want := graph.Hash(forNonEdge, uint64(seed), uint64(variant)), a.Len(), int64(k)
	if distinct || count == 0 {
		want = min(want, count)
	}
	var drawn floyd
	for i := range want {
		h := graph.Fold(base, uint64(i))
		place := below(h, count)
		if distinct {
			place = drawn.take(h, count-want+i)
		}
		src, dst := a.At(place)
		negSrc, negDst = append(negSrc, src), append(negDst, dst)
	}
	return negSrc, negDst
}
