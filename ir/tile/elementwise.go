package tile

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Elementwise operators become one or a few values, each of which is one engine instruction a tile.

const f32 = target.Float32

// act is fn(x·scale + bias).
func (l *lowering) act(fn target.ActFunc, dt target.Dtype, dims []int64, x view, scale, bias float32) view {
	return l.elem(valueRow{op: vAct, fn: fn, dt: dt, c1: scale, c0: bias}, dims, x)
}

// ts is x op c.
func (l *lowering) ts(op target.AluOp, dt target.Dtype, dims []int64, x view, c float32) view {
	return l.elem(valueRow{op: vTS, op0: op, c0: c, dt: dt}, dims, x)
}

// ts2 is (x op0 c0) op1 c1.
func (l *lowering) ts2(op0 target.AluOp, c0 float32, op1 target.AluOp, c1 float32, dt target.Dtype, dims []int64, x view) view {
	return l.elem(valueRow{op: vTS, op0: op0, c0: c0, op1: op1, c1: c1, dt: dt}, dims, x)
}

// tt is a op b; a repeated element becomes an immediate.
func (l *lowering) tt(op target.AluOp, dt target.Dtype, dims []int64, a, b view) view {
	return l.elem(ttRow(op, dt), dims, a, b)
}

func ttRow(op target.AluOp, dt target.Dtype) valueRow { return valueRow{op: vTT, op0: op, dt: dt} }

func (l *lowering) cast(dt target.Dtype, dims []int64, x view) view {
	return l.elem(valueRow{op: vCopy, dt: dt}, dims, x)
}

// elem adds an elementwise value. Repeated elements become immediates, and an operator on nothing else is computed here.
func (l *lowering) elem(r valueRow, dims []int64, args ...view) view {
	splats := 0
	for i := range args {
		if l.isSplat(&args[i]) {
			splats++
		}
	}
	if splats == len(args) && splats > 0 {
		if f, ok := l.fold(&r, args); ok {
			if r.dt.IsInteger() {
				x := int64(f)
				return l.splat(r.dt, encodeInt(r.dt, x), f, x, x, dims)
			}
			bits := encode32(r.dt, f)
			return l.splat(r.dt, bits, round32(r.dt, f), 0, 0, dims)
		}
	}
	if r.op == vTT && splats == 1 {
		i := 0
		if l.isSplat(&args[1]) {
			i = 1
		}
		s := l.vals.At(args[i].root)
		if !r.op0.Bitwise() || s.c0 >= 0 && s.lo == s.hi && s.lo <= exactLimit {
			r.op, r.c0, r.rev0 = vTS, s.c0, i == 0
			return l.add(r, dims, args[1-i])
		}
	}
	return l.add(r, dims, args...)
}

// unaryActs are the functions that one Activation computes.
var unaryActs = [graph.NumOps]target.ActFunc{
	graph.OpExp: target.ActExp, graph.OpLog: target.ActLn, graph.OpSqrt: target.ActSqrt, graph.OpRsqrt: target.ActRsqrt,
	graph.OpTanh: target.ActTanh, graph.OpSigmoid: target.ActSigmoid, graph.OpSin: target.ActSin, graph.OpErf: target.ActErf,
	graph.OpSign: target.ActSign, graph.OpRelu: target.ActRelu, graph.OpGelu: target.ActGelu,
	graph.OpGeluTanh: target.ActGeluApprxTanh, graph.OpSilu: target.ActSilu, graph.OpSoftplus: target.ActSoftplus,
	graph.OpMish: target.ActMish,
}

