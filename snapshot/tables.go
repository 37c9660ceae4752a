package snapshot

import (
	"io"
	"math"
	"slices"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// Tables is a raw graph after ingest and before topology: external ids replaced by
// node numbers, every table in node order. It is what Build takes and what
// precompute's ingest gives; it holds no path, time or file name.
type Tables struct {
	IDs      IDs
	Edges    *graph.EdgeList // the lines of the input: message src -> dst; Build uses them up
	Features *Features       // nil: no features
	Labels   *Labels         // nil: no labels
	Splits   *Splits         // nil: no splits
	Types    *Types          // nil: one node type
	Held     *Held           // lists of pairs to hold out of Edges, or to store beside them (Params.Holdout); nil: none
	Declared bool            // the input has a table of all nodes, so that no other can appear and none goes
	Named    []bool          // [NumNodes] unless Declared: whether a table, not only edges, names the node; nil: none is named
	RelNames []string        // names of the relations of Edges, sorted; nil where they have none
}

// NumNodes returns the number of nodes.
func (t *Tables) NumNodes() int { return t.IDs.Len() }

// Collation is the order of the external ids, and with it of the node numbers.
type Collation string

// The two collations of DESIGN decision 1.
const (
	CollationInteger Collation = "integer" // every id is a canonical decimal integer: numeric order
	CollationBytes   Collation = "bytes"   // bytewise order
)

// IDs holds the external ids sorted by Collation; node number i has the bytes
// Bytes[Offsets[i]:Offsets[i+1]]. Offsets has len NumNodes+1 and Offsets[0] = 0.
// The ids are distinct and non-empty.
type IDs struct {
	Offsets   []int64
	Bytes     []byte
	Collation Collation
}

// Len returns the number of ids.
func (ids *IDs) Len() int { return max(len(ids.Offsets)-1, 0) }

// At returns the external id of node number i; valid as long as ids, read-only.
func (ids *IDs) At(i int32) []byte { return ids.Bytes[ids.Offsets[i]:ids.Offsets[i+1]] }

// Types holds the type of every node: Names[Type[node]]. Names are sorted bytewise; the name
// "" stands for nodes to which the source gives none.
type Types struct {
	Names []string
	Type  []int32 // [NumNodes]
}

// Features is a dense row-major float32 matrix [NumNodes, NumCols] in node order.
type Features struct {
	NumCols int
	Data    []float32
	// Write, in place of Data, writes the rows as they are in a file.
	Write func(w io.Writer) error
}

// Task says what the labels are for.
type Task string

// The tasks a label table can carry.
const (
	TaskMulticlass Task = "multiclass" // Class
	TaskBinary     Task = "binary"     // Class, two classes
	TaskMultilabel Task = "multilabel" // Bits
	TaskRegression Task = "regression" // Values
)

// Labels holds the targets of every node. Exactly one of Class, Bits and Values is set.
type Labels struct {
	Task       Task
	ClassNames []string  // multiclass, binary: the label texts in class order; multilabel: the column names
	Class      []int32   // [NumNodes], -1 = unlabelled
	Bits       []uint8   // [NumNodes, len(ClassNames)] row-major 0 or 1
	Values     []float32 // [NumNodes, NumTargets] row-major
	NumTargets int       // regression only
	Labelled   []bool    // [NumNodes]; false where the source gave nothing (multilabel, regression); nil for Class
}

// Part is a node's place in one split.
type Part = uint8

// The parts of a split.
const (
	PartNone  Part = 0
	PartTrain Part = 1
	PartValid Part = 2
	PartTest  Part = 3
)

// Splits holds one column per split: Mask[node*len(Names)+k] is the Part of node in split k.
type Splits struct {
	Names []string
	Mask  []Part
}

// markedBits returns Bits with format.Unlabelled in the rows that have no label.
func (l *Labels) markedBits() []uint8 {
	bits, cols := slices.Clone(l.Bits), len(l.ClassNames)
	for v, ok := range l.Labelled {
		for c := range cols {
			if !ok {
				bits[v*cols+c] = format.Unlabelled
			}
		}
	}
	return bits
}

// noTarget is the format's NaN (SPEC 5.1), for a target that isn't there.
func noTarget() float32 { return math.Float32frombits(0x7FC00000) }

// markedValues returns Values with noTarget in the rows that have no label.
func (l *Labels) markedValues() []float32 {
	values := slices.Clone(l.Values)
	for v, ok := range l.Labelled {
		for c := range l.NumTargets {
			if !ok {
				values[v*l.NumTargets+c] = noTarget()
			}
		}
	}
	return values
}
