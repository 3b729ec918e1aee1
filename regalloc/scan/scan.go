package scan

import (
	"fmt"
	"math/bits"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// reg is a register of either class: its number in six bits, above them its bank, which is one more than its class. Zero is none, of bank 0,
// which has no registers: what is noted of it by the way has no meaning.
type reg uint8

const none reg = 0

// banks is as many as two bits can name.
const banks = 4

func bank(c flow.Class) uint8 { return uint8(c) + 1 }

// in gives the register of a bank that has a number.
func in(bank uint8, number int) reg { return reg(bank<<6) | reg(number) }

func (r reg) bank() uint8       { return uint8(r >> 6) }
func (r reg) class() flow.Class { return flow.Class(r>>6) - 1 }
func (r reg) bit() uint64       { return 1 << (r & 63) }
func (r reg) place() flow.Place { return flow.Place(r & 63) }

// held says that a value is in a register. 8 bytes.
type held struct {
	value flow.Value
	reg   reg
}

// block is what is known of a block. 36 bytes.
type block struct {
	in    flow.Span               // in rows: what is live into it
	end   flow.Span               // in ends: what is in registers behind it, if another block than the next asks
	head  flow.Span               // in heads: what is in registers at its head, if a way that is scanned later meets others there
	tests [flow.NumClasses]uint32 // registers that a branch into it tests at most, when it goes nowhere else
	known bool                    // the walk back has been there
	done  bool                    // the scan has been there
	led   bool                    // a way into it that was scanned has said where its arguments are
	calls bool                    // it heads a loop with calls
}

// state is what is known of a value. 16 bytes.
type state struct {
	slot  uint32 // 1 + the slot that it needs, 0 if it needs none
	store uint32 // the instruction before which its store stands if it needs one
	loop  uint32 // head of a loop around which it stays in a register, 0 if of none
	reg   reg    // where it is now
	hint  reg    // which would save a copy
	birth reg    // which its definition writes
}

// Allocator is the storage of one worker's allocations. The zero value is ready; a second function of the same size allocates
// nothing.
type Allocator struct {
	f    *flow.Func
	regs flow.File

	loops  flow.Loops
	blocks []block

	// What is known before the scan.
	operands []operand // by row of Ops, arguments of edges not among them
	rows     []operand // what is live into blocks, up to maxLive and but for what only a back edge leads to, and when it is needed after the head
	work     []ahead   // by value
	reached  []flow.Value
	cut      bool // rows lacks what is live into some block beyond maxLive

	// Where values are at the point of the scan.
	values    []state
	all, gone [banks]uint64   // by bank: registers, those that calls destroy
	used      [banks]uint64   // by bank: registers that hold a value
	value     [256]flow.Value // by register
	when      [256]when       // by register
	last      uint32          // the block that was scanned last
	loop      uint32          // head of the innermost loop around the block at hand, itself if it is one

	ends, heads []held

	merge    mergeScratch
	together flow.Parallel

	moves  []flow.Move  // as they come
	stored []flow.Value // what needs a slot and a store
	slots  uint32
	count  []uint32
	answer *flow.Answer
	err    error
}

// Run places the values of f in the registers of regs and in slots. It reuses what ans holds. The error names what cannot be done with so
// few registers.
func (a *Allocator) Run(f *flow.Func, regs flow.File, ans *flow.Answer) error {
	if err := regs.Check(); err != nil {
		return err
	}
	a.f, a.regs, a.answer, a.err = f, regs, ans, nil
	defer func() { a.f, a.answer = nil, nil }()
	a.loops.Build(f)
	a.begin()
	a.lookAhead()
	for _, b := range a.loops.Order {
		a.enter(b)
		a.scan(b)
		if a.err != nil {
			return fmt.Errorf("function %s: block %d: %w", f.Name, b, a.err)
		}
		a.leave(b)
	}
	a.finish()
	return nil
}

// begin empties the tables.
func (a *Allocator) begin() {
	f := a.f
	for c := range flow.Class(flow.NumClasses) {
		a.all[bank(c)], a.gone[bank(c)] = a.regs.All(c), a.regs.Destroyed(c)
	}
	a.values = arena.Zeroed(a.values, f.Values())
	a.blocks = arena.Zeroed(a.blocks, len(f.Blocks))
	a.used = [banks]uint64{}
	a.last = flow.NoBlock
	a.ends, a.heads = a.ends[:0], a.heads[:0]
	a.merge.begin(f.Values())
	a.moves, a.stored, a.slots = a.moves[:0], a.stored[:0], 0
	a.answer.Place = arena.Resized(a.answer.Place, len(f.Ops))
	if len(a.loops.Order) < len(f.Blocks) {
		for row := range a.answer.Place {
			a.answer.Place[row] = flow.NoPlace // blocks that control never reaches keep this
		}
	}
}

// slot is the place of a value's slot, which it has from now on.
func (a *Allocator) slot(v flow.Value) flow.Place {
	s := &a.values[v]
	if s.slot == 0 {
		a.slots++
		s.slot = a.slots
		a.stored = append(a.stored, v)
	}
	return flow.Slot(int(s.slot - 1))
}

// born places a value in a slot where it is defined.
func (a *Allocator) born(v flow.Value) flow.Place {
	a.slots++
	a.values[v].slot = a.slots
	return flow.Slot(int(a.slots - 1))
}

// scan walks the instructions of a block.
func (a *Allocator) scan(b uint32) {
	f := a.f
	blk := &f.Blocks[b]
	for i := blk.Insts.From; i < blk.Insts.To; i++ {
		switch x := &f.Insts[i]; x.Kind {
		case flow.Op, flow.Branch:
			a.op(i, x)
		case flow.Call:
			a.call(i, a.reads(x.Uses))
			a.arrive(i, x.Defs())
		case flow.Args:
			a.arrive(i, x.Defs())
		case flow.Return:
			a.reads(x.Uses)
		}
	}
}

// op brings what an instruction reads into registers and gives registers to what it writes.
func (a *Allocator) op(i uint32, x *flow.Inst) {
	values := a.values
	rows, place := a.operands[x.Uses.From:x.To], a.answer.Place[x.Uses.From:x.To]
	uses := rows[:x.Uses.Len()]
	missing := false
	for k := range uses {
		r := values[uses[k].value].reg
		if r == none {
			missing = true
		}
		place[k] = r.place()
	}
	if missing {
		a.fetch(i, x.Uses)
	}
	// This is pass for all uses, but what they free is collected, since each write to used waits for the one before.
	var ints, floats uint64
	for k := range uses {
		o := uses[k]
		s := &values[o.value]
		r := s.reg
		a.when[r] = o.when
		if o.when.live() || s.loop != 0 && a.stays(s, r) {
			continue
		}
		s.reg = none
		ints |= r.bit() & -uint64(r>>6&1) // bank 1 or 2
		floats |= r.bit() & -uint64(r>>7)
	}
	a.used[bank(flow.Int)] &^= ints
	a.used[bank(flow.Float)] &^= floats
	switch defs := rows[len(uses):]; len(defs) {
	case 0:
	case 1:
		o := defs[0]
		s := &values[o.value]
		bank := bank(a.f.Class[o.value])
		r := a.find(i, bank, 0, o.when, s.hint)
		if r == none {
			a.short(i, bank)
			return
		}
		place[len(uses)] = r.place()
		s.store, s.birth = i+1, r
		if !o.when.live() {
			return
		}
		s.reg = r
		a.used[r.bank()] |= r.bit()
		a.value[r], a.when[r] = o.value, o.when
	default:
		a.results(i, x.Defs())
	}
}

// fetch loads what is not in registers.
func (a *Allocator) fetch(i uint32, s flow.Span) {
	var pinned [banks]uint64
	for _, o := range a.operands[s.From:s.To] {
		r := a.values[o.value].reg
		pinned[r.bank()] |= r.bit()
	}
	for row := s.From; row < s.To; row++ {
		o := a.operands[row]
		x := &a.values[o.value]
		if x.reg == none {
			bank := bank(a.f.Class[o.value])
			r := a.find(i, bank, pinned[bank], o.when, x.hint)
			if r == none {
				a.short(i, bank)
				return
			}
			a.put(r, o.value, o.when)
			a.move(i, r.class(), a.slot(o.value), r.place())
			pinned[bank] |= r.bit()
		}
		a.answer.Place[row] = x.reg.place()
	}
}

// reads takes what may be anywhere from where it is, and tells the registers that it reads.
func (a *Allocator) reads(s flow.Span) (regs [banks]uint64) {
	for row := s.From; row < s.To; row++ {
		v := a.operands[row].value
		if r := a.values[v].reg; r != none {
			a.answer.Place[row] = r.place()
			regs[r.bank()] |= r.bit()
		} else {
			a.answer.Place[row] = a.slot(v)
		}
	}
	for _, o := range a.operands[s.From:s.To] {
		a.pass(o)
	}
	return regs
}

// pass notes when a value is needed after an operand, and frees its register when never.
func (a *Allocator) pass(o operand) {
	x := &a.values[o.value]
	r := x.reg
	a.when[r] = o.when
	if o.when.live() || x.loop != 0 && a.stays(x, r) {
		return
	}
	a.used[r.bank()] &^= r.bit()
	x.reg = none
}

// stays keeps what a loop brings back to its head.
func (a *Allocator) stays(x *state, r reg) bool {
	if x.loop == 0 || !a.inside(x.loop) {
		return false
	}
	a.when[r] = unwanted
	return true
}

// nest bounds the loops that are asked whether they bring a value back, from the inside out. Beyond it values leave their registers.
const nest = 8

// inside reports whether the block at hand is in the loop of a head.
func (a *Allocator) inside(head uint32) bool {
	h := a.loop
	for range nest {
		if h == head || h == flow.NoBlock {
			return h == head
		}
		h = a.loops.Header[h]
	}
	return false
}

// put gives a register to a value, drop takes it away.
func (a *Allocator) put(r reg, v flow.Value, w when) {
	a.used[r.bank()] |= r.bit()
	a.value[r], a.when[r] = v, w
	a.values[v].reg = r
}

func (a *Allocator) drop(r reg) {
	a.used[r.bank()] &^= r.bit()
	a.values[a.value[r]].reg = none
}

func (a *Allocator) move(at uint32, c flow.Class, from, to flow.Place) {
	a.moves = append(a.moves, flow.Move{At: at, Class: c, From: from, To: to})
}

// pick takes a register of a set for a value that is needed at w: the one that saves a copy, else one that calls spare if a call
// comes, else the lowest, which they do not. The set is not empty.
func (a *Allocator) pick(bank uint8, free uint64, w when, hint reg) reg {
	if hint != none && free&hint.bit() != 0 {
		return hint
	}
	if w.crosses() {
		if s := free &^ a.gone[bank]; s != 0 {
			free = s
		}
	}
	return in(bank, bits.TrailingZeros64(free))
}

// find takes a free register for a value, or that of the value that is needed last; none when all are pinned.
func (a *Allocator) find(i uint32, bank uint8, pinned uint64, w when, hint reg) reg {
	if free := a.all[bank] &^ a.used[bank] &^ pinned; free != 0 {
		return a.pick(bank, free, w, hint)
	}
	r := a.victim(i, bank, a.used[bank]&^pinned)
	if r != none {
		a.drop(r)
	}
	return r
}

// victim is the register of a set whose value is needed last. What has no slot yet would cost a store too and counts as needed in
// half the time: between a quarter and the whole of it the moves of real programs differ by less than 5 %.
func (a *Allocator) victim(i uint32, bank uint8, set uint64) reg {
	best, far := none, int64(-1)
	for ; set != 0; set &= set - 1 {
		r := in(bank, bits.TrailingZeros64(set))
		d := int64(soonest-a.when[r].near()) - int64(i)
		if a.values[a.value[r]].slot == 0 {
			d /= 2
		}
		if d > far {
			best, far = r, d
		}
	}
	return best
}

// results gives registers to what an instruction writes.
func (a *Allocator) results(i uint32, s flow.Span) {
	var pinned [banks]uint64
	for row := s.From; row < s.To; row++ {
		o := a.operands[row]
		x := &a.values[o.value]
		bank := bank(a.f.Class[o.value])
		r := a.find(i, bank, pinned[bank], o.when, x.hint)
		if r == none {
			a.short(i, bank)
			return
		}
		pinned[bank] |= r.bit()
		a.answer.Place[row] = r.place()
		x.store, x.birth = i+1, r
		a.put(r, o.value, o.when)
	}
	for _, o := range a.operands[s.From:s.To] {
		if !o.when.live() {
			a.drop(a.values[o.value].reg)
		}
	}
}

// arrive places what comes from outside: in a register that is free, else in a slot from birth.
func (a *Allocator) arrive(i uint32, s flow.Span) {
	for row := s.From; row < s.To; row++ {
		o := a.operands[row]
		v, w := o.value, o.when
		x := &a.values[v]
		bank := bank(a.f.Class[v])
		free := a.all[bank] &^ a.used[bank]
		if w.crosses() {
			free &^= a.gone[bank]
		}
		if w.near() == unwanted || free == 0 {
			a.answer.Place[row] = a.born(v)
			continue
		}
		r := a.pick(bank, free, w, x.hint)
		a.answer.Place[row] = r.place()
		x.store, x.birth = i+1, r
		a.put(r, v, w)
	}
	for _, o := range a.operands[s.From:s.To] {
		if r := a.values[o.value].reg; r != none && !o.when.live() {
			a.drop(r)
		}
	}
}

// call saves what the call at i would destroy: in a register that survives when there is one that the call does not read, else in the
// slot.
func (a *Allocator) call(i uint32, read [banks]uint64) {
	for c := range flow.Class(flow.NumClasses) {
		bank := bank(c)
		for lost := a.used[bank] & a.gone[bank]; lost != 0; lost &= lost - 1 {
			r := in(bank, bits.TrailingZeros64(lost))
			v, w := a.value[r], a.when[r]
			x := &a.values[v]
			free := a.all[bank] &^ a.used[bank] &^ a.gone[bank] &^ read[bank]
			a.drop(r)
			if free == 0 || w.near() == unwanted && x.slot != 0 {
				continue
			}
			s := a.pick(bank, free, w, x.hint)
			a.move(i, r.class(), r.place(), s.place())
			a.put(s, v, w)
		}
	}
}

func (a *Allocator) short(i uint32, bank uint8) {
	if a.err != nil {
		return
	}
	c := flow.Class(bank - 1)
	a.err = target.Errorf(target.Limit, "instruction %d needs more than the %d %s registers at once; give the file more", i, a.regs.N[c], c)
}
