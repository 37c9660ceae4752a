package sample

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
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

// TestFanoutAboveDegree is case 49: without replacement each neighbour is taken once, also
// where its edge is listed twice and the fanout is above the degree.
func TestFanoutAboveDegree(t *testing.T) {
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

// slowBatch is the reference of Sampler: maps and full sorts.
func slowBatch(in *graph.CSR, keys []uint64, opt Options, variant int, seeds []int32) (nodes []int32, layers [][][]int32) {
	place := map[int32]bool{}
	for _, v := range seeds {
		nodes = append(nodes, v)
		place[v] = true
	}
	layers = make([][][]int32, len(opt.Fanout))
	for hop := 1; hop <= len(opt.Fanout); hop++ {
		k, fresh := opt.Fanout[hop-1], []int32{}
		for _, v := range nodes {
			var row []int32
			for _, u := range in.Row(v) {
				if u != v {
					row = append(row, u)
				}
			}
			if k >= 0 && len(row) > k {
				slices.SortStableFunc(row, func(a, b int32) int {
					x, y := Draw(opt.Seed, variant, hop, keys[v], keys[a]), Draw(opt.Seed, variant, hop, keys[v], keys[b])
					switch {
					case x < y:
						return -1
					case x > y:
						return 1
					}
					return int(a - b)
				})
				row = row[:k]
				slices.Sort(row)
			}
			for _, u := range row {
				if !place[u] {
					place[u] = true
					fresh = append(fresh, u)
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
		t.Fatalf("nodes %v, want %v", b.Nodes, nodes)
	}
	for l := range b.Layers {
		layer, hop := &b.Layers[l], len(b.Layers)-l
		if layer.NumDst() != b.HopNodes[hop-1] || len(layers[l]) != layer.NumDst() {
			t.Fatalf("layer %d has %d rows, hop %d has %d nodes, want %d", l, layer.NumDst(), hop-1, b.HopNodes[hop-1], len(layers[l]))
		}
		for d := range layer.NumDst() {
			var got []int32
			for e := layer.Indptr[d]; e < layer.Indptr[d+1]; e++ {
				if int(layer.Indices[e]) >= b.HopNodes[hop] {
					t.Fatalf("layer %d: place %d of %d", l, layer.Indices[e], b.HopNodes[hop])
				}
				got = append(got, b.Nodes[layer.Indices[e]])
				if opt.KeepEntries && in.Indices[layer.Entries[e]] != got[len(got)-1] {
					t.Fatalf("layer %d: entry %d is of another node", l, layer.Entries[e])
				}
			}
			if !slices.Equal(got, layers[l][d]) {
				t.Fatalf("layer %d, node %d takes %v, want %v", l, b.Nodes[d], got, layers[l][d])
			}
			v := b.Nodes[d]
			want := float32(1)
			numNeighbours := len(in.Row(v))
			if _, ok := in.Loop(v); ok {
				numNeighbours--
			}
			if len(got) > 0 {
				want = float32(float64(numNeighbours) / float64(len(got)))
			}
			if layer.Importance[d] != want {
				t.Fatalf("layer %d, node %d: importance %g, want %g", l, v, layer.Importance[d], want)
			}
		}
	}
}

func TestSamplerAgainstReference(t *testing.T) {
	in, keys := skewedGraph(t, 9, 4000)
	for i := range keys[:200] {
		keys[i] = uint64(i / 20) // equal keys: ties everywhere
	}
	for _, fanout := range [][]int{{}, {0}, {1}, {All}, {3, 2}, {2, All, 2}, {40, 1}, {5, 0, 5}} {
		opt := Options{Fanout: fanout, Seed: -7, KeepEntries: len(fanout)%2 == 0}
		for _, memo := range []*Memo{nil, NewMemo(in, opt)} {
			s := NewSampler(in, keys, opt, memo)
			for _, seeds := range [][]int32{{}, {0}, {5, 3, 1}, numbers(60)} {
				for _, variant := range []int{0, 1, 0} {
					checkBatch(t, in, keys, opt, variant, seeds, s.Sample(variant, seeds))
				}
			}
		}
	}
}

// TestSharedMemo: samplers that share a memo, at work at once on two variants, draw what
// one without a memo draws.
func TestSharedMemo(t *testing.T) {
	in, keys := skewedGraph(t, 10, 20000)
	opt := Options{Fanout: []int{4, 3, 3}, Seed: 5}
	want := make([][]int32, 64)
	alone := NewSampler(in, keys, opt, nil)
	seedsOf := func(i int) []int32 { return numbers(1024)[i%32*16:][:16] }
	for i := range want {
		b := alone.Sample(i/32, seedsOf(i))
		want[i] = append(slices.Clone(b.Nodes), b.Layers[0].Indices...)
	}
	memo := NewMemo(in, opt)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			s := NewSampler(in, keys, opt, memo)
			for n := range want {
				i := (n + w*16) % len(want)
				b := s.Sample(i/32, seedsOf(i))
				if got := append(slices.Clone(b.Nodes), b.Layers[0].Indices...); !slices.Equal(got, want[i]) {
					t.Errorf("batch %d differs with a shared memo", i)
				}
			}
		})
	}
	wg.Wait()
}

// TestUnbiased: the mean over 2,000 variants of the sampled sum, scaled by importance,
// is the full sum, node by node within 4.5 standard errors and with a mean squared z of about 1.
func TestUnbiased(t *testing.T) {
	in, keys := skewedGraph(t, 11, 16000)
	const variants, k = 2000, 4
	n := in.NumNodes()
	x := make([]float64, n)
	for v := range x {
		x[v] = math.Sin(float64(v)) + 0.5
	}
	s := NewSampler(in, keys, Options{Fanout: []int{k}, Seed: 11}, nil)
	sums, squares := make([]float64, n), make([]float64, n)
	seeds := numbers(n)
	for variant := range variants {
		b := s.Sample(variant, seeds)
		layer := &b.Layers[0]
		for d := range n {
			sum := 0.0
			for e := layer.Indptr[d]; e < layer.Indptr[d+1]; e++ {
				sum += x[b.Nodes[layer.Indices[e]]]
			}
			sum *= float64(layer.Importance[d])
			sums[d] += sum
			squares[d] += sum * sum
		}
	}
	total, count := 0.0, 0
	for v := range n {
		full, degree := 0.0, 0
		for _, u := range in.Row(int32(v)) {
			if int(u) != v {
				full += x[u]
				degree++
			}
		}
		mean := sums[v] / variants
		if degree <= k {
			if math.Abs(mean-full) > 1e-9 {
				t.Errorf("node %d: mean %g, all its neighbours give %g", v, mean, full)
			}
			continue
		}
		variance := (squares[v] - variants*mean*mean) / (variants - 1)
		z := (mean - full) / math.Sqrt(variance/variants)
		if math.Abs(z) > 4.5 {
			t.Errorf("node %d of degree %d: mean %g, full %g, z %g", v, degree, mean, full, z)
		}
		total += z * z
		count++
	}
	// The mean square of this many z-scores has standard deviation sqrt(2/count), about 0.05.
	got := total / float64(count)
	t.Logf("%d nodes, mean squared z %.3f", count, got)
	if count < 500 || got < 0.9 || got > 1.1 {
		t.Errorf("mean squared z over %d nodes is %g, want 0.9 to 1.1", count, got)
	}
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
