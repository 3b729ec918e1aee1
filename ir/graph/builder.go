package graph

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Builder appends operators to one computation and infers their types. It keeps the first error: after it every method
// returns 0 and adds nothing, so that a caller may build a whole model and ask Err once.
//
// Binary operators, Select and Clamp broadcast their operands to a common shape by the rules of NumPy; the broadcasts are
// explicit nodes of the graph.
type Builder struct {
	G *Graph
	C Comp
	// Label is the name that new nodes get. A composite gives it to all its nodes: it is for messages and need not be unique.
	Label arena.Name

	err    error
	params []Node
}

// NewBuilder builds into the open computation c.
func NewBuilder(g *Graph, c Comp) *Builder { return &Builder{G: g, C: c} }

// Begin opens a computation and builds into it.
func Begin(g *Graph, name string) *Builder { return NewBuilder(g, g.BeginComp(name)) }

// End closes the computation with the parameters that Param made and returns it, or the sticky error.
func (b *Builder) End(root Node) (Comp, error) {
	if b.err != nil {
		return 0, b.err
	}
	b.G.EndComp(b.C, root, b.params)
	return b.C, nil
}

// Err is the first error, nil if there was none.
func (b *Builder) Err() error { return b.err }

// Fail records err unless there is an earlier one, and returns 0.
func (b *Builder) Fail(err error) Node {
	if b.err == nil {
		b.err = err
	}
	return 0
}

func (b *Builder) failf(format string, args ...any) Node {
	if b.err == nil {
		where := b.G.Names.String(b.Label)
		if where == "" {
			where = "node " + Node(b.G.Nodes.Len()).String()
		}
		b.err = target.Errorf(target.User, "%s: "+format, append([]any{where}, args...)...)
	}
	return 0
}

// SetLabel sets Label from text.
func (b *Builder) SetLabel(name string) { b.Label = b.G.Names.Intern(name) }

// Node appends any operator. want is the requested type where InferType needs one, else 0.
func (b *Builder) Node(op Op, want Type, ins []Node, attrs ...Attr) Node {
	return b.NodeCalls(op, want, ins, nil, attrs...)
}

// NodeCalls is Node for an operator that calls computations.
func (b *Builder) NodeCalls(op Op, want Type, ins []Node, calls []Comp, attrs ...Attr) Node {
	if b.err != nil {
		return 0
	}
	if slices.Contains(ins, 0) {
		return b.failf("%s of a missing operand", op)
	}
	g := b.G
	n := g.AddNode(b.C, op, want, b.Label, ins, attrs...)
	if len(calls) > 0 {
		g.Nodes.At(n).Calls = g.CompLists.AddSlice(calls)
	}
	return b.typed(n)
}

// typed infers the type of a node that was just added.
func (b *Builder) typed(n Node) Node {
	t, err := InferType(b.G, n)
	if err != nil {
		return b.Fail(err)
	}
	b.G.Nodes.At(n).Type = t
	return n
}

// Dims, Dtype and Type are those of x, zero values after an error.
func (b *Builder) Dims(x Node) []int64 { return b.G.Dims(x) }

// Dtype is the element type of x.
func (b *Builder) Dtype(x Node) Dtype { return b.G.Dtype(x) }

// Type is the type of x.
func (b *Builder) Type(x Node) Type { return b.G.Nodes.At(x).Type }

// Param appends the next parameter of the computation.
func (b *Builder) Param(name string, d Dtype, dims ...int64) Node {
	if b.err != nil {
		return 0
	}
	n := b.typed(b.G.AddParam(b.C, len(b.params), b.G.Tensor(d, dims...), name))
	b.params = append(b.params, n)
	return n
}

// Params are the parameters made so far.
func (b *Builder) Params() []Node { return b.params }

// Splat appends a constant whose elements all are v, converted to d.
func (b *Builder) Splat(d Dtype, dims []int64, v float64) Node {
	if b.err != nil {
		return 0
	}
	bits, ok := EncodeFloat(d, v)
	if !ok {
		return b.failf("constant of %s", d)
	}
	return b.typed(b.G.AddSplat(b.C, b.G.Tensor(d, dims...), bits, b.Label))
}

