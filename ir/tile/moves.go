package tile

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// piecesInfo describes a value that is written piece by piece: first the filling, where the pieces leave holes, then each
// piece in order.
type piecesInfo struct {
	fill   view // one repeated element; root 0: the pieces cover everything
	pieces []piece
}

// piece is a source and the box of the destination that it becomes: per axis a start and a stride.
type piece struct {
	src view
	dst view // on the value itself, of src's shape
}

// dense gives v the root's own order: a view that no strided walk can express is copied first.
func (l *lowering) copied(v view) view {
	r := l.vals.At(v.root)
	return l.add(valueRow{op: vCopy, dt: r.dt, lo: r.lo, hi: r.hi}, v.shape(), v)
}

func (l *lowering) reshape(v view, dims []int64) view {
	if l.isSplat(&v) {
		w := view{root: v.root}
		for _, d := range dims {
			w.push(d, 0)
		}
		return w
	}
	if w, ok := v.reshaped(dims); ok {
		return w
	}
	c := l.copied(v)
	w, _ := c.reshaped(dims)
	return w
}

func (l *lowering) move(n graph.Node) view {
	g := l.g
	dims := g.Dims(n)
	switch g.Op(n) {
	case graph.OpReshape, graph.OpBitcast:
		return l.reshape(l.in(n, 0), dims)
	case graph.OpBroadcast:
		v := l.in(n, 0)
		return v.broadcast(g.IntList(n, graph.AttrDims), dims)
	case graph.OpTranspose:
		v := l.in(n, 0)
		return v.permuted(g.IntList(n, graph.AttrDims))
	case graph.OpReverse:
		v := l.in(n, 0)
		for _, d := range g.IntList(n, graph.AttrDims) {
			v = v.reversed(int(d))
		}
		return v
	case graph.OpSlice:
		v := l.in(n, 0)
		start, stride := g.IntList(n, graph.AttrStart), g.IntList(n, graph.AttrStride)
		for i, d := range dims {
			s := int64(1)
			if len(stride) > 0 {
				s = stride[i]
			}
			v = v.sliced(i, start[i], d, s)
		}
		return v
	case graph.OpConcat:
		return l.concat(n)
	case graph.OpPad:
		return l.pad(n)
	case graph.OpTake:
		return l.take(n)
	case graph.OpTakeAlong:
		return l.takeAlong(n)
	case graph.OpGather:
		return l.gather(n)
	case graph.OpDynamicSlice:
		return l.dynamicSlice(n)
	case graph.OpDynamicUpdateSlice:
		return l.dynamicUpdate(n)
	}
	l.unsupported(n, "the operator is not lowered")
	return view{}
}

// assemble adds a value of pieces. add gets the box of each on a view of the whole.
func (l *lowering) assemble(r valueRow, dims []int64, info piecesInfo, box func(whole *view, i int) view) view {
	r.op = vPieces
	r.aux = uint32(len(l.pieces))
	args := l.scratchViews[:0]
	for _, p := range info.pieces {
		args = append(args, p.src)
	}
	if info.fill.root != 0 {
		args = append(args, info.fill)
	}
	l.scratchViews = args
	out := l.add(r, dims, args...)
	whole := out
	for i := range info.pieces {
		p := &info.pieces[i]
		p.dst = box(&whole, i)
	}
	l.pieces = append(l.pieces, info)
	return out
}

func (l *lowering) concat(n graph.Node) view {
	g := l.g
	at := int(g.Int(n, graph.AttrDim, 0))
	ops := g.Operands(n)
	info := piecesInfo{pieces: l.keptPieces.TakeDirty(len(ops))[:0]}
	starts := l.kept.TakeDirty(len(ops))[:0]
	pos := int64(0)
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	parts := l.scratchParts[:0]
	for i, o := range ops {
		v := l.in(n, i)
		if v.root == 0 {
			continue
		}
		starts = append(starts, pos)
		pos += g.Dims(o)[at]
		parts = append(parts, v)
		r := l.vals.At(v.root)
		lo, hi = min(lo, r.lo), max(hi, r.hi)
	}
	l.scratchParts = parts
	if len(parts) == 1 {
		return parts[0]
	}
	dt := l.common(n, parts...)
	for _, v := range parts {
		info.pieces = append(info.pieces, piece{src: l.stored(v, dt)})
	}
	return l.assemble(valueRow{dt: dt, lo: lo, hi: hi}, g.Dims(n), info, func(whole *view, i int) view {
		return whole.sliced(at, starts[i], info.pieces[i].src.dims[at], 1)
	})
}

