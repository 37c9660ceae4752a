package ingest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot"
)

// world is an input and the parameters of its snapshot, as texts: the slow side of an update edits them, and builds all anew.
type world struct {
	rng    *rand.Rand
	params snapshot.Params

	ints, weighted, relational, declared bool
	features, labels, splits, types      bool
	labelCols                            int // several: multilabel
	task                                 snapshot.Task

	lines []worldLine
	rows  []worldRow  // of nodes that tables name
	held  []worldLine // a list of pairs for validation, beside the graph
}

type worldLine struct{ src, dst, weight, rel string }

// worldRow is what tables say of a node.
type worldRow struct {
	id, split, kind string
	labels          []string
	features        []string // nil: no row of features, undeclared only
}

func newWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 77))
	w := &world{rng: rng, ints: rng.IntN(2) == 0, weighted: rng.IntN(2) == 0, relational: rng.IntN(3) == 0, declared: rng.IntN(2) == 0}
	w.features, w.labels, w.splits, w.types = rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0, w.declared && rng.IntN(3) == 0
	w.params = snapshot.Params{
		Direction: snapshot.Undirected, Hops: rng.IntN(3), CompactBelow: 3, HubFrom: 6, ExpandLimit: 4, Hop2Cap: 9,
		FeatureNorm: []string{NormNone, NormRow}[rng.IntN(2)], MissingFeatures: MissingError, Updatable: true, MergeRelations: w.relational && rng.IntN(4) == 0,
	}
	if rng.IntN(2) == 0 {
		w.params.Direction = snapshot.Directed
	}
	if !w.declared || rng.IntN(2) == 0 {
		w.params.MissingFeatures = MissingZero
	}
	for _, word := range []string{snapshot.WithPageRank, snapshot.WithOrder} {
		if rng.IntN(2) == 0 {
			w.params.With = append(w.params.With, word)
		}
	}
	w.labelCols, w.task = 1, TaskAuto
	if w.labels && w.declared {
		switch rng.IntN(4) {
		case 0:
			w.labelCols = 3
		case 1:
			w.labelCols, w.task = 2, snapshot.TaskRegression
		}
	}
	if w.declared || w.hasTables() {
		for range 2 + rng.IntN(20) {
			w.newRow(w.newID())
		}
		if w.labels { // some node has a label
			for i := range w.rows[0].labels {
				w.rows[0].labels[i] = w.label(i)
			}
		}
		if w.features {
			w.rows[0].features = w.featureRow()
		}
	}
	for len(w.lines) == 0 {
		w.lines = w.drawLines(40)
	}
	if rng.IntN(4) == 0 {
		w.held = slices.DeleteFunc(w.drawLines(10), func(l worldLine) bool { return l.src == l.dst })
	}
	return w
}

func (w *world) hasTables() bool { return w.features || w.labels || w.splits }

func (w *world) newID() string {
	id := fmt.Sprint(w.rng.IntN(60) - 10)
	if !w.ints {
		id = []string{"n", "é", "0", "", "", "Z"}[w.rng.IntN(6)] + id
	}
	return id
}

func (w *world) label(col int) string {
	if w.labelCols > 1 && w.task != snapshot.TaskRegression {
		return fmt.Sprint(w.rng.IntN(2))
	}
	if w.task == snapshot.TaskRegression {
		return fmt.Sprint(w.rng.Float32())
	}
	return []string{"3", "20", "100", "b", "a"}[w.rng.IntN([]int{3, 5}[w.rng.IntN(2)])]
}

func (w *world) featureRow() []string {
	return []string{fmt.Sprint(w.rng.IntN(9)), fmt.Sprint(w.rng.Float32()), "-0.25"}
}

// newRow adds a row, unless there is one, and reports whether it did.
func (w *world) newRow(id string) bool {
	if slices.ContainsFunc(w.rows, func(r worldRow) bool { return r.id == id }) {
		return false
	}
	r := worldRow{id: id, split: []string{"", "train", "valid", "test"}[w.rng.IntN(4)], kind: []string{"", "p", "q", "r"}[w.rng.IntN(4)], labels: make([]string, w.labelCols)}
	if w.rng.IntN(3) > 0 {
		for i := range r.labels {
			r.labels[i] = w.label(i)
		}
	}
	if w.declared || w.rng.IntN(3) > 0 {
		r.features = w.featureRow()
	}
	w.rows = append(w.rows, r)
	return true
}

