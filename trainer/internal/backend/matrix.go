package backend

import "fmt"

// Matrix is a handle on a row-major float32 matrix [Rows, Cols] in a backend's memory.
// It is a plain value: copies and row views share the storage. Only its backend looks
// inside. The zero Matrix stands for "none" where an operation allows that.
type Matrix struct {
	Rows, Cols int

	host []float32 // the elements, len Rows*Cols
}

// HostMatrix makes a handle on host memory; for backends only. len(data) = rows*cols.
func HostMatrix(rows, cols int, data []float32) Matrix {
	if rows < 0 || cols < 0 || len(data) != rows*cols {
		panic(fmt.Sprintf("backend: matrix [%d, %d] of %d elements", rows, cols, len(data)))
	}
	return Matrix{Rows: rows, Cols: cols, host: data}
}

// Host returns the elements of a matrix in host memory; for backends only.
func (m Matrix) Host() []float32 { return m.host }

// IsZero reports whether m is the zero Matrix, "none".
func (m Matrix) IsZero() bool {
	return m.Rows == 0 && m.Cols == 0 && m.host == nil
}

// Slice returns the rows [start, start+rows) of m as a view.
func (m Matrix) Slice(start, rows int) Matrix {
	if start < 0 || rows < 0 || start > m.Rows-rows {
		panic(fmt.Sprintf("backend: rows [%d, %d+%d) of a matrix of %d", start, start, rows, m.Rows))
	}
	v := Matrix{Rows: rows, Cols: m.Cols}
	if m.host != nil {
		v.host = m.host[start*m.Cols : (start+rows)*m.Cols : (start+rows)*m.Cols]
	}
	return v
}

func (m Matrix) String() string { return fmt.Sprintf("[%d, %d]", m.Rows, m.Cols) }

// Named is a matrix with its name and shape in a checkpoint. Shape multiplies up to the
// matrix's size; a bias [1, n] is stored as [n].
type Named struct {
	Name  string
	Shape []int
	Value Matrix
}
