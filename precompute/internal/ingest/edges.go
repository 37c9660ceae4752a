package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"sync"

	"github.com/prelift/prelift/snapshot/graph"
	"golang.org/x/sys/unix"

	"github.com/prelift/prelift/snapshot"
)

// edgeFormat reads one edge file. A format is one value in edgeFormats; it turns the file into edgeBatches and
// gives them to the sink in file order.
type edgeFormat interface {
	// match reports whether a file of the kind is read by this format.
	match(opt *Options, kind string) bool
	read(ctx context.Context, r *reader, path string, sink *edgeSink) error
	// rows calls f with the line and the ids of each row, until f says stop. It is for error messages: slow and simple.
	rows(ctx context.Context, r *reader, path string, f func(line int64, ids ...[]byte) (more bool)) error
}

// edgeFormats are tried in order; the last takes everything.
var edgeFormats = []edgeFormat{textEdges{}, mtxEdges{}, rowEdges{}}

func edgeFormatOf(opt *Options, path string) (edgeFormat, error) {
	kind := "source"
	if opt.sources[path] == nil {
		var err error
		if kind, err = kindOf(opt, path, roleEdges); err != nil {
			return nil, err
		}
	}
	i := slices.IndexFunc(edgeFormats, func(f edgeFormat) bool { return f.match(opt, kind) })
	return edgeFormats[i], nil
}

// edgeBatch is a run of edge rows of one file, on its way from ids to numbers. Its ids are all integers (canonical ones)
// or all spans of text.
type edgeBatch struct {
	file    string // for messages
	rows    int
	isBytes bool
	ints    []int64  // src, dst of the last rows, which have no numbers yet
	places  []uint64 // src, dst of each row, packed spans of text
	text    []byte
	nums    []int32   // numbers of src, dst of each row
	weights []float32 // of each row, if the file has weights
	rels    []uint64  // of each row, if the file has relations: packed spans of text
	relNums []int32   // their numbers
	marks   []lineMark
	blank   int64
	comment int64
	headers int64 // rows that repeat the header
	small   int64 // weights over 0 that are 0 in float32
	err     error // the first fault; there may be rows behind it

	readBytes int64 // of the file, with all before
}

// reset empties the batch.
func (b *edgeBatch) reset() {
	b.rows, b.isBytes, b.blank, b.comment, b.headers, b.small, b.err = 0, false, 0, 0, 0, 0, nil
	b.ints, b.places, b.nums, b.weights = b.ints[:0], b.places[:0], b.nums[:0], b.weights[:0]
	b.rels, b.relNums, b.marks = b.rels[:0], b.relNums[:0], b.marks[:0]
}

// lineMark says that row stands in line, and the rows after it up to the next mark in the lines after it.
type lineMark struct {
	row  int
	line int64
}

// lineOf returns the line of a row.
func (b *edgeBatch) lineOf(row int) int64 {
	i := sort.Search(len(b.marks), func(i int) bool { return b.marks[i].row > row }) - 1
	return b.marks[i].line + int64(row-b.marks[i].row)
}

// edgeSink numbers the ids of batches and collects the edges of all files. number and numberInts may be called for
// several batches at a time; they find the first fault of a batch by line. store takes batches in the order of the file.
type edgeSink struct {
	r    *reader
	list *graph.EdgeList // nil until there are edges

	lower  bool // of the file: edges are entries of a symmetric matrix, on or below its diagonal
	mirror bool // of the file: each edge comes back too
	names  edgeNames

	headers, small int64 // of the file: as in edgeBatch
}

// edgeNames are what messages call the columns.
type edgeNames struct{ src, dst, weight, rel string }

// column is the name of id i of a batch.
func (n *edgeNames) column(i int) string {
	if i%2 == 0 {
		return n.src
	}
	return n.dst
}

