package split

import (
	"math/bits"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

const noReg = 0xff

// maxAvoid bounds the work of finding a register for a piece whose part has many others around it.
const maxAvoid = 32

// placer gives registers to what the spiller has in registers, walking the same way.
type placer struct {
	reg    []uint8 // by value: its register now
	free   [flow.NumClasses]uint64
	holder [flow.NumClasses][flow.MaxRegs]flow.Value
	piece  uint32   // the next piece
	own    []uint32 // by value in a register: its piece
	hint   []uint8  // by part: the register that it should have
	kin    []uint8  // by family: likewise

	votes    []uint32 // by entry of a block: by how much its register leads
	entryReg []uint8  // aligned with spiller.entry
	exitReg  []uint8  // aligned with spiller.exit
	moves    []flow.Move
	movesOf  []span // by block, in moves
	mark     []uint32
}

// place walks the blocks as spill did, gives registers and writes the places of operands.
func (a *Allocator) place(ans *flow.Answer) {
	f, s, p := a.f, &a.spiller, &a.placer
	n := f.Values()
	p.reg = arena.Resized(p.reg, n)
	p.kin = arena.Resized(p.kin, n)
	for v := range p.reg {
		p.reg[v], p.kin[v] = noReg, noReg
	}
	p.own, p.mark = arena.Resized(p.own, n), arena.Zeroed(p.mark, n)
	p.hint = arena.Resized(p.hint, len(s.valueOf))
	copy(p.hint, a.colours.reg)
	p.entryReg, p.exitReg = arena.Resized(p.entryReg, len(s.entry)), arena.Resized(p.exitReg, len(s.exit))
	p.movesOf = arena.Zeroed(p.movesOf, len(f.Blocks))
	p.moves, p.piece = p.moves[:0], 0
	for _, b := range a.loops.Order {
		from := uint32(len(p.moves))
		a.head(b)
		a.body(b, ans)
		a.foot(b)
		p.movesOf[b] = span{from, uint32(len(p.moves))}
	}
}

// head gives registers to what is in registers at the head of b: those of a predecessor where it can.
func (a *Allocator) head(b uint32) {
	f, s, p := a.f, &a.spiller, &a.placer
	blk := &f.Blocks[b]
	for c := range p.free {
		p.free[c] = a.regs.All(flow.Class(c))
	}
	of := s.entryOf[b]
	if a.inherits(b) {
		a.goOn(b)
		return
	}
	p.votes = arena.Resized(p.votes, int(of.to-of.from))
	later := uint32(0)
	for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
		if a.loops.Rank[f.Edges[e].From] != flow.NoBlock && a.loops.Rank[f.Edges[e].From] >= a.loops.Rank[b] {
			later++
		}
	}
	for x := of.from; x < of.to; x++ {
		r := s.entry[x]
		p.own[r.value] = r.piece
		p.entryReg[x] = noReg
		if a.webs.wanted[r.piece] {
			p.mark[r.value] = x + 1
			p.entryReg[x], p.votes[x-of.from] = p.hint[a.webs.part[r.piece]], later
		}
	}
	p.piece += of.to - of.from
	for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
		edge := &f.Edges[e]
		x := s.exitOf[edge.From]
		if a.loops.Rank[edge.From] == flow.NoBlock || a.loops.Rank[edge.From] >= a.loops.Rank[b] {
			continue
		}
		for k := x.from; k < x.to; k++ {
			v := s.exit[k].value
			p.reg[v] = p.exitReg[k]
			if m := p.mark[v]; m > 0 {
				p.vote(m-1, of.from, p.exitReg[k])
			}
		}
		for k, param := range f.Of(blk.Params) {
			if m := p.mark[param]; m > 0 {
				p.vote(m-1, of.from, p.reg[f.Ops[edge.Args.From+uint32(k)]])
			}
		}
		for k := x.from; k < x.to; k++ {
			p.reg[s.exit[k].value] = noReg
		}
	}
	for x := of.from; x < of.to; x++ {
		r := p.entryReg[x]
		if c := f.Class[s.entry[x].value]; r == noReg || p.free[c]>>r&1 == 0 {
			p.entryReg[x] = noReg
		} else {
			p.free[c] &^= 1 << r
		}
	}
	for x := of.from; x < of.to; x++ {
		if v := s.entry[x].value; p.entryReg[x] != noReg {
			p.hold(f.Class[v], v, p.entryReg[x])
		}
	}
	for x := of.from; x < of.to; x++ {
		if v := s.entry[x].value; p.mark[v] > 0 {
			if p.mark[v] = 0; p.entryReg[x] == noReg {
				p.entryReg[x] = a.assign(v)
			}
		}
	}
	for k, v := range f.Of(blk.Params) {
		if p.reg[v] != noReg && a.storesAtHead(b, uint32(k)) {
			p.moves = append(p.moves, flow.Move{At: blk.Insts.From, Class: f.Class[v], From: flow.Reg(int(p.reg[v])), To: a.slots.of(a, v)})
		}
	}
}

