package feed

import (
	"fmt"
	"path/filepath"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/rows"
)

// typeOf are the element types of files by the words of --dtype.
var typeOf = map[rows.Type]format.DType{rows.F32: format.F32, rows.F16: format.F16, rows.BF16: format.BF16, rows.I8: format.I8}

func knownType(name string) bool {
	_, ok := rows.Parse(name)
	return ok
}

// rowKind is the type of the set's feature rows; Open has seen that it is known.
func (s *Set) rowKind() rows.Type {
	kind, _ := rows.Parse(s.Manifest.Params.DType)
	return kind
}

func (s *Set) rowType() format.DType { return typeOf[s.rowKind()] }

// tableOf views the feature rows of a record, whose sections are checked; valid until Close. It fails where they aren't of the set's type and width.
func (s *Set) tableOf(r *format.Record) (rows.Table, error) {
	t := r.Find(format.TableRows, format.AnyLayer, format.CoefNone)
	if t == nil || t.DType != s.rowType() || t.Shape[1] != uint64(s.NumFeatures()) {
		return rows.Table{}, fmt.Errorf("%s: %w: no %s rows of %d columns", r.Place(), format.ErrLayout, s.rowType(), s.NumFeatures())
	}
	return rows.Table{Type: s.rowKind(), Cols: s.NumFeatures(), Data: t.Bytes(), Scale: r.Float32s(format.TableScale, format.AnyLayer, format.CoefNone)}, nil
}

// openShared opens the files of rows that batches share, as many as the parameters say, and takes them off the list.
func (s *Set) openShared(listed map[string]bool) error {
	m, p := s.Manifest, &s.Manifest.Params
	open := func(name string, shard int) (list []*shardRecord, err error) {
		if !listed[name] {
			return nil, s.manifestFault(format.ErrMissing, "%s isn't listed", name)
		}
		delete(listed, name)
		f, err := s.openFile(filepath.Join(s.Dir, name), format.FileRows, shard)
		if err != nil {
			return nil, err
		}
		for i := range f.Records {
			list = append(list, &shardRecord{file: f, index: i})
		}
		return list, nil
	}
	if p.HotRows > 0 {
		list, err := open(format.SetHotFile, 0)
		if err != nil {
			return err
		}
		s.hot = list[0]
	}
	if p.Group < 2 {
		return nil
	}
	perFile, last := s.groupsPerFile(), int(m.NumBatches)%p.BatchesPerFile
	want := int(m.NumBatches)/p.BatchesPerFile*perFile + (last+p.Group-1)/p.Group
	for shard := 0; len(s.groups) < want; shard++ {
		list, err := open(format.RowsFile(shard), shard)
		if err != nil {
			return err
		}
		if n := min(perFile, want-len(s.groups)); len(list) != n {
			return s.manifestFault(format.ErrLayout, "%d records in %s, want %d", len(list), format.RowsFile(shard), n)
		}
		s.groups = append(s.groups, list...)
	}
	return nil
}

// groupsPerFile is the number of groups of a full shard.
func (s *Set) groupsPerFile() int {
	p := &s.Manifest.Params
	return (p.BatchesPerFile + p.Group - 1) / p.Group
}

// rowTables are the tables that nodes.table of a batch may name, by its numbers (SPEC 5.4); those that aren't there have no rows. The first
// use of shared rows in the process verifies them.
func (s *Set) rowTables(batch *format.Record) (t [4]rows.Table, err error) {
	shared, err := s.sharedOf(batch)
	if err != nil {
		return t, err
	}
	for i, r := range shared {
		if r == nil {
			continue
		}
		if t[i], err = s.tableOf(r); err != nil {
			return t, err
		}
	}
	if s.features != nil {
		if t[format.FeatureTable], err = s.tableOf(s.features); err != nil {
			return t, err
		}
	}
	if batch.Find(format.TableRows, format.AnyLayer, format.CoefNone) != nil {
		if t[format.OwnTable], err = s.tableOf(batch); err != nil {
			return t, err
		}
	}
	return t, nil
}

// sharedOf returns the records of rows that a batch shares with others, by the numbers of nodes.table.
func (s *Set) sharedOf(batch *format.Record) (shared [4]*format.Record, err error) {
	if p := &s.Manifest.Params; p.Group > 1 {
		number := int(batch.Number)
		ref := s.groups[number/p.BatchesPerFile*s.groupsPerFile()+number%p.BatchesPerFile/p.Group]
		if shared[format.GroupTable], _, err = ref.load(s.checkShared); err != nil {
			return shared, err
		}
	}
	if s.hot != nil {
		shared[format.HotTable], _, err = s.hot.load(s.checkShared)
	}
	return shared, err
}

// checkShared checks a record of shared rows when it is first used.
func (s *Set) checkShared(r *format.Record) error {
	t, err := s.tableOf(r)
	if err != nil {
		return err
	}
	if numbers := r.Int32s(format.NodesNumber, format.AnyLayer); r.Space != format.SpaceLocal || len(numbers) != t.NumRows() {
		return fmt.Errorf("%s: %w: %d rows that batches share, %d node numbers", r.Place(), format.ErrLayout, t.NumRows(), len(numbers))
	}
	return nil
}

// checkRows checks that the rows that a batch names are there, and those that it shares are of its nodes.
func (s *Set) checkRows(r *format.Record) error {
	if r.Find(format.NodesRow, format.AnyLayer, format.CoefNone) == nil {
		return nil
	}
	tables, err := s.rowTables(r)
	if err != nil {
		return err
	}
	var numRows [4]int
	for i := range tables {
		numRows[i] = tables[i].NumRows()
	}
	if err := r.CheckRows(numRows); err != nil {
		return err
	}
	shared, err := s.sharedOf(r)
	if err != nil {
		return err
	}
	return format.Guard(r.Place(), func() error {
		var numbers [4][]int32
		for i, of := range shared {
			if of != nil {
				numbers[i] = of.Int32s(format.NodesNumber, format.AnyLayer)
			}
		}
		nodes, row := r.Int32s(format.NodesNumber, format.AnyLayer), r.Int32s(format.NodesRow, format.AnyLayer)
		for i, table := range r.Uint8s(format.NodesTable, format.AnyLayer) {
			if of := numbers[table]; of != nil && of[row[i]] != nodes[i] {
				return fmt.Errorf("%s: %w: node %d has row %d of table %d, which is node %d's", r.Place(), format.ErrLayout, nodes[i], row[i], table, of[row[i]])
			}
		}
		return nil
	})
}

// DecodedFeatures returns the feature table [NumNodes, NumFeatures] in float32, whatever its type: a view, or a copy in memory that is made once. nil
// where the set has none.
func (s *Set) DecodedFeatures() ([]float32, error) {
	if s.features == nil || s.rowKind() == rows.F32 {
		return s.Features(), nil
	}
	s.decodeOnce.Do(func() {
		out := make([]float32, s.NumNodes()*s.NumFeatures())
		if s.decodeErr = s.DecodeFeatures(out); s.decodeErr == nil {
			s.decoded = out
		}
	})
	return s.decoded, s.decodeErr
}

// DecodeFeatures writes the feature table in float32 to out [NumNodes, NumFeatures].
func (s *Set) DecodeFeatures(out []float32) error {
	t, err := s.tableOf(s.features)
	if err != nil {
		return err
	}
	return format.Guard(s.features.Place(), func() error {
		t.Decode(out, 0)
		return nil
	})
}
