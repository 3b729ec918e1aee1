package memalloc

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// How the moves of a value become instructions: each takes it, or some of its bytes, to a location of their own by copies on chip.

// hop is a move of the value that is being rewritten: from visit on it is elsewhere.
type hop struct {
	visit int
	move  uint32
	at    ssa.Point
	order uint32
	group uint32
	off   int32 // granules before those that go
	len   int32 // granules that go
	box   box   // that the next location holds, empty if there is none
	loc   ir.Loc
	// Of spiller.carried: what is copied.
	from, to int
}

// fragment is a box of the value that is in a location of its own: that of a hop, or before all hops, -1, of the run.
type fragment struct {
	box box
	hop int
	old bool // it ends with the hops of the present group
}

// carry is a region that a hop copies from the location of another.
type carry struct {
	fp  ir.Footprint
	hop int
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
			sp.hops = append(sp.hops, hop{visit: v, move: stops[k].moves - 1 + uint32(n), at: d.at, order: d.order, group: d.group, off: d.off, len: d.len})
		}
	}
}

// planHops decides what the hops [from, to) of a run copy: what the locations hold of what is read later. What is lost on the way is
// loaded at the end of it. It returns the visit before which copies cannot do, none -1: there the value must leave altogether.
func (sp *spiller) planHops(r *run, from, to int, isRemat bool, rm *remat) int {
	hops := sp.hops[:to]
	if sp.coarse { // what a location has is not known exactly
		return hops[from].visit
	}
	needs, v := box{}, r.to
	for n := to - 1; n >= from; n-- {
		for ; v > hops[n].visit; v-- {
			if x := &sp.visits[v-1]; x.read {
				needs.add(boxOf(&x.fp))
			}
		}
		hops[n].box = needs
	}
	valid, like := &sp.valid, &sp.visits[r.from].fp
	sp.fragments = append(sp.fragments[:0], fragment{r.box, -1, false})
	v = r.from
	for n := from; n < to; n++ {
		h := &hops[n]
		for ; v < h.visit; v++ {
			if r.dense == v {
				whole := r.reads.dense(like)
				valid.add(sp, &whole)
			}
			valid.add(sp, &sp.visits[v].fp)
		}
		needs := h.box
		h.from, h.to = len(sp.carried), len(sp.carried)
		h.box = r.box
		h.box.lo = min(r.box.hi, r.box.lo+int64(h.off)*granule)
		h.box.hi = min(r.box.hi, h.box.lo+int64(h.len)*granule)
		// From all that is there, but for what the group made.
		for k := range sp.fragments {
			p := &sp.fragments[k]
			if p.hop >= from && hops[p.hop].group == h.group && hops[p.hop].visit == h.visit {
				continue
			}
			p.old = p.old || p.box.lo < h.box.hi && h.box.lo < p.box.hi || h.len == 0 && p.box.lo == h.box.lo
			b := needs.and(p.box).and(h.box)
			if fp := b.dense(like); valid.narrow(sp, &fp) && !sp.planHop(r, h, boxOf(&fp), p) {
				return h.visit
			}
		}
		if h.box.lo < h.box.hi {
			sp.fragments = append(sp.fragments, fragment{h.box, n, false})
		}
		last := n+1 == to || hops[n+1].visit != h.visit
		if !last && hops[n+1].group == h.group {
			continue
		}
		// The group is complete: what it left behind is lost.
		kept := sp.fragments[:0]
		for _, p := range sp.fragments {
			if !p.old {
				kept = append(kept, p)
				continue
			}
			gone := p.box
			if gone.lo = max(gone.lo, h.box.hi); gone.lo >= gone.hi {
				continue
			}
			b := needs.and(gone)
			if fp := b.dense(like); valid.narrow(sp, &fp) {
				if !valid.holds(sp, &fp) || isRemat && !r.box.holds(rm.region(boxOf(&fp))) {
					return h.visit
				}
				sp.fills = append(sp.fills, fill{h.visit, fp})
			}
			valid.removeRange(gone.lo, gone.hi)
		}
		sp.fragments = kept
		if !last {
			continue
		}
		if len(kept) != 1 || kept[0].box != r.box {
			return h.visit
		}
		for k := len(sp.fills) - 1; k >= 0 && sp.fills[k].visit == h.visit; k-- {
			valid.add(sp, &sp.fills[k].fp)
		}
	}
	return -1
}

// planHop decides what a hop copies from a piece so that the next location has what is valid of a box.
func (sp *spiller) planHop(r *run, h *hop, needs box, p *fragment) bool {
	like := &sp.visits[r.from].fp
	for _, p0 := range [2]int32{needs.p0, r.box.p0} { // as a whole
		b := needs
		b.p0 = p0
		if fp := b.dense(like); p0 >= sp.strips[0] && copyable(&fp, r.box) && sp.valid.holds(sp, &fp) {
			sp.carried = append(sp.carried, carry{fp, p.hop})
			h.to++
			return true
		}
	}
	if p.box != r.box || h.box != r.box || r.dense >= 0 && r.dense < h.visit {
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
		sp.carried = append(sp.carried, carry{*fp, p.hop})
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

// hop makes the location that hop n leads to, copies there what it needs, and returns it.
func (ws *Workspace) hop(u *ssa.Unit, n int, r *run, h *home) ir.Loc {
	sp, w := &ws.spill, &ws.spill.walk
	x := &sp.hops[n]
	if last := n+1 == len(sp.hops) || sp.hops[n+1].visit != x.visit; x.box.lo >= x.box.hi || x.from == x.to && !last {
		return 0 // with nothing on the way
	}
	x.loc = sp.stand(u, x.box, arena.DeriveSplit, 0, h)
	w.hints.Set(sp.m.Locs.At(x.loc).Set, w.moves[x.move].to)
	anchor := ws.lin.Insts[x.at]
	for k := x.to - 1; k >= x.from; k-- {
		c := &sp.carried[k]
		b, at := r.box, r.loc
		if c.hop >= 0 {
			b, at = sp.hops[c.hop].box, sp.hops[c.hop].loc
		}
		t := copyType(&c.fp)
		i := sp.m.NewInst(sp.m.Insts.At(anchor).Block, ir.OpTensorCopy, target.EngineDVE, []ir.Arg{sp.chip(&c.fp, t, b, at)}, []ir.Arg{sp.chip(&c.fp, t, x.box, x.loc)})
		sp.m.Insts.At(i).Flags |= ir.InstSpill | ir.InstReload
		sp.stamp(i, anchor)
		sp.copies = append(sp.copies, copying{order: x.order, anchor: anchor, inst: i})
		sp.mt.Moves++
		sp.mt.MoveBytes += bytesOf(&c.fp)
	}
	return x.loc
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
