package snapshot

import (
	"errors"
	"fmt"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/snapshot/graph"
)

// HoldoutParams say by which rule pairs were held out of the input's edges (SPEC 6.1).
type HoldoutParams struct {
	Kind      string     `json:"kind"`  // HoldoutHash or HoldoutGiven
	Valid     float64    `json:"valid"` // these four as in graph.HoldoutOptions; 0 and false unless Kind is HoldoutHash
	Test      float64    `json:"test"`
	Seed      format.Int `json:"seed"`
	SpareLast bool       `json:"spare_last"`
}

// The values of HoldoutParams.Kind.
const (
	HoldoutHash  = "hash"  // a share of the pairs, drawn by hash
	HoldoutGiven = "given" // Tables.Held
)

// settle returns what Params.Settle gives of p.
func (p *HoldoutParams) settle() (*HoldoutParams, error) {
	switch {
	case p == nil:
		return nil, nil
	case p.Kind == HoldoutGiven:
		return &HoldoutParams{Kind: p.Kind}, nil
	case p.Kind != HoldoutHash:
		return p, fmt.Errorf("holdout by %q: want %s or %s", p.Kind, HoldoutHash, HoldoutGiven)
	case p.Valid == 0 && p.Test == 0:
		return p, errors.New("holdout of no share: want one over 0")
	}
	_, err := graph.HoldoutByHash(nil, p.options())
	return p, err
}

func (p *HoldoutParams) options() graph.HoldoutOptions {
	return graph.HoldoutOptions{Valid: p.Valid, Test: p.Test, Seed: int64(p.Seed), SpareLast: p.SpareLast}
}

// Held are pairs to be predicted. In an open snapshot, and once Build has taken them, they are as graph.Pairs.Distinct
// gives them, and relations and weights are there for both parts or for none.
type Held struct{ Valid, Test graph.Pairs }

// parts returns the lists in the order of their records.
func (h *Held) parts() []*graph.Pairs { return []*graph.Pairs{&h.Valid, &h.Test} }

// heldParts are the parts of a split that Held.parts are for.
var heldParts = [...]format.Part{format.PartValid, format.PartTest}

// HeldoutAudit counts held-out pairs and what became of their lines.
type HeldoutAudit struct {
	NumValid     format.Int `json:"num_valid"`
	NumTest      format.Int `json:"num_test"`
	MissingValid format.Int `json:"missing_valid"` // of NumValid, pairs that no line of the edges lists; 0 unless held out by given lists
	MissingTest  format.Int `json:"missing_test"`
	NumLines     format.Int `json:"num_lines"` // lines of the edges that are not in the message graph
	// What a model can't be asked fairly: pairs that the message graph has too (of one relation), nodes of the lists that it has no edge of, and
	// relations.
	KnownValid  format.Int `json:"known_valid"`
	KnownTest   format.Int `json:"known_test"`
	UnseenNodes format.Int `json:"unseen_nodes"`
	UnseenRels  format.Int `json:"unseen_rels"`
	// ReversedValid and ReversedTest count pairs whose reverse a directed message graph has, of whatever relation: where relations have inverses
	// these give the answers away (Toutanova and Chen, 2015).
	ReversedValid format.Int `json:"reversed_valid"`
	ReversedTest  format.Int `json:"reversed_test"`
	InBoth        format.Int `json:"in_both"`       // pairs, of one relation, that both lists have
	RepeatsValid  format.Int `json:"repeats_valid"` // lines of given lists that repeat a pair of the same list
	RepeatsTest   format.Int `json:"repeats_test"`
}

// holdout is the holding out of one Build.
type holdout struct {
	rule  *graph.Holdout // nil: the lists are stored, and that's all
	lines graph.HeldLines
	lists *Held // given; nil by hash

	repeats [2]int // lines of the lists that repeat a pair
}

