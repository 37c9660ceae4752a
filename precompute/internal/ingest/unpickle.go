package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"strconv"
)

// maxPickle bounds a pickle file: it is read whole, and a list of small integers grows about tenfold in memory.
const maxPickle = 256 << 20

// The values of a pickle. Integers are int64, floats float64, strings []byte, booleans bool, None nil.
type (
	pyTuple  []any
	pyList   struct{ items []any }
	pyDict   struct{ keys, values []any }
	pyGlobal string // a class or function among those known
	pyDtype  struct {
		item npyType
	}
	// pyArray is a numpy.ndarray.
	pyArray struct {
		shape   []int
		item    npyType
		fortran bool
		data    []byte
	}
	pyCSR struct{ state *pyDict }
)

// The classes and functions that the files hold; a pickle that names any other is refused.
const (
	pyObject      pyGlobal = "object"
	pyListType    pyGlobal = "list"
	pyDefaultDict pyGlobal = "collections.defaultdict"
	pyNdarray     pyGlobal = "numpy.ndarray"
	pyDtypeType   pyGlobal = "numpy.dtype"
	pyReconstruct pyGlobal = "numpy.core.multiarray._reconstruct"
	pyNewObject   pyGlobal = "copy_reg._reconstructor"
	pyCSRMatrix   pyGlobal = "scipy.sparse.csr_matrix"
)

var pyGlobals = map[string]pyGlobal{
	"__builtin__ object": pyObject, "builtins object": pyObject,
	"__builtin__ list": pyListType, "builtins list": pyListType,
	"collections defaultdict": pyDefaultDict,
	"numpy ndarray":           pyNdarray, "numpy dtype": pyDtypeType,
	"numpy.core.multiarray _reconstruct": pyReconstruct, "numpy._core.multiarray _reconstruct": pyReconstruct,
	"copy_reg _reconstructor": pyNewObject, "copyreg _reconstructor": pyNewObject,
	"scipy.sparse.csr csr_matrix": pyCSRMatrix, "scipy.sparse._csr csr_matrix": pyCSRMatrix,
}

// unpickler runs the pickle opcodes (pickletools of CPython describes them) of protocols 0 to 2 that build lists,
// tuples, dictionaries, numbers, strings, numpy arrays and scipy CSR matrices. It runs no code: what an opcode may
// build is listed above, everything else is refused.
type unpickler struct {
	b     []byte
	at    int
	stack []any
	marks []int // lengths of stack
	memo  map[uint32]any
}

var (
	errPickleCut   = errors.New("ends inside the pickle")
	errPickleStack = errors.New("is a damaged pickle: an opcode lacks its operands")
)

// readPickle reads a pickle file, which messages call name.
func readPickle(path, name string) (any, error) {
	f, size, err := openRegular(path, name)
	if err != nil {
		return nil, err
	}
	f.Close()
	if size > maxPickle {
		return nil, &Error{File: name, Msg: fmt.Sprintf("is a pickle of %d MiB, at most %d are read", size>>20, maxPickle>>20), Err: ErrLimit}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, &Error{File: name, Msg: openReason(err), Err: err}
	}
	v, err := unpickle(b)
	if err != nil {
		return nil, &Error{File: name, Msg: err.Error(), Hint: "only the pickles of Planetoid data sets are read"}
	}
	return v, nil
}

