package onnx

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// window is what Conv and the pools have in common, one entry a spatial dimension.
func (e *emit) window(kernel, spatial []int64) (ws []graph.Window, auto string) {
	list := func(name string, def int64, n int) []int64 {
		l := e.attrInts(name)
		if l == nil {
			l = make([]int64, n)
			for i := range l {
				l[i] = def
			}
		}
		if len(l) != n {
			e.fail("%s %v for %d spatial dimensions", name, l, n)
		}
		for _, v := range l {
			if v < def || v > graph.MaxElements { // strides and dilations at least 1, pads at least 0
				e.fail("%s %v", name, l)
			}
		}
		return l
	}
	n := len(spatial)
	strides, dil := list("strides", 1, n), list("dilations", 1, n)
	pads := make([]int64, 2*n)
	auto = e.attrStr("auto_pad", "NOTSET")
	switch auto {
	case "NOTSET", "":
		pads = list("pads", 0, 2*n)
	case "VALID", "SAME_UPPER", "SAME_LOWER":
	default:
		e.fail("auto_pad %q", auto)
	}
	ws = make([]graph.Window, n)
	for i := range ws {
		if kernel[i] < 1 || kernel[i] > graph.MaxElements || kernel[i] > 1 && dil[i] > graph.MaxElements/kernel[i] {
			e.fail("kernel %v, dilations %v", kernel, dil)
		}
		ws[i] = graph.Window{Size: kernel[i], Stride: strides[i], PadLow: pads[i], PadHigh: pads[n+i], LhsDilate: 1, RhsDilate: dil[i]}
	}
	return ws, auto
}

// span is the input elements that one window covers.
func span(w graph.Window) int64 { return (w.Size-1)*w.RhsDilate + 1 }

// samePads gives the padding for ⌈size/stride⌉ windows, the odd one at the end or at the start.
func samePads(ws []graph.Window, spatial []int64, auto string) {
	if auto != "SAME_UPPER" && auto != "SAME_LOWER" {
		return
	}
	for i := range ws {
		w := &ws[i]
		out := (spatial[i] + w.Stride - 1) / w.Stride
		total := max((out-1)*w.Stride+span(*w)-spatial[i], 0)
		w.PadLow = total / 2
		if auto == "SAME_LOWER" {
			w.PadLow = total - total/2
		}
		w.PadHigh = total - w.PadLow
	}
}

// kernelShape is the spatial shape of the weights, which the attribute may only repeat.
func (e *emit) kernelShape(w N) []int64 {
	k := e.dims(w)[2:]
	if l := e.attrInts("kernel_shape"); l != nil && !slices.Equal(l, k) {
		e.fail("kernel_shape %v, the weights have dims %v", l, e.dims(w))
	}
	return k
}

func opConv(e *emit) {
	x, w := e.in(0), e.in(1)
	e.needRank(x, 3)
	if e.rank(w) != e.rank(x) {
		e.fail("weights of dims %v for input dims %v", e.dims(w), e.dims(x))
	}
	ws, auto := e.window(e.kernelShape(w), e.dims(x)[2:])
	samePads(ws, e.dims(x)[2:], auto)
	y := e.ok(e.b.Conv(x, w, ws, e.attrInt("group", 1)))
	if e.has(2) {
		y = e.plus(y, e.along(e.in(2), 1, e.rank(y)))
	}
	e.set(0, y)
}

// opConvTranspose is a convolution of the input with stride-1 zeros between its elements, with the kernel reversed and its two
// channel dimensions exchanged.
func opConvTranspose(e *emit) {
	x, w := e.in(0), e.in(1)
	e.needRank(x, 3)
	if e.rank(w) != e.rank(x) {
		e.fail("weights of dims %v for input dims %v", e.dims(w), e.dims(x))
	}
	spatial := e.dims(x)[2:]
	n := len(spatial)
	ws, auto := e.window(e.kernelShape(w), spatial)
	extra := e.attrInts("output_padding")
	if extra == nil {
		extra = make([]int64, n)
	}
	shape := e.attrInts("output_shape")
	if len(shape) == n+2 {
		shape = shape[2:]
	}
	if len(extra) != n || shape != nil && len(shape) != n {
		e.fail("output_padding %v, output_shape %v for %d spatial dimensions", extra, shape, n)
	}
	for i := range ws {
		v := &ws[i]
		if extra[i] < 0 || extra[i] > graph.MaxElements {
			e.fail("output_padding %v", extra)
		}
		full := v.Stride*(spatial[i]-1) + extra[i] + span(*v)
		size := int64(-1)
		switch {
		case shape != nil:
			size = shape[i]
		case auto == "SAME_UPPER" || auto == "SAME_LOWER":
			size = spatial[i] * v.Stride
		}
		if size >= 0 {
			total := full - size
			v.PadLow = total - total/2
			if auto == "SAME_UPPER" {
				v.PadLow = total / 2
			}
			if total < 0 { // larger than the kernel reaches: zeros at the end
				v.PadLow = 0
			}
			v.PadHigh = total - v.PadLow
		}
		v.LhsDilate, v.Stride = v.Stride, 1
		v.PadLow, v.PadHigh = span(*v)-1-v.PadLow, span(*v)-1-v.PadHigh+extra[i]
		v.Reverse = true
	}
	group := e.attrInt("group", 1)
	d := e.shape(w)
	if group < 1 || d[0]%group != 0 || d[0] != e.dims(x)[1] {
		e.fail("weights of dims %v in %d groups for input dims %v", d, group, e.dims(x))
	}
	// [g·c, m, k…] → [g·m, c, k…]
	split := append([]int64{group, d[0] / group, d[1]}, d[2:]...)
	perm := []int64{0, 2, 1}
	for i := range n {
		perm = append(perm, int64(i+3))
	}
	w = e.reshape(e.transpose(e.reshape(w, split...), perm...), append([]int64{group * d[1], d[0] / group}, d[2:]...)...)
	y := e.ok(e.b.Conv(x, w, ws, group))
	if e.has(2) {
		y = e.plus(y, e.along(e.in(2), 1, e.rank(y)))
	}
	e.set(0, y)
}

