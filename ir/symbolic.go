package ir

import (
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// What a symbolic pattern means. Its address is a number of elements, the offset of the pattern and the value of its expression
// together, in the row-major order of the tensor's blocks: block after block, on chip partition after partition, element after
// element. So in a tensor of blocks of P partitions × E elements an address that grows by P·E steps from block to block, and one
// that grows by E moves by a partition. The pattern is walked from there and stays inside the block.

// Trips is how many turns a loop over the axis makes, and whether it ever ends.
func (r *AxisRow) Trips() (n uint64, ok bool) {
	switch {
	case r.Step > 0 && r.Lo < r.Hi:
		return (uint64(r.Hi-r.Lo)-1)/uint64(r.Step) + 1, true
	case r.Step < 0 && r.Lo > r.Hi:
		return (uint64(r.Lo-r.Hi)-1)/-uint64(r.Step) + 1, true
	}
	return 0, r.Step != 0 || r.Lo == r.Hi
}

// Range is the least and the largest value of the axis in a loop of at least one turn.
func (r *AxisRow) Range() (lo, hi int64) {
	n, _ := r.Trips()
	last := r.Lo + int64(n-1)*r.Step
	return min(r.Lo, last), max(r.Lo, last)
}

// ExprEval computes expressions; a shared part once. The zero value is ready.
type ExprEval struct {
	memo  []exprValue
	now   uint32
	stack []Expr
}

type exprValue struct {
	lo, hi int64
	stamp  uint32
}

// Bounds are a lower and an upper bound of an expression over axes that take any value between two bounds each; where the two
// bounds of every axis are equal, so are the result's, and it is the value. Errors: User for an axis without bounds, that is an
// expression outside of its loop, and for a division by what is not positive; Unsupported for what only the machine knows.
func (x *ExprEval) Bounds(m *Module, e Expr, axis func(Axis) (lo, hi int64, ok bool)) (lo, hi int64, err error) {
	if e == 0 {
		return 0, 0, nil
	}
	for len(x.memo) < m.Exprs.Len() {
		x.memo = append(x.memo, exprValue{})
	}
	if x.now++; x.now == 0 {
		clear(x.memo)
		x.now = 1
	}
	x.stack = append(x.stack[:0], e)
	for len(x.stack) > 0 {
		top := x.stack[len(x.stack)-1]
		if x.memo[top].stamp == x.now {
			x.stack = x.stack[:len(x.stack)-1]
			continue
		}
		r := m.Exprs.At(top)
		if n := len(x.stack); x.wait(m, r, top) {
			continue
		} else {
			x.stack = x.stack[:n-1]
		}
		v := exprValue{lo: r.C, hi: r.C, stamp: x.now}
		switch r.Kind {
		case ExprAffine, ExprSum:
			for _, t := range m.Terms.Of(r.Terms) {
				c := x.memo[t.Expr]
				a, b := c.lo*t.Coeff, c.hi*t.Coeff
				v.lo, v.hi = v.lo+min(a, b), v.hi+max(a, b)
			}
		case ExprMul:
			c := x.memo[r.A]
			v.lo, v.hi = min(c.lo*r.C, c.hi*r.C), max(c.lo*r.C, c.hi*r.C)
		case ExprFloorDiv, ExprMod:
			if r.C <= 0 {
				return 0, 0, target.Errorf(target.User, "an address is divided by %d", r.C)
			}
			c := x.memo[r.A]
			v.lo, v.hi = floorDiv(c.lo, r.C), floorDiv(c.hi, r.C)
			if r.Kind == ExprMod {
				if v.lo == v.hi {
					v.lo, v.hi = c.lo-v.lo*r.C, c.hi-v.hi*r.C
				} else {
					v.lo, v.hi = 0, r.C-1
				}
			}
		case ExprAxis:
			lo, hi, ok := axis(Axis(r.Ref))
			if !ok {
				return 0, 0, target.Errorf(target.User, "an address depends on axis %s outside of its loop", m.Names.String(m.Axes.At(Axis(r.Ref)).Name))
			}
			v.lo, v.hi = lo, hi
		default:
			return 0, 0, target.NotSupported("address expression", "an address depends on %s, which only the machine knows", exprKinds[r.Kind])
		}
		x.memo[top] = v
	}
	return x.memo[e].lo, x.memo[e].hi, nil
}

// wait puts the children of a row on the stack that have no value yet, and reports whether there are any.
func (x *ExprEval) wait(m *Module, r *ExprRow, of Expr) bool {
	n := len(x.stack)
	push := func(c Expr) {
		if c != 0 && c < of && x.memo[c].stamp != x.now {
			x.stack = append(x.stack, c)
		}
	}
	push(r.A)
	for _, t := range m.Terms.Of(r.Terms) {
		push(t.Expr)
	}
	return len(x.stack) > n
}

// BlockElems is the elements of type d in one block of a tensor.
func (m *Module) BlockElems(s Set, d target.Dtype) int64 {
	l := m.Locs.At(m.Sets.At(s).First)
	return int64(l.Parts) * (l.Bytes / int64(max(1, d.Size())))
}

// Resolve is the physical pattern that a symbolic one stands for where its expression has the value addr. ok is false when it
// leaves the tensor or the block in which it starts.
func (m *Module) Resolve(s *SymRow, addr int64) (a APRow, ok bool) {
	a = s.AP
	set := m.Sets.At(s.Set)
	if set.Count == 0 || a.Dtype.Size() == 0 {
		return a, false
	}
	l := m.Locs.At(set.First)
	chip := l.Space.OnChip()
	row := l.Bytes / int64(a.Dtype.Size())
	block := m.BlockElems(s.Set, a.Dtype)
	if chip {
		a.Off += int64(a.Start) * row
	}
	a.Off += s.APOffset + addr
	if block <= 0 || a.Off < 0 || a.Off/block >= int64(set.Count) {
		return a, false
	}
	a.Loc = set.First + Loc(a.Off/block)
	a.Off %= block
	size := block
	if chip {
		start := a.Off / row
		a.Off %= row
		size = row
		if start > 255 || start+int64(a.Parts) > int64(l.Parts) || a.Pairs[0].Num != uint32(a.Parts) || a.Parts > 1 && int64(a.Pairs[0].Step) != row {
			return a, false
		}
		a.Start = uint8(start)
	} else {
		a.Start, a.Parts = 0, 0
	}
	lo, hi := a.Off, a.Off
	for _, p := range a.Free(l.Space) {
		span := int64(p.Step) * int64(p.Num-1)
		lo, hi = lo+min(span, 0), hi+max(span, 0)
	}
	return a, lo >= 0 && hi < size
}
