package onnx

import (
	"math"
	"slices"
	"sort"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// N is a node of the graph being built.
type N = graph.Node

// handler spells one ONNX operator in operators of the graph: it reads inputs and attributes of e and sets its results. It
// leaves by panic(bail) when the node cannot be expressed; see emit.fail.
type handler func(e *emit)

// emit is one ONNX node on its way into a graph, which is the model's or, for constant folding, a scratch graph. Its methods
// are the vocabulary of the operators' functions; none returns after an error.
type emit struct {
	r     *reader
	g     *graph.Graph
	comp  graph.Comp
	b     *graph.Builder
	n     *nodeRow
	frame *frame
	op    string // as messages name the operator
	label string
	ver   int64 // opset version of the operator's domain
	ins   []value
	outs  []value
	nodes []N // of ins, in a scratch graph
	begin N   // first node of this emission

	replace []N // scatters that need a replacing computation
}

// start opens the builder. Nodes are labelled with the first result of the ONNX node.
func (e *emit) start() {
	e.b = graph.NewBuilder(e.g, e.comp)
	e.begin = N(e.g.Nodes.Len())
	if e.g != e.r.g || e.n == nil {
		return
	}
	for _, o := range e.r.m.lists.Of(e.n.Outs) {
		if e.b.Label = o; o != 0 {
			break
		}
	}
	if e.frame.prefix != "" {
		e.b.SetLabel(e.frame.prefix + e.g.Names.String(e.b.Label))
	}
}

// Errors.

func (e *emit) where() string {
	if e.n == nil {
		return e.label
	}
	return e.r.nodeLabel(e.n)
}

// fail reports a model that is wrong.
func (e *emit) fail(format string, args ...any) {
	panic(bail{target.Errorf(target.User, "onnx: node %q (%s): "+format, append([]any{e.where(), e.op}, args...)...)})
}

// refuse reports a form of the operator that is right and not taken.
func (e *emit) refuse(format string, args ...any) {
	panic(bail{target.NotSupported(e.op, "onnx: node %q: %s: "+format, append([]any{e.where(), e.op}, args...)...)})
}

// ok passes on a node that the builder made and leaves with the builder's error if it made none.
func (e *emit) ok(n N) N {
	if n == 0 {
		err := e.b.Err()
		c := target.ClassOf(err)
		panic(bail{target.Errorf(c, "onnx: node %q (%s): %w", e.where(), e.op, err)})
	}
	return n
}

// Inputs.

func (e *emit) has(i int) bool { return i < len(e.ins) && e.ins[i] != (value{}) }

func (e *emit) value(i int) value {
	if !e.has(i) {
		e.fail("input %d is missing", i)
	}
	if m := e.ins[i].missing; m != 0 {
		panic(bail{e.r.missing[m-1]})
	}
	return e.ins[i]
}

// in is the node of input i.
func (e *emit) in(i int) N {
	v := e.value(i)
	if e.g == e.r.g {
		return e.node(v)
	}
	if e.nodes == nil {
		e.nodes = make([]N, len(e.ins))
	}
	if e.nodes[i] == 0 {
		k := e.r.konsts[v.konst]
		k.blob, k.name = false, 0
		e.nodes[i] = addConstant(e.g, e.comp, &k)
	}
	return e.nodes[i]
}

// node is the node of a value in the model's graph.
func (e *emit) node(v value) N {
	if v.missing != 0 {
		panic(bail{e.r.missing[v.missing-1]})
	}
	if v.node != 0 {
		return v.node
	}
	return e.r.materialise(v.konst)
}

// typeOf is the element type and shape of input i, without making a node of it.
func (e *emit) typeOf(i int) (graph.Dtype, []int64) {
	v := e.value(i)
	if v.node != 0 {
		return e.r.g.Dtype(v.node), e.r.g.Dims(v.node)
	}
	k := &e.r.konsts[v.konst]
	return k.dtype, k.dims
}

// known is the constant behind input i, or nil.
func (e *emit) known(i int) *konst {
	if v := e.value(i); v.konst != 0 {
		return &e.r.konsts[v.konst]
	}
	return nil
}

// ints are the integers of input i, which must be known; their order is row-major.
func (e *emit) ints(i int) []int64 {
	k := e.known(i)
	if k == nil {
		err := target.NotSupported(e.op, "onnx: node %q: %s: input %d must be known when the model is read, and it is computed from %v",
			e.where(), e.op, i, e.r.sources(e.ins[i].node))
		panic(bail{&NeedsValueError{Inputs: e.r.sources(e.ins[i].node), Err: err}})
	}
	l, ok := k.ints()
	if !ok {
		e.fail("input %d (%v%v) is not a short list of integers", i, k.dtype, k.dims)
	}
	return l
}

// int is the only integer of input i, which must be known.
func (e *emit) int(i int) int64 {
	l := e.ints(i)
	if len(l) != 1 {
		e.fail("input %d has %d elements, expected 1", i, len(l))
	}
	return l[0]
}

// float is the only element of input i, with ok false when it is not known.
func (e *emit) float(i int) (v float64, ok bool) {
	k := e.known(i)
	if k == nil || !k.splat {
		return 0, false
	}
	if n, _ := elements(k.dims); n != 1 || !k.dtype.IsFloat() && !k.dtype.IsInt() {
		return 0, false
	}
	return graph.DecodeFloat(k.dtype, k.bits), true
}

// sources lists the parameters from which a node is computed, in the order of the graph.
func (r *reader) sources(n N) []string {
	seen := map[N]bool{n: true}
	stack := []N{n}
	var params []N
	for len(stack) > 0 && len(seen) < 1<<20 {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if r.g.Op(x) == graph.OpParameter {
			params = append(params, x)
		}
		for _, y := range r.g.Operands(x) {
			if !seen[y] {
				seen[y] = true
				stack = append(stack, y)
			}
		}
	}
	slices.Sort(params)
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = r.g.NodeName(p)
	}
	return names
}

