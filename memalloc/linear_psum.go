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
	known    bool
	next, to uint32    // in scan.stretch: the groups that are still to start, in order of start
	end      ssa.Point // where the last of those before has stopped
}

// stretch is the points of one accumulation group.
type stretch struct{ from, end ssa.Point }

// openUntil is 1 + the point from which a unit may leave its banks: never, or when the accumulation groups that are open across h
// have stopped.
func (ws *Workspace) openUntil(m *ir.Module, unit uint32, h ssa.Point) ssa.Point {
	sc, sp, u := &ws.scan, &ws.spill, &ws.ranges.Units[unit]
	t := &sc.turns[unit]
	if !t.known {
		acc := ws.lin.Of(u.First)
		if psumStays(m, u, true) || !sp.groupsOf(m, acc) {
			return never
		}
		t.known, t.next = true, uint32(len(sc.stretch))
		for _, g := range sp.groups {
			sc.stretch = append(sc.stretch, stretch{acc[g.first].At, acc[g.last].At + 1})
		}
		t.to = uint32(len(sc.stretch))
	}
	for ; t.next < t.to && sc.stretch[t.next].from < h; t.next++ {
		t.end = max(t.end, sc.stretch[t.next].end)
	}
	if t.end > h {
		return t.end + 1
	}
	return 1
}

// queueGroups queues banks for each accumulation group of an evicted unit that starts at or after h. What the others hold has been
// copied out by then.
func (ws *Workspace) queueGroups(m *ir.Module, i uint32, h ssa.Point) {
	sc, sp := &ws.scan, &ws.spill
	unit := sc.pieces[i].unit
	acc := ws.lin.Of(ws.ranges.Units[unit].First)
	sp.groupsOf(m, acc)
	for k := range sp.groups {
		g := &sp.groups[k]
		if acc[g.first].At < h {
			continue
		}
		b := groupBox(g)
		block := BlockBanks(m.Gen, &ir.LocRow{Bytes: b.hi - b.lo}, ws.psum.n)
		q := piece{unit: unit, start: sp.heads[acc[g.first].At], end: ws.unitEnd(acc[g.last].At)}
		q.banks(block, block)
		i = ws.queue(i, q)
	}
}

// rewritePSUM moves the values that lost their banks to SBUF and notes the banks of the groups that start after that.
func (ws *Workspace) rewritePSUM(m *ir.Module) {
	sc := &ws.scan
	for k := range sc.spilled {
		s := &sc.spilled[k]
		ws.moveOut(m, &ws.ranges.Units[s.unit], s.cut)
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
