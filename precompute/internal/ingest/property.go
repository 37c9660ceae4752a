package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// propertyColumn is a column of a Neo4j or Gremlin CSV file, as its header says.
type propertyColumn struct {
	name  string // without the type
	role  string // id, src, dst, type, label, ignore; "" = a property
	space string // of id, src, dst: the id space
}

// parsePropertyHeader reads the header of a Neo4j export (name:ID(space), :START_ID(space), :END_ID(space), :TYPE,
// :LABEL, name:type) or of a Gremlin load file (~id, ~from, ~to, ~label, name:type). ok is false for any other row.
func parsePropertyHeader(fields []string) (cols []propertyColumn, ok bool) {
	has := map[string]bool{}
	for _, f := range fields {
		c := propertyColumn{name: f}
		switch strings.ToLower(f) {
		case "~id":
			c.role = "id"
		case "~from":
			c.role = "src"
		case "~to":
			c.role = "dst"
		case "~label":
			c.role = "label"
		default:
			if name, kind, found := cutLast(f, ":"); found {
				kind, _, _ = strings.Cut(kind, "{") // options of newer exports
				kind, space, _ := strings.Cut(kind, "(")
				c.role = map[string]string{"ID": "id", "START_ID": "src", "END_ID": "dst", "TYPE": "type", "LABEL": "label", "IGNORE": "ignore"}[strings.ToUpper(kind)]
				if c.role != "" {
					c.space = strings.TrimSuffix(space, ")")
				}
				if name != "" {
					c.name = name
				}
			}
		}
		has[c.role] = true
		cols = append(cols, c)
	}
	return cols, has["id"] && !has["src"] && !has["dst"] || has["src"] && has["dst"]
}

