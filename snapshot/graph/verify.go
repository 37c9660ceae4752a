package graph

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// VerifyCSR checks everything a CSR promises, trusting nothing: lengths, offsets, bounds, strictly
// ascending rows, finite weights >= 0; and with symmetric set that every entry is stored both ways with
// the same weight. O(E), symmetric O(E log degree).
func VerifyCSR(numNodes int, c *CSR, symmetric bool) error {
	if numNodes < 0 || numNodes > MaxNodes || len(c.Indptr) != numNodes+1 {
		return fmt.Errorf("indptr has len %d, want %d", len(c.Indptr), numNodes+1)
	}
	if c.Indptr[0] != 0 {
		return fmt.Errorf("indptr begins with %d, want 0", c.Indptr[0])
	}
	for v := range numNodes {
		if c.Indptr[v+1] < c.Indptr[v] {
			return fmt.Errorf("indptr falls from %d to %d at row %d", c.Indptr[v], c.Indptr[v+1], v)
		}
	}
	if c.Indptr[numNodes] != int64(len(c.Indices)) {
		return fmt.Errorf("indptr ends with %d, want %d, the number of entries", c.Indptr[numNodes], len(c.Indices))
	}
	if c.Weight != nil && len(c.Weight) != len(c.Indices) {
		return fmt.Errorf("%d weights for %d entries", len(c.Weight), len(c.Indices))
	}
	for i, w := range c.Weight {
		if !(w >= 0 && w <= math.MaxFloat32) {
			return fmt.Errorf("weight of entry %d is %g, want finite and >= 0", i, w)
		}
	}
	if c.Rel != nil && len(c.Rel) != len(c.Indices) {
		return fmt.Errorf("%d relations for %d entries", len(c.Rel), len(c.Indices))
	}
	for v := range int32(numNodes) {
		previous, previousRel := int32(-1), int32(-1)
		for i, u := range c.Row(v) {
			rel := at(c.Rel, int(c.Indptr[v])+i)
			if u < previous || u == previous && rel <= previousRel || u < 0 || int(u) >= numNodes {
				return fmt.Errorf("row %d holds %d after %d, want ascending node numbers below %d, and relations within each", v, u, previous, numNodes)
			}
			if rel < 0 {
				return fmt.Errorf("row %d has relation %d", v, rel)
			}
			previous, previousRel = u, rel
		}
	}
	if !symmetric {
		return nil
	}
	for v := range int32(numNodes) {
		for i, u := range c.Row(v) {
			j, ok := c.Find(u, v, at(c.Rel, int(c.Indptr[v])+i))
			if !ok {
				return fmt.Errorf("row %d holds %d, but row %d does not hold %d", v, u, u, v)
			}
			if c.Weight != nil && c.RowWeights(v)[i] != c.Weight[j] {
				return fmt.Errorf("weight of %d and %d is %g one way and %g the other", u, v, c.RowWeights(v)[i], c.Weight[j])
			}
		}
	}
	return nil
}

// VerifyGraph checks g's rows, that Out holds the arcs of In, and that the audit says what the rows say. The
// lines are gone: of NumLines it checks only that it is NumEdges + DuplicatesMerged, and of an undirected
// OneDirectional only that it lies in 0..NumPairs.
func VerifyGraph(g *Graph) error {
	n := int(g.Audit.NumNodes)
	if err := VerifyCSR(n, &g.In, g.Out == nil); err != nil {
		return fmt.Errorf("in-rows: %w", err)
	}
	if g.Out != nil {
		if err := VerifyCSR(n, g.Out, false); err != nil {
			return fmt.Errorf("out-rows: %w", err)
		}
		if err := verifyReversed(&g.In, g.Out); err != nil {
			return err
		}
	}
	return verifyAudit(g)
}

// verifyReversed checks that every arc of a is one of b the other way round, and their number.
func verifyReversed(a, b *CSR) error {
	if len(a.Indices) != len(b.Indices) || (a.Weight == nil) != (b.Weight == nil) || (a.Rel == nil) != (b.Rel == nil) {
		return fmt.Errorf("in-rows have %d entries, out-rows %d, or only one has weights or relations", len(a.Indices), len(b.Indices))
	}
	for v := range int32(a.NumNodes()) {
		for i, u := range a.Row(v) {
			j, ok := b.Find(u, v, at(a.Rel, int(a.Indptr[v])+i))
			if !ok {
				return fmt.Errorf("arc %d -> %d is in the in-rows only", u, v)
			}
			if a.Weight != nil && a.RowWeights(v)[i] != b.Weight[j] {
				return fmt.Errorf("arc %d -> %d has weight %g in the in-rows, %g in the out-rows", u, v, a.RowWeights(v)[i], b.Weight[j])
			}
		}
	}
	return nil
}

