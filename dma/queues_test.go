package dma

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa/deps"
)

type prog struct {
	m       ir.Module
	b       ir.Builder
	d       deps.Workspace
	w       Workspace
	in, out ir.Loc
}

func newProg(level int) *prog {
	p := &prog{}
	p.m.Gen, _ = target.ByLevel(level)
	p.b.NewFunc(&p.m, "f", "Block1")
	p.in = p.b.DRAM(p.m.Names.Intern("in"), ir.KindExternalInput, target.Float32, 128, 64)
	p.out = p.b.DRAM(p.m.Names.Intern("out"), ir.KindExternalOutput, target.Float32, 128, 64)
	return p
}

func (p *prog) sb(parts int) ir.Loc {
	l := p.b.SB(p.m.Names.Derived(p.m.Names.Intern("s"), 1, uint32(p.m.Locs.Len())), target.Float32, parts, 64)
	p.m.Locs.At(l).Flags |= ir.LocAllocated
	p.m.Locs.At(l).Addr = int64(16384 + 256*p.m.Locs.Len())
	return l
}

func (p *prog) psum() ir.Loc {
	l := p.b.PSUM(p.m.Names.Derived(p.m.Names.Intern("p"), 1, uint32(p.m.Locs.Len())), target.Float32, 128, 64)
	p.m.Locs.At(l).Flags |= ir.LocAllocated
	return l
}

func (p *prog) tile(l ir.Loc, parts int) ir.Arg {
	return p.b.Chip(l, target.Float32, 0, parts, 0, ir.Pair{Step: 1, Num: 64})
}

func (p *prog) mem(l ir.Loc, parts int) ir.Arg {
	return p.b.Mem(l, target.Float32, 0, ir.Pair{Step: 64, Num: uint32(parts)}, ir.Pair{Step: 1, Num: 64})
}

// index is one int32 on each of parts partitions.
func (p *prog) index(parts int) ir.Arg {
	return p.b.Chip(p.sb(128), target.Int32, 0, parts, 0, ir.Pair{Step: 1, Num: 1})
}

func (p *prog) gather(table, index, out ir.Arg) ir.Inst {
	return p.b.Emit(ir.OpIndirectLoad, target.EnginePool, []ir.Arg{table, index}, []ir.Arg{out})
}

func (p *prog) finish(t *testing.T, opt Options) error {
	t.Helper()
	p.b.Close()
	if err := deps.Build(&p.m, p.b.Func, &p.d); err != nil {
		t.Fatal(err)
	}
	return AssignQueues(&p.m, p.b.Func, opt, &p.w)
}

