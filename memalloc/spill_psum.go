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

// A PSUM value is spilled by moving it to SBUF for good: each accumulation group gets banks of its own from START to STOP and
// is copied out right after; all that is not a matmul reads and writes the copy. Nothing needs to come back: the operands of the
// array are in SBUF, and the other engines reach both memories.

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

// psumCost is the ns of copying a unit's groups out, Infinite where it must stay.
func (ws *Workspace) psumCost(m *ir.Module, u *ssa.Unit) int64 {
	sp := &ws.spill
	acc := ws.lin.Of(u.First)
	if psumStays(m, u, sp.opt.NoSpillHint) || !sp.groupsOf(m, acc) || !ws.endInTheirLoop(acc) {
		return regalloc.Infinite
	}
	cost := int64(0)
	for k := range sp.groups {
		g := &sp.groups[k]
		cost += m.Gen.EngineCost(target.CostElementwise, target.EngineDVE, g.fp.Runs()*g.fp.Run/4)
	}
	if len(sp.groups) == 1 && sp.groups[0].first == 0 && u.End <= acc[sp.groups[0].last].At+2 {
		// Alone in its location, and read right after: the copy would stand where the reader does.
		cost *= lastResort
	}
	return cost
}

// psumStays reports a unit that cannot be moved, whatever its groups; with hint, also one that its producer marked.
func psumStays(m *ir.Module, u *ssa.Unit, hint bool) bool {
	set := m.Sets.At(u.Set)
	return u.Flags&(ssa.Placed|ssa.Always|ssa.Opaque|ssa.Dead) != 0 || u.Count > 1 || set.Flags&ir.SetReload != 0 ||
		hint && set.Flags&ir.SetNoSpill != 0
}

// spillPSUM moves the values that found no banks to SBUF.
func (ws *Workspace) spillPSUM(m *ir.Module) {
	for _, i := range ws.result.Unplaced {
		ws.moveOut(m, &ws.ranges.Units[i], 0)
	}
	ws.spill.apply()
}

// moveOut rewrites one value. Groups that start before a point keep the banks that they have, and only what they hold is copied; the
// locations of the others are left in spiller.owned.
func (ws *Workspace) moveOut(m *ir.Module, u *ssa.Unit, from ssa.Point) {
	sp := &ws.spill
	acc := ws.lin.Of(u.First)
	sp.groupsOf(m, acc)
	sp.owned = sp.owned[:0]
	l := *m.Locs.At(u.First)
	_, to := sp.newSet(u.Set, arena.DeriveSpill, ir.ClassNeuronSBTensor, target.SpaceSB, int64(l.Parts), l.Bytes, 0)
	all := box{0, int32(l.Parts), 0, l.Bytes}
	keeps := false
	for k := range sp.groups {
		g := &sp.groups[k]
		b := all
		if acc[g.first].At < from {
			keeps = true
		} else {
			b = groupBox(g)
			_, own := sp.newSet(u.Set, arena.DeriveSplit, ir.ClassNeuronPSUMTensor, target.SpacePSUM, int64(b.p1), b.hi-b.lo, ir.SetReload)
			sp.owned = append(sp.owned, own)
			for v := g.first; v <= g.last; v++ {
				if acc[v].Flags&ssa.Write != 0 && m.Insts.At(acc[v].Inst).Op.Is(ir.FlagMatmul) && m.FootprintOf(apOf(m, acc[v].Arg)) == g.fp {
					sp.rebase(acc[v].Arg, b, own)
				}
			}
		}
		last := acc[g.last]
		a := m.Args.Of(arena.Span{Off: last.Arg, Len: 1})[0]
		row := *m.APs.At(a.AP())
		esz := int64(row.Dtype.Size())
		row.Loc, row.Off = to, row.Off+b.lo/esz
		row.Pairs[0].Step = int32(l.Bytes / esz)
		out := ir.Arg{Kind: ir.ArgAP, Dtype: row.Dtype, Ref: uint32(m.APs.Add(row))}
		i := m.NewInst(m.Insts.At(last.Inst).Block, ir.OpTensorCopy, target.EngineDVE, []ir.Arg{a}, []ir.Arg{out})
		m.Insts.At(i).Flags |= ir.InstSpill
		sp.stamp(i, last.Inst)
		sp.edits.After(ws.tail(last.At), i)
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

// groupBox is what a group needs of banks of its own: the columns of the array are the partitions of the result and stay as they are.
func groupBox(g *group) box {
	b := box{0, g.fp.P1, g.fp.Lo, g.fp.Hi}
	b.round()
	return b
}
