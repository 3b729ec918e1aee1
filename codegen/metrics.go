package codegen

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Metric is a figure of a compile under a name that stays, with how such figures of several functions or modules become one.
type Metric struct {
	Name        string      `json:"name"`
	Aggregation Aggregation `json:"aggregation"`
	Value       float64     `json:"value"`
	Count       int64       `json:"count,omitempty"` // of what an average is taken over
}

// Aggregation says how figures add up.
type Aggregation string

const (
	MetricSum     Aggregation = "sum"
	MetricAverage Aggregation = "average"
	MetricLast    Aggregation = "none" // the last one counts
)

// addMetrics gathers the figures of the compile, whatever flags ask for them to be printed.
func (w *Worker) addMetrics(res *Result) {
	r := &w.reports
	put := func(name string, a Aggregation, v int64) {
		res.Metrics = append(res.Metrics, Metric{Name: name, Aggregation: a, Value: float64(v)})
	}
	local, shared := &r.dram[ir.AddrLocal], &r.dram[ir.AddrShared]
	put("renumbered_locations_psum", MetricSum, int64(r.psum.Nodes))
	put("renumbered_locations_dram", MetricSum, int64(local.Nodes+shared.Nodes+r.dram[ir.AddrDebug].Nodes))
	put("renumbered_locations_sb", MetricSum, int64(r.sb.Nodes))
	put("splittable_sb_nodes", MetricSum, int64(r.sb.Splittable))
	put("split_sb_nodes", MetricSum, int64(r.sb.Split))
	put("shrunk_psum_nodes", MetricSum, int64(r.psum.Shrunk))
	put("shrunk_sb_nodes", MetricSum, int64(r.sb.Shrunk))
	put("shrink_savings", MetricSum, r.psum.ShrinkSaved+r.sb.ShrinkSaved)
	put("dram_spill_bytes", MetricSum, local.HomeBytes)
	put("dram_spill_bytes_aligned", MetricSum, local.HomeAligned)
	put("dram_local_high_water", MetricLast, local.HighWater)
	put("dram_local_total", MetricSum, local.Total)
	put("dram_shared_high_water", MetricLast, shared.HighWater)
	put("dram_shared_total", MetricSum, shared.Total)
	put("collective_buffer_bytes", MetricSum, local.CollectiveBytes+shared.CollectiveBytes)
	put("dma_accesses_before_allocation", MetricSum, w.transfersBefore)
	w.transferSizes(res)
	put("hbm_allocated", MetricSum, r.hbm.Allocated)
	put("hbm_runtime", MetricSum, r.hbm.Runtime)
	put("hbm_descriptors", MetricSum, r.hbm.Descriptors)
	put("hbm_code", MetricSum, r.hbm.Code)
	put("estimated_latency_ns", MetricLast, w.schedule.After.Makespan)
}

// transferKind is what a transfer is counted as.
type transferKind uint8

const (
	transferLoad transferKind = iota
	transferSave
	transferCopy
	numTransferKinds
)

func kindOf(op ir.Opcode) transferKind {
	switch op {
	case ir.OpLoad, ir.OpIndirectLoad, ir.OpGenericIndirectLoad:
		return transferLoad
	case ir.OpSave, ir.OpIndirectSave, ir.OpIndirectSaveAccumulate, ir.OpGenericIndirectSave:
		return transferSave
	}
	return transferCopy
}

// transferSizes adds what transfers read and write, by the address space of either side. On-chip memory is local to a core.
func (w *Worker) transferSizes(res *Result) {
	const sides = 2 // in: what a transfer reads; out: what it writes
	var bytes, count [2][sides][numTransferKinds]int64
	var engines [target.NumEngines]int64
	transfers := int64(0)
	m := w.m
	note := func(side int, k transferKind, args []ir.Arg) {
		for _, a := range args[:min(1, len(args))] {
			if a.Kind != ir.ArgAP {
				continue
			}
			row := m.APs.At(a.AP())
			space := 0
			if m.Sets.At(m.Locs.At(row.Loc).Set).Addr == ir.AddrShared {
				space = 1
			}
			bytes[space][side][k] += row.Elems() * int64(row.Dtype.Size())
			count[space][side][k]++
		}
	}
	for b := range m.Blocks.All() {
		for _, i := range m.OrderOf(b) {
			r := m.Insts.At(i)
			engines[r.Engine]++
			if r.Op.IsDMA() {
				transfers++
				k := kindOf(r.Op)
				note(0, k, m.Ins(i))
				note(1, k, m.Outs(i))
			}
		}
	}
	res.Metrics = append(res.Metrics, Metric{"dma_accesses_after_allocation", MetricSum, float64(transfers), 0})
	for s, space := range []string{"local", "shared"} {
		for d, side := range []string{"in", "out"} {
			for k, kind := range []string{"load", "save", "copy"} {
				name := "dma_size_" + space + "_" + side + "_" + kind
				sum, n := bytes[s][d][k], count[s][d][k]
				res.Metrics = append(res.Metrics, Metric{name + "_total", MetricSum, float64(sum), 0},
					Metric{name + "_average", MetricAverage, float64(sum) / float64(max(1, n)), n})
			}
		}
	}
	for e, n := range engines {
		if e := target.Engine(e); n > 0 {
			res.Metrics = append(res.Metrics, Metric{"instructions_" + e.String(), MetricSum, float64(n), 0})
		}
	}
}

// countTransfers is the number of transfers of the module.
func (w *Worker) countTransfers() (n int64) {
	for b := range w.m.Blocks.All() {
		for _, i := range w.m.OrderOf(b) {
			if w.m.Insts.At(i).Op.IsDMA() {
				n++
			}
		}
	}
	return n
}
