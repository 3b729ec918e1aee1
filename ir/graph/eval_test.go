package graph

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

var inf, nan = math.Inf(1), math.NaN()

func vec(b *Builder, d Dtype, vals ...float64) Node {
	return mat(b, d, []int64{int64(len(vals))}, vals...)
}

// mat is a dense constant of any type.
func mat(b *Builder, d Dtype, dims []int64, vals ...float64) Node {
	return b.Dense(d, dims, TensorOf(d, dims, vals...).Data)
}

func seq(n int) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = float64(i)
	}
	return s
}

// evalOne runs a graph whose outputs are the nodes, and gives the first output.
func evalOne(t *testing.T, build func(b *Builder) Node, inputs ...Tensor) (Tensor, error) {
	t.Helper()
	var g Graph
	b := Begin(&g, "main")
	n := build(b)
	c, err := b.End(n)
	if err != nil {
		t.Fatal(err)
	}
	g.Entry = c
	b.Output("y", n)
	if err := Check(&g); err != nil {
		t.Fatal(err)
	}
	outs, err := Eval(&g, inputs)
	if err != nil {
		return Tensor{}, err
	}
	return outs[0], nil
}

type evalCase struct {
	name  string
	build func(b *Builder) Node
	want  []float64
	tol   float64
}

func un(op Op, d Dtype, vals ...float64) func(b *Builder) Node {
	return func(b *Builder) Node { return b.Unary(op, vec(b, d, vals...)) }
}

func bin(op Op, d Dtype, x, y []float64) func(b *Builder) Node {
	return func(b *Builder) Node { return b.Binary(op, vec(b, d, x...), vec(b, d, y...)) }
}

type fs = []float64

