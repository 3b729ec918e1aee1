package codegen

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"github.com/rosmar-compiler/rosmar/regalloc/scalar"
)

// colourRegisters gives scalar registers their numbers. A function without any counts 0. The verifier holds the result against the
// program before it.
func colourRegisters(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error {
		var before verify.Registers
		if w.opt.Verify && w.m.Regs.Len() > 1 {
			before.Remember(w.m, f)
		}
		mt, err := scalar.Colour(w.m, f, &w.scalar, scalar.Options{SBBytes: int64(w.opt.SBBytes), Watchdog: w.opt.Watchdog, Log: w.Log})
		if err != nil {
			return err
		}
		w.Count("registers", int64(mt.Registers))
		if mt.Registers == 0 {
			return nil
		}
		w.Count("lanes", int64(mt.HighWater))
		w.Count("coalesced", int64(mt.Coalesced))
		w.Count("rounds", int64(mt.Rounds))
		w.Count("score", mt.Scores[0])
		w.Count("spilled", int64(mt.Spilled))
		w.Count("spill_cycles", mt.SpillCycles)
		w.Count("used_percent", int64(mt.Utilisation))
		if w.opt.Verify {
			return before.Check(w.m, w.gen.Registers)
		}
		return nil
	})
}

// noSpilledRegisters refuses to synchronise a function whose registers were spilled before: its waits would be lost.
func noSpilledRegisters(m *ir.Module, f ir.Func) error {
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			r := m.Insts.At(i)
			if r.Flags&(ir.InstSpill|ir.InstReload) != 0 && r.Op == ir.OpEventSemaphore {
				return target.Errorf(target.User, "%s waits for a spilled register, and lower_sync would take the wait away; select coloring_allocator_reg behind lower_sync", m.InstName(i))
			}
		}
	}
	return nil
}
