package run

import "unsafe"

// floatsOf views page-aligned bytes as float32, without a copy; valid as long as b.
func floatsOf(b []byte) []float32 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
