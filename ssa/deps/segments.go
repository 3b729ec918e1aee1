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

// segment is the history of the bytes from lo to the next segment: the writers that show and the readers since, as heads
// of entry lists by partition quadrant.
type segment struct {
	lo   int64
	w, r [quadrants]uint32
}

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

type chunk struct {
	n    int
	segs [chunkSize]segment
}

// segments is an ordered map of intervals in chunks: a split moves at most one chunk and the directory.
type segments struct {
	chunks []chunk
	free   int // chunks in use
	dir    []uint32
	first  []int64 // lowest key of each chunk of dir
}

func (s *segments) reset() {
	s.free = 0
	s.dir, s.first = s.dir[:0], s.first[:0]
	c := s.newChunk()
	s.chunks[c].n = 1
	s.chunks[c].segs[0] = segment{}
	s.dir, s.first = append(s.dir, c), append(s.first, 0)
}

func (s *segments) newChunk() uint32 {
	if s.free == len(s.chunks) {
		s.chunks = append(s.chunks, chunk{})
	}
	s.free++
	s.chunks[s.free-1].n = 0
	return uint32(s.free - 1)
}

// cursor is a place in the map.
type cursor struct{ d, k int }

// find is the segment that holds key.
func (s *segments) find(key int64) cursor {
	lo, hi := 0, len(s.first)
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) >> 1); s.first[mid] <= key {
			lo = mid
		} else {
			hi = mid
		}
	}
	c := &s.chunks[s.dir[lo]]
	a, b := 0, c.n
	for b-a > 1 {
		if mid := int(uint(a+b) >> 1); c.segs[mid].lo <= key {
			a = mid
		} else {
			b = mid
		}
	}
	return cursor{lo, a}
}

func (s *segments) at(c cursor) *segment { return &s.chunks[s.dir[c.d]].segs[c.k] }

// next moves to the following segment; ok is false at the end of the map.
func (s *segments) next(c cursor) (cursor, bool) {
	if c.k+1 < s.chunks[s.dir[c.d]].n {
		return cursor{c.d, c.k + 1}, true
	}
	return cursor{c.d + 1, 0}, c.d+1 < len(s.dir)
}

// end is the first key beyond the segment.
func (s *segments) end(c cursor) int64 {
	ch := &s.chunks[s.dir[c.d]]
	if c.k+1 < ch.n {
		return ch.segs[c.k+1].lo
	}
	if c.d+1 < len(s.first) {
		return s.first[c.d+1]
	}
	return int64(^uint64(0) >> 1)
}

// split makes key the start of a segment and gives its place.
func (s *segments) split(key int64) cursor {
	c := s.find(key)
	if s.at(c).lo == key {
		return c
	}
	ch := &s.chunks[s.dir[c.d]]
	if ch.n == chunkSize {
		const half = chunkSize / 2
		id := s.newChunk()
		ch = &s.chunks[s.dir[c.d]]
		nc := &s.chunks[id]
		copy(nc.segs[:half], ch.segs[half:])
		nc.n, ch.n = half, half
		s.dir = slices.Insert(s.dir, c.d+1, id)
		s.first = slices.Insert(s.first, c.d+1, nc.segs[0].lo)
		if c.k >= half {
			c = cursor{c.d + 1, c.k - half}
			ch = nc
		}
	}
	copy(ch.segs[c.k+2:ch.n+1], ch.segs[c.k+1:ch.n])
	ch.segs[c.k+1] = ch.segs[c.k]
	ch.segs[c.k+1].lo = key
	ch.n++
	return cursor{c.d, c.k + 1}
}

// join drops the segment at c, whose history equals that of its left neighbour in the same chunk.
func (s *segments) join(c cursor) cursor {
	ch := &s.chunks[s.dir[c.d]]
	copy(ch.segs[c.k:ch.n-1], ch.segs[c.k+1:ch.n])
	ch.n--
	return cursor{c.d, c.k - 1}
}

// access is one operand being entered, run by run where it has several. lo and hi are keys; base is the key of byte 0 of its
// region. The lists at the end are what its runs so far did, so that segments with equal histories cost once.
type access struct {
	inst   ir.Inst
	lo, hi int64
	base   int64
	fp     *ir.Footprint // nil when [lo, hi) is filled
	id     uint32        // of fp in the table, 0 when nil
	p0, p1 uint8

	doneFlow, doneOut, doneAnti uint32 // lists that gave an edge for each entry
	alone                       uint32 // the list of this write only
	read                        bool   // old has become new
	old, new                    uint32 // a readers' list, with this read before it
}

func (a *access) quads() (q0, q1 int) { return int(a.p0) / 32, (int(a.p1) + 31) / 32 }

// hits reports whether an entry and the access touch a common byte of the segment [lo, hi).
func (w *Workspace) hits(a *access, e *entry, lo, hi int64) bool {
	if e.p0 >= a.p1 || a.p0 >= e.p1 {
		return false
	}
	if e.fp == 0 && a.fp == nil {
		return true
	}
	if e.fp != 0 && a.fp != nil {
		return a.fp.Overlaps(&w.prints[e.fp])
	}
	f := a.fp
	if f == nil {
		f = &w.prints[e.fp]
	}
	seg := ir.Footprint{Space: f.Space, Region: f.Region, P0: f.P0, P1: f.P1, Lo: lo - a.base, Hi: hi - a.base, Run: hi - lo}
	return seg.Overlaps(f)
}

