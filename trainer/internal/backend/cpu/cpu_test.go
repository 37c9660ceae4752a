package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/prelift/prelift/trainer/internal/backend"
	"github.com/prelift/prelift/trainer/internal/backend/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	conformance.Run(t, func(threads int) backend.Backend { return New(Options{Threads: threads}) })
}

func random(r *rand.Rand, n int, zeros float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		if r.Float64() >= zeros {
			x[i] = 2*r.Float32() - 1
		}
	}
	return x
}

// TestGEMMOrder compares GEMM bit for bit with the loop in gemmBlock's comment: what the
// SIMD twins will be held to.
func TestGEMMOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range [][3]int{{1, 1, 1}, {3, 5, 7}, {70, 600, 300}, {129, 16, 131}} {
		for _, zeros := range []float64{0, 0.3, 0.95} {
			m, n, k := d[0], d[1], d[2]
			x, w := random(r, m*k, zeros), random(r, k*n, 0)
			want := make([]float32, m*n)
			for i := range m {
				for j := range n {
					for l := range k {
						want[i*n+j] += float32(x[i*k+l] * w[l*n+j])
					}
				}
			}
			b := New(Options{Threads: 2})
			out, a := b.Alloc(m, n), backend.HostMatrix(m, k, x)
			b.GEMM(backend.NN, false, out, a, backend.HostMatrix(k, n, w))
			at := backend.HostMatrix(k, m, transpose(x, m, k))
			out2 := b.Alloc(m, n)
			b.GEMM(backend.TN, false, out2, at, backend.HostMatrix(k, n, w))
			out3 := b.Alloc(m, n)
			b.GEMM(backend.NT, false, out3, a, backend.HostMatrix(n, k, transpose(w, k, n)))
			for i := range want {
				if out.Host()[i] != want[i] || out2.Host()[i] != want[i] || out3.Host()[i] != want[i] {
					t.Fatalf("%v zeros=%v: element %d: %v, %v, %v, want %v", d, zeros, i, out.Host()[i], out2.Host()[i], out3.Host()[i], want[i])
				}
			}
			b.Close()
		}
	}
}

func transpose(x []float32, rows, cols int) []float32 {
	out := make([]float32, len(x))
	for r := range rows {
		for c := range cols {
			out[c*rows+r] = x[r*cols+c]
		}
	}
	return out
}

// A bug in a kernel comes back to the caller as a panic, and the pool stays usable.
func TestKernelPanic(t *testing.T) {
	b := New(Options{Threads: 2})
	defer b.Close()
	func() {
		defer func() {
			if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "index out of range") && !strings.Contains(fmt.Sprint(p), "bounds out of range") {
				t.Errorf("recovered %v, want an index error", p)
			}
		}()
		rows := make([]int32, 10000)
		rows[9999] = 7
		b.Gather(b.Alloc(10000, 64), b.Alloc(5, 64), rows)
	}()
	m := b.Alloc(1000, 100)
	b.Upload(m, make([]float32, 100000))
	if err := b.Sync(); err != nil {
		t.Error(err)
	}
}

// TestNoAllocation runs one step of everything after warm-up.
func TestNoAllocation(t *testing.T) {
	for _, threads := range []int{1, 2} {
		b := New(Options{Threads: threads})
		r := rand.New(rand.NewPCG(3, 3))
		const n, in, hidden = 2000, 40, 30
		blk := conformance.MakeBlock(r, n, n, func(d int) int { return d % 9 })
		c := &backend.Coef{Src: random(r, n, 0), Self: random(r, n, 0)}
		x, w, bias := b.Alloc(n, in), b.Alloc(in, hidden), b.Alloc(1, hidden)
		dw, db, m, v := b.Alloc(in, hidden), b.Alloc(1, hidden), b.Alloc(in, hidden), b.Alloc(in, hidden)
		b.Upload(x, random(r, n*in, 0))
		tg := &backend.Targets{Class: make([]int32, n)}
		step := func() {
			b.ResetScratch()
			e := backend.Epilogue{ReLU: true, Drop: backend.MakeDrop(0.5, 1)}
			xd, y, z, dx := b.Scratch(n, in), b.Scratch(n, hidden), b.Scratch(n, hidden), b.Scratch(n, in)
			b.Dropout(xd, x, e.Drop)
			b.GEMM(backend.NN, false, y, xd, w)
			b.SpMM(z, blk, c, y)
			b.BiasAct(z, z, bias, e)
			b.SoftmaxCE(y, z, tg)
			b.BiasActBackward(y, y, z, e)
			b.ColSums(db, y)
			b.SpMMBackward(z, blk, c, y)
			b.GEMM(backend.TN, false, dw, xd, z)
			b.GEMM(backend.NT, false, dx, z, w)
			b.Adam(w, m, v, dw, backend.AdamStep{LR: 0.1, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, Step: 1})
			if _, _, err := b.TakeLoss(); err != nil {
				t.Fatal(err)
			}
		}
		step()
		step()
		if got := testing.AllocsPerRun(5, step); got > 0 {
			t.Errorf("threads=%d: %v allocations a step, want 0", threads, got)
		}
		b.Close()
	}
}

