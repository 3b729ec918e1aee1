package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// ranges prints the live ranges in order of start. Of too many it keeps those that take most room for most time.
func (w *writer) ranges() {
	var rows []regalloc.Seg
	for _, s := range w.segs {
		if w.inside(s) {
			rows = append(rows, s)
		}
	}
	total := len(rows)
	if total > maxRanges {
		area := func(s regalloc.Seg) int64 { return w.size(&w.units[s.Node]) * int64(s.End-s.Start) }
		slices.SortFunc(rows, func(a, b regalloc.Seg) int {
			return cmp.Or(cmp.Compare(area(b), area(a)), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Node, b.Node))
		})
		rows = rows[:maxRanges]
	}
	slices.SortFunc(rows, func(a, b regalloc.Seg) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Node, b.Node))
	})
	fmt.Fprintf(w.out, "\nlive-range %s: %d\n", w.space, total)
	w.table(func(tw io.Writer) {
		if total > 0 {
			fmt.Fprintf(tw, "from\tto\t%s\tpartitions\tplace\ttensor\tfirst\tlast\n", w.names())
		}
		for _, s := range rows {
			u := &w.units[s.Node]
			fmt.Fprintf(tw, "%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", s.Start, s.End-1, w.size(u), w.m.Locs.At(u.First).Parts, w.place(u),
				w.m.LocName(u.First), w.inst(s.Start), w.inst(s.End-1))
		}
	})
	if n := total - len(rows); n > 0 {
		fmt.Fprintf(w.out, "%d left out, which take less room or time\n", n)
	}
}

// place is where a unit lies.
func (w *writer) place(u *ssa.Unit) string {
	l := w.m.Locs.At(u.First)
	if l.Flags&ir.LocAllocated == 0 {
		return "-"
	}
	switch w.space {
	case target.SpacePSUM:
		return fmt.Sprintf("bank %d", l.Bank)
	case target.SpaceSB:
		return fmt.Sprintf("%d+%d", l.Base, l.Addr)
	}
	return fmt.Sprint(l.Addr)
}
