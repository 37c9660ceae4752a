package ingest

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/prelift/prelift/snapshot"
)

// Codes returned in place of a number.
const (
	noNumber  = -1 // the dictionary is closed and the id isn't in it
	tooMany   = -2 // the dictionary is full
	maxNumber = math.MaxInt32
	batchIDs  = 64 // ids looked up together, so that their cache misses overlap
)

// dict numbers ids. It starts with integers and turns to bytes, keeping all numbers, at the first id that is no
// canonical integer. Ids are never Go objects: integers take 16 bytes in a table, unless they are dense, bytes lie
// one behind the other and take 12 in a table.
//
// Numbers run from 0 in order of first sight while one goroutine adds ids. After direct several may, with addInts and
// addSpans, and numbers are in no order and have gaps, until settle. Every other method needs the dictionary for
// itself. A closed one may be read by anyone.
type dict struct {
	closed  bool        // no new ids
	isBytes atomic.Bool // integers never come back
	turning sync.RWMutex
	next    atomic.Int64 // number of the next new id
	limit   int64        // numbers are below it

	// present has a bit for each of the integers that are their own numbers, as direct made them; else nil.
	present []uint64
	gaps    bool // ids have been taken over whose numbers have gaps

	// Integers. Small ones are in dense (number+1, 0 = absent), the rest in ints.
	dense []int32
	ints  []intShard
	salt  uint64

	bytes  []byteShard
	memory slabs // of bytes
	seed   maphash.Seed
}

// Ids are in one of numShards tables by the upper bits of their hash: enough that goroutines which add seldom meet,
// and that a table is moved quickly when it grows.
const (
	shardBits = 6
	numShards = 1 << shardBits
)

func newDict(asBytes bool) *dict {
	d := &dict{salt: rand.Uint64(), seed: maphash.MakeSeed(), limit: maxNumber}
	if asBytes {
		d.toBytes()
	}
	return d
}

// len returns the number of ids, whose numbers must have no gaps.
func (d *dict) len() int { return int(d.next.Load()) }

// direct makes the integers below limit, a multiple of 64, their own numbers, in an empty dictionary of integers.
// Ids may then be added by several goroutines at a time.
func (d *dict) direct(limit int64) {
	d.present = make([]uint64, limit/64)
	d.ints = make([]intShard, numShards)
	d.next.Store(limit)
}

// add returns the number of id, a new one if need be, or a code.
func (d *dict) add(id []byte) int32 {
	if !d.isBytes.Load() {
		if v, ok := snapshot.CanonicalInt(id); ok {
			return d.addInt(v)
		}
		if d.closed {
			return noNumber
		}
		d.toBytes()
	}
	return d.addBytes(id, d.hash(id))
}

// newNumber returns the next number, or tooMany.
func (d *dict) newNumber() int32 {
	if n := d.next.Add(1) - 1; n < d.limit {
		return int32(n)
	}
	return tooMany
}

// fullReason says why newNumber gave tooMany.
func (d *dict) fullReason() string {
	if d.present != nil {
		return fmt.Sprintf("at most %d integers of %d and more can be numbered", d.limit-64*int64(len(d.present)), 64*len(d.present))
	}
	return fmt.Sprintf("at most %d can be numbered", d.limit)
}

// addInt is add for a canonical integer.
func (d *dict) addInt(v int64) int32 {
	var num [1]int32
	if d.isBytes.Load() {
		var buf [20]byte
		id := strconv.AppendInt(buf[:0], v, 10)
		return d.addBytes(id, d.hash(id))
	}
	d.addInts([]int64{v}, num[:])
	return num[0]
}

// holdInts keeps integers from turning to bytes until releaseInts. It returns false, and doesn't, if they have.
func (d *dict) holdInts() bool {
	d.turning.RLock()
	if d.isBytes.Load() {
		d.turning.RUnlock()
		return false
	}
	return true
}

func (d *dict) releaseInts() { d.turning.RUnlock() }

// addInts puts the numbers of values into nums and stops at the first code; it returns how many it did. The
// dictionary must be one of integers, held by holdInts where other goroutines add.
func (d *dict) addInts(values []int64, nums []int32) int {
	const part = 4 * batchIDs
	var rest [part]uint16 // places of those that aren't found at once
	for at := 0; at < len(values); at += part {
		values, nums, left := values[at:min(at+part, len(values))], nums[at:], rest[:0]
		nums = nums[:len(values)]
		if present := d.present; present != nil {
			for i, v := range values {
				w := uint64(v) >> 6
				if w >= uint64(len(present)) {
					left = append(left, uint16(i))
					continue
				}
				if bit := uint64(1) << (v & 63); atomic.LoadUint64(&present[w])&bit == 0 {
					atomic.OrUint64(&present[w], bit)
				}
				nums[i] = int32(v)
			}
		} else {
			dense := d.dense
			for i, v := range values {
				if uint64(v) >= uint64(len(dense)) || dense[v] == 0 {
					left = append(left, uint16(i))
					continue
				}
				nums[i] = dense[v] - 1
			}
		}
		if done := d.addRest(values, nums, left); done < len(values) {
			return at + done
		}
	}
	return len(values)
}

