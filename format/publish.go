package format

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Suffixes of what stands beside an artefact OUT while and after it is built. OUT
// itself appears by one rename, whole, or not at all.
const (
	partialSuffix = ".partial" // the directory being filled
	stateSuffix   = ".state"   // lock, journal of finished files, stamps of the inputs
	partsSuffix   = ".parts"   // parts of it that several processes write, each an artefact of its own
)

// ErrBusy says that another job is building the same artefact.
var ErrBusy = errors.New("another job is building this artefact")

// Job builds one artefact directory. Files go into Dir; Finish enters a file into the
// journal, so that a rerun after a kill finds it by Done; Publish makes the whole
// directory visible under its name in one step. A Job is not for concurrent use but
// for Done, Finish and Enter, which may be called from several goroutines after Resume
// or Await.
type Job struct {
	Out string // final place
	Dir string // OUT.partial

	state   string
	lock    *os.File
	done    map[string]FileInfo
	journal *os.File
	stamps  *stampFile // for Publish to save
	then    func() error
	later   func() (Digest, error)
}

// journalEntry is one line of OUT.state/journal.
type journalEntry struct {
	Key  *Digest   `json:"key,omitempty"`  // first line: what the partial directory is a part of
	File *FileInfo `json:"file,omitempty"` // a finished file
}

// Begin is Lock and Resume.
func Begin(out, kind string, key Digest) (*Job, error) {
	j, err := Lock(out, kind)
	if err != nil {
		return nil, err
	}
	if err := j.Resume(key); err != nil {
		j.giveUp()
		return nil, err
	}
	return j, nil
}

// Lock locks OUT. It refuses an OUT that lies in an artefact, or that exists and is
// no artefact of that kind. Nothing may be written before Resume.
func Lock(out, kind string) (*Job, error) {
	out, err := resolveOut(out, kind)
	if err != nil {
		return nil, err
	}
	j := &Job{Out: out, Dir: out + partialSuffix, state: out + stateSuffix, done: map[string]FileInfo{}}
	if err := j.takeLock(); err != nil {
		return nil, err
	}
	if err := j.checkOwned(); err != nil {
		j.giveUp()
		return nil, err
	}
	return j, nil
}

