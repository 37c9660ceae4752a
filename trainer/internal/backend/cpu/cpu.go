// Package cpu is the backend on the processor's cores, in plain Go: kernel set "go".
//
// Work is cut over output rows, and sums run in a fixed order (edge order, inner-index
// order, chunks of fixed size in order), so the results are the same bits for any number of
// threads. Products are rounded before they are added (float32(a*b)), so that no compiler
// fuses them and every architecture gives the same bits, and the fast twins to come can.
// math.Exp and math.Log are the exceptions: they differ between architectures in the last bit
// of a float64.
package cpu

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/prelift/prelift/trainer/internal/backend"
)

// Options of New.
type Options struct {
	Threads      int   // goroutines that compute, the caller's included; 0 = GOMAXPROCS
	ScratchBytes int64 // first size of the step arena; it grows when a step needs more
}

// Backend is the CPU's backend.Backend. Its matrices live in the Go heap or in the
// caller's memory (Wrap).
type Backend struct {
	threads int
	pool    *pool
	scratch arena
	err     error
	closed  bool

	lossSum   float64
	lossCount int64

	// Each operation keeps its task here, so that none is allocated per call.
	spmm spmmTask
	gemm gemmTask
	flip transposeTask
	elem elemTask
	rows rowTask
	loss lossTask

	partialSums []float64 // of ColSums and the losses
}

var _ backend.Backend = (*Backend)(nil)

// New starts a backend; Close ends it.
func New(o Options) *Backend {
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	b := &Backend{threads: o.Threads, pool: newPool(o.Threads)}
	if n := int(o.ScratchBytes / 4); n > 0 {
		b.scratch.slab = make([]float32, n)
	}
	return b
}

// Name returns "cpu".
func (b *Backend) Name() string { return "cpu" }

// KernelSet returns "go".
func (b *Backend) KernelSet() string { return "go" }

// Threads returns the number of goroutines that compute.
func (b *Backend) Threads() int { return b.threads }

// Sync returns the first failure; there is nothing to wait for.
func (b *Backend) Sync() error { return b.err }

var errClosed = errors.New("cpu: the backend is closed")

// Close stops the workers. A second Close does nothing.
func (b *Backend) Close() error {
	if !b.closed {
		b.closed = true
		b.pool.close()
		if b.err == nil {
			b.err = errClosed
		}
		b.scratch = arena{}
	}
	return nil
}

// run does a task's parts unless the backend has failed, and keeps a fault as its
// failure.
func (b *Backend) run(op string, t task, numParts int) {
	if b.err != nil {
		return
	}
	if addr, fault := b.pool.run(t, numParts); fault {
		b.err = &backend.Fault{Op: op, Addr: addr}
	}
}

// partsOf cuts n units of work, each worth about cost operations, into parts that are
// worth waking a thread for. The bits of a result never depend on it.
func (b *Backend) partsOf(n, cost int) int {
	const grain = 1 << 15 // operations a part: some 10 µs, a few times a wake-up
	if b.threads == 1 || n <= 1 {
		return min(n, 1)
	}
	return int(min(int64(n), int64(b.threads)*4, int64(n)*int64(max(cost, 1))/grain+1))
}

// span returns the bounds of part i of numParts over n units.
func span(i, numParts, n int) (lo, hi int) {
	return int(int64(n) * int64(i) / int64(numParts)), int(int64(n) * int64(i+1) / int64(numParts))
}

// Alloc makes a zeroed matrix on the Go heap.
func (b *Backend) Alloc(rows, cols int) backend.Matrix {
	return backend.HostMatrix(rows, cols, make([]float32, rows*cols))
}

// Free leaves the memory to the garbage collector.
func (b *Backend) Free(backend.Matrix) {}

// Scratch takes a matrix from the step arena.
func (b *Backend) Scratch(rows, cols int) backend.Matrix {
	return backend.HostMatrix(rows, cols, b.scratch.take(rows*cols))
}

// ResetScratch empties the step arena.
func (b *Backend) ResetScratch() { b.scratch.reset() }

// Wrap uses data in place.
func (b *Backend) Wrap(data []float32, rows, cols int) backend.Matrix {
	return backend.HostMatrix(rows, cols, data)
}

// Upload copies src into m.
func (b *Backend) Upload(m backend.Matrix, src []float32) {
	if len(src) != m.Rows*m.Cols {
		panic(fmt.Sprintf("cpu: Upload of %d values into %v", len(src), m))
	}
	b.copy("Upload", m.Host(), src)
}

// Download copies m into dst.
func (b *Backend) Download(dst []float32, m backend.Matrix) error {
	if len(dst) != m.Rows*m.Cols {
		panic(fmt.Sprintf("cpu: Download of %v into %d values", m, len(dst)))
	}
	b.copy("Download", dst, m.Host())
	return b.err
}

// TakeLoss returns the sums of the losses since the last call.
func (b *Backend) TakeLoss() (sum float64, count int64, err error) {
	sum, count = b.lossSum, b.lossCount
	b.lossSum, b.lossCount = 0, 0
	return sum, count, b.err
}

// partials returns n zeroed float64 that live until the next call.
func (b *Backend) partials(n int) []float64 {
	if cap(b.partialSums) < n {
		b.partialSums = make([]float64, n+n/8)
	}
	b.partialSums = b.partialSums[:n]
	clear(b.partialSums)
	return b.partialSums
}

// sameShape panics where the matrices of an operation differ in shape.
func sameShape(op string, a backend.Matrix, others ...backend.Matrix) {
	for _, m := range others {
		if m.Rows != a.Rows || m.Cols != a.Cols {
			panic(fmt.Sprintf("cpu: %s: shapes %v and %v", op, a, m))
		}
	}
}
