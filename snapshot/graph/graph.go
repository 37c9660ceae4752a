// Package graph holds the topology steps of a snapshot as pure functions on slices:
// edges to CSR, weakly connected components, normalisation factors, the index of neighbours
// one and two hops away, PageRank, locality orders, the lift of features, the choice of
// held-out pairs, and the transpose of a block. It does no I/O, reads no clock and draws nothing at random.
//
// The pipeline reads
//
//	Holdout -> Build -> Components -> GCN, Mean, Sum -> BuildHop1, BuildHop2 -> PageRank -> BFSOrder, CommunityOrder -> Lift
//
// Every step gives the same bytes for any thread count and any order of the input lines.
// Beside each step stands a slow check written another way (VerifyCSR, VerifyGraph,
// VerifyComponents, VerifyNorm, VerifyHop1, ...): the tests use it, and so
// does whoever reads a graph back from disk. The other functions trust the CSR they are
// given; run VerifyCSR first on one that comes from outside.
//
// Node numbers are int32 in 0..N-1, edge offsets int64. Messages go src -> dst; the rows of
// a CSR are the dst, its indices the src.
package graph
