package lower

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/dma"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"github.com/rosmar-compiler/rosmar/ssa/deps"
	"github.com/rosmar-compiler/rosmar/ssa/sched"
)

// prog builds small placed programs and takes them through the tail.
type prog struct {
	m       ir.Module
	b       ir.Builder
	deps    deps.Workspace
	sched   sched.Workspace
	dma     dma.Workspace
	sync    SyncSpace
	edits   ir.Edits
	enc     Tail
	file    neff.Buffer
	sb      []ir.Loc
	psum    []ir.Loc
	in, out ir.Loc
}

const rows = 64 // tiles of the DRAM tensors

func (p *prog) init(level, tiles int) {
	m := &p.m
	m.Reset()
	m.Gen, _ = target.ByLevel(level)
	m.Name = m.Names.Intern("test")
	p.b.NewFunc(m, "f", "Block1")
	p.sb, p.psum = p.sb[:0], p.psum[:0]
	for k := range tiles {
		l := p.b.SB(m.Names.Intern(fmt.Sprintf("s%d", k)), target.Float32, 128, 128)
		m.Locs.At(l).Flags |= ir.LocAllocated
		m.Locs.At(l).Addr = int64(m.Gen.SBReserved + 512*k)
		p.sb = append(p.sb, l)
	}
	for k := range 4 {
		l := p.b.PSUM(m.Names.Intern(fmt.Sprintf("p%d", k)), target.Float32, 128, 128)
		m.Locs.At(l).Flags |= ir.LocAllocated
		m.Locs.At(l).Bank = int8(k)
		p.psum = append(p.psum, l)
	}
	p.in = p.b.DRAM(m.Names.Intern("in"), ir.KindExternalInput, target.Float32, rows, 128, 128)
	p.out = p.b.DRAM(m.Names.Intern("out"), ir.KindExternalOutput, target.Float32, rows, 128, 128)
}

func (p *prog) tile(l ir.Loc) ir.Arg {
	return p.b.Chip(l, target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: 128})
}

func (p *prog) mem(l ir.Loc, k int) ir.Arg {
	return p.b.Mem(l, target.Float32, int64(k%rows)*128*128, ir.Pair{Step: 128, Num: 128}, ir.Pair{Step: 1, Num: 128})
}

func (p *prog) load(dst ir.Loc, k int) ir.Inst {
	return p.b.Emit(ir.OpLoad, target.EngineDMA, []ir.Arg{p.mem(p.in, k)}, []ir.Arg{p.tile(dst)})
}

func (p *prog) save(src ir.Loc, k int) ir.Inst {
	return p.b.Emit(ir.OpSave, target.EngineDMA, []ir.Arg{p.tile(src)}, []ir.Arg{p.mem(p.out, k)})
}

func (p *prog) act(f target.ActFunc, dst, src ir.Loc) ir.Inst {
	return p.b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{p.tile(src), ir.ImmF32(0), ir.ImmF32(1), ir.ImmF32(0)},
		[]ir.Arg{p.tile(dst)}, ir.Int(ir.KeyFunc, int64(f)))
}

func (p *prog) add(e target.Engine, dst, a, b ir.Loc) ir.Inst {
	return p.b.Emit(ir.OpTensorTensor, e, []ir.Arg{p.tile(a), p.tile(b)}, []ir.Arg{p.tile(dst)}, ir.Int(ir.KeyOp, int64(target.AluAdd)))
}

func (p *prog) matmul(dst, moving, stationary ir.Loc, flag int64) ir.Inst {
	return p.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{p.tile(moving), p.tile(stationary)}, []ir.Arg{p.tile(dst)},
		ir.Int(ir.KeyAccumulationFlag, flag))
}

// random fills the program; few tiles make many conflicts, many make long rings of loads.
func (p *prog) random(t *rapid.T, most int) {
	p.init(rapid.SampledFrom([]int{20, 30, 40}).Draw(t, "level"), rapid.IntRange(2, 24).Draw(t, "tiles"))
	loc := func() ir.Loc { return rapid.SampledFrom(p.sb).Draw(t, "sb") }
	bank := func() ir.Loc { return rapid.SampledFrom(p.psum).Draw(t, "psum") }
	for k := range rapid.IntRange(1, most).Draw(t, "n") {
		switch rapid.IntRange(0, 7).Draw(t, "op") {
		case 0, 1, 2:
			p.load(loc(), k)
		case 3:
			p.save(loc(), k)
		case 4:
			p.b.Emit(ir.OpDMACopy, target.EngineDMA, []ir.Arg{p.mem(p.in, k)}, []ir.Arg{p.mem(p.out, k)})
		case 5:
			dst := bank()
			p.matmul(dst, loc(), loc(), 1)
			p.matmul(dst, loc(), loc(), 6)
		case 6:
			p.act(rapid.SampledFrom([]target.ActFunc{target.ActRelu, target.ActExp, target.ActTanh}).Draw(t, "func"), loc(), bank())
		default:
			p.add(rapid.SampledFrom([]target.Engine{target.EngineDVE, target.EnginePool}).Draw(t, "engine"), loc(), loc(), loc())
		}
	}
}

type fataler interface {
	Helper()
	Fatal(...any)
}

// tail runs every pass up to Sync.
func (p *prog) tail(t fataler, schedule bool, opt dma.Options) SyncStats {
	t.Helper()
	p.b.Close()
	m, f := &p.m, p.b.Func
	if err := deps.Build(m, f, &p.deps); err != nil {
		t.Fatal(err)
	}
	if schedule {
		if _, err := sched.Schedule(m, f, &p.sched); err != nil {
			t.Fatal(err)
		}
	}
	if err := sched.LegalizeGroups(m, f, &p.sched); err != nil {
		t.Fatal(err)
	}
	if err := dma.AssignQueues(m, f, opt, &p.dma); err != nil {
		t.Fatal(err)
	}
	ActTables(m, f, &p.edits)
	st, err := Sync(m, f, &p.sync)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify.Groups(m, f); err != nil {
		t.Fatal(err)
	}
	if err := verify.Sync(m, f); err != nil {
		t.Fatal(err)
	}
	return st
}

// retail runs everything after the edges again, up to the bytes of the package.
func (p *prog) retail() error {
	m, f := &p.m, p.b.Func
	if _, err := sched.Schedule(m, f, &p.sched); err != nil {
		return err
	}
	if err := sched.LegalizeGroups(m, f, &p.sched); err != nil {
		return err
	}
	if err := dma.AssignQueues(m, f, dma.Options{}, &p.dma); err != nil {
		return err
	}
	ActTables(m, f, &p.edits)
	if _, err := Sync(m, f, &p.sync); err != nil {
		return err
	}
	p.file.Reset()
	_, _, err := Write(m, f, Options{}, &p.enc, &p.file)
	return err
}

// chain is n rounds of load, matmul, activation, save through rotating tiles.
func (p *prog) chain(n int) {
	p.init(30, 16)
	for k := range n {
		x, y, z := p.sb[k%8], p.psum[k%4], p.sb[8+k%8]
		p.load(x, k)
		p.matmul(y, x, x, 3)
		p.act(target.ActRelu, z, y)
		p.save(z, k)
	}
}
