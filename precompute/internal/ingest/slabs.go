package ingest

import (
	"sync"

	"github.com/prelift/prelift/precompute/internal/hugemem"
)

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
		s.rest = hugemem.Make[byte](slabBytes)
	}
	piece := s.rest[:n:n]
	s.rest = s.rest[n:]
	return piece
}