// drawLines draws up to n lines between nodes that may be there.
func (w *world) drawLines(n int) []worldLine {
	pick := func() string {
		switch {
		case w.declared || len(w.rows) > 0 && w.rng.IntN(2) == 0:
			return w.rows[w.rng.IntN(len(w.rows))].id
		case len(w.lines) > 0 && w.rng.IntN(2) == 0:
			return w.lines[w.rng.IntN(len(w.lines))].src
		}
		return w.newID()
	}
	var lines []worldLine
	for range w.rng.IntN(n + 1) {
		l := worldLine{pick(), pick(), []string{"0", "-0", "1", "0.1", "1e20", "3"}[w.rng.IntN(6)], []string{"likes", "knows", "is"}[w.rng.IntN(3)]}
		for range 1 + w.rng.IntN(2)*w.rng.IntN(4) {
			if lines = append(lines, l); w.rng.IntN(2) == 0 {
				l.src, l.dst = l.dst, l.src
			}
		}
	}
	return lines
}

// edgeText is an edge file.
func (w *world) edgeText(lines []worldLine) string {
	var s strings.Builder
	s.WriteString("src,dst")
	if w.weighted {
		s.WriteString(",weight")
	}
	if w.relational {
		s.WriteString(",rel")
	}
	for _, l := range lines {
		fmt.Fprintf(&s, "\n%s,%s", l.src, l.dst)
		if w.weighted {
			s.WriteString("," + l.weight)
		}
		if w.relational {
			s.WriteString("," + l.rel)
		}
	}
	return s.String() + "\n"
}

// nodeText is a node table of rows, with the columns that the world has.
func (w *world) nodeText(rows []worldRow) string {
	head := []string{"id"}
	if w.labels && w.labelCols == 1 {
		head = append(head, "label")
	}
	for i := range w.labelCols {
		if w.labels && w.labelCols > 1 {
			head = append(head, fmt.Sprint("y", i))
		}
	}
	if w.splits {
		head = append(head, "split")
	}
	if w.types {
		head = append(head, "kind")
	}
	if w.features {
		head = append(head, "f0", "f1", "f2")
	}
	text := strings.Join(head, ",") + "\n"
	for _, r := range rows {
		fields := []string{r.id}
		if w.labels {
			fields = append(fields, r.labels...)
		}
		if w.splits {
			fields = append(fields, r.split)
		}
		if w.types {
			fields = append(fields, r.kind)
		}
		if w.features {
			fields = append(fields, r.features...)
		}
		text += strings.Join(fields, ",") + "\n"
	}
	return text
}

// options are those of any reading of the world's files.
func (w *world) options() Options {
	o := Options{FeatureNorm: w.params.FeatureNorm, MissingFeatures: w.params.MissingFeatures, Directed: w.params.Direction == snapshot.Directed, Task: w.task, Threads: 1 + w.rng.IntN(3)}
	if w.labels && w.labelCols > 1 {
		o.LabelCol = []string{"", "", "y0,y1", "y0,y1,y2"}[w.labelCols]
	}
	if w.types {
		o.TypeCol = "kind"
	}
	if w.relational {
		o.RelCol = "rel"
	}
	return o
}

// full builds the world's snapshot from all of its files.
func (w *world) full(t *testing.T, dir string) error {
	t.Helper()
	o := w.options()
	w.rng.Shuffle(len(w.lines), func(i, j int) { w.lines[i], w.lines[j] = w.lines[j], w.lines[i] })
	o.Edges = []string{writeFile(t, "edges.csv", w.edgeText(w.lines))}
	if w.declared {
		o.Nodes = writeFile(t, "nodes.csv", w.nodeText(w.rows))
	} else {
		labels, splits, features := "node,label\n", "node,split\n", "node,f0,f1,f2\n"
		for _, r := range w.rows {
			labels += r.id + "," + r.labels[0] + "\n"
			splits += r.id + "," + r.split + "\n"
			if r.features != nil {
				features += r.id + "," + strings.Join(r.features, ",") + "\n"
			}
		}
		if w.labels {
			o.Labels = writeFile(t, "labels.csv", labels)
		}
		if w.splits {
			o.Splits = writeFile(t, "splits.csv", splits)
		}
		if w.features {
			o.Features = writeFile(t, "features.csv", features)
		}
	}
	if len(w.held) > 0 {
		o.HoldoutEdges, o.HoldoutApart = "valid="+writeFile(t, "valid.csv", w.edgeText(w.held)), true
	}
	tables, _, err := Read(t.Context(), o)
	if err != nil {
		return err
	}
	job, err := format.Begin(dir, snapshot.Kind, format.Digest{1})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = snapshot.Build(t.Context(), job, tables, w.params, snapshot.Options{Threads: 2})
	return err
}

