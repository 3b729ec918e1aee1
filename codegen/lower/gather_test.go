package lower

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/dma"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// A gather is one word in Pool's stream, without a descriptor block: it waits for its indices, and whoever reads its rows waits
// for the semaphore that it names.
func TestGatherWord(t *testing.T) {
	var p prog
	p.init(30, 4)
	m := &p.m
	table := p.b.DRAM(m.Names.Intern("table"), ir.KindInternal, target.BFloat16, 1000, 100)
	m.Locs.At(table).Flags |= ir.LocAllocated
	m.Locs.At(table).Addr = 1 << 20
	p.b.Emit(ir.OpSave, target.EngineSP, []ir.Arg{p.view(p.sb[3], target.BFloat16, 128, 0, row(100))}, []ir.Arg{p.b.Mem(table, target.BFloat16, 0, row(12800))})
	p.b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{p.b.Mem(p.in, target.Int32, 5, row(40))}, []ir.Arg{p.b.Chip(p.sb[0], target.Int32, 7, 40, 3, row(1))})
	rows := p.b.Mem(table, target.BFloat16, 10, ir.Pair{Step: 100, Num: 900}, row(64))
	g := p.b.Emit(ir.OpIndirectLoad, target.EnginePool, []ir.Arg{rows, p.b.Chip(p.sb[0], target.Int32, 7, 40, 3, row(1))},
		[]ir.Arg{p.b.Chip(p.sb[1], target.BFloat16, 2, 40, 16, row(64))})
	p.b.Emit(ir.OpSave, target.EngineSP, []ir.Arg{p.b.Chip(p.sb[1], target.BFloat16, 2, 40, 16, row(64))}, []ir.Arg{p.b.Mem(p.out, target.BFloat16, 0, row(40*64))})
	p.tail(t, false, dma.Options{})
	var file neff.Buffer
	if _, _, err := Write(m, p.b.Func, Options{Plain: true}, &p.enc, &file); err != nil {
		t.Fatal(err)
	}
	pkg, err := neff.ReadBytes(file.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	stream := pkg.Engines[0].Stream
	if len(pkg.Engines[0].Descs) != 0 || len(pkg.Engines[4].Descs) == 0 {
		t.Errorf("%d descriptors of Pool, %d of SP", len(pkg.Engines[0].Descs), len(pkg.Engines[4].Descs))
	}
	var in isa.Inst
	if err := isa.Decode(30, (*isa.Bundle)(stream[len(stream)-64:]), &in); err != nil {
		t.Fatal(err)
	}
	q := m.Queues.At(m.Insts.At(g).Queue)
	base := int(m.Gen.SBReserved)
	want := isa.Inst{Opcode: isa.OpIndirectDMA, DtSrc: target.Int32, Ptr: isa.SBAddr(7, uint32(base+12)), Count: 40, Count1: 1, Imm0: isa.SBAddr(2, uint32(base+512+32)),
		Var: pkg.Def.Vars[pkg.Def.VarRow("scratch")].ID, VarOff: 1<<20 + 20, Imm1: 64, Imm2: 900, Steps: [4]int32{1, 100}, Count2: 2,
		Sem: q.SemBase, SemInc: q.NumQueues, Sync: in.Sync}
	if in != want || in.Sync.WaitMode != isa.WaitGE || in.Sync.UpdateMode != isa.UpdateNone || q.NumQueues != 5 {
		t.Errorf("%d queues\n got %+v\nwant %+v", q.NumQueues, in, want)
	}
	sp := string(isa.DisasmStream(30, pkg.Engines[4].Stream, nil))
	if !strings.Contains(sp, "block=3 ; wait s16>=5") { // slot 0 of the loads of Pool, whose sets come first
		t.Errorf("the save does not wait for the rows:\n%s", sp)
	}
}