// verifyAudit counts again, entry by entry.
func verifyAudit(g *Graph) error {
	want := Audit{
		NumNodes: g.Audit.NumNodes, NumLines: g.Audit.NumLines, OneDirectional: g.Audit.OneDirectional,
		NumEntries: int64(len(g.In.Indices)),
	}
	var arcs, oneWay int64 // arcs other than loops, and those without their opposite
	degrees := make([]int64, want.NumNodes)
	touched := make([]bool, want.NumNodes)
	for v := range degrees {
		for i, u := range g.In.Row(int32(v)) {
			if int(u) == v {
				want.SelfLoops++
				continue
			}
			arcs++
			if _, mutual := g.In.Find(u, int32(v), at(g.In.Rel, int(g.In.Indptr[v])+i)); !mutual {
				oneWay++
			}
			degrees[v]++
			touched[u], touched[v] = true, true
		}
	}
	if g.Out == nil {
		want.NumPairs = arcs / 2
		want.NumEdges = want.NumPairs + want.SelfLoops
		if o := g.Audit.OneDirectional; o < 0 || o > want.NumPairs {
			return fmt.Errorf("audit: %d one-directional of %d pairs", o, want.NumPairs)
		}
	} else {
		want.NumPairs = oneWay + (arcs-oneWay)/2
		want.NumEdges = arcs + want.SelfLoops
		want.OneDirectional = oneWay
	}
	want.DuplicatesMerged = want.NumLines - want.NumEdges
	for v, d := range degrees {
		if !touched[v] {
			want.IsolatedNodes++
		}
		want.MaxDegree = max(want.MaxDegree, d)
		bucket := 0
		for top := int64(1); top <= d; top *= 2 {
			bucket++
		}
		for len(want.DegreeHistogram) <= bucket {
			want.DegreeHistogram = append(want.DegreeHistogram, 0)
		}
		want.DegreeHistogram[bucket]++
	}
	if got := fmt.Sprintf("%+v", g.Audit); got != fmt.Sprintf("%+v", want) || want.DuplicatesMerged < 0 {
		return fmt.Errorf("audit is %s, want %+v", got, want)
	}
	return nil
}

// VerifyComponents checks labels and sizes against the rows of c: entries join nodes of one label, labels
// are numbered by their smallest node, sizes add up, and each label is connected, by a walk in both
// directions from its smallest node. O(N + E). c must have passed VerifyCSR.
func VerifyComponents(c *CSR, labels []int32, sizes []int64) error {
	n := c.NumNodes()
	if len(labels) != n {
		return fmt.Errorf("%d component labels for %d nodes", len(labels), n)
	}
	var first []int32 // smallest node of each label
	count := make([]int64, len(sizes))
	for v, k := range labels {
		if k < 0 || int(k) > len(first) || int(k) >= len(sizes) {
			return fmt.Errorf("node %d has component label %d, want at most %d of %d", v, k, len(first), len(sizes))
		}
		if int(k) == len(first) {
			first = append(first, int32(v))
		}
		count[k]++
	}
	if !slices.Equal(count, sizes) || len(first) != len(sizes) {
		return errors.New("component sizes do not fit the labels")
	}
	for v := range int32(n) {
		for _, u := range c.Row(v) {
			if labels[u] != labels[v] {
				return fmt.Errorf("edge %d -> %d joins components %d and %d", u, v, labels[u], labels[v])
			}
		}
	}
	outIndptr, outIndices, _ := Transpose(n, n, orEmpty(c.Indptr), c.Indices)
	seen := make([]bool, n)
	var stack []int32
	for k, start := range first {
		var reached int64
		stack = append(stack[:0], start)
		seen[start] = true
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			reached++
			for _, row := range [][]int32{c.Row(v), outIndices[outIndptr[v]:outIndptr[v+1]]} {
				for _, u := range row {
					if !seen[u] {
						seen[u] = true
						stack = append(stack, u)
					}
				}
			}
		}
		if reached != sizes[k] {
			return fmt.Errorf("component %d has %d nodes, but node %d reaches %d", k, sizes[k], start, reached)
		}
	}
	return nil
}

// orEmpty gives the indptr of a zero CSR its one 0.
func orEmpty(indptr []int64) []int64 {
	if len(indptr) == 0 {
		return []int64{0}
	}
	return indptr
}

