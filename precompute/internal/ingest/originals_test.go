package ingest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the tests named after the data sets leave out, with the counts of SOURCE.txt and the READMEs of the sources.

func TestNetworKitMore(t *testing.T) {
	file := func(name string) string { return original(t, "formats-networkit", "original", name) }
	for _, c := range []struct {
		name               string
		opt                Options
		nodes, rows, pairs int
		weighted           bool
	}{
		// README: 128 nodes, 2137 edges, directed and weighted; KONECT's two comment lines are SNAP's.
		{"foodweb-baydry.konect", Options{WeightCol: "3", Directed: true}, 128, 2137, 2106, true},
		{"network_overlapping.dat", Options{}, 10, 34, 17, false},
		{"alphabet.edgelist", Options{WeightCol: "3"}, 5, 4, 4, true},
		{"Ragusa16.mtx", Options{Directed: true}, 24, 81, 68, true},
		{"GD01_b.mtx", Options{Directed: true}, 18, 37, 28, false},
		{"wiki-Vote.txt", Options{Directed: true}, 7115, 103689, 100762, false},
	} {
		c.opt.Edges = []string{file(c.name)}
		tables, _ := mustRead(t, c.opt)
		_, pairs := degrees(tables)
		if tables.NumNodes() != c.nodes || len(edgesOf(tables).Src) != c.rows || pairs != c.pairs || (edgesOf(tables).Weight != nil) != c.weighted {
			t.Errorf("%s: %d nodes, %d rows, %d pairs; want %d, %d, %d", c.name, tables.NumNodes(), len(edgesOf(tables).Src), pairs, c.nodes, c.rows, c.pairs)
		}
	}
	// Negative values are no weights, and the message says where.
	for name, line := range map[string]int64{"Hamrle1.mtx": 9, "LFAT5.mtx": 4, "tiny_05.matrixmarket": 9} {
		wantError(t, Options{Edges: []string{file(name)}}, name, line, `field "weight"`, "is negative", "--weight-col none")
	}
	// A partition of the nodes is a label table.
	tables, _ := mustRead(t, Options{Edges: []string{file("network.dat")}, Labels: file("community.dat")})
	if !slices.Equal(tables.Labels.ClassNames, []string{"1", "2", "3"}) || tables.NumNodes() != 10 {
		t.Errorf("classes %q", tables.Labels.ClassNames)
	}
}

func TestSNAPCSVMore(t *testing.T) {
	file := func(name, table string) string { return original(t, "snap-csv", "original", name, table) }
	otc := Options{Edges: []string{file("bitcoin-otc", "edges.csv")}, Nodes: file("bitcoin-otc", "nodes.csv")}
	otc.WeightCol = "4" // the time, as a number that is at least a weight in form
	tables, _ := mustRead(t, otc)
	if w := edgesOf(tables).Weight; len(w) != 35592 || w[0] != 1307526243.273450 {
		t.Errorf("%d weights, first %v", len(w), w[:1])
	}
	otc.WeightCol = "3" // ratings from -10 to 10
	wantError(t, otc, "edges.csv", firstLine(t, otc.Edges[0], func(fields []string) bool { return strings.HasPrefix(fields[2], "-") }), "is negative")
	// wiki-Vote is damaged at its source: 0 where SNAP has 30. Its list of nodes has the damaged id too.
	damaged, _ := mustRead(t, Options{Edges: []string{file("wiki-Vote", "edges.csv")}, Nodes: file("wiki-Vote", "nodes.csv")})
	whole, _ := mustRead(t, Options{Edges: []string{original(t, "formats-networkit", "original", "wiki-Vote.txt")}})
	var extra []string
	ids := idTexts(whole)
	for _, id := range idTexts(damaged) {
		if !slices.Contains(ids, id) {
			extra = append(extra, id)
		}
	}
	if damaged.NumNodes() != 7116 || whole.NumNodes() != 7115 || !slices.Equal(extra, []string{"0"}) {
		t.Errorf("%d and %d nodes, more are %q", damaged.NumNodes(), whole.NumNodes(), extra)
	}
}

