package lower

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/dma"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa/deps"
)

// one is a single instruction on operands of many shapes.
type one struct {
	name  string
	level int // least generation
	emit  func(p *prog) ir.Inst
	err   string // part of the refusal, empty for none
	class target.Class
}

// small operands: x, y, z of 64 partitions × 32 elements in SBUF, ps in PSUM, col a [p,1] column.
func (p *prog) view(l ir.Loc, d target.Dtype, parts int, off int64, free ...ir.Pair) ir.Arg {
	return p.b.Chip(l, d, 0, parts, off, free...)
}

func row(n uint32) ir.Pair { return ir.Pair{Step: 1, Num: n} }

var ops = []one{
	{name: "activation, vectors", emit: func(p *prog) ir.Inst {
		x := p.view(p.sb[0], target.Float32, 64, 0, row(32))
		return p.b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{x, p.view(p.sb[1], target.Float32, 64, 5, row(1)), p.view(p.sb[2], target.Float32, 64, 6, row(1))},
			[]ir.Arg{p.view(p.sb[3], target.BFloat16, 64, 0, row(32))}, ir.Int(ir.KeyFunc, int64(target.ActExp)))
	}},
	{name: "activation, alpha and sum", emit: func(p *prog) ir.Inst {
		x := p.view(p.psum[0], target.Float32, 64, 0, row(32))
		return p.b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{x, ir.ImmF32(0.5), ir.ImmF32(2), ir.ImmF32(0.25)},
			[]ir.Arg{p.view(p.sb[3], target.Float32, 64, 0, row(32)), p.view(p.sb[4], target.Float32, 64, 0, row(1))},
			ir.Int(ir.KeyFunc, int64(target.ActLrelu)), ir.Int(ir.KeyAcc, int64(target.AccZeroAccumulate)), ir.Int(ir.KeyReduceOp, int64(target.AluAdd)))
	}},
	{name: "activation, folded with max", level: 40, emit: func(p *prog) ir.Inst {
		x := p.view(p.sb[0], target.Float32, 64, 0, row(32))
		return p.b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{x, ir.ImmF32(0.5)}, []ir.Arg{p.view(p.sb[3], target.Float32, 64, 0, row(32))},
			ir.Int(ir.KeyFunc, int64(target.ActIdentity)), ir.Int(ir.KeyAcc, int64(target.AccZeroAccumulate)), ir.Int(ir.KeyReduceOp, int64(target.AluMax)))
	}},
	{name: "activation accumulator", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpActivationReadAccumulator, target.EngineAct, nil, []ir.Arg{p.view(p.sb[4], target.Float32, 64, 3, row(1))})
	}},
	{name: "copy", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, ir.Pair{Step: 8, Num: 4}, ir.Pair{Step: 2, Num: 4})},
			[]ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(16))})
	}},
	{name: "copy with a cast", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpTensorCopy, target.EnginePool, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(16))},
			[]ir.Arg{p.view(p.sb[1], target.BFloat16, 64, 0, row(16))})
	}},
	{name: "tensor-tensor", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(16)), p.view(p.psum[1], target.Float32, 64, 0, row(16))},
			[]ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(16))}, ir.Int(ir.KeyOp, int64(target.AluMult)))
	}},
	{name: "tensor-tensor on bits", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Int32, 64, 0, row(16)), p.view(p.sb[2], target.Int32, 64, 0, row(16))},
			[]ir.Arg{p.view(p.sb[1], target.Int32, 64, 0, row(16))}, ir.Int(ir.KeyOp, int64(target.AluBitXor)))
	}},
	{name: "tensor-scalar", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(16))}, []ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(16))},
			ir.Int(ir.KeyOp0, int64(target.AluSub)), ir.Float(ir.KeyConst0, 3), ir.Bool(ir.KeyReverse0, true), ir.Int(ir.KeyOp1, int64(target.AluMax)), ir.Float(ir.KeyConst1, -1))
	}},
	{name: "tensor-scalar by vectors", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpTensorScalarPtr, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(16)), p.view(p.sb[2], target.Float32, 64, 1, row(1)), ir.ImmI32(7)},
			[]ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(16))}, ir.Int(ir.KeyOp0, int64(target.AluMult)), ir.Int(ir.KeyOp1, int64(target.AluAdd)))
	}},
	{name: "scalar-tensor-tensor", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpTensorScalarPtr, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(16)), ir.ImmF32(2), p.view(p.sb[2], target.Float32, 64, 0, row(16))},
			[]ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(16))}, ir.Int(ir.KeyOp0, int64(target.AluMult)), ir.Int(ir.KeyOp1, int64(target.AluSub)),
			ir.Bool(ir.KeyReverse1, true), ir.Bool(ir.KeyIsScalarTensorTensor, true))
	}},
	{name: "scan", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpTensorScalarPtr, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(16)), ir.ImmF32(1), p.view(p.sb[2], target.Float32, 64, 0, row(16))},
			[]ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(16))}, ir.Int(ir.KeyOp0, int64(target.AluMult)), ir.Int(ir.KeyOp1, int64(target.AluAdd)),
			ir.Bool(ir.KeyIsTensorTensorScan, true))
	}},
	{name: "reduce two axes, one of them unit", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpTensorReduce, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, ir.Pair{Step: 16, Num: 4}, ir.Pair{Step: 1, Num: 16}, ir.Pair{Step: 1, Num: 1})},
			[]ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(4))}, ir.Int(ir.KeyOp, int64(target.AluMax)), ir.Int(ir.KeyAxis, int64(ir.AxisXY)), ir.Bool(ir.KeyNegate, true))
	}},
	{name: "pool", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpPool, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, ir.Pair{Step: 16, Num: 3}, ir.Pair{Step: 2, Num: 4}, ir.Pair{Step: 8, Num: 2}, row(2))},
			[]ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(12))}, ir.Int(ir.KeyPoolFunc, int64(ir.PoolAvg)))
	}},
	{name: "reciprocal", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpReciprocal, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(16))}, []ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(16))})
	}},
	{name: "memset of a frame", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{p.view(p.sb[0], target.BFloat16, 64, 3, ir.Pair{Step: 9, Num: 6}, ir.Pair{Step: 8, Num: 2})},
			ir.Int(ir.KeyConstant, 0x13F80))
	}},
	{name: "iota over split axes", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpIota, target.EnginePool, nil, []ir.Arg{p.view(p.sb[0], target.Int32, 64, 0, row(32))},
			p.m.IntsAttr(ir.KeyPattern, 0, 4, 1, 8), ir.Int(ir.KeyBase, 5), ir.Int(ir.KeyChannelMultiplier, 32))
	}},
	{name: "affine select", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpTensorScalarAffineSelect, target.EnginePool, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(32))}, []ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(32))},
			p.m.IntsAttr(ir.KeyPattern, -1, 32), ir.Int(ir.KeyChannelMultiplier, 1), ir.Int(ir.KeyCompareOp, int64(target.AluGE)), ir.Float(ir.KeyFillValue, -30000))
	}},
	{name: "range select", level: 30, emit: func(p *prog) ir.Inst {
		c := p.view(p.sb[2], target.Float32, 64, 0, row(1))
		return p.b.Emit(ir.OpRangeSelect, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(32)), c, c}, []ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(32))},
			ir.Int(ir.KeyCompareOp0, int64(target.AluGE)), ir.Int(ir.KeyCompareOp1, int64(target.AluLT)), ir.Float(ir.KeyFillValue, -1))
	}},
	{name: "copy where", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpCopyPredicated, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(32)), p.view(p.sb[2], target.Uint8, 64, 0, row(32))},
			[]ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(32))}, ir.Bool(ir.KeyReversePred, true))
	}},
	{name: "max", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpMax, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(32))}, []ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(8))})
	}},
	{name: "max index", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpMaxIndex, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(32)), p.view(p.sb[2], target.Float32, 64, 0, row(8))},
			[]ir.Arg{p.view(p.sb[1], target.Uint32, 64, 0, row(8))})
	}},
	{name: "match replace", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpMatchReplace, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(32)), p.view(p.sb[2], target.Float32, 64, 0, row(8))},
			[]ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(32))}, ir.Float(ir.KeyImmValue, -1e30))
	}},
	{name: "batch statistics", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpBNStats, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(32))}, []ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(6))})
	}},
	{name: "aggregate statistics", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpBNStatsAggregate, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(12))}, []ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(2))})
	}},
	{name: "transpose blocks", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpStreamTranspose, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(32))}, []ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(32))})
	}},
	{name: "DVE accumulator", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpDveReadAccumulator, target.EngineDVE, nil, []ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(1))})
	}},
	{name: "exponential", level: 40, emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpExponential, target.EngineDVE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(32)), p.view(p.sb[2], target.Float32, 64, 0, row(1))},
			[]ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(32)), p.view(p.sb[3], target.Float32, 64, 0, row(1))}, ir.Int(ir.KeyReduceCmd, int64(target.AccZeroAccumulate)))
	}},
	{name: "matmul, float32", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(32)), p.view(p.sb[1], target.Float32, 64, 0, row(20))},
			[]ir.Arg{p.view(p.psum[0], target.Float32, 20, 0, row(32))}, ir.Int(ir.KeyAccumulationFlag, 3))
	}},
	{name: "matmul in the lower half", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{p.b.Chip(p.sb[0], target.BFloat16, 64, 60, 0, row(32)), p.b.Chip(p.sb[1], target.BFloat16, 64, 60, 0, row(32))},
			[]ir.Arg{p.b.Chip(p.psum[0], target.Float32, 96, 32, 0, row(32))}, ir.Int(ir.KeyAccumulationFlag, 3))
	}},
	{name: "transpose by matmul", emit: func(p *prog) ir.Inst {
		d := target.BFloat16
		if !p.m.Gen.ExactTranspose {
			d = target.Float32
		}
		return p.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{p.view(p.sb[0], target.BFloat16, 64, 0, row(32)), p.view(p.sb[1], target.BFloat16, 64, 0, row(32))},
			[]ir.Arg{p.view(p.psum[0], d, 32, 0, row(32))}, ir.Int(ir.KeyAccumulationFlag, 3), ir.Bool(ir.KeyIsTranspose, true))
	}},
	{name: "transpose of float32 by matmul", emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{p.view(p.sb[0], target.Float32, 64, 0, row(32)), p.view(p.sb[1], target.Float32, 64, 0, row(32))},
			[]ir.Arg{p.view(p.psum[0], target.Float32, 32, 0, row(32))}, ir.Int(ir.KeyAccumulationFlag, 3), ir.Bool(ir.KeyIsTranspose, true))
	}},

	{name: "no address", err: "has no address", class: target.Bug, emit: func(p *prog) ir.Inst {
		l := p.b.SB(p.m.Names.Intern("lost"), target.Float32, 64, 16)
		return p.b.Emit(ir.OpReciprocal, target.EngineDVE, []ir.Arg{p.view(l, target.Float32, 64, 0, row(16))}, []ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(16))})
	}},
	{name: "four free axes", err: "axes", class: target.Bug, emit: func(p *prog) ir.Inst {
		v := func(l ir.Loc) ir.Arg {
			return p.view(l, target.Float32, 64, 0, ir.Pair{Step: 60, Num: 2}, ir.Pair{Step: 20, Num: 2}, ir.Pair{Step: 8, Num: 2}, ir.Pair{Step: 2, Num: 2})
		}
		return p.b.Emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{v(p.sb[0]), v(p.sb[2])}, []ir.Arg{v(p.sb[1])}, ir.Int(ir.KeyOp, int64(target.AluAdd)))
	}},
	{name: "select", err: "Select has no encoding", class: target.Unsupported, emit: func(p *prog) ir.Inst {
		v := p.view(p.sb[0], target.Float32, 64, 0, row(16))
		return p.b.Emit(ir.OpSelect, target.EngineDVE, []ir.Arg{v, v, v}, []ir.Arg{p.view(p.sb[1], target.Float32, 64, 0, row(16))})
	}},
	{name: "immediate beyond a float", err: "is not a float32", class: target.Unsupported, emit: func(p *prog) ir.Inst {
		v := p.view(p.sb[0], target.Int32, 64, 0, row(16))
		return p.b.Emit(ir.OpTensorScalarPtr, target.EngineDVE, []ir.Arg{v, ir.ImmI32(0x7FFFFFFF)}, []ir.Arg{p.view(p.sb[1], target.Int32, 64, 0, row(16))},
			ir.Int(ir.KeyOp0, int64(target.AluBitAnd)))
	}},
	{name: "mixed matmul", err: "32-bit floats pair only", class: target.Unsupported, emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{p.view(p.sb[0], target.BFloat16, 64, 0, row(32)), p.view(p.sb[1], target.Float32, 64, 0, row(20))},
			[]ir.Arg{p.view(p.psum[0], target.Float32, 20, 0, row(32))}, ir.Int(ir.KeyAccumulationFlag, 3))
	}},
	{name: "pattern across axes", err: "does not divide", class: target.Unsupported, emit: func(p *prog) ir.Inst {
		return p.b.Emit(ir.OpIota, target.EnginePool, nil, []ir.Arg{p.view(p.sb[0], target.Int32, 64, 0, ir.Pair{Step: 40, Num: 3}, row(4))},
			p.m.IntsAttr(ir.KeyPattern, 1, 4, 1, 3))
	}},
}

