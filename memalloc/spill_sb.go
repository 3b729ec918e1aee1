package memalloc

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// spillSB makes room for what found no place. Values leave the memory in gaps of their lives rather than for good: in those that
// bring what is live down to the memory, then in those that the walk needs for holes that fit. What stays of each value between
// them gets locations of its own.
func (ws *Workspace) spillSB(m *ir.Module) {
	sp := &ws.spill
	if len(ws.lin.Loops) > 0 { // a gap within a loop lies in every turn
		for _, i := range ws.result.Unplaced {
			if u := &ws.ranges.Units[i]; u.Flags&ssa.Opaque != 0 || m.Sets.At(u.Set).Count > 1 {
				ws.spillBlocks(m, u)
			} else {
				ws.spillValue(m, u)
			}
		}
		sp.apply()
		return
	}
	ws.planSB(m)
	s, w := &sp.stays, &sp.walk
	w.hints.Reset()
	cut := false
	for i := range ws.ranges.Units {
		ts := s.of(uint32(i))
		away := len(ts) > 1
		for k := ts[0].first; !away && k < ts[0].end; k++ {
			away = s.stops[k].cut || s.stops[k].moves != 0
		}
		if away {
			ws.cutValue(m, uint32(i), ts)
			cut = true
		} else {
			w.hints.Set(ws.ranges.Units[i].Set, w.at[ts[0].first])
		}
	}
	if !cut {
		for _, i := range ws.result.Unplaced {
			ws.spillValue(m, &ws.ranges.Units[i])
		}
	}
	sp.layCopies()
	sp.apply()
}

// planSB decides what is away when, in the stays.
func (ws *Workspace) planSB(m *ir.Module) {
	sp := &ws.spill
	s, c := &sp.stays, &sp.cuts
	n := len(ws.ranges.Units)
	c.pressure(ws, 4*int64(ws.sb.n-ws.sb.floor))
	s.reset()
	for i := range n {
		u := &ws.ranges.Units[i]
		s.list(ws, m, uint32(i), !c.crossed(u.Start, u.End) || ws.staysPut(uint32(i)), true)
	}
	c.find(ws, s)
	c.choose(s, ws.lin.Points())
	// Units with a cut keep it, the others are whole again.
	sp.split = arena.Resized(sp.split, n)
	clear(sp.split)
	for k := range c.gaps {
		if c.picked[k] {
			sp.split[s.tenants[s.stops[c.gaps[k].stop].tenant].unit] = true
		}
	}
	for k := range c.gaps {
		if g := &c.gaps[k]; c.picked[k] && !g.end {
			s.stops[g.stop].cut = true
		}
	}
	old := append(sp.old[:0], s.stops...)
	first := sp.oldFirst[:0]
	for i := range n {
		first = append(first, s.of(uint32(i))[0].first)
	}
	sp.old, sp.oldFirst = old, first
	s.reset()
	for i := range n {
		from := len(s.stops)
		s.list(ws, m, uint32(i), ws.staysPut(uint32(i)), sp.split[i])
		if sp.split[i] {
			for k := from; k < len(s.stops); k++ {
				s.stops[k].cut = old[int(first[i])+k-from].cut
			}
		}
	}
	sp.walk.allowed = sp.mt.Iterations <= moveRounds
	sp.fit.pack(ws, s, &sp.walk)
	sp.walk.run(ws, s)
	sp.fit.rejoin(ws, s, &sp.walk)
}

// maxPlans is how many times a value is planned, each time with one more stop before which it leaves because copies cannot do: then it
// leaves before all that are left, else its time were the square of its stops.
const maxPlans = 64

