package ingest

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"strconv"
	"strings"
)

var (
	npyMagic = []byte("\x93NUMPY")
	zipMagic = []byte("PK\x03\x04")
)

// maxNPYHeader bounds the text header of a .npy file; NumPy itself reads 10,000 bytes unless told otherwise.
const maxNPYHeader = 1 << 16

// matrix is an open two-dimensional array of the .npy format (numpy.lib.format versions 1 to 3), its header read and its
// size checked against the file's. Vectors count as one column.
type matrix struct {
	file, format string // name for messages; npy or npz
	rows, cols   int
	fortran      bool // column-major
	item         npyType
	dataBytes    int64
	r            io.Reader // at the data
	closers      []io.Closer
}

// npyType is an element type.
type npyType struct {
	kind byte // f, i, u, b
	size int  // bytes
	big  bool // big-endian
}

func (m *matrix) close() {
	for _, c := range m.closers {
		c.Close()
	}
}

// readHead returns the first bytes of a file, which messages call name.
func readHead(path, name string) ([]byte, error) {
	f, _, err := openRegular(path, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 6)
	n, _ := io.ReadFull(f, head)
	return head[:n], nil
}

// openNPY opens a .npy file, which messages call name.
func openNPY(path, name string) (*matrix, error) {
	f, size, err := openRegular(path, name)
	if err != nil {
		return nil, err
	}
	m := &matrix{file: name, format: "npy", r: f, closers: []io.Closer{f}}
	if err := m.start(size); err != nil {
		f.Close()
		return nil, err
	}
	return m, nil
}

// maxDeflate is more than deflate can shrink anything: a match of 258 bytes takes at least 2 bits.
const maxDeflate = 1040

// openNPZ opens an array of a .npz file, which messages call name.
func openNPZ(path, name, member string) (*matrix, error) {
	f, size, err := openRegular(path, name)
	if err != nil {
		return nil, err
	}
	m := &matrix{file: name, format: "npz", closers: []io.Closer{f}}
	if err := m.openMember(f, size, member); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *matrix) openMember(f *os.File, size int64, member string) error {
	z, err := zip.NewReader(f, size)
	if err != nil {
		return m.fault(fmt.Sprintf("is not a readable .npz file: %v", err), "")
	}
	var found []string
	for _, file := range z.File {
		name := strings.TrimSuffix(file.Name, ".npy")
		if name != member {
			found = append(found, quote(name))
			continue
		}
		packed, plain := file.CompressedSize64, file.UncompressedSize64
		if packed > uint64(size) || plain > packed*maxDeflate+64 || plain > math.MaxInt64 {
			return m.fault(fmt.Sprintf("member %s claims %d bytes in %d", quote(member), plain, packed), "the file is damaged")
		}
		r, err := file.Open()
		if err != nil {
			return m.fault(fmt.Sprintf("member %s can't be read: %v", quote(member), err), "")
		}
		m.closers = append(m.closers, r)
		m.r = r
		return m.start(int64(plain))
	}
	if len(found) > 20 {
		found = append(found[:20], "...")
	}
	return m.fault(fmt.Sprintf("no member %s, found %s", quote(member), strings.Join(found, ", ")), "--feature-member chooses one")
}

func (m *matrix) fault(msg, hint string) error { return &Error{File: m.file, Msg: msg, Hint: hint} }

