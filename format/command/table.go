package command

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Table writes lines of a name and a value in two columns.
type Table struct{ w *tabwriter.Writer }

// NewTable makes a Table on w; nothing is written before Flush.
func NewTable(w io.Writer) Table { return Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// Row adds a line.
func (t Table) Row(name string, value any) { fmt.Fprintf(t.w, "%s\t%v\n", name, value) }

// Flush writes the lines.
func (t Table) Flush() { t.w.Flush() }

// Bytes gives a number of bytes with a unit of powers of 1024 and four digits: 1.5 MiB.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	x, u := float64(n), 0
	for x >= 1024 && u < len(units)-1 {
		x, u = x/1024, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.4g %s", x, units[u])
}