var evalCases = []evalCase{
	{"abs", un(OpAbs, F32, -1, 2, -inf), fs{1, 2, inf}, 0},
	{"abs s8 wraps", un(OpAbs, S8, -128, -1), fs{-128, 1}, 0},
	{"neg", un(OpNeg, F32, 1, -2), fs{-1, 2}, 0},
	{"neg u8", un(OpNeg, U8, 1, 0), fs{255, 0}, 0},
	{"exp", un(OpExp, F32, 0, 1, -inf), fs{1, math.E, 0}, 1e-7},
	{"expm1", un(OpExpm1, F64, 1e-10), fs{1.00000000005e-10}, 1e-15},
	{"log", un(OpLog, F32, 1, 0, -1), fs{0, -inf, nan}, 0},
	{"log1p", un(OpLog1p, F64, 1e-10), fs{9.9999999995e-11}, 1e-15},
	{"sqrt", un(OpSqrt, F32, 4, 2), fs{2, math.Sqrt2}, 1e-7},
	{"rsqrt", un(OpRsqrt, F32, 4, 0), fs{0.5, inf}, 0},
	{"cbrt", un(OpCbrt, F32, -27), fs{-3}, 0},
	{"tanh", un(OpTanh, F32, 0, 1, 100), fs{0, 0.7615942, 1}, 1e-7},
	{"sigmoid", un(OpSigmoid, F32, 0, -1000, 1), fs{0.5, 0, 0.7310586}, 1e-7},
	{"sin", un(OpSin, F32, 0, math.Pi/2), fs{0, 1}, 1e-7},
	{"cos", un(OpCos, F32, 0, math.Pi), fs{1, -1}, 1e-7},
	{"tan", un(OpTan, F32, math.Pi/4), fs{1}, 1e-6},
	{"erf", un(OpErf, F32, 0, 1), fs{0, 0.8427008}, 1e-7},
	{"floor", un(OpFloor, F32, -1.5, 1.5), fs{-2, 1}, 0},
	{"ceil", un(OpCeil, F32, -1.5, 1.5), fs{-1, 2}, 0},
	{"round even", un(OpRoundEven, F32, 0.5, 1.5, -2.5), fs{0, 2, -2}, 0},
	{"round away", un(OpRoundAway, F32, 0.5, 1.5, -2.5), fs{1, 2, -3}, 0},
	{"sign", un(OpSign, F32, -3, 0, 5, nan), fs{-1, 0, 1, nan}, 0},
	{"sign s32", un(OpSign, S32, -3, 0, 5), fs{-1, 0, 1}, 0},
	{"not pred", un(OpNot, Bool, 1, 0), fs{0, 1}, 0},
	{"not u8", un(OpNot, U8, 1), fs{254}, 0},
	{"is-finite", un(OpIsFinite, F32, 1, inf, nan), fs{1, 0, 0}, 0},
	{"popcnt", un(OpPopcnt, S8, -1, 5), fs{8, 2}, 0},
	{"clz", un(OpClz, S16, 1, -1, 0), fs{15, 0, 16}, 0},
	{"relu", un(OpRelu, F32, -1, 2, nan), fs{0, 2, nan}, 0},
	{"leaky relu", func(b *Builder) Node { return b.LeakyRelu(vec(b, F32, -2, 2), 0.25) }, fs{-0.5, 2}, 0},
	{"gelu", un(OpGelu, F32, 1, -1, 0), fs{0.8413447, -0.15865526, 0}, 1e-6},
	{"gelu tanh", un(OpGeluTanh, F32, 1), fs{0.841192}, 1e-6},
	{"silu", un(OpSilu, F32, 1), fs{0.7310586}, 1e-6},
	{"softplus", un(OpSoftplus, F32, 0, 1000, -1000), fs{math.Ln2, 1000, 0}, 1e-6},
	{"mish", un(OpMish, F32, 1), fs{0.8650984}, 1e-6},
	{"bf16 rounds", un(OpExp, BF16, 1), fs{2.71875}, 0},
	{"f16 rounds", un(OpSqrt, F16, 2), fs{1.4140625}, 0},
	{"convert f32 s8", func(b *Builder) Node { return b.Convert(vec(b, F32, 1.9, -300, 300, nan), S8) }, fs{1, -128, 127, 0}, 0},
	{"convert s32 u8 wraps", func(b *Builder) Node { return b.Convert(vec(b, S32, 257, -1), U8) }, fs{1, 255}, 0},
	{"convert s32 f32", func(b *Builder) Node { return b.Convert(vec(b, S32, 16777217), F32) }, fs{16777216}, 0},
	{"convert f32 pred", func(b *Builder) Node { return b.Convert(vec(b, F32, 0.1, 0, nan), Bool) }, fs{1, 0, 1}, 0},
	{"convert f64 bf16", func(b *Builder) Node { return b.Convert(vec(b, F64, 1+1.0/256+1e-12), BF16) }, fs{1 + 1.0/128}, 0},
	{"bitcast-convert", func(b *Builder) Node { return b.Node(OpBitcastConvert, b.G.Tensor(S32), []Node{vec(b, F32, 1)}) }, fs{0x3f800000}, 0},
	{"reduce-precision", func(b *Builder) Node {
		return b.Node(OpReducePrecision, 0, []Node{vec(b, F32, 1.2345, 1e30, 1e-30)}, b.G.IntsAttr(AttrExponent, 5), b.G.IntsAttr(AttrMantissa, 2))
	}, fs{1.25, inf, 0}, 0},

	{"add", bin(OpAdd, F32, fs{1, 2}, fs{3, 4}), fs{4, 6}, 0},
	{"add s8 wraps", bin(OpAdd, S8, fs{127}, fs{1}), fs{-128}, 0},
	{"add pred is or", bin(OpAdd, Bool, fs{1, 1, 0}, fs{1, 0, 0}), fs{1, 1, 0}, 0},
	{"sub", bin(OpSub, F32, fs{1}, fs{3}), fs{-2}, 0},
	{"mul bf16 rounds", bin(OpMul, BF16, fs{1.0078125}, fs{1.0078125}), fs{1.015625}, 0},
	{"div", bin(OpDiv, F32, fs{1, 1, 0}, fs{4, 0, 0}), fs{0.25, inf, nan}, 0},
	{"div s32", bin(OpDiv, S32, fs{-7, 7, 5}, fs{2, -2, 0}), fs{-3, -3, -1}, 0},
	{"rem", bin(OpRem, F32, fs{-7, 5.5}, fs{2, 2}), fs{-1, 1.5}, 0},
	{"rem s32", bin(OpRem, S32, fs{-7, 5}, fs{2, 0}), fs{-1, 5}, 0},
	{"max", bin(OpMax, F32, fs{1, nan, 2}, fs{3, 1, -2}), fs{3, nan, 2}, 0},
	{"min", bin(OpMin, F32, fs{1, 1}, fs{3, nan}), fs{1, nan}, 0},
	{"max u64", func(b *Builder) Node { return b.Max(b.Ints(U64, []int64{2}, -1, 1), b.Ints(U64, []int64{2}, 1, 2)) }, fs{math.MaxUint64, 2}, 0},
	{"pow", bin(OpPow, F32, fs{2, 9}, fs{10, 0.5}), fs{1024, 3}, 0},
	{"pow s32", bin(OpPow, S32, fs{3, -1, 2}, fs{4, -3, -1}), fs{81, -1, 0}, 0},
	{"and", bin(OpAnd, U8, fs{12}, fs{10}), fs{8}, 0},
	{"or", bin(OpOr, U8, fs{12}, fs{10}), fs{14}, 0},
	{"xor", bin(OpXor, U8, fs{12}, fs{10}), fs{6}, 0},
	{"shl", bin(OpShl, S8, fs{1, 1, 1}, fs{7, 3, 8}), fs{-128, 8, 0}, 0},
	{"shr logical", bin(OpShrLogical, S8, fs{-128, -1}, fs{7, 9}), fs{1, 0}, 0},
	{"shr arith", bin(OpShrArith, S8, fs{-128, -1}, fs{6, 9}), fs{-2, -1}, 0},
	{"atan2", bin(OpAtan2, F32, fs{1}, fs{1}), fs{math.Pi / 4}, 1e-7},
	{"compare", func(b *Builder) Node { return b.Compare(DirLE, vec(b, F32, 1, 2, nan), vec(b, F32, 1, 1, 1)) }, fs{1, 0, 0}, 0},
	{"compare u64", func(b *Builder) Node {
		return b.Compare(DirGT, b.Ints(U64, []int64{1}, -1), b.Ints(U64, []int64{1}, 1))
	}, fs{1}, 0},
	{"select", func(b *Builder) Node {
		return b.Select(vec(b, Bool, 1, 0), vec(b, BF16, 1, 2), vec(b, BF16, 3, 4))
	}, fs{1, 4}, 0},
	{"select scalar", func(b *Builder) Node { return b.Select(b.Scalar(Bool, 0), vec(b, F32, 1, 2), vec(b, F32, 3, 4)) }, fs{3, 4}, 0},
	{"clamp", func(b *Builder) Node { return b.Clamp(b.Scalar(F32, -1), vec(b, F32, -3, 0, 3), b.Scalar(F32, 1)) }, fs{-1, 0, 1}, 0},

	{"iota", func(b *Builder) Node { return b.Iota(S32, []int64{2, 3}, 1) }, fs{0, 1, 2, 0, 1, 2}, 0},
	{"broadcast", func(b *Builder) Node { return b.Broadcast(vec(b, F32, 1, 2), []int64{0}, []int64{2, 2}) }, fs{1, 1, 2, 2}, 0},
	{"broadcast swapped", func(b *Builder) Node {
		return b.Broadcast(mat(b, F32, []int64{2, 2}, 1, 2, 3, 4), []int64{1, 0}, []int64{2, 2})
	}, fs{1, 3, 2, 4}, 0},
	{"transpose", func(b *Builder) Node { return b.Transpose(mat(b, U8, []int64{2, 3}, seq(6)...), 1, 0) }, fs{0, 3, 1, 4, 2, 5}, 0},
	{"reverse", func(b *Builder) Node { return b.Reverse(mat(b, S16, []int64{2, 3}, seq(6)...), 1) }, fs{2, 1, 0, 5, 4, 3}, 0},
	{"slice", func(b *Builder) Node {
		return b.Slice(mat(b, F32, []int64{3, 4}, seq(12)...), []int64{1, 0}, []int64{3, 4}, []int64{1, 2})
	}, fs{4, 6, 8, 10}, 0},
	{"concat", func(b *Builder) Node {
		return b.Concat(1, mat(b, F32, []int64{2, 1}, 1, 2), mat(b, F32, []int64{2, 2}, 3, 4, 5, 6))
	}, fs{1, 3, 4, 2, 5, 6}, 0},
	{"pad", func(b *Builder) Node {
		return b.Pad(vec(b, F32, 1, 2, 3), b.Scalar(F32, 9), []int64{1}, []int64{1}, []int64{1})
	}, fs{9, 1, 9, 2, 9, 3, 9}, 0},
	{"pad crops", func(b *Builder) Node {
		return b.Pad(vec(b, F32, 1, 2, 3), b.Scalar(F32, 9), []int64{-1}, []int64{-1}, []int64{1})
	}, fs{9, 2, 9}, 0},
	{"dynamic-slice clamps", func(b *Builder) Node {
		return b.DynamicSlice(vec(b, F32, seq(5)...), []Node{b.Scalar(S32, 4)}, 2)
	}, fs{3, 4}, 0},
	{"dynamic-update-slice", func(b *Builder) Node {
		return b.DynamicUpdateSlice(mat(b, F32, []int64{2, 3}, seq(6)...), mat(b, F32, []int64{1, 2}, 8, 9), b.Scalar(S32, 1), b.Scalar(S32, -5))
	}, fs{0, 1, 2, 8, 9, 5}, 0},
	{"take", func(b *Builder) Node {
		return b.Take(mat(b, F32, []int64{2, 3}, seq(6)...), mat(b, S64, []int64{2}, -1, 0), 1)
	}, fs{2, 0, 5, 3}, 0},
	{"take-along", func(b *Builder) Node {
		return b.TakeAlong(mat(b, F32, []int64{2, 3}, seq(6)...), mat(b, S64, []int64{2, 2}, 0, -1, 1, 1), 1)
	}, fs{0, 2, 4, 4}, 0},
	{"gather", func(b *Builder) Node {
		g := b.G
		return b.Node(OpGather, 0, []Node{mat(b, F32, []int64{4, 2}, seq(8)...), mat(b, S32, []int64{3, 1}, 3, 0, 9)}, g.IntsAttr(AttrOffsetDims, 1),
			g.IntsAttr(AttrCollapsedDims, 0), g.IntsAttr(AttrStartIndexMap, 0), g.IntsAttr(AttrIndexVectorDim, 1), g.IntsAttr(AttrSliceSizes, 1, 2))
	}, fs{6, 7, 0, 1, 6, 7}, 0},
	{"gather batched", func(b *Builder) Node {
		g := b.G
		return b.Node(OpGather, 0, []Node{mat(b, F32, []int64{2, 3}, seq(6)...), mat(b, S32, []int64{2, 2, 1}, 0, 2, 1, 1)}, g.IntsAttr(AttrCollapsedDims, 1),
			g.IntsAttr(AttrOperandBatch, 0), g.IntsAttr(AttrIndicesBatch, 0), g.IntsAttr(AttrStartIndexMap, 1), g.IntsAttr(AttrIndexVectorDim, 2), g.IntsAttr(AttrSliceSizes, 1, 1))
	}, fs{0, 2, 4, 4}, 0},
	{"scatter add", func(b *Builder) Node {
		g := b.G
		return b.Node(OpScatter, 0, []Node{mat(b, F32, []int64{3, 2}, seq(6)...), mat(b, S32, []int64{3, 1}, 0, 0, 7), mat(b, F32, []int64{3, 2}, 1, 1, 1, 1, 5, 5)},
			g.IntsAttr(AttrUpdateWindowDims, 1), g.IntsAttr(AttrInsertedDims, 0), g.IntsAttr(AttrScatterDims, 0), g.IntsAttr(AttrIndexVectorDim, 1), g.IntsAttr(AttrKind, int64(ReduceSum)))
	}, fs{2, 3, 2, 3, 4, 5}, 0},
	{"scatter assigns", func(b *Builder) Node {
		g := b.G
		return b.Node(OpScatter, 0, []Node{vec(b, S32, 1, 2, 3), mat(b, S32, []int64{2, 1}, 2, 0), vec(b, S32, 8, 9)},
			g.IntsAttr(AttrInsertedDims, 0), g.IntsAttr(AttrScatterDims, 0), g.IntsAttr(AttrIndexVectorDim, 1))
	}, fs{9, 2, 8}, 0},

	{"reduce sum rows", func(b *Builder) Node { return b.Reduce(ReduceSum, mat(b, F32, []int64{2, 3}, seq(6)...), 1) }, fs{3, 12}, 0},
	{"reduce sum columns", func(b *Builder) Node { return b.Reduce(ReduceSum, mat(b, F32, []int64{2, 3}, seq(6)...), 0) }, fs{3, 5, 7}, 0},
	{"reduce outer and inner", func(b *Builder) Node { return b.Reduce(ReduceSum, mat(b, S32, []int64{2, 2, 2}, seq(8)...), 0, 2) }, fs{10, 18}, 0},
	{"reduce max", func(b *Builder) Node { return b.Reduce(ReduceMax, mat(b, F32, []int64{2, 2}, -1, -2, nan, 0), 1) }, fs{-1, nan}, 0},
	{"reduce min s8", func(b *Builder) Node { return b.Reduce(ReduceMin, vec(b, S8, 5, -7, 3), 0) }, fs{-7}, 0},
	{"reduce product", func(b *Builder) Node { return b.Reduce(ReduceProd, vec(b, F64, 2, 3, 4), 0) }, fs{24}, 0},
	{"reduce and", func(b *Builder) Node { return b.Reduce(ReduceAnd, vec(b, Bool, 1, 0, 1), 0) }, fs{0}, 0},
	{"reduce or", func(b *Builder) Node { return b.Reduce(ReduceOr, vec(b, Bool, 0, 0, 1), 0) }, fs{1}, 0},
	{"reduce bf16 rounds once", func(b *Builder) Node { return b.Reduce(ReduceSum, b.Splat(BF16, []int64{1024}, 1), 0) }, fs{1024}, 0},
	{"reduce u64 max", func(b *Builder) Node { return b.Reduce(ReduceMax, b.Ints(U64, []int64{2}, 1, -1), 0) }, fs{math.MaxUint64}, 0},
	{"reduce empty", func(b *Builder) Node { return b.Reduce(ReduceMax, b.Splat(F32, []int64{0, 2}, 1), 0) }, fs{-inf, -inf}, 0},
	{"reduce-window max", func(b *Builder) Node {
		return b.ReduceWindow(ReduceMax, vec(b, F32, 1, 5, 2, 4), []Window{{Size: 3, Stride: 2, PadLow: 1, PadHigh: 1}})
	}, fs{5, 5}, 0},
	{"reduce-window sum dilated", func(b *Builder) Node {
		return b.ReduceWindow(ReduceSum, vec(b, F32, 1, 2, 3), []Window{{Size: 2, LhsDilate: 2, RhsDilate: 2}})
	}, fs{3, 0, 5}, 0},
	{"avg-pool", func(b *Builder) Node {
		return b.AvgPool(vec(b, F32, 1, 2, 3), []Window{{Size: 2, PadLow: 1, PadHigh: 1}}, false)
	}, fs{1, 1.5, 2.5, 3}, 0},
	{"avg-pool counts padding", func(b *Builder) Node {
		return b.AvgPool(vec(b, BF16, 1, 2, 3), []Window{{Size: 2, PadLow: 1, PadHigh: 1}}, true)
	}, fs{0.5, 1.5, 2.5, 1.5}, 0},
	{"argmax", func(b *Builder) Node { return b.ArgMax(mat(b, F32, []int64{2, 3}, 1, 3, 3, nan, 9, 0), 1, false, S64) }, fs{1, 0}, 0},
	{"argmax last", func(b *Builder) Node { return b.ArgMax(vec(b, S32, 1, 3, 3), 0, true, S32) }, fs{2}, 0},
	{"argmin", func(b *Builder) Node { return b.ArgMin(mat(b, F32, []int64{2, 2}, 5, 1, 0, 1), 0, false, S64) }, fs{1, 0}, 0},
	{"argmin NaN", func(b *Builder) Node { return b.ArgMin(vec(b, F32, 1, nan, 0), 0, false, S64) }, fs{1}, 0},
	{"cumsum", func(b *Builder) Node { return b.CumSum(mat(b, F32, []int64{2, 3}, seq(6)...), 1, false, false) }, fs{0, 1, 3, 3, 7, 12}, 0},
	{"cumsum exclusive reverse", func(b *Builder) Node { return b.CumSum(vec(b, S32, 1, 2, 3), 0, true, true) }, fs{5, 3, 0}, 0},
	{"topk values", func(b *Builder) Node { v, _ := b.TopK(vec(b, F32, 1, 5, 5, 7), 3, true, S32); return v }, fs{7, 5, 5}, 0},
	{"topk indices", func(b *Builder) Node { _, i := b.TopK(vec(b, F32, 1, 5, 5, 7), 3, true, S32); return i }, fs{3, 1, 2}, 0},
	{"topk smallest", func(b *Builder) Node { _, i := b.TopK(vec(b, S32, 4, 1, 2), 2, false, S32); return i }, fs{1, 2}, 0},
	{"sort", func(b *Builder) Node {
		return b.Node(OpSort, 0, []Node{mat(b, F32, []int64{2, 3}, 3, 1, 2, nan, -1, 0)}, b.G.IntsAttr(AttrDim, 1))
	}, fs{1, 2, 3, -1, 0, nan}, 0},

	{"dot", func(b *Builder) Node {
		return b.MatMul(mat(b, F32, []int64{2, 2}, 1, 2, 3, 4), mat(b, F32, []int64{2, 2}, 5, 6, 7, 8))
	}, fs{19, 22, 43, 50}, 0},
	{"dot s8", func(b *Builder) Node {
		g := b.G
		return b.Node(OpDot, g.Tensor(S32), []Node{vec(b, S8, 100, 100), vec(b, S8, 100, 100)}, g.IntsAttr(AttrLhsContract, 0), g.IntsAttr(AttrRhsContract, 0))
	}, fs{20000}, 0},
	{"dot batch", func(b *Builder) Node {
		return b.MatMul(mat(b, F32, []int64{2, 1, 2}, 1, 2, 3, 4), mat(b, F32, []int64{2, 2, 1}, 5, 6, 7, 8))
	}, fs{17, 53}, 0},
	{"dot bf16 rounds once", func(b *Builder) Node {
		return b.MatMul(b.Splat(BF16, []int64{1, 600}, 1), b.Splat(BF16, []int64{600, 1}, 1))
	}, fs{600}, 0},
	{"dot empty", func(b *Builder) Node { return b.MatMul(b.Splat(F32, []int64{2, 0}, 1), b.Splat(F32, []int64{0, 1}, 1)) }, fs{0, 0}, 0},
	{"conv 1d", func(b *Builder) Node {
		return b.Conv(mat(b, F32, []int64{1, 1, 4}, 1, 2, 3, 4), mat(b, F32, []int64{1, 1, 2}, 10, 1), []Window{{PadLow: 1}}, 1)
	}, fs{1, 12, 23, 34}, 0},
	{"conv depthwise", func(b *Builder) Node {
		return b.Conv(mat(b, F32, []int64{1, 2, 2}, 1, 2, 3, 4), mat(b, F32, []int64{2, 1, 1}, 10, 100), []Window{{}}, 2)
	}, fs{10, 20, 300, 400}, 0},
	{"conv reversed", func(b *Builder) Node {
		return b.Conv(mat(b, F32, []int64{1, 1, 2}, 1, 2), mat(b, F32, []int64{1, 1, 2}, 10, 1), []Window{{Reverse: true}}, 1)
	}, fs{21}, 0},

	{"batch-norm", func(b *Builder) Node {
		return b.BatchNorm(mat(b, F32, []int64{1, 2, 2}, 1, 2, 3, 4), vec(b, F32, 2, 1), vec(b, F32, 0, 1), vec(b, F32, 1, 3), vec(b, F32, 4, 1), 1, 0)
	}, fs{0, 1, 1, 2}, 1e-6},
	{"lrn", func(b *Builder) Node { return b.LRN(mat(b, F32, []int64{1, 3, 1}, 1, 2, 3), 3, 3, 1, 0) }, fs{1.0 / 5, 2.0 / 14, 3.0 / 13}, 1e-6},
	{"softmax", func(b *Builder) Node { return b.Softmax(mat(b, F32, []int64{1, 2}, 0, math.Log(3)), 1) }, fs{0.25, 0.75}, 1e-6},
	{"batch-norm-training", func(b *Builder) Node {
		g := b.G
		n := b.Node(OpBatchNormTraining, 0, []Node{mat(b, F32, []int64{2, 2}, 1, 3, 5, 5), vec(b, F32, 1, 1), vec(b, F32, 0, 0)}, g.FloatAttr(AttrEpsilon, 0), g.IntsAttr(AttrFeature, 0))
		return b.Concat(0, b.Reshape(b.Elem(n, 0), 4), b.Elem(n, 1), b.Elem(n, 2))
	}, fs{-1, 1, nan, nan, 2, 5, 1, 0}, 1e-6},
	{"dimension size", func(b *Builder) Node {
		return b.Node(OpGetDimensionSize, 0, []Node{b.Splat(F32, []int64{3, 4}, 0)}, b.G.IntsAttr(AttrDim, 1))
	}, fs{4}, 0},
}

