package format

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"
)

// outputs stamps the files of an artefact.
func outputs(t *testing.T, out string) []Stamp {
	t.Helper()
	stamps, err := statFiles(out)
	if err != nil {
		t.Fatal(err)
	}
	return stamps
}

func TestUpToDate(t *testing.T) {
	write := func(t *testing.T, path, content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	key := digest(1)
	for name, c := range map[string]struct {
		// change alters inputs or artefact and returns the key and the inputs of the rerun.
		change func(t *testing.T, out, in1, in2 string) (Digest, []string)
		want   bool
	}{
		"nothing": {func(t *testing.T, out, in1, in2 string) (Digest, []string) { return key, []string{in1, in2} }, true},
		"touch": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			if err := os.Chtimes(in1, time.Now(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			return key, []string{in1, in2}
		}, true},
		"mode": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			if err := os.Chmod(in1, 0o600); err != nil {
				t.Fatal(err)
			}
			return key, []string{in1, in2}
		}, true},
		"moved": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			if err := os.Rename(in1, in1+".moved"); err != nil {
				t.Fatal(err)
			}
			return key, []string{in1 + ".moved", in2}
		}, true},
		"written again": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			write(t, in1+".new", "first")
			if err := os.Rename(in1+".new", in1); err != nil {
				t.Fatal(err)
			}
			return key, []string{in1, in2}
		}, true},
		"content of the same size, mtime kept": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			info, err := os.Stat(in1)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // ctime has the clock's grain
			write(t, in1, "f1rst")
			if err := os.Chtimes(in1, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
			return key, []string{in1, in2}
		}, false},
		"content longer": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			write(t, in2, "second and more")
			return key, []string{in1, in2}
		}, false},
		"order":       {func(t *testing.T, out, in1, in2 string) (Digest, []string) { return key, []string{in2, in1} }, false},
		"fewer":       {func(t *testing.T, out, in1, in2 string) (Digest, []string) { return key, []string{in1} }, false},
		"another key": {func(t *testing.T, out, in1, in2 string) (Digest, []string) { return digest(2), []string{in1, in2} }, false},
		"stamps removed": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			if err := os.Remove(filepath.Join(out+stateSuffix, stampsName)); err != nil {
				t.Fatal(err)
			}
			return key, []string{in1, in2}
		}, false},
		"stamps damaged": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			write(t, filepath.Join(out+stateSuffix, "stamps.json"), "{")
			return key, []string{in1, in2}
		}, false},
		"stamps are a pipe": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			pipe(t, filepath.Join(out+stateSuffix, stampsName))
			return key, []string{in1, in2}
		}, false},
		"manifest is a pipe": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			pipe(t, filepath.Join(out, ManifestName))
			return key, []string{in1, in2}
		}, false},
		"file of the artefact is a pipe": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			pipe(t, filepath.Join(out, "a.bin"))
			return key, []string{in1, in2}
		}, false},
		"file of the artefact gone": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			if err := os.Remove(filepath.Join(out, "a.bin")); err != nil {
				t.Fatal(err)
			}
			return key, []string{in1, in2}
		}, false},
		"file of the artefact damaged": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			write(t, filepath.Join(out, "a.bin"), "0ne")
			return key, []string{in1, in2}
		}, false},
		"file of the artefact touched": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			now := time.Now()
			if err := os.Chtimes(filepath.Join(out, "a.bin"), now, now); err != nil {
				t.Fatal(err)
			}
			return key, []string{in1, in2}
		}, true},
		"artefact removed, as dvc repro does": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
			return key, []string{in1, in2}
		}, false},
		"another artefact in its place": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			publish(t, out, "two")
			return key, []string{in1, in2}
		}, false},
		"artefact taken from a cache": {func(t *testing.T, out, in1, in2 string) (Digest, []string) {
			if err := os.Rename(out, out+".cached"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(out+".cached", out); err != nil {
				t.Fatal(err)
			}
			return key, []string{in1, in2}
		}, false}, // the state is beside the link's target
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out, in1, in2 := filepath.Join(dir, "out"), filepath.Join(dir, "in1"), filepath.Join(dir, "in2")
			write(t, in1, "first")
			write(t, in2, "second")
			stamps, err := StampInputs(t.Context(), []string{in1, in2}, nil)
			if err != nil {
				t.Fatal(err)
			}
			id := publish(t, out, "one")
			if err := (&stampFile{Key: key, ID: id, Inputs: stamps, Outputs: outputs(t, out)}).save(out + stateSuffix); err != nil {
				t.Fatal(err)
			}
			k, inputs := c.change(t, out, in1, in2)
			got, ok, err := UpToDate(t.Context(), out, "vector", k, inputs)
			if err != nil || ok != c.want || ok && got != id {
				t.Errorf("got %v, %t, %v, want %v, %t", got, ok, err, id, c.want)
			}
		})
	}
}

