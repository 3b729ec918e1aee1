package scalar

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
)

// colourOnly runs the allocator on what the simulator does not execute, and proves the result by the checker alone.
func colourOnly(t *testing.T, text string, lanes int) (*ir.Module, Metrics) {
	t.Helper()
	m := mustParse(t, text)
	var ws Workspace
	var g verify.Registers
	g.Remember(m, m.Entry)
	mt, err := Colour(m, m.Entry, &ws, Options{Lanes: lanes})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := g.Check(m, lanes); err != nil {
		t.Fatalf("%v\n%s", err, printed(m))
	}
	return m, mt
}

// refused is the error of a program that must not be coloured.
func refused(t *testing.T, text string, class target.Class, want ...string) {
	t.Helper()
	m := mustParse(t, text)
	var ws Workspace
	_, err := Colour(m, m.Entry, &ws, Options{})
	if err == nil || target.ClassOf(err) != class {
		t.Errorf("%v, want an error of class %v\n%s", err, class, text)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v: does not say %q", err, w)
		}
	}
}

// Numbers of the producer stay, and pairs go where two lanes are free side by side, at an odd one too.
func TestPairsAroundFixedLanes(t *testing.T) {
	text := source("a b C", `b:
		RegisterMove SP (1:int32) -> ($a)
		RegisterMove SP (2:int32) -> ($b)
		RegisterMove SP (3:int64) -> ($C)
		TensorSave SP ($a) -> (%2 @0 1*1:int32)
		TensorSave SP ($b) -> (%2 @1 1*1:int32)
		TensorSave SP ($C) -> (%2 @2 1*2:int32)`)
	text = strings.Replace(text, `"a" int32 1 SP phys -1`, `"a" int32 1 SP phys 0`, 1)
	text = strings.Replace(text, `"b" int32 1 SP phys -1`, `"b" int32 1 SP phys 2`, 1)
	m, _ := colour(t, text, 5)
	if lane(m, "a") != 0 || lane(m, "b") != 2 || lane(m, "C") != 3 {
		t.Errorf("a %d, b %d, C %d; want 0, 2, 3", lane(m, "a"), lane(m, "b"), lane(m, "C"))
	}
	// With four lanes there is none: one lane is free on either side of b. The pair goes to memory, and in between it finds none either.
	m = mustParse(t, text)
	var ws Workspace
	if _, err := Colour(m, m.Entry, &ws, Options{Lanes: 4}); target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "%C") {
		t.Errorf("no two lanes side by side: %v", err)
	}
	// A second run on the result changes nothing.
	m, _ = colour(t, text, 5)
	before := printed(m)
	if _, err := Colour(m, m.Entry, &ws, Options{Lanes: 5}); err != nil || printed(m) != before {
		t.Errorf("coloured twice: %v\n%s\n%s", err, before, printed(m))
	}
	clash := strings.Replace(text, `"b" int32 1 SP phys 2`, `"b" int32 1 SP phys 0`, 1)
	refused(t, clash, target.User, "%a", "%b", "lane 0 of SP")
	refused(t, strings.Replace(text, `"C" int64 2 SP phys -1`, `"C" int64 2 SP phys 63`, 1), target.User, "%C", "63")
	// The two lanes of calls are no others': a producer may use them.
	m, _ = colour(t, strings.Replace(text, `"C" int64 2 SP phys -1`, `"C" int64 2 SP phys 62`, 1), 4)
	if lane(m, "C") != 62 {
		t.Errorf("C is at %d, the producer put it at 62", lane(m, "C"))
	}
}

// Forty pairs live together want 80 lanes of 62.
func TestMorePairsThanFit(t *testing.T) {
	regs, load, add := "", "", ""
	for k := range 40 {
		v := fmt.Sprintf("V%d", k)
		regs += " " + v
		load += fmt.Sprintf("RegisterMove SP (%d:int64) -> ($%s)\n", int64(k)<<33+7, v)
		if k > 0 {
			add += fmt.Sprintf("RegisterAlu SP ($V0, $%s) -> ($V0) op=add is_64bit=true\n", v)
		}
	}
	_, mt := colour(t, source(regs, "b:"+load+add+"TensorSave SP ($V0) -> (%2 @0 1*2:int32)"), 62)
	if mt.Spilled < 9 || mt.Spilled > 15 || mt.HighWater != 62 {
		t.Errorf("%+v; nine pairs too many", mt)
	}
}

