package memalloc

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// group is one accumulation group: the matmuls that write one destination from START to STOP.
type group struct {
	fp          ir.Footprint
	first, last int  // accesses
	flagged     bool // its flags are given, so its end is where STOP is
}

// groupRun is a run of matmuls of a group that share banks. What the group has added up before is copied in ahead of it, and the sum so far out
// behind it.
type groupRun struct {
	group int
	first int  // access
	own   bool // in a location of its own; else where the value was
}

// A PSUM value is spilled by moving it to SBUF for good: each accumulation group gets banks of its own from START to STOP and
// is copied out right after; all that is not a matmul reads and writes the copy. Nothing needs to come back: the operands of the
// array are in SBUF, and the other engines reach both memories.
//
// Groups that are open together can need more banks than there are. As a last resort one is cut where others are at work: the sum so
// far waits in the copy and comes back ahead of the next matmul, which adds to it as it would have. So a matmul needs the banks of its
// own destination, and the numbers stay the same bits.

// groupsOf finds the accumulation groups among the accesses of a location. regular is false where the value cannot be moved:
// a matmul adds to what is not its own open group, or something touches a group before it stops.
func (sp *spiller) groupsOf(m *ir.Module, acc []ssa.Access) (regular bool) {
	sp.groups, sp.open = sp.groups[:0], sp.open[:0]
	for k := range acc {
		a := &acc[k]
		fp := m.FootprintOf(apOf(m, a.Arg))
		matmul := a.Flags&ssa.Write != 0 && m.Insts.At(a.Inst).Op.Is(ir.FlagMatmul)
		fl := int64(0)
		if matmul {
			fl = m.AttrInt(a.Inst, ir.KeyAccumulationFlag)
		}
		mine := -1
		for i := len(sp.open) - 1; i >= 0; i-- {
			o := &sp.groups[sp.open[i]]
			switch {
			case !o.fp.Overlaps(&fp):
			case matmul && o.fp == fp && fl&ir.GroupStart == 0:
				mine = sp.open[i]
			case o.flagged:
				return false
			default: // a group without flags ends where something else touches it
				sp.open = slices.Delete(sp.open, i, i+1)
			}
		}
		if !matmul {
			continue
		}
		if mine < 0 {
			if fl&ir.GroupAccumulate != 0 && fl&ir.GroupStart == 0 {
				return false
			}
			mine = len(sp.groups)
			sp.groups = append(sp.groups, group{fp: fp, first: k, flagged: fl != 0})
			sp.open = append(sp.open, mine)
		}
		g := &sp.groups[mine]
		g.last = k
		if fl&ir.GroupStop != 0 {
			sp.open = slices.DeleteFunc(sp.open, func(o int) bool { return o == mine })
		}
	}
	return true
}

// psumCost is the ns of copying a unit's groups out, and in where they are cut, Infinite where it must stay.
func (ws *Workspace) psumCost(m *ir.Module, u *ssa.Unit) int64 {
	sp := &ws.spill
	acc := ws.lin.Of(u.First)
	if psumStays(m, u, sp.opt.NoSpillHint) || !sp.groupsOf(m, acc) || !ws.endInTheirLoop(acc) {
		return regalloc.Infinite
	}
	copies := func(g *group) int64 {
		return m.Gen.EngineCost(target.CostElementwise, target.EngineDVE, g.fp.Runs()*g.fp.Run/4)
	}
	cost := int64(0)
	if m.Sets.At(u.Set).Flags&ir.SetReload != 0 {
		if ws.cutGroups(m, acc); len(sp.groupRuns) == len(sp.groups) {
			return regalloc.Infinite
		}
		for k := range sp.groupRuns {
			cost += 2 * lastResort * copies(&sp.groups[sp.groupRuns[k].group])
		}
		return cost
	}
	for k := range sp.groups {
		cost += copies(&sp.groups[k])
	}
	if len(sp.groups) == 1 && sp.groups[0].first == 0 && u.End <= acc[sp.groups[0].last].At+2 {
		// Alone in its location, and read right after: the copy would stand where the reader does.
		cost *= lastResort
	}
	return cost
}

