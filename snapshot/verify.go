package snapshot

import (
	"fmt"
	"math"
	"slices"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// Verify recomputes all that a snapshot claims: the digest of every file, every CRC and
// bound, and from the rows alone the components, the norm factors, the counts, the
// lines, the node keys, the hop index, the ranks, the locality order and that no held-out pair is in the rows; the ids must rise in their collation. Errors are of format's classes.
func Verify(dir string, threads int) error {
	s, err := Open(dir) // CRC, bounds and cross-references
	if err != nil {
		return err
	}
	defer s.Close()
	if err := format.VerifyFiles(dir, s.Manifest.Files); err != nil {
		return err
	}
	return format.Guard(dir, func() error {
		for _, check := range []func() error{
			func() error { return s.verifyIDs(threads) }, s.verifyRows, s.verifyTypes, s.verifyLines, s.verifyComponents, s.verifyNorms, s.verifyTables, s.verifyHops, s.verifyRank, s.verifyHoldout, s.verifyShared,
		} {
			if err := check(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Snapshot) wrong(format_ string, args ...any) error {
	return fmt.Errorf("snapshot: %w: %s", format.ErrLayout, fmt.Sprintf(format_, args...))
}

// verifyKey recomputes the set key.
func (s *Snapshot) verifyKey() error {
	m := s.Manifest
	m.SetKey, m.Files = format.Digest{}, []format.FileInfo{}
	if key, err := format.DigestOf(&m); err != nil || key != s.Manifest.SetKey {
		return s.wrong("set key is %s, the manifest gives %s: a field of it was changed after it was written", s.Manifest.SetKey, key)
	}
	return nil
}

func (s *Snapshot) verifyIDs(threads int) error {
	ids := IDs{s.IDs.Offsets, s.IDs.Bytes, s.Manifest.Collation}
	for v := range int32(ids.Len()) {
		if len(ids.At(v)) == 0 {
			return s.wrong("node %d has an empty id", v)
		}
		if s.Manifest.Params.Anonymised != nil && !isCode(ids.At(v)) {
			return s.wrong("node %d has the id %q, but ids are said to be anonymised: %d hexadecimal digits", v, ids.At(v), CodeDigits)
		}
		if v > 0 && !ids.less(v-1, v) {
			return s.wrong("ids %q and %q of nodes %d and %d are not in %s order", ids.At(v-1), ids.At(v), v-1, v, ids.Collation)
		}
	}
	keys, err := nodeKeys(&ids, threads)
	if err != nil {
		return err
	}
	if !slices.Equal(keys, s.Keys) {
		return s.wrong("node keys are not the digests of the ids")
	}
	return nil
}

// CodeDigits is the length of an anonymised id (SPEC 6).
const CodeDigits = 32

// isCode reports whether an id may be an anonymised one.
func isCode(id []byte) bool {
	for _, c := range id {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return len(id) == CodeDigits
}

// less reports whether id a stands before id b in the collation.
func (ids *IDs) less(a, b int32) bool {
	x, y := ids.At(a), ids.At(b)
	if ids.Collation == CollationInteger {
		_, okX := CanonicalInt(x)
		_, okY := CanonicalInt(y)
		if !okX || !okY {
			return false
		}
	}
	return ids.Collation.Compare(x, y) < 0
}

// verifyRows checks the rows and counts again what the manifest says of them.
func (s *Snapshot) verifyRows() error {
	m, a := &s.Manifest, &s.Manifest.Audit
	g := &graph.Graph{In: s.In, Out: s.Out, Audit: graph.Audit{
		NumNodes: int64(m.NumNodes), NumLines: int64(a.NumLines), NumEdges: int64(m.NumEdges), NumEntries: int64(m.NumEntries),
		SelfLoops: int64(a.SelfLoops), DuplicatesMerged: int64(a.DuplicatesMerged), NumPairs: int64(a.NumPairs), OneDirectional: int64(a.OneDirectional),
		IsolatedNodes: int64(a.IsolatedNodes), MaxDegree: int64(a.MaxDegree),
	}}
	for _, n := range a.DegreeHistogram {
		g.Audit.DegreeHistogram = append(g.Audit.DegreeHistogram, int64(n))
	}
	if s.Out != nil { // whose rows are stored without weights
		if err := graph.VerifyCSR(s.NumNodes(), &s.In, false); err != nil {
			return s.wrong("%v", err)
		}
		g.In.Weight = nil
	}
	if err := graph.VerifyGraph(g); err != nil {
		return s.wrong("%v", err)
	}
	return nil
}

func (s *Snapshot) verifyComponents() error {
	if err := graph.VerifyComponents(&s.In, s.Component, s.ComponentSizes); err != nil {
		return s.wrong("%v", err)
	}
	largest := int64(0)
	for _, n := range s.ComponentSizes {
		largest = max(largest, n)
	}
	a := &s.Manifest.Audit
	if int64(a.NumComponents) != int64(len(s.ComponentSizes)) || int64(a.LargestComponent) != largest {
		return s.wrong("%d components, the largest of %d nodes; the rows give %d and %d", a.NumComponents, a.LargestComponent, len(s.ComponentSizes), largest)
	}
	return nil
}

func (s *Snapshot) verifyNorms() error {
	if err := graph.VerifyNorm(graph.NormGCN, &s.In, s.gcn); err != nil {
		return s.wrong("%v", err)
	}
	if err := graph.VerifyNorm(graph.NormMean, &s.In, s.mean); err != nil {
		return s.wrong("%v", err)
	}
	return nil
}

// verifyTables checks that no number that a trainer would use is NaN or infinite.
func (s *Snapshot) verifyTables() error {
	cols := s.NumFeatures()
	for i, x := range s.Features {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return s.wrong("feature %d of node %q is %v", i%cols, s.IDs.At(i/cols), x)
		}
	}
	return nil
}
