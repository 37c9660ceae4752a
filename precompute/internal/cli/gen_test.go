package cli

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// A block model has the default of classes, or as many as it has nodes; classes that were asked for aren't changed.
func TestGenClasses(t *testing.T) {
	for _, c := range []struct {
		args string
		want int
	}{
		{"--nodes 1 --edges 0", 0}, {"--nodes 3 --edges 2", 0}, {"--nodes 3 --edges 2 --classes 3", 0}, {"--nodes 3 --edges 2 --classes 8", 2}, {"--nodes 0 --edges 0", 2},
	} {
		args := append([]string{"gen", "--out", filepath.Join(t.TempDir(), "g")}, strings.Fields(c.args)...)
		if got := Main(args, strings.NewReader(""), io.Discard, io.Discard); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.args, got, c.want)
		}
	}
}
