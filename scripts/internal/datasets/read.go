package datasets

import (
	"path/filepath"
	"strings"
)

// datasetFlags reads a folder whose layout precompute knows.
func datasetFlags(dir string) []string { return []string{"--dataset", dir} }

// planetoidFlags are datasetFlags with what Planetoid's bags of words want: rows of sum 1.
func planetoidFlags(dir string) []string {
	return append(datasetFlags(dir), "--feature-norm", "row")
}

// tripleFlags read train.txt, valid.txt and test.txt.
func tripleFlags(dir string) []string { return tripleFiles(dir, ".txt") }

// numberedFlags read OpenKE's train2id.txt and so on.
func numberedFlags(dir string) []string { return tripleFiles(dir, "2id.txt") }

func tripleFiles(dir, ending string) []string {
	var parts []string
	for _, part := range []string{"train", "valid", "test"} {
		parts = append(parts, part+"="+filepath.Join(dir, part+ending))
	}
	return []string{"--triples", strings.Join(parts, ",")}
}
