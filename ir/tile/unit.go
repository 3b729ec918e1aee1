package tile

import "github.com/rosmar-compiler/rosmar/ir/target"

// unitKind is what the tiles of a unit start from.
type unitKind uint8

const (
	unitRegion unitKind = iota // loads
	unitDot                    // a product in PSUM
	unitConv                   // a convolution in PSUM
	unitWindow                 // windows of a padded map
	unitPieces                 // nothing: transfers into DRAM
	unitTake                   // rows of a table
)

// unit is a group of values that share one pass over tiles of one iteration space. Values are full (one element a position of
// the domain) or, where the unit reduces, one element a row.
//
// Units run in order of their number. A value joins the last unit that makes one of its operands, or starts a new one, so
// that everything it reads comes from its own unit or an earlier one.
type unit struct {
	kind    unitKind
	rigid   bool // axes must not be split: they correspond to windows
	hasRed  bool // dom.red is decided
	fullRow bool // a full value reads a row value of the unit: the row must be resident
	root    val  // of all kinds but unitRegion
	dom     domain
	first   uint32 // values: order[first:first+count]
	count   uint32
	list    []val // while forming

	plan plan
	need int64 // bytes a partition that its tiles take beside resident values
}

// Bounds on the values of a unit: the check of a resident row looks at all of them for each that joins.
const (
	maxUnitVals = 256
	maxRowVals  = 64
)

// dropDead takes away the uses of values that nothing needs, last first.
func (l *lowering) dropDead() {
	rows := l.vals.Rows()
	for i := len(rows) - 1; i > 0; i-- {
		if rows[i].uses == 0 && rows[i].op != vInput {
			for _, a := range l.args.Of(rows[i].args) {
				rows[a.root].uses--
			}
			rows[i].op = vNone
		}
	}
}

// formUnits gives every value that is computed its unit.
func (l *lowering) formUnits() {
	l.units = append(l.units[:0], unit{})
	for _, v := range l.sequence() {
		r := l.vals.At(v)
		switch {
		case r.op.elementwise() || r.op == vReduce:
			l.place(v)
		case r.op == vTopIndex:
			r.unit = l.vals.At(l.argsOf(v)[0].root).unit
			u := &l.units[r.unit]
			u.list = append(u.list, v)
		default:
			l.startRoot(v)
		}
	}
	l.order = l.order[:0]
	for i := range l.units {
		u := &l.units[i]
		u.first, u.count = uint32(len(l.order)), uint32(len(u.list))
		l.order = append(l.order, u.list...)
	}
}

func (l *lowering) addUnit(u unit, v val) {
	if n := len(l.units); n < cap(l.units) {
		u.list = l.units[:n+1][n].list[:0] // the storage of a unit of the lowering before
	}
	u.list = append(u.list, v)
	l.units = append(l.units, u)
	l.vals.At(v).unit = unitID(len(l.units) - 1)
}

// place puts an elementwise value or a reduction into the last unit that makes an operand, or into a new one.
func (l *lowering) place(v val) {
	last := unitID(0)
	for _, a := range l.argsOf(v) {
		last = max(last, l.vals.At(a.root).unit)
	}
	if last == 0 && l.vals.At(v).op != vIota {
		last = unitID(len(l.units) - 1)
		if l.units[last].kind != unitRegion {
			last = 0
		}
	}
	if last != 0 && l.join(v, last) {
		return
	}
	r := l.vals.At(v)
	u := unit{kind: unitRegion, rigid: r.op == vIota} // numbers run along one axis
	if r.op == vReduce {
		a := &l.argsOf(v)[0]
		u.dom = newDomain(a.shape())
		u.hasRed = true
		r.row = true
		for i := range u.dom.n {
			u.dom.red[i] = r.aux>>i&1 != 0
		}
	} else {
		u.dom = newDomain(l.shapeOf(v))
	}
	l.addUnit(u, v)
}

