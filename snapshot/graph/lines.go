package graph

// Lines says which lines of the input became which distinct edge, edges in the order of Rows (by row, then col, then
// relation): what is needed to say what a changed list of lines would give.
type Lines struct {
	// Code holds 2 bits an edge, four to a byte, the first in the lowest bits.
	Code []byte
	N    int64 // edges

	// Of the edges with LinesOther, in order: how many lines list them as they are, and the other way round.
	Forward, Backward []uint32
	// Weights, of weighted edges, are those of the lines of edges with LinesOther, ascending within each.
	Weights []float32
}

// The codes of Lines.Code. The row of an undirected edge is its smaller end, of a directed one its dst.
const (
	LinesForward  = 0 // one line: undirected, its smaller end as src
	LinesBackward = 1 // one line, the other way round
	LinesBoth     = 2 // two lines, one each way (without weights)
	LinesOther    = 3
)

// add appends an edge that count[0] lines list as it is and count[1] the other way round; weights are theirs, ascending.
func (l *Lines) add(count [2]int64, weights []float32) {
	code := byte(LinesOther)
	switch {
	case count == [2]int64{1, 0}:
		code = LinesForward
	case count == [2]int64{0, 1}:
		code = LinesBackward
	case count == [2]int64{1, 1} && weights == nil:
		code = LinesBoth
	default:
		l.Forward, l.Backward = append(l.Forward, uint32(count[0])), append(l.Backward, uint32(count[1]))
		l.Weights = append(l.Weights, weights...)
	}
	l.addCode(code)
}

func (l *Lines) addCode(code byte) {
	if l.N&3 == 0 {
		l.Code = append(l.Code, 0)
	}
	l.Code[len(l.Code)-1] |= code << (2 * (l.N & 3))
	l.N++
}

// At returns the code of edge i.
func (l *Lines) At(i int64) byte { return l.Code[i>>2] >> (2 * (i & 3)) & 3 }

// append puts the edges of more behind those of l.
func (l *Lines) append(more *Lines) {
	if l.N == 0 {
		*l = *more
		return
	}
	shift := 2 * (l.N & 3)
	for i, b := range more.Code {
		if shift == 0 {
			l.Code = append(l.Code, b)
			continue
		}
		l.Code[len(l.Code)-1] |= b << shift
		if left := more.N - 4*int64(i); left > 4-shift/2 {
			l.Code = append(l.Code, b>>(8-shift))
		}
	}
	l.N += more.N
	l.Forward, l.Backward = append(l.Forward, more.Forward...), append(l.Backward, more.Backward...)
	l.Weights = append(l.Weights, more.Weights...)
}
