package plan

import (
	"cmp"
	"math"
	"slices"
)

// diver places all movable buffers in one pass over the skyline: the lowest free byte of each section. In a valley, a stretch of
// the skyline between higher neighbours, the first buffer in the given order that lives inside the valley lies down on
// its floor; when none is left the valley is filled to its lower neighbour. That is the first descent of MiniMalloc (Moffitt,
// "MiniMalloc", ASPLOS 2023: the buffer of least feasible offset goes first) and the best-fit rule of strip packing (Burke,
// Kendall and Whitwell, 2004), found here without asking all buffers at each step: valleys do not see each other, so any order of
// valleys gives the same layout, and a walk along the skyline replaces the queue.
//
// Buffers with gaps are placed as if they had none; see dive.parts for the other way.
type diver struct {
	tree kdTree    // of many buffers
	few  windowSet // of few
	obs  obstacleIndex
	off  []int64 // offset of a movable buffer, by number
	work int64

	seg     []segment
	freeSeg []int32

	// What fits looks at: the valley's floor.
	m     *model
	floor int64
	fits  func(buf uint32) bool
}

// What a step along the skyline counts: it costs as much as so many of the search's.
const (
	stepFew  = 12
	stepMany = 32
)

// segment is a stretch of sections of one height. The list is ordered, without holes, and neighbours differ in height
// except while a valley is being worked on.
type segment struct {
	h          int64
	lo, hi     int32
	prev, next int32 // -1 at the ends
}

// prepare takes the model; dives over it may follow.
func (d *diver) prepare(m *model) {
	d.m = m
	if m.n > maxWindowBits {
		d.tree.build(m)
	}
	d.obs.build(m.obs)
	d.off = slices.Grow(d.off[:0], m.n)[:m.n]
	if d.fits == nil {
		d.fits = d.clear // bound once: a method value made at each dive would allocate
	}
}

func (d *diver) newSeg(h int64, lo, hi, prev, next int32) int32 {
	s := segment{h, lo, hi, prev, next}
	if k := len(d.freeSeg); k > 0 {
		i := d.freeSeg[k-1]
		d.freeSeg = d.freeSeg[:k-1]
		d.seg[i] = s
		return i
	}
	d.seg = append(d.seg, s)
	return int32(len(d.seg) - 1)
}

// dive places the buffers in the order of rank, a permutation, into d.off and returns the highest end.
func (d *diver) dive(rank []uint32) int64 {
	m := d.m
	peak := m.fixedTop
	few, step := m.n <= maxWindowBits, int64(stepMany)
	if few {
		step = stepFew
		d.few.queue(m, rank)
	} else {
		d.tree.queue(rank)
	}
	d.work += int64(m.n) * step / 4
	left := m.n
	d.seg, d.freeSeg = d.seg[:0], d.freeSeg[:0]
	cur := d.newSeg(0, 0, m.s, -1, -1)
	var fits func(uint32) bool
	if len(m.obs) > 0 {
		fits = d.fits
	}
	for left > 0 {
		cur = d.settleAt(cur)
		v := d.seg[cur]
		d.work += step
		if fits != nil {
			if j := d.obs.first(v.h, v.lo, v.hi); j >= 0 && m.obs[j].a == v.h {
				cur = d.raise(cur, max(v.lo, m.obs[j].lo), min(v.hi, m.obs[j].hi), m.obs[j].b)
				continue
			}
			d.floor = v.h
		}
		var u, at uint32
		if few {
			u, at = d.few.first(v.lo, v.hi, fits)
		} else {
			u, at = d.tree.first(v.lo, v.hi, fits)
		}
		if u == notQueued {
			top := inf
			if v.prev >= 0 {
				top = d.seg[v.prev].h
			}
			if v.next >= 0 {
				top = min(top, d.seg[v.next].h)
			}
			if fits != nil {
				if j := d.obs.first(v.h, v.lo, v.hi); j >= 0 {
					top = min(top, m.obs[j].a)
				}
			}
			d.seg[cur].h = top
			continue
		}
		var lo, hi int32
		var size int64
		if few {
			d.few.take(at)
			lo, hi, size = m.lo[u], m.hi[u], m.size[u]
		} else {
			d.tree.take(at)
			lo, hi, size = d.tree.point[at].lo, d.tree.point[at].hi, d.tree.size[at] // at hand
		}
		left--
		o := v.h
		if m.aligned {
			o = alignUp(o, m.align[u])
		}
		d.off[u] = o
		peak = max(peak, o+size)
		cur = d.raise(cur, lo, hi, o+size)
	}
	return peak
}

