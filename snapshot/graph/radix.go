package graph

import "context"

// radixBits is the widest digit: 2048 counters are 16 KiB, which stays in the first-level
// cache beside the streams; wider digits save no pass for the key widths met here.
const radixBits = 11

// keySort holds the two halves of an out-of-place sort. Keys and Vals are the current order;
// a pass writes the spare halves and swaps. Vals (one float32 a key) is nil where keys carry nothing.
type keySort struct {
	Keys, spareKeys []uint64
	Vals, spareVals []float32
}

// sortBits sorts s stably by the key bits lowBit .. lowBit+numBits-1: a least significant digit
// first radix sort, every pass a counting sort over per-thread histograms. The result does not
// depend on threads. ctx is looked at between passes; after an error the order is unspecified.
func (s *keySort) sortBits(ctx context.Context, lowBit, numBits, threads int) error {
	if numBits == 0 || len(s.Keys) < 2 {
		return ctx.Err()
	}
	numPasses := (numBits + radixBits - 1) / radixBits
	width := (numBits + numPasses - 1) / numPasses
	counts := make([][1 << radixBits]int, threads)
	for done := 0; done < numBits; done += width {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.pass(uint(lowBit+done), uint(min(width, numBits-done)), counts)
	}
	return nil
}

// pass sorts stably by the width bits from shift up, with one thread per element of counts.
func (s *keySort) pass(shift, width uint, counts [][1 << radixBits]int) {
	threads := len(counts)
	mask := uint64(1)<<width - 1
	inParallel(threads, func(t int) {
		lo, hi := part(len(s.Keys), t, threads)
		count := &counts[t]
		clear(count[:])
		for _, k := range s.Keys[lo:hi] {
			count[k>>shift&mask&(1<<radixBits-1)]++
		}
	})

	// Counts become the first place of each (digit, thread).
	at := 0
	for d := range int(mask) + 1 {
		first := at
		for t := range threads {
			n := counts[t][d]
			counts[t][d] = at
			at += n
		}
		if at-first == len(s.Keys) {
			return // all keys share this digit: already in order
		}
	}

	inParallel(threads, func(t int) {
		lo, hi := part(len(s.Keys), t, threads)
		place := &counts[t]
		to := s.spareKeys
		if s.Vals == nil {
			for _, k := range s.Keys[lo:hi] {
				p := &place[k>>shift&mask&(1<<radixBits-1)]
				to[*p] = k
				*p++
			}
			return
		}
		vals, toVals := s.Vals[lo:hi], s.spareVals
		for i, k := range s.Keys[lo:hi] {
			p := &place[k>>shift&mask&(1<<radixBits-1)]
			to[*p], toVals[*p] = k, vals[i]
			*p++
		}
	})
	s.Keys, s.spareKeys = s.spareKeys, s.Keys
	s.Vals, s.spareVals = s.spareVals, s.Vals
}
