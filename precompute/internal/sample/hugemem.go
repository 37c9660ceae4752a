package sample

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of the larger pages that the system may have.
const hugePage = 2 << 20

// makeHuge is make for large slices: it asks for huge pages, so that random access takes less. Looking up where a small page lies costs
// more than reading the value once a graph's nodes fill more pages than the processor keeps track of.
func makeHuge[T any](n int) []T {
	s := make([]T, n)
	size := uintptr(n) * unsafe.Sizeof(*new(T))
	if size < 2*hugePage {
		return s
	}
	skip := -uintptr(unsafe.Pointer(&s[0])) % hugePage
	whole := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&s[0]), skip)), (size-skip)/hugePage*hugePage)
	unix.Madvise(whole, unix.MADV_HUGEPAGE) // advice
	return s
}
