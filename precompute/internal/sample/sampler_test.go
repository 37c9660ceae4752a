package sample

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"sync"
	"testing"

	"github.com/prelift/prelift/snapshot/graph"
)

// TestDrawValues: worked values, which a Python program of the rule in Draw's comment gives too.
func TestDrawValues(t *testing.T) {
	a, b := keyOf("a"), keyOf("b")
	for _, c := range []struct {
		seed         int64
		variant, hop int
		dst, src     uint64
		want         uint64
	}{
		{1, 0, 1, a, b, 0x484acc5cef4e9442},
		{1, 3, 2, b, a, 0x97edc3dcc60914e6},
		{-1, 0, 1, 0, 0, 0x30dbaf47cb673070},
	} {
		if got := Draw(c.seed, c.variant, c.hop, c.dst, c.src); got != c.want {
			t.Errorf("Draw(%d, %d, %d, %#x, %#x) = %#x, want %#x", c.seed, c.variant, c.hop, c.dst, c.src, got, c.want)
		}
	}
	if a != 0xca978112ca1bbdca {
		t.Errorf("key of \"a\" is %#x", a)
	}
}

// TestOtherDrawValues: worked values of the other draws, which a Python program of the rules in SPEC 8 gives too.
func TestOtherDrawValues(t *testing.T) {
	a, b := keyOf("a"), keyOf("b")
	for _, c := range []struct {
		name      string
		got, want uint64
	}{
		{"labor, of b at hop 1", LaborDraw(1, 0, 1, b), 0x94ac4e368cc077d3},
		{"labor, of a negative seed", LaborDraw(-5, 3, 2, a), 0xdd7d4e3741f04a09},
		{"of a relation", graph.Fold(Draw(1, 0, 1, a, b), keyOf("likes")), 0xd37f31f7d571f29f},
		{"as a number", math.Float64bits(unit(Draw(1, 0, 1, a, b))), math.Float64bits(0.28239133137622685)},
		{"priority of weight 3", priority(3, Draw(1, 0, 1, a, b)), math.Float64bits(10.623555565178215)},
		{"place of negative 1 of a, b among 1000", uint64(below(graph.Hash(forNegative, 1, 0, a, b, 1), 1000)), 765},
		{"place of fixed negative 0", uint64(below(graph.Hash(forFixed, 1, a, b, 0), 1000)), 391},
	} {
		if c.got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, c.got, c.want)
		}
	}
	// The same through Negatives: without edges every other node of 1,001 is a non-neighbour, a (number 0) is followed by number 1 and so on.
	edges, err := NewNonEdges(&graph.CSR{Indptr: make([]int64, 1002)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]uint64, 1001)
	keys[0], keys[1000] = a, b
	draw := NewNegatives(edges, keys, NegativeOptions{K: 3, Seed: 1})
	if src, dst := draw.Append(nil, nil, 0, 0, 1000); !slices.Equal(src, []int32{0, 0, 521}) || !slices.Equal(dst, []int32{321, 766, 1000}) {
		t.Errorf("negatives %v -> %v", src, dst)
	}
	if src, dst := draw.AppendFixed(nil, nil, 0, 1000); src[0] != 0 || dst[0] != 392 {
		t.Errorf("fixed negative %d -> %d", src[0], dst[0])
	}
}

// TestLaborShared: two nodes of equal degree that share all neighbours take the same ones, and a batch of such nodes has fewer distinct rows than uniform draws give.
func TestLaborShared(t *testing.T) {
	var src, dst []int32
	for v := range int32(20) {
		for u := int32(20); u < 220; u++ {
			src, dst = append(src, u), append(dst, v)
		}
	}
	g, err := graph.Build(context.Background(), 220, src, dst, nil, graph.Options{Directed: true})
	if err != nil {
		t.Fatal(err)
	}
	count := map[Method]int{}
	for _, method := range []Method{Uniform, Labor} {
		s := NewSampler(&g.In, testKeys(220), Options{Fanout: []int{10}, Method: method, Seed: 1}, nil)
		b := s.Sample(0, numbers(20))
		count[method] = len(b.Nodes) - 20
		layer := &b.Layers[0]
		first := layer.Indices[:layer.Indptr[1]]
		for d := 1; method == Labor && d < 20; d++ {
			if !slices.Equal(layer.Indices[layer.Indptr[d]:layer.Indptr[d+1]], first) {
				t.Errorf("node %d takes others than node 0", d)
			}
		}
	}
	if count[Labor] > 30 || count[Uniform] < 80 {
		t.Errorf("20 nodes take %d distinct ones by labor, %d uniformly", count[Labor], count[Uniform])
	}
}

