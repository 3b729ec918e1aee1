package memalloc

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// banks is the geometry of PSUM: runs of whole banks, all partitions. A unit owns its banks alone while it is live, so that no
// two accumulation groups ever meet in one.
type banks struct {
	n     int
	taken uint64   // banks that nobody may have
	base  []int8   // by unit, -1 unplaced
	span  []uint8  // by unit: banks
	block []uint8  // by unit: banks of one block
	mask  []uint64 // by unit, of its place
	wrong uint32   // see bad
}

// BankAlign is the alignment of a tile of span banks, and a second one to try when the first gives no place.
func BankAlign(span int) (first, second int) {
	if span == 3 {
		return 4, 3
	}
	a := 1
	for a < span {
		a *= 2
	}
	return a, a
}

// zeroWindow is the smallest window of banks, a power of two of them from a multiple of their number on, that covers banks
// lo to lo+span-1: what the first matmul of a group clears.
func zeroWindow(lo, span int) (banks int) {
	banks = 1
	for lo/banks != (lo+span-1)/banks {
		banks *= 2
	}
	return banks
}

// maxZeroWindow is the widest window that an instruction can name.
const maxZeroWindow = 8

// Place takes the lowest aligned run of free banks.
func (b *banks) Place(n uint32, neighbours []uint32) bool {
	busy := b.taken
	for _, j := range neighbours {
		if b.base[j] >= 0 {
			busy |= b.mask[j]
		}
	}
	if beyond := busy &^ b.taken &^ bankMask(0, b.n); beyond|uint64(b.base[n]+1) != 0 {
		b.blame(n, neighbours, beyond)
		return false
	}
	a1, a2 := BankAlign(int(b.block[n]))
	for _, a := range [2]int{a1, a2} {
		for at := 0; at+int(b.span[n]) <= b.n; at += a {
			if m := bankMask(at, int(b.span[n])); busy&m == 0 {
				b.base[n], b.mask[n] = int8(at), m
				return true
			}
		}
	}
	return false
}

// blame records what should never have come to Place: a neighbour beyond the banks, or a node that has a place.
func (b *banks) blame(n uint32, neighbours []uint32, beyond uint64) {
	for _, j := range neighbours {
		if b.base[j] >= 0 && b.mask[j]&beyond != 0 {
			n = j
		}
	}
	if b.wrong == 0 {
		b.wrong = n + 1
	}
}

// starts is the number of banks at which a run may begin.
func (b *banks) starts(span, block int) (n int) {
	a1, a2 := BankAlign(block)
	for at := 0; at+span <= b.n; at++ {
		if (at%a1 == 0 || at%a2 == 0) && b.taken&bankMask(at, span) == 0 {
			n++
		}
	}
	return n
}

// BlockBanks is how many of nb banks a location takes: whole ones, on V4 a power of two of them.
func BlockBanks(g *target.Generation, l *ir.LocRow, nb int) int {
	block := int(max(1, (l.Bytes+int64(g.BankBytes)-1)/int64(g.BankBytes)))
	if a, _ := BankAlign(block); g.Level >= 40 && block < nb {
		block = min(a, nb)
	}
	return block
}

func bankMask(at, span int) uint64 { return (1<<span - 1) << at }

// PSUM places every PSUM set of the function in banks, spilling to SBUF where they do not suffice, and sets FuncPsumPlaced.
// Errors: User for undefined uses; Limit when a tile needs more banks than there are, or accumulation groups that are open together
// and that their flags do not let be cut; regalloc.TimeoutError.
func PSUM(m *ir.Module, f ir.Func, ws *Workspace, opt Options) (Metrics, error) {
	nb := opt.Banks(m.Gen)
	mt := ws.begin(m, f, "PSUM", &opt)
	*mt = Metrics{Space: target.SpacePSUM, Capacity: int64(nb)}
	defer ws.spill.end()
	opt.banner(m, f, mt)
	began := time.Now()
	for {
		var err error
		if mt.Unused, err = ws.linearise(m, f, &opt); err != nil {
			return *mt, err
		}
		ws.ranges.Build(m, &ws.lin, target.SpacePSUM, ssa.BySet, nil)
		if err := ws.psumProblem(m, nb, &opt); err != nil {
			return *mt, err
		}
		mt.Iterations++
		ws.psumDemand(mt, nb)
		s := &ws.solver
		s.Simplify()
		if err := ws.selectPSUM(m); err != nil {
			return *mt, err
		}
		mt.Nodes, mt.Edges = len(s.Nodes), s.Graph.Edges()
		ws.logAttempt(&opt, mt)
		if done, err := ws.settled(m, &opt, mt); err != nil {
			return *mt, err
		} else if done {
			break
		}
		ws.spillPSUM(m)
		mt.SpillTime = time.Since(began)
	}
	if err := ws.check.banks(m, ws.ranges.Units, &ws.psum); err != nil {
		return *mt, err
	}
	ws.commitPSUM(m, mt, nb)
	ws.logSuccess(m, f, &opt, mt)
	m.Funcs.At(f).Flags |= ir.FuncPsumPlaced
	return *mt, nil
}

