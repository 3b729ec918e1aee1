package memalloc

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// Workspace is the storage of one worker's allocators. The zero value is ready; a second call of the same size on it allocates
// nothing; what spilling adds to the module is the module's. Not for concurrent use.
type Workspace struct {
	lin    ssa.Linear
	ranges ssa.Ranges
	solver regalloc.Solver
	result regalloc.Result
	best   regalloc.Result // of the attempts of one round at SB
	order  []uint32        // Simplify's, while another one is tried
	full   bool            // more is live at some point than the memory has: no order can place everything
	segs   []regalloc.Seg
	guard  regalloc.Guard

	psum banks
	sb   rects
	dram pages

	check    checker
	live     liveScan
	oom      oomScan
	spill    spiller
	pins     pins
	partners partners
	webs     webs
	scan     scan

	eval  ir.ExprEval // of indices
	slots arena.Column[ir.Set, uint32]
}

// Linear is the storage of the use lists, for passes between the allocators: each allocator builds them anew.
func (ws *Workspace) Linear() *ssa.Linear { return &ws.lin }

// linearise rebuilds the points and their scheduling units, and refuses undefined uses. unused is the number of values that nothing reads.
func (ws *Workspace) linearise(m *ir.Module, f ir.Func, opt *Options) (unused int, err error) {
	if opt.flat {
		ws.lin.Flatten(m, f)
	} else {
		ws.lin.Build(m, f)
	}
	ws.spill.findUnits(m, &ws.lin)
	faults := ws.lin.Check(m)
	return faults.Unused, faults.Err(m, f, opt.Strict)
}

// begin starts one call of a spilling allocator. The metrics are the workspace's.
func (ws *Workspace) begin(m *ir.Module, f ir.Func, what string, opt *Options) *Metrics {
	ws.spill.begin(m, f, opt)
	ws.pins.begin()
	ws.webs.begin()
	ws.spill.opt.RunGap = opt.runGap()
	ws.guard = regalloc.Guard{What: what, Limit: opt.Watchdog}
	ws.guard.Start()
	return &ws.spill.mt
}

// unplacedBytes is what found no place, bytes times partitions of its band.
func (ws *Workspace) unplacedBytes() int64 {
	n := int64(0)
	for _, i := range ws.result.Unplaced {
		n += ws.solver.Nodes[i].Bytes
	}
	for _, i := range ws.result.Stuck {
		n += ws.solver.Nodes[i].Bytes
	}
	return n
}

// settled ends a round: done when everything has a place, an error when spilling cannot help or may not.
func (ws *Workspace) settled(m *ir.Module, opt *Options, mt *Metrics) (done bool, err error) {
	if len(ws.result.Stuck) == 0 && len(ws.result.Unplaced) == 0 {
		return true, nil
	}
	if len(ws.result.Unplaced) == 0 || opt.NoSpill {
		return false, ws.overflow(m, mt, ws.firstFailure())
	}
	return false, ws.guard.Next(ws.unplacedBytes(), true)
}

// segments makes the interference problem of the current units: one segment each, in order of start. What nothing touches is in
// nobody's way.
func (ws *Workspace) segments() {
	units := ws.ranges.Units
	ws.segs = arena.Resized(ws.segs, len(units))
	for i := range units {
		ws.segs[i] = regalloc.Seg{Start: units[i].Start, End: units[i].End, Node: uint32(i)}
		if units[i].Flags&ssa.Dead != 0 {
			ws.segs[i].End = units[i].Start
		}
	}
}

// Interference numbers the units of a space in order of first definition, placed or not, and says which are live together. Both
// stand in the workspace until its next use; rotation borrows it, since allocators and rotations take turns.
func (ws *Workspace) Interference(m *ir.Module, f ir.Func, space target.Space, by ssa.Grouping) ([]ssa.Unit, *regalloc.Graph) {
	ws.lin.Build(m, f)
	ws.ranges.Build(m, &ws.lin, space, by, nil)
	ws.segments()
	ws.solver.Graph.Build(len(ws.ranges.Units), ws.segs)
	return ws.ranges.Units, &ws.solver.Graph
}

// dramCost is the ns of moving one unit's location between SBUF and DRAM.
func dramCost(g *target.Generation, l *ir.LocRow, esz int) int64 {
	if esz == 0 {
		esz = 1
	}
	return g.DMACost(int64(l.Parts), l.Bytes/int64(esz), esz)
}

// apOf is the access pattern of the operand in a row of Module.Args.
func apOf(m *ir.Module, arg uint32) ir.AP { return m.Args.Of(arena.Span{Off: arg, Len: 1})[0].AP() }
