package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// edgeRow is a row of the model that rendered text is compared with.
type edgeRow struct {
	src, dst string
	weight   float32
	line     int64
}

// rendered is random edges written in a dialect in one of the many ways it allows.
type rendered struct {
	name, text string
	rows       []edgeRow
	weighted   bool
	blank      int64
}

func render(rng *rand.Rand) rendered {
	var out rendered
	var text strings.Builder
	line := int64(1)
	dialect := rng.IntN(3)
	out.name = []string{"e.csv", "e.tsv", "e.txt"}[dialect]
	eol := []string{"\n", "\r\n"}[rng.IntN(2)]
	out.weighted = rng.IntN(2) == 0
	extra := rng.IntN(4) == 0
	ids := rng.IntN(4)  // 0, 1: integers; 2: a few other; 3: texts
	ugly := rng.IntN(2) // use the freedom that the dialect gives
	end := func() {
		text.WriteString(eol)
		line++
	}
	id := func(i int) string {
		k := rng.IntN(300)
		switch {
		case ids == 3 || ids == 2 && i > 40 && rng.IntN(20) == 0:
			words := []string{"n%d", "0%d", "-0%d", "%d.0", "é%d", "#%d", "a\x00%d", "+%d"}
			if dialect < 2 {
				words = append(words, "two words %d")
			}
			if dialect == 1 {
				words = append(words, "\"%d", "x,%d", " %d ")
			}
			if dialect == 0 && ugly == 1 {
				words = append(words, "a,%d", "q\"%d\"", "l\nm%d", " %d ", "r\r%d", "\r\n%d", "")
			}
			w := words[rng.IntN(len(words))]
			if w == "" || dialect == 2 && w == "#%d" {
				w = "z%d"
			}
			return fmt.Sprintf(w, k)
		case rng.IntN(10) == 0:
			return fmt.Sprint(int64(k-50) * 1234567890123)
		}
		return fmt.Sprint(k)
	}
	field := func(s string) string {
		switch dialect {
		case 0:
			quoted := strings.ContainsAny(s, "\",\n\r") || strings.TrimSpace(s) != s
			if ugly == 1 && rng.IntN(10) == 0 || quoted {
				s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
			}
			if ugly == 1 {
				s = strings.Repeat(" ", max(0, rng.IntN(6)-4)) + s + strings.Repeat("\t", max(0, rng.IntN(6)-4))
			}
		case 2:
			if ugly == 1 {
				s = strings.Repeat(" ", max(0, rng.IntN(6)-4)) + s
			}
		}
		return s
	}
	sep := []string{",", "\t", " "}[dialect]
	header := []string{"src", "dst"}
	if out.weighted {
		header = append(header, "weight")
	}
	if extra {
		header = append(header, "note")
	}
	text.WriteString(strings.Join(header, sep))
	end()
	for i := range rng.IntN(400) {
		switch {
		case rng.IntN(30) == 0:
			if dialect != 1 && ugly == 1 {
				text.WriteString("  ")
			}
			out.blank++
			end()
		case dialect == 2 && rng.IntN(30) == 0:
			text.WriteString("# a \"comment")
			end()
		}
		r := edgeRow{src: id(i), dst: id(i), weight: 1, line: line}
		fields := []string{field(r.src), field(r.dst)}
		if out.weighted {
			r.weight = float32(rng.IntN(100)) / 4
			fields = append(fields, field(fmt.Sprint(r.weight)))
		}
		if extra {
			fields = append(fields, field(strings.ReplaceAll(id(i), " ", "_")))
		}
		row := strings.Join(fields, sep)
		text.WriteString(row)
		line += int64(strings.Count(row, "\n"))
		end()
		out.rows = append(out.rows, r)
	}
	out.text = text.String()
	if rng.IntN(2) == 0 {
		out.text = strings.TrimSuffix(out.text, eol)
	}
	if rng.IntN(4) == 0 {
		out.text = "\ufeff" + out.text
	}
	return out
}

