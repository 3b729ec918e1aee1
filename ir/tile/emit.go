package tile

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// emitter is the part of the state that instructions are made with.
type emitter struct {
	budget     int64 // bytes a partition that plans may use
	taken      arena.Column[arena.Name, bool]
	sources    arena.Column[graph.Node, arena.Name]
	ext        arena.Column[val, bool]   // read outside its unit
	homed      arena.Column[val, bool]   // stored in DRAM by its unit
	stays      arena.Column[val, uint32] // its row of residents
	residents  []resident
	seq        uint32
	identities [target.NumDtypes]ir.Loc
	flip       bool // which engine evicts next

	counting bool // count what would be emitted
	count    count

	// The unit being emitted.
	u         *unit
	plan      plan
	outer     []axis // the outer loop, and the axes of the domain that it walks
	outerAt   []int
	rowsOuter bool
	refs      []argRef
	refAt     []uint32 // first ref of each value of the unit
	inputs    []input
	locs      []made
	index     arena.Column[val, uint32] // position in its unit, from 1

	forms    []form // by value of the unit
	absorbed []bool

	kept              arena.Scratch[int64] // for the whole lowering
	keptAxes          arena.Scratch[int]
	keptWindows       arena.Scratch[graph.Window]
	keptPieces        arena.Scratch[piece]
	scratchViews      []view
	scratchParts      []view
	ordering          ordering
	wishes            arena.Scratch[wish]
	room              room
	spelled           []byte
	lifetimes         []lifetime
	sizes             arena.Scratch[int64]
	boxes             []box
	ownBoxes          []box               // of an operand's own axes
	unitAxes          arena.Scratch[axis] // for as long as a unit is bound
	pairChip, pairMem []ir.Pair
	dt                dotTiles
	ct                convTiles
	wt                windowTiles
	scratchReaders    arena.Scratch[uint32]
	takeIndex         uint32 // input that numbers the rows of the current unit
}

// refKind says where an operand of a value comes from.
type refKind uint8

const (
	refFull  refKind = iota // a full value of the unit
	refRow                  // a row value of the unit
	refInput                // loaded
	refSplat                // one repeated element
)

type argRef struct {
	kind refKind
	idx  uint32 // value of the unit, or input
	root val
}

// input is something that tiles of a unit load: a tile of a full view, or one element a row of a view that does not vary
// along the free axes.
type input struct {
	v      view // conformed to the domain
	dt     target.Dtype
	row    bool
	shared bool // the same for every row: loaded once a chunk
	stays  bool // in SBUF already: at says where
	at     reached
	valid  bool

	// Where the tile's elements are.
	loc   ir.Loc
	off   int64
	np    int
	pairs [3]ir.Pair
}

// made is where a value of the unit is while a tile is worked on.
type made struct {
	loc   ir.Loc
	off   int64  // first element
	loc32 ir.Loc // a float32 copy of a row value
	strip ir.Loc // partial results of a reduction, one a chunk
}

// The makers of locations and operands. While counting they make nothing.

func (l *lowering) sb(name arena.Name, d target.Dtype, parts int, elems int64) ir.Loc {
	if l.counting {
		return 1
	}
	return l.b.SB(name, d, parts, elems)
}

func (l *lowering) psum(name arena.Name, d target.Dtype, parts int, elems int64) ir.Loc {
	if l.counting {
		return 1
	}
	return l.b.PSUM(name, d, parts, elems)
}

func (l *lowering) chip(loc ir.Loc, d target.Dtype, start, parts int, off int64, free ...ir.Pair) ir.Arg {
	if l.counting {
		return ir.Arg{Kind: ir.ArgAP, Dtype: d}
	}
	return l.b.Chip(loc, d, start, parts, off, free...)
}

func (l *lowering) mem(loc ir.Loc, d target.Dtype, off int64, axes ...ir.Pair) ir.Arg {
	if l.counting {
		return ir.Arg{Kind: ir.ArgAP, Dtype: d}
	}
	return l.b.Mem(loc, d, off, axes...)
}

func (l *lowering) emit(op ir.Opcode, e target.Engine, ins, outs []ir.Arg, attrs ...ir.Attr) {
	if l.err != nil {
		return
	}
	if l.counting {
		l.count.insts++
		return
	}
	l.b.Emit(op, e, ins, outs, attrs...)
	l.stats.Insts++
	l.stats.ByOpcode[op]++
	l.opCount[l.g.Op(l.cur)]++
}

func (l *lowering) at(n graph.Node) {
	l.cur = n
	if !l.counting {
		l.b.Source = l.sourceName(n)
	}
}

