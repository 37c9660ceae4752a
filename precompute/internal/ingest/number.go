package ingest

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/prelift/prelift/snapshot"
)

// looseInt parses an integer with an optional sign and any number of leading zeros. ok is false if b is none, fits
// is false if it isn't an int64.
func looseInt(b []byte) (v int64, ok, fits bool) {
	digits := b
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		digits = b[1:]
	}
	if len(digits) == 0 {
		return 0, false, false
	}
	for _, c := range digits {
		if c-'0' > 9 {
			return 0, false, false
		}
	}
	digits = bytes.TrimLeft(digits, "0")
	if len(digits) == 0 {
		return 0, true, true
	}
	if b[0] == '-' {
		digits = append([]byte{'-'}, digits...)
	}
	v, fits = snapshot.CanonicalInt(digits)
	return v, true, fits
}

// scanInt reads the canonical non-negative integer of 1 to 18 digits at t[i] and returns it with the offset of the
// first byte behind it. At least 8 bytes can be read there, and the digits end before t does. Anything else gives
// ok false: the careful path decides.
func scanInt(t []byte, i int) (v int64, next int, ok bool) {
	word := digitsAt(t, i)
	n := digitCount(word)
	if n == 8 {
		j := i
		for t[j]-'0' <= 9 && j-i < 19 {
			v = v*10 + int64(t[j]-'0')
			j++
		}
		return v, j, j-i <= 18 && t[i] != '0'
	}
	if n == 0 || n > 1 && byte(word) == 0 {
		return 0, i, false
	}
	return decimal(word, n), i + n, true
}

// wordBytes is how many bytes digitsAt loads.
const wordBytes = 8

// digitsAt loads the 8 bytes at t[i]; a byte that is a digit becomes its value.
func digitsAt(t []byte, i int) uint64 {
	return binary.LittleEndian.Uint64(t[i:]) ^ 0x3030303030303030
}

// digitCount returns how many digits a word of digitsAt starts with: a byte is one if its high nibble is zero and it
// stays below 10.
func digitCount(word uint64) int {
	return bits.TrailingZeros64(((word+0x0606060606060606)|word)&0xf0f0f0f0f0f0f0f0) >> 3
}

// decimal returns the value of the first n digits of a word of digitsAt, n from 1 to 7. It adds them up in three
// multiplications: pairs, fours, eight.
func decimal(word uint64, n int) int64 {
	word <<= uint(64-8*n) & 63
	word = word*10 + word>>8
	return int64(uint32(((word&0x000000FF000000FF)*0x000F424000000064 + ((word>>16)&0x000000FF000000FF)*0x0000271000000001) >> 32))
}

// numberFault says why a field is no number.
type numberFault uint8

const (
	numberOK numberFault = iota
	numberEmpty
	numberComma  // digits with a comma
	numberSyntax // not plain decimal or exponent notation
	numberNaN    // nan or inf in words
	numberRange  // doesn't fit in float32
)

// String gives the words that follow the value in an error.
func (f numberFault) String() string {
	return [...]string{"", "is empty", "is not a number", "is not a number", "is not a finite number", "doesn't fit in a finite float32"}[f]
}

// hint gives the hint that goes with the words.
func (f numberFault) hint() string {
	switch f {
	case numberEmpty:
		return "fill it, or leave the column out"
	case numberComma:
		return "decimal comma? write a point"
	case numberSyntax:
		return "only plain decimal or exponent notation"
	}
	return ""
}

// decimalPlaces are the powers of ten that float32 holds exactly.
var decimalPlaces = [...]float32{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10}

// parseFloat32 reads [sign] digits [. digits] [e [sign] digits] as the nearest float32; one side of the point may
// lack digits. -0 becomes 0.
func parseFloat32(b []byte) (float32, numberFault) {
	i, mantissa, digits, places := 0, uint64(0), 0, 0
	negative := false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		negative = b[i] == '-'
		i++
	}
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		mantissa = mantissa*10 + uint64(b[i]-'0')
		digits++
	}
	if i < len(b) && b[i] == '.' {
		for i++; i < len(b) && b[i]-'0' <= 9; i++ {
			mantissa = mantissa*10 + uint64(b[i]-'0')
			digits++
			places++
		}
	}
	if digits > 0 && i == len(b) && digits <= 15 && mantissa < 1<<24 && places <= 10 {
		// Both parts are exact, so one division rounds once (Clinger 1990).
		v := float32(mantissa) / decimalPlaces[places]
		if negative && v != 0 {
			v = -v
		}
		return v, numberOK
	}
	if digits > 0 && i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '-' || b[i] == '+') {
			i++
		}
		from := i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		if i == from {
			return 0, numberSyntax
		}
	}
	if digits == 0 || i < len(b) {
		return 0, badNumber(b)
	}
	v, err := strconv.ParseFloat(string(b), 32)
	if err != nil || math.IsInf(v, 0) {
		return 0, numberRange
	}
	return float32(v) + 0, numberOK
}

// vanishes reports whether a number that parseFloat32 reads as 0 is written as another, too small for float32.
func vanishes(b []byte) bool {
	mantissa, _, _ := bytes.Cut(bytes.ToLower(b), []byte{'e'})
	return bytes.ContainsAny(mantissa, "123456789")
}

// badNumber tells apart what isn't plain notation.
func badNumber(b []byte) numberFault {
	if len(b) == 0 {
		return numberEmpty
	}
	switch word := string(bytes.ToLower(bytes.TrimLeft(b[:min(len(b), 10)], "+-"))); word {
	case "nan", "inf", "infinity":
		return numberNaN
	}
	comma := bytes.IndexByte(b, ',')
	if comma >= 0 {
		point := bytes.Clone(b)
		point[comma] = '.'
		if _, fault := parseFloat32(point); fault == numberOK {
			return numberComma
		}
	}
	return numberSyntax
}
