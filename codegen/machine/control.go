package machine

import (
	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// wait is one condition of a bundle.
type wait struct {
	mode, sem uint8
	value     int32
}

// waits lists the conditions of the decoded bundle, registers resolved.
func (g *engine) waits() (w [2]wait, n int) {
	in := &g.in
	if in.Sync.WaitMode != isa.WaitNone {
		w[n] = g.wait(in.Sync.WaitMode, in.Sync.WaitSem, in.Sync.Value)
		n++
	}
	if in.Wait1Mode != isa.WaitNone {
		w[n] = g.wait(in.Wait1Mode, in.Wait1Sem, in.Wait1Value)
		n++
	}
	return w, n
}

func (g *engine) wait(mode, sem uint8, v uint32) wait {
	if mode == isa.WaitGEReg {
		v = g.regs[v&63]
	}
	return wait{mode, sem, int32(v)}
}

// updateValue is the amount of the bundle's update.
func (g *engine) updateValue() int32 {
	if g.in.Opcode == isa.OpEventSemaphore {
		return int32(g.in.UpdateValue)
	}
	return int32(g.in.Sync.Value)
}

// updated is the value of a semaphore after an update.
func updated(sem int32, mode uint8, v int32) int32 {
	switch mode {
	case isa.UpdateInc:
		return sem + 1
	case isa.UpdateDec:
		return sem - 1
	case isa.UpdateAdd:
		return sem + v
	case isa.UpdateSub:
		return sem - v
	case isa.UpdateWrite:
		return v
	}
	return sem
}

// scalarOp executes register moves and arithmetic and branches. It reports whether the bundle was one and, for a branch that
// is taken, moves the pc.
func (g *engine) scalarOp() (done bool, err error) {
	in := &g.in
	switch in.Opcode {
	case isa.OpRegisterMove:
		if in.Imm0Src == 0 {
			g.regs[in.RegDst] = g.regs[in.RegA]
		} else {
			g.regs[in.RegDst] = uint32(in.Imm64)
			if in.Mode == 2 {
				g.regs[in.RegDst1] = uint32(in.Imm64 >> 32)
			}
		}
	case isa.OpRegisterAlu:
		right := g.regs[in.RegB]
		if in.Imm0Src == 1 {
			right = uint32(in.Imm64)
		}
		v, err := kernel.Register(in.Op0, in.DtSrc, false, uint64(g.regs[in.RegA]), uint64(right))
		if err != nil {
			return true, err
		}
		g.regs[in.RegDst] = uint32(v)
	case isa.OpBranch:
		taken, err := g.compare()
		if err != nil {
			return true, err
		}
		if taken {
			if in.Target > uint64(g.n) {
				return true, target.Errorf(target.User, "branch to bundle %d of %d", in.Target, g.n)
			}
			g.pc = int(in.Target) - 1 // step adds one
		}
	default:
		return false, nil
	}
	return true, nil
}

// compare evaluates the condition of a branch: LT, LE, EQ, NE, GE, GT in this order.
func (g *engine) compare() (bool, error) {
	in := &g.in
	if in.Cmp == isa.CmpAlways {
		return true, nil
	}
	left, right, k := g.regs[in.RegA], uint32(in.Base), in.Cmp-isa.CmpLTImm
	if in.Cmp >= isa.CmpLTReg {
		right, k = g.regs[in.RegB], in.Cmp-isa.CmpLTReg
	}
	return kernel.Compare(int(k), in.DtSrc, false, uint64(left), uint64(right))
}
