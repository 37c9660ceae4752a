package model

import (
	"math"

	"github.com/prelift/prelift/trainer/internal/backend"
)

// What a key is for, so that draws for different ends never meet.
const (
	keyDropout = 1
	keyInit    = 2
)

// glorot returns rows*cols values uniform in (-a, a), a = sqrt(6/(rows+cols)), as a pure
// function of the seed, the name and the place.
func glorot(seed uint64, name string, rows, cols int) []float32 {
	words := []uint64{keyInit, seed}
	for i := 0; i < len(name); i++ {
		words = append(words, uint64(name[i]))
	}
	key := backend.Key(words...)
	limit := math.Sqrt(6 / float64(rows+cols))
	w := make([]float32, rows*cols)
	for i := range w {
		u := float64(backend.Mix64(key+backend.Golden*uint64(i+1))>>11) / (1 << 53) // [0, 1)
		w[i] = float32(limit * (2*u - 1))
	}
	return w
}
