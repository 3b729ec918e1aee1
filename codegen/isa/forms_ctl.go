package isa

// Modes of GroupReset.
const (
	ResetRange = 1 // semaphores SemFirst..SemLast
	ResetMask  = 2 // semaphores whose bit is set in Mask
)

// Branch conditions: immediate forms in order LT, LE, EQ, NE, GE, GT, then the register forms in the same order.
const (
	CmpAlways = 0
	CmpLTImm  = 1
	CmpLTReg  = 9
)

func queueName() field { return field{name: "queue", kind: kName, off: 0x0C, n: 32, mem: mName} }

func side(name string, m uint16, addr, step, cnt, run, reg, dt uint8) []field {
	return []field{
		num(name+" offset", kU32, addr, m), num(name+" variable", kU24, addr+4, m+4), u8(name+" mode", addr+7, m+sideMode),
		num(name+" step 0", kI32, step, m+sideStep), num(name+" step 1", kI32, step+4, m+sideStep+4),
		{name: name + " count 0", kind: kU16, off: cnt, mem: m + sideNum, lo: 1, hi: 0xFFFF},
		{name: name + " count 1", kind: kU16, off: cnt + 2, mem: m + sideNum + 4, lo: 1, hi: 0xFFFF},
		{name: name + " run", kind: kRun, off: run, mem: m + sideRun, lo: 1, hi: 65536},
		u8(name+" register", reg, m+sideReg), dtype(name+" dtype", dt, m+sideDt),
	}
}

