package ingest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// graphKey is a key element: an attribute of nodes or edges.
type graphKey struct {
	id, name, domain string
	boolean          bool
	fallback         string
	hasFallback      bool
}

// openGraphML opens a GraphML file (Brandes et al., GraphML Progress Report, 2002) as its edges (source, target and a
// column for each edge attribute) or its nodes (id and a column for each node attribute). A default stands where a
// node or an edge has no data; booleans are 0 and 1.
func openGraphML(_ context.Context, opt *Options, path, role string) (*table, error) {
	in, err := openInput(opt, path)
	if err != nil {
		return nil, err
	}
	g := &graphmlSource{in: in, edges: role == roleEdges, both: opt.Directed}
	if role != roleEdges && role != roleNodes {
		in.close()
		return nil, &Error{File: in.name, Msg: "is a GraphML file: it can give nodes and edges only"}
	}
	g.text = &tokenReader{r: bufio.NewReaderSize(io.MultiReader(bytes.NewReader(in.carry), &textReader{in}), 64<<10)}
	g.dec = xml.NewDecoder(g.text)
	if err := g.open(); err != nil {
		in.close()
		return nil, err
	}
	t := newSourceTable(opt, path, role, FormatGraphML, g.names(), false, g)
	t.in, t.fixedID = in, !g.edges
	if g.edges && g.directed {
		t.report.noticef("the graph is directed")
	} else if g.edges {
		t.report.noticef("the graph is undirected")
	}
	return t, nil
}

// tokenReader bounds what the XML decoder reads for one token.
type tokenReader struct {
	r    *bufio.Reader
	read int
}

var errLongToken = errors.New("an element or text longer than 64 MiB")

func (t *tokenReader) ReadByte() (byte, error) {
	if t.read++; t.read > maxRecord {
		return 0, errLongToken
	}
	return t.r.ReadByte()
}

func (t *tokenReader) Read(p []byte) (int, error) {
	b, err := t.ReadByte()
	if err != nil || len(p) == 0 {
		return 0, err
	}
	p[0] = b
	return 1, nil
}

// maxXMLDepth is deeper than GraphML nests.
const maxXMLDepth = 32

// graphmlSource gives the edges or the nodes of a GraphML file in file order.
type graphmlSource struct {
	in       *input
	text     *tokenReader
	dec      *xml.Decoder
	edges    bool // edges, not nodes
	both     bool // undirected edges come back too
	directed bool // edgedefault
	keys     []graphKey
	depth    int
	line     int64
	back     bool // the row in values comes back next
	values   []string
	given    []bool // by key, of the element at hand
	done     bool   // the graph is at its end
}

func (g *graphmlSource) close() {} // the table closes the input

func (g *graphmlSource) fault(format string, args ...any) error {
	return &Error{File: g.in.name, Line: g.line, Msg: fmt.Sprintf(format, args...)}
}

// token reads the next start, end or text token.
func (g *graphmlSource) token() (xml.Token, error) {
	g.text.read = 0
	tok, err := g.dec.Token()
	line, _ := g.dec.InputPos()
	g.line = int64(line)
	if err != nil {
		syntax, known := (*xml.SyntaxError)(nil), (*Error)(nil)
		switch {
		case errors.As(err, &known):
			return nil, err
		case errors.Is(err, errLongToken):
			return nil, &Error{File: g.in.name, Line: g.line, Msg: err.Error(), Err: ErrLimit}
		case errors.As(err, &syntax):
			return nil, g.fault("is no readable XML: %s", cut(syntax.Msg))
		case err == io.EOF && g.done && g.depth == 0:
			return nil, io.EOF
		case err == io.EOF:
			return nil, g.fault("ends inside the document")
		case strings.Contains(err.Error(), "CharsetReader"): // of which the library has no type
			return nil, &Error{File: g.in.name, Line: g.line, Msg: "is XML in another encoding than UTF-8", Hint: "convert it: iconv -t UTF-8, and change the encoding in its first line"}
		}
		return nil, g.fault("is no readable XML: %s", cut(err.Error()))
	}
	switch tok.(type) {
	case xml.StartElement:
		if g.depth++; g.depth > maxXMLDepth {
			return nil, g.fault("elements nest deeper than %d", maxXMLDepth)
		}
	case xml.EndElement:
		g.depth--
	}
	return tok, nil
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && (a.Name.Space == "" || name != "id") {
			return a.Value
		}
	}
	return ""
}

