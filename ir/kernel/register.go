package kernel

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Register computes one operator on integer registers of 32 bits, or of 64 when wide; of a narrow result only the lower 32 bits count. An
// operator or type that registers do not have is refused by name.
func Register(op target.AluOp, dt target.Dtype, wide bool, a, b uint64) (uint64, error) {
	signed := dt.Class() == target.ClassInt
	if !signed && dt.Class() != target.ClassUint {
		return 0, target.NotSupported(dt.String(), "register arithmetic on %s; integers are simulated", dt)
	}
	mask := uint64(63)
	if !wide {
		mask = 31
		a, b = narrow(signed, a), narrow(signed, b)
	}
	less := a < b
	if signed {
		less = int64(a) < int64(b)
	}
	truth := func(x bool) (uint64, error) {
		if x {
			return 1, nil
		}
		return 0, nil
	}
	switch op {
	case target.AluBypass:
		return a, nil
	case target.AluAdd:
		return a + b, nil
	case target.AluSub:
		return a - b, nil
	case target.AluMult:
		return a * b, nil
	case target.AluMax:
		if less {
			return b, nil
		}
		return a, nil
	case target.AluMin:
		if less {
			return a, nil
		}
		return b, nil
	case target.AluBitNot:
		return ^a, nil
	case target.AluBitAnd:
		return a & b, nil
	case target.AluBitOr:
		return a | b, nil
	case target.AluBitXor:
		return a ^ b, nil
	case target.AluShiftLeft, target.AluShiftLeftArith:
		return a << (b & mask), nil
	case target.AluShiftRight:
		if !wide {
			a = uint64(uint32(a))
		}
		return a >> (b & mask), nil
	case target.AluShiftRightArith:
		if !wide {
			a = uint64(int64(int32(a)))
		}
		return uint64(int64(a) >> (b & mask)), nil
	case target.AluEqual:
		return truth(a == b)
	case target.AluNotEqual:
		return truth(a != b)
	case target.AluLT:
		return truth(less)
	case target.AluLE:
		return truth(less || a == b)
	case target.AluGT:
		return truth(!less && a != b)
	case target.AluGE:
		return truth(!less)
	}
	return 0, target.NotSupported(op.String(), "register operator %s is not simulated", op)
}

// narrow extends the lower 32 bits.
func narrow(signed bool, a uint64) uint64 {
	if signed {
		return uint64(int64(int32(a)))
	}
	return uint64(uint32(a))
}

// Compare evaluates the condition of a branch, LT, LE, EQ, NE, GE or GT by numbers from 0, on scalars of 32 bits, or integers of 64 when wide.
// A NaN differs from everything. A type that branches do not have is refused by name.
func Compare(condition int, dt target.Dtype, wide bool, a, b uint64) (bool, error) {
	if condition < 0 || condition > 5 {
		return false, target.Errorf(target.User, "a branch on condition %d; 0 to 5 are possible", condition)
	}
	var less, equal bool
	switch class := dt.Class(); {
	case class == target.ClassInt, class == target.ClassUint:
		signed := class == target.ClassInt
		if !wide {
			a, b = narrow(signed, a), narrow(signed, b)
		}
		less, equal = a < b, a == b
		if signed {
			less = int64(a) < int64(b)
		}
	case dt == target.Float32:
		x, y := math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b))
		if x != x || y != y {
			return condition == 3, nil
		}
		less, equal = x < y, x == y
	default:
		return false, target.NotSupported(dt.String(), "a branch on %s; integers and float32 are simulated", dt)
	}
	return [6]bool{less, less || equal, equal, !equal, !less, !less && !equal}[condition], nil
}
