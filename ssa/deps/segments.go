package deps

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/ir"
)

const (
	quadrants = 4
	chunkSize = 64
	maxRuns   = 64 // runs of a write on chip that are entered one by one
	// maxRunsDRAM is the same for reads and writes in DRAM, where tiles are up to 128 rows of one matrix.
	maxRunsDRAM = 256
	maxHistory  = 64 // entries of a segment that no write covers before they are bundled
	maxDepth    = 0x7FFF
)

// history is what the bytes of a segment saw in one partition quadrant: the writers that show and the readers since, as heads
// of entry lists.
type history struct{ w, r uint32 }

// entry is one access. fp is the pattern of an access that does not fill the segments it is entered in, 0 for one that
// does. bundle marks a write that stands for others before it: whoever meets it is ordered after it.
type entry struct {
	next   uint32
	inst   ir.Inst
	fp     uint32
	p0, p1 uint8
	depth  uint16 // of the list from here on, saturating
}

const bundleBit = 1 << 15

// segments is an ordered map of intervals: a segment is the bytes from one key to the next that have equal histories. It is
// kept in chunks, so that a split moves at most one chunk and the directory. Keys lie apart from histories, because the
// search reads keys only. Tiles in DRAM are many rows at equal distances, so a search starts where the last one ended.
type segments struct {
	quads int // histories of a segment: one a partition quadrant, or one where there are no partitions
	lo    []chunk
	hist  []history // by chunk, place in it, quadrant
	free  int       // chunks in use
	dir   []uint32
	first []int64 // lowest key of each chunk of dir
	hint  int     // in dir
}

type chunk struct {
	n  int
	lo [chunkSize]int64
}

func (s *segments) reset(quads int) {
	s.quads, s.free, s.hint = quads, 0, 0
	s.dir, s.first = s.dir[:0], s.first[:0]
	c := s.newChunk()
	s.lo[c].n, s.lo[c].lo[0] = 1, 0
	clear(s.hist[:quads])
	s.dir, s.first = append(s.dir, c), append(s.first, 0)
}

func (s *segments) newChunk() uint32 {
	if s.free == len(s.lo) {
		s.lo = append(s.lo, chunk{})
	}
	s.free++
	if n := s.free * chunkSize * s.quads; n > len(s.hist) {
		s.hist = slices.Grow(s.hist, n-len(s.hist))[:n]
	}
	s.lo[s.free-1].n = 0
	return uint32(s.free - 1)
}

// cursor is a place in the map.
type cursor struct{ d, k int }

// find is the segment that holds key.
func (s *segments) find(key int64) cursor {
	lo, hi := s.near(key)
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) >> 1); s.first[mid] <= key {
			lo = mid
		} else {
			hi = mid
		}
	}
	s.hint = lo
	c := &s.lo[s.dir[lo]]
	a, b := 0, c.n
	for b-a > 1 {
		if mid := int(uint(a+b) >> 1); c.lo[mid&(chunkSize-1)] <= key {
			a = mid
		} else {
			b = mid
		}
	}
	return cursor{lo, a}
}

// near narrows the directory down to [lo, hi) by steps that double, away from the last place.
func (s *segments) near(key int64) (lo, hi int) {
	h := s.hint
	if s.first[h] <= key {
		for n := 1; ; n *= 2 {
			if h+n >= len(s.first) {
				return h, len(s.first)
			}
			if s.first[h+n] > key {
				return h, h + n
			}
			h += n
		}
	}
	for n := 1; ; n *= 2 {
		if h-n <= 0 {
			return 0, h
		}
		if s.first[h-n] <= key {
			return h - n, h
		}
		h -= n
	}
}

// at is the histories of a segment.
func (s *segments) at(c cursor) []history {
	k := (int(s.dir[c.d])*chunkSize + c.k) * s.quads
	return s.hist[k : k+s.quads]
}

// start is the first key of a segment.
func (s *segments) start(c cursor) int64 { return s.lo[s.dir[c.d]].lo[c.k] }

// next moves to the following segment; ok is false at the end of the map.
func (s *segments) next(c cursor) (cursor, bool) {
	if c.k+1 < s.lo[s.dir[c.d]].n {
		return cursor{c.d, c.k + 1}, true
	}
	return cursor{c.d + 1, 0}, c.d+1 < len(s.dir)
}

