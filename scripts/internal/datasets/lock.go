package datasets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// lockFile is DIR/NAME.lock.json: what was downloaded and what lies in the folder.
type lockFile struct {
	Name      string     `json:"name"`
	Downloads []download `json:"downloads"`
	Files     []placed   `json:"files"`
}

// download is a file as it came.
type download struct {
	URL       string `json:"url"`
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"`
	Checked   string `json:"checked"` // pinned or first use
}

// placed is a file in the set's folder.
type placed struct {
	Path      string `json:"path"` // with slashes, under the folder
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"`
}

const (
	checkedPinned   = "pinned"
	checkedFirstUse = "first use"
)

// readLock returns nil where there is no lock file.
func readLock(path string) (*lockFile, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l := &lockFile{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(l); err != nil {
		return nil, fmt.Errorf("%s is no lock file of this program: %v; move it away", path, err)
	}
	for _, f := range l.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
			return nil, fmt.Errorf("%s names %q, which is outside the folder; move it away", path, f.Path)
		}
	}
	return l, nil
}

// write replaces the lock file at path in one step.
func (l *lockFile) write(path string) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	part := path + ".part"
	if err := os.WriteFile(part, append(text, '\n'), 0o666); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// recorded returns the digest that a former download of url had, "" where there was none.
func (l *lockFile) recorded(url string) string {
	if l == nil {
		return ""
	}
	for _, d := range l.Downloads {
		if d.URL == url {
			return d.SHA256
		}
	}
	return ""
}

// check compares the files in dir with the lock.
func (l *lockFile) check(dir string) error {
	for _, f := range l.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		size, digest, err := digestFile(path)
		if err != nil {
			return err
		}
		if size != f.SizeBytes || digest != f.SHA256 {
			return fmt.Errorf("%s isn't what was downloaded: %d bytes of SHA-256 %s, recorded are %d of %s", path, size, digest, f.SizeBytes, f.SHA256)
		}
	}
	return nil
}

// digestFile returns the size and SHA-256 of a file.
func digestFile(path string) (size int64, digest string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return 0, "", err
	}
	return size, hex.EncodeToString(h.Sum(nil)), nil
}
