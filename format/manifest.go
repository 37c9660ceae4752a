package format

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gowebpki/jcs"
	"golang.org/x/sync/errgroup"
)

// The two files that make a directory an artefact.
const (
	ManifestName    = "manifest.json"   // canonical JSON (RFC 8785); its SHA-256 is the artefact's id
	ManifestSumName = "manifest.sha256" // "HEX  manifest.json\n", as sha256sum writes and checks it
	maxManifestSize = 256 << 20
)

// Digest is a SHA-256; its text is "sha256:" and 64 hexadecimal digits.
type Digest [32]byte

// String gives the text form.
func (d Digest) String() string { return "sha256:" + hex.EncodeToString(d[:]) }

// Hex gives the 64 digits alone, as sha256sum prints them.
func (d Digest) Hex() string { return hex.EncodeToString(d[:]) }

// ParseDigest reads the text form.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	digits, ok := strings.CutPrefix(s, "sha256:")
	if b, err := hex.DecodeString(digits); !ok || err != nil || copy(d[:], b) != 32 || len(b) != 32 {
		return d, fmt.Errorf("%q is not a digest (sha256: and 64 hexadecimal digits)", s)
	}
	return d, nil
}

// MarshalText and UnmarshalText put digests into JSON as their text form.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (d *Digest) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDigest(string(b))
	return err
}

// Int is an integer that JSON holds as a decimal string, since numbers beyond 2^53
// don't survive every JSON reader.
type Int int64

// MarshalJSON writes the decimal string.
func (i Int) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strconv.FormatInt(int64(i), 10) + `"`), nil
}

// UnmarshalJSON reads the decimal string.
func (i *Int) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != s {
		return fmt.Errorf("%q is not a 64-bit integer as a decimal string", s)
	}
	*i = Int(n)
	return nil
}

// FileInfo is a manifest's word on one file of the artefact.
type FileInfo struct {
	Name      string `json:"name"`
	SizeBytes Int    `json:"size_bytes"`
	SHA256    Digest `json:"sha256"`
}

// Canonical returns the RFC 8785 form of v's JSON.
func Canonical(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jcs.Transform(b)
}

// DigestOf returns the SHA-256 of the canonical JSON of v.
func DigestOf(v any) (Digest, error) {
	b, err := Canonical(v)
	return sha256.Sum256(b), err
}

// DigestFile returns the size and the plain SHA-256 of a file.
func DigestFile(path string) (FileInfo, error) {
	return digestFile(context.Background(), path, nil)
}

// blockBytes is how much of a file is read at a time to be digested: so much that a goroutine among busy ones, which has to wait for its turn
// after each read, spends its time with digesting.
const blockBytes = 4 << 20

var blockPool = sync.Pool{New: func() any { return new([blockBytes]byte) }}

// digestFile is DigestFile until ctx ends. progress, which may be nil, is told of every so many bytes. One block is digested while the next
// is read.
func digestFile(ctx context.Context, path string, progress func(n int64)) (FileInfo, error) {
	info := FileInfo{Name: filepath.Base(path)}
	f, err := os.Open(path)
	if err != nil {
		return info, err
	}
	defer f.Close()
	sum := sha256.New()
	err = eachBlock(ctx, f, func(b []byte) {
		sum.Write(b)
		info.SizeBytes += Int(len(b))
		if progress != nil {
			progress(int64(len(b)))
		}
	})
	info.SHA256 = Digest(sum.Sum(nil))
	return info, err
}

// eachBlock calls f with one block of r after the other, of which the next is read meanwhile. b is f's until it returns.
func eachBlock(ctx context.Context, r io.Reader, f func(b []byte)) error {
	type block struct {
		buffer *[blockBytes]byte
		n      int
		err    error
	}
	free, full := make(chan *[blockBytes]byte, 2), make(chan block)
	for range cap(free) {
		buffer := blockPool.Get().(*[blockBytes]byte)
		defer blockPool.Put(buffer)
		free <- buffer
	}
	go func() {
		defer close(full)
		for buffer := range free {
			n, err := io.ReadFull(r, buffer[:])
			full <- block{buffer, n, err}
			if err != nil {
				return
			}
		}
	}()
	defer func() { // the reader ends, and has ended
		close(free)
		for range full {
		}
	}()
	for b := range full {
		if err := ctx.Err(); err != nil {
			return err
		}
		f(b.buffer[:b.n])
		switch b.err {
		case nil:
			free <- b.buffer
		case io.EOF, io.ErrUnexpectedEOF:
			return nil
		default:
			return b.err
		}
	}
	return nil
}

