package format_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/python/pythontest"
)

// TestPythonVerdicts damages the good vectors at random places, makes the checksums fit again, and wants the
// verdict of the Python reader on each. What the two say differently, SPEC.md says too vaguely.
func TestPythonVerdicts(t *testing.T) {
	good, err := filepath.Glob("testdata/vectors/good-*.plf")
	if err != nil || len(good) < 20 {
		t.Fatalf("%d good vectors, %v", len(good), err)
	}
	files := 1500
	if testing.Short() {
		files = 300
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(17, 4))
	want := map[string]string{}
	counts := map[string]int{}
	for i := range files {
		b, err := os.ReadFile(good[i%len(good)])
		if err != nil {
			t.Fatal(err)
		}
		what := damage(b, rng)
		name := fmt.Sprintf("%04d-%s-%s", i, what, filepath.Base(good[i%len(good)]))
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := format.Parse(name, b)
		if err == nil {
			err = f.Verify()
		}
		want[name] = "ok"
		if err != nil {
			want[name] = format.Class(err) + " " + err.Error()
		}
		class, _, _ := strings.Cut(want[name], " ")
		counts[class]++
	}
	for _, class := range []string{"ok", "layout", "limit", "truncated", "version", "checksum"} {
		if counts[class] == 0 {
			t.Errorf("no file is %s: %v", class, counts)
		}
	}
	lines := pythontest.Script(t, "tests/verdicts.py", dir)
	if len(lines) != files {
		t.Fatalf("%d verdicts of %d", len(lines), files)
	}
	for _, line := range lines {
		name, text, _ := strings.Cut(line, " ")
		got, _, _ := strings.Cut(text, " ")
		if class, _, _ := strings.Cut(want[name], " "); got != class {
			t.Errorf("%s:\nPython says %s\nGo says     %s", name, text, want[name])
		}
	}
}

// damage changes a few bytes of a file of records, and the checksums over them; it returns where.
func damage(b []byte, rng *rand.Rand) string {
	le := binary.LittleEndian
	record := rng.IntN(int(le.Uint32(b[108:])))
	entry := b[128+32*record:]
	start, size := le.Uint64(entry), le.Uint64(entry[8:])
	r := b[start : start+size]
	layers, hops, sections := int(le.Uint16(r[16:])), int(le.Uint16(r[18:])), int(le.Uint32(r[20:]))
	counts := 64 + 8*hops + 8*layers*hops
	head := r[:counts+96*sections]
	what := []string{"header", "table", "head", "counts", "entry", "contents", "contents", "contents", "entry"}[rng.IntN(9)]
	switch what {
	case "header":
		change(b[8:112], rng)
	case "table":
		change(entry[:32], rng)
	case "head":
		change(head[:64], rng)
	case "counts":
		change(head[64:counts], rng)
	case "entry":
		if sections > 0 {
			change(head[counts+96*rng.IntN(sections):][:64], rng)
		}
	case "contents":
		if sections == 0 {
			break
		}
		e := head[counts+96*rng.IntN(sections):]
		data := r[le.Uint64(e[32:]):][:le.Uint64(e[40:])]
		change(data, rng)
		le.PutUint32(e[56:], crc32.ChecksumIEEE(data))
	}
	if what != "table" {
		le.PutUint32(entry[24:], crc32.ChecksumIEEE(head))
	}
	if n := int(le.Uint32(b[108:])); what != "header" || n == 1 {
		le.PutUint32(b[112:], crc32.ChecksumIEEE(b[128:128+32*n]))
	}
	le.PutUint32(b[124:], crc32.ChecksumIEEE(b[:124]))
	return what
}

// change makes a number of some bytes another one, mostly a near or an extreme one.
func change(b []byte, rng *rand.Rand) {
	width := 1 << rng.IntN(4)
	if len(b) < width {
		return
	}
	at := rng.IntN(len(b)/width) * width
	field := make([]byte, 8)
	copy(field, b[at:at+width])
	v := binary.LittleEndian.Uint64(field)
	v = []uint64{v + 1, v - 1, 0, 1, 2, 255, 1 << 31, 1<<31 - 1, 1 << 63, ^uint64(0), v << 1, v >> 1, rng.Uint64(), uint64(rng.IntN(70))}[rng.IntN(14)]
	binary.LittleEndian.PutUint64(field, v)
	copy(b[at:], field[:width])
}
