package tile

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// The Vector engine finds the eight largest elements of a row, where they are, and replaces them. Arg-max, top-k and the
// cumulative sum are made of such row operations.

const (
	topWidth = 8
	maxTop   = 16384 // elements of a row that one such instruction takes
)

// argReduce is the position of the largest element along one axis, the smallest for arg-min; the first of equals or the last.
func (l *lowering) argReduce(n graph.Node) view {
	g := l.g
	x := l.narrowed(l.in(n, 0))
	from := g.Dtype(g.Operands(n)[0])
	at := int(g.Int(n, graph.AttrDim, 0))
	dims := g.Dims(n)
	size := x.dims[at]
	if from.IsInt() && !l.smallInts(x) {
		l.badType(n, from, "comparisons are exact to 24 bits only, and these values are not known to fit")
		return view{}
	}
	if size == 1 || l.isSplat(&x) {
		k := int64(0)
		if g.Int(n, graph.AttrSelectLast, 0) != 0 {
			k = size - 1
		}
		return l.splatOf(g.Dtype(n), target.Int32, uint64(k), dims)
	}
	if size > exactLimit {
		l.unsupported(n, "positions up to %d do not fit 24 bits", size)
		return view{}
	}
	last := g.Int(n, graph.AttrSelectLast, 0) != 0
	if last {
		x = x.reversed(at)
	}
	if g.Op(n) == graph.OpArgMin {
		x = l.ts(target.AluMult, f32, x.shape(), x, -1)
	}
	k := 0
	for i := range at {
		if x.dims[i] != 1 {
			k++
		}
	}
	v := l.add(valueRow{op: vReduce, op0: target.AluMax, rev1: true, dt: target.Int32, aux: 1 << k, hi: size - 1}, dims, x)
	if last {
		v = l.elem(valueRow{op: vTS, op0: target.AluSub, rev0: true, c0: float32(size - 1), dt: target.Int32, hi: size - 1}, dims, v)
	}
	return v
}

// atLeastTop gives a row tile that is shorter than eight elements room for them.
func (l *lowering) atLeastTop(t *tile, x ir.Arg, w int64) ir.Arg {
	if w >= topWidth {
		return x
	}
	loc := l.sb(l.tileName(l.cur), f32, int(t.pn), topWidth)
	l.memset(l.cols(loc, f32, t.pn, 0, topWidth), encode32(f32, float32(math.Inf(-1))))
	l.copyTo(x, l.cols(loc, f32, t.pn, 0, w), false)
	return l.cols(loc, f32, t.pn, 0, topWidth)
}

// max8 finds the eight largest of a row and their positions.
func (l *lowering) max8(t *tile, x ir.Arg) (vals, at ir.Loc) {
	vals = l.sb(l.tileName(l.cur), f32, int(t.pn), topWidth)
	at = l.sb(l.tileName(l.cur), target.Uint32, int(t.pn), topWidth)
	v := l.cols(vals, f32, t.pn, 0, topWidth)
	l.emit(ir.OpMax, target.EngineDVE, []ir.Arg{x}, []ir.Arg{v})
	l.emit(ir.OpMaxIndex, target.EngineDVE, []ir.Arg{x, v}, []ir.Arg{l.cols(at, target.Uint32, t.pn, 0, topWidth)})
	return vals, at
}

// emitArg is the position of the largest element of the row of value i's operand.
func (l *lowering) emitArg(t *tile, i int, x ir.Arg) {
	_, at := l.max8(t, l.atLeastTop(t, x, t.w))
	l.copyTo(l.cols(at, target.Uint32, t.pn, 0, 1), l.made(i, t, 0, 1), false)
}

