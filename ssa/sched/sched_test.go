package sched

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa/deps"
)

type program struct {
	m    ir.Module
	b    ir.Builder
	sb   []ir.Loc
	psum []ir.Loc
	in   ir.Loc
	out  ir.Loc
}

func (p *program) init(level int) {
	m := &p.m
	m.Reset()
	m.Gen, _ = target.ByLevel(level)
	p.b.NewFunc(m, "f", "Block1")
	p.sb, p.psum = p.sb[:0], p.psum[:0]
	for k := range 8 {
		l := p.b.SB(m.Names.Intern(fmt.Sprintf("s%d", k)), target.Float32, 128, 512)
		m.Locs.At(l).Flags |= ir.LocAllocated
		m.Locs.At(l).Addr = int64(16384 + 2048*k)
		p.sb = append(p.sb, l)
		l = p.b.PSUM(m.Names.Intern(fmt.Sprintf("p%d", k)), target.Float32, 128, 512)
		m.Locs.At(l).Flags |= ir.LocAllocated
		m.Locs.At(l).Bank = int8(k)
		p.psum = append(p.psum, l)
	}
	p.in = p.b.DRAM(m.Names.Intern("in"), ir.KindExternalInput, target.Float32, 1024, 128, 512)
	p.out = p.b.DRAM(m.Names.Intern("out"), ir.KindExternalOutput, target.Float32, 1024, 128, 512)
}

func (p *program) tile(l ir.Loc) ir.Arg {
	return p.b.Chip(l, target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: 512})
}

func (p *program) mem(l ir.Loc, k int) ir.Arg {
	return p.b.Mem(l, target.Float32, int64(k)*128*512, ir.Pair{Step: 512, Num: 128}, ir.Pair{Step: 1, Num: 512})
}

func (p *program) load(dst ir.Loc, k int) ir.Inst {
	return p.b.Emit(ir.OpLoad, target.EngineDMA, []ir.Arg{p.mem(p.in, k)}, []ir.Arg{p.tile(dst)})
}

func (p *program) save(src ir.Loc, k int) ir.Inst {
	return p.b.Emit(ir.OpSave, target.EngineDMA, []ir.Arg{p.tile(src)}, []ir.Arg{p.mem(p.out, k)})
}

func (p *program) matmul(dst, moving ir.Loc, attrs ...ir.Attr) ir.Inst {
	w := p.b.Chip(moving, target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: 128})
	return p.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{p.tile(moving), w}, []ir.Arg{p.tile(dst)}, attrs...)
}

func (p *program) relu(dst, src ir.Loc) ir.Inst {
	return p.b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{p.tile(src)}, []ir.Arg{p.tile(dst)}, ir.Int(ir.KeyFunc, int64(target.ActRelu)))
}

func (p *program) random(t *rapid.T) {
	p.init(rapid.SampledFrom([]int{20, 30, 40}).Draw(t, "level"))
	loc := func() ir.Loc { return rapid.SampledFrom(p.sb).Draw(t, "sb") }
	bank := func() ir.Loc { return rapid.SampledFrom(p.psum).Draw(t, "psum") }
	n := rapid.IntRange(1, 80).Draw(t, "n")
	for k := range n {
		switch rapid.IntRange(0, 6).Draw(t, "op") {
		case 0, 1:
			p.load(loc(), k)
		case 2:
			p.save(loc(), k)
		case 3:
			dst := bank()
			p.matmul(dst, loc(), ir.Int(ir.KeyAccumulationFlag, 1))
			p.matmul(dst, loc(), ir.Int(ir.KeyAccumulationFlag, 6))
		case 4:
			i := p.relu(loc(), bank())
			p.m.SetAttr(i, ir.Int(ir.KeyAcc, int64(target.AccZeroAccumulate)))
			col := p.b.Chip(loc(), target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: 1})
			r := p.b.Emit(ir.OpActivationReadAccumulator, target.EngineAct, nil, []ir.Arg{col})
			p.m.Insts.At(r).Flags |= ir.InstUnit
		default:
			p.b.Emit(ir.OpTensorTensor, rapid.SampledFrom([]target.Engine{target.EngineDVE, target.EnginePool}).Draw(t, "engine"),
				[]ir.Arg{p.tile(loc()), p.tile(loc())}, []ir.Arg{p.tile(loc())}, ir.Int(ir.KeyOp, int64(target.AluAdd)))
		}
	}
	p.b.Close()
}

