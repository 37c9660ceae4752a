package ingest

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// openLINQS opens a file of a LINQS data set: NAME.content holds id, features, class, NAME.cites holds cited, citing.
// The citing node is the source of an edge.
func openLINQS(ctx context.Context, opt *Options, path, role string) (*table, error) {
	cites := strings.HasSuffix(bareName(path), ".cites")
	if cites != (role == roleEdges) {
		return nil, &Error{File: opt.nameOf(path), Msg: "can't give the " + role, Hint: ".cites files give edges, .content files nodes with features and labels"}
	}
	t, err := openText(ctx, opt, path, role, func(t *table) error {
		t.header, t.format = HeaderNo, FormatSNAP
		line, _, _ := bytes.Cut(t.in.carry, []byte{'\n'})
		if bytes.IndexByte(line, '\t') >= 0 {
			t.format = FormatTSV
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.report.Format = kindLINQS
	switch {
	case t.width == 0:
	case cites && t.width != 2:
		err = t.headError("cited and citing id", "expected 2 fields, got %d", t.width)
	case cites:
		t.names = []string{"dst", "src"}
	case t.width < 2:
		err = t.headError("id, features, class", "expected 2 fields or more, got %d", t.width)
	default:
		t.fixedID = true
		t.names = append(t.names, "id")
		for i := range t.width - 2 {
			t.names = append(t.names, fmt.Sprint("f", i))
		}
		t.names = append(t.names, "label")
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// linqsFiles finds a data set by its directory, its prefix DIR/NAME, or one of its files.
func linqsFiles(path string) []string {
	prefix := strings.TrimSuffix(strings.TrimSuffix(path, ".content"), ".cites")
	if isDir(path) {
		found := globFiles(filepath.Join(path, "*.content"))
		if len(found) != 1 {
			return nil
		}
		prefix = strings.TrimSuffix(found[0], ".content")
	}
	if !isFile(prefix+".content") || !isFile(prefix+".cites") {
		return nil
	}
	return []string{prefix + ".content", prefix + ".cites"}
}

func openLINQSSet(_ context.Context, opt *Options, files []string) error {
	if opt.Nodes == "" && len(opt.NodeFiles) == 0 {
		opt.Nodes = files[0]
	}
	if len(opt.Edges) == 0 {
		opt.Edges = files[1:]
	}
	return nil
}
