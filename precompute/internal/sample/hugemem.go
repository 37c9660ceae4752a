package sample

import "github.com/prelift/prelift/precompute/internal/hugemem"

// makeHuge is hugemem.Make.
func makeHuge[T any](n int) []T { return hugemem.Make[T](n) }