// Results.

// set makes x the result number i; results that the node does not name are dropped.
func (e *emit) set(i int, x N) {
	if i < len(e.outs) {
		e.outs[i] = value{node: x}
	}
}

// setKonst makes a constant the result number i.
func (e *emit) setKonst(i int, k konst) {
	if i < len(e.outs) {
		e.outs[i] = e.r.addKonst(k)
	}
}

// pass makes input i the result 0.
func (e *emit) pass(i int) {
	v := e.value(i)
	if e.g == e.r.g || v.konst != 0 {
		e.outs[0] = v
		return
	}
	e.set(0, e.in(i))
}

// wants reports whether the node names result i.
func (e *emit) wants(i int) bool {
	outs := e.r.m.lists.Of(e.n.Outs)
	return i < len(outs) && outs[i] != 0
}

// Attributes.

func (e *emit) attr(name string) (attrRow, bool) {
	id, ok := e.r.g.Names.Lookup(name)
	if !ok {
		return attrRow{}, false
	}
	a, ok := findAttr(e.r.m.attrs.Of(e.n.Attrs), id)
	if ok && a.Ref != 0 {
		return findAttr(e.frame.attrs, a.Ref)
	}
	return a, ok
}

func (e *emit) typedAttr(name string, kind int32) (attrRow, bool) {
	a, ok := e.attr(name)
	if ok && a.Kind != kind {
		e.fail("attribute %s has type %d, expected %d", name, a.Kind, kind)
	}
	return a, ok
}

func (e *emit) attrInt(name string, def int64) int64 {
	if a, ok := e.typedAttr(name, attrInt); ok {
		return int64(a.Num)
	}
	return def
}

func (e *emit) attrBool(name string, def int64) bool { return e.attrInt(name, def) != 0 }

func (e *emit) attrFloat(name string, def float64) float64 {
	if a, ok := e.typedAttr(name, attrFloat); ok {
		return float64(math.Float32frombits(uint32(a.Num)))
	}
	return def
}

func (e *emit) attrStr(name, def string) string {
	if a, ok := e.typedAttr(name, attrString); ok {
		return string(e.r.m.text(a.Str))
	}
	return def
}

// attrInts is an integer list, nil when absent.
func (e *emit) attrInts(name string) []int64 {
	if a, ok := e.typedAttr(name, attrInts); ok {
		return append([]int64{}, e.r.m.ints.Of(a.List)...)
	}
	return nil
}

// list is an integer list that older opsets give as an attribute and newer ones as input i; ok is false when it is absent.
func (e *emit) list(name string, i int) (l []int64, ok bool) {
	if e.has(i) {
		return e.ints(i), true
	}
	l = e.attrInts(name)
	return l, l != nil
}

// Shapes.