// keyOf returns the key of an external id, as a snapshot stores it.
func keyOf(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint64(sum[:])
}

// named is a graph whose nodes have external ids, sorted.
type named struct {
	ids  []string
	keys []uint64
	in   *graph.CSR
}

func namedGraph(t testing.TB, ids []string, edges [][2]string) *named {
	t.Helper()
	ids = slices.Sorted(slices.Values(ids))
	n := &named{ids: ids}
	for _, id := range ids {
		n.keys = append(n.keys, keyOf(id))
	}
	var src, dst []int32
	for _, e := range edges {
		src, dst = append(src, n.number(e[0])), append(dst, n.number(e[1]))
	}
	g, err := graph.Build(context.Background(), len(ids), src, dst, nil, graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n.in = &g.In
	return n
}

func (n *named) number(id string) int32 {
	i, _ := slices.BinarySearch(n.ids, id)
	return int32(i)
}

// drawn returns the ids that a node takes as the only seed of a one-layer batch.
func (n *named) drawn(seed int64, fanout int, id string) []string {
	b := NewSampler(n.in, n.keys, Options{Fanout: []int{fanout}, Seed: seed}, nil).Sample(0, []int32{n.number(id)})
	list := []string{}
	for _, place := range b.Layers[0].Indices {
		list = append(list, n.ids[b.Nodes[place]])
	}
	return list
}

// TestCase49FanoutAboveDegree is case 49: without replacement each neighbour is taken once, also
// where its edge is listed twice and the fanout is above the degree.
func TestCase49FanoutAboveDegree(t *testing.T) {
	g := namedGraph(t, []string{"c", "n1", "n2", "n3"}, [][2]string{{"c", "n1"}, {"c", "n2"}, {"c", "n3"}, {"c", "n1"}})
	for _, fanout := range []int{5, 3, All} {
		if got := g.drawn(1, fanout, "c"); !slices.Equal(got, []string{"n1", "n2", "n3"}) {
			t.Errorf("fanout %d takes %v", fanout, got)
		}
	}
	if got := g.drawn(1, 0, "c"); len(got) != 0 {
		t.Errorf("fanout 0 takes %v", got)
	}
	pairs := map[string]int{}
	for seed := range int64(3000) {
		got := g.drawn(seed, 2, "c")
		if len(got) != 2 {
			t.Fatalf("fanout 2 takes %v", got)
		}
		pairs[got[0]+got[1]]++
	}
	for _, pair := range []string{"n1n2", "n1n3", "n2n3"} {
		if n := pairs[pair]; n < 890 || n > 1110 {
			t.Errorf("%s was drawn %d times in 3000, want 1000 +- 110 (4.3 sigma)", pair, n)
		}
	}
}

// slowEdge is an edge taken: its entry in the rows, and what it counts for.
type slowEdge struct {
	entry      int64
	src        int32
	importance float32
}

// slowRow is the reference of Sampler.take: what v takes at a hop, by full sorts, and the number of its neighbours.
func slowRow(in *graph.CSR, keys []uint64, opt Options, variant, hop int, v int32) (row []slowEdge) {
	draw := map[int64]uint64{}
	for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
		u := in.Indices[e]
		if u == v || opt.Method == Weighted && in.Weight[e] == 0 {
			continue
		}
		row = append(row, slowEdge{e, u, 1})
		draw[e] = Draw(opt.Seed, variant, hop, keys[v], keys[u])
		if in.Rel != nil {
			draw[e] = graph.Fold(draw[e], opt.RelKeys[in.Rel[e]])
		}
		if opt.Method == Labor {
			draw[e] = LaborDraw(opt.Seed, variant, hop, keys[u])
		}
	}
	k := opt.Fanout[hop-1]
	if k == All && opt.HubCap > 0 {
		k = opt.HubCap
	}
	d := len(row)
	if k == All || d <= k {
		return row
	}
	byEntry := func(a, b slowEdge) int { return cmp.Compare(a.entry, b.entry) }
	switch opt.Method {
	case Uniform:
		slices.SortStableFunc(row, func(a, b slowEdge) int { return cmp.Compare(draw[a.entry], draw[b.entry]) })
		row = row[:k]
		for i := range row {
			row[i].importance = float32(float64(d) / float64(k))
		}
	case Weighted:
		priority := func(e slowEdge) float64 {
			return float64(in.Weight[e.entry]) / ((float64(draw[e.entry]>>11) + 1) / (1 << 53))
		}
		slices.SortStableFunc(row, func(a, b slowEdge) int { return cmp.Compare(priority(b), priority(a)) })
		tau := priority(row[k])
		row = row[:k]
		for i := range row {
			w := float64(in.Weight[row[i].entry])
			row[i].importance = float32(max(w, tau) / w)
		}
	case Labor:
		var taken []slowEdge
		for _, e := range row {
			// draw / 2^64 < floor(2^64 k/d) / 2^64
			limit := new(big.Int).Lsh(big.NewInt(int64(k)), 64)
			limit.Div(limit, big.NewInt(int64(d)))
			if new(big.Int).SetUint64(draw[e.entry]).Cmp(limit) < 0 {
				taken = append(taken, slowEdge{e.entry, e.src, float32(float64(d) / float64(k))})
			}
		}
		row = taken
	}
	slices.SortFunc(row, byEntry)
	return row
}

