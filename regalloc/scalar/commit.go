package scalar

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
)

// commit writes the lanes down. The first piece of a register keeps its name; a later one that got another lane becomes a register
// of its own. Moves from a lane to itself go.
func (ws *Workspace) commit(m *ir.Module, f ir.Func, lanes int) {
	mt := &ws.mt
	for r, end := uint32(1), uint32(m.Regs.Len()); r < end; r++ {
		occs := ws.uses.of(r)
		if len(occs) == 0 {
			continue
		}
		mt.Registers++
		ws.name(m, r, occs)
	}
	for w := range ws.lives.webs {
		if ws.lives.webs[w].fixed < 0 {
			mt.Values++
		}
	}
	for _, mv := range ws.uses.moves {
		src, dst := ws.webAt(mv.src, mv.at, false), ws.webAt(mv.dst, mv.at, true)
		if i := ws.flow.insts[mv.at]; ws.laneOf[src] == ws.laneOf[dst] && m.Regs.At(mv.src).Width == m.Regs.At(mv.dst).Width && ws.mayDrop(m, i) {
			ws.edits.Delete(i)
			mt.Dropped++
		}
	}
	ws.edits.Apply(m)
	mt.Utilisation = 100 * float64(mt.HighWater) / float64(lanes)
	ws.list(m, f)
}

// name puts the lanes of the pieces of a register into rows.
func (ws *Workspace) name(m *ir.Module, r uint32, occs []occ) {
	row := m.Regs.At(ir.Reg(r))
	first := ws.laneOf[occs[0].web]
	row.Engine, row.Phys = ws.uses.engine[r], int8(first)
	var at [64]ir.Reg // by lane: the piece's register
	at[first] = ir.Reg(r)
	for k := range occs {
		lane := ws.laneOf[occs[k].web]
		if lane == first {
			continue
		}
		if at[lane] == 0 {
			at[lane] = ws.temp(m, ir.Reg(r))
			m.Regs.At(at[lane]).Phys = int8(lane)
		}
		rename(m, occs[k].arg, ir.Reg(r), at[lane])
	}
}

// list adds new registers and tensors to those of the function.
func (ws *Workspace) list(m *ir.Module, f ir.Func) {
	sp := &ws.spill
	row := m.Funcs.At(f)
	if len(sp.regs) > 0 {
		row.Regs = extend(&m.RegList, row.Regs, sp.regs)
	}
	if len(sp.sets) > 0 {
		row.Sets = extend(&m.SetList, row.Sets, sp.sets)
	}
}

// extend lays a list down again with more at its end.
func extend[T any](p *arena.Pool[T], s arena.Span, more []T) arena.Span {
	mark := p.Mark()
	for k := range s.Len {
		p.Push(p.Of(s)[k])
	}
	for _, x := range more {
		p.Push(x)
	}
	return p.Since(mark)
}
