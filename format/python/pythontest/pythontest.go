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

var find = sync.OnceValues(func() (path, reason string) {
	list := interpreters
	if named := os.Getenv("PRELIFT_PYTHON"); named != "" {
		list = []string{named}
	}
	reason = "no python3 here"
	for _, name := range list {
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
	cmd := exec.Command(python, append([]string{"-m", "prelift"}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir(), "PYTHONDONTWRITEBYTECODE=1")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
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
