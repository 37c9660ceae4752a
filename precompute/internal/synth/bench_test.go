package synth

import (
	"fmt"
	"path/filepath"
	"testing"
)

// BenchmarkGenerate writes a million edges of each kind.
func BenchmarkGenerate(b *testing.B) {
	for _, opt := range []Options{
		{Kind: KindSBM, NumNodes: 100_000, NumEdges: 1_000_000, NumFeatures: 64, NumClasses: 16},
		{Kind: KindRMAT, NumNodes: 100_000, NumEdges: 1_000_000},
		{Kind: KindKG, NumNodes: 100_000, NumEdges: 1_000_000, NumRels: 200},
	} {
		b.Run(fmt.Sprintf("kind=%s", opt.Kind), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "out")
			for b.Loop() {
				if err := Generate(b.Context(), dir, opt, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(opt.NumEdges)*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
		})
	}
}
