package tile

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// maxMap bounds the elements a partition of a padded map: then no step over it leaves int16.
const maxMap = 1<<15 - 1

// span is one windowed axis of a map: the window, the operand's extent and step, and the axis of the unit's domain.
type span struct {
	w   graph.Window
	n   int64
	mem int64
	at  int
	// Of the map that is loaded: outputs from o0, on of them; positions and the step of one.
	o0, on int64
	len    int64
	pitch  int64
	walk   int64 // the step of one position where the map lies
}

// mapTile is a map on chip, and the element where its first position is.
type mapTile struct {
	loc ir.Loc
	off int64
}

// reach is the padded, dilated positions that outputs [o0, o0+on) look at.
func (s *span) reach(on int64) int64 { return (on-1)*s.w.Stride + (s.w.Size-1)*s.w.RhsDilate + 1 }

// mapOf sizes the map of a chunk's box, and gives its elements a partition.
func mapOf(spans []span, t *tile) int64 {
	size := int64(1)
	for i := len(spans) - 1; i >= 0; i-- {
		s := &spans[i]
		s.o0, s.on = t.f0[s.at], t.fn[s.at]
		s.len, s.pitch = s.reach(s.on), size
		size *= s.len
	}
	return size
}

// mapWidth is the largest width, up to the given one, whose chunks have maps of at most limit elements. 0: not even one
// output's.
func mapWidth(d *domain, spans []span, width, limit int64) int64 {
	inner := d.freeElems()
	for i := range d.n {
		if d.grp[i] != groupF {
			continue
		}
		inner /= d.dims[i]
		if inner > width {
			continue
		}
		// Chunks of k positions of this axis, with all of the axes behind it.
		fits := func(k int64) bool {
			var t tile
			for j := range d.n {
				t.fn[j] = 1
				if d.grp[j] == groupF && j > i {
					t.fn[j] = d.dims[j]
				}
			}
			t.fn[i] = k
			return mapOf(spans, &t) <= limit
		}
		k := min(d.dims[i], width/inner)
		if !fits(1) {
			continue
		}
		for k > 1 && !fits(k) {
			k--
		}
		return inner * k
	}
	if d.freeElems() == 1 {
		var t tile
		for j := range d.n {
			t.fn[j] = 1
		}
		if mapOf(spans, &t) <= limit {
			return 1
		}
	}
	return 0
}

// loadMap gives rows [p0, p0+pn) of the operand's walk over part, each with the map that mapOf sized: borders and the holes
// of a dilated operand hold fill. A value that stays in SBUF is read where it lies when there are none, and copied on chip
// when there are; at says how to reach it.
func (l *lowering) loadMap(root val, off int64, part []axis, p0, pn int64, spans []span, fill float32, stays *reached) mapTile {
	r := l.vals.At(root)
	size := int64(1)
	if len(spans) > 0 {
		size = spans[0].pitch * spans[0].len
	}
	holes, empty := false, false
	var free [maxRank]axis
	var first [maxRank]int64
	chip := int64(0)
	for i := range spans {
		s := &spans[i]
		s.walk = s.pitch
		start := s.o0*s.w.Stride - s.w.PadLow
		ld := s.w.LhsDilate
		q0 := max(0, ceilDiv(start, ld))
		q1 := min(s.n-1, floorDiv(start+s.len-1, ld))
		if q1 < q0 {
			empty = true
			break
		}
		free[i] = axis{n: q1 - q0 + 1, mem: s.mem, chip: ld * s.pitch}
		first[i] = q0
		chip += (q0*ld - start) * s.pitch
		off += q0 * s.mem
		if free[i].n != s.len {
			holes = true
		}
	}
	if stays != nil && !holes && !empty {
		res := l.staysAt(root)
		at := stays.off + (stays.tile0+p0/res.height)*res.tile
		for i := range spans {
			spans[i].walk = stays.step[i]
			at += first[i] * stays.step[i]
		}
		return mapTile{res.loc, at}
	}
	loc := l.sb(l.tileName(r.src), r.dt, int(pn), size)
	if holes || empty {
		l.memset(l.cols(loc, r.dt, pn, 0, size), encode32(r.dt, fill))
	}
	switch {
	case empty:
	case stays != nil:
		res := l.staysAt(root)
		at := stays.off + (stays.tile0+p0/res.height)*res.tile
		var fromBuf, toBuf [5]ir.Pair
		from, to := fromBuf[:0], toBuf[:0]
		for i := range spans {
			at += first[i] * stays.step[i]
			if free[i].n > 1 {
				from = append(from, ir.Pair{Step: int32(stays.step[i]), Num: uint32(free[i].n)})
				to = append(to, ir.Pair{Step: int32(free[i].chip), Num: uint32(free[i].n)})
			}
		}
		if len(from) == 0 {
			from, to = append(from, ir.Pair{Step: 1, Num: 1}), append(to, ir.Pair{Step: 1, Num: 1})
		}
		l.copyTo(l.chip(res.loc, r.dt, 0, int(pn), at, from...), l.chip(loc, r.dt, 0, int(pn), chip, to...), false)
	default:
		l.transfer(load, l.homeOf(root), r.dt, off, part, p0, pn, free[:len(spans)], side{loc: loc, dt: r.dt, off: chip})
	}
	return mapTile{loc, 0}
}

