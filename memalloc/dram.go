package memalloc

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// pageBytes is the alignment of every DRAM placement, and what every size is rounded up to.
const pageBytes = 4096

// pages is the geometry of DRAM: byte ranges above a floor. Members of a must-alias are one node under their leader, the unit
// with the smallest number.
type pages struct {
	index regalloc.Index
	addr  []int64 // by unit, -1 unplaced
	size  []int64 // by unit, rounded up to pages
	order []uint32
	hits  []uint32
	keys  []uint64 // page above the floor << 32 | unit
	bits  []uint64 // occupancy, a bit a page
	busy  []span

	leader []uint32 // by unit: the unit whose place it shares by a must-alias; itself else
	joined []bool   // by unit: a leader with members
	marks  []dramMark
	own    []regalloc.Seg // live segments of leaders, those of one together, ascending
	first  []uint32       // by unit: its segments are own[first[i]:first[i+1]]
	segs   []regalloc.Seg // the same in order of start, which the index borrows
	cover  []span
}

// dramMark is what the accesses of a unit make of it.
type dramMark uint8

const (
	markKept       dramMark = 1 << iota // live over the whole function
	markCollective                      // an operand of a collective
)

// internal reports the kinds of DRAM tensors that the allocator places.
func internal(k ir.TensorKind) bool { return k == ir.KindInternal || k == ir.KindInternalInterface }

// DRAM places the Internal and InternalInterface sets of the function in one address space, first fit: sets that are not live
// together share bytes. Operands of collectives go first, in a region of their own; of the rest larger ones first, of equal size
// the longer lived, then the earlier. What has an address keeps it, and everything else goes above all that has one, so that a
// second call, for another address space or after linking, adds to the first. There is nothing to do, and no error, when
// nothing lacks an address.
//
// It sets FuncDRAMPlaced once no address space has tensors left to place. Errors: User for undefined uses; Limit for a tensor
// that would end beyond the window, or a collective's that does not fit in its region.
func DRAM(m *ir.Module, f ir.Func, ws *Workspace, opt Options) (Metrics, error) {
	window := opt.window(m.Gen)
	mt := Metrics{Space: target.SpaceDRAM, Capacity: window, Iterations: 1}
	floor, todo, others, err := dramFloor(m, f, opt.AddrSpace, window)
	if err != nil {
		return mt, err
	}
	defer func() {
		if err == nil && others == 0 {
			m.Funcs.At(f).Flags |= ir.FuncDRAMPlaced
		}
	}()
	if todo == 0 {
		dramTotals(m, f, opt.AddrSpace, &mt)
		return mt, nil
	}
	if mt.Unused, err = ws.linearise(m, f, &opt); err != nil {
		return mt, err
	}
	space := opt.AddrSpace
	ws.ranges.Build(m, &ws.lin, target.SpaceDRAM, ssa.BySlot, func(s *ir.SetRow) bool { return internal(s.Kind) && s.Addr == space })
	units := ws.ranges.Units
	g := &ws.dram
	g.measure(m, units)
	mt.Nodes = len(units)
	g.lifetimes(m, ws)
	mt.PeakBytes, mt.PeakInst = ws.dramPeak()
	mt.PeakDemand = 100 * float64(mt.PeakBytes) / float64(window)
	// Everything that has an address lies below the floor, so only what is placed here can be in the way.
	g.index.Build(g.segs)
	g.sort()
	var rest []uint32
	if floor, rest, err = ws.placeCollectives(m, f, floor, &opt, &mt); err != nil {
		return mt, err
	}
	for _, i := range rest {
		at := g.lowest(i, floor)
		mt.Edges += len(g.keys)
		if at > window-g.size[i] {
			err = ws.dramOverflow(m, &mt, i, at, floor)
			return mt, err
		}
		g.addr[i] = at
	}
	for i := range units {
		g.addr[i] = g.addr[g.leader[i]]
	}
	if err = ws.check.pages(m, units, g, window); err != nil {
		return mt, err
	}
	for i := range units {
		if units[i].Flags&ssa.Placed != 0 {
			continue
		}
		for k := range units[i].Count {
			l := m.Locs.At(units[i].Loc(k))
			l.Addr = g.addr[i]
			l.Flags |= ir.LocAllocated
		}
	}
	mt.Placed = todo
	dramTotals(m, f, opt.AddrSpace, &mt)
	return mt, nil
}

