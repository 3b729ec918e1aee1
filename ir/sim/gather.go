package sim

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// gather executes an IndirectLoad. Of the table only the rows that an index names must have been written.
func (s *Sim) gather(m *ir.Module, i ir.Inst) error {
	table, index, out, ok := m.GatherOf(i)
	if !ok {
		return target.Errorf(target.User, "takes a table and an index and gives one output")
	}
	idx, ist, err := s.view(m, index)
	if err != nil {
		return err
	}
	to, ost, err := s.view(m, out)
	if err != nil {
		return err
	}
	from, tst, err := s.table(m, table)
	if err != nil {
		return err
	}
	if err := idx.Check("IndirectLoad", "index"); err != nil {
		return err
	}
	if err := s.read(m, index, &idx, ist); err != nil {
		return err
	}
	rows, err := kernel.RowsOf(&s.scratch, &from, &idx)
	if err != nil {
		return err
	}
	if !m.AttrBool(i, ir.KeyCanReadUninit) {
		for _, k := range rows {
			row := from
			row.Off += int(k) * from.PStep
			row.Parts, row.PStep = 1, 0
			if err := s.read(m, table, &row, tst); err != nil {
				return err
			}
		}
	}
	if err := kernel.GatherRows(&s.scratch, &to, &from, &idx, false); err != nil {
		return err
	}
	s.mark(&to, ost)
	return nil
}

// table is the window on the table of an IndirectLoad: its rows stand for partitions.
func (s *Sim) table(m *ir.Module, a ir.Arg) (kernel.View, *store, error) {
	v, st, err := s.view(m, a)
	if err != nil {
		return v, nil, err
	}
	ap, err := s.pattern(m, a)
	if err != nil {
		return v, nil, err
	}
	rows, pitch, elems, step, ok := ap.GatherTable()
	if !ok || m.Locs.At(ap.Loc).Space.OnChip() {
		return v, nil, target.Errorf(target.User, "table %s must be rows of one axis in DRAM", m.LocName(ap.Loc))
	}
	esz := ap.Dtype.Size()
	v.Parts, v.PStep, v.N = int(rows), int(pitch)*esz, 1
	v.Nums[0], v.Steps[0] = int(elems), int(step)*esz
	return v, st, v.Check("IndirectLoad", "table")
}
