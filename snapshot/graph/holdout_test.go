package graph

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestHoldout(t *testing.T) {
	forShapes(t, func(t *testing.T, rng *rand.Rand, x edges, directed bool) {
		keys := testKeys(rng, x.numNodes, false)
		for _, opt := range []HoldoutOptions{
			{}, {Valid: 0.3, Test: 0.4, Seed: -3}, {Valid: 1}, {Test: 1}, {Valid: 0.5, Test: 0.5, SpareLast: true}, {Valid: 0.2, Seed: 9, SpareLast: true},
		} {
			part, err := Holdout(x.src, x.dst, keys, opt)
			if err != nil {
				t.Fatal(err)
			}
			if err := VerifyHoldout(x.src, x.dst, keys, opt, part); err != nil {
				t.Fatalf("%+v: %v", opt, err)
			}

			// The lists name the same lines again, and the rest is the graph without them.
			valid, test := HeldPairs(x.src, x.dst, part, HeldValid, directed), HeldPairs(x.src, x.dst, part, HeldTest, directed)
			again, missing, err := HoldoutPairs(x.numNodes, x.src, x.dst, valid, test)
			if err != nil || missing != 0 || !slices.Equal(again, part) {
				t.Fatalf("%+v: pairs name other lines: %v, %d missing", opt, err, missing)
			}
			src, dst, weight := KeepUnheld(slices.Clone(x.src), slices.Clone(x.dst), slices.Clone(x.weight), part)
			kept := mustBuild(t, edges{x.numNodes, src, dst, weight}, directed)
			full := mustBuild(t, x, directed)
			if got := kept.Audit.NumEdges + int64(len(valid.Src)+len(test.Src)); got != full.Audit.NumEdges {
				t.Fatalf("%+v: %d edges kept and held out, want %d", opt, got, full.Audit.NumEdges)
			}
			for _, pairs := range []Pairs{valid, test} {
				for i := range pairs.Src {
					a, b := pairs.Src[i], pairs.Dst[i]
					if slices.Contains(kept.In.Row(a), b) || slices.Contains(kept.In.Row(b), a) {
						t.Fatalf("%+v: held-out pair %d, %d is in the message graph", opt, a, b)
					}
				}
			}
			if opt.SpareLast && kept.Audit.IsolatedNodes != full.Audit.IsolatedNodes {
				t.Fatalf("%+v: %d isolated nodes, %d before", opt, kept.Audit.IsolatedNodes, full.Audit.IsolatedNodes)
			}
		}
	})
}

