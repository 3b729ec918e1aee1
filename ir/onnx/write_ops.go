package onnx

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// plainNames are graph operators that ONNX has with the same meaning and no attributes.
var plainNames = map[graph.Op]string{
	graph.OpAbs: "Abs", graph.OpNeg: "Neg", graph.OpExp: "Exp", graph.OpLog: "Log", graph.OpSqrt: "Sqrt", graph.OpTanh: "Tanh",
	graph.OpSigmoid: "Sigmoid", graph.OpSin: "Sin", graph.OpCos: "Cos", graph.OpTan: "Tan", graph.OpErf: "Erf",
	graph.OpFloor: "Floor", graph.OpCeil: "Ceil", graph.OpRoundEven: "Round", graph.OpSign: "Sign", graph.OpRelu: "Relu",
	graph.OpGelu: "Gelu", graph.OpSoftplus: "Softplus", graph.OpMish: "Mish", graph.OpCopy: "Identity", graph.OpBarrier: "Identity",
	graph.OpAdd: "Add", graph.OpSub: "Sub", graph.OpMul: "Mul", graph.OpDiv: "Div", graph.OpMax: "Max", graph.OpMin: "Min",
	graph.OpPow: "Pow", graph.OpXor: "Xor", graph.OpSelect: "Where",
}

