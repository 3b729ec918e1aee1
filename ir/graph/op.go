package graph

// Op is an operator.
type Op uint8

// OpClass groups operators by the form of their operands and result.
type OpClass uint8

const (
	// ClassOpaque operators are read, named and kept; nothing evaluates or lowers them.
	ClassOpaque OpClass = iota
	// ClassLeaf operators have no operands.
	ClassLeaf
	// ClassUnary operators map one element to one, shape unchanged.
	ClassUnary
	// ClassBinary operators map two equal shapes elementwise.
	ClassBinary
	// ClassTernary are select and clamp.
	ClassTernary
	// ClassMove operators rearrange elements without arithmetic.
	ClassMove
	// ClassReduce operators combine elements along dimensions or windows.
	ClassReduce
	// ClassContract operators are dot and convolution.
	ClassContract
	// ClassNorm are the normalisation composites.
	ClassNorm
	// ClassControl operators refer to other computations or make and take tuples.
	ClassControl
	// ClassCollective operators talk to other replicas.
	ClassCollective
)

const (
	OpNone Op = iota

	// Leaves.
	OpParameter // attr AttrIndex
	OpConstant  // Row.Const
	OpIota      // attr AttrDim

	// Unary.
	OpAbs
	OpNeg
	OpExp
	OpExpm1
	OpLog
	OpLog1p
	OpSqrt
	OpRsqrt
	OpCbrt
	OpTanh
	OpSigmoid
	OpSin
	OpCos
	OpTan
	OpErf
	OpFloor
	OpCeil
	OpRoundEven
	OpRoundAway
	OpSign
	OpNot
	OpIsFinite
	OpPopcnt
	OpClz
	OpRelu      // max(x, 0), NaN stays NaN
	OpLeakyRelu // x < 0 ? alpha·x : x, attr AttrAlpha
	OpGelu      // x·Φ(x) by erf
	OpGeluTanh  // x/2·(1+tanh(√(2/π)(x+0.044715x³)))
	OpSilu      // x·sigmoid(x)
	OpSoftplus  // log(1+exp(x))
	OpMish      // x·tanh(softplus(x))
	OpConvert   // to the result's element type
	OpBitcastConvert
	OpReducePrecision // attrs AttrExponent, AttrMantissa
	OpCopy            // identity
	OpBarrier         // optimization-barrier: identity (also on tuples)

	// Binary.
	OpAdd
	OpSub
	OpMul
	OpDiv
	OpMax
	OpMin
	OpPow
	OpRem
	OpAnd
	OpOr
	OpXor
	OpShl
	OpShrLogical
	OpShrArith
	OpAtan2
	OpCompare // attrs AttrDirection (Dir), AttrTotal
	OpComplex

	// Ternary.
	OpSelect // pred (same shape or scalar), on true, on false
	OpClamp  // min, x, max (min and max may be scalars)

	// Moves.
	OpBroadcast // attr AttrDims: result dim of each operand dim (XLA broadcast dimensions)
	OpReshape
	OpBitcast // a reshape, in layouts that we do not keep
	OpTranspose
	OpSlice  // attrs AttrStart, AttrLimit, AttrStride
	OpConcat // attr AttrDim
	OpPad    // operand, value; attrs AttrLow, AttrHigh, AttrInterior
	OpReverse
	OpDynamicSlice       // operand, index scalars...; attr AttrSizes
	OpDynamicUpdateSlice // operand, update, index scalars...
	OpGather             // operand, indices; attrs of XLA gather
	OpScatter            // operand(s), indices, update(s); attrs of XLA scatter; calls[0]
	OpTake               // operand, indices; attr AttrDim: result = operand with that dim replaced by the indices' dims (ONNX Gather); indices in [-n, n)
	OpTakeAlong          // operand, indices of the same rank; attr AttrDim (ONNX GatherElements)

	// Reductions.
	OpReduce       // operand, init; attrs AttrDims, AttrKind (ReduceKind) when calls[0] is a plain combiner
	OpReduceWindow // operand, init; attrs AttrWindow…, AttrKind
	OpSelectAndScatter
	OpArgMax  // attr AttrDim, AttrSelectLast; result without the dim, integer
	OpArgMin  // as OpArgMax
	OpAvgPool // operand; attrs AttrWindow…, AttrCountPad: mean over the window, padding counted or not
	OpCumSum  // attr AttrDim, AttrExclusive, AttrReverse
	OpSort    // operands; attrs AttrDim, AttrStable; calls[0]
	OpTopK    // operand; attrs AttrK, AttrLargest; result (values, indices) over the last dim
	OpMap

	// Contractions.
	OpDot  // attrs AttrLhsBatch, AttrLhsContract, AttrRhsBatch, AttrRhsContract; result batch, lhs free, rhs free
	OpConv // lhs, rhs; attrs AttrWindow…, AttrDimLabels, AttrGroups, AttrBatchGroups

	// Normalisation.
	OpBatchNormInference // x, scale, offset, mean, variance; attrs AttrEpsilon, AttrFeature
	OpBatchNormTraining  // x, scale, offset → (y, mean, variance)
	OpBatchNormGrad
	OpLRN // x; attrs AttrSize, AttrAlpha, AttrBeta, AttrBias over dim 1 (ONNX LRN)

	// Control.
	OpTuple
	OpGetTupleElement // attr AttrIndex
	OpCall            // calls[0]
	OpFusion          // calls[0]
	OpWhile           // state; calls[0] = condition, calls[1] = body
	OpConditional     // selector, operands...; calls = branches
	OpCustomCall      // attr AttrTarget
	OpAfterAll
	OpAddDependency
	OpPartitionID
	OpReplicaID
	OpGetDimensionSize
	OpSetDimensionSize
	OpDomain
	OpRng
	OpRngBitGenerator
	OpRngGetAndUpdateState
	OpInfeed
	OpOutfeed
	OpSend
	OpSendDone
	OpRecv
	OpRecvDone
	OpCopyStart
	OpCopyDone
	OpAsyncStart
	OpAsyncUpdate
	OpAsyncDone
	OpFft
	OpCholesky
	OpTriangularSolve
	OpReal
	OpImag
	OpRaggedDot
	OpStochasticConvert

	// Collectives.
	OpAllReduce
	OpAllReduceStart
	OpAllReduceDone
	OpAllGather
	OpAllGatherStart
	OpAllGatherDone
	OpReduceScatter
	OpAllToAll
	OpRaggedAllToAll
	OpCollectivePermute
	OpCollectivePermuteStart
	OpCollectivePermuteDone
	OpCollectiveBroadcast

	// OpOther is an operator outside this table; its name is attr AttrTarget.
	OpOther
	NumOps
)

