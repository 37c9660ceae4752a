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

// npzMasks are the members with the masks of train, valid and test, under either name.
var npzMasks = [...][2]string{{"train_masks", "train_mask"}, {"val_masks", "val_mask"}, {"test_masks", "test_mask"}}

// npzSet is a graph in a .npz that is being opened.
type npzSet struct {
	opt     *Options
	path    string
	name    string
	members []string
	nodes   int    // -1 = no member said so yet
	counted string // the member that did
}

func (n *npzSet) has(member string) bool { return slices.Contains(n.members, member) }

func (n *npzSet) fault(hint, format string, args ...any) error {
	return &Error{File: n.name, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// openNPZSet opens a graph in one .npz (as Platonov et al., A Critical Look at the Evaluation of GNNs under
// Heterophily, 2023, publish theirs): edges [E, 2], node_features [N, F], node_labels [N], and train_masks, val_masks,
// test_masks [splits, N] of 0 and 1; [N] is one split, [N, splits] is known where N isn't the number of splits too. Node i is
// the id i. Files with pickled scipy matrices are refused.
func openNPZSet(_ context.Context, opt *Options, files []string) error {
	n := &npzSet{opt: opt, path: files[0], name: opt.nameOf(files[0]), nodes: -1}
	var err error
	if n.members, err = npzMembers(n.path, n.name); err != nil {
		return err
	}
	if len(n.members) == 0 {
		return n.fault("", "has no members")
	}
	if !n.has("edges") {
		for _, m := range n.members {
			if _, err := openNPZ(n.path, n.name, m); err != nil && strings.Contains(err.Error(), "object arrays") {
				return n.fault("save edges, node_features and node_labels as plain arrays", "member %s is a pickled Python object, which is not read: unpickling can run code", quote(m))
			}
		}
		return n.fault("a graph in .npz has edges, node_features, node_labels", "no member \"edges\", found %q", n.members)
	}
	if err := n.edges(); err != nil {
		return err
	}
	if err := n.features(); err != nil {
		return err
	}
	if err := n.labels(); err != nil {
		return err
	}
	if err := n.splits(); err != nil {
		return err
	}
	if opt.Features == "" && opt.Nodes == "" && len(opt.NodeFiles) == 0 && n.nodes >= 0 {
		nodes := n.name + "/nodes"
		addSource(opt, nodes, "npz", []string{"id"}, n.nodes, func(i int, s *scanner) { s.putInt(int64(i)) }, nil)
		opt.Nodes = nodes
	}
	n.noteUnused()
	return nil
}

// noteUnused warns of members whose names say nothing.
func (n *npzSet) noteUnused() {
	var unused []string
	for _, m := range n.members {
		known := m == "edges" || m == "node_features" || m == "node_labels" || m == n.opt.FeatureMember && n.opt.Features == n.path
		for _, names := range npzMasks {
			known = known || slices.Contains(names[:], m)
		}
		if !known {
			unused = append(unused, quote(m))
		}
	}
	if len(unused) > 0 {
		n.opt.warnings = append(n.opt.warnings, fmt.Sprintf("%s: %s not used: %s (known are edges, node_features, node_labels, train_masks, val_masks, test_masks)",
			oneLine(n.name), plural(len(unused), "member"), strings.Join(unused, ", ")))
	}
}

// count notes how many nodes a member has, which must be as many as the one before it has.
func (n *npzSet) count(member string, rows int) error {
	if n.nodes >= 0 && n.nodes != rows {
		return n.fault("row i belongs to node i", "member %s has %d %s, %s has %d", quote(member), rows, plural(rows, "row"), quote(n.counted), n.nodes)
	}
	n.nodes, n.counted = rows, member
	return nil
}

func (n *npzSet) edges() error {
	if len(n.opt.Edges) > 0 {
		return nil
	}
	rows, cols, values, err := npzInts(n.opt, n.path, "edges")
	if err != nil {
		return err
	}
	if cols != 2 {
		return n.fault("", "member \"edges\" has the shape (%d, %d), not (edges, 2)", rows, cols)
	}
	if i := slices.IndexFunc(values, func(v int64) bool { return v < 0 }); i >= 0 {
		return n.fault("node i is row i of the other members", "member \"edges\", row %d, column %d (from 0): %d is no number of a node", i/2, i%2, values[i])
	}
	edges := n.name + "/edges"
	addSource(n.opt, edges, "npz", []string{"src", "dst"}, rows, func(i int, s *scanner) {
		s.putInt(values[2*i])
		s.putInt(values[2*i+1])
	}, nil)
	n.opt.Edges = []string{edges}
	return nil
}

func (n *npzSet) features() error {
	if n.opt.Features != "" || !n.has("node_features") {
		return nil
	}
	m, err := openNPZ(n.path, n.name, "node_features")
	if err != nil {
		return err
	}
	m.close()
	n.opt.Features, n.opt.FeatureMember = n.path, "node_features"
	return n.count("node_features", m.rows)
}

func (n *npzSet) labels() error {
	if n.opt.Labels != "" || !n.has("node_labels") {
		return nil
	}
	rows, cols, values, err := npzInts(n.opt, n.path, "node_labels")
	if err != nil {
		return err
	}
	if err := n.count("node_labels", rows); err != nil {
		return err
	}
	labels := n.name + "/node_labels"
	names := []string{"label"}
	for k := 1; k < cols; k++ {
		names = append(names, fmt.Sprint("label", k))
	}
	addSource(n.opt, labels, "npz", names, rows, func(i int, s *scanner) {
		for k := range cols {
			s.putInt(values[i*cols+k])
		}
	}, func(t *table) { t.numbered = true })
	n.opt.Labels = labels
	return nil
}

// splits makes the masks a split table.
func (n *npzSet) splits() error {
	if n.opt.Splits != "" {
		return nil
	}
	words := [...]string{"train", "valid", "test"}
	var masks [len(words)][]int64 // [splits, nodes]
	splits, first := -1, ""
	for i, names := range npzMasks {
		at := slices.IndexFunc(n.members, func(m string) bool { return m == names[0] || m == names[1] })
		if at < 0 {
			continue
		}
		member := n.members[at]
		if member == names[0] && n.has(names[1]) || member == names[1] && n.has(names[0]) {
			return n.fault("one of them is the mask", "has the members %s and %s", quote(names[0]), quote(names[1]))
		}
		k, mask, err := n.mask(member)
		if err != nil {
			return err
		}
		if splits >= 0 && k != splits {
			return n.fault("", "member %s has %d %s, %s has %d", quote(member), k, plural(k, "split"), quote(first), splits)
		}
		splits, masks[i], first = k, mask, member
	}
	if splits < 0 {
		return nil
	}
	for i, mask := range masks {
		if mask == nil {
			n.opt.warnings = append(n.opt.warnings, fmt.Sprintf("%s: no member %s: no node is in that part of the splits", oneLine(n.name), quote(npzMasks[i][0])))
		}
	}
	parts := make([]int, splits*n.nodes) // 1 + the part
	for p, mask := range masks {
		for at, v := range mask {
			switch {
			case v == 0:
			case parts[at] > 0:
				return n.fault("", "node %d is in two parts of split %d", at%n.nodes, at/n.nodes)
			default:
				parts[at] = p + 1
			}
		}
	}
	names := make([]string, splits)
	for k := range names {
		names[k] = fmt.Sprint("s", k)
	}
	nodes := n.nodes
	split := n.name + "/masks"
	addSource(n.opt, split, "npz", names, nodes, func(i int, s *scanner) {
		for k := range splits {
			word := ""
			if p := parts[k*nodes+i]; p > 0 {
				word = words[p-1]
			}
			s.putString(word)
		}
	}, func(t *table) { t.numbered = true })
	n.opt.Splits = split
	return nil
}

// mask reads a member of masks as [splits, nodes].
func (n *npzSet) mask(member string) (splits int, mask []int64, err error) {
	rows, cols, values, err := npzInts(n.opt, n.path, member)
	if err != nil {
		return 0, nil, err
	}
	for i, v := range values {
		if v != 0 && v != 1 {
			return 0, nil, n.fault("a mask has 1 for the nodes of its part; lists of node numbers aren't read", "member %s, row %d, column %d (from 0): %d is neither 0 nor 1", quote(member), i/cols, i%cols, v)
		}
	}
	switch {
	case n.nodes < 0 && cols > 1:
		return rows, values, n.count(member, cols)
	case n.nodes < 0:
		return 1, values, n.count(member, rows)
	case cols == n.nodes:
		return rows, values, nil
	case rows != n.nodes:
		return 0, nil, n.fault("masks are (splits, nodes), or (nodes,)", "member %s has the shape (%d, %d) for %d %s", quote(member), rows, cols, n.nodes, plural(n.nodes, "node"))
	}
	turned := make([]int64, len(values))
	for i, v := range values {
		turned[i%cols*rows+i/cols] = v
	}
	return cols, turned, nil
}

// npzMembers lists the arrays of a .npz.
func npzMembers(path, name string) ([]string, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, &Error{File: name, Msg: fmt.Sprintf("is not a readable .npz file: %v", err)}
	}
	defer z.Close()
	var names []string
	for _, f := range z.File {
		member := strings.TrimSuffix(f.Name, ".npy")
		if slices.Contains(names, member) {
			return nil, &Error{File: name, Msg: fmt.Sprintf("has the member %s twice", quote(member))}
		}
		names = append(names, member)
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
	if k, err := m.r.Read(make([]byte, 1)); err != nil && err != io.EOF || k > 0 { // a zip member checks its CRC at its end
		return 0, 0, nil, m.readFault(err)
	}
	values = make([]int64, m.rows*m.cols)
	for i := range m.rows {
		for k := range m.cols {
			at := i*m.cols + k
			if m.fortran {
				at = k*m.rows + i
			}
			v := m.item.integer(raw[at*m.item.size:])
			if v < 0 && m.item.kind == 'u' {
				return 0, 0, nil, m.fault(fmt.Sprintf("member %s, row %d, column %d (from 0): %d is over 9223372036854775807", quote(member), i, k, uint64(v)), "")
			}
			values[i*m.cols+k] = v
		}
	}
	return m.rows, m.cols, values, nil
}
