package plan

import (
	"math"
	"math/bits"
)

const (
	// maxSearch bounds the movable buffers that the search takes: it keeps a bit for each pair.
	maxSearch = 8192
	// maxMembers bounds the words of bits for each section and buffer: 16 MiB, three times.
	maxMembers = 1 << 21
	// maxObstacles bounds the pairs of a movable buffer and a fixed one, and those of a fixed one and a section.
	maxObstacles = 1 << 22
)

// search is branch and bound over skylines. A node has some buffers placed; everything that comes later lies above the floor of
// its sections. Any layout can be pushed down until each buffer rests on another, on an obstacle or on 0, so the search places buffers only
// where they rest, lowest first within a stretch of time, and a layout below the ceiling exists exactly when one is found so.
//
// For a buffer that waits, `rest` is where it would rest on what is placed, and `least` >= rest the least offset that is still possible
// after the decisions so far. For a section, `floor` is the least `least` of those that wait in it, and `sum` the bytes that wait. What keeps the tree small:
//
//   - A section fails when floor + sum (+ the obstacles above) exceeds the ceiling. This is the inference of MiniMalloc.
//   - In a valley of the floor, some buffer rests on the floor at a given section, or that floor is lost there: so a node asks ONE
//     section who lies on its floor, and takes the section with the fewest answers in all valleys, not only the lowest one.
//     Sections count by how often they failed before (Boussemart and others, "Boosting systematic search by
//     weighting constraints", 2004) in this run.
//   - Where no waiting buffer crosses, the two sides are solved apart; when one has no solution, what was tried on the other is not tried again.
//
// Costs at a node are those of the sections and buffers that change: they are put on a trail, and undone from it.
type search struct {
	m     *model
	words int // of a set of buffers

	meets  []uint64 // by buffer, the set of those that share a section
	member []uint64 // by section, the set of those that live there
	waits  []uint64 // the set of those not placed

	rest, least, off []int64
	sec              []section // and one for the end

	obsFirst []uint32 // obstacles that share a section with u are obsOf[obsFirst[u]:obsFirst[u+1]], by lower end
	obsOf    []uint32
	secFirst []uint32 // the same by section
	obsIn    []uint32

	ceiling int64
	rank    []uint32 // who is tried first

	trail  []undo
	frames []frame
	cands  []uint32
	sides  []side
	dirty  []int32 // sections whose floor must be found again

	stamp                 uint32 // of the present step: what has it is on the trail already
	stampRest, stampLeast []uint32
	failed                bool
	work, fails           int64
	found                 int64 // highest end of the layout in off, after solved
	lowestOnly            bool  // branch in the lowest valley only
	clock                 *clock

	scratchMeetA, scratchMeetB []uint64
}

// section is what is known of a section at a node.
type section struct {
	floor, sum            int64
	weight                uint64 // how often it failed in this run, times 256
	count                 int32  // waiting members with least == floor
	next, prev            int32  // the sections whose waiting members differ from those of the one before
	cross                 int32  // waiting buffers that live in the one before and this one
	edges                 int32  // waiting buffers that start or end to live here
	stampSave, stampDirty uint32
}

// undo is a word of the trail: what was changed, and the value before.
type undo struct {
	old int64
	cnt int32
	at  uint32 // kind<<29 | index
}

const (
	undoRest = iota << 29
	undoLeast
	undoSec
	undoPlace
	undoLink
	undoKind = 7 << 29
)

// frame is a decision: who lies on the floor of sec? Its answers are cands[next:to], then nobody.
type frame struct {
	sec      int32
	next, to int32
	mark     int32 // length of the trail before any answer
	parent   int32 // where to go when no answer is left, or -1
	a, b     int32 // the stretch of sections that is being solved
	pending  int32 // sides to solve after it
	sides    int32 // length of the list of sides
	wasted   bool  // nobody was tried too
}

// side is a stretch of sections to solve after another one; next is the one after it, or -1.
type side struct {
	a, b, parent, next int32
}

// nodeWork is what a step costs before it looks at any section or buffer, in the time of one of those.
const nodeWork = 64

