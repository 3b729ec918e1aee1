package memalloc

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc/bestfit"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// describePSUM numbers the units of PSUM for a scan: one row of banks.
func (ws *Workspace) describePSUM(m *ir.Module, opt *Options, mt *Metrics) error {
	ws.ranges.Build(m, &ws.lin, target.SpacePSUM, ssa.BySet, nil)
	nb := opt.Banks(m.Gen)
	mt.Capacity = int64(nb)
	units := ws.ranges.Units
	ws.segments()
	free := ws.psum.reset(len(units), nb, opt.PsumReserved)
	ws.beginScan(1, uint32(nb))
	for k := range uint32(nb) {
		if opt.PsumReserved>>k&1 != 0 {
			ws.scan.manager.Reserve(reserved, bestfit.Block{Lo: k, Hi: k + 1, Rows: 1})
		}
	}
	for i := range units {
		u := &units[i]
		if err := ws.homogeneous(m, u, target.SpacePSUM); err != nil {
			return err
		}
		if err := ws.psumPlace(m, uint32(i), nb, free); err != nil {
			return err
		}
		q := piece{unit: uint32(i), start: never, end: u.End, fixed: u.Flags&ssa.Placed != 0}
		q.banks(int(ws.psum.span[i]), int(ws.psum.block[i]))
		if lo := uint32(max(0, ws.psum.base[i])); q.fixed {
			q.at = bestfit.Block{Lo: lo, Hi: lo + q.req.Len, Rows: 1}
		}
		ws.scan.pieces[i] = q
	}
	ws.psumDemand(mt, nb)
	return nil
}

// banks asks for a run of banks, aligned as its blocks are.
func (q *piece) banks(span, block int) {
	a, b := BankAlign(block)
	q.req = bestfit.Request{Rows: 1, Starts: 1, Len: uint32(span), Align: uint32(a)}
	q.least = uint32(b)
}

// turns is what the scan has seen of the accumulation groups of a unit: one that waits is asked about again and again.
type turns struct {
	known, stays   bool      // it cannot leave its banks
	from, next, to uint32    // in scan.stretch: the groups, of which those from next on are still to start, in order of start
	end            ssa.Point // where the last of those before has stopped
}

// stretch is one accumulation group and its points.
type stretch struct {
	from, end ssa.Point
	group     group
	cuttable  bool
}

// groupsOfUnit lists the accumulation groups of a unit, the first time that it is asked, and says whether it can leave its banks at all.
func (ws *Workspace) groupsOfUnit(m *ir.Module, unit uint32) (groups []stretch, moves bool) {
	sc, sp, u := &ws.scan, &ws.spill, &ws.ranges.Units[unit]
	t := &sc.turns[unit]
	if !t.known {
		acc := ws.lin.Of(u.First)
		t.known, t.from, t.stays = true, uint32(len(sc.stretch)), psumStays(m, u, false) || !sp.groupsOf(m, acc)
		if !t.stays {
			for _, g := range sp.groups {
				sc.stretch = append(sc.stretch, stretch{acc[g.first].At, acc[g.last].At + 1, g, g.cuttable(m, acc)})
			}
		}
		t.next, t.to = t.from, uint32(len(sc.stretch))
	}
	return sc.stretch[t.from:t.to], !t.stays
}

// openUntil is 1 + the point from which a unit may leave its banks: never, or when the accumulation groups that are open across h
// have stopped.
func (ws *Workspace) openUntil(m *ir.Module, unit uint32, h ssa.Point) ssa.Point {
	sc := &ws.scan
	if _, moves := ws.groupsOfUnit(m, unit); !moves {
		return never
	}
	t := &sc.turns[unit]
	for ; t.next < t.to && sc.stretch[t.next].from < h; t.next++ {
		t.end = max(t.end, sc.stretch[t.next].end)
	}
	if t.end > h {
		return t.end + 1
	}
	return 1
}

// makeWait sends the next active value home, in their order, whose open accumulation groups can go on later from a copy. It is asked
// when nothing else can leave its banks before the scheduling unit at h.
func (ws *Workspace) makeWait(m *ir.Module, h ssa.Point) bool {
	sc := &ws.scan
	for k, v := range sc.active {
		if !sc.pieces[v].fixed && ws.cuttable(m, v, h) {
			ws.evict(m, k, h, false)
			return true
		}
	}
	return false
}

