package rotate

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

const (
	pageBytes = 4096
	// DefaultWindowGiB is the stretch of DRAM that rotation may use where nothing else is said, and the most that a runtime takes.
	DefaultWindowGiB = 8
)

// extent is bytes [lo, hi) of DRAM.
type extent struct{ lo, hi int64 }

// recurring is the storage of DRAM.
type recurring struct {
	index regalloc.Index
	own   []regalloc.Seg // live segments, those of one unit together
	segs  []regalloc.Seg // the same in order of start
	first []uint32       // by unit: its segments are own[first[i]:first[i+1]]
	lo    []int64        // by unit; -1 without a place
	size  []int64
	moves []bool // by unit
	hits  []uint32
	busy  []extent
	twins arena.Column[ir.Loc, bool] // has an alias
}

// DRAM gives the Local tensors in DRAM that recur, those that more than one block touches, new addresses one behind the other, around
// a window of gib GiB (0 the default, -1 no more than is in use): the next turn's tensor need not wait for the last reader of this
// one. It begins where the lowest of them lies and ends below the tensors that other cores see. What is fixed stays, so do operands of
// collectives, which have a region of their own, tensors that share bytes by an alias, and all of a function that branches. Errors: Bug
// for a tensor that has no place.
func DRAM(m *ir.Module, f ir.Func, ws *Workspace, alloc *memalloc.Workspace, opt memalloc.Options, gib int) (Stats, error) {
	units, segs := alloc.Live(m, f, target.SpaceDRAM)
	st := Stats{Units: len(units)}
	if len(units) == 0 || memalloc.Branches(m, alloc.Linear()) {
		return st, nil
	}
	d := &ws.dram
	d.gather(units, segs)
	d.twins.Reset()
	for _, a := range m.AliasRows() {
		d.twins.Set(a.A, true)
		d.twins.Set(a.B, true)
	}
	base, high, above := int64(1)<<62, int64(0), int64(1)<<62
	for i := range units {
		u := &units[i]
		l := m.Locs.At(u.First)
		d.lo[i], d.size[i] = -1, (l.Bytes*int64(max(1, l.Parts))+pageBytes-1)&^(pageBytes-1)
		if l.Flags&ir.LocAllocated != 0 {
			d.lo[i] = l.Addr
		}
		d.moves[i] = false
		switch {
		case m.Sets.At(u.Set).Addr == ir.AddrLocal && d.lo[i] < 0:
			return st, target.Errorf(target.Bug, "rotation of DRAM meets %s, which has no place", m.LocName(u.First))
		case m.Sets.At(u.Set).Addr == ir.AddrLocal:
			high = max(high, d.lo[i]+d.size[i])
			d.moves[i] = u.Count == 1 && d.first[i] < d.first[i+1] && !fixed(m, u) && !d.twins.Get(u.First) && recurs(m, alloc.Linear(), u)
		case d.lo[i] >= 0:
			above = min(above, d.lo[i])
		}
		if d.moves[i] {
			base = min(base, d.lo[i])
		}
	}
	if base > high {
		return st, nil
	}
	window := int64(gib) << 30
	if gib == 0 {
		window = DefaultWindowGiB << 30
	}
	most := m.Gen.HBMBytes()
	if opt.HBMBytes > 0 {
		most = opt.HBMBytes
	}
	top := min(most, max(window, high), above)
	cursor := base
	for i := range units {
		if !d.moves[i] {
			continue
		}
		d.obstacles(uint32(i))
		at := d.gap(cursor, top, d.size[i])
		if at < 0 {
			at = d.gap(base, top, d.size[i])
		}
		if at < 0 {
			continue
		}
		cursor = at + d.size[i]
		if at != d.lo[i] {
			d.lo[i] = at
			m.Locs.At(units[i].First).Addr = at
			st.Moved++
		}
	}
	for i := range units {
		if m.Sets.At(units[i].Set).Addr == ir.AddrLocal {
			st.High = max(st.High, d.lo[i]+d.size[i])
		}
	}
	return st, nil
}

// recurs reports a unit that more than one block touches and no collective does.
func recurs(m *ir.Module, lin *ssa.Linear, u *ssa.Unit) bool {
	block, several := ir.Block(0), false
	for _, a := range lin.Of(u.First) {
		r := m.Insts.At(a.Inst)
		if memalloc.IsCollective(r.Op) {
			return false
		}
		several = several || block != 0 && r.Block != block
		block = r.Block
	}
	return several
}

// gather lays out the live segments of the units and the index over them.
func (d *recurring) gather(units []ssa.Unit, segs []regalloc.Seg) {
	n := len(units)
	d.own = append(d.own[:0], segs...)
	slices.SortFunc(d.own, func(a, b regalloc.Seg) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Start, b.Start)) })
	d.first = arena.Resized(d.first, n+1)
	k := 0
	for i := range d.first {
		for k < len(d.own) && int(d.own[k].Node) < i {
			k++
		}
		d.first[i] = uint32(k)
	}
	d.segs = append(d.segs[:0], d.own...)
	slices.SortFunc(d.segs, func(a, b regalloc.Seg) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Node, b.Node)) })
	d.index.Build(d.segs)
	d.lo, d.size, d.moves = arena.Resized(d.lo, n), arena.Resized(d.size, n), arena.Resized(d.moves, n)
}

// obstacles are the bytes that others hold while unit i is live, by address.
func (d *recurring) obstacles(i uint32) {
	d.busy = d.busy[:0]
	for _, s := range d.own[d.first[i]:d.first[i+1]] {
		d.hits = d.index.Append(d.hits[:0], s.Start, s.End)
		for _, h := range d.hits {
			if o := d.segs[h].Node; o != i && d.lo[o] >= 0 {
				d.busy = append(d.busy, extent{d.lo[o], d.lo[o] + d.size[o]})
			}
		}
	}
	slices.SortFunc(d.busy, func(a, b extent) int { return cmp.Compare(a.lo, b.lo) })
}

// gap is the lowest page from lo on where size bytes below hi are free, -1 if there is none.
func (d *recurring) gap(lo, hi, size int64) int64 {
	at := lo
	for _, b := range d.busy {
		if at+size <= b.lo {
			break
		}
		at = max(at, (b.hi+pageBytes-1)&^(pageBytes-1))
	}
	if at+size > hi {
		return -1
	}
	return at
}
