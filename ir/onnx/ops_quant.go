package onnx

import (
	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// perBlock stretches a scale or zero point to the shape of x: one for all, one an entry of axis, or one a block of entries.
func (e *emit) perBlock(s N, x []int64) N {
	if e.g.Elements(e.g.Nodes.At(s).Type) == 1 {
		return e.reshape(s)
	}
	a := e.axis(e.attrInt("axis", 1), len(x))
	block := e.attrInt("block_size", 0)
	if block == 0 {
		if e.rank(s) != 1 || e.dims(s)[0] != x[a] {
			e.fail("scale or zero point of dims %v for axis %d of %v", e.dims(s), a, x)
		}
		return e.along(s, a, len(x))
	}
	d := e.shape(s)
	if block < 0 || len(d) != len(x) || d[a] > x[a] || d[a]*block < x[a] {
		e.fail("scale or zero point of dims %v for blocks of %d along axis %d of %v", d, block, a, x)
	}
	// [… n …] → [… n, block …] → [… n·block …], cut to the size of x.
	var split, wide, whole []int64
	for i, n := range d {
		split, wide, whole = append(split, n), append(wide, n), append(whole, n)
		if i == a {
			split, wide, whole[i] = append(split, 1), append(wide, block), n*block
		}
	}
	return e.sliceDim(e.reshape(e.stretch(e.reshape(s, split...), wide), whole...), a, 0, x[a])
}

// opDequantize is (x - zero point)·scale in the type of the scale.
func opDequantize(e *emit) {
	x, scale := e.in(0), e.in(1)
	dims, d := e.shape(x), e.dtype(scale)
	to := d
	if code := e.attrInt("output_dtype", 0); code != 0 {
		var err error
		if to, err = dtypeOf(code); err != nil {
			panic(bail{err})
		}
	}
	y := e.convert(x, d)
	if d.Bits() < 32 && e.dtype(x).Bits() > 8 {
		e.refuse("%v scaled in %v", e.dtype(x), d)
	}
	if e.has(2) {
		y = e.minus(y, e.convert(e.perBlock(e.in(2), dims), d))
	}
	e.set(0, e.convert(e.mul(y, e.perBlock(scale, dims)), to))
}

// opQuantize is x/scale rounded to even, plus the zero point, saturated.
func opQuantize(e *emit) {
	x, scale := e.in(0), e.in(1)
	dims := e.shape(x)
	to := graph.U8
	if e.has(2) {
		to, _ = e.typeOf(2)
	} else if code := e.attrInt("output_dtype", 0); code != 0 {
		var err error
		if to, err = dtypeOf(code); err != nil {
			panic(bail{err})
		}
	}
	if e.dtype(x) != graph.F32 {
		x = e.convert(x, graph.F32)
	}
	y := e.div(x, e.convert(e.perBlock(scale, dims), graph.F32))
	if to.IsFloat() {
		e.set(0, e.cast(y, to))
		return
	}
	if !to.IsInt() || to.Bits() > 16 {
		e.refuse("quantizing to %v", to)
	}
	y = e.unary(graph.OpRoundEven, y)
	if e.has(2) {
		y = e.plus(y, e.convert(e.perBlock(e.in(2), dims), graph.F32))
	}
	lo, hi := intRange(to)
	e.set(0, e.convert(e.clamp(e.like(y, float64(lo)), y, e.like(y, float64(hi))), to))
}

// opDynamicQuantize finds scale and zero point from the range of x, stretched to hold 0.
func opDynamicQuantize(e *emit) {
	x := e.in(0)
	axes := make([]int64, e.rank(x))
	for i := range axes {
		axes[i] = int64(i)
	}
	zero := e.like(x, 0)
	hi := e.max(e.reduce(graph.ReduceMax, x, axes, false), zero)
	lo := e.min(e.reduce(graph.ReduceMin, x, axes, false), zero)
	scale := e.div(e.minus(hi, lo), e.like(x, 255))
	level := func(v N) N { return e.clamp(zero, v, e.like(x, 255)) }
	point := level(e.unary(graph.OpRoundEven, e.div(e.unary(graph.OpNeg, lo), scale)))
	y := level(e.plus(e.unary(graph.OpRoundEven, e.div(x, scale)), point))
	e.set(0, e.convert(y, graph.U8))
	e.set(1, scale)
	e.set(2, e.convert(point, graph.U8))
}

// opMatMulInteger multiplies 8-bit matrices, less their zero points, in s32.
func opMatMulInteger(e *emit) {
	a, b := e.convert(e.in(0), graph.S32), e.convert(e.in(1), graph.S32)
	if e.has(2) {
		z := e.convert(e.in(2), graph.S32)
		if e.rank(z) == 1 && e.dims(z)[0] > 1 { // one a row
			z = e.along(z, 0, 2)
		}
		a = e.minus(a, e.scalarOr(z))
	}
	if e.has(3) {
		b = e.minus(b, e.scalarOr(e.convert(e.in(3), graph.S32)))
	}
	e.set(0, e.matmul(a, b))
}

// scalarOr makes a scalar of a tensor of one element.
func (e *emit) scalarOr(x N) N {
	if e.g.Elements(e.g.Nodes.At(x).Type) == 1 {
		return e.reshape(x)
	}
	return x
}
