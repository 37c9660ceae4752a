package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// openJSON opens a feature map {"node": [feature, ...], ...} as the sparse table node,feature. A row is a node.
func openJSON(_ context.Context, opt *Options, path, role string) (*table, error) {
	in, err := openInput(opt, path)
	if err != nil {
		return nil, err
	}
	if role != roleFeatures {
		in.close()
		return nil, &Error{File: in.name, Msg: "is a JSON file: it can give features only"}
	}
	t := newSourceTable(opt, path, role, kindJSON, []string{"node", "feature"}, true, nil)
	t.in = in
	dec := json.NewDecoder(io.MultiReader(bytes.NewReader(in.carry), &textReader{in}))
	dec.UseNumber()
	t.src, t.fixedID = &jsonSource{in: in, dec: dec, seen: map[string]bool{}}, true
	return t, nil
}

// textReader reads the text of an input behind its carry.
type textReader struct{ in *input }

func (r *textReader) Read(p []byte) (int, error) {
	if r.in.done {
		return 0, io.EOF
	}
	n, err := r.in.text.Read(p)
	if err != nil && err != io.EOF {
		err = r.in.fault(err)
	}
	return n, err
}

// jsonSource gives an entry for each feature in a list, and one without a feature for an empty list.
type jsonSource struct {
	in     *input
	dec    *json.Decoder
	node   string
	nodes  int64
	seen   map[string]bool // nodes
	inside bool            // a list
	empty  bool            // it had no entry yet
}

func (j *jsonSource) close() {} // the table closes the input

func (j *jsonSource) fault(msg, hint string) error {
	return &Error{File: j.in.name, Line: j.nodes, Msg: msg, Hint: hint}
}

// token reads the next token.
func (j *jsonSource) token() (json.Token, error) {
	t, err := j.dec.Token()
	if e := (*Error)(nil); err == nil || errors.As(err, &e) {
		return t, err
	}
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, j.fault("ends inside the map", "the file is cut")
	}
	return nil, j.fault("is no readable JSON: "+cut(err.Error()), "")
}

const jsonShape = `features come as {"node": [feature, ...], ...}`

func (j *jsonSource) next(_ context.Context, t *table) error {
	if j.nodes == 0 {
		if tok, err := j.token(); err != nil {
			return err
		} else if tok != json.Delim('{') {
			return j.fault("is no map", jsonShape)
		}
	}
	for {
		tok, err := j.token()
		if err != nil {
			return err
		}
		if j.inside {
			if tok == json.Delim(']') {
				j.inside = false
				if !j.empty {
					continue
				}
				t.scan.startRow(j.nodes)
				t.scan.putString(j.node)
				t.scan.put(nil)
				return nil
			}
			number, ok := tok.(json.Number)
			if !ok {
				return j.fault("node "+quote(j.node)+": a list holds what is no number", jsonShape)
			}
			j.empty = false
			t.scan.startRow(j.nodes)
			t.scan.putString(j.node)
			t.scan.putString(number.String())
			return nil
		}
		if tok == json.Delim('}') {
			if _, err := j.dec.Token(); err != io.EOF {
				return j.fault("goes on behind the map", jsonShape)
			}
			return io.EOF
		}
		j.nodes++
		j.node, _ = tok.(string)                          // keys are strings
		if strings.ContainsRune(j.node, utf8.RuneError) { // the library puts it for what is no character
			return j.fault("node "+quote(j.node)+" is no UTF-8, or has half a surrogate pair, or the sign U+FFFD for such", "write ids in UTF-8")
		}
		if j.seen[j.node] {
			return j.fault("node "+quote(j.node)+" is in the map twice", "")
		}
		j.seen[j.node] = true
		if tok, err = j.token(); err != nil {
			return err
		} else if tok != json.Delim('[') {
			return j.fault("node "+quote(j.node)+" has no list", jsonShape)
		}
		j.inside, j.empty = true, true
	}
}