// cuttable reports a piece that the scheduling unit at h does not touch and whose groups that are open across h can be cut there.
func (ws *Workspace) cuttable(m *ir.Module, i uint32, h ssa.Point) bool {
	sc := &ws.scan
	p, own := &sc.pieces[i], int(i) >= len(ws.ranges.Units)
	if ws.spill.opt.NoSpillHint && m.Sets.At(ws.ranges.Units[p.unit].Set).Flags&ir.SetNoSpill != 0 {
		return false
	}
	groups, moves := ws.groupsOfUnit(m, p.unit)
	if own {
		g := &groups[p.to]
		acc := ws.lin.Of(ws.ranges.Units[p.unit].First)
		for v, end := lowerVisit(acc, h), ws.unitEnd(h); v < len(acc) && acc[v].At < end; v++ {
			if g.group.member(m, acc, v) {
				return false
			}
		}
		return g.cuttable || g.end <= h
	}
	if !moves || sc.mark[p.unit] == h+1 {
		return false
	}
	for k := range groups {
		if g := &groups[k]; !g.cuttable && g.from < h && h < g.end {
			return false
		}
	}
	return true
}

// queueGroups queues banks for what an evicted piece has left to do from h on: of its own group the rest, or if it is the unit itself
// that of every open group, and each group that starts later. What the others hold has been copied out by then.
func (ws *Workspace) queueGroups(m *ir.Module, i uint32, h ssa.Point) {
	sc := &ws.scan
	p := sc.pieces[i]
	acc := ws.lin.Of(ws.ranges.Units[p.unit].First)
	groups, _ := ws.groupsOfUnit(m, p.unit)
	first, last := uint32(0), uint32(len(groups))
	if int(i) >= len(ws.ranges.Units) {
		first, last = p.to, p.to+1
	}
	at := lowerVisit(acc, h)
	for k := first; k < last; k++ {
		g := &groups[k].group
		if groups[k].end <= h {
			continue
		}
		from := max(g.first, at)
		for !g.member(m, acc, from) {
			from++
		}
		b := groupBox(g)
		block := BlockBanks(m.Gen, &ir.LocRow{Bytes: b.hi - b.lo}, ws.psum.n)
		q := piece{unit: p.unit, from: uint32(from), to: k, start: ws.spill.heads[acc[from].At], end: ws.unitEnd(acc[g.last].At)}
		q.banks(block, block)
		i = ws.queue(i, q)
	}
}

// rewritePSUM moves the values that lost their banks to SBUF and notes the banks of the groups that start after that.
func (ws *Workspace) rewritePSUM(m *ir.Module) {
	sc, sp := &ws.scan, &ws.spill
	for k := range sc.spilled {
		s := &sc.spilled[k]
		u := &ws.ranges.Units[s.unit]
		acc := ws.lin.Of(u.First)
		sp.groupsOf(m, acc)
		sp.groupRuns = sp.groupRuns[:0]
		next := sc.pieces[s.unit].next
		for g := range sp.groups {
			if first := sp.groups[g].first; acc[first].At < s.cut {
				sp.groupRuns = append(sp.groupRuns, groupRun{group: g, first: first})
			}
			for ; next != 0 && sc.pieces[next-1].to == uint32(g); next = sc.pieces[next-1].next {
				sp.groupRuns = append(sp.groupRuns, groupRun{group: g, first: int(sc.pieces[next-1].from), own: true})
			}
		}
		ws.moveOut(m, u)
		at := sc.pieces[s.unit].next
		for _, l := range ws.spill.owned {
			p := &sc.pieces[at-1]
			m.Locs.At(l).Bank = int8(p.at.Lo)
			at = p.next
		}
	}
}

// finishPSUM checks the banks that the scan noted and commits them.
func (ws *Workspace) finishPSUM(m *ir.Module, opt *Options, mt *Metrics) error {
	nb := int(mt.Capacity)
	if len(ws.scan.spilled) > 0 {
		ws.ranges.Build(m, &ws.lin, target.SpacePSUM, ssa.BySet, nil)
		free := ws.psum.reset(len(ws.ranges.Units), nb, opt.PsumReserved)
		for i := range ws.ranges.Units {
			if err := ws.psumPlace(m, uint32(i), nb, free); err != nil {
				return err
			}
		}
		ws.segments()
		ws.psumDemand(mt, nb)
	}
	units := ws.ranges.Units
	for i := range units {
		if l := m.Locs.At(units[i].First); units[i].Flags&ssa.Placed == 0 {
			ws.psum.base[i], ws.psum.mask[i] = l.Bank, bankMask(int(l.Bank), int(ws.psum.span[i]))
		}
	}
	if err := ws.check.banks(m, units, &ws.psum); err != nil {
		return err
	}
	ws.commitPSUM(m, mt, nb)
	return nil
}
