package plan

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Check proves a layout: an offset for each buffer, none negative, on its alignment, fixed ones kept, the end within capacity
// (0 for any), and no byte used by two buffers at once. It returns the highest end of a buffer that is ever live.
//
// It sweeps time once and keeps the live stretches of bytes in order of their first byte, so a new one can only
// meet its two neighbours. It builds on the problem and the offsets alone and uses nothing that the planner uses to place.
func Check(p *Problem, offsets []int64, capacity int64) (peak int64, err error) {
	if err := p.Validate(); err != nil {
		return 0, err
	}
	if len(offsets) != p.Len() {
		return 0, target.Errorf(target.Bug, "%d offsets for %d buffers", len(offsets), p.Len())
	}
	for i, o := range offsets {
		end := o + p.Size[i]
		live := p.ever(i)
		switch {
		case o < 0 || o > 2*MaxTotal:
			return 0, target.Errorf(target.Bug, "buffer %q: offset %d is out of range", p.nameBytes(i), o)
		case o%p.Align[i] != 0:
			return 0, target.Errorf(target.Bug, "buffer %q: offset %d is not a multiple of the alignment %d", p.nameBytes(i), o, p.Align[i])
		case p.Fixed[i] != None && p.Fixed[i] != o:
			return 0, target.Errorf(target.Bug, "buffer %q: offset %d where %d is fixed", p.nameBytes(i), o, p.Fixed[i])
		case live && capacity > 0 && end > capacity:
			return 0, target.Errorf(target.Limit, "buffer %q: [%d, %d) ends beyond the capacity %d", p.nameBytes(i), o, end, capacity)
		}
		if live {
			peak = max(peak, end)
		}
	}
	var w sweeper
	return peak, w.disjoint(p, offsets)
}

// stretch is a buffer's bytes [a, b) during [start, end).
type stretch struct {
	start, end, a, b int64
	row              int32
}

// sweeper compares buffers with each other. It keeps its storage.
type sweeper struct {
	all            []stretch
	births, deaths []int32
	live           rankSet
}

// disjoint checks all buffers with an offset of 0 or more against each other.
func (w *sweeper) disjoint(p *Problem, offsets []int64) error {
	w.all = w.all[:0]
	for i, o := range offsets {
		if o < 0 {
			continue
		}
		from := p.Lower[i]
		g := p.Gaps[i]
		for _, gap := range p.GapPool[g.Off : g.Off+g.Len] {
			w.add(from, gap.Lower, o, o+p.Size[i], i)
			w.add(gap.Lower, gap.Upper, o+gap.Lo, o+gap.Hi, i)
			from = gap.Upper
		}
		w.add(from, p.Upper[i], o, o+p.Size[i], i)
	}
	all := w.all
	slices.SortFunc(all, func(x, y stretch) int {
		if c := cmp.Compare(x.a, y.a); c != 0 {
			return c
		}
		return int(x.row) - int(y.row)
	})
	w.births, w.deaths = w.births[:0], w.deaths[:0]
	for i := range all {
		w.births = append(w.births, int32(i))
		w.deaths = append(w.deaths, int32(i))
	}
	slices.SortFunc(w.births, func(x, y int32) int {
		if c := cmp.Compare(all[x].start, all[y].start); c != 0 {
			return c
		}
		return int(x) - int(y)
	})
	slices.SortFunc(w.deaths, func(x, y int32) int { return cmp.Compare(all[x].end, all[y].end) })
	w.live.reset(len(all))
	gone := 0
	for _, b := range w.births {
		s := all[b]
		for all[w.deaths[gone]].end <= s.start {
			w.live.remove(int(w.deaths[gone]))
			gone++
		}
		// Those alive are apart, so the nearest below ends highest of all below.
		if k := w.live.below(int(b)); k >= 0 && all[k].b > s.a {
			return clash(p, all[k], s)
		}
		if k := w.live.above(int(b)); k >= 0 && all[k].a < s.b {
			return clash(p, all[k], s)
		}
		w.live.add(int(b))
	}
	return nil
}

func (w *sweeper) add(start, end, a, b int64, row int) {
	if start < end && a < b {
		w.all = append(w.all, stretch{start, end, a, b, int32(row)})
	}
}

func clash(p *Problem, x, y stretch) error {
	return target.Errorf(target.Bug, "buffers %s [%d, %d) and %s [%d, %d) share bytes at moment %d",
		p.label(int(x.row)), x.a, x.b, p.label(int(y.row)), y.a, y.b, max(x.start, y.start))
}

// rankSet is a set of small numbers that knows its neighbours: a bit each, and a bit for each word that is not empty, and so on up.
type rankSet [][]uint64

// reset makes it the empty set of numbers below n.
func (s *rankSet) reset(n int) {
	level := 0
	for n = (n + 63) / 64; ; n = (n + 63) / 64 {
		if level == len(*s) {
			*s = append(*s, nil)
		}
		(*s)[level] = append((*s)[level][:0], make([]uint64, max(n, 1))...)
		level++
		if n <= 1 {
			*s = (*s)[:level]
			return
		}
	}
}

func (s rankSet) add(k int) {
	for _, level := range s {
		level[k>>6] |= 1 << (k & 63)
		k >>= 6
	}
}

func (s rankSet) remove(k int) {
	for _, level := range s {
		if level[k>>6] &^= 1 << (k & 63); level[k>>6] != 0 {
			return
		}
		k >>= 6
	}
}

// below is the greatest member less than k, or -1.
func (s rankSet) below(k int) int {
	for i, level := range s {
		if w := level[k>>6] & (1<<(k&63) - 1); w != 0 {
			k = k&^63 | (63 - bits.LeadingZeros64(w))
			for ; i > 0; i-- {
				k = k<<6 | (63 - bits.LeadingZeros64(s[i-1][k]))
			}
			return k
		}
		k >>= 6
	}
	return -1
}

// above is the least member greater than k, or -1.
func (s rankSet) above(k int) int {
	for i, level := range s {
		if w := level[k>>6] &^ (1<<(k&63+1) - 1); w != 0 {
			k = k&^63 | bits.TrailingZeros64(w)
			for ; i > 0; i-- {
				k = k<<6 | bits.TrailingZeros64(s[i-1][k])
			}
			return k
		}
		k >>= 6
	}
	return -1
}
