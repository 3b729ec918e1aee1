package kernel

import (
	"math"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

var (
	inf     = float32(math.Inf(1))
	nan     = float32(math.NaN())
	negZero = float32(math.Copysign(0, -1))
)

const tiny = 0x1p-149 // the smallest subnormal

// same compares bit for bit, all NaN alike.
func same(a, b float32) bool { return f32bits(a) == f32bits(b) }

func TestArithSpecials(t *testing.T) {
	for _, c := range []struct {
		op      target.AluOp
		a, b, y float32
	}{
		{target.AluAdd, inf, -inf, nan}, {target.AluAdd, negZero, negZero, negZero}, {target.AluAdd, negZero, 0, 0},
		{target.AluAdd, tiny, tiny, 2 * tiny}, {target.AluSub, 1, 3, -2}, {target.AluSub, inf, inf, nan},
		{target.AluMult, 0, inf, nan}, {target.AluMult, 0x1p-75, 0x1p-75, 0}, {target.AluMult, 0x1p-75, 0x1p-74, tiny},
		{target.AluMult, 1e30, 1e30, inf}, {target.AluMult, -1, 0, negZero},
		{target.AluDivide, 1, 0, inf}, {target.AluDivide, 1, negZero, -inf}, {target.AluDivide, 0, 0, nan}, {target.AluDivide, 1, 3, float32(1.0 / 3)},
		{target.AluMax, nan, 1, nan}, {target.AluMax, 1, nan, nan}, {target.AluMax, negZero, 0, 0}, {target.AluMax, 0, negZero, 0},
		{target.AluMin, nan, 1, nan}, {target.AluMin, 0, negZero, negZero}, {target.AluMin, -inf, 3, -inf},
		{target.AluAnd, 2, 3, 1}, {target.AluAnd, 2, negZero, 0}, {target.AluAnd, nan, 1, 1}, {target.AluOr, 0, negZero, 0}, {target.AluOr, 0, tiny, 1},
		{target.AluXor, 5, 7, 0}, {target.AluXor, 5, 0, 1},
		{target.AluEqual, 0, negZero, 1}, {target.AluEqual, nan, nan, 0}, {target.AluNotEqual, nan, nan, 1}, {target.AluNotEqual, 1, 1, 0},
		{target.AluGT, 2, 1, 1}, {target.AluGT, nan, 1, 0}, {target.AluGE, 1, 1, 1}, {target.AluGE, 1, nan, 0}, {target.AluLT, 1, 2, 1},
		{target.AluLT, inf, inf, 0}, {target.AluLE, -inf, -inf, 1}, {target.AluLE, 2, 1, 0},
		{target.AluPow, 2, 10, 1024}, {target.AluPow, 2, -1, .5}, {target.AluPow, -2, 3, -8}, {target.AluPow, -2, .5, nan}, {target.AluPow, 0, 0, 1},
		{target.AluPow, nan, 0, 1}, {target.AluPow, 0, -1, inf}, {target.AluPow, inf, -1, 0}, {target.AluPow, 3, 0, 1}, {target.AluPow, 10, 38, 1e38},
		{target.AluPow, 10, 39, inf}, {target.AluPow, 10, -46, 0}, {target.AluPow, 1, inf, 1}, {target.AluPow, .5, inf, 0}, {target.AluPow, 9, .5, 3},
		{target.AluMod, 5, 3, 2}, {target.AluMod, -5, 3, 1}, {target.AluMod, 5, -3, -1}, {target.AluMod, -5, -3, -2}, {target.AluMod, 6, 3, 0},
		{target.AluMod, 6, -3, negZero}, {target.AluMod, 5, 0, nan}, {target.AluMod, inf, 3, nan}, {target.AluMod, 5, inf, 5}, {target.AluMod, -5, inf, inf},
		{target.AluMod, nan, 3, nan}, {target.AluMod, 1e30, 3, float32(math.Mod(float64(float32(1e30)), 3))}, {target.AluMod, 5.5, 2, 1.5}, {target.AluMod, -.25, 1, .75},
		{target.AluModInt, 5.9, 3.9, 2}, {target.AluModInt, -5.9, 3.9, 1},
		{target.AluRsqrt, 4, 99, .5}, {target.AluRsqrt, 0, 0, inf}, {target.AluRsqrt, negZero, 0, -inf}, {target.AluRsqrt, -1, 0, nan},
		{target.AluAbs, negZero, 0, 0}, {target.AluAbs, -inf, 0, inf}, {target.AluAbs, -3, 9, 3},
		{target.AluAbsMax, -5, 4, 5}, {target.AluAbsMin, -5, 4, 4}, {target.AluBypass, negZero, 7, negZero},
	} {
		if got := arith(c.op, c.a, c.b); !same(got, c.y) {
			t.Errorf("%s(%g, %g) is %g, want %g", c.op, c.a, c.b, got, c.y)
		}
	}
}

// The loops that are written out for hot operators agree with the one definition, in both operand orders.
func TestRowsAgreeWithArith(t *testing.T) {
	r := rng(11)
	special := []float32{0, negZero, inf, -inf, nan, tiny, -tiny, 1, -1, math.MaxFloat32}
	pick := func() float32 {
		if r.IntN(3) == 0 {
			return special[r.IntN(len(special))]
		}
		return r.Float32()*8 - 4
	}
	const n = 400
	a, b, y := make([]float32, n), make([]float32, n), make([]float32, n)
	for o := range target.NumAluOps {
		if checkArith("", o) != nil {
			continue
		}
		for i := range a {
			a[i], b[i] = pick(), pick()
		}
		rowVV(o, y, a, b)
		for i := range y {
			if want := arith(o, a[i], b[i]); !same(y[i], want) {
				t.Errorf("%s(%g, %g) is %g in a row, want %g", o, a[i], b[i], y[i], want)
			}
		}
		for _, s := range append(special, 2.5) {
			for _, rev := range []bool{false, true} {
				rowVS(o, y, a, s, rev)
				for i := range y {
					want := arith(o, a[i], s)
					if rev && !unary(o) {
						want = arith(o, s, a[i])
					}
					if !same(y[i], want) {
						t.Errorf("%s(%g, %g) reversed %v is %g in a row, want %g", o, a[i], s, rev, y[i], want)
					}
				}
			}
		}
		fold := a[0]
		for _, x := range a[1:] {
			fold = arith(o, fold, x)
		}
		if got := foldRow(o, a[0], a[1:]); !same(got, fold) {
			t.Errorf("%s folds to %g, want %g", o, got, fold)
		}
	}
}

// mod against the remainder in exact arithmetic of float64, where x and y are small multiples of a power of two.
func TestModProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ix, iy := rapid.IntRange(-1<<23, 1<<23).Draw(t, "x"), rapid.IntRange(1, 1<<12).Draw(t, "y")
		scale := math.Ldexp(1, rapid.IntRange(-140, 90).Draw(t, "scale"))
		neg := rapid.Bool().Draw(t, "negative divisor")
		r := ix % iy
		if r < 0 {
			r += iy
		}
		if neg {
			if r > 0 {
				r -= iy
			}
			iy = -iy
		}
		x, y, want := float32(float64(ix)*scale), float32(float64(iy)*scale), float32(float64(r)*scale)
		if got := floorMod(x, y); got != want {
			t.Fatalf("%g mod %g is %g, want %g", x, y, got, want)
		}
	})
}

