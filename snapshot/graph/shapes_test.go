package graph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// edges is one input of Build.
type edges struct {
	numNodes int
	src, dst []int32
	weight   []float32
}

func (x *edges) add(src, dst int32) {
	x.src, x.dst = append(x.src, src), append(x.dst, dst)
}

// shuffled returns x with its lines in another order.
func (x edges) shuffled(rng *rand.Rand) edges {
	y := edges{numNodes: x.numNodes}
	for _, i := range rng.Perm(len(x.src)) {
		y.add(x.src[i], x.dst[i])
		if x.weight != nil {
			y.weight = append(y.weight, x.weight[i])
		}
	}
	return y
}

// shapes are the small graphs that bite, each drawn anew from rng.
var shapes = []struct {
	name string
	draw func(rng *rand.Rand) edges
}{
	{"no nodes", func(*rand.Rand) edges { return edges{} }},
	{"one node", func(*rand.Rand) edges { return edges{numNodes: 1} }},
	{"one node with a loop", func(*rand.Rand) edges { return edges{numNodes: 1, src: []int32{0}, dst: []int32{0}} }},
	{"isolated nodes only", func(*rand.Rand) edges { return edges{numNodes: 37} }},
	{"loops only", func(rng *rand.Rand) edges {
		x := edges{numNodes: 9}
		for range 20 {
			v := rng.Int32N(9)
			x.add(v, v)
		}
		return x
	}},
	{"one pair many times", func(rng *rand.Rand) edges {
		x := edges{numNodes: 5}
		for range 300 {
			if a := rng.Int32N(2); rng.IntN(3) > 0 {
				x.add(1+a*2, 3-a*2)
			}
		}
		return x
	}},
	{"dense with duplicates", func(rng *rand.Rand) edges {
		x := edges{numNodes: 8}
		for range 150 {
			x.add(rng.Int32N(8), rng.Int32N(8))
		}
		return x
	}},
	{"sparse", func(rng *rand.Rand) edges {
		x := edges{numNodes: 500}
		for range 300 {
			x.add(rng.Int32N(500), rng.Int32N(500))
		}
		return x
	}},
	{"medium", func(rng *rand.Rand) edges {
		x := edges{numNodes: 200}
		for range 1500 {
			x.add(rng.Int32N(200), rng.Int32N(200))
		}
		return x
	}},
	{"hub in the middle", func(rng *rand.Rand) edges {
		x := edges{numNodes: 300}
		for range 600 {
			if v := rng.Int32N(300); rng.IntN(2) == 0 {
				x.add(v, 150)
			} else {
				x.add(150, v)
			}
		}
		return x
	}},
	{"two components", func(rng *rand.Rand) edges {
		x := edges{numNodes: 60}
		for range 200 { // even and odd numbers never meet
			k := rng.Int32N(2)
			x.add(2*rng.Int32N(30)+k, 2*rng.Int32N(30)+k)
		}
		return x
	}},
	{"path listed from the far end", func(*rand.Rand) edges {
		x := edges{numNodes: 130}
		for v := int32(129); v > 0; v-- {
			x.add(v, v-1)
		}
		return x
	}},
	{"both ways", func(rng *rand.Rand) edges {
		x := edges{numNodes: 40}
		for range 80 {
			a, b := rng.Int32N(40), rng.Int32N(40)
			x.add(a, b)
			x.add(b, a)
		}
		return x
	}},
	{"a power of two nodes", func(rng *rand.Rand) edges {
		x := edges{numNodes: 64}
		for range 100 {
			x.add(63-rng.Int32N(4), rng.Int32N(64))
		}
		return x
	}},
}

// drawWeight gives a weight of a size where float32 sums depend on their order, or none at all.
func drawWeight(rng *rand.Rand) float32 {
	switch rng.IntN(8) {
	case 0:
		return 0
	case 1:
		return float32(math.Copysign(0, -1))
	case 2:
		return 1
	default:
		return rng.Float32() * float32(math.Pow(10, float64(rng.IntN(9)-4)))
	}
}

// forShapes runs f on several draws of every shape, undirected and directed, with and without weights.
func forShapes(t *testing.T, f func(t *testing.T, rng *rand.Rand, x edges, directed bool)) {
	for _, shape := range shapes {
		for _, directed := range []bool{false, true} {
			for _, weighted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/directed=%t/weighted=%t", shape.name, directed, weighted), func(t *testing.T) {
					for range 5 {
						seed := rand.Uint64()
						rng := rand.New(rand.NewPCG(seed, 0))
						x := shape.draw(rng)
						if weighted {
							x.weight = make([]float32, len(x.src))
							for i := range x.weight {
								x.weight[i] = drawWeight(rng)
							}
						}
						f(t, rng, x, directed)
						if t.Failed() {
							t.Fatalf("seed %d, edges %+v", seed, x)
						}
					}
				})
			}
		}
	}
}

// mustBuild builds x with one thread.
func mustBuild(t testing.TB, x edges, directed bool) *Graph {
	t.Helper()
	g, err := Build(t.Context(), x.numNodes, x.src, x.dst, x.weight, Options{Directed: directed, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
