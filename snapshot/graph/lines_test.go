package graph

import (
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
		whole := &Lines{}
		var parts []*Lines
		for range 1 + rng.IntN(5) {
			part := &Lines{}
			for range rng.IntN(14) {
				count := counts[first+rng.IntN(kinds)]
				part.add(count, nil)
				whole.add(count, nil)
			}
			parts = append(parts, part)
		}
		want := slices.Clone(whole.Code)
		joined := joinLines(parts)
		whole.elide()
		if (joined.Code == nil) != (whole.Code == nil) || joined.Code != nil && !slices.Equal(joined.Code, want) || joined.All != whole.All ||
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
		l := &Lines{}
		var weights []float32
		for _, n := range []int64{1, 2, 300, 255, 1} {
			if weighted {
				weights = make([]float32, n)
			}
			l.add(lineCount{n, 0}, weights)
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
