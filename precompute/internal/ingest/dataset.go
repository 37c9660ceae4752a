package ingest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A layout is a way in which one path holds a whole data set.
type layout struct {
	name string
	// files returns the files of the data set at path, the first being the one that tells the layout; nil if path isn't
	// of this layout.
	files func(path string) []string
	// open sets the parts of opt that are empty.
	open func(ctx context.Context, opt *Options, files []string) error
}

// layouts are tried in order.
var layouts []layout

func init() { // the layouts' functions call openTable
	layouts = []layout{
		{"Planetoid", planetoidFiles, openPlanetoid},
		{"LINQS", linqsFiles, openLINQSSet},
		{"OGB", ogbFiles, openOGB},
		{layoutOpenKE, openKEFiles, openOpenKESet},
		{"geom-gcn", geomGCNFiles, openGeomGCN},
		{"npz", npzSetFiles, openNPZSet},
		{"MUSAE", musaeFiles, openMUSAE},
	}
}

// findLayout tells the layout of a data set and its files.
func findLayout(path string) (*layout, []string, error) {
	for i := range layouts {
		if files := layouts[i].files(path); files != nil {
			return &layouts[i], files, nil
		}
	}
	e := &Error{File: filepath.Base(path), Msg: "is no data set of a known layout"}
	if _, err := os.Stat(path); err != nil {
		e.Msg = "is neither a file nor a directory, nor the start of file names of a known layout"
	}
	names := make([]string, len(layouts))
	for i, l := range layouts {
		names[i] = l.name
	}
	e.Hint = "known are " + strings.Join(names, ", ") + "; of several sets in one folder name the file, or what its names begin with, as DIR/cora"
	return nil, nil, e
}

// DatasetFiles returns the files that Options.Dataset stands for, in a fixed order.
func DatasetFiles(path string) ([]string, error) {
	_, files, err := findLayout(path)
	if err != nil {
		return nil, err
	}
	files = slices.Clone(files)
	slices.Sort(files)
	return slices.Compact(files), nil
}

// openDataset fills in the parts of the data set.
func (r *reader) openDataset(ctx context.Context) error {
	l, files, err := findLayout(r.opt.Dataset)
	if err != nil {
		return err
	}
	return l.open(ctx, &r.opt, files)
}

// globFiles returns the files that match a pattern, sorted.
func globFiles(pattern string) []string {
	files, _ := filepath.Glob(pattern)
	slices.Sort(files)
	return files
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// addSource makes path stand for a table of n rows in memory; put puts row i into the scanner.
func addSource(opt *Options, path, format string, names []string, n int, put func(i int, s *scanner), set func(*table)) {
	opt.sources[path] = func(_ context.Context, opt *Options, role string) (*table, error) {
		t := newSourceTable(opt, path, role, format, names, true, &memorySource{n: n, put: put})
		if set != nil {
			set(t)
		}
		return t, nil
	}
}

// memorySource gives the rows of a table in memory.
type memorySource struct {
	n, at int
	put   func(i int, s *scanner)
}

func (m *memorySource) next(_ context.Context, t *table) error {
	if m.at == m.n {
		return io.EOF
	}
	t.scan.startRow(int64(m.at) + 1)
	m.put(m.at, &t.scan)
	m.at++
	return nil
}

func (m *memorySource) close() {}

func (s *scanner) putInt(v int64) { s.putString(fmt.Sprint(v)) }
