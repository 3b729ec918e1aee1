package codegen

import (
	"github.com/rosmar-compiler/rosmar/codegen/lower"
	"github.com/rosmar-compiler/rosmar/dma"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"github.com/rosmar-compiler/rosmar/memalloc/legalize"
	"github.com/rosmar-compiler/rosmar/ssa/deps"
	"github.com/rosmar-compiler/rosmar/ssa/opt"
	"github.com/rosmar-compiler/rosmar/ssa/sched"
)

// Pass is one row of the registry.
type Pass struct {
	Name string
	// Real says that the pass may change the module; a checker or reporter does not.
	Real bool
	// Run works on the worker's module.
	Run func(*Worker) error
	// Doc is one line for --list-passes.
	Doc string
}

// registry is every pass that exists, by name in order.
var registry = []Pass{
	{"address_rotation_dram", true, rotateDRAM, "spread DRAM tensors that go from block to block over a window"},
	{"address_rotation_psum", true, rotatePSUM, "spread PSUM tensors over the banks, the longest idle one first"},
	{"address_rotation_sb", true, rotateSB, "spread SBUF tensors over the bytes, the longest idle ones first"},
	{"alloc_queues", true, assignQueues, "give each DMA its trigger engine, its queue set and its ring of semaphores"},
	{"birverifier", false, verifyModule, "reject instructions that the target cannot execute"},
	{"build_fdeps", true, buildDeps, "flow, anti and output dependences from the bytes that instructions touch"},
	{"codegen", true, emit, "encode the engine streams and descriptors and write the package"},
	{"coloring_allocator_dram", true, colouring("coloring_allocator_dram"), "place Internal DRAM tensors by live interval, first fit on pages"},
	{"coloring_allocator_dram_debug", true, colouring("coloring_allocator_dram_debug"), "place debug tensors in DRAM above those of the program"},
	{"coloring_allocator_dram_post_lnk", true, colouring("coloring_allocator_dram_post_lnk"), "place what linking added to DRAM above what has an address"},
	{"coloring_allocator_dram_shared", true, colouring("coloring_allocator_dram_shared"), "place DRAM tensors that several cores see, above those of one"},
	{"coloring_allocator_dram_shared_post_lnk", true, colouring("coloring_allocator_dram_shared_post_lnk"), "the same for what linking added"},
	{"coloring_allocator_psum", true, colouring("coloring_allocator_psum"), "colour PSUM banks, spilling to a fixpoint"},
	{"coloring_allocator_reg", true, colourRegisters, "colour scalar registers of each engine, spilling to a fixpoint"},
	{"coloring_allocator_sb", true, colouring("coloring_allocator_sb"), "colour SBUF rectangles, spilling to a fixpoint"},
	{"coloring_allocator_with_loop", true, colourWithLoop, "colour PSUM, then SBUF, over flattened loops (in --pass lists: no level has it yet)"},
	{"dead_code_elim_o0", true, deadCode, "drop instructions whose results nothing reads"},
	{"hbm_usage", false, hbmUsage, "add up weights, IO, intermediates and descriptors against the HBM window"},
	{"legalize_mm_accumulation_groups", true, legalizeGroups, "final START, STOP and ACCUMULATE flags of matmul groups"},
	{"linear_scan_allocator", true, linearScan, "place PSUM, then SBUF, by one walk each, spilling what ends last"},
	{"lower_act", true, lowerAct, "load activation tables where the function changes set"},
	{"lower_select", true, lowerSelect, "turn selects into a copy and a predicated copy"},
	{"lower_sync", true, lowerSync, "waits and updates: one counter an engine, one ring slot a transfer"},
	{"memory_analysis_after_address_rotation_dram", false, snapshot("address_rotation_dram"), "report spills, live ranges and pressure at this point"},
	{"memory_analysis_after_address_rotation_psum", false, snapshot("address_rotation_psum"), "report spills, live ranges and pressure at this point"},
	{"memory_analysis_after_address_rotation_sb", false, snapshot("address_rotation_sb"), "report spills, live ranges and pressure at this point"},
	{"memory_analysis_after_coloring_allocator_dram_post_lnk", false, snapshot("coloring_allocator_dram_post_lnk"), "report spills, live ranges and pressure at this point"},
	{"memory_analysis_after_coloring_allocator_dram_shared", false, snapshot("coloring_allocator_dram_shared"), "report spills, live ranges and pressure at this point"},
	{"memory_analysis_after_coloring_allocator_sb", false, snapshot("coloring_allocator_sb"), "report spills, live ranges and pressure at this point"},
	{"memory_analysis_after_dma_optimization_sb", false, snapshot("dma_optimization_sb"), "report spills, live ranges and pressure at this point"},
	{"memory_analysis_after_post_sched", false, snapshot("post_sched"), "report spills, live ranges and pressure at this point"},
	{"memory_analysis_after_pre_sched", false, snapshot("pre_sched"), "report spills, live ranges and pressure at this point"},
	{"memory_analysis_after_unroll", false, snapshot("unroll"), "report spills, live ranges and pressure at this point"},
	{"oom_checker", false, checkFits, "refuse, before anything is placed, what no allocator could place"},
	{"post_sched", true, schedule, "list scheduling by critical path over the cost table"},
	{"psum_legalization", true, legalizePSUM, "widen PSUM tensors to four-byte elements"},
	{"report_stats", false, reportStats, "count instructions by engine"},
	{"runtime_memory_reservation", true, reserve, "reserve the runtime's descriptor strip in SBUF"},
}

