package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/prelift/prelift/snapshot"
)

// rowSource gives the rows of a table that isn't plain text.
type rowSource interface {
	// next puts the next row into t.scan: text, fields, start (its line or row) and, where the format has them, nulls.
	// io.EOF ends the table.
	next(ctx context.Context, t *table) error
	close()
}

// opener opens a table that is no file of its own.
type opener func(ctx context.Context, opt *Options, role string) (*table, error)

// newSourceTable makes a table of a source with named columns. name is what messages call it, byRow says that its
// places are rows.
func newSourceTable(opt *Options, path, role, format string, names []string, byRow bool, src rowSource) *table {
	name := opt.nameOf(path)
	if byRow {
		opt.byRow[name] = true
	}
	t := &table{opt: opt, in: &input{path: path, name: name, line: 1, closeText: func() {}, size: fileSize(path)},
		report: &FileReport{Name: name, Role: role, Format: format, Header: true},
		names:  names, width: len(names), src: src, relCol: -1, typeCol: -1, wantRows: -1}
	t.scan.file = name
	return t
}

// nextOfSource is next for a table with a source.
func (t *table) nextOfSource(ctx context.Context) (bool, error) {
	const often = 1 << 14 // rows between looks at ctx
	if t.row%often == 0 {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if t.onBlock != nil {
			t.onBlock()
		}
	}
	t.scan.nulls = nil
	if err := t.src.next(ctx, t); err == io.EOF {
		t.finish()
		return false, nil
	} else if err != nil {
		return false, err
	}
	if len(t.scan.fields) != t.width {
		return false, t.scan.widthError(t.width)
	}
	t.row++
	return true, nil
}

// use says which columns are wanted, to a source that can leave the others out.
func (t *table) use(cols ...int) error {
	if s, ok := t.src.(interface{ use([]int) error }); ok {
		return s.use(cols)
	}
	return nil
}

// startRow begins a row that put fills.
func (s *scanner) startRow(place int64) {
	s.text, s.fields, s.start = s.text[:0], s.fields[:0], place
}

// put adds a field to the row.
func (s *scanner) put(field []byte) {
	off := len(s.text)
	s.text = append(s.text, field...)
	s.fields = append(s.fields, span{off, len(s.text)})
}

// putString is put for a string.
func (s *scanner) putString(field string) {
	off := len(s.text)
	s.text = append(s.text, field...)
	s.fields = append(s.fields, span{off, len(s.text)})
}

// isNull reports whether the source gave field i as a null, which reads as empty.
func (s *scanner) isNull(i int) bool { return i < len(s.nulls) && s.nulls[i] }

// The kinds of files, by which openers and edge formats are chosen. kindText is every text dialect.
const (
	kindText     = "text"
	kindProperty = "property" // Neo4j and Gremlin CSV
	kindJSON     = "json"
	kindLINQS    = "linqs"
)

// openers open the kinds of tables other than text.
var openers map[string]func(ctx context.Context, opt *Options, path, role string) (*table, error)

func init() { // openers call openTable
	openers = map[string]func(ctx context.Context, opt *Options, path, role string) (*table, error){
		kindProperty: openProperty, FormatTriples: openTriples, FormatOpenKE: openOpenKE,
		kindJSON: openJSON, kindLINQS: openLINQS, FormatGraphML: openGraphML,
		FormatMTX: openMTX, FormatParquet: openParquet, FormatArrow: openArrow,
	}
}

// extensions are the kinds that a file name tells.
var extensions = map[string]string{
	".mtx": FormatMTX, ".matrixmarket": FormatMTX,
	".parquet": FormatParquet, ".pq": FormatParquet,
	".arrow": FormatArrow, ".arrows": FormatArrow, ".feather": FormatArrow, ".ipc": FormatArrow,
	".json": kindJSON, ".content": kindLINQS, ".cites": kindLINQS, ".graphml": FormatGraphML,
	".csv": kindText, ".tsv": kindText, ".tab": kindText, ".txt": kindText, ".edgelist": kindText, ".edges": kindText,
	".el": kindText, ".snap": kindText, ".list": kindText,
}

// kindOf tells the kind of a file by its role, its name and its first bytes.
func kindOf(opt *Options, path, role string) (string, error) {
	if opt.headers[path] != "" {
		return kindProperty, nil
	}
	if role == roleEdges {
		switch opt.Format {
		case FormatAuto:
		case FormatCSV, FormatTSV, FormatSNAP:
			return kindText, nil
		default:
			return opt.Format, nil
		}
	}
	name := bareName(path)
	if role == roleEdges && IsOpenKE(path) {
		return FormatOpenKE, nil
	}
	kind := extensions[filepath.Ext(name)]
	if kind != "" {
		return kind, nil
	}
	head, err := peek(opt, path)
	if err != nil {
		return "", err
	}
	switch {
	case bytes.HasPrefix(head, parquetMagic):
		return FormatParquet, nil
	case bytes.HasPrefix(head, arrowMagic) || bytes.HasPrefix(head, arrowContinue):
		return FormatArrow, nil
	}
	if role == roleEdges {
		if bytes.HasPrefix(head, mtxBanner) {
			return FormatMTX, nil
		}
		if bytes.HasPrefix(head, []byte("<")) && bytes.Contains(head, []byte("<graphml")) { // there may be long comments before
			return FormatGraphML, nil
		}
	}
	return kindText, nil
}

