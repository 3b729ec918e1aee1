package memalloc

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// remat is a value that one plain DMA brought from DRAM and that can be brought again, whole or in parts, because neither it
// nor its source changes while it is used. What a loop indexes can be within the turn.
type remat struct {
	load ir.Inst
	src  ir.APRow // in DRAM
	sym  ir.Sym   // the operand of which src is the pattern, none when it is physical
	dst  box      // dense, in the value
	esz  int64    // bytes of an element of the value
	free int64    // elements a partition
	row  target.Dtype
}

// remat finds out whether a unit is such a value.
func (ws *Workspace) remat(m *ir.Module, u *ssa.Unit) (r remat, ok bool) {
	acc := ws.lin.Of(u.First)
	if u.Count != 1 || u.Flags&ssa.Opaque != 0 || len(acc) == 0 || acc[0].Flags != ssa.Write {
		return r, false
	}
	in := m.Insts.At(acc[0].Inst)
	if in.Op != ir.OpLoad && (in.Op != ir.OpDMACopy || ir.CopyMode(m.Attr(acc[0].Inst, ir.KeyCopyMode)) != ir.CopyPlain) ||
		in.NIn != 1 || in.NInd != 0 || in.NOut != 1 {
		return r, false
	}
	r.load = acc[0].Inst
	blocks := uint32(1)
	switch src := m.Ins(r.load)[0]; src.Kind {
	case ir.ArgAP:
		r.src = *m.APs.At(src.AP())
	case ir.ArgSym:
		r.sym = ir.Sym(src.Ref)
		s := m.Syms.At(r.sym)
		if s.Reg != 0 || s.SubReg != 0 || ws.lin.SharedAxis() {
			return r, false
		}
		for _, a := range acc {
			if !ws.lin.In(a.At, ws.lin.LoopOf(acc[0].At)) {
				return r, false
			}
		}
		r.src, blocks = s.AP, m.Sets.At(s.Set).Count
		r.src.Loc = m.Sets.At(s.Set).First
	default:
		return r, false
	}
	for l := r.src.Loc; l < r.src.Loc+ir.Loc(blocks); l++ {
		sl := m.Locs.At(l)
		if sl.Space != target.SpaceDRAM || sl.Flags&ir.LocRemoteWriter != 0 || ws.lin.Aliased(l) {
			return r, false
		}
		if k := m.Sets.At(sl.Set).Kind; !k.IsInput() && k != ir.KindConst && ws.lin.WrittenIn(l, u.Start, u.End) {
			return r, false
		}
	}
	d := m.APs.At(apOf(m, acc[0].Arg))
	r.esz, r.row = int64(d.Dtype.Size()), d.Dtype
	// Row-major without gaps, so that element k of a partition is the k-th of the pattern.
	dense := int64(1)
	free := d.Free(target.SpaceSB)
	for k := len(free) - 1; k >= 0; k-- {
		if free[k].Num > 1 && int64(free[k].Step) != dense {
			return r, false
		}
		dense *= int64(free[k].Num)
	}
	r.free = dense
	lo := d.Off * r.esz
	r.dst = box{int32(d.Start), int32(d.Start) + int32(d.Parts), lo, lo + dense*r.esz}
	for _, a := range acc[1:] {
		fp := m.FootprintOf(apOf(m, a.Arg))
		if a.Flags&ssa.Write != 0 || fp.P0 < r.dst.p0 || fp.P1 > r.dst.p1 || fp.Lo < r.dst.lo || fp.Hi > r.dst.hi {
			return r, false
		}
	}
	return r, true
}

// operand is the source of a load of pattern src.
func (r *remat) operand(m *ir.Module, src ir.APRow) ir.Arg {
	if r.sym == 0 {
		return ir.Arg{Kind: ir.ArgAP, Dtype: src.Dtype, Ref: uint32(m.APs.Add(src))}
	}
	s := *m.Syms.At(r.sym)
	s.AP, s.AP.Loc = src, 0
	return ir.Arg{Kind: ir.ArgSym, Dtype: src.Dtype, Ref: uint32(m.Syms.Add(s))}
}

// region is the part of the value that a load of at least b brings.
func (r *remat) region(b box) box {
	_, got, ok := r.slice(b)
	if !ok {
		return r.dst
	}
	return got
}

// slice is the pattern of the source that brings at least b, and what it brings. ok is false when only all of it can be
// brought. The source's axes are digits of the element number; those of the partitions and those within a partition are cut
// apart, then each group is narrowed at its outermost digit.
func (r *remat) slice(b box) (src ir.APRow, got box, ok bool) {
	var axes [6]ir.Pair
	n := r.src.NPairs()
	copy(axes[:], r.src.Pairs[:n])
	// The innermost axes that make up one partition: axes[cut:n].
	cut, inner := n, int64(1)
	for cut > 0 && inner < r.free {
		a := axes[cut-1]
		if rest := r.free / inner; int64(a.Num) > rest {
			if r.free%inner != 0 || int64(a.Num)%rest != 0 || n == len(r.src.Pairs) {
				return src, got, false
			}
			// One axis runs over partitions and within them.
			step := int64(a.Step) * rest
			if step != int64(int32(step)) {
				return src, got, false
			}
			copy(axes[cut+1:n+1], axes[cut:n])
			axes[cut-1] = ir.Pair{Step: int32(step), Num: a.Num / uint32(rest)}
			axes[cut] = ir.Pair{Step: a.Step, Num: uint32(rest)}
			n++
			inner = r.free
			break
		}
		inner *= int64(a.Num)
		cut--
	}
	if inner != r.free {
		return src, got, false
	}
	src = r.src
	p0, p1, off1 := narrow(axes[:cut], int64(b.p0-r.dst.p0), int64(b.p1-r.dst.p0))
	e0, e1, off2 := narrow(axes[cut:n], (b.lo-r.dst.lo)/r.esz, (b.hi-r.dst.lo+r.esz-1)/r.esz)
	src.Off += off1 + off2
	src.Pairs = [5]ir.Pair{}
	k := 0
	for i := range axes[:n] {
		if axes[i].Num > 1 {
			src.Pairs[k] = axes[i]
			k++
		}
	}
	if k == 0 {
		src.Pairs[0] = ir.Pair{Step: 1, Num: 1}
	}
	return src, box{r.dst.p0 + int32(p0), r.dst.p0 + int32(p1), r.dst.lo + e0*r.esz, r.dst.lo + e1*r.esz}, true
}

// narrow restricts axes, outermost first, to the element numbers [lo, hi) or a little more: where the range lies within one
// index of an axis the axis goes and the next is narrowed, else the axis is cut and the inner ones stay whole. It returns what
// is left of the numbers and how far the pattern moves.
func narrow(axes []ir.Pair, lo, hi int64) (first, end, off int64) {
	block := int64(1)
	for _, a := range axes {
		block *= int64(a.Num)
	}
	base := int64(0)
	for i := range axes {
		a := &axes[i]
		block /= int64(a.Num)
		i0, i1 := (lo-base)/block, (hi-base+block-1)/block
		off += i0 * int64(a.Step)
		a.Num = uint32(i1 - i0)
		if i1-i0 > 1 || i == len(axes)-1 {
			return base + i0*block, base + i1*block, off
		}
		base += i0 * block
	}
	return 0, 1, off
}
