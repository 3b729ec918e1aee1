package tile

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// emitPieces writes a value piece by piece, first the filling, then each piece in order, so that a later piece may overwrite
// an earlier one: into SBUF when the value stays there, and into DRAM when something reads it there.
func (l *lowering) emitPieces(u *unit) {
	r := l.vals.At(u.root)
	l.at(r.src)
	info := &l.pieces[r.aux]
	if s := l.staysAt(u.root); s != nil {
		if s.loc == 0 && !l.counting {
			s.loc = l.sb(l.tileName(r.src), r.dt, int(s.height), s.elems)
		}
		if info.fill.root != 0 {
			l.fillChip(s, r.dt, l.vals.At(info.fill.root).encoded(r.dt))
		}
		for i := range info.pieces {
			l.pieceToChip(&info.pieces[i], s, r.dt)
		}
		if !l.homed.Get(u.root) {
			return
		}
	}
	to := l.homeOf(u.root)
	if info.fill.root != 0 {
		l.fillDRAM(l.vals.At(info.fill.root), to, dense(u.root, l.shapeOf(u.root)))
	}
	for i := range info.pieces {
		p := &info.pieces[i]
		if s := l.staysAt(p.src.root); s != nil {
			if w, ok := l.pieceRows(&p.src, s); ok {
				l.chipToDRAM(&w, s, r.dt, &p.dst, to)
				continue
			}
		}
		l.copyOut(p.src, to, p.dst)
	}
}

// pieceWalk is a side of a piece that lies on chip: which axes of the piece are rows, and the walk of the others.
type pieceWalk struct {
	row  [maxRank]bool
	rows int64
	at   reached
	rest [maxRank]int8 // axes that are not rows, in the order of at.step
	nr   int
}

// pieceRows finds how a view walks a value in SBUF.
func (l *lowering) pieceRows(v *view, r *resident) (w pieceWalk, ok bool) {
	w.rows = 1
	var partBuf, restBuf [maxRank]axis
	part, rest := partBuf[:0], restBuf[:0]
	for i := range v.n {
		if v.dims[i] == 1 {
			continue
		}
		g, found := r.groupOf(v.step[i])
		if !found {
			return w, false
		}
		a := axis{n: v.dims[i], mem: v.step[i]}
		if g == groupP {
			w.row[i] = true
			w.rows *= a.n
			part = append(part, a)
			continue
		}
		rest = append(rest, a)
		w.rest[w.nr] = int8(i)
		w.nr++
	}
	w.at, ok = r.find(v.off, part, rest)
	return w, ok
}

// pieceFits reports whether a piece can be taken from SBUF: into DRAM, or into SBUF with the same axes as rows.
func (l *lowering) pieceFits(p *piece, src, dst *resident) bool {
	a, ok := l.pieceRows(&p.src, src)
	if !ok || dst.elems == 0 {
		return ok
	}
	b, ok := l.pieceRows(&p.dst, dst)
	return ok && a.row == b.row
}

// layOutPieces lays a value of pieces out as the unit that made its largest piece did; plan.rows stays 0 when none did.
func (l *lowering) layOutPieces(u *unit, wishes []wish) {
	info := &l.pieces[l.vals.At(u.root).aux]
	var best *piece
	size := int64(0)
	for i := range info.pieces {
		p := &info.pieces[i]
		if r := &wishes[p.src.root].r; l.vals.At(p.src.root).unit != 0 && r.elems > 0 && p.src.elems() > size {
			best, size = p, p.src.elems()
		}
	}
	if best == nil {
		return
	}
	r := &wishes[best.src.root].r
	shape := l.shapeOf(u.root)
	whole := dense(u.root, shape)
	var d domain
	for i, n := range shape {
		d.dims[d.n] = n
		// The axis of the piece that walks this axis of the whole.
		for k := range best.dst.n {
			if s := best.dst.step[k]; best.dst.dims[k] > 1 && s >= whole.step[i] && s < whole.step[i]*n && s%whole.step[i] == 0 {
				g, ok := r.groupOf(best.src.step[k])
				if !ok {
					return
				}
				d.grp[d.n] = g
			}
		}
		d.n++
	}
	u.dom = d
	u.plan = planTiles(&u.dom, 128, math.MaxInt32, 0)
}

// fillChip fills a value in SBUF with one repeated element.
func (l *lowering) fillChip(s *resident, dt target.Dtype, bits uint64) {
	for at := int64(0); at < s.elems; at += maxColumns {
		l.memset(l.cols(s.loc, dt, s.height, at, min(maxColumns, s.elems-at)), bits)
	}
}

