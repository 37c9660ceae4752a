package ingest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/prelift/prelift/snapshot"
)

// featureTable collects features read from text by the numbers of dict.
type featureTable interface {
	// set takes the features of node num from the row in t.
	set(ctx context.Context, r *reader, t *table, num int32) error
	// place fills out, [len(number), columns()] and zero, in node order, and marks in present the nodes that have a row.
	place(ctx context.Context, r *reader, number []int32, out []float32, present []bool) error
	// columns is the number of features.
	columns() int
	// source is the base name of the file, and the line that made columns what it is, 0 for the first.
	source() (file string, line int64)
}

// isFeatureName reports whether a column of Nodes holds a feature: f and a number.
func isFeatureName(name string) bool {
	if len(name) < 2 || name[0]|0x20 != 'f' {
		return false
	}
	v, ok := snapshot.CanonicalInt([]byte(name[1:]))
	return ok && v >= 0
}

// nodeFeatures returns the feature table of a node table, nil if there is none or Features replaces it.
func (r *reader) nodeFeatures(t *table, id int) (*denseTable, error) {
	d := &denseTable{file: t.in.name, idCol: -1}
	if r.opt.FeatureCols != "" && r.opt.Features == "" {
		cols, err := t.featureColumns(id)
		for _, c := range cols {
			d.names = append(d.names, t.columnName(c, fmt.Sprint(c+1)))
		}
		d.cols = cols
		return d, err
	}
	for i, name := range t.names {
		if isFeatureName(name) {
			d.cols = append(d.cols, i)
			d.names = append(d.names, name)
		}
	}
	if len(d.cols) == 0 {
		return nil, nil
	}
	if r.opt.Features != "" {
		t.report.noticef("features come from %s: %d feature columns are not used", oneLine(r.opt.nameOf(r.opt.Features)), len(d.cols))
		return nil, nil
	}
	return d, t.sortFeatures(d)
}

// sortFeatures puts the columns f0, f1, ... of a node table in the order of their numbers, each of which must be there once.
func (t *table) sortFeatures(d *denseTable) error {
	cols, names := make([]int, len(d.cols)), make([]string, len(d.cols))
	for i, name := range d.names {
		number, _ := snapshot.CanonicalInt([]byte(name[1:])) // isFeatureName has seen that it is one
		if number >= int64(len(cols)) || names[number] != "" {
			return t.headError("name them f0, f1, ... without a gap, or choose them by --feature-cols",
				"%d feature columns, and %s is beyond them or there twice", len(cols), quote(name))
		}
		cols[number], names[number] = d.cols[i], name
	}
	d.cols, d.names = cols, names
	return nil
}

// featureColumns resolves FeatureCols; without it, all columns but the id.
func (t *table) featureColumns(id int) ([]int, error) {
	var cols []int
	add := func(c int) {
		if c != id && !slices.Contains(cols, c) {
			cols = append(cols, c)
		}
	}
	if t.opt.FeatureCols == "" {
		cols = make([]int, 0, t.width)
		for c := range t.width {
			if c != id {
				cols = append(cols, c)
			}
		}
		return cols, t.someFeatures(cols)
	}
	for part := range strings.SplitSeq(t.opt.FeatureCols, ",") {
		part = strings.TrimSpace(part)
		prefix, isPrefix := strings.CutSuffix(part, "*")
		found := false
		for c, name := range t.names {
			if isPrefix && strings.HasPrefix(name, prefix) || strings.HasPrefix(name, part+"[") {
				add(c)
				found = true
			}
		}
		if found {
			continue
		}
		c, err := t.column(part, nil, -1, true)
		if err != nil {
			return nil, err
		}
		add(c)
	}
	return cols, t.someFeatures(cols)
}

// someFeatures refuses a table without feature columns, unless it has no rows either.
func (t *table) someFeatures(cols []int) error {
	if len(cols) == 0 && t.width > 0 {
		return t.headError(t.columnsHint(), "there is no feature column beside the id")
	}
	return nil
}

