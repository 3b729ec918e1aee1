package sim

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Env supplies what a module does not hold: row-major bytes of the set's size. Input is asked for every input-like set,
// Const for every constant set whose bytes are the model's (ConstModel).
type Env struct {
	Input func(name string, size int64) ([]byte, error)
	Const func(c ir.Const, name string, size int64) ([]byte, error)
}

// Sim is the memory and engine state of one core. Usable as its zero value.
type Sim struct {
	sb, psum, dram store
	own            []store // by location
	actAcc, dveAcc [128]float32
	scratch        kernel.Scratch
	ops            operands
	turns          turns
	regs           registers
	place          []uint32 // by block: 1 + its place at the top of the function that runs

	// Steps is how many instructions a run may execute before it counts as one that does not end; 0 is DefaultSteps.
	Steps int
	// Executed counts instructions of the last run.
	Executed int
}

// Run executes the entry function of m from fresh memory.
func (s *Sim) Run(m *ir.Module, env Env) error {
	if m.Gen == nil {
		return target.Errorf(target.Bug, "module has no target")
	}
	if m.Entry == 0 {
		return target.Errorf(target.User, "module has no function to run")
	}
	if err := s.layout(m); err != nil {
		return err
	}
	if err := s.supply(m, env); err != nil {
		return err
	}
	clear(s.actAcc[:])
	clear(s.dveAcc[:])
	s.Executed = 0
	s.regs.reset(m)
	return s.blocks(m, m.Entry)
}

func wrap(m *ir.Module, i ir.Inst, err error) error {
	return &target.Error{Class: target.ClassOf(err), Err: instError{m.InstName(i), m.Insts.At(i).Op, err}}
}

type instError struct {
	name string
	op   ir.Opcode
	err  error
}

func (e instError) Error() string { return e.name + " (" + e.op.String() + "): " + e.err.Error() }
func (e instError) Unwrap() error { return e.err }

// supply fills inputs and constants.
func (s *Sim) supply(m *ir.Module, env Env) error {
	for set, r := range m.Sets.All() {
		var data []byte
		var err error
		name := m.Names.String(r.Name)
		if r.Count == 0 {
			continue
		}
		lr := m.Locs.At(r.First)
		size := lr.Bytes * int64(lr.Parts)
		switch {
		case r.Kind.IsInput():
			if env.Input == nil {
				return target.Errorf(target.User, "no data for input %q", name)
			}
			data, err = env.Input(name, size)
		case r.Kind == ir.KindConst && r.Const != 0:
			if c := m.Consts.At(r.Const); c.Kind == ir.ConstEmbedded {
				data = m.Bytes.Of(c.Data)
			} else if env.Const == nil {
				return target.Errorf(target.User, "no data for constant %q", name)
			} else {
				data, err = env.Const(r.Const, name, size)
			}
		default:
			continue
		}
		if err != nil {
			return err
		}
		if int64(len(data)) != size {
			return target.Errorf(target.User, "%q takes %d bytes (%s), got %d", name, size, set, len(data))
		}
		st, off := s.home(m, r.First)
		copy(st.data[off:], data)
		for j := range st.shadow[off : off+len(data)] {
			st.shadow[off+j] = 1
		}
	}
	return nil
}

// Bytes are the bytes of a DRAM location after a run, row-major. The slice belongs to the simulator.
func (s *Sim) Bytes(m *ir.Module, l ir.Loc) []byte {
	st, off := s.home(m, l)
	r := m.Locs.At(l)
	return st.data[off : off+int(r.Bytes)*int(r.Parts)]
}

// Written reports whether a run wrote every byte of a DRAM location.
func (s *Sim) Written(m *ir.Module, l ir.Loc) bool {
	st, off := s.home(m, l)
	r := m.Locs.At(l)
	for _, b := range st.shadow[off : off+int(r.Bytes)*int(r.Parts)] {
		if b == 0 {
			return false
		}
	}
	return true
}
