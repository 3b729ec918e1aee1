// Package onnx reads ONNX models into ir/graph and writes graphs that ONNX can express. The wire format is decoded here, by a
// bounds-checked cursor over the bytes of the file: no protobuf library, no recursion, no allocation that the remaining bytes
// do not justify.
//
// # From file to graph
//
//	wire.go        fields of a protobuf message                                     cursor
//	model.go       the file as flat tables; strings and tensors stay in the file    model
//	tensor.go      TensorProto, alone (.pb test data) and inside a model            Tensor
//	external.go    weights in other files of the model's folder, mapped
//	read.go        inputs, initializers, nodes in order, local functions inlined    reader
//	specialise.go  inputs fixed where a shape depends on them
//	value.go       what a name stands for: a graph node, or a constant without one  value, konst
//	fold.go        operators on constants, evaluated by the graph's interpreter
//	emit.go        the vocabulary in which operators are spelled as graph ops       emit
//	ops_*.go       one function an operator; optable.go lists them all
//	write*.go      the way back
//
// # Rules
//
//   - Initializers are constants, also where a graph input has the same name; other inputs are parameters in order.
//   - Weights are never copied: raw_data is a range of the file given to Read, external data a range of the mapped file.
//     Only typed data fields and elements under a byte are decoded.
//   - Shapes are static. A symbolic dimension is refused by name unless Options gives it a size. Operators whose result shape
//     depends on a value (Reshape, Expand, Slice, Range…) need that value at read time: shape arithmetic on constants and Shape is
//     folded, and an input can be fixed by Options.Known.
//   - Every operator becomes operators of ir/graph; nothing of ONNX is left behind. What cannot be expressed is refused with the
//     operator's or the type's name.
package onnx
