package memalloc

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// lifetimes finds when each unit of DRAM holds bytes that matter. A value that is written anew after its last read is dead in
// between, so a unit has several live segments; what others read or write unseen has one that is the whole function. Where control
// branches, a later write need not run, and each has one from its first access to its last.
func (g *pages) lifetimes(m *ir.Module, ws *Workspace) {
	r, lin := &ws.ranges, &ws.lin
	g.mark(m, r, lin)
	for i := range r.Units {
		if g.marks[i]&markKept != 0 {
			r.Units[i].Start, r.Units[i].End = 0, ssa.Point(max(1, lin.Points()))
		}
	}
	g.alias(m, r)
	straight := !Branches(m, lin)
	n := len(r.Units)
	g.own, g.first = g.own[:0], arena.Resized(g.first, n+1)
	for i := range r.Units {
		g.first[i] = uint32(len(g.own))
		if g.leader[i] != uint32(i) {
			continue
		}
		u := &r.Units[i]
		if !straight || g.joined[i] || g.marks[i]&markKept != 0 || u.Count > 1 || u.Flags&(ssa.Always|ssa.Opaque|ssa.Dead) != 0 {
			g.own = append(g.own, regalloc.Seg{Start: u.Start, End: u.End, Node: uint32(i)})
			continue
		}
		g.cut(m, lin, u, uint32(i))
	}
	g.first[n] = uint32(len(g.own))
	g.segs = append(g.segs[:0], g.own...)
	byStart := func(a, b regalloc.Seg) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Node, b.Node))
	}
	if !slices.IsSortedFunc(g.segs, byStart) {
		slices.SortFunc(g.segs, byStart)
	}
}

// Branches reports that control of a function does not simply run through its points.
func Branches(m *ir.Module, lin *ssa.Linear) bool {
	for _, i := range lin.Insts {
		if op := m.Insts.At(i).Op; op == ir.OpCompareAndBranch || op == ir.OpUnconditionalBranch {
			return true
		}
	}
	return false
}

// mark finds the units that collectives touch, and those that are live throughout: what a call refers to, what another core
// writes, the interface to another function, and what somebody looks at later, volatile and debug tensors.
func (g *pages) mark(m *ir.Module, r *ssa.Ranges, lin *ssa.Linear) {
	g.marks = arena.Resized(g.marks, len(r.Units))
	clear(g.marks)
	for i := range r.Units {
		u := &r.Units[i]
		if s := m.Sets.At(u.Set); s.Kind == ir.KindInternalInterface || s.Addr == ir.AddrDebug || s.Flags&ir.SetVolatile != 0 {
			g.marks[i] |= markKept
		}
		for k := range u.Count {
			if m.Locs.At(u.Loc(k)).Flags&ir.LocRemoteWriter != 0 {
				g.marks[i] |= markKept
			}
		}
	}
	acc, locs := lin.All()
	for k, l := range locs {
		i := r.UnitOf(l)
		if i == ssa.NoUnit {
			continue
		}
		if op := m.Insts.At(acc[k].Inst).Op; op == ir.OpCall {
			g.marks[i] |= markKept
		} else if IsCollective(op) {
			g.marks[i] |= markCollective
		}
	}
}

// alias joins units whose bytes are the same by a must-alias: the leader takes the largest size and the union of the live
// ranges, and a placed member gives its place to all.
func (g *pages) alias(m *ir.Module, r *ssa.Ranges) {
	n := len(r.Units)
	g.leader, g.joined = arena.Resized(g.leader, n), arena.Resized(g.joined, n)
	clear(g.joined)
	for i := range g.leader {
		g.leader[i] = uint32(i)
	}
	find := func(x uint32) uint32 {
		for g.leader[x] != x {
			g.leader[x] = g.leader[g.leader[x]]
			x = g.leader[x]
		}
		return x
	}
	for _, a := range m.AliasRows() {
		x, y := r.UnitOf(a.A), r.UnitOf(a.B)
		if a.Kind != ir.AliasMust || x == ssa.NoUnit || y == ssa.NoUnit {
			continue
		}
		if x, y = find(x), find(y); x != y {
			lo, hi := min(x, y), max(x, y)
			g.leader[hi], g.joined[lo] = lo, true
			g.size[lo] = max(g.size[lo], g.size[hi])
			g.marks[lo] |= g.marks[hi]
			if g.addr[lo] < 0 {
				g.addr[lo] = g.addr[hi]
			}
			u, v := &r.Units[lo], &r.Units[hi]
			u.Start, u.End = min(u.Start, v.Start), max(u.End, v.End)
		}
	}
	for i := range g.leader {
		g.leader[i] = find(uint32(i))
	}
}

