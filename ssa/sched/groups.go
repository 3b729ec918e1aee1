package sched

import (
	"math/bits"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Bits of an accumulation flag.
const (
	flagStart      = 1
	flagStop       = 2
	flagAccumulate = 4
)

// group is a run of matmuls into one destination pattern.
type group struct {
	head, tail ir.Inst
	flags      int64 // all flags that the producer gave, together
	closed     bool
}

type groupSpace struct {
	rows    []group
	of      arena.Column[ir.Inst, uint32] // 1 + group of a matmul
	banks   [16][4]uint32                 // 1 + group that used a bank last, by partition quadrant
	members []ir.Inst
}

// LegalizeGroups gives the matmuls of each accumulation group their final flags (1, 4…4, 6, or 3 for a group of one) and the
// zero-region code, log2 of the banks that the destination spans, and checks that no two open groups share a bank in any
// partition quadrant. It needs physical PSUM addresses, edges and the final order.
//
// A group is a maximal run of matmuls into one pattern that nothing else reads or writes in between. Flags that the
// producer gave stand: a START opens a group, and with FuncExplicitFlags nothing is changed at all. A group without START
// (it adds to what stands there) is never open.
func LegalizeGroups(m *ir.Module, f ir.Func, w *Workspace) error {
	g := &w.groups
	g.rows, g.members = g.rows[:0], g.members[:0]
	g.of.Reset()
	g.of.Resize(m.Insts.Len())
	g.banks = [16][4]uint32{}
	explicit := m.Funcs.At(f).Flags&ir.FuncExplicitFlags != 0
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			if !m.Insts.At(i).Op.Is(ir.FlagMatmul) {
				// Whoever reads or overwrites the sum ends the group.
				for _, d := range m.DepsOf(i) {
					if k := g.of.Get(d.Inst); k != 0 && d.Kind >= ir.DepOutput {
						g.rows[k-1].closed = true
					}
				}
				continue
			}
			if err := g.matmul(m, i, explicit); err != nil {
				return err
			}
		}
	}
	for _, i := range g.members {
		r := &g.rows[g.of.Get(i)-1]
		if r.flags != 0 || explicit {
			continue
		}
		flag := int64(0)
		if i == r.head {
			flag |= flagStart
		} else {
			flag |= flagAccumulate
		}
		if i == r.tail {
			flag |= flagStop
		}
		m.SetAttr(i, ir.Int(ir.KeyAccumulationFlag, flag))
	}
	if err := g.check(m, explicit); err != nil {
		return err
	}
	m.Funcs.At(f).Flags |= ir.FuncGroupsLegal
	return nil
}

// span is the banks and partition quadrants of a matmul's destination.
func span(m *ir.Module, i ir.Inst) (row *ir.APRow, b0, b1, q0, q1 int, err error) {
	outs := m.Outs(i)
	if len(outs) == 0 || outs[0].Kind != ir.ArgAP {
		return nil, 0, 0, 0, 0, target.Errorf(target.Bug, "%s has no physical destination", m.InstName(i))
	}
	row = m.APs.At(outs[0].AP())
	l := m.Locs.At(row.Loc)
	if l.Space != target.SpacePSUM || l.Flags&ir.LocAllocated == 0 {
		return nil, 0, 0, 0, 0, target.Errorf(target.Bug, "%s writes %s, which has no place in PSUM", m.InstName(i), m.LocName(row.Loc))
	}
	fp := m.Footprint(row)
	b0, b1 = int(fp.Lo/target.PSUMBankPitch), int((fp.Hi-1)/target.PSUMBankPitch)+1
	if fp.Lo < 0 || b1 > m.Gen.PSUMBanks || fp.P1 > int32(m.Gen.PSUMParts) {
		return nil, 0, 0, 0, 0, target.Errorf(target.Limit, "%s writes %s up to bank %d, partition %d: the core has %d banks of %d partitions",
			m.InstName(i), m.LocName(row.Loc), b1-1, fp.P1-1, m.Gen.PSUMBanks, m.Gen.PSUMParts)
	}
	return row, b0, b1, int(fp.P0) / 32, (int(fp.P1) + 31) / 32, nil
}

func (g *groupSpace) matmul(m *ir.Module, i ir.Inst, explicit bool) error {
	row, b0, b1, q0, q1, err := span(m, i)
	if err != nil {
		return err
	}
	flags := m.AttrInt(i, ir.KeyAccumulationFlag)
	id := g.banks[b0][q0]
	if id == 0 || flags&flagStart != 0 || g.rows[id-1].closed || *m.APs.At(m.Outs(g.rows[id-1].tail)[0].AP()) != *row {
		g.rows = append(g.rows, group{head: i})
		id = uint32(len(g.rows))
	}
	r := &g.rows[id-1]
	r.tail = i
	r.flags |= flags
	r.closed = flags&flagStop != 0
	for b := b0; b < b1; b++ {
		for q := q0; q < q1; q++ {
			g.banks[b][q] = id
		}
	}
	g.of.Set(i, id)
	g.members = append(g.members, i)
	if n := uint(b1 - b0); n > 1 && !explicit {
		m.SetAttr(i, ir.Int(ir.KeyPsumZeroRegion, int64(bits.Len(n-1))))
	}
	return nil
}

// check walks the matmuls in order with their final flags.
func (g *groupSpace) check(m *ir.Module, explicit bool) error {
	g.banks = [16][4]uint32{}
	for _, i := range g.members {
		_, b0, b1, q0, q1, err := span(m, i)
		if err != nil {
			return err
		}
		id := g.of.Get(i)
		flag := m.AttrInt(i, ir.KeyAccumulationFlag)
		switch flag {
		case 1, 2, 3, 4, 6:
		case 0: // overwrites, like a group of one that nobody closes
			if !explicit {
				return target.Errorf(target.User, "%s has no accumulation flag in a group whose other matmuls have: give all or none",
					m.InstName(i))
			}
		default:
			return target.Errorf(target.User, "%s has accumulation_flag %d; legal are 1, 2, 3, 4 and 6", m.InstName(i), flag)
		}
		for b := b0; b < b1; b++ {
			for q := q0; q < q1; q++ {
				if o := g.banks[b][q]; o != 0 && o != id {
					return target.Errorf(target.User, "%s writes PSUM bank %d, partitions %d to %d, while the group that %s opened there has no STOP yet",
						m.InstName(i), b, 32*q, 32*q+31, m.InstName(g.rows[o-1].head))
				}
				switch {
				case flag&flagStop != 0:
					g.banks[b][q] = 0
				case flag&flagStart != 0:
					g.banks[b][q] = id
				}
			}
		}
	}
	return nil
}