// peek returns up to peekSize bytes of a file, decompressed.
func peek(opt *Options, path string) ([]byte, error) {
	in, err := openInput(opt, path)
	if err != nil {
		return nil, err
	}
	defer in.close()
	return in.carry, nil
}

// rowEdges is the edgeFormat of every kind of edges that is read row by row.
type rowEdges struct{}

func (rowEdges) match(*Options, string) bool { return true }

// openEdgeRows opens an edge table of any kind.
func openEdgeRows(ctx context.Context, opt *Options, path string) (*table, edgeColumns, error) {
	t, err := openTable(ctx, opt, path, roleEdges)
	if err != nil {
		return nil, edgeColumns{}, err
	}
	cols, err := t.edgeColumns()
	if err != nil {
		t.close()
		return nil, cols, err
	}
	return t, cols, nil
}

func (rowEdges) rows(ctx context.Context, r *reader, path string, f func(line int64, ids ...[]byte) bool) error {
	t, cols, err := openEdgeRows(ctx, &r.opt, path)
	if err != nil {
		return err
	}
	defer t.close()
	for {
		if ok, err := t.next(ctx); !ok || err != nil {
			return err
		}
		if !f(t.scan.start, t.scan.field(cols.src), t.scan.field(cols.dst)) {
			return nil
		}
	}
}

// Rows of a batch, and bytes of its ids, at which it goes to the sink.
const (
	rowsPerBatch = 1 << 13
	textPerBatch = 1 << 20
)

func (rowEdges) read(ctx context.Context, r *reader, path string, sink *edgeSink) error {
	t, cols, err := openEdgeRows(ctx, &r.opt, path)
	if err != nil {
		return err
	}
	defer t.close()
	r.report.Files = append(r.report.Files, t.report)
	if err := r.alike(t, cols); err != nil {
		return err
	}
	if err := t.use(cols.src, cols.dst, cols.weight, cols.rel); err != nil {
		return err
	}
	t.noteUnused(cols.src, cols.dst, cols.weight, cols.rel)
	sink.names = t.edgeNames(cols)
	ctx, cancel := context.WithCancel(ctx)
	stored := storeBatches(r, sink, cancel)
	for more := true; more && ctx.Err() == nil; {
		b := stored.next()
		more = b.readRows(ctx, t, cols, sink)
		b.file, b.readBytes = t.in.name, t.in.read.Load()
		if c, ok := t.src.(*columnarSource); ok {
			b.readBytes = c.readBytes(t.in.size)
		}
		stored.put(b)
	}
	err = stored.wait()
	if err == nil {
		err = ctx.Err()
	}
	cancel()
	if err != nil {
		return err
	}
	t.finish()
	r.doneBytes += t.in.size
	return t.checkRows()
}

// batchStore numbers and stores batches in a goroutine of its own, in the order they are put.
type batchStore struct {
	free, full chan *edgeBatch
	done       chan struct{}
	err        error // of the first batch with a fault; the others after it are dropped
}

// storeBatches starts a batchStore; failed is called at the first fault. wait ends it.
func storeBatches(r *reader, sink *edgeSink, failed func()) *batchStore {
	const batches = 3 // one that is read, one that is stored, one between them
	s := &batchStore{free: make(chan *edgeBatch, batches), full: make(chan *edgeBatch, batches), done: make(chan struct{})}
	for range batches {
		s.free <- &edgeBatch{}
	}
	go func() {
		defer close(s.done)
		for b := range s.full {
			if s.err == nil {
				sink.number(b)
				if s.err = sink.store(b); s.err != nil {
					failed()
				} else {
					r.progress(roleEdges, b.readBytes)
				}
			}
			s.free <- b
		}
	}()
	return s
}

// next returns an empty batch for put.
func (s *batchStore) next() *edgeBatch {
	b := <-s.free
	b.reset()
	b.text = b.text[:0]
	return b
}

func (s *batchStore) put(b *edgeBatch) { s.full <- b }

// wait returns the first fault once all batches are stored.
func (s *batchStore) wait() error {
	close(s.full)
	<-s.done
	return s.err
}

// readRows fills an empty batch with the next rows and reports whether there may be more.
func (b *edgeBatch) readRows(ctx context.Context, t *table, cols edgeColumns, sink *edgeSink) (more bool) {
	if c, ok := t.src.(*columnarSource); ok && !t.opt.noFast {
		switch ok, err := c.takeInts(ctx, t, cols, b); {
		case err == io.EOF:
			return false
		case err != nil:
			b.err = err
			return false
		case ok:
			return true
		}
		b.weights = b.weights[:0]
	}
	b.isBytes = true
	for b.rows < rowsPerBatch && len(b.text) < textPerBatch {
		if more, b.err = t.next(ctx); b.err == nil && more {
			b.err = b.take(&t.scan, cols, &sink.names)
		}
		if b.err != nil || !more {
			return false
		}
	}
	return true
}

