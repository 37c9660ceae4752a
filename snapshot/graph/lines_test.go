package graph

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// Parts of any length, joined, are the lines of all their edges, and a cursor that skips comes where one does that walks.
func TestJoinLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	counts := []lineCount{{1, 0}, {0, 1}, {1, 1}, {2, 0}, {0, 254}, {255, 0}, {256, 1 << 40}, {0, 2}}
	for trial := range 400 {
		kinds := 1 + rng.IntN(len(counts))
		first := rng.IntN(len(counts) - kinds + 1)
		store := &blockStore{}
		spill := &memorySpill{}
		if trial%2 == 1 {
			store = &blockStore{limit: 1, spill: spill}
		}
		wholePart := newLinePart(&blockStore{}, false)
		var parts []*linePart
		for range 1 + rng.IntN(5) {
			part := newLinePart(store, trial%3 == 0)
			for range rng.IntN(14) {
				count := counts[first+rng.IntN(kinds)]
				part.add(count, nil)
				wholePart.add(count, nil)
			}
			parts = append(parts, part)
		}
		whole, err := joinLines([]*linePart{wholePart}, nil)
		if err != nil {
			t.Fatal(err)
		}
		joined, err := joinLines(parts, nil)
		if err != nil {
			t.Fatal(err)
		}
		if (joined.Code == nil) != (whole.Code == nil) || !slices.Equal(joined.Code, whole.Code) || joined.All != whole.All ||
			joined.N != whole.N || !slices.Equal(joined.Count, whole.Count) || !slices.Equal(joined.Large, whole.Large) {
			t.Fatalf("trial %d: joined %+v, want %+v", trial, joined, whole)
		}
		if err := joined.Check(false); err != nil {
			t.Fatalf("trial %d: %v", trial, err)
		}
		stop := rng.Int64N(joined.N + 1)
		walked, skipped := lineCursor{l: joined}, lineCursor{l: joined}
		for range stop {
			walked.next()
		}
		skipped.skip(stop / 3)
		skipped.skip(stop - stop/3)
		if walked != skipped {
			t.Fatalf("trial %d: walked to %+v, skipped to %+v", trial, walked, skipped)
		}
	}
}

func TestLinesCheck(t *testing.T) {
	good := func(weighted bool) *Lines {
		p := newLinePart(&blockStore{}, false)
		var weights []float32
		for _, n := range []int64{1, 2, 300, 255, 1} {
			if weighted {
				weights = make([]float32, n)
			}
			p.add(lineCount{n, 0}, weights)
		}
		l, err := joinLines([]*linePart{p}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, c := range []struct {
		name     string
		weighted bool
		change   func(l *Lines)
	}{
		{"codes missing", false, func(l *Lines) { l.Code = l.Code[:1] }},
		{"codes behind the last", false, func(l *Lines) { l.Code[1] |= 1 << 2 }},
		{"a code more", false, func(l *Lines) { l.Code[0] |= LinesCounted }},
		{"a code less", false, func(l *Lines) { l.Code[0] &^= LinesCounted << 2 }},
		{"all counted", false, func(l *Lines) { l.Code, l.All = nil, LinesCounted }},
		{"a count more", false, func(l *Lines) { l.Count = append(l.Count, 2, 0) }},
		{"a large count more", false, func(l *Lines) { l.Large = append(l.Large, 255) }},
		{"a large count less", false, func(l *Lines) { l.Large = l.Large[:1] }},
		{"a large count that isn't", false, func(l *Lines) { l.Large[0] = 254 }},
		{"large counts that overflow", false, func(l *Lines) { l.Large[0], l.Large[1] = 1<<63, 1<<63 }},
		{"weights of lines without", false, func(l *Lines) { l.Weights = []float32{1} }},
		{"a weight more", true, func(l *Lines) { l.Weights = append(l.Weights, 1) }},
		{"a weight less", true, func(l *Lines) { l.Weights = l.Weights[1:] }},
	} {
		l := good(c.weighted)
		if err := l.Check(c.weighted); err != nil {
			t.Fatal(err)
		}
		if c.change(l); l.Check(c.weighted) == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
}

// Bytes come back in order, from memory and from the disk; a full disk is an error that stays.
func TestByteList(t *testing.T) {
	for _, vals := range []bool{false, true} {
		for _, limit := range []int64{0, 1, 100 << 10, 1 << 20} {
			rng := rand.New(rand.NewPCG(9, uint64(limit)))
			spill := &memorySpill{}
			store := &blockStore{limit: limit, spill: spill}
			l := byteList{store: store, vals: vals}
			var want []byte
			for len(want) < 5*blockLen*8+17 {
				b := make([]byte, rng.IntN(3)*rng.IntN(60_000)+rng.IntN(9))
				for i := range b {
					b[i] = byte(rng.Uint32())
				}
				want = append(want, b...)
				if err := l.write(b); err != nil {
					t.Fatal(err)
				}
			}
			var got []byte
			if err := l.each(func(b []byte) { got = append(got, b...) }); err != nil || !slices.Equal(got, want) || l.n != int64(len(want)) {
				t.Errorf("vals %t, limit %d: %d bytes of %d, the same: %t, %v", vals, limit, len(got), len(want), slices.Equal(got, want), err)
			}
			if store.kept != 0 || (limit > 0 && limit < 1<<19) != (spill.puts > 0) {
				t.Errorf("vals %t, limit %d: %d bytes kept, %d blocks spilled", vals, limit, store.kept, spill.puts)
			}
		}
	}
	p := newLinePart(&blockStore{limit: 1, spill: &memorySpill{failAt: 2}}, false)
	for range 3 * blockLen * 8 {
		p.add(lineCount{2, 2}, nil)
	}
	if _, err := joinLines([]*linePart{newLinePart(&blockStore{}, false), p}, nil); !errors.Is(err, errSpill) {
		t.Errorf("got %v, want the spill's error", err)
	}
}
