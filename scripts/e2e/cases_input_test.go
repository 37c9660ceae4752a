package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The cases of inputs that went wrong in other tools; each name starts with its number.

func TestCase01SparseIDs(t *testing.T) {
	s := build(t, "--edges", casePath("01-ids-sparse", "edges.csv"))
	wantCounts(t, s, 4, 3)
	wantDegrees(t, s, map[string]int{"101": 2, "500000": 2, "7": 1, "90000017": 1})
	if got := len(s.In.Indptr); got != 5 {
		t.Errorf("indptr has %d entries, want 5", got)
	}
	if got := len(s.In.Indices); got != 6 {
		t.Errorf("%d entries, want 6", got)
	}
	wantIDs(t, s, "7", "101", "500000", "90000017")
}

func TestCase02LeadingZeros(t *testing.T) {
	edges, nodes := casePath("02-ids-leading-zeros", "edges.csv"), casePath("02-ids-leading-zeros", "nodes.csv")
	s := build(t, "--edges", edges, "--nodes", nodes)
	wantCounts(t, s, 3, 2)
	wantIDs(t, s, "007", "08", "7")
	wantDegrees(t, s, map[string]int{"007": 1, "7": 2, "08": 1})
	for id, class := range map[string]string{"007": "0", "7": "1", "08": "2"} {
		if got := s.ClassNames[s.Class[node(t, s, id)]]; got != class {
			t.Errorf("label of %s is %s, want %s", id, got, class)
		}
	}
	noSnapshot(t, []string{"nodes.csv", "007", "2", "3"}, "--edges", edges, "--nodes", nodes, "--id-type", "integer")
}

func TestCase03FloatSuffix(t *testing.T) {
	nodes := casePath("03-ids-float-suffix", "nodes.csv")
	noSnapshot(t, []string{"edges.csv:2", `"src"`, `"11.0"`, "nodes.csv"}, "--edges", casePath("03-ids-float-suffix", "edges.csv"), "--nodes", nodes)
	for _, idType := range []string{"auto", "string", "integer"} {
		noSnapshot(t, []string{"edges_half.csv:2", "12.5"}, "--edges", casePath("03-ids-float-suffix", "edges_half.csv"), "--nodes", nodes, "--id-type", idType)
	}
}

func TestCase06NegativeIDs(t *testing.T) {
	s := build(t, "--edges", casePath("06-ids-negative", "edges.csv"))
	wantCounts(t, s, 3, 3)
	wantIDs(t, s, "-1", "0", "5")
	wantDegrees(t, s, map[string]int{"-1": 2, "0": 2, "5": 2})
	for _, u := range s.IDs.Strings() {
		for _, v := range s.IDs.Strings() {
			wantNear(t, u+"->"+v, gcn(t, s, u, v), 1.0/3, 1e-6)
		}
	}
}

func TestCase08GoLiterals(t *testing.T) {
	s := build(t, "--edges", casePath("08-ids-go-literals", "edges.csv"))
	wantCounts(t, s, 6, 4)
	wantDegrees(t, s, map[string]int{"10": 2, "010": 2, "8": 1, "0x10": 1, "16": 1, "1_0": 1})
	if got := len(s.ComponentSizes); got != 2 {
		t.Errorf("%d components, want 2", got)
	}
	noSnapshot(t, []string{"weights.csv:2", `"1_0.5"`}, "--edges", casePath("08-ids-go-literals", "weights.csv"))
}

func TestCase09BOMAndCRLF(t *testing.T) {
	dir := "09-csv-bom-crlf-spaces"
	s := build(t, "--edges", casePath(dir, "edges.csv"), "--nodes", casePath(dir, "nodes.csv"))
	wantCounts(t, s, 3, 2)
	wantIDs(t, s, "u1", "u2", "u3")
	if !slices.Equal(s.Class, []int32{0, 1, 0}) {
		t.Errorf("classes %v, want 0 1 0", s.Class)
	}
	s = build(t, "--edges", casePath(dir, "edges_nohdr.tsv"))
	wantCounts(t, s, 3, 2)
	wantIDs(t, s, "u1", "u2", "u3")
	s = build(t, "--edges", casePath(dir, "edges_spaces.csv"), "--nodes", casePath(dir, "nodes.csv"))
	wantCounts(t, s, 3, 2)
}

