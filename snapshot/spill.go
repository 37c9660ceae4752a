package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// spillFile is a graph.Spill in one file, in which freed places are used again.
type spillFile struct {
	dir string

	mu   sync.Mutex
	file *os.File
	end  int64
	free map[int64][]int64 // places by their size
}

func (f *spillFile) Put(parts [][]byte) (int64, error) {
	size := int64(0)
	for _, p := range parts {
		size += int64(len(p))
	}
	place, err := f.place(size)
	if err != nil {
		return 0, err
	}
	at := place
	for _, p := range parts {
		if _, err := f.file.WriteAt(p, at); err != nil {
			return 0, fmt.Errorf("edges don't fit into memory, and not into %s either, after %d bytes there (--tmp chooses the directory): %w", filepath.Dir(f.file.Name()), at, err)
		}
		at += int64(len(p))
	}
	return place, nil
}

// place returns room for size bytes.
func (f *spillFile) place(size int64) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		file, err := tempFile(f.dir)
		if err != nil {
			return 0, err
		}
		f.file, f.free = file, map[int64][]int64{}
	}
	if list := f.free[size]; len(list) > 0 {
		f.free[size] = list[:len(list)-1]
		return list[len(list)-1], nil
	}
	place := f.end
	f.end += size
	return place, nil
}

func (f *spillFile) Get(place int64, parts [][]byte) error {
	for _, p := range parts {
		if _, err := f.file.ReadAt(p, place); err != nil {
			return fmt.Errorf("scratch file in %s: %w", filepath.Dir(f.file.Name()), err)
		}
		place += int64(len(p))
	}
	return nil
}

func (f *spillFile) Free(place, sizeBytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free[sizeBytes] = append(f.free[sizeBytes], place)
}

func (f *spillFile) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
}
