package isa

// famC is the band of the one-input forms: dtypes and partitions at 0x20..0x22.
func famC() []field {
	return rows(syncBand(), dtype("in dtype", 0x20, mDtSrc), dtype("out dtype", 0x21, mDtDst), parts(0x22))
}

// famC44 adds a 4-D input and a 4-D output.
func famC44(flags uint8) []field {
	return rows(famC(), read("in", 0x0C, 4, mSrc, mDtSrc, mParts, flags), write("out", 0x2C, 4, mDst, mDtDst, mParts, 0))
}

// famCIn is a load-only bundle: a 4-D input.
func famCIn(n uint8) []field {
	return rows(syncBand(), dtype("in dtype", 0x20, mDtSrc), parts(0x22), read("in", 0x0C, n, mSrc, mDtSrc, mParts, 0))
}

// famCOut is a bundle with an output of rank n only.
func famCOut(n uint8) []field {
	return rows(syncBand(), dtype("out dtype", 0x21, mDtDst), parts(0x22), write("out", 0x2C, n, mDst, mDtDst, mParts, 0))
}

// tensorScalar is the two-operator band; par is noMember where the output's partitions are not those of the input.
func tensorScalar(par uint16) []field {
	return rows(syncBand(),
		num("accumulator", kAcc, 0x0C, mAcc),
		read("in", 0x10, 3, mSrc, mDtSrc, mParts, 0),
		dtype("in dtype", 0x20, mDtSrc), dtype("out dtype", 0x21, mDtDst), parts(0x22),
		imm("scalar0", 0x23, 0x28, mImm0Src, mImm0),
		num("op0", kAlu, 0x24, mOp0), num("op1", kAlu, 0x25, mOp1),
		u8in("reverse", 0x26, mReverse, 0, 3),
		imm("scalar1", 0x27, 0x2C, mImm1Src, mImm1),
		write("out", 0x30, 3, mDst, mDtDst, par, 0))
}

func tensorTensor(out []field) []field {
	return rows(syncBand(),
		dtypes("in0 dtype", mDtSrc, "in1 dtype", mDtSrc1, 0x0C), out,
		num("op", kAlu, 0x0E, mOp0),
		parts(0x0F),
		write("out", 0x10, 3, mDst, mDtDst, mParts, 0),
		read("in0", 0x20, 3, mSrc, mDtSrc, mParts, 0), read("in1", 0x30, 3, mSrc1, mDtSrc1, mParts, 0))
}

// threeOperand is the 2-D form of scalar-tensor-tensor and of the scan.
func threeOperand() []field {
	return rows(syncBand(),
		dtypes("in0 dtype", mDtSrc, "in1 dtype", mDtSrc1, 0x0C), dtype("out dtype", 0x0D, mDtDst),
		num("op0", kAlu, 0x0E, mOp0), num("op1", kAlu, 0x0F, mOp1),
		read("in0", 0x10, 2, mSrc, mDtSrc, mParts, 0), read("in1", 0x1C, 2, mSrc1, mDtSrc1, mParts, 0),
		imm("scalar", 0x2E, 0x28, mImm0Src, mImm0),
		num("accumulator", kAcc, 0x2C, mAcc),
		parts(0x2D),
		u8in("reverse", 0x2F, mReverse, 0, 3),
		write("out", 0x30, 2, mDst, mDtDst, mParts, 0))
}

func reduce(par uint16) []field {
	return rows(famC(),
		read("in", 0x0C, 4, mSrc, mDtSrc, mParts, 0),
		num("op", kAlu, 0x24, mOp0), u8in("axes", 0x25, mAxes, 0, 4), u8in("negate", 0x26, mNegate, 0, 1),
		write("out", 0x2C, 4, mDst, mDtDst, par, 0))
}