// maxDigests is how many files are digested at a time on a machine of many cores: as many as a fast disk feeds. Each takes two blocks of memory.
const maxDigests = 8

// DigestFiles is DigestFile for several files at a time, until ctx ends. progress, which may be nil, is told of every so many bytes, by several goroutines at
// a time; infos[i] and errs[i] are of paths[i].
func DigestFiles(ctx context.Context, paths []string, progress func(n int64)) (infos []FileInfo, errs []error) {
	infos, errs = make([]FileInfo, len(paths)), make([]error, len(paths))
	var group errgroup.Group
	group.SetLimit(min(runtime.GOMAXPROCS(0), maxDigests))
	for i, path := range paths {
		group.Go(func() error {
			infos[i], errs[i] = digestFile(ctx, path, progress)
			return nil
		})
	}
	group.Wait()
	return infos, errs
}

// WriteManifest writes the two manifest files of v into dir and returns the id.
// manifest.sha256 comes last: without it the directory is no artefact.
func WriteManifest(dir string, v any) (Digest, error) {
	b, err := Canonical(v)
	if err != nil {
		return Digest{}, err
	}
	id := Digest(sha256.Sum256(b))
	if err := writeSync(filepath.Join(dir, ManifestName), b); err != nil {
		return id, err
	}
	return id, writeSync(filepath.Join(dir, ManifestSumName), []byte(sumLine(id)))
}

func sumLine(id Digest) string { return id.Hex() + "  " + ManifestName + "\n" }

func writeSync(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// ReadManifest reads the manifest of the artefact in dir into v (a pointer to a zero
// struct with every known field) after it has checked the bytes against
// manifest.sha256, and returns the id. kind is what the field "kind" must say.
// WriteManifest of v must give the same bytes again, so a manifest with an unknown or
// missing field, or not in canonical form, is refused.
func ReadManifest(dir, kind string, v any) (Digest, error) {
	id, b, err := readManifestBytes(dir)
	if err != nil {
		return id, err
	}
	return id, decodeManifest(filepath.Join(filepath.Base(dir), ManifestName), b, kind, v)
}

// decodeManifest is what ReadManifest does with the bytes of a manifest.
func decodeManifest(place string, b []byte, kind string, v any) error {
	var head struct {
		Kind          string `json:"kind"`
		FormatVersion int    `json:"format_version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return jsonFault(place, err)
	}
	if head.FormatVersion != Version {
		return faultf(ErrVersion, place, "artefact has version %d, this reader knows %d; use a newer Prelift or write the artefact again", head.FormatVersion, Version)
	}
	if head.Kind != kind {
		return faultf(ErrMismatch, place, "kind is %q, want %q", head.Kind, kind)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return jsonFault(place, err)
	}
	if again, err := Canonical(v); err != nil || !bytes.Equal(again, b) {
		return faultf(ErrLayout, place, "a field is missing, or this is not the canonical form (RFC 8785)")
	}
	return nil
}

// jsonFault puts what encoding/json says of a manifest into the words of its reader.
func jsonFault(place string, err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return faultf(ErrLayout, place, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if wrong.Field == "" {
		return faultf(ErrLayout, place, "this is a JSON %s, not an object", wrong.Value)
	}
	return faultf(ErrLayout, place, "field %q can't be a %s", wrong.Field, wrong.Value)
}

// listedFiles returns the files that the manifest of the artefact in dir lists.
func listedFiles(dir string) ([]FileInfo, error) {
	_, b, err := readManifestBytes(dir)
	if err != nil {
		return nil, err
	}
	var m struct {
		Files []FileInfo `json:"files"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, faultf(ErrLayout, filepath.Join(filepath.Base(dir), ManifestName), "%v", err)
	}
	return m.Files, nil
}

// ManifestKind returns the "kind" of the artefact in dir.
func ManifestKind(dir string) (string, error) {
	_, b, err := readManifestBytes(dir)
	if err != nil {
		return "", err
	}
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return "", jsonFault(filepath.Join(filepath.Base(dir), ManifestName), err)
	}
	return head.Kind, nil
}

// ReadID returns the id of the artefact in dir without reading its manifest's content.
func ReadID(dir string) (Digest, error) {
	id, _, err := readManifestBytes(dir)
	return id, err
}

