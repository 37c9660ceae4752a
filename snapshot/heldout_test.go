package snapshot

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// openIn builds, verifies and opens a snapshot.
func openIn(t *testing.T, tables *Tables, p Params, threads int) *Snapshot {
	t.Helper()
	dir := buildIn(t, tables, p, threads)
	if err := Verify(dir, threads); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// linesOf lists the edges of tables.
func linesOf(t *testing.T, tables *Tables) (p graph.Pairs) {
	t.Helper()
	err := tables.Edges.Each(func(src, dst int32, weight float32, _ int32) error {
		if p.Src, p.Dst = append(p.Src, src), append(p.Dst, dst); tables.Edges.Weighted() {
			p.Weight = append(p.Weight, weight)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// payload digests the sections of a file, which headers and set keys have no part in.
func payload(t *testing.T, dir, name string) map[string]string {
	t.Helper()
	f, err := format.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sections := map[string]string{}
	for i := range f.Records {
		r, err := f.Record(i)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Sections {
			sections[fmt.Sprint(i, s.Kind, s.Layer, s.Coef)] = string(s.Bytes())
		}
	}
	return sections
}

// A snapshot with pairs held out has the rows, components, norms, index, ranks and order of one whose input never had their
// lines, whatever the order of lines and the number of threads.
func TestHoldoutIsTheGraphWithout(t *testing.T) {
	for seed := range uint64(8) {
		for _, direction := range []Direction{Undirected, Directed} {
			weighted, spare := seed%2 == 1, seed%3 == 1
			t.Run(fmt.Sprintf("seed %d, %s", seed, direction), func(t *testing.T) {
				p := fullParams
				p.Direction, p.Holdout = direction, &HoldoutParams{Kind: HoldoutHash, Valid: 0.2, Test: 0.3, Seed: format.Int(seed), SpareLast: spare}
				by := openIn(t, randomTables(seed, 0, weighted), p, 1)
				if again := openIn(t, randomTables(seed, seed+1, weighted), p, 8); again.ID != by.ID {
					t.Errorf("id %s with shuffled lines and 8 threads, want %s", again.ID, by.ID)
				}

				// By hand: every line whose pair is in a list goes.
				held := map[[2]int32]bool{}
				for _, list := range by.Held.parts() {
					for i, src := range list.Src {
						held[[2]int32{src, list.Dst[i]}], held[[2]int32{list.Dst[i], src}] = true, true
					}
				}
				all := linesOf(t, randomTables(seed, 0, weighted))
				rest, numHeld := graph.Pairs{}, 0
				if weighted {
					rest.Weight = []float32{}
				}
				for i, src := range all.Src {
					if held[[2]int32{src, all.Dst[i]}] {
						numHeld++
						continue
					}
					if rest.Src, rest.Dst = append(rest.Src, src), append(rest.Dst, all.Dst[i]); weighted {
						rest.Weight = append(rest.Weight, all.Weight[i])
					}
				}
				without := randomTables(seed, 0, weighted)
				without.Edges = graph.EdgesOf(rest.Src, rest.Dst, rest.Weight, nil)
				without.Declared = true // a node stays without its edges
				p.Holdout = nil
				hand := openIn(t, without, p, 2)
				for _, name := range []string{IDsFile, TopologyFile, HopsFile, RankFile} {
					if !reflect.DeepEqual(payload(t, by.Dir, name), payload(t, hand.Dir, name)) {
						t.Errorf("%s isn't that of the input without the lines held out", name)
					}
				}
				if !reflect.DeepEqual(by.Manifest.Audit, hand.Manifest.Audit) {
					t.Errorf("audit %+v, want %+v", by.Manifest.Audit, hand.Manifest.Audit)
				}
				if int(by.Manifest.Heldout.NumLines) != numHeld {
					t.Errorf("%d lines held out, want %d", by.Manifest.Heldout.NumLines, numHeld)
				}

				// The same lists, given, give the same rows and lists.
				given := randomTables(seed, 0, weighted)
				given.Held = &Held{clonePairs(by.Held.Test), clonePairs(by.Held.Valid)}
				given.Held.Valid, given.Held.Test = given.Held.Test, given.Held.Valid
				p.Holdout = &HoldoutParams{Kind: HoldoutGiven, Valid: 7, Seed: 3} // numbers without a meaning
				listed := openIn(t, given, p, 3)
				for _, name := range []string{TopologyFile, RankFile, HeldoutFile} {
					if !reflect.DeepEqual(payload(t, by.Dir, name), payload(t, listed.Dir, name)) {
						t.Errorf("with given lists %s is another", name)
					}
				}
				if want := *by.Manifest.Heldout; *listed.Manifest.Heldout != want {
					t.Errorf("given lists count %+v, want %+v", *listed.Manifest.Heldout, want)
				}
				if want := (HoldoutParams{Kind: HoldoutGiven}); *listed.Manifest.Params.Holdout != want {
					t.Errorf("params %+v, want %+v", *listed.Manifest.Params.Holdout, want)
				}
			})
		}
	}
}

func clonePairs(p graph.Pairs) graph.Pairs {
	return graph.Pairs{Src: slices.Clone(p.Src), Dst: slices.Clone(p.Dst), Rel: slices.Clone(p.Rel), Weight: slices.Clone(p.Weight)}
}

// heldTables is smallTables (a-b, a loop at b, b-c, d alone) with lists: b-a and c-d, which is no edge, for valid, a-c, which is none, for test.
func heldTables() *Tables {
	t := smallTables()
	t.Held = &Held{Valid: graph.Pairs{Src: []int32{1, 3, 0}, Dst: []int32{0, 2, 1}}, Test: graph.Pairs{Src: []int32{0}, Dst: []int32{2}}}
	return t
}

var givenParams = Params{Direction: Undirected, FeatureNorm: "none", MissingFeatures: "error", Holdout: &HoldoutParams{Kind: HoldoutGiven}}

func TestGivenHoldout(t *testing.T) {
	s := openIn(t, heldTables(), givenParams, 1)
	if want := (&Held{graph.Pairs{Src: []int32{0, 2}, Dst: []int32{1, 3}}, graph.Pairs{Src: []int32{0}, Dst: []int32{2}}}); !reflect.DeepEqual(s.Held, want) {
		t.Errorf("held out are %+v, want %+v", s.Held, want)
	}
	if want := (HeldoutAudit{NumValid: 2, NumTest: 1, MissingValid: 1, MissingTest: 1, NumLines: 2, UnseenNodes: 2, RepeatsValid: 1}); *s.Manifest.Heldout != want {
		t.Errorf("heldout counts %+v, want %+v", *s.Manifest.Heldout, want)
	}
	if want := []int64{0, 0, 2, 3, 3}; !slices.Equal(s.In.Indptr, want) {
		t.Errorf("indptr %v, want %v", s.In.Indptr, want)
	}
	d, err := Describe(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := (HeldoutDescription{Kind: HoldoutGiven, NumValid: 2, NumTest: 1, MissingValid: 1, MissingTest: 1, NumLines: 2, UnseenNodes: 2, RepeatsValid: 1}); *d.Heldout != want {
		t.Errorf("described as %+v, want %+v", *d.Heldout, want)
	}

	// Directed, an arc that is listed the other way round is missing, though its pair leaves the graph.
	p := givenParams
	p.Direction = Directed
	tables := heldTables()
	tables.Held.Valid = graph.Pairs{Src: []int32{1}, Dst: []int32{2}} // the line is c -> b
	tables.Held.Test = graph.Pairs{}
	s = openIn(t, tables, p, 1)
	if want := (HeldoutAudit{NumValid: 1, MissingValid: 1, NumLines: 1, UnseenNodes: 1}); *s.Manifest.Heldout != want {
		t.Errorf("directed: heldout counts %+v, want %+v", *s.Manifest.Heldout, want)
	}

	// Without params.holdout the lists are stored and the graph stays whole; relations need a snapshot that has them.
	tables = heldTables()
	tables.Held.Test.Rel = []int32{5}
	s = openIn(t, tables, defaultParams, 1)
	if want := (HeldoutAudit{NumValid: 2, NumTest: 1, KnownValid: 1, UnseenNodes: 1, RepeatsValid: 1}); *s.Manifest.Heldout != want || len(s.In.Indices) != 5 || s.Held.Test.Rel != nil {
		t.Errorf("lists alone: heldout counts %+v, %d entries, relations %v", *s.Manifest.Heldout, len(s.In.Indices), s.Held.Test.Rel)
	}
}

func TestHoldoutBuildErrors(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(t *Tables, p *Params)
	}{
		{"no lists", "lists of pairs are there: false", func(t *Tables, p *Params) { t.Held = nil }},
		{"lists and a hash", "lists of pairs are there: true", func(t *Tables, p *Params) { p.Holdout = &HoldoutParams{Kind: HoldoutHash, Test: 0.5} }},
		{"no share", "want one over 0", func(t *Tables, p *Params) { p.Holdout = &HoldoutParams{Kind: HoldoutHash} }},
		{"shares", "together at most 1", func(t *Tables, p *Params) { p.Holdout = &HoldoutParams{Kind: HoldoutHash, Valid: 0.6, Test: 0.6} }},
		{"kind", `holdout by "": want hash or given`, func(t *Tables, p *Params) { p.Holdout = &HoldoutParams{} }},
		{"both, by ids", `edge "c", "d": held out for both valid and test`, func(t *Tables, p *Params) { t.Held.Test = graph.Pairs{Src: []int32{2}, Dst: []int32{3}} }},
		{"self loop, by ids", `edge "b", "b": a self loop is no pair to hold out`, func(t *Tables, p *Params) { t.Held.Test = graph.Pairs{Src: []int32{1}, Dst: []int32{1}} }},
		{"out of range", "(0 -> 9): node number out of range", func(t *Tables, p *Params) { t.Held.Test = graph.Pairs{Src: []int32{0}, Dst: []int32{9}} }},
		{"both", "for both valid and test", func(t *Tables, p *Params) { t.Held.Test = graph.Pairs{Src: []int32{2}, Dst: []int32{3}} }},
		{"weights of one list", "the other none", func(t *Tables, p *Params) { t.Held.Valid.Weight = []float32{1, 2, 3} }},
		{"weights", `edge "a", "b": sum of merged weights is over`, func(t *Tables, p *Params) {
			t.Held.Valid.Weight, t.Held.Test = []float32{3e38, 1, 3e38}, graph.Pairs{}
		}},
	} {
		tables, p := heldTables(), givenParams
		c.change(tables, &p)
		job, err := format.Begin(filepath.Join(t.TempDir(), "snap"), Kind, format.Digest{1})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = Build(context.Background(), job, tables, p, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
		job.Abort(false)
	}
}

func TestOpenRefusesHeldout(t *testing.T) {
	of := func(record int, change func(s *format.SectionSpec)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			seen := 0
			changeSection(format.PairsSrc, func(s *format.SectionSpec) {
				if seen++; seen == record+1 {
					change(s)
				}
			})(t, dir)
		}
	}
	for _, c := range []struct {
		name string
		harm func(t *testing.T, dir string)
		want error
	}{
		{"claimed, not there", claimAway(HeldoutFile), format.ErrMissing},
		{"there, not claimed", func(t *testing.T, dir string) {
			rewrite(t, dir, func(m *Manifest) { m.Heldout, m.Params.Holdout = nil, nil })
		}, format.ErrLayout},
		{"no counts", func(t *testing.T, dir string) { rewrite(t, dir, func(m *Manifest) { m.Heldout = nil }) }, format.ErrLayout},
		{"another count", func(t *testing.T, dir string) { rewrite(t, dir, func(m *Manifest) { m.Heldout.NumTest++ }) }, format.ErrLayout},
		{"another kind of rule", func(t *testing.T, dir string) {
			rewrite(t, dir, func(m *Manifest) { m.Params.Holdout.Kind = "colour" })
		}, format.ErrLayout},
		{"a pair out of order", of(0, func(s *format.SectionSpec) { s.Data[0] = 3 }), format.ErrLayout},
		{"a pair turned round", of(1, func(s *format.SectionSpec) { s.Data[0] = 3 }), format.ErrLayout},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := buildIn(t, heldTables(), givenParams, 1)
			c.harm(t, dir)
			if _, err := Open(dir); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// TestVerifyFindsOtherHoldouts changes what a snapshot says of its held-out pairs, with every CRC and digest put right.
func TestVerifyFindsOtherHoldouts(t *testing.T) {
	hash := defaultParams
	hash.Holdout = &HoldoutParams{Kind: HoldoutHash, Valid: 0.3, Test: 0.3, Seed: 1}
	tables := func() *Tables {
		t := smallTables()
		src, dst := complete(4)
		t.Edges = graph.EdgesOf(src, dst, nil, nil)
		return t
	}
	for _, c := range []struct {
		name, want string
		tables     *Tables
		p          Params
		lie        func(m *Manifest)
		change     func(s *format.SectionSpec)
	}{
		{"seed", "the holdout's rule says", tables(), hash, func(m *Manifest) { m.Params.Holdout.Seed++ }, nil},
		{"shares", "in the message graph, but held out for test", tables(), hash, func(m *Manifest) { m.Params.Holdout.Test = 0.7 }, nil},
		{"lines", "heldout counts", tables(), hash, func(m *Manifest) { m.Heldout.NumLines = 0 }, nil},
		{"missing by hash", "heldout counts", tables(), hash, func(m *Manifest) { m.Heldout.MissingTest = 1 }, nil},
		{"missing", "heldout counts", heldTables(), givenParams, func(m *Manifest) { m.Heldout.MissingValid = 3 }, nil},
		{"a pair of the graph", `edge "c", "b" is in the message graph`, heldTables(), givenParams, nil, func(s *format.SectionSpec) {
			if s.Kind == format.PairsSrc && len(s.Data) == 4 { // a-c becomes b-c
				s.Data[0] = 1
			}
		}},
		{"nothing was held out", "nothing was held out", heldTables(), defaultParams, func(m *Manifest) { m.Heldout.NumLines = 1 }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := buildIn(t, c.tables, c.p, 1)
			if err := Verify(dir, 1); err != nil {
				t.Fatal(err)
			}
			if c.lie == nil {
				c.lie = func(*Manifest) {}
			}
			rewriteSections(t, dir, c.lie, func(_ string, s *format.SectionSpec) {
				if c.change != nil {
					c.change(s)
				}
			})
			if err := Verify(dir, 1); !errors.Is(err, format.ErrLayout) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// complete lists every pair of n nodes once.
func complete(n int32) (src, dst []int32) {
	for u := range n {
		for v := range u {
			src, dst = append(src, u), append(dst, v)
		}
	}
	return src, dst
}
