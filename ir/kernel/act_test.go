package kernel

import (
	"math"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// actRef is every function by its textbook formula in float64.
var actRef = map[target.ActFunc]func(x, alpha float64) float64{
	target.ActIdentity:          func(x, _ float64) float64 { return x },
	target.ActCopy:              func(x, _ float64) float64 { return x },
	target.ActAbs:               func(x, _ float64) float64 { return math.Abs(x) },
	target.ActAbsReciprocalSqrt: func(x, _ float64) float64 { return math.Pow(math.Abs(x), -0.5) },
	target.ActArctan:            func(x, _ float64) float64 { return math.Atan2(x, 1) },
	target.ActDerivativeErf:     func(x, _ float64) float64 { return 2 / math.Sqrt(math.Pi) * math.Exp(-x*x) },
	target.ActDerivativeGelu: func(x, _ float64) float64 {
		return (1+math.Erf(x/math.Sqrt2))/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
	},
	target.ActDerivativeSilu: func(x, _ float64) float64 {
		e := math.Exp(x)
		return e * (e + x + 1) / ((e + 1) * (e + 1))
	},
	target.ActDsqrt:            func(x, _ float64) float64 { return 1 / (2 * math.Sqrt(x)) },
	target.ActErf:              func(x, _ float64) float64 { return 1 - math.Erfc(x) },
	target.ActExp:              func(x, _ float64) float64 { return math.Pow(math.E, x) },
	target.ActGelu:             func(x, _ float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) },
	target.ActGeluApprxSigmoid: func(x, _ float64) float64 { return x / (1 + math.Exp(-1.702*x)) },
	target.ActGeluApprxTanh: func(x, _ float64) float64 {
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*math.Pow(x, 3))))
	},
	target.ActIsFinite: func(x, _ float64) float64 {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return 0
		}
		return 1
	},
	target.ActLn:      func(x, _ float64) float64 { return math.Log2(x) * math.Ln2 },
	target.ActLnPrime: func(x, _ float64) float64 { return 1 / x },
	target.ActLrelu:   leaky, target.ActPrelu: leaky,
	target.ActMemsetZero: func(x, _ float64) float64 { return 0 },
	target.ActMish:       func(x, _ float64) float64 { return x * math.Tanh(math.Log(1+math.Exp(x))) },
	target.ActReciprocal: func(x, _ float64) float64 { return 1 / x },
	target.ActRelu: func(x, _ float64) float64 {
		if x < 0 {
			return 0
		}
		return x
	},
	target.ActRsqrt:   func(x, _ float64) float64 { return math.Pow(x, -0.5) },
	target.ActSigmoid: func(x, _ float64) float64 { return (1 + math.Tanh(x/2)) / 2 },
	target.ActSign: func(x, _ float64) float64 {
		if x == 0 {
			return 0
		}
		return x / math.Abs(x)
	},
	target.ActSilu:     func(x, _ float64) float64 { return x / (1 + math.Exp(-x)) },
	target.ActSin:      func(x, _ float64) float64 { return math.Cos(x - math.Pi/2) },
	target.ActSoftplus: func(x, _ float64) float64 { return math.Log(1 + math.Exp(x)) },
	target.ActSqrt:     func(x, _ float64) float64 { return math.Pow(x, 0.5) },
	target.ActSquare:   func(x, _ float64) float64 { return x * x },
	target.ActTanh: func(x, _ float64) float64 {
		return (math.Exp(x) - math.Exp(-x)) / (math.Exp(x) + math.Exp(-x))
	},
}

func leaky(x, alpha float64) float64 {
	if x < 0 {
		return alpha * x
	}
	return x
}

func run1(t *testing.T, f target.ActFunc, x float32) float32 {
	t.Helper()
	var s Scratch
	in, out := Dense(make([]byte, 4), 0, target.Float32, 1, 4, 1), Dense(make([]byte, 4), 0, target.Float32, 1, 4, 1)
	StoreRow(&in, 0, []float32{x})
	must(t, Activation(&s, &out, &in, &ActOps{Func: f, Scale: Imm(1), Alpha: Imm(0.25)}, nil))
	return valueAt(&out, 0, 0)
}