// What is written and never read wants a lane at its write; what nothing names wants none.
func TestNeverReadNeverNamed(t *testing.T) {
	m, mt := colour(t, source("a dead idle", `b:
		RegisterMove SP (1:int32) -> ($a)
		RegisterMove SP (2:int32) -> ($dead)
		TensorSave SP ($a) -> (%2 @0 1*1:int32)`), 62)
	if lane(m, "dead") < 0 || lane(m, "dead") == lane(m, "a") || lane(m, "idle") != -1 || mt.Registers != 2 {
		t.Errorf("a %d, dead %d, idle %d, %+v", lane(m, "a"), lane(m, "dead"), lane(m, "idle"), mt)
	}
}

func TestUndefinedUse(t *testing.T) {
	refused(t, source("a b", `b:
		RegisterAlu SP ($a, 1:int32) -> ($b) op=add`), target.User, "%a", "i1 (RegisterAlu)")
	// Written on one of two paths only; the read that is behind a write is not the one to name.
	refused(t, source("a b", `one:
		RegisterMove SP (1:int32) -> ($b)
		CompareAndBranch SP ($b, 0:int32) -> () comp_op=IS_LTIMM on_true="two" on_false="three"`, `two:
		RegisterMove SP (1:int32) -> ($a)
		UnconditionalBranch SP () -> () target="four"`, `three:
		RegisterMove SP (2:int32) -> ($b)`, `four:
		TensorSave SP ($b) -> (%2 @0 1*1:int32)
		TensorSave SP ($a) -> (%2 @1 1*1:int32)`), target.User, "%a", "i7 (TensorSave)")
	// In a loop back to the first block the write of the turn before does not help the first.
	refused(t, source("a", `one:
		TensorSave SP ($a) -> (%2 @0 1*1:int32)
		RegisterMove SP (1:int32) -> ($a)
		CompareAndBranch SP ($a, 0:int32) -> () comp_op=IS_GTIMM on_true="one" on_false="two"`, `two:`), target.User, "%a", "i1 (TensorSave)")
}

// A function without registers is left alone.
func TestNoRegisters(t *testing.T) {
	text := "rir 1\nmodule \"m\" trn2\nfunc \"main\" entry {\n  block \"b\" {\n    I-1 \"n\" NoOp SP () -> ()\n  }\n}\n"
	m := mustParse(t, text)
	var ws Workspace
	mt, err := Colour(m, m.Entry, &ws, Options{})
	if err != nil || mt.Registers != 0 || mt.Rounds != 0 || mt.HighWater != 0 || len(mt.Scores) != 0 {
		t.Errorf("%+v, %v", mt, err)
	}
	if printed(m) != text {
		t.Errorf("changed:\n%s", printed(m))
	}
}

func TestEngines(t *testing.T) {
	one := source("a", `b:
		RegisterMove SP (1:int32) -> ($a)
		TensorSave SP ($a) -> (%2 @0 1*1:int32)`)
	// A register without an engine is of the engine that names it.
	m, _ := colour(t, strings.Replace(one, "int32 1 SP phys", "int32 1 Unassigned phys", 1), 62)
	if e := m.Regs.At(1).Engine; e != target.EngineSP {
		t.Errorf("engine %s, want SP", e)
	}
	none := strings.ReplaceAll(one, "RegisterMove SP", "RegisterMove Unassigned")
	none = strings.ReplaceAll(none, "TensorSave SP", "TensorSave Unassigned")
	refused(t, strings.Replace(none, "int32 1 SP phys", "int32 1 Unassigned phys", 1), target.User, "%a", "no engine")
	// Two engines cannot name one register, whether it has one of them or none.
	two := strings.Replace(one, "TensorSave SP", "TensorSave Pool", 1)
	refused(t, two, target.User, "%a of SP", "Pool")
	refused(t, strings.Replace(two, "int32 1 SP phys", "int32 1 Unassigned phys", 1), target.User, "%a of SP", "Pool")
	refused(t, strings.Replace(one, "TensorSave SP", "TensorSave ALL", 1), target.User, "%a", "ALL")
	// Each engine has a file of its own.
	m, mt := colour(t, strings.Replace(source("a b", `b:
		RegisterMove SP (1:int32) -> ($a)
		RegisterMove Pool (2:int32) -> ($b)
		TensorSave SP ($a) -> (%2 @0 1*1:int32)
		TensorSave Pool ($b) -> (%2 @1 1*1:int32)`), `"b" int32 1 SP`, `"b" int32 1 Pool`, 1), 1)
	if lane(m, "a") != 0 || lane(m, "b") != 0 || mt.Spilled != 0 {
		t.Errorf("a %d, b %d, %+v", lane(m, "a"), lane(m, "b"), mt)
	}
}