func (l *lowering) unary(n graph.Node) view {
	g := l.g
	op, dims := g.Op(n), g.Dims(n)
	x := l.in(n, 0)
	from := g.Dtype(g.Operands(n)[0])
	switch op {
	case graph.OpCopy, graph.OpBarrier:
		return x
	case graph.OpConvert:
		return l.convert(n, x, from, g.Dtype(n))
	case graph.OpBitcastConvert:
		to, ok := machineType(g.Dtype(n))
		if !ok || from.Bits() != g.Dtype(n).Bits() || from.Bits() > 32 {
			l.unsupported(n, "only between types of one width, up to 32 bits")
			return view{}
		}
		lo, hi := typeRange(g.Dtype(n))
		whole, _ := machineType(from)
		return l.add(valueRow{op: vTS, op0: target.AluBitOr, dt: to, lo: lo, hi: hi}, dims, l.stored(x, whole))
	}
	if from == graph.Bool || from.IsInt() {
		return l.intUnary(n, op, from, x)
	}
	dt, ok := machineType(from)
	if !ok {
		l.badType(n, from, "is not a type of the machine")
		return view{}
	}
	dt = floatType(dt)
	if fn := unaryActs[op]; fn != 0 {
		return l.act(fn, dt, dims, x, 1, 0)
	}
	switch op {
	case graph.OpAbs:
		return l.ts(target.AluAbs, dt, dims, x, 0)
	case graph.OpNeg:
		return l.ts(target.AluMult, dt, dims, x, -1)
	case graph.OpIsFinite:
		r := l.act(target.ActIsFinite, target.Uint8, dims, x, 1, 0)
		l.vals.At(r.root).hi = 1
		return r
	case graph.OpExpm1:
		// 2·tanh(x/2)·(eˣ+1)/2 keeps the small values that eˣ-1 cancels.
		t := l.act(target.ActTanh, f32, dims, x, 0.5, 0)
		e := l.act(target.ActExp, f32, dims, x, 1, 0)
		big := l.ts(target.AluAdd, f32, dims, e, -1)
		small := l.tt(target.AluMult, f32, dims, t, l.ts(target.AluAdd, f32, dims, e, 1))
		near := l.pred(l.ts2(target.AluAbs, 0, target.AluLT, 0.5, target.Uint8, dims, x))
		return l.elem(valueRow{op: vSel, dt: dt}, dims, near, small, big)
	case graph.OpLog1p:
		return l.act(target.ActLn, dt, dims, x, 1, 1)
	case graph.OpCbrt:
		r := l.act(target.ActLn, f32, dims, l.ts(target.AluAbs, f32, dims, x, 0), 1, 0)
		r = l.act(target.ActExp, f32, dims, r, float32(1.0/3), 0)
		return l.tt(target.AluMult, dt, dims, r, l.act(target.ActSign, f32, dims, x, 1, 0))
	case graph.OpCos:
		return l.cosine(dt, dims, x)
	case graph.OpTan:
		return l.tt(target.AluDivide, dt, dims, l.act(target.ActSin, f32, dims, x, 1, 0), l.cosine(f32, dims, x))
	case graph.OpFloor:
		return l.floor(dt, dims, x)
	case graph.OpCeil:
		m := l.ts(target.AluMult, f32, dims, x, -1)
		return l.ts(target.AluMult, dt, dims, l.floor(f32, dims, m), -1)
	case graph.OpRoundEven:
		return l.roundEven(dt, dims, x)
	case graph.OpRoundAway:
		// Half a unit below one half would round up when added; the largest float below one half does not.
		a := l.ts2(target.AluAbs, 0, target.AluAdd, math.Float32frombits(0x3effffff), f32, dims, x)
		a = l.floor(f32, dims, a)
		return l.tt(target.AluMult, dt, dims, a, l.act(target.ActSign, f32, dims, x, 1, 0))
	case graph.OpLeakyRelu:
		return l.elem(valueRow{op: vAct, fn: target.ActLrelu, dt: dt, c1: 1, c2: float32(g.Float(n, graph.AttrAlpha, 0.01))}, dims, x)
	case graph.OpReducePrecision:
		e, m := g.Int(n, graph.AttrExponent, 8), g.Int(n, graph.AttrMantissa, 23)
		switch {
		case e == 8 && m == 23, e == 8 && m == 7 && dt == target.BFloat16:
			return x
		case e == 8 && m == 7:
			return l.cast(dt, dims, l.cast(target.BFloat16, dims, x))
		case e == 5 && m == 10:
			return l.cast(dt, dims, l.cast(target.Float16, dims, x))
		}
	}
	l.unsupported(n, "not lowered for %s", from)
	return view{}
}

