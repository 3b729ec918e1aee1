package flow

import (
	"math/bits"

	"github.com/rosmar-compiler/rosmar/arena"
)

// Parallel puts moves that happen at once into an order in which they can happen one after the other: a place is written when nothing is left
// to be read from it, circles are broken with a free register or else a spare slot, and a move between slots goes through a register.
// Add the moves, then Sequence them, which empties it. Warm it allocates nothing.
type Parallel struct {
	todo  []Move
	reads []uint32    // by place: moves left that read it, zero between uses
	into  []uint32    // by place: 1 + the move left that writes it, zero between uses
	ready [3][]uint32 // moves whose target may be written: into slots, between registers, loads

	circles bool     // reader is filled
	reader  []uint32 // by place, when only circles are left
	from    int      // moves before it are done
}

const parallelSlots = NumClasses * MaxRegs

func placeNumber(p Place, c Class) int {
	if p.IsSlot() {
		return parallelSlots + p.Index()
	}
	return int(c)*MaxRegs + p.Index()
}

// Add wants the value at from to be at to. Each place is written at most once. A register that is read is free after that; a move of it
// to itself keeps it.
func (p *Parallel) Add(c Class, from, to Place) {
	p.todo = append(p.todo, Move{Class: c, From: from, To: to})
}

// KeepTests sees to it that what the branch at instruction at tests is still in registers behind the moves that were added, which stand before
// it: place names the registers of its operands, written those that the moves write. A test that would be overwritten goes to a register of r
// that is neither written nor tested; callers leave as many of them free where blocks meet.
func (p *Parallel) KeepTests(f *Func, at uint32, place []Place, r *File, written [NumClasses]uint64) {
	uses := f.Insts[at].Uses
	if uses.Len() == 0 {
		return
	}
	taken := written
	for row := uses.From; row < uses.To; row++ {
		taken[f.Class[f.Ops[row]]] |= 1 << place[row].Index()
	}
	var kept [NumClasses]uint64         // registers that were seen to
	var stay [NumClasses][MaxRegs]uint8 // and where what they hold is then
	for row := uses.From; row < uses.To; row++ {
		c, from := f.Class[f.Ops[row]], place[row].Index()
		if kept[c]>>from&1 == 0 {
			to := from
			if written[c]>>from&1 == 1 {
				to = bits.TrailingZeros64(r.All(c) &^ taken[c])
				taken[c] |= 1 << to
			}
			kept[c] |= 1 << from
			stay[c][from] = uint8(to)
			p.Add(c, Reg(from), Reg(to)) // also to itself, so that it is kept
		}
		place[row] = Reg(int(stay[c][from]))
	}
}

// Len is the number of moves that were added.
func (p *Parallel) Len() int { return len(p.todo) }

// Sequence appends the moves to out, each before instruction at, and returns it. The registers of free hold nothing that matters
// before or after. A spare slot is the one of number *slots, which then grows.
func (p *Parallel) Sequence(out []Move, at uint32, r *File, free [NumClasses]uint64, slots *int) []Move {
	n := 0
	var kept [NumClasses]uint64
	for _, m := range p.todo {
		for _, q := range [2]Place{m.From, m.To} {
			if !q.IsSlot() {
				free[m.Class] &^= 1 << q.Index()
			}
		}
		if m.From != m.To {
			p.todo[n] = m
			n++
		} else if !m.From.IsSlot() {
			kept[m.Class] |= 1 << m.From.Index()
		}
	}
	p.todo = p.todo[:n]
	if n == 0 {
		return out
	}
	if n == 1 && !(p.todo[0].From.IsSlot() && p.todo[0].To.IsSlot()) {
		m := p.todo[0]
		m.At = at
		p.todo = p.todo[:0]
		return append(out, m)
	}
	p.grow(*slots)
	p.circles, p.from = false, 0
	for k, m := range p.todo {
		p.reads[placeNumber(m.From, m.Class)]++
		p.into[placeNumber(m.To, m.Class)] = uint32(k) + 1
	}
	for k := range p.todo {
		p.offer(uint32(k))
	}
	emit := func(c Class, from, to Place) { out = append(out, Move{At: at, Class: c, From: from, To: to}) }
	for left := n; left > 0; {
		// Moves into slots first: they free registers. Loads last: until then their registers are free for others.
		which := 0
		for which < 3 && len(p.ready[which]) == 0 {
			which++
		}
		if which == 3 {
			p.breakCircle(emit, r, &free, slots)
			continue
		}
		q := &p.ready[which]
		k := (*q)[len(*q)-1]
		*q = (*q)[:len(*q)-1]
		m := p.todo[k]
		if m.From.IsSlot() && m.To.IsSlot() {
			p.through(emit, m, r, &free, slots)
		} else {
			emit(m.Class, m.From, m.To)
		}
		p.into[placeNumber(m.To, m.Class)] = 0
		if !m.To.IsSlot() {
			free[m.Class] &^= 1 << m.To.Index()
		}
		p.release(m.From, m.Class, &free, &kept)
		left--
	}
	p.todo = p.todo[:0]
	return out
}

