package sim

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// operands are the views of one instruction.
type operands struct {
	in    [16]kernel.View // tensor inputs, in place; immediates leave a hole
	inSt  [16]*store
	out   [2]kernel.View
	outSt [2]*store
}

// step executes one instruction.
func (s *Sim) step(m *ir.Module, i ir.Inst) error {
	r := m.Insts.At(i)
	info := r.Op.Info()
	if info.Flags&ir.FlagRegion != 0 {
		return s.loop(m, i)
	}
	switch r.Op {
	case ir.OpIndirectLoad:
		return s.gather(m, i)
	case ir.OpRegisterAlu, ir.OpRegisterMove, ir.OpTensorLoad, ir.OpTensorSave:
		return s.scalar(m, i)
	}
	o := &s.ops
	ins, outs := m.Ins(i), m.Outs(i)
	if len(ins) > len(o.in) || len(outs) > len(o.out) {
		return target.Errorf(target.User, "%d inputs and %d outputs; at most %d and %d", len(ins), len(outs), len(o.in), len(o.out))
	}
	uninit := m.AttrBool(i, ir.KeyCanReadUninit)
	for k, a := range ins {
		if a.Kind == ir.ArgImm {
			continue
		}
		v, st, err := s.view(m, a)
		if err != nil {
			return err
		}
		if err := v.Check(info.Name, "input"); err != nil {
			return err
		}
		if !uninit {
			if err := s.read(m, a, &v, st); err != nil {
				return err
			}
		}
		o.in[k], o.inSt[k] = v, st
	}
	for k, a := range outs {
		v, st, err := s.view(m, a)
		if err != nil {
			return err
		}
		if err := v.Check(info.Name, "output"); err != nil {
			return err
		}
		o.out[k], o.outSt[k] = v, st
	}
	if r.Op == ir.OpCopyPredicated && !uninit {
		if err := s.read(m, outs[0], &o.out[0], o.outSt[0]); err != nil {
			return err
		}
	}
	if err := s.compute(m, i, r, ins, outs, o); err != nil {
		return err
	}
	for k := range outs {
		s.mark(&o.out[k], o.outSt[k])
	}
	return nil
}

func (s *Sim) read(m *ir.Module, a ir.Arg, v *kernel.View, st *store) error {
	if off, ok := s.checkRead(v, st); !ok {
		ap, _ := s.pattern(m, a)
		return target.Errorf(target.User, "reads byte %d of %s, which nothing wrote", off, m.LocName(ap.Loc))
	}
	return nil
}

// scalar is a [p,1] operand or an immediate; def stands for an input that is absent.
func (o *operands) scalar(ins []ir.Arg, k int, def float32) kernel.Scalar {
	if k >= len(ins) {
		return kernel.Imm(def)
	}
	if ins[k].Kind == ir.ArgImm {
		if ins[k].Dtype.IsFloat() {
			return kernel.Imm(ins[k].Imm())
		}
		sc := kernel.ImmBits(ins[k].Ref)
		sc.Imm = ins[k].Imm()
		return sc
	}
	return kernel.Ptr(&o.in[k])
}

// lanes is the part of an accumulator that an output's partitions use.
func (s *Sim) lanes(m *ir.Module, acc *[128]float32, out ir.Arg) []float32 {
	ap, err := s.pattern(m, out)
	if err != nil {
		return nil
	}
	f := m.Footprint(ap)
	return acc[min(int(f.P0), len(acc)):]
}

