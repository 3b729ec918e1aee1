package isa

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

func TestRoundTrip(t *testing.T) {
	eachForm(t, func(t *testing.T, g int, op Opcode) {
		rapid.Check(t, func(t *rapid.T) {
			in := drawInst(t, g, op)
			var b Bundle
			if err := Encode(gens[g].Level, &in, &b); err != nil {
				t.Fatalf("encode %+v: %v", in, err)
			}
			var back Inst
			back.Count2 = 99 // Decode overwrites all
			if err := Decode(gens[g].Level, &b, &back); err != nil {
				t.Fatalf("decode: %v", err)
			}
			if back != in {
				t.Fatalf("decode(encode(x)) differs:\n%+v\n%+v", in, back)
			}
			line := Disasm(gens[g].Level, &b, nil)
			if !bytes.HasPrefix(line, []byte(op.String())) || bytes.ContainsAny(line, "\n") || bytes.Contains(line, []byte("raw ")) {
				t.Fatalf("disasm: %s", line)
			}
		})
	})
}

// TestDecodeStrict flips each reserved bit of a legal bundle: none may pass.
func TestDecodeStrict(t *testing.T) {
	eachForm(t, func(t *testing.T, g int, op Opcode) {
		in := rapid.Custom(func(t *rapid.T) Inst { return drawInst(t, g, op) }).Example(1)
		var b Bundle
		if err := Encode(gens[g].Level, &in, &b); err != nil {
			t.Fatal(err)
		}
		l := index[g][op]
		for bit := 0; bit < 512; bit++ {
			if l.free[bit/64]>>(bit%64)&1 == 0 {
				continue
			}
			bad := b
			bad[bit/8] ^= 1 << (bit % 8)
			var back Inst
			if err := Decode(gens[g].Level, &bad, &back); err == nil || target.ClassOf(err) != target.User {
				t.Fatalf("bit %d of a reserved byte: %v", bit, err)
			}
		}
		bad := b
		bad[1] = 0x0F
		if err := Decode(gens[g].Level, &bad, &in); err == nil {
			t.Fatal("length byte 0x0F passes")
		}
	})
}

