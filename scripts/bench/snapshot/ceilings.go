package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ceilings is what the machine can do at each kind of work, on all cores where the work is parallel.
type ceilings struct {
	parse float64 // M lines/s: digits to numbers in a loop that checks nothing
	sort  float64 // M keys/s: one in-place counting pass after the other over 64-bit keys in blocks that fit the cache
	sha   float64 // GB/s of SHA-256, one core
	disk  float64 // GB/s written and synced
	touch float64 // GB/s of memory touched for the first time
}

func (c *ceilings) print() {
	fmt.Printf("ceilings: parse %.0f M lines/s, sort %.0f M keys/s, SHA-256 %.2f GB/s a core, disk %.2f GB/s, first touch of memory %.2f GB/s\n",
		c.parse, c.sort, c.sha, c.disk, c.touch)
}

func measureCeilings(edges, dir string) (ceilings, error) {
	var c ceilings
	text, err := head(edges, 256<<20)
	if err != nil {
		return c, err
	}
	threads := runtime.NumCPU()
	lines := make([]int, threads)
	c.parse = best(func() float64 {
		each(threads, func(t int) { lines[t] = parseDigits(text[len(text)/threads*t : len(text)/threads*(t+1)]) })
		sum := 0
		for _, n := range lines {
			sum += n
		}
		return float64(sum) / 1e6
	})
	c.sha = best(func() float64 {
		sha256.Sum256(text)
		return float64(len(text)) / 1e9
	})
	const perThread = 8 << 20
	keys, spare := make([][]uint64, threads), make([][]uint64, threads)
	for t := range keys {
		keys[t], spare[t] = make([]uint64, perThread), make([]uint64, perThread)
		rng := rand.New(rand.NewPCG(1, uint64(t)))
		for i := range keys[t] {
			keys[t][i] = rng.Uint64() >> 28
		}
	}
	c.sort = best(func() float64 {
		each(threads, func(t int) {
			const block = 1 << 16
			for i := 0; i < perThread; i += block {
				sortKeys(keys[t][i:i+block], spare[t][i:i+block], 36)
			}
		})
		return float64(threads*perThread) / 1e6
	})
	c.touch = best(func() float64 {
		m := make([]byte, 256<<20)
		for i := 0; i < len(m); i += 4096 {
			m[i] = 1
		}
		return float64(len(m)) / 1e9
	})
	c.disk, err = diskRate(dir, text)
	return c, err
}

// best returns the highest of three rates: f's amount by the seconds it took.
func best(f func() float64) float64 {
	most := 0.0
	for range 3 {
		start := time.Now()
		amount := f()
		most = max(most, amount/time.Since(start).Seconds())
	}
	return most
}

func each(threads int, f func(t int)) {
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() { f(t) })
	}
	wg.Wait()
}

// sink keeps results alive.
var sink uint64

// parseDigits turns all runs of digits into numbers and returns the lines.
func parseDigits(text []byte) (lines int) {
	var x, sum uint64
	for _, c := range text {
		if c >= '0' {
			x = 10*x + uint64(c-'0')
			continue
		}
		sum += x
		x = 0
		if c == '\n' {
			lines++
		}
	}
	sink = sum
	return lines
}

// sortKeys is a least significant digit first radix sort by the low bits of keys.
func sortKeys(keys, spare []uint64, bits uint) {
	for shift := uint(0); shift < bits; shift += 9 {
		var place [512]int
		for _, k := range keys {
			place[k>>shift&511]++
		}
		at := 0
		for d, n := range place {
			place[d] = at
			at += n
		}
		for _, k := range keys {
			d := k >> shift & 511
			spare[place[d]] = k
			place[d]++
		}
		keys, spare = spare, keys
	}
}

func diskRate(dir string, data []byte) (float64, error) {
	path := filepath.Join(dir, "disk.tmp")
	defer os.Remove(path)
	most := 0.0
	for range 3 {
		f, err := os.Create(path)
		if err != nil {
			return 0, err
		}
		start := time.Now()
		_, err = f.Write(data)
		if err == nil {
			err = f.Sync()
		}
		f.Close()
		if err != nil {
			return 0, err
		}
		most = max(most, float64(len(data))/1e9/time.Since(start).Seconds())
	}
	return most, nil
}

// touch uses so much memory and gives it back.
func touch(gib int) {
	if gib <= 0 {
		return
	}
	m, err := unix.Mmap(-1, 0, gib<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return
	}
	for i := 0; i < len(m); i += 4096 {
		m[i] = 1
	}
	unix.Munmap(m)
}

// head reads the first n bytes of a file.
func head(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, n))
}

// warm reads a file once.
func warm(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}