// addRest is addInts for those of values that left names.
func (d *dict) addRest(values []int64, nums []int32, left []uint16) int {
	var hashes [batchIDs]uint64
	for len(left) > 0 {
		part := left[:min(batchIDs, len(left))]
		left = left[len(part):]
		for k, i := range part {
			hashes[k] = d.hashInt(values[i])
		}
		if d.ints != nil {
			touchInts(d.ints, hashes[:len(part)])
		}
		for k, i := range part {
			if nums[i] = d.addHashedInt(values[i], hashes[k]); nums[i] < 0 {
				return int(i)
			}
		}
	}
	return len(values)
}

// addHashedInt adds an integer that wasn't found in present or dense.
func (d *dict) addHashedInt(v int64, hash uint64) int32 {
	if d.ints != nil {
		if num := d.ints[hash>>(64-shardBits)].find(v, hash); num >= 0 {
			return num
		}
	}
	if d.closed {
		return noNumber
	}
	if d.present == nil {
		if n := d.next.Load(); v >= 0 && v < 4*n+1<<16 {
			return d.addDense(v)
		}
	}
	if d.ints == nil {
		d.ints = make([]intShard, numShards)
	}
	return d.ints[hash>>(64-shardBits)].add(d, v, hash)
}

// addDense adds a small integer to dense.
func (d *dict) addDense(v int64) int32 {
	if v < int64(len(d.dense)) && d.dense[v] != 0 {
		return d.dense[v] - 1 // an earlier one of the same batch
	}
	num := d.newNumber()
	if num < 0 {
		return num
	}
	if v >= int64(len(d.dense)) {
		d.dense = append(d.dense, make([]int32, max(v+1, 2*int64(len(d.dense)))-int64(len(d.dense)))...)
	}
	d.dense[v] = num + 1
	return num
}

