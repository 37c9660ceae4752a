package ingest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prelift/prelift/snapshot"
)

var testKey = []byte("0123456789abcdef")

// codeOf is an id under testKey.
func codeOf(id string) string {
	mac := hmac.New(sha256.New, testKey)
	mac.Write([]byte(id))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// RFC 4231, test case 4: the published digest's first half.
func TestCodesOfPublished(t *testing.T) {
	key := make([]byte, 25)
	for i := range key {
		key[i] = byte(i + 1)
	}
	ids := snapshot.IDs{Offsets: []int64{0, 50}, Bytes: bytes.Repeat([]byte{0xcd}, 50)}
	codes, _, err := codesOf(&ids, key, 1)
	if want := "82558a389a443c0ea4cc819899f2083a"; err != nil || string(codes.At(0)) != want {
		t.Errorf("code %s, %v, want %s", codes.At(0), err, want)
	}
}

func TestCodesOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 255, 3000} {
		ids := snapshot.IDs{Offsets: []int64{0}}
		want := map[string]int32{}
		for v := range n {
			id := fmt.Sprintf("%d-%x", v, rng.Uint32())
			want[codeOf(id)] = int32(v)
			ids.Bytes = append(ids.Bytes, id...)
			ids.Offsets = append(ids.Offsets, int64(len(ids.Bytes)))
		}
		for _, threads := range []int{1, 3} {
			codes, from, err := codesOf(&ids, testKey, threads)
			if err != nil || codes.Len() != n || len(from) != n || codes.Collation != snapshot.CollationBytes {
				t.Fatalf("%d ids, %d threads: %d codes, %d places, collation %s, %v", n, threads, codes.Len(), len(from), codes.Collation, err)
			}
			for v := range int32(n) {
				if old, ok := want[string(codes.At(v))]; !ok || old != from[v] {
					t.Errorf("code %s comes of id %d, want %d", codes.At(v), from[v], old)
				}
				if v > 0 && bytes.Compare(codes.At(v-1), codes.At(v)) >= 0 {
					t.Errorf("codes %s and %s are not in order", codes.At(v-1), codes.At(v))
				}
			}
		}
	}
	// Two equal ids stand for two ids of one code, which can't be found.
	twice := snapshot.IDs{Offsets: []int64{0, 1, 2, 3}, Bytes: []byte("aba")}
	if _, _, err := codesOf(&twice, testKey, 2); err == nil || !contains(err.Error(), `"a" and "a" become the same`) {
		t.Errorf("one code of two ids: %v", err)
	}
}

// Everything but the ids follows them to their new places.
func TestAnonymise(t *testing.T) {
	dir := map[string]string{}
	put := func(name, text string) string { dir[name] = writeFile(t, name, text); return dir[name] }
	opt := Options{
		Edges: []string{put("edges.csv", "src,dst,weight\nann,bob,1\nbob,cid,2\ncid,ann,3\ndan,ann,4\n")},
		Nodes: put("nodes.csv", "id,label,split,f0,t\nbob,x,train,2,T\nann,y,valid,1,U\ndan,,,4,U\ncid,x,test,3,T\n"), TypeCol: "t",
		HoldoutEdges: "test=" + put("test.csv", "dan,bob\n"),
	}
	plain, _ := mustRead(t, opt)
	opt.AnonymiseKey = testKey
	secret, _ := mustRead(t, opt)
	// What each table says of each id.
	facts := func(tables *snapshot.Tables, name func(string) string) []string {
		var list []string
		id := func(v int32) string { return name(string(tables.IDs.At(v))) }
		for v := range int32(tables.NumNodes()) {
			list = append(list, fmt.Sprint(id(v), tables.Features.Data[v], tables.Labels.Class[v], tables.Splits.Mask[v], tables.Types.Names[tables.Types.Type[v]]))
		}
		e := edgesOf(tables)
		for i := range e.Src {
			list = append(list, fmt.Sprint(id(e.Src[i]), id(e.Dst[i]), e.Weight[i]))
		}
		for i, src := range tables.Held.Test.Src {
			list = append(list, fmt.Sprint(id(src), id(tables.Held.Test.Dst[i])))
		}
		slices.Sort(list)
		return list
	}
	if got, want := facts(secret, func(s string) string { return s }), facts(plain, codeOf); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}

	// Integers and the same texts are one id; a matrix's row i is still the id i.
	ints := Options{Edges: []string{writeFile(t, "edges.csv", "0,2\n10,2\n")}, AnonymiseKey: testKey}
	text := ints
	text.IDType = IDString
	a, _ := mustRead(t, ints)
	b, _ := mustRead(t, text)
	sameTables(t, a, b)
	if got, want := string(a.IDs.At(0)), slices.Min([]string{codeOf("0"), codeOf("2"), codeOf("10")}); got != want {
		t.Errorf("first id %s, want %s", got, want)
	}
	rows := Options{Edges: []string{writeFile(t, "edges.csv", "0,2\n1,2\n")}, Features: writeFile(t, "f.csv", "node,x\n0,0\n1,1\n2,2\n"), AnonymiseKey: testKey}
	c, _ := mustRead(t, rows)
	for v := range int32(3) {
		if got := string(c.IDs.At(v)); got != codeOf(fmt.Sprint(c.Features.Data[v])) {
			t.Errorf("node %s has the features of %v", got, c.Features.Data[v])
		}
	}
}

// Messages name the ids of the input.
func TestAnonymiseMessages(t *testing.T) {
	opt := Options{Edges: []string{writeFile(t, "edges.csv", "src,dst\nann,bob\nbob,cid\n")}, AnonymiseKey: testKey}
	opt.Features = writeFile(t, "f.csv", "node,x\nann,1\ncid,2\n")
	wantError(t, opt, "f.csv", 0, `no feature row, first "bob"`)
	opt.Features, opt.Splits = "", writeFile(t, "s.csv", "node,a,b\nann,train,\n")
	opt.Splits = "train=" + writeFile(t, "train.txt", "cid\n") + ",test=" + writeFile(t, "test.txt", "cid\n")
	wantError(t, opt, "train.txt, test.txt", 0, `"cid" is in train and test`)
	opt.AnonymiseKey = testKey[:15]
	if err := opt.Check(); !errors.Is(err, ErrOption) || !contains(err.Error(), "15 bytes, not at least 16") {
		t.Errorf("a short key: %v", err)
	}
}

func BenchmarkCodesOf(b *testing.B) {
	ids := snapshot.IDs{Offsets: []int64{0}}
	for v := range 1_000_000 {
		ids.Bytes = fmt.Appendf(ids.Bytes, "node-%d", v)
		ids.Offsets = append(ids.Offsets, int64(len(ids.Bytes)))
	}
	for b.Loop() {
		codesOf(&ids, testKey, 2)
	}
	b.ReportMetric(float64(ids.Len())*float64(b.N)/b.Elapsed().Seconds(), "ids/s")
}