// Shares come out as asked, and a line more changes no other pair.
func TestHoldoutShares(t *testing.T) {
	numNodes, src, dst := benchEdges(200_000)
	keys := testKeys(rand.New(rand.NewPCG(4, 4)), numNodes, false)
	part, err := Holdout(src, dst, keys, HoldoutOptions{Valid: 0.05, Test: 0.10, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	count := map[uint8]float64{}
	for _, p := range part {
		count[p]++
	}
	n := float64(len(src))
	for p, share := range map[uint8]float64{HeldValid: 0.05, HeldTest: 0.10} {
		if sigma := math.Sqrt(share * n); math.Abs(count[p]-share*n) > 5*sigma {
			t.Errorf("part %d: %g of %g lines, want %g", p, count[p], n, share*n)
		}
	}
	more, err := Holdout(append(dst[:1000:1000], src[1000:]...), append(src[:1000:1000], dst[1000:]...), keys, HoldoutOptions{Valid: 0.05, Test: 0.10, Seed: 1})
	if err != nil || !slices.Equal(more, part) {
		t.Errorf("turning lines round changes their part: %v", err)
	}
	if other, _ := Holdout(src, dst, keys, HoldoutOptions{Valid: 0.05, Test: 0.10, Seed: 2}); slices.Equal(other, part) {
		t.Error("another seed holds out the same")
	}
}

func TestHoldoutPairs(t *testing.T) {
	// Arcs 0->1, 1->0, 1->2, 2->2, 3->1, 1->2 again.
	src, dst := []int32{0, 1, 1, 2, 3, 1}, []int32{1, 0, 2, 2, 1, 2}
	for _, tc := range []struct {
		name        string
		valid, test Pairs
		part        []uint8
		missing     int64
		err         string
	}{
		{"none", Pairs{}, Pairs{}, []uint8{0, 0, 0, 0, 0, 0}, 0, ""},
		{"both directions, all lines", Pairs{[]int32{1}, []int32{0}}, Pairs{[]int32{2}, []int32{1}}, []uint8{2, 2, 3, 0, 0, 3}, 0, ""},
		{"listed twice, and one that is no edge", Pairs{[]int32{1, 3, 0, 2, 0}, []int32{3, 1, 2, 0, 3}}, Pairs{}, []uint8{0, 0, 0, 0, 2, 0}, 2, ""},
		{"in both lists", Pairs{[]int32{1}, []int32{0}}, Pairs{[]int32{0}, []int32{1}}, nil, 0, "pair 0, 1 is held out for both valid and test"},
		{"a loop", Pairs{}, Pairs{[]int32{0, 2}, []int32{1, 2}}, nil, 0, "test pairs: edge 1 (2 -> 2): a self loop is no pair to hold out"},
		{"no node", Pairs{[]int32{0}, []int32{4}}, Pairs{}, nil, 0, "valid pairs: edge 0 (0 -> 4): node number out of range"},
		{"lengths", Pairs{[]int32{0}, nil}, Pairs{}, nil, 0, "valid pairs: 1 src and 0 dst: lengths differ"},
	} {
		part, missing, err := HoldoutPairs(4, src, dst, tc.valid, tc.test)
		if got := ""; err != nil {
			if got = err.Error(); got != tc.err {
				t.Errorf("%s: error %q, want %q", tc.name, got, tc.err)
			}
			continue
		}
		if tc.err != "" || !slices.Equal(part, tc.part) || missing != tc.missing {
			t.Errorf("%s: got %v, %d missing, want %v, %d, %q", tc.name, part, missing, tc.part, tc.missing, tc.err)
		}
	}
	if got, want := HeldPairs(src, dst, []uint8{2, 2, 2, 0, 0, 2}, HeldValid, true), (Pairs{[]int32{0, 1, 1}, []int32{1, 0, 2}}); !reflect.DeepEqual(got, want) {
		t.Errorf("directed pairs %v, want %v", got, want)
	}
}

func TestHoldoutErrors(t *testing.T) {
	keys := []uint64{1, 2}
	for name, opt := range map[string]HoldoutOptions{"negative": {Valid: -0.1}, "over 1": {Valid: 0.6, Test: 0.6}, "NaN": {Test: math.NaN()}} {
		if _, err := Holdout([]int32{0}, []int32{1}, keys, opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Holdout([]int32{0, 2}, []int32{1, 0}, keys, HoldoutOptions{}); !errors.Is(err, ErrNodeRange) {
		t.Errorf("no such node: %v", err)
	}
	if _, err := Holdout([]int32{0, 1}, []int32{1}, keys, HoldoutOptions{}); err == nil {
		t.Error("lengths differ: no error")
	}
	if VerifyHoldout([]int32{0}, []int32{1}, keys, HoldoutOptions{Test: 1}, []uint8{HeldValid}) == nil {
		t.Error("a wrong part passes")
	}
}

func BenchmarkHoldout(b *testing.B) {
	numNodes, src, dst := benchEdges(1_000_000)
	keys := testKeys(rand.New(rand.NewPCG(4, 4)), numNodes, false)
	for b.Loop() {
		Holdout(src, dst, keys, HoldoutOptions{Valid: 0.05, Test: 0.10})
	}
	b.ReportMetric(float64(len(src))*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
}
