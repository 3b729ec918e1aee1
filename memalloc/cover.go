package memalloc

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
)

// cover is a set of bytes of the value whose visits are gathered: a bit a byte in each of its strips of partitions.
type cover struct {
	words []uint64
	nw    int
}

// maxStrips is how many ranges of partitions are told apart; visits with more ends than that count for the quadrants that they
// cover.
const maxStrips = 8

func (c *cover) reset(sp *spiller) {
	c.nw = int(sp.high+63) >> 6
	c.words = arena.Resized(c.words, (len(sp.strips)-1)*c.nw)
	clear(c.words)
}

// fill makes it all bytes.
func (c *cover) fill() {
	for i := range c.words {
		c.words[i] = ^uint64(0)
	}
}

func (c *cover) strip(s int) []uint64 { return c.words[s*c.nw : (s+1)*c.nw] }

// runsOf iterates over the runs of bytes of a footprint.
type runsOf struct {
	fp  *ir.Footprint
	idx [5]int64
	at  int64
}

func (r *runsOf) next() bool {
	for i := range int(r.fp.N) {
		r.at += r.fp.Step[i]
		if r.idx[i]++; r.idx[i] < r.fp.Num[i] {
			return true
		}
		r.at -= r.idx[i] * r.fp.Step[i]
		r.idx[i] = 0
	}
	return false
}

// add puts in the bytes of a footprint in the strips that it covers, remove takes them out; touch puts them in all that it touches.
func (c *cover) add(sp *spiller, f *ir.Footprint)    { c.change(sp, f, false, Mark) }
func (c *cover) remove(sp *spiller, f *ir.Footprint) { c.change(sp, f, false, unmark) }
func (c *cover) touch(sp *spiller, f *ir.Footprint)  { c.change(sp, f, true, Mark) }

// removeRange takes out the bytes [lo, hi) of all partitions.
func (c *cover) removeRange(lo, hi int64) {
	for s := 0; s < len(c.words); s += c.nw {
		unmark(c.words[s:s+c.nw], int(lo), min(int(hi), c.nw<<6))
	}
}

// narrow cuts a dense footprint down to the granules around the bytes of it that the set has, and reports whether it has any.
func (c *cover) narrow(sp *spiller, f *ir.Footprint) bool {
	lo, hi := int(f.Hi), int(f.Lo)
	if hi >= lo {
		return false
	}
	for s := range len(sp.strips) - 1 {
		if f.P0 >= sp.strips[s+1] || f.P1 <= sp.strips[s] {
			continue
		}
		w := c.strip(s)
		lo = min(lo, NextSet(w, int(f.Lo), int(f.Hi)))
		hi = max(hi, 1+prevSet(w, int(f.Hi)))
	}
	if lo >= hi {
		return false
	}
	f.Lo, f.Hi = max(f.Lo, int64(lo)&^(granule-1)), min(f.Hi, (int64(hi)+granule-1)&^(granule-1))
	f.Run = f.Hi - f.Lo
	return true
}

func (c *cover) change(sp *spiller, f *ir.Footprint, outer bool, set func(w []uint64, lo, hi int)) {
	for s := range len(sp.strips) - 1 {
		p0, p1 := sp.strips[s], sp.strips[s+1]
		if f.P0 >= p1 || f.P1 <= p0 || !outer && (f.P0 > p0 || f.P1 < p1) {
			continue
		}
		for r := (runsOf{fp: f, at: f.Lo}); ; {
			set(c.strip(s), int(r.at), int(r.at+f.Run))
			if !r.next() {
				break
			}
		}
	}
}

// holds reports whether the set has all bytes of a footprint.
func (c *cover) holds(sp *spiller, f *ir.Footprint) bool {
	for s := range len(sp.strips) - 1 {
		if f.P0 >= sp.strips[s+1] || f.P1 <= sp.strips[s] {
			continue
		}
		w := c.strip(s)
		for r := (runsOf{fp: f, at: f.Lo}); ; {
			if NextClear(w, int(r.at), int(r.at+f.Run)) < int(r.at+f.Run) {
				return false
			}
			if !r.next() {
				break
			}
		}
	}
	return true
}

// meets reports whether the set has any byte of a footprint in a strip that it touches.
func (c *cover) meets(sp *spiller, f *ir.Footprint) bool {
	for s := range len(sp.strips) - 1 {
		if f.P0 >= sp.strips[s+1] || f.P1 <= sp.strips[s] {
			continue
		}
		w := c.strip(s)
		for r := (runsOf{fp: f, at: f.Lo}); ; {
			if clash(w, int(r.at), int(r.at+f.Run)) {
				return true
			}
			if !r.next() {
				break
			}
		}
	}
	return false
}

// findStrips cuts the partitions where visits begin and end, and finds the end of their bytes.
func (sp *spiller) findStrips() {
	sp.strips, sp.coarse, sp.high = sp.strips[:0], false, 0
	top := int32(0)
	for i := range sp.visits {
		fp := &sp.visits[i].fp
		top, sp.high = max(top, fp.P1), max(sp.high, fp.Hi)
	}
	for i := range sp.visits {
		for _, p := range [2]int32{sp.visits[i].fp.P0, sp.visits[i].fp.P1} {
			k, found := slices.BinarySearch(sp.strips, p)
			if found {
				continue
			}
			if len(sp.strips) <= maxStrips {
				sp.strips = slices.Insert(sp.strips, k, p)
				continue
			}
			sp.strips, sp.coarse = sp.strips[:0], true
			for q := int32(0); q < top; q += 32 {
				sp.strips = append(sp.strips, q)
			}
			sp.strips = append(sp.strips, top)
			return
		}
	}
}

// findParts tells apart stretches of bytes that no visit joins, except for the load that brought the whole, and sorts the visits by
// part: each can live where it likes.
func (sp *spiller) findParts(isRemat bool) {
	vs := sp.visits
	sp.spans = sp.spans[:0]
	first := 0
	if isRemat {
		first = 1 // the load is part 0 by itself
	}
	for i := first; i < len(vs); i++ {
		sp.spans = append(sp.spans, span{vs[i].fp.Lo, vs[i].fp.Hi, uint32(i)})
	}
	byLo := func(a, b span) int { return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.unit, b.unit)) }
	if !slices.IsSortedFunc(sp.spans, byLo) {
		slices.SortFunc(sp.spans, byLo)
	}
	part, end := int32(first)-1, int64(-1)
	for _, s := range sp.spans {
		if s.lo >= end {
			part++
		}
		end = max(end, s.hi)
		vs[s.unit].part = part
	}
	if part > int32(first) {
		slices.SortFunc(vs, func(a, b visit) int { return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.acc, b.acc)) })
	}
}

// bytesOf is the bytes that a footprint touches, bytesOut those that an instruction writes.
func bytesOf(f *ir.Footprint) int64 { return f.Runs() * f.Run * int64(f.P1-f.P0) }

func bytesOut(m *ir.Module, i ir.Inst) int64 {
	fp := m.FootprintOf(m.Outs(i)[0].AP())
	return bytesOf(&fp)
}
