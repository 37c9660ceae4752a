package graph

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// norms returns the coefficients of c by kind, but for those that do not fit float32.
func norms(c *CSR) map[NormKind]Norm {
	all := map[NormKind]Norm{NormSum: Sum(c)}
	if n, err := GCN(c, 1, nil); err == nil {
		all[NormGCN] = n
	}
	all[NormMean], _ = Mean(c, 1, nil)
	return all
}

// lifted collects what Lift hands on, between guard cells.
func lifted(t *testing.T, c *CSR, norm Norm, x []float32, dim int, opt LiftOptions) []float32 {
	t.Helper()
	var z []float32
	next := 0
	err := Lift(c, norm, x, dim, opt, func(firstRow int, rows []float32) error {
		if firstRow != next {
			t.Fatalf("block from row %d, want %d", firstRow, next)
		}
		if dim > 0 {
			next += len(rows) / dim
		} else {
			next += c.NumNodes() // one block holds all rows of no columns
		}
		z = append(z, rows...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if next != c.NumNodes() {
		t.Fatalf("%d rows of %d", next, c.NumNodes())
	}
	return z
}

// slowLift is the loop of Lift's doc comment.
func slowLift(c *CSR, norm Norm, x []float32, dim int) []float32 {
	z := make([]float32, len(x))
	for v := range int32(c.NumNodes()) {
		for j := range dim {
			s := float32(0)
			for e := c.Indptr[v]; e < c.Indptr[v+1]; e++ {
				u := c.Indices[e]
				if u == v {
					continue
				}
				w := float32(1)
				if norm.Edge != nil {
					w = norm.Edge[e]
				}
				if norm.Src != nil {
					w = float32(w * norm.Src[u])
				}
				s += float32(w * x[int(u)*dim+j])
			}
			if norm.Dst != nil {
				s = float32(norm.Dst[v] * s)
			}
			if norm.Self != nil && norm.Self[v] != 0 {
				s += float32(norm.Self[v] * x[int(v)*dim+j])
			}
			z[int(v)*dim+j] = s
		}
	}
	return z
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func TestLift(t *testing.T) {
	forShapes(t, func(t *testing.T, rng *rand.Rand, x edges, directed bool) {
		g := mustBuild(t, x, directed)
		dim := []int{1, 3, 8}[rng.IntN(3)]
		feature := make([]float32, x.numNodes*dim)
		for i := range feature {
			feature[i] = float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(5)-2)))
		}
		for kind, norm := range norms(&g.In) {
			z := lifted(t, &g.In, norm, feature, dim, LiftOptions{Threads: 1})
			if want := slowLift(&g.In, norm, feature, dim); !sameBits(z, want) {
				t.Fatalf("%s: got %v, want %v", kind, z, want)
			}
			if err := VerifyLift(&g.In, norm, feature, dim, z); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			for _, opt := range []LiftOptions{{Threads: 2}, {Threads: 3, BlockRows: 1}, {Threads: 2, BlockRows: 7}, {Threads: 1, BlockRows: 1000}} {
				if !sameBits(lifted(t, &g.In, norm, feature, dim, opt), z) {
					t.Fatalf("%s: %+v changes bits", kind, opt)
				}
			}
		}
	})
}

func TestLiftErrors(t *testing.T) {
	g := mustBuild(t, edges{numNodes: 3, src: []int32{0, 1}, dst: []int32{1, 2}}, false)
	gone := errors.New("disk full")
	calls := 0
	err := Lift(&g.In, Sum(&g.In), make([]float32, 6), 2, LiftOptions{BlockRows: 1}, func(int, []float32) error { calls++; return gone })
	if !errors.Is(err, gone) || calls != 1 {
		t.Errorf("got %v after %d calls", err, calls)
	}
	for name, tc := range map[string]struct {
		norm   Norm
		values int
		dim    int
	}{
		"a value short":    {Norm{}, 5, 2},
		"a row more":       {Norm{}, 8, 2},
		"negative dim":     {Norm{}, 6, -2},
		"no columns":       {Norm{}, 3, 0},
		"factors short":    {Norm{Src: make([]float32, 2)}, 6, 2},
		"edge coefs short": {Norm{Edge: make([]float32, 3)}, 6, 2},
	} {
		if err := Lift(&g.In, tc.norm, make([]float32, tc.values), tc.dim, LiftOptions{}, func(int, []float32) error { return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if z := lifted(t, &g.In, Norm{}, nil, 0, LiftOptions{}); len(z) != 0 {
		t.Errorf("no columns give %v", z)
	}
}

func TestVerifyLiftFaults(t *testing.T) {
	g := mustBuild(t, edges{numNodes: 4, src: []int32{0, 1, 2}, dst: []int32{1, 2, 3}}, false)
	x := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	norm, _ := GCN(&g.In, 1, nil)
	for i := range x {
		z := lifted(t, &g.In, norm, x, 2, LiftOptions{})
		z[i] += 1e-5 * z[i]
		if VerifyLift(&g.In, norm, x, 2, z) == nil {
			t.Errorf("a wrong value %d passes", i)
		}
		z[i] = float32(math.NaN())
		if VerifyLift(&g.In, norm, x, 2, z) == nil {
			t.Errorf("NaN at %d passes", i)
		}
	}
}

func BenchmarkLift(b *testing.B) {
	c := hopGraph()
	gcn, err := GCN(c, 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		norm Norm
	}{{"gcn", gcn}, {"sum", Sum(c)}} {
		for _, dim := range []int{16, 100} {
			x := make([]float32, c.NumNodes()*dim)
			for i := range x {
				x[i] = float32(i % 17)
			}
			b.Run(fmt.Sprintf("%s/dim=%d", tc.name, dim), func(b *testing.B) {
				b.SetBytes(int64(4*dim) * c.NumEntries()) // gathered
				for b.Loop() {
					Lift(c, tc.norm, x, dim, LiftOptions{}, func(int, []float32) error { return nil })
				}
			})
		}
	}
}
