package sim

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// registers is the scalar state. A register without a physical number is a cell of its own, as a location without an address is
// a buffer of its own; one with a number is that lane of its engine's file, and the next lane too for 64 bits.
type registers struct {
	own  []lane // two a register
	file [target.NumEngines][target.RegisterLanes]lane
}

type lane struct {
	bits    uint32
	written bool
}

func (g *registers) reset(m *ir.Module) {
	for len(g.own) < 2*m.Regs.Len() {
		g.own = append(g.own, lane{})
	}
	clear(g.own)
	clear(g.file[:])
}

// lanes are the lanes of a register, one or two.
func (g *registers) lanes(m *ir.Module, r ir.Reg) ([]lane, error) {
	row := m.Regs.At(r)
	w := max(1, int(row.Width))
	if w > 2 {
		return nil, target.Errorf(target.User, "register %s takes %d lanes; one or two are possible", m.RegName(r), w)
	}
	if row.Phys < 0 {
		return g.own[2*int(r) : 2*int(r)+w], nil
	}
	if int(row.Phys)+w > target.RegisterLanes || row.Engine >= target.NumEngines {
		return nil, target.Errorf(target.Bug, "register %s is at lanes %d to %d of %s, which has %d", m.RegName(r), row.Phys, int(row.Phys)+w-1, row.Engine, target.RegisterLanes)
	}
	return g.file[row.Engine][row.Phys : int(row.Phys)+w], nil
}

// get reads a register.
func (g *registers) get(m *ir.Module, r ir.Reg) (uint64, error) {
	ls, err := g.lanes(m, r)
	if err != nil {
		return 0, err
	}
	v := uint64(0)
	for k := range ls {
		if !ls[k].written {
			return 0, target.Errorf(target.User, "reads register %s, which nothing wrote", m.RegName(r))
		}
		v |= uint64(ls[k].bits) << (32 * k)
	}
	return v, nil
}

// set writes a register, the upper half only of one that has it.
func (g *registers) set(m *ir.Module, r ir.Reg, v uint64) error {
	ls, err := g.lanes(m, r)
	if err != nil {
		return err
	}
	for k := range ls {
		ls[k] = lane{uint32(v >> (32 * k)), true}
	}
	return nil
}

// value is a scalar operand, a register or an immediate, in 64 bits: a signed type is extended by its sign.
func (g *registers) value(m *ir.Module, a ir.Arg) (uint64, error) {
	v := uint64(a.Ref)
	switch a.Kind {
	case ir.ArgReg:
		var err error
		if v, err = g.get(m, ir.Reg(a.Ref)); err != nil {
			return 0, err
		}
		if m.Regs.At(ir.Reg(a.Ref)).Width == 2 {
			return v, nil
		}
	case ir.ArgImm:
	case ir.ArgImmWide:
		return m.WideAt(a), nil
	default:
		return 0, target.NotSupported("scalar operand", "a scalar operand of kind %d cannot be simulated", a.Kind)
	}
	if a.Dtype.Class() == target.ClassInt {
		return uint64(int64(int32(v))), nil
	}
	return v, nil
}

// output is the register that an instruction writes.
func output(a ir.Arg) (ir.Reg, error) {
	if a.Kind != ir.ArgReg {
		return 0, target.Errorf(target.User, "writes an operand that is no register")
	}
	return ir.Reg(a.Ref), nil
}

// scalar executes an instruction on registers: moves, arithmetic, and words to and from memory.
func (s *Sim) scalar(m *ir.Module, i ir.Inst) error {
	g := &s.regs
	ins, outs := m.Ins(i), m.Outs(i)
	op := m.Insts.At(i).Op
	if len(ins) == 0 || len(outs) == 0 {
		return target.Errorf(target.User, "has %d inputs and %d outputs", len(ins), len(outs))
	}
	switch op {
	case ir.OpRegisterMove:
		dst, err := output(outs[0])
		if err != nil {
			return err
		}
		if ins[0].Kind == ir.ArgReg && m.Regs.At(ir.Reg(ins[0].Ref)).Width == 2 {
			return target.Errorf(target.User, "moves the 64-bit register %s; 64 bits are moved from an immediate only", m.RegName(ir.Reg(ins[0].Ref)))
		}
		v, err := g.value(m, ins[0])
		if err != nil {
			return err
		}
		return g.set(m, dst, v)
	case ir.OpRegisterAlu:
		dst, err := output(outs[0])
		if err != nil {
			return err
		}
		a, err := g.value(m, ins[0])
		if err != nil {
			return err
		}
		b := uint64(0)
		if len(ins) > 1 {
			if b, err = g.value(m, ins[1]); err != nil {
				return err
			}
		}
		v, err := kernel.Register(target.AluOp(m.Attr(i, ir.KeyOp)), ins[0].Dtype, m.AttrBool(i, ir.KeyIs64Bit), a, b)
		if err != nil {
			return err
		}
		return g.set(m, dst, v)
	case ir.OpTensorLoad:
		return s.tensorLoad(m, ins[0], outs)
	}
	return s.tensorSave(m, ins, outs[0])
}