var passByName = func() map[string]*Pass {
	m := make(map[string]*Pass, len(registry))
	for i := range registry {
		m[registry[i].Name] = &registry[i]
	}
	return m
}()

// Registry is every pass, sorted by name.
func Registry() []Pass { return registry }

func verifyModule(w *Worker) error { return verify.Module(w.m, target.Bug) }

func lowerSelect(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error { return opt.LowerSelect(w.m, f, &w.edits) })
}

func deadCode(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error {
		w.Count("dead", int64(opt.DeadCode(w.m, f, &w.dead)))
		return nil
	})
}

func legalizePSUM(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error {
		n, err := legalize.PSUM(w.m, f, w.alloc.Linear())
		w.Count("widened", int64(n))
		return err
	})
}

func buildDeps(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error {
		if err := deps.Build(w.m, f, &w.deps); err != nil {
			return err
		}
		w.m.Funcs.At(f).Flags |= ir.FuncHasDeps
		w.Count("edges", int64(w.m.Deps.Len()))
		return nil
	})
}

func schedule(w *Worker) error {
	return w.eachFunc(func(f ir.Func) (err error) {
		w.schedule, err = sched.Schedule(w.m, f, &w.sched)
		if err != nil {
			return err
		}
		w.Count("before_ns", w.schedule.Before.Makespan)
		w.Count("after_ns", w.schedule.After.Makespan)
		w.Count("busiest_ns", w.schedule.After.Busy[w.schedule.After.Busiest])
		return nil
	})
}

func legalizeGroups(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error { return sched.LegalizeGroups(w.m, f, &w.sched) })
}

func assignQueues(w *Worker) error {
	w.m.SemaphoresPerQueue = int32(w.opt.NumSemaphores)
	return w.eachFunc(func(f ir.Func) error {
		return dma.AssignQueues(w.m, f, dma.Options{SemaphoresPerQueue: w.opt.NumSemaphores}, &w.dma)
	})
}

func lowerAct(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error {
		w.Count("table_loads", int64(lower.ActTables(w.m, f, &w.edits)))
		return nil
	})
}

func lowerSync(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error {
		if err := noSpilledRegisters(w.m, f); err != nil {
			return err
		}
		st, err := lower.Sync(w.m, f, &w.sync)
		w.Count("waits", int64(st.Waits))
		w.Count("updates", int64(st.Updates))
		w.Count("dependences", int64(st.Deps))
		return err
	})
}

// reportStats counts instructions by engine and the bytes that cross the DRAM bus, beside those that must: the inputs, weights
// and outputs once each. The body of a loop counts once.
func reportStats(w *Worker) error {
	var n [target.NumEngines]int64
	var loaded, saved, floor int64
	for b := range w.m.Blocks.All() {
		for _, i := range w.m.OrderOf(b) {
			r := w.m.Insts.At(i)
			n[r.Engine]++
			if r.Op.Is(ir.FlagDMA) {
				in, out := w.dramBytes(i)
				loaded, saved = loaded+in, saved+out
			}
		}
	}
	for e, c := range n {
		if c > 0 {
			w.Count(target.Engine(e).String(), c)
		}
	}
	for _, r := range w.m.Locs.All() {
		if r.Space != target.SpaceDRAM {
			continue
		}
		if kind := w.m.Sets.At(r.Set).Kind; kind.IsInput() || kind.IsOutput() || kind == ir.KindConst {
			floor += r.Bytes * int64(r.Parts)
		}
	}
	w.Count("dram_loaded", loaded)
	w.Count("dram_saved", saved)
	w.Count("dram_floor", floor)
	return nil
}

// dramBytes are what a transfer reads from DRAM and writes to it. What a gather moves is the size of its output.
func (w *Worker) dramBytes(i ir.Inst) (in, out int64) {
	inDRAM := func(args []ir.Arg) (yes bool, bytes int64) {
		for _, a := range args {
			if a.Kind == ir.ArgAP {
				row := w.m.APs.At(a.AP())
				yes = yes || w.m.Locs.At(row.Loc).Space == target.SpaceDRAM
				bytes = max(bytes, row.Elems()*int64(row.Dtype.Size()))
			}
		}
		return yes, bytes
	}
	to, bytes := inDRAM(w.m.Outs(i))
	if from, _ := inDRAM(w.m.Ins(i)); from {
		in = bytes
	}
	if to {
		out = bytes
	}
	return in, out
}
