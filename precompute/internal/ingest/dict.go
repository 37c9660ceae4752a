package ingest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/prelift/prelift/snapshot"
)

// Codes returned in place of a number.
const (
	noNumber  = -1 // the dictionary is closed and the id isn't in it
	tooMany   = -2 // the dictionary is full
	maxNumber = math.MaxInt32
	batchIDs  = 64 // ids looked up together, so that their cache misses overlap
)

// dict numbers ids from 0 in order of first sight. It starts with integers and turns to bytes, keeping all
// numbers, at the first id that is no canonical integer. Not safe for concurrent use. Ids are never Go objects:
// integers are 8 bytes each and 12 in a table, unless they are dense, bytes lie in one arena with an 8-byte offset
// and 16 bytes in a table.
type dict struct {
	closed  bool // no new ids
	isBytes bool

	// Integers. Small ones are in dense (number+1, 0 = absent), the rest in the open-addressing table keys, nums.
	values []int64
	dense  []int32
	keys   []int64
	nums   []int32 // number+1, 0 = free
	inHash int
	salt   uint64

	// Bytes. Id i is arena[offsets[i]:offsets[i+1]].
	arena   []byte
	offsets []int64
	slots   []slot
	seed    maphash.Seed

	touched uint64 // keeps the loads of a batch alive
}

// slot is an entry of the byte table; tag 0 is free.
type slot struct {
	place uint64 // offset<<21 | length; length <= 1<<20
	num   int32
	tag   uint32 // upper half of the hash, made odd
}

const lengthBits = 21

func newDict(asBytes bool) *dict {
	d := &dict{salt: rand.Uint64(), seed: maphash.MakeSeed()}
	if asBytes {
		d.toBytes()
	}
	return d
}

func (d *dict) len() int {
	if d.isBytes {
		return len(d.offsets) - 1
	}
	return len(d.values)
}

// add returns the number of id, a new one if need be, or a code.
func (d *dict) add(id []byte) int32 {
	if !d.isBytes {
		if v, ok := canonicalInt(id); ok {
			return d.addInt(v)
		}
		if d.closed {
			return noNumber
		}
		d.toBytes()
	}
	return d.addHashed(id, d.hash(id))
}

// addInt is add for a canonical integer.
func (d *dict) addInt(v int64) int32 {
	if d.isBytes {
		var buf [20]byte
		id := strconv.AppendInt(buf[:0], v, 10)
		return d.addHashed(id, d.hash(id))
	}
	if uint64(v) < uint64(len(d.dense)) && d.dense[v] != 0 {
		return d.dense[v] - 1
	}
	if d.inHash > 0 {
		for i := d.slotInt(v); d.nums[i] != 0; i = (i + 1) & uint64(len(d.keys)-1) {
			if d.keys[i] == v {
				return d.nums[i] - 1
			}
		}
	}
	if d.closed {
		return noNumber
	}
	n := len(d.values)
	if n == maxNumber {
		return tooMany
	}
	d.values = append(d.values, v)
	if v >= 0 && v < 4*int64(n)+1<<16 {
		if v >= int64(len(d.dense)) {
			d.dense = append(d.dense, make([]int32, max(v+1, 2*int64(len(d.dense)))-int64(len(d.dense)))...)
		}
		d.dense[v] = int32(n) + 1
		return int32(n)
	}
	if 4*(d.inHash+1) > 3*len(d.keys) {
		d.growInts()
	}
	d.putInt(v, int32(n))
	d.inHash++
	return int32(n)
}

// slotInt is the home of v in keys: splitmix64's finaliser (Steele et al. 2014) over the salted value.
func (d *dict) slotInt(v int64) uint64 {
	x := uint64(v) ^ d.salt
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return (x ^ x>>31) & uint64(len(d.keys)-1)
}

func (d *dict) putInt(v int64, num int32) {
	i := d.slotInt(v)
	for d.nums[i] != 0 {
		i = (i + 1) & uint64(len(d.keys)-1)
	}
	d.keys[i], d.nums[i] = v, num+1
}

func (d *dict) growInts() {
	keys, nums := d.keys, d.nums
	size := max(1024, 2*len(keys))
	d.keys, d.nums = make([]int64, size), make([]int32, size)
	for i, num := range nums {
		if num != 0 {
			d.putInt(keys[i], num-1)
		}
	}
}