func (s *Sim) compute(m *ir.Module, i ir.Inst, r *ir.InstRow, ins, outs []ir.Arg, o *operands) error {
	k := &s.scratch
	alu := func(key ir.Key) target.AluOp { return target.AluOp(m.Attr(i, key)) }
	acc := func(key ir.Key, regs *[128]float32) *kernel.Acc {
		return &kernel.Acc{Cmd: target.AccCmd(m.Attr(i, key)), Op: alu(ir.KeyReduceOp), Lanes: s.lanes(m, regs, outs[0])}
	}
	second := func(regs *[128]float32) error {
		if len(outs) < 2 {
			return nil
		}
		return kernel.ReadAccumulator(&o.out[1], s.lanes(m, regs, outs[1]), m.AttrBool(i, ir.KeyNegateSecondOutput))
	}
	in, out := &o.in, &o.out[0]
	switch r.Op {
	case ir.OpLoad, ir.OpSave, ir.OpDMACopy, ir.OpTensorCopy, ir.OpGenericCopy, ir.OpAbstractCopy:
		if r.Op == ir.OpDMACopy && ir.CopyMode(m.Attr(i, ir.KeyCopyMode)) != ir.CopyPlain {
			mode := ir.CopyMode(m.Attr(i, ir.KeyCopyMode))
			return target.NotSupported("DMACopy "+mode.String(), "DMA copies of mode %s are not simulated", mode)
		}
		return kernel.Copy(k, out, &in[0])
	case ir.OpGenericRelu:
		return kernel.Activation(k, out, &in[0], &kernel.ActOps{Func: target.ActRelu, Scale: kernel.Imm(1)}, nil)
	case ir.OpMemset:
		if ir.MemsetMode(m.Attr(i, ir.KeyMemsetMode)) != ir.MemsetConst {
			return target.NotSupported("Memset Random", "random fills are not simulated")
		}
		return kernel.Memset(out, m.Attr(i, ir.KeyConstant))
	case ir.OpActivation:
		a := kernel.ActOps{
			Func: target.ActFunc(m.Attr(i, ir.KeyFunc)),
			Bias: o.scalar(ins, 1, 0), Scale: o.scalar(ins, 2, m.AttrFloat(i, ir.KeyScale)), Alpha: o.scalar(ins, 3, m.AttrFloat(i, ir.KeyAlpha)),
			Op0: alu(ir.KeyOp0), Op1: alu(ir.KeyOp1), Rev0: m.AttrBool(i, ir.KeyReverse0), Rev1: m.AttrBool(i, ir.KeyReverse1),
		}
		a.Two = a.Op0 != target.AluBypass || a.Op1 != target.AluBypass
		if err := kernel.Activation(k, out, &in[0], &a, acc(ir.KeyAcc, &s.actAcc)); err != nil {
			return err
		}
		return second(&s.actAcc)
	case ir.OpActivationReadAccumulator, ir.OpReadActivationAccumulator:
		return kernel.ReadAccumulator(out, s.lanes(m, &s.actAcc, outs[0]), false)
	case ir.OpDveReadAccumulator:
		return kernel.ReadAccumulator(out, s.lanes(m, &s.dveAcc, outs[0]), m.AttrBool(i, ir.KeyNegated))
	case ir.OpTensorTensor:
		return kernel.TensorTensor(k, alu(ir.KeyOp), out, &in[0], &in[1], acc(ir.KeyAcc, &s.dveAcc))
	case ir.OpTensorScalar, ir.OpTensorScalarPtr, ir.OpTensorScalarCache:
		return s.tensorScalar(m, i, r, ins, outs, o, acc(ir.KeyAcc, &s.dveAcc), second)
	case ir.OpTensorReduce:
		axis := ir.AxisList(m.Attr(i, ir.KeyAxis))
		neg := m.AttrBool(i, ir.KeyNegate)
		if axis == ir.AxisC || axis == ir.AxisXYZWC {
			return kernel.PartitionReduce(k, alu(ir.KeyOp), out, &in[0], neg)
		}
		if got, want := in[0].Elems()/max(1, out.Elems()), in[0].Inner(int(axis)+1); got != want {
			return target.Errorf(target.User, "axis %s folds %d elements, but input and output shapes fold %d", axis, want, got)
		}
		return kernel.TensorReduce(k, alu(ir.KeyOp), out, &in[0], neg)
	case ir.OpPool:
		return kernel.Pool(k, ir.PoolFunc(m.Attr(i, ir.KeyPoolFunc)) == ir.PoolAvg, out, &in[0])
	case ir.OpReciprocal:
		return kernel.Reciprocal(k, out, &in[0])
	case ir.OpSelect:
		return kernel.Select(k, out, &in[0], &in[1], &in[2])
	case ir.OpCopyPredicated:
		return kernel.CopyPredicated(k, out, &in[0], &in[1], m.AttrBool(i, ir.KeyReversePred), acc(ir.KeyAccumulatorCmd, &s.dveAcc))
	case ir.OpIota:
		a := affine(m, i)
		return kernel.Iota(k, out, &a)
	case ir.OpTensorScalarAffineSelect:
		a := affine(m, i)
		return kernel.AffineSelect(k, out, &in[0], &a, alu(ir.KeyCompareOp), m.AttrFloat(i, ir.KeyFillValue))
	case ir.OpRangeSelect:
		ro := kernel.RangeOps{Lo: o.scalar(ins, 1, 0), Hi: o.scalar(ins, 2, 0), Cmp0: alu(ir.KeyCompareOp0), Cmp1: alu(ir.KeyCompareOp1),
			Base: int(m.AttrInt(i, ir.KeyBase)), Fill: m.AttrFloat(i, ir.KeyFillValue)}
		if err := kernel.RangeSelect(k, out, &in[0], &ro, acc(ir.KeyReduceCmd, &s.dveAcc)); err != nil {
			return err
		}
		return second(&s.dveAcc)
	case ir.OpExponential:
		if err := kernel.Exponential(k, out, &in[0], o.scalar(ins, 1, 0), acc(ir.KeyReduceCmd, &s.dveAcc)); err != nil {
			return err
		}
		return second(&s.dveAcc)
	case ir.OpMax:
		return kernel.Max8(k, out, &in[0])
	case ir.OpMaxIndex:
		return kernel.MaxIndex8(k, out, &in[0], &in[1])
	case ir.OpMatchReplace:
		return kernel.MatchReplace8(k, out, &in[0], &in[1], m.AttrFloat(i, ir.KeyImmValue))
	case ir.OpMaxIndexAndMatchReplace:
		if err := kernel.MaxIndex8(k, out, &in[0], &in[1]); err != nil {
			return err
		}
		return kernel.MatchReplace8(k, &o.out[1], &in[0], &in[1], m.AttrFloat(i, ir.KeyImmValue))
	case ir.OpBNStats:
		return kernel.BNStats(k, out, &in[0])
	case ir.OpBNStatsAggregate:
		return kernel.BNAggregate(k, out, &in[0])
	case ir.OpStreamTranspose:
		return kernel.StreamTranspose(k, out, &in[0])
	case ir.OpStreamShuffle:
		var mask [kernel.Block]uint8
		l := m.AttrInts(i, ir.KeyMask)
		if len(l) != len(mask) {
			return target.Errorf(target.User, "mask has %d entries, want %d", len(l), len(mask))
		}
		for j, x := range l {
			mask[j] = uint8(x)
		}
		return kernel.StreamShuffle(k, out, &in[0], &mask)
	case ir.OpGather:
		return kernel.Gather(k, out, &in[0], &in[1])
	case ir.OpIndirectCopy:
		return kernel.IndirectCopy(k, out, &in[0], &in[1], int(m.AttrInt(i, ir.KeyNumValidIndices)))
	case ir.OpMatmult:
		return s.matmul(m, i, o)
	case ir.OpNoOp, ir.OpEventSemaphore, ir.OpAllEngineBarrier, ir.OpGroupResetSemaphores, ir.OpDrain, ir.OpHalt,
		ir.OpLoadActFuncSet, ir.OpBranchHint, ir.OpExit, ir.OpReturn:
		return nil
	}
	return target.NotSupported(r.Op.String(), "%s is not simulated", r.Op)
}

