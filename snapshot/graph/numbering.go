package graph

import (
	"math/bits"
	"unsafe"
)

// numbering maps the ends of edges to node numbers. Every edge looks two up, so what it takes of the cache counts: where numbers
// ascend by steps of 0 and 1, as those of sorted integers with gaps do, two bits an end are enough.
type numbering struct {
	table []int32 // nil where steps do, and where ends are numbers already
	steps []steps64
}

// steps64 says where the numbers of 64 consecutive ends ascend.
type steps64 struct {
	up     uint64 // bit i: the number of end i is one more than that of the end before
	before int32  // number of the end before the first, -1 where there is none and the first has number 0
}

// newNumbering makes number fast to look up. nil stands for no change. alloc is that of ListOptions.
func newNumbering(number []int32, alloc func(n int) []byte) numbering {
	if len(number) == 0 {
		return numbering{table: number}
	}
	if steps := stepsOf(number); steps != nil {
		return numbering{steps: steps}
	}
	if size := 4 * len(number); alloc != nil && size > 1<<20 {
		// Memory in huge pages, if alloc gives any, spares most of the address translation.
		b := alloc(size + 4096)
		table := unsafe.Slice((*int32)(unsafe.Pointer(&b[0])), len(number))
		copy(table, number)
		return numbering{table: table}
	}
	return numbering{table: number}
}

// stepsOf returns number as steps, nil if it isn't made of steps of 0 and 1 from 0 on.
func stepsOf(number []int32) []steps64 {
	if number[0] != 0 {
		return nil
	}
	steps := make([]steps64, (len(number)+63)/64)
	last := int32(-1)
	for v, n := range number {
		s := &steps[v>>6]
		if v&63 == 0 {
			s.before = last
		}
		switch n - last {
		case 0:
		case 1:
			s.up |= 1 << (v & 63)
		default:
			return nil
		}
		last = n
	}
	return steps
}

// of returns the number of end v.
func (n *numbering) of(v int32) int32 {
	switch {
	case n.steps != nil:
		return n.steps[v>>6].of(v)
	case n.table != nil:
		return n.table[v]
	}
	return v
}

func (s *steps64) of(v int32) int32 {
	return s.before + int32(bits.OnesCount64(s.up<<(63-v&63)))
}

// apply puts the numbers of ends in their places.
func (n *numbering) apply(ends []int32) {
	switch {
	case n.steps != nil:
		steps := n.steps
		for i, v := range ends {
			ends[i] = steps[v>>6].of(v)
		}
	case n.table != nil:
		table := n.table
		for i, v := range ends {
			ends[i] = table[v]
		}
	}
}
