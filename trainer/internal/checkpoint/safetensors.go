// Package checkpoint writes and reads what a run must remember: tensors in safetensors
// files, which PyTorch and others load as they are, and a state.json beside them that says
// which file holds the latest complete checkpoint, and its size and digest.
//
// All bytes are a pure function of the content: no time, host or path enters.
package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prelift/prelift/trainer/internal/backend"
)

// The safetensors format (https://github.com/huggingface/safetensors): the header's length as
// a little-endian 64-bit number, the header in JSON, the tensors' bytes. The header maps each
// name to dtype, shape and data_offsets, [begin, end) counted from the end of the header;
// "__metadata__" maps strings to strings. The tensors tile the data without gap or overlap.
const (
	prefixBytes    = 8
	maxHeaderBytes = 100_000_000 // the limit of the format's own library
	maxRank        = 16          // ours: more is damage
	metadataKey    = "__metadata__"
)

// DType is the element type of a tensor, in the format's spelling.
type DType string

// The element types, and their sizes in bytes.
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
	I32  DType = "I32"
	I16  DType = "I16"
	I8   DType = "I8"
	U64  DType = "U64"
	U32  DType = "U32"
	U16  DType = "U16"
	U8   DType = "U8"
	Bool DType = "BOOL"
)

var dtypeBytes = map[DType]uint64{F64: 8, F32: 4, F16: 2, BF16: 2, I64: 8, I32: 4, I16: 2, I8: 1, U64: 8, U32: 4, U16: 2, U8: 1, Bool: 1}

// Tensor is a named array, its elements row-major and little-endian in Data.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Data  []byte
}

// Float32s makes an F32 tensor; it copies the values.
func Float32s(name string, shape []int, values []float32) Tensor {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return Tensor{Name: name, DType: F32, Shape: slices.Clone(shape), Data: data}
}

// Float32s returns the values of an F32 tensor, copied.
func (t *Tensor) Float32s() ([]float32, error) {
	if t.DType != F32 {
		return nil, fmt.Errorf("checkpoint: tensor %q is %s, want F32", t.Name, t.DType)
	}
	values := make([]float32, len(t.Data)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
	}
	return values, nil
}

// Upload fills matrices with the tensors of their names. A name that is missing, or another
// shape or type, is an error that wraps ErrMismatch; nothing is uploaded then. Tensors
// that nobody asked for are left alone.
func (f *File) Upload(b backend.Backend, named []backend.Named) error {
	values := make([][]float32, len(named))
	for i, n := range named {
		t := f.Tensor(n.Name)
		if t == nil {
			return fmt.Errorf("%w: tensor %q is missing", ErrMismatch, n.Name)
		}
		if !slices.Equal(t.Shape, n.Shape) || t.DType != F32 {
			return fmt.Errorf("%w: tensor %q is %s %v, the model needs F32 %v", ErrMismatch, n.Name, t.DType, t.Shape, n.Shape)
		}
		values[i], _ = t.Float32s() // the type was checked
	}
	for i, n := range named {
		b.Upload(n.Value, values[i])
	}
	return b.Sync()
}

// sizeOf returns the bytes of a tensor of this type and shape.
func sizeOf(d DType, shape []int) (uint64, error) {
	n, ok := dtypeBytes[d]
	if !ok {
		return 0, fmt.Errorf("dtype %q is unknown", d)
	}
	if len(shape) > maxRank {
		return 0, fmt.Errorf("%d dimensions, at most %d", len(shape), maxRank)
	}
	for _, dim := range shape {
		if dim < 0 {
			return 0, fmt.Errorf("shape %v has a negative dimension", shape)
		}
		hi, lo := bits.Mul64(n, uint64(dim))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, fmt.Errorf("shape %v overflows", shape)
		}
		n = lo
	}
	return n, nil
}

