package machine

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// opCase is one instruction on small tiles: x [4, 16] floats at sbA, y [4, 16] at sbB, s [4, 1] at sbS, i [4, 8] indices at
// sbI, and w [32, 32] at sbW. Its result, n floats in each of parts partitions at sbY, is compared with want(p, i).
type opCase struct {
	name   string
	e      int
	level  int // 0 = 30
	ins    []isa.Inst
	parts  int
	n      int
	want   func(p, i int) float64
	psum   bool // the result is in PSUM
	asBits bool // results are integers
}

var (
	sbS = isa.SBAddr(0, 0x8000)
	sbI = isa.SBAddr(0, 0x8100)
	sbW = isa.SBAddr(0, 0x9000)
	sbZ = isa.SBAddr(0, 0xA000)
)

func xAt(p, i int) float64 { return float64((p*5+i*7)%13) - 4 }
func yAt(p, i int) float64 { return float64((p*3+i*11)%17) + 1 }
func sAt(p int) float64    { return float64(p) - 1 }
func wAt(p, i int) float64 { return float64((p*31+i*17)%64) - 32 }

const f32 = target.Float32

func inline(f float64) uint32 { return math.Float32bits(float32(f)) }

// two is a bundle with x, y, and out of 16 elements on 4 partitions.
func two(op isa.Opcode, edit func(in *isa.Inst)) isa.Inst {
	in := isa.Inst{Opcode: op, Src: desc(sbA, 16), Dst: desc(sbY, 16), DtSrc: f32, DtDst: f32, Parts: 4}
	if edit != nil {
		edit(&in)
	}
	return in
}

func withY(in *isa.Inst) { in.Src1, in.DtSrc1 = desc(sbB, 16), f32 }

func readAcc(op isa.Opcode, negate uint8) isa.Inst {
	in := isa.Inst{Opcode: op, Dst: desc(sbY, 1), DtDst: f32, Parts: 4, Negate: negate}
	if op == isa.OpActReadAcc {
		in.Count = 1
	}
	return in
}

func topOf(p int) []float64 {
	v := make([]float64, 16)
	for i := range v {
		v[i] = xAt(p, i)
	}
	slices.Sort(v)
	slices.Reverse(v)
	return v[:8]
}

func indexOf(p int, v float64, nth int) int {
	for i := range 16 {
		if xAt(p, i) == v {
			if nth == 0 {
				return i
			}
			nth--
		}
	}
	return -1
}

func relu(x float64) float64 { return max(x, 0) }

