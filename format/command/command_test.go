package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/spf13/cobra"
)

// tool makes a program with two commands; do is what the first one runs.
func tool(env *Env, do func(fanout []int, name string) error) *cobra.Command {
	root := &cobra.Command{Use: "tool"}
	var fanout []int
	name := ""
	a := &cobra.Command{Use: "a", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return do(fanout, name) }}
	a.Flags().IntSliceVar(&fanout, "fanout", []int{1}, "")
	a.Flags().StringVar(&name, "name", "", "")
	a.Flags().Bool("sure", true, "")
	PathsVar(a.Flags(), new([]string), "paths", "")
	b := &cobra.Command{Use: "b", RunE: func(*cobra.Command, []string) error { return nil }}
	b.Flags().Int("other", 0, "")
	root.AddCommand(a, b)
	return root
}

func runTool(t *testing.T, do func(fanout []int, name string) error, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	env := &Env{In: strings.NewReader(""), Out: &out, Err: &err}
	code = Main(tool(env, do), env, args)
	return code, out.String(), err.String()
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"done", nil, ExitDone},
		{"failed", errors.New("disk full"), ExitFailed},
		{"usage", Usage("no"), ExitUsage},
		{"input", fmt.Errorf("reading: %w", BadInput(errors.New("no"))), ExitInput},
		{"corrupt", fmt.Errorf("x: %w", format.ErrChecksum), ExitCorrupt},
		{"mismatch", fmt.Errorf("x: %w", format.ErrMismatch), ExitMismatch},
	} {
		code, stdout, stderr := runTool(t, func([]int, string) error { return c.err }, "a")
		if code != c.want || stdout != "" {
			t.Errorf("%s: exit %d, stdout %q, want %d and nothing", c.name, code, stdout, c.want)
		}
		if lines := strings.Count(stderr, "\n"); (c.err == nil) != (lines == 0) || lines > 1 {
			t.Errorf("%s: %d lines on stderr: %q", c.name, lines, stderr)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"a", "--nope"}, {"c"}, {"a", "stray"}, {"a", "--fanout", "x"}, {"--config", "/nonexistent", "a"}} {
		code, _, stderr := runTool(t, func([]int, string) error { return nil }, args...)
		if code != ExitUsage || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, stderr %q, want %d and one line", args, code, stderr, ExitUsage)
		}
	}
}

func TestErrorIsOneLine(t *testing.T) {
	_, _, stderr := runTool(t, func([]int, string) error {
		return errors.Join(errors.New("a"), errors.New("b\rc \x1b[31mé\xff\u0085\t\""), errors.New("a"))
	}, "a")
	if want := "tool: error: a; b\\rc \\x1b[31mé\\xff\\u0085\\t\"\n"; stderr != want {
		t.Errorf("stderr %q, want %q", stderr, want)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		args       []string
		want       string // fanout and name, or the start of an error
	}{
		{"top level", "fanout: [10, 5]\nname: x\n", nil, "[10 5] x"},
		{"own section wins", "name: x\na:\n  name: y\n", nil, "[1] y"},
		{"flag wins", "a:\n  name: y\n", []string{"--name", "z"}, "[1] z"},
		{"flag of another command", "other: 3\n", nil, "[1] "},
		{"section of something else", "lint:\n  strict: true\n", nil, "[1] "},
		{"unknown at the top", "nope: 3\n", nil, "error"},
		{"unknown in the section", "a:\n  other: 3\n", nil, "error"},
		{"bad value", "fanout: [x]\n", nil, "error"},
		{"no YAML", "{", nil, "error"},
	} {
		path := filepath.Join(t.TempDir(), "params.yaml")
		if err := os.WriteFile(path, []byte(c.yaml), 0o644); err != nil {
			t.Fatal(err)
		}
		got := "error"
		code, _, stderr := runTool(t, func(fanout []int, name string) error {
			got = fmt.Sprint(fanout, " ", name)
			return nil
		}, append([]string{"a", "--config", path}, c.args...)...)
		if got != c.want || (code == ExitUsage) != (c.want == "error") {
			t.Errorf("%s: got %q, exit %d (%s), want %q", c.name, got, code, stderr, c.want)
		}
	}
}