// poolWindow is the window of a pool over all dimensions of x, and by how much ceil_mode lengthens the end of each.
func (e *emit) poolWindow(x N) (ws []graph.Window, ceil []int64) {
	e.needRank(x, 3)
	spatial := e.dims(x)[2:]
	kernel := e.attrInts("kernel_shape")
	if len(kernel) != len(spatial) {
		e.fail("kernel_shape %v for input dims %v", kernel, e.dims(x))
	}
	sp, auto := e.window(kernel, spatial)
	samePads(sp, spatial, auto)
	ceil = make([]int64, len(sp)+2)
	if e.attrBool("ceil_mode", 0) && (auto == "NOTSET" || auto == "") {
		for i, w := range sp {
			room := spatial[i] + w.PadLow + w.PadHigh - span(w)
			if room < 0 {
				continue
			}
			out := (room+w.Stride-1)/w.Stride + 1
			if (out-1)*w.Stride >= spatial[i]+w.PadLow { // the last window would start in the padding
				out--
			}
			ceil[i+2] = max((out-1)*w.Stride+span(w)-(spatial[i]+w.PadLow+w.PadHigh), 0)
		}
	}
	one := graph.Window{Size: 1, Stride: 1, LhsDilate: 1, RhsDilate: 1}
	return append([]graph.Window{one, one}, sp...), ceil
}

func opMaxPool(e *emit) {
	x := e.in(0)
	ws, ceil := e.poolWindow(x)
	for i := range ws {
		ws[i].PadHigh += ceil[i]
	}
	e.set(0, e.ok(e.b.ReduceWindow(graph.ReduceMax, x, ws)))
}

// opAveragePool: the elements that ceil_mode adds are never counted, declared padding is when the node says so; with both,
// the declared padding becomes elements.
func opAveragePool(e *emit) {
	x := e.in(0)
	ws, ceil := e.poolWindow(x)
	count := e.attrBool("count_include_pad", 0)
	if count && !allZero(ceil) {
		low, high := make([]int64, len(ws)), make([]int64, len(ws))
		for i := range ws {
			low[i], high[i] = ws[i].PadLow, ws[i].PadHigh
			ws[i].PadLow, ws[i].PadHigh = 0, 0
		}
		x, count = e.pad(x, e.like(x, 0), low, high), false
	}
	for i := range ws {
		ws[i].PadHigh += ceil[i]
	}
	e.set(0, e.ok(e.b.AvgPool(x, ws, count)))
}

func spatialAxes(rank int) []int64 {
	var l []int64
	for i := 2; i < rank; i++ {
		l = append(l, int64(i))
	}
	return l
}

func opGlobalAveragePool(e *emit) {
	x := e.in(0)
	e.needRank(x, 3)
	e.set(0, e.mean(x, spatialAxes(e.rank(x)), true))
}

func opGlobalMaxPool(e *emit) {
	x := e.in(0)
	e.needRank(x, 3)
	e.set(0, e.reduce(graph.ReduceMax, x, spatialAxes(e.rank(x)), true))
}

func opLRN(e *emit) {
	e.set(0, e.ok(e.b.LRN(e.in(0), e.attrInt("size", 0), e.attrFloat("alpha", 0.0001), e.attrFloat("beta", 0.75), e.attrFloat("bias", 1))))
}

