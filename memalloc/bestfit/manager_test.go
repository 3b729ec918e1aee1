package bestfit

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// picture is the grid as a map of cells: 0 is free. It looks for places cell by cell.
type picture struct {
	rows, size int
	cell       [MaxRows][]uint32
}

func (p *picture) reset(rows, size int) {
	p.rows, p.size = rows, size
	for r := range p.cell {
		p.cell[r] = make([]uint32, size)
	}
}

func (p *picture) free(row, rows, lo, hi int) bool {
	if row < 0 || row+rows > p.rows || lo < 0 || hi > p.size {
		return false
	}
	for r := row; r < row+rows; r++ {
		for x := lo; x < hi; x++ {
			if p.cell[r][x] != 0 {
				return false
			}
		}
	}
	return true
}

type rectangle struct{ row, rows, lo, hi int }

// intervals are the longest free stretches of units over given rows.
func (p *picture) intervals(row, rows int) (out []rectangle) {
	for x := 0; x < p.size; x++ {
		if !p.free(row, rows, x, x+1) {
			continue
		}
		y := x
		for y < p.size && p.free(row, rows, y, y+1) {
			y++
		}
		out = append(out, rectangle{row, rows, x, y})
		x = y
	}
	return out
}

// maximal are the free rectangles that no free rectangle contains.
func (p *picture) maximal() (out []rectangle) {
	for row := 0; row < p.rows; row++ {
		for rows := 1; row+rows <= p.rows; rows++ {
			for _, r := range p.intervals(row, rows) {
				if !p.free(row-1, rows+1, r.lo, r.hi) && !p.free(row, rows+1, r.lo, r.hi) {
					out = append(out, r)
				}
			}
		}
	}
	return out
}

// place is what the rules say: corners in order, at each the rectangle with the least waste that offers a place there.
func (p *picture) place(q Request) (b Block, c Corner, ok bool) {
	rects := p.maximal()
	slices.SortFunc(rects, func(a, b rectangle) int {
		if d := a.rows*(a.hi-a.lo) - b.rows*(b.hi-b.lo); d != 0 {
			return d
		}
		if d := a.lo - b.lo; d != 0 {
			return d
		}
		return a.row - b.row
	})
	align := int(max(1, q.Align))
	for _, c := range []Corner{LowerLeft, UpperLeft, Right} {
		if c != LowerLeft && p.rows == 1 {
			break
		}
		for _, r := range rects {
			starts := []int{r.row}
			if c == UpperLeft {
				starts[0] = r.row + r.rows - int(q.Rows)
			} else if c == Right {
				starts = starts[:0]
				for s := r.row; s+int(q.Rows) <= r.row+r.rows; s++ {
					if q.Starts>>s&1 != 0 {
						starts = append(starts, s)
						break
					}
				}
			}
			lo := (r.lo + align - 1) / align * align
			if c == Right {
				lo = r.hi - int(q.Len)
				if lo >= 0 {
					lo = lo / align * align
				}
			}
			for _, s := range starts {
				if s >= r.row && s+int(q.Rows) <= r.row+r.rows && q.Starts>>s&1 != 0 && lo >= r.lo && lo+int(q.Len) <= r.hi {
					return Block{uint32(lo), uint32(lo) + q.Len, uint8(s), q.Rows}, c, true
				}
			}
		}
	}
	return Block{}, 0, false
}

// anywhere reports that some legal place exists at all.
func (p *picture) anywhere(q Request) bool {
	for s := 0; s < p.rows; s++ {
		for lo := 0; q.Starts>>s&1 != 0 && lo+int(q.Len) <= p.size; lo += int(max(1, q.Align)) {
			if p.free(s, int(q.Rows), lo, lo+int(q.Len)) {
				return true
			}
		}
	}
	return false
}

