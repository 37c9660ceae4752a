package ingest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	blockSize  = 1 << 20   // bytes of text parsed at a time: with the numbers of its ids it fits a core's own cache of 2 MiB
	peekSize   = 64 << 10  // bytes looked at to tell the format
	maxRecord  = 64 << 20  // bytes of one row
	padding    = 16        // readable bytes behind a block, so that eight digits can be loaded at once
	gzipBuffer = 256 << 10 // bytes read from disk at a time
	zstdMax    = 256 << 20 // most memory a zstd frame may ask for
)

// input is one file read as text: decompressed, without byte order mark, handed out in blocks of whole records.
type input struct {
	path, name string // name is for messages: Options.nameOf
	file       *os.File
	size       int64        // bytes on disk
	read       atomic.Int64 // bytes read from disk
	text       io.Reader
	closeText  func()
	carry      []byte // text read but not yet handed out
	line       int64  // line number of carry[0]
	done       bool   // text is at its end
	err        error  // why, if it isn't the end of the file
}

// Read reads from disk and counts.
func (in *input) Read(p []byte) (int, error) {
	n, err := in.file.Read(p)
	in.read.Add(int64(n))
	return n, err
}

// openInput opens path and reads up to peekSize bytes of text into carry.
func openInput(opt *Options, path string) (*input, error) {
	in := &input{path: path, name: opt.nameOf(path), line: 1, closeText: func() {}}
	file, size, err := openRegular(path, in.name)
	if err != nil {
		return nil, err
	}
	in.file, in.size = file, size
	if err := in.start(); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// openRegular opens path and returns its size; anything but a regular file is refused. name is for messages.
func openRegular(path, name string) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // Open waits for a pipe's other end
		return nil, 0, &Error{File: name, Msg: "is not a regular file"}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, &Error{File: name, Msg: openReason(err), Err: err}
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, 0, &Error{File: name, Msg: "is not a regular file", Err: err}
	}
	return file, info.Size(), nil
}

// openReason turns an error of os.Open into the words after the file's name.
func openReason(err error) string {
	if e := (*os.PathError)(nil); errors.As(err, &e) {
		err = e.Err
	}
	return "can't be opened: " + err.Error()
}

// start picks the decompressor and fills carry.
func (in *input) start() error {
	var magic [4]byte
	n, err := in.file.ReadAt(magic[:], 0)
	if err != nil && err != io.EOF {
		return in.fault(err)
	}
	lower := strings.ToLower(in.name)
	isGzip := n >= 2 && magic[0] == 0x1f && magic[1] == 0x8b
	isZstd := n == 4 && magic == [4]byte{0x28, 0xb5, 0x2f, 0xfd}
	switch {
	case strings.HasSuffix(lower, ".gz") && !isGzip:
		return &Error{File: in.name, Msg: "empty or not gzip"}
	case strings.HasSuffix(lower, ".zst") && !isZstd:
		return &Error{File: in.name, Msg: "empty or not zstd"}
	case isGzip:
		r := &gzipReader{packed: bufio.NewReaderSize(in, gzipBuffer)}
		if r.z, err = gzip.NewReader(r.packed); err != nil {
			return in.fault(err)
		}
		r.z.Multistream(false)
		in.text = r
	case isZstd:
		r, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdMax),
			zstd.WithDecoderMaxMemory(1<<62), zstd.WithDecoderLowmem(true))
		if err != nil {
			return in.fault(err)
		}
		in.text, in.closeText = r, r.Close
	default:
		in.text = in
	}
	in.carry = in.fill(make([]byte, 0, peekSize), peekSize)
	if bytes.HasPrefix(in.carry, []byte("\xff\xfe")) || bytes.HasPrefix(in.carry, []byte("\xfe\xff")) {
		return &Error{File: in.name, Line: 1, Msg: "is UTF-16 text", Hint: "convert it to UTF-8"}
	}
	in.carry = bytes.TrimPrefix(in.carry, []byte("\ufeff"))
	return nil
}

// gzipReader reads the members of a gzip file one behind the other. Other bytes behind a member end it with errTrailing, for which the library
// gives the error of a truncated file.
type gzipReader struct {
	packed *bufio.Reader
	z      *gzip.Reader
}

var errTrailing = errors.New("other bytes behind the gzip data")

