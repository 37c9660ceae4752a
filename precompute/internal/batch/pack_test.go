package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/precompute/internal/sample"
)

// packed are parameters of packed sets for a graph of some hundred nodes.
func packed(change func(p *format.BatchParams)) format.BatchParams {
	return params(func(p *format.BatchParams) {
		p.Store, p.Fanout, p.BatchSize, p.Variants, p.BatchesPerFile, p.Order, p.Eval = StorePacked, []int{3, 2}, 16, 2, 5, sample.Random, None
		change(p)
	})
}

// TestRowStorage writes sets in every way that rows can be stored, checks them in every way (build), and the bytes against those that come
// of reading each row by itself, of little memory and of other numbers of threads.
func TestRowStorage(t *testing.T) {
	t.Parallel()
	snap := randomGraph(300, 2000).open(t)
	for _, dtype := range []string{"f32", "f16", "bf16", "int8"} {
		for _, c := range []struct {
			name   string
			change func(p *format.BatchParams)
		}{
			{"ids", func(p *format.BatchParams) { p.Store = StoreIDs }},
			{"full", func(p *format.BatchParams) { p.Store, p.Mode = StoreIDs, ModeFull }},
			{"packed", func(p *format.BatchParams) {}},
			{"hot", func(p *format.BatchParams) { p.HotRows = 0.2 }},
			{"hot, none", func(p *format.BatchParams) { p.HotRows = 0.001 }},
			{"hot, all", func(p *format.BatchParams) { p.HotRows = 1 }},
			{"groups", func(p *format.BatchParams) { p.Group = 3 }},
			{"groups of files", func(p *format.BatchParams) { p.Group = 5 }},
			{"groups and hot", func(p *format.BatchParams) { p.Group, p.HotRows = 2, 0.1 }},
		} {
			t.Run(dtype+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				p := packed(func(p *format.BatchParams) { p.DType = dtype; c.change(p) })
				dir, m, plan := build(t, snap, p, Options{Threads: 2})
				checkPlan(t, plan, m, 0)
				checkDescription(t, dir, m)
				checkShared(t, dir, m)
				want := hashDir(t, dir)
				for name, opt := range map[string]Options{
					"row by row": {Threads: 1, rowByRow: true}, "a batch at a time": {Threads: 2, PackBytes: 6000}, "no memory": {PackBytes: 1}, "8 threads": {Threads: 8},
				} {
					out := filepath.Join(t.TempDir(), "set")
					write(t, out, snap, m.Params, opt)
					if hashDir(t, out) != want {
						t.Errorf("%s: other bytes", name)
					}
				}
			})
		}
	}
}

// checkShared holds shared rows against the definition in SPEC 7, by node lists alone, and rows against those that each batch has.
func checkShared(t *testing.T, dir string, m *format.BatchSet) {
	t.Helper()
	p := &m.Params
	if !sharesRows(p) {
		return
	}
	lists := [][]int32{}
	batches(t, dir, m, func(r *format.Record) {
		lists = append(lists, slices.Clone(r.Int32s(format.NodesNumber, format.AnyLayer)))
	})
	uses := map[int32]int{}
	for _, nodes := range lists {
		for _, v := range nodes {
			uses[v]++
		}
	}
	hot := slices.SortedFunc(maps.Keys(uses), func(a, b int32) int { return cmp.Or(cmp.Compare(uses[b], uses[a]), cmp.Compare(a, b)) })
	hot = slices.DeleteFunc(hot, func(v int32) bool { return uses[v] < 2 })
	hot = hot[:min(len(hot), int(p.HotRows*float64(m.NumNodes)))]
	slices.Sort(hot)
	read := func(name string) (lists [][]int32) {
		f, err := format.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for i := range f.Records {
			r, err := f.Record(i)
			if err != nil {
				t.Fatal(err)
			}
			lists = append(lists, slices.Clone(r.Int32s(format.NodesNumber, format.AnyLayer)))
		}
		return lists
	}
	if p.HotRows > 0 {
		if got := read(format.SetHotFile)[0]; !slices.Equal(got, hot) {
			t.Errorf("hot nodes %v, want %v", got, hot)
		}
	}
	if int(m.NumHotRows) != len(hot) {
		t.Errorf("%d hot rows in the manifest, want %d", m.NumHotRows, len(hot))
	}
	if p.Group < 2 {
		return
	}
	numRows := 0
	for shard := 0; len(lists) > 0; shard++ {
		of := lists[:min(p.BatchesPerFile, len(lists))]
		lists = lists[len(of):]
		groups := read(format.RowsFile(shard))
		for group := range slices.Chunk(of, p.Group) {
			uses, want := map[int32]int{}, []int32{}
			for _, nodes := range group {
				for _, v := range nodes {
					if _, isHot := slices.BinarySearch(hot, v); !isHot {
						uses[v]++
					}
				}
			}
			for v, n := range uses {
				if n > 1 {
					want = append(want, v)
				}
			}
			slices.Sort(want)
			if len(groups) == 0 || !slices.Equal(groups[0], want) {
				t.Fatalf("shard %d: groups %v, the next should be %v", shard, groups, want)
			}
			groups, numRows = groups[1:], numRows+len(want)
		}
		if len(groups) > 0 {
			t.Errorf("shard %d has %d groups more", shard, len(groups))
		}
	}
	if int(m.NumGroupRows) != numRows {
		t.Errorf("%d group rows in the manifest, want %d", m.NumGroupRows, numRows)
	}
}

