package lower

import (
	"math"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// indirectLoad is a gather of rows in one word: indices and destination by their first byte, the table by its variable and
// the pattern of its rows, whose number is the bound of the indices.
func (t *Tail) indirectLoad(i ir.Inst) error {
	m := t.m
	table, index, out, ok := m.GatherOf(i)
	if !ok {
		return target.Errorf(target.Bug, "a gather takes a table and an index and gives one output")
	}
	in := t.next(isa.OpIndirectDMA)
	x, err := t.row(index)
	if err != nil {
		return err
	}
	y, err := t.row(out)
	if err != nil {
		return err
	}
	if in.Ptr, err = t.address(x); err != nil {
		return err
	}
	if in.Imm0, err = t.address(y); err != nil {
		return err
	}
	in.DtSrc, in.Count, in.Count1 = x.Dtype, uint32(x.Parts), 1

	from, err := t.row(table)
	if err != nil {
		return err
	}
	if err := t.side(&t.cut.a, from); err != nil {
		return err
	}
	rows, pitch, elems, step, ok := from.GatherTable()
	if off := t.cut.a.off; !ok || off < 0 || off > math.MaxUint32 {
		return target.Errorf(target.Bug, "table %s begins at byte %d of its variable, with %d axes", m.LocName(from.Loc), off, from.NPairs())
	}
	in.Var, in.VarOff = t.pkg.Def.Vars[t.cut.a.row].ID, uint32(t.cut.a.off)
	in.Steps[0], in.Steps[1] = int32(step), int32(pitch)
	in.Imm1, in.Imm2, in.Count2 = uint32(elems), uint32(rows), uint32(from.Dtype.Size())

	up := m.SyncOps.Of(m.Syncs.Get(i).Updates)
	if len(up) != 1 || up[0].Value < 1 || up[0].Value > math.MaxUint8 {
		return target.Errorf(target.Bug, "the gather has %d completion updates, want 1 of at most %d", len(up), math.MaxUint8)
	}
	in.Sem, in.SemInc = uint8(up[0].Sem), uint8(up[0].Value)
	return nil
}
