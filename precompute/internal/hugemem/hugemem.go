// Package hugemem makes slices in huge pages.
package hugemem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// pageSize is that of the larger pages that the system may have.
const pageSize = 2 << 20

// Make is make for large slices: it asks for huge pages, so that the first touch of the memory and every random
// access to it take less. Looking up where a small page lies costs more than reading the value once there are more
// pages than the processor keeps track of.
func Make[T any](n int) []T {
	s := make([]T, n)
	size := uintptr(n) * unsafe.Sizeof(*new(T))
	if size < 2*pageSize {
		return s
	}
	skip := -uintptr(unsafe.Pointer(&s[0])) % pageSize
	whole := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&s[0]), skip)), (size-skip)/pageSize*pageSize)
	unix.Madvise(whole, unix.MADV_HUGEPAGE) // advice
	return s
}
