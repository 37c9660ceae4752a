package sample

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/prelift/prelift/snapshot/graph"
)

// The two orders of seeds.
const (
	Locality = "locality"
	Random   = "random"
)

// How a locality order is dealt (DESIGN decision 8).
const (
	runLength     = 32   // seeds that stay together
	maxVariation  = 0.15 // mean total variation between a batch's labels and the split's
	saltsPerRun   = 4    // permutations tried at one run length before it is halved
	orderBatches  = 4    // batches that PickOrder measures
	unitFractions = 32   // bits of a run's place within its stratum
)

// RandomOrder returns the seeds sorted by hash(2, seed, variant, key), equal ones by
// node number.
func RandomOrder(seeds []int32, keys []uint64, seed int64, variant int) []int32 {
	base := graph.Hash(forOrder, uint64(seed), uint64(variant))
	type entry struct {
		draw uint64
		node int32
	}
	entries := make([]entry, len(seeds))
	for i, v := range seeds {
		entries[i] = entry{graph.Fold(base, keys[v]), v}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.draw, b.draw), cmp.Compare(a.node, b.node))
	})
	order := make([]int32, len(seeds))
	for i, e := range entries {
		order[i] = e.node
	}
	return order
}

// Labels says of which classes a node is, for balancing batches. Nil fields mean that
// there is nothing to balance (regression, no labels).
type Labels struct {
	Class      []int32 // [NumNodes], -1 for none
	Bits       []uint8 // [NumNodes, NumClasses], 1 where the node is of the class
	NumClasses int
}

// count adds what node v is of to counts [NumClasses].
func (l *Labels) count(v int32, counts []int64) {
	if l.Class != nil {
		if c := l.Class[v]; c >= 0 {
			counts[c]++
		}
		return
	}
	if l.Bits != nil {
		for c, bit := range l.Bits[int(v)*l.NumClasses:][:l.NumClasses] {
			if bit == 1 {
				counts[c]++
			}
		}
	}
}

// Order puts the seeds of each variant into batches: consecutive BatchSize of the list
// that Variant returns, the last batch perhaps fewer. Every seed is in exactly one batch of each
// variant. An Order is read-only and safe for concurrent use.
type Order struct {
	Seeds     []int32  // node numbers, distinct
	Keys      []uint64 // [NumNodes]
	Place     []int32  // [NumNodes] place of each node in locality order; nil for random order
	Labels    Labels
	BatchSize int
	Seed      int64
}

// NumBatches returns the number of batches of a variant.
func (o *Order) NumBatches() int { return (len(o.Seeds) + o.BatchSize - 1) / o.BatchSize }

// Variant returns the seeds in the order of a variant.
//
// In locality order the seeds, sorted by place, are cut into runs of 32, which are then
// mixed: a run's stratum is its most frequent label, and within it the runs are sorted by hash(3,
// seed, variant, salt, key of the run's first seed). The i-th of a stratum of n runs, with hash h, goes to
//
//	floor((i * 2^32 + floor(h / 2^32)) / n)
//
// of the list, equal ones by h and then by place, so that each stratum is spread evenly. Salts 0 to 3 are
// tried until the mean total variation between a batch's labels and all seeds' is at most
// 0.15, or at most that of random order; then runs of 16, 8, ... 1. If none will do, it is random order.
func (o *Order) Variant(variant int) []int32 {
	if o.Place == nil {
		return RandomOrder(o.Seeds, o.Keys, o.Seed, variant)
	}
	sorted := slices.Clone(o.Seeds)
	slices.SortFunc(sorted, func(a, b int32) int { return cmp.Compare(o.Place[a], o.Place[b]) })
	limit, random := maxVariation, []int32(nil)
	for length := runLength; length >= 1; length /= 2 {
		for salt := range saltsPerRun {
			order := o.deal(sorted, length, variant, salt)
			variation := o.Variation(order)
			if variation > limit && random == nil {
				random = RandomOrder(o.Seeds, o.Keys, o.Seed, variant)
				limit = max(limit, o.Variation(random))
			}
			if variation <= limit {
				return order
			}
		}
	}
	return random
}

// run is consecutive seeds of the locality order on their way to a new place.
type run struct {
	start, end int
	stratum    int
	hash       uint64
	to         uint64
}

