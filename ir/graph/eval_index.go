package graph

import (
	"slices"
	"sort"
)

// assigns reports a combiner that keeps the update: its result is its second parameter.
func assigns(g *Graph, c Comp) bool {
	ps := g.Params(c)
	return len(ps) == 2 && g.Comps.At(c).Root == ps[1]
}

// scatter updates windows of the operands in index order; a window that does not fit is left out, as XLA says. A scatter
// without a computation and without a kind assigns.
func (r *run) scatter(n Node, outs []Tensor, ins []Tensor) error {
	g := r.g
	k := len(outs)
	idx := ins[k]
	for j := range outs {
		copy(outs[j].Data, ins[j].Data)
	}
	kind := KindOf(g, n)
	assign, general := false, false
	calls := g.Calls(n)
	switch {
	case k > 1 || kind == ReduceOther && len(calls) > 0:
		if k == 1 && assigns(g, calls[0]) {
			assign = true
		} else {
			general = true
		}
	case kind == ReduceOther:
		assign = true
	}
	dims, up := outs[0].Dims, ins[k+1]
	if up.Len() == 0 {
		return nil
	}
	w := newIndexer(g, n, idx, g.IntList(n, AttrScatterDims))
	window := g.IntList(n, AttrUpdateWindowDims)
	gone := append(slices.Clone(g.IntList(n, AttrInsertedDims)), g.IntList(n, AttrOperandBatch)...)
	xs, us := rowMajor(dims), rowMajor(up.Dims)
	full := fill(make([]int64, len(dims)), 1) // the window's extent in every operand dimension
	var wDims, dStr, uStr []int64
	for i := range dims {
		if !slices.Contains(gone, int64(i)) {
			u := window[len(wDims)]
			full[i] = up.Dims[u]
			wDims, dStr, uStr = append(wDims, up.Dims[u]), append(dStr, xs[i]), append(uStr, us[u])
		}
	}
	bStr := batchStrides(us, window)
	start := make([]int64, len(dims))
	var b box
	if !b.set(wDims, dStr, uStr) {
		return nil
	}
	last := len(b.dims) - 1
	m, ds, ss := int(b.dims[last]), int(b.a[last]), int(b.b[last])
	var fail error
	for more := true; more; more = w.next() {
		w.start(start)
		var dOff, uOff int64
		fits := true
		for i, s := range start {
			if s < 0 || s > dims[i]-full[i] {
				fits = false
			}
			dOff += s * xs[i]
		}
		if !fits {
			continue
		}
		for i, a := range w.at {
			uOff += a * bStr[i]
		}
		if assign {
			b.copy(outs[0].Data, dOff, up.Data, uOff, up.Dtype.Size())
			continue
		}
		b.each(func(da, ua int64) {
			if fail == nil {
				fail = r.combineLine(n, kind, general, outs, ins[k+1:], int(dOff+da), ds, int(uOff+ua), ss, m)
			}
		})
		if fail != nil {
			return fail
		}
	}
	return nil
}

// combineLine combines m elements of each operand with those of its update.
func (r *run) combineLine(n Node, kind ReduceKind, general bool, outs, ups []Tensor, d, ds, u, us, m int) error {
	gather := func(t Tensor, off, stride int) Tensor {
		l := NewTensor(t.Dtype, int64(m))
		copyND(l.Data, 0, []int64{1}, t.Data, int64(off), []int64{int64(stride)}, []int64{int64(m)}, t.Dtype.Size())
		return l
	}
	var args []Tensor
	for _, t := range outs {
		args = append(args, gather(t, d, ds))
	}
	for i, t := range ups {
		args = append(args, gather(t, u, us))
		if !general {
			switch domainOf(t.Dtype) {
			case domF32, domF64, domInt:
			default:
				return r.g.unsupported(n, "%s is not evaluated", t.Dtype)
			}
			args[i] = r.combine(kind, args[i], args[len(outs)+i])
		}
	}
	if general {
		var err error
		if args, err = r.lift(n, r.g.Calls(n)[0], args, int64(m)); err != nil {
			return err
		}
	}
	for i, t := range outs {
		copyND(t.Data, int64(d), []int64{int64(ds)}, args[i].Data, 0, []int64{1}, []int64{int64(m)}, t.Dtype.Size())
	}
	return nil
}