// lookEvery is how much work is done between two looks at the clock: some 50 µs.
const lookEvery = 1 << 14

type outcome uint8

const (
	gaveUp outcome = iota // at a limit
	solved
	exhausted // no layout has its highest end at or below the ceiling
)

// start makes the root: nothing placed. It returns false when that alone fails.
func (s *search) start(ceiling int64) bool {
	m := s.m
	s.ceiling = ceiling
	s.trail, s.frames, s.cands, s.sides, s.dirty = s.trail[:0], s.frames[:0], s.cands[:0], s.sides[:0], s.dirty[:0]
	s.newStamp()
	clear(s.waits)
	for x := range s.sec {
		s.sec[x] = section{next: int32(x) + 1, prev: int32(x) - 1, weight: 256}
	}
	s.failed = false
	for u := range m.n {
		s.waits[u>>6] |= 1 << (u & 63)
		x := s.fit(uint32(u), 0)
		s.rest[u], s.least[u], s.off[u] = x, x, -1
		if x+m.size[u] > ceiling {
			s.failed = true
		}
		for _, p := range m.partsOf(uint32(u)) {
			for k := p.lo; k < p.hi; k++ {
				s.sec[k].sum += m.size[u]
			}
			s.sec[p.lo].edges++
			s.sec[p.hi].edges++
		}
		for k := m.lo[u] + 1; k < m.hi[u]; k++ {
			s.sec[k].cross++
		}
	}
	for x := range m.s {
		s.refloor(x)
	}
	return !s.failed
}

func (s *search) newStamp() {
	s.stamp++
	if s.stamp == math.MaxUint32 {
		clear(s.stampRest)
		clear(s.stampLeast)
		for x := range s.sec {
			s.sec[x].stampSave, s.sec[x].stampDirty = 0, 0
		}
		s.stamp = 1
	}
}

func (s *search) saveSec(x int32) {
	if s.sec[x].stampSave != s.stamp {
		s.sec[x].stampSave = s.stamp
		s.trail = append(s.trail, undo{s.sec[x].floor, s.sec[x].count, undoSec | uint32(x)})
	}
}

func (s *search) soil(x int32) {
	if s.sec[x].stampDirty != s.stamp {
		s.sec[x].stampDirty = s.stamp
		s.dirty = append(s.dirty, x)
	}
}

// refloor finds the floor of a section from those that wait in it, and judges it.
func (s *search) refloor(x int32) {
	if s.sec[x].sum == 0 {
		return
	}
	w := s.words
	row := s.member[int(x)*w : int(x)*w+w]
	least, count := int64(math.MaxInt64), int32(0)
	for i, set := range row {
		set &= s.waits[i]
		s.work += int64(bits.OnesCount64(set))
		for ; set != 0; set &= set - 1 {
			l := s.least[i<<6+bits.TrailingZeros64(set)]
			if l < least {
				least, count = l, 0
			}
			if l == least {
				count++
			}
		}
	}
	s.saveSec(x)
	s.sec[x].floor, s.sec[x].count = least, count
	need := least + s.sec[x].sum
	if len(s.obsIn) > 0 {
		need += s.blocked(x, least)
	}
	if need > s.ceiling {
		s.sec[x].weight += 256
		s.failed = true
	}
}

// lift raises the least offset of u.
func (s *search) lift(u uint32, x int64) {
	m := s.m
	old := s.least[u]
	if s.stampLeast[u] != s.stamp {
		s.stampLeast[u] = s.stamp
		s.trail = append(s.trail, undo{old, 0, undoLeast | u})
	}
	s.least[u] = x
	if x+m.size[u] > s.ceiling {
		s.blame(u)
	}
	for _, p := range m.partsOf(u) {
		for k := p.lo; k < p.hi; k = s.sec[k].next {
			s.work++
			if s.sec[k].floor == old {
				s.saveSec(k)
				if s.sec[k].count--; s.sec[k].count == 0 {
					s.soil(k)
				}
			}
		}
	}
}

