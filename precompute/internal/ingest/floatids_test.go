package ingest

import (
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// floatRecord has a column of float64 for each name; a name that ends in 32 makes one of float32.
func floatRecord(names string, rows ...[]float64) arrow.Record {
	var fields []arrow.Field
	for name := range strings.SplitSeq(names, ",") {
		name, single := strings.CutSuffix(name, "32")
		kind := arrow.DataType(arrow.PrimitiveTypes.Float64)
		if single {
			kind = arrow.PrimitiveTypes.Float32
		}
		fields = append(fields, arrow.Field{Name: name, Type: kind})
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema(fields, nil))
	for _, row := range rows {
		for i, v := range row {
			switch b := b.Field(i).(type) {
			case *array.Float64Builder:
				b.Append(v)
			case *array.Float32Builder:
				b.Append(float32(v))
			}
		}
	}
	return b.NewRecord()
}

// Ids, relations and classes in columns of floats are the integers that they are, none is rounded into another.
func TestFloatIDs(t *testing.T) {
	const big = 1<<53 - 1
	for _, how := range []string{"parquet", "file"} {
		write := func(rec arrow.Record) string { return writeFile(t, "f", string(writeColumnar(t, how, rec, 1))) }
		edges := write(floatRecord("src,dst,rel,weight", []float64{16777216, 16777217, 1e7, 16777217}, []float64{big, big - 1, 1e7 + 1, 1}))
		tables, _ := mustRead(t, Options{Edges: []string{edges}, RelCol: "rel"})
		wantIDs(t, tables, "16777216", "16777217", "9007199254740990", "9007199254740991")
		if got := strings.Join(tables.RelNames, " "); got != "10000000 10000001" {
			t.Errorf("%s: relations %s", how, got)
		}
		if got := edgesOf(tables).Weight[0]; got != 16777216 {
			t.Errorf("%s: weight %v", how, got)
		}
		one := writeFile(t, "e.csv", "src,dst\n15000001,15000002\n")
		nodes := write(floatRecord("id,label,f0", []float64{15000001, 16777217, 0.5}, []float64{15000002, math.NaN(), 16777217}, []float64{15000003, -1, 2}))
		tables, _ = mustRead(t, Options{Edges: []string{one}, Nodes: nodes})
		wantClasses(t, tables, map[string]string{"15000001": "16777217", "15000002": "none", "15000003": "none"})
		if got := tables.Features.Data; got[0] != 0.5 || got[1] != 16777216 {
			t.Errorf("%s: features %v", how, got)
		}
		other := write(floatRecord("id,f0", []float64{15000004, 7}))
		tables, _ = mustRead(t, Options{Edges: []string{one}, NodeFiles: []string{writeFile(t, "n", string(writeColumnar(t, how, floatRecord("id,f0", []float64{15000001, 1}, []float64{15000002, 1}), 1))), other}})
		wantIDs(t, tables, "15000001", "15000002", "15000004")
		tables, _ = mustRead(t, Options{Edges: []string{one}, Nodes: nodes, LabelCol: "f0", Task: "regression"})
		if got := tables.Labels.Values[0]; got != 0.5 {
			t.Errorf("%s: target %v", how, got)
		}
		for _, c := range []struct {
			name string
			opt  Options
			line int64
			want string
		}{
			{"fraction", Options{Edges: []string{write(floatRecord("src,dst", []float64{1, 2}, []float64{1, 2.5}))}}, 2, `field "dst": "2.5" is a float that stands for no one integer (save ids`},
			{"too large", Options{Edges: []string{write(floatRecord("src,dst", []float64{1 << 53, 2}))}}, 1, `field "src": "9.007199254740992e+15"`},
			{"too large for 32 bits", Options{Edges: []string{write(floatRecord("src32,dst", []float64{1 << 24, 2}))}}, 1, `field "src": "1.6777216e+07"`},
			{"infinity", Options{Edges: []string{write(floatRecord("src,dst", []float64{1, math.Inf(1)}))}}, 1, `"+Inf"`},
			{"NaN", Options{Edges: []string{write(floatRecord("src,dst", []float64{1, math.NaN()}))}}, 1, "null id"},
			{"relation", Options{Edges: []string{write(floatRecord("src,dst,rel", []float64{1, 2, 0.5}))}, RelCol: "rel"}, 1, `field "rel": "0.5"`},
			{"id", Options{Edges: []string{one}, Nodes: write(floatRecord("id", []float64{1.5}))}, 1, `field "id": "1.5"`},
			{"type", Options{Edges: []string{one}, Nodes: write(floatRecord("id,kind", []float64{15000001, 0.5})), TypeCol: "kind"}, 1, `field "kind": "0.5"`},
			{"class", Options{Edges: []string{one}, Nodes: write(floatRecord("id,y", []float64{15000001, 0.5}))}, 1, `field "y": "0.5" is a float that stands for no one integer (--task regression`},
			{"class infinity", Options{Edges: []string{one}, Labels: write(floatRecord("id,y", []float64{15000001, math.Inf(-1)}))}, 1, `field "y": "-Inf"`},
		} {
			t.Run(how+" "+c.name, func(t *testing.T) { wantRow(t, c.opt, "f", c.line, c.want) })
		}
	}
}
