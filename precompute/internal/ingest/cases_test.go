package ingest

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/snapshot"
)

// in returns the path of a file of a case.
func in(name, file string) string { return filepath.Join("testdata", "cases", name, file) }

// read is Read, with the careful path and several thread counts compared against the default.
func read(t *testing.T, opt Options) (*snapshot.Tables, *Report, error) {
	t.Helper()
	tables, report, err := Read(t.Context(), opt)
	for _, threads := range []int{1, 3, 16} {
		opt.Threads, opt.noFast, opt.blockSize = threads, threads == 3, 0
		if threads == 16 {
			opt.blockSize = 7
		}
		again, _, err2 := Read(t.Context(), opt)
		if fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("threads %d: got %v, want %v", threads, err2, err)
		}
		if err == nil {
			sameTables(t, again, tables)
		}
	}
	return tables, report, err
}

func mustRead(t *testing.T, opt Options) (*snapshot.Tables, *Report) {
	t.Helper()
	tables, report, err := read(t, opt)
	if err != nil {
		t.Fatal(err)
	}
	return tables, report
}

// wantError wants an *Error with the given place and its line to hold every text.
func wantError(t *testing.T, opt Options, file string, line int64, texts ...string) {
	t.Helper()
	_, _, err := read(t, opt)
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if e.File != file || e.Line != line {
		t.Errorf("got %s line %d, want %s line %d: %v", e.File, e.Line, file, line, err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q lacks %q", err, text)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is more than one line", err)
	}
}

func idTexts(t *snapshot.Tables) []string {
	var out []string
	for i := range t.NumNodes() {
		out = append(out, string(t.IDs.At(int32(i))))
	}
	return out
}

// degrees counts, by external id, the distinct neighbours in the undirected graph.
func degrees(t *snapshot.Tables) (degree map[string]int, pairs int) {
	type pair struct{ a, b int32 }
	seen := map[pair]bool{}
	degree = map[string]int{}
	edges := edgesOf(t)
	for i, a := range edges.Src {
		b := edges.Dst[i]
		if seen[pair{min(a, b), max(a, b)}] {
			continue
		}
		seen[pair{min(a, b), max(a, b)}] = true
		degree[string(t.IDs.At(a))]++
		if a != b {
			degree[string(t.IDs.At(b))]++
		}
	}
	return degree, len(seen)
}

func wantIDs(t *testing.T, tables *snapshot.Tables, want ...string) {
	t.Helper()
	if got := idTexts(tables); !slices.Equal(got, want) {
		t.Errorf("ids: got %q, want %q", got, want)
	}
}

func wantGraph(t *testing.T, tables *snapshot.Tables, pairs int, want map[string]int) {
	t.Helper()
	got, gotPairs := degrees(tables)
	if gotPairs != pairs || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %d pairs, degrees %v; want %d, %v", gotPairs, got, pairs, want)
	}
}

func wantClasses(t *testing.T, tables *snapshot.Tables, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for i, c := range tables.Labels.Class {
		name := "none"
		if c >= 0 {
			name = tables.Labels.ClassNames[c]
		}
		got[string(tables.IDs.At(int32(i)))] = name
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("labels: got %v, want %v", got, want)
	}
}

func wantParts(t *testing.T, tables *snapshot.Tables, want map[string]snapshot.Part) {
	t.Helper()
	got := map[string]snapshot.Part{}
	for i, p := range tables.Splits.Mask {
		got[string(tables.IDs.At(int32(i)))] = p
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("parts: got %v, want %v", got, want)
	}
}

func TestCase01SparseIDs(t *testing.T) {
	tables, _ := mustRead(t, Options{Edges: []string{in("01-ids-sparse", "edges.csv")}})
	wantIDs(t, tables, "7", "101", "500000", "90000017")
	wantGraph(t, tables, 3, map[string]int{"101": 2, "500000": 2, "7": 1, "90000017": 1})
	if tables.IDs.Collation != snapshot.CollationInteger {
		t.Errorf("collation %s", tables.IDs.Collation)
	}
}

func TestCase02LeadingZeros(t *testing.T) {
	const c = "02-ids-leading-zeros"
	opt := Options{Edges: []string{in(c, "edges.csv")}, Nodes: in(c, "nodes.csv")}
	tables, _ := mustRead(t, opt)
	wantIDs(t, tables, "007", "08", "7")
	wantGraph(t, tables, 2, map[string]int{"007": 1, "7": 2, "08": 1})
	wantClasses(t, tables, map[string]string{"007": "0", "7": "1", "08": "2"})
	opt.IDType = IDInteger
	wantError(t, opt, "nodes.csv", 3, `"007" (nodes.csv line 2)`, `"7" (nodes.csv line 3)`, "collide")
	opt.Nodes = ""
	wantError(t, opt, "edges.csv", 2, `"007" (edges.csv line 2)`, `"7" (edges.csv line 2)`, "collide")
}

