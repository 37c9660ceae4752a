package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prelift/prelift/snapshot"
)

// The names by which the columns of a triple file with a header are known.
var (
	headNames     = append([]string{"head", "h", "subject"}, srcNames...)
	relationNames = []string{"relation", "rel", "r", "predicate"}
	tailNames     = append([]string{"tail", "t", "object"}, dstNames...)
)

// openTriples opens a text file of head, relation, tail: the columns of those names or numbers that the options say, else of
// the names above if a header has all three, else the first three. A .txt file with tabs in its first line is read as tsv, so
// that names may hold blanks.
func openTriples(ctx context.Context, opt *Options, path, role string) (*table, error) {
	if role != roleEdges {
		return nil, &Error{File: opt.nameOf(path), Msg: "is a triple file: it can give edges only"}
	}
	isHeader := opt.Header == HeaderYes || opt.Header == HeaderAuto && (byName(opt.SrcCol) || byName(opt.RelCol) || byName(opt.DstCol))
	t, err := openText(ctx, opt, path, role, func(t *table) error {
		line, _, _ := bytes.Cut(t.in.carry, []byte{'\n'})
		if t.format = FormatAuto; bytes.IndexByte(line, '\t') >= 0 && opt.Delimiter == "" {
			t.format = FormatTSV
		}
		d := detectDialect(t.format, opt.Delimiter, t.in.name, t.in.carry)
		s := scanner{dialect: d}
		s.reset(append(bytes.TrimRight(slices.Clone(line), "\r"), '\n'), 0, 1)
		if kind, err := s.next(); opt.Header == HeaderAuto && err == nil && kind == kindRow {
			var first []string
			for i := range s.fields {
				first = append(first, string(s.field(i)))
			}
			isHeader = isHeader || find(first, headNames) >= 0 && find(first, relationNames) >= 0 && find(first, tailNames) >= 0
		}
		if t.header = HeaderNo; isHeader {
			t.header = HeaderYes
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.report.Format = FormatTriples
	if t.width > 0 && t.width < 3 {
		t.close()
		return nil, t.headError(t.triplesHint(), "expected head, relation and tail, got %d %s", t.width, plural(t.width, "field"))
	}
	if t.width > 0 {
		if err := t.nameTriples(); err != nil {
			t.close()
			return nil, err
		}
	}
	return t, nil
}

// nameTriples settles where head, relation and tail are, and calls those that no option names src, relation and dst.
func (t *table) nameTriples() error {
	var at [3]int
	roles := [3]struct {
		spec, name string
		known      []string
	}{{t.opt.SrcCol, "src", headNames}, {t.opt.RelCol, "relation", relationNames}, {t.opt.DstCol, "dst", tailNames}}
	for i, r := range roles {
		var err error
		if at[i], err = t.column(r.spec, r.known, i, false); err != nil {
			return err
		}
	}
	t.names = slices.Clone(t.names)
	if t.names == nil {
		t.names = make([]string, t.width)
	}
	for i, r := range roles {
		if !byName(r.spec) {
			t.names[at[i]] = r.name
		}
	}
	t.relCol = at[1]
	return nil
}

// triplesHint guesses why a row hasn't three fields.
func (t *table) triplesHint() string {
	if t.width == 1 && isInt(t.firsts[0][0]) {
		return "a count? --format openke reads numbered triples"
	}
	return t.oneFieldHint()
}

// TripleFiles takes train=F,valid=F,test=F, or one file, apart: the file of the training triples, and the lists as
// Options.HoldoutEdges wants them.
func TripleFiles(spec string) (train, lists string, err error) {
	files, isList, err := parseLists("triples", spec)
	switch {
	case err != nil:
		return "", "", err
	case !isList:
		return spec, "", nil
	}
	var others []string
	for _, f := range files {
		if f.part == snapshot.PartTrain {
			train = f.path
		} else {
			others = append(others, partNames[f.part]+"="+f.path)
		}
	}
	if train == "" {
		return "", "", &Error{Err: ErrOption, Msg: fmt.Sprintf("triples: %s names no training triples", quote(spec)), Hint: "train=FILE,valid=FILE,test=FILE"}
	}
	return train, strings.Join(others, ","), nil
}

// IsOpenKE reports whether a file of triples is one of numbered ones, which are known by their name and by the list of entities beside it.
func IsOpenKE(path string) bool {
	return slices.Contains(openKENames, bareName(path)) && isFile(filepath.Join(filepath.Dir(path), entitiesFile))
}

// FilesBeside returns the files that are read with an edge file, of a format as Options.Format has it, since they lie beside it: the lists
// of names of numbered triples. nil for any other.
func FilesBeside(format, path string) []string {
	if path == stdinPath || format != FormatOpenKE && (format != FormatAuto || !IsOpenKE(path)) {
		return nil
	}
	dir := filepath.Dir(path)
	return []string{filepath.Join(dir, entitiesFile), filepath.Join(dir, relationsFile)}
}

// The lists of names beside numbered triples.
const (
	entitiesFile  = "entity2id.txt"
	relationsFile = "relation2id.txt"
)

// openKENames are the files of numbered triples that are known by name.
var openKENames = []string{"train" + openKEEnding, "valid" + openKEEnding, "test" + openKEEnding}

const openKEEnding = "2id.txt"

// openOpenKE opens numbered triples as OpenKE has them (Han et al., OpenKE, 2018): a count in line 1, then head, tail,
// relation as numbers; entity2id.txt and relation2id.txt beside it hold a count and name, number. The ids are the
// names. As a node table it is entity2id.txt, in the order of the numbers.
func openOpenKE(ctx context.Context, opt *Options, path, role string) (*table, error) {
	dir := filepath.Dir(path)
	entities, err := readNumbered(ctx, opt, filepath.Join(dir, entitiesFile))
	if err != nil {
		return nil, err
	}
	if role == roleNodes {
		t := newSourceTable(opt, filepath.Join(dir, entitiesFile), role, FormatOpenKE, []string{"id"}, false, &memorySource{n: entities.len(), put: func(i int, s *scanner) {
			s.start = entities.lines[i]
			s.put(entities.name(i))
		}})
		t.fixedID = true
		return t, nil
	}
	if role != roleEdges {
		return nil, &Error{File: opt.nameOf(path), Msg: "holds numbered triples: it can give edges only"}
	}
	relations, err := readNumbered(ctx, opt, filepath.Join(dir, relationsFile))
	if err != nil {
		return nil, err
	}
	text, err := openCounted(ctx, opt, path, 3)
	if err != nil {
		return nil, err
	}
	t := newSourceTable(opt, path, role, FormatOpenKE, []string{"src", "dst", "relation"}, false, &openKESource{text: text, entities: entities, relations: relations})
	t.in, t.relCol = text.in, 2
	return t, nil
}

// openCounted opens a text file with a count in its first line and rows of that many fields.
func openCounted(ctx context.Context, opt *Options, path string, width int) (*table, error) {
	t, err := openText(ctx, opt, path, roleEdges, func(t *table) error {
		lines := bytes.SplitN(t.in.carry, []byte{'\n'}, 3)
		if t.format = FormatSNAP; len(lines) > 1 && bytes.IndexByte(lines[1], '\t') >= 0 {
			t.format = FormatTSV
		}
		t.head = func(first []string) (int, error) {
			v, ok := snapshot.CanonicalInt([]byte(first[0]))
			if !ok || v < 0 || len(first) != 1 {
				return 0, t.headError("files in OpenKE's form begin with their number of rows", "is no count: %s", quote(strings.Join(first, " ")))
			}
			t.wantRows = v
			return width, nil
		}
		return nil
	})
	if err == nil && t.wantRows < 0 {
		t.close()
		return nil, &Error{File: t.in.name, Msg: "is empty: no count in line 1"}
	}
	return t, err
}

// numbered is the content of entity2id.txt or relation2id.txt: names by number.
type numbered struct {
	file  string
	text  []byte
	names []uint64 // packed spans of text
	lines []int64
}

func (n *numbered) len() int          { return len(n.names) }
func (n *numbered) name(i int) []byte { return unpack(n.text, n.names[i]) }

// readNumbered reads name, number rows; the numbers must be 0 to the count-1, each once.
func readNumbered(ctx context.Context, opt *Options, path string) (*numbered, error) {
	t, err := openCounted(ctx, opt, path, 2)
	if err != nil {
		return nil, err
	}
	defer t.close()
	out := &numbered{file: t.in.name}
	var order []int64
	for {
		ok, err := t.next(ctx)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		name := t.scan.field(0)
		if err := checkID(name, t.in.name, t.scan.start, "name"); err != nil {
			return nil, err
		}
		v, ok := snapshot.CanonicalInt(t.scan.field(1))
		if !ok || v < 0 || v >= t.wantRows {
			return nil, &Error{File: t.in.name, Line: t.scan.start, Column: "number", Value: string(t.scan.field(1)), Msg: fmt.Sprintf("is out of 0..%d", t.wantRows-1)}
		}
		off := len(out.text)
		out.text = append(out.text, name...)
		out.names = append(out.names, pack(span{off, len(out.text)}))
		out.lines = append(out.lines, t.scan.start)
		order = append(order, v)
	}
	if err := t.checkRows(); err != nil {
		return nil, err
	}
	names, lines := make([]uint64, len(order)), make([]int64, len(order))
	for i, v := range order {
		if lines[v] != 0 {
			return nil, &Error{File: t.in.name, Line: out.lines[i], Column: "number", Value: fmt.Sprint(v), Msg: fmt.Sprintf("is given twice, first in line %d", lines[v])}
		}
		names[v], lines[v] = out.names[i], out.lines[i]
	}
	out.names, out.lines = names, lines
	return out, nil
}

// openKESource gives triples by name.
type openKESource struct {
	text                *table
	entities, relations *numbered
}

func (o *openKESource) close() {} // the table closes the input

func (o *openKESource) next(ctx context.Context, t *table) error {
	ok, err := o.text.next(ctx)
	if err != nil {
		return err
	}
	if !ok {
		if err := o.text.checkRows(); err != nil {
			return err
		}
		return io.EOF
	}
	s := &o.text.scan
	t.scan.startRow(s.start)
	for i, from := range []*numbered{o.entities, o.entities, o.relations} {
		v, ok := snapshot.CanonicalInt(s.field(i))
		if !ok || v < 0 || v >= int64(from.len()) {
			what := [...]string{"head", "tail", "relation"}[i]
			e := &Error{File: t.in.name, Line: s.start, Column: what, Value: string(s.field(i)), Msg: fmt.Sprintf("is out of 0..%d", from.len()-1), Hint: "the numbers of " + from.file}
			if i == 2 {
				e.Msg = fmt.Sprintf("is a relation id out of 0..%d", from.len()-1)
				e.Hint = "the order of the columns is head, tail, relation"
			} else {
				e.Msg = fmt.Sprintf("is an entity id out of 0..%d", from.len()-1)
			}
			return e
		}
		t.scan.put(from.name(int(v)))
	}
	return nil
}

// openKEFiles finds a directory of numbered triples.
func openKEFiles(path string) []string {
	var files []string
	for _, name := range []string{"train" + openKEEnding, entitiesFile, relationsFile} {
		file := filepath.Join(path, name)
		if !isFile(file) {
			return nil
		}
		files = append(files, file)
	}
	return files
}

// OpenKETriples returns the triples of OpenKE's folder at path, as TripleFiles takes them; "" for any other path. Lists for valid and test
// may be missing.
func OpenKETriples(path string) string {
	if l, _, err := findLayout(path); err != nil || l.name != layoutOpenKE {
		return ""
	}
	var parts []string
	for _, part := range partNames[snapshot.PartTrain:] {
		if file := filepath.Join(path, part+openKEEnding); isFile(file) {
			parts = append(parts, part+"="+file)
		}
	}
	return strings.Join(parts, ",")
}

// layoutOpenKE is the name of the layout of OpenKE's folders.
const layoutOpenKE = "OpenKE"

// openOpenKESet makes the training triples the edges.
func openOpenKESet(_ context.Context, opt *Options, files []string) error {
	if len(opt.Edges) == 0 {
		opt.Edges, opt.Format = files[:1], FormatOpenKE
	}
	return nil
}
