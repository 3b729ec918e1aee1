package lower

import (
	"math"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

func (t *Tail) alu(i ir.Inst, k ir.Key) target.AluOp { return target.AluOp(t.m.Attr(i, k)) }
func (t *Tail) accOf(i ir.Inst, k ir.Key) target.AccCmd {
	return target.AccCmd(t.m.Attr(i, k))
}

// encode fills t.insts with the bundles of one instruction, waits and updates apart.
func (t *Tail) encode(i ir.Inst, r *ir.InstRow) error {
	m := t.m
	ins, outs := m.Ins(i), m.Outs(i)
	info := r.Op.Info()
	if len(ins) < int(info.MinIn) || len(outs) < int(info.MinOut) {
		return target.Errorf(target.Bug, "%d inputs and %d outputs are too few", len(ins), len(outs))
	}
	switch r.Op {
	case ir.OpLoad, ir.OpSave, ir.OpDMACopy:
		return t.trigger(r)
	case ir.OpIndirectLoad:
		return t.indirectLoad(i)
	case ir.OpMatmult:
		return t.matmul(i, ins, outs)
	case ir.OpActivation:
		return t.activation(i, ins, outs)
	case ir.OpActivationReadAccumulator, ir.OpReadActivationAccumulator:
		return t.actReadAcc(outs[0])
	case ir.OpLoadActFuncSet:
		t.next(isa.OpLoadActFuncSet).Set = uint8(m.AttrInt(i, ir.KeyActFuncSet))
		return nil
	case ir.OpTensorTensor:
		return t.tensorTensor(i, ins, outs)
	case ir.OpTensorScalar, ir.OpTensorScalarPtr, ir.OpTensorScalarCache:
		return t.tensorScalar(i, r, ins, outs)
	case ir.OpExponential:
		return t.exponential(i, ins, outs)
	case ir.OpTensorCopy:
		op := isa.OpTensorCopy
		if ins[0].Dtype != outs[0].Dtype {
			op = isa.OpTensorCopyCast
		}
		_, err := t.unary(op, ins[0], outs[0])
		return err
	case ir.OpReciprocal:
		_, err := t.unary(isa.OpReciprocal, ins[0], outs[0])
		return err
	case ir.OpTensorReduce:
		return t.tensorReduce(i, ins, outs)
	case ir.OpPool:
		in, err := t.unary(isa.OpPool, ins[0], outs[0])
		if err == nil {
			in.Mode = 1
			if ir.PoolFunc(m.Attr(i, ir.KeyPoolFunc)) == ir.PoolAvg {
				in.Mode = 2
			}
		}
		return err
	case ir.OpMemset:
		return t.memset(i, outs[0])
	case ir.OpIota:
		return t.iota(i, outs[0])
	case ir.OpTensorScalarAffineSelect:
		return t.affineSelect(i, ins[0], outs[0])
	case ir.OpRangeSelect:
		return t.rangeSelect(i, ins, outs)
	case ir.OpCopyPredicated:
		return t.copyPredicated(i, ins, outs)
	case ir.OpMax:
		_, err := t.unary(isa.OpMax, ins[0], outs[0])
		return err
	case ir.OpMaxIndex, ir.OpMaxIndexAndMatchReplace:
		return t.maxIndex(i, r, ins, outs)
	case ir.OpMatchReplace:
		in, err := t.unary(isa.OpMatchReplace, ins[0], outs[0])
		if err != nil {
			return err
		}
		in.Imm0 = math.Float32bits(m.AttrFloat(i, ir.KeyImmValue))
		in.Ptr, err = t.eight(ins[1], ins[0].Dtype)
		return err
	case ir.OpBNStats:
		_, err := t.unary(isa.OpBNStats, ins[0], outs[0])
		return err
	case ir.OpBNStatsAggregate:
		_, err := t.unary(isa.OpBNAggregate, ins[0], outs[0])
		return err
	case ir.OpStreamTranspose, ir.OpStreamShuffle:
		return t.stream(i, r, ins[0], outs[0])
	case ir.OpDveReadAccumulator:
		return t.dveReadAcc(outs[0], m.AttrBool(i, ir.KeyNegated))
	case ir.OpNoOp, ir.OpEventSemaphore:
		t.next(isa.OpNoOp)
		return nil
	case ir.OpDrain:
		t.next(isa.OpDrain)
		return nil
	case ir.OpHalt:
		t.next(isa.OpHalt)
		return nil
	}
	return target.NotSupported(r.Op.String(), "%s has no encoding here: packages hold no scalar registers, branches or abstract operators; --pass runs the passes in front of codegen alone", r.Op)
}

// unary is the family with one input, one output and the partition count.
func (t *Tail) unary(op isa.Opcode, x, y ir.Arg) (*isa.Inst, error) {
	in := t.next(op)
	p, err := t.src(in, x)
	if err != nil {
		return nil, err
	}
	in.Parts = uint8(p)
	_, err = t.dst(in, y)
	return in, err
}

// trigger starts a block of descriptors; their completion is their own.
func (t *Tail) trigger(r *ir.InstRow) error {
	t.blocks++
	in := t.next(isa.OpDMATrigger)
	in.Block = t.blocks
	in.Name = t.names[r.Queue]
	return nil
}

// sums reports whether a fold into an accumulator is the plain sum that most forms know.
func sums(acc target.AccCmd, red target.AluOp) bool {
	return acc == target.AccIdle || red == target.AluBypass || red == target.AluAdd
}

func (t *Tail) activation(i ir.Inst, ins, outs []ir.Arg) error {
	m := t.m
	acc, red := t.accOf(i, ir.KeyAcc), t.alu(i, ir.KeyReduceOp)
	op0, op1 := t.alu(i, ir.KeyOp0), t.alu(i, ir.KeyOp1)
	two := op0 != target.AluBypass || op1 != target.AluBypass
	if !two && !sums(acc, red) {
		// Only the form with two operators can name the fold; it then spells x·scale + bias out.
		two, op0, op1 = true, target.AluMult, target.AluAdd
	}
	op := isa.OpActivate
	if two {
		op = isa.OpActivate2
	}
	in, err := t.unary(op, ins[0], outs[0])
	if err != nil {
		return err
	}
	in.Acc = acc
	in.Func = target.ActFunc(m.Attr(i, ir.KeyFunc))
	in.DtSrc1 = target.Float32
	arg := func(k int, key ir.Key) (uint8, uint32, error) {
		if k < len(ins) {
			return t.scalar(ins[k])
		}
		return isa.SrcInline, uint32(m.Attr(i, key)), nil
	}
	in.Imm1Src, in.Imm1 = isa.SrcInline, 0
	if len(ins) > 1 {
		if in.Imm1Src, in.Imm1, err = t.scalar(ins[1]); err != nil {
			return err
		}
	}
	if in.Imm0Src, in.Imm0, err = arg(2, ir.KeyScale); err != nil {
		return err
	}
	if in.Func.Parametric() {
		if in.Imm2Src, in.Imm2, err = arg(3, ir.KeyAlpha); err != nil {
			return err
		}
	}
	if two {
		in.Op0, in.Op1, in.RedOp, in.DtImm = op0, op1, red, target.Float32
		if in.RedOp == target.AluBypass {
			in.RedOp = target.AluAdd
		}
		in.Reverse = reverse(m, i)
	}
	if len(outs) > 1 {
		return t.actReadAcc(outs[1])
	}
	return nil
}

// reverse is bit 0 for swapped operands of op0, bit 1 for op1.
func reverse(m *ir.Module, i ir.Inst) (r uint8) {
	if m.AttrBool(i, ir.KeyReverse0) {
		r |= 1
	}
	if m.AttrBool(i, ir.KeyReverse1) {
		r |= 2
	}
	return r
}

func (t *Tail) actReadAcc(y ir.Arg) error {
	in := t.next(isa.OpActReadAcc)
	p, err := t.dst(in, y)
	in.Parts, in.Count = uint8(p), in.Dst.Elems()
	return err
}

func (t *Tail) dveReadAcc(y ir.Arg, negate bool) error {
	in := t.next(isa.OpDveReadAcc)
	p, err := t.dst(in, y)
	in.Parts = uint8(p)
	if negate {
		in.Negate = 1
	}
	return err
}

func (t *Tail) tensorTensor(i ir.Inst, ins, outs []ir.Arg) error {
	op := t.alu(i, ir.KeyOp)
	word := isa.OpTensorTensor
	if op.Bitwise() {
		word = isa.OpTensorTensorBit
	}
	acc := t.accOf(i, ir.KeyAcc)
	if !sums(acc, t.alu(i, ir.KeyReduceOp)) {
		return target.NotSupported("reduce_op", "an accumulating TensorTensor can only add")
	}
	in, err := t.unary(word, ins[0], outs[0])
	if err != nil {
		return err
	}
	in.Op0, in.Acc = op, acc
	return t.src1(in, ins[1])
}

func (t *Tail) tensorScalar(i ir.Inst, r *ir.InstRow, ins, outs []ir.Arg) error {
	m := t.m
	op0, op1 := t.alu(i, ir.KeyOp0), t.alu(i, ir.KeyOp1)
	bits := op0.Bitwise() || op1.Bitwise()
	acc := target.AccIdle
	if r.Op != ir.OpTensorScalar {
		acc = t.accOf(i, ir.KeyAcc)
		if r.Op == ir.OpTensorScalarPtr && !sums(acc, t.alu(i, ir.KeyReduceOp)) {
			return target.NotSupported("reduce_op", "an accumulating TensorScalarPtr can only add")
		}
	}
	stt := r.Op == ir.OpTensorScalarPtr && m.AttrBool(i, ir.KeyIsScalarTensorTensor)
	scan := r.Op == ir.OpTensorScalarPtr && m.AttrBool(i, ir.KeyIsTensorTensorScan)
	word := isa.OpTensorScalar
	switch {
	case m.AttrBool(i, ir.KeyIsTensorScalarAddr):
		return target.NotSupported("TensorScalarPtr", "address arithmetic (is_tensor_scalar_addr) is not supported")
	case stt && bits:
		word = isa.OpScalarTensorTensorB
	case stt:
		word = isa.OpScalarTensorTensor
	case scan:
		word = isa.OpTensorTensorScan
	case r.Op == ir.OpTensorScalarCache && m.Attr(i, ir.KeyTSCMode) != 0:
		word = isa.OpTensorScalarScan
	case r.Op == ir.OpTensorScalarCache:
		word = isa.OpTensorScalarReduce
	case bits:
		word = isa.OpTensorScalarBit
	}
	in, err := t.unary(word, ins[0], outs[0])
	if err != nil {
		return err
	}
	in.Op0, in.Op1, in.Acc, in.Reverse = op0, op1, acc, reverse(m, i)
	switch {
	case r.Op == ir.OpTensorScalar:
		in.Imm0Src, in.Imm0 = isa.SrcInline, uint32(m.Attr(i, ir.KeyConst0))
		in.Imm1Src, in.Imm1 = isa.SrcInline, uint32(m.Attr(i, ir.KeyConst1))
	case stt || scan:
		if len(ins) < 3 {
			return target.Errorf(target.Bug, "%d inputs, want 3", len(ins))
		}
		if in.Imm0Src, in.Imm0, err = t.scalar(ins[1]); err != nil {
			return err
		}
		if err := t.src1(in, ins[2]); err != nil {
			return err
		}
	default:
		if in.Imm0Src, in.Imm0, err = t.scalar(ins[1]); err != nil {
			return err
		}
		in.Imm1Src = isa.SrcInline
		if len(ins) > 2 {
			if in.Imm1Src, in.Imm1, err = t.scalar(ins[2]); err != nil {
				return err
			}
		}
	}
	if len(outs) > 1 {
		return t.dveReadAcc(outs[1], m.AttrBool(i, ir.KeyNegateSecondOutput))
	}
	return nil
}

func (t *Tail) exponential(i ir.Inst, ins, outs []ir.Arg) error {
	acc := t.accOf(i, ir.KeyReduceCmd)
	if !sums(acc, t.alu(i, ir.KeyReduceOp)) {
		return target.NotSupported("reduce_op", "an accumulating Exponential can only add")
	}
	in, err := t.unary(isa.OpExponential, ins[0], outs[0])
	if err != nil {
		return err
	}
	in.Acc = acc
	if in.Imm0Src, in.Imm0, err = t.scalar(ins[1]); err != nil {
		return err
	}
	in.Imm1Src = isa.SrcInline
	if len(outs) > 1 {
		return t.dveReadAcc(outs[1], false)
	}
	return nil
}

// tensorReduce keeps the axes of the input apart: how many of the innermost are folded is counted on the wire without unit
// axes.
func (t *Tail) tensorReduce(i ir.Inst, ins, outs []ir.Arg) error {
	m := t.m
	op := t.alu(i, ir.KeyOp)
	axis := ir.AxisList(m.Attr(i, ir.KeyAxis))
	if m.AttrBool(i, ir.KeyApplyTranspose) {
		return target.NotSupported("TensorReduce", "apply_transpose is not supported")
	}
	lanes := axis == ir.AxisC || axis == ir.AxisXYZWC
	word := isa.OpTensorReduce
	switch {
	case lanes && op.Bitwise():
		word = isa.OpCrossLaneReduceBit
	case lanes:
		word = isa.OpCrossLaneReduce
	case op.Bitwise():
		word = isa.OpTensorReduceBit
	}
	in := t.next(word)
	row, err := t.desc(&in.Src, ins[0], false)
	if err != nil {
		return err
	}
	in.DtSrc, in.Parts = ins[0].Dtype, uint8(row.Parts)
	if _, err := t.dst(in, outs[0]); err != nil {
		return err
	}
	in.Op0 = op
	if m.AttrBool(i, ir.KeyNegate) {
		in.Negate = 1
	}
	if lanes {
		return nil
	}
	n := row.NPairs()
	for k := 0; k <= int(axis) && n-1-k > 0; k++ {
		if row.Pairs[n-1-k].Num != 1 {
			in.Axes++
		}
	}
	return nil
}

// memset has one axis on the wire: the longest of the pattern, one bundle for every element of the others.
func (t *Tail) memset(i ir.Inst, y ir.Arg) error {
	m := t.m
	word := isa.OpMemset
	if ir.MemsetMode(m.Attr(i, ir.KeyMemsetMode)) == ir.MemsetRandom {
		word = isa.OpMemsetRandom
	}
	fill := m.Attr(i, ir.KeyConstant)
	if y.Dtype.Size() == 8 && fill != 0 {
		return target.NotSupported(y.Dtype.String(), "Memset of %s to anything but 0", y.Dtype)
	}
	if s := y.Dtype.Size(); s < 4 {
		fill &= 1<<(8*s) - 1
	}
	var d isa.Desc
	row, err := t.desc(&d, y, true)
	if err != nil {
		return err
	}
	long, rest := 0, int64(1)
	for k := range int(d.N) {
		if d.Num[k] > d.Num[long] {
			long = k
		}
		rest *= int64(d.Num[k])
	}
	if rest /= int64(d.Num[long]); rest > maxFill {
		return target.Errorf(target.Bug, "Memset of %d separate runs; at most %d are possible", rest, maxFill)
	}
	var idx [4]uint32
	for {
		in := t.next(word)
		in.DtDst, in.Parts, in.Imm0 = y.Dtype, uint8(row.Parts), uint32(fill)
		at := int64(d.Addr)
		for k := range int(d.N) {
			at += int64(idx[k]) * int64(d.Step[k]) * int64(y.Dtype.Size())
		}
		in.Dst = isa.Desc{Addr: uint32(at), N: 1}
		in.Dst.Step[0], in.Dst.Num[0] = d.Step[long], d.Num[long]
		k := 0
		for ; k < int(d.N); k++ {
			if k == long {
				continue
			}
			if idx[k]++; idx[k] < d.Num[k] {
				break
			}
			idx[k] = 0
		}
		if k == int(d.N) {
			return nil
		}
	}
}

// maxFill bounds the bundles of one Memset.
const maxFill = 4096

// affine refines an output and the axes of its affine pattern into common ones.
func (t *Tail) affine(i ir.Inst, in *isa.Inst, y ir.Arg) error {
	var d isa.Desc
	row, err := t.desc(&d, y, true)
	if err != nil {
		return err
	}
	in.DtDst, in.Parts = y.Dtype, uint8(row.Parts)
	if d.N == 1 && d.Num[0] == 1 {
		d.N = 0
	}
	pat := t.m.AttrInts(i, ir.KeyPattern)
	var step [8]int32
	var num [8]uint32
	n := 0
	for k := len(pat)/2 - 1; k >= 0; k-- {
		s, c := pat[2*k], pat[2*k+1]
		if c == 1 {
			continue
		}
		if n == len(step) || s != int64(int32(s)) || c < 1 || c > 0xFFFF {
			return target.Errorf(target.Bug, "pattern axis %d has step %d, count %d", k, s, c)
		}
		step[n], num[n] = int32(s), uint32(c)
		n++
	}
	in.Dst.Addr = d.Addr
	c, ok := refine(in.Dst.Num[:], in.Dst.Step[:], in.Steps[:], &d, step[:n], num[:n])
	if !ok {
		return target.NotSupported("pattern", "the pattern %v does not divide the axes of the output, or needs more than 4", pat)
	}
	in.Dst.N = uint32(c)
	if c == 0 {
		in.Dst.N, in.Dst.Step[0], in.Dst.Num[0] = 1, 1, 1
	}
	base, mult := t.m.AttrInt(i, ir.KeyBase), t.m.AttrInt(i, ir.KeyChannelMultiplier)
	if base != int64(int32(base)) || mult != int64(int32(mult)) {
		return target.Errorf(target.Bug, "base %d or channel multiplier %d is beyond 32 bits", base, mult)
	}
	in.Base, in.ChanMul = int32(base), int32(mult)
	return nil
}

func (t *Tail) iota(i ir.Inst, y ir.Arg) error { return t.affine(i, t.next(isa.OpIota), y) }

func (t *Tail) affineSelect(i ir.Inst, x, y ir.Arg) error {
	in := t.next(isa.OpAffineSelect)
	if err := t.affine(i, in, y); err != nil {
		return err
	}
	if _, err := t.src(in, x); err != nil {
		return err
	}
	in.Op0 = t.alu(i, ir.KeyCompareOp)
	in.Imm0 = uint32(t.m.Attr(i, ir.KeyFillValue))
	// The wire has steps for the two fastest axes.
	if in.Steps[2] != 0 || in.Steps[3] != 0 {
		return target.NotSupported("pattern", "the pattern of an affine select has more than two axes that count")
	}
	return nil
}

func (t *Tail) rangeSelect(i ir.Inst, ins, outs []ir.Arg) error {
	m := t.m
	if m.AttrInt(i, ir.KeyBase) != 0 {
		return target.NotSupported("base", "RangeSelect with base %d; only 0 has an encoding", m.AttrInt(i, ir.KeyBase))
	}
	in, err := t.unary(isa.OpRangeSelect, ins[0], outs[0])
	if err != nil {
		return err
	}
	in.Acc, in.RedOp = t.accOf(i, ir.KeyReduceCmd), t.alu(i, ir.KeyReduceOp)
	in.Op0, in.Op1 = t.alu(i, ir.KeyCompareOp0), t.alu(i, ir.KeyCompareOp1)
	in.Imm0 = uint32(m.Attr(i, ir.KeyFillValue))
	if in.Imm1, err = t.column(ins[1]); err != nil {
		return err
	}
	if in.Imm2, err = t.column(ins[2]); err != nil {
		return err
	}
	if len(outs) > 1 {
		return t.dveReadAcc(outs[1], false)
	}
	return nil
}

func (t *Tail) copyPredicated(i ir.Inst, ins, outs []ir.Arg) error {
	if t.accOf(i, ir.KeyAccumulatorCmd) != target.AccIdle || len(outs) > 1 {
		return target.NotSupported("CopyPredicated", "CopyPredicated with an accumulator is not supported")
	}
	in, err := t.unary(isa.OpCopyPredicated, ins[0], outs[0])
	if err != nil {
		return err
	}
	if t.m.AttrBool(i, ir.KeyReversePred) {
		in.Reverse = 1
	}
	return t.src1(in, ins[1])
}

// eight is the address of 8 consecutive elements of a type.
func (t *Tail) eight(a ir.Arg, d target.Dtype) (uint32, error) {
	var v isa.Desc
	row, err := t.desc(&v, a, true)
	if err != nil {
		return 0, err
	}
	if a.Dtype != d || v.N != 1 || v.Step[0] != 1 || v.Num[0] != 8 {
		return 0, target.NotSupported("MatchReplace", "the values %s must be 8 consecutive elements of %s", t.m.LocName(row.Loc), d)
	}
	return v.Addr, nil
}

func (t *Tail) maxIndex(i ir.Inst, r *ir.InstRow, ins, outs []ir.Arg) error {
	in := t.next(isa.OpMaxIndexLoad)
	p, err := t.src(in, ins[1])
	if err != nil {
		return err
	}
	in.Parts = uint8(p)
	if r.Op == ir.OpMaxIndexAndMatchReplace {
		if outs[1].Dtype != ins[1].Dtype {
			return target.NotSupported(outs[1].Dtype.String(), "the replaced copy must have the type of the input, %s", ins[1].Dtype)
		}
		in.Imm0 = math.Float32bits(t.m.AttrFloat(i, ir.KeyImmValue))
		if _, err := t.desc(&in.Dst, outs[1], true); err != nil {
			return err
		}
	}
	_, err = t.unary(isa.OpMaxIndex, ins[0], outs[0])
	return err
}

// stream is a load of the input and the operation on it.
func (t *Tail) stream(i ir.Inst, r *ir.InstRow, x, y ir.Arg) error {
	in := t.next(isa.OpStreamLoad)
	p, err := t.src(in, x)
	if err != nil {
		return err
	}
	in.Parts = uint8(p)
	if r.Op == ir.OpStreamTranspose {
		in = t.next(isa.OpStreamTranspose)
		if p, err = t.dst(in, y); err != nil {
			return err
		}
		in.Parts = uint8(p)
		return nil
	}
	if x.Dtype != y.Dtype {
		return target.NotSupported(y.Dtype.String(), "StreamShuffle of %s cannot write %s", x.Dtype, y.Dtype)
	}
	in = t.next(isa.OpStreamShuffle)
	mask := t.m.AttrInts(i, ir.KeyMask)
	if len(mask) != len(in.Mask) {
		return target.Errorf(target.Bug, "mask of %d lanes, want %d", len(mask), len(in.Mask))
	}
	for k, v := range mask {
		if v < 0 || v > 255 {
			return target.Errorf(target.Bug, "mask lane %d is %d", k, v)
		}
		in.Mask[k] = uint8(v)
	}
	_, err = t.desc(&in.Dst, y, true)
	return err
}
