package scan

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// finish numbers the slots, puts a store behind the definition of every value that needs its slot, and sorts the moves.
func (a *Allocator) finish() {
	f := a.f
	ans := a.answer
	a.count = arena.Zeroed(a.count, len(f.Insts)+1)
	a.stores()
	for k := range a.store {
		a.count[a.store[k].At]++
	}
	for k := range a.moves {
		a.count[a.moves[k].At]++
	}
	at := uint32(0)
	for i, n := range a.count {
		a.count[i] = at
		at += n
	}
	ans.Moves = arena.Resized(ans.Moves, len(a.store)+len(a.moves))
	for _, list := range [2][]flow.Move{a.store, a.moves} { // stores come before the other moves of their instruction
		for _, m := range list {
			ans.Moves[a.count[m.At]] = m
			a.count[m.At]++
		}
	}
	a.number()
}

// stores lists the stores of what needs a slot, each behind the definition.
func (a *Allocator) stores() {
	f := a.f
	a.store = a.store[:0]
	for b := range f.Blocks {
		blk := &f.Blocks[b]
		for row := blk.Params.From; row < blk.Params.To; row++ {
			a.define(blk.Insts.From, row)
		}
		for i := blk.Insts.From; i < blk.Insts.To; i++ {
			in := &f.Insts[i]
			for row := in.Uses.To; row < in.To; row++ {
				a.define(i+1, row)
			}
		}
	}
}

// define lists the store of one definition, if there is one.
func (a *Allocator) define(at, row uint32) {
	v := a.f.Ops[row]
	if p := a.answer.Place[row]; a.spilled[v] && !a.born[v] && p != flow.NoPlace {
		a.store = append(a.store, flow.Move{At: at, Class: a.f.Class[v], From: p, To: slot(v)})
	}
}

// number gives the slots that are used their numbers, in the order in which the answer names them.
func (a *Allocator) number() {
	ans := a.answer
	a.count = arena.Zeroed(a.count, len(a.slotOf))
	next := uint32(0)
	rename := func(p *flow.Place) {
		if *p == flow.NoPlace || !p.IsSlot() {
			return
		}
		n := &a.count[a.root(flow.Value(p.Index()))]
		if *n == 0 {
			next++
			*n = next
		}
		*p = flow.Slot(int(*n - 1))
	}
	for k := range ans.Moves {
		rename(&ans.Moves[k].From)
		rename(&ans.Moves[k].To)
	}
	for k := range ans.Place {
		rename(&ans.Place[k])
	}
	ans.Slots = int(next)
}