// compare counts what the lists and the message graph have in common, given its edges by relation, whatever the counts were before.
func (a *HeldoutAudit) compare(in, out *graph.CSR, held *Held, edgesPerRel []format.Int) {
	a.KnownValid, a.KnownTest, a.ReversedValid, a.ReversedTest = 0, 0, 0, 0
	unseen, unseenRels := map[int32]bool{}, map[int32]bool{}
	for k, list := range held.parts() {
		known, reversed := []*format.Int{&a.KnownValid, &a.KnownTest}[k], []*format.Int{&a.ReversedValid, &a.ReversedTest}[k]
		for i, src := range list.Src {
			dst, rel := list.Dst[i], int32(0)
			if list.Rel != nil {
				rel = list.Rel[i]
			}
			if _, ok := in.Find(dst, src, rel); ok {
				*known++
			}
			if out != nil && src != dst && in.Has(src, dst) {
				*reversed++
			}
			for _, v := range []int32{src, dst} {
				if in.Degree(v) == 0 && (out == nil || out.Degree(v) == 0) {
					unseen[v] = true
				}
			}
			if list.Rel != nil && int(rel) < len(edgesPerRel) && edgesPerRel[rel] == 0 {
				unseenRels[rel] = true
			}
		}
	}
	a.UnseenNodes, a.UnseenRels, a.InBoth = format.Int(len(unseen)), format.Int(len(unseenRels)), format.Int(held.Valid.NumShared(&held.Test))
}

// startHoldout has opt leave out of the rows what the parameters ask for; nil where there is nothing to hold out or to store.
// It needs the node keys, and takes the lists over. Errors speak node numbers.
func (b *builder) startHoldout(p *HoldoutParams, opt *graph.Options) (*holdout, error) {
	t := b.tables
	h := &holdout{lists: t.Held, lines: graph.HeldLines{Weighted: t.Edges.Weighted(), Relational: opt.NumRels > 0}}
	t.Held = nil
	if h.lists != nil {
		if err := h.settleLists(opt); err != nil {
			return nil, err
		}
	}
	var err error
	switch {
	case p == nil && h.lists == nil:
		return nil, nil
	case p == nil:
		return h, nil
	case (p.Kind == HoldoutGiven) != (h.lists != nil):
		return nil, fmt.Errorf("holdout by %s, but lists of pairs are there: %t", p.Kind, h.lists != nil)
	case p.Kind == HoldoutGiven:
		h.rule, err = graph.HoldoutPairs(t.NumNodes(), h.lists.Valid, h.lists.Test)
	default:
		h.rule, err = graph.HoldoutByHash(b.keys, p.options())
	}
	if err == nil && h.rule.NeedsObserve() {
		b.progress("holdout", 0, 0)
		err = observe(h.rule, t.Edges)
	}
	if err != nil {
		return nil, err
	}
	opt.Part, opt.Held = h.rule.Part, h.lines.Add
	return h, nil
}

// settleLists makes the given lists distinct and alike. Relations go where the snapshot has none.
func (h *holdout) settleLists(opt *graph.Options) (err error) {
	weighted, relational := false, false
	for k, p := range h.lists.parts() {
		if opt.NumRels == 0 {
			p.Rel = nil
		}
		h.repeats[k] = p.Len()
		if *p, err = p.Distinct(opt.Directed); err != nil {
			return err
		}
		h.repeats[k] -= p.Len()
		weighted, relational = weighted || p.Weight != nil, relational || p.Rel != nil
	}
	for _, p := range h.lists.parts() {
		if weighted && p.Weight == nil && p.Len() == 0 {
			p.Weight = []float32{}
		}
		if relational && p.Rel == nil && p.Len() == 0 {
			p.Rel = []int32{}
		}
		if (p.Weight != nil) != weighted || (p.Rel != nil) != relational {
			return errors.New("one list of held-out pairs has weights or relations, the other none")
		}
	}
	return nil
}

// observe shows all edges to the rule.
func observe(rule *graph.Holdout, edges *graph.EdgeList) error {
	const chunk = 1 << 12
	src, dst := make([]int32, 0, chunk), make([]int32, 0, chunk)
	err := edges.Each(func(from, to int32, _ float32, _ int32) error {
		if src, dst = append(src, from), append(dst, to); len(src) == chunk {
			rule.Observe(src, dst)
			src, dst = src[:0], dst[:0]
		}
		return nil
	})
	rule.Observe(src, dst)
	return err
}