// update edits the world, and makes the same of base by an update.
func (w *world) update(t *testing.T, base, dir string) (*snapshot.UpdateReport, error) {
	t.Helper()
	var removed, added []worldLine
	for range w.rng.IntN(8) {
		if len(w.lines) > 0 {
			l := w.lines[w.rng.IntN(len(w.lines))]
			if w.params.Direction == snapshot.Undirected && w.rng.IntN(2) == 0 {
				l.src, l.dst = l.dst, l.src
			}
			removed = append(removed, l)
		}
	}
	byRel := w.relational && !w.params.MergeRelations && w.rng.IntN(2) == 0
	kept := w.lines[:0:0]
	for _, l := range w.lines {
		gone := slices.ContainsFunc(removed, func(r worldLine) bool {
			same := r.src == l.src && r.dst == l.dst || w.params.Direction == snapshot.Undirected && r.src == l.dst && r.dst == l.src
			return same && (!byRel || r.rel == l.rel)
		})
		if !gone {
			kept = append(kept, l)
		}
	}
	old := len(w.rows)
	if w.declared || w.hasTables() {
		for range w.rng.IntN(3) {
			id := w.newID()
			isThere := slices.ContainsFunc(append(slices.Clone(w.lines), w.held...), func(l worldLine) bool { return l.src == id || l.dst == id })
			if w.declared || !isThere { // a row is for a new node
				w.newRow(id)
			}
		}
	}
	rows := w.rows[old:]
	if !w.declared { // of one table, with the columns that all of its rows have
		for i := range rows {
			if rows[i].features == nil {
				rows[i].features = w.featureRow()
			}
		}
	}
	added = w.drawLines(8)
	w.lines = append(kept, added...)

	o := w.options()
	if len(added) > 0 || w.rng.IntN(2) == 0 {
		o.Edges = []string{writeFile(t, "add.csv", w.edgeText(added))}
	}
	if len(rows) > 0 {
		o.Nodes = writeFile(t, "new.csv", w.nodeText(rows))
	}
	var remove []string
	if len(removed) > 0 {
		remover := *w
		remover.relational, remover.weighted = byRel, w.rng.IntN(2) == 0
		remove = []string{writeFile(t, "remove.csv", remover.edgeText(removed))}
	}
	var scratch *snapshot.Scratch
	if w.rng.IntN(3) == 0 { // rows on the disk
		scratch = snapshot.NewScratch(1<<9, t.TempDir())
		defer scratch.Close()
		o.ListOptions = scratch.ListOptions
	}
	s, err := snapshot.OpenBase(base, scratch)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o.SplitNames = s.Manifest.Splits
	if o.Task = s.Manifest.Task; o.Task == "" {
		o.Task = TaskAuto
	}
	change, _, err := ReadChange(t.Context(), o, remove)
	if err != nil {
		t.Fatal(err)
	}
	job, err := format.Begin(dir, snapshot.Kind, format.Digest{2})
	if err != nil {
		t.Fatal(err)
	}
	_, _, report, err := snapshot.Update(t.Context(), job, s, change, snapshot.Options{Threads: 1 + w.rng.IntN(3), Scratch: scratch})
	if err != nil {
		job.Abort(false)
	}
	return report, err
}

// filesOf returns the content of a directory's files.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}

