package e2e

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Real files of every format through the command line, with the counts of their SOURCE.txt.

// readCase is a run of precompute snapshot. Flags that begin with @ are paths below the data set.
type readCase struct {
	name  string
	flags []string
	want  map[string]any // of inspect --json
	// says is the error that is wanted in place of a snapshot: bad input.
	says []string
}

// runReads builds each case on a data set.
func runReads(t *testing.T, set string, cases []readCase) {
	t.Helper()
	data := dataDir(t, set)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "snap")
			args := []string{"snapshot", "--hops", "1", "--out", out}
			for _, f := range c.flags {
				if path, ok := strings.CutPrefix(f, "@"); ok {
					f = filepath.Join(data, filepath.FromSlash(path))
				}
				args = append(args, f)
			}
			if c.says != nil {
				refused(t, 3, c.says, "precompute", args...)
				if _, err := os.Stat(out); err == nil {
					t.Error("a snapshot was written")
				}
				return
			}
			ok(t, "precompute", args...)
			got := object(t, "precompute", "inspect", out)
			for key, want := range c.want {
				if got[key] != want {
					t.Errorf("%s is %v, want %v", key, got[key], want)
				}
			}
		})
	}
}

// counts are the ones that most cases name.
func counts(nodes, lines, edges float64) map[string]any {
	return map[string]any{"num_nodes": nodes, "num_lines": lines, "num_edges": edges}
}

// and adds to a map.
func and(m map[string]any, key string, want any) map[string]any {
	m[key] = want
	return m
}

func TestReadNetworKit(t *testing.T) {
	file := func(name string) string { return "@original/" + name }
	negative := func(name, place string) readCase {
		return readCase{name: name, flags: []string{"--edges", file(name)}, says: []string{place, "is negative", "--weight-col none"}}
	}
	foreign := func(name, what string) readCase {
		return readCase{name: name, flags: []string{"--edges", file(name)}, says: []string{name, what, "isn't read"}}
	}
	runReads(t, "formats-networkit", []readCase{
		{name: "SNAP, CRLF", flags: []string{"--edges", file("wiki-Vote.txt"), "--direction", "directed"}, want: counts(7115, 103689, 103689)},
		{name: "SNAP, undirected", flags: []string{"--edges", file("wiki-Vote.txt")}, want: counts(7115, 103689, 100762)},
		{name: "comments", flags: []string{"--edges", file("comments.edgelist")}, want: counts(10, 20, 10)},
		{name: "tabs", flags: []string{"--edges", file("example.edgelist")}, want: counts(10, 20, 10)},
		{name: "blanks", flags: []string{"--edges", file("spaceseparated.edgelist")}, want: counts(10, 20, 10)},
		{name: "weights", flags: []string{"--edges", file("spaceseparated_weighted.edgelist"), "--weight-col", "3"}, want: and(counts(3, 3, 3), "weighted", true)},
		{name: "letters", flags: []string{"--edges", file("alphabet.edgelist"), "--weight-col", "3"}, want: and(counts(5, 4, 4), "weighted", true)},
		{name: "a comment that is a banner", flags: []string{"--edges", file("hamming6-4.edgelist")}, want: counts(64, 704, 704)},
		{name: "KONECT", flags: []string{"--edges", file("foodweb-baydry.konect"), "--weight-col", "3", "--direction", "directed"}, want: and(counts(128, 2137, 2137), "weighted", true)},
		{name: "benchmark with its communities", flags: []string{"--edges", file("network.dat"), "--labels", file("community.dat")}, want: and(counts(10, 20, 10), "num_classes", 3.0)},
		{name: "mtx, pattern symmetric", flags: []string{"--edges", file("chesapeake.mtx")}, want: counts(39, 170, 170)},
		{name: "mtx, pattern general", flags: []string{"--edges", file("GD01_b.mtx"), "--direction", "directed"}, want: and(counts(18, 37, 37), "self_loops", 2.0)},
		{name: "mtx, integer general", flags: []string{"--edges", file("Ragusa16.mtx"), "--direction", "directed"}, want: and(counts(24, 81, 81), "weighted", true)},
		negative("Hamrle1.mtx", "Hamrle1.mtx:9"), negative("LFAT5.mtx", "LFAT5.mtx:4"), negative("tiny_05.matrixmarket", "tiny_05.matrixmarket:9"),
		foreign("karate.graph", "METIS"), foreign("jazz2_directed.gml", "GML"), foreign("staticTest.gexf", "GEXF"), foreign("power.gt", "graph-tool"),
		foreign("example2.dgs", "DGS"), foreign("foodweb-baydry.nkbg003", "NetworKit"),
	})
}

