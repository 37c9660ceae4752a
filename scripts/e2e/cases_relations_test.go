package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/prelift/prelift/snapshot"
)

// Two nodes under two relations are two edges, or one where relations are merged.
func TestRelations(t *testing.T) {
	dir := t.TempDir()
	edges := write(t, filepath.Join(dir, "e.csv"), "a,kind,b\nann,likes,bob\nann,knows,bob\nbob,likes,cid\nann,likes,bob\ncid,knows,cid\n")
	flags := []string{"--edges", edges, "--header", "yes", "--src-col", "a", "--dst-col", "b", "--rel-col", "kind"}
	s := build(t, flags...)
	wantCounts(t, s, 3, 4)
	if want := []string{"knows", "likes"}; !slices.Equal(s.RelNames, want) || s.Manifest.NumRels != 2 {
		t.Errorf("relations %q, want %q", s.RelNames, want)
	}
	out := filepath.Join(dir, "snap")
	ok(t, "precompute", append([]string{"snapshot", "--out", out, "--direction", "directed", "--with", "pagerank,order"}, flags...)...)
	ok(t, "precompute", "verify", out)
	d := object(t, "precompute", "inspect", out, "--json")
	if d["num_rels"] != 2.0 || d["num_edges"] != 4.0 || d["duplicates_merged"] != 1.0 {
		t.Errorf("inspect says %v relations, %v edges, %v merged", d["num_rels"], d["num_edges"], d["duplicates_merged"])
	}
	refused(t, 2, []string{"2 relations", "--relations merge"}, "precompute", "batches", "--snapshot", out, "--out", filepath.Join(dir, "set"))
	refused(t, 2, []string{"--relations", "keep"}, "precompute", append([]string{"snapshot", "--out", out, "--relations", "some"}, flags...)...)

	merged := build(t, append(flags, "--relations", "merge")...)
	wantCounts(t, merged, 3, 3)
	if merged.RelNames != nil || merged.Manifest.NumRels != 1 {
		t.Errorf("merged: relations %q", merged.RelNames)
	}
}

// A Neo4j export: ids of two spaces, :LABEL and :TYPE.
func TestNodeTypes(t *testing.T) {
	dir := t.TempDir()
	people := write(t, filepath.Join(dir, "people.csv"), "id:ID(P),name,:LABEL\n1,Ann,Person\n2,Bob,Person\n")
	films := write(t, filepath.Join(dir, "films.csv"), "id:ID(F),title,:LABEL\n1,Up,Film\n")
	edges := write(t, filepath.Join(dir, "e.csv"), ":START_ID(P),:END_ID(F),:TYPE\n1,1,SAW\n2,1,SAW\n2,1,MADE\n")
	out := filepath.Join(dir, "snap")
	ok(t, "precompute", "snapshot", "--edges", edges, "--nodes", people, "--nodes", films, "--out", out)
	ok(t, "precompute", "verify", out)
	d := object(t, "precompute", "inspect", out, "--json")
	named := func(key string) (list []snapshot.NamedCount) {
		for _, x := range d[key].([]any) {
			m := x.(map[string]any)
			list = append(list, snapshot.NamedCount{Name: m["name"].(string), Count: int64(m["count"].(float64))})
		}
		return list
	}
	if got, want := named("types"), []snapshot.NamedCount{{Name: "Film", Count: 1}, {Name: "Person", Count: 2}}; !slices.Equal(got, want) {
		t.Errorf("types %v, want %v", got, want)
	}
	if got, want := named("relations"), []snapshot.NamedCount{{Name: "MADE", Count: 1}, {Name: "SAW", Count: 2}}; !slices.Equal(got, want) {
		t.Errorf("relations %v, want %v", got, want)
	}
	typed := build(t, "--edges", write(t, filepath.Join(dir, "plain.csv"), "src,dst\na,b\n"), "--nodes", write(t, filepath.Join(dir, "n.csv"), "id,sort\na,x\nb,\n"), "--type-col", "sort")
	if want := []string{"", "x"}; !slices.Equal(typed.Types.Names, want) || !slices.Equal(typed.Types.Type, []int32{1, 0}) {
		t.Errorf("types %q %v", typed.Types.Names, typed.Types.Type)
	}
}

// triple is a line of a relational edge file.
type triple struct{ src, rel, dst string }

// testTriples has the same pairs under several relations, both ways round, repeats and loops.
func testTriples() (list []triple) {
	rels := []string{"knows", "likes", "is \"a\"", "ähnlich"}
	for i := range 900 {
		list = append(list, triple{fmt.Sprint("n", i*i%97), rels[i%7%4], fmt.Sprint("n", i*31%89)})
	}
	return list
}

func csvOf(list []triple) string {
	var b strings.Builder
	b.WriteString("from,kind,to\n")
	for _, x := range list {
		fmt.Fprintf(&b, "%s,\"%s\",%s\n", x.src, strings.ReplaceAll(x.rel, `"`, `""`), x.dst)
	}
	return b.String()
}

