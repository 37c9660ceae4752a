package sample

import (
	"slices"
	"testing"

	"github.com/prelift/prelift/snapshot/graph"
)

// TestEverySeedOnce: whatever the order, labels and sizes, a variant is a permutation of
// the seeds.
func TestEverySeedOnce(t *testing.T) {
	for trial := range 300 {
		draw := func(what, n uint64) int { return int(graph.Hash(uint64(trial), what) % n) }
		numNodes, classes := 1+draw(1, 300), 1+draw(2, 5)
		o := &Order{Keys: testKeys(numNodes), BatchSize: 1 + draw(3, 100), Seed: int64(graph.Hash(uint64(trial)))}
		for v := range numNodes {
			if v == 0 || draw(100+uint64(v), 3) > 0 {
				o.Seeds = append(o.Seeds, int32(v))
			}
		}
		if draw(4, 3) > 0 {
			o.Place = numbers(numNodes)
			slices.Reverse(o.Place)
		}
		switch draw(5, 3) {
		case 1:
			o.Labels = Labels{Class: make([]int32, numNodes), NumClasses: classes}
			for v := range numNodes {
				o.Labels.Class[v] = int32(v*classes/numNodes) - int32(v%2)
			}
		case 2:
			o.Labels = Labels{Bits: make([]uint8, numNodes*classes), NumClasses: classes}
			for i := range o.Labels.Bits {
				o.Labels.Bits[i] = []uint8{0, 1, 0xFF}[graph.Hash(uint64(i))%3]
			}
		}
		variant := draw(6, 4)
		got := o.Variant(variant)
		if again := o.Variant(variant); !slices.Equal(got, again) {
			t.Fatalf("trial %d: two calls give %v and %v", trial, got, again)
		}
		slices.Sort(got)
		if !slices.Equal(got, o.Seeds) {
			t.Fatalf("trial %d: got seeds %v, want %v", trial, got, o.Seeds)
		}
		if want := (len(o.Seeds) + o.BatchSize - 1) / o.BatchSize; o.NumBatches() != want {
			t.Fatalf("trial %d: %d batches of %d for %d seeds", trial, o.NumBatches(), o.BatchSize, len(o.Seeds))
		}
	}
}

// TestVariation: total variation by hand, and the bound of locality order where labels
// follow the locality exactly, so that a plain cut would have one class a batch.
func TestVariation(t *testing.T) {
	o := &Order{Seeds: numbers(4), Keys: testKeys(4), BatchSize: 2, Labels: Labels{Class: []int32{0, 0, 1, 1}, NumClasses: 2}}
	for _, c := range []struct {
		order []int32
		want  float64
	}{{[]int32{0, 1, 2, 3}, 0.5}, {[]int32{0, 2, 1, 3}, 0}, {[]int32{2, 3, 0, 1}, 0.5}} {
		if got := o.Variation(c.order); got != c.want {
			t.Errorf("variation of %v is %g, want %g", c.order, got, c.want)
		}
	}

	const numNodes, numClasses = 20000, 10
	labels := Labels{Class: make([]int32, numNodes), NumClasses: numClasses}
	for v := range labels.Class {
		labels.Class[v] = int32(v * numClasses / numNodes)
	}
	for _, batchSize := range []int{16, 33, 100, 512, 1024} {
		o := &Order{Seeds: numbers(numNodes), Keys: testKeys(numNodes), Place: numbers(numNodes), BatchSize: batchSize, Seed: 1, Labels: labels}
		random := o.Variation(RandomOrder(o.Seeds, o.Keys, 1, 2))
		got := o.Variation(o.Variant(2))
		t.Logf("batches of %d: variation %.3f, random order %.3f", batchSize, got, random)
		if got > max(maxVariation, random) {
			t.Errorf("batches of %d: variation %g, random order has %g", batchSize, got, random)
		}
	}
	if order := o.Variant(0); slices.Equal(order, o.Variant(1)) && slices.Equal(order, o.Variant(2)) && slices.Equal(order, o.Variant(3)) {
		t.Error("variants don't differ")
	}
}

// TestRunsStayTogether: without labels the runs of locality order are of 32 seeds.
func TestRunsStayTogether(t *testing.T) {
	const numNodes = 10000
	o := &Order{Seeds: numbers(numNodes), Keys: testKeys(numNodes), Place: numbers(numNodes), BatchSize: 1024, Seed: 1}
	order := o.Variant(0)
	breaks := 0
	for i := 1; i < len(order); i++ {
		if order[i] != order[i-1]+1 {
			breaks++
			if order[i]%runLength != 0 {
				t.Fatalf("a run starts at %d", order[i])
			}
		}
	}
	if breaks < numNodes/runLength/2 {
		t.Errorf("%d runs moved", breaks)
	}
	if slices.Equal(order, o.Variant(1)) {
		t.Error("variants 0 and 1 are the same")
	}
}

// TestPickOrder: locality wins on a ring, where it needs fewer nodes, and random where
// there are no edges and so nothing to win.
func TestPickOrder(t *testing.T) {
	const numNodes = 3000
	var ids []string
	var ring [][2]string
	for i := range numNodes {
		ids = append(ids, string(rune('a'+i/1000))+string(rune('a'+i/100%10))+string(rune('a'+i/10%10))+string(rune('a'+i%10)))
	}
	for i := range ids {
		ring = append(ring, [2]string{ids[i], ids[(i+1)%numNodes]})
	}
	for _, c := range []struct {
		edges [][2]string
		want  string
	}{{ring, Locality}, {nil, Random}} {
		g := namedGraph(t, ids, c.edges)
		o := &Order{Seeds: numbers(numNodes), Keys: g.keys, Place: numbers(numNodes), BatchSize: 100, Seed: 1}
		if got := PickOrder(o, NewSampler(g.in, g.keys, Options{Fanout: []int{2, 2}}, nil)); got != c.want {
			t.Errorf("%d edges: %s order, want %s", len(c.edges), got, c.want)
		}
		inducer := NewInducer(g.in, false)
		withNeighbours := CountFunc(func(_ int, seeds []int32) int {
			var others []int32
			for _, v := range seeds {
				others = append(others, g.in.Row(v)...)
			}
			return len(inducer.Induce(seeds, others).Nodes)
		})
		if got := PickOrder(o, withNeighbours); got != c.want {
			t.Errorf("%d edges, seeds with their neighbours: %s order, want %s", len(c.edges), got, c.want)
		}
		locality, random := MeasureOrders(o, withNeighbours)
		if low, high := 400, 1200; locality < low || random > high || c.want == Locality && float64(locality) > 0.6*float64(random) || c.want == Random && locality != random {
			t.Errorf("%d edges: four batches of 100 have %d nodes in locality order, %d in random order", len(c.edges), locality, random)
		}
	}
}
