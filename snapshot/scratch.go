package snapshot

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/edsrzf/mmap-go"
	"github.com/prelift/prelift/snapshot/graph"
	"golang.org/x/sys/unix"
)

// Scratch is the memory and the disk that a build may use beside its arrays by node. Sorting the edges takes what it gives:
// memory up to a share of the limit, then a file without a name, which the system removes with the process, however that ends.
// Close gives all of it back; nothing made of it may be used afterwards.
type Scratch struct {
	memBytes int64
	dir      string

	mu     sync.Mutex
	slabs  [][]byte // of blocks of edges
	memory [][]byte // of arrays
	arrays int64    // bytes of memory
	spill  *spillFile
	views  []mmap.MMap // of files, whose pages may leave memory at any time
	drops  []*dropper  // have pages of other files leave it
	stop   chan struct{}
	done   sync.WaitGroup
}

const (
	// edgeShare of the memory is for blocks of edges; the rest for what is kept by node, ids, mapped files and the program.
	edgeShare = 0.4
	// arrayShare is for arrays by entry, when the edges are sorted.
	arrayShare = 0.3
	// GoHeapShare is the soft limit of the Go heap, which neither of the others is part of. They may add up to more than 1: it reserves nothing,
	// but is where the collector starts to work harder. What lives on the heap is meant to fit in what the other two leave.
	GoHeapShare = 0.5
	// viewCheck is how often the resident part of mapped files is looked at: what can be read in that time comes on top of the limit.
	viewCheck = 20 * time.Millisecond
)

// NewScratch returns scratch space of about memBytes of memory, with 0 for no limit, and files in dir, "" for the system's directory for them.
func NewScratch(memBytes int64, dir string) *Scratch {
	return &Scratch{memBytes: memBytes, dir: dir}
}

// ListOptions are those of an edge list that lives in s.
func (s *Scratch) ListOptions(weighted, relational bool) graph.ListOptions {
	o := graph.ListOptions{Weighted: weighted, Relational: relational, Alloc: s.allocBlock}
	if s.memBytes > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.spill == nil {
			s.spill = &spillFile{dir: s.dir}
		}
		o.MemBytes, o.Spill = int64(edgeShare*float64(s.memBytes)), s.spill
	}
	return o
}

// allocBlock returns the memory of blocks.
func (s *Scratch) allocBlock(n int) []byte {
	slab, err := mapMemory(n)
	if err != nil {
		return make([]byte, n) // the limit of the heap speaks up if this is too much as well
	}
	s.mu.Lock()
	s.slabs = append(s.slabs, slab)
	s.mu.Unlock()
	return slab
}

// mapMemory returns n zero bytes outside of the Go heap, in huge pages where the system has them: the first touch of
// a page is what costs, and they can be given back at once.
func mapMemory(n int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil {
		unix.Madvise(m, unix.MADV_HUGEPAGE) // advice
	}
	return m, err
}

// freeEdges gives the memory and the disk of edge lists back, none of which may be used any more.
func (s *Scratch) freeEdges() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, slab := range s.slabs {
		unix.Munmap(slab)
	}
	s.slabs = nil
	if s.spill != nil {
		s.spill.close()
	}
}

// allocArray returns n zero bytes, a graph.Alloc: in memory up to a share of the limit, then each in a mapped file of its own.
func (s *Scratch) allocArray(n int64) ([]byte, error) {
	s.mu.Lock()
	fits := s.memBytes == 0 || s.arrays+n <= int64(arrayShare*float64(s.memBytes))
	if fits {
		s.arrays += n
	}
	s.mu.Unlock()
	if fits {
		m, err := mapMemory(int(n))
		if err != nil {
			return make([]byte, n), nil
		}
		s.mu.Lock()
		s.memory = append(s.memory, m)
		s.mu.Unlock()
		return m, nil
	}
	file, err := tempFile(s.dir)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := unix.Fallocate(int(file.Fd()), 0, 0, n); err != nil { // a page that has no room at its first write would kill the process
		return nil, fmt.Errorf("no room for %d bytes of scratch in %s (--tmp chooses the directory): %w", n, s.tempDir(), err)
	}
	view, err := mmap.MapRegion(file, int(n), mmap.RDWR, 0, 0)
	if err != nil {
		return nil, err
	}
	s.watch(view)
	return view, nil
}

// watch keeps the resident part of mapped files within the limit: what a pass has read stays resident, and counts, until somebody
// needs the memory, which under a limit is too late. A page that is dropped is still in the system's cache, and comes back from there.
func (s *Scratch) watch(m mmap.MMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.views = append(s.views, m)
	s.startWatch()
}

// dropper makes the pages of a file leave memory.
type dropper struct{ drop func() }

// onPressure has drop called where memory is short, until the result is called or s closed. drop isn't called any more, nor running, then.
func (s *Scratch) onPressure(drop func()) (undo func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &dropper{drop}
	s.drops = append(s.drops, d)
	s.startWatch()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drops = slices.DeleteFunc(s.drops, func(x *dropper) bool { return x == d })
	}
}

// startWatch begins to look at the memory; the caller holds mu.
func (s *Scratch) startWatch() {
	if s.memBytes == 0 || s.stop != nil {
		return
	}
	s.stop = make(chan struct{})
	s.done.Go(func() {
		tick := time.NewTicker(viewCheck)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
				if residentBytes() > s.memBytes*3/4 {
					s.dropViews()
				}
			}
		}
	})
}

func (s *Scratch) dropViews() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.views {
		unix.Madvise(m, unix.MADV_DONTNEED) // shared mappings of files: the content stays
	}
	for _, d := range s.drops {
		d.drop()
	}
}

// Close gives everything back.
func (s *Scratch) Close() {
	if s == nil {
		return
	}
	if s.stop != nil {
		close(s.stop)
		s.done.Wait()
		s.stop = nil
	}
	s.freeEdges()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.views {
		s.views[i].Unmap()
	}
	for _, m := range s.memory {
		unix.Munmap(m)
	}
	s.views, s.memory = nil, nil
}

func (s *Scratch) tempDir() string {
	if s.dir == "" {
		return os.TempDir()
	}
	return s.dir
}

// tempFile makes a file without a name in dir.
func tempFile(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, "prelift-scratch-")
	if err != nil {
		return nil, fmt.Errorf("no scratch file (--tmp chooses the directory): %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// residentBytes is what of this process is in memory, 0 if the system doesn't tell.
func residentBytes() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	fmt.Sscan(string(b), &size, &resident)
	return resident * int64(os.Getpagesize())
}
