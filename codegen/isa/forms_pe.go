package isa

// form is one wire form: the opcodes and generations that use it, and its fields. shape names the operands whose element
// counts must agree.
type form struct {
	name  string
	ops   []Opcode
	gens  uint8
	note  string
	shape shape
	rows  []field
}

// shape is the rule that ties the element counts of the operands of a form.
type shape uint8

const (
	shapeFree    shape = iota // checked by the form's own rule, or not at all
	shapeEqual                // Src, Src1 when present, and Dst have the same count
	shapeInner                // Dst has one element for each run of innermost elements of Src
	shapeVector8              // Dst has 8 elements
)

// Accumulation flags of a PE bundle. Legal sums: 0, 1, 2, 3, 4, 6.
const (
	FlagStart      = 1 // overwrite the destination pattern
	FlagStop       = 2 // last multiply of the group
	FlagAccumulate = 4 // add to the destination pattern
)

// Variants of LoadWeights (byte 0x21) and Matmul. The two fp32 passes carry the lower and upper half of each weight.
const (
	VariantNormal = 0
	VariantFP32R  = 2
	VariantFP32Lo = 0x81
	VariantFP32Hi = 0x82

	VariantTransposed = 3 // Matmul only: the product moves data unchanged, and may be written in two bytes

	TransposeMark = 2 // LoadWeights.Transpose
)

var flagSet = []uint{0, 1, 2, 3, 4, 6}

// peBand is what all PE bundles share: the tile of the array that they use.
func peBand() []field {
	return []field{
		u8in("rows K", 0x26, mRows, 1, 128),
		u8of("row group", 0x2C, mRowGroup, 1, 2, 3, 4, 8, 12, 15),
	}
}

func loadWeights(extra ...field) []field {
	return rows(syncBand(),
		u8of("transpose mark", 0x0C, mTranspose, 0, TransposeMark),
		read("weights", 0x10, 3, mSrc, mDtSrc, mRows, fSBUF),
		dtype("weight dtype", 0x20, mDtSrc),
		u8("variant", 0x21, mVariant),
		num("perf mode", kHi4, 0x23, mPerf),
		peBand(),
		u8in("columns M", 0x27, mCols, 1, 128),
		u8of("column group", 0x2D, mColGroup, 1, 2, 3, 4, 8, 12, 15),
		extra)
}

func matmul(extra ...field) []field {
	return rows(syncBand(),
		read("moving", 0x10, 3, mSrc, mDtSrc, mRows, fSBUF),
		dtype("moving dtype", 0x20, mDtSrc),
		u8of("variant", 0x21, mVariant, 0, VariantFP32R, VariantTransposed),
		num("psum dtype", kDtypeLo, 0x23, mDtDst), num("perf mode", kHi4, 0x23, mPerf),
		peBand(),
		u8in("columns M", 0x27, mCols, 1, 128),
		u8of("flags", 0x2B, mFlags, flagSet...),
		u8of("column group", 0x2D, mColGroup, 1, 2, 3, 4, 8, 12, 15),
		extra,
		write("psum", 0x30, 3, mDst, mDtDst, mCols, fPSUM))
}

// replication is the pair that only CoreV2 has, with the constant that ends its control band.
var replication = []field{u8("replication 0", 0x24, mRep0), u8("replication 1", 0x25, mRep1), fixed("band end", 0x2E, 0x10)}

var zeroRegion = u8in("zero region", 0x2F, mZeroRegion, 0, 3)

// mx is a block-scaled operand of 16 bytes.
func mx(off uint8) []field {
	return []field{
		{name: "mx data", kind: kPtr, off: off, mem: mMx, flags: fSBUF | fIndirect},
		{name: "mx scale", kind: kPtr, off: off + 4, mem: mMx + mxScale, flags: fSBUF},
		{name: "mx count", kind: kU16, off: off + 8, mem: mMx + mxCount, lo: 1, hi: 0xFFFF},
		u8("mx sign", off+10, mMx+mxSign),
		u8of("mx scale partition", off+11, mMx+mxPart, 0, 4, 8, 12),
	}
}

