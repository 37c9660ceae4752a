package format

import (
	"cmp"
	"path/filepath"
	"slices"
)

// SectionSize says how many bytes of a file its sections of one name take.
type SectionSize struct {
	Name      string `json:"name"` // "block.indices", or "heads and padding" for all that is in no section
	SizeBytes int64  `json:"size_bytes"`
}

// HeadsAndPadding names what is in no section: headers, tables, heads, alignment.
const HeadsAndPadding = "heads and padding"

// Sizes opens the file at path and returns its sections' sizes by name, largest first,
// "heads and padding" last. They add up to the size of the file.
func Sizes(path string) ([]SectionSize, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	byName := map[string]int64{}
	rest := f.SizeBytes()
	for i := range f.Records {
		r, err := f.Record(i)
		if err != nil {
			return nil, err
		}
		for k := range r.Sections {
			s := &r.Sections[k]
			byName[s.Kind.String()] += int64(s.SizeBytes)
			rest -= int64(s.SizeBytes)
		}
	}
	var sizes []SectionSize
	for name, n := range byName {
		sizes = append(sizes, SectionSize{name, n})
	}
	slices.SortFunc(sizes, func(a, b SectionSize) int {
		return cmp.Or(cmp.Compare(b.SizeBytes, a.SizeBytes), cmp.Compare(a.Name, b.Name))
	})
	return append(sizes, SectionSize{HeadsAndPadding, rest}), nil
}

// FileSizes is one file of an artefact with its sections' sizes.
type FileSizes struct {
	Name      string        `json:"name"`
	SizeBytes int64         `json:"size_bytes"`
	Sections  []SectionSize `json:"sections"`
}

// ArtefactSizes returns the sizes of every listed file of the artefact in dir.
func ArtefactSizes(dir string, files []FileInfo) ([]FileSizes, error) {
	list := make([]FileSizes, len(files))
	for i, f := range files {
		sections, err := Sizes(filepath.Join(dir, f.Name))
		if err != nil {
			return nil, err
		}
		list[i] = FileSizes{f.Name, int64(f.SizeBytes), sections}
	}
	return list, nil
}
