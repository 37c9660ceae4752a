package ingest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/prelift/prelift/snapshot"
)

// ogbFiles finds a directory of a node-property data set as OGB lays it out (Hu et al., Open Graph Benchmark, 2020):
// raw/edge.csv.gz, num-node-list, num-edge-list, node-feat, node-label, and split/NAME/{train,valid,test}.csv.gz.
// The first two files are edge and num-node-list.
func ogbFiles(path string) []string {
	find := func(parts ...string) string {
		file := filepath.Join(append([]string{path}, parts...)...)
		for _, ext := range []string{".csv.gz", ".csv"} {
			if isFile(file + ext) {
				return file + ext
			}
		}
		return ""
	}
	edge, nodes := find("raw", "edge"), find("raw", "num-node-list")
	if edge == "" || nodes == "" {
		return nil
	}
	files := []string{edge, nodes}
	for _, part := range []string{"num-edge-list", "node-feat", "node-label"} {
		if f := find("raw", part); f != "" {
			files = append(files, f)
		}
	}
	if splits := globFiles(filepath.Join(path, "split", "*", "train.csv*")); len(splits) == 1 {
		for _, part := range []string{"train", "valid", "test"} {
			if f := find("split", filepath.Base(filepath.Dir(splits[0])), part); f != "" {
				files = append(files, f)
			}
		}
	}
	return files
}

// openOGB takes node i of num-node-list nodes as the id i; rows of node-feat and node-label are those of the nodes.
func openOGB(ctx context.Context, opt *Options, files []string) error {
	part := map[string]string{}
	for _, f := range files {
		name := bareName(f)
		part[strings.TrimSuffix(name, ".csv")] = f
	}
	n, err := readCount(ctx, opt, part["num-node-list"])
	if err != nil {
		return err
	}
	if len(opt.Edges) == 0 {
		opt.Edges, opt.Header = []string{part["edge"]}, HeaderNo
		if f := part["num-edge-list"]; f != "" {
			want, err := readCount(ctx, opt, f)
			if err != nil {
				return err
			}
			opt.wantRows[part["edge"]] = rowCount{want, opt.nameOf(f)}
		}
	}
	if opt.Nodes == "" && len(opt.NodeFiles) == 0 {
		if size := fileSize(part["edge"]); n > maxLoneNodes+64*size {
			return &Error{File: opt.nameOf(part["num-node-list"]), Msg: fmt.Sprintf("says %d nodes, but %s has only %d bytes", n, opt.nameOf(part["edge"]), size), Hint: "one of them is damaged"}
		}
		nodes := part["num-node-list"]
		opt.sources[nodes] = func(_ context.Context, opt *Options, role string) (*table, error) {
			t := newSourceTable(opt, nodes, role, "ogb", []string{"id"}, true, &countingSource{end: n})
			t.fixedID = true
			return t, nil
		}
		opt.Nodes = nodes
	}
	rows := func(option *string, file string) {
		if file == "" || *option != "" {
			return
		}
		*option = file
		opt.sources[file] = func(ctx context.Context, opt *Options, role string) (*table, error) {
			return openText(ctx, opt, file, role, func(t *table) error {
				t.header, t.numbered = HeaderNo, true
				return nil
			})
		}
	}
	rows(&opt.Features, part["node-feat"])
	rows(&opt.Labels, part["node-label"])
	if opt.Splits == "" {
		var lists []string
		for _, p := range []string{"train", "valid", "test"} {
			if part[p] != "" {
				lists = append(lists, p+"="+part[p])
			}
		}
		opt.Splits = strings.Join(lists, ",")
	}
	return nil
}

// rowCount says how many rows a file has, by another file.
type rowCount struct {
	rows int64
	file string
}

// readCount reads a file whose only field is a number.
func readCount(ctx context.Context, opt *Options, path string) (int64, error) {
	t, err := openText(ctx, opt, path, roleNodes, func(t *table) error { t.header = HeaderNo; return nil })
	if err != nil {
		return 0, err
	}
	defer t.close()
	ok, err := t.next(ctx)
	if err != nil {
		return 0, err
	}
	if !ok || t.width != 1 {
		return 0, &Error{File: t.in.name, Msg: "holds no single number", Hint: "data sets of many graphs are not read"}
	}
	v, isInt := snapshot.CanonicalInt(t.scan.field(0))
	if !isInt || v < 0 || v > maxNumber {
		return 0, &Error{File: t.in.name, Line: t.scan.start, Column: "1", Value: string(t.scan.field(0)), Msg: "is no count of nodes or edges"}
	}
	if ok, err := t.next(ctx); err != nil || ok {
		return 0, &Error{File: t.in.name, Msg: "holds several numbers", Hint: "data sets of many graphs are not read"}
	}
	return v, nil
}
