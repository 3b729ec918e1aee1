package graph

import (
	"bytes"
	"slices"
)

const (
	foldBytes = 64 << 10 // largest constant that folding makes: what the package embeds
	foldWork  = 1 << 20  // most multiply-adds or compared elements that folding spends on a node
)

// splat is the bits of a constant that is one repeated element (a constant of one element is one).
func (w *rewriter) splat(n Node) (uint64, bool) { return splatBits(w.dst, n) }

func splatBits(g *Graph, n Node) (uint64, bool) {
	row := g.Nodes.At(n)
	if row.Op != OpConstant || g.Dtype(n).Size() > 8 || g.Dtype(n).Size() == 0 {
		return 0, false
	}
	c := g.Consts.At(row.Const)
	switch c.Kind {
	case ConstSplat:
		return c.Bits, true
	case ConstDense, ConstBlob:
		if b := g.ConstBytes(row.Const); len(b) == g.Dtype(n).Size() {
			return elemBits(g.Dtype(n), b, 0), true
		}
	}
	return 0, false
}

func (w *rewriter) addSplat(like Node, bits uint64) Node {
	row := w.dst.Nodes.At(like)
	return w.dst.AddSplat(w.comp, row.Type, bits, row.Name)
}

// simplify gives a node that means what m means and is simpler, or 0. The node is older than m, or new and not yet settled.
func (w *rewriter) simplify(m Node) Node {
	d := w.dst
	ins := d.Operands(m)
	if IsIdentity(d, m) {
		return ins[0]
	}
	switch d.Op(m) {
	case OpSelect:
		if bits, ok := w.splat(ins[0]); ok {
			return ins[2-bits&1]
		}
		if ins[1] == ins[2] {
			return ins[1]
		}
	case OpReshape:
		if d.Op(ins[0]) == OpReshape {
			return w.again(m, OpReshape, d.Operands(ins[0])[0])
		}
		return w.uniform(m)
	case OpSlice:
		return w.uniform(m)
	case OpTranspose:
		if s := w.uniform(m); s != 0 {
			return s
		}
		if x := ins[0]; d.Op(x) == OpTranspose {
			perm, inner := slices.Clone(d.IntList(m, AttrDims)), d.IntList(x, AttrDims)
			for i, p := range perm {
				perm[i] = inner[p]
			}
			return w.again(m, OpTranspose, d.Operands(x)[0], d.IntsAttr(AttrDims, perm...))
		}
	case OpBroadcast:
		if x := ins[0]; d.Op(x) == OpBroadcast {
			inner, outer := slices.Clone(d.IntList(x, AttrDims)), d.IntList(m, AttrDims)
			for i, p := range inner {
				inner[i] = outer[p]
			}
			return w.again(m, OpBroadcast, d.Operands(x)[0], d.IntsAttr(AttrDims, inner...))
		}
	}
	return 0
}

// uniform turns a move of a broadcast scalar into a broadcast.
func (w *rewriter) uniform(m Node) Node {
	d := w.dst
	x := d.Operands(m)[0]
	if d.Op(x) != OpBroadcast || len(d.IntList(x, AttrDims)) != 0 {
		return 0
	}
	return w.again(m, OpBroadcast, d.Operands(x)[0], d.IntsAttr(AttrDims))
}

// again adds an operator with the type and name of m.
func (w *rewriter) again(m Node, op Op, x Node, attrs ...Attr) Node {
	row := *w.dst.Nodes.At(m)
	return w.dst.AddNode(w.comp, op, row.Type, row.Name, []Node{x}, attrs...)
}

// fold gives a constant that m equals, or 0.
func (w *rewriter) fold(m Node) Node {
	d := w.dst
	row := d.Nodes.At(m)
	op, ins := row.Op, d.Operands(m)
	if op == OpGetDimensionSize && d.Op(ins[0]) != OpSetDimensionSize {
		return w.addSplat(m, uint64(d.Dims(ins[0])[d.Int(m, AttrDim, 0)]))
	}
	if len(ins) == 0 || d.IsTuple(row.Type) || d.Dtype(m).Size() > 8 {
		return 0
	}
	switch op.Class() {
	case ClassUnary, ClassBinary, ClassTernary, ClassMove, ClassReduce, ClassContract, ClassNorm:
	default:
		return 0
	}
	if bits, ok := w.foldSplat(m); ok {
		return w.addSplat(m, bits)
	}
	return w.foldDense(m)
}

