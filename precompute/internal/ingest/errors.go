package ingest

import (
	"errors"
	"fmt"
	"strings"
)

// ErrLimit is the cause of an Error that refuses an input for its size.
var ErrLimit = errors.New("over a limit")

// ErrOption is the cause of an Error about Options rather than an input file: a mistake of usage.
var ErrOption = errors.New("bad option")

// Error is a fault in an input file: where it is, what stands there and what is wrong with it.
type Error struct {
	File   string // base name, with folders where other files have the same; "" if the fault lies in no one file
	Line   int64  // physical line from 1; 0 if the fault lies in no one line
	Row    int64  // data row from 1, in place of Line in files without lines; 0 if the fault lies in no one row
	Column string // column name; "" if the fault lies in no one column
	Value  string // the field as written, if Column is set
	Msg    string // what is wrong, lower case; follows Value if Column is set
	Hint   string // what to do next; may be empty
	Err    error  // cause, may be nil
}

// maxShown is how many bytes of a value an error message shows.
const maxShown = 80

// Error gives the fault in one line: `edges.csv:4: field "dst": "12.5" is not an id in nodes.csv (hint)`.
func (e *Error) Error() string {
	var s strings.Builder
	if e.File != "" {
		s.WriteString(oneLine(e.File))
		if e.Line > 0 {
			fmt.Fprintf(&s, ":%d", e.Line)
		}
		s.WriteString(": ")
		if e.Row > 0 {
			fmt.Fprintf(&s, "row %d: ", e.Row)
		}
	}
	if e.Column != "" {
		fmt.Fprintf(&s, "field %s: %s ", quote(e.Column), quote(e.Value))
	}
	s.WriteString(e.Msg)
	if e.Hint != "" {
		fmt.Fprintf(&s, " (%s)", e.Hint)
	}
	return s.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// quote shows a value in double quotes on one line, cut at maxShown bytes.
func quote(s string) string {
	if len(s) > maxShown {
		return fmt.Sprintf("%q... (%d bytes)", s[:maxShown], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// oneLine makes a file name safe to print: quoted if it holds control characters.
func oneLine(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}
