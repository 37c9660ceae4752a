package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
)

// convert writes the edges of a generated CSV file to path: Parquet, or CSV with each id as 16 hex digits of a hash of it.
func convert(edges, path string) error {
	in, err := os.Open(edges)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(path + ".partial")
	if err != nil {
		return err
	}
	defer out.Close()
	start := hexWriter
	if strings.HasSuffix(path, ".parquet") {
		start = parquetWriter
	}
	put, finish, err := start(out)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Scan() // the header
	for lines.Scan() {
		src, dst, _ := strings.Cut(lines.Text(), ",")
		x, err1 := strconv.ParseInt(src, 10, 64)
		y, err2 := strconv.ParseInt(dst, 10, 64)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("%s: %q is no edge", edges, lines.Text())
		}
		if err := put(x, y); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if err := finish(); err != nil {
		return err
	}
	return os.Rename(path+".partial", path)
}

func hexWriter(out *os.File) (put func(x, y int64) error, finish func() error, err error) {
	w := bufio.NewWriterSize(out, 1<<20)
	fmt.Fprintln(w, "src,dst")
	line := make([]byte, 0, 40)
	id := func(v int64) {
		const digits = "0123456789abcdef"
		x := uint64(v+1) * 0x9e3779b97f4a7c15
		x ^= x >> 29
		for shift := 60; shift >= 0; shift -= 4 {
			line = append(line, digits[x>>shift&15])
		}
	}
	put = func(x, y int64) error {
		line = line[:0]
		id(x)
		line = append(line, ',')
		id(y)
		line = append(line, '\n')
		_, err := w.Write(line)
		return err
	}
	return put, w.Flush, nil
}

func parquetWriter(out *os.File) (put func(x, y int64) error, finish func() error, err error) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "src", Type: arrow.PrimitiveTypes.Int64}, {Name: "dst", Type: arrow.PrimitiveTypes.Int64}}, nil)
	w, err := pqarrow.NewFileWriter(schema, out, parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy)), pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, nil, err
	}
	rows := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	src, dst := rows.Field(0).(*array.Int64Builder), rows.Field(1).(*array.Int64Builder)
	flush := func() error {
		rec := rows.NewRecord()
		defer rec.Release()
		return w.Write(rec)
	}
	put = func(x, y int64) error {
		src.Append(x)
		dst.Append(y)
		if src.Len() < 1<<20 {
			return nil
		}
		return flush()
	}
	finish = func() error {
		if src.Len() > 0 {
			if err := flush(); err != nil {
				return err
			}
		}
		return w.Close()
	}
	return put, finish, nil
}
