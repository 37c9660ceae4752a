package synth

import (
	"math"
	"math/bits"
)

// The degree propensity is a Pareto variable bounded to [1, maxPropensity] with tail exponent
// 4/3, so degrees fall off as d^-7/3, within the 2 to 3 that Clauset, Shalizi & Newman
// (SIAM Review 51, 2009) find in data. 4/3 is chosen because x^(-3/4) is two square roots and a
// division, which every machine rounds alike. The largest propensity is 21 times the mean.
const (
	maxPropensity  = 64
	propensityUnit = 1 << 10 // fixed point of a propensity
)

// propensity returns the weight of one item, in [propensityUnit, maxPropensity*propensityUnit].
// By inversion: x = q^(-3/4) with q uniform in (maxPropensity^(-4/3), 1], and 64^(-4/3) = 1/256.
func propensity(d draws) uint64 {
	q := 1 - float64(d.unit()*(255.0/256))
	root := math.Sqrt(q)
	x := 1 / float64(root*math.Sqrt(root))
	return uint64(float64(x * propensityUnit))
}

// weighted draws items of [0, n) in proportion to integer weights, also from any
// run of consecutive items, in constant expected time.
type weighted struct {
	cum   []uint64 // len n+1, cum[0] = 0: item i owns [cum[i], cum[i+1])
	guide []uint32 // guide[b]: the item that owns b<<shift
	shift uint
}

// newWeighted returns the distribution of n items; weight(i) > 0, and the sum of the weights
// must stay below 2^63.
func newWeighted(n int, weight func(i int) uint64) weighted {
	w := weighted{cum: make([]uint64, n+1)}
	for i := range n {
		w.cum[i+1] = w.cum[i] + weight(i)
	}
	total := w.total()
	// About one bucket an item.
	w.shift = uint(max(0, bits.Len64(total)-bits.Len64(uint64(n))))
	w.guide = make([]uint32, total>>w.shift+1)
	item := 0
	for b := range w.guide {
		for item < n-1 && w.cum[item+1] <= uint64(b)<<w.shift {
			item++
		}
		w.guide[b] = uint32(item)
	}
	return w
}

// total returns the sum of all weights.
func (w *weighted) total() uint64 { return w.cum[len(w.cum)-1] }

// weight returns the weight of item i.
func (w *weighted) weight(i int) uint64 { return w.cum[i+1] - w.cum[i] }

// owner returns the item that owns x, x < total.
func (w *weighted) owner(x uint64) int {
	item := int(w.guide[x>>w.shift])
	for w.cum[item+1] <= x {
		item++
	}
	return item
}

// draw returns an item of [from, to), not empty, in proportion to the weights.
func (w *weighted) draw(d *draws, from, to int) int {
	return w.owner(w.cum[from] + d.below(w.cum[to]-w.cum[from]))
}

// share returns floor(whole * part / total) for part <= total, exactly.
func share(whole, part, total uint64) uint64 {
	if part >= total {
		return whole
	}
	hi, lo := bits.Mul64(whole, part)
	quotient, _ := bits.Div64(hi, lo, total) // hi < total because part < total
	return quotient
}

// capped spreads total over the items so that item i gets about want(i) and at most limit(i).
// want is called once for each i in order. It returns the running sums, len n+1. What an item can't take
// goes to the next ones that can, then to the first ones; the limits must sum to total or more.
func capped(n int, total int64, want, limit func(i int) int64) []int64 {
	starts := make([]int64, n+1)
	var excess int64
	for i := range n {
		k := want(i) + excess
		excess = max(0, k-limit(i))
		starts[i+1] = starts[i] + k - excess
	}
	if excess == 0 {
		return starts
	}
	var added, previous int64
	for i := range n {
		count := starts[i+1] - previous
		previous = starts[i+1]
		more := min(excess, limit(i)-count)
		excess -= more
		added += more
		starts[i+1] += added
	}
	if excess != 0 || starts[n] != total {
		panic("synth: capped: the limits are too small for the total")
	}
	return starts
}