// share is how many elements of a size one register takes: a 64-bit register one of 8 bytes or two of 4, else each one. None fit a
// register that is too narrow.
func share(m *ir.Module, r ir.Reg, size int) int {
	w := max(1, int(m.Regs.At(r).Width))
	switch {
	case size == 4:
		return w
	case size > 4*w:
		return 0
	}
	return 1
}

// words checks that a memory operand of a scalar instruction has the elements of its registers, and gives the offset of each.
func (s *Sim) words(m *ir.Module, mem ir.Arg, regs []ir.Arg) (st *store, at [4]int, size int, err error) {
	v, st, err := s.view(m, mem)
	if err != nil {
		return nil, at, 0, err
	}
	size = v.Dtype.Size()
	need := 0
	for _, r := range regs {
		if r.Kind != ir.ArgReg {
			return nil, at, 0, target.Errorf(target.User, "moves words between memory and an operand that is no register")
		}
		n := share(m, ir.Reg(r.Ref), size)
		if n == 0 {
			return nil, at, 0, target.Errorf(target.User, "moves %s to or from register %s of 32 bits", v.Dtype, m.RegName(ir.Reg(r.Ref)))
		}
		need += n
	}
	if v.Parts*v.Elems() != need || need > len(at) {
		return nil, at, 0, target.Errorf(target.User, "moves %d elements of %s; the registers take %d", v.Parts*v.Elems(), v.Dtype, need)
	}
	n := 0
	for p := range v.Parts {
		walk(&v, p, func(lo, run int) bool {
			for ; run > 0; run -= size {
				at[n] = lo
				lo += size
				n++
			}
			return true
		})
	}
	return st, at, size, nil
}

// tensorLoad fills registers with the elements of a pattern, in order. Short elements are extended, by their sign where they have
// one.
func (s *Sim) tensorLoad(m *ir.Module, mem ir.Arg, regs []ir.Arg) error {
	st, at, size, err := s.words(m, mem, regs)
	if err != nil {
		return err
	}
	k := 0
	for _, r := range regs {
		v := uint64(0)
		for e := range share(m, ir.Reg(r.Ref), size) {
			for b := range size {
				if st.shadow[at[k]+b] == 0 {
					return target.Errorf(target.User, "reads byte %d of %s, which nothing wrote", at[k]+b, m.LocName(m.LocOf(mem)))
				}
				v |= uint64(st.data[at[k]+b]) << (8 * (e*size + b))
			}
			k++
		}
		if up := 64 - 8*size; size < 4 && mem.Dtype.Class() == target.ClassInt {
			v = uint64(int64(v<<up) >> up)
		}
		if err := s.regs.set(m, ir.Reg(r.Ref), v); err != nil {
			return err
		}
	}
	return nil
}

// tensorSave is the way back; short elements take the low bytes.
func (s *Sim) tensorSave(m *ir.Module, regs []ir.Arg, mem ir.Arg) error {
	st, at, size, err := s.words(m, mem, regs)
	if err != nil {
		return err
	}
	k := 0
	for _, r := range regs {
		v, err := s.regs.get(m, ir.Reg(r.Ref))
		if err != nil {
			return err
		}
		for e := range share(m, ir.Reg(r.Ref), size) {
			for b := range size {
				st.data[at[k]+b], st.shadow[at[k]+b] = byte(v>>(8*(e*size+b))), 1
			}
			k++
		}
	}
	return nil
}