func near(got, want, tol float64) bool {
	if want != want {
		return got != got
	}
	return got == want || math.Abs(got-want) <= tol*math.Max(1, math.Abs(want))
}

func TestEval(t *testing.T) {
	for _, c := range evalCases {
		t.Run(c.name, func(t *testing.T) {
			y, err := evalOne(t, c.build)
			if err != nil {
				t.Fatal(err)
			}
			got := y.Floats()
			if len(got) != len(c.want) {
				t.Fatalf("%v, want %v", got, c.want)
			}
			for i := range got {
				if !near(got[i], c.want[i], c.tol) {
					t.Errorf("%v, want %v", got, c.want)
					break
				}
			}
		})
	}
}

func TestEvalErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *Builder) Node
		class target.Class
		err   string
	}{
		{"complex", func(b *Builder) Node { return b.Binary(OpComplex, vec(b, F32, 1), vec(b, F32, 1)) }, target.Unsupported, "complex"},
		{"index", func(b *Builder) Node { return b.Take(vec(b, F32, 1), vec(b, S32, 1), 0) }, target.User, "index 1 of element 0 is outside a dimension of 1"},
		{"custom call", func(b *Builder) Node {
			return b.Node(OpCustomCall, b.G.Tensor(F32, 1), []Node{vec(b, F32, 1)}, b.G.StrAttr(AttrTarget, "mystery"))
		}, target.Unsupported, "mystery"},
		{"memory", func(b *Builder) Node {
			return b.Reduce(ReduceSum, b.Unary(OpExp, b.Splat(F32, []int64{1 << 40}, 1)), 0)
		}, target.Limit, "4398046511104 more bytes of live values"},
		{"elided", func(b *Builder) Node { return b.Weight(F32, []int64{2}, 0, 0) }, target.User, "supply the weights"},
	} {
		_, err := evalOne(t, c.build)
		if err == nil || target.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v (class %v)", c.name, err, target.ClassOf(err))
		}
	}
}