// TestSharedRowsSave: what is shared takes less room, down to about the distinct rows.
func TestSharedRowsSave(t *testing.T) {
	t.Parallel()
	g := randomGraph(400, 3000)
	g.features = 64
	snap := g.open(t)
	size := func(change func(p *format.BatchParams)) int64 {
		_, m, _ := build(t, snap, packed(func(p *format.BatchParams) { p.DType, p.BatchesPerFile = "f16", 16; change(p) }), Options{})
		return int64(m.Bytes)
	}
	plain := size(func(p *format.BatchParams) {})
	hot := size(func(p *format.BatchParams) { p.HotRows = 0.3 })
	group := size(func(p *format.BatchParams) { p.Group = 16 })
	both := size(func(p *format.BatchParams) { p.Group, p.HotRows = 16, 0.1 })
	all := size(func(p *format.BatchParams) { p.HotRows = 1 })
	if !(hot < plain && group < plain && both < group && all < both) {
		t.Errorf("%d bytes plain, %d hot, %d in groups, %d both, %d all hot", plain, hot, group, both, all)
	}
}

// TestAutoWithSharing: auto packs where what is shared brings the batches below the limit, and forgets the sharing where it takes ids.
func TestAutoWithSharing(t *testing.T) {
	t.Parallel()
	g := randomGraph(400, 3000)
	g.features = 64
	snap := g.open(t)
	at := func(limit float64, change func(p *format.BatchParams)) (format.BatchParams, *Plan) {
		p, plan, err := Resolve(context.Background(), snap, packed(func(p *format.BatchParams) { p.Store, p.BatchesPerFile = Auto, 16; change(p) }), Options{MaxAmplification: limit})
		if err != nil {
			t.Fatal(err)
		}
		return p, plan
	}
	share := func(p *format.BatchParams) { p.Group, p.HotRows, p.DType = 16, 0.3, "f16" }
	_, shared := at(100, share)
	_, plain := at(100, func(p *format.BatchParams) {})
	between := (shared.Amplification + plain.Amplification) / 2
	if shared.Amplification >= plain.Amplification {
		t.Fatalf("amplification %g shared, %g plain", shared.Amplification, plain.Amplification)
	}
	if p, _ := at(between, share); p.Store != StorePacked || p.Group != 16 || p.HotRows != 0.3 {
		t.Errorf("under a limit of %g: store %s, group %d, hot rows %g", between, p.Store, p.Group, p.HotRows)
	}
	if p, _ := at(between, func(p *format.BatchParams) {}); p.Store != StoreIDs {
		t.Errorf("under a limit of %g: store %s of f32 rows that aren't shared", between, p.Store)
	}
	p, plan := at(shared.Amplification*0.9, share)
	if p.Store != StoreIDs || p.Group != 0 || p.HotRows != 0 || p.DType != "f16" {
		t.Errorf("below: store %s, group %d, hot rows %g, dtype %s", p.Store, p.Group, p.HotRows, p.DType)
	}
	out := filepath.Join(t.TempDir(), "set")
	if m := write(t, out, snap, p, Options{Plan: plan}); int64(m.Bytes) != plan.Bytes {
		t.Errorf("%d bytes, planned %d", m.Bytes, plan.Bytes)
	}
	if err := VerifyAgainst(out, snap); err != nil {
		t.Error(err)
	}
}

