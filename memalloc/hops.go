package memalloc

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// How the moves of a value become instructions: each takes it, or its first bytes, to a location of their own by copies on chip.

// hop is a move of the value that is being rewritten: from visit on it is elsewhere.
type hop struct {
	visit int
	move  uint32
	at    ssa.Point
	order uint32
	len   int32 // granules that go
	box   box   // that the next location holds
	// Of spiller.carried: what is copied.
	from, to int
}

// fill is a load of what a value lost on its way to a visit.
type fill struct {
	visit int
	fp    ir.Footprint
}

// listHops lists the moves within the runs of the value at hand. Where a run begins, there is nothing to move.
func (ws *Workspace) listHops(first uint32, stops []stop) {
	sp := &ws.spill
	sp.hops = sp.hops[:0]
	r := 0
	for k := range stops {
		if stops[k].cut {
			continue
		}
		v := int(stops[k].visit)
		for sp.runs[r].to <= v {
			r++
		}
		if v == sp.runs[r].from {
			continue
		}
		for n, d := range sp.walk.movesOf(&sp.stays, first+uint32(k)) {
			sp.hops = append(sp.hops, hop{visit: v, move: stops[k].moves - 1 + uint32(n), at: d.at, order: d.order, len: d.len})
		}
	}
}

// planHops decides what the hops of a run copy: what the location holds of what is read later. What is lost on the way is loaded at the
// end of it. It returns the visit before which copies cannot do, none -1: there the value must leave altogether.
func (sp *spiller) planHops(r *run, hops []hop, isRemat bool, rm *remat) int {
	if sp.coarse { // what a location has is not known exactly
		return hops[0].visit
	}
	needs, v := box{}, r.to
	for n := len(hops) - 1; n >= 0; n-- {
		for ; v > hops[n].visit; v-- {
			if x := &sp.visits[v-1]; x.read {
				needs.add(boxOf(&x.fp))
			}
		}
		hops[n].box = needs
	}
	valid, like := &sp.valid, &sp.visits[r.from].fp
	v = r.from
	lost := r.box.hi // from here on
	for n := range hops {
		h := &hops[n]
		h.from, h.to = len(sp.carried), len(sp.carried)
		for ; v < h.visit; v++ {
			if r.dense == v {
				whole := r.reads.dense(like)
				valid.add(sp, &whole)
			}
			valid.add(sp, &sp.visits[v].fp)
		}
		needs := h.box
		h.box = r.box
		h.box.hi = min(r.box.hi, r.box.lo+int64(h.len)*granule)
		if h.box.hi < lost {
			gone := needs
			gone.lo, gone.hi = max(gone.lo, h.box.hi), min(gone.hi, lost)
			if fp := gone.dense(like); valid.narrow(sp, &fp) {
				if !valid.holds(sp, &fp) || isRemat && !r.box.holds(rm.region(boxOf(&fp))) {
					return h.visit
				}
				sp.fills = append(sp.fills, fill{h.visit, fp})
			}
			lost = h.box.hi
			valid.removeFrom(lost)
		}
		keeps := needs
		keeps.hi = min(keeps.hi, lost)
		if fp := keeps.dense(like); valid.narrow(sp, &fp) && !sp.planHop(r, h, boxOf(&fp), lost < r.box.hi) {
			return h.visit
		}
		if n+1 < len(hops) && hops[n+1].visit == h.visit {
			continue
		}
		for k := len(sp.fills) - 1; k >= 0 && sp.fills[k].visit == h.visit; k-- {
			valid.add(sp, &sp.fills[k].fp)
		}
		lost = r.box.hi
	}
	return -1
}

// planHop decides what a hop copies so that the next location has what is valid of a box; lost says that not all has come so far.
func (sp *spiller) planHop(r *run, h *hop, needs box, lost bool) bool {
	like := &sp.visits[r.from].fp
	for _, p0 := range [2]int32{needs.p0, r.box.p0} { // as a whole
		b := needs
		b.p0 = p0
		if fp := b.dense(like); p0 >= sp.strips[0] && copyable(&fp, r.box) && sp.valid.holds(sp, &fp) {
			sp.carried = append(sp.carried, fp)
			h.to++
			return true
		}
	}
	if lost || r.dense >= 0 && r.dense < h.visit {
		return false
	}
	sp.done.reset(sp) // in pieces
	for v := r.from; v < h.visit; v++ {
		fp := &sp.visits[v].fp
		if fp.P0 >= needs.p1 || fp.P1 <= needs.p0 || fp.Lo >= needs.hi || fp.Hi <= needs.lo || sp.done.holds(sp, fp) {
			continue
		}
		if !copyable(fp, r.box) {
			return false
		}
		sp.done.add(sp, fp)
		sp.carried = append(sp.carried, *fp)
		h.to++
	}
	return true
}

// copyType is the widest type in which a region can be copied bit by bit.
func copyType(fp *ir.Footprint) target.Dtype {
	all := fp.Lo | fp.Run
	for i := range int(fp.N) {
		all |= fp.Step[i]
	}
	switch {
	case all&3 == 0:
		return target.Float32
	case all&1 == 0:
		return target.BFloat16
	}
	return target.Uint8
}

// copyable reports whether an engine can copy a region of a location that holds a box of the value.
func copyable(fp *ir.Footprint, b box) bool {
	const maxNum, maxStep = 1<<16 - 1, 1<<15 - 1
	esz := int64(copyType(fp).Size())
	ok := target.LegalStart(int(fp.P0-b.p0), int(fp.P1-fp.P0)) && fp.Run/esz <= maxNum
	for i := range int(fp.N) {
		ok = ok && fp.Num[i] <= maxNum && max(fp.Step[i], -fp.Step[i])/esz <= maxStep
	}
	return ok
}

// hop copies what the next location needs from the present one, which holds box b, and returns the next.
func (ws *Workspace) hop(u *ssa.Unit, n *hop, b box, at ir.Loc, h *home) ir.Loc {
	sp, w := &ws.spill, &ws.spill.walk
	to := sp.stand(u, n.box, arena.DeriveSplit, 0, h)
	w.hints.Set(sp.m.Locs.At(to).Set, w.moves[n.move].to)
	anchor := ws.lin.Insts[n.at]
	for k := n.to - 1; k >= n.from; k-- {
		fp := &sp.carried[k]
		t := copyType(fp)
		i := sp.m.NewInst(sp.m.Insts.At(anchor).Block, ir.OpTensorCopy, target.EngineDVE, []ir.Arg{sp.chip(fp, t, b, at)}, []ir.Arg{sp.chip(fp, t, n.box, to)})
		sp.m.Insts.At(i).Flags |= ir.InstSpill | ir.InstReload
		sp.stamp(i, anchor)
		sp.copies = append(sp.copies, copying{order: n.order, anchor: anchor, inst: i})
		sp.mt.Moves++
		sp.mt.MoveBytes += bytesOf(fp)
	}
	return to
}

// copying is a copy that is to stand before an instruction.
type copying struct {
	order        uint32
	anchor, inst ir.Inst
}

// layCopies puts the copies of the round before all that spilling puts there, in the order of the walk: each finds its place free.
func (sp *spiller) layCopies() {
	slices.SortStableFunc(sp.copies, func(a, b copying) int { return cmp.Compare(b.order, a.order) })
	for _, c := range sp.copies {
		sp.edits.First(c.anchor, c.inst)
	}
	sp.copies = sp.copies[:0]
}
