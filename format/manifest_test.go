package format

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestDigest(t *testing.T) {
	d := Digest(sha256.Sum256([]byte("abc")))
	const text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-4
	if d.String() != text || d.Hex() != text[7:] {
		t.Errorf("got %s", d)
	}
	if got, err := ParseDigest(text); got != d || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	for _, bad := range []string{"", "sha256:", text[7:], text + "00", text[:len(text)-1], text[:len(text)-2], "sha512" + text[6:], text[:70] + "g"} {
		if _, err := ParseDigest(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	b, err := json.Marshal(d)
	if err != nil || string(b) != `"`+text+`"` {
		t.Errorf("JSON is %s, %v", b, err)
	}
	var again Digest
	if err := json.Unmarshal(b, &again); err != nil || again != d {
		t.Errorf("from JSON: %s, %v", again, err)
	}
}

func TestInt(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 1<<53 + 1, math.MaxInt64, math.MinInt64} {
		b, err := json.Marshal(Int(n))
		if err != nil {
			t.Fatal(err)
		}
		var again Int
		if err := json.Unmarshal(b, &again); err != nil || int64(again) != n || b[0] != '"' {
			t.Errorf("%d: JSON %s, again %d, %v", n, b, again, err)
		}
	}
	for _, bad := range []string{`1`, `null`, `""`, `"+1"`, `"01"`, `"-0"`, `"1.0"`, `" 1"`, `"1e3"`, `"0x1"`, `"1_0"`, `"9223372036854775808"`, `true`} {
		var i Int
		if err := json.Unmarshal([]byte(bad), &i); err == nil {
			t.Errorf("%s is accepted as %d", bad, i)
		}
	}
}

func TestCanonical(t *testing.T) {
	got, err := Canonical(map[string]any{"b": 1.0, "a": []any{1e21, 0.1, "é<\u2028\"\n"}, "\U0001F600": nil, "\uFB33": true})
	// RFC 8785: keys by UTF-16 units, numbers as ECMAScript has them, only what must be is escaped.
	want := `{"a":[1e+21,0.1,"é<` + "\u2028" + `\"\n"],"b":1,"` + "\U0001F600" + `":null,"` + "\uFB33" + `":true}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestWriteManifest(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.bin"), []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := DigestFile(filepath.Join(dir, "a.bin"))
	if err != nil || info.SizeBytes != 3 || info.Name != "a.bin" || !strings.HasPrefix(info.SHA256.Hex(), "ba7816bf") {
		t.Fatalf("DigestFile: %+v, %v", info, err)
	}
	m := vectorManifest{Kind: "vector", FormatVersion: Version, NumNodes: 5, Files: []FileInfo{info}}
	id, err := WriteManifest(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := DigestOf(m); id != want || err != nil {
		t.Errorf("id is %s, DigestOf says %s, %v", id, want, err)
	}
	var again vectorManifest
	if got, err := ReadManifest(dir, "vector", &again); got != id || err != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("read back: %s, %+v, %v", got, again, err)
	}
	if got, err := ReadID(dir); got != id || err != nil {
		t.Errorf("ReadID: %s, %v", got, err)
	}
	if kind, err := ManifestKind(dir); kind != "vector" || err != nil {
		t.Errorf("ManifestKind: %q, %v", kind, err)
	}
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip("no sha256sum on this machine")
	}
	cmd := exec.Command("sha256sum", "--check", "--strict", ManifestSumName)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sha256sum --check: %v\n%s", err, out)
	}
}

func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.bin", "a.bin", "zzz", ".hidden", ManifestName} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("abc"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o755), os.Symlink("b.bin", filepath.Join(dir, "link.bin"))); err != nil {
		t.Fatal(err)
	}
	list := []FileInfo{{Name: "a.bin", SizeBytes: 3}, {Name: "link.bin", SizeBytes: 3}}
	extra, err := CheckFiles(dir, list)
	if want := []string{".hidden", "b.bin", "sub", "zzz"}; err != nil || !reflect.DeepEqual(extra, want) {
		t.Errorf("got %q, %v, want %q", extra, err, want)
	}
	if _, err := CheckFiles(dir, []FileInfo{{Name: "sub", SizeBytes: 4096}}); !errors.Is(err, ErrLayout) {
		t.Errorf("a directory as a file: %v", err)
	}
	if err := VerifyFiles(dir, []FileInfo{{Name: "../x"}}); !errors.Is(err, ErrLayout) {
		t.Errorf("VerifyFiles of a path: %v", err)
	}
	two := []FileInfo{{Name: "a.bin"}, {Name: "gone"}, {Name: "a.bin"}} // of another digest
	if err := VerifyFiles(dir, two); !errors.Is(err, ErrChecksum) {
		t.Errorf("VerifyFiles of several that are wrong: %v", err)
	}
	if err := VerifyFiles(dir, two[1:]); !errors.Is(err, ErrMissing) {
		t.Errorf("VerifyFiles of several that are wrong: %v", err)
	}
	if err := VerifyFiles(dir, []FileInfo{{Name: "gone"}}); !errors.Is(err, ErrMissing) {
		t.Errorf("VerifyFiles of an absent file: %v", err)
	}
}

func TestReadManifestOfNoArtefact(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{filepath.Join(dir, "absent"): ErrMissing, file: ErrMissing, dir: ErrMissing} {
		if _, err := ReadManifest(path, "vector", &vectorManifest{}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
		if _, err := ManifestKind(path); !errors.Is(err, want) {
			t.Errorf("ManifestKind(%s): got %v, want %v", path, err, want)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ManifestName), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadID(dir); !errors.Is(err, ErrLayout) {
		t.Errorf("manifest.json as a directory: %v", err)
	}
}

func TestBatchSetKey(t *testing.T) {
	dir := t.TempDir()
	m := BatchSet{Kind: KindBatchSet, FormatVersion: Version, SnapshotID: digest(1), Splits: []string{}, Files: []FileInfo{}}
	m.Params.Seed = 1 << 60
	key, err := m.Key()
	if err != nil {
		t.Fatal(err)
	}
	m.SetKey = key
	if _, err := WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	if _, got, err := ReadBatchSet(dir); err != nil || got.Params.Seed != 1<<60 {
		t.Errorf("read back: %+v, %v", got, err)
	}
	m.SnapshotID = digest(2)
	if _, err := WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadBatchSet(dir); !errors.Is(err, ErrLayout) {
		t.Errorf("set key of another snapshot: %v", err)
	}
}

func TestSizes(t *testing.T) {
	files, _ := readVectors(t)
	var list []FileInfo
	for _, v := range files {
		if v.Class != "ok" {
			continue
		}
		info, err := DigestFile(filepath.Join(vectorDir, v.File))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, info)
	}
	sizes, err := ArtefactSizes(vectorDir, list)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range sizes {
		sum := int64(0)
		for _, s := range f.Sections {
			sum += s.SizeBytes
		}
		if sum != f.SizeBytes || f.Sections[len(f.Sections)-1].Name != HeadsAndPadding {
			t.Errorf("%s: sections %v add up to %d of %d bytes", f.Name, f.Sections, sum, f.SizeBytes)
		}
	}
	if _, err := ArtefactSizes(vectorDir, []FileInfo{{Name: "f4-header-crc.plf"}}); !errors.Is(err, ErrChecksum) {
		t.Errorf("sizes of a damaged file: %v", err)
	}
}

func TestJobKey(t *testing.T) {
	inputs := []Stamp{{Path: "/a", SHA256: digest(1)}, {Path: "/b", SHA256: digest(2)}}
	moved := []Stamp{{Path: "/c", Inode: 5, SHA256: digest(1)}, {Path: "/d", SHA256: digest(2)}}
	turned := []Stamp{inputs[1], inputs[0]}
	seen := map[Digest]string{}
	for _, c := range []struct {
		name   string
		key    Digest
		inputs []Stamp
	}{{"one", digest(1), inputs}, {"another key", digest(2), inputs}, {"another order", digest(1), turned}, {"no inputs", digest(1), nil}} {
		k, err := JobKey(c.key, c.inputs)
		if err != nil || seen[k] != "" {
			t.Errorf("%s: %v, the same as %q", c.name, err, seen[k])
		}
		seen[k] = c.name
	}
	if k, err := JobKey(digest(1), moved); err != nil || seen[k] != "one" {
		t.Errorf("inputs elsewhere change the key: %v", err)
	}
}
