package ingest

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of the larger pages that the system may have.
const hugePage = 2 << 20

// makeHuge is make for large slices: it asks for huge pages, so that the first touch of the memory and every random
// access to it take less.
func makeHuge[T any](n int) []T {
	s := make([]T, n)
	size := uintptr(n) * unsafe.Sizeof(*new(T))
	if size < 2*hugePage {
		return s
	}
	skip := -uintptr(unsafe.Pointer(&s[0])) % hugePage
	whole := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&s[0]), skip)), (size-skip)/hugePage*hugePage)
	unix.Madvise(whole, unix.MADV_HUGEPAGE) // advice
	return s
}

// slabs gives out pieces of large slices, which are freed together. Safe for concurrent use.
type slabs struct {
	mu   sync.Mutex
	rest []byte
}

const slabBytes = 8 << 20

// take returns n zero bytes.
func (s *slabs) take(n int) []byte {
	if n < 1<<12 || n > slabBytes/8 {
		return make([]byte, n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) < n {
		s.rest = makeHuge[byte](slabBytes)
	}
	piece := s.rest[:n:n]
	s.rest = s.rest[n:]
	return piece
}
