package graph

import (
	"fmt"
)

// VerifyHoldout checks part, one a line, against HoldoutByHash's rule with a map of pairs, in the words of the rule.
func VerifyHoldout(src, dst []int32, keys []uint64, opt HoldoutOptions, part []uint8) error {
	if len(part) != len(src) {
		return fmt.Errorf("%d parts for %d lines", len(part), len(src))
	}
	type pair [2]int32
	of := func(i int) pair { return pair{min(src[i], dst[i]), max(src[i], dst[i])} }
	draw := func(p pair) uint64 {
		return Hash(5, uint64(opt.Seed), min(keys[p[0]], keys[p[1]]), max(keys[p[0]], keys[p[1]]))
	}
	held := map[pair]uint8{}
	strongest := make([]pair, len(keys)) // the pair that SpareLast leaves each node
	for v := range strongest {
		strongest[v] = pair{-1, -1}
	}
	for i := range src {
		p := of(i)
		if p[0] == p[1] {
			continue
		}
		switch x := float64(draw(p)>>11) / (1 << 53); {
		case x < opt.Valid:
			held[p] = HeldValid
		case x < opt.Valid+opt.Test:
			held[p] = HeldTest
		}
		for _, v := range p {
			if s := strongest[v]; s[0] < 0 || draw(p) > draw(s) {
				strongest[v] = p
			}
		}
	}
	if opt.SpareLast {
		for _, p := range strongest {
			delete(held, p)
		}
	}
	for i, got := range part {
		if want := held[of(i)]; got != want {
			return fmt.Errorf("line %d (%d -> %d) is held out as %d, want %d", i, src[i], dst[i], got, want)
		}
	}
	return nil
}