// The new order holds the same instructions, respects every edge, keeps units together, is no dearer than the old one,
// and comes out the same again.
func TestScheduleIsTopological(t *testing.T) {
	var p program
	var dw deps.Workspace
	var w Workspace
	rapid.Check(t, func(t *rapid.T) {
		p.random(t)
		m := &p.m
		if err := deps.Build(m, p.b.Func, &dw); err != nil {
			t.Fatal(err)
		}
		old := slices.Clone(m.OrderOf(p.b.Block))
		res, err := Schedule(m, p.b.Func, &w)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Clone(m.OrderOf(p.b.Block))
		at := map[ir.Inst]int{}
		for k, i := range got {
			at[i] = k
			if m.Insts.At(i).Flags&ir.InstUnit != 0 {
				if was := old[slices.Index(old, i)-1]; k == 0 || got[k-1] != was {
					t.Fatalf("%s is parted from %s", m.InstName(i), m.InstName(was))
				}
			}
			for _, d := range m.DepsOf(i) {
				if p, ok := at[d.Inst]; !ok || p >= k {
					t.Fatalf("%s is before %s, which it depends on (%s)", m.InstName(i), m.InstName(d.Inst), d.Kind)
				}
			}
		}
		if len(at) != len(old) || len(got) != len(old) {
			t.Fatalf("%d instructions became %d", len(old), len(got))
		}
		if res.After.Makespan > res.Before.Makespan {
			t.Fatalf("cost went up: %d to %d ns", res.Before.Makespan, res.After.Makespan)
		}
		sim, err := Simulate(m, p.b.Func, true, &w)
		if err != nil {
			t.Fatal(err)
		}
		if sim.Makespan > res.After.Makespan {
			t.Errorf("the order costs %d ns alone, %d by its scheduler", sim.Makespan, res.After.Makespan)
		}
		if free, err := Simulate(m, p.b.Func, false, &w); err != nil || free.Makespan > sim.Makespan {
			t.Errorf("without anti edges %d ns, with them %d (%v)", free.Makespan, sim.Makespan, err)
		}
		m.SetOrder(p.b.Block, old)
		if _, err := Schedule(m, p.b.Func, &w); err != nil || !slices.Equal(m.OrderOf(p.b.Block), got) {
			t.Errorf("a second run gives another order (%v)", err)
		}
	})
}

// Two independent chains written one after the other overlap after scheduling, down to the busiest timeline.
func TestScheduleOverlapsChains(t *testing.T) {
	var p program
	var dw deps.Workspace
	var w Workspace
	p.init(30)
	for k := range 3 {
		p.load(p.sb[k], k)
		p.matmul(p.psum[k], p.sb[k], ir.Int(ir.KeyAccumulationFlag, 3))
		p.relu(p.sb[4+k], p.psum[k])
		p.save(p.sb[4+k], k)
	}
	p.b.Close()
	if err := deps.Build(&p.m, p.b.Func, &dw); err != nil {
		t.Fatal(err)
	}
	res, err := Schedule(&p.m, p.b.Func, &w)
	if err != nil {
		t.Fatal(err)
	}
	order := p.m.OrderOf(p.b.Block)
	for k := range 3 {
		if p.m.Insts.At(order[k]).Op != ir.OpLoad {
			t.Errorf("place %d holds %s, want the three loads first", k, p.m.Insts.At(order[k]).Op)
		}
	}
	if res.After.Makespan >= res.Before.Makespan {
		t.Errorf("%d ns before, %d after", res.Before.Makespan, res.After.Makespan)
	}
	if res.After.Busiest != target.EngineDMA || res.After.Insts != 12 {
		t.Errorf("busiest %s, %d instructions; want DMA, 12", res.After.Busiest, res.After.Insts)
	}
}

func TestScheduleWantsEdges(t *testing.T) {
	var p program
	var w Workspace
	p.init(30)
	p.b.Close()
	if _, err := Schedule(&p.m, p.b.Func, &w); target.ClassOf(err) != target.Bug {
		t.Errorf("without edges: %v", err)
	}
}