var formsControl = []form{
	{name: "EventSemaphore", ops: []Opcode{OpEventSemaphore}, gens: genAll, rows: quiet(
		u8("wait mode", 0x04, mWaitMode), u8("wait semaphore", 0x05, mWaitSem), num("wait value", kU32, 0x08, mSyncValue),
		u8("wait1 mode", 0x20, mWait1Mode), u8("wait1 semaphore", 0x21, mWait1Sem), num("wait1 value", kU32, 0x24, mWait1Value),
		u8("update mode", 0x22, mUpdateMode), u8("update semaphore", 0x23, mUpdateSem), num("update value", kU32, 0x28, mUpdateValue)),
		note: "Two waits and one update, each with a value of its own."},
	{name: "Sync", ops: []Opcode{OpNoOp, OpHalt, OpBarrier, OpReturn, OpExit, OpCompletion, OpEngineNop}, gens: genAll, rows: syncBand(),
		note: "Inline wait and update only. A barrier updates first, then waits."},
	{name: "Drain", ops: []Opcode{OpDrain}, gens: genAll, rows: rows(syncBand(), u8("count", 0x28, mMode)),
		note: "Waits until the engine's work has retired."},
	{name: "GroupReset", ops: []Opcode{OpGroupReset}, gens: genAll, rows: rows(syncBand(),
		u8in("mode", 0x0C, mMode, 1, 2), u8("first", 0x0D, mSemFirst), u8("last", 0x0E, mSemLast),
		field{name: "mask", kind: kBytes, off: 0x20, n: 32, mem: mMask}),
		note: "Zeroes semaphores first..last (mode 1) or those of the mask (mode 2)."},
	{name: "CoreBarrier", ops: []Opcode{OpCoreBarrier}, gens: genV3V, rows: rows(syncBand(),
		num("id", kU32, 0x0C, mCount), num("index", kU32, 0x10, mCount1), num("cores", kU32, 0x14, mCount2)),
		note: "Rendezvous of cores; the third word is our format."},
	{name: "Branch", ops: []Opcode{OpBranch}, gens: genAll, rows: rows(syncBand(),
		u8of("compare", 0x0C, mCmp, 0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14), dtype("left dtype", 0x0D, mDtSrc), fixed("kind", 0x0E, 3),
		num("immediate", kI32, 0x10, mBase), u8in("left register", 0x20, mRegA, 0, 63), u8in("right register", 0x21, mRegB, 0, 63),
		num("target", kU64, 0x30, mTarget)),
		note: "Taken edge only; the other is the next bundle. The target is a bundle index in the same stream (our format)."},
	{name: "BranchHint", ops: []Opcode{OpBranchHint}, gens: genAll, rows: rows(syncBand(), u8("hint", 0x0C, mMode), num("target", kU64, 0x30, mTarget)),
		note: "Our format."},
	{name: "Call", ops: []Opcode{OpCall}, gens: genAll, rows: rows(syncBand(),
		field{name: "callee", kind: kName, off: 0x0C, n: 36, mem: mName}, num("argument table", kU32, 0x30, mBlock)),
		note: "Callee of at most 35 bytes."},
	{name: "RegisterMove", ops: []Opcode{OpRegisterMove}, gens: genAll, rows: rows(syncBand(),
		u8in("width", 0x0C, mMode, 1, 2), dtype("dtype", 0x0D, mDtDst), u8in("immediate", 0x0E, mImm0Src, 0, 1),
		u8in("source register", 0x10, mRegA, 0, 63), u8in("register", 0x18, mRegDst, 0, 63), u8in("register high", 0x19, mRegDst1, 0, 63),
		num("value", kU64, 0x20, mImm64)),
		note: "Width in registers; a pair takes an immediate only."},
	{name: "RegisterAlu", ops: []Opcode{OpRegisterAlu}, gens: genAll, rows: rows(syncBand(),
		num("op", kAlu, 0x0C, mOp0), dtype("left dtype", 0x0D, mDtSrc), u8in("immediate", 0x0E, mImm0Src, 0, 1), dtype("right dtype", 0x0F, mDtSrc1),
		u8in("left register", 0x10, mRegA, 0, 63), u8in("right register", 0x11, mRegB, 0, 63),
		u8in("register", 0x18, mRegDst, 0, 63), u8in("register high", 0x19, mRegDst1, 0, 63), num("value", kU64, 0x20, mImm64)),
		note: "register = op(left, right or value). Operand places: our format."},
	{name: "TensorLoadSave", ops: []Opcode{OpTensorLoad, OpTensorSave}, gens: genAll, rows: rows(syncBand(),
		dtype("dtype", 0x0C, mDtSrc), u8in("count 0", 0x0E, mRep0, 1, 255), u8in("count 1", 0x0F, mRep1, 1, 255),
		num("variable", kU32, 0x10, mVar), num("offset", kU64, 0x14, mOff64), num("step", kI32, 0x1C, mSteps),
		u8in("register", 0x22, mRegDst, 0, 63), u8in("register high", 0x23, mRegDst1, 0, 63)),
		note: "Scalar register from (CE) or to (CD) memory; variable 0 is SBUF at a global address. Data registers at 0x22: our format."},
	{name: "TensorLoadSaveReg", ops: []Opcode{OpTensorLoadReg, OpTensorSaveReg}, gens: genAll, rows: rows(syncBand(),
		dtype("dtype", 0x0C, mDtSrc), u8in("count 0", 0x0E, mRep0, 1, 255), u8in("count 1", 0x0F, mRep1, 1, 255),
		num("variable", kU32, 0x10, mVar), fixed("register form", 0x17, 0x80),
		num("step 0", kI32, 0x18, mSteps), num("step 1", kI32, 0x1C, mSteps+4),
		u8in("base register", 0x20, mRegA, 0, 63), u8in("offset register", 0x21, mRegB, 0, 63),
		u8in("register", 0x22, mRegDst, 0, 63), u8in("register high", 0x23, mRegDst1, 0, 63)),
		note: "As above with the address in registers."},
}

