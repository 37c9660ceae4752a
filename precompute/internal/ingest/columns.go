package ingest

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// columnKind is what the values of a column are.
type columnKind uint8

const (
	columnOther columnKind = iota // not read; an error if used
	columnInt
	columnUint
	columnFloat
	columnBool
	columnText // strings and bytes
	columnNull
)

// columnInfo describes a column of a columnar file.
type columnInfo struct {
	name     string
	typeName string // for messages
	kind     columnKind
	list     bool
	single   bool // columnFloat of at most 32 bits
	width    int  // of a list: values of every row, as its first row has
}

// columnValues are values of one column: those of a run of rows.
type columnValues struct {
	ints   []int64 // columnInt, columnUint (as bits), columnBool
	floats []float64
	text   []byte
	ends   []int // columnText: value i ends at text[ends[i]]
	null   []bool
	starts []int // list: row i has the values from starts[i] to starts[i+1]
}

func (v *columnValues) reset() {
	v.ints, v.floats, v.text, v.ends, v.null, v.starts = v.ints[:0], v.floats[:0], v.text[:0], v.ends[:0], v.null[:0], v.starts[:0]
}

// addText adds a value of columnText.
func (v *columnValues) addText(text []byte) {
	v.text = append(v.text, text...)
	v.ends = append(v.ends, len(v.text))
}

// addNull adds a null.
func (v *columnValues) addNull(kind columnKind) {
	switch kind {
	case columnFloat:
		v.floats = append(v.floats, 0)
	case columnText:
		v.ends = append(v.ends, len(v.text))
	default:
		v.ints = append(v.ints, 0)
	}
	v.null = append(v.null, true)
}

// appendExact writes float i of a column of ids, relations or classes as text: the integer that it is. ok is false for any
// other, and for integers so large that neighbours of them are the same float.
func (v *columnValues) appendExact(dst []byte, info *columnInfo, i int) (text []byte, ok bool) {
	limit := float64(1 << 53)
	if info.single {
		limit = 1 << 24
	}
	if f := v.floats[i]; f == math.Trunc(f) && math.Abs(f) < limit {
		return strconv.AppendInt(dst, int64(f), 10), true
	}
	return dst, false
}

// appendValue writes value i as text. Floats are rounded to float32 first, as every use of them as numbers is; those that don't
// fit, or would be 0, stay as they are, for the message.
func (v *columnValues) appendValue(dst []byte, kind columnKind, i int) []byte {
	switch kind {
	case columnInt:
		return strconv.AppendInt(dst, v.ints[i], 10)
	case columnUint:
		return strconv.AppendUint(dst, uint64(v.ints[i]), 10)
	case columnBool:
		return strconv.AppendInt(dst, v.ints[i], 10)
	case columnFloat:
		f := v.floats[i]
		if f == 0 {
			return append(dst, '0') // -0 too
		}
		if g := float32(f); g != 0 && !math.IsInf(float64(g), 0) {
			return strconv.AppendFloat(dst, float64(g), 'g', -1, 32)
		}
		return strconv.AppendFloat(dst, f, 'g', -1, 64)
	case columnText:
		from := 0
		if i > 0 {
			from = v.ends[i-1]
		}
		return append(dst, v.text[from:v.ends[i]]...)
	}
	return dst
}

// columnReader reads a columnar file in runs of rows.
type columnReader interface {
	// read fills values[c] for the columns c that are used and returns the number of rows, io.EOF at the end.
	read(ctx context.Context, used []bool, values []columnValues) (int, error)
	// numRows is how many rows the file says it has, 0 if it doesn't. It may lie.
	numRows() int64
	close()
}

// columnarSource gives the rows of a columnar file. A list column is one field for each of its values, named name[0],
// name[1], and so on. Fields of columns that aren't used are empty.
type columnarSource struct {
	file   string
	cols   []columnInfo
	field  []fieldOf
	reader columnReader

	used   []bool   // by column
	exact  []string // by column: a hint if floats must be integers, for appendExact
	values []columnValues
	rows   int   // in values
	at     int   // of rows
	base   int64 // rows before
	nulls  []bool
}

// fieldOf says which value of which column a field is.
type fieldOf struct{ column, value int }

// maxListWidth bounds the fields of a list column.
const maxListWidth = 1 << 20

// newColumnarSource makes the source and the names of its fields. It reads the first rows to learn how wide lists are.
func newColumnarSource(ctx context.Context, file string, cols []columnInfo, reader columnReader) (*columnarSource, []string, error) {
	c := &columnarSource{file: file, cols: cols, reader: reader, used: make([]bool, len(cols)), exact: make([]string, len(cols)), values: make([]columnValues, len(cols))}
	for i, info := range cols {
		c.used[i] = info.kind != columnOther
	}
	err := c.fill(ctx)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	var names []string
	for i, info := range cols {
		if !info.list || info.kind == columnOther {
			c.field = append(c.field, fieldOf{i, 0})
			names = append(names, info.name)
			continue
		}
		if c.rows > 0 {
			cols[i].width = c.values[i].starts[1] - c.values[i].starts[0]
		}
		if cols[i].width > maxListWidth {
			return nil, nil, &Error{File: file, Line: 1, Column: info.name, Msg: fmt.Sprintf("is a list of %d values", cols[i].width), Err: ErrLimit}
		}
		for k := range cols[i].width {
			c.field = append(c.field, fieldOf{i, k})
			names = append(names, fmt.Sprintf("%s[%d]", info.name, k))
		}
	}
	c.nulls = make([]bool, len(c.field))
	return c, names, nil
}

