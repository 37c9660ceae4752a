package cpu

import (
	"fmt"
	"math"

	"github.com/prelift/prelift/trainer/internal/backend"
)

// rowTask is an operation row by row; parts are ranges of rows of out (of chunks of
// rows for the column sums).
type rowTask struct {
	kind             rowKind
	numParts         int
	numRows, numCols int
	out, x, y        []float32
	bias             []float32
	rows             []int32
	relu             bool
	drop             backend.Drop
	partial          []float64
}

type rowKind uint8

const (
	rowGather rowKind = iota
	rowBiasAct
	rowBiasActBackward
	rowDropout
	rowColSums
)

var rowNames = [...]string{"Gather", "BiasAct", "BiasActBackward", "Dropout", "ColSums"}

// chunkRows is the number of rows whose sum is formed before the sums are added: the
// fixed chunk that keeps reductions independent of threads.
const chunkRows = 256

func (t *rowTask) do(part int) {
	lo, hi := span(part, t.numParts, t.numRows)
	switch t.kind {
	case rowGather:
		for r := lo; r < hi; r++ {
			s := int(t.rows[r]) * t.numCols
			copy(t.out[r*t.numCols:(r+1)*t.numCols], t.x[s:s+t.numCols])
		}
	case rowBiasAct:
		for r := lo; r < hi; r++ {
			t.biasAct(r)
		}
	case rowBiasActBackward:
		for r := lo; r < hi; r++ {
			t.biasActBackward(r)
		}
	case rowDropout:
		for r := lo; r < hi; r++ {
			at := r * t.numCols
			dropRow(t.out[at:at+t.numCols], t.x[at:at+t.numCols], r, t.drop)
		}
	case rowColSums: // here the units are chunks
		numRows := len(t.x) / t.numCols
		for c := lo; c < hi; c++ {
			sums := t.partial[c*t.numCols : (c+1)*t.numCols]
			for r := c * chunkRows; r < min((c+1)*chunkRows, numRows); r++ {
				row := t.x[r*t.numCols : (r+1)*t.numCols][:len(sums)]
				for j, v := range row {
					sums[j] += float64(v)
				}
			}
		}
	}
}

// biasAct is out = drop(relu(x + bias)) on row r.
func (t *rowTask) biasAct(r int) {
	out := t.out[r*t.numCols : (r+1)*t.numCols]
	x := t.x[r*t.numCols : (r+1)*t.numCols][:len(out)]
	switch {
	case t.bias != nil:
		bias := t.bias[:len(out)]
		for j := range out {
			out[j] = x[j] + bias[j]
		}
	default:
		copy(out, x)
	}
	if t.relu {
		for j, v := range out {
			out[j] = max(v, 0)
		}
	}
	if t.drop.Threshold != 0 {
		dropRow(out, out, r, t.drop)
	}
}

// biasActBackward is dx = dout * d(out)/d(x) on row r.
func (t *rowTask) biasActBackward(r int) {
	dx := t.out[r*t.numCols : (r+1)*t.numCols]
	dout := t.x[r*t.numCols : (r+1)*t.numCols][:len(dx)]
	if !t.relu {
		dropRow(dx, dout, r, t.drop)
		return
	}
	y := t.y[r*t.numCols : (r+1)*t.numCols][:len(dx)]
	scale := t.drop.Scale()
	for j, v := range y {
		b := int32(math.Float32bits(v))
		passed := uint32(-b >> 31 &^ (b >> 31)) // all ones where v > 0: without a branch, since half of them fail
		dx[j] = math.Float32frombits(math.Float32bits(float32(dout[j]*scale)) & passed)
	}
}

// dropRow is out = x where d keeps the element, scaled, else 0, on row r. out may be x.
// A group of zeros draws nothing: the result is the same, and sparse features are mostly zeros.
func dropRow(out, x []float32, r int, d backend.Drop) {
	if d.Threshold == 0 {
		copy(out, x)
		return
	}
	scale, threshold := d.Scale(), d.Threshold
	groups := (len(x) + 3) / 4
	full := len(x) / 4
	for g := range full {
		in := (*[4]float32)(x[4*g:])
		to := (*[4]float32)(out[4*g:])
		if in[0] == 0 && in[1] == 0 && in[2] == 0 && in[3] == 0 {
			*to = [4]float32{}
			continue
		}
		w := d.Word(r, groups, g)
		to[0] = dropOne(in[0], scale, w, threshold)
		to[1] = dropOne(in[1], scale, w>>16, threshold)
		to[2] = dropOne(in[2], scale, w>>32, threshold)
		to[3] = dropOne(in[3], scale, w>>48, threshold)
	}
	if full < groups {
		w := d.Word(r, groups, full)
		for k, v := range x[4*full:] {
			out[4*full+k] = dropOne(v, scale, w>>(16*k), threshold)
		}
	}
}

