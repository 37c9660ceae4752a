package cpu

import (
	"math"

	"github.com/prelift/prelift/trainer/internal/backend"
)

// All three forms of GEMM end in one kernel on row-major operands. The transposed
// operand is copied first: whole for NT, where it is a weight matrix, and block by block for TN,
// where it is the activations.
//
// Gonum's Sgemm, called on blocks small enough that it starts no goroutines, and this kernel,
// side by side on one core of an AVX-512 machine, best of 9, GFLOP/s of the dense count:
//
//	4096x602x256                8.5 and 7.2
//	4096x256x128                8.7 and 6.9
//	4096x256x47                 4.3 and 5.9
//	2708x1433x16                4.2 and 4.6
//	2708x1433x16, 98.7 % zeros  24 and 30
//	4096x256x256, 50 % zeros    11.4 and 13.1
//
// Ours is taken: the last layer of a network is narrow, hidden activations are half zeros, bag
// of words features nearly all, and its bits are the same on every architecture.

const (
	gemmRows  = 64  // rows of out in a block, at most
	gemmInner = 128 // inner indices in a block
	gemmCols  = 512 // columns of out in a block: 128 rows of b take 256 KiB of the L2 cache
)

// gemmTask computes out (+)= a*b or aᵀ*b; parts are ranges of rows of out.
type gemmTask struct {
	numParts   int
	trans      bool
	accumulate bool
	m, n, k    int
	out, a, b  []float32
}

func (t *gemmTask) do(part int) {
	lo, hi := span(part, t.numParts, t.m)
	if !t.accumulate {
		clear(t.out[lo*t.n : hi*t.n])
	}
	var packed [gemmRows * gemmInner]float32
	for i := lo; i < hi; i += gemmRows {
		rows := min(gemmRows, hi-i)
		for l := 0; l < t.k; l += gemmInner {
			inner := min(gemmInner, t.k-l)
			a, lda := t.a, t.k
			if t.trans {
				for q := range inner {
					for p, v := range t.a[(l+q)*t.m+i:][:rows] {
						packed[p*gemmInner+q] = v
					}
				}
				a, lda = packed[:], gemmInner
			} else {
				a = a[i*t.k+l:]
			}
			for j := 0; j < t.n; j += gemmCols {
				cols := min(gemmCols, t.n-j)
				gemmBlock(rows, cols, inner, t.out[i*t.n+j:], t.n, a, lda, t.b[l*t.n+j:], t.n)
			}
		}
	}
}

// gemmBlock is
//
//	for i in rows, for j in cols: for l in inner, in order:
//		c[i*ldc+j] += a[i*lda+l] * b[l*ldb+j]   // the product rounded to float32 first
//
// with terms left out where a is 0 in rows that are mostly 0. inner <= gemmInner. Whether
// terms are left out depends on the row alone, so cutting rows otherwise changes no bit.
func gemmBlock(rows, cols, inner int, c []float32, ldc int, a []float32, lda int, b []float32, ldb int) {
	var at [gemmRows]int16 // dense rows wait here for a second one
	dense := 0
	for i := range rows {
		ar := a[i*lda:][:inner]
		var pos [gemmInner]uint8
		n := nonzeros(&pos, ar)
		if 4*n >= 3*inner {
			at[dense] = int16(i)
			dense++
			continue
		}
		gemmSparseRow(c[i*ldc:][:cols], ar, pos[:n], b, ldb)
	}
	i := 0
	for ; i+2 <= dense; i += 2 {
		p, q := int(at[i]), int(at[i+1])
		gemmTwoRows(c[p*ldc:][:cols], c[q*ldc:][:cols], a[p*lda:][:inner], a[q*lda:][:inner], b, ldb)
	}
	if i < dense {
		p := int(at[i])
		gemmRow(c[p*ldc:][:cols], a[p*lda:][:inner], b, ldb)
	}
}

// nonzeros lists the places in a where it isn't 0 and returns their number;
// len(a) <= gemmInner. Runs of zeros are skipped by fours, the rest is free of branches.
func nonzeros(pos *[gemmInner]uint8, a []float32) int {
	n, l := 0, 0
	for ; l+4 <= len(a); l += 4 {
		v := (*[4]float32)(a[l:])
		u0, u1 := math.Float32bits(v[0])<<1, math.Float32bits(v[1])<<1 // 0 for both zeros
		u2, u3 := math.Float32bits(v[2])<<1, math.Float32bits(v[3])<<1
		if u0|u1|u2|u3 == 0 {
			continue
		}
		// (u|-u)>>31 is 1 where u isn't 0. n < gemmInner at each store; the mask tells the compiler.
		pos[n&(gemmInner-1)] = uint8(l)
		n += int((u0 | -u0) >> 31)
		pos[n&(gemmInner-1)] = uint8(l + 1)
		n += int((u1 | -u1) >> 31)
		pos[n&(gemmInner-1)] = uint8(l + 2)
		n += int((u2 | -u2) >> 31)
		pos[n&(gemmInner-1)] = uint8(l + 3)
		n += int((u3 | -u3) >> 31)
	}
	for ; l < len(a); l++ {
		if a[l] != 0 {
			pos[n] = uint8(l)
			n++
		}
	}
	return n
}

