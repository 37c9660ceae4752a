package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files of formats that aren't read say so, whatever they would look like as text.
func TestForeignFiles(t *testing.T) {
	tar := "e.csv" + strings.Repeat("\x00", tarMagicAt-5) + "ustar\x0000" + strings.Repeat("\x00", 300)
	for _, c := range []struct{ name, text, want string }{
		{"e.csv", "PK\x03\x04\x14\x00", "is a zip archive, which isn't read here (unpack it)"},
		{"e.txt", "BZh91AY&SY\x12", "compressed by bzip2"},
		{"e.csv", "\xfd7zXZ\x00\x00", "compressed by xz"},
		{"e.csv", "7z\xbc\xaf\x27\x1c\x00", "a 7z archive"},
		{"e.tsv", tar, "a tar archive"},
		{"e.csv", "\x93NUMPY\x01\x00", "a .npy array"},
		{"e.list", "Obj\x01\x04", "an Avro file"},
		{"e", "ORC\x11\x00\x00", "an ORC file"},
		{"e", "\x89HDF\r\n\x1a\n", "an HDF5 file"},
		{"e", "SQLite format 3\x00", "a SQLite database"},
		{"e", "nkbg004\x00\x01 2\n", "a binary NetworKit graph"},
		{"e", "\xe2\x9b\xbe gt\x01", "graph-tool"},
		{"e", "\x80\x04\x95", "a Python pickle"},
		{"e", "DGS004\nnull 0 0\n", "a DGS file"},
		{"e.csv", "\n <!DOCTYPE html>\n<html>", "is a web page, which isn't read here (a download that failed?)"},
		{"e", "<?xml version=\"1.0\"?>\n<gexf>", "a GEXF file"},
		{"e", "graph\n[\n node [ id 0 ]\n]\n", "a GML file"},
		{"e.csv", "a\x00,\x00b\x00\n\x00", "is UTF-16 text, which isn't read here (convert it to UTF-8)"},
		{"e.csv", "\x00a\x00,\x00b\x00\n", "is UTF-16 text"},
		{"e.gml", "Creator x\n", "named like a format"},
		{"e.graph", "3 2\n2\n1 3\n2\n", "named like a METIS file"},
		{"E.METIS.gz", string(gzipped([]byte("3 2\n"))), "named like a METIS file"},
	} {
		wantError(t, Options{Edges: []string{writeFile(t, c.name, c.text)}}, c.name, 0, c.want)
	}
	wantError(t, Options{Edges: []string{writeFile(t, "e.csv", "src,dst\na,b\n")}, Nodes: writeFile(t, "n.csv", "PK\x03\x04")}, "n.csv", 0, "a zip archive")
	// Ids may begin like that, and a name may be overruled.
	for _, c := range []struct {
		name, text string
		opt        Options
	}{
		{"e.csv", "PAR1,ORC2\nBZh1,PK3\n", Options{}}, {"e.csv", "ORC,a\nb,c\n", Options{}}, {"e.txt", "nkbg004 b\nDGS004 c\n", Options{}}, {"e.txt", "graph edges\nweb page\n", Options{}},
		{"e.graph", "a b\nb c\n", Options{Format: FormatSNAP}}, {"e.gml", "a,b\nb,c\n", Options{Format: FormatCSV}},
	} {
		c.opt.Edges = []string{writeFile(t, c.name, c.text)}
		if tables, _ := mustRead(t, c.opt); len(edgesOf(tables).Src) != 2 {
			t.Errorf("%q: %d edges", c.text, len(edgesOf(tables).Src))
		}
	}
}

// Every file of the collection of formats that is left out is refused by its name or its first bytes.
func TestForeignNetworKit(t *testing.T) {
	dir := original(t, "formats-networkit", "original")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, f := range files {
		switch filepath.Ext(f.Name()) {
		case ".graph", ".gml", ".gexf", ".gt", ".dgs", ".nkbg002", ".nkbg003", ".nkbg004":
			wantError(t, Options{Edges: []string{filepath.Join(dir, f.Name())}}, f.Name(), 0, "which isn't read here")
			refused++
		}
	}
	if refused < 30 {
		t.Errorf("%d files", refused)
	}
}
