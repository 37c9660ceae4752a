package ingest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/prelift/prelift/snapshot"
)

// everyPath reads with every combination of the careful and the fast path, 1, 2 and 8 threads, small and large blocks and
// a low and a high limit of the integers that are their own numbers, and wants one outcome.
func everyPath(t *testing.T, opt Options) (*snapshot.Tables, error) {
	t.Helper()
	opt.noFast, opt.Threads, opt.blockSize, opt.direct = true, 1, 5, 64
	want, _, wantErr := Read(t.Context(), opt)
	for _, careful := range []bool{false, true} {
		for _, threads := range []int{1, 2, 8} {
			for _, block := range []int{100, 3000, 1 << 20} {
				for _, direct := range []int64{64, 1 << 16} {
					opt.noFast, opt.Threads, opt.blockSize, opt.direct = careful, threads, block, direct
					got, _, err := Read(t.Context(), opt)
					how := fmt.Sprintf("careful %t, %d threads, blocks of %d, direct below %d", careful, threads, block, direct)
					if fmt.Sprint(err) != fmt.Sprint(wantErr) {
						t.Fatalf("%s: got the error %v, want %v", how, err, wantErr)
					}
					if err == nil {
						if sameTables(t, got, want); t.Failed() {
							t.Fatal(how)
						}
					}
				}
			}
		}
	}
	return want, wantErr
}

// idKinds are the ids that paths differ on: id gives the i-th of n.
var idKinds = []struct {
	name string
	id   func(rng *rand.Rand, i, n int) string
}{
	{"small", func(rng *rand.Rand, _, _ int) string { return strconv.Itoa(rng.IntN(40)) }},
	{"around 64", func(rng *rand.Rand, _, _ int) string { return strconv.Itoa(50 + rng.IntN(30)) }},
	{"around 65536", func(rng *rand.Rand, _, _ int) string { return strconv.Itoa(65500 + rng.IntN(70)) }},
	{"negative", func(rng *rand.Rand, _, _ int) string { return strconv.Itoa(rng.IntN(200) - 100) }},
	{"64 bits", func(rng *rand.Rand, _, _ int) string {
		return strconv.FormatInt(int64(rng.Uint64()>>(60*(rng.Uint64()&1))), 10)
	}},
	{"turns late", func(rng *rand.Rand, i, n int) string {
		if i == n-1 {
			return "007"
		}
		return strconv.Itoa(rng.IntN(1000)*200 - 1000)
	}},
	{"turns and back", func(rng *rand.Rand, i, n int) string {
		if i > n/2 && i < n/2+5 {
			return fmt.Sprintf("n%d", rng.IntN(3))
		}
		return strconv.Itoa(rng.IntN(100))
	}},
	{"hex", func(rng *rand.Rand, _, _ int) string { return fmt.Sprintf("%016x", rng.Uint64()>>(rng.IntN(60))) }},
	{"long", func(rng *rand.Rand, _, _ int) string {
		return strings.Repeat("x", rng.IntN(600)) + strconv.Itoa(rng.IntN(9))
	}},
}

