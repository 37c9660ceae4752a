package ingest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prelift/prelift/snapshot"
)

// original returns a path of the original files of a data set, or skips.
func original(t *testing.T, parts ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{dataDir(t)}, parts...)...)
	if !exists(path) {
		t.Skipf("no %s", path)
	}
	return path
}

// readCounts reads the counts that were verified when the data set was laid down.
func readCounts(t *testing.T, name string) counts {
	t.Helper()
	var want counts
	for _, file := range []string{filepath.Join(name, "plain", "counts.json"), filepath.Join(name, "counts.json")} {
		text, err := os.ReadFile(filepath.Join(dataDir(t), file))
		if err != nil {
			continue
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		return want
	}
	t.Skipf("no counts.json of %s", name)
	return want
}

// wantCounts compares tables with counts; zero counts are not compared.
func wantCounts(t *testing.T, got *snapshot.Tables, want counts) {
	t.Helper()
	if _, pairs := degrees(got); got.NumNodes() != want.Nodes || pairs-loops(got) != want.Pairs && pairs != want.Pairs {
		t.Errorf("%d nodes, %d pairs (%d loops); want %d, %d", got.NumNodes(), pairs, loops(got), want.Nodes, want.Pairs)
	}
	if want.Features > 0 {
		nonZeros := 0
		for _, v := range got.Features.Data {
			if v != 0 {
				nonZeros++
			}
		}
		if got.Features.NumCols != want.Features || nonZeros != want.NonZeros {
			t.Errorf("%d features, %d non-zeros; want %d, %d", got.Features.NumCols, nonZeros, want.Features, want.NonZeros)
		}
	}
	if want.Classes > 0 {
		classCounts := make([]int, len(got.Labels.ClassNames))
		for _, class := range got.Labels.Class {
			if class >= 0 {
				classCounts[class]++
			}
		}
		if !slices.Equal(classCounts, want.ClassCounts) {
			t.Errorf("classes %v; want %v", classCounts, want.ClassCounts)
		}
	}
	if want.Train > 0 {
		wantSplit(t, got, want.Train, want.Val, want.Test)
	}
}

// wantSplit compares the first split.
func wantSplit(t *testing.T, got *snapshot.Tables, train, valid, test int) {
	t.Helper()
	var parts [4]int
	for v := range got.NumNodes() {
		parts[got.Splits.Mask[v*len(got.Splits.Names)]]++
	}
	if parts[1] != train || parts[2] != valid || parts[3] != test {
		t.Errorf("parts %v; want %d, %d, %d", parts, train, valid, test)
	}
}

func TestPlanetoid(t *testing.T) {
	for _, name := range []string{"cora", "citeseer"} {
		t.Run(name, func(t *testing.T) {
			dir := original(t, "planetoid-"+name, "original")
			got, report, err := Read(t.Context(), Options{Dataset: dir})
			if err != nil {
				t.Fatal(err)
			}
			wantCounts(t, got, readCounts(t, "planetoid-"+name))
			if name == "citeseer" && report.Unlabelled != 15 {
				t.Errorf("%d nodes without a label, want the 15 gaps of the test index", report.Unlabelled)
			}
			if name == "cora" {
				for _, path := range []string{filepath.Join(dir, "ind.cora.graph"), filepath.Join(dir, "ind.cora")} {
					again, _, err := Read(t.Context(), Options{Dataset: path})
					if err != nil {
						t.Fatal(err)
					}
					sameTables(t, again, got)
				}
			}

			plain := func(file string) string { return original(t, "planetoid-"+name, "plain", file) }
			want, _, err := Read(t.Context(), Options{Edges: []string{plain("edges_raw.csv")}, Nodes: got2csv(t, got), Features: plain("features.csv"),
				Labels: plain("labels.csv"), Splits: plain("split.csv"), NumFeatures: got.Features.NumCols, MissingFeatures: MissingZero})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Features.Data, want.Features.Data) || !slices.Equal(got.Labels.Class, want.Labels.Class) || !slices.Equal(got.Splits.Mask, want.Splits.Mask) {
				t.Error("features, labels or splits differ from those of the plain tables")
			}
		})
	}
	wantError(t, Options{Dataset: original(t, "planetoid-pubmed", "original")}, "ind.pubmed.allx", 0, "is missing")
}

// got2csv writes the ids as a node table.
func got2csv(t *testing.T, tables *snapshot.Tables) string {
	text := "id\n"
	for _, id := range idTexts(tables) {
		text += id + "\n"
	}
	return writeFile(t, "ids.csv", text)
}

func TestUnpickle(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"protocol 0":     {"(lp0\nI1\naL-2L\naI01\na.", ""},
		"empty":          {"", "ends inside"},
		"os.system":      {"cos\nsystem\n(S'id'\ntR.", `"os.system" is refused`},
		"getattr":        {"c__builtin__\ngetattr\n.", "refused"},
		"protocol 4":     {"\x80\x04.", "protocol 4"},
		"persistent id":  {"Pabc\n.", "opcode 0x50"},
		"instance":       {"(iposix\nsystem\n.", "opcode 0x69"},
		"no operands":    {"R.", "lacks its operands"},
		"below a mark":   {"K\x01(R.", "lacks its operands"},
		"long string":    {"T\xff\xff\xff\x7fa.", "ends inside"},
		"memo":           {"h\x05.", "nothing is remembered"},
		"call of a list": {"c__builtin__\nlist\n)R.", "a call of list"},
		"array that lies": {"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I1000000\nI1000000\ntcnumpy\ndtype\n(S'f8'\nI0\nI1\ntRI00\nS'ab'\ntb.",
			"holds 2 bytes"},
		"object array":   {"cnumpy\ndtype\n(S'O8'\nI0\nI1\ntR.", "object arrays"},
		"list to itself": {"]q\x00h\x00a.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unpickle([]byte(c.text))
			if (err == nil) != (c.want == "") || err != nil && !contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzUnpickle(f *testing.F) {
	for _, part := range []string{"x", "y", "graph"} {
		dir := os.Getenv("PRELIFT_DATA")
		if dir == "" {
			dir = "../../../../shared/data"
		}
		if data, err := os.ReadFile(filepath.Join(dir, "planetoid-cora", "original", "ind.cora."+part)); err == nil {
			f.Add(data[:min(len(data), 2000)])
		}
	}
	f.Add([]byte("(lp0\nI1\naL-2L\naI01\na."))
	f.Add([]byte("\x80\x02ccollections\ndefaultdict\nq\x01c__builtin__\nlist\nq\x02\x85Rq\x03(K\x00]q\x04(K\x01K\x02eK\x01]K\x00au."))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := unpickle(data)
		if err != nil {
			return
		}
		switch v := v.(type) {
		case *pyCSR:
			_, _ = v.matrix()
		case *pyArray:
			_, _ = v.ints()
			_, _ = oneHot(v)
		case *pyDict:
			_ = new(planetoid).graph(v, int64(len(data)))
		}
	})
}
