package e2e

import (
	"path/filepath"
	"testing"
)

// The cases of formats other than text tables, through the command line.

func TestCase14IDSpaces(t *testing.T) {
	dir := "14-neo4j-id-spaces"
	s := build(t, "--edges", casePath(dir, "acted.csv"), "--nodes", casePath(dir, "persons.csv")+","+casePath(dir, "movies.csv"))
	wantCounts(t, s, 4, 2)
	wantIDs(t, s, "Movie:1", "Movie:2", "Person:1", "Person:2")
	if len(s.ComponentSizes) != 2 {
		t.Errorf("%d components, want 2", len(s.ComponentSizes))
	}
}

func TestCase16GraphML(t *testing.T) {
	s := build(t, "--edges", casePath("16-graphml-defaults-order", "g.graphml"), "--direction", "directed", "--feature-cols", "active")
	wantCounts(t, s, 3, 2)
	wantIDs(t, s, "x", "y", "z")
	if want := []float32{0, 1, 0}; len(s.Features) != 3 || s.Features[0] != want[0] || s.Features[1] != want[1] || s.Features[2] != want[2] {
		t.Errorf("active is %v, want %v", s.Features, want)
	}
}

func TestCase18MatrixMarket(t *testing.T) {
	s := build(t, "--edges", casePath("18-mtx-symmetric-pattern", "g.mtx"))
	wantCounts(t, s, 4, 4)
	if len(s.In.Indices) != 7 || s.In.Weight != nil {
		t.Errorf("%d entries, weights %v, want 7 and none", len(s.In.Indices), s.In.Weight)
	}
	for _, c := range []struct {
		u, v string
		want float64
	}{{"1", "1", 0.5}, {"1", "2", 0.408248}, {"2", "2", 0.333333}, {"2", "3", 0.333333}, {"3", "3", 0.333333}, {"3", "4", 0.408248}, {"4", "4", 0.5}} {
		wantNear(t, c.u+"->"+c.v, gcn(t, s, c.u, c.v), c.want, 1e-6)
	}
}

func TestCase22Parquet(t *testing.T) {
	dir := "22-parquet-nulls-types"
	noSnapshot(t, []string{"edges_null.parquet", "row 2", `"dst"`, "null id"}, "--edges", casePath(dir, "edges_null.parquet"))
	noSnapshot(t, []string{"edges_ok.parquet", "row 2", `"weight"`}, "--edges", casePath(dir, "edges_ok.parquet"))
	nodes := casePath(dir, "nodes_i32.parquet")
	s := build(t, "--edges", casePath(dir, "edges_ok.parquet"), "--nodes", nodes, "--weight-col", "none")
	wantCounts(t, s, 3, 3)
	wantIDs(t, s, "0", "2", "3")
	for _, id := range []string{"0", "2", "3"} {
		wantNear(t, id, gcn(t, s, id, id), 1.0/3, 1e-6)
	}
	if s.Class[0] != 0 || s.Class[1] != -1 || s.Class[2] != 1 || len(s.ClassNames) != 2 {
		t.Errorf("classes %v of %q", s.Class, s.ClassNames)
	}
	noSnapshot(t, []string{"edges_str.parquet", "row 3", `"03"`}, "--edges", casePath(dir, "edges_str.parquet"), "--nodes", nodes)
}

func TestPlanetoidOriginals(t *testing.T) {
	for name, want := range map[string][3]int{"cora": {2708, 5278, 1433}, "citeseer": {3327, 4676, 3703}} {
		s := build(t, "--dataset", filepath.Join(dataDir(t, "planetoid-"+name), "original"))
		wantCounts(t, s, want[0], want[1])
		if s.NumFeatures() != want[2] {
			t.Errorf("%s: %d features, want %d", name, s.NumFeatures(), want[2])
		}
	}
	noSnapshot(t, []string{"ind.pubmed.allx"}, "--dataset", filepath.Join(dataDir(t, "planetoid-pubmed"), "original"))
}
