package machine

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// actorDMA is the actor that stands for all parts in flight; the engines are actors 0 to 4.
const (
	actorDMA  = 5
	numActors = 6
)

// Orders of advancing. A seed draws one and its parameters.
const (
	orderBursts   = iota // a random actor for a random while
	orderSingle          // a random actor for one step
	orderDMALast         // engines first, in a fixed order; transfers only when no engine can move
	orderDMAFirst        // transfers as soon as they are triggered
	orderPriority        // a fixed order of actors: one engine runs as far ahead as it can
	orderShifting        // such an order, drawn again from time to time
	numOrders
)

// schedule draws who moves next.
type schedule struct {
	rng    *rand.Rand
	pcg    rand.PCG
	order  int
	first  [numActors]uint8
	shift  int  // steps until the order is drawn again
	newest bool // take the newest part, not a random one
}

func (s *schedule) seed(seed uint64) {
	s.pcg.Seed(seed, 0x726f736d6172)
	if s.rng == nil {
		s.rng = rand.New(&s.pcg)
	}
	s.order = int(seed % numOrders)
	s.newest = s.order != orderBursts && s.rng.IntN(2) == 0
	s.draw()
}

// draw makes a random order of actors, with the transfers where the order wants them.
func (s *schedule) draw() {
	for i := range s.first {
		s.first[i] = uint8(i)
	}
	s.rng.Shuffle(numActors, func(i, j int) { s.first[i], s.first[j] = s.first[j], s.first[i] })
	to := -1
	switch s.order {
	case orderDMALast:
		to = numActors - 1
	case orderDMAFirst:
		to = 0
	}
	if to >= 0 {
		for i, a := range s.first {
			if a == actorDMA {
				s.first[i], s.first[to] = s.first[to], s.first[i]
				break
			}
		}
	}
	s.shift = 1 + s.rng.IntN(1000)
}

// pick is an actor of the set, not empty, and for how many steps it may move.
func (s *schedule) pick(set uint8) (actor, burst int) {
	switch s.order {
	case orderBursts:
		return nth(set, s.rng.IntN(bits.OnesCount8(set))), 1 + s.rng.IntN(64)
	case orderSingle:
		return nth(set, s.rng.IntN(bits.OnesCount8(set))), 1
	case orderShifting:
		if s.shift--; s.shift < 0 {
			s.draw()
		}
	}
	for _, a := range s.first {
		if set>>a&1 != 0 {
			// An engine runs until it blocks unless somebody before it in the order may wake up; then one step at a time.
			if a == s.first[0] && a != actorDMA {
				return int(a), 64
			}
			return int(a), 1
		}
	}
	return 0, 1
}

func nth(set uint8, n int) int {
	for ; n > 0; n-- {
		set &= set - 1
	}
	return bits.TrailingZeros8(set)
}

// Run executes the loaded package from fresh memory with the interleaving of a seed. All inputs must be set. After success
// the outputs are complete.
func (m *Machine) Run(seed uint64) error {
	m.ran = false
	if !m.loaded {
		return target.Errorf(target.User, "no package is loaded")
	}
	for row := 1; row < len(m.pkg.Def.Vars); row++ {
		if v := &m.pkg.Def.Vars[row]; v.Type == neff.VarInput && v.Size > 0 && m.stores[row+spaceVars].data == nil {
			return target.Errorf(target.User, "no data for input %q", v.Name)
		}
	}
	m.restart()
	m.sched.seed(seed)
	if err := m.advanceAll(); err != nil {
		return err
	}
	if err := m.complete(); err != nil {
		return err
	}
	m.ran = true
	return nil
}

func (m *Machine) restart() {
	for i := range m.stores {
		m.stores[i].reset()
	}
	if !m.stamp.next() {
		for i := range m.stores {
			clear(m.stores[i].shadow[:cap(m.stores[i].shadow)])
		}
	}
	m.ready = 0
	for i := range m.engines {
		m.engines[i].restart()
		m.units[i].restart()
		if !m.engines[i].halted {
			m.ready |= 1 << i
		}
	}
	clear(m.sems[:])
	clear(m.events[:])
	m.asleep = [2][256]uint8{}
	m.parts, m.steps, m.stats = m.parts[:0], 0, Stats{}
	m.gathers, m.freeGathers = m.gathers[:0], m.freeGathers[:0]
}

// advanceAll moves actors until all engines have halted and all transfers are complete.
func (m *Machine) advanceAll() error {
	limit := m.MaxSteps
	if limit <= 0 {
		limit = DefaultSteps
	}
	for {
		set := m.ready
		if len(m.parts) > 0 {
			set |= 1 << actorDMA
		}
		if set == 0 {
			for i := range m.engines {
				if !m.engines[i].halted {
					return deadlock(&m.engines, m.steps, m.holds)
				}
			}
			return nil
		}
		actor, burst := m.sched.pick(set)
		if m.steps >= limit {
			return target.Errorf(target.Limit, "the run takes more than %d steps; raise the limit if the program is that long", limit)
		}
		if actor == actorDMA {
			k := len(m.parts) - 1
			if !m.sched.newest && k > 0 {
				k = m.sched.rng.IntN(len(m.parts))
			}
			for ; burst > 0; burst-- {
				m.steps++
				if done, err := m.advance(k); done || err != nil {
					if err != nil {
						return err
					}
					break
				}
			}
			continue
		}
		for ; burst > 0 && m.ready>>actor&1 != 0; burst-- {
			m.steps++
			if err := m.bundle(actor); err != nil {
				return m.engines[actor].fail(err)
			}
		}
	}
}

