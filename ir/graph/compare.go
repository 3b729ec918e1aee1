package graph

import (
	"fmt"
	"math"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Diff is what Compare found.
type Diff struct {
	MaxAbs, MaxRel float64 // over elements that are numbers on both sides
	Worst          int     // flat index of the element that is furthest outside (or closest to) the tolerance
	Got, Want      float64 // its values
	Failed         int64   // elements outside the tolerance
	Total          int64
	RMS            float64 // root mean square of want
	RTol, ATol     float64 // the tolerance used
	dims           []int64
}

// OK reports that no element is outside the tolerance.
func (d Diff) OK() bool { return d.Failed == 0 }

// String is one line: the verdict, the errors, the worst element and the tolerance.
func (d Diff) String() string {
	at := make([]int64, len(d.dims))
	i := int64(d.Worst)
	for k := len(d.dims) - 1; k >= 0 && d.dims[k] > 0; k-- {
		at[k] = i % d.dims[k]
		i /= d.dims[k]
	}
	verdict := "agree"
	if !d.OK() {
		verdict = fmt.Sprintf("%d of %d elements differ", d.Failed, d.Total)
	}
	return fmt.Sprintf("%s: max abs %.3g, max rel %.3g, worst at %v: got %.9g, want %.9g (rtol %g, atol %.3g)",
		verdict, d.MaxAbs, d.MaxRel, at, d.Got, d.Want, d.RTol, d.ATol)
}

// Compare measures got against want: an element passes when |got−want| ≤ atol + rtol·|want|, when both are NaN, or when
// both are the same infinity. The types must be equal; integers and Bool compare as numbers.
func Compare(got, want Tensor, rtol, atol float64) (Diff, error) {
	d := Diff{RTol: rtol, ATol: atol, dims: want.Dims, Total: int64(want.Len())}
	if domainOf(want.Dtype) == domNone {
		return d, target.NotSupported(want.Dtype.String(), "values of %s cannot be compared", want.Dtype)
	}
	if err := got.check("the result", want.Dtype, want.Dims); err != nil {
		return d, err
	}
	if err := want.check("the expected value", want.Dtype, want.Dims); err != nil {
		return d, err
	}
	var buf [2][chunk]float64
	g, w := aligned(got.Data, got.Dtype.Size()), aligned(want.Data, want.Dtype.Size())
	worst, sum := -1.0, 0.0
	for lo := 0; lo < want.Len(); lo += chunk {
		n := min(chunk, want.Len()-lo)
		a, b := loadF64(got.Dtype, g, lo, n, buf[0][:]), loadF64(want.Dtype, w, lo, n, buf[1][:])
		for i, x := range a {
			y := b[i]
			excess := 0.0 // above 1 is outside
			switch {
			case x == y || x != x && y != y:
			case math.IsInf(x, 0) || math.IsInf(y, 0) || x != x || y != y:
				excess = math.Inf(1)
			default:
				e := math.Abs(x - y)
				d.MaxAbs = max(d.MaxAbs, e)
				if y != 0 {
					d.MaxRel = max(d.MaxRel, e/math.Abs(y))
				}
				if excess = e / (atol + rtol*math.Abs(y)); excess != excess {
					excess = math.Inf(1)
				}
			}
			if y == y && !math.IsInf(y, 0) {
				sum += y * y
			}
			if excess > 1 {
				d.Failed++
			}
			if excess > worst {
				worst, d.Worst, d.Got, d.Want = excess, lo+i, x, y
			}
		}
	}
	if d.Total > 0 {
		d.RMS = math.Sqrt(sum / float64(d.Total))
	}
	return d, nil
}

// Tol is a tolerance: |got−want| ≤ ATol + RTol·|want|, where ATol grows by ATolRMS times the root mean square of want.
type Tol struct {
	RTol, ATol, ATolRMS float64
	By                  Dtype // the type it was chosen for
}

// Of is the absolute tolerance for one expected tensor.
func (t Tol) Of(want Tensor) float64 {
	if t.ATolRMS == 0 {
		return t.ATol
	}
	d, err := Compare(want, want, 0, 0)
	if err != nil {
		return t.ATol
	}
	return t.ATol + t.ATolRMS*d.RMS
}

// Tolerance is the default for a model: by its narrowest float type that a value of the entry, or of what it calls, has.
//
//	f32, f64 or none   rtol 1e-3   atol 1e-5
//	f16                rtol 4e-3   atol 1e-3
//	bf16               rtol 2e-2   atol 2e-2·rms(want)
//	8 bits and below   rtol 0.25   atol 0.25·rms(want): half a step of three mantissa bits, twice
func Tolerance(g *Graph) Tol {
	narrow := func(d Dtype) int { // bits of precision
		switch {
		case !d.IsFloat() || d == F64:
			return 53
		case d == F32:
			return 24
		}
		return smallFloats[d].man + 1
	}
	by := F32
	for n := Node(1); int(n) < g.Nodes.Len(); n++ {
		if d := g.Dtype(n); narrow(d) < narrow(by) {
			by = d
		}
	}
	switch by {
	case F32:
		return Tol{RTol: 1e-3, ATol: 1e-5, By: by}
	case F16:
		return Tol{RTol: 4e-3, ATol: 1e-3, By: by}
	case BF16:
		return Tol{RTol: 2e-2, ATolRMS: 2e-2, By: by}
	}
	return Tol{RTol: 0.25, ATolRMS: 0.25, By: by}
}