// firstLine is the number of the first line whose fields are as wanted.
func firstLine(t *testing.T, file string, want func(fields []string) bool) int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if fields := strings.Split(line, ","); len(fields) > 2 && want(fields) {
			return int64(i) + 1
		}
	}
	t.Fatalf("%s: no such line", file)
	return 0
}

// The LDBC sample in each form and order: 903 persons, 6626 edges, the same graph.
func TestGraphArForms(t *testing.T) {
	const knows = "person_knows_person"
	var first []string
	for _, c := range []struct{ form, order string }{
		{"parquet", "unordered_by_source"}, {"parquet", "ordered_by_source"}, {"parquet", "ordered_by_dest"}, {"csv", "ordered_by_source"}, {"csv", "ordered_by_dest"},
	} {
		opt := Options{
			Edges:     graphar(t, "ldbc_sample", c.form, "edge", knows, c.order, "adj_list"),
			NodeFiles: graphar(t, "ldbc_sample", c.form, "vertex", "person", "id"),
			SrcCol:    "_graphArSrcIndex", DstCol: "_graphArDstIndex", IDCol: "_graphArVertexIndex",
		}
		tables, _, err := Read(t.Context(), opt)
		if err != nil {
			t.Errorf("%s, %s: %v", c.form, c.order, err)
			continue
		}
		edges := edgesOf(tables)
		var pairs []string
		for i, src := range edges.Src {
			pairs = append(pairs, fmt.Sprint(src, " ", edges.Dst[i]))
		}
		slices.Sort(pairs)
		if first == nil {
			first = pairs
		}
		if tables.NumNodes() != 903 || len(pairs) != 6626 || !slices.Equal(pairs, first) {
			t.Errorf("%s, %s: %d nodes, %d edges", c.form, c.order, tables.NumNodes(), len(pairs))
		}
		// Names are text, so they make labels and not features.
		opt.NodeFiles, opt.LabelCol = graphar(t, "ldbc_sample", c.form, "vertex", "person", "firstName_lastName_gender"), "gender"
		if tables, _, err = Read(t.Context(), opt); err != nil || !slices.Equal(tables.Labels.ClassNames, []string{"female", "male"}) {
			t.Errorf("%s: labels: %v", c.form, err)
		}
	}
	// The tables that the chunks were made from, by the ids of the source.
	file := func(name string) string { return original(t, "graphar-parquet", "original", "ldbc_sample", name) }
	for _, nodes := range []string{"person_0_0.csv", "person_0_0_comma.csv"} {
		opt := Options{Edges: []string{file("person_knows_person_0_0.csv")}, Nodes: file(nodes), Delimiter: "|", LabelCol: "gender"}
		if strings.Contains(nodes, "comma") {
			wantError(t, opt, nodes, 1, `no column "gender"`)
			continue
		}
		tables, _ := mustRead(t, opt)
		if tables.NumNodes() != 903 || len(edgesOf(tables).Src) != 6626 || !slices.Equal(tables.Labels.ClassNames, []string{"female", "male"}) {
			t.Errorf("%s: %d nodes, %d edges, classes %q", nodes, tables.NumNodes(), len(edgesOf(tables).Src), tables.Labels.ClassNames)
		}
	}
	comma, _ := mustRead(t, Options{Edges: []string{writeFile(t, "none.csv", "src,dst\n")}, Nodes: file("person_0_0_comma.csv"), LabelCol: "gender"})
	if comma.NumNodes() != 903 {
		t.Errorf("%d nodes", comma.NumNodes())
	}
	// Columns of dates and times are no edges, weights or ids that a graph could have, and ORC isn't read.
	for _, group := range []string{"creationDate", "creationDate-date", "creationDate-timestamp"} {
		wantError(t, Options{Edges: graphar(t, "ldbc_sample", "parquet", "edge", knows, "ordered_by_source", group)[:1]}, "chunk0", 0, "no column src", "creationDate")
	}
	wantError(t, Options{Edges: graphar(t, "ldbc_sample", "orc", "edge", knows, "ordered_by_source", "adj_list")[:1]}, "chunk0", 0, "is an ORC file")
	wantError(t, Options{Edges: []string{original(t, "graphar-parquet", "original", "ldbc_sample", "parquet", "edge", knows, "ordered_by_source", "edge_count0")}}, "edge_count0", 1)
}

