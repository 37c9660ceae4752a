// Package command is what the command lines of both binaries share: exit codes,
// one-line errors, --json, --config, progress and a clean stop on interrupt. It is
// under format because the trainers may import nothing of ours but format.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/prelift/prelift/format"
	"github.com/spf13/cobra"
)

// Version is the release of both binaries. It enters no artefact.
const Version = "0.1.0"

// Exit codes, the same for every command; the README has the table.
const (
	ExitDone     = 0
	ExitFailed   = 1 // also: interrupted
	ExitUsage    = 2 // flags or arguments
	ExitInput    = 3 // a raw input file is bad
	ExitCorrupt  = 4 // an artefact's bytes are bad
	ExitMismatch = 5 // artefacts don't belong together
)

// codeError gives an error its exit code.
type codeError struct {
	error
	code int
}

func (e codeError) Unwrap() error { return e.error }

// Usage makes an error that ends the command with exit code 2.
func Usage(format string, args ...any) error {
	return codeError{fmt.Errorf(format, args...), ExitUsage}
}

// BadInput makes err end the command with exit code 3. nil stays nil.
func BadInput(err error) error {
	if err == nil {
		return nil
	}
	return codeError{err, ExitInput}
}

// Code returns the exit code for err.
func Code(err error) int {
	var coded codeError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, format.ErrMismatch):
		return ExitMismatch
	case format.IsCorrupt(err):
		return ExitCorrupt
	}
	return ExitFailed
}

// Env is what a command works with beside its flags.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	JSON     bool // one JSON object on Out and nothing else there

	Progress *Progress
}

// Result prints the outcome of a command: v as JSON with --json, else what text writes.
func (e *Env) Result(v any, text func(w io.Writer)) error {
	if !e.JSON {
		e.Progress.Done()
		text(e.Out)
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "%s\n", b)
	return err
}

// Note prints a line that is no error to Err; kind is note or warning.
func (e *Env) Note(kind, text string) {
	e.Progress.Done()
	fmt.Fprintf(e.Err, "%s: %s\n", kind, oneLine(text))
}

// Interruptible runs fn, which only reads and doesn't watch ctx, and returns early when ctx
// ends; fn is then left to the end of the process.
func Interruptible(ctx context.Context, fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Main runs root with args and returns the exit code. It adds the flags that every
// command has (--json, --config), cancels the context on interrupt, termination and hangup, and
// prints an error as one line on Err.
func Main(root *cobra.Command, env *Env, args []string) int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop)   // a second signal ends the process at once
	signal.Ignore(syscall.SIGXFSZ) // a file over `ulimit -f` is a write error, not a death
	env.Progress = NewProgress(env.Err)
	out := &watchedWriter{w: env.Out}
	env.Out = out
	var config string
	root.PersistentFlags().BoolVar(&env.JSON, "json", false, "print one JSON object on standard output and nothing else there")
	root.PersistentFlags().StringVar(&config, "config", "", "YAML `file` that gives any flag (a DVC params file); flags win")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.SetFlagErrorFunc(flagError)
	root.Version = Version
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if config != "" {
			if err := applyConfig(c, config); err != nil {
				return err
			}
		}
		return checkGiven(c)
	}
	err := root.ExecuteContext(ctx)
	env.Progress.Done()
	if err == nil && out.err != nil {
		err = fmt.Errorf("write the result: %w", out.err)
	}
	if err == nil {
		return ExitDone
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted; run the same command again to go on")
	}
	if isCobraUsage(err) {
		first, _, _ := strings.Cut(err.Error(), "\n") // what follows are suggestions, on lines of their own
		err = Usage("%s; run `%s --help`", first, root.Name())
	}
	fmt.Fprintf(env.Err, "%s: error: %s\n", root.Name(), oneLine(err.Error()))
	return Code(err)
}

// isCobraUsage recognises cobra's own complaint about a command, which has no type.
func isCobraUsage(err error) bool { return strings.HasPrefix(err.Error(), "unknown command") }

// flagError says what is wrong with a flag.
func flagError(c *cobra.Command, err error) error {
	return Usage("%s; run `%s --help`", valueReason(err), c.CommandPath())
}

// valueReason says what is wrong with a flag's value without the words of strconv.
func valueReason(err error) string {
	msg := err.Error()
	before, after, ok := strings.Cut(msg, "strconv.")
	switch {
	case !ok:
		return msg
	case strings.HasPrefix(after, "ParseBool"):
		return before + "neither true nor false"
	case strings.Contains(after, strconv.ErrRange.Error()):
		return before + "a number out of range"
	}
	return before + "not a number (several go with commas and no blanks, as 10,5)"
}

// NoArgs refuses arguments, and says what a command's inputs are given by.
func NoArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage("%s takes flags only, not %q (several values of a flag go with commas, or with the flag again); run `%s --help`", c.Name(), args[0], c.CommandPath())
	}
	return nil
}

// OneArg wants one argument, called what in messages.
func OneArg(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usage("%s needs one argument, %s; got %d", c.Name(), what, len(args))
		}
		return nil
	}
}

// watchedWriter remembers the first error of w.
type watchedWriter struct {
	w   io.Writer
	err error
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

// oneLine keeps a message on one line: joined errors are separated by "; ", each said once. What a terminal might obey in the names and values
// that a message holds is escaped.
func oneLine(s string) string {
	var parts []string
	for _, line := range strings.Split(s, "\n") {
		if line != "" && !slices.Contains(parts, line) {
			parts = append(parts, line)
		}
	}
	var b strings.Builder
	for text := strings.Join(parts, "; "); len(text) > 0; {
		r, n := utf8.DecodeRuneInString(text)
		if unicode.IsControl(r) || r == utf8.RuneError && n == 1 {
			b.WriteString(strings.Trim(strconv.Quote(text[:n]), `"`))
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}