// Scalar appends a scalar constant.
func (b *Builder) Scalar(d Dtype, v float64) Node { return b.Splat(d, nil, v) }

// Like is a scalar constant of x's element type.
func (b *Builder) Like(x Node, v float64) Node { return b.Scalar(b.Dtype(x), v) }

// Ints appends a constant vector (or, with dims, tensor) of an integer type; one value and several elements is a splat.
func (b *Builder) Ints(d Dtype, dims []int64, vals ...int64) Node {
	if b.err != nil {
		return 0
	}
	if !d.IsInt() && d != Bool {
		return b.failf("integers of %s", d)
	}
	t := b.G.Tensor(d, dims...)
	if !CheckDims(dims) || int64(len(vals)) != b.G.Elements(t) && len(vals) != 1 {
		return b.failf("%d values for %s", len(vals), b.G.TypeString(t))
	}
	if len(vals) == 1 {
		return b.typed(b.G.AddSplat(b.C, t, EncodeInt(d, vals[0]), b.Label))
	}
	data := make([]byte, len(vals)*d.Size())
	for i, v := range vals {
		putElem(d, data, i, EncodeInt(d, v))
	}
	return b.typed(b.G.AddDense(b.C, t, data, b.Label))
}

// Floats appends a dense constant of a float type, rounded to nearest even.
func (b *Builder) Floats(d Dtype, dims []int64, vals ...float64) Node {
	if b.err != nil {
		return 0
	}
	t := b.G.Tensor(d, dims...)
	if !d.IsFloat() || !CheckDims(dims) || int64(len(vals)) != b.G.Elements(t) {
		return b.failf("%d float values for %s", len(vals), b.G.TypeString(t))
	}
	data := make([]byte, len(vals)*d.Size())
	for i, v := range vals {
		bits, _ := EncodeFloat(d, v)
		putElem(d, data, i, bits)
	}
	return b.typed(b.G.AddDense(b.C, t, data, b.Label))
}

// Dense appends a constant of raw row-major little-endian bytes (sub-byte elements one a byte), copied.
func (b *Builder) Dense(d Dtype, dims []int64, data []byte) Node {
	if b.err != nil {
		return 0
	}
	return b.typed(b.G.AddDense(b.C, b.G.Tensor(d, dims...), data, b.Label))
}

// Weight appends a constant that is generated when it is needed: uniform with standard deviation std (see Materialise).
func (b *Builder) Weight(d Dtype, dims []int64, seed uint64, std float32) Node {
	if b.err != nil {
		return 0
	}
	return b.typed(b.G.AddElided(b.C, b.G.Tensor(d, dims...), seed, std, b.Label))
}

// WeightAround is Weight with another mean than 0: the scales of a normalisation, variances.
func (b *Builder) WeightAround(d Dtype, dims []int64, seed uint64, mean, std float32) Node {
	n := b.Weight(d, dims, seed, std)
	if n != 0 {
		b.G.Consts.At(b.G.Nodes.At(n).Const).Mean = mean
	}
	return n
}

// Iota appends 0, 1, 2… along dimension dim.
func (b *Builder) Iota(d Dtype, dims []int64, dim int) Node {
	if b.err != nil {
		return 0
	}
	return b.Node(OpIota, b.G.Tensor(d, dims...), nil, b.G.IntsAttr(AttrDim, int64(dim)))
}

// Unary appends an elementwise operator of one operand without attributes.
func (b *Builder) Unary(op Op, x Node) Node {
	if op.Class() != ClassUnary {
		return b.failf("%s is not unary", op)
	}
	return b.Node(op, 0, []Node{x})
}

// Convert to another element type; x itself when it has that type.
func (b *Builder) Convert(x Node, d Dtype) Node {
	if b.err == nil && x != 0 && b.Dtype(x) == d {
		return x
	}
	return b.Node(OpConvert, b.G.Tensor(d), []Node{x})
}

