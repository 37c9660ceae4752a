package ingest

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// maxID is the longest id in bytes. It bounds the id map's length field.
const maxID = 1 << 20

// dialect says how a line of text is cut into fields.
type dialect struct {
	name     string
	delim    byte // csv, tsv
	quotes   bool // csv: RFC 4180 quoting, blanks around unquoted fields removed
	blanks   bool // snap: fields separated by runs of spaces and tabs
	comments bool // snap: lines that start with # or % are comments
}

var (
	dialectCSV  = dialect{name: FormatCSV, delim: ',', quotes: true}
	dialectTSV  = dialect{name: FormatTSV, delim: '\t'}
	dialectSNAP = dialect{name: FormatSNAP, blanks: true, comments: true}
)

// bareName is the lower-case base name without .gz or .zst.
func bareName(path string) string {
	name := strings.ToLower(filepath.Base(path))
	return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
}

// detectDialect picks the dialect of a text file. format is one of the text formats or auto; delimiter is Options.Delimiter.
func detectDialect(format, delimiter, name string, head []byte) dialect {
	csv := dialectCSV
	if delimiter != "" {
		csv.delim = delimiter[0]
	}
	if csv.delim == '\t' {
		csv = dialectTSV
	}
	switch format {
	case FormatCSV:
		return csv
	case FormatTSV:
		return dialectTSV
	case FormatSNAP:
		return dialectSNAP
	}
	switch filepath.Ext(bareName(name)) {
	case ".csv":
		return csv
	case ".tsv", ".tab":
		return dialectTSV
	}
	if delimiter != "" {
		return csv
	}
	switch filepath.Ext(bareName(name)) {
	case ".txt", ".edgelist", ".edges", ".el", ".snap", ".list":
		return dialectSNAP
	}
	line, _, _ := firstUnblank(head)
	switch {
	case len(line) > 0 && (line[0] == '#' || line[0] == '%'):
		return dialectSNAP
	case bytes.IndexByte(line, '\t') >= 0:
		return dialectTSV
	case bytes.IndexByte(line, ',') >= 0:
		return csv
	}
	return dialectSNAP
}

// firstUnblank returns the first line that isn't blank, what follows it, and its number.
func firstUnblank(text []byte) (line, rest []byte, number int64) {
	for number = 1; ; number++ {
		found := false
		if line, rest, found = bytes.Cut(text, []byte{'\n'}); !found || len(bytes.TrimSpace(line)) > 0 {
			return line, rest, number
		}
		text = rest
	}
}

// lastRecordEnd returns the offset behind the last whole record of buf, which starts at a record, or 0.
func (d *dialect) lastRecordEnd(buf []byte) int {
	if !d.quotes || bytes.IndexByte(buf, '"') < 0 {
		return bytes.LastIndexByte(buf, '\n') + 1
	}
	end, pos := 0, 0
	for {
		// At the start of a field.
		for pos < len(buf) && d.isBlank(buf[pos]) {
			pos++
		}
		if pos < len(buf) && buf[pos] == '"' {
			closing := closingQuote(buf, pos)
			if closing < 0 {
				return end
			}
			pos = closing + 1
		}
		for pos < len(buf) && buf[pos] != d.delim && buf[pos] != '\n' {
			pos++
		}
		if pos == len(buf) {
			return end
		}
		pos++
		if buf[pos-1] == '\n' {
			end = pos
		}
	}
}

// closingQuote returns the offset of the quote that closes the one at open, or -1.
func closingQuote(buf []byte, open int) int {
	for pos := open + 1; ; pos += 2 {
		i := bytes.IndexByte(buf[pos:], '"')
		if i < 0 {
			return -1
		}
		pos += i
		if pos+1 >= len(buf) || buf[pos+1] != '"' {
			return pos
		}
	}
}

// isBlank reports whether c is a blank that csv trims.
func (d *dialect) isBlank(c byte) bool { return c == ' ' || c == '\t' && d.delim != '\t' }

// span is the place of a field: text[off:end] of its block.
type span struct{ off, end int }

// rowKind says what a record turned out to be.
type rowKind uint8

const (
	kindRow rowKind = iota
	kindBlank
	kindComment
)

// scanner cuts a block of whole records into records.
type scanner struct {
	dialect
	file   string // for errors
	text   []byte // the block, and behind end fields with doubled quotes made single
	end    int    // end of the block
	pos    int    // start of the next record
	line   int64  // line number at pos
	fields []span // of the last record
	start  int64  // first line of the last record
	hasCR  bool
	hasQ   bool
	nulls  []bool // of the last record's fields; nil = none is null
}

// reset makes s start at pos of a block whose byte there is in line.
func (s *scanner) reset(block []byte, pos int, line int64) {
	s.text, s.end, s.pos, s.line = block, len(block), pos, line
	s.hasCR = bytes.IndexByte(block, '\r') >= 0
	s.hasQ = s.quotes && bytes.IndexByte(block, '"') >= 0
}

// field returns field i of the last record, valid until the next reset.
func (s *scanner) field(i int) []byte { return s.text[s.fields[i].off:s.fields[i].end] }