func TestLegalizeGroups(t *testing.T) {
	flag := func(v int64) ir.Attr { return ir.Int(ir.KeyAccumulationFlag, v) }
	for _, c := range []struct {
		name  string
		build func(p *program) []ir.Inst
		flags ir.FuncFlag
		want  []int64
		err   string
	}{
		{name: "three without flags", build: func(p *program) []ir.Inst {
			return []ir.Inst{p.matmul(p.psum[0], p.sb[0]), p.matmul(p.psum[0], p.sb[1]), p.matmul(p.psum[0], p.sb[2])}
		}, want: []int64{1, 4, 6}},
		{name: "a read ends the group", build: func(p *program) []ir.Inst {
			a := p.matmul(p.psum[0], p.sb[0])
			p.relu(p.sb[3], p.psum[0])
			return []ir.Inst{a, p.matmul(p.psum[0], p.sb[1])}
		}, want: []int64{3, 3}},
		{name: "two banks interleaved", build: func(p *program) []ir.Inst {
			return []ir.Inst{p.matmul(p.psum[0], p.sb[0]), p.matmul(p.psum[1], p.sb[0]), p.matmul(p.psum[0], p.sb[1]), p.matmul(p.psum[1], p.sb[1])}
		}, want: []int64{1, 1, 6, 6}},
		{name: "flags stand", build: func(p *program) []ir.Inst {
			return []ir.Inst{p.matmul(p.psum[0], p.sb[0], flag(1)), p.matmul(p.psum[0], p.sb[1], flag(6)), p.matmul(p.psum[0], p.sb[1], flag(3))}
		}, want: []int64{1, 6, 3}},
		{name: "one bank, two open groups", build: func(p *program) []ir.Inst {
			half := func(off int64) ir.Arg {
				return p.b.Chip(p.psum[0], target.Float32, 0, 128, off, ir.Pair{Step: 1, Num: 256})
			}
			var is []ir.Inst
			for _, off := range []int64{0, 256, 0, 256} {
				x := p.b.Chip(p.sb[0], target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: 256})
				y := p.b.Chip(p.sb[1], target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: 128})
				is = append(is, p.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{x, y}, []ir.Arg{half(off)}, flag([]int64{1, 6}[len(is)/2])))
			}
			return is
		}, err: "has no STOP yet"},
		{name: "some without flags", build: func(p *program) []ir.Inst {
			return []ir.Inst{p.matmul(p.psum[0], p.sb[0], flag(1)), p.matmul(p.psum[0], p.sb[1])}
		}, err: "give all or none"},
		{name: "explicit", flags: ir.FuncExplicitFlags, build: func(p *program) []ir.Inst {
			return []ir.Inst{p.matmul(p.psum[0], p.sb[0]), p.matmul(p.psum[0], p.sb[1], flag(4))}
		}, want: []int64{0, 4}},
		{name: "illegal flag", build: func(p *program) []ir.Inst {
			return []ir.Inst{p.matmul(p.psum[0], p.sb[0], flag(5))}
		}, err: "accumulation_flag 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p program
			var dw deps.Workspace
			var w Workspace
			p.init(30)
			is := c.build(&p)
			p.b.Close()
			p.m.Funcs.At(p.b.Func).Flags |= c.flags
			if err := deps.Build(&p.m, p.b.Func, &dw); err != nil {
				t.Fatal(err)
			}
			err := LegalizeGroups(&p.m, p.b.Func, &w)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for k, i := range is {
				if got := p.m.AttrInt(i, ir.KeyAccumulationFlag); got != c.want[k] {
					t.Errorf("matmul %d has flag %d, want %d", k, got, c.want[k])
				}
			}
		})
	}
}

func chain(p *program, n int) {
	p.init(30)
	for k := range n {
		p.load(p.sb[k%4], k)
		p.matmul(p.psum[k%8], p.sb[k%4], ir.Int(ir.KeyAccumulationFlag, 3))
		p.relu(p.sb[4+k%4], p.psum[k%8])
		p.save(p.sb[4+k%4], k)
	}
	p.b.Close()
}

func TestSecondRunAllocatesNothing(t *testing.T) {
	var p program
	var dw deps.Workspace
	var w Workspace
	chain(&p, 300)
	if err := deps.Build(&p.m, p.b.Func, &dw); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(3, func() {
		if _, err := Schedule(&p.m, p.b.Func, &w); err != nil {
			t.Fatal(err)
		}
		if err := LegalizeGroups(&p.m, p.b.Func, &w); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSchedule(b *testing.B) {
	var p program
	var dw deps.Workspace
	var w Workspace
	const n = 5000
	chain(&p, n)
	if err := deps.Build(&p.m, p.b.Func, &dw); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Schedule(&p.m, p.b.Func, &w); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(4*n)*float64(b.N)/b.Elapsed().Seconds(), "inst/s")
}
