package tile

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// bankColumns is the fp32 columns of one PSUM bank, the most that one matmul writes.
const bankColumns = 512

// groupBanks is how many banks share one pass over the contraction: each stationary tile serves them all, while the other
// banks are evicted.
const groupBanks = 4

// dotTiles is the operands of the product that the current unit starts from. K is cut into tiles of 128 partitions, which lie
// side by side on the free axis of a location, a segment of them in each.
type dotTiles struct {
	blocking
	a, b  dotOperand
	k     int64
	kt    int64     // tiles of K
	banks int64     // of one pass over K, at most
	aSegs []segment // by row tile of the block or group, then segment
	bSegs []segment
	scrap []segment // of loads that are only counted
	first int64     // first row of the block
	// The banks of a group of row tiles, when a pass filled them all: those of each tile side by side, from row on.
	out [groupBanks]ir.Loc
	row int64
}

// segment is where a few K tiles of an operand lie.
type segment struct {
	loc  ir.Loc
	off  int64 // first element
	cols int64 // elements from one K tile to the next
	step int64 // of an element of the operand's own axes
}

// dotOperand is one operand: K on partitions, and its own axes on the free side.
type dotOperand struct {
	root val
	dt   target.Dtype
	v    view   // batch and free axes, conformed to the domain
	k    []axis // contraction axes
	segment
	// A value that stays in SBUF with K on its partitions is read where it lies.
	stays bool
	at    reached
	// One whose contraction runs along the free axis is turned by the array: loaded as rows, or read as rows where it stays.
	turned bool
	rows   bool
}

// startDot prepares the operands and gives the width of a chunk.
func (l *lowering) startDot(u *unit, width int64) int64 {
	d := &u.dom
	info := &l.dots[l.vals.At(u.root).aux]
	t := &l.dt
	*t = dotTiles{k: info.k, kt: (info.k + 127) / 128, aSegs: t.aSegs[:0], bSegs: t.bSegs[:0], scrap: t.scrap, banks: groupBanks}
	t.a = l.dotOperand(d, &info.a, info.nb+info.nm, groupP)
	// b lies as batch, k, n: take k out.
	var permBuf [maxRank]int64
	perm := permBuf[:0]
	for i := range int64(info.b.n) {
		if i < int64(info.nb) || i >= int64(info.nb+info.nk) {
			perm = append(perm, i)
		}
	}
	for i := range info.nk {
		perm = append(perm, int64(info.nb+i))
	}
	b := info.b.permuted(perm)
	t.b = l.dotOperand(d, &b, int(info.b.n)-info.nk, groupF)
	if l.opt.Level != L2 {
		t.banks = 1
	}
	rows := int64(1)
	for i := range d.n {
		if d.grp[i] == groupP {
			rows *= d.dims[i]
		}
	}
	size := productSize{
		tiles: (rows + 127) / 128, cols: d.freeElems(), kt: t.kt, a: int64(t.a.dt.Size()), b: int64(t.b.dt.Size()), width: width,
		evict: l.columnBytes(u, l.valsOf(u)), rows: u.fullRow || u.hasRed,
		// Whether an operand stays is not known when units are planned, and must not change the plan.
		turnA: l.turns(d, &t.a, groupP), turnB: l.turns(d, &t.b, groupF),
	}
	if !u.fullRow {
		size.width = max(1, width/2)
		if size.width > bankColumns {
			size.width -= size.width % bankColumns
		}
	}
	size.width = min(size.width, size.cols)
	t.blocking = l.chooseBlocking(&size)
	if t.a.stays {
		t.blocking.a, t.segA = keepTile, t.kt
	}
	if t.b.stays {
		t.blocking.b, t.segB = keepBlock, t.kt
	}
	return t.width
}

