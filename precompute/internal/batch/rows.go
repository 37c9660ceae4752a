package batch

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/rows"
	"github.com/prelift/prelift/snapshot"
	"golang.org/x/sync/errgroup"
)

// rowTable is the feature rows of a set: the snapshot's, and how they are stored. Read-only and safe for concurrent use.
type rowTable struct {
	snap  *snapshot.Snapshot
	kind  rows.Type
	cols  int
	scale []float32        // by column; nil but for int8
	error *format.RowError // nil for f32
}

// dtypes are the words of --dtype, which are those of package rows, with the element types of files.
var dtypes = map[rows.Type]format.DType{rows.F32: format.F32, rows.F16: format.F16, rows.BF16: format.BF16, rows.I8: format.I8}

// pieceRows is how many rows of a table are looked at together.
func (t *rowTable) pieceRows() int {
	const pieceElements = 1 << 17
	return max(pieceElements/max(t.cols, 1), 1)
}

// widthBytes is the size of a stored row.
func (t *rowTable) widthBytes() int { return t.cols * t.kind.SizeBytes() }

// newRowTable looks over the whole feature table, where it is to be converted: that each number can be, what the scales
// are, and what the conversion changes at most. A number that can't be converted is a *ParamError. Cost: one pass over the table, two for int8; none for f32.
func newRowTable(snap *snapshot.Snapshot, dtype string) (*rowTable, error) {
	kind, ok := rows.Parse(dtype)
	if !ok {
		return nil, paramErrorf("--dtype %q: want f32, f16, bf16 or int8", dtype)
	}
	t := &rowTable{snap: snap, kind: kind, cols: snap.NumFeatures()}
	if kind == rows.F32 || t.cols == 0 {
		return t, nil
	}
	if kind == rows.I8 {
		if err := t.findScales(); err != nil {
			return nil, err
		}
	}
	largest, err := t.findError()
	if err != nil {
		return nil, err
	}
	relative, absolute := rows.ErrorBound(kind, t.scale)
	t.error = &format.RowError{Relative: relative, Absolute: absolute, Largest: largest}
	return t, nil
}

