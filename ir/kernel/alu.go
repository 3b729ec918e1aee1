package kernel

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Operators on float32, each rounded once. Comparisons and logic give 1 or 0; NaN compares unequal to everything and is
// true as a logical value. max and min propagate NaN and order -0 below +0. mod is floored: its result has the sign of
// the divisor, as in Python and ONNX Mod for integers (the fmod of C is x - y·trunc(x/y), which callers build). mod_int
// truncates both operands first. pow and rsqrt are computed in float64. rsqrt, abs and bitwise_not take the first operand and bypass
// passes it, whatever the reverse bits say.

// checkArith refuses operators that do not compute in float32.
func checkArith(op string, o target.AluOp) error {
	switch {
	case o >= target.NumAluOps:
		return target.Errorf(target.User, "%s: unknown ALU operator %d", op, o)
	case o == target.AluAverage || o == target.AluElemMul:
		return target.NotSupported(o.String(), "%s: ALU operator %s has no encoding on any generation", op, o)
	case o.Bitwise():
		return target.Errorf(target.User, "%s: %s works on raw bits and does not mix with arithmetic here", op, o)
	}
	return nil
}

// unary reports the operators that ignore their second operand.
func unary(o target.AluOp) bool {
	return o == target.AluBypass || o == target.AluRsqrt || o == target.AluAbs || o == target.AluBitNot
}

// truth selects between integers, which compiles without a branch.
func truth(b bool) float32 {
	u := uint32(0)
	if b {
		u = 0x3F800000
	}
	return math.Float32frombits(u)
}

func abs32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// arith applies an operator that checkArith passed.
func arith(o target.AluOp, a, b float32) float32 {
	switch o {
	case target.AluAdd:
		return a + b
	case target.AluSub:
		return a - b
	case target.AluMult:
		return a * b
	case target.AluDivide:
		return a / b
	case target.AluMax:
		return max(a, b)
	case target.AluMin:
		return min(a, b)
	case target.AluAnd:
		return truth(a != 0 && b != 0)
	case target.AluOr:
		return truth(a != 0 || b != 0)
	case target.AluXor:
		return truth((a != 0) != (b != 0))
	case target.AluEqual:
		return truth(a == b)
	case target.AluNotEqual:
		return truth(a != b)
	case target.AluGT:
		return truth(a > b)
	case target.AluGE:
		return truth(a >= b)
	case target.AluLT:
		return truth(a < b)
	case target.AluLE:
		return truth(a <= b)
	case target.AluPow:
		return pow(float64(a), float64(b))
	case target.AluMod:
		return floorMod(a, b)
	case target.AluModInt:
		return floorMod(float32(math.Trunc(float64(a))), float32(math.Trunc(float64(b))))
	case target.AluRsqrt:
		return float32(1 / math.Sqrt(float64(a)))
	case target.AluAbs:
		return abs32(a)
	case target.AluAbsMax:
		return max(abs32(a), abs32(b))
	case target.AluAbsMin:
		return min(abs32(a), abs32(b))
	}
	return a // bypass
}

// pow takes the short way where nothing special can happen: with |y·log x| below 104, all that float32 can hold, the relative
// error is below 2^-43 before the rounding.
func pow(x, y float64) float32 {
	if x > 0 && x <= math.MaxFloat32 && y-y == 0 {
		return float32(exp(y * math.Log(x)))
	}
	return float32(math.Pow(x, y))
}

// floorMod is x - y·floor(x/y), exact before the final rounding. NaN for a zero divisor or an infinite x.
func floorMod(x, y float32) float32 {
	a, b := float64(x), float64(y)
	var r float64
	if q := a / b; q > -1<<20 && q < 1<<20 && !math.IsInf(b, 0) {
		// The quotient has at most 20 bits and b 24, so the product is exact; the quotient itself may have been rounded
		// up to the next integer, which the sign test below repairs.
		r = a - float64(math.Trunc(q)*b)
		if r != 0 && (r < 0) != (a < 0) {
			if (b < 0) == (a < 0) {
				r += b
			} else {
				r -= b
			}
		}
	} else {
		r = math.Mod(a, b)
	}
	switch {
	case r == 0:
		r = math.Copysign(0, b)
	case (r < 0) != (b < 0):
		r += b
	}
	return float32(r)
}

// identity is where a fold with the operator starts when the accumulator was cleared.
func identity(o target.AluOp) float32 {
	switch o {
	case target.AluMult, target.AluDivide, target.AluAnd:
		return 1
	case target.AluMax:
		return float32(math.Inf(-1))
	case target.AluMin, target.AluAbsMin:
		return float32(math.Inf(1))
	}
	return 0
}

