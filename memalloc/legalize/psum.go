package legalize

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// PSUM widens every PSUM tensor of elements below four bytes to fp32, because the cells of the memory are fp32. Exempt is a
// tensor that is written only by exact transposes where the generation has them, or in bfloat16 where the array may write
// that. Extents in bytes grow, extents in elements stay, so offsets and steps of the patterns stay too. widened is the number
// of tensors changed.
//
// Errors: Unsupported for an integer or packed tensor (fp32 would not round as it does), for one that is read under another
// type, and for one that transposes and other instructions write together; Limit when a widened matmul destination leaves its
// bank on a generation where it must not.
//
// lin is storage for the use lists of f.
func PSUM(m *ir.Module, f ir.Func, lin *ssa.Linear) (widened int, err error) {
	built := false
	for _, s := range m.SetsOf(f) {
		r := m.Sets.At(s)
		if r.Count == 0 || m.Locs.At(r.First).Space != target.SpacePSUM || r.Dtype.Size() >= 4 {
			continue
		}
		if !built {
			lin.Build(m, f)
			built = true
		}
		wide, err := mustWiden(m, s, lin)
		if err != nil {
			return widened, err
		}
		if !wide {
			continue
		}
		if err := widen(m, s, lin); err != nil {
			return widened, err
		}
		widened++
	}
	return widened, nil
}

// mustWiden reports whether something writes the set that may not write its type, and refuses what cannot be widened.
func mustWiden(m *ir.Module, s ir.Set, lin *ssa.Linear) (bool, error) {
	r := m.Sets.At(s)
	exact, plain := ir.Loc(0), ir.Loc(0) // a location with a writer of that sort
	var other ir.Inst
	for k := range r.Count {
		loc := r.First + ir.Loc(k)
		for _, a := range lin.Of(loc) {
			if a.Flags&ssa.Write != 0 {
				i := m.Insts.At(a.Inst)
				switch {
				case i.Op.Is(ir.FlagMatmul) && m.Gen.ExactTranspose && m.AttrBool(a.Inst, ir.KeyIsTranspose):
					exact = loc
				case m.Gen.PSUMBF16 && r.Dtype == target.BFloat16:
				default:
					plain = loc
				}
			}
			if operand(m, a.Arg).Dtype != r.Dtype {
				other = a.Inst
			}
		}
	}
	switch {
	case plain == 0:
		return false, nil
	case exact != 0:
		return false, target.NotSupported(r.Dtype.String(), "%s of %s in PSUM is written by exact transposes and by others: the first need the type, the others fp32; use two tensors",
			m.LocName(plain), r.Dtype)
	case !r.Dtype.IsFloat():
		return false, target.NotSupported(r.Dtype.String(), "%s of %s in PSUM: the cells hold fp32, which rounds differently; convert while copying it out",
			m.LocName(plain), r.Dtype)
	case other != 0:
		return false, target.NotSupported(r.Dtype.String(), "%s of %s in PSUM is accessed under another type at %s and cannot be widened",
			m.LocName(plain), r.Dtype, m.InstName(other))
	}
	return true, nil
}

// widen gives the set, its locations and all operands on them the type fp32.
func widen(m *ir.Module, s ir.Set, lin *ssa.Linear) error {
	r := m.Sets.At(s)
	old := int64(r.Dtype.Size())
	r.Dtype = target.Float32
	for k := range r.Count {
		loc := r.First + ir.Loc(k)
		l := m.Locs.At(loc)
		l.Bytes = l.Bytes / old * 4
		for _, a := range lin.Of(loc) {
			o := operand(m, a.Arg)
			o.Dtype = target.Float32
			var ap *ir.APRow
			switch o.Kind {
			case ir.ArgAP:
				ap = m.APs.At(ir.AP(o.Ref))
			default:
				ap = &m.Syms.At(ir.Sym(o.Ref)).AP
			}
			ap.Dtype = target.Float32
			if a.Flags&ssa.Write == 0 || m.Gen.Level >= 40 || !m.Insts.At(a.Inst).Op.Is(ir.FlagMatmul) || a.Flags&ssa.Symbolic != 0 {
				continue
			}
			fp := m.Footprint(ap)
			if bank := int64(m.Gen.BankBytes); fp.Lo/bank != (fp.Hi-1)/bank {
				return target.Errorf(target.Limit, "%s at %s: as fp32 the result takes bytes [%d, %d) of a partition and leaves its PSUM bank of %d; tile the columns by %d",
					m.LocName(loc), m.InstName(a.Inst), fp.Lo, fp.Hi, bank, bank/4)
			}
		}
	}
	return nil
}

// operand is a row of Module.Args.
func operand(m *ir.Module, arg uint32) *ir.Arg { return &m.Args.Of(arena.Span{Off: arg, Len: 1})[0] }
