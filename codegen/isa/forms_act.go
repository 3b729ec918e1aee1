package isa

// Source codes of an immediate word.
const (
	SrcPointer  = 0 // address of an fp32 [p,1] column
	SrcInline   = 1 // the word itself, fp32 bits
	SrcRegister = 2 // number of a scalar register
)

// activation is the control band that both Activation forms share: three scalars with their source codes.
func activation(acc kind) []field {
	return rows(syncBand(),
		imm("alpha", 0x0C, 0x2C, mImm2Src, mImm2),
		imm("scale", 0x0D, 0x24, mImm0Src, mImm0),
		num("accumulator", acc, 0x0E, mAcc),
		imm("bias", 0x0F, 0x28, mImm1Src, mImm1),
		dtypes("in dtype", mDtSrc, "bias dtype", mDtSrc1, 0x20),
		dtype("out dtype", 0x21, mDtDst),
		parts(0x22),
		num("function", kFunc, 0x23, mFunc))
}

var formsAct = []form{
	{name: "Activation", ops: []Opcode{OpActivate}, gens: genAll, shape: shapeEqual, rows: rows(activation(kAccAct),
		read("in", 0x10, 3, mSrc, mDtSrc, mParts, 0),
		write("out", 0x30, 3, mDst, mDtDst, mParts, 0)),
		note: "out = f(in*scale + bias[, alpha]), summed into the accumulator as its command says. Alpha and its code are zero unless the function is Lrelu or Prelu. Our format: scale at 0x24."},
	{name: "ActivationTwoAlu", ops: []Opcode{OpActivate2}, gens: genV4, shape: shapeEqual, rows: rows(activation(kAcc),
		read("in", 0x10, 2, mSrc, mDtSrc, mParts, 0),
		dtype("immediate dtype", 0x1C, mDtImm),
		num("op0", kAlu, 0x1D, mOp0), num("op1", kAlu, 0x1E, mOp1), num("reduce op", kAlu, 0x1F, mRedOp),
		write("out", 0x30, 2, mDst, mDtDst, mParts, 0),
		u8in("reverse", 0x3C, mReverse, 0, 3)),
		note: "out = f(op1(op0(in, scale), bias)); used only where op0, op1 need it. Our format: control band as in Activation, in 2-D at 0x10, out 2-D at 0x30."},
	{name: "ActReadAccumulator", ops: []Opcode{OpActReadAcc}, gens: genAll, rows: rows(syncBand(),
		field{name: "count", kind: kU16, off: 0x1C, mem: mCount, lo: 1, hi: 0xFFFF},
		dtype("dtype", 0x20, mDtDst),
		parts(0x22),
		write("out", 0x30, 1, mDst, mDtDst, mParts, 0)),
		note: "Writes the accumulator of each lane; count is the element count of out. Our format: out at 0x30."},
	{name: "LoadActFuncSet", ops: []Opcode{OpLoadActFuncSet}, gens: genAll, rows: rows(syncBand(),
		u8in("set", 0x23, mSet, 0, 7)),
		note: "Makes a table set resident."},
}