func TestReadSNAPCSV(t *testing.T) {
	tables := func(name string, more ...string) []string {
		return append([]string{"--edges", "@original/" + name + "/edges.csv", "--nodes", "@original/" + name + "/nodes.csv"}, more...)
	}
	runReads(t, "snap-csv", []readCase{
		{name: "bitcoin-otc", flags: tables("bitcoin-otc", "--direction", "directed"), want: counts(5881, 35592, 35592)},
		{name: "bitcoin-otc, ratings", flags: tables("bitcoin-otc", "--weight-col", "3"), says: []string{"edges.csv:", "is negative"}},
		{name: "email-Eu-core", flags: tables("email-Eu-core", "--direction", "directed"), want: and(counts(1005, 25571, 25571), "self_loops", 642.0)},
		{name: "gnutella", flags: tables("gnutella", "--direction", "directed"), want: counts(10876, 39994, 39994)},
		{name: "grqc", flags: tables("grqc"), want: and(counts(5242, 28980, 14484+12), "self_loops", 12.0)},
		{name: "lastFM", flags: tables("lastFM"), want: counts(7624, 55612, 27806)},
		{name: "wiki-Vote", flags: tables("wiki-Vote", "--direction", "directed"), want: counts(7116, 103689, 103689)}, // an id is damaged at the source
	})
}

func TestReadAirRoutes(t *testing.T) {
	routes := []string{"--edges", "@original/air-routes-latest-edges.csv", "--nodes", "@original/air-routes-latest-nodes.csv", "--direction", "directed"}
	runReads(t, "air-routes", []readCase{
		{name: "CSV", flags: routes, want: and(and(counts(3749, 57645, 57645), "num_rels", 2.0), "self_loops", 0.0)},
		{name: "CSV, distances", flags: append([]string{"--weight-col", "dist"}, routes...), says: []string{"air-routes-latest-edges.csv:", `"dist"`}}, // contains has none
		{name: "GraphML", flags: []string{"--edges", "@original/air-routes-small-latest.graphml", "--direction", "directed"}, want: counts(47, 1390, 1390)},
		{name: "GraphML, a label", flags: []string{"--edges", "@original/air-routes-small-latest.graphml", "--label-col", "region"}, want: map[string]any{"num_nodes": 47.0, "task": "multiclass"}},
		{name: "GraphML, no value", flags: []string{"--edges", "@original/air-routes-small-latest.graphml", "--feature-cols", "lat,lon"}, says: []string{"air-routes-small-latest.graphml:103", `"lat"`, "empty"}},
		{name: "GraphML, results", flags: []string{"--edges", "@original/epl-2013-2014.graphml", "--direction", "directed"}, want: map[string]any{"num_nodes": 33.0, "num_lines": 423.0}},
		{name: "a misspelled id", flags: []string{"--edges", "@original/tree-with-500-nodes-edges.csv", "--nodes", "@original/tree-with-500-nodes-nodes.csv"},
			says: []string{`tree-with-500-nodes-edges.csv:500: field`, `"nod-900" is not an id in tree-with-500-nodes-nodes.csv`}},
	})
}

// chunks lists GraphAr's chunks below a folder of the set, as one use of a flag.
func chunks(t *testing.T, parts ...string) string {
	t.Helper()
	root := filepath.Join(append([]string{dataDir(t, "graphar-parquet"), "original"}, parts...)...)
	var files []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "chunk") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(files, ",")
}

