package sim

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// DefaultSteps is how many instructions a run may execute: some ten seconds of scalar code, so that a loop that does not end is
// told from one that takes its time.
const DefaultSteps = 1 << 27

func (s *Sim) limit() int {
	if s.Steps == 0 {
		return DefaultSteps
	}
	return s.Steps
}

// blocks executes the top-level blocks of a function from the first one on: each falls into the next unless a branch says
// otherwise.
func (s *Sim) blocks(m *ir.Module, f ir.Func) error {
	limit := s.limit()
	list := m.BlocksOf(f)
	s.place = arena.Zeroed(s.place, m.Blocks.Len())
	for k, b := range list {
		s.place[b] = uint32(k + 1)
	}
	for at := 0; at < len(list); {
		next := at + 1
	order:
		for _, i := range m.OrderOf(list[at]) {
			if s.Executed >= limit {
				return wrap(m, i, target.Errorf(target.Limit, "the program goes on after %d instructions; a loop that does not end, or raise the limit of the simulation", limit))
			}
			s.Executed++
			switch r := m.Insts.At(i); r.Op {
			case ir.OpCompareAndBranch, ir.OpUnconditionalBranch:
				to, err := s.branch(m, i)
				if err != nil {
					return wrap(m, i, err)
				}
				if s.place[to] == 0 {
					return wrap(m, i, target.Errorf(target.User, "branches to block %q, which is not at the top of its function", m.Names.String(m.Blocks.At(to).Name)))
				}
				next = int(s.place[to]) - 1
				break order
			case ir.OpReturn, ir.OpExit, ir.OpHalt:
				return nil
			}
			if err := s.step(m, i); err != nil {
				return wrap(m, i, err)
			}
		}
		at = next
	}
	return nil
}

// branch is the block that a branch goes to.
func (s *Sim) branch(m *ir.Module, i ir.Inst) (ir.Block, error) {
	key := ir.KeyTarget
	if m.Insts.At(i).Op == ir.OpCompareAndBranch {
		taken, err := s.compare(m, i)
		if err != nil {
			return 0, err
		}
		if key = ir.KeyOnFalse; taken {
			key = ir.KeyOnTrue
		}
	}
	to := ir.Block(m.Attr(i, key))
	if to == 0 || int(to) >= m.Blocks.Len() {
		return 0, target.Errorf(target.User, "has no %s", key)
	}
	return to, nil
}

// compare evaluates the condition of a branch: LT, LE, EQ, NE, GE, GT against an immediate, then the same against a register.
func (s *Sim) compare(m *ir.Module, i ir.Inst) (bool, error) {
	ins := m.Ins(i)
	op := m.Attr(i, ir.KeyCompOp)
	if len(ins) != 2 || op >= 12 {
		return false, target.Errorf(target.User, "compares %d operands by condition %d; two and 0 to 11 are possible", len(ins), op)
	}
	a, err := s.regs.value(m, ins[0])
	if err != nil {
		return false, err
	}
	b, err := s.regs.value(m, ins[1])
	if err != nil {
		return false, err
	}
	return kernel.Compare(int(op%6), ins[0].Dtype, true, a, b)
}
