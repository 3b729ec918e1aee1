package rotate

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// Workspace is the storage of one worker's rotations beside that of its allocators, which they borrow. The zero value is
// ready; a second call of the same size on it allocates nothing.
type Workspace struct {
	graph *regalloc.Graph // of the allocators' workspace, during a call
	fixed []bool          // by unit

	at    []place  // SB, by unit
	words []uint64 // occupancy of SB over one unit's life, a bit a granule

	dram recurring

	mask  []uint64 // PSUM, by unit: its banks
	block []uint8  // PSUM, by unit: banks of one block
	idle  [64]ssa.Point
}

// Stats is what one rotation did.
type Stats struct {
	Units int   // placements, obstacles included
	Moved int   // those of them that got another place
	High  int64 // DRAM: end of the highest placement
}

// begin finds the units of a space in order of first definition and which of them must stay.
func (ws *Workspace) begin(m *ir.Module, f ir.Func, alloc *memalloc.Workspace, space target.Space, by ssa.Grouping) []ssa.Unit {
	units, graph := alloc.Interference(m, f, space, by)
	ws.graph = graph
	ws.fixed = arena.Resized(ws.fixed, len(units))
	for i := range units {
		ws.fixed[i] = fixed(m, &units[i])
	}
	return units
}

// fixed reports a unit that must stay, or has no place.
func fixed(m *ir.Module, u *ssa.Unit) bool {
	if m.Sets.At(u.Set).Flags&ir.SetNoRotate != 0 {
		return true
	}
	for k := range u.Count {
		const keep = ir.LocUserAllocated | ir.LocPinned | ir.LocReserved | ir.LocRemoteWriter
		if m.Locs.At(u.Loc(k)).Flags&(ir.LocAllocated|keep) != ir.LocAllocated {
			return true
		}
	}
	return false
}