// measure notes sizes, and the addresses of what has one.
func (g *pages) measure(m *ir.Module, units []ssa.Unit) {
	g.addr, g.size = arena.Resized(g.addr, len(units)), arena.Resized(g.size, len(units))
	for i := range units {
		l := m.Locs.At(units[i].First)
		g.addr[i], g.size[i] = -1, roundPage(max(1, dramBytes(l)))
		if units[i].Flags&ssa.Placed != 0 {
			g.addr[i] = l.Addr
		}
	}
}

// dramBytes is the size of a DRAM location.
func dramBytes(l *ir.LocRow) int64 { return l.Bytes * int64(max(1, l.Parts)) }

// hasAddress reports a location whose address the allocators take as given.
func hasAddress(l *ir.LocRow) bool {
	return l.Flags&(ir.LocAllocated|ir.LocUserAllocated|ir.LocPinned|ir.LocReserved) != 0
}

// dramFloor is the end of all that has an address, in whatever address space: on one core they are stretches of one memory. todo
// counts the locations of the space that have none, others those of other spaces.
func dramFloor(m *ir.Module, f ir.Func, space ir.AddrSpace, window int64) (floor int64, todo, others int, err error) {
	for _, s := range m.SetsOf(f) {
		r := m.Sets.At(s)
		if !internal(r.Kind) || r.Count == 0 || m.Locs.At(r.First).Space != target.SpaceDRAM {
			continue
		}
		for k := range r.Count {
			at := r.First + ir.Loc(k)
			l := m.Locs.At(at)
			if l.Bytes < 0 || l.Parts > 0 && l.Bytes > (1<<62)/int64(l.Parts) {
				return 0, 0, 0, target.Errorf(target.Limit, "DRAM overflow: %s of %d × %d bytes; its size is beyond 64 bits; cut it into smaller tensors", m.LocName(at), l.Parts, l.Bytes)
			}
			switch {
			case hasAddress(l):
				if l.Addr < 0 || l.Addr > window-dramBytes(l) {
					return 0, 0, 0, target.Errorf(target.Limit, "%s is placed at bytes %d to %d of DRAM, whose window is %d; move it, or give a wider window (--hbm-gib)",
						m.LocName(at), l.Addr, l.Addr+dramBytes(l)-1, window)
				}
				floor = max(floor, roundPage(l.Addr+dramBytes(l)))
			case r.Addr == space:
				todo++
			default:
				others++
			}
		}
	}
	return floor, todo, others, nil
}

// dramTotals sums up what stands in the address space after placement.
func dramTotals(m *ir.Module, f ir.Func, space ir.AddrSpace, mt *Metrics) {
	n := 0
	for _, s := range m.SetsOf(f) {
		r := m.Sets.At(s)
		if !internal(r.Kind) || r.Addr != space || r.Count == 0 || m.Locs.At(r.First).Space != target.SpaceDRAM {
			continue
		}
		for k := range r.Count {
			l := m.Locs.At(r.First + ir.Loc(k))
			size := dramBytes(l)
			mt.HighWater = max(mt.HighWater, roundPage(l.Addr+size))
			mt.Total += roundPage(size)
			if r.Flags&ir.SetSpillHome != 0 {
				mt.HomeBytes += size
				mt.HomeAligned += roundPage(size)
			}
		}
		n += int(r.Count)
	}
	mt.Nodes = max(mt.Nodes, n)
	mt.Utilisation = 100 * float64(mt.HighWater) / float64(max(1, mt.Capacity))
}