func TestCase10BareQuoteInTSV(t *testing.T) {
	// Triples are a later matter; as an edge file, columns 1 and 3, the text must survive.
	s := build(t, "--edges", casePath("10-tsv-bare-quote", "triples.tsv"), "--src-col", "1", "--dst-col", "3", "--header", "no")
	wantCounts(t, s, 6, 3)
	for _, id := range []string{"film A", "film B", "film C", `6" guns`, `"Weird`, "plain"} {
		wantDegrees(t, s, map[string]int{id: 1})
	}
}

func TestCase11HashInID(t *testing.T) {
	s := build(t, "--edges", casePath("11-snap-hash-in-id", "graph.txt"))
	wantCounts(t, s, 4, 3)
	for _, id := range []string{"http://x.example/o#A", "http://x.example/o#B", "C#", "F#"} {
		node(t, s, id)
	}
}

func TestCase12NoHeader(t *testing.T) {
	dir := "12-csv-no-header"
	for _, header := range []string{"no", "auto"} {
		wantCounts(t, build(t, "--edges", casePath(dir, "no_header.csv"), "--header", header), 3, 3)
	}
	noSnapshot(t, []string{"no_header.csv", "src"}, "--edges", casePath(dir, "no_header.csv"), "--header", "yes")
	wantCounts(t, build(t, "--edges", casePath(dir, "no_header_text.csv")), 3, 2)
	for _, header := range []string{"yes", "auto"} {
		wantCounts(t, build(t, "--edges", casePath(dir, "with_header.csv"), "--header", header), 2, 1)
	}
	out := filepath.Join(t.TempDir(), "snap")
	r := ok(t, "precompute", "snapshot", "--edges", casePath(dir, "with_header.csv"), "--header", "no", "--out", out)
	if !strings.Contains(r.stderr, "source") {
		t.Errorf("no warning that a header was taken for an edge:\n%s", r.stderr)
	}
}

func TestCase20Gzip(t *testing.T) {
	dir := "20-gz-truncated-multimember"
	good, multi := build(t, "--edges", casePath(dir, "edges_ok.csv.gz")), build(t, "--edges", casePath(dir, "edges_multi.csv.gz"))
	wantCounts(t, good, 5, 4)
	wantCounts(t, multi, 5, 4)
	if good.ID != multi.ID {
		t.Errorf("ids %s and %s differ for the same graph", good.ID, multi.ID)
	}
	noSnapshot(t, []string{"edges_trunc.csv.gz", "truncated gzip"}, "--edges", casePath(dir, "edges_trunc.csv.gz"))
	noSnapshot(t, []string{"edges_badcrc.csv.gz", "checksum"}, "--edges", casePath(dir, "edges_badcrc.csv.gz"))
	noSnapshot(t, []string{"edges_empty.csv.gz", "empty or not gzip"}, "--edges", casePath(dir, "edges_empty.csv.gz"))
}

func TestCase21NPY(t *testing.T) {
	dir := "21-npy-order-and-dtype"
	flags := func(features string) []string {
		return []string{"--edges", casePath(dir, "edges.csv"), "--nodes", casePath(dir, "nodes.csv"), "--features", casePath(dir, features)}
	}
	for _, name := range []string{"c_f4.npy", "f_f4.npy", "be_f4.npy", "c_f8.npy", "c_i8.npy", "c_f2.npy", "feats.npz"} {
		s := build(t, flags(name)...)
		if want := []float32{1, 2, 3, 4, 5, 6}; !slices.Equal(s.Features, want) {
			t.Errorf("%s: features %v, want %v", name, s.Features, want)
		}
	}
	noSnapshot(t, []string{"feats.npz", "x"}, append(flags("feats.npz"), "--feature-member", "nope")...)
	noSnapshot(t, []string{"obj.npy", "object arrays are not supported"}, flags("obj.npy")...)
	noSnapshot(t, []string{"three_rows.npy", "3 rows for 2 nodes"}, flags("three_rows.npy")...)
	noSnapshot(t, []string{"short_data.npy", "file holds 20 of 24 data bytes"}, flags("short_data.npy")...)
}

func TestCase23QuotedNewline(t *testing.T) {
	dir := "23-csv-quoted-newline"
	s := build(t, "--edges", casePath(dir, "edges.csv"), "--nodes", casePath(dir, "nodes.csv"), "--label-col", "label")
	wantCounts(t, s, 2, 1)
	wantIDs(t, s, "a,1", `b"q`)
	if !slices.Equal(s.Class, []int32{0, 1}) {
		t.Errorf("classes %v, want 0 1", s.Class)
	}
	noSnapshot(t, []string{"empty_id.csv:3", "empty id"}, "--edges", casePath(dir, "edges.csv"), "--nodes", casePath(dir, "empty_id.csv"))
	noSnapshot(t, []string{"open.csv:2"}, "--edges", casePath(dir, "edges.csv"), "--nodes", casePath(dir, "open.csv"))
}

