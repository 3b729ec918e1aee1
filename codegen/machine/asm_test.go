package machine

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// asm assembles packages bundle by bundle, from the documented forms alone.
type asm struct {
	tb    testing.TB
	level int
	gen   *target.Generation
	p     *neff.Package
	next  [5]uint32 // next block id
}

const (
	pool = iota
	act
	pe
	dve
	sp
)

func newAsm(tb testing.TB, level int) *asm {
	g, _ := target.ByLevel(level)
	a := &asm{tb: tb, level: level, gen: g,
		p: &neff.Package{Header: neff.NewHeader("test", "test", 0), Level: level, Def: neff.NewDef(g)}}
	for e, id := range target.Sequencers {
		a.p.Def.Queues = append(a.p.Def.Queues, neff.Queue{Name: "q" + id.String(), Type: neff.QueueData, NumQueues: 4, Owner: id})
		a.next[e] = 1
	}
	return a
}

// variable adds a DRAM variable and, for inputs and outputs, its line in the tensor map; it returns the row.
func (a *asm) variable(name string, t neff.VarType, size int) uint32 {
	row := uint32(len(a.p.Def.Vars))
	a.p.Def.Vars = append(a.p.Def.Vars, neff.Var{Name: name, Type: t, ID: row, Size: int64(size)})
	x := neff.Tensor{Name: name, Dtype: "uint8", Shape: []int64{int64(size)}, Size: int64(size)}
	switch t {
	case neff.VarInput:
		a.p.Tensors.Inputs = append(a.p.Tensors.Inputs, x)
	case neff.VarOutput:
		a.p.Tensors.Outputs = append(a.p.Tensors.Outputs, x)
	}
	return row
}

func (a *asm) emit(e int, in isa.Inst) {
	a.tb.Helper()
	var b isa.Bundle
	if err := isa.Encode(a.level, &in, &b); err != nil {
		a.tb.Fatal(err)
	}
	a.p.Engines[e].Stream = append(a.p.Engines[e].Stream, b[:]...)
}

func waitGE(sem uint8, v uint32) isa.Sync {
	return isa.Sync{WaitMode: isa.WaitGE, WaitSem: sem, Value: v}
}

func inc(s isa.Sync, sem uint8) isa.Sync {
	s.UpdateMode, s.UpdateSem = isa.UpdateInc, sem
	return s
}

// wait emits an EventSemaphore with one or two waits.
func (a *asm) wait(e int, sem uint8, v uint32, more ...uint32) {
	in := isa.Inst{Opcode: isa.OpEventSemaphore, Sync: waitGE(sem, v)}
	if len(more) == 2 {
		in.Wait1Mode, in.Wait1Sem, in.Wait1Value = isa.WaitGE, uint8(more[0]), more[1]
	}
	a.emit(e, in)
}

// sbSide is a tile [parts, bytes] of SBUF or PSUM at a global address; dram one of rows, pitch bytes apart.
func (a *asm) sbSide(addr uint32, parts, bytes int) neff.Side {
	s := neff.Side{Var: 1, Off: int64(addr), N: 2, Size: [4]uint32{uint32(bytes), uint32(parts)}, Step: [4]int64{1, target.SBPartitionPitch}}
	if addr >= target.PSUMBase {
		s.Var, s.Step[1] = 2, target.PSUMPartitionPitch
	}
	return s
}

func dram(row uint32, off, rows, bytes, pitch int) neff.Side {
	return neff.Side{Var: row, Off: int64(off), N: 2, Size: [4]uint32{uint32(bytes), uint32(rows)}, Step: [4]int64{1, int64(pitch)}}
}

// dma emits a trigger of a block that copies from one side to the other, split along the outer axis into as many parts as
// the queue set has queues (4), each adding 1 to sem.
func (a *asm) dma(e int, sync isa.Sync, sem uint8, from, to neff.Side) {
	a.tb.Helper()
	id := a.next[e]
	a.next[e]++
	in := isa.Inst{Opcode: isa.OpDMATrigger, Block: id, Sync: sync}
	in.SetName("q" + target.Sequencers[e].String())
	a.emit(e, in)
	d := neff.Desc{ID: id, Queue: uint32(e + 1), From: from, To: to}
	n := from.Size[1]
	if n%4 != 0 || n != to.Size[1] {
		d.Sem, d.SemInc = sem, 4
		a.p.Engines[e].Descs = append(a.p.Engines[e].Descs, d)
		return
	}
	for i := range uint32(4) {
		d := d
		d.From.Size[1], d.To.Size[1] = n/4, n/4
		d.From.Off += int64(i*n/4) * from.Step[1]
		d.To.Off += int64(i*n/4) * to.Step[1]
		d.Sem, d.SemInc = sem, 1
		a.p.Engines[e].Descs = append(a.p.Engines[e].Descs, d)
	}
}

func desc(addr uint32, n int) isa.Desc {
	d := isa.Desc{Addr: addr, N: 1}
	d.Step[0], d.Num[0] = 1, uint32(n)
	return d
}

