package e2e

import (
	"path/filepath"
	"slices"
	"testing"

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
