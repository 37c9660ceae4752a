package ingest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/prelift/prelift/snapshot"
)

// heldText is the lists of held-out pairs in external ids, with relations and weights where they have them.
func heldText(tables *snapshot.Tables) (lists [2][]string) {
	for k, p := range []struct {
		src, dst, rel []int32
		weight        []float32
	}{
		{tables.Held.Valid.Src, tables.Held.Valid.Dst, tables.Held.Valid.Rel, tables.Held.Valid.Weight},
		{tables.Held.Test.Src, tables.Held.Test.Dst, tables.Held.Test.Rel, tables.Held.Test.Weight},
	} {
		for i, src := range p.src {
			text := fmt.Sprintf("%s %s", tables.IDs.At(src), tables.IDs.At(p.dst[i]))
			if p.rel != nil {
				text += " " + tables.RelNames[p.rel[i]]
			}
			if p.weight != nil {
				text += fmt.Sprint(" ", p.weight[i])
			}
			lists[k] = append(lists[k], text)
		}
	}
	return lists
}

func TestHoldout(t *testing.T) {
	list := func(name, text string) string { return writeFile(t, name, text) }
	plain := list("edges.csv", "src,dst\nc,b\nb,a\n")
	typed := list("typed.csv", ":START_ID,:END_ID,:TYPE,weight:double\nc,b,likes,1\nb,a,hates,2\n")
	for _, c := range []struct {
		name        string
		opt         Options
		valid, test string
		want        string
		ids         string
	}{
		{"one list", Options{Edges: []string{plain}}, list("v.tsv", "c\ta\n"), "", "[[c a] []]", "a b c"},
		{"ids of a list only", Options{Edges: []string{plain}}, list("v.csv", "z,a\n"), list("t.csv", "0,c\n"), "[[z a] [0 c]]", "0 a b c z"},
		{"no rows", Options{Edges: []string{plain}}, list("v.csv", ""), list("t.csv", "src,dst\n"), "[[] []]", "a b c"},
		{"columns by name", Options{Edges: []string{list("e.csv", "to,from\nb,c\n")}, SrcCol: "from", DstCol: "to"}, "", list("t.csv", "from,x,to\na,1,c\n"), "[[] [a c]]", "a b c"},
		{"weights that the edges lack", Options{Edges: []string{plain}}, list("v.csv", "src,dst,weight\na,b,2\n"), "", "[[a b] []]", "a b c"},
		{"weights by a column that one list lacks", Options{Edges: []string{list("w.csv", "src,dst,w\na,b,1\n")}, WeightCol: "w"}, list("v.csv", "a,b\n"), "", "[[a b] []]", "a b"},
		{"weights by number", Options{Edges: []string{list("w.csv", "a,b,1\n")}, WeightCol: "3"}, list("v.csv", "a,b\n"), "", "[[a b] []]", "a b"},
		{"weights", Options{Edges: []string{list("w.csv", "src,dst,weight\na,b,1\n")}}, list("v.csv", "src,dst,weight\na,b,2.5\n"), list("t.csv", ""), "[[a b 2.5] []]", "a b"},
		{"types", Options{Edges: []string{typed}}, list("v.csv", ":TYPE,:START_ID,weight,:END_ID\nadores,a,3,c\nlikes,b,4,c\n"), "", "[[a c adores 3 b c likes 4] []]", "a b c"},
		{"no types", Options{Edges: []string{typed}}, list("v.csv", "b,c\n"), list("t.csv", "a,c\n"), "[[b c] [a c]]", "a b c"},
		{"triples", Options{Edges: []string{list("train.tsv", "a\tr\tb\n")}, Format: FormatTriples}, list("v.tsv", "b\tq\ta\n"), "", "[[b a q] []]", "a b"},
		{"symmetric matrix, directed", Options{Edges: []string{list("e.csv", "1,2\n3,2\n")}, Directed: true}, list("v.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n2 1\n"), "", "[[2 1 1 2] []]", "1 2 3"},
		{"symmetric matrix with weights, directed", Options{Edges: []string{list("e.csv", "src,dst,weight\n1,2,1\n")}, Directed: true}, list("v.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 5\n"), "", "[[2 1 5 1 2 5] []]", "1 2"},
		{"Parquet", Options{Edges: []string{in("22-parquet-nulls-types", "edges_ok.parquet")}, WeightCol: WeightNone}, in("22-parquet-nulls-types", "edges_ok.parquet"), "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := "valid=" + c.valid
			switch {
			case c.valid == "":
				spec = "test=" + c.test
			case c.test != "":
				spec += ",test=" + c.test
			}
			c.opt.HoldoutEdges = spec
			tables, report := mustRead(t, c.opt)
			if c.want == "" { // the edges themselves
				if e := edgesOf(tables); !slices.Equal(tables.Held.Valid.Src, e.Src) || !slices.Equal(tables.Held.Valid.Dst, e.Dst) {
					t.Errorf("held out are %v, want %v", tables.Held, e)
				}
				return
			}
			if got := fmt.Sprint(heldText(tables)); got != c.want {
				t.Errorf("held out are %s, want %s", got, c.want)
			}
			ids := ""
			for v := range tables.IDs.Len() {
				ids += " " + string(tables.IDs.At(int32(v)))
			}
			if ids != " "+c.ids {
				t.Errorf("ids are%s, want %s", ids, c.ids)
			}
			if last := report.Files[len(report.Files)-1]; last.Role != roleHoldout {
				t.Errorf("last file read is %+v", last)
			}
		})
	}
	if tables, _ := mustRead(t, Options{Edges: []string{plain}}); tables.Held != nil {
		t.Errorf("held out without a list: %v", tables.Held)
	}
}

