package ingest

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// npzSetFiles takes any .npz file.
func npzSetFiles(path string) []string {
	if !strings.HasSuffix(strings.ToLower(path), ".npz") || !isFile(path) {
		return nil
	}
	return []string{path}
}

// openNPZSet opens a graph in one .npz (as Platonov et al., A Critical Look at the Evaluation of GNNs under
// Heterophily, 2023, publish theirs): edges [E, 2], node_features [N, F], node_labels [N], and train_masks, val_masks,
// test_masks [splits, N]. Node i is the id i. Files with pickled scipy matrices are refused.
func openNPZSet(_ context.Context, opt *Options, files []string) error {
	path, name := files[0], opt.nameOf(files[0])
	members, err := npzMembers(path, name)
	if err != nil {
		return err
	}
	has := func(member string) bool { return slices.Contains(members, member) }
	if !has("edges") {
		for _, m := range members {
			if _, err := openNPZ(path, name, m); err != nil && strings.Contains(err.Error(), "object arrays") {
				return &Error{File: name, Msg: fmt.Sprintf("member %s is a pickled Python object, which is not read: unpickling can run code", quote(m)),
					Hint: "save edges, node_features and node_labels as plain arrays"}
			}
		}
		return &Error{File: name, Msg: fmt.Sprintf("no member \"edges\", found %q", members), Hint: "a graph in .npz has edges, node_features, node_labels"}
	}
	if len(opt.Edges) == 0 {
		rows, cols, values, err := npzInts(opt, path, "edges")
		if err != nil {
			return err
		}
		if cols != 2 {
			return &Error{File: name, Msg: fmt.Sprintf("member \"edges\" has the shape (%d, %d), not (edges, 2)", rows, cols)}
		}
		edges := name + "/edges"
		addSource(opt, edges, "npz", []string{"src", "dst"}, rows, func(i int, s *scanner) {
			s.putInt(values[2*i])
			s.putInt(values[2*i+1])
		}, nil)
		opt.Edges = []string{edges}
	}
	if opt.Features == "" && has("node_features") {
		opt.Features, opt.FeatureMember = path, "node_features"
	}
	if opt.Labels == "" && has("node_labels") {
		rows, cols, values, err := npzInts(opt, path, "node_labels")
		if err != nil {
			return err
		}
		labels := name + "/node_labels"
		names := []string{"label"}
		for k := 1; k < cols; k++ {
			names = append(names, fmt.Sprint("label", k))
		}
		addSource(opt, labels, "npz", names, rows, func(i int, s *scanner) {
			for k := range cols {
				s.putInt(values[i*cols+k])
			}
		}, func(t *table) { t.numbered = true })
		opt.Labels = labels
		if opt.Features == "" && opt.Nodes == "" && len(opt.NodeFiles) == 0 {
			nodes := name + "/nodes"
			addSource(opt, nodes, "npz", []string{"id"}, rows, func(i int, s *scanner) { s.putInt(int64(i)) }, nil)
			opt.Nodes = nodes
		}
	}
	if opt.Splits == "" && has("train_masks") {
		return npzSplits(opt, path, members)
	}
	return nil
}

// npzSplits makes the masks a split table.
func npzSplits(opt *Options, path string, members []string) error {
	name := opt.nameOf(path)
	words := []string{"train", "valid", "test"}
	masks := make([][]int64, len(words))
	splits, nodes := -1, 0
	for i, member := range []string{"train_masks", "val_masks", "test_masks"} {
		if !slices.Contains(members, member) {
			continue
		}
		rows, cols, values, err := npzInts(opt, path, member)
		if err != nil {
			return err
		}
		if splits >= 0 && (rows != splits || cols != nodes) {
			return &Error{File: name, Msg: fmt.Sprintf("member %s has the shape (%d, %d), \"train_masks\" has (%d, %d)", quote(member), rows, cols, splits, nodes)}
		}
		splits, nodes, masks[i] = rows, cols, values
	}
	names := make([]string, splits)
	for k := range names {
		names[k] = fmt.Sprint("s", k)
	}
	split := name + "/masks"
	for at := range splits * nodes {
		if masks[0][at] != 0 && masks[1] != nil && masks[1][at] != 0 || masks[2] != nil && masks[2][at] != 0 && (masks[0][at] != 0 || masks[1] != nil && masks[1][at] != 0) {
			return &Error{File: name, Msg: fmt.Sprintf("node %d is in two parts of split %d", at%nodes, at/nodes)}
		}
	}
	addSource(opt, split, "npz", names, nodes, func(i int, s *scanner) {
		for k := range splits {
			word := ""
			for p, mask := range masks {
				if mask != nil && mask[k*nodes+i] != 0 {
					word = words[p]
				}
			}
			s.putString(word)
		}
	}, func(t *table) { t.numbered = true })
	opt.Splits = split
	return nil
}

// npzMembers lists the arrays of a .npz, which messages call name.
func npzMembers(path, name string) ([]string, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, &Error{File: name, Msg: fmt.Sprintf("is not a readable .npz file: %v", err)}
	}
	defer z.Close()
	var names []string
	for _, f := range z.File {
		names = append(names, strings.TrimSuffix(f.Name, ".npy"))
	}
	return names, nil
}

// npzInts reads an array of integers or booleans, row-major; a vector is one column.
func npzInts(opt *Options, path, member string) (rows, cols int, values []int64, err error) {
	m, err := openNPZ(path, opt.nameOf(path), member)
	if err != nil {
		return 0, 0, nil, err
	}
	defer m.close()
	if m.item.kind == 'f' {
		return 0, 0, nil, m.fault(fmt.Sprintf("member %s holds floats, not integers", quote(member)), "")
	}
	if m.dataBytes > opt.MaxFeatureBytes {
		return 0, 0, nil, &Error{File: m.file, Msg: fmt.Sprintf("member %s holds %d bytes", quote(member), m.dataBytes), Err: ErrLimit}
	}
	raw := make([]byte, m.dataBytes)
	if _, err := io.ReadFull(m.r, raw); err != nil {
		return 0, 0, nil, m.readFault(err)
	}
	values = make([]int64, m.rows*m.cols)
	for i := range m.rows {
		for k := range m.cols {
			at := i*m.cols + k
			if m.fortran {
				at = k*m.rows + i
			}
			values[i*m.cols+k] = m.item.integer(raw[at*m.item.size:])
		}
	}
	return m.rows, m.cols, values, nil
}
