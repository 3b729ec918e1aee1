package ssa

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// fixture is a function under construction; all tiles are 128 × 8 fp32.
type fixture struct {
	m ir.Module
	b ir.Builder
}

func newFixture() *fixture {
	f := &fixture{}
	f.m.Gen, _ = target.ByLevel(30)
	f.b.NewFunc(&f.m, "main", "Block1")
	return f
}

func (f *fixture) sb(name string) ir.Loc {
	return f.b.SB(f.m.Names.Intern(name), target.Float32, 128, 8)
}

func (f *fixture) op(l ir.Loc) ir.Arg {
	return f.b.Chip(l, target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: 8})
}

func (f *fixture) ops(ls ...ir.Loc) (out []ir.Arg) {
	for _, l := range ls {
		out = append(out, f.op(l))
	}
	return out
}

func (f *fixture) emit(op ir.Opcode, ins, outs []ir.Loc, attrs ...ir.Attr) ir.Inst {
	return f.b.Emit(op, target.EngineDVE, f.ops(ins...), f.ops(outs...), attrs...)
}

// loop adds a loop whose body is built by fill.
func (f *fixture) loop(fill func(body ir.Block) []ir.Inst) ir.Inst {
	i := f.b.Emit(ir.OpLoop, target.EngineUnassigned, nil, nil)
	body := f.m.Blocks.Add(ir.BlockRow{Func: f.b.Func, Parent: i})
	order := fill(body)
	f.m.Blocks.At(body).Order = f.m.Order.AddSlice(order)
	f.m.Regions.Set(i, ir.RegionRow{Blocks: f.m.BlockList.Add(body)})
	return i
}

type locs = []ir.Loc

func TestAccesses(t *testing.T) {
	f := newFixture()
	x, y, p := f.sb("x"), f.sb("y"), f.sb("p")
	f.emit(ir.OpMemset, nil, locs{x})
	f.emit(ir.OpMemset, nil, locs{p})
	f.emit(ir.OpActivation, locs{x}, locs{y})
	f.emit(ir.OpCopyPredicated, locs{x, p}, locs{y}) // reads y too
	f.emit(ir.OpMatmult, locs{x, y}, locs{p}, ir.Int(ir.KeyAccumulationFlag, 1))
	f.emit(ir.OpMatmult, locs{x, y}, locs{p}, ir.Int(ir.KeyAccumulationFlag, 6))
	f.b.Close()
	var l Linear
	l.Build(&f.m, f.b.Func)
	for _, c := range []struct {
		loc  ir.Loc
		want string
	}{
		{x, "w0 r2 r3 r4 r5"}, {y, "w2 rw3 r4 r5"}, {p, "w1 r3 w4 rw5"},
	} {
		var got []string
		for _, a := range l.Of(c.loc) {
			s := ""
			if a.Flags&Read != 0 {
				s += "r"
			}
			if a.Flags&Write != 0 {
				s += "w"
			}
			got = append(got, s+string(rune('0'+a.At)))
			if l.Insts[a.At] != a.Inst {
				t.Errorf("%s: access at %d names %s", f.m.LocName(c.loc), a.At, a.Inst)
			}
			if ap := f.m.Args.Of(arena.Span{Off: a.Arg, Len: 1})[0]; f.m.LocOf(ap) != c.loc {
				t.Errorf("%s: operand row %d is another's", f.m.LocName(c.loc), a.Arg)
			}
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s: %s, want %s", f.m.LocName(c.loc), g, c.want)
		}
	}
	if l.WrittenIn(y, 4, 6) || !l.WrittenIn(y, 3, 4) || l.WrittenIn(y, 0, 2) {
		t.Error("WrittenIn of y, written at 2 and 3")
	}
}

