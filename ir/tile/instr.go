package tile

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// opnd is an operand of one instruction: as a tile, and whether it is one element a row repeated along the free axis.
type opnd struct {
	arg ir.Arg
	row ir.Arg // the [p,1] form, of kind ArgNone for a tile
	dt  target.Dtype
	imm bool
	f   float32
}

// cols is an access to columns [c0, c0+n) of a dense tile.
func (l *lowering) cols(loc ir.Loc, dt target.Dtype, parts, c0, n int64) ir.Arg {
	return l.chip(loc, dt, 0, int(parts), c0, ir.Pair{Step: 1, Num: uint32(n)})
}

// repeated is one element a row, n times.
func (l *lowering) repeated(loc ir.Loc, dt target.Dtype, parts, off, n int64) ir.Arg {
	if n == 1 {
		return l.cols(loc, dt, parts, off, 1)
	}
	return l.chip(loc, dt, 0, int(parts), off, ir.Pair{Step: 0, Num: uint32(n)})
}

// inputCols is columns [c0, c0+n) of an input's tile; all of them when it walks several axes.
func (l *lowering) inputCols(in *input, parts, c0, n int64) ir.Arg {
	if in.np == 1 {
		p := in.pairs[0]
		return l.chip(in.loc, in.dt, 0, int(parts), in.off+c0*int64(p.Step), ir.Pair{Step: p.Step, Num: uint32(n)})
	}
	return l.chip(in.loc, in.dt, 0, int(parts), in.off, in.pairs[:in.np]...)
}

// operand is operand j of value i for columns [c0, c0+n). psum stands for the unit's root.
func (l *lowering) operand(t *tile, i, j int, c0, n int64, psum ir.Arg) opnd {
	ref := l.refs[int(l.refAt[i])+j]
	rowLevel := l.vals.At(l.valsOf(l.u)[i]).row
	switch ref.kind {
	case refFull:
		if psum.Kind != 0 && ref.root == l.u.root {
			return opnd{arg: psum, dt: f32}
		}
		r := l.vals.At(ref.root)
		return opnd{arg: l.made(int(ref.idx), t, c0, n), dt: r.dt}
	case refRow:
		r := l.vals.At(ref.root)
		m := &l.locs[ref.idx]
		if rowLevel {
			return opnd{arg: l.made(int(ref.idx), t, 0, 1), dt: r.dt}
		}
		loc, off, dt := m.loc, m.off, r.dt
		if consumer := l.vals.At(l.valsOf(l.u)[i]); dt != f32 && consumer.op == vTT && !consumer.op0.Bitwise() && dt.Size() <= 4 &&
			(dt.IsFloat() || isSmall(r.lo, r.hi)) {
			if m.loc32 == 0 {
				m.loc32 = l.sb(l.tileName(r.src), f32, int(t.pn), 1)
				l.emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{l.cols(m.loc, dt, t.pn, m.off, 1)}, []ir.Arg{l.cols(m.loc32, f32, t.pn, 0, 1)})
			}
			loc, off, dt = m.loc32, 0, f32
		}
		return opnd{arg: l.repeated(loc, dt, t.pn, off, n), row: l.cols(loc, dt, t.pn, off, 1), dt: dt}
	case refInput:
		in := l.fetch(t, ref.idx)
		if !in.row {
			return opnd{arg: l.inputCols(in, t.pn, c0, n), dt: in.dt}
		}
		if rowLevel {
			return opnd{arg: l.cols(in.loc, in.dt, t.pn, in.off, 1), dt: in.dt}
		}
		return opnd{arg: l.repeated(in.loc, in.dt, t.pn, in.off, n), row: l.cols(in.loc, in.dt, t.pn, in.off, 1), dt: in.dt}
	}
	r := l.vals.At(ref.root)
	return opnd{imm: true, f: r.c0, dt: r.dt}
}

// solid makes a tile of a repeated element where an instruction has no immediate for it.
func (l *lowering) solid(t *tile, i, j int, o opnd, n int64) opnd {
	if !o.imm {
		return o
	}
	r := l.vals.At(l.refs[int(l.refAt[i])+j].root)
	loc := l.sb(l.tileName(l.cur), r.dt, int(t.pn), 1)
	l.memset(l.cols(loc, r.dt, t.pn, 0, 1), r.bits)
	return opnd{arg: l.repeated(loc, r.dt, t.pn, 0, n), row: l.cols(loc, r.dt, t.pn, 0, 1), dt: r.dt}
}

func (l *lowering) memset(out ir.Arg, bits uint64) {
	if out.Dtype.Size() == 8 && bits != 0 {
		// An instruction fills with up to four bytes: one for each half of the elements.
		for k := range int64(2) {
			l.memset(l.half(out, k), bits>>(32*k)&math.MaxUint32)
		}
		return
	}
	l.emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{out}, ir.Int(ir.KeyConstant, int64(bits)))
}

// activation is one function; which table set is resident is settled in the final order, after scheduling.
func (l *lowering) activation(fn target.ActFunc, x, bias, scale ir.Arg, alpha float32, out ir.Arg) {
	l.emit(ir.OpActivation, target.EngineAct, []ir.Arg{x, bias, scale, ir.ImmF32(alpha)}, []ir.Arg{out}, ir.Enum(ir.KeyFunc, fn))
}

