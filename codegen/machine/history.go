package machine

import (
	"cmp"
	"slices"
)

// epoch is an access: clock counts what a thread did, from 1; zero is none. Threads 0 to 4 are the engines, whose clock
// counts bundles; thread firstSlot+s is semaphore s of a DMA ring, whose clock counts transfers. part tells the parts of one
// transfer apart.
type epoch struct {
	clock  uint32
	thread uint16
	part   uint8
	_      uint8
}

const (
	firstSlot  = 5
	numThreads = firstSlot + 256
	manyReads  = 0xFFFF // thread of an epoch whose clock is the head of a list of epochs
	mixedParts = 0xFF   // several parts of a transfer
)

// cell is the history of a rectangle of bytes lo..hi of a page in partitions p0..p1: its last write, and the reads since that
// nothing later is known to follow (FastTrack, Flanagan and Freund 2009: one epoch where reads are ordered, a list where
// they are not).
type cell struct {
	lo, hi uint32
	w, r   epoch
	p0, p1 uint8
}

// readNode is an element of a list of reads. Lists are shared by cells and never change.
type readNode struct {
	e    epoch
	next uint32
}

// span is a run of bytes.
type span struct{ lo, hi int }

// history holds, for each space, the cells of its pages. Cells of a page are sorted by (lo, p0); those with equal lo have
// equal hi and form a column; columns are disjoint in bytes, the cells of a column in partitions. Bytes that nothing touched
// have no cell. One access rewrites each page that it touches in one merge, so its cost is that of the page and its own
// runs; a page's size bounds both.
type history struct {
	spaces []spaceHistory
	nodes  []readNode
	race   *race // is told of accesses that are not ordered

	scratchCells []cell
	scratchRuns  []span
	scratchPage  []span
	scratchAt    []int32

	// The access at hand.
	now      epoch
	engine   uint16 // that makes it, or triggered it
	write    bool
	know     *[numThreads]uint32
	space    uint32
	pageBase int
	memoWas  uint32 // list of reads that the access has extended, and what it became
	memoIs   epoch
	accesses int64
}

type spaceHistory struct {
	shift uint
	pages [][]cell
}

const (
	sbShift   = 12
	psumShift = 11 // a bank
	dramShift = 15

	// maxRuns bounds the runs of one access that are told apart; beyond it the bounding interval stands for them.
	maxRuns = 1 << 16
)

func (h *history) open(l *layout) {
	n := len(l.def.Vars) + spaceVars
	h.spaces = make([]spaceHistory, n)
	h.nodes = append(h.nodes[:0], readNode{})
	for s := range h.spaces {
		_, bytes := 0, 0
		shift := uint(dramShift)
		switch s {
		case spaceSB:
			shift, bytes = sbShift, l.gen.SBBytes
		case spacePSUM:
			shift, bytes = psumShift, l.gen.PSUMBanks*l.gen.BankBytes
		default:
			if s == spaceVars || l.constant(uint32(s)) || l.home[s-spaceVars].space != uint32(s) {
				continue
			}
			bytes = int(l.def.Vars[s-spaceVars].Size)
		}
		h.spaces[s] = spaceHistory{shift, make([][]cell, (bytes+1<<shift-1)>>shift)}
	}
}

