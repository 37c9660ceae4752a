package ingest

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"sync"
	"sync/atomic"
)

// leastSlots is the size of a shard's first table.
const leastSlots = 16

// intShard is an open-addressing table of integers, one of a dict's. find may be called by anyone at any time: while
// others add it finds what was there before, and perhaps more.
type intShard struct {
	slots atomic.Pointer[[]intSlot] // a power of two of them, 3/4 full at most
	mu    sync.Mutex                // for all below, and for writing slots
	used  int
	_     [cacheLine - 24]byte
}

// intSlot is free while num is 0.
type intSlot struct {
	value int64
	num   atomic.Int32 // number+1, written behind value
}

// cacheLine is the size of shards, so that those who add to two of them don't disturb one another.
const cacheLine = 64

// find returns the number of v, or noNumber.
func (s *intShard) find(v int64, hash uint64) int32 {
	p := s.slots.Load()
	if p == nil {
		return noNumber
	}
	slots := *p
	mask := uint64(len(slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		num := slots[i].num.Load()
		if num == 0 || slots[i].value == v {
			return num - 1
		}
	}
}

// add returns the number of v, a new one of d if it isn't there, or tooMany.
func (s *intShard) add(d *dict, v int64, hash uint64) int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	num := s.find(v, hash)
	if num >= 0 {
		return num
	}
	if num = d.newNumber(); num >= 0 {
		s.insert(d, v, hash, num)
	}
	return num
}

// insert adds v, which isn't there. The caller holds mu or has the dictionary for itself.
func (s *intShard) insert(d *dict, v int64, hash uint64, num int32) {
	var slots []intSlot
	if p := s.slots.Load(); p != nil {
		slots = *p
	}
	if 4*(s.used+1) > 3*len(slots) {
		old := slots
		slots = make([]intSlot, max(leastSlots, 2*len(old)))
		for i := range old {
			if num := old[i].num.Load(); num != 0 {
				putInt(slots, old[i].value, d.hashInt(old[i].value), num)
			}
		}
		s.slots.Store(&slots)
	}
	putInt(slots, v, hash, num+1)
	s.used++
}

// putInt fills the first free slot for v.
func putInt(slots []intSlot, v int64, hash uint64, num int32) {
	mask := uint64(len(slots) - 1)
	i := hash & mask
	for slots[i].num.Load() != 0 {
		i = (i + 1) & mask
	}
	slots[i].value = v
	slots[i].num.Store(num)
}

// all gives every integer with its number, in no order.
func (s *intShard) all() iter.Seq2[int64, int32] {
	return func(yield func(int64, int32) bool) {
		p := s.slots.Load()
		if p == nil {
			return
		}
		for i := range *p {
			slot := &(*p)[i]
			if num := slot.num.Load(); num != 0 && !yield(slot.value, num-1) {
				return
			}
		}
	}
}

// renumber gives every integer the number f(number). The dictionary must be the caller's.
func (s *intShard) renumber(f func(num int32) int32) {
	p := s.slots.Load()
	if p == nil {
		return
	}
	for i := range *p {
		if slot := &(*p)[i]; slot.num.Load() != 0 {
			slot.num.Store(f(slot.num.Load()-1) + 1)
		}
	}
}

// touchInts loads the home slots of hashes all at once, so that find doesn't wait for one after the other.
//
//go:noinline
func touchInts(shards []intShard, hashes []uint64) (sum int32) {
	for _, hash := range hashes {
		if p := shards[hash>>(64-shardBits)].slots.Load(); p != nil {
			sum += (*p)[hash&uint64(len(*p)-1)].num.Load()
		}
	}
	return sum
}

// byteShard is the like of intShard for bytes.
type byteShard struct {
	view   atomic.Pointer[byteView]
	mu     sync.Mutex // for all below, and for writing what view shows
	used   int
	filled int // bytes of the last chunk
	_      [cacheLine - 32]byte
}

// byteView is what find looks at. Slots and chunks are only added to; where they have to move there is a new view.
type byteView struct {
	slots  []byteSlot // a power of two of them, 3/4 full at most
	shift  uint       // by which a tag gives its home
	chunks [][]byte   // ids, each behind its length as a uvarint
}

// byteSlot is free while tag is 0.
type byteSlot struct {
	tag   atomic.Uint32 // lower half of the hash, made odd; written behind the others
	num   int32
	start uint32 // chunk<<chunkBits | offset
}

// Chunks have up to 64 KiB, or hold one longer id.
const (
	chunkBits  = 16
	firstChunk = 256
)

func tagOf(hash uint64) uint32 { return uint32(hash) | 1 }

// id returns the id at start, if the view shows it.
func (v *byteView) id(start uint32) (id []byte, ok bool) {
	if int(start>>chunkBits) >= len(v.chunks) {
		return nil, false
	}
	rest := v.chunks[start>>chunkBits][start&(1<<chunkBits-1):]
	if n := uint(rest[0]); n < 0x80 {
		return rest[1 : 1+n], true
	}
	n, size := binary.Uvarint(rest)
	return rest[size : size+int(n)], true
}

