// Package sample decides what is in a batch: which seeds come together (order.go, cluster.go, stratify.go), which
// neighbours each node takes (sampler.go, draw.go), which nodes belong to a subgraph (khop.go, ppr.go, cluster.go,
// subgraph.go), and which pairs are negatives (negative.go). It does not know how a batch is stored.
//
// Every random choice is a hash of what it is for (hash.go), so that a result depends
// on neither threads nor the order of work, and an added node or edge changes only the
// draws it takes part in (SPEC 8).
package sample

import (
	"math/bits"

	"github.com/prelift/prelift/snapshot/graph"
)

// What a hash is for is its first word, so that no two uses share values. The numbers
// are part of SPEC 8; package graph has 4 and 5, and the hash.
const (
	forDraw     = 1  // which neighbours a node takes
	forOrder    = 2  // place of a seed in random order
	forRun      = 3  // place of a run of seeds in locality order
	forLabor    = 6  // the draw that all dst of a hop share, of a src
	forCluster  = 7  // place of a cluster among those of a variant
	forSparse   = 8  // which seeds of sparse components are in a batch
	forNegative = 9  // negatives of a pair in a variant
	forFixed    = 10 // negatives of a pair for evaluation, in no variant
	forNonEdge  = 11 // negatives of no pair in particular
)

// Draw is the number that decides whether dst takes src at a hop:
//
//	hash(1, seed, variant, hop, key of dst, key of src)
//
// and where edges have relations one word more, the key of the relation. Hops count from 1, the hop of a seed's own
// neighbours. A key is the first 8 bytes, big-endian, of the SHA-256 of the external id, or of the relation's name. A node takes the k neighbours with the
// smallest numbers; equal ones go to the smaller node number, then relation. A negative seed enters as
// its two's complement.
func Draw(seed int64, variant, hop int, dstKey, srcKey uint64) uint64 {
	return graph.Fold(graph.Fold(drawBase(seed, variant, hop), dstKey), srcKey)
}

// drawBase is the part of Draw that all nodes of a hop share.
func drawBase(seed int64, variant, hop int) uint64 {
	return graph.Hash(forDraw, uint64(seed), uint64(variant), uint64(hop))
}

// LaborDraw is the number that decides, for all dst of a hop alike, whether they take src:
//
//	hash(6, seed, variant, hop, key of src)
func LaborDraw(seed int64, variant, hop int, srcKey uint64) uint64 {
	return graph.Fold(laborBase(seed, variant, hop), srcKey)
}

// laborBase is the part of LaborDraw that all nodes of a hop share.
func laborBase(seed int64, variant, hop int) uint64 {
	return graph.Hash(forLabor, uint64(seed), uint64(variant), uint64(hop))
}

// unit turns a hash into a float64 in (0, 1]: 2^53 values, evenly spread.
func unit(h uint64) float64 { return float64(h>>11+1) * 0x1p-53 }

// below turns a hash into an index in 0..n-1: floor(h * n / 2^64). Indices differ in chance by at most 2^-64.
func below(h uint64, n int64) int64 {
	high, _ := bits.Mul64(h, uint64(n))
	return int64(high)
}