// Write writes a safetensors file: tensors sorted by name, the header padded with spaces
// to a multiple of 8. Names must be distinct.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	sorted := slices.Clone(tensors)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].Name < sorted[j].Name })
	var header bytes.Buffer
	header.WriteByte('{')
	comma := func() {
		if header.Len() > 1 {
			header.WriteByte(',')
		}
	}
	if len(metadata) > 0 {
		header.WriteString(`"` + metadataKey + `":{`)
		for i, k := range slices.Sorted(maps.Keys(metadata)) {
			if i > 0 {
				header.WriteByte(',')
			}
			header.Write(quote(k))
			header.WriteByte(':')
			header.Write(quote(metadata[k]))
		}
		header.WriteByte('}')
	}
	var at uint64
	for i, t := range sorted {
		size, err := sizeOf(t.DType, t.Shape)
		switch {
		case err != nil:
			return fmt.Errorf("checkpoint: tensor %q: %w", t.Name, err)
		case size != uint64(len(t.Data)):
			return fmt.Errorf("checkpoint: tensor %q: %d bytes for %s %v", t.Name, len(t.Data), t.DType, t.Shape)
		case t.Name == metadataKey || !utf8.ValidString(t.Name):
			return fmt.Errorf("checkpoint: tensor name %q can't be used", t.Name)
		case i > 0 && sorted[i-1].Name == t.Name:
			return fmt.Errorf("checkpoint: two tensors are named %q", t.Name)
		}
		comma()
		header.Write(quote(t.Name))
		fmt.Fprintf(&header, `:{"dtype":"%s","shape":[`, t.DType)
		for j, dim := range t.Shape {
			if j > 0 {
				header.WriteByte(',')
			}
			header.WriteString(strconv.Itoa(dim))
		}
		fmt.Fprintf(&header, `],"data_offsets":[%d,%d]}`, at, at+size)
		at += size
	}
	header.WriteByte('}')
	for header.Len()%8 != 0 {
		header.WriteByte(' ')
	}
	if header.Len() > maxHeaderBytes {
		return fmt.Errorf("checkpoint: header of %d bytes, at most %d", header.Len(), maxHeaderBytes)
	}
	prefix := binary.LittleEndian.AppendUint64(nil, uint64(header.Len()))
	for _, part := range [][]byte{prefix, header.Bytes()} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	for _, t := range sorted {
		if _, err := w.Write(t.Data); err != nil {
			return err
		}
	}
	return nil
}

// quote returns s as a JSON string.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string and a buffer don't fail
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// File is a parsed safetensors file. Tensors are in the order of their data.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor
}

// Tensor returns the tensor of that name, nil if there is none.
func (f *File) Tensor(name string) *Tensor {
	for i := range f.Tensors {
		if f.Tensors[i].Name == name {
			return &f.Tensors[i]
		}
	}
	return nil
}

// Parse reads a whole safetensors file. Tensors' Data point into data. It is strict:
// unknown types and keys, repeated names, gaps, overlaps and bytes left over are errors
// that wrap ErrCorrupt.
func Parse(data []byte) (*File, error) {
	f, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return f, nil
}

func parse(data []byte) (*File, error) {
	if len(data) < prefixBytes {
		return nil, fmt.Errorf("%d bytes, a safetensors file has at least %d", len(data), prefixBytes)
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeaderBytes {
		return nil, fmt.Errorf("header of %d bytes, at most %d", n, maxHeaderBytes)
	}
	if n > uint64(len(data)-prefixBytes) {
		return nil, fmt.Errorf("header of %d bytes in a file of %d", n, len(data))
	}
	header, body := data[prefixBytes:prefixBytes+n], data[prefixBytes+n:]
	f, ranges, err := parseHeader(header)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	order := make([]int, len(f.Tensors))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool {
		a, b := ranges[order[i]], ranges[order[j]]
		return a[0] < b[0] || a[0] == b[0] && a[1] < b[1]
	})
	var at uint64
	tensors := make([]Tensor, 0, len(order))
	for _, i := range order {
		t, begin, end := f.Tensors[i], ranges[i][0], ranges[i][1]
		size, err := sizeOf(t.DType, t.Shape)
		switch {
		case err != nil:
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		case begin != at:
			return nil, fmt.Errorf("tensor %q begins at %d, want %d: tensors must tile the data", t.Name, begin, at)
		case end < begin || end-begin != size:
			return nil, fmt.Errorf("tensor %q has bytes [%d, %d), %s %v needs %d", t.Name, begin, end, t.DType, t.Shape, size)
		case end > uint64(len(body)):
			return nil, fmt.Errorf("tensor %q ends at byte %d of %d", t.Name, end, len(body))
		}
		t.Data = body[begin:end:end]
		tensors = append(tensors, t)
		at = end
	}
	if at != uint64(len(body)) {
		return nil, fmt.Errorf("tensors end at byte %d of %d", at, len(body))
	}
	f.Tensors = tensors
	return f, nil
}

