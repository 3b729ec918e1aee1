package onnx

import (
	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// reduceAxes are the axes of a Reduce operator, an attribute before opset 13 (ReduceSum) or 18 (the others) and input 1 since;
// none means all, unless the node says none. ok is false when nothing is reduced.
func (e *emit) reduceAxes(rank int) (axes []int64, ok bool) {
	l, given := e.list("axes", 1)
	if !given || len(l) == 0 {
		if e.attrBool("noop_with_empty_axes", 0) {
			return nil, false
		}
		for i := range rank {
			axes = append(axes, int64(i))
		}
		return axes, true
	}
	return e.axes(l, rank), true
}

// opReduce applies before to each element (nil: nothing), combines, and applies after.
func opReduce(kind graph.ReduceKind, before, after func(e *emit, x N) N) handler {
	return func(e *emit) {
		x := e.in(0)
		axes, some := e.reduceAxes(e.rank(x))
		if before != nil {
			x = before(e, x)
		}
		if some {
			x = e.reduceAs(kind, x, axes, e.attrBool("keepdims", 1))
		}
		if after != nil {
			x = after(e, x)
		}
		if x == e.in(0) {
			e.pass(0)
			return
		}
		e.set(0, x)
	}
}

// reduceAs reduces; largest and smallest of bool are or and and.
func (e *emit) reduceAs(kind graph.ReduceKind, x N, axes []int64, keep bool) N {
	if e.dtype(x) == graph.Bool {
		switch kind {
		case graph.ReduceMax:
			kind = graph.ReduceOr
		case graph.ReduceMin:
			kind = graph.ReduceAnd
		}
	}
	return e.reduce(kind, x, axes, keep)
}

func square(e *emit, x N) N { return e.mul(x, x) }
func abs(e *emit, x N) N    { return e.unary(graph.OpAbs, x) }
func logOf(e *emit, x N) N  { return e.log(x) }

// sqrtOf also takes integers, whose root is truncated.
func sqrtOf(e *emit, x N) N {
	if d := e.dtype(x); d.IsInt() {
		return e.convert(e.unary(graph.OpSqrt, e.convert(x, graph.F32)), d)
	}
	return e.unary(graph.OpSqrt, x)
}

func opReduceMean(e *emit) {
	x := e.in(0)
	axes, some := e.reduceAxes(e.rank(x))
	if !some || len(axes) == 0 {
		e.pass(0)
		return
	}
	e.set(0, e.mean(x, axes, e.attrBool("keepdims", 1)))
}

// opReduceLogSumExp subtracts the largest element first. Where that is infinite it subtracts 0, so that -∞ stays -∞.
func opReduceLogSumExp(e *emit) {
	x := e.in(0)
	axes, some := e.reduceAxes(e.rank(x))
	if !some || len(axes) == 0 {
		e.pass(0)
		return
	}
	m := e.reduce(graph.ReduceMax, x, axes, true)
	m = e.sel(e.unary(graph.OpIsFinite, m), m, e.splat(e.dtype(m), e.shape(m), 0))
	s := e.reduce(graph.ReduceSum, e.exp(e.minus(x, m)), axes, true)
	y := e.plus(e.log(s), m)
	if !e.attrBool("keepdims", 1) {
		var out []int64
		for i, d := range e.dims(x) {
			if len(axes) > 0 && axes[0] == int64(i) {
				axes = axes[1:]
			} else {
				out = append(out, d)
			}
		}
		y = e.reshape(y, out...)
	}
	e.set(0, y)
}

func opArg(op graph.Op) handler {
	return func(e *emit) {
		x := e.in(0)
		e.needRank(x, 1)
		a := e.axis(e.attrInt("axis", 0), e.rank(x))
		last := int64(0)
		if e.attrBool("select_last_index", 0) {
			last = 1
		}
		y := e.add(op, e.g.Tensor(graph.S64), []N{x}, e.g.IntsAttr(graph.AttrDim, int64(a)), e.g.IntsAttr(graph.AttrSelectLast, last))
		if e.attrBool("keepdims", 1) {
			dims := e.shape(x)
			dims[a] = 1
			y = e.reshape(y, dims...)
		}
		e.set(0, y)
	}
}

func opCumSum(e *emit) {
	x := e.in(0)
	a := e.axis(e.int(1), e.rank(x))
	e.set(0, e.ok(e.b.CumSum(x, a, e.attrBool("exclusive", 0), e.attrBool("reverse", 0))))
}

// opTopK brings the axis to the end, where the graph's operator works.
func opTopK(e *emit) {
	x := e.in(0)
	e.needRank(x, 1)
	rank := e.rank(x)
	var k int64
	if e.ver < 10 {
		k = e.attrInt("k", -1)
	} else {
		k = e.int(1)
	}
	a := e.axis(e.attrInt("axis", -1), rank)
	if k < 0 || k > e.dims(x)[a] {
		e.fail("k is %d for dimension %d of %v", k, a, e.dims(x))
	}
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(i)
	}
	perm[a], perm[rank-1] = perm[rank-1], perm[a]
	x = e.transpose(x, perm...)
	v, i := e.b.TopK(x, k, e.attrBool("largest", 1), graph.S64)
	e.set(0, e.transpose(e.ok(v), perm...))
	e.set(1, e.transpose(e.ok(i), perm...))
}