func opCases() []opCase {
	sum := func(p, lo, hi int, f func(p, i int) float64) (t float64) {
		for i := lo; i < hi; i++ {
			t += f(p, i)
		}
		return t
	}
	scalarPtr := func(in *isa.Inst) {
		in.Op0, in.Op1 = target.AluMult, target.AluAdd
		in.Imm0 = sbS // pointer
		in.Imm1Src, in.Imm1 = isa.SrcInline, inline(2)
	}
	mul := isa.Inst{Opcode: isa.OpLoadWeights, Src: desc(sbW, 32), DtSrc: f32, Variant: isa.VariantFP32R, Rows: 32, Cols: 32, RowGroup: 1, ColGroup: 1}
	product := func(p, i int) float64 {
		t := 0.0
		for k := range 32 {
			t += wAt(k, p) * wAt(k, i)
		}
		return t
	}
	pe1 := isa.Inst{Opcode: isa.OpMatmul, Src: desc(sbW, 16), Dst: desc(psY, 16), DtSrc: f32, DtDst: f32, Variant: isa.VariantFP32R,
		Rows: 32, Cols: 32, RowGroup: 1, ColGroup: 1, Flags: 3}
	move := mul
	move.Transpose, move.ColGroup = isa.TransposeMark, 15
	moved := pe1
	moved.Variant, moved.ColGroup = isa.VariantTransposed, 15
	moved.Src, moved.Dst = desc(sbZ, 32), desc(psY, 32)
	activation := func(edit func(in *isa.Inst)) isa.Inst {
		return two(isa.OpActivate, func(in *isa.Inst) {
			in.DtSrc1, in.Func, in.Acc = f32, target.ActRelu, target.AccZeroAccumulate
			in.Imm0Src, in.Imm0, in.Imm1 = isa.SrcInline, inline(3), sbS
			if edit != nil {
				edit(in)
			}
		})
	}
	first := func(op isa.Opcode, src isa.Desc, dt target.Dtype, parts uint8) isa.Inst {
		return isa.Inst{Opcode: op, Src: src, DtSrc: dt, Parts: parts}
	}
	blocks := first(isa.OpStreamLoad, desc(sbW, 32), f32, 32)
	shuffle := isa.Inst{Opcode: isa.OpStreamShuffle, Dst: desc(sbY, 32)}
	for i := range shuffle.Mask {
		shuffle.Mask[i] = uint8((i + 5) % 32)
	}
	gather := isa.Inst{Opcode: isa.OpGather, Src: desc(sbI, 8), DtSrc: target.Int32, Dst: desc(sbY, 8), DtDst: f32, Parts: 4}
	values := isa.Inst{Opcode: isa.OpMax, Src: desc(sbA, 16), Dst: desc(sbZ, 8), DtSrc: f32, DtDst: f32, Parts: 4}
	loadValues := first(isa.OpMaxIndexLoad, desc(sbZ, 8), f32, 4)
	index := isa.Inst{Opcode: isa.OpMaxIndex, Src: desc(sbA, 16), Dst: desc(sbY, 8), DtSrc: f32, DtDst: target.Uint32, Parts: 4}
	indexToZ := index
	indexToZ.Dst = desc(sbZ+0x100, 8)
	replaceLoad := loadValues
	replaceLoad.Dst, replaceLoad.Imm0 = desc(sbY, 16), inline(-99)
	replaced := func(p, i int) float64 {
		for _, v := range topOf(p) {
			if xAt(p, i) == v {
				n := 0
				for j := range i {
					if xAt(p, j) == v {
						n++
					}
				}
				taken := 0
				for _, u := range topOf(p) {
					if u == v {
						taken++
					}
				}
				if n < taken {
					return -99
				}
			}
		}
		return xAt(p, i)
	}
	nth := func(p, i int) int {
		top, n := topOf(p), 0
		for j := range i {
			if top[j] == top[i] {
				n++
			}
		}
		return n
	}
	cases := []opCase{
		{name: "tensor_tensor", e: dve, ins: []isa.Inst{two(isa.OpTensorTensor, func(in *isa.Inst) { withY(in); in.Op0 = target.AluSub })},
			want: func(p, i int) float64 { return xAt(p, i) - yAt(p, i) }},
		{name: "tensor_tensor accumulating", e: pool, parts: 4, n: 1, ins: []isa.Inst{
			two(isa.OpTensorTensor, func(in *isa.Inst) { withY(in); in.Op0, in.Acc = target.AluMult, target.AccZeroAccumulate }), readAcc(isa.OpDveReadAcc, 1)},
			want: func(p, _ int) float64 { return -sum(p, 0, 16, func(p, i int) float64 { return xAt(p, i) * yAt(p, i) }) }},
		{name: "tensor_tensor_bit", e: dve, asBits: true, n: 8, parts: 4, ins: []isa.Inst{
			{Opcode: isa.OpTensorTensorBit, Op0: target.AluBitXor, Src: desc(sbI, 8), Src1: desc(sbI+16, 8), Dst: desc(sbY, 8),
				DtSrc: target.Int32, DtSrc1: target.Int32, DtDst: target.Int32, Parts: 4}},
			want: func(p, i int) float64 { return float64(iAt(p, i) ^ iAt(p, i+4)) }},
		{name: "tensor_scalar", e: dve, ins: []isa.Inst{two(isa.OpTensorScalar, scalarPtr)},
			want: func(p, i int) float64 { return xAt(p, i)*sAt(p) + 2 }},
		{name: "tensor_scalar reversed", e: act, ins: []isa.Inst{two(isa.OpTensorScalar, func(in *isa.Inst) { scalarPtr(in); in.Op0, in.Reverse = target.AluSub, 1 })},
			want: func(p, i int) float64 { return sAt(p) - xAt(p, i) + 2 }},
		{name: "tensor_scalar_bit", e: dve, asBits: true, n: 8, parts: 4, ins: []isa.Inst{
			{Opcode: isa.OpTensorScalarBit, Op0: target.AluShiftLeft, Op1: target.AluBitOr, Src: desc(sbI, 8), Dst: desc(sbY, 8),
				DtSrc: target.Int32, DtDst: target.Int32, Parts: 4, Imm0Src: isa.SrcInline, Imm0: inline(3), Imm1Src: isa.SrcInline, Imm1: inline(5)}},
			want: func(p, i int) float64 { return float64(iAt(p, i)<<3 | 5) }},
		{name: "tensor_scalar_reduce", e: dve, parts: 4, n: 1, ins: []isa.Inst{
			two(isa.OpTensorScalarReduce, func(in *isa.Inst) {
				scalarPtr(in)
				in.Op1, in.Acc, in.Imm1 = target.AluMax, target.AccZeroAccumulate, 0
			}),
			readAcc(isa.OpDveReadAcc, 0)},
			want: func(p, _ int) float64 {
				m := math.Inf(-1)
				for i := range 16 {
					m = max(m, xAt(p, i)*sAt(p))
				}
				return m
			}},
		{name: "tensor_scalar_scan", e: dve, ins: []isa.Inst{two(isa.OpTensorScalarScan, func(in *isa.Inst) { scalarPtr(in); in.Imm1 = inline(10) })},
			want: func(p, i int) float64 {
				return 10 + sum(p, 0, i+1, func(p, i int) float64 { return xAt(p, i) * sAt(p) })
			}},
		{name: "scalar_tensor_tensor", e: dve, ins: []isa.Inst{two(isa.OpScalarTensorTensor, func(in *isa.Inst) {
			withY(in)
			in.Op0, in.Op1, in.Imm0 = target.AluMult, target.AluSub, sbS
		})}, want: func(p, i int) float64 { return xAt(p, i)*sAt(p) - yAt(p, i) }},
		{name: "scalar_tensor_tensor_bit", e: dve, asBits: true, n: 8, parts: 4, ins: []isa.Inst{
			{Opcode: isa.OpScalarTensorTensorB, Op0: target.AluBypass, Op1: target.AluBitAnd, Src: desc(sbI, 8), Src1: desc(sbI+16, 8), Dst: desc(sbY, 8),
				DtSrc: target.Int32, DtSrc1: target.Int32, DtDst: target.Int32, Parts: 4}},
			want: func(p, i int) float64 { return float64(iAt(p, i) & iAt(p, i+4)) }},
		{name: "tensor_tensor_scan", e: dve, ins: []isa.Inst{two(isa.OpTensorTensorScan, func(in *isa.Inst) {
			withY(in)
			in.Op0, in.Op1, in.Imm0Src, in.Imm0 = target.AluMax, target.AluAdd, isa.SrcInline, inline(-3)
		})}, want: func(p, i int) float64 {
			r := -3.0
			for j := range i + 1 {
				r = max(xAt(p, j), r) + yAt(p, j)
			}
			return r
		}},
		{name: "tensor_copy strided", e: pool, ins: []isa.Inst{two(isa.OpTensorCopy, func(in *isa.Inst) {
			in.Src = isa.Desc{Addr: sbA, N: 2, Step: [4]int32{4, 1}, Num: [4]uint32{4, 4}}
		})}, want: func(p, i int) float64 { return xAt(p, i%4*4+i/4) }},
		{name: "tensor_copy_cast", e: act, asBits: true, ins: []isa.Inst{two(isa.OpTensorCopyCast, func(in *isa.Inst) { in.DtDst = target.Int32 })}, want: xAt},
		{name: "tensor_reduce", e: dve, parts: 4, n: 4, ins: []isa.Inst{two(isa.OpTensorReduce, func(in *isa.Inst) {
			in.Op0, in.Axes, in.Negate = target.AluAdd, 1, 1
			in.Src = isa.Desc{Addr: sbA, N: 2, Step: [4]int32{1, 4}, Num: [4]uint32{4, 4}}
			in.Dst = desc(sbY, 4)
		})}, want: func(p, i int) float64 { return -sum(p, 4*i, 4*i+4, xAt) }},
		{name: "tensor_reduce_bit", e: dve, asBits: true, parts: 4, n: 1, ins: []isa.Inst{
			{Opcode: isa.OpTensorReduceBit, Op0: target.AluBitOr, Axes: 1, Src: desc(sbI, 4), Dst: desc(sbY, 1), DtSrc: target.Int32, DtDst: target.Int32, Parts: 4}},
			want: func(p, _ int) float64 { return float64(iAt(p, 0) | iAt(p, 1) | iAt(p, 2) | iAt(p, 3)) }},
		{name: "cross_lane_reduce", e: pool, parts: 1, n: 16, ins: []isa.Inst{two(isa.OpCrossLaneReduce, func(in *isa.Inst) { in.Op0 = target.AluMax })},
			want: func(_, i int) float64 { return max(xAt(0, i), xAt(1, i), xAt(2, i), xAt(3, i)) }},
		{name: "cross_lane_reduce_bit", e: pool, asBits: true, parts: 1, n: 4, ins: []isa.Inst{
			{Opcode: isa.OpCrossLaneReduceBit, Op0: target.AluBitXor, Src: desc(sbI, 4), Dst: desc(sbY, 4), DtSrc: target.Int32, DtDst: target.Int32, Parts: 4}},
			want: func(_, i int) float64 { return float64(iAt(0, i) ^ iAt(1, i) ^ iAt(2, i) ^ iAt(3, i)) }},
		{name: "pool average", e: pool, parts: 4, n: 4, ins: []isa.Inst{two(isa.OpPool, func(in *isa.Inst) { in.Mode, in.Dst = 2, desc(sbY, 4) })},
			want: func(p, i int) float64 { return sum(p, 4*i, 4*i+4, xAt) / 4 }},
		{name: "pool max", e: dve, parts: 4, n: 4, ins: []isa.Inst{two(isa.OpPool, func(in *isa.Inst) { in.Mode, in.Dst = 1, desc(sbY, 4) })},
			want: func(p, i int) float64 { return max(xAt(p, 4*i), xAt(p, 4*i+1), xAt(p, 4*i+2), xAt(p, 4*i+3)) }},
		{name: "reciprocal", e: dve, ins: []isa.Inst{two(isa.OpReciprocal, func(in *isa.Inst) { in.Src = desc(sbB, 16) })},
			want: func(p, i int) float64 { return 1 / yAt(p, i) }},
		{name: "memset", e: pool, ins: []isa.Inst{{Opcode: isa.OpMemset, Dst: desc(sbY, 16), DtDst: f32, Parts: 4, Imm0: inline(2.5)}},
			want: func(p, i int) float64 { return 2.5 }},
		{name: "iota", e: pool, ins: []isa.Inst{{Opcode: isa.OpIota, Dst: isa.Desc{Addr: sbY, N: 2, Step: [4]int32{1, 8}, Num: [4]uint32{8, 2}}, DtDst: f32, Parts: 4,
			Base: 7, ChanMul: 100, Steps: [4]int32{3, -20}}}, want: func(p, i int) float64 { return float64(7 + 100*p + 3*(i%8) - 20*(i/8)) }},
		{name: "affine_select", e: pool, ins: []isa.Inst{two(isa.OpAffineSelect, func(in *isa.Inst) {
			in.Op0, in.Base, in.ChanMul, in.Steps[0], in.Imm0 = target.AluGE, -4, 4, -1, inline(-7)
		})}, want: func(p, i int) float64 {
			if -4+4*p-i >= 0 {
				return xAt(p, i)
			}
			return -7
		}},
		{name: "range_select", e: dve, ins: []isa.Inst{two(isa.OpRangeSelect, func(in *isa.Inst) {
			in.Op0, in.Op1, in.Imm1, in.Imm2, in.Imm0 = target.AluGE, target.AluLT, sbS, sbB, inline(-5)
		})}, want: func(p, i int) float64 {
			if float64(i) >= sAt(p) && float64(i) < yAt(p, 0) {
				return xAt(p, i)
			}
			return -5
		}},
		{name: "copy_predicated", e: dve, ins: []isa.Inst{two(isa.OpTensorCopy, func(in *isa.Inst) { in.Src = desc(sbB, 16) }),
			two(isa.OpCopyPredicated, func(in *isa.Inst) { in.Src1, in.DtSrc1 = desc(sbA, 16), f32 })}, want: func(p, i int) float64 {
			if x := xAt(p, i); x != 0 {
				return x
			}
			return yAt(p, i)
		}},
		{name: "copy_predicated_legacy reversed", e: dve, ins: []isa.Inst{two(isa.OpTensorCopy, func(in *isa.Inst) { in.Src = desc(sbB, 16) }),
			two(isa.OpCopyPredicatedOld, func(in *isa.Inst) { in.Src1, in.DtSrc1, in.Reverse = desc(sbA, 16), f32, 1 })}, want: func(p, i int) float64 {
			if xAt(p, i) == 0 {
				return 0
			}
			return yAt(p, i)
		}},
		{name: "max8", e: dve, parts: 4, n: 8, ins: []isa.Inst{two(isa.OpMax, func(in *isa.Inst) { in.Dst = desc(sbY, 8) })},
			want: func(p, i int) float64 { return topOf(p)[i] }},
		{name: "max_index", e: dve, asBits: true, parts: 4, n: 8, ins: []isa.Inst{values, loadValues, index},
			want: func(p, i int) float64 { return float64(indexOf(p, topOf(p)[i], nth(p, i))) }},
		{name: "max_index and match_replace", e: dve, ins: []isa.Inst{values, replaceLoad, indexToZ}, want: replaced},
		{name: "match_replace", e: dve, ins: []isa.Inst{values, two(isa.OpMatchReplace, func(in *isa.Inst) { in.Imm0, in.Ptr = inline(-99), sbZ })}, want: replaced},
		{name: "bn_stats and aggregate", e: dve, parts: 4, n: 2, ins: []isa.Inst{
			two(isa.OpBNStats, func(in *isa.Inst) { in.Dst = desc(sbZ, 6) }),
			{Opcode: isa.OpBNAggregate, Src: desc(sbZ, 6), Dst: desc(sbY, 2), DtSrc: f32, DtDst: f32, Parts: 4}},
			want: func(p, i int) float64 {
				mean := sum(p, 0, 16, xAt) / 16
				if i == 0 {
					return mean
				}
				return sum(p, 0, 16, func(p, i int) float64 { d := xAt(p, i) - mean; return d * d }) / 16
			}},
		{name: "stream_transpose", e: dve, parts: 32, n: 32, ins: []isa.Inst{blocks,
			{Opcode: isa.OpStreamTranspose, Dst: desc(sbY, 32), DtDst: f32, Parts: 32}}, want: func(p, i int) float64 { return wAt(i, p) }},
		{name: "stream_shuffle", e: dve, parts: 32, n: 32, ins: []isa.Inst{blocks, shuffle}, want: func(p, i int) float64 { return wAt((p+5)%32, i) }},
		{name: "gather", e: pool, parts: 4, n: 8, ins: []isa.Inst{first(isa.OpGatherLoad, desc(sbA, 16), f32, 4), gather},
			want: func(p, i int) float64 { return xAt(p, int(iAt(p, i))) }},
		{name: "indirect_copy", e: pool, parts: 4, n: 8, ins: []isa.Inst{
			{Opcode: isa.OpTensorCopyCast, Src: desc(sbI, 2), Dst: desc(sbZ, 2), DtSrc: target.Int32, DtDst: target.Uint16, Parts: 4},
			two(isa.OpIndirectCopy, func(in *isa.Inst) { in.Dst, in.Src, in.Ptr, in.Count = desc(sbY, 16), desc(sbA, 16), sbZ, 8 })},
			want: func(p, i int) float64 { return xAt(p, int(iAt(i%4, i/4))) }},

		{name: "activation", e: act, ins: []isa.Inst{activation(nil)}, want: func(p, i int) float64 { return relu(3*xAt(p, i) + sAt(p)) }},
		{name: "activation sums", e: act, parts: 4, n: 1, ins: []isa.Inst{activation(nil), {Opcode: isa.OpNoOp}, readAcc(isa.OpActReadAcc, 0)},
			want: func(p, _ int) float64 {
				return sum(p, 0, 16, func(p, i int) float64 { return relu(3*xAt(p, i) + sAt(p)) })
			}},
		{name: "activation goes on summing", e: act, parts: 4, n: 1, ins: []isa.Inst{activation(nil),
			activation(func(in *isa.Inst) { in.Acc = target.AccAddAccumulate }), readAcc(isa.OpActReadAcc, 0)},
			want: func(p, _ int) float64 {
				return 2 * sum(p, 0, 16, func(p, i int) float64 { return relu(3*xAt(p, i) + sAt(p)) })
			}},
		{name: "activation with alpha", e: act, ins: []isa.Inst{activation(func(in *isa.Inst) {
			in.Func, in.Imm2Src, in.Imm2 = target.ActLrelu, isa.SrcInline, inline(0.5)
		})}, want: func(p, i int) float64 {
			v := 3*xAt(p, i) + sAt(p)
			return max(v, v/2)
		}},
		{name: "activation of a table", e: act, ins: []isa.Inst{{Opcode: isa.OpLoadActFuncSet, Set: uint8(target.ActExp.TableSet())},
			activation(func(in *isa.Inst) { in.Func, in.Imm0 = target.ActExp, inline(0.25) })}, want: func(p, i int) float64 { return math.Exp(xAt(p, i)/4 + sAt(p)) }},
		{name: "activation with two operators", e: act, level: 40, parts: 4, n: 1, ins: []isa.Inst{
			two(isa.OpActivate2, func(in *isa.Inst) {
				in.DtSrc1, in.DtImm, in.Func, in.Acc = f32, f32, target.ActIdentity, target.AccZeroAccumulate
				in.Op0, in.Op1, in.RedOp, in.Reverse = target.AluSub, target.AluMax, target.AluMax, 1
				in.Imm0, in.Imm1Src, in.Imm1 = sbS, isa.SrcInline, inline(-2)
			}), readAcc(isa.OpActReadAcc, 0)},
			want: func(p, _ int) float64 {
				m := math.Inf(-1)
				for i := range 16 {
					m = max(m, sAt(p)-xAt(p, i), -2)
				}
				return m
			}},
		{name: "exponential", e: dve, level: 40, ins: []isa.Inst{two(isa.OpExponential, func(in *isa.Inst) { in.Imm0, in.Imm1Src = sbS, isa.SrcInline })},
			want: func(p, i int) float64 { return math.Exp(xAt(p, i) - sAt(p)) }},
		{name: "tensor_copy on V4", e: dve, level: 40, ins: []isa.Inst{two(isa.OpTensorCopy, nil)}, want: xAt},

		{name: "matmul", e: pe, psum: true, parts: 32, n: 16, ins: []isa.Inst{mul, pe1}, want: product},
		{name: "transpose", e: pe, psum: true, parts: 32, n: 32, ins: []isa.Inst{move, moved}, want: func(p, i int) float64 { return wAt(i, p) }},
	}
	for i := range cases {
		if c := &cases[i]; c.parts == 0 {
			c.parts, c.n = 4, 16
		}
	}
	return cases
}

