package tile

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// modelFloat is the model's name of a machine float type.
func modelFloat(dt target.Dtype) (graph.Dtype, bool) {
	switch dt {
	case target.Float32:
		return graph.F32, true
	case target.BFloat16:
		return graph.BF16, true
	case target.Float16:
		return graph.F16, true
	case target.Float8E3:
		return graph.F8E3M4, true
	case target.Float8E4M3FN:
		return graph.F8E4M3FN, true
	case target.Float8E5:
		return graph.F8E5M2, true
	}
	return 0, false
}

// encode32 is the bits of f in dt.
func encode32(dt target.Dtype, f float32) uint64 {
	if dt.IsInteger() {
		return encodeInt(dt, int64(f))
	}
	if d, ok := modelFloat(dt); ok {
		bits, _ := graph.EncodeFloat(d, float64(f))
		return bits
	}
	return uint64(math.Float32bits(f))
}

// round32 is f as dt holds it.
func round32(dt target.Dtype, f float32) float32 {
	if d, ok := modelFloat(dt); ok {
		bits, _ := graph.EncodeFloat(d, float64(f))
		return float32(graph.DecodeFloat(d, bits))
	}
	return f
}

// encodeInt is the low bits of x in dt.
func encodeInt(dt target.Dtype, x int64) uint64 {
	if dt.Size() >= 8 {
		return uint64(x)
	}
	return uint64(x) & (1<<(8*dt.Size()) - 1)
}

// fold computes an operator on repeated elements. ok is false for what it leaves to the engines.
func (l *lowering) fold(r *valueRow, args []view) (f float32, ok bool) {
	if !r.dt.IsInteger() {
		if _, known := modelFloat(r.dt); !known {
			return 0, false
		}
	}
	x := l.vals.At(args[0].root).c0
	if d := l.vals.At(args[0].root).dt; d.Size() > 4 {
		return 0, false
	}
	switch r.op {
	case vCopy:
		if r.rev0 {
			return 0, false
		}
		return intoType(r.dt, x), true
	case vTS:
		y, ok := alu32(r.op0, x, r.c0, r.rev0)
		if !ok {
			return 0, false
		}
		y, ok = alu32(r.op1, y, r.c1, r.rev1)
		return intoType(r.dt, y), ok
	case vTT:
		y, ok := alu32(r.op0, x, l.vals.At(args[1].root).c0, false)
		return intoType(r.dt, y), ok
	case vAct:
		y := float64(float32(x*r.c1) + r.c0)
		switch r.fn {
		case target.ActRsqrt:
			return float32(1 / math.Sqrt(y)), true
		case target.ActSqrt:
			return float32(math.Sqrt(y)), true
		case target.ActExp:
			return float32(math.Exp(y)), true
		case target.ActLn:
			return float32(math.Log(y)), true
		case target.ActTanh:
			return float32(math.Tanh(y)), true
		case target.ActRelu:
			return float32(math.Max(y, 0)), true
		case target.ActSquare:
			return float32(y * y), true
		}
	}
	return 0, false
}

// intoType truncates for an integer type; floats are rounded by the caller.
func intoType(dt target.Dtype, f float32) float32 {
	if dt.IsInteger() {
		return float32(math.Trunc(float64(f)))
	}
	return f
}

func alu32(op target.AluOp, a, b float32, rev bool) (float32, bool) {
	if rev {
		a, b = b, a
	}
	truth := func(t bool) float32 {
		if t {
			return 1
		}
		return 0
	}
	switch op {
	case target.AluBypass:
		return a, true
	case target.AluAdd:
		return a + b, true
	case target.AluSub:
		return a - b, true
	case target.AluMult:
		return a * b, true
	case target.AluDivide:
		return a / b, true
	case target.AluMax:
		return max(a, b), true
	case target.AluMin:
		return min(a, b), true
	case target.AluAbs:
		return float32(math.Abs(float64(a))), true
	case target.AluPow:
		return float32(math.Pow(float64(a), float64(b))), true
	case target.AluEqual:
		return truth(a == b), true
	case target.AluNotEqual:
		return truth(a != b), true
	case target.AluGT:
		return truth(a > b), true
	case target.AluGE:
		return truth(a >= b), true
	case target.AluLT:
		return truth(a < b), true
	case target.AluLE:
		return truth(a <= b), true
	}
	return 0, false
}