// LeakyRelu is x < 0 ? alpha·x : x.
func (b *Builder) LeakyRelu(x Node, alpha float64) Node {
	return b.Node(OpLeakyRelu, 0, []Node{x}, b.G.FloatAttr(AttrAlpha, alpha))
}

// Binary appends an elementwise operator of two operands after broadcasting them to one shape.
func (b *Builder) Binary(op Op, x, y Node) Node {
	if op.Class() != ClassBinary || op == OpCompare {
		return b.failf("%s is not binary", op)
	}
	x, y = b.common(x, y)
	return b.Node(op, 0, []Node{x, y})
}

func (b *Builder) common(x, y Node) (Node, Node) {
	if b.err != nil || x == 0 || y == 0 || b.Type(x) == b.Type(y) {
		return x, y
	}
	dims, ok := BroadcastShape(b.Dims(x), b.Dims(y))
	if !ok {
		b.failf("shapes %v and %v do not broadcast", b.Dims(x), b.Dims(y))
		return 0, 0
	}
	return b.BroadcastTo(x, dims), b.BroadcastTo(y, dims)
}

// Add is x + y.
func (b *Builder) Add(x, y Node) Node { return b.Binary(OpAdd, x, y) }

// Sub is x − y.
func (b *Builder) Sub(x, y Node) Node { return b.Binary(OpSub, x, y) }

// Mul is x · y.
func (b *Builder) Mul(x, y Node) Node { return b.Binary(OpMul, x, y) }

// Div is x / y; integers truncate towards zero.
func (b *Builder) Div(x, y Node) Node { return b.Binary(OpDiv, x, y) }

// Max is the larger element.
func (b *Builder) Max(x, y Node) Node { return b.Binary(OpMax, x, y) }

// Compare gives pred.
func (b *Builder) Compare(d Dir, x, y Node) Node {
	x, y = b.common(x, y)
	return b.Node(OpCompare, 0, []Node{x, y}, b.G.IntsAttr(AttrDirection, int64(d)))
}

// Select is p ? x : y.
func (b *Builder) Select(p, x, y Node) Node {
	x, y = b.common(x, y)
	if b.err == nil && p != 0 && x != 0 && len(b.Dims(p)) > 0 && !sameDims(b.Dims(p), b.Dims(x)) {
		dims, ok := BroadcastShape(b.Dims(p), b.Dims(x))
		if !ok {
			return b.failf("selector %v does not broadcast with %v", b.Dims(p), b.Dims(x))
		}
		p, x, y = b.BroadcastTo(p, dims), b.BroadcastTo(x, dims), b.BroadcastTo(y, dims)
	}
	return b.Node(OpSelect, 0, []Node{p, x, y})
}

// Clamp is max(lo, min(x, hi)); lo and hi are scalars or shaped like x.
func (b *Builder) Clamp(lo, x, hi Node) Node { return b.Node(OpClamp, 0, []Node{lo, x, hi}) }

// BroadcastShape is the common shape of NumPy's rules: aligned at the last dimension, 1 stretches.
func BroadcastShape(x, y []int64) ([]int64, bool) {
	if len(x) < len(y) {
		x, y = y, x
	}
	out := slices.Clone(x)
	for i, d := range y {
		k := len(x) - len(y) + i
		switch {
		case x[k] == d || d == 1:
		case x[k] == 1:
			out[k] = d
		default:
			return nil, false
		}
	}
	return out, true
}

// Broadcast appends XLA's broadcast: operand dimension i becomes result dimension dims[i] of shape.
func (b *Builder) Broadcast(x Node, dims, shape []int64) Node {
	if b.err != nil || x == 0 {
		return b.Node(OpBroadcast, 0, []Node{x})
	}
	return b.Node(OpBroadcast, b.G.Tensor(b.Dtype(x), shape...), []Node{x}, b.G.IntsAttr(AttrDims, dims...))
}