// Rendered text gives the rows it was made from, on the fast and the careful path, for any block size, thread
// count and compression; and a foreign id is found in its line.
func TestRenderedEdges(t *testing.T) {
	dir := t.TempDir()
	for range 300 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		r := render(rng)
		path := filepath.Join(dir, r.name)
		data := []byte(r.text)
		switch rng.IntN(3) {
		case 1:
			path += ".gz"
			data = gzipped(data)
		case 2:
			path += ".zst"
			enc, _ := zstd.NewWriter(nil)
			data = enc.EncodeAll(data, nil)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		opt := Options{Edges: []string{path}, noFast: rng.IntN(2) == 0, blockSize: []int{0, 1, 50, 1000}[rng.IntN(4)], Threads: 1 + rng.IntN(4)}
		if len(r.rows) == 0 {
			continue
		}
		tables, report, err := Read(t.Context(), opt)
		if err != nil {
			t.Fatalf("seed %d: %v\n%q", seed, err, r.text)
		}
		edges := edgesOf(tables)
		for i, want := range r.rows {
			src, dst := string(tables.IDs.At(edges.Src[i])), string(tables.IDs.At(edges.Dst[i]))
			if src != want.src || dst != want.dst || r.weighted && edges.Weight[i] != want.weight {
				t.Fatalf("seed %d: row %d: got %q, %q, want %+v", seed, i, src, dst, want)
			}
		}
		if len(edgesOf(tables).Src) != len(r.rows) || (edgesOf(tables).Weight != nil) != r.weighted || report.Files[0].BlankLines != r.blank || report.Files[0].Rows != int64(len(r.rows)) {
			t.Fatalf("seed %d: got %d rows, report %+v; want %d rows, %d blank", seed, len(edgesOf(tables).Src), report.Files[0], len(r.rows), r.blank)
		}
		// Without the id of one row in the node table, the first row that has it is refused.
		missing := r.rows[rng.IntN(len(r.rows))].src
		var nodes strings.Builder
		nodes.WriteString("id\n")
		for _, id := range idTexts(tables) {
			if id != missing {
				nodes.WriteString(`"` + strings.ReplaceAll(id, `"`, `""`) + "\"\n")
			}
		}
		opt.Nodes = filepath.Join(dir, "nodes.csv")
		if err := os.WriteFile(opt.Nodes, []byte(nodes.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		first := slices.IndexFunc(r.rows, func(e edgeRow) bool { return e.src == missing || e.dst == missing })
		_, _, err = Read(t.Context(), opt)
		e := (*Error)(nil)
		if !errors.As(err, &e) || e.Line != r.rows[first].line || e.Value != missing {
			t.Fatalf("seed %d: got %v, want line %d, value %q", seed, err, r.rows[first].line, missing)
		}
	}
}

func gzipped(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(data)
	w.Close()
	return out.Bytes()
}

func TestTextFaults(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		line             int64
		want             string
	}{
		{"lone CR", "e.csv", "src,dst\na,b\rc,d\n", 2, "a carriage return inside a line"},
		{"mac lines", "e.csv", "src,dst\ra,b\r", 1, "a carriage return inside a line"},
		{"lone CR beside quotes", "e.csv", "src,dst\n\"a\",b\rc\n", 2, "a carriage return inside a line"},
		{"bare quote", "e.csv", "src,dst\na,b\n6\" guns,b\n", 3, "a quote inside an unquoted field"},
		{"text after quote", "e.csv", "src,dst\n\"a\"x,b\n", 2, "text after a closing quote"},
		{"open quote", "e.csv", "src,dst\na,b\n\"c,d\ne,f\n", 3, "never closed"},
		{"UTF-16", "e.csv", "\xff\xfes\x00r\x00c\x00", 1, "UTF-16"},
		{"empty src", "e.csv", "src,dst\n,b\n", 2, "empty id"},
		{"empty dst", "e.tsv", "src\tdst\na\t\n", 2, "empty id"},
		{"missing field", "e.csv", "src,dst\na,b\nc\n", 3, "expected 2 fields, got 1"},
		{"more fields", "e.txt", "1 2\n3 4 5\n", 2, "expected 2 fields, got 3"},
		{"comma in snap", "e.txt", "1,2\n3,4\n", 1, "no column src: the first row has 1 field"},
		{"one known name", "e.csv", "source,friend\n1,2\n", 1, "can't tell whether this is a header"},
		{"words over integers", "e.csv", "person,friend\n1,2\n", 1, "can't tell whether this is a header"},
		{"twice src", "e.csv", "src,dst,src\na,b,c\n", 1, `column "src" appears twice`},
		{"long id", "e.csv", "src,dst\na,b\n" + strings.Repeat("x", maxID+1) + ",b\n", 3, "longer than 1 MiB"},
		{"weight behind an integer", "e.csv", "src,dst,weight\n1,2,3\n1,2,0x1\n", 3, `"0x1" is not a number`},
		{"negative weight", "e.csv", "src,dst,weight\n1,2,3\n1,2,-1\n", 3, `"-1" is negative`},
		{"no rows", "e.csv", "src,dst\n", 0, "there are no nodes"},
		{"nothing", "e.csv", "", 0, "there are no nodes"},
		{"blanks only", "e.txt", "\n  \n# x\n", 0, "there are no nodes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, Options{Edges: []string{writeFile(t, c.file, c.text)}}, c.file, c.line, c.want)
		})
	}
}

