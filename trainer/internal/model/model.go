// Package model holds the networks: GCN, GraphSAGE (mean) and an MLP, each written over
// backend operations. A model takes blocks as they come from a batch and never makes, changes
// or transposes topology.
//
// # Parameters
//
// All weights are stored [in, out], row-major: y = x*W + b. That is DGL's GraphConv.weight
// as it is; torch.nn.Linear, PyG's GCNConv.lin and SAGEConv.lin_l (neigh) and lin_r (self) hold
// the transpose, so load W.T there.
//
//	gcn   layers.L.weight [in, out]                            layers.L.bias [out]
//	sage  layers.L.self.weight, layers.L.neigh.weight [in, out] layers.L.bias [out]
//	mlp   layers.L.weight [in, out]                            layers.L.bias [out]
//
// # Layers
//
// Between layers stand ReLU and dropout; the last layer's output is the logits.
//
//	gcn   y = A x W + b, A with the block's gcn coefficients (Kipf and Welling 2017)
//	sage  y = x_dst W_self + mean(x_src) W_neigh + b (Hamilton, Ying and Leskovec 2017)
//	mlp   y = x W + b on the seeds alone
package model

import (
	"errors"
	"fmt"

	"github.com/prelift/prelift/trainer/internal/backend"
)

// Kind names a model.
type Kind string

// The models.
const (
	GCN  Kind = "gcn"
	SAGE Kind = "sage"
	MLP  Kind = "mlp"
)

// Kinds lists the models in the order of the help text.
var Kinds = []Kind{GCN, SAGE, MLP}

// DefaultInputDropout is the usual dropout on the input features: the hidden layers' for
// GCN, as published, and none for the others.
func DefaultInputDropout(k Kind, dropout float64) float64 {
	if k == GCN {
		return dropout
	}
	return 0
}

// Config describes a model; it is all that New needs beside a backend.
type Config struct {
	Kind         Kind    `json:"kind"`
	In           int     `json:"in"`     // features of a node
	Hidden       int     `json:"hidden"` // width between layers
	Out          int     `json:"out"`    // logits of a node
	Layers       int     `json:"layers"`
	Dropout      float64 `json:"dropout"`       // after each hidden layer, in [0, 1)
	InputDropout float64 `json:"input_dropout"` // on the features, in [0, 1)
	Seed         uint64  `json:"seed,string"`   // of the initial weights and of dropout
}

// Check returns an error for a configuration that can't be built.
func (c *Config) Check() error {
	switch c.Kind {
	case GCN, SAGE, MLP:
	default:
		return fmt.Errorf("model %q is not one of gcn, sage, mlp", c.Kind)
	}
	if c.In < 1 || c.Out < 1 || c.Layers < 1 || c.Layers > 1 && c.Hidden < 1 {
		return fmt.Errorf("%d layers of widths %d, %d, %d: each must be at least 1", c.Layers, c.In, c.Hidden, c.Out)
	}
	for _, p := range []float64{c.Dropout, c.InputDropout} {
		if !(p >= 0 && p < 1) {
			return fmt.Errorf("dropout %v is not in [0, 1)", p)
		}
	}
	return nil
}

// Widths returns the input and output width of layer l.
func (c *Config) Widths(l int) (in, out int) {
	in, out = c.Hidden, c.Hidden
	if l == 0 {
		in = c.In
	}
	if l == c.Layers-1 {
		out = c.Out
	}
	return in, out
}

// Param is a trained matrix and its gradient, which Backward overwrites.
type Param struct {
	backend.Named
	Grad  backend.Matrix
	Layer int
}

// Batch is what one step computes on. Slices are borrowed for the step.
type Batch struct {
	// Blocks[0] is the input side; the dst of a layer are the src of the next. The last
	// block's dst are the seeds. A model with edges needs one block a layer; an MLP none.
	Blocks []*backend.Block
	Coefs  []*backend.Coef // of the kind that Needs names, one a block
	// X holds the input rows: [Blocks[0].NumSrc, In], for an MLP [seeds, In].
	X backend.Matrix
}

