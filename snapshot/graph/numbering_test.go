package graph

import (
	"math/rand/v2"
	"testing"
)

// TestNumbering looks ends up in every form a numbering takes, against the plain table.
func TestNumbering(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	alloc := func(n int) []byte { return make([]byte, n) }
	ascending := func(n int, share float64) []int32 {
		number, next := make([]int32, n), int32(-1)
		for v := range number {
			if rng.Float64() < share {
				next++
			}
			number[v] = max(next, 0)
		}
		return number
	}
	shuffled := make([]int32, 1<<19)
	for i, v := range rng.Perm(len(shuffled)) {
		shuffled[i] = int32(v)
	}
	for name, c := range map[string]struct {
		number  []int32
		inSteps bool
	}{
		"none":           {nil, false},
		"one":            {[]int32{0}, true},
		"itself":         {firstNumbers(1000), true},
		"gaps":           {ascending(10_000, 0.6), true},
		"mostly gaps":    {ascending(4096, 0.01), true},
		"full words":     {firstNumbers(128), true},
		"from 1":         {[]int32{1, 2, 3}, false},
		"a step of 2":    {[]int32{0, 1, 3, 4}, false},
		"descending":     {[]int32{0, 1, 0}, false},
		"far, then back": {[]int32{0, 5, 1}, false},
		"shuffled":       {shuffled, false},
	} {
		n := newNumbering(c.number, alloc)
		if (n.steps != nil) != c.inSteps {
			t.Errorf("%s: in steps: %t", name, n.steps != nil)
		}
		ends := firstNumbers(len(c.number))
		n.apply(ends)
		for v, want := range c.number {
			if got := n.of(int32(v)); got != want || ends[v] != want {
				t.Fatalf("%s: end %d has number %d and %d, want %d", name, v, got, ends[v], want)
			}
		}
		if c.number == nil && n.of(7) != 7 {
			t.Errorf("%s: end 7 is %d", name, n.of(7))
		}
	}
}