// blame fails the node and spreads the weight over the sections of u.
func (s *search) blame(u uint32) {
	s.failed = true
	total := uint64(0)
	for _, p := range s.m.partsOf(u) {
		total += uint64(p.hi - p.lo)
	}
	for _, p := range s.m.partsOf(u) {
		for k := p.lo; k < p.hi; k++ {
			s.sec[k].weight += 256/total + 1
		}
	}
}

// settle finds the floors again where they changed. Raising a floor to the least of its members lifts no member, so nothing follows.
func (s *search) settle() bool {
	for _, x := range s.dirty {
		if s.failed {
			break
		}
		s.refloor(x)
	}
	s.dirty = s.dirty[:0]
	return !s.failed
}

// place lays v down where it rests. It returns false when the node has failed.
func (s *search) place(v uint32) bool {
	m, w := s.m, s.words
	s.newStamp()
	s.failed = false
	o := s.least[v]
	top := o + m.size[v]
	s.off[v] = o
	s.waits[v>>6] &^= 1 << (v & 63)
	s.trail = append(s.trail, undo{0, 0, undoPlace | v})
	for _, p := range m.partsOf(v) {
		for k := p.lo; k < p.hi; k = s.sec[k].next {
			s.saveSec(k)
			s.sec[k].floor = top
			s.sec[k].sum -= m.size[v]
		}
	}
	for k := s.sec[m.lo[v]].next; k < m.hi[v]; k = s.sec[k].next {
		s.sec[k].cross--
	}
	for _, p := range m.partsOf(v) {
		s.unlink(p.lo)
		s.unlink(p.hi)
		k := p.lo
		if s.sec[k].edges == 0 && k > 0 {
			k = s.sec[k].prev // what p.lo was joined to: its floor changes too
		}
		for ; k < p.hi; k = s.sec[k].next {
			s.soil(k)
		}
	}
	row := s.meets[int(v)*w : int(v)*w+w]
	for i, set := range row {
		set &= s.waits[i]
		for ; set != 0; set &= set - 1 {
			u := uint32(i<<6 + bits.TrailingZeros64(set))
			if s.rest[u] < top {
				x := top
				if m.aligned || len(s.obsOf) > 0 {
					x = s.fit(u, top)
				}
				if s.stampRest[u] != s.stamp {
					s.stampRest[u] = s.stamp
					s.trail = append(s.trail, undo{s.rest[u], 0, undoRest | u})
				}
				s.rest[u] = x
				if x > s.least[u] {
					s.lift(u, x)
				}
			}
			if s.least[u] > s.rest[u] && !s.supported(u) {
				s.blame(u)
			}
		}
		if s.failed {
			s.dirty = s.dirty[:0]
			return false
		}
	}
	return s.settle()
}

// unlink takes away one edge at section x. With none left the section has the members of the one before, for good below this
// node, and drops out of the list.
func (s *search) unlink(x int32) {
	s.trail = append(s.trail, undo{0, 0, undoLink | uint32(x)})
	if s.sec[x].edges--; s.sec[x].edges == 0 && x > 0 && x < s.m.s {
		n, p := s.sec[x].next, s.sec[x].prev
		s.sec[p].next, s.sec[n].prev = n, p
	}
}

// supported reports whether somebody waits who could still come to lie below u.
func (s *search) supported(u uint32) bool {
	row := s.meets[int(u)*s.words : int(u)*s.words+s.words]
	for i, set := range row {
		if set&s.waits[i] != 0 {
			return true
		}
	}
	return false
}

// waste decides that nobody rests on the floor of x: it rises to the next offset at which somebody could. False when that fails.
func (s *search) waste(x int32) bool {
	next := s.above(x)
	if next == inf {
		return false
	}
	s.newStamp()
	s.failed = false
	w := s.words
	s.saveSec(x)
	row := s.member[int(x)*w : int(x)*w+w]
	for i, set := range row {
		set &= s.waits[i]
		for ; set != 0; set &= set - 1 {
			u := uint32(i<<6 + bits.TrailingZeros64(set))
			if s.least[u] >= next {
				continue
			}
			s.lift(u, s.fit(u, next))
			if s.least[u] > s.rest[u] && !s.supported(u) {
				s.blame(u)
			}
		}
	}
	s.soil(x)
	return s.settle()
}

