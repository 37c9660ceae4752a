package synth

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// classes deals n nodes to numClasses classes of exact sizes, in random order of the nodes.
// Sizes rise linearly from the first class to the last, which has three times as many.
type classes struct {
	perm   permutation // of the nodes
	starts []int64     // class c owns the positions [starts[c], starts[c+1]) after perm
}

func newClasses(opt Options) *classes {
	return &classes{newPermutation(opt.Seed, forClasses, opt.NumNodes), classSizes(opt.NumNodes, opt.NumClasses)}
}

// classSizes returns the running sums of the class sizes, len numClasses+1; every class has a
// node. Without classes it returns {n}.
func classSizes(n int64, numClasses int) []int64 {
	c := int64(numClasses)
	weightBefore := func(k int64) uint64 { return uint64(k * (c - 1 + k - 1)) } // sum over i < k of c-1+2i
	starts := make([]int64, c+1)
	for k := int64(1); k < c; k++ {
		starts[k] = k + int64(share(uint64(n-c), weightBefore(k), weightBefore(c)))
	}
	starts[c] = n
	return starts
}

// of returns the class of a node.
func (c *classes) of(node int64) int {
	position := c.perm.at(node)
	low, high := 0, len(c.starts)-1 // starts[low] <= position < starts[high]
	for high-low > 1 {
		if mid := (low + high) / 2; c.starts[mid] <= position {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// writeLabels writes labels.csv, one line for every node.
func (g *generator) writeLabels(ctx context.Context, classOf func(node int64) int) error {
	n := g.opt.NumNodes
	return g.stream(ctx, "labels", n, []string{"labels.csv"}, "node,label\n", numChunksOf(n, chunkRows), func(chunk int, out []piece) {
		from, to := chunkRange(chunk, n, chunkRows)
		b := out[0].bytes
		for node := from; node < to; node++ {
			b = strconv.AppendInt(b, node, 10)
			b = append(b, ',')
			b = strconv.AppendInt(b, int64(classOf(node)), 10)
			b = append(b, '\n')
		}
		out[0] = piece{b, to - from}
	})
}

// splitSizes returns how many nodes train and valid have; the rest is test. valid is as large as
// train, at most a tenth of the nodes and at most what train leaves.
func splitSizes(n int64, trainFraction float64) (train, valid int64) {
	train = max(1, min(n, int64(math.Round(float64(float64(n)*trainFraction)))))
	return train, min(train, n/10, n-train)
}

// writeSplit writes split.csv, one line for every node.
func (g *generator) writeSplit(ctx context.Context) error {
	n := g.opt.NumNodes
	train, valid := splitSizes(n, g.opt.TrainFraction)
	perm := newPermutation(g.opt.Seed, forSplit, n)
	return g.stream(ctx, "splits", n, []string{"split.csv"}, "node,split\n", numChunksOf(n, chunkRows), func(chunk int, out []piece) {
		from, to := chunkRange(chunk, n, chunkRows)
		b := out[0].bytes
		for node := from; node < to; node++ {
			b = strconv.AppendInt(b, node, 10)
			switch position := perm.at(node); {
			case position < train:
				b = append(b, ",train\n"...)
			case position < train+valid:
				b = append(b, ",valid\n"...)
			default:
				b = append(b, ",test\n"...)
			}
		}
		out[0] = piece{b, to - from}
	})
}

// featureUnit is what one step of the integer arithmetic on features is worth: a power of two,
// and all sums stay below 2^24, so the float32 values are exact. The noise has standard
// deviation 37837/32768 = 1.15.
const featureUnit = 1.0 / 32768

// writeFeatures writes features.npy, float32 [NumNodes, NumFeatures]: the centroid of the
// node's class, when it has one, plus noise. Centroids are noise too, scaled so that their
// expected norm is Separation standard deviations, whatever NumFeatures is.
func (g *generator) writeFeatures(ctx context.Context, classOf func(node int64) int) error {
	n, dim := g.opt.NumNodes, int64(g.opt.NumFeatures)
	scale := g.opt.Separation / math.Sqrt(float64(dim))
	rowsPerChunk := max(1, 4*chunkRows/dim)
	return g.stream(ctx, "features", n, []string{"features.npy"}, npyHeader(n, dim), numChunksOf(n, rowsPerChunk), func(chunk int, out []piece) {
		from, to := chunkRange(chunk, n, rowsPerChunk)
		b := out[0].bytes
		for node := from; node < to; node++ {
			noise := newDraws(g.opt.Seed, forNoise, uint64(node))
			var centroid draws
			if g.opt.NumClasses > 0 {
				centroid = newDraws(g.opt.Seed, forCentroids, uint64(classOf(node)))
			}
			for range dim {
				x := noise.noise()
				if g.opt.NumClasses > 0 {
					x += int64(float64(float64(centroid.noise()) * scale))
				}
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)*featureUnit))
			}
		}
		out[0] = piece{b, to - from}
	})
}

// npyHeader returns the header of a NumPy 1.0 file with a C-order float32 matrix; the data
// starts at a multiple of 64 bytes (numpy/lib/format.py).
func npyHeader(rows, cols int64) string {
	dict := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
	const before = 10 // magic, version, length
	length := (before+len(dict)+1+63)/64*64 - before
	size := binary.LittleEndian.AppendUint16(nil, uint16(length))
	return fmt.Sprintf("\x93NUMPY\x01\x00%s%-*s\n", size, length-1, dict)
}

// writeTables writes features, labels and splits, as far as the options want them.
func (g *generator) writeTables(ctx context.Context, classOf func(node int64) int) error {
	if g.opt.NumFeatures > 0 {
		if err := g.writeFeatures(ctx, classOf); err != nil {
			return err
		}
	}
	if g.opt.NumClasses > 0 {
		if err := g.writeLabels(ctx, classOf); err != nil {
			return err
		}
		return g.writeSplit(ctx)
	}
	return nil
}
