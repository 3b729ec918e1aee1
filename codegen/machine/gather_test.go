package machine

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

const (
	semIds, semTable, semRows, semOut = 20, 21, 22, 23

	gRows  = 40  // of the table
	gPitch = 100 // bytes from one row to the next
	gRow   = 96  // bytes that are taken of each, from byte 2 on
	gParts = 120
)

var (
	sbIds  = isa.SBAddr(8, 0x5000)
	sbRows = isa.SBAddr(0, 0x6000)
)

// gatherExample copies a table within DRAM, loads indices of 64 bits, gathers rows by their low words, and saves them. change
// edits the waits of a step, the gather itself is edited by edit.
func gatherExample(tb testing.TB, level int, change map[string]func(s *isa.Sync), edit func(in *isa.Inst)) *asm {
	a := newAsm(tb, level)
	vt, vi := a.variable("table", neff.VarInput, gRows*gPitch), a.variable("ids", neff.VarInput, 8*gParts)
	vy := a.variable("y", neff.VarOutput, gParts*gRow)
	vs := a.variable("scratch", neff.VarTmpBuf, 64+gRows*gPitch+256)
	do := func(name string, s isa.Sync) isa.Sync {
		if f := change[name]; f != nil {
			f(&s)
		}
		return s
	}
	wait := func(e int, name string, s isa.Sync) {
		if s = do(name, s); s.WaitMode != isa.WaitNone {
			a.wait(e, s.WaitSem, s.Value)
		}
	}
	a.dma(sp, isa.Sync{}, semIds, dram(vi, 0, gParts, 8, 8), a.sbSide(sbIds, gParts, 8))
	a.dma(sp, isa.Sync{}, semTable, dram(vt, 0, gRows, gPitch, gPitch), dram(vs, 64, gRows, gPitch, gPitch))
	wait(pool, "wait table", waitGE(semTable, 4))
	in := isa.Inst{Opcode: isa.OpIndirectDMA, Sync: do("gather", waitGE(semIds, 4)), DtSrc: target.Int32, Ptr: sbIds, Count: gParts, Count1: 1, Imm0: sbRows,
		Var: vs, VarOff: 64 + 2, Imm1: gRow / 2, Imm2: gRows, Steps: [4]int32{1, gPitch / 2}, Count2: 2, Sem: semRows, SemInc: 3}
	if edit != nil {
		edit(&in)
	}
	a.emit(pool, in)
	wait(act, "wait rows", waitGE(semRows, 3))
	a.dma(act, isa.Sync{}, semOut, a.sbSide(sbRows, gParts, gRow), dram(vy, 0, gParts, gRow, gRow))
	return a
}

func gatherInputs(idx func(p int) int64) (map[string][]byte, []byte) {
	table := make([]byte, gRows*gPitch)
	for i := range table {
		table[i] = byte(i * 7 / 3)
	}
	var ids, want []byte
	for p := range gParts {
		k := idx(p)
		ids = binary.LittleEndian.AppendUint64(ids, uint64(k))
		if r := int(int32(k)); r >= 0 && r < gRows {
			want = append(want, table[r*gPitch+2:][:gRow]...)
		}
	}
	return map[string][]byte{"table": table, "ids": ids}, want
}

