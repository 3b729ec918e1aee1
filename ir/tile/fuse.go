package tile

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Chains of elementwise values become one instruction where the hardware has one for them. Only float32 values in between are
// left out, so that every bit is what the single instructions give: products and sums inside an instruction are rounded to
// float32 as well.

// formKind is the instruction that a value becomes together with what it absorbed.
type formKind uint8

const (
	formPlain formKind = iota
	formTwo            // (x op0 s0) op1 s1
	formAct            // fn(x·s0 + s1)
	formSTT            // (x op0 s0) op1 z
)

// slot is operand arg of the value at position val of the unit; val -1 stands for an immediate.
type slot struct {
	val int
	arg int
	imm float32
}

type form struct {
	kind formKind
	x, z slot
	s    [2]slot
	op   [2]target.AluOp
	rev  [2]bool
}

// scalar is a value of the form x op s, with s an immediate or one float32 a row.
type scalar struct {
	x, s slot
	op   target.AluOp
	rev  bool
}

// scalarOf takes value i of the unit apart; ok is false when it has another form.
func (l *lowering) scalarOf(i int) (s scalar, ok bool) {
	v := l.valsOf(l.u)[i]
	r := l.vals.At(v)
	if r.row || v == l.u.root || r.op0.Bitwise() {
		return s, false
	}
	switch r.op {
	case vTS:
		if r.op1 != target.AluBypass {
			return s, false
		}
		return scalar{slot{i, 0, 0}, slot{-1, 0, r.c0}, r.op0, r.rev0}, true
	case vTT:
		for k := 1; k >= 0; k-- {
			if l.pointer(i, k) {
				return scalar{slot{i, 1 - k, 0}, slot{i, k, 0}, r.op0, k == 0}, true
			}
		}
	}
	return s, false
}

// pointer reports whether operand k of value i is one float32 a row.
func (l *lowering) pointer(i, k int) bool {
	ref := l.refs[int(l.refAt[i])+k]
	switch ref.kind {
	case refRow:
		r := l.vals.At(ref.root)
		return r.dt == f32 || r.dt.Size() <= 4 && (r.dt.IsFloat() || isSmall(r.lo, r.hi))
	case refInput:
		in := &l.inputs[ref.idx]
		return in.row && in.dt == f32
	}
	return false
}

// absorbable is the position of the value that a slot reads when that value need not exist for itself: a float32 value of
// the unit with no other reader.
func (l *lowering) absorbable(s slot) (int, bool) {
	if s.val < 0 {
		return 0, false
	}
	ref := l.refs[int(l.refAt[s.val])+s.arg]
	if ref.kind != refFull || ref.root == l.u.root {
		return 0, false
	}
	r := l.vals.At(ref.root)
	return int(ref.idx), r.dt == f32 && r.uses == 1 && !l.ext.Get(ref.root)
}

// findForms decides which values of the bound unit become parts of others.
func (l *lowering) findForms() {
	vals := l.valsOf(l.u)
	l.forms, l.absorbed = l.forms[:0], l.absorbed[:0]
	for range vals {
		l.forms, l.absorbed = append(l.forms, form{}), append(l.absorbed, false)
	}
	for j, v := range vals {
		r := l.vals.At(v)
		if v == l.u.root || r.row || !r.op.elementwise() {
			continue
		}
		switch r.op {
		case vAct:
			l.formAct(j, r)
		case vTS, vTT:
			if outer, ok := l.scalarOf(j); ok {
				l.formTwo(j, outer)
			} else if r.op == vTT && !r.op0.Bitwise() {
				l.formSTT(j, r)
			}
		}
	}
}

// formAct: a product with a scalar, a sum with a scalar, or both, before a function.
func (l *lowering) formAct(j int, r *valueRow) {
	if r.c1 != 1 || r.c0 != 0 {
		return
	}
	f := form{kind: formAct, s: [2]slot{{-1, 0, 1}, {-1, 0, 0}}, x: slot{j, 0, 0}}
	i, ok := l.absorbable(f.x)
	if !ok || l.forms[i].kind != formPlain && l.forms[i].kind != formTwo {
		return
	}
	if l.forms[i].kind == formTwo {
		two := &l.forms[i]
		if two.op != [2]target.AluOp{target.AluMult, target.AluAdd} {
			return
		}
		f.x, f.s = two.x, two.s
	} else {
		s, ok := l.scalarOf(i)
		switch {
		case !ok:
			return
		case s.op == target.AluMult:
			f.s[0] = s.s
		case s.op == target.AluAdd:
			f.s[1] = s.s
		case s.op == target.AluSub && !s.rev && s.s.val < 0:
			f.s[1] = slot{-1, 0, -s.s.imm}
		default:
			return
		}
		f.x = s.x
	}
	l.forms[j] = f
	l.absorbed[i] = true
}

