package split

import "github.com/rosmar-compiler/rosmar/regalloc/flow"

// emit puts the moves of blocks and edges into the order of instructions.
func (a *Allocator) emit(ans *flow.Answer) {
	f, p := a.f, &a.placer
	ans.Moves = ans.Moves[:0]
	unreached := false
	for b := range f.Blocks {
		blk := &f.Blocks[b]
		if a.loops.Rank[b] == flow.NoBlock {
			unreached = true
			continue
		}
		if blk.Preds.Len() == 1 {
			if e := f.Preds[blk.Preds.From]; f.Blocks[f.Edges[e].From].Succs.Len() > 1 {
				a.edge(e, blk.Insts.From, ans)
			}
		}
		ans.Moves = append(ans.Moves, p.moves[p.movesOf[b].from:p.movesOf[b].to]...)
		if blk.Succs.Len() == 1 {
			a.edge(blk.Succs.From, blk.Insts.To-1, ans)
		}
	}
	if !unreached {
		return
	}
	// What stands in blocks that control never reaches has no place, but for arguments that share one with their parameter.
	for i := range f.Edges {
		e := &f.Edges[i]
		if a.loops.Rank[e.From] == flow.NoBlock {
			copy(ans.Place[e.Args.From:e.Args.To], ans.Place[f.Blocks[e.To].Params.From:])
		}
	}
}

// edge brings values from where they are at the end of one block to where the next wants them.
func (a *Allocator) edge(e, at uint32, ans *flow.Answer) {
	f, s, p := a.f, &a.spiller, &a.placer
	edge := &f.Edges[e]
	if a.inherits(edge.To) {
		return
	}
	to := &f.Blocks[edge.To]
	before := f.Blocks[edge.From].Succs.Len() == 1
	exit := s.exitOf[edge.From]
	for x := exit.from; x < exit.to; x++ {
		p.reg[s.exit[x].value] = p.exitReg[x]
	}
	entry := s.entryOf[edge.To]
	for x := entry.from; x < entry.to; x++ {
		p.mark[s.entry[x].value] = 1 + uint32(p.entryReg[x])
	}
	var written [flow.NumClasses]uint64
	free := [flow.NumClasses]uint64{a.regs.All(flow.Int), a.regs.All(flow.Float)}
	for k, param := range f.Of(to.Params) {
		arg := f.Ops[edge.Args.From+uint32(k)]
		c := f.Class[arg]
		want := flow.NoPlace
		if m := p.mark[param]; m > 0 && m-1 != noReg {
			want = flow.Reg(int(m - 1))
		} else if s.vals[param].stored {
			want = a.slots.of(a, param)
		}
		p.mark[param] = 0
		if want == flow.NoPlace {
			continue // nobody reads it
		}
		from := a.stands(arg)
		inPlace := want.IsSlot() && s.vals[arg].stored && a.slots.of(a, arg) == want
		stands := from
		if before || inPlace {
			stands = want
		}
		ans.Place[edge.Args.From+uint32(k)], ans.Place[to.Params.From+uint32(k)] = stands, stands
		if !inPlace {
			a.bring(c, from, want, &written)
		}
	}
	for x := entry.from; x < entry.to; x++ {
		v := s.entry[x].value
		m := p.mark[v]
		p.mark[v] = 0
		if m == 0 || m-1 == noReg {
			continue
		}
		a.bring(f.Class[v], a.stands(v), flow.Reg(int(m-1)), &written)
	}
	if before {
		a.parallel.KeepTests(f, at, ans.Place, &a.regs, written)
	}
	for x := exit.from; x < exit.to; x++ {
		p.reg[s.exit[x].value] = noReg
	}
	ans.Moves = a.parallel.Sequence(ans.Moves, at, &a.regs, free, &ans.Slots)
}

// stands is where v is now: in its register, else in its slot.
func (a *Allocator) stands(v flow.Value) flow.Place {
	if r := a.placer.reg[v]; r != noReg {
		return flow.Reg(int(r))
	}
	return a.slots.of(a, v)
}

func (a *Allocator) bring(c flow.Class, from, to flow.Place, written *[flow.NumClasses]uint64) {
	a.parallel.Add(c, from, to)
	if !to.IsSlot() {
		written[c] |= 1 << to.Index()
	}
}
