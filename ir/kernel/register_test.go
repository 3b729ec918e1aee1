package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// want is what Go computes in a type of a register's width. Shifts count modulo the width.
func want[T int32 | uint32 | int64 | uint64](op target.AluOp, a, b T, bits uint64) T {
	truth := func(x bool) T {
		if x {
			return 1
		}
		return 0
	}
	switch op {
	case target.AluAdd:
		return a + b
	case target.AluSub:
		return a - b
	case target.AluMult:
		return a * b
	case target.AluMax:
		return max(a, b)
	case target.AluMin:
		return min(a, b)
	case target.AluBitNot:
		return ^a
	case target.AluBitXor:
		return a ^ b
	case target.AluShiftLeft:
		return a << (uint64(b) & (bits - 1))
	case target.AluEqual:
		return truth(a == b)
	case target.AluLT:
		return truth(a < b)
	case target.AluLE:
		return truth(a <= b)
	case target.AluGT:
		return truth(a > b)
	case target.AluGE:
		return truth(a >= b)
	}
	return a
}

func registers[T int32 | uint32 | int64 | uint64](t *testing.T, dt target.Dtype, bits uint64) {
	rng := rand.New(rand.NewPCG(1, bits))
	edges := []uint64{0, 1, 31, 32, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<63 - 1, 1 << 63, math.MaxUint64}
	draw := func() uint64 {
		if rng.IntN(2) == 0 {
			return edges[rng.IntN(len(edges))]
		}
		return rng.Uint64()
	}
	wide, mask := bits == 64, uint64(math.MaxUint64)>>(64-bits)
	for range 20000 {
		a, b := draw(), draw()
		for _, op := range []target.AluOp{target.AluBypass, target.AluAdd, target.AluSub, target.AluMult, target.AluMax, target.AluMin, target.AluBitNot,
			target.AluBitXor, target.AluShiftLeft, target.AluEqual, target.AluLT, target.AluLE, target.AluGT, target.AluGE} {
			got, err := Register(op, dt, wide, a, b)
			if w := uint64(want(op, T(a), T(b), bits)); err != nil || got&mask != w&mask {
				t.Fatalf("%s %#x %s %#x: %#x, want %#x: %v", dt, a, op, b, got, w, err)
			}
		}
		right, _ := Register(target.AluShiftRight, dt, wide, a, b)
		arith, _ := Register(target.AluShiftRightArith, dt, wide, a, b)
		n := b & (bits - 1)
		if w := a & mask >> n; right&mask != w {
			t.Fatalf("%s %#x >> %d: %#x, want %#x", dt, a, n, right, w)
		}
		if w := uint64(int64(a<<(64-bits)) >> (64 - bits) >> n); arith&mask != w&mask {
			t.Fatalf("%s %#x >> %d by sign: %#x, want %#x", dt, a, n, arith, w)
		}
		x, y := T(a), T(b)
		for k, w := range []bool{x < y, x <= y, x == y, x != y, x >= y, x > y} {
			if got, err := Compare(k, dt, wide, a, b); err != nil || got != w {
				t.Fatalf("%s: condition %d on %#x and %#x: %v, want %v: %v", dt, k, a, b, got, w, err)
			}
		}
	}
	if _, err := Register(target.AluAdd, target.Float32, wide, 1, 2); target.ClassOf(err) != target.Unsupported {
		t.Errorf("float arithmetic: %v", err)
	}
}

func TestRegister(t *testing.T) {
	registers[int32](t, target.Int32, 32)
	registers[uint32](t, target.Uint32, 32)
	registers[int64](t, target.Int32, 64)
	registers[uint64](t, target.Uint32, 64)
}

func TestCompareFloats(t *testing.T) {
	values := []float32{float32(math.Inf(-1)), -1, float32(math.Copysign(0, -1)), 0, 1e-30, 2, float32(math.Inf(1)), float32(math.NaN())}
	for _, x := range values {
		for _, y := range values {
			for k, want := range []bool{x < y, x <= y, x == y, x != y, x >= y, x > y} {
				got, err := Compare(k, target.Float32, false, uint64(math.Float32bits(x)), uint64(math.Float32bits(y)))
				if err != nil || got != want {
					t.Errorf("condition %d on %v and %v: %v, %v", k, x, y, got, err)
				}
			}
		}
	}
	for _, bad := range []struct {
		condition int
		dt        target.Dtype
		class     target.Class
	}{{6, target.Int32, target.User}, {-1, target.Int32, target.User}, {0, target.BFloat16, target.Unsupported}} {
		if _, err := Compare(bad.condition, bad.dt, false, 0, 0); target.ClassOf(err) != bad.class {
			t.Errorf("condition %d on %s: %v", bad.condition, bad.dt, err)
		}
	}
}
