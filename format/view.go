package format

import (
	"encoding/binary"
	"unsafe"
)

// element is a fixed-size type that a section can be viewed as.
type element interface {
	~uint8 | ~int8 | ~uint16 | ~int16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// littleEndian says whether this machine's byte order is the format's.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// Bytes views s as its bytes, without a copy; valid as long as s.
func Bytes[T element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}

// view is the inverse of Bytes. The caller has checked the length; alignment holds
// because sections are aligned to SectionAlign within a page-aligned mapping.
func view[T element](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}
