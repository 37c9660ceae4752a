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
		{file: "tinysnb knows", opt: edge("tinysnb/eKnows.csv"), errors: ""},
		{file: "tinysnb meets", opt: edge("tinysnb/eMeets.csv"), ids: "", errors: ""},
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
		{"npy-2d/two_dim_int32.npy", ""}, {"npy-2d/two_dim_int64.npy", ""},
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
