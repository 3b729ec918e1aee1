package machine

import (
	"bytes"
	"io"
	"strconv"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Limits of a machine.
const (
	// MaxMemory bounds the DRAM bytes that a package may ask a machine to hold, without inputs and constants.
	MaxMemory = 6 << 30
	// DefaultSteps bounds a run. A bundle is a step, and so are 4 KiB that a descriptor moves.
	DefaultSteps = 1 << 34

	stepShift = 12
)

// Stats counts what the last run did.
type Stats struct {
	Bundles   [5]int64 // by engine, in the order of target.Sequencers
	Transfers int64
	DMABytes  int64
	MACs      int64 // an fp32 product counts both of its passes
	Steps     int64
}

// Machine is one core: memory, engines, semaphores. It serves one goroutine and may run a package many times, and one
// package after another: memory is kept.
type Machine struct {
	// MaxSteps bounds a run, DefaultSteps when zero.
	MaxSteps int64

	gen     *target.Generation
	layout  layout
	pkg     *neff.Package
	loaded  bool
	weights func(w *neff.Weight, v *neff.Var) ([]byte, error)

	stores  []store // SBUF, PSUM, then by variable row
	stamp   stamp
	engines [5]engine
	units   [5]unit
	ops     operands
	views   [numOperands]kernel.View
	scratch kernel.Scratch

	sems    [256]int32
	events  [256]bool
	asleep  [2][256]uint8 // engines that wait for a semaphore, for an event: one bit each
	ready   uint8
	parts   []part
	gathers []gather // in flight where a part names them; the others are in freeGathers
	steps   int64
	stats   Stats
	ran     bool
	sched   schedule
	rowOf   map[string]uint32
	streams [5][]byte

	freeGathers []uint32
}

// New makes a machine of a generation that has an instruction set.
func New(gen *target.Generation) (*Machine, error) {
	if gen == nil || !gen.CodeGen {
		name := "no generation"
		if gen != nil {
			name = gen.Name
		}
		return nil, target.NotSupported(name, "%s cannot run packages; use trn1, trn2 or trn3", name)
	}
	return &Machine{gen: gen}, nil
}

// Weights sets where constants come from that a package does not carry: f gives the bytes of the variable, made of the model
// tensor by the weight's recipe. The bytes are kept, not copied, and must not change.
func (m *Machine) Weights(f func(w *neff.Weight, v *neff.Var) ([]byte, error)) { m.weights = f }

// Load prepares a package for running. It is refused when it is for another generation, holds a variable or a descriptor
// that is out of bounds, or needs more memory than MaxMemory; constants that it does not carry are asked for here.
// The machine keeps views of the package.
func (m *Machine) Load(p *neff.Package) error {
	m.loaded, m.ran = false, false
	if p.Level != m.gen.Level {
		name := "level " + strconv.Itoa(p.Level)
		if g, ok := target.ByLevel(p.Level); ok {
			name = g.Name
		}
		return target.Errorf(target.User, "the package is for %s; this machine is %s (%s)", name, m.gen.Name, m.gen.Core)
	}
	m.pkg = p
	if err := m.layout.open(p, m.gen); err != nil {
		return err
	}
	for i, id := range target.Sequencers {
		stream, err := streamOf(&p.Engines[i], &m.streams[i])
		if err != nil {
			return err
		}
		m.engines[i].program(id, p.Level, &p.Engines[i], stream)
	}
	if err := m.allocate(); err != nil {
		return err
	}
	m.loaded = true
	return nil
}

// open checks a package and finds the home of each variable.
func (l *layout) open(p *neff.Package, gen *target.Generation) error {
	l.gen, l.def = gen, &p.Def
	l.home = append(l.home[:0], varHome{})
	scratch, many := uint32(0), false
	for row := 1; row < len(p.Def.Vars); row++ {
		if p.Def.Vars[row].Type == neff.VarTmpBuf {
			scratch, many = uint32(row), scratch != 0
		}
	}
	for row := 1; row < len(p.Def.Vars); row++ {
		v := &p.Def.Vars[row]
		if v.Size < 0 || v.Size > 1<<40 {
			return target.Errorf(target.Limit, "variable %q has %d bytes; 0 to 2^40 are possible", v.Name, v.Size)
		}
		h := varHome{space: uint32(row) + spaceVars}
		switch v.Type {
		case neff.VarStateBuffer, neff.VarInput, neff.VarOutput, neff.VarFile, neff.VarTmpBuf:
		case neff.VarVirtual:
			if scratch == 0 || many || v.BackingOff < 0 || v.BackingOff+v.Size > p.Def.Vars[scratch].Size {
				return target.Errorf(target.User, "virtual variable %q (%d bytes at %d) needs one tmp-buf that holds it", v.Name, v.Size, v.BackingOff)
			}
			h = varHome{scratch + spaceVars, v.BackingOff}
		default:
			return target.NotSupported(v.Type.String(), "variable %q of type %s is not simulated", v.Name, v.Type)
		}
		l.home = append(l.home, h)
	}
	for i, id := range target.Sequencers {
		if err := neff.CheckBlocks(p.Engines[i].Descs, &p.Def); err != nil {
			return &target.Error{Class: target.ClassOf(err), Err: &placed{id.String(), err}}
		}
	}
	return nil
}

// streamOf is the bytes of an engine's stream, produced into buf where the package has a generator.
func streamOf(p *neff.Program, buf *[]byte) ([]byte, error) {
	stream := p.Stream
	if p.Emit != nil {
		w := bytes.NewBuffer((*buf)[:0])
		if err := p.Emit(io.Writer(w)); err != nil {
			return nil, err
		}
		*buf = w.Bytes()
		stream = *buf
	}
	if len(stream)%isa.BundleSize != 0 {
		return nil, target.Errorf(target.User, "stream of %d bytes is not whole bundles", len(stream))
	}
	return stream, nil
}

// allocate gives every variable its bytes.
func (m *Machine) allocate() error {
	vars := m.pkg.Def.Vars
	for len(m.stores) < len(vars)+spaceVars {
		m.stores = append(m.stores, store{})
	}
	m.stores = m.stores[:len(vars)+spaceVars]
	g := m.gen
	if m.stores[spaceSB].data == nil {
		m.stores[spaceSB].resize(g.SBPartitions*(g.SBBytes+rowPad), g.SBBytes+rowPad)
		m.stores[spacePSUM].resize(g.PSUMParts*(g.PSUMBanks*g.BankBytes+rowPad), g.PSUMBanks*g.BankBytes+rowPad)
	}
	weights := map[string]*neff.Weight{}
	for i := range m.pkg.Weights {
		weights[m.pkg.Weights[i].Var] = &m.pkg.Weights[i]
	}
	m.rowOf = map[string]uint32{}
	total := int64(0)
	for row := 1; row < len(vars); row++ {
		v, st := &vars[row], &m.stores[row+spaceVars]
		m.rowOf[v.Name] = uint32(row)
		switch v.Type {
		case neff.VarOutput, neff.VarTmpBuf:
			if total += v.Size; total > MaxMemory {
				return target.Errorf(target.Limit, "variables need more than %d bytes of memory at %q (%d bytes)", int64(MaxMemory), v.Name, v.Size)
			}
			st.resize(int(v.Size), int(v.Size))
		case neff.VarInput:
			*st = store{fixed: true}
		case neff.VarFile:
			b, err := m.constant(v, weights[v.Name])
			if err != nil {
				return err
			}
			if int64(len(b)) != v.Size {
				return target.Errorf(target.User, "constant %q has %d bytes, its variable %d", v.Name, len(b), v.Size)
			}
			st.fix(b)
		default:
			*st = store{fixed: true}
		}
	}
	return nil
}

func (m *Machine) constant(v *neff.Var, w *neff.Weight) ([]byte, error) {
	b, err := m.pkg.Const(v)
	switch {
	case err != nil || b != nil || v.File != "":
		return b, err
	case w == nil:
		return nil, target.Errorf(target.User, "constant %q has neither a file nor a recipe", v.Name)
	case m.weights == nil:
		return nil, target.Errorf(target.User, "constant %q is made of the model tensor %q, which is not in the package; supply the weights", v.Name, w.Tensor)
	}
	return m.weights(w, v)
}

// SetInput gives an input variable its bytes, which are kept, not copied.
func (m *Machine) SetInput(name string, b []byte) error {
	row := m.rowOf[name]
	if !m.loaded || row == 0 || m.pkg.Def.Vars[row].Type != neff.VarInput {
		return target.Errorf(target.User, "the package has no input %q", name)
	}
	v := &m.pkg.Def.Vars[row]
	if int64(len(b)) != v.Size {
		return target.Errorf(target.User, "input %q takes %d bytes, got %d", name, v.Size, len(b))
	}
	m.stores[row+spaceVars].fix(b)
	return nil
}

// Output is the bytes of an output after a run that succeeded, else nil. They belong to the machine until the next run.
func (m *Machine) Output(name string) []byte {
	row := m.rowOf[name]
	if !m.ran || row == 0 || m.pkg.Def.Vars[row].Type != neff.VarOutput {
		return nil
	}
	return m.stores[row+spaceVars].data
}

// Stats is what the last run did.
func (m *Machine) Stats() Stats {
	s := m.stats
	s.Steps = m.steps
	return s
}

func itoa(i int) string { return strconv.Itoa(i) }
