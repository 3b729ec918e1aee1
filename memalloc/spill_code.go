package memalloc

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// newSet adds a set with one location that is derived from another.
func (sp *spiller) newSet(of ir.Set, kind arena.Derive, class ir.TensorClass, space target.Space, parts int64, bytes int64, fl ir.SetFlag) (ir.Set, ir.Loc) {
	m := sp.m
	o := *m.Sets.At(of)
	sp.names++
	parent := o.Name
	if sp.copied.Get(of) { // a copy of a copy is a copy
		parent, _, _ = m.Names.Origin(parent)
	}
	name := m.Names.Derived(parent, kind, sp.names)
	esz := int64(max(1, o.Dtype.Size()))
	dtype := o.Dtype
	if bytes%esz != 0 {
		dtype, esz = target.Uint8, 1
	}
	s := m.Sets.Add(ir.SetRow{
		Name: name, Kind: ir.KindInternal, Class: class, Dtype: dtype, Func: sp.f, Count: 1, Origin: o.Origin,
		Shape: m.Ints.Add(parts, bytes/esz), Flags: fl,
	})
	row := ir.LocRow{Name: name, Set: s, Space: space, Parts: uint32(parts), Bytes: bytes, Pack: -1, ID: -1}
	if space == target.SpaceDRAM {
		m.Sets.At(s).PartDim = -1
		row.Parts, row.Bytes = 1, parts*bytes
	}
	l := m.Locs.Add(row)
	m.Sets.At(s).First = l
	sp.fresh = append(sp.fresh, s)
	return s, l
}

// stand makes a location for a box of a unit.
func (sp *spiller) stand(u *ssa.Unit, b box, kind arena.Derive, fl ir.SetFlag, h *home) ir.Loc {
	s, l := sp.newSet(u.Set, kind, ir.ClassNeuronSBTensor, target.SpaceSB, int64(b.p1-b.p0), b.hi-b.lo, fl)
	sp.copied.Set(s, true)
	if h.loc != 0 {
		sp.homes.Set(s, home{h.loc, h.part + b.p0, h.lo + b.lo, h.row})
	}
	return l
}

// drop takes a spilled set out of the function. Nothing refers to it any more; its rows stay, empty.
func (sp *spiller) drop(u *ssa.Unit) {
	sp.dropped.Set(u.Set, true)
	l := sp.m.Locs.At(u.First)
	l.Space, l.Parts, l.Bytes = target.SpaceUnallocated, 0, 0
}

// rebase points an operand at the location that holds a box of its old one.
func (sp *spiller) rebase(arg uint32, b box, to ir.Loc) {
	m := sp.m
	a := &m.Args.Of(arena.Span{Off: arg, Len: 1})[0]
	a.Ref = uint32(m.APs.Add(b.within(*m.APs.At(ir.AP(a.Ref)), to)))
}

// within is a pattern of the value in the location that holds the box of it.
func (b box) within(row ir.APRow, to ir.Loc) ir.APRow {
	esz := int64(row.Dtype.Size())
	row.Loc = to
	row.Start -= uint8(b.p0)
	row.Off -= b.lo / esz
	row.Pairs[0].Step = int32((b.hi - b.lo) / esz)
	return row
}

// chip is the pattern of a footprint of the value in the location that holds box b of it, memory the one in its home.
func (sp *spiller) chip(fp *ir.Footprint, d target.Dtype, b box, l ir.Loc) ir.Arg {
	esz := int64(d.Size())
	row := ir.APRow{Loc: l, Dtype: d, Start: uint8(fp.P0 - b.p0), Parts: uint16(fp.P1 - fp.P0), Off: (fp.Lo - b.lo) / esz}
	row.Pairs[0] = ir.Pair{Step: int32((b.hi - b.lo) / esz), Num: uint32(row.Parts)}
	axesOf(fp, esz, row.Pairs[1:])
	return ir.Arg{Kind: ir.ArgAP, Dtype: d, Ref: uint32(sp.m.APs.Add(row))}
}

