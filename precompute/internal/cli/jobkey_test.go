package cli

import (
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/ingest"
)

// A killed job is resumed by one with the same key: what comes from standard input is part of it, as the content of files is.
func TestJobKey(t *testing.T) {
	digest := func(b byte) format.Digest { return format.Digest{b} }
	report := func(b byte) *ingest.Report { d := digest(b); return &ingest.Report{StdinSHA256: d[:]} }
	keyOf := func(stamps []format.Stamp, reports ...*ingest.Report) format.Digest {
		key, err := jobKey(digest(1), stamps, reports)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	file := make([]format.Stamp, 1, 4) // room behind, which must stay as it is
	file[0].SHA256 = digest(2)
	plain, first := keyOf(file, &ingest.Report{}), keyOf(file, report(3))
	if again := keyOf(file, report(3)); again != first {
		t.Error("the same input has another key")
	}
	if keyOf(file, report(4)) == first {
		t.Error("other lines from standard input have the same key")
	}
	if plain == first || keyOf(nil, report(3)) == first {
		t.Error("standard input or a file doesn't count")
	}
	if of, _ := format.JobKey(digest(1), file); of != plain {
		t.Error("without standard input the key is that of the stamps")
	}
	if file[:2][1] != (format.Stamp{}) {
		t.Error("the stamps of the caller were written over")
	}
}
