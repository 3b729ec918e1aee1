package scalar

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"github.com/rosmar-compiler/rosmar/regalloc"
)

// source makes a program of SP registers, "a" for 32 bits and "A" for 64, and blocks of instructions. In an instruction $a stands
// for the operand of register a.
func source(regs string, blocks ...string) string {
	var w writer
	arg := map[string]string{}
	for _, name := range strings.Fields(regs) {
		d, width := "int32", 1
		if name == strings.ToUpper(name) {
			d, width = "int64", 2
		}
		arg[name] = fmt.Sprintf("r%d:%s", w.reg(name, d, width, "SP"), d)
	}
	for _, b := range blocks {
		name, body, _ := strings.Cut(b, ":")
		w.begin(name)
		for _, line := range strings.Split(strings.TrimSpace(body), "\n") {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			var out strings.Builder
			for k := 0; k < len(line); k++ {
				if line[k] != '$' {
					out.WriteByte(line[k])
					continue
				}
				n := k + 1
				for n < len(line) && (line[n] >= '0' && line[n] <= '9' || line[n]|0x20 >= 'a' && line[n]|0x20 <= 'z') {
					n++
				}
				out.WriteString(arg[line[k+1:n]])
				k = n - 1
			}
			w.emit("%s", out.String())
		}
	}
	return w.text("")
}