// copyTo copies with a cast. Copies out of PSUM alternate between the engines that read it.
func (l *lowering) copyTo(x, out ir.Arg, psum bool) {
	e := target.EngineDVE
	if psum {
		if l.flip = !l.flip; l.flip {
			e = target.EngineAct
		}
	}
	l.emit(ir.OpTensorCopy, e, []ir.Arg{x}, []ir.Arg{out})
}

// emitValue emits value i for columns [c0, c0+n) of its tile.
func (l *lowering) emitValue(t *tile, i int, c0, n int64, psum ir.Arg) {
	v := l.valsOf(l.u)[i]
	r := l.vals.At(v)
	out := l.made(i, t, c0, n)
	arg := func(j int) opnd { return l.operand(t, i, j, c0, n, psum) }
	tileArg := func(j int) opnd { return l.solid(t, i, j, arg(j), n) }
	if l.forms[i].kind != formPlain {
		l.emitForm(t, i, c0, n, psum, out)
		return
	}
	switch r.op {
	case vAct:
		l.activation(r.fn, tileArg(0).arg, ir.ImmF32(r.c0), ir.ImmF32(r.c1), r.c2, out)
	case vTS:
		l.emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{tileArg(0).arg}, []ir.Arg{out},
			ir.Enum(ir.KeyOp0, r.op0), ir.Float(ir.KeyConst0, r.c0), ir.Bool(ir.KeyReverse0, r.rev0),
			ir.Enum(ir.KeyOp1, r.op1), ir.Float(ir.KeyConst1, r.c1), ir.Bool(ir.KeyReverse1, r.rev1))
	case vTT:
		a, b := tileArg(0), tileArg(1)
		scalar := func(o opnd) bool { return o.row.Kind != 0 && o.dt == f32 && !r.op0.Bitwise() }
		switch {
		case scalar(b):
			l.ptr(r.op0, a.arg, b.row, false, out)
		case scalar(a):
			l.ptr(r.op0, b.arg, a.row, true, out)
		default:
			l.emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{a.arg, b.arg}, []ir.Arg{out}, ir.Enum(ir.KeyOp, r.op0))
		}
	case vSel:
		p, yes, no := tileArg(0), tileArg(1), arg(2)
		if no.imm {
			l.memset(out, l.vals.At(l.refs[int(l.refAt[i])+2].root).encoded(r.dt))
		} else {
			l.copyTo(no.arg, out, false)
		}
		if r.dt.Size() == 8 {
			// The predicate holds for both halves of an element.
			l.emit(ir.OpCopyPredicated, target.EngineDVE, []ir.Arg{l.halves(yes.arg, true), l.halves(p.arg, false)}, []ir.Arg{l.halves(out, true)})
			return
		}
		l.emit(ir.OpCopyPredicated, target.EngineDVE, []ir.Arg{yes.arg, p.arg}, []ir.Arg{out})
	case vCopy:
		x := arg(0)
		switch {
		case x.imm:
			l.memset(out, l.vals.At(l.refs[int(l.refAt[i])].root).encoded(r.dt))
		case r.rev0:
			l.copyTo(l.lowBits(x.arg, r.dt), out, false)
		default:
			l.copyTo(x.arg, out, psum.Kind != 0)
		}
	case vIota:
		l.emitIota(t, v, out)
	}
}

// encoded is the repeated element in another type.
func (r *valueRow) encoded(dt target.Dtype) uint64 {
	if dt == r.dt {
		return r.bits
	}
	if dt.IsInteger() && r.dt.IsInteger() {
		return encodeInt(dt, r.lo)
	}
	return encode32(dt, r.c0)
}

// ptr is x op s, or s op x, with s one element a row.
func (l *lowering) ptr(op target.AluOp, x, s ir.Arg, rev bool, out ir.Arg) {
	l.emit(ir.OpTensorScalarPtr, target.EngineDVE, []ir.Arg{x, s}, []ir.Arg{out},
		ir.Enum(ir.KeyOp0, op), ir.Bool(ir.KeyReverse0, rev), ir.Enum(ir.KeyOp1, target.AluBypass), ir.Bool(ir.KeyReverse1, false))
}

// lowBits reads the low part of each element of an integer tile.
func (l *lowering) lowBits(x ir.Arg, dt target.Dtype) ir.Arg {
	if l.counting {
		return x
	}
	ap := *l.m.APs.At(x.AP())
	k := int32(ap.Dtype.Size() / dt.Size())
	ap.Off *= int64(k)
	for i := range ap.Pairs {
		ap.Pairs[i].Step *= k
	}
	ap.Dtype = dt
	return ir.Arg{Kind: ir.ArgAP, Dtype: dt, Ref: uint32(l.m.APs.Add(ap))}
}