// TinkerPop's modern graph as chunks of CSV and as tables with bars: 6 nodes, 2 and 4 edges.
func TestGraphArModern(t *testing.T) {
	file := func(parts ...string) string {
		return original(t, append([]string{"graphar-parquet", "original", "modern_graph"}, parts...)...)
	}
	tables, _ := mustRead(t, Options{
		Edges:     []string{file("original_dataset", "knows.csv"), file("original_dataset", "created.csv")},
		Delimiter: "|", Header: HeaderYes, SrcCol: "src_id", DstCol: "dst_id", NodeFiles: []string{file("original_dataset", "person.csv"), file("original_dataset", "software.csv")}, LabelCol: "lang",
	})
	wantIDs(t, tables, "1", "2", "3", "4", "5", "6")
	wantGraph(t, tables, 6, map[string]int{"1": 3, "2": 1, "3": 3, "4": 3, "5": 1, "6": 1})
	wantClasses(t, tables, map[string]string{"1": "none", "2": "none", "3": "java", "4": "none", "5": "java", "6": "none"})
	if !slices.Equal(edgesOf(tables).Weight, []float32{0.5, 1, 0.4, 1, 0.4, 0.2}) {
		t.Errorf("weights %v", edgesOf(tables).Weight)
	}
	wantError(t, Options{Edges: []string{file("original_dataset", "knows.csv")}}, "knows.csv", 1, "fields separated by '|'? use --delimiter")
	chunks, _ := mustRead(t, Options{
		Edges:     graphar(t, "modern_graph", "edge", "person_knows_person", "ordered_by_source", "adj_list"),
		NodeFiles: graphar(t, "modern_graph", "vertex", "person", "name_age"),
		SrcCol:    "_graphArSrcIndex", DstCol: "_graphArDstIndex", IDCol: "_graphArVertexIndex", LabelCol: "name",
	})
	wantIDs(t, chunks, "0", "1", "2", "3")
	wantGraph(t, chunks, 2, map[string]int{"0": 1, "2": 1, "3": 2})
	wantClasses(t, chunks, map[string]string{"0": "vadas", "1": "peter", "2": "josh", "3": "marko"})
	created, _ := mustRead(t, Options{Edges: graphar(t, "modern_graph", "edge", "person_created_software", "ordered_by_source", "adj_list"), SrcCol: "_graphArSrcIndex", DstCol: "_graphArDstIndex"})
	if len(edgesOf(created).Src) != 4 {
		t.Errorf("%d edges", len(edgesOf(created).Src))
	}
}

// The files of OpenKE and CoDEx beside the three splits are triples too.
func TestKnowledgeGraphsMore(t *testing.T) {
	for set, want := range map[string]int{"kg-fb15k-237": 20466, "kg-wn18rr": 3134} {
		sum := 0
		for _, part := range []string{"1-1", "1-n", "n-1", "n-n"} { // the test triples by cardinality
			tables, _, err := Read(t.Context(), Options{Edges: []string{original(t, set, "original", "OpenKE", part+".txt")}, Format: FormatOpenKE})
			if err != nil {
				t.Errorf("%s: %s: %v", set, part, err)
				continue
			}
			sum += len(edgesOf(tables).Src)
		}
		if sum != want {
			t.Errorf("%s: %d test triples by cardinality, want %d", set, sum, want)
		}
		// A cardinality before the triple is no triple.
		if _, _, err := Read(t.Context(), Options{Edges: []string{original(t, set, "original", "OpenKE", "test2id_all.txt")}, Format: FormatOpenKE}); err == nil || !strings.Contains(err.Error(), "test2id_all.txt:2: expected 3 fields, got") {
			t.Errorf("%s: test2id_all: %v", set, err)
		}
	}
	for part, want := range map[string]int{"valid_negatives.txt": 1827, "test_negatives.txt": 1828} {
		tables, _ := mustRead(t, Options{Edges: []string{original(t, "kg-codex-s", "original", part)}, Format: FormatTriples})
		if len(edgesOf(tables).Src) != want {
			t.Errorf("%s: %d triples, want %d", part, len(edgesOf(tables).Src), want)
		}
	}
	tables, _ := mustRead(t, Options{Edges: []string{original(t, "kg-nations", "original", "pykeen", "train.txt")}, Format: FormatTriples})
	if tables.NumNodes() != 14 || len(tables.RelNames) != 55 || len(edgesOf(tables).Src) != 1592 {
		t.Errorf("nations: %d entities, %d relations", tables.NumNodes(), len(tables.RelNames))
	}
}