// BroadcastTo stretches x to shape by NumPy's rules: a reshape that drops stretched dimensions of 1, then a broadcast.
func (b *Builder) BroadcastTo(x Node, shape []int64) Node {
	if b.err != nil || x == 0 {
		return b.Node(OpBroadcast, 0, []Node{x})
	}
	have := b.Dims(x)
	if sameDims(have, shape) {
		return x
	}
	if len(have) > len(shape) {
		return b.failf("%v does not broadcast to %v", have, shape)
	}
	var dims, kept []int64
	for i, d := range have {
		k := len(shape) - len(have) + i
		switch {
		case d == shape[k]:
			dims, kept = append(dims, int64(k)), append(kept, d)
		case d != 1:
			return b.failf("%v does not broadcast to %v", have, shape)
		}
	}
	return b.Broadcast(b.Reshape(x, kept...), dims, shape)
}

// Reshape keeps the row-major order; x itself when it has the shape. One dimension may be -1.
func (b *Builder) Reshape(x Node, dims ...int64) Node {
	if b.err != nil || x == 0 {
		return b.Node(OpReshape, 0, []Node{x})
	}
	if i := slices.Index(dims, -1); i >= 0 {
		dims = slices.Clone(dims)
		rest := int64(1)
		for k, d := range dims {
			if k != i {
				rest *= d
			}
		}
		if rest == 0 || b.G.Elements(b.Type(x))%rest != 0 {
			return b.failf("%v cannot be reshaped to %v", b.Dims(x), dims)
		}
		dims[i] = b.G.Elements(b.Type(x)) / rest
	}
	if sameDims(b.Dims(x), dims) {
		return x
	}
	return b.Node(OpReshape, b.G.Tensor(b.Dtype(x), dims...), []Node{x})
}

// Transpose: result dimension i is dimension perm[i] of x.
func (b *Builder) Transpose(x Node, perm ...int64) Node {
	identity := true
	for i, p := range perm {
		identity = identity && int64(i) == p
	}
	if identity && b.err == nil && x != 0 && len(perm) == len(b.Dims(x)) {
		return x
	}
	return b.Node(OpTranspose, 0, []Node{x}, b.G.IntsAttr(AttrDims, perm...))
}

// Slice takes [start, limit) in steps of stride (nil: 1) of every dimension.
func (b *Builder) Slice(x Node, start, limit, stride []int64) Node {
	if stride == nil {
		stride = make([]int64, len(start))
		for i := range stride {
			stride[i] = 1
		}
	}
	g := b.G
	return b.Node(OpSlice, 0, []Node{x}, g.IntsAttr(AttrStart, start...), g.IntsAttr(AttrLimit, limit...), g.IntsAttr(AttrStride, stride...))
}

// SliceDim takes [start, limit) of one dimension.
func (b *Builder) SliceDim(x Node, dim int, start, limit int64) Node {
	if b.err != nil || x == 0 || dim < 0 || dim >= len(b.Dims(x)) {
		return b.failf("slice of dimension %d", dim)
	}
	lo, hi := make([]int64, len(b.Dims(x))), slices.Clone(b.Dims(x))
	lo[dim], hi[dim] = start, limit
	return b.Slice(x, lo, hi, nil)
}

// Concat along dim.
func (b *Builder) Concat(dim int, xs ...Node) Node {
	return b.Node(OpConcat, 0, xs, b.G.IntsAttr(AttrDim, int64(dim)))
}

// Pad by low, high and interior (nil: 0) elements of value, a scalar. Negative low and high crop.
func (b *Builder) Pad(x, value Node, low, high, interior []int64) Node {
	g := b.G
	if interior == nil {
		interior = make([]int64, len(low))
	}
	return b.Node(OpPad, 0, []Node{x, value}, g.IntsAttr(AttrLow, low...), g.IntsAttr(AttrHigh, high...), g.IntsAttr(AttrInterior, interior...))
}

// Reverse the order along dims.
func (b *Builder) Reverse(x Node, dims ...int64) Node {
	return b.Node(OpReverse, 0, []Node{x}, b.G.IntsAttr(AttrDims, dims...))
}

// Take is ONNX Gather: dimension dim of x replaced by the shape of indices; an index in [-n, n).
func (b *Builder) Take(x, indices Node, dim int) Node {
	return b.Node(OpTake, 0, []Node{x, indices}, b.G.IntsAttr(AttrDim, int64(dim)))
}

