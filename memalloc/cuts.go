package memalloc

import (
	"math"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// gap is a stretch of points in which a tenant may be away.
type gap struct {
	from, to ssa.Point
	stop     uint32 // before which it is away; of gaps at the ends of a part of a unit: the part's first stop
	end      bool   // before the first stop, or after the last
	size     int64  // granules × quadrants that it gives back
}

// priceClasses is how many prices a byte are told apart when gaps are compared: nothing, and quarters of moving it once.
const priceClasses = 11

// cutter chooses gaps for what is live to fit into the memory, as far as bytes alone say.
type cutter struct {
	gaps    []gap
	picked  []bool  // by gap
	paid    []int64 // by tenant: bytes that cuts save anyway
	byStart []uint32
	starts  []uint32
	over    []int64  // by point: what is live less the limit
	short   []uint32 // by point: how many points before it are over the limit
	gives   []int64
	queues  [priceClasses]arena.Queue
	tree    slackTree
	order   []uint32
	sort    arena.Sorter
}

// pressure fills over and short from the units.
func (c *cutter) pressure(ws *Workspace, limit int64) {
	points := ws.lin.Points()
	c.over = arena.Resized(c.over, points+1)
	clear(c.over)
	for i := range ws.ranges.Units {
		u, p := &ws.ranges.Units[i], &ws.sb.at[i]
		grain := int32(1)<<p.least - 1
		n := int64((p.hi-p.lo+grain)&^grain) * quadsOfClass(p.class)
		c.over[u.Start] += n
		c.over[u.End] -= n
	}
	c.short = arena.Resized(c.short, points+1)
	live, n := int64(0), uint32(0)
	for p := range points {
		live += c.over[p]
		c.over[p] = live - limit
		c.short[p] = n
		if c.over[p] > 0 {
			n++
		}
	}
	c.short[points] = n
}

// crossed reports whether too much is live somewhere in [from, to).
func (c *cutter) crossed(from, to ssa.Point) bool { return c.short[to] > c.short[from] }

// find lists the gaps of the tenants that matter.
func (c *cutter) find(ws *Workspace, s *stays) {
	c.gaps = c.gaps[:0]
	c.paid = arena.Resized(c.paid, len(s.tenants))
	clear(c.paid)
	add := func(from, to ssa.Point, stop uint32, end bool, t *tenant) {
		if from < to && c.crossed(from, to) {
			c.gaps = append(c.gaps, gap{from, to, stop, end, int64(t.len) * quadsOfClass(t.class)})
		}
	}
	for i := range ws.ranges.Units {
		ts := s.of(uint32(i))
		for k := range ts {
			t := &ts[k]
			if t.bound {
				continue
			}
			u := &ws.ranges.Units[i]
			if len(ts) > 1 {
				add(u.Start+1, s.stops[t.first].at, t.first, true, t)
				add(s.stops[t.end-1].end+1, u.End, t.first, true, t)
			}
			for n := t.first + 1; n < t.end; n++ {
				add(s.stops[n-1].end+1, s.stops[n].at, n, false, t)
			}
		}
	}
	c.picked = arena.Resized(c.picked, len(c.gaps))
	clear(c.picked)
}

// choose finds cuts that bring what is live down to the limit at every point where gaps allow it. It walks through time and, where
// too much is live, takes the gap that spans the most points that are over the limit, divided by what its bytes cost: Belady's rule
// where all cost the same. Then it takes cuts back that others made needless, the dearest first.
func (c *cutter) choose(s *stays, points int) {
	c.starts = arena.Resized(c.starts, points+2)
	clear(c.starts)
	for i := range c.gaps {
		c.starts[c.gaps[i].from+2]++
	}
	for p := 2; p < len(c.starts); p++ {
		c.starts[p] += c.starts[p-1]
	}
	c.byStart = arena.Resized(c.byStart, len(c.gaps))
	for i := range c.gaps {
		at := &c.starts[c.gaps[i].from+1]
		c.byStart[*at] = uint32(i)
		*at++
	}
	c.gives = arena.Resized(c.gives, points+1)
	clear(c.gives)
	for k := range c.queues {
		c.queues[k].Reset()
	}
	given, next := int64(0), 0
	for p := range points {
		given -= c.gives[p]
		for ; next < len(c.byStart) && c.gaps[c.byStart[next]].from == ssa.Point(p); next++ {
			i := c.byStart[next]
			c.queues[c.class(s, i)].Push(i, -int64(c.gaps[i].to))
		}
		for c.over[p] > given {
			i, ok := c.best(s, ssa.Point(p))
			if !ok {
				break
			}
			g := &c.gaps[i]
			c.picked[i] = true
			if x := &s.stops[g.stop]; !g.end {
				c.paid[x.tenant] = max(c.paid[x.tenant], x.save)
			}
			given += g.size
			c.gives[g.to] += g.size
		}
	}
	c.takeBack(s, points)
}

// cost is the bytes that a gap moves.
func (c *cutter) cost(s *stays, i uint32) int64 {
	g := &c.gaps[i]
	if g.end {
		return 0
	}
	x := &s.stops[g.stop]
	return x.reload + max(0, x.save-c.paid[x.tenant])
}

// class is what a byte that the gap gives back costs, in quarters of moving it once.
func (c *cutter) class(s *stays, i uint32) int {
	cost := c.cost(s, i)
	if cost == 0 {
		return 0
	}
	const granuleOfQuadrant = granule * 32 // bytes
	return int(min(priceClasses-1, 1+4*cost/(c.gaps[i].size*granuleOfQuadrant)))
}

// best pops the best gap that is open at p.
func (c *cutter) best(s *stays, p ssa.Point) (i uint32, ok bool) {
	best, most := -1, uint64(0)
	for k := len(c.queues) - 1; k >= 0; k-- {
		q := &c.queues[k]
		for q.Len() > 0 {
			i, _ := q.Peek()
			if c.gaps[i].to <= p {
				q.Reset() // the rest end even earlier
				break
			}
			now := c.class(s, i)
			if now >= k {
				break
			}
			q.Pop() // its save is paid meanwhile
			c.queues[now].Push(i, -int64(c.gaps[i].to))
		}
	}
	for k := range c.queues {
		q := &c.queues[k]
		if q.Len() == 0 {
			continue
		}
		if k == 0 {
			best = 0
			break
		}
		i, _ := q.Peek()
		if score := uint64(c.short[c.gaps[i].to]-c.short[p]) << 16 / uint64(k); best < 0 || score > most {
			best, most = k, score
		}
	}
	if best < 0 {
		return 0, false
	}
	i, _ = c.queues[best].Pop()
	return i, true
}

// takeBack undoes cuts where enough is free without them.
func (c *cutter) takeBack(s *stays, points int) {
	c.order = c.order[:0]
	for i := range c.gaps {
		if g := &c.gaps[i]; c.picked[i] && !g.end && s.stops[g.stop].reload+s.stops[g.stop].save > 0 {
			c.order = append(c.order, uint32(i))
		}
	}
	if len(c.order) == 0 {
		return
	}
	price := func(i uint32) int64 { return s.stops[c.gaps[i].stop].reload + s.stops[c.gaps[i].stop].save }
	c.sort.Take(c.order)
	c.sort.By(func(i uint32) uint64 { return ^uint64(price(i)) })
	c.sort.Put(c.order)
	clear(c.gives)
	for i := range c.gaps {
		if g := &c.gaps[i]; c.picked[i] {
			c.gives[g.from] += g.size
			c.gives[g.to] -= g.size
		}
	}
	given := int64(0)
	for p := range points {
		given += c.gives[p]
		c.gives[p] = given - max(0, c.over[p])
	}
	c.tree.build(c.gives[:points])
	for _, i := range c.order {
		g := &c.gaps[i]
		if c.tree.least(int(g.from), int(g.to)) >= g.size {
			c.tree.add(int(g.from), int(g.to), -g.size)
			c.picked[i] = false
		}
	}
}

// slackTree answers the least of a range of numbers to ranges of which numbers are added: a segment tree in which a node's number
// counts for all below it.
type slackTree struct {
	low, lazy []int64
	n         int
}

func (t *slackTree) build(v []int64) {
	t.n = 1
	for t.n < len(v) {
		t.n *= 2
	}
	t.low, t.lazy = arena.Resized(t.low, 2*t.n), arena.Resized(t.lazy, 2*t.n)
	clear(t.lazy)
	copy(t.low[t.n:], v)
	for i := t.n + len(v); i < 2*t.n; i++ {
		t.low[i] = 0
	}
	for i := t.n - 1; i > 0; i-- {
		t.low[i] = min(t.low[2*i], t.low[2*i+1])
	}
}

// add adds d to [lo, hi).
func (t *slackTree) add(lo, hi int, d int64) {
	if lo >= hi {
		return
	}
	l, r := lo+t.n, hi+t.n
	for a, b := l, r; a < b; a, b = a>>1, b>>1 {
		if a&1 == 1 {
			t.low[a] += d
			t.lazy[a] += d
			a++
		}
		if b&1 == 1 {
			b--
			t.low[b] += d
			t.lazy[b] += d
		}
	}
	t.pull(l)
	t.pull(r - 1)
}

func (t *slackTree) pull(i int) {
	for i >>= 1; i > 0; i >>= 1 {
		t.low[i] = min(t.low[2*i], t.low[2*i+1]) + t.lazy[i]
	}
}

// least is the least of [lo, hi).
func (t *slackTree) least(lo, hi int) int64 {
	if lo >= hi {
		return math.MaxInt64
	}
	a, b := lo+t.n, hi+t.n-1
	left, right := t.low[a], t.low[b]
	for a>>1 != b>>1 {
		if a&1 == 0 {
			left = min(left, t.low[a+1])
		}
		if b&1 == 1 {
			right = min(right, t.low[b-1])
		}
		a, b = a>>1, b>>1
		left += t.lazy[a]
		right += t.lazy[b]
	}
	v := min(left, right)
	for a >>= 1; a > 0; a >>= 1 {
		v += t.lazy[a]
	}
	return v
}