// scan adds an edge to every entry of a list that the access hits; all reports that there was none without.
func (w *Workspace) scan(a *access, head uint32, kind ir.DepKind, lo, hi int64) (all bool) {
	all = true
	for at := head; at != 0; {
		e := &w.entries[at]
		switch {
		case e.inst == a.inst:
		case w.hits(a, e, lo, hi):
			w.edge(e.inst, kind)
		case e.depth&bundleBit != 0:
			w.edge(e.inst, ir.DepOrdered)
		default:
			all = false
		}
		at = e.next
	}
	return all
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

// span makes [lo, hi) whole segments and gives the first.
func (s *segments) span(lo, hi int64) cursor {
	c := s.split(lo)
	for e := c; ; {
		end := s.end(e)
		if end == hi {
			return c
		}
		if end > hi {
			s.split(hi)
			return s.find(lo)
		}
		e, _ = s.next(e)
	}
}

// read enters a read: an edge to each writer that shows, and the read in every history that it meets.
func (w *Workspace) read(a *access) {
	s := &w.segs
	c := s.span(a.lo, a.hi)
	q0, q1 := a.quads()
	for ok := true; ok; c, ok = s.next(c) {
		g := s.at(c)
		if g.lo >= a.hi {
			break
		}
		lo, hi := g.lo, s.end(c)
		for q := q0; q < q1; q++ {
			if h := g.w[q]; h != 0 && h != a.doneFlow && (q == q0 || h != g.w[q-1]) && w.scan(a, h, ir.DepFlow, lo, hi) {
				a.doneFlow = h
			}
			r := g.r[q]
			switch {
			case a.read && r == a.old:
				r = a.new
			case a.read && r == a.new:
			case r != 0 && w.entries[r].inst == a.inst && w.entries[r].fp == a.id && w.entries[r].p0 <= a.p0 && a.p1 <= w.entries[r].p1:
			default:
				a.old, a.new, a.read = r, w.push(a, r), true
				r = a.new
			}
			g.r[q] = r
		}
	}
}

// write enters a write: an edge to each writer and reader that it hits. A write that fills its segments replaces what it
// covers; another one is added beside it.
func (w *Workspace) write(a *access) {
	s := &w.segs
	c := s.span(a.lo, a.hi)
	q0, q1 := a.quads()
	var prev cursor
	for first, ok := true, true; ok; c, ok = s.next(c) {
		g := s.at(c)
		if g.lo >= a.hi {
			break
		}
		lo, hi := g.lo, s.end(c)
		ow, or := g.w, g.r
		for q := q0; q < q1; q++ {
			if ow[q] != a.doneOut && (q == q0 || ow[q] != ow[q-1]) && w.scan(a, ow[q], ir.DepOutput, lo, hi) {
				a.doneOut = ow[q]
			}
			if or[q] != a.doneAnti && (q == q0 || or[q] != or[q-1]) && w.scan(a, or[q], ir.DepAnti, lo, hi) {
				a.doneAnti = or[q]
			}
			if a.fp == nil && w.covers(a, ow[q], q) && w.covers(a, or[q], q) {
				if a.alone == 0 {
					a.alone = w.push(a, 0)
				}
				g.w[q], g.r[q] = a.alone, 0
				continue
			}
			if q > q0 && a.fp != nil && ow[q] == ow[q-1] && or[q] == or[q-1] {
				g.w[q], g.r[q] = g.w[q-1], g.r[q-1]
				continue
			}
			nw, nr := ow[q], or[q]
			if a.fp == nil {
				nw, nr = w.uncovered(a, nw, q), w.uncovered(a, nr, q)
			}
			if w.depth(nw)+w.depth(nr) < maxHistory {
				g.w[q], g.r[q] = w.push(a, nw), nr
				continue
			}
			w.bundle(a, nw)
			w.bundle(a, nr)
			b := w.push(a, 0)
			w.entries[b].p0, w.entries[b].p1 = 0, 32*quadrants
			w.entries[b].depth |= bundleBit
			g.w[q], g.r[q] = b, 0
		}
		if !first && c.d == prev.d && c.k == prev.k+1 {
			if p := s.at(prev); p.w == g.w && p.r == g.r {
				c = s.join(c)
			}
		}
		first, prev = false, c
	}
}

// covers reports whether a write that fills the segment hides every entry of a list in a quadrant.
func (w *Workspace) covers(a *access, head uint32, q int) bool {
	for at := head; at != 0; {
		e := &w.entries[at]
		if !a.hides(e, q) {
			return false
		}
		at = e.next
	}
	return true
}

func (a *access) hides(e *entry, q int) bool {
	return max(int(e.p0), 32*q) >= int(a.p0) && min(int(e.p1), 32*q+32) <= int(a.p1)
}

// uncovered is the list without what the write hides in a quadrant.
func (w *Workspace) uncovered(a *access, head uint32, q int) uint32 {
	out, same := uint32(0), true
	for at := head; at != 0; at = w.entries[at].next {
		if a.hides(&w.entries[at], q) {
			same = false
		}
	}
	if same {
		return head
	}
	for at := head; at != 0; {
		e := w.entries[at]
		if !a.hides(&e, q) {
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
