package rotate

import (
	"math/bits"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// sweeps over PSUM: a tile may want a bank that a later one still has from the colouring, so one is not enough.
const sweeps = 3

// PSUM gives each PSUM tensor of a placed function, in order of definition, the run of banks that has been idle for longest.
// Banks that the options reserve or withhold stay free.
func PSUM(m *ir.Module, f ir.Func, ws *Workspace, alloc *memalloc.Workspace, opt memalloc.Options) Stats {
	nb := opt.Banks(m.Gen)
	units := ws.begin(m, f, alloc, target.SpacePSUM, ssa.BySet)
	st := Stats{Units: len(units)}
	ws.mask = arena.Resized(ws.mask, len(units))
	ws.block = arena.Resized(ws.block, len(units))
	for i := range units {
		ws.block[i] = uint8(memalloc.BlockBanks(m.Gen, m.Locs.At(units[i].First), nb))
		ws.mask[i] = banksOf(m, &units[i], nb)
	}
	for range sweeps {
		clear(ws.idle[:])
		moved := false
		for i := range units {
			moved = ws.turn(uint32(i), nb, opt.PsumReserved) || moved
			for b := range nb {
				if ws.mask[i]>>b&1 != 0 {
					ws.idle[b] = max(ws.idle[b], units[i].End)
				}
			}
		}
		if !moved {
			break
		}
	}
	for i := range units {
		u := &units[i]
		if ws.fixed[i] || ws.mask[i] == 0 {
			continue
		}
		by := bits.TrailingZeros64(ws.mask[i]) - bits.TrailingZeros64(banksOf(m, u, nb))
		if by == 0 {
			continue
		}
		st.Moved++
		for k := range u.Count {
			m.Locs.At(u.Loc(k)).Bank += int8(by)
		}
	}
	return st
}

// turn moves unit i to the free aligned run of banks that has been idle for longest.
func (ws *Workspace) turn(i uint32, nb int, reserved uint64) bool {
	own := ws.mask[i]
	if ws.fixed[i] || own == 0 {
		return false
	}
	busy := reserved
	for _, j := range ws.graph.Neighbours(i) {
		busy |= ws.mask[j]
	}
	if busy&own != 0 {
		return false // shared on purpose
	}
	from := bits.TrailingZeros64(own)
	own >>= from
	span := bits.Len64(own)
	best, since := from, ws.since(from, span)
	a1, a2 := memalloc.BankAlign(int(ws.block[i]))
	for s := 0; s+span <= nb; s++ {
		if s%a1 != 0 && s%a2 != 0 || busy&(own<<s) != 0 {
			continue
		}
		if t := ws.since(s, span); t < since {
			best, since = s, t
		}
	}
	ws.mask[i] = own << best
	return best != from
}

// since is when the last of a run of banks fell idle.
func (ws *Workspace) since(from, span int) ssa.Point {
	t := ssa.Point(0)
	for _, p := range ws.idle[from : from+span] {
		t = max(t, p)
	}
	return t
}

// banksOf is the banks of all blocks of a unit, 0 when they have none.
func banksOf(m *ir.Module, u *ssa.Unit, nb int) uint64 {
	mask := uint64(0)
	for k := range u.Count {
		l := m.Locs.At(u.Loc(k))
		if n := memalloc.BlockBanks(m.Gen, l, nb); l.Flags&ir.LocAllocated != 0 && l.Bank >= 0 && int(l.Bank)+n <= 64 {
			mask |= (1<<n - 1) << l.Bank
		}
	}
	return mask
}