// scalarComp builds a computation on scalars.
func scalarComp(g *Graph, name string, d Dtype, params int, build func(b *Builder, p []Node) Node) Comp {
	b := Begin(g, name)
	for i := range params {
		b.Param(fmt.Sprint("p", i), d)
	}
	c, err := b.End(build(b, b.Params()))
	if err != nil {
		panic(err)
	}
	return c
}

func TestWhileAndConditional(t *testing.T) {
	var g Graph
	state := func(b *Builder) Node {
		return b.typed(b.G.AddParam(b.C, 0, b.G.TupleOf(b.G.Tensor(S32), b.G.Tensor(F32, 2)), "s"))
	}
	end := func(b *Builder, p, root Node) Comp {
		b.params = []Node{p}
		c, err := b.End(root)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	b := Begin(&g, "cond")
	p := state(b)
	cond := end(b, p, b.Compare(DirLT, b.Elem(p, 0), b.Scalar(S32, 10)))
	b = Begin(&g, "body")
	p = state(b)
	body := end(b, p, b.Tuple(b.Add(b.Elem(p, 0), b.Scalar(S32, 1)), b.Mul(b.Elem(p, 1), b.Splat(F32, []int64{2}, 2))))
	double := Begin(&g, "double")
	x := double.Param("x", F32, 2)
	dc, _ := double.End(double.Add(x, x))
	zero := Begin(&g, "zero")
	x = zero.Param("x", F32, 2)
	zc, _ := zero.End(zero.Sub(x, x))

	b = Begin(&g, "main")
	start, sel := b.Param("start", S32), b.Param("sel", Bool)
	w := b.While(cond, body, b.Tuple(start, vec(b, F32, 1, 3)), 0)
	y := b.Elem(w, 1)
	g.Entry, _ = b.End(b.NodeCalls(OpConditional, 0, []Node{sel, y, y}, []Comp{dc, zc}))
	if err := Check(&g); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		start int64
		sel   float64
		want  float64
	}{{0, 1, 6144}, {7, 1, 48}, {10, 1, 6}, {0, 0, 0}} {
		in := Interp{MaxMemory: 200}
		got, err := in.Run(&g, []Tensor{TensorOfInts(S32, nil, c.start), TensorOf(Bool, nil, c.sel)})
		if err != nil {
			t.Fatal(err)
		}
		if v := got[0].Float(1); v != c.want {
			t.Errorf("from %d, selector %v: %v, want %v", c.start, c.sel, v, c.want)
		}
	}
	in := Interp{MaxSteps: 20}
	if _, err := in.Run(&g, []Tensor{TensorOfInts(S32, nil, -1000), TensorOf(Bool, nil, 1)}); target.ClassOf(err) != target.Limit {
		t.Errorf("endless loop: %v", err)
	}
}

