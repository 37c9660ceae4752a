package ingest

import (
	"path/filepath"
	"slices"
	"strings"
)

// FileNames returns what messages call files: their base names, and for different files of one base name as many of the folders
// above as tell them apart. - is stdin.
func FileNames(paths []string) []string {
	names := fileNames(paths)
	out := make([]string, len(paths))
	for i, path := range paths {
		if out[i] = names[path]; path == stdinPath {
			out[i] = "stdin"
		}
	}
	return out
}

// fileNames is FileNames by path.
func fileNames(paths []string) map[string]string {
	byBase := map[string][]string{}
	seen := map[string]bool{}
	for _, path := range paths {
		if !seen[path] {
			seen[path] = true
			byBase[filepath.Base(path)] = append(byBase[filepath.Base(path)], path)
		}
	}
	names := map[string]string{}
	for _, alike := range byBase {
		for n, apart := 1, false; !apart; n++ {
			taken := map[string]string{}
			apart = true
			for _, path := range alike {
				name, whole := lastParts(path, n), filepath.Clean(path)
				apart = apart && (taken[name] == "" || taken[name] == whole)
				taken[name], names[path] = whole, name
			}
		}
	}
	return names
}

// lastParts returns the last n parts of a path, or all.
func lastParts(path string, n int) string {
	path = filepath.Clean(path)
	parts := strings.Split(filepath.ToSlash(path), "/")
	if n >= len(parts) {
		return path
	}
	return strings.Join(parts[len(parts)-n:], "/")
}

// nameOf returns what messages call a file.
func (o *Options) nameOf(path string) string {
	if name := o.names[path]; name != "" {
		return name
	}
	return filepath.Base(path)
}

// nameFiles settles the names of the files that the options name.
func (o *Options) nameFiles() {
	_, splits, _ := SplitFiles(o.Splits) // their readers say what is wrong with the lists
	_, held, _ := HoldoutFiles(o.HoldoutEdges)
	o.names = fileNames(slices.Concat(o.Edges, o.NodeFiles, []string{o.Nodes, o.Features, o.Labels}, splits, held))
}
