package verify

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// checkGather: rows of a DRAM table to SB by one index a partition, in what the wire form holds.
func checkGather(p *problems, i ir.Inst) {
	m := p.m
	if _, _, _, ok := m.GatherOf(i); !ok {
		p.inst(i, "takes a table and one index operand and gives one output")
		return
	}
	all, _, _ := p.sides(i)
	table, index, out := &all[0], &all[1], &all[2]
	if !table.tensor() || !index.tensor() || !out.tensor() {
		p.inst(i, "gathers between memory locations; it has an immediate operand")
		return
	}
	if table.loc.Space != target.SpaceDRAM || index.loc.Space != target.SpaceSB || out.loc.Space != target.SpaceSB {
		p.inst(i, "gathers rows of %s by indices in %s to %s; the table is in DRAM, index and output in SB", table.loc.Space, index.loc.Space, out.loc.Space)
		return
	}
	if !ir.IsIndex(index.dtype) || index.elems != 1 {
		p.inst(i, "has %d indices of %s a partition; it takes one of int32 or uint32", index.elems, index.dtype)
	}
	if index.parts != out.parts {
		p.inst(i, "has indices on %d partitions for rows on %d", index.parts, out.parts)
	}
	if table.dtype != out.dtype {
		p.inst(i, "gathers %s as %s; a gather does not cast", table.dtype, out.dtype)
	}
	if size := table.dtype.Size(); size != 1 && size != 2 && size != 4 && size != 8 {
		p.inst(i, "gathers elements of %d bytes (%s)", size, table.dtype)
	}
	_, _, elems, _, ok := table.ap.GatherTable()
	if !ok {
		p.inst(i, "%s: rows of %d axes; a gather walks one", m.LocName(table.ap.Loc), table.ap.NPairs()-1)
	} else if elems != out.elems {
		p.inst(i, "gathers rows of %d elements into %d", elems, out.elems)
	}
	next := int64(1)
	free := out.ap.Free(out.loc.Space)
	for k := len(free) - 1; k >= 0; k-- {
		q := free[k]
		if q.Num != 1 && int64(q.Step) != next {
			p.inst(i, "%s: rows are laid down without gaps; an axis steps %d elements, not %d", m.LocName(out.ap.Loc), q.Step, next)
			break
		}
		next *= int64(q.Num)
	}
	fi, fo := m.Footprint(index.ap), m.Footprint(out.ap)
	if fi.Overlaps(&fo) {
		p.inst(i, "writes rows over its own indices at %s", m.LocName(out.ap.Loc))
	}
}