// cut appends the live segments of one location. A run of writes between two reads begins a new life if together, each without
// gaps, they cover the location: then nothing that was there before is read again. Writes behind the last read are a life of
// their own, which only keeps the bytes of others out of their way.
func (g *pages) cut(m *ir.Module, lin *ssa.Linear, u *ssa.Unit, unit uint32) {
	acc := lin.Of(u.First)
	from, last := u.Start, u.Start // of the current life: its first point, its last read
	for k := 0; k < len(acc); {
		if acc[k].Flags&ssa.Read != 0 {
			last = acc[k].At
			k++
			continue
		}
		run := k
		for k < len(acc) && acc[k].Flags&ssa.Read == 0 {
			k++
		}
		if begin := acc[run].At; run > 0 && begin > last+1 && (k == len(acc) || g.covers(m, u.First, acc[run:k])) {
			g.own = append(g.own, regalloc.Seg{Start: from, End: last + 1, Node: unit})
			from = begin
		}
		last = acc[k-1].At
	}
	g.own = append(g.own, regalloc.Seg{Start: from, End: u.End, Node: unit})
}

// covers reports writes that leave no byte of a location as it was.
func (g *pages) covers(m *ir.Module, loc ir.Loc, acc []ssa.Access) bool {
	g.cover = g.cover[:0]
	for i := range acc {
		if fp := m.FootprintOf(apOf(m, acc[i].Arg)); fp.N == 0 {
			g.cover = append(g.cover, span{lo: fp.Lo, hi: fp.Hi})
		}
	}
	slices.SortFunc(g.cover, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	l := m.Locs.At(loc)
	end := int64(0)
	if l.Flags&ir.LocAllocated != 0 {
		end = l.Addr
	}
	size := end + dramBytes(l)
	for _, s := range g.cover {
		if s.lo > end {
			return false
		}
		end = max(end, s.hi)
	}
	return end >= size
}

// dramPeak is the most bytes that are live at once, and the instruction there.
func (ws *Workspace) dramPeak() (int64, ir.Inst) {
	g := &ws.dram
	sum, at := ws.live.peak(g.own, ws.lin.Points(), func(i uint32) int64 { return g.size[i] })
	return sum, ws.instAt(at)
}

// dramOverflow is the error for a unit that would end beyond the window.
func (ws *Workspace) dramOverflow(m *ir.Module, mt *Metrics, unit uint32, at, floor int64) error {
	g := &ws.dram
	u := &ws.ranges.Units[unit]
	o := overflow{
		space: target.SpaceDRAM, loc: u.First, need: g.size[unit], limit: mt.Capacity - floor, what: "bytes",
		why: "and the first gap for them begins at byte " + strconv.FormatInt(at, 10), try: "split the model or give a wider window (--hbm-gib)",
	}
	return ws.complain(m, &o, g.segments(unit), g.own, func(i uint32) int64 { return g.size[i] })
}

// Live numbers the units of a space, placed or not, in order of first definition, and says when each is live: over one segment on
// chip, in DRAM, where only the tensors of the allocators count, over several of one unit. Members of a must-alias live in the
// unit that leads them. Both stand in the workspace until its next use.
func (ws *Workspace) Live(m *ir.Module, f ir.Func, space target.Space) ([]ssa.Unit, []regalloc.Seg) {
	ws.lin.Build(m, f)
	switch space {
	case target.SpaceDRAM:
		ws.ranges.Build(m, &ws.lin, space, ssa.BySlot, func(s *ir.SetRow) bool { return internal(s.Kind) })
		ws.dram.measure(m, ws.ranges.Units)
		ws.dram.lifetimes(m, ws)
		return ws.ranges.Units, ws.dram.own
	case target.SpacePSUM:
		ws.ranges.Build(m, &ws.lin, space, ssa.BySet, nil)
	default:
		ws.ranges.Build(m, &ws.lin, space, ssa.BySlot, nil)
	}
	ws.segments()
	return ws.ranges.Units, ws.segs
}
