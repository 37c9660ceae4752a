// Package rows holds the kernels of feature rows that both sides need: conversion between float32 and the types that
// rows are stored in (SPEC 5.4), and the gather that brings rows of several tables into one float32 matrix.
//
// A kernel computes each element by itself, so results don't depend on how rows are cut among threads, and all
// are safe for concurrent use on memory that doesn't overlap. Nothing here imports another package of ours.
package rows

import (
	"fmt"
	"math"
)

// Type is what the elements of stored rows are. Its numbers are this package's own.
type Type uint8

// Types of rows.
const (
	F32  Type = iota // IEEE binary32: the row itself
	F16              // IEEE binary16
	BF16             // the upper half of a binary32
	I8               // two's complement, times the scale of its column
)

var typeNames = [...]string{F32: "f32", F16: "f16", BF16: "bf16", I8: "int8"}

// String gives the word of --dtype.
func (t Type) String() string { return typeNames[t] }

// Parse is the inverse of Type.String.
func Parse(name string) (Type, bool) {
	for t, n := range typeNames {
		if n == name {
			return Type(t), true
		}
	}
	return 0, false
}

// SizeBytes returns the size of an element.
func (t Type) SizeBytes() int {
	switch t {
	case F32:
		return 4
	case I8:
		return 1
	}
	return 2
}

// Table is rows in memory, row after row: row i is the bytes i*Cols*SizeBytes and on of Data, little-endian. Data is aligned
// to the size of an element. Scale has Cols elements for I8 and is not read for others.
type Table struct {
	Type  Type
	Cols  int
	Data  []byte
	Scale []float32
}

// NumRows returns the number of rows; 0 for the zero Table.
func (t *Table) NumRows() int {
	if t.Cols == 0 {
		return 0
	}
	return len(t.Data) / (t.Cols * t.Type.SizeBytes())
}

// Decode writes rows first and on, as float32, to out, which has a multiple of Cols elements.
func (t *Table) Decode(out []float32, first int) {
	size := t.Type.SizeBytes()
	in := t.Data[first*t.Cols*size:][:len(out)*size]
	switch t.Type {
	case F32:
		copy(out, view[float32](in))
	case F16:
		DecodeF16(out, view[uint16](in))
	case BF16:
		DecodeBF16(out, view[uint16](in))
	case I8:
		for q := view[int8](in); len(q) > 0; q, out = q[t.Cols:], out[t.Cols:] {
			DecodeI8(out[:t.Cols], q[:t.Cols], t.Scale)
		}
	}
}

// Gather writes row rows[i] of the table, as float32, to row i of out [len(rows), Cols]. Reference:
//
//	for i, r := range rows { t.Decode(out[i*t.Cols:][:t.Cols], int(r)) }
func (t *Table) Gather(out []float32, rows []int32) {
	for i, r := range rows {
		t.Decode(out[i*t.Cols:(i+1)*t.Cols], int(r))
	}
}

// GatherFrom is Gather from several tables of as many columns: row i is row rows[i] of tables[which[i]].
func GatherFrom(out []float32, tables []Table, which []uint8, rows []int32) {
	for i, r := range rows {
		t := &tables[which[i]]
		t.Decode(out[i*t.Cols:(i+1)*t.Cols], int(r))
	}
}

// Encode writes in [n, cols] to out as elements of type t, little-endian; out has n*cols*t.SizeBytes() bytes. scale is that of
// the columns for I8. It returns the place in `in` of the first element that the type can't hold within its
// bound (see ErrorBound): one that is not finite, or beyond the largest number; -1 where there is none. What is written of
// such an element is unspecified.
func Encode(out []byte, in []float32, t Type, scale []float32) int {
	switch t {
	case F32:
		copy(view[float32](out), in)
		return -1
	case F16:
		return EncodeF16(view[uint16](out), in)
	case BF16:
		return EncodeBF16(view[uint16](out), in)
	case I8:
		cols := len(scale)
		for at := 0; at < len(in); at += cols {
			if bad := EncodeI8(view[int8](out[at:at+cols]), in[at:at+cols], scale); bad >= 0 {
				return at + bad
			}
		}
		return -1
	}
	panic(fmt.Sprintf("rows: no type %d", t))
}

// ErrorBound returns the bounds of what Encode and Decode change of a finite x that the type can hold: by at most
// max(relative*|x|, absolute). scale is that of the columns for I8, where the bound holds for the widest column: half a step, and what the float32
// product is rounded by.
func ErrorBound(t Type, scale []float32) (relative, absolute float64) {
	switch t {
	case F16:
		return 0x1p-11, 0x1p-25
	case BF16:
		return 0x1p-8, 0x1p-134
	case I8:
		for _, s := range scale {
			absolute = max(absolute, float64(s)*(0x1p-1+0x1p-17))
		}
	}
	return relative, absolute
}

// MaxF16 is the largest number of binary16.
const MaxF16 = 65504