// wholeRows reports whether a product's unit may compute values of whole rows: without loading the moving operand for every
// row tile anew.
func (l *lowering) wholeRows(u *unit) bool {
	info := &l.dots[l.vals.At(u.root).aux]
	b := int64(l.vals.At(info.b.root).dt.Size())
	return info.m <= 128 || (info.k+127)/128*info.n*b <= l.held()
}

// dotOperand takes the operand apart: axes [0, free) over the domain, the rest contracted.
func (l *lowering) dotOperand(d *domain, v *view, free int, g group) dotOperand {
	skip := d.outside(groupB, g)
	r := l.vals.At(v.root)
	own := view{root: v.root, off: v.off}
	for i := range free {
		own.push(v.dims[i], v.step[i])
	}
	o := dotOperand{root: v.root, dt: r.dt, v: d.conform(&own, &skip), segment: segment{step: 1}}
	o.k = l.unitAxes.TakeDirty(int(v.n) - free)
	for i := range o.k {
		o.k[i] = axis{n: v.dims[free+i], mem: v.step[free+i]}
	}
	if s := l.staysAt(v.root); s != nil {
		o.at, o.stays = s.reachDot(d, &o, &skip, l.dt.k)
	}
	o.turned = !o.stays && l.turns(d, &o, g)
	return o
}

// loadK loads K tiles [k0, k0+kn) of an operand: partitions are positions of K in a tile, then one block of cols elements a
// K tile. fetch moves rows [0, pn) of some K positions.
func (l *lowering) loadK(o *dotOperand, off int64, k0, kn int64, free []axis) {
	dt := l.vals.At(o.root).dt
	t := &l.dt
	parts := min(128, t.k-k0*128)
	o.loc, o.off, o.step = l.sb(l.tileName(l.vals.At(o.root).src), o.dt, int(parts), kn*o.cols), 0, 1
	if r := l.vals.At(o.root); r.op == vSplat {
		l.memset(l.cols(o.loc, o.dt, parts, 0, kn*o.cols), r.bits)
		return
	}
	h := l.homeOf(o.root)
	var kBuf, allBuf [maxRank + 1]axis
	kAxes := joined(o.k, kBuf[:0])
	whole := kn
	if k0+kn == t.kt && t.k%128 != 0 {
		whole--
	}
	if len(kAxes) <= 1 && whole > 1 {
		step := int64(0)
		if len(kAxes) == 1 {
			step = kAxes[0].mem
		}
		all := append(append(allBuf[:0], axis{n: whole, mem: 128 * step, chip: o.cols}), free...)
		l.transfer(load, h, dt, off+k0*128*step, []axis{{n: 128, mem: step}}, 0, 128, all, side{loc: o.loc, dt: o.dt})
	} else {
		whole = 0
	}
	for k := whole; k < kn; k++ {
		at := (k0 + k) * 128
		l.transfer(load, h, dt, off, kAxes, at, min(128, t.k-at), free, side{loc: o.loc, dt: o.dt, off: k * o.cols})
	}
}

// loadA loads the stationary operand for the rows of a tile.
func (l *lowering) loadA(t *tile, k0, kn int64) {
	o := &l.dt.a
	d := &l.u.dom
	switch {
	case o.stays:
		l.pointDot(t, o, k0, groupP, t.p0)
		return
	case o.turned:
		l.loadTurned(t, o, groupP, k0, kn, t.p0, t.pn)
		return
	}
	o.cols = t.pn
	var buf [maxRank]axis
	l.ownBoxes = boxes(axesOf(d, &o.v, t, buf[:0], groupP), t.p0, t.pn, l.ownBoxes[:0])
	rows := l.ownBoxes
	if len(rows) == 1 {
		l.loadK(o, tileOff(d, &o.v, t)+rows[0].mem, k0, kn, denseChip(rows[0].axes[:rows[0].k]))
		return
	}
	l.loadBoxes(o, tileOff(d, &o.v, t), k0, kn, rows)
}