// emitUnits turns every unit into instructions.
func (l *lowering) emitUnits() {
	for id := 1; id < len(l.units) && l.err == nil; id++ {
		u := &l.units[id]
		if u.kind == unitPieces {
			l.emitPieces(u)
			continue
		}
		l.prepare(u)
		l.runTiles(u)
	}
}

// markExternal finds the values that are read outside their unit.
func (l *lowering) markExternal() {
	for v := val(1); int(v) < l.vals.Len(); v++ {
		r := l.vals.At(v)
		if r.op == vNone {
			continue
		}
		for _, a := range l.argsOf(v) {
			if l.vals.At(a.root).unit != r.unit {
				l.ext.Set(a.root, true)
			}
		}
	}
	for i := range l.outs {
		if l.outs[i].v.root != 0 {
			l.ext.Set(l.outs[i].v.root, true)
		}
	}
}

// bind resolves the operands of the unit's values.
func (l *lowering) bind(u *unit) {
	l.u = u
	l.refs, l.refAt, l.inputs, l.locs = l.refs[:0], l.refAt[:0], l.inputs[:0], l.locs[:0]
	l.unitAxes.Reset()
	d := &u.dom
	vals := l.valsOf(u)
	for i, v := range vals {
		l.index.Set(v, uint32(i)+1)
		l.locs = append(l.locs, made{})
	}
	for _, v := range vals {
		r := l.vals.At(v)
		l.refAt = append(l.refAt, uint32(len(l.refs)))
		if v == u.root {
			if u.kind == unitTake {
				l.bindTake(u, r)
			}
			continue
		}
		for j, a := range l.argsOf(v) {
			p := l.vals.At(a.root)
			switch {
			case p.unit == r.unit && p.row:
				l.refs = append(l.refs, argRef{refRow, l.index.Get(a.root) - 1, a.root})
			case p.unit == r.unit:
				l.refs = append(l.refs, argRef{refFull, l.index.Get(a.root) - 1, a.root})
			case p.op == vSplat:
				l.refs = append(l.refs, argRef{refSplat, 0, a.root})
			default:
				l.refs = append(l.refs, argRef{refInput, l.inputOf(d, r, p, a, j), a.root})
			}
		}
	}
}

// inputOf finds or makes the input that operand j of r reads.
func (l *lowering) inputOf(d *domain, r, p *valueRow, a view, j int) uint32 {
	rowLevel := r.row && r.op != vReduce
	var skip *[maxRank]bool
	if rowLevel {
		skip = &d.red
	}
	in := input{v: d.conform(&a, skip), dt: p.dt, row: true, shared: true}
	for i := range d.n {
		if d.dims[i] == 1 || in.v.step[i] == 0 {
			continue
		}
		if d.grp[i] == groupF {
			in.row = false
		} else {
			in.shared = false
		}
	}
	if rowLevel {
		in.row, in.shared = true, false
	} else if r.op == vReduce {
		in.row = false // folded, so it must lie there
	} else if in.row && r.op == vTT && !r.op0.Bitwise() && p.dt.Size() <= 4 && (p.dt.IsFloat() || isSmall(p.lo, p.hi)) {
		in.dt = f32 // a per-row scalar operand
	}
	for k := range l.inputs {
		if o := &l.inputs[k]; o.v.root == in.v.root && o.dt == in.dt && o.row == in.row && o.v == in.v {
			return uint32(k)
		}
	}
	if l.stays.Get(a.root) != 0 {
		in.at, in.stays = l.reachInput(&in, a.root)
	}
	l.inputs = append(l.inputs, in)
	return uint32(len(l.inputs) - 1)
}

// layOut chooses the layout of a unit: once, before anything is counted or emitted.
func (l *lowering) layOut(u *unit) {
	if u.kind == unitRegion {
		l.chooseLayout(u)
	}
}