func mustParse(t *testing.T, text string) *ir.Module {
	t.Helper()
	m, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// colour runs the allocator on a program and proves the result.
func colour(t *testing.T, text string, lanes int) (*ir.Module, Metrics) {
	t.Helper()
	m := mustParse(t, text)
	var ws Workspace
	var s sim.Sim
	mt, err := checked(t, m, &ws, &s, lanes)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	mt.Scores = slices.Clone(mt.Scores)
	return m, mt
}

// lane is the place of a register, by its name.
func lane(m *ir.Module, name string) int {
	for _, row := range m.Regs.All() {
		if m.Names.String(row.Name) == name {
			return int(row.Phys)
		}
	}
	return -2
}

func ops(m *ir.Module, op ir.Opcode) (l []ir.Inst) {
	for b := range m.Blocks.All() {
		for _, i := range m.OrderOf(b) {
			if m.Insts.At(i).Op == op {
				l = append(l, i)
			}
		}
	}
	return l
}

// sum loads n registers, then adds them all up, so that n are live together.
func sum(n int, names string) string {
	regs, load, add := "", "", ""
	for k := range n {
		v := fmt.Sprintf("%s%d", names, k)
		regs += " " + v
		load += fmt.Sprintf("RegisterMove SP (%d:int32) -> ($%s)\n", k*k+1, v)
		if k > 0 {
			add += fmt.Sprintf("RegisterAlu SP ($%s0, $%s) -> ($%s0) op=add\n", names, v, names)
		}
	}
	return source(regs, "b:"+load+add+fmt.Sprintf("TensorSave SP ($%s0) -> (%%2 @0 1*1:int32)", names))
}

// Seed item 66: registers take one lane, or two side by side; locations are not touched.
func TestSeed66OnlyRegistersOneOrTwoLanes(t *testing.T) {
	m, mt := colour(t, source("a B C", `b:
		TensorLoad SP (%1 @0 1*1:int32) -> ($a)
		RegisterMove SP (5:int64) -> ($B)
		RegisterMove SP (6:int64) -> ($C)
		RegisterAlu SP ($B, $C) -> ($B) op=add is_64bit=true
		TensorSave SP ($B) -> (%2 @0 1*2:int32)
		TensorSave SP ($C) -> (%2 @2 1*2:int32)
		TensorSave SP ($a) -> (%2 @4 1*1:int32)`), 5)
	if mt.Registers != 3 || mt.HighWater != 5 {
		t.Errorf("%d registers in %d lanes, want 3 in 5", mt.Registers, mt.HighWater)
	}
	taken := map[int]bool{}
	for _, l := range []int{lane(m, "a"), lane(m, "B"), lane(m, "B") + 1, lane(m, "C"), lane(m, "C") + 1} {
		if l < 0 || taken[l] {
			t.Errorf("lane %d is taken twice", l)
		}
		taken[l] = true
	}
	for l, r := range m.Locs.All() {
		if r.Flags&ir.LocAllocated != 0 || r.Addr != 0 {
			t.Errorf("location %s was placed", m.LocName(l))
		}
	}
}

// Seed item 67: registers of all blocks are numbered in one flat order; pieces of a register without a path between them are values
// of their own; each round has its own ranges, graph and select.
func TestSeed67RoundsOverWebs(t *testing.T) {
	// a is two values, and so is b; they cross. With names kept, a and b would be live together throughout.
	text := source("a b", `one:
		RegisterMove SP (1:int32) -> ($a)
		TensorSave SP ($a) -> (%2 @0 1*1:int32)
		RegisterMove SP (2:int32) -> ($b)
		UnconditionalBranch SP () -> () target="two"`, `two:
		RegisterAlu SP ($b, 1:int32) -> ($a) op=add
		TensorSave SP ($b) -> (%2 @1 1*1:int32)
		TensorSave SP ($a) -> (%2 @2 1*1:int32)
		RegisterAlu SP ($a, 1:int32) -> ($b) op=add
		TensorSave SP ($b) -> (%2 @3 1*1:int32)`)
	_, mt := colour(t, text, 62)
	if mt.Values != 4 || mt.HighWater != 2 || mt.Rounds != 0 {
		t.Errorf("%+v; want 4 values in 2 lanes at once", mt)
	}
	// Spilling is followed by another round with ranges of its own, until one places everything.
	_, mt = colour(t, sum(12, "v"), 4)
	if mt.Rounds == 0 || len(mt.Scores) != mt.Rounds+1 || mt.Values <= 12 {
		t.Errorf("%+v; want rounds, each with a score, and more values than before", mt)
	}
}

// Seed item 68: what crosses blocks interferes with what is written there, and the ends of a move share a lane.
func TestSeed68AcrossBlocksAndMoves(t *testing.T) {
	m, mt := colour(t, source("a b c d", `one:
		TensorLoad SP (%1 @0 1*1:int32) -> ($a)
		CompareAndBranch SP ($a, 0:int32) -> () comp_op=IS_LTIMM on_true="two" on_false="three"`, `two:
		TensorLoad SP (%1 @1 1*1:int32) -> ($b)
		TensorSave SP ($b) -> (%2 @0 1*1:int32)
		UnconditionalBranch SP () -> () target="four"`, `three:
		TensorLoad SP (%1 @2 1*1:int32) -> ($c)
		TensorSave SP ($c) -> (%2 @1 1*1:int32)`, `four:
		RegisterMove SP ($a) -> ($d)
		RegisterAlu SP ($d, 1:int32) -> ($d) op=add
		TensorSave SP ($d) -> (%2 @2 1*1:int32)`), 62)
	if a := lane(m, "a"); a == lane(m, "b") || a == lane(m, "c") {
		t.Errorf("a lives across two and three: lanes a %d b %d c %d", a, lane(m, "b"), lane(m, "c"))
	}
	if lane(m, "a") != lane(m, "d") || mt.Coalesced != 1 || mt.Dropped != 1 || len(ops(m, ir.OpRegisterMove)) != 0 {
		t.Errorf("a %d, d %d, %+v: the move should be gone", lane(m, "a"), lane(m, "d"), mt)
	}
	// Both ends live on, and hold the same value.
	m, mt = colour(t, source("a b", `one:
		TensorLoad SP (%1 @0 1*1:int32) -> ($a)
		RegisterMove SP ($a) -> ($b)
		TensorSave SP ($b) -> (%2 @0 1*1:int32)
		TensorSave SP ($a) -> (%2 @1 1*1:int32)
		TensorSave SP ($b) -> (%2 @2 1*1:int32)`), 62)
	if lane(m, "a") != lane(m, "b") || mt.Dropped != 1 || mt.HighWater != 1 {
		t.Errorf("copies that both live: lanes %d and %d, %+v", lane(m, "a"), lane(m, "b"), mt)
	}
	// The source is made anew while the copy lives: they are not the same.
	_, mt = colour(t, source("a b n", `one:
		TensorLoad SP (%1 @0 1*1:int32) -> ($a)
		RegisterMove SP ($a) -> ($b)
		RegisterAlu SP ($a, 1:int32) -> ($a) op=add
		TensorSave SP ($b) -> (%2 @0 1*1:int32)
		TensorSave SP ($a) -> (%2 @1 1*1:int32)`), 62)
	if mt.HighWater != 2 {
		t.Errorf("a changes while its copy lives: %+v", mt)
	}
	// The same around a loop, where the write stands in front of the copy.
	m, _ = colour(t, source("a b n", `one:
		RegisterMove SP (0:int32) -> ($b)
		RegisterMove SP (3:int32) -> ($n)`, `loop:
		RegisterAlu SP ($n, $n) -> ($a) op=mult
		RegisterAlu SP ($a, $b) -> ($a) op=add
		RegisterMove SP ($a) -> ($b)
		RegisterAlu SP ($n, 1:int32) -> ($n) op=subtract
		CompareAndBranch SP ($n, 0:int32) -> () comp_op=IS_GTIMM on_true="loop" on_false="out"`, `out:
		TensorSave SP ($b) -> (%2 @0 1*1:int32)`), 62)
	if lane(m, "n") == lane(m, "b") {
		t.Error("a counter and a sum share a lane")
	}
}

// Seed item 69: each write adds the lanes of the register to its cost, more in loops.
func TestSeed69CostGrowsByLanes(t *testing.T) {
	cost := func(text, name string) int64 {
		m := mustParse(t, text)
		var ws Workspace
		if err := ws.analyse(m, m.Entry, uint32(m.Regs.Len())); err != nil {
			t.Fatal(err)
		}
		c := int64(0)
		for _, w := range ws.lives.webs {
			if m.Names.String(m.Regs.At(ir.Reg(w.reg)).Name) == name {
				c += w.cost
			}
		}
		return c
	}
	const write, wide = "RegisterMove SP (1:int32) -> ($a)\n", "RegisterMove SP (1:int64) -> ($A)\n"
	for n := 1; n < 4; n++ {
		if got := cost(source("a", "b:"+strings.Repeat(write, n)), "a"); got != int64(n) {
			t.Errorf("%d writes of one lane cost %d", n, got)
		}
		if got := cost(source("A", "b:"+strings.Repeat(wide, n)), "A"); got != int64(2*n) {
			t.Errorf("%d writes of two lanes cost %d", n, got)
		}
	}
	// Loops inside each other; beyond three they count no more.
	for depth := range 5 {
		loops := []string{"start:RegisterMove SP (1:int32) -> ($n)"}
		for d := range depth {
			loops = append(loops, fmt.Sprintf("l%d:", d))
		}
		loops = append(loops, "body:"+write)
		for d := depth - 1; d >= 0; d-- {
			loops = append(loops, fmt.Sprintf("e%d:CompareAndBranch SP ($n, 1:int32) -> () comp_op=IS_GTIMM on_true=\"l%d\" on_false=\"x%d\"", d, d, d), fmt.Sprintf("x%d:", d))
		}
		want := []int64{1, 10, 100, 1000, 1000}[depth]
		if got := cost(source("a n", loops...), "a"); got != want {
			t.Errorf("a write in %d loops costs %d, want %d", depth, got, want)
		}
	}
}

// Seed item 70: one select and one score a round; the rounds that are reported are those of spilling.
func TestSeed70OneScoreARound(t *testing.T) {
	_, mt := colour(t, sum(4, "v"), 62)
	if mt.Rounds != 0 || !slices.Equal(mt.Scores, []int64{0}) {
		t.Errorf("everything fits: %+v", mt)
	}
	_, mt = colour(t, sum(9, "v"), 4)
	if mt.Rounds < 1 || len(mt.Scores) != mt.Rounds+1 || mt.Scores[0] <= 0 || mt.Scores[mt.Rounds] != 0 {
		t.Errorf("spilling: %+v", mt)
	}
	_, again := colour(t, sum(9, "v"), 4)
	if !slices.Equal(again.Scores, mt.Scores) {
		t.Errorf("a second run scores %v, the first %v", again.Scores, mt.Scores)
	}
}

// Seed item 71: a spilled register has a slot in memory, a save behind each write, a reload in front of each read, and a wait behind
// either.
func TestSeed71SaveReloadWait(t *testing.T) {
	const n, lanes = 10, 4
	m, mt := colour(t, sum(n, "v"), lanes)
	saves, reloads := 0, 0
	for _, b := range m.BlocksOf(m.Entry) {
		order := m.OrderOf(b)
		for k, i := range order {
			r := m.Insts.At(i)
			if r.Flags&(ir.InstSpill|ir.InstReload) == 0 || r.Op == ir.OpEventSemaphore {
				continue
			}
			wait := m.Insts.At(order[k+1])
			up, w := m.SyncOps.Of(m.Syncs.Get(i).Updates), m.SyncOps.Of(m.Syncs.Get(order[k+1]).Waits)
			if wait.Op != ir.OpEventSemaphore || wait.Engine != target.EngineSP || len(up) != 1 || len(w) != 1 || up[0].Sem != w[0].Sem || w[0].From != i {
				t.Errorf("%s is not followed by its wait", m.InstName(i))
			}
			mem, reg := m.Outs(i)[0], m.Ins(i)[0]
			if r.Op == ir.OpTensorLoad {
				mem, reg = reg, mem
				reloads++
				if next := m.Ins(order[k+2]); !slices.ContainsFunc(next, func(a ir.Arg) bool { return a.Kind == ir.ArgReg && a.Ref == reg.Ref }) &&
					m.Insts.At(order[k+2]).Op != ir.OpTensorLoad {
					t.Errorf("%s is not in front of its read", m.InstName(i))
				}
			} else {
				saves++
				if prev := m.Outs(order[k-1]); len(prev) != 1 || prev[0].Ref != reg.Ref {
					t.Errorf("%s is not behind its write", m.InstName(i))
				}
			}
			if l := m.Locs.At(m.LocOf(mem)); l.Space != target.SpaceSB || !strings.HasPrefix(m.Names.String(l.Name), "registers.SP") {
				t.Errorf("%s touches %s", m.InstName(i), m.LocName(m.LocOf(mem)))
			}
		}
	}
	if saves != mt.Stores || reloads != mt.Reloads || saves < n-lanes || reloads < saves {
		t.Errorf("%d saves, %d reloads; reported %+v", saves, reloads, mt)
	}
	if err := verify.Sync(m, m.Entry); err != nil {
		t.Error(err)
	}
	// Values that do not live together share a slot: three sums one after the other need no more than one of them.
	one := mt.SlotBytes
	text := source("a0 a1 a2 a3 a4 a5 b0 b1 b2 b3 b4 b5", "b:"+body("a")+body("b"))
	if _, mt := colour(t, text, 4); mt.SlotBytes > one {
		t.Errorf("two sums of six take %d bytes of slots, one of ten %d", mt.SlotBytes, one)
	}
}

func body(v string) string {
	s := ""
	for k := range 6 {
		s += fmt.Sprintf("RegisterMove SP (%d:int32) -> ($%s%d)\n", k, v, k)
	}
	for k := range 5 {
		s += fmt.Sprintf("RegisterAlu SP ($%[1]s0, $%[1]s%[2]d) -> ($%[1]s0) op=add\n", v, k+1)
	}
	return s + fmt.Sprintf("TensorSave SP ($%s0) -> (%%2 @0 1*1:int32)\n", v)
}

// Seed item 72: registers that find no lane and cannot be spilled are fatal, by name.
func TestSeed72NoCandidateIsFatal(t *testing.T) {
	for _, c := range []struct {
		lanes int
		text  string
	}{
		{1, source("a b c", `b:
			RegisterMove SP (1:int32) -> ($a)
			RegisterMove SP (2:int32) -> ($b)
			RegisterAlu SP ($a, $b) -> ($c) op=add
			TensorSave SP ($c) -> (%2 @0 1*1:int32)`)},
		{1, source("A", `b:
			RegisterMove SP (1:int64) -> ($A)
			TensorSave SP ($A) -> (%2 @0 1*2:int32)`)},
		{3, source("A B C", `b:
			RegisterMove SP (1:int64) -> ($A)
			RegisterMove SP (2:int64) -> ($B)
			RegisterAlu SP ($A, $B) -> ($C) op=add is_64bit=true
			TensorSave SP ($C) -> (%2 @0 1*2:int32)`)},
	} {
		m := mustParse(t, c.text)
		var ws Workspace
		_, err := Colour(m, m.Entry, &ws, Options{Lanes: c.lanes})
		if target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "not enough spilling candidates") || !strings.Contains(err.Error(), "%") ||
			!strings.Contains(err.Error(), fmt.Sprintf("%d lanes, so", c.lanes)) {
			t.Errorf("%d lanes: %v", c.lanes, err)
		}
	}
}

