package ingest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCase18Symmetric(t *testing.T) {
	file := in("18-mtx-symmetric-pattern", "g.mtx")
	tables, _ := mustRead(t, Options{Edges: []string{file}})
	wantIDs(t, tables, "1", "2", "3", "4")
	wantGraph(t, tables, 4, map[string]int{"1": 1, "2": 2, "3": 3, "4": 1}) // the loop counts once here
	if len(edgesOf(tables).Src) != 4 || edgesOf(tables).Weight != nil {
		t.Errorf("edges %v", tables.Edges)
	}
	tables, _ = mustRead(t, Options{Edges: []string{file}, Directed: true})
	if len(edgesOf(tables).Src) != 7 {
		t.Errorf("directed: edges %v", tables.Edges)
	}
}

func TestMTX(t *testing.T) {
	const banner = "%%MatrixMarket matrix coordinate "
	for _, c := range []struct {
		name, text string
		opt        Options
		line       int64
		want       []string // of the error; nil = it reads
		nodes      int
		edges      int
	}{
		{name: "isolated nodes", text: banner + "pattern general\n% c\n5 5 1\n1 3\n", nodes: 5, edges: 1},
		{name: "weights", text: banner + "real general\n2 2 2\n1 2 0.5\n2 1 1e-3\n", nodes: 2, edges: 2},
		{name: "tabs, blank lines, upper case", text: "%%MatrixMarket MATRIX Coordinate Integer Symmetric\n\n2\t2\t1\n\n2\t1\t3\n", nodes: 2, edges: 1},
		{name: "negative", text: banner + "real general\n2 2 1\n1 2 -4\n", line: 3, want: []string{`"-4" is negative`, "--weight-col none"}},
		{name: "negative left out", text: banner + "real general\n2 2 1\n1 2 -4\n", opt: Options{WeightCol: WeightNone}, nodes: 2, edges: 1},
		{name: "skew", text: banner + "real skew-symmetric\n2 2 1\n2 1 4\n", line: 1, want: []string{"skew-symmetric"}},
		{name: "skew without weights", text: banner + "real skew-symmetric\n2 2 1\n2 1 4\n", opt: Options{WeightCol: WeightNone, Directed: true}, nodes: 2, edges: 2},
		{name: "complex", text: banner + "complex general\n2 2 1\n2 1 4 5\n", line: 1, want: []string{`"complex"`}},
		{name: "array", text: "%%MatrixMarket matrix array real general\n2 2\n1\n", line: 1, want: []string{`"array"`}},
		{name: "no banner", text: "2 2 1\n1 2\n", line: 1, want: []string{"banner"}},
		{name: "cut behind the banner", text: banner + "pattern general\n", want: []string{"no size line"}},
		{name: "size line", text: banner + "pattern general\n2 2\n1 2\n", line: 2, want: []string{"size line"}},
		{name: "not square", text: banner + "pattern general\n2 3 1\n1 2\n", line: 2, want: []string{"2 rows and 3 columns"}},
		{name: "huge", text: banner + "pattern general\n9000000000 9000000000 1\n1 2\n", line: 2, want: []string{"2147483647"}},
		{name: "damaged size", text: banner + "pattern general\n2000000000 2000000000 1\n1 2\n", line: 2, want: []string{"2000000000 nodes in a file of"}},
		{name: "too few", text: banner + "pattern general\n2 2 3\n1 2\n2 2\n", line: 2, want: []string{"line 2 says 3, found 2"}},
		{name: "id above", text: banner + "pattern general\n2 2 2\n1 2\n3 2\n", line: 4, want: []string{`"3" is not an id in g.mtx`}},
		{name: "id zero", text: banner + "pattern general\n2 2 1\n0 2\n", line: 3, want: []string{`"0" is not an id`}},
		{name: "upper triangle", text: banner + "pattern symmetric\n2 2 1\n1 2\n", line: 3, want: []string{"above the diagonal"}},
		{name: "width", text: banner + "real general\n2 2 1\n1 2\n", line: 3, want: []string{"expected 3 fields, got 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opt.Edges = []string{writeFile(t, "g.mtx", c.text)}
			if c.want != nil {
				wantError(t, c.opt, "g.mtx", c.line, c.want...)
				return
			}
			tables, _ := mustRead(t, c.opt)
			if tables.NumNodes() != c.nodes || len(edgesOf(tables).Src) != c.edges {
				t.Errorf("%d nodes, %d edges; want %d, %d", tables.NumNodes(), len(edgesOf(tables).Src), c.nodes, c.edges)
			}
		})
	}
}

