package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// content reads a directory: names and what the files hold.
func content(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.Name()+"="+string(b))
	}
	return list
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, s := range []string{"one", "", strings.Repeat("x", 1<<20+1)} {
		if err := WriteFile(path, text(s)); err != nil {
			t.Fatal(err)
		}
		if got := content(t, dir); !slices.Equal(got, []string{"a=" + s}) {
			t.Errorf("%d files after %d bytes", len(got), len(s))
		}
	}
	if err := WriteFile(path, text("good")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := WriteFile(path, func(w io.Writer) error { return errors.Join(text("half")(w), broken) })
	if got := content(t, dir); !errors.Is(err, broken) || !slices.Equal(got, []string{"a=good"}) {
		t.Errorf("after a failed write: %v, %q", err, got)
	}
	if err := os.Mkdir(filepath.Join(dir, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "full", "b"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "full"), text("x")); err == nil {
		t.Error("a directory was replaced")
	}
	if err := WriteFile(filepath.Join(dir, "none", "a"), text("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into no directory: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v: want a and full", entries, err)
	}
}

// TestTwoWriters: each has a temporary of its own, so the last to publish wins whole.
func TestTwoWriters(t *testing.T) {
	dir := t.TempDir()
	var files []*File
	for _, s := range []string{"one", "two", "three"} {
		f, err := Create(dir, "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := text(s)(f); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	for _, f := range files[:2] {
		if err := errors.Join(f.Sync(), f.Publish("a")); err != nil {
			t.Fatal(err)
		}
	}
	if got := content(t, dir); len(got) != 2 || got[1] != "a=two" {
		t.Errorf("got %q", got)
	}
	if err := files[2].Sync(); err != nil { // and never published, as after a kill
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.partial"), nil, 0o644); err != nil { // somebody else's
		t.Fatal(err)
	}
	if err := Clean(dir, "b", "c"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, dir); len(got) != 3 {
		t.Errorf("after Clean of other files: %q", got)
	}
	if err := Clean(dir, "b", "a"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, dir); !slices.Equal(got, []string{"a=two", "b.partial="}) {
		t.Errorf("after Clean: %q", got)
	}
}
