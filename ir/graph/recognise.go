package graph

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// customCall replaces a custom call of the Neuron compiler that has a plain meaning; 0 for any other.
//
//	AwsNeuronGelu x                   x·Φ(x)
//	AwsNeuronGeluApprxTanh x          gelu by tanh
//	AwsNeuronGeluBackward x           its derivative Φ(x) + x·φ(x)
//	AwsNeuronSilu x                   x·sigmoid(x)
//	AwsNeuronSoftmax x                softmax over the dimension in backend_config
//	AwsNeuronRmsNorm x, γ, ε          x/√(mean(x²)+ε)·γ over the dimension in backend_config
func (w *rewriter) customCall(n Node, refs []ref) Node {
	g, d := w.src, w.dst
	ins := make([]Node, len(refs))
	for i, r := range refs {
		if r&tupleRef != 0 {
			return 0
		}
		ins[i] = Node(r)
	}
	if len(ins) == 0 || w.typeOf(n) != d.Nodes.At(ins[0]).Type || !d.Dtype(ins[0]).IsFloat() {
		return 0
	}
	x := ins[0]
	b := NewBuilder(d, w.comp)
	b.Label = w.nameOf(g.Nodes.At(n).Name)
	dim, err := strconv.ParseInt(strings.Trim(g.Str(n, AttrBackend), `" `), 10, 32)
	hasDim := err == nil && dim >= 0 && dim < int64(len(d.Dims(x)))
	var y Node
	switch target := g.Str(n, AttrTarget); {
	case target == "AwsNeuronGelu" && len(ins) == 1:
		y = b.Unary(OpGelu, x)
	case target == "AwsNeuronGeluApprxTanh" && len(ins) == 1:
		y = b.Unary(OpGeluTanh, x)
	case target == "AwsNeuronSilu" && len(ins) == 1:
		y = b.Unary(OpSilu, x)
	case target == "AwsNeuronGeluBackward" && len(ins) == 1:
		cdf := b.Mul(b.Add(b.Unary(OpErf, b.Mul(x, b.Like(x, math.Sqrt2/2))), b.Like(x, 1)), b.Like(x, 0.5))
		pdf := b.Mul(b.Unary(OpExp, b.Mul(b.Mul(x, x), b.Like(x, -0.5))), b.Like(x, 1/math.Sqrt(2*math.Pi)))
		y = b.Add(cdf, b.Mul(x, pdf))
	case target == "AwsNeuronSoftmax" && len(ins) == 1 && hasDim:
		y = b.Softmax(x, dim)
	case target == "AwsNeuronRmsNorm" && len(ins) == 3 && hasDim && len(d.Dims(ins[1])) == 1 && len(d.Dims(ins[2])) == 0:
		mean := b.Mean(b.Mul(x, x), dim)
		r := b.Unary(OpRsqrt, b.Add(mean, b.Convert(ins[2], d.Dtype(x))))
		rest := slices.Delete([]int64{0, 1, 2, 3, 4, 5, 6, 7}[:max(len(d.Dims(x)), 1)], int(dim), int(dim)+1)
		y = b.Mul(x, b.Broadcast(r, rest, d.Dims(x)))
		y = b.Mul(y, b.Broadcast(b.Convert(ins[1], d.Dtype(x)), []int64{dim}, d.Dims(x)))
	default:
		return 0
	}
	if b.Err() != nil {
		return 0 // left for the one who refuses it by name
	}
	return y
}

// argReduce replaces a reduction of (values, their positions) by the larger (smaller) value, with the lower position among
// equals and NaN above all, by a plain reduction and an argmax; 0, 0 for any other node.
func (w *rewriter) argReduce(m Node) (value, index Node) {
	d := w.dst
	if d.Op(m) != OpReduce || len(d.Operands(m)) != 4 || len(d.Calls(m)) != 1 || len(d.IntList(m, AttrDims)) != 1 {
		return 0, 0
	}
	ins, dim := slices.Clone(d.Operands(m)), int(d.IntList(m, AttrDims)[0])
	largest, ok := ArgReducer(d, d.Calls(m)[0])
	if !ok || !positions(d, ins[1], dim) || d.Dims(ins[0])[dim] == 0 {
		return 0, 0
	}
	kind, op := ReduceMax, OpArgMax
	if !largest {
		kind, op = ReduceMin, OpArgMin
	}
	want, known := kind.Identity(d.Dtype(ins[0]))
	init, isConst := w.splat(ins[2])
	zero, isZero := w.splat(ins[3])
	if !known || !isConst || init != want || !isZero || zero != 0 {
		return 0, 0
	}
	elems := slices.Clone(d.Elems(d.Nodes.At(m).Type))
	name := d.Nodes.At(m).Name
	at := d.IntsAttr(AttrDims, int64(dim))
	value = d.AddNode(w.comp, OpReduce, elems[0], name, []Node{ins[0], ins[2]}, at, d.IntsAttr(AttrKind, int64(kind)))
	index = d.AddNode(w.comp, op, elems[1], name, []Node{ins[0]}, d.IntsAttr(AttrDim, int64(dim)), d.IntsAttr(AttrSelectLast, 0))
	return w.settle(value), w.settle(index)
}

