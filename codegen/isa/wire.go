package isa

import "github.com/rosmar-compiler/rosmar/ir/target"

// noByte marks a value that a generation cannot spell.
const noByte = 0xFF

// tagsV2 is the tag of each element type on CoreV2 and CoreV3. Several types share a tag: the hardware tells them apart by
// context, a bundle does not.
var tagsV2 = [target.NumDtypes]uint8{
	target.Uint8: 3, target.Int8: 2, target.Float4E2M1x4: 5, target.Float8E3: 13, target.Float8E4: 14,
	target.Float8E4M3FN: 14, target.Float8E8M0: 3, target.Float8E5: 15, target.Float8E4M3FNx4: 14, target.Float8E5M2x4: 15,
	target.Uint16: 5, target.Int16: 4, target.BFloat16: 6, target.Float16: 7, target.Uint32: 9, target.Int32: 8,
	target.Float32: 10, target.Float32R: 11, target.Uint64: 1, target.Int64: 12,
}

// tagFP4 is the tag that CoreV4 gave the packed 4-bit type.
const tagFP4 = 16

// typesOfTag is the canonical type of each tag; NumDtypes = no type.
var typesOfTag = [17]target.Dtype{
	0: target.NumDtypes, 1: target.Uint64, 2: target.Int8, 3: target.Uint8, 4: target.Int16, 5: target.Uint16,
	6: target.BFloat16, 7: target.Float16, 8: target.Int32, 9: target.Uint32, 10: target.Float32, 11: target.Float32R,
	12: target.Int64, 13: target.Float8E3, 14: target.Float8E4M3FN, 15: target.Float8E5, 16: target.Float4E2M1x4,
}

// DtypeTag is the wire tag of an element type. Types that share a tag: uint8 and float8_e8m0fnu (3), uint16 and on CoreV2 and
// CoreV3 float4_e2m1fn_x4 (5), float8e4, float8_e4m3fn and its packed form (14), float8e5 and its packed form (15).
func DtypeTag(level int, d target.Dtype) (uint8, bool) {
	g, ok := genIndex(level)
	if !ok {
		return 0, false
	}
	t := dtypeTag(g, d)
	return t, t != noByte
}

// DtypeOf is the canonical type of a tag: the plain one of those that share it (uint8, uint16, float8e5), and float8_e4m3fn,
// which models use, before float8e4, which nothing here emits.
func DtypeOf(level int, tag uint8) (target.Dtype, bool) {
	g, ok := genIndex(level)
	if !ok {
		return 0, false
	}
	d := dtypeOf(g, tag)
	return d, d != target.NumDtypes
}

func dtypeTag(g int, d target.Dtype) uint8 {
	if d >= target.NumDtypes {
		return noByte
	}
	if g == 2 && d == target.Float4E2M1x4 {
		return tagFP4
	}
	return tagsV2[d]
}

func dtypeOf(g int, tag uint8) target.Dtype {
	if int(tag) >= len(typesOfTag) || tag == tagFP4 && g != 2 {
		return target.NumDtypes
	}
	return typesOfTag[tag]
}

// mxTag and mxType are the three types of a block-scaled operand, whose tags stand for the packed forms.
func mxTag(d target.Dtype) uint8 {
	switch d {
	case target.Float4E2M1x4:
		return tagFP4
	case target.Float8E4M3FNx4:
		return 14
	case target.Float8E5M2x4:
		return 15
	}
	return noByte
}

func mxType(tag uint8) target.Dtype {
	switch tag {
	case tagFP4:
		return target.Float4E2M1x4
	case 14:
		return target.Float8E4M3FNx4
	case 15:
		return target.Float8E5M2x4
	}
	return target.NumDtypes
}

// aluBytes is the wire byte of each operator by its ordinal.
var aluBytes = [target.NumAluOps]uint8{
	target.AluBypass: 0, target.AluBitNot: 1, target.AluShiftLeftArith: 2, target.AluShiftRightArith: 3, target.AluAdd: 4,
	target.AluSub: 5, target.AluMult: 6, target.AluDivide: 7, target.AluMax: 8, target.AluMin: 9, target.AluBitAnd: 10,
	target.AluBitOr: 11, target.AluBitXor: 12, target.AluAnd: 13, target.AluOr: 14, target.AluXor: 15,
	target.AluShiftLeft: 16, target.AluShiftRight: 17, target.AluEqual: 18,
	target.AluNotEqual: 0x18, target.AluGT: 0x13, target.AluGE: 0x14, target.AluLT: 0x16, target.AluLE: 0x15,
	target.AluAverage: noByte, target.AluElemMul: noByte,
	target.AluPow: 0x1A, target.AluMod: 0x1B, target.AluRsqrt: 0x1D, target.AluAbs: 0x19,
	target.AluAbsMax: 0x20, target.AluAbsMin: 0x21, target.AluModInt: 0xC8,
}