// argPart notes the largest element of a chunk and its position in the row.
func (l *lowering) argPart(t *tile, i int, x ir.Arg) {
	m := &l.locs[i]
	first := int64(0)
	for k := range l.u.dom.n {
		if l.u.dom.grp[k] == groupF {
			first = first*l.u.dom.dims[k] + t.f0[k]
		}
	}
	vals, at := l.max8(t, l.atLeastTop(t, x, t.w))
	l.copyTo(l.cols(vals, f32, t.pn, 0, 1), l.cols(m.strip, f32, t.pn, t.chunk, 1), false)
	l.emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{l.cols(at, target.Uint32, t.pn, 0, 1)}, []ir.Arg{l.cols(m.strip, f32, t.pn, l.plan.chunks+t.chunk, 1)},
		ir.Enum(ir.KeyOp0, target.AluAdd), ir.Float(ir.KeyConst0, float32(first)), ir.Bool(ir.KeyReverse0, false),
		ir.Enum(ir.KeyOp1, target.AluBypass), ir.Float(ir.KeyConst1, 0), ir.Bool(ir.KeyReverse1, false))
}

// argStrip picks the first chunk that has the largest element of the row.
func (l *lowering) argStrip(t *tile, i int, strip ir.Loc) {
	n := l.plan.chunks
	vals := l.cols(strip, f32, t.pn, 0, n)
	best := l.sb(l.tileName(l.cur), f32, int(t.pn), 1)
	l.reduceOp(target.AluMax, vals, l.cols(best, f32, t.pn, 0, 1))
	miss := l.sb(l.tileName(l.cur), target.Uint8, int(t.pn), n)
	l.ptr(target.AluNotEqual, vals, l.cols(best, f32, t.pn, 0, 1), false, l.cols(miss, target.Uint8, t.pn, 0, n))
	far := l.sb(l.tileName(l.cur), f32, int(t.pn), 1)
	l.memset(l.cols(far, f32, t.pn, 0, 1), encode32(f32, exactLimit))
	at := l.cols(strip, f32, t.pn, n, n)
	l.emit(ir.OpCopyPredicated, target.EngineDVE, []ir.Arg{l.repeated(far, f32, t.pn, 0, n), l.cols(miss, target.Uint8, t.pn, 0, n)}, []ir.Arg{at})
	l.reduceOp(target.AluMin, at, l.made(i, t, 0, 1))
}

// winKind is what a unit makes of the rows that it loads.
type winKind uint8

const (
	winFold winKind = iota // fold windows
	winTop                 // the largest elements in order
	winScan                // running sums
)

// topK gives the k largest (or smallest) of the last axis in order, and their positions.
func (l *lowering) topK(n graph.Node) (vals, idx view) {
	g := l.g
	x := l.narrowed(l.in(n, 0))
	k := g.Int(n, graph.AttrK, 0)
	elems := g.Elems(g.Nodes.At(n).Type)
	dims := g.TypeDims(elems[0])
	d := g.Dtype(g.Operands(n)[0])
	at := len(dims) - 1
	if x.root == 0 || k == 0 {
		return view{}, view{}
	}
	size := x.dims[at]
	if size > maxTop || d.IsInt() && !l.smallInts(x) {
		if d.IsInt() {
			l.badType(n, d, "comparisons are exact to 24 bits only, and these values are not known to fit")
		} else {
			l.unsupported(n, "rows of %d elements; the engine sorts up to %d", size, maxTop)
		}
		return view{}, view{}
	}
	if l.isSplat(&x) {
		x = l.copied(x)
	}
	if stored := l.vals.At(x.root).dt; floatType(stored) != stored {
		x = l.cast(f32, x.shape(), x)
	}
	lo, hi := l.rangeOf(x)
	dt := l.vals.At(x.root).dt
	largest := g.Int(n, graph.AttrLargest, 1) != 0
	if !largest {
		x = l.ts(target.AluMult, f32, x.shape(), x, -1)
	}
	ws := l.keptWindows.TakeDirty(len(dims))
	for i := range ws {
		ws[i] = graph.Window{Size: 1, Stride: 1, LhsDilate: 1, RhsDilate: 1}
	}
	ws[at] = graph.Window{Size: size, Stride: 0, LhsDilate: 1, RhsDilate: 1}
	l.wins = append(l.wins, windowInfo{x: x, ws: ws, out: l.keep(dims), kind: winTop, axis: at})
	r := valueRow{op: vWindow, dt: dt, aux: uint32(len(l.wins) - 1), lo: lo, hi: hi}
	if !largest {
		r.dt, r.lo, r.hi = f32, 0, 0
	}
	vals = l.add(r, dims, x)
	idx = l.add(valueRow{op: vTopIndex, dt: target.Int32, hi: size - 1}, dims, vals)
	if !largest {
		vals = l.ranged(l.ts(target.AluMult, dt, dims, vals, -1), lo, hi)
	}
	if overflows[d].limit != 0 {
		vals = l.castOver(d, dims, vals)
	}
	return vals, idx
}