// positions reports a tensor whose elements are their own index along dim.
func positions(g *Graph, n Node, dim int) bool {
	for {
		dims := g.Dims(n)
		switch ins := g.Operands(n); g.Op(n) {
		case OpIota:
			return g.Int(n, AttrDim, -1) == int64(dim)
		case OpBroadcast:
			k := slices.Index(g.IntList(n, AttrDims), int64(dim))
			if k < 0 {
				return dims[dim] <= 1
			}
			n, dim = ins[0], k
		case OpReshape:
			from := g.Dims(ins[0])
			if len(from) != 1 || from[0] != dims[dim] {
				return false
			}
			n, dim = ins[0], 0
		case OpConstant:
			v, ok := ConstValue(g, n)
			if !ok || !v.Dtype.IsInt() {
				return false
			}
			stride := rowMajor(dims)[dim]
			for i := range v.Len() {
				if indexAt(v, i) != int64(i)/stride%dims[dim] {
					return false
				}
			}
			return true
		default:
			return false
		}
	}
}

// ArgReducer recognises the computation of (value, index, value, index) that keeps the larger (largest) or smaller value
// and its index, the lower index among equals (of two NaN, either), NaN before everything.
//
// It is proven by trial: a computation of compares of like parameters, logic and selects alone depends only on how the two
// values and the two indices are ordered, and every such order is tried.
func ArgReducer(g *Graph, c Comp) (largest, ok bool) {
	ps, root := g.Params(c), g.Comps.At(c).Root
	if len(ps) != 4 || g.Op(root) != OpTuple || len(g.Operands(root)) != 2 {
		return false, false
	}
	vd, id := g.Dtype(ps[0]), g.Dtype(ps[1])
	if !(vd.IsFloat() || vd.IsInt()) || !id.IsInt() || g.Dtype(ps[2]) != vd || g.Dtype(ps[3]) != id {
		return false, false
	}
	row := g.Comps.At(c)
	for i := range row.Count {
		n := row.First + Node(i)
		ins := g.Operands(n)
		switch g.Op(n) {
		case OpParameter, OpTuple, OpSelect:
		case OpAnd, OpOr, OpXor, OpNot:
			if g.Dtype(n) != Bool {
				return false, false
			}
		case OpConstant:
			if g.Dtype(n) != Bool {
				return false, false
			}
		case OpCompare:
			if g.Op(ins[0]) != OpParameter || g.Op(ins[1]) != OpParameter || g.Int(ins[0], AttrIndex, 0)%2 != g.Int(ins[1], AttrIndex, 0)%2 {
				return false, false
			}
		default:
			return false, false
		}
	}
	values := []float64{1, 2}
	if vd.IsFloat() {
		values = append(values, math.NaN())
	}
	var lanes [4][]float64
	for _, v := range values {
		for _, w := range values {
			for _, i := range []float64{3, 5} {
				for _, j := range []float64{3, 5} {
					for k, x := range []float64{v, i, w, j} {
						lanes[k] = append(lanes[k], x)
					}
				}
			}
		}
	}
	n := int64(len(lanes[0]))
	args := make([]Tensor, 4)
	for k := range args {
		args[k] = TensorOf([]Dtype{vd, id, vd, id}[k], []int64{n}, lanes[k]...)
	}
	var in Interp
	r := &run{in: &in, g: g, lanes: &in.lanes, limit: DefaultMaxMemory, plans: make([]*plan, g.Comps.Len())}
	out, err := r.lift(root, c, args, n)
	if err != nil || out[0].Dtype != vd || out[1].Dtype != id {
		return false, false
	}
	agrees := func(largest bool) bool {
		for k := range int(n) {
			v, i, w, j := args[0].Float(k), lanes[1][k], args[2].Float(k), lanes[3][k]
			first := v > w == largest && v != w
			switch {
			case v != v && w != w: // either index: XLA leaves the order of combining open
				first = out[1].Float(k) == i
			case v != v || w != w:
				first = v != v
			case v == w:
				first = i < j
			}
			want, at := w, j
			if first {
				want, at = v, i
			}
			if got := out[0].Float(k); got != want && !(got != got && want != want) || out[1].Float(k) != at {
				return false
			}
		}
		return true
	}
	if agrees(true) {
		return true, true
	}
	return false, agrees(false)
}
