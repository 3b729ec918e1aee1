package codegen

import (
	"fmt"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/memalloc"
	"github.com/rosmar-compiler/rosmar/memalloc/rotate"
)

// memReports are the figures of the allocators.
type memReports struct {
	psum, sb memalloc.Metrics
	dram     [ir.NumAddrSpaces]memalloc.Metrics
	hbm      HBM
}

func (r *memReports) of(reg memalloc.Registration) *memalloc.Metrics {
	switch reg.Type {
	case memalloc.TypePSUM:
		return &r.psum
	case memalloc.TypeSB:
		return &r.sb
	}
	return &r.dram[reg.Space]
}

// colouring is the pass of a registration of the colouring driver. A name without one is a mistake in the registry.
func colouring(name string) func(*Worker) error {
	reg, ok := memalloc.Registered(name)
	if !ok {
		panic(fmt.Sprintf("codegen: %s is not a registration of the colouring driver", name))
	}
	return func(w *Worker) error {
		a, err := memalloc.NewAllocator(reg)
		if err != nil {
			return err
		}
		return w.eachFunc(func(f ir.Func) error {
			mt, err := a.Run(w.m, f, &w.alloc, w.memOptions())
			if err != nil {
				return err
			}
			if to := w.reports.of(reg); !reg.AfterLinking || mt.Placed > 0 {
				*to = mt
			}
			if reg.AfterLinking && mt.Placed > 0 {
				// What was found out about bytes does not know the new ones.
				w.m.Funcs.At(f).Flags &^= late
			}
			w.Count("placed", int64(mt.Nodes))
			w.Count("rounds", int64(mt.Iterations))
			w.Count("spilled", int64(mt.Spilled))
			w.Count("spilled_bytes", mt.SpilledBytes)
			w.Count("moved_on_chip_bytes", mt.MoveBytes)
			w.Count("shrunk", int64(mt.Shrunk))
			w.Count("split", int64(mt.Split))
			w.Count("spill_ns", mt.SpillCost)
			w.Count("pinned_bytes", mt.Pinned)
			w.Count("unpinned_bytes", mt.Unpinned)
			w.Count("high_water", mt.HighWater)
			w.Count("collective_bytes", mt.CollectiveBytes)
			w.Count("collective_high_water", mt.CollectiveHigh)
			return nil
		})
	}
}

// countBoth adds the counters of a pass that places PSUM and SB: those of colouring, of both memories together, and the high water of
// each.
func (w *Worker) countBoth(psum, sb *memalloc.Metrics) {
	w.Count("placed", int64(psum.Nodes+sb.Nodes))
	w.Count("spilled", int64(psum.Spilled+sb.Spilled))
	w.Count("spilled_bytes", psum.SpilledBytes+sb.SpilledBytes)
	w.Count("psum_high_water", psum.HighWater)
	w.Count("sb_high_water", sb.HighWater)
}

// linearScan places PSUM and SB.
func linearScan(w *Worker) error {
	return w.eachFunc(func(f ir.Func) (err error) {
		psum, sb := &w.reports.psum, &w.reports.sb
		if *psum, *sb, err = memalloc.LinearScan(w.m, f, &w.alloc, w.memOptions()); err != nil {
			return err
		}
		w.countBoth(psum, sb)
		w.Count("evictions", int64(psum.Evictions+sb.Evictions))
		w.Count("sb_fragmentation_percent", int64(100*sb.FragMedian+0.5))
		w.Count("sb_fragmentation_p90_percent", int64(100*sb.FragTail+0.5))
		return nil
	})
}

// colourWithLoop places PSUM and SB over flattened loops.
func colourWithLoop(w *Worker) error {
	return w.eachFunc(func(f ir.Func) (err error) {
		psum, sb := &w.reports.psum, &w.reports.sb
		if *psum, *sb, err = memalloc.WithLoop(w.m, f, &w.alloc, w.memOptions()); err != nil {
			return err
		}
		w.countBoth(psum, sb)
		w.Count("rounds", int64(psum.Iterations+sb.Iterations))
		return nil
	})
}

func reserve(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error {
		memalloc.Reserve(w.m, f, w.memOptions())
		if w.model != nil {
			return nil // it fixes nothing
		}
		return w.checkGiven(f)
	})
}

func checkFits(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error { return memalloc.CheckFits(w.m, f, &w.alloc, w.memOptions()) })
}

func rotateDRAM(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error {
		st, err := rotate.DRAM(w.m, f, &w.rotate, &w.alloc, w.memOptions(), w.opt.DRAMRotationGiB)
		w.countMoved(st)
		if mt := &w.reports.dram[ir.AddrLocal]; st.Moved > 0 {
			w.Count("high_water_before", mt.HighWater)
			mt.HighWater = st.High
		}
		return err
	})
}

func rotatePSUM(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error {
		w.countMoved(rotate.PSUM(w.m, f, &w.rotate, &w.alloc, w.memOptions()))
		return nil
	})
}

func rotateSB(w *Worker) error {
	return w.eachFunc(func(f ir.Func) error {
		w.countMoved(rotate.SB(w.m, f, &w.rotate, &w.alloc, w.memOptions()))
		return nil
	})
}

func (w *Worker) countMoved(st rotate.Stats) {
	w.Count("placed", int64(st.Units))
	w.Count("moved", int64(st.Moved))
}