// Every path gives the ids in order and the edges as written.
func TestEveryPath(t *testing.T) {
	for _, kind := range idKinds {
		t.Run(kind.name, func(t *testing.T) {
			seed := rand.Uint64()
			rng := rand.New(rand.NewPCG(seed, 0))
			var text strings.Builder
			var ids []string // src, dst of each row
			weighted := rng.IntN(2) == 0
			rows := 700
			if kind.name == "long" {
				rows = 100
			}
			for i := range rows {
				for k := range 2 {
					ids = append(ids, kind.id(rng, 2*i+k, 2*rows))
				}
				text.WriteString(ids[2*i] + "," + ids[2*i+1])
				if weighted {
					fmt.Fprintf(&text, ",%d.5", i)
				}
				text.WriteString([]string{"\n", "\r\n", "\n\n"}[max(0, rng.IntN(8)-5)])
			}
			opt := Options{Edges: []string{writeFile(t, "e.csv", text.String())}, WeightCol: WeightNone}
			if weighted {
				opt.WeightCol = "3"
			}
			tables, err := everyPath(t, opt)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			wantSorted(t, tables, ids)
			edges := edgesOf(tables)
			for i := range rows {
				src, dst := string(tables.IDs.At(edges.Src[i])), string(tables.IDs.At(edges.Dst[i]))
				if src != ids[2*i] || dst != ids[2*i+1] || weighted && edges.Weight[i] != float32(i)+0.5 {
					t.Fatalf("seed %d: row %d: got %q, %q", seed, i, src, dst)
				}
			}

			// Without the id of one row among the nodes, and with a fault further down, the first of the two is found.
			missing := ids[rng.IntN(len(ids))]
			all := slices.Compact(slices.Sorted(slices.Values(ids)))
			rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
			var nodes strings.Builder
			nodes.WriteString("id\n")
			for _, id := range all {
				if id != missing {
					nodes.WriteString(id + "\n")
				}
			}
			opt.Nodes = writeFile(t, "nodes.csv", nodes.String())
			for _, tail := range []string{"", "1\n", "a,\"b\n"} {
				opt.Edges = []string{writeFile(t, "e.csv", text.String()+tail)}
				_, err := everyPath(t, opt)
				if e := (*Error)(nil); !errors.As(err, &e) || e.Value != missing {
					t.Fatalf("seed %d: got %v, want the value %q", seed, err, missing)
				}
			}
			opt.Nodes = ""
			for _, tail := range []string{"1\n", "a,\"b\n", ",2\n", "1,2,3,4\n"} {
				opt.Edges = []string{writeFile(t, "e.csv", text.String()+tail+"1,2,3,4,5\n")}
				if _, err := everyPath(t, opt); err == nil {
					t.Fatalf("seed %d: %q was read", seed, tail)
				}
			}
		})
	}
}

// wantSorted wants the distinct ones of ids in the order of their collation.
func wantSorted(t *testing.T, tables *snapshot.Tables, ids []string) {
	t.Helper()
	want := slices.Compact(slices.Sorted(slices.Values(ids)))
	if !slices.ContainsFunc(want, func(id string) bool { return !isInt(id) }) {
		slices.SortFunc(want, func(a, b string) int {
			x, _ := snapshot.CanonicalInt([]byte(a))
			y, _ := snapshot.CanonicalInt([]byte(b))
			return cmp.Compare(x, y)
		})
	}
	if got := idTexts(tables); !slices.Equal(got, want) {
		t.Fatalf("got %d ids, want %d: %.300q, %.300q", len(got), len(want), got, want)
	}
}

// What tables add behind the edges finds the ids of the edges, however those were numbered.
func TestEveryPathThenTables(t *testing.T) {
	for _, kind := range idKinds {
		rng := rand.New(rand.NewPCG(1, 2))
		var edges, labels bytes.Buffer
		labels.WriteString("node,label\n")
		class := map[string]string{}
		for i := range 300 {
			a, b := kind.id(rng, 2*i, 600), kind.id(rng, 2*i+1, 600)
			fmt.Fprintf(&edges, "%s,%s\n", a, b)
			class[a] = strconv.Itoa(i % 7)
		}
		class["1234567"], class["-5"] = "3", "4" // not in the edges
		for id, c := range class {
			fmt.Fprintf(&labels, "%s,%s\n", id, c)
		}
		tables, err := everyPath(t, Options{Edges: []string{writeFile(t, "e.csv", edges.String())}, Labels: writeFile(t, "l.csv", labels.String())})
		if err != nil {
			t.Fatalf("%s: %v", kind.name, err)
		}
		for i := range tables.NumNodes() {
			c, id := tables.Labels.Class[i], string(tables.IDs.At(int32(i)))
			if want, labelled := class[id]; (c >= 0) != labelled || labelled && tables.Labels.ClassNames[c] != want {
				t.Fatalf("%s: %q has class %d, want %q", kind.name, id, c, want)
			}
		}
	}
}

// Spellings of one number are refused in the line of the later one, on every path.
func TestEveryPathSpellings(t *testing.T) {
	var text strings.Builder
	for i := range 400 {
		fmt.Fprintf(&text, "%d,%d\n", i, i*7)
	}
	opt := Options{IDType: IDInteger, Edges: []string{writeFile(t, "e.csv", text.String()+"5,0007\n008,1\n08,8\n")}}
	_, err := everyPath(t, opt)
	wantFault(t, err, "e.csv", 401, `ids "7" (e.csv line 2) and "0007" (e.csv line 401) collide`)
	opt.Edges = []string{writeFile(t, "e.csv", text.String()+"5,0009999\nx,0007\n")}
	_, err = everyPath(t, opt)
	wantFault(t, err, "e.csv", 402, `"x" is not an integer id`)
}