// F16Of rounds x to the nearest binary16, ties to even: beyond 65520 to infinity, and below 2^-14 to multiples of
// 2^-24. A NaN stays one, quiet.
func F16Of(x float32) uint16 {
	b := math.Float32bits(x)
	sign, abs := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case abs-0x38800000 < 0x477ff000-0x38800000: // 2^-14 to below 65520
		return sign | uint16((abs-0x38000000+0xfff+abs>>13&1)>>13)
	case abs < 0x38800000: // float32 numbers near 1/2 are multiples of 2^-24: the sum rounds as wanted
		return sign | uint16(math.Float32bits(math.Float32frombits(abs)+0.5)-0x3f000000)
	case abs <= 0x7f800000:
		return sign | 0x7c00
	}
	return sign | 0x7e00 | uint16(abs>>13&0x1ff)
}

// F32OfF16 returns the number of a binary16, exactly.
func F32OfF16(h uint16) float32 {
	sign, abs := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case abs-0x400 < 0x7c00-0x400:
		return math.Float32frombits(sign | (abs<<13 + 0x38000000))
	case abs < 0x400:
		return math.Float32frombits(sign | math.Float32bits(float32(int32(abs))*0x1p-24))
	}
	return math.Float32frombits(sign | 0x7f800000 | abs<<13&0x7fffff)
}

// BF16Of rounds x to the nearest bfloat16, ties to even. A NaN stays one, quiet.
func BF16Of(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// F32OfBF16 returns the number of a bfloat16, exactly.
func F32OfBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// EncodeF16 sets out[i] = F16Of(in[i]) and returns the first i whose in[i] isn't finite or whose out[i] isn't; -1 for none.
func EncodeF16(out []uint16, in []float32) int {
	out = out[:len(in)]
	bad := -1
	for i, x := range in {
		b := math.Float32bits(x)
		abs := b & 0x7fffffff
		if abs-0x38800000 < 0x477ff000-0x38800000 {
			out[i] = uint16(b>>16)&0x8000 | uint16((abs-0x38000000+0xfff+abs>>13&1)>>13)
			continue
		}
		h := F16Of(x)
		out[i] = h
		if h&0x7c00 == 0x7c00 && bad < 0 {
			bad = i
		}
	}
	return bad
}

// DecodeF16 sets out[i] = F32OfF16(in[i]).
func DecodeF16(out []float32, in []uint16) {
	out = out[:len(in)]
	for i, h := range in {
		abs := uint32(h & 0x7fff)
		if abs >= 0x7c00 {
			out[i] = F32OfF16(h)
			continue
		}
		// Exact, for zero and subnormal numbers too: shifted, they are subnormal float32 ones.
		x := math.Float32frombits(abs<<13) * 0x1p112
		out[i] = math.Float32frombits(uint32(h&0x8000)<<16 | math.Float32bits(x))
	}
}

// EncodeBF16 is EncodeF16 for bfloat16.
func EncodeBF16(out []uint16, in []float32) int {
	out = out[:len(in)]
	bad := -1
	for i, x := range in {
		b := math.Float32bits(x)
		if b&0x7f800000 == 0x7f800000 {
			out[i] = BF16Of(x)
			if bad < 0 {
				bad = i
			}
			continue
		}
		h := uint16((b + 0x7fff + b>>16&1) >> 16)
		out[i] = h
		if h&0x7f80 == 0x7f80 && bad < 0 {
			bad = i
		}
	}
	return bad
}

// DecodeBF16 sets out[i] = F32OfBF16(in[i]).
func DecodeBF16(out []float32, in []uint16) {
	out = out[:len(in)]
	for i, h := range in {
		out[i] = math.Float32frombits(uint32(h) << 16)
	}
}

// stepsI8 is the number of steps of an int8 to either side; -128 isn't used, so that the steps are symmetric.
const stepsI8 = 127

// ScaleOf returns the scale of a column whose largest |x| is most: most/127, and at least the smallest normal float32, below which
// a step would lose its precision.
func ScaleOf(most float32) float32 { return max(most/stepsI8, 0x1p-126) }

// ColumnMaxima raises most[c] to the largest |x| of column c of in [n, len(most)]. It returns the place of the first element
// that isn't finite, -1 for none.
func ColumnMaxima(most []float32, in []float32) int {
	bad := -1
	for at := 0; at < len(in); at += len(most) {
		for c, x := range in[at : at+len(most)] {
			abs := math.Float32bits(x) & 0x7fffffff
			if abs >= 0x7f800000 {
				if bad < 0 {
					bad = at + c
				}
				continue
			}
			most[c] = max(most[c], math.Float32frombits(abs))
		}
	}
	return bad
}

// EncodeI8 sets out[c] to in[c]/scale[c], rounded to the nearest integer, ties to even, and held within -127 to 127, for one row.
// It returns the first c whose in[c] isn't finite, -1 for none.
func EncodeI8(out []int8, in, scale []float32) int {
	const round = 0x1.8p52 // float64 numbers near it are the integers
	out, scale = out[:len(in)], scale[:len(in)]
	bad := -1
	for c, x := range in {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			if bad < 0 {
				bad = c
			}
			x = 0
		}
		q := float64(x)/float64(scale[c]) + round
		out[c] = int8(min(max(q-round, -stepsI8), stepsI8))
	}
	return bad
}

// DecodeI8 sets out[c] = float32(in[c]) * scale[c] for one row.
func DecodeI8(out []float32, in []int8, scale []float32) {
	out, scale = out[:len(in)], scale[:len(in)]
	for c, q := range in {
		out[c] = float32(q) * scale[c]
	}
}