// indices holds all three indexes of the manager against the picture.
func indices(t rapid.TB, m *Manager, p *picture) {
	t.Helper()
	cells, largest := int64(0), 0
	for i := range m.spans {
		s := &m.spans[i]
		var addr, size []uint64
		for _, r := range p.intervals(int(s.row), int(s.rows)) {
			addr = append(addr, pack(uint32(r.lo), uint32(r.hi)))
			size = append(size, pack(uint32(r.hi-r.lo), uint32(r.lo)))
			largest = max(largest, r.rows*(r.hi-r.lo))
			if s.rows == 1 {
				cells += int64(r.hi - r.lo)
			}
		}
		slices.Sort(size)
		if !slices.Equal(addr, s.addr) || !slices.Equal(size, s.size) {
			t.Fatalf("rows %d+%d: by address %x, want %x; by size %x, want %x", s.row, s.rows, s.addr, addr, s.size, size)
		}
	}
	if m.free != cells || int(m.largest()) != largest {
		t.Fatalf("%d free cells, largest rectangle %d; want %d and %d", m.free, m.largest(), cells, largest)
	}
	// By location: the blocks of each owner are just its cells.
	owned := picture{}
	owned.reset(p.rows, p.size)
	n := 0
	for k := range m.blocks {
		x := &m.blocks[k]
		if x.Rows == 0 {
			continue
		}
		n++
		found := false
		for at := *m.chain(x.owner); at != 0; at = m.blocks[at-1].next {
			found = found || int(at-1) == k
		}
		if !found {
			t.Fatalf("block %v of %d is not in its chain", x.Block, x.owner)
		}
		for r := x.Row; r < x.Row+x.Rows; r++ {
			for u := x.Lo; u < x.Hi; u++ {
				if owned.cell[r][u] != 0 {
					t.Fatalf("unit %d of row %d is taken twice", u, r)
				}
				owned.cell[r][u] = x.owner
			}
		}
	}
	for r := range p.rows {
		if !slices.Equal(owned.cell[r], p.cell[r]) {
			t.Fatalf("row %d belongs to %v, want %v", r, owned.cell[r], p.cell[r])
		}
	}
	if n != m.live {
		t.Fatalf("%d blocks, counted %d", n, m.live)
	}
}

// against runs one random session on a manager and on the picture.
func against(t *rapid.T, m *Manager) {
	rows := rapid.SampledFrom([]int{1, 4}).Draw(t, "rows")
	size := rapid.IntRange(0, 70).Draw(t, "size")
	m.Reset(rows, uint32(size))
	var p picture
	p.reset(rows, size)
	indices(t, m, &p)
	fill := func(owner uint32, b Block) {
		for r := b.Row; r < b.Row+b.Rows; r++ {
			for u := b.Lo; u < b.Hi; u++ {
				p.cell[r][u] = owner
			}
		}
	}
	for step := range rapid.IntRange(20, 120).Draw(t, "steps") {
		owner := uint32(step%9 + 1) // owners come again, with several blocks
		switch rapid.IntRange(0, 5).Draw(t, "op") {
		case 0, 1, 2:
			q := Request{Len: uint32(rapid.IntRange(0, 20).Draw(t, "len")), Align: uint32(rapid.SampledFrom([]int{0, 1, 2, 3, 4, 32}).Draw(t, "align")), Rows: 1, Starts: 1}
			if rows == 4 {
				kind := rapid.SampledFrom([][2]uint8{{1, 15}, {2, 5}, {4, 1}, {1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 1}, {2, 4}}).Draw(t, "kind")
				q.Rows, q.Starts = kind[0], kind[1]
			}
			before := m.Corners
			b, ok := m.Place(owner, q)
			want, c, wanted := p.place(q)
			if q.Len == 0 {
				wanted = false
			}
			if ok != wanted || ok && b != want {
				t.Fatalf("%+v is placed %v at %v, want %v at %v", q, ok, b, wanted, want)
			}
			if q.Len > 0 && ok != p.anywhere(q) {
				t.Fatalf("%+v is placed: %v", q, ok)
			}
			if ok {
				before[c]++
				if m.Corners != before {
					t.Fatalf("%+v at %v: corners %v, want %v", q, b, m.Corners, before)
				}
				fill(owner, b)
			}
		case 3:
			b := Block{Row: uint8(rapid.IntRange(0, 3).Draw(t, "row")), Rows: uint8(rapid.IntRange(1, 4).Draw(t, "height"))}
			b.Lo = uint32(rapid.IntRange(0, 80).Draw(t, "lo"))
			b.Hi = b.Lo + uint32(rapid.IntRange(0, 30).Draw(t, "len"))
			m.Reserve(owner, b)
			for r := int(b.Row); r < min(int(b.Row)+int(b.Rows), rows); r++ {
				for u := int(b.Lo); u < min(int(b.Hi), size); u++ {
					if p.cell[r][u] == 0 {
						p.cell[r][u] = owner
					}
				}
			}
		default:
			had := false
			for r := range rows {
				for u := range p.cell[r] {
					if p.cell[r][u] == owner {
						p.cell[r][u] = 0
						had = true
					}
				}
			}
			if m.Free(owner) != had {
				t.Fatalf("freeing %d found a block: %v", owner, !had)
			}
		}
		indices(t, m, &p)
	}
}