var formsALU = []form{
	{name: "TensorTensor", ops: []Opcode{OpTensorTensor, OpTensorTensorBit}, gens: genV2, shape: shapeEqual,
		rows: tensorTensor([]field{dtype("out dtype", 0x0D, mDtDst)}),
		note: "out = op(in0, in1). 41 computes in fp32, 51 on raw bits."},
	{name: "TensorTensor", ops: []Opcode{OpTensorTensor, OpTensorTensorBit}, gens: genV3V, shape: shapeEqual,
		rows: tensorTensor([]field{num("out dtype", kDtypeLo, 0x0D, mDtDst), num("accumulator", kAccHi, 0x0D, mAcc)}),
		note: "As on CoreV2, with an accumulator command beside the out dtype (our format)."},
	{name: "TensorScalar", ops: []Opcode{OpTensorScalar, OpTensorScalarBit, OpTensorScalarAddr}, gens: genAll,
		shape: shapeEqual, rows: tensorScalar(mParts),
		note: "out = op1(op0(in, scalar0), scalar1); a pointer scalar is an fp32 [p,1] column. 43 computes in fp32, 53 on raw bits."},
	{name: "TensorScalarTransposed", ops: []Opcode{OpTensorScalarT}, gens: genAll, shape: shapeFree,
		rows: tensorScalar(noMember), note: "TensorScalar with 32x32 blocks transposed on the way out."},
	{name: "TensorScalarReduce", ops: []Opcode{OpTensorScalarReduce}, gens: genAll, shape: shapeEqual,
		rows: tensorScalar(mParts),
		note: "out = op0(in, scalar0); each result is folded with op1 into the accumulator that DveReadAccumulator drains (our format). scalar1 is the initial value for LoadAccumulate."},
	{name: "TensorScalarScan", ops: []Opcode{OpTensorScalarScan}, gens: genAll, shape: shapeEqual,
		rows: tensorScalar(mParts),
		note: "out[i] = op1(op0(in[i], scalar0), out[i-1]), out[-1] = scalar1, in pattern order (our format)."},
	{name: "ScalarTensorTensor", ops: []Opcode{OpScalarTensorTensor, OpScalarTensorTensorB}, gens: genAll, shape: shapeEqual,
		rows: threeOperand(), note: "out = op1(op0(in0, scalar), in1). 9D computes in fp32, 9E on raw bits. Our format."},
	{name: "TensorTensorScan", ops: []Opcode{OpTensorTensorScan}, gens: genAll, shape: shapeEqual, rows: threeOperand(),
		note: "out[i] = op1(op0(in0[i], out[i-1]), in1[i]), out[-1] = scalar, in pattern order. Our format."},
	{name: "Exponential", ops: []Opcode{OpExponential}, gens: genV4, shape: shapeEqual, rows: tensorScalar(mParts),
		note: "out = exp(in - scalar0); TensorScalar layout with op0 = op1 = bypass and no reverse; the accumulator sums."},
	{name: "TensorCopy", ops: []Opcode{OpTensorCopy, OpTensorCopyCast}, gens: genV2 | genV3, shape: shapeEqual, rows: famC44(0),
		note: "46 copies equal types bit by bit, 47 casts."},
	{name: "TensorCopy", ops: []Opcode{OpTensorCopy, OpTensorCopyCast}, gens: genV4, shape: shapeEqual,
		rows: rows(famC44(fIndirect), field{name: "gather data", kind: kPtr, off: 0x24, mem: mPtr},
			num("valid indices", kU32, 0x28, mCount)),
		note: "As on CoreV2. With ADDR4 bit 29 in the input it gathers: the input addresses 16-bit indices, the data start at 0x24, 0x28 counts the valid ones (our format); otherwise both words are zero."},
	{name: "TensorReduce", ops: []Opcode{OpTensorReduce, OpTensorReduceBit}, gens: genAll, shape: shapeInner,
		rows: reduce(mParts),
		note: "Folds the innermost `axes` axes of the packed input pattern with op; the product of their counts times the elements of out is the elements of in. negate flips the sign of the result."},
	{name: "TensorReduceTransposed", ops: []Opcode{OpTensorReduceT, OpTensorReduceTBit}, gens: genAll, shape: shapeFree,
		rows: reduce(noMember), note: "TensorReduce with 32x32 blocks transposed."},
	{name: "CrossLaneReduce", ops: []Opcode{OpCrossLaneReduce, OpCrossLaneReduceBit}, gens: genAll, shape: shapeEqual,
		rows: reduce(noMember), note: "Folds across the active partitions into the one partition of out; axes is 0. Our format."},
	{name: "Pool", ops: []Opcode{OpPool}, gens: genAll, shape: shapeInner, rows: rows(famC44(0),
		u8in("function", 0x24, mMode, 1, 2), fixed("mode", 0x25, 3)),
		note: "Function 1 max, 2 average, over the innermost axes of the window view: out has one element for each run of in."},
	{name: "Reciprocal", ops: []Opcode{OpReciprocal}, gens: genAll, shape: shapeEqual, rows: famC44(0), note: "out = 1 / in."},
	{name: "Memset", ops: []Opcode{OpMemset, OpMemsetRandom}, gens: genAll, rows: rows(famCOut(1),
		bits32("fill", 0x28, mImm0)),
		note: "49 writes the low bytes of fill as they are, 4D random bits."},
	{name: "Iota", ops: []Opcode{OpIota}, gens: genAll, rows: rows(famCOut(4),
		num("step 0", kI32, 0x0C, mSteps), num("step 1", kI32, 0x10, mSteps+4), num("step 2", kI32, 0x14, mSteps+8),
		num("step 3", kI32, 0x18, mSteps+12), num("base", kI32, 0x24, mBase), num("channel multiplier", kI32, 0x28, mChanMul)),
		note: "out[p, i] = base + channel multiplier * p + sum of step[d] * i[d], i over the axes of out, p from 0 at the first partition. Our format."},
	{name: "AffineSelect", ops: []Opcode{OpAffineSelect}, gens: genAll, shape: shapeEqual, rows: rows(syncBand(),
		read("in", 0x0C, 3, mSrc, mDtSrc, mParts, 0),
		dtype("in dtype", 0x1C, mDtSrc), dtype("out dtype", 0x1D, mDtDst), parts(0x1E),
		num("compare", kAlu, 0x1F, mOp0), bits32("fill", 0x20, mImm0), num("base", kI32, 0x24, mBase),
		num("channel multiplier", kI32, 0x28, mChanMul),
		num("step 0", kI16, 0x2C, mSteps), num("step 1", kI16, 0x2E, mSteps+4),
		write("out", 0x30, 3, mDst, mDtDst, mParts, 0)),
		note: "out = in where compare(base + channel multiplier * p + step0 * i0 + step1 * i1, 0), else fill (fp32 bits); i over the axes of out. Our format."},
	{name: "CopyPredicated", ops: []Opcode{OpCopyPredicated, OpCopyPredicatedOld}, gens: genAll, shape: shapeEqual,
		rows: rows(syncBand(),
			dtypes("in dtype", mDtSrc, "predicate dtype", mDtSrc1, 0x0C), dtype("out dtype", 0x0D, mDtDst),
			u8in("reverse", 0x0E, mReverse, 0, 1), parts(0x0F),
			write("out", 0x10, 3, mDst, mDtDst, mParts, 0),
			read("in", 0x20, 3, mSrc, mDtSrc, mParts, 0), read("predicate", 0x30, 3, mSrc1, mDtSrc1, mParts, 0)),
		note: "out = in where predicate != 0 (= 0 when reversed), else unchanged. Three-operand family; the flag byte is our format."},
	{name: "Dropout", ops: []Opcode{OpDropout}, gens: genAll, shape: shapeEqual, rows: rows(famC44(0),
		imm("threshold", 0x23, 0x24, mImm0Src, mImm0), u8in("keep", 0x28, mMode, 0, 1)),
		note: "Zeroes elements at random; keep says that the threshold is the probability of keeping. Our format."},
}