// TestDisasm pins the text of every golden bundle, of what does not decode, and of a torn stream.
func TestDisasm(t *testing.T) {
	var got []byte
	for _, tab := range [][]golden{goldenPE, goldenAct, goldenALU, goldenSpecial, goldenControl} {
		for i := range tab {
			b := tab[i].bundle(t)
			got = append(Disasm(tab[i].levels[0], &b, got), '\n')
		}
	}
	var stream []byte
	for _, b := range []Bundle{{0xA4, 0x10}, {0x85, 0x10, 0, 0, 1}, {0x30, 0x10}, {0xFF, 0xFF}, {0x46, 0x10}} {
		stream = append(stream, b[:]...)
	}
	got = DisasmStream(30, append(stream, 1, 2, 3), got)
	if *update {
		if err := os.WriteFile("testdata/disasm.txt", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/disasm.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("text differs from testdata/disasm.txt (-update rewrites it):\n%s", got)
	}
}

func TestUnknownOpcodes(t *testing.T) {
	for g := range gens {
		for op := 0; op < 256; op++ {
			b := Bundle{byte(op), 0x10}
			var in Inst
			err := Decode(gens[g].Level, &b, &in)
			if index[g][op] == nil && (err == nil || target.ClassOf(err) != target.Unsupported) {
				t.Errorf("%s 0x%02X: %v", gens[g].Core, op, err)
			}
			line := string(Disasm(gens[g].Level, &b, nil))
			if Opcode(op).Known() && !strings.HasPrefix(line, Opcode(op).String()) {
				t.Errorf("0x%02X disassembles to %q", op, line)
			}
		}
	}
	var in Inst
	if Decode(10, &Bundle{0xA4, 0x10}, &in) == nil || Encode(50, &in, &Bundle{}) == nil {
		t.Error("a level without an encoder passes")
	}
}

// TestEncodeErrors: each message names the field, the value and the limit.
func TestEncodeErrors(t *testing.T) {
	sb := Desc{Addr: SBAddr(0, 0x4000), N: 1, Step: [4]int32{1}, Num: [4]uint32{64}}
	ps := Desc{Addr: PSUMAddr(0, 0, 0), N: 1, Step: [4]int32{1}, Num: [4]uint32{64}}
	cp := Inst{Opcode: OpTensorCopy, DtSrc: target.Float32, DtDst: target.Float32, Parts: 128, Src: sb, Dst: sb}
	gt := Inst{Opcode: OpIndirectDMA, DtSrc: target.Int32, Ptr: SBAddr(0, 0x20), Count: 128, Count1: 1, Imm0: SBAddr(0, 0x4000), Imm1: 64, Imm2: 9,
		Steps: [4]int32{1, 64}, Count2: 4}
	mm := Inst{Opcode: OpMatmul, DtSrc: target.BFloat16, DtDst: target.Float32, Rows: 128, Cols: 64, RowGroup: 15, ColGroup: 15,
		Src: sb, Dst: ps, Flags: 3}
	for _, c := range []struct {
		name  string
		level int
		base  Inst
		edit  func(*Inst)
		want  string
	}{
		{"parts", 20, cp, func(in *Inst) { in.Parts = 129 }, "partitions 129 is outside 1..128"},
		{"no parts", 20, cp, func(in *Inst) { in.Parts = 0 }, "partitions 0 is outside 1..128"},
		{"step", 20, cp, func(in *Inst) { in.Src.Step[0] = 40000 }, "in step 40000 of axis 0 does not fit int16"},
		{"count", 20, cp, func(in *Inst) { in.Dst.Num[0] = 65536 }, "out count 65536 of axis 0 is outside 1..65535"},
		{"count 0", 20, cp, func(in *Inst) { in.Dst.Num[0] = 0 }, "out count 0 of axis 0 is outside 1..65535"},
		{"equal", 20, cp, func(in *Inst) { in.Dst.Num[0] = 63 }, "in has 64 elements a partition, out 63"},
		{"absent", 20, cp, func(in *Inst) { in.Src = Desc{} }, "in has 0 axes"},
		{"start", 20, cp, func(in *Inst) { in.Src.Addr = SBAddr(32, 0) }, "in of 128 partitions cannot start at partition 32"},
		{"align", 20, cp, func(in *Inst) { in.Src.Addr++ }, "is not aligned to 4 for float32"},
		{"window", 20, cp, func(in *Inst) { in.Src.Addr = 0x2400000 }, "in address 0x2400000 is in neither SBUF"},
		{"walk", 20, cp, func(in *Inst) { in.Src.Addr = SBAddr(0, 196608-252) }, "in walks bytes 196356..196612 of its partition; SB has 0..196608"},
		{"walk down", 20, cp, func(in *Inst) { in.Src.Addr, in.Src.Step[0] = SBAddr(0, 0), -1 }, "in walks bytes -252..4"},
		{"cast", 20, cp, func(in *Inst) { in.DtDst = target.Int32 }, "a cast is tensor_copy_cast"},
		{"psum type", 30, cp, func(in *Inst) { in.Opcode, in.DtDst, in.Dst = OpTensorCopyCast, target.BFloat16, ps }, "out writes bfloat16 to PSUM"},
		{"idle member", 30, cp, func(in *Inst) { in.Negate = 1 }, "Negate is set, but the form has no such field on CoreV3"},
		{"idle desc", 30, cp, func(in *Inst) { in.Src1 = sb }, "Src1.Addr is set"},
		{"sync", 20, cp, func(in *Inst) {
			in.Sync = Sync{WaitMode: WaitGE, WaitSem: 3, UpdateMode: UpdateAdd, UpdateSem: 4, Value: 1}
		}, "both need the one sync value"},
		{"sync value", 20, cp, func(in *Inst) { in.Sync = Sync{UpdateMode: UpdateInc, UpdateSem: 4, Value: 1} }, "sync value 1 without a mode that takes one"},
		{"rank", 20, Inst{Opcode: OpMemset, DtDst: target.Float32, Parts: 1, Dst: Desc{Addr: SBAddr(0, 0), N: 2, Step: [4]int32{1, 9}, Num: [4]uint32{2, 2}}},
			func(in *Inst) {}, "out has more than 1 axes; merge axes or split the instruction"},
		{"flags", 20, mm, func(in *Inst) { in.Flags = 5 }, "flags 5 is not one of 0, 1, 2, 3, 4, 6"},
		{"N", 30, mm, func(in *Inst) { in.Src.Num[0] = 65 }, "moving has 65 elements a partition, want 64"},
		{"bank", 30, mm, func(in *Inst) { in.Dst.Addr += 2044 }, "psum spans banks 0..1; CoreV3 keeps a product in one"},
		{"rows", 30, mm, func(in *Inst) { in.RowGroup = 1 }, "128 rows do not fit row group 1 of 32"},
		{"moving space", 30, mm, func(in *Inst) { in.Src.Addr = PSUMAddr(0, 0, 0) }, "must be in SBUF"},
		{"psum space", 30, mm, func(in *Inst) { in.Dst.Addr = SBAddr(0, 0) }, "must be in PSUM"},
		{"fp32r", 30, mm, func(in *Inst) { in.DtSrc = target.Float32R }, "float32r is written as float32 with variant 2"},
		{"x4", 30, mm, func(in *Inst) { in.DtSrc = target.Float8E4M3FNx4 }, "packed type float8_e4m3fn_x4 needs the block-scaled forms"},
		{"generation", 30, Inst{Opcode: OpExponential}, func(in *Inst) {}, "exponential (0x30) does not exist on CoreV3"},
		{"named only", 30, Inst{Opcode: OpCustomOp}, func(in *Inst) {}, "has a name but no laid-out form"},
		{"gather partitions", 20, gt, func(in *Inst) { in.Count = 129 }, "index count 0 129 is outside 1..128"},
		{"gather columns", 20, gt, func(in *Inst) { in.Count1 = 2 }, "index count 1 2 is outside 1..1"},
		{"gather beyond 128", 20, gt, func(in *Inst) { in.Ptr = SBAddr(32, 0) }, "indices takes partitions 32..160 of 128"},
		{"gather into PSUM", 20, gt, func(in *Inst) { in.Imm0 = PSUMAddr(0, 0, 0) }, "must be in SBUF"},
		{"gather element", 20, gt, func(in *Inst) { in.Count2 = 3 }, "element bytes 3 is not one of 1, 2, 4, 8"},
		{"gather index type", 20, gt, func(in *Inst) { in.DtSrc = target.Int64 }, "indices are int64; int32 and uint32"},
		{"gather row", 20, gt, func(in *Inst) { in.Imm1 = 50000 }, "data takes bytes 16384..216384 of its partition; SB has 0..196608"},
		{"gather alignment", 30, gt, func(in *Inst) { in.Imm0 += 2 }, "data address 0x4002 is not aligned to 4"},
		{"gather from nothing", 30, gt, func(in *Inst) { in.Imm2 = 0 }, "data count 1 0 is outside 1..2147483647"},
		{"name", 30, Inst{Opcode: OpDMATrigger}, func(in *Inst) { in.SetName(strings.Repeat("q", 33)) }, "is longer than 31 bytes"},
		{"empty name", 30, Inst{Opcode: OpDMATrigger}, func(in *Inst) {}, "queue is empty"},
		{"alpha", 30, Inst{Opcode: OpActivate, Func: target.ActExp, DtSrc: target.Float32, DtSrc1: target.Float32, DtDst: target.Float32, Parts: 1, Src: sb, Dst: sb},
			func(in *Inst) { in.Imm2Src = 1 }, "alpha is set, but Exp does not read it"},
		{"quadrant", 40, Inst{Opcode: OpActivate, Func: target.ActExp, DtSrc: target.Float32, DtSrc1: target.Float32, DtDst: target.Float32, Parts: 1, Src: sb, Dst: sb},
			func(in *Inst) { in.Imm1 = SBAddr(64, 0) }, "scalar 1 points into quadrant 2, the operand it goes with is in 0"},
		{"bits", 20, Inst{Opcode: OpTensorScalar, Op0: target.AluBitAnd, DtSrc: target.Int32, DtDst: target.Int32, Parts: 1, Src: sb, Dst: sb},
			func(in *Inst) {}, "bitwise_and is of the other class"},
		{"axes", 20, Inst{Opcode: OpTensorReduce, DtSrc: target.Float32, DtDst: target.Float32, Parts: 1, Src: sb, Dst: Pack(Desc{Addr: sb.Addr})},
			func(in *Inst) {}, "0 innermost axes times 1 results is 1 elements, in has 64"},
	} {
		in := c.base
		c.edit(&in)
		var b Bundle
		err := Encode(c.level, &in, &b)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if cl := target.ClassOf(err); err != nil && cl != target.Limit && cl != target.Unsupported {
			t.Errorf("%s: class %s", c.name, cl)
		}
	}
	var b Bundle
	for _, ok := range []Inst{cp, mm} {
		if err := Encode(30, &ok, &b); err != nil {
			t.Errorf("the base of the error cases does not encode: %v", err)
		}
	}
}

// TestNonCanonical pins the values that come back as a sibling.
func TestNonCanonical(t *testing.T) {
	sb := Desc{Addr: SBAddr(0, 0), N: 1, Step: [4]int32{1}, Num: [4]uint32{4}}
	in := Inst{Opcode: OpActivate, Func: target.ActRelu, DtSrc: target.Float8E4, DtSrc1: target.Float32, DtDst: target.Float8E8M0,
		Parts: 1, Src: Desc{Addr: 0, N: 3, Step: [4]int32{7, 1, 3}, Num: [4]uint32{1, 4, 1}}, Dst: sb}
	var b Bundle
	if err := Encode(30, &in, &b); err != nil {
		t.Fatal(err)
	}
	var back Inst
	if err := Decode(30, &b, &back); err != nil {
		t.Fatal(err)
	}
	want := in
	want.Acc, want.DtSrc, want.DtDst, want.Src = target.AccZeroAccumulate, target.Float8E4M3FN, target.Uint8, sb
	if back != want {
		t.Errorf("got  %+v\nwant %+v", back, want)
	}
}

func FuzzDecode(f *testing.F) {
	for g := range gens {
		for op := 0; op < 256; op++ {
			if index[g][op] == nil {
				continue
			}
			in := rapid.Custom(func(t *rapid.T) Inst { return drawInst(t, g, Opcode(op)) }).Example(op)
			var b Bundle
			if err := Encode(gens[g].Level, &in, &b); err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(g), b[:])
		}
	}
	f.Fuzz(func(t *testing.T, g uint8, data []byte) {
		if len(data) != BundleSize {
			return
		}
		checkDecode(t, gens[g%3].Level, Bundle(data))
	})
}