// TakeAlong is ONNX GatherElements.
func (b *Builder) TakeAlong(x, indices Node, dim int) Node {
	return b.Node(OpTakeAlong, 0, []Node{x, indices}, b.G.IntsAttr(AttrDim, int64(dim)))
}

// DynamicSlice takes sizes elements from the scalar indices starts, which are clamped to fit.
func (b *Builder) DynamicSlice(x Node, starts []Node, sizes ...int64) Node {
	return b.Node(OpDynamicSlice, 0, append([]Node{x}, starts...), b.G.IntsAttr(AttrSizes, sizes...))
}

// DynamicUpdateSlice overwrites x from the scalar indices starts, which are clamped to fit.
func (b *Builder) DynamicUpdateSlice(x, update Node, starts ...Node) Node {
	return b.Node(OpDynamicUpdateSlice, 0, append([]Node{x, update}, starts...))
}

// identity of the kind, as a scalar constant of x's element type.
func (b *Builder) reduceInit(x Node, kind ReduceKind) Node {
	if b.err != nil || x == 0 {
		return 0
	}
	d := b.Dtype(x)
	bits, ok := kind.Identity(d)
	if !ok {
		return b.failf("no identity of %s reduction over %s", kind, d)
	}
	return b.typed(b.G.AddSplat(b.C, b.G.Tensor(d), bits, b.Label))
}

// Reduce combines all elements along dims, which disappear.
func (b *Builder) Reduce(kind ReduceKind, x Node, dims ...int64) Node {
	return b.Node(OpReduce, 0, []Node{x, b.reduceInit(x, kind)}, b.G.IntsAttr(AttrDims, dims...), b.G.IntsAttr(AttrKind, int64(kind)))
}

// ReduceKeep is Reduce with the reduced dimensions kept as 1.
func (b *Builder) ReduceKeep(kind ReduceKind, x Node, dims ...int64) Node {
	r := b.Reduce(kind, x, dims...)
	if r == 0 {
		return 0
	}
	keep := slices.Clone(b.Dims(x))
	for _, d := range dims {
		keep[d] = 1
	}
	return b.Reshape(r, keep...)
}

// Mean over dims, which disappear: the sum times 1/n in x's element type.
func (b *Builder) Mean(x Node, dims ...int64) Node {
	s := b.Reduce(ReduceSum, x, dims...)
	if s == 0 {
		return 0
	}
	n := int64(1)
	for _, d := range dims {
		n *= b.Dims(x)[d]
	}
	return b.Mul(s, b.Like(s, 1/float64(n)))
}

// WindowAttrs are the attributes of ws.
func (b *Builder) WindowAttrs(ws []Window) []Attr {
	list := func(k Key, get func(w Window) int64) Attr {
		l := make([]int64, len(ws))
		for i, w := range ws {
			l[i] = get(w)
		}
		return b.G.IntsAttr(k, l...)
	}
	one := func(x int64) int64 { return max(x, 1) }
	return []Attr{
		list(AttrWindowSize, func(w Window) int64 { return w.Size }),
		list(AttrWindowStride, func(w Window) int64 { return one(w.Stride) }),
		list(AttrWindowPadLow, func(w Window) int64 { return w.PadLow }),
		list(AttrWindowPadHigh, func(w Window) int64 { return w.PadHigh }),
		list(AttrWindowLhsDilate, func(w Window) int64 { return one(w.LhsDilate) }),
		list(AttrWindowRhsDilate, func(w Window) int64 { return one(w.RhsDilate) }),
		list(AttrWindowReverse, func(w Window) int64 {
			if w.Reverse {
				return 1
			}
			return 0
		}),
	}
}

// ReduceWindow combines each window; ws has one entry a dimension of x (strides and dilations of 0 mean 1).
func (b *Builder) ReduceWindow(kind ReduceKind, x Node, ws []Window) Node {
	attrs := append(b.WindowAttrs(ws), b.G.IntsAttr(AttrKind, int64(kind)))
	return b.Node(OpReduceWindow, 0, []Node{x, b.reduceInit(x, kind)}, attrs...)
}

