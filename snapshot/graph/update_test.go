package graph

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// line is one line of the input.
type line struct {
	src, dst int32
	weight   float32
	rel      int32
}

// lineKind is what lines have, and what becomes of them.
type lineKind struct {
	directed, weighted bool
	numRels            int // 0: no relations
}

// buildLines is the way of a full build.
func buildLines(t *testing.T, numNodes int, lines []line, kind lineKind, threads int) (*Graph, *Lines) {
	t.Helper()
	var src, dst, rel []int32
	var weight []float32
	for _, l := range lines {
		src, dst, weight, rel = append(src, l.src), append(dst, l.dst), append(weight, l.weight), append(rel, l.rel)
	}
	if weight == nil {
		weight, rel = []float32{}, []int32{}
	}
	if !kind.weighted {
		weight = nil
	}
	if kind.numRels == 0 {
		rel = nil
	}
	rows, err := EdgesOf(src, dst, weight, rel).Rows(t.Context(), numNodes, Options{Directed: kind.directed, Threads: threads, NumRels: kind.numRels, Lines: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := rows.TakeLines(nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := rows.Graph(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return g, l
}

// change is an update of lines by hand: the slow way, a line at a time.
type change struct {
	removed []line // of relation -1: all
	added   []line
}

func (c *change) apply(lines []line, kind lineKind) []line {
	var left []line
	for _, l := range lines {
		gone := slices.ContainsFunc(c.removed, func(r line) bool {
			same := r.src == l.src && r.dst == l.dst || !kind.directed && r.src == l.dst && r.dst == l.src
			return same && (r.rel < 0 || r.rel == l.rel)
		})
		if !gone {
			left = append(left, l)
		}
	}
	return append(left, c.added...)
}

// drawLines adds n lines between nodes below numNodes, few enough for repeats.
func drawLines(rng *rand.Rand, lines []line, n, numNodes int, kind lineKind) []line {
	for range n {
		l := line{src: rng.Int32N(int32(numNodes)), dst: rng.Int32N(int32(numNodes)), weight: []float32{0, float32(math.Copysign(0, -1)), 0.5, 1e-3, 7, 1e20}[rng.IntN(6)]}
		if kind.numRels > 0 {
			l.rel = rng.Int32N(int32(kind.numRels))
		}
		for range 1 + rng.IntN(3)*rng.IntN(2) {
			lines = append(lines, l)
			if rng.IntN(3) == 0 {
				l.src, l.dst = l.dst, l.src
			}
		}
	}
	return lines
}

func TestUpdateIsBuild(t *testing.T) {
	for seed := range uint64(240) {
		kind := lineKind{directed: seed&1 != 0, weighted: seed&2 != 0, numRels: []int{0, 4, 1}[seed/4%3]}
		rng := rand.New(rand.NewPCG(seed, 3))
		t.Run(fmt.Sprintf("seed %d %+v", seed, kind), func(t *testing.T) {
			numNodes := 1 + rng.IntN(40)
			lines := drawLines(rng, nil, rng.IntN(120), numNodes, kind)
			g, l := buildLines(t, numNodes, lines, kind, 2)
			for round := range 4 {
				// Old nodes without a line may go; new ones come in between.
				c := change{}
				for range rng.IntN(12) {
					if len(lines) == 0 {
						break
					}
					r := lines[rng.IntN(len(lines))]
					if rng.IntN(3) == 0 {
						r.rel = -1
					}
					if !kind.directed && rng.IntN(2) == 0 {
						r.src, r.dst = r.dst, r.src
					}
					c.removed = append(c.removed, r)
				}
				if slices.ContainsFunc(c.removed, func(r line) bool { return r.rel >= 0 }) { // a list has relations or none
					c.removed = slices.DeleteFunc(c.removed, func(r line) bool { return r.rel < 0 })
				}
				left := c.apply(lines, kind)
				relNumber, newKind := firstNumbers(max(kind.numRels, 1)), kind
				switch draw := rng.IntN(4); {
				case kind.numRels > 0 && draw == 0: // new ones between
					for r := range relNumber {
						relNumber[r] = int32(2*r + 1)
					}
					newKind.numRels = 2 * kind.numRels
				case kind.numRels > 1 && draw == 1: // the first goes
					c.removed = c.removed[:0]
					for _, l := range lines {
						if l.rel == 0 {
							c.removed = append(c.removed, l)
						}
					}
					left = c.apply(lines, kind)
					for r := range relNumber {
						relNumber[r]--
					}
					newKind.numRels--
				}
				number := make([]int32, numNodes)
				next := int32(0)
				goes := rng.IntN(3) > 0
				for v := range number {
					isUsed := slices.ContainsFunc(left, func(l line) bool { return int(l.src) == v || int(l.dst) == v })
					if number[v] = -1; !goes || isUsed || rng.IntN(2) == 0 {
						next += rng.Int32N(3) * rng.Int32N(2)
						number[v] = next
						next++
					}
				}
				next += rng.Int32N(3)
				newNodes := max(1, int(next))
				for i := range left {
					left[i] = line{number[left[i].src], number[left[i].dst], left[i].weight, relNumber[left[i].rel]}
				}
				c.added = drawLines(rng, nil, rng.IntN(15), newNodes, newKind)
				for range min(len(left), rng.IntN(4)) { // some that are there
					again := left[rng.IntN(len(left))]
					c.added = append(c.added, again)
				}
				after := append(left, c.added...)
				want, wantLines := buildLines(t, newNodes, after, newKind, 3)

				added, addedLines := buildLines(t, newNodes, c.added, newKind, 1)
				removeKind := kind
				removeKind.weighted = false
				if slices.ContainsFunc(c.removed, func(r line) bool { return r.rel < 0 }) {
					removeKind.numRels = 0
				}
				removed, _ := buildLines(t, numNodes, c.removed, removeKind, 1)
				u := &Update{
					In: g.In, Out: g.Out, Lines: l, Audit: g.Audit, Number: number, NumNodes: newNodes, RelNumber: relNumber, NumRels: newKind.numRels,
					Removed: removed, Added: added, AddedLines: addedLines, Threads: 1 + rng.IntN(5),
				}
				if kind.directed {
					u.Out = &CSR{Indptr: g.Out.Indptr, Indices: g.Out.Indices, Rel: g.Out.Rel}
					want.Out.Weight = nil
				}
				if slices.Equal(number, firstNumbers(numNodes)) && rng.IntN(2) == 0 {
					u.Number = nil
				}
				if len(c.removed) == 0 {
					u.Removed = nil
				}
				if len(c.added) == 0 {
					u.Added, u.AddedLines = nil, nil
				}
				if slices.Equal(relNumber, firstNumbers(len(relNumber))) {
					u.RelNumber = nil
				}
				got, gotLines, err := u.Graph(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := diffGraphs(got, want); err != nil {
					t.Fatalf("round %d: %.2000s", round, err)
				}
				if err := gotLines.Check(kind.weighted); err != nil {
					t.Fatal(err)
				}
				if got, want := linesText(gotLines), linesText(wantLines); got != want {
					t.Fatalf("round %d: lines %s, want %s", round, got, want)
				}
				if err := VerifyLines(&got.In, kind.directed, gotLines, got.Audit.NumLines, got.Audit.OneDirectional); err != nil {
					t.Fatal(err)
				}
				numNodes, lines, g, l, kind = newNodes, after, got, gotLines, newKind
			}
		})
	}
}

func firstNumbers(n int) []int32 {
	list := make([]int32, n)
	for v := range list {
		list[v] = int32(v)
	}
	return list
}

// linesText spells all of l, weights by their bits.
func linesText(l *Lines) string {
	var bits []uint32
	for _, w := range l.Weights {
		bits = append(bits, math.Float32bits(w))
	}
	return fmt.Sprint(l.N, l.Code, l.All, l.Count, l.Large, bits)
}

func TestUpdateRefuses(t *testing.T) {
	kind := lineKind{weighted: true, numRels: 2}
	lines := []line{{0, 1, 1, 0}, {1, 2, 3e38, 0}, {1, 2, 1, 1}}
	g, l := buildLines(t, 3, lines, kind, 1)
	removal := func(r ...line) *Graph {
		k := lineKind{numRels: 2}
		if r[0].rel < 0 {
			k.numRels = 0
		}
		removed, _ := buildLines(t, 3, r, k, 1)
		return removed
	}
	u := Update{In: g.In, Lines: l, Audit: g.Audit, NumNodes: 3, NumRels: 2, Threads: 2}
	for _, c := range []struct {
		removed *Graph
		want    MissingEdge
	}{
		{removal(line{0, 2, 0, -1}), MissingEdge{2, 0, -1}},
		{removal(line{1, 0, 0, 1}), MissingEdge{1, 0, 1}},
		{removal(line{1, 0, 0, 0}, line{2, 2, 0, 0}), MissingEdge{2, 2, 0}},
	} {
		x := u
		x.Removed = c.removed
		_, _, err := x.Graph(t.Context())
		var missing *MissingEdge
		if !errors.As(err, &missing) || *missing != c.want {
			t.Errorf("error %v, want %+v", err, c.want)
		}
	}
	x := u
	x.Added, x.AddedLines = buildLines(t, 3, []line{{2, 1, 3e38, 0}}, kind, 1)
	_, _, err := x.Graph(t.Context())
	var edge *EdgeError
	if !errors.As(err, &edge) || edge.Err != ErrWeightSum || edge.Src != 1 || edge.Dst != 2 {
		t.Errorf("error %v, want one about the sum of the weights of 1 and 2", err)
	}
	x = u
	x.Removed = removal(line{0, 1, 0, 0})
	x.Guard = func(f func() error) error { f(); return errors.New("a fault") }
	if _, _, err := x.Graph(t.Context()); err == nil || err.Error() != "a fault" {
		t.Errorf("error %v, want that of the guard", err)
	}
	x.Guard = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := x.Graph(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	// How many entries each removed edge has.
	x.Removed = removal(line{1, 2, 0, -1}, line{1, 0, 0, -1})
	var seen [][3]int64
	if err := x.Check(func(src, dst int32, n int64) { seen = append(seen, [3]int64{int64(src), int64(dst), n}) }); err != nil || !reflect.DeepEqual(seen, [][3]int64{{1, 0, 1}, {2, 1, 2}}) {
		t.Errorf("saw %v, %v", seen, err)
	}
}
