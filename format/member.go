package format

import "path/filepath"

// Member says what a file of an artefact must be, by its header.
type Member struct {
	Kind       FileKind
	SetKey     Digest // of the artefact that the file was written for
	SnapshotID Digest // zero for a snapshot's own files
	Shard      uint32 // 0 where the file isn't a shard
}

// OpenMember opens a file of an artefact and checks that its header is of that member; a
// file of another artefact, or of another place in this one, is ErrLayout.
func OpenMember(path string, want Member) (*File, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := f.checkMember(want); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *File) checkMember(want Member) error {
	name, h := filepath.Base(f.path), &f.Header
	switch {
	case h.Kind != want.Kind:
		return faultf(ErrLayout, name, "file kind %s, want %s", h.Kind, want.Kind)
	case Digest(h.SetKey) != want.SetKey:
		return faultf(ErrLayout, name, "belongs to another artefact: its set key is %.16s, the manifest's %.16s", Digest(h.SetKey).Hex(), want.SetKey.Hex())
	case Digest(h.SnapshotID) != want.SnapshotID:
		return faultf(ErrLayout, name, "belongs to snapshot %.16s, the manifest's is %.16s", Digest(h.SnapshotID).Hex(), want.SnapshotID.Hex())
	case h.Shard != want.Shard:
		return faultf(ErrLayout, name, "its header says shard %d, want %d", h.Shard, want.Shard)
	}
	return nil
}

// Table returns the one record of a file that holds a table over all numNodes nodes of a
// graph. Its contents are not verified.
func (f *File) Table(numNodes int) (*Record, error) {
	records, err := f.Tables(numNodes, 1)
	if err != nil {
		return nil, err
	}
	return records[0], nil
}

// Tables is Table for a file of count such records.
func (f *File) Tables(numNodes, count int) ([]*Record, error) {
	if len(f.Records) != count {
		return nil, faultf(ErrLayout, f.Name(), "%d records, want %d", len(f.Records), count)
	}
	records := make([]*Record, count)
	for i := range records {
		r, err := f.Record(i)
		if err != nil {
			return nil, err
		}
		if n := uint64(numNodes); r.Space != SpaceGlobal || r.NumNodes() != n || r.DstStart != 0 || r.DstEnd != n {
			return nil, faultf(ErrLayout, r.place, "a table of rows %d to %d of %d nodes, the artefact has %d", r.DstStart, r.DstEnd, r.NumNodes(), n)
		}
		records[i] = r
	}
	return records, nil
}
