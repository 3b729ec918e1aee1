package deps

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// accumulation keeps accumulation groups apart: the first matmul of a group comes after the last one of the group that
// used any of its banks, in any of its partition quadrants, before. Any other write to PSUM counts as a group of its own, so
// that none falls between START and STOP of a neighbour. Within a group the accumulating reads already keep the order.
// Before allocation a group has no bank and no such edge.
//
// A group is the matmuls into one destination pattern from a START, or from the first of them, to a STOP. Where a program
// interleaves two groups in one bank its order cannot be repaired by edges: the earlier group's tail so far is taken, and
// the checker after scheduling refuses what is left open.
func (w *Workspace) accumulation(m *ir.Module, i ir.Inst, dst ir.Arg, matmul bool) {
	ap := dst.AP()
	if ap == 0 {
		return
	}
	row := m.APs.At(ap)
	loc := m.Locs.At(row.Loc)
	if loc.Space != target.SpacePSUM || loc.Flags&ir.LocAllocated == 0 {
		return
	}
	fp := m.Footprint(row)
	b0, b1 := int(fp.Lo/target.PSUMBankPitch), int((fp.Hi-1)/target.PSUMBankPitch)+1
	if fp.Lo < 0 || b1 > len(w.banks) {
		return
	}
	q0, q1 := int(fp.P0)/32, (int(fp.P1)+31)/32
	flags := m.AttrInt(i, ir.KeyAccumulationFlag)
	// The group that is open on this pattern is the one that used its first bank last.
	g := w.banks[b0][q0]
	if g == 0 || !matmul || flags&ir.GroupStart != 0 || !w.continues(m, g, row) {
		for b := b0; b < b1; b++ {
			for q := q0; q < q1; q++ {
				if t := w.banks[b][q]; t != 0 {
					w.edge(w.tails[t-1], ir.DepOrdered)
				}
			}
		}
		w.tails = append(w.tails, i)
		g = uint32(len(w.tails))
	}
	w.tails[g-1] = i
	for b := b0; b < b1; b++ {
		for q := q0; q < q1; q++ {
			w.banks[b][q] = g
		}
	}
}

// continues reports whether the last matmul of a group wrote the same pattern.
func (w *Workspace) continues(m *ir.Module, g uint32, row *ir.APRow) bool {
	outs := m.Outs(w.tails[g-1])
	if !m.Insts.At(w.tails[g-1]).Op.Is(ir.FlagMatmul) || len(outs) == 0 || outs[0].Kind != ir.ArgAP {
		return false
	}
	return *m.APs.At(outs[0].AP()) == *row
}