func readManifestBytes(dir string) (id Digest, b []byte, err error) {
	place := filepath.Join(filepath.Base(dir), ManifestName)
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return id, nil, faultf(ErrMissing, dir, "no such directory; is the name right, and the job that makes it done?")
	} else if err != nil {
		return id, nil, err
	} else if !info.IsDir() {
		return id, nil, faultf(ErrMissing, filepath.Base(dir), "not a directory; an artefact is one")
	}
	b, err = readBounded(filepath.Join(dir, ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return id, nil, faultf(ErrMissing, place, "no manifest; the job that wrote this didn't finish, or this is no artefact")
	}
	if err != nil {
		return id, nil, err
	}
	sum, err := readBounded(filepath.Join(dir, ManifestSumName))
	if errors.Is(err, fs.ErrNotExist) {
		return id, nil, faultf(ErrMissing, filepath.Join(filepath.Base(dir), ManifestSumName), "no checksum of the manifest")
	}
	if err != nil {
		return id, nil, err
	}
	id = sha256.Sum256(b)
	if string(sum) != sumLine(id) {
		return id, nil, faultf(ErrChecksum, place, "%d bytes of SHA-256 %s don't match %s (%d bytes)", len(b), id.Hex()[:16], ManifestSumName, len(sum))
	}
	return id, b, nil
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, faultf(ErrLimit, filepath.Base(path), "not a regular file")
	}
	if info.Size() > maxManifestSize {
		return nil, faultf(ErrLimit, filepath.Base(path), "%d bytes, at most %d", info.Size(), maxManifestSize)
	}
	return os.ReadFile(path)
}

// CheckFiles checks that every listed file of the artefact in dir is there with the
// listed size, and returns the names in dir that the manifest doesn't list, sorted.
// It reads no content.
func CheckFiles(dir string, files []FileInfo) (extra []string, err error) {
	listed := map[string]bool{ManifestName: true, ManifestSumName: true}
	for _, f := range files {
		if !validName(f.Name) || listed[f.Name] {
			return nil, faultf(ErrLayout, filepath.Join(filepath.Base(dir), ManifestName), "file name %q is not allowed, or listed twice", f.Name)
		}
		listed[f.Name] = true
		info, err := os.Stat(filepath.Join(dir, f.Name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, faultf(ErrMissing, f.Name, "listed in the manifest, but not there (%d bytes expected)", f.SizeBytes)
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, faultf(ErrLayout, f.Name, "not a regular file")
		}
		if info.Size() > int64(f.SizeBytes) {
			return nil, faultf(ErrLayout, f.Name, "%d bytes, the manifest says %d", info.Size(), f.SizeBytes)
		}
		if info.Size() < int64(f.SizeBytes) {
			return nil, faultf(ErrTruncated, f.Name, "%d bytes, the manifest says %d", info.Size(), f.SizeBytes)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !listed[e.Name()] {
			extra = append(extra, e.Name())
		}
	}
	slices.Sort(extra)
	return extra, nil
}

// VerifyFiles compares every listed file's SHA-256 with the manifest's, several at a time. The error is of the first file with one.
func VerifyFiles(dir string, files []FileInfo) error {
	return verifyFiles(context.Background(), dir, files)
}

func verifyFiles(ctx context.Context, dir string, files []FileInfo) error {
	paths := make([]string, len(files))
	for i, f := range files {
		if !validName(f.Name) {
			return faultf(ErrLayout, filepath.Join(filepath.Base(dir), ManifestName), "file name %q is not allowed", f.Name)
		}
		paths[i] = filepath.Join(dir, f.Name)
	}
	infos, errs := DigestFiles(ctx, paths, nil)
	for i, want := range files {
		switch {
		case errors.Is(errs[i], fs.ErrNotExist):
			return faultf(ErrMissing, want.Name, "listed in the manifest, but not there")
		case errs[i] != nil:
			return errs[i]
		case infos[i].SHA256 != want.SHA256:
			return faultf(ErrChecksum, want.Name, "SHA-256 is %s, the manifest says %s", infos[i].SHA256.Hex(), want.SHA256.Hex())
		}
	}
	return nil
}

// validName accepts a plain file name of letters, digits, '.', '_' and '-' that begins
// with none of the last three: no path, nothing hidden, nothing a shell or a terminal minds.
func validName(name string) bool {
	for i, c := range []byte(name) {
		alnum := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return name != "" && len(name) <= 255
}
