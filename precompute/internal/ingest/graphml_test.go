package ingest

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prelift/prelift/snapshot"
)

func TestCase16GraphML(t *testing.T) {
	file := in("16-graphml-defaults-order", "g.graphml")
	opt := Options{Edges: []string{file}, LabelCol: "active", Directed: true}
	tables, report := mustRead(t, opt)
	wantIDs(t, tables, "x", "y", "z")
	wantClasses(t, tables, map[string]string{"x": "0", "y": "1", "z": "0"})
	if e := edgesOf(tables); !slices.Equal(e.Src, []int32{0, 1}) || !slices.Equal(e.Dst, []int32{1, 2}) || !slices.Equal(e.Weight, []float32{1.5, 2.5}) {
		t.Errorf("edges %v", e)
	}
	if len(report.Files) != 2 {
		t.Errorf("files %v", report.Files)
	}
	opt.LabelCol, opt.FeatureCols = "", "active"
	tables, _ = mustRead(t, opt)
	if !slices.Equal(tables.Features.Data, []float32{0, 1, 0}) {
		t.Errorf("active %v", tables.Features.Data)
	}
	opt.FeatureCols, opt.LabelCol = "", "weight" // of the nodes: y and z have none
	tables, _ = mustRead(t, opt)
	wantClasses(t, tables, map[string]string{"x": "7", "y": "none", "z": "none"})
}

