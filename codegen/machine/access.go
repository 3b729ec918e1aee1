package machine

import (
	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Spaces: SBUF, PSUM, then one for each row of the variable table.
const (
	spaceSB   = 0
	spacePSUM = 1
	spaceVars = 2
)

// access is one operand, whoever uses it: element (p, i) lies in partition part + p + Σ dp[d]·i_d at byte off + Σ step[d]·i_d
// there, index 0 fastest. DRAM has one partition. dp is zero but for descriptors, whose axes may cross partitions. A bound
// access lies inside its space.
type access struct {
	space uint32
	write bool
	dt    target.Dtype
	n     int // axes
	part  int
	parts int
	off   int
	dp    [kernel.Axes]int
	step  [kernel.Axes]int
	num   [kernel.Axes]int
}

// layout is the geometry of the memories that accesses are bound in.
type layout struct {
	gen *target.Generation
	def *neff.Def
	// home maps a variable to the space and the byte where it begins: itself at 0, but a virtual one lies in the scratch.
	home []varHome
}

type varHome struct {
	space uint32
	base  int64
}

// limit is the partitions of a space and the bytes of one.
func (l *layout) limit(space uint32) (parts, bytes int) {
	switch space {
	case spaceSB:
		return l.gen.SBPartitions, l.gen.SBBytes
	case spacePSUM:
		return l.gen.PSUMParts, l.gen.PSUMBanks * l.gen.BankBytes
	}
	return 1, int(l.def.Vars[space-spaceVars].Size)
}

// name is what messages call a space.
func (l *layout) name(space uint32) string {
	switch space {
	case spaceSB:
		return "SBUF"
	case spacePSUM:
		return "PSUM"
	}
	return l.def.Vars[space-spaceVars].Name
}

// constant reports a variable that programs only read.
func (l *layout) constant(space uint32) bool {
	if space < spaceVars {
		return false
	}
	t := l.def.Vars[space-spaceVars].Type
	return t == neff.VarInput || t == neff.VarFile
}

// check proves that the access lies inside its space.
func (l *layout) check(a *access, role string) error {
	parts, size := l.limit(a.space)
	p0, p1, lo, hi := a.part, a.part+a.parts, a.off, a.off+a.dt.Size()
	for d := 0; d < a.n; d++ {
		if w := a.dp[d] * (a.num[d] - 1); w < 0 {
			p0 += w
		} else {
			p1 += w
		}
		if w := a.step[d] * (a.num[d] - 1); w < 0 {
			lo += w
		} else {
			hi += w
		}
	}
	if p0 < 0 || p1 > parts || lo < 0 || hi > size {
		if parts == 1 {
			return target.Errorf(target.User, "%s covers bytes %d to %d of %s, which has %d", role, lo, hi, l.name(a.space), size)
		}
		return target.Errorf(target.User, "%s covers partitions %d to %d, bytes %d to %d of %s, which has %d × %d",
			role, p0, p1, lo, hi, l.name(a.space), parts, size)
	}
	return nil
}

// place takes apart a global on-chip address.
func (l *layout) place(a *access, addr uint32, role string) error {
	p, ok := isa.PlaceOf(addr)
	if !ok {
		return target.Errorf(target.User, "%s address 0x%X is in neither SBUF nor PSUM", role, addr)
	}
	a.space = spaceSB
	if p.Space == target.SpacePSUM {
		a.space = spacePSUM
	}
	a.part, a.off = p.Partition, int(p.Off)
	return nil
}

// bindDesc makes the access of a tensor descriptor on parts partitions.
func (l *layout) bindDesc(a *access, d *isa.Desc, regs *[64]uint32, dt target.Dtype, parts int, role string) error {
	addr := d.Addr
	switch {
	case addr&isa.AddrRegister != 0:
		addr = regs[addr&63]
	case addr&isa.AddrIndirect != 0:
		return target.NotSupported("indirect operand", "%s is an index list; gathering operands are not simulated", role)
	}
	a.dt, a.n, a.parts = dt, int(d.N), parts
	a.dp = [kernel.Axes]int{}
	if err := l.place(a, addr, role); err != nil {
		return err
	}
	size := dt.Size()
	for i := 0; i < a.n; i++ {
		a.step[i], a.num[i] = int(d.Step[i])*size, int(d.Num[i])
	}
	return l.check(a, role)
}

// bindColumn makes the access of a scalar a partition, or of n consecutive elements, at an address word.
func (l *layout) bindColumn(a *access, addr uint32, regs *[64]uint32, dt target.Dtype, parts, n int, role string) error {
	d := isa.Desc{Addr: addr, N: 1}
	d.Step[0], d.Num[0] = 1, uint32(n)
	return l.bindDesc(a, &d, regs, dt, parts, role)
}

// bindSide makes the access of one side of a descriptor, in elements of type dt, of which the side's run holds a whole number.
// On chip the side walks global addresses: each axis moves by the partitions and bytes by which its second element differs
// from its first.
func (l *layout) bindSide(a *access, s *neff.Side, dt target.Dtype, role string) error {
	if s.Var == 0 || int(s.Var) >= len(l.home) || s.N < 1 || int(s.N) > len(s.Size) {
		return target.Errorf(target.User, "%s names variable %d of %d, with %d pairs", role, s.Var, len(l.home)-1, s.N)
	}
	v := &l.def.Vars[s.Var]
	h := l.home[s.Var]
	size := dt.Size()
	*a = access{space: h.space, dt: dt, n: int(s.N), parts: 1}
	a.num[0], a.step[0] = int(s.Size[0])/size, size
	pitch := 0
	switch {
	case v.Type != neff.VarStateBuffer:
		a.off = int(s.Off + h.base)
	default:
		if s.Off < 0 || s.Off > 1<<32-1 {
			return target.Errorf(target.User, "%s address %d is in neither SBUF nor PSUM", role, s.Off)
		}
		if err := l.place(a, uint32(s.Off), role); err != nil {
			return err
		}
		pitch = target.SBPartitionPitch
		if a.space == spacePSUM {
			pitch = target.PSUMPartitionPitch
		}
		if name := v.Name; (name == neff.SBVar) != (a.space == spaceSB) {
			return target.Errorf(target.User, "%s address 0x%X is not in %s", role, s.Off, name)
		}
	}
	for i := 1; i < a.n; i++ {
		a.num[i], a.step[i] = int(s.Size[i]), int(s.Step[i])
		if a.num[i] < 1 || a.step[i] > 1<<40 || a.step[i] < -1<<40 {
			return target.Errorf(target.User, "%s pair %d is (%d, %d)", role, i, s.Step[i], s.Size[i])
		}
		if pitch != 0 && a.num[i] > 1 {
			to := a.off + a.step[i]
			a.dp[i] = to / pitch
			if to < 0 && to%pitch != 0 {
				a.dp[i]--
			}
			a.step[i] -= a.dp[i] * pitch
		}
	}
	if v.Type == neff.VarVirtual {
		own := *a
		own.space, own.off = s.Var+spaceVars, int(s.Off)
		if err := l.check(&own, role); err != nil {
			return err
		}
	}
	return l.check(a, role)
}

// view is the access as a window on its store.
func (m *Machine) view(a *access, v *kernel.View) *store {
	st := &m.stores[a.space]
	v.Data, v.Dtype, v.N = st.data, a.dt, a.n
	v.Off = a.part*st.pitch + a.off
	v.Parts, v.PStep = a.parts, st.pitch
	v.Nums = a.num
	for d := 0; d < a.n; d++ {
		v.Steps[d] = a.step[d] + a.dp[d]*st.pitch
	}
	return st
}
