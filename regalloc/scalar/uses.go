package scalar

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// occ is one operand that is a register, or one use of a register within an operand. 16 bytes.
type occ struct {
	at  uint32 // point
	arg uint32 // row in Module.Args
	web uint32
	def bool
	// hard: no reload can stand in front of it, since the operand is an expression or belongs to a loop.
	hard bool
}

// move is one from register to register.
type move struct {
	at       uint32
	src, dst ir.Reg
}

// uses are the operands of a function that are registers, by register in the flat order; of one instruction the reads first.
type uses struct {
	off    []uint32 // by register: occs[off[r]:off[r+1]]
	occs   []occ
	engine []target.Engine // by register: whose file it is in
	moves  []move

	flat  []occ
	regs  []ir.Reg // of flat
	exprs []ir.Expr
	seen  []uint32 // by expression: the turn in which it was visited
	turn  uint32
}

func (u *uses) of(r uint32) []occ { return u.occs[u.off[r]:u.off[r+1]] }

// build lists the operands. Errors: User for a register of two engines or of none, or of a width that no engine has.
func (u *uses) build(m *ir.Module, f *flow) error {
	u.flat, u.regs, u.moves = u.flat[:0], u.regs[:0], u.moves[:0]
	u.engine = arena.Resized(u.engine, m.Regs.Len())
	for r := range u.engine {
		u.engine[r] = target.EngineUnassigned
		if r > 0 {
			if e := m.Regs.At(ir.Reg(r)).Engine; e.SeqIndex() >= 0 {
				u.engine[r] = e
			}
		}
	}
	for p, i := range f.insts {
		r := m.Insts.At(i)
		reads := uint32(r.NIn) + uint32(r.NInd)
		all := m.AllArgs(i)
		hard := r.Op.Is(ir.FlagRegion)
		from := len(u.flat)
		for k, a := range all {
			o := occ{at: uint32(p), arg: r.Args + uint32(k), hard: hard}
			switch a.Kind {
			case ir.ArgReg:
				if uint32(k) < reads {
					u.add(o, ir.Reg(a.Ref))
				}
			case ir.ArgSym, ir.ArgSymPW, ir.ArgRegAP, ir.ArgSymImm:
				u.symbolic(m, o, m.Syms.At(ir.Sym(a.Ref)))
			}
		}
		for k, a := range all[reads:] {
			if a.Kind == ir.ArgReg {
				u.add(occ{at: uint32(p), arg: r.Args + reads + uint32(k), def: true}, ir.Reg(a.Ref))
			}
		}
		if len(u.flat) == from {
			continue
		}
		for _, g := range u.regs[from:] {
			if err := u.claim(m, g, i, r.Engine); err != nil {
				return err
			}
		}
		if r.Op == ir.OpRegisterMove && len(all) == 2 && all[0].Kind == ir.ArgReg && all[1].Kind == ir.ArgReg {
			u.moves = append(u.moves, move{uint32(p), ir.Reg(all[0].Ref), ir.Reg(all[1].Ref)})
		}
	}
	u.sort(m.Regs.Len())
	for r := uint32(1); int(r) < m.Regs.Len(); r++ {
		if len(u.of(r)) > 0 && u.engine[r] == target.EngineUnassigned {
			return target.Errorf(target.User, "register %s has no engine, and neither has any instruction that names it (%s); give it one",
				m.RegName(ir.Reg(r)), m.InstName(f.insts[u.of(r)[0].at]))
		}
	}
	return nil
}

func (u *uses) add(o occ, r ir.Reg) {
	u.flat = append(u.flat, o)
	u.regs = append(u.regs, r)
}

// symbolic lists the registers that an address is made of. Those in an expression cannot be exchanged for others.
func (u *uses) symbolic(m *ir.Module, o occ, s *ir.SymRow) {
	if s.Reg != 0 {
		u.add(o, s.Reg)
	}
	if s.SubReg != 0 {
		u.add(o, s.SubReg)
	}
	if s.Addr == 0 {
		return
	}
	o.hard = true
	for len(u.seen) < m.Exprs.Len() {
		u.seen = append(u.seen, 0)
	}
	if u.turn++; u.turn == 0 {
		clear(u.seen)
		u.turn = 1
	}
	u.exprs = append(u.exprs[:0], s.Addr)
	for len(u.exprs) > 0 {
		x := u.exprs[len(u.exprs)-1]
		u.exprs = u.exprs[:len(u.exprs)-1]
		if u.seen[x] == u.turn {
			continue // a part that stands in the expression twice
		}
		u.seen[x] = u.turn
		e := m.Exprs.At(x)
		if e.Kind == ir.ExprReg {
			u.add(o, ir.Reg(e.Ref))
		}
		if e.A != 0 {
			u.exprs = append(u.exprs, e.A)
		}
		for _, t := range m.Terms.Of(e.Terms) {
			u.exprs = append(u.exprs, t.Expr)
		}
	}
}

// claim holds a register to one engine: the file of another is out of reach.
func (u *uses) claim(m *ir.Module, r ir.Reg, i ir.Inst, e target.Engine) error {
	if r == 0 || int(r) >= m.Regs.Len() {
		return target.Errorf(target.User, "%s names register %d; the module has %d", m.InstName(i), r, m.Regs.Len()-1)
	}
	if w := m.Regs.At(r).Width; w != 1 && w != 2 {
		return target.Errorf(target.User, "register %s takes %d lanes; one or two are possible", m.RegName(r), w)
	}
	own := &u.engine[r]
	switch {
	case e == *own || e == target.EngineUnassigned:
	case e.SeqIndex() < 0:
		return target.Errorf(target.User, "%s runs on %s and names register %s: a register is in the file of one engine; write the instruction once for each engine, with registers of its own",
			m.InstName(i), e, m.RegName(r))
	case *own == target.EngineUnassigned:
		*own = e
	default:
		return target.Errorf(target.User, "register %s of %s is named by %s, which runs on %s; pass the value through memory, or give each engine a register of its own",
			m.RegName(r), *own, m.InstName(i), e)
	}
	return nil
}

// sort deals the operands out to their registers.
func (u *uses) sort(nregs int) {
	u.off = arena.Zeroed(u.off, nregs+2)
	for _, r := range u.regs {
		u.off[r+2]++
	}
	for i := 2; i < len(u.off); i++ {
		u.off[i] += u.off[i-1]
	}
	u.occs = arena.Resized(u.occs, len(u.flat))
	for k, r := range u.regs {
		u.occs[u.off[r+1]] = u.flat[k]
		u.off[r+1]++
	}
	u.off = u.off[:nregs+1]
}