func TestGraphML(t *testing.T) {
	doc := func(keys, graph string) string {
		return "<?xml version=\"1.0\"?>\n<graphml>\n" + keys + "\n" + graph + "\n</graphml>\n"
	}
	const three = `<node id="a"/><node id="b"/><node id="c"/>`
	for _, c := range []struct {
		name, text string
		opt        Options
		line       int64
		want       []string // of the error; nil = it reads
		nodes      int
		edges      int
	}{
		{name: "undirected", text: doc("", `<graph edgedefault="undirected">`+three+`<edge source="a" target="b"/></graph>`), nodes: 3, edges: 1},
		{name: "undirected in a directed graph", text: doc("", `<graph edgedefault="undirected">`+three+`<edge source="a" target="b"/><edge source="c" target="c"/><edge source="a" target="c" directed="true"/></graph>`), opt: Options{Directed: true}, nodes: 3, edges: 4},
		{name: "directed with an undirected edge", text: doc("", `<graph edgedefault="directed">`+three+`<edge source="a" target="b" directed="false"/></graph>`), opt: Options{Directed: true}, nodes: 3, edges: 2},
		{name: "relations", text: doc(`<key id="l" for="edge" attr.name="labelE" attr.type="string"/>`, `<graph>`+three+`<edge source="a" target="b"><data key="l">r1</data></edge><edge source="a" target="b"><data key="l">r0</data></edge></graph>`), opt: Options{RelCol: "labelE"}, nodes: 3, edges: 2},
		{name: "CDATA, comments, entities", text: doc("", `<graph><!-- x --><node id="a&amp;&#98;"/><node id="c"/><edge source="c" target="a&amp;b"/></graph>`), nodes: 2, edges: 1},
		{name: "own entity", text: "<?xml version=\"1.0\"?>\n<!DOCTYPE x [<!ENTITY a \"b\">]>\n<graphml><graph><node id=\"&a;\"/></graph></graphml>", line: 3, want: []string{"no readable XML"}},
		{name: "undeclared node", text: doc("", `<graph>`+three+"\n"+`<edge source="a" target="d"/></graph>`), line: 5, want: []string{`field "target": "d" is not an id in g.graphml`}},
		{name: "node twice", text: doc("", `<graph><node id="a"/><node id="a"/></graph>`), line: 4, want: []string{"is in the table twice"}},
		{name: "node without id", text: doc("", `<graph><node/></graph>`), line: 4, want: []string{"empty id"}},
		{name: "undeclared key", text: doc("", `<graph><node id="a"><data key="k">1</data></node></graph>`), line: 4, want: []string{`no key "k"`}},
		{name: "boolean", text: doc(`<key id="k" for="node" attr.type="boolean"/>`, `<graph><node id="a"><data key="k">maybe</data></node></graph>`), line: 4, want: []string{`"maybe" is no boolean`}},
		{name: "cut", text: `<graphml><graph><node id="a"/>`, line: 1, want: []string{"readable XML"}},
		{name: "no xml", text: "a b\n", line: 2, want: []string{"inside the document"}},
		{name: "html", text: "<html></html>", line: 1, want: []string{"is no GraphML"}},
		{name: "second graph", text: doc("", `<graph><node id="a"/></graph><graph/>`), line: 4, want: []string{"second graph"}},
		{name: "second document", text: "<graphml><graph><node id='a'/></graph></graphml>\n<graphml><graph><node id='b'/></graph></graphml>", line: 2, want: []string{"goes on behind the document"}},
		{name: "text behind", text: "<graphml><graph><node id='a'/></graph></graphml>\nx\n", line: 3, want: []string{"goes on behind the document"}},
		{name: "broken markup behind", text: "<graphml><graph><node id='a'/></graph></graphml></x>", line: 1, want: []string{"readable XML"}},
		{name: "blanks and a comment behind", text: "<graphml><graph><node id='a'/></graph></graphml>\n\n<!-- x -->\n", nodes: 1},
		{name: "two data of a key", text: doc(`<key id="k" for="node"/>`, `<graph><node id="a"><data key="k">1</data><data key="k">2</data></node></graph>`), line: 4, want: []string{`two data of the key "k"`}},
		{name: "nested graph", text: doc("", `<graph><node id="a"><graph/></node></graph>`), line: 4, want: []string{"graphs inside nodes"}},
		{name: "hyperedge", text: doc("", `<graph><hyperedge/></graph>`), line: 4, want: []string{"hyperedges"}},
		{name: "deep", text: strings.Repeat("<a>", 100), line: 1, want: []string{"is no GraphML"}},
		{name: "deep in the graph", text: "<graphml><graph>" + strings.Repeat("<a>", 100), line: 1, want: []string{"nest deeper"}},
		{name: "edgedefault", text: "<graphml><graph edgedefault='both'/></graphml>", line: 1, want: []string{`"both"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opt.Edges = []string{writeFile(t, "g.graphml", c.text)}
			if c.want != nil {
				wantError(t, c.opt, "g.graphml", c.line, c.want...)
				return
			}
			tables, _ := mustRead(t, c.opt)
			if tables.NumNodes() != c.nodes || len(edgesOf(tables).Src) != c.edges {
				t.Errorf("%d nodes, %d edges; want %d, %d", tables.NumNodes(), len(edgesOf(tables).Src), c.nodes, c.edges)
			}
			if c.name == "relations" && (!slices.Equal(tables.RelNames, []string{"r0", "r1"}) || !slices.Equal(edgesOf(tables).Rel, []int32{1, 0})) {
				t.Errorf("relations %q, %v", tables.RelNames, edgesOf(tables).Rel)
			}
		})
	}
}

func TestAirRoutesGraphML(t *testing.T) {
	for _, c := range []struct {
		file         string
		nodes, edges int
		rels         int
		opt          Options
	}{
		{file: "air-routes-small-latest.graphml", nodes: 47, edges: 1390, rels: 1, opt: Options{RelCol: "labelE", TypeCol: "labelV"}},
		{file: "epl-2013-2014.graphml", nodes: 33, edges: 423, opt: Options{WeightCol: WeightNone}},
	} {
		c.opt.Edges = []string{original(t, "air-routes", "original", c.file)}
		tables, _ := mustRead(t, c.opt)
		if tables.NumNodes() != c.nodes || len(edgesOf(tables).Src) != c.edges || len(tables.RelNames) != c.rels {
			t.Errorf("%s: %d nodes, %d edges, relations %q", c.file, tables.NumNodes(), len(edgesOf(tables).Src), tables.RelNames)
		}
		if c.opt.TypeCol != "" && !slices.Equal(tables.Types.Names, []string{"airport", "version"}) {
			t.Errorf("types %q", tables.Types.Names)
		}
	}
}

// fuzzEdges wants known errors and consistent tables of one edge file.
func fuzzEdges(t *testing.T, name string, data []byte, opt Options) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	opt.Edges, opt.Threads = []string{writeFile(t, name, string(data))}, 2
	tables, _, err := Read(ctx, opt)
	if e := (*Error)(nil); err != nil {
		if !errors.As(err, &e) || e.Msg == "" {
			t.Fatalf("unknown error %T: %v", err, err)
		}
		return
	}
	edges := edgesOf(tables)
	for i, src := range edges.Src {
		if n := tables.NumNodes(); int(src) >= n || int(edges.Dst[i]) >= n {
			t.Fatalf("edge %d of %d nodes", i, n)
		}
	}
}

func FuzzGraphML(f *testing.F) {
	if data, err := os.ReadFile(in("16-graphml-defaults-order", "g.graphml")); err == nil {
		f.Add(data)
	}
	f.Add([]byte(`<graphml><key id="k" for="all"/><graph edgedefault="undirected"><node id="a"/><edge source="a" target="a"/></graph></graphml>`))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzEdges(t, "g.graphml", data, Options{Directed: true}) })
}

func FuzzMTX(f *testing.F) {
	if data, err := os.ReadFile(in("18-mtx-symmetric-pattern", "g.mtx")); err == nil {
		f.Add(data)
	}
	f.Add([]byte("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 0.5\n2 1 1e-3\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n := nodesClaimed(data); n > 1<<16 {
			t.Skip("a graph of that many nodes is legal, and slow")
		}
		fuzzEdges(t, "g.mtx", data, Options{Directed: true})
	})
}

// nodesClaimed is the largest number of up to 10 digits in the data.
func nodesClaimed(data []byte) int64 {
	largest := int64(0)
	for _, word := range strings.Fields(string(data)) {
		if v, ok := snapshot.CanonicalInt([]byte(word)); ok {
			largest = max(largest, v)
		}
	}
	return largest
}
