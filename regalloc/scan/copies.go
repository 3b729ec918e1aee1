package scan

import (
	"math/bits"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// transfer is one part of a parallel copy.
type transfer struct {
	from, to flow.Place
	class    flow.Class
}

// copyScratch is the storage of going along an edge.
type copyScratch struct {
	here []in     // what is in registers at the start
	at   []uint8  // by value: its register there
	has  []uint32 // by value: stamp of at
	tick uint32

	todo  []transfer
	reads [flow.NumClasses][flow.MaxRegs]uint16 // by register: transfers still to be made that read it
	slots []uint16                              // by value: transfers still to be made that read its slot
}

func (s *copyScratch) begin(values int) {
	s.at = arena.Resized(s.at, values)
	s.has = arena.Zeroed(s.has, values)
	s.slots = arena.Zeroed(s.slots, values)
	s.tick = 0
}

// locate remembers where values are.
func (s *copyScratch) locate(here []in) {
	s.here = here
	s.tick++
	for _, x := range here {
		s.at[x.value], s.has[x.value] = x.reg, s.tick
	}
}

func (s *copyScratch) regOf(v flow.Value) uint8 {
	if s.has[v] == s.tick {
		return s.at[v]
	}
	return none
}

// resolve brings what the head of the target of edge e wants from where the end of its source has it. Both have been scanned, and
// the source has no other way out.
func (a *Allocator) resolve(e uint32) {
	f, s := a.f, &a.copy
	edge := &f.Edges[e]
	s.locate(a.ends[a.end[edge.From].from:a.end[edge.From].to])
	s.todo = s.todo[:0]
	head := a.heads[a.head[edge.To].from:a.head[edge.To].to]
	params := f.Blocks[edge.To].Params
	var busy [flow.NumClasses]uint64
	for _, x := range head {
		a.wish(x.value, x.class, flow.Reg(int(x.reg)))
		busy[x.class] |= 1 << x.reg
	}
	for k := range uint32(edge.Args.Len()) {
		if p := a.answer.Place[params.From+k]; p != flow.NoPlace {
			v := f.Ops[edge.Args.From+k]
			a.wish(v, f.Class[v], p)
			if !p.IsSlot() {
				busy[f.Class[v]] |= 1 << p.Index()
			}
		}
	}
	at := f.Last(edge.From)
	a.keepTests(at, &busy)
	for _, x := range s.here {
		busy[x.class] |= 1 << x.reg
	}
	a.together(at, &busy)
}

// wish adds the transfer of v to a place.
func (a *Allocator) wish(v flow.Value, c flow.Class, to flow.Place) {
	s := &a.copy
	from := slot(a.root(v))
	if r := s.regOf(v); r != none {
		from = flow.Reg(int(r))
	} else {
		a.spilled[v] = true
	}
	if to.IsSlot() {
		to = slot(a.root(flow.Value(to.Index())))
	}
	if from != to {
		s.todo = append(s.todo, transfer{from, to, c})
	}
}

// keepTests sees to it that what the branch tests is in registers that the head does not use, since the transfers come before the
// branch reads. Where blocks meet, as many registers are left free for that.
func (a *Allocator) keepTests(at uint32, busy *[flow.NumClasses]uint64) {
	f := a.f
	in := &f.Insts[at]
	lost := false
	head := *busy
	for row := in.Uses.From; row < in.Uses.To; row++ {
		c, r := f.Class[f.Ops[row]], a.answer.Place[row].Index()
		busy[c] |= 1 << r
		lost = lost || head[c]>>r&1 != 0
	}
	if !lost {
		return
	}
	for row := in.Uses.From; row < in.Uses.To; row++ {
		c, from := f.Class[f.Ops[row]], a.answer.Place[row]
		if head[c]>>from.Index()&1 == 0 {
			continue
		}
		r := flow.Reg(bits.TrailingZeros64(a.regs.All(c) &^ busy[c]))
		busy[c] |= 1 << r.Index()
		a.copy.todo = append(a.copy.todo, transfer{from, r, c})
		a.answer.Place[row] = r
	}
}

// reading is the count of transfers that read a place.
func (a *Allocator) reading(p flow.Place, c flow.Class) *uint16 {
	if p.IsSlot() {
		return &a.copy.slots[p.Index()]
	}
	return &a.copy.reads[c][p.Index()]
}

// together makes all transfers as if at once: those first that overwrite nothing that is still to be read; what then remains
// are circles, each of which is cut by saving one of its values.
func (a *Allocator) together(at uint32, busy *[flow.NumClasses]uint64) {
	s := &a.copy
	for _, t := range s.todo {
		*a.reading(t.from, t.class)++
	}
	for len(s.todo) > 0 {
		left := s.todo[:0]
		before := len(s.todo)
		for _, t := range s.todo {
			if *a.reading(t.to, t.class) > 0 {
				left = append(left, t)
				continue
			}
			*a.reading(t.from, t.class)--
			a.transfer(at, t, busy)
		}
		s.todo = left
		if len(left) < before {
			continue
		}
		// Every destination is still to be read. Its readers read a copy instead.
		t := left[0]
		n := a.reading(t.to, t.class)
		aside := a.aside(at, t.to, t.class, busy)
		for k := range left {
			if left[k].from == t.to && left[k].class == t.class {
				left[k].from = aside
				*a.reading(aside, t.class)++
			}
		}
		*n = 0
	}
}

// aside copies a place to a free register, or to a new slot.
func (a *Allocator) aside(at uint32, p flow.Place, c flow.Class, busy *[flow.NumClasses]uint64) flow.Place {
	to := a.spare()
	if free := a.regs.All(c) &^ busy[c]; free != 0 {
		r := bits.TrailingZeros64(free)
		busy[c] |= 1 << r
		to = flow.Reg(r)
	}
	a.transfer(at, transfer{p, to, c}, busy)
	return to
}

// spare is a slot that belongs to no value.
func (a *Allocator) spare() flow.Place {
	v := flow.Value(len(a.slotOf))
	a.slotOf = append(a.slotOf, v)
	a.copy.slots = append(a.copy.slots, 0)
	return slot(v)
}

// transfer emits one transfer; from slot to slot through a register, which is saved around it when none is free.
func (a *Allocator) transfer(at uint32, t transfer, busy *[flow.NumClasses]uint64) {
	if !t.from.IsSlot() || !t.to.IsSlot() {
		a.move(at, t.class, t.from, t.to)
		return
	}
	if free := a.regs.All(t.class) &^ busy[t.class]; free != 0 {
		r := flow.Reg(bits.TrailingZeros64(free))
		a.move(at, t.class, t.from, r)
		a.move(at, t.class, r, t.to)
		return
	}
	r, keep := flow.Reg(0), a.spare()
	a.move(at, t.class, r, keep)
	a.move(at, t.class, t.from, r)
	a.move(at, t.class, r, t.to)
	a.move(at, t.class, keep, r)
}
