package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// counts.json of a knowledge graph says, by form of its files, what independent code counted.
type tripleCounts struct {
	Entities        float64 `json:"entities"`
	Relations       float64 `json:"relations"`
	Train           float64 `json:"train"`
	Valid           float64 `json:"valid"`
	Test            float64 `json:"test"`
	EntitiesInTrain float64 `json:"entities_in_train"`
	Repeats         float64 `json:"duplicate_train_rows"`
	TrainValid      float64 `json:"train_valid_overlap"`
	TrainTest       float64 `json:"train_test_overlap"`
}

func TestTriples(t *testing.T) {
	for _, c := range []struct{ set, form, dir, ending string }{
		{"kg-wn18rr", "OpenKE-ids", "OpenKE", "2id.txt"},
		{"kg-wn18rr", "ConvE-text", "", ".txt"},
		{"kg-umls", "", "pykeen", ".txt"},
		{"kg-nations", "", "pykeen", ".txt"},
		{"kg-codex-s", "", "", ".txt"},
	} {
		t.Run(c.set+" "+c.form, func(t *testing.T) {
			data := dataDir(t, c.set)
			of := func(part string) string { return filepath.Join(data, "original", c.dir, part+c.ending) }
			if _, err := os.Stat(of("train")); err != nil {
				t.Skip(err)
			}
			out := filepath.Join(t.TempDir(), "kg")
			ok(t, "precompute", "snapshot", "--triples", "train="+of("train")+",valid="+of("valid")+",test="+of("test"), "--hops", "1", "--out", out)
			ok(t, "precompute", "verify", out)
			d := object(t, "precompute", "inspect", out, "--json")
			want, found := countsOf(t, filepath.Join(data, "counts.json"), c.form)
			if !found {
				t.Logf("%v nodes, %v edges", d["num_nodes"], d["num_edges"])
				return
			}
			held := d["heldout"].(map[string]any)
			for name, pair := range map[string][2]any{
				"entities": {d["num_nodes"], want.Entities}, "relations": {d["num_rels"], want.Relations}, "training triples": {d["num_edges"], want.Train - want.Repeats},
				"repeats": {d["duplicates_merged"], want.Repeats}, "direction": {d["direction"], "directed"},
				"valid": {held["num_valid"], want.Valid}, "test": {held["num_test"], want.Test}, "unseen entities": {held["unseen_nodes"], want.Entities - want.EntitiesInTrain},
				"valid triples in train": {held["known_valid"], want.TrainValid}, "test triples in train": {held["known_test"], want.TrainTest},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
				}
			}
		})
	}
}

// countsOf reads the counts of one form of a set, or of the set where its forms have none of their own.
func countsOf(t *testing.T, path, form string) (c tripleCounts, found bool) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		return c, false
	}
	var forms map[string]json.RawMessage
	if err := json.Unmarshal(text, &forms); err != nil {
		t.Fatal(err)
	}
	if raw, ok := forms[form]; ok {
		text = raw
	} else if forms["entities"] == nil {
		for _, raw := range forms {
			text = raw // any: those of one set are alike
		}
	}
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c, c.Entities > 0
}

func TestTripleFlags(t *testing.T) {
	dir := t.TempDir()
	train := write(t, filepath.Join(dir, "train.tsv"), "ann\tlikes\tbob\nbob\tlikes\tann\nann\tknows\tbob\nann\tlikes\tbob\n")
	valid := write(t, filepath.Join(dir, "valid.tsv"), "bob\tlikes\tann\ncid\tlikes\tann\n")
	test := write(t, filepath.Join(dir, "test.tsv"), "ann\thates\tcid\n")
	out := filepath.Join(dir, "kg")
	r := ok(t, "precompute", "snapshot", "--triples", "train="+train+",valid="+valid+",test="+test, "--out", out)
	for _, want := range []string{"1 of 2 pairs for valid", "1 nodes and 1 relations"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("standard error lacks %q:\n%s", want, r.stderr)
		}
	}
	d := object(t, "precompute", "inspect", out, "--json")
	if d["num_nodes"] != 3.0 || d["num_rels"] != 3.0 || d["num_edges"] != 3.0 || d["duplicates_merged"] != 1.0 {
		t.Errorf("%v nodes, %v relations, %v edges, %v merged", d["num_nodes"], d["num_rels"], d["num_edges"], d["duplicates_merged"])
	}
	ok(t, "precompute", "verify", out)
	if again := object(t, "precompute", "snapshot", "--triples", "train="+train+",valid="+valid+",test="+test, "--out", out, "--json"); again["up_to_date"] != true {
		t.Error("unchanged triples are not up to date")
	}
	ok(t, "precompute", "snapshot", "--triples", train, "--direction", "undirected", "--out", filepath.Join(dir, "one"))
	refused(t, 2, []string{"--triples", "--edges"}, "precompute", "snapshot", "--triples", train, "--edges", train, "--out", out)
	refused(t, 2, []string{"no training triples"}, "precompute", "snapshot", "--triples", "valid="+valid, "--out", out)
	refused(t, 3, []string{"pair.tsv", "head, relation and tail"}, "precompute", "snapshot", "--triples", write(t, filepath.Join(dir, "pair.tsv"), "a\tb\n"), "--out", out)
}