// pred marks a truth value.
func (l *lowering) pred(v view) view {
	r := l.vals.At(v.root)
	r.lo, r.hi = 0, 1
	if r.op == vSplat {
		r.lo = int64(r.c0)
		r.hi = r.lo
	}
	return v
}

// cosine is 1 - 2·sin²(x/2), which needs no addition to a large x.
func (l *lowering) cosine(dt target.Dtype, dims []int64, x view) view {
	s := l.act(target.ActSin, f32, dims, x, 0.5, 0)
	return l.ts2(target.AluMult, -2, target.AluAdd, 1, dt, dims, l.tt(target.AluMult, f32, dims, s, s))
}

// floor is x - (x mod 1), where mod is floored; infinities, whose remainder is not a number, stay.
func (l *lowering) floor(dt target.Dtype, dims []int64, x view) view {
	r := l.tt(target.AluSub, f32, dims, x, l.ts(target.AluMod, f32, dims, x, 1))
	return l.whenLarge(dt, dims, x, r)
}

// roundEven adds and takes away 1.5·2²³, which leaves the integer nearest to x.
func (l *lowering) roundEven(dt target.Dtype, dims []int64, x view) view {
	const magic = 12582912
	r := l.ts2(target.AluAdd, magic, target.AluAdd, -magic, f32, dims, x)
	return l.whenLarge(dt, dims, x, r)
}

// whenLarge is r where |x| < 2²², else x, which is an integer, infinite or not a number.
func (l *lowering) whenLarge(dt target.Dtype, dims []int64, x, r view) view {
	p := l.pred(l.ts2(target.AluAbs, 0, target.AluLT, 1<<22, target.Uint8, dims, x))
	return l.elem(valueRow{op: vSel, dt: dt}, dims, p, r, x)
}

// binaryAlus are the float operators that one tensor-tensor instruction computes.
var binaryAlus = [graph.NumOps]target.AluOp{
	graph.OpAdd: target.AluAdd, graph.OpSub: target.AluSub, graph.OpMul: target.AluMult, graph.OpDiv: target.AluDivide,
	graph.OpMax: target.AluMax, graph.OpMin: target.AluMin, graph.OpPow: target.AluPow,
}

var compareAlus = [...]target.AluOp{
	graph.DirEQ: target.AluEqual, graph.DirNE: target.AluNotEqual, graph.DirLT: target.AluLT, graph.DirLE: target.AluLE,
	graph.DirGT: target.AluGT, graph.DirGE: target.AluGE,
}

func (l *lowering) binary(n graph.Node) view {
	g := l.g
	op, dims := g.Op(n), g.Dims(n)
	a, b := l.in(n, 0), l.in(n, 1)
	from := g.Dtype(g.Operands(n)[0])
	dt, ok := machineType(from)
	if !ok {
		l.badType(n, from, "is not a type of the machine")
		return view{}
	}
	if op == graph.OpCompare {
		if g.Int(n, graph.AttrTotal, 0) != 0 && from.IsFloat() {
			l.unsupported(n, "total order is not lowered")
			return view{}
		}
		return l.compare(n, graph.Dir(g.Int(n, graph.AttrDirection, 0)), from, dims, a, b)
	}
	if !from.IsFloat() {
		return l.intBinary(n, op, from, a, b)
	}
	dt = floatType(dt)
	if alu := binaryAlus[op]; alu != 0 {
		return l.tt(alu, dt, dims, a, b)
	}
	if op == graph.OpRem {
		// The remainder of magnitudes with the sign of the dividend: floored mod has the divisor's.
		r := l.tt(target.AluMod, f32, dims, l.ts(target.AluAbs, f32, dims, a, 0), l.ts(target.AluAbs, f32, dims, b, 0))
		return l.tt(target.AluMult, dt, dims, r, l.act(target.ActSign, f32, dims, a, 1, 0))
	}
	l.unsupported(n, "not lowered for %s", from)
	return view{}
}