func TestCase03FloatSuffix(t *testing.T) {
	const c = "03-ids-float-suffix"
	for _, idType := range []string{IDAuto, IDString, IDInteger} {
		wantError(t, Options{Edges: []string{in(c, "edges.csv")}, Nodes: in(c, "nodes.csv"), IDType: idType},
			"edges.csv", 2, `field "src": "11.0" is not an id in nodes.csv`, `"11" is`)
		wantError(t, Options{Edges: []string{in(c, "edges_half.csv")}, Nodes: in(c, "nodes.csv"), IDType: idType},
			"edges_half.csv", 2, `field "dst": "12.5" is not an id in nodes.csv`)
	}
	wantError(t, Options{Edges: []string{in(c, "edges.csv")}, IDType: IDInteger}, "edges.csv", 2, `field "src": "11.0" is not an integer id`)
}

func TestCase06NegativeIDs(t *testing.T) {
	tables, _ := mustRead(t, Options{Edges: []string{in("06-ids-negative", "edges.csv")}})
	wantIDs(t, tables, "-1", "0", "5")
	wantGraph(t, tables, 3, map[string]int{"-1": 2, "0": 2, "5": 2})
}

func TestCase08GoLiterals(t *testing.T) {
	const c = "08-ids-go-literals"
	tables, _ := mustRead(t, Options{Edges: []string{in(c, "edges.csv")}})
	wantIDs(t, tables, "010", "0x10", "10", "16", "1_0", "8")
	wantGraph(t, tables, 4, map[string]int{"10": 2, "010": 2, "8": 1, "0x10": 1, "16": 1, "1_0": 1})
	wantError(t, Options{Edges: []string{in(c, "weights.csv")}}, "weights.csv", 2, `field "weight": "1_0.5"`)
}

func TestCase09BOM(t *testing.T) {
	const c = "09-csv-bom-crlf-spaces"
	degree := map[string]int{"u1": 1, "u2": 2, "u3": 1}
	for _, file := range []string{"edges.csv", "edges_spaces.csv"} {
		tables, _ := mustRead(t, Options{Edges: []string{in(c, file)}, Nodes: in(c, "nodes.csv")})
		wantIDs(t, tables, "u1", "u2", "u3")
		wantGraph(t, tables, 2, degree)
		wantClasses(t, tables, map[string]string{"u1": "0", "u2": "1", "u3": "0"})
	}
	tables, _ := mustRead(t, Options{Edges: []string{in(c, "edges_nohdr.tsv")}})
	wantIDs(t, tables, "u1", "u2", "u3")
	wantGraph(t, tables, 2, degree)
}

func TestCase10BareQuote(t *testing.T) {
	tables, report := mustRead(t, Options{Edges: []string{in("10-tsv-bare-quote", "triples.tsv")}, DstCol: "3"})
	wantIDs(t, tables, `"Weird`, `6" guns`, "film A", "film B", "film C", "plain")
	if len(edgesOf(tables).Src) != 3 {
		t.Errorf("%d edges", len(edgesOf(tables).Src))
	}
	if got := fmt.Sprint(report.Files[0].Notices); !strings.Contains(got, `column not used: "2"`) {
		t.Errorf("notices %s", got)
	}
}

func TestCase11HashInID(t *testing.T) {
	tables, report := mustRead(t, Options{Edges: []string{in("11-snap-hash-in-id", "graph.txt")}})
	wantIDs(t, tables, "C#", "F#", "http://x.example/o#A", "http://x.example/o#B")
	if _, pairs := degrees(tables); pairs != 3 {
		t.Errorf("%d pairs", pairs)
	}
	if report.Files[0].CommentLines != 3 {
		t.Errorf("%d comments", report.Files[0].CommentLines)
	}
}

