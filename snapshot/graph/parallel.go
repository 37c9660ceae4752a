package graph

import (
	"runtime"
	"sort"
	"sync"
)

// numThreads turns a thread option into a count: 0 or less means GOMAXPROCS.
func numThreads(threads int) int {
	if threads <= 0 {
		return runtime.GOMAXPROCS(0)
	}
	return threads
}

// inParallel calls f(0) .. f(threads-1) on goroutines of their own and returns when all have.
func inParallel(threads int, f func(t int)) {
	if threads == 1 {
		f(0)
		return
	}
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() { f(t) })
	}
	wg.Wait()
}

// part returns the t-th of threads near-equal parts [lo, hi) of 0..n-1.
func part(n, t, threads int) (lo, hi int) {
	q, r := n/threads, n%threads
	lo = t*q + min(t, r)
	hi = lo + q
	if t < r {
		hi++
	}
	return lo, hi
}

// rowParts cuts the rows of indptr, which may begin with any offset, into threads runs of near-equal rows +
// entries. The result has len threads+1; run t is the rows bounds[t] .. bounds[t+1]-1, perhaps none.
func rowParts(indptr []int64, threads int) []int {
	numRows := len(indptr) - 1
	bounds := make([]int, threads+1)
	if numRows <= 0 {
		return bounds
	}
	first := indptr[0]
	total := int64(numRows) + indptr[numRows] - first
	for t := 1; t < threads; t++ {
		want := total / int64(threads) * int64(t)
		bounds[t] = sort.Search(numRows, func(v int) bool { return int64(v)+indptr[v]-first >= want })
	}
	bounds[threads] = numRows
	return bounds
}
