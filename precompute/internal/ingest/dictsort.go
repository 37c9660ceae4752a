package ingest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"

	"github.com/prelift/prelift/precompute/internal/hugemem"
	"github.com/prelift/prelift/snapshot"
)

// sortEntry is an id on the way to its place: a key that decides most comparisons, and what finds the id again.
type sortEntry struct{ key, ref uint64 }

// sortBuckets cuts the entries that each gives for shards 0..numShards-1 into buckets of ascending keys; the keys of
// one bucket are below those of the next, and equal keys are in one. Within a bucket entries are in no order. each is
// called several times for a shard, from several goroutines; it must give the same entries each time. Shards must be
// random samples of the entries.
func sortBuckets(total, threads int, each func(shard int, f func(key, ref uint64))) [][]sortEntry {
	const perBucket = 1 << 14 // 256 KiB, well within a core's own cache
	splitters := chooseSplitters(total/perBucket, each)
	counts := make([][]int, numShards) // then where each shard's next entry of a bucket goes
	parallelEach(numShards, threads, func(shard int) {
		counts[shard] = make([]int, len(splitters)+1)
		each(shard, func(key, _ uint64) { counts[shard][bucketOf(splitters, key)]++ })
	})
	entries := hugemem.Make[sortEntry](total)
	buckets := make([][]sortEntry, len(splitters)+1)
	at := 0
	for b := range buckets {
		from := at
		for shard := range counts {
			counts[shard][b], at = at, at+counts[shard][b]
		}
		buckets[b] = entries[from:at:at]
	}
	parallelEach(numShards, threads, func(shard int) {
		each(shard, func(key, ref uint64) {
			place := &counts[shard][bucketOf(splitters, key)]
			entries[*place] = sortEntry{key, ref}
			*place++
		})
	})
	return buckets
}

// chooseSplitters returns up to n ascending keys that cut the entries into parts of about the same size.
func chooseSplitters(n int, each func(shard int, f func(key, ref uint64))) []uint64 {
	n = min(n, 1<<12)
	const perSplitter = 16 // keys looked at
	var sample []uint64
	for shard := 0; shard < numShards && len(sample) < n*perSplitter; shard++ {
		each(shard, func(key, _ uint64) { sample = append(sample, key) })
	}
	slices.Sort(sample)
	var splitters []uint64
	for i := range n {
		splitters = append(splitters, sample[len(sample)*(i+1)/(n+1)])
	}
	return slices.Compact(splitters)
}

// bucketOf returns the number of splitters that are at most key.
func bucketOf(splitters []uint64, key uint64) int {
	low := 0
	for n := len(splitters); n > 0; {
		half := (n + 1) / 2
		if splitters[low+half-1] <= key {
			low += half
			n -= half
		} else {
			n = half - 1
		}
	}
	return low
}

// sortedInts is sorted for integers.
func (d *dict) sortedInts(threads int) (snapshot.IDs, []int32) {
	n := d.len()
	hashed := 0
	for i := range d.ints {
		hashed += d.ints[i].used
	}
	buckets := sortBuckets(hashed, threads, func(shard int, f func(key, ref uint64)) {
		if d.ints != nil {
			for v, num := range d.ints[shard].all() {
				f(uint64(v)^1<<63, uint64(num))
			}
		}
	})
	parallelEach(len(buckets), threads, func(i int) {
		slices.SortFunc(buckets[i], func(a, b sortEntry) int { return cmp.Compare(a.key, b.key) })
	})
	values, place := hugemem.Make[int64](n)[:0], hugemem.Make[int32](n)
	v := 0 // of dense, to come
	denseBelow := func(end int64) {
		for ; v < len(d.dense) && int64(v) < end; v++ {
			if num := d.dense[v]; num != 0 {
				place[num-1] = int32(len(values))
				values = append(values, int64(v))
			}
		}
	}
	for _, bucket := range buckets {
		for _, e := range bucket {
			value := int64(e.key ^ 1<<63)
			denseBelow(value)
			place[e.ref] = int32(len(values))
			values = append(values, value)
		}
	}
	denseBelow(int64(len(d.dense)))
	return idsOfInts(values, threads), place
}

// idsOfInts writes ascending integers as ids.
func idsOfInts(values []int64, threads int) snapshot.IDs {
	ids := snapshot.IDs{Offsets: hugemem.Make[int64](len(values) + 1), Collation: snapshot.CollationInteger}
	parts := 4 * threads
	cut := func(i int) int { return int(int64(len(values)) * int64(i) / int64(parts)) }
	ends := make([]int64, parts)
	parallelEach(parts, threads, func(i int) {
		for _, v := range values[cut(i):cut(i+1)] {
			ends[i] += int64(decimalLen(v))
		}
	})
	total := int64(0)
	for i, size := range ends {
		ends[i] = total
		total += size
	}
	ids.Bytes = hugemem.Make[byte](int(total))
	parallelEach(parts, threads, func(i int) {
		at := ends[i]
		for k, v := range values[cut(i):cut(i+1)] {
			at = int64(len(strconv.AppendInt(ids.Bytes[:at], v, 10)))
			ids.Offsets[cut(i)+k+1] = at
		}
	})
	return ids
}