func TestCase12NoHeader(t *testing.T) {
	const c = "12-csv-no-header"
	at := func(file, header string) Options { return Options{Edges: []string{in(c, file)}, Header: header} }
	for _, header := range []string{HeaderNo, HeaderAuto} {
		tables, _ := mustRead(t, at("no_header.csv", header))
		wantIDs(t, tables, "2", "4", "9")
		wantGraph(t, tables, 3, map[string]int{"2": 2, "4": 2, "9": 2})
	}
	wantError(t, at("no_header.csv", HeaderYes), "no_header.csv", 1, "no column src/source")
	tables, report := mustRead(t, at("no_header_text.csv", HeaderAuto))
	wantIDs(t, tables, "alice", "bob", "carol")
	wantGraph(t, tables, 2, map[string]int{"alice": 1, "bob": 2, "carol": 1})
	if len(report.Files[0].Notices) != 1 {
		t.Errorf("notices %q", report.Files[0].Notices)
	}
	for _, header := range []string{HeaderYes, HeaderAuto} {
		tables, report = mustRead(t, at("with_header.csv", header))
		wantIDs(t, tables, "4", "9")
		if len(edgesOf(tables).Src) != 1 || !report.Files[0].Header {
			t.Errorf("%d edges, header %v", len(edgesOf(tables).Src), report.Files[0].Header)
		}
	}
	tables, report = mustRead(t, at("with_header.csv", HeaderNo))
	wantIDs(t, tables, "4", "9", "source", "target")
	if len(edgesOf(tables).Src) != 2 || len(report.Files[0].Warnings) != 1 {
		t.Errorf("%d edges, warnings %q", len(edgesOf(tables).Src), report.Files[0].Warnings)
	}
}

func TestCase20Gzip(t *testing.T) {
	const c = "20-gz-truncated-multimember"
	multi, _ := mustRead(t, Options{Edges: []string{in(c, "edges_multi.csv.gz")}})
	if _, pairs := degrees(multi); multi.NumNodes() != 5 || pairs != 4 {
		t.Errorf("%d nodes, %d pairs", multi.NumNodes(), pairs)
	}
	ok, _ := mustRead(t, Options{Edges: []string{in(c, "edges_ok.csv.gz")}})
	sameTables(t, ok, multi)
	wantError(t, Options{Edges: []string{in(c, "edges_trunc.csv.gz")}}, "edges_trunc.csv.gz", 0, "unexpected end", "truncated gzip")
	wantError(t, Options{Edges: []string{in(c, "edges_badcrc.csv.gz")}}, "edges_badcrc.csv.gz", 0, "checksum")
	wantError(t, Options{Edges: []string{in(c, "edges_empty.csv.gz")}}, "edges_empty.csv.gz", 0, "empty or not gzip")
}

func TestCase21NPY(t *testing.T) {
	const c = "21-npy-order-and-dtype"
	at := func(file string) Options {
		return Options{Edges: []string{in(c, "edges.csv")}, Nodes: in(c, "nodes.csv"), Features: in(c, file)}
	}
	for _, file := range []string{"c_f4.npy", "f_f4.npy", "be_f4.npy", "c_f8.npy", "c_i8.npy", "c_f2.npy", "feats.npz"} {
		tables, _ := mustRead(t, at(file))
		if got := tables.Features; got.NumCols != 3 || !slices.Equal(got.Data, []float32{1, 2, 3, 4, 5, 6}) {
			t.Errorf("%s: got %v", file, got)
		}
	}
	other := at("feats.npz")
	other.FeatureMember = "y"
	wantError(t, other, "feats.npz", 0, `no member "y"`, `"x", "other"`)
	wantError(t, at("obj.npy"), "obj.npy", 0, "object arrays are not supported")
	wantError(t, at("three_rows.npy"), "three_rows.npy", 0, "3 rows for 2 nodes")
	wantError(t, at("short_data.npy"), "short_data.npy", 0, "file holds 20 of 24 data bytes")
	alone := at("c_f4.npy")
	alone.Nodes = ""
	wantError(t, alone, "edges.csv", 2, `field "src": "a" is not a row number of c_f4.npy, which has 2 rows`)
}

func TestCase23Quotes(t *testing.T) {
	const c = "23-csv-quoted-newline"
	tables, _ := mustRead(t, Options{Edges: []string{in(c, "edges.csv")}, Nodes: in(c, "nodes.csv")})
	wantIDs(t, tables, "a,1", `b"q`)
	wantClasses(t, tables, map[string]string{"a,1": "0", `b"q`: "1"})
	wantGraph(t, tables, 1, map[string]int{"a,1": 1, `b"q`: 1})
	wantError(t, Options{Edges: []string{in(c, "edges.csv")}, Nodes: in(c, "empty_id.csv")}, "empty_id.csv", 3, "empty id")
	wantError(t, Options{Edges: []string{in(c, "edges.csv")}, Nodes: in(c, "open.csv")}, "open.csv", 2, "a quote is opened here and never closed")
}

