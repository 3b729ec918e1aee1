package kernel

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// ActOps is one Activation: out = func(in·scale + bias[, alpha]), product and sum rounded to float32 each. An immediate
// scale of 1 and an immediate bias of 0 are not applied, so that -0 survives. With Two set it is
// func(op1(op0(in, scale), bias)), the two-operator form, with its reverse bits.
type ActOps struct {
	Func               target.ActFunc
	Scale, Bias, Alpha Scalar
	Two                bool
	Op0, Op1           target.AluOp
	Rev0, Rev1         bool
}

// Activation applies a function of the Scalar engine. Functions are evaluated in float64 and rounded once; at the edges
// they follow their formula, so x·sigmoid(x) and its kin are NaN at -Inf.
func Activation(s *Scratch, out, in *View, a *ActOps, acc *Acc) error {
	const op = "Activation"
	if a.Func >= target.ActUnknown {
		return target.NotSupported(a.Func.String(), "%s: function %s (%d) has no definition", op, a.Func, a.Func)
	}
	op0, op1 := target.AluMult, target.AluAdd
	rev0, rev1 := false, false
	if a.Two {
		op0, op1, rev0, rev1 = a.Op0, a.Op1, a.Rev0, a.Rev1
		for _, o := range [2]target.AluOp{op0, op1} {
			if err := checkArith(op, o); err != nil {
				return err
			}
		}
	}
	err := checkOps(op, classArith, out, in, nil, acc)
	if err == nil {
		err = a.Scale.check(op, "scale", out)
	}
	if err == nil {
		err = a.Bias.check(op, "bias", out)
	}
	if err == nil {
		err = a.Alpha.check(op, "alpha", out)
	}
	if err != nil {
		return err
	}
	if !a.Two && a.Scale.Ptr == nil && a.Scale.Imm == 1 {
		op0 = target.AluBypass
	}
	if !a.Two && a.Bias.Ptr == nil && a.Bias.Imm == 0 {
		op1 = target.AluBypass
	}
	var ci, co cursor
	ci.start(in)
	co.start(out)
	x := s.f32(0, out.Elems())
	for p := range out.Parts {
		ci.load(x)
		rowVS(op0, x, x, a.Scale.at(p), rev0)
		rowVS(op1, x, x, a.Bias.at(p), rev1)
		actRow(a.Func, x, a.Alpha.at(p))
		acc.row(p, x)
		co.store(x)
	}
	return nil
}

// Exponential is out = exp(in - max), folded into acc when it is not idle.
func Exponential(s *Scratch, out, in *View, max Scalar, acc *Acc) error {
	const op = "Exponential"
	err := checkOps(op, classArith, out, in, nil, acc)
	if err == nil {
		err = max.check(op, "max", out)
	}
	if err != nil {
		return err
	}
	var ci, co cursor
	ci.start(in)
	co.start(out)
	x := s.f32(0, out.Elems())
	for p := range out.Parts {
		ci.load(x)
		rowVS(target.AluSub, x, x, max.at(p), false)
		actRow(target.ActExp, x, 0)
		acc.row(p, x)
		co.store(x)
	}
	return nil
}

const (
	invSqrt2    = 1 / math.Sqrt2
	twoOverPi12 = 2 / math.SqrtPi          // 2/√π
	invSqrt2Pi  = invSqrt2 / math.SqrtPi   // 1/√(2π)
	geluTanh    = math.Sqrt2 / math.SqrtPi // √(2/π)
	geluSigmoid = 1.702
)

func sigmoid(x float64) float64 { return 1 / (1 + exp(-x)) }

func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(exp(-math.Abs(x))) }

// normal is the distribution function of the standard normal, without cancellation in the lower tail.
func normal(x float64) float64 { return 0.5 * math.Erfc(-x*invSqrt2) }

// tanh costs one exponential. Below 1e-4 the quotient would cancel and two terms of the series have a relative error under 2^-55.
func tanh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case a < 1e-4:
		return x * (1 - x*x/3)
	case a > 20:
		return math.Copysign(1, x)
	}
	return math.Copysign(1-2/(exp(2*a)+1), x)
}

// mish is x·tanh(ln(1+eˣ)), with one exponential: tanh(ln u) = (u²-1)/(u²+1), u = 1+eˣ. Beyond 40 the quotient is 1.
func mish(x float64) float64 {
	if x > 40 {
		return x
	}
	e := exp(x)
	n := e * (e + 2)
	return x * (n / (n + 2))
}

// actRow applies f in place. The switch stands outside the loops of the functions that cost less than the switch.
func actRow(f target.ActFunc, x []float32, alpha float32) {
	switch f {
	case target.ActIdentity, target.ActCopy:
	case target.ActAbs:
		for i, v := range x {
			x[i] = abs32(v)
		}
	case target.ActRelu:
		for i, v := range x {
			x[i] = max(v, 0)
		}
	case target.ActLrelu, target.ActPrelu:
		for i, v := range x {
			if !(v >= 0) {
				x[i] = alpha * v
			}
		}
	case target.ActSquare:
		for i, v := range x {
			x[i] = v * v
		}
	case target.ActMemsetZero:
		clear(x)
	case target.ActIsFinite:
		for i, v := range x {
			x[i] = truth(v-v == 0)
		}
	case target.ActSign:
		for i, v := range x {
			switch {
			case v > 0:
				x[i] = 1
			case v < 0:
				x[i] = -1
			}
		}
	case target.ActReciprocal, target.ActLnPrime:
		for i, v := range x {
			x[i] = 1 / v
		}
	default:
		// In pieces of float64: a conversion to float64 writes half a register, so in one loop with the function each element
		// would wait for the one before (exp 15 ns against 5).
		var d [64]float64
		for len(x) > 0 {
			n := min(len(x), len(d))
			for i, v := range x[:n] {
				d[i] = float64(v)
			}
			for i, v := range d[:n] {
				d[i] = act64(f, v)
			}
			for i, v := range d[:n] {
				x[i] = float32(v)
			}
			x = x[n:]
		}
	}
}

func act64(f target.ActFunc, x float64) float64 {
	switch f {
	case target.ActAbsReciprocalSqrt:
		return 1 / math.Sqrt(math.Abs(x))
	case target.ActArctan:
		return math.Atan(x)
	case target.ActDerivativeErf:
		return twoOverPi12 * exp(-x*x)
	case target.ActDerivativeGelu:
		return normal(x) + x*invSqrt2Pi*exp(-x*x/2)
	case target.ActDerivativeSilu:
		s := sigmoid(x)
		return s * (1 + x*(1-s))
	case target.ActDsqrt:
		return 0.5 / math.Sqrt(x)
	case target.ActErf:
		return math.Erf(x)
	case target.ActExp:
		return exp(x)
	case target.ActGelu:
		return x * normal(x)
	case target.ActGeluApprxSigmoid:
		return x * sigmoid(geluSigmoid*x)
	case target.ActGeluApprxTanh:
		return 0.5 * x * (1 + tanh(geluTanh*(x+0.044715*x*x*x)))
	case target.ActLn:
		return math.Log(x)
	case target.ActMish:
		return mish(x)
	case target.ActRsqrt:
		return 1 / math.Sqrt(x)
	case target.ActSigmoid:
		return sigmoid(x)
	case target.ActSilu:
		return x * sigmoid(x)
	case target.ActSin:
		return math.Sin(x)
	case target.ActSoftplus:
		return softplus(x)
	case target.ActSqrt:
		return math.Sqrt(x)
	case target.ActTanh:
		return tanh(x)
	}
	return x
}
