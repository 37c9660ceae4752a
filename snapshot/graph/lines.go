package graph

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
)

// Lines says which lines of the input became which distinct edge, edges in the order of Rows (by row, then col, then
// relation): what is needed to say what a changed list of lines would give.
type Lines struct {
	N int64 // edges
	// Code holds 2 bits an edge, four to a byte, the first in the lowest bits, and zeros behind the last. It is nil where all edges
	// have the code All.
	Code []byte
	All  byte

	// Count holds, for each edge with LinesCounted, in order, how many lines list it as it is, and how many the other way round. 255
	// stands for the next of Large, which holds all counts from 255 up.
	Count []uint8
	Large []uint64
	// Weights, of weighted edges, are those of the lines of edges with LinesCounted, ascending within each; never -0.
	Weights []float32
}

// The codes of Lines.Code. The row of an undirected edge is its smaller end, of a directed one its dst.
const (
	LinesForward  = 0 // one line: undirected, its smaller end as src
	LinesBackward = 1 // one line, the other way round
	LinesBoth     = 2 // two lines, one each way (without weights)
	LinesCounted  = 3
)

// lineCount is how many lines list an edge as it is, and how many the other way round.
type lineCount [2]int64

// codeOf returns the code of an edge.
func codeOf(count lineCount, weighted bool) byte {
	switch {
	case count == lineCount{1, 0}:
		return LinesForward
	case count == lineCount{0, 1}:
		return LinesBackward
	case count == lineCount{1, 1} && !weighted:
		return LinesBoth
	}
	return LinesCounted
}

// At returns the code of edge i.
func (l *Lines) At(i int64) byte {
	if l.Code == nil {
		return l.All
	}
	return l.Code[i>>2] >> (2 * (i & 3)) & 3
}

// allCodes[c] is a byte of four codes c.
var allCodes = [4]byte{0x00, 0x55, 0xAA, 0xFF}

// NumCounted returns the number of edges with LinesCounted.
func (l *Lines) NumCounted() int64 { return int64(len(l.Count) / 2) }

// elide drops the codes if they are all the same.
func (l *Lines) elide() {
	if l.Code == nil || l.N == 0 {
		l.Code = nil
		return
	}
	first := l.Code[0] & 3
	whole := l.Code[:l.N/4]
	if len(whole) > 0 && (whole[0] != allCodes[first] || !bytes.Equal(whole[1:], whole[:len(whole)-1])) {
		return
	}
	for i := l.N &^ 3; i < l.N; i++ {
		if l.At(i) != first {
			return
		}
	}
	l.Code, l.All = nil, first
}

// Check checks what makes a Cursor safe: that the arrays fit each other. weighted says whether the edges have weights.
func (l *Lines) Check(weighted bool) error {
	if l.Code != nil && int64(len(l.Code)) != (l.N+3)/4 {
		return fmt.Errorf("%d bytes of codes for %d edges", len(l.Code), l.N)
	}
	if l.Code != nil && l.N&3 != 0 && l.Code[len(l.Code)-1]>>(2*(l.N&3)) != 0 {
		return fmt.Errorf("codes behind those of %d edges", l.N)
	}
	counted := l.countCodes(0, l.N)
	if int64(len(l.Count)) != 2*counted {
		return fmt.Errorf("%d counts of lines for %d counted edges", len(l.Count), counted)
	}
	large, lines := 0, uint64(0)
	for i, n := range l.Count {
		count := uint64(n)
		if n == math.MaxUint8 {
			if large == len(l.Large) {
				return fmt.Errorf("count %d of lines is large, but only %d counts are", i, large)
			}
			if count = l.Large[large]; count < math.MaxUint8 || count > math.MaxInt64-lines {
				return fmt.Errorf("large count %d of lines is %d", large, count)
			}
			large++
		}
		lines += count
	}
	if large != len(l.Large) {
		return fmt.Errorf("%d large counts of lines, %d are used", len(l.Large), large)
	}
	if !weighted {
		lines = 0
	}
	if uint64(len(l.Weights)) != lines {
		return fmt.Errorf("%d weights of lines for %d lines", len(l.Weights), lines)
	}
	return nil
}

// countCodes returns how many of edges from to to-1 have LinesCounted.
func (l *Lines) countCodes(from, to int64) int64 {
	if l.Code == nil {
		if l.All == LinesCounted {
			return to - from
		}
		return 0
	}
	n := int64(0)
	for ; from < to && from&3 != 0; from++ {
		n += int64(l.At(from) / LinesCounted)
	}
	for ; from+4 <= to; from += 4 {
		b := l.Code[from>>2]
		n += int64(bits.OnesCount8(b & (b >> 1) & 0x55))
	}
	for ; from < to; from++ {
		n += int64(l.At(from) / LinesCounted)
	}
	return n
}

// lineCursor walks the edges of Lines in order. The zero value but for l stands before the first.
type lineCursor struct {
	l                            *Lines
	edge, counted, large, weight int64
}

// next returns the lines of the next edge. weights, of edges with LinesCounted, is nil without weights; a single line has the edge's own.
func (c *lineCursor) next() (count lineCount, weights []float32) {
	code := c.l.At(c.edge)
	c.edge++
	switch code {
	case LinesForward:
		return lineCount{1, 0}, nil
	case LinesBackward:
		return lineCount{0, 1}, nil
	case LinesBoth:
		return lineCount{1, 1}, nil
	}
	return c.take()
}

// take returns the lines of the next edge with LinesCounted.
func (c *lineCursor) take() (count lineCount, weights []float32) {
	for i, n := range c.l.Count[2*c.counted : 2*c.counted+2] {
		if count[i] = int64(n); n == math.MaxUint8 {
			count[i] = int64(c.l.Large[c.large])
			c.large++
		}
	}
	c.counted++
	if c.l.Weights != nil {
		n := count[0] + count[1]
		weights = c.l.Weights[c.weight : c.weight+n]
		c.weight += n
	}
	return count, weights
}

// skip passes over n edges.
func (c *lineCursor) skip(n int64) {
	for range c.l.countCodes(c.edge, c.edge+n) {
		c.take()
	}
	c.edge += n
}