// Every function that has a name has a definition, and it is the textbook's to 2 units in the last place of float32, with a
// floor for what the reference itself loses to cancellation.
func TestActivationFunctions(t *testing.T) {
	for f := range target.ActUnknown {
		ref := actRef[f]
		if ref == nil {
			t.Errorf("%s has no reference", f)
			continue
		}
		for i := -400; i <= 400; i++ {
			x := float32(i) / 37
			got, want := float64(run1(t, f, x)), ref(float64(x), 0.25)
			if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > math.Abs(want)*0x1p-22+1e-14 {
				t.Fatalf("%s(%g) is %g, want %g", f, x, got, want)
			}
		}
	}
	if len(actRef) != int(target.ActUnknown) {
		t.Errorf("%d references for %d functions", len(actRef), target.ActUnknown)
	}
}

func TestActivationSpecials(t *testing.T) {
	for _, c := range []struct {
		f    target.ActFunc
		x, y float32
	}{
		{target.ActExp, -inf, 0}, {target.ActExp, inf, inf}, {target.ActExp, nan, nan}, {target.ActExp, 89, inf}, {target.ActExp, -104, 0}, {target.ActExp, -103, tiny},
		{target.ActRelu, nan, nan}, {target.ActRelu, negZero, 0}, {target.ActRelu, inf, inf}, {target.ActLrelu, -inf, -inf}, {target.ActLrelu, nan, nan},
		{target.ActLn, 0, -inf}, {target.ActLn, -1, nan}, {target.ActLn, inf, inf}, {target.ActLn, tiny, float32(math.Log(tiny))},
		{target.ActSqrt, -1, nan}, {target.ActSqrt, negZero, negZero}, {target.ActRsqrt, 0, inf}, {target.ActRsqrt, inf, 0}, {target.ActReciprocal, negZero, -inf},
		{target.ActSigmoid, -inf, 0}, {target.ActSigmoid, inf, 1}, {target.ActSigmoid, nan, nan}, {target.ActSigmoid, -100, float32(math.Exp(-100))},
		{target.ActTanh, -inf, -1}, {target.ActTanh, inf, 1}, {target.ActTanh, negZero, negZero}, {target.ActTanh, tiny, tiny}, {target.ActTanh, nan, nan},
		{target.ActTanh, 1e-4, float32(math.Tanh(float64(float32(1e-4))))}, {target.ActErf, inf, 1}, {target.ActErf, -inf, -1},
		{target.ActSoftplus, inf, inf}, {target.ActSoftplus, -inf, 0}, {target.ActSoftplus, 200, 200}, {target.ActSoftplus, nan, nan},
		{target.ActMish, 50, 50}, {target.ActMish, inf, inf}, {target.ActMish, nan, nan}, {target.ActGelu, inf, inf}, {target.ActGelu, nan, nan},
		{target.ActSilu, inf, inf}, {target.ActSign, negZero, negZero}, {target.ActSign, nan, nan}, {target.ActSign, -inf, -1}, {target.ActSign, tiny, 1},
		{target.ActIsFinite, nan, 0}, {target.ActIsFinite, inf, 0}, {target.ActIsFinite, math.MaxFloat32, 1}, {target.ActMemsetZero, nan, 0},
		{target.ActSin, inf, nan}, {target.ActSin, negZero, negZero}, {target.ActArctan, inf, float32(math.Pi / 2)}, {target.ActSquare, -inf, inf},
		{target.ActIdentity, negZero, negZero}, {target.ActCopy, tiny, tiny}, {target.ActAbs, -inf, inf}, {target.ActAbs, nan, nan},
	} {
		if got := run1(t, c.f, c.x); !same(got, c.y) {
			t.Errorf("%s(%g) is %g, want %g", c.f, c.x, got, c.y)
		}
	}
}