// The geom-gcn text form has the graph of the .npz, with other features in the same columns.
func TestGeomGCNAgainstNPZ(t *testing.T) {
	text, _, err := Read(t.Context(), Options{Dataset: original(t, "wisconsin", "original-geom-gcn-text", "wisconsin")})
	if err != nil {
		t.Fatal(err)
	}
	npz, _, err := Read(t.Context(), Options{Dataset: original(t, "wisconsin", "original", "wisconsin.npz")})
	if err != nil {
		t.Fatal(err)
	}
	degreeText, pairsText := degrees(text)
	degreeNPZ, pairsNPZ := degrees(npz)
	if pairsText-loops(text) != 450 || pairsNPZ-loops(npz) != 450 {
		t.Errorf("%d and %d pairs, want 450", pairsText-loops(text), pairsNPZ-loops(npz))
	}
	// The numbers of nodes are the same in both; only the text has loops.
	for i, src := range edgesOf(text).Src {
		if id := string(text.IDs.At(src)); src == edgesOf(text).Dst[i] {
			degreeText[id] = degreeNPZ[id]
		}
	}
	if fmt.Sprint(degreeText) != fmt.Sprint(degreeNPZ) {
		t.Errorf("degrees %v, want %v", degreeText, degreeNPZ)
	}
}