// Updates, each upon the one before, give the files of full builds of the edited inputs, byte for byte, or are refused where the order of nodes
// would change or no node would be left.
func TestUpdateIsFullBuild(t *testing.T) {
	seeds := uint64(50)
	if testing.Short() {
		seeds = 12
	}
	var updates, refused, newNodes, goneNodes atomic.Int64
	for seed := range seeds {
		w := newWorld(seed)
		t.Run(fmt.Sprintf("seed %d ints %t weights %t rels %t declared %t features %t labels %t splits %t types %t %s", seed, w.ints, w.weighted, w.relational, w.declared, w.features, w.labels, w.splits, w.types, w.params.Direction), func(t *testing.T) {
			t.Parallel() // they wait for the disk most of the time
			root := t.TempDir()
			base := filepath.Join(root, "0")
			if err := w.full(t, base); err != nil {
				t.Fatal(err)
			}
			for round := 1; round <= 3; round++ {
				want, got := filepath.Join(root, fmt.Sprint("full", round)), filepath.Join(root, fmt.Sprint(round))
				report, err := w.update(t, base, got)
				fullErr := w.full(t, want)
				var fault *snapshot.ChangeError
				switch {
				case err == nil && fullErr == nil:
				case errors.As(err, &fault) && fullErr == nil && strings.Contains(fault.Msg, "order of nodes would change"):
					_, a, errA := snapshot.ReadManifest(base)
					_, b, errB := snapshot.ReadManifest(want)
					if errA != nil || errB != nil || a.Collation == b.Collation {
						t.Fatalf("round %d: %v, but the collation was %s and is %s", round, err, a.Collation, b.Collation)
					}
					base = want
					refused.Add(1)
					continue
				case errors.As(err, &fault) && fault.Msg == "no node would be left" && fullErr != nil:
					return
				default:
					t.Fatalf("round %d: the update says %v, the full build %v", round, err, fullErr)
				}
				a, b := filesOf(t, got), filesOf(t, want)
				for name := range b {
					if a[name] != b[name] {
						t.Errorf("round %d: %s differs", round, name)
					}
				}
				if len(a) != len(b) || t.Failed() {
					at := 0
					for ; at < min(len(a["manifest.json"]), len(b["manifest.json"])) && a["manifest.json"][at] == b["manifest.json"][at]; at++ {
					}
					t.Fatalf("round %d: %d files, want %d; manifests differ from byte %d: ...%.100s", round, len(a), len(b), at, a["manifest.json"][max(0, at-60):])
				}
				if round == 3 {
					if err := snapshot.Verify(got, 2); err != nil {
						t.Error(err)
					}
				}
				base = got
				updates.Add(1)
				newNodes.Add(report.NewNodes)
				goneNodes.Add(report.GoneNodes)
			}
		})
	}
	t.Cleanup(func() { // when all of them are done
		t.Logf("%d updates, %d refused for their order, %d nodes came and %d went", updates.Load(), refused.Load(), newNodes.Load(), goneNodes.Load())
		if updates.Load() < int64(2*seeds) || newNodes.Load() < int64(seeds) || goneNodes.Load() < int64(seeds)/2 {
			t.Errorf("too little happened in %d sequences", seeds)
		}
	})
}

