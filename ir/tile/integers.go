package tile

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Engines compute in fp32, which holds integers of up to 24 bits. Every integer value carries a range; arithmetic happens
// where operands and the exact result fit, and a result that leaves its type is wrapped by masking. 64-bit values of small
// range are stored as int32 until something needs their width. Bitwise operators work on any type of up to 32 bits.

// smallInts reports operands that fp32 holds exactly, of types that engines read.
func (l *lowering) smallInts(vs ...view) bool {
	for i := range vs {
		r := l.vals.At(vs[i].root)
		if !isSmall(r.lo, r.hi) || r.dt.Size() == 8 {
			return false
		}
	}
	return true
}

// narrowed gives a 64-bit operand of small range the storage type int32. A value of unknown range stays.
func (l *lowering) narrowed(v view) view {
	r := l.vals.At(v.root)
	if r.dt.Size() == 8 && r.lo >= math.MinInt32 && r.hi <= math.MaxInt32 {
		if r.op == vSplat {
			return l.splat(target.Int32, uint64(uint32(r.lo)), r.c0, r.lo, r.hi, v.shape())
		}
		return l.add(valueRow{op: vCopy, dt: target.Int32, lo: r.lo, hi: r.hi}, v.shape(), v)
	}
	return v
}

// intResult is alu over small operands, whose exact result lies in [lo, hi], as a value of the model's type d.
func (l *lowering) intResult(n graph.Node, d graph.Dtype, dims []int64, lo, hi int64, r valueRow, args ...view) view {
	tlo, thi := typeRange(d)
	dt, _ := machineType(d)
	if dt.Size() == 8 {
		dt = target.Int32
	}
	if !isSmall(lo, hi) {
		l.badType(n, d, "arithmetic takes values whose result fits 24 bits")
		return view{}
	}
	if lo >= tlo && hi <= thi {
		r.dt, r.lo, r.hi = dt, lo, hi
		return l.ranged(l.elem(r, dims, args...), lo, hi)
	}
	if d.Bits() > 16 {
		l.badType(n, d, "arithmetic that leaves the type is not lowered")
		return view{}
	}
	// Two's complement: the low bits, then back to the signed range.
	r.dt = target.Int32
	v := l.elem(r, dims, args...)
	mask := float32(int64(1)<<d.Bits() - 1)
	if d.Signed() {
		half := float32(-tlo)
		v = l.ts(target.AluAdd, target.Int32, dims, v, half)
		v = l.ts(target.AluBitAnd, target.Int32, dims, v, mask)
		v = l.ts(target.AluAdd, dt, dims, v, -half)
	} else {
		v = l.cast(dt, dims, l.ts(target.AluBitAnd, target.Int32, dims, v, mask))
	}
	return l.ranged(v, tlo, thi)
}

func (l *lowering) ranged(v view, lo, hi int64) view {
	if r := l.vals.At(v.root); r.op != vSplat {
		r.lo, r.hi = lo, hi
	}
	return v
}

func (l *lowering) rangeOf(v view) (lo, hi int64) {
	r := l.vals.At(v.root)
	return r.lo, r.hi
}

func (l *lowering) intUnary(n graph.Node, op graph.Op, d graph.Dtype, x view) view {
	dims := l.g.Dims(n)
	dt, _ := machineType(d)
	if op == graph.OpNot {
		if d == graph.Bool {
			return l.pred(l.ts(target.AluEqual, target.Uint8, dims, x, 0))
		}
		if d.Bits() > 32 {
			l.badType(n, d, "bitwise operators take types of up to 32 bits")
			return view{}
		}
		lo, hi := typeRange(d)
		return l.add(valueRow{op: vTS, op0: target.AluBitNot, dt: dt, lo: lo, hi: hi}, dims, x)
	}
	x = l.narrowed(x)
	lo, hi := l.rangeOf(x)
	if !l.smallInts(x) {
		l.badType(n, d, "arithmetic is exact to 24 bits only, and these values are not known to fit")
		return view{}
	}
	switch op {
	case graph.OpAbs:
		m := max(-lo, hi, 0)
		return l.intResult(n, d, dims, 0, m, valueRow{op: vTS, op0: target.AluAbs}, x)
	case graph.OpNeg:
		return l.intResult(n, d, dims, -hi, -lo, valueRow{op: vTS, op0: target.AluMult, c0: -1}, x)
	case graph.OpSign:
		return l.intResult(n, d, dims, -1, 1, valueRow{op: vAct, fn: target.ActSign, c1: 1}, x)
	case graph.OpRelu:
		return l.intResult(n, d, dims, max(lo, 0), max(hi, 0), valueRow{op: vTS, op0: target.AluMax}, x)
	}
	l.unsupported(n, "not lowered for %s", d)
	return view{}
}

