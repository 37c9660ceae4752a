package format

// Names is a list of byte strings as two arrays: name i is Bytes[Offsets[i]:Offsets[i+1]].
// It is how files hold external ids (ids.offsets, ids.bytes) and class and split names
// (names.offsets, names.bytes).
type Names struct {
	Offsets []int64
	Bytes   []byte
}

// NamesOf builds a list from strings.
func NamesOf(list []string) Names {
	n := Names{Offsets: make([]int64, 1, len(list)+1)}
	for _, s := range list {
		n.Bytes = append(n.Bytes, s...)
		n.Offsets = append(n.Offsets, int64(len(n.Bytes)))
	}
	return n
}

// Len returns the number of names.
func (n Names) Len() int { return max(len(n.Offsets)-1, 0) }

// At returns name i; valid as long as n's arrays, read-only.
func (n Names) At(i int) []byte { return n.Bytes[n.Offsets[i]:n.Offsets[i+1]] }

// Strings copies the list into strings.
func (n Names) Strings() []string {
	list := make([]string, n.Len())
	for i := range list {
		list[i] = string(n.At(i))
	}
	return list
}

// IDs returns the external ids of an ids file's record.
func (r *Record) IDs() Names {
	return Names{r.Int64s(IDsOffsets, AnyLayer), r.Uint8s(IDsBytes, AnyLayer)}
}

// Names returns the names of a record.
func (r *Record) Names() Names {
	return Names{r.Int64s(NamesOffsets, AnyLayer), r.Uint8s(NamesBytes, AnyLayer)}
}