// endHoldout keeps what was held out, once the rows have been built.
func (b *builder) endHoldout(h *holdout, directed bool) error {
	if h == nil {
		return nil
	}
	b.progress("held-out pairs", 0, 0)
	numLines := h.lines.Len()
	valid, test, err := h.lines.Distinct(directed)
	if err != nil {
		return b.nameNodes(err)
	}
	a := &HeldoutAudit{NumLines: format.Int(numLines), RepeatsValid: format.Int(h.repeats[0]), RepeatsTest: format.Int(h.repeats[1])}
	if b.held = h.lists; h.lists == nil {
		b.held = &Held{Valid: valid, Test: test}
	} else if h.rule != nil {
		a.MissingValid, a.MissingTest = format.Int(h.lists.Valid.NumMissing(&valid)), format.Int(h.lists.Test.NumMissing(&test))
	}
	a.NumValid, a.NumTest = format.Int(b.held.Valid.Len()), format.Int(b.held.Test.Len())
	b.heldAudit = a
	return nil
}

// heldRecords holds the lists: a record a part.
func (b *builder) heldRecords() []record {
	var records []record
	for i, p := range b.held.parts() {
		head := b.header()
		head.Split, head.Number = heldParts[i], uint32(i)
		sections := []format.SectionSpec{
			format.Int32Section(format.PairsSrc, format.AnyLayer, p.Src),
			format.Int32Section(format.PairsDst, format.AnyLayer, p.Dst),
		}
		if p.Rel != nil {
			sections = append(sections, format.Int32Section(format.PairsRel, format.AnyLayer, p.Rel))
		}
		if p.Weight != nil {
			sections = append(sections, format.Float32Section(format.PairsWeight, format.AnyLayer, format.CoefNone, p.Weight))
		}
		records = append(records, record{head, sections})
	}
	return records
}

// loadHeldout takes the list of one record, the records coming in order.
func (s *Snapshot) loadHeldout(r *format.Record) error {
	k := 1
	if s.Held == nil {
		s.Held, k = &Held{}, 0
	}
	if int(r.Number) != k || r.Split != heldParts[k] {
		return fmt.Errorf("%s: %w: list %d of the part %s, want %d of %s", r.Place(), format.ErrLayout, r.Number, r.Split, k, heldParts[k])
	}
	p := s.Held.parts()[k]
	*p = graph.Pairs{
		Src: r.Int32s(format.PairsSrc, format.AnyLayer), Dst: r.Int32s(format.PairsDst, format.AnyLayer),
		Rel: r.Int32s(format.PairsRel, format.AnyLayer), Weight: r.Float32s(format.PairsWeight, format.AnyLayer, format.CoefNone),
	}
	if p.Src == nil || p.Dst == nil {
		return missing(r, "pairs")
	}
	if v := &s.Held.Valid; (p.Rel != nil) != (v.Rel != nil) || (p.Weight != nil) != (v.Weight != nil) {
		return fmt.Errorf("%s: %w: pairs of one part have relations or weights, those of the other none", r.Place(), format.ErrLayout)
	}
	a := s.Manifest.Heldout
	if want := [...]format.Int{a.NumValid, a.NumTest}[k]; p.Len() != int(want) {
		return fmt.Errorf("%s: %w: %d pairs, the manifest says %d", r.Place(), format.ErrLayout, p.Len(), want)
	}
	return format.Guard(r.Place(), func() error {
		if err := p.CheckDistinct(s.NumNodes(), s.Manifest.Params.Direction == Directed); err != nil {
			return fmt.Errorf("%s: %w: %v", r.Place(), format.ErrLayout, err)
		}
		return nil
	})
}

// verifyShared counts again what the lists and the message graph have in common.
func (s *Snapshot) verifyShared() error {
	a := s.Manifest.Heldout
	if a == nil {
		return nil
	}
	want := *a
	want.compare(&s.In, s.Out, s.Held, s.Manifest.EdgesPerRel)
	if want != *a {
		return s.wrong("heldout counts %+v, the rows give %+v", *a, want)
	}
	return nil
}