var formsSpecial = []form{
	{name: "Max8", ops: []Opcode{OpMax}, gens: genAll, shape: shapeVector8, rows: rows(famC(),
		read("in", 0x0C, 4, mSrc, mDtSrc, mParts, 0), write("out", 0x2C, 1, mDst, mDtDst, mParts, 0)),
		note: "The 8 largest of each partition, descending."},
	{name: "MaxIndexLoad", ops: []Opcode{OpMaxIndexLoad}, gens: genV2, rows: rows(syncBand(),
		read("values", 0x0C, 1, mSrc, mDtSrc, mParts, fVector), dtype("in dtype", 0x20, mDtSrc), parts(0x22)),
		note: "First bundle of MaxIndex: the 8 values to look for."},
	{name: "MaxIndexLoad", ops: []Opcode{OpMaxIndexLoad}, gens: genV3V, rows: rows(syncBand(),
		read("values", 0x0C, 1, mSrc, mDtSrc, mParts, fVector), dtype("in dtype", 0x20, mDtSrc), parts(0x22),
		bits32("replacement", 0x24, mImm0), write("replaced", 0x2C, 4, mDst, mDtSrc, mParts, fOptional)),
		note: "As on CoreV2; for MaxIndexAndMatchReplace also the copy of the input in which each match is replaced, of the input's type (our format)."},
	{name: "MaxIndex", ops: []Opcode{OpMaxIndex}, gens: genAll, shape: shapeVector8, rows: rows(famC(),
		read("in", 0x0C, 4, mSrc, mDtSrc, mParts, 0), write("out", 0x2C, 1, mDst, mDtDst, mParts, 0)),
		note: "Second bundle: first index of each of the 8 values."},
	{name: "MatchReplace", ops: []Opcode{OpMatchReplace}, gens: genAll, shape: shapeEqual, rows: rows(famC44(0),
		bits32("replacement", 0x24, mImm0), field{name: "values", kind: kPtr, off: 0x28, mem: mPtr}),
		note: "Replaces the first match of each of 8 values, 8 consecutive elements of the input's type at the address of 0x28. Our format."},
	{name: "BNStats", ops: []Opcode{OpBNStats, OpBNStatsT}, gens: genAll, rows: rows(famC(),
		read("in", 0x0C, 4, mSrc, mDtSrc, mParts, 0), write("out", 0x30, 2, mDst, mDtDst, mParts, 0)),
		note: "Statistics of at most 512 elements a partition."},
	{name: "BNAggregate", ops: []Opcode{OpBNAggregate}, gens: genAll, rows: rows(famC(),
		read("in", 0x0C, 4, mSrc, mDtSrc, mParts, 0), write("out", 0x30, 2, mDst, mDtDst, mParts, 0)),
		note: "Merges statistics."},
	{name: "StreamLoad", ops: []Opcode{OpStreamLoad}, gens: genAll, rows: famCIn(4),
		note: "First bundle of StreamShuffle and StreamTranspose: the input."},
	{name: "StreamShuffle", ops: []Opcode{OpStreamShuffle}, gens: genAll, rows: rows(syncBand(),
		field{name: "mask", kind: kBytes, off: 0x0C, n: 32, mem: mMask}, write("out", 0x2C, 4, mDst, noMember, noMember, 0)),
		note: "out[32g + i] = in[32g + mask[i]]; type and partitions are those of the StreamLoad before it. mask byte 255 leaves the lane. Our format."},
	{name: "StreamTranspose", ops: []Opcode{OpStreamTranspose}, gens: genAll, rows: famCOut(4),
		note: "Each 32x32 block transposed."},
	{name: "GatherLoad", ops: []Opcode{OpGatherLoad}, gens: genV2 | genV3, rows: famCIn(4),
		note: "First bundle of Gather: loads the pool buffer."},
	{name: "Gather", ops: []Opcode{OpGather}, gens: genV2 | genV3, shape: shapeEqual, rows: famC44(0),
		note: "Second bundle: in is the index, out the gathered elements."},
	{name: "IndirectCopy", ops: []Opcode{OpIndirectCopy}, gens: genV2 | genV3, rows: rows(famC44(0),
		field{name: "indices", kind: kPtr, off: 0x24, mem: mPtr}, num("valid indices", kU32, 0x28, mCount)),
		note: "Gathers by 16-bit indices, one list for each 16 partitions. Our format."},
	{name: "DveReadAccumulator", ops: []Opcode{OpDveReadAcc}, gens: genAll, rows: rows(famCOut(1), u8in("negate", 0x26, mNegate, 0, 1)),
		note: "Writes the accumulator of each lane. Our format."},

	{name: "SB2SB", ops: []Opcode{OpSB2SB}, gens: genV3V, shape: shapeEqual, rows: rows(famC44(0), u8("peer core", 0x23, mMode)),
		note: "SBUF to SBUF of another core. Our format."},
	{name: "SequenceBounds", ops: []Opcode{OpSeqBounds}, gens: genV3V, rows: famC44(0),
		note: "Start and end of the segment of each element. Our format."},
	{name: "RangeSelect", ops: []Opcode{OpRangeSelect}, gens: genV3V, shape: shapeEqual, rows: rows(syncBand(),
		num("accumulator", kAcc, 0x0C, mAcc), num("reduce op", kAlu, 0x0D, mRedOp),
		num("compare0", kAlu, 0x0E, mOp0), num("compare1", kAlu, 0x0F, mOp1),
		read("in", 0x10, 3, mSrc, mDtSrc, mParts, 0),
		dtype("in dtype", 0x20, mDtSrc), dtype("out dtype", 0x21, mDtDst), parts(0x22),
		bits32("fill", 0x24, mImm0),
		field{name: "low bound", kind: kPtr, off: 0x28, mem: mImm1}, field{name: "high bound", kind: kPtr, off: 0x2C, mem: mImm2},
		write("out", 0x30, 3, mDst, mDtDst, mParts, 0)),
		note: "out = in where compare0(i, low) and compare1(i, high), i the element number in the partition from 0, else fill (fp32 bits); results may be folded into the accumulator. Our format."},
	{name: "NonzeroWithCount", ops: []Opcode{OpNonzero}, gens: genV3V, rows: famC44(0),
		note: "Indices of the elements that are not zero; the last element of out is their count. Our format."},

	{name: "GetRandState", ops: []Opcode{OpGetRandState}, gens: genV2, rows: famCOut(1), note: "Random state of each lane. Our format."},
	{name: "GetRandState", ops: []Opcode{OpGetRandState}, gens: genV3V, rows: rows(famCOut(1), u8("engine", 0x23, mMode)),
		note: "Also RandGetState; engine selects the generator. Our format."},
	{name: "SetRandState", ops: []Opcode{OpSetRandState}, gens: genV2, rows: famCIn(1), note: "Our format."},
	{name: "SetRandState", ops: []Opcode{OpRandSetState, OpSetRandState}, gens: genV3V, rows: rows(famCIn(1), u8("engine", 0x23, mMode)),
		note: "78 is RandSetState and SetRandState, D0 the word that the loader resolves; engine selects the generator. Our format."},
	{name: "Rand2", ops: []Opcode{OpRand2}, gens: genV4, rows: rows(famCOut(4),
		imm("low", 0x20, 0x24, mImm0Src, mImm0), imm("high", 0x23, 0x28, mImm1Src, mImm1)),
		note: "Uniform in [low, high). Our format."},
	{name: "QuantizeMx", ops: []Opcode{OpQuantizeMx}, gens: genV4, rows: rows(syncBand(),
		num("saturate", kSat, 0x01, mSaturate),
		read("in", 0x10, 3, mSrc, mDtSrc, mParts, 0),
		u8in("partitions", 0x21, mParts, 32, 128), dtype("in dtype", 0x22, mDtSrc), num("data dtype", kDtypeMx, 0x23, mDtDst),
		mx(0x30)),
		note: "Block maximum to power-of-two scale, round to nearest even. Saturation is bit 0 of byte 1. Partitions 32, 64, 96 or 128."},
}
