package snapshot

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// largeTables has 200,000 lines over 3,000 nodes in the scratch space, 1.6 MB and more.
func largeTables(t *testing.T, s *Scratch, weighted, relational bool) (*Tables, error) {
	t.Helper()
	const numNodes, numLines = 3000, 200_000
	var ids []string
	for v := range numNodes {
		ids = append(ids, string([]byte{'n', byte('0' + v/1000), byte('0' + v/100%10), byte('0' + v/10%10), byte('0' + v%10)}))
	}
	list := graph.NewEdgeList(s.ListOptions(weighted, relational))
	r := rand.New(rand.NewPCG(5, 6))
	var ends []int32
	var weight []float32
	var rel []int32
	for range numLines {
		ends = append(ends, int32(r.Float64()*r.Float64()*numNodes), r.Int32N(numNodes))
		weight = append(weight, r.Float32())
	}
	if !weighted {
		weight = nil
	}
	tables := &Tables{IDs: idsOf(CollationBytes, ids...), Edges: list}
	if relational {
		tables.RelNames = []string{"a", "b", "c"}
		for range numLines {
			rel = append(rel, r.Int32N(3))
		}
	}
	return tables, list.Append(ends, weight, rel)
}

// A build with next to no memory, its edges and arrays on the disk, gives the bytes of one with plenty.
func TestBuildSpilled(t *testing.T) {
	for _, c := range []struct {
		direction  Direction
		weighted   bool
		relational bool
	}{{Undirected, false, false}, {Undirected, true, false}, {Directed, false, false}, {Directed, true, false}, {Undirected, false, true}, {Directed, true, true}} {
		p := fullParams
		p.Direction = c.direction
		build := func(memBytes int64, threads int) (format.Digest, int64) {
			tmp := t.TempDir()
			s := NewScratch(memBytes, tmp)
			defer s.Close()
			tables, err := largeTables(t, s, c.weighted, c.relational)
			if err != nil {
				t.Fatal(err)
			}
			job, err := format.Begin(filepath.Join(t.TempDir(), "snap"), Kind, format.Digest{1})
			if err != nil {
				t.Fatal(err)
			}
			id, _, err := Build(t.Context(), job, tables, p, Options{Threads: threads, Scratch: s})
			if err != nil {
				t.Fatal(err)
			}
			if left, _ := os.ReadDir(tmp); len(left) > 0 {
				t.Errorf("%d files are left in the scratch directory", len(left))
			}
			return id, s.spilledBytes()
		}
		want, spilled := build(0, 1)
		if spilled != 0 {
			t.Errorf("%d bytes spilled without a limit", spilled)
		}
		got, spilled := build(256<<10, 3)
		if spilled < 1<<20 {
			t.Errorf("only %d bytes spilled", spilled)
		}
		if got != want {
			t.Errorf("%s, weighted %t, relational %t: id %s from the disk, %s from memory", c.direction, c.weighted, c.relational, got, want)
		}
	}
}

// A full scratch disk is one error that says what to do, and leaves nothing.
func TestScratchDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small tmpfs")
	}
	tmp := t.TempDir()
	if err := syscall.Mount("tmpfs", tmp, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("can't mount a tmpfs: %v", err)
	}
	defer syscall.Unmount(tmp, syscall.MNT_DETACH)
	s := NewScratch(256<<10, tmp)
	defer s.Close()
	_, err := largeTables(t, s, false, false)
	if err == nil || !strings.Contains(err.Error(), "--tmp") || !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), tmp) {
		t.Errorf("edges: got %v", err)
	}
	if _, err := s.allocArray(2 << 20); err == nil || !strings.Contains(err.Error(), "--tmp") {
		t.Errorf("array: got %v", err)
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("%d files are left", len(left))
	}
}

// Files of others are dropped while memory is short, and not once that is undone.
func TestScratchDropsAlso(t *testing.T) {
	s := NewScratch(1, t.TempDir()) // less than any process has
	defer s.Close()
	calls := make(chan bool, 1000)
	undo := s.onPressure(func() { calls <- true })
	<-calls
	undo()
	for len(calls) > 0 {
		<-calls
	}
	other := make(chan bool, 1000)
	s.onPressure(func() { other <- true })
	<-other
	<-other
	if len(calls) > 0 {
		t.Error("dropped once more")
	}
	unlimited := NewScratch(0, "")
	unlimited.onPressure(func() { t.Error("dropped without a limit") })()
	unlimited.Close()
}

// spilledBytes returns how large the files of s became.
func (s *Scratch) spilledBytes() int64 {
	if s == nil || s.spill == nil {
		return 0
	}
	s.spill.mu.Lock()
	defer s.spill.mu.Unlock()
	return s.spill.end
}