// cutLast cuts s around the last separator outside of parentheses and braces.
func cutLast(s, sep string) (before, after string, found bool) {
	end := len(s)
	if i := strings.IndexAny(s, "({"); i >= 0 {
		end = i
	}
	i := strings.LastIndex(s[:end], sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// propertyHead returns the header fields of a property file; alone says that the file holds nothing else.
func propertyHead(opt *Options, path string) (cols []propertyColumn, alone bool, err error) {
	head, err := peek(opt, path)
	if err != nil {
		return nil, false, err
	}
	line, rest, _ := bytes.Cut(head, []byte{'\n'})
	if !bytes.ContainsAny(line, ":~") {
		return nil, false, nil
	}
	d := detectDialect(FormatAuto, opt.Delimiter, filepath.Base(path), head)
	s := scanner{dialect: d}
	s.reset(append(slices.Clone(line), '\n'), 0, 1)
	if kind, err := s.next(); err != nil || kind != kindRow {
		return nil, false, nil
	}
	var fields []string
	for i := range s.fields {
		fields = append(fields, string(s.field(i)))
	}
	cols, ok := parsePropertyHeader(fields)
	if !ok {
		return nil, false, nil
	}
	return cols, len(bytes.TrimSpace(rest)) == 0, nil
}

// findProperties finds the property files among paths, which come in order: a file with a header only is that of the
// files behind it that have none.
func findProperties(opt *Options, paths []string) (spaces []string, err error) {
	header := ""
	for _, path := range paths {
		if opt.sources[path] != nil || !strings.HasPrefix(textKind(path), kindText) {
			header = ""
			continue
		}
		cols, alone, err := propertyHead(opt, path)
		if err != nil {
			return nil, err
		}
		switch {
		case cols != nil:
			opt.headers[path] = path
			if header = ""; alone {
				header = path
			}
		case header != "":
			opt.headers[path] = header
		}
		for _, c := range cols {
			if strings.Contains(c.space, ":") {
				return nil, &Error{File: opt.nameOf(path), Line: 1, Msg: fmt.Sprintf("the id space %s has a colon in its name", quote(c.space)), Hint: "ids are written SPACE:ID"}
			}
			if c.space != "" && !slices.Contains(spaces, c.space) {
				spaces = append(spaces, c.space)
			}
		}
	}
	return spaces, nil
}

// textKind is the kind that a name tells, text if it tells none.
func textKind(path string) string {
	if kind := extensions[filepath.Ext(bareName(path))]; kind != "" {
		return kind
	}
	return kindText
}

// properties looks for property files among nodes and edges and collects their id spaces.
func (r *reader) properties() error {
	o := &r.opt
	nodes := o.NodeFiles
	if len(nodes) == 0 && o.Nodes != "" {
		nodes = []string{o.Nodes}
	}
	nodeSpaces, err := findProperties(o, nodes)
	if err != nil {
		return err
	}
	if o.Format != FormatAuto {
		return nil
	}
	_, heldOut, _ := HoldoutFiles(o.HoldoutEdges) // readHoldout says what is wrong with it
	edgeSpaces, err := findProperties(o, append(slices.Clip(o.Edges), heldOut...))
	if err != nil {
		return err
	}
	for _, s := range edgeSpaces {
		if len(nodes) > 0 && !slices.Contains(nodeSpaces, s) {
			slices.Sort(nodeSpaces)
			return &Error{File: o.nameOf(o.Edges[0]), Msg: fmt.Sprintf("the id space %s of the edges is that of no node file", quote(s)),
				Hint: fmt.Sprintf("the node files have %q", nodeSpaces)}
		}
	}
	for _, s := range append(nodeSpaces, edgeSpaces...) {
		o.spaces[s] = true
	}
	return nil
}

// openProperty opens a property file: nodes as id, the properties and the label :LABEL, edges as src, dst, the
// properties and the type :TYPE. An id of the space S is written S:id.
func openProperty(ctx context.Context, opt *Options, path, role string) (*table, error) {
	cols, _, err := propertyHead(opt, opt.headers[path])
	if err != nil {
		return nil, err
	}
	text, err := openText(ctx, opt, path, role, func(t *table) error {
		if t.header = HeaderNo; opt.headers[path] == path {
			t.header = HeaderYes
		}
		t.format = FormatAuto
		return nil
	})
	if err != nil {
		return nil, err
	}
	if text.width > 0 && text.width != len(cols) {
		text.close()
		return nil, text.headError("the header is that of "+opt.nameOf(opt.headers[path]), "expected %d fields, got %d", len(cols), text.width)
	}
	p := &propertySource{text: text, cols: cols, opt: opt}
	var names []string
	add := func(role, name string) {
		for i, c := range cols {
			if c.role == role {
				p.from = append(p.from, i)
				if name == "" {
					names = append(names, c.name)
				} else {
					names = append(names, name)
					return
				}
			}
		}
	}
	t := newSourceTable(opt, path, role, kindProperty, nil, false, p)
	class := ":LABEL"
	if role == roleEdges {
		class = ":TYPE"
		add("src", "src")
		add("dst", "dst")
		if len(p.from) != 2 {
			text.close()
			return nil, text.headError("", "is a file of nodes: it has no :START_ID and :END_ID, or ~from and ~to")
		}
		add("type", class)
		add("label", class)
	} else {
		add("id", "id")
		if len(p.from) != 1 || cols[p.from[0]].role != "id" {
			text.close()
			return nil, text.headError("", "is a file of edges: it has no :ID or ~id")
		}
		add("label", class)
		if len(p.from) == 1 { // no label: the id space is the type
			p.space = cols[p.from[0]].space
			p.from, names = append(p.from, -1), append(names, class)
		}
		t.fixedID = true
	}
	if n := slices.Index(names, class); n >= 0 && role == roleEdges {
		t.relCol = n
	} else if n >= 0 && (p.from[n] >= 0 || p.space != "") {
		t.typeCol = n
	}
	add("", "")
	t.names, t.width = names, len(names)
	t.in, t.report.Lines = text.in, 0
	return t, nil
}

// propertySource gives the rows of a text file with its columns in another order and ids with their space.
type propertySource struct {
	opt   *Options
	text  *table
	cols  []propertyColumn
	from  []int  // for each field its column, -1 = space
	space string // of the nodes, where it is their type
}

func (p *propertySource) close() {} // the table closes the input

func (p *propertySource) next(ctx context.Context, t *table) error {
	ok, err := p.text.next(ctx)
	if err != nil {
		return err
	}
	if !ok {
		t.report.BlankLines, t.report.CommentLines = p.text.report.BlankLines, p.text.report.CommentLines
		return io.EOF
	}
	s := &p.text.scan
	t.scan.startRow(s.start)
	for _, c := range p.from {
		if c < 0 {
			t.scan.putString(p.space)
			continue
		}
		field := s.field(c)
		switch p.cols[c].role {
		case "id", "src", "dst":
			if err := p.putID(t, c, field); err != nil {
				return err
			}
		default:
			t.scan.put(field)
		}
	}
	return nil
}

// putID puts an id with its space. One of no space must not read like one with a space.
func (p *propertySource) putID(t *table, c int, field []byte) error {
	space := p.cols[c].space
	if len(field) == 0 {
		t.scan.put(nil)
		return nil
	}
	if space == "" {
		if before, after, found := bytes.Cut(field, []byte{':'}); found && p.opt.spaces[string(before)] {
			return &Error{File: t.in.name, Line: p.text.scan.start, Column: p.cols[c].name, Value: string(field),
				Msg: fmt.Sprintf("has no id space, but reads like the id %s of the space %s", quote(string(after)), quote(string(before)))}
		}
		t.scan.put(field)
		return nil
	}
	off := len(t.scan.text)
	t.scan.text = append(t.scan.text, space...)
	t.scan.text = append(t.scan.text, ':')
	t.scan.text = append(t.scan.text, field...)
	t.scan.fields = append(t.scan.fields, span{off, len(t.scan.text)})
	return nil
}
