package synth

import "math/bits"

// golden is 2^64 divided by the golden ratio, made odd: the increment of splitmix64.
const golden = 0x9e3779b97f4a7c15

// mix is the finaliser of splitmix64 (Steele, Lea & Flood, OOPSLA 2014; Stafford's Mix13), a
// bijection of 64 bits.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// purpose separates the draws of one seed by what they are for. The numbers enter the
// output: never reuse or renumber one.
type purpose uint64

const (
	forClasses    purpose = 1 // permutation: which nodes are in which class
	forSplit      purpose = 2 // permutation: which nodes are in which split
	forPropensity purpose = 3 // a node's degree propensity
	forPairs      purpose = 4 // the pairs that a node owns
	forCentroids  purpose = 5 // a class's feature centroid
	forNoise      purpose = 6 // a node's feature noise
	forEdges      purpose = 7 // the two ends of one R-MAT edge
	forIDs        purpose = 8 // permutation: external ids of R-MAT nodes and of entities
	forRelIDs     purpose = 9 // permutation: external ids of relations
	forTriples    purpose = 10
	forShifts     purpose = 11 // a relation's shift
)

// draws is one sequence of random numbers: splitmix64 started at a hash of what it is for.
type draws struct{ state uint64 }

// newDraws returns the sequence of item index under the given seed and purpose.
func newDraws(seed uint64, p purpose, index uint64) draws {
	return draws{mix(mix(mix(seed+golden)+uint64(p)*golden) + index*golden)}
}

// next returns 64 uniform bits.
func (d *draws) next() uint64 {
	d.state += golden
	return mix(d.state)
}

// below returns a uniform integer in [0, n), n > 0, off by at most n/2^64 in probability.
func (d *draws) below(n uint64) uint64 {
	hi, _ := bits.Mul64(d.next(), n)
	return hi
}

// unit returns a uniform float64 in [0, 1), a multiple of 2^-53.
func (d *draws) unit() float64 { return float64(d.next()>>11) * (1.0 / (1 << 53)) }

// noise returns a nearly normal integer of mean 0 and standard deviation noiseStd: the sum of
// four uniform 16-bit numbers. It lies within 3.46 standard deviations.
func (d *draws) noise() int64 {
	r := d.next()
	return int64(r&0xffff+r>>16&0xffff+r>>32&0xffff+r>>48) - 2*0xffff
}

// noiseStd is sqrt(4 * (2^32 - 1) / 12), rounded.
const noiseStd = 37837

// permutation is a random bijection of [0, n): a Feistel network over the smallest power of
// two that holds n, walked until the value is inside (Black & Rogaway, CT-RSA 2002). A
// walk takes fewer than two steps on average.
type permutation struct {
	n                   uint64
	leftBits, rightBits uint
	keys                [6]uint64
}

// newPermutation returns the bijection of [0, n) for seed and purpose, n >= 1.
func newPermutation(seed uint64, p purpose, n int64) permutation {
	width := uint(bits.Len64(uint64(n - 1)))
	perm := permutation{n: uint64(n), leftBits: width / 2, rightBits: width - width/2}
	d := newDraws(seed, p, 0)
	for i := range perm.keys {
		perm.keys[i] = d.next()
	}
	return perm
}

// at returns where i goes.
func (p *permutation) at(i int64) int64 {
	x := uint64(i)
	for {
		for round := range p.keys {
			x = p.round(x, round)
		}
		if x < p.n {
			return int64(x)
		}
	}
}

// round xors a hash of one half into the other, which loses nothing.
func (p *permutation) round(x uint64, round int) uint64 {
	left, right := x>>p.rightBits, x&(1<<p.rightBits-1)
	if round%2 == 0 {
		left ^= mix(right+p.keys[round]) & (1<<p.leftBits - 1)
	} else {
		right ^= mix(left+p.keys[round]) & (1<<p.rightBits - 1)
	}
	return left<<p.rightBits | right
}
