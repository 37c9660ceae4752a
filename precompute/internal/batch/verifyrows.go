package batch

import (
	"bytes"
	"math"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/rows"
)

// openShared opens the files of shared rows.
func (s *set) openShared(numGroups int) error {
	m := s.m
	open := func(name string, shard, numRecords int) (*format.File, error) {
		f, err := s.openFile(name, format.Member{Kind: format.FileRows, SetKey: m.SetKey, SnapshotID: m.SnapshotID, Shard: uint32(shard)})
		if err == nil && len(f.Records) != numRecords {
			err = faultf(format.ErrLayout, f.Name(), "%d records, want %d", len(f.Records), numRecords)
		}
		return f, err
	}
	if m.Params.HotRows > 0 {
		f, err := open(format.SetHotFile, 0, 1)
		if err != nil {
			return err
		}
		if s.hot, err = f.Record(0); err != nil {
			return err
		}
	}
	for shard := 0; len(s.groups) < numGroups; shard++ {
		f, err := open(format.RowsFile(shard), shard, min(groupsPerFile(&m.Params), numGroups-len(s.groups)))
		if err != nil {
			return err
		}
		for i := range f.Records {
			r, err := f.Record(i)
			if err != nil {
				return err
			}
			s.groups = append(s.groups, r)
		}
	}
	return nil
}

// rowSections lists the sections that hold feature rows.
func (s *set) rowSections() []sectionName {
	want := []sectionName{{format.TableRows, format.AnyLayer, 0}}
	if s.m.Params.DType == rows.I8.String() {
		want = append(want, sectionName{format.TableScale, format.AnyLayer, 0})
	}
	return want
}

// checkRowType checks the type and width of a record's table.rows.
func (s *set) checkRowType(r *format.Record) error {
	kind, _ := rows.Parse(s.m.Params.DType)
	t := r.Find(format.TableRows, format.AnyLayer, format.CoefNone)
	if t == nil || t.DType != dtypes[kind] || t.Shape[1] != uint64(s.m.NumFeatures) {
		return faultf(format.ErrLayout, r.Place(), "no %s feature rows of %d columns, which the set has", kind, s.m.NumFeatures)
	}
	return nil
}

// checkRowTables checks the scales of the feature table and all records of shared rows.
func (s *set) checkRowTables() error {
	if e := s.m.RowError; e != nil {
		kind, _ := rows.Parse(s.m.Params.DType)
		if err := s.checkSections(s.features, s.rowSections()); err != nil {
			return err
		}
		relative, absolute := rows.ErrorBound(kind, s.features.Float32s(format.TableScale, format.AnyLayer, format.CoefNone))
		if e.Relative != relative || e.Absolute != absolute || !(e.Largest >= 0) || math.IsInf(e.Largest, 0) {
			return faultf(format.ErrLayout, s.place, "row_error %v, dtype %s has the bounds %g, %g", *e, kind, relative, absolute)
		}
	}
	if s.hot != nil {
		if n := s.hot.NumNodes(); n > uint64(maxHotRows(&s.m.Params, int(s.m.NumNodes))) {
			return faultf(format.ErrLayout, s.hot.Place(), "%d hot rows of %d nodes, over the share of %g", n, s.m.NumNodes, s.m.Params.HotRows)
		}
		if err := s.checkShared(s.hot, 0); err != nil {
			return err
		}
	}
	for group, r := range s.groups {
		if err := s.checkShared(r, group); err != nil {
			return err
		}
	}
	return nil
}

// checkShared checks a record of shared rows.
func (s *set) checkShared(r *format.Record, number int) error {
	if r.Task != format.TaskNone || r.Space != format.SpaceLocal || r.NumLayers != 0 || r.NumSeeds != 0 || r.Number != uint32(number) || r.Variant != 0 || r.Split != format.PartNone || r.SplitColumn != format.AnySplit {
		return faultf(format.ErrLayout, r.Place(), "task %d, index space %d, %d layers, %d seeds, number %d; want rows of number %d", r.Task, r.Space, r.NumLayers, r.NumSeeds, r.Number, number)
	}
	if err := s.checkSections(r, append(s.rowSections(), sectionName{format.NodesNumber, format.AnyLayer, 0})); err != nil {
		return err
	}
	if err := r.CheckNumbers(format.NodesNumber, int(s.m.NumNodes)); err != nil {
		return err
	}
	nodes := r.Int32s(format.NodesNumber, format.AnyLayer)
	for i, v := range nodes {
		if i > 0 && v <= nodes[i-1] {
			return faultf(format.ErrLayout, r.Place(), "row %d is of node %d, after %d", i, v, nodes[i-1])
		}
	}
	return s.checkRowValues(r, nodes)
}

// checkPackedRows checks where a batch has its feature rows: nodes.row and nodes.table, and its own rows.
func (s *set) checkPackedRows(r *format.Record, nodes []int32) error {
	p := &s.m.Params
	if p.Store != StorePacked {
		return nil
	}
	if !sharesRows(p) {
		return s.checkRowValues(r, nodes)
	}
	var shared [4][]int32 // nodes of the rows of each table
	if s.hot != nil {
		shared[format.HotTable] = s.hot.Int32s(format.NodesNumber, format.AnyLayer)
	}
	if p.Group > 1 {
		shared[format.GroupTable] = s.groups[batchGroup(p, int(r.Number))].Int32s(format.NodesNumber, format.AnyLayer)
	}
	own := []int32{}
	row, table := r.Int32s(format.NodesRow, format.AnyLayer), r.Uint8s(format.NodesTable, format.AnyLayer)
	for i, v := range nodes {
		if table[i] == format.OwnTable {
			if int(row[i]) != len(own) {
				return faultf(format.ErrLayout, r.Place(), "node %d has own row %d, want %d", v, row[i], len(own))
			}
			own = append(own, v)
			continue
		}
		if of := shared[table[i]]; int(row[i]) >= len(of) || of[row[i]] != v {
			return faultf(format.ErrLayout, r.Place(), "node %d has row %d of table %d, which isn't its", v, row[i], table[i])
		}
	}
	if t := r.Find(format.TableRows, format.AnyLayer, format.CoefNone); t.Shape[0] != uint64(len(own)) {
		return faultf(format.ErrLayout, r.Place(), "%d own rows for %d nodes", t.Shape[0], len(own))
	}
	return s.checkRowValues(r, own)
}

// checkRowValues compares a record's table.rows, which are of nodes, and table.scale with the feature table, where that is in the set.
func (s *set) checkRowValues(r *format.Record, nodes []int32) error {
	if err := s.checkRowType(r); err != nil || s.features == nil {
		return err
	}
	all := s.features.Find(format.TableRows, format.AnyLayer, format.CoefNone).Bytes()
	node := func(i int) int { return int(nodes[i]) }
	if i := differingRow(r.Find(format.TableRows, format.AnyLayer, format.CoefNone).Bytes(), all, len(nodes), int(s.m.NumNodes), node); i >= 0 {
		return faultf(format.ErrLayout, r.Place(), "feature row %d is not that of node %d", i, nodes[i])
	}
	scale := func(r *format.Record) []byte {
		return format.Bytes(r.Float32s(format.TableScale, format.AnyLayer, format.CoefNone))
	}
	if !bytes.Equal(scale(r), scale(s.features)) {
		return faultf(format.ErrLayout, r.Place(), "%s is not that of %s", format.TableScale, format.SetFeaturesFile)
	}
	return nil
}
