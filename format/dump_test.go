package format

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files anew, and the copy of the dump in SPEC.md")

const goldenDump = "testdata/golden.dump"

// TestGoldenDump compares the dump of the worked example with the golden file and with
// the copy in SPEC 11. The example's bytes come from the Python builder.
func TestGoldenDump(t *testing.T) {
	f, err := Open(filepath.Join(vectorDir, "good-tiny.plf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got bytes.Buffer
	if err := Dump(&got, f); err != nil {
		t.Fatal(err)
	}
	spec, err := os.ReadFile("../SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	open, end := "<!-- dump: format/testdata/golden.dump -->\n```\n", "```\n<!-- end of dump -->"
	before, rest, ok1 := strings.Cut(string(spec), open)
	inSpec, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("SPEC.md has no place for the dump")
	}
	if *update {
		if err := os.WriteFile(goldenDump, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("../SPEC.md", []byte(before+open+got.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(goldenDump)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("dump differs from %s (run with -update after a look):\n%s", goldenDump, got.String())
	}
	if inSpec != string(want) {
		t.Errorf("the dump in SPEC.md differs from %s (run with -update)", goldenDump)
	}
}

// TestDumpAccountsForEveryByte reads the dump of each good vector back: offsets follow
// each other to the end of the file, and the bytes shown are the file's.
func TestDumpAccountsForEveryByte(t *testing.T) {
	line := regexp.MustCompile(`^(?:([0-9a-f]{8})|\.{8})  (?:(\d+) bytes|00 \* (\d+)|((?:[0-9a-f]{2} ){0,15}[0-9a-f]{2}))(?:  |$)`)
	files, _ := readVectors(t)
	for _, v := range files {
		if v.Class != "ok" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(vectorDir, v.File))
		if err != nil {
			t.Fatal(err)
		}
		checkDump(t, v.File, b, line)
	}
	checkDump(t, "long", longFile(t), line)
}

func checkDump(t *testing.T, name string, b []byte, line *regexp.Regexp) {
	t.Helper()
	f, err := Parse(name, b)
	if err != nil {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	if err := Dump(&dump, f); err != nil {
		t.Fatal(err)
	}
	offset := 0
	for text := range strings.Lines(dump.String()) {
		text = strings.TrimSuffix(text, "\n")
		if text == "" || strings.HasPrefix(text, "# ") || strings.HasPrefix(text, name+": ") {
			continue
		}
		m := line.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s: line %q", name, text)
		}
		if m[1] != "" && m[1] != fmt.Sprintf("%08x", offset) {
			t.Fatalf("%s: line %q, want offset %08x", name, text, offset)
		}
		switch n, _ := strconv.Atoi(m[2] + m[3]); {
		case m[3] != "" && !allZero(b[offset:offset+n]):
			t.Fatalf("%s: line %q, bytes are not zero", name, text)
		case n > 0:
			offset += n
		default:
			n = len(strings.Fields(m[4]))
			if got := fmt.Sprintf("% x", b[offset:offset+n]); got != m[4] {
				t.Fatalf("%s: line %q, bytes are %s", name, text, got)
			}
			offset += n
		}
	}
	if offset != len(b) {
		t.Fatalf("%s: dump ends at %d of %d", name, offset, len(b))
	}
}

// longFile has a section that Dump cuts short.
func longFile(t *testing.T) []byte {
	t.Helper()
	m := &memory{}
	w := newWriter("long", m, Header{Kind: FileIDs}, 1)
	v := make([]uint64, 1001)
	for i := range v {
		v[i] = uint64(i) * 0x0101010101010101
	}
	h := &RecordHeader{Space: SpaceGlobal, DstEnd: 1001, HopNodes: []uint64{1001}, SplitColumn: AnySplit}
	if err := w.Add(h, []SectionSpec{Uint64Section(IDsKey, AnyLayer, v)}); err != nil {
		t.Fatal(err)
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	return m.bytes
}

func TestDumpStopsAtBadHead(t *testing.T) {
	f, err := Open(filepath.Join(vectorDir, "r4-head-bit.plf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var dump bytes.Buffer
	if err := Dump(&dump, f); Class(err) != "checksum" || !strings.Contains(dump.String(), "header CRC") {
		t.Errorf("got %v after %q", err, dump.String())
	}
}