// number numbers all that numberInts hasn't.
func (s *edgeSink) number(b *edgeBatch) {
	if len(b.ints) > 0 {
		if s.r.dict.holdInts() {
			s.numberInts(b)
			s.r.dict.releaseInts()
		} else {
			b.spellInts()
		}
	}
	if b.isBytes {
		s.numberSpans(b)
	}
	if len(b.rels) > 0 && b.err == nil {
		b.relNums = slices.Grow(b.relNums[:0], b.rows)[:b.rows]
		if done := s.r.rels.names.addSpans(b.text, b.rels, b.relNums); done < b.rows {
			b.err = tooManyRelations(b.file)
		}
	}
	if s.mirror && b.err == nil {
		b.addMirrored()
	}
}

// numberInts numbers the rows of b.ints, which holdInts holds, and reports whether there was no fault.
func (s *edgeSink) numberInts(b *edgeBatch) bool {
	from := len(b.nums)
	b.nums = slices.Grow(b.nums, len(b.ints))[:from+len(b.ints)]
	done := s.r.dict.addInts(b.ints, b.nums[from:])
	if s.lower {
		for i := 0; i+1 < done; i += 2 {
			if b.ints[i] < b.ints[i+1] {
				b.err = s.aboveDiagonal(b, from+i, b.ints[i], b.ints[i+1])
				return false
			}
		}
	}
	if done < len(b.ints) {
		b.err = s.codeError(b, from+done, strconv.FormatInt(b.ints[done], 10))
		return false
	}
	b.ints = b.ints[:0]
	return true
}

// numberSpans numbers the rows of b.places.
func (s *edgeSink) numberSpans(b *edgeBatch) {
	n := 2 * b.rows
	b.nums = slices.Grow(b.nums[:0], n)[:n]
	done := s.r.dict.addSpans(b.text, b.places[:n], b.nums)
	if s.r.opt.IDType == IDInteger || s.lower {
		for i := range done {
			if err := s.checkSpan(b, i); err != nil {
				b.err = err
				return
			}
		}
	}
	if done < n {
		b.err = s.codeError(b, done, string(unpack(b.text, b.places[done])))
	}
}

// codeError says what the code in place of number i of the batch means. Which line has one id too many isn't told:
// several goroutines number.
func (s *edgeSink) codeError(b *edgeBatch, i int, value string) error {
	if b.nums[i] == tooMany {
		return &Error{File: b.file, Msg: "one node too many: " + s.r.dict.fullReason(), Err: ErrLimit}
	}
	return s.r.numberError(b.nums[i], b.file, b.lineOf(i/2), s.names.column(i), value)
}

// checkSpan checks id i of b.places.
func (s *edgeSink) checkSpan(b *edgeBatch, i int) error {
	id := unpack(b.text, b.places[i])
	if s.r.opt.IDType == IDInteger {
		if err := checkInteger(id, b.file, b.lineOf(i/2), s.names.column(i)); err != nil {
			return err
		}
	}
	if s.lower && i%2 == 1 {
		src, _ := snapshot.CanonicalInt(unpack(b.text, b.places[i-1]))
		if dst, _ := snapshot.CanonicalInt(id); src < dst {
			return s.aboveDiagonal(b, i, src, dst)
		}
	}
	return nil
}

func (s *edgeSink) aboveDiagonal(b *edgeBatch, i int, src, dst int64) error {
	return &Error{File: b.file, Line: b.lineOf(i / 2), Msg: fmt.Sprintf("entry %d, %d is above the diagonal of a symmetric matrix", src, dst), Hint: "such files hold the lower triangle only"}
}

// spellInts makes the integers of a batch spans of text. None of them has a number.
func (b *edgeBatch) spellInts() {
	b.isBytes, b.text, b.places = true, b.text[:0], b.places[:0]
	for _, v := range b.ints {
		off := len(b.text)
		b.text = strconv.AppendInt(b.text, v, 10)
		b.places = append(b.places, pack(span{off, len(b.text)}))
	}
	b.ints = b.ints[:0]
}

