package ingest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/snapshot"
)

func TestCase14IDSpaces(t *testing.T) {
	const c = "14-neo4j-id-spaces"
	opt := Options{Edges: []string{in(c, "acted.csv")}, NodeFiles: []string{in(c, "persons.csv"), in(c, "movies.csv")}}
	tables, _ := mustRead(t, opt)
	wantIDs(t, tables, "Movie:1", "Movie:2", "Person:1", "Person:2")
	wantGraph(t, tables, 2, map[string]int{"Movie:1": 2, "Person:1": 1, "Person:2": 1})
	if !slices.Equal(tables.RelNames, []string{"ACTED_IN"}) || !slices.Equal(edgesOf(tables).Rel, []int32{0, 0}) {
		t.Errorf("relations %q, %v", tables.RelNames, edgesOf(tables).Rel)
	}
	if ty := tables.Types; !slices.Equal(ty.Names, []string{"Movie", "Person"}) || !slices.Equal(ty.Type, []int32{0, 0, 1, 1}) {
		t.Errorf("types %v", ty)
	}
	opt.NodeFiles = opt.NodeFiles[:1]
	wantError(t, opt, "acted.csv", 0, `id space "Movie" of the edges is that of no node file`, `"Person"`)
	opt.NodeFiles = nil
	tables, _ = mustRead(t, opt)
	wantIDs(t, tables, "Movie:1", "Person:1", "Person:2")
}

func TestNeo4j(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	persons := []string{put("persons-header.csv", "name,age:int,personId:ID(Person),:LABEL\n"), put("persons-1.csv", "Ann,30,1,Person;Actor\n"), put("persons-2.csv", "\"B, o\",40,2,Person\n")}
	movies := put("movies.csv", "id:ID(Movie){label:Movie},title,year:int\n1,Up,2009\n")
	edges := []string{put("acted-header.csv", ":START_ID(Person),role,:END_ID(Movie),:TYPE,weight:double\n"), put("acted-1.csv", "1,x,1,ACTED_IN,0.5\n"), put("acted-2.csv", "2,y,1,DIRECTED,2\n")}
	opt := Options{Edges: edges, NodeFiles: append(slices.Clone(persons), movies), LabelCol: "age"}
	tables, _ := mustRead(t, opt)
	wantIDs(t, tables, "Movie:1", "Person:1", "Person:2")
	wantClasses(t, tables, map[string]string{"Movie:1": "none", "Person:1": "30", "Person:2": "40"})
	if !slices.Equal(tables.RelNames, []string{"ACTED_IN", "DIRECTED"}) || !slices.Equal(edgesOf(tables).Weight, []float32{0.5, 2}) {
		t.Errorf("relations %q, weights %v", tables.RelNames, edgesOf(tables).Weight)
	}
	if !slices.Equal(tables.Types.Names, []string{"Movie", "Person", "Person;Actor"}) {
		t.Errorf("types %q", tables.Types.Names)
	}
	opt.NodeFiles = append(slices.Clone(persons), put("double.csv", "id:ID(Person)\n9\n2\n"), movies)
	wantError(t, opt, "double.csv", 3, `field "id": "Person:2" is in the table twice`)
	opt.NodeFiles = append(slices.Clone(persons), movies, put("global.csv", "id:ID,x\nPerson:7,1\n"))
	wantError(t, opt, "global.csv", 2, `has no id space, but reads like the id "7" of the space "Person"`)
	opt.NodeFiles = append(slices.Clone(persons), movies)
	opt.Edges = append(slices.Clone(edges), put("bad.csv", ":START_ID(Person),:END_ID(Movie),:TYPE,weight\n1,3,ACTED_IN,1\n"))
	wantError(t, opt, "bad.csv", 2, `"Movie:3" is not an id in`)
	opt.Edges = []string{edges[0], put("short.csv", "1,x,1,ACTED_IN\n")}
	wantError(t, opt, "short.csv", 1, "expected 5 fields, got 4", "acted-header.csv")
	opt.Edges = []string{persons[0]}
	wantError(t, opt, "persons-header.csv", 1, "is a file of nodes")
	opt.Edges = []string{put("notype.csv", ":START_ID(Person),:END_ID(Movie),:TYPE\n1,1,\n")}
	wantError(t, opt, "notype.csv", 2, "empty relation")
	opt.Edges = []string{put("colon.csv", ":START_ID(A:B),:END_ID(A:B)\n1,1\n")}
	wantError(t, opt, "colon.csv", 1, "colon")
	for _, c := range []struct{ head, want string }{
		{":START_ID,:START_ID,:END_ID", `columns ":START_ID" and ":START_ID" are both the source`},
		{":START_ID,:END_ID,x:END_ID", `columns ":END_ID" and "x:END_ID" are both the destination`},
		{":START_ID,:END_ID,:TYPE,t:TYPE", `columns ":TYPE" and "t:TYPE" are both the type`},
		{"~id,~from,~to,~from", "are both the source"},
	} {
		opt.Edges = []string{put("doubled.csv", "\n"+c.head+"\n")}
		wantError(t, opt, "doubled.csv", 2, c.want)
	}
	for _, head := range []string{"id:ID,id2:ID", "id:ID,:LABEL,:LABEL", "~id,~label,~label"} {
		wantError(t, Options{Edges: edges, NodeFiles: []string{put("doubled.csv", head+"\n")}}, "doubled.csv", 1, "are both the")
	}
	two := Options{Edges: []string{put("ignored.csv", ":START_ID,:IGNORE,:END_ID,:IGNORE\na,x,b,y\n")}}
	tables, _ = mustRead(t, two)
	wantIDs(t, tables, "a", "b")
}

