package tile

import "github.com/rosmar-compiler/rosmar/arena"

// staysAt is where a value stays in SBUF, nil when it does not.
func (l *lowering) staysAt(v val) *resident {
	if k := l.stays.Get(v); k != 0 {
		return &l.residents[k]
	}
	return nil
}

// operandBytes is the bytes a partition that the root of a unit needs for its operands.
func (l *lowering) operandBytes(u *unit, _ int64) int64 {
	switch u.kind {
	case unitDot:
		return l.dt.bytes
	case unitConv:
		return l.ct.bytes
	case unitWindow:
		return l.wt.bytes
	}
	return 0
}

// reachInput finds an input of the current unit that stays in SBUF.
func (l *lowering) reachInput(in *input, v val) (reached, bool) {
	return l.reachFor(&l.residents[l.stays.Get(v)], in)
}

func (l *lowering) reachFor(r *resident, in *input) (w reached, ok bool) {
	d := &l.u.dom
	var partBuf, restBuf, freeBuf [maxRank]axis
	part, rest, free := partBuf[:0], restBuf[:0], freeBuf[:0]
	for i := range d.n {
		a := axis{n: d.dims[i], mem: in.v.step[i]}
		if d.grp[i] == groupP {
			part = append(part, a)
			a.n = 1
		}
		rest = append(rest, a)
	}
	height := int64(1)
	for _, a := range part {
		height *= a.n
	}
	w, ok = r.reach(in.v.off, part, rest, min(l.u.plan.height, height))
	if !ok {
		return w, false
	}
	for i := range d.n {
		if d.grp[i] == groupF {
			free = append(free, axis{n: d.dims[i], chip: w.step[i]})
		}
	}
	return w, smallSteps(free, 4)
}

// wish is what is known of a value that could stay in SBUF.
type wish struct {
	last  unitID // the last unit that could read it
	whole bool   // every reader could
	r     resident
}

// note says of a reader of the value whether it could read it in SBUF.
func (w *wish) note(id unitID, ok bool) {
	if ok {
		w.last = max(w.last, id)
	} else {
		w.whole = false
	}
}

// chooseResidents plans every unit and decides which values stay in SBUF: those whose consumers can read them where they lie,
// in the order in which they are made, as long as the tiles of every unit in between find room beside them.
func (l *lowering) chooseResidents() {
	l.residents = append(l.residents[:0], resident{})
	l.wishes.Reset()
	wishes := l.wishes.Take(l.vals.Len())
	for v := range wishes {
		wishes[v].whole = true
	}
	l.counting = true
	for id := 1; id < len(l.units) && l.err == nil; id++ {
		u := &l.units[id]
		if u.kind == unitPieces {
			info := &l.pieces[l.vals.At(u.root).aux]
			l.layOutPieces(u, wishes)
			if u.plan.rows > 0 {
				wishes[u.root].r = l.layoutOf(u.root, u, &u.plan)
				for i := range info.pieces {
					if _, ok := l.pieceRows(&info.pieces[i].dst, &wishes[u.root].r); !ok || l.isSplat(&info.pieces[i].src) {
						wishes[u.root].r = resident{}
						break
					}
				}
			}
			for i := range info.pieces {
				p := &info.pieces[i]
				if v := p.src.root; l.vals.At(v).unit != 0 {
					wishes[v].note(unitID(id), wishes[v].r.elems > 0 && l.pieceFits(p, &wishes[v].r, &wishes[u.root].r))
				}
			}
			continue
		}
		l.layOut(u)
		l.prepare(u)
		if l.err != nil {
			break
		}
		for _, v := range l.valsOf(u) {
			if l.ext.Get(v) {
				wishes[v].r = l.layoutOf(v, u, &u.plan)
			}
		}
		for k := range l.inputs {
			in := &l.inputs[k]
			if v := in.v.root; l.vals.At(v).unit != 0 {
				ok := false
				if wishes[v].r.elems > 0 {
					_, ok = l.reachFor(&wishes[v].r, in)
				}
				wishes[v].note(unitID(id), ok)
			}
		}
		l.noteRoot(u, unitID(id), wishes)
	}
	l.counting = false
	if l.err != nil {
		return
	}
	for i := range l.outs {
		if v := l.outs[i].v.root; v != 0 {
			wishes[v].whole = false
			l.homed.Set(v, true)
		}
	}
	room := &l.room
	room.start(l.units, l.budget)
	for v := val(1); int(v) < l.vals.Len(); v++ {
		w := &wishes[v]
		r := l.vals.At(v)
		if r.unit == 0 || r.op == vNone || !l.ext.Get(v) {
			continue
		}
		size := (w.r.elems*int64(r.dt.Size()) + 7) &^ 7
		if w.last > r.unit && l.opt.Level == L2 && room.take(int(r.unit), int(w.last), size) {
			l.residents = append(l.residents, w.r)
			l.stays.Set(v, uint32(len(l.residents)-1))
			if w.whole {
				continue
			}
		}
		l.homed.Set(v, true)
	}
}