// unpickle returns the value of a pickle. It may share memory with b.
func unpickle(b []byte) (any, error) {
	u := &unpickler{b: b, memo: map[uint32]any{}}
	for {
		if u.at >= len(b) {
			return nil, errPickleCut
		}
		at, op := u.at, b[u.at]
		u.at++
		if op == '.' {
			v, err := u.pop()
			return v, err
		}
		if err := u.run(op); err != nil {
			if errors.Is(err, errPickleCut) || errors.Is(err, errPickleStack) {
				return nil, err
			}
			return nil, fmt.Errorf("byte %d of the pickle: %w", at, err)
		}
	}
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

// pop takes the top of the stack, which lies above the last mark.
func (u *unpickler) pop() (any, error) {
	n := len(u.stack)
	if n == 0 || len(u.marks) > 0 && u.marks[len(u.marks)-1] == n {
		return nil, errPickleStack
	}
	v := u.stack[n-1]
	u.stack = u.stack[:n-1]
	return v, nil
}

// top is pop without taking.
func (u *unpickler) top() (any, error) {
	v, err := u.pop()
	if err == nil {
		u.push(v)
	}
	return v, err
}

// popMark takes everything above the last mark. The slice is valid until the next push.
func (u *unpickler) popMark() ([]any, error) {
	n := len(u.marks)
	if n == 0 {
		return nil, errPickleStack
	}
	from := u.marks[n-1]
	u.marks = u.marks[:n-1]
	items := u.stack[from:]
	u.stack = u.stack[:from]
	return items, nil
}

// bytes takes n bytes of the pickle.
func (u *unpickler) bytes(n int) ([]byte, error) {
	if n < 0 || n > len(u.b)-u.at {
		return nil, errPickleCut
	}
	u.at += n
	return u.b[u.at-n : u.at], nil
}

// number takes a little-endian unsigned number of n bytes.
func (u *unpickler) number(n int) (uint64, error) {
	b, err := u.bytes(n)
	if err != nil {
		return 0, err
	}
	var word [8]byte
	copy(word[:], b)
	return binary.LittleEndian.Uint64(word[:]), nil
}

// line takes the rest of the line.
func (u *unpickler) line() ([]byte, error) {
	end := bytes.IndexByte(u.b[u.at:], '\n')
	if end < 0 {
		return nil, errPickleCut
	}
	line := u.b[u.at : u.at+end]
	u.at += end + 1
	return line, nil
}

// get and put are the memo.
func (u *unpickler) get(key uint64) error {
	v, ok := u.memo[uint32(key)]
	if !ok || key > math.MaxUint32 {
		return errors.New("nothing is remembered under the number an opcode asks for")
	}
	u.push(v)
	return nil
}

func (u *unpickler) put(key uint64) error {
	v, err := u.top()
	if err != nil {
		return err
	}
	u.memo[uint32(key)] = v
	return nil
}

// run runs one opcode.
func (u *unpickler) run(op byte) error {
	switch op {
	case 0x80: // PROTO
		v, err := u.number(1)
		if err == nil && v > 2 {
			err = fmt.Errorf("protocol %d, only 0 to 2 are read", v)
		}
		return err
	case '(': // MARK
		u.marks = append(u.marks, len(u.stack))
		return nil
	case 'N':
		u.push(nil)
		return nil
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		u.push(op == 0x88)
		return nil
	case 'q', 'r', 'h', 'j': // BINPUT, LONG_BINPUT, BINGET, LONG_BINGET
		n := 1
		if op == 'r' || op == 'j' {
			n = 4
		}
		key, err := u.number(n)
		if err != nil {
			return err
		}
		if op == 'q' || op == 'r' {
			return u.put(key)
		}
		return u.get(key)
	case 'p', 'g': // PUT, GET
		line, err := u.line()
		if err != nil {
			return err
		}
		key, err := strconv.ParseUint(string(line), 10, 32)
		if err != nil {
			return errors.New("no number where the memo needs one")
		}
		if op == 'p' {
			return u.put(key)
		}
		return u.get(key)
	case '0', '1', '2': // POP, POP_MARK, DUP
		return u.discard(op)
	case 'K', 'M', 'J', 'I', 'L', 0x8a, 'G', 'F':
		return u.scalar(op)
	case 'U', 'T', 'X', 'S', 'V':
		return u.text(op)
	case ')', 0x85, 0x86, 0x87, 't':
		return u.tuple(op)
	case ']', 'l', 'a', 'e':
		return u.list(op)
	case '}', 'd', 's', 'u':
		return u.dict(op)
	case 'c': // GLOBAL
		return u.global()
	case 'R', 0x81: // REDUCE, NEWOBJ
		return u.reduce()
	case 'b': // BUILD
		return u.build()
	}
	return fmt.Errorf("the opcode 0x%02x is not accepted", op)
}

func (u *unpickler) discard(op byte) error {
	switch op {
	case '1':
		_, err := u.popMark()
		return err
	case '2':
		v, err := u.top()
		if err == nil {
			u.push(v)
		}
		return err
	}
	_, err := u.pop()
	return err
}

// scalar runs the opcodes of numbers.
func (u *unpickler) scalar(op byte) error {
	switch op {
	case 'K', 'M', 'J': // BININT1, BININT2, BININT
		n := map[byte]int{'K': 1, 'M': 2, 'J': 4}[op]
		v, err := u.number(n)
		if err != nil {
			return err
		}
		if op == 'J' {
			u.push(int64(int32(v)))
		} else {
			u.push(int64(v))
		}
		return nil
	case 'G': // BINFLOAT, big-endian
		b, err := u.bytes(8)
		if err != nil {
			return err
		}
		u.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
		return nil
	case 0x8a: // LONG1: two's complement
		n, err := u.number(1)
		if err != nil {
			return err
		}
		if n > 8 {
			return errors.New("an integer of more than 64 bits")
		}
		v, err := u.number(int(n))
		if err != nil {
			return err
		}
		if n > 0 {
			unused := 64 - 8*int(n)
			u.push(int64(v<<unused) >> unused)
		} else {
			u.push(int64(0))
		}
		return nil
	}
	line, err := u.line()
	if err != nil {
		return err
	}
	text := string(line)
	switch {
	case op == 'F':
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return errors.New("no number after an opcode of numbers")
		}
		u.push(v)
		return nil
	case op == 'I' && (text == "00" || text == "01"):
		u.push(text == "01")
		return nil
	case op == 'L' && len(text) > 0 && text[len(text)-1] == 'L':
		text = text[:len(text)-1]
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return errors.New("no number after an opcode of numbers")
	}
	u.push(v)
	return nil
}

