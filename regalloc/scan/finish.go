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
	stores := a.stores(nil)
	for k := range a.moves {
		a.count[a.moves[k].At]++
	}
	at := uint32(0)
	for i, n := range a.count {
		a.count[i] = at
		at += n
	}
	ans.Moves = arena.Resized(ans.Moves, len(a.moves)+stores)
	a.stores(ans.Moves)
	for _, m := range a.moves {
		ans.Moves[a.count[m.At]] = m
		a.count[m.At]++
	}
	a.number()
}

// stores hands out the stores of spilled values: it counts them when there is nowhere to put them, else it puts each before the other moves
// of its instruction.
func (a *Allocator) stores(to []flow.Move) (n int) {
	f := a.f
	put := func(at uint32, row uint32) {
		v := f.Ops[row]
		p := a.answer.Place[row]
		if !a.spilled[v] || a.born[v] || p == flow.NoPlace {
			return
		}
		n++
		if to == nil {
			a.count[at]++
			return
		}
		to[a.count[at]] = flow.Move{At: at, Class: f.Class[v], From: p, To: slot(v)}
		a.count[at]++
	}
	for b := range f.Blocks {
		blk := &f.Blocks[b]
		for row := blk.Params.From; row < blk.Params.To; row++ {
			put(blk.Insts.From, row)
		}
		for i := blk.Insts.From; i < blk.Insts.To; i++ {
			in := &f.Insts[i]
			for row := in.Uses.To; row < in.To; row++ {
				put(i+1, row)
			}
		}
	}
	return n
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