// cutValue gives the stays of a unit locations of their own.
func (ws *Workspace) cutValue(m *ir.Module, i uint32, ts []tenant) {
	sp := &ws.spill
	s, w := &sp.stays, &sp.walk
	u := &ws.ranges.Units[i]
	rm, isRemat := ws.remat(m, u)
	sp.gather(&ws.lin, u, isRemat)
	if len(ts) > 1 {
		sp.findParts(isRemat)
	}
	stops := s.stops[ts[0].first:ts[len(ts)-1].end]
	for plans := 1; ; plans++ {
		sp.runStays(stops)
		ws.listHops(ts[0].first, stops)
		v := sp.plan(isRemat, &rm)
		if v < 0 {
			break
		}
		for n := range sp.hops {
			if at := sp.hops[n].visit; at == v || sp.coarse || plans == maxPlans {
				k, _ := slices.BinarySearchFunc(stops, at, func(x stop, v int) int { return cmp.Compare(int(x.visit), v) })
				stops[k].cut = true // it leaves instead
			}
		}
	}
	sp.moved = 0
	ws.rewrite(m, u, &rm, isRemat, false)
	lost := box{} // of what stays in part
	for n := range sp.fills {
		lost.add(boxOf(&sp.fills[n].fp))
	}
	sp.hops, sp.fills = sp.hops[:0], sp.fills[:0]
	k, away := 0, len(ts) > 1
	for n := range stops {
		away = away || stops[n].cut
	}
	for n := range sp.runs {
		r := &sp.runs[n]
		for k+1 < len(stops) && int(stops[k+1].visit) <= r.from {
			k++
		}
		if r.loc != 0 {
			w.hints.Set(m.Locs.At(r.loc).Set, w.at[int(ts[0].first)+k])
		}
	}
	if ws.pins.bet && ws.pins.state.Get(u.Set) == pinned {
		ws.pins.state.Set(u.Set, unpinned)
		sp.mt.Unpinned += m.Locs.At(u.First).Bytes
	}
	sp.mt.MovedBytes += sp.moved
	if !away && !sp.copied.Get(u.Set) && lost.p0 < lost.p1 {
		sp.countSpilled(lost.hi-lost.lo, int64(lost.p1-lost.p0), isRemat)
	}
	if away && !sp.copied.Get(u.Set) {
		sp.countWhole(m, u, isRemat)
		if l := m.Locs.At(u.First); sp.moved <= 0 {
			sp.mt.LateBytes += l.Bytes * int64(l.Parts)
		}
	}
	sp.drop(u)
}

// runStays makes runs of the stays of the value at hand.
func (sp *spiller) runStays(stops []stop) {
	sp.runs = sp.runs[:0]
	k := 0
	for v := range sp.visits {
		for k < len(stops) && int(stops[k].visit) < v {
			k++
		}
		cut := v == 0 || sp.visits[v].part != sp.visits[v-1].part || sp.visits[v].clean || sp.visits[v-1].clean ||
			sp.cuttable(v) && (sp.opt.RunGap < 0 || k < len(stops) && int(stops[k].visit) == v && stops[k].cut)
		if cut {
			sp.runs = append(sp.runs, run{from: v, to: v + 1, dense: -1, atomic: true})
			continue
		}
		r := &sp.runs[len(sp.runs)-1]
		r.to = v + 1
		r.atomic = r.atomic && !sp.cuttable(v)
	}
}

// spillValue cuts the live range of one value into runs of accesses that lie near each other, or into single accesses.
func (ws *Workspace) spillValue(m *ir.Module, u *ssa.Unit) {
	sp := &ws.spill
	again := sp.copied.Get(u.Set)
	rm, isRemat := ws.remat(m, u)
	sp.gather(&ws.lin, u, isRemat)
	single := again || sp.opt.RunGap < 0
	sp.cutRuns(single)
	if !single && len(sp.runs) == 1 {
		single = true
		sp.cutRuns(true)
	}
	sp.plan(isRemat, &rm)
	sp.moved = 0
	ws.rewrite(m, u, &rm, isRemat, single)
	sp.mt.MovedBytes += sp.moved
	if !again {
		sp.countWhole(m, u, isRemat)
	}
	sp.drop(u)
}
