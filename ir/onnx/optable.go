package onnx

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// opTable is every operator that is read, by name; those outside the default domain have their domain in front. It is read-only.
var opTable map[string]handler

func init() { // an initialiser of the variable itself would be a cycle: folding looks operators up
	opTable = map[string]handler{
		// Elementwise.
		"Abs": opUnary(graph.OpAbs), "Neg": opUnary(graph.OpNeg), "Exp": opUnary(graph.OpExp), "Log": opUnary(graph.OpLog),
		"Sqrt": opUnary(graph.OpSqrt), "Tanh": opUnary(graph.OpTanh), "Sigmoid": opUnary(graph.OpSigmoid),
		"Sin": opUnary(graph.OpSin), "Cos": opUnary(graph.OpCos), "Tan": opUnary(graph.OpTan), "Erf": opUnary(graph.OpErf),
		"Floor": opUnary(graph.OpFloor), "Ceil": opUnary(graph.OpCeil), "Round": opUnary(graph.OpRoundEven),
		"Sign": opUnary(graph.OpSign), "Not": opUnary(graph.OpNot), "BitwiseNot": opUnary(graph.OpNot),
		"Relu": opUnary(graph.OpRelu), "Softplus": opUnary(graph.OpSoftplus), "Mish": opUnary(graph.OpMish),
		"Reciprocal": opUnaryOf(reciprocal), "Sinh": opUnaryOf(sinh), "Cosh": opUnaryOf(cosh), "Asin": opUnaryOf(asin),
		"Acos": opUnaryOf(acos), "Atan": opUnaryOf(atan), "Asinh": opUnaryOf(asinh), "Acosh": opUnaryOf(acosh),
		"Atanh": opUnaryOf(atanh), "Softsign": opUnaryOf(softsign), "IsNaN": opUnaryOf(isNaN), "IsInf": opIsInf,
		"LeakyRelu": opLeakyRelu, "PRelu": opPRelu, "Elu": opElu, "Selu": opSelu, "Celu": opCelu, "HardSigmoid": opHardSigmoid,
		"HardSwish": opHardSwish, "ThresholdedRelu": opThresholdedRelu, "Shrink": opShrink, "Swish": opSwish, "Gelu": opGelu,
		"Clip": opClip, "Cast": opCast, "CastLike": opCastLike,
		"Add": opBinary(graph.OpAdd), "Sub": opBinary(graph.OpSub), "Mul": opBinary(graph.OpMul), "Div": opBinary(graph.OpDiv),
		"And": opBinary(graph.OpAnd), "Or": opBinary(graph.OpOr), "Xor": opBinary(graph.OpXor),
		"BitwiseAnd": opBinary(graph.OpAnd), "BitwiseOr": opBinary(graph.OpOr), "BitwiseXor": opBinary(graph.OpXor),
		"BitShift": opBitShift, "Mod": opMod, "Pow": opPow, "Where": opWhere,
		"Equal": opCompare(graph.DirEQ), "Greater": opCompare(graph.DirGT), "GreaterOrEqual": opCompare(graph.DirGE),
		"Less": opCompare(graph.DirLT), "LessOrEqual": opCompare(graph.DirLE),
		"Sum": opFold(graph.OpAdd, false), "Mean": opFold(graph.OpAdd, true), "Max": opFold(graph.OpMax, false),
		"Min": opFold(graph.OpMin, false),

		// Shapes and moves.
		"Identity": opIdentity, "Dropout": opDropout, "Constant": opConstant, "ConstantOfShape": opConstantOfShape,
		"Shape": opShape, "Size": opSize, "Range": opRange, "Reshape": opReshape, "Flatten": opFlatten, "Squeeze": opSqueeze,
		"Unsqueeze": opUnsqueeze, "Transpose": opTranspose, "Concat": opConcat, "Split": opSplit, "Slice": opSlice, "Pad": opPad,
		"Expand": opExpand, "Tile": opTile, "DepthToSpace": opDepthToSpace, "SpaceToDepth": opSpaceToDepth,

		// Indices.
		"Gather": opGather, "GatherElements": opGatherElements, "GatherND": opGatherND, "Scatter": opScatterElements,
		"ScatterElements": opScatterElements, "ScatterND": opScatterND, "TensorScatter": opTensorScatter, "OneHot": opOneHot,
		"Trilu": opTrilu, "EyeLike": opEyeLike,

		// Reductions.
		"ReduceSum":       opReduce(graph.ReduceSum, nil, nil),
		"ReduceMax":       opReduce(graph.ReduceMax, nil, nil),
		"ReduceMin":       opReduce(graph.ReduceMin, nil, nil),
		"ReduceProd":      opReduce(graph.ReduceProd, nil, nil),
		"ReduceL1":        opReduce(graph.ReduceSum, abs, nil),
		"ReduceL2":        opReduce(graph.ReduceSum, square, sqrtOf),
		"ReduceLogSum":    opReduce(graph.ReduceSum, nil, logOf),
		"ReduceSumSquare": opReduce(graph.ReduceSum, square, nil),
		"ReduceMean":      opReduceMean, "ReduceLogSumExp": opReduceLogSumExp,
		"ArgMax": opArg(graph.OpArgMax), "ArgMin": opArg(graph.OpArgMin), "CumSum": opCumSum, "TopK": opTopK,
		"Softmax": opSoftmax, "LogSoftmax": opLogSoftmax, "Hardmax": opHardmax,

		// Contractions and what surrounds them.
		"MatMul": opMatMul, "Gemm": opGemm, "Einsum": opEinsum, "MatMulInteger": opMatMulInteger,
		"Conv": opConv, "ConvTranspose": opConvTranspose, "MaxPool": opMaxPool, "AveragePool": opAveragePool,
		"GlobalAveragePool": opGlobalAveragePool, "GlobalMaxPool": opGlobalMaxPool, "LRN": opLRN,
		"BatchNormalization": opBatchNorm, "InstanceNormalization": opInstanceNorm, "GroupNormalization": opGroupNorm,
		"LayerNormalization": opLayerNorm, "RMSNormalization": opRMSNorm, "MeanVarianceNormalization": opMeanVarianceNorm,
		"LpNormalization": opLpNorm, "Attention": opAttention, "RotaryEmbedding": opRotary,
		"QuantizeLinear": opQuantize, "DequantizeLinear": opDequantize, "DynamicQuantizeLinear": opDynamicQuantize,

		// ONNX Runtime's own.
		"com.microsoft.Gelu":      opUnary(graph.OpGelu),
		"com.microsoft.BiasGelu":  opBiasGelu(graph.OpGelu),
		"com.microsoft.FastGelu":  opBiasGelu(graph.OpGeluTanh),
		"com.microsoft.QuickGelu": opQuickGelu, "com.microsoft.FusedMatMul": opFusedMatMul,
		"com.microsoft.SkipLayerNormalization":           opSkipNorm(false),
		"com.microsoft.SkipSimplifiedLayerNormalization": opSkipNorm(true),
		"SimplifiedLayerNormalization":                   opRMSNorm,
		"RMSNorm":                                        opLenient(opRMSNorm),
	}
}

// SupportedOps lists the operators that are read, sorted. Those outside the default domain have their domain in front.
func SupportedOps() []string {
	names := make([]string, 0, len(opTable))
	for name := range opTable {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Refusals says what of the supported operators is refused, one line each, sorted: for documentation.
func Refusals() []string {
	return []string{
		"BatchNormalization: training mode; spatial = 0",
		"Cast: to and from string and complex",
		"Einsum: a letter twice in one operand",
		"If, Loop, Scan and every other operator with a subgraph",
		"MaxPool: the indices",
		"Pad: reflect and wrap by more than the dimension",
		"RMSNorm, which is outside the standard, unless the reader is lenient",
		"Reshape, Expand, Slice, Tile, Range, ConstantOfShape, Pad, TopK, OneHot: shape inputs that are not known when the model is read",
		"sequences, maps, optionals, sparse tensors, string constants",
		"symbolic dimensions without a size",
	}
}