// bundle tries to execute the next bundle of an engine. One whose waits do not hold puts the engine to sleep.
func (m *Machine) bundle(e int) error {
	g := &m.engines[e]
	if err := g.fetch(); err != nil {
		return err
	}
	in := &g.in
	if in.Opcode == isa.OpBarrier && !g.arrived {
		g.arrived = true
		m.update(g)
	}
	if !m.pass(e, g) {
		m.ready &^= 1 << e
		return nil
	}
	r, err := g.runnable()
	if err != nil {
		return err
	}
	m.stats.Bundles[e]++
	if r.flags&isControl == 0 {
		err = m.execute(g, &m.units[e], r)
	} else {
		err = m.control(e, g)
	}
	if err != nil {
		return err
	}
	if in.Opcode != isa.OpBarrier {
		m.update(g)
	}
	g.step()
	if in.Opcode == isa.OpHalt || in.Opcode == isa.OpExit || in.Opcode == isa.OpReturn {
		g.halted = true
	}
	if g.halted {
		m.ready &^= 1 << e
	}
	return nil
}

// control executes a bundle without tensor operands.
func (m *Machine) control(e int, g *engine) error {
	in := &g.in
	switch in.Opcode {
	case isa.OpLoadActFuncSet:
		m.units[e].table = in.Set
	case isa.OpDMATrigger:
		return m.trigger(e, g)
	case isa.OpIndirectDMA:
		return m.gather(e, g)
	case isa.OpGroupReset:
		for s := range m.sems {
			if in.Mode == isa.ResetRange && s >= int(in.SemFirst) && s <= int(in.SemLast) ||
				in.Mode == isa.ResetMask && in.Mask[s/8]>>(s%8)&1 != 0 {
				m.setSem(uint8(s), 0)
			}
		}
	default:
		_, err := g.scalarOp()
		return err
	}
	return nil
}

// pass reports whether the waits of the decoded bundle hold; events that it waits for are then cleared. Otherwise the
// engine is noted as asleep on the first condition that does not hold.
func (m *Machine) pass(e int, g *engine) bool {
	ws, n := g.waits()
	for _, w := range ws[:n] {
		if w.mode == isa.WaitEvent {
			if !m.events[w.sem] {
				m.asleep[1][w.sem] |= 1 << e
				return false
			}
		} else if m.sems[w.sem] < w.value {
			m.asleep[0][w.sem] |= 1 << e
			return false
		}
	}
	for _, w := range ws[:n] {
		if w.mode == isa.WaitEvent {
			m.events[w.sem] = false
		}
	}
	return true
}

func (m *Machine) holds(w wait) (int64, bool) {
	if w.mode == isa.WaitEvent {
		return 0, m.events[w.sem]
	}
	return int64(m.sems[w.sem]), m.sems[w.sem] >= w.value
}

// update carries out the update of the decoded bundle.
func (m *Machine) update(g *engine) {
	s := &g.in.Sync
	switch s.UpdateMode {
	case isa.UpdateNone:
	case isa.UpdateEvent:
		m.events[s.UpdateSem] = true
		m.wake(1, s.UpdateSem)
	default:
		m.setSem(s.UpdateSem, updated(m.sems[s.UpdateSem], s.UpdateMode, g.updateValue()))
	}
}

func (m *Machine) setSem(s uint8, v int32) {
	m.sems[s] = v
	m.wake(0, s)
}

func (m *Machine) wake(kind int, s uint8) {
	m.ready |= m.asleep[kind][s]
	m.asleep[kind][s] = 0
}

// deadlock describes the engines that have not halted though no actor can move, nil when all have. holds gives the value of
// what a wait is for, and whether the wait holds.
func deadlock(engines *[5]engine, steps int64, holds func(w wait) (int64, bool)) error {
	var b strings.Builder
	for e := range engines {
		g := &engines[e]
		if g.halted {
			continue
		}
		fmt.Fprintf(&b, "\n  %s", g.where(g.pc))
		ws, n := g.waits()
		for _, w := range ws[:n] {
			switch v, ok := holds(w); {
			case ok:
			case w.mode == isa.WaitEvent:
				fmt.Fprintf(&b, "\n    waits for event %d, which is not set", w.sem)
			default:
				fmt.Fprintf(&b, "\n    waits for semaphore %d >= %d; it is %d", w.sem, w.value, v)
			}
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return target.Errorf(target.User, "deadlock after %d steps, no transfer in flight:%s", steps, b.String())
}

// complete demands that every byte of every output was written.
func (m *Machine) complete() error {
	for row := 1; row < len(m.pkg.Def.Vars); row++ {
		v, st := &m.pkg.Def.Vars[row], &m.stores[row+spaceVars]
		if v.Type != neff.VarOutput || v.Size == 0 {
			continue
		}
		all := kernel.Dense(st.data, 0, target.Uint8, 1, len(st.data), len(st.data))
		if at, ok := st.written(&all, &m.stamp); !ok {
			return target.Errorf(target.User, "the program ended without writing byte %d of output %q (%d bytes)", at, v.Name, v.Size)
		}
	}
	return nil
}
