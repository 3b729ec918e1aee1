package hlo

import (
	"math"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// maxSplatText is the largest splat that is spelled out; larger ones become a scalar and a broadcast.
const maxSplatText = 4096

// Expand returns a graph of HLO's own operators that computes the same: g itself when it is one already, else a new one in which
//
//   - the composites that HLO lacks are spelled out (in f32 where the element type is a narrower float, as their definitions ask),
//   - combiners that are given by kind alone are computations,
//   - splats of more than 4096 elements are broadcast scalars,
//   - the root of the entry is the tuple of the outputs.
//
// Shapes must be inferred. The new graph shares the blobs of g.
func Expand(g *graph.Graph) (*graph.Graph, error) {
	order, err := graph.CompOrder(g)
	if err != nil {
		return nil, err
	}
	if g.Entry == 0 {
		return nil, target.Errorf(target.User, "the graph has no entry computation")
	}
	if _, ok := textOutputs(g); ok && !needsExpansion(g) {
		return g, nil
	}
	e := expander{
		from: g, g: new(graph.Graph),
		types: make([]graph.Type, g.Types.Len()), comps: make([]graph.Comp, g.Comps.Len()), nodes: make([]graph.Node, g.Nodes.Len()),
	}
	e.g.Name = g.Name
	e.g.Blobs = g.Blobs
	e.copyTypes()
	for _, c := range order {
		e.neededBy(c)
	}
	for _, c := range order {
		if err := e.comp(c); err != nil {
			return nil, err
		}
	}
	e.g.Entry = e.comps[g.Entry]
	for _, o := range g.Outputs {
		e.g.Outputs = append(e.g.Outputs, graph.Output{Name: e.name(o.Name), Node: e.nodes[o.Node]})
	}
	e.g.Aliases = append(e.g.Aliases, g.Aliases...)
	return e.g, nil
}

func needsExpansion(g *graph.Graph) bool {
	for n, row := range g.Nodes.All() {
		if slices.Contains(composites, row.Op) || kindAlone(g, n) || bigSplat(g, n) {
			return true
		}
	}
	return false
}

func bigSplat(g *graph.Graph, n graph.Node) bool {
	row := g.Nodes.At(n)
	return row.Op == graph.OpConstant && g.Consts.At(row.Const).Kind == graph.ConstSplat && g.Elements(row.Type) > maxSplatText
}

// kindAlone reports a combining operator without a computation.
func kindAlone(g *graph.Graph, n graph.Node) bool {
	switch row := g.Nodes.At(n); row.Op {
	case graph.OpReduce, graph.OpReduceWindow, graph.OpScatter, graph.OpAllReduce, graph.OpAllReduceStart, graph.OpReduceScatter:
		return row.Calls.Len == 0
	}
	return false
}

// combinerKey names a computation that expansions share.
type combinerKey struct {
	kind  graph.ReduceKind
	op    graph.Op // argmax or argmin instead of kind
	last  bool     // of argmax: the last of equals
	dtype graph.Dtype
	index graph.Dtype
}

type combiner struct {
	key  combinerKey
	comp graph.Comp
}

type expander struct {
	from, g   *graph.Graph
	types     []graph.Type
	comps     []graph.Comp
	nodes     []graph.Node
	combiners []combiner
	buf       []byte
	ins       []graph.Node
	attrs     []graph.Attr
	calls     []graph.Comp
	order     graph.Orderer
}

func (e *expander) name(n arena.Name) arena.Name {
	if n == 0 {
		return 0
	}
	e.buf = e.from.Names.Append(e.buf[:0], n)
	return e.g.Names.InternBytes(e.buf)
}

// copyTypes maps all types; elements of a tuple have smaller numbers than the tuple.
func (e *expander) copyTypes() {
	for t, row := range e.from.Types.All() {
		if row.Dtype != graph.Tuple {
			e.types[t] = e.g.Tensor(row.Dtype, e.from.Ints.Of(row.Dims)...)
			continue
		}
		var elems []graph.Type
		for _, x := range e.from.TypeLists.Of(row.Elems) {
			elems = append(elems, e.types[x])
		}
		e.types[t] = e.g.TupleOf(elems...)
	}
}

// wide is the type that a composite over d computes in.
func wide(d graph.Dtype) graph.Dtype {
	if d.IsFloat() && d.Bits() < 32 {
		return graph.F32
	}
	return d
}

// neededBy makes the shared computations of c's nodes: nodes of a computation are contiguous, so they cannot be made on the way.
func (e *expander) neededBy(c graph.Comp) {
	g := e.from
	row := g.Comps.At(c)
	for n := row.First; n < row.First+graph.Node(row.Count); n++ {
		ins := g.Operands(n)
		if len(ins) == 0 {
			continue
		}
		d := g.Dtype(ins[0])
		switch op := g.Op(n); {
		case op == graph.OpAvgPool || op == graph.OpCumSum || op == graph.OpLRN:
			e.combiner(combinerKey{kind: graph.ReduceSum, dtype: wide(d)})
		case op == graph.OpArgMax || op == graph.OpArgMin:
			e.combiner(argKey(g, n))
		case kindAlone(g, n):
			if k := graph.KindOf(g, n); k != graph.ReduceOther {
				e.combiner(combinerKey{kind: k, dtype: d})
			}
		}
	}
}

func argKey(g *graph.Graph, n graph.Node) combinerKey {
	return combinerKey{op: g.Op(n), last: g.Int(n, graph.AttrSelectLast, 0) != 0, dtype: g.Dtype(g.Operands(n)[0]), index: g.Dtype(n)}
}

// combiner finds or makes a shared computation. There are few, one for each kind and type in use.
func (e *expander) combiner(k combinerKey) graph.Comp {
	for _, h := range e.combiners {
		if h.key == k {
			return h.comp
		}
	}
	g := e.g
	if k.op == 0 {
		b := graph.Begin(g, "combine."+k.kind.String()+"."+k.dtype.String())
		x, y := b.Param("x", k.dtype), b.Param("y", k.dtype)
		c, err := b.End(b.Binary(k.kind.Op(), x, y))
		if err != nil {
			c = 0 // the operator that wants it is refused where it stands
		}
		e.combiners = append(e.combiners, combiner{k, c})
		return c
	}
	name := "combine." + k.op.String() + "." + k.dtype.String() + "." + k.index.String()
	if k.last {
		name += ".last"
	}
	b := graph.Begin(g, name)
	x, i := b.Param("x", k.dtype), b.Param("i", k.index)
	y, j := b.Param("y", k.dtype), b.Param("j", k.index)
	better, earlier := graph.DirGT, graph.DirLT
	if k.op == graph.OpArgMin {
		better = graph.DirLT
	}
	if k.last {
		earlier = graph.DirGT
	}
	tie := b.Binary(graph.OpAnd, b.Compare(graph.DirEQ, x, y), b.Compare(earlier, i, j))
	keep := b.Binary(graph.OpOr, b.Compare(better, x, y), tie)
	c, err := b.End(b.Tuple(b.Select(keep, x, y), b.Select(keep, i, j)))
	if err != nil {
		c = 0
	}
	e.combiners = append(e.combiners, combiner{k, c})
	return c
}

func (e *expander) comp(c graph.Comp) error {
	from, g := e.from, e.g
	row := from.Comps.At(c)
	order, err := e.order.All(from, c)
	if err != nil {
		return err
	}
	nc := g.Comps.Add(graph.CompRow{Name: e.name(row.Name), First: graph.Node(g.Nodes.Len())})
	e.comps[c] = nc
	b := graph.NewBuilder(g, nc)
	for _, n := range order {
		if err := e.node(b, n); err != nil {
			return err
		}
	}
	root := e.nodes[row.Root]
	if c == from.Entry {
		if len(from.Outputs) == 1 && !from.IsTuple(from.Nodes.At(from.Outputs[0].Node).Type) {
			root = e.nodes[from.Outputs[0].Node]
		} else if len(from.Outputs) > 0 {
			e.ins = e.ins[:0]
			for _, o := range from.Outputs {
				e.ins = append(e.ins, e.nodes[o.Node])
			}
			b.Label = 0
			root = b.Tuple(e.ins...)
		}
	}
	if b.Err() != nil {
		return b.Err()
	}
	params := make([]graph.Node, 0, row.Params.Len)
	for _, p := range from.Params(c) {
		params = append(params, e.nodes[p])
	}
	g.EndComp(nc, root, params)
	return nil
}

// node copies one node or expands it.
func (e *expander) node(b *graph.Builder, n graph.Node) error {
	from, g := e.from, e.g
	row := from.Nodes.At(n)
	e.ins = e.ins[:0]
	for _, x := range from.Operands(n) {
		e.ins = append(e.ins, e.nodes[x])
	}
	if slices.Contains(composites, row.Op) {
		b.Label = 0
		r := e.expand(b, n, slices.Clone(e.ins))
		if b.Err() != nil {
			return target.Errorf(target.ClassOf(b.Err()), "%s cannot be written as HLO: %w", from.NodeName(n), b.Err())
		}
		if g.Nodes.At(r).Name == 0 {
			g.Nodes.At(r).Name = e.name(row.Name)
		}
		e.nodes[n] = r
		return nil
	}
	if row.Op == graph.OpConstant {
		k := *from.Consts.At(row.Const)
		if k.Kind == graph.ConstDense {
			k.Data = g.Bytes.AddSlice(from.Bytes.Of(k.Data))
		}
		t := e.types[row.Type]
		big := bigSplat(from, n)
		if big {
			t = g.Tensor(from.Dtype(n))
		}
		c := g.AddNode(b.C, graph.OpConstant, t, 0, nil)
		g.Nodes.At(c).Const = g.Consts.Add(k)
		if big {
			c = b.Broadcast(c, nil, from.Dims(n))
			if b.Err() != nil {
				return b.Err()
			}
		}
		g.Nodes.At(c).Name = e.name(row.Name)
		e.nodes[n] = c
		return nil
	}
	e.attrs = e.attrs[:0]
	for _, a := range from.AttrRows.Of(row.Attrs) {
		e.attrs = append(e.attrs, g.CopyAttr(from, a))
	}
	m := g.AddNode(b.C, row.Op, e.types[row.Type], e.name(row.Name), e.ins, e.attrs...)
	e.nodes[n] = m
	e.calls = e.calls[:0]
	for _, c := range from.Calls(n) {
		e.calls = append(e.calls, e.comps[c])
	}
	if kindAlone(from, n) && len(e.ins) > 0 {
		k := graph.KindOf(from, n)
		c := graph.Comp(0)
		if k != graph.ReduceOther {
			c = e.combiner(combinerKey{kind: k, dtype: from.Dtype(from.Operands(n)[0])})
		}
		if c == 0 {
			return target.Errorf(target.User, "%s: %s of %s has no combining computation", from.NodeName(n), row.Op, from.Dtype(n))
		}
		e.calls = append(e.calls, c)
	}
	g.Nodes.At(m).Calls = g.CompLists.AddSlice(e.calls)
	return nil
}

// expand builds the definition of a composite.
func (e *expander) expand(b *graph.Builder, n graph.Node, ins []graph.Node) graph.Node {
	from := e.from
	op := from.Op(n)
	x := ins[0]
	d := b.Dtype(x)
	switch op {
	case graph.OpRelu:
		return b.Max(x, b.Like(x, 0))
	case graph.OpTake:
		return e.take(b, n, ins)
	case graph.OpTakeAlong:
		return e.takeAlong(b, n, ins)
	case graph.OpArgMax, graph.OpArgMin:
		return e.arg(b, n, x)
	}
	w := b.Convert(x, wide(d))
	var r graph.Node
	switch op {
	case graph.OpLeakyRelu:
		r = b.Select(b.Compare(graph.DirLT, w, b.Like(w, 0)), b.Mul(w, b.Like(w, from.Float(n, graph.AttrAlpha, 0.01))), w)
	case graph.OpGelu:
		half := b.Mul(w, b.Like(w, 0.5))
		r = b.Mul(half, b.Add(b.Unary(graph.OpErf, b.Mul(w, b.Like(w, math.Sqrt2/2))), b.Like(w, 1)))
	case graph.OpGeluTanh:
		cube := b.Mul(w, b.Mul(w, w))
		inner := b.Mul(b.Add(w, b.Mul(cube, b.Like(w, 0.044715))), b.Like(w, math.Sqrt(2/math.Pi)))
		r = b.Mul(b.Mul(w, b.Like(w, 0.5)), b.Add(b.Unary(graph.OpTanh, inner), b.Like(w, 1)))
	case graph.OpSilu:
		r = b.Mul(w, b.Unary(graph.OpSigmoid, w))
	case graph.OpSoftplus:
		r = softplus(b, w)
	case graph.OpMish:
		r = b.Mul(w, b.Unary(graph.OpTanh, softplus(b, w)))
	case graph.OpAvgPool:
		r = e.avgPool(b, n, w)
	case graph.OpCumSum:
		r = e.cumSum(b, n, w)
	case graph.OpLRN:
		r = e.lrn(b, n, w)
	default:
		return b.Fail(target.NotSupported(op.String(), "HLO has no operator for %s and there is no expansion", op))
	}
	return b.Convert(r, d)
}

// softplus is log(1+exp(x)) without overflow: max(x,0) + log1p(exp(−|x|)).
func softplus(b *graph.Builder, x graph.Node) graph.Node {
	tail := b.Unary(graph.OpLog1p, b.Unary(graph.OpExp, b.Unary(graph.OpNeg, b.Unary(graph.OpAbs, x))))
	return b.Add(b.Max(x, b.Like(x, 0)), tail)
}

// sumWindow is a reduce-window that adds.
func (e *expander) sumWindow(b *graph.Builder, x graph.Node, ws []graph.Window) graph.Node {
	r := b.ReduceWindow(graph.ReduceSum, x, ws)
	if r != 0 {
		e.g.Nodes.At(r).Calls = e.g.CompLists.Add(e.combiner(combinerKey{kind: graph.ReduceSum, dtype: b.Dtype(x)}))
	}
	return r
}

// avgPool is the windows' sums over their sizes, or over the sums of ones in their place.
func (e *expander) avgPool(b *graph.Builder, n, x graph.Node) graph.Node {
	ws, ok := e.from.Windows(n, len(b.Dims(x)))
	if !ok {
		return b.Fail(target.Errorf(target.User, "%s: the window does not fit", e.from.NodeName(n)))
	}
	sum := e.sumWindow(b, x, ws)
	if e.from.Int(n, graph.AttrCountPad, 0) != 0 {
		count := 1.0
		for _, w := range ws {
			count *= float64(w.Size)
		}
		return b.Div(sum, b.Like(sum, count))
	}
	ones := b.Broadcast(b.Like(x, 1), nil, b.Dims(x))
	return b.Div(sum, e.sumWindow(b, ones, ws))
}

// cumSum is a window of the whole dimension, padded so that it reaches back (or forward) to the end; exclusive shifts it by one.
func (e *expander) cumSum(b *graph.Builder, n, x graph.Node) graph.Node {
	ws := unitWindows(len(b.Dims(x)))
	at := e.from.Int(n, graph.AttrDim, 0)
	size := b.Dims(x)[at]
	if size == 0 {
		return b.Unary(graph.OpCopy, x)
	}
	reach, gap := size-1, int64(0)
	if e.from.Int(n, graph.AttrExclusive, 0) != 0 {
		reach, gap = size, -1
	}
	w := graph.Window{Size: size, Stride: 1, PadLow: reach, PadHigh: gap, LhsDilate: 1, RhsDilate: 1}
	if e.from.Int(n, graph.AttrReverse, 0) != 0 {
		w.PadLow, w.PadHigh = gap, reach
	}
	ws[at] = w
	return e.sumWindow(b, x, ws)
}

func unitWindows(rank int) []graph.Window {
	ws := make([]graph.Window, rank)
	for i := range ws {
		ws[i] = graph.Window{Size: 1, Stride: 1, LhsDilate: 1, RhsDilate: 1}
	}
	return ws
}

// lrn divides by (bias + alpha/size·Σx²)^beta over size channels; of an even size the extra one lies after the centre.
func (e *expander) lrn(b *graph.Builder, n, x graph.Node) graph.Node {
	from := e.from
	size := from.Int(n, graph.AttrSize, 1)
	ws := unitWindows(len(b.Dims(x)))
	ws[1].Size, ws[1].PadLow = size, (size-1)/2
	ws[1].PadHigh = size - 1 - ws[1].PadLow
	sum := e.sumWindow(b, b.Mul(x, x), ws)
	scaled := b.Mul(sum, b.Like(x, from.Float(n, graph.AttrAlpha, 1e-4)/float64(size)))
	base := b.Add(scaled, b.Like(x, from.Float(n, graph.AttrBias, 1)))
	return b.Div(x, b.Binary(graph.OpPow, base, b.Like(x, from.Float(n, graph.AttrBeta, 0.75))))
}

// arg reduces pairs of value and index.
func (e *expander) arg(b *graph.Builder, n, x graph.Node) graph.Node {
	g, from := e.g, e.from
	k := argKey(from, n)
	kind := graph.ReduceMax
	if k.op == graph.OpArgMin {
		kind = graph.ReduceMin
	}
	bits, ok := kind.Identity(k.dtype)
	c := e.combiner(k)
	if !ok || c == 0 {
		return b.Fail(target.NotSupported(k.op.String()+" of "+k.dtype.String(), "%s of %s", k.op, k.dtype))
	}
	at := from.Int(n, graph.AttrDim, 0)
	index := b.Iota(k.index, b.Dims(x), int(at))
	init := g.AddSplat(b.C, g.Tensor(k.dtype), bits, 0)
	pair := b.NodeCalls(graph.OpReduce, 0, []graph.Node{x, index, init, b.Scalar(k.index, 0)}, []graph.Comp{c}, g.IntsAttr(graph.AttrDims, at))
	return b.Elem(pair, 1)
}

// indices are those of take, negative ones counted from the end.
func (e *expander) indices(b *graph.Builder, x, idx graph.Node, at int64) graph.Node {
	if !b.Dtype(idx).Signed() {
		return idx
	}
	size := b.Like(idx, float64(b.Dims(x)[at]))
	return b.Select(b.Compare(graph.DirLT, idx, b.Like(idx, 0)), b.Add(idx, size), idx)
}

func (e *expander) take(b *graph.Builder, n graph.Node, ins []graph.Node) graph.Node {
	g, x := e.g, ins[0]
	at := e.from.Int(n, graph.AttrDim, 0)
	idx := e.indices(b, x, ins[1], at)
	rank := int64(len(b.Dims(idx)))
	sizes := slices.Clone(b.Dims(x))
	sizes[at] = 1
	var offset []int64
	for i := range int64(len(sizes)) {
		switch {
		case i < at:
			offset = append(offset, i)
		case i > at:
			offset = append(offset, i-1+rank)
		}
	}
	return b.Node(graph.OpGather, 0, []graph.Node{x, idx}, g.IntsAttr(graph.AttrOffsetDims, offset...), g.IntsAttr(graph.AttrCollapsedDims, at),
		g.IntsAttr(graph.AttrStartIndexMap, at), g.IntsAttr(graph.AttrIndexVectorDim, rank), g.IntsAttr(graph.AttrSliceSizes, sizes...))
}

// takeAlong is a gather whose batching dimensions are all but one; those are first cut to the indices' sizes.
func (e *expander) takeAlong(b *graph.Builder, n graph.Node, ins []graph.Node) graph.Node {
	g, x := e.g, ins[0]
	at := e.from.Int(n, graph.AttrDim, 0)
	idx := e.indices(b, x, ins[1], at)
	rank := len(b.Dims(x))
	limit := slices.Clone(b.Dims(idx))
	limit[at] = b.Dims(x)[at]
	if !slices.Equal(limit, b.Dims(x)) {
		x = b.Slice(x, make([]int64, rank), limit, nil)
	}
	var batch []int64
	sizes := make([]int64, rank)
	for i := range sizes {
		sizes[i] = 1
		if int64(i) != at {
			batch = append(batch, int64(i))
		}
	}
	return b.Node(graph.OpGather, 0, []graph.Node{x, idx}, g.IntsAttr(graph.AttrOffsetDims), g.IntsAttr(graph.AttrCollapsedDims, at),
		g.IntsAttr(graph.AttrStartIndexMap, at), g.IntsAttr(graph.AttrOperandBatch, batch...), g.IntsAttr(graph.AttrIndicesBatch, batch...),
		g.IntsAttr(graph.AttrIndexVectorDim, int64(rank)), g.IntsAttr(graph.AttrSliceSizes, sizes...))
}

// textOutputs reports whether reading the text of g gives its outputs as they are: they are the leaves of the root as Reader lists them.
// skip are the unnamed get-tuple-element nodes that the reader adds by itself.
func textOutputs(g *graph.Graph) (skip map[graph.Node]bool, ok bool) {
	root := g.Comps.At(g.Entry).Root
	if root == 0 || len(g.Outputs) == 0 && !(g.IsTuple(g.Nodes.At(root).Type) && len(g.Elems(g.Nodes.At(root).Type)) == 0) {
		return nil, false
	}
	outs := g.Outputs
	next := func(n graph.Node) bool {
		if len(outs) == 0 || outs[0].Node != n {
			return false
		}
		outs = outs[1:]
		return true
	}
	stack := []graph.Node{root}
	for steps := 0; len(stack) > 0; steps++ {
		if steps > 1<<20 {
			return nil, false // tuples of tuples of nothing
		}
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		t := g.Nodes.At(n).Type
		switch {
		case !g.IsTuple(t):
			if !next(n) {
				return nil, false
			}
		case g.Op(n) == graph.OpTuple:
			ins := g.Operands(n)
			for i := len(ins) - 1; i >= 0; i-- {
				stack = append(stack, ins[i])
			}
		default:
			for i := range g.Elems(t) {
				if len(outs) == 0 {
					return nil, false
				}
				o := outs[0].Node
				if g.Op(o) != graph.OpGetTupleElement || g.Operands(o)[0] != n || g.Int(o, graph.AttrIndex, -1) != int64(i) ||
					g.Nodes.At(o).Name != 0 {
					return nil, false
				}
				if skip == nil {
					skip = map[graph.Node]bool{}
				}
				skip[o] = true
				outs = outs[1:]
			}
		}
	}
	if len(outs) > 0 {
		return nil, false
	}
	if len(skip) > 0 {
		row := g.Comps.At(g.Entry)
		for n := row.First; n < row.First+graph.Node(row.Count); n++ {
			for _, x := range g.Operands(n) {
				if skip[x] {
					return nil, false // someone uses it: it must be written
				}
			}
		}
	}
	return skip, true
}
