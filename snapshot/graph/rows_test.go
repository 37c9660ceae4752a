package graph

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// memorySpill keeps spilled blocks in a map and knows what is still there.
type memorySpill struct {
	mu     sync.Mutex
	blocks map[int64][]byte
	next   int64
	puts   int
	failAt int // the put that fails; 0: none
}

var errSpill = errors.New("no room in the spill")

func (s *memorySpill) Put(parts [][]byte) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.puts++; s.puts == s.failAt {
		return 0, errSpill
	}
	if s.blocks == nil {
		s.blocks = map[int64][]byte{}
	}
	s.next++
	s.blocks[s.next] = bytes.Join(parts, nil)
	return s.next, nil
}

func (s *memorySpill) Get(place int64, parts [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.blocks[place]
	for _, p := range parts {
		from = from[copy(p, from):]
	}
	if len(from) > 0 {
		return fmt.Errorf("%d bytes left over at %d", len(from), place)
	}
	return nil
}

func (s *memorySpill) Free(place, sizeBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int64(len(s.blocks[place])) != sizeBytes {
		panic(fmt.Sprintf("free of %d bytes at %d, there are %d", sizeBytes, place, len(s.blocks[place])))
	}
	delete(s.blocks, place)
}

// listOf returns the edges as a list with rel for each, if not nil, that may keep almost nothing in memory.
func listOf(t *testing.T, x edges, rel []int32, spill *memorySpill) *EdgeList {
	t.Helper()
	opt := ListOptions{Weighted: x.weight != nil, Relational: rel != nil}
	if spill != nil {
		opt.Spill, opt.MemBytes = spill, 1
	}
	l := NewEdgeList(opt)
	var ends []int32
	for i := range x.src {
		ends = append(ends, x.src[i], x.dst[i])
	}
	if err := l.Append(ends, x.weight, rel); err != nil {
		t.Fatal(err)
	}
	return l
}

// Small ranges, sorts of few records and blocks in the spill give what Build gives.
func TestRowsAnyWay(t *testing.T) {
	forShapes(t, func(t *testing.T, rng *rand.Rand, x edges, directed bool) {
		want, err := Build(t.Context(), x.numNodes, x.src, x.dst, x.weight, Options{Directed: directed, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, opt := range []Options{{rangeLen: 200, Threads: 2}, {rangeLen: 300, sortLen: 400, Threads: 3}} {
			for _, spill := range []*memorySpill{nil, {}} {
				opt.Directed = directed
				rows, err := listOf(t, x, nil, spill).Rows(t.Context(), x.numNodes, opt)
				if err != nil {
					t.Fatalf("%+v: %v", opt, err)
				}
				got, err := rows.Graph(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := diffGraphs(got, want); err != nil {
					t.Fatalf("%+v, spill %t: %v", opt, spill != nil, err)
				}
				if spill != nil && len(spill.blocks) > 0 {
					t.Fatalf("%d blocks are left in the spill", len(spill.blocks))
				}
			}
		}
	})
}

// Pairs too many for one sort are split, down to lines that are all of one pair.
func TestRowsSplit(t *testing.T) {
	x := edges{numNodes: 2000}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30_000 {
		x.add(0, rng.Int32N(2000)) // one row
	}
	for range 5000 {
		x.add(7, 3) // one pair
		x.add(3, 7)
	}
	want := mustBuild(t, x, false)
	for _, spill := range []*memorySpill{nil, {}} {
		rows, err := listOf(t, x, nil, spill).Rows(t.Context(), x.numNodes, Options{sortLen: 600, Lines: true})
		if err != nil {
			t.Fatal(err)
		}
		if lines, err := rows.TakeLines(nil); err != nil || !slices.Contains(lines.Large, 5000) {
			t.Errorf("the pair of 5000 lines each way is not among the lines, %v", err)
		}
		got, err := rows.Graph(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := diffGraphs(got, want); err != nil {
			t.Fatal(err)
		}
	}
	x.weight = make([]float32, len(x.src))
	if _, err := listOf(t, x, nil, nil).Rows(t.Context(), x.numNodes, Options{sortLen: 600}); err == nil {
		t.Error("weights of one pair beyond the memory: no error")
	}
}

// relEdge is a distinct edge of a relational graph by row and col.
type relEdge struct{ row, col, rel int32 }

func TestRowsRelations(t *testing.T) {
	forShapes(t, func(t *testing.T, rng *rand.Rand, x edges, directed bool) {
		const numRels = 5
		rel := make([]int32, len(x.src))
		for i := range rel {
			rel[i] = rng.Int32N(numRels)
		}
		lines, sums := map[relEdge][2]int64{}, map[relEdge][]float32{}
		for i := range x.src {
			e, way := relEdge{x.dst[i], x.src[i], rel[i]}, 0
			if !directed {
				if e = (relEdge{min(x.src[i], x.dst[i]), max(x.src[i], x.dst[i]), rel[i]}); e.row != x.src[i] {
					way = 1
				}
			}
			count := lines[e]
			count[way]++
			lines[e] = count
			sums[e] = append(sums[e], at(x.weight, i))
		}
		distinct := make([]relEdge, 0, len(lines))
		for e := range lines {
			distinct = append(distinct, e)
		}
		order := func(a, b relEdge) int {
			return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col), cmp.Compare(a.rel, b.rel))
		}
		slices.SortFunc(distinct, order)

		for _, opt := range []Options{{Threads: 1}, {Threads: 3, rangeLen: 300, sortLen: 300}} {
			opt.Directed, opt.NumRels, opt.Lines = directed, numRels, true
			rows, err := listOf(t, x, rel, &memorySpill{}).Rows(t.Context(), x.numNodes, opt)
			if err != nil {
				t.Fatal(err)
			}
			got, err := rows.TakeLines(nil)
			if err != nil {
				t.Fatal(err)
			}
			checkLines(t, got, distinct, lines, sums, x.weight != nil)
			g, err := rows.Graph(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			in := slices.Clone(distinct)
			for _, e := range distinct {
				if !directed && e.row != e.col {
					in = append(in, relEdge{e.col, e.row, e.rel})
				}
			}
			checkRelRows(t, &g.In, in, func(e relEdge) relEdge {
				if directed || e.row < e.col {
					return e
				}
				return relEdge{e.col, e.row, e.rel}
			}, sums)
			if directed {
				var out []relEdge
				for _, e := range distinct {
					out = append(out, relEdge{e.col, e.row, e.rel})
				}
				checkRelRows(t, g.Out, out, func(e relEdge) relEdge { return relEdge{e.col, e.row, e.rel} }, sums)
			}
		}
	})
}

// checkRelRows compares rows with the entries wanted, in any order, and weights with the sum of the lines of the edge that an entry is of.
func checkRelRows(t *testing.T, c *CSR, want []relEdge, edgeOf func(entry relEdge) relEdge, lines map[relEdge][]float32) {
	t.Helper()
	slices.SortFunc(want, func(a, b relEdge) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col), cmp.Compare(a.rel, b.rel))
	})
	var got []relEdge
	for v := range int32(c.NumNodes()) {
		for e := c.Indptr[v]; e < c.Indptr[v+1]; e++ {
			got = append(got, relEdge{v, c.Indices[e], c.Rel[e]})
			if c.Weight == nil {
				continue
			}
			if sum := float32(sumAscending(slices.Clone(lines[edgeOf(got[e])]))); c.Weight[e] != sum {
				t.Fatalf("weight of %+v is %g, want %g", got[e], c.Weight[e], sum)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("entries %v, want %v", got, want)
	}
}

// checkLines compares Lines with counts kept in maps.
func checkLines(t *testing.T, l *Lines, distinct []relEdge, lines map[relEdge][2]int64, weights map[relEdge][]float32, weighted bool) {
	t.Helper()
	if l.N != int64(len(distinct)) {
		t.Fatalf("lines of %d edges, want %d", l.N, len(distinct))
	}
	if err := l.Check(weighted); err != nil {
		t.Fatal(err)
	}
	codes := map[byte]int{}
	cursor := lineCursor{l: l}
	for i, e := range distinct {
		code := l.At(int64(i))
		codes[code]++
		count, list := cursor.next()
		if want := lineCount(lines[e]); count != want || code != codeOf(want, weighted) {
			t.Fatalf("lines of %+v are %v in code %d, want %v", e, count, code, want)
		}
		if !weighted || code != LinesCounted {
			if list != nil {
				t.Fatalf("weights of the lines of %+v are %v, want none", e, list)
			}
			continue
		}
		if want := slices.Sorted(slices.Values(weights[e])); !slices.Equal(list, want) {
			t.Fatalf("weights of the lines of %+v are %v, want %v", e, list, want)
		}
	}
	if end := (lineCursor{l, l.N, l.NumCounted(), int64(len(l.Large)), int64(len(l.Weights))}); cursor != end {
		t.Fatalf("%+v at the end, want %+v", cursor, end)
	}
	if (l.Code == nil) != (len(codes) <= 1) {
		t.Fatalf("%d different codes, but codes are stored: %t", len(codes), l.Code != nil)
	}
}

// Held-out lines leave the graph and come back one by one.
func TestRowsHeldOut(t *testing.T) {
	forShapes(t, func(t *testing.T, rng *rand.Rand, x edges, directed bool) {
		isHeld := func(src, dst int32) uint8 {
			if (src+dst)%3 == 0 {
				return HeldTest
			}
			return HeldNone
		}
		kept := edges{numNodes: x.numNodes}
		var held [][2]int32
		for i := range x.src {
			if isHeld(x.src[i], x.dst[i]) != HeldNone {
				held = append(held, [2]int32{x.src[i], x.dst[i]})
				continue
			}
			kept.add(x.src[i], x.dst[i])
		}
		want := mustBuild(t, kept, directed)
		x.weight = nil
		var got [][2]int32
		rows, err := listOf(t, x, nil, nil).Rows(t.Context(), x.numNodes, Options{Directed: directed, Threads: 3, Part: isHeld, Held: func(part uint8, src, dst int32, _ float32, _ int32) {
			if part != HeldTest {
				t.Errorf("part %d", part)
			}
			got = append(got, [2]int32{src, dst})
		}})
		if err != nil {
			t.Fatal(err)
		}
		g, err := rows.Graph(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := diffGraphs(g, want); err != nil {
			t.Fatal(err)
		}
		byEnds := func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }
		slices.SortFunc(got, byEnds)
		slices.SortFunc(held, byEnds)
		if !slices.Equal(got, held) {
			t.Errorf("held out %v, want %v", got, held)
		}
	})
}

// A spill that fails at any of its blocks is an error, and so is a stop.
func TestRowsSpillFails(t *testing.T) {
	x := edges{numNodes: 100}
	for i := range int32(30_000) {
		x.add(i*7%100, i*13%97)
	}
	build := func(ctx context.Context, failAt int) error {
		l := NewEdgeList(ListOptions{Spill: &memorySpill{failAt: failAt}, MemBytes: 1})
		for i := range x.src {
			if err := l.Add(x.src[i], x.dst[i], 0, 0); err != nil {
				return err
			}
		}
		rows, err := l.Rows(ctx, 100, Options{Threads: 2, rangeLen: 1000})
		if err != nil {
			return err
		}
		_, err = rows.Graph(ctx, nil)
		return err
	}
	failed := 0
	for failAt := 1; ; failAt++ {
		err := build(t.Context(), failAt)
		if err == nil {
			break
		}
		if failed++; !errors.Is(err, errSpill) {
			t.Fatalf("put %d: %v", failAt, err)
		}
	}
	if failed < 100 {
		t.Errorf("only %d puts", failed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := build(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
