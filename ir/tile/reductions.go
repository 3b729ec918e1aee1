package tile

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// windowInfo is what a vWindow folds: x has one window an axis.
type windowInfo struct {
	x    view
	ws   []graph.Window
	init float32 // what the padding and the holes of a dilated operand hold
	out  []int64

	kind      winKind
	axis      int  // of rows that are sorted or summed
	exclusive bool // sums leave the element itself out
}

func (l *lowering) reduction(n graph.Node) view {
	switch l.g.Op(n) {
	case graph.OpReduce:
		return l.reduce(n)
	case graph.OpReduceWindow:
		return l.reduceWindow(n)
	case graph.OpAvgPool:
		return l.avgPool(n)
	case graph.OpArgMax, graph.OpArgMin:
		return l.argReduce(n)
	case graph.OpCumSum:
		return l.cumSum(n)
	}
	l.unsupported(n, "the operator is not lowered")
	return view{}
}

// reduceAlu is the operator of a reduction over type d; ok is false for combiners that no engine folds with.
func reduceAlu(k graph.ReduceKind, d graph.Dtype) (target.AluOp, bool) {
	switch k {
	case graph.ReduceSum:
		return target.AluAdd, true
	case graph.ReduceProd:
		return target.AluMult, d.IsFloat()
	case graph.ReduceMax:
		return target.AluMax, true
	case graph.ReduceMin:
		return target.AluMin, true
	case graph.ReduceAnd:
		if d == graph.Bool {
			return target.AluMin, true
		}
		return target.AluBitAnd, d.Bits() <= 32
	case graph.ReduceOr:
		if d == graph.Bool {
			return target.AluMax, true
		}
		return target.AluBitOr, d.Bits() <= 32
	}
	return 0, false
}

func (l *lowering) reduce(n graph.Node) view {
	g := l.g
	d := g.Dtype(n)
	alu, ok := reduceAlu(graph.KindOf(l.g, n), d)
	if !ok || len(g.Operands(n)) != 2 {
		l.unsupported(n, "only sums, products, maxima, minima, ands and ors of one operand are lowered")
		return view{}
	}
	dt, known := machineType(d)
	if !known {
		l.badType(n, d, "is not a type of the machine")
		return view{}
	}
	dt = floatType(dt)
	x, init := l.in(n, 0), l.in(n, 1)
	dims := g.Dims(n)
	if x.root == 0 {
		return init.broadcast(nil, dims)
	}
	red := g.IntList(n, graph.AttrDims)
	lo, hi := l.rangeOf(x)
	if !d.IsFloat() {
		x = l.narrowed(x)
		count := int64(1)
		for _, a := range red {
			count *= x.dims[a]
		}
		if !alu.Bitwise() && !l.smallInts(x) {
			l.badType(n, d, "reductions are exact to 24 bits only, and these values are not known to fit")
			return view{}
		}
		if alu == target.AluAdd {
			lo, hi = min(lo*count, lo), max(hi*count, hi)
			if count > exactLimit || !isSmall(lo, hi) {
				l.badType(n, d, "sums are exact to 24 bits only, and these are not known to fit")
				return view{}
			}
			if tlo, thi := typeRange(d); lo < tlo || hi > thi {
				l.badType(n, d, "sums that leave the type are not lowered")
				return view{}
			}
		}
		dt = l.vals.At(x.root).dt
	}
	if l.isSplat(&x) {
		x = l.copied(x) // a tile of the repeated element
	}
	var mask uint32
	k := 0
	for i := range x.n {
		if x.dims[i] == 1 {
			continue
		}
		if slices.Contains(red, int64(i)) {
			mask |= 1 << k
		}
		k++
	}
	if mask == 0 {
		return l.withInit(n, alu, dt, dims, l.reshape(x, dims), init)
	}
	out := l.add(valueRow{op: vReduce, op0: alu, dt: dt, aux: mask, lo: lo, hi: hi}, dims, x)
	return l.withInit(n, alu, dt, dims, out, init)
}

// withInit combines a reduction with an initial value that is not the operator's identity.
func (l *lowering) withInit(n graph.Node, alu target.AluOp, dt target.Dtype, dims []int64, v, init view) view {
	if l.isSplat(&init) {
		r := l.vals.At(init.root)
		c := float64(r.c0)
		switch alu {
		case target.AluAdd, target.AluBitOr:
			if c == 0 {
				return v
			}
		case target.AluMult:
			if c == 1 {
				return v
			}
		case target.AluMax:
			if math.IsInf(c, -1) || r.dt.IsInteger() && r.lo <= l.vals.At(v.root).lo {
				return v
			}
		case target.AluMin:
			if math.IsInf(c, 1) || r.dt.IsInteger() && r.lo >= l.vals.At(v.root).hi {
				return v
			}
		case target.AluBitAnd:
			if r.lo == -1 || r.bits == encodeInt(r.dt, -1) {
				return v
			}
		}
	}
	d := l.g.Dtype(n)
	if !d.IsFloat() && !alu.Bitwise() {
		if alu == target.AluMax || alu == target.AluMin {
			return l.intMinMax(n, alu == target.AluMax, d, dims, v, init.broadcast(nil, dims))
		}
		return l.intBinary(n, graph.OpAdd, d, v, init.broadcast(nil, dims))
	}
	return l.tt(alu, dt, dims, v, init.broadcast(nil, dims))
}