// parseHeader reads the JSON with its tokens, since a map would hide repeated names.
func parseHeader(header []byte) (*File, [][2]uint64, error) {
	if !utf8.Valid(header) {
		return nil, nil, errors.New("not UTF-8")
	}
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, errors.New("doesn't begin with {")
	}
	text := strings.TrimRight(string(header), " ")
	r := tokens{json.NewDecoder(strings.NewReader(text))}
	r.UseNumber()
	f := &File{}
	var ranges [][2]uint64
	err := r.object(func(name string) error {
		if name == metadataKey {
			f.Metadata = map[string]string{}
			return r.object(func(key string) error {
				v, err := r.text()
				f.Metadata[key] = v
				return err
			})
		}
		t, at, err := r.tensor(name)
		f.Tensors, ranges = append(f.Tensors, t), append(ranges, at)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if r.InputOffset() != int64(len(text)) {
		return nil, nil, fmt.Errorf("bytes left over at %d", r.InputOffset())
	}
	return f, ranges, nil
}

// tokens reads JSON of a known structure.
type tokens struct{ *json.Decoder }

func (r tokens) delim(want json.Delim) error {
	t, err := r.Token()
	if err != nil {
		return cut(err)
	}
	if t != want {
		return fmt.Errorf("%v at byte %d, want %v", t, r.InputOffset(), want)
	}
	return nil
}

// cut replaces the end of input by what it means here.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("ends early")
	}
	return err
}

// object reads {...} and calls value after each key. A repeated key is an error.
func (r tokens) object(value func(key string) error) error {
	if err := r.delim('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for r.More() {
		key, err := r.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("%q occurs twice", key)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	return r.delim('}')
}

func (r tokens) text() (string, error) {
	t, err := r.Token()
	if err != nil {
		return "", cut(err)
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%v at byte %d, want a string", t, r.InputOffset())
	}
	return s, nil
}

// numbers reads an array of at most limit non-negative integers.
func (r tokens) numbers(limit int) ([]uint64, error) {
	if err := r.delim('['); err != nil {
		return nil, err
	}
	list := []uint64{}
	for r.More() {
		t, err := r.Token()
		if err != nil {
			return nil, cut(err)
		}
		s, ok := t.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%v at byte %d, want a number", t, r.InputOffset())
		}
		v, err := strconv.ParseUint(s.String(), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("%s at byte %d is not a count", s, r.InputOffset())
		}
		if len(list) == limit {
			return nil, fmt.Errorf("more than %d numbers at byte %d", limit, r.InputOffset())
		}
		list = append(list, v)
	}
	return list, r.delim(']')
}

func (r tokens) tensor(name string) (t Tensor, at [2]uint64, err error) {
	t.Name = name
	fields := 0
	err = r.object(func(key string) error {
		fields++
		switch key {
		case "dtype":
			s, err := r.text()
			t.DType = DType(s)
			return err
		case "shape":
			dims, err := r.numbers(maxRank)
			for _, d := range dims {
				if d > math.MaxInt {
					return fmt.Errorf("dimension %d is too large", d)
				}
				t.Shape = append(t.Shape, int(d))
			}
			return err
		case "data_offsets":
			list, err := r.numbers(2)
			if err == nil && len(list) != 2 {
				err = errors.New("data_offsets needs two numbers")
			}
			copy(at[:], list)
			return err
		}
		return fmt.Errorf("key %q is unknown", key)
	})
	if err == nil && fields != 3 {
		err = errors.New("dtype, shape and data_offsets are needed")
	}
	if err != nil {
		err = fmt.Errorf("tensor %q: %w", name, err)
	}
	return t, at, err
}
