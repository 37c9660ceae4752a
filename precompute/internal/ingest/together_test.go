package ingest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/prelift/prelift/snapshot"
)

// Several goroutines that number the same ids agree, whatever they are and whenever integers turn to bytes; settled,
// numbers have no gaps and stand for the ids they did.
func TestDictTogether(t *testing.T) {
	for _, kind := range []string{"dense", "around", "sparse", "text", "turning"} {
		t.Run(kind, func(t *testing.T) {
			seed := rand.Uint64()
			rng := rand.New(rand.NewPCG(seed, 0))
			const direct, lists, length = 1 << 16, 8, 3000
			ids := make([][]string, lists)
			for l := range ids {
				for i := range length {
					k := rng.IntN(2000)
					id := strconv.Itoa(k)
					switch kind {
					case "around":
						id = strconv.Itoa(direct - 1000 + k)
					case "sparse":
						id = strconv.FormatInt(int64(uint64(k)*0x9e3779b97f4a7c15), 10)
					case "text":
						id = strings.Repeat(fmt.Sprintf("n%d,", k), 1+k%100)
					case "turning":
						id = strconv.Itoa((k - 1000) * 100)
						if i > length/2 && k%10 == 0 {
							id = fmt.Sprintf("%07d", k)
						}
					}
					ids[l] = append(ids[l], id)
				}
			}
			d := newDict(kind == "text")
			if kind != "text" {
				d.direct(direct)
			}
			nums := make([][]int32, lists)
			var wg sync.WaitGroup
			for l := range ids {
				wg.Go(func() {
					for part := range slices.Chunk(ids[l], 100) {
						var text []byte
						var places []uint64
						var values []int64
						for _, id := range part {
							places = append(places, pack(span{len(text), len(text) + len(id)}))
							text = append(text, id...)
							if v, ok := snapshot.CanonicalInt([]byte(id)); ok {
								values = append(values, v)
							}
						}
						got := make([]int32, len(part))
						if l%2 == 0 && len(values) == len(part) && d.holdInts() {
							d.addInts(values, got)
							d.releaseInts()
						} else if done := d.addSpans(text, places, got); done != len(part) {
							t.Errorf("numbered %d of %d", done, len(part))
						}
						nums[l] = append(nums[l], got...)
					}
				})
			}
			wg.Wait()
			want := map[string]int32{}
			for l := range ids {
				for i, id := range ids[l] {
					if n, seen := want[id]; seen && n != nums[l][i] {
						t.Fatalf("seed %d: %q is %d and %d", seed, id, n, nums[l][i])
					}
					want[id] = nums[l][i]
				}
			}
			settled := d.settle()
			if d.len() != len(want) {
				t.Errorf("seed %d: %d ids, want %d", seed, d.len(), len(want))
			}
			got, used := textsOf(d), make([]bool, len(want))
			if len(got) != len(want) {
				t.Fatalf("seed %d: %d ids, want %d", seed, len(got), len(want))
			}
			for id, n := range want {
				if settled != nil {
					n = settled[n]
				}
				if used[n] || got[id] != n {
					t.Fatalf("seed %d: %q: got %d, want %d", seed, id, got[id], n)
				}
				used[n] = true
			}
			if n := d.add([]byte("-12345678901")); int(n) != len(want) {
				t.Errorf("seed %d: the next number is %d, want %d", seed, n, len(want))
			}
		})
	}
}