// readFeatures reads the feature table, if there is one and it is text.
func (r *reader) readFeatures(ctx context.Context) error {
	if r.opt.Features == "" || r.matrix != nil {
		return nil
	}
	t, err := r.openText(ctx, r.opt.Features, roleFeatures)
	if err != nil {
		return err
	}
	defer t.close()
	id, err := t.idColumn()
	if err != nil {
		return err
	}
	if t.width == 1 && !t.numbered {
		return t.headError(t.oneFieldHint(), "no feature column: the first row has 1 field")
	}
	if isSparse(t.names) {
		r.features = &sparseTable{file: t.in.name, weighted: t.width == 3, numCols: r.opt.NumFeatures}
	} else {
		d := &denseTable{file: t.in.name, idCol: id}
		if d.cols, err = t.featureColumns(id); err != nil {
			return err
		}
		for _, c := range d.cols {
			d.names = append(d.names, t.columnName(c, fmt.Sprint(c+1)))
		}
		if err := t.use(append([]int{id}, d.cols...)...); err != nil {
			return err
		}
		if r.opt.FeatureCols != "" {
			t.noteUnused(append([]int{id}, d.cols...)...)
		}
		r.features = d
	}
	return r.eachNode(ctx, t, id, func(num int32) error { return r.features.set(ctx, r, t, num) })
}

// isSparse reports whether a header is that of a sparse table: an id, feature and perhaps value, in this order.
func isSparse(names []string) bool {
	return (len(names) == 2 || len(names) == 3 && strings.EqualFold(names[2], "value")) &&
		is(names[0], idNames) && strings.EqualFold(names[1], "feature")
}

// denseTable holds rows of floats in the order they were read.
type denseTable struct {
	file  string
	cols  []int
	names []string
	idCol int // -1: the rows of Nodes, each id once

	nums   []int32 // of each row
	seen   []bool  // by number
	chunks [][]float32
}

func (d *denseTable) columns() int            { return len(d.cols) }
func (d *denseTable) source() (string, int64) { return d.file, 0 }

// rowsPerChunk makes chunks of about 1 MiB.
func (d *denseTable) rowsPerChunk() int { return max(1, 1<<18/max(1, len(d.cols))) }

func (d *denseTable) set(ctx context.Context, r *reader, t *table, num int32) error {
	if d.idCol >= 0 {
		d.seen = grow(d.seen, int(num)+1, false)
		if d.seen[num] {
			id := string(t.scan.field(d.idCol))
			return &Error{File: t.in.name, Line: t.scan.start, Column: t.columnName(d.idCol, "node"), Value: id,
				Msg:  fmt.Sprintf("has a row already in %s %d", t.placeWord(), r.lineOfID(ctx, r.opt.Features, roleFeatures, id)),
				Hint: "a sparse table needs the header node,feature[,value]"}
		}
		d.seen[num] = true
	}
	if len(d.nums)%d.rowsPerChunk() == 0 {
		if bytes := mulSize(len(d.nums), len(d.cols)); bytes > uint64(r.opt.MaxFeatureBytes) {
			return r.tooManyFeatures(t.in.name, t.scan.start, len(d.nums), len(d.cols))
		}
		d.chunks = append(d.chunks, nil)
	}
	last := &d.chunks[len(d.chunks)-1]
	for i, c := range d.cols {
		field := t.scan.field(c)
		v, fault := parseFloat32(field)
		if fault != numberOK {
			hint := fault.hint()
			if len(d.nums) == 0 && t.names == nil {
				hint = "if this row is a header, --table-header yes"
			}
			return &Error{File: t.in.name, Line: t.scan.start, Column: d.names[i], Value: string(field), Msg: fault.String(), Hint: hint}
		}
		*last = append(*last, v)
	}
	d.nums = append(d.nums, num)
	return nil
}

func (d *denseTable) place(_ context.Context, _ *reader, number []int32, out []float32, present []bool) error {
	cols, per := len(d.cols), d.rowsPerChunk()
	for c, chunk := range d.chunks {
		for i := range len(chunk) / cols {
			v := int(number[d.nums[c*per+i]])
			copy(out[v*cols:(v+1)*cols], chunk[i*cols:])
			present[v] = true
		}
		d.chunks[c] = nil
	}
	return nil
}

// sparseTable holds the entries of a sparse table in the order they were read, 12 bytes each.
type sparseTable struct {
	file     string
	weighted bool // there is a value column
	chunks   [][]sparseEntry
	numCols  int
	maxLine  int64 // line of the largest feature
}

type sparseEntry struct {
	num, feature int32
	value        float32
}

const sparseChunk = 1 << 16

func (s *sparseTable) columns() int            { return s.numCols }
func (s *sparseTable) source() (string, int64) { return s.file, s.maxLine }

