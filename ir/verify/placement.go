package verify

import (
	"cmp"
	"math"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Fixed remembers the placements that no allocator may move, to be compared after one ran, and how high DRAM was in use.
type Fixed struct {
	locs  []fixedLoc
	floor arena.Column[ir.Func, int64]
	old   arena.Column[ir.Loc, bool]
}

type fixedLoc struct {
	loc ir.Loc
	row ir.LocRow
}

// arenaDRAM reports a DRAM tensor that lies among those of the allocators, and has no variable of its own.
func arenaDRAM(m *ir.Module, r *ir.LocRow) bool {
	return r.Space == target.SpaceDRAM && m.Sets.At(r.Set).Kind.IsInternal()
}

// Remember notes every pinned, user-allocated or reserved placement of m, and the end of all that is placed in DRAM.
func (f *Fixed) Remember(m *ir.Module) {
	f.locs = f.locs[:0]
	f.floor.Reset()
	f.old.Reset()
	for l, r := range m.Locs.All() {
		if r.Flags&(ir.LocAllocated|ir.LocUserAllocated|ir.LocPinned|ir.LocReserved) != 0 && arenaDRAM(m, r) {
			f.old.Set(l, true)
			end := f.floor.Ptr(m.Sets.At(r.Set).Func)
			*end = max(*end, r.Addr+r.Bytes*int64(max(1, r.Parts)))
		}
		if r.Flags&(ir.LocPinned|ir.LocUserAllocated|ir.LocReserved) != 0 && r.Flags&ir.LocAllocated != 0 {
			f.locs = append(f.locs, fixedLoc{l, *r})
		}
	}
}

// Check reports placements that changed since Remember, and DRAM tensors that were placed since then below the end of those that had
// an address before.
func (f *Fixed) Check(m *ir.Module) error {
	p := &problems{m: m}
	for l, r := range m.Locs.All() {
		if r.Flags&ir.LocAllocated != 0 && arenaDRAM(m, r) && !f.old.Get(l) {
			if floor := f.floor.Get(m.Sets.At(r.Set).Func); r.Addr < floor {
				p.addf("%s is at DRAM byte %d, below byte %d, where what had an address before ends", m.LocName(l), r.Addr, floor)
			}
		}
	}
	for _, x := range f.locs {
		r := m.Locs.At(x.loc)
		if r.Addr != x.row.Addr || r.Bank != x.row.Bank || r.Base != x.row.Base || r.Space != x.row.Space || r.Flags&ir.LocAllocated == 0 {
			p.addf("%s is fixed at bank %d, partition %d, byte %d and was moved to bank %d, partition %d, byte %d",
				m.LocName(x.loc), x.row.Bank, x.row.Base, x.row.Addr, r.Bank, r.Base, r.Addr)
		}
	}
	return p.err(target.Bug)
}

// life is one location as the sweep sees it: points [from, to] inclusive, partitions [p0, p1), bytes [lo, hi) of space.
type life struct {
	loc      ir.Loc
	space    target.Space
	from, to int32
	p0, p1   int32
	lo, hi   int64
}

// Bounds proves that every location of spaces that an instruction of f touches is placed, in bounds and aligned.
func Bounds(m *ir.Module, f ir.Func, spaces ...target.Space) error {
	p := &problems{m: m}
	bounds(p, f, spaces)
	return p.err(target.Bug)
}

func bounds(p *problems, f ir.Func, spaces []target.Space) []life {
	lives := gather(p, f, spaces, false)
	for i := range lives {
		checkPlace(p, &lives[i])
	}
	return lives
}

// Placement is Bounds, and proves that no two locations that are live at the same time overlap. A location is live from its
// first to its last access in program order, on chip with the bodies of loops laid out behind them and over the loops whose turns
// it connects; a reserved one always, and an interface to another function; a debug tensor and a volatile one to the end. In DRAM a
// location is dead where what it holds is written over unread. Must-aliases have one address and are live as one. It speaks of the
// order in which the locations were placed; after scheduling, Reads does.
//
// One sweep over time; the locations live at a point are kept sorted by first byte, so that a newcomer meets only those
// that begin below its end.
func Placement(m *ir.Module, f ir.Func, spaces ...target.Space) error {
	p := &problems{m: m}
	lives := bounds(p, f, spaces)
	if p.count == 0 {
		apart(p, f, lives, spaces)
	}
	return p.err(target.Bug)
}

// Given proves the same of the placements that a program brings along, whose other locations have none yet, and bounds and alignment
// of those that nothing touches too. A location that is marked as fixed must have a place. Findings are errors of the user.
func Given(m *ir.Module, f ir.Func) error {
	p := &problems{m: m}
	spaces := []target.Space{target.SpacePSUM, target.SpaceSB, target.SpaceDRAM}
	lives := gather(p, f, spaces, true)
	for i := range lives {
		checkPlace(p, &lives[i])
	}
	if p.count == 0 {
		apart(p, f, slices.DeleteFunc(lives, func(x life) bool { return x.from == untouched }), spaces)
	}
	return p.err(target.User)
}

// untouched is the beginning of a life that has no end.
const untouched = -1

// apart reports lives that overlap in time and bytes.
func apart(p *problems, f ir.Func, lives []life, spaces []target.Space) {
	m := p.m
	alias := aliasRoots(m)
	if slices.Contains(spaces, target.SpaceDRAM) {
		joinAliases(p, lives, alias)
	}
	w := livesOf(p, f)
	indexed := indexedSets(m, f)
	for _, s := range spaces {
		sweep(p, lives, s, alias, w, indexed)
	}
}

// joinAliases gives the DRAM locations of a must-alias one life, and reports those at different addresses.
func joinAliases(p *problems, all []life, alias map[ir.Loc]ir.Loc) {
	if len(alias) == 0 {
		return
	}
	joint := map[ir.Loc]*life{}
	for i := range all {
		x := &all[i]
		if _, ok := alias[x.loc]; !ok || x.space != target.SpaceDRAM {
			continue
		}
		j := joint[root(alias, x.loc)]
		if j == nil {
			joint[root(alias, x.loc)] = x
			continue
		}
		if j.lo != x.lo {
			p.addf("%s and %s are the same bytes by a must-alias, and lie at DRAM bytes %d and %d", p.m.LocName(j.loc), p.m.LocName(x.loc), j.lo, x.lo)
		}
		j.from, j.to = min(j.from, x.from), max(j.to, x.to)
	}
	for i := range all {
		if x := &all[i]; x.space == target.SpaceDRAM {
			if j := joint[root(alias, x.loc)]; j != nil {
				x.from, x.to = j.from, j.to
			}
		}
	}
}

// gather finds the lives of the locations of spaces. One that is touched and has no place is a finding, or, where given is set, left
// out unless it is marked as fixed; untouched ones come along then.
func gather(p *problems, f ir.Func, spaces []target.Space, given bool) []life {
	m := p.m
	var first, last arena.Column[ir.Loc, int32]
	point := int32(0)
	visit := func(i ir.Inst) {
		for _, a := range m.AllArgs(i) {
			eachLoc(m, a, func(l ir.Loc) {
				if first.Get(l) == 0 {
					first.Set(l, point)
				}
				last.Set(l, point)
			})
		}
	}
	// In DRAM a region is one point: what its body touches is touched there, in every turn of a loop. On chip turns are told apart.
	begins, ends := spans(m, f)
	var body []ir.Block
	for _, b := range m.BlocksOf(f) {
		for _, top := range m.OrderOf(b) {
			point++
			visit(top)
			if !m.Insts.At(top).Op.Is(ir.FlagRegion) {
				continue
			}
			body = append(body[:0], m.BlockList.Of(m.Regions.Get(top).Blocks)...)
			for len(body) > 0 {
				inner := body[len(body)-1]
				body = body[:len(body)-1]
				for _, i := range m.OrderOf(inner) {
					visit(i)
					if m.Insts.At(i).Op.Is(ir.FlagRegion) {
						body = append(body, m.BlockList.Of(m.Regions.Get(i).Blocks)...)
					}
				}
			}
		}
	}
	var lives []life
	for l, r := range m.Locs.All() {
		if !slices.Contains(spaces, r.Space) || m.Sets.At(r.Set).Func != f {
			continue
		}
		from, to := first.Get(l), last.Get(l)
		if r.Space.OnChip() {
			from, to = begins.Get(l), ends.Get(l)
		}
		if r.Flags&ir.LocReserved != 0 {
			from, to = 0, math.MaxInt32
		} else if from == 0 {
			if !given {
				continue
			}
			from = untouched
		}
		if r.Space == target.SpaceDRAM {
			set := m.Sets.At(r.Set)
			if !arenaDRAM(m, r) {
				continue // an address space of its own
			}
			if set.Kind == ir.KindInternalInterface && from != untouched {
				from = 0
			}
			if set.Kind == ir.KindInternalInterface || set.Addr == ir.AddrDebug || set.Flags&ir.SetVolatile != 0 {
				to = math.MaxInt32
			}
		}
		if r.Flags&ir.LocAllocated == 0 && given {
			if r.Flags&(ir.LocUserAllocated|ir.LocPinned|ir.LocReserved) != 0 {
				p.addf("%s (%s) is marked as fixed (user_allocated, pinned or reserved) and not as allocated: give it a place, or take the mark away", m.LocName(l), r.Space)
			}
			continue
		}
		if r.Flags&ir.LocAllocated == 0 {
			p.addf("%s (%s, %d x %d bytes) is used and not placed", m.LocName(l), r.Space, r.Parts, r.Bytes)
			continue
		}
		x := life{loc: l, space: r.Space, from: from, to: to, p1: 1, lo: r.Addr, hi: r.Addr + r.Bytes*int64(r.Parts)}
		if r.Space.OnChip() {
			x.p0, x.p1 = int32(r.Base), int32(r.Base)+int32(r.Parts)
			x.hi = r.Addr + r.Bytes
			if r.Space == target.SpacePSUM {
				x.lo += int64(r.Bank) * int64(m.Gen.BankBytes)
				x.hi += int64(r.Bank) * int64(m.Gen.BankBytes)
			}
		}
		lives = append(lives, x)
	}
	return lives
}

func checkPlace(p *problems, x *life) {
	m := p.m
	r := m.Locs.At(x.loc)
	g := m.Gen
	switch x.space {
	case target.SpaceSB:
		if x.lo < 0 || x.hi > int64(g.SBBytes) {
			p.addf("%s takes bytes %d to %d of a partition of %d", m.LocName(x.loc), x.lo, x.hi, g.SBBytes)
		}
		if r.Addr%8 != 0 && r.Flags&(ir.LocUserAllocated|ir.LocPinned) == 0 {
			p.addf("%s starts at byte %d, which is no multiple of 8", m.LocName(x.loc), r.Addr)
		}
	case target.SpacePSUM:
		if r.Bank < 0 || r.Addr < 0 || x.hi > int64(g.PSUMBanks*g.BankBytes) {
			p.addf("%s takes bank %d, bytes %d to %d of %d banks", m.LocName(x.loc), r.Bank, r.Addr, r.Addr+r.Bytes, g.PSUMBanks)
		}
	case target.SpaceDRAM:
		if x.lo < 0 || x.hi > g.HBMBytes() {
			p.addf("%s takes DRAM bytes %d to %d; the window of %s is 0 to %d", m.LocName(x.loc), x.lo, x.hi-1, g.Name, g.HBMBytes()-1)
		}
		if x.lo%4096 != 0 && r.Flags&(ir.LocUserAllocated|ir.LocPinned) == 0 {
			p.addf("%s starts at DRAM byte %d, which is not on a page of 4096", m.LocName(x.loc), x.lo)
		}
		return
	}
	parts := g.SBPartitions
	if x.space == target.SpacePSUM {
		parts = g.PSUMParts
	}
	if int(x.p1) > parts {
		p.addf("%s takes partitions %d to %d of %d", m.LocName(x.loc), x.p0, x.p1-1, parts)
	} else if !target.LegalStart(int(x.p0), int(x.p1-x.p0)) {
		p.addf("%s (%d partitions) may not start at partition %d", m.LocName(x.loc), x.p1-x.p0, x.p0)
	}
}

// sweep walks the beginnings in time order. live holds those not yet over, sorted by lo, and some that are over: they are
// swept out when they may be half of it. wide is the largest extent seen, so that the search for overlaps starts at lo-wide.
func sweep(p *problems, all []life, space target.Space, alias map[ir.Loc]ir.Loc, w *lives, indexed map[ir.Set]bool) {
	var xs []life
	for _, x := range all {
		if x.space == space {
			xs = append(xs, x)
		}
	}
	slices.SortFunc(xs, func(a, b life) int {
		if a.from != b.from {
			return int(a.from - b.from)
		}
		return int(a.loc) - int(b.loc)
	})
	var live []int32 // indices of xs, sorted by lo
	wide, full := int64(0), 64
	for k := range xs {
		x := &xs[k]
		wide = max(wide, x.hi-x.lo)
		if len(live) >= full {
			live = slices.DeleteFunc(live, func(j int32) bool { return xs[j].to < x.from })
			full = max(64, 2*len(live))
		}
		at, _ := slices.BinarySearchFunc(live, x.lo-wide, func(j int32, lo int64) int { return cmp.Compare(xs[j].lo, lo) })
		for _, j := range live[at:] {
			y := &xs[j]
			if y.lo >= x.hi {
				break
			}
			if y.to >= x.from && y.hi > x.lo && y.p0 < x.p1 && x.p0 < y.p1 && root(alias, x.loc) != root(alias, y.loc) &&
				(space != target.SpaceDRAM || w.meet(x, y, alias)) && !oneSlot(p.m, indexed, x.loc, y.loc) {
				p.addf("%s and %s are live at once (points %d to %d and %d to %d) and share %s bytes: partitions %d to %d, bytes %d to %d against partitions %d to %d, bytes %d to %d",
					p.m.LocName(x.loc), p.m.LocName(y.loc), x.from, x.to, y.from, y.to, space,
					x.p0, x.p1-1, x.lo, x.hi, y.p0, y.p1-1, y.lo, y.hi)
			}
		}
		at, _ = slices.BinarySearchFunc(live, x.lo, func(j int32, lo int64) int { return cmp.Compare(xs[j].lo, lo) })
		live = slices.Insert(live, at, int32(k))
	}
}
