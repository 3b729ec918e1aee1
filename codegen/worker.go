package codegen

import (
	"io"
	"log/slog"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/codegen/lower"
	"github.com/rosmar-compiler/rosmar/dma"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/tile"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"github.com/rosmar-compiler/rosmar/memalloc"
	"github.com/rosmar-compiler/rosmar/memalloc/rotate"
	"github.com/rosmar-compiler/rosmar/regalloc/scalar"
	"github.com/rosmar-compiler/rosmar/ssa/deps"
	"github.com/rosmar-compiler/rosmar/ssa/opt"
	"github.com/rosmar-compiler/rosmar/ssa/sched"
)

// Worker owns the module and the workspaces of every pass. One worker serves one goroutine for its whole life: a compile
// resets, and never frees. The zero value is ready.
type Worker struct {
	// Progress, when set, hears of every pass before it runs.
	Progress func(Event)
	// Talk, when set, receives what passes print: dumps without a folder.
	Talk io.Writer
	// Log, when set, hears of the allocators' attempts at debug level, and of what is unusual as warnings.
	Log *slog.Logger

	// Timing is the rows of the last compile.
	Timing []PassTiming

	own   ir.Module // of models; a program that came as a module brings its own
	m     *ir.Module
	gen   *target.Generation
	opt   *Options
	model *graph.Graph // the canonical graph, nil for a module
	out   io.WriteSeeker

	counters []Counter
	position int // of the running pass in its list

	transfersBefore int64 // transfers of the module as it came
	fixed           verify.Fixed
	tile            tile.Stats
	schedule        sched.Result

	order   arena.Column[ir.Inst, uint32] // positions, for checks
	tiles   tile.Workspace
	edits   ir.Edits
	dead    opt.Dead
	dma     dma.Workspace
	alloc   memalloc.Workspace
	rotate  rotate.Workspace
	deps    deps.Workspace
	sched   sched.Workspace
	sync    lower.SyncSpace
	tail    lower.Tail
	scalar  scalar.Workspace
	sim     sim.Sim
	runner  Runner
	reports memReports
	want    [][]byte // outputs of the simulation before the first pass
}

func (w *Worker) instCount() int {
	if w.m == nil {
		return 0
	}
	n := 0
	for _, r := range w.m.Blocks.All() {
		n += int(r.Order.Len)
	}
	return n
}

func (w *Worker) funcName() string {
	if w.m == nil || w.m.Entry == 0 {
		return ""
	}
	return w.m.Names.String(w.m.Funcs.At(w.m.Entry).Name)
}

// Report adds the bytes of the worker's tables to r.
func (w *Worker) Report(r *arena.Report) {
	if w.m != nil {
		r.AddFields("ir", w.m)
	}
	for _, p := range []struct {
		name string
		of   any
	}{
		{"tile", &w.tiles}, {"edits", &w.edits}, {"opt", &w.dead}, {"dma", &w.dma}, {"memalloc", &w.alloc}, {"rotate", &w.rotate},
		{"deps", &w.deps}, {"sched", &w.sched}, {"sync", &w.sync}, {"tail", &w.tail}, {"scalar", &w.scalar}, {"sim", &w.sim},
	} {
		r.AddFields(p.name, p.of)
	}
}

// memOptions are the allocators' limits.
func (w *Worker) memOptions() memalloc.Options {
	o := memalloc.Options{
		SBBytes: int64(w.opt.SBBytes), PsumBanks: w.opt.PSUMBanks, HBMBytes: int64(w.opt.HBMGiB) << 30, Watchdog: w.opt.Watchdog,
		AllreduceMiB: w.opt.AllreduceMiB, Log: w.Log,
	}
	w.opt.Alloc.apply(&o)
	return o
}

// eachFunc runs a pass on every function.
func (w *Worker) eachFunc(run func(ir.Func) error) error {
	for f := ir.Func(1); int(f) < w.m.Funcs.Len(); f++ {
		if err := run(f); err != nil {
			return err
		}
	}
	return nil
}
