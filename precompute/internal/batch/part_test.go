package batch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
	"github.com/prelift/prelift/snapshot"
)

func TestParsePart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, index string
		want        Part
		fault       string // "" for none
	}{
		{"0/1", "", Part{0, 1}, ""},
		{"0/4", "", Part{0, 4}, ""},
		{"3/4", "7", Part{3, 4}, ""},
		{"4095/4096", "", Part{4095, 4096}, ""},
		{"auto/8", "0", Part{0, 8}, ""},
		{"auto/8", "7", Part{7, 8}, ""},
		{"4/4", "", Part{}, "part 4 of 4, which are numbered 0 to 3"},
		{"0/0", "", Part{}, "0 parts, want 1 to 4096"},
		{"0/4097", "", Part{}, "4097 parts"},
		{"-1/4", "", Part{}, `part "-1" is not a number`},
		{"1/-4", "", Part{}, "want i/n"},
		{"+1/4", "", Part{}, `part "+1" is not a number`},
		{"01/4", "", Part{}, `part "01" is not a number`},
		{"1 / 4", "", Part{}, "want i/n"},
		{"1/4/2", "", Part{}, "want i/n"},
		{"1", "", Part{}, "want i/n with i from 0 to n-1"},
		{"/", "", Part{}, "want i/n"},
		{"1/", "", Part{}, "want i/n"},
		{"1/99999999999999999999", "", Part{}, "want i/n"},
		{"auto/8", "", Part{}, "there is no JOB_COMPLETION_INDEX in the environment"},
		{"auto/8", "8", Part{}, "part 8 (JOB_COMPLETION_INDEX) of 8"},
		{"auto/8", "x", Part{}, `part "x" (JOB_COMPLETION_INDEX) is not a number`},
		{"auto", "1", Part{}, "want i/n"},
	} {
		got, err := ParsePart(c.text, func(name string) string {
			if name == IndexVariable {
				return c.index
			}
			return ""
		})
		var fault *ParamError
		switch {
		case c.fault == "" && (err != nil || got != c.want):
			t.Errorf("%q: got %v, %v, want %v", c.text, got, err, c.want)
		case c.fault != "" && (!errors.As(err, &fault) || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%q: got %v, want a *ParamError with %q", c.text, err, c.fault)
		}
	}
}

func TestPartNames(t *testing.T) {
	t.Parallel()
	for _, p := range []Part{{0, 1}, {3, 4}, {4095, 4096}} {
		if got, ok := parsePartName(p.dirName()); !ok || got != p {
			t.Errorf("%s: got %v, %t", p.dirName(), got, ok)
		}
	}
	for _, name := range []string{"", "4-of-4", "-of-", "0-of-4097", "0-of-", "1of4", "01-of-4", "1-of-4-of-8", "notes"} {
		if p, ok := parsePartName(name); ok {
			t.Errorf("%q is taken for part %v", name, p)
		}
	}
}

// TestDealtOnce: every file is one part's, and no part has three files more than another.
func TestDealtOnce(t *testing.T) {
	t.Parallel()
	for _, numBatches := range []int{1, 2, 3, 7, 64, 65} {
		for _, numEvals := range []int{0, 1, 5, 8} {
			all := cutShards(numBatches, 1, format.FileBatches, format.BatchFile, nil)
			if numEvals > 0 {
				all = append(all, cutShards(numEvals, 1, format.FileEval, format.EvalFile, nil)...)
				all = append(all, shard{name: format.SetCoefsFile, kind: format.FileCoefs})
			}
			for _, n := range []int{1, 2, 3, 4, 10, 100} {
				var dealt []string
				least, most := len(all), 0
				for i := range n {
					own := Part{i, n}.of(all)
					counted := 0
					for k, s := range own {
						dealt = append(dealt, s.name)
						if s.kind != format.FileCoefs {
							counted++
						}
						if k > 0 && s.kind == own[k-1].kind && s.number != own[k-1].number+1 {
							t.Errorf("part %d/%d: file %d of kind %s follows %d", i, n, s.number, s.kind, own[k-1].number)
						}
					}
					least, most = min(least, counted), max(most, counted)
				}
				var want []string
				for _, s := range all {
					want = append(want, s.name)
				}
				slices.Sort(dealt)
				slices.Sort(want)
				if !slices.Equal(dealt, want) {
					t.Errorf("%d and %d files in %d parts: dealt %v", numBatches, numEvals, n, dealt)
				}
				if most-least > 2 {
					t.Errorf("%d and %d files in %d parts: from %d to %d a part", numBatches, numEvals, n, least, most)
				}
			}
		}
	}
}

