package memalloc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// pageBytes is the alignment of every DRAM placement, and what every size is rounded up to.
const pageBytes = 4096

// pages is the geometry of DRAM: byte ranges above a floor.
type pages struct {
	index regalloc.Index
	addr  []int64 // by unit, -1 unplaced
	size  []int64 // by unit, rounded up to pages
	order []uint32
	hits  []uint32
	busy  []span

	leader []uint32 // by unit: the unit whose place it shares by a must-alias; itself else
	segs   []regalloc.Seg
	segPos []uint32
}

// DRAM places the Internal sets of the function in one address space, first fit: sets that are not live together share bytes.
// Larger ones go first, of equal size the longer lived, then the earlier. It sets FuncDRAMPlaced. Errors: User for undefined
// uses; Limit when a placement ends beyond the window.
func DRAM(m *ir.Module, f ir.Func, ws *Workspace, opt Options) (Metrics, error) {
	window := opt.window(m.Gen)
	mt := Metrics{Space: target.SpaceDRAM, Capacity: window, Iterations: 1}
	var err error
	if mt.Unused, err = ws.linearise(m, f, &opt); err != nil {
		return mt, err
	}
	space := opt.AddrSpace
	ws.ranges.Build(m, &ws.lin, target.SpaceDRAM, ssa.BySlot, func(s *ir.SetRow) bool {
		return (s.Kind == ir.KindInternal || s.Kind == ir.KindInternalInterface) && s.Addr == space
	})
	units := ws.ranges.Units
	g := &ws.dram
	g.addr, g.size = arena.Resized(g.addr, len(units)), arena.Resized(g.size, len(units))
	floor := int64(0)
	for i := range units {
		l := m.Locs.At(units[i].First)
		if l.Bytes < 0 || int64(l.Parts) > 0 && l.Bytes > (1<<62)/int64(l.Parts) {
			return mt, target.Errorf(target.Limit, "%s: %d × %d bytes overflow", m.LocName(units[i].First), l.Parts, l.Bytes)
		}
		g.addr[i], g.size[i] = -1, roundPage(max(1, l.Bytes*int64(max(1, l.Parts))))
		if units[i].Flags&ssa.Placed != 0 {
			g.addr[i] = l.Addr
			floor = max(floor, roundPage(l.Addr+l.Bytes*int64(max(1, l.Parts))))
		}
	}
	g.alias(m, &ws.ranges)
	// Everything placed lies below the floor, so only what is placed here can be in the way.
	g.index.Build(g.segs)
	g.order = g.order[:0]
	for i := range units {
		if g.leader[i] == uint32(i) && g.addr[i] < 0 {
			g.order = append(g.order, uint32(i))
		}
	}
	slices.SortFunc(g.order, func(a, b uint32) int {
		x, y := g.segs[g.segPos[a]], g.segs[g.segPos[b]]
		return cmp.Or(cmp.Compare(g.size[b], g.size[a]), cmp.Compare(y.End-y.Start, x.End-x.Start), cmp.Compare(a, b))
	})
	for _, i := range g.order {
		s := g.segs[g.segPos[i]]
		g.hits = g.index.Append(g.hits[:0], s.Start, s.End)
		g.busy = g.busy[:0]
		for _, h := range g.hits {
			if o := g.segs[h].Node; o != i && g.addr[o] >= floor {
				g.busy = append(g.busy, span{g.addr[o], g.addr[o] + g.size[o], o})
			}
		}
		mt.Edges += len(g.busy)
		slices.SortFunc(g.busy, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
		at := firstGap(g.busy, floor, g.size[i])
		g.addr[i] = at
		mt.HighWater = max(mt.HighWater, at+g.size[i])
	}
	for i := range units {
		g.addr[i] = g.addr[g.leader[i]]
	}
	mt.HighWater = max(mt.HighWater, floor)
	mt.Nodes = len(units)
	peak, at := ws.live.peak(units, ws.lin.Points(), func(i int) int64 {
		if g.leader[i] != uint32(i) {
			return 0
		}
		return g.size[i]
	})
	mt.PeakDemand = 100 * float64(peak) / float64(window)
	mt.Utilisation = 100 * float64(mt.HighWater) / float64(max(1, window))
	if int(at) < ws.lin.Points() {
		mt.PeakInst = ws.lin.Insts[at]
	}
	if mt.HighWater > window {
		return mt, ws.dramOverflow(m, &mt, at)
	}
	if err := ws.check.pages(m, units, g, window); err != nil {
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
	m.Funcs.At(f).Flags |= ir.FuncDRAMPlaced
	return mt, nil
}

func roundPage(n int64) int64 { return (n + pageBytes - 1) &^ (pageBytes - 1) }

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

// alias joins units whose bytes are the same by a must-alias: the leader takes the largest size and the union of the live
// ranges, and a placed member gives its place to all.
func (g *pages) alias(m *ir.Module, r *ssa.Ranges) {
	n := len(r.Units)
	g.leader = arena.Resized(g.leader, n)
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
			g.leader[hi] = lo
			g.size[lo] = max(g.size[lo], g.size[hi])
			if g.addr[lo] < 0 {
				g.addr[lo] = g.addr[hi]
			}
			u, v := &r.Units[lo], &r.Units[hi]
			u.Start, u.End = min(u.Start, v.Start), max(u.End, v.End)
		}
	}
	g.segs, g.segPos = g.segs[:0], arena.Resized(g.segPos, n)
	for i := range n {
		g.leader[i] = find(uint32(i))
		if g.leader[i] == uint32(i) {
			g.segPos[i] = uint32(len(g.segs))
			g.segs = append(g.segs, regalloc.Seg{Start: r.Units[i].Start, End: r.Units[i].End, Node: uint32(i)})
		}
	}
}

// dramOverflow names what lies in the window at the worst point.
func (ws *Workspace) dramOverflow(m *ir.Module, mt *Metrics, at ssa.Point) error {
	var b strings.Builder
	for k, i := range ws.live.largest(ws.ranges.Units, at, 5, func(i int) int64 { return ws.dram.size[i] }) {
		if k > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", m.LocName(ws.ranges.Units[i].First), ws.dram.size[i])
	}
	return target.Errorf(target.Limit, "DRAM overflow: intermediates end at byte %d of a window of %d; live at %s, largest first: %s; split the model or widen --hbm-gib",
		mt.HighWater, mt.Capacity, m.InstName(mt.PeakInst), b.String())
}