type opInfo struct {
	name  string // HLO spelling where HLO has the operator
	class OpClass
	arity int8 // operands, -1 any
}

var ops = [NumOps]opInfo{
	OpNone:      {"none", ClassOpaque, 0},
	OpParameter: {"parameter", ClassLeaf, 0}, OpConstant: {"constant", ClassLeaf, 0}, OpIota: {"iota", ClassLeaf, 0},

	OpAbs: {"abs", ClassUnary, 1}, OpNeg: {"negate", ClassUnary, 1}, OpExp: {"exponential", ClassUnary, 1},
	OpExpm1: {"exponential-minus-one", ClassUnary, 1}, OpLog: {"log", ClassUnary, 1}, OpLog1p: {"log-plus-one", ClassUnary, 1},
	OpSqrt: {"sqrt", ClassUnary, 1}, OpRsqrt: {"rsqrt", ClassUnary, 1}, OpCbrt: {"cbrt", ClassUnary, 1},
	OpTanh: {"tanh", ClassUnary, 1}, OpSigmoid: {"logistic", ClassUnary, 1}, OpSin: {"sine", ClassUnary, 1},
	OpCos: {"cosine", ClassUnary, 1}, OpTan: {"tan", ClassUnary, 1}, OpErf: {"erf", ClassUnary, 1},
	OpFloor: {"floor", ClassUnary, 1}, OpCeil: {"ceil", ClassUnary, 1},
	OpRoundEven: {"round-nearest-even", ClassUnary, 1}, OpRoundAway: {"round-nearest-afz", ClassUnary, 1},
	OpSign: {"sign", ClassUnary, 1}, OpNot: {"not", ClassUnary, 1}, OpIsFinite: {"is-finite", ClassUnary, 1},
	OpPopcnt: {"popcnt", ClassUnary, 1}, OpClz: {"count-leading-zeros", ClassUnary, 1},
	OpRelu: {"relu", ClassUnary, 1}, OpLeakyRelu: {"leaky-relu", ClassUnary, 1}, OpGelu: {"gelu", ClassUnary, 1},
	OpGeluTanh: {"gelu-tanh", ClassUnary, 1}, OpSilu: {"silu", ClassUnary, 1}, OpSoftplus: {"softplus", ClassUnary, 1},
	OpMish: {"mish", ClassUnary, 1}, OpConvert: {"convert", ClassUnary, 1},
	OpBitcastConvert: {"bitcast-convert", ClassUnary, 1}, OpReducePrecision: {"reduce-precision", ClassUnary, 1},
	OpCopy: {"copy", ClassUnary, 1}, OpBarrier: {"opt-barrier", ClassUnary, 1},

	OpAdd: {"add", ClassBinary, 2}, OpSub: {"subtract", ClassBinary, 2}, OpMul: {"multiply", ClassBinary, 2},
	OpDiv: {"divide", ClassBinary, 2}, OpMax: {"maximum", ClassBinary, 2}, OpMin: {"minimum", ClassBinary, 2},
	OpPow: {"power", ClassBinary, 2}, OpRem: {"remainder", ClassBinary, 2}, OpAnd: {"and", ClassBinary, 2},
	OpOr: {"or", ClassBinary, 2}, OpXor: {"xor", ClassBinary, 2}, OpShl: {"shift-left", ClassBinary, 2},
	OpShrLogical: {"shift-right-logical", ClassBinary, 2}, OpShrArith: {"shift-right-arithmetic", ClassBinary, 2},
	OpAtan2: {"atan2", ClassBinary, 2}, OpCompare: {"compare", ClassBinary, 2}, OpComplex: {"complex", ClassBinary, 2},

	OpSelect: {"select", ClassTernary, 3}, OpClamp: {"clamp", ClassTernary, 3},

	OpBroadcast: {"broadcast", ClassMove, 1}, OpReshape: {"reshape", ClassMove, 1}, OpBitcast: {"bitcast", ClassMove, 1},
	OpTranspose: {"transpose", ClassMove, 1}, OpSlice: {"slice", ClassMove, 1}, OpConcat: {"concatenate", ClassMove, -1},
	OpPad: {"pad", ClassMove, 2}, OpReverse: {"reverse", ClassMove, 1}, OpDynamicSlice: {"dynamic-slice", ClassMove, -1},
	OpDynamicUpdateSlice: {"dynamic-update-slice", ClassMove, -1}, OpGather: {"gather", ClassMove, 2},
	OpScatter: {"scatter", ClassMove, -1}, OpTake: {"take", ClassMove, 2}, OpTakeAlong: {"take-along", ClassMove, 2},

	OpReduce: {"reduce", ClassReduce, -1}, OpReduceWindow: {"reduce-window", ClassReduce, -1},
	OpSelectAndScatter: {"select-and-scatter", ClassOpaque, 3}, OpArgMax: {"argmax", ClassReduce, 1},
	OpArgMin: {"argmin", ClassReduce, 1}, OpAvgPool: {"avg-pool", ClassReduce, 1}, OpCumSum: {"cumsum", ClassReduce, 1},
	OpSort: {"sort", ClassReduce, -1}, OpTopK: {"topk", ClassReduce, 1}, OpMap: {"map", ClassOpaque, -1},

	OpDot: {"dot", ClassContract, 2}, OpConv: {"convolution", ClassContract, 2},

	OpBatchNormInference: {"batch-norm-inference", ClassNorm, 5}, OpBatchNormTraining: {"batch-norm-training", ClassNorm, 3},
	OpBatchNormGrad: {"batch-norm-grad", ClassNorm, 5}, OpLRN: {"lrn", ClassNorm, 1},

	OpTuple: {"tuple", ClassControl, -1}, OpGetTupleElement: {"get-tuple-element", ClassControl, 1},
	OpCall: {"call", ClassControl, -1}, OpFusion: {"fusion", ClassControl, -1}, OpWhile: {"while", ClassControl, 1},
	OpConditional: {"conditional", ClassControl, -1}, OpCustomCall: {"custom-call", ClassControl, -1},
	OpAfterAll: {"after-all", ClassControl, -1}, OpAddDependency: {"add-dependency", ClassControl, 2},
	OpPartitionID: {"partition-id", ClassControl, 0}, OpReplicaID: {"replica-id", ClassControl, 0},
	OpGetDimensionSize: {"get-dimension-size", ClassControl, 1}, OpSetDimensionSize: {"set-dimension-size", ClassControl, 2},
	OpDomain: {"domain", ClassControl, 1}, OpRng: {"rng", ClassOpaque, -1},
	OpRngBitGenerator: {"rng-bit-generator", ClassOpaque, 1}, OpRngGetAndUpdateState: {"rng-get-and-update-state", ClassOpaque, 0},
	OpInfeed: {"infeed", ClassOpaque, -1}, OpOutfeed: {"outfeed", ClassOpaque, -1}, OpSend: {"send", ClassOpaque, -1},
	OpSendDone: {"send-done", ClassOpaque, -1}, OpRecv: {"recv", ClassOpaque, -1}, OpRecvDone: {"recv-done", ClassOpaque, -1},
	OpCopyStart: {"copy-start", ClassOpaque, 1}, OpCopyDone: {"copy-done", ClassOpaque, 1},
	OpAsyncStart: {"async-start", ClassOpaque, -1}, OpAsyncUpdate: {"async-update", ClassOpaque, 1},
	OpAsyncDone: {"async-done", ClassOpaque, 1}, OpFft: {"fft", ClassOpaque, 1}, OpCholesky: {"cholesky", ClassOpaque, 1},
	OpTriangularSolve: {"triangular-solve", ClassOpaque, 2}, OpReal: {"real", ClassOpaque, 1}, OpImag: {"imag", ClassOpaque, 1},
	OpRaggedDot: {"ragged-dot", ClassOpaque, -1}, OpStochasticConvert: {"stochastic-convert", ClassOpaque, 2},

	OpAllReduce: {"all-reduce", ClassCollective, -1}, OpAllReduceStart: {"all-reduce-start", ClassCollective, -1},
	OpAllReduceDone: {"all-reduce-done", ClassCollective, 1}, OpAllGather: {"all-gather", ClassCollective, -1},
	OpAllGatherStart: {"all-gather-start", ClassCollective, -1}, OpAllGatherDone: {"all-gather-done", ClassCollective, 1},
	OpReduceScatter: {"reduce-scatter", ClassCollective, -1}, OpAllToAll: {"all-to-all", ClassCollective, -1},
	OpRaggedAllToAll: {"ragged-all-to-all", ClassCollective, -1}, OpCollectivePermute: {"collective-permute", ClassCollective, -1},
	OpCollectivePermuteStart: {"collective-permute-start", ClassCollective, -1},
	OpCollectivePermuteDone:  {"collective-permute-done", ClassCollective, 1},
	OpCollectiveBroadcast:    {"collective-broadcast", ClassCollective, -1},
	OpOther:                  {"other", ClassOpaque, -1},
}

