package machine

import (
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// part is a run of descriptors in flight: they proceed in order, the last one adds to a semaphore. A run that ends without
// an increment is a part as well, whose end nobody can learn.
type part struct {
	engine   uint8
	pc       uint32 // of the trigger
	next, hi uint32 // descriptors to do
	gather   uint32 // 1 + place in gathers of one that has no descriptors
}

// trigger puts the parts of the block of the decoded DMATrigger in flight.
func (m *Machine) trigger(e int, g *engine) error {
	b, err := m.layout.triggered(g)
	if err != nil {
		return err
	}
	lo := b.lo
	for i := b.lo; i < b.hi; i++ {
		if g.descs[i].SemInc > 0 || i+1 == b.hi {
			m.parts = append(m.parts, part{engine: uint8(e), pc: uint32(g.pc), next: lo, hi: i + 1})
			lo = i + 1
		}
	}
	m.stats.Transfers++
	return nil
}

// triggered finds the block of the decoded DMATrigger, whose queue set must be the bundle's and the engine's own.
func (l *layout) triggered(g *engine) (block, error) {
	b, ok := g.block(g.in.Block)
	if !ok {
		return b, target.Errorf(target.User, "block %d is not in the descriptor list of %s", g.in.Block, g.id)
	}
	q := &l.def.Queues[g.descs[b.lo].Queue]
	if string(g.in.NameBytes()) != q.Name || q.Owner != g.id {
		return b, target.Errorf(target.User, "block %d belongs to queue set %q of %s, not to %q of %s", b.id, q.Name, q.Owner, g.in.NameBytes(), g.id)
	}
	return b, nil
}

// advance moves one descriptor of part k, or all rows of a gather, and reports whether that was its last.
func (m *Machine) advance(k int) (bool, error) {
	p := &m.parts[k]
	g := &m.engines[p.engine]
	if p.gather != 0 {
		if err := m.moveRows(&m.gathers[p.gather-1]); err != nil {
			return false, &target.Error{Class: target.ClassOf(err), Subject: subject(err), Err: &placed{g.where(int(p.pc)), err}}
		}
		m.freeGathers = append(m.freeGathers, p.gather-1)
		m.land(k)
		return true, nil
	}
	d := &g.descs[p.next]
	if err := m.move(d); err != nil {
		i := p.next
		for i > 0 && g.descs[i-1].ID == d.ID {
			i--
		}
		return false, &target.Error{Class: target.ClassOf(err), Subject: subject(err),
			Err: &placed{"block " + itoa(int(d.ID)) + " descriptor " + itoa(int(p.next-i)) + " of " + g.where(int(p.pc)), err}}
	}
	if d.SemInc > 0 {
		m.setSem(d.Sem, m.sems[d.Sem]+int32(d.SemInc))
	}
	p.next++
	if p.next < p.hi {
		return false, nil
	}
	m.land(k)
	return true, nil
}

// land takes part k, which is complete, out of those in flight.
func (m *Machine) land(k int) {
	last := len(m.parts) - 1
	m.parts[k] = m.parts[last]
	m.parts = m.parts[:last]
}

// bindDescriptor makes the two accesses of a descriptor.
func (l *layout) bindDescriptor(d *neff.Desc, from, to *access) error {
	dtf, dtt := d.From.Dtype, d.To.Dtype
	switch d.Op {
	case neff.DMACopy:
		dtf = moveUnit(&d.From, &d.To)
		dtt = dtf
	case neff.DMACast, neff.DMAAdd, neff.DMAMin, neff.DMAMax:
		for _, s := range [2]*neff.Side{&d.From, &d.To} {
			if size := s.Dtype.Size(); size == 0 || int(s.Size[0])%size != 0 {
				return target.Errorf(target.User, "a run of %d bytes is not whole elements of %s", s.Size[0], s.Dtype)
			}
		}
	default:
		return target.NotSupported("DMA "+d.Op.String(), "descriptor operation %s is not simulated", d.Op)
	}
	if err := l.bindSide(from, &d.From, dtf, "source"); err != nil {
		return err
	}
	if err := l.bindSide(to, &d.To, dtt, "destination"); err != nil {
		return err
	}
	to.write = true
	return nil
}

// moveUnit is the widest integer type of which both runs hold a whole number: bytes move as such elements.
func moveUnit(a, b *neff.Side) target.Dtype {
	switch n := a.Size[0] | b.Size[0]; {
	case n%8 == 0:
		return target.Uint64
	case n%4 == 0:
		return target.Uint32
	case n%2 == 0:
		return target.Uint16
	}
	return target.Uint8
}

// move carries out one descriptor.
func (m *Machine) move(d *neff.Desc) error {
	var from, to access
	if err := m.layout.bindDescriptor(d, &from, &to); err != nil {
		return err
	}
	src, dst := &m.views[iSrc], &m.views[iDst]
	fs, ts := m.view(&from, src), m.view(&to, dst)
	if ts.fixed {
		return target.Errorf(target.User, "destination %s is read only", m.layout.name(to.space))
	}
	bytes := d.To.Bytes()
	m.steps += bytes >> stepShift
	if at, ok := fs.written(src, &m.stamp); !ok {
		return m.layout.unwritten("source", from.space, fs, at)
	}
	op := target.AluBypass
	switch d.Op {
	case neff.DMAAdd:
		op = target.AluAdd
	case neff.DMAMin:
		op = target.AluMin
	case neff.DMAMax:
		op = target.AluMax
	}
	if op == target.AluBypass {
		if err := kernel.Copy(&m.scratch, dst, src); err != nil {
			return err
		}
	} else {
		if at, ok := ts.written(dst, &m.stamp); !ok {
			return m.layout.unwritten("destination", to.space, ts, at)
		}
		if err := kernel.Accumulate(&m.scratch, op, dst, src); err != nil {
			return err
		}
	}
	ts.mark(dst, &m.stamp)
	m.stats.DMABytes += bytes
	return nil
}
