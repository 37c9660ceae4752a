package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
)

// checkedPages hands out the pages of a column and refuses those on which arrow/go v15's column reader would loop for
// ever or allocate by an unchecked count: levels or delta-encoded values that end before the page's number of values.
type checkedPages struct {
	file.PageReader
	maxDef, maxRep int16
	limit          int64 // bytes of memory
	err            error
}

func (c *checkedPages) Next() bool {
	if c.err != nil || !c.PageReader.Next() {
		return false
	}
	c.err = c.check()
	return c.err == nil
}

func (c *checkedPages) Err() error {
	if c.err != nil {
		return c.err
	}
	return c.PageReader.Err()
}

// check looks at the current page, whose data is decompressed: repetition levels, definition levels, values.
func (c *checkedPages) check() error {
	page := c.Page()
	b, n := page.Data(), int64(page.NumValues())
	if n < 0 {
		return fmt.Errorf("page of %d values", n)
	}
	var err error
	switch p := page.(type) {
	case *file.DictionaryPage:
		return nil
	case *file.DataPageV1:
		if c.maxRep > 0 {
			if b, err = checkLevels(b, parquet.Encoding(p.RepetitionLevelEncoding()), c.maxRep, n); err != nil {
				return err
			}
		}
		if c.maxDef > 0 {
			if b, err = checkLevels(b, parquet.Encoding(p.DefinitionLevelEncoding()), c.maxDef, n); err != nil {
				return err
			}
		}
	case *file.DataPageV2:
		rep, def := int64(p.RepetitionLevelByteLen()), int64(p.DefinitionLevelByteLen())
		if rep < 0 || def < 0 || rep > int64(len(b)) || def > int64(len(b))-rep {
			return fmt.Errorf("levels of %d and %d bytes in a page of %d", rep, def, len(b))
		}
		if c.maxRep > 0 && !runsHold(b[:rep], c.maxRep, n) || c.maxDef > 0 && !runsHold(b[rep:rep+def], c.maxDef, n) {
			return errLevels
		}
		b = b[rep+def:]
	default:
		return fmt.Errorf("page of the type %v", page.Type())
	}
	switch e := parquet.Encoding(page.Encoding()); e {
	case parquet.Encodings.DeltaBinaryPacked, parquet.Encodings.DeltaLengthByteArray:
		return c.checkDelta(b, n, e == parquet.Encodings.DeltaLengthByteArray)
	case parquet.Encodings.DeltaByteArray:
		return encodingError("DELTA_BYTE_ARRAY")
	case byteStreamSplit:
		return encodingError("BYTE_STREAM_SPLIT")
	}
	return nil
}

// byteStreamSplit is an encoding of Parquet 2.8 that the library doesn't know.
const byteStreamSplit = parquet.Encoding(9)

func encodingError(name string) error {
	return &Error{Msg: "is Parquet with values in the encoding " + name + ", which is not read", Hint: "write the columns plain or with a dictionary"}
}

var errLevels = errors.New("page with fewer levels than values")

// checkLevels checks the levels at the start of b, as a page of version 1 holds them, and returns what follows.
func checkLevels(b []byte, encoding parquet.Encoding, maxLevel int16, n int64) ([]byte, error) {
	if encoding != parquet.Encodings.RLE {
		return nil, fmt.Errorf("levels in the encoding %v are not read", encoding)
	}
	if len(b) < 4 {
		return nil, errLevels
	}
	length := int64(int32(binary.LittleEndian.Uint32(b)))
	if length < 0 || length > int64(len(b)-4) || !runsHold(b[4:4+length], maxLevel, n) {
		return nil, errLevels
	}
	return b[4+length:], nil
}

// runsHold reports whether runs of the RLE and bit-packing hybrid hold n levels from 0 to maxLevel.
func runsHold(b []byte, maxLevel int16, n int64) bool {
	width := bits.Len16(uint16(maxLevel))
	for n > 0 {
		head, size := binary.Uvarint(b)
		if size <= 0 || head>>1 == 0 || head > 1<<31 {
			return false
		}
		b = b[size:]
		count, length := int64(head>>1), (width+7)/8
		if head&1 != 0 { // groups of eight
			length = int(min(count*int64(width), int64(len(b)))) // the last may be cut
			count *= 8
		}
		if length > len(b) {
			return false
		}
		b = b[length:]
		n -= count
	}
	return true
}

// checkDelta checks the header of delta-encoded values: sizes that are sane, and as many values as the page has, or
// fewer where some are null. lengths are read all at once.
func (c *checkedPages) checkDelta(b []byte, n int64, lengths bool) error {
	var head [3]uint64
	for i := range head {
		v, size := binary.Uvarint(b)
		if size <= 0 {
			return errors.New("page with a damaged delta header")
		}
		head[i], b = v, b[size:]
	}
	block, minis, total := head[0], head[1], head[2]
	const maxBlock = 1 << 20 // values; writers use 128
	switch {
	case minis == 0 || block == 0 || block > maxBlock || minis > block || block%minis != 0:
		return fmt.Errorf("page with delta blocks of %d values in %d parts", block, minis)
	case total > uint64(n) || c.maxDef == 0 && total != uint64(n):
		return fmt.Errorf("page of %d values with %d delta-encoded ones", n, total)
	case lengths && n*4 > c.limit:
		return fmt.Errorf("page of %d delta-encoded values", n)
	}
	return nil
}