// prepare makes a unit the current one: its operands bound, its tiles planned.
func (l *lowering) prepare(u *unit) {
	l.at(l.vals.At(l.valsOf(u)[0]).src)
	l.bind(u)
	l.findForms()
	d := &u.dom
	width := max(1, min(l.widest(l.valsOf(u)), l.budget/2/l.columnBytes(u, l.valsOf(u))))
	if u.fullRow {
		width = max(width, d.freeElems())
	}
	height, bank := int64(128), int64(0)
	switch u.kind {
	case unitDot:
		width, bank = l.startDot(u, width), bankColumns
	case unitConv:
		width, height = l.startConv(u, width)
		bank = bankColumns
	case unitWindow:
		width = l.startWindow(u, width)
	}
	if l.err != nil {
		return
	}
	l.plan = planTiles(d, height, width, bank)
	if u.kind == unitDot {
		l.plan.block, l.plan.group = l.dt.block, l.dt.group
	}
	u.plan = l.plan
	if u.kind == unitDot {
		l.pointTurned(&l.dt.a, groupP)
		l.pointTurned(&l.dt.b, groupF)
	}
	u.need = l.columnBytes(u, l.valsOf(u))*min(width, l.plan.cols) + l.operandBytes(u, min(width, l.plan.cols))
	l.outer, l.outerAt = l.outer[:0], l.outerAt[:0]
	for i := range d.n {
		if d.grp[i] == groupB {
			l.outer, l.outerAt = append(l.outer, axis{n: d.dims[i]}), append(l.outerAt, i)
		}
	}
	// Partial reductions finish a row before the next one starts.
	l.rowsOuter = l.plan.chunks > 1 && (u.hasRed || u.kind == unitWindow && l.wins[l.vals.At(u.root).aux].kind == winScan)
}

// runTiles emits the tiles of the current unit.
func (l *lowering) runTiles(u *unit) {
	var idx [maxRank]int64
	for l.err == nil {
		var t tile
		for i, at := range l.outerAt {
			t.b[at] = idx[i]
		}
		l.runBatch(&t)
		if !odometer(idx[:len(l.outer)], l.outer) {
			return
		}
	}
}

// runBatch emits the tiles of one position of the outer loop: block by block, chunk by chunk, group by group.
func (l *lowering) runBatch(t *tile) {
	p := &l.plan
	tiles := p.tiles()
	if l.rowsOuter {
		l.repeat(tiles, func(r int64) {
			// The last chunk is another kind of tile: it finishes the rows.
			l.repeat(p.chunks-1, func(k int64) { l.runGroup(t, r, 1, k, r == 0 && k == 0, k == 0) })
			l.runGroup(t, r, 1, p.chunks-1, r == 0 && p.chunks == 1, p.chunks == 1)
		})
		return
	}
	l.repeat((tiles+p.block-1)/p.block, func(b int64) {
		first, n := b*p.block, min(p.block, tiles-b*p.block)
		l.repeat(p.chunks, func(k int64) {
			l.repeat((n+p.group-1)/p.group, func(i int64) {
				r := first + i*p.group
				l.runGroup(t, r, min(p.group, first+n-r), k, b == 0 && k == 0 && i == 0, i == 0)
			})
		})
	})
}

// repeat does f for 0 to n-1. While counting it does the first, the second and the last, and takes those in between for
// repetitions of the second.
func (l *lowering) repeat(n int64, f func(i int64)) {
	if !l.counting {
		for i := int64(0); i < n && l.err == nil; i++ {
			f(i)
		}
		return
	}
	for i := range min(n, 2) {
		before := l.count
		f(i)
		if i == 1 {
			l.count.add(count{l.count.insts - before.insts, l.count.descriptors - before.descriptors}.times(max(0, n-3)))
		}
	}
	if n > 2 {
		f(n - 1)
	}
}

// row aims a tile at row tile r.
func (p *plan) row(t *tile, r int64) {
	t.p0 = r * p.height
	t.pn = min(p.height, p.rows-t.p0)
}

// runGroup emits row tiles [r, r+g) and chunk k of the columns. batch says that they are the first of the outer position, fresh
// the first of their columns.
func (l *lowering) runGroup(t *tile, r, g, k int64, batch, fresh bool) {
	t.chunk = k
	t.last = !l.rowsOuter || k == l.plan.chunks-1
	l.plan.chunk(&l.u.dom, k, t)
	if l.u.kind == unitDot {
		l.plan.row(t, r)
		l.startGroup(t, r, g, batch, fresh || l.rowsOuter)
		if l.dt.group > 1 {
			l.pass(t, r, g, 0, t.w)
		}
	}
	for i := range g {
		l.plan.row(t, r+i)
		l.startChunk(t, fresh && i == 0)
		l.emitTile(t)
	}
}

func (d *domain) freeElems() int64 {
	n := int64(1)
	for i := range d.n {
		if d.grp[i] == groupF {
			n *= d.dims[i]
		}
	}
	return n
}

// startChunk forgets what the last tile loaded: everything when the columns change, else what depends on rows.
func (l *lowering) startChunk(t *tile, fresh bool) {
	for i := range l.inputs {
		in := &l.inputs[i]
		switch {
		case !in.shared:
			in.valid = false
		case fresh || l.rowsOuter && !in.row:
			in.valid = false
		}
	}
	if l.u.kind == unitConv {
		l.convChunk(t, fresh || l.rowsOuter)
	}
}

