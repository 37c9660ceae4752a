package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prelift/prelift/snapshot/graph"
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

// edgeBatch is a run of edge rows of one file. Its ids are all integers (canonical ones) or all spans of text.
type edgeBatch struct {
	rows    int
	isBytes bool
	ints    []int64  // src, dst of each row
	places  []uint64 // src, dst of each row, packed spans of text
	text    []byte
	weights []float32 // of each row, if the file has weights
	rels    []uint64  // of each row, if the file has relations: packed spans of text
	marks   []lineMark
	blank   int64
	comment int64
	err     error // what is wrong behind the rows
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

// edgeSink numbers the ids of batches and collects the edges of all files.
type edgeSink struct {
	r        *reader
	src, dst []int32
	weight   []float32
	rel      []int32
	nums     []int32 // scratch

	lower  bool // of the file: edges are entries of a symmetric matrix, on or below its diagonal
	mirror bool // of the file: each edge comes back too

	file             string // of the batches to come
	srcName, dstName string
	// progress of the file, to size the slices
	start     int // edges before this file
	sizeBytes int64
}

// begin starts a file of that many bytes.
func (s *edgeSink) begin(file, srcName, dstName string, sizeBytes int64) {
	s.file, s.srcName, s.dstName = file, srcName, dstName
	s.start, s.sizeBytes = len(s.src), sizeBytes
}

// add takes the rows of a batch; readBytes is how much of the file they and all before them took. It returns the
// first fault by line.
func (s *edgeSink) add(b *edgeBatch, readBytes int64) error {
	n := 2 * b.rows
	s.nums = slices.Grow(s.nums[:0], n)[:n]
	var done int
	if b.isBytes {
		done = s.r.dict.addSpans(b.text, b.places[:n], s.nums)
		if s.r.opt.IDType == IDInteger {
			if err := s.checkInts(b, done); err != nil {
				return err
			}
		}
	} else {
		done = s.r.dict.addInts(b.ints[:n], s.nums)
	}
	if done < n {
		value := b.value(done)
		return s.r.numberError(s.nums[done], s.file, b.lineOf(done/2), s.column(done), value)
	}
	if s.lower {
		if err := s.checkLower(b); err != nil {
			return err
		}
	}
	s.grow(b.rows, readBytes)
	if err := s.addRels(b); err != nil {
		return err
	}
	if s.mirror {
		s.addBoth(b)
		return b.err
	}
	for i := 0; i < n; i += 2 {
		s.src = append(s.src, s.nums[i])
		s.dst = append(s.dst, s.nums[i+1])
	}
	s.weight = append(s.weight, b.weights...)
	return b.err
}

// checkLower refuses the first row above the diagonal.
func (s *edgeSink) checkLower(b *edgeBatch) error {
	for i := 0; i < 2*b.rows; i += 2 {
		src, _ := canonicalInt([]byte(b.value(i)))
		if dst, _ := canonicalInt([]byte(b.value(i + 1))); src < dst {
			return &Error{File: s.file, Line: b.lineOf(i / 2), Msg: fmt.Sprintf("entry %d, %d is above the diagonal of a symmetric matrix", src, dst), Hint: "such files hold the lower triangle only"}
		}
	}
	return nil
}

// addRels numbers the relations of a batch.
func (s *edgeSink) addRels(b *edgeBatch) error {
	if len(b.rels) == 0 {
		return nil
	}
	from := len(s.rel)
	s.rel = slices.Grow(s.rel, b.rows)[:from+b.rows]
	if done := s.r.rels.names.addSpans(b.text, b.rels, s.rel[from:]); done < b.rows {
		return &Error{File: s.file, Line: b.lineOf(done), Msg: "one relation too many: at most 2147483647 can be numbered", Err: ErrLimit}
	}
	return nil
}

// addBoth takes the numbered rows of a batch both ways, loops once.
func (s *edgeSink) addBoth(b *edgeBatch) {
	for i := range b.rows {
		src, dst := s.nums[2*i], s.nums[2*i+1]
		s.src, s.dst = append(s.src, src), append(s.dst, dst)
		if src != dst {
			s.src, s.dst = append(s.src, dst), append(s.dst, src)
		}
		if len(b.weights) > 0 {
			s.weight = append(s.weight, b.weights[i])
			if src != dst {
				s.weight = append(s.weight, b.weights[i])
			}
		}
	}
}

// value returns id i of the batch as written.
func (b *edgeBatch) value(i int) string {
	if b.isBytes {
		return string(unpack(b.text, b.places[i]))
	}
	return strconv.FormatInt(b.ints[i], 10)
}

func (s *edgeSink) column(i int) string {
	if i%2 == 0 {
		return s.srcName
	}
	return s.dstName
}

// checkInts refuses the first of the first n ids that is no integer.
func (s *edgeSink) checkInts(b *edgeBatch, n int) error {
	for i, p := range b.places[:n] {
		if err := checkInteger(unpack(b.text, p), s.file, b.lineOf(i/2), s.column(i)); err != nil {
			return err
		}
	}
	return nil
}

// grow makes room for rows more edges, and if there isn't any for as many as the file seems to hold, going by its
// share read so far: so that the slices are moved seldom, and 8 bytes an edge is what they take.
func (s *edgeSink) grow(rows int, readBytes int64) {
	need := len(s.src) + rows
	if need <= cap(s.src) {
		return
	}
	want := need
	if 0 < readBytes && readBytes < s.sizeBytes {
		share := float64(s.sizeBytes) / float64(readBytes)
		want = max(want, s.start+int(float64(need-s.start)*min(share, 1<<20)*1.02)+1024)
	}
	if len(s.src) > 0 {
		want = max(want, len(s.src)+len(s.src)/4)
	}
	s.src = slices.Grow(s.src, want-len(s.src))
	s.dst = slices.Grow(s.dst, want-len(s.dst))
	if s.r.weighted {
		s.weight = slices.Grow(s.weight, want-len(s.weight))
	}
}

// textEdges is rowEdges for the text dialects, read faster.
type textEdges struct{ rowEdges }

func (textEdges) match(opt *Options, kind string) bool { return kind == kindText && opt.RelCol == "" }

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

// edgeParser turns blocks of text into batches. Each worker has its own.
type edgeParser struct {
	edgeBatch
	cols    edgeColumns
	names   [3]string // of src, dst, weight for messages
	scan    scanner
	asBytes bool // the ids of earlier batches weren't all integers
	fast    bool // src, dst [, weight] are all the columns
}

// parse fills the batch from a block whose byte pos is in line.
func (p *edgeParser) parse(block []byte, pos int, line int64) {
	p.isBytes = p.asBytes
	p.ints, p.places = p.ints[:0], p.places[:0]
	if !p.isBytes {
		p.ints = slices.Grow(p.ints, 2*int(countLines(block[pos:])))
		if p.run(block, pos, line) {
			return
		}
		p.isBytes = true // an id that is no canonical integer: all over again
	}
	p.run(block, pos, line)
}

// run is parse for one kind of ids; it stops with false at an id that isn't of that kind.
func (p *edgeParser) run(block []byte, pos int, line int64) bool {
	p.rows, p.err, p.blank, p.comment = 0, nil, 0, 0
	p.weights, p.marks = p.weights[:0], p.marks[:0]
	p.scan.reset(block, pos, line)
	for p.scan.pos < p.scan.end {
		if p.fast && !p.isBytes {
			if p.scanInts(); p.scan.pos >= p.scan.end {
				break
			}
		}
		kind, err := p.scan.next()
		if err != nil {
			p.err = err
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
		ok, err := p.row()
		if err != nil {
			p.err = err
			break
		}
		if !ok {
			return false
		}
	}
	p.text = p.scan.text
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
// shape. It must give what row gives.
func (p *edgeParser) scanInts() {
	s := &p.scan
	t := s.text[:s.end+8]
	sep, blanks := s.delim, s.blanks
	pos, from := s.pos, p.rows
	if pos < s.end {
		p.mark(s.line)
	}
	for pos < s.end {
		x, i, ok := scanInt(t, pos)
		if !ok {
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
		y, j, ok := scanInt(t, i+1)
		if !ok {
			break
		}
		if p.cols.weight >= 0 {
			if t[j] != sep && !(blanks && (t[j] == ' ' || t[j] == '\t')) {
				break
			}
			end := j + 1
			for t[end] != '\n' && t[end] != '\r' {
				end++
			}
			w, fault := parseFloat32(t[j+1 : end])
			if fault != numberOK || w < 0 {
				break
			}
			p.weights = append(p.weights, w)
			j = end
		}
		if t[j] == '\r' {
			j++
		}
		if t[j] != '\n' {
			p.weights = p.weights[:min(len(p.weights), p.rows)]
			break
		}
		p.ints = append(p.ints, x, y)
		p.rows++
		pos = j + 1
	}
	s.line += int64(p.rows - from)
	s.pos = pos
	if p.rows == from {
		if n := len(p.marks); n > 0 && p.marks[n-1].row == p.rows {
			p.marks = p.marks[:n-1]
		}
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
		if err := checkID(s.text[f.off:f.end], s.file, s.start, p.names[i]); err != nil {
			return false, err
		}
	}
	x, y, isInt := int64(0), int64(0), false
	if !p.isBytes {
		if x, isInt = canonicalInt(s.text[src.off:src.end]); isInt {
			y, isInt = canonicalInt(s.text[dst.off:dst.end])
		}
		if !isInt {
			return false, nil
		}
	}
	if p.cols.weight >= 0 {
		field := s.field(p.cols.weight)
		w, fault := parseFloat32(field)
		if fault != numberOK || w < 0 {
			return false, weightError(s, field, p.names[2], w, fault)
		}
		p.weights = append(p.weights, w)
	}
	p.mark(s.start)
	if isInt {
		p.ints = append(p.ints, x, y)
	} else {
		p.places = append(p.places, pack(src), pack(dst))
	}
	p.rows++
	return true, nil
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

func countLines(b []byte) int64 { return int64(bytes.Count(b, []byte{'\n'})) }

// maxParsers bounds the parsing goroutines: more would only wait for the one that numbers ids.
const maxParsers = 8

// edgeJob is one block on its way: cut by the reading goroutine, parsed by any worker, taken in order.
type edgeJob struct {
	edgeParser
	block     []byte
	pos       int
	line      int64
	readBytes int64
	done      chan struct{}
}

// read cuts the file into blocks in one goroutine, parses them in Threads goroutines and numbers the ids in this
// one, in file order. At most maxParsers+3 blocks are in memory.
func (textEdges) read(ctx context.Context, r *reader, path string, sink *edgeSink) error {
	t, cols, err := openEdgeRows(ctx, &r.opt, path)
	if err != nil {
		return err
	}
	defer t.close()
	r.report.Files = append(r.report.Files, t.report)
	proto := edgeParser{cols: cols, fast: cols.src == 0 && cols.dst == 1 && !r.opt.noFast && (cols.width == 2 && cols.weight < 0 || cols.width == 3 && cols.weight == 2)}
	proto.names = [3]string{t.columnName(cols.src, "src"), t.columnName(cols.dst, "dst"), "weight"}
	if cols.weight >= 0 {
		proto.names[2] = t.columnName(cols.weight, "weight")
	}
	if err := r.alike(t, cols); err != nil {
		return err
	}
	t.noteUnused(cols.src, cols.dst, cols.weight)
	sink.begin(t.in.name, proto.names[0], proto.names[1], t.in.size)

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
	var asBytes atomic.Bool // parsers need not try integers any more
	if r.opt.IDType == IDString || r.dict.isBytes {
		asBytes.Store(true)
	}
	for range workers {
		wg.Go(func() {
			for job := range work {
				if ctx.Err() == nil {
					job.asBytes = asBytes.Load()
					job.scan.dialect, job.scan.file = t.scan.dialect, t.in.name
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
		if err := sink.add(&job.edgeBatch, job.readBytes); err != nil {
			return err
		}
		if job.isBytes {
			asBytes.Store(true)
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
	with, without := t.in.name, r.weightFile
	if r.weighted {
		with, without = without, with
	}
	return &Error{File: t.in.name, Msg: strings.Join([]string{oneLine(with), "has a weight column and", oneLine(without), "has none"}, " "), Hint: "--weight-col chooses or ignores it"}
}

// readEdges reads all edge files.
func (r *reader) readEdges(ctx context.Context) (*graph.EdgeList, error) {
	for _, path := range r.opt.Edges {
		r.totalBytes += fileSize(path)
	}
	sink := &edgeSink{r: r}
	for _, path := range r.opt.Edges {
		format, err := edgeFormatOf(&r.opt, path)
		if err == nil {
			err = format.read(ctx, r, path, sink)
		}
		if err != nil {
			return nil, err
		}
	}
	r.report.NumEdgeRows = int64(len(sink.src))
	if r.weighted && sink.weight == nil {
		sink.weight = []float32{}
	}
	return r.list(sink)
}

// list moves the edges of a sink into a list.
func (r *reader) list(sink *edgeSink) (*graph.EdgeList, error) {
	if r.opt.ListOptions == nil {
		return graph.EdgesOf(sink.src, sink.dst, sink.weight, sink.rel), nil
	}
	list := graph.NewEdgeList(r.opt.ListOptions(sink.weight != nil, sink.rel != nil))
	var ends []int32
	for from := 0; from < len(sink.src); from += blockSize {
		to := min(from+blockSize, len(sink.src))
		ends = ends[:0]
		for i := from; i < to; i++ {
			ends = append(ends, sink.src[i], sink.dst[i])
		}
		var weight []float32
		var rel []int32
		if sink.weight != nil {
			weight = sink.weight[from:to]
		}
		if sink.rel != nil {
			rel = sink.rel[from:to]
		}
		if err := list.Append(ends, weight, rel); err != nil {
			return nil, err
		}
	}
	return list, nil
}
