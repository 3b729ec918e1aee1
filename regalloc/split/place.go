package split

import (
	"math/bits"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

const noReg = 0xff

// placer gives registers to what the spiller has in registers, walking the same way.
type placer struct {
	reg    []uint8 // by value: its register now
	free   [flow.NumClasses]uint64
	holder [flow.NumClasses][flow.MaxRegs]flow.Value
	piece  uint32   // the next piece
	web    []uint32 // by value in a register: its web
	hint   []uint8  // by web: the register it had last
	kin    []uint8  // by family: likewise

	entryReg []uint8 // aligned with spiller.entry
	exitReg  []uint8 // aligned with spiller.exit
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
	p.web, p.mark = arena.Resized(p.web, n), arena.Zeroed(p.mark, n)
	p.hint = arena.Resized(p.hint, int(s.pieces))
	for w := range p.hint {
		p.hint[w] = noReg
	}
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
	for x := of.from; x < of.to; x++ {
		p.entryReg[x] = noReg
		r := s.entry[x]
		p.web[r.value] = s.web(r.piece)
		if !s.idle(p.web[r.value]) {
			p.mark[r.value] = x + 1
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
			if m := p.mark[v]; m > 0 && p.entryReg[m-1] == noReg {
				p.take(f.Class[v], m-1, p.exitReg[k])
			}
		}
		for k, param := range f.Of(blk.Params) {
			arg := f.Ops[edge.Args.From+uint32(k)]
			if m := p.mark[param]; m > 0 && p.entryReg[m-1] == noReg && p.reg[arg] != noReg {
				p.take(f.Class[arg], m-1, p.reg[arg])
			}
		}
		for k := x.from; k < x.to; k++ {
			p.reg[s.exit[k].value] = noReg
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

// take gives register r to entry x if both are free.
func (p *placer) take(c flow.Class, x uint32, r uint8) {
	if r != noReg && p.free[c]>>r&1 == 1 {
		p.entryReg[x] = r
		p.free[c] &^= 1 << r
	}
}

// hold notes that v is in register r, which is its class's.
func (p *placer) hold(c flow.Class, v flow.Value, r uint8) {
	p.reg[v] = r
	p.holder[c][r] = v
	p.free[c] &^= 1 << r
	p.hint[p.web[v]] = r
}

func (p *placer) release(c flow.Class, v flow.Value) {
	if r := p.reg[v]; r != noReg {
		p.free[c] |= 1 << r
		p.reg[v] = noReg
	}
}

// assign finds a free register for v.
func (a *Allocator) assign(v flow.Value) uint8 {
	p := &a.placer
	c, w := a.f.Class[v], p.web[v]
	kin := a.families.Of(v)
	good := p.free[c]
	destroyed := a.regs.Destroyed(c)
	if a.spiller.flags[w]&crosses != 0 {
		destroyed = ^destroyed
	}
	if x := good & destroyed; x != 0 {
		good = x
	}
	r := uint8(bits.TrailingZeros64(good))
	for _, h := range [2]uint8{p.hint[w], p.kin[kin]} {
		if h != noReg && p.free[c]>>h&1 == 1 {
			r = h
			break
		}
	}
	p.hold(c, v, r)
	p.kin[kin] = r
	return r
}

// storesAtHead reports that the parameter v, in a register, must be stored: not all arguments are in the slot that it shares with them.
func (a *Allocator) storesAtHead(b uint32, k uint32) bool {
	f, s := a.f, &a.spiller
	blk := &f.Blocks[b]
	v := f.Ops[blk.Params.From+k]
	if !s.mem[v] {
		return false
	}
	kin := a.families.Of(v)
	for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
		arg := f.Ops[f.Edges[e].Args.From+k]
		if a.loops.Rank[f.Edges[e].From] != flow.NoBlock && (!s.mem[arg] || a.families.Of(arg) != kin) {
			return true
		}
	}
	return false
}

// body gives places to the operands of the instructions of b.
func (a *Allocator) body(b uint32, ans *flow.Answer) {
	f, s, p := a.f, &a.spiller, &a.placer
	blk := &f.Blocks[b]
	events := s.events[s.eventOf[b].from:s.eventOf[b].to]
	next := a.ranges.Next
	for i := blk.Insts.From; i < blk.Insts.To; i++ {
		in := &f.Insts[i]
		for len(events) > 0 && events[0].at == i && events[0].what&3 != retire {
			v := events[0].what >> 2
			c := f.Class[v]
			if events[0].what&3 == evict {
				p.release(c, v)
			} else {
				p.web[v] = s.web(p.piece)
				p.piece++
				if !s.idle(p.web[v]) {
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
			if v := f.Ops[row]; p.reg[v] != noReg {
				ans.Place[row] = flow.Reg(int(p.reg[v]))
			} else {
				ans.Place[row] = a.slots.of(a, v)
			}
		}
		for row := in.Uses.From; row < in.Uses.To; row++ {
			if next[row] == flow.Dead {
				p.release(f.Class[f.Ops[row]], f.Ops[row])
			}
		}
		for _, e := range events[:leaving] {
			p.release(f.Class[e.what>>2], e.what>>2)
		}
		events = events[leaving:]
		for row := in.Uses.To; row < in.To; row++ {
			v := f.Ops[row]
			if next[row] == flow.Dead && in.Kind == flow.Args {
				continue
			}
			p.web[v] = s.web(p.piece)
			p.piece++
			if s.idle(p.web[v]) && in.Kind != flow.Op {
				ans.Place[row] = a.slots.of(a, v)
				continue
			}
			r := flow.Reg(int(a.assign(v)))
			ans.Place[row] = r
			if s.mem[v] {
				p.moves = append(p.moves, flow.Move{At: i + 1, Class: f.Class[v], From: r, To: a.slots.of(a, v)})
			}
		}
		for row := in.Uses.To; row < in.To; row++ {
			if v := f.Ops[row]; next[row] == flow.Dead || s.idle(p.web[v]) {
				p.release(f.Class[v], v)
			}
		}
	}
}

// saveAcross moves what must survive the call into registers that do.
func (a *Allocator) saveAcross(in *flow.Inst, i uint32, leaving []event, ans *flow.Answer) {
	f, s, p := a.f, &a.spiller, &a.placer
	for row := in.Uses.From; row < in.Uses.To; row++ {
		if a.ranges.Next[row] == flow.Dead {
			p.mark[f.Ops[row]] = 1
		}
	}
	for _, e := range leaving {
		p.mark[e.what>>2] = 1
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
				p.release(c, v)
				p.hold(c, v, to)
				a.parallel.Add(c, flow.Reg(int(from)), flow.Reg(int(to)))
				continue
			}
			// A register that survives is held by a value that need not: it goes to its slot or changes places with v.
			to := from
			for x := saved; x != 0; x &= x - 1 {
				r := uint8(bits.TrailingZeros64(x))
				if w := p.holder[c][r]; p.mark[w] == 1 && (to == from || s.mem[w]) {
					if to = r; s.mem[w] {
						break
					}
				}
			}
			w := p.holder[c][to]
			p.release(c, v)
			p.release(c, w)
			p.hold(c, v, to)
			a.parallel.Add(c, flow.Reg(int(from)), flow.Reg(int(to)))
			if !s.mem[w] {
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

// foot notes the registers at the end of b.
func (a *Allocator) foot(b uint32) {
	s, p := &a.spiller, &a.placer
	for x := s.exitOf[b].from; x < s.exitOf[b].to; x++ {
		v := s.exit[x].value
		p.exitReg[x] = p.reg[v]
		p.reg[v] = noReg
	}
}
