package ingest

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/prelift/prelift/snapshot"
)

func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func sameTables(t testing.TB, got, want *snapshot.Tables) {
	t.Helper()
	a, b := *got, *want
	a.Edges, b.Edges = nil, nil
	if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(edgesOf(got), edgesOf(want)) {
		t.Errorf("tables differ:\ngot  %s\nwant %s", brief(got), brief(want))
	}
}

func brief(t *snapshot.Tables) string {
	text := ""
	for _, v := range []any{t.IDs, edgesOf(t), t.Features, t.Labels, t.Splits} {
		s := sprintDeep(v)
		text += s[:min(len(s), 300)] + " | "
	}
	return text
}

func sprintDeep(v any) string {
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer {
		if r.IsNil() {
			return "nil"
		}
		v = r.Elem().Interface()
	}
	return fmt.Sprintf("%+v", v)
}

func contains(s, part string) bool { return strings.Contains(s, part) }

// edgeSlices is an edge list in the order of the input.
type edgeSlices struct {
	Src, Dst []int32
	Weight   []float32
	Rel      []int32
}

func edgesOf(tables *snapshot.Tables) edgeSlices {
	var e edgeSlices
	tables.Edges.Each(func(src, dst int32, weight float32, rel int32) error {
		e.Src, e.Dst = append(e.Src, src), append(e.Dst, dst)
		if tables.Edges.Weighted() {
			e.Weight = append(e.Weight, weight)
		}
		if tables.Edges.Relational() {
			e.Rel = append(e.Rel, rel)
		}
		return nil
	})
	return e
}