func TestUpToDateFailures(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if _, err := StampInputs(t.Context(), []string{in}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stamps of an absent input: %v", err)
	}
	if err := os.WriteFile(in, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := UpToDate(t.Context(), out, "vector", digest(1), []string{in}); ok || err != nil {
		t.Errorf("no artefact: %t, %v", ok, err)
	}
	stamps, err := StampInputs(t.Context(), []string{in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := publish(t, out, "one")
	if err := (&stampFile{Key: digest(1), ID: id, Inputs: stamps, Outputs: outputs(t, out)}).save(out + stateSuffix); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(in); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := UpToDate(t.Context(), out, "vector", digest(1), []string{in}); ok || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("input removed: %t, %v", ok, err)
	}
	if err := os.Mkdir(in, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := StampInputs(t.Context(), []string{in}, nil); err == nil {
		t.Error("a directory has a stamp")
	}
}

// TestStampInputsProgress digests several files side by side: the digests are those of each, and the bytes add up.
func TestStampInputsProgress(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	total := int64(0)
	for i, size := range []int{0, 1, blockBytes - 1, blockBytes, blockBytes + 1, 2*blockBytes + 5} {
		content := make([]byte, size)
		for k := range content {
			content[k] = byte(k*7 + k>>8 + i)
		}
		paths = append(paths, filepath.Join(dir, fmt.Sprint(i)))
		if err := os.WriteFile(paths[i], content, 0o644); err != nil {
			t.Fatal(err)
		}
		total += int64(size)
	}
	var most atomic.Int64
	stamps, err := StampInputs(t.Context(), paths, func(done, of int64) {
		if of != total || done > total {
			t.Errorf("%d of %d bytes are done, there are %d", done, of, total)
		}
		for old := most.Load(); done > old && !most.CompareAndSwap(old, done); old = most.Load() {
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := most.Load(); got != total {
		t.Errorf("%d of %d bytes were reported", got, total)
	}
	for i, s := range stamps {
		content, err := os.ReadFile(paths[i])
		if err != nil || s.Path != paths[i] || s.SHA256 != sha256.Sum256(content) || int(s.SizeBytes) != len(content) {
			t.Errorf("%s: stamp %+v, %v", paths[i], s, err)
		}
	}
}

// TestStampInputsEnds stops digests in the middle of a file, and has an input change there.
func TestStampInputsEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, make([]byte, 5*blockBytes), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	blocks := 0
	if _, err := StampInputs(ctx, []string{path}, func(done, total int64) {
		if blocks++; done >= 2*blockBytes {
			cancel()
		}
	}); !errors.Is(err, context.Canceled) || blocks != 2 {
		t.Errorf("got %v after %d blocks, want an end after 2", err, blocks)
	}
	if _, err := StampInputs(t.Context(), []string{path}, func(done, total int64) {
		if done == blockBytes {
			if err := os.Truncate(path, 5*blockBytes+1); err != nil {
				t.Error(err)
			}
		}
	}); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("a file that grew meanwhile: %v", err)
	}
}

// TestEachBlockFailure wants what was read before an error to be taken, and the error.
func TestEachBlockFailure(t *testing.T) {
	wrong := errors.New("the disk is gone")
	got := 0
	err := eachBlock(t.Context(), io.MultiReader(bytes.NewReader(make([]byte, blockBytes+3)), iotest.ErrReader(wrong)), func(b []byte) { got += len(b) })
	if !errors.Is(err, wrong) || got != blockBytes+3 {
		t.Errorf("got %d bytes, %v", got, err)
	}
}

func TestUnchanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	stamps, err := StampInputs(t.Context(), []string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Unchanged(stamps); err != nil {
		t.Error(err)
	}
	write("three")
	if err := Unchanged(stamps); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("a file that grew: %v", err)
	}
	os.Remove(path)
	if err := Unchanged(stamps); err == nil {
		t.Error("a file that is gone is unchanged")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	write("one")
	if _, err := StampInputs(ctx, []string{path}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// pipe puts a pipe with no other end in place of a file.
func pipe(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
}