// Seed 79: all three indexes, the choice and the refusals of one manager, used over and over, are those of a picture of the grid.
func TestSeed79IndexesStayConsistent(t *testing.T) {
	var m Manager
	corners := [NoCorner]int{}
	rapid.Check(t, func(t *rapid.T) {
		against(t, &m)
		for c, n := range m.Corners {
			corners[c] += n
		}
	})
	for c, n := range corners {
		if n == 0 {
			t.Errorf("no block went to corner %d", c)
		}
	}
	t.Logf("blocks by corner: %v", corners)
}

func FuzzManager(f *testing.F) {
	var m Manager
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { against(t, &m) }))
}

// Many owners: the hash grows, and each finds its own.
func TestManyOwners(t *testing.T) {
	var m Manager
	m.Reset(4, 4000)
	for k := range uint32(3000) {
		if _, ok := m.Place(k, Request{Rows: 1, Starts: 15, Len: 1 + k%3}); !ok {
			t.Fatalf("%d of 3000 finds no place", k)
		}
	}
	for k := range uint32(3000) {
		if k%2 == 0 && !m.Free(k) {
			t.Fatalf("%d has no block", k)
		}
	}
	for k := range uint32(3000) {
		if m.Free(k) != (k%2 == 1) {
			t.Fatalf("%d: freed twice or not at all", k)
		}
	}
	if m.free != 16000 || m.live != 0 {
		t.Errorf("%d cells are free of 16000, %d blocks left", m.free, m.live)
	}
}

// Seed 80: lower left, then upper left, then right, each for a reason that only it can serve.
func TestSeed80CornersInOrder(t *testing.T) {
	var m Manager
	place := func(owner uint32, q Request, want Block) {
		t.Helper()
		if b, ok := m.Place(owner, q); !ok || b != want {
			t.Errorf("%+v at %v %v, want %v", q, b, ok, want)
		}
	}
	m.Reset(4, 100)
	place(1, Request{Rows: 1, Starts: 15, Len: 10}, Block{0, 10, 0, 1}) // lower left of everything
	// Rows 1 to 3 over [0, 100) are free: their lowest row is no start for 64 partitions, their highest two are.
	place(2, Request{Rows: 2, Starts: 5, Len: 95}, Block{0, 95, 2, 2})
	if m.Corners != [NoCorner]int{LowerLeft: 1, UpperLeft: 1} {
		t.Errorf("corners %v", m.Corners)
	}
	// A block bound to a middle row of a rectangle has no corner of it, and goes to the right.
	m.Reset(4, 100)
	place(3, Request{Rows: 1, Starts: 2, Len: 7, Align: 8}, Block{88, 95, 1, 1})
	// Of two free rectangles the one that is left fuller wins, though it lies higher.
	m.Reset(1, 100)
	m.Reserve(4, Block{50, 60, 0, 1})
	place(5, Request{Rows: 1, Starts: 1, Len: 20}, Block{60, 80, 0, 1})
	// One row, and a start that is not a power of two.
	m.Reset(1, 8)
	m.Reserve(6, Block{0, 1, 0, 1})
	place(7, Request{Rows: 1, Starts: 1, Len: 3, Align: 3}, Block{3, 6, 0, 1})
	if m.Corners[UpperLeft]+m.Corners[Right] != 0 {
		t.Errorf("a row has corners: %v", m.Corners)
	}
}

// session is n placements of the shapes of tensors with live blocks at a time.
func session(m *Manager, n, live int) bool {
	m.Reset(4, 26000)
	kinds := [...]Request{{Rows: 4, Starts: 1, Align: 1}, {Rows: 2, Starts: 5, Align: 1}, {Rows: 1, Starts: 15, Align: 32}, {Rows: 4, Starts: 1, Align: 4}}
	for k := range n {
		q := kinds[k%4]
		q.Len = uint32(8 + 8*(k%7) + k%31)
		if k >= live {
			m.Free(uint32(k - live))
		}
		if _, ok := m.Place(uint32(k), q); !ok {
			return false
		}
	}
	return true
}

func TestSteadyState(t *testing.T) {
	var m Manager
	run := func() {
		if !session(&m, 3000, 100) {
			t.Fatal("no place")
		}
	}
	run()
	if n := testing.AllocsPerRun(3, run); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
}

// The cost of a placement with a hundred blocks live, over ever longer runs: it is that of the blocks, not of the run.
func BenchmarkManager(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("places=%d", n), func(b *testing.B) {
			var m Manager
			b.ReportAllocs()
			for b.Loop() {
				if !session(&m, n, 100) {
					b.Fatal("no place")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/place")
		})
	}
}