// emitTile emits every value of the unit for one tile.
func (l *lowering) emitTile(t *tile) {
	u := l.u
	vals := l.valsOf(u)
	partial := l.plan.chunks > 1 && u.hasRed
	evictor := l.evictor(u)
	for i, v := range vals {
		r := l.vals.At(v)
		if l.absorbed[i] {
			continue
		}
		l.at(r.src)
		switch {
		case v == u.root:
			if evictor == 0 {
				l.emitRoot(t, i, -1)
			}
		case evictor > 0 && i == evictor:
			l.emitRoot(t, 0, i)
		case r.op == vTopIndex:
			l.newTile(i, t, t.w)
			l.copyTo(l.cols(l.wt.index, target.Uint32, t.pn, 0, t.w), l.made(i, t, 0, t.w), false)
		case r.op == vReduce && partial:
			l.reducePart(t, i)
			continue
		case r.row && partial:
			continue
		case r.op == vReduce:
			l.emitReduce(t, i)
		case r.row:
			row := *t
			row.w = 1
			l.newTile(i, t, 1)
			l.emitValue(&row, i, 0, 1, ir.Arg{})
		default:
			l.newTile(i, t, t.w)
			l.emitValue(t, i, 0, t.w, ir.Arg{})
		}
		if l.homed.Get(v) && !(r.row && partial) {
			l.save(t, i)
		}
	}
	if !partial || !t.last {
		return
	}
	// All chunks are folded: the row values follow.
	for i, v := range vals {
		r := l.vals.At(v)
		if !r.row {
			continue
		}
		l.at(r.src)
		if r.op == vReduce {
			l.reduceStrip(t, i)
		} else {
			row := *t
			row.w = 1
			l.newTile(i, t, 1)
			l.emitValue(&row, i, 0, 1, ir.Arg{})
		}
		if l.homed.Get(v) {
			l.save(t, i)
		}
	}
}

// evictor is the position of the value that may read the unit's root straight from PSUM because nothing else does; 0 for
// none.
func (l *lowering) evictor(u *unit) int {
	if u.kind != unitDot && (u.kind != unitConv || l.ct.depthwise) || l.ext.Get(u.root) || l.vals.At(u.root).uses != 1 {
		return 0
	}
	for i, v := range l.valsOf(u) {
		r := l.vals.At(v)
		if !r.op.elementwise() || r.row || r.op == vCopy && r.rev0 {
			continue
		}
		for j, a := range l.argsOf(v) {
			if a.root == u.root && !(r.op == vSel && j == 0) {
				return l.absorber(i)
			}
		}
	}
	return 0
}

// absorber is the value that computes value i: itself, or the one that it became a part of.
func (l *lowering) absorber(i int) int {
	for l.absorbed[i] {
		v := l.valsOf(l.u)[i]
		for j := i + 1; j < len(l.absorbed); j++ {
			if reads(l.argsOf(l.valsOf(l.u)[j]), v) {
				i = j
				break
			}
		}
	}
	return i
}

func reads(args []view, v val) bool {
	for i := range args {
		if args[i].root == v {
			return true
		}
	}
	return false
}

// newTile makes the location of value i for a tile of w columns: its place in the resident value, or one of its own.
func (l *lowering) newTile(i int, t *tile, w int64) {
	v := l.valsOf(l.u)[i]
	r := l.vals.At(v)
	k := l.stays.Get(v)
	if k == 0 {
		l.locs[i] = made{loc: l.sb(l.tileName(r.src), r.dt, int(t.pn), w)}
		return
	}
	s := &l.residents[k]
	if s.loc == 0 && !l.counting {
		s.loc = l.sb(l.tileName(r.src), r.dt, int(s.height), s.elems)
	}
	l.locs[i] = made{loc: s.loc, off: l.plan.place(&l.u.dom, t, r.row)}
}

// place is the free element of a resident value where a tile begins.
func (p *plan) place(d *domain, t *tile, row bool) int64 {
	cols := p.cols
	if row {
		cols = 1
	}
	b := int64(0)
	for i := range d.n {
		if d.grp[i] == groupB {
			b = b*d.dims[i] + t.b[i]
		}
	}
	off := (b*p.tiles() + t.p0/p.height) * cols
	if row {
		return off
	}
	f := int64(0)
	for i := range d.n {
		if d.grp[i] == groupF {
			f = f*d.dims[i] + t.f0[i]
		}
	}
	return off + f
}

