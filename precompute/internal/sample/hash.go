// Package sample decides what is in a batch: which seeds come together (order.go) and
// which neighbours each node takes (fanout.go). It does not know how a batch is stored.
//
// Every random choice is a hash of what it is for (hash.go), so that a result depends
// on neither threads nor the order of work, and an added node or edge changes only the
// draws it takes part in (SPEC 8).
package sample

// golden is 2^64 divided by the golden ratio, SplitMix64's increment.
const golden = 0x9E3779B97F4A7C15

// What a hash is for is its first word, so that no two uses share values. The numbers
// are part of SPEC 8.
const (
	forDraw  = 1 // which neighbours a node takes
	forOrder = 2 // place of a seed in random order
	forRun   = 3 // place of a run of seeds in locality order
)

// mix is the output function of SplitMix64 (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014; constants of David Stafford's Mix13).
// It is a bijection of 64-bit words.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// fold takes one more word into a hash. For a given h it is a bijection of w, and for a
// given w one of h.
func fold(h, w uint64) uint64 { return mix((h + golden) ^ w) }

// hash folds words into 0, one after the other:
//
//	h = 0; for each word w: h = mix((h + 0x9E3779B97F4A7C15 mod 2^64) xor w)
func hash(words ...uint64) uint64 {
	h := uint64(0)
	for _, w := range words {
		h = fold(h, w)
	}
	return h
}

// Draw is the number that decides whether dst takes src at a hop:
//
//	hash(1, seed, variant, hop, key of dst, key of src)
//
// Hops count from 1, the hop of a seed's own neighbours. A key is the first 8 bytes,
// big-endian, of the SHA-256 of the external id. A node takes the k neighbours with the
// smallest numbers; equal ones go to the smaller node number. A negative seed enters as
// its two's complement.
func Draw(seed int64, variant, hop int, dstKey, srcKey uint64) uint64 {
	return fold(fold(drawBase(seed, variant, hop), dstKey), srcKey)
}

// drawBase is the part of Draw that all nodes of a hop share.
func drawBase(seed int64, variant, hop int) uint64 {
	return hash(forDraw, uint64(seed), uint64(variant), uint64(hop))
}