func (l *lowering) intBinary(n graph.Node, op graph.Op, d graph.Dtype, a, b view) view {
	dims := l.g.Dims(n)
	dt, _ := machineType(d)
	if alu, ok := bitwiseAlus[op]; ok {
		if d.Bits() > 32 {
			l.badType(n, d, "bitwise operators take types of up to 32 bits")
			return view{}
		}
		if op == graph.OpShrLogical && d.Signed() && d.Bits() < 32 {
			// The element is shifted as it lies, without its sign.
			alu = target.AluShiftRight
		}
		lo, hi := typeRange(d)
		return l.ranged(l.bits(alu, dt, dims, l.stored(a, dt), l.stored(b, dt)), lo, hi)
	}
	if op == graph.OpMax || op == graph.OpMin {
		return l.intMinMax(n, op == graph.OpMax, d, dims, a, b)
	}
	if d == graph.Bool {
		switch op {
		case graph.OpAdd:
			return l.pred(l.tt(target.AluMax, dt, dims, a, b))
		case graph.OpMul:
			return l.pred(l.tt(target.AluMin, dt, dims, a, b))
		}
		l.unsupported(n, "not lowered for %s", d)
		return view{}
	}
	a, b = l.narrowed(a), l.narrowed(b)
	if !l.smallInts(a, b) {
		l.badType(n, d, "arithmetic is exact to 24 bits only, and these values are not known to fit")
		return view{}
	}
	alo, ahi := l.rangeOf(a)
	blo, bhi := l.rangeOf(b)
	switch op {
	case graph.OpAdd:
		return l.intResult(n, d, dims, alo+blo, ahi+bhi, ttRow(target.AluAdd, 0), a, b)
	case graph.OpSub:
		return l.intResult(n, d, dims, alo-bhi, ahi-blo, ttRow(target.AluSub, 0), a, b)
	case graph.OpMul:
		p := [4]int64{alo * blo, alo * bhi, ahi * blo, ahi * bhi}
		lo, hi := p[0], p[0]
		for _, x := range p {
			lo, hi = min(lo, x), max(hi, x)
		}
		return l.intResult(n, d, dims, lo, hi, ttRow(target.AluMult, 0), a, b)
	case graph.OpDiv, graph.OpRem:
		m := max(-alo, ahi)
		if m >= exactLimit/2 {
			break // the rounded quotient could reach the next integer
		}
		q := l.intResult(n, d, dims, -m, m, ttRow(target.AluDivide, 0), a, b)
		if op == graph.OpDiv || l.err != nil {
			return q
		}
		back := l.elem(valueRow{op: vTT, op0: target.AluMult, dt: f32}, dims, q, b)
		lo, hi := int64(0), int64(0)
		if alo < 0 {
			lo = alo
		}
		if ahi > 0 {
			hi = ahi
		}
		return l.intResult(n, d, dims, lo, hi, ttRow(target.AluSub, 0), a, back)
	}
	l.badType(n, d, "arithmetic of this operator is not lowered")
	return view{}
}

var bitwiseAlus = map[graph.Op]target.AluOp{
	graph.OpAnd: target.AluBitAnd, graph.OpOr: target.AluBitOr, graph.OpXor: target.AluBitXor,
	graph.OpShl: target.AluShiftLeft, graph.OpShrLogical: target.AluShiftRight, graph.OpShrArith: target.AluShiftRightArith,
}

// bits is a bitwise operator; tt decides whether a repeated element can be an immediate.
func (l *lowering) bits(op target.AluOp, dt target.Dtype, dims []int64, a, b view) view {
	return l.tt(op, dt, dims, a, b)
}

// intMinMax is max or min of integers: by one instruction where they are small, else by a 32-bit comparison.
func (l *lowering) intMinMax(n graph.Node, isMax bool, d graph.Dtype, dims []int64, a, b view) view {
	a, b = l.narrowed(a), l.narrowed(b)
	if l.err != nil || a.root == 0 || b.root == 0 {
		return view{}
	}
	alo, ahi := l.rangeOf(a)
	blo, bhi := l.rangeOf(b)
	lo, hi, alu, dir := min(alo, blo), min(ahi, bhi), target.AluMin, graph.DirLT
	if isMax {
		lo, hi, alu, dir = max(alo, blo), max(ahi, bhi), target.AluMax, graph.DirGT
	}
	if l.smallInts(a, b) {
		return l.intResult(n, d, dims, lo, hi, ttRow(alu, 0), a, b)
	}
	p := l.compare(n, dir, d, dims, a, b)
	if l.err != nil {
		return view{}
	}
	return l.ranged(l.sel(l.common(n, a, b), dims, p, a, b), lo, hi)
}