// VerifyNorm checks norm against the closed formula of its kind, in float64, within the rounding of
// the float32 steps. c must have passed VerifyCSR.
func VerifyNorm(kind NormKind, c *CSR, norm Norm) error {
	n := c.NumNodes()
	for _, part := range []struct {
		name string
		x    []float32
		want int
	}{{"src", norm.Src, n}, {"dst", norm.Dst, n}, {"self", norm.Self, n}, {"edge", norm.Edge, len(c.Indices)}} {
		if part.x != nil && len(part.x) != part.want {
			return fmt.Errorf("%s %s has len %d, want %d", kind, part.name, len(part.x), part.want)
		}
		for i, x := range part.x {
			if !isFinite(x) {
				return fmt.Errorf("%s %s[%d] is %g", kind, part.name, i, x)
			}
		}
	}
	if c.Weight != nil && norm.Edge == nil && len(c.Indices) > 0 {
		return fmt.Errorf("%s of a weighted graph has no edge coefficients", kind)
	}

	weight := func(e int64) float64 {
		if c.Weight == nil {
			return 1
		}
		return float64(c.Weight[e])
	}
	d, loop := make([]float64, n), make([]float64, n)
	for v := range d {
		has := false
		for e := c.Indptr[v]; e < c.Indptr[v+1]; e++ {
			d[v] += weight(e)
			if int(c.Indices[e]) == v {
				has = true
				loop[v] += weight(e)
				if norm.Edge != nil && norm.Edge[e] != 0 {
					return fmt.Errorf("%s edge coefficient of the loop of %d is %g, want 0", kind, v, norm.Edge[e])
				}
			}
		}
		if kind == NormGCN && !has {
			loop[v] = 1
			d[v]++
		}
	}
	// over is a/b, and 0 where the row sum b is 0.
	over := func(a, b float64) float64 {
		if b == 0 {
			return 0
		}
		return a / b
	}
	for v := range d {
		var wantSelf float64
		switch kind {
		case NormGCN, NormMean:
			wantSelf = over(loop[v], d[v])
		case NormSum:
			wantSelf = loop[v]
		default:
			return fmt.Errorf("unknown norm kind %q", kind)
		}
		self := 0.0
		if norm.Self != nil {
			self = float64(norm.Self[v])
		}
		if !near(self, wantSelf, 1) {
			return fmt.Errorf("%s self of %d is %g, want %g", kind, v, self, wantSelf)
		}
		for e := c.Indptr[v]; e < c.Indptr[v+1]; e++ {
			u := c.Indices[e]
			if int(u) == v {
				continue
			}
			// A subnormal part of a product has an absolute error, which its other part scales up.
			want, scale := weight(e), 1.0
			switch kind {
			case NormGCN:
				want = over(over(want, math.Sqrt(d[u])), math.Sqrt(d[v]))
				scale = 1 + over(1, math.Sqrt(d[v]))
			case NormMean:
				scale = 1 + want
				want = over(want, d[v])
			}
			if got := norm.Coefficient(e, u, int32(v)); !near(got, want, scale) {
				return fmt.Errorf("%s coefficient of %d -> %d is %g, want %g", kind, u, v, got, want)
			}
		}
	}
	return nil
}

// near allows four float32 roundings of 2^-24 each (a fifth covers their products and the float64
// steps), and one of a subnormal scaled by scale.
func near(got, want, scale float64) bool {
	return math.Abs(got-want) <= 5*0x1p-24*math.Abs(want)+0x1p-149*scale
}

// VerifyOrder checks that order is BFSOrder's, by what makes that order unique: it is a permutation; components
// follow each other whole, each from its node of lowest (degree, number); and of the other nodes, each
// named by (place of its earliest neighbour, degree, number), the names ascend. O(N + E). The rows and
// labels must have passed VerifyCSR and VerifyComponents.
func VerifyOrder(in, out *CSR, labels []int32, order []int32) error {
	n := in.NumNodes()
	place := make([]int, n)
	for v := range place {
		place[v] = -1
	}
	for i, v := range order {
		if v < 0 || int(v) >= n || place[v] >= 0 {
			return fmt.Errorf("order[%d] is %d, not a node or already placed", i, v)
		}
		place[v] = i
	}
	if len(order) != n {
		return fmt.Errorf("order has %d of %d nodes", len(order), n)
	}

	rows := func(v int32) [][]int32 {
		if out == nil {
			return [][]int32{in.Row(v)}
		}
		return [][]int32{in.Row(v), out.Row(v)}
	}
	degree := func(v int32) int {
		d := 0
		for _, row := range rows(v) {
			for _, u := range row {
				if u != v {
					d++
				}
			}
		}
		return d
	}
	type name struct{ parent, degree, node int }
	less := func(a, b name) bool {
		return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.degree, b.degree), cmp.Compare(a.node, b.node)) < 0
	}
	var start, previous name
	for i, v := range order {
		this := name{parent: -1, degree: degree(v), node: int(v)}
		for _, row := range rows(v) {
			for _, u := range row {
				if u != v && place[u] < i && (this.parent < 0 || place[u] < this.parent) {
					this.parent = place[u]
				}
			}
		}
		newComponent := i == 0 || labels[v] != labels[order[i-1]]
		switch {
		case newComponent && i > 0 && labels[v] < labels[order[i-1]]:
			return fmt.Errorf("component %d is placed after %d", labels[v], labels[order[i-1]])
		case newComponent:
			start = this
		case this.parent < 0:
			return fmt.Errorf("node %d at place %d has no neighbour before it", v, i)
		case !less(previous, this):
			return fmt.Errorf("node %d at place %d comes after %d, want before", v, i, order[i-1])
		case less(name{-1, this.degree, this.node}, start):
			return fmt.Errorf("component %d starts at %d, want %d or lower", labels[v], start.node, v)
		}
		previous = this
	}
	return nil
}

