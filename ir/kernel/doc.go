// Package kernel is the one place where numbers are made. The IR simulator and the machine simulator both call it, so
// that the same operations in the same order give the same bits; the graph interpreter, which judges them, never does.
//
// # Data
//
//	View      strided window on raw little-endian bytes: partitions × up to 4 free axes, byte steps   view.go
//	cursor    walk of a view in order, axes merged where they are contiguous                          view.go
//	Scratch   the caller's reusable row buffers; after the first call of a size nothing allocates     view.go
//	Scalar    immediate or per-partition [p,1] operand                                                scalar.go
//	Acc       accumulator register of an engine for the lanes of one instruction                      scalar.go
//	Weights   what LoadWeights leaves in the PE array                                                 matmul.go
//
// # Operations
//
//	codec.go        element types to and from float32
//	row.go          runs of elements, the hot loops of loading and storing
//	alu.go          the AluOp operators on values and rows
//	elementwise.go  TensorTensor, TensorScalar, ScalarTensorTensor, TensorTensorScan, TensorScalarCache, Reciprocal
//	act.go          Activation and Exponential; exp.go the exponential behind them
//	reduce.go       TensorReduce, PartitionReduce, Pool, BNStats, BNAggregate
//	copy.go         Copy (casts, DMA descriptors), Accumulate, CopyPredicated, Select, Memset
//	index.go        Iota, AffineSelect, RangeSelect
//	top8.go         Max8, MaxIndex8, MatchReplace8
//	shuffle.go      StreamTranspose, StreamShuffle, Gather, IndirectCopy, GatherRows, ScatterRows
//	matmul.go       Weights.Load, Matmul, MatmulFull
//
// # Numbers
//
// Operands are read into float32, each ALU operator or function rounds its result to float32 once (products before they
// are added, as float32(a*b)+c, so that no host fuses them), and the result is rounded again when it is written:
// to nearest, ties to even, for floats; fp8 types saturate at their largest finite value, infinities included; integers
// truncate towards zero and saturate, NaN becomes 0. That holds for every instruction, so a conversion to an integer type
// truncates as HLO convert and ONNX Cast do; to round to nearest, add and subtract 1.5·2^23 first.
// The functions of the Scalar engine, pow and rsqrt are computed in float64 and rounded once.
// Subnormals are kept. A computed NaN is stored as the canonical quiet NaN of its type: no bit of a result depends on
// the payload that a host's instruction happens to keep.
// Operators of the bitwise and shift class, and copies between equal types, move raw bits and keep NaN payloads.
// Integers of up to 32 bits take part in arithmetic through float32, exact to 24 bits. The 64-bit types and the packed x4
// types are copied, selected and filled as raw bits; arithmetic on them is Unsupported.
// Sums run in one documented order (ascending partition, then ascending element), whatever fast path is taken.
//
// # Failures
//
// Every operation checks its views once: shapes, counts, types and the full footprint against the bytes given, so a hostile
// program gets an error and never a panic. Errors name the operation, the operand and the figures; callers wrap them with
// the instruction. An operation that fails has written nothing, unless its index operand was bad (its doc says so).
// Rows are read whole before they are written: an output may equal an input element for element (in place); other
// overlaps are the caller's to refuse.
//
// Not made here, and refused by name by whoever meets them: random numbers and Dropout, MX and sparse matmuls, batch-norm
// gradients, custom operators.
package kernel