// matmul emits one product of float32 operands, two passes.
func (a *asm) matmul(first, last isa.Sync, psum, moving, weights uint32, k, m, n int, accumulate bool) {
	lo := isa.Inst{Opcode: isa.OpLoadWeights, Sync: first, Src: desc(weights, m), DtSrc: target.Float32, Variant: isa.VariantFP32Lo,
		Rows: uint8(k), Cols: uint8(m), RowGroup: 15, ColGroup: 15}
	hi := lo
	hi.Variant, hi.Sync = isa.VariantFP32Hi, isa.Sync{}
	mm := isa.Inst{Opcode: isa.OpMatmul, Src: desc(moving, n), Dst: desc(psum, n), DtSrc: target.Float32, DtDst: target.Float32,
		Rows: uint8(k), Cols: uint8(m), RowGroup: 15, ColGroup: 15, Flags: isa.FlagStart}
	if accumulate {
		mm.Flags = isa.FlagAccumulate
	}
	second := mm
	second.Flags, second.Sync = isa.FlagAccumulate|isa.FlagStop, last
	a.emit(pe, lo)
	a.emit(pe, mm)
	a.emit(pe, hi)
	a.emit(pe, second)
}

func (a *asm) activate(sync isa.Sync, f target.ActFunc, dst, src uint32, parts, n int) {
	a.emit(act, isa.Inst{Opcode: isa.OpActivate, Sync: sync, Src: desc(src, n), Dst: desc(dst, n), DtSrc: target.Float32, DtSrc1: target.Float32,
		DtDst: target.Float32, Parts: uint8(parts), Func: f, Acc: target.AccZeroAccumulate,
		Imm0Src: isa.SrcInline, Imm0: math.Float32bits(1), Imm1Src: isa.SrcInline})
}

func (a *asm) add(e int, sync isa.Sync, dst, x, y uint32, parts, n int) {
	a.emit(e, isa.Inst{Opcode: isa.OpTensorTensor, Sync: sync, Op0: target.AluAdd, Src: desc(x, n), Src1: desc(y, n), Dst: desc(dst, n),
		DtSrc: target.Float32, DtSrc1: target.Float32, DtDst: target.Float32, Parts: uint8(parts)})
}

// reread writes the package and reads it back, so that a test runs what a file says.
func (a *asm) reread() *neff.Package {
	a.tb.Helper()
	var buf neff.Buffer
	if _, err := a.p.Write(&buf, true); err != nil {
		a.tb.Fatal(err)
	}
	p, err := neff.ReadBytes(buf.Bytes(), nil)
	if err != nil {
		a.tb.Fatal(err)
	}
	return p
}

func (a *asm) machine(inputs map[string][]byte) *Machine {
	a.tb.Helper()
	m, err := New(a.gen)
	if err != nil {
		a.tb.Fatal(err)
	}
	if err := m.Load(a.reread()); err != nil {
		a.tb.Fatal(err)
	}
	for name, b := range inputs {
		if err := m.SetInput(name, b); err != nil {
			a.tb.Fatal(err)
		}
	}
	return m
}

func floats(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}

func bytesOf(x []float32) []byte {
	var b []byte
	for _, f := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

func floatsOf(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}

// Where the example keeps its tiles.
var (
	sbA = isa.SBAddr(0, 0x5000)
	sbB = isa.SBAddr(0, 0x6000)
	sbY = isa.SBAddr(0, 0x7000)
	psY = isa.PSUMAddr(0, 2, 0)
)

const (
	semAct, semPE, semDVE, semSP = 4, 5, 6, 7
	semA, semB, semY             = 16, 17, 18
	exN                          = 64
)

// example is y = relu(AᵀB) with A [128,128] and B [128,64]: two loads, a product, an activation, a save. change edits the
// program on the way; its name is the bundle it comes before.
func example(tb testing.TB, level int, change map[string]func(a *asm, in *isa.Sync)) *asm {
	a := newAsm(tb, level)
	va, vb := a.variable("A", neff.VarInput, 128*128*4), a.variable("B", neff.VarInput, 128*exN*4)
	vy := a.variable("y", neff.VarOutput, 128*exN*4)
	do := func(name string, s isa.Sync) isa.Sync {
		if f := change[name]; f != nil {
			f(a, &s)
		}
		return s
	}
	a.dma(sp, do("load A", isa.Sync{}), semA, dram(va, 0, 128, 512, 512), a.sbSide(sbA, 128, 512))
	a.dma(sp, do("load B", isa.Sync{}), semB, dram(vb, 0, 128, 4*exN, 4*exN), a.sbSide(sbB, 128, 4*exN))
	s := do("wait A", waitGE(semA, 4))
	if s.WaitMode != 0 {
		a.wait(pe, s.WaitSem, s.Value)
	}
	a.matmul(do("matmul", waitGE(semB, 4)), do("last matmul", inc(isa.Sync{}, semPE)), psY, sbB, sbA, 128, 128, exN, false)
	a.activate(do("relu", inc(waitGE(semPE, 1), semAct)), target.ActRelu, sbY, psY, 128, exN)
	a.dma(act, do("save", isa.Sync{}), semY, a.sbSide(sbY, 128, 4*exN), dram(vy, 0, 128, 4*exN, 4*exN))
	return a
}

func exampleInputs() (x, y []float32, in map[string][]byte) {
	x, y = floats(128*128, 1), floats(128*exN, 2)
	return x, y, map[string][]byte{"A": bytesOf(x), "B": bytesOf(y)}
}