// segment is the rows from q on that lie in one partition tile, where they start, and in which tile.
func (w *pieceWalk) segment(r *resident, q int64) (n, part, off int64) {
	row := w.at.row0 + q
	part = row % r.height
	return min(w.rows-q, r.height-part), part, w.at.off + row/r.height*r.tile
}

// pieceToChip writes a piece into a value that stays in SBUF.
func (l *lowering) pieceToChip(p *piece, dst *resident, dt target.Dtype) {
	to, _ := l.pieceRows(&p.dst, dst)
	if src := l.staysAt(p.src.root); src != nil {
		if from, ok := l.pieceRows(&p.src, src); ok && from.row == to.row {
			l.chipToChip(&from, src, &to, dst, dt, &p.src)
			return
		}
	}
	h := l.homeOf(p.src.root)
	var partBuf, freeBuf [maxRank]axis
	part, free := partBuf[:0], freeBuf[:0]
	for i := range p.src.n {
		if to.row[i] {
			part = append(part, axis{n: p.src.dims[i], mem: p.src.step[i]})
		}
	}
	for k, i := range to.rest[:to.nr] {
		free = append(free, axis{n: p.src.dims[i], mem: p.src.step[i], chip: to.at.step[k]})
	}
	for q := int64(0); q < to.rows; {
		n, start, off := to.segment(dst, q)
		l.transfer(load, h, l.vals.At(p.src.root).dt, p.src.off, part, q, n, free, side{loc: dst.loc, dt: dt, start: start, off: off})
		q += n
	}
}

// chipToDRAM stores a piece from SBUF.
func (l *lowering) chipToDRAM(from *pieceWalk, src *resident, dt target.Dtype, dst *view, to home) {
	var partBuf, freeBuf [maxRank]axis
	part, free := partBuf[:0], freeBuf[:0]
	for i := range dst.n {
		if from.row[i] {
			part = append(part, axis{n: dst.dims[i], mem: dst.step[i]})
		}
	}
	for k, i := range from.rest[:from.nr] {
		free = append(free, axis{n: dst.dims[i], mem: dst.step[i], chip: from.at.step[k]})
	}
	for q := int64(0); q < from.rows; {
		n, start, off := from.segment(src, q)
		l.transfer(store, to, dt, dst.off, part, q, n, free, side{loc: src.loc, dt: dt, start: start, off: off})
		q += n
	}
}

// chipToChip moves a piece within SBUF: by the Vector engine where both sides may start at their partitions, else by a
// transfer.
func (l *lowering) chipToChip(from *pieceWalk, src *resident, to *pieceWalk, dst *resident, dt target.Dtype, v *view) {
	var freeBuf [maxRank]axis
	free := freeBuf[:0] // mem is the source's step
	for k, i := range from.rest[:from.nr] {
		a := axis{n: v.dims[i], mem: from.at.step[k], chip: to.at.step[k]}
		if j := len(free) - 1; j >= 0 && free[j].mem == a.mem*a.n && free[j].chip == a.chip*a.n {
			free[j].n *= a.n
			free[j].mem, free[j].chip = a.mem, a.chip
			continue
		}
		free = append(free, a)
	}
	outer := free[:max(0, len(free)-4)]
	inner := free[len(outer):]
	small := true
	var spBuf, dpBuf [4]ir.Pair
	sp, dp := spBuf[:0], dpBuf[:0]
	for _, a := range inner {
		sp, dp = append(sp, ir.Pair{Step: int32(a.mem), Num: uint32(a.n)}), append(dp, ir.Pair{Step: int32(a.chip), Num: uint32(a.n)})
		small = small && a.mem <= math.MaxInt16 && a.mem >= math.MinInt16 && a.chip <= math.MaxInt16 && a.n <= math.MaxUint16
	}
	if len(inner) == 0 {
		sp, dp = append(sp, ir.Pair{Step: 1, Num: 1}), append(dp, ir.Pair{Step: 1, Num: 1})
	}
	for q := int64(0); q < from.rows; {
		ns, sPart, sOff := from.segment(src, q)
		nd, dPart, dOff := to.segment(dst, q)
		n := min(ns, nd)
		var idx [maxRank]int64
		for {
			so, do := sOff, dOff
			for i, a := range outer {
				so += idx[i] * a.mem
				do += idx[i] * a.chip
			}
			x := l.chip(src.loc, dt, int(sPart), int(n), so, sp...)
			y := l.chip(dst.loc, dt, int(dPart), int(n), do, dp...)
			if small && target.LegalStart(int(sPart), int(n)) && target.LegalStart(int(dPart), int(n)) {
				l.copyTo(x, y, false)
			} else {
				l.emit(ir.OpDMACopy, target.EngineSP, []ir.Arg{x}, []ir.Arg{y})
			}
			if !odometer(idx[:len(outer)], outer) {
				break
			}
		}
		q += n
	}
}
