package ingest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/prelift/prelift/snapshot"
)

// A map is the oracle: numbers by first sight, order by collation.
func TestDict(t *testing.T) {
	for _, kind := range []string{"dense", "sparse", "wide", "text", "turning"} {
		t.Run(kind, func(t *testing.T) {
			seed := rand.Uint64()
			rng := rand.New(rand.NewPCG(seed, 0))
			d, want, texts := newDict(false), map[string]int32{}, []string{}
			for i := range 60000 {
				var id string
				switch k := rng.IntN(20000); kind {
				case "dense":
					id = strconv.Itoa(k)
				case "sparse":
					id = strconv.Itoa(k * 1000003)
				case "wide":
					id = strconv.FormatInt(int64(uint64(k)*0x9e3779b97f4a7c15), 10)
				case "text":
					id = fmt.Sprintf("n%x", k*k)
				case "turning":
					if id = strconv.Itoa(k - 5000); i > 30000 {
						id = fmt.Sprintf("%05d", k)
					}
				}
				n, seen := want[id]
				if !seen {
					n = int32(len(texts))
					want[id] = n
					texts = append(texts, id)
				}
				if got := d.add([]byte(id)); got != n {
					t.Fatalf("seed %d: %q: got %d, want %d", seed, id, got, n)
				}
			}
			if got := textsOf(d); !maps.Equal(got, want) {
				t.Fatalf("seed %d: got %d ids, want %d", seed, len(got), len(want))
			}
			collation := snapshot.CollationInteger
			if kind == "text" || kind == "turning" {
				collation = snapshot.CollationBytes
			}
			slices.SortFunc(texts, func(a, b string) int {
				if collation == snapshot.CollationBytes {
					return cmp.Compare(a, b)
				}
				x, _ := strconv.ParseInt(a, 10, 64)
				y, _ := strconv.ParseInt(b, 10, 64)
				return cmp.Compare(x, y)
			})
			d.closed = true
			if got := d.add([]byte("absent")); got != noNumber {
				t.Errorf("absent: got %d", got)
			}
			ids, place := d.sorted(false, 2)
			if ids.Collation != collation || ids.Len() != len(texts) {
				t.Fatalf("got %s, %d ids; want %s, %d", ids.Collation, ids.Len(), collation, len(texts))
			}
			for i, id := range texts {
				if string(ids.At(int32(i))) != id || place[want[id]] != int32(i) {
					t.Fatalf("seed %d: place %d: got %q, %d", seed, i, ids.At(int32(i)), place[want[id]])
				}
			}
		})
	}
}

// textsOf returns the numbers of all ids of d.
func textsOf(d *dict) map[string]int32 {
	texts := map[string]int32{}
	d.eachInt(func(v int64, num int32) { texts[strconv.FormatInt(v, 10)] = num })
	d.eachBytes(func(id []byte, num int32) { texts[string(id)] = num })
	return texts
}

// Ids that start as bytes but are all integers get the integer collation; bytewise order can be forced.
func TestDictCollation(t *testing.T) {
	fill := func(asBytes bool) *dict {
		d := newDict(asBytes)
		for _, v := range []int64{10, 9, -1, math.MinInt64, math.MaxInt64} {
			d.addInt(v)
		}
		return d
	}
	join := func(ids snapshot.IDs) string {
		var all [][]byte
		for i := range ids.Len() {
			all = append(all, ids.At(int32(i)))
		}
		return string(bytes.Join(all, []byte(" ")))
	}
	for _, asBytes := range []bool{false, true} {
		ids, _ := fill(asBytes).sorted(false, 2)
		if got, want := join(ids), "-9223372036854775808 -1 9 10 9223372036854775807"; got != want {
			t.Errorf("%v: got %s, want %s", asBytes, got, want)
		}
		ids, _ = fill(asBytes).sorted(true, 2)
		if got, want := join(ids), "-1 -9223372036854775808 10 9 9223372036854775807"; got != want {
			t.Errorf("%v: got %s, want %s", asBytes, got, want)
		}
	}
}

func TestDictFull(t *testing.T) {
	d := newDict(false)
	d.addRange(3)
	if got := d.addInts([]int64{2, 1, 0, 5}, make([]int32, 4)); got != 4 {
		t.Errorf("got %d", got)
	}
	d.closed = true
	nums := make([]int32, 3)
	if got := d.addInts([]int64{5, 6, 1}, nums); got != 1 || nums[1] != noNumber {
		t.Errorf("got %d, %v", got, nums)
	}
}