// write encodes one graph node.
func (w *writer) write(n graph.Node) error {
	g := w.g
	op := g.Op(n)
	var ins []string
	for _, x := range g.Operands(n) {
		ins = append(ins, w.names[x])
	}
	out := w.names[n]
	d := g.Dtype(n)
	if name, ok := plainNames[op]; ok && !(op == graph.OpXor && d != graph.Bool) {
		w.emit(out, name, ins...)
		return nil
	}
	switch op {
	case graph.OpConstant:
		return w.constant(n)
	case graph.OpIota:
		return w.iota(n)
	case graph.OpReshape, graph.OpBitcast:
		w.emitAttrs([]string{out}, "Reshape", []string{ins[0], w.vec(g.Dims(n)...)}, attrI("allowzero", 1))
	case graph.OpNot, graph.OpAnd, graph.OpOr, graph.OpXor:
		name := map[graph.Op]string{graph.OpNot: "Not", graph.OpAnd: "And", graph.OpOr: "Or", graph.OpXor: "Xor"}[op]
		if d != graph.Bool {
			name = "Bitwise" + name
		}
		w.emit(out, name, ins...)
	case graph.OpRsqrt:
		w.emit(out, "Reciprocal", w.temp("Sqrt", ins))
	case graph.OpExpm1, graph.OpLog1p:
		one, err := w.scalar(d, 1)
		if err != nil {
			return err
		}
		if op == graph.OpExpm1 {
			w.emit(out, "Sub", w.temp("Exp", ins), one)
		} else {
			w.emit(out, "Log", w.temp("Add", []string{ins[0], one}))
		}
	case graph.OpSilu:
		w.emit(out, "Mul", ins[0], w.temp("Sigmoid", ins))
	case graph.OpGeluTanh:
		w.emitAttrs([]string{out}, "Gelu", ins, attrS("approximate", "tanh"))
	case graph.OpLeakyRelu:
		w.emitAttrs([]string{out}, "LeakyRelu", ins, attrF("alpha", g.Float(n, graph.AttrAlpha, 0.01)))
	case graph.OpIsFinite:
		w.emit(out, "Not", w.temp("Or", []string{w.temp("IsNaN", ins), w.temp("IsInf", ins)}))
	case graph.OpConvert:
		code := codeOf(d)
		if code == 0 {
			return w.unsupportedType(n, d)
		}
		w.emitAttrs([]string{out}, "Cast", ins, attrI("to", code), attrI("saturate", 0))
	case graph.OpRem:
		w.emitAttrs([]string{out}, "Mod", ins, attrI("fmod", 1))
	case graph.OpShl, graph.OpShrLogical:
		if !d.IsInt() || d.Signed() {
			return w.refuse("shifts of %v", d)
		}
		dir := "LEFT"
		if op == graph.OpShrLogical {
			dir = "RIGHT"
		}
		w.emitAttrs([]string{out}, "BitShift", ins, attrS("direction", dir))
	case graph.OpCompare:
		if g.Has(n, graph.AttrTotal) {
			return w.refuse("total order")
		}
		switch dir := graph.Dir(g.Int(n, graph.AttrDirection, 0)); dir {
		case graph.DirNE:
			w.emit(out, "Not", w.temp("Equal", ins))
		default:
			w.emit(out, map[graph.Dir]string{graph.DirEQ: "Equal", graph.DirLT: "Less", graph.DirLE: "LessOrEqual",
				graph.DirGT: "Greater", graph.DirGE: "GreaterOrEqual"}[dir], ins...)
		}
	case graph.OpClamp:
		w.emit(out, "Min", w.temp("Max", []string{ins[0], ins[1]}), ins[2])
	case graph.OpDot:
		return w.dot(n, ins)
	case graph.OpConv:
		return w.conv(n, ins)
	case graph.OpReduce:
		return w.reduce(n, ins)
	case graph.OpReduceWindow, graph.OpAvgPool:
		return w.pool(n, ins)
	case graph.OpArgMax, graph.OpArgMin:
		name := "ArgMax"
		if op == graph.OpArgMin {
			name = "ArgMin"
		}
		t := w.temp(name, ins, attrI("axis", g.Int(n, graph.AttrDim, 0)), attrI("keepdims", 0), attrI("select_last_index", g.Int(n, graph.AttrSelectLast, 0)))
		w.emitAttrs([]string{out}, "Cast", []string{t}, attrI("to", codeOf(d)))
	case graph.OpCumSum:
		w.emitAttrs([]string{out}, "CumSum", []string{ins[0], w.vec(g.Int(n, graph.AttrDim, 0))},
			attrI("exclusive", g.Int(n, graph.AttrExclusive, 0)), attrI("reverse", g.Int(n, graph.AttrReverse, 0)))
	case graph.OpTopK:
		a, b := w.unique(g.NodeName(n)+"/values"), w.unique(g.NodeName(n)+"/indices")
		w.emitAttrs([]string{a, b}, "TopK", []string{ins[0], w.vec(g.Int(n, graph.AttrK, 0))}, attrI("largest", g.Int(n, graph.AttrLargest, 1)))
		w.pairs[n] = [2]string{a, b}
	case graph.OpGetTupleElement:
		pair, ok := w.pairs[g.Operands(n)[0]]
		if !ok {
			return w.refuse("an element of a tuple")
		}
		w.emitAttrs([]string{out}, "Cast", []string{pair[g.Int(n, graph.AttrIndex, 0)&1]}, attrI("to", codeOf(d)))
	case graph.OpBatchNormInference:
		if g.Int(n, graph.AttrFeature, 0) != 1 {
			return w.refuse("features in dimension %d", g.Int(n, graph.AttrFeature, 0))
		}
		w.emitAttrs([]string{out}, "BatchNormalization", ins, attrF("epsilon", g.Float(n, graph.AttrEpsilon, 0)))
	case graph.OpLRN:
		w.emitAttrs([]string{out}, "LRN", ins, attrI("size", g.Int(n, graph.AttrSize, 0)), attrF("alpha", g.Float(n, graph.AttrAlpha, 0)),
			attrF("beta", g.Float(n, graph.AttrBeta, 0)), attrF("bias", g.Float(n, graph.AttrBias, 0)))
	default:
		if op.Class() == graph.ClassMove {
			return w.move(n, ins)
		}
		return w.refuse("ONNX has no such operator")
	}
	return nil
}

