package sample

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readCase reads the edges of a case of testdata/cases: two columns of ids under a header.
func readCase(t *testing.T, file string) *named {
	t.Helper()
	var edges [][2]string
	var ids []string
	for _, row := range readRows(t, file) {
		edges = append(edges, [2]string{row[0], row[1]})
		ids = append(ids, row[0], row[1])
	}
	slices.Sort(ids)
	return namedGraph(t, slices.Compact(ids), edges)
}

// readRows reads a file of a case without its header.
func readRows(t *testing.T, file string) [][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "cases", file))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(data))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// TestCase49FanoutByEveryMethod is case 49 from its file, by every method: a neighbour is taken once, all of them where the fanout is their number or more, and the mean over what is
// taken of an unweighted row is that over all where all are.
func TestCase49FanoutByEveryMethod(t *testing.T) {
	g := readCase(t, "49-fanout-above-degree/edges.csv")
	g.in.Weight = make([]float32, g.in.NumEntries())
	for e := range g.in.Weight {
		g.in.Weight[e] = 1
	}
	for _, method := range []Method{Uniform, Weighted, Labor} {
		for _, k := range []int{0, 2, 3, 5, All} {
			b := NewSampler(g.in, g.keys, Options{Fanout: []int{k}, Method: method, Seed: 1}, nil).Sample(0, []int32{g.number("c")})
			taken := []string{}
			for _, at := range b.Layers[0].Indices {
				taken = append(taken, g.ids[b.Nodes[at]])
			}
			want := []string{"n1", "n2", "n3"}
			switch {
			case k == 0 && len(taken) > 0:
				t.Errorf("%v: fanout 0 takes %v", method, taken)
			case k == 2 && (method != Labor && len(taken) != 2 || len(slices.Compact(slices.Clone(taken))) != len(taken)):
				t.Errorf("%v: fanout 2 takes %v", method, taken)
			case (k >= 3 || k == All) && !slices.Equal(taken, want):
				t.Errorf("%v: fanout %d takes %v", method, k, taken)
			case (k >= 3 || k == All) && method != Weighted && b.Layers[0].Importance[0] != 1:
				t.Errorf("%v: importance %g", method, b.Layers[0].Importance[0])
			}
		}
	}
}

// TestCase53LastPartialBatch is case 53: 10 train nodes in batches of 4 are 4, 4 and 2, in one of 64 they are 10, each exactly once, in every order.
func TestCase53LastPartialBatch(t *testing.T) {
	g := readCase(t, "53-last-partial-batch/edges.csv")
	var train []int32
	labels := Labels{Class: make([]int32, len(g.ids)), NumClasses: 2}
	for _, row := range readRows(t, "53-last-partial-batch/nodes.csv") {
		v := g.number(row[0])
		labels.Class[v] = int32(row[1][0] - '0')
		if row[2] == "train" {
			train = append(train, v)
		}
	}
	slices.Sort(train)
	for _, c := range []struct {
		batchSize int
		want      []int
	}{{4, []int{4, 4, 2}}, {64, []int{10}}, {5, []int{5, 5}}} {
		for name, place := range map[string][]int32{Locality: numbers(len(g.ids)), Random: nil} {
			o := &Order{Seeds: train, Keys: g.keys, Place: place, Labels: labels, BatchSize: c.batchSize, Seed: 1}
			for variant := range 3 {
				seeds := o.Variant(variant)
				var got []int
				for start := 0; start < len(seeds); start += c.batchSize {
					got = append(got, len(seeds[start:min(start+c.batchSize, len(seeds))]))
				}
				if !slices.Equal(got, c.want) || o.NumBatches() != len(c.want) {
					t.Errorf("%s, batch size %d: batches of %v, want %v", name, c.batchSize, got, c.want)
				}
				if all := slices.Sorted(slices.Values(seeds)); !slices.Equal(all, train) {
					t.Errorf("%s, batch size %d: seeds %v, want %v", name, c.batchSize, all, train)
				}
			}
		}
	}
}
