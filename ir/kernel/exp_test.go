package kernel

import (
	"math"
	"math/big"
	"testing"
)

func TestExp(t *testing.T) {
	for j, x := range exp2Table {
		if want := math.Exp2(float64(j) / expSteps); math.Abs(x-want) > 8*0x1p-53*want {
			t.Errorf("2^(%d/64) is %v, want %v", j, x, want)
		}
	}
	r := rng(41)
	for range 200000 {
		x := (r.Float64()*2 - 1) * math.Ldexp(1, r.IntN(22)-12)
		got, want := exp(x), math.Exp(x)
		switch {
		case x >= expMax || x <= expMin:
			continue
		case math.Abs(got-want) > 0x1p-44*want:
			t.Fatalf("exp(%v) is %v, want %v", x, got, want)
		}
	}
	for _, c := range []struct{ x, y float64 }{{0, 1}, {math.Inf(1), math.Inf(1)}, {math.Inf(-1), 0}, {710, math.Inf(1)}, {-1000, 0}} {
		if got := exp(c.x); got != c.y {
			t.Errorf("exp(%v) is %v, want %v", c.x, got, c.y)
		}
	}
	if got := exp(math.NaN()); got == got {
		t.Errorf("exp(NaN) is %v", got)
	}
	// The argument of the middle of a step is the worst case of the polynomial: against its series in exact arithmetic.
	x := 1e-9 + math.Ln2/128
	sum, term := big.NewRat(1, 1), big.NewRat(1, 1)
	xr := new(big.Rat).SetFloat64(x)
	for n := int64(1); n < 20; n++ {
		term.Mul(term, xr).Mul(term, big.NewRat(1, n))
		sum.Add(sum, term)
	}
	if want, _ := sum.Float64(); math.Abs(exp(x)-want) > 0x1p-44*want {
		t.Errorf("exp(%v) is %v, want %v", x, exp(x), want)
	}
}
