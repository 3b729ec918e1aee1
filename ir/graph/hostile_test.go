package graph

import (
	"testing"

	"pgregory.net/rapid"
)

// windowKeys are the attributes of sliding windows, keysOf those that an operator reads.
var (
	windowKeys = []Key{AttrWindowSize, AttrWindowStride, AttrWindowPadLow, AttrWindowPadHigh, AttrWindowLhsDilate, AttrWindowRhsDilate, AttrWindowReverse}
	keysOf     = map[Op][]Key{
		OpReducePrecision: {AttrExponent, AttrMantissa}, OpCompare: {AttrDirection}, OpBroadcast: {AttrDims}, OpTranspose: {AttrDims},
		OpReverse: {AttrDims}, OpSlice: {AttrStart, AttrLimit, AttrStride}, OpConcat: {AttrDim}, OpPad: {AttrLow, AttrHigh, AttrInterior},
		OpDynamicSlice: {AttrSizes}, OpTake: {AttrDim}, OpTakeAlong: {AttrDim},
		OpGather:  {AttrOffsetDims, AttrCollapsedDims, AttrStartIndexMap, AttrIndexVectorDim, AttrSliceSizes, AttrOperandBatch, AttrIndicesBatch},
		OpScatter: {AttrUpdateWindowDims, AttrInsertedDims, AttrScatterDims, AttrIndexVectorDim, AttrOperandBatch, AttrIndicesBatch, AttrKind},
		OpReduce:  {AttrDims, AttrKind}, OpReduceWindow: append([]Key{AttrKind}, windowKeys...), OpAvgPool: append([]Key{AttrCountPad}, windowKeys...),
		OpArgMax: {AttrDim, AttrSelectLast}, OpArgMin: {AttrDim, AttrSelectLast}, OpCumSum: {AttrDim, AttrExclusive, AttrReverse}, OpSort: {AttrDim},
		OpTopK: {AttrK, AttrLargest}, OpDot: {AttrLhsBatch, AttrLhsContract, AttrRhsBatch, AttrRhsContract},
		OpConv:               append([]Key{AttrDimLabels, AttrGroups, AttrBatchGroups}, windowKeys[1:]...),
		OpBatchNormInference: {AttrFeature}, OpBatchNormTraining: {AttrFeature}, OpBatchNormGrad: {AttrFeature}, OpLRN: {AttrSize},
	}
)

// TestHostileGraphs: any operator with any operands, attributes and requested type is either refused by InferType or can be
// run, canonicalised and run again without a panic. Most are refused; the rapid generator finds those that are not.
func TestHostileGraphs(t *testing.T) {
	accepted := map[Op]int{}
	one := func(t *rapid.T) {
		g := new(Graph)
		f := Begin(g, "fn")
		p, q := f.Param("a", F32), f.Param("b", F32)
		fn, _ := f.End(f.Add(p, q))
		b := Begin(g, "main")
		dim := rapid.Int64Range(0, 3)
		dims := func() []int64 {
			return rapid.SliceOfN(dim, 0, 3).Draw(t, "dims")
		}
		dtype := rapid.SampledFrom([]Dtype{F32, F32, F32, BF16, F64, S32, S32, U8, U64, S4, Bool, C64, F8E4M3FN})
		var xs []Node
		for range 4 {
			d := dtype.Draw(t, "dtype")
			if d == C64 {
				xs = append(xs, b.typed(g.AddSplat(b.C, g.Tensor(d, dims()...), 0, 0)))
				continue
			}
			xs = append(xs, b.Splat(d, dims(), float64(rapid.IntRange(-2, 3).Draw(t, "value"))))
		}
		for range 4 { // shapes that fit one another are likelier to be accepted
			xs = append(xs, b.Splat(F32, []int64{2, 3}, 1), b.Splat(S32, nil, 1), b.Splat(F32, nil, 2))
		}
		for range 8 {
			op := Op(rapid.IntRange(int(OpParameter)+1, int(NumOps)-1).Draw(t, "op"))
			switch op.Class() {
			case ClassControl, ClassOpaque, ClassCollective, ClassLeaf:
				continue
			}
			arity := op.Arity()
			if arity < 0 {
				arity = rapid.IntRange(0, 4).Draw(t, "arity")
			}
			var ins []Node
			one := rapid.SampledFrom(xs).Draw(t, "operand")
			alike := rapid.Bool().Draw(t, "alike")
			for range arity {
				ins = append(ins, one)
				if !alike {
					one = rapid.SampledFrom(xs).Draw(t, "operand")
				}
			}
			var want Type
			if rapid.Bool().Draw(t, "typed") {
				want = g.Tensor(dtype.Draw(t, "want"), dims()...)
			}
			rank := len(b.Dims(one))
			var attrs []Attr
			for _, k := range keysOf[op] {
				length := rapid.SampledFrom([]int{0, 1, rank, rank, rank, 3 * rank}).Draw(t, "length")
				list := rapid.SliceOfN(rapid.Int64Range(-1, 3), length, length).Draw(t, "list")
				if k == AttrDimLabels || k == AttrDims && rapid.Bool().Draw(t, "permutation") {
					list = nil
					for range map[bool]int{true: 3, false: 1}[k == AttrDimLabels] {
						p := make([]int64, rank)
						for i := range p {
							p[i] = int64(i)
						}
						list = append(list, rapid.Permutation(p).Draw(t, "order")...)
					}
				}
				if rapid.IntRange(0, 9).Draw(t, "given") > 0 {
					attrs = append(attrs, g.IntsAttr(k, list...))
				}
			}
			n := g.AddNode(b.C, op, want, 0, ins, attrs...)
			if rapid.Bool().Draw(t, "calls") {
				g.Nodes.At(n).Calls = g.CompLists.Add(fn)
			}
			typ, err := InferType(g, n)
			if err != nil {
				g.Nodes.At(n).Op, g.Nodes.At(n).Ins, g.Nodes.At(n).Type = OpCopy, g.NodeLists.Add(xs[0]), b.Type(xs[0])
				g.Nodes.At(n).Calls = g.CompLists.AddSlice(nil)
				continue
			}
			g.Nodes.At(n).Type = typ
			accepted[op]++
			if !g.IsTuple(typ) {
				xs = append(xs, n)
			}
			b.Output("", n)
		}
		if len(g.Outputs) == 0 {
			b.Output("", xs[0])
		}
		g.Entry, _ = b.End(xs[0])
		if err := Check(g); err != nil {
			t.Fatal(err)
		}
		in := Interp{MaxMemory: 1 << 20}
		ins := RandomInputs(g, 1)
		want, err := in.Run(g, ins)
		c, errC := Canonical(g)
		if errC != nil {
			t.Fatal(errC)
		}
		if errC := Check(c); errC != nil {
			t.Fatal(errC)
		}
		got, errC := in.Run(c, ins)
		if err == nil && (errC != nil || !sameTensors(got, want)) {
			t.Fatalf("canonical form: %v (%v), want %v", got, errC, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			one(t)
		}
	})
	if len(accepted) < 60 && !testing.Short() {
		t.Errorf("only %d operators were ever accepted: %v", len(accepted), accepted)
	}
}