// half is the low (0) or high (1) 32 bits of each element of a tile of 64-bit elements.
func (l *lowering) half(x ir.Arg, k int64) ir.Arg {
	if l.counting {
		return ir.Arg{Kind: ir.ArgAP, Dtype: target.Int32}
	}
	ap := *l.m.APs.At(x.AP())
	ap.Dtype = target.Int32
	ap.Off = ap.Off*2 + k
	for i := range ap.NPairs() {
		ap.Pairs[i].Step *= 2
	}
	return ir.Arg{Kind: ir.ArgAP, Dtype: target.Int32, Ref: uint32(l.m.APs.Add(ap))}
}

// halves walks each element of a tile twice: its 32-bit halves, or the element itself again.
func (l *lowering) halves(x ir.Arg, wide bool) ir.Arg {
	if l.counting {
		return x
	}
	ap := *l.m.APs.At(x.AP())
	n := ap.NPairs()
	pair := ir.Pair{Step: 0, Num: 2}
	if wide {
		pair.Step = 1
		ap.Dtype = target.Int32
		ap.Off *= 2
		for i := range n {
			ap.Pairs[i].Step *= 2
		}
	}
	ap.Pairs[n] = pair
	return ir.Arg{Kind: ir.ArgAP, Dtype: ap.Dtype, Ref: uint32(l.m.APs.Add(ap))}
}

// emitIota writes the running numbers of a tile.
func (l *lowering) emitIota(t *tile, v val, out ir.Arg) {
	d := &l.u.dom
	whole := dense(v, l.shapeOf(v))
	var skip *[maxRank]bool
	if l.vals.At(v).row {
		skip = &d.red
	}
	w := d.conform(&whole, skip)
	var buf, partBuf [maxRank]axis
	part := joined(axesOf(d, &w, t, buf[:0], groupP), partBuf[:0])
	if len(part) > 1 {
		l.unsupported(l.cur, "counting along a cut axis is not lowered")
		return
	}
	base, mult := tileOff(d, &w, t), int64(0)
	if len(part) == 1 {
		mult = part[0].mem
		base += t.p0 * mult
	}
	var patternBuf [2 * maxRank]int64
	var freeBuf [maxRank]axis
	pattern := patternBuf[:0]
	if !l.vals.At(v).row {
		for _, a := range joined(axesOf(d, &w, t, buf[:0], groupF), freeBuf[:0]) {
			pattern = append(pattern, a.mem, a.n)
		}
	}
	if len(pattern) == 0 {
		pattern = append(pattern, 0, 1)
	}
	if len(pattern) > 6 {
		l.unsupported(l.cur, "counting along a cut axis is not lowered")
		return
	}
	if l.counting {
		pattern = nil
	}
	l.emit(ir.OpIota, target.EnginePool, nil, []ir.Arg{out}, ir.Int(ir.KeyBase, base), l.m.IntsAttr(ir.KeyPattern, pattern...),
		ir.Int(ir.KeyChannelMultiplier, mult))
}

// emitReduce folds the whole row of value i's operand.
func (l *lowering) emitReduce(t *tile, i int) {
	l.newTile(i, t, 1)
	r := l.vals.At(l.valsOf(l.u)[i])
	x := l.operand(t, i, 0, 0, t.w, ir.Arg{})
	if r.rev1 {
		l.emitArg(t, i, x.arg)
		return
	}
	l.reduceOp(r.op0, x.arg, l.made(i, t, 0, 1))
}

func (l *lowering) reduceOp(op target.AluOp, x, out ir.Arg) {
	axes := ir.AxisX
	if !l.counting {
		axes = ir.AxisList(l.m.APs.At(x.AP()).NPairs() - 2) // all free axes of x
	}
	l.emit(ir.OpTensorReduce, target.EngineDVE, []ir.Arg{x}, []ir.Arg{out}, ir.Enum(ir.KeyOp, op), ir.Enum(ir.KeyAxis, axes))
}

// stripType is the type of partial results: float32 but for bitwise folds.
func stripType(r *valueRow) target.Dtype {
	if r.op0.Bitwise() {
		return r.dt
	}
	return f32
}

// reducePart folds one chunk into its column of the strip.
func (l *lowering) reducePart(t *tile, i int) {
	r := l.vals.At(l.valsOf(l.u)[i])
	dt := stripType(r)
	if t.chunk == 0 {
		n := l.plan.chunks
		if r.rev1 {
			n *= 2 // largest elements, and positions
		}
		l.locs[i] = made{strip: l.sb(l.tileName(r.src), dt, int(t.pn), n)}
	}
	x := l.operand(t, i, 0, 0, t.w, ir.Arg{})
	if r.rev1 {
		l.argPart(t, i, x.arg)
		return
	}
	l.reduceOp(r.op0, x.arg, l.cols(l.locs[i].strip, dt, t.pn, t.chunk, 1))
}

// reduceStrip folds the strip into the row value.
func (l *lowering) reduceStrip(t *tile, i int) {
	r := l.vals.At(l.valsOf(l.u)[i])
	strip := l.locs[i].strip
	l.newTile(i, t, 1)
	if r.rev1 {
		l.argStrip(t, i, strip)
		return
	}
	l.reduceOp(r.op0, l.cols(strip, stripType(r), t.pn, 0, l.plan.chunks), l.made(i, t, 0, 1))
}