// text runs the opcodes of strings.
func (u *unpickler) text(op byte) error {
	if op == 'S' || op == 'V' {
		line, err := u.line()
		if err != nil {
			return err
		}
		if op == 'S' {
			if line, err = pyUnquote(line); err != nil {
				return err
			}
		} else if bytes.IndexByte(line, '\\') >= 0 {
			return errors.New("an escape in a Unicode string")
		}
		u.push(line)
		return nil
	}
	n := 4
	if op == 'U' {
		n = 1
	}
	length, err := u.number(n)
	if err != nil {
		return err
	}
	b, err := u.bytes(int(length))
	if err == nil {
		u.push(b)
	}
	return err
}

// pyUnquote reads a Python 2 string literal.
func pyUnquote(s []byte) ([]byte, error) {
	bad := errors.New("a string that can't be read")
	if len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '\'' && s[0] != '"' {
		return nil, bad
	}
	s = s[1 : len(s)-1]
	if bytes.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		if i++; i == len(s) {
			return nil, bad
		}
		switch s[i] {
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case '\\', '\'', '"':
			out = append(out, s[i])
		case 'x':
			if i+2 >= len(s) {
				return nil, bad
			}
			v, err := strconv.ParseUint(string(s[i+1:i+3]), 16, 8)
			if err != nil {
				return nil, bad
			}
			out = append(out, byte(v))
			i += 2
		default:
			return nil, bad
		}
	}
	return out, nil
}

// tuple runs the opcodes of tuples.
func (u *unpickler) tuple(op byte) error {
	var items []any
	if op == 't' {
		above, err := u.popMark()
		if err != nil {
			return err
		}
		items = append(items, above...)
	} else if op != ')' {
		n := int(op-0x85) + 1
		items = make([]any, n)
		for i := n - 1; i >= 0; i-- {
			var err error
			if items[i], err = u.pop(); err != nil {
				return err
			}
		}
	}
	u.push(pyTuple(items))
	return nil
}