func TestPowAccuracy(t *testing.T) {
	r := rng(12)
	for range 20000 {
		x, y := math.Float32frombits(r.Uint32()>>1), (r.Float32()*2-1)*float32(math.Ldexp(1, r.IntN(8)))
		got, want := float64(arith(target.AluPow, x, y)), math.Pow(float64(x), float64(y))
		if f := float32(want); !same(float32(got), f) && !same(float32(got), math.Nextafter32(f, inf)) && !same(float32(got), math.Nextafter32(f, -inf)) {
			t.Fatalf("%g^%g is %g, want %g", x, y, got, want)
		}
	}
}

func TestBitwise(t *testing.T) {
	for _, c := range []struct {
		op   target.AluOp
		dt   target.Dtype
		a, b uint64
		y    uint64
	}{
		{target.AluBitNot, target.Uint8, 0x0F, 0, 0xF0}, {target.AluBitAnd, target.Int32, 0xFF00FF00, 0x0FF00FF0, 0x0F000F00},
		{target.AluBitOr, target.Uint16, 0xF000, 0x000F, 0xF00F}, {target.AluBitXor, target.Float32, 1 << 31, 0x3F800000, 0xBF800000},
		{target.AluShiftLeft, target.Uint8, 0x81, 1, 0x02}, {target.AluShiftLeft, target.Uint8, 1, 8, 0}, {target.AluShiftLeftArith, target.Int16, 0xC001, 1, 0x8002},
		{target.AluShiftRight, target.Int8, 0x80, 7, 1}, {target.AluShiftRight, target.Uint32, 0x80000000, 32, 0},
		{target.AluShiftRightArith, target.Int8, 0x80, 3, 0xF0}, {target.AluShiftRightArith, target.Int8, 0x80, 200, 0xFF}, {target.AluShiftRightArith, target.Int8, 0x40, 200, 0},
		{target.AluShiftRightArith, target.Int32, 0x80000000, 31, 0xFFFFFFFF}, {target.AluShiftLeft, target.Uint64, 3, 63, 1 << 63},
		{target.AluShiftRightArith, target.Int64, 1 << 63, 63, ^uint64(0)}, {target.AluBitAnd, target.Uint64, ^uint64(0), 1 << 40, 1 << 40},
	} {
		size := c.dt.Size()
		in0, in1, out := Dense(make([]byte, size), 0, c.dt, 1, size, 1), Dense(make([]byte, size), 0, c.dt, 1, size, 1), Dense(make([]byte, size), 0, c.dt, 1, size, 1)
		storeBitsAt(in0.Data, 0, size, c.a)
		storeBitsAt(in1.Data, 0, size, c.b)
		var s Scratch
		must(t, TensorTensor(&s, c.op, &out, &in0, &in1, nil))
		if got := rawAt(&out, 0, 0); got != c.y {
			t.Errorf("%s %s(%#x, %#x) is %#x, want %#x", c.dt, c.op, c.a, c.b, got, c.y)
		}
		if size > 4 {
			continue
		}
		must(t, TensorScalar(&s, &out, &in0, &ScalarOps{Op0: c.op, S0: ImmBits(uint32(c.b))}, nil))
		if got := rawAt(&out, 0, 0); got != c.y {
			t.Errorf("%s %s(%#x, immediate %#x) is %#x, want %#x", c.dt, c.op, c.a, c.b, got, c.y)
		}
		must(t, ScalarTensorTensor(&s, &out, &in1, &in0, &ScalarOps{Op1: c.op, Rev1: true}, nil))
		want := c.y
		if unary(c.op) {
			want = bitwise(c.op, c.b, 0, uint(8*size)) & (^uint64(0) >> (64 - 8*size))
		}
		if got := rawAt(&out, 0, 0); got != want {
			t.Errorf("%s %s reversed is %#x, want %#x", c.dt, c.op, got, want)
		}
	}
}