// emitTop finds the columns of a tile eight at a time, and keeps their positions for the value that wants them.
func (l *lowering) emitTop(t *tile, i int, in mapTile, dt target.Dtype) {
	w := &l.wt
	size := w.spans[0].len
	rounds := (t.w + topWidth - 1) / topWidth
	row := max(size, topWidth)
	work := l.sb(l.tileName(l.cur), f32, int(t.pn), row)
	all := l.cols(work, f32, t.pn, 0, row)
	if size < topWidth {
		l.memset(all, encode32(f32, float32(math.Inf(-1))))
	}
	src := l.chip(in.loc, dt, 0, int(t.pn), in.off, ir.Pair{Step: int32(w.spans[0].walk), Num: uint32(size)})
	l.copyTo(src, l.cols(work, f32, t.pn, 0, size), false)
	vals := l.sb(l.tileName(l.cur), f32, int(t.pn), rounds*topWidth)
	w.index = l.sb(l.tileName(l.cur), target.Uint32, int(t.pn), rounds*topWidth)
	for r := range rounds {
		v := l.cols(vals, f32, t.pn, r*topWidth, topWidth)
		l.emit(ir.OpMax, target.EngineDVE, []ir.Arg{all}, []ir.Arg{v})
		l.emit(ir.OpMaxIndex, target.EngineDVE, []ir.Arg{all, v}, []ir.Arg{l.cols(w.index, target.Uint32, t.pn, r*topWidth, topWidth)})
		if r < rounds-1 {
			l.emit(ir.OpMatchReplace, target.EngineDVE, []ir.Arg{all, v}, []ir.Arg{all}, ir.Float(ir.KeyImmValue, float32(math.Inf(-1))))
		}
	}
	l.newTile(i, t, t.w)
	l.copyTo(l.cols(vals, f32, t.pn, 0, t.w), l.made(i, t, 0, t.w), false)
}

// cumSum is the running sum along one axis.
func (l *lowering) cumSum(n graph.Node) view {
	g := l.g
	x := l.narrowed(l.in(n, 0))
	d := g.Dtype(n)
	dims := g.Dims(n)
	at := int(g.Int(n, graph.AttrDim, 0))
	lo, hi := l.rangeOf(x)
	if !d.IsFloat() {
		lo, hi = min(lo*dims[at], lo, 0), max(hi*dims[at], hi, 0)
		if tlo, thi := typeRange(d); !l.smallInts(x) || !isSmall(lo, hi) || dims[at] > exactLimit || lo < tlo || hi > thi {
			l.badType(n, d, "sums are exact to 24 bits only, and these are not known to fit those and the type")
			return view{}
		}
	}
	if l.isSplat(&x) {
		x = l.copied(x)
	}
	reverse := g.Int(n, graph.AttrReverse, 0) != 0
	if reverse {
		x = x.reversed(at)
	}
	dt := floatType(l.typeOf(n))
	if !d.IsFloat() {
		dt = l.vals.At(x.root).dt
	}
	ws := l.keptWindows.TakeDirty(len(dims))
	for i := range ws {
		ws[i] = graph.Window{Size: 1, Stride: 1, LhsDilate: 1, RhsDilate: 1}
	}
	l.wins = append(l.wins, windowInfo{x: x, ws: ws, out: l.keep(dims), kind: winScan, axis: at, exclusive: g.Int(n, graph.AttrExclusive, 0) != 0})
	v := l.add(valueRow{op: vWindow, op0: target.AluAdd, dt: dt, aux: uint32(len(l.wins) - 1), lo: lo, hi: hi}, dims, x)
	if reverse {
		v = v.reversed(at)
	}
	return v
}