// end is the first key beyond the segment.
func (s *segments) end(c cursor) int64 {
	ch := &s.lo[s.dir[c.d]]
	if c.k+1 < ch.n {
		return ch.lo[c.k+1]
	}
	if c.d+1 < len(s.first) {
		return s.first[c.d+1]
	}
	return int64(^uint64(0) >> 1)
}

// split cuts the segment at c in two at key, which lies inside it, and gives the place of the second. moved says that the
// chunk was full: what was behind its middle is now in the next one.
func (s *segments) split(c cursor, key int64) (_ cursor, moved bool) {
	const half = chunkSize / 2
	if s.lo[s.dir[c.d]].n == chunkSize {
		id, old := s.newChunk(), s.dir[c.d]
		from, to := &s.lo[old], &s.lo[id]
		copy(to.lo[:half], from.lo[half:])
		copy(s.hist[int(id)*chunkSize*s.quads:][:half*s.quads], s.hist[(int(old)*chunkSize+half)*s.quads:])
		from.n, to.n = half, half
		s.dir = slices.Insert(s.dir, c.d+1, id)
		s.first = slices.Insert(s.first, c.d+1, to.lo[0])
		c, moved = moveOver(c), true
	}
	ch := &s.lo[s.dir[c.d]]
	h := s.hist[int(s.dir[c.d])*chunkSize*s.quads:][:(ch.n+1)*s.quads]
	copy(ch.lo[c.k+2:ch.n+1], ch.lo[c.k+1:ch.n])
	copy(h[(c.k+1)*s.quads:], h[c.k*s.quads:ch.n*s.quads])
	ch.lo[c.k+1] = key
	ch.n++
	return cursor{c.d, c.k + 1}, moved
}

// moveOver is where a place is after its chunk was halved.
func moveOver(c cursor) cursor {
	if c.k >= chunkSize/2 {
		return cursor{c.d + 1, c.k - chunkSize/2}
	}
	return c
}

// join drops the segment at c, whose history equals that of its left neighbour in the same chunk.
func (s *segments) join(c cursor) cursor {
	ch := &s.lo[s.dir[c.d]]
	h := s.hist[int(s.dir[c.d])*chunkSize*s.quads:][:ch.n*s.quads]
	copy(ch.lo[c.k:ch.n-1], ch.lo[c.k+1:ch.n])
	copy(h[c.k*s.quads:], h[(c.k+1)*s.quads:])
	ch.n--
	return cursor{c.d, c.k - 1}
}

// span makes [lo, hi) whole segments and gives the first.
func (s *segments) span(lo, hi int64) cursor {
	c := s.find(lo)
	if s.start(c) != lo {
		c, _ = s.split(c, lo)
	}
	for e := c; ; {
		end := s.end(e)
		if end == hi {
			return c
		}
		if end > hi {
			if _, moved := s.split(e, hi); moved && c.d == e.d {
				return moveOver(c)
			}
			return c
		}
		e, _ = s.next(e)
	}
}

// access is one operand being entered, run by run where it has several. lo and hi are keys; base is the key of byte 0 of its
// region.
type access struct {
	inst   ir.Inst
	lo, hi int64
	in     *segments
	base   int64
	fp     *ir.Footprint // nil when [lo, hi) is filled
	id     uint32        // of fp in the table, 0 when nil
	p0, p1 uint8

	doneFlow, doneOut, doneAnti uint32 // lists that gave all their edges, in whatever segment
	alone                       uint32 // the list of this write only
	read                        bool   // old has become new
	old, new                    uint32 // a readers' list, with this read before it
}

// change is what an access to DRAM made of a history. The rows of a tile there lie between rows of others, whose histories take turns: each
// kind costs once.
type change struct {
	by       uint32 // number of the access
	done     bool   // the history gave all its edges
	old, new history
}

// changeOf is where the change of a history by an access is kept, and whether it is there.
func (w *Workspace) changeOf(h history) (c *change, known bool) {
	c = &w.changes[(h.w*31+h.r)%uint32(len(w.changes))]
	if c.by == w.number && c.old == h {
		return c, true
	}
	*c = change{by: w.number, old: h}
	return c, false
}

// parts is the partitions of the space: in DRAM everything is in one.
func (s *segments) parts() uint8 {
	if s.quads == 1 {
		return 1
	}
	return 32 * quadrants
}

func (a *access) quads() (q0, q1 int) { return int(a.p0) / 32, (int(a.p1) + 31) / 32 }