// member reports that access v is one of the matmuls of a group.
func (g *group) member(m *ir.Module, acc []ssa.Access, v int) bool {
	return acc[v].Flags&ssa.Write != 0 && m.Insts.At(acc[v].Inst).Op.Is(ir.FlagMatmul) && m.FootprintOf(apOf(m, acc[v].Arg)) == g.fp
}

// cuttable reports a group that is the same when its sum comes from elsewhere between two matmuls: the flags say that every one but
// the first adds to it.
func (g *group) cuttable(m *ir.Module, acc []ssa.Access) bool {
	for v := g.first; v <= g.last; v++ {
		if !g.member(m, acc, v) {
			continue
		}
		start := m.AttrInt(acc[v].Inst, ir.KeyAccumulationFlag)&(ir.GroupStart|ir.GroupAccumulate) == ir.GroupStart
		if start != (v == g.first) || v != g.first && !m.ReadsDst(acc[v].Inst) {
			return false
		}
	}
	return g.flagged
}

// cutGroups cuts the groups of a value, which groupsOf found, wherever another value of PSUM is at work between two matmuls, or a
// loop begins or ends.
func (ws *Workspace) cutGroups(m *ir.Module, acc []ssa.Access) {
	sp := &ws.spill
	sp.groupRuns = sp.groupRuns[:0]
	for k := range sp.groups {
		g := &sp.groups[k]
		sp.groupRuns = append(sp.groupRuns, groupRun{group: k, first: g.first, own: true})
		if g.first == g.last || !g.cuttable(m, acc) {
			continue
		}
		at := acc[g.first].At
		for v := g.first + 1; v <= g.last; v++ {
			if !g.member(m, acc, v) {
				continue
			}
			if ws.lin.LoopOf(at) != ws.lin.LoopOf(acc[v].At) || ws.psumBusy(m, at+1, acc[v].At) {
				sp.groupRuns = append(sp.groupRuns, groupRun{group: k, first: v, own: true})
			}
			at = acc[v].At
		}
	}
}

// psumBusy reports accesses to PSUM in [from, to). They are counted once a round.
func (ws *Workspace) psumBusy(m *ir.Module, from, to ssa.Point) bool {
	sp := &ws.spill
	if len(sp.psumUses) == 0 {
		acc, locs := ws.lin.All()
		sp.psumUses = arena.Resized(sp.psumUses, ws.lin.Points()+1)
		clear(sp.psumUses)
		for k := range acc {
			if m.Locs.At(locs[k]).Space == target.SpacePSUM {
				sp.psumUses[acc[k].At+1]++
			}
		}
		for p := 1; p < len(sp.psumUses); p++ {
			sp.psumUses[p] += sp.psumUses[p-1]
		}
	}
	return sp.psumUses[from] < sp.psumUses[to]
}

// psumStays reports a unit that cannot be moved, whatever its groups; with hint, also one that its producer marked.
func psumStays(m *ir.Module, u *ssa.Unit, hint bool) bool {
	set := m.Sets.At(u.Set)
	return u.Flags&(ssa.Placed|ssa.Always|ssa.Opaque|ssa.Dead) != 0 || u.Count > 1 || hint && set.Flags&ir.SetNoSpill != 0
}

// spillPSUM moves the values that found no banks to SBUF, and cuts the groups of those that have nothing but banks of their own. It goes
// in program order: what neighbours touch of the module lies together.
func (ws *Workspace) spillPSUM(m *ir.Module) {
	sp := &ws.spill
	slices.Sort(ws.result.Unplaced)
	for _, i := range ws.result.Unplaced {
		u := &ws.ranges.Units[i]
		acc := ws.lin.Of(u.First)
		sp.groupsOf(m, acc)
		if m.Sets.At(u.Set).Flags&ir.SetReload != 0 {
			ws.cutGroups(m, acc)
		} else {
			sp.groupRuns = sp.groupRuns[:0]
			for k := range sp.groups {
				sp.groupRuns = append(sp.groupRuns, groupRun{group: k, first: sp.groups[k].first, own: true})
			}
		}
		ws.moveOut(m, u)
	}
	sp.apply()
}