// slowBatch is the reference of Sampler: maps and full sorts.
func slowBatch(in *graph.CSR, keys []uint64, opt Options, variant int, seeds []int32) (nodes []int32, layers [][][]slowEdge) {
	place := map[int32]bool{}
	for _, v := range seeds {
		nodes = append(nodes, v)
		place[v] = true
	}
	layers = make([][][]slowEdge, len(opt.Fanout))
	for hop := 1; hop <= len(opt.Fanout); hop++ {
		fresh := []int32{}
		for _, v := range nodes {
			row := slowRow(in, keys, opt, variant, hop, v)
			for _, e := range row {
				if !place[e.src] {
					place[e.src] = true
					fresh = append(fresh, e.src)
				}
			}
			layers[len(opt.Fanout)-hop] = append(layers[len(opt.Fanout)-hop], row)
		}
		slices.Sort(fresh)
		nodes = append(nodes, fresh...)
	}
	return nodes, layers
}

// checkBatch compares a batch with the reference and checks what a Batch promises.
func checkBatch(t *testing.T, in *graph.CSR, keys []uint64, opt Options, variant int, seeds []int32, b *Batch) {
	t.Helper()
	nodes, layers := slowBatch(in, keys, opt, variant, seeds)
	if !slices.Equal(b.Nodes, nodes) {
		t.Fatalf("%v %v: nodes %v, want %v", opt.Method, opt.Fanout, b.Nodes, nodes)
	}
	for l := range b.Layers {
		layer, hop := &b.Layers[l], len(b.Layers)-l
		if layer.NumDst() != b.HopNodes[hop-1] || len(layers[l]) != layer.NumDst() {
			t.Fatalf("layer %d has %d rows, hop %d has %d nodes, want %d", l, layer.NumDst(), hop-1, b.HopNodes[hop-1], len(layers[l]))
		}
		if opt.Method == Weighted && layer.Importance != nil || opt.Method != Weighted && len(layer.EdgeImportance) > 0 {
			t.Fatalf("%v: importance of %d dst and %d edges", opt.Method, len(layer.Importance), len(layer.EdgeImportance))
		}
		for d := range layer.NumDst() {
			got := []slowEdge{}
			for e := layer.Indptr[d]; e < layer.Indptr[d+1]; e++ {
				if int(layer.Indices[e]) >= b.HopNodes[hop] {
					t.Fatalf("layer %d: place %d of %d", l, layer.Indices[e], b.HopNodes[hop])
				}
				edge := slowEdge{-1, b.Nodes[layer.Indices[e]], 0}
				if opt.Method == Weighted {
					edge.importance = layer.EdgeImportance[e]
				} else {
					edge.importance = layer.Importance[d]
				}
				if opt.KeepEntries {
					edge.entry = layer.Entries[e]
				}
				got = append(got, edge)
			}
			want := slices.Clone(layers[l][d])
			for i := range want {
				if !opt.KeepEntries {
					want[i].entry = -1
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%v, layer %d, node %d takes %v, want %v", opt.Method, l, b.Nodes[d], got, want)
			}
			if k := opt.FanoutOf(hop); opt.Method != Labor && k >= 0 && len(got) > k {
				t.Fatalf("node %d takes %d of %d", b.Nodes[d], len(got), k)
			}
		}
	}
}

// withRelations returns in with up to three relations for each entry, the first with the weight of the entry, and their keys.
func withRelations(in *graph.CSR) (*graph.CSR, []uint64) {
	out := &graph.CSR{Indptr: make([]int64, len(in.Indptr)), Weight: []float32{}, Rel: []int32{}}
	for v := range int32(in.NumNodes()) {
		for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
			u := in.Indices[e]
			h := graph.Hash(55, uint64(min(u, v)), uint64(max(u, v)))
			for rel := range int32(3) {
				if h>>rel&1 == 1 {
					out.Indices, out.Rel = append(out.Indices, u), append(out.Rel, rel)
					out.Weight = append(out.Weight, in.Weight[e]*float32(rel+1))
				}
			}
		}
		out.Indptr[v+1] = int64(len(out.Indices))
	}
	return out, []uint64{keyOf("likes"), keyOf("knows"), keyOf("cites")}
}