// window adds a value that folds windows of x with alu; init fills the padding. Axes that one window covers whole are plain
// reductions.
func (l *lowering) window(alu target.AluOp, dt target.Dtype, init float32, x view, ws []graph.Window, dims []int64) view {
	if l.isSplat(&x) {
		x = l.copied(x)
	}
	lo, hi := l.rangeOf(x)
	var mask uint32
	k, rest := 0, false
	short := x
	left := l.keptWindows.TakeDirty(len(ws))
	copy(left, ws)
	for i, w := range ws {
		whole := w.Size == x.dims[i] && dims[i] == 1 && w.PadLow == 0 && w.PadHigh == 0 && w.LhsDilate == 1
		if whole && x.dims[i] > 1 {
			mask |= 1 << k
			short.dims[i], short.step[i] = 1, 0
			left[i] = graph.Window{Size: 1, Stride: 1, LhsDilate: 1, RhsDilate: 1}
		} else if !trivialWindow(w) {
			rest = true
		}
		if x.dims[i] > 1 {
			k++
		}
	}
	if mask != 0 {
		t := dt
		if rest {
			t = f32
		}
		x = l.add(valueRow{op: vReduce, op0: alu, dt: t, aux: mask, lo: lo, hi: hi}, short.shape(), x)
	}
	if !rest {
		return l.reshape(x, dims)
	}
	l.wins = append(l.wins, windowInfo{x: x, ws: left, init: init, out: l.keep(dims)})
	return l.add(valueRow{op: vWindow, op0: alu, dt: dt, aux: uint32(len(l.wins) - 1), lo: lo, hi: hi}, dims, x)
}

func (l *lowering) reduceWindow(n graph.Node) view {
	g := l.g
	d := g.Dtype(n)
	alu, ok := reduceAlu(graph.KindOf(l.g, n), d)
	x, init := l.in(n, 0), l.in(n, 1)
	if !ok || alu.Bitwise() || len(g.Operands(n)) != 2 || !l.isSplat(&init) {
		l.unsupported(n, "only sums, products, maxima and minima of one operand with a constant initial value are lowered")
		return view{}
	}
	dims := g.Dims(n)
	if x.root == 0 {
		return init.broadcast(nil, dims)
	}
	ws, _ := g.Windows(n, len(dims))
	c := l.vals.At(init.root).c0
	if !d.IsFloat() {
		x = l.narrowed(x)
		lo, hi := l.rangeOf(x)
		lo, hi = min(lo, int64(c)), max(hi, int64(c))
		if alu == target.AluAdd {
			count := int64(1)
			for _, w := range ws {
				count *= w.Size
			}
			lo, hi = lo*count, hi*count
		}
		if tlo, thi := typeRange(d); !l.smallInts(x, init) || !isSmall(lo, hi) || alu == target.AluAdd && (lo < tlo || hi > thi) {
			l.badType(n, d, "windows are exact to 24 bits only, and these values are not known to fit")
			return view{}
		}
	}
	dt := floatType(l.typeOf(n))
	if !d.IsFloat() {
		dt = l.vals.At(x.root).dt
	}
	out := l.window(alu, dt, c, x, ws, dims)
	if alu == target.AluAdd && c != 0 || alu == target.AluMult && c != 1 {
		l.unsupported(n, "the initial value %g is not the identity of the combiner", c)
		return view{}
	}
	return l.withInit(n, alu, dt, dims, out, init)
}

func (l *lowering) avgPool(n graph.Node) view {
	g := l.g
	dims := g.Dims(n)
	x := l.in(n, 0)
	ws, _ := g.Windows(n, len(dims))
	dt := floatType(l.typeOf(n))
	size := int64(1)
	for _, w := range ws {
		size *= w.Size
	}
	sum := l.window(target.AluAdd, f32, 0, x, ws, dims)
	if g.Int(n, graph.AttrCountPad, 0) != 0 {
		return l.ts(target.AluDivide, dt, dims, sum, float32(size))
	}
	// How many positions of each window lie inside the operand: a product over the axes.
	var axes []int64
	var shape []int64
	counts := []float32{1}
	uniform := true
	for i, w := range ws {
		if w.Size == 1 && w.PadLow == 0 && w.PadHigh == 0 && w.Stride == 1 {
			continue
		}
		axes, shape = append(axes, int64(i)), append(shape, dims[i])
		next := make([]float32, 0, len(counts)*int(dims[i]))
		for _, c := range counts {
			for o := range dims[i] {
				k := int64(0)
				for t := range w.Size {
					if p := o*w.Stride - w.PadLow + t*w.RhsDilate; p >= 0 && p <= (x.dims[i]-1)*w.LhsDilate {
						k++
					}
				}
				uniform = uniform && k == w.Size
				next = append(next, c*float32(k))
			}
		}
		counts = next
		if len(counts) > 1<<20 {
			l.unsupported(n, "the padded window positions are too many")
			return view{}
		}
	}
	if uniform {
		return l.ts(target.AluDivide, dt, dims, sum, float32(size))
	}
	by := l.ownFloats(counts, shape)
	return l.tt(target.AluDivide, dt, dims, sum, by.broadcast(axes, dims))
}

// ownFloats is a constant that the model does not have.
func (l *lowering) ownFloats(vals []float32, dims []int64) view {
	mark := l.own.Mark()
	for _, f := range vals {
		for _, b := range binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)) {
			l.own.Push(b)
		}
	}
	l.consts = append(l.consts, constant{bytes: l.own.Since(mark), dims: l.ints.AddSlice(dims)})
	return l.add(valueRow{op: vConst, dt: f32, aux: uint32(len(l.consts) - 1)}, dims)
}
