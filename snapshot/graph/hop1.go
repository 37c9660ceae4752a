package graph

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
)

// The layout of Hop1. All of it enters a snapshot's bytes.
const (
	groupRows   = 32            // compact rows share one 64-bit start a group
	chunkLen    = 128           // entries of a chunk of a large row
	largeRow    = math.MaxUint8 // Code of a large row
	noDirectory = math.MaxUint8 // Shift of a large row that is no hub
)

// The steps of a hub's directory. It begins with one to two entries a chunk, and is refined while some
// entry leaves more than directorySpread chunks to choose from.
const (
	directorySpread  = 4
	directoryRefines = 2
)

// HopOptions steer BuildHop1 and BuildHop2. All but Threads and Progress shape the bytes. A zero field takes the default.
type HopOptions struct {
	CompactBelow int // rows of fewer neighbours are compact: 1..255, 100 by default
	HubFrom      int // rows of so many neighbours have a directory: at least CompactBelow, 1000 by default
	ExpandLimit  int // a node's neighbours that hop 2 goes through: 500 by default
	Hop2Cap      int // most entries of a hop-2 row: 1000 by default
	Threads      int // 0: GOMAXPROCS; the result does not depend on it

	Alloc Alloc // of what takes bytes by neighbour
	// Progress may be nil. BuildHop2 calls it from several goroutines with the rows done of total, two times the
	// nodes: each row is measured, then written.
	Progress func(done, total int64)
}

// Settle returns o with zero fields filled in, but Threads, and an error where it can't be; BuildHop1 and BuildHop2 do it themselves.
func (o HopOptions) Settle() (HopOptions, error) {
	for _, f := range []struct {
		value    *int
		standard int
	}{{&o.CompactBelow, 100}, {&o.HubFrom, 1000}, {&o.ExpandLimit, 500}, {&o.Hop2Cap, 1000}} {
		if *f.value == 0 {
			*f.value = f.standard
		}
	}
	switch {
	case o.CompactBelow < 1 || o.CompactBelow > largeRow:
		return o, fmt.Errorf("rows below %d neighbours compact: want 1 to %d", o.CompactBelow, largeRow)
	case o.HubFrom < o.CompactBelow:
		return o, fmt.Errorf("hubs from %d neighbours, compact rows below %d: want hubs from there or above", o.HubFrom, o.CompactBelow)
	case o.ExpandLimit < 1 || o.ExpandLimit > math.MaxInt32:
		return o, fmt.Errorf("%d neighbours expanded a node: want 1 or more", o.ExpandLimit)
	case o.Hop2Cap < 1 || o.Hop2Cap > math.MaxInt32:
		return o, fmt.Errorf("hop-2 rows of at most %d: want 1 or more", o.Hop2Cap)
	}
	return o, nil
}

// Hop1 is the degree-bucketed index of neighbours: for each node its in-row without the self loop, ascending,
// compressed so that the j-th neighbour and the question whether u is one are answered in place. It is
// a set of flat arrays, made to be stored as they are and used where they are mapped; read-only, safe for
// concurrent use. Rows come in three buckets by their number of neighbours d:
//
//   - compact, d < CompactBelow: one Elias-Fano run of universe NumNodes (eliasfano.go) in Compact. Code is d,
//     and the run begins at GroupStart[v/32] + Offset[v].
//   - sorted, below HubFrom: Code is 255, and GroupLarge[v/32] + Offset[v] is the row's number r among the
//     large rows. Its chunks are numbers LargeChunk[r] .. LargeChunk[r+1]-1; each has 128 neighbours, the last
//     one LargeLast[r]+1. Chunk k holds them less ChunkBase[k], its first, in a run that begins at
//     LargeStart[r] + ChunkStart[k] in Large; its universe ends where the next chunk's begins, the last one's at
//     NumNodes (partitioned Elias-Fano: Ottaviano and Venturini, SIGIR 2014).
//   - hub: as sorted, with a directory of little-endian uint32 at LargeStart[r], before the first chunk: entry b
//     is the last chunk of the row (counted from 0) whose base is at most b<<LargeShift[r], 0 if none is. So the
//     chunk that would hold u is one of those between entry u>>LargeShift[r] and the next.
//
// The j-th neighbour costs O(1) in every bucket. Contains costs O(1) in a compact row and O(log(HubFrom/128))
// in a sorted one; in a hub O(1) if the row is spread about evenly, and O(log(d/128)) at worst, when most of
// it crowds into a few directory entries. The directory costs about half a bit an entry, where a hash table of
// int32 beside the row would cost 43 to 64 and a bitmap N/d.
//
// The number of nodes is len(Code). Compact and Large end with 8 zero bytes. GroupStart and
// GroupLarge have one entry more than there are groups of 32 nodes, LargeChunk one more than there are large rows.
type Hop1 struct {
	Code       []uint8
	Offset     []uint16
	GroupStart []int64
	GroupLarge []int32
	Compact    []uint8

	LargeChunk []int64
	LargeStart []int64
	LargeLast  []uint8
	LargeShift []uint8
	ChunkBase  []int32
	ChunkStart []uint32
	Large      []uint8
}

