package graph

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTranspose(t *testing.T) {
	for range 300 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		numDst, numSrc := rng.IntN(20), rng.IntN(30)
		indptr := []int64{0}
		var indices []int32
		for range numDst {
			if numSrc > 0 && rng.IntN(4) > 0 { // else an empty row
				for range rng.IntN(12) { // unsorted, with repeats
					indices = append(indices, rng.Int32N(int32(numSrc)))
				}
			}
			indptr = append(indptr, int64(len(indices)))
		}

		// Slow: look for each src through all rows.
		wantIndptr, wantIndices, wantEdge := []int64{0}, []int32{}, []int64{}
		for s := range numSrc {
			for d := range numDst {
				for e := indptr[d]; e < indptr[d+1]; e++ {
					if int(indices[e]) == s {
						wantIndices, wantEdge = append(wantIndices, int32(d)), append(wantEdge, e)
					}
				}
			}
			wantIndptr = append(wantIndptr, int64(len(wantIndices)))
		}
		gotIndptr, gotIndices, gotEdge := Transpose(numDst, numSrc, indptr, indices)
		if !slices.Equal(gotIndptr, wantIndptr) || !slices.Equal(gotIndices, wantIndices) || !slices.Equal(gotEdge, wantEdge) {
			t.Fatalf("seed %d: got %v %v %v, want %v %v %v", seed, gotIndptr, gotIndices, gotEdge, wantIndptr, wantIndices, wantEdge)
		}
		if err := VerifyTranspose(numDst, numSrc, indptr, indices, gotIndptr, gotIndices, gotEdge); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		// Twice is the block again, its rows sorted.
		backIndptr, backIndices, _ := Transpose(numSrc, numDst, gotIndptr, gotIndices)
		for d := range numDst {
			slices.Sort(indices[indptr[d]:indptr[d+1]])
		}
		if !slices.Equal(backIndptr, indptr) || !slices.Equal(backIndices, indices) {
			t.Fatalf("seed %d: twice gives %v %v, want %v %v", seed, backIndptr, backIndices, indptr, indices)
		}
	}
}

func TestVerifyTransposeFaults(t *testing.T) {
	indptr, indices := []int64{0, 2, 3}, []int32{2, 0, 2}
	for _, tc := range []struct {
		name string
		do   func(tIndptr []int64, tIndices []int32, tEdge []int64)
	}{
		{"none", func([]int64, []int32, []int64) {}},
		{"wrong dst", func(_ []int64, i []int32, _ []int64) { i[0] = 1 }},
		{"dst negative", func(_ []int64, i []int32, _ []int64) { i[0] = -1 }},
		{"wrong edge", func(_ []int64, _ []int32, e []int64) { e[0] = 0 }},
		{"edge too large", func(_ []int64, _ []int32, e []int64) { e[2] = 3 }},
		{"edge twice", func(_ []int64, i []int32, e []int64) { i[2], e[2] = 0, 0 }},
		{"offsets", func(p []int64, _ []int32, _ []int64) { p[1] = 2 }},
		{"offset too large", func(p []int64, _ []int32, _ []int64) { p[1] = 9 }},
	} {
		tIndptr, tIndices, tEdge := Transpose(2, 3, indptr, indices)
		tc.do(tIndptr, tIndices, tEdge)
		if err := VerifyTranspose(2, 3, indptr, indices, tIndptr, tIndices, tEdge); (err == nil) != (tc.name == "none") {
			t.Errorf("%s: got %v", tc.name, err)
		}
	}
}
