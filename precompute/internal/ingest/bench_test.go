package ingest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// BenchmarkEdges reads a file of random edges, warm in the page cache, from parsing to numbered nodes.
func BenchmarkEdges(b *testing.B) {
	const lines, nodes = 4_000_000, 500_000
	for _, kind := range []string{"int", "int-weight", "sparse-int", "hex", "quoted-hex"} {
		for _, ext := range []string{".csv", ".csv.gz"} {
			if ext != ".csv" && kind != "int" && kind != "hex" {
				continue
			}
			var path string
			var size int64
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s%s/threads=%d", kind, ext, threads), func(b *testing.B) {
					if path == "" {
						rng := rand.New(rand.NewPCG(1, 2))
						var text []byte
						id := func() {
							k := rng.IntN(nodes)
							switch kind {
							case "int", "int-weight":
								text = strconv.AppendInt(text, int64(k), 10)
							case "sparse-int":
								text = strconv.AppendInt(text, int64(k)*7919*7919, 10)
							case "hex":
								text = fmt.Appendf(text, "%016x", uint64(k)*0x9e3779b97f4a7c15)
							case "quoted-hex":
								text = fmt.Appendf(text, `"%016x"`, uint64(k)*0x9e3779b97f4a7c15)
							}
						}
						text = append(text, "src,dst"...)
						if kind == "int-weight" {
							text = append(text, ",weight"...)
						}
						text = append(text, '\n')
						for range lines {
							id()
							text = append(text, ',')
							id()
							if kind == "int-weight" {
								text = append(text, ",0.25"...)
							}
							text = append(text, '\n')
						}
						size = int64(len(text))
						if ext != ".csv" {
							text = gzipped(text)
						}
						path = filepath.Join(os.TempDir(), "ingest-bench"+kind+ext)
						if err := os.WriteFile(path, text, 0o666); err != nil {
							b.Fatal(err)
						}
						b.ResetTimer()
					}
					b.SetBytes(size)
					for b.Loop() {
						if _, _, err := Read(b.Context(), Options{Edges: []string{path}, Threads: threads}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(lines*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mlines/s")
				})
			}
			os.Remove(path)
		}
	}
}

// BenchmarkParquetEdges reads integer ids from Parquet, 1 M edges a time.
func BenchmarkParquetEdges(b *testing.B) {
	const edges = 1 << 20
	schema := arrow.NewSchema([]arrow.Field{{Name: "src", Type: arrow.PrimitiveTypes.Int64}, {Name: "dst", Type: arrow.PrimitiveTypes.Int64}}, nil)
	rows := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	random := rand.New(rand.NewPCG(1, 1))
	for range edges {
		rows.Field(0).(*array.Int64Builder).Append(random.Int64N(100_000))
		rows.Field(1).(*array.Int64Builder).Append(random.Int64N(100_000))
	}
	path := writeFile(b, "e.parquet", string(writeColumnar(b, "parquet-zstd", rows.NewRecord(), 1)))
	for _, slow := range []bool{false, true} {
		b.Run(fmt.Sprintf("careful=%t", slow), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := Read(b.Context(), Options{Edges: []string{path}, noFast: slow}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(edges)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}

// BenchmarkParse parses and numbers one block of integer ids again and again, in one goroutine.
func BenchmarkParse(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, weighted := range []bool{false, true} {
		var text []byte
		lines := 0
		for ; len(text) < blockSize-64; lines++ {
			text = fmt.Appendf(text, "%d,%d", random.IntN(2_400_000), random.IntN(2_400_000))
			if weighted {
				text = append(text, ",0.25"...)
			}
			text = append(text, '\n')
		}
		b.Run(fmt.Sprintf("weighted=%t", weighted), func(b *testing.B) {
			opt, _ := Options{Edges: []string{"e.csv"}}.withDefaults()
			r := &reader{opt: opt, dict: newDict(false)}
			r.dict.direct(1 << 26)
			p := &edgeParser{sink: &edgeSink{r: r}, cols: edgeColumns{src: 0, dst: 1, weight: -1, rel: -1, width: 2}, fast: true}
			if weighted {
				p.cols.weight, p.cols.width = 2, 3
			}
			p.scan.dialect = dialectCSV
			text = append(text, make([]byte, padding)...)[:len(text)]
			for b.Loop() {
				if p.parse(text, 0, 1); p.err != nil || p.rows != lines {
					b.Fatal(p.err)
				}
			}
			b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mlines/s")
		})
	}
}

// BenchmarkDictSpans numbers 16-byte ids, drawn with repetition from so many, in one goroutine.
func BenchmarkDictSpans(b *testing.B) {
	for _, ids := range []int{1_600_000, 10_000_000} {
		b.Run(fmt.Sprintf("ids=%d", ids), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 1))
			d := newDict(true)
			const batch = 1 << 16
			text, places, nums := make([]byte, 0, 16*batch), make([]uint64, batch), make([]int32, batch)
			fill := func(id func(i int) int) {
				text = text[:0]
				for i := range batch {
					places[i] = pack(span{16 * i, 16*i + 16})
					text = fmt.Appendf(text, "%016x", uint64(id(i))*0x9e3779b97f4a7c15)
				}
			}
			for at := 0; at < ids; at += batch {
				fill(func(i int) int { return at + i })
				d.addSpans(text, places, nums)
			}
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				fill(func(int) int { return random.IntN(ids) })
				b.StartTimer()
				d.addSpans(text, places, nums)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/batch, "ns/id")
		})
	}
}