func (s *sparseTable) set(_ context.Context, r *reader, t *table, num int32) error {
	fault := func(col int, msg, hint string) error {
		return &Error{File: t.in.name, Line: t.scan.start, Column: t.names[col], Value: string(t.scan.field(col)), Msg: msg, Hint: hint}
	}
	if t.src != nil && len(t.scan.field(1)) == 0 { // the node has a row, and nothing in it
		s.add(sparseEntry{num, -1, 0})
		return nil
	}
	feature, ok := snapshot.CanonicalInt(t.scan.field(1))
	switch {
	case !ok || feature < 0:
		return fault(1, "is not a feature number", "features are numbered 0, 1, 2, ...")
	case feature >= math.MaxInt32:
		return fault(1, "is too large for a feature number", "features are numbered 0, 1, 2, ...")
	case r.opt.NumFeatures > 0 && feature >= int64(r.opt.NumFeatures):
		return fault(1, fmt.Sprintf("is not below the number of features, %d", r.opt.NumFeatures), "features are numbered 0, 1, 2, ...")
	}
	value := float32(1)
	if s.weighted {
		var bad numberFault
		if value, bad = parseFloat32(t.scan.field(2)); bad != numberOK {
			return fault(2, bad.String(), bad.hint())
		}
	}
	if int(feature) >= s.numCols {
		s.numCols, s.maxLine = int(feature)+1, t.scan.start
	}
	s.add(sparseEntry{num, int32(feature), value})
	return nil
}

func (s *sparseTable) add(e sparseEntry) {
	if n := len(s.chunks); n == 0 || len(s.chunks[n-1]) == sparseChunk {
		s.chunks = append(s.chunks, nil)
	}
	last := &s.chunks[len(s.chunks)-1]
	*last = append(*last, e)
}

func (s *sparseTable) place(ctx context.Context, r *reader, number []int32, out []float32, present []bool) error {
	given := make([]uint64, (len(out)+63)/64) // a bit for each pair given
	for c, chunk := range s.chunks {
		for i, e := range chunk {
			present[number[e.num]] = true
			if e.feature < 0 {
				continue
			}
			at := int(number[e.num])*s.numCols + int(e.feature)
			if given[at/64]&(1<<(at%64)) != 0 {
				if out[at] != e.value {
					return s.contradiction(ctx, r, c*sparseChunk+i)
				}
				r.report.FeatureRepeats++
			}
			given[at/64] |= 1 << (at % 64)
			out[at] = e.value
		}
		s.chunks[c] = nil
	}
	if n := r.report.FeatureRepeats; n > 0 {
		r.report.Notices = append(r.report.Notices, fmt.Sprintf("%s: %d %s repeated", oneLine(s.file), n, entries(n)))
	}
	return nil
}

// contradiction says that entry n gives a pair another value than an earlier entry, by reading the file again.
func (s *sparseTable) contradiction(ctx context.Context, r *reader, n int) error {
	e := &Error{File: s.file, Msg: "a pair of node and feature has two values"}
	t, err := openTable(ctx, &r.opt, r.opt.Features, roleFeatures)
	if err != nil {
		return e
	}
	defer t.close()
	for range n + 1 {
		if ok, err := t.next(ctx); !ok || err != nil {
			return e
		}
	}
	node, feature := string(t.scan.field(0)), string(t.scan.field(1))
	e.Line, e.Column, e.Value = t.scan.start, t.names[2], string(t.scan.field(2))
	first := int64(0)
	if t2, err := openTable(ctx, &r.opt, r.opt.Features, roleFeatures); err == nil {
		defer t2.close()
		for first == 0 {
			if ok, err := t2.next(ctx); !ok || err != nil {
				break
			}
			if string(t2.scan.field(0)) == node && string(t2.scan.field(1)) == feature {
				first = t2.scan.start
			}
		}
	}
	e.Msg = fmt.Sprintf("contradicts line %d about node %s, feature %s", first, quote(node), feature)
	return e
}

// mulSize is the bytes of a float32 matrix, MaxUint64 if that overflows.
func mulSize(rows, cols int) uint64 {
	hi, lo := bits.Mul64(uint64(rows), uint64(cols))
	if hi != 0 || lo > math.MaxUint64/4 {
		return math.MaxUint64
	}
	return 4 * lo
}

// tooManyFeatures refuses a matrix larger than MaxFeatureBytes.
func (r *reader) tooManyFeatures(file string, line int64, rows, cols int) error {
	return &Error{File: file, Line: line, Err: ErrLimit,
		Msg: fmt.Sprintf("%d nodes with %d features are more than %d MiB of float32", rows, cols, r.opt.MaxFeatureBytes>>20)}
}