// noteRoot says of the operands of a unit's root whether they could be read in SBUF.
func (l *lowering) noteRoot(u *unit, id unitID, wishes []wish) {
	// made is the wish of an operand that a unit makes, nil for any other.
	made := func(v val) *wish {
		if l.vals.At(v).unit == 0 {
			return nil
		}
		return &wishes[v]
	}
	switch u.kind {
	case unitDot:
		if w := made(l.dt.a.root); w != nil {
			w.note(id, w.r.elems > 0 && l.canReadDot(&w.r, &l.dt.a, groupP))
		}
		if w := made(l.dt.b.root); w != nil {
			w.note(id, w.r.elems > 0 && l.canReadDot(&w.r, &l.dt.b, groupF))
		}
	case unitConv:
		info := &l.convs[l.vals.At(u.root).aux]
		if w := made(info.x.root); w != nil {
			ok := w.r.elems > 0
			if ok {
				_, ok = l.ct.reach(&w.r, info)
			}
			w.note(id, ok)
		}
		if w := made(info.w.root); w != nil {
			w.note(id, false)
		}
	case unitWindow:
		info := &l.wins[l.vals.At(u.root).aux]
		if w := made(info.x.root); w != nil {
			ok := w.r.elems > 0
			if ok {
				_, ok = w.r.reachMap(info.x.off, l.wt.part, l.wt.spans, l.plan.height)
			}
			w.note(id, ok)
		}
	case unitTake: // the index is an input like those of other values
		if w := made(l.argsOf(u.root)[0].root); w != nil {
			w.note(id, false)
		}
	}
}

// canReadDot reports an operand that a product can take from SBUF: with K on partitions, or with its rows there.
func (l *lowering) canReadDot(r *resident, o *dotOperand, g group) bool {
	d := &l.u.dom
	skip := d.outside(groupB, g)
	if _, ok := r.reachDot(d, o, &skip, l.dt.k); ok {
		return true
	}
	_, ok := l.reachTurned(r, o, g)
	return ok
}

// reachTurned finds the rows of an operand that the array turns, in blocks that fall on whole partition tiles.
func (l *lowering) reachTurned(r *resident, o *dotOperand, g group) (reached, bool) {
	d := &l.u.dom
	if !l.turns(d, o, g) {
		return reached{}, false
	}
	n := int64(1)
	for i := range d.n {
		if d.grp[i] == g {
			n *= d.dims[i]
		}
	}
	if g == groupF && l.u.plan.chunks > 1 {
		inner := l.u.plan.step
		for i := l.u.plan.split + 1; i < d.n; i++ {
			if d.grp[i] == groupF {
				inner *= d.dims[i]
			}
		}
		if inner%128 != 0 {
			return reached{}, false
		}
	}
	return r.reachRows(d, o, g, min(128, n))
}

// room keeps, for every unit, the bytes a partition that are left beside its tiles: a tree of minima with additions that
// stand for whole ranges.
type room struct {
	n     int
	low   []int64
	less  []int64
	store arena.Scratch[int64]
}

// start gives every unit what its tiles leave of the budget.
func (r *room) start(units []unit, budget int64) {
	n := 1
	for n < len(units) {
		n *= 2
	}
	r.store.Reset()
	r.n, r.low, r.less = n, r.store.Take(2*n), r.store.Take(2*n)
	for i := range units {
		r.low[n+i] = budget - units[i].need
	}
	for i := n - 1; i > 0; i-- {
		r.low[i] = min(r.low[2*i], r.low[2*i+1])
	}
}

// take reserves bytes in units first…last, if every one of them has so much left.
func (r *room) take(first, last int, bytes int64) bool {
	if r.least(first, last) < bytes {
		return false
	}
	r.walk(first, last, func(i int) {
		r.low[i] -= bytes
		r.less[i] += bytes
	})
	for _, i := range [2]int{r.n + first, r.n + last} {
		for i /= 2; i > 0; i /= 2 {
			r.low[i] = min(r.low[2*i], r.low[2*i+1]) - r.less[i]
		}
	}
	return true
}

// least is the smallest rest in units first…last.
func (r *room) least(first, last int) int64 {
	best := int64(1) << 62
	r.walk(first, last, func(i int) {
		x := r.low[i]
		for i /= 2; i > 0; i /= 2 {
			x -= r.less[i]
		}
		best = min(best, x)
	})
	return best
}

// walk visits the nodes that cover leaves first…last.
func (r *room) walk(first, last int, f func(i int)) {
	for a, b := r.n+first, r.n+last+1; a < b; a, b = a/2, b/2 {
		if a&1 == 1 {
			f(a)
			a++
		}
		if b&1 == 1 {
			b--
			f(b)
		}
	}
}