// above is the least offset over the floor of x at which somebody of x could rest when nobody rests on the floor itself: one
// who must be higher anyhow, or one on top of somebody who is not of x.
func (s *search) above(x int32) int64 {
	m, w := s.m, s.words
	h := s.sec[x].floor
	next := inf
	row := s.member[int(x)*w : int(x)*w+w]
	for i, set := range row {
		set &= s.waits[i]
		for ; set != 0; set &= set - 1 {
			u := i<<6 + bits.TrailingZeros64(set)
			if s.least[u] > h {
				next = min(next, s.least[u])
				continue
			}
			for k, under := range s.meets[u*w : u*w+w] {
				under &= s.waits[k] &^ row[k]
				s.work += 1 + int64(bits.OnesCount64(under))
				for ; under != 0; under &= under - 1 {
					v := k<<6 + bits.TrailingZeros64(under)
					if t := s.least[v] + m.size[v]; t < next {
						next = min(next, s.fit(uint32(u), t))
					}
				}
			}
		}
	}
	return next
}

// back undoes the trail down to a mark.
func (s *search) back(mark int32) {
	m := s.m
	for i := len(s.trail) - 1; i >= int(mark); i-- {
		e := &s.trail[i]
		k := e.at &^ undoKind
		switch e.at & undoKind {
		case undoRest:
			s.rest[k] = e.old
		case undoLeast:
			s.least[k] = e.old
		case undoSec:
			s.sec[k].floor, s.sec[k].count = e.old, e.cnt
		case undoPlace:
			s.off[k] = -1
			s.waits[k>>6] |= 1 << (k & 63)
			for _, p := range m.partsOf(k) {
				for x := p.lo; x < p.hi; x = s.sec[x].next {
					s.sec[x].sum += m.size[k]
				}
			}
			for x := s.sec[m.lo[k]].next; x < m.hi[k]; x = s.sec[x].next {
				s.sec[x].cross++
			}
		case undoLink:
			if s.sec[k].edges++; s.sec[k].edges == 1 && k > 0 && int32(k) < m.s {
				s.sec[s.sec[k].prev].next, s.sec[s.sec[k].next].prev = int32(k), int32(k)
			}
		}
	}
	s.work += int64(len(s.trail) - int(mark))
	s.trail = s.trail[:mark]
}

// choose picks the section to ask in [a, b), or -1 when nobody waits there.
func (s *search) choose(a, b int32) int32 {
	low := inf
	if s.lowestOnly || s.m.gapped {
		for x := a; x < b; x = s.sec[x].next {
			if s.sec[x].sum > 0 {
				low = min(low, s.sec[x].floor)
			}
		}
	}
	best := int32(-1)
	var bestAnswers, bestWeight uint64
	var bestFloor, bestSlack int64
	left := inf
	s.work += int64(b-a) / 2
	for x := a; x < b; {
		if s.sec[x].sum == 0 {
			left = inf
			x = s.sec[x].next
			continue
		}
		h := s.sec[x].floor
		e := s.sec[x].next
		for e < b && s.sec[e].sum > 0 && s.sec[e].floor == h {
			e = s.sec[e].next
		}
		right := inf
		if e < b && s.sec[e].sum > 0 {
			right = s.sec[e].floor
		}
		if left > h && right > h && h <= low {
			for ; x < e; x = s.sec[x].next {
				slack := s.ceiling - h - s.sec[x].sum
				answers := uint64(s.sec[x].count)
				if slack > 0 {
					answers++
				}
				if answers <= 1 {
					return x
				}
				weight := s.sec[x].weight
				p, q := answers*bestWeight, bestAnswers*weight
				if best < 0 || p < q || p == q && (h < bestFloor || h == bestFloor && slack < bestSlack) {
					best, bestAnswers, bestWeight, bestFloor, bestSlack = x, answers, weight, h, slack
				}
			}
		}
		x = e
		left = h
	}
	return best
}