// checkDecode: Decode and Disasm never panic, and what decodes encodes to the same bytes.
func checkDecode(t *testing.T, level int, b Bundle) {
	var in Inst
	Disasm(level, &b, nil)
	if Decode(level, &b, &in) != nil {
		return
	}
	var again Bundle
	if err := Encode(level, &in, &again); err != nil {
		t.Fatalf("%x decodes to %+v, which does not encode: %v", b, in, err)
	}
	if again != b {
		t.Fatalf("decoded and encoded again:\n%x\n%x", b, again)
	}
}

// TestFuzzSmoke mutates legal bundles, a byte or two at a time, as the fuzzer would.
func TestFuzzSmoke(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.IntRange(0, 2).Draw(t, "g")
		var ops []Opcode
		for op := range index[g] {
			if index[g][op] != nil {
				ops = append(ops, Opcode(op))
			}
		}
		in := drawInst(t, g, rapid.SampledFrom(ops).Draw(t, "op"))
		var b Bundle
		if err := Encode(gens[g].Level, &in, &b); err != nil {
			t.Fatal(err)
		}
		for i := rapid.IntRange(1, 3).Draw(t, "edits"); i > 0; i-- {
			b[rapid.IntRange(0, 63).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		var back Inst
		if Decode(gens[g].Level, &b, &back) == nil {
			var again Bundle
			if err := Encode(gens[g].Level, &back, &again); err != nil || again != b {
				t.Fatalf("%x: %v, again %x", b, err, again)
			}
		}
	})
}