// addInts puts the numbers of values into nums and stops at the first code; it returns how many it did.
func (d *dict) addInts(values []int64, nums []int32) int {
	for at := 0; at < len(values); at += batchIDs {
		part := values[at:min(at+batchIDs, len(values))]
		if d.inHash > 1<<16 {
			var sum uint64
			for _, v := range part {
				sum += uint64(d.nums[d.slotInt(v)])
			}
			d.touched += sum
		}
		for i, v := range part {
			if nums[at+i] = d.addInt(v); nums[at+i] < 0 {
				return at + i
			}
		}
	}
	return len(values)
}

// addRange makes the ids 0..n-1 of an empty dictionary.
func (d *dict) addRange(n int) {
	if d.isBytes {
		for i := range n {
			d.addInt(int64(i))
		}
		return
	}
	d.values, d.dense = make([]int64, n), make([]int32, n)
	for i := range n {
		d.values[i], d.dense[i] = int64(i), int32(i)+1
	}
}

// toBytes turns integers into bytes, keeping their numbers.
func (d *dict) toBytes() {
	values := d.values
	d.isBytes = true
	d.values, d.dense, d.keys, d.nums, d.inHash = nil, nil, nil, nil, 0
	d.offsets = make([]int64, 1, len(values)+1)
	var buf [20]byte
	for _, v := range values {
		id := strconv.AppendInt(buf[:0], v, 10)
		d.addNew(id, d.hash(id))
	}
}

func (d *dict) hash(id []byte) uint64 { return maphash.Bytes(d.seed, id) }

// addHashed is add for bytes whose hash is known.
func (d *dict) addHashed(id []byte, hash uint64) int32 {
	if len(d.slots) > 0 {
		mask, tag := uint64(len(d.slots)-1), uint32(hash>>32)|1
		for i := hash & mask; d.slots[i].tag != 0; i = (i + 1) & mask {
			if s := &d.slots[i]; s.tag == tag {
				off, length := s.place>>lengthBits, s.place&(1<<lengthBits-1)
				if bytes.Equal(d.arena[off:off+length], id) {
					return s.num
				}
			}
		}
	}
	if d.closed {
		return noNumber
	}
	return d.addNew(id, hash)
}

// addNew adds an id that isn't there yet.
func (d *dict) addNew(id []byte, hash uint64) int32 {
	n := d.len()
	if n == maxNumber {
		return tooMany
	}
	if 4*(n+1) > 3*len(d.slots) {
		d.growBytes()
	}
	d.put(slot{uint64(len(d.arena))<<lengthBits | uint64(len(id)), int32(n), uint32(hash>>32) | 1}, hash)
	d.arena = append(d.arena, id...)
	d.offsets = append(d.offsets, int64(len(d.arena)))
	return int32(n)
}

func (d *dict) put(s slot, hash uint64) {
	mask := uint64(len(d.slots) - 1)
	i := hash & mask
	for d.slots[i].tag != 0 {
		i = (i + 1) & mask
	}
	d.slots[i] = s
}

func (d *dict) growBytes() {
	old := d.slots
	d.slots = make([]slot, max(1024, 2*len(old)))
	for _, s := range old {
		if s.tag != 0 {
			d.put(s, d.hash(d.id(s.num)))
		}
	}
}

// id returns the bytes of id i of a byte dictionary; valid until the next addition.
func (d *dict) id(i int32) []byte { return d.arena[d.offsets[i]:d.offsets[i+1]] }

// text returns id i as text.
func (d *dict) text(i int32) string {
	if d.isBytes {
		return string(d.id(i))
	}
	return strconv.FormatInt(d.values[i], 10)
}