// foldSplat: elementwise operators of splats, and moves that only rearrange one splat.
func (w *rewriter) foldSplat(m Node) (uint64, bool) {
	d := w.dst
	op, ins := d.Op(m), d.Operands(m)
	first, ok := w.splat(ins[0])
	if !ok {
		return 0, false
	}
	switch op {
	case OpBroadcast, OpReshape, OpTranspose, OpReverse, OpSlice, OpDynamicSlice, OpGather:
		return first, true
	case OpConcat, OpPad, OpDynamicUpdateSlice:
		others := ins[1:]
		if op != OpConcat {
			others = ins[1:2]
		}
		for _, x := range others {
			if b, ok := w.splat(x); !ok || b != first {
				return 0, false
			}
		}
		return first, true
	}
	switch op.Class() {
	case ClassUnary, ClassBinary, ClassTernary:
	default:
		return 0, false
	}
	if op == OpBitcastConvert && d.Dtype(ins[0]).Bits() != d.Dtype(m).Bits() {
		return 0, false
	}
	ts := make([]Tensor, len(ins))
	for i, x := range ins {
		bits, ok := w.splat(x)
		if !ok {
			return 0, false
		}
		ts[i] = NewTensor(d.Dtype(x))
		putElem(ts[i].Dtype, ts[i].Data, 0, bits)
	}
	out := NewTensor(d.Dtype(m))
	r := run{in: &w.interp, g: d, lanes: &w.interp.lanes, limit: DefaultMaxMemory}
	if r.elementwise(m, out, ts) != nil {
		return 0, false // what is not evaluated stays
	}
	return elemBits(out.Dtype, out.Data, 0), true
}

// foldDense evaluates an operator of small constants and iotas whose result is small. A broadcast stays, since it says more
// than its elements do, unless it is shape arithmetic.
func (w *rewriter) foldDense(m Node) Node {
	d := w.dst
	op, ins := d.Op(m), d.Operands(m)
	t := d.Nodes.At(m).Type
	if d.TypeBytes(t) > foldBytes || op == OpBroadcast && (d.Elements(t) > 64 || !d.Dtype(m).IsInt()) {
		return 0
	}
	total := d.Elements(t)
	for _, x := range ins {
		switch d.Op(x) {
		case OpIota:
		case OpConstant:
			if d.Consts.At(d.Nodes.At(x).Const).Kind == ConstElided {
				return 0
			}
		default:
			return 0
		}
		if total += d.Elements(d.Nodes.At(x).Type); total > foldWork {
			return 0
		}
	}
	if work, ok := NodeWork(d, m); !ok || work > foldWork {
		return 0
	}
	v, err := w.evaluate(m)
	if err != nil {
		return 0 // what is not evaluated, or fails, is left for the one who runs or lowers it
	}
	size := v.Dtype.Size()
	if len(v.Data) >= size && bytes.Equal(v.Data[:len(v.Data)-size], v.Data[size:]) {
		return w.addSplat(m, elemBits(v.Dtype, v.Data, 0))
	}
	if len(v.Data) == 0 {
		return w.addSplat(m, 0)
	}
	row := d.Nodes.At(m)
	return d.AddDense(w.comp, row.Type, v.Data, row.Name)
}

// evaluate runs one operator whose operands are constants and iotas.
func (w *rewriter) evaluate(m Node) (Tensor, error) { return evalNode(&w.interp, w.dst, m) }

func evalNode(in *Interp, g *Graph, m Node) (Tensor, error) {
	r := &run{in: in, g: g, lanes: &in.lanes, limit: DefaultMaxMemory, plans: make([]*plan, g.Comps.Len())}
	ins := make([]value, len(g.Operands(m)))
	for i, x := range g.Operands(m) {
		v, err := r.eval(nil, x, nil)
		if err != nil {
			return Tensor{}, err
		}
		ins[i] = v
	}
	v, err := r.eval(nil, m, ins)
	return v.t, err
}