// goOn starts b with the registers of the block before.
func (a *Allocator) goOn(b uint32) {
	s, p := &a.spiller, &a.placer
	exit := s.exitOf[a.before(b)]
	for x := exit.from; x < exit.to; x++ {
		p.reg[s.exit[x].value] = p.exitReg[x]
	}
	of := s.entryOf[b]
	for x := of.from; x < of.to; x++ {
		p.entryReg[x] = p.reg[s.entry[x].value]
	}
	for x := exit.from; x < exit.to; x++ {
		p.reg[s.exit[x].value] = noReg
	}
	for x := of.from; x < of.to; x++ {
		r := s.entry[x]
		p.own[r.value] = r.piece
		if p.entryReg[x] != noReg {
			p.hold(a.f.Class[r.value], r.value, p.entryReg[x])
		}
	}
}

// vote counts where the ways into a block have entry x: the register of most of them is what is left (Boyer and Moore's majority).
func (p *placer) vote(x, from uint32, r uint8) {
	if r == noReg {
		return
	}
	switch n := &p.votes[x-from]; {
	case p.entryReg[x] == r:
		*n++
	case p.entryReg[x] == noReg || *n == 0:
		p.entryReg[x], *n = r, 1
	default:
		*n--
	}
}

// hold notes that v is in register r, which is its class's.
func (p *placer) hold(c flow.Class, v flow.Value, r uint8) {
	p.reg[v] = r
	p.holder[c][r] = v
	p.free[c] &^= 1 << r
}

func (p *placer) release(c flow.Class, v flow.Value) {
	if r := p.reg[v]; r != noReg {
		p.free[c] |= 1 << r
		p.reg[v] = noReg
	}
}

// assign finds a free register for v: that of its part, else of its family, else one that nobody wants while v is there.
func (a *Allocator) assign(v flow.Value) uint8 {
	p := &a.placer
	c, piece := a.f.Class[v], p.own[v]
	free, flags := p.free[c], a.spiller.flags[piece]
	r := uint8(noReg)
	if flags&local == 0 {
		r = p.hint[a.webs.part[piece]]
		flags = a.spiller.flags[a.webs.part[piece]]
		if r == noReg || free>>r&1 == 0 {
			r = p.kin[a.families.Of(v)]
		}
	}
	if r == noReg || free>>r&1 == 0 {
		most := len(a.colours.meet.list) // of a local piece, once
		if flags&local == 0 {
			most = maxAvoid
		}
		if x := free &^ a.colours.avoid(a.webs.part[piece], most); x != 0 {
			free = x
		}
		better := a.regs.Destroyed(c)
		if flags&(crosses|reaches) != 0 {
			better = ^better
		}
		if x := free & better; x != 0 {
			free = x
		}
		r = uint8(bits.TrailingZeros64(free))
	}
	p.hold(c, v, r)
	if flags&local == 0 {
		p.kin[a.families.Of(v)] = r
		if h := &p.hint[a.webs.part[piece]]; *h == noReg {
			*h = r
		}
	}
	return r
}

// body gives places to the operands of the instructions of b.
func (a *Allocator) body(b uint32, ans *flow.Answer) {
	f, s, p := a.f, &a.spiller, &a.placer
	blk := &f.Blocks[b]
	events := s.events[s.eventOf[b].from:s.eventOf[b].to]
	ahead, wanted := a.ranges.Rows, a.webs.wanted
	for i := blk.Insts.From; i < blk.Insts.To; i++ {
		in := &f.Insts[i]
		for len(events) > 0 && events[0].at == i && events[0].what&3 < retire {
			v := events[0].what >> 2
			c := f.Class[v]
			if events[0].what&3 == evict {
				p.release(c, v)
			} else {
				p.own[v] = p.piece
				p.piece++
				if wanted[p.own[v]] {
					r := a.assign(v)
					p.moves = append(p.moves, flow.Move{At: i, Class: c, From: a.slots.of(a, v), To: flow.Reg(int(r))})
				}
			}
			events = events[1:]
		}
		leaving := 0
		for leaving < len(events) && events[leaving].at == i {
			leaving++
		}
		if in.Kind == flow.Call {
			a.saveAcross(in, i, events[:leaving], ans)
		}
		for row := in.Uses.From; row < in.Uses.To; row++ {
			ans.Place[row] = a.stands(f.Ops[row])
		}
		for row := in.Uses.From; row < in.Uses.To; row++ {
			if ahead[row].Next == flow.Dead {
				p.release(f.Class[f.Ops[row]], f.Ops[row])
			}
		}
		for _, e := range events[:leaving] {
			if e.what&3 == retire || !wanted[p.own[e.what>>2]] {
				p.release(f.Class[e.what>>2], e.what>>2)
			}
		}
		events = events[leaving:]
		for row := in.Uses.To; row < in.To; row++ {
			v := f.Ops[row]
			if ahead[row].Next == flow.Dead && in.Kind == flow.Args {
				continue
			}
			p.own[v] = p.piece
			p.piece++
			if !wanted[p.own[v]] && in.Kind != flow.Op {
				ans.Place[row] = a.slots.of(a, v)
				continue
			}
			r := flow.Reg(int(a.assign(v)))
			ans.Place[row] = r
			if s.vals[v].stored {
				p.moves = append(p.moves, flow.Move{At: i + 1, Class: f.Class[v], From: r, To: a.slots.of(a, v)})
			}
		}
		for row := in.Uses.To; row < in.To; row++ {
			if v := f.Ops[row]; ahead[row].Next == flow.Dead || !wanted[p.own[v]] {
				p.release(f.Class[v], v)
			}
		}
	}
}

