package graph

import (
	"math"
	"slices"
)

// Window is one dimension of a sliding window.
type Window struct {
	Size, Stride, PadLow, PadHigh int64
	LhsDilate, RhsDilate          int64 // 1 = none
	Reverse                       bool
}

// Windows reads the window attributes of n for rank dimensions; absent lists are size 1, stride 1, no padding, no dilation.
// ok is false when a list has another length or a value is out of range.
func (g *Graph) Windows(n Node, rank int) (ws []Window, ok bool) {
	ws = make([]Window, rank)
	for i := range ws {
		ws[i] = Window{Size: 1, Stride: 1, LhsDilate: 1, RhsDilate: 1}
	}
	ok = true
	each := func(k Key, low int64, set func(w *Window, x int64)) {
		l := g.IntList(n, k)
		if len(l) == 0 {
			return
		}
		if len(l) != rank {
			ok = false
			return
		}
		for i, x := range l {
			if x < low || x > MaxElements {
				ok = false
				return
			}
			set(&ws[i], x)
		}
	}
	each(AttrWindowSize, 1, func(w *Window, x int64) { w.Size = x })
	each(AttrWindowStride, 1, func(w *Window, x int64) { w.Stride = x })
	each(AttrWindowPadLow, -MaxElements, func(w *Window, x int64) { w.PadLow = x })
	each(AttrWindowPadHigh, -MaxElements, func(w *Window, x int64) { w.PadHigh = x })
	each(AttrWindowLhsDilate, 1, func(w *Window, x int64) { w.LhsDilate = x })
	each(AttrWindowRhsDilate, 1, func(w *Window, x int64) { w.RhsDilate = x })
	each(AttrWindowReverse, 0, func(w *Window, x int64) { w.Reverse = x != 0 })
	return ws, ok
}

// Out is the number of window positions over a dimension of size d, and false on overflow.
func (w Window) Out(d int64) (int64, bool) {
	if d > 1 && w.LhsDilate > math.MaxInt32*int64(1<<14)/(d-1) || w.Size > 1 && w.RhsDilate > MaxElements/(w.Size-1) {
		return 0, false
	}
	base := d
	if d > 0 {
		base = (d-1)*w.LhsDilate + 1
	}
	base += w.PadLow + w.PadHigh
	span := (w.Size-1)*w.RhsDilate + 1
	if base < span {
		return 0, true
	}
	return (base-span)/w.Stride + 1, true
}

func (v *inference) reduce() (Type, error) {
	g := v.g
	switch v.op {
	case OpReduce, OpReduceWindow:
		return v.reduceBy()
	case OpSort:
		if len(v.ins) == 0 {
			return v.errf("no operands")
		}
		if _, err := v.dim(AttrDim, len(v.dims(0))); err != nil {
			return 0, err
		}
		elems := make([]Type, len(v.ins))
		for i := range v.ins {
			if !sameDims(v.dims(i), v.dims(0)) {
				return v.errf("operand %d has another shape than operand 0", i)
			}
			elems[i] = v.inType(i)
		}
		if cs := v.calls(); len(cs) > 0 {
			if cs[0] == 0 || int(cs[0]) >= g.Comps.Len() || len(g.Params(cs[0])) != 2*len(v.ins) || v.rootType(cs[0]) != g.Tensor(Bool) {
				return v.errf("the comparator does not take two elements of each operand and give pred[]")
			}
		}
		if len(elems) == 1 {
			return elems[0], nil
		}
		return g.TupleOf(elems...), nil
	}
	d, dims := v.dtype(0), v.dims(0)
	if !(accFloat | accInt).has(d) {
		return v.errf("%s does not take %s", v.op, d)
	}
	switch v.op {
	case OpArgMax, OpArgMin:
		at, err := v.dim(AttrDim, len(dims))
		if err != nil {
			return 0, err
		}
		if dims[at] == 0 {
			return v.errf("dimension %d is empty", at)
		}
		to := v.wanted(S64)
		if !to.IsInt() {
			return v.errf("%s gives an integer, not %s", v.op, to)
		}
		return g.Tensor(to, slices.Concat(dims[:at], dims[at+1:])...), nil
	case OpCumSum:
		if _, err := v.dim(AttrDim, len(dims)); err != nil {
			return 0, err
		}
		return v.inType(0), nil
	case OpTopK:
		k := g.Int(v.n, AttrK, -1)
		if len(dims) == 0 || k < 0 || k > dims[len(dims)-1] {
			return v.errf("the top %d of the last dimension of %v", k, dims)
		}
		out := slices.Clone(dims)
		out[len(out)-1] = k
		return g.TupleOf(g.Tensor(d, out...), g.Tensor(v.topIndex(), out...)), nil
	case OpAvgPool:
		if !d.IsFloat() {
			return v.errf("%s does not take %s", v.op, d)
		}
		out, err := v.windowDims(dims)
		if err != nil {
			return 0, err
		}
		return g.Tensor(d, out...), nil
	}
	return v.errf("no inference rule")
}

