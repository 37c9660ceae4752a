package format

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime/metrics"
	"testing"

	"github.com/gowebpki/jcs"
)

// How FuzzFile prepares its input. Mutations alone never get past the CRCs, and most of
// a file is padding, so inputs come without the padding between records (squeeze) and are
// put right to a degree (expand).
const (
	fuzzRaw    = iota // as it is
	fuzzCRCs          // records placed, sizes and CRCs put right
	fuzzLayout        // and sections tiled by their shapes
	fuzzModes
)

func FuzzFile(f *testing.F) {
	files, _ := readVectors(f)
	for _, v := range files {
		b, err := os.ReadFile(filepath.Join(vectorDir, v.File))
		if err != nil {
			f.Fatal(err)
		}
		if len(b) < 4096 || v.Check != "" && v.Check[0] == 'F' {
			f.Add(b[:min(len(b), 512)], byte(fuzzRaw))
			continue
		}
		f.Add(squeeze(b), byte(fuzzCRCs))
		f.Add(squeeze(b), byte(fuzzLayout))
	}
	f.Fuzz(func(t *testing.T, b []byte, mode byte) {
		if mode %= fuzzModes; mode != fuzzRaw {
			b = expand(b, mode == fuzzLayout)
		}
		checkFile(t, b)
	})
}

// checkFile wants of any bytes: no panic, no allocation beyond a small multiple of their
// number, a known class of error if refused, the same bytes written again if accepted.
func checkFile(t *testing.T, b []byte) {
	t.Helper()
	before := heapAllocs()
	file, err := Parse("fuzz", b)
	if err == nil {
		err = file.Verify()
	}
	if n := heapAllocs() - before; n > uint64(16*len(b)+1<<20) {
		t.Fatalf("%d bytes allocated for %d", n, len(b))
	}
	if err != nil && !IsCorrupt(err) {
		t.Fatalf("refused with an error of no class: %v", err)
	}
	if file != nil {
		if err := Dump(io.Discard, file); err != nil && !IsCorrupt(err) {
			t.Fatalf("Dump: %v", err)
		}
	}
	if err != nil {
		return
	}
	for i := range file.Records {
		r, err := file.Record(i)
		if err != nil {
			t.Fatal(err)
		}
		r.IDs().Strings()
		r.Names().Strings()
		for l := range max(r.NumLayers, 1) {
			layer := uint16(l)
			if r.NumLayers == 0 {
				layer = AnyLayer
			}
			r.BlockDims(layer)
			if err := r.CheckTranspose(layer); err != nil && !IsCorrupt(err) {
				t.Fatalf("CheckTranspose: %v", err)
			}
		}
	}
	if again := rewrite(t, file); !bytes.Equal(again, b) {
		t.Fatalf("accepted %d bytes, written again they are %d others", len(b), len(again))
	}
}

func heapAllocs() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// squeeze leaves out the padding before each record of a file.
func squeeze(b []byte) []byte {
	le := binary.LittleEndian
	n := min(int(le.Uint32(b[108:])), 8)
	out := bytes.Clone(b[:HeaderSize+TableEntrySize*n])
	for i := range n {
		e := b[HeaderSize+TableEntrySize*i:]
		offset := min(le.Uint64(e), uint64(len(b)))
		end := offset + min(le.Uint64(e[8:]), uint64(len(b))-offset)
		out = append(out, b[offset:end]...)
	}
	return out
}

// expand is the inverse of squeeze for any bytes; where they end early there are zeros.
func expand(b []byte, layout bool) []byte {
	le := binary.LittleEndian
	b = append(bytes.Clone(b), make([]byte, max(0, HeaderSize+TableEntrySize-len(b)))...)
	n := 1 + int(le.Uint32(b[108:])-1)%8
	if n < 1 || len(b) < HeaderSize+TableEntrySize*n {
		n = 1
	}
	head, rest := b[:HeaderSize+TableEntrySize*n], b[HeaderSize+TableEntrySize*n:]
	out := bytes.Clone(head)
	for i := range n {
		e := head[HeaderSize+TableEntrySize*i:]
		size := len(rest)
		if i < n-1 {
			size = int(min(le.Uint64(e[8:]), uint64(size)))
		}
		record := append(bytes.Clone(rest[:size]), make([]byte, max(0, RecordHeaderSize-size))...)
		rest = rest[size:]
		record, headCRC := repairRecord(record, layout)
		out = append(out, make([]byte, alignUp(uint64(len(out)), RecordAlign)-uint64(len(out)))...)
		t := out[HeaderSize+TableEntrySize*i:]
		le.PutUint64(t, uint64(len(out)))
		le.PutUint64(t[8:], uint64(len(record)))
		copy(t[16:24], record[8:16]) // number and variant
		le.PutUint32(t[24:], headCRC)
		out = append(out, record...)
	}
	copy(out, Magic[:])
	le.PutUint16(out[8:], Version)
	le.PutUint32(out[12:], ByteOrderMark)
	le.PutUint64(out[96:], uint64(len(out)))
	le.PutUint32(out[108:], uint32(n))
	le.PutUint32(out[112:], crc32.ChecksumIEEE(out[HeaderSize:HeaderSize+TableEntrySize*n]))
	le.PutUint32(out[124:], crc32.ChecksumIEEE(out[:124]))
	return out
}

