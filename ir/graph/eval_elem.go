package graph

import (
	"math"
	"math/bits"
)

// chunk is how many elements pass through the workspace at once: three float32 chunks stay in the first-level cache.
const chunk = 1024

// lanes is the workspace of elementwise operators.
type lanes struct {
	f32 [4][chunk]float32
	f64 [4][chunk]float64
	i64 [4][chunk]int64
}

// unaryFns are the float operators of one operand. They compute in float64; the caller rounds to the node's type, so an f32
// result is the correctly rounded one wherever the function itself is exact to half a unit of float64.
var unaryFns = [NumOps]func(float64) float64{
	OpAbs: math.Abs, OpNeg: func(x float64) float64 { return -x }, OpExp: math.Exp, OpExpm1: math.Expm1, OpLog: math.Log,
	OpLog1p: math.Log1p, OpSqrt: math.Sqrt, OpRsqrt: func(x float64) float64 { return 1 / math.Sqrt(x) }, OpCbrt: math.Cbrt,
	OpTanh: math.Tanh, OpSigmoid: sigmoid, OpSin: math.Sin, OpCos: math.Cos, OpTan: math.Tan, OpErf: math.Erf,
	OpFloor: math.Floor, OpCeil: math.Ceil, OpRoundEven: math.RoundToEven, OpRoundAway: math.Round, OpSign: sign,
	OpRelu: relu, OpGelu: func(x float64) float64 { return x * 0.5 * math.Erfc(-x/math.Sqrt2) }, OpGeluTanh: geluTanh,
	OpSilu: func(x float64) float64 { return x * sigmoid(x) }, OpSoftplus: softplus,
	OpMish: func(x float64) float64 { return x * math.Tanh(softplus(x)) },
	OpCopy: func(x float64) float64 { return x }, OpBarrier: func(x float64) float64 { return x },
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x // keeps the sign of zero, and NaN
}

func relu(x float64) float64 {
	if x < 0 {
		return 0
	}
	return x
}

