package rows

import "unsafe"

// view views bytes as elements, without a copy; the caller has seen to length and alignment.
func view[T int8 | uint16 | float32](b []byte) []T {
	var zero T
	n := len(b) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