// BuildHop1 makes the index of c's rows, which have no relations (CSR.Simple takes them away). The result does not
// depend on opt.Threads. O(N log degree + E). An error is about c's relations, opt, or Alloc's.
func BuildHop1(c *CSR, opt HopOptions) (*Hop1, error) {
	opt, err := opt.Settle()
	if err != nil {
		return nil, err
	}
	opt.Threads = numThreads(opt.Threads)
	if c.Rel != nil {
		return nil, errRelations
	}
	numNodes := c.NumNodes()
	numGroups := (numNodes + groupRows - 1) / groupRows
	h := &Hop1{
		Code: make([]uint8, numNodes), Offset: make([]uint16, numNodes),
		GroupStart: make([]int64, numGroups+1), GroupLarge: make([]int32, numGroups+1),
	}
	large := h.placeRows(c, opt)
	if h.Compact, err = sliceOf[uint8](opt.Alloc, h.GroupStart[numGroups]+slackBytes); err != nil {
		return nil, err
	}
	if h.Large, err = sliceOf[uint8](opt.Alloc, h.placeChunks(c, large, opt)+slackBytes); err != nil {
		return nil, err
	}

	bounds := rowParts(c.Indptr, opt.Threads)
	inParallel(opt.Threads, func(t int) {
		var scratch []int32
		for v := int32(bounds[t]); v < int32(bounds[t+1]); v++ {
			row := c.rowWithoutLoop(v, &scratch)
			if h.Code[v] != largeRow {
				putRun(h.compactRun(v), row, 0, uint32(numNodes))
				continue
			}
			h.putLarge(h.largeOf(v), row)
		}
	})
	return h, nil
}

// placeRows fills Code and what leads to the compact rows, and returns the large rows' nodes.
func (h *Hop1) placeRows(c *CSR, opt HopOptions) (large []int32) {
	universe := uint32(len(h.Code))
	inParallel(opt.Threads, func(t int) {
		lo, hi := part(len(h.Code), t, opt.Threads)
		for v := lo; v < hi; v++ {
			h.Code[v] = largeRow
			if d := c.neighbours(int32(v)); d < int64(opt.CompactBelow) {
				h.Code[v] = uint8(d)
			}
		}
	})
	sizes := make([]int64, opt.CompactBelow) // of rows by their numbers of neighbours
	for d := range min(len(sizes), len(h.Code)) {
		sizes[d] = runBytes(uint32(d), universe)
	}
	at := int64(0)
	for v, code := range h.Code {
		group := v / groupRows
		if v%groupRows == 0 {
			h.GroupStart[group], h.GroupLarge[group] = at, int32(len(large))
		}
		if code == largeRow {
			h.Offset[v] = uint16(int32(len(large)) - h.GroupLarge[group])
			large = append(large, int32(v))
			continue
		}
		h.Offset[v] = uint16(at - h.GroupStart[group])
		at += sizes[code]
	}
	end := len(h.GroupStart) - 1
	h.GroupStart[end], h.GroupLarge[end] = at, int32(len(large))
	return large
}

