package backend

import (
	"fmt"
	"math"
)

// Mix64 is the output function of SplitMix64 (Steele, Lea and Flood 2014; the constants
// are Stafford's variant 13): a bijection of 64-bit words whose bits look random. All
// random draws of the trainer come from it, as pure functions of what they are for.
func Mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Golden is SplitMix64's increment, 2^64 divided by the golden ratio, made odd.
const Golden = 0x9e3779b97f4a7c15

// Key folds words into one 64-bit key; the order of the words counts. It serves the draws
// inside the trainer and is not SPEC 8's hash, which has an exclusive or where this adds.
func Key(words ...uint64) uint64 {
	var h uint64
	for _, w := range words {
		h = Mix64(h + Golden + w)
	}
	return h
}

// Drop says which elements of a matrix dropout zeroes: a pure function of Key, which
// stands for (seed, step, layer), and of the element's place. The zero Drop keeps all.
//
// Each 64-bit word serves four neighbouring columns with 16 bits each: element (r, c) of a
// matrix with cols columns takes word Mix64(Key + Golden*(1 + r*ceil(cols/4) + c/4)) and of it
// the bits 16*(c%4) and up, a number below 65536. It is kept when the number is at
// least Threshold.
type Drop struct {
	Key       uint64
	Threshold uint32 // 0 keeps all; at most 65535
}

// MakeDrop returns the Drop for probability p in [0, 1) and a key. p is rounded to a
// multiple of 1/65536 (0.5 is exact), and Scale uses the rounded value, so the expectation is
// exact. It panics on a p outside [0, 1): commands check their flags.
func MakeDrop(p float64, key uint64) Drop {
	if !(p >= 0 && p < 1) {
		panic(fmt.Sprintf("backend: dropout probability %v is not in [0, 1)", p))
	}
	return Drop{Key: key, Threshold: uint32(min(math.Round(p*65536), 65535))}
}

// Scale returns 1/(1-p), the factor on what is kept.
func (d Drop) Scale() float32 { return float32(65536 / float64(65536-d.Threshold)) }

// Word returns the word for the columns 4*group to 4*group+3 of row r; groups is
// ceil(cols/4).
func (d Drop) Word(r, groups, group int) uint64 {
	return Mix64(d.Key + Golden*(1+uint64(r)*uint64(groups)+uint64(group)))
}

// Keep reports whether element (r, c) of a matrix with cols columns is kept. It is the
// definition; kernels draw a word once for four columns.
func (d Drop) Keep(r, c, cols int) bool {
	w := d.Word(r, (cols+3)/4, c/4) >> (16 * (c % 4))
	return uint32(w&0xffff) >= d.Threshold
}
