package scalar

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// The semaphores that no engine counts with and no ring uses: spill code of an engine borrows one.
const firstFreeSem, lastFreeSem = 9, 15

// slotBytes is a spill slot: room for either width.
const slotBytes = 8

// home is a value of one or more webs that goes to memory, and its slot there. 20 bytes.
type home struct {
	first, last slot
	engine      target.Engine
	width       uint8
	slot        uint32
	ap          ir.AP
}

// spiller is what spilling needs beyond the analysis.
type spiller struct {
	f     ir.Func
	opt   Options
	names uint32
	round uint32
	sets  []ir.Set // new ones
	regs  []ir.Reg
	sem   [target.NumEngines]uint16
	used  [lastFreeSem + 1]bool
	scan  bool // used is known
	gone  []bool
	depOn []bool
	busy  []stretch
	ends  arena.Queue // homes that hold a slot, by end
	free  arena.Queue // slots
}

type stretch struct{ lo, hi int64 }

func (sp *spiller) begin(m *ir.Module, f ir.Func, opt Options) {
	sp.f, sp.opt, sp.names, sp.round, sp.scan = f, opt, 0, 0, false
	sp.sets, sp.regs, sp.depOn = sp.sets[:0], sp.regs[:0], sp.depOn[:0]
	clear(sp.sem[:])
	clear(sp.used[:])
}

// sendHome makes homes of the classes that found no lane.
func (ws *Workspace) sendHome(e target.Engine) {
	if len(ws.result.Unplaced) == 0 {
		return
	}
	slices.Sort(ws.result.Unplaced)
	from := len(ws.homes)
	for _, n := range ws.result.Unplaced {
		ws.homes = append(ws.homes, home{first: none, engine: e, width: uint8(ws.lanes.Width(n))})
	}
	for n, c := range ws.joins.class {
		k, ok := slices.BinarySearch(ws.result.Unplaced, c)
		if !ok {
			continue
		}
		w := ws.nodeWeb[n]
		h, d := &ws.homes[from+k], &ws.lives.webs[w]
		h.first, h.last = min(h.first, d.first), max(h.last, d.last)
		ws.homeOf[w] = uint32(from+k) + 1
		ws.mt.Spilled++
	}
}

// spillHomes gives the homes of this round memory, and each access of their values a register of its own: written, then saved; or
// reloaded, then read. Values that do not live at the same time share a slot.
func (ws *Workspace) spillHomes(m *ir.Module) error {
	sp := &ws.spill
	for from := 0; from < len(ws.homes); {
		to := from
		for to < len(ws.homes) && ws.homes[to].engine == ws.homes[from].engine {
			to++
		}
		if err := ws.place(m, ws.homes[from:to]); err != nil {
			return err
		}
		from = to
	}
	sp.round++
	ws.findGone(m)
	last := uint32(0)
	for w := range ws.lives.webs {
		if r := ws.lives.webs[w].reg; ws.homeOf[w] != 0 && r != last {
			ws.spillReg(m, r)
			last = r
		}
	}
	ws.edits.Apply(m)
	return nil
}

// findGone drops the moves within one home.
func (ws *Workspace) findGone(m *ir.Module) {
	sp := &ws.spill
	sp.gone = arena.Zeroed(sp.gone, len(ws.flow.insts))
	for _, mv := range ws.uses.moves {
		src, dst := ws.webAt(mv.src, mv.at, false), ws.webAt(mv.dst, mv.at, true)
		if ws.homeOf[src] != 0 && ws.homeOf[src] == ws.homeOf[dst] && ws.mayDrop(m, ws.flow.insts[mv.at]) {
			sp.gone[mv.at] = true
			ws.edits.Delete(ws.flow.insts[mv.at])
			ws.mt.Dropped++
		}
	}
}

// mayDrop reports an instruction that no other waits for or depends on.
func (ws *Workspace) mayDrop(m *ir.Module, i ir.Inst) bool {
	s := m.Syncs.Get(i)
	return s.Waits.Len == 0 && s.Updates.Len == 0 && !ws.awaited(m, i)
}

// awaited reports an instruction that another depends on.
func (ws *Workspace) awaited(m *ir.Module, i ir.Inst) bool {
	sp := &ws.spill
	if m.Deps.Len() == 0 {
		return false
	}
	if len(sp.depOn) != m.Insts.Len() {
		sp.depOn = arena.Zeroed(sp.depOn, m.Insts.Len())
		for _, o := range ws.flow.insts {
			for _, d := range m.DepsOf(o) {
				sp.depOn[d.Inst] = true
			}
		}
	}
	return sp.depOn[i]
}

