package snapshot

import (
	"context"
	"fmt"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// rank computes PageRank, sampling weights and the order that the parameters ask for.
func (b *builder) rank(ctx context.Context, p *Params) error {
	if p.has(WithPageRank) {
		opt, err := graph.RankOptions{Threads: b.opt.Threads}.Settle()
		if err != nil {
			return err
		}
		opt.Progress = func(done, most int64) { b.progress("pagerank", done, most) }
		r, err := graph.PageRank(&b.graph.In, opt)
		if err != nil {
			return err
		}
		b.ranks, b.rankAudit = r.Rank, rankAudit(opt, r)
		b.weights, b.masses = graph.SamplingWeights(b.components, len(b.sizes), r.Rank)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.has(WithOrder) {
		b.progress("order", 0, 0)
		bfs := graph.BFSOrder(b.in, b.out, b.components, len(b.sizes))
		b.order = graph.CommunityOrder(bfs, graph.Communities(b.in, b.out, bfs, graph.CommunityOptions{}))
	}
	return ctx.Err()
}

func rankAudit(opt graph.RankOptions, r graph.Rank) *RankAudit {
	return &RankAudit{opt.Damping, opt.Tolerance, opt.MaxIterations, r.Iterations, r.Delta, r.Converged}
}

func (b *builder) rankSections() []format.SectionSpec {
	var sections []format.SectionSpec
	if b.ranks != nil {
		sections = append(sections,
			format.Float64Section(format.RankPageRank, format.AnyLayer, b.ranks),
			format.Float32Section(format.RankWeight, format.AnyLayer, format.CoefNone, b.weights),
			format.Float64Section(format.RankMass, format.AnyLayer, b.masses))
	}
	if b.order != nil {
		sections = append(sections, format.Int32Section(format.RankOrder, format.AnyLayer, b.order))
	}
	return sections
}

func (s *Snapshot) loadRank(r *format.Record) error {
	if p := &s.Manifest.Params; p.has(WithPageRank) {
		s.Rank = r.Float64s(format.RankPageRank, format.AnyLayer)
		s.Weights = r.Float32s(format.RankWeight, format.AnyLayer, format.CoefNone)
		s.Masses = r.Float64s(format.RankMass, format.AnyLayer)
		if s.Rank == nil || s.Weights == nil || s.Masses == nil {
			return missing(r, "ranks or sampling weights")
		}
		if len(s.Masses) != len(s.ComponentSizes) {
			return fmt.Errorf("%s: %w: masses of %d components, there are %d", r.Place(), format.ErrLayout, len(s.Masses), len(s.ComponentSizes))
		}
	}
	if s.Order = r.Int32s(format.RankOrder, format.AnyLayer); s.Order == nil && s.Manifest.Params.has(WithOrder) {
		return missing(r, "locality order")
	}
	return nil
}

// verifyRank checks ranks by what makes them unique, and the manifest's word on them and the order by going the
// way again.
func (s *Snapshot) verifyRank() error {
	p := &s.Manifest.Params
	in, out, err := simple(&s.In, s.Out, nil)
	if err != nil {
		return err
	}
	if p.has(WithPageRank) {
		a := s.Manifest.PageRank
		opt, err := graph.RankOptions{Threads: 1}.Settle() // SPEC 6 has no other values
		if err != nil {
			return err
		}
		if err := graph.VerifyPageRank(&s.In, opt, graph.Rank{Rank: s.Rank, Iterations: a.Iterations, Delta: a.Delta, Converged: a.Converged}); err != nil {
			return s.wrong("%v", err)
		}
		r, err := graph.PageRank(&s.In, opt)
		if err != nil {
			return s.wrong("%v", err)
		}
		if got := rankAudit(opt, r); *got != *a {
			return s.wrong("pagerank is %+v, the rows give %+v", *a, *got)
		}
		if err := graph.VerifySamplingWeights(s.Component, s.Rank, s.Weights, s.Masses); err != nil {
			return s.wrong("%v", err)
		}
	}
	if p.has(WithOrder) {
		bfs := graph.BFSOrder(in, out, s.Component, len(s.ComponentSizes))
		if err := graph.VerifyOrder(in, out, s.Component, bfs); err != nil {
			return s.wrong("%v", err)
		}
		communities := graph.Communities(in, out, bfs, graph.CommunityOptions{})
		if err := graph.VerifyCommunityOrder(bfs, communities, s.Order); err != nil {
			return s.wrong("%v", err)
		}
	}
	return nil
}
