package ingest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/prelift/prelift/snapshot"
)

// The roles of a file in a Report and in messages.
const (
	roleNodes    = "nodes"
	roleEdges    = "edges"
	roleFeatures = "features"
	roleLabels   = "labels"
	roleSplits   = "splits"
)

// The names by which columns are known, in lower case.
var (
	srcNames   = []string{"src", "source", "from"}
	dstNames   = []string{"dst", "target", "to"}
	weightName = []string{"weight"}
	idNames    = []string{"id", "node", "node_id", "nodeid", ":id"}
	classNames = []string{"label", "labels", "class", "y"}
	labelNames = append(slices.Clone(classNames), "target", "value") // in a label table
	splitName  = []string{"split"}
	otherNames = []string{"feature"}
)

// table is a text file read as rows.
type table struct {
	opt    *Options
	in     *input
	report *FileReport
	names  []string   // column names, nil without a header
	width  int        // fields of every row; 0 for a file without rows
	firsts [][]string // the first two rows, the header included

	headLine int64 // line of the first row

	scan     scanner
	row      int64  // data rows returned so far
	block    []byte // the block in scan; nil at the end
	rest     int    // offset in the first block behind the header
	line     int64  // its line
	onBlock  func() // called at each block, may be nil
	finished bool

	src      rowSource // where rows come from, if not from text
	numbered bool      // there is no id column: row i belongs to node i
	fixedID  bool      // the first column is the id, whatever IDCol says
	relCol   int       // column of an edge table with the relation, unless RelCol says; -1 = none
	typeCol  int       // the same of a node table with the type
	format   string    // the dialect, in place of Options.Format
	header   string    // in place of the header options
	// head, if set, says what the first row of the file is: not data, but a line before it. It returns the number of
	// fields of the rows to come.
	head     func(first []string) (width int, err error)
	wantRows int64  // rows the file says it has; -1 = it doesn't say
	wantFile string // which other file says so
}

// openTable opens a table of any format.
func openTable(ctx context.Context, opt *Options, path, role string) (*table, error) {
	if open := opt.sources[path]; open != nil {
		return open(ctx, opt, role)
	}
	kind, err := kindOf(opt, path, role)
	if err != nil {
		return nil, err
	}
	if open := openers[kind]; open != nil {
		return open(ctx, opt, path, role)
	}
	return openText(ctx, opt, path, role, nil)
}

