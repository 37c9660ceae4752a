// Package sample decides what is in a batch: which seeds come together (order.go) and
// which neighbours each node takes (fanout.go). It does not know how a batch is stored.
//
// Every random choice is a hash of what it is for (hash.go), so that a result depends
// on neither threads nor the order of work, and an added node or edge changes only the
// draws it takes part in (SPEC 8).
package sample

import "github.com/prelift/prelift/snapshot/graph"

// What a hash is for is its first word, so that no two uses share values. The numbers
// are part of SPEC 8; package graph has the others and the hash.
const (
	forDraw  = 1 // which neighbours a node takes
	forOrder = 2 // place of a seed in random order
	forRun   = 3 // place of a run of seeds in locality order
)

// Draw is the number that decides whether dst takes src at a hop:
//
//	hash(1, seed, variant, hop, key of dst, key of src)
//
// Hops count from 1, the hop of a seed's own neighbours. A key is the first 8 bytes,
// big-endian, of the SHA-256 of the external id. A node takes the k neighbours with the
// smallest numbers; equal ones go to the smaller node number. A negative seed enters as
// its two's complement.
func Draw(seed int64, variant, hop int, dstKey, srcKey uint64) uint64 {
	return graph.Fold(graph.Fold(drawBase(seed, variant, hop), dstKey), srcKey)
}

// drawBase is the part of Draw that all nodes of a hop share.
func drawBase(seed int64, variant, hop int) uint64 {
	return graph.Hash(forDraw, uint64(seed), uint64(variant), uint64(hop))
}