// reachMap finds the maps of an operand that stays in SBUF.
func (r *resident) reachMap(off int64, part []axis, spans []span, height int64) (reached, bool) {
	var buf [maxRank]axis
	rest := buf[:0]
	for i := range spans {
		rest = append(rest, axis{n: spans[i].n, mem: spans[i].mem})
	}
	w, ok := r.reach(off, part, rest, height)
	long := 0
	for i := range spans {
		if spans[i].n > 1 {
			long++
		}
	}
	if !ok || long > 4 {
		return w, false
	}
	for i := range spans {
		if spans[i].n == 1 {
			continue
		}
		s := max(spans[i].w.Stride, spans[i].w.RhsDilate) * w.step[i]
		if s > maxMap || s < -maxMap {
			return w, false
		}
	}
	return w, true
}

func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// windowTiles is the operand of the windows that the current unit starts from.
type windowTiles struct {
	spans []span
	part  []axis
	stays *reached // at, or nil
	at    reached
	bytes int64 // a partition, of a map

	index   ir.Loc // positions of the sorted elements of a tile
	carry   ir.Loc // sums of the chunk before
	carryAt int64
}

// startWindow gives the width of a chunk.
func (l *lowering) startWindow(u *unit, width int64) int64 {
	d := &u.dom
	info := &l.wins[l.vals.At(u.root).aux]
	w := &l.wt
	w.spans, w.part = w.spans[:0], w.part[:0]
	taps := int64(1)
	for i := range d.n {
		if d.grp[i] == groupF {
			w.spans = append(w.spans, span{w: info.ws[i], n: info.x.dims[i], mem: info.x.step[i], at: i})
			taps *= info.ws[i].Size
		} else {
			w.part = append(w.part, axis{n: d.dims[i], mem: info.x.step[i]})
		}
	}
	size := int64(l.vals.At(info.x.root).dt.Size())
	limit := min(maxMap, l.budget/3/size)
	got := mapWidth(d, w.spans, min(width, maxMap), limit)
	if got == 0 || u.fullRow && got < d.freeElems() {
		l.unsupported(l.vals.At(u.root).src, "windows of %d elements do not fit a partition (%d)", taps, limit)
		return 1
	}
	w.stays = nil
	p := planTiles(d, 128, got, 0)
	var first tile
	p.chunk(d, 0, &first)
	w.bytes = mapOf(w.spans, &first) * size
	if info.kind == winTop {
		got = max(got, d.freeElems()) // a sorted row is one tile
		p = planTiles(d, 128, got, 0)
	}
	for info.kind == winFold && !w.foldable(&first) && got > 1 && !u.fullRow {
		got /= 2
		p = planTiles(d, 128, got, 0)
		p.chunk(d, 0, &first)
		w.bytes = mapOf(w.spans, &first) * size
	}
	if info.kind == winFold && !w.foldable(&first) {
		l.unsupported(l.vals.At(u.root).src, "windows of %d elements are not folded over a whole row (%d results)", taps, first.w)
		return 1
	}
	if s := l.staysAt(info.x.root); s != nil {
		if at, ok := s.reachMap(info.x.off, w.part, w.spans, p.height); ok {
			w.at, w.stays = at, &w.at
		}
	}
	return got
}

// maxReads bounds the elements a partition that one instruction reads.
const maxReads = 1 << 16

// atOnce reports that one instruction folds all windows of the tile: the pattern has the axes, and little is read twice.
func (w *windowTiles) atOnce(t *tile) bool {
	axes, taps := 0, int64(1)
	for i := range w.spans {
		s := &w.spans[i]
		if s.on > 1 {
			axes++
		}
		if s.w.Size > 1 {
			axes++
			taps *= s.w.Size
		}
	}
	if taps == 1 {
		axes++
	}
	return axes <= 4 && taps*t.w <= maxReads && (taps <= 16 || t.w == 1)
}

// foldable reports that every instruction that folds a part of the tile's windows reads no more than it may.
func (w *windowTiles) foldable(t *tile) bool {
	if w.atOnce(t) {
		return true
	}
	behind := int64(1)
	for k := len(w.spans) - 1; k >= 0; k-- {
		s := &w.spans[k]
		before := int64(1)
		for j := range k {
			before *= w.spans[j].len
		}
		if before*s.on*behind*s.w.Size > maxReads {
			return false
		}
		behind *= s.on
	}
	return true
}

