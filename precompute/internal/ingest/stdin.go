package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

// stdinPath is the edge file that stands for Options.Stdin.
const stdinPath = "-"

// spoolStdin copies Stdin to a file in TmpDir, if an edge file is -: formats are told by a look at the first bytes, and
// messages read files again. The file has no name, where the system lets that be, so that it is gone with the process, however that ends.
// It returns what removes the file, and puts the digest of its bytes into the report.
func (r *reader) spoolStdin(ctx context.Context) (remove func(), err error) {
	o := &r.opt
	remove = func() {}
	for i, path := range o.Edges {
		if path != stdinPath {
			continue
		}
		if r.report.StdinSHA256 != nil {
			return remove, &Error{Err: ErrOption, Msg: "- is given twice as an edge file"}
		}
		f, path, err := unnamedFile(o.TmpDir, "prelift-stdin-")
		if err != nil {
			return remove, fmt.Errorf("no place to keep standard input in %s: %w (--tmp chooses the directory)", quote(cmp.Or(o.TmpDir, os.TempDir())), err)
		}
		remove = func() {
			f.Close()
			if path == f.Name() {
				os.Remove(path)
			}
		}
		from := &contextReader{ctx: ctx, r: cmp.Or[io.Reader](o.Stdin, os.Stdin)}
		digest := sha256.New()
		copied := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.MultiWriter(f, digest), from)
			copied <- err
		}()
		select {
		case err = <-copied:
		case <-ctx.Done(): // whoever writes may be silent for long; the goroutine ends with the process
		}
		if ctx.Err() != nil {
			return remove, ctx.Err()
		}
		r.report.StdinSHA256 = digest.Sum(nil)
		switch {
		case from.err != nil:
			return remove, &Error{File: "stdin", Msg: "can't be read: " + from.err.Error(), Err: from.err}
		case err != nil:
			return remove, fmt.Errorf("standard input can't be kept in %s: %w (--tmp chooses the directory)", quote(cmp.Or(o.TmpDir, os.TempDir())), err)
		}
		o.Edges[i], o.names[path] = path, "stdin"
	}
	return remove, nil
}

// unnamedFile makes a file in dir, of which the name is removed at once, and returns it and a path that opens it as long as f is open; where
// there is no such path it keeps its name.
func unnamedFile(dir, pattern string) (f *os.File, path string, err error) {
	if f, err = os.CreateTemp(dir, pattern); err != nil {
		return nil, "", err
	}
	path = fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	own, err := f.Stat()
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, "", err
	}
	if info, err := os.Stat(path); err != nil || !os.SameFile(info, own) || os.Remove(f.Name()) != nil {
		return f, f.Name(), nil
	}
	return f, path, nil
}

// contextReader ends when ctx does, between reads, and keeps the error that ended r.
type contextReader struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	if err != io.EOF {
		c.err = err
	}
	return n, err
}