// originalFiles says for every file of the originals which test reads it, or why none does.
var originalFiles = map[string]string{
	"air-routes/original/air-routes-latest-*.csv":   "TestAirRoutes",
	"air-routes/original/tree-with-500-nodes-*.csv": "TestAirRoutes",
	"air-routes/original/*.graphml":                 "TestAirRoutesGraphML",
	"air-routes/original/aircraft.csv":              "left out: a table without a graph",
	"air-routes/original/SQL/*":                     "left out: SQL",
	"air-routes/original/README.md":                 "left out: text",

	"amazon-photo/original/*":                      "TestNPZSets", // refused: pickled
	"polblogs/original/*":                          "TestNPZSets", // refused: pickled
	"minesweeper/original/*":                       "TestNPZSets",
	"texas/original/*":                             "TestNPZSets",
	"wisconsin/original/*":                         "TestNPZSets",
	"wisconsin/original-geom-gcn-text/wisconsin/*": "TestGeomGCN",

	"email-eu-core/original/*": "TestEmailZip",

	"formats-networkit/original/*.mtx":                   "TestNetworKit",
	"formats-networkit/original/*.matrixmarket":          "TestNetworKit",
	"formats-networkit/original/*.edgelist":              "TestNetworKit",
	"formats-networkit/original/wiki-Vote.txt":           "TestNetworKit",
	"formats-networkit/original/network.dat":             "TestNetworKit",
	"formats-networkit/original/network_overlapping.dat": "TestNetworKitMore",
	"formats-networkit/original/community.dat":           "TestNetworKitMore",
	"formats-networkit/original/*.konect":                "TestNetworKitMore",
	"formats-networkit/original/*.graph":                 "TestForeignNetworKit",
	"formats-networkit/original/*.gml":                   "TestForeignNetworKit",
	"formats-networkit/original/*.gexf":                  "TestForeignNetworKit",
	"formats-networkit/original/*.gt":                    "TestForeignNetworKit",
	"formats-networkit/original/*.dgs":                   "TestForeignNetworKit",
	"formats-networkit/original/*.nkbg*":                 "TestForeignNetworKit",
	"formats-networkit/original/*.gi":                    "left out: DIBAP",
	"formats-networkit/original/*.thrill":                "left out: Thrill's binary lists",
	"formats-networkit/original/*.rb":                    "left out: Rutherford-Boeing",
	"formats-networkit/original/community_overlapping.*": "left out: covers, a line of many communities a node",
	"formats-networkit/original/testLFR/*":               "left out: parameters of a generator",
	"formats-networkit/original/README.md":               "left out: text",

	"graphar-parquet/original/ldbc_sample/csv/*/*":     "TestGraphArForms",
	"graphar-parquet/original/ldbc_sample/parquet/*/*": "TestGraphArForms",
	"graphar-parquet/original/ldbc_sample/orc/*/*":     "TestGraphArForms", // refused: ORC
	"graphar-parquet/original/ldbc_sample/*.csv":       "TestGraphArForms",
	"graphar-parquet/original/ldbc_sample/*/*.yml":     "left out: GraphAr's own description",
	"graphar-parquet/original/modern_graph/*/*":        "TestGraphArModern",
	"graphar-parquet/original/modern_graph/*.yml":      "left out: GraphAr's own description",

	"import-edge-cases/original/*/*.cypher": "left out: the source's own commands",
	"import-edge-cases/original/*/*":        "TestImportEdgeCases",

	"kg-codex-s/original/train.txt":           "TestKnowledgeGraphs",
	"kg-codex-s/original/valid.txt":           "TestKnowledgeGraphs",
	"kg-codex-s/original/test.txt":            "TestKnowledgeGraphs",
	"kg-codex-s/original/*_negatives.txt":     "TestKnowledgeGraphsMore",
	"kg-countries/original/*/*":               "TestKnowledgeGraphs",
	"kg-*/original/ConvE-*.tar.gz":            "TestKnowledgeGraphs",
	"kg-*/original/OpenKE/*2id.txt":           "TestKnowledgeGraphs",
	"kg-*/original/OpenKE/[1n]-[1n].txt":      "TestKnowledgeGraphsMore",
	"kg-*/original/OpenKE/test2id_all.txt":    "TestKnowledgeGraphsMore",
	"kg-*/original/OpenKE/type_constrain.txt": "left out: candidates by relation, no triples",
	"kg-*/original/pykeen/literals.txt":       "left out: numbers in the place of tails",
	"kg-*/original/pykeen/*.txt":              "TestKnowledgeGraphs",

	"musae-*/original/*":                    "TestMUSAE",
	"planetoid-*/original/*":                "TestPlanetoid",
	"snap-csv/original/*/edges.csv":         "TestSNAPCSV",
	"snap-csv/original/*/nodes.csv":         "TestSNAPCSV",
	"snap-csv/original/*/*.cypher":          "left out: the source's own commands",
	"snap-csv/original/*/README.md":         "left out: text",
	"webkb-linqs/original/WebKB/*.content":  "TestLINQS",
	"webkb-linqs/original/WebKB/*.cites":    "TestLINQS",
	"webkb-linqs/original/WebKB/README.txt": "left out: text",
}

// Every original file is in originalFiles, and the tests named there exist.
func TestOriginalFilesAreCovered(t *testing.T) {
	tests := testNames(t)
	for pattern, how := range originalFiles {
		if !strings.HasPrefix(how, "left out: ") && !tests[how] {
			t.Errorf("%s: no test %s", pattern, how)
		}
	}
	dir := dataDir(t)
	numFiles := 0
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		rel = filepath.ToSlash(rel)
		if parts := strings.Split(rel, "/"); len(parts) < 3 || !strings.HasPrefix(parts[1], "original") {
			return err // licences, sources, counts, and what was made of the originals
		}
		numFiles++
		if !isCovered(rel) {
			t.Errorf("%s: read by no test", rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d original files", numFiles)
}

// isCovered matches a file, or one of the folders it is in, with the patterns.
func isCovered(rel string) bool {
	for ; strings.Contains(rel, "/"); rel = path.Dir(rel) {
		for pattern := range originalFiles {
			if ok, _ := path.Match(pattern, rel); ok {
				return true
			}
		}
	}
	return false
}

// testNames lists the tests of this package.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, file := range globFiles("*_test.go") {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}
