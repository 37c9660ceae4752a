package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prelift/prelift/format"
)

// Merge checks that the parts of the batch set job.Out are all there, finished, and of one set: that of the request and the snapshot. It
// publishes the set, whose bytes are those that Write writes, and removes the parts. job is locked, not resumed. Files are linked where the file system
// can, then digested in their new place. A merge that was killed can be run again. The job is over when Merge returns without an error; after one the
// caller ends it.
func Merge(ctx context.Context, job *format.Job, asked Request, snapshotID format.Digest, opt Options) (format.Digest, *format.BatchSet, error) {
	var none format.Digest
	parts, err := openParts(job.Out)
	if err != nil {
		return none, nil, err
	}
	defer parts.release()
	m, err := parts.check(asked, snapshotID)
	if err != nil {
		return none, nil, err
	}
	if err := job.Resume(m.SetKey); err != nil {
		return none, nil, err
	}
	if err := parts.link(ctx, job, opt); err != nil {
		return none, nil, err
	}
	if err := addFiles(m, parts.files(), job.Path); err != nil {
		return none, nil, err
	}
	job.Then(parts.discard)
	id, err := job.Publish(m, checkOpens)
	return id, m, err
}

// parts are all the parts of a set, each locked.
type parts struct {
	dir       string // OUT.parts
	jobs      []*format.Job
	manifests []*PartManifest
}

// openParts finds, locks and reads the parts of the batch set out.
func openParts(out string) (*parts, error) {
	dir, err := format.PartsDir(out, format.KindBatchSet)
	if err != nil {
		return nil, err
	}
	found, err := listParts(dir)
	if err != nil {
		return nil, err
	}
	place := filepath.Base(dir)
	if len(found) == 0 {
		return nil, faultf(format.ErrMissing, place, "no part is there; run the same command with --shard 0/N, 1/N, ... first")
	}
	for _, p := range found {
		if p.Count != found[0].Count {
			return nil, faultf(format.ErrMismatch, place, "%s is of %d parts, %s of %d; remove those of one kind (rm -r %s)",
				found[0].dirName(), found[0].Count, p.dirName(), p.Count, filepath.Join(dir, "*-of-"+strconv.Itoa(p.Count)+"*"))
		}
	}
	ps := &parts{dir: dir}
	if err := ps.lock(found[0].Count); err != nil {
		ps.release()
		return nil, err
	}
	return ps, nil
}

// listParts returns the parts of which there is something in OUT.parts, each once, sorted.
func listParts(dir string) ([]Part, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found := []Part{}
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), ".") // what stands beside a part
		if p, ok := parsePartName(name); ok && !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b Part) int {
		if a.Count != b.Count {
			return a.Count - b.Count
		}
		return a.Index - b.Index
	})
	return found, nil
}

// lock locks and reads the n parts.
func (ps *parts) lock(n int) error {
	var missing, busy []string
	for i := range n {
		p := Part{i, n}
		job, err := format.Lock(filepath.Join(ps.dir, p.dirName()), KindPart)
		if errors.Is(err, format.ErrBusy) {
			busy = append(busy, p.String())
			continue
		}
		if err != nil {
			return err
		}
		ps.jobs = append(ps.jobs, job)
		if _, err := os.Stat(job.Out); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, p.String())
			continue
		}
		m, err := ReadPart(job.Out)
		if err == nil && m.Part() != p {
			err = faultf(format.ErrMismatch, "manifest.json", "this is part %s", m.Part())
		}
		if err != nil {
			return ps.partError(p, err)
		}
		ps.manifests = append(ps.manifests, m)
	}
	place := filepath.Base(ps.dir)
	switch {
	case len(busy) > 0:
		return fmt.Errorf("%s: %w: parts %s are being written; wait for them", place, format.ErrBusy, listSome(busy))
	case len(missing) > 0:
		return faultf(format.ErrMissing, place, "%d of %d parts aren't finished: %s; run the same command with --shard %s in place of --merge", len(missing), n, listSome(missing), missing[0])
	}
	return nil
}

