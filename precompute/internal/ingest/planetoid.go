package ingest

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prelift/prelift/snapshot"
)

// planetoidParts are the files of a Planetoid data set (Yang, Cohen and Salakhutdinov, Revisiting Semi-Supervised
// Learning with Graph Embeddings, 2016), ind.NAME.PART.
var planetoidParts = []string{"graph", "x", "y", "tx", "ty", "allx", "ally", "test.index"}

// planetoidFiles finds a data set by its directory, its prefix DIR/ind.NAME, or one of its files.
func planetoidFiles(path string) []string {
	prefix := path
	if isDir(path) {
		graphs := globFiles(filepath.Join(path, "ind.*.graph"))
		if len(graphs) != 1 {
			return nil
		}
		prefix = strings.TrimSuffix(graphs[0], ".graph")
	} else {
		if !strings.HasPrefix(filepath.Base(path), "ind.") {
			return nil
		}
		for _, part := range planetoidParts {
			if p, ok := strings.CutSuffix(path, "."+part); ok && filepath.Base(p) != "ind" {
				prefix = p
			}
		}
		if !isFile(prefix + ".graph") {
			return nil
		}
	}
	files := make([]string, len(planetoidParts))
	for i, part := range planetoidParts {
		files[i] = prefix + "." + part
	}
	return files
}

// planetoid is a data set in memory.
type planetoid struct {
	src, dst []int32
	label    []int32         // -1 = none
	part     []string        // split word of each node
	rows     []*csrMatrix    // of each node, nil = it has none
	row      []int           // in rows
	place    []planetoidCell // of each entry of the feature table
	features int
}

// planetoidCell is an entry of the sparse feature table; feature -1 marks a node without any.
type planetoidCell struct {
	node, feature int32
	value         float32
}

const planetoidValid = 500 // nodes of the validation part, right behind the training part

func openPlanetoid(_ context.Context, opt *Options, files []string) error {
	for _, f := range files {
		if !isFile(f) {
			return &Error{File: opt.nameOf(f), Msg: "is missing", Hint: "a Planetoid data set needs all of x, y, tx, ty, allx, ally, graph and test.index"}
		}
	}
	p := &planetoid{}
	if err := p.load(files, opt); err != nil {
		return err
	}
	path := func(part string) string { return strings.TrimSuffix(files[0], "graph") + part }
	if len(opt.Edges) == 0 {
		edges := path("graph")
		addSource(opt, edges, "planetoid", []string{"src", "dst"}, len(p.src), func(i int, s *scanner) {
			s.putInt(int64(p.src[i]))
			s.putInt(int64(p.dst[i]))
		}, nil)
		opt.Edges = []string{edges}
	}
	if opt.Nodes == "" && len(opt.NodeFiles) == 0 {
		nodes := path("ally")
		addSource(opt, nodes, "planetoid", []string{"id", "label", "split"}, len(p.label), func(i int, s *scanner) {
			s.putInt(int64(i))
			if p.label[i] >= 0 {
				s.putInt(int64(p.label[i]))
			} else {
				s.put(nil)
			}
			s.putString(p.part[i])
		}, nil)
		opt.Nodes = nodes
	}
	if opt.Features == "" {
		features := path("allx")
		addSource(opt, features, "planetoid", []string{"node", "feature", "value"}, len(p.place), func(i int, s *scanner) {
			c := p.place[i]
			s.putInt(int64(c.node))
			if c.feature < 0 {
				s.put(nil)
				s.put(nil)
				return
			}
			s.putInt(int64(c.feature))
			s.putString(strconv.FormatFloat(float64(c.value), 'g', -1, 32))
		}, nil)
		opt.Features = features
		if opt.NumFeatures == 0 {
			opt.NumFeatures = p.features
		}
	}
	return nil
}

