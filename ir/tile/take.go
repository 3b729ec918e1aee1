package tile

import (
	"math"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Rows of a table by indices that are known at run time only. Every such operator becomes one value, whose table is the
// operand in DRAM read as rows of contiguous elements, and whose index is a value of its own: the number of the row for each
// position of the axes that the row does not cover. Indices are computed on the engines, so they are exact below 2^24; 64-bit
// indices are read by their low words, which is right for those that fit 32 bits.

// takeInfo describes a vTake. Its operands are views of its own shape: the table, which varies along the axes of a row, and the
// index, which varies along the others.
type takeInfo struct {
	rows  int64 // of the table: the bound of the index
	pitch int64 // elements from one row to the next
	inRow uint32
}

// pick says how an operator walks one dimension of its operand: from start on, the first of size positions, which axis of the
// result visits. start is a view of the result's shape, without root for 0; axis is -1 for a dimension that the result drops.
// loose: start may be out of range, which must not go unnoticed.
type pick struct {
	start view
	size  int64
	axis  int
	loose bool
}

// varies reports a view that is not the same all along an axis.
func (v *view) varies(axis int) bool { return v.root != 0 && v.dims[axis] != 1 && v.step[axis] != 0 }

// takeRows is ONNX Gather with indices in [-d, d).
func (l *lowering) takeRows(n graph.Node) view {
	g := l.g
	x, dims := l.in(n, 0), g.Dims(n)
	at := int(g.Int(n, graph.AttrDim, 0))
	idx := l.wrapped(n, l.indices(n, 1), x.dims[at])
	if l.err != nil {
		return view{}
	}
	rank := int(idx.n)
	axes := make([]int64, rank)
	for i := range axes {
		axes[i] = int64(at + i)
	}
	ps := make([]pick, x.n)
	for d := range ps {
		ps[d] = pick{size: x.dims[d], axis: d}
		if d > at {
			ps[d].axis += rank - 1
		}
	}
	ps[at] = pick{start: idx.broadcast(axes, dims), size: 1, axis: -1, loose: true}
	return l.pickRows(n, x, dims, ps)
}

// takeAlong is ONNX GatherElements with indices in [-d, d).
func (l *lowering) takeAlong(n graph.Node) view {
	g := l.g
	x, dims := l.in(n, 0), g.Dims(n)
	at := int(g.Int(n, graph.AttrDim, 0))
	idx := l.wrapped(n, l.indices(n, 1), x.dims[at])
	if l.err != nil {
		return view{}
	}
	ps := make([]pick, x.n)
	for d := range ps {
		ps[d] = pick{size: dims[d], axis: d}
	}
	ps[at] = pick{start: idx, size: 1, axis: -1, loose: true}
	return l.pickRows(n, x, dims, ps)
}

// gather is XLA's, with batching dimensions; starts are clamped so that the window fits.
func (l *lowering) gather(n graph.Node) view {
	g := l.g
	x, dims := l.in(n, 0), g.Dims(n)
	idx := l.indices(n, 1)
	if l.err != nil {
		return view{}
	}
	offset, sizes := g.IntList(n, graph.AttrOffsetDims), g.IntList(n, graph.AttrSliceSizes)
	collapsed, batching := g.IntList(n, graph.AttrCollapsedDims), g.IntList(n, graph.AttrOperandBatch)
	vector := int(g.Int(n, graph.AttrIndexVectorDim, int64(idx.n)))
	// The index without its vector dimension, and the axes of the result that it visits.
	batch := view{root: idx.root, off: idx.off}
	place := make([]int, idx.n)
	for i := range int(idx.n) {
		if i != vector {
			place[i] = int(batch.n)
			batch.push(idx.dims[i], idx.step[i])
		}
	}
	var axes []int64
	for a := range int64(len(dims)) {
		if !slices.Contains(offset, a) {
			axes = append(axes, a)
		}
	}
	ps := make([]pick, x.n)
	window := 0
	for d := range ps {
		ps[d] = pick{size: sizes[d], axis: -1}
		if !slices.Contains(collapsed, int64(d)) && !slices.Contains(batching, int64(d)) {
			ps[d].axis = int(offset[window])
			window++
		}
	}
	for i, d := range g.IntList(n, graph.AttrIndicesBatch) {
		ps[batching[i]] = pick{size: x.dims[batching[i]], axis: int(axes[place[d]])}
	}
	for k, d := range g.IntList(n, graph.AttrStartIndexMap) {
		s := batch
		if vector < int(idx.n) {
			s.off += int64(k) * idx.step[vector]
		}
		ps[d].start = l.clamped(n, s.broadcast(axes, dims), x.dims[d]-sizes[d])
	}
	return l.pickRows(n, x, dims, ps)
}

// sliceRows is a slice whose start is known at run time, clamped so that it fits.
func (l *lowering) sliceRows(n graph.Node) view {
	x, dims := l.in(n, 0), l.g.Dims(n)
	ps := make([]pick, x.n)
	for d := range ps {
		s := l.indices(n, d+1)
		if l.err != nil {
			return view{}
		}
		ps[d] = pick{start: l.clamped(n, s.broadcast(nil, dims), x.dims[d]-dims[d]), size: dims[d], axis: d}
	}
	return l.pickRows(n, x, dims, ps)
}

// indices is an integer operand in a type of at most 32 bits; of wider ones the low words.
func (l *lowering) indices(n graph.Node, i int) view {
	return l.lowWords(n, l.in(n, i), l.g.Dtype(l.g.Operands(n)[i]))
}

func (l *lowering) lowWords(n graph.Node, v view, d graph.Dtype) view {
	v = l.narrowed(v)
	if l.err != nil || v.root == 0 {
		return v
	}
	r := l.vals.At(v.root)
	if !r.dt.IsInteger() {
		l.badType(n, d, "is no index")
		return v
	}
	switch {
	case r.dt.Size() < 8:
	case r.op == vSplat:
		return l.splat(target.Int32, uint64(uint32(r.bits)), float32(int32(r.bits)), int64(int32(r.bits)), int64(int32(r.bits)), v.shape())
	case r.dt == target.Uint64:
		return l.add(valueRow{op: vCopy, dt: target.Uint32, rev0: true, hi: math.MaxUint32}, v.shape(), v)
	default:
		return l.add(valueRow{op: vCopy, dt: target.Int32, rev0: true, lo: math.MinInt32, hi: math.MaxInt32}, v.shape(), v)
	}
	return v
}

// wrapped adds d to the negative ones of indices in [-d, d). What is out of that range stays out of [0, d).
func (l *lowering) wrapped(n graph.Node, v view, d int64) view {
	if l.err != nil {
		return v
	}
	lo, hi := l.rangeOf(v)
	switch {
	case l.isSplat(&v):
		if lo < 0 {
			lo += d
		}
		if lo < 0 || lo >= d {
			l.unsupported(n, "index %d is outside [0,%d)", lo, d)
		}
		return l.splat(target.Int32, uint64(lo), float32(lo), lo, lo, v.shape())
	case lo >= 0:
		return v
	case d >= exactLimit:
		l.unsupported(n, "indices that may be negative are computed in 24 bits; the dimension is %d", d)
		return v
	}
	up := l.ts2(target.AluLT, 0, target.AluMult, float32(d), f32, v.shape(), v)
	return l.ranged(l.tt(target.AluAdd, target.Int32, v.shape(), v, up), min(lo+d, 0), max(hi, d-1))
}

// clamped forces indices into [0, most].
func (l *lowering) clamped(n graph.Node, v view, most int64) view {
	if l.err != nil {
		return v
	}
	lo, hi := l.rangeOf(v)
	switch {
	case l.isSplat(&v):
		lo = max(0, min(lo, most))
		return l.splat(target.Int32, uint64(lo), float32(lo), lo, lo, v.shape())
	case lo >= 0 && hi <= most:
		return v
	case most > exactLimit:
		l.unsupported(n, "indices are clamped in 24 bits; the largest is %d", most)
		return v
	}
	return l.once(v, func(w view) view {
		return l.ranged(l.ts2(target.AluMax, 0, target.AluMin, float32(most), target.Int32, w.shape(), w), 0, most)
	})
}

// once does arithmetic on a view before it repeats anything.
func (l *lowering) once(v view, f func(w view) view) view {
	w := view{root: v.root, off: v.off}
	var at []int64
	for i := range v.n {
		if v.dims[i] != 1 && v.step[i] != 0 {
			at = append(at, int64(i))
			w.push(v.dims[i], v.step[i])
		}
	}
	w = f(w)
	return w.broadcast(at, v.shape())
}

// astray stands for an index that is outside of its dimension where the number of a row is made of several: it is beyond every
// table.
const astray = 1 << 25

// bounded makes indices outside of [0, d) astray, so that no sum with them is the number of a row.
func (l *lowering) bounded(v view, d int64) view {
	return l.once(v, func(w view) view {
		mid := float32(d-1) / 2
		far := l.ts2(target.AluSub, mid, target.AluAbs, 0, f32, w.shape(), w)
		bad := l.ts2(target.AluGT, mid, target.AluMult, astray, f32, w.shape(), far)
		return l.tt(target.AluMax, f32, w.shape(), w, bad)
	})
}

// smallRow is the elements of a row below which an operand is turned for longer ones, where it is not much larger than the
// result.
const smallRow = 64

// pickRows is the result of shape dims that walks the dimensions of x as ps say.
func (l *lowering) pickRows(n graph.Node, x view, dims []int64, ps []pick) view {
	if l.err != nil {
		return view{}
	}
	// Known starts only move the view.
	dynamic := false
	for d := range ps {
		p := &ps[d]
		if p.start.root == 0 {
			continue
		}
		if l.isSplat(&p.start) {
			x.off += l.vals.At(p.start.root).lo * x.step[d]
			if x.dims[d] = p.size; p.axis < 0 {
				x.dims[d] = 1
			}
			p.start = view{}
			continue
		}
		dynamic = true
	}
	if l.isSplat(&x) || !dynamic {
		w := view{root: x.root, off: x.off}
		for _, d := range dims {
			w.push(d, 0)
		}
		for d := range ps {
			if a := ps[d].axis; a >= 0 && !l.isSplat(&x) {
				w.step[a] += x.step[d]
			}
		}
		return w
	}
	free := make([]bool, len(ps)) // dimensions that the result shows whole, whatever the indices are
	for d := range ps {
		p := &ps[d]
		free[d] = p.start.root == 0 && p.axis >= 0 && p.size == x.dims[d] && l.steady(ps, p.axis)
	}
	if row := rowOf(&x, free); row < smallRow && x.elems() <= 8*product(dims) {
		order := make([]int64, 0, len(ps))
		for _, last := range [2]bool{false, true} {
			for d := range ps {
				if free[d] == last {
					order = append(order, int64(d))
				}
			}
		}
		turned := x.permuted(order)
		old, oldFree := slices.Clone(ps), slices.Clone(free)
		for i, d := range order {
			ps[i], free[i] = old[d], oldFree[d]
		}
		if rowOf(&turned, free) > row {
			x = turned
		} else {
			ps, free = old, oldFree
		}
	}
	return l.rowsOf(n, x, dims, ps, free)
}

// steady reports an axis of the result along which no index varies.
func (l *lowering) steady(ps []pick, axis int) bool {
	for d := range ps {
		if ps[d].start.varies(axis) {
			return false
		}
	}
	return true
}

// rowOf is the elements of the free dimensions at the end of x.
func rowOf(x *view, free []bool) int64 {
	n := int64(1)
	for d := len(free) - 1; d >= 0 && (free[d] || x.dims[d] == 1); d-- {
		n *= x.dims[d]
	}
	return n
}

// rowsOf cuts x behind dimension last, the last one that is not shown whole: what lies behind, and a window on last itself, is a
// row; last and what lies before number the rows.
func (l *lowering) rowsOf(n graph.Node, x view, dims []int64, ps []pick, free []bool) view {
	last := len(ps) - 1
	for free[last] || x.dims[last] == 1 && ps[last].start.root == 0 {
		last--
	}
	// A window belongs to the row where the result walks it outside of what lies behind.
	window := ps[last].axis >= 0 && l.steady(ps, ps[last].axis)
	for d := last + 1; d < len(ps); d++ {
		window = window && (x.dims[d] == 1 || ps[d].axis > ps[last].axis)
	}
	if !x.inRows(last, window) {
		x = l.copied(x)
	}
	info := takeInfo{pitch: 1}
	for d := len(ps) - 1; d > last; d-- {
		info.pitch *= x.dims[d]
	}
	if x.dims[last] > 1 {
		info.pitch = x.step[last]
	}
	inRow := make([]bool, len(dims))
	table := view{root: x.root, off: x.off}
	for _, d := range dims {
		table.push(d, 0)
	}
	for d := last; d < len(ps); d++ {
		if a := ps[d].axis; a >= 0 && (d > last || window) {
			inRow[a] = true
			table.step[a] = x.step[d]
		}
	}
	index, most := l.rowNumber(n, &x, dims, ps, inRow, last)
	if l.err != nil {
		return view{}
	}
	info.rows = most + 1
	if info.rows > math.MaxInt32 || info.pitch > math.MaxInt32 || info.pitch < math.MinInt32 {
		l.fail(target.Errorf(target.Limit, "%s: a table of %d rows of %d elements; a gather holds 31 bits of each", l.g.NodeString(n), info.rows, info.pitch))
		return view{}
	}
	k := 0
	for a, d := range dims {
		if d == 1 {
			continue
		}
		if inRow[a] {
			info.inRow |= 1 << k
		}
		k++
	}
	l.takes = append(l.takes, info)
	r := l.vals.At(x.root)
	return l.add(valueRow{op: vTake, dt: r.dt, lo: r.lo, hi: r.hi, aux: uint32(len(l.takes) - 1)}, dims, table, index)
}

// inRows reports a view whose dimensions up to last number rows at one distance, and whose rows are contiguous: the dimensions
// behind last, and with window last itself.
func (v *view) inRows(last int, window bool) bool {
	s := int64(1)
	for d := int(v.n) - 1; d >= 0; d-- {
		if v.dims[d] == 1 {
			continue
		}
		if d == last && !window {
			s = v.step[d]
		}
		if v.step[d] != s {
			return false
		}
		s *= v.dims[d]
	}
	return true
}

// rowNumber is the row of each position of the result, as a view of its shape, and the largest that indices in range give.
func (l *lowering) rowNumber(n graph.Node, x *view, dims []int64, ps []pick, inRow []bool, last int) (index view, most int64) {
	shape := slices.Clone(dims)
	for a := range shape {
		if inRow[a] {
			shape[a] = 1
		}
	}
	var terms []view
	// With one index that counts whole rows the bound of the table is its own.
	alone := ps[last].start.root != 0
	for d := range last + 1 {
		p := &ps[d]
		alone = alone && (d == last || p.start.root == 0) && (p.axis < 0 || inRow[p.axis] || p.size == 1)
	}
	mult := int64(1)
	for d := last; d >= 0; d-- {
		p := &ps[d]
		if p.start.root != 0 {
			reach := x.dims[d] - 1
			if p.axis >= 0 {
				reach = x.dims[d] - p.size
			}
			most += reach * mult
			s := view{root: p.start.root, off: p.start.off}
			for a := range shape {
				if p.start.dims[a] == shape[a] {
					s.push(shape[a], p.start.step[a])
				} else {
					s.push(1, 0)
				}
			}
			if p.loose && !alone {
				s = l.bounded(s, x.dims[d])
			}
			terms = append(terms, l.times(s, mult))
		}
		if a := p.axis; a >= 0 && !inRow[a] && p.size > 1 {
			most += (p.size - 1) * mult
			count := l.add(valueRow{op: vIota, dt: target.Int32, hi: p.size - 1}, []int64{p.size})
			terms = append(terms, l.times(count.broadcast([]int64{int64(a)}, shape), mult))
		}
		mult *= x.dims[d]
	}
	if most >= exactLimit && !alone {
		l.unsupported(n, "row numbers up to %d are computed in 24 bits", most)
		return view{}, 0
	}
	sum, made := terms[0], len(terms) > 1
	for k, t := range terms[1:] {
		dt := f32
		if k == len(terms)-2 {
			dt = target.Int32
		}
		sum = l.tt(target.AluAdd, dt, shape, sum, t)
	}
	if !ir.IsIndex(l.vals.At(sum.root).dt) {
		sum, made = l.cast(target.Int32, shape, sum), true
	}
	if made {
		sum = l.ranged(sum, 0, most)
	}
	all := make([]int64, len(dims))
	for a := range all {
		all[a] = int64(a)
	}
	return sum.broadcast(all, dims), most
}

func (l *lowering) times(v view, k int64) view {
	if k == 1 {
		return v
	}
	return l.ts(target.AluMult, f32, v.shape(), v, float32(k))
}

// bindTake makes the index of a take an input of its unit.
func (l *lowering) bindTake(u *unit, r *valueRow) {
	a := l.argsOf(u.root)[1]
	l.takeIndex = l.inputOf(&u.dom, r, l.vals.At(a.root), a, 1)
}

// emitTake gathers the rows of a tile into the location of value i.
func (l *lowering) emitTake(t *tile, i int) {
	d := &l.u.dom
	r := l.vals.At(l.u.root)
	info := &l.takes[r.aux]
	in := l.fetch(t, l.takeIndex)
	table := l.argsOf(l.u.root)[0]
	w := d.conform(&table, nil)
	h := l.homeOf(table.root)
	l.newTile(i, t, t.w)
	l.emit(ir.OpIndirectLoad, target.EnginePool,
		[]ir.Arg{l.mem(h.loc, r.dt, h.off+tileOff(d, &w, t), ir.Pair{Step: int32(info.pitch), Num: uint32(info.rows)}, ir.Pair{Step: 1, Num: uint32(t.w)}),
			l.cols(in.loc, in.dt, t.pn, in.off, 1)},
		[]ir.Arg{l.made(i, t, 0, t.w)})
	if !l.counting {
		l.stats.Loaded += t.pn * t.w * int64(r.dt.Size())
	}
}