// find returns the number of id, or noNumber.
func (s *byteShard) find(id []byte, hash uint64) int32 {
	v := s.view.Load()
	if v == nil {
		return noNumber
	}
	tag, mask := tagOf(hash), uint32(len(v.slots)-1)
	for i := tag >> v.shift; ; i = (i + 1) & mask {
		slot := &v.slots[i]
		switch slot.tag.Load() {
		case 0:
			return noNumber
		case tag:
			if got, ok := v.id(slot.start); ok && string(got) == string(id) {
				return slot.num
			}
		}
	}
}

// add returns the number of id, a new one of d if it isn't there, or tooMany.
func (s *byteShard) add(d *dict, id []byte, hash uint64) int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	num := s.find(id, hash)
	if num >= 0 {
		return num
	}
	if num = d.newNumber(); num >= 0 && !s.insert(id, hash, num) {
		num = tooMany
	}
	return num
}

// insert adds id, which isn't there. The caller holds mu or has the dictionary for itself. It returns false if the
// shard is full: it has up to 65536 chunks.
func (s *byteShard) insert(id []byte, hash uint64, num int32) bool {
	v := s.view.Load()
	if v == nil {
		v = &byteView{slots: make([]byteSlot, leastSlots), shift: 32 - log2(leastSlots)}
		s.view.Store(v)
	}
	if 4*(s.used+1) > 3*len(v.slots) {
		grown := &byteView{slots: make([]byteSlot, 2*len(v.slots)), shift: v.shift - 1, chunks: v.chunks}
		for i := range v.slots {
			if old := &v.slots[i]; old.tag.Load() != 0 {
				grown.put(old.tag.Load(), old.num, old.start)
			}
		}
		v = grown
		s.view.Store(v)
	}
	var length [binary.MaxVarintLen32]byte
	head := binary.PutUvarint(length[:], uint64(len(id)))
	last := len(v.chunks) - 1
	if last < 0 || len(v.chunks[last])-s.filled < head+len(id) {
		size := firstChunk
		if last >= 0 {
			size = min(2*len(v.chunks[last]), 1<<chunkBits)
		}
		if last++; last == 1<<(32-chunkBits) {
			return false
		}
		// The longer list may share memory with the old one, where it was not used.
		v = &byteView{slots: v.slots, shift: v.shift, chunks: append(v.chunks, make([]byte, max(size, head+len(id))))}
		s.view.Store(v)
		s.filled = 0
	}
	chunk := v.chunks[last]
	start := uint32(last)<<chunkBits | uint32(s.filled)
	s.filled += copy(chunk[s.filled:], length[:head])
	s.filled += copy(chunk[s.filled:], id)
	v.put(tagOf(hash), num, start)
	s.used++
	return true
}

// put fills the first free slot for tag.
func (v *byteView) put(tag uint32, num int32, start uint32) {
	mask := uint32(len(v.slots) - 1)
	i := tag >> v.shift
	for v.slots[i].tag.Load() != 0 {
		i = (i + 1) & mask
	}
	slot := &v.slots[i]
	slot.num, slot.start = num, start
	slot.tag.Store(tag)
}

func log2(n int) uint { return uint(bits.Len(uint(n)) - 1) }

// all gives every id with its number, in no order. The dictionary must be the caller's.
func (s *byteShard) all() iter.Seq2[[]byte, int32] {
	return func(yield func([]byte, int32) bool) {
		v := s.view.Load()
		if v == nil {
			return
		}
		for i := range v.slots {
			if slot := &v.slots[i]; slot.tag.Load() != 0 {
				if id, _ := v.id(slot.start); !yield(id, slot.num) {
					return
				}
			}
		}
	}
}

// renumber gives every id the number f(number). The dictionary must be the caller's.
func (s *byteShard) renumber(f func(num int32) int32) {
	v := s.view.Load()
	if v == nil {
		return
	}
	for i := range v.slots {
		if slot := &v.slots[i]; slot.tag.Load() != 0 {
			slot.num = f(slot.num)
		}
	}
}

// touchBytes is touchInts for bytes: the home slots, and then the ids they hold.
//
//go:noinline
func touchBytes(shards []byteShard, hashes []uint64) (sum uint32) {
	for _, hash := range hashes {
		if v := shards[hash>>(64-shardBits)].view.Load(); v != nil {
			sum += v.slots[tagOf(hash)>>v.shift].tag.Load()
		}
	}
	for _, hash := range hashes {
		if v := shards[hash>>(64-shardBits)].view.Load(); v != nil {
			if slot := &v.slots[tagOf(hash)>>v.shift]; slot.tag.Load() != 0 {
				if id, ok := v.id(slot.start); ok && len(id) > 0 {
					sum += uint32(id[0])
				}
			}
		}
	}
	return sum
}
