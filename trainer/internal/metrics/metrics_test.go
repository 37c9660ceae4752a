package metrics

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestCompute(t *testing.T) {
	nan := float32(math.NaN())
	// Three classes, six rows, predictions 0 1 2 0 1 1 of truths 0 1 2 1 1 0. TP, FP, FN:
	// class 0: 1 1 1, class 1: 2 1 1, class 2: 1 0 0; F1 1/2, 2/3, 1.
	three := []float32{9, 0, 0, 0, 9, 0, 0, 0, 9, 9, 0, 0, 0, 9, 0, 0, 9, 0}
	truth := []int32{0, 1, 2, 1, 1, 0}
	// Two columns, four rows; TP, FP, FN, TN: column 0: 1 1 1 1, column 1: 2 0 0 2.
	two := []float32{1, 1, 2, -1, -1, 3, -2, -2}
	bits := []uint8{1, 1, 0, 0, 1, 1, 0, 0}
	for _, c := range []struct {
		name   string
		metric Name
		logits []float32
		cols   int
		t      Targets
		want   float64
		ok     bool
	}{
		{"accuracy", Accuracy, three, 3, Targets{Class: truth}, 4.0 / 6, true},
		{"micro-F1 of classes", MicroF1, three, 3, Targets{Class: truth}, 4.0 / 6, true},
		{"macro-F1", MacroF1, three, 3, Targets{Class: truth}, (0.5 + 2.0/3 + 1) / 3, true},
		{"mask", Accuracy, three, 3, Targets{Class: truth, Mask: []uint8{1, 1, 1, 0, 0, 1}}, 3.0 / 4, true},
		{"unlabelled rows", Accuracy, three, 3, Targets{Class: []int32{0, -1, -1, -1, -1, 0}}, 1.0 / 2, true},
		{"macro-F1 leaves out classes that don't occur", MacroF1, three[:3], 3, Targets{Class: []int32{0}}, 1, true},
		{"empty mask", Accuracy, three, 3, Targets{Class: truth, Mask: make([]uint8, 6)}, 0, false},
		{"empty mask, macro-F1", MacroF1, three, 3, Targets{Class: truth, Mask: make([]uint8, 6)}, 0, false},
		{"no rows", Accuracy, nil, 3, Targets{Class: []int32{}}, 0, false},
		{"first of equal logits", Accuracy, []float32{1, 1}, 2, Targets{Class: []int32{0}}, 1, true},

		{"multilabel accuracy", Accuracy, two, 2, Targets{Bits: bits}, 6.0 / 8, true},
		{"multilabel micro-F1", MicroF1, two, 2, Targets{Bits: bits}, 6.0 / 8, true}, // 2*3/(2*3+1+1)
		{"multilabel macro-F1", MacroF1, two, 2, Targets{Bits: bits}, (0.5 + 1) / 2, true},
		{"multilabel ROC-AUC", ROCAUC, two, 2, Targets{Bits: bits}, (0.5 + 1) / 2, true}, // column 0: 1, -1 against 2, -2
		{"a column with one class", ROCAUC, two, 2, Targets{Bits: []uint8{1, 1, 1, 0, 1, 1, 1, 0}}, 1, true},
		{"unlabelled elements", Accuracy, two, 2, Targets{Bits: []uint8{1, 255, 0, 255, 255, 255, 255, 255}}, 1.0 / 2, true},
		{"one class only", ROCAUC, two, 2, Targets{Bits: make([]uint8, 8)}, 0, false},

		{"binary accuracy", Accuracy, []float32{1, -1, 2}, 1, Targets{Class: []int32{1, 1, 0}}, 1.0 / 3, true},
		{"binary ROC-AUC", ROCAUC, []float32{1, 2, 3, 4}, 1, Targets{Class: []int32{0, 1, 0, 1}}, 3.0 / 4, true},
		{"binary ROC-AUC, two logits", ROCAUC, []float32{0, 1, 0, 2, 0, 3, 0, 4}, 2, Targets{Class: []int32{0, 1, 0, 1}}, 3.0 / 4, true},
		{"ties", ROCAUC, []float32{5, 5, 5, 5}, 1, Targets{Class: []int32{0, 1, 0, 1}}, 0.5, true},
		{"a tie of two", ROCAUC, []float32{1, 2, 2, 3}, 1, Targets{Class: []int32{0, 1, 0, 1}}, 3.5 / 4, true},
		{"infinite scores", ROCAUC, []float32{float32(math.Inf(-1)), float32(math.Inf(1))}, 1, Targets{Class: []int32{0, 1}}, 1, true},

		{"MAE", MAE, []float32{1, 2, 3}, 1, Targets{Values: []float32{2, 2, 1}}, 1, true},
		{"MAE, unlabelled", MAE, []float32{1, 2, 3}, 1, Targets{Values: []float32{2, nan, nan}}, 1, true},
		{"MAE of nothing", MAE, []float32{1}, 1, Targets{Values: []float32{nan}}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok, err := Compute(c.metric, c.logits, c.cols, &c.t)
			if err != nil {
				t.Fatal(err)
			}
			if ok != c.ok || math.Abs(got-c.want) > 1e-15 {
				t.Errorf("got %v, %v, want %v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestComputeErrors(t *testing.T) {
	nan := float32(math.NaN())
	for name, f := range map[string]func() error{
		"NaN logit": func() error {
			_, _, err := Compute(Accuracy, []float32{1, nan}, 2, &Targets{Class: []int32{0}})
			return err
		},
		"wrong metric": func() error { _, _, err := Compute(MAE, []float32{1, 2}, 2, &Targets{Class: []int32{0}}); return err },
		"AUC, 3 class": func() error {
			_, _, err := Compute(ROCAUC, []float32{1, 2, 3}, 3, &Targets{Class: []int32{0}})
			return err
		},
		"missing rows": func() error {
			_, _, err := Compute(Accuracy, []float32{1, 2}, 2, &Targets{Class: []int32{0, 1}})
			return err
		},
		"ragged logits": func() error {
			_, _, err := Compute(Accuracy, []float32{1, 2, 3}, 2, &Targets{Class: []int32{0}})
			return err
		},
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// A row that doesn't count may hold anything.
	if _, ok, err := Compute(Accuracy, []float32{nan, nan}, 2, &Targets{Class: []int32{0}, Mask: []uint8{0}}); ok || err != nil {
		t.Errorf("masked NaN: %v, %v", ok, err)
	}
}

// TestPerNode: batches of 4, 4 and 2 with 4, 4 and 0 right rows make 0.8, not the mean of
// the batches' accuracies.
func TestPerNode(t *testing.T) {
	c := NewConfusion(2)
	for _, b := range []struct{ right, wrong int }{{4, 0}, {4, 0}, {0, 2}} {
		var logits []float32
		var class []int32
		for range b.right {
			logits, class = append(logits, 1, 0), append(class, 0)
		}
		for range b.wrong {
			logits, class = append(logits, 1, 0), append(class, 1)
		}
		c.Add(logits, &Targets{Class: class})
	}
	if v, ok := c.Accuracy().Value(); !ok || v != 0.8 {
		t.Errorf("got %v, want 0.8", v)
	}
}

// TestAUC compares with the count over all pairs.
func TestAUC(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		n := r.IntN(60)
		scores, positive := make([]float32, n), make([]bool, n)
		for i := range scores {
			scores[i], positive[i] = float32(r.IntN(12)), r.IntN(3) == 0 // many ties
		}
		var pairs, wins float64
		for i := range n {
			for j := range n {
				if positive[i] && !positive[j] {
					pairs++
					switch {
					case scores[i] > scores[j]:
						wins++
					case scores[i] == scores[j]:
						wins += 0.5
					}
				}
			}
		}
		got, ok := AUC(scores, positive)
		if ok != (pairs > 0) || ok && math.Abs(got-wins/pairs) > 1e-12 {
			t.Fatalf("seed %d: got %v, %v, want %v of %v", seed, got, ok, wins, pairs)
		}
	}
}

func TestDefaults(t *testing.T) {
	for task, want := range map[string]Name{"multiclass": Accuracy, "multilabel": MicroF1, "binary": ROCAUC, "regression": MAE} {
		if got, err := Default(task); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", task, got, err, want)
		}
	}
	if _, err := Default("link"); err == nil {
		t.Error("an unknown task has a metric")
	}
	if !Accuracy.Better(0.2, 0.1) || Accuracy.Better(0.1, 0.1) || !MAE.Better(0.1, 0.2) || MAE.Better(0.1, 0.1) {
		t.Error("Better is wrong")
	}
}
