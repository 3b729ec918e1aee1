package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// View is one way to look at a memory; views add up.
type View uint8

const (
	Spilling View = 1 << iota
	LiveRange
	Pressure
	All = Spilling | LiveRange | Pressure
)

// ParseView finds a view by its name on the command line.
func ParseView(name string) (View, bool) {
	switch name {
	case "spilling":
		return Spilling, true
	case "live-range":
		return LiveRange, true
	case "memory-pressure":
		return Pressure, true
	}
	return 0, false
}

// ParseSpace finds a memory by its name on the command line.
func ParseSpace(name string) (target.Space, bool) {
	switch name {
	case "dram":
		return target.SpaceDRAM, true
	case "sb":
		return target.SpaceSB, true
	case "psum":
		return target.SpacePSUM, true
	}
	return 0, false
}

// Options say what to report.
type Options struct {
	Views  View // 0 is all
	Spaces []target.Space
	// Tensor restricts everything to the points at which a tensor or location of that name is live; "" does not.
	Tensor string
	// Limits are those of the allocators.
	Limits memalloc.Options
}

// Bounds of what is printed.
const (
	maxRanges  = 400
	maxSpilled = 50
	maxLargest = 5
	buckets    = 48
)

// writer is one report in the making.
type writer struct {
	out   *bufio.Writer
	m     *ir.Module
	f     ir.Func
	alloc *memalloc.Workspace
	opt   *Options

	from, to ssa.Point // what the report is about: points from ≤ p < to

	space target.Space
	units []ssa.Unit
	segs  []regalloc.Seg
	delta []int64
}

// Write reports on one function. alloc lends its storage, in which nothing is kept. Errors are those of out, and User for a tensor that
// the module does not have.
func Write(out io.Writer, m *ir.Module, f ir.Func, alloc *memalloc.Workspace, opt *Options) error {
	w := &writer{out: bufio.NewWriter(out), m: m, f: f, alloc: alloc, opt: opt}
	alloc.Linear().Build(m, f)
	w.to = ssa.Point(max(1, alloc.Linear().Points()))
	name := m.Names.String(m.Funcs.At(f).Name)
	if opt.Tensor != "" {
		known, live := w.window(opt.Tensor)
		if !known {
			return target.Errorf(target.User, "memory analysis: the program has no tensor %s; --memory-analysis-target-tensor takes the name of a tensor or of a placement", opt.Tensor)
		}
		if !live {
			fmt.Fprintf(w.out, "function %s: %s is not live in it\n", name, opt.Tensor)
			return w.out.Flush()
		}
		fmt.Fprintf(w.out, "function %s, while %s is live: points %d to %d\n", name, opt.Tensor, w.from, w.to-1)
	} else {
		loops := ""
		if slices.ContainsFunc(alloc.Linear().Insts, func(i ir.Inst) bool { return m.Insts.At(i).Op.Is(ir.FlagRegion) }) {
			loops = ", a loop with all its turns is one"
		}
		fmt.Fprintf(w.out, "function %s: %d points%s\n", name, alloc.Linear().Points(), loops)
	}
	views, spaces := opt.Views, opt.Spaces
	if views == 0 {
		views = All
	}
	if len(spaces) == 0 {
		spaces = []target.Space{target.SpaceDRAM, target.SpaceSB, target.SpacePSUM}
	}
	for _, w.space = range spaces {
		w.units, w.segs = alloc.Live(m, f, w.space)
		if views&Spilling != 0 {
			w.spilling()
		}
		if views&LiveRange != 0 {
			w.ranges()
		}
		if views&Pressure != 0 {
			w.pressure()
		}
	}
	return w.out.Flush()
}

// window restricts the report to the life of a tensor.
func (w *writer) window(tensor string) (known, live bool) {
	m, lin := w.m, w.alloc.Linear()
	tensor = strings.TrimPrefix(tensor, "%")
	from, to := w.to, ssa.Point(0)
	for l, r := range m.Locs.All() {
		if m.LocName(l) != "%"+tensor && m.Names.String(m.Sets.At(r.Set).Name) != tensor {
			continue
		}
		known = true
		if acc := lin.Of(l); len(acc) > 0 {
			from, to = min(from, acc[0].At), max(to, acc[len(acc)-1].At+1)
		}
	}
	if from < to {
		w.from, w.to = from, to
	}
	return known, from < to
}

// table prints rows of tab-separated cells in columns.
func (w *writer) table(rows func(tw io.Writer)) {
	tw := tabwriter.NewWriter(w.out, 0, 8, 2, ' ', 0)
	rows(tw)
	tw.Flush()
}

// names are the units of measure: of one location, and of what a memory has.
func (w *writer) names() string {
	switch w.space {
	case target.SpacePSUM:
		return "banks"
	case target.SpaceSB:
		return "bytes a partition"
	}
	return "bytes"
}

// size is what a location takes in the measure of its memory.
func (w *writer) size(u *ssa.Unit) int64 {
	l := w.m.Locs.At(u.First)
	switch w.space {
	case target.SpacePSUM:
		nb := w.opt.Limits.Banks(w.m.Gen)
		n := int64(u.Count)
		if live := int64(w.m.Sets.At(u.Set).LiveN); live > 0 {
			n = min(n, live)
		}
		return n * int64(memalloc.BlockBanks(w.m.Gen, l, nb))
	case target.SpaceSB:
		return (max(1, l.Bytes) + 7) &^ 7
	}
	const page = 4096
	return (max(1, l.Bytes*int64(max(1, l.Parts))) + page - 1) &^ (page - 1)
}

// capacity is what the memory has.
func (w *writer) capacity() int64 {
	switch w.space {
	case target.SpacePSUM:
		return int64(w.opt.Limits.Banks(w.m.Gen))
	case target.SpaceSB:
		return w.opt.Limits.Raw(w.m.Gen)
	}
	if w.opt.Limits.HBMBytes > 0 {
		return w.opt.Limits.HBMBytes
	}
	return w.m.Gen.HBMBytes()
}

// inst names the instruction at a point.
func (w *writer) inst(p ssa.Point) string {
	lin := w.alloc.Linear()
	if int(p) < lin.Points() {
		return w.m.InstName(lin.Insts[p])
	}
	return "none"
}

// inside reports a segment that the report is about in part.
func (w *writer) inside(s regalloc.Seg) bool { return s.Start < w.to && w.from < s.End }

// sums adds up a weight over the points of the report: delta[k] becomes what is live at point from+k.
func (w *writer) sums(weight func(u *ssa.Unit) int64) []int64 {
	w.delta = arena.Resized(w.delta, int(w.to-w.from)+1)
	clear(w.delta)
	for _, s := range w.segs {
		if n := weight(&w.units[s.Node]); n != 0 && w.inside(s) {
			w.delta[max(s.Start, w.from)-w.from] += n
			w.delta[min(s.End, w.to)-w.from] -= n
		}
	}
	live := int64(0)
	for k, d := range w.delta {
		live += d
		w.delta[k] = live
	}
	return w.delta[:w.to-w.from]
}
