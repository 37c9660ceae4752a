package main

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/command"
)

// Main runs trainer-gnn with the arguments after the program's name and returns the exit
// code (package command has the table).
func Main(args []string, in io.Reader, out, err io.Writer) int {
	env := &command.Env{In: in, Out: out, Err: err}
	root := &cobra.Command{
		Use:   "trainer-gnn",
		Short: "Train graph neural networks on precomputed batches",
		Long:  "trainer-gnn maps the batch files that precompute wrote, and trains on them without touching topology.",
	}
	root.AddCommand(trainCommand(env), evalCommand(env), predictCommand(env), benchCommand(env))
	return command.Main(root, env, args)
}

// setFlags are the flags of every command that opens a batch set.
type setFlags struct {
	batches  string
	features string
	pin      string
	threads  int
	mem      size
	scratch  string
}

func (f *setFlags) add(c *cobra.Command) {
	f.mem = 4 << 30
	flags := c.Flags()
	flags.StringVar(&f.batches, "batches", "", "batch set `directory` (needed)")
	flags.StringVar(&f.features, "features", "", "feature table `file` (features.plf of the snapshot) for a set without one")
	flags.IntVar(&f.threads, "threads", 0, "threads to compute with, 0 for all cores; never changes a result")
}

// addEval adds the flags of commands that evaluate or pin.
func (f *setFlags) addEval(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.pin, "pin-snapshot", "", "refuse batches of another snapshot than this `id` (sha256:...)")
	flags.Var(&f.mem, "mem", "memory for evaluation's activations, e.g. 4G; beyond it a file under --scratch is used")
	flags.StringVar(&f.scratch, "scratch", "", "`directory` for scratch files (default: the system's)")
}

// check returns the pinned snapshot, or a usage error.
func (f *setFlags) check() (*format.Digest, error) {
	if f.batches == "" {
		return nil, command.Usage("--batches is needed")
	}
	if f.threads < 0 || f.threads > 4096 {
		return nil, command.Usage("--threads %d is not in 0..4096", f.threads)
	}
	if f.threads == 0 {
		f.threads = runtime.GOMAXPROCS(0)
	}
	if f.pin == "" {
		return nil, nil
	}
	d, err := format.ParseDigest(f.pin)
	if err != nil {
		return nil, command.Usage("--pin-snapshot: %v", err)
	}
	return &d, nil
}

// size is a number of bytes on the command line: 512MiB, 4G, 1000000. Letters count in
// powers of 1024.
type size int64

var _ pflag.Value = (*size)(nil)

func (s *size) String() string {
	n, unit := int64(*s), ""
	for _, u := range []string{"K", "M", "G", "T"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, u
	}
	return strconv.FormatInt(n, 10) + unit
}

// Set reads the text form.
func (s *size) Set(text string) error {
	digits := strings.TrimRight(strings.ToUpper(text), "IBKMGT")
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(text)[len(digits):], "B"), "I")
	n, err := strconv.ParseInt(digits, 10, 64)
	shift := map[string]int{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
	by, known := shift[unit]
	if err != nil || !known || n < 0 || n > (1<<62)>>by {
		return fmt.Errorf("%q is no size (as 512M or 4G)", text)
	}
	*s = size(n << by)
	return nil
}

// Type names the flag's type in the help text.
func (s *size) Type() string { return "size" }

// seconds gives a time, below a tenth of a second in milliseconds.
func seconds(s float64) string {
	if s < 0.1 {
		return strconv.FormatFloat(1e3*s, 'g', 3, 64) + " ms"
	}
	return strconv.FormatFloat(s, 'f', 2, 64) + " s"
}

// number gives a value that may be absent.
func number(v *float64) string {
	if v == nil {
		return "not available"
	}
	return strconv.FormatFloat(*v, 'f', 4, 64)
}