// Model is a network with its parameters in a backend's memory. Its methods follow the
// backend's rules: failures come from the backend's Sync, shape mismatches panic. It isn't
// safe for concurrent use.
type Model struct {
	config Config
	b      backend.Backend
	layers []layer
	params []*Param

	// Of the last Forward with train set, for Backward.
	batch Batch
	outs  []backend.Matrix   // each layer's output
	acts  []backend.Epilogue // what made it
}

// layer is one layer's arithmetic.
type layer interface {
	// forward returns the layer's product, before bias and activation, from scratch.
	// With train set it keeps what backward needs.
	forward(b backend.Backend, blk *backend.Block, c *backend.Coef, x backend.Matrix, train bool) backend.Matrix
	// backward sets the gradients of the weights from dy and returns the gradient of the
	// input from scratch, the zero Matrix unless wanted.
	backward(b backend.Backend, blk *backend.Block, c *backend.Coef, dy backend.Matrix, wantInput bool) backend.Matrix
	// prepare and rows are layerwise evaluation; see EvalPrepare and EvalLayer.
	prepare(b backend.Backend, pre, x backend.Matrix)
	rows(b backend.Backend, out backend.Matrix, blk *backend.Block, c *backend.Coef, x, pre backend.Matrix)
	bias() *Param
}

// New builds a model with its initial weights: Glorot uniform (Glorot and Bengio 2010),
// each a pure function of the seed, the parameter's name and the place in it; biases are 0.
func New(b backend.Backend, c Config) (*Model, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	m := &Model{config: c, b: b}
	for l := range c.Layers {
		in, out := c.Widths(l)
		weight := func(part string) *Param {
			p := m.param(l, part+"weight", in, out)
			b.Upload(p.Value, glorot(c.Seed, p.Name, in, out))
			return p
		}
		switch c.Kind {
		case GCN:
			m.layers = append(m.layers, &gcnLayer{aggregation: aggregation{w: weight("")}, b: m.param(l, "bias", 1, out)})
		case SAGE:
			self := weight("self.")
			m.layers = append(m.layers, &sageLayer{self: self, neigh: aggregation{w: weight("neigh.")}, b: m.param(l, "bias", 1, out)})
		case MLP:
			m.layers = append(m.layers, &denseLayer{w: weight(""), b: m.param(l, "bias", 1, out)})
		}
	}
	return m, b.Sync()
}

func (m *Model) param(l int, name string, rows, cols int) *Param {
	p := &Param{
		Named: backend.Named{Name: fmt.Sprintf("layers.%d.%s", l, name), Shape: []int{rows, cols}, Value: m.b.Alloc(rows, cols)},
		Grad:  m.b.Alloc(rows, cols), Layer: l,
	}
	if name == "bias" {
		p.Shape = []int{cols}
	}
	m.params = append(m.params, p)
	return p
}

// Config returns what the model was built from.
func (m *Model) Config() Config { return m.config }

// Params lists the parameters, layer by layer, in a fixed order.
func (m *Model) Params() []*Param { return m.params }

// Needs names the coefficient kind that the blocks must carry: "gcn", "mean", or "none"
// for a model that reads no edges.
func (m *Model) Needs() string { return m.config.Kind.Needs() }

// Needs is Model.Needs, known before there is a model.
func (k Kind) Needs() string {
	switch k {
	case GCN:
		return "gcn"
	case SAGE:
		return "mean"
	}
	return "none"
}

// UsesEdges reports whether a model of this kind reads blocks at all.
func (k Kind) UsesEdges() bool { return k != MLP }

// ErrTranspose means that training needs a transposed block that the batch set lacks.
var ErrTranspose = errors.New("the batch set lacks a transposed block")

