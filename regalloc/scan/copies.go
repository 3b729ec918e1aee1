package scan

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// copyScratch is the storage of going along an edge.
type copyScratch struct {
	here []in     // what is in registers at the start
	at   []uint8  // by value: its register there
	has  []uint32 // by value: stamp of at
	tick uint32

	together flow.Parallel
}

func (s *copyScratch) begin(values int) {
	s.at = arena.Resized(s.at, values)
	s.has = arena.Zeroed(s.has, values)
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
	var busy [flow.NumClasses]uint64
	for _, x := range a.heads[a.head[edge.To].from:a.head[edge.To].to] {
		a.wish(x.value, x.class, flow.Reg(int(x.reg)), &busy)
	}
	params := f.Blocks[edge.To].Params
	for k, v := range f.Of(edge.Args) {
		if p := a.answer.Place[params.From+uint32(k)]; p != flow.NoPlace {
			a.wish(v, f.Class[v], p, &busy)
		}
	}
	at := f.Last(edge.From)
	s.together.KeepTests(f, at, a.answer.Place, &a.regs, busy)
	for _, x := range s.here {
		busy[x.class] |= 1 << x.reg
	}
	for c := range busy {
		busy[c] = a.regs.All(flow.Class(c)) &^ busy[c]
	}
	slots := len(a.slotOf)
	a.moves = s.together.Sequence(a.moves, at, &a.regs, busy, &slots)
	for len(a.slotOf) < slots {
		a.slotOf = append(a.slotOf, flow.Value(len(a.slotOf)))
	}
}

// wish adds the way of v to a place, and marks the register there.
func (a *Allocator) wish(v flow.Value, c flow.Class, to flow.Place, busy *[flow.NumClasses]uint64) {
	from := slot(a.root(v))
	if r := a.copy.regOf(v); r != none {
		from = flow.Reg(int(r))
	} else {
		a.spilled[v] = true
	}
	if to.IsSlot() {
		to = slot(a.root(flow.Value(to.Index())))
	} else {
		busy[c] |= 1 << to.Index()
	}
	a.copy.together.Add(c, from, to)
}
