package sim

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// turns is the loops that are running.
type turns struct {
	stack []turn
	axes  []axisValue // by axis
	eval  ir.ExprEval
	row   ir.APRow // the symbolic pattern that was asked for last
}

type axisValue struct {
	at    int64
	bound bool
}

// turn is one running loop: its axis, what is left of it, and the place in its body.
type turn struct {
	axis   ir.Axis
	before axisValue // of the axis outside
	left   uint64    // turns after this one
	step   int64
	body   arena.Span // all blocks
	blocks arena.Span // left of this turn
	order  arena.Span // left of the block
}

// loop runs a loop and all loops in it.
func (s *Sim) loop(m *ir.Module, i ir.Inst) error {
	t := &s.turns
	t.stack = t.stack[:0]
	for len(t.axes) < m.Axes.Len() {
		t.axes = append(t.axes, axisValue{})
	}
	clear(t.axes)
	if err := t.enter(m, i); err != nil {
		return err
	}
	limit := s.limit()
	for steps := 0; len(t.stack) > 0; steps++ { // turns count too: a body may be empty
		if steps == limit {
			return target.Errorf(target.Limit, "a loop of more than %d turns and instructions; fewer turns, or raise the limit of the simulation", limit)
		}
		top := &t.stack[len(t.stack)-1]
		switch {
		case top.order.Len > 0:
			in := m.Order.Of(top.order)[0]
			top.order.Off++
			top.order.Len--
			var err error
			if m.Insts.At(in).Op.Is(ir.FlagRegion) {
				err = t.enter(m, in)
			} else {
				err = s.step(m, in)
			}
			if err != nil {
				return wrap(m, in, err)
			}
			s.Executed++
		case top.blocks.Len > 0:
			top.order = m.Blocks.At(m.BlockList.Of(top.blocks)[0]).Order
			top.blocks.Off++
			top.blocks.Len--
		case top.left > 0:
			top.left--
			top.blocks = top.body
			t.axes[top.axis].at += top.step
		default:
			t.axes[top.axis] = top.before
			t.stack = t.stack[:len(t.stack)-1]
		}
	}
	return nil
}

// enter begins a loop, unless it makes no turn.
func (t *turns) enter(m *ir.Module, i ir.Inst) error {
	op := m.Insts.At(i).Op
	r := m.Regions.Get(i)
	if op != ir.OpLoop {
		return target.NotSupported(op.String(), "%s cannot be simulated: how often it turns is known at run time only", op)
	}
	if r.Axis == 0 {
		return target.Errorf(target.User, "a loop without an axis")
	}
	a := m.Axes.At(r.Axis)
	n, ok := a.Trips()
	if !ok {
		return target.Errorf(target.User, "axis %s steps by 0 and never arrives", m.Names.String(a.Name))
	}
	if n > 0 {
		t.stack = append(t.stack, turn{axis: r.Axis, before: t.axes[r.Axis], left: n - 1, step: a.Step, body: r.Blocks, blocks: r.Blocks})
		t.axes[r.Axis] = axisValue{a.Lo, true}
	}
	return nil
}

func (t *turns) value(a ir.Axis) (lo, hi int64, ok bool) {
	if int(a) >= len(t.axes) {
		return 0, 0, false
	}
	v := t.axes[a]
	return v.at, v.at, v.bound
}

// pattern is the physical pattern of an operand: of a symbolic one, where the axes stand now. Valid until the next call.
func (s *Sim) pattern(m *ir.Module, a ir.Arg) (*ir.APRow, error) {
	switch a.Kind {
	case ir.ArgAP:
		return m.APs.At(a.AP()), nil
	case ir.ArgSym, ir.ArgSymPW:
		t := &s.turns
		sym := m.Syms.At(ir.Sym(a.Ref))
		addr, _, err := t.eval.Bounds(m, sym.Addr, t.value)
		if err != nil {
			return nil, err
		}
		row, ok := m.Resolve(sym, addr)
		if !ok {
			return nil, target.Errorf(target.User, "a pattern at element %d leaves the blocks of %s", sym.AP.Off+sym.APOffset+addr, m.Names.String(m.Sets.At(sym.Set).Name))
		}
		t.row = row
		return &t.row, nil
	}
	return nil, target.NotSupported("operand", "operand kind %d cannot be simulated; unroll loops first", a.Kind)
}
