package graph

import (
	"fmt"
	"slices"
	"sort"
)

// VerifyHop1 checks an index against the rows it is of: Check, then each row read bit by bit, as a whole and
// place by place, and Contains for every neighbour, for the numbers beside it, for the node itself and for both
// ends of the range. Each row must have the bucket of its degree. O(E). c must have passed VerifyCSR.
func VerifyHop1(c *CSR, opt HopOptions, h *Hop1) error {
	opt, err := opt.Settle()
	if err != nil {
		return err
	}
	if err := h.Check(1); err != nil {
		return err
	}
	n := c.NumNodes()
	if h.NumNodes() != n {
		return fmt.Errorf("hop1 has %d rows, want %d", h.NumNodes(), n)
	}
	for v := range int32(n) {
		want := slices.DeleteFunc(slices.Clone(c.Row(v)), func(u int32) bool { return u == v })
		if got := h.AppendRow(nil, v); !slices.Equal(got, want) || h.Degree(v) != len(want) {
			return fmt.Errorf("hop1 row %d is %v of degree %d, want %v", v, got, h.Degree(v), want)
		}
		if got := slowRow(h, v); !slices.Equal(got, want) {
			return fmt.Errorf("hop1 row %d is %v bit by bit, want %v", v, got, want)
		}
		bucket := BucketCompact
		switch {
		case len(want) >= opt.HubFrom:
			bucket = BucketHub
		case len(want) >= opt.CompactBelow:
			bucket = BucketSorted
		}
		if h.Bucket(v) != bucket {
			return fmt.Errorf("hop1 row %d of %d neighbours is %v, want %v", v, len(want), h.Bucket(v), bucket)
		}
		for j, u := range want {
			if got := h.Neighbour(v, j); got != u {
				return fmt.Errorf("hop1 neighbour %d of %d is %d, want %d", j, v, got, u)
			}
			before := j > 0 && want[j-1] == u-1
			after := j+1 < len(want) && want[j+1] == u+1
			if !h.Contains(v, u) || h.Contains(v, u-1) != before || u < MaxNodes && h.Contains(v, u+1) != after {
				return fmt.Errorf("hop1 is wrong about %d or a number beside it being a neighbour of %d", u, v)
			}
		}
		for _, u := range []int32{-1, v, 0, int32(n) - 1, int32(n)} {
			if _, in := slices.BinarySearch(want, u); h.Contains(v, u) != in {
				return fmt.Errorf("hop1 says %t to %d being a neighbour of %d", !in, u, v)
			}
		}
	}
	return nil
}

// slowRow reads a row of an index that has passed Check as the comments on Hop1 and on runs describe it, sharing
// no code with the access methods.
func slowRow(h *Hop1, v int32) (row []int32) {
	read := func(data []uint8, at int64, count, universe int, base int32) {
		if count == 0 {
			return
		}
		low := 0
		for universe>>(low+1) >= count {
			low++
		}
		bit := func(i int) int { return int(data[at+int64(i/8)]) >> (i % 8) & 1 }
		lowAt := count + (universe-1)>>low
		for place, j := 0, 0; j < count; place++ {
			if bit(place) == 0 {
				continue
			}
			x := (place - j) << low
			for i := range low {
				x += bit(lowAt+j*low+i) << i
			}
			row = append(row, base+int32(x))
			j++
		}
	}
	n := len(h.Code)
	if h.Code[v] != 255 {
		read(h.Compact, h.GroupStart[v/32]+int64(h.Offset[v]), int(h.Code[v]), n, 0)
		return row
	}
	r := h.GroupLarge[v/32] + int32(h.Offset[v])
	for k := h.LargeChunk[r]; k < h.LargeChunk[r+1]; k++ {
		count, end := 128, n
		if k+1 < h.LargeChunk[r+1] {
			end = int(h.ChunkBase[k+1])
		} else {
			count = int(h.LargeLast[r]) + 1
		}
		read(h.Large, h.LargeStart[r]+int64(h.ChunkStart[k]), count, end-int(h.ChunkBase[k]), h.ChunkBase[k])
	}
	return row
}

