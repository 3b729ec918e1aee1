package kernel

import "github.com/rosmar-compiler/rosmar/ir/target"

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
		if signed {
			a, b = uint64(int64(int32(a))), uint64(int64(int32(b)))
		} else {
			a, b = uint64(uint32(a)), uint64(uint32(b))
		}
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