// hashInt is splitmix64's finaliser (Steele et al. 2014) over the salted value.
func (d *dict) hashInt(v int64) uint64 {
	x := uint64(v) ^ d.salt
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// addRange makes the ids 0..n-1 of an empty dictionary.
func (d *dict) addRange(n int) {
	if d.isBytes.Load() {
		for i := range n {
			d.addInt(int64(i))
		}
		return
	}
	d.dense = make([]int32, n)
	for i := range n {
		d.dense[i] = int32(i) + 1
	}
	d.next.Store(int64(n))
}

// eachInt calls f with every integer and its number.
func (d *dict) eachInt(f func(v int64, num int32)) {
	for w, word := range d.present {
		for ; word != 0; word &= word - 1 {
			v := int64(w)<<6 + int64(bits.TrailingZeros64(word))
			f(v, int32(v))
		}
	}
	for v, num := range d.dense {
		if num != 0 {
			f(int64(v), num-1)
		}
	}
	for i := range d.ints {
		for v, num := range d.ints[i].all() {
			f(v, num)
		}
	}
}

// eachBytes calls f with every id and its number, in a dictionary of bytes.
func (d *dict) eachBytes(f func(id []byte, num int32)) {
	for i := range d.bytes {
		for _, entry := range d.bytes[i].entries() {
			f(idOf(entry), numOf(entry))
		}
	}
}

// toBytes turns integers into bytes, keeping their numbers.
func (d *dict) toBytes() {
	d.turning.Lock()
	defer d.turning.Unlock()
	if d.isBytes.Load() {
		return
	}
	d.bytes = make([]byteShard, numShards)
	if d.present != nil {
		none := int(d.next.Load()) == 64*len(d.present) && !slices.ContainsFunc(d.present, func(w uint64) bool { return w != 0 })
		if d.gaps = !none; none {
			d.next.Store(0)
		}
	}
	var buf [20]byte
	d.eachInt(func(v int64, num int32) {
		id := strconv.AppendInt(buf[:0], v, 10)
		hash := d.hash(id)
		d.bytes[hash>>(64-shardBits)].insert(d, id, hash, num)
	})
	d.present, d.dense, d.ints = nil, nil, nil
	d.isBytes.Store(true)
}

func (d *dict) hash(id []byte) uint64 { return maphash.Bytes(d.seed, id) }

// addBytes is add for bytes whose hash is known.
func (d *dict) addBytes(id []byte, hash uint64) int32 {
	s := &d.bytes[hash>>(64-shardBits)]
	if num := s.find(id, hash); num >= 0 {
		return num
	}
	if d.closed {
		return noNumber
	}
	return s.add(d, id, hash)
}

// addSpans puts the numbers of the ids text[place>>lengthBits:][:length] into nums and stops at the first code; it
// returns how many it did.
func (d *dict) addSpans(text []byte, places []uint64, nums []int32) int {
	done := 0
	if !d.isBytes.Load() {
		var ended bool
		if done, ended = d.addIntSpans(text, places, nums); ended {
			return done
		}
		d.toBytes()
	}
	var hashes [batchIDs]uint64
	var entries [batchIDs][]byte
	for at := done; at < len(places); at += batchIDs {
		part := places[at:min(at+batchIDs, len(places))]
		for i, p := range part {
			hashes[i] = d.hash(unpack(text, p))
		}
		findBytes(d.bytes, hashes[:len(part)], entries[:])
		for i, p := range part {
			id := unpack(text, p)
			if entry := entries[i]; entry != nil && string(idOf(entry)) == string(id) {
				nums[at+i] = numOf(entry)
				continue
			}
			if nums[at+i] = d.addBytes(id, hashes[i]); nums[at+i] < 0 {
				return at + i
			}
		}
	}
	return len(places)
}

// addIntSpans is addSpans for integers. It stops, with ended false, where the dictionary has turned to bytes or must.
func (d *dict) addIntSpans(text []byte, places []uint64, nums []int32) (done int, ended bool) {
	if !d.holdInts() {
		return 0, false
	}
	defer d.releaseInts()
	var values [batchIDs]int64
	for at := 0; at < len(places); {
		n := 0
		for n < batchIDs && at+n < len(places) {
			v, ok := snapshot.CanonicalInt(unpack(text, places[at+n]))
			if !ok {
				break
			}
			values[n] = v
			n++
		}
		if done := d.addInts(values[:n], nums[at:]); done < n {
			return at + done, true
		}
		if at += n; at < len(places) && n < batchIDs {
			if d.closed {
				nums[at] = noNumber
			}
			return at, d.closed
		}
	}
	return len(places), true
}

// lengthBits is how many bits of a packed span are its length: ids have at most 1<<20 bytes.
const lengthBits = 21

func pack(s span) uint64 { return uint64(s.off)<<lengthBits | uint64(s.end-s.off) }

func unpack(text []byte, place uint64) []byte {
	off := place >> lengthBits
	return text[off : off+place&(1<<lengthBits-1)]
}

// text returns the id of a number. It looks at all: for error messages.
func (d *dict) text(num int32) (id string) {
	if d.isBytes.Load() {
		d.eachBytes(func(text []byte, n int32) {
			if n == num {
				id = string(text)
			}
		})
		return id
	}
	d.eachInt(func(v int64, n int32) {
		if n == num {
			id = strconv.FormatInt(v, 10)
		}
	})
	return id
}

// settle makes numbers run from 0 without gaps, in no order, so that the dictionary can go on in one goroutine. It
// returns the new number of each old one, nil where they stay.
func (d *dict) settle() []int32 {
	switch {
	case d.present != nil:
		return d.settleInts()
	case d.gaps:
		return d.settleBytes()
	}
	return nil
}

// settleInts moves the integers of present to dense.
func (d *dict) settleInts() []int32 {
	direct := 64 * len(d.present)
	hashed := int(d.next.Load()) - direct
	last := len(d.present) - 1
	for last >= 0 && d.present[last] == 0 {
		last--
	}
	d.dense = make([]int32, 64*(last+1))
	numbers := make([]int32, 64*(last+1), 64*(last+1)+hashed)
	if hashed > 0 {
		numbers = make([]int32, direct+hashed)
	}
	count := int32(0)
	for w, word := range d.present[:last+1] {
		for v := w << 6; v < (w+1)<<6; v++ {
			if word>>(v&63)&1 == 1 {
				count++
				d.dense[v] = count
			}
			numbers[v] = max(count-1, 0) // of one that isn't there too: numbers ascend by steps of 1 then, which an EdgeList likes
		}
	}
	d.present = nil
	for i := range hashed {
		numbers[direct+i] = count + int32(i)
	}
	for i := range d.ints {
		d.ints[i].renumber(func(num int32) int32 { return numbers[num] })
	}
	d.next.Store(int64(count) + int64(hashed))
	return numbers
}

// settleBytes numbers all ids anew.
func (d *dict) settleBytes() []int32 {
	numbers := make([]int32, d.next.Load())
	count := int32(0)
	for i := range d.bytes {
		for _, entry := range d.bytes[i].entries() {
			numbers[numOf(entry)] = count
			renumberEntry(entry, count)
			count++
		}
	}
	d.gaps = false
	d.next.Store(int64(count))
	return numbers
}

// sorted returns the ids in order, and for each number of d the place of its id in that order. d, which has no gaps,
// is used up. text forces the collation bytes.
func (d *dict) sorted(text bool, threads int) (snapshot.IDs, []int32) {
	if d.isBytes.Load() && !text {
		d.toInts()
	}
	if text {
		d.toBytes()
	}
	if d.isBytes.Load() {
		return d.sortedBytes(threads)
	}
	return d.sortedInts(threads)
}

// toInts turns a byte dictionary into one of integers, if all its ids are canonical ones. It can only be sorted then.
func (d *dict) toInts() {
	for i := range d.bytes {
		for _, entry := range d.bytes[i].entries() {
			if _, ok := snapshot.CanonicalInt(idOf(entry)); !ok {
				return
			}
		}
	}
	d.ints = make([]intShard, numShards)
	d.eachBytes(func(id []byte, num int32) {
		v, _ := snapshot.CanonicalInt(id)
		hash := d.hashInt(v)
		d.ints[hash>>(64-shardBits)].insert(d, v, hash, num)
	})
	d.bytes = nil
	d.isBytes.Store(false)
}
