package run

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/feed"
	"github.com/prelift/prelift/trainer/internal/metrics"
)

// predictions is the table that Predict writes.
type predictions struct {
	ids    format.Names
	names  []string // of the classes
	task   string
	cols   int       // logits of a node
	logits []float32 // [nodes, cols]
}

func newPredictions(set *feed.Set, cols int, logits []float32) (*predictions, error) {
	for i, z := range logits {
		if z != z {
			return nil, fmt.Errorf("%w: the output for node %d is not a number", ErrDiverged, i/cols)
		}
	}
	return &predictions{ids: set.IDs(), names: set.ClassNames(), task: set.Manifest.LabelTask, cols: cols, logits: logits}, nil
}

// probabilities computes the probability of each class for one node into p
// [len(names)], and returns the likeliest, -1 for several labels.
func (t *predictions) probabilities(node int, p []float32) int {
	z := t.logits[node*t.cols : (node+1)*t.cols]
	switch {
	case t.task == feed.TaskMultilabel:
		for c, v := range z {
			p[c] = sigmoid(v)
		}
		return -1
	case t.cols == 1:
		p[0], p[1] = sigmoid(-z[0]), sigmoid(z[0])
		if z[0] > 0 {
			return 1
		}
		return 0
	}
	z = z[:len(p)] // a single class has a second logit that stands for nothing
	best := metrics.Argmax(z)
	sum := 0.0
	for _, v := range z {
		sum += math.Exp(float64(v) - float64(z[best]))
	}
	for c, v := range z {
		p[c] = float32(math.Exp(float64(v)-float64(z[best])) / sum)
	}
	return best
}

func sigmoid(z float32) float32 { return float32(1 / (1 + math.Exp(-float64(z)))) }

// columns names the columns of the table after id.
func (t *predictions) columns() (labels, probabilities []string) {
	if t.task != feed.TaskMultilabel {
		labels = []string{"prediction"}
	}
	for _, name := range t.names {
		if t.task == feed.TaskMultilabel {
			labels = append(labels, "y_"+name)
		}
		probabilities = append(probabilities, "p_"+name)
	}
	return labels, probabilities
}

// parquetRows is the height of a row group.
const parquetRows = 1 << 16

// writeParquet writes the table. Ids are strings where all are valid UTF-8, else binary.
func (t *predictions) writeParquet(ctx context.Context, w io.Writer) error {
	var idType arrow.DataType = arrow.BinaryTypes.String
	for i := range t.ids.Len() {
		if !utf8.Valid(t.ids.At(i)) {
			idType = arrow.BinaryTypes.Binary
			break
		}
	}
	labelType := arrow.DataType(arrow.BinaryTypes.String)
	if t.task == feed.TaskMultilabel {
		labelType = arrow.FixedWidthTypes.Boolean
	}
	fields := []arrow.Field{{Name: "id", Type: idType}}
	labels, probabilities := t.columns()
	for _, name := range labels {
		fields = append(fields, arrow.Field{Name: name, Type: labelType})
	}
	for _, name := range probabilities {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float32})
	}
	schema := arrow.NewSchema(fields, nil)
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithMaxRowGroupLength(parquetRows))
	// The writer closes what it is given if it can; w is the caller's to close.
	pw, err := pqarrow.NewFileWriter(schema, struct{ io.Writer }{w}, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for lo := 0; lo < t.ids.Len(); lo += parquetRows {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, pw.Close())
		}
		t.fill(b, lo, min(lo+parquetRows, t.ids.Len()), len(labels))
		rec := b.NewRecord()
		err := pw.Write(rec)
		rec.Release()
		if err != nil {
			return errors.Join(err, pw.Close())
		}
	}
	return pw.Close()
}

// fill appends the rows [lo, hi).
func (t *predictions) fill(b *array.RecordBuilder, lo, hi, numLabels int) {
	p := make([]float32, len(t.names))
	for v := lo; v < hi; v++ {
		best := t.probabilities(v, p)
		switch id := b.Field(0).(type) {
		case *array.StringBuilder:
			id.Append(string(t.ids.At(v)))
		case *array.BinaryBuilder:
			id.Append(t.ids.At(v))
		}
		for c := range numLabels {
			switch label := b.Field(1 + c).(type) {
			case *array.StringBuilder:
				label.Append(t.names[best])
			case *array.BooleanBuilder:
				label.Append(p[c] > 0.5)
			}
		}
		for c, value := range p {
			b.Field(1 + numLabels + c).(*array.Float32Builder).Append(value)
		}
	}
}

// writeCSV writes the table with a header; probabilities in the shortest form that reads
// back as the same float32.
func (t *predictions) writeCSV(ctx context.Context, w io.Writer) error {
	out := csv.NewWriter(w)
	labels, probabilities := t.columns()
	if err := out.Write(slices.Concat([]string{"id"}, labels, probabilities)); err != nil {
		return err
	}
	p := make([]float32, len(t.names))
	var row []string
	for v := range t.ids.Len() {
		if v%parquetRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		best := t.probabilities(v, p)
		row = append(row[:0], string(t.ids.At(v)))
		if best >= 0 {
			row = append(row, t.names[best])
		} else {
			for _, value := range p {
				row = append(row, strconv.FormatBool(value > 0.5))
			}
		}
		for _, value := range p {
			row = append(row, strconv.FormatFloat(float64(value), 'g', -1, 32))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