func TestReadGraphAr(t *testing.T) {
	const knows, created = "person_knows_person", "person_created_software"
	names := []string{"--src-col", "_graphArSrcIndex", "--dst-col", "_graphArDstIndex"}
	withNodes := append([]string{"--id-col", "_graphArVertexIndex", "--direction", "directed"}, names...)
	ldbc := func(form, order, group string, more ...string) []string {
		return append(append([]string{"--edges", chunks(t, "ldbc_sample", form, "edge", knows, order, "adj_list"), "--nodes", chunks(t, "ldbc_sample", form, "vertex", "person", group)}, more...), withNodes...)
	}
	const modern = "@original/modern_graph/original_dataset/"
	runReads(t, "graphar-parquet", []readCase{
		{name: "Parquet, by source", flags: ldbc("parquet", "ordered_by_source", "id"), want: counts(903, 6626, 6626)},
		{name: "Parquet, by target", flags: ldbc("parquet", "ordered_by_dest", "id"), want: counts(903, 6626, 6626)},
		{name: "Parquet, a list of features", flags: ldbc("parquet", "unordered_by_source", "feature", "--feature-cols", "feature"), want: and(counts(903, 6626, 6626), "num_features", 3.0)},
		{name: "CSV in chunks, a label", flags: ldbc("csv", "ordered_by_source", "firstName_lastName_gender", "--label-col", "gender"), want: and(counts(903, 6626, 6626), "num_classes", 2.0)},
		{name: "the table of the chunks", flags: []string{"--edges", "@original/ldbc_sample/person_knows_person_0_0.csv", "--nodes", "@original/ldbc_sample/person_0_0.csv", "--delimiter", "|", "--direction", "directed"}, want: counts(903, 6626, 6626)},
		{name: "ORC", flags: []string{"--edges", strings.Split(chunks(t, "ldbc_sample", "orc", "edge", knows, "ordered_by_source", "adj_list"), ",")[0]}, says: []string{"chunk0: is an ORC file"}},
		{name: "modern graph, tables", flags: []string{"--edges", modern + "knows.csv", "--edges", modern + "created.csv", "--nodes", modern + "person.csv", "--nodes", modern + "software.csv",
			"--delimiter", "|", "--header", "yes", "--src-col", "src_id", "--dst-col", "dst_id", "--label-col", "lang"}, want: and(and(counts(6, 6, 6), "weighted", true), "unlabelled", 4.0)},
		{name: "modern graph, knows", flags: append([]string{"--edges", chunks(t, "modern_graph", "edge", knows, "ordered_by_source", "adj_list"), "--nodes", chunks(t, "modern_graph", "vertex", "person", "name_age"), "--label-col", "name"}, withNodes...),
			want: and(counts(4, 2, 2), "num_classes", 4.0)},
		{name: "modern graph, created", flags: append([]string{"--edges", chunks(t, "modern_graph", "edge", created, "ordered_by_source", "adj_list")}, names...), want: map[string]any{"num_lines": 4.0}},
		{name: "bars as commas", flags: []string{"--edges", modern + "knows.csv"}, says: []string{"knows.csv:1", "--delimiter"}},
	})
}

func TestReadMUSAE(t *testing.T) {
	runReads(t, "musae-chameleon", []readCase{{name: "chameleon", flags: []string{"--dataset", "@original", "--task", "regression"},
		want: and(and(counts(2277, 36101, 31371+50), "num_features", 3132.0), "self_loops", 50.0)}})
	runReads(t, "musae-twitch-engb", []readCase{{name: "twitch", flags: []string{"--dataset", "@original"}, want: and(and(counts(7126, 35324, 35324), "num_features", 3170.0), "num_classes", 2.0)}})
}

func TestReadLINQS(t *testing.T) {
	set := func(name string, nodes, links, loops float64) readCase {
		return readCase{name: name, flags: []string{"--dataset", "@original/WebKB/" + name}, want: map[string]any{"num_nodes": nodes, "num_lines": links, "self_loops": loops, "num_features": 1703.0, "num_classes": 5.0}}
	}
	runReads(t, "webkb-linqs", []readCase{set("cornell", 195, 304, 3), set("texas", 187, 328, 18), set("washington", 230, 446, 51), set("wisconsin", 265, 530, 20)})
}