// load reads the files and joins them as the loaders of gcn and PyTorch Geometric do: nodes are 0 to N-1, where N is
// the number of nodes in graph; allx and ally are those of the first nodes, tx and ty those named by test.index;
// a node between them that test.index leaves out has features 0 and no label. The first nodes are the training part
// (as many as y has rows), the next 500 the validation part.
func (p *planetoid) load(files []string, opt *Options) error {
	name := func(part string) string { return opt.nameOf(strings.TrimSuffix(files[0], "graph") + part) }
	fault := func(part, format string, args ...any) error {
		return &Error{File: name(part), Msg: fmt.Sprintf(format, args...), Hint: "are all files of one data set?"}
	}
	values := map[string]any{}
	for i, part := range planetoidParts[:7] {
		v, err := readPickle(files[i], name(part))
		if err != nil {
			return err
		}
		values[part] = v
	}
	features := map[string]*csrMatrix{}
	for _, part := range []string{"x", "tx", "allx"} {
		c, ok := values[part].(*pyCSR)
		if !ok {
			return fault(part, "holds no CSR matrix")
		}
		m, err := c.matrix()
		if err != nil {
			return fault(part, "holds a CSR matrix that isn't consistent: %v", err)
		}
		features[part] = m
	}
	labels := map[string][]int32{}
	for _, part := range []string{"y", "ty", "ally"} {
		a, _ := values[part].(*pyArray)
		l, err := oneHot(a)
		if err != nil {
			return fault(part, "%v", err)
		}
		labels[part] = l
	}
	for x, y := range map[string]string{"x": "y", "tx": "ty", "allx": "ally"} {
		if a, b := features[x].rows, len(labels[y]); a != b {
			return fault(x, "has %d rows, %s has %d", a, name(y), b)
		}
	}
	allx, tx := features["allx"], features["tx"]
	if allx.cols != tx.cols {
		return fault("tx", "has %d features, %s has %d", tx.cols, name("allx"), allx.cols)
	}
	p.features = allx.cols
	if err := p.graph(values["graph"], fileSize(files[0])); err != nil {
		return fault("graph", "%v", err)
	}
	n := len(p.label)
	test, err := readIndex(files[7], name("test.index"))
	if err != nil {
		return err
	}
	if allx.rows > n || len(labels["y"]) > allx.rows {
		return fault("allx", "has %d rows for %d nodes, %d of them for training", allx.rows, n, len(labels["y"]))
	}
	if len(test) != tx.rows {
		return fault("test.index", "has %d lines, %s has %d rows", len(test), name("tx"), tx.rows)
	}
	p.rows, p.row, p.part = make([]*csrMatrix, n), make([]int, n), make([]string, n)
	for v := range allx.rows {
		p.rows[v], p.row[v], p.label[v] = allx, v, labels["ally"][v]
	}
	for i, v := range test {
		if v < int64(allx.rows) || v >= int64(n) {
			return &Error{File: name("test.index"), Line: int64(i) + 1, Column: "node", Value: fmt.Sprint(v), Msg: fmt.Sprintf("is not a node from %d to %d", allx.rows, n-1)}
		}
		if p.rows[v] != nil {
			return &Error{File: name("test.index"), Line: int64(i) + 1, Column: "node", Value: fmt.Sprint(v), Msg: "is listed twice"}
		}
		p.rows[v], p.row[v], p.label[v], p.part[v] = tx, i, labels["ty"][i], "test"
	}
	train := len(labels["y"])
	for v := range min(train+planetoidValid, allx.rows) {
		p.part[v] = "train"
		if v >= train {
			p.part[v] = "valid"
		}
	}
	return p.cells()
}

// cells lists the entries of the feature table.
func (p *planetoid) cells() error {
	for v, m := range p.rows {
		before := len(p.place)
		if m != nil {
			for i := m.indptr[p.row[v]]; i < m.indptr[p.row[v]+1]; i++ {
				p.place = append(p.place, planetoidCell{int32(v), int32(m.indices[i]), m.data[i]})
			}
		}
		if len(p.place) == before {
			p.place = append(p.place, planetoidCell{int32(v), -1, 0})
		}
	}
	return nil
}

// graph reads the adjacency dictionary: node -> list of nodes. A pickle can give one list to many nodes, so there may be
// no more than limit entries: each takes a byte or more when written out.
func (p *planetoid) graph(v any, limit int64) error {
	d, ok := v.(*pyDict)
	if !ok {
		return fmt.Errorf("holds no dictionary")
	}
	n := int64(len(d.keys))
	seen := make([]bool, n)
	for i, key := range d.keys {
		src, ok := key.(int64)
		list, ok2 := d.values[i].(*pyList)
		if !ok || !ok2 {
			return fmt.Errorf("holds a key that is no integer, or a value that is no list")
		}
		if src < 0 || src >= n || seen[src] {
			return fmt.Errorf("holds the node %d, the %d nodes should be 0 to %d", src, n, n-1)
		}
		seen[src] = true
		if limit -= int64(len(list.items)); limit < 0 {
			return fmt.Errorf("holds more neighbours than bytes")
		}
		for _, item := range list.items {
			dst, ok := item.(int64)
			if !ok || dst < 0 || dst >= n {
				return fmt.Errorf("lists %v as a neighbour of %d, the nodes are 0 to %d", item, src, n-1)
			}
			p.src, p.dst = append(p.src, int32(src)), append(p.dst, int32(dst))
		}
	}
	p.label = slices.Repeat([]int32{-1}, int(n))
	return nil
}

// oneHot reads labels of the shape [nodes, classes]: one 1 in a row, or none for a node without a label.
func oneHot(a *pyArray) ([]int32, error) {
	if a == nil || len(a.shape) != 2 || a.shape[1] == 0 {
		return nil, fmt.Errorf("holds no matrix of labels")
	}
	rows, cols := a.shape[0], a.shape[1]
	values := make([]float32, rows*cols)
	a.item.decode(values, a.data)
	labels := make([]int32, rows)
	for i := range rows {
		labels[i] = -1
		for j := range cols {
			at := i*cols + j
			if a.fortran {
				at = j*rows + i
			}
			switch v := values[at]; {
			case v == 0:
			case v == 1 && labels[i] < 0:
				labels[i] = int32(j)
			default:
				return nil, fmt.Errorf("row %d is not one class of %d", i, cols)
			}
		}
	}
	return labels, nil
}

// readIndex reads a file with one node number a line, which messages call name.
func readIndex(path, name string) ([]int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{File: name, Msg: openReason(err), Err: err}
	}
	defer f.Close()
	var out []int64
	lines := bufio.NewScanner(f)
	for n := int64(1); lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		v, ok := snapshot.CanonicalInt([]byte(text))
		if !ok || v < 0 || v > math.MaxInt32 {
			return nil, &Error{File: name, Line: n, Column: "node", Value: text, Msg: "is not a node number"}
		}
		out = append(out, v)
	}
	if err := lines.Err(); err != nil {
		return nil, &Error{File: name, Msg: "can't be read: " + err.Error(), Err: err}
	}
	return out, nil
}
