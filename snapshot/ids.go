package snapshot

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sort"
)

// CanonicalInt reads the one spelling of an integer of 64 bits: digits with an optional minus, no leading zeros, not -0. Where all ids
// are such, CollationInteger orders them.
func CanonicalInt(id []byte) (v int64, ok bool) {
	digits := bytes.TrimPrefix(id, []byte{'-'})
	negative := len(digits) < len(id)
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(id) > 1 {
		return 0, false
	}
	sum := uint64(0) // 19 digits fit
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		sum = 10*sum + uint64(c-'0')
	}
	switch {
	case negative && sum <= -math.MinInt64:
		return -int64(sum), true
	case !negative && sum <= math.MaxInt64:
		return int64(sum), true
	}
	return 0, false
}

// keyOf is the key of a node (SPEC 8).
func keyOf(id []byte) uint64 {
	sum := sha256.Sum256(id)
	return binary.BigEndian.Uint64(sum[:])
}

// Compare orders two ids of the collation: -1, 0 or 1. For the collation integer both must be canonical integers.
func (c Collation) Compare(a, b []byte) int {
	if c == CollationInteger {
		x, _ := CanonicalInt(a)
		y, _ := CanonicalInt(b)
		return cmp.Compare(x, y)
	}
	return bytes.Compare(a, b)
}

// search returns the node with an id, or the number of the first behind it. For the collation integer the id must be one. O(log N).
func (ids *IDs) search(id []byte) (node int32, ok bool) {
	at, ok := sort.Find(ids.Len(), func(i int) int { return ids.Collation.Compare(id, ids.At(int32(i))) })
	return int32(at), ok
}
