package machine

import (
	"bytes"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// The machine is an oracle of its own: it may not reach the IR or anything that makes packages out of it.
func TestIndependence(t *testing.T) {
	const module = "github.com/rosmar-compiler/rosmar/"
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	allowed := map[string]bool{"codegen/machine": true, "codegen/isa": true, "codegen/neff": true, "ir/kernel": true, "ir/target": true}
	for _, line := range strings.Fields(string(out)) {
		if p, ours := strings.CutPrefix(line, module); ours && !allowed[p] {
			t.Errorf("codegen/machine depends on %s", p)
		}
	}
}

func TestExample(t *testing.T) {
	for _, level := range []int{20, 30, 40} {
		x, y, in := exampleInputs()
		m := example(t, level, nil).machine(in)
		var first []byte
		for seed := range uint64(20) {
			if err := m.Run(seed); err != nil {
				t.Fatalf("level %d, seed %d: %v", level, seed, err)
			}
			out := m.Output("y")
			if seed == 0 {
				first = bytes.Clone(out)
				for i, got := range floatsOf(out) {
					row, col := i/exN, i%exN
					want := 0.0
					for k := range 128 {
						want += float64(x[k*128+row]) * float64(y[k*exN+col])
					}
					if want = max(want, 0); math.Abs(float64(got)-want) > 1e-4 {
						t.Fatalf("y[%d,%d] = %v, want %v", row, col, got, want)
					}
				}
			}
			if !bytes.Equal(out, first) {
				t.Fatalf("level %d: seeds 0 and %d give different bits", level, seed)
			}
		}
		s := m.Stats()
		if s.MACs != 2*128*128*exN || s.Transfers != 3 || s.DMABytes != 128*(512+2*4*exN) || s.Bundles != [5]int64{0, 2, 5, 0, 2} {
			t.Errorf("%+v", s)
		}
	}
}

func TestTargetRefused(t *testing.T) {
	p := example(t, 20, nil).reread()
	g, _ := target.Lookup("trn2")
	m, err := New(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(p); err == nil || !strings.Contains(err.Error(), "trn1") || !strings.Contains(err.Error(), "trn2") {
		t.Errorf("a trn1 package on a trn2 machine: %v", err)
	}
	if err := m.Run(1); err == nil {
		t.Error("a machine without a package runs")
	}
	if g, _ := target.Lookup("inf1"); true {
		if _, err := New(g); target.ClassOf(err) != target.Unsupported {
			t.Errorf("an inf1 machine: %v", err)
		}
	}
}

// fails runs some seeds and wants at least one to fail with all the words in its message.
func fails(t *testing.T, m *Machine, words ...string) {
	t.Helper()
	var last error
	for seed := range uint64(24) {
		if err := m.Run(seed); err != nil {
			last = err
			ok := true
			for _, w := range words {
				ok = ok && strings.Contains(err.Error(), w)
			}
			if ok {
				return
			}
		}
	}
	t.Errorf("no seed fails with %q; last: %v", words, last)
}

func TestDroppedWaits(t *testing.T) {
	_, _, in := exampleInputs()
	drop := func(a *asm, s *isa.Sync) { s.WaitMode, s.WaitSem, s.Value = 0, 0, 0 }
	for _, c := range []struct{ name, want string }{{"wait A", "nothing wrote"}, {"matmul", "nothing wrote"}, {"relu", "nothing wrote"}} {
		a := example(t, 30, map[string]func(*asm, *isa.Sync){c.name: drop})
		fails(t, a.machine(in), c.want)
	}
	// One of four parts may be late.
	a := example(t, 30, map[string]func(*asm, *isa.Sync){"wait A": func(a *asm, s *isa.Sync) { s.Value-- }})
	fails(t, a.machine(in), "in reads SBUF partition", "PE 1: load_weights")
}

func TestDeadlock(t *testing.T) {
	_, _, in := exampleInputs()
	a := example(t, 30, map[string]func(*asm, *isa.Sync){"relu": func(a *asm, s *isa.Sync) { s.Value = 2 }})
	fails(t, a.machine(in), "deadlock", "Activation 0: activate", "waits for semaphore 5 >= 2; it is 1")
}

func TestFlagsChangeNumbers(t *testing.T) {
	_, _, in := exampleInputs()
	run := func(flip uint8) []byte {
		a := newAsm(t, 30)
		va, vb := a.variable("A", neff.VarInput, 128*128*4), a.variable("B", neff.VarInput, 128*exN*4)
		vy := a.variable("y", neff.VarOutput, 128*exN*4)
		a.dma(sp, isa.Sync{}, semA, dram(va, 0, 128, 512, 512), a.sbSide(sbA, 128, 512))
		a.dma(sp, isa.Sync{}, semB, dram(vb, 0, 128, 4*exN, 4*exN), a.sbSide(sbB, 128, 4*exN))
		a.wait(pe, semA, 4)
		a.matmul(waitGE(semB, 4), isa.Sync{}, psY, sbB, sbA, 128, 128, exN, false)
		a.matmul(isa.Sync{}, inc(isa.Sync{}, semPE), psY, sbB, sbA, 128, 128, exN, true)
		if flip != 0 {
			b := a.p.Engines[pe].Stream[6*isa.BundleSize:] // the second product's first multiply
			b[0x2B] ^= flip
		}
		a.activate(waitGE(semPE, 1), target.ActIdentity, sbY, psY, 128, exN)
		a.dma(act, isa.Sync{}, semY, a.sbSide(sbY, 128, 4*exN), dram(vy, 0, 128, 4*exN, 4*exN))
		m := a.machine(in)
		if err := m.Run(3); err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(m.Output("y"))
	}
	plain, flipped := floatsOf(run(0)), floatsOf(run(isa.FlagAccumulate|isa.FlagStart))
	for i := range plain {
		if d := math.Abs(float64(plain[i]) - 2*float64(flipped[i])); d > 1e-3*math.Abs(float64(plain[i]))+1e-4 {
			t.Fatalf("element %d: %v accumulated, %v overwritten", i, plain[i], flipped[i])
		}
	}
}

// one runs a program of one engine's bundles, after a tile [128, 64] of ones at sbA and one of twos at sbB.
func one(t *testing.T, level, e int, build func(a *asm)) error {
	t.Helper()
	a := newAsm(t, level)
	for i, addr := range []uint32{sbA, sbB} {
		a.emit(dve, isa.Inst{Opcode: isa.OpMemset, Dst: desc(addr, 64), DtDst: target.Float32, Parts: 128, Imm0: math.Float32bits(float32(1 + i))})
	}
	a.emit(dve, isa.Inst{Opcode: isa.OpNoOp, Sync: inc(isa.Sync{}, semDVE)})
	a.wait(e, semDVE, 1)
	build(a)
	return a.machine(nil).Run(1)
}

func wantError(t *testing.T, err error, class target.Class, words ...string) {
	t.Helper()
	if err == nil || target.ClassOf(err) != class {
		t.Errorf("error %v of class %v, want class %v with %q", err, target.ClassOf(err), class, words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q lacks %q", err, w)
		}
	}
}

func TestTrap(t *testing.T) {
	exp := func(a *asm) { a.activate(isa.Sync{}, target.ActExp, sbY, sbA, 128, 64) }
	table := func(a *asm, set uint8) { a.emit(act, isa.Inst{Opcode: isa.OpLoadActFuncSet, Set: set}) }
	wantError(t, one(t, 30, act, exp), target.User, "Activation 1: activate", "Exp needs table set 1", "set 0 is resident")
	wantError(t, one(t, 30, act, func(a *asm) { table(a, 1); table(a, 2); exp(a) }), target.User, "set 2 is resident")
	if err := one(t, 30, act, func(a *asm) { table(a, 1); exp(a) }); err != nil {
		t.Error(err)
	}
}

func TestRefusedBundles(t *testing.T) {
	wantError(t, one(t, 30, dve, func(a *asm) {
		a.emit(dve, isa.Inst{Opcode: isa.OpMemsetRandom, Dst: desc(sbY, 4), DtDst: target.Float32, Parts: 128})
	}), target.Unsupported, "DVE 4: memset_random", "not simulated")
	wantError(t, one(t, 30, sp, func(a *asm) { a.add(sp, isa.Sync{}, sbY, sbA, sbB, 128, 64) }), target.User, "does not run on SP")
	wantError(t, one(t, 30, dve, func(a *asm) { a.add(dve, isa.Sync{}, sbY, sbA, sbB, 128, 65) }), target.User,
		"in reads SBUF partition 0, byte 20736", "nothing wrote")
	wantError(t, one(t, 30, pe, func(a *asm) {
		a.emit(pe, isa.Inst{Opcode: isa.OpMatmul, Src: desc(sbA, 64), Dst: desc(psY, 64), DtSrc: target.Float32, DtDst: target.Float32,
			Rows: 128, Cols: 128, RowGroup: 15, ColGroup: 15, Flags: 3})
	}), target.User, "no weights are resident")
	wantError(t, one(t, 30, dve, func(a *asm) {
		a.emit(dve, isa.Inst{Opcode: isa.OpStreamTranspose, Dst: desc(sbY, 32), DtDst: target.Float32, Parts: 32})
	}), target.User, "there is no stream_load before it")
	wantError(t, one(t, 30, dve, func(a *asm) {
		d := desc(isa.RegAddr(3), 64)
		a.emit(dve, isa.Inst{Opcode: isa.OpRegisterMove, Mode: 1, Imm0Src: 1, RegDst: 3, DtDst: target.Uint32, Imm64: 0x3FFF0})
		a.emit(dve, isa.Inst{Opcode: isa.OpMemset, Dst: d, DtDst: target.Float32, Parts: 128})
	}), target.User, "out covers")
	wantError(t, one(t, 30, pe, func(a *asm) {
		a.emit(pe, isa.Inst{Opcode: isa.OpLoadWeights, Src: desc(isa.SBAddr(32, 0x5000), 32), DtSrc: target.Float32, Variant: isa.VariantFP32Hi,
			Rows: 32, Cols: 32, RowGroup: 1, ColGroup: 15})
	}), target.User, "group code 1 covers 0 to 32")
}

func TestOutputNotWritten(t *testing.T) {
	a := example(t, 30, nil)
	a.variable("z", neff.VarOutput, 16)
	_, _, in := exampleInputs()
	fails(t, a.machine(in), "without writing byte 0 of output \"z\"")
}

func TestBranches(t *testing.T) {
	// r1 counts to 5; the body runs each time; then a tile is filled with the count.
	loop := func(limit uint32, body isa.Inst) func(a *asm) {
		return func(a *asm) {
			a.emit(dve, isa.Inst{Opcode: isa.OpRegisterMove, Mode: 1, Imm0Src: 1, RegDst: 1, DtDst: target.Int32})
			a.emit(dve, body)
			a.emit(dve, isa.Inst{Opcode: isa.OpRegisterAlu, Op0: target.AluAdd, DtSrc: target.Int32, DtSrc1: target.Int32, Imm0Src: 1, RegA: 1, RegDst: 1, Imm64: 1})
			a.emit(dve, isa.Inst{Opcode: isa.OpBranch, Cmp: isa.CmpLTImm, DtSrc: target.Int32, RegA: 1, Base: int32(limit), Target: 5})
		}
	}
	scale := isa.Inst{Opcode: isa.OpTensorScalar, Op0: target.AluMult, Src: desc(sbB, 64), Dst: desc(sbB, 64), DtSrc: target.Float32, DtDst: target.Float32,
		Parts: 128, Imm0Src: isa.SrcInline, Imm0: math.Float32bits(2), Imm1Src: isa.SrcInline}
	a := newAsm(t, 30)
	vy := a.variable("y", neff.VarOutput, 128*256)
	a.emit(dve, isa.Inst{Opcode: isa.OpMemset, Dst: desc(sbB, 64), DtDst: target.Float32, Parts: 128, Imm0: math.Float32bits(1)})
	a.emit(dve, isa.Inst{Opcode: isa.OpNoOp})
	a.emit(dve, isa.Inst{Opcode: isa.OpNoOp})
	a.emit(dve, isa.Inst{Opcode: isa.OpNoOp})
	loop(5, scale)(a)
	a.emit(dve, isa.Inst{Opcode: isa.OpNoOp, Sync: inc(isa.Sync{}, semDVE)})
	a.dma(sp, waitGE(semDVE, 1), semY, a.sbSide(sbB, 128, 256), dram(vy, 0, 128, 256, 256))
	m := a.machine(nil)
	if err := m.Run(5); err != nil {
		t.Fatal(err)
	}
	for i, x := range floatsOf(m.Output("y")) {
		if x != 32 {
			t.Fatalf("element %d is %v, want 32", i, x)
		}
	}
	// A loop without an end meets the step limit.
	a = newAsm(t, 30)
	a.emit(sp, isa.Inst{Opcode: isa.OpBranch, DtSrc: target.Int32})
	m = a.machine(nil)
	m.MaxSteps = 10_000
	wantError(t, m.Run(0), target.Limit, "more than 10000 steps")
}

func TestSemaphoresAndBarriers(t *testing.T) {
	a := newAsm(t, 30)
	for e := range 5 {
		for round := range uint32(3) {
			a.emit(e, isa.Inst{Opcode: isa.OpDrain})
			a.emit(e, isa.Inst{Opcode: isa.OpBarrier, Sync: inc(waitGE(8, 5*(round+1)), 8)})
		}
	}
	// An event is cleared by the wait; two waits and an update with values of their own.
	a.emit(sp, isa.Inst{Opcode: isa.OpNoOp, Sync: isa.Sync{UpdateMode: isa.UpdateEvent, UpdateSem: 200}})
	a.emit(pe, isa.Inst{Opcode: isa.OpNoOp, Sync: isa.Sync{WaitMode: isa.WaitEvent, WaitSem: 200}})
	a.emit(pe, isa.Inst{Opcode: isa.OpEventSemaphore, Sync: isa.Sync{WaitMode: isa.WaitGE, WaitSem: 8, Value: 15, UpdateMode: isa.UpdateAdd, UpdateSem: 9},
		Wait1Mode: isa.WaitGE, Wait1Sem: 10, Wait1Value: 7, UpdateValue: 3})
	a.emit(dve, isa.Inst{Opcode: isa.OpNoOp, Sync: isa.Sync{UpdateMode: isa.UpdateWrite, UpdateSem: 10, Value: 9}})
	a.emit(dve, isa.Inst{Opcode: isa.OpNoOp, Sync: isa.Sync{UpdateMode: isa.UpdateSub, UpdateSem: 10, Value: 1}})
	a.emit(dve, isa.Inst{Opcode: isa.OpNoOp, Sync: isa.Sync{UpdateMode: isa.UpdateDec, UpdateSem: 10}})
	a.emit(dve, isa.Inst{Opcode: isa.OpHalt})
	a.emit(dve, isa.Inst{Opcode: isa.OpNoOp, Sync: inc(isa.Sync{}, 11)}) // never reached
	m := a.machine(nil)
	for seed := range uint64(12) {
		if err := m.Run(seed); err != nil {
			t.Fatal(err)
		}
		if m.sems[8] != 15 || m.sems[9] != 3 || m.sems[10] != 7 || m.sems[11] != 0 || m.events[200] {
			t.Errorf("seed %d: semaphores %d, event %v", seed, m.sems[8:12], m.events[200])
		}
	}
}

func TestInputs(t *testing.T) {
	m := example(t, 30, nil).machine(nil)
	wantError(t, m.Run(0), target.User, "no data for input \"A\"")
	wantError(t, m.SetInput("A", make([]byte, 3)), target.User, "takes 65536 bytes, got 3")
	wantError(t, m.SetInput("y", nil), target.User, "no input \"y\"")
	if m.Output("y") != nil {
		t.Error("an output before any run")
	}
}

// Constants come from the package or from the callback, and are never written.
func TestConstants(t *testing.T) {
	a := newAsm(t, 30)
	a.p.Def.Vars = append(a.p.Def.Vars, neff.Var{Name: "c", ID: 3}, neff.Var{Name: "w", ID: 4, Type: neff.VarFile, Size: 256})
	if err := a.p.AddConst(&a.p.Def.Vars[3], neff.Array{Descr: "<f4", Shape: []int64{64}, Data: bytesOf(floats(64, 7))}); err != nil {
		t.Fatal(err)
	}
	a.p.Weights = []neff.Weight{{Var: "w", Tensor: "model.w", Shape: []int64{64}, Dtype: "float32"}}
	vy := a.variable("y", neff.VarOutput, 512)
	a.dma(sp, isa.Sync{}, semA, dram(3, 0, 4, 64, 64), dram(vy, 0, 4, 64, 64))
	a.dma(sp, isa.Sync{}, semB, dram(4, 0, 4, 64, 64), dram(vy, 256, 4, 64, 64))
	m, _ := New(a.gen)
	p := a.reread()
	wantError(t, m.Load(p), target.User, "constant \"w\"", "model.w")
	w := bytesOf(floats(64, 8))
	m.Weights(func(x *neff.Weight, v *neff.Var) ([]byte, error) {
		if x.Tensor != "model.w" || v.Size != 256 {
			t.Errorf("asked for %+v", x)
		}
		return w, nil
	})
	if err := m.Load(p); err != nil {
		t.Fatal(err)
	}
	if err := m.Run(2); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.Output("y"), append(bytesOf(floats(64, 7)), w...)) {
		t.Error("wrong bytes")
	}
}
