package ingest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFileNames(t *testing.T) {
	for _, c := range []struct{ paths, want []string }{
		{nil, []string{}},
		{[]string{"/a/x.csv", "b/y.csv", "-"}, []string{"x.csv", "y.csv", "stdin"}},
		{[]string{"/a/1/x", "/a/2/x", "/a/2/y"}, []string{"1/x", "2/x", "y"}},
		{[]string{"/a/1/x", "/b/1/x", "/b/2/x"}, []string{"a/1/x", "b/1/x", "b/2/x"}},
		{[]string{"x", "d/x", "/d/x"}, []string{"x", "d/x", "/d/x"}},
		{[]string{"x", "x"}, []string{"x", "x"}},
		{[]string{"./x", "x"}, []string{"x", "x"}}, // one file
		{[]string{"d//x", "e/../x"}, []string{"d/x", "x"}},
		{[]string{"/a/part0/chunk0", "/a/part1/chunk0", "/a/part1/chunk1"}, []string{"part0/chunk0", "part1/chunk0", "chunk1"}},
	} {
		if got := FileNames(c.paths); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.paths, got, c.want)
		}
	}
}

// Messages tell files of one base name apart, whatever reads them.
func TestErrorsNameFolders(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, bad := put("part0/chunk0", "1,2\n"), put("part1/chunk0", "2,3\n4\n")
	wantError(t, Options{Edges: []string{good, bad}}, "part1/chunk0", 2, "expected 2 fields, got 1")
	wantError(t, Options{Edges: []string{bad}}, "chunk0", 2)
	nodes := put("nodes/chunk0", "1\n2\n")
	outside := put("part2/chunk0", "2,3\n")
	wantError(t, Options{Edges: []string{good, outside}, Nodes: nodes}, "part2/chunk0", 1, `"3" is not an id in nodes/chunk0`)
	weighted := put("part3/chunk0", "src,dst,weight\n1,2,3\n")
	wantError(t, Options{Edges: []string{good, weighted}}, "part3/chunk0", 0, "part3/chunk0 has a weight column and part0/chunk0 has none")
	wantError(t, Options{Edges: []string{good}, Splits: "train=" + put("train/ids", "1\n") + ",test=" + put("test/ids", "9\n"), Nodes: nodes}, "test/ids", 1, "is not an id in nodes/chunk0")
	wantError(t, Options{Edges: []string{good}, HoldoutEdges: "valid=" + put("valid/chunk0", "1,2\n") + ",test=" + put("test/chunk0", "2,1\n")}, "test/chunk0", 1, "held out for valid too, in valid/chunk0 line 1")
	wantError(t, Options{Edges: []string{put("graph/x.npy", "1,2\n")}, Features: put("features/x.npy", "\x93NUMPY")}, "features/x.npy", 0, "is not a .npy array")
	wantError(t, Options{Edges: []string{put("graph/x.npz", "1,2\n")}, Features: put("features/x.npz", "PK")}, "features/x.npz", 0, "is not a readable .npz file")
	_, report := mustRead(t, Options{Edges: []string{good, outside}})
	if len(report.Files) != 2 || report.Files[0].Name != "part0/chunk0" || report.Files[1].Name != "part2/chunk0" {
		t.Errorf("files %+v", report.Files)
	}
}