// opGemm is alpha·A'·B' + beta·C, transposes folded into the contraction.
func opGemm(e *emit) {
	a, b := e.in(0), e.in(1)
	if e.rank(a) != 2 || e.rank(b) != 2 {
		e.fail("operands of dims %v and %v, expected matrices", e.dims(a), e.dims(b))
	}
	ca, cb := int64(1), int64(0)
	if e.attrBool("transA", 0) {
		ca = 0
	}
	if e.attrBool("transB", 0) {
		cb = 1
	}
	y := e.dot(a, b, nil, nil, []int64{ca}, []int64{cb})
	if alpha := e.attrFloat("alpha", 1); alpha != 1 {
		y = e.mul(y, e.like(y, alpha))
	}
	if beta := e.attrFloat("beta", 1); e.has(2) && beta != 0 {
		c := e.in(2)
		if beta != 1 {
			c = e.mul(c, e.like(c, beta))
		}
		y = e.plus(y, e.stretch(c, e.dims(y)))
	}
	e.set(0, y)
}

func (e *emit) dot(x, y N, xb, yb, xc, yc []int64) N {
	return e.ok(e.b.Dot(x, y, xb, yb, xc, yc))
}

func (e *emit) matmul(x, y N) N { return e.ok(e.b.MatMul(x, y)) }

func opMatMul(e *emit) { e.set(0, e.matmul(e.in(0), e.in(1))) }

// opFusedMatMul of ONNX Runtime: alpha·A'·B'.
func opFusedMatMul(e *emit) {
	x, y := e.in(0), e.in(1)
	if e.attrBool("transBatchA", 0) || e.attrBool("transBatchB", 0) {
		e.refuse("transposed batch dimensions")
	}
	swap := func(x N) N {
		e.needRank(x, 2)
		perm := make([]int64, e.rank(x))
		for i := range perm {
			perm[i] = int64(i)
		}
		perm[len(perm)-1], perm[len(perm)-2] = perm[len(perm)-2], perm[len(perm)-1]
		return e.transpose(x, perm...)
	}
	if e.attrBool("transA", 0) {
		x = swap(x)
	}
	if e.attrBool("transB", 0) {
		y = swap(y)
	}
	z := e.matmul(x, y)
	if alpha := e.attrFloat("alpha", 1); alpha != 1 {
		z = e.mul(z, e.like(z, alpha))
	}
	e.set(0, z)
}

func opBatchNorm(e *emit) {
	x := e.in(0)
	e.needRank(x, 2)
	if e.ver >= 14 && e.attrBool("training_mode", 0) || e.ver < 7 && !e.attrBool("is_test", 0) && e.wants(1) {
		e.refuse("training mode")
	}
	if !e.attrBool("spatial", 1) {
		e.refuse("spatial = 0")
	}
	d := e.dtype(x)
	ins := []N{x}
	for i := 1; i < 5; i++ {
		v := e.in(i)
		if e.rank(v) != 1 || e.dims(v)[0] != e.dims(x)[1] {
			e.fail("input %d has dims %v for input dims %v", i, e.dims(v), e.dims(x))
		}
		ins = append(ins, e.convert(v, d))
	}
	e.set(0, e.ok(e.b.BatchNorm(ins[0], ins[1], ins[2], ins[3], ins[4], 1, e.attrFloat("epsilon", 1e-5))))
}

// normalise is (x - mean)/√(variance + eps) over dims, and the mean and the inverse deviation.
func (e *emit) normalise(x N, dims []int64, eps float64) (y, mean, inv N) {
	mean = e.mean(x, dims, true)
	c := e.minus(x, mean)
	inv = e.unary(graph.OpRsqrt, e.plus(e.mean(e.mul(c, c), dims, true), e.like(x, eps)))
	return e.mul(c, inv), mean, inv
}

func opInstanceNorm(e *emit) {
	x := e.in(0)
	e.needRank(x, 3)
	r := e.rank(x)
	y, _, _ := e.normalise(x, spatialAxes(r), e.attrFloat("epsilon", 1e-5))
	y = e.mul(y, e.along(e.in(1), 1, r))
	e.set(0, e.plus(y, e.along(e.in(2), 1, r)))
}

// opGroupNorm scales a channel since opset 21, a group before.
func opGroupNorm(e *emit) {
	x := e.in(0)
	e.needRank(x, 2)
	shape, groups := e.shape(x), e.attrInt("num_groups", 0)
	if groups < 1 || shape[1]%groups != 0 {
		e.fail("%d groups of %d channels", groups, shape[1])
	}
	split := append([]int64{shape[0], groups, shape[1] / groups}, shape[2:]...)
	g, d := e.upcast(e.reshape(x, split...))
	y, _, _ := e.normalise(g, spatialAxes(len(split)), e.attrFloat("epsilon", 1e-5))
	y = e.convert(y, d)
	if e.ver < 21 {
		y = e.mul(y, e.along(e.in(1), 1, len(split)))
		y = e.plus(y, e.along(e.in(2), 1, len(split)))
		e.set(0, e.reshape(y, shape...))
		return
	}
	y = e.mul(e.reshape(y, shape...), e.along(e.in(1), 1, len(shape)))
	e.set(0, e.plus(y, e.along(e.in(2), 1, len(shape))))
}