func TestSamplerAgainstReference(t *testing.T) {
	in, keys := skewedGraph(t, 9, 4000)
	in.Weight = testWeights(in)
	for i := range keys[:200] {
		keys[i] = uint64(i / 20) // equal keys: ties everywhere
	}
	relations, relKeys := withRelations(in)
	for _, c := range []struct {
		name    string
		in      *graph.CSR
		relKeys []uint64
	}{{"plain", in, nil}, {"relations", relations, relKeys}} {
		for _, method := range []Method{Uniform, Weighted, Labor} {
			for _, hubCap := range []int{0, 9} {
				for _, fanout := range [][]int{{}, {0}, {1}, {All}, {3, 2}, {2, All, 2}, {40, 1}, {5, 0, 5}} {
					opt := Options{Fanout: fanout, Method: method, HubCap: hubCap, Seed: -7, KeepEntries: len(fanout)%2 == 0, RelKeys: c.relKeys}
					for _, memo := range []*Memo{nil, NewMemo(c.in, opt)} {
						s := NewSampler(c.in, keys, opt, memo)
						for _, seeds := range [][]int32{{}, {0}, {5, 3, 1}, numbers(40)} {
							for _, variant := range []int{0, 1, 0} {
								checkBatch(t, c.in, keys, opt, variant, seeds, s.Sample(variant, seeds))
							}
						}
					}
				}
			}
		}
	}
}