// repairRecord puts the CRCs of a record right, and on layout the places of its sections.
func repairRecord(b []byte, layout bool) (record []byte, headCRC uint32) {
	le := binary.LittleEndian
	le.PutUint32(b, RecordMark)
	numLayers, numHops, numSections := uint64(le.Uint16(b[16:])), uint64(le.Uint16(b[18:])), uint64(le.Uint32(b[20:]))
	entries := RecordHeaderSize + 8*numHops + 8*numLayers*numHops
	headSize := entries + SectionEntrySize*numSections
	if headSize > uint64(len(b)) {
		return b, crc32.ChecksumIEEE(b)
	}
	end := headSize
	for k := range numSections {
		e := b[entries+SectionEntrySize*k:]
		if layout {
			size := DType(e[6]).SizeBytes()
			for d := range min(le.Uint32(e[60:]), 3) {
				size *= le.Uint64(e[8+8*d:])
			}
			stored := size
			if Codec(e[7]) == CodecBits {
				stored = le.Uint64(e[40:])
			}
			offset := alignUp(end, SectionAlign)
			if max(size, stored) > 1<<16 {
				return b, crc32.ChecksumIEEE(b[:headSize])
			}
			b = append(b, make([]byte, max(0, int(offset+stored)-len(b)))...)
			e = b[entries+SectionEntrySize*k:]
			le.PutUint64(e[32:], offset)
			le.PutUint64(e[40:], stored)
			le.PutUint64(e[48:], size)
			clear(b[end:offset])
			end = offset + stored
		}
		if offset, size := le.Uint64(e[32:]), le.Uint64(e[40:]); offset <= uint64(len(b)) && size <= uint64(len(b))-offset {
			le.PutUint32(e[56:], crc32.ChecksumIEEE(b[offset:offset+size]))
		}
	}
	if layout {
		b = b[:end]
	}
	return b, crc32.ChecksumIEEE(b[:headSize])
}

// TestExpand makes sure that the fuzz target reaches good files.
func TestExpand(t *testing.T) {
	files, _ := readVectors(t)
	for _, v := range files {
		if v.Class != "ok" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(vectorDir, v.File))
		if err != nil {
			t.Fatal(err)
		}
		for _, layout := range []bool{false, true} {
			if got := expand(squeeze(b), layout); !bytes.Equal(got, b) {
				t.Errorf("%s: expand(squeeze, %t) gives %d other bytes, want %d", v.File, layout, len(got), len(b))
			}
		}
	}
}

func FuzzManifest(f *testing.F) {
	_, manifests := readVectors(f)
	for _, v := range manifests {
		b, err := os.ReadFile(filepath.Join(vectorDir, v.Dir, ManifestName))
		if err == nil && len(b) < 4096 {
			f.Add(b)
		}
	}
	set, err := Canonical(BatchSet{Kind: KindBatchSet, FormatVersion: Version, Splits: []string{"a\"<\u2028é"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(set)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m vectorManifest
		var set BatchSet
		for kind, v := range map[string]any{"vector": &m, KindBatchSet: &set} {
			before := heapAllocs()
			err := decodeManifest("fuzz", b, kind, v)
			if n := heapAllocs() - before; n > uint64(256*len(b)+1<<20) {
				t.Fatalf("%d bytes allocated for %d", n, len(b))
			}
			if err != nil && Class(err) == "" {
				t.Fatalf("refused with an error of no class: %v", err)
			}
			if again, e := Canonical(v); err == nil && (e != nil || !bytes.Equal(again, b)) {
				t.Fatalf("accepted %q, written again it is %q (%v)", b, again, e)
			}
		}
		if _, err := CheckFiles(vectorDir, m.Files); err != nil && !IsCorrupt(err) {
			t.Fatalf("CheckFiles: %v", err)
		}
		if once, err := jcs.Transform(b); err == nil && json.Valid(b) {
			if twice, err := jcs.Transform(once); err != nil || !bytes.Equal(once, twice) {
				t.Fatalf("canonical form of %q isn't its own: %q, %v", b, twice, err)
			}
		}
	})
}
