package cpu

// alignFloats is the alignment of matrices in the arena: 64 bytes, a cache line.
const alignFloats = 16

// arena hands out float32 slices until reset. It grows by further slabs inside a step and
// joins them into one at reset, so that after the largest step it allocates no more.
type arena struct {
	slab []float32
	used int
	more []([]float32) // slabs added since the last reset
	need int           // floats asked for since the last reset, with alignment
}

// take returns n floats with unspecified contents.
func (a *arena) take(n int) []float32 {
	padded := (n + alignFloats - 1) / alignFloats * alignFloats
	a.need += padded
	if a.used+padded <= len(a.slab) {
		s := a.slab[a.used : a.used+n : a.used+n]
		a.used += padded
		return s
	}
	s := make([]float32, padded)
	a.more = append(a.more, s)
	return s[:n:n]
}

// reset ends the life of all slices handed out.
func (a *arena) reset() {
	if a.need > len(a.slab) {
		a.slab = nil // let it go before its successor comes
		clear(a.more)
		a.slab = make([]float32, a.need+a.need/8) // an eighth more, so that growth comes in few steps
	}
	clear(a.more)
	a.more = a.more[:0]
	a.used, a.need = 0, 0
}