func TestOperatorClasses(t *testing.T) {
	var s Scratch
	r := rng(13)
	x, h, y := dense(r, target.Float32, 2, 8), dense(r, target.BFloat16, 2, 8), dense(r, target.Float32, 2, 8)
	l := Dense(make([]byte, 128), 0, target.Int64, 2, 64, 8)
	acc := &Acc{Cmd: target.AccAccumulate, Lanes: make([]float32, 2)}
	for _, c := range []struct {
		name  string
		class target.Class
		err   error
	}{
		{"bits and arithmetic", target.User, TensorScalar(&s, &y, &x, &ScalarOps{Op0: target.AluBitAnd, Op1: target.AluAdd}, nil)},
		{"bits of two widths", target.User, TensorTensor(&s, target.AluBitXor, &y, &x, &h, nil)},
		{"bits with an accumulator", target.User, TensorTensor(&s, target.AluBitXor, &y, &x, &x, acc)},
		{"average", target.Unsupported, TensorTensor(&s, target.AluAverage, &y, &x, &x, nil)},
		{"no operator", target.User, TensorTensor(&s, target.NumAluOps, &y, &x, &x, nil)},
		{"64-bit arithmetic", target.Unsupported, TensorTensor(&s, target.AluAdd, &l, &l, &l, nil)},
		{"bits in a scan", target.User, TensorTensorScan(&s, &y, &x, &x, &ScalarOps{Op0: target.AluBitAnd, Op1: target.AluBitOr})},
		{"bypass reduction", target.User, TensorReduce(&s, target.AluBypass, &y, &x, false)},
		{"lanes", target.User, TensorTensor(&s, target.AluAdd, &y, &x, &x, &Acc{Cmd: target.AccAccumulate, Lanes: make([]float32, 1)})},
		{"Unknown function", target.Unsupported, Activation(&s, &y, &x, &ActOps{Func: target.ActUnknown}, nil)},
		{"idle cache", target.User, TensorScalarCache(&s, &y, &x, &ScalarOps{Op1: target.AluAdd}, CacheReduce, nil)},
		{"wide scalar", target.User, TensorScalar(&s, &y, &x, &ScalarOps{Op0: target.AluAdd, S0: Ptr(&x)}, nil)},
	} {
		if c.err == nil || target.ClassOf(c.err) != c.class {
			t.Errorf("%s: %v, want class %d", c.name, c.err, c.class)
		}
	}
}
