package snapshot

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
)

// keysRecord is a record of n keys, of which there are one too few where the file must fail.
func keysRecord(n int, good bool) []record {
	h := format.RecordHeader{Space: format.SpaceGlobal, SplitColumn: format.AnySplit, DstEnd: uint64(n), HopNodes: []uint64{uint64(n)}}
	keys := format.Uint64Section(format.IDsKey, format.AnyLayer, make([]uint64, n))
	if !good {
		keys.Data = keys.Data[8:]
	}
	return []record{{h, []format.SectionSpec{keys}}}
}

func beginFiles(t *testing.T) (*fileWriter, *format.Job) {
	t.Helper()
	job, err := format.Begin(filepath.Join(t.TempDir(), "snap"), Kind, format.Digest{1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { job.Abort(false) })
	return newFileWriter(t.Context(), job), job
}

func noProgress(string, int64, int64) {}

// wantFiles wants these files, and no others, in the directory that a job fills.
func wantFiles(t *testing.T, job *format.Job, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(job.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			got = append(got, e.Name())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("files are %q, want %q", got, want)
	}
}

func TestFileWriter(t *testing.T) {
	w, job := beginFiles(t)
	for _, name := range []string{"c.plf", "a.plf", "d.plf"} { // more than are written at a time
		w.start(name, format.FileIDs, keysRecord(3, true))
	}
	w.seal(format.Digest{7})
	w.start("b.plf", format.FileIDs, keysRecord(5, true)) // known last, as the hop index is
	infos, err := w.finish(noProgress)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, job, "a.plf", "b.plf", "c.plf", "d.plf")
	for i, name := range []string{"a.plf", "b.plf", "c.plf", "d.plf"} {
		want, err := format.DigestFile(job.Path(name))
		if err != nil || infos[i] != want {
			t.Errorf("%s: %+v, want %+v, %v", name, infos[i], want, err)
		}
		f, err := format.OpenMember(job.Path(name), format.Member{Kind: format.FileIDs, SetKey: format.Digest{7}})
		if err != nil {
			t.Error(err)
		}
		f.Close()
	}
	job.Abort(true)
	again, err := format.Begin(job.Out, Kind, format.Digest{1})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Abort(false)
	w = newFileWriter(t.Context(), again)
	for _, name := range []string{"a.plf", "b.plf", "c.plf", "d.plf"} {
		w.start(name, format.FileIDs, keysRecord(3, false)) // taken over, so that nothing is written of this
	}
	w.seal(format.Digest{7})
	if got, err := w.finish(noProgress); err != nil || !slices.Equal(got, infos) {
		t.Errorf("a rerun takes over %v, %v, want %v", got, err, infos)
	}
}

// TestFileWriterFirstError lets a file fail: that error is what all others end with, and none of them is left.
func TestFileWriterFirstError(t *testing.T) {
	wrong := errors.New("source is broken")
	broken := keysRecord(3, true)
	broken[0].sections[0].Data, broken[0].sections[0].Write = nil, func(io.Writer) error { return wrong }
	for name, bad := range map[string]struct {
		records []record
		want    string
	}{
		"too short":      {keysRecord(3, false), "needs 24 bytes, got 16"},
		"no source":      {broken, wrong.Error()},
		"fails the look": {[]record{{format.RecordHeader{HopNodes: []uint64{1, 2}}, nil}}, "self-check of a file just written"},
	} {
		t.Run(name, func(t *testing.T) {
			w, job := beginFiles(t)
			w.start("a.plf", format.FileIDs, keysRecord(3, true))
			w.start("bad.plf", format.FileIDs, bad.records)
			if name == "fails the look" {
				w.seal(format.Digest{7})
			}
			<-w.ctx.Done()
			w.start("late.plf", format.FileIDs, keysRecord(3, true))
			if err := w.stop(w.ctx.Err()); err == nil || !strings.Contains(err.Error(), bad.want) {
				t.Errorf("got %v, want %q", err, bad.want)
			}
			if name != "fails the look" { // there a.plf may be finished before
				wantFiles(t, job)
			}
			if exists(job.Path("bad.plf")) || exists(job.Path("late.plf")) {
				t.Error("an unfinished file is left")
			}
		})
	}
}

// TestFileWriterStop ends the writing of files whose key never comes.
func TestFileWriterStop(t *testing.T) {
	w, job := beginFiles(t)
	w.start("a.plf", format.FileIDs, keysRecord(3, true))
	w.start("b.plf", format.FileIDs, keysRecord(3, true))
	<-w.files[0].written
	wrong := errors.New("the computing failed")
	if err := w.stop(wrong); err != wrong {
		t.Errorf("got %v", err)
	}
	wantFiles(t, job)

	ctx, cancel := context.WithCancel(t.Context())
	w = newFileWriter(ctx, job)
	w.start("a.plf", format.FileIDs, keysRecord(3, true))
	cancel()
	w.seal(format.Digest{7})
	switch _, err := w.finish(noProgress); {
	case err == nil: // it was faster
		wantFiles(t, job, "a.plf")
	case errors.Is(err, context.Canceled):
		wantFiles(t, job)
	default:
		t.Error(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