// CheckBatch returns an error where a batch doesn't suit the model: another number of
// blocks, blocks that don't chain, or a transpose that training needs and that isn't stored
// (ErrTranspose). Call it where a batch is used first: Forward panics on the same.
func (m *Model) CheckBatch(blocks []*backend.Block, train bool) error {
	if !m.config.Kind.UsesEdges() {
		return nil
	}
	if len(blocks) != len(m.layers) {
		return fmt.Errorf("a model of %d layers on batches of %d blocks: set --layers %d, or make a batch set with one hop a layer (precompute batches --fanout takes one number a hop)",
			len(m.layers), len(blocks), len(blocks))
	}
	for l, blk := range blocks {
		if blk.NumDst > blk.NumSrc || blk.DstStart != 0 {
			return fmt.Errorf("block %d has %d dst from row %d of %d src: not a training block", l, blk.NumDst, blk.DstStart, blk.NumSrc)
		}
		if l > 0 && blk.NumSrc != blocks[l-1].NumDst {
			return fmt.Errorf("block %d has %d src, block %d has %d dst: they must be equal", l, blk.NumSrc, l-1, blocks[l-1].NumDst)
		}
		if train && l > 0 && !blk.HasTranspose() {
			return fmt.Errorf("%w: layer %d of %s passes a gradient to its input; make the batch set with precompute batches --transpose all", ErrTranspose, l, m.config.Kind)
		}
	}
	return nil
}

// Forward computes the logits [seeds, Out] of a batch, in the backend's scratch. With train
// set, dropout draws by (seed, step, layer) and what Backward needs is kept until the
// backend's ResetScratch.
func (m *Model) Forward(batch Batch, train bool, step uint64) backend.Matrix {
	if err := m.CheckBatch(batch.Blocks, train); err != nil {
		panic(err.Error())
	}
	x := batch.X
	if p := m.config.InputDropout; train && p > 0 {
		d := m.b.Scratch(x.Rows, x.Cols)
		m.b.Dropout(d, x, backend.MakeDrop(p, m.dropKey(step, 0)))
		x = d
	}
	m.batch, m.outs, m.acts = batch, m.outs[:0], m.acts[:0]
	for l, layer := range m.layers {
		blk, c := m.blockOf(l)
		y := layer.forward(m.b, blk, c, x, train)
		e := m.epilogue(l, train, step)
		m.b.BiasAct(y, y, layer.bias().Value, e)
		m.outs, m.acts = append(m.outs, y), append(m.acts, e)
		x = y
	}
	return x
}

// Backward takes the gradient of the logits of the last Forward, which it overwrites, and sets
// the gradient of every parameter.
func (m *Model) Backward(dlogits backend.Matrix) {
	dy := dlogits
	for l := len(m.layers) - 1; l >= 0; l-- {
		blk, c := m.blockOf(l)
		m.b.BiasActBackward(dy, dy, m.outs[l], m.acts[l])
		m.b.ColSums(m.layers[l].bias().Grad, dy)
		dy = m.layers[l].backward(m.b, blk, c, dy, l > 0)
	}
}

func (m *Model) blockOf(l int) (*backend.Block, *backend.Coef) {
	if !m.config.Kind.UsesEdges() {
		return nil, nil
	}
	return m.batch.Blocks[l], m.batch.Coefs[l]
}

// epilogue returns what follows layer l's product.
func (m *Model) epilogue(l int, train bool, step uint64) backend.Epilogue {
	if l == len(m.layers)-1 {
		return backend.Epilogue{}
	}
	e := backend.Epilogue{ReLU: true}
	if train {
		e.Drop = backend.MakeDrop(m.config.Dropout, m.dropKey(step, l+1))
	}
	return e
}

// dropKey is the key of the dropout before layer l at a step.
func (m *Model) dropKey(step uint64, l int) uint64 {
	return backend.Key(keyDropout, m.config.Seed, step, uint64(l))
}
