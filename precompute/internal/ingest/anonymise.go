package ingest

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/prelift/prelift/snapshot"
)

// MinAnonymiseKey is the least length of Options.AnonymiseKey: 128 bits, as many as an id keeps of its code.
const MinAnonymiseKey = 16

// codeBytes is how much of an HMAC-SHA-256 an id becomes, in hexadecimal: half, which RFC 2104 asks for at least. Two of
// 2^31 ids collide with a chance of 2^-67, and a node takes 32 bytes of id in place of 64.
const codeBytes = snapshot.CodeDigits / 2

// code is the first codeBytes of an id's HMAC, big-endian, and the place of the id.
type code struct {
	hi, lo uint64
	from   int32
}

func compareCodes(a, b code) int {
	if a.hi != b.hi {
		return cmp.Compare(a.hi, b.hi)
	}
	return cmp.Compare(a.lo, b.lo)
}

// codesOf replaces ids by their codes under key: the first 16 bytes of HMAC-SHA-256(key, id), in lower-case
// hexadecimal, in bytewise order. from[v] is the place in ids that code v comes of.
func codesOf(ids *snapshot.IDs, key []byte, threads int) (codes snapshot.IDs, from []int32, err error) {
	sorted := sortedCodes(ids, key, threads)
	first := make([]int, len(sorted)+1) // codes before each bucket
	for b, list := range sorted {
		first[b+1] = first[b] + len(list)
		for i := 1; i < len(list); i++ {
			if compareCodes(list[i-1], list[i]) == 0 {
				return codes, nil, &Error{Msg: fmt.Sprintf("the ids %s and %s become the same under this key", quote(string(ids.At(list[i-1].from))), quote(string(ids.At(list[i].from)))), Hint: "take another key"}
			}
		}
	}
	const width = 2 * codeBytes
	n := ids.Len()
	codes = snapshot.IDs{Offsets: make([]int64, n+1), Bytes: make([]byte, width*n), Collation: snapshot.CollationBytes}
	from = make([]int32, n)
	parallelEach(len(sorted), threads, func(b int) {
		for i, c := range sorted[b] {
			v := first[b] + i
			var raw [codeBytes]byte
			binary.BigEndian.PutUint64(raw[:], c.hi)
			binary.BigEndian.PutUint64(raw[8:], c.lo)
			hex.Encode(codes.Bytes[width*v:], raw[:])
			codes.Offsets[v+1] = int64(width * (v + 1))
			from[v] = c.from
		}
	})
	return codes, from, nil
}

// codeBuckets is how many runs the codes are sorted in: by their first byte, which is evenly distributed.
const codeBuckets = 256

// sortedCodes returns the codes of all ids in order, in codeBuckets runs.
func sortedCodes(ids *snapshot.IDs, key []byte, threads int) [][]code {
	n := ids.Len()
	parts := make([][codeBuckets][]code, threads)
	parallelEach(threads, threads, func(t int) {
		mac, sum := hmac.New(sha256.New, key), make([]byte, 0, sha256.Size)
		for v := n * t / threads; v < n*(t+1)/threads; v++ {
			mac.Reset()
			mac.Write(ids.At(int32(v)))
			sum = mac.Sum(sum[:0])
			list := &parts[t][sum[0]]
			*list = append(*list, code{binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:]), int32(v)})
		}
	})
	sorted := make([][]code, codeBuckets)
	parallelEach(codeBuckets, threads, func(b int) {
		for t := range parts {
			sorted[b] = append(sorted[b], parts[t][b]...)
			parts[t][b] = nil
		}
		slices.SortFunc(sorted[b], compareCodes)
	})
	return sorted
}

// anonymise replaces the ids, if there is a key, in all that is to come of them: number, the node of each number of dict, is changed in
// place. shown are the ids as they were, in the new order of nodes, for messages; like ids without a key.
func (r *reader) anonymise(ids snapshot.IDs, number []int32) (codes, shown snapshot.IDs, err error) {
	if r.opt.AnonymiseKey == nil {
		return ids, ids, nil
	}
	if r.opt.Progress != nil {
		r.opt.Progress("anonymise", 0, 0)
	}
	codes, from, err := codesOf(&ids, r.opt.AnonymiseKey, r.opt.Threads)
	if err != nil {
		return codes, ids, err
	}
	node := make([]int32, len(from))
	for v, old := range from {
		node[old] = int32(v)
	}
	for i, old := range number {
		number[i] = node[old]
	}
	if r.matrix == nil && r.features == nil && r.splits == nil {
		return codes, codes, nil // no message names a node any more
	}
	shown = snapshot.IDs{Offsets: make([]int64, 1, len(from)+1), Bytes: make([]byte, 0, len(ids.Bytes)), Collation: ids.Collation}
	for _, old := range from {
		shown.Bytes = append(shown.Bytes, ids.At(old)...)
		shown.Offsets = append(shown.Offsets, int64(len(shown.Bytes)))
	}
	return codes, shown, nil
}
