package cli

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/ingest"
)

// maxKey is the most bytes of a key file: more is some other file.
const maxKey = 64 << 10

// readKey reads the key that ids are anonymised under. What is in the file goes into no message, and nowhere but into HMACs. One line end at
// its end isn't part of the key, so that an editor's file and `printf` give the same.
func (f *snapshotFlags) readKey(env *command.Env) error {
	if f.keyFile == "" {
		return nil
	}
	key, mode, err := readKeyFile(f.keyFile)
	if err != nil {
		return command.BadInput(fmt.Errorf("--anonymize-key-file %s: %w", f.keyFile, err))
	}
	if mode.Perm()&0o004 != 0 {
		env.Note("warning", fmt.Sprintf("--anonymize-key-file %s can be read by every user of this machine (mode %04o); who has the key can guess ids (chmod 600)", f.keyFile, mode.Perm()))
	}
	f.in.AnonymiseKey = key
	mark := f.keyMark()
	f.params.Anonymised = &mark
	return nil
}

// readKeyFile reads a key without the line end at its end, and the mode of its file.
func readKeyFile(path string) ([]byte, os.FileMode, error) {
	if info, err := os.Stat(path); err != nil { // before Open, which waits for a pipe's other end
		return nil, 0, pathless(err)
	} else if !info.Mode().IsRegular() {
		return nil, 0, errors.New("not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, pathless(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, pathless(err)
	}
	key, err := io.ReadAll(io.LimitReader(file, maxKey+1))
	if err != nil {
		return nil, 0, pathless(err)
	}
	if len(key) > maxKey {
		return nil, 0, fmt.Errorf("more than %d bytes: no key", maxKey)
	}
	if line, ok := bytes.CutSuffix(key, []byte("\r\n")); ok {
		key = line
	} else {
		key = bytes.TrimSuffix(key, []byte{'\n'})
	}
	if len(key) < ingest.MinAnonymiseKey {
		return nil, 0, fmt.Errorf("%d bytes without the line end, a key has at least %d (head -c 32 /dev/urandom > FILE makes one)", len(key), ingest.MinAnonymiseKey)
	}
	return key, info.Mode(), nil
}

// keyMark stands for the key (SPEC 6): another key has another mark, and from the mark no key can be told. Zero without a key.
func (f *snapshotFlags) keyMark() format.Digest {
	if f.in.AnonymiseKey == nil {
		return format.Digest{}
	}
	mac := hmac.New(sha256.New, f.in.AnonymiseKey)
	mac.Write([]byte("prelift anonymize-key-file"))
	return format.Digest(mac.Sum(nil))
}

// codesHint says, behind an error about nodes that Build names, which ids those are.
func (f *snapshotFlags) codesHint() string {
	if f.keyFile == "" {
		return ""
	}
	return " (these are anonymised ids; without --anonymize-key-file the message has the input's)"
}
