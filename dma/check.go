package dma

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Check reports what stops a DMA from being a transfer that the rings run. A static one has one source and one destination with
// physical addresses, equal element counts, types that the rings can cast, and no mode that descriptors of a plain copy do not
// have. A gather of rows has the shape that its word holds.
func Check(m *ir.Module, i ir.Inst) error {
	r := m.Insts.At(i)
	switch r.Op {
	case ir.OpLoad, ir.OpSave, ir.OpDMACopy:
	case ir.OpIndirectLoad:
		return checkGather(m, i)
	default:
		return target.NotSupported(r.Op.String(), "%s (%s): only Load, Save, DMACopy and IndirectLoad are transfers that the rings run; lower it first",
			m.InstName(i), r.Op)
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

// checkGather: the descriptors of a gather are made by Pool's software at run time, from a word that holds a table of one
// axis a row that begins in the first 4 GiB of its variable.
func checkGather(m *ir.Module, i ir.Inst) error {
	if d := ir.DGEType(m.Attr(i, ir.KeyDGEType)); d == ir.DGEHardware {
		return target.NotSupported("dge_type", "%s: dge_type %s; the rows of a gather are found by software", m.InstName(i), d)
	}
	table, index, out, ok := m.GatherOf(i)
	if !ok || table.Kind != ir.ArgAP || index.Kind != ir.ArgAP || out.Kind != ir.ArgAP {
		return target.NotSupported("IndirectLoad", "%s: a gather takes a table and an index and gives one output, all at static addresses", m.InstName(i))
	}
	t, x, y := m.APs.At(table.AP()), m.APs.At(index.AP()), m.APs.At(out.AP())
	l := m.Locs.At(t.Loc)
	rows, _, elems, _, ok := t.GatherTable()
	if !ok || l.Space.OnChip() || !ir.IsIndex(x.Dtype) || t.Dtype != y.Dtype || x.Parts != y.Parts ||
		x.FreeElems(target.SpaceSB) != 1 || y.FreeElems(target.SpaceSB) != elems {
		return target.Errorf(target.User, "%s: rows of %s by indices in %s to %s have no encoding", m.InstName(i), m.LocName(t.Loc), m.LocName(x.Loc), m.LocName(y.Loc))
	}
	at := t.Off * int64(t.Dtype.Size())
	if l.Flags&ir.LocAllocated != 0 {
		at += l.Addr
	}
	if at >= 1<<32 || rows >= 1<<31 {
		return target.Errorf(target.Limit, "%s: table %s has %d rows from byte %d on; a gather reaches 2^31 rows that begin in the first 4 GiB of DRAM",
			m.InstName(i), m.LocName(t.Loc), rows, at)
	}
	return nil
}
