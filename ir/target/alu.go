package target

// AluOp is an arithmetic operator of the tensor engines, by the ordinal of the public notes.
type AluOp uint8

const (
	AluBypass AluOp = iota
	AluBitNot
	AluShiftLeftArith
	AluShiftRightArith
	AluAdd
	AluSub
	AluMult
	AluDivide
	AluMax
	AluMin
	AluBitAnd
	AluBitOr
	AluBitXor
	AluAnd
	AluOr
	AluXor
	AluShiftLeft
	AluShiftRight
	AluEqual
	AluNotEqual
	AluGT
	AluGE
	AluLT
	AluLE
	AluAverage
	AluElemMul
	AluPow
	AluMod
	AluRsqrt
	AluAbs
	AluAbsMax
	AluAbsMin
	AluModInt
	NumAluOps
)

var aluNames = [NumAluOps]string{
	"bypass", "bitwise_not", "arith_shift_left", "arith_shift_right", "add", "subtract", "mult", "divide", "max", "min",
	"bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "logical_shift_left",
	"logical_shift_right", "is_equal", "not_equal", "is_gt", "is_ge", "is_lt", "is_le", "average", "elemwise_mul", "pow",
	"mod", "rsqrt", "abs", "abs_max", "abs_min", "mod_int",
}

// String is the JSON name.
func (o AluOp) String() string {
	if o < NumAluOps {
		return aluNames[o]
	}
	return "alu?"
}

// ParseAluOp finds an operator by its JSON name.
func ParseAluOp(s string) (AluOp, bool) {
	for i, n := range aluNames {
		if n == s {
			return AluOp(i), true
		}
	}
	return 0, false
}

// Bitwise reports the class that works on raw bits; every other operator computes in fp32.
func (o AluOp) Bitwise() bool {
	switch o {
	case AluBitNot, AluShiftLeftArith, AluShiftRightArith, AluBitAnd, AluBitOr, AluBitXor, AluShiftLeft, AluShiftRight:
		return true
	}
	return false
}

// LegalOn reports whether a generation can encode the operator: the last three came with V4, and average and
// elemwise_mul have no wire byte anywhere.
func (o AluOp) LegalOn(level int) bool {
	switch o {
	case AluAverage, AluElemMul:
		return false
	case AluAbsMax, AluAbsMin, AluModInt:
		return level >= 40
	}
	return o < NumAluOps
}

// AccCmd is what an engine does with its accumulator register.
type AccCmd uint8

const (
	AccIdle AccCmd = iota
	AccZero
	AccAccumulate
	AccZeroAccumulate
	AccAddAccumulate
	AccLoadAccumulate
	NumAccCmds
)

var accNames = [NumAccCmds]string{"Idle", "Zero", "Accumulate", "ZeroAccumulate", "AddAccumulate", "LoadAccumulate"}

// String is the JSON name.
func (c AccCmd) String() string {
	if c < NumAccCmds {
		return accNames[c]
	}
	return "acc?"
}
