package memalloc

import (
	"math/bits"
	"time"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// SB places every SB set of the function, spilling to DRAM where it does not fit, and sets FuncSBPlaced. Errors: User for
// undefined uses; Limit when the operands of one instruction do not fit together; regalloc.TimeoutError.
func SB(m *ir.Module, f ir.Func, ws *Workspace, opt Options) (Metrics, error) {
	size := opt.Raw(m.Gen) &^ (granule - 1)
	mt := ws.begin(m, f, "SBUF", &opt)
	*mt = Metrics{Space: target.SpaceSB, Capacity: size}
	defer ws.spill.end()
	opt.banner(m, f, mt)
	began := time.Now()
	for {
		var err error
		if mt.Unused, err = ws.linearise(m, f, &opt); err != nil {
			return *mt, err
		}
		ws.ranges.Build(m, &ws.lin, target.SpaceSB, ssa.BySlot, nil)
		if err := ws.sbProblem(m, size, &opt); err != nil {
			return *mt, err
		}
		if ws.webs.open && ws.splitWebs(m, mt) {
			continue
		}
		mt.Iterations++
		ws.sb.partners = nil
		if opt.Partners {
			ws.findPartners(m, &opt)
			ws.sb.partners = ws.partners.next
		}
		ws.pinAgain()
		ws.sbDemand(mt)
		if err := ws.colourSB(m, &opt, mt); err != nil {
			return *mt, err
		}
		s := &ws.solver
		mt.Nodes, mt.Edges = len(s.Nodes), s.Graph.Edges()
		ws.logAttempt(&opt, mt)
		if done, err := ws.settled(m, &opt, mt); err != nil {
			return *mt, err
		} else if done {
			break
		}
		ws.spillSB(m)
		ws.capReloads(f, m, mt)
		mt.SpillTime = time.Since(began)
	}
	if err := ws.check.rects(m, ws.ranges.Units, &ws.sb, ws.strip(m, &opt)); err != nil {
		return *mt, err
	}
	ws.commitSB(m, mt)
	ws.logSuccess(m, f, &opt, mt)
	m.Funcs.At(f).Flags |= ir.FuncSBPlaced
	return *mt, nil
}

// strip is the runtime's bytes at the bottom of SB that no location of the function stands for.
func (ws *Workspace) strip(m *ir.Module, opt *Options) int64 {
	for i := range ws.ranges.Units {
		if m.Locs.At(ws.ranges.Units[i].First).Flags&ir.LocReserved != 0 {
			return 0
		}
	}
	return opt.Strip(m.Gen)
}

// sbProblem describes the units to the solver. Where no location stands for the strip, it is a floor under every search.
func (ws *Workspace) sbProblem(m *ir.Module, size int64, opt *Options) error {
	strip, err := ws.sbFloor(m, size, opt)
	if err != nil {
		return err
	}
	units := ws.ranges.Units
	ws.segments()
	n := len(units)
	ws.sb.reset(n, size, strip)
	s, g := &ws.solver, &ws.sb
	s.Graph.Build(n, ws.segs)
	s.Nodes = arena.Resized(s.Nodes, n)
	s.Weight, s.Classes = sbWeight[:], sbClasses
	rules := opt.Align.aligner(m.Gen)
	for i := range units {
		u := &units[i]
		l := m.Locs.At(u.First)
		use := ws.use(m, u)
		if use.anew && ws.webs.open && u.Count == 1 && u.Flags&(ssa.Placed|ssa.Always|ssa.Opaque) == 0 {
			ws.webs.rewritten = append(ws.webs.rewritten, uint32(i))
		}
		p, err := sbPlace(m, u, &use, size, &rules)
		if err != nil {
			return err
		}
		g.at[i] = p
		// Room and denials count aligned starts. The strip takes the lowest.
		grain, length, fixed := int64(1)<<p.least, sbLength(l), u.Flags&ssa.Placed != 0
		room := (int64(g.n)-int64(length))>>p.least + 1 - (strip/granule+grain-1)>>p.least
		s.Nodes[i] = regalloc.Node{
			Cost: ws.sbCost(m, u, l, use, opt), Room: bandCount[p.class] * room, Bytes: l.Bytes * int64(target.BandHeight(int(l.Parts))),
			Own: length + int32(grain) - 2, Len: length, Class: p.class, Shift: p.least, Fixed: fixed,
		}
	}
	return nil
}

// sbFloor is the strip that is a floor under every search, refused when it leaves no room.
func (ws *Workspace) sbFloor(m *ir.Module, size int64, opt *Options) (int64, error) {
	strip := ws.strip(m, opt)
	if strip >= size {
		return 0, target.Errorf(target.Limit, "SBUF of %d bytes a partition has no room beyond the %d that the runtime reserves; give it more bytes", size, strip)
	}
	return strip, nil
}

// sbPlace describes a unit: its length and alignment, the bands that it may have, and where it is if it is somewhere.
func sbPlace(m *ir.Module, u *ssa.Unit, use *sbUse, size int64, rules *aligner) (p place, err error) {
	l := m.Locs.At(u.First)
	if l.Parts == 0 || l.Parts > uint32(m.Gen.SBPartitions) {
		return p, target.Errorf(target.Limit, "%s has %d partitions and SBUF %d; lay it out in tiles side by side", m.LocName(u.First), l.Parts, m.Gen.SBPartitions)
	}
	if u.Count > 1 {
		if err := divides(m, u.Set); err != nil {
			return p, err
		}
	}
	p = place{hi: sbLength(l), class: heightClass(l, use.first)}
	p.shift, p.least = rules.shifts(l, use)
	if u.Flags&ssa.Placed == 0 {
		return p, nil
	}
	if l.Addr < 0 || l.Bytes < 0 || l.Addr > size-l.Bytes || int(l.Base)+int(l.Parts) > m.Gen.SBPartitions {
		return p, target.Errorf(target.Limit, "%s is placed at partitions %d to %d, bytes %d to %d of SBUF, which has %d × %d; move it, or give SBUF more bytes",
			m.LocName(u.First), l.Base, int(l.Base)+int(l.Parts)-1, l.Addr, l.Addr+l.Bytes-1, m.Gen.SBPartitions, size)
	}
	p.lo = int32(l.Addr / granule)
	p.hi = int32((l.Addr + l.Bytes + granule - 1) / granule)
	p.quads = quadsOf(l.Base, l.Parts)
	return p, nil
}

// sbLength is the granules of a location. Longer than any memory is all the same; the cap keeps sums of two in 32 bits.
func sbLength(l *ir.LocRow) int32 {
	return int32((min(max(1, l.Bytes), 1<<30) + granule - 1) / granule)
}

// sbUse is what the accesses of a unit say about it.
type sbUse struct {
	first  bool // starts at partition 0: what a matmul reads, and an activation with its scalars
	tied   bool // one scheduling unit writes bytes and then reads them with others
	moved  bool // a DMA fills or empties it
	anew   bool // a write that does not read it stands after a read, and at a later point
	points int  // distinct points with an access
	reads  int
	writes int
	pitch  uint64 // of the first accesses, see pitchOf; small locations and machines before apLevel have none
}

func (ws *Workspace) use(m *ir.Module, u *ssa.Unit) (r sbUse) {
	pitch := m.Gen.Level >= apLevel && m.Locs.At(u.First).Bytes >= defaultAXIThreshold
	last, read := ^ssa.Point(0), ssa.Point(0) // read: of the last one
	for k := range u.Count {
		acc := ws.lin.Of(u.Loc(k))
		for i := range acc {
			a := &acc[i]
			in := m.Insts.At(a.Inst)
			if a.At != last {
				r.points++
				last = a.At
			}
			r.moved = r.moved || in.Op.IsDMA()
			if pitch && i < pitchAccesses && a.Flags&ssa.Symbolic == 0 {
				r.pitch |= pitchOf(m.APs.At(apOf(m, a.Arg)))
			}
			if a.Flags&ssa.Read != 0 {
				r.tied = r.tied || i > 0 && in.Flags&ir.InstUnit != 0 && ws.tied(m, &acc[i-1], a)
				r.reads++
				read = a.At
				r.first = r.first || in.Op.Is(ir.FlagMatmul) || scalarsFollow(m, a.Inst)
			}
			if a.Flags&ssa.Write != 0 {
				r.writes++
				r.anew = r.anew || r.reads > 0 && read < a.At && a.Flags&ssa.Read == 0
			}
		}
	}
	return r
}

// scalarsFollow reports an activation whose scalars are read through pointers, on a generation where those must lie in the
// quadrant of its input.
func scalarsFollow(m *ir.Module, i ir.Inst) bool {
	if m.Gen.Level < 40 || m.Insts.At(i).Op != ir.OpActivation {
		return false
	}
	for k, a := range m.Ins(i) {
		if k > 0 && a.Kind == ir.ArgAP {
			return true
		}
	}
	return false
}

// tied reports a read of bytes that an access before it in the same scheduling unit wrote in part: nothing can come between the
// two, so the value can be neither saved nor loaded there.
func (ws *Workspace) tied(m *ir.Module, before, a *ssa.Access) bool {
	if before.Flags&ssa.Write == 0 || before.At == a.At || ws.spill.heads[before.At] != ws.spill.heads[a.At] ||
		(before.Flags|a.Flags)&ssa.Symbolic != 0 {
		return false
	}
	w, r := m.FootprintOf(apOf(m, before.Arg)), m.FootprintOf(apOf(m, a.Arg))
	return w != r && !w.Contains(&r)
}

// heightClass is the class of a unit. The rows of the array are the partitions of both matmul operands, so what a matmul reads
// starts at partition 0; so do operands that must share a quadrant.
func heightClass(l *ir.LocRow, first bool) uint8 {
	switch target.BandHeight(int(l.Parts)) {
	case 32:
		if first {
			return 1
		}
		return class32
	case 64:
		if first {
			return 6
		}
		return class64
	}
	return class128
}

// sbCost is the ns that sending a unit home would cost: a save a definition and a load a use.
func (ws *Workspace) sbCost(m *ir.Module, u *ssa.Unit, l *ir.LocRow, use sbUse, opt *Options) int64 {
	if len(ws.lin.Loops) > 0 && (u.Flags&ssa.Opaque != 0 || m.Sets.At(u.Set).Count > 1) {
		return ws.blocksCost(m, u, l, opt)
	}
	if sbStays(m, u, use, opt.NoSpillHint) {
		return regalloc.Infinite
	}
	n := int64(use.reads)
	if _, ok := ws.remat(m, u); !ok {
		n += int64(use.writes)
	} else if opt.DMALevel == DMAAggressive {
		n += int64(use.reads)
	}
	n *= dramCost(m.Gen, l, m.Sets.At(u.Set).Dtype.Size())
	if use.points == int(u.End-u.Start) && !ws.partial(m, u, l) {
		n *= lastResort
	}
	return n
}

// sbStays reports a unit that cannot go home; with hint, also one that its producer marked.
func sbStays(m *ir.Module, u *ssa.Unit, use sbUse, hint bool) bool {
	set := m.Sets.At(u.Set)
	return u.Flags&(ssa.Placed|ssa.Always|ssa.Opaque|ssa.Dead) != 0 || set.Count > 1 || set.Flags&ir.SetReload != 0 || use.tied ||
		u.End-u.Start < 2 || hint && set.Flags&ir.SetNoSpill != 0
}

// lastResort multiplies the cost of a value that an instruction touches at every point of its life. Spilling it lowers no peak,
// it only lets its parts lie in different places, which fits it in between others at worst.
const lastResort = 1 << 20

// partial reports whether every access touches at most half of the location, so that cutting it up helps.
func (ws *Workspace) partial(m *ir.Module, u *ssa.Unit, l *ir.LocRow) bool {
	for _, a := range ws.lin.Of(u.First) {
		fp := m.FootprintOf(apOf(m, a.Arg))
		if 2*(fp.Hi-fp.Lo) > l.Bytes {
			return false
		}
	}
	return true
}

// sbDemand is the pressure before placement: bytes × band live at the worst point.
func (ws *Workspace) sbDemand(mt *Metrics) {
	peak, at := ws.live.peak(ws.segs, ws.lin.Points(), func(i uint32) int64 {
		p := &ws.sb.at[i]
		return int64(p.hi-p.lo) * quadsOfClass(p.class)
	})
	ws.full = peak+4*int64(ws.sb.floor) > 4*int64(ws.sb.n)
	mt.PeakDemand = 100 * float64(peak+4*int64(ws.sb.floor)) / float64(4*ws.sb.n)
	if int(at) < ws.lin.Points() {
		mt.PeakInst = ws.lin.Insts[at]
	}
}

func (ws *Workspace) commitSB(m *ir.Module, mt *Metrics) {
	high := int32(ws.sb.floor)
	for i := range ws.ranges.Units {
		u, p := &ws.ranges.Units[i], &ws.sb.at[i]
		high = max(high, p.hi)
		for q := range 4 {
			if p.quads>>q&1 != 0 {
				mt.Quadrants[q] = max(mt.Quadrants[q], int64(p.hi)*granule)
			}
		}
		if u.Flags&ssa.Placed != 0 {
			continue
		}
		for k := range u.Count {
			l := m.Locs.At(u.Loc(k))
			l.Addr = int64(p.lo) * granule
			l.Base = uint8(bits.TrailingZeros8(p.quads)) * target.QuadrantPartitions
			l.Flags |= ir.LocAllocated
		}
	}
	mt.HighWater = int64(high) * granule
	mt.Utilisation = mt.PeakDemand
}
