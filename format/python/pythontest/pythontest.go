// Package pythontest runs the Python reader from Go tests, which hold it against Go's.
package pythontest

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// interpreters are tried in turn, behind the one that PRELIFT_PYTHON names. The system's own is there since
// Debian's packages (python3-numpy, python3-torch) belong to it, whatever comes first in PATH.
var interpreters = []string{"python3", "/usr/bin/python3"}

func candidates() []string {
	if named := os.Getenv("PRELIFT_PYTHON"); named != "" {
		return []string{named}
	}
	return interpreters
}

var find = sync.OnceValues(func() (path, reason string) {
	reason = "no python3 here"
	for _, name := range candidates() {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if exec.Command(path, "-c", "import sys, numpy; assert sys.version_info >= (3, 10)").Run() == nil {
			return path, ""
		}
		reason = path + " is older than 3.10 or has no numpy (Debian: python3-numpy)"
	}
	return "", reason
})

// dir is format/python.
func dir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(file))
}

// Run runs `python -m prelift` with args and returns its exit code, standard output and standard error. It skips
// the test, saying why, where there is no Python with NumPy.
func Run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	python, reason := find()
	if python == "" {
		t.Skip(reason)
	}
	touch(t)
	cmd := command(python, append([]string{"-m", "prelift"}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

func command(python string, args ...string) *exec.Cmd {
	cmd := exec.Command(python, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir(), "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1")
	return cmd
}

// Lines runs `python -m prelift` with args, which must succeed, and returns the lines of its output.
func Lines(t *testing.T, args ...string) []string {
	t.Helper()
	code, stdout, stderr := Run(t, args...)
	if code != 0 {
		t.Fatalf("prelift %q: exit %d\n%s", args, code, stderr)
	}
	return strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
}

// touch looks at the reader's files, so that Go's test cache knows that a result depends on them.
func touch(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir(), "prelift"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".py" {
			_, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Example runs a file of format/python/examples with args, with a Python that has PyTorch, and returns its standard output.
// It skips the test, saying why, where there is none.
func Example(t *testing.T, file string, args ...string) string {
	t.Helper()
	touch(t)
	for _, name := range candidates() {
		python, err := exec.LookPath(name)
		if err != nil || exec.Command(python, "-c", "import numpy, torch").Run() != nil {
			continue
		}
		out, err := command(python, append([]string{filepath.Join(dir(), "examples", file)}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", file, args, err, out)
		}
		return string(out)
	}
	t.Skip("no Python with PyTorch here (Debian: python3-torch)")
	return ""
}

// Script runs a file of format/python with args, which must succeed, and returns the lines of its output.
func Script(t *testing.T, file string, args ...string) []string {
	t.Helper()
	python, reason := find()
	if python == "" {
		t.Skip(reason)
	}
	touch(t)
	cmd := command(python, append([]string{filepath.Join(dir(), file)}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, errOut.String())
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}