// loadBoxes is loadK for rows that fall into several boxes.
func (l *lowering) loadBoxes(o *dotOperand, off, k0, kn int64, rows []box) {
	td := &l.dt
	dt := l.vals.At(o.root).dt
	o.loc, o.off, o.step = l.sb(l.tileName(l.vals.At(o.root).src), o.dt, int(min(128, td.k-k0*128)), kn*o.cols), 0, 1
	if r := l.vals.At(o.root); r.op == vSplat {
		l.memset(l.cols(o.loc, o.dt, min(128, td.k-k0*128), 0, kn*o.cols), r.bits)
		return
	}
	h := l.homeOf(o.root)
	for k := range kn {
		at := (k0 + k) * 128
		for i := range rows {
			b := &rows[i]
			l.transfer(load, h, dt, off+b.mem, o.k, at, min(128, td.k-at), denseChip(b.axes[:b.k]), side{loc: o.loc, dt: o.dt, off: k*o.cols + b.at})
		}
	}
}

// loadB loads columns [c0, c0+n) of the chunk of the moving operand; the whole chunk when n is its width.
func (l *lowering) loadB(t *tile, k0, kn, c0, n int64) {
	o := &l.dt.b
	d := &l.u.dom
	switch {
	case o.stays:
		l.pointDot(t, o, k0, groupF, c0) // of the chunk
		return
	case o.turned:
		l.loadTurned(t, o, groupF, k0, kn, c0, n)
		return
	}
	o.cols = n
	var buf [maxRank]axis
	axes := axesOf(d, &o.v, t, buf[:0], groupF)
	off := tileOff(d, &o.v, t)
	if n == t.w {
		l.loadK(o, off, k0, kn, denseChip(axes))
		return
	}
	l.ownBoxes = boxes(axes, c0, n, l.ownBoxes[:0])
	parts := l.ownBoxes
	if len(parts) == 1 {
		l.loadK(o, off+parts[0].mem, k0, kn, denseChip(parts[0].axes[:parts[0].k]))
		return
	}
	l.loadBoxes(o, off, k0, kn, parts)
}

// segments is how many locations hold the K tiles of an operand.
func (t *dotTiles) segments(seg int64) int64 { return (t.kt + seg - 1) / seg }

// loadSegments makes all K tiles of an operand, in order: of the rows of a tile, or of columns of a chunk.
func (l *lowering) loadSegments(segs []segment, seg int64, o *dotOperand, load func(k0, kn int64)) []segment {
	l.repeat(l.dt.segments(seg), func(i int64) {
		load(i*seg, min(seg, l.dt.kt-i*seg))
		segs = append(segs, o.segment)
	})
	return segs
}

// startGroup loads what the row tiles [r, r+g) need beyond what is there. batch says that all is new, block that the columns
// are.
func (l *lowering) startGroup(t *tile, r, g int64, batch, block bool) {
	td := &l.dt
	l.at(l.vals.At(l.u.root).src)
	switch {
	case td.blocking.b == keepWhole && batch:
		all := *t
		all.w = l.plan.cols
		for i := range l.u.dom.n {
			all.f0[i] = 0
			if l.u.dom.grp[i] == groupF {
				all.fn[i] = l.u.dom.dims[i]
			}
		}
		td.bSegs = l.loadSegments(td.bSegs[:0], td.segB, &td.b, func(k0, kn int64) { l.loadB(&all, k0, kn, 0, all.w) })
	case td.blocking.b == keepBlock && block:
		td.bSegs = l.loadSegments(td.bSegs[:0], td.segB, &td.b, func(k0, kn int64) { l.loadB(t, k0, kn, 0, t.w) })
	}
	switch {
	case td.blocking.a == keepTile:
		td.aSegs = td.aSegs[:0]
		td.first = r
	case td.blocking.a == keepBlock && t.chunk == 0 && r%td.block == 0:
		td.aSegs = td.aSegs[:0]
		td.first = r
		fallthrough
	case td.blocking.a == keepBlock && t.chunk == 0:
	default:
		return
	}
	row := *t
	for i := range g {
		l.plan.row(&row, r+i)
		td.aSegs = l.loadSegments(td.aSegs, td.segA, &td.a, func(k0, kn int64) { l.loadA(&row, k0, kn) })
	}
}