// addMirrored adds each row the other way round behind itself, loops not.
func (b *edgeBatch) addMirrored() {
	extra := 0
	for i := range b.rows {
		if b.nums[2*i] != b.nums[2*i+1] {
			extra++
		}
	}
	at := b.rows + extra // rows are moved up from the last
	b.nums = slices.Grow(b.nums, 2*extra)[:2*at]
	if len(b.weights) > 0 {
		b.weights = slices.Grow(b.weights, extra)[:at]
	}
	put := func(src, dst int32, from int) {
		at--
		b.nums[2*at], b.nums[2*at+1] = src, dst
		if len(b.weights) > 0 {
			b.weights[at] = b.weights[from]
		}
	}
	for i := b.rows - 1; i >= 0; i-- {
		src, dst := b.nums[2*i], b.nums[2*i+1]
		if src != dst {
			put(dst, src, i)
		}
		put(src, dst, i)
	}
}

// store puts the rows of a numbered batch without a fault behind those before it.
func (s *edgeSink) store(b *edgeBatch) error {
	if b.err != nil {
		return b.err
	}
	if s.list == nil {
		s.list = s.newList()
	}
	s.headers, s.small = s.headers+b.headers, s.small+b.small
	return s.list.Append(b.nums, b.weights, b.relNums)
}

// newList makes the list that all edges go to; the first file with rows says what they have.
func (s *edgeSink) newList() *graph.EdgeList {
	opt := graph.ListOptions{Weighted: s.r.weighted, Relational: s.r.rels.known}
	if s.r.opt.ListOptions != nil {
		opt = s.r.opt.ListOptions(opt.Weighted, opt.Relational)
	}
	return graph.NewEdgeList(opt)
}

// textEdges is rowEdges for the text dialects, read faster.
type textEdges struct{ rowEdges }

func (textEdges) match(opt *Options, kind string) bool { return kind == kindText && opt.RelCol == "" }

// noteThirdColumn tells what a third column without a name may be.
func (t *table) noteThirdColumn(cols edgeColumns) {
	if t.names == nil && t.width == 3 && cols.weight < 0 && t.opt.WeightCol == "" {
		t.report.noticef("column 3 may be a weight (--weight-col 3), and column 2 a relation (--triples, or --rel-col 2 --dst-col 3)")
	}
}

// edgeColumns says where the fields of an edge row are.
type edgeColumns struct {
	src, dst, weight, rel int // weight, rel -1: none
	width                 int
}

// edgeColumns resolves the column options against the file.
func (t *table) edgeColumns() (edgeColumns, error) {
	c := edgeColumns{weight: -1, rel: -1, width: t.width}
	if t.width == 0 {
		return c, nil
	}
	if t.report.Format == FormatMTX {
		return t.mtxColumns(), nil
	}
	var err error
	if c.src, err = t.column(t.opt.SrcCol, srcNames, 0, t.opt.SrcCol == ""); err != nil {
		return c, err
	}
	if c.dst, err = t.column(t.opt.DstCol, dstNames, 1, t.opt.DstCol == ""); err != nil {
		return c, err
	}
	if t.opt.WeightCol != WeightNone {
		if c.weight, err = t.column(t.opt.WeightCol, weightName, -1, false); err != nil {
			return c, err
		}
	}
	if c.rel = t.relCol; t.opt.RelCol != "" {
		if c.rel, err = t.column(t.opt.RelCol, nil, -1, true); err != nil {
			return c, err
		}
	}
	if c.src == c.dst || c.src == c.weight || c.dst == c.weight {
		return c, t.headError("", "src, dst and weight must be different columns")
	}
	if c.rel >= 0 && (c.rel == c.src || c.rel == c.dst || c.rel == c.weight) {
		return c, t.headError("", "the relation must be a column of its own")
	}
	return c, nil
}

// edgeParser turns blocks of text into numbered batches. Each worker has its own.
type edgeParser struct {
	edgeBatch
	sink *edgeSink
	cols edgeColumns
	scan scanner
	fast bool // src, dst [, weight] are all the columns
}

// rowsAtOnce is how many rows of integers are numbered at a time: few enough to stay in the first-level cache.
const rowsAtOnce = 1 << 10

// parse fills the batch from a block whose byte pos is in line.
func (p *edgeParser) parse(block []byte, pos int, line int64) {
	if dict := p.sink.r.dict; dict.holdInts() {
		ok := p.run(block, pos, line, false)
		dict.releaseInts()
		if ok {
			return
		}
		// An id that is no canonical integer: all over again. The ids before it keep their numbers.
	}
	p.run(block, pos, line, true)
}