// What can't be done as a change, and what is said of it.
func TestUpdateRefuses(t *testing.T) {
	type inputs struct{ edges, nodes, features, labels string }
	type files struct{ add, remove, nodes string }
	plain := inputs{edges: "src,dst\na,b\nb,c\n1,2\n"}
	ints := inputs{edges: "src,dst\n1,2\n2,30\n"}
	declared := inputs{edges: "src,dst\na,b\n", nodes: "id,label,f0\na,x,1\nb,y,2\n"}
	for _, c := range []struct {
		name    string
		base    inputs
		change  files
		options func(o *Options)
		params  func(p *snapshot.Params)
		want    string // "" for none
	}{
		{name: "an edge of an unknown id", base: plain, change: files{remove: "src,dst\na,b\na,zed\n"}, want: `removed edges|a|zed|edge "a", "zed" is not in the base (--ignore-missing passes over such edges)`},
		{name: "an edge that isn't there", base: plain, change: files{remove: "src,dst\nc,a\n"}, want: `removed edges|c|a|edge "c", "a" is not in the base`},
		{name: "an arc the other way round", base: plain, change: files{remove: "src,dst\nb,a\n"}, options: func(o *Options) { o.Directed = true }, want: `"b", "a" is not in the base`},
		{name: "the same, undirected", base: plain, change: files{remove: "src,dst\nb,a\n"}},
		{name: "an edge of another relation", base: inputs{edges: "src,dst,rel\na,b,r\nb,c,s\n"}, change: files{remove: "src,dst,rel\na,b,s\n"}, options: func(o *Options) { o.RelCol = "rel" }, want: `"a", "b" of the relation "s" is not in the base`},
		{name: "of an unknown relation", base: inputs{edges: "src,dst,rel\na,b,r\nb,c,s\n"}, change: files{remove: "src,dst,rel\na,b,t\n"}, options: func(o *Options) { o.RelCol = "rel" }, want: `of the relation "t" is not`},
		{name: "a relation where they were merged", base: inputs{edges: "src,dst,rel\na,b,r\na,b,s\nb,c,s\n"}, change: files{remove: "src,dst,rel\na,b,s\n"}, options: func(o *Options) { o.RelCol = "rel" },
			params: func(p *snapshot.Params) { p.MergeRelations = true }, want: "removed edges|||they have relations, those of the base were merged: it can't tell the lines of a pair apart (leave --rel-col out"},
		{name: "pairs where they were merged", base: inputs{edges: "src,dst,rel\na,b,r\na,b,s\nb,c,s\n"}, change: files{remove: "src,dst\na,b\n"}, options: func(o *Options) { o.RelCol = "rel" },
			params: func(p *snapshot.Params) { p.MergeRelations = true }},
		{name: "an id that is no integer to integers", base: ints, change: files{add: "src,dst\n1,a\n"}, want: `added edges|a||"a" is an id that isn't ordered as an integer`},
		{name: "a row's", base: inputs{edges: "src,dst\n1,2\n", nodes: "id\n1\n2\n"}, change: files{nodes: "id\n03\n"}, want: `nodes|03||"03" is an id that isn't`},
		{name: "text where integers were", base: ints, change: files{add: "src,dst\n1,4\n"}, options: func(o *Options) { o.IDType = IDString }, want: `"4" is an id that isn't`},
		{name: "integers left only", base: plain, change: files{remove: "src,dst\na,b\nb,c\n"}, want: "only ids that are integers would be left"},
		{name: "the same, with text added", base: plain, change: files{remove: "src,dst\na,b\nb,c\n", add: "src,dst\n1,d\n"}},
		{name: "nothing left", base: plain, change: files{remove: "src,dst\na,b\nb,c\n1,2\n"}, want: "no node would be left"},
		{name: "the first node goes", base: ints, change: files{remove: "src,dst\n1,2\n"}},
		{name: "an id without a row", base: declared, change: files{add: "src,dst\na,c\n"}, want: `added edges|c||"c" is not a node of the base, nor of --nodes`},
		{name: "a row of a node that is there", base: declared, change: files{nodes: "id,label,f0\nb,x,1\n"}, want: `nodes|b||"b" is a node of the base already`},
		{name: "a row where there are no tables", base: plain, change: files{nodes: "id\nd\n"}, want: `nodes|d||"d" has a row, but the base has no tables`},
		{name: "a row without features", base: declared, change: files{nodes: "id,label\nc,x\n"}, want: `nodes|c||"c" has no feature row`},
		{name: "more features", base: declared, change: files{nodes: "id,f0,f1\nc,1,2\n"}, want: "nodes|||2 feature columns, the base has 1"},
		{name: "features where there are none", base: inputs{edges: "src,dst\na,b\n", nodes: "id\na\nb\n"}, change: files{nodes: "id,f0\nc,1\n"}, want: "1 feature columns, the base has 0"},
		{name: "labels where there are none", base: inputs{edges: "src,dst\na,b\n", nodes: "id\na\nb\n"}, change: files{nodes: "id,label\nc,x\n"}, want: "there are labels, the base has none"},
		{name: "splits where there are none", base: declared, change: files{nodes: "id,f0,split\nc,1,train\n"}, want: `the splits are ["split"], the base's []`},
		{name: "types where there are none", base: declared, change: files{nodes: "id,f0,t\nc,1,x\n"}, options: func(o *Options) { o.TypeCol = "t" }, want: "there are node types, the base has none"},
		{name: "weights where there are none", base: plain, change: files{add: "src,dst,weight\na,c,1\n"}, want: "added edges|||they have weights, the base has none"},
		{name: "no weights where there are", base: inputs{edges: "src,dst,weight\na,b,1\n"}, change: files{add: "src,dst\na,c\n"}, want: "they have no weights, the base has them"},
		{name: "no relations where there are", base: inputs{edges: "src,dst,rel\na,b,r\n"}, change: files{add: "src,dst\na,c\n"}, options: func(o *Options) { o.RelCol = "rel" }, want: "they have no relations, the base has them"},
		{name: "a third class", base: declared, change: files{nodes: "id,label,f0\nc,z,1\n"}, options: func(o *Options) { o.Task = snapshot.TaskBinary }, want: "needs two classes, with the base's there are 3"},
		{name: "a class of two", base: declared, change: files{nodes: "id,label,f0\nc,x,1\n"}, options: func(o *Options) { o.Task = snapshot.TaskBinary }},
		{name: "new nodes with standard features", base: declared, change: files{nodes: "id,label,f0\nc,x,1\n"}, options: func(o *Options) { o.FeatureNorm = NormStandard }, want: "--feature-norm standard"},
		{name: "new edges with standard features", base: declared, change: files{add: "src,dst\na,a\n"}, options: func(o *Options) { o.FeatureNorm = NormStandard }},
		{name: "a base that remembers nothing", base: plain, change: files{add: "src,dst\na,c\n"}, params: func(p *snapshot.Params) { p.Updatable = false }, want: "built with --updatable=false"},
		{name: "a base with pairs held out", base: plain, change: files{add: "src,dst\na,c\n"}, params: func(p *snapshot.Params) {
			p.Holdout = &snapshot.HoldoutParams{Kind: snapshot.HoldoutHash, Valid: 0.5}
		}, want: "pairs are held out"},
		{name: "a sum over the range", base: inputs{edges: "src,dst,weight\na,b,3e38\n"}, change: files{add: "src,dst,weight\nb,a,3e38\n"}, want: `edge "a", "b": sum of merged weights`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := Options{Edges: []string{writeFile(t, "edges.csv", c.base.edges)}}
			if c.base.nodes != "" {
				o.Nodes = writeFile(t, "base.csv", c.base.nodes)
			}
			if c.options != nil {
				c.options(&o)
			}
			change := o
			if change.IDType == IDString {
				o.IDType = ""
			}
			if o.TypeCol == "t" {
				o.TypeCol = ""
			}
			p := snapshot.Params{Direction: snapshot.Undirected, FeatureNorm: NormNone, MissingFeatures: MissingError, Updatable: true}
			if o.FeatureNorm != "" {
				p.FeatureNorm = o.FeatureNorm
			}
			if o.Directed {
				p.Direction = snapshot.Directed
			}
			if c.params != nil {
				c.params(&p)
			}
			tables, _ := mustRead(t, o)
			base := filepath.Join(t.TempDir(), "base")
			job, err := format.Begin(base, snapshot.Kind, format.Digest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := snapshot.Build(t.Context(), job, tables, p, snapshot.Options{Threads: 1}); err != nil {
				t.Fatal(err)
			}
			s, err := snapshot.OpenBase(base, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			change.Edges, change.Nodes, change.SplitNames = nil, "", s.Manifest.Splits
			if change.Task = s.Manifest.Task; change.Task == "" {
				change.Task = TaskAuto
			}
			if c.change.add != "" {
				change.Edges = []string{writeFile(t, "add.csv", c.change.add)}
				if strings.Count(c.change.add, ",") == 2 {
					change.RelCol = ""
				}
			}
			if c.change.nodes != "" {
				change.Nodes = writeFile(t, "nodes.csv", c.change.nodes)
			}
			var remove []string
			if c.change.remove != "" {
				remove = []string{writeFile(t, "remove.csv", c.change.remove)}
			}
			read, _, err := ReadChange(t.Context(), change, remove)
			if err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(t.TempDir(), "out")
			if job, err = format.Begin(out, snapshot.Kind, format.Digest{}); err != nil {
				t.Fatal(err)
			}
			_, _, report, err := snapshot.Update(t.Context(), job, s, read, snapshot.Options{Threads: 2})
			job.Abort(false)
			if c.want == "" {
				if err != nil || report.NumMissing != 0 {
					t.Errorf("report %+v, error %v", report, err)
				}
				return
			}
			var fault *snapshot.ChangeError
			text := fmt.Sprint(err)
			if errors.As(err, &fault) {
				text = fmt.Sprintf("%s|%s|%s|%v", fault.Role, fault.Src, fault.Dst, fault)
			}
			if !strings.Contains(text, c.want) {
				t.Errorf("error %s, want %s", text, c.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("there is an artefact all the same")
			}
			if fault != nil && fault.Role == snapshot.RemovedEdges && fault.Dst != "" { // and may be passed over
				again, _, err := ReadChange(t.Context(), change, remove)
				if err != nil {
					t.Fatal(err)
				}
				again.IgnoreMissing = true
				if job, err = format.Begin(out, snapshot.Kind, format.Digest{}); err != nil {
					t.Fatal(err)
				}
				_, _, report, err := snapshot.Update(t.Context(), job, s, again, snapshot.Options{Threads: 2})
				if err != nil || report.NumMissing != 1 || report.FirstMissing != fmt.Sprintf("%q, %q", fault.Src, fault.Dst) {
					t.Errorf("report %+v, error %v", report, err)
				}
			}
		})
	}
}

// A base that is cut short while it is read is an error, not a signal.
func TestUpdateOfTruncatedBase(t *testing.T) {
	text := "id,f0\n"
	for v := range 3000 {
		text += fmt.Sprintf("n%04d,%d\n", v, v)
	}
	nodes := writeFile(t, "nodes.csv", text)
	edges := "src,dst\n"
	for v := range 2999 {
		edges += fmt.Sprintf("n%04d,n%04d\n", v, (v*7)%2999)
	}
	tables, _ := mustRead(t, Options{Edges: []string{writeFile(t, "edges.csv", edges)}, Nodes: nodes})
	base := filepath.Join(t.TempDir(), "base")
	job, err := format.Begin(base, snapshot.Kind, format.Digest{})
	if err != nil {
		t.Fatal(err)
	}
	p := snapshot.Params{Direction: snapshot.Undirected, FeatureNorm: NormNone, MissingFeatures: MissingError, Updatable: true}
	if _, _, err := snapshot.Build(t.Context(), job, tables, p, snapshot.Options{}); err != nil {
		t.Fatal(err)
	}
	add := Options{Edges: []string{writeFile(t, "add.csv", "n0000,x\n")}, Nodes: writeFile(t, "new.csv", "id,f0\nx,1\n")}
	for _, name := range []string{snapshot.TopologyFile, snapshot.IDsFile, snapshot.FeaturesFile} {
		dir := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
			t.Fatal(err)
		}
		s, err := snapshot.OpenBase(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		change, _, err := ReadChange(t.Context(), add, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, name), 4096); err != nil {
			t.Fatal(err)
		}
		if job, err = format.Begin(filepath.Join(t.TempDir(), "out"), snapshot.Kind, format.Digest{}); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := snapshot.Update(t.Context(), job, s, change, snapshot.Options{Threads: 3}); !errors.Is(err, format.ErrTruncated) {
			t.Errorf("%s: error %v, want one of class truncated", name, err)
		}
		job.Abort(false)
	}
}

// A list of edges to remove whose relations aren't read would remove those of all relations.
func TestUnsaidRelation(t *testing.T) {
	for _, c := range []struct {
		name, text string
		opt        Options
		want       string // "" for none
	}{
		{"unsaid", "src,dst,Rel\na,b,r\n", Options{BaseRelations: true}, `remove.csv:1: the column "Rel" isn't read: edges of all relations would be removed (--rel-col Rel reads it`},
		{"said", "src,dst,rel\na,b,r\n", Options{BaseRelations: true, RelCol: "rel"}, ""},
		{"none in the list", "src,dst\na,b\n", Options{BaseRelations: true}, ""},
		{"none in the base", "src,dst,rel\na,b,r\n", Options{}, ""},
	} {
		_, _, err := ReadChange(t.Context(), c.opt, []string{writeFile(t, "remove.csv", c.text)})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
