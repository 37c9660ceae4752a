// Package trainer_test guards the import direction of the repository.
package trainer_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/prelift/prelift"

// TestNoTopologyInTrainer fails where a package under trainer/ reaches, over any chain of
// our packages, one that makes topology. It parses the files themselves, every one of
// them whatever its build tags: `go list` would miss some and go stale in the test cache.
func TestNoTopologyInTrainer(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	imports := importsOf(t, root, "trainer", "format", "snapshot", "precompute")
	if len(imports["trainer/internal/feed"]) == 0 {
		t.Fatal("no imports of trainer/internal/feed found: is the guard blind?")
	}
	for pkg := range imports {
		if !within(pkg, "trainer") {
			continue
		}
		if chain := reach(imports, pkg, func(p string) bool { return within(p, "snapshot") || within(p, "precompute") }); chain != nil {
			t.Errorf("the trainer must not know how topology is made: %s", strings.Join(chain, " -> "))
		}
	}
	for _, c := range []struct{ from, to string }{{"format", "trainer"}, {"format", "snapshot"}, {"format", "precompute"}, {"snapshot", "precompute"}, {"snapshot", "trainer"}, {"precompute", "trainer"}} {
		for pkg := range imports {
			if within(pkg, c.from) {
				if chain := reach(imports, pkg, func(p string) bool { return within(p, c.to) }); chain != nil {
					t.Errorf("%s must not import %s: %s", c.from, c.to, strings.Join(chain, " -> "))
				}
			}
		}
	}
}

func TestReach(t *testing.T) {
	imports := map[string][]string{"a": {"b", "c"}, "b": {"a"}, "c": {"d"}, "d": nil}
	is := func(want string) func(string) bool { return func(p string) bool { return p == want } }
	if got := reach(imports, "a", is("d")); !slices.Equal(got, []string{"a", "c", "d"}) {
		t.Errorf("got %v", got)
	}
	if got := reach(imports, "d", is("a")); got != nil {
		t.Errorf("got %v, want none", got)
	}
}

func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// importsOf returns our packages under the folders, by path below root, with what they
// import of ours. Tests count with their package.
func importsOf(t *testing.T, root string, folders ...string) map[string][]string {
	imports := map[string][]string{}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, d fs.DirEntry, err error) error {
			switch {
			case os.IsNotExist(err):
				return nil
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(file, ".go"):
				return nil
			}
			rel, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			pkg := path.Dir(filepath.ToSlash(rel))
			imports[pkg] = append(imports[pkg], []string{}...)
			for _, spec := range parsed.Imports {
				name, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				if own, ok := strings.CutPrefix(name, module+"/"); ok && !slices.Contains(imports[pkg], own) {
					imports[pkg] = append(imports[pkg], own)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return imports
}

// reach returns the shortest chain of imports from a package to one that is wanted, nil
// where there is none.
func reach(imports map[string][]string, from string, wanted func(string) bool) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range imports[queue[0]] {
			if _, seen := before[next]; seen {
				continue
			}
			before[next] = queue[0]
			if wanted(next) {
				var chain []string
				for p := next; p != ""; p = before[p] {
					chain = append(chain, p)
				}
				slices.Reverse(chain)
				return chain
			}
			queue = append(queue, next)
		}
	}
	return nil
}
