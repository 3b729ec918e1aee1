// Package graph is a model as operators on whole tensors, before any machine is in sight: what the readers of HLO text and
// ONNX produce, what the generated models are written in, and what the tile lowering consumes. Shape inference and a plain
// reference interpreter live here too; the interpreter shares no code with the lowering or the simulators.
//
// # Tables
//
//	Comp   a computation: a contiguous run of nodes, its parameters, its root          Graph.Comps
//	Node   one operator with one result; operands are nodes of the same computation    Graph.Nodes
//	Type   an element type and dims, or a tuple of types; interned, so equality is ==   types.go
//	Const  a constant: one splat value, dense bytes, bytes in a file, or elided          consts.go
//	Attr   (key, list of ints | float | string) pairs in one pool                      attrs.go
//
// Everything is an index into a flat table; zero means none. A node has exactly one result: an operator with several results
// has a tuple type, and OpGetTupleElement picks. Operands may point forward in the table (HLO text allows it); Canonical
// gives a graph without calls, tuples and dead nodes whose table order is a topological order.
//
// # What there is
//
//	builder.go              Builder: add operators, types inferred, one sticky error
//	infer*.go               InferType, Infer, Check; CompOrder and Orderer: topological orders without recursion
//	canonical.go, fold.go, recognise.go
//	                        Canonical, Compact; ConstValue and ConstInts: shape arithmetic; NodeWork
//	eval*.go, tensor.go     Interp, Eval: the reference interpreter
//	weights.go, inputs.go   SeedWeights, Materialise; RandomInputs
//	compare.go              Compare, Tolerance
//	combiner.go             KindOf, ReduceKindOf; SortKey and ArgReducer recognise comparators and argmax
//	numeric.go              encodings of every element type
//
// # Invariants
//
// Check is the gate: Canonical, the interpreter and the lowering may rely on everything that it proves (types follow from
// operands, attributes fit ranks, no cycles, no calls in circles, sizes below MaxElements) and are not to be given a graph
// that has not passed it or been made by a Builder. All of them only read the graph, but for InferType, Infer and Check,
// which may intern types, and SeedWeights.
//
// # Semantics
//
// Operators mean what the XLA operation semantics page says for the operator of the same name, on row-major tensors
// (layouts in HLO text are a property of the producer's device and are not kept). Broadcasting is always explicit. The
// composites that XLA lacks (OpRelu to OpLRN) are defined at their row of the operator table.
package graph