// run is parse for one kind of ids; it stops with false at an id that isn't of that kind.
func (p *edgeParser) run(block []byte, pos int, line int64, isBytes bool) bool {
	p.reset()
	p.isBytes = isBytes
	p.scan.reset(block, pos, line)
	var fault error
	for p.scan.pos < p.scan.end {
		if len(p.ints) == 2*rowsAtOnce && !p.sink.numberInts(&p.edgeBatch) {
			return true
		}
		if p.fast && !p.isBytes {
			if p.scanInts(); len(p.ints) == 2*rowsAtOnce {
				continue
			}
			if p.scan.pos >= p.scan.end {
				break
			}
		}
		var kind rowKind
		if kind, fault = p.scan.next(); fault != nil {
			break
		}
		switch kind {
		case kindBlank:
			p.blank++
			continue
		case kindComment:
			p.comment++
			continue
		}
		var ok bool
		if ok, fault = p.row(); fault != nil {
			break
		}
		if !ok {
			return false
		}
	}
	p.text, p.err = p.scan.text, fault
	if !p.isBytes && !p.sink.numberInts(&p.edgeBatch) {
		return true
	}
	p.sink.number(&p.edgeBatch)
	return true
}

// mark notes the line of the row to come, if it isn't the one after the last row's.
func (b *edgeBatch) mark(line int64) {
	if n := len(b.marks); n > 0 && b.marks[n-1].line+int64(b.rows-b.marks[n-1].row) == line {
		return
	}
	b.marks = append(b.marks, lineMark{b.rows, line})
}

// scanInts takes lines of the shape `INT delim INT [delim WEIGHT]` from the scanner until the first of another
// shape, or until rowsAtOnce rows wait for numbers. It must give what row gives.
func (p *edgeParser) scanInts() {
	s := &p.scan
	t := s.text[:s.end+wordBytes]
	sep, blanks := s.delim, s.blanks
	ints, weighted := p.ints, p.cols.weight >= 0
	pos, from := s.pos, len(ints)
	for pos < s.end && len(ints) < 2*rowsAtOnce {
		var x, y int64
		var i, j int
		ok := true
		word := digitsAt(t, pos)
		if n := digitCount(word); uint(n-1) < 7 && (byte(word) != 0 || n == 1) {
			x, i = decimal(word, n), pos+n
		} else if x, i, ok = scanInt(t, pos); !ok {
			break
		}
		if blanks {
			if t[i] != ' ' && t[i] != '\t' {
				break
			}
			for t[i+1] == ' ' || t[i+1] == '\t' {
				i++
			}
		} else if t[i] != sep {
			break
		}
		word = digitsAt(t, i+1)
		if n := digitCount(word); uint(n-1) < 7 && (byte(word) != 0 || n == 1) {
			y, j = decimal(word, n), i+1+n
		} else if y, j, ok = scanInt(t, i+1); !ok {
			break
		}
		var w float32
		if weighted {
			if t[j] != sep && !(blanks && (t[j] == ' ' || t[j] == '\t')) {
				break
			}
			end := j + 1
			for t[end] != '\n' && t[end] != '\r' {
				end++
			}
			var fault numberFault
			if w, fault = parseFloat32(t[j+1 : end]); fault != numberOK || w < 0 || w == 0 && vanishes(t[j+1:end]) {
				break
			}
			j = end
		}
		if t[j] == '\r' {
			j++
		}
		if t[j] != '\n' {
			break
		}
		ints = append(ints, x, y)
		if weighted {
			p.weights = append(p.weights, w)
		}
		pos = j + 1
	}
	if rows := (len(ints) - from) / 2; rows > 0 {
		p.mark(s.line)
		p.rows += rows
		s.line += int64(rows)
		s.pos, p.ints = pos, ints
	}
}

