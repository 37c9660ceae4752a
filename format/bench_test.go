package format

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"
)

// writeBatch writes a file of one ids batch of two layers: numSeeds seeds of 10 neighbours
// of 5 neighbours each, with coefficients and the transpose of the output layer.
func writeBatch(tb testing.TB, path string, numSeeds int) {
	tb.Helper()
	hops := []uint64{uint64(numSeeds), uint64(11 * numSeeds), uint64(61 * numSeeds)}
	block := func(layer uint16, dst, src, degree int) []SectionSpec {
		indptr, indices := make([]int64, dst+1), make([]int32, dst*degree)
		for d := range dst {
			indptr[d+1] = indptr[d] + int64(degree)
			for e := range degree {
				indices[d*degree+e] = int32((d*7919 + e*104729) % src)
			}
		}
		return []SectionSpec{
			Int64Section(BlockIndptr, layer, indptr), Int32Section(BlockIndices, layer, indices),
			Float32Section(CoefImportance, layer, CoefNone, make([]float32, dst)),
		}
	}
	specs := []SectionSpec{Int32Section(NodesNumber, AnyLayer, make([]int32, hops[2]))}
	specs = append(specs, block(0, int(hops[1]), int(hops[2]), 5)...)
	specs = append(specs, block(1, int(hops[0]), int(hops[1]), 10)...)
	for _, coef := range []Coef{CoefGCN, CoefMean} {
		specs = append(specs, Float32Section(CoefSrc, AnyLayer, coef, make([]float32, hops[2])),
			Float32Section(CoefDst, AnyLayer, coef, make([]float32, hops[2])), Float32Section(CoefSelf, AnyLayer, coef, make([]float32, hops[2])))
	}
	specs = append(specs, Int32Section(SeedsLabel, AnyLayer, make([]int32, numSeeds)),
		SectionSpec{Kind: SeedsMask, Layer: AnyLayer, DType: U8, Shape: []uint64{uint64(numSeeds), 1}, Data: make([]byte, numSeeds)})
	h := &RecordHeader{Task: TaskNode, Split: PartTrain, NumLayers: 2, NumSeeds: hops[0], HopNodes: hops,
		LayerEdges: []uint64{5 * hops[0], 5 * (hops[1] - hops[0]), 0, 10 * hops[0], 0, 0}}
	w, err := Create(path, Header{Kind: FileBatches}, 1)
	if err != nil {
		tb.Fatal(err)
	}
	if err := w.Add(h, specs); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
}

func benchFile(b *testing.B, numSeeds int) *File {
	path := filepath.Join(b.TempDir(), "b.plf")
	writeBatch(b, path, numSeeds)
	f, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return f
}

// BenchmarkVerify reads every byte of a batch, page cache and mapping warm.
func BenchmarkVerify(b *testing.B) {
	for _, numSeeds := range []int{64, 1024, 16384} {
		b.Run(fmt.Sprintf("seeds=%d", numSeeds), func(b *testing.B) {
			f := benchFile(b, numSeeds)
			r, err := f.Record(0)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(r.SizeBytes()))
			for b.Loop() {
				if err := r.Verify(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFirstUse opens, maps and verifies a batch: what its first use in a process
// costs with a warm page cache (page faults included).
func BenchmarkFirstUse(b *testing.B) {
	for _, numSeeds := range []int{64, 1024, 16384} {
		b.Run(fmt.Sprintf("seeds=%d", numSeeds), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "b.plf")
			writeBatch(b, path, numSeeds)
			f, err := Open(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(f.SizeBytes())
			f.Close()
			for b.Loop() {
				if err := openAndVerify(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDigest digests a file beside what crypto/sha256 makes of the same bytes in memory, and looks over it as a writer does: checksums,
// bounds and digest in one pass. The page cache is warm.
func BenchmarkDigest(b *testing.B) {
	const n = 8 << 20
	path := filepath.Join(b.TempDir(), "a.plf")
	keys := make([]uint64, n)
	unchecked(b, path, Header{Kind: FileIDs}, tableHead(n), []SectionSpec{Uint64Section(IDsKey, AnyLayer, keys)})
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"memory", func() error { sha256.Sum256(Bytes(keys)); return nil }},
		{"file", func() error { _, err := DigestFile(path); return err }},
		{"look", func() error { _, err := lookOver(path, true); return err }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(8 * n)
			for b.Loop() {
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRecord parses the head of a batch: what loading a batch costs from the
// second epoch on, whatever its size.
func BenchmarkRecord(b *testing.B) {
	for _, numSeeds := range []int{64, 16384} {
		b.Run(fmt.Sprintf("seeds=%d", numSeeds), func(b *testing.B) {
			f := benchFile(b, numSeeds)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Record(0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