// placeChunks fills everything about large rows but Large, whose size it returns.
func (h *Hop1) placeChunks(c *CSR, large []int32, opt HopOptions) (sizeBytes int64) {
	h.LargeChunk = make([]int64, len(large)+1)
	h.LargeStart = make([]int64, len(large))
	h.LargeLast, h.LargeShift = make([]uint8, len(large)), make([]uint8, len(large))
	for r, v := range large {
		d := c.neighbours(v)
		h.LargeChunk[r+1] = h.LargeChunk[r] + (d+chunkLen-1)/chunkLen
		h.LargeLast[r] = uint8((d - 1) % chunkLen)
	}
	h.ChunkBase = make([]int32, h.LargeChunk[len(large)])
	h.ChunkStart = make([]uint32, len(h.ChunkBase))
	sizes := make([]int64, len(large)) // bytes of each row
	inParallel(opt.Threads, func(t int) {
		var scratch []int32
		lo, hi := part(len(large), t, opt.Threads)
		for r := lo; r < hi; r++ {
			row := c.rowWithoutLoop(large[r], &scratch)
			bases := h.bases(r)
			for k := range bases {
				bases[k] = row[k*chunkLen]
			}
			h.LargeShift[r] = noDirectory
			if len(row) >= opt.HubFrom {
				h.LargeShift[r] = directoryShift(bases, uint32(len(h.Code)))
			}
			at := int64(4 * h.directoryLen(r))
			for k := range bases {
				// A row needs at most 3 bits for each of its at most 2^31 numbers, so at fits.
				h.ChunkStart[h.LargeChunk[r]+int64(k)] = uint32(at)
				count, universe := h.chunkSize(r, k)
				at += runBytes(count, universe)
			}
			sizes[r] = at
		}
	})
	at := int64(0)
	for r, size := range sizes {
		h.LargeStart[r] = at
		at += size
	}
	return at
}

// putLarge writes the bytes of large row r.
func (h *Hop1) putLarge(r int, row []int32) {
	bases := h.bases(r)
	if n := h.directoryLen(r); n > 0 {
		k := 0
		for b := range n {
			k = lastUpTo(bases, k, int64(b)<<h.LargeShift[r])
			binary.LittleEndian.PutUint32(h.Large[h.LargeStart[r]+4*int64(b):], uint32(k))
		}
	}
	for k := range bases {
		count, universe := h.chunkSize(r, k)
		putRun(h.chunkRun(r, k), row[k*chunkLen:][:count], bases[k], universe)
	}
}

// directoryShift returns the shift of a hub's directory.
func directoryShift(bases []int32, numNodes uint32) uint8 {
	shift := lowBits(uint32(len(bases)), numNodes)
	for range directoryRefines {
		if shift == 0 || directoryWidest(bases, numNodes, shift) <= directorySpread {
			break
		}
		shift--
	}
	return uint8(shift)
}

// directoryWidest returns the most chunks that begin within one entry of a directory.
func directoryWidest(bases []int32, numNodes uint32, shift uint) int {
	widest, k := 0, 0
	for b := int64(0); b <= int64(numNodes-1)>>shift; b++ {
		next := lastUpTo(bases, k, (b+1)<<shift)
		widest = max(widest, next-k)
		k = next
	}
	return widest
}

// lastUpTo returns the last place from k on whose base is at most x; k if there is none.
func lastUpTo(bases []int32, k int, x int64) int {
	for k+1 < len(bases) && int64(bases[k+1]) <= x {
		k++
	}
	return k
}

// directoryLen returns the number of entries of row r's directory, 0 for a row that is no hub.
func (h *Hop1) directoryLen(r int) int {
	if h.LargeShift[r] == noDirectory {
		return 0
	}
	return (len(h.Code)-1)>>h.LargeShift[r] + 1
}

// rowWithoutLoop returns row v without v; it may be in *scratch, until the next call.
func (c *CSR) rowWithoutLoop(v int32, scratch *[]int32) []int32 {
	row := c.Row(v)
	entry, ok := c.Loop(v)
	if !ok {
		return row
	}
	i := entry - c.Indptr[v]
	*scratch = append(append((*scratch)[:0], row[:i]...), row[i+1:]...)
	return *scratch
}

// largeOf returns the number of v's row among the large ones.
func (h *Hop1) largeOf(v int32) int { return int(h.GroupLarge[v/groupRows]) + int(h.Offset[v]) }

// bases returns the bases of the chunks of large row r.
func (h *Hop1) bases(r int) []int32 { return h.ChunkBase[h.LargeChunk[r]:h.LargeChunk[r+1]] }

// chunkSize returns the count and the universe of chunk k of large row r.
func (h *Hop1) chunkSize(r, k int) (count, universe uint32) {
	bases := h.bases(r)
	if k+1 < len(bases) {
		return chunkLen, uint32(bases[k+1] - bases[k])
	}
	return uint32(h.LargeLast[r]) + 1, uint32(len(h.Code)) - uint32(bases[k])
}

// compactRun and chunkRun return the bytes from a run on.
func (h *Hop1) compactRun(v int32) []byte {
	return h.Compact[h.GroupStart[v/groupRows]+int64(h.Offset[v]):]
}

