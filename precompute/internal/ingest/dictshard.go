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
	filled []int // bytes of each chunk
	_      [cacheLine - 48]byte
}

// byteView is what find looks at. Slots and chunks are only added to; where they have to move there is a new view.
type byteView struct {
	slots  []byteSlot // a power of two of them, 3/4 full at most
	shift  uint       // by which a tag gives its home
	chunks [][]byte
}

// byteSlot is free while tag is 0.
type byteSlot struct {
	tag   atomic.Uint32 // lower half of the hash, made odd; written behind start
	start uint32        // of the entry: chunk<<chunkBits | offset
}

// Chunks have up to 64 KiB, or hold one longer entry. An entry is the id's length in one byte, or longID and the length
// in four, then the number in four, then the id. Small ones don't cross the end of a cache line where that wastes little:
// what is left of the line then starts with skipLine.
const (
	chunkBits  = 16
	firstChunk = 256
	longID     = 0xfe
	skipLine   = 0xff
)

func tagOf(hash uint64) uint32 { return uint32(hash) | 1 }

// entry returns what starts with the entry at start, nil if the view doesn't show it.
func (v *byteView) entry(start uint32) []byte {
	if int(start>>chunkBits) >= len(v.chunks) {
		return nil
	}
	return v.chunks[start>>chunkBits][start&(1<<chunkBits-1):]
}

// numOf and idOf take an entry apart, whatever follows it.
func numOf(entry []byte) int32 {
	if entry[0] < longID {
		return int32(binary.LittleEndian.Uint32(entry[1:]))
	}
	return int32(binary.LittleEndian.Uint32(entry[5:]))
}

func idOf(entry []byte) []byte {
	if n := int(entry[0]); n < longID {
		return entry[5 : 5+n]
	}
	return entry[9 : 9+binary.LittleEndian.Uint32(entry[1:])]
}

// renumberEntry gives the id of an entry another number.
func renumberEntry(entry []byte, num int32) {
	at := 1
	if entry[0] == longID {
		at = 5
	}
	binary.LittleEndian.PutUint32(entry[at:], uint32(num))
}

// appendEntry adds an entry to a chunk.
func appendEntry(chunk, id []byte, num int32) []byte {
	if len(id) < longID {
		chunk = append(chunk, byte(len(id)))
	} else {
		chunk = binary.LittleEndian.AppendUint32(append(chunk, longID), uint32(len(id)))
	}
	chunk = binary.LittleEndian.AppendUint32(chunk, uint32(num))
	return append(chunk, id...)
}

// entrySize is what the entry of an id of n bytes takes.
func entrySize(n int) int {
	if n < longID {
		return 5 + n
	}
	return 9 + n
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
			if entry := v.entry(slot.start); entry != nil && string(idOf(entry)) == string(id) {
				return numOf(entry)
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
	if num = d.newNumber(); num >= 0 && !s.insert(d, id, hash, num) {
		num = tooMany
	}
	return num
}

// insert adds id, which isn't there. The caller holds mu or has the dictionary for itself. It returns false if the
// shard is full: it has up to 65536 chunks.
func (s *byteShard) insert(d *dict, id []byte, hash uint64, num int32) bool {
	v := s.view.Load()
	if v == nil {
		v = &byteView{slots: make([]byteSlot, leastSlots), shift: 32 - log2(leastSlots)}
		s.view.Store(v)
	}
	if 4*(s.used+1) > 3*len(v.slots) {
		grown := &byteView{slots: make([]byteSlot, 2*len(v.slots)), shift: v.shift - 1, chunks: v.chunks}
		for i := range v.slots {
			if old := &v.slots[i]; old.tag.Load() != 0 {
				grown.put(old.tag.Load(), old.start)
			}
		}
		v = grown
		s.view.Store(v)
	}
	size, last, at := entrySize(len(id)), len(v.chunks)-1, 0
	if last >= 0 {
		at = s.filled[last]
		if left := cacheLine - at%cacheLine; left < size && left <= size/4 {
			if at < len(v.chunks[last]) {
				v.chunks[last][at] = skipLine
			}
			at += left
		}
	}
	if last < 0 || at+size > len(v.chunks[last]) {
		length := firstChunk
		if last >= 0 {
			length = min(2*len(v.chunks[last]), 1<<chunkBits)
		}
		if last++; last == 1<<(32-chunkBits) {
			return false
		}
		// The longer list may share memory with the old one, where it was not used.
		v = &byteView{slots: v.slots, shift: v.shift, chunks: append(v.chunks, d.memory.take(max(length, size)))}
		s.view.Store(v)
		s.filled = append(s.filled, 0)
		at = 0
	}
	appendEntry(v.chunks[last][:at], id, num)
	s.filled[last] = at + size
	v.put(tagOf(hash), uint32(last)<<chunkBits|uint32(at))
	s.used++
	return true
}

// put fills the first free slot for tag.
func (v *byteView) put(tag, start uint32) {
	mask := uint32(len(v.slots) - 1)
	i := tag >> v.shift
	for v.slots[i].tag.Load() != 0 {
		i = (i + 1) & mask
	}
	v.slots[i].start = start
	v.slots[i].tag.Store(tag)
}

func log2(n int) uint { return uint(bits.Len(uint(n)) - 1) }

// entries gives the entries with what finds them, in the order they were added. The dictionary must be the caller's.
func (s *byteShard) entries() iter.Seq2[uint32, []byte] {
	return func(yield func(uint32, []byte) bool) {
		for k, filled := range s.filled {
			chunk := s.view.Load().chunks[k]
			for at := 0; at < filled; {
				if chunk[at] == skipLine {
					at += cacheLine - at%cacheLine
					continue
				}
				if !yield(uint32(k)<<chunkBits|uint32(at), chunk[at:]) {
					return
				}
				at += entrySize(len(idOf(chunk[at:])))
			}
		}
	}
}

// forget drops the slots: nothing is found or added any more.
func (s *byteShard) forget() {
	if v := s.view.Load(); v != nil {
		s.view.Store(&byteView{chunks: v.chunks})
	}
}

// findBytes looks for ids with these hashes all at once: first their home slots, then the entries that the slots name.
// It puts what may be the entry of an id into entries, nil where there is none to be seen; whether it is the id's own
// only its bytes tell.
func findBytes(shards []byteShard, hashes []uint64, entries [][]byte) (sum uint32) {
	for _, hash := range hashes {
		if v := shards[hash>>(64-shardBits)].view.Load(); v != nil {
			sum += v.slots[tagOf(hash)>>v.shift].tag.Load()
		}
	}
	for k, hash := range hashes {
		entries[k] = nil
		v := shards[hash>>(64-shardBits)].view.Load()
		if v == nil {
			continue
		}
		tag, mask := tagOf(hash), uint32(len(v.slots)-1)
		for i := tag >> v.shift; ; i = (i + 1) & mask {
			got := v.slots[i].tag.Load()
			if got == tag {
				if entry := v.entry(v.slots[i].start); entry != nil {
					entries[k] = entry
					sum += uint32(entry[0])
				}
				break
			}
			if got == 0 {
				break
			}
		}
	}
	return sum
}