// pass multiplies columns [c0, c0+n) of the chunk for the row tiles [r, r+g) into banks.
func (l *lowering) pass(t *tile, r, g, c0, n int64) {
	td := &l.dt
	src := l.vals.At(l.u.root).src
	l.at(src)
	nb := (n + bankColumns - 1) / bankColumns
	var rows [groupBanks]tile
	for i := range g {
		rows[i] = *t
		l.plan.row(&rows[i], r+i)
		for b := range nb {
			td.out[i*nb+b] = l.psum(l.tileName(src), f32, int(rows[i].pn), min(bankColumns, n-b*bankColumns))
		}
	}
	td.row = r
	base := c0 // of the columns, where the moving operand lies
	if td.blocking.b == keepWhole {
		base += l.columnOf(t)
	} else if td.blocking.b == keepStream {
		base = 0
	}
	na := td.segments(td.segA)
	if l.counting {
		for i := int64(0); td.blocking.a == keepStream && i < g; i++ {
			td.scrap = l.loadSegments(td.scrap[:0], td.segA, &td.a, func(k0, kn int64) { l.loadA(&rows[i], k0, kn) })
		}
		if td.blocking.b == keepStream {
			td.scrap = l.loadSegments(td.scrap[:0], td.segB, &td.b, func(k0, kn int64) { l.loadB(t, k0, kn, c0, n) })
		}
		l.count.insts += td.kt * g * nb
		return
	}
	var aSeg [groupBanks]segment
	var bSeg segment
	for k := range td.kt {
		ka, kb := k%td.segA, k%td.segB
		for i := range g {
			switch {
			case ka != 0:
			case td.blocking.a == keepStream:
				l.loadA(&rows[i], k, min(td.segA, td.kt-k))
				aSeg[i] = td.a.segment
			default:
				aSeg[i] = td.aSegs[(r+i-td.first)*na+k/td.segA]
			}
		}
		switch {
		case kb != 0:
		case td.blocking.b == keepStream:
			l.loadB(t, k, min(td.segB, td.kt-k), c0, n)
			bSeg = td.b.segment
		default:
			bSeg = td.bSegs[k/td.segB]
		}
		parts := min(128, td.k-k*128)
		for i := range g {
			a := &aSeg[i]
			st := l.chip(a.loc, td.a.dt, 0, int(parts), a.off+ka*a.cols, ir.Pair{Step: int32(a.step), Num: uint32(rows[i].pn)})
			for b := range nb {
				c := b * bankColumns
				w := min(bankColumns, n-c)
				mv := l.chip(bSeg.loc, td.b.dt, 0, int(parts), bSeg.off+kb*bSeg.cols+(base+c)*bSeg.step, ir.Pair{Step: int32(bSeg.step), Num: uint32(w)})
				l.matmul(mv, st, l.cols(td.out[i*nb+b], f32, rows[i].pn, 0, w), k, td.kt)
			}
		}
	}
}

// columnOf is the position of a chunk's first column in the row-major order of the free axes.
func (l *lowering) columnOf(t *tile) int64 {
	d := &l.u.dom
	c := int64(0)
	for i := range d.n {
		if d.grp[i] == groupF {
			c = c*d.dims[i] + t.f0[i]
		}
	}
	return c
}

// accumulationFlag of step k of n: 1 starts a group, 2 stops it, 4 adds.
func accumulationFlag(k, n int64) int64 {
	f := int64(4)
	if k == 0 {
		f = 1
	}
	if k == n-1 {
		f |= 2
	}
	return f
}

