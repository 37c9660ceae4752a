// Package durable publishes files: after a kill or a power cut at any moment the name
// holds the old file or the new one, whole.
package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// suffix ends the names of temporaries, which begin with a point.
const suffix = ".partial"

// File is a file in the making, under a temporary name in the directory where it will
// stay. Write, then Sync, then Publish; or Discard, at any point before Publish.
type File struct {
	*bufio.Writer
	f *os.File
}

// Create opens a temporary in dir that no other process writes. base tells people what it
// is for.
func Create(dir, base string) (*File, error) {
	for i := 0; ; i++ {
		name := fmt.Sprintf(".%s.%d.%d%s", base, os.Getpid(), i, suffix)
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue // left behind by a killed process of the same number, or another machine's
		}
		if err != nil {
			return nil, err
		}
		return &File{bufio.NewWriterSize(f, 1<<20), f}, nil
	}
}

// Sync writes everything out to the disk and closes the file.
func (f *File) Sync() error { return errors.Join(f.Flush(), f.f.Sync(), f.f.Close()) }

// Publish gives a synced file its name in the same directory, in place of any file there.
func (f *File) Publish(name string) error {
	dir := filepath.Dir(f.f.Name())
	if err := os.Rename(f.f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncDir(dir)
}

// Discard closes and removes a file that won't be published.
func (f *File) Discard() {
	f.f.Close() // a second Close is harmless
	os.Remove(f.f.Name())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// WriteFile replaces the file at path by what write gives.
func WriteFile(path string, write func(io.Writer) error) error {
	f, err := Create(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Discard()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Discard()
		return err
	}
	if err := f.Publish(filepath.Base(path)); err != nil {
		f.Discard()
		return err
	}
	return nil
}

// IsTemporary reports whether a file name is one that Create gives.
func IsTemporary(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, suffix)
}

// Clean removes from dir the temporaries of files of these names that killed processes
// left. Only for files that no other process may write.
func Clean(dir string, bases ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if !IsTemporary(name) || !slices.ContainsFunc(bases, func(base string) bool { return strings.HasPrefix(name, "."+base+".") }) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