// question is what the last access that met a pattern found: two patterns meet in every segment that both cross.
type question struct {
	by  uint32 // id of the asking pattern
	hit bool
}

// hits reports whether an entry and the access touch a common byte of the segment [lo, hi).
func (w *Workspace) hits(a *access, e *entry, lo, hi int64) bool {
	if e.p0 >= a.p1 || a.p0 >= e.p1 {
		return false
	}
	if e.fp == 0 && a.fp == nil {
		return true
	}
	if e.fp != 0 && a.fp != nil { // the same in every segment
		if q := &w.asked[e.fp]; q.by != a.id {
			*q = question{by: a.id, hit: a.fp.Overlaps(&w.prints[e.fp])}
		}
		return w.asked[e.fp].hit
	}
	f := a.fp
	if f == nil {
		f = &w.prints[e.fp]
	}
	return f.Touches(lo-a.base, hi-a.base)
}

// scan adds an edge to every entry of a list that the access hits; done reports that no other segment could add one.
func (w *Workspace) scan(a *access, head uint32, kind ir.DepKind, lo, hi int64) (done bool) {
	done = true
	for at := head; at != 0; {
		e := &w.entries[at]
		switch {
		case e.inst == a.inst:
		case w.hits(a, e, lo, hi):
			w.edge(e.inst, kind)
		case e.depth&bundleBit != 0:
			w.edge(e.inst, ir.DepOrdered)
		default:
			done = done && a.fp != nil && e.fp != 0
		}
		at = e.next
	}
	return done
}

func (w *Workspace) depth(head uint32) int {
	if head == 0 {
		return 0
	}
	return int(w.entries[head].depth &^ bundleBit)
}

func (w *Workspace) push(a *access, next uint32) uint32 {
	d := min(w.depth(next)+1, maxDepth)
	w.entries = append(w.entries, entry{next: next, inst: a.inst, fp: a.id, p0: a.p0, p1: a.p1, depth: uint16(d)})
	return uint32(len(w.entries) - 1)
}

// read enters a read: an edge to each writer that shows, and the read in every history that it meets.
func (w *Workspace) read(a *access) {
	s := a.in
	c := s.span(a.lo, a.hi)
	q0, q1 := a.quads()
	for lo := a.lo; lo < a.hi; c, _ = s.next(c) {
		g, hi := s.at(c), s.end(c)
		for q := q0; q < q1; q++ {
			if h := g[q].w; h != 0 && h != a.doneFlow && (q == q0 || h != g[q-1].w) && w.scan(a, h, ir.DepFlow, lo, hi) {
				a.doneFlow = h
			}
			r := g[q].r
			switch {
			case a.read && r == a.old:
				r = a.new
			case a.read && r == a.new:
			case w.hasRead(a, r):
			default:
				a.old, a.new, a.read = r, w.push(a, r), true
				r = a.new
			}
			g[q].r = r
		}
		lo = hi
	}
}

// hasRead reports a readers' list that begins with a read of the same instruction of no less.
func (w *Workspace) hasRead(a *access, r uint32) bool {
	e := &w.entries[r]
	return r != 0 && e.inst == a.inst && e.fp == a.id && e.p0 <= a.p0 && a.p1 <= e.p1
}

// readDRAM is read where there are no partitions.
func (w *Workspace) readDRAM(a *access) {
	s := a.in
	c := s.span(a.lo, a.hi)
	for lo := a.lo; lo < a.hi; c, _ = s.next(c) {
		g, hi := s.at(c), s.end(c)
		x, known := w.changeOf(g[0])
		if !x.done {
			x.done = w.scan(a, g[0].w, ir.DepFlow, lo, hi)
		}
		if !known {
			x.new = g[0]
			if !w.hasRead(a, g[0].r) {
				x.new.r = w.push(a, g[0].r)
			}
		}
		g[0] = x.new
		lo = hi
	}
}