// take adds the row in s to the batch.
func (b *edgeBatch) take(s *scanner, cols edgeColumns, names *edgeNames) error {
	for i, c := range [...]int{cols.src, cols.dst} {
		if s.isNull(c) {
			return &Error{File: s.file, Line: s.start, Column: names.column(i), Msg: "null id"}
		}
		if err := checkID(s.field(c), s.file, s.start, names.column(i)); err != nil {
			return err
		}
	}
	if cols.weight >= 0 {
		if err := b.addWeight(s, cols.weight, names.weight); err != nil {
			return err
		}
	}
	if cols.rel >= 0 {
		rel, err := s.relation(cols.rel, names.rel)
		if err != nil {
			return err
		}
		b.rels = append(b.rels, b.copyText(rel))
	}
	b.mark(s.start)
	b.places = append(b.places, b.copyText(s.field(cols.src)), b.copyText(s.field(cols.dst)))
	if names.areIDs(s.field(cols.src), s.field(cols.dst)) {
		b.headers++
	}
	b.rows++
	return nil
}

// copyText puts text behind the batch's and returns its place.
func (b *edgeBatch) copyText(text []byte) uint64 {
	off := len(b.text)
	b.text = append(b.text, text...)
	return pack(span{off, len(b.text)})
}

// checkRows refuses a file that was cut or lied about its rows.
func (t *table) checkRows() error {
	if t.wantRows < 0 || t.wantRows == t.row {
		return nil
	}
	if t.wantFile != "" {
		return &Error{File: t.in.name, Msg: fmt.Sprintf("%s says %d rows, found %d", t.wantFile, t.wantRows, t.row), Hint: "one of the files is cut or was edited"}
	}
	return &Error{File: t.in.name, Line: t.headLine, Msg: fmt.Sprintf("line %d says %d, found %d", t.headLine, t.wantRows, t.row), Hint: "the file is cut or was edited"}
}

// placeWord is how messages call a place in the table: line or row.
func (t *table) placeWord() string {
	if t.opt.byRow[t.in.name] {
		return "row"
	}
	return "line"
}

// relations numbers relation names while edges are read.
type relations struct {
	names *dict
	file  string // first edge file with rows
	known bool   // whether it has relations
}

// alike refuses edge files some of which have weights, or relations, and others none.
func (r *reader) alike(t *table, cols edgeColumns) error {
	if err := r.weightedAlike(t, cols); err != nil || t.width == 0 {
		return err
	}
	has := cols.rel >= 0
	if r.rels.file == "" {
		r.rels.file, r.rels.known = t.in.name, has
		if has {
			r.rels.names = newDict(true)
		}
		return nil
	}
	if has == r.rels.known {
		return nil
	}
	return differ(t.in.name, r.rels.file, r.rels.known, "relations", "--rel-col chooses the column")
}

// place returns the names of relations in bytewise order, and the place there of each number.
func (rel *relations) place() (names []string, number []int32) {
	if !rel.known {
		return nil, nil
	}
	ids, number := rel.names.sorted(true, 1)
	names = []string{}
	for i := range ids.Len() {
		names = append(names, string(ids.At(int32(i))))
	}
	return names, number
}

// nodeTypes collects node types by the numbers of dict.
type nodeTypes struct {
	col   int
	names *dict
	types []int32 // by number: the type's number in names + 1, 0 = none
}

// nodeTypes returns the collector of a node table with a type column, nil if there is none.
func (r *reader) nodeTypes(t *table) (*nodeTypes, error) {
	col := t.typeCol
	if r.opt.TypeCol != "" {
		var err error
		if col, err = t.column(r.opt.TypeCol, nil, -1, true); err != nil {
			return nil, err
		}
	}
	if col < 0 {
		return nil, nil
	}
	return &nodeTypes{col: col, names: newDict(true)}, nil
}

func (n *nodeTypes) set(t *table, num int32) error {
	name := t.scan.field(n.col)
	if len(name) > maxID {
		return &Error{File: t.in.name, Line: t.scan.start, Column: t.columnName(n.col, "type"), Value: string(name), Msg: "is a type longer than 1 MiB", Err: ErrLimit}
	}
	n.types = grow(n.types, int(num)+1, 0)
	n.types[num] = n.names.add(name) + 1
	return nil
}

// place puts types in node order: number[i] is the node number of the id numbered i.
func (n *nodeTypes) place(number []int32) *snapshot.Types {
	if n == nil {
		return nil
	}
	n.types = grow(n.types, len(number), 0)
	for i, v := range n.types {
		if v == 0 {
			n.types[i] = n.names.add(nil) + 1
		}
	}
	ids, place := n.names.sorted(true, 1)
	out := &snapshot.Types{Type: make([]int32, len(number))}
	for i := range ids.Len() {
		out.Names = append(out.Names, string(ids.At(int32(i))))
	}
	for i, v := range n.types {
		out.Type[number[i]] = place[v-1]
	}
	return out
}
