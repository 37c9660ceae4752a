// Package metrics computes what a trained model is judged by. Every value comes with
// ok: it is false where there is nothing to judge (an empty split, one class only for
// ROC-AUC), and the value is then 0 and must be printed as "not available", never as NaN.
//
// Counts are kept apart from the division (Confusion, Columns), so that a metric over several
// batches is per node and not a mean of the batches' means.
package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Name of a metric, as in --metric.
type Name string

// The metrics.
const (
	Accuracy Name = "accuracy" // share of rows whose largest logit is the label's
	MacroF1  Name = "macro-f1"
	MicroF1  Name = "micro-f1"
	ROCAUC   Name = "roc-auc"
	MAE      Name = "mae" // mean absolute error; smaller is better
)

// Names lists the metrics that --metric takes, in the order of the help text. MAE joins
// them when the trainer has a regression task.
var Names = []Name{Accuracy, MacroF1, MicroF1, ROCAUC}

// Default returns the metric of a task: multiclass, multilabel, binary or regression.
func Default(task string) (Name, error) {
	switch task {
	case "multiclass":
		return Accuracy, nil
	case "multilabel":
		return MicroF1, nil
	case "binary":
		return ROCAUC, nil
	case "regression":
		return MAE, nil
	}
	return "", fmt.Errorf("metrics: task %q is unknown", task)
}

// Better reports whether a beats b; equal values don't, so the first of equals stays.
func (n Name) Better(a, b float64) bool {
	if n == MAE {
		return a < b
	}
	return a > b
}

// Ratio is a share: of so many, so many.
type Ratio struct{ Right, Total int64 }

// Value returns Right/Total.
func (r Ratio) Value() (v float64, ok bool) {
	if r.Total == 0 {
		return 0, false
	}
	return float64(r.Right) / float64(r.Total), true
}

// Targets are the true values of the rows of a logits table. A row counts where Mask is
// nil or not 0.
type Targets struct {
	Class  []int32   // [rows]; below 0 is unlabelled. For softmax, and for one logit a row
	Bits   []uint8   // [rows, cols] 0 or 1; other values are unlabelled
	Values []float32 // [rows, cols]; NaN is unlabelled
	Mask   []uint8   // [rows]
}

func (t *Targets) counts(r int) bool { return t.Mask == nil || t.Mask[r] != 0 }

// bit returns the truth of element (r, j) for logistic outputs, and whether it has one.
func (t *Targets) bit(r, j, cols int) (truth, ok bool) {
	if !t.counts(r) {
		return false, false
	}
	if t.Bits != nil {
		v := t.Bits[r*cols+j]
		return v == 1, v <= 1
	}
	v := t.Class[r]
	return v == 1, v == 0 || v == 1
}