// writePart writes a part of the set out.
func writePart(t testing.TB, ctx context.Context, out string, snap *snapshot.Snapshot, asked format.BatchParams, part Part, opt Options) error {
	t.Helper()
	p, plan, err := Resolve(context.Background(), snap, asked, opt)
	if err != nil {
		t.Fatal(err)
	}
	opt.Plan = plan
	key, err := SetKey(snap.ID, p)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := PartDir(out, part)
	if err != nil {
		t.Fatal(err)
	}
	job, err := format.Begin(dir, KindPart, key)
	if err != nil {
		return err
	}
	if _, err = WritePart(ctx, job, snap, p, part, Request{asked, opt.MaxAmplification}, opt); err != nil {
		job.Abort(true)
	}
	return err
}

func writeParts(t testing.TB, out string, snap *snapshot.Snapshot, asked format.BatchParams, n int, threads ...int) {
	t.Helper()
	for _, i := range rand.Perm(n) {
		if err := writePart(t, context.Background(), out, snap, asked, Part{i, n}, Options{Threads: threads[i%len(threads)]}); err != nil {
			t.Fatal(err)
		}
	}
}

func merge(t testing.TB, ctx context.Context, out string, snap *snapshot.Snapshot, asked format.BatchParams, opt Options) error {
	t.Helper()
	job, err := format.Lock(out, format.KindBatchSet)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = Merge(ctx, job, Request{asked, 0}, snap.ID, opt); err != nil {
		job.Abort(true)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestMergedBytes: parts merged are, byte for byte, what one process writes, for any number of parts (more than files, too) and threads.
func TestMergedBytes(t *testing.T) {
	t.Parallel()
	weighted := randomGraph(1000, 5000)
	for i := range weighted.edges {
		weighted.weights = append(weighted.weights, float32(i%7+1)/4)
	}
	bare := randomGraph(1000, 5000)
	bare.features, bare.noSplits, bare.directed = 0, true, true
	for _, c := range []struct {
		name   string
		graph  *testGraph
		change func(p *format.BatchParams)
	}{
		{"auto", randomGraph(3000, 20000), func(p *format.BatchParams) { p.BatchSize, p.BatchesPerFile = 50, 7 }},
		{"packed", randomGraph(1000, 5000), func(p *format.BatchParams) { p.BatchSize, p.BatchesPerFile, p.Store = 50, 3, StorePacked }},
		{"full", randomGraph(1000, 5000), func(p *format.BatchParams) { p.Mode = ModeFull }},
		{"weighted", weighted, func(p *format.BatchParams) {
			p.BatchSize, p.BatchesPerFile, p.Norm, p.Order = 50, 1, []string{"sum", "gcn"}, sample.Locality
		}},
		{"bare", bare, func(p *format.BatchParams) { p.BatchSize, p.Variants, p.LinkFeatures, p.Eval = 300, 2, None, None }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			snap, asked := c.graph.open(t), params(c.change)
			p, _, err := Resolve(context.Background(), snap, asked, Options{})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			one := filepath.Join(dir, "one")
			write(t, one, snap, p, Options{Threads: 1})
			want := hashDir(t, one)
			counts := []int{1, 4}
			if c.name == "bare" {
				counts = append(counts, 40) // more than files
			}
			for _, n := range counts {
				out := filepath.Join(dir, fmt.Sprint("merged", n))
				writeParts(t, out, snap, asked, n, 1, 2, 8)
				if err := merge(t, context.Background(), out, snap, asked, Options{}); err != nil {
					t.Fatal(err)
				}
				if got := hashDir(t, out); got != want {
					t.Errorf("%d parts give %s, want %s", n, got, want)
				}
				if exists(out+".parts") || exists(out+".partial") {
					t.Errorf("%d parts: something was left beside the set", n)
				}
			}
		})
	}
}

// TestMergeRefuses: what isn't a whole set of the request is refused with a line that names it, and leaves the parts and the older set.
func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	snap, otherSnap := randomGraph(400, 1500).open(t), randomGraph(400, 1501).open(t)
	asked := params(func(p *format.BatchParams) { p.BatchSize, p.BatchesPerFile = 20, 4 })
	changed := func(change func(p *format.BatchParams)) format.BatchParams {
		p := asked
		change(&p)
		return p
	}
	again := func(t *testing.T, out string, snap *snapshot.Snapshot, asked format.BatchParams, part Part) {
		if err := writePart(t, context.Background(), out, snap, asked, part, Options{Threads: 1}); err != nil {
			t.Fatal(err)
		}
	}
	edit := func(t *testing.T, dir string, change func(m *PartManifest)) {
		m, err := ReadPart(dir)
		if err != nil {
			t.Fatal(err)
		}
		change(m)
		if _, err := format.WriteManifest(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		harm  func(t *testing.T, out string) (mend func())
		class error
		want  []string
	}{
		{"no parts", func(t *testing.T, out string) func() {
			moved := out + ".moved"
			if err := os.Rename(out+".parts", moved); err != nil {
				t.Fatal(err)
			}
			return func() { os.RemoveAll(out + ".parts"); os.Rename(moved, out+".parts") }
		}, format.ErrMissing, []string{"set.parts", "no part is there", "--shard 0/N"}},
		{"a part missing", func(t *testing.T, out string) func() {
			for _, suffix := range []string{"", ".state"} {
				if err := os.RemoveAll(out + ".parts/1-of-3" + suffix); err != nil {
					t.Fatal(err)
				}
			}
			return func() { again(t, out, snap, asked, Part{1, 3}) }
		}, format.ErrMissing, []string{"1 of 3 parts aren't finished: 1/3", "--shard 1/3"}},
		{"two parts unfinished", func(t *testing.T, out string) func() {
			for _, part := range []Part{{0, 3}, {2, 3}} {
				dir, _ := PartDir(out, part)
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				if err := writePart(t, ctx, out, snap, asked, part, Options{Threads: 1, Progress: func(step string, done, _ int64) {
					if step == "write batches" && done >= 5 {
						cancel()
					}
				}}); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
			return func() { again(t, out, snap, asked, Part{0, 3}); again(t, out, snap, asked, Part{2, 3}) }
		}, format.ErrMissing, []string{"2 of 3 parts aren't finished: 0/3, 2/3"}},
		{"a part at work", func(t *testing.T, out string) func() {
			job, err := format.Lock(out+".parts/2-of-3", KindPart)
			if err != nil {
				t.Fatal(err)
			}
			return func() { job.Abort(true) }
		}, format.ErrBusy, []string{"parts 2/3 are being written"}},
		{"another seed", func(t *testing.T, out string) func() {
			again(t, out, snap, changed(func(p *format.BatchParams) { p.Seed = 2 }), Part{1, 3})
			return func() { again(t, out, snap, asked, Part{1, 3}) }
		}, format.ErrMismatch, []string{"set.parts/1-of-3", "--seed 2 where now it is 1", "--shard 1/3"}},
		{"all of another fanout", func(t *testing.T, out string) func() {
			writeParts(t, out, snap, changed(func(p *format.BatchParams) { p.Fanout = []int{3, 2} }), 3, 1)
			return func() { writeParts(t, out, snap, asked, 3, 1) }
		}, format.ErrMismatch, []string{"set.parts/0-of-3", "--fanout 3,2 where now it is 10,5"}},
		{"another snapshot", func(t *testing.T, out string) func() {
			again(t, out, otherSnap, asked, Part{2, 3})
			return func() { again(t, out, snap, asked, Part{2, 3}) }
		}, format.ErrMismatch, []string{"set.parts/2-of-3", "of snapshot " + otherSnap.ID.String(), "--snapshot is " + snap.ID.String()}},
		{"other numbers of parts", func(t *testing.T, out string) func() {
			again(t, out, snap, asked, Part{4, 5})
			return func() { os.RemoveAll(out + ".parts/4-of-5"); os.RemoveAll(out + ".parts/4-of-5.state") }
		}, format.ErrMismatch, []string{"0-of-3 is of 3 parts, 4-of-5 of 5", "*-of-5*"}},
		{"settled otherwise", func(t *testing.T, out string) func() {
			edit(t, out+".parts/1-of-3", func(m *PartManifest) {
				m.Set.Params.Order = sample.Random
				if m.Set.Params.Order == m.Request.Params.Order {
					m.Set.Params.Order = sample.Locality
				}
				m.Set.Params.Variants++
				m.SetKey, _ = m.Set.Key()
				m.Set.SetKey = m.SetKey
			})
			return func() { os.RemoveAll(out + ".parts/1-of-3"); again(t, out, snap, asked, Part{1, 3}) }
		}, format.ErrMismatch, []string{"set.parts/1-of-3", "another set than part 0/3", "one version"}},
		{"files short", func(t *testing.T, out string) func() {
			edit(t, out+".parts/1-of-3", func(m *PartManifest) {
				if err := os.Remove(filepath.Join(out+".parts/1-of-3", m.Files[0].Name)); err != nil {
					t.Fatal(err)
				}
				m.Files = m.Files[1:]
			})
			return func() { os.RemoveAll(out + ".parts/1-of-3"); again(t, out, snap, asked, Part{1, 3}) }
		}, format.ErrLayout, []string{"the parts hold", "one version"}},
		{"under another's name", func(t *testing.T, out string) func() {
			if err := errors.Join(os.RemoveAll(out+".parts/2-of-3"), os.CopyFS(out+".parts/2-of-3", os.DirFS(out+".parts/1-of-3"))); err != nil {
				t.Fatal(err)
			}
			return func() { os.RemoveAll(out + ".parts/2-of-3"); again(t, out, snap, asked, Part{2, 3}) }
		}, format.ErrMismatch, []string{"set.parts/2-of-3", "this is part 1/3"}},
		{"a byte changed", func(t *testing.T, out string) func() {
			path := filepath.Join(out+".parts/1-of-3", firstShard(t, out+".parts/1-of-3"))
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2] ^= 1
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			return func() { os.RemoveAll(out + ".parts/1-of-3"); again(t, out, snap, asked, Part{1, 3}) }
		}, format.ErrChecksum, []string{"set.parts/1-of-3", "batches-0", "SHA-256", "--shard 1/3"}},
		{"a file gone", func(t *testing.T, out string) func() {
			if err := os.Remove(filepath.Join(out+".parts/1-of-3", firstShard(t, out+".parts/1-of-3"))); err != nil {
				t.Fatal(err)
			}
			return func() { os.RemoveAll(out + ".parts/1-of-3"); again(t, out, snap, asked, Part{1, 3}) }
		}, os.ErrNotExist, []string{"set.parts/1-of-3", "batches-0", "--shard 1/3"}},
		{"a manifest cut", func(t *testing.T, out string) func() {
			if err := os.Truncate(out+".parts/0-of-3/manifest.json", 100); err != nil {
				t.Fatal(err)
			}
			return func() { os.RemoveAll(out + ".parts/0-of-3"); again(t, out, snap, asked, Part{0, 3}) }
		}, format.ErrChecksum, []string{"set.parts/0-of-3", "--shard 0/3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "set")
			old, _, err := Resolve(context.Background(), snap, params(func(p *format.BatchParams) { p.Mode = ModeFull }), Options{})
			if err != nil {
				t.Fatal(err)
			}
			write(t, out, snap, old, Options{})
			before := hashDir(t, out)
			writeParts(t, out, snap, asked, 3, 1)
			mend := c.harm(t, out)
			err = merge(t, context.Background(), out, snap, asked, Options{})
			if !errors.Is(err, c.class) {
				t.Errorf("got %v, want %v", err, c.class)
			}
			for _, part := range c.want {
				if err != nil && !strings.Contains(err.Error(), part) || strings.Contains(fmt.Sprint(err), "\n") {
					t.Errorf("%q lacks %q", err, part)
				}
			}
			if hashDir(t, out) != before {
				t.Error("the older set was touched")
			}
			mend()
			if err := merge(t, context.Background(), out, snap, asked, Options{}); err != nil {
				t.Errorf("mended: %v", err)
			}
			settled, _, err := Resolve(context.Background(), snap, asked, Options{})
			if err != nil {
				t.Fatal(err)
			}
			write(t, out+"-one", snap, settled, Options{})
			if hashDir(t, out) != hashDir(t, out+"-one") {
				t.Error("mended parts give other bytes")
			}
		})
	}
}

// firstShard names a batch file of a part.
func firstShard(t *testing.T, dir string) string {
	m, err := ReadPart(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Files {
		if groupOf(f.Name) == GroupTraining {
			return f.Name
		}
	}
	t.Fatalf("%s has no batch file", dir)
	return ""
}

// TestPartResumes: a part that was stopped keeps what it finished, files that are done aren't written again, and two jobs on one part don't meet.
func TestPartResumes(t *testing.T) {
	t.Parallel()
	snap := randomGraph(2000, 10000).open(t)
	asked := params(func(p *format.BatchParams) { p.BatchSize, p.BatchesPerFile = 20, 4 })
	out := filepath.Join(t.TempDir(), "set")
	part := Part{1, 2}
	dir, _ := PartDir(out, part)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := writePart(t, ctx, out, snap, asked, part, Options{Threads: 1, Progress: func(step string, done, _ int64) {
		if step != "write batches" || done < 22 {
			return
		}
		if err := writePart(t, context.Background(), out, snap, asked, part, Options{}); !errors.Is(err, format.ErrBusy) {
			t.Errorf("the same part twice at a time: %v, want %v", err, format.ErrBusy)
		}
		if err := writePart(t, context.Background(), out, snap, asked, Part{0, 2}, Options{}); err != nil {
			t.Errorf("another part at the same time: %v", err)
		}
		cancel()
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	finished := inodes(t, dir+".partial")
	if len(finished) != 5 { // of 4 batches each; the sixth was begun
		t.Fatalf("%d files are finished, want 5", len(finished))
	}
	if err := writePart(t, context.Background(), out, snap, asked, part, Options{}); err != nil {
		t.Fatal(err)
	}
	now := inodes(t, dir)
	for name, info := range finished {
		if !os.SameFile(info, now[name]) || !info.ModTime().Equal(now[name].ModTime()) {
			t.Errorf("%s was written again", name)
		}
	}
	if err := merge(t, context.Background(), out, snap, asked, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Verify(out), VerifyAgainst(out, snap)); err != nil {
		t.Error(err)
	}
}

// inodes describes the .plf files of a directory that a journal may have.
func inodes(t *testing.T, dir string) map[string]os.FileInfo {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.plf"))
	if err != nil {
		t.Fatal(err)
	}
	infos := map[string]os.FileInfo{}
	for _, path := range paths {
		if infos[filepath.Base(path)], err = os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
	return infos
}

// TestMergeResumes: a merge stopped while it checks, and one killed while it removes the parts, are ended by another.
func TestMergeResumes(t *testing.T) {
	t.Parallel()
	snap := randomGraph(2000, 10000).open(t)
	asked := params(func(p *format.BatchParams) { p.BatchSize, p.BatchesPerFile = 20, 4 })
	out := filepath.Join(t.TempDir(), "set")
	writeParts(t, out, snap, asked, 3, 2)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	settled, _, err := Resolve(ctx, snap, asked, Options{})
	if err != nil {
		t.Fatal(err)
	}
	key, err := SetKey(snap.ID, settled)
	if err != nil {
		t.Fatal(err)
	}
	// One process was at work on the whole set; its files are the same, and so it doesn't matter whose are taken.
	job, err := format.Begin(out, format.KindBatchSet, key)
	if err != nil {
		t.Fatal(err)
	}
	single, stopSingle := context.WithCancel(ctx)
	defer stopSingle()
	if _, _, err := Write(single, job, snap, settled, Options{Threads: 1, Progress: func(_ string, done, _ int64) {
		if done >= 22 {
			stopSingle()
		}
	}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	job.Abort(true)
	taken := inodes(t, out+".partial")
	if len(taken) == 0 {
		t.Fatal("the stopped process finished nothing")
	}
	if err := merge(t, ctx, out, snap, asked, Options{Progress: func(string, int64, int64) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if exists(out) || !exists(out+".parts/0-of-3") {
		t.Error("a stopped merge published the set, or removed parts")
	}
	kept := t.TempDir()
	if err := os.CopyFS(kept, os.DirFS(out+".parts")); err != nil {
		t.Fatal(err)
	}
	if err := merge(t, context.Background(), out, snap, asked, Options{}); err != nil {
		t.Fatal(err)
	}
	want := hashDir(t, out)
	for name, info := range taken {
		if !os.SameFile(info, inodes(t, out)[name]) {
			t.Errorf("%s of the stopped process wasn't taken", name)
		}
	}
	if err := errors.Join(Verify(out), VerifyAgainst(out, snap)); err != nil {
		t.Error(err)
	}

	// As a kill may leave it: one part whole, one half removed, the last gone; and others' unfinished work.
	if err := os.CopyFS(out+".parts", os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(out+".parts", "1-of-3")
	if err := errors.Join(os.WriteFile(filepath.Join(half, ".prelift"), nil, 0o644), os.Rename(half, half+".partial"), os.Remove(filepath.Join(half+".partial", "manifest.json")),
		os.RemoveAll(out+".parts/2-of-3"), os.RemoveAll(out+".parts/2-of-3.state")); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(context.Background())
	defer stop()
	other := asked
	other.Seed = 9
	if err := writePart(t, stopped, out, snap, other, Part{4, 5}, Options{Threads: 1, Progress: func(step string, done, _ int64) {
		if step == "write batches" && done > 5 {
			stop()
		}
	}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := DiscardParts(out); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(out + ".parts")
	if err != nil || len(left) != 2 || left[0].Name() != "4-of-5.partial" || left[1].Name() != "4-of-5.state" {
		t.Errorf("left: %v, %v; want the other set's unfinished part", left, err)
	}
	if hashDir(t, out) != want {
		t.Error("the set was touched")
	}
}