func TestHoldoutErrors(t *testing.T) {
	edges := writeFile(t, "edges.csv", "src,dst\n1,02\n02,3\n")
	opt := func(spec string) Options { return Options{Edges: []string{edges}, HoldoutEdges: spec} }
	bad := func(text string) string { return writeFile(t, "bad.csv", text) }
	wantError(t, opt("test="+bad("src,dst\n1,02\n\n3,3\n")), "bad.csv", 4, `field "dst": "3" is the other end too`, "self loop")
	wantError(t, opt("valid="+writeFile(t, "v.csv", "3,1\n1,02\n")+",test="+bad("9,1\n02,1\n")), "bad.csv", 2, `"02", "1" is held out for valid too, in v.csv line 2`)
	wantError(t, opt("test="+bad("1,02\n02,1\n")+",valid="+writeFile(t, "v.csv", "02,1\n")), "bad.csv", 1, `is held out for valid too, in v.csv line 1`)
	wantError(t, opt("valid="+t.TempDir()+"/none.csv"), "none.csv", 0, "can't be opened")
	o := opt("test=" + bad("1,2\n"))
	o.IDType = IDInteger
	wantError(t, o, "bad.csv", 1, `ids "02" (edges.csv line 2) and "2" (bad.csv line 1) collide`)
	o = opt("test=" + bad("src,dst,weight\n1,02,-1\n"))
	o.Edges = []string{writeFile(t, "w.csv", "src,dst,weight\n1,02,3\n")}
	wantError(t, o, "bad.csv", 2, `field "weight": "-1" is negative`)
	o.HoldoutEdges = "test=" + bad("src,dst,weight\n1,02,-1e-60\n")
	wantError(t, o, "bad.csv", 2, `field "weight": "-1e-60" is negative`)
	o.HoldoutEdges = "valid=" + writeFile(t, "v.csv", "1,02\n") + ",test=" + bad("src,dst,weight\n1,3,1\n")
	wantError(t, o, "bad.csv", 0, "bad.csv has a weight column and v.csv has none")
	for _, spec := range []string{"x", "train=x", "valid=", "test=a,test=b", "valid=a,b"} {
		o := opt(spec)
		if err := o.Check(); !errors.Is(err, ErrOption) || !contains(err.Error(), "holdout edges") {
			t.Errorf("%q: %v", spec, err)
		}
	}
	parts, paths, err := HoldoutFiles("test=a b,val=c")
	if err != nil || fmt.Sprint(parts, paths) != "[test valid] [a b c]" {
		t.Errorf("parts %v, paths %v, %v", parts, paths, err)
	}
}

// Weights of a list that are too small for float32 are told of as those of edges are.
func TestHoldoutSmallWeights(t *testing.T) {
	edges := writeFile(t, "w.csv", "src,dst,weight\n1,2,3\n")
	tables, report := mustRead(t, Options{Edges: []string{edges}, HoldoutEdges: "test=" + writeFile(t, "t.csv", "src,dst,weight\n2,3,1e-60\n1,3,0\n")})
	if got := tables.Held.Test.Weight; !slices.Equal(got, []float32{0, 0}) {
		t.Errorf("weights %v", got)
	}
	want := `1 weight of column "weight" over 0 but too small for float32: read as 0`
	if got := report.Files[len(report.Files)-1].Notices; !slices.Contains(got, want) {
		t.Errorf("notices %q lack %q", got, want)
	}
}

// A list can't name more relations than there are numbers.
func TestHoldoutTooManyRelations(t *testing.T) {
	list := writeFile(t, "v.csv", "a,r,b\na,s,b\n")
	r := &reader{report: &Report{}, dict: newDict(true), held: &heldPairs{}, rels: relations{names: newDict(true), known: true}}
	r.rels.names.limit = 1
	var err error
	if r.opt, err = (Options{Edges: []string{list}, Header: HeaderNo, RelCol: "2", DstCol: "3"}).withDefaults(); err != nil {
		t.Fatal(err)
	}
	err = r.readHeldList(t.Context(), splitList{part: snapshot.PartValid, path: list})
	if !errors.Is(err, ErrLimit) || !contains(err.Error(), "v.csv: one relation too many") {
		t.Errorf("got %v, want one relation too many", err)
	}
}