func geluTanh(x float64) float64 {
	return x * 0.5 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// softplus is log(1+eˣ) without overflow.
func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// elementwise evaluates a unary, binary or ternary operator over len(out) elements. The operands have as many elements, or
// one where the operator takes scalars (select, clamp). Shapes are the caller's business, so that a scalar computation can
// be evaluated over many lanes at once.
func (r *run) elementwise(n Node, out Tensor, ins []Tensor) error {
	g, op := r.g, r.g.Op(n)
	total := out.Len()
	from := ins[0].Dtype
	switch op {
	case OpSelect:
		selectElems(out, ins[0], ins[1], ins[2])
		return nil
	case OpBitcastConvert:
		copy(out.Data, ins[0].Data)
		return nil
	case OpComplex:
		return g.unsupported(n, "complex numbers are not evaluated")
	case OpClamp:
		from = ins[1].Dtype
	}
	dom := domainOf(from)
	if dom == domNone || domainOf(out.Dtype) == domNone {
		return g.unsupported(n, "%s is not evaluated", from)
	}
	if op == OpConvert {
		r.convert(out, ins[0])
		return nil
	}
	var fn func(float64) float64
	switch op {
	case OpLeakyRelu:
		alpha := g.Float(n, AttrAlpha, 0.01)
		fn = func(x float64) float64 {
			if x < 0 {
				return alpha * x
			}
			return x
		}
	case OpReducePrecision:
		fn = reducePrecision(from, int(g.Int(n, AttrExponent, 8)), int(g.Int(n, AttrMantissa, 23)))
	case OpIsFinite:
		fn = func(x float64) float64 {
			if math.IsInf(x, 0) || x != x {
				return 0
			}
			return 1
		}
	default:
		fn = unaryFns[op]
	}
	dir := Dir(g.Int(n, AttrDirection, 0))
	w := r.lanes
	for lo := 0; lo < total; lo += chunk {
		m := min(chunk, total-lo)
		switch dom {
		case domF32:
			var in [3][]float32
			for i, t := range ins {
				in[i] = laneF32(t, lo, m, w.f32[i][:])
			}
			if op == OpCompare {
				compareLanes(dir, out.Data[lo:lo+m], in[0], in[1])
				continue
			}
			dst := w.f32[3][:m]
			if out.Dtype == F32 {
				dst = view[float32](out.Data)[lo : lo+m]
			}
			if !floatLanes(op, fn, dst, in) {
				return g.unsupported(n, "%s of %s is not evaluated", op, from)
			}
			switch out.Dtype {
			case F32:
			case Bool: // is-finite
				for i, x := range dst {
					out.Data[lo+i] = byte(x)
				}
			default:
				storeF32(out.Dtype, out.Data, lo, dst)
			}
		case domF64:
			var in [3][]float64
			for i, t := range ins {
				in[i] = laneF64(t, lo, m, w.f64[i][:])
			}
			if op == OpCompare {
				compareLanes(dir, out.Data[lo:lo+m], in[0], in[1])
				continue
			}
			dst := w.f64[3][:m]
			if !floatLanes(op, fn, dst, in) {
				return g.unsupported(n, "%s of %s is not evaluated", op, from)
			}
			if out.Dtype == Bool {
				for i, x := range dst {
					out.Data[lo+i] = byte(x)
				}
			} else {
				storeF64(out.Dtype, out.Data, lo, dst)
			}
		case domInt:
			var in [3][]int64
			for i, t := range ins {
				in[i] = laneInts(t, lo, m, w.i64[i][:])
			}
			if op == OpCompare {
				if from == U64 {
					flipTop(w.i64[0][:m], in[0])
					flipTop(w.i64[1][:m], in[1])
					in[0], in[1] = w.i64[0][:m], w.i64[1][:m]
				}
				compareLanes(dir, out.Data[lo:lo+m], in[0], in[1])
				continue
			}
			dst := w.i64[3][:m]
			if !intLanes(op, from, dst, in) {
				return g.unsupported(n, "%s of %s is not evaluated", op, from)
			}
			storeInts(out.Dtype, out.Data, lo, dst)
		}
	}
	return nil
}

func laneF32(t Tensor, lo, n int, buf []float32) []float32 {
	if len(t.Data) == t.Dtype.Size() {
		return fill(buf[:n], loadF32(t.Dtype, t.Data, 0, 1, buf)[0])
	}
	return loadF32(t.Dtype, t.Data, lo, n, buf)
}

func laneF64(t Tensor, lo, n int, buf []float64) []float64 {
	if len(t.Data) == t.Dtype.Size() {
		return fill(buf[:n], loadF64(t.Dtype, t.Data, 0, 1, buf)[0])
	}
	return loadF64(t.Dtype, t.Data, lo, n, buf)
}

func laneInts(t Tensor, lo, n int, buf []int64) []int64 {
	if len(t.Data) == t.Dtype.Size() {
		return fill(buf[:n], loadInts(t.Dtype, t.Data, 0, 1, buf)[0])
	}
	return loadInts(t.Dtype, t.Data, lo, n, buf)
}

func fill[T any](dst []T, v T) []T {
	for i := range dst {
		dst[i] = v
	}
	return dst
}

func flipTop(dst, src []int64) {
	for i, x := range src {
		dst[i] = x ^ math.MinInt64
	}
}

// floatLanes computes dst from up to three operands; false for an operator without a float form.
func floatLanes[T float32 | float64](op Op, fn func(float64) float64, dst []T, in [3][]T) bool {
	x := in[0][:len(dst)]
	if fn != nil {
		for i, a := range x {
			dst[i] = T(fn(float64(a)))
		}
		return true
	}
	if len(in[1]) < len(dst) {
		return false
	}
	y := in[1][:len(dst)]
	switch op {
	case OpAdd:
		for i, a := range x {
			dst[i] = a + y[i]
		}
	case OpSub:
		for i, a := range x {
			dst[i] = a - y[i]
		}
	case OpMul:
		for i, a := range x {
			dst[i] = a * y[i]
		}
	case OpDiv:
		for i, a := range x {
			dst[i] = a / y[i]
		}
	case OpMax:
		for i, a := range x {
			dst[i] = maxNaN(a, y[i])
		}
	case OpMin:
		for i, a := range x {
			dst[i] = minNaN(a, y[i])
		}
	case OpPow:
		for i, a := range x {
			dst[i] = T(math.Pow(float64(a), float64(y[i])))
		}
	case OpRem:
		for i, a := range x {
			dst[i] = T(math.Mod(float64(a), float64(y[i])))
		}
	case OpAtan2:
		for i, a := range x {
			dst[i] = T(math.Atan2(float64(a), float64(y[i])))
		}
	case OpClamp: // min(max(low, x), high)
		hi := in[2][:len(dst)]
		for i, lo := range x {
			dst[i] = minNaN(maxNaN(lo, y[i]), hi[i])
		}
	default:
		return false
	}
	return true
}

// maxNaN gives NaN when either operand is NaN; max(−0, +0) is +0.
func maxNaN[T float32 | float64](a, b T) T { return max(a, b) }

func minNaN[T float32 | float64](a, b T) T { return min(a, b) }

func compareLanes[T float32 | float64 | int64](dir Dir, dst []byte, x, y []T) {
	y = y[:len(x)]
	dst = dst[:len(x)]
	b2i := func(b bool) byte {
		if b {
			return 1
		}
		return 0
	}
	switch dir {
	case DirEQ:
		for i, a := range x {
			dst[i] = b2i(a == y[i])
		}
	case DirNE:
		for i, a := range x {
			dst[i] = b2i(a != y[i])
		}
	case DirLT:
		for i, a := range x {
			dst[i] = b2i(a < y[i])
		}
	case DirLE:
		for i, a := range x {
			dst[i] = b2i(a <= y[i])
		}
	case DirGT:
		for i, a := range x {
			dst[i] = b2i(a > y[i])
		}
	case DirGE:
		for i, a := range x {
			dst[i] = b2i(a >= y[i])
		}
	}
}

// intLanes computes integers of type d (and Bool as 0 and 1) in int64; the caller wraps.
func intLanes(op Op, d Dtype, dst []int64, in [3][]int64) bool {
	width := int64(d.Bits())
	mask := ^uint64(0) >> (64 - uint(width))
	x := in[0][:len(dst)]
	switch op {
	case OpAbs:
		for i, a := range x {
			if a < 0 && d.Signed() {
				a = -a
			}
			dst[i] = a
		}
		return true
	case OpNeg:
		for i, a := range x {
			dst[i] = -a
		}
		return true
	case OpSign:
		for i, a := range x {
			switch {
			case a > 0 || a < 0 && !d.Signed():
				dst[i] = 1
			case a < 0:
				dst[i] = -1
			default:
				dst[i] = 0
			}
		}
		return true
	case OpNot:
		for i, a := range x {
			dst[i] = ^a
			if d == Bool {
				dst[i] = a ^ 1
			}
		}
		return true
	case OpPopcnt:
		for i, a := range x {
			dst[i] = int64(bits.OnesCount64(uint64(a) & mask))
		}
		return true
	case OpClz:
		for i, a := range x {
			dst[i] = int64(bits.LeadingZeros64(uint64(a)&mask)) - (64 - width)
		}
		return true
	case OpRelu:
		for i, a := range x {
			if a < 0 && d.Signed() {
				a = 0
			}
			dst[i] = a
		}
		return true
	case OpCopy, OpBarrier:
		copy(dst, x)
		return true
	}
	if len(in[1]) < len(dst) {
		return false
	}
	y := in[1][:len(dst)]
	less := func(a, b int64) bool { return a < b }
	if d == U64 {
		less = func(a, b int64) bool { return uint64(a) < uint64(b) }
	}
	switch op {
	case OpAdd:
		for i, a := range x {
			dst[i] = a + y[i]
		}
	case OpSub:
		for i, a := range x {
			dst[i] = a - y[i]
		}
	case OpMul:
		for i, a := range x {
			dst[i] = a * y[i]
		}
	case OpDiv:
		for i, a := range x {
			switch b := y[i]; {
			case b == 0:
				dst[i] = -1
			case d == U64:
				dst[i] = int64(uint64(a) / uint64(b))
			default:
				dst[i] = a / b
			}
		}
	case OpRem:
		for i, a := range x {
			switch b := y[i]; {
			case b == 0:
				dst[i] = a
			case d == U64:
				dst[i] = int64(uint64(a) % uint64(b))
			default:
				dst[i] = a % b
			}
		}
	case OpMax:
		for i, a := range x {
			if less(a, y[i]) {
				a = y[i]
			}
			dst[i] = a
		}
	case OpMin:
		for i, a := range x {
			if less(y[i], a) {
				a = y[i]
			}
			dst[i] = a
		}
	case OpPow:
		for i, a := range x {
			dst[i] = intPow(a, y[i], d)
		}
	case OpAnd:
		for i, a := range x {
			dst[i] = a & y[i]
		}
	case OpOr:
		for i, a := range x {
			dst[i] = a | y[i]
		}
	case OpXor:
		for i, a := range x {
			dst[i] = a ^ y[i]
		}
	case OpShl:
		for i, a := range x {
			dst[i] = 0
			if s := uint64(y[i]); s < uint64(width) {
				dst[i] = a << s
			}
		}
	case OpShrLogical:
		for i, a := range x {
			dst[i] = 0
			if s := uint64(y[i]); s < uint64(width) {
				dst[i] = int64(uint64(a) & mask >> s)
			}
		}
	case OpShrArith:
		for i, a := range x {
			s := min(uint64(y[i]), uint64(width-1))
			// An unsigned type shifts in copies of its top bit too.
			u := uint64(64 - width)
			dst[i] = a << u >> u >> s
		}
	case OpClamp:
		hi := in[2][:len(dst)]
		for i, lo := range x {
			v := y[i]
			if less(v, lo) {
				v = lo
			}
			if less(hi[i], v) {
				v = hi[i]
			}
			dst[i] = v
		}
	default:
		return false
	}
	return true
}

// intPow wraps at 64 bits; a negative exponent gives 0 except for bases 1 and −1.
func intPow(a, e int64, d Dtype) int64 {
	if e < 0 && d.Signed() {
		switch {
		case a == 1:
			return 1
		case a == -1:
			return 1 - 2*(e&1)
		}
		return 0
	}
	r := int64(1)
	for u := uint64(e); u > 0; u >>= 1 {
		if u&1 != 0 {
			r *= a
		}
		a *= a
	}
	return r
}

// selectElems copies whole elements, whatever their type.
func selectElems(out, p, a, b Tensor) {
	if len(p.Data) == 1 && out.Len() != 1 {
		src := b
		if p.Data[0] != 0 {
			src = a
		}
		copy(out.Data, src.Data)
		return
	}
	switch out.Dtype.Size() {
	case 1:
		selectOf(out.Data, p.Data, a.Data, b.Data)
	case 2:
		selectOf(view[uint16](out.Data), p.Data, view[uint16](a.Data), view[uint16](b.Data))
	case 4:
		selectOf(view[uint32](out.Data), p.Data, view[uint32](a.Data), view[uint32](b.Data))
	case 8:
		selectOf(view[uint64](out.Data), p.Data, view[uint64](a.Data), view[uint64](b.Data))
	default:
		s := out.Dtype.Size()
		for i, c := range p.Data {
			src := b.Data
			if c != 0 {
				src = a.Data
			}
			copy(out.Data[i*s:(i+1)*s], src[i*s:])
		}
	}
}

func selectOf[T any](dst []T, p []byte, a, b []T) {
	a, b, p = a[:len(dst)], b[:len(dst)], p[:len(dst)]
	for i := range dst {
		if p[i] != 0 {
			dst[i] = a[i]
		} else {
			dst[i] = b[i]
		}
	}
}

// convert rounds once: floats to nearest even, floats to integers towards zero with saturation (NaN gives 0), integers to
// integers by wrapping, anything to Bool by != 0.
func (r *run) convert(out, x Tensor) {
	w := r.lanes
	total := out.Len()
	from, to := domainOf(x.Dtype), domainOf(out.Dtype)
	for lo := 0; lo < total; lo += chunk {
		m := min(chunk, total-lo)
		switch {
		case from == domInt && to == domInt:
			storeInts(out.Dtype, out.Data, lo, loadInts(x.Dtype, x.Data, lo, m, w.i64[0][:]))
		case from == domInt && out.Dtype == F32:
			dst := view[float32](out.Data)[lo : lo+m]
			for i, v := range loadInts(x.Dtype, x.Data, lo, m, w.i64[0][:]) {
				dst[i] = float32(v)
				if x.Dtype == U64 {
					dst[i] = float32(uint64(v))
				}
			}
		case from == domF32 && to == domF32:
			storeF32(out.Dtype, out.Data, lo, loadF32(x.Dtype, x.Data, lo, m, w.f32[0][:]))
		case from == domF32 && to == domF64:
			dst := view[float64](out.Data)[lo : lo+m]
			for i, v := range loadF32(x.Dtype, x.Data, lo, m, w.f32[0][:]) {
				dst[i] = float64(v)
			}
		case to != domInt:
			storeF64(out.Dtype, out.Data, lo, loadF64(x.Dtype, x.Data, lo, m, w.f64[0][:]))
		default:
			ints := w.i64[0][:m]
			for i, v := range loadF64(x.Dtype, x.Data, lo, m, w.f64[0][:]) {
				if out.Dtype == Bool {
					ints[i] = 0
					if v != 0 {
						ints[i] = 1
					}
				} else {
					ints[i] = saturate(out.Dtype, v)
				}
			}
			storeInts(out.Dtype, out.Data, lo, ints)
		}
	}
}

// reducePrecision rounds to a format of e exponent and m mantissa bits. With fewer exponent bits than the source has, what is
// below the normal range becomes zero, as XLA does.
func reducePrecision(from Dtype, e, m int) func(float64) float64 {
	bias := 1<<(e-1) - 1
	emin := 1 - bias
	source := map[Dtype]int{F64: 11, F32: 8}[from]
	if source == 0 {
		source = smallFloats[from].exp
	}
	return func(x float64) float64 {
		if x == 0 || x != x || math.IsInf(x, 0) {
			return x
		}
		_, ex := math.Frexp(x)
		step := max(ex-1, emin) - m
		y := math.Ldexp(math.RoundToEven(math.Ldexp(x, -step)), step)
		if _, ey := math.Frexp(y); y != 0 && ey-1 > bias {
			return math.Copysign(math.Inf(1), x)
		} else if ey-1 < emin && e < source {
			return math.Copysign(0, x)
		}
		return y
	}
}
