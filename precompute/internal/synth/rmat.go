package synth

import (
	"context"
	"math/bits"
	"strconv"
)

// The quadrants of Graph500's R-MAT (Chakrabarti, Zhan & Faloutsos, SDM 2004), as running sums in
// units of 2^-16: A = 0.57, B = 0.19, C = 0.19, and D what is left.
const (
	rmatA   = 37356
	rmatAB  = rmatA + 12452
	rmatABC = rmatAB + 12452
)

// rmatEdge draws one edge among n nodes: a quadrant for each of the scale bits, anew while an end is
// n or more. Low numbers are hubs.
func rmatEdge(d draws, scale int, n uint64) (src, dst uint64) {
	for {
		src, dst = 0, 0
		var word uint64
		for level := range scale {
			if level%4 == 0 {
				word = d.next()
			}
			r := word & 0xffff
			word >>= 16
			src <<= 1
			dst <<= 1
			switch {
			case r < rmatA:
			case r < rmatAB:
				dst |= 1
			case r < rmatABC:
				src |= 1
			default:
				src |= 1
				dst |= 1
			}
		}
		if src < n && dst < n {
			return src, dst
		}
	}
}

// rmat writes edges.csv of NumEdges lines, repeated edges and self-loops included, and the tables
// that are wanted. Ids are scrambled, so that they say nothing of the degree. Classes are random:
// beyond its hubs this graph has no communities (A*D < B*C).
func (g *generator) rmat(ctx context.Context) error {
	n, m := g.opt.NumNodes, g.opt.NumEdges
	scale := bits.Len64(uint64(n - 1))
	ids := newPermutation(g.opt.Seed, forIDs, n)
	err := g.stream(ctx, "edges", m, []string{"edges.csv"}, "src,dst\n", numChunksOf(m, chunkRows), func(chunk int, out []piece) {
		from, to := chunkRange(chunk, m, chunkRows)
		b := out[0].bytes
		for e := from; e < to; e++ {
			src, dst := rmatEdge(newDraws(g.opt.Seed, forEdges, uint64(e)), scale, uint64(n))
			b = strconv.AppendInt(b, ids.at(int64(src)), 10)
			b = append(b, ',')
			b = strconv.AppendInt(b, ids.at(int64(dst)), 10)
			b = append(b, '\n')
		}
		out[0] = piece{b, to - from}
	})
	if err != nil {
		return err
	}
	return g.writeTables(ctx, newClasses(g.opt).of)
}
