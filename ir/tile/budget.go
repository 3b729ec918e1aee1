package tile

import "github.com/rosmar-compiler/rosmar/ir/graph"

// trivialWindow reports an axis that a window leaves alone.
func trivialWindow(w graph.Window) bool {
	return w.Size == 1 && w.Stride == 1 && w.PadLow == 0 && w.PadHigh == 0 && w.LhsDilate == 1
}

// maxRowStep bounds the elements between two rows of a layout that is free to choose.
const maxRowStep = 1 << 30

// plan is the shape of a unit's tiles.
type plan struct {
	rows   int64 // positions on partitions
	height int64 // partitions of a tile
	cols   int64 // positions on the free axis
	split  int   // the F axis that chunks cut; -1 when one chunk holds the row
	step   int64 // positions of the split axis in a chunk
	chunks int64
}

// chooseLayout puts every axis of a region into a group. With reductions the folded axes are free and the others are rows.
// Without, the axes are cut where tiles are fewest and fullest, inside an axis if that helps.
func (l *lowering) chooseLayout(u *unit) {
	d := &u.dom
	if u.hasRed {
		for i := range d.n {
			d.grp[i] = groupP
			if d.red[i] {
				d.grp[i] = groupF
			}
		}
		return
	}
	total := d.elems(false)
	best, bestCost := int64(1), int64(-1)
	wmax := max(1, min(maxColumns, l.budget/2/l.columnBytes(u, l.valsOf(u))))
	try := func(inner int64) {
		if inner > maxRowStep && inner > 1 {
			return // the step between rows must fit a pattern
		}
		rows := total / inner
		tiles := (rows + 127) / 128
		chunks := (inner + wmax - 1) / wmax
		cost := tiles * (chunks*200 + inner)
		if bestCost < 0 || cost < bestCost || cost == bestCost && inner > best {
			best, bestCost = inner, cost
		}
	}
	inner := int64(1)
	for i := d.n - 1; i >= -1; i-- {
		try(inner)
		if i < 0 {
			break
		}
		if want := (total/inner + 127) / 128; d.n < maxRank && want > 1 && want < d.dims[i] {
			// A cut inside the axis that leaves at most 128 rows, or few tiles of them.
			for f := want; f < d.dims[i] && f < want+256; f++ {
				if d.dims[i]%f == 0 {
					try(inner * f)
					break
				}
			}
		}
		inner *= d.dims[i]
	}
	inner = 1
	for i := d.n - 1; i >= 0; i-- {
		switch {
		case inner*d.dims[i] <= best:
			d.grp[i] = groupF
		case inner < best:
			d.split(i, best/inner)
			d.grp[i], d.grp[i+1] = groupP, groupF
			inner = best
			continue
		default:
			d.grp[i] = groupP
		}
		inner *= d.dims[i]
	}
}

func (l *lowering) valsOf(u *unit) []val { return l.order[u.first : u.first+u.count] }

// planTiles cuts the domain of a unit whose layout is chosen: rows in tiles of at most height partitions, columns in chunks of
// at most width positions.
func planTiles(d *domain, height, width int64) plan {
	p := plan{rows: 1, height: height, cols: 1, split: -1, chunks: 1}
	for i := range d.n {
		switch d.grp[i] {
		case groupP:
			p.rows *= d.dims[i]
		case groupF:
			p.cols *= d.dims[i]
		}
	}
	p.height = min(p.height, p.rows)
	if p.cols <= width {
		return p
	}
	inner := int64(1)
	for i := d.n - 1; i >= 0; i-- {
		if d.grp[i] != groupF || d.dims[i] == 1 {
			continue
		}
		if p.split >= 0 {
			p.chunks *= d.dims[i]
			continue
		}
		if inner*d.dims[i] <= width {
			inner *= d.dims[i]
			continue
		}
		p.split = i
		p.step = max(1, width/inner)
		n := (d.dims[i] + p.step - 1) / p.step
		p.step = (d.dims[i] + n - 1) / n
		p.chunks *= n
	}
	return p
}

// tiles is how many tiles the rows make.
func (p *plan) tiles() int64 { return (p.rows + p.height - 1) / p.height }

// chunk is box number k of the free axes.
func (p *plan) chunk(d *domain, k int64, t *tile) {
	t.w = 1
	for i := d.n - 1; i >= 0; i-- {
		if d.grp[i] != groupF {
			continue
		}
		t.f0[i], t.fn[i] = 0, d.dims[i]
		switch {
		case p.split < 0 || i > p.split:
		case i == p.split:
			n := (d.dims[i] + p.step - 1) / p.step
			t.f0[i] = k % n * p.step
			t.fn[i] = min(p.step, d.dims[i]-t.f0[i])
			k /= n
		default:
			t.f0[i], t.fn[i] = k%d.dims[i], 1
			k /= d.dims[i]
		}
		t.w *= t.fn[i]
	}
}

// tile is one box of a unit's domain.
type tile struct {
	b      [maxRank]int64 // index of the outer axes
	p0, pn int64          // rows
	f0, fn [maxRank]int64 // box of the free axes
	w      int64          // columns
	chunk  int64
	last   bool // the last chunk of its rows
}