// A header behind blank lines is one, in each form that looks at the first row before it reads.
func TestHeadBehindBlankLines(t *testing.T) {
	for _, c := range []struct {
		name, text string
		opt        Options
	}{
		{"neo4j.csv", "\n \r\n:START_ID,:END_ID,:TYPE\na,b c,r\n", Options{}},
		{"gremlin.csv", "\n~id,~from,~to,~label\n1,a,b c,r\n", Options{}},
		{"triples.txt", "\nhead\trelation\ttail\na\tr\tb c\n", Options{Format: FormatTriples}},
		{"named", "\nsrc\tdst\tr\na\tb c\tr\n", Options{RelCol: "r"}},
	} {
		c.opt.Edges = []string{writeFile(t, c.name, c.text)}
		tables, _ := mustRead(t, c.opt)
		if wantIDs(t, tables, "a", "b c"); len(tables.RelNames) != 1 {
			t.Errorf("%s: relations %q", c.name, tables.RelNames)
		}
	}
}

// Names of numbered triples stand for one number each.
func TestOpenKENamesOnce(t *testing.T) {
	for _, c := range []struct{ entities, relations, file, want string }{
		{"2\na\t0\nb\t1\n", "2\nr\t1\nr\t0\n", relationsFile, `"r" is in the list twice, first in line 2`},
		{"2\na\t0\na\t1\n", "2\nr\t0\ns\t1\n", entitiesFile, `"a" is in the table twice`},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{entitiesFile: c.entities, relationsFile: c.relations, "train2id.txt": "2\n0 1 0\n1 0 1\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		wantError(t, Options{Edges: []string{filepath.Join(dir, "train2id.txt")}}, c.file, 3, c.want)
	}
}

func TestAirRoutes(t *testing.T) {
	file := func(name string) string { return original(t, "air-routes", "original", name) }
	tables, _ := mustRead(t, Options{Edges: []string{file("air-routes-latest-edges.csv")}, Nodes: file("air-routes-latest-nodes.csv")})
	if tables.NumNodes() != 3749 || len(edgesOf(tables).Src) != 57645 {
		t.Errorf("%d nodes, %d edges", tables.NumNodes(), len(edgesOf(tables).Src))
	}
	if got := countNames(tables.RelNames, edgesOf(tables).Rel); got != "contains 7008, route 50637" {
		t.Errorf("relations %s", got)
	}
	if got := countNames(tables.Types.Names, tables.Types.Type); got != "airport 3504, continent 7, country 237, version 1" {
		t.Errorf("types %s", got)
	}
	// The tree's last edge is misspelled at the source.
	tree := Options{Edges: []string{file("tree-with-500-nodes-edges.csv")}, Nodes: file("tree-with-500-nodes-nodes.csv")}
	wantError(t, tree, "tree-with-500-nodes-edges.csv", 500, `"nod-900" is not an id in tree-with-500-nodes-nodes.csv`)
}

func countNames(names []string, of []int32) string {
	counts := make([]int, len(names))
	for _, v := range of {
		counts[v]++
	}
	var parts []string
	for i, name := range names {
		parts = append(parts, fmt.Sprint(name, " ", counts[i]))
	}
	return strings.Join(parts, ", ")
}

func TestCase65OpenKE(t *testing.T) {
	at := func(dir string) Options {
		return Options{Edges: []string{in("65-kg-openke-id-files", filepath.Join(dir, "train2id.txt"))}}
	}
	tables, _ := mustRead(t, at("good"))
	wantIDs(t, tables, "A", "B", "C")
	if got := triples(tables); !slices.Equal(got, []string{"A likes B", "B knows C", "A knows C"}) {
		t.Errorf("triples %q", got)
	}
	bySet, _ := mustRead(t, Options{Dataset: in("65-kg-openke-id-files", "good")})
	sameTables(t, bySet, tables)
	wantError(t, at("bad_count"), "train2id.txt", 1, "line 1 says 4, found 3")
	wantError(t, at("bad_range"), "train2id.txt", 3, `"3" is an entity id out of 0..2`)
	wantError(t, at("bad_swap"), "train2id.txt", 2, `"2" is a relation id out of 0..1`, "head, tail, relation")
	opt := at("good")
	opt.Format = FormatTriples
	wantError(t, opt, "train2id.txt", 1, "got 1 field", "openke")
}

func triples(t *snapshot.Tables) []string {
	var out []string
	edges := edgesOf(t)
	for i, src := range edges.Src {
		out = append(out, fmt.Sprintf("%s %s %s", t.IDs.At(src), t.RelNames[edges.Rel[i]], t.IDs.At(edges.Dst[i])))
	}
	return out
}

func TestTriples(t *testing.T) {
	for name, text := range map[string]string{
		"t.tsv": "a\tr 1\tb\nb\tr 0\ta\n", "t.txt": "a\tr 1\tb\r\nb\tr 0\ta\r\n", "t.csv": "head,relation,tail\na,r 1,b\nb,r 0,a\n",
		"t": "a,r 1,b\nb,r 0,a\n",
	} {
		tables, _ := mustRead(t, Options{Edges: []string{writeFile(t, name, text)}, Format: FormatTriples})
		if got := triples(tables); !slices.Equal(got, []string{"a r 1 b", "b r 0 a"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
	tables, _ := mustRead(t, Options{Edges: []string{writeFile(t, "t.nt", "a r1 b\nb  r0 a\n")}, Format: FormatTriples})
	if !slices.Equal(tables.RelNames, []string{"r0", "r1"}) || !slices.Equal(edgesOf(tables).Rel, []int32{1, 0}) {
		t.Errorf("relations %q", tables.RelNames)
	}
	// The same by a column of any edge file.
	tables, _ = mustRead(t, Options{Edges: []string{writeFile(t, "t.csv", "src,kind,dst\n1,r1,2\n2,r0,1\n")}, RelCol: "kind"})
	if !slices.Equal(tables.RelNames, []string{"r0", "r1"}) || !slices.Equal(edgesOf(tables).Rel, []int32{1, 0}) {
		t.Errorf("relations %q", tables.RelNames)
	}
	// Columns of a triple file by name, by number, and by names that are known.
	for text, opt := range map[string]Options{
		"id,subj,pred,obj\n1,a,r 1,b\n2,b,r 0,a\n": {SrcCol: "subj", RelCol: "pred", DstCol: "obj"},
		"b,r 1,a\na,r 0,b\n":                       {SrcCol: "3", RelCol: "2", DstCol: "1"},
		"t,h,r\nb,a,r 1\na,b,r 0\n":                {},
		"from,predicate,to\na,r 1,b\nb,r 0,a\n":    {},
		"s,p,o\na,r 1,b\nb,r 0,a\n":                {Header: HeaderYes},
	} {
		opt.Edges, opt.Format = []string{writeFile(t, "t.csv", text)}, FormatTriples
		tables, _ := mustRead(t, opt)
		if got := triples(tables); !slices.Equal(got, []string{"a r 1 b", "b r 0 a"}) {
			t.Errorf("%q: %q", text, got)
		}
	}
	wantError(t, Options{Edges: []string{writeFile(t, "t.csv", "a,r,b\n")}, Format: FormatTriples, RelCol: "pred"}, "t.csv", 1, `no column "pred"`, `"a", "r", "b"`)
	wantError(t, Options{Edges: []string{writeFile(t, "t.tsv", "a\tr\tb\na\tr\n")}, Format: FormatTriples}, "t.tsv", 2, "expected 3 fields, got 2")
	wantError(t, Options{Edges: []string{writeFile(t, "t.tsv", "a\tr\tb\na\t\tb\n")}, Format: FormatTriples}, "t.tsv", 2, "empty relation")
}

// kgCounts are the counts of a form of a knowledge graph.
type kgCounts struct{ Entities, Relations, Train, Valid, Test int }

func TestKnowledgeGraphs(t *testing.T) {
	for _, c := range []struct{ set, form, dir, tar string }{
		{"kg-nations", "ConvE-text", "", "ConvE-nations.tar.gz"},
		{"kg-nations", "pykeen-text", "pykeen", ""},
		{"kg-umls", "ConvE-text", "", "ConvE-umls.tar.gz"},
		{"kg-umls", "pykeen-text", "pykeen", ""},
		{"kg-countries", "S1", "countries_S1", ""},
		{"kg-countries", "S2", "countries_S2", ""},
		{"kg-countries", "S3", "countries_S3", ""},
		{"kg-codex-s", "text", "", ""},
		{"kg-wn18rr", "ConvE-text", "", "ConvE-WN18RR.tar.gz"},
		{"kg-wn18rr", "OpenKE-ids", "OpenKE", ""},
		{"kg-fb15k-237", "ConvE-text", "", "ConvE-FB15k-237.tar.gz"},
		{"kg-fb15k-237", "OpenKE-ids", "OpenKE", ""},
	} {
		t.Run(c.set+"/"+c.form, func(t *testing.T) {
			if testing.Short() && strings.Contains(c.set, "1") {
				t.Skip("large")
			}
			text, err := os.ReadFile(original(t, c.set, "counts.json"))
			if err != nil {
				t.Fatal(err)
			}
			all := map[string]kgCounts{}
			if err := json.Unmarshal(text, &all); err != nil {
				t.Fatal(err)
			}
			want := all[c.form]
			dir := original(t, c.set, "original", c.dir)
			if c.tar != "" {
				dir = untar(t, filepath.Join(dir, c.tar))
			}
			opt := Options{Format: FormatTriples}
			rows := 0
			for _, part := range []string{"train", "valid", "test"} {
				file := filepath.Join(dir, part+".txt")
				if c.form == "OpenKE-ids" {
					file, opt.Format = filepath.Join(dir, part+"2id.txt"), FormatAuto
				}
				opt.Edges = append(opt.Edges, file)
			}
			got, report, err := Read(t.Context(), opt)
			if err != nil {
				t.Fatal(err)
			}
			for i, n := range []int{want.Train, want.Valid, want.Test} {
				rows += n
				if f := report.Files[len(report.Files)-3+i]; f.Rows != int64(n) {
					t.Errorf("%s: %d rows, want %d", f.Name, f.Rows, n)
				}
			}
			if got.NumNodes() != want.Entities || len(got.RelNames) != want.Relations || len(edgesOf(got).Rel) != rows {
				t.Errorf("%d entities, %d relations, %d triples; want %d, %d, %d", got.NumNodes(), len(got.RelNames), len(edgesOf(got).Rel), want.Entities, want.Relations, rows)
			}
		})
	}
}

// untar unpacks the files of a .tar.gz by their base names.
func untar(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			data, err := io.ReadAll(r)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), data, 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestLINQS(t *testing.T) {
	for _, c := range []struct {
		name                string
		nodes, links, loops int
	}{{"cornell", 195, 304, 3}, {"texas", 187, 328, 18}, {"washington", 230, 446, 51}, {"wisconsin", 265, 530, 20}} {
		prefix := strings.TrimSuffix(original(t, "webkb-linqs", "original", "WebKB", c.name+".content"), ".content")
		tables, _, err := Read(t.Context(), Options{Dataset: prefix})
		if err != nil {
			t.Fatal(err)
		}
		if tables.NumNodes() != c.nodes || len(edgesOf(tables).Src) != c.links || loops(tables) != c.loops || tables.Features.NumCols != 1703 || len(tables.Labels.ClassNames) != 5 {
			t.Errorf("%s: %d nodes, %d links, %d loops, %d features, classes %q", c.name, tables.NumNodes(), len(edgesOf(tables).Src), loops(tables), tables.Features.NumCols, tables.Labels.ClassNames)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"x.content": "p1\t1\t0\tA\np2\t0\t1\tB\n", "x.cites": "p1 p2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	tables, _ := mustRead(t, Options{Dataset: dir})
	if string(tables.IDs.At(edgesOf(tables).Src[0])) != "p2" || string(tables.IDs.At(edgesOf(tables).Dst[0])) != "p1" {
		t.Error("the citing node is the source")
	}
}

func TestMUSAE(t *testing.T) {
	opt := Options{Dataset: original(t, "musae-chameleon", "original"), Task: snapshot.TaskRegression}
	tables, _ := mustRead(t, opt)
	want := readCounts(t, "musae-chameleon")
	wantCounts(t, tables, want)
	if len(edgesOf(tables).Src) != 36101 || tables.Labels.NumTargets != 1 {
		t.Errorf("%d edges", len(edgesOf(tables).Src))
	}
	tables, report := mustRead(t, Options{Dataset: original(t, "musae-twitch-engb", "original")})
	want = readCounts(t, "musae-twitch-engb")
	want.Train = 0 // the split isn't theirs
	wantCounts(t, tables, want)
	if report.FeatureRepeats != 535 {
		t.Errorf("%d repeated features", report.FeatureRepeats)
	}
}

func TestJSONFeatures(t *testing.T) {
	edges := writeFile(t, "e.csv", "src,dst\n1,2\n2,3\n")
	read := func(text string) Options {
		return Options{Edges: []string{edges}, Features: writeFile(t, "f.json", text)}
	}
	tables, _ := mustRead(t, read(`{"2": [1, 0], "1": [2], "3": []}`))
	if f := tables.Features; f.NumCols != 3 || !slices.Equal(f.Data, []float32{0, 0, 1, 1, 1, 0, 0, 0, 0}) {
		t.Errorf("features %v", f)
	}
	for _, c := range []struct {
		text string
		row  int64
		want string
	}{
		{`[1]`, 0, "is no map"},
		{`{"1": 5}`, 1, "has no list"},
		{`{"1": [0], "2": ["x"]}`, 2, "no number"},
		{`{"1": [0], "2": [0.5]}`, 2, `"0.5" is not a feature number`},
		{`{"1": [0], "2": [-1]}`, 2, `"-1" is not a feature number`},
		{`{"1": [[0]]}`, 1, "no number"},
		{`{"1": [0], "2": [0`, 2, "ends inside"},
		{`{"1": [0], "2" [0]}`, 2, "no readable JSON"},
		{`{"1": [0], "2": [0], "3": [0]} x`, 3, "goes on"},
		{`{"": [0]}`, 1, "empty id"},
		{`{"1": [0], "2": [0], "1": [0]}`, 3, `node "1" is in the map twice`},
		{"{\"\xff\": [0]}", 1, "is no UTF-8"},
		{`{"1": [0], "\ud800": [0]}`, 2, "half a surrogate pair"},
		{`{"1": [], "1": []}`, 2, `node "1" is in the map twice`},
	} {
		if c.row > 0 {
			wantRow(t, read(c.text), "f.json", c.row, c.want)
		} else {
			wantError(t, read(c.text), "f.json", 0, c.want)
		}
	}
	wantError(t, read(`{"1": [0], "2": [0]}`), "f.json", 0, `1 of 3 nodes have no feature row, first "3"`)
}

func TestNPZSets(t *testing.T) {
	for _, name := range []string{"texas", "wisconsin", "minesweeper"} {
		t.Run(name, func(t *testing.T) {
			tables, _, err := Read(t.Context(), Options{Dataset: original(t, name, "original", name+".npz")})
			if err != nil {
				t.Fatal(err)
			}
			wantCounts(t, tables, readCounts(t, name))
			if len(tables.Splits.Names) != 10 {
				t.Errorf("splits %q", tables.Splits.Names)
			}
			for _, file := range []string{"splits10.csv"} {
				plain, _, err := Read(t.Context(), Options{Edges: []string{original(t, name, "plain", "edges.csv")}, Splits: original(t, name, "plain", file)})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(plain.Splits.Mask, tables.Splits.Mask) {
					t.Error("the splits differ from the plain ones")
				}
			}
		})
	}
	for file, member := range map[string]string{"amazon-photo/original/amazon_photo.npz": "adj_matrix", "polblogs/original/polblogs.npz": "adj_matrix"} {
		path := original(t, filepath.FromSlash(file))
		wantError(t, Options{Dataset: path}, filepath.Base(path), 0, fmt.Sprintf("member %q is a pickled Python object", member), "run code")
		wantError(t, Options{Edges: []string{writeFile(t, "e.csv", "src,dst\n0,1\n")}, Features: path, FeatureMember: member}, filepath.Base(path), 0, "object arrays are not supported")
	}
}

func TestGeomGCN(t *testing.T) {
	dir := original(t, "wisconsin", "original-geom-gcn-text", "wisconsin")
	tables, _, err := Read(t.Context(), Options{Dataset: dir})
	if err != nil {
		t.Fatal(err)
	}
	want := readCounts(t, "wisconsin")
	want.Train, want.Pairs = 0, 0
	if tables.NumNodes() != want.Nodes || tables.Features.NumCols != want.Features || len(tables.Labels.ClassNames) != want.Classes {
		t.Errorf("%d nodes, %d features, classes %q", tables.NumNodes(), tables.Features.NumCols, tables.Labels.ClassNames)
	}
}

func TestOGB(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(f)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		z.Close()
		f.Close()
	}
	put("raw/edge.csv.gz", "0,1\n1,2\n2,0\n")
	put("raw/num-node-list.csv.gz", "5\n")
	put("raw/num-edge-list.csv.gz", "3\n")
	put("raw/node-feat.csv.gz", "0.5,1\n1,2\n2,3\n3,4\n-4,5\n")
	put("raw/node-label.csv.gz", "1\n0\n1\nnan\n0\n")
	put("split/time/train.csv.gz", "0\n1\n")
	put("split/time/valid.csv.gz", "2\n")
	put("split/time/test.csv.gz", "4\n")
	opt := Options{Dataset: dir}
	tables, _ := mustRead(t, opt)
	wantIDs(t, tables, "0", "1", "2", "3", "4")
	if !slices.Equal(tables.Features.Data, []float32{0.5, 1, 1, 2, 2, 3, 3, 4, -4, 5}) {
		t.Errorf("features %v", tables.Features)
	}
	wantClasses(t, tables, map[string]string{"0": "1", "1": "0", "2": "1", "3": "none", "4": "0"})
	wantParts(t, tables, map[string]snapshot.Part{"0": 1, "1": 1, "2": 2, "3": 0, "4": 3})
	wantGraph(t, tables, 3, map[string]int{"0": 2, "1": 2, "2": 2})
	files, err := DatasetFiles(dir)
	if err != nil || len(files) != 8 {
		t.Errorf("files %q, %v", files, err)
	}
	put("raw/num-edge-list.csv.gz", "4\n")
	wantError(t, opt, "edge.csv.gz", 0, "num-edge-list.csv.gz says 4 rows, found 3")
	put("raw/num-edge-list.csv.gz", "3\n")
	put("raw/node-label.csv.gz", "1\n0\n1\n0\n")
	wantError(t, opt, "node-label.csv.gz", 0, "4 rows for 5 nodes")
	put("raw/node-label.csv.gz", "1\n0\n1\n0\n1\n1\n")
	wantError(t, opt, "node-label.csv.gz", 6, "a row too many for 5 nodes")
	put("raw/num-node-list.csv.gz", "2\n")
	wantError(t, opt, "edge.csv.gz", 2, `"2" is not an id in num-node-list.csv.gz`)
	put("raw/num-node-list.csv.gz", "2\n3\n")
	wantError(t, opt, "num-node-list.csv.gz", 0, "several numbers")
	wantError(t, Options{Dataset: filepath.Join(dir, "nowhere")}, "nowhere", 0, "neither a file nor a directory", "Planetoid")
}

func TestStdin(t *testing.T) {
	for _, text := range []string{"1 2\n2 3\n", "src,dst\n1,2\n2,3\n", "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n"} {
		tables, report, err := Read(t.Context(), Options{Edges: []string{"-"}, Stdin: strings.NewReader(text), TmpDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		wantIDs(t, tables, "1", "2", "3")
		if len(edgesOf(tables).Src) != 2 || report.Files[0].Name != "stdin" {
			t.Errorf("%d edges, %s", len(edgesOf(tables).Src), report.Files[0].Name)
		}
		if want := sha256.Sum256([]byte(text)); !bytes.Equal(report.StdinSHA256, want[:]) {
			t.Errorf("digest %x, want %x", report.StdinSHA256, want)
		}
	}
	dir := t.TempDir()
	_, _, err := Read(t.Context(), Options{Edges: []string{"-"}, Stdin: strings.NewReader("1 2\n2\n"), TmpDir: dir})
	if err == nil || !strings.HasPrefix(err.Error(), "stdin:2: ") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%s is left", left[0].Name())
	}
}

func TestSNAPCSV(t *testing.T) {
	for _, c := range []struct {
		name               string
		nodes, rows, pairs int
	}{{"bitcoin-otc", 5881, 35592, 0}, {"email-Eu-core", 1005, 25571, 16064}, {"gnutella", 10876, 39994, 0}, {"grqc", 5242, 28980, 14484}, {"lastFM", 7624, 55612, 27806}, {"wiki-Vote", 7116, 103689, 0}} {
		opt := Options{Edges: []string{original(t, "snap-csv", "original", c.name, "edges.csv")}}
		if c.name != "wiki-Vote" {
			opt.Nodes = original(t, "snap-csv", "original", c.name, "nodes.csv")
		}
		tables, _, err := Read(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		_, pairs := degrees(tables)
		if tables.NumNodes() != c.nodes || len(edgesOf(tables).Src) != c.rows || c.pairs > 0 && pairs != c.pairs && pairs-loops(tables) != c.pairs {
			t.Errorf("%s: %d nodes, %d rows, %d pairs", c.name, tables.NumNodes(), len(edgesOf(tables).Src), pairs)
		}
	}
	// The damaged first edge of wiki-Vote: an id that its node list hasn't.
	opt := Options{Edges: []string{original(t, "snap-csv", "original", "wiki-Vote", "edges.csv")}, Nodes: original(t, "snap-csv", "original", "wiki-Vote", "nodes.csv")}
	if _, _, err := Read(t.Context(), opt); err == nil {
		t.Log("wiki-Vote: the node list has the damaged id too")
	}
}

func TestEmailZip(t *testing.T) {
	z, err := zip.OpenReader(original(t, "email-eu-core", "original", "email_Eu_core.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(f.Name)), data, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tables, _, err := Read(t.Context(), Options{Edges: []string{filepath.Join(dir, "email-Eu-core.txt")}, Labels: filepath.Join(dir, "email-Eu-core-department-labels.txt")})
	if err != nil {
		t.Fatal(err)
	}
	if _, pairs := degrees(tables); tables.NumNodes() != 1005 || len(edgesOf(tables).Src) != 25571 || len(tables.Labels.ClassNames) != 42 || loops(tables) != 642 || pairs-642 != 16064 {
		t.Errorf("%d nodes, %d rows, %d loops, %d pairs", tables.NumNodes(), len(edgesOf(tables).Src), loops(tables), pairs)
	}
}

func TestNetworKit(t *testing.T) {
	for _, c := range []struct {
		file         string
		nodes, pairs int
		opt          Options
	}{
		{file: "wiki-Vote.txt", nodes: 7115, pairs: 100762},
		{file: "GD01_b.mtx", nodes: 18, pairs: 0},
		{file: "Hamrle1.mtx", nodes: 32, pairs: 0, opt: Options{WeightCol: WeightNone}},
		{file: "LFAT5.mtx", nodes: 14, pairs: 30, opt: Options{WeightCol: WeightNone}},
		{file: "Ragusa16.mtx", nodes: 24, pairs: 0},
		{file: "chesapeake.mtx", nodes: 39, pairs: 170},
		{file: "tiny_05.matrixmarket", nodes: 5, pairs: 0, opt: Options{WeightCol: WeightNone}},
		{file: "alphabet.edgelist", nodes: 5, pairs: 4},
		{file: "comments.edgelist", nodes: 10, pairs: 10},
		{file: "example.edgelist", nodes: 10, pairs: 10},
		{file: "spaceseparated.edgelist", nodes: 10, pairs: 10},
		{file: "spaceseparated_weighted.edgelist", nodes: 3, pairs: 3, opt: Options{WeightCol: "3"}},
		{file: "hamming6-4.edgelist", nodes: 64, pairs: 704},
		{file: "johnson8-4-4.edgelist", nodes: 70, pairs: 1855},
		{file: "network.dat", nodes: 10, pairs: 10, opt: Options{Format: FormatSNAP}},
	} {
		c.opt.Edges = []string{original(t, "formats-networkit", "original", c.file)}
		tables, report, err := Read(t.Context(), c.opt)
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		if _, pairs := degrees(tables); tables.NumNodes() != c.nodes || c.pairs > 0 && pairs != c.pairs {
			t.Errorf("%s: %d nodes, %d pairs, %d rows", c.file, tables.NumNodes(), pairs, report.NumEdgeRows)
		}
	}
	for file, rows := range map[string]int{"GD01_b.mtx": 37, "Hamrle1.mtx": 98, "Ragusa16.mtx": 81, "tiny_05.matrixmarket": 11} {
		tables, _, err := Read(t.Context(), Options{Edges: []string{original(t, "formats-networkit", "original", file)}, WeightCol: WeightNone, Directed: true})
		if err != nil || len(edgesOf(tables).Src) != rows {
			t.Errorf("%s: %v", file, err)
		}
	}
}