// topIndex is the element type of the indices: what the node's own type asks for, or s32.
func (v *inference) topIndex() Dtype {
	if e := v.g.Elems(v.want); len(e) == 2 && v.g.Types.At(e[1]).Dtype.IsInt() {
		return v.g.Types.At(e[1]).Dtype
	}
	return S32
}

func (v *inference) windowDims(dims []int64) ([]int64, error) {
	ws, ok := v.g.Windows(v.n, len(dims))
	if !ok {
		return nil, v.g.nodeErr(v.n, "the window does not fit rank %d", len(dims))
	}
	out := make([]int64, len(dims))
	for i, w := range ws {
		if out[i], ok = w.Out(dims[i]); !ok {
			return nil, v.g.nodeErr(v.n, "the window of dimension %d is too large", i)
		}
	}
	return out, nil
}

// reduceBy is reduce and reduce-window: n operands, n scalar initial values; the element types are the initial values'.
func (v *inference) reduceBy() (Type, error) {
	g := v.g
	if len(v.ins) < 2 || len(v.ins)%2 != 0 {
		return v.errf("%s takes n operands and n initial values; there are %d", v.op, len(v.ins))
	}
	k := len(v.ins) / 2
	dims := v.dims(0)
	var out []int64
	if v.op == OpReduce {
		gone, err := v.dimList(AttrDims, "reduced dimensions", len(dims))
		if err != nil {
			return 0, err
		}
		for i, d := range dims {
			if !slices.Contains(gone, int64(i)) {
				out = append(out, d)
			}
		}
	} else {
		var err error
		if out, err = v.windowDims(dims); err != nil {
			return 0, err
		}
	}
	elems := make([]Type, k)
	for i := range k {
		if !sameDims(v.dims(i), dims) {
			return v.errf("operand %d has another shape than operand 0", i)
		}
		if len(v.dims(k+i)) != 0 {
			return v.errf("initial value %d is not a scalar", i)
		}
		if v.dtype(i) != v.dtype(k+i) {
			return v.errf("operand %d is %s, its initial value %s", i, v.dtype(i), v.dtype(k+i))
		}
		elems[i] = g.Tensor(v.dtype(i), out...)
	}
	if err := v.combiner(k); err != nil {
		return 0, err
	}
	if k == 1 {
		return elems[0], nil
	}
	return g.TupleOf(elems...), nil
}

// combiner checks how k values are combined: a computation of 2k scalars, or for one value a kind.
func (v *inference) combiner(k int) error {
	g := v.g
	if len(v.calls()) == 0 {
		if kind := g.Int(v.n, AttrKind, 0); k != 1 || kind <= int64(ReduceOther) || kind > int64(ReduceOr) {
			return g.nodeErr(v.n, "neither a kind of reduction nor a combining computation")
		}
		return nil
	}
	c := v.calls()[0]
	if c == 0 || int(c) >= g.Comps.Len() {
		return g.nodeErr(v.n, "the combining computation is missing")
	}
	ps, root := g.Params(c), v.rootType(c)
	name := g.Names.String(g.Comps.At(c).Name)
	if len(ps) != 2*k {
		return g.nodeErr(v.n, "combining computation %s has %d parameters for %d values", name, len(ps), k)
	}
	for _, p := range ps {
		if t := g.Nodes.At(p).Type; g.IsTuple(t) || len(g.TypeDims(t)) != 0 {
			return g.nodeErr(v.n, "combining computation %s takes %s, not scalars", name, g.TypeString(t))
		}
	}
	if g.IsTuple(root) != (k > 1) || k > 1 && len(g.Elems(root)) != k {
		return g.nodeErr(v.n, "combining computation %s gives %s for %d values", name, g.TypeString(root), k)
	}
	return nil
}

func (v *inference) norm() (Type, error) {
	g := v.g
	d, dims := v.dtype(0), v.dims(0)
	if !d.IsFloat() {
		return v.errf("%s does not take %s", v.op, d)
	}
	if v.op == OpLRN {
		if g.Int(v.n, AttrSize, 0) < 1 || len(dims) < 2 {
			return v.errf("lrn of size %d over rank %d", g.Int(v.n, AttrSize, 0), len(dims))
		}
		return v.inType(0), nil
	}
	at, err := v.dim(AttrFeature, len(dims))
	if err != nil {
		return 0, err
	}
	vectors := len(v.ins)
	if v.op == OpBatchNormGrad {
		vectors = 4
		if v.inType(4) != v.inType(0) {
			return v.errf("the output gradient has another type than the operand")
		}
	}
	for i := 1; i < vectors; i++ {
		if l := v.dims(i); len(l) != 1 || l[0] != dims[at] || !v.dtype(i).IsFloat() {
			return v.errf("operand %d is not a vector of the %d features", i, dims[at])
		}
	}
	if v.op == OpBatchNormInference {
		return v.inType(0), nil
	}
	vec := v.inType(1)
	return g.TupleOf(v.inType(0), vec, vec), nil
}