// TestNastyShapes: loops on every node, loops alone, isolated nodes, a hub of all nodes, equal weights and zeros: every method draws what its reference does, and
// at most the fanout, whatever the fanout; a row longer than several blocks too.
func TestNastyShapes(t *testing.T) {
	const n = 3 * blockLen
	var src, dst []int32
	for v := range int32(n - 1) { // the last is isolated
		src, dst = append(src, v), append(dst, v)
		if v < n-10 { // the nine before it have loops only
			src, dst = append(src, v), append(dst, 7)
		}
	}
	for v := range int32(40) {
		src, dst = append(src, v), append(dst, 40+v%5)
	}
	g, err := graph.Build(context.Background(), n, src, dst, nil, graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in, keys := &g.In, testKeys(n)
	for _, weights := range []func(e int) float32{
		func(int) float32 { return 1 },
		func(int) float32 { return 0 },
		func(e int) float32 { return float32(e % 3) },
		func(e int) float32 { return math.SmallestNonzeroFloat32 * float32(e%2) },
		func(e int) float32 { return float32(math.Pow(10, float64(e%60-30))) },
	} {
		in.Weight = make([]float32, in.NumEntries())
		for e := range in.Weight {
			in.Weight[e] = weights(e)
		}
		for _, method := range []Method{Uniform, Weighted, Labor} {
			for _, k := range []int{All, 0, 1, 2, 4, 5, 6, 30, 200, n - 12, n - 11, n - 10, n, math.MaxInt32} {
				opt := Options{Fanout: []int{k, min(k, 3)}, Method: method, Seed: 3}
				s := NewSampler(in, keys, opt, NewMemo(in, opt))
				seeds := []int32{7, 0, 41, n - 1, n - 2}
				for variant := range 3 {
					b := s.Sample(variant, seeds)
					checkBatch(t, in, keys, opt, variant, seeds, b)
					for l := range b.Layers {
						for _, x := range b.Layers[l].EdgeImportance {
							if !(x >= 1 && x <= math.MaxFloat32) {
								t.Fatalf("importance %g", x)
							}
						}
					}
				}
			}
		}
	}
}

// TestMaximumDraw: the largest draw there is counts like any other, also where the node has a loop.
func TestMaximumDraw(t *testing.T) {
	sel := selection{}
	for _, limit := range []uint64{math.MaxUint64, 1 << 40} {
		sel.n = 0
		sel.reserve(4)
		sel.addBelow([]uint64{math.MaxUint64, 5, math.MaxUint64}, 10, limit)
		want := []int32{10, 11, 12}
		if limit < math.MaxUint64 {
			want = []int32{11}
		}
		if got := sel.places[:sel.n]; !slices.Equal(got, want) {
			t.Errorf("limit %#x keeps %v, want %v", limit, got, want)
		}
	}
}

// TestCuts: both cuts keep the smallest of draws, the first of equal ones, in their order, whatever draws they are.
func TestCuts(t *testing.T) {
	for trial := range 3000 {
		h := func(what int) uint64 { return graph.Hash(uint64(trial), uint64(what)) }
		n, k := int(h(-1)%60), 1+int(h(-2)%20)
		draws := make([]uint64, n)
		for i := range draws {
			draws[i] = h(i) >> (h(-3) % 64) // often many equal ones
			if h(-4)%3 == 0 {
				draws[i] = ^draws[i]
			}
		}
		want := make([]int32, n)
		for i := range want {
			want[i] = int32(i)
		}
		slices.SortStableFunc(want, func(a, b int32) int { return cmp.Compare(draws[a], draws[b]) })
		want = want[:min(n, k)]
		slices.Sort(want)
		for name, cut := range map[string]func(*selection) uint64{
			"cut":     func(s *selection) uint64 { return s.cut(k) },
			"cutEven": func(s *selection) uint64 { return s.cutEven(k, math.MaxUint64) },
		} {
			s := selection{}
			s.reserve(n + 1)
			s.addBelow(draws, 0, math.MaxUint64)
			limit := cut(&s)
			if got := s.places[:s.n]; !slices.Equal(got, want) {
				t.Fatalf("%s of %d from %v keeps %v, want %v", name, k, draws, got, want)
			}
			for i, x := range draws {
				if kept := slices.Contains(want, int32(i)); kept && x > limit {
					t.Fatalf("%s: a draw kept is %d, over the limit %d", name, x, limit)
				}
			}
		}
	}
}

// TestSharedMemo: samplers that share a memo, at work at once on two variants, draw what
// one without a memo draws.
func TestSharedMemo(t *testing.T) {
	for _, method := range []Method{Uniform, Weighted, Labor} {
		testSharedMemo(t, Options{Fanout: []int{4, 3, 3}, Method: method, Seed: 5, KeepEntries: true})
	}
}

func testSharedMemo(t *testing.T, opt Options) {
	in, keys := skewedGraph(t, 10, 20000)
	in.Weight = testWeights(in)
	flat := func(b *Batch) []int32 {
		all := append(slices.Clone(b.Nodes), b.Layers[0].Indices...)
		for l := range b.Layers {
			for _, e := range b.Layers[l].Entries {
				all = append(all, int32(e))
			}
			for _, x := range b.Layers[l].EdgeImportance {
				all = append(all, floatBits(x))
			}
		}
		return all
	}
	want := make([][]int32, 64)
	alone := NewSampler(in, keys, opt, nil)
	seedsOf := func(i int) []int32 { return numbers(1024)[i%32*16:][:16] }
	for i := range want {
		b := alone.Sample(i/32, seedsOf(i))
		want[i] = flat(b)
	}
	memo := NewMemo(in, opt)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			s := NewSampler(in, keys, opt, memo)
			for n := range want {
				i := (n + w*16) % len(want)
				b := s.Sample(i/32, seedsOf(i))
				if got := flat(b); !slices.Equal(got, want[i]) {
					t.Errorf("%v: batch %d differs with a shared memo", opt.Method, i)
				}
			}
		})
	}
	wg.Wait()
}

