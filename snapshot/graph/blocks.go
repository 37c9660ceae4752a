package graph

import (
	"sync"
	"unsafe"
)

// blockLen is the number of records of a block: 64 KiB of keys, long enough to be worth a read of its own on a
// disk, short enough for each of a thousand buckets to fill one.
const blockLen = 1 << 13

// Spill keeps the blocks that memory has no room for. Its methods are called by several goroutines at a time.
type Spill interface {
	// Put stores the parts, one after the other, and returns their place.
	Put(parts [][]byte) (place int64, err error)
	// Get reads what Put stored at place into parts of the same sizes.
	Get(place int64, parts [][]byte) error
	// Free says that what Put stored at place, of that many bytes, isn't needed any more.
	Free(place, sizeBytes int64)
}

// block holds up to blockLen records: a key each, a weight and a relation where the store has them. A block in the
// spill holds only its number of records and its place.
type block struct {
	n    int
	keys *[blockLen]uint64
	vals *[blockLen]float32
	rels *[blockLen]int32

	place     int64 // of a block in the spill, and its bytes there
	sizeBytes int64
}

// ends views the keys of a block of edges, not sorted yet: src and dst of each in turn.
func (b *block) ends() *[2 * blockLen]int32 { return (*[2 * blockLen]int32)(unsafe.Pointer(b.keys)) }

// blockList is a sequence of records in blocks, appended to by one goroutine.
type blockList struct {
	blocks []*block
	n      int64 // records
}

// blockStore gives out blocks, takes them back, and spills full ones once more than limit bytes are kept.
type blockStore struct {
	limit int64              // 0: no limit
	spill Spill              // nil: everything stays in memory
	alloc func(n int) []byte // nil: the Go heap

	mu   sync.Mutex
	kept int64
	free []*block
	slab []byte // of alloc, not given out yet
}

// slabBytes is how much is asked of alloc at a time: a whole number of huge pages.
const slabBytes = 8 << 20

// memory returns n bytes, a multiple of 4096. The caller holds mu.
func (s *blockStore) memory(n int) unsafe.Pointer {
	if s.alloc == nil {
		return unsafe.Pointer(&make([]uint64, n/8)[0])
	}
	if len(s.slab) < n {
		s.slab = s.alloc(slabBytes)
	}
	p := unsafe.Pointer(&s.slab[0])
	s.slab = s.slab[n:]
	return p
}

// get returns an empty block with what it has to hold.
func (s *blockStore) get(vals, rels bool) *block {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b *block
	if n := len(s.free); n > 0 {
		b = s.free[n-1]
		s.free = s.free[:n-1]
	} else {
		b = &block{keys: (*[blockLen]uint64)(s.memory(8 * blockLen))}
	}
	if b.n = 0; vals && b.vals == nil {
		b.vals = (*[blockLen]float32)(s.memory(4 * blockLen))
	}
	if rels && b.rels == nil {
		b.rels = (*[blockLen]int32)(s.memory(4 * blockLen))
	}
	if !rels {
		b.rels = nil
	}
	return b
}

// put takes a block back that is in no list.
func (s *blockStore) put(b *block) {
	if b == nil {
		return
	}
	s.mu.Lock()
	s.free = append(s.free, b)
	s.mu.Unlock()
}

// keep appends b to l. Where memory is full, b's records go to the spill and b comes back empty, to be filled again;
// else the result is nil.
func (s *blockStore) keep(l *blockList, b *block) (again *block, err error) {
	l.n += int64(b.n)
	size := blockLen * b.recordBytes()
	s.mu.Lock()
	full := s.spill != nil && s.limit > 0 && s.kept+size > s.limit
	if !full {
		s.kept += size
	}
	s.mu.Unlock()
	if !full {
		l.blocks = append(l.blocks, b)
		return nil, nil
	}
	place, err := s.spill.Put(b.parts())
	if err != nil {
		return nil, err
	}
	l.blocks = append(l.blocks, &block{n: b.n, place: place, sizeBytes: int64(b.n) * b.recordBytes()})
	b.n = 0
	return b, nil
}

