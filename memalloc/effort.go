package memalloc

import (
	"context"
	"log/slog"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// DMALevel is how hard the SB allocator works to keep spill and reload transfers few. The zero value is DMADefault.
type DMALevel uint8

const (
	// DMADefault brings a value back only after the gaps in which its room was needed. Over flattened loops, and in a linear scan, it
	// shares a reload between accesses that are near each other.
	DMADefault DMALevel = iota
	// DMAOff gives each access of a value that is spilled a reload of its own.
	DMAOff
	// DMAAggressive shares reloads over longer stretches where DMADefault goes by nearness. Over flattened loops it also counts what
	// loads from weights and inputs cost to bring again as often as they are used, so that a value with few uses goes first.
	DMAAggressive
)

// aggressiveGap is the RunGap of DMAAggressive.
const aggressiveGap = 4 * DefaultRunGap

// runGap is RunGap where it is given, else what the level says.
func (o *Options) runGap() int {
	switch {
	case o.RunGap != 0:
		return o.RunGap
	case o.DMALevel == DMAOff:
		return -1
	case o.DMALevel == DMAAggressive:
		return aggressiveGap
	}
	return DefaultRunGap
}

// DefaultMaxReloads is how many reloads may be inserted before optimisations go off: code that reloads so much is beyond saving
// transfers one by one, and longer stretches only keep the rounds from ending.
const DefaultMaxReloads = 65536

// capReloads switches optimisations off once the reloads are too many.
func (ws *Workspace) capReloads(f ir.Func, m *ir.Module, mt *Metrics) {
	limit := ws.spill.opt.MaxReloads
	if limit == 0 {
		limit = DefaultMaxReloads
	}
	if mt.TooManyReloads || mt.Reloads < limit {
		return
	}
	mt.TooManyReloads = true
	ws.spill.opt.RunGap = -1
	if log := ws.spill.opt.Log; log != nil {
		log.Warn("too many spills are needed: optimisations of reloads are off from here on", "space", mt.Space.String(),
			"function", m.Names.String(m.Funcs.At(f).Name), "reloads", mt.Reloads, "limit", limit)
	}
}

// The lines of one call, in order: a banner, one for each attempt, and on success what it took.

func (o *Options) banner(m *ir.Module, f ir.Func, mt *Metrics) {
	if o.Log != nil {
		o.Log.Debug("allocating "+mt.Space.String(), "function", m.Names.String(m.Funcs.At(f).Name))
	}
}

func (ws *Workspace) logAttempt(opt *Options, mt *Metrics) {
	mt.Score = ws.result.Score
	if opt.Log != nil {
		opt.Log.Debug(mt.Space.String()+" attempt", "heuristic", mt.Iterations, "score", mt.Score,
			"instructions", ws.lin.Points(), "nodes", mt.Nodes, "unplaced", len(ws.result.Unplaced)+len(ws.result.Stuck), "demand_percent", mt.PeakDemand)
	}
}

// logSuccess sums up what was inserted and says so.
func (ws *Workspace) logSuccess(m *ir.Module, f ir.Func, opt *Options, mt *Metrics) {
	if mt.Iterations > 1 {
		mt.SpillCost = spillCost(m, f)
	}
	if opt.Log == nil || !opt.Log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	opt.Log.Debug(mt.Space.String()+" placed", "best_heuristic", mt.Iterations, "iterations", mt.Iterations,
		"spill_cycles", mt.SpillCost, "spilled", mt.Spilled, "bytes_per_partition", mt.SpilledPerPart,
		"pin_tried", mt.PinTried, "pinned", mt.Pinned, "unpinned", mt.Unpinned, "spill_time", mt.SpillTime)
}

// spillCost is the ns that the function's spill code takes by itself, which is cycles in the units of the cost model. That in the body
// of a loop counts once.
func spillCost(m *ir.Module, f ir.Func) (ns int64) {
	for b, block := range m.Blocks.All() {
		if block.Func != f {
			continue
		}
		for _, i := range m.OrderOf(b) {
			r := m.Insts.At(i)
			if r.Flags&(ir.InstSpill|ir.InstReload) == 0 || r.NOut == 0 {
				continue
			}
			a := m.APs.At(m.Outs(i)[0].AP())
			if !r.Op.IsDMA() {
				ns += m.Gen.EngineCost(target.CostElementwise, r.Engine, a.FreeElems(m.Locs.At(a.Loc).Space))
				continue
			}
			if !m.Locs.At(a.Loc).Space.OnChip() {
				a = m.APs.At(m.Ins(i)[0].AP())
			}
			ns += m.Gen.DMACost(int64(a.Parts), a.FreeElems(m.Locs.At(a.Loc).Space), a.Dtype.Size())
		}
	}
	return ns
}
