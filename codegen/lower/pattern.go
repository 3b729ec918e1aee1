package lower

import (
	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// address is the ADDR4 word of an on-chip pattern's first element.
func (t *Tail) address(row *ir.APRow) (uint32, error) {
	l := t.m.Locs.At(row.Loc)
	if !l.Space.OnChip() {
		return 0, target.Errorf(target.Bug, "operand %s is in %s, not on chip", t.m.LocName(row.Loc), l.Space)
	}
	if l.Flags&ir.LocAllocated == 0 {
		return 0, target.Errorf(target.Bug, "operand %s has no address", t.m.LocName(row.Loc))
	}
	part := int(l.Base) + int(row.Start)
	off := l.Addr + row.Off*int64(row.Dtype.Size())
	pitch := int64(target.SBPartitionPitch)
	if l.Space == target.SpacePSUM {
		off += int64(l.Bank) * target.PSUMBankPitch
		pitch = target.PSUMPartitionPitch
	}
	if off < 0 || off >= pitch || part >= 128 {
		return 0, target.Errorf(target.Bug, "operand %s starts at partition %d, byte %d: outside the partition", t.m.LocName(row.Loc), part, off)
	}
	if l.Space == target.SpacePSUM {
		return isa.PSUMAddr(part, 0, uint32(off)), nil
	}
	return isa.SBAddr(part, uint32(off)), nil
}

// row is the pattern of an operand that must be one.
func (t *Tail) row(a ir.Arg) (*ir.APRow, error) {
	if a.Kind != ir.ArgAP {
		return nil, target.NotSupported("operand", "a tensor operand must have a physical address; operand kind %d has none", a.Kind)
	}
	return t.m.APs.At(a.AP()), nil
}

// desc makes a descriptor of an operand: free axes innermost first, unit axes left out. Axes that continue the one below
// are merged when merge is set: the order of the elements stays, and fewer axes always fit.
func (t *Tail) desc(d *isa.Desc, a ir.Arg, merge bool) (*ir.APRow, error) {
	row, err := t.row(a)
	if err != nil {
		return nil, err
	}
	if d.Addr, err = t.address(row); err != nil {
		return nil, err
	}
	n := row.NPairs()
	for k := n - 1; k > 0; k-- {
		p := row.Pairs[k]
		if p.Num == 1 {
			continue
		}
		if j := d.N; merge && j > 0 && int64(p.Step) == int64(d.Step[j-1])*int64(d.Num[j-1]) && uint64(d.Num[j-1])*uint64(p.Num) <= 0xFFFF {
			d.Num[j-1] *= p.Num
			continue
		}
		if d.N == 4 {
			return nil, target.Errorf(target.Bug, "operand %s has more than 4 free axes that cannot be merged", t.m.LocName(row.Loc))
		}
		d.Step[d.N], d.Num[d.N] = p.Step, p.Num
		d.N++
	}
	if d.N == 0 {
		d.N, d.Step[0], d.Num[0] = 1, 1, 1
	}
	return row, nil
}

// read and write fill a descriptor with its element type and give the partition count.
func (t *Tail) src(in *isa.Inst, a ir.Arg) (int, error) {
	row, err := t.desc(&in.Src, a, true)
	if err != nil {
		return 0, err
	}
	in.DtSrc = a.Dtype
	return int(row.Parts), nil
}

func (t *Tail) src1(in *isa.Inst, a ir.Arg) error {
	_, err := t.desc(&in.Src1, a, true)
	in.DtSrc1 = a.Dtype
	return err
}

func (t *Tail) dst(in *isa.Inst, a ir.Arg) (int, error) {
	row, err := t.desc(&in.Dst, a, true)
	if err != nil {
		return 0, err
	}
	in.DtDst = a.Dtype
	return int(row.Parts), nil
}

// column is the address of a [p,1] operand.
func (t *Tail) column(a ir.Arg) (uint32, error) {
	row, err := t.row(a)
	if err != nil {
		return 0, err
	}
	if a.Dtype != target.Float32 || row.FreeElems(target.SpaceSB) != 1 {
		return 0, target.NotSupported(a.Dtype.String(), "scalar operand %s must be one float32 a partition, not %d of %s",
			t.m.LocName(row.Loc), row.FreeElems(target.SpaceSB), a.Dtype)
	}
	return t.address(row)
}

// scalar is the source code and the word of a [p,1] vector, an immediate or a register.
func (t *Tail) scalar(a ir.Arg) (src uint8, word uint32, err error) {
	switch a.Kind {
	case ir.ArgAP:
		word, err = t.column(a)
		return isa.SrcPointer, word, err
	case ir.ArgImm:
		if a.Dtype.IsFloat() {
			return isa.SrcInline, a.Ref, nil
		}
		// The word is a float: an integer must survive the way there and back.
		f := a.Imm()
		exact := float64(f) == float64(int32(a.Ref))
		if a.Dtype.Class() == target.ClassUint {
			exact = float64(f) == float64(a.Ref)
		}
		if !exact {
			return 0, 0, target.NotSupported(a.Dtype.String(), "immediate %d is not a float32: use a tensor of it", a.Ref)
		}
		return isa.SrcInline, ir.ImmF32(f).Ref, nil
	case ir.ArgReg:
		p := t.m.Regs.At(ir.Reg(a.Ref)).Phys
		if p < 0 {
			return 0, 0, target.Errorf(target.Bug, "register %s has no number", ir.Reg(a.Ref))
		}
		return isa.SrcRegister, uint32(p), nil
	}
	return 0, 0, target.NotSupported("operand", "a scalar must be a vector, an immediate or a register; operand kind %d is none", a.Kind)
}

// refine cuts the axes of two walks over the same elements into common ones, innermost first: counts in num, steps in a and
// b. na and nb are the counts of the two walks, whose steps are in a and b on entry. ok is false when an axis of one crosses
// an axis of the other.
func refine(num []uint32, a, b []int32, da *isa.Desc, stepB []int32, numB []uint32) (n int, ok bool) {
	i, j := 0, 0
	ra, rb := uint32(1), uint32(1)
	var sa, sb int32
	for {
		if ra == 1 && i < int(da.N) {
			ra, sa = da.Num[i], da.Step[i]
			i++
			continue
		}
		if rb == 1 && j < len(numB) {
			rb, sb = numB[j], stepB[j]
			j++
			continue
		}
		c := min(ra, rb)
		if ra == 1 || rb == 1 {
			return n, ra == rb && i == int(da.N) && j == len(numB)
		}
		if ra%c != 0 || rb%c != 0 || n == len(num) {
			return n, false
		}
		num[n], a[n], b[n] = c, sa, sb
		n++
		ra, rb, sa, sb = ra/c, rb/c, sa*int32(c), sb*int32(c)
	}
}