func iAt(p, i int) uint32 { return uint32((p*7+i*3)%16) & 15 }

// build makes the program of a case: loads of the operands, the instruction, a save of its result.
func (c *opCase) build(tb testing.TB) (*asm, map[string][]byte) {
	level := c.level
	if level == 0 {
		level = 30
	}
	a := newAsm(tb, level)
	in := map[string][]byte{}
	sem := uint8(16)
	load := func(name string, addr uint32, parts, n int, at func(p, i int) uint32) {
		var b []byte
		for p := range parts {
			for i := range n {
				b = binary.LittleEndian.AppendUint32(b, at(p, i))
			}
		}
		v := a.variable(name, neff.VarInput, len(b))
		in[name] = b
		a.dma(sp, isa.Sync{}, sem, dram(v, 0, parts, 4*n, 4*n), a.sbSide(addr, parts, 4*n))
		a.wait(c.e, sem, 4)
		sem++
	}
	fl := func(f func(p, i int) float64) func(p, i int) uint32 {
		return func(p, i int) uint32 { return inline(f(p, i)) }
	}
	load("x", sbA, 4, 16, fl(xAt))
	load("y", sbB, 4, 16, fl(yAt))
	load("s", sbS, 4, 1, fl(func(p, _ int) float64 { return sAt(p) }))
	load("i", sbI, 4, 16, iAt)
	load("w", sbW, 32, 32, fl(wAt))
	load("one", sbZ, 32, 32, fl(func(p, i int) float64 {
		if p == i {
			return 1
		}
		return 0
	}))
	for _, x := range c.ins {
		a.emit(c.e, x)
	}
	a.emit(c.e, isa.Inst{Opcode: isa.OpNoOp, Sync: inc(isa.Sync{}, uint8(3+c.e))})
	vy := a.variable("out", neff.VarOutput, 4*c.parts*c.n)
	from := sbY
	if c.psum {
		from = psY
	}
	a.dma(c.e, isa.Sync{}, 30, a.sbSide(from, c.parts, 4*c.n), dram(vy, 0, c.parts, 4*c.n, 4*c.n))
	return a, in
}