// A value defined before a loop and used in it lives across all of the loop's point, and values of the body at that point.
func TestLoopIsOnePoint(t *testing.T) {
	f := newFixture()
	x, y, z := f.sb("x"), f.sb("y"), f.sb("z")
	f.emit(ir.OpMemset, nil, locs{x}) // 0
	f.loop(func(body ir.Block) []ir.Inst {
		return []ir.Inst{
			f.m.NewInst(body, ir.OpActivation, target.EngineAct, f.ops(x), f.ops(y)),
			f.m.NewInst(body, ir.OpActivation, target.EngineAct, f.ops(y), f.ops(z)),
		}
	}) // 1
	f.emit(ir.OpActivation, locs{z}, locs{z}) // 2
	f.b.Close()
	var l Linear
	l.Build(&f.m, f.b.Func)
	if l.Points() != 3 {
		t.Fatalf("%d points, want 3", l.Points())
	}
	var r Ranges
	r.Build(&f.m, &l, target.SpaceSB, BySlot, nil)
	for _, c := range []struct {
		loc        ir.Loc
		start, end Point
		opaque     bool
	}{{x, 0, 2, true}, {y, 1, 2, true}, {z, 1, 3, true}} {
		u := r.Units[r.UnitOf(c.loc)]
		if u.Start != c.start || u.End != c.end || (u.Flags&Opaque != 0) != c.opaque {
			t.Errorf("%s: [%d, %d) flags %d, want [%d, %d)", f.m.LocName(c.loc), u.Start, u.End, u.Flags, c.start, c.end)
		}
	}
}

// Deeply nested loops need no stack of calls.
func TestDeepLoops(t *testing.T) {
	const depth = 100_000
	f := newFixture()
	x := f.sb("x")
	f.emit(ir.OpMemset, nil, locs{x})
	outer := f.b.Emit(ir.OpLoop, target.EngineUnassigned, nil, nil)
	for range depth {
		body := f.m.Blocks.Add(ir.BlockRow{Func: f.b.Func, Parent: outer})
		f.m.Regions.Set(outer, ir.RegionRow{Blocks: f.m.BlockList.Add(body)})
		inner := f.m.NewInst(body, ir.OpLoop, target.EngineUnassigned, nil, nil)
		f.m.Blocks.At(body).Order = f.m.Order.Add(inner)
		outer = inner
	}
	body := f.m.Blocks.Add(ir.BlockRow{Func: f.b.Func, Parent: outer})
	f.m.Regions.Set(outer, ir.RegionRow{Blocks: f.m.BlockList.Add(body)})
	use := f.m.NewInst(body, ir.OpActivation, target.EngineAct, f.ops(x), f.ops(x))
	f.m.Blocks.At(body).Order = f.m.Order.Add(use)
	f.b.Close()
	var l Linear
	l.Build(&f.m, f.b.Func)
	if acc := l.Of(x); len(acc) != 3 || acc[1].At != 1 || acc[1].Flags&Nested == 0 || l.Points() != 2 {
		t.Errorf("accesses %+v at %d points", acc, l.Points())
	}
}

func TestFaults(t *testing.T) {
	f := newFixture()
	x, y, z := f.sb("x"), f.sb("y"), f.sb("z")
	in := f.b.DRAM(f.m.Names.Intern("in"), ir.KindExternalInput, target.Float32, 128, 8)
	tmp := f.b.DRAM(f.m.Names.Intern("tmp"), ir.KindInternal, target.Float32, 128, 8)
	mem := func(l ir.Loc) ir.Arg { return f.b.Mem(l, target.Float32, 0, ir.Pair{Step: 1, Num: 1024}) }
	f.b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{mem(in)}, f.ops(x))
	bad := f.b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{mem(tmp)}, f.ops(y))
	f.emit(ir.OpTensorTensor, locs{x, z}, locs{z}, ir.Bool(ir.KeyCanReadUninit, true))
	f.b.Close()
	var l Linear
	l.Build(&f.m, f.b.Func)
	faults := l.Check(&f.m)
	if faults.Undefined != 1 || faults.FirstUndefined[0] != tmp || faults.UndefinedAt[0] != bad {
		t.Errorf("undefined: %+v, want %s at %s", faults, f.m.LocName(tmp), bad)
	}
	if faults.Unused != 1 || faults.FirstUnused[0] != y {
		t.Errorf("unused: %+v, want %s", faults, f.m.LocName(y))
	}
	err := faults.Err(&f.m, f.b.Func, false)
	if err == nil || target.ClassOf(err) != target.User || !strings.Contains(err.Error(), "%tmp at "+f.m.InstName(bad)) {
		t.Errorf("error %v", err)
	}
	// The twin of another location has its bytes from there.
	f.m.Aliases.Add(ir.AliasRow{A: in, B: tmp, Kind: 3})
	faults = l.Check(&f.m)
	if err := faults.Err(&f.m, f.b.Func, false); err != nil {
		t.Errorf("aliased: %v", err)
	}
	if err := faults.Err(&f.m, f.b.Func, true); err == nil || !strings.Contains(err.Error(), "unused: %y") {
		t.Errorf("strict: %v", err)
	}
}