// AvgPool is the mean of each window; countPad divides by the whole window size at the borders too.
func (b *Builder) AvgPool(x Node, ws []Window, countPad bool) Node {
	count := int64(0)
	if countPad {
		count = 1
	}
	return b.Node(OpAvgPool, 0, []Node{x}, append(b.WindowAttrs(ws), b.G.IntsAttr(AttrCountPad, count))...)
}

// ArgMax gives the index of the largest element along dim, the first of equals unless last. d is an integer type.
func (b *Builder) ArgMax(x Node, dim int, last bool, d Dtype) Node {
	return b.arg(OpArgMax, x, dim, last, d)
}

// ArgMin is ArgMax for the smallest.
func (b *Builder) ArgMin(x Node, dim int, last bool, d Dtype) Node {
	return b.arg(OpArgMin, x, dim, last, d)
}

func (b *Builder) arg(op Op, x Node, dim int, last bool, d Dtype) Node {
	sel := int64(0)
	if last {
		sel = 1
	}
	return b.Node(op, b.G.Tensor(d), []Node{x}, b.G.IntsAttr(AttrDim, int64(dim)), b.G.IntsAttr(AttrSelectLast, sel))
}

// CumSum along dim.
func (b *Builder) CumSum(x Node, dim int, exclusive, reverse bool) Node {
	bit := map[bool]int64{true: 1}
	g := b.G
	return b.Node(OpCumSum, 0, []Node{x}, g.IntsAttr(AttrDim, int64(dim)), g.IntsAttr(AttrExclusive, bit[exclusive]), g.IntsAttr(AttrReverse, bit[reverse]))
}

// TopK gives the k largest (or smallest) of the last dimension in order, and their indices of integer type d.
func (b *Builder) TopK(x Node, k int64, largest bool, d Dtype) (values, indices Node) {
	l := int64(0)
	if largest {
		l = 1
	}
	g := b.G
	n := b.Node(OpTopK, g.TupleOf(g.Tensor(F32), g.Tensor(d)), []Node{x}, g.IntsAttr(AttrK, k), g.IntsAttr(AttrLargest, l))
	return b.Elem(n, 0), b.Elem(n, 1)
}

// Dot is XLA's dot-general in x's element type.
func (b *Builder) Dot(x, y Node, lhsBatch, rhsBatch, lhsContract, rhsContract []int64) Node {
	g := b.G
	return b.Node(OpDot, 0, []Node{x, y}, g.IntsAttr(AttrLhsBatch, lhsBatch...), g.IntsAttr(AttrRhsBatch, rhsBatch...),
		g.IntsAttr(AttrLhsContract, lhsContract...), g.IntsAttr(AttrRhsContract, rhsContract...))
}

// MatMul is NumPy's matmul: vectors, matrices and stacks of matrices with broadcast batch dimensions.
func (b *Builder) MatMul(x, y Node) Node {
	if b.err != nil || x == 0 || y == 0 || len(b.Dims(x)) == 0 || len(b.Dims(y)) == 0 {
		return b.failf("matmul of scalars or missing operands")
	}
	xd, yd := b.Dims(x), b.Dims(y)
	if len(yd) <= 2 {
		return b.Dot(x, y, nil, nil, []int64{int64(len(xd) - 1)}, []int64{int64(max(len(yd)-2, 0))})
	}
	if len(xd) == 1 {
		r := b.MatMul(b.Reshape(x, 1, xd[0]), y)
		if r == 0 {
			return 0
		}
		d := b.Dims(r)
		return b.Reshape(r, append(slices.Clone(d[:len(d)-2]), d[len(d)-1])...)
	}
	batch, ok := BroadcastShape(xd[:len(xd)-2], yd[:len(yd)-2])
	if !ok {
		return b.failf("matmul of %v and %v: batch dimensions do not broadcast", xd, yd)
	}
	x = b.BroadcastTo(x, append(slices.Clone(batch), xd[len(xd)-2:]...))
	y = b.BroadcastTo(y, append(slices.Clone(batch), yd[len(yd)-2:]...))
	dims := make([]int64, len(batch))
	for i := range dims {
		dims[i] = int64(i)
	}
	k := int64(len(batch))
	return b.Dot(x, y, dims, dims, []int64{k + 1}, []int64{k})
}

