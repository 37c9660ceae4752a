// Package optim holds the optimisers: Adam (Kingma and Ba 2015) and AdamW (Loshchilov and
// Hutter 2019), with a constant learning rate.
package optim

import (
	"fmt"
	"slices"

	"github.com/prelift/prelift/trainer/internal/backend"
	"github.com/prelift/prelift/trainer/internal/model"
)

// Kind names an optimiser.
type Kind string

// The optimisers.
const (
	Adam  Kind = "adam"  // weight decay is L2: added to the gradient
	AdamW Kind = "adamw" // weight decay is decoupled
)

// Kinds lists the optimisers in the order of the help text.
var Kinds = []Kind{Adam, AdamW}

// MaxRate bounds the learning rate and the weight decay: beyond it float32 parameters are
// lost in a step or two.
const MaxRate = 1e6

// DecayLayers says which layers weight decay touches, biases included.
type DecayLayers string

// The groups of --weight-decay-layers.
const (
	DecayAll   DecayLayers = "all"
	DecayFirst DecayLayers = "first" // layer 0 alone, as in the published GCN
)

// DecayGroups lists the groups in the order of the help text.
var DecayGroups = []DecayLayers{DecayAll, DecayFirst}

// Config describes an optimiser. Zero Beta1, Beta2 and Eps mean 0.9, 0.999 and 1e-8.
type Config struct {
	Kind        Kind        `json:"kind"`
	LR          float64     `json:"lr"`
	Beta1       float64     `json:"beta1"`
	Beta2       float64     `json:"beta2"`
	Eps         float64     `json:"eps"`
	WeightDecay float64     `json:"weight_decay"`
	Decay       DecayLayers `json:"weight_decay_layers"`
}

// withDefaults returns c with what is zero or empty filled in.
func (c Config) withDefaults() Config {
	if c.Beta1 == 0 {
		c.Beta1 = 0.9
	}
	if c.Beta2 == 0 {
		c.Beta2 = 0.999
	}
	if c.Eps == 0 {
		c.Eps = 1e-8
	}
	if c.Decay == "" {
		c.Decay = DecayAll
	}
	return c
}

// Check returns an error for a configuration that New refuses.
func (c Config) Check() error {
	c = c.withDefaults()
	switch {
	case !slices.Contains(Kinds, c.Kind):
		return fmt.Errorf("optimiser %q is not one of %v", c.Kind, Kinds)
	case !slices.Contains(DecayGroups, c.Decay):
		return fmt.Errorf("weight decay layers %q is not one of %v", c.Decay, DecayGroups)
	case !(c.LR > 0 && c.LR <= MaxRate):
		return fmt.Errorf("learning rate %v is not above 0 and at most %v", c.LR, MaxRate)
	case !(c.WeightDecay >= 0 && c.WeightDecay <= MaxRate):
		return fmt.Errorf("weight decay %v is not in 0 to %v", c.WeightDecay, MaxRate)
	case !(c.Beta1 >= 0 && c.Beta1 < 1 && c.Beta2 >= 0 && c.Beta2 < 1 && c.Eps > 0):
		return fmt.Errorf("beta %v, %v and eps %v: want 0 <= beta < 1, eps > 0", c.Beta1, c.Beta2, c.Eps)
	}
	return nil
}

// Optimizer updates a model's parameters from their gradients. Not safe for concurrent
// use.
type Optimizer struct {
	config Config
	b      backend.Backend
	params []*model.Param
	m, v   []backend.Matrix
	step   int64
}

// New makes an optimiser with zero moments.
func New(b backend.Backend, params []*model.Param, c Config) (*Optimizer, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	o := &Optimizer{config: c.withDefaults(), b: b, params: params}
	for _, p := range params {
		o.m = append(o.m, b.Alloc(p.Value.Rows, p.Value.Cols))
		o.v = append(o.v, b.Alloc(p.Value.Rows, p.Value.Cols))
	}
	return o, b.Sync()
}

// Config returns the configuration with its defaults filled in.
func (o *Optimizer) Config() Config { return o.config }

// Step updates every parameter once.
func (o *Optimizer) Step() {
	o.step++
	s := backend.AdamStep{
		LR: o.config.LR, Beta1: o.config.Beta1, Beta2: o.config.Beta2, Eps: o.config.Eps,
		Decoupled: o.config.Kind == AdamW, Step: o.step,
	}
	for i, p := range o.params {
		s.WeightDecay = 0
		if o.config.Decay == DecayAll || p.Layer == 0 {
			s.WeightDecay = o.config.WeightDecay
		}
		o.b.Adam(p.Value, o.m[i], o.v[i], p.Grad, s)
	}
}

// Steps returns the number of steps made.
func (o *Optimizer) Steps() int64 { return o.step }

// SetSteps sets the number of steps made, when a checkpoint is loaded into State.
func (o *Optimizer) SetSteps(n int64) { o.step = n }

// State lists the moments, "optimizer.m.NAME" and "optimizer.v.NAME" for each parameter.
// Together with Steps it is all the state there is.
func (o *Optimizer) State() []backend.Named {
	var state []backend.Named
	for i, p := range o.params {
		state = append(state,
			backend.Named{Name: "optimizer.m." + p.Name, Shape: p.Shape, Value: o.m[i]},
			backend.Named{Name: "optimizer.v." + p.Name, Shape: p.Shape, Value: o.v[i]})
	}
	return state
}