// TestPredictedSharing: where not every batch is measured, sizes of shared rows are within 5 %.
func TestPredictedSharing(t *testing.T) {
	t.Parallel()
	g := randomGraph(3000, 20000)
	g.features = 32
	snap := g.open(t)
	for _, change := range []func(p *format.BatchParams){
		func(p *format.BatchParams) { p.HotRows = 0.1 },
		func(p *format.BatchParams) { p.Group = 4 },
		func(p *format.BatchParams) { p.Group, p.HotRows, p.DType = 3, 0.05, "int8" },
	} {
		_, m, plan := build(t, snap, packed(func(p *format.BatchParams) { p.BatchSize, p.BatchesPerFile = 10, 20; change(p) }), Options{})
		if plan.Exact {
			t.Errorf("all of %d batches were measured", plan.NumBatches)
		}
		checkPlan(t, plan, m, 0.05)
	}
}

// TestRefusedRows has features that a type can't hold: node and column are named.
func TestRefusedRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dtype string
		x     float32
		want  string
	}{
		{"f16", 70000, `--dtype f16: node "n00000257", feature column 5 (from 0): 70000 is beyond the largest f16 (65504); use --dtype bf16`},
		{"f16", float32(math.Inf(-1)), "-Inf can't be converted"},
		{"bf16", math.MaxFloat32, "beyond the largest bf16; use --dtype f32"},
		{"int8", float32(math.NaN()), "NaN can't be converted"},
		{"int8", float32(math.Inf(1)), "+Inf can't be converted; want finite numbers"},
		{"bf16", 70000, ""},
		{"int8", 70000, ""},
	} {
		snap := *randomGraph(300, 100).open(t)
		snap.Features = slices.Clone(snap.Features)
		snap.Features[257*8+5] = c.x
		snap.Features[280*8] = c.x // a later one isn't told
		table, err := newRowTable(&snap, c.dtype)
		var fault *ParamError
		if c.want == "" {
			if err != nil || table.error.Largest <= 0 || table.error.Largest > max(table.error.Absolute, table.error.Relative*float64(c.x)) {
				t.Errorf("%g as %s: %v", c.x, c.dtype, err)
			}
		} else if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%g as %s: got %v, want %q", c.x, c.dtype, err, c.want)
		}
	}
}

func TestMostUsed(t *testing.T) {
	for _, c := range []struct {
		counts []uint32
		n      int
		want   []int32
	}{
		{nil, 3, []int32{}},
		{[]uint32{5, 4}, 0, []int32{}},
		{[]uint32{0, 1, 1}, 3, []int32{}},
		{[]uint32{2, 0, 9, 1, 2, 3}, 1, []int32{2}},
		{[]uint32{2, 0, 9, 1, 2, 3}, 3, []int32{0, 2, 5}},
		{[]uint32{2, 0, 9, 1, 2, 3}, 4, []int32{0, 2, 4, 5}},
		{[]uint32{2, 0, 9, 1, 2, 3}, 6, []int32{0, 2, 4, 5}},
		{slices.Repeat([]uint32{7}, 130), 129, nil},
	} {
		if c.want == nil {
			for v := range int32(c.n) {
				c.want = append(c.want, v)
			}
		}
		s := newNodeSet(mostUsed(c.counts, c.n))
		if !slices.Equal(s.nodes, c.want) {
			t.Errorf("%d of %v: %v, want %v", c.n, c.counts, s.nodes, c.want)
		}
		for v := range int32(len(c.counts)) {
			if want := int32(slices.Index(c.want, v)); s.place(v) != want {
				t.Errorf("%d of %v: place of %d is %d, want %d", c.n, c.counts, v, s.place(v), want)
			}
		}
	}
	if (*nodeSet)(nil).place(3) != -1 {
		t.Error("a set that isn't there has a node")
	}
}

func TestGroups(t *testing.T) {
	for _, c := range []struct{ perFile, group, numBatches, want int }{{5, 2, 13, 8}, {5, 5, 13, 3}, {4, 2, 8, 4}, {4, 3, 1, 1}, {4, 0, 9, 0}, {64, 64, 64, 1}} {
		p := &format.BatchParams{BatchesPerFile: c.perFile, Group: c.group}
		if got := numGroups(p, c.numBatches); got != c.want {
			t.Errorf("%d batches, %d a file, groups of %d: %d groups, want %d", c.numBatches, c.perFile, c.group, got, c.want)
		}
		at := 0
		for g := range c.want {
			first, last := groupBatches(p, g, c.numBatches)
			if first != at || last <= first {
				t.Errorf("group %d of %+v is %d to %d, want from %d", g, c, first, last, at)
			}
			for b := first; b < last; b++ {
				if batchGroup(p, b) != g {
					t.Errorf("batch %d of %+v is in group %d, want %d", b, c, batchGroup(p, b), g)
				}
			}
			at = last
		}
		if c.want > 0 && at != c.numBatches {
			t.Errorf("groups of %+v end at %d", c, at)
		}
	}
}

