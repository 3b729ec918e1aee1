package split

import (
	"math/bits"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// colours finds a register for each part of a web, as a wish: placing follows it where it can.
type colours struct {
	reg         []uint8  // by part
	first, next []uint32 // by web its first part, by part the next of its web
	meet, pass  links
}

// links are lists of parts by part.
type links struct {
	head []uint32
	list []other
}

type other struct{ part, next uint32 }

// colour gives webs registers greedily in the order in which they begin, those that meet calls first: they have the fewest to choose from.
func (a *Allocator) colour() {
	s, w, q := &a.spiller, &a.webs, &a.colours
	n := len(s.valueOf)
	q.meet.link(w, s.meetings, nil)
	q.pass.link(w, w.passes, s.calls)
	q.reg = arena.Resized(q.reg, n)
	for p := range q.reg {
		q.reg[p] = noReg
	}
	// The parts of each web, first to last.
	q.next, q.first = arena.Resized(q.next, n), arena.Resized(q.first, n)
	for p := n - 1; p >= 0; p-- {
		q.next[p], q.first[p] = noPart, noPart
	}
	for p := n - 1; p >= 0; p-- {
		if w.part[p] == uint32(p) && w.wanted[p] && s.flags[p]&local == 0 {
			web := find(w.up, uint32(p))
			q.next[p], q.first[web] = q.first[web], uint32(p)
		}
	}
	// Whole webs that meet calls, then parts of those that found no colour to survive all of them.
	for web, p := range q.first {
		if p != noPart && (q.next[p] != noPart || s.flags[p]&crosses != 0) {
			c := a.f.Class[s.valueOf[web]]
			a.wish(p, q.next, a.regs.All(c)&^a.regs.Destroyed(c), 0)
		}
	}
	for _, must := range [2]uint8{crosses, 0} {
		for _, p := range q.first {
			for ; p != noPart; p = q.next[p] {
				if q.reg[p] != noReg || s.flags[p]&must != must {
					continue
				}
				c := a.f.Class[s.valueOf[p]]
				set, better := a.regs.All(c), a.regs.Destroyed(c)
				if must != 0 {
					set &^= better
				}
				if s.flags[p]&(crosses|reaches) != 0 {
					better = ^better
				}
				a.wish(p, nil, set, better)
			}
		}
	}
}

const noPart = ^uint32(0)

// wish colours a part, with next the list of parts that it begins, from a set: with the colour of most parts that it passes into or from, else a
// better one.
func (a *Allocator) wish(p uint32, next []uint32, set, better uint64) {
	q := &a.colours
	for x := p; x != noPart; x = after(next, x) {
		set &^= q.avoid(x, len(q.meet.list))
	}
	if set == 0 {
		return
	}
	var votes [flow.MaxRegs]uint32
	best, most := uint8(noReg), uint32(0)
	for x := p; x != noPart; x = after(next, x) {
		for k := q.pass.head[x]; k != noPart; k = q.pass.list[k].next {
			if r := q.reg[q.pass.list[k].part]; r != noReg && set>>r&1 == 1 {
				if votes[r]++; votes[r] > most {
					best, most = r, votes[r]
				}
			}
		}
	}
	if best == noReg {
		if set&better != 0 {
			set &= better
		}
		best = uint8(bits.TrailingZeros64(set))
	}
	for x := p; x != noPart; x = after(next, x) {
		q.reg[x] = best
	}
}

// avoid is the set of registers that those wish for which a part meets, of its list at most so many.
func (q *colours) avoid(p uint32, most int) (set uint64) {
	for k := q.meet.head[p]; k != noPart && most > 0; k = q.meet.list[k].next {
		most--
		if r := q.reg[q.meet.list[k].part]; r != noReg {
			set |= 1 << r
		}
	}
	return set
}

func after(next []uint32, x uint32) uint32 {
	if next == nil {
		return noPart
	}
	return next[x]
}

// link makes the lists of what each part meets or passes into: each pair is in the lists of both.
func (l *links) link(w *webs, pairs, more []meeting) {
	l.head = arena.Resized(l.head, len(w.part))
	for p := range l.head {
		l.head[p] = noPart
	}
	l.list = arena.Resized(l.list, 2*(len(pairs)+len(more)))
	n := uint32(0)
	for _, ms := range [2][]meeting{pairs, more} {
		for _, m := range ms {
			if !w.wanted[m.a] || !w.wanted[m.b] {
				continue
			}
			a, b := w.part[m.a], w.part[m.b]
			if a == b {
				continue
			}
			l.list[n], l.head[a] = other{b, l.head[a]}, n
			l.list[n+1], l.head[b] = other{a, l.head[b]}, n+1
			n += 2
		}
	}
}
