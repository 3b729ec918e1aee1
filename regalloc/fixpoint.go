package regalloc

import (
	"fmt"
	"time"
)

// DefaultWatchdog is how long an allocator may take before it gives up.
const DefaultWatchdog = 2700 * time.Second

// StagnationRounds is how many rounds in a row may pass without progress before a fixpoint is declared stuck.
const StagnationRounds = 64

// TimeoutError says that an allocation took too long. The command line exits with status 2 on it.
type TimeoutError struct {
	What  string
	Limit time.Duration
	Round int
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s: allocation takes too long: no placement after %v and %d rounds; raise --allocation-timeout, or the memory", e.What, e.Limit, e.Round)
}

// StagnationError says that spilling went on without getting closer to a placement: a defect of the spiller, not of the
// program.
type StagnationError struct {
	What   string
	Rounds int
	Bytes  int64
}

func (e *StagnationError) Error() string {
	return fmt.Sprintf("%s: %d rounds of spilling did not lower the %d bytes that find no place", e.What, e.Rounds, e.Bytes)
}

// Guard watches a spill fixpoint: a limit on wall-clock time, and one on rounds that bring nothing. The zero value of
// Limit is DefaultWatchdog.
type Guard struct {
	What  string
	Limit time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	start time.Time
	best  int64
	stale int
	Round int
}

// Start begins a fixpoint.
func (g *Guard) Start() {
	if g.Limit == 0 {
		g.Limit = DefaultWatchdog
	}
	if g.Now == nil {
		g.Now = time.Now
	}
	g.start, g.best, g.stale, g.Round = g.Now(), 1<<63-1, 0, 0
}

// Next is asked after a round that left bytes unplaced. progress says that spilling shortened a live range that no earlier
// round touched, which can happen only finitely often, so such a round never counts against the program.
func (g *Guard) Next(bytes int64, progress bool) error {
	g.Round++
	if g.Now().Sub(g.start) > g.Limit {
		return &TimeoutError{g.What, g.Limit, g.Round}
	}
	if progress || bytes < g.best {
		g.best, g.stale = min(g.best, bytes), 0
		return nil
	}
	if g.stale++; g.stale >= StagnationRounds {
		return &StagnationError{g.What, g.stale, bytes}
	}
	return nil
}
