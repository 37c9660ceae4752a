package graph

import (
	"fmt"
	"math"
	"slices"
)

// Where a line of the edge list goes. The numbers are those of a split's parts (SPEC 5.1).
const (
	HeldNone  uint8 = 0 // into the message graph
	HeldValid uint8 = 2
	HeldTest  uint8 = 3
)

// Pairs is a list of node pairs.
type Pairs struct{ Src, Dst []int32 }

// HoldoutOptions steer Holdout.
type HoldoutOptions struct {
	Valid, Test float64 // share of the distinct pairs, each >= 0, together at most 1
	Seed        int64
	// SpareLast keeps, of every node that would lose all its pairs, the one of largest hash: no node is
	// isolated, but then leaves are never tested, and on sparse graphs less is held out than was asked for.
	SpareLast bool
}

// Holdout chooses pairs for link prediction: part[i] says where the edge src[i] -> dst[i] goes. An unordered
// pair of two nodes is held out as a whole, all of its lines and both directions (also of a directed graph), by
//
//	h = hash(5, Seed, smaller key, larger key) / 2^64:  valid where h < Valid, test where h < Valid + Test
//
// (keys as in SPEC 8). So whether a pair is held out depends on itself and the seed alone (with SpareLast, on
// the other pairs of its ends too), not on the order of lines, and the numbers of pairs held out are those
// asked for up to the chance of a coin: within 4 sqrt(share * pairs) nearly always. Self loops are never held
// out. A node may lose all its pairs unless SpareLast is set; it then stays in the graph as an isolated one.
//
// Errors: lengths that differ, nodes out of range (an *EdgeError) and shares out of range.
func Holdout(src, dst []int32, keys []uint64, opt HoldoutOptions) (part []uint8, err error) {
	if !(opt.Valid >= 0 && opt.Test >= 0 && opt.Valid+opt.Test <= 1) {
		return nil, fmt.Errorf("holdout of %g for valid and %g for test: want shares >= 0, together at most 1", opt.Valid, opt.Test)
	}
	if err := checkPairs(src, dst, len(keys)); err != nil {
		return nil, err
	}
	base := Fold(Hash(forHoldout), uint64(opt.Seed))
	draw := func(i int) uint64 {
		a, b := keys[src[i]], keys[dst[i]]
		return Fold(Fold(base, min(a, b)), max(a, b))
	}
	// last[v] is the largest hash of v's pairs.
	var last []uint64
	if opt.SpareLast {
		last = make([]uint64, len(keys))
		for i := range src {
			if src[i] != dst[i] {
				h := draw(i)
				last[src[i]], last[dst[i]] = max(last[src[i]], h), max(last[dst[i]], h)
			}
		}
	}
	part = make([]uint8, len(src))
	for i := range src {
		if src[i] == dst[i] {
			continue
		}
		h := draw(i)
		if opt.SpareLast && (h == last[src[i]] || h == last[dst[i]]) {
			continue
		}
		switch x := float64(h>>11) * 0x1p-53; {
		case x < opt.Valid:
			part[i] = HeldValid
		case x < opt.Valid+opt.Test:
			part[i] = HeldTest
		}
	}
	return part, nil
}

// HoldoutPairs marks the lines of given pairs: part[i] is HeldValid or HeldTest where {src[i], dst[i]} is among
// them in either direction. missing counts the listed pairs, each once, that no line has: they are positives
// that the graph never had. Errors: lengths that differ, nodes out of range, a self loop among the pairs (they
// wrap an *EdgeError and name the list), and a pair listed for both valid and test.
func HoldoutPairs(numNodes int, src, dst []int32, valid, test Pairs) (part []uint8, missing int64, err error) {
	if err := checkPairs(src, dst, numNodes); err != nil {
		return nil, 0, err
	}
	lists := [2][]uint64{}
	for k, list := range []Pairs{valid, test} {
		name := [...]string{"valid", "test"}[k]
		if err := checkPairs(list.Src, list.Dst, numNodes); err != nil {
			return nil, 0, fmt.Errorf("%s pairs: %w", name, err)
		}
		for i := range list.Src {
			if list.Src[i] == list.Dst[i] {
				return nil, 0, fmt.Errorf("%s pairs: %w", name, &EdgeError{Err: ErrLoop, Index: i, Src: list.Src[i], Dst: list.Dst[i]})
			}
			lists[k] = append(lists[k], unordered(list.Src[i], list.Dst[i]))
		}
		slices.Sort(lists[k])
		lists[k] = slices.Compact(lists[k])
	}
	found := [2][]bool{make([]bool, len(lists[0])), make([]bool, len(lists[1]))}
	for _, pair := range lists[0] {
		if _, both := slices.BinarySearch(lists[1], pair); both {
			return nil, 0, fmt.Errorf("pair %d, %d is held out for both valid and test", pair>>32, uint32(pair))
		}
	}
	part = make([]uint8, len(src))
	for i := range src {
		pair := unordered(src[i], dst[i])
		for k, list := range lists {
			if at, ok := slices.BinarySearch(list, pair); ok {
				part[i] = HeldValid + uint8(k)
				found[k][at] = true
			}
		}
	}
	for _, f := range found {
		for _, ok := range f {
			if !ok {
				missing++
			}
		}
	}
	return part, missing, nil
}

// HeldPairs returns the distinct pairs of the lines whose part is which, ascending by (Src, Dst): arcs as they
// are when directed, else with the smaller node as Src. It does not depend on the order of lines.
func HeldPairs(src, dst []int32, part []uint8, which uint8, directed bool) Pairs {
	var packed []uint64
	for i, p := range part {
		if p != which {
			continue
		}
		if directed {
			packed = append(packed, uint64(src[i])<<32|uint64(dst[i]))
		} else {
			packed = append(packed, unordered(src[i], dst[i]))
		}
	}
	slices.Sort(packed)
	packed = slices.Compact(packed)
	pairs := Pairs{make([]int32, len(packed)), make([]int32, len(packed))}
	for i, p := range packed {
		pairs.Src[i], pairs.Dst[i] = int32(p>>32), int32(uint32(p))
	}
	return pairs
}

// KeepUnheld returns the lines of part HeldNone, in order, moved to the front of the arrays given. weight may
// be nil.
func KeepUnheld(src, dst []int32, weight []float32, part []uint8) ([]int32, []int32, []float32) {
	to := 0
	for i, p := range part {
		if p != HeldNone {
			continue
		}
		src[to], dst[to] = src[i], dst[i]
		if weight != nil {
			weight[to] = weight[i]
		}
		to++
	}
	if weight != nil {
		weight = weight[:to]
	}
	return src[:to], dst[:to], weight
}

// checkPairs checks lengths and bounds.
func checkPairs(src, dst []int32, numNodes int) error {
	if len(src) != len(dst) {
		return fmt.Errorf("%d src and %d dst: lengths differ", len(src), len(dst))
	}
	if numNodes > math.MaxInt32 {
		return fmt.Errorf("%d nodes: a graph has 0 to %d", numNodes, int64(MaxNodes))
	}
	for i := range src {
		if uint32(src[i]) >= uint32(numNodes) || uint32(dst[i]) >= uint32(numNodes) {
			return &EdgeError{Err: ErrNodeRange, Index: i, Src: src[i], Dst: dst[i]}
		}
	}
	return nil
}

// unordered packs a pair with the smaller node above.
func unordered(a, b int32) uint64 {
	return uint64(min(a, b))<<32 | uint64(max(a, b))
}