// combine is one elementwise step of a plain combiner, rounded to the type.
func (r *run) combine(kind ReduceKind, a, b Tensor) Tensor {
	out := NewTensor(a.Dtype, a.Dims...)
	op, n := kind.Op(), a.Len()
	w := r.lanes
	for lo := 0; lo < n; lo += chunk {
		m := min(chunk, n-lo)
		switch domainOf(a.Dtype) {
		case domF32:
			floatLanes(op, nil, w.f32[3][:m], [3][]float32{loadF32(a.Dtype, a.Data, lo, m, w.f32[0][:]), loadF32(b.Dtype, b.Data, lo, m, w.f32[1][:])})
			storeF32(out.Dtype, out.Data, lo, w.f32[3][:m])
		case domF64:
			floatLanes(op, nil, w.f64[3][:m], [3][]float64{view[float64](a.Data)[lo : lo+m], view[float64](b.Data)[lo : lo+m]})
			storeF64(out.Dtype, out.Data, lo, w.f64[3][:m])
		default:
			intLanes(op, a.Dtype, w.i64[3][:m], [3][]int64{loadInts(a.Dtype, a.Data, lo, m, w.i64[0][:]), loadInts(b.Dtype, b.Data, lo, m, w.i64[1][:])})
			storeInts(out.Dtype, out.Data, lo, w.i64[3][:m])
		}
	}
	return out
}

// SortKey recognises a comparator that orders by one operand: compare(parameter 2k, parameter 2k+1), or swapped, by less or
// greater. The parameters may be converted to a wider type, and cleaned as JAX does it: NaN replaced by one NaN and -0 by 0.
// ok is false for anything else.
func SortKey(g *Graph, c Comp) (operand int, descending, ok bool) {
	root := g.Comps.At(c).Root
	if g.Op(root) != OpCompare {
		return 0, false, false
	}
	ins := g.Operands(root)
	x, y := cleaned(g, ins[0]), cleaned(g, ins[1])
	if g.Op(x) != OpParameter || g.Op(y) != OpParameter {
		return 0, false, false
	}
	a, b := g.Int(x, AttrIndex, 0), g.Int(y, AttrIndex, 0)
	dir := Dir(g.Int(root, AttrDirection, 0))
	if dir != DirLT && dir != DirGT || a/2 != b/2 || a == b {
		return 0, false, false
	}
	return int(a / 2), (dir == DirGT) != (a > b), true
}

// cleaned looks through select(x != x, NaN, …), select(x == 0, 0, …) and conversions that keep order and distinctness.
func cleaned(g *Graph, n Node) Node {
	for range 8 {
		ins := g.Operands(n)
		switch g.Op(n) {
		case OpConvert:
			from, to := g.Dtype(ins[0]), g.Dtype(n)
			if !from.IsFloat() || !(to == F64 || to == F32 && from != F64) {
				return n
			}
			n = ins[0]
			continue
		case OpSelect:
			bits, isConst := splatBits(g, ins[1])
			if g.Op(ins[0]) != OpCompare || !isConst {
				return n
			}
			v := DecodeFloat(g.Dtype(ins[1]), bits)
			cmp := g.Operands(ins[0])
			x := cleaned1(g, ins[2])
			switch dir := Dir(g.Int(ins[0], AttrDirection, 0)); {
			case dir == DirNE && v != v && cmp[0] == cmp[1] && cleaned1(g, cmp[0]) == x:
			case dir == DirEQ && v == 0 && cmp[0] == x:
				if z, ok := splatBits(g, cmp[1]); !ok || DecodeFloat(g.Dtype(cmp[1]), z) != 0 {
					return n
				}
			default:
				return n
			}
			n = ins[2]
			continue
		}
		return n
	}
	return n
}

// cleaned1 looks through one select on an equality with zero.
func cleaned1(g *Graph, n Node) Node {
	if g.Op(n) == OpSelect {
		ins := g.Operands(n)
		if c := g.Operands(ins[0]); g.Op(ins[0]) == OpCompare && Dir(g.Int(ins[0], AttrDirection, 0)) == DirEQ && c[0] == ins[2] {
			return ins[2]
		}
	}
	return n
}

// sort orders the lines of all operands by the comparator of the first call, stably. Without a computation it sorts
// ascending by operand 0.
func (r *run) sort(n Node, outs, ins []Tensor) error {
	g := r.g
	key, desc, plain := 0, false, true
	if cs := g.Calls(n); len(cs) > 0 {
		key, desc, plain = SortKey(g, cs[0])
	}
	dim := int(g.Int(n, AttrDim, 0))
	perm := make([]int, ins[0].Dims[dim])
	keys := make([]uint64, len(perm))
	return lines(ins[0].Dims, dim, func(_ int, l line) error {
		var fail error
		if plain {
			sortLine(ins[key], l, perm, keys, desc)
		} else {
			for i := range perm {
				perm[i] = i
			}
			args := make([]Tensor, 2*len(ins))
			sort.SliceStable(perm, func(a, b int) bool {
				for i, t := range ins {
					s := t.Dtype.Size()
					x, y := l.at(perm[a])*s, l.at(perm[b])*s
					args[2*i] = Tensor{t.Dtype, []int64{1}, t.Data[x : x+s]}
					args[2*i+1] = Tensor{t.Dtype, []int64{1}, t.Data[y : y+s]}
				}
				less, err := r.lift(n, g.Calls(n)[0], args, 1)
				if err != nil {
					fail = err
					return false
				}
				return less[0].Data[0] != 0
			})
		}
		if fail != nil {
			return fail
		}
		for i, t := range ins {
			s := t.Dtype.Size()
			for to, from := range perm {
				d, x := l.at(to)*s, l.at(from)*s
				copy(outs[i].Data[d:d+s], t.Data[x:x+s])
			}
		}
		return nil
	})
}