// aluOps is the reverse of aluBytes; NumAluOps = no operator.
var aluOps = func() (t [256]target.AluOp) {
	for i := range t {
		t[i] = target.NumAluOps
	}
	for op, b := range aluBytes {
		if b != noByte {
			t[b] = target.AluOp(op)
		}
	}
	return t
}()

// AluByte is the wire byte of an operator on a generation.
func AluByte(level int, op target.AluOp) (uint8, bool) {
	if op >= target.NumAluOps || !op.LegalOn(level) {
		return 0, false
	}
	return aluBytes[op], true
}

// AluOf is the operator of a wire byte on a generation.
func AluOf(level int, b uint8) (target.AluOp, bool) {
	op := aluOps[b]
	return op, op != target.NumAluOps && op.LegalOn(level)
}

// accBytes is the wire byte of each accumulator command; Accumulate has none.
var accBytes = [target.NumAccCmds]uint8{
	target.AccIdle: 0, target.AccZero: 1, target.AccAccumulate: noByte, target.AccZeroAccumulate: 3,
	target.AccAddAccumulate: 2, target.AccLoadAccumulate: 4,
}

var accCmds = [5]target.AccCmd{
	target.AccIdle, target.AccZero, target.AccAddAccumulate, target.AccZeroAccumulate, target.AccLoadAccumulate,
}

// AccByte is the wire byte of an accumulator command.
func AccByte(c target.AccCmd) (uint8, bool) {
	if c >= target.NumAccCmds || accBytes[c] == noByte {
		return 0, false
	}
	return accBytes[c], true
}

// AccOf is the accumulator command of a wire byte.
func AccOf(b uint8) (target.AccCmd, bool) {
	if int(b) >= len(accCmds) {
		return 0, false
	}
	return accCmds[b], true
}

// FuncByte is the wire byte of an activation function: 1 + its ordinal, so that Identity keeps its published 1.
func FuncByte(f target.ActFunc) (uint8, bool) { return uint8(f) + 1, f < target.NumActFuncs }

// FuncOf is the function of a wire byte.
func FuncOf(b uint8) (target.ActFunc, bool) {
	return target.ActFunc(b - 1), b >= 1 && b <= uint8(target.NumActFuncs)
}

// Wait and update modes, as wire bytes.
const (
	WaitNone  = 0x00
	WaitGE    = 0x05 // semaphore >= Value
	WaitGEReg = 0x85 // semaphore >= register Value
	WaitEvent = 0x07 // event set, then clear it

	UpdateNone  = 0x00
	UpdateEvent = 0x11 // set the event
	UpdateInc   = 0x13
	UpdateDec   = 0x14
	UpdateAdd   = 0x15 // + Value
	UpdateSub   = 0x17 // - Value
	UpdateWrite = 0x19 // = Value
)

// ADDR8 modes of a DMA bundle: a base and two flags.
const (
	AddrStatic = 0x10
	AddrDGE    = 0x20
	AddrDGEReg = 0x28
	AddrTwoReg = 0x04
	AddrMove   = 0x40
)

// GroupCode is the code of a tile of size rows (or columns) of the array that starts at pos: a set of 32-wide quarters.
// Sizes up to 32 start at a multiple of 32, sizes up to 64 at 0 or 64, greater ones at 0.
func GroupCode(pos, size int) (uint8, bool) {
	switch {
	case size < 1 || pos < 0 || pos+size > 128:
		return 0, false
	case size <= 32 && pos%32 == 0:
		return 1 << (pos / 32), true
	case size > 32 && size <= 64 && pos%64 == 0:
		return 3 << (pos / 32), true
	case size > 64 && pos == 0:
		return 0x0F, true
	}
	return 0, false
}

// GroupSpan is the place and size of the tile of a group code.
func GroupSpan(code uint8) (pos, size int, ok bool) {
	switch code {
	case 1, 2, 4, 8:
		for code > 1 {
			code, pos = code>>1, pos+32
		}
		return pos, 32, true
	case 3:
		return 0, 64, true
	case 12:
		return 64, 64, true
	case 15:
		return 0, 128, true
	}
	return 0, 0, false
}
