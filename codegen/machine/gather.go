package machine

import (
	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// gather is a gather of rows: partition p of to gets the row of table that index[p] names. Axis 0 of table walks a row, axis 1
// numbers the rows.
type gather struct {
	index, table, to access
	sem, inc         uint8
}

// elementTypes move the elements of a gather, by their bytes.
var elementTypes = [9]target.Dtype{1: target.Uint8, 2: target.Uint16, 4: target.Uint32, 8: target.Uint64}

// bindGather makes the accesses of a decoded IndirectDMA. The table is all that its indices may reach.
func (l *layout) bindGather(q *gather, in *isa.Inst, regs *[64]uint32) error {
	if in.Mode != 0 {
		return target.NotSupported("indirect save", "a scatter of rows is not simulated")
	}
	dt, parts := elementTypes[in.Count2], int(in.Count)
	if err := l.bindColumn(&q.index, in.Ptr, regs, in.DtSrc, parts, 1, "indices"); err != nil {
		return err
	}
	if err := l.bindColumn(&q.to, in.Imm0, regs, dt, parts, int(in.Imm1), "rows"); err != nil {
		return err
	}
	if q.index.space != spaceSB || q.to.space != spaceSB {
		return target.Errorf(target.User, "indices are in %s, rows go to %s; both must be in SBUF", l.name(q.index.space), l.name(q.to.space))
	}
	q.to.write = true
	q.sem, q.inc = in.Sem, in.SemInc
	vars := l.def.Vars
	row := l.def.VarByID(in.Var)
	if row == 0 || vars[row].Type == neff.VarStateBuffer {
		return target.Errorf(target.User, "the table is variable %d, which is no variable in DRAM", in.Var)
	}
	h := l.home[row]
	t := &q.table
	*t = access{space: row + spaceVars, dt: dt, n: 2, parts: 1, off: int(in.VarOff)}
	for d, n := range [2]uint32{in.Imm1, in.Imm2} {
		t.num[d], t.step[d] = int(n), int(in.Steps[d])*dt.Size()
		// No variable is larger, and the products of the bound check stay in range.
		if s := max(t.step[d], -t.step[d]); s > 0 && t.num[d]-1 > (1<<40)/s {
			return target.Errorf(target.User, "table steps %d bytes %d times; %s has %d", t.step[d], n, vars[row].Name, vars[row].Size)
		}
	}
	if err := l.check(t, "table"); err != nil {
		return err
	}
	t.space, t.off = h.space, t.off+int(h.base)
	return nil
}

// gather puts the decoded IndirectDMA in flight.
func (m *Machine) gather(e int, g *engine) error {
	k := len(m.gathers)
	if n := len(m.freeGathers); n > 0 {
		k = int(m.freeGathers[n-1])
		m.freeGathers = m.freeGathers[:n-1]
	} else {
		m.gathers = append(m.gathers, gather{})
	}
	if err := m.layout.bindGather(&m.gathers[k], &g.in, &g.regs); err != nil {
		return err
	}
	m.parts = append(m.parts, part{engine: uint8(e), pc: uint32(g.pc), gather: uint32(k) + 1})
	m.stats.Transfers++
	return nil
}

// moveRows carries out a gather. Its indices are read now, any time after its bundle; of the table only rows that they name
// must have been written.
func (m *Machine) moveRows(q *gather) error {
	idx, table, to := &m.views[iIndex], &m.views[iSrc], &m.views[iDst]
	is, ts, ds := m.view(&q.index, idx), m.view(&q.table, table), m.view(&q.to, to)
	table.Parts, table.PStep, table.N = table.Nums[1], table.Steps[1], 1
	if at, ok := is.written(idx, &m.stamp); !ok {
		return m.layout.unwritten("indices", q.index.space, is, at)
	}
	rows, err := kernel.RowsOf(&m.scratch, table, idx)
	if err != nil {
		return err
	}
	for _, k := range rows {
		row := *table
		row.Off += int(k) * row.PStep
		row.Parts, row.PStep = 1, 0
		if at, ok := ts.written(&row, &m.stamp); !ok {
			return m.layout.unwritten("table", q.table.space, ts, at)
		}
	}
	if err := kernel.GatherRows(&m.scratch, to, table, idx, false); err != nil {
		return err
	}
	ds.mark(to, &m.stamp)
	bytes := int64(to.Total() * to.Dtype.Size())
	m.steps += bytes >> stepShift
	m.stats.DMABytes += bytes
	if q.inc > 0 {
		m.setSem(q.sem, m.sems[q.sem]+int32(q.inc))
	}
	return nil
}

// gather enters the accesses of an IndirectDMA as one event of its semaphore's thread, at the bundle: indices and rows are
// read, and the destination is written, any time between then and completion.
func (r *race) gather(e int, g *engine) error {
	var q gather
	if err := r.layout.bindGather(&q, &g.in, &g.regs); err != nil {
		return err
	}
	if q.inc == 0 {
		return target.Errorf(target.User, "a gather whose completion no semaphore reports")
	}
	if err := r.inFlight(e, q.sem, int64(q.inc)); err != nil {
		return err
	}
	r.hist.record(&q.index)
	r.hist.record(&q.table)
	r.hist.record(&q.to)
	return nil
}