// load returns the records of a block of a list: b itself, or buf filled from the spill.
func (s *blockStore) load(b, buf *block) (*block, error) {
	if b.keys != nil {
		return b, nil
	}
	buf.n = b.n
	return buf, s.spill.Get(b.place, buf.parts())
}

// releaseAll gives up all blocks of a list.
func (s *blockStore) releaseAll(l *blockList) {
	for _, b := range l.blocks {
		s.release(b)
	}
	*l = blockList{}
}

// release gives up a block of a list.
func (s *blockStore) release(b *block) {
	if b.keys == nil {
		s.spill.Free(b.place, b.sizeBytes)
		return
	}
	s.mu.Lock()
	s.kept -= blockLen * b.recordBytes()
	s.free = append(s.free, b)
	s.mu.Unlock()
}

// recordBytes is the memory of one record of b.
func (b *block) recordBytes() int64 {
	size := int64(8)
	if b.vals != nil {
		size += 4
	}
	if b.rels != nil {
		size += 4
	}
	return size
}

// parts views b's records as bytes in the machine's own order, for the spill.
func (b *block) parts() [][]byte {
	parts := [][]byte{unsafe.Slice((*byte)(unsafe.Pointer(b.keys)), 8*b.n)}
	if b.vals != nil {
		parts = append(parts, unsafe.Slice((*byte)(unsafe.Pointer(b.vals)), 4*b.n))
	}
	if b.rels != nil {
		parts = append(parts, unsafe.Slice((*byte)(unsafe.Pointer(b.rels)), 4*b.n))
	}
	return parts
}

// scatter appends records to one of many lists each. It belongs to one goroutine.
type scatter struct {
	store *blockStore
	vals  bool
	open  []*block // of each list, the block being filled, or full
	lists []blockList
	spare *block // takes records after an error
	err   error
}

// noBlock stands for the open block of a list that has none.
var noBlock = &block{n: blockLen}

func newScatter(s *blockStore, numLists int, vals bool) *scatter {
	w := &scatter{store: s, vals: vals, open: make([]*block, numLists), lists: make([]blockList, numLists)}
	for k := range w.open {
		w.open[k] = noBlock
	}
	return w
}

// add appends record i, keys[i] with vals[i] if there are any, to list to[i].
func (w *scatter) add(to []uint16, keys []uint64, vals []float32) {
	open := w.open
	if !w.vals {
		for i, k := range to {
			b := open[k]
			if b.n >= blockLen {
				b = w.next(k)
			}
			b.keys[b.n&(blockLen-1)] = keys[i]
			b.n++
		}
		return
	}
	for i, k := range to {
		b := open[k]
		if b.n >= blockLen {
			b = w.next(k)
		}
		at := b.n & (blockLen - 1)
		b.keys[at], b.vals[at] = keys[i], vals[i]
		b.n++
	}
}

// next returns an empty block for list k, which keeps the full one. After an error, which w.err tells, records are lost.
func (w *scatter) next(k uint16) *block {
	b := w.open[k]
	if b == noBlock || b == w.spare {
		b = nil
	}
	if w.err == nil && b != nil {
		b, w.err = w.store.keep(&w.lists[k], b)
	}
	if w.err != nil {
		if w.spare == nil {
			w.spare = w.store.get(w.vals, false)
		}
		b = w.spare
		b.n = 0
	}
	if b == nil {
		b = w.store.get(w.vals, false)
	}
	w.open[k] = b
	return b
}

// close puts the blocks that aren't full into their lists too.
func (w *scatter) close() ([]blockList, error) {
	for k, b := range w.open {
		if w.err != nil {
			return nil, w.err
		}
		if b == noBlock {
			continue
		}
		var again *block
		again, w.err = w.store.keep(&w.lists[k], b)
		w.store.put(again)
	}
	w.open = nil
	return w.lists, w.err
}