func TestCase26ListedTwice(t *testing.T) {
	const c = "26-undirected-listed-twice"
	for _, file := range []string{"once.txt", "both.txt", "dup.txt"} {
		tables, _ := mustRead(t, Options{Edges: []string{in(c, file)}})
		wantGraph(t, tables, 2, map[string]int{"0": 1, "1": 2, "2": 1})
	}
	tables, _ := mustRead(t, Options{Edges: []string{in(c, "both_w.txt")}, WeightCol: "3"})
	if !slices.Equal(edgesOf(tables).Weight, []float32{1, 1, 1, 1}) {
		t.Errorf("weights %v", edgesOf(tables).Weight)
	}
}

func TestCase33NoEdges(t *testing.T) {
	const c = "33-no-edges-mean"
	tables, _ := mustRead(t, Options{Edges: []string{in(c, "edges.csv")}, Nodes: in(c, "nodes.csv")})
	wantIDs(t, tables, "a", "b")
	if !slices.Equal(tables.Features.Data, []float32{1, 2, 3, 4}) || len(edgesOf(tables).Src) != 0 {
		t.Errorf("got %v, %v", tables.Features, tables.Edges)
	}
	wantClasses(t, tables, map[string]string{"a": "0", "b": "1"})
}

func TestCase34InvalidWeights(t *testing.T) {
	const c = "34-weights-invalid"
	for file, value := range map[string]string{"neg": "-1", "nan": "nan", "inf": "inf", "huge": "1e999", "empty": "", "text": "heavy"} {
		opt := Options{Edges: []string{in(c, file+".csv")}}
		wantError(t, opt, file+".csv", 3, fmt.Sprintf("field \"weight\": %q ", value))
		opt.WeightCol = WeightNone
		tables, _ := mustRead(t, opt)
		wantGraph(t, tables, 2, map[string]int{"a": 1, "b": 2, "c": 1})
		if edgesOf(tables).Weight != nil {
			t.Errorf("%s: weights %v", file, edgesOf(tables).Weight)
		}
	}
}

func TestCase36DecimalComma(t *testing.T) {
	const c = "36-weights-decimal-comma"
	wantError(t, Options{Edges: []string{in(c, "semicolon.csv")}, Delimiter: ";"}, "semicolon.csv", 2, `field "weight": "0,5"`, "decimal comma")
	wantError(t, Options{Edges: []string{in(c, "semicolon.csv")}}, "semicolon.csv", 1, "no column src", `';'`)
	wantError(t, Options{Edges: []string{in(c, "comma.csv")}}, "comma.csv", 2, "expected 3 fields, got 4")
}

func TestCase38OtherOrder(t *testing.T) {
	const c = "38-features-other-order"
	opt := Options{Edges: []string{in(c, "edges.csv")}, Nodes: in(c, "nodes.csv"), Features: in(c, "features.csv")}
	tables, _ := mustRead(t, opt)
	wantIDs(t, tables, "a", "b", "c")
	if !slices.Equal(tables.Features.Data, []float32{1, 10, 2, 20, 3, 30}) {
		t.Errorf("features %v", tables.Features.Data)
	}
	wantClasses(t, tables, map[string]string{"a": "0", "b": "1", "c": "0"})
	wantParts(t, tables, map[string]snapshot.Part{"a": snapshot.PartTrain, "b": snapshot.PartValid, "c": snapshot.PartTest})
	opt.Features = in(c, "features_sorted.csv")
	sorted, _ := mustRead(t, opt)
	sameTables(t, sorted, tables)
}

func TestCase40Unlabelled(t *testing.T) {
	const c = "40-labels-unlabelled"
	opt := Options{Edges: []string{in(c, "edges.csv")}, Nodes: in(c, "nodes.csv"), Splits: "train=" + in(c, "train.txt")}
	tables, report := mustRead(t, opt)
	wantClasses(t, tables, map[string]string{"a": "0", "b": "1", "c": "2", "d": "none", "e": "none"})
	wantParts(t, tables, map[string]snapshot.Part{"a": 1, "b": 1, "c": 1, "d": 0, "e": 0})
	if report.Unlabelled != 2 || report.NumClasses != 3 || report.SplitUnlabelled != 1 || !strings.Contains(fmt.Sprint(report.Warnings), `1 split entry left out because the node has no label, first "d"`) {
		t.Errorf("report %+v", report)
	}
	opt.Splits = ""
	opt.Nodes = in(c, "labels_float.csv")
	wantError(t, opt, "labels_float.csv", 3, `field "label": "1.0"`)
}

