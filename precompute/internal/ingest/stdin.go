package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// stdinPath is the edge file that stands for Options.Stdin.
const stdinPath = "-"

// spoolStdin copies Stdin to a file in TmpDir, if an edge file is -: formats are told by a look at the first bytes, and
// messages read files again. It returns what removes the file, and puts the digest of its bytes into the report.
func (r *reader) spoolStdin(ctx context.Context) (remove func(), err error) {
	o := &r.opt
	remove = func() {}
	file := ""
	for i, path := range o.Edges {
		if path != stdinPath {
			continue
		}
		if file != "" {
			return remove, &Error{Err: ErrOption, Msg: "- is given twice as an edge file"}
		}
		dir, err := os.MkdirTemp(o.TmpDir, "prelift-stdin-")
		if err != nil {
			return remove, &Error{File: "stdin", Msg: fmt.Sprintf("no place to keep it in %s: %s", quote(cmp.Or(o.TmpDir, os.TempDir())), openReason(err)), Hint: "--tmp chooses the directory", Err: err}
		}
		remove = func() { os.RemoveAll(dir) }
		file = filepath.Join(dir, "stdin")
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			from, digest := cmp.Or[io.Reader](o.Stdin, os.Stdin), sha256.New()
			_, err = io.Copy(io.MultiWriter(f, digest), contextReader{ctx, from})
			r.report.StdinSHA256 = digest.Sum(nil)
			if e := f.Close(); err == nil {
				err = e
			}
		}
		if ctx.Err() != nil {
			return remove, ctx.Err()
		}
		if err != nil {
			return remove, &Error{File: "stdin", Msg: "can't be kept in a temporary file: " + err.Error(), Err: err}
		}
		o.Edges[i] = file
	}
	return remove, nil
}

// contextReader ends when ctx does, between reads.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
