package ingest

import (
	"sync"
	"sync/atomic"
)

// parallel calls f for parts of 0..n-1 in up to threads goroutines. The parts must not depend on each other.
func parallel(n, threads int, f func(from, to int)) {
	const least = 1 << 14 // fewer aren't worth a goroutine
	threads = max(1, min(threads, n/least))
	var wg sync.WaitGroup
	for i := range threads {
		from, to := int(int64(n)*int64(i)/int64(threads)), int(int64(n)*int64(i+1)/int64(threads))
		if i == threads-1 {
			f(from, to)
			break
		}
		wg.Go(func() { f(from, to) })
	}
	wg.Wait()
}

// parallelEach calls f for 0..n-1 in up to threads goroutines. The calls must not depend on each other.
func parallelEach(n, threads int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range max(1, min(threads, n)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