// mix is a stream as a matmul-heavy program has it.
func mix(tb testing.TB) []Inst {
	d := func(addr uint32, n uint32) Desc {
		return Desc{Addr: addr, N: 2, Step: [4]int32{1, 64}, Num: [4]uint32{32, n}}
	}
	f32, bf := target.Float32, target.BFloat16
	lw := Desc{Addr: SBAddr(0, 0x4000), N: 1, Step: [4]int32{1}, Num: [4]uint32{128}}
	ins := []Inst{
		{Opcode: OpLoadWeights, DtSrc: bf, Rows: 128, Cols: 128, RowGroup: 15, ColGroup: 15, Src: lw},
		{Opcode: OpMatmul, DtSrc: bf, DtDst: f32, Rows: 128, Cols: 128, RowGroup: 15, ColGroup: 15, Flags: 3,
			Src: d(SBAddr(0, 0x8000), 8), Dst: Desc{Addr: PSUMAddr(0, 1, 0), N: 1, Step: [4]int32{1}, Num: [4]uint32{256}}},
		{Opcode: OpActivate, Func: target.ActRelu, DtSrc: f32, DtSrc1: f32, DtDst: f32, Acc: target.AccZeroAccumulate, Parts: 128,
			Imm0Src: 1, Imm0: 0x3F800000, Imm1: SBAddr(0, 64), Src: d(SBAddr(0, 0), 4), Dst: d(SBAddr(0, 0x10000), 4),
			Sync: Sync{WaitMode: WaitGE, WaitSem: 5, Value: 7, UpdateMode: UpdateInc, UpdateSem: 4}},
		{Opcode: OpTensorTensor, Op0: target.AluAdd, DtSrc: f32, DtSrc1: f32, DtDst: f32, Parts: 128,
			Src: d(SBAddr(0, 0), 4), Src1: d(SBAddr(0, 0x8000), 4), Dst: d(SBAddr(0, 0x10000), 4)},
	}
	trig := Inst{Opcode: OpDMATrigger, Block: 77, Sync: Sync{WaitMode: WaitGE, WaitSem: 6, Value: 9}}
	trig.SetName("qSPld")
	return append(ins, trig)
}

func TestNoAllocs(t *testing.T) {
	ins := mix(t)
	var b Bundle
	var in Inst
	line := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() {
		for i := range ins {
			if err := Encode(30, &ins[i], &b); err != nil {
				t.Fatal(err)
			}
			if err := Decode(30, &b, &in); err != nil {
				t.Fatal(err)
			}
			line = Disasm(30, &b, line[:0])
		}
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

func BenchmarkEncode(b *testing.B) {
	ins := mix(b)
	var out Bundle
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := Encode(30, &ins[i%len(ins)], &out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "bundles/s")
}

func BenchmarkDecode(b *testing.B) {
	ins := mix(b)
	bs := make([]Bundle, len(ins))
	for i := range ins {
		if err := Encode(30, &ins[i], &bs[i]); err != nil {
			b.Fatal(err)
		}
	}
	var in Inst
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := Decode(30, &bs[i%len(bs)], &in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "bundles/s")
}
