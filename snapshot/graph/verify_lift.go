package graph

import (
	"fmt"
	"math"
)

// VerifyLift checks z, [NumNodes, dim], against Aggregate in float64. A value may be off by what its float32
// steps can lose: one rounding a term and one an addition, each relative to the sum of the terms' magnitudes.
// Where that sum leaves float32's range, before or after the factor Dst, nothing is said. c must have passed
// VerifyCSR.
func VerifyLift(c *CSR, norm Norm, x []float32, dim int, z []float32) error {
	if len(z) != len(x) || len(x) != c.NumNodes()*dim {
		return fmt.Errorf("lift has %d values, want [%d, %d]", len(z), c.NumNodes(), dim)
	}
	magnitude := make([]float32, len(x))
	for i, a := range x {
		magnitude[i] = float32(math.Abs(float64(a)))
	}
	// Coefficients are >= 0, so aggregating magnitudes bounds every partial sum.
	want, bound := Aggregate(c, norm, x, dim), Aggregate(c, norm, magnitude, dim)
	for i, got := range z {
		v := int32(i / dim)
		// Two roundings in a coefficient and its product, one a term added, one for Dst and two for Self.
		steps := float64(c.Degree(v)) + 6
		dst := 1.0
		if norm.Dst != nil {
			dst = float64(norm.Dst[v])
		}
		tolerance := steps*0x1p-24*bound[i] + steps*(1+dst)*0x1p-149
		inRange := bound[i] < math.MaxFloat32/2 && bound[i] < dst*math.MaxFloat32/2
		if !(math.Abs(float64(got)-want[i]) <= tolerance) && (inRange || bound[i] == 0) {
			return fmt.Errorf("lift of node %d, column %d is %g, want %g within %g", v, i%dim, got, want[i], tolerance)
		}
	}
	return nil
}
