package machine

import (
	"sort"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// clocks is what each engine knows of the other threads, and what each value of each semaphore tells.
//
// Knowledge only grows, so it travels as deltas: log[e] lists in order what engine e learned, and an engine that learns of
// update u of a producer reads the producer's log from where it last stopped to where it was at u. An entry is read at most
// once by each engine, so time and memory are linear in waits and updates, where whole vectors would be
// threads × events.
type clocks struct {
	clock [5]uint32 // bundles that the engine has begun
	know  [5][numThreads]uint32
	log   [5][]learned
	seen  [5][5]uint32 // entries of the second engine's log that the first has read
	sems  [256]semaphore
}

type learned struct {
	clock  uint32
	thread uint16
}

type semKind uint8

const (
	semNone    semKind = iota
	semEngine          // updated by the bundles of one engine
	semSlot            // completed by the transfers that one engine triggers
	semBarrier         // updated once by each engine in each round
)

// semaphore is the history of one semaphore. Its value only grows and has one producer.
type semaphore struct {
	kind    semKind
	owner   uint8
	value   int64
	updates []update    // engine: bundles; slot: transfers, in order
	rounds  [5][]update // barrier: arrivals of each engine
}

// update is one growth: the value after it, the clock of the engine that updated or triggered, and its log at that time.
type update struct {
	value int64
	clock uint32
	log   uint32
}

func (c *clocks) here(e int, value int64) update {
	return update{value, c.clock[e], uint32(len(c.log[e]))}
}

// learn notes that engine e knows that a thread has come to a clock.
func (c *clocks) learn(e int, thread uint16, clock uint32) {
	if int(thread) == e || c.know[e][thread] >= clock {
		return
	}
	c.know[e][thread] = clock
	c.log[e] = append(c.log[e], learned{clock, thread})
}

// acquire makes engine e know all that engine p knew at an update.
func (c *clocks) acquire(e, p int, u update) {
	if p == e {
		return
	}
	c.learn(e, uint16(p), u.clock)
	if from := c.seen[e][p]; from < u.log {
		c.seen[e][p] = u.log
		for _, l := range c.log[p][from:u.log] {
			c.learn(e, l.thread, l.clock)
		}
	}
}

// passed makes engine e know what semaphore s >= v tells, which must hold.
func (c *clocks) passed(e int, s uint8, v int64) {
	sem := &c.sems[s]
	if v <= 0 {
		return
	}
	// The first update with which the value is reached.
	k := int(v - 1)
	if k >= len(sem.updates) || sem.updates[k].value != v {
		k = sort.Search(len(sem.updates), func(i int) bool { return sem.updates[i].value >= v })
	}
	u := sem.updates[k]
	c.acquire(e, int(sem.owner), u)
	if sem.kind == semSlot {
		// The transfer itself is complete only when all its increments are counted.
		if u.value > v {
			k--
		}
		c.learn(e, firstSlot+uint16(s), uint32(k+1))
	}
}

// own makes a semaphore one of a kind with an owner, or says who else produces it.
func (c *clocks) own(s uint8, kind semKind, e int) error {
	sem := &c.sems[s]
	switch {
	case sem.kind == semNone:
		sem.kind, sem.owner = kind, uint8(e)
	case sem.kind != kind || kind != semBarrier && sem.owner != uint8(e):
		return target.NotSupported("semaphore", "semaphore %d has two producers: %s and %s; what happens before what then depends on the interleaving",
			s, c.producer(sem), producerName(kind, e))
	}
	return nil
}

func (c *clocks) producer(s *semaphore) string { return producerName(s.kind, int(s.owner)) }

func producerName(kind semKind, e int) string {
	name := target.Sequencers[e].String()
	switch kind {
	case semSlot:
		return "transfers of " + name
	case semBarrier:
		return "a barrier"
	}
	return "bundles of " + name
}

// grow carries out the inline update of a bundle of engine e.
func (c *clocks) grow(e int, g *engine) error {
	s := g.in.Sync.UpdateSem
	by := int64(1)
	switch g.in.Sync.UpdateMode {
	case isa.UpdateNone:
		return nil
	case isa.UpdateInc:
	case isa.UpdateAdd:
		if by = int64(g.updateValue()); by <= 0 {
			return target.NotSupported("semaphore", "semaphore %d grows by %d", s, by)
		}
	default:
		return target.NotSupported("semaphore", "update mode 0x%02X: only semaphores that grow are checked for races", g.in.Sync.UpdateMode)
	}
	if err := c.own(s, semEngine, e); err != nil {
		return err
	}
	sem := &c.sems[s]
	if sem.value += by; sem.value > 1<<31-1 {
		return target.Errorf(target.Limit, "semaphore %d grows beyond 2^31-1", s)
	}
	sem.updates = append(sem.updates, c.here(e, sem.value))
	return nil
}

// arrive and depart are the two halves of a barrier of all engines: arrive counts the engine in and gives the value that it
// waits for; depart makes it know what all knew when they came.
func (c *clocks) arrive(e int, g *engine) error {
	s := &g.in.Sync
	if s.UpdateMode != isa.UpdateInc || s.WaitMode != isa.WaitGE || s.WaitSem != s.UpdateSem {
		return target.NotSupported("barrier", "a barrier adds 1 to a semaphore and waits for it")
	}
	if err := c.own(s.UpdateSem, semBarrier, e); err != nil {
		return err
	}
	sem := &c.sems[s.UpdateSem]
	if want := 5 * (len(sem.rounds[e]) + 1); int(s.Value) != want {
		return target.NotSupported("barrier", "barrier %d of %s waits for %d; all five engines make it %d", len(sem.rounds[e])+1, g.id, s.Value, want)
	}
	sem.value++
	sem.rounds[e] = append(sem.rounds[e], c.here(e, sem.value))
	return nil
}

func (c *clocks) depart(e int, g *engine) {
	sem := &c.sems[g.in.Sync.UpdateSem]
	round := len(sem.rounds[e]) - 1
	for p := range sem.rounds {
		c.acquire(e, p, sem.rounds[p][round])
	}
}
