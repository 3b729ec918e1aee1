package main

import (
	"github.com/spf13/cobra"

	"github.com/rosmar-compiler/rosmar/codegen"
)

// memoryFlags are those of DRAM and of the reports on memories.
func memoryFlags(cmd *cobra.Command, o *codegen.Options) {
	fs := cmd.Flags()
	fs.IntVar(&o.AllreduceMiB, "allreduce-buffer-size", o.AllreduceMiB, "`MiB` of DRAM for operands of collectives; -1 is what they add up to")
	fs.BoolVar(&o.NoDRAMAllocation, "disable-dram-allocation", false, "leave coloring_allocator_dram out of the level's list: the program has its addresses")
	fs.BoolVar(&o.NoDRAMRotation, "disable-dram-rotation", false, "leave address_rotation_dram out of the level's list")
	fs.IntVar(&o.DRAMRotationGiB, "dram-rotation-size", o.DRAMRotationGiB, "`GiB` of DRAM over which address_rotation_dram may spread, up to 8; -1 is what is in use")
	fs.BoolVar(&o.NoHBMCheck, "disable-hbm-usage-check", false, "warn of programs that need more HBM than there is, and go on")
	a := &o.Memory
	fs.StringSliceVar(&a.After, "memory-analysis-after", nil, "report what is in the memories behind these passes, `a,b` (coloring_allocator_sb, post_sched, …), on standard error or in --dump-dir")
	fs.StringSliceVar(&a.Dump, "memory-analysis-dump", nil, "`VIEWS` of it, a,b: spilling, live-range, memory-pressure; all when left out")
	fs.StringSliceVar(&a.Types, "memory-analysis-mem-types", nil, "`MEMORIES` of it, a,b: dram, sb, psum; all when left out")
	fs.BoolVar(&a.DumpAll, "memory-analysis-dump-all", false, "all views of all memories")
	fs.StringVar(&a.Tensor, "memory-analysis-target-tensor", "", "only while this `TENSOR` is live")
	completeFlag(cmd, "memory-analysis-dump", "spilling", "live-range", "memory-pressure")
	completeFlag(cmd, "memory-analysis-mem-types", "dram", "sb", "psum")
	completeFlag(cmd, "memory-analysis-after", codegen.SnapshotKeys()...)
}