// psumProblem describes the units to the solver.
func (ws *Workspace) psumProblem(m *ir.Module, nb int, opt *Options) error {
	units := ws.ranges.Units
	ws.segments()
	s, g := &ws.solver, &ws.psum
	s.Graph.Build(len(units), ws.segs)
	s.Nodes = arena.Resized(s.Nodes, len(units))
	s.Weight, s.Classes = psumWeight[:], 1
	free := g.reset(len(units), nb, opt.PsumReserved)
	for i := range units {
		u := &units[i]
		if err := ws.psumPlace(m, uint32(i), nb, free); err != nil {
			return err
		}
		span, block := int(g.span[i]), int(g.block[i])
		// Room and denials count aligned starts. For a tile of one bank this is banks − own − Σ neighbours ≥ 0.
		shift := uint8(0)
		if a, b := BankAlign(block); a == b {
			shift = uint8(bits.TrailingZeros(uint(a)))
		}
		s.Nodes[i] = regalloc.Node{
			Cost: ws.psumCost(m, u), Room: int64(g.starts(span, block)), Own: int32(span + 1<<shift - 2), Shift: shift, Bytes: int64(span) * int64(m.Gen.BankBytes),
			Len: int32(span), Fixed: u.Flags&ssa.Placed != 0,
		}
	}
	return nil
}

// reset sizes the tables and counts the banks that may be had.
func (g *banks) reset(units, nb int, reserved uint64) (free int) {
	g.n, g.taken, g.wrong = nb, reserved, 0
	g.base = arena.Resized(g.base, units)
	g.span = arena.Resized(g.span, units)
	g.block = arena.Resized(g.block, units)
	g.mask = arena.Resized(g.mask, units)
	return nb - bits.OnesCount64(reserved&bankMask(0, nb))
}

// psumPlace describes unit i: the banks that it takes, and where it is if it is somewhere.
func (ws *Workspace) psumPlace(m *ir.Module, i uint32, nb, free int) error {
	u, g := &ws.ranges.Units[i], &ws.psum
	l := m.Locs.At(u.First)
	block := BlockBanks(m.Gen, l, nb)
	blocks := 1
	if u.Count > 1 {
		var err error
		if blocks, err = ws.liveBlocks(m, u); err != nil {
			return err
		}
	}
	span := block * blocks
	if u.Flags&ssa.Placed == 0 && span > free {
		o := overflow{
			space: target.SpacePSUM, loc: u.First, need: int64(span), limit: int64(free), what: "banks",
			why: fmt.Sprintf("%d blocks of %d bytes a partition", blocks, l.Bytes), try: "give the allocator more banks (--psum-banks) or tile the operator smaller",
		}
		return o.err(m, int64(span), ws.instAt(u.Start), fmt.Sprintf("%s %d", m.LocName(u.First), span))
	}
	if u.Flags&ssa.Placed != 0 && (l.Bank < 0 || int(l.Bank)+span > nb) {
		return target.Errorf(target.Limit, "%s is placed in banks %d to %d of PSUM, which has %d; move it, or give PSUM more banks",
			m.LocName(u.First), l.Bank, int(l.Bank)+span-1, nb)
	}
	if lo := int(max(0, l.Bank)); u.Flags&ssa.Placed != 0 && zeroWindow(lo, block) > maxZeroWindow || zeroWindow(0, block) > maxZeroWindow {
		return target.Errorf(target.Limit, "%s takes %d PSUM banks from bank %d on, and a matmul can clear a window of at most %d; tile it smaller",
			m.LocName(u.First), block, lo, maxZeroWindow)
	}
	g.base[i], g.span[i], g.block[i], g.mask[i] = -1, uint8(min(span, 64)), uint8(min(block, 64)), 0
	if u.Flags&ssa.Placed != 0 {
		g.base[i], g.mask[i] = l.Bank, bankMask(int(l.Bank), span)
	}
	return nil
}

var psumWeight = [1]int32{1}

// again has nothing to give up: banks have no grain but themselves.
func (b *banks) again(nodes []regalloc.Node, _ bool) bool {
	for i := range b.base {
		if !nodes[i].Fixed {
			b.base[i] = -1
		}
	}
	return false
}

func (b *banks) bad() uint32 { return b.wrong }

// fault is what is bad about node i: a defect of ours, not of the program.
func (b *banks) fault(m *ir.Module, l ir.Loc, i uint32) error {
	if b.mask[i]&^bankMask(0, b.n) != 0 {
		return target.Errorf(target.Bug, "%s is recorded in bank %d of %d", m.LocName(l), b.base[i], b.n)
	}
	return target.Errorf(target.Bug, "%s is already allocated when its turn comes, from bank %d on", m.LocName(l), b.base[i])
}

// psumDemand is the pressure before placement: banks live at the worst point.
func (ws *Workspace) psumDemand(mt *Metrics, nb int) {
	peak, at := ws.live.peak(ws.segs, ws.lin.Points(), func(i uint32) int64 { return int64(ws.psum.span[i]) })
	ws.full = peak > int64(nb)
	mt.PeakDemand = 100 * float64(peak) / float64(max(1, nb))
	if int(at) < ws.lin.Points() {
		mt.PeakInst = ws.lin.Insts[at]
	}
}

func (ws *Workspace) commitPSUM(m *ir.Module, mt *Metrics, nb int) {
	g := &ws.psum
	for i := range ws.ranges.Units {
		u := &ws.ranges.Units[i]
		mt.HighWater = max(mt.HighWater, int64(g.base[i])+int64(g.span[i]))
		if u.Flags&ssa.Placed != 0 {
			continue
		}
		slots := uint32(g.span[i] / g.block[i])
		for k := range u.Count {
			l := m.Locs.At(u.Loc(k))
			l.Bank = g.base[i] + int8(uint8(k%slots)*g.block[i])
			l.Base, l.Addr = 0, 0
			l.Flags |= ir.LocAllocated
		}
	}
	mt.Utilisation = 100 * float64(mt.HighWater) / float64(max(1, nb))
}
