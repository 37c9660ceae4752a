package sample

import "math"

// candidate draws kept by a selection before it is cut down to those that are wanted.
const (
	blockLen = 512 // entries of a row that are looked at between two cuts
	slackLen = 64  // candidates over twice those wanted that wait for a cut
)

// selection keeps the places of the smallest draws of a row, in the order of the row. It looks at rows in blocks, so
// that its memory is bounded by the number wanted and not by the degree.
type selection struct {
	draws   []uint64
	places  []int32
	n       int // candidates held: draws[:n] and places[:n], places ascending
	scratch []uint64
}

// reserve makes room for n candidates more.
func (s *selection) reserve(n int) {
	if need := s.n + n; len(s.draws) < need {
		draws, places := make([]uint64, 2*need), make([]int32, 2*need)
		copy(draws, s.draws[:s.n])
		copy(places, s.places[:s.n])
		s.draws, s.places = draws, places
	}
}

// cut leaves the k candidates of the smallest draws, of equal ones those that come first, and returns the largest
// draw left. With k candidates or fewer it leaves all and returns the largest number. k is at least 1.
func (s *selection) cut(k int) (limit uint64) {
	if s.n <= k {
		return math.MaxUint64
	}
	s.scratch = append(s.scratch[:0], s.draws[:s.n]...)
	limit = smallest(s.scratch, k-1)
	ties := k
	for _, x := range s.draws[:s.n] {
		if x < limit {
			ties--
		}
	}
	n := 0
	for i, x := range s.draws[:s.n] {
		if x > limit {
			continue
		}
		if x == limit {
			if ties == 0 {
				continue
			}
			ties--
		}
		s.draws[n], s.places[n] = x, s.places[i]
		n++
	}
	s.n = n
	return limit
}

// smallest returns the i-th smallest of a, from 0, and reorders a: quickselect (Hoare, CACM 1961) with the median of
// three, then insertion. O(len(a)) expected, as draws are hashes; the answer doesn't depend on luck.
func smallest(a []uint64, i int) uint64 {
	for len(a) > 12 {
		lo, mid, hi := a[0], a[len(a)/2], a[len(a)-1]
		pivot := max(min(lo, mid), min(max(lo, mid), hi))
		// a[:l] < pivot, a[l:r] == pivot, a[r:] > pivot, in the end.
		l, at, r := 0, 0, len(a)
		for at < r {
			switch x := a[at]; {
			case x < pivot:
				a[at], a[l] = a[l], x
				l++
				at++
			case x > pivot:
				r--
				a[at], a[r] = a[r], x
			default:
				at++
			}
		}
		switch {
		case i < l:
			a = a[:l]
		case i < r:
			return pivot
		default:
			a, i = a[r:], i-r
		}
	}
	for j := 1; j < len(a); j++ {
		x, to := a[j], j
		for ; to > 0 && a[to-1] > x; to-- {
			a[to] = a[to-1]
		}
		a[to] = x
	}
	return a[i]
}

// likelyLimit is a draw below which k of n uniform ones lie but for one case in ten thousand or so: the
// quantile of k and four standard deviations more. The largest number where that is about all of them.
func likelyLimit(k, n int) uint64 {
	want := float64(k) + 4*math.Sqrt(float64(k)) + 4
	share := want / float64(n)
	if share >= 1 {
		return math.MaxUint64
	}
	return uint64(share * 0x1p64)
}