// list runs the opcodes of lists.
func (u *unpickler) list(op byte) error {
	switch op {
	case ']':
		u.push(&pyList{})
		return nil
	case 'l':
		items, err := u.popMark()
		if err != nil {
			return err
		}
		u.push(&pyList{items: append([]any(nil), items...)})
		return nil
	}
	var items []any
	var err error
	if op == 'a' {
		var v any
		v, err = u.pop()
		items = []any{v}
	} else {
		items, err = u.popMark()
	}
	if err != nil {
		return err
	}
	to, err := u.top()
	if err != nil {
		return err
	}
	l, ok := to.(*pyList)
	if !ok {
		return errors.New("something is appended to what is no list")
	}
	l.items = append(l.items, items...)
	return nil
}

// dict runs the opcodes of dictionaries.
func (u *unpickler) dict(op byte) error {
	switch op {
	case '}':
		u.push(&pyDict{})
		return nil
	case 's':
		value, err := u.pop()
		if err != nil {
			return err
		}
		key, err := u.pop()
		if err != nil {
			return err
		}
		return u.setItems([]any{key, value})
	}
	items, err := u.popMark()
	if err != nil {
		return err
	}
	if op == 'd' {
		items = append([]any(nil), items...)
		u.push(&pyDict{})
	}
	return u.setItems(items)
}

func (u *unpickler) setItems(items []any) error {
	to, err := u.top()
	if err != nil {
		return err
	}
	d, ok := to.(*pyDict)
	if !ok || len(items)%2 != 0 {
		return errors.New("an item is set in what is no dictionary")
	}
	for i := 0; i < len(items); i += 2 {
		d.keys, d.values = append(d.keys, items[i]), append(d.values, items[i+1])
	}
	return nil
}

func (u *unpickler) global() error {
	module, err := u.line()
	if err != nil {
		return err
	}
	name, err := u.line()
	if err != nil {
		return err
	}
	g, ok := pyGlobals[string(module)+" "+string(name)]
	if !ok {
		return fmt.Errorf("%s is refused: unpickling it could run code", quote(string(module)+"."+string(name)))
	}
	u.push(g)
	return nil
}

// reduce calls one of the known classes or functions.
func (u *unpickler) reduce() error {
	a, err := u.pop()
	if err != nil {
		return err
	}
	f, err := u.pop()
	if err != nil {
		return err
	}
	args, ok := a.(pyTuple)
	g, ok2 := f.(pyGlobal)
	if !ok || !ok2 {
		return errors.New("something that is no known class is called")
	}
	arg := func(i int) any {
		if i < len(args) {
			return args[i]
		}
		return nil
	}
	switch {
	case g == pyDefaultDict && len(args) <= 1 && (len(args) == 0 || arg(0) == pyListType):
		u.push(&pyDict{})
	case g == pyReconstruct && arg(0) == pyNdarray:
		u.push(&pyArray{})
	case g == pyCSRMatrix && len(args) == 0, g == pyNewObject && arg(0) == pyCSRMatrix && arg(1) == pyObject:
		u.push(&pyCSR{})
	case g == pyDtypeType:
		text, ok := arg(0).([]byte)
		if !ok {
			return errors.New("an element type that can't be read")
		}
		item, err := parseNPYType(string(text))
		if err != nil {
			return err
		}
		u.push(&pyDtype{item})
	default:
		return fmt.Errorf("a call of %s with other arguments than the known ones", g)
	}
	return nil
}