// TestVerifyFindsRowFaults damages the rows of a set whose files and manifest are sound by themselves.
func TestVerifyFindsRowFaults(t *testing.T) {
	t.Parallel()
	snap := randomGraph(80, 500).open(t)
	p, _, err := Resolve(context.Background(), snap, packed(func(p *format.BatchParams) { p.DType, p.HotRows, p.Group, p.BatchesPerFile = "int8", 0.1, 2, 2 }), Options{})
	if err != nil {
		t.Fatal(err)
	}
	const any = format.AnyLayer
	row := func(name, file string, record func(r *copied)) fault {
		return fault{name: name, file: file, record: record, want: format.ErrLayout}
	}
	manifest := func(name string, change func(m *format.BatchSet)) fault {
		return fault{name: name, manifest: change, want: format.ErrLayout}
	}
	rowByte := func(r *copied) { r.sections[r.find(format.TableRows, any, format.CoefNone)].Data[3] ^= 1 }
	faults := []fault{
		row("a hot row", format.SetHotFile, rowByte),
		row("a group row", format.RowsFile(0), rowByte),
		row("an own row", format.BatchFile(0), rowByte),
		row("the scale of a batch", format.BatchFile(0), func(r *copied) { r.set(format.TableScale, any, 0, 1, math.Float32bits(3)) }),
		row("the scale of hot rows", format.SetHotFile, func(r *copied) { r.set(format.TableScale, any, 0, 1, math.Float32bits(3)) }),
		row("a hot node", format.SetHotFile, func(r *copied) { r.set(format.NodesNumber, any, 0, 7, 79) }),
		row("a hot node twice", format.SetHotFile, func(r *copied) { r.set(format.NodesNumber, any, 0, 1, r.word(format.NodesNumber, any, 0, 0)) }),
		row("number of a group", format.RowsFile(1), func(r *copied) { r.Number++ }),
		row("the row of a node", format.BatchFile(0), func(r *copied) { r.swap(format.NodesRow, any, 0, 1) }),
		row("the table of a node", format.BatchFile(0), func(r *copied) {
			s := &r.sections[r.find(format.NodesTable, any, format.CoefNone)]
			s.Data[0] = 5 - s.Data[0]%4 - 1
		}),
		{name: "no rows by nodes.row", file: format.BatchFile(0), record: func(r *copied) { r.drop(format.NodesTable, any, format.CoefNone) }, want: format.ErrMissing},
		manifest("hot rows counted", func(m *format.BatchSet) { m.NumHotRows++ }),
		manifest("group rows counted", func(m *format.BatchSet) { m.NumGroupRows++ }),
		manifest("the bound", func(m *format.BatchSet) { m.RowError.Absolute *= 2 }),
		manifest("no bound", func(m *format.BatchSet) { m.RowError = nil }),
		manifest("a share over 1", func(m *format.BatchSet) { m.Params.HotRows = 2; m.SetKey, _ = m.Key() }),
		{name: "an unknown type", manifest: func(m *format.BatchSet) { m.Params.DType = "f8"; m.SetKey, _ = m.Key() }, want: format.ErrVersion},
		{name: "the largest change", manifest: func(m *format.BatchSet) { m.RowError.Largest /= 2 }, want: format.ErrLayout, against: true},
		{name: "all of a table", files: func(t *testing.T, dir string) {
			for _, name := range []string{format.SetFeaturesFile, format.SetHotFile, format.RowsFile(0), format.RowsFile(1), format.BatchFile(0), format.BatchFile(1)} {
				rewrite(t, filepath.Join(dir, name), nil, func(records []*copied) {
					for _, r := range records {
						b := r.sections[r.find(format.TableRows, any, format.CoefNone)].Data
						for i := range b {
							b[i] = byte(-int8(b[i]))
						}
					}
				})
			}
		}, file: format.SetHotFile, want: format.ErrLayout, against: true},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "set")
			m := write(t, dir, snap, p, Options{Threads: 2})
			if len(m.Files) < 9 || m.NumHotRows == 0 {
				t.Fatalf("%d files, %d hot rows", len(m.Files), m.NumHotRows)
			}
			f.apply(t, dir)
			err := Verify(dir)
			if f.against {
				if err != nil {
					t.Fatalf("found without the snapshot: %v", err)
				}
				err = VerifyAgainst(dir, snap)
			}
			if !errors.Is(err, f.want) {
				t.Errorf("got %v, want %v", err, f.want)
			}
		})
	}
}

