package snapshot

import (
	"context"
	"fmt"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// hops builds the indexes that the parameters ask for.
func (b *builder) hops(ctx context.Context, p *Params) error {
	if p.Hops == 0 {
		return nil
	}
	opt := p.hopOptions()
	opt.Threads, opt.Alloc = b.opt.Threads, b.opt.Scratch.allocArray
	opt.Progress = func(done, total int64) { b.progress("hop 2", done, total) }
	b.progress("hop 1", 0, 0)
	var err error
	if b.hop1, err = graph.BuildHop1(b.in, opt); err != nil || p.Hops < 2 {
		return err
	}
	hop2, a, err := graph.BuildHop2(ctx, b.in, b.keys, opt)
	b.hop2, b.hop2Audit = hop2, &Hop2Audit{
		Hop1Entries: format.Int(a.Hop1Entries), NumEntries: format.Int(a.NumEntries), NumUncut: format.Int(a.NumUncut),
		NumCut: format.Int(a.NumCut), NumSampled: format.Int(a.NumSampled), Cap: format.Int(a.Cap), Forced: a.Forced,
	}
	return err
}

func (b *builder) hopSections() []format.SectionSpec {
	h := b.hop1
	sections := []format.SectionSpec{
		format.Uint8Section(format.Hop1Code, format.AnyLayer, h.Code),
		format.Uint16Section(format.Hop1Offset, format.AnyLayer, h.Offset),
		format.Int64Section(format.Hop1GroupStart, format.AnyLayer, h.GroupStart),
		format.Int32Section(format.Hop1GroupLarge, format.AnyLayer, h.GroupLarge),
		format.Uint8Section(format.Hop1Compact, format.AnyLayer, h.Compact),
		format.Int64Section(format.Hop1LargeChunk, format.AnyLayer, h.LargeChunk),
		format.Int64Section(format.Hop1LargeStart, format.AnyLayer, h.LargeStart),
		format.Uint8Section(format.Hop1LargeLast, format.AnyLayer, h.LargeLast),
		format.Uint8Section(format.Hop1LargeShift, format.AnyLayer, h.LargeShift),
		format.Int32Section(format.Hop1ChunkBase, format.AnyLayer, h.ChunkBase),
		format.Uint32Section(format.Hop1ChunkStart, format.AnyLayer, h.ChunkStart),
		format.Uint8Section(format.Hop1Large, format.AnyLayer, h.Large),
	}
	if b.hop2 != nil {
		sections = append(sections,
			format.Int64Section(format.Hop2Indptr, format.AnyLayer, b.hop2.Indptr),
			format.Int32Section(format.Hop2Indices, format.AnyLayer, b.hop2.Indices))
	}
	return sections
}

// hop1Of views the index of neighbours in r; nil where it is absent.
func hop1Of(r *format.Record) *graph.Hop1 {
	h := &graph.Hop1{
		Code:       r.Uint8s(format.Hop1Code, format.AnyLayer),
		Offset:     r.Uint16s(format.Hop1Offset, format.AnyLayer),
		GroupStart: r.Int64s(format.Hop1GroupStart, format.AnyLayer),
		GroupLarge: r.Int32s(format.Hop1GroupLarge, format.AnyLayer),
		Compact:    r.Uint8s(format.Hop1Compact, format.AnyLayer),
		LargeChunk: r.Int64s(format.Hop1LargeChunk, format.AnyLayer),
		LargeStart: r.Int64s(format.Hop1LargeStart, format.AnyLayer),
		LargeLast:  r.Uint8s(format.Hop1LargeLast, format.AnyLayer),
		LargeShift: r.Uint8s(format.Hop1LargeShift, format.AnyLayer),
		ChunkBase:  r.Int32s(format.Hop1ChunkBase, format.AnyLayer),
		ChunkStart: r.Uint32s(format.Hop1ChunkStart, format.AnyLayer),
		Large:      r.Uint8s(format.Hop1Large, format.AnyLayer),
	}
	if h.Code == nil {
		return nil
	}
	return h
}

// loadHops takes the index over after the checks that make every access to it safe: format's of lengths and
// offsets, and Hop1.Check of what is in the runs. Of hop 2 format's are enough.
func (s *Snapshot) loadHops(r *format.Record) error {
	if s.Hop1 = hop1Of(r); s.Hop1 == nil {
		return missing(r, "index of neighbours")
	}
	if err := s.checkHop1(r); err != nil || s.Manifest.Params.Hops < 2 {
		return err
	}
	s.Hop2 = &graph.Hop2{Indptr: r.Int64s(format.Hop2Indptr, format.AnyLayer), Indices: r.Int32s(format.Hop2Indices, format.AnyLayer)}
	if s.Hop2.Indptr == nil || s.Hop2.Indices == nil {
		return missing(r, "lists of hop 2")
	}
	return nil
}

func (s *Snapshot) checkHop1(r *format.Record) error {
	if s.checked {
		return nil
	}
	return format.Guard(r.Place(), func() error {
		// One thread: Guard is for the goroutine that calls it.
		if err := s.Hop1.Check(1); err != nil {
			return fmt.Errorf("%s: %w: %v", r.Place(), format.ErrLayout, err)
		}
		return nil
	})
}

// verifyHops checks the indexes against the rows.
func (s *Snapshot) verifyHops() error {
	p := &s.Manifest.Params
	in, _, err := simple(&s.In, nil, nil)
	if err != nil {
		return err
	}
	if p.Hops == 0 {
		return nil
	}
	if err := graph.VerifyHop1(in, p.hopOptions(), s.Hop1); err != nil {
		return s.wrong("%v", err)
	}
	if p.Hops < 2 {
		return nil
	}
	if err := s.Hop2.Check(in, s.Component); err != nil {
		return s.wrong("%v", err)
	}
	a := s.Manifest.Hop2
	audit := graph.Hop2Audit{
		NumEntries: int64(a.NumEntries), NumUncut: int64(a.NumUncut), NumCut: int64(a.NumCut), NumSampled: int64(a.NumSampled),
		Cap: int(a.Cap), Forced: a.Forced, Hop1Entries: int64(a.Hop1Entries),
	}
	if err := graph.VerifyHop2(in, s.Keys, p.hopOptions(), s.Hop2, audit); err != nil {
		return s.wrong("%v", err)
	}
	return nil
}