// use says which fields are wanted.
func (c *columnarSource) use(fields []int) error {
	clear(c.used)
	for _, f := range fields {
		if f >= 0 {
			i := c.field[f].column
			if info := c.cols[i]; info.kind == columnOther {
				return &Error{File: c.file, Msg: fmt.Sprintf("column %s has the type %s, which is not read", quote(info.name), info.typeName)}
			}
			c.used[i] = true
		}
	}
	return nil
}

// wholes says that floats of the fields are read by appendExact; hint is for those that aren't integers.
func (c *columnarSource) wholes(fields []int, hint string) {
	for _, f := range fields {
		if f >= 0 {
			c.exact[c.field[f].column] = hint
		}
	}
}

func (c *columnarSource) fill(ctx context.Context) error {
	for i := range c.values {
		c.values[i].reset()
	}
	c.base += int64(c.rows)
	c.rows, c.at = 0, 0
	for c.rows == 0 {
		var err error
		if c.rows, err = c.reader.read(ctx, c.used, c.values); err != nil {
			return err
		}
	}
	return nil
}

func (c *columnarSource) next(ctx context.Context, t *table) error {
	if c.at == c.rows {
		if err := c.fill(ctx); err != nil {
			return err
		}
	}
	row := c.base + int64(c.at) + 1
	t.scan.startRow(row)
	anyNull := false
	for i, f := range c.field {
		off := len(t.scan.text)
		c.nulls[i] = false
		if c.used[f.column] {
			v, info, at := &c.values[f.column], &c.cols[f.column], c.at
			if info.list {
				if n := v.starts[at+1] - v.starts[at]; n != info.width {
					return &Error{File: c.file, Line: row, Msg: fmt.Sprintf("list %s has %d values, that of row 1 has %d", quote(info.name), n, info.width)}
				}
				at = v.starts[at] + f.value
			}
			exact := c.exact[f.column] != "" && info.kind == columnFloat
			switch {
			case v.null[at] || exact && math.IsNaN(v.floats[at]):
				c.nulls[i], anyNull = true, true
			case exact:
				var ok bool
				if t.scan.text, ok = v.appendExact(t.scan.text, info, at); !ok {
					return &Error{File: c.file, Line: row, Column: info.name, Value: strconv.FormatFloat(v.floats[at], 'g', -1, 64),
						Msg: "is a float that stands for no one integer", Hint: c.exact[f.column]}
				}
			default:
				t.scan.text = v.appendValue(t.scan.text, info.kind, at)
			}
		}
		t.scan.fields = append(t.scan.fields, span{off, len(t.scan.text)})
	}
	if anyNull {
		t.scan.nulls = c.nulls
	}
	c.at++
	return nil
}

// takeInts moves the rest of the rows at hand to an empty batch if they are plain: integer ids, numbers as weights, no
// nulls, no relations. It must give what next and take give; it returns false, and takes nothing, where they decide.
func (c *columnarSource) takeInts(ctx context.Context, t *table, cols edgeColumns, b *edgeBatch) (bool, error) {
	if c.at == c.rows {
		if err := c.fill(ctx); err != nil {
			return false, err
		}
	}
	src, dst := c.field[cols.src].column, c.field[cols.dst].column
	for _, i := range [...]int{src, dst} {
		if c.cols[i].kind != columnInt || c.cols[i].list || slices.Contains(c.values[i].null[c.at:], true) {
			return false, nil
		}
	}
	if cols.rel >= 0 {
		return false, nil
	}
	if cols.weight >= 0 {
		i := c.field[cols.weight].column
		v := &c.values[i]
		if c.cols[i].list || slices.Contains(v.null[c.at:], true) {
			return false, nil
		}
		for at := c.at; at < c.rows; at++ {
			var w float32
			switch c.cols[i].kind {
			case columnInt:
				w = float32(v.ints[at])
			case columnFloat:
				if w = float32(v.floats[at]); w == 0 && v.floats[at] != 0 {
					return false, nil // for addWeight to count
				}
			default:
				return false, nil
			}
			if !(w >= 0) || math.IsInf(float64(w), 0) {
				return false, nil
			}
			b.weights = append(b.weights, w+0)
		}
	}
	b.mark(c.base + int64(c.at) + 1)
	from, to := c.values[src].ints, c.values[dst].ints
	for at := c.at; at < c.rows; at++ {
		b.ints = append(b.ints, from[at], to[at])
	}
	b.rows = c.rows - c.at
	c.at = c.rows
	t.row += int64(b.rows)
	return true, nil
}

// readBytes is the share of the file's bytes that the rows so far took, 0 if that can't be told. Memory is reserved by
// it, so it isn't told for files that claim more rows than fit in twice their bytes.
func (c *columnarSource) readBytes(size int64) int64 {
	total := c.reader.numRows()
	if total <= 0 || total/2 > size {
		return 0
	}
	return int64(float64(size) * min(1, float64(c.base+int64(c.at))/float64(total)))
}

func (c *columnarSource) close() { c.reader.close() }
