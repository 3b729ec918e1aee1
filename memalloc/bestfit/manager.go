package bestfit

import "math/bits"

// Block is a rectangle: rows [Row, Row+Rows) over units [Lo, Hi).
type Block struct {
	Lo, Hi    uint32
	Row, Rows uint8
}

// Request is what Place looks for.
type Request struct {
	// Rows is the height and Starts the rows at which it may begin, a bit each.
	Rows, Starts uint8
	// Len is the length, Align what its first unit must be a multiple of; 0 is 1.
	Len, Align uint32
}

// Corner is where in a free rectangle a block goes.
type Corner uint8

const (
	LowerLeft Corner = iota // first unit, lowest row
	UpperLeft               // first unit, flush with the highest row
	Right                   // last unit, lowest row at which it may begin
	NoCorner
)

// taken is a block that has an owner.
type taken struct {
	Block
	owner uint32
	next  uint32 // 1 + the next in its hash chain, or in the list of unused rows; 0 is the end
}

// Manager hands out the grid. Reset it before use. Not for concurrent use.
type Manager struct {
	rows  int
	size  uint32
	free  int64 // cells
	spans []span

	blocks []taken
	unused uint32   // 1 + the first unused row of blocks
	chains []uint32 // by hash: 1 + the first block
	live   int

	// Corners counts the blocks that Place put in each.
	Corners [NoCorner]int

	median, tail Quantile
}

// Reset empties the manager and makes it a grid of rows (at most MaxRows) × size units, all free.
func (m *Manager) Reset(rows int, size uint32) {
	if rows < 1 || rows > MaxRows {
		panic("bestfit: a grid has 1 to 4 rows")
	}
	m.rows, m.size = rows, size
	m.free = int64(rows) * int64(size)
	if m.spans == nil {
		m.spans = make([]span, 0, maxSpans)
		m.chains = make([]uint32, 64)
	}
	m.spans = lay(m.spans, rows, size)
	m.blocks, m.unused, m.live = m.blocks[:0], 0, 0
	clear(m.chains)
	m.Corners = [NoCorner]int{}
	m.median.Reset(0.5)
	m.tail.Reset(0.9)
}

// Place finds a block for an owner and takes it: the first corner at which any maximal free rectangle has room, there the
// rectangle that leaves the least area, of equal ones the one with the lowest unit, then row.
func (m *Manager) Place(owner uint32, q Request) (b Block, ok bool) {
	for c := range NoCorner {
		if c == UpperLeft && m.rows == 1 {
			break // a row has no corners, and its left end is tried
		}
		if b, ok = m.best(&q, c); ok {
			m.Corners[c]++
			m.take(owner, b)
			m.observe()
			return b, true
		}
	}
	return Block{}, false
}

// best is the block that the best rectangle offers at one corner.
func (m *Manager) best(q *Request, c Corner) (best Block, ok bool) {
	if q.Len == 0 || q.Len > m.size {
		return best, false
	}
	area, first, row := ^uint64(0), uint32(0), uint8(0)
	for i := range m.spans {
		s := &m.spans[i]
		start, fits := s.start(q, c)
		if !fits {
			continue
		}
		for k := lowerBound(s.size, pack(q.Len, 0)); k < len(s.size); k++ {
			length, lo := unpack(s.size[k])
			a := uint64(length) * uint64(s.rows)
			if a > area || a == area && (lo > first || lo == first && s.row >= row) {
				break
			}
			at, fits := fit(q, lo, lo+length, c)
			if !fits || !m.maximal(s, lo, lo+length) {
				continue
			}
			area, first, row = a, lo, s.row
			best, ok = Block{Lo: at, Hi: at + q.Len, Row: start, Rows: q.Rows}, true
			break
		}
	}
	return best, ok
}

// start is the row at which a block begins at a corner of a rectangle over the stretch.
func (s *span) start(q *Request, c Corner) (row uint8, ok bool) {
	if s.rows < q.Rows {
		return 0, false
	}
	top := s.row + s.rows - q.Rows
	switch c {
	case LowerLeft:
		row = s.row
	case UpperLeft:
		row = top
	default:
		row = s.row + uint8(bits.TrailingZeros8(q.Starts>>s.row))
	}
	return row, row <= top && q.Starts>>row&1 != 0
}

// fit is the first unit of a block in a free interval, at its left or right end.
func fit(q *Request, lo, hi uint32, c Corner) (at uint32, ok bool) {
	align := uint64(max(1, q.Align))
	at64 := (uint64(lo) + align - 1) / align * align
	if c == Right {
		at64 = uint64(hi-q.Len) / align * align
	}
	return uint32(at64), at64 >= uint64(lo) && at64+uint64(q.Len) <= uint64(hi)
}

// maximal reports that no taller stretch is free over the interval.
func (m *Manager) maximal(s *span, lo, hi uint32) bool {
	for _, t := range s.taller {
		if t >= 0 && m.spans[t].holds(lo, hi) {
			return false
		}
	}
	return true
}

