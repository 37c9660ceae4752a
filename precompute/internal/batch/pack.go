package batch

import (
	"context"
	"runtime"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/rows"
)

// defaultPackBytes is what Write may keep of packed batches in memory where nothing else is asked for.
const defaultPackBytes = 1 << 30

// packer writes packed batches so that the feature table is read in order: it keeps as many batches as its memory has
// room for, goes through the table once, piece by piece, hands each piece's rows to the batches that want them, and then writes the batches. A row at a
// time and batch by batch, as the slow twin rowsOf does, the table is read once in bits for every batch, which a table that is larger than the memory
// pays with a read of the disk a row. The bytes are the same.
type packer struct {
	a           *assembler
	budgetBytes int64

	add func(r *record) error // writes a record

	kept      []*keptBatch
	used      int    // of kept
	usedBytes int64  // of those
	stored    []byte // the piece's rows as they are stored
	have      []bool // which of them are
}

// keptBatch is a batch that waits for its rows. Its memory is used again.
type keptBatch struct {
	record record
	data   []byte  // of its sections
	nodes  []int32 // whose rows it wants, in order
	rows   []byte  // theirs
	runs   []run
}

// run is an ascending part of a batch's nodes: those of a hop.
type run struct{ next, end int }

// mostRuns is the largest number of ascending parts that a node list may be in: to go through more for each piece of the table
// costs more than reading its rows one by one.
const mostRuns = 1024

// put keeps a batch that was just built, or writes it.
func (p *packer) put(r *record) error {
	size, err := r.sizeBytes()
	if err != nil {
		return err
	}
	if p.used > 0 && p.usedBytes+size > p.budgetBytes {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if size > p.budgetBytes || !p.keep(r) {
		if err := p.flush(); err != nil {
			return err
		}
		return p.add(r) // its rows one by one
	}
	p.usedBytes += size
	return nil
}

// keep copies what the next batch would overwrite. It reports false, and keeps nothing, where the node list is in too many parts.
func (p *packer) keep(r *record) bool {
	if p.used == len(p.kept) {
		p.kept = append(p.kept, &keptBatch{})
	}
	k := p.kept[p.used]
	own := p.a.ownNodes
	k.runs = k.runs[:0]
	for i := range own {
		if i == 0 || own[i] < own[i-1] {
			if len(k.runs) == mostRuns {
				return false
			}
			k.runs = append(k.runs, run{i, i})
		}
		k.runs[len(k.runs)-1].end = i + 1
	}
	k.nodes = append(k.nodes[:0], own...)
	numBytes := 0
	for i := range r.sections {
		numBytes += len(r.sections[i].Data)
	}
	k.data = resize(k.data, numBytes)
	k.record = record{header: r.header, sections: append(k.record.sections[:0], r.sections...)}
	at := 0
	for i := range k.record.sections {
		if s := &k.record.sections[i]; s.Data != nil {
			n := copy(k.data[at:], s.Data)
			s.Data = k.data[at : at+n : at+n]
			at += n
		}
	}
	k.rows = resize(k.rows, len(own)*p.a.table.widthBytes())
	last := &k.record.sections[len(k.record.sections)-1] // table.rows
	last.Data, last.Write = k.rows, nil
	p.used++
	return true
}

// flush brings the rows of the kept batches and writes them, in the order they came.
func (p *packer) flush() error {
	if err := p.scatter(); err != nil {
		return err
	}
	for _, k := range p.kept[:p.used] {
		if err := p.add(&k.record); err != nil {
			return err
		}
	}
	p.used, p.usedBytes = 0, 0
	return nil
}

// scatter goes through the table once and copies the rows that are wanted, each converted once.
func (p *packer) scatter() error {
	t, numRows := p.a.table, p.a.snap.NumNodes()
	width, perPiece := t.widthBytes(), t.pieceRows()
	for first := 0; first < numRows && p.used > 0; first += perPiece {
		end := min(first+perPiece, numRows)
		if t.kind != rows.F32 {
			p.stored, p.have = resize(p.stored, (end-first)*width), resize(p.have, end-first)
			clear(p.have)
		}
		for _, k := range p.kept[:p.used] {
			for i := range k.runs {
				r := &k.runs[i]
				for ; r.next < r.end && int(k.nodes[r.next]) < end; r.next++ {
					v, out := int(k.nodes[r.next]), k.rows[r.next*width:(r.next+1)*width]
					if t.kind == rows.F32 {
						copy(out, format.Bytes(t.snap.Features[v*t.cols:(v+1)*t.cols]))
						continue
					}
					row := p.stored[(v-first)*width:][:width]
					if !p.have[v-first] {
						p.have[v-first] = true
						if err := t.encode(row, v); err != nil {
							return err
						}
					}
					copy(out, row)
				}
			}
		}
	}
	return nil
}

// addRecords builds the records of a shard and adds them to its file.
func (w *writer) addRecords(ctx context.Context, a *assembler, s shard, out *format.Writer, total int64) error {
	add := func(r *record) error {
		if r.err != nil {
			return r.err
		}
		if err := out.Add(&r.header, r.sections); err != nil {
			return err
		}
		w.report(1, total)
		return ctx.Err()
	}
	put, finish := add, func() error { return nil }
	if s.kind == format.FileBatches && a.params.Store == StorePacked && !w.opt.rowByRow {
		if a.packer == nil {
			a.packer = &packer{a: a}
		}
		p := a.packer
		p.add, p.budgetBytes, p.used, p.usedBytes = add, w.opt.packBytes()/int64(w.opt.threads()), 0, 0
		put, finish = p.put, p.flush
	}
	for number := s.first; number < s.last; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := put(s.build(a, number)); err != nil {
			return err
		}
	}
	return finish()
}

// packBytes is what all workers together may keep of packed batches.
func (o *Options) packBytes() int64 {
	if o.PackBytes > 0 {
		return o.PackBytes
	}
	return defaultPackBytes
}

// threads is the number of workers.
func (o *Options) threads() int {
	if o.Threads > 0 {
		return o.Threads
	}
	return runtime.GOMAXPROCS(0)
}
