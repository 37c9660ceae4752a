//go:build unix

package cpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/prelift/prelift/trainer/internal/backend"
	"github.com/prelift/prelift/trainer/internal/backend/conformance"
)

// mapped maps a file of n floats; truncate cuts it behind the mapping's back.
func mapped(t *testing.T, n int) (data []float32, truncate func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "table"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(int64(n) * 4); err != nil {
		t.Fatal(err)
	}
	raw, err := syscall.Mmap(int(f.Fd()), 0, n*4, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Skip("can't map a file here:", err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(raw) })
	return unsafe.Slice((*float32)(unsafe.Pointer(&raw[0])), n), func() {
		if err := f.Truncate(0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFault truncates a mapped input under each operation that may read one. Each must
// end in a *backend.Fault, on any thread, and leave the backend failed.
func TestFault(t *testing.T) {
	const rows, cols = 4096, 64
	blk := conformance.MakeBlock(rand.New(rand.NewPCG(1, 1)), rows, rows, func(int) int { return 4 })
	all := make([]int32, rows)
	for i := range all {
		all[i] = int32(i)
	}
	ops := map[string]func(b *Backend, m backend.Matrix){
		"GEMM":          func(b *Backend, m backend.Matrix) { b.GEMM(backend.NN, false, b.Alloc(rows, 3), m, b.Alloc(cols, 3)) },
		"GEMM TN":       func(b *Backend, m backend.Matrix) { b.GEMM(backend.TN, false, b.Alloc(cols, 3), m, b.Alloc(rows, 3)) },
		"GEMM NT right": func(b *Backend, m backend.Matrix) { b.GEMM(backend.NT, false, b.Alloc(3, rows), b.Alloc(3, cols), m) },
		"SpMM":          func(b *Backend, m backend.Matrix) { b.SpMM(b.Alloc(rows, cols), blk, &backend.Coef{}, m) },
		"Gather":        func(b *Backend, m backend.Matrix) { b.Gather(b.Alloc(rows, cols), m, all) },
		"Dropout":       func(b *Backend, m backend.Matrix) { b.Dropout(b.Alloc(rows, cols), m, backend.MakeDrop(0.5, 1)) },
		"Dropout none":  func(b *Backend, m backend.Matrix) { b.Dropout(b.Alloc(rows, cols), m, backend.Drop{}) },
		"Copy":          func(b *Backend, m backend.Matrix) { b.Copy(b.Alloc(rows, cols), m) },
		"Upload":        func(b *Backend, m backend.Matrix) { b.Upload(b.Alloc(rows, cols), m.Host()) },
		"Download":      func(b *Backend, m backend.Matrix) { _ = b.Download(make([]float32, rows*cols), m) },
		"ColSums":       func(b *Backend, m backend.Matrix) { b.ColSums(b.Alloc(1, cols), m) },
		"SoftmaxCE": func(b *Backend, m backend.Matrix) {
			b.SoftmaxCE(backend.Matrix{}, m, &backend.Targets{Class: make([]int32, rows)})
		},
	}
	for name, op := range ops {
		for _, threads := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/threads=%d", name, threads), func(t *testing.T) {
				b := New(Options{Threads: threads})
				defer b.Close()
				data, truncate := mapped(t, rows*cols)
				m := b.Wrap(data, rows, cols)
				op(b, m)
				if err := b.Sync(); err != nil {
					t.Fatal("before the truncation:", err)
				}
				truncate()
				op(b, m)
				var f *backend.Fault
				if err := b.Sync(); !errors.As(err, &f) {
					t.Fatalf("got %v, want a *backend.Fault", err)
				}
				first := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
				if f.Addr < first || f.Addr >= first+rows*cols*4 || !strings.HasPrefix(name, f.Op) {
					t.Errorf("fault %+v is not in the input of %s", f, name)
				}
				other := b.Alloc(1, 1)
				b.Upload(other, []float32{1})
				if other.Host()[0] != 0 || b.Sync() != error(f) {
					t.Error("the backend works on after a fault")
				}
			})
		}
	}
}

// TestFaultInCoefficients faults on a host slice of a block.
func TestFaultInCoefficients(t *testing.T) {
	b := New(Options{Threads: 2})
	defer b.Close()
	const rows = 4096
	blk := conformance.MakeBlock(rand.New(rand.NewPCG(1, 1)), rows, rows, func(int) int { return 4 })
	src, truncate := mapped(t, rows)
	truncate()
	b.SpMM(b.Alloc(rows, 8), blk, &backend.Coef{Src: src}, b.Alloc(rows, 8))
	var f *backend.Fault
	if err := b.Sync(); !errors.As(err, &f) {
		t.Fatalf("got %v, want a *backend.Fault", err)
	}
}