// Units come in order of first definition; ring slots and side-by-side blocks group locations; placed ones are marked.
func TestRanges(t *testing.T) {
	f := newFixture()
	late, early, dead := f.sb("late"), f.sb("early"), f.sb("dead")
	ring := f.b.Tensor(f.m.Names.Intern("ring"), ir.KindInternal, ir.ClassNeuronBlockTensor, target.Float32, 4, 128, 8)
	var block [4]ir.Loc
	for k := range block {
		block[k] = f.b.Place(ring, f.m.Sets.At(ring).Name, target.SpaceSB, 128, 32)
	}
	f.m.Sets.At(ring).LiveN = 2
	strip := f.sb("strip")
	f.m.Locs.At(strip).Flags |= ir.LocReserved | ir.LocPinned | ir.LocAllocated
	f.emit(ir.OpMemset, nil, locs{early})
	for _, l := range block {
		f.emit(ir.OpActivation, locs{early}, locs{l})
	}
	f.emit(ir.OpMemset, nil, locs{late}) // 5
	f.emit(ir.OpActivation, locs{block[3]}, locs{late})
	f.b.Close()
	var l Linear
	l.Build(&f.m, f.b.Func)
	var r Ranges
	r.Build(&f.m, &l, target.SpaceSB, BySlot, nil)
	if len(r.Units) != 6 {
		t.Fatalf("%d units, want 6", len(r.Units))
	}
	for k := 1; k < len(r.Units); k++ {
		if r.Units[k].Start < r.Units[k-1].Start {
			t.Errorf("unit %d begins before unit %d", k, k-1)
		}
	}
	get := func(loc ir.Loc) Unit { return r.Units[r.UnitOf(loc)] }
	if a, b := r.UnitOf(block[0]), r.UnitOf(block[2]); a != b || a == r.UnitOf(block[1]) {
		t.Error("blocks 0 and 2 of two slots should share one, and 1 the other")
	}
	if u := get(block[1]); u.Start != 2 || u.End != 7 || u.Count != 2 || u.Loc(1) != block[3] {
		t.Errorf("second slot %+v", u)
	}
	if u := get(strip); u.Start != 0 || u.End != 7 || u.Flags&(Always|Placed) != Always|Placed {
		t.Errorf("strip %+v", u)
	}
	if u := get(dead); u.Flags&Dead == 0 || u.Start >= u.End {
		t.Errorf("unused location %+v", u)
	}
	if u := get(late); u.Start != 5 || u.End != 7 {
		t.Errorf("late %+v", u)
	}
	r.Build(&f.m, &l, target.SpaceSB, BySet, func(s *ir.SetRow) bool { return s.Count > 1 })
	if len(r.Units) != 1 || r.Units[0].Count != 4 || r.UnitOf(early) != NoUnit {
		t.Errorf("by set: %+v", r.Units)
	}
}

func TestSteadyState(t *testing.T) {
	f := newFixture()
	prev := f.sb("a")
	f.emit(ir.OpMemset, nil, locs{prev})
	for range 500 {
		next := f.b.SB(0, target.Float32, 128, 8)
		f.emit(ir.OpActivation, locs{prev}, locs{next})
		prev = next
	}
	f.b.Close()
	var l Linear
	var r Ranges
	pass := func() {
		l.Build(&f.m, f.b.Func)
		l.Check(&f.m)
		r.Build(&f.m, &l, target.SpaceSB, BySlot, nil)
	}
	pass()
	if n := testing.AllocsPerRun(10, pass); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
}
