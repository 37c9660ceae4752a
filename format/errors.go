package format

import (
	"errors"
	"fmt"
)

// Sentinels name the class of a fault in an artefact (SPEC 9). All of them end a
// command with exit code 4, but ErrMismatch with 5.
var (
	ErrMagic     = errors.New("not a Prelift file")
	ErrVersion   = errors.New("unsupported format version")
	ErrTruncated = errors.New("truncated")
	ErrChecksum  = errors.New("checksum mismatch")
	ErrLayout    = errors.New("invalid layout")
	ErrLimit     = errors.New("over a limit")
	ErrMissing   = errors.New("incomplete artefact")
	ErrMismatch  = errors.New("mismatch")
)

// errorClasses are the sentinels with the words that SPEC 9 and the test vectors use.
var errorClasses = []struct {
	name string
	err  error
}{
	{"magic", ErrMagic}, {"version", ErrVersion}, {"truncated", ErrTruncated}, {"checksum", ErrChecksum},
	{"layout", ErrLayout}, {"limit", ErrLimit}, {"missing", ErrMissing}, {"mismatch", ErrMismatch},
}

// Class returns SPEC 9's word for the class of err, "" where it has none.
func Class(err error) string {
	for _, c := range errorClasses {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	return ""
}

// IsCorrupt reports whether err is a fault of an artefact's bytes (exit code 4).
func IsCorrupt(err error) bool {
	class := Class(err)
	return class != "" && class != "mismatch"
}

// faultf wraps a sentinel with the place and the numbers: "PLACE: CLASS: detail".
func faultf(class error, place, format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", place, class, fmt.Sprintf(format, args...))
}