// scan calls look with pieces of the table, several at a time, each worker with a look of its own from begin. A look returns the place of
// the first bad element of its piece, -1 for none; scan returns an error for the first of the table.
func (t *rowTable) scan(begin func() (look func(piece []float32) (bad int), end func())) error {
	numRows, perPiece := t.snap.NumNodes(), t.pieceRows()
	numPieces := (numRows + perPiece - 1) / perPiece
	var next atomic.Int64
	var mu sync.Mutex
	first := -1
	var group errgroup.Group
	for range min(runtime.GOMAXPROCS(0), numPieces) {
		group.Go(func() error {
			look, end := begin()
			return format.Guard(t.snap.Dir, func() error {
				for i := int(next.Add(1) - 1); i < numPieces; i = int(next.Add(1) - 1) {
					at := i * perPiece * t.cols
					if bad := look(t.snap.Features[at : min((i+1)*perPiece, numRows)*t.cols]); bad >= 0 {
						mu.Lock()
						if first < 0 || at+bad < first {
							first = at + bad
						}
						mu.Unlock()
					}
				}
				mu.Lock()
				defer mu.Unlock()
				end()
				return nil
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return t.refuse(first)
}

// refuse names the element of the table that can't be converted.
func (t *rowTable) refuse(element int) error {
	if element < 0 {
		return nil
	}
	node, column, x := element/t.cols, element%t.cols, t.snap.Features[element]
	place := fmt.Sprintf("--dtype %s: node %q, feature column %d (from 0): ", t.kind, t.snap.IDs.At(node), column)
	switch {
	case math.IsNaN(float64(x)) || math.IsInf(float64(x), 0):
		return paramErrorf("%s%g can't be converted; want finite numbers, or --dtype f32", place, x)
	case t.kind == rows.F16:
		return paramErrorf("%s%g is beyond the largest f16 (%d); use --dtype bf16, which has the range of f32", place, x, rows.MaxF16)
	}
	return paramErrorf("%s%g is beyond the largest %s; use --dtype f32", place, x, t.kind)
}

// findScales sets the scales of the columns, which are of the whole table.
func (t *rowTable) findScales() error {
	t.scale = make([]float32, t.cols)
	err := t.scan(func() (func([]float32) int, func()) {
		most := make([]float32, t.cols)
		return func(piece []float32) int { return rows.ColumnMaxima(most, piece) }, func() {
			for c, x := range most {
				t.scale[c] = max(t.scale[c], x)
			}
		}
	})
	for c, most := range t.scale {
		t.scale[c] = rows.ScaleOf(most)
	}
	return err
}

// findError converts the table piece by piece, and returns the largest change of a number.
func (t *rowTable) findError() (largest float64, err error) {
	err = t.scan(func() (func([]float32) int, func()) {
		stored, back := make([]byte, t.pieceRows()*t.widthBytes()), make([]float32, t.pieceRows()*t.cols)
		most := 0.0
		return func(piece []float32) int {
			converted := rows.Table{Type: t.kind, Cols: t.cols, Data: stored[:len(piece)*t.kind.SizeBytes()], Scale: t.scale}
			if bad := rows.Encode(converted.Data, piece, t.kind, t.scale); bad >= 0 {
				return bad
			}
			converted.Decode(back[:len(piece)], 0)
			for i, x := range piece {
				most = max(most, math.Abs(float64(back[i])-float64(x)))
			}
			return -1
		}, func() { largest = max(largest, most) }
	})
	return largest, err
}

// encode writes rows first..first+n-1 as they are stored, n = len(out)/widthBytes.
func (t *rowTable) encode(out []byte, first int) error {
	at := first * t.cols
	in := t.snap.Features[at : at+len(out)/t.kind.SizeBytes()]
	if bad := rows.Encode(out, in, t.kind, t.scale); bad >= 0 {
		return t.refuse(at + bad) // the table was checked: its file has changed since
	}
	return nil
}

// sections are table.rows [numRows, columns], streamed by write, and table.scale where the type has one.
func (t *rowTable) sections(numRows int, write func(w io.Writer) error) []format.SectionSpec {
	specs := []format.SectionSpec{}
	if t.scale != nil {
		specs = append(specs, format.Float32Section(format.TableScale, format.AnyLayer, format.CoefNone, t.scale))
	}
	return append(specs, format.SectionSpec{Kind: format.TableRows, Layer: format.AnyLayer, DType: dtypes[t.kind], Shape: []uint64{uint64(numRows), uint64(t.cols)}, Write: write})
}

// rowsOf are the sections of the rows of some nodes, in their order, converted one by one while they are written. It is the slow
// twin of packer, and good for nodes in ascending order.
func (a *assembler) rowsOf(nodes []int32) []format.SectionSpec {
	t := a.table
	return t.sections(len(nodes), func(w io.Writer) error {
		width := t.widthBytes()
		for start := 0; start < len(nodes); start += t.pieceRows() {
			piece := nodes[start:min(start+t.pieceRows(), len(nodes))]
			a.piece = resize(a.piece, len(piece)*width)
			for i, v := range piece {
				if err := t.encode(a.piece[i*width:(i+1)*width], int(v)); err != nil {
					return err
				}
			}
			if _, err := w.Write(a.piece); err != nil {
				return err
			}
		}
		return nil
	})
}

// tableRecord builds the one record of a set's own feature table.
func (a *assembler) tableRecord() *record {
	t, n := a.table, a.snap.NumNodes()
	a.reset(a.globalHeader(0, n))
	a.record.header.Task, a.record.header.NumSeeds = format.TaskNone, 0
	a.add(t.sections(n, func(w io.Writer) error {
		for first := 0; first < n; first += t.pieceRows() {
			a.piece = resize(a.piece, min(t.pieceRows(), n-first)*t.widthBytes())
			if err := t.encode(a.piece, first); err != nil {
				return err
			}
			if _, err := w.Write(a.piece); err != nil {
				return err
			}
		}
		return nil
	})...)
	return &a.record
}

// hasOwnTable reports whether the set has a feature table that isn't the snapshot's.
func (s *source) hasOwnTable() bool { return s.table.kind != rows.F32 && s.table.cols > 0 }

// resize returns b with n elements of unspecified contents, in its memory where they fit.
func resize[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n, n+n/4)
	}
	return b[:n]
}