// NodeWork is the multiply-adds of a dot or convolution, the window elements of a pooling, else the elements read and
// written by n; false when it passes 2^62.
func NodeWork(g *Graph, n Node) (int64, bool) {
	t := g.Nodes.At(n).Type
	if g.IsTuple(t) {
		if len(g.Elems(t)) == 0 {
			return 0, true
		}
		t = g.Elems(t)[0]
	}
	work, by := g.Elements(t), int64(1)
	ins := g.Operands(n)
	mul := func(x int64) bool {
		if x > 0 && by > (1<<62)/x {
			return false
		}
		by *= x
		return true
	}
	switch g.Op(n) {
	case OpDot:
		for _, d := range g.IntList(n, AttrLhsContract) {
			if !mul(g.Dims(ins[0])[d]) {
				return 0, false
			}
		}
	case OpConv:
		w := g.Dims(ins[1])
		c, ok := g.ConvLabels(n, len(w))
		if !ok || !mul(w[c.RhsIn]) {
			return 0, false
		}
		for _, d := range c.Rhs {
			if !mul(w[d]) {
				return 0, false
			}
		}
	case OpReduceWindow, OpAvgPool:
		for _, s := range g.IntList(n, AttrWindowSize) {
			if !mul(s) {
				return 0, false
			}
		}
	case OpLRN:
		by = g.Int(n, AttrSize, 1)
	default:
		for _, x := range ins {
			if xt := g.Nodes.At(x).Type; !g.IsTuple(xt) {
				work += g.Elements(xt)
			}
		}
		return work, work >= 0
	}
	if work > 0 && by > (1<<62)/work {
		return 0, false
	}
	return work * by, true
}

// ConstValue gives the value of n when it depends on constants and iotas alone and everything on the way is small, as shape
// arithmetic is: at most 64 KiB a value and 4,096 nodes. ok is false otherwise. Readers use it for shapes, axes and paddings
// that a model computes. Nodes of called computations are not followed.
func ConstValue(g *Graph, n Node) (v Tensor, ok bool) {
	const maxNodes = 4096
	vals := map[Node]Tensor{}
	var in Interp
	r := &run{in: &in, g: g, lanes: &in.lanes, limit: DefaultMaxMemory, plans: make([]*plan, g.Comps.Len())}
	stack := []Node{n}
	for len(stack) > 0 {
		x := stack[len(stack)-1]
		if _, done := vals[x]; done {
			stack = stack[:len(stack)-1]
			continue
		}
		row := g.Nodes.At(x)
		work, fine := NodeWork(g, x)
		switch class := row.Op.Class(); {
		case len(vals)+len(stack) > maxNodes || row.Type == 0 || g.IsTuple(row.Type) || !fine || work > foldWork || g.TypeBytes(row.Type) > foldBytes,
			row.Op == OpParameter, row.Op == OpGetTupleElement, class == ClassControl && row.Op != OpGetDimensionSize, class == ClassOpaque, class == ClassCollective:
			return Tensor{}, false
		case row.Op == OpGetDimensionSize:
			t := NewTensor(g.Dtype(x))
			putElem(t.Dtype, t.Data, 0, uint64(g.Dims(g.Operands(x)[0])[g.Int(x, AttrDim, 0)]))
			vals[x] = t
			continue
		}
		ins := make([]value, 0, len(g.Operands(x)))
		for _, y := range g.Operands(x) {
			if t, done := vals[y]; done {
				ins = append(ins, value{t: t})
			} else {
				stack = append(stack, y)
			}
		}
		if len(ins) < len(g.Operands(x)) {
			continue
		}
		v, err := r.eval(nil, x, ins)
		if err != nil {
			return Tensor{}, false
		}
		vals[x] = v.t
	}
	return vals[n], true
}

// ConstInts is ConstValue of an integer or Bool tensor as int64s.
func ConstInts(g *Graph, n Node) (vals []int64, ok bool) {
	v, ok := ConstValue(g, n)
	if !ok || !v.Dtype.IsInt() && v.Dtype != Bool {
		return nil, false
	}
	return v.Ints(), true
}
