package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/prelift/prelift/snapshot"
	"github.com/prelift/prelift/snapshot/graph"
)

// measureIndex says how large the index of neighbours of a snapshot is beside an int32 adjacency list and the
// information bound, and how long the j-th neighbour and the membership test take by bucket.
func measureIndex(dir string) error {
	s, err := snapshot.Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	info, err := os.Stat(filepath.Join(dir, snapshot.HopsFile))
	if err != nil {
		return err
	}
	bits, entries := graph.InformationBits(&s.In), int64(0)
	for v := range int32(s.NumNodes()) {
		entries += int64(s.Hop1.Degree(v))
	}
	fmt.Printf("\n== index of neighbours: %d bytes for %d entries, %.2f bits each; %.1f %% of an int32 list, %.3f times the bound sum of log2 C(N, d)\n",
		info.Size(), entries, 8*float64(info.Size())/float64(entries), 100*float64(info.Size())/float64(4*entries), 8*float64(info.Size())/bits)
	byBucket := map[graph.Bucket][]int32{}
	for v := range int32(s.NumNodes()) {
		if s.Hop1.Degree(v) > 0 {
			b := s.Hop1.Bucket(v)
			byBucket[b] = append(byBucket[b], v)
		}
	}
	for _, b := range []graph.Bucket{graph.BucketCompact, graph.BucketSorted, graph.BucketHub} {
		if nodes := byBucket[b]; len(nodes) > 0 {
			measureBucket(s, b, nodes)
		}
	}
	return nil
}

// measureBucket times random accesses to random nodes of a bucket: every access is likely to miss the cache.
func measureBucket(s *snapshot.Snapshot, b graph.Bucket, nodes []int32) {
	const accesses = 1 << 20
	rng := rand.New(rand.NewPCG(1, 2))
	type access struct {
		v, hit, miss int32
		j            int
	}
	list := make([]access, accesses)
	for i := range list {
		v := nodes[rng.IntN(len(nodes))]
		row := s.In.Row(v)
		list[i] = access{v: v, hit: row[rng.IntN(len(row))], miss: rng.Int32N(int32(s.NumNodes())), j: rng.IntN(s.Hop1.Degree(v))}
	}
	nanoseconds := func(f func(a access) bool) float64 {
		least := math.Inf(1)
		for range 3 {
			start, n := time.Now(), 0
			for _, a := range list {
				if f(a) {
					n++
				}
			}
			sink += uint64(n)
			least = min(least, float64(time.Since(start).Nanoseconds())/accesses)
		}
		return least
	}
	fmt.Printf("   %-8s %8d nodes: j-th neighbour %4.0f ns; membership of a neighbour %4.0f ns, of a random node %4.0f ns\n", b, len(nodes),
		nanoseconds(func(a access) bool { return s.Hop1.Neighbour(a.v, a.j) >= 0 }),
		nanoseconds(func(a access) bool { return s.Hop1.Contains(a.v, a.hit) }),
		nanoseconds(func(a access) bool { return s.Hop1.Contains(a.v, a.miss) }))
}