func wantFault(t *testing.T, err error, file string, line int64, want string) {
	t.Helper()
	if e := (*Error)(nil); !errors.As(err, &e) || e.File != file || e.Line != line || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s:%d: %s", err, file, line, want)
	}
}

// A full dictionary refuses one id more, of each kind.
func TestDictionaryFull(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
	}{
		{"integers", "1,2\n3,4\n100,200\n300,400\n500,1\n", "e.csv: one node too many: at most 4 integers of 64 and more can be numbered"},
		{"text", "a,b\nc,d\na,e\nf,g\n", "e.csv: one node too many: at most 68 can be numbered"},
	} {
		for _, threads := range []int{1, 8} {
			r := &reader{report: &Report{}, dict: newDict(false)}
			r.dict.limit = 68
			text := c.text
			for i := range 70 {
				if c.name == "text" {
					text += fmt.Sprintf("x%d,x%d\n", i, i)
				}
			}
			r.opt, _ = Options{Edges: []string{writeFile(t, "e.csv", text)}, Threads: threads, blockSize: 10, direct: 64}.withDefaults()
			_, err := r.run(t.Context())
			if !errors.Is(err, ErrLimit) || err.Error() != c.want {
				t.Errorf("%s, %d threads: got %v, want %s", c.name, threads, err, c.want)
			}
		}
	}
}

// Symmetric matrices are mirrored, and checked, on every path alike.
func TestEveryPathSymmetric(t *testing.T) {
	var entries strings.Builder
	n := 0
	for i := 1; i <= 60; i++ {
		for k := 1 + i%3; k <= i; k += 3 {
			fmt.Fprintf(&entries, "%d %d %d\n", i, k, i+k)
			n++
		}
	}
	head := func(n int) string {
		return fmt.Sprintf("%%%%MatrixMarket matrix coordinate integer symmetric\n60 60 %d\n", n)
	}
	opt := Options{Directed: true, Edges: []string{writeFile(t, "m.mtx", head(n)+entries.String())}}
	tables, err := everyPath(t, opt)
	if err != nil {
		t.Fatal(err)
	}
	loops := 0
	for i, src := range edgesOf(tables).Src {
		if src == edgesOf(tables).Dst[i] {
			loops++
		}
	}
	if got := tables.Edges.Len(); got != int64(2*n-loops) {
		t.Errorf("%d edges of %d entries, %d on the diagonal", got, n, loops)
	}
	opt.Edges = []string{writeFile(t, "m.mtx", head(n+2)+entries.String()+"3 4 1\n70 1 1\n")}
	_, err = everyPath(t, opt)
	wantFault(t, err, "m.mtx", int64(n+3), "entry 3, 4 is above the diagonal")
}

// Parquet and Arrow files give what the text of their rows gives, on every path.
func TestEveryPathColumnar(t *testing.T) {
	const header = "src,dst,weight\n"
	for _, kind := range idKinds[:5] {
		for _, format := range []string{"parquet", "parquet-zstd", "file"} {
			rng := rand.New(rand.NewPCG(3, 4))
			schema := arrow.NewSchema([]arrow.Field{{Name: "src", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "dst", Type: arrow.PrimitiveTypes.Int64}, {Name: "weight", Type: arrow.PrimitiveTypes.Float32}}, nil)
			rows := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
			var text strings.Builder
			count := 1500
			if kind.name == "around 64" && format == "parquet" {
				count = 30_000 // more than are decoded at a time
			}
			for i := range count {
				var ends [2]int64
				for k := range ends {
					ends[k], _ = snapshot.CanonicalInt([]byte(kind.id(rng, i, 1)))
					rows.Field(k).(*array.Int64Builder).Append(ends[k])
				}
				rows.Field(2).(*array.Float32Builder).Append(float32(i))
				fmt.Fprintf(&text, "%d,%d,%d\n", ends[0], ends[1], i)
			}
			want, _ := mustRead(t, Options{Edges: []string{writeFile(t, "e.csv", header+strings.Repeat(text.String(), 3))}})
			path := writeFile(t, "e", string(writeColumnar(t, format, rows.NewRecord(), 3)))
			for _, threads := range []int{1, 2, 8} {
				for _, careful := range []bool{false, true} {
					got, _ := mustRead(t, Options{Edges: []string{path}, Threads: threads, noFast: careful, direct: 64})
					if sameTables(t, got, want); t.Failed() {
						t.Fatalf("%s, %s, %d threads, careful %t", kind.name, format, threads, careful)
					}
				}
			}
		}
	}
}