// Seed item 73: the file is the target's, and spilling is reported in cycles, registers and percent.
func TestSeed73FileOfTheTarget(t *testing.T) {
	for _, level := range []int{20, 30, 40} {
		m := mustParse(t, sum(62, "v"))
		m.Gen, _ = target.ByLevel(level)
		var ws Workspace
		mt, err := Colour(m, m.Entry, &ws, Options{})
		if err != nil || mt.HighWater != m.Gen.Registers || mt.Utilisation != 100 || mt.Spilled != 0 || mt.SpillCycles != 0 {
			t.Errorf("%s: %d live registers: %+v, %v", m.Gen.Name, m.Gen.Registers, mt, err)
		}
		small := *m.Gen
		small.Registers = 20
		m = mustParse(t, sum(62, "v"))
		m.Gen = &small
		mt, err = Colour(m, m.Entry, &ws, Options{})
		if err != nil || mt.HighWater != 20 || mt.Utilisation != 100 || mt.Spilled < 42 || mt.SpillCycles <= 0 {
			t.Errorf("%s with a file of 20: %+v, %v", m.Gen.Name, mt, err)
		}
		// What is reported is what the instructions that came cost.
		want := int64(0)
		for _, op := range []ir.Opcode{ir.OpTensorLoad, ir.OpTensorSave} {
			for _, i := range ops(m, op) {
				if m.Insts.At(i).Flags&(ir.InstSpill|ir.InstReload) != 0 {
					want += 2*small.EngineCost(target.CostNone, target.EngineSP, 0) + small.EngineCost(target.CostElementwise, target.EngineSP, 1)
				}
			}
		}
		if mt.SpillCycles != want {
			t.Errorf("%d cycles reported, the instructions cost %d", mt.SpillCycles, want)
		}
	}
}