// gemmTwoRows adds two rows of a times b to c and d: four inner indices at a time, each
// loaded row of b used twice.
func gemmTwoRows(c, d, ac, ad []float32, b []float32, ldb int) {
	d, ad = d[:len(c)], ad[:len(ac)]
	l := 0
	for ; l+4 <= len(ac); l += 4 {
		p, q := (*[4]float32)(ac[l:]), (*[4]float32)(ad[l:])
		p0, p1, p2, p3 := p[0], p[1], p[2], p[3]
		q0, q1, q2, q3 := q[0], q[1], q[2], q[3]
		b0 := b[l*ldb:][:len(c)]
		b1 := b[(l+1)*ldb:][:len(c)]
		b2 := b[(l+2)*ldb:][:len(c)]
		b3 := b[(l+3)*ldb:][:len(c)]
		for j := range c {
			s, t := c[j], d[j]
			x0, x1, x2, x3 := b0[j], b1[j], b2[j], b3[j]
			s += float32(p0 * x0)
			t += float32(q0 * x0)
			s += float32(p1 * x1)
			t += float32(q1 * x1)
			s += float32(p2 * x2)
			t += float32(q2 * x2)
			s += float32(p3 * x3)
			t += float32(q3 * x3)
			c[j], d[j] = s, t
		}
	}
	for ; l < len(ac); l++ {
		p, q := ac[l], ad[l]
		x := b[l*ldb:][:len(c)]
		for j, v := range x {
			c[j] += float32(p * v)
			d[j] += float32(q * v)
		}
	}
}

// gemmRow adds one row of a times b to c.
func gemmRow(c, a []float32, b []float32, ldb int) {
	l := 0
	for ; l+4 <= len(a); l += 4 {
		p := (*[4]float32)(a[l:])
		p0, p1, p2, p3 := p[0], p[1], p[2], p[3]
		b0 := b[l*ldb:][:len(c)]
		b1 := b[(l+1)*ldb:][:len(c)]
		b2 := b[(l+2)*ldb:][:len(c)]
		b3 := b[(l+3)*ldb:][:len(c)]
		for j := range c {
			s := c[j]
			s += float32(p0 * b0[j])
			s += float32(p1 * b1[j])
			s += float32(p2 * b2[j])
			s += float32(p3 * b3[j])
			c[j] = s
		}
	}
	for ; l < len(a); l++ {
		p := a[l]
		for j, v := range b[l*ldb:][:len(c)] {
			c[j] += float32(p * v)
		}
	}
}

// gemmSparseRow is gemmRow over the inner indices in pos, where a isn't 0.
func gemmSparseRow(c, a []float32, pos []uint8, b []float32, ldb int) {
	i := 0
	for ; i+4 <= len(pos); i += 4 {
		l := (*[4]uint8)(pos[i:])
		l0, l1, l2, l3 := int(l[0]), int(l[1]), int(l[2]), int(l[3])
		p0, p1, p2, p3 := a[l0], a[l1], a[l2], a[l3]
		b0 := b[l0*ldb:][:len(c)]
		b1 := b[l1*ldb:][:len(c)]
		b2 := b[l2*ldb:][:len(c)]
		b3 := b[l3*ldb:][:len(c)]
		for j := range c {
			s := c[j]
			s += float32(p0 * b0[j])
			s += float32(p1 * b1[j])
			s += float32(p2 * b2[j])
			s += float32(p3 * b3[j])
			c[j] = s
		}
	}
	for ; i < len(pos); i++ {
		l := int(pos[i])
		p := a[l]
		for j, v := range b[l*ldb:][:len(c)] {
			c[j] += float32(p * v)
		}
	}
}

// GEMM multiplies matrices.
func (b *Backend) GEMM(form backend.Form, accumulate bool, out, x, y backend.Matrix) {
	m, n, k := form.Shape(out, x, y)
	if m == 0 || n == 0 {
		return
	}
	right := y.Host()
	if form == backend.NT {
		right = b.transposed(y)
	}
	b.gemm = gemmTask{
		trans: form == backend.TN, accumulate: accumulate, m: m, n: n, k: k,
		out: out.Host(), a: x.Host(), b: right,
	}
	// Two rows share each loaded row of b, so parts of fewer than two rows don't pay.
	b.gemm.numParts = min(b.partsOf(m, n*k), (m+1)/2)
	b.run("GEMM", &b.gemm, b.gemm.numParts)
	b.gemm = gemmTask{}
}

// transposeTask is out = xᵀ; parts are ranges of rows of out.
type transposeTask struct {
	numParts   int
	rows, cols int // of x
	out, x     []float32
}

func (t *transposeTask) do(part int) {
	lo, hi := span(part, t.numParts, t.cols)
	const tile = 16 // a cache line of floats
	for r0 := 0; r0 < t.rows; r0 += tile {
		r1 := min(r0+tile, t.rows)
		for c := lo; c < hi; c++ {
			for r := r0; r < r1; r++ {
				t.out[c*t.rows+r] = t.x[r*t.cols+c]
			}
		}
	}
}

// transposed returns a copy of yᵀ from the step arena.
func (b *Backend) transposed(y backend.Matrix) []float32 {
	out := b.scratch.take(y.Rows * y.Cols)
	b.flip = transposeTask{numParts: b.partsOf(y.Cols, y.Rows), rows: y.Rows, cols: y.Cols, out: out, x: y.Host()}
	b.run("GEMM", &b.flip, b.flip.numParts)
	b.flip = transposeTask{}
	return out
}
