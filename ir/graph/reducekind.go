package graph

// ReduceKindOf recognises a combiner: a computation of two scalar parameters whose root applies one plain operator to both, in either
// order (every operator here commutes). Converts and copies of a parameter or of the root do not hide it, nor does a call that only
// wraps such a computation. Anything else is ReduceOther, the select-by-compare forms of max and min among it, for they treat NaN
// differently.
//
// On predicates add is or and multiply is and, as XLA defines them. ReduceSum of a combiner whose parameters are converted first is
// still a sum; the caller computes in the element type of its own operand.
func (g *Graph) ReduceKindOf(c Comp) ReduceKind {
	for range 8 { // wrappers around wrappers; a longer chain is nobody's combiner
		row := g.Comps.At(c)
		if c == 0 || row.Params.Len != 2 || row.Root == 0 {
			return ReduceOther
		}
		root := g.plain(row.Root)
		ins := g.Operands(root)
		if len(ins) != 2 {
			return ReduceOther
		}
		params := g.Params(c)
		a, b := g.plain(ins[0]), g.plain(ins[1])
		if !(a == params[0] && b == params[1]) && !(a == params[1] && b == params[0]) {
			return ReduceOther
		}
		if op := g.Op(root); op == OpCall || op == OpFusion {
			calls := g.Calls(root)
			if len(calls) != 1 {
				return ReduceOther
			}
			c = calls[0]
			continue
		}
		isBool := g.Dtype(root) == Bool
		switch g.Op(root) {
		case OpAdd:
			if isBool {
				return ReduceOr
			}
			return ReduceSum
		case OpMul:
			if isBool {
				return ReduceAnd
			}
			return ReduceProd
		case OpMax:
			if isBool {
				return ReduceOr
			}
			return ReduceMax
		case OpMin:
			if isBool {
				return ReduceAnd
			}
			return ReduceMin
		case OpAnd:
			return ReduceAnd
		case OpOr:
			return ReduceOr
		}
		return ReduceOther
	}
	return ReduceOther
}

// plain follows scalar converts between float types and copies back to what they are made of.
func (g *Graph) plain(n Node) Node {
	for range 8 {
		ins := g.Operands(n)
		if len(ins) != 1 {
			break
		}
		op := g.Op(n)
		if op != OpCopy && op != OpBitcast && op != OpReshape &&
			!(op == OpConvert && g.Dtype(n).IsFloat() && g.Dtype(ins[0]).IsFloat()) {
			break
		}
		n = ins[0]
	}
	return n
}