func TestGatherRows(t *testing.T) {
	for _, level := range []int{20, 30, 40} {
		// First and last row, repeated rows, and a word above that does not count.
		in, want := gatherInputs(func(p int) int64 { return int64(p)<<33 + int64([]int{0, gRows - 1, p % gRows}[p%3]) })
		a := gatherExample(t, level, nil, nil)
		m := a.machine(in)
		for seed := range uint64(20) {
			if err := m.Run(seed); err != nil {
				t.Fatalf("level %d, seed %d: %v", level, seed, err)
			}
			if !bytes.Equal(m.Output("y"), want) {
				t.Fatalf("level %d, seed %d: wrong rows", level, seed)
			}
		}
		if s := m.Stats(); s.Transfers != 4 || s.DMABytes != 8*gParts+gRows*gPitch+2*gParts*gRow || s.Bundles[pool] != 2 {
			t.Errorf("%+v", s)
		}
		r := raceOf(t, a)
		if err := r.Err(); err != nil || r.Transfers != 4 {
			t.Errorf("level %d: %v, %+v", level, err, r)
		}
		if n := testing.AllocsPerRun(3, func() {
			if err := m.Run(3); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations a run", n)
		}
	}
}

func TestGatherFails(t *testing.T) {
	good, _ := gatherInputs(func(p int) int64 { return int64(p % gRows) })
	for _, c := range []struct {
		name  string
		edit  func(in *isa.Inst)
		idx   func(p int) int64
		words []string
	}{
		{"last row plus one", nil, func(p int) int64 { return int64(p/119) * gRows }, []string{"Pool 1: indirect_dma", "index 40 of partition 119 is out of [0, 40)"}},
		{"negative", nil, func(p int) int64 { return -1 }, []string{"index -1 of partition 0"}},
		{"bound", func(in *isa.Inst) { in.Imm2 = gRows - 1 }, nil, []string{"index 39 of partition 39 is out of [0, 39)"}},
		{"unwritten indices", func(in *isa.Inst) { in.Ptr = isa.SBAddr(0, 0x5100) }, nil, []string{"indices reads SBUF partition 0, byte 20736, which nothing wrote"}},
		{"unwritten rows", func(in *isa.Inst) { in.VarOff -= 4 }, nil, []string{"table reads byte 62 of scratch, which nothing wrote"}},
		{"beyond the variable", func(in *isa.Inst) { in.Imm2 = 1 << 20 }, nil, []string{"table covers bytes 66 to", "of scratch, which has 4320"}},
		{"steps that overflow", func(in *isa.Inst) { in.Imm2, in.Steps[1] = 1<<31-1, 1<<31-1 }, nil, []string{"table steps 4294967294 bytes 2147483647 times"}},
		{"before the variable", func(in *isa.Inst) { in.Steps[1] = -gPitch / 2 }, nil, []string{"table covers bytes -3834"}},
		{"no variable", func(in *isa.Inst) { in.Var = 99 }, nil, []string{"variable 99, which is no variable in DRAM"}},
		{"on chip", func(in *isa.Inst) { in.Var = 1 }, nil, []string{"variable 1, which is no variable in DRAM"}},
		{"scatter", func(in *isa.Inst) { in.Mode = 1 }, nil, []string{"a scatter of rows is not simulated"}},
		{"out of its partition by register", func(in *isa.Inst) { in.Imm0, in.Imm1 = isa.RegAddr(3), 1<<18 }, nil, []string{"rows covers partitions 0 to 120, bytes 0 to 524288"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := good
			if c.idx != nil {
				in, _ = gatherInputs(c.idx)
			}
			fails(t, gatherExample(t, 30, nil, c.edit).machine(in), c.words...)
		})
	}
	a := newAsm(t, 30)
	a.emit(dve, isa.Inst{Opcode: isa.OpIndirectDMA, DtSrc: target.Int32, Ptr: sbIds, Count: 1, Count1: 1, Imm0: sbRows, Var: 1, Imm1: 1, Imm2: 1, Count2: 4})
	fails(t, a.machine(nil), "indirect_dma does not run on DVE")
}

// What a gather touches must be ordered: its indices, every row that they may name, and its destination.
func TestRaceGather(t *testing.T) {
	type changes = map[string]func(*isa.Sync)
	drop := func(s *isa.Sync) { *s = isa.Sync{} }
	lower := func(s *isa.Sync) { s.Value-- }
	for _, c := range []struct {
		name  string
		f     func(*isa.Sync)
		words []string
	}{
		{"gather", drop, []string{"SBUF partitions 8 to", "write: block 1 of SP 0: dma_trigger", "read: rows of Pool 1: indirect_dma"}},
		{"gather", lower, []string{"write: block 1 of SP 0", "read: rows of Pool 1"}},
		{"wait table", drop, []string{"scratch bytes", "write: block 2 of SP 1", "read: rows of Pool 0: indirect_dma"}},
		{"wait rows", drop, []string{"SBUF partitions 0 to", "write: rows of Pool 1: indirect_dma", "read: block 1 of Activation 0"}},
		{"wait rows", lower, []string{"write: rows of Pool 1", "read: block 1 of Activation 1"}},
	} {
		a := gatherExample(t, 30, changes{c.name: c.f}, nil)
		wantError(t, raceOf(t, a).Err(), target.User, c.words...)
	}
	// Its own engine must wait for completion as well, before it writes over the indices or a row.
	over := func(wait bool) *asm {
		a := gatherExample(t, 30, nil, nil)
		if wait {
			a.wait(pool, semRows, 3)
		}
		a.emit(pool, isa.Inst{Opcode: isa.OpMemset, Dst: desc(isa.SBAddr(32, 0x5000), 1), DtDst: target.Int32, Parts: 32})
		return a
	}
	if err := raceOf(t, over(true)).Err(); err != nil {
		t.Error(err)
	}
	wantError(t, raceOf(t, over(false)).Err(), target.User, "SBUF partitions 32 to", "read: rows of Pool 1", "write: Pool 2: memset")
	row := func(off int) error {
		a := gatherExample(t, 30, nil, nil)
		a.dma(sp, isa.Sync{}, 40, dram(1+2, 0, 1, 2, 2), dram(6, off, 1, 2, 2))
		return raceOf(t, a).Err()
	}
	if err := row(64); err == nil { // written by the copy as well, but never gathered
		t.Error("two writes of one place without an order pass")
	}
	wantError(t, row(64+39*gPitch+20), target.User, "rows of Pool 1")
	if err := row(64 + gRows*gPitch); err != nil {
		t.Errorf("a write behind the table: %v", err)
	}
	// The next gather on the slot comes too early; one that nobody can await is refused.
	a := gatherExample(t, 30, nil, nil)
	in := isa.Inst{Opcode: isa.OpIndirectDMA, DtSrc: target.Int32, Ptr: sbIds, Count: 1, Count1: 1, Imm0: isa.SBAddr(0, 0x9000), Var: 3, Imm1: 1, Imm2: 1, Count2: 4, Sem: semRows, SemInc: 3}
	a.emit(pool, in)
	if r := raceOf(t, a); r.Early != 1 || r.Total != 0 {
		t.Errorf("%+v", r)
	}
	a = gatherExample(t, 30, nil, func(in *isa.Inst) { in.SemInc = 0 })
	_, err := Race(a.reread())
	wantError(t, err, target.User, "whose completion no semaphore reports")
}
