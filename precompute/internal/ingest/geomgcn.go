package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// geomGCNFiles finds a directory in the text form of geom-gcn (Pei et al., Geom-GCN, 2020).
func geomGCNFiles(path string) []string {
	files := []string{filepath.Join(path, "out1_graph_edges.txt"), filepath.Join(path, "out1_node_feature_label.txt")}
	if !isFile(files[0]) || !isFile(files[1]) {
		return nil
	}
	return files
}

// openGeomGCN reads out1_graph_edges.txt (a header, then two ids) and out1_node_feature_label.txt (a header, then id,
// features separated by commas, label; fields separated by tabs).
func openGeomGCN(_ context.Context, opt *Options, files []string) error {
	asTSV := func(t *table) error { t.format, t.header = FormatTSV, HeaderYes; return nil }
	if len(opt.Edges) == 0 {
		opt.sources[files[0]] = func(ctx context.Context, opt *Options, role string) (*table, error) {
			t, err := openText(ctx, opt, files[0], role, asTSV)
			if err == nil && t.width == 2 {
				t.names = []string{"src", "dst"} // both are called node_id
			}
			return t, err
		}
		opt.Edges = files[:1]
	}
	if opt.Nodes != "" || len(opt.NodeFiles) > 0 {
		return nil
	}
	opt.Nodes = files[1]
	opt.sources[files[1]] = func(ctx context.Context, opt *Options, role string) (*table, error) {
		text, err := openText(ctx, opt, files[1], role, asTSV)
		if err != nil {
			return nil, err
		}
		fault := func(format string, args ...any) (*table, error) {
			text.close()
			return nil, text.headError("node_id, feature, label", format, args...)
		}
		if text.width != 3 {
			return fault("expected 3 fields, got %d", text.width)
		}
		names := []string{"id", "label"}
		if len(text.firsts) > 1 && len(text.firsts[1]) == 3 {
			for i := range bytes.Count([]byte(text.firsts[1][1]), []byte{','}) + 1 {
				names = append(names, fmt.Sprint("f", i))
			}
		}
		t := newSourceTable(opt, files[1], role, "geom-gcn", names, false, &geomGCNSource{text})
		t.in, t.fixedID = text.in, true
		return t, nil
	}
	return nil
}

// geomGCNSource cuts the features apart.
type geomGCNSource struct{ text *table }

func (g *geomGCNSource) close() {} // the table closes the input

func (g *geomGCNSource) next(ctx context.Context, t *table) error {
	ok, err := g.text.next(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return io.EOF
	}
	s := &g.text.scan
	t.scan.startRow(s.start)
	t.scan.put(s.field(0))
	t.scan.put(s.field(2))
	for f := range bytes.SplitSeq(s.field(1), []byte{','}) {
		t.scan.put(f)
	}
	return nil
}