// rowVV is dst = o(a, b) element by element; dst may be a or b.
func rowVV(o target.AluOp, dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	switch o {
	case target.AluAdd:
		for i := range dst {
			dst[i] = a[i] + b[i]
		}
	case target.AluSub:
		for i := range dst {
			dst[i] = a[i] - b[i]
		}
	case target.AluMult:
		for i := range dst {
			dst[i] = a[i] * b[i]
		}
	case target.AluMax:
		for i := range dst {
			dst[i] = max(a[i], b[i])
		}
	case target.AluMin:
		for i := range dst {
			dst[i] = min(a[i], b[i])
		}
	case target.AluBypass:
		copy(dst, a)
	default:
		for i := range dst {
			dst[i] = arith(o, a[i], b[i])
		}
	}
}

// rowVS is dst = o(a, s), or o(s, a) when reversed; dst may be a.
func rowVS(o target.AluOp, dst, a []float32, s float32, rev bool) {
	a = a[:len(dst)]
	switch o {
	case target.AluBypass:
		copy(dst, a)
		return
	case target.AluAdd:
		for i := range dst {
			dst[i] = a[i] + s
		}
		return
	case target.AluMult:
		for i := range dst {
			dst[i] = a[i] * s
		}
		return
	case target.AluMax:
		for i := range dst {
			dst[i] = max(a[i], s)
		}
		return
	case target.AluMin:
		for i := range dst {
			dst[i] = min(a[i], s)
		}
		return
	case target.AluSub:
		if !rev {
			for i := range dst {
				dst[i] = a[i] - s
			}
			return
		}
	}
	if rev && !unary(o) {
		for i := range dst {
			dst[i] = arith(o, s, a[i])
		}
		return
	}
	for i := range dst {
		dst[i] = arith(o, a[i], s)
	}
}

// foldRow is o(…o(o(x, row[0]), row[1])…).
func foldRow(o target.AluOp, x float32, row []float32) float32 {
	switch o {
	case target.AluAdd:
		for _, y := range row {
			x += y
		}
	case target.AluMult:
		for _, y := range row {
			x *= y
		}
	case target.AluMax:
		for _, y := range row {
			x = max(x, y)
		}
	case target.AluMin:
		for _, y := range row {
			x = min(x, y)
		}
	default:
		for _, y := range row {
			x = arith(o, x, y)
		}
	}
	return x
}

// bitwise applies an operator of the raw class to elements of w bits. A shift by w or more empties the element (arithmetic
// right shifts leave copies of the top bit); counts are unsigned. The result may have junk above w bits: stores drop it.
func bitwise(o target.AluOp, a, b uint64, w uint) uint64 {
	switch o {
	case target.AluBitNot:
		return ^a
	case target.AluBitAnd:
		return a & b
	case target.AluBitOr:
		return a | b
	case target.AluBitXor:
		return a ^ b
	case target.AluShiftLeft, target.AluShiftLeftArith:
		if b >= uint64(w) {
			return 0
		}
		return a << b
	case target.AluShiftRight:
		if b >= uint64(w) {
			return 0
		}
		return a >> b
	case target.AluShiftRightArith:
		return uint64(int64(a<<(64-w)) >> (64 - w) >> min(b, 63))
	}
	return a // bypass
}

// rowBits is dst = o(a, b) on raw elements of w bits, or o(b, a) when reversed. A nil b stands for s throughout.
func rowBits(o target.AluOp, dst, a, b []uint64, s uint64, rev bool, w uint) {
	mask := ^uint64(0) >> (64 - w)
	rev = rev && !unary(o)
	for i := range dst {
		x, y := a[i], s
		if b != nil {
			y = b[i]
		}
		y &= mask
		if rev {
			x, y = y, x
		}
		dst[i] = bitwise(o, x, y, w) & mask
	}
}

// opClass tells how a pair of operators computes.
type opClass uint8

const (
	classMove  opClass = iota // bypass only
	classArith                // float32
	classBits                 // raw
)

// classify finds the class of up to two operators, and refuses a mixture.
func classify(op string, o0, o1 target.AluOp) (opClass, error) {
	bits := o0.Bitwise() || o1.Bitwise()
	for _, o := range [2]target.AluOp{o0, o1} {
		if o == target.AluBypass || bits && o.Bitwise() {
			continue
		}
		if err := checkArith(op, o); err != nil {
			return 0, err
		}
		if bits {
			return 0, target.Errorf(target.User, "%s: %s and %s mix raw bits with arithmetic", op, o0, o1)
		}
	}
	switch {
	case bits:
		return classBits, nil
	case o0 == target.AluBypass && o1 == target.AluBypass:
		return classMove, nil
	}
	return classArith, nil
}
