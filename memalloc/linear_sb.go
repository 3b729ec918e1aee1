package memalloc

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc/bestfit"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// describeSB numbers the units of SB for a scan: a grid of four quadrants by granules, its bottom reserved for the strip.
func (ws *Workspace) describeSB(m *ir.Module, opt *Options, mt *Metrics) error {
	ws.ranges.Build(m, &ws.lin, target.SpaceSB, ssa.BySlot, nil)
	size := opt.Raw(m.Gen) &^ (granule - 1)
	mt.Capacity = size
	strip, err := ws.sbFloor(m, size, opt)
	if err != nil {
		return err
	}
	units := ws.ranges.Units
	ws.segments()
	ws.sb.reset(len(units), size, strip)
	ws.beginScan(bestfit.MaxRows, uint32(size/granule))
	ws.scan.manager.Reserve(reserved, bestfit.Block{Hi: uint32(ws.sb.floor), Rows: bestfit.MaxRows})
	rules := opt.Align.aligner(m.Gen)
	for i := range units {
		u := &units[i]
		if err := ws.homogeneous(m, u, target.SpaceSB); err != nil {
			return err
		}
		use := ws.use(m, u)
		p, err := sbPlace(m, u, &use, size, &rules)
		if err != nil {
			return err
		}
		ws.sb.at[i] = p
		q := piece{unit: uint32(i), to: uint32(len(ws.lin.Of(u.First))), start: never, end: u.End, fixed: u.Flags&ssa.Placed != 0}
		q.request(&p)
		if l := m.Locs.At(u.First); q.fixed {
			low, high := l.Base/target.QuadrantPartitions, (int(l.Base)+int(l.Parts)-1)/target.QuadrantPartitions
			q.at = bestfit.Block{Lo: uint32(p.lo), Hi: uint32(p.hi), Row: low, Rows: uint8(high) - low + 1}
		}
		ws.scan.pieces[i] = q
	}
	ws.sbDemand(mt)
	return nil
}

// request asks for what a place describes.
func (q *piece) request(p *place) {
	q.req = bestfit.Request{Len: uint32(p.hi - p.lo), Align: 1 << p.shift}
	q.least = 1 << p.least
	for _, band := range candidates(p.class) {
		q.req.Starts |= 1 << lowest(band)
	}
	q.req.Rows = uint8(quadsOfClass(p.class))
}

// carryOn queues the copy in which a value lives on from the visit at which piece i ends.
func (ws *Workspace) carryOn(m *ir.Module, i uint32, single bool) (id uint32, some bool) {
	sc := &ws.scan
	p := &sc.pieces[i]
	if int(p.to) == len(ws.lin.Of(ws.ranges.Units[p.unit].First)) {
		return 0, false
	}
	q := piece{unit: p.unit, from: p.to}
	sc.boxes = append(sc.boxes, ws.cover(m, &q, single))
	ws.says(m, "spill: reload", i, q.start)
	return ws.queue(i, q), true
}

// cover makes a copy for the visits from q.from on that follow each other closely, those of one scheduling unit at least and, when
// single, at most. It gives what of the value the copy holds.
func (ws *Workspace) cover(m *ir.Module, q *piece, single bool) (b box) {
	sc := &ws.scan
	s := &sc.spilled[sc.slot[q.unit]-1]
	acc := ws.lin.Of(ws.ranges.Units[q.unit].First)
	gap := ws.spill.opt.RunGap
	q.start = ws.spill.heads[acc[q.from].At]
	q.end = ws.unitEnd(q.start)
	starts, use := int32(-1), sbUse{moved: true}
	for q.to = q.from; int(q.to) < len(acc); q.to++ {
		a := &acc[q.to]
		if a.At >= q.end {
			if single || int(a.At-acc[q.to-1].At) > gap || q.to-q.from >= maxRun {
				break
			}
			q.end = ws.unitEnd(a.At)
		}
		fp := m.FootprintOf(apOf(m, a.Arg))
		b.add(boxOf(&fp))
		if q.to == q.from {
			starts = fp.P0
		} else if starts != fp.P0 {
			starts = -1
		}
		use.first = use.first || m.Insts.At(a.Inst).Op.Is(ir.FlagMatmul) || a.Flags&ssa.Read != 0 && scalarsFollow(m, a.Inst)
	}
	if s.isRemat {
		b.add(s.rm.region(b))
	}
	b.shape(use.first, starts)
	l := ir.LocRow{Parts: uint32(b.p1 - b.p0), Bytes: b.hi - b.lo}
	rules := ws.spill.opt.Align.aligner(m.Gen)
	p := place{hi: sbLength(&l), class: heightClass(&l, use.first)}
	p.shift, p.least = rules.shifts(&l, &use)
	q.request(&p)
	return b
}

