package graph

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// An Elias-Fano run holds count >= 1 strictly ascending numbers below universe, in numBits(count,
// universe) bits from a byte on; bit i of the run is bit i%8 of byte i/8. With
//
//	low = floor(log2(universe/count))
//
// number j is split into its low bits and the rest, high[j]. First come count + (universe-1)>>low bits,
// all 0 but for the places high[j] + j; then the low bits of all numbers, low bits each. That is at most 2
// bits a number more than log2(universe/count), where the least possible is 1.44 more (Elias, "Efficient
// storage and retrieval by content and address of static files", J. ACM 21, 1974; Fano 1971).
//
// Number j is the place of the j-th 1, less j, above its low bits. Both count and universe are known from
// elsewhere, so a run has no header. Reads are 64 bits wide: slackBytes must follow the last run.
//
// The first part has at most 3*count bits, so finding the j-th 1 in it costs 3*count/64 steps; runs here have
// at most 255 numbers.

// slackBytes follow the last run of an array, so that a 64-bit read at its last byte stays inside.
const slackBytes = 8

// lowBits returns the number of low bits of a run. count is 1..universe.
func lowBits(count, universe uint32) uint { return uint(bits.Len32(universe/count)) - 1 }

// highBits returns the number of bits before the low ones.
func highBits(count, universe uint32, low uint) int { return int(count) + int((universe-1)>>low) }

// runBytes returns the size of a run, rounded up to a byte; 0 for no numbers.
func runBytes(count, universe uint32) int64 {
	if count == 0 {
		return 0
	}
	low := lowBits(count, universe)
	return (int64(highBits(count, universe, low)) + int64(count)*int64(low) + 7) / 8
}

// putRun writes the numbers values[i]-base to the zeroed bytes that data begins with. It collects 64 bits at a time, and touches no
// byte behind the run, where another goroutine may be writing.
func putRun(data []byte, values []int32, base int32, universe uint32) {
	count := uint32(len(values))
	if count == 0 {
		return
	}
	low := lowBits(count, universe)
	word, at := uint64(0), 0 // bits of the eight bytes from at on
	for j, v := range values {
		place := int(uint32(v-base)>>low) + j
		if next := place >> 6 << 3; next != at {
			binary.LittleEndian.PutUint64(data[at:], word)
			word, at = 0, next
		}
		word |= 1 << (place & 63)
	}
	orBytes(data[at:], word)
	if low == 0 {
		return
	}
	place := highBits(count, universe, low)
	word, at = 0, place>>6<<3
	filled := uint(place & 63)
	mask := uint32(1)<<low - 1
	for _, v := range values {
		x := uint64(uint32(v-base) & mask)
		word |= x << filled
		if filled += low; filled > 64 {
			orUint64(data[at:], word)
			at += 8
			filled -= 64
			word = x >> (low - filled)
		}
	}
	orBytes(data[at:], word)
}

// orUint64 adds the bits of word to eight bytes.
func orUint64(data []byte, word uint64) {
	binary.LittleEndian.PutUint64(data, binary.LittleEndian.Uint64(data)|word)
}

// orBytes adds the bits of word to as many bytes as it has.
func orBytes(data []byte, word uint64) {
	for i := 0; word != 0; i++ {
		data[i] |= byte(word)
		word >>= 8
	}
}

// bitsAt returns 57 or more bits from bit at on.
func bitsAt(data []byte, at int) uint64 {
	return binary.LittleEndian.Uint64(data[at>>3:]) >> (at & 7)
}

// runAt returns number j of the run that data begins with. j must be in 0..count-1.
func runAt(data []byte, count, universe uint32, j int) uint32 {
	low := lowBits(count, universe)
	at, k := 0, j
	for {
		w := binary.LittleEndian.Uint64(data[at:])
		ones := bits.OnesCount64(w)
		if k < ones {
			high := uint32(at<<3 + int(select64(w, uint(k))) - j)
			return high<<low | uint32(bitsAt(data, highBits(count, universe, low)+j*int(low)))&(1<<low-1)
		}
		k -= ones
		at += 8
	}
}

