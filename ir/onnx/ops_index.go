package onnx

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// opGather takes slices by index. Known indices that form a run become a slice, which needs no indirect access.
func opGather(e *emit) {
	_, have := e.typeOf(0)
	a := e.axis(e.attrInt("axis", 0), len(have))
	d, idims := e.typeOf(1)
	if !d.IsInt() {
		e.fail("indices of type %v", d)
	}
	if k := e.known(1); k != nil {
		if l, ok := k.ints(); ok && len(l) > 0 {
			if start, ok := run(l, have[a]); ok {
				x := e.sliceDim(e.in(0), a, start, start+int64(len(l)))
				out := slices.Concat(have[:a], idims, have[a+1:])
				if e.g == e.r.g && x == e.in(0) && slices.Equal(out, have) {
					e.pass(0)
					return
				}
				e.set(0, e.reshape(x, out...))
				return
			}
		}
	}
	e.set(0, e.ok(e.b.Take(e.in(0), e.in(1), a)))
}

// run reports whether indices into n elements are start, start+1, start+2… once brought into [0, n).
func run(l []int64, n int64) (start int64, ok bool) {
	for i, v := range l {
		if v < 0 {
			v += n
		}
		if i == 0 {
			start = v
		}
		if v < 0 || v >= n || v != start+int64(i) {
			return 0, false
		}
	}
	return start, true
}

func opGatherElements(e *emit) {
	x, idx := e.in(0), e.in(1)
	a := e.axis(e.attrInt("axis", 0), e.rank(x))
	e.set(0, e.ok(e.b.TakeAlong(x, idx, a)))
}

// wrapIndex brings indices in [-n, n) into [0, n).
func (e *emit) wrapIndex(idx N, n N) N {
	return e.sel(e.compare(graph.DirLT, idx, e.like(idx, 0)), e.plus(idx, n), idx)
}

// sizesOf is a constant of the first k dimensions of x from dimension from on, in the type of idx.
func (e *emit) sizesOf(x, idx N, from, k int) N {
	return e.ok(e.b.Ints(e.dtype(idx), []int64{int64(k)}, e.dims(x)[from:from+k]...))
}

// opGatherND reads the slices that the vectors in the last dimension of the indices point to.
func opGatherND(e *emit) {
	x, idx := e.in(0), e.in(1)
	e.needRank(x, 1)
	e.needRank(idx, 1)
	b := int(e.attrInt("batch_dims", 0))
	r, q := e.rank(x), e.rank(idx)
	k := int(min(e.dims(idx)[q-1], int64(r)+1))
	if b < 0 || b >= min(r, q) || b+k > r || k < 1 {
		e.fail("indices of dims %v into %v with %d batch dimensions", e.dims(idx), e.dims(x), b)
	}
	idx = e.wrapIndex(idx, e.sizesOf(x, idx, b, k))
	sizes := e.shape(x)
	var batch, collapsed, index, offset []int64
	for i := range b {
		batch, sizes[i] = append(batch, int64(i)), 1
	}
	for i := b; i < b+k; i++ {
		collapsed, index, sizes[i] = append(collapsed, int64(i)), append(index, int64(i)), 1
	}
	for i := b + k; i < r; i++ {
		offset = append(offset, int64(q-1+i-b-k))
	}
	g := e.g
	e.set(0, e.add(graph.OpGather, 0, []N{x, idx}, g.IntsAttr(graph.AttrOffsetDims, offset...), g.IntsAttr(graph.AttrCollapsedDims, collapsed...),
		g.IntsAttr(graph.AttrStartIndexMap, index...), g.IntsAttr(graph.AttrIndexVectorDim, int64(q-1)),
		g.IntsAttr(graph.AttrOperandBatch, batch...), g.IntsAttr(graph.AttrIndicesBatch, batch...), g.IntsAttr(graph.AttrSliceSizes, sizes...)))
}