// placeFeatures builds the feature matrix in node order and normalises it.
func (r *reader) placeFeatures(ctx context.Context, ids *snapshot.IDs, number []int32) (*snapshot.Features, error) {
	n, cols := ids.Len(), 0
	file, line := "", int64(0)
	switch {
	case r.matrix != nil:
		cols, file = r.matrix.cols, r.matrix.file
	case r.features != nil:
		cols = r.features.columns()
		file, line = r.features.source()
	default:
		return nil, nil
	}
	if cols == 0 {
		return nil, &Error{File: file, Msg: "there are no features"}
	}
	if mulSize(n, cols) > uint64(r.opt.MaxFeatureBytes) {
		return nil, r.tooManyFeatures(file, line, n, cols)
	}
	f := &snapshot.Features{NumCols: cols, Data: make([]float32, n*cols)}
	r.report.NumFeatures = cols
	if r.matrix != nil {
		r.doneBytes, r.totalBytes = 0, r.matrix.dataBytes
		if err := r.matrix.fill(ctx, r, number, f.Data); err != nil {
			return nil, err
		}
	} else {
		present := make([]bool, n)
		if err := r.features.place(ctx, r, number, f.Data, present); err != nil {
			return nil, err
		}
		if !r.opt.Change {
			if err := r.missing(file, ids, present); err != nil {
				return nil, err
			}
		}
	}
	r.features = nil
	return f, r.normalise(file, ids, f)
}

// missing counts the nodes without a feature row and refuses them unless told otherwise.
func (r *reader) missing(file string, ids *snapshot.IDs, present []bool) error {
	var first []string
	missing := int64(0)
	for v, ok := range present {
		if !ok {
			if missing++; missing <= 5 {
				first = append(first, quote(string(ids.At(int32(v)))))
			}
		}
	}
	if missing == 0 {
		return nil
	}
	msg := fmt.Sprintf("%d of %d nodes have no feature row, first %s", missing, len(present), strings.Join(first, ", "))
	if r.opt.MissingFeatures == MissingError {
		return &Error{File: file, Msg: msg, Hint: "--missing-features zero fills them with zeros"}
	}
	r.report.MissingFeatures = missing
	r.report.Warnings = append(r.report.Warnings, oneLine(file)+": "+msg+": filled with zeros")
	return nil
}

// normRows is how many rows are summed before their sum is added to the total: a fixed number, so that threads
// change nothing.
const normRows = 4096

// normalise applies FeatureNorm to f in place.
func (r *reader) normalise(file string, ids *snapshot.IDs, f *snapshot.Features) error {
	switch r.opt.FeatureNorm {
	case NormRow:
		zero, bad := normaliseRows(f.Data, f.NumCols, r.opt.Threads)
		if bad >= 0 {
			return &Error{File: file, Msg: fmt.Sprintf("the features of node %s divided by their sum don't fit in float32", quote(string(ids.At(int32(bad)))))}
		}
		if zero > 0 {
			r.report.Warnings = append(r.report.Warnings, fmt.Sprintf("%s: %d feature rows sum to 0 though not all zero: left as they are", oneLine(file), zero))
		}
	case NormStandard:
		normaliseColumns(f.Data, f.NumCols, r.opt.Threads)
	}
	return nil
}

// normaliseRows divides each row of x, [rows, cols], by its sum: float64 in column order, one rounding. Rows that
// sum to 0 stay; zero counts those that aren't all zero. bad is the first row with a value that overflows, or -1.
func normaliseRows(x []float32, cols, threads int) (zero int64, bad int) {
	rows := len(x) / cols
	blocks := (rows + normRows - 1) / normRows
	zeros, bads := make([]int64, blocks), make([]int, blocks)
	eachBlock(rows, threads, func(b, from, to int) {
		bads[b] = -1
		for i := from; i < to; i++ {
			row := x[i*cols : (i+1)*cols]
			sum := 0.0
			for _, v := range row {
				sum += float64(v)
			}
			if sum == 0 {
				if slices.ContainsFunc(row, func(v float32) bool { return v != 0 }) {
					zeros[b]++
				}
				continue
			}
			for j, v := range row {
				q := float32(float64(v) / sum)
				if math.IsInf(float64(q), 0) && bads[b] < 0 {
					bads[b] = i
				}
				row[j] = q
			}
		}
	})
	bad = -1
	for b := range blocks {
		zero += zeros[b]
		if bad < 0 {
			bad = bads[b]
		}
	}
	return zero, bad
}