// runFind returns the j with number j == x, and whether there is one. x must be below universe.
func runFind(data []byte, count, universe, x uint32) (j int, ok bool) {
	low := lowBits(count, universe)
	high := int(x >> low)
	// Skip high zeros: behind them begin the numbers with x's high part, and the ones among the
	// skipped bits are the numbers before.
	place := 0
	if k := high - 1; k >= 0 {
		for at := 0; ; at += 8 {
			w := ^binary.LittleEndian.Uint64(data[at:])
			zeros := bits.OnesCount64(w)
			if k < zeros {
				place = at<<3 + int(select64(w, uint(k))) + 1
				break
			}
			k -= zeros
		}
	}
	j = place - high
	lowAt := highBits(count, universe, low)
	for ; j < int(count) && data[place>>3]>>(place&7)&1 == 1; place, j = place+1, j+1 {
		switch got := uint32(bitsAt(data, lowAt+j*int(low))) & (1<<low - 1); {
		case got == x&(1<<low-1):
			return j, true
		case got > x&(1<<low-1):
			return j, false
		}
	}
	return j, false
}

// appendRun appends base + each number of the run to dst.
func appendRun(dst []int32, data []byte, count, universe uint32, base int32) []int32 {
	if count == 0 {
		return dst
	}
	low := lowBits(count, universe)
	lowAt := highBits(count, universe, low)
	for at, j := 0, 0; ; at += 8 {
		for w := binary.LittleEndian.Uint64(data[at:]); w != 0; w &= w - 1 {
			high := uint32(at<<3 + bits.TrailingZeros64(w) - j)
			dst = append(dst, base+int32(high<<low|uint32(bitsAt(data, lowAt))&(1<<low-1)))
			lowAt += int(low)
			if j++; j == int(count) {
				return dst
			}
		}
	}
}

// checkRun reads the run that data begins with into *numbers and checks that it has count numbers, strictly
// ascending and below universe, and that no bit is set behind them up to the next byte. count must be at most
// universe, and the run and the slack must lie in data.
func checkRun(data []byte, count, universe uint32, numbers *[]int32) error {
	*numbers = (*numbers)[:0]
	if count == 0 {
		return nil
	}
	low := lowBits(count, universe)
	numHigh := highBits(count, universe, low)
	ones := 0
	for at := 0; at < numHigh; at += 64 {
		w := binary.LittleEndian.Uint64(data[at>>3:])
		if left := numHigh - at; left < 64 {
			w &= 1<<left - 1
		}
		ones += bits.OnesCount64(w)
	}
	if ones != int(count) {
		return fmt.Errorf("a run has %d of its %d numbers", ones, count)
	}
	*numbers = appendRun(*numbers, data, count, universe, 0)
	previous := int32(-1)
	for _, x := range *numbers {
		if x <= previous || uint32(x) >= universe {
			return fmt.Errorf("a run of numbers below %d has %d after %d", universe, x, previous)
		}
		previous = x
	}
	if end := numHigh + int(count)*int(low); end&7 != 0 && data[end>>3]>>(end&7) != 0 {
		return fmt.Errorf("a run has bits set behind its end")
	}
	return nil
}

// select64 returns the place of the k-th 1 of w, k < OnesCount64(w): byte sums in parallel find the byte
// (Vigna, "Broadword implementation of rank/select queries", WEA 2008), a table the bit.
func select64(w uint64, k uint) uint {
	const every = 0x0101010101010101
	sums := w - w>>1&0x5555555555555555
	sums = sums&0x3333333333333333 + sums>>2&0x3333333333333333
	sums = (sums + sums>>4) & 0x0F0F0F0F0F0F0F0F * every // byte i: ones in bytes 0..i
	over := (sums | 0x80*every) - uint64(k+1)*every      // top bit of byte i: more than k ones in bytes 0..i
	shift := uint(bits.TrailingZeros64(over&(0x80*every))) - 7
	before := uint(sums << 8 >> shift & 0xFF)
	return shift + uint(selectByte[(k-before)&7][w>>shift&0xFF])
}

// selectByte[k][b] is the place of the k-th 1 of b.
var selectByte = func() (table [8][256]uint8) {
	for b := range 256 {
		k := 0
		for place := range uint8(8) {
			if b>>place&1 == 1 {
				table[k][b] = place
				k++
			}
		}
	}
	return table
}()