// TestGeneralCombiners: argmax as XLA writes it (a reduce of value and index), a comparator with two keys, a scatter by a
// computation of two operators.
func TestGeneralCombiners(t *testing.T) {
	var g Graph
	argmax := func() Comp {
		b := Begin(&g, "argmax")
		v, i := b.Param("v", F32), b.Param("i", S32)
		w, j := b.Param("w", F32), b.Param("j", S32)
		take := b.Binary(OpOr, b.Compare(DirGT, v, w), b.Binary(OpAnd, b.Compare(DirEQ, v, w), b.Compare(DirLT, i, j)))
		c, err := b.End(b.Tuple(b.Select(take, v, w), b.Select(take, i, j)))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}()
	twice := scalarComp(&g, "twice", F32, 2, func(b *Builder, p []Node) Node { return b.Add(p[0], b.Mul(p[1], b.Scalar(F32, 2))) })
	far := scalarComp(&g, "far", F32, 2, func(b *Builder, p []Node) Node { return b.Compare(DirGT, b.Unary(OpAbs, p[0]), b.Unary(OpAbs, p[1])) })
	desc := scalarComp(&g, "desc", F32, 2, func(b *Builder, p []Node) Node { return b.Compare(DirLT, p[1], p[0]) })
	if k, d, ok := SortKey(&g, desc); !ok || !d || k != 0 {
		t.Errorf("comparator read as %v %v %v", k, d, ok)
	}
	b := Begin(&g, "main")
	x := mat(b, F32, []int64{2, 5}, 1, 7, 7, 2, 0, -1, -5, -1, -9, -1)
	r := b.NodeCalls(OpReduce, 0, []Node{x, b.Iota(S32, []int64{2, 5}, 1), b.Scalar(F32, -inf), b.Scalar(S32, 0)}, []Comp{argmax}, g.IntsAttr(AttrDims, 1))
	s := b.NodeCalls(OpSort, 0, []Node{vec(b, F32, 1, -3, 2)}, []Comp{far}, g.IntsAttr(AttrDim, 0))
	s2 := b.NodeCalls(OpSort, 0, []Node{vec(b, F32, 1, -3, 2)}, []Comp{desc}, g.IntsAttr(AttrDim, 0))
	sc := b.NodeCalls(OpScatter, 0, []Node{vec(b, F32, 1, 2), mat(b, S32, []int64{2, 1}, 1, 1), vec(b, F32, 1, 10)}, []Comp{twice},
		g.IntsAttr(AttrInsertedDims, 0), g.IntsAttr(AttrScatterDims, 0), g.IntsAttr(AttrIndexVectorDim, 1))
	for _, n := range []Node{b.Elem(r, 0), b.Elem(r, 1), s, s2, sc} {
		b.Output("", n)
	}
	var err error
	if g.Entry, err = b.End(s); err != nil {
		t.Fatal(err)
	}
	if err := Check(&g); err != nil {
		t.Fatal(err)
	}
	outs, err := Eval(&g, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{7, -1}, {1, 0}, {-3, 2, 1}, {2, 1, -3}, {1, 24}} {
		if got := outs[i].Floats(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("output %d: %v, want %v", i, got, want)
		}
	}
}

