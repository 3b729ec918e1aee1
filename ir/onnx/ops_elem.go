package onnx

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// opUnary is an operator that the graph has under another name.
func opUnary(op graph.Op) handler {
	return func(e *emit) { e.set(0, e.unary(op, e.in(0))) }
}

// legacyOperand is operand 1 of a binary operator. Before opset 7 it was aligned at the dimension axis of operand 0, and only when
// attribute broadcast was set.
func (e *emit) legacyOperand(x, y N) N {
	if e.ver >= 7 || !e.attrBool("broadcast", 0) {
		return y
	}
	rx, ry := e.rank(x), e.rank(y)
	at := e.attrInt("axis", int64(rx-ry))
	if at < 0 {
		at += int64(rx)
	}
	if at < 0 || int(at)+ry > rx {
		e.fail("broadcast of dims %v at axis %d of %v", e.dims(y), at, e.dims(x))
	}
	dims := e.shape(y)
	for range rx - ry - int(at) {
		dims = append(dims, 1)
	}
	return e.reshape(y, dims...)
}

func opBinary(op graph.Op) handler {
	return func(e *emit) {
		x := e.in(0)
		e.set(0, e.bin(op, x, e.legacyOperand(x, e.in(1))))
	}
}

func opCompare(d graph.Dir) handler {
	return func(e *emit) {
		x := e.in(0)
		e.set(0, e.compare(d, x, e.legacyOperand(x, e.in(1))))
	}
}

// opFold applies a binary operator over all inputs, left to right; mean divides by their number.
func opFold(op graph.Op, mean bool) handler {
	return func(e *emit) {
		x := e.in(0)
		for i := 1; i < len(e.ins); i++ {
			x = e.bin(op, x, e.in(i))
		}
		if mean && len(e.ins) > 1 {
			x = e.div(x, e.like(x, float64(len(e.ins))))
		}
		if len(e.ins) == 1 {
			e.pass(0)
			return
		}
		e.set(0, x)
	}
}

// opUnaryOf builds an operator from a function of one node.
func opUnaryOf(f func(e *emit, x N) N) handler {
	return func(e *emit) { e.set(0, f(e, e.in(0))) }
}

func reciprocal(e *emit, x N) N { return e.div(e.like(x, 1), x) }

// sinh by expm1: exact near zero. With t = e^x - 1: (t + t/(t+1)) / 2.
func sinh(e *emit, x N) N {
	t := e.unary(graph.OpExpm1, x)
	return e.mul(e.plus(t, e.div(t, e.plus(t, e.like(x, 1)))), e.like(x, 0.5))
}

func cosh(e *emit, x N) N {
	return e.mul(e.plus(e.exp(x), e.exp(e.unary(graph.OpNeg, x))), e.like(x, 0.5))
}

// rest is √(1 - x²) as √((1-x)(1+x)), exact near ±1.
func rest(e *emit, x N) N {
	one := e.like(x, 1)
	return e.unary(graph.OpSqrt, e.mul(e.minus(one, x), e.plus(one, x)))
}

func asin(e *emit, x N) N { return e.bin(graph.OpAtan2, x, rest(e, x)) }
func acos(e *emit, x N) N { return e.bin(graph.OpAtan2, rest(e, x), x) }
func atan(e *emit, x N) N { return e.bin(graph.OpAtan2, x, e.like(x, 1)) }

func asinh(e *emit, x N) N {
	a := e.unary(graph.OpAbs, x)
	root := e.unary(graph.OpSqrt, e.plus(e.mul(a, a), e.like(x, 1)))
	// log1p(|x| + x²/(1+√(x²+1))) is log(|x| + √(x²+1)) without cancellation at small x.
	y := e.unary(graph.OpLog1p, e.plus(a, e.div(e.mul(a, a), e.plus(e.like(x, 1), root))))
	return e.mul(e.unary(graph.OpSign, x), y)
}

func acosh(e *emit, x N) N {
	one := e.like(x, 1)
	root := e.unary(graph.OpSqrt, e.mul(e.minus(x, one), e.plus(x, one)))
	return e.log(e.plus(x, root))
}