// moveOut rewrites one value by its groups and their runs, which are in order. The locations of runs that have one of their own are
// left in spiller.owned.
func (ws *Workspace) moveOut(m *ir.Module, u *ssa.Unit) {
	sp := &ws.spill
	acc := ws.lin.Of(u.First)
	sp.owned = sp.owned[:0]
	l := *m.Locs.At(u.First)
	_, to := sp.newSet(u.Set, arena.DeriveSpill, ir.ClassNeuronSBTensor, target.SpaceSB, int64(l.Parts), l.Bytes, 0)
	all := box{0, int32(l.Parts), 0, l.Bytes}
	keeps := false
	for k := range sp.groupRuns {
		r := &sp.groupRuns[k]
		g := &sp.groups[r.group]
		end, first, more := g.last+1, r.first == g.first, false
		if k+1 < len(sp.groupRuns) && sp.groupRuns[k+1].group == r.group {
			end, more = sp.groupRuns[k+1].first, true
		}
		b, own := all, u.First
		if r.own {
			b = groupBox(g)
			_, own = sp.newSet(u.Set, arena.DeriveSplit, ir.ClassNeuronPSUMTensor, target.SpacePSUM, int64(b.p1), b.hi-b.lo, ir.SetReload)
			sp.owned = append(sp.owned, own)
		}
		keeps = keeps || !r.own
		last := r.first
		for v := r.first; v < end; v++ {
			if g.member(m, acc, v) {
				last = v
				if r.own {
					sp.rebase(acc[v].Arg, b, own)
				}
			}
		}
		if !first {
			banks, copied := sp.beside(acc[r.first].Arg, b, to, l.Bytes)
			i := m.NewInst(m.Insts.At(acc[r.first].Inst).Block, ir.OpTensorCopy, target.EngineDVE, []ir.Arg{copied}, []ir.Arg{banks})
			m.Insts.At(i).Flags |= ir.InstReload
			sp.stamp(i, acc[r.first].Inst)
			sp.edits.Before(ws.lin.Insts[sp.heads[acc[r.first].At]], i)
			sp.mt.Reloads++
		}
		if more {
			m.SetAttr(acc[last].Inst, ir.Int(ir.KeyAccumulationFlag, m.AttrInt(acc[last].Inst, ir.KeyAccumulationFlag)|ir.GroupStop))
		}
		banks, copied := sp.beside(acc[last].Arg, b, to, l.Bytes)
		i := m.NewInst(m.Insts.At(acc[last].Inst).Block, ir.OpTensorCopy, target.EngineDVE, []ir.Arg{banks}, []ir.Arg{copied})
		m.Insts.At(i).Flags |= ir.InstSpill
		sp.stamp(i, acc[last].Inst)
		sp.edits.After(ws.tail(acc[last].At), i)
		sp.mt.Saves++
	}
	for k := range acc {
		if acc[k].Flags&ssa.Write == 0 || !m.Insts.At(acc[k].Inst).Op.Is(ir.FlagMatmul) {
			sp.rebase(acc[k].Arg, all, to)
		}
	}
	sp.countWhole(m, u, false)
	if !keeps {
		sp.drop(u)
	}
}

// beside is the operand of a matmul that writes the location of a box, and the same bytes in the copy of the value, whose rows are of
// row bytes.
func (sp *spiller) beside(arg uint32, b box, to ir.Loc, row int64) (banks, copied ir.Arg) {
	m := sp.m
	banks = m.Args.Of(arena.Span{Off: arg, Len: 1})[0]
	ap := *m.APs.At(banks.AP())
	esz := int64(ap.Dtype.Size())
	ap.Loc, ap.Off = to, ap.Off+b.lo/esz
	ap.Pairs[0].Step = int32(row / esz)
	return banks, ir.Arg{Kind: ir.ArgAP, Dtype: ap.Dtype, Ref: uint32(m.APs.Add(ap))}
}

// groupBox is what a group needs of banks of its own: the columns of the array are the partitions of the result and stay as they are.
func groupBox(g *group) box {
	b := box{0, g.fp.P1, g.fp.Lo, g.fp.Hi}
	b.round()
	return b
}
