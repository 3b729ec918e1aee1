package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// lane is a part of a memory whose pressure is told apart: a quadrant of SB, an address space of DRAM.
type lane struct {
	name   string
	weight func(u *ssa.Unit) int64
	part   int64 // of the memory: weights are in part-ths
}

// quads are the quadrants that a placed unit of SB lies in, as bits; none before it is placed.
func (w *writer) quads(u *ssa.Unit) uint8 {
	l := w.m.Locs.At(u.First)
	if l.Flags&ir.LocAllocated == 0 {
		return 0
	}
	n := target.BandHeight(int(l.Parts)) / target.QuadrantPartitions
	return uint8(1<<n-1) << (l.Base / target.QuadrantPartitions) & 15
}

func (w *writer) lanes() []lane {
	switch w.space {
	case target.SpaceSB:
		// What has no place yet counts in the mean only.
		out := []lane{{"mean", func(u *ssa.Unit) int64 {
			return w.size(u) * int64(target.BandHeight(int(w.m.Locs.At(u.First).Parts))/target.QuadrantPartitions)
		}, 4}}
		for q, name := range []string{"0-31", "32-63", "64-95", "96-127"} {
			out = append(out, lane{name, func(u *ssa.Unit) int64 { return w.size(u) * int64(w.quads(u)>>q&1) }, 1})
		}
		return out
	case target.SpacePSUM:
		return []lane{{"all", w.size, 1}}
	}
	of := func(s ir.AddrSpace) func(u *ssa.Unit) int64 {
		return func(u *ssa.Unit) int64 {
			if w.m.Sets.At(u.Set).Addr != s {
				return 0
			}
			return w.size(u)
		}
	}
	return []lane{{"local", of(ir.AddrLocal), 1}, {"shared", of(ir.AddrShared), 1}, {"debug", of(ir.AddrDebug), 1}}
}

// pressure prints the worst point of each lane and what is live there, and the most that is live in each of some stretches.
func (w *writer) pressure() {
	capacity := w.capacity()
	fmt.Fprintf(w.out, "\nmemory-pressure %s: %d %s\n", w.space, capacity, w.names())
	if w.m.Funcs.At(w.f).Flags&ir.FuncScheduled != 0 {
		fmt.Fprintln(w.out, "in the scheduled order a tensor may be partly done when others take those of its bytes: the sums can pass what there is")
	}
	lanes := w.lanes()
	width := max(1, (int(w.to-w.from)+buckets-1)/buckets)
	profile := make([][]int64, len(lanes))
	var used []lane
	w.table(func(tw io.Writer) {
		fmt.Fprintf(tw, "lane\tpeak\tused %%\tpoint\tinstruction\tlargest live\n")
		for _, l := range lanes {
			sums := w.sums(l.weight)
			peak, at := int64(0), 0
			row := profile[len(used)][:0]
			for k, n := range sums {
				if n > peak {
					peak, at = n, k
				}
				if k%width == 0 {
					row = append(row, 0)
				}
				row[len(row)-1] = max(row[len(row)-1], n/l.part)
			}
			if peak == 0 {
				continue
			}
			profile[len(used)] = row
			used = append(used, l)
			p := w.from + ssa.Point(at)
			fmt.Fprintf(tw, "%s\t%d\t%.1f\t%d\t%s\t%s\n", l.name, peak/l.part, 100*float64(peak/l.part)/float64(max(1, capacity)), p, w.inst(p), w.largest(p, l))
		}
	})
	if len(used) == 0 {
		fmt.Fprintf(w.out, "nothing is live\n")
		return
	}
	w.table(func(tw io.Writer) {
		fmt.Fprintf(tw, "points")
		for _, l := range used {
			fmt.Fprintf(tw, "\t%s", l.name)
		}
		fmt.Fprintln(tw)
		for b := range profile[0] {
			first := int(w.from) + b*width
			if fmt.Fprintf(tw, "%d", first); width > 1 {
				fmt.Fprintf(tw, "-%d", min(first+width, int(w.to))-1)
			}
			for k := range used {
				fmt.Fprintf(tw, "\t%d", profile[k][b])
			}
			fmt.Fprintln(tw)
		}
	})
}

// largest names the units that weigh most in a lane at a point.
func (w *writer) largest(p ssa.Point, l lane) string {
	var live []uint32
	for _, s := range w.segs {
		if s.Start <= p && p < s.End && l.weight(&w.units[s.Node]) > 0 {
			live = append(live, s.Node)
		}
	}
	slices.SortFunc(live, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(l.weight(&w.units[b]), l.weight(&w.units[a])), cmp.Compare(a, b))
	})
	var text []string
	for _, i := range live[:min(maxLargest, len(live))] {
		text = append(text, fmt.Sprintf("%s %d", w.m.LocName(w.units[i].First), w.size(&w.units[i])))
	}
	if n := len(live) - len(text); n > 0 {
		text = append(text, fmt.Sprintf("%d more", n))
	}
	return strings.Join(text, ", ")
}