// open makes the frame that asks section x of the stretch [a, b).
func (s *search) open(x, a, b, parent, pending int32) {
	from := len(s.cands)
	h, w := s.sec[x].floor, s.words
	row := s.member[int(x)*w : int(x)*w+w]
	for i, set := range row {
		set &= s.waits[i]
		for ; set != 0; set &= set - 1 {
			u := uint32(i<<6 + bits.TrailingZeros64(set))
			if s.least[u] != h || s.rest[u] != h || s.twin(u, from) {
				continue
			}
			k := len(s.cands)
			s.cands = append(s.cands, u)
			for ; k > from && s.rank[s.cands[k-1]] > s.rank[u]; k-- {
				s.cands[k] = s.cands[k-1]
			}
			s.cands[k] = u
		}
	}
	s.frames = append(s.frames, frame{sec: x, next: int32(from), to: int32(len(s.cands)), mark: int32(len(s.trail)),
		parent: parent, a: a, b: b, pending: pending, sides: int32(len(s.sides))})
}

// twin reports whether a candidate since from is the same as u in all but the name.
func (s *search) twin(u uint32, from int) bool {
	m := s.m
	if m.gapped {
		return false
	}
	for _, v := range s.cands[from:] {
		if m.size[v] == m.size[u] && m.lo[v] == m.lo[u] && m.hi[v] == m.hi[u] && m.align[v] == m.align[u] {
			return true
		}
	}
	return false
}

// run searches for a layout with its highest end at or below the ceiling. It gives up after so many failed nodes, or at so much work.
func (s *search) run(ceiling int64, rank []uint32, maxFails, maxWork int64) outcome {
	s.rank = rank
	s.fails = 0
	nextLook := s.work
	if !s.start(ceiling) {
		return exhausted
	}
	a, b, parent, pending := int32(0), s.m.s, int32(-1), int32(-1)
	for {
		// Down: ask a section, or go on with the next side.
		x := s.choose(a, b)
		if x < 0 {
			if pending < 0 {
				s.found = s.m.fixedTop
				for u, o := range s.off {
					s.found = max(s.found, o+s.m.size[u])
				}
				return solved
			}
			sd := s.sides[pending]
			a, b, parent, pending = sd.a, sd.b, sd.parent, sd.next
			continue
		}
		if s.work >= maxWork {
			return gaveUp
		}
		if s.work >= nextLook {
			nextLook = s.work + lookEvery
			if s.clock.over() {
				return gaveUp
			}
		}
		s.open(x, a, b, parent, pending)
		// Answers, and up while there is none.
		for {
			f := &s.frames[len(s.frames)-1]
			at := int32(len(s.frames) - 1)
			a, b, pending = f.a, f.b, f.pending
			s.back(f.mark)
			s.sides = s.sides[:f.sides]
			if f.next < f.to {
				v := s.cands[f.next]
				f.next++
				s.work += nodeWork
				if s.place(v) {
					a, b, parent, pending = s.divide(v, at, a, b, pending)
					break
				}
			} else if !f.wasted {
				f.wasted = true
				if s.waste(f.sec) {
					parent = at
					break
				}
			} else {
				if f.parent < 0 {
					return exhausted
				}
				s.frames = s.frames[:f.parent+1]
				up := &s.frames[f.parent]
				s.cands = s.cands[:up.to]
				continue
			}
			s.fails++
			if s.fails >= maxFails || s.work >= maxWork {
				return gaveUp
			}
			if s.work >= nextLook {
				nextLook = s.work + lookEvery
				if s.clock.over() {
					return gaveUp
				}
			}
		}
	}
}

// divide splits [a, b) where nobody crosses any more after v was placed, by frame at. It returns the stretch to go on with.
func (s *search) divide(v uint32, at, a, b, pending int32) (int32, int32, int32, int32) {
	last := b
	for k := s.sec[s.m.hi[v]].prev; k > s.m.lo[v]; k = s.sec[k].prev {
		if s.sec[k].cross == 0 && s.sec[k].sum > 0 {
			s.sides = append(s.sides, side{k, last, at, pending})
			pending = int32(len(s.sides) - 1)
			last = k
		}
	}
	return a, last, at, pending
}