// join tries to add v to a unit, and reports success.
func (l *lowering) join(v val, id unitID) bool {
	u := &l.units[id]
	r := l.vals.At(v)
	if u.kind == unitPieces || len(u.list) >= maxUnitVals || u.hasRed && len(u.list) >= maxRowVals {
		return false
	}
	args := l.argsOf(v)
	if r.op == vReduce {
		return l.joinReduce(v, u, &args[0])
	}
	shape := l.shapeOf(v)
	d, row := u.dom, false
	if n := product(shape); n != d.elems(false) || !d.fit(shape, false) {
		d, row = u.dom, true
		if !u.hasRed || n != d.elems(true) || !d.fit(shape, true) {
			return false
		}
	}
	if u.rigid && d.n != u.dom.n {
		return false
	}
	fullRow := u.fullRow
	for i := range args {
		a := &args[i]
		p := l.vals.At(a.root)
		if p.unit != id {
			continue
		}
		if p.row {
			fullRow = fullRow || !row
		}
		if row && !p.row || !l.aligned(&d, a, row, p.row) {
			return false
		}
	}
	old, oldRow := u.dom, u.fullRow
	u.dom, u.fullRow = d, fullRow
	r.row = row
	u.list = append(u.list, v)
	r.unit = id
	if fullRow && !l.rowFits(u) {
		u.dom, u.fullRow = old, oldRow
		u.list = u.list[:len(u.list)-1]
		r.unit, r.row = 0, false
		return false
	}
	return true
}

// aligned reports whether a reads, at each position, the element of its root that the unit makes at that position.
func (l *lowering) aligned(d *domain, a *view, row, rootRow bool) bool {
	skip := &d.red
	if !row {
		skip = nil
	}
	got := d.conform(a, skip)
	whole := dense(a.root, l.shapeOf(a.root))
	skip = &d.red
	if !rootRow {
		skip = nil
	}
	want := d.conform(&whole, skip)
	if got.off != 0 {
		return false
	}
	for i := range d.n {
		if d.dims[i] != 1 && got.step[i] != want.step[i] {
			return false
		}
	}
	return true
}

func (l *lowering) joinReduce(v val, u *unit, a *view) bool {
	p := l.vals.At(a.root)
	id := p.unit
	if id == 0 || &l.units[id] != u || p.row {
		return false
	}
	if u.kind == unitDot && !l.wholeRows(u) {
		return false
	}
	d := u.dom
	if !d.fit(a.shape(), false) || u.rigid && d.n != u.dom.n || !l.aligned(&d, a, false, false) {
		return false
	}
	red := d.reduced(a.shape(), l.vals.At(v).aux)
	if u.hasRed {
		for i := range d.n {
			if d.dims[i] != 1 && red[i] != d.red[i] {
				return false
			}
		}
	} else {
		if u.kind != unitRegion {
			for i := range d.n {
				if d.dims[i] != 1 && red[i] != (d.grp[i] == groupF) {
					return false
				}
			}
		}
		d.red = red
	}
	r := l.vals.At(v)
	old, had := u.dom, u.hasRed
	u.dom, u.hasRed = d, true
	r.row, r.unit = true, id
	u.list = append(u.list, v)
	if u.fullRow && !l.rowFits(u) {
		u.dom, u.hasRed = old, had
		u.list = u.list[:len(u.list)-1]
		r.row, r.unit = false, 0
		return false
	}
	return true
}

// reduced marks the axes of d that the masked axes of a shape cover.
func (d *domain) reduced(dims []int64, mask uint32) (red [maxRank]bool) {
	i := d.n - 1
	for j := len(dims) - 1; j >= 0; j-- {
		for need := dims[j]; need > 1; i-- {
			if d.dims[i] == 1 {
				continue
			}
			red[i] = mask>>j&1 != 0
			need /= d.dims[i]
		}
	}
	return red
}