// The log has a banner, an attempt for each score, and what it took.
func TestLog(t *testing.T) {
	m := mustParse(t, sum(9, "v"))
	var ws Workspace
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	mt, err := Colour(m, m.Entry, &ws, Options{Lanes: 4, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2+len(mt.Scores) || !strings.Contains(lines[0], "allocating registers") {
		t.Fatalf("%d scores, and\n%s", len(mt.Scores), b.String())
	}
	for k, score := range mt.Scores {
		if !strings.Contains(lines[1+k], fmt.Sprintf("iteration=%d score=%d ", k, score)) {
			t.Errorf("%q: attempt %d scored %d", lines[1+k], k, score)
		}
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, fmt.Sprintf("spill_cycles=%d spilled=%d used_percent=100 ", mt.SpillCycles, mt.Spilled)) {
		t.Errorf("%q; %+v", last, mt)
	}
}

// The watchdog stops a fixpoint; the clock is the test's.
func TestWatchdog(t *testing.T) {
	now := time.Unix(0, 0)
	m := mustParse(t, sum(30, "v"))
	var ws Workspace
	_, err := Colour(m, m.Entry, &ws, Options{Lanes: 4, Watchdog: time.Second, Now: func() time.Time { now = now.Add(2 * time.Second); return now }})
	var late *regalloc.TimeoutError
	if !errors.As(err, &late) || late.What != "registers" {
		t.Errorf("beyond the limit: %v", err)
	}
}