// Code that nothing reaches has registers with numbers, even what nothing there has written.
func TestUnreachable(t *testing.T) {
	m, _ := colour(t, source("a b c", `one:
		RegisterMove SP (1:int32) -> ($a)
		UnconditionalBranch SP () -> () target="three"
		RegisterAlu SP ($b, $a) -> ($b) op=add`, `two:
		RegisterAlu SP ($c, $b) -> ($c) op=add
		UnconditionalBranch SP () -> () target="two"`, `three:
		TensorSave SP ($a) -> (%2 @0 1*1:int32)
		Return SP () -> ()
		RegisterMove SP ($c) -> ($b)`), 62)
	for _, v := range []string{"a", "b", "c"} {
		if lane(m, v) < 0 {
			t.Errorf("%s has no number", v)
		}
	}
}

func TestCalls(t *testing.T) {
	const call = `
		Call SP () -> () target="f"`
	text := source("a", `b:
		RegisterMove SP (1:int32) -> ($a)`+call+`
		TensorSave SP ($a) -> (%2 @0 1*1:int32)`)
	refused(t, text, target.Unsupported, "%a", "i2 (Call)")
	_, mt := colourOnly(t, source("a", `b:`+call+`
		RegisterMove SP (1:int32) -> ($a)
		TensorSave SP ($a) -> (%2 @0 1*1:int32)`+call), 62)
	if mt.Registers != 1 {
		t.Errorf("%+v", mt)
	}
}

func TestControlFlowErrors(t *testing.T) {
	refused(t, source("a", `b:
		RegisterMove SP (1:int32) -> ($a)
		Break SP () -> ()`), target.User, "i2", "no loop")
	refused(t, source("a", `b:
		RegisterMove SP (1:int32) -> ($a)
		UnconditionalBranch SP () -> ()`), target.User, "i2", "target")
}

// regions is a program of nested loops: one that asks for another turn behind its body, one that asks in front, a counted one.
func regions() string {
	text := source("c a b n k", `b:
		RegisterMove SP (3:int32) -> ($n)
		RegisterMove SP (1:int32) -> ($a)
		RegisterMove SP (1:int32) -> ($k)
		LOOP1
		TensorSave SP ($a) -> (%2 @0 1*1:int32)`)
	// The parser numbers instructions densely; those of the loops are written by hand.
	loop := `DoWhile SP (r1:int32) -> () {
    block "outer" {
      I-5 "o1" RegisterAlu SP (r4:int32, 1:int32) -> (r4:int32) op=subtract
      I-6 "dyn" DynamicForLoop SP (r4:int32) -> () {
      block "inner" {
        I-7 "p1" RegisterMove SP (r2:int32) -> (r3:int32)
        I-8 "count" Loop Unassigned () -> () axis i1 {
        block "counted" {
          I-9 "q1" RegisterAlu SP (r3:int32, r5:int32) -> (r3:int32) op=add
          I-10 "q2" CompareAndBranch SP (r3:int32, 9:int32) -> () comp_op=IS_GTIMM on_true="stop" on_false="next"
        }
        block "stop" {
          I-11 "q3" Break SP () -> ()
        }
        block "next" {
          I-12 "q4" RegisterMove SP (r3:int32) -> (r2:int32)
        }
        }
        I-13 "p2" RegisterAlu SP (r3:int32, r2:int32) -> (r2:int32) op=max
      }
      }
      I-14 "o2" RegisterAlu SP (r4:int32, 0:int32) -> (r1:int32) op=is_gt
    }
    }
    I-15`
	text = strings.Replace(text, "LOOP1\n    I-5", loop, 1)
	return text
}

