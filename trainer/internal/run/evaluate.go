package run

import (
	"context"
	"fmt"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/backend"
	"github.com/prelift/prelift/trainer/internal/feed"
	"github.com/prelift/prelift/trainer/internal/metrics"
	"github.com/prelift/prelift/trainer/internal/model"
)

// evalRows is how many rows are transformed between two looks at the context, and the
// height of the blocks of a model that reads no edges.
const evalRows = 1 << 16

// evaluator computes the logits of every node, exactly: layer by layer over all nodes,
// each layer one walk over the set's evaluation sequence. It holds two activations
// [NumNodes, widest layer], and a third where a layer transforms before it aggregates.
type evaluator struct {
	set      *feed.Set
	eval     *feed.Eval // nil for a model without edges
	b        backend.Backend
	m        *model.Model
	act      [2][]float32
	pre      []float32
	features backend.Matrix
	memory   *activations
}

// newEvaluator prepares evaluation; ErrMismatch where the set wasn't written for it.
func newEvaluator(set *feed.Set, b backend.Backend, m *model.Model, memory *activations) (*evaluator, error) {
	e := &evaluator{set: set, b: b, m: m, memory: memory}
	c := m.Config()
	if c.Kind.UsesEdges() {
		kind, _ := format.ParseCoef(m.Needs())
		var err error
		if e.eval, err = set.NewEval(kind); err != nil {
			return nil, err
		}
	}
	if !set.HasFeatures() {
		return nil, set.NeedFeatures(string(c.Kind))
	}
	widest, prepared := 0, 0
	for l := range c.Layers {
		_, out := c.Widths(l)
		widest, prepared = max(widest, out), max(prepared, m.EvalWidth(l))
	}
	var err error
	n := set.NumNodes()
	for i := range min(2, c.Layers) {
		if e.act[i], err = memory.alloc(n * widest); err != nil {
			return nil, err
		}
	}
	if e.pre, err = memory.alloc(n * prepared); err != nil {
		return nil, err
	}
	features := set.Features()
	switch {
	case features != nil:
	case set.Full(): // training has them in memory too
		if features, err = set.DecodedFeatures(); err != nil {
			return nil, err
		}
	default:
		if features, err = memory.alloc(n * set.NumFeatures()); err != nil {
			return nil, err
		}
		if err := set.DecodeFeatures(features); err != nil {
			return nil, err
		}
	}
	e.features = b.Wrap(features, n, set.NumFeatures())
	return e, nil
}

// logits returns [NumNodes, Out], valid until the next call. progress may be nil.
func (e *evaluator) logits(ctx context.Context, progress func(done, total int64)) ([]float32, error) {
	c := e.m.Config()
	n := e.set.NumNodes()
	x := e.features
	for l := range c.Layers {
		_, width := c.Widths(l)
		out := e.b.Wrap(e.act[l%2][:n*width], n, width)
		if err := e.layer(ctx, l, out, x, func(done int) {
			if progress != nil {
				progress(int64(l)*int64(n)+int64(done), int64(c.Layers)*int64(n))
			}
		}); err != nil {
			return nil, err
		}
		x = out
	}
	if err := e.b.Sync(); err != nil {
		return nil, err
	}
	return e.act[(c.Layers-1)%2][:n*c.Out], nil
}

// layer computes layer l of every node from x into out.
func (e *evaluator) layer(ctx context.Context, l int, out, x backend.Matrix, done func(rows int)) error {
	n := e.set.NumNodes()
	var pre backend.Matrix
	if width := e.m.EvalWidth(l); width > 0 {
		pre = e.b.Wrap(e.pre[:n*width], n, width)
		for lo := 0; lo < n; lo += evalRows {
			if err := ctx.Err(); err != nil {
				return err
			}
			rows := min(evalRows, n-lo)
			e.m.EvalPrepare(l, pre.Slice(lo, rows), x.Slice(lo, rows))
		}
	}
	if !e.m.EvalReadsInput(l) {
		x = backend.Matrix{}
	}
	return e.blocks(ctx, func(blk *backend.Block, coef *backend.Coef) error {
		e.b.ResetScratch()
		e.m.EvalLayer(l, out.Slice(blk.DstStart, blk.NumDst), blk, coef, x, pre)
		done(blk.DstStart + blk.NumDst)
		return e.b.Sync()
	})
}

