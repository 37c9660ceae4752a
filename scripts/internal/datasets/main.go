package datasets

import (
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"

	"github.com/prelift/prelift/format/command"
	"github.com/spf13/cobra"
)

// Main runs the command line `datasets list` and `datasets NAME [DIR]` and returns the exit code (package command has
// the table).
func Main(args []string, in io.Reader, out, err io.Writer) int { return run(args, in, out, err, nil) }

// defaultDir is where sets go without a DIR.
const defaultDir = "data"

func run(args []string, in io.Reader, out, err io.Writer, client *http.Client) int {
	env := &command.Env{In: in, Out: out, Err: err}
	root := &cobra.Command{
		Use:   "datasets NAME [DIR]",
		Short: "Download a public data set for precompute",
		Long: "datasets downloads a public data set into DIR/NAME (DIR is data where it isn't given), checks size and SHA-256, and lays it out so that " +
			"precompute snapshot reads it. Run again it checks what is there. `datasets list` shows the names.",
		Example: "  scripts/datasets list\n  scripts/datasets cora\n  scripts/datasets ogbn-arxiv /data",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return command.Usage("want a NAME and perhaps a DIR, or list; got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			set, err := Find(args[0])
			if err != nil {
				return command.Usage("%v", err)
			}
			dir := defaultDir
			if len(args) == 2 {
				dir = args[1]
			}
			r, err := Fetch(c.Context(), set, dir, Options{Client: client, Progress: env.Progress.Step})
			if err != nil {
				return err
			}
			return env.Result(r, func(w io.Writer) { r.text(w) })
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(&cobra.Command{
		Use: "list", Short: "Show the names, sizes, licences, and the command that reads each", Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return env.Result(listing(), func(w io.Writer) { listText(w) })
		},
	})
	return command.Main(root, env, args)
}

func (r *Result) text(w io.Writer) {
	firstUse := 0
	for _, f := range r.Files {
		how := "as pinned"
		switch {
		case f.Checked == checkedFirstUse && r.UpToDate:
			how = "as recorded at first use"
		case f.Checked == checkedFirstUse:
			how = "first use"
			firstUse++
		}
		if !r.UpToDate {
			fmt.Fprintf(w, "%s: %d bytes, SHA-256 %s (%s)\n", f.URL, f.SizeBytes, f.SHA256, how)
		}
	}
	if firstUse > 0 {
		fmt.Fprintf(w, "no digest is known for %d of these files: what came was trusted, and its digest is recorded in %s; later downloads must match it\n", firstUse, r.LockFile)
	}
	if r.UpToDate {
		fmt.Fprintf(w, "%s: up to date; every file is what %s records\n", r.Dir, r.LockFile)
	} else {
		fmt.Fprintf(w, "%s: complete\n", r.Dir)
	}
	fmt.Fprintf(w, "next: %s\n", command.ShellLine(r.Read))
}

// listed is a set as `list --json` prints it.
type listed struct {
	Name      string   `json:"name"`
	What      string   `json:"what"`
	SizeBytes int64    `json:"size_bytes"` // of what is downloaded; 0 = not known
	Licence   string   `json:"licence"`
	Source    string   `json:"source"`
	Digests   string   `json:"digests"`
	Read      []string `json:"read"`
}

func listing() map[string][]listed {
	var list []listed
	for _, s := range Sets() {
		list = append(list, listed{s.Name, s.What, s.sizeBytes(), s.Licence, s.Source, s.digests(),
			append([]string{"bin/precompute", "snapshot"}, append(s.Read(defaultDir+"/"+s.Name), "--out", "snapshot")...)})
	}
	return map[string][]listed{"sets": list}
}

// sizeBytes adds up the downloads, 0 where a size isn't known.
func (s *Set) sizeBytes() (total int64) {
	for _, f := range s.Files {
		if f.SizeBytes == 0 {
			return 0
		}
		total += f.SizeBytes
	}
	return total
}

// digests says how the digests of a set are known, in the weakest of its ways.
func (s *Set) digests() string {
	how := string(Measured)
	for _, f := range s.Files {
		switch {
		case f.SHA256 == "":
			return checkedFirstUse
		case f.Known == Published:
			how = string(Published)
		}
	}
	return how
}

func listText(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tDOWNLOAD\tDIGESTS\tWHAT\tLICENCE\tSOURCE")
	for _, s := range listing()["sets"] {
		size := "not known"
		if s.SizeBytes > 0 {
			size = command.Bytes(s.SizeBytes)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, size, s.Digests, s.What, s.Licence, s.Source)
	}
	t.Flush()
	fmt.Fprintln(w, "\nDigests: measured on copies of the same files, published by other projects for the same address, or recorded at the first use.")
	fmt.Fprintln(w, "\nTo read one after its download:")
	for _, s := range listing()["sets"] {
		fmt.Fprintf(w, "  %s\n", command.ShellLine(s.Read))
	}
}