// row takes the row in the scanner. ok is false if an id isn't of the batch's kind.
func (p *edgeParser) row() (ok bool, err error) {
	s := &p.scan
	if len(s.fields) != p.cols.width {
		return false, s.widthError(p.cols.width)
	}
	src, dst := s.fields[p.cols.src], s.fields[p.cols.dst]
	for i, f := range []span{src, dst} {
		if err := checkID(s.text[f.off:f.end], s.file, s.start, p.sink.names.column(i)); err != nil {
			return false, err
		}
	}
	x, y, isInt := int64(0), int64(0), false
	if !p.isBytes {
		if x, isInt = snapshot.CanonicalInt(s.text[src.off:src.end]); isInt {
			y, isInt = snapshot.CanonicalInt(s.text[dst.off:dst.end])
		}
		if !isInt {
			return false, nil
		}
	}
	if p.cols.weight >= 0 {
		if err := p.addWeight(s, p.cols.weight, p.sink.names.weight); err != nil {
			return false, err
		}
	}
	p.mark(s.start)
	if isInt {
		p.ints = append(p.ints, x, y)
	} else {
		p.places = append(p.places, pack(src), pack(dst))
		if p.sink.names.areIDs(s.text[src.off:src.end], s.text[dst.off:dst.end]) {
			p.headers++
		}
	}
	p.rows++
	return true, nil
}

// areIDs reports whether the ids of a row are the names of their columns, as in the middle of files put together.
func (n *edgeNames) areIDs(src, dst []byte) bool { return string(src) == n.src && string(dst) == n.dst }

// addWeight takes the weight of the row in s.
func (b *edgeBatch) addWeight(s *scanner, col int, name string) error {
	w, vanished, err := s.weight(col, name)
	if err != nil {
		return err
	}
	if vanished {
		b.small++
	}
	b.weights = append(b.weights, w)
	return nil
}

// weight reads field col of an edge, in the column that messages call name: a finite float32 of 0 or more. vanished says
// that it is written as more than the 0 it reads as.
func (s *scanner) weight(col int, name string) (w float32, vanished bool, err error) {
	if s.isNull(col) {
		return 0, false, &Error{File: s.file, Line: s.start, Column: name, Msg: "null weight", Hint: "--weight-col none ignores weights"}
	}
	field := s.field(col)
	w, fault := parseFloat32(field)
	if fault != numberOK || w < 0 {
		return 0, false, weightError(s, field, name, w, fault)
	}
	vanished = w == 0 && vanishes(field)
	if vanished && field[0] == '-' {
		return 0, false, weightError(s, field, name, -1, numberOK)
	}
	return w, vanished, nil
}

// relation returns field col of an edge, in the column that messages call name, and refuses what can't be a relation.
func (s *scanner) relation(col int, name string) ([]byte, error) {
	rel := s.field(col)
	switch {
	case len(rel) == 0:
		return nil, &Error{File: s.file, Line: s.start, Column: name, Msg: "empty relation"}
	case len(rel) > maxID:
		return nil, &Error{File: s.file, Line: s.start, Column: name, Value: string(rel), Msg: "is a relation longer than 1 MiB", Err: ErrLimit}
	}
	return rel, nil
}

// tooManyRelations says that relations have no number left.
func tooManyRelations(file string) error {
	return &Error{File: file, Msg: fmt.Sprintf("one relation too many: at most %d can be numbered", maxNumber), Err: ErrLimit}
}

func weightError(s *scanner, field []byte, column string, w float32, fault numberFault) error {
	e := &Error{File: s.file, Line: s.start, Column: column, Value: string(field), Msg: fault.String(), Hint: fault.hint()}
	if fault == numberOK {
		e.Msg, e.Hint = "is negative", "weights are 0 or more; --weight-col none ignores them"
	}
	return e
}

// checkID refuses an empty or too long id.
func checkID(id []byte, file string, line int64, column string) error {
	switch {
	case len(id) == 0:
		return &Error{File: file, Line: line, Column: column, Msg: "empty id"}
	case len(id) > maxID:
		return &Error{File: file, Line: line, Column: column, Value: string(id), Msg: "is an id longer than 1 MiB", Err: ErrLimit}
	}
	return nil
}

