package datasets

import (
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serveTime is a fixed time of last change.
var serveTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func TestCatalogue(t *testing.T) {
	names, urls := map[string]bool{}, map[string]bool{}
	for _, s := range Sets() {
		if names[s.Name] || s.Name != strings.ToLower(s.Name) || s.What == "" || s.Licence == "" || s.Source == "" || len(s.Files) == 0 {
			t.Errorf("%s: a name twice or in capitals, or an empty field", s.Name)
		}
		names[s.Name] = true
		if got, err := Find(s.Name); err != nil || got.Name != s.Name {
			t.Errorf("%s: %v", s.Name, err)
		}
		if read := s.Read("data/x"); len(read) < 2 || !strings.Contains(read[1], "data/x") {
			t.Errorf("%s: read by %q", s.Name, read)
		}
		places := map[string]bool{}
		for _, f := range s.Files {
			u, err := url.Parse(f.URL)
			if err != nil || u.Scheme != "https" || u.Host == "" || urls[f.URL] || !filepath.IsLocal(f.Name) || places[f.Name] {
				t.Errorf("%s: %s: no https address, one twice, or a bad place", s.Name, f.URL)
			}
			urls[f.URL], places[f.Name] = true, true
			if (f.SizeBytes > 0) == (f.MaxBytes > 0) {
				t.Errorf("%s: %s: wants a size or a bound", s.Name, f.Name)
			}
			digest, err := hex.DecodeString(f.SHA256)
			if err != nil || len(digest) != 0 && len(digest) != 32 || (f.SHA256 == "") != (f.Known == "") || f.SHA256 != "" && f.Known != Measured && f.Known != Published {
				t.Errorf("%s: %s: digest %q, known %q", s.Name, f.Name, f.SHA256, f.Known)
			}
			if f.Known == Measured && f.SizeBytes == 0 {
				t.Errorf("%s: %s: measured, but without a size", s.Name, f.Name)
			}
			// A file on first use must at least come from a fixed version.
			if f.SHA256 == "" && !strings.HasPrefix(f.URL, "https://raw.githubusercontent.com/") {
				t.Errorf("%s: %s: neither pinned nor at a fixed commit", s.Name, f.Name)
			}
			if u := f.Unpack; u != nil {
				for from, to := range u.Places {
					if u.MaxBytes == 0 || strings.HasSuffix(from, "/") != strings.HasSuffix(to, "/") || !filepath.IsLocal(to) {
						t.Errorf("%s: %s: unpacks %s to %s", s.Name, f.Name, from, to)
					}
				}
			}
		}
	}
}

// Every digest that is called measured is that of a copy of the very file, where the copies are at hand.
func TestMeasuredDigests(t *testing.T) {
	dir := os.Getenv("PRELIFT_DATA")
	if dir == "" {
		dir = "../../../../shared/data"
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no data at %s (set PRELIFT_DATA)", dir)
	}
	copies := map[string]string{ // set -> where its files lie
		"cora": "planetoid-cora/original/", "citeseer": "planetoid-citeseer/original/", "pubmed": "planetoid-pubmed/original/",
		"fb15k-237": "kg-fb15k-237/original/ConvE-", "wn18rr": "kg-wn18rr/original/ConvE-",
		"nations": "kg-nations/original/ConvE-", "umls": "kg-umls/original/ConvE-", "codex-s": "kg-codex-s/original/",
	}
	numMeasured := 0
	for _, s := range Sets() {
		for _, f := range s.Files {
			if f.Known != Measured {
				continue
			}
			at, ok := copies[s.Name]
			if !ok {
				t.Errorf("%s: %s is called measured, but there is no copy", s.Name, f.Name)
				continue
			}
			size, digest, err := digestFile(filepath.Join(dir, at+f.Name))
			if err != nil {
				t.Logf("%s: no copy here: %v", s.Name, err)
				continue
			}
			if numMeasured++; size != f.SizeBytes || digest != f.SHA256 {
				t.Errorf("%s: %s has %d bytes of SHA-256 %s, pinned are %d of %s", s.Name, f.Name, size, digest, f.SizeBytes, f.SHA256)
			}
		}
	}
	if numMeasured == 0 {
		t.Skip("none of the copies is here")
	}
	t.Logf("%d files", numMeasured)
}
