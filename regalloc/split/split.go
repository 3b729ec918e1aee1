package split

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// Allocator is the storage of one allocation after the other. The zero value is ready; a second function of the same size allocates nothing.
type Allocator struct {
	f    *flow.Func
	regs flow.File

	loops    flow.Loops
	live     flow.Live
	doms     flow.Doms
	ranges   flow.Ranges
	families flow.Families
	parallel flow.Parallel

	spiller spiller
	webs    webs
	colours colours
	placer  placer
	slots   slots
}

// Run allocates f and writes the answer into ans, whose storage it reuses. It refuses a register file that no set of registers can stand
// for, and a function with an instruction that wants more registers at once than there are.
func (a *Allocator) Run(f *flow.Func, regs flow.File, ans *flow.Answer) error {
	if err := regs.Check(); err != nil {
		return err
	}
	a.f, a.regs = f, regs
	defer func() { a.f = nil }()
	a.loops.Build(f)
	a.live.Build(f)
	a.doms.Build(f, &a.loops)
	a.ranges.Build(f, &a.loops, &a.live, &a.regs, loopExit, distanceWalks)
	a.families.Build(f, &a.loops, &a.doms, &a.live, &a.ranges)
	if err := a.spill(); err != nil {
		return err
	}
	a.join()
	a.colour()
	ans.Slots = a.assignSlots()
	ans.Place = arena.Resized(ans.Place, len(f.Ops))
	for row := range ans.Place {
		ans.Place[row] = flow.NoPlace
	}
	a.place(ans)
	a.emit(ans)
	return nil
}