func TestTriggerEngines(t *testing.T) {
	for _, c := range []struct {
		name string
		emit func(p *prog) ir.Inst
		eng  target.Engine
		set  string
		num  uint8
	}{
		{"load", func(p *prog) ir.Inst {
			return p.b.Emit(ir.OpLoad, target.EngineDMA, []ir.Arg{p.mem(p.in, 20)}, []ir.Arg{p.tile(p.sb(128), 20)})
		}, target.EngineSP, "qSPld", 3},
		{"copy", func(p *prog) ir.Inst {
			return p.b.Emit(ir.OpDMACopy, target.EngineUnassigned, []ir.Arg{p.mem(p.in, 128)}, []ir.Arg{p.mem(p.out, 128)})
		}, target.EngineSP, "qSPcp", 1},
		{"save after Vector", func(p *prog) ir.Inst {
			s := p.sb(128)
			p.b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{p.tile(s, 128)})
			p.b.Emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{p.tile(s, 128)}, []ir.Arg{p.tile(s, 128)})
			return p.b.Emit(ir.OpSave, target.EngineDMA, []ir.Arg{p.tile(s, 128)}, []ir.Arg{p.mem(p.out, 128)})
		}, target.EngineDVE, "qDVEst", 16},
		{"save of a loaded tile", func(p *prog) ir.Inst {
			s := p.sb(128)
			p.b.Emit(ir.OpLoad, target.EngineDMA, []ir.Arg{p.mem(p.in, 128)}, []ir.Arg{p.tile(s, 128)})
			return p.b.Emit(ir.OpSave, target.EngineDMA, []ir.Arg{p.tile(s, 128)}, []ir.Arg{p.mem(p.out, 128)})
		}, target.EngineSP, "qSPst", 16},
		{"copy out of PSUM after PE", func(p *prog) ir.Inst {
			x, a := p.psum(), p.sb(128)
			p.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{p.tile(a, 128), p.tile(a, 128)}, []ir.Arg{p.tile(x, 64)}, ir.Int(ir.KeyAccumulationFlag, 3))
			return p.b.Emit(ir.OpDMACopy, target.EngineDMA, []ir.Arg{p.tile(x, 64)}, []ir.Arg{p.mem(p.out, 64)})
		}, target.EngineAct, "qActivationst", 8},
		{"save of nobody's bytes", func(p *prog) ir.Inst {
			return p.b.Emit(ir.OpSave, target.EngineDMA, []ir.Arg{p.tile(p.sb(128), 8)}, []ir.Arg{p.mem(p.out, 8)})
		}, target.EngineSP, "qSPst", 1},
		{"save after Activation, written for SP", func(p *prog) ir.Inst {
			s := p.sb(128)
			p.b.Emit(ir.OpTensorCopy, target.EngineAct, []ir.Arg{p.tile(p.sb(128), 128)}, []ir.Arg{p.tile(s, 128)})
			return p.b.Emit(ir.OpSave, target.EngineSP, []ir.Arg{p.tile(s, 128)}, []ir.Arg{p.mem(p.out, 128)})
		}, target.EngineAct, "qActivationst", 16},
		{"gather", func(p *prog) ir.Inst {
			return p.gather(p.mem(p.in, 64), p.index(60), p.tile(p.sb(128), 60))
		}, target.EnginePool, "qPoolld", 8},
		{"engine given", func(p *prog) ir.Inst {
			return p.b.Emit(ir.OpLoad, target.EnginePool, []ir.Arg{p.mem(p.in, 128)}, []ir.Arg{p.tile(p.sb(128), 128)})
		}, target.EnginePool, "qPoolld", 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProg(30)
			i := c.emit(p)
			if err := p.finish(t, Options{}); err != nil {
				t.Fatal(err)
			}
			r := p.m.Insts.At(i)
			q := p.m.Queues.At(r.Queue)
			if r.Engine != c.eng || p.m.Names.String(q.Name) != c.set || q.Owner != c.eng || q.NumQueues != c.num {
				t.Errorf("engine %s, set %s of %s with %d queues; want %s, %s, %d", r.Engine, p.m.Names.String(q.Name), q.Owner,
					q.NumQueues, c.eng, c.set, c.num)
			}
			if q.SemBase < FirstSemaphore || p.m.SemaphoresPerQueue != DefaultSemaphores {
				t.Errorf("ring of %d from %d", p.m.SemaphoresPerQueue, q.SemBase)
			}
		})
	}
}

