package verify

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// checkPattern proves that an access pattern lies inside its location.
func checkPattern(p *problems, i ir.Inst, a ir.Arg) {
	m := p.m
	if a.Kind != ir.ArgAP {
		return
	}
	if a.AP() == 0 || int(a.AP()) >= m.APs.Len() {
		p.inst(i, "operand refers to access pattern %d", a.Ref)
		return
	}
	ap := m.APs.At(a.AP())
	if ap.Loc == 0 || int(ap.Loc) >= m.Locs.Len() {
		p.inst(i, "operand refers to location %d", ap.Loc)
		return
	}
	l := m.Locs.At(ap.Loc)
	esz := int64(ap.Dtype.Size())
	if esz == 0 || ap.Dtype != a.Dtype {
		p.inst(i, "%s: operand type %s, pattern type %s", m.LocName(ap.Loc), a.Dtype, ap.Dtype)
		return
	}
	n := ap.NPairs()
	for _, q := range ap.Pairs[n:] {
		if q.Num != 0 {
			p.inst(i, "%s: an axis behind an absent one", m.LocName(ap.Loc))
			return
		}
	}
	lo, hi := ap.Off, ap.Off
	for _, q := range ap.Free(l.Space) {
		span := int64(q.Step) * int64(q.Num-1)
		lo, hi = lo+min(span, 0), hi+max(span, 0)
	}
	if l.Space.OnChip() {
		if n == 0 || int(ap.Pairs[0].Num) != int(ap.Parts) || ap.Parts == 0 {
			p.inst(i, "%s: %d partitions, but the partition axis has %d", m.LocName(ap.Loc), ap.Parts, ap.Pairs[0].Num)
			return
		}
		if int(ap.Start)+int(ap.Parts) > int(l.Parts) {
			p.inst(i, "%s: partitions %d to %d of %d", m.LocName(ap.Loc), ap.Start, int(ap.Start)+int(ap.Parts)-1, l.Parts)
		}
		start := int(ap.Start) + int(l.Base)
		if !target.LegalStart(start, int(ap.Parts)) && !m.Insts.At(i).Op.IsDMA() {
			p.inst(i, "%s: %d partitions may not start at partition %d (start %d of a location at %d)", m.LocName(ap.Loc), ap.Parts, start, ap.Start, l.Base)
		}
		if pitch := m.Pitch(ap.Loc, ap.Dtype); int64(ap.Pairs[0].Step) != pitch && ap.Parts > 1 {
			p.inst(i, "%s: partition step %d, row pitch %d; stepped partitions are illegal", m.LocName(ap.Loc), ap.Pairs[0].Step, pitch)
		}
		if a := int64(ap.Dtype.Align()); l.Flags&ir.LocAllocated != 0 && a > 1 && l.Addr%a != 0 && !m.Insts.At(i).Op.IsDMA() {
			p.inst(i, "%s: placed at byte %d; %s needs a multiple of %d", m.LocName(ap.Loc), l.Addr, ap.Dtype, a)
		}
		if lo < 0 || (hi+1)*esz > l.Bytes {
			p.inst(i, "%s: elements %d to %d of a row of %d bytes (%s)", m.LocName(ap.Loc), lo, hi, l.Bytes, ap.Dtype)
		}
		return
	}
	if size := l.Bytes * int64(l.Parts); lo < 0 || (hi+1)*esz > size {
		p.inst(i, "%s: elements %d to %d of %d bytes (%s)", m.LocName(ap.Loc), lo, hi, size, ap.Dtype)
	}
}

// freeAxes is how many free axes of more than one element a wire slot of the operand holds.
func freeAxes(m *ir.Module, i ir.Inst) int {
	switch m.Insts.At(i).Op {
	case ir.OpTensorReduce, ir.OpPool, ir.OpTensorCopy, ir.OpReciprocal, ir.OpIota, ir.OpStreamTranspose, ir.OpStreamShuffle,
		ir.OpIndirectCopy, ir.OpGather, ir.OpBNStatsAggregate, ir.OpMax, ir.OpMaxIndex, ir.OpMatchReplace, ir.OpDropout:
		return 4
	case ir.OpTensorScalarPtr:
		if m.AttrBool(i, ir.KeyIsScalarTensorTensor) || m.AttrBool(i, ir.KeyIsTensorTensorScan) {
			return 2
		}
	case ir.OpActivation:
		if m.Gen.Level >= 40 && (m.Attr(i, ir.KeyOp0) != 0 || m.Attr(i, ir.KeyOp1) != 0) {
			return 2
		}
	case ir.OpMemset:
		return 1
	}
	return 3
}

// checkSlots proves that each tensor operand of an engine instruction fits a descriptor.
func checkSlots(p *problems, i ir.Inst) {
	m := p.m
	for _, a := range m.AllArgs(i) {
		if a.Kind != ir.ArgAP {
			continue
		}
		ap := m.APs.At(a.AP())
		l := m.Locs.At(ap.Loc)
		if !l.Space.OnChip() {
			p.inst(i, "%s is in %s; engines reach SBUF and PSUM only", m.LocName(ap.Loc), l.Space)
			continue
		}
		axes, run := 0, int64(-1)
		free := ap.Free(l.Space)
		for k := len(free) - 1; k >= 0; k-- { // fastest first
			q := free[k]
			if q.Num == 1 {
				continue
			}
			if q.Num > math.MaxUint16 || q.Step > math.MaxInt16 || q.Step < math.MinInt16 {
				p.inst(i, "%s: axis of %d elements, step %d; counts fit uint16 and steps int16", m.LocName(ap.Loc), q.Num, q.Step)
			}
			// An axis that continues the one inside it is one with it on the wire.
			if run >= 0 && int64(q.Step) == run && run*int64(q.Num) <= math.MaxUint16 {
				run *= int64(q.Num)
				continue
			}
			axes++
			run = int64(q.Step) * int64(q.Num)
		}
		if limit := freeAxes(m, i); axes > limit {
			p.inst(i, "%s: %d free axes; the slot holds %d", m.LocName(ap.Loc), axes, limit)
		}
	}
}