// verifyHoldout checks that the lists are what the parameters say, and that the rows hold none of their pairs.
func (s *Snapshot) verifyHoldout() error {
	p, a := s.Manifest.Params.Holdout, s.Manifest.Heldout
	if p == nil {
		if a != nil && (a.NumLines != 0 || a.MissingValid != 0 || a.MissingTest != 0) {
			return s.wrong("heldout counts %d lines and missing pairs, but nothing was held out", a.NumLines)
		}
		return nil
	}
	var rule *graph.Holdout
	var err error
	if p.Kind == HoldoutGiven {
		rule, err = graph.HoldoutPairs(s.NumNodes(), s.Held.Valid, s.Held.Test)
	} else {
		rule, err = graph.HoldoutByHash(s.Keys, p.options())
	}
	if err != nil {
		return s.wrong("%v", err)
	}
	if rule.NeedsObserve() {
		for _, list := range s.Held.parts() {
			rule.Observe(list.Src, list.Dst)
		}
		s.eachEntry(func(src, dst int32) bool {
			rule.Observe([]int32{src}, []int32{dst})
			return true
		})
	}
	for k, list := range s.Held.parts() {
		for i, src := range list.Src {
			if got := rule.Part(src, list.Dst[i]); format.Part(got) != heldParts[k] {
				return s.wrong("pair %q, %q is listed for %s, but the holdout's rule says %s", s.IDs.At(int(src)), s.IDs.At(int(list.Dst[i])), heldParts[k], format.Part(got))
			}
		}
	}
	s.eachEntry(func(src, dst int32) bool {
		if got := rule.Part(src, dst); got != graph.HeldNone {
			err = s.wrong("edge %q, %q is in the message graph, but held out for %s", s.IDs.At(int(src)), s.IDs.At(int(dst)), format.Part(got))
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	found := a.NumValid + a.NumTest - a.MissingValid - a.MissingTest
	if a.MissingValid < 0 || a.MissingValid > a.NumValid || a.MissingTest < 0 || a.MissingTest > a.NumTest || a.NumLines < found || p.Kind == HoldoutHash && a.MissingValid+a.MissingTest > 0 {
		return s.wrong("heldout counts %d lines for %d and %d pairs, %d and %d of them missing", a.NumLines, a.NumValid, a.NumTest, a.MissingValid, a.MissingTest)
	}
	return nil
}

// eachEntry calls f with the entries of the in-rows until it says stop.
func (s *Snapshot) eachEntry(f func(src, dst int32) (more bool)) {
	for dst := range int32(s.NumNodes()) {
		for _, src := range s.In.Row(dst) {
			if !f(src, dst) {
				return
			}
		}
	}
}

// HeldoutDescription says what was held out, and by which rule.
type HeldoutDescription struct {
	Kind         string  `json:"kind"` // "" where lists came as parts of their own and nothing left the graph for them
	Valid        float64 `json:"valid"`
	Test         float64 `json:"test"`
	Seed         int64   `json:"seed"`
	SpareLast    bool    `json:"spare_last"`
	NumValid     int64   `json:"num_valid"`
	NumTest      int64   `json:"num_test"`
	MissingValid int64   `json:"missing_valid"`
	MissingTest  int64   `json:"missing_test"`
	NumLines     int64   `json:"num_lines"`
	KnownValid   int64   `json:"known_valid"` // pairs that the message graph has too
	KnownTest    int64   `json:"known_test"`
	UnseenNodes  int64   `json:"unseen_nodes"` // nodes of the lists without an edge in the message graph
	UnseenRels   int64   `json:"unseen_rels"`

	ReversedValid int64 `json:"reversed_valid"` // pairs whose reverse the message graph has
	ReversedTest  int64 `json:"reversed_test"`
	InBoth        int64 `json:"in_both"`
	RepeatsValid  int64 `json:"repeats_valid"`
	RepeatsTest   int64 `json:"repeats_test"`
}

// DescribeHeldout says what was held out, nil for nothing.
func (m *Manifest) DescribeHeldout() *HeldoutDescription {
	a := m.Heldout
	if a == nil {
		return nil
	}
	d := &HeldoutDescription{
		NumValid: int64(a.NumValid), NumTest: int64(a.NumTest), MissingValid: int64(a.MissingValid), MissingTest: int64(a.MissingTest), NumLines: int64(a.NumLines),
		KnownValid: int64(a.KnownValid), KnownTest: int64(a.KnownTest), UnseenNodes: int64(a.UnseenNodes), UnseenRels: int64(a.UnseenRels),
		ReversedValid: int64(a.ReversedValid), ReversedTest: int64(a.ReversedTest), InBoth: int64(a.InBoth), RepeatsValid: int64(a.RepeatsValid), RepeatsTest: int64(a.RepeatsTest),
	}
	if p := m.Params.Holdout; p != nil {
		d.Kind, d.Valid, d.Test, d.Seed, d.SpareLast = p.Kind, p.Valid, p.Test, int64(p.Seed), p.SpareLast
	}
	return d
}