// combiner is how a scatter joins an update with what is there; ok is false for a name that is none.
func combiner(reduction string) (k graph.ReduceKind, ok bool) {
	switch reduction {
	case "none", "":
		return graph.ReduceOther, true
	case "add":
		return graph.ReduceSum, true
	case "mul":
		return graph.ReduceProd, true
	case "max":
		return graph.ReduceMax, true
	case "min":
		return graph.ReduceMin, true
	}
	return 0, false
}

// scatter appends a scatter. Where updates replace, the computation that says so is made when this one is closed: computations do
// not nest in the node table.
func (e *emit) scatter(x, idx, up N, attrs ...graph.Attr) N {
	red := e.attrStr("reduction", "none")
	kind, ok := combiner(red)
	if !ok {
		e.fail("reduction is %q", red)
	}
	if kind != graph.ReduceOther {
		attrs = append(attrs, e.g.IntsAttr(graph.AttrKind, int64(kind)))
	}
	y := e.add(graph.OpScatter, 0, []N{x, idx, up}, attrs...)
	if kind == graph.ReduceOther {
		e.replace = append(e.replace, y)
	}
	return y
}

// addReplacers gives the scatters of a graph whose computation is closed what they call: the second of two scalars.
func addReplacers(g *graph.Graph, scatters []N) error {
	comps := map[graph.Dtype]graph.Comp{}
	for _, n := range scatters {
		d := g.Dtype(n)
		c, ok := comps[d]
		if !ok {
			b := graph.Begin(g, "replace."+d.String())
			b.Param("old", d)
			var err error
			if c, err = b.End(b.Param("new", d)); err != nil {
				return err
			}
			comps[d] = c
		}
		g.Nodes.At(n).Calls = g.CompLists.AddSlice([]graph.Comp{c})
	}
	return nil
}

func opScatterND(e *emit) {
	x, idx, up := e.in(0), e.in(1), e.in(2)
	e.needRank(x, 1)
	e.needRank(idx, 1)
	r, q := e.rank(x), e.rank(idx)
	k := int(min(e.dims(idx)[q-1], int64(r)+1))
	if k < 1 || k > r {
		e.fail("indices of dims %v into %v", e.dims(idx), e.dims(x))
	}
	idx = e.wrapIndex(idx, e.sizesOf(x, idx, 0, k))
	var inserted, window []int64
	for i := range k {
		inserted = append(inserted, int64(i))
	}
	for i := k; i < r; i++ {
		window = append(window, int64(q-1+i-k))
	}
	g := e.g
	e.set(0, e.scatter(x, idx, up, g.IntsAttr(graph.AttrUpdateWindowDims, window...), g.IntsAttr(graph.AttrInsertedDims, inserted...),
		g.IntsAttr(graph.AttrScatterDims, inserted...), g.IntsAttr(graph.AttrIndexVectorDim, int64(q-1))))
}

// opScatterElements scatters single elements: each one's index vector is its own position with the axis replaced.
func opScatterElements(e *emit) {
	x, idx, up := e.in(0), e.in(1), e.in(2)
	r := e.rank(x)
	if e.rank(idx) != r || !slices.Equal(e.dims(idx), e.dims(up)) {
		e.fail("indices of dims %v and updates of dims %v for %v", e.dims(idx), e.dims(up), e.dims(x))
	}
	a := e.axis(e.attrInt("axis", 0), r)
	d := e.dtype(idx)
	idx = e.wrapIndex(idx, e.like(idx, float64(e.dims(x)[a])))
	shape := e.shape(idx)
	vec := append(slices.Clone(shape), 1)
	parts := make([]N, r)
	var all []int64
	for i := range parts {
		all = append(all, int64(i))
		if parts[i] = idx; i != a {
			parts[i] = e.iota(d, shape, i)
		}
		parts[i] = e.reshape(parts[i], vec...)
	}
	g := e.g
	e.set(0, e.scatter(x, e.concat(r, parts...), up, g.IntsAttr(graph.AttrUpdateWindowDims), g.IntsAttr(graph.AttrInsertedDims, all...),
		g.IntsAttr(graph.AttrScatterDims, all...), g.IntsAttr(graph.AttrIndexVectorDim, int64(r))))
}

