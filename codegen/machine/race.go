package machine

import (
	"fmt"
	"strings"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// maxRaceSteps bounds the bundles that Race executes: programs that branch may run on for ever.
const maxRaceSteps = 1 << 28

// maxReported is how many conflicts and early reuses a report spells out.
const maxReported = 16

// Site is one of the two accesses of a conflict.
type Site struct {
	Engine target.Engine // that made the access, or triggered the transfer
	PC     int           // bundle index in its stream
	Block  uint32        // the transfer's descriptor block, 0 for a bundle and for a gather of rows
	Write  bool
	Text   string // engine, index, disassembled bundle
}

// Conflict is two accesses to the same bytes, one a write, that no semaphore orders. Partitions and bytes are those of one
// place where they meet.
type Conflict struct {
	First, Second Site // in the order in which Race met them, which says nothing about a run
	Memory        string
	P0, P1        int
	Lo, Hi        int
}

// Reuse is a transfer that was triggered before its engine knew that the one before it on the same ring semaphore was
// complete: counts then no longer say which transfer they are of.
type Reuse struct {
	Semaphore     uint8
	First, Second Site
}

// Report is the result of a race check.
type Report struct {
	Conflicts []Conflict // the first few
	Reuses    []Reuse
	Total     int64 // conflicts found; neighbouring bytes of the same two accesses count once
	Early     int64 // reuses found

	Bundles, Transfers, Accesses int64
}

// Err is nil for a program without conflicts and early reuses, else an error that lists the first of them.
func (r *Report) Err() error {
	if r.Total == 0 && r.Early == 0 {
		return nil
	}
	var b strings.Builder
	for i := range r.Reuses {
		u := &r.Reuses[i]
		fmt.Fprintf(&b, "\n  ring slot reused early: semaphore %d\n    %s\n    is not known to be complete at\n    %s", u.Semaphore, u.First.Text, u.Second.Text)
	}
	for i := range r.Conflicts {
		c := &r.Conflicts[i]
		where := fmt.Sprintf("%s bytes %d to %d", c.Memory, c.Lo, c.Hi)
		if c.P1 > 0 {
			where = fmt.Sprintf("%s partitions %d to %d, bytes %d to %d", c.Memory, c.P0, c.P1, c.Lo, c.Hi)
		}
		fmt.Fprintf(&b, "\n  no semaphore orders, at %s:\n    %s: %s\n    %s: %s", where, kindOf(&c.First), c.First.Text, kindOf(&c.Second), c.Second.Text)
	}
	return target.Errorf(target.User, "%d races and %d ring slots reused early:%s", r.Total, r.Early, b.String())
}

func kindOf(s *Site) string {
	if s.Write {
		return "write"
	}
	return "read"
}

// race is one check.
type race struct {
	layout  layout
	engines [5]engine
	ops     operands
	clocks  clocks
	hist    history
	report  Report
	trace   [5][]uint32 // bundle index of each clock, once an engine has branched
	last    [2]epoch    // pair that was reported last
	steps   int64
}

// Race checks a package once, without data: it executes waits, updates and triggers in one order and reports every pair of
// conflicting accesses that semaphores leave unordered, with the reads and writes of each descriptor. An error means that
// the program could not be checked: it deadlocks, is malformed, branches on data, or uses semaphores in a way that makes
// the order depend on the interleaving (two producers, decrements, resets, events).
func Race(p *neff.Package) (*Report, error) {
	gen, ok := target.ByLevel(p.Level)
	if !ok || !gen.CodeGen {
		return nil, target.NotSupported("level", "the package is of level %d, which has no instruction set", p.Level)
	}
	r := &race{}
	if err := r.layout.open(p, gen); err != nil {
		return nil, err
	}
	total := int64(0)
	for i := 1; i < len(p.Def.Vars); i++ {
		if v := &p.Def.Vars[i]; v.Type == neff.VarOutput || v.Type == neff.VarTmpBuf {
			if total += v.Size; total > MaxMemory {
				return nil, target.Errorf(target.Limit, "variables need more than %d bytes of memory at %q (%d bytes)", int64(MaxMemory), v.Name, v.Size)
			}
		}
	}
	for i, id := range target.Sequencers {
		var buf []byte
		stream, err := streamOf(&p.Engines[i], &buf)
		if err != nil {
			return nil, err
		}
		r.engines[i].program(id, p.Level, &p.Engines[i], stream)
		r.engines[i].restart()
	}
	r.hist.open(&r.layout)
	r.hist.race = r
	for {
		moved := false
		for e := range r.engines {
			g := &r.engines[e]
			for !g.halted {
				ok, err := r.bundle(e, g)
				if err != nil {
					return nil, g.fail(err)
				}
				if !ok {
					break
				}
				moved = true
			}
		}
		if !moved {
			break
		}
	}
	if err := deadlock(&r.engines, r.steps, func(w wait) (int64, bool) {
		v := r.clocks.sems[w.sem].value
		return v, w.mode != isa.WaitEvent && v >= int64(w.value)
	}); err != nil {
		return nil, err
	}
	r.report.Accesses = r.hist.accesses
	r.report.Bundles = r.steps
	return &r.report, nil
}

// bundle executes the next bundle of an engine, or reports that its waits do not hold.
func (r *race) bundle(e int, g *engine) (bool, error) {
	if err := g.fetch(); err != nil {
		return false, err
	}
	in, c := &g.in, &r.clocks
	barrier := in.Opcode == isa.OpBarrier
	if barrier && !g.arrived {
		if err := c.arrive(e, g); err != nil {
			return false, err
		}
		g.arrived = true
	}
	ws, n := g.waits()
	for _, w := range ws[:n] {
		if w.mode == isa.WaitEvent {
			return false, target.NotSupported("event", "waits for event %d; events are not checked for races", w.sem)
		}
		if c.sems[w.sem].value < int64(w.value) {
			return false, nil
		}
		if c.sems[w.sem].kind == semBarrier && !barrier {
			return false, target.NotSupported("barrier", "waits for semaphore %d, which belongs to a barrier", w.sem)
		}
	}
	row, err := g.runnable()
	if err != nil {
		return false, err
	}
	if r.steps++; r.steps > maxRaceSteps {
		return false, target.Errorf(target.Limit, "more than %d bundles are executed", maxRaceSteps)
	}
	if barrier {
		c.depart(e, g)
	} else {
		for _, w := range ws[:n] {
			c.passed(e, w.sem, int64(w.value))
		}
	}
	c.clock[e]++
	if r.trace[e] != nil {
		r.trace[e] = append(r.trace[e], uint32(g.pc))
	}
	switch {
	case row.flags&isControl == 0:
		err = r.access(e, g, row)
	case in.Opcode == isa.OpDMATrigger:
		err = r.transfer(e, g)
	case in.Opcode == isa.OpIndirectDMA:
		err = r.gather(e, g)
	case in.Opcode == isa.OpGroupReset:
		err = target.NotSupported(in.Opcode.String(), "semaphores that are reset are not checked for races")
	case in.Opcode == isa.OpBranch && r.trace[e] == nil:
		for pc := 0; pc <= g.pc; pc++ { // straight up to here
			r.trace[e] = append(r.trace[e], uint32(pc))
		}
		fallthrough
	default:
		_, err = g.scalarOp()
	}
	if err == nil && !barrier {
		err = c.grow(e, g)
	}
	if err != nil {
		return false, err
	}
	g.step()
	if in.Opcode == isa.OpHalt || in.Opcode == isa.OpExit || in.Opcode == isa.OpReturn {
		g.halted = true
	}
	return true, nil
}

// access enters the operands of a bundle.
func (r *race) access(e int, g *engine, row *opRow) error {
	o := &r.ops
	if err := g.bind(&r.layout, row, o); err != nil {
		return err
	}
	h := &r.hist
	h.now = epoch{clock: r.clocks.clock[e], thread: uint16(e)}
	h.engine, h.know = uint16(e), &r.clocks.know[e]
	for i := 0; i < numOperands; i++ { // inputs come first, and a write stands for a read of the same bytes
		if o.have>>i&1 != 0 {
			h.record(&o.a[i])
		}
	}
	g.latch()
	return nil
}

// transfer enters all descriptors of a block as one event of its semaphore's thread, at the trigger: what the transfer
// follows is what its engine knows now.
func (r *race) transfer(e int, g *engine) error {
	b, err := r.layout.triggered(g)
	if err != nil {
		return err
	}
	descs := g.descs[b.lo:b.hi]
	if descs[len(descs)-1].SemInc == 0 {
		return target.Errorf(target.User, "block %d ends with a descriptor whose completion no semaphore reports", b.id)
	}
	s, by := descs[len(descs)-1].Sem, int64(0)
	for i := range descs {
		if d := &descs[i]; d.SemInc > 0 {
			if d.Sem != s {
				return target.NotSupported("semaphore", "block %d adds to semaphores %d and %d; one counts a transfer", b.id, d.Sem, s)
			}
			by += int64(d.SemInc)
		}
	}
	if err := r.inFlight(e, s, by); err != nil {
		return err
	}
	h := &r.hist
	var from, to access
	for i := range descs {
		if err := r.layout.bindDescriptor(&descs[i], &from, &to); err != nil {
			return &placed{"block " + itoa(int(b.id)) + " descriptor " + itoa(i), err}
		}
		if r.layout.constant(to.space) {
			return target.Errorf(target.User, "block %d writes %s, which is read only", b.id, r.layout.name(to.space))
		}
		h.record(&from)
		h.record(&to)
		if descs[i].SemInc > 0 {
			h.now.part++
		}
	}
	return nil
}

// inFlight makes what the history records next a transfer that engine e starts now and that adds by to semaphore s of a ring when
// it is complete. What the transfer follows is what its engine knows.
func (r *race) inFlight(e int, s uint8, by int64) error {
	c := &r.clocks
	if err := c.own(s, semSlot, e); err != nil {
		return err
	}
	sem := &c.sems[s]
	thread := firstSlot + uint16(s)
	clock := uint32(len(sem.updates) + 1)
	if clock > 1 && c.know[e][thread] < clock-1 {
		r.report.Early++
		if len(r.report.Reuses) < maxReported {
			r.report.Reuses = append(r.report.Reuses, Reuse{s, r.site(epoch{clock: clock - 1, thread: thread}, true), r.siteOf(e, c.clock[e], true, true)})
		}
	}
	if sem.value += by; sem.value > 1<<31-1 {
		return target.Errorf(target.Limit, "semaphore %d grows beyond 2^31-1", s)
	}
	sem.updates = append(sem.updates, c.here(e, sem.value))
	r.report.Transfers++
	h := &r.hist
	h.now = epoch{clock: clock, thread: thread}
	h.engine, h.know = uint16(e), &c.know[e]
	return nil
}

// conflict notes that the access at hand is not ordered after was.
func (r *race) conflict(was epoch, write bool, c cell) {
	h := &r.hist
	if r.last == [2]epoch{was, h.now} {
		return
	}
	r.last = [2]epoch{was, h.now}
	r.report.Total++
	if len(r.report.Conflicts) >= maxReported {
		return
	}
	k := Conflict{First: r.site(was, write), Second: r.site(h.now, h.write), Memory: r.layout.name(h.space),
		Lo: h.pageBase + int(c.lo), Hi: h.pageBase + int(c.hi)}
	if h.space < spaceVars {
		k.P0, k.P1 = int(c.p0), int(c.p1)
	}
	r.report.Conflicts = append(r.report.Conflicts, k)
}

// site describes an epoch.
func (r *race) site(e epoch, write bool) Site {
	if e.thread < firstSlot {
		return r.siteOf(int(e.thread), e.clock, write, false)
	}
	sem := &r.clocks.sems[e.thread-firstSlot]
	return r.siteOf(int(sem.owner), sem.updates[e.clock-1].clock, write, true)
}

// siteOf describes the bundle that an engine executed at a clock, or the transfer that it triggered there.
func (r *race) siteOf(e int, clock uint32, write, transfer bool) Site {
	g := &r.engines[e]
	pc := int(clock) - 1
	if t := r.trace[e]; t != nil {
		pc = int(t[pc])
	}
	s := Site{Engine: g.id, PC: pc, Write: write, Text: g.where(pc)}
	if transfer {
		var in isa.Inst
		if isa.Decode(g.level, (*isa.Bundle)(g.stream[pc*isa.BundleSize:]), &in) == nil {
			s.Block = in.Block
		}
		what := "block " + itoa(int(s.Block)) + " of "
		if in.Opcode == isa.OpIndirectDMA {
			what = "rows of "
		}
		s.Text = what + s.Text
	}
	return s
}
