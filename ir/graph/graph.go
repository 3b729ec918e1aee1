package graph

import (
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
)

type (
	// Node is one operator and, at once, its result.
	Node uint32
	// Comp is a computation.
	Comp uint32
	// Const is a row of the constants table.
	Const uint32
)

// String prints the node as error messages do when it has no name.
func (n Node) String() string {
	var buf [12]byte
	return string(strconv.AppendUint(append(buf[:0], '%'), uint64(n), 10))
}

// NodeRow is one operator. 44 bytes.
type NodeRow struct {
	Op    Op
	_     [3]byte
	Type  Type
	Name  arena.Name
	Ins   arena.Span // operands, in Graph.NodeLists
	Attrs arena.Span // in Graph.AttrRows
	Calls arena.Span // called computations, in Graph.CompLists
	Const Const      // of OpConstant
	Comp  Comp       // owner
}

// CompRow is one computation: nodes [First, First+Count) of the node table.
type CompRow struct {
	Name   arena.Name
	First  Node
	Count  uint32
	Root   Node
	Params arena.Span // parameter nodes by parameter number, in Graph.NodeLists
}

// Output is one result of the model under the name by which a user knows it.
type Output struct {
	Name arena.Name
	Node Node
}

// Alias says that an output is an update of an input in place (HLO input_output_alias).
type Alias struct {
	Output, Input uint32 // ordinals
	Must          bool
}

// Graph is a whole model. Usable as its zero value; Reset keeps all capacity.
type Graph struct {
	Name  string // model name, for messages and the package header
	Names arena.Names

	Nodes     arena.Table[Node, NodeRow]
	Comps     arena.Table[Comp, CompRow]
	Types     arena.Table[Type, TypeRow]
	Consts    arena.Table[Const, ConstRow]
	NodeLists arena.Pool[Node]
	CompLists arena.Pool[Comp]
	TypeLists arena.Pool[Type]
	Ints      arena.Pool[int64]
	AttrRows  arena.Pool[Attr]
	Bytes     arena.Pool[byte] // dense constants of this graph

	// Blobs are byte ranges that belong to somebody else (a mapped file, the model's own bytes): constants refer to them and
	// never copy them.
	Blobs [][]byte

	// Entry is the computation that runs.
	Entry Comp
	// Outputs are the results of Entry in order. A reader fills them; for HLO they are the elements of the root tuple.
	Outputs []Output
	Aliases []Alias

	types typeIndex
}

// Reset empties the graph and keeps its memory.
func (g *Graph) Reset() {
	g.Name, g.Entry = "", 0
	g.Names.Reset()
	g.Nodes.Reset()
	g.Comps.Reset()
	g.Types.Reset()
	g.Consts.Reset()
	g.NodeLists.Reset()
	g.CompLists.Reset()
	g.TypeLists.Reset()
	g.Ints.Reset()
	g.AttrRows.Reset()
	g.Bytes.Reset()
	g.Blobs = g.Blobs[:0]
	g.Outputs = g.Outputs[:0]
	g.Aliases = g.Aliases[:0]
	g.types.reset()
}

// Operands are the operand nodes of n.
func (g *Graph) Operands(n Node) []Node { return g.NodeLists.Of(g.Nodes.At(n).Ins) }

// Calls are the computations that n refers to.
func (g *Graph) Calls(n Node) []Comp { return g.CompLists.Of(g.Nodes.At(n).Calls) }

// Op is the operator of n.
func (g *Graph) Op(n Node) Op { return g.Nodes.At(n).Op }

// Dims are the dimensions of n's result; nil for a scalar and for a tuple.
func (g *Graph) Dims(n Node) []int64 { return g.TypeDims(g.Nodes.At(n).Type) }

// Dtype is the element type of n's result.
func (g *Graph) Dtype(n Node) Dtype { return g.Types.At(g.Nodes.At(n).Type).Dtype }

// TypeDims are the dimensions of a tensor type.
func (g *Graph) TypeDims(t Type) []int64 { return g.Ints.Of(g.Types.At(t).Dims) }

// Elements is the number of elements of a tensor type, 1 for a scalar.
func (g *Graph) Elements(t Type) int64 {
	n := int64(1)
	for _, d := range g.TypeDims(t) {
		n *= d
	}
	return n
}

// NodeName is the name of n for messages: its own, or its number.
func (g *Graph) NodeName(n Node) string {
	if name := g.Nodes.At(n).Name; name != 0 {
		return g.Names.String(name)
	}
	return n.String()
}

// Params are the parameters of a computation by number.
func (g *Graph) Params(c Comp) []Node { return g.NodeLists.Of(g.Comps.At(c).Params) }

// CheckDims reports whether a shape is usable: no negative dimension, and an element count that fits MaxElements.
func CheckDims(dims []int64) bool {
	n := int64(1)
	for _, d := range dims {
		if d < 0 || d > MaxElements {
			return false
		}
		if d > 0 && n > MaxElements/d {
			return false
		}
		n *= d
	}
	return true
}