// open reads up to the start of the graph.
func (g *graphmlSource) open() error {
	root := false
	for {
		tok, err := g.token()
		if err != nil {
			return err
		}
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		if !root {
			if e.Name.Local != "graphml" {
				return g.fault("is no GraphML: the document is a %s", quote(e.Name.Local))
			}
			root = true
			continue
		}
		switch e.Name.Local {
		case "key":
			if err := g.key(e); err != nil {
				return err
			}
		case "graph":
			switch d := attribute(e, "edgedefault"); d {
			case "directed":
				g.directed = true
			case "undirected", "":
			default:
				return g.fault("edgedefault is %s, not directed or undirected", quote(d))
			}
			return nil
		default:
			if err := g.skip(); err != nil {
				return err
			}
		}
	}
}

// skip reads up to the end of the element that was begun last.
func (g *graphmlSource) skip() error {
	for depth := g.depth; g.depth >= depth; {
		if _, err := g.token(); err != nil {
			return err
		}
	}
	return nil
}

// content reads the text of the element that was begun last.
func (g *graphmlSource) content() (string, error) {
	var text strings.Builder
	for depth := g.depth; g.depth >= depth; {
		tok, err := g.token()
		if err != nil {
			return "", err
		}
		if chars, ok := tok.(xml.CharData); ok {
			if text.Len()+len(chars) > maxRecord {
				return "", &Error{File: g.in.name, Line: g.line, Msg: errLongToken.Error(), Err: ErrLimit}
			}
			text.Write(chars)
		}
	}
	return strings.TrimSpace(text.String()), nil
}

// key takes a key element.
func (g *graphmlSource) key(e xml.StartElement) error {
	k := graphKey{id: attribute(e, "id"), name: attribute(e, "attr.name"), domain: attribute(e, "for"), boolean: attribute(e, "attr.type") == "boolean"}
	if k.id == "" {
		return g.fault("a key has no id")
	}
	if k.name == "" {
		k.name = k.id
	}
	for depth := g.depth; g.depth >= depth; {
		tok, err := g.token()
		if err != nil {
			return err
		}
		if e, ok := tok.(xml.StartElement); ok {
			if e.Name.Local != "default" {
				err = g.skip()
			} else if k.fallback, err = g.content(); err == nil {
				k.hasFallback = true
				k.fallback, err = g.value(&k, k.fallback)
			}
			if err != nil {
				return err
			}
		}
	}
	domain := "node"
	if g.edges {
		domain = "edge"
	}
	if k.domain != domain && k.domain != "all" && k.domain != "" {
		return nil
	}
	if slices.ContainsFunc(g.keys, func(other graphKey) bool { return other.id == k.id }) {
		return g.fault("the key %s is declared twice", quote(k.id))
	}
	g.keys = append(g.keys, k)
	return nil
}

// value brings booleans to 0 and 1.
func (g *graphmlSource) value(k *graphKey, text string) (string, error) {
	if !k.boolean || text == "" {
		return text, nil
	}
	switch strings.ToLower(text) {
	case "true", "1":
		return "1", nil
	case "false", "0":
		return "0", nil
	}
	return "", &Error{File: g.in.name, Line: g.line, Column: k.name, Value: text, Msg: "is no boolean", Hint: "true, false, 1 or 0"}
}

// names are the columns of the table.
func (g *graphmlSource) names() []string {
	names := []string{"id"}
	if g.edges {
		names = []string{"source", "target"}
	}
	for _, k := range g.keys {
		names = append(names, k.name)
	}
	return names
}

