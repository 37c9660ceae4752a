package batch

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot"
)

// KindPart is the manifest's "kind" of a part of a batch set. Parts are passed from the processes that write them to the one that
// merges them, and are no artefacts of SPEC.md: no reader knows them.
const KindPart = "batch_part"

// MaxParts bounds the parts of a set: merging holds a lock on each.
const MaxParts = 4096

// Part says which of a set's files one of several processes writes: which it is, from 0, and of how many. What is in a file doesn't
// depend on it.
type Part struct{ Index, Count int }

// wholeSet is the part of a process that writes all.
var wholeSet = Part{0, 1}

// IndexVariable has the number of a pod in a Kubernetes indexed job, from 0.
const IndexVariable = "JOB_COMPLETION_INDEX"

// ParsePart reads "i/n", with i from 0 to n-1 or the word auto, for the number that the environment (getenv) has in IndexVariable.
func ParsePart(text string, getenv func(string) string) (Part, error) {
	const forms = "want i/n with i from 0 to n-1, as 0/4, or auto/n in a Kubernetes indexed job"
	first, last, ok := strings.Cut(text, "/")
	n, okN := parseCount(last)
	if !ok || !okN {
		return Part{}, paramErrorf("--shard %q: %s", text, forms)
	}
	if n < 1 || n > MaxParts {
		return Part{}, paramErrorf("--shard %q: %d parts, want 1 to %d", text, n, MaxParts)
	}
	from := ""
	if first == Auto {
		if first, from = getenv(IndexVariable), " ("+IndexVariable+")"; first == "" {
			return Part{}, paramErrorf("--shard %q: there is no %s in the environment; %s", text, IndexVariable, forms)
		}
	}
	i, ok := parseCount(first)
	switch {
	case !ok:
		return Part{}, paramErrorf("--shard %q: part %q%s is not a number; %s", text, first, from, forms)
	case i >= n:
		return Part{}, paramErrorf("--shard %q: part %d%s of %d, which are numbered 0 to %d", text, i, from, n, n-1)
	}
	return Part{i, n}, nil
}

// parseCount reads a plain decimal number, without sign or leading zeros.
func parseCount(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == s
}

func (p Part) String() string { return fmt.Sprintf("%d/%d", p.Index, p.Count) }

// dirName is the name of the part's directory, and parsePartName its inverse.
func (p Part) dirName() string { return fmt.Sprintf("%d-of-%d", p.Index, p.Count) }

func parsePartName(name string) (p Part, ok bool) {
	first, last, ok := strings.Cut(name, "-of-")
	i, okI := parseCount(first)
	n, okN := parseCount(last)
	return Part{i, n}, ok && okI && okN && i < n && n <= MaxParts
}

// PartDir returns the directory in which the part of the batch set out is built.
func PartDir(out string, p Part) (string, error) {
	parts, err := format.PartsDir(out, format.KindBatchSet)
	return filepath.Join(parts, p.dirName()), err
}

// of returns the part's own of all shards of a set: of the batch files a run, in order, so that a process has few variants (each costs it an order of
// the seeds, and the draws of hubs). Of every other kind of file it has a run too, but parts are counted from the last one for these: where there
// are few files of each kind, not one process has them all.
func (p Part) of(all []shard) []shard {
	own, numBefore, count := []shard{}, map[format.FileKind]int{}, map[format.FileKind]int{}
	for _, s := range all {
		count[s.kind]++
	}
	for _, s := range all {
		q := p
		if s.kind != format.FileBatches {
			q.Index = p.Count - 1 - p.Index
		}
		if q.has(numBefore[s.kind], count[s.kind]) {
			own = append(own, s)
		}
		numBefore[s.kind]++
	}
	return own
}

