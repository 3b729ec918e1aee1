package graph

import (
	"slices"
	"strconv"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// TypeString spells a type as HLO text does, without layout: f32[2,3], or (f32[2], s32[]) for a tuple.
func (g *Graph) TypeString(t Type) string { return string(g.AppendType(nil, t)) }

// AppendType appends what TypeString returns. Tuples nested deeper than eight levels are cut with "…".
func (g *Graph) AppendType(dst []byte, t Type) []byte { return g.appendType(dst, t, 0) }

func (g *Graph) appendType(dst []byte, t Type, depth int) []byte {
	r := g.Types.At(t)
	switch {
	case t == 0:
		return append(dst, "(no type)"...)
	case r.Dtype != Tuple:
		dst = append(dst, r.Dtype.String()...)
		return appendDims(dst, g.Ints.Of(r.Dims))
	case depth > 8:
		return append(dst, "(…)"...)
	}
	dst = append(dst, '(')
	for i, e := range g.TypeLists.Of(r.Elems) {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = g.appendType(dst, e, depth+1)
	}
	return append(dst, ')')
}

func appendDims(dst []byte, dims []int64) []byte {
	dst = append(dst, '[')
	for i, d := range dims {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, d, 10)
	}
	return append(dst, ']')
}

// NodeString is one line about n for messages: name, operator, result type and operand types.
func (g *Graph) NodeString(n Node) string {
	b := append([]byte(g.NodeName(n)), " = "...)
	b = g.AppendType(b, g.Nodes.At(n).Type)
	b = append(b, ' ')
	b = append(b, g.Op(n).String()...)
	b = append(b, '(')
	ins := g.Operands(n)
	const shown = 8
	for i, x := range ins[:min(len(ins), shown)] {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = g.AppendType(b, g.Nodes.At(x).Type)
		b = append(b, ' ')
		b = append(b, g.NodeName(x)...)
	}
	if len(ins) > shown {
		b = append(b, ", …"...)
	}
	return string(append(b, ')'))
}

// Elems are the element types of a tuple type, nil for a tensor.
func (g *Graph) Elems(t Type) []Type { return g.TypeLists.Of(g.Types.At(t).Elems) }

// IsTuple reports a tuple type.
func (g *Graph) IsTuple(t Type) bool { return g.Types.At(t).Dtype == Tuple }

// TypeBytes is the size of a tensor type in memory (sub-byte elements one a byte); of a tuple, the sum of its elements.
// Types from Check or Infer cannot overflow it: MaxElements elements of at most 16 bytes.
func (g *Graph) TypeBytes(t Type) int64 {
	var sum int64
	stack := []Type{t}
	for len(stack) > 0 {
		t := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if g.IsTuple(t) {
			stack = append(stack, g.Elems(t)...)
			continue
		}
		sum += g.Elements(t) * int64(g.Types.At(t).Dtype.Size())
	}
	return sum
}

// nodeErr is a user error about one node: the line of the node, then what is wrong.
func (g *Graph) nodeErr(n Node, format string, args ...any) error {
	return g.classErr(target.User, n, format, args...)
}

func (g *Graph) classErr(c target.Class, n Node, format string, args ...any) error {
	return target.Errorf(c, "%s: "+format, append([]any{g.NodeString(n)}, args...)...)
}

// unsupported is an Unsupported error whose subject is the operator of n (or the custom-call target).
func (g *Graph) unsupported(n Node, format string, args ...any) error {
	subject := g.Op(n).String()
	if t := g.Str(n, AttrTarget); t != "" {
		subject += ":" + t
	}
	return target.NotSupported(subject, "%s: "+format, append([]any{g.NodeString(n)}, args...)...)
}

// sameDims reports equal shapes.
func sameDims(a, b []int64) bool { return slices.Equal(a, b) }