// write enters a write: an edge to each writer and reader that it hits. It replaces what it hides and stands beside the rest.
func (w *Workspace) write(a *access) {
	s := a.in
	c := s.span(a.lo, a.hi)
	q0, q1 := a.quads()
	var prev cursor
	var old [quadrants]history
	for lo := a.lo; lo < a.hi; c, _ = s.next(c) {
		g, hi := s.at(c), s.end(c)
		copy(old[:], g)
		for q := q0; q < q1; q++ {
			h := old[q]
			if h.w != a.doneOut && (q == q0 || h.w != old[q-1].w) && w.scan(a, h.w, ir.DepOutput, lo, hi) {
				a.doneOut = h.w
			}
			if h.r != a.doneAnti && (q == q0 || h.r != old[q-1].r) && w.scan(a, h.r, ir.DepAnti, lo, hi) {
				a.doneAnti = h.r
			}
			if q > q0 && a.fp != nil && h == old[q-1] {
				g[q] = g[q-1]
				continue
			}
			g[q] = w.overwritten(a, h, q)
		}
		c = s.joinEqual(c, prev, lo != a.lo)
		prev, lo = c, hi
	}
}

// writeDRAM is write where there are no partitions.
func (w *Workspace) writeDRAM(a *access) {
	s := a.in
	c := s.span(a.lo, a.hi)
	var prev cursor
	for lo := a.lo; lo < a.hi; c, _ = s.next(c) {
		g, hi := s.at(c), s.end(c)
		x, known := w.changeOf(g[0])
		if !x.done {
			out := w.scan(a, g[0].w, ir.DepOutput, lo, hi)
			x.done = w.scan(a, g[0].r, ir.DepAnti, lo, hi) && out
		}
		if !known {
			x.new = w.overwritten(a, g[0], 0)
		}
		g[0] = x.new
		c = s.joinEqual(c, prev, lo != a.lo)
		prev, lo = c, hi
	}
}

// joinEqual drops the segment at c if its history equals that of prev, which is the one before it when there is one.
func (s *segments) joinEqual(c, prev cursor, before bool) cursor {
	if before && c.d == prev.d && c.k == prev.k+1 && slices.Equal(s.at(prev), s.at(c)) {
		return s.join(c)
	}
	return c
}

// overwritten is a history after a write in a quadrant.
func (w *Workspace) overwritten(a *access, h history, q int) history {
	if w.covers(a, h.w, q) && w.covers(a, h.r, q) {
		if a.alone == 0 {
			a.alone = w.push(a, 0)
		}
		return history{w: a.alone}
	}
	ow, or := w.uncovered(a, h.w, q), w.uncovered(a, h.r, q)
	if w.depth(ow)+w.depth(or) < maxHistory {
		return history{w.push(a, ow), or}
	}
	w.bundle(a, ow)
	w.bundle(a, or)
	b := w.push(a, 0)
	w.entries[b].p0, w.entries[b].p1 = 0, a.in.parts()
	w.entries[b].depth |= bundleBit
	return history{w: b}
}

// covers reports whether a write hides every entry of a list in a quadrant.
func (w *Workspace) covers(a *access, head uint32, q int) bool {
	for at := head; at != 0; {
		e := &w.entries[at]
		if !w.hides(a, e, q) {
			return false
		}
		at = e.next
	}
	return true
}

// hides reports whether a write leaves nothing of an entry in a quadrant of a segment. Of the entries that a pattern meets it
// hides those of the same pattern: what a loop writes again and again would otherwise fill the history.
func (w *Workspace) hides(a *access, e *entry, q int) bool {
	if a.fp != nil {
		return e.fp != 0 && w.prints[e.fp] == *a.fp
	}
	return max(int(e.p0), 32*q) >= int(a.p0) && min(int(e.p1), 32*q+32) <= int(a.p1)
}

// uncovered is the list without what the write hides in a quadrant.
func (w *Workspace) uncovered(a *access, head uint32, q int) uint32 {
	out, same := uint32(0), true
	for at := head; at != 0; at = w.entries[at].next {
		if w.hides(a, &w.entries[at], q) {
			same = false
		}
	}
	if same {
		return head
	}
	for at := head; at != 0; {
		e := w.entries[at]
		if !w.hides(a, &e, q) {
			d := min(w.depth(out)+1, maxDepth)
			at, e.next = e.next, out
			e.depth = e.depth&bundleBit | uint16(d)
			w.entries = append(w.entries, e)
			out = uint32(len(w.entries) - 1)
			continue
		}
		at = e.next
	}
	return out
}

// bundle orders the access after every entry of a list, so that it may stand for them.
func (w *Workspace) bundle(a *access, head uint32) {
	for at := head; at != 0; {
		e := &w.entries[at]
		if e.inst != a.inst {
			w.edge(e.inst, ir.DepOrdered)
		}
		at = e.next
	}
}