func (l *lowering) formTwo(j int, outer scalar) {
	i, ok := l.absorbable(outer.x)
	if !ok || l.forms[i].kind != formPlain {
		return
	}
	inner, ok := l.scalarOf(i)
	if !ok {
		return
	}
	l.forms[j] = form{kind: formTwo, x: inner.x, s: [2]slot{inner.s, outer.s}, op: [2]target.AluOp{inner.op, outer.op}, rev: [2]bool{inner.rev, outer.rev}}
	l.absorbed[i] = true
}

// formSTT: a scalar operation before an operation of two tiles. Its operands walk two free axes at most, so what stays in SBUF
// is left alone.
func (l *lowering) formSTT(j int, r *valueRow) {
	for k := range 2 {
		i, ok := l.absorbable(slot{j, k, 0})
		if !ok || l.forms[i].kind != formPlain || l.pointer(j, 1-k) {
			continue
		}
		inner, ok := l.scalarOf(i)
		if !ok || !l.plainTile(inner.x) || !l.plainTile(slot{j, 1 - k, 0}) {
			continue
		}
		l.forms[j] = form{kind: formSTT, x: inner.x, z: slot{j, 1 - k, 0}, s: [2]slot{inner.s}, op: [2]target.AluOp{inner.op, r.op0}, rev: [2]bool{inner.rev, k == 1}}
		l.absorbed[i] = true
		return
	}
}

// plainTile reports an operand that is a dense tile.
func (l *lowering) plainTile(s slot) bool {
	ref := l.refs[int(l.refAt[s.val])+s.arg]
	switch ref.kind {
	case refFull:
		return true
	case refInput:
		in := &l.inputs[ref.idx]
		return !in.stays && !in.row
	}
	return false
}

// emitForm emits value j with what it absorbed.
func (l *lowering) emitForm(t *tile, j int, c0, n int64, psum, out ir.Arg) {
	f := &l.forms[j]
	r := l.vals.At(l.valsOf(l.u)[j])
	tileOf := func(s slot) ir.Arg {
		return l.solid(t, s.val, s.arg, l.operand(t, s.val, s.arg, c0, n, psum), n).arg
	}
	scalarArg := func(s slot) ir.Arg {
		if s.val < 0 {
			return ir.ImmF32(s.imm)
		}
		return l.operand(t, s.val, s.arg, c0, n, psum).row
	}
	x := tileOf(f.x)
	switch f.kind {
	case formAct:
		l.activation(r.fn, x, scalarArg(f.s[1]), scalarArg(f.s[0]), r.c2, out)
	case formTwo:
		if f.s[0].val < 0 && f.s[1].val < 0 {
			l.emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{x}, []ir.Arg{out},
				ir.Enum(ir.KeyOp0, f.op[0]), ir.Float(ir.KeyConst0, f.s[0].imm), ir.Bool(ir.KeyReverse0, f.rev[0]),
				ir.Enum(ir.KeyOp1, f.op[1]), ir.Float(ir.KeyConst1, f.s[1].imm), ir.Bool(ir.KeyReverse1, f.rev[1]))
			return
		}
		l.emit(ir.OpTensorScalarPtr, target.EngineDVE, []ir.Arg{x, scalarArg(f.s[0]), scalarArg(f.s[1])}, []ir.Arg{out},
			ir.Enum(ir.KeyOp0, f.op[0]), ir.Bool(ir.KeyReverse0, f.rev[0]), ir.Enum(ir.KeyOp1, f.op[1]), ir.Bool(ir.KeyReverse1, f.rev[1]))
	case formSTT:
		l.emit(ir.OpTensorScalarPtr, target.EngineDVE, []ir.Arg{x, scalarArg(f.s[0]), tileOf(f.z)}, []ir.Arg{out}, ir.Bool(ir.KeyIsScalarTensorTensor, true),
			ir.Enum(ir.KeyOp0, f.op[0]), ir.Bool(ir.KeyReverse0, f.rev[0]), ir.Enum(ir.KeyOp1, f.op[1]), ir.Bool(ir.KeyReverse1, f.rev[1]))
	}
}
