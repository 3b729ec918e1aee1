package kernel

import "math"

// The exponential behind most functions of the Scalar engine. math.Exp is written in assembly per host, with or without
// fused multiply-add, and its calls do not overlap; this one gives the same bits everywhere and is several times faster in
// a loop. x = (64·e + j)·ln2/64 + r, exp(x) = 2^e · 2^(j/64) · exp(r), |r| ≤ ln2/128 (Tang, 1989): four terms of exp(r)
// leave a relative error under 2^-44, far below the rounding to float32.

const (
	expSteps  = 64
	expLn2Hi  = 6.93147180369123816490e-01 / expSteps // 33 bits: products with the step count are exact
	expLn2Lo  = 1.90821492927058770002e-10 / expSteps
	expMax    = 709
	expMin    = -708 // below it the result is 0: float32 ended at -104
	roundBias = 3 << 51
)

// exp2Table is 2^(j/64), made from square roots, which every host rounds alike.
var exp2Table = func() (t [expSteps]float64) {
	t[0] = 1
	root := 2.0
	for bit := expSteps / 2; bit > 0; bit /= 2 {
		root = math.Sqrt(root)
		for j := bit; j < expSteps; j += 2 * bit {
			t[j] = t[j-bit] * root
		}
	}
	return
}()

func exp(x float64) float64 {
	if !(x > expMin && x < expMax) {
		switch {
		case x >= expMax:
			return math.Inf(1)
		case x <= expMin:
			return 0
		}
		return x
	}
	biased := float64(x*(expSteps/math.Ln2)) + roundBias
	k := int64(math.Float64bits(biased)&(1<<52-1)) - 1<<51
	n := biased - roundBias
	r := x - float64(n*expLn2Hi)
	r -= float64(n * expLn2Lo)
	p := r + float64(float64(r*r)*(0.5+float64(r*(1./6+float64(r*(1./24))))))
	t := exp2Table[k&(expSteps-1)]
	t += float64(t * p)
	return math.Float64frombits(math.Float64bits(t) + uint64(k>>6)<<52)
}