// lift evaluates a computation on scalars over many lanes at once: every argument has one element a lane. Only elementwise
// operators, constants and a root tuple may occur; a graph from Canonical has no calls left in it.
func (r *run) lift(n Node, c Comp, args []Tensor, width int64) ([]Tensor, error) {
	g := r.g
	p, err := r.plan(c)
	if err != nil {
		return nil, err
	}
	row := g.Comps.At(c)
	vals := make([]Tensor, row.Count)
	at := func(x Node) Tensor { return vals[x-row.First] }
	for _, x := range p.order {
		d := g.Dtype(x)
		switch op := g.Op(x); {
		case op == OpParameter:
			i := g.Int(x, AttrIndex, 0)
			if int(i) >= len(args) {
				return nil, g.nodeErr(n, "computation %s has more parameters than the %d values", g.Names.String(row.Name), len(args))
			}
			vals[x-row.First] = args[i]
		case op == OpConstant && len(g.Dims(x)) == 0:
			b, err := Materialise(g, x)
			if err != nil {
				return nil, err
			}
			v := NewTensor(d, width)
			fillElem(v, Tensor{Dtype: d, Data: aligned(b, d.Size())})
			vals[x-row.First] = v
		case op == OpTuple && x == row.Root:
			var out []Tensor
			for _, e := range g.Operands(x) {
				out = append(out, at(e))
			}
			return out, nil
		case op == OpReshape || op == OpBitcast || op == OpBroadcast && len(g.Dims(x)) == 0:
			vals[x-row.First] = at(g.Operands(x)[0])
		case (op.Class() == ClassUnary || op.Class() == ClassBinary || op.Class() == ClassTernary) && len(g.Dims(x)) == 0:
			var ins []Tensor
			for _, e := range g.Operands(x) {
				ins = append(ins, at(e))
			}
			v := NewTensor(d, width)
			if err := r.elementwise(x, v, ins); err != nil {
				return nil, err
			}
			vals[x-row.First] = v
		default:
			return nil, g.unsupported(x, "not evaluated inside the combining computation of %s", g.NodeName(n))
		}
	}
	return []Tensor{at(row.Root)}, nil
}

// reduceGeneral evaluates OpReduce with any combining computation: neighbours are combined pairwise, in order, over all
// lanes at once, until one is left; the initial value comes first. XLA asks for an associative computation.
func (r *run) reduceGeneral(n Node, outs, ins, inits []Tensor) error {
	g := r.g
	dims, reduced := ins[0].Dims, g.IntList(n, AttrDims)
	var kept []int64
	for i := range int64(len(dims)) {
		if !slices.Contains(reduced, i) {
			kept = append(kept, i)
		}
	}
	perm := append(slices.Clone(reduced), kept...)
	slices.Sort(perm[:len(reduced)])
	rows, width := count(pick(dims, perm[:len(reduced)])), int64(count(pick(dims, kept)))
	comp := g.Calls(n)[0]
	// cur holds rows of width lanes for every operand, the initial value as row 0.
	cur := make([]Tensor, len(ins))
	for i, t := range ins {
		s := t.Dtype.Size()
		cur[i] = NewTensor(t.Dtype, int64(rows+1)*width)
		first := Tensor{t.Dtype, []int64{width}, cur[i].Data[:int(width)*s]}
		fillElem(first, inits[i])
		to := pick(dims, perm)
		copyND(cur[i].Data, width, rowMajor(to), t.Data, 0, pick(rowMajor(dims), perm), to, s)
	}
	for rows := int64(rows + 1); rows > 1; rows = (rows + 1) / 2 {
		half := rows / 2
		var args []Tensor
		for side := range int64(2) {
			for _, t := range cur {
				a := NewTensor(t.Dtype, half*width)
				copyND(a.Data, 0, []int64{width, 1}, t.Data, side*width, []int64{2 * width, 1}, []int64{half, width}, t.Dtype.Size())
				args = append(args, a)
			}
		}
		res, err := r.lift(n, comp, args, half*width)
		if err != nil {
			return err
		}
		for i, t := range cur {
			s := t.Dtype.Size()
			next := NewTensor(t.Dtype, (rows+1)/2*width)
			copy(next.Data, res[i].Data)
			if rows%2 != 0 {
				copy(next.Data[int(half*width)*s:], t.Data[int((rows-1)*width)*s:int(rows*width)*s])
			}
			cur[i] = next
		}
	}
	for i := range outs {
		copy(outs[i].Data, cur[i].Data)
	}
	return nil
}
