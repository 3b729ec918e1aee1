package machine

import (
	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Places of the operands of a bundle in operands.a.
const (
	iSrc = iota
	iSrc1
	iImm0
	iImm1
	iImm2
	iValues // 8 consecutive elements at Ptr
	iIndex  // 16-bit indices at Ptr
	iDst
	iDst1 // output that an earlier bundle announced
	numOperands
)

// Flags of an opRow.
const (
	rSrc       = 1 << iSrc
	rSrc1      = 1 << iSrc1
	rImm0      = 1 << iImm0
	rImm1      = 1 << iImm1
	rImm2      = 1 << iImm2
	rValues    = 1 << iValues
	rIndex     = 1 << iIndex
	wDst       = 1 << iDst
	rImms      = rImm0 | rImm1
	pPE        = 1 << (numOperands + iota) // partitions: Rows for the source, Cols for the destination
	pOne                                   // the destination has one partition
	pPair                                  // the destination's type and partitions are those that the first bundle gave
	rDst                                   // the destination is read as well
	immPointer                             // Imm1 and Imm2 are pointers without a source code
	biasDtype                              // Imm1 has the type DtSrc1
	isControl                              // no tensor operands
)

type engineSet uint8

const (
	onPool = engineSet(1) << target.EnginePool
	onAct  = engineSet(1) << target.EngineAct
	onPE   = engineSet(1) << target.EnginePE
	onDVE  = engineSet(1) << target.EngineDVE
	onSP   = engineSet(1) << target.EngineSP
	onALU  = onPool | onAct | onDVE
	onVec  = onPool | onDVE
	onAny  = onPool | onAct | onPE | onDVE | onSP
)

// opRow says on which engines an opcode runs, which operands it has, and that it is implemented: a zero row is not.
type opRow struct {
	engines engineSet
	flags   uint32
}

var opTable = [256]opRow{
	isa.OpLoadWeights: {onPE, rSrc | pPE},
	isa.OpMatmul:      {onPE, rSrc | wDst | pPE},

	isa.OpActivate:       {onAct, rSrc | rImm0 | rImm1 | rImm2 | wDst | biasDtype},
	isa.OpActivate2:      {onAct, rSrc | rImm0 | rImm1 | rImm2 | wDst | biasDtype},
	isa.OpLoadActFuncSet: {onAct, isControl},
	isa.OpActReadAcc:     {onAct, wDst},
	isa.OpExponential:    {onVec, rSrc | rImm0 | wDst},

	isa.OpTensorTensor:        {onALU, rSrc | rSrc1 | wDst},
	isa.OpTensorTensorBit:     {onALU, rSrc | rSrc1 | wDst},
	isa.OpTensorScalar:        {onALU, rSrc | rImms | wDst},
	isa.OpTensorScalarBit:     {onALU, rSrc | rImms | wDst},
	isa.OpTensorScalarReduce:  {onVec, rSrc | rImms | wDst},
	isa.OpTensorScalarScan:    {onVec, rSrc | rImms | wDst},
	isa.OpScalarTensorTensor:  {onVec, rSrc | rSrc1 | rImm0 | wDst},
	isa.OpScalarTensorTensorB: {onVec, rSrc | rSrc1 | rImm0 | wDst},
	isa.OpTensorTensorScan:    {onVec, rSrc | rSrc1 | rImm0 | wDst},
	isa.OpTensorCopy:          {onALU, rSrc | wDst},
	isa.OpTensorCopyCast:      {onALU, rSrc | wDst},
	isa.OpTensorReduce:        {onVec, rSrc | wDst},
	isa.OpTensorReduceBit:     {onVec, rSrc | wDst},
	isa.OpCrossLaneReduce:     {onVec, rSrc | wDst | pOne},
	isa.OpCrossLaneReduceBit:  {onVec, rSrc | wDst | pOne},
	isa.OpPool:                {onVec, rSrc | wDst},
	isa.OpReciprocal:          {onVec, rSrc | wDst},
	isa.OpMemset:              {onALU, wDst},
	isa.OpIota:                {onVec, wDst},
	isa.OpAffineSelect:        {onVec, rSrc | wDst},
	isa.OpRangeSelect:         {onVec, rSrc | rImm1 | rImm2 | wDst | immPointer},
	isa.OpCopyPredicated:      {onVec, rSrc | rSrc1 | wDst | rDst},
	isa.OpCopyPredicatedOld:   {onVec, rSrc | rSrc1 | wDst | rDst},
	isa.OpMax:                 {onVec, rSrc | wDst},
	isa.OpMaxIndexLoad:        {onVec, rSrc},
	isa.OpMaxIndex:            {onVec, rSrc | wDst},
	isa.OpMatchReplace:        {onVec, rSrc | rValues | wDst},
	isa.OpBNStats:             {onVec, rSrc | wDst},
	isa.OpBNAggregate:         {onVec, rSrc | wDst},
	isa.OpStreamLoad:          {onVec, rSrc},
	isa.OpStreamShuffle:       {onVec, wDst | pPair},
	isa.OpStreamTranspose:     {onVec, wDst},
	isa.OpGatherLoad:          {onVec, rSrc},
	isa.OpGather:              {onVec, rSrc | wDst},
	isa.OpIndirectCopy:        {onVec, rSrc | rIndex | wDst},
	isa.OpDveReadAcc:          {onVec, wDst},

	isa.OpEventSemaphore: {onAny, isControl},
	isa.OpHalt:           {onAny, isControl},
	isa.OpDrain:          {onAny, isControl},
	isa.OpNoOp:           {onAny, isControl},
	isa.OpEngineNop:      {onAny, isControl},
	isa.OpRegisterMove:   {onAny, isControl},
	isa.OpRegisterAlu:    {onAny, isControl},
	isa.OpBranch:         {onAny, isControl},
	isa.OpBranchHint:     {onAny, isControl},
	isa.OpGroupReset:     {onAny, isControl},
	isa.OpDMATrigger:     {onAny, isControl},
	isa.OpIndirectDMA:    {onPool, isControl}, // its descriptors are made by Pool's software
	isa.OpReturn:         {onAny, isControl},
	isa.OpBarrier:        {onAny, isControl},
	isa.OpCompletion:     {onAny, isControl},
	isa.OpExit:           {onAny, isControl},
}

// operands are the bound accesses of one bundle; have has a bit for each that is present.
type operands struct {
	a    [numOperands]access
	have uint32
}

var roles = [numOperands]string{"in", "second input", "scalar 0", "scalar 1", "scalar 2", "values", "indices", "out", "second output"}

// runnable finds the row of a decoded bundle and refuses what has none.
func (g *engine) runnable() (*opRow, error) {
	r := &opTable[g.in.Opcode]
	switch {
	case r.engines == 0:
		return nil, target.NotSupported(g.in.Opcode.String(), "%s (0x%02X) is not simulated", g.in.Opcode, uint8(g.in.Opcode))
	case r.engines>>g.id&1 == 0:
		return nil, target.Errorf(target.User, "%s does not run on %s", g.in.Opcode, g.id)
	}
	return r, nil
}

// bind finds the operands of the bundle that the engine has decoded.
func (g *engine) bind(l *layout, r *opRow, o *operands) error {
	in := &g.in
	o.have = 0
	f := r.flags
	srcParts, dstParts, dtDst := int(in.Parts), int(in.Parts), in.DtDst
	switch {
	case f&pPE != 0:
		srcParts, dstParts = int(in.Rows), int(in.Cols)
	case f&pOne != 0:
		dstParts = 1
	case f&pPair != 0:
		dstParts, dtDst = g.pair.parts, g.pair.dt
	}
	if f&rSrc != 0 {
		if err := l.bindDesc(o.add(iSrc), &in.Src, &g.regs, in.DtSrc, srcParts, roles[iSrc]); err != nil {
			return err
		}
	}
	if f&rSrc1 != 0 {
		if err := l.bindDesc(o.add(iSrc1), &in.Src1, &g.regs, in.DtSrc1, srcParts, roles[iSrc1]); err != nil {
			return err
		}
	}
	if f&(rImm0|rImm1|rImm2) != 0 {
		if err := g.bindScalars(l, f, o); err != nil {
			return err
		}
	}
	if f&rValues != 0 {
		if err := l.bindColumn(o.add(iValues), in.Ptr, &g.regs, in.DtSrc, srcParts, 8, roles[iValues]); err != nil {
			return err
		}
	}
	if f&rIndex != 0 {
		group := min(16, srcParts)
		n := (int(in.Count) + group - 1) / group
		if in.Count > 1<<16 || n < 1 {
			return target.Errorf(target.User, "%d valid indices; 1 to 65536 are possible", in.Count)
		}
		if err := l.bindColumn(o.add(iIndex), in.Ptr, &g.regs, target.Uint16, srcParts, n, roles[iIndex]); err != nil {
			return err
		}
	}
	if f&wDst != 0 {
		if dstParts == 0 {
			return target.Errorf(target.User, "nothing was loaded for it")
		}
		if err := l.bindDesc(o.add(iDst), &in.Dst, &g.regs, dtDst, dstParts, roles[iDst]); err != nil {
			return err
		}
		o.a[iDst].write = true
	}
	if in.Opcode == isa.OpMaxIndex && g.pair.second.N != 0 {
		if err := l.bindDesc(o.add(iDst1), &g.pair.second, &g.regs, g.pair.dt, g.pair.parts, roles[iDst1]); err != nil {
			return err
		}
		o.a[iDst1].write = true
	}
	return nil
}

func (g *engine) bindScalars(l *layout, f uint32, o *operands) error {
	in := &g.in
	scalars := [3]struct {
		src  uint8
		word uint32
	}{{in.Imm0Src, in.Imm0}, {in.Imm1Src, in.Imm1}, {in.Imm2Src, in.Imm2}}
	for i := range scalars {
		s := &scalars[i]
		if f>>(iImm0+i)&1 == 0 || f&immPointer == 0 && s.src != isa.SrcPointer {
			continue
		}
		if unread(in, i) {
			continue
		}
		dt := target.Float32
		if i == 1 && f&biasDtype != 0 {
			dt = in.DtSrc1
		}
		if err := l.bindColumn(o.add(iImm0+i), s.word, &g.regs, dt, int(in.Parts), 1, roles[iImm0+i]); err != nil {
			return err
		}
	}
	return nil
}

// unread reports a scalar that its operator does not look at, whatever its source code says.
func unread(in *isa.Inst, i int) bool {
	switch in.Opcode {
	case isa.OpActivate:
		return i == 2 && !in.Func.Parametric()
	case isa.OpActivate2:
		return i == 2 && !in.Func.Parametric() || i == 0 && unary(in.Op0) || i == 1 && unary(in.Op1)
	case isa.OpTensorScalar, isa.OpTensorScalarBit:
		return i == 0 && unary(in.Op0) || i == 1 && unary(in.Op1)
	case isa.OpScalarTensorTensor, isa.OpScalarTensorTensorB:
		return unary(in.Op0)
	case isa.OpTensorScalarReduce, isa.OpTensorScalarScan:
		return i == 0 && unary(in.Op0) || i == 1 && in.Acc != target.AccLoadAccumulate && in.Opcode == isa.OpTensorScalarReduce
	}
	return false
}

// unary reports the operators without a second operand.
func unary(o target.AluOp) bool {
	return o == target.AluBypass || o == target.AluBitNot || o == target.AluRsqrt || o == target.AluAbs
}

func (o *operands) add(i int) *access {
	o.have |= 1 << i
	o.a[i].write = false
	return &o.a[i]
}

// reads reports whether the bundle reads operand i.
func (o *operands) reads(i int, in *isa.Inst, r *opRow) bool {
	if o.a[i].write {
		return i == iDst && (r.flags&rDst != 0 || in.Opcode == isa.OpMatmul && in.Flags&isa.FlagAccumulate != 0)
	}
	return true
}

// latch keeps what the first bundle of a pair leaves for the second: type, partitions, and an output that is written later.
func (g *engine) latch() {
	in := &g.in
	switch in.Opcode {
	case isa.OpMaxIndexLoad, isa.OpStreamLoad, isa.OpGatherLoad:
		g.pair = pair{op: in.Opcode, dt: in.DtSrc, parts: int(in.Parts), second: in.Dst, fill: in.Imm0}
	}
}