func TestRegions(t *testing.T) {
	for _, lanes := range []int{62, 6, 5} {
		m, mt := colourOnly(t, regions(), lanes)
		// n, k, a and b are live together in the loops, which repeat; c and the sum share no lane with what goes round.
		if lanes == 62 && (mt.Spilled != 0 || lane(m, "n") == lane(m, "a") || lane(m, "k") == lane(m, "b") || lane(m, "n") == lane(m, "k")) {
			t.Errorf("n %d k %d a %d b %d, %+v", lane(m, "n"), lane(m, "k"), lane(m, "a"), lane(m, "b"), mt)
		}
	}
}

// Registers in addresses: those that stand alone are exchanged on the way to memory, those in expressions keep their names.
func TestRegistersInAddresses(t *testing.T) {
	text := source("a b c d e f", `b:
		RegisterMove SP (1:int32) -> ($a)
		RegisterMove SP (2:int32) -> ($b)
		RegisterMove SP (3:int32) -> ($c)
		RegisterMove SP (4:int32) -> ($d)
		RegisterMove SP (5:int32) -> ($e)
		TensorSave SP ($c) -> (regap(set 3 0+1 @0 1*1REGS):int32)
		TensorSave SP ($c) -> (sym(set 3 0+1 @0 1*1 addr e3):int32)
		RegisterAlu SP ($a, $b) -> ($a) op=add
		RegisterAlu SP ($a, $c) -> ($a) op=add
		RegisterAlu SP ($a, $d) -> ($a) op=add
		RegisterAlu SP ($a, $e) -> ($a) op=add
		TensorSave SP ($a) -> (%2 @0 1*1:int32)`)
	text = strings.Replace(text, "func \"main\"", "expr e1 reg r4\nexpr e2 reg r5\nexpr e3 affine 1 e1*2 e2*3\nfunc \"main\"", 1)
	if _, mt := colourOnly(t, strings.Replace(text, "REGS", " reg r1 subreg r2", 1), 5); mt.Spilled != 0 {
		t.Errorf("five lanes for five registers: %+v", mt)
	}
	text = strings.Replace(text, "REGS", " reg r1", 1)
	m, mt := colourOnly(t, text, 4)
	if mt.Spilled == 0 || m.Names.String(m.Regs.At(4).Name) != "d" || lane(m, "d") < 0 || lane(m, "e") < 0 {
		t.Errorf("%+v\n%s", mt, printed(m))
	}
}

// Slots of a placed function have addresses: in a gap of SBUF, or in DRAM when there is none.
func TestSlotsOfPlacedFunctions(t *testing.T) {
	placed := func(hole int) string {
		text := sum(12, "v")
		text = strings.Replace(text, "entry {", "entry sb_placed dram_placed {", 1)
		// s and a big tensor fill partition 0 but for a hole.
		size := 229376 - 16392 - 256 - hole
		return strings.Replace(text, "  %3 \"s\" SB 1 x 256 at 0\n", fmt.Sprintf(`  %%3 "s" SB 1 x 256 at 16392 allocated
  set "big" Internal NeuronSBTensor uint8 [1 %[1]d] part 0
  %%4 "big" SB 1 x %[1]d at 16648 allocated
  set "d" Internal Tensor uint8 [5000] part -1
  %%5 "d" DRAM 1 x 5000 at 4096 allocated
`, size), 1)
	}
	var ws Workspace
	var s sim.Sim
	for _, c := range []struct {
		hole  int
		space target.Space
		addr  int64
	}{{8192, target.SpaceSB, 229376 - 8192}, {8, target.SpaceDRAM, 12288}} {
		m := mustParse(t, placed(c.hole))
		mt, err := checked(t, m, &ws, &s, 4)
		if err != nil {
			t.Fatal(err)
		}
		l := m.Locs.At(6)
		if l.Space != c.space || l.Addr != c.addr || l.Flags&ir.LocAllocated == 0 || mt.SlotBytes <= 8 {
			t.Errorf("a hole of %d bytes: slots in %s at %d, %d bytes, flags %d", c.hole, l.Space, l.Addr, mt.SlotBytes, l.Flags)
		}
		if err := verify.Placement(m, m.Entry, target.SpaceSB, target.SpaceDRAM); err != nil {
			t.Error(err)
		}
	}
}