// emitWindow folds the windows of a tile into the location of value i.
func (l *lowering) emitWindow(t *tile, i int) {
	u := l.u
	d := &u.dom
	r := l.vals.At(u.root)
	info := &l.wins[r.aux]
	w := &l.wt
	mapOf(w.spans, t)
	in := l.loadMap(info.x.root, tileOffMap(d, &info.x, t), w.part, t.p0, t.pn, w.spans, info.init, w.stays)
	inType := l.vals.At(info.x.root).dt
	switch info.kind {
	case winTop:
		l.emitTop(t, i, in, inType)
		return
	case winScan:
		l.emitScan(t, i, in, inType)
		return
	}
	l.newTile(i, t, t.w)
	out := l.made(i, t, 0, t.w)
	var outerBuf, innerBuf [2 * maxRank]ir.Pair
	outer, inner := outerBuf[:0], innerBuf[:0]
	for k := range w.spans {
		s := &w.spans[k]
		if s.on > 1 {
			outer = append(outer, ir.Pair{Step: int32(s.w.Stride * s.walk), Num: uint32(s.on)})
		}
		if s.w.Size > 1 {
			inner = append(inner, ir.Pair{Step: int32(s.w.RhsDilate * s.walk), Num: uint32(s.w.Size)})
		}
	}
	if len(inner) == 0 {
		inner = append(inner, ir.Pair{Step: 1, Num: 1})
	}
	if w.atOnce(t) {
		pairs := append(outer, inner...)
		x := l.chip(in.loc, inType, 0, int(t.pn), in.off, pairs...)
		l.emit(ir.OpTensorReduce, target.EngineDVE, []ir.Arg{x}, []ir.Arg{out}, ir.Enum(ir.KeyOp, r.op0), ir.Enum(ir.KeyAxis, ir.AxisList(len(inner)-1)))
		return
	}
	// Windows are products of axes: fold one axis after the other, the last first. After each, what lies behind it is dense.
	dt := f32
	if r.dt.IsInteger() {
		dt = target.Int32
	}
	src, srcType := in.loc, inType
	if w.spans[0].walk != w.spans[0].pitch || in.off != 0 || !denseSpans(w.spans) {
		src = l.packMap(t, in, inType, w.spans)
	}
	behind := int64(1)
	for k := len(w.spans) - 1; k >= 0; k-- {
		s := &w.spans[k]
		before := int64(1)
		for j := range k {
			before *= w.spans[j].len
		}
		last := k == 0
		n := before * s.on * behind
		dst := out
		var next ir.Loc
		if !last {
			next = l.sb(l.tileName(r.src), dt, int(t.pn), n)
			dst = l.cols(next, dt, t.pn, 0, n)
		}
		x := l.chip(src, srcType, 0, int(t.pn), 0,
			ir.Pair{Step: int32(s.len * behind), Num: uint32(before)}, ir.Pair{Step: int32(s.w.Stride * behind), Num: uint32(s.on)},
			ir.Pair{Step: 1, Num: uint32(behind)}, ir.Pair{Step: int32(s.w.RhsDilate * behind), Num: uint32(s.w.Size)})
		l.emit(ir.OpTensorReduce, target.EngineDVE, []ir.Arg{x}, []ir.Arg{dst}, ir.Enum(ir.KeyOp, r.op0), ir.Enum(ir.KeyAxis, ir.AxisX))
		src, srcType = next, dt
		behind *= s.on
	}
}

// denseSpans reports a map without gaps.
func denseSpans(spans []span) bool {
	for i := range spans {
		if spans[i].walk != spans[i].pitch {
			return false
		}
	}
	return true
}

// packMap copies a map that lies in a larger value to one of its own.
func (l *lowering) packMap(t *tile, in mapTile, dt target.Dtype, spans []span) ir.Loc {
	size := spans[0].pitch * spans[0].len
	var from []ir.Pair
	for i := range spans {
		if spans[i].len > 1 {
			from = append(from, ir.Pair{Step: int32(spans[i].walk), Num: uint32(spans[i].len)})
		}
	}
	if len(from) == 0 {
		from = []ir.Pair{{Step: 1, Num: 1}}
	}
	loc := l.sb(l.tileName(l.cur), dt, int(t.pn), size)
	l.copyTo(l.chip(in.loc, dt, 0, int(t.pn), in.off, from...), l.cols(loc, dt, t.pn, 0, size), false)
	return loc
}

// tileOffMap is the element where the tile's outer index begins; the free box is loadMap's business.
func tileOffMap(d *domain, x *view, t *tile) int64 {
	off := x.off
	for i := range d.n {
		if d.grp[i] == groupB {
			off += t.b[i] * x.step[i]
		}
	}
	return off
}