// convert changes the element type as XLA does: to integers by truncation, saturating; between integers by wrapping.
func (l *lowering) convert(n graph.Node, x view, from, to graph.Dtype) view {
	dims := l.g.Dims(n)
	dt, ok := machineType(to)
	if !ok {
		l.badType(n, to, "is not a type of the machine")
		return view{}
	}
	if from == to {
		return x
	}
	lo, hi := l.rangeOf(x)
	fromInt, toInt := from.IsInt() || from == graph.Bool, to.IsInt()
	switch {
	case to == graph.Bool:
		x = l.narrowed(x)
		if l.vals.At(x.root).dt.Size() == 8 {
			l.badType(n, from, "comparisons are exact to 24 bits only, and these values are not known to fit")
			return view{}
		}
		return l.pred(l.ts(target.AluNotEqual, dt, dims, x, 0))
	case fromInt && toInt:
		tlo, thi := typeRange(to)
		if lo >= tlo && hi <= thi {
			if dt.Size() == 8 {
				dt = target.Int32
				if lo < math.MinInt32 || hi > math.MaxInt32 {
					dt, _ = machineType(to)
				}
			}
			return l.ranged(l.cast(dt, dims, x), lo, hi)
		}
		if to.Bits() >= from.Bits() {
			// Only the sign is read differently; a wider type is filled with it first.
			if l.vals.At(x.root).dt.Size() < dt.Size() {
				l.badType(n, to, "widening of negative values to an unsigned type is not lowered")
				return view{}
			}
			if dt.Size() == 8 {
				return l.ranged(l.add(valueRow{op: vCopy, dt: dt, rev0: true}, dims, x), tlo, thi) // the bits as they lie
			}
			return l.ranged(l.add(valueRow{op: vTS, op0: target.AluBitOr, dt: dt}, dims, x), tlo, thi)
		}
		if l.isSplat(&x) {
			bits := uint64(lo)
			return l.splatOf(to, dt, bits, dims)
		}
		return l.ranged(l.add(valueRow{op: vCopy, dt: dt, rev0: true}, dims, x), tlo, thi)
	case toInt:
		tlo, thi := typeRange(to)
		if l.isSplat(&x) {
			c := int64(l.vals.At(x.root).c0)
			return l.splatOf(to, dt, uint64(c), dims)
		}
		return l.ranged(l.cast(dt, dims, x), tlo, thi)
	}
	if from.IsFloat() && l.vals.At(x.root).dt == dt {
		return x
	}
	if to == graph.F32 && (from == graph.BF16 || from == graph.F16) && !l.isSplat(&x) {
		return x // engines read the narrow type as what it is
	}
	if overflows[to].limit != 0 {
		return l.castOver(to, dims, x)
	}
	return l.cast(dt, dims, x)
}

// floatType is the storage type that arithmetic on a float type writes: that of the type, or float32 where engines would
// saturate; narrow converts the result. Inside an operator nothing else may store such a type.
func floatType(dt target.Dtype) target.Dtype {
	if d, ok := modelFloat(dt); ok && overflows[d].limit != 0 {
		return f32
	}
	return dt
}

// narrow gives the result of a float operator its model's type, after floatType widened it.
func (l *lowering) narrow(n graph.Node, v view) view {
	d := l.g.Dtype(n)
	if l.err != nil || v.root == 0 || overflows[d].limit == 0 || l.vals.At(v.root).dt != f32 {
		return v
	}
	return l.castOver(d, l.g.Dims(n), v)
}

// overflows says from which magnitude on a result leaves a narrow float type, and what it then is. Engines saturate, so
// arithmetic in these types is done in float32 and converted by castOver.
var overflows = map[graph.Dtype]struct {
	limit    float32
	pos, neg uint64
}{
	graph.F8E3M4:   {15.75, 0x70, 0xf0},
	graph.F8E4M3FN: {math.Nextafter32(464, 465), 0x7f, 0xff}, // 464 is the tie below the first missing value, and even
	graph.F8E5M2:   {61440, 0x7c, 0xfc},
}

// castOver converts x to a narrow float type, and writes what stands for overflow where |x| is beyond its limit.
func (l *lowering) castOver(to graph.Dtype, dims []int64, x view) view {
	dt, _ := machineType(to)
	o := overflows[to]
	if l.vals.At(x.root).dt.Size() == 8 {
		x = l.cast(f32, dims, x) // engines only move 64-bit integers
	}
	y := l.cast(dt, dims, x)
	if l.isSplat(&y) {
		return y // folded by the rules of the model
	}
	for _, o := range []struct {
		op   target.AluOp
		at   float32
		bits uint64
	}{{target.AluGE, o.limit, o.pos}, {target.AluLE, -o.limit, o.neg}} {
		p := l.pred(l.ts(o.op, target.Uint8, dims, x, o.at))
		y = l.add(valueRow{op: vSel, dt: dt}, dims, p, l.splat(dt, o.bits, 0, 0, 0, dims), y)
	}
	return y
}