// record enters the access a by now. Byte axes become sorted runs, partition axes one range of partitions where they tile
// one, else one rectangle each.
func (h *history) record(a *access) {
	if h.spaces[a.space].pages == nil {
		return // never written
	}
	h.accesses++
	h.space, h.write, h.memoWas = a.space, a.write, 0
	p0, p1, off, run := a.part, a.part+a.parts, a.off, a.dt.Size()
	var step, num [4]int // byte axes, ascending
	n := 0
	var loop [4]int // axes that need a rectangle each
	loops, rects := 0, 1
	for d := 0; d < a.n; d++ {
		c, s, dp := a.num[d], a.step[d], a.dp[d]
		switch {
		case c == 1 || s == 0 && dp == 0:
		case dp == 0:
			if s < 0 {
				off += s * (c - 1)
				s = -s
			}
			j := n
			for j > 0 && step[j-1] > s {
				step[j], num[j] = step[j-1], num[j-1]
				j--
			}
			step[j], num[j] = s, c
			n++
		case s == 0 && dp == p1-p0:
			p1 += dp * (c - 1)
		case s == 0 && -dp == p1-p0:
			p0 += dp * (c - 1)
		default:
			loop[loops] = d
			loops++
			rects *= min(c, maxRuns)
		}
	}
	// Axes that continue the run below them lengthen it.
	k := 0
	for i := 0; i < n; i++ {
		if k == 0 && step[i] <= run {
			run += step[i] * (num[i] - 1)
			continue
		}
		step[k], num[k] = step[i], num[i]
		k++
	}
	n = k
	if rects > maxRuns {
		lo, hi := off, off+run
		for i := 0; i < n; i++ {
			hi += step[i] * (num[i] - 1)
		}
		for _, d := range loop[:loops] {
			if w := a.step[d] * (a.num[d] - 1); w < 0 {
				lo += w
			} else {
				hi += w
			}
			if w := a.dp[d] * (a.num[d] - 1); w < 0 {
				p0 += w
			} else {
				p1 += w
			}
		}
		h.dense(uint8(p0), uint8(p1), lo, hi)
		return
	}
	var idx [4]int
	for {
		q, at := 0, off
		for i, d := range loop[:loops] {
			q += idx[i] * a.dp[d]
			at += idx[i] * a.step[d]
		}
		h.rectangle(uint8(p0+q), uint8(p1+q), at, run, step[:n], num[:n])
		i := 0
		for ; i < loops; i++ {
			if idx[i]++; idx[i] < a.num[loop[i]] {
				break
			}
			idx[i] = 0
		}
		if i == loops {
			return
		}
	}
}