// decimalLen returns how many bytes v takes in decimal.
func decimalLen(v int64) int {
	u, length := uint64(v), 0
	if v < 0 {
		u, length = -u, 1
	}
	tens := bits.Len64(u|1) * 1233 >> 12 // 1233/4096 is log10(2), near enough for 64 bits: tens is right or 1 too large
	if u|1 < powersOf10[tens] {
		tens--
	}
	return length + tens + 1
}

// powersOf10 are all that fit.
var powersOf10 = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// sortedBytes is sorted for bytes. Ids are compared 8 bytes at a time, from behind what all of them start with.
func (d *dict) sortedBytes(threads int) (snapshot.IDs, []int32) {
	n := d.len()
	for i := range d.bytes {
		d.bytes[i].forget()
	}
	common := d.commonPrefix(threads)
	buckets := sortBuckets(n, threads, func(shard int, f func(key, ref uint64)) {
		for start, entry := range d.bytes[shard].entries() {
			f(keyAt(idOf(entry), common), uint64(shard)<<32|uint64(start))
		}
	})
	entryOf := func(e sortEntry) []byte { return d.bytes[e.ref>>32].view.Load().entry(uint32(e.ref)) }
	sizes := make([]int64, len(buckets))
	parallelEach(len(buckets), threads, func(i int) {
		sortDeep(buckets[i], common, func(e sortEntry) []byte { return idOf(entryOf(e)) })
		for _, e := range buckets[i] {
			sizes[i] += int64(len(idOf(entryOf(e))))
		}
	})
	starts, counts := make([]int64, len(buckets)+1), make([]int, len(buckets)+1)
	for i := range buckets {
		starts[i+1], counts[i+1] = starts[i]+sizes[i], counts[i]+len(buckets[i])
	}
	ids := snapshot.IDs{Offsets: hugemem.Make[int64](n + 1), Bytes: hugemem.Make[byte](int(starts[len(buckets)])), Collation: snapshot.CollationBytes}
	place := hugemem.Make[int32](n)
	parallelEach(len(buckets), threads, func(i int) {
		at := starts[i]
		for k, e := range buckets[i] {
			entry := entryOf(e)
			at += int64(copy(ids.Bytes[at:], idOf(entry)))
			ids.Offsets[counts[i]+k+1] = at
			place[numOf(entry)] = int32(counts[i] + k)
		}
	})
	return ids, place
}

// keyAt returns 8 bytes of id from depth on, big-endian, zeros behind its end.
func keyAt(id []byte, depth int) uint64 {
	if len(id) >= depth+8 {
		return binary.BigEndian.Uint64(id[depth:])
	}
	var head [8]byte
	copy(head[:], id[min(depth, len(id)):])
	return binary.BigEndian.Uint64(head[:])
}

// commonPrefix returns how many bytes all ids start with.
func (d *dict) commonPrefix(threads int) int {
	var first []byte
	for i := range d.bytes {
		for _, entry := range d.bytes[i].entries() {
			first = idOf(entry)
			break
		}
	}
	common := make([]int, numShards)
	parallelEach(numShards, threads, func(shard int) {
		prefix := first
		for _, entry := range d.bytes[shard].entries() {
			id := idOf(entry)
			if !bytes.HasPrefix(id, prefix) {
				prefix = prefix[:prefixOf(prefix, id)]
			}
		}
		common[shard] = len(prefix)
	})
	return slices.Min(common)
}

// prefixOf returns how many bytes a and b start with alike.
func prefixOf(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// sortDeep sorts entries whose keys are those of their ids at depth. Where keys are equal the next 8 bytes decide.
func sortDeep(entries []sortEntry, depth int, idOf func(sortEntry) []byte) {
	const few = 16
	slices.SortFunc(entries, func(a, b sortEntry) int { return cmp.Compare(a.key, b.key) })
	for from := 0; from < len(entries); {
		to := from + 1
		for to < len(entries) && entries[to].key == entries[from].key {
			to++
		}
		if run := entries[from:to]; len(run) <= few {
			slices.SortFunc(run, func(a, b sortEntry) int { return bytes.Compare(idOf(a), idOf(b)) })
		} else {
			// Ids that end here are alike but for zeros at their end, so the shorter comes first; they all come before
			// the others, which go on.
			slices.SortFunc(run, func(a, b sortEntry) int {
				return cmp.Compare(min(len(idOf(a)), depth+9), min(len(idOf(b)), depth+9))
			})
			goOn, _ := slices.BinarySearchFunc(run, depth+9, func(e sortEntry, want int) int {
				return cmp.Compare(min(len(idOf(e)), depth+9), want)
			})
			for i := range run[goOn:] {
				run[goOn+i].key = keyAt(idOf(run[goOn+i]), depth+8)
			}
			sortDeep(run[goOn:], depth+8, idOf)
		}
		from = to
	}
}
