package ssa

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// NoUnit is the unit of a location that has none.
const NoUnit = ^uint32(0)

// UnitFlag is what a unit is beside its live range.
type UnitFlag uint8

const (
	// Placed units have an address before the allocator runs and keep it.
	Placed UnitFlag = 1 << iota
	// Always units are live over the whole function.
	Always
	// Opaque units have symbolic or nested accesses: nothing may rewrite their operands one by one.
	Opaque
	// Dead units have no access.
	Dead
)

// Unit is what takes one place: a location, or the locations of one ring slot, or of a set whose blocks stand side by side.
// 28 bytes. Live over points Start ≤ p < End.
type Unit struct {
	Set        ir.Set
	First      ir.Loc // its first location; the others follow at distance Stride
	Count      uint32
	Stride     uint32
	Start, End Point
	Flags      UnitFlag
}

// Grouping says which locations of a set share a unit.
type Grouping uint8

const (
	// BySlot: block b shares a place with the blocks b ± LiveN. Each slot is its own unit.
	BySlot Grouping = iota
	// BySet: all blocks of a set are one unit, side by side.
	BySet
)

// Ranges numbers the units of one space in the order in which their live ranges begin, ties by first access and then by location.
type Ranges struct {
	Units []Unit

	carrier carrier
	unitOf  []uint32 // by location: 1 + unit, 0 none
	scratch []Unit
	remap   []uint32
}

// Build numbers the units of space among the sets of the function that lin was built from. keep may refuse a set; nil keeps all.
func (r *Ranges) Build(m *ir.Module, lin *Linear, space target.Space, by Grouping, keep func(*ir.SetRow) bool) {
	nl := m.Locs.Len()
	r.unitOf = arena.Zeroed(r.unitOf, nl)
	r.Units = r.Units[:0]
	r.scratch = r.scratch[:0]
	end := Point(max(1, lin.Points()))
	// Units in order of sets first, with their ranges; then renumbered by first definition.
	for _, s := range m.SetsOf(lin.Func) {
		row := m.Sets.At(s)
		if row.Count == 0 || m.Locs.At(row.First).Space != space || keep != nil && !keep(row) {
			continue
		}
		slots, stride := row.Count, row.Count
		if by == BySet {
			slots, stride = 1, 1
		} else if row.LiveN > 0 && row.LiveN < row.Count {
			slots, stride = row.LiveN, row.LiveN
		}
		for k := range slots {
			u := Unit{Set: s, First: row.First + ir.Loc(k), Stride: stride, Start: ^Point(0)}
			for b := k; b < row.Count; b += stride {
				r.unitOf[row.First+ir.Loc(b)] = uint32(len(r.scratch)) + 1
				u.Count++
				u.cover(m, row.First+ir.Loc(b), lin)
			}
			switch {
			case u.Flags&Always != 0:
				u.Start, u.End = 0, end
			case u.End == 0:
				u.Start, u.End = 0, 1
				u.Flags |= Dead
			case len(lin.Loops) > 0:
				r.extend(m, lin, &u)
			}
			r.scratch = append(r.scratch, u)
		}
	}
	// The order of first definition is the order in which the accesses come; what has none, or is live from the start, goes first.
	r.remap = arena.Zeroed(r.remap, len(r.scratch))
	for i := range r.scratch {
		if u := &r.scratch[i]; u.Start == 0 {
			r.Units = append(r.Units, *u)
			r.remap[i] = uint32(len(r.Units))
		}
	}
	_, locs := lin.All()
	for _, l := range locs {
		if i := r.unitOf[l]; i != 0 && r.remap[i-1] == 0 {
			r.Units = append(r.Units, r.scratch[i-1])
			r.remap[i-1] = uint32(len(r.Units))
		}
	}
	if len(lin.Loops) == 0 {
		for l, i := range r.unitOf {
			if i != 0 {
				r.unitOf[l] = r.remap[i-1]
			}
		}
		return
	}
	// A range that was extended begins before its first access.
	slices.SortStableFunc(r.Units, func(a, b Unit) int { return cmp.Compare(a.Start, b.Start) })
	for i := range r.Units {
		u := &r.Units[i]
		for k := range u.Count {
			r.unitOf[u.Loc(k)] = uint32(i) + 1
		}
	}
}

// extend takes loops into account. What is touched in a loop and also before it is live to the loop's end, what is touched in it
// and also behind it is live from its head on, for each outermost such loop: the next turn may want it. What is touched in one
// loop only and carried from turn to turn is live over all of it.
func (r *Ranges) extend(m *ir.Module, lin *Linear, u *Unit) {
	first, last := u.Start, u.End-1
	if x := lin.Leaving(first, last); x != 0 {
		u.Start = lin.Loops[x].Head
	}
	if x := lin.Leaving(last, first); x != 0 {
		u.End = lin.Loops[x].End
	}
	top := lin.Loops[lin.LoopOf(first)].Top
	if top == 0 || top != lin.Loops[lin.LoopOf(last)].Top {
		return
	}
	for k := range u.Count {
		if r.carrier.carried(m, lin, u.Loc(k)) {
			u.Start, u.End = lin.Loops[top].Head, lin.Loops[top].End
			return
		}
	}
}

// cover extends the range over the accesses of one more location.
func (u *Unit) cover(m *ir.Module, l ir.Loc, lin *Linear) {
	fl := m.Locs.At(l).Flags
	if fl&(ir.LocAllocated|ir.LocUserAllocated|ir.LocPinned|ir.LocReserved) != 0 {
		u.Flags |= Placed
	}
	if fl&(ir.LocPinned|ir.LocReserved) != 0 {
		u.Flags |= Always
	}
	acc := lin.Of(l)
	if len(acc) == 0 {
		return
	}
	u.Start = min(u.Start, acc[0].At)
	u.End = max(u.End, acc[len(acc)-1].At+1)
	for i := range acc {
		if acc[i].Flags&(Symbolic|Nested) != 0 {
			u.Flags |= Opaque
			return
		}
	}
}

// UnitOf is the unit that a location belongs to, NoUnit when it is not in this space or was refused.
func (r *Ranges) UnitOf(l ir.Loc) uint32 {
	if int(l) < len(r.unitOf) {
		return r.unitOf[l] - 1
	}
	return NoUnit
}

// Loc is the k-th location of a unit.
func (u *Unit) Loc(k uint32) ir.Loc { return u.First + ir.Loc(k*u.Stride) }