func TestTextAccepted(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		opt              Options
		ids              []string
	}{
		{"unknown name, tabs", "edges", "a\tb c\n", Options{}, []string{"a", "b c"}},
		{"unknown name, comment", "edges.dat", "% x\n1 2\n", Options{}, []string{"1", "2"}},
		{"unknown name, comma", "e.dat", "1,2\n", Options{}, []string{"1", "2"}},
		{"semicolons", "e.csv", "target;source\n\"a;b\";c\n", Options{Delimiter: ";"}, []string{"a;b", "c"}},
		{"tab delimiter", "e.dat", "\"a\tb\n", Options{Delimiter: "\t"}, []string{"\"a", "b"}},
		{"forced snap", "e.csv", "a,1 b,2\n", Options{Format: FormatSNAP}, []string{"a,1", "b,2"}},
		{"named columns", "e.csv", "x,to,y\n1,2,3\n", Options{SrcCol: "y", DstCol: "x"}, []string{"1", "3"}},
		{"numbered columns", "e.csv", "1,2,3\n", Options{SrcCol: "3", DstCol: "1"}, []string{"1", "3"}},
		{"upper case", "e.csv", "Source,TARGET,Weight\n1,2,3\n", Options{}, []string{"1", "2"}},
		{"CR at the end", "e.csv", "1,2\r\n3,4\r", Options{}, []string{"1", "2", "3", "4"}},
		{"invalid UTF-8", "e.csv", "\xff\xfd,b\n", Options{}, []string{"b", "\xff\xfd"}},
		{"quoted empty column", "e.csv", "src,dst,note\na,b,\"\"\n", Options{}, []string{"a", "b"}},
		{"integers as text", "e.csv", "9,10\n", Options{IDType: IDString}, []string{"10", "9"}},
		{"gzip without the name", "e.csv", string(gzipped([]byte("9,10\n"))), Options{}, []string{"9", "10"}},
		{"exactly eight digits", "e.csv", "12345678,12345678\n123456789,00000000\n", Options{}, []string{"00000000", "12345678", "123456789"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opt.Edges = []string{writeFile(t, c.file, c.text)}
			tables, _ := mustRead(t, c.opt)
			wantIDs(t, tables, c.ids...)
		})
	}
}

func TestSeveralFiles(t *testing.T) {
	a := writeFile(t, "a.csv", "src,dst\n1,2\n")
	b := writeFile(t, "b.txt", "# x\nx 1\n")
	tables, report := mustRead(t, Options{Edges: []string{a, b}})
	wantIDs(t, tables, "1", "2", "x")
	if len(report.Files) != 2 || report.NumEdgeRows != 2 || report.Files[1].Format != FormatSNAP {
		t.Errorf("report %+v", report)
	}
	w := writeFile(t, "w.csv", "src,dst,weight\n1,2,3\n")
	wantError(t, Options{Edges: []string{a, w}}, "w.csv", 0, "w.csv has a weight column and a.csv has none")
	bad := writeFile(t, "bad.csv", "1,2\n3\n")
	worse := writeFile(t, "worse.csv", "1\n")
	wantError(t, Options{Edges: []string{a, bad, worse}}, "bad.csv", 2, "expected 2 fields")
	wantError(t, Options{Edges: []string{filepath.Join(t.TempDir(), "absent.csv")}}, "absent.csv", 0, "can't be opened")
	dir := t.TempDir()
	wantError(t, Options{Edges: []string{dir}}, filepath.Base(dir), 0, "is not a regular file")
}

func TestDamagedZstd(t *testing.T) {
	enc, _ := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	data := enc.EncodeAll([]byte(strings.Repeat("src,dst\n", 1000)), nil)
	cut := writeFile(t, "e.csv.zst", string(data[:len(data)-5]))
	wantError(t, Options{Edges: []string{cut}}, "e.csv.zst", 0, "truncated zstd")
	data[len(data)-1] ^= 1
	wrong := writeFile(t, "e.csv.zst", string(data))
	wantError(t, Options{Edges: []string{wrong}}, "e.csv.zst", 0, "checksum")
	wantError(t, Options{Edges: []string{writeFile(t, "e.csv.zst", "1,2\n")}}, "e.csv.zst", 0, "empty or not zstd")
}