func (h *Hop1) chunkRun(r, k int) []byte {
	return h.Large[h.LargeStart[r]+int64(h.ChunkStart[h.LargeChunk[r]+int64(k)]):]
}

// NumNodes returns the number of rows.
func (h *Hop1) NumNodes() int { return len(h.Code) }

// Degree returns the number of neighbours of v, v itself not counted.
func (h *Hop1) Degree(v int32) int {
	if d := h.Code[v]; d != largeRow {
		return int(d)
	}
	r := h.largeOf(v)
	return int(h.LargeChunk[r+1]-h.LargeChunk[r]-1)*chunkLen + int(h.LargeLast[r]) + 1
}

// Neighbour returns the j-th neighbour of v, ascending from j = 0. j must be below Degree(v).
func (h *Hop1) Neighbour(v int32, j int) int32 {
	if d := h.Code[v]; d != largeRow {
		return int32(runAt(h.compactRun(v), uint32(d), uint32(len(h.Code)), j))
	}
	r, k := h.largeOf(v), j/chunkLen
	count, universe := h.chunkSize(r, k)
	return h.bases(r)[k] + int32(runAt(h.chunkRun(r, k), count, universe, j%chunkLen))
}

// Contains says whether u is a neighbour of v. No node is its own; a u that is no node is none.
func (h *Hop1) Contains(v, u int32) bool {
	if u < 0 || int(u) >= len(h.Code) {
		return false
	}
	if d := h.Code[v]; d != largeRow {
		if d == 0 {
			return false
		}
		_, ok := runFind(h.compactRun(v), uint32(d), uint32(len(h.Code)), uint32(u))
		return ok
	}
	r := h.largeOf(v)
	bases := h.bases(r)
	lo, hi := 0, len(bases) // the chunk is in lo .. hi-1, if there is one
	if shift := h.LargeShift[r]; shift != noDirectory {
		b := int(u >> shift)
		directory := h.Large[h.LargeStart[r]:]
		lo = int(binary.LittleEndian.Uint32(directory[4*b:]))
		if b < (len(h.Code)-1)>>shift {
			hi = int(binary.LittleEndian.Uint32(directory[4*b+4:])) + 1
		}
	}
	k := lo + sort.Search(hi-lo, func(i int) bool { return bases[lo+i] > u }) - 1
	if k < lo {
		return false // below the first base
	}
	count, universe := h.chunkSize(r, k)
	_, ok := runFind(h.chunkRun(r, k), count, universe, uint32(u-bases[k]))
	return ok
}

// AppendRow appends the neighbours of v to dst, ascending.
func (h *Hop1) AppendRow(dst []int32, v int32) []int32 {
	if d := h.Code[v]; d != largeRow {
		return appendRun(dst, h.compactRun(v), uint32(d), uint32(len(h.Code)), 0)
	}
	r := h.largeOf(v)
	dst = slices.Grow(dst, h.Degree(v))
	for k, base := range h.bases(r) {
		count, universe := h.chunkSize(r, k)
		dst = appendRun(dst, h.chunkRun(r, k), count, universe, base)
	}
	return dst
}

// Bucket is one of the three forms of a row.
type Bucket int

// The buckets, in order of degree.
const (
	BucketCompact Bucket = iota
	BucketSorted
	BucketHub
	numBuckets
)

// String names the bucket as reports do.
func (b Bucket) String() string { return [...]string{"compact", "sorted", "hub"}[b] }

// Bucket returns the form of v's row.
func (h *Hop1) Bucket(v int32) Bucket {
	switch {
	case h.Code[v] != largeRow:
		return BucketCompact
	case h.LargeShift[h.largeOf(v)] == noDirectory:
		return BucketSorted
	}
	return BucketHub
}

// BucketSize counts the rows of one bucket, and the bytes that they have of their own: runs, chunk
// table, directory, and the per-row arrays of large rows.
type BucketSize struct {
	NumRows, NumEntries, SizeBytes int64
}