// made is columns [c0, c0+n) of value i of the unit.
func (l *lowering) made(i int, t *tile, c0, n int64) ir.Arg {
	m := &l.locs[i]
	return l.cols(m.loc, l.vals.At(l.valsOf(l.u)[i]).dt, t.pn, m.off+c0, n)
}

// save stores the tile of value i to DRAM.
func (l *lowering) save(t *tile, i int) {
	d := &l.u.dom
	v := l.valsOf(l.u)[i]
	r := l.vals.At(v)
	whole := dense(v, l.shapeOf(v))
	var skip *[maxRank]bool
	if r.row {
		skip = &d.red
	}
	w := d.conform(&whole, skip)
	var partBuf, freeBuf [maxRank]axis
	part, free := axesOf(d, &w, t, partBuf[:0], groupP), freeBuf[:0]
	off := w.off
	if r.row {
		for k := range d.n {
			if d.grp[k] == groupB {
				off += t.b[k] * w.step[k]
			}
		}
	} else {
		free = denseChip(axesOf(d, &w, t, free, groupF))
		off = tileOff(d, &w, t)
	}
	l.transfer(store, l.homeOf(v), r.dt, off, part, t.p0, t.pn, free, side{loc: l.locs[i].loc, dt: r.dt, off: l.locs[i].off})
}

// fetch makes sure that input k lies on chip for the tile.
func (l *lowering) fetch(t *tile, k uint32) *input {
	in := &l.inputs[k]
	if in.valid {
		return in
	}
	d := &l.u.dom
	parts := t.pn
	if in.shared {
		parts = l.plan.height
	}
	w := t.w
	if in.row {
		w = 1
	}
	if in.stays {
		l.fetchResident(t, in)
		return in
	}
	in.loc, in.off, in.np = l.sb(l.tileName(l.vals.At(in.v.root).src), in.dt, int(parts), w), 0, 1
	in.pairs[0] = ir.Pair{Step: 1, Num: uint32(w)}
	var partBuf, freeBuf [maxRank]axis
	part, free := axesOf(d, &in.v, t, partBuf[:0], groupP), freeBuf[:0]
	off := tileOff(d, &in.v, t)
	if !in.row {
		free = denseChip(axesOf(d, &in.v, t, free, groupF))
	}
	p0 := t.p0
	if in.shared {
		p0 = 0
	}
	l.transfer(load, l.homeOf(in.v.root), l.vals.At(in.v.root).dt, off, part, p0, parts, free, side{loc: in.loc, dt: in.dt})
	in.valid = true
	return in
}

// fetchResident points at a value that stays in SBUF. What an instruction cannot walk as it lies is copied on chip.
func (l *lowering) fetchResident(t *tile, in *input) {
	d := &l.u.dom
	s := &l.residents[l.stays.Get(in.v.root)]
	p := l.vals.At(in.v.root)
	off := in.at.off + (in.at.tile0+t.p0/l.plan.height)*s.tile
	var buf [maxRank]axis
	free := buf[:0]
	for i := range d.n {
		switch d.grp[i] {
		case groupB:
			off += t.b[i] * in.at.step[i]
		case groupF:
			off += t.f0[i] * in.at.step[i]
			free = append(free, axis{n: t.fn[i], chip: in.at.step[i]})
		}
	}
	in.loc, in.off, in.np, in.valid = s.loc, off, 0, true
	if in.row {
		free = nil
	}
	free = chipJoined(free, free[:0])
	direct := len(free) <= 1 || len(free) <= len(in.pairs) && l.u.kind != unitDot && l.u.kind != unitConv
	if in.dt == p.dt && direct {
		for _, a := range free {
			in.pairs[in.np] = ir.Pair{Step: int32(a.chip), Num: uint32(a.n)}
			in.np++
		}
		if in.np == 0 {
			in.pairs[0], in.np = ir.Pair{Step: 1, Num: 1}, 1
		}
		return
	}
	var pairBuf [maxRank]ir.Pair
	pairs := pairBuf[:0]
	w := int64(1)
	for _, a := range free {
		pairs = append(pairs, ir.Pair{Step: int32(a.chip), Num: uint32(a.n)})
		w *= a.n
	}
	if len(pairs) == 0 {
		pairs = append(pairs, ir.Pair{Step: 1, Num: 1})
	}
	src := l.chip(s.loc, p.dt, 0, int(t.pn), off, pairs...)
	in.loc, in.off, in.np = l.sb(l.tileName(p.src), in.dt, int(t.pn), w), 0, 1
	in.pairs[0] = ir.Pair{Step: 1, Num: uint32(w)}
	l.copyTo(src, l.cols(in.loc, in.dt, t.pn, 0, w), false)
}
