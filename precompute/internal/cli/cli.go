// Package cli is the command line of precompute: it reads flags, calls ingest, snapshot
// and batch, and prints what came of it.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/ingest"
	"github.com/spf13/cobra"
)

// Main runs precompute with the arguments after the program's name and returns the exit
// code (package command has the table).
func Main(args []string, in io.Reader, out, err io.Writer) int {
	env := &command.Env{In: in, Out: out, Err: err}
	root := &cobra.Command{
		Use:   "precompute",
		Short: "Move the topology of graph training out of the training loop",
		Long:  "precompute turns a raw graph into a hashed snapshot, and a snapshot into batch files that trainer-gnn maps.",
	}
	root.AddCommand(genCommand(env), snapshotCommand(env), batchesCommand(env), adviseCommand(env), inspectCommand(env), verifyCommand(env))
	return command.Main(root, env, args)
}

// threadsFlag adds --threads. The output never depends on it.
func threadsFlag(c *cobra.Command, threads *int) {
	c.Flags().IntVar(threads, "threads", 0, "threads to use, 0 for all cores; never changes the output")
}

// checkThreads replaces 0 by the number of cores.
func checkThreads(threads *int) error {
	if *threads < 0 || *threads > 4096 {
		return command.Usage("--threads %d is not in 0..4096", *threads)
	}
	if *threads == 0 {
		*threads = runtime.GOMAXPROCS(0)
	}
	return nil
}

// needFlag reports a flag that must be given.
func needFlag(name, value string) error {
	if value == "" {
		return command.Usage("--%s is needed", name)
	}
	return nil
}

// sizesText writes a table of files and their sections.
func sizesText(w io.Writer, files []format.FileSizes) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	total := int64(0)
	for _, f := range files {
		fmt.Fprintf(t, "%s\t%d\n", f.Name, f.SizeBytes)
		for _, s := range f.Sections {
			fmt.Fprintf(t, "  %s\t%d\n", s.Name, s.SizeBytes)
		}
		total += f.SizeBytes
	}
	fmt.Fprintf(t, "all files\t%d\n", total)
	t.Flush()
}

func baseNames(paths []string) []string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = filepath.Base(p)
	}
	return names
}

// namesText names files in a message, the first few of many.
func namesText(paths []string) string {
	const most = 4
	names := ingest.FileNames(paths)
	if len(names) > most {
		names = append(names[:most:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}

// pathless takes the path off an error that will be said with it.
func pathless(err error) error {
	var e *os.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
