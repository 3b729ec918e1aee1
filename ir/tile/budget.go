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
	block  int64 // row tiles that pass by for every chunk; all but for products
	group  int64 // row tiles that a product computes together; else 1
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
		wmax := max(1, min(maxColumns, l.budget/2/l.columnBytes(u, l.valsOf(u))))
		l.inherit(u, tileCost(d, wmax), wmax)
		return
	}
	total := d.elems(false)
	best, bestCost := int64(1), int64(-1)
	wmax := max(1, min(maxColumns, l.budget/2/l.columnBytes(u, l.valsOf(u))))
	try := func(inner int64) {
		if inner > maxRowStep && inner > 1 {
			return // the step between rows must fit a pattern
		}
		cost := costOf(1, total/inner, inner, wmax)
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
	l.inherit(u, bestCost, wmax)
}

// costOf weighs a layout: the columns that engines walk, and a fixed price of each instruction's tile.
func costOf(batches, rows, cols, width int64) int64 {
	return batches * ((rows + 127) / 128) * ((cols+width-1)/width*200 + cols)
}

func tileCost(d *domain, width int64) int64 {
	n := [3]int64{1, 1, 1}
	for i := range d.n {
		n[d.grp[i]] *= d.dims[i]
	}
	return costOf(n[groupB], n[groupP], n[groupF], width)
}

// inheritFactor is how much slower a layout may be that lets a unit read in SBUF what an earlier one made.
const inheritFactor = 4

// inherit lays a region out as the unit that made its largest operand did, if all rows of that then lie where the region needs
// them and the tiles do not become much smaller for it.
func (l *lowering) inherit(u *unit, cost, width int64) {
	type source struct {
		a    view
		size int64
	}
	var best source
	for _, v := range l.valsOf(u) {
		for _, a := range l.argsOf(v) {
			p := l.vals.At(a.root)
			if p.unit == 0 || p.unit == l.vals.At(v).unit || l.vals.At(v).row && l.vals.At(v).op != vReduce || p.row {
				continue
			}
			if n := product(l.shapeOf(a.root)) * int64(p.dt.Size()); n > best.size {
				best = source{a, n}
			}
		}
	}
	if best.size == 0 {
		return
	}
	maker := &l.units[l.vals.At(best.a.root).unit]
	if maker.plan.rows == 0 {
		return
	}
	r := l.layoutOf(best.a.root, maker, &maker.plan)
	d := u.dom
	if product(l.shapeOf(best.a.root)) == d.elems(false) && best.a.isDense(d.elems(false)) && !d.fit(l.shapeOf(best.a.root), false) {
		return
	}
	w := d.conform(&best.a, nil)
	var partBuf, restBuf [maxRank]axis
	part, rest := partBuf[:0], restBuf[:0]
	for i := range d.n {
		if d.dims[i] == 1 {
			continue
		}
		g, ok := r.groupOf(w.step[i])
		if !ok || d.red[i] && g != groupF {
			return
		}
		if u.hasRed && !d.red[i] && g == groupF {
			g = groupB
		}
		d.grp[i] = g
		a := axis{n: d.dims[i], mem: w.step[i]}
		if g == groupP {
			part = append(part, a)
			a.n = 1
		}
		rest = append(rest, a)
	}
	rows := int64(1)
	for _, a := range part {
		rows *= a.n
	}
	if _, ok := r.reach(w.off, part, rest, min(128, rows)); ok && tileCost(&d, width) <= inheritFactor*cost+4096 {
		u.dom = d
	}
}

// groupOf is the loop that walks a step of the value.
func (r *resident) groupOf(step int64) (group, bool) {
	step = max(step, -step)
	for i := range r.n {
		a := &r.axes[i]
		if step == 0 || step < a.mem || step >= a.mem*a.n || step%a.mem != 0 {
			continue
		}
		switch {
		case a.row:
			return groupP, true
		case a.chip >= r.tile:
			return groupB, true
		}
		return groupF, true
	}
	return 0, false
}

func (l *lowering) valsOf(u *unit) []val { return l.order[u.first : u.first+u.count] }

// planTiles cuts the domain of a unit whose layout is chosen: rows in tiles of at most height partitions, columns in chunks of
// at most width positions, of about one size; with bank, in whole banks of so many columns where they can be.
func planTiles(d *domain, height, width, bank int64) plan {
	p := plan{rows: 1, height: height, cols: 1, split: -1, chunks: 1, group: 1}
	for i := range d.n {
		switch d.grp[i] {
		case groupP:
			p.rows *= d.dims[i]
		case groupF:
			p.cols *= d.dims[i]
		}
	}
	p.height = min(p.height, p.rows)
	p.block = p.tiles()
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
		most := max(1, width/inner)
		n := (d.dims[i] + most - 1) / most
		p.step = (d.dims[i] + n - 1) / n
		if q := bank / inner; q > 1 {
			if up := (p.step + q - 1) / q * q; up <= most {
				p.step = up
			} else if most >= q {
				p.step = most / q * q
			}
			n = (d.dims[i] + p.step - 1) / p.step
		}
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