func (w *writer) iota(n graph.Node) error {
	g := w.g
	d, dims, dim := g.Dtype(n), g.Dims(n), g.Int(n, graph.AttrDim, 0)
	if codeOf(d) == 0 {
		return w.unsupportedType(n, d)
	}
	scalar := func(v int64) (string, error) { return w.scalar(graph.S64, float64(v)) }
	var lim [3]string
	for i, v := range []int64{0, dims[dim], 1} {
		var err error
		if lim[i], err = scalar(v); err != nil {
			return err
		}
	}
	line := w.temp("Cast", []string{w.temp("Range", lim[:])}, attrI("to", codeOf(d)))
	shape := make([]int64, len(dims))
	for i := range shape {
		shape[i] = 1
	}
	shape[dim] = dims[dim]
	line = w.temp("Reshape", []string{line, w.vec(shape...)}, attrI("allowzero", 1))
	w.emit(w.names[n], "Expand", line, w.vec(dims...))
	return nil
}

func (w *writer) move(n graph.Node, ins []string) error {
	g := w.g
	out, dims := w.names[n], g.Dims(n)
	ones := func(v int64, k int) []int64 { return slices.Repeat([]int64{v}, k) }
	switch g.Op(n) {
	case graph.OpBroadcast:
		shape := ones(1, len(dims))
		at := g.IntList(n, graph.AttrDims)
		have := g.Dims(g.Operands(n)[0])
		for i, r := range at {
			shape[r] = have[i]
		}
		if !slices.IsSorted(at) {
			return w.refuse("broadcast dimensions %v out of order", at)
		}
		x := w.temp("Reshape", []string{ins[0], w.vec(shape...)}, attrI("allowzero", 1))
		w.emit(out, "Expand", x, w.vec(dims...))
	case graph.OpTranspose:
		w.emitAttrs([]string{out}, "Transpose", ins, attrL("perm", g.IntList(n, graph.AttrDims)))
	case graph.OpSlice:
		axes := make([]int64, len(dims))
		for i := range axes {
			axes[i] = int64(i)
		}
		step := g.IntList(n, graph.AttrStride)
		if len(step) == 0 {
			step = ones(1, len(dims))
		}
		w.emit(out, "Slice", ins[0], w.vec(g.IntList(n, graph.AttrStart)...), w.vec(g.IntList(n, graph.AttrLimit)...), w.vec(axes...), w.vec(step...))
	case graph.OpReverse:
		axes := g.IntList(n, graph.AttrDims)
		k := len(axes)
		w.emit(out, "Slice", ins[0], w.vec(ones(-1, k)...), w.vec(ones(-graph.MaxElements, k)...), w.vec(axes...), w.vec(ones(-1, k)...))
	case graph.OpConcat:
		w.emitAttrs([]string{out}, "Concat", ins, attrI("axis", g.Int(n, graph.AttrDim, 0)))
	case graph.OpPad:
		for _, v := range g.IntList(n, graph.AttrInterior) {
			if v != 0 {
				return w.refuse("padding between elements")
			}
		}
		pads := append(slices.Clone(g.IntList(n, graph.AttrLow)), g.IntList(n, graph.AttrHigh)...)
		w.emit(out, "Pad", ins[0], w.vec(pads...), ins[1])
	case graph.OpTake:
		w.emitAttrs([]string{out}, "Gather", ins, attrI("axis", g.Int(n, graph.AttrDim, 0)))
	case graph.OpTakeAlong:
		w.emitAttrs([]string{out}, "GatherElements", ins, attrI("axis", g.Int(n, graph.AttrDim, 0)))
	default:
		return w.refuse("ONNX has no such operator")
	}
	return nil
}

