package format

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// unchecked writes a file of one record and all that Close does but the look over it.
func unchecked(t testing.TB, path string, h Header, head *RecordHeader, specs []SectionSpec) {
	t.Helper()
	w, err := Create(path, h, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(head, specs); err != nil {
		t.Fatal(err)
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
}

// TestLookOverDigests compares the digest on the way with that of the file, at sizes around those of the parts.
func TestLookOverDigests(t *testing.T) {
	for _, n := range []int{0, 1, partBytes/8 - 1, partBytes / 8, partBytes/8 + 1, passBytes/8 - 600, passBytes / 8, 3*passBytes/8 + 1} {
		path := filepath.Join(t.TempDir(), "a.plf")
		keys := make([]uint64, n)
		for i := range keys {
			keys[i] = uint64(i) * 0x9e3779b97f4a7c15
		}
		unchecked(t, path, Header{Kind: FileIDs}, tableHead(n), []SectionSpec{Uint64Section(IDsKey, AnyLayer, keys)})
		want, err := DigestFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := lookOver(path, true); err != nil || got != want {
			t.Errorf("%d keys: %+v, %v, want %+v", n, got, err, want)
		}
		want.SHA256 = Digest{}
		if got, err := lookOver(path, false); err != nil || got != want {
			t.Errorf("%d keys without a digest: %+v, %v, want %+v", n, got, err, want)
		}
	}
}

// TestLookOverFindsDamage changes each byte of a file between its fsync and the look over it.
func TestLookOverFindsDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.plf")
	unchecked(t, path, Header{Kind: FileIDs}, tableHead(2), []SectionSpec{
		Int64Section(IDsOffsets, AnyLayer, []int64{0, 1, 3}), Uint8Section(IDsBytes, AnyLayer, []byte("abb")), Uint64Section(IDsKey, AnyLayer, []uint64{7, 8})})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range good {
		if at > 256 && at < RecordAlign-2 { // padding
			continue
		}
		bad := bytes.Clone(good)
		bad[at] ^= 0x40
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := lookOver(path, true); !IsCorrupt(err) {
			t.Fatalf("byte %d changed: %v", at, err)
		}
	}
	if err := os.WriteFile(path, good[:len(good)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := lookOver(path, true); !errors.Is(err, ErrTruncated) {
		t.Errorf("a byte short: %v", err)
	}
}

// TestLookOverOfCutFile cuts a file short that is mapped: both goroutines meet pages that are gone.
func TestLookOverOfCutFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.plf")
	n := 2 * passBytes / 8
	unchecked(t, path, Header{Kind: FileIDs}, tableHead(n), []SectionSpec{Uint64Section(IDsKey, AnyLayer, make([]uint64, n))})
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, RecordAlign); err != nil {
		t.Fatal(err)
	}
	p := startPass("a.plf", f.data, true)
	if err := f.verify(p); !errors.Is(err, ErrTruncated) {
		t.Errorf("the check says %v", err)
	}
	p.finish() // its part may be there or not
	p = startPass("a.plf", f.data, true)
	p.seen(len(f.data))
	if _, err := p.finish(); !errors.Is(err, ErrTruncated) {
		t.Errorf("the digest says %v", err)
	}
}

// TestPartOrder wants a bad checksum to be said before bad contents, which come first in the file.
func TestPartOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.plf")
	unchecked(t, path, Header{Kind: FileIDs}, tableHead(2), []SectionSpec{
		Int64Section(IDsOffsets, AnyLayer, []int64{0, 5, 3}), Uint8Section(IDsBytes, AnyLayer, []byte("abb")), Uint64Section(IDsKey, AnyLayer, []uint64{7, 8})})
	if _, err := lookOver(path, true); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), "falls from 5 to 3 at 2") {
		t.Errorf("bad contents: %v", err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := lookOver(path, true); !errors.Is(err, ErrChecksum) {
		t.Errorf("bad contents and a bad checksum: %v", err)
	}
}

// TestPartBorders puts a fault at each side of the border of two parts, for each check that carries something over it.
func TestPartBorders(t *testing.T) {
	const border = partBytes / 8
	n := border + 2
	offsets := func(at int) []int64 {
		v := make([]int64, n+1)
		for i := range v {
			v[i] = int64(i)
		}
		if at >= 0 {
			v[at] += 2 // over the next one
		}
		return v
	}
	ids := func(offsets []int64) []SectionSpec {
		return []SectionSpec{Int64Section(IDsOffsets, AnyLayer, offsets), Uint8Section(IDsBytes, AnyLayer, make([]byte, n))}
	}
	sizes := func(extra int) []int64 {
		v := make([]int64, n)
		for i := range v {
			v[i] = 1
		}
		v[n-1] += int64(extra)
		return v
	}
	order := func(at, as int) []int32 {
		v := make([]int32, n)
		for i := range v {
			v[i] = int32(i)
		}
		v[at] = v[as]
		return v
	}
	component := func() SectionSpec { return Int32Section(GraphComponent, AnyLayer, make([]int32, n)) }
	for name, c := range map[string]struct {
		specs []SectionSpec
		want  string // "" is good
	}{
		"offsets, good":           {ids(offsets(-1)), ""},
		"offsets before a border": {ids(offsets(border - 1)), fmt.Sprintf("falls from %d to %d at %d", border+1, border, border)},
		"offsets after a border":  {ids(offsets(border)), fmt.Sprintf("falls from %d to %d at %d", border+2, border+1, border+1)},
		"sizes, good":             {[]SectionSpec{component(), Int64Section(GraphComponentSize, AnyLayer, sizes(0))}, ""},
		"sizes, too many":         {[]SectionSpec{component(), Int64Section(GraphComponentSize, AnyLayer, sizes(1))}, "nodes are left"},
		"sizes, too few":          {[]SectionSpec{component(), Int64Section(GraphComponentSize, AnyLayer, sizes(0)[:n-1])}, fmt.Sprintf("adds up to %d of %d", n-1, n)},
		"permutation, good":       {[]SectionSpec{Int32Section(RankOrder, AnyLayer, order(0, 0))}, ""},
		"listed twice":            {[]SectionSpec{Int32Section(RankOrder, AnyLayer, order(n-1, 0))}, "listed before"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.plf")
			unchecked(t, path, Header{Kind: FileIDs}, tableHead(n), c.specs)
			_, err := lookOver(path, true)
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestLookOverNeedsLittleMemory looks over a file several times larger than what of it may be in this process's memory.
func TestLookOverNeedsLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 192 MiB")
	}
	path := filepath.Join(t.TempDir(), "a.plf")
	const n = 24 << 20
	unchecked(t, path, Header{Kind: FileIDs}, tableHead(n), []SectionSpec{Uint64Section(IDsKey, AnyLayer, make([]uint64, n))})
	runtime.GC()
	before := residentFiles(t)
	most, done := int64(0), make(chan error)
	go func() {
		_, err := lookOver(path, true)
		done <- err
	}()
	for tick := time.NewTicker(time.Millisecond); ; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			// Four parts of 4 MiB under way, and what the system maps beside.
			if limit := int64(8 * passBytes); most-before > limit {
				t.Errorf("%d bytes of the file were in memory, want %d at most", most-before, limit)
			}
			return
		case <-tick.C:
			most = max(most, residentFiles(t))
		}
	}
}

// residentFiles is how much of mapped files is in this process's memory, in bytes.
func residentFiles(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	_, rest, ok := strings.Cut(string(status), "RssFile:")
	if err != nil || !ok {
		t.Skip("the system doesn't tell what is in memory")
	}
	var kib int64
	fmt.Sscan(rest, &kib)
	return kib << 10
}