// softmaxDims are the dimensions over which a softmax runs: one since opset 13, all from axis on before.
func (e *emit) softmaxDims(x N) []int64 {
	def := int64(-1)
	if e.ver < 13 {
		def = 1
	}
	if e.rank(x) == 0 {
		e.fail("a scalar input")
	}
	if a := e.attrInt("axis", def); e.ver < 13 && a == int64(e.rank(x)) {
		return nil
	}
	_, given := e.attr("axis")
	last := e.r.opt.Lenient && !given
	if last {
		def = -1
	}
	a := int64(e.axis(e.attrInt("axis", def), e.rank(x)))
	if e.ver >= 13 || last {
		return []int64{a}
	}
	var l []int64
	for ; a < int64(e.rank(x)); a++ {
		l = append(l, a)
	}
	return l
}

func opSoftmax(e *emit) {
	x := e.in(0)
	e.set(0, e.softmax(x, e.softmaxDims(x)))
}

// softmax is exp(x - max) / sum. Narrow floats are computed in fp32.
func (e *emit) softmax(x N, dims []int64) N {
	x, d := e.upcast(x)
	t := e.exp(e.minus(x, e.reduce(graph.ReduceMax, x, dims, true)))
	return e.convert(e.div(t, e.reduce(graph.ReduceSum, t, dims, true)), d)
}

func opLogSoftmax(e *emit) {
	x, d := e.upcast(e.in(0))
	dims := e.softmaxDims(x)
	s := e.minus(x, e.reduce(graph.ReduceMax, x, dims, true))
	y := e.minus(s, e.log(e.reduce(graph.ReduceSum, e.exp(s), dims, true)))
	e.set(0, e.convert(y, d))
}

// opHardmax is 1 at the first largest element, else 0.
func opHardmax(e *emit) {
	x := e.in(0)
	dims := e.softmaxDims(x)
	shape := e.shape(x)
	if len(dims) == 0 {
		e.set(0, e.splat(e.dtype(x), shape, 1))
		return
	}
	flat := e.reshape(x, product(shape[:dims[0]]), product(shape[dims[0]:dims[len(dims)-1]+1]), product(shape[dims[len(dims)-1]+1:]))
	f := e.shape(flat)
	at := e.add(graph.OpArgMax, e.g.Tensor(graph.S64), []N{flat}, e.g.IntsAttr(graph.AttrDim, 1))
	hit := e.compare(graph.DirEQ, e.iota(graph.S64, f, 1), e.reshape(at, f[0], 1, f[2]))
	e.set(0, e.reshape(e.convert(hit, e.dtype(x)), shape...))
}