// normaliseColumns brings each column of x, [rows, cols], to mean 0 and (population) standard deviation 1. Sums
// are float64 over blocks of normRows rows, added in order of blocks; constant columns become 0.
func normaliseColumns(x []float32, cols, threads int) {
	rows := len(x) / cols
	blocks := (rows + normRows - 1) / normRows
	// Sums of at most sumBlocks blocks are held at a time.
	total := func(term func(sum []float64, row []float32)) []float64 {
		const sumBlocks = 64
		sums := make([]float64, cols)
		part := make([]float64, min(blocks, sumBlocks)*cols)
		for first := 0; first < blocks; first += sumBlocks {
			clear(part)
			end := min(rows, (first+sumBlocks)*normRows)
			eachBlock(end-first*normRows, threads, func(b, from, to int) {
				for i := from; i < to; i++ {
					at := (first*normRows + i) * cols
					term(part[b*cols:(b+1)*cols], x[at:at+cols])
				}
			})
			for b := range min(sumBlocks, blocks-first) {
				for j, v := range part[b*cols : (b+1)*cols] {
					sums[j] += v
				}
			}
		}
		return sums
	}
	mean := total(func(sum []float64, row []float32) {
		for j, v := range row {
			sum[j] += float64(v)
		}
	})
	for j := range mean {
		mean[j] /= float64(rows)
	}
	scale := total(func(sum []float64, row []float32) {
		for j, v := range row {
			d := float64(v) - mean[j]
			sum[j] += float64(d * d)
		}
	})
	constant := slices.Repeat([]bool{true}, cols)
	for i := cols; i < len(x); i += cols {
		for j := range constant {
			constant[j] = constant[j] && x[i+j] == x[j]
		}
	}
	for j := range scale {
		scale[j] = math.Sqrt(scale[j] / float64(rows))
	}
	eachBlock(rows, threads, func(_, from, to int) {
		for i := from; i < to; i++ {
			row := x[i*cols : (i+1)*cols]
			for j, v := range row {
				if constant[j] || scale[j] == 0 {
					row[j] = 0
					continue
				}
				row[j] = float32((float64(v) - mean[j]) / scale[j])
			}
		}
	})
}

// eachBlock calls f for blocks of normRows of rows in up to threads goroutines.
func eachBlock(rows, threads int, f func(b, from, to int)) {
	blocks := (rows + normRows - 1) / normRows
	parallelEach(blocks, threads, func(b int) { f(b, b*normRows, min(rows, (b+1)*normRows)) })
}

// openMatrix opens Features if it is a .npy or .npz. Without Nodes its rows are the node set.
func (r *reader) openMatrix() error {
	if r.opt.Features == "" {
		return nil
	}
	if r.opt.sources[r.opt.Features] != nil {
		return nil
	}
	name := r.opt.nameOf(r.opt.Features)
	head, err := readHead(r.opt.Features, name)
	if err != nil {
		return err
	}
	switch lower := strings.ToLower(r.opt.Features); {
	case strings.HasSuffix(lower, ".npz") || bytes.HasPrefix(head, zipMagic):
		r.matrix, err = openNPZ(r.opt.Features, name, r.opt.FeatureMember)
	case strings.HasSuffix(lower, ".npy") || bytes.HasPrefix(head, npyMagic):
		r.matrix, err = openNPY(r.opt.Features, name)
	case strings.HasSuffix(lower, ".npy.gz") || strings.HasSuffix(lower, ".npy.zst"):
		return &Error{File: name, Msg: "compressed .npy files are not read", Hint: "decompress it, or save it as .npz"}
	default:
		return nil
	}
	if err != nil {
		r.matrix = nil
		return err
	}
	m := r.matrix
	r.report.Files = append(r.report.Files, &FileReport{Name: m.file, Role: roleFeatures, Format: m.format, Rows: int64(m.rows)})
	if mulSize(m.rows, m.cols) > uint64(r.opt.MaxFeatureBytes) {
		return r.tooManyFeatures(m.file, 0, m.rows, m.cols)
	}
	if r.opt.Nodes != "" {
		if n := r.dict.len(); n != m.rows {
			return &Error{File: m.file, Msg: fmt.Sprintf("%d %s for %d %s", m.rows, plural(m.rows, "row"), n, plural(n, "node")), Hint: "row i belongs to data row i of " + r.opt.nameOf(r.opt.Nodes)}
		}
		return nil
	}
	if m.rows > maxNumber {
		return &Error{File: m.file, Msg: fmt.Sprintf("%d rows, but at most %d nodes can be numbered", m.rows, maxNumber), Err: ErrLimit}
	}
	r.dict.addRange(m.rows)
	r.dict.closed = true
	r.closer = fmt.Sprintf("is not a row number of %s, which has %d %s", m.file, m.rows, plural(m.rows, "row"))
	return nil
}
