package ingest

import (
	"bytes"
	"path/filepath"
	"strings"
)

// foreignMagic are the first bytes of files that are no text and that no reader takes. Read as text some of them give a
// small graph of nonsense. Each holds a byte that no id would begin with: PAR1, say, is also a gene.
var foreignMagic = []struct{ magic, what, hint string }{
	{"PK\x03\x04", "a zip archive", "unpack it"},
	{"\xfd7zXZ\x00", "compressed by xz", "unpack it, or compress by gzip or zstd"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it"},
	{"\x93NUMPY", "a .npy array", "only features are read from .npy"},
	{"Obj\x01", "an Avro file", "convert it to Parquet or CSV"},
	{"\x89HDF\r\n\x1a\n", "an HDF5 file", "convert it to Parquet or CSV"},
	{"SQLite format 3\x00", "a SQLite database", "export its tables as CSV"},
	{"\xe2\x9b\xbe gt", "a binary graph-tool graph", "write it as GraphML"},
	{"\x80\x02", "a Python pickle", "write it as CSV"},
	{"\x80\x03", "a Python pickle", "write it as CSV"},
	{"\x80\x04", "a Python pickle", "write it as CSV"},
	{"\x80\x05", "a Python pickle", "write it as CSV"},
}

const (
	tarMagic   = "ustar"
	tarMagicAt = 257 // POSIX.1-1988, the header block of a tar archive
	nameHint   = "a table of that name is read with --format csv, tsv or snap"
)

// foreign returns an error for a text file that starts like a format that isn't read, or is named like one. With
// named false the name tells nothing.
func foreign(in *input, named bool) error {
	what, hint := foreignKind(in.carry)
	if what == "" && named {
		switch strings.ToLower(filepath.Ext(bareName(in.name))) {
		case ".graph", ".metis":
			what, hint = "named like a METIS file", nameHint
		case ".gexf", ".gml", ".dot", ".net", ".xlsx", ".pickle", ".pkl", ".pt", ".orc", ".avro":
			what, hint = "named like a format that isn't read", nameHint
		}
	}
	if what == "" {
		return nil
	}
	return &Error{File: in.name, Msg: "is " + what + ", which isn't read here", Hint: hint}
}

func foreignKind(head []byte) (what, hint string) {
	for _, f := range foreignMagic {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f.what, f.hint
		}
	}
	if len(head) >= 4 && (head[0] == 0) != (head[1] == 0) && (head[0] == 0) == (head[2] == 0) && (head[1] == 0) == (head[3] == 0) {
		return "UTF-16 text", "convert it to UTF-8"
	}
	if bytes.HasPrefix(head, []byte("nkbg00")) && bytes.IndexByte(head, 0) >= 0 {
		return "a binary NetworKit graph", "write it as an edge list"
	}
	if len(head) > 6 && bytes.HasPrefix(head, []byte("DGS00")) && (head[6] == '\n' || head[6] == '\r') {
		return "a DGS file", "write it as an edge list"
	}
	if len(head) > 10 && bytes.HasPrefix(head, []byte("BZh")) && string(head[4:10]) == "1AY&SY" {
		return "compressed by bzip2", "unpack it, or compress by gzip or zstd"
	}
	if len(head) > 3 && string(head[:3]) == "ORC" && head[3] < ' ' && head[3] != '\t' && head[3] != '\r' && head[3] != '\n' {
		return "an ORC file", "convert it to Parquet or CSV"
	}
	if len(head) > tarMagicAt+len(tarMagic) && string(head[tarMagicAt:][:len(tarMagic)]) == tarMagic && bytes.IndexByte(head[:tarMagicAt], 0) >= 0 {
		return "a tar archive", "unpack it"
	}
	start := bytes.ToLower(bytes.TrimSpace(head[:min(len(head), 4096)]))
	switch {
	case bytes.HasPrefix(start, []byte("<!doctype html")), bytes.HasPrefix(start, []byte("<html")):
		return "a web page", "a download that failed?"
	case bytes.HasPrefix(start, []byte("<")) && bytes.Contains(start, []byte("<gexf")):
		return "a GEXF file", "write it as GraphML"
	case bytes.HasPrefix(start, []byte("graph")) && bytes.HasPrefix(bytes.TrimSpace(start[len("graph"):]), []byte("[")):
		return "a GML file", "write it as GraphML"
	}
	return "", ""
}