// TestMemoryIsFreed: a long chain of large values needs two at a time.
func TestMemoryIsFreed(t *testing.T) {
	var g Graph
	b := Begin(&g, "main")
	x := b.Param("x", F32, 1<<16)
	for range 50 {
		x = b.Unary(OpTanh, x)
	}
	g.Entry, _ = b.End(x)
	in := Interp{MaxMemory: 2 << 18}
	if _, err := in.Run(&g, []Tensor{NewTensor(F32, 1<<16)}); err != nil {
		t.Error(err)
	}
	in.MaxMemory--
	if _, err := in.Run(&g, []Tensor{NewTensor(F32, 1<<16)}); target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "limit is 524287") {
		t.Errorf("error %v", err)
	}
}

func TestInputsAreChecked(t *testing.T) {
	var g Graph
	b := Begin(&g, "main")
	g.Entry, _ = b.End(b.Param("x", F32, 2))
	for _, in := range [][]Tensor{nil, {NewTensor(F32, 3)}, {NewTensor(S32, 2)}, {{Dtype: F32, Dims: []int64{2}, Data: make([]byte, 7)}}} {
		if _, err := Eval(&g, in); target.ClassOf(err) != target.User || err == nil {
			t.Errorf("%v: error %v", in, err)
		}
	}
	unaligned := make([]byte, 9)[1:]
	unaligned[3] = 0x40
	out, err := Eval(&g, []Tensor{{Dtype: F32, Dims: []int64{2}, Data: unaligned}})
	if err != nil || out[0].Float(0) != 2 {
		t.Errorf("unaligned input: %v %v", out, err)
	}
}
