package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// tableHead is the record head of a table over n nodes.
func tableHead(n int) *RecordHeader {
	return &RecordHeader{Space: SpaceGlobal, SplitColumn: AnySplit, DstEnd: uint64(n), HopNodes: []uint64{uint64(n)}}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestWriterRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.plf")
	h := Header{Kind: FileBatches, SnapshotID: [32]byte{1, 2}, SetKey: [32]byte{3}, Shard: 7}
	heads := []*RecordHeader{
		{Task: TaskNode, Split: PartValid, SplitColumn: 2, Number: 8, Variant: 1, NumLayers: 1, NumSeeds: 1, HopNodes: []uint64{1, 3}, LayerEdges: []uint64{2, 0}},
		{Task: TaskNode, Number: 9, Variant: 1, HopNodes: []uint64{0}},
	}
	specs := [][]SectionSpec{{
		Int32Section(NodesNumber, AnyLayer, []int32{5, 1, 2}),
		Int64Section(BlockIndptr, 0, []int64{0, 2}),
		Int32Section(BlockIndices, 0, []int32{1, 2}),
		Float32Section(CoefDst, 0, CoefMean, []float32{0.5}),
		{Kind: SeedsMask, Layer: AnyLayer, DType: U8, Shape: []uint64{1, 3}, Write: writeOf([]byte{1, 2, 3})},
		{Kind: TableRows, Layer: AnyLayer, DType: F32, Shape: []uint64{3, 0}},
	}, {Int32Section(NodesNumber, AnyLayer, nil)}}
	w, err := Create(path, h, 2)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int64
	for i := range heads {
		if err := w.Add(heads[i], specs[i]); err != nil {
			t.Fatal(err)
		}
		n, err := RecordSizeBytes(heads[i], specs[i])
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Abort() // does nothing
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Header != h || len(f.Records) != 2 || f.SizeBytes() != FileSizeBytes(sizes) || f.Name() != "a.plf" {
		t.Errorf("got header %+v, %d records, %d bytes; predicted %d", f.Header, len(f.Records), f.SizeBytes(), FileSizeBytes(sizes))
	}
	r, err := f.Record(0)
	if err != nil {
		t.Fatal(err)
	}
	if r.Split != PartValid || r.SplitColumn != 2 || r.Number != 8 || r.Variant != 1 || r.NumNodes() != 3 || int64(r.SizeBytes()) != sizes[0] {
		t.Errorf("got record %+v of %d bytes", r.RecordHeader, r.SizeBytes())
	}
	if got := r.Float32s(CoefDst, 0, CoefMean); len(got) != 1 || got[0] != 0.5 {
		t.Errorf("coef.dst is %v", got)
	}
	if got := r.Float32s(TableRows, AnyLayer, CoefNone); got == nil || len(got) != 0 {
		t.Errorf("a section of no bytes is %v, want empty and not nil", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o022 != 0 {
		t.Errorf("mode of the file: %v, %v", info.Mode(), err)
	}
}

func TestWriterFailures(t *testing.T) {
	key := func(n int) []SectionSpec { return []SectionSpec{Uint64Section(IDsKey, AnyLayer, make([]uint64, n))} }
	streamed := func(n int, err error) []SectionSpec {
		return []SectionSpec{{Kind: IDsKey, Layer: AnyLayer, DType: U64, Shape: []uint64{2}, Write: func(w io.Writer) error {
			if _, e := w.Write(make([]byte, n)); e != nil {
				return e
			}
			return err
		}}}
	}
	shaped := func(shape ...uint64) []SectionSpec {
		return []SectionSpec{{Kind: IDsKey, Layer: AnyLayer, DType: U64, Shape: shape, Data: make([]byte, 16)}}
	}
	broken := errors.New("source is broken")
	for name, c := range map[string]struct {
		head    *RecordHeader
		specs   []SectionSpec
		message string
		class   error
	}{
		"too few bytes streamed":  {tableHead(2), streamed(15, nil), "ids.key of shape [2] needs 16 bytes, got 15", nil},
		"too many bytes streamed": {tableHead(2), streamed(17, nil), "needs 16 bytes, got 17", nil},
		"source fails":            {tableHead(2), streamed(8, broken), "source is broken", broken},
		"no data":                 {tableHead(2), []SectionSpec{{Kind: IDsKey, Layer: AnyLayer, DType: U64, Shape: []uint64{2}}}, "needs 16 bytes, got 0", nil},
		"data and shape differ":   {tableHead(2), shaped(3), "needs 24 bytes, got 16", nil},
		"no dimensions":           {tableHead(2), shaped(), "0 dimensions", nil},
		"four dimensions":         {tableHead(2), shaped(1, 1, 1, 2), "4 dimensions", nil},
		"shape overflows":         {tableHead(2), shaped(1<<40, 1<<40), "too large", nil},
		"edge counts missing":     {&RecordHeader{NumLayers: 1, HopNodes: []uint64{1, 1}}, nil, "0 edge counts", nil},
		"too many layers":         {&RecordHeader{NumLayers: 65, HopNodes: make([]uint64, 66), LayerEdges: make([]uint64, 65*66)}, nil, "65 layers", nil},
		"self-check: bounds":      {tableHead(3), key(2), "self-check of a file just written", ErrLayout},
		"self-check: counts":      {&RecordHeader{HopNodes: []uint64{1, 2}}, nil, "self-check of a file just written", ErrLayout},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.plf")
			w, err := Create(path, Header{Kind: FileIDs}, 1)
			if err != nil {
				t.Fatal(err)
			}
			if err = w.Add(c.head, c.specs); err == nil {
				err = w.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.message) || c.class != nil && !errors.Is(err, c.class) {
				t.Fatalf("got %v, want %q", err, c.message)
			}
			if exists(path) {
				t.Error("the file is still there")
			}
			if again := w.Add(tableHead(2), key(2)); again != err {
				t.Errorf("Add of a dead writer: %v", again)
			}
			if again := w.Close(); again != err {
				t.Errorf("Close of a dead writer: %v", again)
			}
		})
	}
}

func TestWriterCounts(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []int{-1, 0, MaxRecords + 1} {
		if _, err := Create(filepath.Join(dir, "n.plf"), Header{Kind: FileIDs}, n); err == nil || exists(filepath.Join(dir, "n.plf")) {
			t.Errorf("Create for %d records: %v", n, err)
		}
	}
	path := filepath.Join(dir, "few.plf")
	w, err := Create(path, Header{Kind: FileIDs}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(tableHead(0), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "1 of 2 records") || exists(path) {
		t.Errorf("Close with a record missing: %v", err)
	}
	path = filepath.Join(dir, "many.plf")
	if w, err = Create(path, Header{Kind: FileIDs}, 1); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(tableHead(0), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(tableHead(0), nil); err == nil || exists(path) {
		t.Errorf("Add of a record too many: %v", err)
	}
}

func TestWriterLeavesOthersFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.plf")
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, Header{Kind: FileIDs}, 1); !errors.Is(err, os.ErrExist) {
		t.Errorf("Create over a file: %v", err)
	}
	if b, err := os.ReadFile(path); string(b) != "mine" {
		t.Errorf("the file has %q now, %v", b, err)
	}
}

func TestWriterAbort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.plf")
	w, err := Create(path, Header{Kind: FileIDs}, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if exists(path) {
		t.Error("the file is still there")
	}
	if err := w.Add(tableHead(0), nil); err == nil || !strings.Contains(err.Error(), "aborted") {
		t.Errorf("Add after Abort: %v", err)
	}
}

// keysFileBytes is the size of a file of one table of n keys.
func keysFileBytes(t *testing.T, n int) int64 {
	t.Helper()
	size, err := RecordSizeBytes(tableHead(n), []SectionSpec{Uint64Section(IDsKey, AnyLayer, make([]uint64, n))})
	if err != nil {
		t.Fatal(err)
	}
	return FileSizeBytes([]int64{size})
}

// TestWriterNoSpace writes to /dev/full, where every write gives ENOSPC, with arrays
// that fail in Add and ones that fail in Close only (they fit the buffer).
func TestWriterNoSpace(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	full.Close()
	for _, n := range []int{1, 1 << 18} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		w := newWriter(filepath.Join(t.TempDir(), "a.plf"), full, Header{Kind: FileIDs}, 1)
		err = w.Add(tableHead(n), []SectionSpec{Uint64Section(IDsKey, AnyLayer, make([]uint64, n))})
		if err == nil {
			err = w.Close()
		}
		want := fmt.Sprintf("%s: no space left on device: %d bytes are wanted there", w.path, keysFileBytes(t, n))
		if !errors.Is(err, unix.ENOSPC) || err.Error() != want {
			t.Errorf("%d keys: got %v, want %s", n, err, want)
		}
		if again := w.Close(); again != err {
			t.Errorf("%d keys: Close again: %v", n, again)
		}
	}
}