func (sp *spiller) memory(fp *ir.Footprint, d target.Dtype, h *home) ir.Arg {
	esz := int64(d.Size())
	row := ir.APRow{Loc: h.loc, Dtype: d, Off: (int64(fp.P0+h.part)*h.row + fp.Lo + h.lo) / esz}
	row.Pairs[0] = ir.Pair{Step: int32(h.row / esz), Num: uint32(fp.P1 - fp.P0)}
	axesOf(fp, esz, row.Pairs[1:])
	return ir.Arg{Kind: ir.ArgAP, Dtype: d, Ref: uint32(sp.m.APs.Add(row))}
}

// axesOf writes the axes of a footprint within a partition, outermost first: at most four, since a pattern on chip has no more
// and runs of several elements took at least one of them.
func axesOf(fp *ir.Footprint, esz int64, pairs []ir.Pair) {
	k := 0
	for i := int(fp.N) - 1; i >= 0; i-- {
		pairs[k] = ir.Pair{Step: int32(fp.Step[i] / esz), Num: uint32(fp.Num[i])}
		k++
	}
	if fp.Run > esz || k == 0 {
		pairs[k] = ir.Pair{Step: 1, Num: uint32(fp.Run / esz)}
	}
}

// elemOf is the element type in which a region is moved: the operand's, or bytes where the region or the home's rows are not
// whole elements of it.
func elemOf(m *ir.Module, arg uint32, fp *ir.Footprint, h *home) target.Dtype {
	d := m.APs.At(apOf(m, arg)).Dtype
	esz := int64(d.Size())
	if fp.Lo%esz != 0 || fp.Run%esz != 0 || h.row%esz != 0 || h.lo%esz != 0 {
		return target.Uint8
	}
	for i := range int(fp.N) {
		if fp.Step[i]%esz != 0 {
			return target.Uint8
		}
	}
	return d
}

// reload emits the load of a region of the value into the run's location before anchor.
func (sp *spiller) reload(rm *remat, isRemat bool, h *home, r *run, at ir.Loc, fp ir.Footprint, arg uint32, anchor ir.Inst) {
	m := sp.m
	var i ir.Inst
	blk := m.Insts.At(anchor).Block
	if isRemat {
		src, got, ok := rm.slice(boxOf(&fp))
		if !ok {
			src, got = rm.src, rm.dst
		}
		in := rm.operand(m, src)
		like := got.dense(&fp)
		out := sp.chip(&like, rm.row, r.box, at)
		row := *m.Insts.At(rm.load)
		i = m.NewInst(blk, row.Op, row.Engine, []ir.Arg{in}, []ir.Arg{out}, m.AttrsOf(rm.load)...)
	} else {
		d := elemOf(m, arg, &fp, h)
		i = m.NewInst(blk, ir.OpLoad, target.EngineSP, []ir.Arg{sp.memory(&fp, d, h)}, []ir.Arg{sp.chip(&fp, d, r.box, at)})
	}
	m.Insts.At(i).Flags |= ir.InstReload
	sp.stamp(i, anchor)
	sp.edits.Before(anchor, i)
	sp.mt.Reloads++
	sp.moved += bytesOut(m, i)
}

// save emits the store of what an access wrote, after its scheduling unit, from the engine that wrote it.
func (sp *spiller) save(h *home, r *run, at ir.Loc, fp ir.Footprint, a ssa.Access, anchor ir.Inst) {
	m := sp.m
	d := elemOf(m, a.Arg, &fp, h)
	i := m.NewInst(m.Insts.At(anchor).Block, ir.OpSave, sp.saver(a.Inst), []ir.Arg{sp.chip(&fp, d, r.box, at)}, []ir.Arg{sp.memory(&fp, d, h)})
	m.Insts.At(i).Flags |= ir.InstSpill
	sp.stamp(i, a.Inst)
	sp.edits.After(anchor, i)
	sp.mt.Saves++
	sp.moved += bytesOf(&fp)
}

// saver is the engine that saves what an instruction wrote.
func (sp *spiller) saver(i ir.Inst) target.Engine {
	if r := sp.m.Insts.At(i); !r.Op.IsDMA() && r.Engine.HasStream() {
		return r.Engine
	}
	return target.EngineSP
}

// stamp gives spill code the provenance of the instruction that it serves.
func (sp *spiller) stamp(i, of ir.Inst) {
	if s := sp.m.Source.Get(of); s != 0 {
		sp.m.Source.Set(i, s)
	}
}
