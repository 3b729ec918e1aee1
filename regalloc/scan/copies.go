package scan

import (
	"math/bits"

	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// leave notes what is in registers at the end of a block if others want to know, and goes on to a block that was scanned before.
func (a *Allocator) leave(b uint32) {
	f := a.f
	s := f.Blocks[b].Succs
	if s.Len() == 0 {
		return
	}
	edge := &f.Edges[s.From]
	meets := f.Blocks[edge.To].Preds.Len() > 1
	if s.Len() == 1 && !meets {
		return // the next block goes on here
	}
	x := &a.blocks[b]
	x.end.From = uint32(len(a.ends))
	for c := range flow.Class(flow.NumClasses) {
		bank := bank(c)
		for u := a.used[bank]; u != 0; u &= u - 1 {
			r := in(bank, bits.TrailingZeros64(u))
			a.ends = append(a.ends, held{a.value[r], r})
		}
	}
	x.end.To = uint32(len(a.ends))
	switch {
	case !meets:
	case a.blocks[edge.To].done:
		a.back(s.From)
	default:
		a.lead(edge)
	}
}

// lead says where the arguments of an edge are; if it is the first of its target, to those too that come there later.
func (a *Allocator) lead(edge *flow.Edge) {
	f, to := a.f, &a.blocks[edge.To]
	for k := range uint32(edge.Args.Len()) {
		row := edge.Args.From + k
		r := a.values[f.Ops[row]].reg
		if r == none {
			a.answer.Place[row] = flow.NoPlace
			continue
		}
		a.answer.Place[row] = r.place()
		if to.led {
			continue
		}
		preds := f.Blocks[edge.To].Preds
		for _, e := range f.Preds[preds.From:preds.To] {
			if s := &a.values[f.Ops[f.Edges[e].Args.From+k]]; !a.blocks[f.Edges[e].From].done && s.hint == none {
				s.hint = r
			}
		}
	}
	to.led = true
}

// back goes along edge e from the end of the block at hand to the head of one that was scanned.
func (a *Allocator) back(e uint32) {
	f, m := a.f, &a.merge
	edge := &f.Edges[e]
	m.goals, m.at = m.goals[:0], m.at[:0]
	head := a.blocks[edge.To].head
	for k, h := range a.heads[head.From:head.To] {
		m.goals = append(m.goals, goal{h.value, uint32(k), h.reg})
		m.at = append(m.at, a.values[h.value].reg)
	}
	m.args = head.To - head.From
	params := f.Blocks[edge.To].Params.From
	for k, v := range f.Of(edge.Args) {
		m.at = append(m.at, a.values[v].reg)
		p := f.Ops[params+uint32(k)]
		switch to := a.answer.Place[params+uint32(k)]; {
		case to == flow.NoPlace:
		case to.IsSlot():
			m.goals = append(m.goals, goal{p, m.args + uint32(k), none})
		default:
			m.goals = append(m.goals, goal{p, m.args + uint32(k), a.values[p].birth})
		}
	}
	a.follow(e, m.at)
}

// follow brings what the head of the target of edge e wants from where the end of its source has it, at. The source has no other way out.
func (a *Allocator) follow(e uint32, at []reg) {
	f, m := a.f, &a.merge
	moved, last := 0, 0
	for k := range m.goals {
		if g := &m.goals[k]; g.reg == none || g.reg != at[g.index] {
			moved, last = moved+1, k
		}
	}
	if moved == 0 {
		return
	}
	edge := &f.Edges[e]
	end := f.Last(edge.From)
	if moved == 1 && f.Insts[end].Uses.Len() == 0 {
		g := &m.goals[last]
		if c, from, to := a.way(edge, g, at[g.index]); !from.IsSlot() || !to.IsSlot() {
			a.move(end, c, from, to)
			return
		}
	}
	var busy [flow.NumClasses]uint64
	for k := range m.goals {
		g := &m.goals[k]
		c, from, to := a.way(edge, g, at[g.index])
		if g.reg != none {
			busy[c] |= g.reg.bit()
		}
		a.together.Add(c, from, to)
	}
	a.together.KeepTests(f, end, a.answer.Place, &a.regs, busy)
	x := a.blocks[edge.From].end
	for _, h := range a.ends[x.From:x.To] {
		busy[h.reg.class()] |= h.reg.bit()
	}
	for c := range busy {
		busy[c] = a.regs.All(flow.Class(c)) &^ busy[c]
	}
	slots := int(a.slots)
	a.moves = a.together.Sequence(a.moves, end, &a.regs, busy, &slots)
	a.slots = uint32(slots)
}

// way is how what a goal wants gets there from register r, or its slot if none.
func (a *Allocator) way(edge *flow.Edge, g *goal, r reg) (c flow.Class, from, to flow.Place) {
	v := g.value
	if g.index >= a.merge.args {
		v = a.f.Ops[edge.Args.From+g.index-a.merge.args]
	}
	c = a.f.Class[v]
	if r != none {
		from = r.place()
	} else {
		from = a.slot(v)
	}
	if g.reg != none {
		return c, from, g.reg.place()
	}
	return c, from, a.slot(g.value)
}
