package format

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

func digest(n byte) Digest { return Digest{n} }

func begin(t *testing.T, out string, key Digest) *Job {
	t.Helper()
	j, err := Begin(out, "vector", key)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// put writes a file of the artefact and enters it into the journal.
func put(t *testing.T, j *Job, name, content string) FileInfo {
	t.Helper()
	if err := writeSync(j.Path(name), []byte(content)); err != nil {
		t.Fatal(err)
	}
	info, err := j.Finish(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// publish makes an artefact of one file.
func publish(t *testing.T, out, content string) Digest {
	t.Helper()
	j := begin(t, out, digest(1))
	info := put(t, j, "a.bin", content)
	id, err := j.Publish(vectorManifest{Kind: "vector", FormatVersion: Version, Files: []FileInfo{info}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// wantArtefact wants out to be a whole artefact with that content, and nothing beside
// it but the state.
func wantArtefact(t *testing.T, out string, id Digest, content string) {
	t.Helper()
	got, extra, err := readVectorDir(out)
	if err != nil || got != id || extra != nil {
		t.Fatalf("artefact %v with extra files %q: %v; want %v", got, extra, err, id)
	}
	if b, err := os.ReadFile(filepath.Join(out, "a.bin")); string(b) != content {
		t.Errorf("content is %q, %v, want %q", b, err, content)
	}
	for _, name := range []string{out + partialSuffix, out + partialSuffix + ".old", filepath.Join(out+stateSuffix, "journal"), filepath.Join(out+stateSuffix, "journal.tmp")} {
		if exists(name) {
			t.Errorf("%s is left over", name)
		}
	}
}

func TestPublish(t *testing.T) {
	dirs := map[string]string{"temp": t.TempDir()}
	if shm, err := os.MkdirTemp("/dev/shm", "format"); err == nil {
		defer os.RemoveAll(shm)
		dirs["tmpfs"] = shm
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(dir, "deep", "er", "out")
			wantArtefact(t, out, publish(t, out, "one"), "one")
			wantArtefact(t, out, publish(t, out, "two"), "two")
			if err := os.MkdirAll(filepath.Join(dir, "empty"), 0o755); err != nil {
				t.Fatal(err)
			}
			out = filepath.Join(dir, "empty")
			wantArtefact(t, out, publish(t, out, "three"), "three")
		})
	}
}

func TestPublishRelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	id := publish(t, "out/", "one")
	wantArtefact(t, "out", id, "one")
}

// TestPublishKeepsOpenFiles reads through descriptors of the old artefact while it is replaced.
func TestPublishKeepsOpenFiles(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	publish(t, out, "one")
	f, err := os.Open(filepath.Join(out, "a.bin"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	publish(t, out, "two")
	b := make([]byte, 3)
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != "one" {
		t.Errorf("old file reads %q, %v", b, err)
	}
}

func TestPublishThroughSymlink(t *testing.T) {
	dir := t.TempDir()
	target, out := filepath.Join(dir, "target"), filepath.Join(dir, "out")
	publish(t, target, "one")
	if err := os.Symlink("target", out); err != nil {
		t.Fatal(err)
	}
	id := publish(t, out, "two")
	wantArtefact(t, target, id, "two")
	if link, err := os.Readlink(out); err != nil || link != "target" {
		t.Errorf("the link is %q now, %v", link, err)
	}
}

func TestBeginRefuses(t *testing.T) {
	dir := t.TempDir()
	make := func(name string, files ...string) string {
		out := filepath.Join(dir, name)
		if err := os.Mkdir(out, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(out, f), []byte("mine"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	regular := filepath.Join(dir, "regular")
	if err := os.WriteFile(regular, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{make("home", "thesis.tex"), make("webapp", ManifestName, "index.html"), make("sum", ManifestSumName), regular} {
		before := readTree(t, out)
		if _, err := Begin(out, "vector", digest(1)); err == nil {
			t.Errorf("%s: accepted", out)
		}
		if !reflect.DeepEqual(readTree(t, out), before) || exists(out+partialSuffix) || exists(out+stateSuffix) {
			t.Errorf("%s: changed", out)
		}
	}
}

func TestBusy(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	j := begin(t, out, digest(1))
	put(t, j, "a.bin", "one")
	for _, key := range []Digest{digest(1), digest(2)} {
		if _, err := Begin(out, "vector", key); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), out) {
			t.Errorf("second job: %v", err)
		}
	}
	if _, ok := j.Done("a.bin"); ok || !exists(j.Path("a.bin")) {
		t.Error("the second job disturbed the first")
	}
	j.Abort(false)
	j = begin(t, out, digest(1))
	j.Abort(false)
}

func TestAbort(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	id := publish(t, out, "one")
	j := begin(t, out, digest(2))
	info := put(t, j, "a.bin", "two")
	j.Abort(true)
	if !exists(out + partialSuffix) {
		t.Error("Abort(true) removed the finished file")
	}
	j = begin(t, out, digest(2))
	if got, ok := j.Done("a.bin"); !ok || got != info {
		t.Errorf("rerun: Done says %v, %t", got, ok)
	}
	j.Abort(false)
	wantArtefact(t, out, id, "one")
}

// TestConcurrentFinish finishes files side by side, as they come: all of them are in the journal, and a rerun takes them over.
func TestConcurrentFinish(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	j := begin(t, out, digest(1))
	const n = 40
	var infos [n]FileInfo
	var errs [n]error
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			name := fmt.Sprintf("%d.bin", i)
			if errs[i] = writeSync(j.Path(name), []byte(strings.Repeat("x", i))); errs[i] != nil {
				return
			}
			if i%2 == 0 {
				infos[i], errs[i] = j.Finish(name)
			} else if infos[i], errs[i] = DigestFile(j.Path(name)); errs[i] == nil {
				errs[i] = j.Enter(infos[i])
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	j.Abort(true)
	j = begin(t, out, digest(1))
	defer j.Abort(false)
	for i, want := range infos {
		if got, ok := j.Done(want.Name); !ok || got != want || int(got.SizeBytes) != i {
			t.Errorf("rerun: Done says %v, %t, want %v", got, ok, want)
		}
	}
}

// TestResumeLater takes the key when it is there; nothing is touched before, or without it.
func TestResumeLater(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	j := begin(t, out, digest(1))
	info := put(t, j, "a.bin", "one")
	j.Abort(true)
	lock := func() *Job {
		j, err := Lock(out, "vector")
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	j = lock()
	wrong := errors.New("the input changed")
	j.ResumeLater(func() (Digest, error) { return Digest{}, wrong })
	if err := j.Await(); err != wrong || !exists(j.Path("a.bin")) {
		t.Errorf("got %v; the finished file is there: %t", err, exists(j.Path("a.bin")))
	}
	j.Abort(true)
	j, calls := lock(), 0
	j.ResumeLater(func() (Digest, error) { calls++; return digest(1), nil })
	if _, ok := j.Done("a.bin"); ok || calls > 0 {
		t.Errorf("done before Await: %t, %d calls", ok, calls)
	}
	for range 2 {
		if err := j.Await(); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok := j.Done("a.bin"); !ok || got != info || calls != 1 {
		t.Errorf("Done says %v, %t after %d calls, want %v", got, ok, calls, info)
	}
	j.Abort(false)
	j = begin(t, out, digest(1)) // nothing was put off
	if err := j.Await(); err != nil {
		t.Error(err)
	}
	j.Abort(false)
}

func TestPublishCheckFails(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	id := publish(t, out, "one")
	j := begin(t, out, digest(2))
	put(t, j, "a.bin", "two")
	wrong := errors.New("wrong")
	if _, err := j.Publish(vectorManifest{Kind: "vector"}, func(dir string) error {
		if !exists(filepath.Join(dir, ManifestSumName)) {
			t.Error("check sees no manifest")
		}
		return wrong
	}); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	if _, err := Begin(out, "vector", digest(2)); !errors.Is(err, ErrBusy) {
		t.Errorf("a failed Publish let go of the lock: %v", err)
	}
	j.Abort(false)
	j.Abort(false) // nothing more
	if got, err := ReadID(out); got != id || err != nil {
		t.Errorf("the old artefact is %v now, %v", got, err)
	}
	begin(t, out, digest(2)).Abort(false) // the lock is free
}

// TestKilledJob lets a child process finish two files, begin a third and kill itself;
// the next job with the same key takes the finished ones over, one of another key none.
func TestKilledJob(t *testing.T) {
	if out := os.Getenv("FORMAT_TEST_KILL"); out != "" {
		j := begin(t, out, digest(2))
		put(t, j, "a.bin", "two")
		put(t, j, "b.bin", "more")
		if err := os.WriteFile(j.Path("c.bin"), []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(os.Getpid(), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	for name, c := range map[string]struct {
		key    Digest
		before func(t *testing.T, out string)
		done   string // of a.bin, b.bin, c.bin
	}{
		"same key":    {digest(2), nil, "true true false"},
		"another key": {digest(3), nil, "false false false"},
		"torn journal line": {digest(2), func(t *testing.T, out string) {
			path := filepath.Join(out+stateSuffix, "journal")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b[:len(b)-10], 0o644); err != nil {
				t.Fatal(err)
			}
		}, "true false false"},
		"journal of no key": {digest(2), func(t *testing.T, out string) {
			if err := os.WriteFile(filepath.Join(out+stateSuffix, "journal"), []byte("{}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "false false false"},
		"no journal": {digest(2), func(t *testing.T, out string) {
			if err := os.Remove(filepath.Join(out+stateSuffix, "journal")); err != nil {
				t.Fatal(err)
			}
		}, "false false false"},
		"finished file damaged": {digest(2), func(t *testing.T, out string) {
			if err := os.WriteFile(filepath.Join(out+partialSuffix, "a.bin"), []byte("tw0"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "false true false"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			id := publish(t, out, "one")
			killChild(t, "TestKilledJob", "FORMAT_TEST_KILL="+out)
			if got, err := ReadID(out); got != id || err != nil {
				t.Fatalf("after the kill the artefact is %v, %v", got, err)
			}
			if c.before != nil {
				c.before(t, out)
			}
			wantDone := func(j *Job) {
				t.Helper()
				var got []bool
				for _, name := range []string{"a.bin", "b.bin", "c.bin"} {
					_, ok := j.Done(name)
					if got = append(got, ok); ok != exists(j.Path(name)) {
						t.Errorf("%s: done %t, there %t", name, ok, exists(j.Path(name)))
					}
				}
				if s := strings.Trim(fmt.Sprint(got), "[]"); s != c.done {
					t.Errorf("done: %s, want %s", s, c.done)
				}
			}
			j := begin(t, out, c.key)
			wantDone(j)
			j.Abort(true) // a second interruption keeps what the first left
			j = begin(t, out, c.key)
			wantDone(j)
			info := put(t, j, "a.bin", "two")
			id, err := j.Publish(vectorManifest{Kind: "vector", FormatVersion: Version, Files: []FileInfo{info}}, func(dir string) error {
				return errors.Join(removeIfThere(filepath.Join(dir, "b.bin")), removeIfThere(filepath.Join(dir, "c.bin")))
			})
			if err != nil {
				t.Fatal(err)
			}
			wantArtefact(t, out, id, "two")
		})
	}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// TestFinishConcurrently enters many files at once; the journal has them all.
func TestFinishConcurrently(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	j := begin(t, out, digest(1))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			name := fmt.Sprintf("f%d.bin", i)
			if _, ok := j.Done(name); ok {
				t.Errorf("%s is done", name)
			}
			if err := os.WriteFile(j.Path(name), []byte(name), 0o644); err != nil {
				t.Error(err)
			}
			if _, err := j.Finish(name); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	j.Abort(true)
	j = begin(t, out, digest(1))
	for i := range 20 {
		if _, ok := j.Done(fmt.Sprintf("f%d.bin", i)); !ok {
			t.Errorf("file %d isn't in the journal", i)
		}
	}
	j.Abort(false)
}

func TestRenameTwice(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, name), 0o755), os.WriteFile(filepath.Join(dir, name, "f"), []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	from, to := filepath.Join(dir, "out.partial"), filepath.Join(dir, "out")
	write("out.old", "mine") // a user's own copy must stay
	for _, content := range []string{"one", "two"} {
		write("out.partial", content)
		if err := renameTwice(from, to); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(to, "f")); string(b) != content || exists(from) || exists(from+".old") {
			t.Errorf("got %q, %v", b, err)
		}
	}
	if err := renameTwice(from, to); err == nil {
		t.Error("a rename of nothing has no error")
	}
	if b, err := os.ReadFile(filepath.Join(to, "f")); string(b) != "two" {
		t.Errorf("after a failed rename: %q, %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "out.old", "f")); string(b) != "mine" {
		t.Errorf("out.old: %q, %v", b, err)
	}
}

func TestLinkOrCopy(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	if err := os.WriteFile(src, []byte("rows"), 0o444); err != nil {
		t.Fatal(err)
	}
	hard, soft := filepath.Join(dir, "hard"), filepath.Join(dir, "soft")
	if err := errors.Join(os.Link(src, hard), os.Symlink("hard", soft)); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"auto", "copy"} {
		for _, from := range []string{src, hard, soft} {
			dst := filepath.Join(dir, mode+"-"+filepath.Base(from))
			if err := LinkOrCopy(from, dst, mode); err != nil {
				t.Errorf("%s: %v", dst, err)
			}
			b, err := os.ReadFile(dst)
			if info, e := os.Lstat(dst); string(b) != "rows" || err != nil || e != nil || !info.Mode().IsRegular() {
				t.Errorf("%s: got %q, %v, %v", dst, b, err, e)
			}
			if same := sameFile(t, src, dst); mode == "copy" && same {
				t.Errorf("%s: a copy shares its inode", dst)
			}
			if err := LinkOrCopy(from, dst, mode); !errors.Is(err, os.ErrExist) {
				t.Errorf("%s again: %v", dst, err)
			}
			if b, err := os.ReadFile(dst); string(b) != "rows" {
				t.Errorf("%s after a second call: %q, %v", dst, b, err)
			}
		}
	}
	if info, err := os.Stat(src); err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("the source's mode is %v now, %v", info.Mode(), err)
	}
	for _, from := range []string{filepath.Join(dir, "absent"), dir} {
		dst := filepath.Join(dir, "dst")
		if err := LinkOrCopy(from, dst, "auto"); err == nil || exists(dst) {
			t.Errorf("%s: %v, dst exists: %t", from, err, exists(dst))
		}
	}
}

// TestLinkOrCopyAcross copies to another file system, where no link can go.
func TestLinkOrCopyAcross(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "format")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(shm)
	src := filepath.Join(t.TempDir(), "src")
	if err := os.WriteFile(src, []byte("rows"), 0o444); err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(shm, "dst")
	if err := LinkOrCopy(src, dst, "auto"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(dst); string(b) != "rows" {
		t.Errorf("got %q, %v", b, err)
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return os.SameFile(x, y)
}

func TestBeginRefusesOtherPlaces(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	id := publish(t, out, "one")
	for place, kind := range map[string]string{out: "other", filepath.Join(out, "inner"): "vector", filepath.Join(out, "a", "b"): "vector"} {
		if j, err := Begin(place, kind, digest(1)); err == nil {
			j.Abort(false)
			t.Errorf("%s as a %s was accepted", place, kind)
		}
	}
	wantArtefact(t, out, id, "one")
}

// TestBeginLosesNothing: what others put beside or into an artefact stays.
func TestBeginLosesNothing(t *testing.T) {
	for name, c := range map[string]struct{ file, out string }{
		"a directory where the partial one would be": {"out.partial/x", "out"},
		"a file in the artefact":                     {"out/notes.txt", "out"},
		"an output named as a partial one":           {"x.partial/x", "x.partial"},
		"an output named as a state":                 {"x.state/x", "x.state"},
		"an output named as parts":                   {"x.parts/x", "x.parts"},
	} {
		dir := t.TempDir()
		publish(t, filepath.Join(dir, "out"), "one")
		path := filepath.Join(dir, c.file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o644)); err != nil {
			t.Fatal(err)
		}
		if j, err := Begin(filepath.Join(dir, c.out), "vector", digest(2)); err == nil {
			j.Abort(false)
			t.Errorf("%s was accepted", name)
		}
		if !exists(path) {
			t.Errorf("%s was removed", name)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(link, "vector", digest(1)); err == nil {
		t.Error("a symbolic link to nowhere was accepted")
	}
}

// TestKilledPublish: whichever step of Publish was the last before a kill, the older artefact is there and the job goes on with its files, or the new one is
// there, is up to date, and what is left of the older one goes.
func TestKilledPublish(t *testing.T) {
	for _, old := range []bool{false, true} {
		for steps, name := range []string{"manifest written", "stamps saved", "renamed", "journal removed", "the older one half removed"} {
			t.Run(fmt.Sprintf("%s, older one %t", name, old), func(t *testing.T) {
				dir := t.TempDir()
				out, input := filepath.Join(dir, "out"), filepath.Join(dir, "input")
				if err := os.WriteFile(input, []byte("x"), 0o644); err != nil {
					t.Fatal(err)
				}
				stamps, err := StampInputs(context.Background(), []string{input}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if old {
					publish(t, out, "one")
				}
				j := begin(t, out, digest(2))
				info := put(t, j, "a.bin", "two")
				m := vectorManifest{Kind: "vector", FormatVersion: Version, Files: []FileInfo{info}}
				j.Remember(digest(7), stamps)
				var id Digest
				for i, step := range []func() error{
					func() (err error) { id, err = WriteManifest(j.Dir, m); return err },
					func() error { return errors.Join(os.Remove(j.Path(ownerName)), j.saveStamps(id, j.Dir)) },
					func() error { return replaceDir(j.Dir, j.Out) },
					func() error { return os.Remove(j.journalPath()) },
					func() error {
						if !old {
							return nil
						}
						return errors.Join(os.WriteFile(j.Path(ownerName), nil, 0o644), os.Remove(j.Path(ManifestSumName)))
					},
				} {
					if i > steps {
						break
					}
					if err := step(); err != nil {
						t.Fatal(err)
					}
				}
				j.unlock() // as a kill does
				got, fresh, err := UpToDate(context.Background(), out, "vector", digest(7), []string{input})
				if err != nil || fresh != (steps >= 2) {
					t.Fatalf("up to date: %t, %v", fresh, err)
				}
				if fresh {
					if got != id {
						t.Errorf("id %s, want %s", got, id)
					}
					if !old && steps == 2 { // the journal stays until the next job
						os.Remove(filepath.Join(out+stateSuffix, "journal"))
					}
					wantArtefact(t, out, id, "two")
					return
				}
				j = begin(t, out, digest(2))
				if was, ok := j.Done("a.bin"); !ok || was != info {
					t.Errorf("the finished file is lost: %v, %t", was, ok)
				}
				if id, err = j.Publish(m, nil); err != nil {
					t.Fatal(err)
				}
				wantArtefact(t, out, id, "two")
			})
		}
	}
}

// TestLeftOfAnother: an answer that an artefact is up to date leaves what an interrupted job of other parameters finished.
func TestLeftOfAnother(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	j := begin(t, out, digest(1))
	j.Remember(digest(7), nil)
	if _, err := j.Publish(vectorManifest{Kind: "vector", FormatVersion: Version, Files: []FileInfo{put(t, j, "a.bin", "one")}}, nil); err != nil {
		t.Fatal(err)
	}
	j = begin(t, out, digest(2))
	info := put(t, j, "a.bin", "two")
	j.Abort(true)
	if _, fresh, err := UpToDate(context.Background(), out, "vector", digest(7), nil); !fresh || err != nil {
		t.Fatalf("up to date: %t, %v", fresh, err)
	}
	j = begin(t, out, digest(2))
	if got, ok := j.Done("a.bin"); !ok || got != info {
		t.Error("the other job's file is lost")
	}
	j.Abort(false)
}

// TestThen: what Then removes after the rename may change the ctime of files that were linked, which are up to date all the same; its error
// ends Publish.
func TestThen(t *testing.T) {
	dir := t.TempDir()
	out, part := filepath.Join(dir, "out"), filepath.Join(dir, "part")
	if err := os.WriteFile(part, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("wrong")
	for _, then := range []func() error{func() error { return wrong }, func() error { return os.Remove(part) }} {
		j := begin(t, out, digest(1))
		if err := os.Link(part, j.Path("a.bin")); err != nil {
			t.Fatal(err)
		}
		info, err := j.Finish("a.bin")
		if err != nil {
			t.Fatal(err)
		}
		j.Remember(digest(7), nil)
		done := error(errors.New("not called"))
		j.Then(func() error {
			if _, err := ReadID(out); err != nil {
				t.Errorf("called before the artefact is there: %v", err)
			}
			done = then()
			return done
		})
		if _, err := j.Publish(vectorManifest{Kind: "vector", FormatVersion: Version, Files: []FileInfo{info}}, nil); err != done {
			t.Errorf("Publish says %v, want %v", err, done)
		}
		j.Abort(true)
	}
	saved, err := os.ReadFile(filepath.Join(out+stateSuffix, stampsName))
	if err != nil {
		t.Fatal(err)
	}
	var stamps stampFile
	if err := json.Unmarshal(saved, &stamps); err != nil || !reflect.DeepEqual(stamps.Outputs, outputs(t, out)) {
		t.Errorf("stamped %v, %v; now it is %v", stamps.Outputs, err, outputs(t, out))
	}
}

// TestDiscard removes an artefact and all beside it, but nothing else; an unfinished one too.
func TestDiscard(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, out string){
		"nothing":   func(t *testing.T, out string) {},
		"published": func(t *testing.T, out string) { publish(t, out, "one") },
		"unfinished": func(t *testing.T, out string) {
			j := begin(t, out, digest(2))
			put(t, j, "a.bin", "two")
			j.Abort(true)
		},
		"both": func(t *testing.T, out string) {
			publish(t, out, "one")
			j := begin(t, out, digest(2))
			put(t, j, "a.bin", "two")
			j.Abort(true)
		},
	} {
		dir := t.TempDir()
		out := filepath.Join(dir, "out")
		before(t, out)
		publish(t, filepath.Join(dir, "out2"), "mine")
		j, err := Lock(out, "vector")
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Discard(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 2 || entries[0].Name() != "out2" || entries[1].Name() != "out2.state" {
			t.Errorf("%s: left are %v, %v", name, entries, err)
		}
	}
}

func TestPartsDir(t *testing.T) {
	dir := t.TempDir()
	out, link := filepath.Join(dir, "out"), filepath.Join(dir, "link")
	publish(t, out, "one")
	if err := os.Symlink("out", link); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(out)
	if err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{out: real + ".parts", link: real + ".parts", filepath.Join(dir, "new"): filepath.Join(dir, "new.parts"), out + ".parts": "", filepath.Join(out, "x"): ""} {
		if got, err := PartsDir(place, "vector"); want == "" && err == nil || want != "" && (err != nil || got != want) {
			t.Errorf("%s: %s, %v, want %s", place, got, err, want)
		}
	}
}

// TestGiveUp: a job that wrote nothing leaves nothing beside its output, and one that left something keeps it.
func TestGiveUp(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(j *Job)
		left bool
	}{
		{"locked alone", func(j *Job) { j.Abort(true) }, false},
		{"resumed", func(j *Job) { j.Resume(digest(1)); j.Abort(false) }, false},
		{"interrupted", func(j *Job) { j.Resume(digest(1)); j.Abort(true) }, true},
		{"with stamps of an older artefact", func(j *Job) {
			if err := os.WriteFile(filepath.Join(j.state, stampsName), []byte("{}"), 0o644); err != nil {
				t.Fatal(err)
			}
			j.Abort(false)
		}, true},
	} {
		out := filepath.Join(t.TempDir(), "out")
		j, err := Lock(out, KindBatchSet)
		if err != nil {
			t.Fatal(err)
		}
		c.run(j)
		if exists(out+stateSuffix) != c.left {
			t.Errorf("%s: OUT.state left %v, want %v", c.name, !c.left, c.left)
		}
	}
}

// TestLockExcludes: locks are taken and given up by many jobs, which remove the lock's file as they go; no two have it at a time.
func TestLockExcludes(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	var holders, taken atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				j, err := Lock(out, KindBatchSet)
				if errors.Is(err, ErrBusy) {
					continue
				}
				if err != nil {
					t.Errorf("lock: %v", err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d jobs hold the lock", n)
				}
				taken.Add(1)
				runtime.Gosched()
				holders.Add(-1)
				j.Abort(false)
			}
		})
	}
	wg.Wait()
	if taken.Load() == 0 {
		t.Error("nobody got the lock")
	}
	if exists(out + stateSuffix) {
		t.Error("OUT.state was left")
	}
}
