package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// away is a value that lives elsewhere: where, and what was moved for it.
type away struct {
	home           ir.Loc
	saves, reloads int
	out, in        int64 // bytes moved
}

// spilling prints the values that left the memory, those that moved most bytes first; of DRAM, the homes that it gives them.
func (w *writer) spilling() {
	m, lin := w.m, w.alloc.Linear()
	index := map[ir.Loc]int{}
	var rows []away
	var all away
	moves, bytes := 0, int64(0) // on chip
	for p := w.from; p < w.to && int(p) < lin.Points(); p++ {
		i := lin.Insts[p]
		fl := m.Insts.At(i).Flags & (ir.InstSpill | ir.InstReload)
		if fl == 0 || len(m.Ins(i)) == 0 || len(m.Outs(i)) == 0 {
			continue
		}
		from, to := m.LocOf(m.Ins(i)[0]), m.LocOf(m.Outs(i)[0])
		out := m.APs.At(m.Outs(i)[0].AP())
		n := out.Elems() * int64(out.Dtype.Size())
		if fl == ir.InstSpill|ir.InstReload {
			if m.Locs.At(to).Space == w.space {
				moves, bytes = moves+1, bytes+n
			}
			continue
		}
		home, here := to, from
		if fl&ir.InstReload != 0 {
			home, here = from, to
		}
		if home == 0 || here == 0 || !w.concerns(home, here) {
			continue
		}
		k, ok := index[home]
		if !ok {
			k = len(rows)
			index[home] = k
			rows = append(rows, away{home: home})
		}
		if fl&ir.InstReload != 0 {
			rows[k].reloads, rows[k].in = rows[k].reloads+1, rows[k].in+n
			all.reloads, all.in = all.reloads+1, all.in+n
		} else {
			rows[k].saves, rows[k].out = rows[k].saves+1, rows[k].out+n
			all.saves, all.out = all.saves+1, all.out+n
		}
	}
	fmt.Fprintf(w.out, "\nspilling %s: %d values, %d saves of %d bytes, %d reloads of %d bytes\n", w.space, len(rows), all.saves, all.out, all.reloads, all.in)
	if moves > 0 {
		fmt.Fprintf(w.out, "%d moves of %d bytes within %s\n", moves, bytes, w.space)
	}
	slices.SortFunc(rows, func(a, b away) int { return cmp.Or(cmp.Compare(b.in+b.out, a.in+a.out), cmp.Compare(a.home, b.home)) })
	w.table(func(tw io.Writer) {
		if len(rows) > 0 {
			fmt.Fprintf(tw, "saves\tbytes\treloads\tbytes\tsize\tplace\thome\n")
		}
		for _, r := range rows[:min(maxSpilled, len(rows))] {
			l := m.Locs.At(r.home)
			place := "-"
			if l.Flags&ir.LocAllocated != 0 {
				place = fmt.Sprint(l.Addr)
			}
			what := m.LocName(r.home)
			if l.Space == target.SpaceDRAM && m.Sets.At(l.Set).Flags&ir.SetSpillHome == 0 {
				what += " (had it before)"
			}
			fmt.Fprintf(tw, "%d\t%d\t%d\t%d\t%d\t%s\t%s\n", r.saves, r.out, r.reloads, r.in, l.Bytes*int64(max(1, l.Parts)), place, what)
		}
	})
	if n := len(rows) - maxSpilled; n > 0 {
		fmt.Fprintf(w.out, "%d more\n", n)
	}
}

// concerns reports a spill of the memory at hand: what was there and went home, or, of DRAM, what found a home in it.
func (w *writer) concerns(home, here ir.Loc) bool {
	if w.space == target.SpaceDRAM {
		return w.m.Sets.At(w.m.Locs.At(home).Set).Flags&ir.SetSpillHome != 0
	}
	return w.m.Locs.At(here).Space == w.space
}
