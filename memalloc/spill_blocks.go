package memalloc

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// A tensor of blocks, or one that a loop indexes, is spilled whole and access by access: which bytes an access finds is known at
// run time only, so each has a copy of its own that holds what its pattern touches, loaded right before and saved right
// after. The home has the blocks that are live, in the order of the tensor, so that the same index finds them there.

// slotsOf is how many blocks of a set are live at a time.
func slotsOf(set *ir.SetRow) uint32 {
	if set.LiveN > 0 && set.LiveN < set.Count {
		return set.LiveN
	}
	return set.Count
}

// blocksCost is the ns that sending the whole set of a unit home would cost, in each turn, for all blocks that are live.
func (ws *Workspace) blocksCost(m *ir.Module, u *ssa.Unit, l *ir.LocRow, opt *Options) int64 {
	set := m.Sets.At(u.Set)
	if u.Flags&(ssa.Always|ssa.Dead) != 0 || set.Flags&ir.SetReload != 0 || opt.NoSpillHint && set.Flags&ir.SetNoSpill != 0 {
		return regalloc.Infinite
	}
	n := int64(0)
	for k := range set.Count {
		x := m.Locs.At(set.First + ir.Loc(k))
		if x.Flags&(ir.LocAllocated|ir.LocUserAllocated|ir.LocPinned|ir.LocReserved) != 0 || x.Parts != l.Parts || x.Bytes != l.Bytes {
			return regalloc.Infinite
		}
		for _, a := range ws.lin.Of(set.First + ir.Loc(k)) {
			if a.Flags&ssa.Symbolic != 0 && k > 0 {
				continue // counted with the first block
			}
			if !ws.alone(m, u.Set, &a, l) {
				return regalloc.Infinite
			}
			if a.Flags&ssa.Read != 0 {
				n++
			}
			if a.Flags&ssa.Write != 0 {
				n++
			}
		}
	}
	return n * int64(slotsOf(set)) * dramCost(m.Gen, l, set.Dtype.Size())
}

// alone reports an access that can have a copy of its own: its instruction runs, no other one is tied to it, it finds no bytes that
// nothing wrote, and loops say where it is.
func (ws *Workspace) alone(m *ir.Module, s ir.Set, a *ssa.Access, l *ir.LocRow) bool {
	if a.Flags&(ssa.Nested|ssa.Uninit) != 0 || !ws.inside(m, s, a) || ws.spill.heads[a.At] != ws.spill.tails[a.At] {
		return false
	}
	arg := m.Args.Of(arena.Span{Off: a.Arg, Len: 1})[0]
	d := arg.Dtype
	if a.Flags&ssa.Symbolic != 0 {
		s := m.Syms.At(ir.Sym(arg.Ref))
		d = s.AP.Dtype
		if s.AP.Loc != 0 {
			return false
		}
		// The copy starts at partition 0. So does the pattern, if it takes all partitions; else it may have to stay where another
		// operand is.
		if uint32(s.AP.Parts) != l.Parts && (m.Insts.At(a.Inst).Op.Is(ir.FlagMatmul) || scalarsFollow(m, a.Inst)) {
			return false
		}
	}
	return d.Size() > 0 && l.Bytes%int64(d.Size()) == 0
}

// spillBlocks sends the set of a unit home.
func (ws *Workspace) spillBlocks(m *ir.Module, u *ssa.Unit) {
	sp := &ws.spill
	if sp.dropped.Get(u.Set) {
		return // with another of its blocks
	}
	set := *m.Sets.At(u.Set)
	l := *m.Locs.At(set.First)
	slots := slotsOf(&set)
	hs, hl := sp.newSet(u.Set, arena.DeriveHome, ir.ClassTensor, target.SpaceDRAM, int64(slots)*int64(l.Parts), l.Bytes, ir.SetSpillHome)
	for k := range set.Count {
		h := home{loc: hl, part: int32(k % slots * l.Parts), row: l.Bytes}
		for _, a := range ws.lin.Of(set.First + ir.Loc(k)) {
			if a.Flags&ssa.Symbolic == 0 {
				ws.visitBlock(m, u.Set, &a, &h)
			} else if k == 0 {
				ws.visitIndexed(m, u.Set, &a, hs, slots)
			}
		}
	}
	for k := range set.Count {
		x := m.Locs.At(set.First + ir.Loc(k))
		x.Space, x.Parts, x.Bytes = target.SpaceUnallocated, 0, 0
	}
	sp.dropped.Set(u.Set, true)
	size := int64(slots) * l.Bytes
	sp.mt.Spilled++
	sp.mt.SpilledPerPart += size
	sp.mt.SpilledBytes += size * int64(l.Parts)
	sp.mt.HomeBytes += size * int64(l.Parts)
}