// openText opens a text file and settles its dialect and header. set, if not nil, changes the table before that.
func openText(ctx context.Context, opt *Options, path, role string, set func(*table) error) (*table, error) {
	in, err := openInput(opt, path)
	if err != nil {
		return nil, err
	}
	if err := foreign(in, role == roleEdges && opt.Format == FormatAuto); err != nil {
		in.close()
		return nil, err
	}
	t := &table{opt: opt, in: in, report: &FileReport{Name: in.name, Role: role}, relCol: -1, typeCol: -1, wantRows: -1}
	if want, ok := opt.wantRows[path]; ok {
		t.wantRows, t.wantFile = want.rows, want.file
	}
	if set != nil {
		err = set(t)
	}
	if err == nil {
		err = t.open(ctx)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *table) close() {
	if t.src != nil {
		t.src.close()
	}
	t.in.close()
}

// open reads the first block and looks at its first two rows.
func (t *table) open(ctx context.Context) error {
	format, header := FormatAuto, t.opt.TableHeader
	if t.report.Role == roleEdges {
		format, header = t.opt.Format, t.opt.Header
	}
	format, header = cmp.Or(t.format, format), cmp.Or(t.header, header)
	t.scan.dialect = detectDialect(format, t.opt.Delimiter, t.in.name, t.in.carry)
	t.scan.file = t.in.name
	t.report.Format = t.scan.name
	var blank, comments int64
	var err error
	for size := t.opt.blockSize; ; size *= 2 {
		if t.block, t.line, err = t.in.next(ctx, &t.scan.dialect, t.block[:0], size); err == io.EOF {
			if header == HeaderYes {
				return &Error{File: t.in.name, Msg: "is empty: no header"}
			}
			t.block = nil
			t.scan.reset(nil, 0, 1)
			return nil
		} else if err != nil {
			return err
		}
		if blank, comments, err = t.look(); err != nil {
			return err
		}
		if len(t.firsts) == 2 || t.in.atEnd() || size >= maxRecord {
			break
		}
		t.in.unread(t.block, t.line)
		t.block = nil
	}
	headerEnd, headerLine := t.scan.pos, t.scan.line
	if len(t.firsts) == 0 {
		if header == HeaderYes {
			return &Error{File: t.in.name, Msg: "is empty: no header"}
		}
		t.rewind(0, t.line)
		return nil
	}
	if t.head != nil {
		if t.width, err = t.head(t.firsts[0]); err != nil {
			return err
		}
		t.report.BlankLines, t.report.CommentLines = blank, comments
		t.rewind(headerEnd, headerLine)
		return nil
	}
	t.width = len(t.firsts[0])
	var isHeader bool
	if t.report.Role == roleEdges {
		isHeader, err = t.edgeHeader(header)
	} else {
		isHeader, err = t.tableHeader(header)
	}
	if err != nil {
		return err
	}
	if !isHeader {
		t.rewind(0, t.line)
		return nil
	}
	t.names, t.report.Header = t.firsts[0], true
	t.report.BlankLines, t.report.CommentLines = blank, comments
	t.rewind(headerEnd, headerLine)
	return nil
}

// look reads the first two rows of the first block, counts the lines before them and leaves the scanner behind the
// first. A fault in the second row is for later to say.
func (t *table) look() (blank, comments int64, err error) {
	t.firsts = nil
	t.scan.reset(t.block, 0, t.line)
	var pos int
	var line int64
	for len(t.firsts) < 2 && t.scan.pos < t.scan.end {
		kind, err := t.scan.next()
		switch {
		case err != nil && len(t.firsts) == 0:
			return 0, 0, err
		case err != nil:
			t.firsts = append(t.firsts, nil)
		case kind == kindRow:
			t.firsts = append(t.firsts, t.fieldTexts())
			if len(t.firsts) == 1 {
				t.headLine, pos, line = t.scan.start, t.scan.pos, t.scan.line
			}
		case len(t.firsts) > 0:
		case kind == kindBlank:
			blank++
		case kind == kindComment:
			comments++
		}
	}
	t.scan.pos, t.scan.line = pos, line
	return blank, comments, nil
}

// rewind makes the next row the one at pos of the first block. Fields put behind the block by a first look are dropped.
func (t *table) rewind(pos int, line int64) {
	t.rest, t.line = pos, line
	t.scan.reset(t.block, pos, line)
}

func (t *table) fieldTexts() []string {
	texts := make([]string, len(t.scan.fields))
	for i := range texts {
		texts[i] = string(t.scan.field(i))
	}
	return texts
}

// headError is an Error about the file's first row.
func (t *table) headError(hint, format string, args ...any) error {
	return &Error{File: t.in.name, Line: t.headLine, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

func is(name string, names []string) bool { return slices.Contains(names, strings.ToLower(name)) }

// find returns the first column of any of the names, or -1.
func find(columns, names []string) int {
	return slices.IndexFunc(columns, func(c string) bool { return is(c, names) })
}

// byName reports whether a column option is a name, which needs a header.
func byName(spec string) bool {
	if spec == "" {
		return false
	}
	_, err := strconv.Atoi(spec)
	return err != nil
}

// looksLikeName reports whether a field could well be a column name: it starts with a letter, _ or :.
func looksLikeName(s string) bool {
	return s != "" && (s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z' || s[0] == '_' || s[0] == ':')
}

func isInt(s string) bool { _, ok := snapshot.CanonicalInt([]byte(s)); return ok }

// at returns field i, or "" if there is none.
func at(row []string, i int) string {
	if i >= 0 && i < len(row) {
		return row[i]
	}
	return ""
}

// edgeHeader decides whether the first row of an edge file is a header (the rule is in the package comment).
func (t *table) edgeHeader(mode string) (bool, error) {
	first := t.firsts[0]
	hasSrc, hasDst := find(first, srcNames) >= 0, find(first, dstNames) >= 0
	named := byName(t.opt.SrcCol) || byName(t.opt.DstCol) || byName(t.opt.WeightCol) && t.opt.WeightCol != WeightNone
	switch mode {
	case HeaderYes:
		return true, nil
	case HeaderNo:
		if hasSrc && hasDst {
			t.report.warnf("the first row %s looks like a header but is read as an edge, as asked", quote(strings.Join(first, string(t.sep()))))
		}
		return false, nil
	}
	if hasSrc && hasDst || named {
		return true, nil
	}
	if len(first) == 1 {
		return false, t.headError(t.oneFieldHint(), "no column src: the first row has 1 field")
	}
	if hasSrc || hasDst {
		what, lacks := "src", "dst"
		if hasDst {
			what, lacks = lacks, what
		}
		return false, t.headError("say which with --header and --src-col, --dst-col", "can't tell whether this is a header: it has a name for %s and none for %s", what, lacks)
	}
	src, dst := position(t.opt.SrcCol, 0), position(t.opt.DstCol, 1)
	words := looksLikeName(at(first, src)) || looksLikeName(at(first, dst))
	if words && len(t.firsts) > 1 && isInt(at(t.firsts[1], src)) && isInt(at(t.firsts[1], dst)) {
		return false, t.headError("say which with --header yes or no, and --src-col, --dst-col", "can't tell whether this is a header: words here, integers in the next row")
	}
	if words {
		t.report.noticef("no header found: the first row %s is read as an edge", quote(strings.Join(first, string(t.sep()))))
	}
	return false, nil
}

// tableHeader decides whether the first row of any other table is a header.
func (t *table) tableHeader(mode string) (bool, error) {
	first := t.firsts[0]
	known := slices.ContainsFunc(first, func(c string) bool {
		return is(c, idNames) || is(c, labelNames) || is(c, splitName) || is(c, otherNames) || isFeatureName(c)
	})
	named := byName(t.opt.IDCol) && slices.Contains(first, t.opt.IDCol)
	switch t.report.Role {
	case roleNodes:
		named = named || byName(t.opt.IDCol) || t.opt.Labels == "" && byName(t.opt.LabelCol)
	case roleLabels:
		named = named || byName(t.opt.LabelCol)
	}
	switch mode {
	case HeaderYes:
		return true, nil
	case HeaderNo:
		if known {
			t.report.warnf("the first row %s looks like a header but is read as data, as asked", quote(strings.Join(first, string(t.sep()))))
		}
		return false, nil
	}
	if known || named {
		return true, nil
	}
	id := position(t.opt.IDCol, 0)
	words := looksLikeName(at(first, id))
	if words && len(t.firsts) > 1 && isInt(at(t.firsts[1], id)) {
		return false, t.headError("say which with --table-header yes or no", "can't tell whether this is a header: a word here, an integer in the next row")
	}
	if words {
		t.report.noticef("no header found: the first row %s is read as data", quote(strings.Join(first, string(t.sep()))))
	}
	return false, nil
}

func (t *table) sep() byte {
	if t.scan.blanks {
		return ' '
	}
	return t.scan.delim
}

// oneFieldHint guesses why a row of text has one field.
func (t *table) oneFieldHint() string {
	if len(t.firsts) == 0 || len(t.firsts[0]) == 0 {
		return ""
	}
	for _, c := range []byte{';', ',', '\t', '|'} {
		if strings.IndexByte(t.firsts[0][0], c) >= 0 {
			return fmt.Sprintf("fields separated by %q? use --delimiter", c)
		}
	}
	if strings.Contains(t.firsts[0][0], " ") {
		return "fields separated by blanks? use --format snap"
	}
	return ""
}

// position returns a column given by number from 0, or the default.
func position(spec string, fallback int) int {
	if n, err := strconv.Atoi(spec); err == nil {
		return n - 1
	}
	return fallback
}

// column resolves a column option, or else the known names, or else the position fallback (-1 = none, but an error
// if the table has a header and must is set).
func (t *table) column(spec string, names []string, fallback int, must bool) (int, error) {
	if spec != "" {
		if n, err := strconv.Atoi(spec); err == nil {
			if n < 1 || n > t.width {
				return 0, t.headError("", "no column %d: the first row has %d %s", n, t.width, plural(t.width, "field"))
			}
			return n - 1, nil
		}
		if i, err := t.unique([]string{spec}, false); i >= 0 || err != nil {
			return i, err
		}
		if i, err := t.unique([]string{strings.ToLower(spec)}, true); i >= 0 || err != nil {
			return i, err
		}
		return 0, t.headError(t.columnsHint(), "no column %q", spec)
	}
	if t.names != nil {
		if i, err := t.unique(names, true); i >= 0 || err != nil {
			return i, err
		}
		if must {
			return 0, t.headError(t.columnsHint(), "no column %s", strings.Join(names[:min(2, len(names))], "/"))
		}
	}
	if fallback >= t.width {
		return 0, t.headError("", "no column %s: the first row has %d %s", names[0], t.width, plural(t.width, "field"))
	}
	return fallback, nil
}

func (t *table) columnsHint() string {
	if t.names == nil {
		return "the file has no header"
	}
	if len(t.names) == 1 && len(t.firsts) > 0 { // of a text file
		return t.oneFieldHint()
	}
	shown := make([]string, 0, 8)
	for _, name := range t.names[:min(8, len(t.names))] {
		shown = append(shown, quote(name))
	}
	if len(t.names) > 8 {
		shown = append(shown, "...")
	}
	return "the columns are " + strings.Join(shown, ", ")
}

// unique returns the one column with any of the names, -1 if there is none, an error if there are several with the
// first name found.
func (t *table) unique(names []string, fold bool) (int, error) {
	for _, want := range names {
		found := -1
		for i, name := range t.names {
			if fold {
				name = strings.ToLower(name)
			}
			if name != want {
				continue
			}
			if found >= 0 {
				return 0, t.headError("choose by number", "column %q appears twice", want)
			}
			found = i
		}
		if found >= 0 {
			return found, nil
		}
	}
	return -1, nil
}

// idColumn resolves the id column of a table.
func (t *table) idColumn() (int, error) {
	switch {
	case t.numbered:
		return -1, nil
	case t.width == 0:
		return 0, nil
	case t.fixedID:
		t.wholes(wholeIDHint, 0)
		return 0, nil
	}
	spec := t.opt.IDCol
	if t.report.Role != roleNodes && !slices.Contains(t.names, spec) {
		spec = ""
	}
	id, err := t.column(spec, idNames, 0, false)
	if err == nil {
		t.wholes(wholeIDHint, id)
	}
	return id, err
}

// columnName is the name of column i for messages.
func (t *table) columnName(i int, otherwise string) string {
	if i >= 0 && i < len(t.names) && t.names[i] != "" {
		return t.names[i]
	}
	return otherwise
}

// noteUnused tells which columns are not used.
func (t *table) noteUnused(used ...int) {
	var names []string
	more := 0
	for i := range t.width {
		switch {
		case slices.Contains(used, i):
		case len(names) == 8:
			more++
		default:
			names = append(names, quote(t.columnName(i, strconv.Itoa(i+1))))
		}
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if len(names) > 0 {
		t.report.noticef("%s not used: %s", plural(len(names), "column"), strings.Join(names, ", "))
	}
}

// next moves to the next row, whose fields are then in t.scan, and reports whether there is one. The rows' lines
// are t.scan.start.
func (t *table) next(ctx context.Context) (bool, error) {
	if t.src != nil {
		return t.nextOfSource(ctx)
	}
	for {
		for t.scan.pos < t.scan.end {
			kind, err := t.scan.next()
			if err != nil {
				return false, err
			}
			switch kind {
			case kindBlank:
				t.report.BlankLines++
				continue
			case kindComment:
				t.report.CommentLines++
				continue
			}
			if len(t.scan.fields) != t.width {
				return false, t.scan.widthError(t.width)
			}
			t.row++
			return true, nil
		}
		if t.block == nil {
			t.finish()
			return false, nil
		}
		block, line, err := t.in.next(ctx, &t.scan.dialect, t.block[:0], t.opt.blockSize)
		if err == io.EOF {
			t.block = nil
			continue
		}
		if err != nil {
			return false, err
		}
		if t.width == 0 { // only blank and comment lines so far
			if err := t.lateFirst(block, line); err != nil {
				return false, err
			}
		}
		t.block = block
		t.scan.reset(block, 0, line)
		if t.onBlock != nil {
			t.onBlock()
		}
	}
}

// lateFirst refuses a file whose first row lies behind more than maxRecord bytes of blank and comment lines.
func (t *table) lateFirst(block []byte, line int64) error {
	s := scanner{dialect: t.scan.dialect, file: t.in.name}
	s.reset(block, 0, line)
	for s.pos < s.end {
		if kind, err := s.next(); err != nil {
			return err
		} else if kind == kindRow {
			return &Error{File: t.in.name, Line: s.start, Msg: "the first row comes after 64 MiB of blank and comment lines", Err: ErrLimit}
		}
	}
	return nil
}

// finish puts the counts into the report.
func (t *table) finish() {
	if t.finished {
		return
	}
	t.finished = true
	t.report.Rows = t.row
	t.report.Lines = t.in.line - 1
	if t.report.BlankLines > 0 {
		t.report.noticef("blank lines skipped: %d", t.report.BlankLines)
	}
	if t.row == 0 {
		t.report.noticef("no rows")
	}
}