// VerifyHop2 checks hop 2 and its audit against the rule of BuildHop2, taken literally: sorted lists for the
// expansions, row by row as the rule has it, and the cap tried from below. Rows are made twice rather than
// kept: 4 bytes an entry of hop 1 and 33 a node. c must have passed VerifyCSR.
func VerifyHop2(c *CSR, keys []uint64, opt HopOptions, h *Hop2, audit Hop2Audit) error {
	opt, err := opt.Settle()
	if err != nil {
		return err
	}
	n := c.NumNodes()
	want := Hop2Audit{Cap: opt.Hop2Cap}
	expand := make([][]int32, n)
	for v := range expand {
		for _, u := range c.Row(int32(v)) {
			if int(u) != v {
				expand[v] = append(expand[v], u)
			}
		}
		want.Hop1Entries += int64(len(expand[v]))
		sort.SliceStable(expand[v], func(i, j int) bool {
			return Hash(4, keys[v], keys[expand[v][i]]) < Hash(4, keys[v], keys[expand[v][j]])
		})
		if len(expand[v]) > opt.ExpandLimit {
			want.NumSampled++
			expand[v] = slices.Clone(expand[v][:opt.ExpandLimit]) // lets go of the rest
		}
	}
	// rowOf returns row v in the order it is met, up to limit nodes; until the next call.
	var row []int32
	listed := make([]bool, n)
	rowOf := func(v, limit int) []int32 {
		row = row[:0]
		for _, u := range expand[v] {
			for _, w := range expand[u] {
				if len(row) == limit {
					break
				}
				if listed[w] || int(w) == v {
					continue
				}
				if _, adjacent := slices.BinarySearch(c.Row(int32(v)), w); !adjacent {
					listed[w] = true
					row = append(row, w)
				}
			}
			if len(row) == limit {
				break
			}
		}
		for _, w := range row {
			listed[w] = false
		}
		return row
	}
	lengths := make([]int, n)
	for v := range lengths {
		lengths[v] = len(rowOf(v, opt.Hop2Cap))
	}
	total := func(limit int) (sum int64) {
		for _, length := range lengths {
			sum += int64(min(length, limit))
		}
		return sum
	}
	want.NumUncut = total(opt.Hop2Cap)
	if want.NumUncut > 5*want.Hop1Entries {
		want.Forced = true
		for want.Cap = 0; total(want.Cap+1) <= 5*want.Hop1Entries; want.Cap++ {
		}
	}
	want.NumEntries = total(want.Cap)
	for _, length := range lengths {
		if length >= want.Cap {
			want.NumCut++
		}
	}
	if audit != want {
		return fmt.Errorf("hop2 audit is %+v, want %+v", audit, want)
	}
	if len(h.Indptr) != n+1 || h.Indptr[0] != 0 || h.Indptr[n] != int64(len(h.Indices)) || want.NumEntries != h.Indptr[n] {
		return fmt.Errorf("hop2 has %d rows and %d entries, want %d and %d", len(h.Indptr)-1, len(h.Indices), n, want.NumEntries)
	}
	for v := range n {
		row := rowOf(v, min(lengths[v], want.Cap))
		slices.Sort(row)
		if h.Indptr[v+1] < h.Indptr[v] || h.Indptr[v+1] > want.NumEntries || !slices.Equal(h.Row(int32(v)), row) {
			return fmt.Errorf("hop2 row %d is not %v", v, row)
		}
	}
	return nil
}

// Check checks what Row relies on and what every hop-2 list promises, without the rule that chose it: offsets,
// bounds, ascending rows that hold neither their node nor a neighbour of it, and no other component. labels are
// those of Components. O(N + entries * log degree).
func (h *Hop2) Check(c *CSR, labels []int32) error {
	if err := VerifyCSR(c.NumNodes(), &CSR{Indptr: h.Indptr, Indices: h.Indices}, false); err != nil {
		return fmt.Errorf("hop2: %w", err)
	}
	for v := range int32(c.NumNodes()) {
		for _, w := range h.Row(v) {
			if _, adjacent := slices.BinarySearch(c.Row(v), w); adjacent || w == v || labels[w] != labels[v] {
				return fmt.Errorf("hop2 row %d of component %d holds %d of component %d, a neighbour: %t", v, labels[v], w, labels[w], adjacent)
			}
		}
	}
	return nil
}