// dot is MatMul where the dimensions are already in its order, else Einsum.
func (w *writer) dot(n graph.Node, ins []string) error {
	g := w.g
	x, y := g.Operands(n)[0], g.Operands(n)[1]
	if d := g.Dtype(n); d != g.Dtype(x) || d != g.Dtype(y) {
		if codeOf(d) == 0 {
			return w.unsupportedType(n, d)
		}
		for i := range ins {
			ins[i] = w.temp("Cast", ins[i:i+1], attrI("to", codeOf(d)))
		}
	}
	lb, lc := g.IntList(n, graph.AttrLhsBatch), g.IntList(n, graph.AttrLhsContract)
	rb, rc := g.IntList(n, graph.AttrRhsBatch), g.IntList(n, graph.AttrRhsContract)
	lr, rr := len(g.Dims(x)), len(g.Dims(y))
	b := len(lb)
	leading := func(l []int64) bool {
		for i, d := range l {
			if d != int64(i) {
				return false
			}
		}
		return true
	}
	if len(lc) == 1 && leading(lb) && leading(rb) && lc[0] == int64(lr-1) && rc[0] == int64(b) && rr == b+2 && (b == 0 || lr == b+2) {
		w.emit(w.names[n], "MatMul", ins...)
		return nil
	}
	if lr+rr > 52 {
		return w.refuse("operands of rank %d and %d", lr, rr)
	}
	letter := func(i int) byte { return "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[i] }
	ls, rs := make([]byte, lr), make([]byte, rr)
	for i := range ls {
		ls[i] = letter(i)
	}
	for i := range rs {
		rs[i] = letter(lr + i)
	}
	var res []byte
	for i := range lb {
		rs[rb[i]] = ls[lb[i]]
		res = append(res, ls[lb[i]])
	}
	for i := range lc {
		rs[rc[i]] = ls[lc[i]]
	}
	free := func(s []byte, batch, contract []int64) {
		for i, c := range s {
			if !slices.Contains(batch, int64(i)) && !slices.Contains(contract, int64(i)) {
				res = append(res, c)
			}
		}
	}
	free(ls, lb, lc)
	free(rs, rb, rc)
	w.emitAttrs([]string{w.names[n]}, "Einsum", ins, attrS("equation", string(ls)+","+string(rs)+"->"+string(res)))
	return nil
}

// conv transposes operands and result to the layout of ONNX where they have another.
func (w *writer) conv(n graph.Node, ins []string) error {
	g := w.g
	rank := len(g.Dims(n))
	labels := g.IntList(n, graph.AttrDimLabels)
	if g.Int(n, graph.AttrBatchGroups, 1) != 1 || rank < 3 || len(labels) != 3*rank {
		return w.refuse("batch groups, or less than one spatial dimension")
	}
	ws, ok := g.Windows(n, rank-2)
	if !ok {
		return w.refuse("its window")
	}
	lhs, rhs, res := slices.Clone(labels[:rank]), slices.Clone(labels[rank:2*rank]), labels[2*rank:]
	rhs[0], rhs[1] = rhs[1], rhs[0] // output features first
	order := func(x string, perm []int64) string {
		if isIdentity(perm) {
			return x
		}
		return w.temp("Transpose", []string{x}, attrL("perm", perm))
	}
	x, k := order(ins[0], lhs), order(ins[1], rhs)
	var strides, dil, low, high []int64
	crop := false // Conv cannot
	var flip []int64
	for i, v := range ws {
		if v.LhsDilate != 1 {
			return w.refuse("zeros between the elements of the input")
		}
		if v.Reverse {
			flip = append(flip, int64(i+2))
		}
		crop = crop || v.PadLow < 0 || v.PadHigh < 0
		strides, dil = append(strides, v.Stride), append(dil, v.RhsDilate)
		low, high = append(low, v.PadLow), append(high, v.PadHigh)
	}
	if crop {
		zero, err := w.scalar(g.Dtype(g.Operands(n)[0]), 0)
		if err != nil {
			return err
		}
		pads := append(append(append([]int64{0, 0}, low...), 0, 0), high...)
		x = w.temp("Pad", []string{x, w.vec(pads...), zero})
		clear(low)
		clear(high)
	}
	if len(flip) > 0 {
		m := slices.Repeat([]int64{-1}, len(flip))
		k = w.temp("Slice", []string{k, w.vec(m...), w.vec(slices.Repeat([]int64{-graph.MaxElements}, len(flip))...), w.vec(flip...), w.vec(m...)})
	}
	attrs := [][]byte{attrL("strides", strides), attrL("dilations", dil), attrL("pads", append(low, high...)), attrI("group", g.Int(n, graph.AttrGroups, 1))}
	if isIdentity(res) {
		w.emitAttrs([]string{w.names[n]}, "Conv", []string{x, k}, attrs...)
		return nil
	}
	y := w.temp("Conv", []string{x, k}, attrs...)
	back := make([]int64, rank)
	for i, d := range res {
		back[d] = int64(i)
	}
	w.emitAttrs([]string{w.names[n]}, "Transpose", []string{y}, attrL("perm", back))
	return nil
}

func isIdentity(perm []int64) bool {
	for i, p := range perm {
		if p != int64(i) {
			return false
		}
	}
	return true
}

var reduceNames = map[graph.ReduceKind]string{
	graph.ReduceSum: "ReduceSum", graph.ReduceMax: "ReduceMax", graph.ReduceMin: "ReduceMin", graph.ReduceProd: "ReduceProd",
	graph.ReduceAnd: "ReduceMin", graph.ReduceOr: "ReduceMax",
}

// isIdentityInit reports an initial value that changes nothing.
func (w *writer) isIdentityInit(init graph.Node, kind graph.ReduceKind) bool {
	g := w.g
	k := g.Nodes.At(init).Const
	if k == 0 || g.Consts.At(k).Kind != graph.ConstSplat {
		return false
	}
	want, ok := kind.Identity(g.Dtype(init))
	return ok && want == g.Consts.At(k).Bits
}

func (w *writer) reduce(n graph.Node, ins []string) error {
	g := w.g
	kind := graph.KindOf(g, n)
	name, ok := reduceNames[kind]
	if !ok || len(ins) != 2 || (kind == graph.ReduceAnd || kind == graph.ReduceOr) && g.Dtype(n) != graph.Bool {
		return w.refuse("its combining computation")
	}
	if !w.isIdentityInit(g.Operands(n)[1], kind) {
		return w.refuse("an initial value that is not the identity")
	}
	w.emitAttrs([]string{w.names[n]}, name, []string{ins[0], w.vec(g.IntList(n, graph.AttrDims)...)}, attrI("keepdims", 0), attrI("noop_with_empty_axes", 1))
	return nil
}

// pool is MaxPool or AveragePool, over all dimensions but the first two.
func (w *writer) pool(n graph.Node, ins []string) error {
	g := w.g
	rank := len(g.Dims(n))
	ws, ok := g.Windows(n, rank)
	one := graph.Window{Size: 1, Stride: 1, LhsDilate: 1, RhsDilate: 1}
	if !ok || rank < 3 || ws[0] != one || ws[1] != one {
		return w.refuse("a window over the first two dimensions")
	}
	var size, strides, dil, low, high []int64
	area := int64(1)
	for _, v := range ws[2:] {
		if v.LhsDilate != 1 || v.PadLow < 0 || v.PadHigh < 0 || v.Reverse {
			return w.refuse("cropping, or zeros between the elements of the input")
		}
		size, strides, dil = append(size, v.Size), append(strides, v.Stride), append(dil, v.RhsDilate)
		low, high = append(low, v.PadLow), append(high, v.PadHigh)
		area *= v.Size
	}
	attrs := [][]byte{attrL("kernel_shape", size), attrL("strides", strides), attrL("dilations", dil), attrL("pads", append(low, high...))}
	if g.Op(n) == graph.OpAvgPool {
		w.emitAttrs([]string{w.names[n]}, "AveragePool", ins, append(attrs, attrI("count_include_pad", g.Int(n, graph.AttrCountPad, 0)))...)
		return nil
	}
	kind := graph.KindOf(g, n)
	if len(ins) != 2 || kind != graph.ReduceMax && kind != graph.ReduceSum || !w.isIdentityInit(g.Operands(n)[1], kind) {
		return w.refuse("windows combined by %v", kind)
	}
	if kind == graph.ReduceMax {
		w.emitAttrs([]string{w.names[n]}, "MaxPool", ins[:1], attrs...)
		return nil
	}
	count, err := w.scalar(g.Dtype(n), float64(area))
	if err != nil {
		return err
	}
	w.emit(w.names[n], "Mul", w.temp("AveragePool", ins[:1], append(attrs, attrI("count_include_pad", 1))...), count)
	return nil
}
