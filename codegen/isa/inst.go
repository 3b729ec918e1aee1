package isa

import (
	"unsafe"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Bundle is one instruction word, little-endian.
type Bundle [64]byte

// BundleSize is the bytes of one bundle; a stream is a flat array of them.
const BundleSize = 64

// Desc is the free pattern of one on-chip operand: element i is at Addr + size·Σ Step[d]·i_d, in every partition from the
// one that Addr names. Index 0 is the fastest axis (the reverse of the IR). Steps are in elements. N = 0 means that the
// operand is absent; a single element is N = 1, Step 1, Num 1, and no other axis of a canonical pattern has Num 1.
type Desc struct {
	Addr uint32    // ADDR4: global on-chip byte address, or RegAddr(r)
	Step [4]int32  // int16 range on the wire
	Num  [4]uint32 // 1..65535 on the wire
	N    uint32
}

// Sync is the inline wait and update that every bundle but the dynamic DMA may carry. Modes are wire bytes, zero = none.
// Value belongs to the wait (threshold, or register for WaitGEReg) or to the update (amount), never to both; a bundle
// that needs two values takes an EventSemaphore in front.
type Sync struct {
	WaitMode, WaitSem     uint8
	UpdateMode, UpdateSem uint8
	Value                 uint32
}

// DMASide is one side of a static DMA bundle: Run bytes, repeated over two outer dimensions.
type DMASide struct {
	Off  uint32
	Var  uint32 // variable id, 24 bits; 0 = SBUF
	Step [2]int32
	Num  [2]uint32
	Run  uint32 // 1..65536 bytes
	Mode uint8  // AddrStatic, AddrDGE, AddrDGEReg, plus flags
	Reg  uint8  // offset register: bit 7 valid, bit 6 mode
	Dt   target.Dtype
	_    uint8
}

// MxOperand is a block-scaled operand: packed data and its power-of-two scales.
type MxOperand struct {
	Data, Scale uint32
	Count       uint32 // packed elements a partition
	Sign        uint8  // walk direction: 1 up, 0xFF down
	ScalePart   uint8  // start partition of the scales, 0, 4, 8 or 12
	_           [2]uint8
}

// Inst is the decoded fields of any form: a superset without pointers, comparable with ==. Members that a form does not
// have must be zero; Encode says so when they are not. FORMS.md lists which form uses what.
//
// Scalars Imm0..Imm2 are 32-bit words whose meaning is in Imm0Src..Imm2Src: a pointer to fp32 [p,1], fp32 bits, or a
// register. Activation: Imm0 scale, Imm1 bias, Imm2 alpha. TensorScalar: Imm0, Imm1. Scan and scalar-tensor-tensor: Imm0.
type Inst struct {
	Target uint64 // branch: bundle index in the same stream
	Imm64  uint64
	Off64  uint64 // byte offset in Var (TensorLoad/Save)

	Src, Src1, Dst Desc
	From, To       DMASide
	Mx             MxOperand
	Steps          [4]int32 // iota and select: value step of each axis of Dst, fastest first
	Sync           Sync

	Wait1Value  uint32 // EventSemaphore only: the second wait and its own update value
	UpdateValue uint32
	Imm0        uint32
	Imm1        uint32
	Imm2        uint32
	Base        int32 // iota and select: value at partition 0, element 0
	ChanMul     int32 // value step of a partition
	Ptr         uint32
	Count       uint32
	Count1      uint32
	Count2      uint32
	Block       uint32 // DMATrigger: descriptor block; Call: argument table
	Var         uint32
	VarOff      uint32

	Mask [32]byte // GroupReset: semaphore bits; StreamShuffle: source lane of each of 32 lanes
	Name [36]byte // queue or callee, NUL padded

	Opcode    Opcode
	Saturate  uint8 // QuantizeMx
	Wait1Mode uint8
	Wait1Sem  uint8

	DtSrc, DtSrc1, DtDst, DtImm target.Dtype
	Op0, Op1, RedOp             target.AluOp
	Acc                         target.AccCmd
	Func                        target.ActFunc
	Imm0Src, Imm1Src, Imm2Src   uint8

	Parts   uint8 // active partitions, 1..128
	Rows    uint8 // PE: contraction rows K
	Cols    uint8 // PE: active output partitions M
	Reverse uint8 // bit 0 swaps the operands of Op0, bit 1 those of Op1
	Negate  uint8
	Axes    uint8
	Mode    uint8
	Set     uint8

	Flags      uint8 // accumulation: FlagStart, FlagStop, FlagAccumulate
	Variant    uint8
	Perf       uint8
	Transpose  uint8 // LoadWeights: 2 marks a transposing load
	RowGroup   uint8
	ColGroup   uint8
	ZeroRegion uint8 // log2 of the banks of the region
	Rep0, Rep1 uint8

	Cmp        uint8 // branch condition
	RegA, RegB uint8
	RegDst     uint8
	RegDst1    uint8
	SemFirst   uint8
	SemLast    uint8
	Sem        uint8 // DMA completion: semaphore and increment
	SemInc     uint8
	Qos        uint8
	Cmd        uint8

	_ [4]uint8
}

// Places of the members, the right-hand side of the form tables. A reflection test proves that each names a whole member
// of the width that the field's kind reads.
const (
	mTarget = uint16(unsafe.Offsetof(z.Target))
	mImm64  = uint16(unsafe.Offsetof(z.Imm64))
	mOff64  = uint16(unsafe.Offsetof(z.Off64))

	mSrc   = uint16(unsafe.Offsetof(z.Src))
	mSrc1  = uint16(unsafe.Offsetof(z.Src1))
	mDst   = uint16(unsafe.Offsetof(z.Dst))
	mFrom  = uint16(unsafe.Offsetof(z.From))
	mTo    = uint16(unsafe.Offsetof(z.To))
	mMx    = uint16(unsafe.Offsetof(z.Mx))
	mSteps = uint16(unsafe.Offsetof(z.Steps))

	mWaitMode   = uint16(unsafe.Offsetof(z.Sync) + unsafe.Offsetof(z.Sync.WaitMode))
	mWaitSem    = uint16(unsafe.Offsetof(z.Sync) + unsafe.Offsetof(z.Sync.WaitSem))
	mUpdateMode = uint16(unsafe.Offsetof(z.Sync) + unsafe.Offsetof(z.Sync.UpdateMode))
	mUpdateSem  = uint16(unsafe.Offsetof(z.Sync) + unsafe.Offsetof(z.Sync.UpdateSem))
	mSyncValue  = uint16(unsafe.Offsetof(z.Sync) + unsafe.Offsetof(z.Sync.Value))

	mWait1Value  = uint16(unsafe.Offsetof(z.Wait1Value))
	mUpdateValue = uint16(unsafe.Offsetof(z.UpdateValue))
	mImm0        = uint16(unsafe.Offsetof(z.Imm0))
	mImm1        = uint16(unsafe.Offsetof(z.Imm1))
	mImm2        = uint16(unsafe.Offsetof(z.Imm2))
	mBase        = uint16(unsafe.Offsetof(z.Base))
	mChanMul     = uint16(unsafe.Offsetof(z.ChanMul))
	mPtr         = uint16(unsafe.Offsetof(z.Ptr))
	mCount       = uint16(unsafe.Offsetof(z.Count))
	mCount1      = uint16(unsafe.Offsetof(z.Count1))
	mCount2      = uint16(unsafe.Offsetof(z.Count2))
	mBlock       = uint16(unsafe.Offsetof(z.Block))
	mVar         = uint16(unsafe.Offsetof(z.Var))
	mVarOff      = uint16(unsafe.Offsetof(z.VarOff))
	mMask        = uint16(unsafe.Offsetof(z.Mask))
	mName        = uint16(unsafe.Offsetof(z.Name))

	mSaturate  = uint16(unsafe.Offsetof(z.Saturate))
	mWait1Mode = uint16(unsafe.Offsetof(z.Wait1Mode))
	mWait1Sem  = uint16(unsafe.Offsetof(z.Wait1Sem))

	mDtSrc   = uint16(unsafe.Offsetof(z.DtSrc))
	mDtSrc1  = uint16(unsafe.Offsetof(z.DtSrc1))
	mDtDst   = uint16(unsafe.Offsetof(z.DtDst))
	mDtImm   = uint16(unsafe.Offsetof(z.DtImm))
	mOp0     = uint16(unsafe.Offsetof(z.Op0))
	mOp1     = uint16(unsafe.Offsetof(z.Op1))
	mRedOp   = uint16(unsafe.Offsetof(z.RedOp))
	mAcc     = uint16(unsafe.Offsetof(z.Acc))
	mFunc    = uint16(unsafe.Offsetof(z.Func))
	mImm0Src = uint16(unsafe.Offsetof(z.Imm0Src))
	mImm1Src = uint16(unsafe.Offsetof(z.Imm1Src))
	mImm2Src = uint16(unsafe.Offsetof(z.Imm2Src))

	mParts   = uint16(unsafe.Offsetof(z.Parts))
	mRows    = uint16(unsafe.Offsetof(z.Rows))
	mCols    = uint16(unsafe.Offsetof(z.Cols))
	mReverse = uint16(unsafe.Offsetof(z.Reverse))
	mNegate  = uint16(unsafe.Offsetof(z.Negate))
	mAxes    = uint16(unsafe.Offsetof(z.Axes))
	mMode    = uint16(unsafe.Offsetof(z.Mode))
	mSet     = uint16(unsafe.Offsetof(z.Set))

	mFlags      = uint16(unsafe.Offsetof(z.Flags))
	mVariant    = uint16(unsafe.Offsetof(z.Variant))
	mPerf       = uint16(unsafe.Offsetof(z.Perf))
	mTranspose  = uint16(unsafe.Offsetof(z.Transpose))
	mRowGroup   = uint16(unsafe.Offsetof(z.RowGroup))
	mColGroup   = uint16(unsafe.Offsetof(z.ColGroup))
	mZeroRegion = uint16(unsafe.Offsetof(z.ZeroRegion))
	mRep0       = uint16(unsafe.Offsetof(z.Rep0))
	mRep1       = uint16(unsafe.Offsetof(z.Rep1))

	mCmp      = uint16(unsafe.Offsetof(z.Cmp))
	mRegA     = uint16(unsafe.Offsetof(z.RegA))
	mRegB     = uint16(unsafe.Offsetof(z.RegB))
	mRegDst   = uint16(unsafe.Offsetof(z.RegDst))
	mRegDst1  = uint16(unsafe.Offsetof(z.RegDst1))
	mSemFirst = uint16(unsafe.Offsetof(z.SemFirst))
	mSemLast  = uint16(unsafe.Offsetof(z.SemLast))
	mSem      = uint16(unsafe.Offsetof(z.Sem))
	mSemInc   = uint16(unsafe.Offsetof(z.SemInc))
	mQos      = uint16(unsafe.Offsetof(z.Qos))
	mCmd      = uint16(unsafe.Offsetof(z.Cmd))

	// Members of an MxOperand, added to mMx, and of a DMASide, added to mFrom or mTo.
	mxScale  = uint16(unsafe.Offsetof(z.Mx.Scale))
	mxCount  = uint16(unsafe.Offsetof(z.Mx.Count))
	mxSign   = uint16(unsafe.Offsetof(z.Mx.Sign))
	mxPart   = uint16(unsafe.Offsetof(z.Mx.ScalePart))
	sideMode = uint16(unsafe.Offsetof(z.From.Mode))
	sideStep = uint16(unsafe.Offsetof(z.From.Step))
	sideNum  = uint16(unsafe.Offsetof(z.From.Num))
	sideRun  = uint16(unsafe.Offsetof(z.From.Run))
	sideReg  = uint16(unsafe.Offsetof(z.From.Reg))
	sideDt   = uint16(unsafe.Offsetof(z.From.Dt))

	instSize = unsafe.Sizeof(z)
	descSize = unsafe.Sizeof(z.Src)
	noMember = uint16(0xFFFF)
)

// z exists for its layout only.
var z Inst

// SetName stores a queue or callee name, cut at 36 bytes. Every name slot ends in a NUL, so Encode rejects a name that had
// to be cut and none is ever changed silently.
func (in *Inst) SetName(s string) {
	in.Name = [36]byte{}
	copy(in.Name[:], s)
}

// NameBytes is the name up to its NUL, a view into the instruction.
func (in *Inst) NameBytes() []byte {
	for i, c := range in.Name {
		if c == 0 {
			return in.Name[:i]
		}
	}
	return in.Name[:]
}
