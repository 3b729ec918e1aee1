package split

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// slots gives families places in the frame.
type slots struct {
	slot     []uint32 // by family
	from, to []uint32 // by family: first and last position in the order of blocks where a stored member lives
	list     []uint32 // families that are stored
	live     arena.Queue
	free     []uint32
}

// of is the slot of a stored value.
func (s *slots) of(a *Allocator, v flow.Value) flow.Place {
	return flow.Slot(int(s.slot[a.families.Of(v)]))
}

// assignSlots packs the families that are stored, each live from its first position to its last, and returns the number of slots.
func (a *Allocator) assignSlots() int {
	if !a.webs.stores {
		return 0
	}
	f, s, vals := a.f, &a.slots, a.spiller.vals
	n := f.Values()
	s.slot, s.from, s.to = arena.Resized(s.slot, n), arena.Resized(s.from, n), arena.Resized(s.to, n)
	for v := range s.from {
		s.from[v] = flow.LiveOut
	}
	s.list = s.list[:0]
	at := uint32(0)
	for _, b := range a.loops.Order {
		blk := &f.Blocks[b]
		end := at + uint32(blk.Insts.Len())
		base := a.live.Row(b)
		for k, v := range a.live.In(b) {
			if vals[v].stored {
				s.cover(a, v, at, end, blk, a.ranges.InEnd[base+uint32(k)])
			}
		}
		for _, v := range f.Of(blk.Params) {
			if vals[v].stored {
				s.cover(a, v, at, end, blk, a.ranges.End[v])
			}
		}
		for i := blk.Insts.From; i < blk.Insts.To; i++ {
			for _, v := range f.Of(f.Insts[i].Defs()) {
				if vals[v].stored {
					s.cover(a, v, at+i-blk.Insts.From, end, blk, a.ranges.End[v])
				}
			}
		}
		at = end
	}
	slices.SortFunc(s.list, func(x, y uint32) int { return cmp.Or(cmp.Compare(s.from[x], s.from[y]), cmp.Compare(x, y)) })
	s.live.Reset()
	s.free = s.free[:0]
	count := uint32(0)
	for _, x := range s.list {
		for s.live.Len() > 0 {
			y, to := s.live.Peek()
			if to >= int64(s.from[x]) {
				break
			}
			s.live.Pop()
			s.free = append(s.free, s.slot[y])
		}
		if len(s.free) > 0 {
			s.slot[x] = s.free[len(s.free)-1]
			s.free = s.free[:len(s.free)-1]
		} else {
			s.slot[x] = count
			count++
		}
		s.live.Push(x, int64(s.to[x]))
	}
	return int(count)
}

// cover makes the range of the family of v reach from a position to the last use in a block.
func (s *slots) cover(a *Allocator, v flow.Value, from, end uint32, blk *flow.Block, last uint32) {
	x := a.families.Of(v)
	to := end
	if last != flow.LiveOut {
		to = max(from, end-uint32(blk.Insts.Len())+last-min(last, blk.Insts.From))
	}
	if s.from[x] == flow.LiveOut {
		s.from[x], s.to[x] = from, to
		s.list = append(s.list, x)
	}
	s.from[x], s.to[x] = min(s.from[x], from), max(s.to[x], to)
}
