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
// side by side on the free axis.
type dotTiles struct {
	a, b   dotOperand
	k      int64
	kt     int64 // tiles of K
	stream bool  // operands are loaded a few K tiles at a time, for each group of banks
	group  int64 // K tiles a load when streaming
	bytes  int64 // a partition, of the operands of a tile
}

// dotOperand is one operand: K on partitions, and its own axes on the free side.
type dotOperand struct {
	root val
	dt   target.Dtype
	v    view   // batch and free axes, conformed to the domain
	k    []axis // contraction axes
	loc  ir.Loc
	cols int64 // elements from one K tile to the next
	off  int64 // first element
	step int64 // of a free element
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
	*t = dotTiles{k: info.k, kt: (info.k + 127) / 128}
	t.a = l.dotOperand(d, &info.a, info.nb+info.nm, groupP)
	// b lies as batch, k, n: take k out.
	perm := make([]int64, 0, maxRank)
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
	n := d.freeElems()
	blockB := t.kt * int64(t.b.dt.Size())
	blockA := t.kt * 128 * int64(t.a.dt.Size())
	fits := max(1, l.budget/4/blockB)
	if !u.fullRow {
		width = max(1, width/2)
	}
	switch {
	case blockA > l.budget/8 || fits < min(n, bankColumns) || u.fullRow && fits < n:
		t.stream = true
		t.group = max(1, l.budget/8/((bankColumns*groupBanks)*int64(t.b.dt.Size())+128*int64(t.a.dt.Size())))
	case fits < width:
		width = fits
	}
	if !u.fullRow && width > bankColumns {
		width -= width % bankColumns
	}
	t.bytes = t.kt*min(width, n)*int64(t.b.dt.Size()) + blockA
	if t.stream {
		t.bytes = t.group * (min(n, bankColumns*groupBanks)*int64(t.b.dt.Size()) + 128*int64(t.a.dt.Size()))
	}
	return width
}

// dotOperand takes the operand apart: axes [0, free) over the domain, the rest contracted.
func (l *lowering) dotOperand(d *domain, v *view, free int, g group) dotOperand {
	skip := d.outside(groupB, g)
	r := l.vals.At(v.root)
	own := view{root: v.root, off: v.off}
	for i := range free {
		own.push(v.dims[i], v.step[i])
	}
	o := dotOperand{root: v.root, dt: r.dt, v: d.conform(&own, &skip), step: 1}
	for i := free; i < int(v.n); i++ {
		o.k = append(o.k, axis{n: v.dims[i], mem: v.step[i]})
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
	kAxes := joined(o.k)
	whole := kn
	if k0+kn == t.kt && t.k%128 != 0 {
		whole--
	}
	if len(kAxes) <= 1 && whole > 1 {
		step := int64(0)
		if len(kAxes) == 1 {
			step = kAxes[0].mem
		}
		all := append([]axis{{n: whole, mem: 128 * step, chip: o.cols}}, free...)
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
	rows := boxes(axesOf(d, &o.v, t, nil, groupP), t.p0, t.pn, nil)
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
		l.pointDot(t, o, k0, groupF, c0)
		return
	case o.turned:
		l.loadTurned(t, o, groupF, k0, kn, c0, n)
		return
	}
	o.cols = n
	axes := axesOf(d, &o.v, t, nil, groupF)
	off := tileOff(d, &o.v, t)
	if n == t.w {
		l.loadK(o, off, k0, kn, denseChip(axes))
		return
	}
	parts := boxes(axes, c0, n, nil)
	if len(parts) == 1 {
		l.loadK(o, off+parts[0].mem, k0, kn, denseChip(parts[0].axes[:parts[0].k]))
		return
	}
	l.loadBoxes(o, off, k0, kn, parts)
}

// dotChunk loads what the tiles of a chunk share, and the tile's own rows.
func (l *lowering) dotChunk(t *tile, fresh bool) {
	td := &l.dt
	if td.stream {
		return
	}
	l.at(l.vals.At(l.u.root).src)
	if fresh {
		l.loadB(t, 0, td.kt, 0, t.w)
	}
	l.loadA(t, 0, td.kt)
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

func (l *lowering) emitDot(t *tile, i, evictor int) {
	td := &l.dt
	if evictor >= 0 {
		l.newTile(evictor, t, t.w)
	} else {
		l.newTile(i, t, t.w)
	}
	src := l.vals.At(l.u.root).src
	var banks [groupBanks]ir.Loc
	for g0 := int64(0); g0 < t.w && l.err == nil; g0 += groupBanks * bankColumns {
		l.at(src)
		gw := min(groupBanks*bankColumns, t.w-g0)
		nb := int((gw + bankColumns - 1) / bankColumns)
		for b := range nb {
			n := min(bankColumns, gw-int64(b)*bankColumns)
			banks[b] = l.psum(l.tileName(src), f32, int(t.pn), n)
		}
		base := g0
		k0 := int64(0)
		for k := range td.kt {
			if td.stream {
				if k%td.group == 0 {
					kn := min(td.group, td.kt-k)
					l.loadA(t, k, kn)
					l.loadB(t, k, kn, g0, gw)
					k0 = k
				}
				base = 0
			}
			parts := min(128, td.k-k*128)
			st := l.chip(td.a.loc, td.a.dt, 0, int(parts), td.a.off+(k-k0)*td.a.cols, ir.Pair{Step: int32(td.a.step), Num: uint32(t.pn)})
			for b := range nb {
				c := int64(b) * bankColumns
				n := min(bankColumns, gw-c)
				mv := l.chip(td.b.loc, td.b.dt, 0, int(parts), td.b.off+(k-k0)*td.b.cols+(base+c)*td.b.step, ir.Pair{Step: int32(td.b.step), Num: uint32(n)})
				l.matmul(mv, st, l.cols(banks[b], f32, t.pn, 0, n), k, td.kt)
			}
		}
		for b := range nb {
			c := int64(b) * bankColumns
			n := min(bankColumns, gw-c)
			l.evict(t, i, evictor, l.cols(banks[b], f32, t.pn, 0, n), g0+c, n)
		}
	}
}

// reachDot finds an operand that stays in SBUF with K on its partitions and its own axes on one walk.
func (r *resident) reachDot(d *domain, o *dotOperand, skip *[maxRank]bool, k int64) (reached, bool) {
	var rest, free []axis
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
	var free []axis
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
	if w := chipJoined(free); len(w) > 0 {
		o.step = w[0].chip
	}
	o.off += at * o.step
}
