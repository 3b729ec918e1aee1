package flow

import (
	"math/rand/v2"
	"testing"
)

// TestParallel runs sequences and holds them against what all moves at once would do. Registers that are not free and that no move names keep
// what they hold.
func TestParallel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var p Parallel
	var out []Move
	for n := range 20000 {
		regs := File{N: [2]int{1 + rng.IntN(6), 1 + rng.IntN(3)}}
		slots := 1 + rng.IntN(6)
		var places []Move // Class and From: every place of each class
		for c := range Class(NumClasses) {
			for r := range regs.N[c] {
				places = append(places, Move{Class: c, From: Reg(r)})
			}
		}
		slotClass := make([]Class, slots)
		for s := range slots {
			slotClass[s] = Class(rng.IntN(2))
			places = append(places, Move{Class: slotClass[s], From: Slot(s)})
		}
		hold := map[Move]int{}
		want := map[Move]int{}
		free := [NumClasses]uint64{}
		for k, q := range places {
			hold[q], want[q] = k+1, k+1
			if !q.From.IsSlot() && rng.IntN(3) == 0 {
				free[q.Class] |= 1 << q.From.Index()
			}
		}
		for _, q := range places {
			from := places[rng.IntN(len(places))]
			if rng.IntN(3) > 0 && from.Class == q.Class {
				p.Add(q.Class, from.From, q.From)
				want[q] = hold[from]
			}
		}
		written, read := map[Move]bool{}, map[Move]bool{}
		for _, m := range p.todo {
			written[Move{Class: m.Class, From: m.To}] = true
			read[Move{Class: m.Class, From: m.From}] = true
		}
		had := slots
		out = p.Sequence(out[:0], 7, &regs, free, &slots)
		for _, m := range out {
			if m.At != 7 || m.From.IsSlot() && m.To.IsSlot() || m.To.IsSlot() && m.To.Index() >= slots {
				t.Fatalf("case %d: move %v", n, m)
			}
			hold[Move{Class: m.Class, From: m.To}] = hold[Move{Class: m.Class, From: m.From}]
		}
		if p.Len() > 0 {
			t.Fatal("moves are left")
		}
		for _, q := range places {
			if !written[q] && !q.From.IsSlot() && (read[q] || free[q.Class]>>q.From.Index()&1 == 1) {
				continue
			}
			if hold[q] != want[q] {
				t.Fatalf("case %d: %d slots, then %d: %v of class %d holds %d, want %d: %v", n, had, slots, q.From, q.Class, hold[q], want[q], out)
			}
		}
	}
	add := func() {
		for k := range 5 {
			p.Add(Int, Reg(k), Reg((k+1)%5))
			p.Add(Int, Slot(k), Slot((k+1)%5))
		}
	}
	slots := 5
	run := func() {
		add()
		slots = 5
		out = p.Sequence(out[:0], 0, &File{N: [2]int{5, 0}}, [2]uint64{}, &slots)
	}
	run()
	if n := testing.AllocsPerRun(10, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A circle of registers goes through a free one, and through a slot if there is none.
func TestParallelCircle(t *testing.T) {
	var p Parallel
	for _, free := range []uint64{0, 1 << 3} {
		for k := range 3 {
			p.Add(Int, Reg(k), Reg((k+1)%3))
		}
		slots := 0
		out := p.Sequence(nil, 0, &File{N: [2]int{4, 0}}, [2]uint64{free, 0}, &slots)
		if len(out) != 4 || slots != 1-int(free>>3) {
			t.Errorf("%d slots, %v", slots, out)
		}
	}
}

// 100,000 slots that change places in pairs take a time in proportion.
func TestParallelManyCircles(t *testing.T) {
	var p Parallel
	slots := 200_000
	for k := 0; k < slots; k += 2 {
		p.Add(Int, Slot(k), Slot(k+1))
		p.Add(Int, Slot(k+1), Slot(k))
	}
	had := slots
	if out := p.Sequence(nil, 0, &File{N: [2]int{2, 0}}, [2]uint64{3, 0}, &slots); len(out) != 2*had {
		t.Errorf("%d moves", len(out))
	}
}