// startRoot opens the unit of a product, a convolution, windows, pieces or rows of a table.
func (l *lowering) startRoot(v val) {
	r := l.vals.At(v)
	u := unit{root: v}
	switch r.op {
	case vDot:
		u.kind = unitDot
		info := &l.dots[r.aux]
		u.dom = newDomain(l.shapeOf(v))
		for i := range u.dom.n {
			switch {
			case i < info.nb:
				u.dom.grp[i] = groupB
			case i < info.nb+info.nm:
				u.dom.grp[i] = groupP
			default:
				u.dom.grp[i] = groupF
			}
		}
	case vConv:
		u.kind, u.rigid = unitConv, true
		info := &l.convs[r.aux]
		u.dom.n = len(info.out)
		for i, at := range info.outAxes {
			u.dom.dims[at] = info.out[i]
			u.dom.grp[at] = groupF
			if i == 1 {
				u.dom.grp[at] = groupP // channels
			}
		}
	case vWindow:
		u.kind, u.rigid = unitWindow, true
		info := &l.wins[r.aux]
		u.dom.n = len(info.out)
		for i, w := range info.ws {
			u.dom.dims[i] = info.out[i]
			u.dom.grp[i] = groupP
			if !trivialWindow(w) || info.kind != winFold && i == info.axis {
				u.dom.grp[i] = groupF
			}
		}
	case vPieces:
		u.kind = unitPieces
	case vTake:
		u.kind = unitTake
		u.dom = newDomain(l.shapeOf(v))
		for i := range u.dom.n {
			u.dom.grp[i] = groupP
			if l.takes[r.aux].inRow>>i&1 != 0 {
				u.dom.grp[i] = groupF
			}
		}
	}
	l.addUnit(u, v)
}

// rowFits reports whether the tiles that live at once fit when each holds a whole row.
func (l *lowering) rowFits(u *unit) bool {
	cols := int64(1)
	for i := range u.dom.n {
		if u.dom.red[i] {
			cols *= u.dom.dims[i]
		}
	}
	if cols > l.widest(u.list) {
		return false
	}
	return cols*l.columnBytes(u, u.list) <= l.budget*3/4
}

// widest is the columns that every instruction of the values can take.
func (l *lowering) widest(list []val) int64 {
	for _, v := range list {
		if r := l.vals.At(v); r.op == vReduce && r.rev1 {
			return maxTop
		}
	}
	return maxColumns
}

// maxColumns bounds the elements a partition of one instruction.
const maxColumns = 32 << 10

// span of the values of a unit in which a value takes space.
type lifetime struct {
	root        val
	first, last int
}

// columnBytes is the largest number of bytes that the full tiles of a unit take for one column at one time.
func (l *lowering) columnBytes(u *unit, list []val) int64 {
	live := l.lifetimes[:0] // a unit has few values; a linear search is enough
	note := func(root val, at int) {
		for i := range live {
			if live[i].root == root {
				live[i].last = at
				return
			}
		}
		live = append(live, lifetime{root, at, at})
	}
	for i, v := range list {
		for _, a := range l.argsOf(v) {
			if v == u.root {
				break // its operands are counted for themselves
			}
			if p := l.vals.At(a.root); p.op != vSplat && !(p.unit == l.vals.At(v).unit && p.row) {
				note(a.root, i)
			}
		}
		if !l.vals.At(v).row {
			note(v, i)
		}
	}
	l.lifetimes = live
	l.sizes.Reset()
	begins, ends := l.sizes.Take(len(list)+1), l.sizes.Take(len(list)+1)
	for _, e := range live {
		p := l.vals.At(e.root)
		size := int64(p.dt.Size())
		if v := e.root; v == u.root && u.root != 0 {
			size = int64(max(p.dt.Size(), target.Float32.Size()))
		}
		begins[e.first] += size
		ends[e.last] += size
	}
	var cur, peak int64
	for i := range list {
		cur += begins[i]
		peak = max(peak, cur)
		cur -= ends[i]
	}
	return max(peak, 1)
}
