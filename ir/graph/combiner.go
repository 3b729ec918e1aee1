package graph

import "math"

// String is the name of the kind in messages.
func (k ReduceKind) String() string {
	switch k {
	case ReduceSum:
		return "sum"
	case ReduceMax:
		return "max"
	case ReduceMin:
		return "min"
	case ReduceProd:
		return "product"
	case ReduceAnd:
		return "and"
	case ReduceOr:
		return "or"
	}
	return "other"
}

// Op is the binary operator of the kind, OpNone for ReduceOther.
func (k ReduceKind) Op() Op {
	return [...]Op{ReduceOther: OpNone, ReduceSum: OpAdd, ReduceMax: OpMax, ReduceMin: OpMin, ReduceProd: OpMul, ReduceAnd: OpAnd, ReduceOr: OpOr}[k]
}

// Identity is the bits of the value of d that leaves the other operand of the kind unchanged.
func (k ReduceKind) Identity(d Dtype) (bits uint64, ok bool) {
	switch k {
	case ReduceSum:
		return EncodeFloat(d, 0)
	case ReduceProd:
		return EncodeFloat(d, 1)
	case ReduceMax, ReduceMin:
		sign := 1
		if k == ReduceMax {
			sign = -1
		}
		switch {
		case d == Bool:
			return uint64(sign+1) / 2, true
		case d.IsFloat() && smallFloats[d].special != ieeeSpecial:
			m := float64(DecodeFloat(d, uint64(smallFloats[d].maxFinite())))
			return EncodeFloat(d, float64(sign)*m)
		}
		return EncodeFloat(d, math.Inf(sign))
	case ReduceAnd:
		if d == Bool {
			return 1, true
		}
		return EncodeInt(d, -1), d.IsInt()
	case ReduceOr:
		return 0, d.IsInt() || d == Bool
	}
	return 0, false
}

// ReduceKindOf recognises a combining computation of two scalars that is one plain operator, or on pred the operator that
// equals it (add is or, multiply is and). Conversions of both parameters up and of the result back (as producers write
// bf16 sums in f32) are looked through. ReduceOther is anything else.
func ReduceKindOf(g *Graph, c Comp) ReduceKind {
	ps := g.Params(c)
	if len(ps) != 2 {
		return ReduceOther
	}
	skip := func(n Node) Node {
		for i := 0; i < 4; i++ { // a chain of conversions longer than this is not a plain combiner
			switch g.Op(n) {
			case OpConvert, OpCopy, OpReshape, OpBitcast:
				if len(g.Operands(n)) != 1 {
					return n
				}
				n = g.Operands(n)[0]
				continue
			}
			break
		}
		return n
	}
	root := skip(g.Comps.At(c).Root)
	ins := g.Operands(root)
	if len(ins) != 2 {
		return ReduceOther
	}
	a, b := skip(ins[0]), skip(ins[1])
	if !(a == ps[0] && b == ps[1] || a == ps[1] && b == ps[0]) {
		return ReduceOther
	}
	if d := g.Dtype(ps[0]); g.Dtype(root) != d && !(d.IsFloat() && g.Dtype(root).IsFloat()) {
		return ReduceOther
	}
	if g.Dtype(ps[0]) == Bool {
		switch g.Op(root) {
		case OpAdd, OpMax, OpOr:
			return ReduceOr
		case OpMul, OpMin, OpAnd:
			return ReduceAnd
		}
		return ReduceOther
	}
	switch g.Op(root) {
	case OpAdd:
		return ReduceSum
	case OpMax:
		return ReduceMax
	case OpMin:
		return ReduceMin
	case OpMul:
		return ReduceProd
	case OpAnd:
		return ReduceAnd
	case OpOr:
		return ReduceOr
	}
	return ReduceOther
}

// KindOf is how reduce, reduce-window, scatter, all-reduce and the like combine: attr AttrKind, else ReduceKindOf of the
// called computation.
func KindOf(g *Graph, n Node) ReduceKind {
	if k := ReduceKind(g.Int(n, AttrKind, int64(ReduceOther))); k > ReduceOther && k <= ReduceOr {
		return k
	}
	if cs := g.Calls(n); len(cs) > 0 {
		return ReduceKindOf(g, cs[0])
	}
	return ReduceOther
}