func (s *Sim) tensorScalar(m *ir.Module, i ir.Inst, r *ir.InstRow, ins, outs []ir.Arg, o *operands, acc *kernel.Acc,
	second func(*[128]float32) error) error {
	k := &s.scratch
	a := kernel.ScalarOps{
		Op0: target.AluOp(m.Attr(i, ir.KeyOp0)), Op1: target.AluOp(m.Attr(i, ir.KeyOp1)),
		Rev0: m.AttrBool(i, ir.KeyReverse0), Rev1: m.AttrBool(i, ir.KeyReverse1),
	}
	out := &o.out[0]
	if r.Op == ir.OpTensorScalar {
		a.S0, a.S1 = immediate(m, i, ir.KeyConst0), immediate(m, i, ir.KeyConst1)
		return kernel.TensorScalar(k, out, &o.in[0], &a, nil)
	}
	a.S0 = o.scalar(ins, 1, 0)
	var err error
	switch {
	case r.Op == ir.OpTensorScalarCache:
		a.S1 = o.scalar(ins, 2, 0)
		mode := kernel.CacheReduce
		if m.Attr(i, ir.KeyTSCMode) != 0 {
			mode = kernel.CacheCumulative
		}
		err = kernel.TensorScalarCache(k, out, &o.in[0], &a, mode, acc)
	case m.AttrBool(i, ir.KeyIsScalarTensorTensor):
		err = kernel.ScalarTensorTensor(k, out, &o.in[0], &o.in[2], &a, acc)
	case m.AttrBool(i, ir.KeyIsTensorTensorScan):
		err = kernel.TensorTensorScan(k, out, &o.in[0], &o.in[2], &a)
	default:
		a.S1 = o.scalar(ins, 2, 0)
		err = kernel.TensorScalar(k, out, &o.in[0], &a, acc)
	}
	if err != nil {
		return err
	}
	return second(&s.dveAcc)
}

// immediate is const0 or const1: a float, whose bits also serve the bitwise class as the integer it truncates to.
func immediate(m *ir.Module, i ir.Inst, k ir.Key) kernel.Scalar {
	return kernel.Imm(math.Float32frombits(uint32(m.Attr(i, k))))
}

func affine(m *ir.Module, i ir.Inst) kernel.Affine {
	a := kernel.Affine{Base: m.AttrInt(i, ir.KeyBase), Mult: m.AttrInt(i, ir.KeyChannelMultiplier)}
	l := m.AttrInts(i, ir.KeyPattern)
	a.N = min(len(l)/2, kernel.Axes)
	for j := range a.N {
		d := a.N - 1 - j
		a.Steps[d], a.Nums[d] = l[2*j], int(l[2*j+1])
	}
	return a
}

// matmul is one Matmult: accumulation flag 4 adds to the destination, anything else overwrites it.
func (s *Sim) matmul(m *ir.Module, i ir.Inst, o *operands) error {
	accumulate := m.ReadsDst(i)
	if m.AttrBool(i, ir.KeyIsTranspose) && m.Gen.ExactTranspose {
		return kernel.Transpose(&s.scratch, &o.out[0], &o.in[0], &o.in[1])
	}
	if accumulate {
		if off, ok := s.checkRead(&o.out[0], o.outSt[0]); !ok {
			return target.Errorf(target.User, "accumulates onto byte %d of PSUM, which nothing wrote", off)
		}
	}
	return kernel.MatmulFull(&s.scratch, &o.out[0], &o.in[0], &o.in[1], accumulate)
}