func TestCancel(t *testing.T) {
	path := writeFile(t, "e.csv", strings.Repeat("1,2\n", 100000))
	ctx, cancel := context.WithCancel(t.Context())
	opt := Options{Edges: []string{path}, blockSize: 1 << 12, Threads: 3, Progress: func(_ string, done, _ int64) {
		if done > 100000 {
			cancel()
		}
	}}
	if _, _, err := Read(ctx, opt); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestOptions(t *testing.T) {
	edges := []string{"e.csv"}
	for _, c := range []struct {
		opt  Options
		want string
	}{
		{Options{}, "no edge file"},
		{Options{Edges: edges, Format: "xls"}, `format is "xls", not one of auto, csv, tsv, snap`},
		{Options{Edges: edges, Header: "maybe"}, "header is"},
		{Options{Edges: edges, Delimiter: "::"}, "longer than one byte"},
		{Options{Edges: edges, Delimiter: " "}, "use the snap format"},
		{Options{Edges: edges, Task: "ranking"}, "task is"},
	} {
		_, _, err := Read(t.Context(), c.opt)
		if !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// What is read otherwise than it is probably meant is counted, on the fast path and the careful one.
func TestEdgeNotices(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		opt              Options
		want             string // one notice, "" for none
	}{
		{"no weight vanishes", "e.csv", "src,dst,weight\n1,2,0\n2,3,0.0\n3,4,1e-40\n4,5,0e9\n", Options{}, ""},
		{"weights vanish", "e.csv", "src,dst,weight\n1,2,1e-50\n2,3,1\n3,4,0.00000000000000000000000000000000000000000000000000001\n", Options{}, `2 weights of column "weight" over 0 but too small for float32: read as 0`},
		{"a weight of words vanishes", "e.tsv", "src\tdst\tw\na\tb\t1E-50\n", Options{WeightCol: "w"}, `1 weight of column "w" over 0`},
		{"with relations", "e.csv", "src,dst,kind,weight\na,b,r,1e-50\n", Options{RelCol: "kind"}, `1 weight of column "weight" over 0`},
		{"header again", "e.csv", "src,dst\na,b\nsrc,dst\nb,c\n", Options{}, `1 row repeats the header "src,dst": read as edge (were files put together?)`},
		{"headers again among integers", "e.csv", "from,to,weight\n1,2,1\nfrom,to,weight\n", Options{WeightCol: WeightNone}, `1 row repeats the header "from,to"`},
		{"twice, with relations", "e.csv", "src,dst,kind\na,b,r\nsrc,dst,kind\nsrc,dst,kind\n", Options{RelCol: "kind"}, `2 rows repeat the header "src,dst": read as edges`},
		{"a node of that name", "e.csv", "src,dst\na,dst\nsrc,a\n", Options{}, ""},
	} {
		for _, noFast := range []bool{false, true} {
			opt := c.opt
			opt.Edges, opt.noFast = []string{writeFile(t, c.file, c.text)}, noFast
			_, report := mustRead(t, opt)
			if got := strings.Join(report.Files[0].Notices, "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s, careful %v: notices %q, want %q", c.name, noFast, got, c.want)
			}
		}
	}
	wantError(t, Options{Edges: []string{writeFile(t, "e.csv", "src,dst,weight\n1,2,-1e-50\n")}}, "e.csv", 2, `"-1e-50" is negative`)
}

// A file given twice is told, whatever it is called.
func TestEdgeFileTwice(t *testing.T) {
	path := writeFile(t, "e.csv", "src,dst\n1,2\n")
	other, link := writeFile(t, "f.csv", "src,dst\n1,2\n"), filepath.Join(filepath.Dir(path), "link.csv")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{path, other}, ""},
		{[]string{path, path}, "e.csv is given twice: its edges are read twice, and their weights added"},
		{[]string{path, filepath.Join(filepath.Dir(path), ".", "e.csv")}, "e.csv is given twice"},
		{[]string{path, other, link}, "e.csv and link.csv are one file"},
	} {
		_, report := mustRead(t, Options{Edges: c.paths})
		if got := strings.Join(report.Warnings, "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v: warnings %q, want %q", c.paths, got, c.want)
		}
	}
}

// Bytes behind gzip data are told from a truncated file; members behind each other are one text.
func TestGzipTail(t *testing.T) {
	member := func(text string) string {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		w.Write([]byte(text))
		w.Close()
		return out.String()
	}
	one, two := member("src,dst\n1,2\n"), member("2,3\n")
	tables, _ := mustRead(t, Options{Edges: []string{writeFile(t, "e.csv.gz", one+two+member(""))}})
	if n := len(edgesOf(tables).Src); n != 2 {
		t.Errorf("%d edges of two members", n)
	}
	for tail, want := range map[string]string{"garbage": "other bytes behind the end", "\x00": "other bytes behind the end", strings.Repeat("x", 100): "other bytes behind the end", "\x1f": "truncated gzip", two[:9]: "truncated gzip", two[:len(two)-3]: "truncated gzip"} {
		wantError(t, Options{Edges: []string{writeFile(t, "e.csv.gz", one+tail)}}, "e.csv.gz", 0, want)
	}
	wantError(t, Options{Edges: []string{writeFile(t, "g.graphml", `<?xml version="1.0" encoding="ISO-8859-1"?><graphml/>`)}}, "g.graphml", 1, "another encoding than UTF-8", "iconv")
}