func (p *Parallel) grow(slots int) {
	if n := parallelSlots + slots; len(p.reads) < n {
		// All are zero here, so nothing is lost. Twice the size, since slots come a few at a time.
		n = max(n, 2*len(p.reads))
		p.reads, p.into, p.reader = arena.Zeroed(p.reads, n), arena.Zeroed(p.into, n), arena.Zeroed(p.reader, n)
	}
}

// release notes that one reader less is left for a place.
func (p *Parallel) release(q Place, c Class, free, kept *[NumClasses]uint64) {
	x := placeNumber(q, c)
	if p.reads[x]--; p.reads[x] > 0 {
		return
	}
	if k := p.into[x]; k > 0 {
		p.offer(k - 1)
	} else if !q.IsSlot() {
		free[c] |= 1 << q.Index() &^ kept[c]
	}
}

// offer queues a move whose target nobody has to read.
func (p *Parallel) offer(k uint32) {
	m := &p.todo[k]
	if p.reads[placeNumber(m.To, m.Class)] > 0 {
		return
	}
	which := 1
	if m.To.IsSlot() {
		which = 0
	} else if m.From.IsSlot() {
		which = 2
	}
	p.ready[which] = append(p.ready[which], k)
}

// scratch is a free register of a class: one that holds nothing, or one that a load which waits will fill.
func (p *Parallel) scratch(c Class, free *[NumClasses]uint64) (Place, bool) {
	if free[c] != 0 {
		return Reg(bits.TrailingZeros64(free[c])), true
	}
	for _, k := range p.ready[2] {
		if m := &p.todo[k]; m.Class == c {
			return m.To, true
		}
	}
	return NoPlace, false
}

// through moves from slot to slot.
func (p *Parallel) through(emit func(Class, Place, Place), m Move, r *File, free *[NumClasses]uint64, slots *int) {
	t, ok := p.scratch(m.Class, free)
	if ok {
		emit(m.Class, m.From, t)
		emit(m.Class, t, m.To)
		return
	}
	// Every register is taken: one of them makes room for a moment.
	t = Reg(r.N[m.Class] - 1)
	spare := p.spare(slots)
	emit(m.Class, t, spare)
	emit(m.Class, m.From, t)
	emit(m.Class, t, m.To)
	emit(m.Class, spare, t)
}

func (p *Parallel) spare(slots *int) Place {
	s := Slot(*slots)
	*slots++
	for n := parallelSlots + *slots; len(p.reads) < n; {
		p.reads, p.into, p.reader = append(p.reads, 0), append(p.into, 0), append(p.reader, 0)
	}
	return s
}

// breakCircle saves what the target of some move holds and has its reader read the copy. Nothing is ready, so each place that is left has one
// writer and one reader: all moves are in circles, and so are those of other circles when one has been broken and has drained.
func (p *Parallel) breakCircle(emit func(Class, Place, Place), r *File, free *[NumClasses]uint64, slots *int) {
	if !p.circles {
		p.circles = true
		for k, m := range p.todo {
			if p.into[placeNumber(m.To, m.Class)] == uint32(k)+1 {
				p.reader[placeNumber(m.From, m.Class)] = uint32(k)
			}
		}
	}
	for p.into[placeNumber(p.todo[p.from].To, p.todo[p.from].Class)] != uint32(p.from)+1 {
		p.from++
	}
	m := &p.todo[p.from]
	x := placeNumber(m.To, m.Class)
	t, ok := p.scratch(m.Class, free)
	if ok {
		free[m.Class] &^= 1 << t.Index()
		emit(m.Class, m.To, t)
	} else {
		t = p.spare(slots)
		if m.To.IsSlot() {
			p.through(emit, Move{Class: m.Class, From: m.To, To: t}, r, free, slots)
		} else {
			emit(m.Class, m.To, t)
		}
	}
	p.todo[p.reader[x]].From = t
	p.reads[placeNumber(t, m.Class)]++
	p.reads[x] = 0
	p.offer(uint32(p.from))
}