// checkInteger refuses an id that is no integer, for IDType integer.
func checkInteger(id []byte, file string, line int64, column string) error {
	_, ok, fits := looseInt(id)
	switch {
	case !ok:
		return &Error{File: file, Line: line, Column: column, Value: string(id), Msg: "is not an integer id", Hint: "--id-type string keeps ids as text"}
	case !fits:
		return &Error{File: file, Line: line, Column: column, Value: string(id), Msg: "doesn't fit in 64 bits", Hint: "--id-type string keeps ids as text"}
	}
	return nil
}

// maxParsers bounds the parsing goroutines: more would only wait for the one that reads.
const maxParsers = 8

// edgeJob is one block on its way: cut by the reading goroutine, parsed by any worker, taken in order.
type edgeJob struct {
	edgeParser
	block []byte
	pos   int
	line  int64
	done  chan struct{}
}

// read cuts the file into blocks in one goroutine, parses them and numbers their ids in Threads goroutines and stores
// the edges in this one, in file order. At most maxParsers+3 blocks are in memory.
func (textEdges) read(ctx context.Context, r *reader, path string, sink *edgeSink) error {
	t, cols, err := openEdgeRows(ctx, &r.opt, path)
	if err != nil {
		return err
	}
	defer t.close()
	r.report.Files = append(r.report.Files, t.report)
	if err := r.alike(t, cols); err != nil {
		return err
	}
	t.noteUnused(cols.src, cols.dst, cols.weight)
	t.noteThirdColumn(cols)
	sink.names = t.edgeNames(cols)
	proto := edgeParser{sink: sink, cols: cols, fast: cols.src == 0 && cols.dst == 1 && !r.opt.noFast && (cols.width == 2 && cols.weight < 0 || cols.width == 3 && cols.weight == 2)}
	proto.file = t.in.name
	proto.scan.dialect, proto.scan.file = t.scan.dialect, t.in.name

	ctx, cancel := context.WithCancel(ctx)
	workers := min(r.opt.Threads, maxParsers)
	jobs := workers + 3
	order := make(chan *edgeJob, jobs) // each has room for all jobs, so that only taking from free ever waits
	work := make(chan *edgeJob, jobs)
	free := make(chan *edgeJob, jobs)
	for range cap(free) {
		free <- &edgeJob{edgeParser: proto}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var readErr error // set before order is closed
	wg.Go(func() {
		defer close(order)
		defer close(work)
		readErr = t.cutBlocks(ctx, func(block []byte, pos int, line int64) ([]byte, error) {
			var job *edgeJob
			select {
			case job = <-free:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			spare := job.block
			job.block, job.pos, job.line, job.readBytes = block, pos, line, t.in.read.Load()
			job.done = make(chan struct{})
			order <- job
			work <- job
			return spare, nil
		})
	})
	for range workers {
		wg.Go(func() {
			for job := range work {
				if ctx.Err() == nil {
					job.parse(job.block, job.pos, job.line)
				}
				close(job.done)
			}
		})
	}
	for job := range order {
		<-job.done
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := sink.store(&job.edgeBatch); err != nil {
			return err
		}
		t.row += int64(job.rows)
		t.report.BlankLines += job.blank
		t.report.CommentLines += job.comment
		r.progress(roleEdges, job.readBytes)
		job.block = job.scan.text // it may have grown
		free <- job
	}
	if readErr != nil {
		return readErr
	}
	t.finish()
	r.doneBytes += t.in.size
	return t.checkRows()
}

// edgeNames returns what messages call the columns.
func (t *table) edgeNames(cols edgeColumns) edgeNames {
	return edgeNames{t.columnName(cols.src, "src"), t.columnName(cols.dst, "dst"), t.columnName(cols.weight, "weight"), t.columnName(cols.rel, "relation")}
}

// cutBlocks gives each block of the file to f, which keeps it and returns memory for another.
func (t *table) cutBlocks(ctx context.Context, f func(block []byte, pos int, line int64) ([]byte, error)) error {
	block, pos, line := t.block, t.rest, t.line
	if block == nil {
		return nil
	}
	for {
		if t.width == 0 {
			if err := t.lateFirst(block, line); err != nil {
				return err
			}
		}
		spare, err := f(block, pos, line)
		if err != nil {
			return err
		}
		block, line, err = t.in.next(ctx, &t.scan.dialect, spare[:0], t.opt.blockSize)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		pos = 0
	}
}

// weightedAlike refuses edge files some of which have weights.
func (r *reader) weightedAlike(t *table, cols edgeColumns) error {
	if t.width == 0 {
		return nil
	}
	weighted := cols.weight >= 0
	if r.weightFile == "" {
		r.weightFile, r.weighted = t.in.name, weighted
		return nil
	}
	if weighted == r.weighted {
		return nil
	}
	return differ(t.in.name, r.weightFile, r.weighted, "a weight column", "--weight-col chooses or ignores it")
}

// readEdges reads all edge files. Numbers of edges are those of dict while they were read.
func (r *reader) readEdges(ctx context.Context) (*graph.EdgeList, error) {
	for _, path := range r.opt.Edges {
		r.totalBytes += fileSize(path)
	}
	if !r.dict.closed && !r.dict.isBytes.Load() {
		r.dict.direct(directBelow(&r.opt))
	}
	r.warnRepeated()
	sink := &edgeSink{r: r}
	for _, path := range r.opt.Edges {
		sink.headers, sink.small = 0, 0
		read := len(r.report.Files)
		format, err := edgeFormatOf(&r.opt, path)
		if err == nil {
			err = format.read(ctx, r, path, sink)
		}
		if err != nil {
			return nil, err
		}
		if len(r.report.Files) > read {
			sink.notice(r.report.Files[read])
		}
	}
	if sink.list == nil {
		sink.list = sink.newList()
	}
	r.report.NumEdgeRows = sink.list.Len()
	return sink.list, nil
}

// notice tells of rows of the file that are hardly meant as they are read.
func (s *edgeSink) notice(report *FileReport) {
	if n := s.headers; n > 0 {
		report.noticef("%d %s the header %s: read as %s (were files put together?)", n, rowsRepeat(n), quote(s.names.src+","+s.names.dst), plural(int(n), "edge"))
	}
	report.noticeSmall(s.small, s.names.weight)
}

// noticeSmall tells of n weights in the column that messages call name that vanished (scanner.weight).
func (report *FileReport) noticeSmall(n int64, name string) {
	if n > 0 {
		report.noticef("%d %s of column %s over 0 but too small for float32: read as 0", n, plural(int(n), "weight"), quote(name))
	}
}

func rowsRepeat(n int64) string {
	if n == 1 {
		return "row repeats"
	}
	return "rows repeat"
}

// warnRepeated warns of a file that is given twice as an edge file, whose edges then count twice.
func (r *reader) warnRepeated() {
	type inode struct{ device, number uint64 }
	first := map[inode]string{}
	for _, path := range r.opt.Edges {
		var st unix.Stat_t
		if r.opt.sources[path] != nil || unix.Stat(path, &st) != nil {
			continue
		}
		key, name := inode{uint64(st.Dev), st.Ino}, oneLine(r.opt.nameOf(path))
		switch before, again := first[key]; {
		case !again:
			first[key] = name
		case before == name:
			r.report.Warnings = append(r.report.Warnings, name+" is given twice: its edges are read twice, and their weights added")
		default:
			r.report.Warnings = append(r.report.Warnings, fmt.Sprintf("%s and %s are one file: its edges are read twice, and their weights added", before, name))
		}
	}
}

// directBelow returns below what integer ids are their own numbers: a power of two by the size of the edge files, as
// the list that turns such numbers into nodes has 4 bytes for each integer up to the largest. It takes no more memory
// than half the size of the text, about as much as the edges.
func directBelow(opt *Options) int64 {
	if opt.direct > 0 {
		return opt.direct
	}
	var size int64
	for _, path := range opt.Edges {
		share := int64(1)
		switch filepath.Ext(path) {
		case ".gz", ".zst", ".parquet":
			share = 4 // or so bytes of text in one
		}
		size += share * fileSize(path)
	}
	const least, most, bytesEach = 1 << 16, 1 << 30, 8
	return min(max(int64(1)<<log2(int(size/bytesEach|1)), least), most)
}
