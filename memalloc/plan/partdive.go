package plan

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
)

// partDiver places buffers with gaps: others may use the bytes that a buffer leaves for a while. The one of least feasible offset goes
// next, ties by rank. Offsets are kept in a queue and found again when they come up, for they only grow; the work is bounded, for
// there can be many that come up too early.
type partDiver struct {
	off  []int64
	work int64

	heap  arena.Heap
	floor floorTree
	byPos []uint32 // buffer of a rank

	placed []obstacle // parts and obstacles
	taken  []reach
}

// reach is the offsets between two that a buffer cannot have.
type reach struct{ above, below int64 }

// dive places the movable buffers into off and returns the highest end, or false when it needs more steps than maxWork.
func (d *partDiver) dive(m *model, rank []uint32, maxWork int64) (peak int64, ok bool) {
	d.off = slices.Grow(d.off[:0], m.n)[:m.n]
	d.byPos = slices.Grow(d.byPos[:0], m.n)[:m.n]
	d.floor.reset(int(m.s))
	d.heap.Reset(m.n)
	for u := range m.n {
		d.byPos[rank[u]] = uint32(u)
		d.heap.Push(rank[u], 0)
	}
	peak = m.fixedTop
	until := d.work + maxWork
	for d.heap.Len() > 0 {
		if d.work > until {
			return 0, false
		}
		r, was := d.heap.Peek()
		u := d.byPos[r]
		x := d.fit(m, u, was)
		if x > was {
			d.heap.Update(r, x)
			continue
		}
		d.heap.Pop()
		d.off[u] = x
		peak = max(peak, x+m.size[u])
		for _, p := range m.partsOf(u) {
			d.floor.raise(p.lo, p.hi, x+p.bHi)
		}
	}
	return peak, true
}

// first places the movable buffers in the order of rank, each at the first offset that is free, in holes too, and returns the highest
// end, or false when it needs more steps than maxWork. Every buffer is compared with all that are placed: only problems with
// gaps, where the skyline wastes what lies below a buffer that is partly there, are worth it.
func (d *partDiver) first(m *model, rank []uint32, maxWork int64) (peak int64, ok bool) {
	d.off = slices.Grow(d.off[:0], m.n)[:m.n]
	d.byPos = slices.Grow(d.byPos[:0], m.n)[:m.n]
	for u := range m.n {
		d.byPos[rank[u]] = uint32(u)
	}
	d.placed = append(d.placed[:0], m.obs...)
	peak = m.fixedTop
	until := d.work + maxWork
	for _, u := range d.byPos {
		d.taken = d.taken[:0]
		for _, p := range m.partsOf(u) {
			for i := range d.placed {
				if q := &d.placed[i]; p.lo < q.hi && q.lo < p.hi && q.b > p.bLo {
					d.taken = append(d.taken, reach{q.a - p.bHi, q.b - p.bLo})
				}
			}
			d.work += int64(len(d.placed))
		}
		if d.work += int64(len(d.taken) * bits.Len(uint(len(d.taken)))); d.work > until {
			return 0, false
		}
		slices.SortFunc(d.taken, func(x, y reach) int { return cmp.Compare(x.above, y.above) })
		x := int64(0)
		for _, r := range d.taken {
			if r.above < x && x < r.below {
				x = alignUp(r.below, m.align[u])
			}
		}
		d.off[u] = x
		peak = max(peak, x+m.size[u])
		for _, p := range m.partsOf(u) {
			d.placed = append(d.placed, obstacle{p.lo, p.hi, x + p.bLo, x + p.bHi})
		}
	}
	return peak, true
}

// fit is the least offset at or above x at which every part of u lies above the floor and clear of the obstacles.
func (d *partDiver) fit(m *model, u uint32, x int64) int64 {
	for _, p := range m.partsOf(u) {
		x = max(x, d.floor.max(p.lo, p.hi)-p.bLo)
		d.work++
	}
	x = alignUp(x, m.align[u])
	for again := len(m.obs) > 0; again; {
		again = false
		for i := range m.obs {
			o := &m.obs[i]
			for _, p := range m.partsOf(u) {
				if p.lo < o.hi && o.lo < p.hi && x+p.bLo < o.b && o.a < x+p.bHi {
					x = alignUp(o.b-p.bLo, m.align[u])
					again = true
				}
			}
		}
		d.work += int64(len(m.obs))
	}
	return x
}

// floorTree is the lowest free byte of each section, with the maximum of a stretch and raising one in logarithmic time. Raising
// never lowers, so what is raised above a node need not be pushed down.
type floorTree struct {
	base int
	top  []int64 // maximum below a node
	all  []int64 // that all sections below a node have at least
}

func (t *floorTree) reset(n int) {
	t.base = 1
	for t.base < n {
		t.base *= 2
	}
	t.top, t.all = sized(t.top, 2*t.base), sized(t.all, 2*t.base)
}

func (t *floorTree) max(lo, hi int32) int64 {
	a, b := int(lo)+t.base, int(hi)+t.base-1
	r := int64(0)
	for x := a; x > 0; x >>= 1 {
		r = max(r, t.all[x])
	}
	for x := b; x > 0; x >>= 1 {
		r = max(r, t.all[x])
	}
	for b++; a < b; a, b = a>>1, b>>1 {
		if a&1 == 1 {
			r = max(r, t.top[a])
			a++
		}
		if b&1 == 1 {
			b--
			r = max(r, t.top[b])
		}
	}
	return r
}

func (t *floorTree) raise(lo, hi int32, h int64) {
	a, b := int(lo)+t.base, int(hi)+t.base
	x, y := a, b-1
	for ; a < b; a, b = a>>1, b>>1 {
		if a&1 == 1 {
			t.top[a], t.all[a] = max(t.top[a], h), max(t.all[a], h)
			a++
		}
		if b&1 == 1 {
			b--
			t.top[b], t.all[b] = max(t.top[b], h), max(t.all[b], h)
		}
	}
	for x >>= 1; x > 0; x >>= 1 {
		t.top[x] = max(t.top[x], h)
	}
	for y >>= 1; y > 0; y >>= 1 {
		t.top[y] = max(t.top[y], h)
	}
}
