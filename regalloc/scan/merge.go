package scan

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// candidate is a value that could be in a register where blocks meet.
type candidate struct {
	value flow.Value
	row   uint32 // in Ops for a parameter, else noRow
	when  when   // from the head of the block
	from  uint32 // ways on which it is in a register
	votes uint32 // by which that register leads (Boyer and Moore's majority)
	class flow.Class
	reg   uint8 // on most of these ways
}

const noRow = ^uint32(0)

// mergeScratch is the storage of choosing what is in registers where blocks meet.
type mergeScratch struct {
	at    []uint32 // by value: base and 1 + its place among the candidates, base alone if it is none, less if it was not met
	base  uint32
	cands []candidate

	copied []uint32 // rows of parameters whose arguments stay in their registers
}

func (m *mergeScratch) begin(values int) { m.at, m.base = arena.Zeroed(m.at, values), 1 }

// enter sets the registers for the head of a block.
func (a *Allocator) enter(b uint32) {
	for c := range a.used {
		for u := a.used[c]; u != 0; u &= u - 1 {
			a.reg[a.value[c][bits.TrailingZeros64(u)]] = none
		}
		a.used[c] = 0
	}
	preds := a.f.Blocks[b].Preds
	switch preds.Len() {
	case 0:
	case 1:
		a.inherit(b, a.f.Preds[preds.From])
	default:
		a.meet(b)
	}
	a.done[b] = true
}

// inherit starts a block where its only predecessor ended.
func (a *Allocator) inherit(b, e uint32) {
	f := a.f
	edge := &f.Edges[e]
	first := f.Blocks[b].Insts.From
	a.copy.locate(a.ends[a.end[edge.From].from:a.end[edge.From].to])
	for _, x := range a.copy.here {
		a.put(x.class, x.reg, x.value, never)
	}
	row := a.live.Row(b)
	for k, v := range a.live.In(b) {
		if r := a.reg[v]; r != none {
			a.when[f.Class[v]][r] = absolute(a.into[row+uint32(k)], first)
		}
	}
	// Parameters take the registers of arguments that end here, then the slots; the rest are copied out of registers that are kept until all are.
	params := f.Blocks[b].Params
	var sources [flow.NumClasses]uint64
	a.merge.copied = a.merge.copied[:0]
	for k := range uint32(edge.Args.Len()) {
		v, prow, arow := f.Ops[edge.Args.From+k], params.From+k, edge.Args.From+k
		p, w := f.Ops[prow], a.next[prow]
		if !w.live() {
			continue
		}
		c, r := f.Class[v], a.copy.regOf(v)
		if r == none {
			// The two never differ while both live, so they share the slot.
			a.slotOf[p] = a.root(v)
			a.spilled[v], a.spilled[p], a.born[p] = true, true, true
			a.answer.Place[prow], a.answer.Place[arow] = slot(v), slot(v)
			continue
		}
		a.answer.Place[prow], a.answer.Place[arow] = flow.Reg(int(r)), flow.Reg(int(r))
		if a.reg[v] == r && !a.when[c][r].live() {
			a.drop(c, r)
			a.put(c, r, p, w)
		} else {
			sources[c] |= 1 << r
			a.merge.copied = append(a.merge.copied, prow)
		}
	}
	for c := range flow.Class(flow.NumClasses) {
		for u := a.used[c]; u != 0; u &= u - 1 {
			if r := uint8(bits.TrailingZeros64(u)); !a.when[c][r].live() {
				a.drop(c, r)
			}
		}
	}
	for _, prow := range a.merge.copied {
		p, w := f.Ops[prow], a.next[prow]
		c := f.Class[p]
		s := a.find(first, c, sources[c], w, a.hint[p])
		if s == none {
			a.spilled[p] = true // its store stands at the head, before anything moves
			continue
		}
		a.move(first, c, a.answer.Place[prow], flow.Reg(int(s)))
		a.put(c, s, p, w)
	}
}

// root is the value whose slot v uses.
func (a *Allocator) root(v flow.Value) flow.Value {
	for a.slotOf[v] != v {
		a.slotOf[v] = a.slotOf[a.slotOf[v]]
		v = a.slotOf[v]
	}
	return v
}

// absolute is a time from the head of a block as an instruction number.
func absolute(w when, first uint32) when {
	if w.time() < stays {
		return sum(w.time(), first) | w&crosses
	}
	return w
}

// meet chooses what is in registers at the head of a block with several predecessors, and lets those that were scanned go there.
func (a *Allocator) meet(b uint32) {
	f := a.f
	blk := &f.Blocks[b]
	first := blk.Insts.From
	ways := a.gather(b)
	a.choose(b, ways)
	a.head[b].from = uint32(len(a.heads))
	for k := range a.merge.cands {
		x := &a.merge.cands[k]
		if x.reg == none {
			a.spilled[x.value] = true
			if x.row != noRow {
				a.born[x.value] = true
				a.answer.Place[x.row] = slot(x.value)
			}
			continue
		}
		a.put(x.class, x.reg, x.value, absolute(x.when, first))
		a.hint[x.value] = x.reg
		if x.row != noRow {
			a.answer.Place[x.row] = flow.Reg(int(x.reg))
		} else {
			a.heads = append(a.heads, in{x.value, x.class, x.reg})
		}
	}
	a.head[b].to = uint32(len(a.heads))
	for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
		edge := &f.Edges[e]
		for k := range uint32(edge.Args.Len()) {
			prow := blk.Params.From + k
			a.answer.Place[edge.Args.From+k] = a.answer.Place[prow]
			if r := a.reg[f.Ops[prow]]; r != none && !a.done[edge.From] {
				a.hint[f.Ops[edge.Args.From+k]] = r
			}
		}
		if a.done[edge.From] {
			a.resolve(e)
		}
	}
}

