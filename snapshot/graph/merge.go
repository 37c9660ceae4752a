package graph

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
)

// sortLen is the most records that a thread sorts in memory at a time, unless memory is short: 128 MiB with its
// other half.
const sortLen = 1 << 23

// merger sorts ranges and merges the repeats in them. It belongs to one thread, which gives it its ranges in order.
type merger struct {
	rows   *Rows
	opt    *Options
	sort   keySort
	buf    *block
	mirror *scatter

	most     int // records to sort at a time
	rangeNow int
	firstRow int32
	to       *block     // of the edges of the range, being filled
	edges    *blockList // of the range
	turned   *keyed     // scratch of turn

	numEdges, numLoops, oneDirectional int64
	lines                              *linePart
}

func newMerger(r *Rows, opt *Options, numRanges int) *merger {
	m := &merger{rows: r, opt: opt, buf: r.store.get(r.weighted, false), most: sortLen, mirror: newScatter(r.store, 0, r.weighted), turned: new(keyed)}
	if numRanges > 0 {
		m.mirror = newScatter(r.store, r.ranges.num(), r.weighted)
	}
	if limit := r.store.limit; limit > 0 && r.store.spill != nil {
		m.most = max(blockLen, min(m.most, int(limit/int64(16*4*r.threads))))
	}
	if opt.sortLen > 0 {
		m.most = opt.sortLen
	}
	if opt.Lines {
		m.lines = newLinePart(r.store, r.weighted)
	}
	return m
}

// mergeRange merges the records of range k into its edges.
func (m *merger) mergeRange(ctx context.Context, k int, lists []blockList) error {
	m.rangeNow, m.firstRow, m.edges, m.to = k, m.rows.ranges.first[k], &m.rows.edges[k], nil
	if err := m.merge(ctx, lists); err != nil {
		return err
	}
	if m.to != nil {
		again, err := m.rows.store.keep(m.edges, m.to)
		m.rows.store.put(again)
		m.to = nil
		if err != nil {
			return err
		}
	}
	if m.lines != nil && m.lines.err != nil {
		return m.lines.err
	}
	return m.mirror.err
}

// merge merges the records of lists, and uses the lists up. More than can be sorted at once are split by their pairs first.
func (m *merger) merge(ctx context.Context, lists []blockList) error {
	n := int64(0)
	for _, l := range lists {
		n += l.n
	}
	if n > int64(m.most) {
		return m.split(ctx, lists)
	}
	m.sort.Keys = slices.Grow(m.sort.Keys[:0], int(n))
	if m.rows.weighted {
		m.sort.Vals = slices.Grow(m.sort.Vals[:0], int(n))
	}
	if err := m.rows.eachBlock(lists, m.buf, func(b *block) {
		m.sort.Keys = append(m.sort.Keys, b.keys[:b.n]...)
		if b.vals != nil {
			m.sort.Vals = append(m.sort.Vals, b.vals[:b.n]...)
		}
	}); err != nil {
		return err
	}
	for i := range lists {
		m.rows.store.releaseAll(&lists[i])
	}
	m.sort.spareKeys = slices.Grow(m.sort.spareKeys[:0], int(n))[:n]
	if m.sort.Vals != nil {
		m.sort.spareVals = slices.Grow(m.sort.spareVals[:0], int(n))[:n]
	}
	if err := m.sort.sortBits(ctx, 1, m.numBits(), 1); err != nil {
		return err
	}
	return m.mergeSorted()
}

// numBits is the width of the pairs of the range.
func (m *merger) numBits() int {
	r := m.rows
	numRows := r.ranges.first[m.rangeNow+1] - r.ranges.first[m.rangeNow]
	return bits.Len32(uint32(max(numRows-1, 0))) + int(r.pack.colBits+r.pack.relBits)
}

// maxSplit is how many parts split makes.
const maxSplit = 256

// split sends the records to parts by their pairs and merges one after the other. Where they all are of one pair, it takes them as
// they are: lines without weights only have to be counted.
func (m *merger) split(ctx context.Context, lists []blockList) error {
	r := m.rows
	first, last := ^uint64(0), uint64(0)
	if err := m.rows.eachBlock(lists, m.buf, func(b *block) {
		for _, key := range b.keys[:b.n] {
			first, last = min(first, key>>1), max(last, key>>1)
		}
	}); err != nil {
		return err
	}
	if first == last {
		return m.mergeOne(lists, first)
	}
	width := (last-first)/maxSplit + 1
	to := newScatter(r.store, int((last-first)/width)+1, r.weighted)
	if err := m.rows.eachBlock(lists, m.buf, func(b *block) {
		part := &m.turned.to
		for i, key := range b.keys[:b.n] {
			part[i] = uint16((key>>1 - first) / width)
		}
		to.add(part[:b.n], b.keys[:], valsOf(b))
	}); err != nil {
		return err
	}
	for i := range lists {
		r.store.releaseAll(&lists[i])
	}
	parts, err := to.close()
	if err != nil {
		return err
	}
	for k := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.merge(ctx, parts[k:k+1]); err != nil {
			return err
		}
	}
	return nil
}