// visitBlock gives one physical access its copy.
func (ws *Workspace) visitBlock(m *ir.Module, s ir.Set, a *ssa.Access, h *home) {
	sp := &ws.spill
	fp := m.FootprintOf(apOf(m, a.Arg))
	b := boxOf(&fp)
	// Start partitions stay legal within a half, and what the array reads stays where it is.
	if b.p0 = b.p0 / 64 * 64; m.Insts.At(a.Inst).Op.Is(ir.FlagMatmul) || scalarsFollow(m, a.Inst) {
		b.p0 = 0
	}
	d := elemOf(m, a.Arg, &fp, h)
	memory := sp.memory(&fp, d, h)
	sp.visitOnce(s, a, *m.APs.At(apOf(m, a.Arg)), fp, b, d, memory)
}

// visitIndexed gives one symbolic access its copy. The home is one block of all, in which the same index counts.
func (ws *Workspace) visitIndexed(m *ir.Module, s ir.Set, a *ssa.Access, to ir.Set, slots uint32) {
	sym := *m.Syms.At(ir.Sym(m.Args.Of(arena.Span{Off: a.Arg, Len: 1})[0].Ref))
	set := m.Sets.At(s)
	d := sym.AP.Dtype
	esz := int64(d.Size())
	row := m.Locs.At(set.First).Bytes
	at := ir.SymRow{Set: to, Addr: sym.Addr}
	at.AP.Off = linearStart(m, &sym)
	if slots < set.Count {
		at.Addr = modulo(m, sym.Addr, at.AP.Off, int64(slots)*m.BlockElems(s, d))
		at.AP.Off = 0
	}
	pattern := sym.AP
	pattern.Loc, pattern.Start, pattern.Off = set.First, 0, 0
	fp := m.Footprint(&pattern)
	at.AP.Dtype = d
	at.AP.Off += fp.Lo / esz
	at.AP.Pairs[0] = ir.Pair{Step: int32(row / esz), Num: uint32(pattern.Parts)}
	axesOf(&fp, esz, at.AP.Pairs[1:])
	memory := ir.Arg{Kind: ir.ArgSym, Dtype: d, Ref: uint32(m.Syms.Add(at))}
	ws.spill.visitOnce(s, a, pattern, fp, boxOf(&fp), d, memory)
}

// visitOnce moves an access of pattern, with footprint fp in box b of the value, to a copy of that box, and brings it from memory and
// back there as elements of type d.
func (sp *spiller) visitOnce(s ir.Set, a *ssa.Access, pattern ir.APRow, fp ir.Footprint, b box, d target.Dtype, memory ir.Arg) {
	m := sp.m
	b.round()
	kind := arena.DeriveSpill
	if a.Flags&ssa.Read != 0 {
		kind = arena.DeriveReload
	}
	_, copied := sp.newSet(s, kind, ir.ClassNeuronSBTensor, target.SpaceSB, int64(b.p1-b.p0), b.hi-b.lo, ir.SetReload)
	blk := m.Insts.At(a.Inst).Block
	if a.Flags&ssa.Read != 0 {
		i := m.NewInst(blk, ir.OpLoad, target.EngineSP, []ir.Arg{memory}, []ir.Arg{sp.chip(&fp, d, b, copied)})
		m.Insts.At(i).Flags |= ir.InstReload
		sp.stamp(i, a.Inst)
		sp.edits.Before(a.Inst, i)
		sp.mt.Reloads++
	}
	if a.Flags&ssa.Write != 0 {
		i := m.NewInst(blk, ir.OpSave, sp.saver(a.Inst), []ir.Arg{sp.chip(&fp, d, b, copied)}, []ir.Arg{memory})
		m.Insts.At(i).Flags |= ir.InstSpill
		sp.stamp(i, a.Inst)
		sp.edits.After(a.Inst, i)
		sp.mt.Saves++
	}
	m.Args.Of(arena.Span{Off: a.Arg, Len: 1})[0] = ir.Arg{Kind: ir.ArgAP, Dtype: pattern.Dtype, Ref: uint32(m.APs.Add(b.within(pattern, copied)))}
}