var formsPE = []form{
	{name: "LoadWeights", ops: []Opcode{OpLoadWeights}, gens: genV2, rows: loadWeights(replication...),
		note: "Stationary operand [K, M]; M elements a partition (2M in perf mode 1). float32 takes variant 2 or the pair 0x81 (low halves), 0x82 (high halves)."},
	{name: "LoadWeights", ops: []Opcode{OpLoadWeights}, gens: genV3V, rows: loadWeights(),
		note: "As on CoreV2 without the replication pair and without the band end byte."},
	{name: "Matmul", ops: []Opcode{OpMatmul}, gens: genV2, rows: matmul(replication...),
		note: "psum[m, n] = or += sum over k of weights[k, m] * moving[k, n]; N is the element count of both patterns. Perf mode 1 streams 2N elements."},
	{name: "Matmul", ops: []Opcode{OpMatmul}, gens: genV3, rows: matmul(),
		note: "As on CoreV2 without the replication pair and without the band end byte."},
	{name: "Matmul", ops: []Opcode{OpMatmul}, gens: genV4, rows: matmul(zeroRegion),
		note: "As on CoreV3, plus the zero region code: log2 of its banks, without effect on data."},

	{name: "LoadTags", ops: []Opcode{OpLoadTags}, gens: genV3V, rows: rows(syncBand(),
		read("tags", 0x10, 3, mSrc, mDtSrc, mRows, fSBUF),
		dtype("tag dtype", 0x20, mDtSrc),
		u8of("column code", 0x21, mVariant, 0, 4, 8, 12),
		peBand()),
		note: "Sparsity tags (int16) of the stationary operand that follows. Column code by row group: 1, 3, 15 -> 0; 2 -> 4; 4, 12 -> 8; 8 -> 12. Tag dtype: our format."},
	{name: "MatmulSparse", ops: []Opcode{OpMatmulSparse}, gens: genV3V, rows: rows(syncBand(),
		field{name: "moving", kind: kDesc, off: 0x10, n: 3, ext: 0x0C, mem: mSrc, dt: mDtSrc, par: mRows, flags: fSBUF},
		dtype("moving dtype", 0x20, mDtSrc),
		u8of("variant", 0x21, mVariant, 0, 3),
		num("psum dtype", kDtype, 0x23, mDtDst),
		peBand(),
		u8in("columns M", 0x27, mCols, 1, 128),
		u8of("accumulate", 0x28, mFlags, flagSet...),
		u8in("fp32 pass", 0x2B, mPerf, 0, 3),
		u8of("column group", 0x2D, mColGroup, 1, 2, 3, 4, 8, 12, 15),
		write("psum", 0x30, 3, mDst, mDtDst, mCols, fPSUM)),
		note: "Variant 3 for float32, else 0; fp32 pass 1 low, 2 high. Our format: the fourth moving axis at 0x0C, psum dtype at 0x23, accumulation flags at 0x28."},

	{name: "LoadWeightsMx", ops: []Opcode{OpLoadWeightsMx}, gens: genV4, rows: rows(syncBand(),
		mx(0x10),
		num("weight dtype", kDtypeMx, 0x20, mDtSrc),
		peBand(),
		u8in("columns M", 0x27, mCols, 1, 128),
		fixed("column group", 0x2D, 0x0F)),
		note: "Block-scaled stationary operand."},
	{name: "MatmulMx", ops: []Opcode{OpMatmulMx}, gens: genV4, rows: rows(syncBand(),
		mx(0x10),
		num("moving dtype", kDtypeMx, 0x20, mDtSrc),
		peBand(),
		u8in("columns M", 0x27, mCols, 1, 128),
		dtype("psum dtype", 0x28, mDtDst),
		u8of("flags", 0x2B, mFlags, flagSet...),
		fixed("column group", 0x2D, 0x0F),
		zeroRegion,
		write("psum", 0x30, 3, mDst, mDtDst, mCols, fPSUM)),
		note: "Block-scaled product; psum dtype at 0x28."},
}