// Buckets returns the size of each bucket. Added up they give SizeBytes less the arrays that all
// rows share (Code, Offset, GroupStart, GroupLarge) and the slack.
func (h *Hop1) Buckets() [numBuckets]BucketSize {
	var sizes [numBuckets]BucketSize
	for v := range h.Code {
		d := h.Degree(int32(v))
		b := &sizes[h.Bucket(int32(v))]
		b.NumRows++
		b.NumEntries += int64(d)
		if h.Code[v] != largeRow {
			b.SizeBytes += runBytes(uint32(d), uint32(len(h.Code)))
			continue
		}
		r := h.largeOf(int32(v))
		end := int64(len(h.Large)) - slackBytes
		if r+1 < len(h.LargeStart) {
			end = h.LargeStart[r+1]
		}
		b.SizeBytes += end - h.LargeStart[r] + 8*int64(len(h.bases(r))) + 8 + 8 + 1 + 1
	}
	return sizes
}

// SizeBytes returns the bytes of all arrays.
func (h *Hop1) SizeBytes() int64 {
	return int64(len(h.Code)) + 2*int64(len(h.Offset)) + 8*int64(len(h.GroupStart)) + 4*int64(len(h.GroupLarge)) + int64(len(h.Compact)) +
		8*int64(len(h.LargeChunk)) + 8*int64(len(h.LargeStart)) + int64(len(h.LargeLast)) + int64(len(h.LargeShift)) +
		4*int64(len(h.ChunkBase)) + 4*int64(len(h.ChunkStart)) + int64(len(h.Large))
}

// InformationBits returns sum over v of log2 C(N, d[v]), d the neighbours of v without self loops, each counted once
// whatever its relations: what any code needs that tells all sets of neighbours of these sizes apart.
func InformationBits(c *CSR) float64 {
	n := c.NumNodes()
	all, _ := math.Lgamma(float64(n) + 1)
	total := 0.0
	for v := range n {
		d := float64(c.distinct(int32(v)))
		chosen, _ := math.Lgamma(d + 1)
		rest, _ := math.Lgamma(float64(n) - d + 1)
		total += all - chosen - rest
	}
	return total / math.Ln2
}

// Check checks everything that access relies on, trusting nothing but that the slices are not written to
// meanwhile: after it no method panics, given nodes and places that exist, and the arrays are those that BuildHop1
// would give for the same rows, up to the choice of thresholds. threads 0 means GOMAXPROCS. O(N + E).
func (h *Hop1) Check(threads int) error {
	n := len(h.Code)
	numGroups := (n + groupRows - 1) / groupRows
	if n > MaxNodes || len(h.Offset) != n || len(h.GroupStart) != numGroups+1 || len(h.GroupLarge) != numGroups+1 {
		return fmt.Errorf("hop1: %d codes, %d offsets, %d and %d group entries do not fit each other", n, len(h.Offset), len(h.GroupStart), len(h.GroupLarge))
	}
	numLarge := len(h.LargeStart)
	if len(h.LargeChunk) != numLarge+1 || len(h.LargeLast) != numLarge || len(h.LargeShift) != numLarge || len(h.ChunkStart) != len(h.ChunkBase) ||
		h.LargeChunk[0] != 0 || h.LargeChunk[numLarge] != int64(len(h.ChunkBase)) {
		return fmt.Errorf("hop1: the arrays of %d large rows and %d chunks do not fit each other", numLarge, len(h.ChunkBase))
	}
	for _, data := range [][]uint8{h.Compact, h.Large} {
		if len(data) < slackBytes || slices.ContainsFunc(data[len(data)-slackBytes:], func(b uint8) bool { return b != 0 }) {
			return fmt.Errorf("hop1: runs do not end with %d zero bytes", slackBytes)
		}
	}
	if err := h.checkCompactPlaces(); err != nil {
		return err
	}
	if err := h.checkLargePlaces(); err != nil {
		return err
	}
	return h.checkRuns(numThreads(threads))
}

// checkCompactPlaces checks that compact rows tile Compact, and that the other rows are the large ones.
func (h *Hop1) checkCompactPlaces() error {
	n, at, large := len(h.Code), int64(0), 0
	end := int64(len(h.Compact)) - slackBytes
	for v, d := range h.Code {
		group := v / groupRows
		if v%groupRows == 0 && (h.GroupStart[group] != at || int(h.GroupLarge[group]) != large) {
			return fmt.Errorf("hop1: group %d begins at %d and large row %d, want %d and %d", group, h.GroupStart[group], h.GroupLarge[group], at, large)
		}
		if d == largeRow {
			if int(h.GroupLarge[group])+int(h.Offset[v]) != large || large >= len(h.LargeStart) {
				return fmt.Errorf("hop1: node %d is not large row %d of %d", v, large, len(h.LargeStart))
			}
			large++
			continue
		}
		if h.GroupStart[group]+int64(h.Offset[v]) != at || d > 0 && int(d) >= n {
			return fmt.Errorf("hop1: node %d of %d neighbours begins at %d, want %d", v, d, h.GroupStart[group]+int64(h.Offset[v]), at)
		}
		at += runBytes(uint32(d), uint32(n))
	}
	last := len(h.GroupStart) - 1
	if h.GroupStart[last] != at || end != at || int(h.GroupLarge[last]) != large || large != len(h.LargeStart) {
		return fmt.Errorf("hop1: compact rows end at %d of %d and large rows at %d of %d", at, end, large, len(h.LargeStart))
	}
	return nil
}