// TestWriterFileSizeLimit lets a child process write under a small RLIMIT_FSIZE.
func TestWriterFileSizeLimit(t *testing.T) {
	if path := os.Getenv("FORMAT_TEST_LIMIT"); path != "" {
		signal.Ignore(unix.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		w, err := Create(path, Header{Kind: FileIDs}, 1)
		if err != nil {
			t.Fatal(err)
		}
		err = w.Add(tableHead(1<<18), []SectionSpec{Uint64Section(IDsKey, AnyLayer, make([]uint64, 1<<18))})
		if !errors.Is(err, unix.EFBIG) || err.Error() != fmt.Sprintf("%s: file too large: %d bytes are wanted there", path, keysFileBytes(t, 1<<18)) || w.Close() != err || exists(path) {
			t.Fatalf("got %v, file exists: %t", err, exists(path))
		}
		return
	}
	runChild(t, "TestWriterFileSizeLimit", "FORMAT_TEST_LIMIT="+filepath.Join(t.TempDir(), "a.plf"))
}

// runChild runs one test of this binary in a process of its own, with env set.
func runChild(t *testing.T, test string, env ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("child: %v\n%s", err, out)
	}
}

// spoiler is a file whose content changes behind the writer's back, once it is closed.
type spoiler struct{ *earlyFile }