// All fifteen sets at once: rings are disjoint, and the sets stay inside the hardware's queue budget.
func TestAllSets(t *testing.T) {
	p := newProg(30)
	for _, e := range target.Sequencers {
		s := p.sb(128)
		p.b.Emit(ir.OpLoad, e, []ir.Arg{p.mem(p.in, 128)}, []ir.Arg{p.tile(s, 128)})
		p.b.Emit(ir.OpSave, e, []ir.Arg{p.tile(s, 128)}, []ir.Arg{p.mem(p.out, 128)})
		p.b.Emit(ir.OpDMACopy, e, []ir.Arg{p.tile(s, 128)}, []ir.Arg{p.tile(p.sb(128), 128)})
	}
	if err := p.finish(t, Options{}); err != nil {
		t.Fatal(err)
	}
	sum, next := 0, FirstSemaphore
	for q, r := range p.m.Queues.All() {
		sum += int(r.NumQueues)
		if int(r.SemBase) != next {
			t.Errorf("ring of %s starts at %d, want %d", q, r.SemBase, next)
		}
		next += DefaultSemaphores
	}
	if p.m.Queues.Len() != 16 || sum > p.m.Gen.MaxQueues || next != 256 {
		t.Errorf("%d sets, %d queues, semaphores up to %d", p.m.Queues.Len()-1, sum, next)
	}
	err := AssignQueues(&p.m, p.b.Func, Options{SemaphoresPerQueue: 17}, &p.w)
	if target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "--num-semaphores-per-queue") {
		t.Errorf("17 semaphores for 15 sets: %v", err)
	}
	if err := AssignQueues(&p.m, p.b.Func, Options{SemaphoresPerQueue: 99}, &p.w); target.ClassOf(err) != target.User {
		t.Errorf("99 semaphores: %v", err)
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		emit  func(p *prog) ir.Inst
		class target.Class
		text  string
	}{
		{"counts", func(p *prog) ir.Inst {
			return p.b.Emit(ir.OpLoad, target.EngineDMA, []ir.Arg{p.mem(p.in, 64)}, []ir.Arg{p.tile(p.sb(128), 32)})
		}, target.User, "moves 4096 elements"},
		{"descriptor generation", func(p *prog) ir.Inst {
			return p.b.Emit(ir.OpLoad, target.EngineDMA, []ir.Arg{p.mem(p.in, 64)}, []ir.Arg{p.tile(p.sb(128), 64)},
				ir.Int(ir.KeyDGEType, int64(ir.DGESoftware)))
		}, target.Unsupported, "SWDGE"},
		{"transposing copy", func(p *prog) ir.Inst {
			return p.b.Emit(ir.OpDMACopy, target.EngineDMA, []ir.Arg{p.mem(p.in, 64)}, []ir.Arg{p.tile(p.sb(128), 64)},
				ir.Int(ir.KeyCopyMode, int64(ir.CopyTranspose)))
		}, target.Unsupported, "Transpose"},
		{"gather by floats", func(p *prog) ir.Inst {
			return p.gather(p.mem(p.in, 64), p.tile(p.sb(128), 64), p.tile(p.sb(128), 64))
		}, target.User, "have no encoding"},
		{"gather of a plane", func(p *prog) ir.Inst {
			return p.gather(p.b.Mem(p.in, target.Float32, 0, ir.Pair{Step: 64, Num: 2}, ir.Pair{Step: 16, Num: 4}, ir.Pair{Step: 1, Num: 16}), p.index(8), p.tile(p.sb(128), 8))
		}, target.User, "have no encoding"},
		{"gather by hardware", func(p *prog) ir.Inst {
			i := p.gather(p.mem(p.in, 64), p.index(8), p.tile(p.sb(128), 8))
			p.m.SetAttr(i, ir.Int(ir.KeyDGEType, int64(ir.DGEHardware)))
			return i
		}, target.Unsupported, "found by software"},
		{"gather beyond 4 GiB", func(p *prog) ir.Inst {
			l := p.b.DRAM(p.m.Names.Intern("far"), ir.KindInternal, target.Float32, 64, 64)
			p.m.Locs.At(l).Flags |= ir.LocAllocated
			p.m.Locs.At(l).Addr = 1 << 32
			return p.gather(p.mem(l, 64), p.index(8), p.tile(p.sb(128), 8))
		}, target.Limit, "from byte 4294967296 on"},
		{"scatter", func(p *prog) ir.Inst {
			return p.b.Emit(ir.OpIndirectSave, target.EnginePool, []ir.Arg{p.tile(p.sb(128), 8), p.index(8)}, []ir.Arg{p.mem(p.out, 8)})
		}, target.Unsupported, "IndirectSave"},
		{"cast of int64", func(p *prog) ir.Inst {
			s := p.sb(128)
			return p.b.Emit(ir.OpLoad, target.EngineDMA, []ir.Arg{p.mem(p.in, 64)},
				[]ir.Arg{p.b.Chip(s, target.Int64, 0, 128, 0, ir.Pair{Step: 1, Num: 32})})
		}, target.Unsupported, "cannot cast"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProg(30)
			c.emit(p)
			err := p.finish(t, Options{})
			if target.ClassOf(err) != c.class || err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v (%s), want %s with %q", err, target.ClassOf(err), c.class, c.text)
			}
		})
	}
}

func TestSecondRunAllocatesNothing(t *testing.T) {
	p := newProg(30)
	for range 200 {
		s := p.sb(128)
		p.b.Emit(ir.OpLoad, target.EngineDMA, []ir.Arg{p.mem(p.in, 128)}, []ir.Arg{p.tile(s, 128)})
		p.b.Emit(ir.OpSave, target.EngineDMA, []ir.Arg{p.tile(s, 128)}, []ir.Arg{p.mem(p.out, 128)})
	}
	if err := p.finish(t, Options{}); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(3, func() {
		if err := AssignQueues(&p.m, p.b.Func, Options{}, &p.w); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAssignQueues(b *testing.B) {
	p := newProg(30)
	const n = 5000
	s := p.sb(128)
	for range n {
		p.b.Emit(ir.OpLoad, target.EngineDMA, []ir.Arg{p.mem(p.in, 128)}, []ir.Arg{p.tile(s, 128)})
		p.b.Emit(ir.OpSave, target.EngineDMA, []ir.Arg{p.tile(s, 128)}, []ir.Arg{p.mem(p.out, 128)})
	}
	p.b.Close()
	if err := deps.Build(&p.m, p.b.Func, &p.d); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := AssignQueues(&p.m, p.b.Func, Options{}, &p.w); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(2*n)*float64(b.N)/b.Elapsed().Seconds(), "inst/s")
}
