package scan

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// finish puts a store behind the definition of every value that needs its slot, and sorts the moves.
func (a *Allocator) finish() {
	ans := a.answer
	ans.Slots = int(a.slots)
	n := len(a.moves)
	for _, v := range a.stored {
		s := &a.values[v]
		a.moves = append(a.moves, flow.Move{At: s.store, Class: s.birth.class(), From: s.birth.place(), To: flow.Slot(int(s.slot - 1))})
	}
	a.count = arena.Zeroed(a.count, len(a.f.Insts)+1)
	for k := range a.moves {
		a.count[a.moves[k].At]++
	}
	at := uint32(0)
	for i, n := range a.count {
		a.count[i] = at
		at += n
	}
	ans.Moves = arena.Resized(ans.Moves, len(a.moves))
	for _, list := range [2][]flow.Move{a.moves[n:], a.moves[:n]} { // stores come before the other moves of their instruction
		for _, m := range list {
			ans.Moves[a.count[m.At]] = m
			a.count[m.At]++
		}
	}
}
