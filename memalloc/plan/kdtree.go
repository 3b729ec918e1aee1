package plan

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// kdTree holds the movable buffers as points (lo, hi) and answers: which queued buffer of the window [x, y) comes first? One is in the
// window when lo >= x and hi <= y (Bentley, "Multidimensional binary search trees used for associative searching", 1975). The
// shape depends on the points alone, so one build serves every order.
//
// Level d has 2^d nodes, node j of it over the points [j*n>>d, (j+1)*n>>d); the children of node k are 2k and 2k+1, the root is 1.
// The upper levels split by lo alone, down to a level of blocks: most windows are narrow, and looking for one starts at the block or
// above the few that it meets, so it costs no more among millions than among thousands.
type kdTree struct {
	n      int
	levels int // of inner nodes; the leaves are below
	upper  int // level of the blocks
	point  []kdPoint
	size   []int64  // of the buffer, by point
	block  []uint32 // by section x: the block of the first point with lo >= x, or the last block
	node   []kdNode
	stack  [2 * 40]uint32
}

// kdPoint is a buffer with its rank in the order, notQueued once it is taken.
type kdPoint struct {
	lo, hi int32
	rank   uint32
	buf    uint32
}

type kdNode struct {
	minLo, maxLo, minHi, maxHi int32
	best                       uint32 // least rank queued in it
}

const (
	kdLeaf    = 8
	kdBlock   = 4096 // points of a block, and half of it at least
	notQueued = math.MaxUint32
)

// build takes the movable buffers of a model; nothing is queued after it.
func (t *kdTree) build(m *model) {
	t.n = m.n
	t.levels, t.upper = 0, 0
	for t.n>>t.levels > kdLeaf {
		t.levels++
	}
	for t.n>>t.upper > kdBlock {
		t.upper++
	}
	m.sort.Start(m.n)
	m.sort.By(func(u uint32) uint64 { return uint64(m.lo[u]) })
	t.point = slices.Grow(t.point[:0], t.n)
	for _, it := range m.sort.Items {
		t.point = append(t.point, kdPoint{m.lo[it.ID], m.hi[it.ID], notQueued, it.ID})
	}
	t.block = slices.Grow(t.block[:0], int(m.s)+1)
	for i := range t.point {
		for len(t.block) <= int(t.point[i].lo) {
			t.block = append(t.block, t.nodeOf(i, t.upper)-1<<t.upper)
		}
	}
	for len(t.block) <= int(m.s) {
		t.block = append(t.block, 1<<t.upper-1)
	}
	for d := t.upper; d < t.levels; d++ {
		for j := range 1 << d {
			from, to := j*t.n>>d, (j+1)*t.n>>d
			t.split(t.point[from:to], ((2*j+1)*t.n>>(d+1))-from, (d-t.upper)&1 == 0)
		}
	}
	t.size = slices.Grow(t.size[:0], t.n)
	for _, pt := range t.point {
		t.size = append(t.size, m.size[pt.buf])
	}
	nodes := 2 << t.levels
	t.node = slices.Grow(t.node[:0], nodes)[:nodes]
	for k := nodes - 1; k > 0; k-- {
		b := kdNode{math.MaxInt32, -1, math.MaxInt32, -1, notQueued}
		if k >= nodes/2 {
			from, to := t.leaf(uint32(k))
			for _, pt := range t.point[from:to] {
				b.minLo, b.maxLo = min(b.minLo, pt.lo), max(b.maxLo, pt.lo)
				b.minHi, b.maxHi = min(b.minHi, pt.hi), max(b.maxHi, pt.hi)
			}
		} else {
			x, y := &t.node[2*k], &t.node[2*k+1]
			b = kdNode{min(x.minLo, y.minLo), max(x.maxLo, y.maxLo), min(x.minHi, y.minHi), max(x.maxHi, y.maxHi), notQueued}
		}
		t.node[k] = b
	}
}

// nodeOf is the node of a level that has a point: the j with j*n>>level <= at < (j+1)*n>>level.
func (t *kdTree) nodeOf(at, level int) uint32 {
	return uint32(1<<level + ((at+1)<<level-1)/t.n)
}