func (s spoiler) Close() error {
	b := make([]byte, 1)
	if _, err := s.ReadAt(b, RecordAlign+1000); err != nil {
		return err
	}
	b[0] ^= 1
	if _, err := s.WriteAt(b, RecordAlign+1000); err != nil {
		return err
	}
	return s.earlyFile.Close()
}

// TestWriterNoticesDamage wants what is on the disk to be checked, not what was written.
func TestWriterNoticesDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.plf")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	w := newWriter(path, spoiler{&earlyFile{File: file}}, Header{Kind: FileIDs}, 1)
	if err := w.Add(tableHead(1000), []SectionSpec{Uint64Section(IDsKey, AnyLayer, make([]uint64, 1000))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Seal(); !errors.Is(err, ErrChecksum) || !strings.Contains(err.Error(), "self-check of a file just written") || exists(path) {
		t.Errorf("got %v, file there: %t", err, exists(path))
	}
}

// TestWriterSizes writes arrays around the size of the buffer, given and streamed, after ones that shift it in the file.
func TestWriterSizes(t *testing.T) {
	for _, shift := range []int{0, 1, RecordAlign} {
		for _, n := range []int{0, 1, bufferBytes - 1, bufferBytes, bufferBytes + 1, 3*bufferBytes + 7} {
			for _, stream := range []bool{false, true} {
				path := filepath.Join(t.TempDir(), "a.plf")
				text := make([]byte, n)
				for i := range text {
					text[i] = byte(i * 31 >> 3)
				}
				spec := Uint8Section(IDsBytes, AnyLayer, text)
				if stream {
					spec.Data, spec.Write = nil, writeOf(text)
				}
				unchecked(t, path, Header{Kind: FileIDs}, tableHead(shift), []SectionSpec{Uint64Section(IDsKey, AnyLayer, make([]uint64, shift)), spec, Int32Section(RankOrder, AnyLayer, identity(shift))})
				if _, err := lookOver(path, true); err != nil {
					t.Fatalf("%d bytes behind %d keys, streamed %t: %v", n, shift, stream, err)
				}
				f, err := Open(path)
				if err != nil {
					t.Fatal(err)
				}
				if r, err := f.Record(0); err != nil || !bytes.Equal(r.Uint8s(IDsBytes, AnyLayer), text) {
					t.Errorf("%d bytes behind %d keys, streamed %t: other bytes, %v", n, shift, stream, err)
				}
				f.Close()
			}
		}
	}
}

func identity(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(i)
	}
	return v
}

