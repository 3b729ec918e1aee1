package sched

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Timeline is the resource that an instruction occupies: its engine, or the DMA rings for whatever moves through them.
func Timeline(m *ir.Module, i ir.Inst) target.Engine {
	r := m.Insts.At(i)
	if r.Op.IsDMA() {
		return target.EngineDMA
	}
	return r.Engine
}

// Cost is the ns from start to completion of an instruction on an idle machine.
func Cost(m *ir.Module, i ir.Inst) int64 {
	r := m.Insts.At(i)
	info := r.Op.Info()
	switch info.Cost {
	case target.CostDMA:
		return dmaCost(m, i)
	case target.CostMatmul:
		n, four := int64(1), false
		if ins := m.Ins(i); len(ins) > 0 && ins[0].Kind == ir.ArgAP {
			n = m.APs.At(ins[0].AP()).FreeElems(target.SpaceSB)
			four = ins[0].Dtype.Size() == 4 && ins[0].Dtype != target.Float32R
		}
		return m.Gen.MatmulCost(n, four)
	case target.CostNone:
		if r.Op == ir.OpDMATrigger {
			return 0
		}
	}
	n := int64(0)
	for _, a := range m.AllArgs(i) {
		if a.Kind != ir.ArgAP {
			continue
		}
		row := m.APs.At(a.AP())
		n = max(n, row.FreeElems(m.Locs.At(row.Loc).Space))
	}
	return m.Gen.EngineCost(info.Cost, r.Engine, n)
}

// dmaCost takes the partitions of the on-chip side; between two DRAM tensors all engines share the bytes.
func dmaCost(m *ir.Module, i ir.Inst) int64 {
	parts, n, size, bytes := int64(0), int64(0), 1, int64(0)
	for _, a := range m.AllArgs(i) {
		if a.Kind != ir.ArgAP {
			continue
		}
		row := m.APs.At(a.AP())
		size = max(size, row.Dtype.Size())
		bytes = max(bytes, row.Elems()*int64(row.Dtype.Size()))
		if m.Locs.At(row.Loc).Space.OnChip() {
			parts = max(parts, int64(row.Parts))
			n = max(n, row.FreeElems(target.SpaceSB))
		}
	}
	if parts == 0 {
		return m.Gen.DMACost(1, bytes, 1)
	}
	return m.Gen.DMACost(parts, n, size)
}

// overlap is how long before the end of an operation its timeline may start the next one: engines hide their drain, DMA
// rings their start.
func overlap(g *target.Generation, e target.Engine, dur int64) int64 {
	if e == target.EngineDMA {
		if dur >= int64(g.DMAStart) {
			return int64(g.DMAStart)
		}
		return 0
	}
	if dur > 100 {
		return 100
	}
	return 0
}