func writeParquet(t *testing.T, path string, list []triple) string {
	t.Helper()
	var fields []arrow.Field
	for _, name := range []string{"from", "kind", "to"} {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.BinaryTypes.String})
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema(fields, nil))
	for _, x := range list {
		for i, value := range []string{x.src, x.rel, x.dst} {
			b.Field(i).(*array.StringBuilder).Append(value)
		}
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(b.Schema(), f, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err == nil {
		err = w.Write(b.NewRecord())
	}
	if err == nil {
		err = w.Close() // and f
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Relations of a CSV, a Parquet file and a Neo4j export, in any order of lines and by any threads: one snapshot.
func TestRelationsAnyWay(t *testing.T) {
	dir := t.TempDir()
	list := testTriples()
	turned := slices.Clone(list)
	slices.Reverse(turned)
	named := []string{"--header", "yes", "--src-col", "from", "--dst-col", "to", "--rel-col", "kind"}
	neo4j := strings.Replace(csvOf(list), "from,kind,to", ":START_ID,:TYPE,:END_ID", 1)
	edges := write(t, filepath.Join(dir, "e.csv"), csvOf(list))
	inputs := map[string][]string{
		"CSV":              append([]string{"--edges", edges}, named...),
		"threads":          append([]string{"--edges", edges, "--threads", "5"}, named...),
		"order":            append([]string{"--edges", write(t, filepath.Join(dir, "turned.csv"), csvOf(turned))}, named...),
		"Parquet":          append([]string{"--edges", writeParquet(t, filepath.Join(dir, "e.parquet"), list)}, named[2:]...),
		"Neo4j":            {"--edges", write(t, filepath.Join(dir, "neo.csv"), neo4j)},
		"lines in 2 files": append([]string{"--edges", write(t, filepath.Join(dir, "a.csv"), csvOf(list[:300])), "--edges", write(t, filepath.Join(dir, "b.csv"), csvOf(list[300:]))}, named...),
	}
	for _, mode := range [][]string{{"--direction", "undirected"}, {"--direction", "directed"}, {"--relations", "merge"}} {
		want := map[triple]bool{}
		for _, x := range list {
			if mode[1] == "merge" {
				x.rel = ""
			}
			if mode[1] != "directed" && x.src > x.dst {
				x.src, x.dst = x.dst, x.src
			}
			want[x] = true
		}
		id := ""
		for name, flags := range inputs {
			out := filepath.Join(dir, mode[1]+" "+name)
			s := object(t, "precompute", append(append([]string{"snapshot", "--out", out, "--with", "pagerank,order"}, mode...), flags...)...)
			if id == "" {
				id = s["id"].(string)
				ok(t, "precompute", "verify", out)
				checkTriples(t, open(t, out), want)
			}
			if s["id"] != id {
				t.Errorf("%v: %s gives another snapshot", mode, name)
			}
		}
	}
}

// checkTriples compares the rows with the edges wanted: undirected, with the smaller end first.
func checkTriples(t *testing.T, s *snapshot.Snapshot, want map[triple]bool) {
	t.Helper()
	got := map[triple]bool{}
	for v := range int32(s.NumNodes()) {
		for e := s.In.Indptr[v]; e < s.In.Indptr[v+1]; e++ {
			x := triple{src: string(s.IDs.At(int(s.In.Indices[e]))), dst: string(s.IDs.At(int(v)))}
			if s.In.Rel != nil {
				x.rel = s.RelNames[s.In.Rel[e]]
			}
			if s.Out == nil && x.src > x.dst {
				x.src, x.dst = x.dst, x.src
			}
			got[x] = true
			if !want[x] {
				t.Fatalf("%+v is in the rows, but in no line", x)
			}
		}
	}
	if len(got) != len(want) || int(s.Manifest.NumEdges) != len(want) {
		t.Errorf("%d edges, %d counted, want %d", len(got), s.Manifest.NumEdges, len(want))
	}
}

// Two spaces of ids, a type each, and one relation, whose name alone is stored.
func TestCase14Types(t *testing.T) {
	dir := "14-neo4j-id-spaces"
	s := build(t, "--edges", casePath(dir, "acted.csv"), "--nodes", casePath(dir, "persons.csv")+","+casePath(dir, "movies.csv"))
	if !slices.Equal(s.RelNames, []string{"ACTED_IN"}) || s.Manifest.NumRels != 1 || s.In.Rel != nil {
		t.Errorf("relations %q, %d, of entries %v", s.RelNames, s.Manifest.NumRels, s.In.Rel)
	}
	if !slices.Equal(s.Types.Names, []string{"Movie", "Person"}) || !slices.Equal(s.Types.Type, []int32{0, 0, 1, 1}) {
		t.Errorf("types %q %v", s.Types.Names, s.Types.Type)
	}
}

// The counts of shared/data/air-routes: routes and continents, airports and countries.
func TestAirRoutesRelations(t *testing.T) {
	data := filepath.Join(dataDir(t, "air-routes"), "original")
	edges, nodes := filepath.Join(data, "air-routes-latest-edges.csv"), filepath.Join(data, "air-routes-latest-nodes.csv")
	if _, err := os.Stat(edges); err != nil {
		t.Skip(err)
	}
	out := filepath.Join(t.TempDir(), "air")
	ok(t, "precompute", "snapshot", "--edges", edges, "--nodes", nodes, "--direction", "directed", "--out", out)
	ok(t, "precompute", "verify", out)
	text := ok(t, "precompute", "inspect", out).stdout
	for _, want := range []string{`relations            2: "route" 50637, "contains" 7008`, `"airport" 3504`, `"continent" 7`, `"country" 237`, `"version" 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("inspect lacks %s:\n%s", want, text)
		}
	}
}
