package datasets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/prelift/prelift/format/command"
	"golang.org/x/sys/unix"
)

// Options steer Fetch.
type Options struct {
	Client   *http.Client                         // nil: one of our own; redirects away from https are refused with any
	Progress func(step string, done, total int64) // may be nil
}

// Result says what Fetch found or did.
type Result struct {
	Name     string     `json:"name"`
	Dir      string     `json:"dir"` // of the set
	LockFile string     `json:"lock_file"`
	UpToDate bool       `json:"up_to_date"` // it was there, and is what was recorded
	Files    []download `json:"downloads"`
	Read     []string   `json:"read"` // a command line that reads it
}

// downloader is one run of Fetch.
type downloader struct {
	client *http.Client
	report func(step string, done, total int64)
	set    *Set
	lock   *lockFile // of an earlier run, or nil

	target, lockPath, partial string
	unlock                    func()
}

// Fetch brings a data set into dir/NAME. What is there already is checked against dir/NAME.lock.json, without a
// network. After an error or a kill the next run goes on. Errors that files are not what they should be are bad input.
func Fetch(ctx context.Context, set *Set, dir string, opt Options) (*Result, error) {
	d := &downloader{client: opt.Client, report: opt.Progress, set: set}
	if d.client == nil {
		d.client = newClient()
	}
	d.client = httpsOnly(d.client)
	if d.report == nil {
		d.report = func(string, int64, int64) {}
	}
	d.target = filepath.Join(dir, set.Name)
	d.lockPath, d.partial = d.target+".lock.json", d.target+".partial"
	r := &Result{Name: set.Name, Dir: d.target, LockFile: d.lockPath, Read: append([]string{"bin/precompute", "snapshot"}, append(set.Read(d.target), "--out", "snapshot")...)}
	var err error
	if d.lock, err = readLock(d.lockPath); err != nil {
		return nil, badData(err)
	}
	if err := d.checkPins(); err != nil {
		return nil, badData(err)
	}
	if _, err := os.Lstat(d.target); err == nil {
		if err := d.checkTarget(); err != nil {
			return nil, badData(err)
		}
		r.UpToDate, r.Files = true, d.lock.Downloads
		return r, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := d.begin(); err != nil {
		return nil, err
	}
	defer d.unlock()
	lock, err := d.fetchAll(ctx)
	if err != nil {
		d.tidy()
		return nil, err
	}
	r.Files = lock.Downloads
	return r, d.publish(lock)
}

// checkPins refuses a lock that contradicts the catalogue.
func (d *downloader) checkPins() error {
	for i := range d.set.Files {
		f := &d.set.Files[i]
		if got := d.lock.recorded(f.URL); got != "" && f.SHA256 != "" && got != f.SHA256 {
			return fmt.Errorf("%s records SHA-256 %s for %s, pinned (%s) is %s; move it and %s away", d.lockPath, got, f.Name, f.Known, f.SHA256, d.target)
		}
	}
	return nil
}

// checkTarget compares what is there with what was recorded.
func (d *downloader) checkTarget() error {
	if d.lock == nil {
		return fmt.Errorf("%s is there, but no %s that says what it should hold; move it away, or choose another directory", d.target, d.lockPath)
	}
	for i, f := range d.lock.Files {
		d.report("check", int64(i), int64(len(d.lock.Files)))
		one := lockFile{Files: []placed{f}}
		if err := one.check(d.target); err != nil {
			return fmt.Errorf("%w; remove %s to download it again", err, d.target)
		}
	}
	return nil
}

// begin makes the working folder and takes its lock, which ends with the process.
func (d *downloader) begin() error {
	if err := os.MkdirAll(d.partial, 0o777); err != nil {
		return err
	}
	f, err := os.Open(d.partial)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return fmt.Errorf("another download of %s is at work in %s", d.set.Name, d.partial)
	}
	d.unlock = func() { f.Close() }
	return nil
}

// fetchAll downloads every file and lays it out under partial/data.
func (d *downloader) fetchAll(ctx context.Context) (*lockFile, error) {
	data := filepath.Join(d.partial, "data")
	if err := os.RemoveAll(data); err != nil { // of an earlier try
		return nil, err
	}
	if err := os.MkdirAll(data, 0o777); err != nil {
		return nil, err
	}
	lock := &lockFile{Name: d.set.Name}
	for i := range d.set.Files {
		f := &d.set.Files[i]
		came, path, err := d.fetchOne(ctx, f)
		if err != nil {
			return nil, err
		}
		lock.Downloads = append(lock.Downloads, came)
		if f.Unpack == nil {
			err = linkOrRename(path, filepath.Join(data, f.Name))
		} else {
			d.report("unpack "+f.Name, 0, 0)
			if err = unpack(ctx, path, f.Unpack, data); err != nil && ctx.Err() == nil {
				err = badData(fmt.Errorf("%s: %w", f.Name, err))
			}
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	lock.Files, err = listFiles(data)
	return lock, err
}

// tidy removes the working folder unless it holds downloads to go on with.
func (d *downloader) tidy() {
	os.RemoveAll(filepath.Join(d.partial, "data"))
	for i := range d.set.Files {
		part := filepath.Join(d.partial, hashName(d.set.Files[i].URL)+".part")
		if info, err := os.Stat(part); err == nil && info.Size() == 0 {
			os.Remove(part)
		}
	}
	os.Remove(d.partial)
}

// fetchOne downloads a file, unless an earlier try did. A finished download has its name; one under way has .part.
func (d *downloader) fetchOne(ctx context.Context, f *File) (came download, path string, err error) {
	path = filepath.Join(d.partial, hashName(f.URL))
	want := f.SHA256
	if want == "" {
		want = d.lock.recorded(f.URL)
	}
	came = download{URL: f.URL, Checked: checkedPinned}
	if f.SHA256 == "" {
		came.Checked = checkedFirstUse
	}
	if size, digest, err := digestFile(path); err == nil && (want == "" || digest == want) {
		came.SizeBytes, came.SHA256 = size, digest
		return came, path, nil
	}
	came.SizeBytes, came.SHA256, err = d.fetchFile(ctx, f, path, want)
	return came, path, err
}

// linkOrRename puts a finished download at its place and leaves it, where links are possible, for the next try.
func linkOrRename(from, to string) error {
	if err := os.Link(from, to); err == nil {
		return nil
	}
	return os.Rename(from, to)
}

// listFiles digests all files under dir, sorted by path.
func listFiles(dir string) ([]placed, error) {
	var list []placed
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		size, digest, err := digestFile(path)
		list = append(list, placed{filepath.ToSlash(rel), size, digest})
		return err
	})
	slices.SortFunc(list, func(a, b placed) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return list, err
}

// publish records what was downloaded and gives the folder its name. The record comes first: a kill in between leaves
// digests that the next download must match.
func (d *downloader) publish(lock *lockFile) error {
	if err := lock.write(d.lockPath); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(d.partial, "data"), d.target); err != nil {
		return err
	}
	return os.RemoveAll(d.partial)
}

// badData gives faults of the files their exit code.
func badData(err error) error { return command.BadInput(err) }
