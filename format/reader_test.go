package format

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func openVector(t testing.TB, name string) *File {
	t.Helper()
	f, err := Open(filepath.Join(vectorDir, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func vectorRecord(t testing.TB, name string) *Record {
	t.Helper()
	r, err := openVector(t, name).Record(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOpenFailures(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "absent.plf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrLayout) {
		t.Errorf("directory: %v", err)
	}
	if err := os.Symlink(filepath.Join(dir, "absent.plf"), filepath.Join(dir, "dangling.plf")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(dir, "dangling.plf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("dangling link: %v", err)
	}
	f := openVector(t, "good-tiny.plf")
	for _, i := range []int{-1, 1} {
		if _, err := f.Record(i); !errors.Is(err, ErrLimit) {
			t.Errorf("record %d of 1: %v", i, err)
		}
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Errorf("Close twice: %v", err)
	}
}

// TestOpenLinks reads through what DVC's cache hands out: symbolic links and read-only
// hard links.
func TestOpenLinks(t *testing.T) {
	dir := t.TempDir()
	b, err := os.ReadFile(filepath.Join(vectorDir, "good-tiny.plf"))
	if err != nil {
		t.Fatal(err)
	}
	cached := filepath.Join(dir, "cached")
	if err := os.WriteFile(cached, b, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink("cached", filepath.Join(dir, "soft.plf")), os.Link(cached, filepath.Join(dir, "hard.plf"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"soft.plf", "hard.plf"} {
		if err := openAndVerify(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestViews(t *testing.T) {
	r := vectorRecord(t, "good-layers.plf")
	for name, c := range map[string]struct{ got, want any }{
		"i32":               {r.Int32s(BlockIndices, 1), []int32{2, 3}},
		"i64":               {r.Int64s(BlockEdgeID, 0), []int64{7, 8, 9, 10, 1 << 40}},
		"u8":                {r.Uint8s(SeedsLabel, AnyLayer), []uint8{0, 1, 255, 1, 0, 0}},
		"f32":               {r.Float32s(BlockWeight, 0, CoefNone), []float32{1, 2, 3, 4, 5}},
		"of the layer":      {r.Float32s(CoefDst, 0, CoefMean), []float32{1, 1, 0.5, 1}},
		"of another layer":  {r.Float32s(CoefDst, 1, CoefMean), []float32{1, 1}},
		"of every layer":    {r.Float32s(CoefDst, 1, CoefGCN), []float32{1, 1, 0.5, 0.5}},
		"absent":            {r.Int32s(NodesRow, AnyLayer), []int32(nil)},
		"absent layer":      {r.Int32s(BlockRel, 1), []int32(nil)},
		"absent kind":       {r.Float32s(CoefDst, 0, CoefSum), []float32(nil)},
		"another type":      {r.Int32s(SeedsLabel, AnyLayer), []int32(nil)},
		"another type, f32": {r.Float32s(SeedsLabel, AnyLayer, CoefNone), []float32(nil)},
		"u64":               {vectorRecord(t, "good-ids.plf").Uint64s(IDsKey, AnyLayer)[1], uint64(0x7902699be42c8a8e)}, // printf 7 | sha256sum
		"ids":               {vectorRecord(t, "good-ids.plf").IDs().Strings(), []string{"-3", "7", "007", "né"}},
		"names":             {vectorRecord(t, "good-splits.plf").Names().Strings(), []string{"split_0", ""}},
		"no names":          {vectorRecord(t, "good-tiny.plf").Names().Strings(), []string{}},
		"empty":             {vectorRecord(t, "good-no-edges.plf").Int32s(BlockIndices, 0), []int32{}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}

func TestBlockDims(t *testing.T) {
	for name, c := range map[string]struct {
		file               string
		layer              uint16
		dst, src, numNodes uint64
	}{
		"input side":  {"good-layers.plf", 0, 4, 6, 6},
		"output side": {"good-layers.plf", 1, 2, 4, 6},
		"no layers":   {"good-full.plf", AnyLayer, 3, 3, 3},
		"global":      {"good-eval.plf", AnyLayer, 3, 5, 5},
		"table":       {"good-topology.plf", AnyLayer, 3, 3, 3},
		"no nodes":    {"good-no-nodes.plf", AnyLayer, 0, 0, 0},
	} {
		r := vectorRecord(t, c.file)
		if dst, src := r.BlockDims(c.layer); dst != c.dst || src != c.src || r.NumNodes() != c.numNodes {
			t.Errorf("%s: got %d dst, %d src, %d nodes, want %d, %d, %d", name, dst, src, r.NumNodes(), c.dst, c.src, c.numNodes)
		}
	}
}

func TestCheckNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		kind  Kind
		limit int
		ok    bool
	}{
		"numbers within":              {"good-tiny.plf", NodesNumber, 10, true},
		"numbers beyond":              {"good-tiny.plf", NodesNumber, 9, false},
		"no nodes":                    {"good-tiny.plf", NodesNumber, 0, false},
		"limit over 32 bits":          {"good-tiny.plf", NodesNumber, 1<<32 + 1, true},
		"classes within, -1 passes":   {"good-tiny.plf", SeedsLabel, 2, true},
		"class beyond":                {"good-tiny.plf", SeedsLabel, 1, false},
		"absent section has no fault": {"good-tiny.plf", NodesType, 0, true},
	} {
		if err := vectorRecord(t, c.file).CheckNumbers(c.kind, c.limit); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrLayout) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCheckRows(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		rows [4]int
		ok   bool
	}{
		"own rows and the table's":       {"good-packed-rows.plf", [4]int{901, 0, 0, 0}, true},
		"beyond the table":               {"good-packed-rows.plf", [4]int{900, 2, 1000, 1000}, false},
		"without nodes.table":            {"good-rows-elsewhere.plf", [4]int{901, 0, 0, 0}, true},
		"beyond it without nodes.table":  {"good-rows-elsewhere.plf", [4]int{900, 1000, 1000, 1000}, false},
		"group and hot rows":             {"good-rows-shared.plf", [4]int{0, 1, 8, 1}, true},
		"beyond the group's":             {"good-rows-shared.plf", [4]int{1000, 1000, 7, 1}, false},
		"beyond the hot ones":            {"good-rows-shared.plf", [4]int{1000, 1000, 8, 0}, false},
		"a record without nodes.row":     {"good-tiny.plf", [4]int{}, true},
		"own rows only, in node order":   {"good-packed.plf", [4]int{}, true},
		"a table that the set hasn't":    {"good-rows-shared.plf", [4]int{}, false},
		"own rows are bounded by Verify": {"good-packed-rows.plf", [4]int{901, -1, 0, 0}, true},
	} {
		if err := vectorRecord(t, c.file).CheckRows(c.rows); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrLayout) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCheckTranspose(t *testing.T) {
	// Three dst with the edges 1->0, 0->1, 2->1, 1->2.
	indptr, indices := []int64{0, 1, 3, 4}, []int32{1, 0, 2, 1}
	for name, c := range map[string]struct {
		tIndptr  []int64
		tIndices []int32
		tEdge    []int64
		ok       bool
	}{
		"right":         {[]int64{0, 1, 3, 4}, []int32{1, 0, 2, 1}, []int64{1, 0, 3, 2}, true},
		"edge twice":    {[]int64{0, 1, 3, 4}, []int32{1, 0, 0, 1}, []int64{1, 0, 0, 2}, false},
		"not in order":  {[]int64{0, 1, 3, 4}, []int32{1, 2, 0, 1}, []int64{1, 3, 0, 2}, false},
		"wrong dst":     {[]int64{0, 1, 3, 4}, []int32{1, 0, 1, 1}, []int64{1, 0, 3, 2}, false},
		"wrong src":     {[]int64{0, 2, 3, 4}, []int32{1, 0, 2, 1}, []int64{1, 0, 3, 2}, false},
		"edges swapped": {[]int64{0, 1, 3, 4}, []int32{1, 0, 2, 1}, []int64{2, 0, 3, 1}, false},
	} {
		m := &memory{}
		w := newWriter("t.plf", m, Header{Kind: FileBatches}, 1)
		err := w.Add(&RecordHeader{HopNodes: []uint64{3}}, []SectionSpec{
			Int64Section(BlockIndptr, AnyLayer, indptr), Int32Section(BlockIndices, AnyLayer, indices),
			Int64Section(TransposeIndptr, AnyLayer, c.tIndptr), Int32Section(TransposeIndices, AnyLayer, c.tIndices), Int64Section(TransposeEdge, AnyLayer, c.tEdge),
		})
		if err := errors.Join(err, w.finish()); err != nil {
			t.Fatal(err)
		}
		f, err := Parse("t.plf", m.bytes)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Verify(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r, err := f.Record(0)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.CheckTranspose(AnyLayer); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrLayout) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, name := range []string{"good-layers.plf", "good-full.plf"} {
		r := vectorRecord(t, name)
		layer := uint16(0)
		if r.NumLayers == 0 {
			layer = AnyLayer
		}
		if err := r.CheckTranspose(layer); err != nil {
			t.Error(err)
		}
	}
}

// TestGuard cuts a file short under its mapping: reads of the lost pages are a SIGBUS
// that must become an error of class truncated.
func TestGuard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.plf")
	w, err := Create(path, Header{Kind: FileIDs}, 2)
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]uint64, 4096)
	for range 2 {
		if err := w.Add(tableHead(len(keys)), []SectionSpec{Uint64Section(IDsKey, AnyLayer, keys)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := f.Record(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	var dump strings.Builder
	for name, err := range map[string]error{
		"Verify":         r.Verify(),
		"File.Verify":    f.Verify(),
		"Dump":           Dump(&dump, f),
		"VerifyPadding":  f.VerifyPadding(),
		"head of record": func() error { _, err := f.Record(1); return err }(),
	} {
		if !errors.Is(err, ErrTruncated) || !strings.HasPrefix(err.Error(), "a.plf") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if old := debug.SetPanicOnFault(false); old {
		t.Error("Guard leaves SetPanicOnFault on")
	}
}

func TestGuardPassesOnPanics(t *testing.T) {
	var nothing *Record
	for name, fn := range map[string]func() error{
		"panic":           func() error { panic("our own bug") },
		"nil dereference": func() error { nothing.NumSeeds++; return nil },
		"index":           func() error { var a []int; i := 3; a[i]++; return nil },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: Guard hid it", name)
				}
			}()
			_ = Guard("test", fn)
		}()
	}
	want := errors.New("mine")
	if err := Guard("test", func() error { return want }); err != want {
		t.Errorf("Guard returns %v", err)
	}
	if FaultOf("text") != nil || FaultOf(nil) != nil || FaultOf(want) != nil {
		t.Error("FaultOf takes other values for faults")
	}
}

func TestErrorClasses(t *testing.T) {
	if Class(nil) != "" || Class(os.ErrNotExist) != "" || IsCorrupt(os.ErrNotExist) || IsCorrupt(nil) {
		t.Error("errors of no class have one")
	}
	err := faultf(ErrLimit, "a.plf", "%d records", 5)
	if err.Error() != "a.plf: over a limit: 5 records" || Class(err) != "limit" || !IsCorrupt(err) {
		t.Errorf("got %v", err)
	}
	if err := faultf(ErrMismatch, "a", "b"); IsCorrupt(err) {
		t.Error("a mismatch is corrupt")
	}
}

func TestNamesOfUnknownNumbers(t *testing.T) {
	for got, want := range map[string]string{
		Coef(99).String(): "unknown(99)", DType(99).String(): "unknown(99)", FileKind(99).String(): "unknown(99)", Task(99).String(): "unknown(99)",
		Part(99).String(): "unknown(99)", IndexSpace(99).String(): "unknown(99)", Codec(99).String(): "unknown(99)", Kind(0x7777).String(): "kind 0x7777",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for c, name := range coefNames {
		if got, ok := ParseCoef(name); !ok || got != c {
			t.Errorf("ParseCoef(%q) = %v, %t", name, got, ok)
		}
	}
	if _, ok := ParseCoef("gcn2"); ok {
		t.Error("ParseCoef accepts gcn2")
	}
}

func TestNames(t *testing.T) {
	for _, list := range [][]string{{}, {""}, {"a", "", "né", "b\x00c"}} {
		n := NamesOf(list)
		if got := n.Strings(); !reflect.DeepEqual(got, list) || n.Len() != len(list) {
			t.Errorf("got %q, want %q", got, list)
		}
	}
	if (Names{}).Len() != 0 {
		t.Error("no arrays have names")
	}
	if got := string(NamesOf([]string{"a", "bc"}).At(1)); got != "bc" {
		t.Errorf("name 1 is %q", got)
	}
}