func atanh(e *emit, x N) N {
	l := e.minus(e.unary(graph.OpLog1p, x), e.unary(graph.OpLog1p, e.unary(graph.OpNeg, x)))
	return e.mul(l, e.like(x, 0.5))
}

func softsign(e *emit, x N) N {
	return e.div(x, e.plus(e.unary(graph.OpAbs, x), e.like(x, 1)))
}

func isNaN(e *emit, x N) N { return e.compare(graph.DirNE, x, x) }

func opIsInf(e *emit) {
	x := e.in(0)
	inf := e.like(x, math.Inf(1))
	pos, neg := e.attrBool("detect_positive", 1), e.attrBool("detect_negative", 1)
	switch {
	case pos && neg:
		e.set(0, e.compare(graph.DirEQ, e.unary(graph.OpAbs, x), inf))
	case pos:
		e.set(0, e.compare(graph.DirEQ, x, inf))
	case neg:
		e.set(0, e.compare(graph.DirEQ, x, e.like(x, math.Inf(-1))))
	default:
		e.set(0, e.splat(graph.Bool, e.shape(x), 0))
	}
}

func opLeakyRelu(e *emit) {
	x := e.in(0)
	e.set(0, e.leaky(x, e.attrFloat("alpha", 0.01)))
}

func (e *emit) leaky(x N, alpha float64) N {
	return e.add(graph.OpLeakyRelu, 0, []N{x}, e.g.FloatAttr(graph.AttrAlpha, alpha))
}

func opPRelu(e *emit) {
	x, slope := e.in(0), e.in(1)
	if e.ver < 7 && e.rank(slope) == 1 && e.rank(x) > 1 && e.dims(slope)[0] != 1 { // one slope a channel
		slope = e.along(slope, 1, e.rank(x))
	}
	if bits, ok := e.splatBits(slope); ok && e.isFloat(x) {
		e.set(0, e.leaky(x, graph.DecodeFloat(e.dtype(slope), bits)))
		return
	}
	e.set(0, e.sel(e.compare(graph.DirLT, x, e.like(x, 0)), e.mul(x, slope), x))
}

// negExpm1 is e^x - 1 of the negative part: the positive part must not overflow in the branch that is not taken.
func (e *emit) negExpm1(x N) N { return e.unary(graph.OpExpm1, e.min(x, e.like(x, 0))) }

func opElu(e *emit) {
	x := e.in(0)
	neg := e.mul(e.negExpm1(x), e.like(x, e.attrFloat("alpha", 1)))
	e.set(0, e.sel(e.compare(graph.DirLT, x, e.like(x, 0)), neg, x))
}

func opSelu(e *emit) {
	x := e.in(0)
	alpha, gamma := e.attrFloat("alpha", 1.67326319217681884765625), e.attrFloat("gamma", 1.05070102214813232421875)
	neg := e.mul(e.negExpm1(x), e.like(x, alpha))
	e.set(0, e.mul(e.sel(e.compare(graph.DirLE, x, e.like(x, 0)), neg, x), e.like(x, gamma)))
}

func opCelu(e *emit) {
	x := e.in(0)
	alpha := e.attrFloat("alpha", 1)
	neg := e.mul(e.unary(graph.OpExpm1, e.div(e.min(x, e.like(x, 0)), e.like(x, alpha))), e.like(x, alpha))
	e.set(0, e.plus(e.max(x, e.like(x, 0)), e.min(neg, e.like(x, 0))))
}

func (e *emit) hardSigmoid(x N, alpha, beta float64) N {
	y := e.plus(e.mul(x, e.like(x, alpha)), e.like(x, beta))
	return e.clamp(e.like(x, 0), y, e.like(x, 1))
}

func (e *emit) clamp(lo, x, hi N) N { return e.ok(e.b.Clamp(lo, x, hi)) }

func opHardSigmoid(e *emit) {
	e.set(0, e.hardSigmoid(e.in(0), e.attrFloat("alpha", 0.2), e.attrFloat("beta", 0.5)))
}

