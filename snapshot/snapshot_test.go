package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// idsOf makes sorted ids with the given collation.
func idsOf(collation Collation, ids ...string) IDs {
	t := IDs{Offsets: []int64{0}, Collation: collation}
	for _, id := range ids {
		t.Bytes = append(t.Bytes, id...)
		t.Offsets = append(t.Offsets, int64(len(t.Bytes)))
	}
	return t
}

// smallTables is a weighted graph with a loop, an isolated node, features, labels and splits; a-b has two lines, one each way.
func smallTables() *Tables {
	return &Tables{
		IDs:      idsOf(CollationBytes, "a", "b", "c", "d"),
		Edges:    graph.EdgesOf([]int32{0, 1, 1, 2}, []int32{1, 0, 1, 1}, []float32{1, 2, 3, 4}, nil),
		Features: &Features{NumCols: 2, Data: []float32{1, 2, 3, 4, 5, 6, 7, 8}},
		Labels:   &Labels{Task: TaskMulticlass, ClassNames: []string{"x", "y"}, Class: []int32{0, 1, -1, 1}},
		Splits:   &Splits{Names: []string{"split"}, Mask: []Part{PartTrain, PartTest, PartNone, PartValid}},
		Named:    []bool{true, false, false, true},
	}
}

var defaultParams = Params{Direction: Undirected, FeatureNorm: "none", MissingFeatures: "error", Updatable: true}

// fullParams ask for everything; the thresholds are low, so that small graphs have rows of every kind.
var fullParams = Params{
	Direction: Undirected, FeatureNorm: "none", MissingFeatures: "error", Updatable: true,
	Hops: HopsAuto, CompactBelow: 3, HubFrom: 6, ExpandLimit: 4, Hop2Cap: 9, With: []string{WithPageRank, WithOrder},
}