func TestOpcodes(t *testing.T) {
	done := map[isa.Opcode]bool{}
	for _, c := range opCases() {
		t.Run(c.name, func(t *testing.T) {
			a, in := c.build(t)
			m := a.machine(in)
			for seed := range uint64(3) {
				if err := m.Run(seed); err != nil {
					t.Fatal(err)
				}
			}
			out := m.Output("out")
			for p := range c.parts {
				for i := range c.n {
					u := binary.LittleEndian.Uint32(out[4*(p*c.n+i):])
					got, want := float64(math.Float32frombits(u)), c.want(p, i)
					if c.asBits {
						got = float64(int32(u))
					}
					if math.Abs(got-want) > 1e-5*math.Abs(want) {
						t.Fatalf("out[%d,%d] = %v, want %v", p, i, got, want)
					}
				}
			}
			if r, err := Race(a.reread()); err != nil || r.Err() != nil {
				t.Errorf("race check: %v %v", err, r.Err())
			}
		})
		for _, x := range c.ins {
			done[x.Opcode] = true
		}
	}
	for op, r := range opTable {
		if r.engines != 0 && r.flags&isControl == 0 && !done[isa.Opcode(op)] {
			t.Errorf("%s has a row and no case", isa.Opcode(op))
		}
	}
}