// listSome names the first few of many.
func listSome(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// partError says which part is at fault and how to get a good one.
func (ps *parts) partError(p Part, err error) error {
	dir := filepath.Join(ps.dir, p.dirName())
	return fmt.Errorf("%s: %w; remove it (rm -r %s) and run the same command with --shard %s", filepath.Join(filepath.Base(ps.dir), p.dirName()), err, dir, p)
}

// release lets go of the locks.
func (ps *parts) release() {
	for _, job := range ps.jobs {
		job.Abort(true)
	}
}

// check compares the parts with what is asked for and with each other, and returns the manifest of the set, without files.
func (ps *parts) check(asked Request, snapshotID format.Digest) (*format.BatchSet, error) {
	first := ps.manifests[0]
	common, err := first.common()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, m := range ps.manifests {
		place := filepath.Join(filepath.Base(ps.dir), m.Part().dirName())
		again := fmt.Sprintf("run the same command with --shard %s in place of --merge", m.Part())
		if m.Set.SnapshotID != snapshotID {
			return nil, faultf(format.ErrMismatch, place, "it is of snapshot %s, --snapshot is %s; %s", m.Set.SnapshotID, snapshotID, again)
		}
		if other := otherFlags(&m.Request, &asked); other != "" {
			return nil, faultf(format.ErrMismatch, place, "it was written with %s; %s", other, again)
		}
		own, err := m.common()
		if err != nil {
			return nil, err
		}
		if key, err := m.Set.Key(); err != nil || key != m.SetKey || key != m.Set.SetKey || own != common {
			return nil, faultf(format.ErrMismatch, place, "it is of another set than part %s (set keys %s and %s), by the same flags: write all parts with one version of precompute",
				first.Part(), m.SetKey.Hex()[:16], first.SetKey.Hex()[:16])
		}
		for _, f := range m.Files {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, first.Names) {
		return nil, faultf(format.ErrLayout, filepath.Base(ps.dir), "the parts hold %d files, the set has %d; write all parts by one version of precompute", len(names), len(first.Names))
	}
	set := first.Set
	return &set, nil
}

// otherFlags lists the flags of a part that aren't as asked, "" where there are none.
func otherFlags(part, asked *Request) string {
	var other []string
	a, b := part.flags(), asked.flags()
	for _, name := range sortedKeys(b) {
		if !bytes.Equal(a[name], b[name]) {
			other = append(other, fmt.Sprintf("--%s %s where now it is %s", strings.ReplaceAll(name, "_", "-"), flagValue(a[name]), flagValue(b[name])))
		}
	}
	return strings.Join(other, ", ")
}

// flags returns the request's values by the names of their flags, with _ for -.
func (r *Request) flags() map[string]json.RawMessage {
	flags := map[string]json.RawMessage{}
	b, err := json.Marshal(r.Params)
	if err == nil {
		err = json.Unmarshal(b, &flags)
	}
	if err == nil {
		flags["max_amplification"], err = json.Marshal(r.MaxAmplification)
	}
	if err != nil {
		panic("batch: " + err.Error())
	}
	return flags
}

// flagValue writes a value as one would on the command line.
func flagValue(v json.RawMessage) string {
	return strings.NewReplacer(`"`, "", "[", "", "]", "").Replace(string(v))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := []string{}
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// files lists the files of all parts.
func (ps *parts) files() (files []format.FileInfo) {
	for _, m := range ps.manifests {
		files = append(files, m.Files...)
	}
	return files
}

// link puts the files of all parts into the job's directory, and digests those that an interrupted merge didn't.
func (ps *parts) link(ctx context.Context, job *format.Job, opt Options) error {
	type member struct {
		part Part
		info format.FileInfo
	}
	var linked []member
	var paths []string
	totalBytes := int64(0)
	for i, m := range ps.manifests {
		for _, want := range m.Files {
			if err := ctx.Err(); err != nil {
				return err
			}
			if info, ok := job.Done(want.Name); ok && info == want {
				continue
			}
			path := job.Path(want.Name)
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an interrupted job, and not as it is now
				return err
			}
			if err := format.LinkOrCopy(filepath.Join(ps.jobs[i].Out, want.Name), path, Auto); err != nil {
				return ps.partError(m.Part(), err)
			}
			linked, paths, totalBytes = append(linked, member{m.Part(), want}), append(paths, path), totalBytes+int64(want.SizeBytes)
		}
	}
	infos, errs := format.DigestFiles(ctx, paths, opt.counter("check parts", totalBytes))
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, l := range linked {
		if errs[i] != nil {
			return ps.partError(l.part, errs[i])
		}
		if infos[i] != l.info {
			return ps.partError(l.part, faultf(format.ErrChecksum, l.info.Name, "%d bytes of SHA-256 %s, the part's manifest says %d of %s",
				infos[i].SizeBytes, infos[i].SHA256.Hex()[:16], l.info.SizeBytes, l.info.SHA256.Hex()[:16]))
		}
		if err := job.Enter(l.info); err != nil {
			return err
		}
	}
	return nil
}

// counter returns a function that adds up and reports what is done of a step, and may be called by several goroutines at a time.
func (opt *Options) counter(step string, total int64) func(n int64) {
	var mu sync.Mutex
	done := int64(0)
	return func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		if done += n; opt.Progress != nil {
			opt.Progress(step, done, total)
		}
	}
}

// discard removes the parts, and OUT.parts if nothing else is in it.
func (ps *parts) discard() error {
	for _, job := range ps.jobs {
		if err := job.Discard(); err != nil {
			return err
		}
	}
	os.Remove(ps.dir) // unless something is in it
	return nil
}

// DiscardParts removes what a merge that was killed left of the parts of the published batch set out: finished parts of that set, and those
// that it had begun to remove. Parts that are being written, or that a rerun could go on from, stay.
func DiscardParts(out string) error {
	dir, err := format.PartsDir(out, format.KindBatchSet)
	if err != nil {
		return err
	}
	found, err := listParts(dir)
	if err != nil || len(found) == 0 {
		return err
	}
	_, set, err := format.ReadBatchSet(out)
	if err != nil {
		return err
	}
	for _, p := range found {
		job, err := format.Lock(filepath.Join(dir, p.dirName()), KindPart)
		if err != nil {
			continue // busy, or not ours
		}
		m, err := ReadPart(job.Out)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, format.ErrMissing) || err == nil && m.SetKey == set.SetKey {
			if !job.Interrupted() {
				if err := job.Discard(); err != nil {
					return err
				}
			}
		}
		job.Abort(true)
	}
	os.Remove(dir) // unless something is in it
	return nil
}