func (g *graphmlSource) next(_ context.Context, t *table) error {
	if g.back {
		g.back = false
		t.scan.fields = t.scan.fields[:0]
		t.scan.startRow(t.scan.start)
		t.scan.putString(g.values[1])
		t.scan.putString(g.values[0])
		for _, v := range g.values[2:] {
			t.scan.putString(v)
		}
		return nil
	}
	for !g.done {
		tok, err := g.token()
		if err != nil {
			return err
		}
		switch e := tok.(type) {
		case xml.EndElement:
			if e.Name.Local == "graph" {
				g.done = true
			}
		case xml.StartElement:
			switch {
			case e.Name.Local == "edge" && g.edges, e.Name.Local == "node" && !g.edges:
				line := g.line
				directed, err := g.element(e)
				if err != nil {
					return err
				}
				t.scan.startRow(line)
				for _, v := range g.values {
					t.scan.putString(v)
				}
				g.back = g.edges && g.both && !directed && g.values[0] != g.values[1]
				return nil
			case e.Name.Local == "hyperedge":
				return g.fault("hyperedges are not read")
			case e.Name.Local == "key":
				return g.fault("a key inside the graph: keys come before it")
			}
			if err := g.skipPart(); err != nil {
				return err
			}
		}
	}
	return g.rest()
}

// skipPart is skip, but a graph in a graph is refused.
func (g *graphmlSource) skipPart() error {
	for depth := g.depth; g.depth >= depth; {
		tok, err := g.token()
		if err != nil {
			return err
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "graph" {
			return g.fault("graphs inside nodes are not read")
		}
	}
	return nil
}

// rest reads up to the end of the document: io.EOF.
func (g *graphmlSource) rest() error {
	for g.depth > 0 {
		tok, err := g.token()
		if err != nil {
			return err
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "graph" {
			return g.fault("the file holds a second graph: only one is read")
		}
	}
	for {
		tok, err := g.token()
		if err != nil {
			return err
		}
		chars, isText := tok.(xml.CharData)
		if _, begins := tok.(xml.StartElement); begins || isText && len(bytes.TrimSpace(chars)) > 0 {
			return g.fault("goes on behind the document")
		}
	}
}

// element takes a node or an edge with its data into values.
func (g *graphmlSource) element(e xml.StartElement) (directed bool, err error) {
	fixed := []string{attribute(e, "id")}
	if g.edges {
		fixed = []string{attribute(e, "source"), attribute(e, "target")}
	}
	g.values = append(g.values[:0], fixed...)
	g.given = append(g.given[:0], make([]bool, len(g.keys))...)
	for i := range g.keys {
		g.values = append(g.values, g.keys[i].fallback)
	}
	switch d := attribute(e, "directed"); d {
	case "":
		directed = g.directed
	case "true", "1":
		directed = true
	case "false", "0":
	default:
		return false, g.fault("directed is %s, not true or false", quote(d))
	}
	for depth := g.depth; g.depth >= depth; {
		tok, err := g.token()
		if err != nil {
			return false, err
		}
		part, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		switch part.Name.Local {
		case "graph":
			return false, g.fault("graphs inside nodes are not read")
		case "data":
			id := attribute(part, "key")
			at := slices.IndexFunc(g.keys, func(k graphKey) bool { return k.id == id })
			if at < 0 {
				return false, g.fault("no key %s is declared for this element", quote(id))
			}
			if g.given[at] {
				return false, g.fault("the element has two data of the key %s", quote(id))
			}
			g.given[at] = true
			text, err := g.content()
			if err != nil {
				return false, err
			}
			if g.values[len(fixed)+at], err = g.value(&g.keys[at], text); err != nil {
				return false, err
			}
		default:
			if err := g.skipPart(); err != nil {
				return false, err
			}
		}
	}
	return directed, nil
}