// saveAcross moves what must survive the call into registers that do.
func (a *Allocator) saveAcross(in *flow.Inst, i uint32, leaving []event, ans *flow.Answer) {
	f, s, p := a.f, &a.spiller, &a.placer
	for row := in.Uses.From; row < in.Uses.To; row++ {
		if a.ranges.Rows[row].Next == flow.Dead {
			p.mark[f.Ops[row]] = 1
		}
	}
	for _, e := range leaving {
		if v := e.what >> 2; e.what&3 == retire {
			p.mark[v] = 1
		} else {
			p.own[v] = p.piece
			if p.piece++; !a.webs.wanted[p.own[v]] {
				p.mark[v] = 1
			}
		}
	}
	for c := range flow.Class(flow.NumClasses) {
		destroyed := a.regs.Destroyed(c)
		saved := a.regs.All(c) &^ destroyed
		free := p.free // before anything moves
		moved := false
		for left := destroyed &^ p.free[c]; left != 0; left &= left - 1 {
			from := uint8(bits.TrailingZeros64(left))
			v := p.holder[c][from]
			if p.mark[v] != 0 {
				continue
			}
			moved = true
			if x := p.free[c] & saved; x != 0 {
				to := uint8(bits.TrailingZeros64(x))
				if h := p.hint[a.webs.part[p.own[v]]]; h != noReg && x>>h&1 == 1 {
					to = h
				}
				p.release(c, v)
				p.hold(c, v, to)
				a.parallel.Add(c, flow.Reg(int(from)), flow.Reg(int(to)))
				continue
			}
			// A register that survives is held by a value that need not: it goes to its slot or makes room.
			to := a.survivor(c, saved)
			w := p.holder[c][to]
			p.release(c, v)
			p.release(c, w)
			p.hold(c, v, to)
			a.parallel.Add(c, flow.Reg(int(from)), flow.Reg(int(to)))
			if !s.vals[w].stored {
				if x := p.free[c] & destroyed &^ (1 << from) & free[c]; x != 0 {
					from = uint8(bits.TrailingZeros64(x))
				}
				p.hold(c, w, from)
				a.parallel.Add(c, flow.Reg(int(to)), flow.Reg(int(from)))
			}
		}
		if moved {
			p.moves = a.parallel.Sequence(p.moves, i, &a.regs, free, &ans.Slots)
		}
	}
	for row := in.Uses.From; row < in.Uses.To; row++ {
		p.mark[f.Ops[row]] = 0
	}
	for _, e := range leaving {
		p.mark[e.what>>2] = 0
	}
}

// survivor is a register of a set that is held by a value which a call need not spare, one that is in its slot if there is one.
func (a *Allocator) survivor(c flow.Class, set uint64) uint8 {
	p := &a.placer
	found := uint8(noReg)
	for ; set != 0; set &= set - 1 {
		r := uint8(bits.TrailingZeros64(set))
		if w := p.holder[c][r]; p.mark[w] == 1 {
			if found = r; a.spiller.vals[w].stored {
				break
			}
		}
	}
	return found
}

// foot notes the registers at the end of b.
func (a *Allocator) foot(b uint32) {
	s, p := &a.spiller, &a.placer
	for x := s.exitOf[b].from; x < s.exitOf[b].to; x++ {
		v := s.exit[x].value
		p.exitReg[x] = p.reg[v]
		p.reg[v] = noReg
	}
}
