package synth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// partialDir is a directory in the making, locked against a second job. The kernel drops the
// lock when a process dies, so what a killed job left behind is simply built again.
type partialDir struct {
	path string
	lock *os.File // the directory itself, held open
}

// createPartial makes and locks an empty dir+".partial".
func createPartial(dir string) (*partialDir, error) {
	path := dir + ".partial"
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	lock, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p := &partialDir{path, lock}
	if err := p.take(); err != nil {
		lock.Close()
		return nil, err
	}
	return p, nil
}

// take locks the directory and empties it.
func (p *partialDir) take() error {
	if err := unix.Flock(int(p.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%s: another job is writing here (%w)", p.path, err)
	}
	// The holder before us may have renamed or removed what we opened.
	opened, err := p.lock.Stat()
	if err != nil {
		return err
	}
	named, err := os.Lstat(p.path)
	if err != nil || !os.SameFile(opened, named) {
		return fmt.Errorf("%s: another job has just finished here (run this again)", p.path)
	}
	entries, err := os.ReadDir(p.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(p.path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// publish flushes the directory, puts it in the place of dir and unlocks it. An old dir is
// moved aside first and removed last.
func (p *partialDir) publish(dir string) error {
	if err := p.lock.Sync(); err != nil {
		return err
	}
	old := dir + ".replaced"
	if err := os.RemoveAll(old); err != nil { // of a job killed below
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(p.path, dir); err != nil {
		return errors.Join(err, restore(old, dir))
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := parent.Sync(); err != nil {
		return err
	}
	p.lock.Close()
	p.lock = nil
	return os.RemoveAll(old)
}

// restore puts the old directory back, if there was one.
func restore(old, dir string) error {
	if err := os.Rename(old, dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// discard removes what was not published.
func (p *partialDir) discard() {
	if p.lock == nil {
		return
	}
	os.RemoveAll(p.path)
	p.lock.Close()
}