func TestReadArrays(t *testing.T) {
	counted := func(nodes, edges, features, classes float64) map[string]any {
		return map[string]any{"num_nodes": nodes, "num_edges": edges, "num_features": features, "num_classes": classes}
	}
	runReads(t, "texas", []readCase{{name: "texas", flags: []string{"--dataset", "@original/texas.npz"}, want: counted(183, 279, 1703, 5)}})
	runReads(t, "minesweeper", []readCase{{name: "minesweeper", flags: []string{"--dataset", "@original/minesweeper.npz"}, want: counted(10000, 39402, 7, 2)}})
	runReads(t, "wisconsin", []readCase{
		{name: "wisconsin", flags: []string{"--dataset", "@original/wisconsin.npz"}, want: counted(251, 450, 1703, 5)},
		{name: "wisconsin, geom-gcn", flags: []string{"--dataset", "@original-geom-gcn-text/wisconsin"}, want: counted(251, 450+16, 1703, 5)}, // its loops too
	})
	for set, file := range map[string]string{"amazon-photo": "amazon_photo.npz", "polblogs": "polblogs.npz"} {
		runReads(t, set, []readCase{{name: set, flags: []string{"--dataset", "@original/" + file}, says: []string{file, "pickled", "can run code"}}})
	}
}

// The archive itself is refused with a word; what is in it is read.
func TestReadEmail(t *testing.T) {
	archive := filepath.Join(dataDir(t, "email-eu-core"), "original", "email_Eu_core.zip")
	refused(t, 3, []string{"email_Eu_core.zip: is a zip archive", "unpack it"}, "precompute", "snapshot", "--edges", archive, "--out", filepath.Join(t.TempDir(), "snap"))
	dir := t.TempDir()
	z, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, filepath.Base(f.Name)), string(text))
	}
	s := build(t, "--edges", filepath.Join(dir, "email-Eu-core.txt"), "--labels", filepath.Join(dir, "email-Eu-core-department-labels.txt"))
	wantCounts(t, s, 1005, 16064+642)
	if len(s.ClassNames) != 42 {
		t.Errorf("%d departments, want 42", len(s.ClassNames))
	}
}

