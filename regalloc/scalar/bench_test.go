package scalar

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// window builds n registers of which live are live together, spread over engines: register k is written, and read again when
// the next live registers of its engine are.
func window(m *ir.Module, n, live int, engines ...target.Engine) {
	m.Reset()
	m.Gen, _ = target.ByLevel(30)
	var b ir.Builder
	b.NewFunc(m, "main", "b")
	name := m.Names.Intern("v")
	span := live / len(engines)
	regs := make([]ir.Reg, n)
	for k := range n {
		e := engines[k%len(engines)]
		regs[k] = m.Regs.Add(ir.RegRow{Name: name, Dtype: target.Int32, Width: 1, Engine: e, Phys: -1})
		if old := k - span*len(engines); old >= 0 {
			b.Emit(ir.OpRegisterAlu, e, []ir.Arg{ir.RegArg(regs[old], target.Int32), ir.ImmI32(1)}, []ir.Arg{ir.RegArg(regs[k], target.Int32)},
				ir.Enum(ir.KeyOp, target.AluAdd))
		} else {
			b.Emit(ir.OpRegisterMove, e, []ir.Arg{ir.ImmI32(int32(k))}, []ir.Arg{ir.RegArg(regs[k], target.Int32)})
		}
	}
	b.Close()
	m.Funcs.At(b.Func).Regs = m.RegList.AddSlice(regs)
}

// throughout builds one register that is written once and read n times.
func throughout(m *ir.Module, n int) {
	m.Reset()
	m.Gen, _ = target.ByLevel(30)
	var b ir.Builder
	b.NewFunc(m, "main", "b")
	name := m.Names.Intern("v")
	add := func() ir.Reg {
		return m.Regs.Add(ir.RegRow{Name: name, Dtype: target.Int32, Width: 1, Engine: target.EngineSP, Phys: -1})
	}
	regs := []ir.Reg{add()}
	b.Emit(ir.OpRegisterMove, target.EngineSP, []ir.Arg{ir.ImmI32(1)}, []ir.Arg{ir.RegArg(regs[0], target.Int32)})
	for range n {
		r := add()
		regs = append(regs, r)
		b.Emit(ir.OpRegisterAlu, target.EngineSP, []ir.Arg{ir.RegArg(regs[0], target.Int32), ir.ImmI32(1)}, []ir.Arg{ir.RegArg(r, target.Int32)},
			ir.Enum(ir.KeyOp, target.AluAdd))
	}
	b.Close()
	m.Funcs.At(b.Func).Regs = m.RegList.AddSlice(regs)
}

// chain builds n moves, each from the one before.
func chain(m *ir.Module, n int) {
	var b ir.Builder
	m.Reset()
	m.Gen, _ = target.ByLevel(30)
	b.NewFunc(m, "main", "b")
	name := m.Names.Intern("v")
	var regs []ir.Reg
	for k := range n {
		regs = append(regs, m.Regs.Add(ir.RegRow{Name: name, Dtype: target.Int32, Width: 1, Engine: target.EngineSP, Phys: -1}))
		from := ir.ImmI32(1)
		if k > 0 {
			from = ir.RegArg(regs[k-1], target.Int32)
		}
		b.Emit(ir.OpRegisterMove, target.EngineSP, []ir.Arg{from}, []ir.Arg{ir.RegArg(regs[k], target.Int32)})
	}
	b.Close()
	m.Funcs.At(b.Func).Regs = m.RegList.AddSlice(regs)
}