// Conv is a convolution of x [n, ci, spatial…] with w [co, ci/groups, spatial…] (the layout of ONNX and PyTorch); ws has one
// entry a spatial dimension, whose Size 0 means the kernel's (strides and dilations of 0 mean 1).
func (b *Builder) Conv(x, w Node, ws []Window, groups int64) Node {
	if b.err != nil || x == 0 || w == 0 {
		return b.Node(OpConv, 0, []Node{x, w})
	}
	g := b.G
	rank := int64(len(ws) + 2)
	labels := []int64{0, 1}
	spatial := []int64{}
	for i := int64(2); i < rank; i++ {
		spatial = append(spatial, i)
	}
	labels = append(labels, spatial...)
	labels = append(append(labels, 1, 0), spatial...)
	labels = append(append(labels, 0, 1), spatial...)
	ws = slices.Clone(ws)
	for i := range ws {
		if k := b.Dims(w); ws[i].Size == 0 && i+2 < len(k) {
			ws[i].Size = k[i+2]
		}
	}
	return b.Node(OpConv, 0, []Node{x, w}, append(b.WindowAttrs(ws), g.IntsAttr(AttrDimLabels, labels...), g.IntsAttr(AttrGroups, groups))...)
}

// BatchNorm is (x − mean)·scale/√(variance+eps) + offset, per entry of dimension feature.
func (b *Builder) BatchNorm(x, scale, offset, mean, variance Node, feature int, eps float64) Node {
	g := b.G
	return b.Node(OpBatchNormInference, 0, []Node{x, scale, offset, mean, variance}, g.FloatAttr(AttrEpsilon, eps), g.IntsAttr(AttrFeature, int64(feature)))
}

// LRN is x / (bias + alpha/size·Σ x²)^beta over size neighbours in dimension 1.
func (b *Builder) LRN(x Node, size int64, alpha, beta, bias float64) Node {
	g := b.G
	return b.Node(OpLRN, 0, []Node{x}, g.IntsAttr(AttrSize, size), g.FloatAttr(AttrAlpha, alpha), g.FloatAttr(AttrBeta, beta), g.FloatAttr(AttrBias, bias))
}

// Softmax over one dimension: exp(x − max) / Σ.
func (b *Builder) Softmax(x Node, dim int64) Node {
	e := b.Unary(OpExp, b.Sub(x, b.ReduceKeep(ReduceMax, x, dim)))
	return b.Div(e, b.ReduceKeep(ReduceSum, e, dim))
}

// Tuple of values.
func (b *Builder) Tuple(xs ...Node) Node { return b.Node(OpTuple, 0, xs) }

// Elem is element i of a tuple.
func (b *Builder) Elem(t Node, i int) Node {
	return b.Node(OpGetTupleElement, 0, []Node{t}, b.G.IntsAttr(AttrIndex, int64(i)))
}

// Call inserts a computation.
func (b *Builder) Call(c Comp, args ...Node) Node {
	return b.NodeCalls(OpCall, 0, args, []Comp{c})
}

// While runs body on state as long as cond gives true. trips is the known trip count, or 0.
func (b *Builder) While(cond, body Comp, state Node, trips int64) Node {
	var attrs []Attr
	if trips > 0 {
		attrs = append(attrs, b.G.IntsAttr(AttrTripCount, trips))
	}
	return b.NodeCalls(OpWhile, 0, []Node{state}, []Comp{cond, body}, attrs...)
}

// Output declares a result of the model. The node must belong to the entry computation.
func (b *Builder) Output(name string, n Node) {
	if b.err == nil && n != 0 {
		b.G.Outputs = append(b.G.Outputs, Output{Name: b.G.Names.Intern(name), Node: n})
	}
}