// TestUnbiased: the mean over 2,000 variants of the sampled sum of w x, scaled by importance,
// is the full sum, node by node within 4.5 standard errors and with a mean squared z of about 1. Seeds repeat the
// experiment where the z-scores of one are few, or hang together because dst share their draws.
func TestUnbiased(t *testing.T) {
	small, smallKeys := skewedGraph(t, 6, 700) // 64 nodes
	large, largeKeys := skewedGraph(t, 11, 16000)
	small.Weight, large.Weight = testWeights(small), testWeights(large)
	for _, method := range []Method{Uniform, Weighted, Labor} {
		t.Run("small/"+method.String(), func(t *testing.T) {
			t.Parallel()
			repeats := 20
			if method == Labor {
				repeats = 60
			}
			testUnbiased(t, small, smallKeys, Options{Fanout: []int{4}, Method: method, KeepEntries: true}, repeats)
		})
		if method == Uniform && !testing.Short() {
			t.Run("large/"+method.String(), func(t *testing.T) {
				t.Parallel()
				testUnbiased(t, large, largeKeys, Options{Fanout: []int{4}, Method: method, KeepEntries: true}, 1)
			})
		}
	}
}

func testUnbiased(t *testing.T, in *graph.CSR, keys []uint64, opt Options, numSeeds int) {
	total, count := 0.0, 0
	for seed := range numSeeds {
		opt.Seed = int64(seed)
		for v, z := range zScores(t, in, keys, opt, 2000) {
			if math.Abs(z) > 4.5 {
				t.Errorf("seed %d, node %d of degree %d: z %g", seed, v, in.Degree(v), z)
			}
			total += z * z
			count++
		}
	}
	got := total / float64(count)
	t.Logf("%d z-scores, mean square %.3f", count, got)
	if count < 500 || got < 0.9 || got > 1.1 {
		t.Errorf("mean square of %d z-scores is %g, want 0.9 to 1.1", count, got)
	}
}

