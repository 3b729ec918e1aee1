package split

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
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
	placer  placer
	slots   slots
}

// Run allocates f and writes the answer into ans, whose storage it reuses. It refuses a register file that no set of registers can stand
// for, and a function with an instruction that wants more registers at once than there are.
func (a *Allocator) Run(f *flow.Func, regs flow.File, ans *flow.Answer) error {
	a.f, a.regs = f, regs
	defer func() { a.f = nil }()
	if err := a.possible(); err != nil {
		return err
	}
	a.loops.Build(f)
	a.live.Build(f)
	a.doms.Build(f, &a.loops)
	a.ranges.Build(f, &a.loops, &a.live, &a.regs, loopExit, distanceWalks)
	a.families.Build(f, &a.loops, &a.doms, &a.live, &a.ranges)
	a.spill()
	ans.Slots = a.assignSlots()
	ans.Place = arena.Resized(ans.Place, len(f.Ops))
	for row := range ans.Place {
		ans.Place[row] = flow.NoPlace
	}
	a.place(ans)
	a.emit(ans)
	return nil
}

// possible checks what no choice can mend.
func (a *Allocator) possible() error {
	f := a.f
	for c := range flow.Class(flow.NumClasses) {
		if n, saved := a.regs.N[c], a.regs.Saved[c]; n < 0 || n > flow.MaxRegs || saved < 0 || saved > n {
			return target.Errorf(target.User, "class %d: %d registers, %d of which survive calls: 0 to %d, and no more survivors than registers", c, n, saved, flow.MaxRegs)
		}
	}
	a.spiller.need = arena.Resized(a.spiller.need, f.Values())
	clear(a.spiller.need)
	for i := range f.Insts {
		in := &f.Insts[i]
		if in.Kind != flow.Op && in.Kind != flow.Branch {
			continue
		}
		var uses, defs [flow.NumClasses]int
		for _, v := range f.Of(in.Uses) {
			if a.spiller.need[v] != uint32(i)+1 {
				a.spiller.need[v] = uint32(i) + 1
				uses[f.Class[v]]++
			}
		}
		for _, v := range f.Of(in.Defs()) {
			defs[f.Class[v]]++
		}
		for c, have := range a.regs.N {
			if want := max(uses[c], defs[c]); want > have {
				return target.Errorf(target.Limit, "function %s: instruction %d needs %d registers of class %d at once and there are %d: give the class %d", f.Name, i, want, c, have, want)
			}
		}
	}
	return nil
}