// opTensorScatter writes update into a cache at a position for each batch entry. Position s of the axis takes row s - start of
// the update, modulo the length in circular mode, where the update has such a row.
func opTensorScatter(e *emit) {
	x, up := e.in(0), e.in(1)
	r := e.rank(x)
	a := e.axis(e.attrInt("axis", -2), r)
	if e.rank(up) != r || a == 0 {
		e.fail("update of dims %v for %v along axis %d", e.dims(up), e.dims(x), a)
	}
	size, rows := e.dims(x)[a], e.dims(up)[a]
	if rows > size || rows == 0 {
		e.fail("update of dims %v for %v along axis %d", e.dims(up), e.dims(x), a)
	}
	pos := e.iota(graph.S64, e.shape(x), a)
	if e.has(2) {
		pos = e.minus(pos, e.convert(e.along(e.in(2), 0, r), graph.S64))
	}
	switch mode := e.attrStr("mode", "linear"); mode {
	case "linear":
	case "circular":
		n := e.like(pos, float64(size))
		pos = e.bin(graph.OpRem, pos, n)
		pos = e.sel(e.compare(graph.DirLT, pos, e.like(pos, 0)), e.plus(pos, n), pos)
	default:
		e.fail("mode %q", mode)
	}
	last := e.like(pos, float64(rows-1))
	inside := e.bin(graph.OpAnd, e.compare(graph.DirGE, pos, e.like(pos, 0)), e.compare(graph.DirLE, pos, last))
	new := e.ok(e.b.TakeAlong(up, e.clamp(e.like(pos, 0), pos, last), a))
	e.set(0, e.sel(inside, new, x))
}

func opOneHot(e *emit) {
	idx := e.in(0)
	depth := e.int(1)
	vals := e.in(2)
	if e.rank(vals) != 1 || e.dims(vals)[0] != 2 {
		e.fail("values of dims %v, expected [2]", e.dims(vals))
	}
	if depth < 0 {
		e.fail("depth %d", depth)
	}
	r := e.rank(idx) + 1
	a := e.axis(e.attrInt("axis", -1), r)
	if e.isFloat(idx) {
		idx = e.convert(idx, graph.S64)
	}
	idx = e.wrapIndex(idx, e.like(idx, float64(depth)))
	split := slices.Insert(e.shape(idx), a, 1)
	out := slices.Insert(e.shape(idx), a, depth)
	hit := e.compare(graph.DirEQ, e.iota(e.dtype(idx), out, a), e.reshape(idx, split...))
	off, on := e.reshape(e.sliceDim(vals, 0, 0, 1)), e.reshape(e.sliceDim(vals, 0, 1, 2))
	e.set(0, e.sel(hit, on, off))
}

// opTrilu keeps the triangle above (or below) diagonal k of the last two dimensions.
func opTrilu(e *emit) {
	x := e.in(0)
	e.needRank(x, 2)
	k := int64(0)
	if e.has(1) {
		k = e.int(1)
	}
	d := e.shape(x)
	m := d[len(d)-2:]
	lim := m[0] + m[1]
	k = min(max(k, -lim), lim)
	row, col := e.iota(graph.S32, m, 0), e.iota(graph.S32, m, 1)
	diff := e.minus(col, row)
	dir := graph.DirLE
	if e.attrBool("upper", 1) {
		dir = graph.DirGE
	}
	keep := e.compare(dir, diff, e.like(diff, float64(k)))
	e.set(0, e.sel(keep, x, e.splat(e.dtype(x), d, 0)))
}

// opEyeLike has ones on diagonal k.
func opEyeLike(e *emit) {
	d, dims := e.typeOf(0)
	if code := e.attrInt("dtype", 0); code != 0 {
		var err error
		if d, err = dtypeOf(code); err != nil {
			panic(bail{err})
		}
	}
	if len(dims) != 2 {
		e.fail("dims %v, expected a matrix", dims)
	}
	diff := e.minus(e.iota(graph.S64, dims, 1), e.iota(graph.S64, dims, 0))
	e.set(0, e.cast(e.compare(graph.DirEQ, diff, e.like(diff, float64(e.attrInt("k", 0)))), d))
}
