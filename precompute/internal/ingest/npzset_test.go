package ingest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/snapshot"
)

// member is an array of a .npz: "name descr (shape)".
type member struct {
	head   string
	values any
}

// packNPZ writes a .npz.
func packNPZ(t *testing.T, members ...member) string {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, m := range members {
		parts := strings.SplitN(m.head, " ", 3)
		w, err := z.Create(parts[0] + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		w.Write(npyBytes(1, fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", parts[1], parts[2]), m.values))
	}
	z.Close()
	return writeFile(t, "g.npz", out.String())
}

func TestNPZSet(t *testing.T) {
	edges := member{"edges <i8 (3, 2)", []int64{0, 1, 1, 2, 2, 3}}
	labels := member{"node_labels <i8 (4,)", []int64{0, 1, 0, 1}}
	train := member{"train_masks |b1 (2, 4)", []uint8{1, 0, 0, 0, 0, 1, 0, 0}}
	val := member{"val_masks |b1 (2, 4)", []uint8{0, 1, 0, 0, 0, 0, 1, 0}}
	test := member{"test_masks |b1 (2, 4)", []uint8{0, 0, 1, 1, 1, 0, 0, 1}}
	const n, tr, va, te = snapshot.PartNone, snapshot.PartTrain, snapshot.PartValid, snapshot.PartTest
	for _, c := range []struct {
		name    string
		members []member
		splits  int
		want    []snapshot.Part // [nodes, splits]
		warning string
	}{
		{"two splits", []member{edges, labels, train, val, test}, 2, []snapshot.Part{tr, te, va, tr, te, va, te, te}, ""},
		{"without labels", []member{edges, train, val, test}, 2, []snapshot.Part{tr, te, va, tr, te, va, te, te}, ""},
		{"vectors under other names", []member{edges, labels, {"train_mask |b1 (4,)", []uint8{1, 0, 0, 0}}, {"val_mask |u1 (4,)", []uint8{0, 1, 0, 0}}, {"test_mask <i8 (4,)", []int64{0, 0, 1, 0}}},
			1, []snapshot.Part{tr, va, te, n}, ""},
		{"nodes first", []member{edges, labels, {"train_masks |b1 (4, 2)", []uint8{1, 0, 0, 1, 0, 0, 0, 0}}, {"val_masks |b1 (4, 2)", make([]uint8, 8)}, {"test_masks |b1 (4, 2)", make([]uint8, 8)}},
			2, []snapshot.Part{tr, n, n, tr, n, n, n, n}, ""},
		{"no valid part", []member{edges, labels, train, test}, 2, []snapshot.Part{tr, te, n, tr, te, n, te, te}, `g.npz: no member "val_masks"`},
		{"other members", []member{edges, labels, train, val, test, {"y <i8 (4,)", []int64{0, 0, 0, 0}}}, 2, []snapshot.Part{tr, te, va, tr, te, va, te, te}, `g.npz: member not used: "y" (known are edges,`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tables, report := mustRead(t, Options{Dataset: packNPZ(t, c.members...)})
			if tables.NumNodes() != 4 || len(tables.Splits.Names) != c.splits {
				t.Fatalf("got %d nodes, splits %q", tables.NumNodes(), tables.Splits.Names)
			}
			for i, want := range c.want {
				if got := snapshot.Part(tables.Splits.Mask[i]); got != want {
					t.Errorf("node %d, split %d: got %d, want %d", i/c.splits, i%c.splits, got, want)
				}
			}
			found := slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.HasPrefix(w, c.warning) })
			if c.warning == "" && len(report.Warnings) > 0 || c.warning != "" && !found {
				t.Errorf("got warnings %q, want %q", report.Warnings, c.warning)
			}
		})
	}
	features := member{"node_features <f4 (5, 1)", []float32{1, 2, 3, 4, 5}}
	for _, c := range []struct {
		name    string
		members []member
		want    string
	}{
		{"a mask of other nodes", []member{edges, labels, {"train_masks |b1 (2, 3)", make([]uint8, 6)}}, `member "train_masks" has the shape (2, 3) for 4 nodes (masks are`},
		{"a vector of other nodes", []member{edges, labels, {"train_mask |b1 (3,)", make([]uint8, 3)}}, `has the shape (3, 1) for 4 nodes`},
		{"other splits", []member{edges, labels, train, {"val_masks |b1 (4,)", make([]uint8, 4)}}, `member "val_masks" has 1 split, "train_masks" has 2`},
		{"node numbers as a mask", []member{edges, labels, {"train_mask <i8 (4,)", []int64{0, 1, 2, 3}}}, `member "train_mask", row 2, column 0 (from 0): 2 is neither 0 nor 1`},
		{"both names", []member{edges, labels, train, {"train_mask |b1 (4,)", make([]uint8, 4)}}, `has the members "train_masks" and "train_mask"`},
		{"two parts", []member{edges, labels, train, {"test_masks |b1 (2, 4)", []uint8{0, 0, 0, 0, 0, 1, 0, 0}}}, "node 1 is in two parts of split 1"},
		{"fewer labels than nodes", []member{edges, features, labels}, `member "node_labels" has 4 rows, "node_features" has 5`},
		{"a negative node", []member{{"edges <i8 (1, 2)", []int64{0, -1}}, labels}, `member "edges", row 0, column 1 (from 0): -1 is no number of a node`},
		{"a node over int64", []member{{"edges <u8 (1, 2)", []uint64{1 << 63, 0}}, labels}, `member "edges", row 0, column 0 (from 0): 9223372036854775808 is over`},
		{"a label over int64", []member{edges, {"node_labels <u8 (4,)", []uint64{0, 1, 1<<64 - 1, 0}}}, `18446744073709551615 is over`},
		{"twice", []member{edges, edges}, `has the member "edges" twice`},
		{"none", nil, "has no members"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, Options{Dataset: packNPZ(t, c.members...)}, "g.npz", 0, c.want)
		})
	}
}
