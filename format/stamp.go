package format

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Stamp is what a finished job remembers of one input, beside the artefact and never
// in it: enough to say "unchanged" without reading the input again.
type Stamp struct {
	Path      string `json:"path"` // absolute
	SizeBytes Int    `json:"size_bytes"`
	Inode     Int    `json:"inode"`
	MTime     Int    `json:"mtime_ns"`
	CTime     Int    `json:"ctime_ns"`
	SHA256    Digest `json:"sha256"`
}

const stampsName = "stamps.json"

// stampFile is OUT.state/stamps.json.
type stampFile struct {
	Key    Digest  `json:"key"`    // digest of the parameters
	ID     Digest  `json:"id"`     // of the artefact that came of it
	Inputs []Stamp `json:"inputs"` // in the order given
	// Outputs are the artefact's files as they were published. Where one is not as it was
	// (a copy from a cache, or damage), its content is digested again.
	Outputs []Stamp `json:"outputs"`
}

// StampInputs digests the inputs of a job, several at a time, which must not change meanwhile. ctx stops it, also within a file. progress
// may be nil; it is called by several goroutines at a time, with bytes.
func StampInputs(ctx context.Context, paths []string, progress func(done, total int64)) ([]Stamp, error) {
	stamps, total := make([]Stamp, len(paths)), int64(0)
	for i, path := range paths {
		var err error
		if stamps[i], err = statStamp(path); err != nil {
			return nil, err
		}
		total += int64(stamps[i].SizeBytes)
	}
	var done atomic.Int64
	infos, errs := DigestFiles(ctx, paths, func(n int64) {
		if n := done.Add(n); progress != nil {
			progress(n, total)
		}
	})
	for i := range stamps {
		if errs[i] != nil {
			return nil, errs[i]
		}
		stamps[i].SHA256 = infos[i].SHA256
	}
	return stamps, Unchanged(stamps)
}

// Unchanged returns an error if an input isn't as it was when its stamp was taken: what was read of it since may be of
// two versions.
func Unchanged(stamps []Stamp) error {
	for _, s := range stamps {
		now, err := statStamp(s.Path)
		if err != nil {
			return err
		}
		if now.SHA256 = s.SHA256; now != s {
			return fmt.Errorf("%s changed while it was read; run again when it is complete", s.Path)
		}
	}
	return nil
}

// statStamp fills all of a stamp but the digest.
func statStamp(path string) (Stamp, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Stamp{}, err
	}
	var st unix.Stat_t
	if err := unix.Stat(abs, &st); err != nil {
		return Stamp{}, fmt.Errorf("%s: %w", path, err)
	}
	return Stamp{Path: abs, SizeBytes: Int(st.Size), Inode: Int(st.Ino), MTime: Int(st.Mtim.Nano()), CTime: Int(st.Ctim.Nano())}, nil
}

// save writes the stamps into a state directory in one rename. The caller holds the lock.
func (f *stampFile) save(state string) error {
	b, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	path := filepath.Join(state, stampsName)
	if err := writeSync(path+".tmp", append(b, '\n')); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// UpToDate reports whether the artefact out of that kind is there and came of these inputs under
// key, and its id. Inputs and files of the artefact whose path, size, inode, mtime and ctime
// are as remembered are not read; others are digested, until ctx ends, and must have the content that is
// remembered, or that the manifest lists.
func UpToDate(ctx context.Context, out, kind string, key Digest, inputs []string) (id Digest, ok bool, err error) {
	out, err = resolveOut(out, kind)
	if err != nil {
		return id, false, err
	}
	b, err := os.ReadFile(filepath.Join(out+stateSuffix, stampsName))
	if err != nil {
		return id, false, nil
	}
	var saved stampFile
	if json.Unmarshal(b, &saved) != nil || saved.Key != key || len(saved.Inputs) != len(inputs) {
		return id, false, nil
	}
	if id, err = ReadID(out); err != nil || id != saved.ID {
		return id, false, nil // absent or damaged: build again
	}
	same, changed, err := sameInputs(ctx, saved.Inputs, inputs)
	if err != nil || !same {
		return id, false, err
	}
	same, touched := saved.sameOutputs(ctx, out)
	if !same {
		return id, false, ctx.Err()
	}
	changed = changed || touched
	if changed {
		saved.refresh(out + stateSuffix)
	}
	removeLeft(out)
	return id, true, nil
}

// sameOutputs reports whether the artefact's files have the content that its manifest
// lists, and whether any was not as remembered, which it then is.
func (f *stampFile) sameOutputs(ctx context.Context, out string) (same, touched bool) {
	now, err := statFiles(out)
	if err != nil {
		return false, false
	}
	if slices.Equal(now, f.Outputs) {
		return true, false
	}
	files, err := listedFiles(out)
	if err != nil || verifyFiles(ctx, out, files) != nil {
		return false, false
	}
	f.Outputs = now
	return true, true
}

// statFiles stamps the files of the artefact in dir with the digests that its manifest
// lists, after a check of presence and size.
func statFiles(dir string) ([]Stamp, error) {
	files, err := listedFiles(dir)
	if err != nil {
		return nil, err
	}
	if _, err := CheckFiles(dir, files); err != nil {
		return nil, err
	}
	stamps := make([]Stamp, len(files))
	for i, f := range files {
		if stamps[i], err = statStamp(filepath.Join(dir, f.Name)); err != nil {
			return nil, err
		}
		stamps[i].SHA256 = f.SHA256
	}
	return stamps, nil
}

// refresh saves the stamps of inputs that were only touched, so that the next time needs no
// digest. It is a convenience: where a job holds the lock or the place is read-only, nothing is lost.
func (f *stampFile) refresh(state string) {
	if lock, err := tryLock(state); err == nil {
		f.save(state)
		lock.Close()
	}
}

// sameInputs reports whether the inputs have the remembered content. It updates the
// stamps of those that were only touched or moved, and reports that as changed.
func sameInputs(ctx context.Context, saved []Stamp, paths []string) (same, changed bool, err error) {
	var touched []int
	var unsure []string
	for i, path := range paths {
		now, err := statStamp(path)
		if err != nil {
			return false, false, err
		}
		if now.SizeBytes != saved[i].SizeBytes {
			return false, false, nil
		}
		now.SHA256 = saved[i].SHA256
		if now != saved[i] {
			saved[i], touched, unsure = now, append(touched, i), append(unsure, path)
		}
	}
	infos, errs := DigestFiles(ctx, unsure, nil)
	for k, i := range touched {
		if errs[k] != nil {
			return false, false, errs[k]
		}
		if infos[k].SHA256 != saved[i].SHA256 {
			return false, false, nil
		}
	}
	return true, len(touched) > 0, nil
}

// JobKey digests everything that shapes an artefact: the parameters' key and the content
// of the inputs, but not where they lie. It is the key for Begin.
func JobKey(key Digest, inputs []Stamp) (Digest, error) {
	digests := make([]Digest, len(inputs))
	for i, s := range inputs {
		digests[i] = s.SHA256
	}
	return DigestOf(struct {
		Key    Digest   `json:"key"`
		Inputs []Digest `json:"inputs"`
	}{key, digests})
}