// next cuts the record at pos, which is before end.
func (s *scanner) next() (rowKind, error) {
	s.fields, s.start = s.fields[:0], s.line
	length := bytes.IndexByte(s.text[s.pos:s.end], '\n')
	off, end := s.pos, s.pos+length
	if s.hasQ && bytes.IndexByte(s.text[off:end], '"') >= 0 {
		return kindRow, s.quoted()
	}
	s.pos, s.line = end+1, s.line+1
	if s.hasCR {
		if end > off && s.text[end-1] == '\r' {
			end--
		}
		if bytes.IndexByte(s.text[off:end], '\r') >= 0 {
			return kindRow, s.loneCR()
		}
	}
	line := s.text[off:end]
	switch {
	case s.blanks:
		if s.comments && len(line) > 0 && (line[0] == '#' || line[0] == '%') {
			return kindComment, nil
		}
		for i := 0; ; {
			for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
				i++
			}
			if i == len(line) {
				break
			}
			from := i
			for i < len(line) && line[i] != ' ' && line[i] != '\t' {
				i++
			}
			s.fields = append(s.fields, span{off + from, off + i})
		}
		if len(s.fields) == 0 {
			return kindBlank, nil
		}
		return kindRow, nil
	case s.quotes:
		if f := s.trim(off, end); f.off == f.end {
			return kindBlank, nil
		}
		for {
			i := bytes.IndexByte(s.text[off:end], s.delim)
			if i < 0 {
				s.fields = append(s.fields, s.trim(off, end))
				return kindRow, nil
			}
			s.fields = append(s.fields, s.trim(off, off+i))
			off += i + 1
		}
	default:
		if len(line) == 0 {
			return kindBlank, nil
		}
		for {
			i := bytes.IndexByte(s.text[off:end], s.delim)
			if i < 0 {
				s.fields = append(s.fields, span{off, end})
				return kindRow, nil
			}
			s.fields = append(s.fields, span{off, off + i})
			off += i + 1
		}
	}
}

// trim removes the blanks that csv allows around an unquoted field.
func (s *scanner) trim(off, end int) span {
	for off < end && s.isBlank(s.text[off]) {
		off++
	}
	for off < end && s.isBlank(s.text[end-1]) {
		end--
	}
	return span{off, end}
}

// quoted cuts the csv record at pos, in which there is a quote.
func (s *scanner) quoted() error {
	pos := s.pos
	for {
		off := pos
		for s.isBlank(s.text[pos]) {
			pos++
		}
		if s.text[pos] == '"' {
			closing := closingQuote(s.text[:s.end], pos)
			if closing < 0 {
				return &Error{File: s.file, Line: s.line, Msg: "a quote is opened here and never closed", Hint: "double a quote inside a quoted field; a file without quoting is tsv"}
			}
			s.line += int64(bytes.Count(s.text[pos:closing], []byte{'\n'}))
			s.fields = append(s.fields, s.unescape(pos+1, closing))
			pos = closing + 1
			for s.isBlank(s.text[pos]) {
				pos++
			}
			if c := s.text[pos]; c == '\r' && s.text[pos+1] == '\n' {
				pos++
			} else if c != s.delim && c != '\n' {
				return &Error{File: s.file, Line: s.line, Msg: "text after a closing quote", Hint: "double a quote inside a quoted field"}
			}
		} else {
			for s.text[pos] != s.delim && s.text[pos] != '\n' {
				pos++
			}
			end := pos
			if s.text[pos] == '\n' && end > off && s.text[end-1] == '\r' {
				end--
			}
			f := s.trim(off, end)
			if bytes.IndexByte(s.text[f.off:f.end], '\r') >= 0 {
				return s.loneCR()
			}
			if bytes.IndexByte(s.text[f.off:f.end], '"') >= 0 {
				return &Error{File: s.file, Line: s.line, Msg: "a quote inside an unquoted field", Hint: "quote the whole field and double the quote; a file without quoting is tsv"}
			}
			s.fields = append(s.fields, f)
		}
		pos++
		if s.text[pos-1] == '\n' {
			s.pos, s.line = pos, s.line+1
			return nil
		}
	}
}

// unescape returns the quoted text [off,end) with doubled quotes made single; a changed field is put behind the block.
func (s *scanner) unescape(off, end int) span {
	if bytes.IndexByte(s.text[off:end], '"') < 0 {
		return span{off, end}
	}
	out := len(s.text)
	for off < end {
		i := bytes.IndexByte(s.text[off:end], '"')
		if i < 0 {
			s.text = append(s.text, s.text[off:end]...)
			break
		}
		s.text = append(s.text, s.text[off:off+i+1]...)
		off += i + 2
	}
	return span{out, len(s.text)}
}

func (s *scanner) loneCR() error {
	return &Error{File: s.file, Line: s.start, Msg: "a carriage return inside a line", Hint: "old Mac line ends? convert the file to LF"}
}

// widthError says that a row hasn't the width of the first row.
func (s *scanner) widthError(width int) error {
	return &Error{File: s.file, Line: s.start, Msg: fmt.Sprintf("expected %d %s, got %d", width, plural(width, "field"), len(s.fields)), Hint: s.widthHint(width)}
}

func (s *scanner) widthHint(width int) string {
	switch {
	case len(s.fields) < width:
		return ""
	case s.quotes && s.delim == ',':
		return "a decimal comma, or an unquoted comma in a field?"
	case s.blanks:
		return "blanks in an id? use a csv or tsv file"
	}
	return ""
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