// TestPackerParts: a node list in many ascending parts is written all the same.
func TestPackerParts(t *testing.T) {
	snap := randomGraph(3000, 100).open(t)
	_, plan, err := Resolve(context.Background(), snap, packed(func(p *format.BatchParams) { p.DType = "f16" }), Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := newAssembler(plan.source)
	var got, want [][]byte
	collect := func(to *[][]byte) func(r *record) error {
		return func(r *record) error {
			s := r.sections[len(r.sections)-1]
			data := s.Data
			if data == nil {
				var b strings.Builder
				if err := s.Write(&b); err != nil {
					return err
				}
				data = []byte(b.String())
			}
			*to = append(*to, slices.Clone(data))
			return nil
		}
	}
	pack := &packer{a: a, budgetBytes: 1 << 20, add: collect(&got)}
	for i := range 4 {
		r := a.batch(i)
		if i%2 == 1 { // descending
			nodes := make([]int32, 2*mostRuns)
			for k := range nodes {
				nodes[k] = int32(len(nodes) - k)
			}
			specs := a.rowsOf(nodes)
			a.ownNodes = nodes
			r.sections[len(r.sections)-1] = specs[len(specs)-1]
		}
		if err := collect(&want)(r); err != nil {
			t.Fatal(err)
		}
		if err := pack.put(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := pack.flush(); err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%d batches, or other rows", len(got))
	}
}

// BenchmarkPack writes packed f16 batches of 1,024 seeds of an R-MAT graph of 262,144 nodes and 6.2 M lines with 100 features, row by row and in the order
// of the table, one after the other in each round.
func BenchmarkPack(b *testing.B) {
	snap := skewed(18, 6_200_000).open(b)
	for _, dtype := range []string{"f32", "f16", "int8"} {
		for _, byRow := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/rowByRow=%v", dtype, byRow), func(b *testing.B) {
				p, plan, err := Resolve(context.Background(), snap, params(func(p *format.BatchParams) {
					p.Fanout, p.Variants, p.Eval, p.Store, p.Order, p.DType = []int{15, 10}, 1, None, StorePacked, sample.Random, dtype
				}), Options{})
				if err != nil {
					b.Fatal(err)
				}
				var m *format.BatchSet
				for i := 0; b.Loop(); i++ {
					m = write(b, filepath.Join(b.TempDir(), fmt.Sprint(i)), snap, p, Options{Threads: 2, Plan: plan, rowByRow: byRow})
				}
				b.ReportMetric(float64(m.Bytes)*float64(b.N)/b.Elapsed().Seconds()/1e6, "MB/s")
			})
		}
	}
}

// BenchmarkGatherRows brings the rows of all batches of a variant of the graph of BenchmarkPack, without files: row by row, and in one walk
// through the table, in turn.
func BenchmarkGatherRows(b *testing.B) {
	snap := skewed(18, 6_200_000).open(b)
	for _, dtype := range []string{"f32", "f16", "int8"} {
		_, plan, err := Resolve(context.Background(), snap, params(func(p *format.BatchParams) {
			p.Fanout, p.Variants, p.Eval, p.Store, p.Order, p.DType = []int{15, 10}, 1, None, StorePacked, sample.Random, dtype
		}), Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(dtype, func(b *testing.B) {
			a := newAssembler(plan.source)
			defer a.release()
			var byRow, inOrder time.Duration
			for b.Loop() {
				p := &packer{a: a, budgetBytes: 1 << 40, add: func(*record) error { return nil }}
				for number := range plan.NumBatches {
					r := a.batch(number)
					start := time.Now()
					if err := r.sections[len(r.sections)-1].Write(io.Discard); err != nil {
						b.Fatal(err)
					}
					byRow += time.Since(start)
					if err := p.put(r); err != nil {
						b.Fatal(err)
					}
				}
				start := time.Now()
				if err := p.flush(); err != nil {
					b.Fatal(err)
				}
				inOrder += time.Since(start)
			}
			rows := float64(plan.NumRows) * float64(b.N)
			b.ReportMetric(rows/byRow.Seconds()/1e6, "Mrows/s-by-row")
			b.ReportMetric(rows/inOrder.Seconds()/1e6, "Mrows/s-in-order")
		})
	}
}