func (l *lowering) matmul(moving, stationary, out ir.Arg, k, n int64) {
	l.emit(ir.OpMatmult, target.EnginePE, []ir.Arg{moving, stationary}, []ir.Arg{out}, ir.Int(ir.KeyAccumulationFlag, accumulationFlag(k, n)))
	if !l.counting {
		l.stats.Matmuls++
	}
}

// emitRoot computes the unit's root for a tile into the location of value i, or, with evictor ≥ 0, evicts it through that
// value.
func (l *lowering) emitRoot(t *tile, i, evictor int) {
	switch l.u.kind {
	case unitDot:
		l.emitDot(t, i, evictor)
	case unitConv:
		l.emitConv(t, i, evictor)
	case unitWindow:
		l.emitWindow(t, i)
	case unitTake:
		l.emitTake(t, i)
	}
}

// evict copies columns [c0, c0+n) out of PSUM: plainly, or through the value that consumes them.
func (l *lowering) evict(t *tile, i, evictor int, psum ir.Arg, c0, n int64) {
	if evictor >= 0 {
		l.at(l.vals.At(l.valsOf(l.u)[evictor]).src)
		l.emitValue(t, evictor, c0, n, psum)
		return
	}
	l.copyTo(psum, l.made(i, t, c0, n), true)
}

// emitDot evicts the product of a tile. A group's banks are filled before; a tile for itself passes over K for each set of
// banks.
func (l *lowering) emitDot(t *tile, i, evictor int) {
	td := &l.dt
	if evictor >= 0 {
		l.newTile(evictor, t, t.w)
	} else {
		l.newTile(i, t, t.w)
	}
	r := t.p0 / l.plan.height
	set := td.banks * bankColumns
	l.repeat((t.w+set-1)/set, func(s int64) {
		n := min(set, t.w-s*set)
		nb := (n + bankColumns - 1) / bankColumns
		if td.group == 1 {
			l.pass(t, r, 1, s*set, n)
		}
		for b := range nb {
			c := b * bankColumns
			w := min(bankColumns, n-c)
			l.evict(t, i, evictor, l.cols(td.out[(r-td.row)*nb+b], f32, t.pn, 0, w), s*set+c, w)
		}
	})
}

// reachDot finds an operand that stays in SBUF with K on its partitions and its own axes on one walk.
func (r *resident) reachDot(d *domain, o *dotOperand, skip *[maxRank]bool, k int64) (reached, bool) {
	var restBuf, freeBuf [maxRank]axis
	rest, free := restBuf[:0], freeBuf[:0]
	for i := range d.n {
		a := axis{n: d.dims[i], mem: o.v.step[i]}
		if skip[i] {
			a.n = 1
		}
		rest = append(rest, a)
	}
	w, ok := r.reach(o.v.off, o.k, rest, min(128, k))
	if !ok {
		return w, false
	}
	for i := range d.n {
		if d.grp[i] != groupB && !skip[i] {
			free = append(free, axis{n: d.dims[i], chip: w.step[i]})
		}
	}
	return w, smallSteps(free, 1)
}

// pointDot aims an operand that stays in SBUF at K tile k0 and position at of its own axes, those of group g.
func (l *lowering) pointDot(t *tile, o *dotOperand, k0 int64, g group, at int64) {
	d := &l.u.dom
	r := &l.residents[l.stays.Get(o.root)]
	o.loc, o.cols, o.step = r.loc, r.tile, 1
	o.off = o.at.off + (o.at.tile0+k0)*r.tile
	var buf [maxRank]axis
	free := buf[:0]
	for i := range d.n {
		switch {
		case d.grp[i] == groupB:
			o.off += t.b[i] * o.at.step[i]
		case d.grp[i] == g:
			n := d.dims[i]
			if g == groupF {
				o.off += t.f0[i] * o.at.step[i]
				n = t.fn[i]
			}
			free = append(free, axis{n: n, chip: o.at.step[i]})
		}
	}
	if w := chipJoined(free, free[:0]); len(w) > 0 {
		o.step = w[0].chip
	}
	o.off += at * o.step
}