// pad is crop, then fill and one piece.
func (l *lowering) pad(n graph.Node) view {
	g := l.g
	dims := g.Dims(n)
	x, fill := l.in(n, 0), l.in(n, 1)
	if x.root == 0 {
		return fill.broadcast(nil, dims)
	}
	low, high, interior := g.IntList(n, graph.AttrLow), g.IntList(n, graph.AttrHigh), g.IntList(n, graph.AttrInterior)
	holes := false
	start := make([]int64, len(dims))
	step := make([]int64, len(dims))
	for i := range dims {
		step[i] = 1
		if len(interior) > 0 {
			step[i] += interior[i]
		}
		d := x.dims[i]
		// First and last position of x that stay: 0 ≤ low + k·step < dims.
		first, last := int64(0), d-1
		if low[i] < 0 {
			first = (-low[i] + step[i] - 1) / step[i]
		}
		if over := low[i] + (d-1)*step[i] - (dims[i] - 1); over > 0 {
			last -= (over + step[i] - 1) / step[i]
		}
		if last < first {
			return fill.broadcast(nil, dims)
		}
		start[i] = low[i] + first*step[i]
		x = x.sliced(i, first, last-first+1, 1)
		holes = holes || start[i] > 0 || start[i]+(last-first)*step[i] < dims[i]-1 || step[i] > 1 && last > first
	}
	_ = high
	if !holes {
		return x
	}
	dt := l.common(n, x, fill)
	x, fill = l.stored(x, dt), l.stored(fill, dt)
	a, b := l.vals.At(x.root), l.vals.At(fill.root)
	info := piecesInfo{fill: fill, pieces: []piece{{src: x}}}
	if !l.isSplat(&fill) {
		info = piecesInfo{pieces: []piece{{src: fill.broadcast(nil, dims)}, {src: x}}}
	}
	return l.assemble(valueRow{dt: dt, lo: min(a.lo, b.lo), hi: max(a.hi, b.hi)}, dims, info, func(whole *view, k int) view {
		w := *whole
		if k < len(info.pieces)-1 {
			return w
		}
		for i := range dims {
			w = w.sliced(i, start[i], x.dims[i], step[i])
		}
		return w
	})
}

// constInts are the elements of an integer constant operand, by number.
func (l *lowering) constInts(v view) ([]int64, bool) {
	if v.root == 0 {
		return nil, true
	}
	r := l.vals.At(v.root)
	n := v.elems()
	if n > maxConstIndices {
		return nil, false
	}
	out := make([]int64, 0, n)
	if r.op == vSplat {
		for range n {
			out = append(out, r.lo)
		}
		return out, true
	}
	if r.op != vConst || l.consts[r.aux].node == 0 {
		return nil, false
	}
	c := l.consts[r.aux].node
	d := l.g.Dtype(c)
	data := l.g.ConstBytes(l.g.Nodes.At(c).Const)
	if data == nil || !d.IsInt() {
		return nil, false
	}
	size := int64(d.Size())
	var idx [maxRank]int64
	for {
		at := v.off
		for i := range v.n {
			at += idx[i] * v.step[i]
		}
		out = append(out, decodeInt(d, bytesWord(data[at*size:at*size+size])))
		i := int(v.n) - 1
		for ; i >= 0; i-- {
			if idx[i]++; idx[i] < v.dims[i] {
				break
			}
			idx[i] = 0
		}
		if i < 0 {
			return out, true
		}
	}
}

// maxConstIndices bounds the indices that are unrolled into slices.
const maxConstIndices = 1 << 16

// manyRuns is how many runs of constant indices may become transfers of their own where gathering rows takes fewer.
const manyRuns = 16

