package graph

// golden is 2^64 divided by the golden ratio, SplitMix64's increment.
const golden = 0x9E3779B97F4A7C15

// What a hash is for is its first word, so that no two uses share values (SPEC 8). 1 to 3 belong to
// the draws of a batch (precompute/internal/sample).
const (
	forHop2    = 4 // the order in which a node's neighbours are expanded: key of the node, key of the neighbour
	forHoldout = 5 // whether a pair is held out: seed, smaller key, larger key
)

// mix is the output function of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", OOPSLA 2014; constants of David Stafford's Mix13). It is a bijection of 64-bit words.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Fold takes one more word into a hash. For a given h it is a bijection of w, and for a given w one of h.
func Fold(h, w uint64) uint64 { return mix((h + golden) ^ w) }

// Hash folds words into 0, one after the other (SPEC 8):
//
//	h = 0; for each word w: h = mix((h + 0x9E3779B97F4A7C15 mod 2^64) xor w)
//
// The first word says what the hash is for.
func Hash(words ...uint64) uint64 {
	h := uint64(0)
	for _, w := range words {
		h = Fold(h, w)
	}
	return h
}