func TestCase34InvalidWeights(t *testing.T) {
	values := map[string]string{"neg": "-1", "nan": "nan", "inf": "inf", "huge": "1e999", "empty": `""`, "text": ""}
	for name, value := range values {
		path := casePath("34-weights-invalid", name+".csv")
		noSnapshot(t, []string{name + ".csv:3", `"weight"`, value}, "--edges", path)
		s := build(t, "--edges", path, "--weight-col", "none")
		wantCounts(t, s, 3, 2)
		wantNear(t, name+" end loop", gcn(t, s, "a", "a"), 0.5, 1e-6)
		wantNear(t, name+" edge", gcn(t, s, "a", "b"), 0.408248, 1e-6)
		wantNear(t, name+" middle loop", gcn(t, s, "b", "b"), 1.0/3, 1e-6)
	}
}

func TestCase36DecimalComma(t *testing.T) {
	semicolon, comma := casePath("36-weights-decimal-comma", "semicolon.csv"), casePath("36-weights-decimal-comma", "comma.csv")
	for _, locale := range []string{"C", "de_DE.UTF-8"} {
		dir := filepath.Join(t.TempDir(), "snap")
		locales := []string{"LC_ALL=" + locale, "LANG=" + locale}
		wantRefused(t, runIn(t, "", locales, "precompute", "snapshot", "--edges", semicolon, "--delimiter", ";", "--out", dir), 3, "semicolon.csv:2", `"0,5"`, "comma")
		wantRefused(t, runIn(t, "", locales, "precompute", "snapshot", "--edges", semicolon, "--out", dir), 3, "semicolon.csv")
		wantRefused(t, runIn(t, "", locales, "precompute", "snapshot", "--edges", comma, "--out", dir), 3, "comma.csv:2", "expected 3 fields, got 4")
	}
}

func TestCase38FeaturesInOtherOrder(t *testing.T) {
	dir := "38-features-other-order"
	flags := func(features string) []string {
		return []string{"--edges", casePath(dir, "edges.csv"), "--nodes", casePath(dir, "nodes.csv"), "--features", casePath(dir, features)}
	}
	s := build(t, flags("features.csv")...)
	wantIDs(t, s, "a", "b", "c")
	if want := []float32{1, 10, 2, 20, 3, 30}; !slices.Equal(s.Features, want) {
		t.Errorf("features %v, want %v", s.Features, want)
	}
	if want := []int32{0, 1, 0}; !slices.Equal(s.Class, want) {
		t.Errorf("classes %v, want %v", s.Class, want)
	}
	if want := []uint8{1, 2, 3}; !slices.Equal(s.Mask, want) {
		t.Errorf("parts %v, want %v", s.Mask, want)
	}
	if sorted := build(t, flags("features_sorted.csv")...); sorted.ID != s.ID {
		t.Errorf("ids %s and %s differ for the same tables in another order", s.ID, sorted.ID)
	}
}

func TestCase40Unlabelled(t *testing.T) {
	dir := "40-labels-unlabelled"
	edges, nodes := casePath(dir, "edges.csv"), casePath(dir, "nodes.csv")
	s := build(t, "--edges", edges, "--nodes", nodes)
	wantCounts(t, s, 5, 4)
	if want := []int32{0, 1, 2, -1, -1}; !slices.Equal(s.Class, want) || len(s.ClassNames) != 3 {
		t.Errorf("classes %v of %q, want %v of 3", s.Class, s.ClassNames, want)
	}
	d := object(t, "precompute", "inspect", s.Dir)
	if d["unlabelled"] != 2.0 || fmt.Sprint(d["class_counts"]) != "[1 1 1]" {
		t.Errorf("unlabelled %v, class counts %v, want 2 and [1 1 1]", d["unlabelled"], d["class_counts"])
	}
	noSnapshot(t, []string{"labels_float.csv:3", "1.0"}, "--edges", edges, "--labels", casePath(dir, "labels_float.csv"))

	// A train list with the unlabelled d: it is left out, with a word.
	out := filepath.Join(t.TempDir(), "snap")
	r := ok(t, "precompute", "snapshot", "--edges", edges, "--nodes", nodes, "--splits", "train="+casePath(dir, "train.txt"), "--out", out)
	if !strings.Contains(r.stderr, "d") || !strings.Contains(r.stderr, "1") {
		t.Errorf("no word on the unlabelled node of the train list:\n%s", r.stderr)
	}
	split := open(t, out)
	if got := split.Mask[node(t, split, "d")]; got != 0 {
		t.Errorf("unlabelled d is in part %d", got)
	}
}

