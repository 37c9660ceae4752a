package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

const vectorDir = "testdata/vectors"

// vector is an entry of vectors.json, which testdata/make_vectors.py writes.
type vector struct {
	File     string   `json:"file"`
	Dir      string   `json:"dir"`
	Class    string   `json:"class"` // SPEC 9's word, or ok
	Check    string   `json:"check"` // SPEC 9's label
	About    string   `json:"about"`
	Sections []string `json:"sections"` // digests of the arrays of a good file
	ID       string   `json:"id"`       // of a good directory
	Extra    []string `json:"extra"`
}

func readVectors(t testing.TB) (files, manifests []vector) {
	t.Helper()
	var index struct{ Files, Manifests []vector }
	b, err := os.ReadFile(filepath.Join(vectorDir, "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &index); err != nil {
		t.Fatal(err)
	}
	return index.Files, index.Manifests
}

// classOf is Class with "ok" for nil; an error of no class is a failure of its own.
func classOf(err error) string {
	if err == nil {
		return "ok"
	}
	if c := Class(err); c != "" {
		return c
	}
	return "no class: " + err.Error()
}

func openAndVerify(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Verify()
}

func parseAndVerify(name string, b []byte) error {
	f, err := Parse(name, b)
	if err != nil {
		return err
	}
	return f.Verify()
}

func TestVectors(t *testing.T) {
	files, _ := readVectors(t)
	for _, v := range files {
		t.Run(v.File, func(t *testing.T) {
			path := filepath.Join(vectorDir, v.File)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			mapped := openAndVerify(path)
			if got := classOf(mapped); got != v.Class {
				t.Errorf("Open: got class %s, want %s (%s): %v", got, v.Class, v.About, mapped)
			}
			parsed := parseAndVerify(v.File, b)
			if fmt.Sprint(parsed) != fmt.Sprint(mapped) {
				t.Errorf("Parse says %v, Open %v", parsed, mapped)
			}
			if mapped != nil && (!strings.HasPrefix(mapped.Error(), v.File+": ") || strings.Contains(mapped.Error(), "\n")) {
				t.Errorf("message isn't one line that begins with the file: %q", mapped)
			}
			if v.Class != "ok" {
				return
			}
			f, err := Parse(v.File, b)
			if err != nil {
				t.Fatal(err)
			}
			if got := sectionDigests(t, f); !reflect.DeepEqual(got, v.Sections) && len(got)+len(v.Sections) > 0 {
				t.Errorf("sections differ:\ngot  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(v.Sections, "\n     "))
			}
			if again := rewrite(t, f); !bytes.Equal(again, b) {
				t.Errorf("rewritten file differs: %d bytes, had %d", len(again), len(b))
			}
		})
	}
}

// TestVectorsCoverChecks wants a vector for each labelled check of SPEC 9, of its class.
func TestVectorsCoverChecks(t *testing.T) {
	files, manifests := readVectors(t)
	seen := map[string]string{}
	for _, v := range append(files, manifests...) {
		if v.Check != "" {
			seen[v.Check] = v.Class
		}
	}
	for _, row := range specTables(t)["check"] {
		if got, want := seen[row["check"]], row["class"]; got != want {
			t.Errorf("check %s (%s): vectors have class %q, want %q", row["check"], row["rule"], got, want)
		}
		delete(seen, row["check"])
	}
	for label := range seen {
		t.Errorf("vectors name check %s, SPEC 9 doesn't", label)
	}
}

func sectionDigests(t *testing.T, f *File) []string {
	t.Helper()
	var list []string
	for i := range f.Records {
		r, err := f.Record(i)
		if err != nil {
			t.Fatal(err)
		}
		for k := range r.Sections {
			s, array := &r.Sections[k], r.Sections[k].Bytes()
			switch {
			case s.Codec == CodecBits && s.DType == I32:
				array = Bytes(r.Int32s(s.Kind, s.Layer))
			case s.Codec == CodecBits:
				array = Bytes(r.Int64s(s.Kind, s.Layer))
			}
			list = append(list, fmt.Sprintf("record %d kind 0x%04x layer %d coef %d sha256 %x", i, uint16(s.Kind), s.Layer, s.Coef, sha256.Sum256(array)))
		}
	}
	return list
}

// memory is a sink that keeps the bytes.
type memory struct{ bytes []byte }

func (m *memory) Write(b []byte) (int, error) {
	m.bytes = append(m.bytes, b...)
	return len(b), nil
}

func (m *memory) WriteAt(b []byte, offset int64) (int, error) {
	return copy(m.bytes[offset:], b), nil
}

func (m *memory) Sync() error  { return nil }
func (m *memory) Close() error { return nil }

// rewrite writes what a reader got of f again, with the Writer, into memory.
func rewrite(t testing.TB, f *File) []byte {
	t.Helper()
	m := &memory{}
	w := newWriter(f.Name()+".rewritten", m, f.Header, len(f.Records))
	for i := range f.Records {
		r, err := f.Record(i)
		if err != nil {
			t.Fatal(err)
		}
		specs := make([]SectionSpec, len(r.Sections))
		for k := range specs {
			s := &r.Sections[k]
			specs[k] = SectionSpec{Kind: s.Kind, Layer: s.Layer, Coef: s.Coef, DType: s.DType, Shape: s.Shape, Codec: s.Codec, StoredBytes: s.SizeBytes, Data: s.Bytes()}
			if specs[k].Data == nil {
				specs[k].Data = []byte{}
			}
			if k%2 == 1 {
				specs[k].Write = writeOf(specs[k].Data)
				specs[k].Data = nil
			}
		}
		size, err := RecordSizeBytes(&r.RecordHeader, specs)
		if err != nil || uint64(size) != f.Records[i].SizeBytes {
			t.Errorf("RecordSizeBytes(record %d) = %d, %v, want %d", i, size, err, f.Records[i].SizeBytes)
		}
		if err := w.Add(&r.RecordHeader, specs); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	return m.bytes
}

// writeOf streams b in three pieces.
func writeOf(b []byte) func(w io.Writer) error {
	return func(w io.Writer) error {
		for _, part := range [][]byte{b[:len(b)/3], b[len(b)/3 : len(b)/2], b[len(b)/2:]} {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
}

// vectorManifest is the manifest of the directories under vectors/manifests.
type vectorManifest struct {
	Kind          string     `json:"kind"`
	FormatVersion int        `json:"format_version"`
	NumNodes      Int        `json:"num_nodes"`
	Files         []FileInfo `json:"files"`
}

func readVectorDir(dir string) (id Digest, extra []string, err error) {
	var m vectorManifest
	if id, err = ReadManifest(dir, "vector", &m); err != nil {
		return id, nil, err
	}
	if extra, err = CheckFiles(dir, m.Files); err != nil {
		return id, nil, err
	}
	return id, extra, VerifyFiles(dir, m.Files)
}

func TestManifestVectors(t *testing.T) {
	_, manifests := readVectors(t)
	for _, v := range manifests {
		t.Run(filepath.Base(v.Dir), func(t *testing.T) {
			id, extra, err := readVectorDir(filepath.Join(vectorDir, v.Dir))
			if got := classOf(err); got != v.Class {
				t.Fatalf("got class %s, want %s (%s): %v", got, v.Class, v.About, err)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("message isn't one plain line: %q", err)
			}
			if v.Class == "ok" && (id.String() != v.ID || !reflect.DeepEqual(extra, v.Extra)) {
				t.Errorf("got id %s, extra files %q; want %s, %q", id, extra, v.ID, v.Extra)
			}
		})
	}
}

// TestVectorBuilder runs the Python builder and compares its output with what is committed.
func TestVectorBuilder(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on this machine")
	}
	dir := filepath.Join(t.TempDir(), "vectors")
	if out, err := exec.Command(python, "testdata/make_vectors.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("make_vectors.py: %v\n%s", err, out)
	}
	got, want := readTree(t, dir), readTree(t, vectorDir)
	for name, b := range got {
		if !bytes.Equal(want[name], b) {
			t.Errorf("%s: the builder gives other bytes than the repository has; run testdata/make_vectors.py", name)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s: in the repository, but not built", name)
	}
}

func readTree(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	tree := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		tree[rel], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestEveryBit flips each bit of a file: CRCs, reserved bytes and padding cover them all.
func TestEveryBit(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(vectorDir, "good-tiny.plf"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		bit := byte(1) << (i % 8)
		b[i] ^= bit
		if err := parseAndVerify("flipped", b); !IsCorrupt(err) {
			t.Fatalf("bit %d of byte %d flipped: got %v", i%8, i, err)
		}
		b[i] ^= bit
	}
}

// TestEveryLength cuts a file at each length.
func TestEveryLength(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(vectorDir, "good-layers.plf"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range b {
		if err := parseAndVerify("cut", b[:n]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("cut to %d bytes: got %v", n, err)
		}
	}
}

// TestHugeCounts wants no allocation that a count in a file asks for.
func TestHugeCounts(t *testing.T) {
	files, _ := readVectors(t)
	name := regexp.MustCompile("huge|overflow|beyond|columns")
	for _, v := range files {
		if !name.MatchString(v.File) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(vectorDir, v.File))
		if err != nil {
			t.Fatal(err)
		}
		if n := allocated(func() { _ = parseAndVerify(v.File, b) }); n > 1<<20 {
			t.Errorf("%s: %d bytes allocated for a file of %d", v.File, n, len(b))
		}
	}
}

func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