// from lists the dimensions from axis to the last.
func (e *emit) from(axis int64, rank int) []int64 {
	var l []int64
	for a := e.axis(axis, rank); a < rank; a++ {
		l = append(l, int64(a))
	}
	return l
}

// layerNorm computes in fp32 where the input is narrower (stash_type 1, the default and only useful value).
func (e *emit) layerNorm(x, scale, bias N, axis int64, eps float64) (y, mean, inv N) {
	e.needRank(x, 1)
	dims := e.from(axis, e.rank(x))
	xf, d := e.upcast(x)
	y, mean, inv = e.normalise(xf, dims, eps)
	y = e.convert(y, d)
	if scale != 0 {
		y = e.mul(y, scale)
	}
	if bias != 0 {
		y = e.plus(y, bias)
	}
	return y, mean, inv
}

func (e *emit) optional(i int) N {
	if e.has(i) {
		return e.in(i)
	}
	return 0
}

func opLayerNorm(e *emit) {
	y, mean, inv := e.layerNorm(e.in(0), e.optional(1), e.optional(2), e.attrInt("axis", -1), e.attrFloat("epsilon", 1e-5))
	e.set(0, y)
	e.set(1, mean)
	e.set(2, inv)
}

// rmsNorm is x/√(mean(x²) + eps) · scale, and the inverse root.
func (e *emit) rmsNorm(x, scale N, axis int64, eps float64) (y, inv N) {
	e.needRank(x, 1)
	dims := e.from(axis, e.rank(x))
	xf, d := e.upcast(x)
	inv = e.unary(graph.OpRsqrt, e.plus(e.mean(e.mul(xf, xf), dims, true), e.like(xf, eps)))
	y = e.convert(e.mul(xf, inv), d)
	if scale != 0 {
		y = e.mul(y, scale)
	}
	return y, inv
}

// opRMSNorm is also ONNX Runtime's SimplifiedLayerNormalization, whose second result is the inverse root.
func opRMSNorm(e *emit) {
	y, inv := e.rmsNorm(e.in(0), e.optional(1), e.attrInt("axis", -1), e.attrFloat("epsilon", 1e-5))
	e.set(0, y)
	e.set(1, inv)
}

// opLenient takes an operator outside the standard only from a lenient reader.
func opLenient(h handler) handler {
	return func(e *emit) {
		if !e.r.opt.Lenient {
			e.refuse("an operator outside the standard")
		}
		h(e)
	}
}

// opSkipNorm of ONNX Runtime normalises x + skip + bias over the last dimension; result 3 is that sum.
func opSkipNorm(rms bool) handler {
	return func(e *emit) {
		x := e.plus(e.in(0), e.in(1))
		eps := e.attrFloat("epsilon", 1e-12)
		if rms {
			if e.has(3) {
				x = e.plus(x, e.in(3))
			}
			y, inv := e.rmsNorm(x, e.in(2), -1, eps)
			e.set(0, y)
			e.set(2, inv)
		} else {
			if e.has(4) {
				x = e.plus(x, e.in(4))
			}
			y, mean, inv := e.layerNorm(x, e.in(2), e.optional(3), -1, eps)
			e.set(0, y)
			e.set(1, mean)
			e.set(2, inv)
		}
		e.set(3, x)
	}
}

func opMeanVarianceNorm(e *emit) {
	x := e.in(0)
	axes := e.attrInts("axes")
	if axes == nil {
		axes = []int64{0, 2, 3}
	}
	axes = e.axes(axes, e.rank(x))
	c := e.minus(x, e.mean(x, axes, true))
	dev := e.unary(graph.OpSqrt, e.mean(e.mul(c, c), axes, true))
	e.set(0, e.div(c, e.plus(dev, e.like(x, 1e-9))))
}

func opLpNorm(e *emit) {
	x := e.in(0)
	e.needRank(x, 1)
	a := []int64{int64(e.axis(e.attrInt("axis", -1), e.rank(x)))}
	switch p := e.attrInt("p", 2); p {
	case 1:
		e.set(0, e.div(x, e.reduce(graph.ReduceSum, abs(e, x), a, true)))
	case 2:
		e.set(0, e.div(x, e.unary(graph.OpSqrt, e.reduce(graph.ReduceSum, e.mul(x, x), a, true))))
	default:
		e.fail("p is %d", p)
	}
}