// deal mixes the runs of that length by the rule of Variant.
func (o *Order) deal(sorted []int32, length, variant, salt int) []int32 {
	base := graph.Hash(forRun, uint64(o.Seed), uint64(variant), uint64(salt))
	runs := make([]run, 0, (len(sorted)+length-1)/length)
	counts := make([]int64, o.Labels.NumClasses)
	for start := 0; start < len(sorted); start += length {
		end := min(start+length, len(sorted))
		runs = append(runs, run{start, end, o.mostFrequent(sorted[start:end], counts), graph.Fold(base, o.Keys[sorted[start]]), 0})
	}
	slices.SortFunc(runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(a.stratum, b.stratum), cmp.Compare(a.hash, b.hash), cmp.Compare(a.start, b.start))
	})
	for first := 0; first < len(runs); {
		last := first
		for last < len(runs) && runs[last].stratum == runs[first].stratum {
			last++
		}
		for i := first; i < last; i++ {
			offset := uint64(i-first)<<unitFractions | runs[i].hash>>(64-unitFractions)
			runs[i].to, _ = bits.Div64(0, offset, uint64(last-first))
		}
		first = last
	}
	slices.SortFunc(runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.hash, b.hash), cmp.Compare(a.start, b.start))
	})
	order := make([]int32, 0, len(sorted))
	for _, r := range runs {
		order = append(order, sorted[r.start:r.end]...)
	}
	return order
}

// mostFrequent returns the most frequent label of the seeds, the lowest of several; 0
// where there is none. counts is scratch.
func (o *Order) mostFrequent(seeds []int32, counts []int64) int {
	clear(counts)
	for _, v := range seeds {
		o.Labels.count(v, counts)
	}
	most := 0
	for c, n := range counts {
		if n > counts[most] {
			most = c
		}
	}
	return most
}

// Variation returns the mean over batches of the total variation between the labels of the
// batch and those of all seeds: half the sum over classes of the difference of their
// shares. Batches without labels count 0.
func (o *Order) Variation(order []int32) float64 {
	if o.Labels.Class == nil && o.Labels.Bits == nil || len(order) == 0 {
		return 0
	}
	all, batch := make([]int64, o.Labels.NumClasses), make([]int64, o.Labels.NumClasses)
	for _, v := range order {
		o.Labels.count(v, all)
	}
	numAll, total := sum(all), 0.0
	for start := 0; start < len(order); start += o.BatchSize {
		clear(batch)
		for _, v := range order[start:min(start+o.BatchSize, len(order))] {
			o.Labels.count(v, batch)
		}
		numBatch := sum(batch)
		if numBatch == 0 {
			continue
		}
		for c, n := range batch {
			total += math.Abs(float64(n)/float64(numBatch) - float64(all[c])/float64(numAll))
		}
	}
	return total / 2 / float64(o.NumBatches())
}

func sum(counts []int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// NodeCounter says how many distinct nodes a batch of these seeds has: a Sampler, or a CountFunc of any other way to cut batches.
type NodeCounter interface {
	CountNodes(variant int, seeds []int32) int
}

// CountFunc is a NodeCounter.
type CountFunc func(variant int, seeds []int32) int

// CountNodes calls f.
func (f CountFunc) CountNodes(variant int, seeds []int32) int { return f(variant, seeds) }

// PickOrder measures the distinct nodes of four evenly spread batches of variant 0 in
// locality and in random order and returns the name of the order with fewer; random
// where they are equal. o must have Place.
func PickOrder(o *Order, c NodeCounter) string {
	if locality, random := MeasureOrders(o, c); locality < random {
		return Locality
	}
	return Random
}

// MeasureOrders returns the distinct nodes of four evenly spread batches of variant 0, added up, in
// locality and in random order. o must have Place.
func MeasureOrders(o *Order, c NodeCounter) (locality, random int) {
	byChance := *o
	byChance.Place = nil
	return o.countNodes(c), byChance.countNodes(c)
}

func (o *Order) countNodes(c NodeCounter) (numNodes int) {
	order, numBatches := o.Variant(0), o.NumBatches()
	for i := range min(orderBatches, numBatches) {
		start := i * numBatches / min(orderBatches, numBatches) * o.BatchSize
		numNodes += c.CountNodes(0, order[start:min(start+o.BatchSize, len(order))])
	}
	return numNodes
}