// buildIn builds a snapshot named snap in a new directory.
func buildIn(t *testing.T, tables *Tables, p Params, threads int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "snap")
	job, err := format.Begin(dir, Kind, format.Digest{1})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Build(context.Background(), job, tables, p, Options{Threads: threads}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBuildAndOpen(t *testing.T) {
	dir := buildIn(t, smallTables(), defaultParams, 1)
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// a-b: 1+2 = 3 both ways, b-b loop 3, b-c 4.
	if want := []int64{0, 1, 4, 5, 5}; !slices.Equal(s.In.Indptr, want) {
		t.Errorf("indptr %v, want %v", s.In.Indptr, want)
	}
	if want := []int32{1, 0, 1, 2, 1}; !slices.Equal(s.In.Indices, want) {
		t.Errorf("indices %v, want %v", s.In.Indices, want)
	}
	if want := []float32{3, 3, 3, 4, 4}; !slices.Equal(s.In.Weight, want) {
		t.Errorf("weights %v, want %v", s.In.Weight, want)
	}
	if want := []int32{0, 0, 0, 1}; !slices.Equal(s.Component, want) {
		t.Errorf("components %v, want %v", s.Component, want)
	}
	if !slices.Equal(s.Features, smallTables().Features.Data) || !slices.Equal(s.Class, smallTables().Labels.Class) || !slices.Equal(s.Mask, smallTables().Splits.Mask) {
		t.Errorf("tables changed: %v %v %v", s.Features, s.Class, s.Mask)
	}
	if got := s.ClassNames; !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("class names %q", got)
	}
	d, err := Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d.NumEdges != 3 || d.NumEntries != 5 || d.SelfLoops != 1 || d.IsolatedNodes != 1 || d.DuplicatesMerged != 1 || d.Unlabelled != 1 || d.NumComponents != 2 {
		t.Errorf("description %+v", d)
	}
	var files, sections int64
	for _, f := range d.Files {
		info, err := os.Stat(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		files += info.Size()
		for _, s := range f.Sections {
			sections += s.SizeBytes
		}
	}
	if files != sections || files != d.Bytes {
		t.Errorf("sections add up to %d, files to %d, bytes says %d", sections, files, d.Bytes)
	}
	if err := Verify(dir, 2); err != nil {
		t.Error(err)
	}
}

// randomTables draws a graph of the seed; the order of its lines is that of another.
func randomTables(seed, order uint64, weighted bool) *Tables {
	r := rand.New(rand.NewPCG(seed, 1))
	n := 1 + r.IntN(60)
	t := &Tables{}
	var ids []string
	for v := range n {
		ids = append(ids, fmt.Sprintf("n%03d", v))
	}
	t.IDs = idsOf(CollationBytes, ids...)
	var src, dst []int32
	var weight []float32
	if weighted {
		weight = []float32{}
	}
	for range r.IntN(200) {
		src, dst = append(src, int32(r.IntN(n))), append(dst, int32(r.IntN(n)))
		if weighted {
			weight = append(weight, r.Float32())
		}
	}
	rand.New(rand.NewPCG(order, 2)).Shuffle(len(src), func(i, j int) {
		src[i], src[j] = src[j], src[i]
		dst[i], dst[j] = dst[j], dst[i]
		if weighted {
			weight[i], weight[j] = weight[j], weight[i]
		}
	})
	t.Edges = graph.EdgesOf(src, dst, weight, nil)
	if t.Declared = seed%3 == 0; !t.Declared {
		t.Named = make([]bool, n)
		for v := range t.Named {
			t.Named[v] = r.IntN(2) == 0 || !slices.Contains(src, int32(v)) && !slices.Contains(dst, int32(v))
		}
	}
	return t
}

func TestIDDependsOnContentOnly(t *testing.T) {
	for seed := range uint64(20) {
		for _, direction := range []Direction{Undirected, Directed} {
			p := fullParams
			p.Direction = direction
			weighted := seed%2 == 1
			first := buildIn(t, randomTables(seed, 0, weighted), p, 1)
			want, err := format.ReadID(first)
			if err != nil {
				t.Fatal(err)
			}
			if err := Verify(first, 1); err != nil {
				t.Errorf("seed %d, %s: %v", seed, direction, err)
			}
			if got, _ := format.ReadID(buildIn(t, randomTables(seed, seed+1, weighted), p, 8)); got != want {
				t.Errorf("seed %d, %s: id %s with shuffled lines and 8 threads, want %s", seed, direction, got, want)
			}
		}
	}
}

// TestVerifyFindsLies rewrites one claim of a snapshot with every digest put right, so
// that only recomputation can find it.
func TestVerifyFindsLies(t *testing.T) {
	for _, c := range []struct {
		name, want string
		lie        func(m *Manifest)
	}{
		{"edges", "audit", func(m *Manifest) { m.NumEdges++ }},
		{"entries", "the manifest says 6 entries, the rows have 5", func(m *Manifest) { m.NumEntries++ }},
		{"loops", "audit", func(m *Manifest) { m.Audit.SelfLoops++ }},
		{"isolated", "audit", func(m *Manifest) { m.Audit.IsolatedNodes-- }},
		{"lines", "audit", func(m *Manifest) { m.Audit.NumLines++ }},
		{"more lines", "4 lines with 1 pairs one way only, want 5", func(m *Manifest) { m.Audit.NumLines++; m.Audit.DuplicatesMerged++ }},
		{"one way", "want 4 and 2", func(m *Manifest) { m.Audit.OneDirectional++ }},
		{"degrees", "audit", func(m *Manifest) { m.Audit.DegreeHistogram[0]++; m.Audit.DegreeHistogram[1]-- }},
		{"largest degree", "audit", func(m *Manifest) { m.Audit.MaxDegree++ }},
		{"pairs", "audit", func(m *Manifest) { m.Audit.NumPairs++ }},
		{"components", "components", func(m *Manifest) { m.Audit.NumComponents++ }},
		{"largest", "components", func(m *Manifest) { m.Audit.LargestComponent++ }},
		{"anonymised ids", "said to be anonymised", func(m *Manifest) { m.Params.Anonymised = new(format.Digest) }},
		{"hop thresholds", "hop1 row", func(m *Manifest) { m.Params.CompactBelow = 2 }},
		{"hop 2 entries", "hop2 audit", func(m *Manifest) { m.Hop2.NumEntries++ }},
		{"hop 2 cap", "hop2 audit", func(m *Manifest) { m.Params.Hop2Cap-- }},
		{"hop 2 forced", "hop2 audit", func(m *Manifest) { m.Hop2.Forced = true }},
		{"iterations", "pagerank", func(m *Manifest) { m.PageRank.Iterations++ }},
		{"damping", "pagerank", func(m *Manifest) { m.PageRank.Damping = 0.5 }},
		{"delta", "changes ranks", func(m *Manifest) { m.PageRank.Delta /= 2 }},
		{"converged", "step changes ranks", func(m *Manifest) { m.PageRank.Converged = false }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := buildIn(t, smallTables(), fullParams, 1)
			rewrite(t, dir, c.lie)
			err := Verify(dir, 1)
			if err == nil || !errors.Is(err, format.ErrLayout) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one about %s", err, c.want)
			}
		})
	}
}