func opHardSwish(e *emit) {
	x := e.in(0)
	e.set(0, e.mul(x, e.hardSigmoid(x, 1.0/6, 0.5)))
}

func opThresholdedRelu(e *emit) {
	x := e.in(0)
	e.set(0, e.sel(e.compare(graph.DirGT, x, e.like(x, e.attrFloat("alpha", 1))), x, e.splat(e.dtype(x), e.shape(x), 0)))
}

func opShrink(e *emit) {
	x := e.in(0)
	lambda, bias := e.like(x, e.attrFloat("lambd", 0.5)), e.like(x, e.attrFloat("bias", 0))
	zero := e.splat(e.dtype(x), e.shape(x), 0)
	y := e.sel(e.compare(graph.DirGT, x, lambda), e.minus(x, bias), zero)
	e.set(0, e.sel(e.compare(graph.DirLT, x, e.unary(graph.OpNeg, lambda)), e.plus(x, bias), y))
}

func opSwish(e *emit) {
	x := e.in(0)
	e.set(0, e.swish(x, e.attrFloat("alpha", 1)))
}

func (e *emit) swish(x N, alpha float64) N {
	if alpha == 1 {
		return e.unary(graph.OpSilu, x)
	}
	return e.mul(x, e.unary(graph.OpSigmoid, e.mul(x, e.like(x, alpha))))
}

// opQuickGelu is x·sigmoid(alpha·x) of ONNX Runtime.
func opQuickGelu(e *emit) { e.set(0, e.swish(e.in(0), e.attrFloat("alpha", 1.702))) }

func opGelu(e *emit) {
	switch a := e.attrStr("approximate", "none"); a {
	case "none":
		e.set(0, e.unary(graph.OpGelu, e.in(0)))
	case "tanh":
		e.set(0, e.unary(graph.OpGeluTanh, e.in(0)))
	default:
		e.fail("approximate is %q", a)
	}
}

// opBiasGelu is gelu(x + bias) of ONNX Runtime, with bias optional.
func opBiasGelu(op graph.Op) handler {
	return func(e *emit) {
		x := e.in(0)
		if e.has(1) {
			x = e.plus(x, e.in(1))
		}
		e.set(0, e.unary(op, x))
	}
}

// opClip bounds from below, then from above: where the bounds cross, the upper one wins.
func opClip(e *emit) {
	x := e.in(0)
	var lo, hi N
	if e.ver < 11 {
		if _, ok := e.attr("min"); ok {
			lo = e.like(x, e.attrFloat("min", 0))
		}
		if _, ok := e.attr("max"); ok {
			hi = e.like(x, e.attrFloat("max", 0))
		}
	} else {
		for i, p := range []*N{&lo, &hi} {
			if e.has(i + 1) {
				if *p = e.in(i + 1); e.g.Elements(e.g.Nodes.At(*p).Type) != 1 {
					e.fail("bound of dims %v, expected a scalar", e.dims(*p))
				}
				*p = e.reshape(*p)
			}
		}
	}
	switch {
	case lo != 0 && hi != 0:
		e.set(0, e.clamp(lo, x, hi))
	case lo != 0:
		e.set(0, e.max(x, lo))
	case hi != 0:
		e.set(0, e.min(x, hi))
	default:
		e.pass(0)
	}
}

// opMod: fmod takes the sign of the dividend, otherwise the result has that of the divisor.
func opMod(e *emit) {
	x, y := e.common(e.in(0), e.in(1))
	r := e.bin(graph.OpRem, x, y)
	if e.attrBool("fmod", 0) || e.dtype(x).IsInt() && !e.dtype(x).Signed() {
		e.set(0, r)
		return
	}
	zero := e.like(x, 0)
	opposite := e.compare(graph.DirNE, e.compare(graph.DirLT, r, zero), e.compare(graph.DirLT, y, zero))
	fix := e.bin(graph.OpAnd, e.compare(graph.DirNE, r, zero), opposite)
	e.set(0, e.sel(fix, e.plus(r, y), r))
}

