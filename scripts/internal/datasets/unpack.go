package datasets

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// maxMembers bounds an archive's table of contents.
const maxMembers = 10_000

// unpacker takes members out of an archive into dir. Nothing is written outside dir and no more than left bytes.
type unpacker struct {
	ctx   context.Context
	spec  *Unpack
	dir   string
	left  int64
	taken map[string]bool // places
	seen  int
}

// unpack takes out of the archive what spec says; a place that no member fills is an error.
func unpack(ctx context.Context, archive string, spec *Unpack, dir string) error {
	u := &unpacker{ctx: ctx, spec: spec, dir: dir, left: spec.MaxBytes, taken: map[string]bool{}}
	var err error
	switch spec.Format {
	case "zip":
		err = u.zip(archive)
	case "tar.gz":
		err = u.tar(archive)
	default:
		panic("datasets: unknown archive format " + spec.Format)
	}
	if err != nil {
		return err
	}
	for member, place := range spec.Places {
		if !u.filled(place) {
			return fmt.Errorf("holds no %s", member)
		}
	}
	return nil
}

func (u *unpacker) filled(place string) bool {
	if !strings.HasSuffix(place, "/") {
		return u.taken[place]
	}
	for t := range u.taken {
		if strings.HasPrefix(t, place) {
			return true
		}
	}
	return false
}

func (u *unpacker) zip(archive string) error {
	z, err := zip.OpenReader(archive)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return fmt.Errorf("is no readable zip file: %w", err)
	}
	defer z.Close()
	for _, f := range z.File {
		place, err := u.place(f.Name, f.Mode())
		if err != nil {
			return err
		}
		if place == "" {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		err = u.write(place, f.Name, r)
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) tar(archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("is no readable gzip file: %w", err)
	}
	// Members that aren't taken are read over, and count too.
	limited := &io.LimitedReader{R: z, N: u.spec.MaxBytes + 64*mib}
	for r := tar.NewReader(limited); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, limited) // up to the checksum
			if err == nil && limited.N <= 0 {
				err = fmt.Errorf("unpacks to more than %d bytes", u.spec.MaxBytes)
			}
			return err
		}
		switch {
		case limited.N <= 0:
			return fmt.Errorf("unpacks to more than %d bytes", u.spec.MaxBytes)
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return fmt.Errorf("is no readable tar.gz file: %w", err)
		case h.Typeflag == tar.TypeXGlobalHeader:
			continue
		}
		mode := h.FileInfo().Mode()
		if h.Typeflag == tar.TypeLink {
			mode |= fs.ModeSymlink // a link too
		}
		place, err := u.place(h.Name, mode)
		if err != nil {
			return err
		}
		if place == "" {
			continue
		}
		if err := u.write(place, h.Name, r); err != nil {
			return err
		}
	}
}

// place returns where a member goes, "" where it is left out. A member that is no regular file or directory, or whose
// name leaves the archive, condemns the archive, whether it is wanted or not.
func (u *unpacker) place(member string, mode fs.FileMode) (string, error) {
	if err := u.ctx.Err(); err != nil {
		return "", err
	}
	if u.seen++; u.seen > maxMembers {
		return "", fmt.Errorf("has more than %d members", maxMembers)
	}
	name := path.Clean(member)
	if strings.ContainsAny(member, "\\\x00") || !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("holds %q, a path outside the archive", member)
	}
	if mode.IsDir() {
		return "", nil
	}
	if !mode.IsRegular() {
		return "", fmt.Errorf("holds %q, a link or device", member)
	}
	for from, to := range u.spec.Places {
		rest, ok := name, name == from
		if strings.HasSuffix(from, "/") {
			rest, ok = strings.CutPrefix(name, from)
			to += rest
		}
		if !ok {
			continue
		}
		if u.taken[to] {
			return "", fmt.Errorf("holds %q twice", member)
		}
		u.taken[to] = true
		return to, nil
	}
	return "", nil
}

func (u *unpacker) write(place, member string, r io.Reader) error {
	file := filepath.Join(u.dir, filepath.FromSlash(place))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(ctxReader{u.ctx, r}, u.left+1))
	if u.left -= n; err == nil && u.left < 0 {
		err = fmt.Errorf("unpacks to more than %d bytes", u.spec.MaxBytes)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", member, err)
	}
	return f.Close()
}

// ctxReader ends with its context.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