// zScores returns, by node whose draws vary, how many standard errors the mean over variants is off the full sum.
func zScores(t *testing.T, in *graph.CSR, keys []uint64, opt Options, variants int) map[int32]float64 {
	n, k := in.NumNodes(), opt.Fanout[0]
	x := make([]float64, n)
	for v := range x {
		x[v] = math.Sin(float64(v)) + 0.5
	}
	s := NewSampler(in, keys, opt, nil)
	sums, squares := make([]float64, n), make([]float64, n)
	seeds := numbers(n)
	for variant := range variants {
		b := s.Sample(variant, seeds)
		layer := &b.Layers[0]
		for d := range n {
			sum := 0.0
			for e := layer.Indptr[d]; e < layer.Indptr[d+1]; e++ {
				term := x[b.Nodes[layer.Indices[e]]] * float64(in.Weight[layer.Entries[e]])
				if opt.Method == Weighted {
					term *= float64(layer.EdgeImportance[e])
				} else {
					term *= float64(layer.Importance[d])
				}
				sum += term
			}
			sums[d] += sum
			squares[d] += sum * sum
		}
	}
	scores := map[int32]float64{}
	for v := range n {
		full, degree, scale := 0.0, 0, 0.0
		for at, u := range in.Row(int32(v)) {
			if w := in.RowWeights(int32(v))[at]; int(u) != v && (opt.Method != Weighted || w > 0) {
				full += x[u] * float64(w)
				scale += math.Abs(x[u]) * float64(w)
				degree++
			}
		}
		mean := sums[v] / float64(variants)
		variance := (squares[v] - float64(variants)*mean*mean) / float64(variants-1)
		if degree <= k || scale == 0 {
			if math.Abs(mean-full) > 1e-6*scale { // importances are float32
				t.Errorf("node %d: mean %g, all its neighbours give %g", v, mean, full)
			}
			continue
		}
		scores[int32(v)] = (mean - full) / math.Sqrt(variance/float64(variants))
	}
	return scores
}

// TestChangeIsLocal: a new node changes only the draws of its neighbours, and there only by
// taking the place of one.
func TestChangeIsLocal(t *testing.T) {
	var ids []string
	var edges [][2]string
	for i := range 80 {
		ids = append(ids, fmt.Sprintf("v%02d", i))
	}
	for i := range 600 {
		x := graph.Hash(7, uint64(i))
		edges = append(edges, [2]string{ids[x%80], ids[x>>32%80]})
	}
	before := namedGraph(t, ids, edges)
	after := namedGraph(t, append(slices.Clone(ids), "a new first one"), append(slices.Clone(edges), [2]string{"a new first one", "v05"}, [2]string{"v40", "a new first one"}))
	changed := 0
	for _, id := range ids {
		for _, fanout := range []int{1, 3, 6} {
			old, now := before.drawn(3, fanout, id), after.drawn(3, fanout, id)
			if slices.Equal(old, now) {
				continue
			}
			changed++
			if i := slices.Index(now, "a new first one"); i < 0 || id != "v05" && id != "v40" {
				t.Errorf("%s at fanout %d takes %v after %v", id, fanout, now, old)
				continue
			}
			for _, u := range now {
				if u != "a new first one" && !slices.Contains(old, u) {
					t.Errorf("%s at fanout %d takes %v after %v", id, fanout, now, old)
				}
			}
		}
	}
	if changed == 0 {
		t.Error("no draw took the new node; the test shows nothing")
	}
}

// TestHopsDiffer: a seed draws anew at each hop, and variants differ.
func TestHopsDiffer(t *testing.T) {
	in, keys := skewedGraph(t, 8, 3000)
	hub := int32(0)
	s := NewSampler(in, keys, Options{Fanout: []int{3, 3}, Seed: 1}, nil)
	b := s.Sample(0, []int32{hub})
	rows := [][]int32{}
	take := func(l int) {
		layer := &b.Layers[l]
		row := []int32{}
		for _, place := range layer.Indices[:layer.Indptr[1]] {
			row = append(row, b.Nodes[place])
		}
		rows = append(rows, row)
	}
	take(0)
	take(1)
	b = s.Sample(1, []int32{hub})
	take(1)
	for i := range rows {
		for j := range i {
			if slices.Equal(rows[i], rows[j]) {
				t.Errorf("draws %d and %d are both %v", i, j, rows[i])
			}
		}
	}
}