// take with constant indices is one piece for each run of them that ascends by one step; where there are many runs, or the
// indices are not known, rows are gathered.
func (l *lowering) take(n graph.Node) view {
	g := l.g
	dims := g.Dims(n)
	at := int(g.Int(n, graph.AttrDim, 0))
	x := l.in(n, 0)
	idx, ok := l.constInts(l.in(n, 1))
	if !ok {
		return l.takeRows(n)
	}
	d := x.dims[at]
	for i, k := range idx {
		if k < 0 {
			k += d
		}
		idx[i] = k
		if k < 0 || k >= d {
			l.unsupported(n, "index %d is outside [0,%d)", k, d)
			return view{}
		}
	}
	// The result with the index axes as one.
	flat := append(append(append([]int64(nil), dims[:at]...), int64(len(idx))), dims[at+len(l.g.Dims(g.Operands(n)[1])):]...)
	runs := stepRuns(idx)
	if rows := product(dims[:at]) * int64(len(idx)); len(runs) > manyRuns && int64(len(runs)) > 3*((rows+127)/128)+manyRuns && x.elems() < exactLimit {
		return l.takeRows(n)
	}
	if len(runs) == 1 {
		v := x
		r := runs[0]
		v.off += idx[0] * x.step[at]
		v.dims[at], v.step[at] = r.n, r.step*x.step[at]
		return l.reshape(v, dims)
	}
	row := l.vals.At(x.root)
	var info piecesInfo
	for _, r := range runs {
		v := x
		v.off += idx[r.at] * x.step[at]
		v.dims[at], v.step[at] = r.n, r.step*x.step[at]
		info.pieces = append(info.pieces, piece{src: v})
	}
	out := l.assemble(valueRow{dt: row.dt, lo: row.lo, hi: row.hi}, flat, info, func(whole *view, i int) view {
		return whole.sliced(at, runs[i].at, runs[i].n, 1)
	})
	return l.reshape(out, dims)
}

type indexRun struct{ at, n, step int64 }

// stepRuns cuts a list into runs of constant difference.
func stepRuns(idx []int64) []indexRun {
	var runs []indexRun
	for i := 0; i < len(idx); {
		r := indexRun{at: int64(i), n: 1}
		if i+1 < len(idx) {
			r.step = idx[i+1] - idx[i]
			for i+int(r.n) < len(idx) && idx[i+int(r.n)]-idx[i+int(r.n)-1] == r.step {
				r.n++
			}
		}
		runs = append(runs, r)
		i += int(r.n)
	}
	return runs
}

// starts are the constant start indices from operand k on, clamped as XLA does.
func (l *lowering) starts(n graph.Node, k int, dims, sizes []int64) ([]int64, bool) {
	out := make([]int64, len(dims))
	for i := range dims {
		c, ok := l.constInts(l.in(n, k+i))
		if !ok {
			l.unsupported(n, "only constant start indices are lowered")
			return nil, false
		}
		out[i] = max(0, min(c[0], dims[i]-sizes[i]))
	}
	return out, true
}

func (l *lowering) dynamicSlice(n graph.Node) view {
	x := l.in(n, 0)
	sizes := l.g.Dims(n)
	for k := range sizes {
		if _, ok := l.constInts(l.in(n, k+1)); !ok {
			return l.sliceRows(n)
		}
	}
	at, ok := l.starts(n, 1, l.g.Dims(l.g.Operands(n)[0]), sizes)
	if !ok {
		return view{}
	}
	for i, s := range at {
		x = x.sliced(i, s, sizes[i], 1)
	}
	return x
}

func (l *lowering) dynamicUpdate(n graph.Node) view {
	g := l.g
	x, up := l.in(n, 0), l.in(n, 1)
	dims := g.Dims(n)
	if up.root == 0 {
		return x
	}
	at, ok := l.starts(n, 2, dims, up.shape())
	if !ok {
		return view{}
	}
	dt := l.common(n, x, up)
	x, up = l.stored(x, dt), l.stored(up, dt)
	a, b := l.vals.At(x.root), l.vals.At(up.root)
	info := piecesInfo{pieces: []piece{{src: x}, {src: up}}}
	return l.assemble(valueRow{dt: dt, lo: min(a.lo, b.lo), hi: max(a.hi, b.hi)}, dims, info, func(whole *view, i int) view {
		w := *whole
		if i == 1 {
			for k, s := range at {
				w = w.sliced(k, s, up.dims[k], 1)
			}
		}
		return w
	})
}