func (t *kdTree) leaf(k uint32) (from, to int) {
	j := int(k) - 1<<t.levels
	return j * t.n >> t.levels, (j + 1) * t.n >> t.levels
}

// split moves the k least points to the front, by hi or by lo, equal ones by number: quickselect with the median of three, and a
// sort where that halves too slowly, so no input is quadratic.
func (t *kdTree) split(ps []kdPoint, k int, byHi bool) {
	key := func(p *kdPoint) uint64 {
		if byHi {
			return uint64(p.hi)<<32 | uint64(p.buf)
		}
		return uint64(p.lo)<<32 | uint64(p.buf)
	}
	for rounds := 2 * bits.Len(uint(len(ps))); len(ps) > 1 && k > 0 && k < len(ps); rounds-- {
		if rounds == 0 {
			slices.SortFunc(ps, func(a, b kdPoint) int { return cmp.Compare(key(&a), key(&b)) })
			return
		}
		a, b, c := key(&ps[0]), key(&ps[len(ps)/2]), key(&ps[len(ps)-1])
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := 0, len(ps)-1
		for i <= j {
			for key(&ps[i]) < pivot {
				i++
			}
			for key(&ps[j]) > pivot {
				j--
			}
			if i <= j {
				ps[i], ps[j] = ps[j], ps[i]
				i++
				j--
			}
		}
		// ps[:j+1] <= pivot <= ps[i:]; keys differ, so one point at most lies between.
		switch {
		case k <= j:
			ps = ps[:j+1]
		case k >= i:
			ps, k = ps[i:], k-i
		default:
			return
		}
	}
}

// queue puts every buffer in, with its rank: a permutation.
func (t *kdTree) queue(rank []uint32) {
	for i := range t.point {
		t.point[i].rank = rank[t.point[i].buf]
	}
	for k := len(t.node) - 1; k > 0; k-- {
		t.refresh(uint32(k))
	}
}

func (t *kdTree) refresh(k uint32) {
	if k < 1<<t.levels {
		t.node[k].best = min(t.node[2*k].best, t.node[2*k+1].best)
		return
	}
	best := uint32(notQueued)
	from, to := t.leaf(k)
	for i := from; i < to; i++ {
		best = min(best, t.point[i].rank)
	}
	t.node[k].best = best
}

// take removes the buffer of a point.
func (t *kdTree) take(at uint32) {
	t.point[at].rank = notQueued
	for k := t.nodeOf(int(at), t.levels); k > 0; k >>= 1 {
		old := t.node[k].best
		t.refresh(k)
		if t.node[k].best == old {
			return
		}
	}
}

// first returns the queued buffer of least rank with lo >= x and hi <= y that fits, and its point for take; notQueued when there is
// none. fits may be nil.
func (t *kdTree) first(x, y int32, fits func(buf uint32) bool) (buf, at uint32) {
	buf, at = notQueued, notQueued
	if t.n == 0 {
		return
	}
	rank := uint32(notQueued)
	// What has its lo in the window lies in the blocks from a to b, so below the node where the ways up from them meet.
	a, b := 1<<t.upper+t.block[x], 1<<t.upper+t.block[y]
	sp := 1
	t.stack[0] = a >> bits.Len32(a^b)
	leaves := uint32(1) << t.levels
	for sp > 0 {
		sp--
		k := t.stack[sp]
		nd := &t.node[k]
		if nd.best >= rank || nd.maxLo < x || nd.minHi > y {
			continue
		}
		if k < leaves {
			near, far := 2*k, 2*k+1
			if t.node[far].best < t.node[near].best {
				near, far = far, near
			}
			t.stack[sp], t.stack[sp+1] = far, near
			sp += 2
			continue
		}
		from, to := t.leaf(k)
		for i := from; i < to; i++ {
			if pt := &t.point[i]; pt.rank < rank && pt.lo >= x && pt.hi <= y && (fits == nil || fits(pt.buf)) {
				buf, at, rank = pt.buf, uint32(i), pt.rank
			}
		}
	}
	return
}
