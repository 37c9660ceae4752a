package snapshot

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// TestHopVector reads the index that the vectors' builder made from SPEC 5.5 alone.
func TestHopVector(t *testing.T) {
	f, err := format.Open("../format/testdata/vectors/good-hops.plf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := f.Record(0)
	if err != nil {
		t.Fatal(err)
	}
	h := hop1Of(r)
	if err := h.Check(1); err != nil {
		t.Fatal(err)
	}
	between := func(start, end, step int32) (row []int32) {
		for u := start; u < end; u += step {
			row = append(row, u)
		}
		return row
	}
	want := map[int32][]int32{0: between(1, 300, 2), 1: between(0, 300, 3), 2: between(170, 300, 1), 3: {0, 299}, 5: between(1, 64, 7), 299: {298}}
	buckets := map[int32]graph.Bucket{0: graph.BucketHub, 1: graph.BucketSorted, 2: graph.BucketSorted}
	rows := graph.CSR{Indptr: []int64{0}}
	for v := range int32(300) {
		if got := h.AppendRow(nil, v); !slices.Equal(got, want[v]) || h.Bucket(v) != buckets[v] {
			t.Errorf("row %d is %v, %s; want %v, %s", v, got, h.Bucket(v), want[v], buckets[v])
		}
		rows.Indices = append(rows.Indices, want[v]...)
		rows.Indptr = append(rows.Indptr, int64(len(rows.Indices)))
	}
	// And the other way: the same rows give the same arrays.
	own, err := graph.BuildHop1(&rows, graph.HopOptions{CompactBelow: 10, HubFrom: 140})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(own, h) {
		t.Errorf("BuildHop1 gives other arrays than the vector has")
	}
}

func TestHopsAndRank(t *testing.T) {
	dir := buildIn(t, smallTables(), fullParams, 1)
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// a-b, b-c, a loop at b, and d alone.
	for v, want := range [][]int32{{1}, {0, 2}, {1}, {}} {
		if got := s.Hop1.AppendRow([]int32{}, int32(v)); !slices.Equal(got, want) {
			t.Errorf("hop 1 of %d is %v, want %v", v, got, want)
		}
	}
	for v, want := range [][]int32{{2}, {}, {0}, {}} {
		if got := s.Hop2.Row(int32(v)); !slices.Equal(got, want) {
			t.Errorf("hop 2 of %d is %v, want %v", v, got, want)
		}
	}
	sum := 0.0
	for _, x := range s.Rank {
		sum += x
	}
	if math.Abs(sum-1) > 1e-12 || s.Weights[3] != 1 || s.Masses[1] != s.Rank[3] {
		t.Errorf("ranks sum to %v, weights %v, masses %v of ranks %v", sum, s.Weights, s.Masses, s.Rank)
	}
	if want := []int32{0, 1, 2, 3}; !slices.Equal(s.Order, want) {
		t.Errorf("order %v, want %v", s.Order, want)
	}
	d, err := Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d.Hops != 2 || d.Hop1.NumEntries != 4 || d.Hop1.Buckets[0].NumRows != 4 || d.Hop2.NumEntries != 2 || d.Hop2.Ratio != 0.5 || d.Hop2.Cap != 9 || !d.PageRank.Converged || !d.Order {
		t.Errorf("description %+v, %+v, %+v, %+v", d, d.Hop1, d.Hop2, d.PageRank)
	}
	size := d.Hop1.SharedBytes
	for _, b := range d.Hop1.Buckets {
		size += b.SizeBytes
	}
	if size != d.Hop1.SizeBytes {
		t.Errorf("buckets and what they share are %d bytes, the index %d", size, d.Hop1.SizeBytes)
	}
}

func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name  string
		p     Params
		nodes int
		want  string // the hop parameters, or a part of the error
	}{
		{"nothing", Params{}, 10, "0 0 0 0 0 []"},
		{"auto", Params{Hops: HopsAuto}, 1_000_000, "2 100 1000 500 1000 []"},
		{"auto, large", Params{Hops: HopsAuto}, 1_000_001, "1 100 1000 0 0 []"},
		{"unused thresholds", Params{Hops: 1, CompactBelow: 9, Hop2Cap: 5}, 10, "1 9 1000 0 0 []"},
		{"with", Params{With: []string{WithPageRank, WithOrder, WithPageRank}}, 10, "0 0 0 0 0 [order pagerank]"},
		{"three hops", Params{Hops: 3}, 10, "want 0, 1 or 2"},
		{"wide compact rows", Params{Hops: 1, CompactBelow: 256}, 10, "want 1 to 255"},
		{"small hubs", Params{Hops: 1, HubFrom: 50}, 10, "want hubs from there"},
		{"unknown", Params{With: []string{"colour"}}, 10, "want order or pagerank"},
	} {
		p, err := c.p.Settle(c.nodes)
		got := fmt.Sprint(p.Hops, p.CompactBelow, p.HubFrom, p.ExpandLimit, p.Hop2Cap, p.With)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestVerifyFindsOtherArrays changes single numbers of indexes and ranks, with every CRC and digest put right.
func TestVerifyFindsOtherArrays(t *testing.T) {
	for _, c := range []struct {
		kind   format.Kind
		change func(s *format.SectionSpec)
		want   string
	}{
		{format.Hop2Indices, func(s *format.SectionSpec) { s.Data[0] = 3 }, "hop2"},
		{format.RankPageRank, func(s *format.SectionSpec) { s.Data[6] ^= 1 }, "rank"},
		{format.RankWeight, func(s *format.SectionSpec) { s.Data[2] ^= 1 }, "sampling weight"},
		{format.RankMass, func(s *format.SectionSpec) { s.Data[6] ^= 1 }, "sampling weight"},
		{format.RankOrder, func(s *format.SectionSpec) { s.Data[0], s.Data[4] = s.Data[4], s.Data[0] }, "community order"},
	} {
		dir := buildIn(t, smallTables(), fullParams, 1)
		changeSection(c.kind, c.change)(t, dir)
		if err := Verify(dir, 1); !errors.Is(err, format.ErrLayout) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s changed: %v, want an error about %s", c.kind, err, c.want)
		}
	}
}