// start reads the header; size is how many bytes the array's file or member has.
func (m *matrix) start(size int64) error {
	var pre [12]byte
	if _, err := io.ReadFull(m.r, pre[:10]); err != nil || !bytes.Equal(pre[:6], npyMagic) {
		return m.fault("is not a .npy array", "")
	}
	length, headSize := int64(binary.LittleEndian.Uint16(pre[8:])), int64(10)
	switch pre[6] {
	case 1:
	case 2, 3:
		if _, err := io.ReadFull(m.r, pre[10:12]); err != nil {
			return m.fault("ends inside the .npy header", "")
		}
		length, headSize = int64(binary.LittleEndian.Uint32(pre[8:])), 12
	default:
		return m.fault(fmt.Sprintf("has .npy version %d.%d, known are 1, 2 and 3", pre[6], pre[7]), "")
	}
	if length > maxNPYHeader {
		return m.fault(fmt.Sprintf("has a .npy header of %d bytes", length), "structured arrays are not supported")
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(m.r, text); err != nil {
		return m.fault("ends inside the .npy header", "")
	}
	h, err := parseNPYHeader(string(text))
	if err != nil {
		return m.fault(err.Error(), "")
	}
	if m.item, err = parseNPYType(h.descr); err != nil {
		return m.fault(err.Error(), "numbers and booleans are")
	}
	switch len(h.shape) {
	case 1:
		m.rows, m.cols = h.shape[0], 1
	case 2:
		m.rows, m.cols = h.shape[0], h.shape[1]
	default:
		return m.fault(fmt.Sprintf("has %d dimensions, a feature matrix has 2", len(h.shape)), "")
	}
	m.fortran = h.fortran
	if m.cols == 0 {
		return m.fault("has no columns", "")
	}
	hi, count := bits.Mul64(uint64(m.rows), uint64(m.cols))
	hi2, want := bits.Mul64(count, uint64(m.item.size))
	have := size - headSize - length
	switch {
	case hi != 0 || hi2 != 0 || want > math.MaxInt64:
		return m.fault(fmt.Sprintf("has the shape (%d, %d), and the file holds %d data bytes", m.rows, m.cols, have), "the file is damaged")
	case int64(want) > have:
		return m.fault(fmt.Sprintf("file holds %d of %d data bytes", have, want), "copy or write the file again")
	case int64(want) < have:
		return m.fault(fmt.Sprintf("file holds %d bytes behind its %d data bytes", have-int64(want), want), "several arrays in one .npy file?")
	}
	m.dataBytes = int64(want)
	return nil
}

// npyHeader is the header of an array.
type npyHeader struct {
	descr   string
	fortran bool
	shape   []int
}

// parseNPYHeader reads a Python dictionary literal with the keys descr, fortran_order and shape.
func parseNPYHeader(text string) (npyHeader, error) {
	var h npyHeader
	bad := errors.New("has a .npy header that can't be read")
	s := strings.TrimSpace(text)
	s, ok := strings.CutPrefix(s, "{")
	if !ok {
		return h, bad
	}
	seen := map[string]bool{}
	for {
		s = strings.TrimLeft(s, " \t\n")
		if rest, ok := strings.CutPrefix(s, "}"); ok {
			if rest != "" || len(seen) != 3 {
				return h, bad
			}
			return h, nil
		}
		key, rest, ok := pyString(s)
		if !ok || seen[key] {
			return h, bad
		}
		seen[key] = true
		if s, ok = strings.CutPrefix(strings.TrimLeft(rest, " "), ":"); !ok {
			return h, bad
		}
		s = strings.TrimLeft(s, " ")
		switch key {
		case "descr":
			if strings.HasPrefix(s, "[") {
				return h, errors.New("structured arrays are not supported")
			}
			if h.descr, s, ok = pyString(s); !ok {
				return h, bad
			}
		case "fortran_order":
			if s, ok = strings.CutPrefix(s, "True"); ok {
				h.fortran = true
			} else if s, ok = strings.CutPrefix(s, "False"); !ok {
				return h, bad
			}
		case "shape":
			tuple, rest, ok := strings.Cut(s, ")")
			if tuple, ok = cutOpen(tuple, ok); !ok {
				return h, bad
			}
			for part := range strings.SplitSeq(tuple, ",") {
				part = strings.TrimSuffix(strings.TrimSpace(part), "L") // Python 2 wrote 3L
				if part == "" {
					continue
				}
				n, err := strconv.ParseUint(part, 10, 63)
				if err != nil || len(h.shape) == 32 {
					return h, bad
				}
				h.shape = append(h.shape, int(n))
			}
			s = rest
		default:
			return h, bad
		}
		s = strings.TrimLeft(s, " ")
		if rest, ok := strings.CutPrefix(s, ","); ok {
			s = rest
		} else if !strings.HasPrefix(s, "}") {
			return h, bad
		}
	}
}

func cutOpen(s string, ok bool) (string, bool) {
	s, open := strings.CutPrefix(s, "(")
	return s, ok && open
}

// pyString cuts a quoted Python string without escapes off s.
func pyString(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '\'' && s[0] != '"' {
		return "", "", false
	}
	end := strings.IndexByte(s[1:], s[0])
	if end < 0 || strings.Contains(s[1:1+end], `\`) {
		return "", "", false
	}
	return s[1 : 1+end], s[2+end:], true
}

// parseNPYType reads a type such as <f4.
func parseNPYType(descr string) (npyType, error) {
	t := strings.TrimLeft(descr, "<>=|")
	if t == "" || len(descr)-len(t) > 1 {
		return npyType{}, fmt.Errorf("has the unknown element type %s", quote(descr))
	}
	if t[0] == 'O' {
		return npyType{}, errors.New("object arrays are not supported")
	}
	switch t {
	case "f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1":
		return npyType{kind: t[0], size: int(t[1] - '0'), big: descr[0] == '>'}, nil
	}
	return npyType{}, fmt.Errorf("elements of type %s are not supported", quote(descr))
}

// decode reads len(out) elements from b.
func (t npyType) decode(out []float32, b []byte) {
	for i := range out {
		e := b[i*t.size : (i+1)*t.size]
		var word uint64
		for k := range e {
			shift := 8 * k
			if t.big {
				shift = 8 * (len(e) - 1 - k)
			}
			word |= uint64(e[k]) << shift
		}
		switch {
		case t.kind == 'b':
			out[i] = 0
			if word != 0 {
				out[i] = 1
			}
		case t.kind == 'u':
			out[i] = float32(word)
		case t.kind == 'i':
			unused := 64 - 8*t.size
			out[i] = float32(int64(word<<unused) >> unused)
		case t.size == 2:
			out[i] = halfToFloat(uint16(word))
		case t.size == 4:
			out[i] = math.Float32frombits(uint32(word))
		default:
			out[i] = float32(math.Float64frombits(word))
		}
	}
}

// halfToFloat converts an IEEE 754 binary16 value, exactly.
func halfToFloat(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exponent {
	case 0:
		v := float32(fraction) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(v))
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// fill reads the data into out, [rows, cols] in node order: row i belongs to node number[i].
func (m *matrix) fill(ctx context.Context, r *reader, number []int32, out []float32) error {
	inner, outer := m.cols, m.rows // runs in the file and their number
	if m.fortran {
		inner, outer = m.rows, m.cols
	}
	total := int64(inner) * int64(outer)
	const chunk = 1 << 17 // elements read at a time
	raw := make([]byte, min(total, chunk)*int64(m.item.size))
	values := make([]float32, min(total, chunk))
	for from := int64(0); from < total; from += chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(chunk, total-from)
		if _, err := io.ReadFull(m.r, raw[:n*int64(m.item.size)]); err != nil {
			return m.readFault(err)
		}
		m.item.decode(values[:n], raw)
		row, col := int(from/int64(inner)), int(from%int64(inner))
		for i := 0; i < int(n); {
			run := min(inner-col, int(n)-i)
			part := values[i : i+run]
			for k, v := range part {
				if v-v != 0 { // NaN and infinities
					return m.badValue(row, col+k, v)
				}
			}
			if m.fortran {
				for k, v := range part {
					out[int(number[col+k])*m.cols+row] = v
				}
			} else {
				copy(out[int(number[row])*m.cols+col:], part)
			}
			i, row, col = i+run, row+1, 0
		}
		r.progress(roleFeatures, (from+n)*int64(m.item.size))
	}
	// A zip member checks its CRC at its end.
	if n, err := m.r.Read(raw[:min(1, len(raw))]); err != nil && err != io.EOF || n > 0 {
		return m.readFault(err)
	}
	return nil
}

// badValue names a value that is not finite by its place in the array.
func (m *matrix) badValue(outer, inner int, v float32) error {
	row, col := outer, inner
	if m.fortran {
		row, col = inner, outer
	}
	return m.fault(fmt.Sprintf("row %d, column %d (from 0): %v is not a finite float32", row, col, v), "")
}

func (m *matrix) readFault(err error) error {
	if errors.Is(err, zip.ErrChecksum) {
		return m.fault("checksum doesn't match: the file is damaged", "")
	}
	return &Error{File: m.file, Msg: fmt.Sprintf("can't be read: %v", err), Err: err}
}
