package cpu

import (
	"math"

	"github.com/prelift/prelift/trainer/internal/backend"
)

// elemTask is an operation on elements without regard to rows: parts are stretches of
// the flat arrays.
type elemTask struct {
	kind     elemKind
	numParts int
	a        float32
	dst, src []float32

	m, v                              []float32 // Adam, with dst = p, src = g
	decay, beta1, rest1, beta2, rest2 float32
	rate, root2, eps, shrink          float32
}

type elemKind uint8

const (
	elemZero elemKind = iota
	elemCopy
	elemScale
	elemAdd
	elemAdam
)

var elemNames = [...]string{"Zero", "Copy", "Scale", "Add", "Adam"}

func (t *elemTask) do(part int) {
	lo, hi := span(part, t.numParts, len(t.dst))
	dst := t.dst[lo:hi]
	switch t.kind {
	case elemZero:
		clear(dst)
	case elemCopy:
		copy(dst, t.src[lo:hi])
	case elemScale:
		for i := range dst {
			dst[i] *= t.a
		}
	case elemAdd:
		src := t.src[lo:hi][:len(dst)]
		for i := range dst {
			dst[i] += float32(t.a * src[i])
		}
	case elemAdam:
		t.adam(dst, t.src[lo:hi][:len(dst)], t.m[lo:hi][:len(dst)], t.v[lo:hi][:len(dst)])
	}
}

// adam is backend.AdamStep's formula in float32, each product rounded.
func (t *elemTask) adam(p, g, m, v []float32) {
	for i := range p {
		w, d := p[i], g[i]
		d += float32(t.decay * w)
		w = float32(w * t.shrink)
		mi := float32(t.beta1*m[i]) + float32(t.rest1*d)
		vi := float32(t.beta2*v[i]) + float32(t.rest2*float32(d*d))
		m[i], v[i] = mi, vi
		root := float32(math.Sqrt(float64(vi)))
		p[i] = w - float32(t.rate*mi)/(float32(root/t.root2)+t.eps)
	}
}

func (b *Backend) element(kind elemKind, cost int, dst, src []float32, a float32) {
	b.elem = elemTask{kind: kind, numParts: b.partsOf(len(dst), cost), dst: dst, src: src, a: a}
	b.run(elemNames[kind], &b.elem, b.elem.numParts)
	b.elem = elemTask{}
}

// Zero sets m to 0.
func (b *Backend) Zero(m backend.Matrix) { b.element(elemZero, 1, m.Host(), nil, 0) }

// Copy sets dst to src.
func (b *Backend) Copy(dst, src backend.Matrix) {
	sameShape("Copy", dst, src)
	b.copy("Copy", dst.Host(), src.Host())
}

func (b *Backend) copy(op string, dst, src []float32) {
	b.elem = elemTask{kind: elemCopy, numParts: b.partsOf(len(dst), 1), dst: dst, src: src}
	b.run(op, &b.elem, b.elem.numParts)
	b.elem = elemTask{}
}

// Scale computes m = a*m.
func (b *Backend) Scale(m backend.Matrix, a float32) { b.element(elemScale, 1, m.Host(), nil, a) }

// Add computes y += a*x.
func (b *Backend) Add(y backend.Matrix, a float32, x backend.Matrix) {
	sameShape("Add", y, x)
	b.element(elemAdd, 1, y.Host(), x.Host(), a)
}

// Adam makes one optimiser step. The constants are worked out in float64 and rounded once.
func (b *Backend) Adam(p, m, v, g backend.Matrix, s backend.AdamStep) {
	sameShape("Adam", p, m, v, g)
	if s.Step < 1 {
		panic("cpu: Adam: steps are counted from 1")
	}
	t := float64(s.Step)
	b.elem = elemTask{
		kind: elemAdam, numParts: b.partsOf(len(p.Host()), 8),
		dst: p.Host(), src: g.Host(), m: m.Host(), v: v.Host(),
		beta1: float32(s.Beta1), rest1: float32(1 - s.Beta1),
		beta2: float32(s.Beta2), rest2: float32(1 - s.Beta2),
		rate:  float32(s.LR / (1 - math.Pow(s.Beta1, t))),
		root2: float32(math.Sqrt(1 - math.Pow(s.Beta2, t))),
		eps:   float32(s.Eps), shrink: 1,
	}
	if s.Decoupled {
		b.elem.shrink = float32(1 - s.LR*s.WeightDecay)
	} else {
		b.elem.decay = float32(s.WeightDecay)
	}
	b.run("Adam", &b.elem, b.elem.numParts)
	b.elem = elemTask{}
}