func (l *lowering) compare(n graph.Node, dir graph.Dir, from graph.Dtype, dims []int64, a, b view) view {
	alu := compareAlus[dir]
	if from.IsFloat() || l.smallInts(a, b) {
		return l.pred(l.tt(alu, target.Uint8, dims, a, b))
	}
	if from.Bits() != 32 {
		l.badType(n, from, "comparisons are exact to 24 bits only, and these values are not known to fit")
		return view{}
	}
	a, b = l.stored(a, l.vals.At(b.root).dt), l.stored(b, l.vals.At(a.root).dt)
	dt := l.vals.At(a.root).dt
	if dir == graph.DirEQ || dir == graph.DirNE {
		x := l.tt(target.AluBitXor, dt, dims, a, b)
		return l.pred(l.ts(alu, target.Uint8, dims, x, 0))
	}
	// The upper halves decide, and the lower ones where those are equal.
	shift := target.AluShiftRight
	if from.Signed() {
		shift = target.AluShiftRightArith
	}
	half := func(v view) (hi, lo view) {
		return l.ts(shift, dt, dims, v, 16), l.ts(target.AluBitAnd, dt, dims, v, 0xffff)
	}
	ah, al := half(a)
	bh, bl := half(b)
	strict := target.AluLT
	if dir == graph.DirGT || dir == graph.DirGE {
		strict = target.AluGT
	}
	p := l.tt(target.AluMult, target.Uint8, dims, l.tt(target.AluEqual, target.Uint8, dims, ah, bh), l.tt(alu, target.Uint8, dims, al, bl))
	return l.pred(l.tt(target.AluMax, target.Uint8, dims, l.tt(strict, target.Uint8, dims, ah, bh), p))
}

func (l *lowering) ternary(n graph.Node) view {
	g := l.g
	dims := g.Dims(n)
	wide := func(v view) view {
		if len(dims) > 0 && v.n == 0 {
			return v.broadcast(nil, dims)
		}
		return v
	}
	if g.Op(n) == graph.OpSelect {
		p, t, f := wide(l.in(n, 0)), l.in(n, 1), l.in(n, 2)
		if l.isSplat(&p) {
			if l.vals.At(p.root).c0 != 0 {
				return t
			}
			return f
		}
		return l.sel(l.common(n, t, f), dims, p, t, f)
	}
	from := g.Dtype(n)
	lo, x, hi := wide(l.in(n, 0)), l.in(n, 1), wide(l.in(n, 2))
	if !from.IsFloat() {
		return l.intMinMax(n, false, from, dims, l.intMinMax(n, true, from, dims, lo, x), hi)
	}
	dt := floatType(l.typeOf(n))
	if l.isSplat(&lo) && l.isSplat(&hi) {
		return l.ts2(target.AluMax, l.vals.At(lo.root).c0, target.AluMin, l.vals.At(hi.root).c0, dt, dims, x)
	}
	return l.tt(target.AluMin, dt, dims, l.tt(target.AluMax, dt, dims, lo, x), hi)
}

// sel is p ? t : f.
func (l *lowering) sel(dt target.Dtype, dims []int64, p, t, f view) view {
	t, f = l.stored(t, dt), l.stored(f, dt)
	a, b := l.vals.At(t.root), l.vals.At(f.root)
	return l.add(valueRow{op: vSel, dt: dt, lo: min(a.lo, b.lo), hi: max(a.hi, b.hi)}, dims, p, t, f)
}
