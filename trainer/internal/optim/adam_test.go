package optim

import (
	"math"
	"strings"
	"testing"

	"github.com/prelift/prelift/trainer/internal/backend"
	"github.com/prelift/prelift/trainer/internal/backend/cpu"
	"github.com/prelift/prelift/trainer/internal/model"
)

func setup(t *testing.T, c Config) (backend.Backend, *model.Model, *Optimizer) {
	t.Helper()
	b := cpu.New(cpu.Options{Threads: 1})
	t.Cleanup(func() { b.Close() })
	m, err := model.New(b, model.Config{Kind: model.MLP, In: 1, Hidden: 1, Out: 1, Layers: 2})
	if err != nil {
		t.Fatal(err)
	}
	o, err := New(b, m.Params(), c)
	if err != nil {
		t.Fatal(err)
	}
	return b, m, o
}

// TestFirstStep: after one step m/(1-b1) = g and sqrt(v/(1-b2)) = |g|, so each value moves
// by lr against the sign of its gradient.
func TestFirstStep(t *testing.T) {
	for _, c := range []struct {
		name  string
		c     Config
		value float32
		grad  float32
		want  [2]float64 // layer 0, layer 1
	}{
		{"adam", Config{Kind: Adam, LR: 0.1}, 1, 3, [2]float64{0.9, 0.9}},
		{"adam, negative gradient", Config{Kind: Adam, LR: 0.1}, 1, -0.01, [2]float64{1.1, 1.1}},
		{"adam, decay turns the sign", Config{Kind: Adam, LR: 0.1, WeightDecay: 2}, 1, -1, [2]float64{0.9, 0.9}},
		{"adam, decay on the first layer", Config{Kind: Adam, LR: 0.1, WeightDecay: 2, Decay: DecayFirst}, 1, -1, [2]float64{0.9, 1.1}},
		{"adamw", Config{Kind: AdamW, LR: 0.1, WeightDecay: 2}, 1, -1, [2]float64{0.9, 0.9}},
		{"adamw, decay on the first layer", Config{Kind: AdamW, LR: 0.1, WeightDecay: 2, Decay: DecayFirst}, 1, -1, [2]float64{0.9, 1.1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, m, o := setup(t, c.c)
			for _, p := range m.Params() {
				b.Upload(p.Value, []float32{c.value})
				b.Upload(p.Grad, []float32{c.grad})
			}
			o.Step()
			for _, p := range m.Params() {
				got := make([]float32, 1)
				if err := b.Download(got, p.Value); err != nil {
					t.Fatal(err)
				}
				if math.Abs(float64(got[0])-c.want[p.Layer]) > 1e-5 {
					t.Errorf("%s: got %v, want %v", p.Name, got[0], c.want[p.Layer])
				}
			}
			if o.Steps() != 1 {
				t.Errorf("%d steps, want 1", o.Steps())
			}
		})
	}
}

// TestState copies the state of one optimiser into another: both go on alike.
func TestState(t *testing.T) {
	run := func(breakAt int) []float32 {
		b, m, o := setup(t, Config{Kind: Adam, LR: 0.05, WeightDecay: 0.01})
		for step := range 6 {
			if step == breakAt {
				again, err := New(b, m.Params(), o.Config())
				if err != nil {
					t.Fatal(err)
				}
				from, to := o.State(), again.State()
				for i := range from {
					if from[i].Name != to[i].Name || !strings.HasPrefix(from[i].Name, "optimizer.") {
						t.Fatalf("state %q and %q", from[i].Name, to[i].Name)
					}
					b.Copy(to[i].Value, from[i].Value)
				}
				again.SetSteps(o.Steps())
				o = again
			}
			for i, p := range m.Params() {
				b.Upload(p.Grad, []float32{float32(math.Sin(float64(7*step + i)))})
			}
			o.Step()
		}
		var all []float32
		for _, p := range m.Params() {
			got := make([]float32, 1)
			if err := b.Download(got, p.Value); err != nil {
				t.Fatal(err)
			}
			all = append(all, got...)
		}
		return all
	}
	want := run(-1)
	for i, v := range run(3) {
		if v != want[i] {
			t.Errorf("parameter %d: %v after a break, %v without", i, v, want[i])
		}
	}
}

func TestConfigErrors(t *testing.T) {
	b := cpu.New(cpu.Options{Threads: 1})
	defer b.Close()
	for _, c := range []Config{
		{Kind: "sgd", LR: 1}, {Kind: Adam}, {Kind: Adam, LR: math.NaN()}, {Kind: Adam, LR: math.Inf(1)},
		{Kind: Adam, LR: 1, WeightDecay: -1}, {Kind: Adam, LR: 1, Beta1: 1}, {Kind: Adam, LR: 1, Decay: "last"},
	} {
		if _, err := New(b, nil, c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