// rewrite changes the manifest of a snapshot and makes everything consistent with it:
// set key, headers, digests.
func rewrite(t *testing.T, dir string, change func(m *Manifest)) {
	t.Helper()
	rewriteSections(t, dir, change, func(string, *format.SectionSpec) {})
}

// rewriteSections is rewrite with a change of the sections, too.
func rewriteSections(t *testing.T, dir string, change func(m *Manifest), changeSection func(file string, s *format.SectionSpec)) {
	t.Helper()
	_, m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	names := m.Files
	m.SetKey, m.Files = format.Digest{}, []format.FileInfo{}
	key, err := format.DigestOf(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range names {
		path := filepath.Join(dir, f.Name)
		old, err := format.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		h := old.Header
		h.SetKey = key
		w, err := format.Create(path+".new", h, len(old.Records))
		if err != nil {
			t.Fatal(err)
		}
		for i := range old.Records {
			r, err := old.Record(i)
			if err != nil {
				t.Fatal(err)
			}
			var specs []format.SectionSpec
			for _, s := range r.Sections {
				data := slices.Clone(s.Bytes())
				if data == nil {
					data = []byte{}
				}
				specs = append(specs, format.SectionSpec{Kind: s.Kind, Layer: s.Layer, Coef: s.Coef, DType: s.DType, Shape: s.Shape, Data: data})
				changeSection(f.Name, &specs[len(specs)-1])
			}
			if err := w.Add(&r.RecordHeader, specs); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), old.Close(), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
		info, err := format.DigestFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, info)
	}
	m.SetKey = key
	if _, err := format.WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(t *testing.T, dir string)
		want error
	}{
		{"no manifest", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, format.ManifestName)) }, format.ErrMissing},
		{"no rows", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, TopologyFile)) }, format.ErrMissing},
		{"short rows", func(t *testing.T, dir string) { os.Truncate(filepath.Join(dir, TopologyFile), 100) }, format.ErrTruncated},
		{"files swapped", func(t *testing.T, dir string) {
			a, b := filepath.Join(dir, IDsFile), filepath.Join(dir, LabelsFile)
			if err := errors.Join(os.Rename(a, a+".x"), os.Rename(b, a), os.Rename(a+".x", b)); err != nil {
				t.Fatal(err)
			}
		}, format.ErrTruncated},
		{"splits claimed, not there", claimAway(SplitsFile), format.ErrMissing},
		{"labels claimed, not there", claimAway(LabelsFile), format.ErrMissing},
		{"features claimed, not there", claimAway(FeaturesFile), format.ErrMissing},
		{"splits there, not claimed", func(t *testing.T, dir string) {
			rewrite(t, dir, func(m *Manifest) { m.Splits = []string{} })
		}, format.ErrLayout},
		{"splits of other names", func(t *testing.T, dir string) {
			rewrite(t, dir, func(m *Manifest) { m.Splits = []string{"other"} })
		}, format.ErrMissing},
		{"index claimed, not there", claimAway(HopsFile), format.ErrMissing},
		{"ranks claimed, not there", claimAway(RankFile), format.ErrMissing},
		{"index there, not claimed", func(t *testing.T, dir string) {
			rewrite(t, dir, func(m *Manifest) {
				m.Params.Hops, m.Params.CompactBelow, m.Params.HubFrom, m.Params.ExpandLimit, m.Params.Hop2Cap, m.Hop2 = 0, 0, 0, 0, 0, nil
			})
		}, format.ErrLayout},
		{"three hops", func(t *testing.T, dir string) { rewrite(t, dir, func(m *Manifest) { m.Params.Hops = 3 }) }, format.ErrLayout},
		{"hubs below compact rows", func(t *testing.T, dir string) { rewrite(t, dir, func(m *Manifest) { m.Params.HubFrom = 1 }) }, format.ErrLayout},
		{"no audit of hop 2", func(t *testing.T, dir string) { rewrite(t, dir, func(m *Manifest) { m.Hop2 = nil }) }, format.ErrLayout},
		{"ranks not said", func(t *testing.T, dir string) { rewrite(t, dir, func(m *Manifest) { m.PageRank = nil }) }, format.ErrLayout},
		{"order asked for in other words", func(t *testing.T, dir string) {
			rewrite(t, dir, func(m *Manifest) { m.Params.With = []string{"order", "pagerank", "rank"} })
		}, format.ErrLayout},
		{"masses of another graph", changeSection(format.RankMass, func(s *format.SectionSpec) { s.Shape, s.Data = []uint64{1}, s.Data[:8] }), format.ErrLayout},
		{"a run of other numbers", changeSection(format.Hop1Compact, func(s *format.SectionSpec) { s.Data[0] ^= 0x10 }), format.ErrLayout},
		{"a row of another size", changeSection(format.Hop1Code, func(s *format.SectionSpec) { s.Data[0]++ }), format.ErrLayout},
		{"lines claimed, not there", claimAway(LinesFile), format.ErrMissing},
		{"lines not said", func(t *testing.T, dir string) { rewrite(t, dir, func(m *Manifest) { m.Update = nil }) }, format.ErrLayout},
		{"lines there, not claimed", func(t *testing.T, dir string) {
			rewrite(t, dir, func(m *Manifest) { m.Update, m.Params.Updatable = nil, false })
		}, format.ErrLayout},
		{"one code claimed", func(t *testing.T, dir string) { rewrite(t, dir, func(m *Manifest) { m.Update.Code = "forward" }) }, format.ErrLayout},
		{"a code unknown", func(t *testing.T, dir string) { rewrite(t, dir, func(m *Manifest) { m.Update.Code = "sideways" }) }, format.ErrLayout},
		{"more counted edges", func(t *testing.T, dir string) { rewrite(t, dir, func(m *Manifest) { m.Update.NumCounted++ }) }, format.ErrLayout},
		{"all nodes named", func(t *testing.T, dir string) { rewrite(t, dir, func(m *Manifest) { m.Update.Named = "all" }) }, format.ErrLayout},
		{"some nodes declared", func(t *testing.T, dir string) { rewrite(t, dir, func(m *Manifest) { m.Update.Declared = true }) }, format.ErrLayout},
		{"codes of more edges", changeSection(format.LinesCode, func(s *format.SectionSpec) { s.Shape, s.Data = []uint64{2}, append(s.Data, 0) }), format.ErrLayout},
		{"codes of another graph", changeSection(format.LinesCode, func(s *format.SectionSpec) { s.Data[0] ^= 3 }), format.ErrLayout},
		{"rows of another graph", func(t *testing.T, dir string) {
			other := buildIn(t, randomTables(3, 0, false), defaultParams, 1)
			b, err := os.ReadFile(filepath.Join(other, TopologyFile))
			if err != nil {
				t.Fatal(err)
			}
			os.WriteFile(filepath.Join(dir, TopologyFile), b, 0o644)
			_, m, err := ReadManifest(dir)
			if err != nil {
				t.Fatal(err)
			}
			for i := range m.Files {
				m.Files[i], _ = format.DigestFile(filepath.Join(dir, m.Files[i].Name))
			}
			format.WriteManifest(dir, m)
		}, format.ErrLayout},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := buildIn(t, smallTables(), fullParams, 1)
			c.harm(t, dir)
			if _, err := Open(dir); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// changeSection changes one section, with every digest put right.