// build sets the state of an object.
func (u *unpickler) build() error {
	state, err := u.pop()
	if err != nil {
		return err
	}
	to, err := u.top()
	if err != nil {
		return err
	}
	bad := errors.New("a state that can't be read")
	fields, _ := state.(pyTuple)
	switch o := to.(type) {
	case *pyCSR:
		d, ok := state.(*pyDict)
		if !ok {
			return bad
		}
		o.state = d
		return nil
	case *pyDtype:
		if len(fields) < 2 {
			return bad
		}
		order, ok := fields[1].([]byte)
		if !ok || len(order) != 1 {
			return bad
		}
		o.item.big = order[0] == '>'
		return nil
	case *pyArray:
		if len(fields) != 5 {
			return bad
		}
		shape, ok1 := fields[1].(pyTuple)
		dtype, ok2 := fields[2].(*pyDtype)
		fortran, ok3 := fields[3].(bool)
		if v, isInt := fields[3].(int64); isInt {
			fortran, ok3 = v != 0, true
		}
		data, ok4 := fields[4].([]byte)
		if !ok1 || !ok2 || !ok3 || !ok4 || len(shape) > 2 {
			return bad
		}
		*o = pyArray{item: dtype.item, fortran: fortran, data: data}
		count := uint64(1)
		for _, s := range shape {
			v, ok := s.(int64)
			if !ok || v < 0 || v > maxNumber {
				return bad
			}
			hi, lo := bits.Mul64(count, uint64(v))
			if hi != 0 {
				return bad
			}
			count = lo
			o.shape = append(o.shape, int(v))
		}
		if hi, want := bits.Mul64(count, uint64(o.item.size)); hi != 0 || want != uint64(len(data)) {
			return fmt.Errorf("an array of shape %v holds %d bytes", o.shape, len(data))
		}
		return nil
	}
	return bad
}

// ints returns the elements of a vector of integers.
func (a *pyArray) ints() ([]int64, error) {
	if a == nil || len(a.shape) != 1 || a.item.kind != 'i' && a.item.kind != 'u' {
		return nil, errors.New("no vector of integers")
	}
	out := make([]int64, a.shape[0])
	for i := range out {
		out[i] = a.item.integer(a.data[i*a.item.size:])
	}
	return out, nil
}

// integer reads the element at the start of b.
func (t npyType) integer(b []byte) int64 {
	var word uint64
	for k := range t.size {
		shift := 8 * k
		if t.big {
			shift = 8 * (t.size - 1 - k)
		}
		word |= uint64(b[k]) << shift
	}
	if t.kind != 'i' {
		return int64(word)
	}
	unused := 64 - 8*t.size
	return int64(word<<unused) >> unused
}

// csrMatrix is a sparse matrix: row i has the values from indptr[i] to indptr[i+1].
type csrMatrix struct {
	rows, cols int
	indptr     []int64
	indices    []int64
	data       []float32
}

// matrix checks a scipy CSR matrix.
func (c *pyCSR) matrix() (*csrMatrix, error) {
	if c.state == nil {
		return nil, errors.New("no state")
	}
	get := func(names ...string) any {
		for i, k := range c.state.keys {
			if b, ok := k.([]byte); ok && (string(b) == names[0] || string(b) == names[len(names)-1]) {
				return c.state.values[i]
			}
		}
		return nil
	}
	shape, _ := get("_shape", "shape").(pyTuple)
	if len(shape) != 2 {
		return nil, errors.New("no shape")
	}
	rows, ok1 := shape[0].(int64)
	cols, ok2 := shape[1].(int64)
	if !ok1 || !ok2 || rows < 0 || cols < 0 || rows > maxNumber || cols > maxNumber {
		return nil, errors.New("no shape")
	}
	m := &csrMatrix{rows: int(rows), cols: int(cols)}
	indptr, _ := get("indptr").(*pyArray)
	indices, _ := get("indices").(*pyArray)
	data, _ := get("data").(*pyArray)
	var err error
	if m.indptr, err = indptr.ints(); err != nil {
		return nil, fmt.Errorf("indptr: %w", err)
	}
	if m.indices, err = indices.ints(); err != nil {
		return nil, fmt.Errorf("indices: %w", err)
	}
	if data == nil || len(data.shape) != 1 || data.shape[0] != len(m.indices) {
		return nil, errors.New("data isn't as long as indices")
	}
	m.data = make([]float32, data.shape[0])
	data.item.decode(m.data, data.data)
	if len(m.indptr) != m.rows+1 || m.indptr[0] != 0 || m.indptr[m.rows] != int64(len(m.indices)) {
		return nil, errors.New("indptr doesn't fit")
	}
	for i := range m.rows {
		if m.indptr[i] > m.indptr[i+1] {
			return nil, errors.New("indptr isn't ascending")
		}
	}
	for _, c := range m.indices {
		if c < 0 || c >= cols {
			return nil, fmt.Errorf("column %d of %d", c, cols)
		}
	}
	return m, nil
}