// spillReg rewrites the accesses of the webs of a register that have homes.
func (ws *Workspace) spillReg(m *ir.Module, r uint32) {
	occs := ws.uses.of(r)
	for k := 0; k < len(occs); {
		o := occs[k]
		h := ws.homeOf[o.web]
		if h == 0 || ws.spill.gone[o.at] {
			k++
			continue
		}
		t := ws.temp(m, ir.Reg(r))
		for ; k < len(occs) && occs[k].at == o.at && occs[k].def == o.def && occs[k].web == o.web; k++ {
			rename(m, occs[k].arg, ir.Reg(r), t)
		}
		ws.access(m, &ws.homes[h-1], t, o)
	}
}

// temp is a register for one access of another.
func (ws *Workspace) temp(m *ir.Module, of ir.Reg) ir.Reg {
	row := *m.Regs.At(of)
	ws.spill.names++
	row.Name = m.Names.Derived(row.Name, arena.DeriveSplit, ws.spill.names)
	row.Engine, row.Phys = ws.uses.engine[of], -1
	t := m.Regs.Add(row)
	ws.spill.regs = append(ws.spill.regs, t)
	return t
}

// access puts a save behind the instruction that writes a register, or a reload before the one that reads it. Behind either stands
// a wait: memory answers late. The semaphore is taken back by the wait, so that the next access finds it at zero, on whatever
// path it comes.
func (ws *Workspace) access(m *ir.Module, h *home, t ir.Reg, o occ) {
	sp := &ws.spill
	anchor := ws.flow.insts[o.at]
	blk := m.Insts.At(anchor).Block
	row := m.Regs.At(t)
	reg := ir.RegArg(t, row.Dtype)
	mem := ir.Arg{Kind: ir.ArgAP, Dtype: m.APs.At(h.ap).Dtype, Ref: uint32(h.ap)}
	var i ir.Inst
	kind, flag := arena.DeriveReload, ir.InstReload
	if o.def {
		i = m.NewInst(blk, ir.OpTensorSave, h.engine, []ir.Arg{reg}, []ir.Arg{mem})
		kind, flag = arena.DeriveSpill, ir.InstSpill
		ws.mt.Stores++
	} else {
		i = m.NewInst(blk, ir.OpTensorLoad, h.engine, []ir.Arg{mem}, []ir.Arg{reg})
		ws.mt.Reloads++
	}
	wait := m.NewInst(blk, ir.OpEventSemaphore, h.engine, nil, nil)
	name := m.Names.Derived(row.Name, kind, 1)
	m.Insts.At(i).Name, m.Insts.At(i).Flags = name, flag
	m.Insts.At(wait).Name, m.Insts.At(wait).Flags = m.Names.Derived(row.Name, kind, 2), flag
	sem := sp.sem[h.engine]
	m.Syncs.Set(i, ir.SyncRow{Updates: m.SyncOps.Add(ir.SyncOp{Sem: sem, Value: 1})})
	m.Syncs.Set(wait, ir.SyncRow{
		Waits:   m.SyncOps.Add(ir.SyncOp{Sem: sem, Value: 1, From: i}),
		Updates: m.SyncOps.Add(ir.SyncOp{Sem: sem, Value: -1}),
	})
	if o.def {
		// Edits put what comes later further back.
		ws.edits.After(anchor, i)
		ws.edits.After(anchor, wait)
	} else {
		ws.edits.Before(anchor, i)
		ws.edits.Before(anchor, wait)
	}
	ws.mt.SpillCycles += ws.flow.weight[ws.flow.nodeOf[o.at]] * accessCost(m, h)
}

// accessCost is the ns of a save or a reload and the wait behind it.
func accessCost(m *ir.Module, h *home) int64 {
	g := m.Gen
	c := 2 * g.EngineCost(target.CostNone, h.engine, 0)
	if m.Locs.At(m.APs.At(h.ap).Loc).Space == target.SpaceDRAM {
		return c + g.DMACost(1, 1, 4*int(h.width))
	}
	return c + g.EngineCost(target.CostElementwise, h.engine, 1)
}

// rename makes an operand that names one register name another. Address rows may be shared, so it gets one of its own.
func rename(m *ir.Module, arg uint32, from, to ir.Reg) {
	a := &m.Args.Of(arena.Span{Off: arg, Len: 1})[0]
	if a.Kind == ir.ArgReg {
		a.Ref = uint32(to)
		return
	}
	s := *m.Syms.At(ir.Sym(a.Ref))
	if s.Reg == from {
		s.Reg = to
	}
	if s.SubReg == from {
		s.SubReg = to
	}
	a.Ref = uint32(m.Syms.Add(s))
}