// Every opcode of the IR, one at a time, on the three generations: what it becomes, and what is refused.
func TestEncodeOps(t *testing.T) {
	var p prog
	for _, level := range []int{20, 30, 40} {
		var text strings.Builder
		for _, o := range ops {
			if o.level > level {
				continue
			}
			p.init(level, 5)
			i := o.emit(&p)
			p.tail(t, false, dma.Options{})
			if err := p.enc.begin(&p.m, p.b.Func); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			n, err := p.enc.walk(p.m.Insts.At(i).Engine, &out)
			if o.err != "" {
				if err == nil || !strings.Contains(err.Error(), o.err) || target.ClassOf(err) != o.class || !strings.Contains(err.Error(), p.m.InstName(i)) {
					t.Errorf("%s: error %v (%s), want %s with %q", o.name, err, target.ClassOf(err), o.class, o.err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s on %d: %v", o.name, level, err)
				continue
			}
			count, err := p.enc.walk(p.m.Insts.At(i).Engine, nil)
			if err != nil || count != n || int64(out.Len()) != 64*n {
				t.Errorf("%s: %d bundles counted (%v), %d written in %d bytes", o.name, count, err, n, out.Len())
			}
			fmt.Fprintf(&text, "%s\n", o.name)
			for at := 0; at < out.Len(); at += 64 {
				b := isa.Bundle([]byte(out.String()[at : at+64]))
				var in isa.Inst
				if err := isa.Decode(level, &b, &in); err != nil {
					t.Errorf("%s: %v", o.name, err)
				}
				fmt.Fprintf(&text, "  %s\n", isa.Disasm(level, &b, nil))
			}
		}
		golden(t, fmt.Sprintf("ops-%d.txt", level), text.String())
	}
}

// Many waits: the last is inline, the others two by two in front.
func TestWaitsInFront(t *testing.T) {
	var p prog
	p.init(30, 10)
	for k := range 6 {
		p.load(p.sb[k], k)
	}
	for k := 5; k > 0; k-- {
		p.add(target.EngineDVE, p.sb[6], p.sb[k], p.sb[k-1])
	}
	p.tail(t, false, dma.Options{})
	if err := p.enc.begin(&p.m, p.b.Func); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := p.enc.walk(target.EngineDVE, &out); err != nil {
		t.Fatal(err)
	}
	var waits []string
	for at := 0; at < out.Len(); at += 64 {
		b := isa.Bundle([]byte(out.String()[at : at+64]))
		var in isa.Inst
		if err := isa.Decode(30, &b, &in); err != nil {
			t.Fatal(err)
		}
		waits = append(waits, fmt.Sprintf("%s %d %d", in.Opcode, in.Sync.WaitSem, in.Wait1Sem))
	}
	// Loads sit in slots 16..21 of qSPld; each addition needs one more.
	want := "event_semaphore 20 0,tensor_tensor 21 0,tensor_tensor 19 0,tensor_tensor 18 0,tensor_tensor 17 0,tensor_tensor 16 0"
	if got := strings.Join(waits, ","); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Whenever a load of the weights is left out, the array holds the bytes that the operand has at that point of the schedule.
func TestWeightReuse(t *testing.T) {
	var p prog
	reused := 0
	rapid.Check(t, func(t *rapid.T) {
		p.init(30, 4)
		m := &p.m
		loc := func() ir.Loc { return rapid.SampledFrom(p.sb).Draw(t, "sb") }
		for k := range rapid.IntRange(1, 40).Draw(t, "n") {
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0:
				p.load(loc(), k)
			case 1:
				p.add(target.EngineDVE, loc(), loc(), loc())
			default:
				d := target.BFloat16
				w := p.b.Chip(loc(), d, 0, 128, int64(64*rapid.IntRange(0, 1).Draw(t, "half")), row(64))
				x := p.b.Chip(loc(), d, 0, 128, 0, row(128))
				y := p.b.Chip(rapid.SampledFrom(p.psum).Draw(t, "psum"), target.Float32, 0, 64, 0, row(128))
				p.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{x, w}, []ir.Arg{y}, ir.Int(ir.KeyAccumulationFlag, 3))
			}
		}
		p.tail(t, rapid.Bool().Draw(t, "schedule"), dma.Options{})
		if err := p.enc.begin(m, p.b.Func); err != nil {
			t.Fatal(err)
		}
		p.enc.weights = weightState{}
		var held ir.APRow
		stale := true
		for _, i := range m.OrderOf(p.b.Block) {
			r := m.Insts.At(i)
			if r.Op == ir.OpMatmult {
				p.enc.insts = p.enc.insts[:0]
				if err := p.enc.encode(i, r); err != nil {
					t.Fatal(err)
				}
				w := *m.APs.At(m.Ins(i)[1].AP())
				if p.enc.insts[0].Opcode == isa.OpLoadWeights {
					held, stale = w, false
				} else {
					reused++
					if held != w || stale {
						t.Fatalf("%s multiplies by %s, the array holds %s, overwritten: %v", m.InstName(i), m.LocName(w.Loc), m.LocName(held.Loc), stale)
					}
				}
				continue
			}
			for _, o := range m.Outs(i) {
				f, g := m.FootprintOf(o.AP()), m.Footprint(&held)
				stale = stale || held.Loc != 0 && f.Overlaps(&g)
			}
		}
	})
	if reused == 0 && !testing.Short() {
		t.Error("no load was ever left out")
	}
}

func TestEncodeAllocatesNothing(t *testing.T) {
	var p prog
	p.chain(200)
	p.tail(t, true, dma.Options{})
	if err := p.enc.begin(&p.m, p.b.Func); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(3, func() {
		for _, e := range target.Sequencers {
			if _, err := p.enc.walk(e, io.Discard); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	// Blocks too, once their storage stands.
	if _, _, err := Package(&p.m, p.b.Func, Options{}, &p.enc); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(3, func() {
		var st Stats
		if err := p.enc.blocksOf(&st); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for descriptors", n)
	}
}

func BenchmarkEncode(b *testing.B) {
	var p prog
	const n = 5000
	p.chain(n)
	p.tail(b, true, dma.Options{})
	if err := p.enc.begin(&p.m, p.b.Func); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, e := range target.Sequencers {
			if _, err := p.enc.walk(e, io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(4*n)*float64(b.N)/b.Elapsed().Seconds(), "inst/s")
}

// From edges to the bytes of the package: everything after placement.
func BenchmarkTail(b *testing.B) {
	var p prog
	const n = 5000
	p.chain(n)
	p.tail(b, true, dma.Options{})
	order := append([]ir.Inst(nil), p.m.OrderOf(p.b.Block)...)
	b.ReportAllocs()
	for b.Loop() {
		m, f := &p.m, p.b.Func
		m.SetOrder(p.b.Block, order)
		if err := deps.Build(m, f, &p.deps); err != nil {
			b.Fatal(err)
		}
		if err := p.retail(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(4*n)*float64(b.N)/b.Elapsed().Seconds(), "inst/s")
}
