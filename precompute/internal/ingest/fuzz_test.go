package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzRead wants no panic, errors of the known kinds, consistent tables, and the same outcome on the fast and the
// careful path.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("testdata", "cases", "*", "*"))
	for _, path := range files {
		if data, err := os.ReadFile(path); err == nil && len(data) < 1000 {
			f.Add(data, []byte("id,label,split,f0\na,0,train,1\n"), []byte("node,feature,value\na,3,2\n"), uint8(len(data)))
			f.Add([]byte("src,dst,weight\n1,2,3\n"), data, data, uint8(len(data)))
		}
	}
	f.Fuzz(func(t *testing.T, edges, nodes, features []byte, how uint8) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		dir := t.TempDir()
		put := func(name string, data []byte) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
			return path
		}
		opt := Options{Threads: 2, MissingFeatures: MissingZero, MaxFeatureBytes: 1 << 20}
		opt.Edges = []string{put([]string{"e.csv", "e.tsv", "e.txt", "e"}[how%4], edges)}
		if how&4 != 0 {
			opt.Nodes = put("nodes.csv", nodes)
		}
		if how&8 != 0 {
			opt.Features = put("features", features)
		}
		if how&16 != 0 {
			opt.Labels = put("labels.csv", nodes)
		}
		if how&32 != 0 {
			opt.Splits = put("splits.csv", nodes)
		}
		if how&64 != 0 {
			opt.IDType = IDInteger
		}
		if how&128 != 0 {
			opt.FeatureNorm = NormRow
		}
		tables, report, err := Read(ctx, opt)
		if report == nil {
			t.Fatal("no report")
		}
		if e := (*Error)(nil); err != nil && (!errors.As(err, &e) || e.Msg == "") {
			t.Fatalf("unknown error %T: %v", err, err)
		}
		if err == nil {
			n := tables.NumNodes()
			edges := edgesOf(tables)
			for i, src := range edges.Src {
				if dst := edges.Dst[i]; src < 0 || dst < 0 || int(src) >= n || int(dst) >= n {
					t.Fatalf("edge %d: %d, %d of %d nodes", i, src, dst, n)
				}
			}
			if x := tables.Features; x != nil && len(x.Data) != n*x.NumCols {
				t.Fatalf("%d values for %d nodes, %d columns", len(x.Data), n, x.NumCols)
			}
		}
		opt.noFast, opt.blockSize, opt.Threads = true, 5, 1
		again, _, err2 := Read(ctx, opt)
		if fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("careful path: %v, fast path: %v", err2, err)
		}
		if err == nil {
			sameTables(t, again, tables)
		}
	})
}
