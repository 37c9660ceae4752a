package graph

import "fmt"

// Transpose turns the rows of a bipartite block around. Row d < numDst of (indptr, indices) lists the
// src of d; row s < numSrc of the result lists the dst of s, ascending, and tEdge[e] is the
// place of entry e in indices, so a coefficient of the block is found without a copy. Entries that
// repeat stay apart, in the order of the block. tIndptr has len numSrc+1.
//
//	for e in row s of the result: indices[tEdge[e]] == s, and tEdge[e] lies in row tIndices[e]
//
// indices must lie in 0..numSrc-1 (else it panics: the caller's bug). A counting sort: O(numDst + numSrc + E).
func Transpose(numDst, numSrc int, indptr []int64, indices []int32) (tIndptr []int64, tIndices []int32, tEdge []int64) {
	if len(indptr) != numDst+1 || indptr[0] != 0 || indptr[numDst] != int64(len(indices)) {
		panic(fmt.Sprintf("graph: transpose: indptr of len %d does not fit %d rows and %d entries",
			len(indptr), numDst, len(indices)))
	}
	// tIndptr[s+1] counts row s, then is the place of row s's next entry, and ends as row s+1's start.
	tIndptr = make([]int64, numSrc+1)
	tIndices = make([]int32, len(indices))
	tEdge = make([]int64, len(indices))
	next := tIndptr[1:]
	for _, s := range indices {
		next[s]++
	}
	var at int64
	for s, n := range next {
		next[s] = at
		at += n
	}
	for d := range numDst {
		for e := indptr[d]; e < indptr[d+1]; e++ {
			to := next[indices[e]]
			next[indices[e]]++
			tIndices[to], tEdge[to] = int32(d), e
		}
	}
	return tIndptr, tIndices, tEdge
}