// Resume prepares OUT.partial. key is a digest of everything that shapes
// the content: files of an interrupted job with the same key are kept (see Done), those
// of another are removed.
func (j *Job) Resume(key Digest) error {
	if err := j.readJournal(key); err != nil {
		// Nothing to go on from: start afresh.
		j.done = map[string]FileInfo{}
		if err := removeOwned(j.Dir); err != nil {
			return err
		}
		if err := os.Remove(j.journalPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(j.Dir, 0o755); err != nil {
		return err
	}
	if err := writeSync(filepath.Join(j.Dir, ownerName), nil); err != nil {
		return err
	}
	if err := j.removeUnfinished(); err != nil {
		return err
	}
	return j.startJournal(key)
}

// ResumeLater puts Resume off until Await, which takes the key from key then: it may hang on inputs that are still being digested.
func (j *Job) ResumeLater(key func() (Digest, error)) { j.later = key }

// Await resumes a job that ResumeLater put off; it does nothing where Resume was called. To be called before anything is written.
func (j *Job) Await() error {
	if j.later == nil {
		return nil
	}
	key, err := j.later()
	if err != nil {
		return err
	}
	j.later = nil
	return j.Resume(key)
}

// PartsDir returns the directory beside the artefact out, of that kind, in which its parts are built. It need not be there; out is refused as
// Lock refuses it.
func PartsDir(out, kind string) (string, error) {
	out, err := resolveOut(out, kind)
	return out + partsSuffix, err
}

// resolveOut makes out absolute, follows a symbolic link at its end, and refuses what
// Publish must not replace: anything but an artefact of that kind, and places within one.
func resolveOut(out, kind string) (string, error) {
	out, err := filepath.Abs(out)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(out); err == nil {
		out = real
	} else if _, err := os.Lstat(out); err == nil {
		return "", fmt.Errorf("output %s is a symbolic link to nowhere; name another directory or remove it", out)
	}
	for _, suffix := range []string{partialSuffix, stateSuffix, partsSuffix} {
		if strings.HasSuffix(out, suffix) {
			return "", fmt.Errorf("output %s: names that end in %s are for what stands beside an artefact; name another", out, suffix)
		}
	}
	for dir := filepath.Dir(out); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if isArtefact(dir) {
			return "", fmt.Errorf("output %s lies in the artefact %s, which must stay as it is; name another directory", out, dir)
		}
	}
	entries, err := os.ReadDir(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return out, nil
	case err != nil:
		return "", fmt.Errorf("output %s: %w", out, err)
	case len(entries) == 0:
		return out, nil
	case !isArtefact(out):
		return "", fmt.Errorf("output %s exists, is not empty and is no Prelift artefact; name another directory or remove it", out)
	}
	if files, err := listedFiles(out); err == nil {
		if extra, err := CheckFiles(out, files); err == nil && len(extra) > 0 {
			return "", fmt.Errorf("output %s also holds %s, which would be lost; move it away or name another directory", out, extra[0])
		}
	}
	// A damaged artefact may be replaced by a good one, a good one of another kind may not.
	if found, err := ManifestKind(out); err == nil && found != kind {
		return "", fmt.Errorf("output %s holds a %s, this writes a %s; name another directory or remove it", out, found, kind)
	}
	return out, nil
}

// isArtefact reports whether dir holds both manifest files.
func isArtefact(dir string) bool {
	for _, name := range []string{ManifestName, ManifestSumName} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// ownerName marks OUT.partial as ours while it is filled.
const ownerName = ".prelift"

// checkOwned refuses an OUT.partial that no job of ours made: it is not empty, has no
// mark, and isn't the finished artefact of a job that died before its rename.
func (j *Job) checkOwned() error {
	entries, err := os.ReadDir(j.Dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (len(entries) == 0 || isArtefact(j.Dir)) {
		return nil
	}
	if _, markErr := os.Stat(filepath.Join(j.Dir, ownerName)); markErr == nil {
		return nil
	}
	return fmt.Errorf("%s exists and is not an unfinished artefact; move it away or name another --out", j.Dir)
}

func (j *Job) takeLock() (err error) {
	const tries = 100 // each is lost only to another job that ends just then
	for range tries {
		if err := os.MkdirAll(j.state, 0o755); err != nil {
			return err
		}
		if j.lock, err = tryLock(j.state); !errors.Is(err, errLockGone) {
			break
		}
	}
	if errors.Is(err, ErrBusy) {
		return fmt.Errorf("%s: %w; wait for it, or name another --out", j.Out, ErrBusy)
	}
	return err
}

const lockName = "lock"

// errLockGone says that the lock's file was removed (giveUp) while it was taken: a lock on it would exclude nobody.
var errLockGone = errors.New("lock was removed meanwhile")

// tryLock takes the lock of a state directory, which Close of the file releases, or
// returns ErrBusy or errLockGone.
func tryLock(state string) (*os.File, error) {
	path := filepath.Join(state, lockName)
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if errors.Is(err, fs.ErrNotExist) { // the directory
		return nil, errLockGone
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrBusy
		}
		return nil, fmt.Errorf("lock %s: %w; the file system has to have flock", lock.Name(), err)
	}
	own, ownErr := lock.Stat()
	named, err := os.Stat(path)
	if ownErr != nil || err != nil || !os.SameFile(own, named) {
		lock.Close()
		return nil, errLockGone
	}
	return lock, nil
}

// giveUp releases the lock, and removes OUT.state where it holds nothing else. The lock's file is removed while it is locked, and
// tryLock looks whether the file that it locked still has its name: so no two jobs hold locks on a former and a present file.
func (j *Job) giveUp() {
	if entries, err := os.ReadDir(j.state); j.lock != nil && err == nil && len(entries) == 1 && entries[0].Name() == lockName {
		if os.Remove(j.lock.Name()) == nil {
			os.Remove(j.state) // not if another job is in it already
		}
	}
	j.unlock()
}

// unlock releases the lock; the kernel does so too when the process dies.
func (j *Job) unlock() {
	if j.journal != nil {
		j.journal.Close()
		j.journal = nil
	}
	if j.lock != nil {
		j.lock.Close()
		j.lock = nil
	}
}

func (j *Job) journalPath() string { return filepath.Join(j.state, "journal") }

// startJournal writes the journal anew, with the key and what was taken over, in one
// rename (the old one may end in a torn line), and leaves it open for more.
func (j *Job) startJournal(key Digest) error {
	path := j.journalPath()
	journal, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	j.journal = journal
	entries := []journalEntry{{Key: &key}}
	for _, name := range slices.Sorted(maps.Keys(j.done)) {
		info := j.done[name]
		entries = append(entries, journalEntry{File: &info})
	}
	if err := j.log(entries...); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// readJournal reads the journal of an interrupted job. It fails where there is none or it
// is of another key. A torn last line is dropped.
func (j *Job) readJournal(key Digest) error {
	f, err := os.Open(j.journalPath())
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for first := true; lines.Scan(); first = false {
		var e journalEntry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			break
		}
		if e.Key != nil && *e.Key != key || first && e.Key == nil {
			return errors.New("journal of another job")
		}
		if e.File != nil && validName(e.File.Name) {
			j.done[e.File.Name] = *e.File
		}
	}
	return lines.Err()
}

// removeUnfinished removes what is in OUT.partial but not in the journal, and drops
// from the journal what is not there as it says.
func (j *Job) removeUnfinished() error {
	names := slices.Sorted(maps.Keys(j.done))
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = j.Path(name)
	}
	infos, errs := DigestFiles(context.Background(), paths, nil)
	for i, name := range names {
		if errs[i] != nil || infos[i] != j.done[name] {
			delete(j.done, name)
		}
	}
	entries, err := os.ReadDir(j.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := j.done[e.Name()]; !ok && e.Name() != ownerName {
			if err := os.RemoveAll(filepath.Join(j.Dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// log appends entries to the journal, in one write, and syncs it.
func (j *Job) log(entries ...journalEntry) error {
	var lines []byte
	for _, e := range entries {
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		lines = append(append(lines, b...), '\n')
	}
	if _, err := j.journal.Write(lines); err != nil {
		return err
	}
	return j.journal.Sync()
}

// Path returns the place of a file of the artefact while it is built.
func (j *Job) Path(name string) string { return filepath.Join(j.Dir, name) }

// Done returns the word on a file that an interrupted job with the same key finished.
// Not to be called while another goroutine is in Finish for the same name.
func (j *Job) Done(name string) (FileInfo, bool) {
	info, ok := j.done[name]
	return info, ok
}

// Finish digests a file that was written and synced, and enters it into the journal.
func (j *Job) Finish(name string) (FileInfo, error) {
	info, err := DigestFile(j.Path(name))
	if err != nil {
		return info, err
	}
	return info, j.Enter(info)
}

// Enter enters a file into the journal that was written, synced and digested (Writer.Seal).
func (j *Job) Enter(info FileInfo) error { return j.log(journalEntry{File: &info}) }

// Publish writes the manifest, syncs the directory and puts it under its name in one
// rename; an older artefact of that name is exchanged for it and then removed. check,
// where given, opens the finished directory as a reader would; its error stops the
// publication. After a success the job is over; after an error the caller ends it by Abort.
// A kill at any time leaves the older artefact and a job that goes on from its finished files, or the new one, which is up to date.
func (j *Job) Publish(manifest any, check func(dir string) error) (Digest, error) {
	id, err := WriteManifest(j.Dir, manifest)
	if err != nil {
		return id, err
	}
	if check != nil {
		if err := check(j.Dir); err != nil {
			return id, fmt.Errorf("self-check of an artefact just written: %w", err)
		}
	}
	if err := os.Remove(filepath.Join(j.Dir, ownerName)); err != nil {
		return id, err
	}
	if err := syncDir(j.Dir); err != nil {
		return id, err
	}
	if err := j.saveStamps(id, j.Dir); err != nil { // of no meaning as long as OUT has another id
		return id, err
	}
	if err := replaceDir(j.Dir, j.Out); err != nil {
		return id, err
	}
	if err := os.Remove(j.journalPath()); err != nil {
		return id, err
	}
	if err := syncDir(filepath.Dir(j.Out)); err != nil {
		return id, err
	}
	if err := removeOwned(j.Dir); err != nil { // the older artefact
		return id, err
	}
	if j.then != nil {
		if err := j.then(); err != nil {
			return id, err
		}
		if err := j.saveStamps(id, j.Out); err != nil {
			return id, err
		}
	}
	j.unlock()
	return id, nil
}

// saveStamps saves the stamps of the inputs and of the artefact, which is in dir and will be OUT.
func (j *Job) saveStamps(id Digest, dir string) (err error) {
	if j.stamps == nil {
		return nil
	}
	if j.stamps.Outputs, err = statFiles(dir); err != nil {
		return err
	}
	for i := range j.stamps.Outputs {
		s := &j.stamps.Outputs[i]
		s.Path = filepath.Join(j.Out, filepath.Base(s.Path))
	}
	j.stamps.ID = id
	return j.stamps.save(j.state)
}

// Then has Publish call f when all else is done, but for the lock. What f removes may share its inodes with the artefact's files (whose
// ctime that changes): they are stamped again.
func (j *Job) Then(f func() error) { j.then = f }

// Remember has Publish save what the artefact comes of, for UpToDate: the parameters' key
// and the inputs.
func (j *Job) Remember(key Digest, inputs []Stamp) {
	j.stamps = &stampFile{Key: key, Inputs: inputs}
}

// Abort ends the job and leaves OUT as it was. Finished files stay in OUT.partial for
// a rerun with the same key; keep false removes them too. It does nothing once the job is over.
func (j *Job) Abort(keep bool) {
	if j.lock == nil {
		return
	}
	if !keep {
		removeOwned(j.Dir)
		os.Remove(j.journalPath())
	}
	j.giveUp()
}

// Interrupted reports whether OUT.state has the journal of a job that didn't come to its end.
func (j *Job) Interrupted() bool {
	_, err := os.Stat(j.journalPath())
	return err == nil
}

// removeLeft removes from beside an artefact that is up to date the older one that a job couldn't remove before it was killed. Finished files of
// an interrupted job, which are for a set of other parameters, stay. Where a job holds the lock, or the place is read-only, nothing is done.
func removeLeft(out string) {
	j := &Job{Out: out, Dir: out + partialSuffix, state: out + stateSuffix}
	if _, err := os.Stat(j.Dir); err != nil {
		return
	}
	lock, err := tryLock(j.state)
	if err != nil {
		return
	}
	defer lock.Close()
	if (isArtefact(j.Dir) || !j.Interrupted()) && j.checkOwned() == nil && removeOwned(j.Dir) == nil {
		os.Remove(j.journalPath())
	}
}

// Discard ends the job and removes OUT with all that stands beside it. A kill meanwhile leaves OUT or none.
func (j *Job) Discard() error {
	if err := removeOwned(j.Dir); err != nil {
		return err
	}
	if err := os.Rename(j.Out, j.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := removeOwned(j.Dir); err != nil {
		return err
	}
	for _, path := range []string{j.journalPath(), filepath.Join(j.state, stampsName)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	j.giveUp()
	return nil
}

// removeOwned removes a directory of ours that is no artefact, or no longer one. It is marked as ours until it is gone, so that a job after a
// kill knows what is left of it (on a full disk perhaps not).
func removeOwned(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	os.WriteFile(filepath.Join(dir, ownerName), nil, 0o644)
	for _, e := range entries {
		if e.Name() == ownerName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// replaceDir renames the directory from to to. Where to exists the two are exchanged
// atomically, so that from is the old one; a file system without exchange gets two renames,
// between which to is absent, and the old one is removed.
func replaceDir(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOENT):
		return os.Rename(from, to)
	}
	return renameTwice(from, to)
}

// renameTwice is replaceDir for file systems without an exchange.
func renameTwice(from, to string) error {
	old := from + ".old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(to, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Rename(old, to))
	}
	return os.RemoveAll(old)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// LinkOrCopy puts the file src under dst without writing its bytes again where the
// file system can: a reflink, else a hard link, else a copy. Published files are never
// opened for writing, so a shared inode is safe. mode is auto or copy. dst must not
// exist; after an error it doesn't.
func LinkOrCopy(src, dst, mode string) error {
	real, err := filepath.EvalSymlinks(src) // DVC's cache hands out links
	if err != nil {
		return err
	}
	in, err := os.Open(real)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if mode == "auto" {
		if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
			return errors.Join(out.Sync(), out.Close())
		}
		out.Close()
		if err := os.Remove(dst); err != nil {
			return err
		}
		if os.Link(real, dst) == nil {
			return nil
		}
		if out, err = os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
			return err
		}
	}
	_, err = out.ReadFrom(in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		os.Remove(dst)
		if info, statErr := in.Stat(); statErr == nil {
			err = roomError(err, dst, fmt.Sprintf("%d bytes are wanted there", info.Size()))
		}
	}
	return err
}
