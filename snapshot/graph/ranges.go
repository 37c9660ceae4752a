package graph

import "math/bits"

const (
	maxRanges = 1 << 10 // so that each can have an open block per thread
	maxBins   = 1 << 16
)

// ranges cuts the nodes 0..N-1 into runs of about as many edge ends each, so that the edges of one are sorted in the
// cache. A run is made of whole bins of 1<<shift nodes.
type ranges struct {
	first []int32  // [runs+1] the first node of each; the last is N
	of    []uint16 // [bins] the run of a bin
	shift uint
}

func (r *ranges) num() int { return len(r.first) - 1 }

// binShift returns the bits of a node number below those of its bin.
func binShift(numNodes int) uint {
	return uint(max(0, bits.Len(uint(max(numNodes-1, 0)))-bits.Len(maxBins-1)))
}

// cutRanges cuts numNodes nodes into runs of about want ends, and at most maxRows nodes, where counts says how many ends there are in
// each bin, or a sample of them scaled up. It makes at most maxRanges runs unless maxRows needs more.
func cutRanges(numNodes int, counts []int64, want, maxRows int64) ranges {
	r := ranges{shift: binShift(numNodes), of: make([]uint16, max(len(counts), 1)), first: []int32{0}}
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	want = max(want, (total+maxRanges/2-1)/(maxRanges/2)) // a run ends up with up to twice as many
	var inRun int64
	for bin, n := range counts {
		from := int64(bin) << r.shift
		if rows := from - int64(r.first[len(r.first)-1]); rows > 0 && (inRun+n > want || rows+1<<r.shift > maxRows) {
			r.first = append(r.first, int32(from))
			inRun = 0
		}
		inRun += n
		r.of[bin] = uint16(len(r.first) - 1)
	}
	r.first = append(r.first, int32(numNodes))
	return r
}
