package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// activations hands out the big matrices of evaluation: from the Go heap while they fit
// into the memory limit, beyond it from unnamed files in a directory, mapped. close ends
// them all.
type activations struct {
	dir   string // "": the system's directory for temporary files
	limit int64  // bytes of heap; 0: no limit

	used   int64
	mapped [][]byte
}

// alloc returns n zeroed floats.
func (a *activations) alloc(n int) ([]float32, error) {
	size := int64(n) * 4
	if n == 0 || a.limit == 0 || a.used+size <= a.limit {
		a.used += size
		return make([]float32, n), nil
	}
	b, err := mapScratch(a.dir, size)
	if err != nil {
		return nil, err
	}
	a.mapped = append(a.mapped, b)
	return floatsOf(b), nil
}

// mapScratch maps a new file of which only the mapping remains. Its blocks are
// reserved, so that a full disk is an error here and not a fault at some later write.
func mapScratch(dir string, size int64) ([]byte, error) {
	f, err := os.CreateTemp(dir, "prelift-scratch-")
	if err != nil {
		return nil, fmt.Errorf("scratch file for evaluation (--scratch): %w", err)
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return nil, err
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = f.Truncate(size)
	}
	if err != nil {
		return nil, fmt.Errorf("scratch file of %d bytes in %s: %w; name another directory with --scratch, or raise --mem", size, filepath.Dir(f.Name()), err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a scratch file of %d bytes: %w", size, err)
	}
	return b, nil
}

func (a *activations) close() error {
	var err error
	for _, b := range a.mapped {
		err = errors.Join(err, unix.Munmap(b))
	}
	a.mapped, a.used = nil, 0
	return err
}
