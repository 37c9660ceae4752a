package ingest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/snapshot"
)

// dataDir is the real data: PRELIFT_DATA, or shared/data beside the repository.
func dataDir(t testing.TB) string {
	dir := os.Getenv("PRELIFT_DATA")
	if dir == "" {
		dir = "../../../../shared/data"
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no data at %s (set PRELIFT_DATA)", dir)
	}
	return dir
}

type counts struct {
	Nodes       int   `json:"nodes"`
	Pairs       int   `json:"unique_undirected_pairs"`
	Classes     int   `json:"classes"`
	ClassCounts []int `json:"class_counts"`
	Features    int   `json:"features"`
	NonZeros    int   `json:"feature_nonzeros"`
	Train       int   `json:"train"`
	Val         int   `json:"val"`
	Test        int   `json:"test"`
	Labelled    int   `json:"labelled_nodes"`
}

// The tables under plain/ have the counts that were verified when they were made. edges names the edge file.
func TestRealData(t *testing.T) {
	dir := dataDir(t)
	for _, c := range []struct {
		name  string
		edges string
		opt   Options
	}{
		{name: "planetoid-cora"},
		{name: "planetoid-cora", edges: "edges_raw.csv"},
		{name: "planetoid-citeseer", opt: Options{MissingFeatures: MissingZero}}, // 15 nodes with edges only
		{name: "planetoid-pubmed", opt: Options{MissingFeatures: MissingZero}},
		{name: "amazon-photo"},
		{name: "minesweeper"},
		{name: "musae-chameleon", opt: Options{Task: snapshot.TaskRegression}},
		{name: "musae-twitch-engb"},
		{name: "polblogs"},
		{name: "texas", opt: Options{NumFeatures: 1703}}, // the last column is empty
		{name: "wisconsin"},
	} {
		t.Run(strings.TrimSuffix(c.name+"/"+c.edges, "/"), func(t *testing.T) {
			at := func(files ...string) string {
				for _, f := range files {
					if path := filepath.Join(dir, c.name, "plain", f); exists(path) {
						return path
					}
				}
				return ""
			}
			if at("edges.csv") == "" {
				t.Skip("not here")
			}
			var want counts
			text, err := os.ReadFile(at("counts.json"))
			if err == nil {
				err = json.Unmarshal(text, &want)
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.edges == "" {
				c.edges = "edges.csv"
			}
			opt := c.opt
			opt.Edges, opt.Features, opt.Labels, opt.Splits = []string{at(c.edges)}, at("features.npy", "features.csv", "features_partial.csv"), at("labels.csv", "targets.csv"), at("split.csv")
			got, report, err := Read(t.Context(), opt)
			if err != nil {
				t.Fatal(err)
			}
			if _, pairs := degrees(got); got.NumNodes() != want.Nodes || pairs-loops(got) != want.Pairs && pairs != want.Pairs {
				t.Errorf("%d nodes, %d pairs; want %d, %d", got.NumNodes(), pairs, want.Nodes, want.Pairs)
			}
			if want.Features > 0 {
				nonZeros := 0
				for _, v := range got.Features.Data {
					if v != 0 {
						nonZeros++
					}
				}
				if got.Features.NumCols != want.Features || nonZeros != want.NonZeros {
					t.Errorf("%d features, %d non-zeros; want %d, %d", got.Features.NumCols, nonZeros, want.Features, want.NonZeros)
				}
			}
			if want.Classes > 0 {
				classCounts := make([]int, len(got.Labels.ClassNames))
				labelled := 0
				for _, class := range got.Labels.Class {
					if class >= 0 {
						classCounts[class]++
						labelled++
					}
				}
				if !slices.Equal(classCounts, want.ClassCounts) || want.Labelled > 0 && labelled != want.Labelled {
					t.Errorf("classes %v, %d labelled; want %v, %d", classCounts, labelled, want.ClassCounts, want.Labelled)
				}
			}
			if want.Train > 0 {
				var parts [4]int
				for _, p := range got.Splits.Mask {
					parts[p]++
				}
				if parts[1] != want.Train || parts[2] != want.Val || parts[3] != want.Test || report.SplitUnlabelled != 0 {
					t.Errorf("parts %v; want %d, %d, %d", parts, want.Train, want.Val, want.Test)
				}
			}
		})
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func loops(t *snapshot.Tables) int {
	seen := map[int32]bool{}
	edges := edgesOf(t)
	for i, a := range edges.Src {
		if a == edges.Dst[i] {
			seen[a] = true
		}
	}
	return len(seen)
}

func TestRealDataMore(t *testing.T) {
	dir := dataDir(t)
	plain := func(name, file string) string { return filepath.Join(dir, name, "plain", file) }
	if file := plain("planetoid-pubmed", "features_partial.csv"); exists(file) {
		wantError(t, Options{Edges: []string{plain("planetoid-pubmed", "edges.csv")}, Features: file}, "features_partial.csv", 0,
			`18657 of 19717 nodes have no feature row, first "60", "61", "62", "63", "64"`, "--missing-features zero")
	}
	if file := plain("minesweeper", "splits10.csv"); exists(file) {
		tables, _ := mustRead(t, Options{Edges: []string{plain("minesweeper", "edges.csv")}, Splits: file})
		if len(tables.Splits.Names) != 10 || tables.Splits.Names[9] != "s9" || len(tables.Splits.Mask) != 100000 {
			t.Errorf("splits %v", tables.Splits.Names)
		}
	}
	if file := plain("email-eu-core", "email-Eu-core.txt"); exists(file) {
		tables, _ := mustRead(t, Options{Edges: []string{file}, Labels: plain("email-eu-core", "email-Eu-core-department-labels.txt")})
		if tables.NumNodes() != 1005 || len(edgesOf(tables).Src) != 25571 || len(tables.Labels.ClassNames) != 42 {
			t.Errorf("%d nodes, %d edges, %d classes", tables.NumNodes(), len(edgesOf(tables).Src), len(tables.Labels.ClassNames))
		}
	}
	if file := plain("planetoid-citeseer", "edges_raw.csv"); exists(file) {
		opt := Options{Edges: []string{file}, Features: plain("planetoid-citeseer", "features.csv"), Labels: plain("planetoid-citeseer", "labels.csv")}
		_, _, err := Read(t.Context(), opt)
		if err == nil || !strings.Contains(err.Error(), "have no feature row") {
			t.Errorf("got %v", err)
		}
		opt.MissingFeatures = MissingZero
		tables, report := mustRead(t, opt)
		if tables.NumNodes() != 3327 || report.MissingFeatures != 15 || report.Unlabelled != 15 {
			t.Errorf("%d nodes, %d missing, %d unlabelled", tables.NumNodes(), report.MissingFeatures, report.Unlabelled)
		}
	}
}