// dropOne is v*scale where the low 16 bits of w are at least threshold, else 0; without
// a branch, which would be guessed wrong half the time.
func dropOne(v, scale float32, w uint64, threshold uint32) float32 {
	dropped := uint32(int32(uint32(w&0xffff)-threshold) >> 31)
	return math.Float32frombits(math.Float32bits(float32(v*scale)) &^ dropped)
}

func (b *Backend) rowwise(t rowTask, cost int) {
	t.numParts = b.partsOf(t.numRows, cost)
	b.rows = t
	b.run(rowNames[t.kind], &b.rows, t.numParts)
	b.rows = rowTask{}
}

// Gather copies rows of a table.
func (b *Backend) Gather(out, table backend.Matrix, rows []int32) {
	if len(rows) != out.Rows || table.Cols != out.Cols {
		panic(fmt.Sprintf("cpu: Gather: %d rows of %v into %v", len(rows), table, out))
	}
	b.rowwise(rowTask{kind: rowGather, numRows: out.Rows, numCols: out.Cols, out: out.Host(), x: table.Host(), rows: rows}, out.Cols)
}

// BiasAct adds a bias, then ReLU, then dropout.
func (b *Backend) BiasAct(out, x, bias backend.Matrix, e backend.Epilogue) {
	sameShape("BiasAct", out, x)
	if !bias.IsZero() && (bias.Rows != 1 || bias.Cols != out.Cols) {
		panic(fmt.Sprintf("cpu: BiasAct: bias %v for %v", bias, out))
	}
	b.rowwise(rowTask{
		kind: rowBiasAct, numRows: out.Rows, numCols: out.Cols, out: out.Host(), x: x.Host(),
		bias: bias.Host(), relu: e.ReLU, drop: e.Drop,
	}, 2*out.Cols)
}

// BiasActBackward is the gradient of BiasAct to its x.
func (b *Backend) BiasActBackward(dx, dout, out backend.Matrix, e backend.Epilogue) {
	sameShape("BiasActBackward", dx, dout, out)
	b.rowwise(rowTask{
		kind: rowBiasActBackward, numRows: dx.Rows, numCols: dx.Cols, out: dx.Host(), x: dout.Host(), y: out.Host(),
		relu: e.ReLU, drop: e.Drop,
	}, 2*dx.Cols)
}

// Dropout drops elements of x.
func (b *Backend) Dropout(out, x backend.Matrix, d backend.Drop) {
	sameShape("Dropout", out, x)
	b.rowwise(rowTask{kind: rowDropout, numRows: out.Rows, numCols: out.Cols, out: out.Host(), x: x.Host(), drop: d}, 2*out.Cols)
}

// ColSums adds the rows of x: chunks of 256 rows in float64, then the chunks in order,
// then one rounding.
func (b *Backend) ColSums(out, x backend.Matrix) {
	if out.Rows != 1 || out.Cols != x.Cols {
		panic(fmt.Sprintf("cpu: ColSums of %v into %v", x, out))
	}
	if x.Cols == 0 || b.err != nil {
		return
	}
	numChunks := (x.Rows + chunkRows - 1) / chunkRows
	partial := b.partials((numChunks + 1) * x.Cols)
	b.rowwise(rowTask{kind: rowColSums, numRows: numChunks, numCols: x.Cols, x: x.Host(), partial: partial}, chunkRows*x.Cols)
	if b.err != nil {
		return
	}
	total := partial[numChunks*x.Cols:]
	for c := range numChunks {
		for j, v := range partial[c*x.Cols : (c+1)*x.Cols] {
			total[j] += v
		}
	}
	for j, v := range total {
		out.Host()[j] = float32(v)
	}
}
