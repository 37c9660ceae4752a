// Package graph holds the topology steps of a snapshot as pure functions on slices:
// edges to CSR, weakly connected components, normalisation factors, a locality order,
// and the transpose of a block. It does no I/O, reads no clock and draws nothing at random.
//
// The pipeline reads
//
//	Build -> Components -> GCN, Mean, Sum -> BFSOrder
//
// Every step gives the same bytes for any thread count and any order of the input lines.
// Beside each step stands a slow check written another way (VerifyCSR, VerifyGraph,
// VerifyComponents, VerifyNorm, VerifyOrder, VerifyTranspose): the tests use it, and so
// does whoever reads a graph back from disk. The other functions trust the CSR they are
// given; run VerifyCSR first on one that comes from outside.
//
// Node numbers are int32 in 0..N-1, edge offsets int64. Messages go src -> dst; the rows of
// a CSR are the dst, its indices the src.
package graph
