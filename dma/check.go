package dma

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Check reports what stops a DMA from being a static transfer: one source and one destination with physical addresses, equal
// element counts, types that the rings can cast, and no mode that descriptors of a plain copy do not have.
func Check(m *ir.Module, i ir.Inst) error {
	r := m.Insts.At(i)
	switch r.Op {
	case ir.OpLoad, ir.OpSave, ir.OpDMACopy:
	default:
		return target.NotSupported(r.Op.String(), "%s (%s): only Load, Save and DMACopy have descriptors; lower it first", m.InstName(i), r.Op)
	}
	if d := ir.DGEType(m.Attr(i, ir.KeyDGEType)); d != ir.DGENone && d != ir.DGEUnassigned {
		return target.NotSupported("dge_type", "%s: dge_type %s needs descriptors made at run time; only None is supported", m.InstName(i), d)
	}
	if r.Op == ir.OpDMACopy {
		if c := ir.CopyMode(m.Attr(i, ir.KeyCopyMode)); c != ir.CopyPlain {
			return target.NotSupported("DMACopy", "%s: DMACopy in mode %s is not supported; only plain copies are", m.InstName(i), c)
		}
	}
	ins, outs := m.Ins(i), m.Outs(i)
	if len(ins) != 1 || len(outs) != 1 || r.NInd != 0 {
		return target.NotSupported(r.Op.String(), "%s: a transfer with %d sources, %d indices and %d destinations; one of each side is supported",
			m.InstName(i), len(ins), r.NInd, len(outs))
	}
	src, dst := ins[0], outs[0]
	if src.Kind != ir.ArgAP || dst.Kind != ir.ArgAP {
		return target.NotSupported(r.Op.String(), "%s: the address of a transfer must be static", m.InstName(i))
	}
	a, b := m.APs.At(src.AP()), m.APs.At(dst.AP())
	if n, k := a.Elems(), b.Elems(); n != k || n == 0 {
		return target.Errorf(target.User, "%s: moves %d elements of %s into %d of %s", m.InstName(i), n, m.LocName(a.Loc), k, m.LocName(b.Loc))
	}
	if a.Dtype != b.Dtype && (castless(a.Dtype) || castless(b.Dtype)) {
		return target.NotSupported(a.Dtype.String(), "%s: the rings cannot cast %s to %s", m.InstName(i), a.Dtype, b.Dtype)
	}
	return nil
}

// castless are the types that no engine computes with.
func castless(d target.Dtype) bool {
	return d.Size() == 8 || d.Class() == target.ClassPacked || d.Size() == 0
}
