package isa

import (
	"encoding/hex"
	"strconv"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// golden is a bundle laid out by hand from the encoding notes, one field a line: offset, bytes, reason. Bytes without a line
// are zero. levels are the generations that write the same bytes.
type golden struct {
	name   string
	levels []int
	in     Inst
	hex    string
}

var (
	all   = []int{20, 30, 40}
	v2    = []int{20}
	v3    = []int{30}
	v3v4  = []int{30, 40}
	v4    = []int{40}
	v2v3  = []int{20, 30}
	f32   = target.Float32
	bf16  = target.BFloat16
	i32   = target.Int32
	named = func(in Inst, s string) Inst { in.SetName(s); return in }
)

// pat is a pattern: address, then step, count pairs, fastest first.
func pat(addr uint32, pairs ...int32) Desc {
	d := Desc{Addr: addr, N: uint32(len(pairs) / 2)}
	for i := range pairs {
		if i%2 == 0 {
			d.Step[i/2] = pairs[i]
		} else {
			d.Num[i/2] = uint32(pairs[i])
		}
	}
	return d
}

func (c *golden) bundle(t *testing.T) (b Bundle) {
	t.Helper()
	for _, line := range strings.Split(c.hex, "\n") {
		line, _, _ = strings.Cut(line, "//")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		off, bytes, ok := strings.Cut(line, ":")
		at, err := strconv.ParseUint(off, 16, 8)
		raw, err2 := hex.DecodeString(strings.ReplaceAll(bytes, " ", ""))
		if !ok || err != nil || err2 != nil {
			t.Fatalf("%s: bad golden line %q", c.name, line)
		}
		if copy(b[at:], raw) != len(raw) {
			t.Fatalf("%s: golden line %q runs over the bundle", c.name, line)
		}
	}
	return b
}

func TestGolden(t *testing.T) {
	count := map[int]int{}
	for _, tab := range [][]golden{goldenPE, goldenAct, goldenALU, goldenSpecial, goldenControl} {
		for i := range tab {
			c := &tab[i]
			want := c.bundle(t)
			for _, level := range c.levels {
				count[level]++
				var b Bundle
				if err := Encode(level, &c.in, &b); err != nil {
					t.Errorf("%s on %d: %v", c.name, level, err)
					continue
				}
				if b != want {
					t.Errorf("%s on %d:\ngot  %s\nwant %s", c.name, level, spaced(b), spaced(want))
				}
				var back Inst
				if err := Decode(level, &want, &back); err != nil || back != c.in {
					t.Errorf("%s on %d: decode %v\ngot  %+v\nwant %+v", c.name, level, err, back, c.in)
				}
			}
		}
	}
	for _, level := range all {
		if count[level] < 15 {
			t.Errorf("%d golden bundles for level %d", count[level], level)
		}
	}
}

func spaced(b Bundle) string {
	var s strings.Builder
	for i := 0; i < 64; i += 4 {
		s.WriteString(hex.EncodeToString(b[i:i+4]) + " ")
	}
	return s.String()
}

var goldenPE = []golden{
	{"weights, CoreV2", v2, Inst{Opcode: OpLoadWeights, DtSrc: bf16, Rows: 128, Cols: 64, RowGroup: 15, ColGroup: 3,
		Src: pat(SBAddr(0, 0x4000), 1, 64), Sync: Sync{WaitMode: WaitGE, WaitSem: 5, Value: 7}}, `
		00: 01 10 00 00  // opcode 01, 16 dwords
		04: 05 05 00 00  // wait >= immediate, semaphore 5; no update
		08: 07 00 00 00  // 7
		0C: 00           // no transpose mark
		10: 00 40 00 00  // SBUF partition 0, byte 0x4000
		14: 01 00 01 00 01 00  // steps 1, unused, unused
		1A: 40 00 01 00 01 00  // counts 64, unused, unused
		20: 06           // bfloat16
		21: 00           // normal
		26: 80           // 128 rows K
		27: 40           // 64 columns M
		2C: 0F           // all rows
		2D: 03           // columns 0..63
		2E: 10           // CoreV2 only`},
	{"weights, CoreV3: no 0x2E", v3v4, Inst{Opcode: OpLoadWeights, DtSrc: bf16, Rows: 128, Cols: 64, RowGroup: 15, ColGroup: 3,
		Src: pat(SBAddr(0, 0x4000), 1, 64)}, `
		00: 01 10
		10: 00 40 00 00  // SBUF partition 0, byte 0x4000
		14: 01 00 01 00 01 00
		1A: 40 00 01 00 01 00
		20: 06           // bfloat16
		26: 80           // K
		27: 40           // M
		2C: 0F 03        // row group, column group`},
	{"weights, fp32 high pass, transposing", v3v4, Inst{Opcode: OpLoadWeights, DtSrc: f32, Rows: 32, Cols: 32, RowGroup: 2, ColGroup: 15,
		Variant: VariantFP32Hi, Transpose: TransposeMark, Src: pat(SBAddr(32, 0x100), 1, 32)}, `
		00: 01 10
		0C: 02           // weights transpose marker
		10: 00 01 80 00  // quadrant 1 at 8 MiB, byte 0x100
		14: 01 00 01 00 01 00
		1A: 20 00 01 00 01 00
		20: 0A           // float32
		21: 82           // 0x80 | 2: upper halves
		26: 20           // K = 32
		27: 20           // M = 32
		2C: 02           // rows 32..63
		2D: 0F           // full columns for fast fp32`},
	{"weights, fp32 low pass, CoreV2", v2, Inst{Opcode: OpLoadWeights, DtSrc: f32, Rows: 1, Cols: 1, RowGroup: 1, ColGroup: 15,
		Variant: VariantFP32Lo, Rep0: 2, Rep1: 3, Src: pat(SBAddr(0, 0x4000), 1, 1)}, `
		00: 01 10
		10: 00 40 00 00
		14: 01 00 01 00 01 00  // a single element: all axes unused
		1A: 01 00 01 00 01 00
		20: 0A           // float32
		21: 81           // 0x80 | 1: lower halves
		24: 02 03        // replication pair
		26: 01 01        // K, M
		2C: 01 0F        // rows 0..31, full columns
		2E: 10`},
	{"weights, fp32r", v3v4, Inst{Opcode: OpLoadWeights, DtSrc: f32, Rows: 2, Cols: 4, RowGroup: 1, ColGroup: 1,
		Variant: VariantFP32R, Src: pat(SBAddr(0, 0x4000), 1, 4)}, `
		00: 01 10
		10: 00 40 00 00
		14: 01 00 01 00 01 00
		1A: 04 00 01 00 01 00
		20: 0A 02        // the u16 0x020A
		26: 02 04
		2C: 01 01`},
	{"matmul, CoreV2", v2, Inst{Opcode: OpMatmul, DtSrc: bf16, DtDst: f32, Rows: 128, Cols: 64, RowGroup: 15, ColGroup: 3, Flags: FlagStart | FlagStop,
		Src: pat(SBAddr(0, 0x8000), 1, 128, 256, 4), Dst: pat(PSUMAddr(0, 2, 0), 1, 512), Sync: Sync{UpdateMode: UpdateInc, UpdateSem: 3}}, `
		00: 02 10
		04: 00 00 13 03  // no wait; +1 on semaphore 3
		10: 00 80 00 00  // moving at byte 0x8000
		14: 01 00 00 01 01 00  // steps 1, 256
		1A: 80 00 04 00 01 00  // counts 128, 4
		20: 06           // moving bfloat16
		21: 00           // dense
		23: 0A           // psum float32, perf mode 0
		26: 80           // K
		27: 40           // M active output partitions
		2B: 03           // START | STOP
		2C: 0F 03 10     // row group, column group, CoreV2 constant
		30: 00 10 00 02  // PSUM partition 0, bank 2
		34: 01 00 01 00 01 00
		3A: 00 02 01 00 01 00  // 512`},
	{"matmul, CoreV3, transposed into two bytes", v3, Inst{Opcode: OpMatmul, DtSrc: bf16, DtDst: bf16, Rows: 64, Cols: 32, RowGroup: 12, ColGroup: 4,
		Variant: VariantTransposed, Flags: FlagStart | FlagStop, Src: pat(SBAddr(64, 0), 1, 64), Dst: pat(PSUMAddr(64, 1, 16), 1, 64)}, `
		00: 02 10
		10: 00 00 00 01  // quadrant 2 at 16 MiB
		14: 01 00 01 00 01 00
		1A: 40 00 01 00 01 00
		20: 06 03        // bfloat16, transposed
		23: 06           // psum bfloat16
		26: 40 20        // K 64, M 32
		2B: 03
		2C: 0C 04        // rows 64..127, columns 64..95; no 0x2E
		30: 10 08 20 02  // PSUM 0x2000000 + 64*0x8000 + 1*0x800 + 16
		34: 01 00 01 00 01 00
		3A: 40 00 01 00 01 00`},
	{"matmul, CoreV4, bf16 psum, zero region, two banks", v4, Inst{Opcode: OpMatmul, DtSrc: bf16, DtDst: bf16, Rows: 128, Cols: 128, RowGroup: 15, ColGroup: 15,
		Flags: FlagAccumulate | FlagStop, ZeroRegion: 1, Src: pat(SBAddr(0, 0), 1, 2048), Dst: pat(PSUMAddr(0, 0, 0), 1, 2048)}, `
		00: 02 10
		10: 00 00 00 00
		14: 01 00 01 00 01 00
		1A: 00 08 01 00 01 00  // 2048
		20: 06 00
		23: 06
		26: 80 80
		2B: 06           // STOP | ACCUMULATE
		2C: 0F 0F
		2F: 01           // zero region of 2 banks
		30: 00 00 00 02
		34: 01 00 01 00 01 00
		3A: 00 08 01 00 01 00`},
	{"load tags", v3v4, Inst{Opcode: OpLoadTags, DtSrc: target.Int16, Rows: 32, RowGroup: 2, Variant: 4, Src: pat(SBAddr(32, 2), 1, 16)}, `
		00: 06 10
		10: 02 00 80 00  // quadrant 1, byte 2
		14: 01 00 01 00 01 00
		1A: 10 00 01 00 01 00
		20: 04           // int16
		21: 04           // column code of row group 2
		26: 20           // tile rows
		2C: 02`},
	{"matmul sparse, four axes, fp32 pass 1", v3v4, Inst{Opcode: OpMatmulSparse, DtSrc: f32, DtDst: f32, Rows: 128, Cols: 16, RowGroup: 15, ColGroup: 15,
		Variant: 3, Perf: 1, Flags: FlagStart, Src: pat(SBAddr(0, 0), 1, 2, 4, 2, 16, 2, 64, 2), Dst: pat(PSUMAddr(0, 0, 0), 1, 16)}, `
		00: 07 10
		0C: 40 00 02 00  // fourth moving axis: step 64, count 2
		10: 00 00 00 00
		14: 01 00 04 00 10 00
		1A: 02 00 02 00 02 00
		20: 0A           // float32
		21: 03           // fp32
		23: 0A           // psum float32
		26: 80 10
		28: 01           // START
		2B: 01           // low pass
		2C: 0F 0F
		30: 00 00 00 02
		34: 01 00 01 00 01 00
		3A: 10 00 01 00 01 00`},
	{"mx weights", v4, Inst{Opcode: OpLoadWeightsMx, DtSrc: target.Float8E4M3FNx4, Rows: 128, Cols: 128, RowGroup: 15,
		Mx: MxOperand{Data: 0x4000, Scale: 0x8000, Count: 128, Sign: 1, ScalePart: 4}}, `
		00: 09 10
		10: 00 40 00 00  // data
		14: 00 80 00 00  // scale
		18: 80 00        // packed elements
		1A: 01           // upwards
		1B: 04           // scale start partition
		20: 0E           // tag 14
		26: 80 80
		2C: 0F 0F`},
	{"mx matmul", v4, Inst{Opcode: OpMatmulMx, DtSrc: target.Float4E2M1x4, DtDst: f32, Rows: 32, Cols: 64, RowGroup: 1, Flags: FlagStart, ZeroRegion: 0,
		Mx: MxOperand{Data: 0x100, Scale: 0x200, Count: 512, Sign: 0xFF, ScalePart: 12}, Dst: pat(PSUMAddr(0, 3, 0), 1, 512)}, `
		00: 0A 10
		10: 00 01 00 00  // data
		14: 00 02 00 00  // scale
		18: 00 02 FF 0C  // 512, downwards, partition 12
		20: 10           // fp4 has tag 16 on CoreV4
		26: 20 40
		28: 0A           // psum dtype at 0x28
		2B: 01           // START
		2C: 01 0F
		30: 00 18 00 02  // bank 3
		34: 01 00 01 00 01 00
		3A: 00 02 01 00 01 00`},
}

var goldenAct = []golden{
	{"activation: Relu of psum with bias pointer", all, Inst{Opcode: OpActivate, Func: target.ActRelu, DtSrc: f32, DtSrc1: f32, DtDst: bf16, Parts: 128,
		Acc: target.AccZeroAccumulate, Imm0Src: SrcInline, Imm0: 0x3F800000, Imm1Src: SrcPointer, Imm1: SBAddr(0, 0x4010),
		Src: pat(PSUMAddr(0, 0, 0), 1, 512), Dst: pat(SBAddr(0, 0x5000), 1, 512),
		Sync: Sync{WaitMode: WaitGE, WaitSem: 3, UpdateMode: UpdateInc, UpdateSem: 4, Value: 12}}, `
		00: 21 10
		04: 05 03 13 04  // wait semaphore 3 >= 12; +1 on 4
		08: 0C 00 00 00
		0C: 00           // no alpha
		0D: 01           // scale inline
		0E: 03           // zero and accumulate
		0F: 00           // bias pointer
		10: 00 00 00 02  // PSUM bank 0
		14: 01 00 01 00 01 00
		1A: 00 02 01 00 01 00
		20: AA           // in float32 low, bias float32 high
		21: 06           // out bfloat16
		22: 80           // partitions
		23: 17           // Relu: 1 + 22
		24: 00 00 80 3F  // scale 1.0
		28: 10 40 00 00  // bias at SBUF 0x4010
		30: 00 50 00 00
		34: 01 00 01 00 01 00
		3A: 00 02 01 00 01 00`},
	{"activation: Prelu, alpha in a register", all, Inst{Opcode: OpActivate, Func: target.ActPrelu, DtSrc: bf16, DtSrc1: f32, DtDst: bf16, Parts: 1,
		Acc: target.AccAddAccumulate, Imm0Src: SrcInline, Imm0: 0x40000000, Imm1Src: SrcInline, Imm2Src: SrcRegister, Imm2: 9,
		Src: pat(SBAddr(0, 0), 2, 3, 8, 5), Dst: pat(SBAddr(0, 0x5000), 1, 15)}, `
		00: 21 10
		0C: 02           // alpha from a register
		0D: 01
		0E: 02           // add and accumulate
		0F: 01           // bias inline
		10: 00 00 00 00
		14: 02 00 08 00 01 00
		1A: 03 00 05 00 01 00
		20: A6           // in bfloat16, bias float32
		21: 06 01 15     // out, partitions, Prelu: 1 + 20
		24: 00 00 00 40  // 2.0
		28: 00 00 00 00  // bias 0.0
		2C: 09 00 00 00  // register 9
		30: 00 50 00 00
		34: 01 00 01 00 01 00
		3A: 0F 00 01 00 01 00`},
	{"activation, two ALUs", v4, Inst{Opcode: OpActivate2, Func: target.ActExp, DtSrc: bf16, DtSrc1: f32, DtDst: bf16, DtImm: f32, Parts: 64,
		Op0: target.AluSub, Op1: target.AluMult, RedOp: target.AluMax, Reverse: 2, Imm0Src: SrcInline, Imm0: 0x3F800000, Imm1Src: SrcRegister, Imm1: 3,
		Src: pat(SBAddr(64, 0x10), 1, 100), Dst: pat(SBAddr(0, 0x5000), 1, 10, 20, 10)}, `
		00: 25 10
		0C: 00 01 00 02  // no alpha, scale inline, accumulator idle, bias register
		10: 10 00 00 01  // 2-D source, partition 64
		14: 01 00 01 00
		18: 64 00 01 00
		1C: 0A           // immediates float32
		1D: 05 06 08     // subtract, mult, max
		20: A6 06 40 0B  // types, out bfloat16, 64 partitions, Exp: 1 + 10
		24: 00 00 80 3F
		28: 03 00 00 00
		30: 00 50 00 00  // 2-D destination
		34: 01 00 14 00
		38: 0A 00 0A 00
		3C: 02           // swap the operands of op1`},
	{"accumulator read", all, Inst{Opcode: OpActReadAcc, DtDst: f32, Parts: 128, Count: 1, Dst: pat(SBAddr(0, 0x4020), 1, 1)}, `
		00: 24 10
		1C: 01 00        // element count
		20: 0A           // float32
		22: 80
		30: 20 40 00 00  // 1-D
		34: 01 00 01 00`},
	{"load table set", all, Inst{Opcode: OpLoadActFuncSet, Set: 5}, `
		00: 23 10
		23: 05`},
}

var goldenALU = []golden{
	{"tensor tensor, CoreV2", v2, Inst{Opcode: OpTensorTensor, Op0: target.AluAdd, DtSrc: f32, DtSrc1: bf16, DtDst: f32, Parts: 128,
		Dst: pat(SBAddr(0, 0x100), 1, 64), Src: pat(PSUMAddr(0, 1, 0), 1, 64), Src1: pat(SBAddr(0, 0x200), 2, 64)}, `
		00: 41 10
		0C: 6A           // in0 float32 low, in1 bfloat16 high
		0D: 0A           // out
		0E: 04           // add
		0F: 80           // partitions
		10: 00 01 00 00  // dst
		14: 01 00 01 00 01 00
		1A: 40 00 01 00 01 00
		20: 00 08 00 02  // in0, PSUM bank 1
		24: 01 00 01 00 01 00
		2A: 40 00 01 00 01 00
		30: 00 02 00 00  // in1
		34: 02 00 01 00 01 00
		3A: 40 00 01 00 01 00`},
	{"tensor tensor, CoreV3 with accumulator", v3v4, Inst{Opcode: OpTensorTensorBit, Op0: target.AluBitXor, DtSrc: i32, DtSrc1: i32, DtDst: i32, Parts: 32,
		Acc: target.AccZeroAccumulate, Dst: pat(SBAddr(96, 0), 1, 4), Src: pat(SBAddr(96, 0x10), 1, 4), Src1: pat(SBAddr(96, 0x20), 0, 4)}, `
		00: 51 10
		0C: 88           // int32, int32
		0D: 38           // out int32 low, accumulator 3 high
		0E: 0C           // bitwise_xor
		0F: 20
		10: 00 00 80 01  // quadrant 3 at 24 MiB
		14: 01 00 01 00 01 00
		1A: 04 00 01 00 01 00
		20: 10 00 80 01
		24: 01 00 01 00 01 00
		2A: 04 00 01 00 01 00
		30: 20 00 80 01
		34: 00 00 01 00 01 00  // broadcast: step 0
		3A: 04 00 01 00 01 00`},
	{"tensor scalar, pointer and inline", all, Inst{Opcode: OpTensorScalar, Op0: target.AluSub, Op1: target.AluMult, DtSrc: f32, DtDst: f32, Parts: 128,
		Reverse: 1, Imm0Src: SrcPointer, Imm0: SBAddr(0, 0x4004), Imm1Src: SrcInline, Imm1: 0xBF000000,
		Src: pat(SBAddr(0, 0x5000), -1, 16), Dst: pat(SBAddr(0, 0x6000), 1, 16)}, `
		00: 43 10
		0C: 00           // accumulator idle
		10: 00 50 00 00
		14: FF FF 01 00 01 00  // step -1
		1A: 10 00 01 00 01 00
		20: 0A 0A 80     // in, out, partitions
		23: 00           // scalar0 pointer
		24: 05           // subtract
		25: 06           // mult
		26: 01           // swap op0
		27: 01           // scalar1 inline
		28: 04 40 00 00
		2C: 00 00 00 BF  // -0.5
		30: 00 60 00 00
		34: 01 00 01 00 01 00
		3A: 10 00 01 00 01 00`},
	{"tensor scalar with reduction", all, Inst{Opcode: OpTensorScalarReduce, Op0: target.AluNotEqual, Op1: target.AluAdd, DtSrc: f32, DtDst: f32, Parts: 2,
		Acc: target.AccZeroAccumulate, Imm0Src: SrcInline, Imm1Src: SrcInline, Src: pat(SBAddr(0, 0), 1, 8), Dst: pat(SBAddr(0, 0), 1, 8)}, `
		00: 9A 10
		0C: 03           // zero and accumulate
		10: 00 00 00 00
		14: 01 00 01 00 01 00
		1A: 08 00 01 00 01 00
		20: 0A 0A 02
		23: 01 18 04     // inline, not_equal 0x18, add
		27: 01
		30: 00 00 00 00
		34: 01 00 01 00 01 00
		3A: 08 00 01 00 01 00`},
	{"scalar tensor tensor", all, Inst{Opcode: OpScalarTensorTensor, Op0: target.AluMult, Op1: target.AluAdd, DtSrc: bf16, DtSrc1: f32, DtDst: bf16, Parts: 128,
		Imm0Src: SrcRegister, Imm0: 7, Reverse: 3, Acc: target.AccLoadAccumulate,
		Src: pat(SBAddr(0, 0x10), 1, 32), Src1: pat(SBAddr(0, 0x100), 1, 32), Dst: pat(SBAddr(0, 0x200), 1, 8, 16, 4)}, `
		00: 9D 10
		0C: A6           // in0 bfloat16 low, in1 float32 high
		0D: 06           // out
		0E: 06 04        // mult, add
		10: 10 00 00 00  // in0 2-D
		14: 01 00 01 00
		18: 20 00 01 00
		1C: 00 01 00 00  // in1 2-D
		20: 01 00 01 00
		24: 20 00 01 00
		28: 07 00 00 00  // register 7
		2C: 04           // load and accumulate
		2D: 80           // partitions
		2E: 02           // scalar from register
		2F: 03           // both swapped
		30: 00 02 00 00
		34: 01 00 10 00
		38: 08 00 04 00`},
	{"scan", all, Inst{Opcode: OpTensorTensorScan, Op0: target.AluMult, Op1: target.AluAdd, DtSrc: f32, DtSrc1: f32, DtDst: f32, Parts: 128,
		Imm0Src: SrcPointer, Imm0: SBAddr(0, 0x40), Src: pat(SBAddr(0, 0x1000), 1, 256), Src1: pat(SBAddr(0, 0x2000), 1, 256), Dst: pat(SBAddr(0, 0x3000), 1, 256)}, `
		00: E5 10
		0C: AA 0A 06 04
		10: 00 10 00 00
		14: 01 00 01 00
		18: 00 01 01 00
		1C: 00 20 00 00
		20: 01 00 01 00
		24: 00 01 01 00
		28: 40 00 00 00
		2D: 80
		30: 00 30 00 00
		34: 01 00 01 00
		38: 00 01 01 00`},
	{"exponential", v4, Inst{Opcode: OpExponential, DtSrc: f32, DtDst: bf16, Parts: 128, Acc: target.AccZeroAccumulate, Imm0Src: SrcPointer, Imm0: SBAddr(0, 0x80),
		Imm1Src: SrcInline, Src: pat(PSUMAddr(0, 4, 0), 1, 512), Dst: pat(SBAddr(0, 0x1000), 1, 512)}, `
		00: 30 10
		0C: 03           // sums
		10: 00 20 00 02  // bank 4
		14: 01 00 01 00 01 00
		1A: 00 02 01 00 01 00
		20: 0A 06 80
		23: 00 00 00 00 01  // pointer, bypass, bypass, no reverse, inline
		28: 80 00 00 00
		30: 00 10 00 00
		34: 01 00 01 00 01 00
		3A: 00 02 01 00 01 00`},
	{"tensor copy", all, Inst{Opcode: OpTensorCopy, DtSrc: bf16, DtDst: bf16, Parts: 32, Src: pat(SBAddr(0, 0), 1, 2, 8, 3, 32, 4, 256, 5), Dst: pat(SBAddr(96, 0x40), 1, 120)}, `
		00: 46 10
		0C: 00 00 00 00  // in 4-D
		10: 01 00 08 00 20 00 00 01
		18: 02 00 03 00 04 00 05 00
		20: 06 06 20
		2C: 40 00 80 01
		30: 01 00 01 00 01 00 01 00
		38: 78 00 01 00 01 00 01 00`},
	{"tensor copy with cast", all, Inst{Opcode: OpTensorCopyCast, DtSrc: target.Uint8, DtDst: target.Float16, Parts: 1, Src: pat(SBAddr(0, 3), 1, 2), Dst: pat(SBAddr(0, 4), 1, 2)}, `
		00: 47 10
		0C: 03 00 00 00
		10: 01 00 01 00 01 00 01 00
		18: 02 00 01 00 01 00 01 00
		20: 03 07 01     // uint8, float16
		2C: 04 00 00 00
		30: 01 00 01 00 01 00 01 00
		38: 02 00 01 00 01 00 01 00`},
	{"tensor copy that gathers", v4, Inst{Opcode: OpTensorCopy, DtSrc: bf16, DtDst: bf16, Parts: 16, Ptr: SBAddr(0, 0x9000), Count: 60,
		Src: pat(AddrIndirect|0x100, 1, 64), Dst: pat(SBAddr(0, 0x40), 1, 64)}, `
		00: 46 10
		0C: 00 01 00 20  // bit 29: index list at 0x100
		10: 01 00 01 00 01 00 01 00
		18: 40 00 01 00 01 00 01 00
		20: 06 06 10
		24: 00 90 00 00  // data
		28: 3C 00 00 00  // valid indices
		2C: 40 00 00 00
		30: 01 00 01 00 01 00 01 00
		38: 40 00 01 00 01 00 01 00`},
	{"tensor reduce, innermost axis of two", all, Inst{Opcode: OpTensorReduce, Op0: target.AluMax, Axes: 1, Negate: 1, DtSrc: f32, DtDst: f32, Parts: 128,
		Src: pat(SBAddr(0, 0x1000), 1, 64, 64, 8), Dst: pat(SBAddr(0, 0x8000), 1, 8)}, `
		00: 42 10
		0C: 00 10 00 00
		10: 01 00 40 00 01 00 01 00
		18: 40 00 08 00 01 00 01 00
		20: 0A 0A 80
		24: 08 01 01     // max, one axis, negate
		2C: 00 80 00 00
		30: 01 00 01 00 01 00 01 00
		38: 08 00 01 00 01 00 01 00`},
	{"pool", all, Inst{Opcode: OpPool, Mode: 1, DtSrc: f32, DtDst: f32, Parts: 64, Src: pat(SBAddr(64, 0), 1, 2, 8, 2, 2, 4, 16, 4), Dst: pat(SBAddr(0, 0x400), 1, 16)}, `
		00: 45 10
		0C: 00 00 00 01
		10: 01 00 08 00 02 00 10 00
		18: 02 00 02 00 04 00 04 00
		20: 0A 0A 40
		24: 01 03        // max, mode 3
		2C: 00 04 00 00
		30: 01 00 01 00 01 00 01 00
		38: 10 00 01 00 01 00 01 00`},
	{"reciprocal", all, Inst{Opcode: OpReciprocal, DtSrc: f32, DtDst: f32, Parts: 128, Src: pat(SBAddr(0, 0x40), 1, 1), Dst: pat(PSUMAddr(0, 7, 0x7FC), 1, 1)}, `
		00: 48 10
		0C: 40 00 00 00
		10: 01 00 01 00 01 00 01 00
		18: 01 00 01 00 01 00 01 00
		20: 0A 0A 80
		2C: FC 3F 00 02  // bank 7, byte 0x7FC
		30: 01 00 01 00 01 00 01 00
		38: 01 00 01 00 01 00 01 00`},
	{"memset", all, Inst{Opcode: OpMemset, DtDst: f32, Parts: 128, Imm0: 0xFF800000, Dst: pat(SBAddr(0, 0x4000), 1, 4096)}, `
		00: 49 10
		21: 0A 80        // float32, partitions
		28: 00 00 80 FF  // -Inf
		2C: 00 40 00 00  // 1-D
		30: 01 00 00 10`},
	{"iota", all, Inst{Opcode: OpIota, DtDst: i32, Parts: 128, Steps: [4]int32{1, 512}, Base: -1, ChanMul: 70000, Dst: pat(SBAddr(0, 0), 1, 512, 512, 2)}, `
		00: 7E 10
		0C: 01 00 00 00  // value steps
		10: 00 02 00 00
		21: 08 80        // int32
		24: FF FF FF FF  // base -1
		28: 70 11 01 00  // 70000 a partition
		2C: 00 00 00 00
		30: 01 00 00 02 01 00 01 00
		38: 00 02 02 00 01 00 01 00`},
	{"affine select", all, Inst{Opcode: OpAffineSelect, Op0: target.AluGE, DtSrc: f32, DtDst: bf16, Parts: 128, Imm0: 0xC61C4000, Base: 128, ChanMul: -1,
		Steps: [4]int32{1, -2}, Src: pat(PSUMAddr(0, 0, 0), 1, 128), Dst: pat(SBAddr(0, 0x800), 1, 128)}, `
		00: 92 10
		0C: 00 00 00 02  // in 3-D
		10: 01 00 01 00 01 00
		16: 80 00 01 00 01 00
		1C: 0A 06 80     // types, partitions
		1F: 14           // is_ge
		20: 00 40 1C C6  // -10000.0
		24: 80 00 00 00
		28: FF FF FF FF
		2C: 01 00 FE FF  // pattern steps
		30: 00 08 00 00
		34: 01 00 01 00 01 00
		3A: 80 00 01 00 01 00`},
	{"copy predicated", all, Inst{Opcode: OpCopyPredicated, DtSrc: f32, DtSrc1: target.Uint8, DtDst: f32, Reverse: 1, Parts: 8,
		Dst: pat(SBAddr(0, 0), 1, 4), Src: pat(SBAddr(0, 0x10), 1, 4), Src1: pat(SBAddr(0, 0x21), 1, 4)}, `
		00: EA 10
		0C: 3A           // in float32, predicate uint8
		0D: 0A 01 08     // out, reversed, partitions
		10: 00 00 00 00
		14: 01 00 01 00 01 00
		1A: 04 00 01 00 01 00
		20: 10 00 00 00
		24: 01 00 01 00 01 00
		2A: 04 00 01 00 01 00
		30: 21 00 00 00
		34: 01 00 01 00 01 00
		3A: 04 00 01 00 01 00`},
}

var goldenSpecial = []golden{
	{"max8", all, Inst{Opcode: OpMax, DtSrc: f32, DtDst: f32, Parts: 128, Src: pat(SBAddr(0, 0), 1, 100), Dst: pat(SBAddr(0, 0x400), 1, 8)}, `
		00: 6C 10
		0C: 00 00 00 00
		10: 01 00 01 00 01 00 01 00
		18: 64 00 01 00 01 00 01 00
		20: 0A 0A 80
		2C: 00 04 00 00  // 1-D
		30: 01 00 08 00`},
	{"max index, first bundle", all, Inst{Opcode: OpMaxIndexLoad, DtSrc: f32, Parts: 128, Src: pat(SBAddr(0, 0x400), 1, 8)}, `
		00: 6D 10
		0C: 00 04 00 00
		10: 01 00 08 00
		20: 0A
		22: 80`},
	{"max index and match replace, first bundle", v3v4, Inst{Opcode: OpMaxIndexLoad, DtSrc: f32, Parts: 128, Imm0: 0xFF800000, Src: pat(SBAddr(0, 0x400), 1, 8), Dst: pat(SBAddr(0, 0x800), 1, 100)}, `
		00: 6D 10
		0C: 00 04 00 00
		10: 01 00 08 00
		20: 0A
		22: 80
		24: 00 00 80 FF  // replacement -Inf
		2C: 00 08 00 00  // replaced copy
		30: 01 00 01 00 01 00 01 00
		38: 64 00 01 00 01 00 01 00`},
	{"max index, second bundle", all, Inst{Opcode: OpMaxIndex, DtSrc: f32, DtDst: target.Uint32, Parts: 128, Src: pat(SBAddr(0, 0), 1, 100), Dst: pat(SBAddr(0, 0x420), 1, 8)}, `
		00: 6E 10
		10: 01 00 01 00 01 00 01 00
		18: 64 00 01 00 01 00 01 00
		20: 0A 09 80     // float32 in, uint32 out
		2C: 20 04 00 00
		30: 01 00 08 00`},
	{"stream transpose, first bundle", all, Inst{Opcode: OpStreamLoad, DtSrc: bf16, Parts: 32, Src: pat(SBAddr(0, 0x40), 1, 32)}, `
		00: 69 10
		0C: 40 00 00 00
		10: 01 00 01 00 01 00 01 00
		18: 20 00 01 00 01 00 01 00
		20: 06
		22: 20`},
	{"stream transpose, second bundle", all, Inst{Opcode: OpStreamTranspose, DtDst: bf16, Parts: 32, Dst: pat(SBAddr(32, 0x40), 1, 32)}, `
		00: 6B 10
		21: 06 20
		2C: 40 00 80 00
		30: 01 00 01 00 01 00 01 00
		38: 20 00 01 00 01 00 01 00`},
	{"indirect copy", v2v3, Inst{Opcode: OpIndirectCopy, DtSrc: f32, DtDst: f32, Parts: 16, Ptr: SBAddr(0, 0x700), Count: 33, Src: pat(SBAddr(0, 0), 1, 100), Dst: pat(SBAddr(0, 0x800), 1, 64)}, `
		00: E7 10
		0C: 00 00 00 00
		10: 01 00 01 00 01 00 01 00
		18: 64 00 01 00 01 00 01 00
		20: 0A 0A 10
		24: 00 07 00 00  // indices
		28: 21 00 00 00  // 33 are valid
		2C: 00 08 00 00
		30: 01 00 01 00 01 00 01 00
		38: 40 00 01 00 01 00 01 00`},
	{"range select", v3v4, Inst{Opcode: OpRangeSelect, Acc: target.AccZeroAccumulate, RedOp: target.AluMax, Op0: target.AluGE, Op1: target.AluLT, DtSrc: f32, DtDst: f32, Parts: 128,
		Imm0: 0xFF7FFFFF, Imm1: SBAddr(0, 0x40), Imm2: SBAddr(0, 0x44), Src: pat(PSUMAddr(0, 0, 0), 1, 512), Dst: pat(SBAddr(0, 0x1000), 1, 512)}, `
		00: BC 10
		0C: 03 08 14 16  // zero and accumulate, max, is_ge, is_lt 0x16
		10: 00 00 00 02
		14: 01 00 01 00 01 00
		1A: 00 02 01 00 01 00
		20: 0A 0A 80
		24: FF FF 7F FF  // fill -FLT_MAX
		28: 40 00 00 00  // low bounds
		2C: 44 00 00 00  // high bounds
		30: 00 10 00 00
		34: 01 00 01 00 01 00
		3A: 00 02 01 00 01 00`},
	{"sequence bounds", v3v4, Inst{Opcode: OpSeqBounds, DtSrc: i32, DtDst: i32, Parts: 1, Src: pat(SBAddr(0, 0), 1, 16), Dst: pat(SBAddr(0, 0x80), 1, 16, 16, 2)}, `
		00: BE 10
		10: 01 00 01 00 01 00 01 00
		18: 10 00 01 00 01 00 01 00
		20: 08 08 01
		2C: 80 00 00 00
		30: 01 00 10 00 01 00 01 00
		38: 10 00 02 00 01 00 01 00`},
	{"sb to sb", v3v4, Inst{Opcode: OpSB2SB, DtSrc: bf16, DtDst: bf16, Parts: 128, Mode: 1, Src: pat(SBAddr(0, 0), 1, 16), Dst: pat(SBAddr(0, 0x80), 1, 16)}, `
		00: BF 10
		10: 01 00 01 00 01 00 01 00
		18: 10 00 01 00 01 00 01 00
		20: 06 06 80 01  // types, partitions, peer core 1
		2C: 80 00 00 00
		30: 01 00 01 00 01 00 01 00
		38: 10 00 01 00 01 00 01 00`},
	{"nonzero with count", v3v4, Inst{Opcode: OpNonzero, DtSrc: f32, DtDst: i32, Parts: 1, Src: pat(SBAddr(0, 0), 1, 16), Dst: pat(SBAddr(0, 0x80), 1, 17)}, `
		00: F2 10
		10: 01 00 01 00 01 00 01 00
		18: 10 00 01 00 01 00 01 00
		20: 0A 08 01
		2C: 80 00 00 00
		30: 01 00 01 00 01 00 01 00
		38: 11 00 01 00 01 00 01 00`},
	{"get random state, CoreV2", v2, Inst{Opcode: OpGetRandState, DtDst: target.Uint32, Parts: 128, Dst: pat(SBAddr(0, 0x80), 1, 6)}, `
		00: 77 10
		21: 09 80
		2C: 80 00 00 00
		30: 01 00 06 00`},
	{"get random state, CoreV3 with engine", v3v4, Inst{Opcode: OpGetRandState, DtDst: target.Uint32, Parts: 128, Mode: 5, Dst: pat(SBAddr(0, 0x80), 1, 6)}, `
		00: 77 10
		21: 09 80 05
		2C: 80 00 00 00
		30: 01 00 06 00`},
	{"set random state, CoreV3", v3v4, Inst{Opcode: OpRandSetState, DtSrc: target.Uint32, Parts: 128, Mode: 5, Src: pat(SBAddr(0, 0x80), 1, 6)}, `
		00: 78 10
		0C: 80 00 00 00
		10: 01 00 06 00
		20: 09
		22: 80 05`},
	{"set random state, CoreV2", v2, Inst{Opcode: OpSetRandState, DtSrc: target.Uint32, Parts: 128, Src: pat(SBAddr(0, 0x80), 1, 6)}, `
		00: D0 10
		0C: 80 00 00 00
		10: 01 00 06 00
		20: 09
		22: 80`},
	{"rand2", v4, Inst{Opcode: OpRand2, DtDst: f32, Parts: 128, Imm0Src: SrcInline, Imm0: 0xBF800000, Imm1Src: SrcInline, Imm1: 0x3F800000, Dst: pat(SBAddr(0, 0x80), 1, 32, 64, 4)}, `
		00: E2 10
		20: 01 0A 80 01  // low inline, float32, partitions, high inline
		24: 00 00 80 BF  // -1.0
		28: 00 00 80 3F  // 1.0
		2C: 80 00 00 00
		30: 01 00 40 00 01 00 01 00
		38: 20 00 04 00 01 00 01 00`},
	{"quantize mx, saturating", v4, Inst{Opcode: OpQuantizeMx, Saturate: 1, DtSrc: bf16, DtDst: target.Float8E5M2x4, Parts: 64, Src: pat(SBAddr(0, 0), 1, 512),
		Mx: MxOperand{Data: 0x1000, Scale: 0x2000, Count: 128, Sign: 1, ScalePart: 0}}, `
		00: E3 11        // bit 0 of the length byte
		10: 00 00 00 00
		14: 01 00 01 00 01 00
		1A: 00 02 01 00 01 00
		21: 40 06 0F     // partitions, bfloat16, tag 15
		30: 00 10 00 00
		34: 00 20 00 00
		38: 80 00 01 00`},
}

var goldenControl = []golden{
	{"nop", all, Inst{Opcode: OpNoOp, Sync: Sync{WaitMode: WaitGEReg, WaitSem: 9, Value: 61}}, `
		00: A4 10
		04: 85 09        // semaphore 9 >= register
		08: 3D 00 00 00  // register 61`},
	{"event semaphore", all, Inst{Opcode: OpEventSemaphore, Sync: Sync{WaitMode: WaitGE, WaitSem: 16, Value: 3, UpdateMode: UpdateAdd, UpdateSem: 4},
		Wait1Mode: WaitGE, Wait1Sem: 17, Wait1Value: 300, UpdateValue: 2}, `
		00: A0 10
		04: 05 10        // wait0
		08: 03 00 00 00
		20: 05 11        // wait1
		22: 15 04        // update: + immediate on 4
		24: 2C 01 00 00  // 300
		28: 02 00 00 00`},
	{"drain", all, Inst{Opcode: OpDrain, Mode: 1, Sync: Sync{UpdateMode: UpdateEvent, UpdateSem: 2}}, `
		00: A2 10
		04: 00 00 11 02  // set event 2
		28: 01`},
	{"barrier", all, Inst{Opcode: OpBarrier, Sync: Sync{WaitMode: WaitGE, WaitSem: 8, UpdateMode: UpdateInc, UpdateSem: 8, Value: 5}}, `
		00: D5 10
		04: 05 08 13 08
		08: 05 00 00 00`},
	{"group reset, range", all, Inst{Opcode: OpGroupReset, Mode: ResetRange, SemFirst: 3, SemLast: 255}, `
		00: B0 10
		0C: 01 03 FF`},
	{"group reset, mask", all, Inst{Opcode: OpGroupReset, Mode: ResetMask, Mask: [32]byte{0: 0xF8, 31: 0x80}}, `
		00: B0 10
		0C: 02
		20: F8           // semaphores 3..7
		3F: 80           // semaphore 255`},
	{"core barrier", v3v4, Inst{Opcode: OpCoreBarrier, Count: 2, Count1: 1, Count2: 3}, `
		00: D8 10
		0C: 02 00 00 00
		10: 01 00 00 00
		14: 03 00 00 00`},
	{"branch", all, Inst{Opcode: OpBranch, Cmp: CmpLTImm, DtSrc: i32, Base: -5, RegA: 11, Target: 0x123456789}, `
		00: A9 10
		0C: 01           // LT immediate
		0D: 08           // int32
		0E: 03
		10: FB FF FF FF
		20: 0B
		30: 89 67 45 23 01 00 00 00`},
	{"call", all, named(Inst{Opcode: OpCall, Block: 7}, "layer"), `
		00: D3 10
		0C: 6C 61 79 65 72
		30: 07`},
	{"register move", all, Inst{Opcode: OpRegisterMove, Mode: 2, DtDst: target.Uint64, Imm0Src: 1, RegDst: 4, RegDst1: 5, Imm64: 0x1122334455667788}, `
		00: A7 10
		0C: 02 01 01     // two registers, uint64, immediate
		18: 04 05
		20: 88 77 66 55 44 33 22 11`},
	{"register alu", all, Inst{Opcode: OpRegisterAlu, Op0: target.AluAdd, DtSrc: i32, DtSrc1: i32, Imm0Src: 1, RegA: 4, RegDst: 4, Imm64: 1}, `
		00: A8 10
		0C: 04 08 01 08  // add, int32, immediate, int32
		10: 04
		18: 04
		20: 01`},
	{"tensor load, immediate", all, Inst{Opcode: OpTensorLoad, DtSrc: i32, Rep0: 1, Rep1: 1, Var: 12, Off64: 0x100000004, Steps: [4]int32{4}, RegDst: 6}, `
		00: CE 10
		0C: 08
		0E: 01 01
		10: 0C 00 00 00
		14: 04 00 00 00 01 00 00 00
		1C: 04 00 00 00
		22: 06`},
	{"tensor save, register", all, Inst{Opcode: OpTensorSaveReg, DtSrc: i32, Rep0: 1, Rep1: 2, Var: 12, Steps: [4]int32{4, 8}, RegA: 2, RegB: 3, RegDst: 6}, `
		00: AB 10
		0C: 08
		0E: 01 02
		10: 0C 00 00 00
		17: 80           // register form
		18: 04 00 00 00 08 00 00 00
		20: 02 03 06`},
	{"dma trigger", all, named(Inst{Opcode: OpDMATrigger, Block: 0x01020304, Sync: Sync{WaitMode: WaitGE, WaitSem: 40, Value: 32}}, "qSPld"), `
		00: C1 10
		04: 05 28
		08: 20 00 00 00
		0C: 71 53 50 6C 64  // "qSPld"
		30: 04 03 02 01`},
	{"switch queue", all, named(Inst{Opcode: OpSwitchQueue, Mode: 1}, "q"), `
		00: CF 10
		0C: 71
		3B: 01 01`},
	{"reset queue", all, named(Inst{Opcode: OpResetQueue}, "q"), `
		00: C2 10
		0C: 71`},
	{"static dma", all, Inst{Opcode: OpDMAStatic, Qos: 2, Sem: 16, SemInc: 1, Cmd: 3,
		From: DMASide{Off: 0x1000, Var: 0x010203, Step: [2]int32{4096, -8}, Num: [2]uint32{128, 1}, Run: 65536, Mode: AddrStatic, Dt: bf16},
		To:   DMASide{Off: 0x4000, Step: [2]int32{262144, 0}, Num: [2]uint32{128, 1}, Run: 512, Mode: AddrStatic, Reg: 0x81, Dt: f32}}, `
		00: D4 10
		0C: 02 10 01 03  // qos, semaphore 16, +1, copy
		10: 00 10 00 00 03 02 01 10  // offset, variable 0x010203, static
		18: 00 10 00 00 F8 FF FF FF  // steps
		20: 80 00 01 00  // counts
		24: 00 00        // 65536 bytes
		26: 00 81        // no source register; destination register 1 valid
		28: 00 40 00 00 00 00 00 10
		30: 00 00 04 00 00 00 00 00
		38: 80 00 01 00
		3C: 00 02
		3E: 06 0A`},
	{"indirect load", all, Inst{Opcode: OpIndirectDMA, DtSrc: i32, Ptr: SBAddr(0, 0x20), Var: 9, VarOff: 64, Count: 128, Count1: 1, Imm0: SBAddr(0, 0x4000),
		Imm1: 1024, Imm2: 50257, Steps: [4]int32{1, 1024}, Count2: 2, Sem: 33, SemInc: 16, Mode: 0, Sync: Sync{WaitMode: WaitGE, WaitSem: 17, Value: 16}}, `
		00: C4 10
		04: 05 11 00 00 10 00 00 00  // wait for the indices
		0C: 20 00 00 00  // index start
		10: 09 00 00 00 40 00 00 00  // table
		18: 80 00 00 00 01 00 00 00  // index counts
		20: 00 40 00 00  // data start
		24: 01 00 00 00 00 04 00 00  // data steps: elements of a row, rows
		2C: 00 04 00 00 51 C4 00 00  // data counts
		34: 02 00 00 00  // element bytes
		38: 21 10        // completion
		3D: 08           // int32 indices`},
	{"indirect save", all, Inst{Opcode: OpIndirectDMA, DtSrc: target.Uint32, Ptr: SBAddr(64, 0x8000), Var: 0x10203, Count: 3, Count1: 1, Imm0: SBAddr(125, 8),
		Imm1: 1, Imm2: 7, Steps: [4]int32{1, -3}, Count2: 8, Sem: 255, SemInc: 1, Mode: 1, Wait1Value: 2, UpdateValue: 1}, `
		00: C4 10
		0C: 00 80 00 01  // partition 64
		10: 03 02 01 00 00 00 00 00
		18: 03 00 00 00 01 00 00 00
		20: 08 00 F4 01  // partition 125
		24: 01 00 00 00 FD FF FF FF
		2C: 01 00 00 00 07 00 00 00
		34: 08 00 00 00
		38: FF 01
		3A: 01 00        // wait value 0
		3C: 01 09        // save, uint32 indices
		3E: 02 00        // wait value 1`},
}