// Spill code takes a semaphore that nothing uses, and says so when there is none.
func TestSemaphores(t *testing.T) {
	text := sum(8, "v")
	used := strings.Replace(text, `-> (r1:int32)`, `-> (r1:int32) update s9 1 update s11 1`, 1)
	m, _ := colourOnly(t, used, 4)
	for _, i := range ops(m, ir.OpEventSemaphore) {
		if w := m.SyncOps.Of(m.Syncs.Get(i).Waits); w[0].Sem != 10 {
			t.Fatalf("%s waits for semaphore %d, want 10", m.InstName(i), w[0].Sem)
		}
	}
	all := ""
	for s := 9; s <= 15; s++ {
		all += fmt.Sprintf(" update s%d 1", s)
	}
	m = mustParse(t, strings.Replace(text, `-> (r1:int32)`, `-> (r1:int32)`+all, 1))
	var ws Workspace
	if _, err := Colour(m, m.Entry, &ws, Options{Lanes: 4}); target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "semaphore") {
		t.Errorf("no semaphore left: %v", err)
	}
	// A move that others wait for or depend on stays, though it does nothing any more.
	moved := source("a b", `b:
		RegisterMove SP (1:int32) -> ($a)
		RegisterMove SP ($a) -> ($b)
		TensorSave SP ($b) -> (%2 @0 1*1:int32)`)
	for _, more := range []string{"", " update s3 1", " wait s3 0 I-0"} {
		_, mt := colour(t, strings.Replace(moved, "-> (r2:int32)", "-> (r2:int32)"+more, 1), 62)
		if mt.Coalesced != 1 || mt.Dropped != b2i(more == "") {
			t.Errorf("%q: %+v", more, mt)
		}
	}
	_, mt := colour(t, strings.Replace(moved, "-> (%2 @0 1*1:int32)", "-> (%2 @0 1*1:int32) dep I-2 Ordered", 1), 62)
	if mt.Coalesced != 1 || mt.Dropped != 0 {
		t.Errorf("with a dependent: %+v", mt)
	}
}

// Long programs of many blocks, some of whose registers live through all of them, and of moves only: right with a full file and a
// small one.
func TestLongPrograms(t *testing.T) {
	for name, build := range map[string]func(*ir.Module){
		"blocks": func(m *ir.Module) { blocks(m, 300) },
		"window": func(m *ir.Module) { window(m, 2000, 60, target.EngineSP, target.EnginePool) },
		"moves":  func(m *ir.Module) { chain(m, 3000) },
	} {
		for _, lanes := range []int{62, 12} {
			var m ir.Module
			build(&m)
			var ws Workspace
			var g verify.Registers
			g.Remember(&m, m.Entry)
			mt, err := Colour(&m, m.Entry, &ws, Options{Lanes: lanes})
			if err != nil {
				t.Fatalf("%s, %d lanes: %v", name, lanes, err)
			}
			if err := g.Check(&m, lanes); err != nil {
				t.Errorf("%s, %d lanes: %v", name, lanes, err)
			}
			if name == "moves" && (mt.HighWater != 1 || mt.Dropped < 2900) {
				t.Errorf("a chain of moves: %+v", mt)
			}
		}
	}
}

// Deeply nested loops need no stack of calls.
func TestDeepLoops(t *testing.T) {
	const depth = 100_000
	m := mustParse(t, source("a", "b:\nRegisterMove SP (1:int32) -> ($a)"))
	block := m.BlocksOf(m.Entry)[0]
	order := m.OrderOf(block)
	outer := m.NewInst(block, ir.OpDoWhile, target.EngineSP, []ir.Arg{ir.RegArg(1, target.Int32)}, nil)
	m.SetOrder(block, []ir.Inst{order[0], outer})
	for range depth {
		b := m.Blocks.Add(ir.BlockRow{Func: m.Entry, Parent: outer})
		m.Regions.Set(outer, ir.RegionRow{Blocks: m.BlockList.Add(b)})
		inner := m.NewInst(b, ir.OpDoWhile, target.EngineSP, []ir.Arg{ir.RegArg(1, target.Int32)}, nil)
		m.Blocks.At(b).Order = m.Order.Add(inner)
		outer = inner
	}
	var ws Workspace
	if mt, err := Colour(m, m.Entry, &ws, Options{}); err != nil || mt.Registers != 1 || m.Regs.At(1).Phys != 0 {
		t.Errorf("%+v, %v", mt, err)
	}
}
