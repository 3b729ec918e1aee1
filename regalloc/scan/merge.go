package scan

import (
	"math/bits"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// candidate is a value that could be in a register where blocks meet. 20 bytes.
type candidate struct {
	value flow.Value
	when  when   // from the head of the block
	from  uint32 // ways on which it is in a register
	votes uint32 // by which that register leads (Boyer and Moore's majority)
	reg   reg    // on most of these ways
}

// goal says where the head of a block wants a value: in a register, or in its slot if none. 12 bytes.
type goal struct {
	value flow.Value
	index uint32 // of what is known of it at the end of a way
	reg   reg
}

// mergeScratch is the storage of choosing what is in registers where blocks meet.
type mergeScratch struct {
	index []uint32    // by value: its candidate, zero between uses
	cands []candidate // the first stands for all that is none
	args  uint32      // the first of the parameters, which come last
	ways  []uint32    // edges from blocks that were scanned
	at    []reg       // by way and candidate: where it is there
	order []uint64
	goals []goal // what is wanted at the head

	copied []uint32 // rows of parameters whose arguments stay in their registers
}

func (m *mergeScratch) begin(values int) { m.index = arena.Resized(m.index, values) }

// enter sets the registers for the head of a block.
func (a *Allocator) enter(b uint32) {
	a.loop = a.loops.Loop(b)
	preds := a.f.Blocks[b].Preds
	switch preds.Len() {
	case 0:
	case 1:
		a.inherit(b, a.f.Preds[preds.From])
	default:
		a.empty()
		a.meet(b)
	}
	a.blocks[b].done = true
	a.last = b
}

// empty takes all registers away.
func (a *Allocator) empty() {
	for c := range flow.Class(flow.NumClasses) {
		bank := bank(c)
		for u := a.used[bank]; u != 0; u &= u - 1 {
			a.values[a.value[in(bank, bits.TrailingZeros64(u))]].reg = none
		}
		a.used[bank] = 0
	}
}

// inherit starts a block where its only predecessor ended.
func (a *Allocator) inherit(b, e uint32) {
	f := a.f
	edge := &f.Edges[e]
	first := f.Blocks[b].Insts.From
	x := &a.blocks[b]
	if edge.From != a.last {
		a.empty()
		end := a.blocks[edge.From].end
		for _, h := range a.ends[end.From:end.To] {
			a.value[h.reg] = h.value
			a.values[h.value].reg = h.reg
			a.used[h.reg.bank()] |= h.reg.bit()
		}
	}
	var wanted [banks]uint64
	for _, o := range a.rows[x.in.From:x.in.To] {
		r := a.values[o.value].reg
		a.when[r] = o.when.atHead(first) // of no register it has no meaning
		wanted[r.bank()] |= r.bit()
	}
	var idle [banks]uint64
	for c := range flow.Class(flow.NumClasses) {
		bank := bank(c)
		for u := a.used[bank] &^ wanted[bank]; u != 0; u &= u - 1 {
			r := in(bank, bits.TrailingZeros64(u))
			if !a.stays(&a.values[a.value[r]], r) {
				idle[bank] |= r.bit()
			}
		}
	}
	if edge.Args.Len() > 0 {
		a.passArgs(b, edge, &idle)
	}
	for c := range flow.Class(flow.NumClasses) {
		bank := bank(c)
		for u := idle[bank]; u != 0; u &= u - 1 {
			a.drop(in(bank, bits.TrailingZeros64(u)))
		}
	}
	if edge.Args.Len() > 0 {
		a.copyArgs(first)
	}
}

// passArgs gives parameters the registers of arguments that end here, which leaves idle, or their slots. The rest are copied out of registers
// that are kept until all are.
func (a *Allocator) passArgs(b uint32, edge *flow.Edge, idle *[banks]uint64) {
	f := a.f
	params, first := f.Blocks[b].Params.From, f.Blocks[b].Insts.From
	place := a.answer.Place
	for k := range uint32(edge.Args.Len()) {
		prow, arow := params+k, edge.Args.From+k
		v, p := f.Ops[arow], a.operands[prow]
		x := &a.values[p.value]
		x.store, x.birth = first, a.values[v].reg
		switch {
		case !p.when.live():
			place[prow] = flow.NoPlace
		case x.birth == none:
			// The two never differ while both live, so they share the slot.
			place[prow] = a.slot(v)
			x.slot = a.values[v].slot
		default:
			place[prow] = x.birth.place()
		}
		place[arow] = place[prow]
	}
	a.merge.copied = a.merge.copied[:0]
	for k := range uint32(edge.Args.Len()) {
		p := a.operands[params+k]
		r := a.values[p.value].birth
		if !p.when.live() || r == none {
			continue
		}
		if idle[r.bank()]&r.bit() == 0 {
			a.merge.copied = append(a.merge.copied, params+k)
			continue
		}
		idle[r.bank()] &^= r.bit()
		a.drop(r)
		a.put(r, p.value, p.when)
	}
}

// copyArgs gives registers to parameters that start in one that is another's too.
func (a *Allocator) copyArgs(first uint32) {
	var sources [banks]uint64
	for _, row := range a.merge.copied {
		r := a.values[a.operands[row].value].birth
		sources[r.bank()] |= r.bit()
	}
	for _, row := range a.merge.copied {
		o := a.operands[row]
		x := &a.values[o.value]
		r := x.birth
		s := a.find(first, r.bank(), sources[r.bank()], o.when, x.hint)
		if s == none {
			a.slot(o.value) // its store stands at the head, before anything moves
			continue
		}
		a.move(first, r.class(), r.place(), s.place())
		a.put(s, o.value, o.when)
	}
}

// meet chooses what is in registers at the head of a block with several predecessors, and lets those that were scanned go there.
func (a *Allocator) meet(b uint32) {
	a.gather(b)
	a.choose(b)
	a.merge.goals = a.merge.goals[:0]
	a.settle(b)
	a.settleParams(b)
	f, m := a.f, &a.merge
	place, params := a.answer.Place, f.Blocks[b].Params.From
	way := 0
	for _, e := range f.Preds[f.Blocks[b].Preds.From:f.Blocks[b].Preds.To] {
		edge := &f.Edges[e]
		done := a.blocks[edge.From].done
		if done {
			a.follow(e, m.at[way*len(m.cands):][:len(m.cands)])
			way++
		}
		for k := range uint32(edge.Args.Len()) {
			place[edge.Args.From+k] = place[params+k]
			if r := m.cands[m.args+k].reg; r != none && !done {
				a.values[f.Ops[edge.Args.From+k]].hint = r
			}
		}
	}
}

// settle gives the registers chosen to what lives on, and keeps them for the ways that are scanned later.
func (a *Allocator) settle(b uint32) {
	m := &a.merge
	first, head := a.f.Blocks[b].Insts.From, a.loops.Heads[b]
	for k := uint32(1); k < m.args; k++ {
		c := &m.cands[k]
		m.index[c.value] = 0
		if c.reg == none {
			continue
		}
		a.put(c.reg, c.value, c.when.atHead(first))
		m.goals = append(m.goals, goal{c.value, k, c.reg})
		s := &a.values[c.value]
		s.hint = c.reg
		if head && (s.loop == 0 || !a.inside(s.loop)) {
			s.loop = b
		}
	}
	if len(m.ways) < a.f.Blocks[b].Preds.Len() {
		x := &a.blocks[b]
		x.head.From = uint32(len(a.heads))
		for _, g := range m.goals {
			a.heads = append(a.heads, held{g.value, g.reg})
		}
		x.head.To = uint32(len(a.heads))
	}
}

// settleParams gives them to the parameters; one without a register begins in a slot.
func (a *Allocator) settleParams(b uint32) {
	m, place := &a.merge, a.answer.Place
	blk := &a.f.Blocks[b]
	for k := m.args; k < uint32(len(m.cands)); k++ {
		c := &m.cands[k]
		row := blk.Params.From + k - m.args
		if !c.when.live() {
			place[row] = flow.NoPlace
			continue
		}
		m.goals = append(m.goals, goal{c.value, k, c.reg})
		if c.reg == none {
			place[row] = a.born(c.value)
			continue
		}
		a.put(c.reg, c.value, a.operands[row].when)
		s := &a.values[c.value]
		s.store, s.birth, s.hint = blk.Insts.From, c.reg, c.reg
		place[row] = c.reg.place()
	}
}

// gather lists what comes to the head of b in a register on a way that was scanned and the parameters of b, and where they are on these ways.
// What is live there and in no register on any of them is in its slot already.
func (a *Allocator) gather(b uint32) {
	f, m := a.f, &a.merge
	blk := &f.Blocks[b]
	x := a.blocks[b].in
	preds := f.Preds[blk.Preds.From:blk.Preds.To]
	m.cands = append(m.cands[:0], candidate{})
	for k, o := range a.rows[x.From:x.To] {
		m.index[o.value] = uint32(k) + 1
		m.cands = append(m.cands, candidate{value: o.value, when: o.when})
	}
	m.ways = m.ways[:0]
	for _, e := range preds {
		if a.blocks[f.Edges[e].From].done {
			m.ways = append(m.ways, e)
		}
	}
	if a.loop != flow.NoBlock {
		// What the loops around bring back lives on though nothing ahead uses it. It must come on most ways, so one will do to find it.
		end := a.blocks[f.Edges[m.ways[0]].From].end
		for _, h := range a.ends[end.From:end.To] {
			if s := &a.values[h.value]; m.index[h.value] == 0 && s.loop != 0 && a.inside(s.loop) {
				m.index[h.value] = uint32(len(m.cands))
				m.cands = append(m.cands, candidate{value: h.value, when: unwanted})
			}
		}
	}
	m.args = uint32(len(m.cands))
	for row := blk.Params.From; row < blk.Params.To; row++ {
		o := a.operands[row]
		m.cands = append(m.cands, candidate{value: o.value, when: o.when.fromHead(blk.Insts.From)})
	}
	n := len(m.cands)
	m.at = arena.Zeroed(m.at, n*len(m.ways))
	for way, e := range m.ways {
		edge := &f.Edges[e]
		at := m.at[way*n:][:n]
		end := a.blocks[edge.From].end
		for _, h := range a.ends[end.From:end.To] {
			k := m.index[h.value]
			at[k] = h.reg
			m.cands[k].seen(h.reg)
		}
		for k := range uint32(edge.Args.Len()) {
			if p := a.answer.Place[edge.Args.From+k]; p != flow.NoPlace {
				r := in(bank(f.Class[m.cands[m.args+k].value]), p.Index())
				at[m.args+k] = r
				m.cands[m.args+k].seen(r)
			}
		}
	}
}

func (x *candidate) seen(r reg) {
	x.from++
	switch {
	case x.votes == 0:
		x.reg, x.votes = r, 1
	case x.reg == r:
		x.votes++
	default:
		x.votes--
	}
}

// choose leaves a register to each candidate that gets one.
func (a *Allocator) choose(b uint32) {
	m := &a.merge
	ways := uint32(len(m.ways))
	var taken [banks]uint64
	var left [banks]int
	for c := range flow.Class(flow.NumClasses) {
		left[bank(c)] = a.regs.N[c] - int(a.blocks[b].tests[c])
	}
	// The best first: on every way in a register, then needed soonest.
	m.order = m.order[:0]
	head := a.loops.Heads[b]
	for k := 1; k < len(m.cands); k++ {
		x := &m.cands[k]
		param := k >= int(m.args)
		if !x.when.live() || !(2*x.from > ways || param && x.from > 0) || head && !param && x.when.near() <= soonest-loopExit {
			x.reg = none // in the last case the loop does not use it
			continue
		}
		key := uint64(soonest-x.when.near())<<32 | uint64(k)
		if x.from != ways {
			key |= 1 << 63
		}
		m.order = append(m.order, key)
	}
	slices.Sort(m.order)
	pending := m.order[:0]
	for _, key := range m.order {
		x := &m.cands[uint32(key)]
		bank := x.reg.bank()
		if left[bank] <= 0 { // a branch may test one value more than once
			x.reg = none
			continue
		}
		left[bank]--
		if taken[bank]&x.reg.bit() != 0 {
			h := a.values[x.value].hint
			if h == none || taken[bank]&h.bit() != 0 {
				pending = append(pending, key)
				continue
			}
			x.reg = h
		}
		taken[bank] |= x.reg.bit()
	}
	for _, key := range pending {
		x := &m.cands[uint32(key)]
		bank := x.reg.bank()
		x.reg = a.pick(bank, a.all[bank]&^taken[bank], x.when, none)
		taken[bank] |= x.reg.bit()
	}
}