// gather lists the parameters of b and what comes to its head in a register on a way that was scanned; it returns the number of these
// ways. What is live there and in no register on any of them is in its slot already.
func (a *Allocator) gather(b uint32) (ways uint32) {
	f, m := a.f, &a.merge
	blk := &f.Blocks[b]
	m.cands = m.cands[:0]
	for row := blk.Params.From; row < blk.Params.To; row++ {
		w := a.next[row]
		if w.time() < stays {
			w -= when(blk.Insts.From)
		}
		v := f.Ops[row]
		m.cands = append(m.cands, candidate{value: v, row: row, when: w, class: f.Class[v], reg: none})
	}
	live, into := a.live.In(b), a.into[a.live.Row(b):]
	for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
		edge := &f.Edges[e]
		if !a.done[edge.From] {
			continue
		}
		ways++
		a.copy.locate(a.ends[a.end[edge.From].from:a.end[edge.From].to])
		for _, x := range a.copy.here {
			at := &m.at[x.value]
			if *at < m.base {
				*at = m.base
				if k, found := slices.BinarySearch(live, x.value); found && into[k].live() {
					m.cands = append(m.cands, candidate{value: x.value, row: noRow, when: into[k], class: x.class, reg: none})
					*at = m.base + uint32(len(m.cands))
				}
			}
			if *at > m.base {
				m.cands[*at-m.base-1].seen(x.reg)
			}
		}
		for k := range edge.Args.Len() {
			if r := a.copy.regOf(f.Ops[edge.Args.From+uint32(k)]); r != none {
				m.cands[k].seen(r)
			}
		}
	}
	m.base += uint32(len(m.cands)) + 1
	n := 0
	for k := range m.cands {
		if m.cands[k].when.live() {
			m.cands[n] = m.cands[k]
			n++
		}
	}
	m.cands = m.cands[:n]
	return ways
}

func (x *candidate) seen(r uint8) {
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
func (a *Allocator) choose(b, ways uint32) {
	m := &a.merge
	// The best first: on every way in a register, then needed soonest.
	slices.SortFunc(m.cands, func(x, y candidate) int { return x.order(&y, ways) })
	var taken, room [flow.NumClasses]uint64
	var left [flow.NumClasses]int
	for c := range left {
		left[c] = a.regs.N[c] - a.tested(b, flow.Class(c))
		room[c] = a.regs.All(flow.Class(c))
	}
	for k := range m.cands {
		x := &m.cands[k]
		keep := left[x.class] > 0 && (2*x.from > ways || x.row != noRow && x.from > 0)
		if a.loops.Heads[b] && x.row == noRow && x.when.time() >= loopExit {
			keep = false // the loop does not use it
		}
		if !keep {
			x.reg = none
			continue
		}
		left[x.class]--
		free := room[x.class] &^ taken[x.class]
		if free>>x.reg&1 == 0 {
			x.reg = none
			if h := a.hint[x.value]; h != none && free>>h&1 != 0 {
				x.reg = h
			}
		}
		if x.reg != none {
			taken[x.class] |= 1 << x.reg
		} else {
			x.from = pending
		}
	}
	for k := range m.cands {
		if x := &m.cands[k]; x.from == pending {
			x.reg = a.pick(x.class, room[x.class]&^taken[x.class], x.when, none)
			taken[x.class] |= 1 << x.reg
		}
	}
}

// tested is how many registers of a class the branches into a block test at most, when they go nowhere else.
func (a *Allocator) tested(b uint32, c flow.Class) (most int) {
	f := a.f
	for _, e := range f.Preds[f.Blocks[b].Preds.From:f.Blocks[b].Preds.To] {
		n := 0
		for _, v := range f.Of(f.Insts[f.Last(f.Edges[e].From)].Uses) {
			if f.Class[v] == c {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// pending marks a candidate whose wished-for register went to another.
const pending = ^uint32(0)

// order puts what is in a register on every way first, then what is needed soonest.
func (x *candidate) order(y *candidate, ways uint32) int {
	if p, q := x.from == ways, y.from == ways; p != q {
		if p {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(x.when.time(), y.when.time()), cmp.Compare(x.value, y.value))
}

// leave notes what is in registers at the end of a block, and goes on to a block that was scanned before.
func (a *Allocator) leave(b uint32) {
	f := a.f
	a.end[b].from = uint32(len(a.ends))
	for c := range flow.Class(flow.NumClasses) {
		for u := a.used[c]; u != 0; u &= u - 1 {
			r := uint8(bits.TrailingZeros64(u))
			a.ends = append(a.ends, in{a.value[c][r], c, r})
		}
	}
	a.end[b].to = uint32(len(a.ends))
	s := f.Blocks[b].Succs
	if s.Len() != 1 {
		return
	}
	edge := &f.Edges[s.From]
	to := &f.Blocks[edge.To]
	if to.Preds.Len() < 2 {
		return
	}
	if a.done[edge.To] {
		a.resolve(s.From)
		return
	}
	// The first to get there says where its arguments are; the others follow.
	for k := range uint32(edge.Args.Len()) {
		if r := a.reg[f.Ops[edge.Args.From+k]]; r != none {
			for _, e := range f.Preds[to.Preds.From:to.Preds.To] {
				if v := f.Ops[f.Edges[e].Args.From+k]; !a.done[f.Edges[e].From] && a.hint[v] == none {
					a.hint[v] = r
				}
			}
		}
	}
}