// Compute returns a metric of a whole table of logits [rows, cols], row-major.
//
//   - With Bits, or with Class and one column, outputs are logistic: an element is predicted
//     true when its logit is above 0. accuracy is then the share of right elements.
//   - With Class and several columns the prediction is the largest logit, the first of equals.
//   - With Values, only mae.
//
// A logit that isn't a number is an error: the model has diverged. So is a metric that
// doesn't fit the targets.
func Compute(n Name, logits []float32, cols int, t *Targets) (v float64, ok bool, err error) {
	if cols < 1 || len(logits)%cols != 0 {
		return 0, false, fmt.Errorf("metrics: %d logits in rows of %d", len(logits), cols)
	}
	rows := len(logits) / cols
	if t.Mask != nil && len(t.Mask) != rows || t.Class != nil && len(t.Class) != rows ||
		t.Bits != nil && len(t.Bits) != len(logits) || t.Values != nil && len(t.Values) != len(logits) {
		return 0, false, fmt.Errorf("metrics: targets don't have the %d rows of the logits", rows)
	}
	for r := range rows {
		for _, z := range logits[r*cols : (r+1)*cols] {
			if t.counts(r) && z != z {
				return 0, false, fmt.Errorf("the model's output for row %d is not a number", r)
			}
		}
	}
	binary := t.Bits != nil || t.Class != nil && cols == 1
	softmax := t.Bits == nil && t.Class != nil && cols > 1
	switch {
	case n == MAE && t.Values != nil:
		v, ok = meanAbsolute(logits, cols, t)
	case n == ROCAUC && binary:
		v, ok = meanAUC(logits, cols, t)
	case n == ROCAUC && softmax && cols == 2: // two logits: their difference is the score
		diff := make([]float32, rows)
		for r := range diff {
			diff[r] = logits[2*r+1] - logits[2*r]
		}
		v, ok = meanAUC(diff, 1, t)
	case softmax && (n == Accuracy || n == MacroF1 || n == MicroF1):
		c := NewConfusion(cols)
		c.Add(logits, t)
		v, ok = c.Value(n)
	case binary && (n == Accuracy || n == MacroF1 || n == MicroF1):
		c := NewColumns(cols)
		c.Add(logits, t)
		v, ok = c.Value(n)
	default:
		return 0, false, fmt.Errorf("metrics: %s doesn't fit this task", n)
	}
	return v, ok, nil
}

// Argmax returns the place of the largest value, the first of equals; 0 for none.
func Argmax(row []float32) int {
	best := 0
	for j, v := range row {
		if v > row[best] {
			best = j
		}
	}
	return best
}

// Confusion counts, for several classes, how often class t was taken for class p.
type Confusion struct {
	NumClasses int
	Counts     []int64 // [truth, prediction]
}

// NewConfusion returns an empty table.
func NewConfusion(numClasses int) *Confusion {
	return &Confusion{NumClasses: numClasses, Counts: make([]int64, numClasses*numClasses)}
}

// Add counts the rows of a batch by their largest logits.
func (c *Confusion) Add(logits []float32, t *Targets) {
	for r, truth := range t.Class {
		if truth < 0 || int(truth) >= c.NumClasses || !t.counts(r) {
			continue
		}
		p := Argmax(logits[r*c.NumClasses : (r+1)*c.NumClasses])
		c.Counts[int(truth)*c.NumClasses+p]++
	}
}

// Accuracy returns the counts of right rows.
func (c *Confusion) Accuracy() Ratio {
	var r Ratio
	for i, n := range c.Counts {
		r.Total += n
		if i%(c.NumClasses+1) == 0 {
			r.Right += n
		}
	}
	return r
}

// Value returns accuracy, micro-F1 (which is accuracy, as each row has one label and
// one prediction) or macro-F1: the plain mean of F1 = 2TP/(2TP+FP+FN) over the classes that
// occur as a truth or a prediction, as in scikit-learn's f1_score.
func (c *Confusion) Value(n Name) (v float64, ok bool) {
	if n != MacroF1 {
		return c.Accuracy().Value()
	}
	f := NewColumns(c.NumClasses)
	for truth := range c.NumClasses {
		for p := range c.NumClasses {
			k := c.Counts[truth*c.NumClasses+p]
			if truth == p {
				f.TP[p] += k
			} else {
				f.FP[p] += k
				f.FN[truth] += k
			}
		}
	}
	var sum float64
	present := 0
	for j := range c.NumClasses {
		if f.TP[j]+f.FP[j]+f.FN[j] > 0 {
			sum += f1(f.TP[j], f.FP[j], f.FN[j])
			present++
		}
	}
	if present == 0 {
		return 0, false
	}
	return sum / float64(present), true
}

// Columns counts logistic outputs by column.
type Columns struct{ TP, FP, FN, TN []int64 }

// NewColumns returns empty counts.
func NewColumns(cols int) *Columns {
	return &Columns{make([]int64, cols), make([]int64, cols), make([]int64, cols), make([]int64, cols)}
}