func TestCase42Overlap(t *testing.T) {
	const c = "42-split-overlap"
	at := func(train, valid, test string) Options {
		return Options{Edges: []string{in(c, "edges.csv")}, Nodes: in(c, "nodes.csv"),
			Splits: "train=" + in(c, train) + ",val=" + in(c, valid) + ",test=" + in(c, test)}
	}
	opt := at("train.txt", "val.txt", "test.txt")
	list := `"a" is in train and test; "c" is in train and valid`
	wantError(t, opt, "train.txt, val.txt, test.txt", 0, list)
	opt.AllowSplitOverlap = true
	tables, report := mustRead(t, opt)
	if report.SplitOverlaps != 2 || !strings.Contains(fmt.Sprint(report.Warnings), list) {
		t.Errorf("warnings %q", report.Warnings)
	}
	wantParts(t, tables, map[string]snapshot.Part{"a": 3, "b": 1, "c": 2, "d": 3})
	wantError(t, at("train_dup.txt", "val.txt", "test_unknown.txt"), "test_unknown.txt", 2, `"zz" is not an id in nodes.csv`)
	opt = at("train_dup.txt", "val_empty.txt", "val_empty.txt")
	tables, report = mustRead(t, opt)
	wantParts(t, tables, map[string]snapshot.Part{"a": 1, "b": 1, "c": 0, "d": 0})
	if report.SplitRepeats != 1 {
		t.Errorf("%d repeats", report.SplitRepeats)
	}
}

func TestCase44MoreThreadsThanNodes(t *testing.T) {
	const c = "44-empty-partitions"
	opt := Options{Edges: []string{in(c, "edges.csv")}, Nodes: in(c, "nodes.csv")}
	want, _ := mustRead(t, opt)
	wantGraph(t, want, 2, map[string]int{"a": 1, "b": 2, "c": 1})
	opt.Threads = 16
	got, _ := mustRead(t, opt)
	sameTables(t, got, want)
}

func TestCase45LongLine(t *testing.T) {
	tables, _ := mustRead(t, Options{Edges: []string{in("45-long-line", "edges.tsv")}})
	wantIDs(t, tables, "a", "b", "c", strings.Repeat("x", 70000))
	if len(edgesOf(tables).Src) != 3 {
		t.Errorf("%d edges", len(edgesOf(tables).Src))
	}
}

// The lines of case 58's generator, counted independently there.
func TestCase58ManyBlocks(t *testing.T) {
	x := uint64(20240607)
	next := func() uint64 { x = x*6364136223846793005 + 1442695040888963407; return x >> 33 }
	var text strings.Builder
	for range 200000 {
		u, f := next()%50021, next()%1000003
		fmt.Fprintf(&text, "n%d\tn%d\n", u, (f*f/1000003)*50021/1000003)
	}
	path := writeFile(t, "edges.tsv", text.String())
	var want *snapshot.Tables
	for _, threads := range []int{1, 2, 7, 16} {
		got, _, err := Read(t.Context(), Options{Edges: []string{path}, Threads: threads, blockSize: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			degree, pairs := degrees(got)
			if got.NumNodes() != 49960 || pairs != 199961 || degree["n0"] != 856 {
				t.Errorf("%d nodes, %d pairs, degree %d", got.NumNodes(), pairs, degree["n0"])
			}
			want = got
		}
		sameTables(t, got, want)
	}
}

func TestCase69Tabs(t *testing.T) {
	const c = "69-kg-names-with-spaces"
	at := func(file string) Options { return Options{Edges: []string{in(c, file)}, DstCol: "3"} }
	tables, _ := mustRead(t, at("triples.tsv"))
	wantIDs(t, tables, "DNA | promoter", "Zinc finger", "Zinc finger, type 1", "cell nucleus")
	wantError(t, at("trailing_tab.tsv"), "trailing_tab.tsv", 2, "expected 3 fields, got 4")
	wantError(t, at("two_fields.tsv"), "two_fields.tsv", 2, "expected 3 fields, got 2")
	tables, report := mustRead(t, at("blank_line.tsv"))
	if len(edgesOf(tables).Src) != 2 || report.Files[0].BlankLines != 1 {
		t.Errorf("%d edges, %d blank lines", len(edgesOf(tables).Src), report.Files[0].BlankLines)
	}
}
