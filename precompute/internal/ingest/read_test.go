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
	if !reflect.DeepEqual(got, want) {
		t.Errorf("tables differ:\ngot  %s\nwant %s", brief(got), brief(want))
	}
}

func brief(t *snapshot.Tables) string {
	text := ""
	for _, v := range []any{t.IDs, t.Edges, t.Features, t.Labels, t.Splits} {
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