func TestCase42SplitOverlap(t *testing.T) {
	dir := "42-split-overlap"
	flags := func(train, val, test string) []string {
		return []string{"--edges", casePath(dir, "edges.csv"), "--nodes", casePath(dir, "nodes.csv"),
			"--splits", "train=" + casePath(dir, train) + ",valid=" + casePath(dir, val) + ",test=" + casePath(dir, test)}
	}
	noSnapshot(t, []string{`"c"`, `"a"`, "train", "valid", "test"}, flags("train.txt", "val.txt", "test.txt")...)
	out := filepath.Join(t.TempDir(), "snap")
	r := ok(t, "precompute", append([]string{"snapshot", "--allow-split-overlap", "--out", out}, flags("train.txt", "val.txt", "test.txt")...)...)
	if !strings.Contains(r.stderr, `"c"`) || !strings.Contains(r.stderr, `"a"`) {
		t.Errorf("overlaps are not listed:\n%s", r.stderr)
	}
	noSnapshot(t, []string{"test_unknown.txt:2", `"zz"`}, flags("train_dup.txt", "val_empty.txt", "test_unknown.txt")...)

	only := write(t, filepath.Join(t.TempDir(), "d.txt"), "d\n")
	s := build(t, "--edges", casePath(dir, "edges.csv"), "--nodes", casePath(dir, "nodes.csv"),
		"--splits", "train="+casePath(dir, "train_dup.txt")+",valid="+casePath(dir, "val_empty.txt")+",test="+only)
	d := object(t, "precompute", "inspect", s.Dir)
	if got := fmt.Sprint(d["splits"]); got != "[map[name:split test:1 train:2 valid:0]]" {
		t.Errorf("splits %s, want 2 train, 0 valid, 1 test", got)
	}
}

func TestCase45LongLine(t *testing.T) {
	s := build(t, "--edges", casePath("45-long-line", "edges.tsv"), "--header", "auto")
	wantCounts(t, s, 4, 3)
	longest := 0
	for _, id := range s.IDs.Strings() {
		longest = max(longest, len(id))
	}
	if longest != 70_000 {
		t.Errorf("longest id has %d bytes, want 70000", longest)
	}
}

func TestCase69NamesWithSpaces(t *testing.T) {
	dir := "69-kg-names-with-spaces"
	s := build(t, "--edges", casePath(dir, "triples.tsv"), "--src-col", "1", "--dst-col", "3", "--header", "no")
	if s.NumNodes() != 4 {
		t.Errorf("%d nodes, want 4: %q", s.NumNodes(), s.IDs.Strings())
	}
	for _, id := range []string{"Zinc finger, type 1", "DNA | promoter", "cell nucleus", "Zinc finger"} {
		node(t, s, id)
	}
	noSnapshot(t, []string{"trailing_tab.tsv:2", "expected 3 fields, got 4"}, "--edges", casePath(dir, "trailing_tab.tsv"), "--src-col", "1", "--dst-col", "3", "--header", "no")
	wantCounts(t, build(t, "--edges", casePath(dir, "blank_line.tsv"), "--src-col", "1", "--dst-col", "3", "--header", "no"), 3, 2)
	noSnapshot(t, []string{"two_fields.tsv:2"}, "--edges", casePath(dir, "two_fields.tsv"), "--src-col", "1", "--dst-col", "3", "--header", "no")
}

// dataDir is where real data lies, or skips the test.
func dataDir(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("PRELIFT_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no data set %s (set PRELIFT_DATA): %v", name, err)
	}
	return dir
}

func TestPubMedFeaturesAreIncomplete(t *testing.T) {
	dir := filepath.Join(dataDir(t, "planetoid-pubmed"), "plain")
	flags := []string{"--edges", filepath.Join(dir, "edges.csv"), "--features", filepath.Join(dir, "features_partial.csv"), "--labels", filepath.Join(dir, "labels.csv"), "--splits", filepath.Join(dir, "split.csv")}
	noSnapshot(t, []string{"features_partial.csv", "18657", "19717", "--missing-features zero"}, flags...)
	s := build(t, append(flags, "--missing-features", "zero")...)
	wantCounts(t, s, 19717, 44324)
}