func changeSection(kind format.Kind, change func(s *format.SectionSpec)) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		rewriteSections(t, dir, func(*Manifest) {}, func(_ string, s *format.SectionSpec) {
			if s.Kind == kind {
				change(s)
			}
		})
	}
}

// TestSpecFields checks that SPEC 6 describes every field of the manifest.
func TestSpecFields(t *testing.T) {
	spec, err := os.ReadFile("../SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []reflect.Type{reflect.TypeFor[Manifest](), reflect.TypeFor[Params](), reflect.TypeFor[Audit](), reflect.TypeFor[Hop2Audit](), reflect.TypeFor[RankAudit](), reflect.TypeFor[HoldoutParams](), reflect.TypeFor[HeldoutAudit](), reflect.TypeFor[UpdateInfo]()} {
		for _, f := range reflect.VisibleFields(v) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !strings.Contains(string(spec), "`"+name+"`") {
				t.Errorf("SPEC.md doesn't name the manifest field %s", name)
			}
		}
	}
}

// claimAway drops a file from the manifest, but not what the manifest says of it.
func claimAway(name string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		rewrite(t, dir, func(m *Manifest) {
			m.Files = slices.DeleteFunc(m.Files, func(f format.FileInfo) bool { return f.Name == name })
		})
	}
}
