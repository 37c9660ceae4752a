package cpu

import (
	"fmt"
	"math"

	"github.com/prelift/prelift/trainer/internal/backend"
)

// lossTask computes a loss and its gradient over chunks of chunkRows rows; each chunk's
// sum goes to its own place in partial, and the sums are added in order.
type lossTask struct {
	softmax          bool
	numParts         int
	numChunks        int
	numRows, numCols int
	grad, logits     []float32 // grad is nil when not wanted
	t                *backend.Targets
	scale            float64 // 1/count
	partial          []float64
}

func (t *lossTask) do(part int) {
	lo, hi := span(part, t.numParts, t.numChunks)
	for c := lo; c < hi; c++ {
		var sum float64
		for r := c * chunkRows; r < min((c+1)*chunkRows, t.numRows); r++ {
			z := t.logits[r*t.numCols : (r+1)*t.numCols]
			var dz []float32
			if t.grad != nil {
				dz = t.grad[r*t.numCols : (r+1)*t.numCols]
			}
			switch {
			case t.softmax:
				sum += t.softmaxRow(r, z, dz)
			default:
				sum += t.sigmoidRow(r, z, dz)
			}
		}
		t.partial[c] = sum
	}
}

// softmaxRow returns log(sum exp z) - z[label] and sets dz = (softmax(z) - onehot)*scale;
// for a row that doesn't count, 0 and zeros.
func (t *lossTask) softmaxRow(r int, z, dz []float32) float64 {
	label := t.t.Class[r]
	if label < 0 || !t.t.Counts(r) {
		clear(dz)
		return 0
	}
	top := math.Inf(-1)
	for _, v := range z {
		top = max(top, float64(v))
	}
	var sum float64
	for _, v := range z {
		sum += math.Exp(float64(v) - top)
	}
	loss := math.Log(sum) + top - float64(z[label])
	if dz != nil {
		for j, v := range z {
			p := math.Exp(float64(v)-top) / sum
			if int32(j) == label {
				p--
			}
			dz[j] = float32(p * t.scale)
		}
	}
	return loss
}

// sigmoidRow returns the sum over the row's counted elements of
// max(z,0) - z*y + log(1+exp(-|z|)) and sets dz = (sigmoid(z) - y)*scale on them, 0 elsewhere.
func (t *lossTask) sigmoidRow(r int, z, dz []float32) float64 {
	if !t.t.Counts(r) {
		clear(dz)
		return 0
	}
	var loss float64
	for j, v := range z {
		y, ok := bit(t.t, r, j, t.numCols)
		if !ok {
			if dz != nil {
				dz[j] = 0
			}
			continue
		}
		x := float64(v)
		e := math.Exp(-math.Abs(x))
		loss += max(x, 0) - x*y + math.Log1p(e)
		if dz != nil {
			p := 1 / (1 + e)
			if x < 0 {
				p = e / (1 + e)
			}
			dz[j] = float32((p - y) * t.scale)
		}
	}
	return loss
}

// bit returns the target of element (r, j) and whether it has one.
func bit(t *backend.Targets, r, j, numCols int) (y float64, ok bool) {
	if t.Bits != nil {
		v := t.Bits[r*numCols+j]
		return float64(v), v <= 1
	}
	v := t.Class[r]
	return float64(v), v == 0 || v == 1
}

// SoftmaxCE is softmax and cross-entropy.
func (b *Backend) SoftmaxCE(dlogits, logits backend.Matrix, t *backend.Targets) {
	checkTargets("SoftmaxCE", dlogits, logits, t)
	if len(t.Class) != logits.Rows {
		panic(fmt.Sprintf("cpu: SoftmaxCE: %d labels for logits %v", len(t.Class), logits))
	}
	var count int64
	for r, label := range t.Class {
		if label >= 0 && t.Counts(r) {
			if int(label) >= logits.Cols {
				panic(fmt.Sprintf("cpu: SoftmaxCE: label %d of row %d, %d classes", label, r, logits.Cols))
			}
			count++
		}
	}
	b.lossOp("SoftmaxCE", true, count, dlogits, logits, t)
}

// SigmoidBCE is the logistic loss.
func (b *Backend) SigmoidBCE(dlogits, logits backend.Matrix, t *backend.Targets) {
	checkTargets("SigmoidBCE", dlogits, logits, t)
	bits := t.Bits != nil && len(t.Bits) == logits.Rows*logits.Cols
	class := t.Bits == nil && logits.Cols == 1 && len(t.Class) == logits.Rows
	if !bits && !class && logits.Rows > 0 {
		panic(fmt.Sprintf("cpu: SigmoidBCE: %d bits, %d labels for logits %v", len(t.Bits), len(t.Class), logits))
	}
	var count int64
	for r := range logits.Rows {
		if !t.Counts(r) {
			continue
		}
		for j := range logits.Cols {
			if _, ok := bit(t, r, j, logits.Cols); ok {
				count++
			}
		}
	}
	b.lossOp("SigmoidBCE", false, count, dlogits, logits, t)
}

func checkTargets(op string, dlogits, logits backend.Matrix, t *backend.Targets) {
	if !dlogits.IsZero() {
		sameShape(op, logits, dlogits)
	}
	if t.Mask != nil && len(t.Mask) != logits.Rows {
		panic(fmt.Sprintf("cpu: %s: mask of %d rows for logits %v", op, len(t.Mask), logits))
	}
}

func (b *Backend) lossOp(op string, softmax bool, count int64, dlogits, logits backend.Matrix, t *backend.Targets) {
	numChunks := (logits.Rows + chunkRows - 1) / chunkRows
	b.loss = lossTask{
		softmax: softmax, numChunks: numChunks, numRows: logits.Rows, numCols: logits.Cols,
		grad: dlogits.Host(), logits: logits.Host(), t: t,
		numParts: b.partsOf(numChunks, chunkRows*logits.Cols*16),
		partial:  b.partials(numChunks),
	}
	if count > 0 {
		b.loss.scale = 1 / float64(count)
	}
	b.run(op, &b.loss, b.loss.numParts)
	if b.err == nil {
		for _, v := range b.loss.partial {
			b.lossSum += v
		}
		b.lossCount += count
	}
	b.loss = lossTask{}
}