// blocks builds n blocks that branch to one of the next two, with 40 registers live through all of them, each of which is written
// again in every 40th block, and two that live within each block.
func blocks(m *ir.Module, n int) {
	const wide = 40
	m.Reset()
	m.Gen, _ = target.ByLevel(30)
	name := m.Names.Intern("v")
	f := m.Funcs.Add(ir.FuncRow{Name: m.Names.Intern("main")})
	m.Entry = f
	var regs []ir.Reg
	reg := func() ir.Arg {
		r := m.Regs.Add(ir.RegRow{Name: name, Dtype: target.Int32, Width: 1, Engine: target.EngineSP, Phys: -1})
		regs = append(regs, r)
		return ir.RegArg(r, target.Int32)
	}
	var list []ir.Block
	for range n + 2 {
		list = append(list, m.Blocks.Add(ir.BlockRow{Func: f}))
	}
	var live [wide]ir.Arg
	var order []ir.Inst
	add := func(b ir.Block, op ir.Opcode, ins, outs []ir.Arg, attrs ...ir.Attr) {
		order = append(order, m.NewInst(b, op, target.EngineSP, ins, outs, attrs...))
	}
	for k := range live {
		live[k] = reg()
		add(list[0], ir.OpRegisterMove, []ir.Arg{ir.ImmI32(1)}, live[k:k+1])
	}
	for k := range n {
		b := list[k]
		x, y := reg(), reg()
		plus := ir.Enum(ir.KeyOp, target.AluAdd)
		add(b, ir.OpRegisterAlu, []ir.Arg{live[k%wide], live[(k+7)%wide]}, []ir.Arg{x}, plus)
		add(b, ir.OpRegisterAlu, []ir.Arg{x, live[(k+11)%wide]}, []ir.Arg{y}, plus)
		add(b, ir.OpRegisterAlu, []ir.Arg{x, y}, live[k%wide:k%wide+1], plus)
		add(b, ir.OpCompareAndBranch, []ir.Arg{y, ir.ImmI32(0)}, nil, ir.Int(ir.KeyCompOp, 0),
			ir.Int(ir.KeyOnTrue, int64(list[k+1])), ir.Int(ir.KeyOnFalse, int64(list[k+2])))
		m.Blocks.At(b).Order = m.Order.AddSlice(order)
		order = order[:0]
	}
	for k := range live {
		add(list[n+1], ir.OpRegisterAlu, []ir.Arg{live[k], ir.ImmI32(1)}, live[k:k+1], ir.Enum(ir.KeyOp, target.AluAdd))
	}
	m.Blocks.At(list[n+1]).Order = m.Order.AddSlice(order)
	r := m.Funcs.At(f)
	r.Blocks, r.Regs = m.BlockList.AddSlice(list), m.RegList.AddSlice(regs)
}

// uncolour takes the numbers back.
func uncolour(m *ir.Module) {
	for _, r := range m.Regs.All() {
		r.Phys = -1
	}
}

// A second function through one workspace allocates nothing when nothing spills.
func TestSteadyState(t *testing.T) {
	loops := mustParse(t, regions())
	big := &ir.Module{}
	window(big, 5000, 100, target.EngineSP, target.EngineDVE)
	var ws Workspace
	many := &ir.Module{}
	blocks(many, 500)
	for _, m := range []*ir.Module{loops, big, many} {
		pass := func() {
			uncolour(m)
			if mt, err := Colour(m, m.Entry, &ws, Options{}); err != nil || mt.Rounds > 0 {
				t.Fatalf("%+v, %v", mt, err)
			}
		}
		pass()
		if n := testing.AllocsPerRun(3, pass); n != 0 {
			t.Errorf("%v allocations a run, want 0", n)
		}
	}
}

func measure(b *testing.B, n int, build func(*ir.Module)) {
	var m ir.Module
	var ws Workspace
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		build(&m)
		b.StartTimer()
		if _, err := Colour(&m, m.Entry, &ws, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/reg")
}

// BenchmarkGrowth: registers in one block, 100 live together, on two engines so that all find lanes; and on one, where 38 do not.
func BenchmarkGrowth(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run("fit/"+strconv.Itoa(n), func(b *testing.B) {
			measure(b, n, func(m *ir.Module) { window(m, n, 100, target.EngineSP, target.EngineDVE) })
		})
	}
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run("spill/"+strconv.Itoa(n), func(b *testing.B) {
			measure(b, n, func(m *ir.Module) { window(m, n, 100, target.EngineSP) })
		})
	}
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("throughout/%d", n), func(b *testing.B) { measure(b, n, func(m *ir.Module) { throughout(m, n) }) })
	}
	for _, n := range []int{5_000, 50_000} {
		b.Run(fmt.Sprintf("blocks/%d", 2*n), func(b *testing.B) { measure(b, 2*n, func(m *ir.Module) { blocks(m, n) }) })
	}
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("moves/%d", n), func(b *testing.B) { measure(b, n, func(m *ir.Module) { chain(m, n) }) })
	}
}