func TestCase22Parquet(t *testing.T) {
	const c = "22-parquet-nulls-types"
	at := func(edges string) Options {
		return Options{Edges: []string{in(c, edges)}, Nodes: in(c, "nodes_i32.parquet")}
	}
	wantRow(t, Options{Edges: []string{in(c, "edges_null.parquet")}}, "edges_null.parquet", 2, `field "dst"`, "null id")
	wantRow(t, at("edges_ok.parquet"), "edges_ok.parquet", 2, `field "weight"`, "null weight", "--weight-col none")
	opt := at("edges_ok.parquet")
	opt.WeightCol = WeightNone
	tables, _ := mustRead(t, opt)
	wantIDs(t, tables, "0", "2", "3")
	wantGraph(t, tables, 3, map[string]int{"0": 2, "2": 2, "3": 2})
	wantClasses(t, tables, map[string]string{"0": "0", "2": "none", "3": "1"})
	wantRow(t, at("edges_str.parquet"), "edges_str.parquet", 3, `"03" is not an id in nodes_i32.parquet`, `"3" is`)
}

// wantRow is wantError for a file whose places are rows.
func wantRow(t *testing.T, opt Options, file string, row int64, texts ...string) {
	t.Helper()
	wantError(t, opt, file, 0, append(texts, fmt.Sprintf("%s: row %d: ", file, row))...)
}

// graphar returns the chunks of a GraphAr column group.
func graphar(t *testing.T, parts ...string) []string {
	t.Helper()
	var files []string
	root := filepath.Join(append([]string{dataDir(t), "graphar-parquet", "original"}, parts...)...)
	filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "chunk") {
			files = append(files, path)
		}
		return nil
	})
	if len(files) == 0 {
		t.Skipf("no %s", root)
	}
	return files
}

func TestGraphAr(t *testing.T) {
	opt := Options{
		Edges:     graphar(t, "ldbc_sample", "parquet", "edge", "person_knows_person", "unordered_by_source", "adj_list"),
		NodeFiles: graphar(t, "ldbc_sample", "parquet", "vertex", "person", "id"),
		SrcCol:    "_graphArSrcIndex", DstCol: "_graphArDstIndex", IDCol: "_graphArVertexIndex",
	}
	tables, _ := mustRead(t, opt)
	if tables.NumNodes() != 903 || len(edgesOf(tables).Src) != 6626 {
		t.Errorf("%d nodes, %d edges", tables.NumNodes(), len(edgesOf(tables).Src))
	}
	opt.NodeFiles = graphar(t, "ldbc_sample", "parquet", "vertex", "person", "feature")
	opt.FeatureCols = "feature"
	withFeatures, _ := mustRead(t, opt)
	if f := withFeatures.Features; f == nil || f.NumCols < 2 || len(f.Data) != 903*f.NumCols {
		t.Errorf("features %v", withFeatures.Features)
	}
	if !slices.Equal(edgesOf(withFeatures).Src, edgesOf(tables).Src) {
		t.Error("edges differ")
	}
	csv := opt
	csv.Edges = graphar(t, "ldbc_sample", "csv", "edge", "person_knows_person", "ordered_by_source", "adj_list")
	csv.NodeFiles, csv.FeatureCols, csv.IDCol = nil, "", ""
	plain, _ := mustRead(t, csv)
	if len(edgesOf(plain).Src) != 6626 {
		t.Errorf("csv: %d edges", len(edgesOf(plain).Src))
	}
}