// settleAt walks from a segment down to a valley, joining it with neighbours of its height, and returns the valley. It looks to the right first, where
// raise leaves it too: then the skyline is built up from the right, and what the pass touches next is what it touched last. The other way it
// crosses all of time at each level, which costs 8 % more on a million buffers.
func (d *diver) settleAt(cur int32) int32 {
	for {
		s := &d.seg[cur]
		if s.next >= 0 && d.seg[s.next].h <= s.h {
			n := s.next
			if d.seg[n].h == s.h {
				d.seg[n].lo, d.seg[n].prev = s.lo, s.prev
				if s.prev >= 0 {
					d.seg[s.prev].next = n
				}
				d.freeSeg = append(d.freeSeg, cur)
			}
			cur = n
			continue
		}
		if s.prev >= 0 && d.seg[s.prev].h <= s.h {
			p := s.prev
			if d.seg[p].h == s.h {
				d.seg[p].hi, d.seg[p].next = s.hi, s.next
				if s.next >= 0 {
					d.seg[s.next].prev = p
				}
				d.freeSeg = append(d.freeSeg, cur)
			}
			cur = p
			continue
		}
		return cur
	}
}

// raise lifts [lo, hi) of a segment to h and returns a part that stayed low, or the lifted one.
func (d *diver) raise(cur, lo, hi int32, h int64) int32 {
	s := d.seg[cur]
	at := cur
	if lo > s.lo {
		k := d.newSeg(s.h, s.lo, lo, s.prev, cur)
		if s.prev >= 0 {
			d.seg[s.prev].next = k
		}
		d.seg[cur].prev = k
		at = k
	}
	if hi < s.hi {
		k := d.newSeg(s.h, hi, s.hi, cur, s.next)
		if s.next >= 0 {
			d.seg[s.next].prev = k
		}
		d.seg[cur].next = k
		at = k
	}
	d.seg[cur].lo, d.seg[cur].hi, d.seg[cur].h = lo, hi, h
	return at
}

// clear reports whether a buffer on the floor of the valley stays below every obstacle of its sections.
func (d *diver) clear(u uint32) bool {
	m := d.m
	o := alignUp(d.floor, m.align[u])
	j := d.obs.first(d.floor, m.lo[u], m.hi[u])
	d.work++
	return j < 0 || m.obs[j].a >= o+m.size[u]
}

// obstacleIndex finds the lowest obstacle above a floor that meets a stretch of sections: a tree over the obstacles by lower end
// that keeps the hull of the sections below each node.
type obstacleIndex struct {
	obs    []obstacle
	base   int
	lo, hi []int32
}

func (x *obstacleIndex) build(obs []obstacle) {
	x.obs = obs
	x.base = 1
	for x.base < len(obs) {
		x.base *= 2
	}
	if len(obs) == 0 {
		return
	}
	x.lo = slices.Grow(x.lo[:0], 2*x.base)[:2*x.base]
	x.hi = slices.Grow(x.hi[:0], 2*x.base)[:2*x.base]
	for k := 2*x.base - 1; k > 0; k-- {
		switch {
		case k < x.base:
			x.lo[k], x.hi[k] = min(x.lo[2*k], x.lo[2*k+1]), max(x.hi[2*k], x.hi[2*k+1])
		case k-x.base < len(obs):
			x.lo[k], x.hi[k] = obs[k-x.base].lo, obs[k-x.base].hi
		default:
			x.lo[k], x.hi[k] = math.MaxInt32, -1
		}
	}
}

// first is the index of the lowest obstacle with a >= floor that shares a section with [lo, hi), or -1.
func (x *obstacleIndex) first(floor int64, lo, hi int32) int {
	from, _ := slices.BinarySearchFunc(x.obs, floor, func(o obstacle, t int64) int { return cmp.Compare(o.a, t) })
	if from == len(x.obs) {
		return -1
	}
	// Up from the leaf to the right, then down to the leftmost leaf that meets.
	k := from + x.base
	for {
		if x.lo[k] < hi && x.hi[k] > lo {
			if k >= x.base {
				return k - x.base
			}
			k *= 2
			continue
		}
		for k&1 == 1 {
			k >>= 1
		}
		if k == 0 {
			return -1
		}
		k++
	}
}