// valsOf returns the weights of b, nil if there are none.
func valsOf(b *block) []float32 {
	if b.vals == nil {
		return nil
	}
	return b.vals[:]
}

// mergeOne merges records that are all of one pair, without sorting them: more than fit into the memory for it.
func (m *merger) mergeOne(lists []blockList, pair uint64) error {
	if m.rows.weighted {
		n := int64(0)
		for _, l := range lists {
			n += l.n
		}
		row, col := m.ends(pair)
		return fmt.Errorf("nodes %d and %d are listed %d times: their weights don't fit into memory", row, col, n)
	}
	var count lineCount
	err := m.rows.eachBlock(lists, m.buf, func(b *block) {
		for _, key := range b.keys[:b.n] {
			count[key&1]++
		}
	})
	for i := range lists {
		m.rows.store.releaseAll(&lists[i])
	}
	if err != nil {
		return err
	}
	m.count(pair, count, nil)
	return m.keep([]uint64{pair}, nil)
}

// mergeSorted merges the records in sort, in their place.
func (m *merger) mergeSorted() error {
	keys, vals := m.sort.Keys, m.sort.Vals
	n := 0
	for i := 0; i < len(keys); {
		pair := keys[i] >> 1
		if vals == nil && (i+1 == len(keys) || keys[i+1]>>1 != pair) {
			// One line, no weight: nearly all of most graphs.
			if m.lines != nil {
				m.lines.addCode(byte(keys[i] & 1))
			}
			keys[n] = pair
			n++
			i++
			m.numEdges++
			m.oneDirectional++
			if p := m.rows.pack; p.row(pair)+m.firstRow == p.col(pair) {
				m.numLoops++
				m.oneDirectional--
			}
			continue
		}
		first := i
		var count lineCount
		for ; i < len(keys) && keys[i]>>1 == pair; i++ {
			count[keys[i]&1]++
		}
		var weights []float32
		if vals != nil {
			weights = vals[first:i]
			weight, err := m.sum(pair, weights)
			if err != nil {
				return err
			}
			m.count(pair, count, weights)
			vals[n] = weight
		} else {
			m.count(pair, count, nil)
		}
		keys[n] = pair
		n++
	}
	if vals != nil {
		vals = vals[:n]
	}
	return m.keep(keys[:n], vals)
}

// ends returns the row and the col of a pair of the range, as node numbers.
func (m *merger) ends(pair uint64) (row, col int32) {
	p := m.rows.pack
	return m.firstRow + p.row(pair), p.col(pair)
}

// count counts the next pair, which lines list count[0] times as it is and count[1] times the other way round, with weights ascending.
func (m *merger) count(pair uint64, count lineCount, weights []float32) {
	m.numEdges++
	if row, col := m.ends(pair); row == col {
		m.numLoops++
	} else if count[0] == 0 || count[1] == 0 {
		m.oneDirectional++
	}
	if m.lines != nil {
		m.lines.add(count, weights)
	}
}

// sum sorts the weights of the lines of a pair and adds them up.
func (m *merger) sum(pair uint64, weights []float32) (float32, error) {
	sum, ok := sumWeights(weights)
	if ok {
		return float32(sum), nil
	}
	row, col := m.ends(pair)
	e := &EdgeError{Err: ErrWeightSum, Index: -1, Src: row, Dst: col, Weight: sum}
	if m.rows.directed {
		e.Src, e.Dst = col, row
	}
	return 0, e
}

// keep takes distinct pairs, in order: as edges of the range, and the other way round to the ranges of their cols.
func (m *merger) keep(pairs []uint64, vals []float32) error {
	for done := 0; done < len(pairs); {
		if m.to != nil && m.to.n == blockLen {
			again, err := m.rows.store.keep(m.edges, m.to)
			if err != nil {
				return err
			}
			m.to = again
		}
		if m.to == nil {
			m.to = m.rows.store.get(m.rows.weighted, false)
		}
		part := pairs[done:min(len(pairs), done+blockLen-m.to.n)]
		copy(m.to.keys[m.to.n:], part)
		var weights []float32
		if vals != nil {
			weights = vals[done : done+len(part)]
			copy(m.to.vals[m.to.n:], weights)
		}
		m.to.n += len(part)
		done += len(part)
		m.turn(part, weights)
	}
	return m.mirror.err
}

// turn sends up to a block of pairs the other way round; loops only where both ways are apart.
func (m *merger) turn(pairs []uint64, vals []float32) {
	r, out := m.rows, m.turned
	p, first := r.pack, r.ranges.first
	n := 0
	for i, pair := range pairs {
		row, col := p.row(pair)+m.firstRow, p.col(pair)
		k := r.ranges.of[uint32(col)>>r.ranges.shift]
		at := n & (blockLen - 1)
		out.to[at] = k
		out.keys[at] = p.key(col-first[k], row, p.rel(pair), 0) >> 1
		if vals != nil {
			out.vals[at] = vals[i]
		}
		if row != col || r.directed {
			n++
		}
	}
	m.mirror.add(out.to[:n], out.keys[:n], out.vals[:])
}
