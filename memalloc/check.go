package memalloc

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// checker is the sweep over time that every placement must pass before it is committed: it draws what is live into a picture of
// the memory and looks at nothing that the coloring used. Placements that were there before the call may lie on each
// other (their producer's business), but not on ours.
type checker struct {
	events []uint64
	words  []uint64
	placed []uint32
	list   []span
}

type span struct {
	lo, hi int64
	unit   uint32
}

// sweep visits the units in order of time: ends before starts at the same point. What nothing touches comes first, each by itself.
func (c *checker) sweep(units []ssa.Unit, start func(i int) error, end func(i int)) error {
	c.events = c.events[:0]
	for i := range units {
		if units[i].Flags&ssa.Dead != 0 {
			if err := start(i); err != nil {
				return err
			}
			end(i)
			continue
		}
		c.event(units[i].Start, units[i].End, uint32(i))
	}
	return c.run(start, end)
}

// sweepSegs is sweep by live segments.
func (c *checker) sweepSegs(segs []regalloc.Seg, start func(i int) error, end func(i int)) error {
	c.events = c.events[:0]
	for _, s := range segs {
		c.event(s.Start, s.End, s.Node)
	}
	return c.run(start, end)
}

func (c *checker) event(from, to ssa.Point, i uint32) {
	c.events = append(c.events, uint64(from)<<33|1<<32|uint64(i), uint64(to)<<33|uint64(i))
}

func (c *checker) run(start func(i int) error, end func(i int)) error {
	slices.Sort(c.events)
	for _, e := range c.events {
		i := int(uint32(e))
		if e>>32&1 == 0 {
			end(i)
		} else if err := start(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) forget(i int) {
	for k, u := range c.placed {
		if u == uint32(i) {
			c.placed[k] = c.placed[len(c.placed)-1]
			c.placed = c.placed[:len(c.placed)-1]
			return
		}
	}
}

func clashError(m *ir.Module, units []ssa.Unit, i int, what string) error {
	return target.Errorf(target.Bug, "placement of %s over points %d to %d %s", m.LocName(units[i].First), units[i].Start, units[i].End, what)
}

// rects checks SB placements: in bounds, aligned, on a legal band, clear of the strip and of each other.
func (c *checker) rects(m *ir.Module, units []ssa.Unit, r *rects, strip int64) error {
	nw := (r.n + 63) / 64
	c.words = arena.Resized(c.words, 4*nw)
	clear(c.words)
	c.placed = c.placed[:0]
	lane := func(q int) []uint64 { return c.words[q*nw : (q+1)*nw] }
	return c.sweep(units, func(i int) error {
		p := &r.at[i]
		fixed := units[i].Flags&ssa.Placed != 0
		l := m.Locs.At(units[i].First)
		switch {
		case p.quads == 0:
			return clashError(m, units, i, "is missing")
		case p.lo < 0 || int(p.hi) > r.n:
			return clashError(m, units, i, "leaves the memory")
		case !fixed && (int64(p.lo)*granule < strip || int64(p.hi-p.lo)*granule < l.Bytes):
			return clashError(m, units, i, "is too small or on the strip")
		case !fixed && !target.LegalStart(32*lowest(p.quads), target.BandHeight(int(l.Parts))):
			return clashError(m, units, i, "starts at an illegal partition")
		}
		for k := 0; k < len(c.placed) && !fixed; k++ {
			o := c.placed[k]
			if q := &r.at[o]; q.quads&p.quads != 0 && q.lo < p.hi && p.lo < q.hi {
				return clashError(m, units, i, "lies on the placed "+m.LocName(units[o].First))
			}
		}
		for q := range 4 {
			if p.quads>>q&1 != 0 && clash(lane(q), int(p.lo), int(p.hi)) {
				return clashError(m, units, i, "lies on another live location")
			}
			if p.quads>>q&1 != 0 && !fixed {
				Mark(lane(q), int(p.lo), int(p.hi))
			}
		}
		if fixed {
			c.placed = append(c.placed, uint32(i))
		}
		return nil
	}, func(i int) {
		p := &r.at[i]
		if units[i].Flags&ssa.Placed != 0 {
			c.forget(i)
			return
		}
		for q := range 4 {
			if p.quads>>q&1 != 0 {
				unmark(lane(q), int(p.lo), int(p.hi))
			}
		}
	})
}

// lowest is the first quadrant of a band that has some.
func lowest(band uint8) int { return bits.TrailingZeros8(band) }

// banks checks PSUM placements: in bounds, clear of reserved banks and of each other.
func (c *checker) banks(m *ir.Module, units []ssa.Unit, b *banks) error {
	var live uint64
	c.placed = c.placed[:0]
	return c.sweep(units, func(i int) error {
		if b.base[i] < 0 {
			return clashError(m, units, i, "is missing")
		}
		if int(b.base[i])+int(b.span[i]) > b.n {
			return clashError(m, units, i, "leaves the memory")
		}
		if live&b.mask[i] != 0 {
			return clashError(m, units, i, "shares a bank with another live location")
		}
		if units[i].Flags&ssa.Placed != 0 {
			c.placed = append(c.placed, uint32(i))
			return nil
		}
		for _, o := range c.placed {
			if b.mask[o]&b.mask[i] != 0 {
				return clashError(m, units, i, "shares a bank with the placed "+m.LocName(units[o].First))
			}
		}
		live |= b.mask[i]
		return nil
	}, func(i int) {
		if units[i].Flags&ssa.Placed != 0 {
			c.forget(i)
			return
		}
		live &^= b.mask[i]
	})
}

// pages checks DRAM placements: on a page, in the window, clear of each other. What is live lies in a list by address, in which
// only the two neighbours of a newcomer can touch it. It goes by live segments, of which a unit may have several.
func (c *checker) pages(m *ir.Module, units []ssa.Unit, g *pages, window int64) error {
	c.list, c.placed = c.list[:0], c.placed[:0]
	find := func(lo int64) int {
		k, _ := slices.BinarySearchFunc(c.list, lo, func(s span, lo int64) int { return cmp.Compare(s.lo, lo) })
		return k
	}
	return c.sweepSegs(g.own, func(i int) error {
		lo, hi := g.addr[i], g.addr[i]+g.size[i]
		fixed := units[i].Flags&ssa.Placed != 0
		if lo < 0 || hi > window && !fixed || lo%pageBytes != 0 && !fixed {
			return clashError(m, units, i, "is off its page or leaves the window")
		}
		k := find(lo)
		if k < len(c.list) && c.list[k].lo < hi || k > 0 && c.list[k-1].hi > lo {
			return clashError(m, units, i, "lies on another live location")
		}
		if fixed {
			c.placed = append(c.placed, uint32(i))
			return nil
		}
		for _, o := range c.placed {
			if g.addr[o] < hi && lo < g.addr[o]+g.size[o] {
				return clashError(m, units, i, "lies on the placed "+m.LocName(units[o].First))
			}
		}
		c.list = slices.Insert(c.list, k, span{lo, hi, uint32(i)})
		return nil
	}, func(i int) {
		if units[i].Flags&ssa.Placed != 0 {
			c.forget(i)
			return
		}
		k := find(g.addr[i])
		c.list = slices.Delete(c.list, k, k+1)
	})
}
