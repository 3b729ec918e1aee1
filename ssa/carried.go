package ssa

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// A value whose accesses are all in one loop is local to a turn if each read finds every byte written earlier in the same turn.
// Otherwise it is carried from turn to turn, and live over the whole loop.

// carrier finds out which values are carried. Bytes are looked at one by one only where no single write holds what a read
// takes.
type carrier struct {
	held []ir.Footprint // of the physical writes so far
	syms []heldSym

	cuts  []int32  // partitions at which an access begins or ends
	lo    int64    // byte of the first bit
	width int      // words a band of partitions between two cuts
	words []uint64 // a bit a byte that was written, band after band
}

// heldSym is a symbolic write.
type heldSym struct {
	sym  ir.Sym
	kind ir.ArgKind
}

// maxHeld is how many writes are asked one by one, the latest ones.
const maxHeld = 8

// carried reports whether a read of a location may see what an earlier turn of the loop around all its accesses wrote.
func (c *carrier) carried(m *ir.Module, lin *Linear, loc ir.Loc) bool {
	acc := lin.Of(loc)
	c.held, c.syms = c.held[:0], c.syms[:0]
	drawn := false
	for k := range acc {
		a := &acc[k]
		if a.Flags&Nested != 0 {
			return true // what need not run has written nothing for certain
		}
		arg := m.Args.Of(arena.Span{Off: a.Arg, Len: 1})[0]
		symbolic := a.Flags&Symbolic != 0
		var fp ir.Footprint
		if symbolic {
			fp = whole(m, loc)
		} else {
			fp = m.FootprintOf(arg.AP())
		}
		if a.Flags&Read != 0 && !(symbolic && c.holdsSym(m, lin, arg)) && !c.holds(&fp) {
			if !drawn && !c.draw(m, loc, acc) {
				return true
			}
			drawn = true
			if !c.covers(&fp) {
				return true
			}
		}
		switch {
		case a.Flags&Write == 0:
		case symbolic:
			c.syms = append(c.syms, heldSym{ir.Sym(arg.Ref), arg.Kind})
		default:
			c.held = append(c.held, fp)
			if drawn {
				c.mark(&fp)
			}
		}
	}
	return false
}

// whole is all of a location.
func whole(m *ir.Module, loc ir.Loc) ir.Footprint {
	l := m.Locs.At(loc)
	a := ir.APRow{Loc: loc, Dtype: target.Uint8, Parts: uint16(l.Parts)}
	a.Pairs[0] = ir.Pair{Step: int32(l.Bytes), Num: l.Parts}
	a.Pairs[1] = ir.Pair{Step: 1, Num: uint32(l.Bytes)}
	return m.Footprint(&a)
}

// holds asks the latest writes, each alone.
func (c *carrier) holds(fp *ir.Footprint) bool {
	for k := len(c.held) - 1; k >= max(0, len(c.held)-maxHeld); k-- {
		if h := &c.held[k]; *h == *fp || h.Contains(fp) {
			return true
		}
	}
	return false
}

// holdsSym reports an earlier write of the same pattern at the same address: by the same expression, whose axes are those of loops
// around both, so that they have not moved in between.
func (c *carrier) holdsSym(m *ir.Module, lin *Linear, a ir.Arg) bool {
	s := m.Syms.At(ir.Sym(a.Ref))
	if lin.twice || s.Reg != 0 || s.SubReg != 0 {
		return false
	}
	for k := len(c.syms) - 1; k >= max(0, len(c.syms)-maxHeld); k-- {
		if h := &c.syms[k]; h.kind == a.Kind && *m.Syms.At(h.sym) == *s {
			return true
		}
	}
	return false
}

// maxRow is more bytes than any memory on chip has in a partition.
const maxRow = 1 << 20

// draw marks what has been written so far. The bits have room for every access of the location; false when that is too much for
// anything that fits.
func (c *carrier) draw(m *ir.Module, loc ir.Loc, acc []Access) bool {
	if m.Locs.At(loc).Bytes > maxRow {
		return false
	}
	all := whole(m, loc)
	c.cuts = append(c.cuts[:0], all.P0, all.P1)
	for i := range acc {
		if acc[i].Flags&Symbolic == 0 {
			fp := m.FootprintOf(m.Args.Of(arena.Span{Off: acc[i].Arg, Len: 1})[0].AP())
			all.Lo, all.Hi = min(all.Lo, fp.Lo), max(all.Hi, fp.Hi)
			c.cuts = append(c.cuts, fp.P0, fp.P1)
		}
	}
	if all.Hi-all.Lo > maxRow {
		return false
	}
	slices.Sort(c.cuts)
	c.cuts = slices.Compact(c.cuts)
	c.lo, c.width = all.Lo, int((all.Hi-all.Lo+63)/64)
	c.words = arena.Zeroed(c.words, (len(c.cuts)-1)*c.width)
	for i := range c.held {
		c.mark(&c.held[i])
	}
	return true
}

func (c *carrier) mark(fp *ir.Footprint) {
	c.runs(fp, func(w []uint64, lo, hi int) bool {
		for ; lo < hi && lo&63 != 0; lo++ {
			w[lo>>6] |= 1 << (lo & 63)
		}
		for ; lo+64 <= hi; lo += 64 {
			w[lo>>6] = ^uint64(0)
		}
		for ; lo < hi; lo++ {
			w[lo>>6] |= 1 << (lo & 63)
		}
		return true
	})
}

// covers reports whether all bytes of a footprint are marked.
func (c *carrier) covers(fp *ir.Footprint) bool {
	return c.runs(fp, func(w []uint64, lo, hi int) bool {
		for lo < hi {
			if lo&63 == 0 && lo+64 <= hi {
				if w[lo>>6] != ^uint64(0) {
					return false
				}
				lo += 64
				continue
			}
			if w[lo>>6]>>(lo&63)&1 == 0 {
				return false
			}
			lo++
		}
		return true
	})
}

// runs calls f with the bits of each band of a footprint and its runs in them, until it says no.
func (c *carrier) runs(fp *ir.Footprint, f func(w []uint64, lo, hi int) bool) bool {
	band, _ := slices.BinarySearch(c.cuts, fp.P0)
	for ; c.cuts[band] < fp.P1; band++ {
		w := c.words[band*c.width : (band+1)*c.width]
		var idx [5]int64
		for {
			at := fp.Lo - c.lo
			for d := range int(fp.N) {
				at += idx[d] * fp.Step[d]
			}
			if !f(w, int(at), int(at+fp.Run)) {
				return false
			}
			d := 0
			for ; d < int(fp.N); d++ {
				if idx[d]++; idx[d] < fp.Num[d] {
					break
				}
				idx[d] = 0
			}
			if d == int(fp.N) {
				break
			}
		}
	}
	return true
}
