package verify

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Module checks every instruction of every function. class is whose fault a finding is: User for a module that was just
// read, Bug after a pass.
func Module(m *ir.Module, class target.Class) error {
	p := &problems{m: m}
	if m.Gen == nil {
		p.addf("module has no target")
		return p.err(class)
	}
	for b, r := range m.Blocks.All() {
		for _, i := range m.Order.Of(r.Order) {
			if i == 0 || int(i) >= m.Insts.Len() {
				p.addf("%s lists %s, which does not exist", b, i)
				continue
			}
			checkInst(p, i)
		}
	}
	return p.err(class)
}

func checkInst(p *problems, i ir.Inst) {
	m := p.m
	r := m.Insts.At(i)
	info := r.Op.Info()
	switch {
	case r.Op >= ir.NumOpcodes:
		p.inst(i, "unknown opcode %d", r.Op)
		return
	case info.Flags&ir.FlagAbstract != 0:
		p.inst(i, "is an abstract base; no program may contain it")
		return
	case int(info.Level) > m.Gen.Level:
		p.inst(i, "needs generation level %d; %s is %d", info.Level, m.Gen.Name, m.Gen.Level)
	case !r.Op.RunsOn(r.Engine):
		p.inst(i, "cannot run on %s", r.Engine)
	}
	ins, outs := m.Ins(i), m.Outs(i)
	if n := len(ins); n < int(info.MinIn) || (info.MaxIn >= 0 && n > int(info.MaxIn)) {
		p.inst(i, "has %d inputs; takes %d to %d", n, info.MinIn, info.MaxIn)
		return
	}
	if n := len(outs); n < int(info.MinOut) || (info.MaxOut >= 0 && n > int(info.MaxOut)) {
		p.inst(i, "has %d outputs; gives %d to %d", n, info.MinOut, info.MaxOut)
		return
	}
	before := p.count
	for _, a := range m.AllArgs(i) {
		checkPattern(p, i, a)
	}
	for _, d := range m.DepsOf(i) {
		if d.Inst == 0 || int(d.Inst) >= m.Insts.Len() || d.Inst == i {
			p.inst(i, "depends on %s", d.Inst)
		}
	}
	checkOperators(p, i)
	// The rules below speak of physical patterns that are sound in themselves.
	if p.count > before || !physical(m.AllArgs(i)) || info.Flags&(ir.FlagControl|ir.FlagRegion|ir.FlagContainer) != 0 {
		return
	}
	if r.Op.IsDMA() {
		checkMove(p, i)
		return
	}
	checkSlots(p, i)
	all, in, out := p.sides(i)
	checkSpaces(p, i, all, in, out)
	checkTypes(p, i, all, in, out)
	checkShapes(p, i, in, out)
}

// physical reports operands that are all access patterns or plain immediates.
func physical(as []ir.Arg) bool {
	for _, a := range as {
		if a.Kind != ir.ArgAP && a.Kind != ir.ArgImm {
			return false
		}
	}
	return true
}

// operators of an instruction must have a byte on the generation.
var operatorKeys = [...]ir.Key{ir.KeyOp, ir.KeyOp0, ir.KeyOp1, ir.KeyReduceOp, ir.KeyCompareOp, ir.KeyCompareOp0, ir.KeyCompareOp1}

func checkOperators(p *problems, i ir.Inst) {
	m := p.m
	for _, a := range m.AttrsOf(i) {
		in := a.Key.Info()
		if in.Form == ir.FormEnum && a.Val >= uint64(len(in.Enum)) {
			p.inst(i, "%s has no value %d", a.Key, a.Val)
			continue
		}
		for _, k := range operatorKeys {
			if o := target.AluOp(a.Val); a.Key == k && !o.LegalOn(m.Gen.Level) {
				p.inst(i, "%s=%s cannot be encoded for %s", k, o, m.Gen.Name)
			}
		}
		if a.Key == ir.KeyAccumulationFlag {
			switch a.Val {
			case 0, 1, 2, 3, 4, 6:
			default:
				p.inst(i, "accumulation_flag %d; legal are 0, 1, 2, 3, 4, 6", a.Val)
			}
		}
	}
}