// TestWriterSection reads sections of a file that is being written, from within a later one and between records.
func TestWriterSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.plf")
	w, err := Create(path, Header{Kind: FileIDs}, 2)
	if err != nil {
		t.Fatal(err)
	}
	read := func(kind Kind, layer uint16, coef Coef) []byte {
		t.Helper()
		offset, size, err := w.Section(kind, layer, coef)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil || int64(len(b)) < offset+size {
			t.Fatalf("%d bytes on the disk, %v, want %d", len(b), err, offset+size)
		}
		return b[offset : offset+size]
	}
	if _, _, err := w.Section(IDsBytes, AnyLayer, CoefNone); err == nil {
		t.Error("a section before the first record")
	}
	upper := SectionSpec{Kind: NamesBytes, Layer: AnyLayer, DType: U8, Shape: []uint64{3}, Write: func(to io.Writer) error {
		_, err := to.Write(bytes.ToUpper(read(IDsBytes, AnyLayer, CoefNone)))
		return err
	}}
	if err := w.Add(tableHead(0), []SectionSpec{Uint8Section(IDsBytes, AnyLayer, []byte("abc")), upper}); err != nil {
		t.Fatal(err)
	}
	if got := read(NamesBytes, AnyLayer, CoefNone); string(got) != "ABC" {
		t.Errorf("the second section is %q", got)
	}
	coefs := []SectionSpec{Float32Section(CoefSrc, AnyLayer, CoefGCN, []float32{1}), Float32Section(CoefSrc, AnyLayer, CoefMean, []float32{2})}
	if err := w.Add(tableHead(1), coefs); err != nil {
		t.Fatal(err)
	}
	if got := view[float32](bytes.Clone(read(CoefSrc, AnyLayer, CoefMean))); len(got) != 1 || got[0] != 2 {
		t.Errorf("the coefficients of mean are %v", got)
	}
	if _, _, err := w.Section(IDsBytes, AnyLayer, CoefNone); err == nil || !strings.Contains(err.Error(), "no section ids.bytes") {
		t.Errorf("a section of the record before: %v", err)
	}
	w.Abort()
	if _, _, err := w.Section(CoefSrc, AnyLayer, CoefGCN); err == nil || !strings.Contains(err.Error(), "aborted") {
		t.Errorf("a section of an aborted file: %v", err)
	}
}

func TestRecordSizeBytesTooLarge(t *testing.T) {
	huge := SectionSpec{Kind: IDsBytes, Layer: AnyLayer, DType: U8, Shape: []uint64{1 << 62}}
	if n, err := RecordSizeBytes(tableHead(0), []SectionSpec{huge, huge, huge}); err == nil {
		t.Errorf("three sections of 2^62 bytes give %d", n)
	}
}

// killChild is runChild for a test that kills its own process.
func killChild(t *testing.T, test string, env ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("child wasn't killed: %v\n%s", err, out)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("child ended by itself: %v\n%s", err, out)
	}
}