// VerifyTranspose checks a transpose against its block, entry by entry: row s's entries point back at
// entries of s, each in the row of its dst, and ascend; so none is there twice, and the counts make
// them all. The block must be sound.
func VerifyTranspose(numDst, numSrc int, indptr []int64, indices []int32, tIndptr []int64, tIndices []int32, tEdge []int64) error {
	if len(tIndptr) != numSrc+1 || tIndptr[0] != 0 || tIndptr[numSrc] != int64(len(indices)) ||
		len(tIndices) != len(indices) || len(tEdge) != len(indices) {
		return fmt.Errorf("transpose of %d rows and %d entries, want %d and %d", len(tIndptr)-1, len(tIndices), numSrc, len(indices))
	}
	for s := range numSrc {
		if tIndptr[s+1] < tIndptr[s] || tIndptr[s+1] > int64(len(indices)) {
			return fmt.Errorf("transpose indptr goes from %d to %d at row %d", tIndptr[s], tIndptr[s+1], s)
		}
		previous := int64(-1)
		for i := tIndptr[s]; i < tIndptr[s+1]; i++ {
			d, e := tIndices[i], tEdge[i]
			if e <= previous || e >= int64(len(indices)) {
				return fmt.Errorf("transpose edge[%d] is %d after %d", i, e, previous)
			}
			if d < 0 || int(d) >= numDst || e < indptr[d] || e >= indptr[d+1] || int(indices[e]) != s {
				return fmt.Errorf("transpose entry %d says %d -> %d at %d, which the block does not", i, s, d, e)
			}
			previous = e
		}
	}
	return nil
}

// VerifyLines checks that l is what lines of the edges of c would leave, of which there are numLines in all: as many edges, each with lines,
// in the code that fits them, loops and arcs in no other way round; that as many pairs as said are listed one way only (directed, the rows
// say that); and that the weights of an edge's lines ascend and add up to its own. l must have passed Check and c VerifyCSR. O(E).
func VerifyLines(c *CSR, directed bool, l *Lines, numLines, oneDirectional int64) error {
	cursor := lineCursor{l: l}
	var lines, oneWay int64
	for v := range int32(c.NumNodes()) {
		for e := c.Indptr[v]; e < c.Indptr[v+1]; e++ {
			u := c.Indices[e]
			if !directed && u < v {
				continue
			}
			if cursor.edge == l.N {
				return fmt.Errorf("lines of %d edges, the rows have more", l.N)
			}
			code := l.At(cursor.edge)
			count, weights := cursor.next()
			switch {
			case code == LinesBoth && c.Weight != nil, code == LinesCounted && codeOf(count, c.Weight != nil) != code:
				return fmt.Errorf("edge %d, %d of %d and %d lines has the code %d", u, v, count[0], count[1], code)
			case (directed || u == v) && count[1] > 0:
				return fmt.Errorf("edge %d, %d is listed the other way round, which it hasn't", u, v)
			}
			lines += count[0] + count[1]
			if u != v && (count[0] == 0 || count[1] == 0) {
				oneWay++
			}
			if weights == nil {
				continue
			}
			sum := 0.0
			for i, w := range weights {
				if !(w >= 0 && w <= math.MaxFloat32) || math.Signbit(float64(w)) || i > 0 && w < weights[i-1] {
					return fmt.Errorf("weight %d of the lines of edge %d, %d is %g, want finite, >= 0 and ascending", i, u, v, w)
				}
				sum += float64(w)
			}
			if float32(sum) != c.Weight[e] {
				return fmt.Errorf("weights of the lines of edge %d, %d add up to %g, its own is %g", u, v, float32(sum), c.Weight[e])
			}
		}
	}
	if cursor.edge != l.N {
		return fmt.Errorf("lines of %d edges, the rows have %d", l.N, cursor.edge)
	}
	if lines != numLines || !directed && oneWay != oneDirectional {
		return fmt.Errorf("%d lines with %d pairs one way only, want %d and %d", lines, oneWay, numLines, oneDirectional)
	}
	return nil
}