// The import corpus: what is valid loads, what isn't is refused with the place and the fault. An exhaustive list is with the readers.
func TestReadImportCorpus(t *testing.T) {
	none := write(t, filepath.Join(t.TempDir(), "none.tsv"), "")
	edge := func(file string, more ...string) []string {
		return append([]string{"--edges", "@original/" + file, "--header", "no"}, more...)
	}
	node := func(file string, more ...string) []string {
		return append([]string{"--edges", none, "--nodes", "@original/" + file, "--table-header", "no", "--id-col", "1"}, more...)
	}
	nodes := func(n float64) map[string]any { return map[string]any{"num_nodes": n, "num_edges": 0.0} }
	runReads(t, "import-edge-cases", []readCase{
		{name: "DOS line ends", flags: node("copy-dos-style-newline/vPerson.csv"), want: nodes(5)},
		{name: "BOM", flags: node("csv-edge-case-tests/bom-and-data.csv"), want: nodes(2)},
		{name: "no line end", flags: edge("csv-edge-case-tests/carriage-return-then-eof.csv"), want: counts(4, 2, 2)},
		{name: "empty first line", flags: edge("csv-edge-case-tests/empty-first-line.csv"), want: counts(4, 2, 2)},
		{name: "quoted", flags: edge("csv-edge-case-tests/quoted-values.csv"), want: counts(2, 1, 1)},
		{name: "tabs", flags: edge("csv-edge-case-tests/tab-as-delim.csv", "--delimiter", "tab"), want: counts(4, 2, 2)},
		{name: "semicolons", flags: []string{"--edges", "@original/csv-dialect-detection/eStudyAt_delim2.csv", "--delimiter", ";"}, want: counts(4, 3, 3)},
		{name: "lines in quotes", flags: node("csv-multiline-quote-tests/basic.csv"), want: nodes(1)},
		{name: "relations", flags: []string{"--edges", "@original/rel-group/edge.csv", "--header", "no", "--nodes", "@original/rel-group/node.csv"}, want: map[string]any{"num_nodes": 8.0, "num_lines": 14.0}},
		{name: "two edge files", flags: edge("tinysnb/eKnows.csv", "--edges", "@original/tinysnb/eKnows_2.csv"), want: map[string]any{"num_nodes": 7.0, "num_lines": 14.0}},
		{name: "persons in gzip", flags: []string{"--edges", none, "--nodes", "@original/tinysnb/vPerson.csv.gz", "--label-col", "Gender"}, want: nodes(5)},
		{name: "typed headers", flags: []string{"--edges", none, "--nodes", "@original/typed-headers/person.csv", "--id-col", "name"}, want: nodes(2)},
		{name: "extra field of gzip", flags: node("invalid-compressed-gz/extra_field_flag.csv.gz"), want: nodes(1)},
		{name: "npy", flags: []string{"--edges", none, "--features", "@original/npy-2d/two_dim_int16.npy"}, want: map[string]any{"num_features": 3.0}},

		{name: "empty", flags: edge("csv-edge-case-tests/empty.csv"), says: []string{"empty.csv: there are no nodes"}},
		{name: "empty id", flags: edge("csv-edge-case-tests/delimiter-then-eof.csv"), says: []string{"delimiter-then-eof.csv:1", `"dst"`, "empty id"}},
		{name: "mixed line ends", flags: node("csv-edge-case-tests/mixed-newlines.csv"), says: []string{"mixed-newlines.csv:1", "carriage return"}},
		{name: "escaped delimiter", flags: edge("csv-edge-case-tests/escapes-out-of-quote.csv"), says: []string{"escapes-out-of-quote.csv:2", "expected 2 fields, got 3"}},
		{name: "backslash quotes", flags: node("tinysnb/vOrganisation.csv"), says: []string{"vOrganisation.csv:2", "closing quote"}},
		{name: "no gzip", flags: edge("invalid-compressed-gz/test_invalid_magic.csv.gz"), says: []string{"test_invalid_magic.csv.gz", "not gzip"}},
		{name: "cut gzip", flags: edge("invalid-compressed-gz/truncated_header.csv.gz"), says: []string{"truncated_header.csv.gz", "unexpected end"}},
		{name: "gzip of another method", flags: edge("invalid-compressed-gz/invalid_compression_method.csv.gz"), says: []string{"invalid_compression_method.csv.gz", "can't be decompressed"}},
		{name: "gzip of unknown flags", flags: edge("invalid-compressed-gz/unsupported_flags.csv.gz"), says: []string{"unsupported_flags.csv.gz"}},
		{name: "Parquet in gzip", flags: edge("invalid-compressed-gz/user.parquet.gz"), says: []string{"user.parquet.gz"}},
		{name: "an id of no table", flags: []string{"--edges", "@original/primary-key-tests/eFollows.csv", "--header", "no", "--nodes", "@original/primary-key-tests/vPerson.csv", "--table-header", "no"},
			says: []string{"eFollows.csv:1", `"10020" is not an id in vPerson.csv`}},
		{name: "three dimensions", flags: []string{"--edges", none, "--features", "@original/npy-2d/three_dim_int64.npy"}, says: []string{"three_dim_int64.npy", "3 dimensions"}},
	})
}

// A folder of OGB's, made here, as the data sets are too large to lie anywhere.
func TestReadOGB(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"raw/edge.csv": "0,1\n1,2\n2,3\n3,0\n", "raw/num-node-list.csv": "5\n", "raw/num-edge-list.csv": "4\n", "raw/node-label.csv": "0\n1\n0\n1\n2\n",
		"raw/node-feat.csv": "0.5,1\n1,2\n2,3\n3,4\n4,5\n", "split/time/train.csv": "0\n1\n", "split/time/valid.csv": "2\n", "split/time/test.csv": "3\n4\n",
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)+".gz"), gzipped(t, text))
	}
	s := build(t, "--dataset", dir)
	wantCounts(t, s, 5, 4)
	if s.NumFeatures() != 2 || len(s.ClassNames) != 3 || len(s.Manifest.Splits) != 1 {
		t.Errorf("%d features, classes %q, splits %q", s.NumFeatures(), s.ClassNames, s.Manifest.Splits)
	}
	write(t, filepath.Join(dir, "raw", "num-edge-list.csv.gz"), gzipped(t, "7\n"))
	refused(t, 3, []string{"edge.csv.gz", "num-edge-list.csv.gz says 7 rows, found 4"}, "precompute", "snapshot", "--dataset", dir, "--out", filepath.Join(t.TempDir(), "snap"))
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