// opPow gives the base's type. A known small exponent becomes products, which are exact where exp and log are not.
func opPow(e *emit) {
	x := e.in(0)
	d := e.dtype(x)
	if p, ok := e.float(1); ok && d.IsFloat() {
		if _, dims := e.typeOf(1); len(dims) <= e.rank(x) {
			switch p {
			case 1:
				e.set(0, e.add(graph.OpCopy, 0, []N{x}))
				return
			case 2:
				e.set(0, e.mul(x, x))
				return
			case 3:
				e.set(0, e.mul(e.mul(x, x), x))
				return
			case 0.5:
				e.set(0, e.unary(graph.OpSqrt, x))
				return
			case -1:
				e.set(0, reciprocal(e, x))
				return
			}
		}
	}
	y := e.in(1)
	if e.ver < 7 {
		y = e.legacyOperand(x, y)
	}
	switch dy := e.dtype(y); {
	case d == dy:
	case d.IsInt() && dy.IsFloat():
		e.set(0, e.convert(e.bin(graph.OpPow, e.convert(x, dy), y), d))
		return
	default:
		y = e.convert(y, d)
	}
	e.set(0, e.bin(graph.OpPow, x, y))
}

func opWhere(e *emit) { e.set(0, e.sel(e.in(0), e.in(1), e.in(2))) }

func opBitShift(e *emit) {
	switch d := e.attrStr("direction", ""); d {
	case "LEFT":
		e.set(0, e.bin(graph.OpShl, e.in(0), e.in(1)))
	case "RIGHT":
		e.set(0, e.bin(graph.OpShrLogical, e.in(0), e.in(1)))
	default:
		e.fail("direction is %q", d)
	}
}

// cast converts as ONNX says: to bool by comparing with zero, to the 8-bit floats saturating unless the node says otherwise.
func (e *emit) cast(x N, to graph.Dtype) N {
	from := e.dtype(x)
	if from == to {
		return x
	}
	for _, d := range []graph.Dtype{from, to} {
		if d == graph.String || d == graph.C64 || d == graph.C128 {
			e.refuse("cast from %v to %v", from, to)
		}
	}
	if to == graph.Bool {
		return e.compare(graph.DirNE, x, e.like(x, 0))
	}
	if max, ok := maxFloat8[to]; ok && e.attrBool("saturate", 1) {
		if !from.IsFloat() || from.Bits() < 16 {
			x = e.convert(x, graph.F32)
		}
		x = e.clamp(e.like(x, -max), x, e.like(x, max))
	}
	if from.IsFloat() && to.IsInt() && to.Bits() < 8 { // beyond the range the low bits count, as NumPy's types do it
		x = e.convert(x, graph.S32)
	}
	return e.convert(x, to)
}

// maxFloat8 is the largest finite value of the types whose casts saturate.
var maxFloat8 = map[graph.Dtype]float64{
	graph.F8E4M3FN: 448, graph.F8E4M3FNUZ: 240, graph.F8E5M2: 57344, graph.F8E5M2FNUZ: 57344,
}

func opCast(e *emit) {
	var code int64
	if a, ok := e.attr("to"); ok && a.Kind == attrString { // opset 1 spelled the type
		for c, name := range typeNames {
			if name == e.attrStr("to", "") {
				code = int64(c)
			}
		}
	} else {
		code = e.attrInt("to", 0)
	}
	to, err := dtypeOf(code)
	if err != nil {
		panic(bail{err})
	}
	if d, _ := e.typeOf(0); d == to {
		e.pass(0)
		return
	}
	e.set(0, e.cast(e.in(0), to))
}

// typeNames are the enumerators of TensorProto.DataType.
var typeNames = [...]string{1: "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "STRING", "BOOL", "FLOAT16", "DOUBLE", "UINT32", "UINT64"}

func opCastLike(e *emit) {
	to, _ := e.typeOf(1)
	if d, _ := e.typeOf(0); d == to {
		e.pass(0)
		return
	}
	e.set(0, e.cast(e.in(0), to))
}
