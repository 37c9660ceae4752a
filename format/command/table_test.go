package command

import (
	"bytes"
	"testing"
)

func TestTable(t *testing.T) {
	var out bytes.Buffer
	table := NewTable(&out)
	table.Row("nodes", 12)
	table.Row("longest name", "x y")
	table.Flush()
	if got, want := out.String(), "nodes         12\nlongest name  x y\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1 << 20: "1 MiB", 1<<30 - 1: "1024 MiB", 1 << 30: "1 GiB", 1 << 50: "1024 TiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