// addSpans puts the numbers of the ids text[place>>lengthBits:][:length] into nums and stops at the first code; it
// returns how many it did.
func (d *dict) addSpans(text []byte, places []uint64, nums []int32) int {
	var hashes [batchIDs]uint64
	for at := 0; at < len(places); at += batchIDs {
		part := places[at:min(at+batchIDs, len(places))]
		if !d.isBytes {
			if n := d.addSpansSlowly(text, part, nums[at:]); n < len(part) {
				return at + n
			}
			continue
		}
		for i, p := range part {
			hashes[i] = d.hash(unpack(text, p))
		}
		if len(d.slots) > 1<<14 {
			var sum uint64
			mask := uint64(len(d.slots) - 1)
			for i := range part {
				sum += d.slots[hashes[i]&mask].place & 1
			}
			for i := range part {
				if s := &d.slots[hashes[i]&mask]; s.tag != 0 {
					sum += uint64(d.arena[s.place>>lengthBits])
				}
			}
			d.touched += sum
		}
		for i, p := range part {
			if nums[at+i] = d.addHashed(unpack(text, p), hashes[i]); nums[at+i] < 0 {
				return at + i
			}
		}
	}
	return len(places)
}

func (d *dict) addSpansSlowly(text []byte, places []uint64, nums []int32) int {
	for i, p := range places {
		if nums[i] = d.add(unpack(text, p)); nums[i] < 0 {
			return i
		}
	}
	return len(places)
}

func pack(s span) uint64 { return uint64(s.off)<<lengthBits | uint64(s.end-s.off) }

func unpack(text []byte, place uint64) []byte {
	off := place >> lengthBits
	return text[off : off+place&(1<<lengthBits-1)]
}

// sorted returns the ids in order, and for each number of d the place of its id in that order. d is used up. text
// forces the collation bytes.
func (d *dict) sorted(text bool) (snapshot.IDs, []int32) {
	if d.isBytes && !text && d.allInts() {
		d.toInts()
	}
	if !d.isBytes && text {
		d.toBytes()
	}
	if d.isBytes {
		return d.sortedBytes()
	}
	return d.sortedInts()
}

// allInts reports whether a byte dictionary holds canonical integers only.
func (d *dict) allInts() bool {
	for i := range d.len() {
		if _, ok := canonicalInt(d.id(int32(i))); !ok {
			return false
		}
	}
	return true
}

// toInts turns a byte dictionary of canonical integers into values; it can only be sorted then.
func (d *dict) toInts() {
	d.values = make([]int64, d.len())
	for i := range d.values {
		d.values[i], _ = canonicalInt(d.id(int32(i)))
	}
	d.isBytes, d.arena, d.offsets, d.slots = false, nil, nil, nil
}

func (d *dict) sortedInts() (snapshot.IDs, []int32) {
	n := len(d.values)
	ids := snapshot.IDs{Offsets: make([]int64, 1, n+1), Collation: snapshot.CollationInteger}
	place := make([]int32, n)
	at := int32(0)
	put := func(v int64, num int32) {
		ids.Bytes = strconv.AppendInt(ids.Bytes, v, 10)
		ids.Offsets = append(ids.Offsets, int64(len(ids.Bytes)))
		place[num] = at
		at++
	}
	if d.inHash == 0 && len(d.dense) > 0 {
		for v, num := range d.dense {
			if num != 0 {
				put(int64(v), num-1)
			}
		}
		return ids, place
	}
	type entry struct {
		value int64
		num   int32
	}
	order := make([]entry, n)
	for i, v := range d.values {
		order[i] = entry{v, int32(i)}
	}
	slices.SortFunc(order, func(a, b entry) int { return cmp.Compare(a.value, b.value) })
	for _, e := range order {
		put(e.value, e.num)
	}
	return ids, place
}

func (d *dict) sortedBytes() (snapshot.IDs, []int32) {
	type entry struct {
		prefix uint64 // first 8 bytes, zero-padded, big-endian: decides most comparisons
		num    int32
	}
	n := d.len()
	order := make([]entry, n)
	for i := range order {
		var head [8]byte
		copy(head[:], d.id(int32(i)))
		order[i] = entry{binary.BigEndian.Uint64(head[:]), int32(i)}
	}
	slices.SortFunc(order, func(a, b entry) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return bytes.Compare(d.id(a.num), d.id(b.num))
	})
	ids := snapshot.IDs{Offsets: make([]int64, 1, n+1), Bytes: make([]byte, 0, len(d.arena)), Collation: snapshot.CollationBytes}
	place := make([]int32, n)
	for i, e := range order {
		ids.Bytes = append(ids.Bytes, d.id(e.num)...)
		ids.Offsets = append(ids.Offsets, int64(len(ids.Bytes)))
		place[e.num] = int32(i)
	}
	return ids, place
}
