package snapshot

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// Verify recomputes all that a snapshot claims: the digest of every file, every CRC and
// bound, and from the rows alone the components, the norm factors, the counts and the
// node keys; the ids must rise in their collation. Errors are of format's classes.
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
			s.verifyKey, func() error { return s.verifyIDs(threads) }, s.verifyRows, s.verifyComponents, s.verifyNorms, s.verifyTables,
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
		return s.wrong("set key is %s, the manifest gives %s", s.Manifest.SetKey, key)
	}
	return nil
}

func (s *Snapshot) verifyIDs(threads int) error {
	ids := IDs{s.IDs.Offsets, s.IDs.Bytes, s.Manifest.Collation}
	for v := range int32(ids.Len()) {
		if len(ids.At(v)) == 0 {
			return s.wrong("node %d has an empty id", v)
		}
		if v > 0 && !ids.less(v-1, v) {
			return s.wrong("ids %q and %q of nodes %d and %d are not in %s order", ids.At(v-1), ids.At(v), v-1, v, ids.Collation)
		}
	}
	if keys := nodeKeys(&ids, threads); !slices.Equal(keys, s.Keys) {
		return s.wrong("node keys are not the digests of the ids")
	}
	return nil
}

// less reports whether id a stands before id b in the collation.
func (ids *IDs) less(a, b int32) bool {
	if ids.Collation != CollationInteger {
		return bytes.Compare(ids.At(a), ids.At(b)) < 0
	}
	x, errX := strconv.ParseInt(string(ids.At(a)), 10, 64)
	y, errY := strconv.ParseInt(string(ids.At(b)), 10, 64)
	return errX == nil && errY == nil && x < y
}

func (s *Snapshot) verifyRows() error {
	if err := graph.VerifyCSR(s.NumNodes(), &s.In, s.Out == nil); err != nil {
		return s.wrong("%v", err)
	}
	loops, isolated := int64(0), int64(0)
	for v := range int32(s.NumNodes()) {
		_, loop := s.In.Loop(v)
		neighbours := s.In.Degree(v)
		if loop {
			loops++
			neighbours--
		}
		if s.Out != nil {
			neighbours += s.Out.Degree(v)
			if loop {
				neighbours--
			}
		}
		if neighbours == 0 {
			isolated++
		}
	}
	edges := s.In.NumEntries()
	if s.Out == nil {
		edges = (edges + loops) / 2
	} else if err := s.verifyOut(); err != nil {
		return err
	}
	m := &s.Manifest
	for _, c := range []struct {
		what       string
		got, claim int64
	}{
		{"num_entries", s.In.NumEntries(), int64(m.NumEntries)}, {"num_edges", edges, int64(m.NumEdges)},
		{"self_loops", loops, int64(m.Audit.SelfLoops)}, {"isolated_nodes", isolated, int64(m.Audit.IsolatedNodes)},
		{"num_lines - duplicates_merged", edges, int64(m.Audit.NumLines - m.Audit.DuplicatesMerged)},
	} {
		if c.got != c.claim {
			return s.wrong("%s is %d, the rows give %d", c.what, c.claim, c.got)
		}
	}
	return nil
}

// verifyOut checks that the out-rows are the in-rows turned round.
func (s *Snapshot) verifyOut() error {
	indptr, indices, _ := graph.Transpose(s.NumNodes(), s.NumNodes(), s.In.Indptr, s.In.Indices)
	if !slices.Equal(indptr, s.Out.Indptr) || !slices.Equal(indices, s.Out.Indices) {
		return s.wrong("out-rows are not the in-rows turned round")
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
