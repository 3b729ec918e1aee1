package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
)

// inf is above every offset. Sums of two stay below the largest int64.
const inf = int64(math.MaxInt64 / 4)

// model is a problem as placement sees it. Movable buffers that are live and have bytes get the dense numbers 0 to n-1;
// everything else is settled: fixed ones are obstacles, and what never occupies a byte lies at offset 0.
type model struct {
	n int   // movable buffers
	s int32 // sections

	row    []uint32 // of the problem, by movable buffer
	lo, hi []int32  // sections from the first to the last: [lo, hi)
	size   []int64
	align  []int64

	first  []uint32 // stretches of u are stretch[first[u]:first[u+1]], ascending
	parts  []part
	length []int64 // moments between the first and the last

	obs []obstacle // by lower end

	load     []int64 // of each section, obstacles included
	bound    int64   // no layout is lower: the largest load, the largest buffer, the highest end of a fixed one
	fixedTop int64
	aligned  bool // some alignment is above 1
	gapped   bool // some movable buffer is away for a while
	windowed bool // or keeps only some of its bytes

	sort          *arena.Sorter
	scratchPieces []piece
	scratchEnds   []uint32
}

// part is a stretch of sections in which a buffer occupies its bytes [bLo, bHi).
type part struct {
	lo, hi   int32
	bLo, bHi int64
}

// obstacle is a rectangle that is taken: sections [lo, hi), bytes [a, b).
type obstacle struct {
	lo, hi int32
	a, b   int64
}

// piece is a part in moments, before there are sections.
type piece struct {
	row        uint32
	lo, hi     int32
	start, end int64
	bLo, bHi   int64
}

// build fills the model from a valid problem.
func (m *model) build(p *Problem) {
	*m = model{
		row: m.row[:0], lo: m.lo[:0], hi: m.hi[:0], size: m.size[:0], align: m.align[:0], first: m.first[:0], parts: m.parts[:0],
		length: m.length[:0], obs: m.obs[:0], load: m.load[:0],
		sort: m.sort, scratchPieces: m.scratchPieces[:0], scratchEnds: m.scratchEnds[:0],
	}
	// Sized at once: doubling would leave behind as much as is used, which counts on large problems.
	n := len(p.Size)
	m.row, m.lo, m.hi = slices.Grow(m.row, n), slices.Grow(m.lo, n), slices.Grow(m.hi, n)
	m.size, m.align, m.length = slices.Grow(m.size, n), slices.Grow(m.align, n), slices.Grow(m.length, n)
	m.first, m.parts = slices.Grow(m.first, n+1), slices.Grow(m.parts, n)
	m.scratchPieces, m.scratchEnds = slices.Grow(m.scratchPieces, n), slices.Grow(m.scratchEnds, n)
	m.cut(p)
	m.sweep()
	m.settle(p)
}

// cut makes the pieces: lifetimes cut at gaps.
func (m *model) cut(p *Problem) {
	for i, size := range p.Size {
		at, end := p.Lower[i], p.Upper[i]
		if size == 0 || at == end {
			continue
		}
		if p.Gaps[i].Len > 0 {
			for _, g := range p.gaps(i) {
				if at < g.Lower {
					m.scratchPieces = append(m.scratchPieces, piece{row: uint32(i), start: at, end: g.Lower, bHi: size})
				}
				if g.Lo < g.Hi {
					m.scratchPieces = append(m.scratchPieces, piece{row: uint32(i), start: g.Lower, end: g.Upper, bLo: g.Lo, bHi: g.Hi})
				}
				at = g.Upper
			}
		}
		if at < end {
			m.scratchPieces = append(m.scratchPieces, piece{row: uint32(i), start: at, end: end, bHi: size})
		}
	}
}

// sweep numbers the sections and gives each piece its own. At one moment, ends come before starts.
func (m *model) sweep() {
	ps := m.scratchPieces
	m.sort.Start(len(ps))
	m.sort.By(func(i uint32) uint64 { return uint64(ps[i].end) })
	for _, it := range m.sort.Items {
		m.scratchEnds = append(m.scratchEnds, it.ID)
	}
	m.sort.Start(len(ps))
	m.sort.By(func(i uint32) uint64 { return uint64(ps[i].start) })
	load, grew, ended := int64(0), false, 0
	end := func() {
		if grew {
			m.load = append(m.load, load)
			grew = false
		}
		pc := &ps[m.scratchEnds[ended]]
		pc.hi = int32(len(m.load))
		load -= pc.bHi - pc.bLo
		ended++
	}
	for _, it := range m.sort.Items {
		pc := &ps[it.ID]
		for ps[m.scratchEnds[ended]].end <= pc.start {
			end()
		}
		pc.lo = int32(len(m.load))
		load += pc.bHi - pc.bLo
		grew = true
	}
	for ended < len(ps) {
		end()
	}
	m.s = int32(len(m.load))
	for _, l := range m.load {
		m.bound = max(m.bound, l)
	}
}

// settle splits the pieces into those of movable buffers and obstacles. Where there are many, movable ones are numbered in the order of time, so that
// neighbours in time are neighbours in memory whatever the order of the rows.
func (m *model) settle(p *Problem) {
	ps := m.scratchPieces
	if len(ps) > maxWindowBits {
		for _, it := range m.sort.Items { // by start, from sweep
			if i := int(it.ID); i == 0 || ps[i-1].row != ps[i].row {
				m.settleRow(p, i)
			}
		}
	} else {
		for i := 0; i < len(ps); {
			i = m.settleRow(p, i)
		}
	}
	m.n = len(m.row)
	m.first = append(m.first, uint32(len(m.parts)))
	m.bound = max(m.bound, m.fixedTop)
	slices.SortFunc(m.obs, func(x, y obstacle) int {
		if c := cmp.Compare(x.a, y.a); c != 0 {
			return c
		}
		return int(x.lo) - int(y.lo)
	})
}

// settleRow takes the pieces of a row, from the first on, and returns where the next row begins.
func (m *model) settleRow(p *Problem, i int) int {
	ps := m.scratchPieces
	r := ps[i].row
	j := i + 1
	for j < len(ps) && ps[j].row == r {
		j++
	}
	if off := p.Fixed[r]; off != None {
		for ; i < j; i++ {
			m.obs = append(m.obs, obstacle{ps[i].lo, ps[i].hi, off + ps[i].bLo, off + ps[i].bHi})
		}
		m.fixedTop = max(m.fixedTop, off+p.Size[r])
		return j
	}
	m.row = append(m.row, r)
	m.lo, m.hi = append(m.lo, ps[i].lo), append(m.hi, ps[j-1].hi)
	m.length = append(m.length, ps[j-1].end-ps[i].start)
	m.size, m.align = append(m.size, p.Size[r]), append(m.align, p.Align[r])
	m.first = append(m.first, uint32(len(m.parts)))
	m.bound = max(m.bound, p.Size[r])
	m.aligned = m.aligned || p.Align[r] > 1
	m.gapped = m.gapped || j > i+1
	for ; i < j; i++ {
		pc := &ps[i]
		m.parts = append(m.parts, part{pc.lo, pc.hi, pc.bLo, pc.bHi})
		m.windowed = m.windowed || pc.bHi-pc.bLo != p.Size[r]
	}
	return j
}

func (m *model) partsOf(u uint32) []part { return m.parts[m.first[u]:m.first[u+1]] }

// alignUp is the least multiple of a that is not below x.
func alignUp(x, a int64) int64 {
	if a == 1 {
		return x
	}
	if r := x % a; r != 0 {
		return x + a - r
	}
	return x
}