var formsDMA = []form{
	{name: "DMATrigger", ops: []Opcode{OpDMATrigger}, gens: genAll, rows: rows(syncBand(), queueName(), num("block", kU32, 0x30, mBlock)),
		note: "Starts the descriptors of the engine's JSON whose id is block. Completion is in the descriptors, never in the update."},
	{name: "SwitchQueue", ops: []Opcode{OpSwitchQueue}, gens: genAll, rows: rows(syncBand(), queueName(),
		u8in("flag", 0x3B, mMode, 0, 1), fixed("one", 0x3C, 1)), note: "Swaps the descriptor ring."},
	{name: "ResetQueue", ops: []Opcode{OpResetQueue}, gens: genAll, rows: rows(syncBand(), queueName()), note: "Re-arms the descriptor ring."},
	{name: "DMAStatic", ops: []Opcode{OpDMAStatic}, gens: genAll, rows: rows(syncBand(),
		u8in("qos", 0x0C, mQos, 0, 7), u8("completion semaphore", 0x0D, mSem), u8("increment", 0x0E, mSemInc), u8of("command", 0x0F, mCmd, 1, 3),
		side("source", mFrom, 0x10, 0x18, 0x20, 0x24, 0x26, 0x3E), side("destination", mTo, 0x28, 0x30, 0x38, 0x3C, 0x27, 0x3F)),
		note: "Command 3 copies, 1 transposes. ADDR8 mode 0x10: variable (0 = SBUF) and byte offset."},
	{name: "DMADynamic", ops: []Opcode{OpDMADynamic}, gens: genAll, rows: rows(
		num("source index", kU32, 0x04, mCount), num("destination index", kU32, 0x08, mCount1),
		num("source bound low", kU32, 0x0C, mImm0), num("destination bound low", kU32, 0x10, mImm1),
		num("source offset", kU32, 0x14, mFrom), num("source variable", kU24, 0x18, mFrom+4), u8("source mode", 0x1B, mFrom+sideMode),
		num("destination offset", kU32, 0x1C, mTo), num("destination variable", kU24, 0x20, mTo+4), u8("destination mode", 0x23, mTo+sideMode),
		num("source step", kI32, 0x24, mFrom+sideStep), num("destination step", kI32, 0x28, mTo+sideStep),
		field{name: "source count", kind: kU16, off: 0x2C, mem: mFrom + sideNum, lo: 1, hi: 0xFFFF},
		field{name: "destination count", kind: kU16, off: 0x2E, mem: mTo + sideNum, lo: 1, hi: 0xFFFF},
		field{name: "source run", kind: kRun, off: 0x30, mem: mFrom + sideRun, lo: 1, hi: 65536},
		field{name: "destination run", kind: kRun, off: 0x32, mem: mTo + sideRun, lo: 1, hi: 65536},
		u8("completion semaphore", 0x34, mSem), u8("increment", 0x35, mSemInc), u8in("compute", 0x36, mCmd, 0, 1),
		num("source dtype", kDtypeLo, 0x37, mFrom+sideDt), num("destination dtype", kDtypeHi, 0x37, mTo+sideDt),
		num("source bound high", kU32, 0x38, mImm2), num("destination bound high", kU32, 0x3C, mPtr)),
		note: "Address from index lists, no sync band; compute 0 none, 1 add. Places from 0x14 to 0x37: our format."},
	{name: "IndirectDMA", ops: []Opcode{OpIndirectDMA}, gens: genAll, rows: rows(syncBand(),
		field{name: "indices", kind: kPtr, off: 0x0C, mem: mPtr, flags: fSBUF},
		num("table variable", kU32, 0x10, mVar), num("table offset", kU32, 0x14, mVarOff),
		field{name: "index count 0", kind: kU32, off: 0x18, mem: mCount, lo: 1, hi: 128},
		field{name: "index count 1", kind: kU32, off: 0x1C, mem: mCount1, lo: 1, hi: 1},
		field{name: "data", kind: kPtr, off: 0x20, mem: mImm0, flags: fSBUF},
		num("data step 0", kI32, 0x24, mSteps), num("data step 1", kI32, 0x28, mSteps+4),
		field{name: "data count 0", kind: kU32, off: 0x2C, mem: mImm1, lo: 1, hi: 1 << 24},
		field{name: "data count 1", kind: kU32, off: 0x30, mem: mImm2, lo: 1, hi: 1<<31 - 1},
		field{name: "element bytes", kind: kU32, off: 0x34, mem: mCount2, lo: 1, hi: 8},
		u8("completion semaphore", 0x38, mSem), u8("increment", 0x39, mSemInc),
		num("wait value 0", kU16, 0x3A, mUpdateValue), u8in("direction", 0x3C, mMode, 0, 1), dtype("index dtype", 0x3D, mDtSrc),
		num("wait value 1", kU16, 0x3E, mWait1Value)),
		note: "Row gather (direction 0) or scatter (1), a transfer in flight: partition p of index count 0 moves row i = indices[p] of the table, which is data count 0 elements, data step 0 apart, from element i*data step 1 on, to or from consecutive elements at data. i must lie in 0..data count 1 - 1; steps are in elements of element bytes (1, 2, 4, 8). Table, bound, completion and index dtype (int32, uint32): our format."},
}