// TestSkipsZeros: a sparse row leaves out its zero terms, as the interface allows.
func TestSkipsZeros(t *testing.T) {
	b := New(Options{Threads: 1})
	defer b.Close()
	inf := float32(math.Inf(1))
	out := b.Alloc(1, 1)
	b.GEMM(backend.NN, false, out, b.Wrap([]float32{0, 0, 2, 0, 0, 0, 0, 0}, 1, 8), b.Wrap([]float32{inf, 1, 3, 1, 1, 1, 1, 1}, 8, 1))
	if out.Host()[0] != 6 {
		t.Errorf("got %v, want 6", out.Host()[0])
	}
}

func BenchmarkGEMM(bb *testing.B) {
	for _, c := range []struct {
		name    string
		m, n, k int
		zeros   float64
	}{
		{"4096x602x256", 4096, 256, 602, 0},
		{"4096x256x47", 4096, 47, 256, 0},
		{"2708x1433x16", 2708, 16, 1433, 0},
		{"2708x1433x16/zeros=98.7%", 2708, 16, 1433, 0.987},
		{"4096x256x256/zeros=50%", 4096, 256, 256, 0.5},
	} {
		for _, form := range []backend.Form{backend.NN, backend.TN, backend.NT} {
			for _, threads := range []int{1, 2} {
				bb.Run(fmt.Sprintf("%s/%s/threads=%d", c.name, form, threads), func(bb *testing.B) {
					b := New(Options{Threads: threads})
					defer b.Close()
					r := rand.New(rand.NewPCG(1, 1))
					act := b.Wrap(random(r, c.m*c.k, c.zeros), c.m, c.k)  // activations [m, k]
					grad := b.Wrap(random(r, c.m*c.n, c.zeros), c.m, c.n) // gradient of the output
					w := b.Wrap(random(r, c.k*c.n, 0), c.k, c.n)
					out := map[backend.Form]backend.Matrix{backend.NN: b.Alloc(c.m, c.n), backend.TN: b.Alloc(c.k, c.n), backend.NT: b.Alloc(c.m, c.k)}[form]
					for bb.Loop() {
						switch form {
						case backend.NN:
							b.GEMM(form, false, out, act, w)
						case backend.TN:
							b.GEMM(form, false, out, act, grad)
						case backend.NT:
							b.GEMM(form, false, out, grad, w)
						}
						b.ResetScratch()
					}
					bb.ReportMetric(2*float64(c.m)*float64(c.n)*float64(c.k)*float64(bb.N)/bb.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}

func BenchmarkSpMM(bb *testing.B) {
	const deg, numDst = 16, 20000
	for _, dim := range []int{7, 16, 64, 128, 256} {
		for _, kind := range []string{"none", "gcn"} {
			for _, threads := range []int{1, 2} {
				bb.Run(fmt.Sprintf("deg=%d/dim=%d/%s/threads=%d", deg, dim, kind, threads), func(bb *testing.B) {
					b := New(Options{Threads: threads})
					defer b.Close()
					r := rand.New(rand.NewPCG(1, 1))
					numSrc := max(64<<20/4/dim, numDst) // 64 MiB of rows
					blk := conformance.MakeBlock(r, numDst, numSrc, func(int) int { return deg })
					c := &backend.Coef{}
					if kind == "gcn" {
						c = &backend.Coef{Src: random(r, numSrc, 0), Dst: random(r, numDst, 0), Self: random(r, numDst, 0)}
					}
					x, out := b.Alloc(numSrc, dim), b.Alloc(numDst, dim)
					for bb.Loop() {
						b.SpMM(out, blk, c, x)
					}
					bb.ReportMetric(float64(deg*numDst*dim*4)*float64(bb.N)/bb.Elapsed().Seconds()/1e9, "GB/s")
				})
			}
		}
	}
}

func BenchmarkDropout(bb *testing.B) {
	for _, zeros := range []float64{0, 0.987} {
		bb.Run(fmt.Sprintf("2708x1433/zeros=%v", zeros), func(bb *testing.B) {
			b := New(Options{Threads: 1})
			defer b.Close()
			x := b.Wrap(random(rand.New(rand.NewPCG(1, 1)), 2708*1433, zeros), 2708, 1433)
			out := b.Alloc(2708, 1433)
			bb.SetBytes(2708 * 1433 * 4)
			for bb.Loop() {
				b.Dropout(out, x, backend.MakeDrop(0.5, 7))
			}
		})
	}
}
