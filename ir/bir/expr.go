package bir

import (
	"math"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// exprFrame is an open object of an expression: a node of version 2, a term {idx, coeff}, or a node or term of version 1.
// Which one it is shows at its end.
type exprFrame struct {
	at      int
	seen    uint32
	kind    ir.ExprKind
	wrap    ir.ExprKind // version 1's op
	child   ir.Expr     // idx, var or numer
	axis    arena.Name
	reg     ir.Reg
	c       int64
	coeff   int64
	operand int64 // scale, denom, ub, arg_id, op_param, channel_id
	second  int64 // replica_groups_id, iteration_id
	n       int64 // n_terms
	terms   int   // mark in the scratch terms
	inList  bool  // the list of terms is open
}

const (
	seenEKind = iota
	seenTerms
	seenC
	seenChild
	seenCoeff
	seenOperand
	seenSecond
	seenN
	seenEAxis
	seenEReg
	seenLabel
	seenOp
)

var exprKinds = [...]struct {
	name string
	kind ir.ExprKind
	keys uint32 // beside kind
}{
	{"AffExprKind", ir.ExprAffine, 1<<seenTerms | 1<<seenC},
	{"AffIVKind", ir.ExprAxis, 1 << seenEAxis},
	{"SumKind", ir.ExprSum, 1<<seenTerms | 1<<seenN},
	{"MultKind", ir.ExprMul, 1<<seenChild | 1<<seenOperand},
	{"FloorDivKind", ir.ExprFloorDiv, 1<<seenChild | 1<<seenOperand},
	{"ModuloKind", ir.ExprMod, 1<<seenChild | 1<<seenOperand},
	{"CCDivKind", ir.ExprCCDiv, 1<<seenChild | 1<<seenOperand | 1<<seenSecond},
	{"IntRuntimeValueKind", ir.ExprReg, 1 << seenEReg},
	{"ShardIDKind", ir.ExprShard, 1 << seenOperand},
	{"IndirectArgId", ir.ExprIndirect, 1 << seenOperand},
	{"CCGetRankKind", ir.ExprCCRank, 1<<seenOperand | 1<<seenSecond},
}

func parseExprKind(s string) (ir.ExprKind, bool) {
	for _, k := range exprKinds {
		if k.name == s {
			return k.kind, true
		}
	}
	return 0, false
}

// expr reads the expression whose first token is at hand, without recursion.
func (r *Reader) expr() ir.Expr {
	if r.kind == '0' {
		return r.m.Exprs.Add(ir.ExprRow{Kind: ir.ExprAffine, C: r.intHere(math.MinInt64, math.MaxInt64)})
	}
	if !r.is('{') {
		return 0
	}
	s := &r.scratch
	s.exprs, s.terms = s.exprs[:0], s.terms[:0]
	s.exprs = append(s.exprs, exprFrame{at: r.start, coeff: 1})
	for r.err == nil {
		t := &s.exprs[len(s.exprs)-1]
		if t.inList {
			switch {
			case !r.element():
				t.inList = false
			case r.kind == '0':
				e := r.m.Exprs.Add(ir.ExprRow{Kind: ir.ExprAffine, C: r.intHere(math.MinInt64, math.MaxInt64)})
				s.terms = append(s.terms, ir.Term{Expr: e, Coeff: 1})
			case r.is('{'):
				s.exprs = append(s.exprs, exprFrame{at: r.start, coeff: 1, terms: len(s.terms)})
			}
			continue
		}
		if r.exprMembers(t) {
			continue // a child opened
		}
		term, isTerm := r.exprEnd(t)
		if r.err != nil {
			return 0
		}
		s.terms = s.terms[:t.terms]
		s.exprs = s.exprs[:len(s.exprs)-1]
		if len(s.exprs) == 0 {
			if isTerm {
				r.fail(t.at, "a term where an expression is expected")
			}
			return term.Expr
		}
		if up := &s.exprs[len(s.exprs)-1]; up.inList {
			s.terms = append(s.terms, term)
		} else {
			if isTerm {
				r.fail(t.at, "a term where an expression is expected")
			}
			up.child = term.Expr
		}
	}
	return 0
}

// exprMembers reads members of a node; true when a child or the list of terms opened.
func (r *Reader) exprMembers(t *exprFrame) bool {
	s := &r.scratch
	for r.member() {
		switch string(r.key) {
		case "kind":
			r.once(&t.seen, seenEKind)
			t.kind = enumOf(r, "kind of expression", parseExprKind)
		case "terms":
			r.once(&t.seen, seenTerms)
			t.inList = r.array()
			return true
		case "c":
			r.once(&t.seen, seenC)
			t.c = r.int(math.MinInt64, math.MaxInt64)
		case "idx", "var", "numer":
			r.once(&t.seen, seenChild)
			if r.next() == '0' {
				t.child = r.m.Exprs.Add(ir.ExprRow{Kind: ir.ExprAffine, C: r.intHere(math.MinInt64, math.MaxInt64)})
				continue
			}
			if r.is('{') {
				s.exprs = append(s.exprs, exprFrame{at: r.start, coeff: 1, terms: len(s.terms)})
			}
			return true
		case "coeff", "coef":
			r.once(&t.seen, seenCoeff)
			t.coeff = r.int(math.MinInt64, math.MaxInt64)
		case "scale", "denom", "ub", "arg_id", "op_param", "channel_id":
			r.once(&t.seen, seenOperand)
			t.operand = r.int(math.MinInt64, math.MaxInt64)
		case "replica_groups_id", "iteration_id":
			r.once(&t.seen, seenSecond)
			t.second = r.int(0, math.MaxUint32)
		case "n_terms":
			r.once(&t.seen, seenN)
			t.n = r.int(0, math.MaxInt64)
		case "axis":
			r.once(&t.seen, seenEAxis)
			t.axis = r.someName()
		case "AxisLabel":
			r.once(&t.seen, seenLabel)
			t.axis = r.someName()
		case "regref":
			r.once(&t.seen, seenEReg)
			t.reg = r.regRef(r.someName())
		case "op":
			r.once(&t.seen, seenOp)
			switch op := r.str(); string(op) {
			case "":
			case "Div", "FloorDiv":
				t.wrap = ir.ExprFloorDiv
			case "Mod", "Modulo":
				t.wrap = ir.ExprMod
			case "Mul", "Mult":
				t.wrap = ir.ExprMul
			default:
				r.failClass(target.Unsupported, r.start, "operator %q of a version 1 expression; Div, Mod and Mul are known", op)
			}
		default:
			r.fail(r.keyAt.off, "unknown key of an expression")
		}
		if r.err != nil {
			return false
		}
	}
	return false
}

// exprEnd makes the row of a node, or the term that the object is.
func (r *Reader) exprEnd(t *exprFrame) (term ir.Term, isTerm bool) {
	s, m := &r.scratch, r.m
	if r.err != nil {
		return
	}
	terms := s.terms[t.terms:]
	if t.seen>>seenEKind&1 == 0 {
		switch {
		case t.seen == 1<<seenLabel || t.seen == 1<<seenLabel|1<<seenCoeff:
			return ir.Term{Expr: r.axisExpr(t.axis, t.at), Coeff: t.coeff}, true
		case t.seen == 1<<seenChild || t.seen == 1<<seenChild|1<<seenCoeff:
			return ir.Term{Expr: t.child, Coeff: t.coeff}, true
		case t.seen&^(1<<seenTerms|1<<seenC|1<<seenOp|1<<seenOperand) != 0:
			r.fail(t.at, "an expression without a kind")
			return
		}
		e := m.Exprs.Add(ir.ExprRow{Kind: ir.ExprAffine, C: t.c, Terms: m.Terms.AddSlice(terms)})
		if t.wrap != 0 {
			if t.operand == 0 && t.wrap != ir.ExprMul {
				r.fail(t.at, "the expression divides by 0")
			}
			e = m.Exprs.Add(ir.ExprRow{Kind: t.wrap, A: e, C: t.operand})
		}
		return ir.Term{Expr: e, Coeff: 1}, false
	}
	keys := uint32(0)
	for _, k := range exprKinds {
		if k.kind == t.kind {
			keys = k.keys
		}
	}
	if extra := t.seen &^ (keys | 1<<seenEKind); extra != 0 {
		r.fail(t.at, "the expression has keys of another kind")
		return
	}
	row := ir.ExprRow{Kind: t.kind, A: t.child}
	switch t.kind {
	case ir.ExprAffine:
		row.C, row.Terms = t.c, m.Terms.AddSlice(terms)
	case ir.ExprSum:
		if t.seen>>seenN&1 != 0 && t.n != int64(len(terms)) {
			r.fail(t.at, "n_terms is %d for %d terms", t.n, len(terms))
		}
		for _, x := range terms {
			if x.Coeff != 1 {
				r.fail(t.at, "a sum has terms without coefficients")
			}
		}
		row.Terms = m.Terms.AddSlice(terms)
	case ir.ExprAxis:
		if t.axis == 0 {
			r.fail(t.at, "an AffIVKind without axis")
			return
		}
		return ir.Term{Expr: r.axisExpr(t.axis, t.at), Coeff: 1}, false
	case ir.ExprReg:
		if row.Ref = uint32(t.reg); t.reg == 0 {
			r.fail(t.at, "an IntRuntimeValueKind without regref")
		}
	case ir.ExprMul, ir.ExprFloorDiv, ir.ExprMod, ir.ExprCCDiv:
		row.C, row.Ref = t.operand, uint32(t.second)
		if t.child == 0 || t.seen>>seenOperand&1 == 0 {
			r.fail(t.at, "the expression lacks an operand")
		} else if t.operand == 0 && t.kind != ir.ExprMul {
			r.fail(t.at, "the expression divides by 0")
		}
	default:
		row.C, row.Ref = t.operand, uint32(t.second)
	}
	if r.err != nil {
		return
	}
	return ir.Term{Expr: m.Exprs.Add(row), Coeff: 1}, false
}

func (r *Reader) axisExpr(n arena.Name, at int) ir.Expr {
	return r.m.Exprs.Add(ir.ExprRow{Kind: ir.ExprAxis, Ref: uint32(r.axisNamed(n, at))})
}

// constantExpr is the value of an affine expression without terms.
func (r *Reader) constantExpr(v span) (int64, bool) {
	c := cursor{b: r.raw(v)}
	c.next()
	n, affine := int64(0), false
	for c.next() == '"' {
		switch string(c.token()) {
		case `"kind"`:
			c.next()
			if affine = string(c.token()) == `"AffExprKind"`; !affine {
				return 0, false
			}
		case `"c"`:
			k := c.next()
			i, ok := parseInt(c.token())
			if k != '0' || !ok {
				return 0, false
			}
			n = i
		case `"terms"`:
			if c.next() != '[' || c.next() != ']' {
				return 0, false
			}
		default:
			return 0, false
		}
	}
	return n, affine
}
