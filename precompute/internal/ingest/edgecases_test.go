package ingest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The import corpus: what is valid loads, what isn't gives an error that names the place and the fault.
func TestImportEdgeCases(t *testing.T) {
	dir := original(t, "import-edge-cases", "original")
	node := func(files ...string) Options { // as node tables, the id in column 1
		return Options{NodeFiles: inDir(dir, files...), TableHeader: HeaderNo, IDCol: "1"}
	}
	edge := func(files ...string) Options { return Options{Edges: inDir(dir, files...), Header: HeaderNo} }
	with := func(o Options, f func(o *Options)) Options { f(&o); return o }
	for _, c := range []struct {
		file   string // for the test's name
		opt    Options
		ids    string // all ids, or their number
		edges  int
		errors string // a part of the error; "" = it reads
	}{
		{file: "copy-dos-style-newline/vPerson.csv", opt: node("copy-dos-style-newline/vPerson.csv"), ids: "0 1 2 3 4"},
		{file: "delim1", opt: with(edge("csv-dialect-detection/eStudyAt_delim1.csv"), func(o *Options) { o.Header, o.Delimiter = HeaderAuto, "|" }), ids: "0 1 2 8", edges: 3},
		{file: "delim2", opt: with(edge("csv-dialect-detection/eStudyAt_delim2.csv"), func(o *Options) { o.Header, o.Delimiter = HeaderAuto, ";" }), ids: "0 1 2 8", edges: 3},
		{file: "delim2 as it is", opt: with(edge("csv-dialect-detection/eStudyAt_delim2.csv"), func(o *Options) { o.Header = HeaderAuto }), errors: `--delimiter`},
		{file: "escape1", opt: with(edge("csv-dialect-detection/eStudyAt_escape1.csv"), func(o *Options) { o.Header, o.Delimiter = HeaderAuto, ";" }), errors: "eStudyAt_escape1.csv:2: text after a closing quote"},
		{file: "escape2", opt: with(edge("csv-dialect-detection/eStudyAt_escape2.csv"), func(o *Options) { o.Header, o.Delimiter = HeaderAuto, ";" }), ids: "0 1 2 8", edges: 3},
		{file: "bom-and-data", opt: node("csv-edge-case-tests/bom-and-data.csv"), ids: "abc data"},
		{file: "bom", opt: node("csv-edge-case-tests/bom.csv"), errors: "no ids"},
		{file: "carriage-return-then-eof", opt: edge("csv-edge-case-tests/carriage-return-then-eof.csv"), ids: "abc def ghi jkl", edges: 2},
		{file: "delimiter-then-eof", opt: edge("csv-edge-case-tests/delimiter-then-eof.csv"), errors: "delimiter-then-eof.csv:1: field \"dst\": \"\" empty id"},
		{file: "empty-first-line", opt: edge("csv-edge-case-tests/empty-first-line.csv"), ids: "abc def ghi jkl", edges: 2},
		{file: "empty-lines-multiple-columns", opt: edge("csv-edge-case-tests/empty-lines-multiple-columns.csv"), ids: "abc def ghi jkl", edges: 2},
		{file: "empty-lines-single-column", opt: node("csv-edge-case-tests/empty-lines-single-column.csv"), ids: "abc def"},
		{file: "empty", opt: edge("csv-edge-case-tests/empty.csv"), errors: "empty.csv: there are no nodes"},
		{file: "eof-after-unquote", opt: edge("csv-edge-case-tests/eof-after-unquote.csv"), ids: "abc def", edges: 1},
		{file: "escapes-in-quote", opt: node("csv-edge-case-tests/escapes-in-quote.csv"), errors: "escapes-in-quote.csv:1"},
		{file: "escapes-out-of-quote", opt: edge("csv-edge-case-tests/escapes-out-of-quote.csv"), errors: "escapes-out-of-quote.csv:2: expected 2 fields, got 3"},
		{file: "header-num-columns-mismatch", opt: with(edge("csv-edge-case-tests/header-num-columns-mismatch.csv"), func(o *Options) { o.Format = FormatSNAP }), errors: "header-num-columns-mismatch.csv:2: expected 4 fields, got 6"},
		{file: "long-string", opt: node("csv-edge-case-tests/long-string.csv"), ids: "1"},
		{file: "mixed-newlines", opt: node("csv-edge-case-tests/mixed-newlines.csv"), errors: "mixed-newlines.csv:1: a carriage return inside a line"},
		{file: "quoted-values", opt: edge("csv-edge-case-tests/quoted-values.csv"), ids: "abc bcd", edges: 1},
		{file: "tab-as-delim", opt: with(edge("csv-edge-case-tests/tab-as-delim.csv"), func(o *Options) { o.Delimiter = "tab" }), ids: "abc def ghi jkl", edges: 2},
		{file: "unquote-escape", opt: node("csv-edge-case-tests/unquote-escape.csv"), ids: `abc"def`},
		{file: "multiline", opt: node("csv-multiline-quote-tests/basic.csv"), ids: "abc\ndef"},
		{file: "invalid magic", opt: edge("invalid-compressed-gz/test_invalid_magic.csv.gz"), errors: "test_invalid_magic.csv.gz: empty or not gzip"},
		{file: "truncated header", opt: edge("invalid-compressed-gz/truncated_header.csv.gz"), errors: "truncated_header.csv.gz: unexpected end"},
		{file: "compression method", opt: edge("invalid-compressed-gz/invalid_compression_method.csv.gz"), errors: "invalid_compression_method.csv.gz: can't be decompressed"},
		{file: "flags", opt: edge("invalid-compressed-gz/unsupported_flags.csv.gz"), errors: "unsupported_flags.csv.gz"},
		{file: "parquet in gzip", opt: edge("invalid-compressed-gz/user.parquet.gz"), errors: "user.parquet.gz"},
		{file: "primary keys", opt: with(edge("primary-key-tests/eFollows.csv"), func(o *Options) {
			o.Nodes, o.TableHeader = filepath.Join(dir, "primary-key-tests/vPerson.csv"), HeaderNo
		}), errors: `eFollows.csv:1: field "dst": "10020" is not an id in vPerson.csv`},
		{file: "rel-group", opt: with(edge("rel-group/edge.csv"), func(o *Options) { o.Nodes = filepath.Join(dir, "rel-group/node.csv") }), ids: "0 2 3 5 7 8 9 10", edges: 14},
		{file: "typed-headers", opt: Options{Nodes: filepath.Join(dir, "typed-headers/person.csv"), IDCol: "name", FeatureCols: "height:INT64,age:UINT64"}, ids: "Alice Bob"},
		{file: "tinysnb knows", opt: edge("tinysnb/eKnows.csv"), ids: "0 2 3 5", edges: 6},
		{file: "tinysnb knows 2", opt: edge("tinysnb/eKnows.csv", "tinysnb/eKnows_2.csv"), ids: "0 2 3 5 7 8 9", edges: 14},
		{file: "tinysnb meets", opt: edge("tinysnb/eMeets.csv"), ids: "0 2 3 5 7 8 9 10", edges: 7},
		{file: "tinysnb marries", opt: edge("tinysnb/eMarries.csv"), ids: "0 2 3 5 7 8", edges: 3},
		{file: "tinysnb works", opt: with(edge("tinysnb/eWorkAt.csv"), func(o *Options) { o.WeightCol = "5" }), ids: "3 4 5 6 7", edges: 3},
		{file: "tinysnb studies", opt: with(edge("tinysnb/eStudyAt.csv"), func(o *Options) { o.Header = HeaderAuto }), ids: "0 1 2 8", edges: 3},
		{file: "tinysnb with its persons", opt: with(edge("tinysnb/eKnows.csv", "tinysnb/eKnows_2.csv"), func(o *Options) { o.Nodes, o.IDCol = filepath.Join(dir, "tinysnb/concat_vperson.csv.gz"), "id" }), ids: "0 2 3 5 7 8 9 10", edges: 14},
		{file: "tinysnb with some of its persons", opt: with(edge("tinysnb/eKnows.csv", "tinysnb/eKnows_2.csv"), func(o *Options) { o.Nodes, o.IDCol = filepath.Join(dir, "tinysnb/vPerson.csv"), "id" }), errors: `eKnows_2.csv:7: field "dst": "8" is not an id in vPerson.csv`},
		{file: "persons", opt: Options{Nodes: filepath.Join(dir, "tinysnb/vPerson.csv"), FeatureCols: "age,eyeSight,height"}, ids: "0 2 3 5 7"},
		{file: "persons, words as features", opt: Options{Nodes: filepath.Join(dir, "tinysnb/vPerson.csv"), FeatureCols: "fname"}, errors: `vPerson.csv:2: field "fname": "Alice"`},
		{file: "persons in gzip", opt: Options{Nodes: filepath.Join(dir, "tinysnb/vPerson.csv.gz"), LabelCol: "Gender"}, ids: "0 2 3 5 7"},
		{file: "persons 2", opt: node("tinysnb/vPerson2.csv"), ids: "8 9 10"},
		{file: "persons 2 in gzip", opt: node("tinysnb/vPerson2.csv.gz"), ids: "8 9 10"},
		{file: "persons, fewer columns", opt: Options{Nodes: filepath.Join(dir, "tinysnb/vPerson_less_col.csv")}, ids: "0 2 3 5 7"},
		{file: "two tables, one header", opt: Options{NodeFiles: inDir(dir, "tinysnb/vPerson.csv", "tinysnb/vPerson2.csv")}, errors: "vPerson2.csv: has no header"},
		{file: "commas in a .tsv", opt: Options{Nodes: filepath.Join(dir, "tinysnb/vPerson.tsv"), IDCol: "id"}, errors: "vPerson.tsv:1: no column \"id\" (fields separated by ','? use --delimiter)"},
		{file: "movies", opt: node("tinysnb/vMovies.csv"), ids: "3"},
		{file: "backslash quotes", opt: node("tinysnb/vOrganisation.csv"), errors: "vOrganisation.csv:2: text after a closing quote"},
		{file: "primary key of an organisation", opt: node("primary-key-tests/vOrg.csv"), ids: "10020"},
		{file: "bom-and-header", opt: with(node("csv-edge-case-tests/bom-and-header.csv"), func(o *Options) { o.TableHeader, o.IDCol = HeaderYes, "col1" }), errors: "no ids"},
		{file: "large-header", opt: with(edge("csv-edge-case-tests/large-header.csv"), func(o *Options) { o.Header, o.SrcCol, o.DstCol = HeaderYes, "1", "2" }), ids: "2", edges: 1},
		{file: "list-quote", opt: node("csv-edge-case-tests/list-quote.csv"), ids: "15"},
		{file: "long-list", opt: node("csv-edge-case-tests/long-list.csv"), ids: "5"},
		{file: "null-field", opt: with(node("csv-edge-case-tests/null-field.csv"), func(o *Options) { o.TableHeader, o.LabelCol = HeaderYes, "col3" }), ids: "3 5"},
		{file: "null-field, header unsaid", opt: with(node("csv-edge-case-tests/null-field.csv"), func(o *Options) { o.TableHeader = HeaderAuto }), errors: "null-field.csv:1: can't tell whether this is a header"},
		{file: "mixed-empty-lines-multiple-columns", opt: edge("csv-edge-case-tests/mixed-empty-lines-multiple-columns.csv"), errors: "mixed-empty-lines-multiple-columns.csv:1: a carriage return inside a line"},
		{file: "mixed-empty-lines-single-column", opt: node("csv-edge-case-tests/mixed-empty-lines-single-column.csv"), errors: "mixed-empty-lines-single-column.csv:3: a carriage return inside a line"},
		{file: "multiline, mixed newlines", opt: edge("csv-multiline-quote-tests/mixed-newlines.csv"), ids: "2", edges: 1},
		{file: "list", opt: with(node("csv-dialect-detection/list.csv"), func(o *Options) { o.TableHeader = HeaderYes }), ids: "[5, 6, 7, 8]"},
		{file: "list, single quotes", opt: node("csv-dialect-detection/list_quote1.csv"), errors: "list_quote1.csv:2: expected 7 fields, got 13"},
		{file: "list, bars", opt: with(node("csv-dialect-detection/list_delim1.csv"), func(o *Options) { o.TableHeader, o.Delimiter = HeaderYes, "|" }), ids: "'[5, 6, 7, 8]'"},
		{file: "list, tabs", opt: with(node("csv-dialect-detection/list_delim2.csv"), func(o *Options) { o.TableHeader, o.Delimiter = HeaderYes, "tab" }), ids: "'[5,6,7,8]'"},
		{file: "list, tabs unsaid", opt: node("csv-dialect-detection/list_delim2.csv"), errors: "list_delim2.csv:2: expected 1 field, got 5"},
		{file: "single quotes", opt: with(edge("csv-dialect-detection/eStudyAt_quote1.csv"), func(o *Options) { o.Header, o.Delimiter = HeaderAuto, ";" }), ids: "0 1 2 8", edges: 3},
		{file: "escapes in single quotes", opt: with(edge("csv-dialect-detection/eStudyAt_escape3.csv"), func(o *Options) { o.Header, o.Delimiter = HeaderAuto, ";" }), ids: "0 1 2 8", edges: 3},
		{file: "extra field flag", opt: node("invalid-compressed-gz/extra_field_flag.csv.gz"), ids: "5"},
		{file: "embeddings", opt: node("embeddings/embeddings-8-1k.csv"), ids: "1000"},
		{file: "embeddings, tiny", opt: with(node("embeddings/embeddings-8-tiny.csv"), func(o *Options) { o.FeatureCols = "2" }), errors: "embeddings-8-tiny.csv:1: field \"2\": \"[0.142300,0.484900"},
	} {
		t.Run(c.file, func(t *testing.T) {
			if len(c.opt.Edges) == 0 { // an edge file without rows
				c.opt.Edges = []string{writeFile(t, "none.tsv", "")}
			}
			tables, _, err := Read(t.Context(), c.opt)
			if c.errors != "" {
				if e := (*Error)(nil); err == nil || !errors.As(err, &e) || !strings.Contains(err.Error(), c.errors) {
					t.Errorf("got %v, want %q", err, c.errors)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.ids != "" {
				got := idTexts(tables)
				if text := strings.Join(got, " "); text != c.ids && fmt.Sprint(len(got)) != c.ids {
					t.Errorf("ids %q, want %q", got, c.ids)
				}
			}
			if c.edges > 0 && len(edgesOf(tables).Src) != c.edges {
				t.Errorf("%d edges, want %d", len(edgesOf(tables).Src), c.edges)
			}
		})
	}
	for _, c := range []struct{ file, errors string }{
		{"npy-1d/one_dim_double.npy", ""}, {"npy-1d/one_dim_float.npy", ""}, {"npy-1d/one_dim_int16.npy", ""},
		{"npy-1d/one_dim_int32.npy", ""}, {"npy-1d/one_dim_int64.npy", ""}, {"npy-1d/one_dim_double.jpy", ""},
		{"npy-1d/fortran_order.npy", ""},
		{"npy-2d/two_dim_double.npy", ""}, {"npy-2d/two_dim_float.npy", ""}, {"npy-2d/two_dim_int16.npy", ""},
		{"npy-2d/two_dim_int32.npy", ""}, {"npy-2d/two_dim_int64.npy", ""}, {"npy-2d/id_int64.npy", ""},
		{"npy-2d/three_dim_int64.npy", "three_dim_int64.npy: has 3 dimensions"},
	} {
		tables, _, err := Read(t.Context(), Options{Edges: []string{writeFile(t, "e.csv", "src,dst\n0,1\n")}, Features: inDir(dir, c.file)[0]})
		if c.errors != "" && (err == nil || !strings.Contains(err.Error(), c.errors)) || c.errors == "" && err != nil {
			t.Errorf("%s: got %v, want %q", c.file, err, c.errors)
		} else if err == nil && len(tables.Features.Data) == 0 {
			t.Errorf("%s: no features", c.file)
		}
	}
}

// inDir joins files to a directory.
func inDir(dir string, files ...string) []string {
	var out []string
	for _, f := range files {
		out = append(out, filepath.Join(dir, filepath.FromSlash(f)))
	}
	return out
}