func (e *emit) dims(x N) []int64      { return e.g.Dims(x) }
func (e *emit) dtype(x N) graph.Dtype { return e.g.Dtype(x) }
func (e *emit) rank(x N) int          { return len(e.g.Dims(x)) }
func (e *emit) shape(x N) []int64     { return slices.Clone(e.g.Dims(x)) }
func (e *emit) isFloat(x N) bool      { return e.dtype(x).IsFloat() }
func (e *emit) needRank(x N, least int) {
	if e.rank(x) < least {
		e.fail("an input of dims %v, expected rank %d or more", e.dims(x), least)
	}
}

// axis brings an axis of a rank into [0, rank).
func (e *emit) axis(a int64, rank int) int {
	if a < -int64(rank) || a >= int64(rank) {
		e.fail("axis %d of rank %d", a, rank)
	}
	if a < 0 {
		a += int64(rank)
	}
	return int(a)
}

// axes brings axes of a rank into [0, rank), sorted; duplicates are errors.
func (e *emit) axes(l []int64, rank int) []int64 {
	out := make([]int64, len(l))
	for i, a := range l {
		out[i] = int64(e.axis(a, rank))
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	for i := 1; i < len(out); i++ {
		if out[i] == out[i-1] {
			e.fail("axes %v name dimension %d twice", l, out[i])
		}
	}
	return out
}

// checkDims refuses a shape that a graph cannot hold, before anything of its size is made.
func (e *emit) checkDims(dims []int64) []int64 {
	if !graph.CheckDims(dims) {
		panic(bail{target.Errorf(target.Limit, "onnx: node %q (%s): dims %v are negative or hold more than 2^46 elements", e.where(), e.op, dims)})
	}
	return dims
}

// Operators. Each is the graph operator of the same name, with NumPy broadcasting where it has several operands.

func (e *emit) add(op graph.Op, want graph.Type, ins []N, attrs ...graph.Attr) N {
	return e.ok(e.b.Node(op, want, ins, attrs...))
}

func (e *emit) unary(op graph.Op, x N) N { return e.ok(e.b.Unary(op, x)) }

// bin broadcasts and applies a binary operator. A splat constant is stretched by making it anew: it stays a splat.
func (e *emit) bin(op graph.Op, x, y N) N {
	x, y = e.common(x, y)
	return e.ok(e.b.Binary(op, x, y))
}

func (e *emit) compare(d graph.Dir, x, y N) N {
	x, y = e.common(x, y)
	return e.ok(e.b.Compare(d, x, y))
}

func (e *emit) sel(p, x, y N) N {
	x, y = e.common(x, y)
	dims, ok := graph.BroadcastShape(e.dims(p), e.dims(x))
	if !ok {
		e.fail("dims %v and %v do not broadcast", e.dims(p), e.dims(x))
	}
	return e.ok(e.b.Select(p, e.stretch(x, dims), e.stretch(y, dims)))
}

func (e *emit) common(x, y N) (N, N) {
	dims, ok := graph.BroadcastShape(e.dims(x), e.dims(y))
	if !ok {
		e.fail("dims %v and %v do not broadcast", e.dims(x), e.dims(y))
	}
	e.checkDims(dims)
	return e.stretch(x, dims), e.stretch(y, dims)
}

// stretch broadcasts x to dims by NumPy's rules.
func (e *emit) stretch(x N, dims []int64) N {
	if slices.Equal(e.dims(x), dims) {
		return x
	}
	if d, ok := graph.BroadcastShape(e.dims(x), dims); !ok || !slices.Equal(d, dims) {
		e.fail("dims %v do not broadcast to %v", e.dims(x), dims)
	}
	if bits, ok := e.splatBits(x); ok {
		return e.constant(e.dtype(x), dims, bits)
	}
	return e.ok(e.b.BroadcastTo(x, dims))
}

// splatBits is the element of a splat constant.
func (e *emit) splatBits(x N) (uint64, bool) {
	if k := e.g.Nodes.At(x).Const; k != 0 && e.g.Consts.At(k).Kind == graph.ConstSplat {
		return e.g.Consts.At(k).Bits, true
	}
	return 0, false
}

func (e *emit) constant(d graph.Dtype, dims []int64, bits uint64) N {
	return e.g.AddSplat(e.comp, e.g.Tensor(d, e.checkDims(dims)...), bits, e.b.Label)
}

func (e *emit) plus(x, y N) N  { return e.bin(graph.OpAdd, x, y) }
func (e *emit) minus(x, y N) N { return e.bin(graph.OpSub, x, y) }
func (e *emit) mul(x, y N) N   { return e.bin(graph.OpMul, x, y) }
func (e *emit) div(x, y N) N   { return e.bin(graph.OpDiv, x, y) }
func (e *emit) max(x, y N) N   { return e.bin(graph.OpMax, x, y) }
func (e *emit) min(x, y N) N   { return e.bin(graph.OpMin, x, y) }
func (e *emit) exp(x N) N      { return e.unary(graph.OpExp, x) }
func (e *emit) log(x N) N      { return e.unary(graph.OpLog, x) }

// like is a scalar constant of x's element type.
func (e *emit) like(x N, v float64) N { return e.scalar(e.dtype(x), v) }

func (e *emit) scalar(d graph.Dtype, v float64) N { return e.ok(e.b.Scalar(d, v)) }

// splat is a constant of one value.
func (e *emit) splat(d graph.Dtype, dims []int64, v float64) N {
	return e.ok(e.b.Splat(d, e.checkDims(dims), v))
}

func (e *emit) convert(x N, d graph.Dtype) N { return e.ok(e.b.Convert(x, d)) }

func (e *emit) reshape(x N, dims ...int64) N {
	if bits, ok := e.splatBits(x); ok && !slices.Equal(dims, e.dims(x)) {
		if n, ok := elements(dims); ok && n == e.g.Elements(e.g.Nodes.At(x).Type) {
			return e.constant(e.dtype(x), dims, bits)
		}
	}
	return e.ok(e.b.Reshape(x, e.checkDims(dims)...))
}

func (e *emit) transpose(x N, perm ...int64) N { return e.ok(e.b.Transpose(x, perm...)) }

func (e *emit) slice(x N, start, limit, stride []int64) N {
	return e.ok(e.b.Slice(x, start, limit, stride))
}

// sliceDim takes [start, limit) of one dimension; all of it is x itself.
func (e *emit) sliceDim(x N, dim int, start, limit int64) N {
	if start == 0 && limit == e.dims(x)[dim] {
		return x
	}
	return e.ok(e.b.SliceDim(x, dim, start, limit))
}

func (e *emit) concat(dim int, xs ...N) N {
	if len(xs) == 1 {
		return xs[0]
	}
	return e.ok(e.b.Concat(dim, xs...))
}

func (e *emit) pad(x, v N, low, high []int64) N {
	if allZero(low) && allZero(high) {
		return x
	}
	return e.ok(e.b.Pad(x, v, low, high, nil))
}

func allZero(l []int64) bool {
	for _, v := range l {
		if v != 0 {
			return false
		}
	}
	return true
}

func (e *emit) reverse(x N, dims ...int64) N { return e.ok(e.b.Reverse(x, dims...)) }

func (e *emit) iota(d graph.Dtype, dims []int64, dim int) N {
	return e.ok(e.b.Iota(d, e.checkDims(dims), dim))
}

// reduce combines along dims; keep leaves them as 1.
func (e *emit) reduce(kind graph.ReduceKind, x N, dims []int64, keep bool) N {
	if len(dims) == 0 {
		return x
	}
	if keep {
		return e.ok(e.b.ReduceKeep(kind, x, dims...))
	}
	return e.ok(e.b.Reduce(kind, x, dims...))
}

// mean is the sum over dims divided by their count.
func (e *emit) mean(x N, dims []int64, keep bool) N {
	n := int64(1)
	for _, d := range dims {
		n *= e.dims(x)[d]
	}
	s := e.reduce(graph.ReduceSum, x, dims, keep)
	if n == 1 {
		return s
	}
	return e.div(s, e.like(s, float64(n)))
}

// along gives x, a vector, the shape that broadcasts it along dimension dim of rank dimensions.
func (e *emit) along(x N, dim, rank int) N {
	dims := make([]int64, rank)
	for i := range dims {
		dims[i] = 1
	}
	dims[dim] = e.g.Elements(e.g.Nodes.At(x).Type)
	return e.reshape(x, dims...)
}

// upcast gives x in fp32 when it is a narrower float, and the type to return to.
func (e *emit) upcast(x N) (N, graph.Dtype) {
	d := e.dtype(x)
	if d.IsFloat() && d.Bits() < 32 {
		return e.convert(x, graph.F32), d
	}
	return x, d
}