// emitScan adds along the row; the last sum of a chunk is where the next one starts.
func (l *lowering) emitScan(t *tile, i int, in mapTile, dt target.Dtype) {
	w := &l.wt
	info := &l.wins[l.vals.At(l.u.root).aux]
	sums := l.sb(l.tileName(l.cur), f32, int(t.pn), t.w+1)
	start := l.cols(sums, f32, t.pn, 0, 1)
	if t.chunk == 0 {
		l.memset(start, 0)
	} else {
		l.copyTo(l.cols(w.carry, f32, t.pn, w.carryAt, 1), start, false)
	}
	x := l.chip(in.loc, dt, 0, int(t.pn), in.off, ir.Pair{Step: int32(w.spans[0].walk), Num: uint32(t.w)})
	l.emit(ir.OpTensorScalarPtr, target.EngineDVE, []ir.Arg{x, start, x}, []ir.Arg{l.cols(sums, f32, t.pn, 1, t.w)}, ir.Bool(ir.KeyIsTensorTensorScan, true),
		ir.Enum(ir.KeyOp0, target.AluAdd), ir.Bool(ir.KeyReverse0, false), ir.Enum(ir.KeyOp1, target.AluBypass), ir.Bool(ir.KeyReverse1, false))
	w.carry, w.carryAt = sums, t.w
	l.newTile(i, t, t.w)
	from := int64(1)
	if info.exclusive {
		from = 0
	}
	l.copyTo(l.cols(sums, f32, t.pn, from, t.w), l.made(i, t, 0, t.w), false)
}

// batchNormTraining gives the normalised operand, the mean and the variance over all axes but the feature's.
func (l *lowering) batchNormTraining(n graph.Node) []view {
	g := l.g
	x := l.in(n, 0)
	dims := g.Dims(g.Operands(n)[0])
	at := g.Int(n, graph.AttrFeature, 1)
	elems := g.Elems(g.Nodes.At(n).Type)
	dt, _ := machineType(g.Types.At(elems[0]).Dtype)
	vec := []int64{dims[at]}
	count := int64(1)
	var mask uint32
	k := 0
	for i, d := range dims {
		if d == 1 {
			continue
		}
		if int64(i) != at {
			mask |= 1 << k
			count *= d
		}
		k++
	}
	if l.isSplat(&x) {
		x = l.copied(x)
	}
	mean := func(v view) view {
		if mask == 0 {
			return l.reshape(v, vec)
		}
		s := l.add(valueRow{op: vReduce, op0: target.AluAdd, dt: f32, aux: mask}, vec, v)
		return l.ts(target.AluMult, f32, vec, s, 1/float32(count))
	}
	back := func(v view) view { return v.broadcast([]int64{at}, dims) }
	m := mean(x)
	centred := l.tt(target.AluSub, f32, dims, x, back(m))
	variance := mean(l.tt(target.AluMult, f32, dims, centred, centred))
	r := l.act(target.ActRsqrt, f32, vec, variance, 1, float32(g.Float(n, graph.AttrEpsilon, 1e-5)))
	y := l.tt(target.AluMult, f32, dims, centred, back(r))
	y = l.tt(target.AluMult, f32, dims, y, back(l.in(n, 1)))
	y = l.tt(target.AluAdd, dt, dims, y, back(l.in(n, 2)))
	vt, _ := machineType(g.Types.At(elems[1]).Dtype)
	return []view{y, l.cast(vt, vec, m), l.cast(vt, vec, variance)}
}