func (g *gzipReader) Read(p []byte) (int, error) {
	n, err := g.z.Read(p)
	if err != io.EOF {
		return n, err
	}
	switch head, err := g.packed.Peek(2); {
	case len(head) == 0:
		return n, err
	case head[0] != 0x1f || len(head) == 2 && head[1] != 0x8b:
		return n, errTrailing
	}
	if err := g.z.Reset(g.packed); err != nil {
		return n, err
	}
	g.z.Multistream(false)
	return n, nil
}

// fill reads text behind buf until it holds size bytes or the text ends, if by a fault with err set.
func (in *input) fill(buf []byte, size int) []byte {
	for len(buf) < size && !in.done {
		n, err := in.text.Read(buf[len(buf):size])
		buf = buf[:len(buf)+n]
		if err != nil {
			in.done = true
			if err != io.EOF {
				in.err = in.fault(err)
			}
		}
	}
	return buf
}

// fault says what an error of reading or decompressing means.
func (in *input) fault(err error) error {
	e := &Error{File: in.name, Err: err}
	switch {
	case errors.Is(err, errTrailing):
		e.Msg, e.Hint = "has other bytes behind the end of its gzip data", "something was appended to it: unpack it by gzip -dc FILE > TEXT, and look at the end"
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		e.Msg, e.Hint = "unexpected end of file: truncated gzip", "copy the file again"
		if _, ok := in.text.(*zstd.Decoder); ok {
			e.Msg = "unexpected end of file: truncated zstd"
		}
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, zstd.ErrCRCMismatch):
		e.Msg, e.Hint = "checksum doesn't match: the compressed file is damaged", "copy the file again"
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		e.Msg, e.Err = "zstd asks for more than 256 MiB of memory", ErrLimit
	default:
		if e2 := (*os.PathError)(nil); errors.As(err, &e2) {
			e.Msg = "can't be read: " + e2.Err.Error()
		} else {
			e.Msg = "can't be decompressed: " + err.Error()
		}
	}
	return e
}

// next returns the next block of whole records in buf's memory, ending in LF (added if the file's last line has
// none), with at least padding-1 bytes of capacity behind it, and the number of its first line. io.EOF ends the file. A
// record that the text ends inside of comes as it is; after a fault of reading, the whole records before it come
// first.
func (in *input) next(ctx context.Context, d *dialect, buf []byte, size int) ([]byte, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if in.done {
		size = min(size, len(in.carry))
	}
	for {
		if cap(buf) < size+padding {
			buf = make([]byte, 0, size+padding)
		}
		taken := min(size, len(in.carry))
		buf = append(buf[:0], in.carry[:taken]...)
		if taken == len(in.carry) {
			buf = in.fill(buf, size)
		}
		last := in.done && taken == len(in.carry)
		end := len(buf)
		if !last || in.err != nil {
			end = d.lastRecordEnd(buf)
		}
		if end > 0 || last {
			if taken == len(in.carry) {
				in.carry = append(in.carry[:0], buf[end:]...)
			} else {
				in.carry = append(in.carry[:0], in.carry[end:]...)
			}
			if last && in.err != nil && end == 0 {
				return nil, 0, in.err
			}
			buf = buf[:end]
			break
		}
		if size >= maxRecord {
			return nil, 0, &Error{File: in.name, Line: in.line, Msg: "a row is longer than 64 MiB", Hint: "a quote that is never closed, or no text file", Err: ErrLimit}
		}
		if taken == len(in.carry) {
			in.carry = append(in.carry[:0], buf...)
		}
		size = min(2*size, maxRecord)
	}
	if len(buf) == 0 {
		return nil, 0, io.EOF
	}
	if buf[len(buf)-1] != '\n' {
		buf = append(buf, '\n')
	}
	line := in.line
	in.line += int64(bytes.Count(buf, []byte{'\n'}))
	return buf, line, nil
}

// atEnd reports whether next has returned the last block.
func (in *input) atEnd() bool { return in.done && len(in.carry) == 0 }

// unread takes back the block that next returned last, which isn't the end of the file.
func (in *input) unread(block []byte, line int64) {
	in.carry = append(block, in.carry...)
	in.line = line
}

func (in *input) close() {
	in.closeText()
	if in.file != nil {
		in.file.Close()
	}
}