// String is the HLO spelling, or ours for an operator that HLO lacks.
func (o Op) String() string {
	if o < NumOps {
		return ops[o].name
	}
	return "op?"
}

// Class is the form of the operator.
func (o Op) Class() OpClass {
	if o < NumOps {
		return ops[o].class
	}
	return ClassOpaque
}

// Arity is the number of operands, or -1 where it varies.
func (o Op) Arity() int {
	if o < NumOps {
		return int(ops[o].arity)
	}
	return -1
}

var opByName = func() map[string]Op {
	m := make(map[string]Op, NumOps)
	for o := OpParameter; o < NumOps; o++ {
		m[ops[o].name] = o
	}
	m["optimization-barrier"] = OpBarrier
	m["cosine"], m["sine"] = OpCos, OpSin
	return m
}()

// ParseOp finds an operator by its spelling in bytes, without allocating.
func ParseOp(name []byte) (Op, bool) {
	o, ok := opByName[string(name)]
	return o, ok
}

// Dir is the direction of OpCompare.
type Dir uint8

const (
	DirEQ Dir = iota
	DirNE
	DirLT
	DirLE
	DirGT
	DirGE
)

// ReduceKind is what OpReduce and OpReduceWindow combine with, when the combiner is one plain operator.
type ReduceKind uint8

const (
	ReduceOther ReduceKind = iota // calls[0] says; not evaluated by pattern
	ReduceSum
	ReduceMax
	ReduceMin
	ReduceProd
	ReduceAnd
	ReduceOr
)