// checkLargePlaces checks that directories and chunks tile Large, and the directories.
func (h *Hop1) checkLargePlaces() error {
	n, at := len(h.Code), int64(0)
	end := int64(len(h.Large)) - slackBytes
	for r := range h.LargeStart {
		first, last := h.LargeChunk[r], h.LargeChunk[r+1]
		if first >= last || last > int64(len(h.ChunkBase)) {
			return fmt.Errorf("hop1: large row %d has the chunks %d to %d", r, first, last)
		}
		if h.LargeStart[r] != at || h.LargeLast[r] >= chunkLen {
			return fmt.Errorf("hop1: large row %d begins at %d, want %d, and its last chunk has %d entries", r, h.LargeStart[r], at, int(h.LargeLast[r])+1)
		}
		bases := h.bases(r)
		previous := int32(-1)
		for _, base := range bases {
			if base <= previous || int(base) >= n {
				return fmt.Errorf("hop1: large row %d has a chunk from %d after one from %d", r, base, previous)
			}
			previous = base
		}
		if shift := h.LargeShift[r]; shift != noDirectory {
			if shift > 31 || int64(4*h.directoryLen(r)) > end-at || shift != directoryShift(bases, uint32(n)) {
				return fmt.Errorf("hop1: large row %d has a directory of shift %d", r, shift)
			}
			k := 0
			for b := range h.directoryLen(r) {
				k = lastUpTo(bases, k, int64(b)<<shift)
				if got := binary.LittleEndian.Uint32(h.Large[at+4*int64(b):]); int64(got) != int64(k) {
					return fmt.Errorf("hop1: large row %d has directory entry %d, want %d", r, got, k)
				}
			}
			at += 4 * int64(h.directoryLen(r))
		}
		for k := range bases {
			if got := h.LargeStart[r] + int64(h.ChunkStart[first+int64(k)]); got != at {
				return fmt.Errorf("hop1: chunk %d of large row %d begins at %d, want %d", k, r, got, at)
			}
			count, universe := h.chunkSize(r, k)
			if count > universe {
				return fmt.Errorf("hop1: chunk %d of large row %d has %d numbers below %d", k, r, count, universe)
			}
			at += runBytes(count, universe)
		}
	}
	if at != end {
		return fmt.Errorf("hop1: large rows end at %d of %d", at, end)
	}
	return nil
}

// checkRuns checks what runs hold; they lie where they should.
func (h *Hop1) checkRuns(threads int) error {
	n, numLarge := len(h.Code), len(h.LargeStart)
	errs := make([]error, 2*threads)
	inParallel(threads, func(t int) {
		var scratch []int32
		lo, hi := part(n, t, threads)
		for v := lo; v < hi; v++ {
			if d := h.Code[v]; d != largeRow {
				if err := checkRun(h.compactRun(int32(v)), uint32(d), uint32(n), &scratch); err != nil {
					errs[t] = fmt.Errorf("hop1: node %d: %w", v, err)
					return
				}
			}
		}
		// Threads share large rows by chunks.
		loChunk, hiChunk := part(len(h.ChunkBase), t, threads)
		first := sort.Search(numLarge, func(r int) bool { return h.LargeChunk[r] >= int64(loChunk) })
		for r := first; r < numLarge && h.LargeChunk[r] < int64(hiChunk); r++ {
			for k, base := range h.bases(r) {
				count, universe := h.chunkSize(r, k)
				err := checkRun(h.chunkRun(r, k), count, universe, &scratch)
				if err == nil && scratch[0] != 0 {
					err = fmt.Errorf("a chunk from %d begins with %d", base, int64(base)+int64(scratch[0]))
				}
				if err != nil {
					errs[threads+t] = fmt.Errorf("hop1: chunk %d of large row %d: %w", k, r, err)
					return
				}
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