// blocks calls use for each block of the sequence; for a model without edges, for
// ranges of rows.
func (e *evaluator) blocks(ctx context.Context, use func(*backend.Block, *backend.Coef) error) error {
	n := e.set.NumNodes()
	count := (n + evalRows - 1) / evalRows
	if e.eval != nil {
		count = e.eval.NumBlocks()
	}
	var blk backend.Block
	var coef backend.Coef
	for i := range count {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.eval == nil {
			blk = backend.Block{NumDst: min(evalRows, n-i*evalRows), NumSrc: n, DstStart: i * evalRows}
		} else if err := e.eval.Block(i, &blk, &coef); err != nil {
			return err
		}
		if err := format.Guard("evaluation", func() error { return use(&blk, &coef) }); err != nil {
			return err
		}
	}
	return nil
}

// judge is what logits are held against: the labels of the nodes, and a mask for each part
// of a split column.
type judge struct {
	class  []int32
	bits   []uint8
	masks  [4][]uint8 // by format.Part; nil where no node is of that part
	counts [4]int64   // nodes of each part that have a label
}

// newJudge copies the labels and the split column out of the set.
func newJudge(set *feed.Set, column int) (*judge, error) {
	parts, err := set.Parts(column)
	if err != nil {
		return nil, err
	}
	j := &judge{}
	err = format.Guard(format.SetLabelsFile, func() error {
		j.class = append(j.class, set.Classes()...)
		j.bits = append(j.bits, set.Bits()...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for v, part := range parts {
		if int(part) >= len(j.masks) || part == uint8(format.PartNone) || !j.labelled(v, len(parts)) {
			continue
		}
		if j.masks[part] == nil {
			j.masks[part] = make([]uint8, len(parts))
		}
		j.masks[part][v] = 1
		j.counts[part]++
	}
	return j, nil
}

func (j *judge) labelled(v, n int) bool {
	if j.class != nil {
		return j.class[v] >= 0
	}
	cols := len(j.bits) / n
	for _, bit := range j.bits[v*cols : (v+1)*cols] {
		if bit <= 1 {
			return true
		}
	}
	return false
}

// value returns the metric of a part, nil where it has none: no node to judge, or one
// class only for ROC-AUC.
func (j *judge) value(metric metrics.Name, logits []float32, cols int, part format.Part) (*float64, error) {
	if j.masks[part] == nil {
		return nil, nil
	}
	t := &metrics.Targets{Class: j.class, Mask: j.masks[part]}
	if len(j.bits) > 0 {
		t.Class, t.Bits = nil, j.bits
	}
	v, ok, err := metrics.Compute(metric, logits, cols, t)
	if err != nil || !ok {
		return nil, err
	}
	return &v, nil
}

// commonest returns the class that most labelled nodes of a part have, the first of equals;
// -1 where the part has none, or labels that aren't classes.
func (j *judge) commonest(part format.Part) int32 {
	count := map[int32]int{}
	best := int32(-1)
	if j.class == nil || j.masks[part] == nil {
		return best
	}
	for v, class := range j.class {
		if j.masks[part][v] == 0 {
			continue
		}
		count[class]++
		if n := count[class] - count[best]; best < 0 || n > 0 || n == 0 && class < best {
			best = class
		}
	}
	return best
}

// share returns how much of a part's labelled nodes are of a class: the accuracy of always
// saying so. The part must have one.
func (j *judge) share(class int32, part format.Part) float64 {
	n := 0
	for v, c := range j.class {
		if c == class && j.masks[part][v] != 0 {
			n++
		}
	}
	return float64(n) / float64(j.counts[part])
}

// outputs returns the number of logits for the set's labels; see the package comment.
func outputs(set *feed.Set) (int, error) {
	if err := set.NeedLabels(); err != nil {
		return 0, err
	}
	switch m := set.Manifest; m.LabelTask {
	case feed.TaskMulticlass:
		return max(int(m.NumClasses), 2), nil // a set of one class has a second that never occurs
	case feed.TaskBinary:
		return 1, nil
	case feed.TaskMultilabel:
		return int(m.NumClasses), nil
	default:
		return 0, fmt.Errorf("%s: %w: labels of task %q are not among this trainer's yet", set.Dir, format.ErrMismatch, m.LabelTask)
	}
}