// Reserve takes what is free of a block for an owner: what others have of it stays theirs. What lies outside of the grid is
// ignored.
func (m *Manager) Reserve(owner uint32, b Block) {
	b.Hi = min(b.Hi, m.size)
	end := min(int(b.Row)+int(b.Rows), m.rows)
	for i := range m.spans {
		s := &m.spans[i]
		whole := s.row == b.Row && int(s.row)+int(s.rows) == end && s.holds(b.Lo, b.Hi)
		if whole && b.Lo < b.Hi {
			m.take(owner, Block{b.Lo, b.Hi, s.row, s.rows})
			return
		}
	}
	for row := int(b.Row); row < end; row++ {
		s := &m.spans[row] // single rows come first
		for x := b.Lo; x < b.Hi; {
			i := s.after(x)
			if i == len(s.addr) {
				break
			}
			lo, hi := unpack(s.addr[i])
			lo, hi = max(lo, b.Lo), min(hi, b.Hi)
			if lo >= hi {
				break
			}
			m.take(owner, Block{lo, hi, uint8(row), 1})
			x = hi
		}
	}
}

// take makes a free block an owner's.
func (m *Manager) take(owner uint32, b Block) {
	for i := range m.spans {
		if s := &m.spans[i]; s.row < b.Row+b.Rows && b.Row < s.row+s.rows {
			s.cut(b.Lo, b.Hi)
		}
	}
	m.free -= b.cells()
	if m.live++; m.live > len(m.chains) {
		m.rehash()
	}
	k := m.unused
	if k != 0 {
		m.unused = m.blocks[k-1].next
	} else {
		m.blocks = append(m.blocks, taken{})
		k = uint32(len(m.blocks))
	}
	chain := m.chain(owner)
	m.blocks[k-1] = taken{b, owner, *chain}
	*chain = k
}

// Free gives back all blocks of an owner and reports whether it had any.
func (m *Manager) Free(owner uint32) (had bool) {
	for at := m.chain(owner); *at != 0; {
		k := *at
		x := &m.blocks[k-1]
		if x.owner != owner {
			at = &x.next
			continue
		}
		had = true
		b := x.Block
		*at = x.next
		*x, m.unused = taken{next: m.unused}, k
		m.live--
		m.give(b)
	}
	return had
}

// give makes a block free: each stretch that shares rows with it gains the parts over which its other rows are free.
func (m *Manager) give(b Block) {
	for i := range m.spans {
		s := &m.spans[i]
		if s.row >= b.Row+b.Rows || b.Row >= s.row+s.rows {
			continue
		}
		for x := b.Lo; x < b.Hi; {
			lo, hi := m.run(s, &b, x)
			if lo >= b.Hi {
				break
			}
			s.join(lo, hi)
			x = hi
		}
	}
	m.free += b.cells()
}

// run is the first stretch of units from x on, within the block, over which the rows of s that the block lacks are free.
func (m *Manager) run(s *span, b *Block, x uint32) (lo, hi uint32) {
	lo = x
again:
	hi = b.Hi
	for row := s.row; row < s.row+s.rows; row++ {
		if row >= b.Row && row < b.Row+b.Rows {
			continue
		}
		o := &m.spans[row]
		i := o.after(lo)
		if i == len(o.addr) {
			return b.Hi, b.Hi
		}
		a, z := unpack(o.addr[i])
		if a >= b.Hi {
			return b.Hi, b.Hi
		}
		if a > lo {
			lo = a
			goto again
		}
		hi = min(hi, z)
	}
	return lo, hi
}

// chain is the head of the hash chain of an owner, by the multiplier of Knuth's multiplicative hashing.
func (m *Manager) chain(owner uint32) *uint32 {
	return &m.chains[owner*2654435769>>(32-bits.Len(uint(len(m.chains)-1)))]
}

func (m *Manager) rehash() {
	m.chains = make([]uint32, 2*len(m.chains))
	for k := range m.blocks {
		if x := &m.blocks[k]; x.Rows != 0 {
			chain := m.chain(x.owner)
			x.next, *chain = *chain, uint32(k+1)
		}
	}
}

// observe feeds the fragmentation to its estimators: the part of the free cells that is outside of the largest free rectangle.
func (m *Manager) observe() {
	f := 0.0
	if m.free > 0 {
		f = 1 - float64(m.largest())/float64(m.free)
	}
	m.median.Add(f)
	m.tail.Add(f)
}

// largest is the area of the largest free rectangle.
func (m *Manager) largest() (area uint64) {
	for i := range m.spans {
		if s := &m.spans[i]; len(s.size) > 0 {
			length, _ := unpack(s.size[len(s.size)-1])
			area = max(area, uint64(length)*uint64(s.rows))
		}
	}
	return area
}

// Fragmentation is the median and the 90th percentile, over all calls of Place that succeeded since Reset, of the part of the
// free cells that is outside of the largest free rectangle.
func (m *Manager) Fragmentation() (median, tail float64) { return m.median.Value(), m.tail.Value() }

func (b *Block) cells() int64 { return int64(b.Hi-b.Lo) * int64(b.Rows) }
