package ir

import "github.com/rosmar-compiler/rosmar/ir/target"

// GatherOf takes an IndirectLoad apart. Its index is the second input, or the only index operand of the JSON form; operands
// lie in one list, so both are the same to passes that walk all operands. ok is false when there is not one of each.
func (m *Module) GatherOf(i Inst) (table, index, out Arg, ok bool) {
	r := m.Insts.At(i)
	if r.NIn < 1 || r.NIn+r.NInd != 2 || r.NOut != 1 {
		return
	}
	all := m.AllArgs(i)
	return all[0], all[1], all[2], true
}

// GatherTable is the table of an IndirectLoad by its pattern: rows pitch elements apart, each of elems elements step apart. ok is
// false when the row has several axes, which no generation encodes.
func (a *APRow) GatherTable() (rows, pitch, elems, step int64, ok bool) {
	p := a.Pairs
	switch a.NPairs() {
	case 1:
		return int64(p[0].Num), int64(p[0].Step), 1, 1, true
	case 2:
		return int64(p[0].Num), int64(p[0].Step), int64(p[1].Num), int64(p[1].Step), true
	}
	return 0, 0, 0, 0, false
}

// IsIndex reports the element types of indices.
func IsIndex(d target.Dtype) bool { return d == target.Int32 || d == target.Uint32 }