// rectangle enters runs of the same length in partitions p0..p1.
func (h *history) rectangle(p0, p1 uint8, off, run int, step, num []int) {
	total := 1
	for _, c := range num {
		total *= min(c, maxRuns+1)
	}
	if len(num) == 0 || total > maxRuns {
		hi := off + run
		for i := range num {
			hi += step[i] * (num[i] - 1)
		}
		h.dense(p0, p1, off, hi)
		return
	}
	runs := h.scratchRuns[:0]
	sorted := true
	var idx [4]int
	for {
		at := off
		for i := range num {
			at += idx[i] * step[i]
		}
		if k := len(runs) - 1; k >= 0 && at <= runs[k].hi {
			if at < runs[k].lo {
				sorted = false
				runs = append(runs, span{at, at + run})
			} else {
				runs[k].hi = max(runs[k].hi, at+run)
			}
		} else {
			runs = append(runs, span{at, at + run})
		}
		i := 0
		for ; i < len(num); i++ {
			if idx[i]++; idx[i] < num[i] {
				break
			}
			idx[i] = 0
		}
		if i == len(num) {
			break
		}
	}
	if !sorted {
		slices.SortFunc(runs, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
		k := 0
		for _, r := range runs[1:] {
			if r.lo <= runs[k].hi {
				runs[k].hi = max(runs[k].hi, r.hi)
			} else {
				k++
				runs[k] = r
			}
		}
		runs = runs[:k+1]
	}
	h.scratchRuns = runs
	// Cut at page borders, a page at a time.
	s := &h.spaces[h.space]
	size := 1 << s.shift
	page := h.scratchPage[:0]
	at := runs[0].lo >> s.shift
	for _, r := range runs {
		for r.lo < r.hi {
			if pg := r.lo >> s.shift; pg != at {
				h.merge(s, at, page, p0, p1)
				page, at = page[:0], pg
			}
			base := at << s.shift
			end := min(r.hi, base+size)
			page = append(page, span{r.lo - base, end - base})
			r.lo = end
		}
	}
	h.merge(s, at, page, p0, p1)
	h.scratchPage = page
}

// dense enters one run.
func (h *history) dense(p0, p1 uint8, lo, hi int) {
	s := &h.spaces[h.space]
	var one [1]span
	for lo < hi {
		pg := lo >> s.shift
		base := pg << s.shift
		end := min(hi, base+1<<s.shift)
		one[0] = span{lo - base, end - base}
		h.merge(s, pg, one[:], p0, p1)
		lo = end
	}
}

// merge enters sorted disjoint runs into one page.
func (h *history) merge(s *spaceHistory, pg int, runs []span, p0, p1 uint8) {
	cells := s.pages[pg]
	h.pageBase = pg << s.shift
	if h.again(cells, runs, p0, p1) {
		return
	}
	out := h.scratchCells[:0]
	i, col := 0, 0 // next cell; where the column being written begins
	from := uint32(0)
	if len(cells) > 0 {
		from = cells[0].lo
	}
	// column copies the cells of the column at i, cut to lo..hi; touched ones are entered where the partitions agree.
	column := func(lo, hi uint32, touched bool) {
		col = len(out)
		q := p0
		for j := i; j < len(cells) && cells[j].lo == cells[i].lo; j++ {
			c := cells[j]
			c.lo, c.hi = lo, hi
			if !touched || c.p1 <= p0 {
				out = push(out, col, c)
				continue
			}
			if c.p0 >= p1 {
				out, q = h.fresh(out, col, lo, hi, q, p1)
				out = push(out, col, c)
				continue
			}
			if c.p0 < p0 {
				part := c
				part.p1 = p0
				out = push(out, col, part)
				c.p0 = p0
			}
			out, _ = h.fresh(out, col, lo, hi, q, c.p0)
			part := c
			part.p1 = min(c.p1, p1)
			h.apply(&part)
			out = push(out, col, part)
			q = part.p1
			if c.p1 > p1 {
				c.p0 = p1
				out = push(out, col, c)
			}
		}
		if touched {
			out, _ = h.fresh(out, col, lo, hi, q, p1)
		}
		out = join(out, col)
	}
	skip := func() {
		lo := cells[i].lo
		for i < len(cells) && cells[i].lo == lo {
			i++
		}
		if i < len(cells) {
			from = cells[i].lo
		}
	}
	for _, r := range runs {
		a, b := uint32(r.lo), uint32(r.hi)
		for a < b {
			switch {
			case i < len(cells) && cells[i].hi <= a:
				column(from, cells[i].hi, false)
				skip()
			case i == len(cells) || from >= b: // nothing here yet
				col = len(out)
				out, _ = h.fresh(out, col, a, b, p0, p1)
				out = join(out, col)
				a = b
			case from > a:
				col = len(out)
				out, _ = h.fresh(out, col, a, from, p0, p1)
				out = join(out, col)
				a = from
			case from < a:
				column(from, a, false)
				from = a
			default:
				end := min(cells[i].hi, b)
				column(a, end, true)
				if a = end; end == cells[i].hi {
					skip()
				} else {
					from = end
				}
			}
		}
	}
	for i < len(cells) {
		column(from, cells[i].hi, false)
		skip()
	}
	h.scratchCells = out
	s.pages[pg] = append(cells[:0], out...)
}

// again serves the usual case, the same tile as before: each run has a cell of its own size, and nothing moves. It reports
// false, with nothing entered, when some run has none.
func (h *history) again(cells []cell, runs []span, p0, p1 uint8) bool {
	at := h.scratchAt[:0]
	i := 0
	for _, r := range runs {
		a := uint32(r.lo)
		end := len(cells)
		for end-i > 8 {
			if mid := (i + end) / 2; cells[mid].lo < a {
				i = mid
			} else {
				end = mid + 1
			}
		}
		for i < len(cells) && (cells[i].lo < a || cells[i].lo == a && cells[i].p0 < p0) {
			i++
		}
		if i == len(cells) {
			return false
		}
		if c := &cells[i]; c.lo != a || c.hi != uint32(r.hi) || c.p0 != p0 || c.p1 != p1 {
			return false
		}
		at = append(at, int32(i))
	}
	h.scratchAt = at
	for _, i := range at {
		h.apply(&cells[i])
	}
	return true
}

// fresh enters the access into partitions q..end of a column that nothing touched.
func (h *history) fresh(out []cell, col int, lo, hi uint32, q, end uint8) ([]cell, uint8) {
	if q >= end {
		return out, q
	}
	c := cell{lo: lo, hi: hi, p0: q, p1: end}
	h.apply(&c)
	return push(out, col, c), end
}

// push appends a cell to the column that begins at col, or lets the last one grow.
func push(out []cell, col int, c cell) []cell {
	if k := len(out) - 1; k >= col && out[k].p1 == c.p0 && out[k].w == c.w && out[k].r == c.r {
		out[k].p1 = c.p1
		return out
	}
	return append(out, c)
}

// join drops the column that begins at col when the one before it ends where it begins and says the same.
func join(out []cell, col int) []cell {
	n := len(out) - col
	if n == 0 || col < n || out[col-1].hi != out[col].lo {
		return out
	}
	if col > n && out[col-n-1].lo == out[col-1].lo {
		return out // the column before has more cells
	}
	for i := 0; i < n; i++ {
		a, b := &out[col-n+i], &out[col+i]
		if a.lo != out[col-1].lo || a.p0 != b.p0 || a.p1 != b.p1 || a.w != b.w || a.r != b.r {
			return out
		}
	}
	hi := out[col].hi
	for i := 0; i < n; i++ {
		out[col-n+i].hi = hi
	}
	return out[:col]
}

// apply enters the access into one cell.
func (h *history) apply(c *cell) {
	if c.w.clock != 0 && !h.ordered(c.w) {
		h.race.conflict(c.w, true, *c)
	}
	if h.write {
		switch {
		case c.r.clock == 0:
		case c.r.thread != manyReads:
			if !h.ordered(c.r) {
				h.race.conflict(c.r, false, *c)
			}
		default:
			for k := c.r.clock; k != 0; k = h.nodes[k].next {
				if e := h.nodes[k].e; !h.ordered(e) {
					h.race.conflict(e, false, *c)
				}
			}
		}
		c.w, c.r = h.now, epoch{}
		return
	}
	c.r = h.read(c.r)
}

// read adds the access to the reads of a cell and drops those that it is known to follow.
func (h *history) read(was epoch) epoch {
	switch {
	case was.clock == 0 || was == h.now:
		return h.now
	case was.thread != manyReads:
		if was.thread == h.now.thread {
			return h.same(was)
		}
		if h.ordered(was) {
			return h.now
		}
		return h.list(h.now, h.list(was, epoch{}))
	case was.clock == h.memoWas:
		return h.memoIs
	}
	out, n, now := epoch{}, 0, h.now
	for k := was.clock; k != 0; k = h.nodes[k].next {
		e := h.nodes[k].e
		if e.thread == h.now.thread {
			now = h.same(e)
		} else if !h.ordered(e) {
			out = h.list(e, out)
			n++
		}
	}
	is := now
	if n > 0 {
		is = h.list(now, out)
	}
	h.memoWas, h.memoIs = was.clock, is
	return is
}

// same is the read that stands for an earlier one of the same thread and for the access.
func (h *history) same(was epoch) epoch {
	e := h.now
	if was.clock == e.clock && was.part != e.part {
		e.part = mixedParts
	}
	return e
}

func (h *history) list(e, rest epoch) epoch {
	h.nodes = append(h.nodes, readNode{e, rest.clock})
	return epoch{clock: uint32(len(h.nodes) - 1), thread: manyReads}
}

// ordered reports whether the access at hand is known to follow an earlier one.
func (h *history) ordered(was epoch) bool {
	if was.thread == h.engine {
		return true // bundles retire in order, and before what they trigger
	}
	if was.thread == h.now.thread && was.clock == h.now.clock {
		return was.part == h.now.part // descriptors of a part run in order, parts do not
	}
	return h.know[was.thread] >= was.clock
}
