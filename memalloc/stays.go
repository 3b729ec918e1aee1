package memalloc

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// stop is one scheduling unit that touches a tenant: then it must be in the memory. Between stops it may be away.
type stop struct {
	at, end ssa.Point
	tenant  uint32
	visit   int32  // its first visit
	reload  int64  // bytes that come back when it was away before
	save    int64  // bytes that must have gone to DRAM for that
	cut     bool   // it was away before
	moves   uint32 // the first of the moves before it in walker.moves, 1-based, 0 none
}

// tenant is a value, or a part of one that no access joins to the rest.
type tenant struct {
	unit  uint32
	first uint32 // its stops
	end   uint32
	len   int32 // granules
	class uint8
	shift uint8
	bound bool // it may not leave: one stop stands for its whole life
}

// stays lists when the units of SB must be in the memory.
type stays struct {
	tenants []tenant
	stops   []stop
	first   []uint32 // by unit: its tenants
}

func (s *stays) reset() {
	s.tenants, s.stops, s.first = s.tenants[:0], s.stops[:0], s.first[:0]
}

// of are the tenants of a unit.
func (s *stays) of(i uint32) []tenant {
	end := len(s.tenants)
	if int(i)+1 < len(s.first) {
		end = int(s.first[i+1])
	}
	return s.tenants[s.first[i]:end]
}

// list adds the next unit, in its parts if split says so and it has several. A load that can be made again and that no reload has
// made so far can be made later, so it is a stop of its own from which there is nothing to bring; that of a split unit is none at all.
func (s *stays) list(ws *Workspace, m *ir.Module, i uint32, bound, split bool) {
	s.first = append(s.first, uint32(len(s.tenants)))
	u, p := &ws.ranges.Units[i], &ws.sb.at[i]
	t := tenant{unit: i, first: uint32(len(s.stops)), class: p.class, shift: p.least, len: p.hi - p.lo, bound: bound}
	if bound {
		s.stops = append(s.stops, stop{at: u.Start, end: u.End - 1, tenant: uint32(len(s.tenants))})
		s.close(t)
		return
	}
	sp := &ws.spill
	rm, isRemat := ws.remat(m, u)
	late := isRemat && m.Insts.At(rm.load).Flags&ir.InstReload == 0
	sp.gather(&ws.lin, u, isRemat)
	parts := false
	if split {
		sp.findParts(isRemat)
		parts = sp.parts(isRemat) > 1
	}
	vs := sp.visits
	for from := 0; from < len(vs); {
		to := from + 1
		b := boxOf(&vs[from].fp)
		for to < len(vs) && (!parts || vs[to].part == vs[from].part) {
			b.add(boxOf(&vs[to].fp))
			to++
		}
		if parts && isRemat && from == 0 {
			from = to
			continue
		}
		if isRemat {
			b.add(rm.region(b))
		}
		if parts {
			t.len = int32((b.hi+granule-1)/granule - b.lo/granule)
		}
		t.first = uint32(len(s.stops))
		s.visits(ws, from, to, (b.hi-b.lo)*int64(b.p1-b.p0), late && !parts)
		s.close(t)
		from = to
	}
	if len(s.of(i)) == 0 { // nothing uses it
		t.bound, t.first = true, uint32(len(s.stops))
		s.stops = append(s.stops, stop{at: u.Start, end: u.End - 1, tenant: uint32(len(s.tenants))})
		s.close(t)
	}
}

// close ends the tenant whose stops were listed last.
func (s *stays) close(t tenant) {
	t.end = uint32(len(s.stops))
	if t.end > t.first {
		s.tenants = append(s.tenants, t)
	}
}

// visits adds the stops for the gathered visits [from, to). whole is the bytes of them together.
func (s *stays) visits(ws *Workspace, from, to int, whole int64, late bool) {
	sp := &ws.spill
	first := len(s.stops)
	dirty, has := int64(0), int64(0)
	for k := from; k < to; k++ {
		v := &sp.visits[k]
		if v.clean && !(late && k == from) {
			continue
		}
		if n := len(s.stops); n > first && !sp.cuttable(k) {
			s.stops[n-1].end = max(s.stops[n-1].end, sp.tails[v.at])
		} else {
			s.stops = append(s.stops, stop{at: v.unit, end: sp.tails[v.at], tenant: uint32(len(s.tenants)), visit: int32(k), save: min(dirty, whole), reload: min(has, whole)})
		}
		if v.write || v.read {
			has += bytesOf(&v.fp)
		}
		if v.write && !v.clean {
			dirty += bytesOf(&v.fp)
		}
		if v.glued {
			dirty = max(0, dirty-bytesOf(&v.fp))
		}
	}
	reads := int64(0)
	for k, n := to-1, len(s.stops)-1; k >= from; k-- {
		if v := &sp.visits[k]; v.read && !v.glued {
			reads += bytesOf(&v.fp)
		}
		if n >= first && s.stops[n].visit == int32(k) {
			x := &s.stops[n]
			x.reload = min(reads, x.reload)
			if late && n == first+1 {
				x.reload = 0
			}
			x.save = min(x.save, x.reload)
			n--
		}
	}
}

// parts is the number of parts, without that of the load that can be made again.
func (sp *spiller) parts(isRemat bool) int {
	n := int(sp.visits[len(sp.visits)-1].part) + 1
	if isRemat {
		n--
	}
	return n
}

// cuttable reports whether visits i-1 and i may go to different locations.
func (sp *spiller) cuttable(i int) bool {
	v, prev := &sp.visits[i], &sp.visits[i-1]
	return v.part != prev.part || v.clean || prev.clean || v.unit != prev.unit && !v.glued
}

// staysPut reports a unit that spilling may not move. A pinned load is not one: losing its bet is what un-pins it.
func (ws *Workspace) staysPut(i uint32) bool {
	n := &ws.solver.Nodes[i]
	if n.Fixed {
		return true
	}
	if ws.pins.bet && ws.pins.state.Get(ws.ranges.Units[i].Set) == pinned {
		return ws.pins.cost[i] == regalloc.Infinite
	}
	return n.Cost == regalloc.Infinite
}
