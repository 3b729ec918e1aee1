package memalloc

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// Block shrinking: a set of blocks that are never all live keeps LiveN places, and block b takes place b mod LiveN. It matters where
// the blocks of a set stand side by side, in PSUM. In SB a block is a unit with a life of its own, and two that are not live together
// may share bytes without being told to.

// liveBlocks is the places that a set of blocks needs, and records a number that was found. Blocks that something reads as a whole, or by an
// index, are all live together, and so are those of a flattened loop, whose turns overlap. Errors: User where a given number does
// not divide the blocks.
func (ws *Workspace) liveBlocks(m *ir.Module, u *ssa.Unit) (int, error) {
	set := m.Sets.At(u.Set)
	if err := divides(m, u.Set); err != nil || set.LiveN > 0 {
		return int(min(set.LiveN, set.Count)), err
	}
	n := int(set.Count)
	if n == 1 || u.Flags&(ssa.Placed|ssa.Always|ssa.Opaque|ssa.Dead) != 0 || len(ws.lin.Loops) > 0 {
		return n, nil
	}
	for live := 1; live < n; live++ {
		if n%live == 0 && ws.takeTurns(set, live) {
			set.LiveN = uint32(live)
			mt := &ws.spill.mt
			mt.Shrunk++
			mt.ShrinkSaved += int64(n-live) * m.Locs.At(u.First).Bytes
			return live, nil
		}
	}
	return n, nil
}

// takeTurns reports that each block is dead before that which follows it in its place is written.
func (ws *Workspace) takeTurns(set *ir.SetRow, live int) bool {
	for b := range int(set.Count) - live {
		one, next := ws.lin.Of(set.First+ir.Loc(b)), ws.lin.Of(set.First+ir.Loc(b+live))
		if len(one) == 0 || len(next) == 0 {
			return false // a place in between that nobody takes would say nothing about those around it
		}
		if one[len(one)-1].At >= next[0].At {
			return false
		}
	}
	return true
}

// divides refuses a number of live blocks that does not divide the blocks.
func divides(m *ir.Module, s ir.Set) error {
	if set := m.Sets.At(s); set.LiveN > 0 && set.LiveN < set.Count && set.Count%set.LiveN != 0 {
		return target.Errorf(target.User, "%s has %d blocks, which %d live ones do not divide; give it a divisor", m.LocName(set.First), set.Count, set.LiveN)
	}
	return nil
}