// NumFiles returns how many files of the planned set the part writes, and how many the set has.
func (p Part) NumFiles(plan *Plan) (own, all int) {
	shards, linked := plan.source.shards(), len(linkedFiles(plan.source.snap, &plan.source.params))
	own, all = len(p.of(shards)), len(shards)+linked
	if p.linksFiles() {
		own += linked
	}
	return own, all
}

// has reports whether the i-th of n things, dealt in runs, is the part's.
func (p Part) has(i, n int) bool {
	return i >= n*p.Index/p.Count && i < n*(p.Index+1)/p.Count
}

// linksFiles reports whether the part has the snapshot's own files: one process may have to copy them.
func (p Part) linksFiles() bool { return p.Index == 0 }

// Request is what was asked for, before anything was settled.
type Request struct {
	Params           format.BatchParams `json:"params"`
	MaxAmplification float64            `json:"max_amplification"`
}

// PartManifest is manifest.json of a part. Set and Names are the same in every part of a set.
type PartManifest struct {
	Kind          string          `json:"kind"`
	FormatVersion int             `json:"format_version"`
	SetKey        format.Digest   `json:"set_key"`
	Index         int             `json:"index"`
	Count         int             `json:"count"`
	Request       Request         `json:"request"`
	Set           format.BatchSet `json:"set"`   // without files and what is counted in them
	Names         []string        `json:"names"` // of all files of the set, sorted

	// Of the part's own files.
	NumBatches      format.Int        `json:"num_batches"`
	NumRows         format.Int        `json:"num_rows"`
	NumSampledEdges format.Int        `json:"num_sampled_edges"`
	Bytes           format.Int        `json:"bytes"` // of training shards
	EvalBytes       format.Int        `json:"eval_bytes"`
	Files           []format.FileInfo `json:"files"`
}

// Part returns which part it is.
func (m *PartManifest) Part() Part { return Part{m.Index, m.Count} }

// common digests what is the same in every part of a set.
func (m *PartManifest) common() (format.Digest, error) {
	return format.DigestOf(struct {
		Set   format.BatchSet
		Names []string
	}{m.Set, m.Names})
}

// ReadPart reads the manifest of the part in dir.
func ReadPart(dir string) (*PartManifest, error) {
	m := &PartManifest{}
	_, err := format.ReadManifest(dir, KindPart, m)
	return m, err
}

// WritePart is Write for one of the parts of a set, in a job of its own (see PartDir) begun with the set's key. Merge publishes the set when all parts are there.
func WritePart(ctx context.Context, job *format.Job, snap *snapshot.Snapshot, p format.BatchParams, part Part, asked Request, opt Options) (*PartManifest, error) {
	w, err := newWriter(job, snap, p, opt)
	if err != nil {
		return nil, err
	}
	w.part = part
	if err := w.write(ctx); err != nil {
		return nil, err
	}
	s := w.source
	m := &PartManifest{
		Kind: KindPart, FormatVersion: format.Version, SetKey: w.setKey, Index: part.Index, Count: part.Count, Request: asked,
		Set: *s.manifest(w.setKey), Names: s.fileNames(), Files: []format.FileInfo{},
	}
	own := m.Set
	if err := addFiles(&own, w.files, job.Path); err != nil {
		return nil, err
	}
	m.NumRows, m.NumSampledEdges, m.Bytes, m.EvalBytes = own.NumRows, own.NumSampledEdges, own.Bytes, own.EvalBytes
	m.Files = append(m.Files, own.Files...)
	for _, shard := range part.of(s.shards()) {
		if shard.kind == format.FileBatches {
			m.NumBatches += format.Int(shard.last - shard.first)
		}
	}
	_, err = job.Publish(m, func(dir string) error {
		_, err := ReadPart(dir)
		return err
	})
	return m, err
}

// fileNames lists all files of the set, sorted.
func (s *source) fileNames() []string {
	names := []string{}
	for _, shard := range s.shards() {
		names = append(names, shard.name)
	}
	for _, f := range linkedFiles(s.snap, &s.params) {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}