func roundPage(n int64) int64 { return (n + pageBytes - 1) &^ (pageBytes - 1) }

// sort lists the leaders that lack a place in the order in which they get one.
func (g *pages) sort() {
	g.order = g.order[:0]
	for i := range g.leader {
		if g.leader[i] == uint32(i) && g.addr[i] < 0 {
			g.order = append(g.order, uint32(i))
		}
	}
	slices.SortFunc(g.order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(g.marks[b]&markCollective, g.marks[a]&markCollective), cmp.Compare(g.size[b], g.size[a]),
			cmp.Compare(g.length(b), g.length(a)), cmp.Compare(a, b))
	})
}

// segments are the live segments of a leader.
func (g *pages) segments(i uint32) []regalloc.Seg { return g.own[g.first[i]:g.first[i+1]] }

// length is how many points a leader is live for.
func (g *pages) length(i uint32) (n uint32) {
	for _, s := range g.segments(i) {
		n += s.End - s.Start
	}
	return n
}

// lowest is the lowest address from floor on where unit i fits beside all that is placed there and live with it.
func (g *pages) lowest(i uint32, floor int64) int64 {
	g.keys = g.keys[:0]
	top := floor
	for _, s := range g.segments(i) {
		g.hits = g.index.Append(g.hits[:0], s.Start, s.End)
		for _, h := range g.hits {
			if o := g.segs[h].Node; o != i && g.addr[o] >= floor {
				g.keys = append(g.keys, uint64((g.addr[o]-floor)/pageBytes)<<32|uint64(o))
				top = max(top, g.addr[o]+g.size[o])
			}
		}
	}
	// All that lies there does so on whole pages. A bit a page is quicker than sorting where many lie close together.
	if n := int((top - floor) / pageBytes); n/64 <= wordsAKey*len(g.keys) {
		return floor + g.lowestPage(n, int(g.size[i]/pageBytes))*pageBytes
	}
	slices.Sort(g.keys)
	g.busy = g.busy[:0]
	for _, k := range g.keys {
		o := uint32(k)
		g.busy = append(g.busy, span{g.addr[o], g.addr[o] + g.size[o], o})
	}
	return firstGap(g.busy, floor, g.size[i])
}

// wordsAKey is how many words of the bitmap one more key is worth. With 100 keys, and with 10,000, bits take a quarter to a half of the
// processor time of sorting; large tensors far apart are what sorting is for.
const wordsAKey = 8

// lowestPage is the first of size free pages when those of the keys, all below n, are taken.
func (g *pages) lowestPage(n, size int) int64 {
	g.bits = arena.Resized(g.bits, n/64+1)
	clear(g.bits)
	for _, k := range g.keys {
		at := int(k >> 32)
		Mark(g.bits, at, at+int(g.size[uint32(k)]/pageBytes))
	}
	for at := 0; ; {
		at = NextClear(g.bits, at, n)
		if at >= n {
			return int64(at)
		}
		end := NextSet(g.bits, at, min(at+size, n))
		if end == at+size || end == n {
			return int64(at)
		}
		at = end
	}
}

// firstGap is the lowest address from floor on where size bytes fit between the busy ranges, which come by start. A tensor of a
// page or less does not straddle a page boundary.
func firstGap(busy []span, floor, size int64) int64 {
	at := floor
	for _, b := range busy {
		if p := fitPage(at, size); p+size <= b.lo {
			return p
		}
		at = max(at, b.hi)
	}
	return fitPage(at, size)
}

// fitPage is the first address from lo on where size bytes stay in one page; what is larger than a page starts right there.
func fitPage(lo, size int64) int64 {
	if size > pageBytes || lo/pageBytes == (lo+size-1)/pageBytes {
		return lo
	}
	return roundPage(lo)
}