// idle reports a copy for nothing but the load of a value that can be loaded again: it needs no place, the load goes.
func (ws *Workspace) idle(p *piece) bool {
	return ws.scan.spilled[ws.scan.slot[p.unit]-1].isRemat && p.from == 0 && p.to == 1
}

// shrink gives a piece that starts in the scheduling unit at h no more than this unit touches. A value that begins here goes home at
// once, and what only loads it needs no place: the result is then reserved.
func (ws *Workspace) shrink(m *ir.Module, i uint32, h ssa.Point) uint32 {
	sc := &ws.scan
	n := uint32(len(ws.ranges.Units))
	if !ws.evictable(m, i, h, true) {
		return i
	}
	if i < n {
		sc.evictions++
		if sc.slot[i] == 0 {
			ws.sendHome(m, i, h)
		}
		sc.pieces[i].to = 0
		i, _ = ws.carryOn(m, i, true)
	} else {
		sc.boxes[i-n] = ws.cover(m, &sc.pieces[i], true)
	}
	if ws.idle(&sc.pieces[i]) {
		ws.carryOn(m, i, false)
		return reserved
	}
	return i
}

// rewriteSB lays the spill code of all values into the function and notes where the copies stand.
func (ws *Workspace) rewriteSB(m *ir.Module) {
	sc, sp := &ws.scan, &ws.spill
	n := uint32(len(ws.ranges.Units))
	for k := range sc.spilled {
		s := &sc.spilled[k]
		u := &ws.ranges.Units[s.unit]
		sp.gather(&ws.lin, u, s.isRemat)
		sp.runs = sp.runs[:0]
		for i := s.unit; ; i = sc.pieces[i].next - 1 {
			if p := &sc.pieces[i]; p.from < p.to {
				sp.runs = append(sp.runs, run{from: int(p.from), to: int(p.to), dense: -1, resident: i < n})
			}
			if sc.pieces[i].next == 0 {
				break
			}
		}
		sp.plan(s.isRemat, &s.rm)
		l := m.Locs.At(u.First)
		keeps, r := false, 0
		for i := s.unit; r < len(sp.runs); i = sc.pieces[i].next - 1 {
			if p := &sc.pieces[i]; p.from < p.to {
				if sp.runs[r].box = (box{0, int32(l.Parts), 0, l.Bytes}); i >= n {
					sp.runs[r].box = sc.boxes[i-n]
				}
				keeps = keeps || sp.runs[r].resident && !sp.runs[r].idle
				r++
			}
		}
		ws.rewrite(m, u, &s.rm, s.isRemat, true)
		r = 0
		for i := s.unit; r < len(sp.runs); i = sc.pieces[i].next - 1 {
			if p := &sc.pieces[i]; p.from < p.to {
				if to := sp.runs[r].loc; i >= n && to != 0 {
					noteSB(m.Locs.At(to), p.at)
				}
				r++
			}
		}
		sp.countWhole(m, u, s.isRemat)
		if !keeps {
			sp.drop(u)
		}
	}
}

func noteSB(l *ir.LocRow, b bestfit.Block) {
	l.Addr, l.Base = int64(b.Lo)*granule, b.Row*target.QuadrantPartitions
}

// finishSB checks the places that the scan noted and commits them.
func (ws *Workspace) finishSB(m *ir.Module, opt *Options, mt *Metrics) error {
	strip := ws.strip(m, opt)
	if len(ws.scan.spilled) > 0 {
		ws.ranges.Build(m, &ws.lin, target.SpaceSB, ssa.BySlot, nil)
		units := ws.ranges.Units
		ws.sb.reset(len(units), mt.Capacity, strip)
		rules := opt.Align.aligner(m.Gen)
		for i := range units {
			var err error
			if ws.sb.at[i], err = sbPlace(m, &units[i], &sbUse{}, mt.Capacity, &rules); err != nil {
				return err
			}
		}
		ws.segments()
		ws.sbDemand(mt)
	}
	units := ws.ranges.Units
	for i := range units {
		if u, p := &units[i], &ws.sb.at[i]; u.Flags&ssa.Placed == 0 {
			l := m.Locs.At(u.First)
			lo := int32(l.Addr / granule)
			p.lo, p.hi = lo, lo+p.hi
			p.quads = uint8(1<<quadsOfClass(p.class)-1) << (l.Base / target.QuadrantPartitions)
		}
	}
	if err := ws.check.rects(m, units, &ws.sb, strip); err != nil {
		return err
	}
	ws.commitSB(m, mt)
	return nil
}
