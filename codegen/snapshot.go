package codegen

import (
	"fmt"
	"io"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc/report"
)

// MemoryAnalysis selects the snapshots of memory and what is in them.
type MemoryAnalysis struct {
	After   []string // keys behind whose passes a snapshot is taken; none without
	Dump    []string // spilling, live-range, memory-pressure; all when empty
	Types   []string // dram, sb, psum; all when empty
	DumpAll bool     // all views of all memories, whatever the two say
	Tensor  string   // only while this tensor is live
}

// snapshotPrefix and a key are the name of a snapshot pass.
const snapshotPrefix = "memory_analysis_after_"

// snapshots are the keys and the passes that they stand for; a list that has several occurrences gets the snapshot behind the
// last where that says what the pass is for in the end, else behind the first. Where one pass places SB together with PSUM, the key of
// SB's colouring stands for that pass.
var snapshots = []struct {
	key    string
	last   bool
	passes []string
}{
	{"address_rotation_dram", false, []string{"address_rotation_dram"}},
	{"address_rotation_psum", false, []string{"address_rotation_psum"}},
	{"address_rotation_sb", false, []string{"address_rotation_sb"}},
	{"coloring_allocator_dram_post_lnk", true, []string{"coloring_allocator_dram_post_lnk"}},
	{"coloring_allocator_dram_shared", true, []string{"coloring_allocator_dram_shared"}},
	{"coloring_allocator_sb", false, []string{"coloring_allocator_sb", "coloring_allocator_with_loop", "linear_scan_allocator"}},
	{"dma_optimization_sb", false, []string{"dma_optimization_sb"}},
	{"post_sched", true, []string{"post_sched"}},
	{"pre_sched", true, []string{"pre_sched"}},
	{"unroll", true, []string{"unroll"}},
}

// SnapshotKeys are the names that MemoryAnalysis.After understands.
func SnapshotKeys() []string {
	var keys []string
	for _, s := range snapshots {
		keys = append(keys, s.key)
	}
	return keys
}

// withSnapshots puts a snapshot behind the pass of each key that is in the set, where the list has that pass. A pass without a key
// selects nothing.
func (a *MemoryAnalysis) withSnapshots(names []string) []string {
	for _, s := range snapshots {
		if !slices.Contains(a.After, s.key) {
			continue
		}
		at := -1
		for i, n := range names {
			if slices.Contains(s.passes, n) && (at < 0 || s.last) {
				at = i
			}
		}
		if at >= 0 {
			names = slices.Insert(names, at+1, snapshotPrefix+s.key)
		}
	}
	return names
}

// check finds what is wrong with the options.
func (a *MemoryAnalysis) check() error {
	for _, n := range a.After {
		if _, ok := passByName[n]; !ok && !slices.Contains(SnapshotKeys(), n) {
			return unknownPass(n)
		}
	}
	_, err := a.report()
	return err
}

// report is what a snapshot shows.
func (a *MemoryAnalysis) report() (report.Options, error) {
	o := report.Options{Tensor: a.Tensor}
	if a.DumpAll {
		return o, nil
	}
	for _, n := range a.Dump {
		v, ok := report.ParseView(n)
		if !ok {
			return o, target.Errorf(target.User, "--memory-analysis-dump %s: spilling, live-range or memory-pressure", n)
		}
		o.Views |= v
	}
	for _, n := range a.Types {
		s, ok := report.ParseSpace(n)
		if !ok {
			return o, target.Errorf(target.User, "--memory-analysis-mem-types %s: dram, sb or psum", n)
		}
		if !slices.Contains(o.Spaces, s) {
			o.Spaces = append(o.Spaces, s)
		}
	}
	return o, nil
}

// snapshot is the pass of a key. It writes to a numbered file of the dump folder, or where passes print.
func snapshot(key string) func(*Worker) error {
	return func(w *Worker) error {
		o, err := w.opt.Memory.report()
		if err != nil {
			return err
		}
		o.Limits = w.memOptions()
		each := func(out io.Writer) error {
			return w.eachFunc(func(f ir.Func) error { return report.Write(out, w.m, f, &w.alloc, &o) })
		}
		switch {
		case w.opt.DumpDir != "":
			return w.dumpFile(fmt.Sprintf("%02d.memory.%s.txt", w.position, key), each)
		case w.Talk == nil:
			return nil
		}
		fmt.Fprintf(w.Talk, "# memory after %s\n", key)
		return each(w.Talk)
	}
}