// out = func(in·scale + bias), product and sum rounded each; pointers and immediates mean the same; the two-operator form.
func TestActivationOperands(t *testing.T) {
	var s Scratch
	r := rng(14)
	in, out := dense(r, target.Float32, 3, 50), dense(r, target.BFloat16, 3, 50)
	scale, bias := dense(r, target.Float32, 3, 1), dense(r, target.Float32, 3, 1)
	a := &ActOps{Func: target.ActAbs, Scale: Ptr(&scale), Bias: Ptr(&bias)}
	lanes := []float32{1, 2, 3}
	must(t, Activation(&s, &out, &in, a, &Acc{Cmd: target.AccAccumulate, Lanes: lanes}))
	for p := range 3 {
		sum := float32(p + 1)
		for i := range 50 {
			y := float32(valueAt(&in, p, i)*valueAt(&scale, p, 0)) + valueAt(&bias, p, 0)
			y = float32(math.Abs(float64(y)))
			sum += y // before the rounding to bf16
			if got := valueAt(&out, p, i); got != Decode(target.BFloat16, Encode(target.BFloat16, y)) {
				t.Fatalf("[%d,%d] is %g, want %g", p, i, got, y)
			}
		}
		if lanes[p] != sum {
			t.Errorf("lane %d is %g, want %g", p, lanes[p], sum)
		}
	}
	two := &ActOps{Func: target.ActIdentity, Two: true, Op0: target.AluSub, Op1: target.AluMax, Rev0: true, Scale: Imm(2), Bias: Imm(1.5)}
	f := dense(r, target.Float32, 3, 50)
	must(t, Activation(&s, &f, &in, two, nil))
	for i := range 50 {
		if got, want := valueAt(&f, 1, i), max(2-valueAt(&in, 1, i), 1.5); got != want {
			t.Fatalf("two-operator form gives %g, want %g", got, want)
		}
	}
}

func TestAccumulatorCommands(t *testing.T) {
	var s Scratch
	in, out := Dense(make([]byte, 12), 0, target.Float32, 1, 12, 3), Dense(make([]byte, 12), 0, target.Float32, 1, 12, 3)
	StoreRow(&in, 0, []float32{-5, -2, -3})
	for _, c := range []struct {
		cmd  target.AccCmd
		op   target.AluOp
		want float32
	}{
		{target.AccIdle, target.AluAdd, 100}, {target.AccZero, target.AluAdd, 0}, {target.AccZero, target.AluMax, -inf},
		{target.AccAccumulate, target.AluBypass, 90}, {target.AccAddAccumulate, target.AluAdd, 90}, {target.AccZeroAccumulate, target.AluAdd, -10},
		{target.AccZeroAccumulate, target.AluMax, -2}, {target.AccZeroAccumulate, target.AluMin, -5}, {target.AccZeroAccumulate, target.AluMult, -30},
		{target.AccLoadAccumulate, target.AluAdd, -3}, {target.AccLoadAccumulate, target.AluMax, 7}, {target.AccAccumulate, target.AluMin, -5},
	} {
		lanes := []float32{100}
		acc := &Acc{Cmd: c.cmd, Op: c.op, Lanes: lanes, Init: Imm(7)}
		must(t, Activation(&s, &out, &in, &ActOps{Scale: Imm(1)}, acc))
		if lanes[0] != c.want {
			t.Errorf("%s %s: lane is %g, want %g", c.cmd, c.op, lanes[0], c.want)
		}
	}
	one := Dense(make([]byte, 4), 0, target.Float32, 1, 4, 1)
	must(t, ReadAccumulator(&one, []float32{2.5}, true))
	if got := valueAt(&one, 0, 0); got != -2.5 {
		t.Errorf("negated read gives %g", got)
	}
}

func TestExponential(t *testing.T) {
	var s Scratch
	r := rng(15)
	in, out, top := dense(r, target.Float32, 2, 30), dense(r, target.Float32, 2, 30), dense(r, target.Float32, 2, 1)
	lanes := make([]float32, 2)
	must(t, Exponential(&s, &out, &in, Ptr(&top), &Acc{Cmd: target.AccZeroAccumulate, Lanes: lanes}))
	for p := range 2 {
		var sum float32
		for i := range 30 {
			want := float32(math.Exp(float64(valueAt(&in, p, i) - valueAt(&top, p, 0))))
			sum += want
			if got := valueAt(&out, p, i); got != want {
				t.Fatalf("[%d,%d] is %g, want %g", p, i, got, want)
			}
		}
		if lanes[p] != sum {
			t.Errorf("row sum %g, want %g", lanes[p], sum)
		}
	}
}