// Add counts the elements of a batch, predicted true where the logit is above 0.
func (c *Columns) Add(logits []float32, t *Targets) {
	cols := len(c.TP)
	for i, z := range logits {
		r, j := i/cols, i%cols
		truth, ok := t.bit(r, j, cols)
		switch {
		case !ok:
		case truth && z > 0:
			c.TP[j]++
		case truth:
			c.FN[j]++
		case z > 0:
			c.FP[j]++
		default:
			c.TN[j]++
		}
	}
}

// Value returns accuracy over all elements; micro-F1, F1 of the counts summed over the
// columns; or macro-F1, the plain mean of the columns' F1, where a column without a true or
// predicted positive counts 0 (scikit-learn's zero_division=0). Columns without any labelled
// element are left out.
func (c *Columns) Value(n Name) (v float64, ok bool) {
	var tp, fp, fn, tn int64
	var sum float64
	labelled := 0
	for j := range c.TP {
		tp, fp, fn, tn = tp+c.TP[j], fp+c.FP[j], fn+c.FN[j], tn+c.TN[j]
		if c.TP[j]+c.FP[j]+c.FN[j]+c.TN[j] > 0 {
			sum += f1(c.TP[j], c.FP[j], c.FN[j])
			labelled++
		}
	}
	if labelled == 0 {
		return 0, false
	}
	switch n {
	case Accuracy:
		return float64(tp+tn) / float64(tp+fp+fn+tn), true
	case MicroF1:
		return f1(tp, fp, fn), true
	case MacroF1:
		return sum / float64(labelled), true
	}
	return 0, false
}

// f1 is 2TP/(2TP+FP+FN), 0 where that is 0/0.
func f1(tp, fp, fn int64) float64 {
	if tp+fp+fn == 0 {
		return 0
	}
	return 2 * float64(tp) / float64(2*tp+fp+fn)
}

// AUC is the area under the ROC curve: the probability that a positive scores above a
// negative, equal scores counting half (Mann-Whitney's U over positives x negatives; Fawcett
// 2006). ok is false unless both classes occur. It sorts a copy: O(n log n).
func AUC(scores []float32, positive []bool) (v float64, ok bool) {
	order := make([]int32, len(scores))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(scores[a], scores[b]) })
	var numPos, numNeg int64
	var twiceU int64 // twice the number of (positive, negative) pairs in order, ties one
	for i := 0; i < len(order); {
		j, pos, neg := i, int64(0), int64(0)
		for ; j < len(order) && scores[order[j]] == scores[order[i]]; j++ {
			if positive[order[j]] {
				pos++
			} else {
				neg++
			}
		}
		twiceU += pos * (2*numNeg + neg)
		numPos, numNeg = numPos+pos, numNeg+neg
		i = max(j, i+1) // a NaN equals nothing, itself included
	}
	if numPos == 0 || numNeg == 0 {
		return 0, false
	}
	return float64(twiceU) / 2 / float64(numPos) / float64(numNeg), true
}

// meanAUC is the plain mean of the columns' AUC over those that have both classes, as
// Open Graph Benchmark's evaluator has it.
func meanAUC(logits []float32, cols int, t *Targets) (v float64, ok bool) {
	var sum float64
	n := 0
	for j := range cols {
		var scores []float32
		var positive []bool
		for r := range len(logits) / cols {
			if truth, ok := t.bit(r, j, cols); ok {
				scores, positive = append(scores, logits[r*cols+j]), append(positive, truth)
			}
		}
		if a, ok := AUC(scores, positive); ok {
			sum += a
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// meanAbsolute is the mean of |output - value| over the counted elements, in float64.
func meanAbsolute(out []float32, cols int, t *Targets) (v float64, ok bool) {
	var sum float64
	n := 0
	for i, y := range t.Values {
		if t.counts(i/cols) && y == y {
			sum += math.Abs(float64(out[i]) - float64(y))
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}