// TestValues: a flag that is given has a value, and what is said of a wrong one is said without the words of libraries.
func TestValues(t *testing.T) {
	const empty = "is given, but empty"
	for _, c := range []struct {
		yaml string // "" for none
		args []string
		want string
	}{
		{"", []string{"--name", ""}, "--name " + empty},
		{"", []string{"--name="}, "--name " + empty},
		{"", []string{"--paths", ""}, "--paths " + empty},
		{"", []string{"--paths", "a,"}, "--paths " + empty},
		{"", []string{"--paths", "a", "--paths", ""}, "--paths " + empty},
		{"", []string{"--config", ""}, "--config " + empty},
		{"name: ''", nil, "--name " + empty},
		{"a: {name: ''}", nil, "--name " + empty},
		{"name: []", nil, "--name " + empty},
		{"paths: ['']", nil, "--paths " + empty},
		{"paths: [a, null]", nil, "--paths " + empty},
		{"paths: []", nil, "--paths " + empty},
		{"name:", nil, "name has no value"},
		{"name: {x: 1}", nil, "name is a map"},
		{"paths: [[a]]", nil, "paths is a map, or holds one"},
		{"config: b.yaml", nil, "--config can't be given in a file"},
		{"- a", nil, "is no map of flags"},
		{"a: 1\na: 2", nil, `: yaml: line 2: mapping key "a" already defined at line 1`},
		{"sure: maybe", nil, `"maybe" for "--sure" flag: neither true nor false`},
		{"fanout: x", nil, `"x" for "--fanout" flag: not a number`},
		{"fanout: [x]", nil, "--fanout: not a number"},
		{"", []string{"--sure=maybe"}, `"maybe" for "--sure" flag: neither true nor false`},
		{"", []string{"--fanout", "99999999999999999999"}, "a number out of range"},
	} {
		args := []string{"a"}
		if c.yaml != "" {
			path := filepath.Join(t.TempDir(), "params.yaml")
			if err := os.WriteFile(path, []byte(c.yaml), 0o644); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--config", path)
		}
		code, _, stderr := runTool(t, func([]int, string) error { return nil }, append(args, c.args...)...)
		if code != ExitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "strconv") {
			t.Errorf("%q %v: exit %d, %q, want %q", c.yaml, c.args, code, stderr, c.want)
		}
	}
}

func TestResult(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		env := &Env{Out: &out, Err: io.Discard, JSON: asJSON}
		err := env.Result(map[string]int{"n": 1}, func(w io.Writer) { fmt.Fprintln(w, "one") })
		if err != nil {
			t.Fatal(err)
		}
		if isJSON := json.Valid(out.Bytes()); isJSON != asJSON {
			t.Errorf("json %v: %q", asJSON, out.String())
		}
	}
}

func TestProgressOffATerminal(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out)
	for i := range int64(1000) {
		p.Step("fast", i, 1000)
	}
	p.Done()
	if out.Len() != 0 {
		t.Errorf("a step of no length printed %q", out.String())
	}
	var none *Progress
	none.Step("x", 1, 2) // a nil Progress is silent
	none.Done()
}

func TestProgressLine(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		want        string
	}{
		{30, 60, "step: 30 of 60, 10/s, 3s left"},
		{30, 0, "step: 30 done, 10/s"},
		{0, 60, "step: 0 done, 0/s"},
	} {
		p := &Progress{step: "step", total: c.total}
		if got := p.line(c.done, 3*time.Second); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.done, c.total, got, c.want)
		}
	}
	p := NewProgress(io.Discard)
	p.Step("grows", 1, 10)
	p.Step("grows", 2, 20)
	if p.total != 20 {
		t.Errorf("total is %d after it grew to 20", p.total)
	}
}

func TestProgressBeside(t *testing.T) {
	p := NewProgress(io.Discard)
	p.Beside("write", 100, time.Second)
	p.Beside("digest", 7, time.Second)
	p.Beside("write", 50, 2*time.Second)
	want := []BesideStage{{"write", 150, 3}, {"digest", 7, 1}}
	if got := p.BesideStages(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (*Progress)(nil).BesideStages(); got == nil || len(got) > 0 {
		t.Errorf("without progress: %v", got)
	}
}
